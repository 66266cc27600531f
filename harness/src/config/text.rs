//! The first step: the file as typed text. Every value has its type and its place; what is not there
//! is `None`. Nothing is looked up, compared or filled in: that is `check`'s.

use super::model::{Arch, KeyPer, ReportKind};
use super::reader::{at, did_you_mean, one_of, Located, Section};
use super::words;
use crate::evidence::{KatResult, Origin};
use crate::values::Size;
use protocol::{KatFlow, StudyMode};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::DeValue;

/// Texts of a list.
pub type Texts = Located<Vec<Located<String>>>;

/// A value for all architectures, or one for each that is named.
#[derive(Debug)]
pub enum ByArch<T> {
    /// For all.
    All(T),
    /// For those named.
    Each(BTreeMap<Arch, T>),
}

impl<T> ByArch<T> {
    /// The value of an architecture.
    pub fn get(&self, arch: Arch) -> Option<&T> {
        match self {
            ByArch::All(value) => Some(value),
            ByArch::Each(values) => values.get(&arch),
        }
    }
}

/// The whole file.
#[derive(Debug)]
pub struct CampaignText {
    /// `[report]`.
    pub report: ReportText,
    /// `[[system]]`.
    pub systems: Vec<SystemText>,
    /// `[build.*]`.
    pub builds: Vec<(Located<String>, BuildText)>,
    /// `[[candidate]]`.
    pub candidates: Vec<CandidateText>,
    /// `[plan.*]`.
    pub plans: Vec<(Located<String>, PlanText)>,
    /// `[study.message-size]`.
    pub study: Option<StudyText>,
}

/// `[report]`.
#[derive(Debug, Default)]
pub struct ReportText {
    /// Who speaks.
    pub kind: Option<ReportKind>,
    /// Title of the pages.
    pub title: Option<String>,
    /// Identity that ratios are relative to.
    pub reference: Option<Located<String>>,
}

/// `[[system]]`.
#[derive(Debug)]
pub struct SystemText {
    /// The header.
    pub span: Range<usize>,
    /// Id.
    pub id: Option<Located<String>>,
    /// Architecture.
    pub arch: Option<Arch>,
    /// Regular expression.
    pub cpu_model: Option<Located<String>>,
    /// Compiler.
    pub cc: Option<Located<String>>,
    /// Command and arguments.
    pub runner: Option<Texts>,
    /// For pages.
    pub description: Option<String>,
}

/// `[build.*]`.
#[derive(Debug)]
pub struct BuildText {
    /// Flags.
    pub cflags: Option<ByArch<Vec<String>>>,
    /// CPU features.
    pub requires: Option<ByArch<Vec<String>>>,
}

/// `[[candidate]]`.
#[derive(Debug)]
pub struct CandidateText {
    /// The header.
    pub span: Range<usize>,
    /// Id.
    pub id: Option<Located<String>>,
    /// Name.
    pub name: Option<String>,
    /// Category.
    pub category: Option<String>,
    /// Function.
    pub function: Option<String>,
    /// Whose code.
    pub origin: Option<Origin>,
    /// Where it is specified.
    pub specification: Option<String>,
    /// For pages.
    pub links: BTreeMap<String, String>,
    /// Manifest of crates.
    pub source_crates: Option<Located<String>>,
    /// KAT flow.
    pub kat_flow: Option<KatFlow>,
    /// KAT manifest.
    pub kat_manifest: Option<Located<String>>,
    /// What is wrapped.
    pub wrap: WrapText,
    /// Deviations.
    pub kat_issues: Vec<KatIssueText>,
    /// What instances have unless they say otherwise.
    pub defaults: InstanceDefaults,
    /// Flags where the guide's fail, for all codes.
    pub fallback_cflags: Option<Vec<String>>,
    /// Codes of every instance.
    pub codes: Vec<CodeText>,
    /// Parameter sets.
    pub instances: Vec<InstanceText>,
}

/// Keys that a candidate may give for all of its instances, and an instance for itself.
#[derive(Debug, Default)]
pub struct InstanceDefaults {
    /// How often a key is made.
    pub key_per: Option<KeyPer>,
    /// Symbol.
    pub rejected_counter: Option<String>,
}

/// What the profile phase wraps.
#[derive(Debug, Default)]
pub struct WrapText {
    /// Named functions with their group.
    pub named: Vec<(&'static str, Located<String>)>,
    /// Functions with their prototype.
    pub functions: Vec<WrapFunctionText>,
    /// Table of prototypes.
    pub derive: Option<Located<String>>,
}

/// `[[candidate.wrap.function]]`.
#[derive(Debug)]
pub struct WrapFunctionText {
    /// Symbol.
    pub symbol: Option<Located<String>>,
    /// Group.
    pub group: Option<&'static str>,
    /// Reported name.
    pub name: Option<String>,
    /// C prototype.
    pub prototype: Option<Located<String>>,
    /// C expression.
    pub in_bits: Option<Located<String>>,
    /// C expression.
    pub out_bits: Option<Located<String>>,
}

/// `[[candidate.kat_issue]]`.
#[derive(Debug)]
pub struct KatIssueText {
    /// Label.
    pub instance: Option<Located<String>>,
    /// Result that is allowed.
    pub result: Option<KatResult>,
    /// Why.
    pub reason: Option<String>,
}

/// `[[candidate.instance]]`.
#[derive(Debug)]
pub struct InstanceText {
    /// The header.
    pub span: Range<usize>,
    /// Label.
    pub label: Option<Located<String>>,
    /// Bits.
    pub security_bits: Option<u32>,
    /// Keys shared with the candidate.
    pub own: InstanceDefaults,
    /// Ranges.
    pub unauthenticated: Vec<(u64, u64)>,
    /// Macros beside those of its codes.
    pub defines: Option<Texts>,
    /// Codes of this instance alone.
    pub codes: Vec<CodeText>,
}

/// `[[candidate.code]]`, `[[candidate.instance.code]]`.
#[derive(Debug)]
pub struct CodeText {
    /// The header.
    pub span: Range<usize>,
    /// Name.
    pub name: Option<Located<String>>,
    /// Patterns.
    pub sources: Option<Texts>,
    /// A built library instead.
    pub library: Option<Located<String>>,
    /// Folders.
    pub include: Option<Texts>,
    /// Macros.
    pub defines: Option<Texts>,
    /// Flags after the build's.
    pub extra_cflags: Vec<String>,
    /// Flags where the guide's fail.
    pub fallback_cflags: Option<Vec<String>>,
    /// Architectures.
    pub archs: Vec<Arch>,
    /// CPU features.
    pub requires: Vec<String>,
    /// Names of builds.
    pub builds: Option<Texts>,
}

/// `[plan.*]`: whatever it sets.
#[derive(Debug, Default)]
#[allow(missing_docs)] // the keys are explained in default.toml
pub struct PlanText {
    pub like: Option<Located<String>>,
    pub trials: Option<u32>,
    pub target_s: Option<f64>,
    pub min_total: Option<u64>,
    pub max_iterations: Option<u64>,
    pub budget_s: Option<f64>,
    pub repeats: Option<u32>,
    pub builds: Option<String>,
    pub inputs: Option<String>,
    pub iterations: Option<u64>,
    pub timeout_floor_s: Option<f64>,
    pub kat_timeout_s: Option<f64>,
    pub defer: Option<Texts>,
    pub keys: Option<u32>,
    pub keys_expensive: Option<u32>,
    pub keys_limit_s: Option<f64>,
    pub verdicts: Option<bool>,
    pub disturbed: DisturbedText,
}

/// `[plan.*.disturbed]`.
#[derive(Debug, Default)]
#[allow(missing_docs)] // the keys are explained in default.toml
pub struct DisturbedText {
    pub min_clock_ratio: Option<f64>,
    pub min_cpu_per_wall: Option<f64>,
    pub involuntary_switches_per_s: Option<f64>,
    pub steal_percent: Option<f64>,
}

/// `[study.message-size]`.
#[derive(Debug)]
#[allow(missing_docs)] // the keys are explained in default.toml
pub struct StudyText {
    pub instances: Option<Texts>,
    pub sizes: Option<Vec<u64>>,
    pub full_sizes: Option<Vec<u64>>,
    pub modes: Option<Vec<StudyMode>>,
    pub trials: Option<u32>,
    pub memory_guard: Option<u64>,
    pub chunk: Option<u64>,
}

/// Reads the whole file.
pub fn campaign(mut file: Section<'_>) -> CampaignText {
    let report = file.section("report", "[report]", "[report]");
    let systems = file.sections("system", "[[system]]", "[[system]]");
    let builds = file.named("build", "[build.reference]");
    let candidates = file.sections("candidate", "[[candidate]]", "[[candidate]]");
    let plans = file.named("plan", "[plan.guide]");
    let study = file.section("study", "[study]", "[study.message-size]");
    let text = CampaignText {
        report: report.map(self::report).unwrap_or_default(),
        systems: systems.into_iter().map(system).collect(),
        builds: named(builds, build),
        candidates: candidates.into_iter().map(candidate).collect(),
        plans: named(plans, plan),
        study: study.and_then(self::study),
    };
    file.finish();
    text
}

fn named<'t, T>(
    sections: Vec<(Located<String>, Section<'t>)>,
    read: fn(Section<'t>) -> T,
) -> Vec<(Located<String>, T)> {
    sections
        .into_iter()
        .map(|(name, section)| (name, read(section)))
        .collect()
}

/// The value without its place.
fn bare<T>(value: Option<Located<T>>) -> Option<T> {
    value.map(Located::into_inner)
}

fn report(mut s: Section<'_>) -> ReportText {
    let kinds = [ReportKind::Independent, ReportKind::SelfAssessment];
    let kind = s.choice("kind", &kinds.map(ReportKind::word));
    let text = ReportText {
        kind: kind.map(|index| kinds[index.into_inner()]),
        title: bare(s.text("title", r#"title = "Signature candidates""#)),
        reference: s.text(
            "reference",
            r#"reference = "dilithium/dilithium2/clean/reference""#,
        ),
    };
    s.finish();
    text
}

const ARCHS: [Arch; 2] = [Arch::X86_64, Arch::Aarch64];

fn system(mut s: Section<'_>) -> SystemText {
    let id = s.required_text("id", r#"id = "x86_1""#);
    title(&mut s, "system", id.as_ref());
    if !s.has("arch") {
        s.missing("arch", r#"arch = "x86_64""#);
    }
    let text = SystemText {
        span: s.span.clone(),
        id,
        arch: s
            .choice("arch", &ARCHS.map(Arch::word))
            .map(|index| ARCHS[index.into_inner()]),
        cpu_model: s.required_text("cpu_model", r#"cpu_model = "i7-12700""#),
        cc: s.text("cc", r#"cc = "gcc""#),
        runner: s.list(
            "runner",
            r#"runner = ["qemu-aarch64-static", "-cpu", "neoverse-n1"]"#,
        ),
        description: bare(s.text("description", r#"description = "one core, turbo off""#)),
    };
    s.finish();
    text
}

/// Names a table by its id from here on: [[system]] `x86_1`.
fn title(s: &mut Section<'_>, what: &str, id: Option<&Located<String>>) {
    if let Some(id) = id {
        s.title = format!("{what} `{}`", id.get_ref());
    }
}

fn build(mut s: Section<'_>) -> BuildText {
    const CFLAGS: &str =
        r#"cflags = "-std=c99 -O2", or cflags.x86_64 = "..." and cflags.aarch64 = "...""#;
    if !s.has("cflags") {
        s.missing("cflags", CFLAGS);
    }
    let text = BuildText {
        cflags: by_arch(&mut s, "cflags", CFLAGS, flags_value),
        requires: by_arch(
            &mut s,
            "requires",
            r#"requires.x86_64 = ["avx2"]"#,
            features_value,
        ),
    };
    s.finish();
    text
}

/// How a value is read: section, key, value, example.
type Read<'t, T> = fn(&Section<'t>, &str, &'t Located<DeValue<'t>>, &str) -> Option<T>;

/// A value, or a table of values by architecture.
fn by_arch<'t, T>(
    s: &mut Section<'t>,
    key: &'static str,
    example: &str,
    read: Read<'t, T>,
) -> Option<ByArch<T>> {
    let value = s.raw(key)?;
    let DeValue::Table(_) = value.get_ref() else {
        return read(s, key, value, example).map(ByArch::All);
    };
    let mut table = s.section(key, &format!("`{key}` of {}", s.title), example)?;
    let mut each = BTreeMap::new();
    for arch in ARCHS {
        if let Some(value) = table.raw(arch.word()) {
            each.extend(read(&table, arch.word(), value, example).map(|flags| (arch, flags)));
        }
    }
    table.finish();
    Some(ByArch::Each(each))
}

/// Flags: one text that is split at blanks, or a list that is not.
fn flags_value<'t>(
    s: &Section<'t>,
    key: &str,
    value: &'t Located<DeValue<'t>>,
    example: &str,
) -> Option<Vec<String>> {
    match value.get_ref() {
        DeValue::String(text) => {
            let words = words::split_flags(text);
            if words.is_none() {
                s.report(
                    value.span(),
                    format!("`{key}` has a quote without its partner"),
                    example,
                );
            }
            words
        }
        _ => {
            let list = s.texts(key, value, example)?;
            Some(plain(&list))
        }
    }
}

/// The texts without their places.
pub fn plain(list: &Texts) -> Vec<String> {
    list.get_ref()
        .iter()
        .map(|item| item.get_ref().clone())
        .collect()
}

/// CPU features: a list of names as /proc/cpuinfo has them.
fn features_value<'t>(
    s: &Section<'t>,
    key: &str,
    value: &'t Located<DeValue<'t>>,
    example: &str,
) -> Option<Vec<String>> {
    let list = s.texts(key, value, example)?;
    for item in list.get_ref() {
        if !words::is_feature(item.get_ref()) {
            s.report(
                item.span(),
                format!(
                    "`{}` is no CPU feature: /proc/cpuinfo has them in lower case",
                    item.get_ref()
                ),
                example,
            );
        }
    }
    Some(plain(&list))
}

fn flags(s: &mut Section<'_>, key: &'static str) -> Option<Vec<String>> {
    let value = s.raw(key)?;
    let example = format!(r#"{key} = "-O2 -mpopcnt", or a list of single flags"#);
    flags_value(s, key, value, &example)
}

fn candidate(mut s: Section<'_>) -> CandidateText {
    let id = s.required_text("id", r#"id = "sign-09""#);
    title(&mut s, "candidate", id.as_ref());
    let (kat_flow, kat_manifest) = kat(&mut s);
    let wrap = s.section(
        "wrap",
        "`wrap`",
        r#"wrap = { hash = ["pseudoXOF"], drng = ["get_random_number"] }"#,
    );
    let issues = s.sections(
        "kat_issue",
        "[[candidate.kat_issue]]",
        "[[candidate.kat_issue]]",
    );
    let codes = s.sections("code", "[[candidate.code]]", "[[candidate.code]]");
    let instances = s.sections(
        "instance",
        "[[candidate.instance]]",
        "[[candidate.instance]]",
    );
    if !s.has("instance") {
        s.missing("instance", "[[candidate.instance]] with a label");
    }
    let text = CandidateText {
        span: s.span.clone(),
        id,
        name: bare(s.required_text("name", r#"name = "DOVE""#)),
        category: bare(s.text("category", r#"category = "public-key algorithm""#)),
        function: bare(s.text("function", r#"function = "digital signature""#)),
        origin: origin(&mut s),
        specification: bare(s.text("specification", r#"specification = "DOVE, NGCC Round 1""#)),
        links: links(&mut s),
        source_crates: s.text(
            "source_crates",
            r#"source_crates = "drivers/dilithium/sources/Cargo.toml""#,
        ),
        kat_flow,
        kat_manifest,
        wrap: wrap.map(self::wrap).unwrap_or_default(),
        kat_issues: issues.into_iter().map(kat_issue).collect(),
        defaults: instance_defaults(&mut s),
        fallback_cflags: flags(&mut s, "fallback_cflags"),
        codes: codes.into_iter().map(code).collect(),
        instances: instances.into_iter().map(instance).collect(),
    };
    s.finish();
    text
}

fn origin(s: &mut Section<'_>) -> Option<Origin> {
    if !s.has("origin") {
        s.missing(
            "origin",
            r#"origin = "submission" (the submitters' own source), "upstream" (a maintained library) or "independent" (our own implementation)"#,
        );
    }
    let origins = [Origin::Submission, Origin::Upstream, Origin::Independent];
    s.choice("origin", &["submission", "upstream", "independent"])
        .map(|index| origins[index.into_inner()])
}

fn kat(s: &mut Section<'_>) -> (Option<KatFlow>, Option<Located<String>>) {
    const EXAMPLE: &str = r#"kat = { flow = "iccs", manifest = "performance/kat/sign-09.sha256" }"#;
    if !s.has("kat") {
        s.missing("kat", EXAMPLE);
    }
    let Some(mut kat) = s.section("kat", &format!("`kat` of {}", s.title), EXAMPLE) else {
        return (None, None);
    };
    if !kat.has("flow") {
        kat.missing("flow", EXAMPLE);
    }
    let flow = kat
        .choice("flow", &["iccs", "nist"])
        .map(|index| [KatFlow::Iccs, KatFlow::Nist][index.into_inner()]);
    let manifest = kat.required_text("manifest", EXAMPLE);
    kat.finish();
    (flow, manifest)
}

fn links(s: &mut Section<'_>) -> BTreeMap<String, String> {
    const EXAMPLE: &str = r#"links = { submission = "https://www.niccs.org.cn/" }"#;
    let Some(mut table) = s.section("links", "`links`", EXAMPLE) else {
        return BTreeMap::new();
    };
    let mut links = BTreeMap::new();
    for (name, value) in table.entries() {
        match value.get_ref() {
            DeValue::String(address)
                if address.starts_with("https://") || address.starts_with("http://") =>
            {
                links.insert(name.into_inner(), address.clone().into_owned());
            }
            _ => table.report(
                value.span(),
                format!("the link `{}` is no web address", name.get_ref()),
                EXAMPLE,
            ),
        }
    }
    links
}

const GROUPS: [&str; 3] = ["hash", "drng", "other"];

fn wrap(mut s: Section<'_>) -> WrapText {
    let mut text = WrapText::default();
    for group in GROUPS {
        let names = s.list(group, &format!(r#"{group} = ["pseudoXOF"]"#));
        for name in names.into_iter().flat_map(Located::into_inner) {
            text.named.push((group, name));
        }
    }
    let functions = s.sections("function", "`wrap.function`", "[[candidate.wrap.function]]");
    text.functions = functions.into_iter().map(wrap_function).collect();
    text.derive = s.text("derive", r#"derive = "drivers/dilithium/wrappable.toml""#);
    if let (Some(derive), false) = (
        &text.derive,
        text.named.is_empty() && text.functions.is_empty(),
    ) {
        s.report(
            derive.span(),
            "`wrap` has both `derive` and functions of its own",
            "either `derive`, or any of `hash`, `drng`, `other`, `function`",
        );
    }
    s.finish();
    text
}

fn wrap_function(mut s: Section<'_>) -> WrapFunctionText {
    let symbol = s.required_text("symbol", r#"symbol = "lattice_hash""#);
    if !s.has("group") {
        s.missing("group", r#"group = "hash""#);
    }
    let text = WrapFunctionText {
        symbol,
        group: s.choice("group", &GROUPS).map(|index| GROUPS[index.into_inner()]),
        name: bare(s.text("name", r#"name = "lattice_hash""#)),
        prototype: s.required_text(
            "prototype",
            r#"prototype = "int lattice_hash(unsigned char *out, const unsigned char *in, size_t n)""#,
        ),
        in_bits: s.required_text("in_bits", r#"in_bits = "8ULL * n""#),
        out_bits: s.required_text("out_bits", r#"out_bits = "256""#),
    };
    s.finish();
    text
}

fn kat_issue(mut s: Section<'_>) -> KatIssueText {
    use KatResult::*;
    // PASS needs no excuse, and a library that cannot be loaded or crashes cannot be timed.
    let allowed = [Mismatch, Nokat, Partial, Cryptofail];
    if !s.has("result") {
        s.missing("result", r#"result = "NOKAT""#);
    }
    let text = KatIssueText {
        instance: s.required_text("instance", r#"instance = "some_label""#),
        result: s
            .choice("result", &allowed.map(KatResult::word))
            .map(|index| allowed[index.into_inner()]),
        reason: bare(s.required_text(
            "reason",
            r#"reason = "the submission has no vectors for this parameter set""#,
        )),
    };
    s.finish();
    text
}

fn instance_defaults(s: &mut Section<'_>) -> InstanceDefaults {
    const COUNTER: &str = r#"rejected_counter = "dove_rejected_draws""#;
    let key_per = s
        .choice("key_per", &["trial", "run"])
        .map(|index| [KeyPer::Trial, KeyPer::Run][index.into_inner()]);
    let counter = s.text("rejected_counter", COUNTER).filter(|counter| {
        let good = words::is_c_name(counter.get_ref());
        if !good {
            s.report(
                counter.span(),
                "`rejected_counter` is no name of C",
                COUNTER,
            );
        }
        good
    });
    InstanceDefaults {
        key_per,
        rejected_counter: bare(counter),
    }
}

fn instance(mut s: Section<'_>) -> InstanceText {
    let label = s.required_text("label", r#"label = "dove_classic_128""#);
    title(&mut s, "instance", label.as_ref());
    let codes = s.sections(
        "code",
        "[[candidate.instance.code]]",
        "[[candidate.instance.code]]",
    );
    let text = InstanceText {
        span: s.span.clone(),
        label,
        security_bits: bare(s.integer("security_bits", 1..=4096, "security_bits = 128"))
            .map(|bits| bits as u32), // at most 4096
        own: instance_defaults(&mut s),
        unauthenticated: unauthenticated(&mut s),
        defines: s.list("defines", r#"defines = ["LEVEL=128"]"#),
        codes: codes.into_iter().map(code).collect(),
    };
    s.finish();
    text
}

/// One range as text, or a list of them.
fn unauthenticated(s: &mut Section<'_>) -> Vec<(u64, u64)> {
    const KEY: &str = "unauthenticated_signature_bytes";
    const EXAMPLE: &str = r#"unauthenticated_signature_bytes = "112.." (byte 112 to the end), or ["3..7", "112.."] (bytes 3 to 6, and those)"#;
    let Some(value) = s.raw(KEY) else {
        return Vec::new();
    };
    let texts = match value.get_ref() {
        DeValue::String(text) => vec![at(value, text.clone().into_owned())],
        _ => bare(s.texts(KEY, value, EXAMPLE)).unwrap_or_default(),
    };
    let mut ranges = Vec::new();
    for text in texts {
        match words::byte_range(text.get_ref()) {
            Some(range) => ranges.push(range),
            None => s.report(
                text.span(),
                format!("`{}` is no range of bytes", text.get_ref()),
                EXAMPLE,
            ),
        }
    }
    ranges
}

fn code(mut s: Section<'_>) -> CodeText {
    let name = s.required_text("name", r#"name = "ref""#);
    title(&mut s, "code", name.as_ref());
    if s.has("sources") == s.has("library") {
        s.report(
            s.span.clone(),
            format!("{} needs either `sources` or `library`", s.title),
            r#"sources = ["src/*.c"], or library = "lib/libx.so""#,
        );
    }
    let requires = s.raw("requires");
    let text = CodeText {
        span: s.span.clone(),
        sources: s
            .has("sources")
            .then(|| s.required_list("sources", r#"sources = ["src/*.c"]"#))
            .flatten(),
        library: s.text("library", r#"library = "lib/libx.so""#),
        include: s.list("include", r#"include = ["src"]"#),
        defines: s.list("defines", r#"defines = ["LEVEL=128"]"#),
        extra_cflags: flags(&mut s, "extra_cflags").unwrap_or_default(),
        fallback_cflags: flags(&mut s, "fallback_cflags"),
        archs: archs(&mut s),
        requires: requires
            .and_then(|value| features_value(&s, "requires", value, r#"requires = ["sha3"]"#))
            .unwrap_or_default(),
        builds: s.required_list("builds", r#"builds = ["reference"]"#),
        name,
    };
    s.finish();
    text
}

fn archs(s: &mut Section<'_>) -> Vec<Arch> {
    let list = bare(s.list("archs", r#"archs = ["x86_64"]"#)).unwrap_or_default();
    let mut archs = Vec::new();
    for item in list {
        let word = item.get_ref().as_str();
        match ARCHS.iter().find(|arch| arch.word() == word) {
            Some(arch) => archs.push(*arch),
            None => s.mistakes().add(
                item.span(),
                format!("`{word}` is no architecture that is known"),
                Some(one_of(ARCHS.map(Arch::word))),
                did_you_mean(word, ARCHS.map(Arch::word)),
            ),
        }
    }
    archs
}

/// Limits of a count: enough for any campaign, small enough that no product overflows.
const COUNT_MAX: u64 = 1_000_000_000;
/// Limit of a time: 116 days.
const SECONDS_MAX: f64 = 1e7;

fn plan(mut s: Section<'_>) -> PlanText {
    let count = |s: &mut Section<'_>, key, low, high: u64, example| {
        bare(s.integer(key, low..=high, example)).map(|number| number as u32) // at most 10^5
    };
    let seconds =
        |s: &mut Section<'_>, key, example| bare(s.number(key, (false, 0.0, SECONDS_MAX), example));
    let word = |s: &mut Section<'_>, key, words: [&str; 2]| {
        s.choice(key, &words)
            .map(|index| words[index.into_inner()].to_owned())
    };
    let text = PlanText {
        like: s.text("like", r#"like = "guide""#),
        trials: count(&mut s, "trials", 1, 10_000, "trials = 15"),
        target_s: seconds(&mut s, "target_s", "target_s = 0.35"),
        min_total: bare(s.integer("min_total", 1..=COUNT_MAX, "min_total = 100")),
        max_iterations: bare(s.integer("max_iterations", 1..=COUNT_MAX, "max_iterations = 20000")),
        budget_s: seconds(&mut s, "budget_s", "budget_s = 900"),
        repeats: count(&mut s, "repeats", 0, 100, "repeats = 2"),
        builds: word(&mut s, "builds", ["first", "all"]),
        inputs: word(&mut s, "inputs", ["fresh", "fixed"]),
        iterations: bare(s.integer("iterations", 1..=COUNT_MAX, "iterations = 10")),
        timeout_floor_s: seconds(&mut s, "timeout_floor_s", "timeout_floor_s = 300"),
        kat_timeout_s: seconds(&mut s, "kat_timeout_s", "kat_timeout_s = 1800"),
        defer: s.list("defer", r#"defer = ["_512/"]"#),
        keys: count(&mut s, "keys", 1, 10_000, "keys = 20"),
        keys_expensive: count(&mut s, "keys_expensive", 1, 10_000, "keys_expensive = 3"),
        keys_limit_s: seconds(&mut s, "keys_limit_s", "keys_limit_s = 10"),
        verdicts: bare(s.boolean("verdicts", "verdicts = true")),
        disturbed: disturbed(&mut s),
    };
    s.finish();
    text
}

fn disturbed(plan: &mut Section<'_>) -> DisturbedText {
    let title = format!("`disturbed` of {}", plan.title);
    let Some(mut s) = plan.section("disturbed", &title, "[plan.guide.disturbed]") else {
        return DisturbedText::default();
    };
    let text = DisturbedText {
        min_clock_ratio: bare(s.number(
            "min_clock_ratio",
            (true, 0.0, 1.0),
            "min_clock_ratio = 0.95",
        )),
        min_cpu_per_wall: bare(s.number(
            "min_cpu_per_wall",
            (true, 0.0, 1.0),
            "min_cpu_per_wall = 0.98",
        )),
        involuntary_switches_per_s: bare(s.number(
            "involuntary_switches_per_s",
            (true, 0.0, 1e6),
            "involuntary_switches_per_s = 60",
        )),
        steal_percent: bare(s.number("steal_percent", (true, 0.0, 100.0), "steal_percent = 0.5")),
    };
    s.finish();
    text
}

fn study(mut studies: Section<'_>) -> Option<StudyText> {
    let s = studies.section(
        "message-size",
        "[study.message-size]",
        "[study.message-size]",
    );
    studies.finish();
    s.map(message_size)
}

/// Largest message of a study: 1 TB.
const SIZE_MAX: u64 = 1_000_000_000_000;

fn message_size(mut s: Section<'_>) -> StudyText {
    let text = StudyText {
        instances: s.list("instances", r#"instances = ["^dilithium/"]"#),
        sizes: sizes(&mut s, "sizes"),
        full_sizes: sizes(&mut s, "full_sizes"),
        modes: modes(&mut s),
        trials: bare(s.integer("trials", 1..=10_000, "trials = 5")).map(|n| n as u32), // at most 10^4
        memory_guard: size(&mut s, "memory_guard", SIZE_MAX),
        chunk: size(&mut s, "chunk", 1 << 20), // CAMPAIGN_STREAM_CHUNK_MAX of drivers/abi/campaign_abi.h
    };
    s.finish();
    text
}

fn size(s: &mut Section<'_>, key: &'static str, high: u64) -> Option<u64> {
    let value = s.raw(key)?;
    size_value(s, &format!("`{key}`"), value, high)
}

/// Bytes as a number, or as a text with a unit.
fn size_value(s: &Section<'_>, name: &str, value: &Located<DeValue<'_>>, high: u64) -> Option<u64> {
    let bytes = match value.get_ref() {
        DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
        DeValue::String(text) => text.parse::<Size>().ok().map(|size| size.0),
        _ => None,
    };
    let good = bytes.filter(|bytes| (1..=high).contains(bytes));
    if good.is_none() {
        s.report(
            value.span(),
            format!("{name} is no size from 1 B to {}", Size(high)),
            r#"65536, "64 KiB" or "1 MB""#,
        );
    }
    good
}

fn sizes(s: &mut Section<'_>, key: &'static str) -> Option<Vec<u64>> {
    let value = s.raw(key)?;
    let DeValue::Array(items) = value.get_ref() else {
        s.report(
            value.span(),
            format!("`{key}` must be a list of sizes"),
            r#"sizes = ["1 kB", "1 MB", 65536]"#,
        );
        return None;
    };
    Some(
        items
            .iter()
            .filter_map(|item| size_value(s, &format!("an item of `{key}`"), item, SIZE_MAX))
            .collect(),
    )
}

fn modes(s: &mut Section<'_>) -> Option<Vec<StudyMode>> {
    use StudyMode::*;
    const MODES: [StudyMode; 5] = [Buffer, Mmap, Stream, PrehashSha256, PrehashSha3];
    let list = s.list("modes", r#"modes = ["buffer", "stream"]"#)?;
    let mut modes = Vec::new();
    for item in list.get_ref() {
        let word = item.get_ref().as_str();
        match MODES.iter().find(|mode| mode.name() == word) {
            Some(mode) => modes.push(*mode),
            None => s.mistakes().add(
                item.span(),
                format!("`{word}` is no mode of the study"),
                Some(one_of(MODES.map(StudyMode::name))),
                did_you_mean(word, MODES.map(StudyMode::name)),
            ),
        }
    }
    Some(modes)
}
