//! The second step: from typed text to the checked model. Names are resolved, defaults filled in,
//! files looked for. Whatever is wrong is collected, and the rest still checked.

use super::defaults::{self, Defaults};
use super::mistake::{Collector, Mistake};
use super::model::*;
use super::paths;
use super::reader::{did_you_mean, one_of, Located};
use super::text::*;
use super::words;
use crate::evidence::PlanSettings;
use crate::identity::{is_part, Identity};
use crate::kat::manifest::{self, Manifest, ManifestError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What a check needs beside the text.
pub struct Context<'c> {
    /// Folder of the file, absolute.
    pub root: &'c Path,
    /// The same folder as the user named it, for messages.
    pub shown_root: &'c Path,
    /// Whether source files must be there; not so where built libraries are carried along.
    pub sources: bool,
    /// Where mistakes go.
    pub mistakes: &'c Collector<'c>,
}

/// Longest `<label>.<code>.<build>`, bytes: file names have at most 255, of which 45 go to the longest
/// ending (`__keygen__prehash-sha256__1000000000000.json`) and 30 to that of a temporary file.
const STEM_MAX: usize = 180;

/// Names that pages and folders of the project use for themselves.
const TAKEN_CANDIDATES: [&str; 6] = [
    "index",
    "summary",
    "method",
    "sizes",
    "symmetric",
    "study-message-size",
];
const TAKEN_SYSTEMS: [&str; 2] = ["local", "compare"];

/// The checked campaign. `None` only if mistakes were collected.
pub fn campaign(text: CampaignText, sha256: String, c: &Context<'_>) -> Option<Campaign> {
    let defaults = defaults::defaults();
    let systems = systems(&text.systems, c);
    let builds = builds(&text.builds, c);
    let candidates = candidates(&text.candidates, &builds, &used_archs(&systems), c);
    let mut campaign = Campaign {
        root: c.root.to_owned(),
        sha256,
        report: Report {
            kind: text.report.kind.unwrap_or(defaults.report.kind),
            title: text.report.title.unwrap_or(defaults.report.title.clone()),
            reference: None,
        },
        systems,
        builds,
        candidates,
        plans: BTreeMap::new(),
        study: None,
    };
    let identities = all_identities(&campaign);
    campaign.plans = plans(text.plans, &defaults, &identities, c);
    campaign.study = text
        .study
        .map(|study| message_size(study, &defaults.study, &identities, c));
    campaign.report.reference = reference(text.report.reference, &defaults, &campaign, c);
    c.mistakes.is_empty().then_some(campaign)
}

// ---- helpers ----

impl Context<'_> {
    fn wrong(&self, at: &Located<String>, what: String, expected: &str) {
        self.mistakes
            .add(at.span(), what, Some(expected.to_owned()), None);
    }

    fn wrong_hint(
        &self,
        at: &Located<String>,
        what: String,
        expected: Option<String>,
        hint: Option<String>,
    ) {
        self.mistakes.add(at.span(), what, expected, hint);
    }
}

/// Reports a name that was given before. True for the first of its kind; `kind` is a plural.
fn is_new(
    name: &Located<String>,
    seen: &mut BTreeMap<String, usize>,
    kind: &str,
    c: &Context<'_>,
) -> bool {
    let text = name.get_ref();
    if let Some(first) = seen.get(text) {
        let what = format!("two {kind} are called `{text}`: here and in line {first}");
        c.wrong(name, what, "each name once");
        return false;
    }
    seen.insert(text.clone(), c.mistakes.line(name.span().start));
    true
}

/// Whether a name can be part of an identity and of a file name.
fn is_good_name(name: &Located<String>, what: &str, c: &Context<'_>) -> bool {
    let text = name.get_ref();
    let good = is_part(text) && text.len() <= STEM_MAX && !text.contains(char::is_control);
    if !good {
        let shown: String = text.chars().take(40).collect();
        c.wrong(
            name,
            format!("`{}` cannot be a {what}", shown.escape_debug()),
            &format!(
                "1 to {STEM_MAX} bytes, none of them `/` or a control character, and neither `.` nor `..`"
            ),
        );
    }
    good
}

/// Compiles a regular expression; reports one that is none.
fn regex(text: &Located<String>, c: &Context<'_>) -> Option<regex::Regex> {
    match regex::Regex::new(text.get_ref()) {
        Ok(regex) => Some(regex),
        Err(error) => {
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default();
            c.wrong(
                text,
                format!(
                    "`{}` is no regular expression: {}",
                    text.get_ref(),
                    reason.trim_start_matches("error: ")
                ),
                "the syntax of the Rust crate regex, as in \"i7-12700|i9\"",
            );
            None
        }
    }
}

/// Reports a regular expression that matches no identity.
fn matches_some(text: &Located<String>, identities: &[String], c: &Context<'_>) {
    if let Some(regex) = regex(text, c) {
        if !identities.is_empty() && !identities.iter().any(|name| regex.is_match(name)) {
            c.wrong(
                text,
                format!("`{}` matches nothing of this campaign", text.get_ref()),
                "a regular expression over candidate/label/code/build",
            );
        }
    }
}

/// Every identity that exists on some architecture, in page order.
fn all_identities(campaign: &Campaign) -> Vec<String> {
    let all: BTreeSet<Identity> = [Arch::X86_64, Arch::Aarch64]
        .into_iter()
        .flat_map(|arch| campaign.identities(arch))
        .collect();
    all.iter().map(Identity::to_string).collect()
}

// ---- systems and builds ----

fn systems(texts: &[SystemText], c: &Context<'_>) -> Vec<System> {
    let mut seen = BTreeMap::new();
    texts
        .iter()
        .filter_map(|text| {
            if let Some(id) = &text.id {
                system_id(id, &mut seen, c);
            }
            if let Some(model) = &text.cpu_model {
                regex(model, c);
            }
            let cc = text.cc.as_ref();
            if let Some(cc) = cc.filter(|cc| cc.get_ref().trim().is_empty()) {
                c.wrong(cc, "`cc` is empty".to_owned(), r#"cc = "gcc""#);
            }
            runner(text, c);
            Some(System {
                id: text.id.as_ref()?.get_ref().clone(),
                arch: text.arch?,
                cpu_model: text.cpu_model.as_ref()?.get_ref().clone(),
                cc: cc.map_or("gcc", |cc| cc.get_ref()).to_owned(),
                runner: text.runner.as_ref().map(plain).unwrap_or_default(),
                description: text.description.clone(),
            })
        })
        .collect()
}

fn system_id(id: &Located<String>, seen: &mut BTreeMap<String, usize>, c: &Context<'_>) {
    if TAKEN_SYSTEMS.contains(&id.get_ref().as_str()) {
        let what = format!(
            "no system can be called `{}`: the name has a meaning",
            id.get_ref()
        );
        c.wrong(id, what, r#"id = "x86_1""#);
    }
    if is_good_name(id, "system id", c) {
        is_new(id, seen, "systems", c);
    }
}

fn runner(text: &SystemText, c: &Context<'_>) {
    const EXAMPLE: &str =
        r#"runner = ["qemu-aarch64-static", "-cpu", "neoverse-n1"], or no `runner` at all"#;
    let Some(runner) = &text.runner else { return };
    let blank = |word: &&Located<String>| word.get_ref().trim().is_empty();
    if runner.get_ref().is_empty() {
        c.mistakes.add(
            runner.span(),
            "`runner` is empty",
            Some(EXAMPLE.to_owned()),
            None,
        );
    }
    for word in runner.get_ref().iter().filter(blank) {
        c.wrong(word, "a word of `runner` is empty".to_owned(), EXAMPLE);
    }
}

fn used_archs(systems: &[System]) -> BTreeSet<Arch> {
    systems.iter().map(|system| system.arch).collect()
}

fn builds(texts: &[(Located<String>, BuildText)], c: &Context<'_>) -> BTreeMap<String, Build> {
    let mut builds = BTreeMap::new();
    for (name, text) in texts {
        is_good_name(name, "build", c);
        let by_arch = |values: &Option<ByArch<Vec<String>>>| {
            let mut map = BTreeMap::new();
            for arch in [Arch::X86_64, Arch::Aarch64] {
                let value = values.as_ref().and_then(|values| values.get(arch));
                map.extend(value.map(|value| (arch, value.clone())));
            }
            map
        };
        let build = Build {
            name: name.get_ref().clone(),
            cflags: by_arch(&text.cflags),
            requires: by_arch(&text.requires),
        };
        builds.insert(build.name.clone(), build);
    }
    builds
}

// ---- candidates ----

fn candidates(
    texts: &[CandidateText],
    builds: &BTreeMap<String, Build>,
    archs: &BTreeSet<Arch>,
    c: &Context<'_>,
) -> Vec<Candidate> {
    let mut seen = BTreeMap::new();
    texts
        .iter()
        .filter_map(|text| {
            if let Some(id) = &text.id {
                candidate_id(id, &mut seen, c);
            }
            candidate(text, builds, archs, c)
        })
        .collect()
}

fn candidate_id(id: &Located<String>, seen: &mut BTreeMap<String, usize>, c: &Context<'_>) {
    let name = id.get_ref().as_str();
    if TAKEN_CANDIDATES.contains(&name) || name.starts_with("ranking-") {
        let what = format!("no candidate can be called `{name}`: a page has that name");
        c.wrong(id, what, r#"id = "sign-09""#);
    }
    if is_good_name(id, "candidate id", c) {
        is_new(id, seen, "candidates", c);
    }
}

fn candidate(
    text: &CandidateText,
    builds: &BTreeMap<String, Build>,
    archs: &BTreeSet<Arch>,
    c: &Context<'_>,
) -> Option<Candidate> {
    let crates = source_crates(text, c);
    let kat = kat(text, c);
    let instances = instances(text, crates.as_deref(), builds, archs, c);
    Some(Candidate {
        id: text.id.as_ref()?.get_ref().clone(),
        name: text.name.clone()?,
        category: text
            .category
            .clone()
            .unwrap_or_else(|| "public-key algorithm".to_owned()),
        function: text
            .function
            .clone()
            .unwrap_or_else(|| "digital signature".to_owned()),
        origin: text.origin?,
        specification: text.specification.clone(),
        links: text.links.clone(),
        source_crates: text.source_crates.as_ref().map(|p| p.get_ref().into()),
        kat: kat?,
        wrap: wrap(&text.wrap, c),
        kat_issues: kat_issues(text, c),
        instances,
    })
}

/// Names of the crates that a manifest pins. `None` where there is no manifest or it cannot be read.
fn source_crates(text: &CandidateText, c: &Context<'_>) -> Option<Vec<String>> {
    let path = text.source_crates.as_ref()?;
    let manifest = match std::fs::read_to_string(c.root.join(path.get_ref())) {
        Ok(manifest) => manifest,
        Err(error) => {
            let what = format!("`{}` cannot be read: {error}", path.get_ref());
            let hint = paths::explain(c.root, path.get_ref());
            c.wrong_hint(path, what, Some("a Cargo.toml".to_owned()), hint);
            return None;
        }
    };
    let table: Option<toml::Table> = manifest.parse().ok();
    let dependencies = table
        .as_ref()
        .and_then(|t| t.get("dependencies")?.as_table());
    if dependencies.is_none() {
        let what = format!("`{}` has no table [dependencies]", path.get_ref());
        c.wrong(path, what, "a Cargo.toml that names the crates");
    }
    Some(dependencies?.keys().cloned().collect())
}

fn kat(text: &CandidateText, c: &Context<'_>) -> Option<Kat> {
    let path = text.kat_manifest.as_ref()?;
    let manifest = PathBuf::from(path.get_ref());
    match Manifest::read(&c.root.join(&manifest)) {
        Ok(read) => {
            if let Some(flow) = text.kat_flow {
                kat_modes(&read, flow, path, c);
            }
        }
        Err(ManifestError::Read { source, .. }) => {
            let what = format!(
                "the KAT manifest `{}` cannot be read: {source}",
                path.get_ref()
            );
            let hint = paths::explain(c.root, path.get_ref());
            c.wrong_hint(
                path,
                what,
                Some("a KAT manifest, as performance/kat/README.md describes it".to_owned()),
                hint,
            );
        }
        Err(ManifestError::Lines { lines, .. }) => {
            for line in lines {
                let mistake = manifest_mistake(
                    &manifest,
                    line.line,
                    line.column,
                    line.what,
                    line.expected,
                    c,
                );
                c.mistakes.add_foreign(path.span(), mistake);
            }
        }
    }
    Some(Kat {
        flow: text.kat_flow?,
        manifest,
    })
}

/// Reports lines whose mode belongs to the other flow.
fn kat_modes(read: &Manifest, flow: protocol::KatFlow, path: &Located<String>, c: &Context<'_>) {
    for entry in &read.entries {
        if manifest::flow_of(&entry.mode.mode) != Some(flow) {
            let what = format!(
                "the mode `{}` is not one of this candidate's KAT flow",
                entry.mode.mode
            );
            let expected = match flow {
                protocol::KatFlow::Iccs => "`strict` or `nolen`",
                protocol::KatFlow::Nist => "`nistkat`, `rsp` or `all`",
            };
            let mistake =
                manifest_mistake(path.get_ref().as_ref(), entry.line, 1, what, expected, c);
            c.mistakes.add_foreign(path.span(), mistake);
        }
    }
}

fn manifest_mistake(
    manifest: &Path,
    line: usize,
    column: usize,
    what: String,
    expected: &str,
    c: &Context<'_>,
) -> Mistake {
    Mistake {
        file: c.shown_root.join(manifest),
        line,
        column,
        excerpt: String::new(),
        width: 1,
        what,
        expected: Some(expected.to_owned()),
        hint: None,
        absence: false,
    }
}

fn wrap(text: &WrapText, c: &Context<'_>) -> Wrap {
    if let Some(path) = &text.derive {
        if !c.root.join(path.get_ref()).is_file() {
            let what = format!("`{}` is no file", path.get_ref());
            let hint = paths::explain(c.root, path.get_ref());
            c.wrong_hint(path, what, Some("a table of prototypes".to_owned()), hint);
        }
        return Wrap::Derived(path.get_ref().into());
    }
    let mut seen = BTreeMap::new();
    let mut functions = Vec::new();
    for (group, symbol) in &text.named {
        if wrap_symbol(symbol, &mut seen, c) {
            functions.push(wrapped(group, symbol.get_ref(), None));
        }
    }
    for function in &text.functions {
        let Some(symbol) = &function.symbol else {
            continue;
        };
        if wrap_symbol(symbol, &mut seen, c) {
            let group = function.group.unwrap_or("other");
            functions.push(wrapped(group, symbol.get_ref(), Some(function)));
        }
    }
    if functions.is_empty() {
        Wrap::None
    } else {
        Wrap::Listed(functions)
    }
}

fn wrap_symbol(
    symbol: &Located<String>,
    seen: &mut BTreeMap<String, usize>,
    c: &Context<'_>,
) -> bool {
    if !words::is_c_name(symbol.get_ref()) {
        let what = format!("`{}` is no name of C", symbol.get_ref());
        c.wrong(symbol, what, r#"the name of a function, as in "pseudoXOF""#);
        return false;
    }
    is_new(symbol, seen, "wrapped functions", c)
}

fn wrapped(group: &str, symbol: &str, text: Option<&WrapFunctionText>) -> WrapFunction {
    let name = if group == "drng" { "drng" } else { symbol };
    let own = |value: fn(&WrapFunctionText) -> &Option<Located<String>>| {
        text.and_then(|text| value(text).as_ref().map(|text| text.get_ref().clone()))
    };
    WrapFunction {
        symbol: symbol.to_owned(),
        group: group.to_owned(),
        name: text
            .and_then(|text| text.name.clone())
            .unwrap_or_else(|| name.to_owned()),
        prototype: own(|text| &text.prototype),
        in_bits: own(|text| &text.in_bits),
        out_bits: own(|text| &text.out_bits),
    }
}

fn kat_issues(text: &CandidateText, c: &Context<'_>) -> Vec<KatIssue> {
    let labels: BTreeSet<&str> = text
        .instances
        .iter()
        .filter_map(|instance| Some(instance.label.as_ref()?.get_ref().as_str()))
        .collect();
    let mut seen = BTreeMap::new();
    text.kat_issues
        .iter()
        .filter_map(|issue| {
            let instance = issue.instance.as_ref()?;
            let label = instance.get_ref();
            if !labels.contains(label.as_str()) {
                c.wrong_hint(
                    instance,
                    format!("`kat_issue` names the instance `{label}`, which the candidate does not have"),
                    Some(one_of(labels.iter().copied())),
                    did_you_mean(label, labels.iter().copied()),
                );
            }
            is_new(instance, &mut seen, "KAT issues", c);
            Some(KatIssue {
                instance: label.clone(),
                result: issue.result?,
                reason: issue.reason.clone()?,
            })
        })
        .collect()
}

// ---- instances and codes ----

fn instances(
    text: &CandidateText,
    crates: Option<&[String]>,
    builds: &BTreeMap<String, Build>,
    archs: &BTreeSet<Arch>,
    c: &Context<'_>,
) -> Vec<Instance> {
    let mut labels = BTreeMap::new();
    let mut stems = BTreeMap::new();
    let mut all = Vec::new();
    for instance in &text.instances {
        let Some(label) = &instance.label else {
            continue;
        };
        let usable = is_good_name(label, "label", c) && is_new(label, &mut labels, "instances", c);
        let mut names = BTreeMap::new();
        let mut codes = Vec::new();
        for code in text.codes.iter().chain(&instance.codes) {
            let Some(name) = &code.name else { continue };
            if !is_good_name(name, "code", c)
                || !is_new(name, &mut names, "codes of one instance", c)
            {
                continue;
            }
            let context = CodeContext {
                label: label.get_ref(),
                candidate: text,
                crates,
                builds,
                archs,
            };
            codes.extend(self::code(code, instance, &context, c));
        }
        if text.codes.is_empty() && instance.codes.is_empty() {
            let what = format!("instance `{}` has no code", label.get_ref());
            c.wrong(
                label,
                what,
                "[[candidate.code]] for all instances, or [[candidate.instance.code]] for this one",
            );
        }
        if usable {
            check_stems(label, &codes, &mut stems, c);
        }
        all.push(Instance {
            label: label.get_ref().clone(),
            security_bits: instance.security_bits,
            key_per: instance
                .own
                .key_per
                .or(text.defaults.key_per)
                .unwrap_or(KeyPer::Trial),
            unauthenticated_signature_bytes: instance.unauthenticated.clone(),
            rejected_counter: instance
                .own
                .rejected_counter
                .clone()
                .or_else(|| text.defaults.rejected_counter.clone()),
            codes,
        });
    }
    all
}

/// File names are made of label, code and build; they must fit and differ.
fn check_stems(
    label: &Located<String>,
    codes: &[Code],
    stems: &mut BTreeMap<String, String>,
    c: &Context<'_>,
) {
    for code in codes {
        for build in &code.builds {
            let key = format!("{}/{}/{build}", label.get_ref(), code.name);
            let stem = format!("{}.{}.{build}", label.get_ref(), code.name);
            if stem.len() > STEM_MAX {
                let what = format!("file names of `{}` would be too long", code.name);
                c.wrong(
                    label,
                    what,
                    &format!("label, code and build of {STEM_MAX} bytes together"),
                );
            }
            if let Some(other) = stems.insert(stem, key.clone()) {
                if other != key {
                    let what = format!("`{key}` and `{other}` would have the same file names");
                    c.wrong(label, what, "names without `.`");
                }
            }
        }
    }
}

/// What a code is checked against.
struct CodeContext<'c> {
    label: &'c str,
    candidate: &'c CandidateText,
    crates: Option<&'c [String]>,
    builds: &'c BTreeMap<String, Build>,
    archs: &'c BTreeSet<Arch>,
}

fn code(
    text: &CodeText,
    instance: &InstanceText,
    x: &CodeContext<'_>,
    c: &Context<'_>,
) -> Option<Code> {
    let label = x.label;
    let fill = |list: &Option<Texts>| -> Vec<String> {
        let texts = list.as_ref().map(plain).unwrap_or_default();
        texts
            .iter()
            .map(|text| words::fill_label(text, label))
            .collect()
    };
    for source in text.sources.iter().flat_map(|list| list.get_ref()) {
        check_source(source, x, c);
    }
    for folder in text.include.iter().flat_map(|list| list.get_ref()) {
        check_include(folder, x, c);
    }
    let mut defines = fill(&text.defines);
    defines.extend(fill(&instance.defines));
    for list in [&text.defines, &instance.defines].into_iter().flatten() {
        check_defines(list, label, c);
    }
    let library = text
        .library
        .as_ref()
        .map(|library| check_library(library, label, c));
    let builds = check_builds(text, x, c);
    Some(Code {
        name: text.name.as_ref()?.get_ref().clone(),
        sources: sources(text, label),
        include: fill(&text.include),
        defines,
        extra_cflags: text
            .extra_cflags
            .iter()
            .map(|flag| words::fill_label(flag, label))
            .collect(),
        fallback_cflags: text
            .fallback_cflags
            .clone()
            .or_else(|| x.candidate.fallback_cflags.clone()),
        archs: text.archs.clone(),
        requires: text.requires.clone(),
        builds,
        library,
    })
}

/// Patterns with the label filled in, its own `*`, `?` and `[` made harmless.
fn sources(text: &CodeText, label: &str) -> Vec<String> {
    let sources = text.sources.as_ref().map(plain).unwrap_or_default();
    let label = glob::Pattern::escape(label);
    sources
        .iter()
        .map(|source| words::fill_label(source, &label))
        .collect()
}

/// Checks the gaps of a path. `Some(true)` if it is inside a crate, which the build phase looks into.
fn check_gaps(path: &Located<String>, x: &CodeContext<'_>, c: &Context<'_>) -> Option<bool> {
    let Some(gaps) = words::gaps(path.get_ref()) else {
        let what = format!("`{}` has a brace without its partner", path.get_ref());
        c.wrong(
            path,
            what,
            "{label}, {LABEL} or the name of a crate in braces",
        );
        return None;
    };
    let mut inside = false;
    for gap in gaps {
        match (gap, x.crates) {
            ("label" | "LABEL", _) => {}
            (name, Some(crates)) if crates.iter().any(|known| known == name) => inside = true,
            (name, Some(crates)) => {
                let words = || crates.iter().map(String::as_str).chain(["label", "LABEL"]);
                c.wrong_hint(
                    path,
                    format!("`{{{name}}}` is no crate of `source_crates`"),
                    Some(one_of(words())),
                    did_you_mean(name, words()),
                );
                return None;
            }
            // `source_crates` is there but unreadable: that is reported, this path cannot be judged.
            _ if x.candidate.source_crates.is_some() => return None,
            (name, None) => {
                let what = format!(
                    "`{{{name}}}` stands for nothing: the candidate has no `source_crates`"
                );
                c.wrong(
                    path,
                    what,
                    "{label}, {LABEL}, or `source_crates` at the candidate",
                );
                return None;
            }
        }
    }
    Some(inside)
}

fn check_source(source: &Located<String>, x: &CodeContext<'_>, c: &Context<'_>) {
    const EXAMPLE: &str = "a file, or a pattern such as \"src/*.c\", relative to this file";
    let Some(in_crate) = check_gaps(source, x, c) else {
        return;
    };
    let filled = words::fill_label(source.get_ref(), &glob::Pattern::escape(x.label));
    match paths::files(c.root, &filled) {
        Err(error) => c.wrong(source, error.to_string(), EXAMPLE),
        Ok(files) if files.is_empty() && !in_crate && c.sources => {
            let what = format!("no file matches `{filled}`");
            let hint = paths::explain(c.root, &filled);
            c.wrong_hint(source, what, Some(EXAMPLE.to_owned()), hint);
        }
        Ok(_) => {}
    }
}

fn check_include(folder: &Located<String>, x: &CodeContext<'_>, c: &Context<'_>) {
    let Some(in_crate) = check_gaps(folder, x, c) else {
        return;
    };
    let filled = words::fill_label(folder.get_ref(), x.label);
    let absolute = Path::new(&filled).is_absolute();
    let missing = !in_crate && c.sources && !c.root.join(&filled).is_dir();
    if absolute || missing {
        c.wrong_hint(
            folder,
            format!("`{filled}` is no folder relative to this file"),
            Some(r#"include = ["src"]"#.to_owned()),
            paths::explain(c.root, &filled),
        );
    }
}

fn check_defines(list: &Texts, label: &str, c: &Context<'_>) {
    for define in list.get_ref() {
        let filled = words::fill_label(define.get_ref(), label);
        let name = filled.split(['=', '(']).next().unwrap_or_default();
        if !words::is_c_name(name) {
            let what = format!("`{}` is no macro of C", define.get_ref());
            c.wrong(define, what, r#""NAME" or "NAME=VALUE", without -D"#);
        }
    }
}

fn check_library(library: &Located<String>, label: &str, c: &Context<'_>) -> PathBuf {
    let filled = PathBuf::from(words::fill_label(library.get_ref(), label));
    if filled.is_absolute() || c.sources && !c.root.join(&filled).is_file() {
        c.wrong_hint(
            library,
            format!("`{}` is no file relative to this file", filled.display()),
            Some(r#"library = "lib/libx.so""#.to_owned()),
            paths::explain(c.root, &filled.to_string_lossy()),
        );
    }
    filled
}

fn check_builds(text: &CodeText, x: &CodeContext<'_>, c: &Context<'_>) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let mut names = Vec::new();
    for name in text.builds.iter().flat_map(|list| list.get_ref()) {
        let Some(build) = x.builds.get(name.get_ref()) else {
            let words = || x.builds.keys().map(String::as_str);
            c.wrong_hint(
                name,
                format!("there is no build `{}`", name.get_ref()),
                Some(match x.builds.is_empty() {
                    true => format!("a table [build.{}]", name.get_ref()),
                    false => one_of(words()),
                }),
                did_you_mean(name.get_ref(), words()),
            );
            continue;
        };
        if !is_new(name, &mut seen, "builds of one code", c) {
            continue;
        }
        for arch in x.archs {
            let wanted = text.archs.is_empty() || text.archs.contains(arch);
            // A build without any flags is reported at the build.
            if wanted && !build.cflags.is_empty() && !build.cflags.contains_key(arch) {
                c.wrong(
                    name,
                    format!(
                        "the build `{}` has no flags for {}",
                        build.name,
                        arch.word()
                    ),
                    &format!(
                        "cflags.{} in [build.{}], or `archs` at the code",
                        arch.word(),
                        build.name
                    ),
                );
            }
        }
        names.push(name.get_ref().clone());
    }
    names
}

// ---- plans, study, report ----

fn plans(
    texts: Vec<(Located<String>, PlanText)>,
    defaults: &Defaults,
    identities: &[String],
    c: &Context<'_>,
) -> BTreeMap<String, PlanSettings> {
    let mut plans = defaults.plans.clone();
    for (name, text) in texts {
        is_good_name(&name, "plan", c);
        for pattern in text.defer.iter().flat_map(|list| list.get_ref()) {
            matches_some(pattern, identities, c);
        }
        let base = base_plan(&name, text.like.as_ref(), defaults, c);
        let plan = defaults::overlay(name.get_ref(), base, &text);
        plans.insert(plan.name.clone(), plan);
    }
    plans
}

/// The plan that a plan starts from: itself, the one that it names, or `quick`.
fn base_plan<'d>(
    name: &Located<String>,
    like: Option<&Located<String>>,
    defaults: &'d Defaults,
    c: &Context<'_>,
) -> &'d PlanSettings {
    let quick = &defaults.plans["quick"];
    match (defaults.plans.get(name.get_ref()), like) {
        (Some(own), None) => own,
        (Some(own), Some(like)) => {
            let what = format!("[plan.{}] has defaults of its own", name.get_ref());
            c.wrong(like, what, "no `like` in this plan");
            own
        }
        (None, None) => quick,
        (None, Some(like)) => defaults.plans.get(like.get_ref()).unwrap_or_else(|| {
            let words = || defaults.plans.keys().map(String::as_str);
            c.wrong_hint(
                like,
                format!("no plan `{}` is built in", like.get_ref()),
                Some(one_of(words())),
                did_you_mean(like.get_ref(), words()),
            );
            quick
        }),
    }
}

fn message_size(
    text: StudyText,
    defaults: &MessageSizeStudy,
    identities: &[String],
    c: &Context<'_>,
) -> MessageSizeStudy {
    for pattern in text.instances.iter().flat_map(|list| list.get_ref()) {
        matches_some(pattern, identities, c);
    }
    let instances = text.instances.as_ref().map(plain);
    MessageSizeStudy {
        instances: instances.unwrap_or(defaults.instances.clone()),
        sizes: text.sizes.unwrap_or(defaults.sizes.clone()),
        full_sizes: text.full_sizes.unwrap_or(defaults.full_sizes.clone()),
        modes: text.modes.unwrap_or(defaults.modes.clone()),
        trials: text.trials.unwrap_or(defaults.trials),
        memory_guard_bytes: text.memory_guard.unwrap_or(defaults.memory_guard_bytes),
        chunk_bytes: text.chunk.unwrap_or(defaults.chunk_bytes),
    }
}

fn reference(
    text: Option<Located<String>>,
    defaults: &Defaults,
    campaign: &Campaign,
    c: &Context<'_>,
) -> Option<Identity> {
    let Some(text) = text else {
        return defaults
            .report
            .reference
            .clone()
            .filter(|identity| campaign.find(identity).is_some());
    };
    let identity: Identity = match text.get_ref().parse() {
        Ok(identity) => identity,
        Err(error) => {
            c.wrong(
                &text,
                error.to_string(),
                r#"reference = "dilithium/dilithium2/clean/reference""#,
            );
            return None;
        }
    };
    let exists = campaign
        .find(&identity)
        .is_some_and(|(_, _, code, _)| code.builds.contains(&identity.build));
    if !exists {
        let all = all_identities(campaign);
        c.wrong_hint(
            &text,
            format!("the reference `{identity}` is not an identity of this campaign"),
            Some("candidate/label/code/build of something below [[candidate]]".to_owned()),
            did_you_mean(text.get_ref(), all.iter().map(String::as_str)),
        );
    }
    Some(identity)
}
