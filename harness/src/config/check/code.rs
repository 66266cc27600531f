//! Checks of instances and of their codes: labels, paths, macros, builds.

use super::{is_good_name, is_new, Context, STEM_MAX};
use crate::config::model::*;
use crate::config::paths;
use crate::config::reader::{did_you_mean, one_of, Located};
use crate::config::text::*;
use crate::config::words;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The instances of a candidate, with the codes of the candidate and their own. A code is checked even
/// where no instance with a label is there to have it.
pub(super) fn instances(
    text: &CandidateText,
    crates: Option<&[String]>,
    builds: &BTreeMap<String, Build>,
    archs: &BTreeSet<Arch>,
    c: &Context<'_>,
) -> Vec<Instance> {
    let mut labels = BTreeMap::new();
    let mut stems = BTreeMap::new();
    let mut all = Vec::new();
    let context = |label| CodeContext {
        label,
        candidate: text,
        crates,
        builds,
        archs,
    };
    if text.instances.is_empty() {
        codes(&text.codes, &[], None, &context(None), c);
    }
    for instance in &text.instances {
        let label = instance.label.as_ref();
        let x = context(label.map(|label| label.get_ref().as_str()));
        let codes = codes(
            &text.codes,
            &instance.codes,
            instance.defines.as_ref(),
            &x,
            c,
        );
        let Some(label) = label else { continue };
        let good = is_good_name(label, "label", c);
        if good && is_new(label, &mut labels, "instances", c) {
            check_stems(label, &codes, &mut stems, c);
        }
        if text.codes.is_empty() && instance.codes.is_empty() {
            let what = format!("instance `{}` has no code", label.get_ref());
            c.wrong(label, what, NO_CODE);
        }
        all.push(self::instance(
            label.get_ref(),
            instance,
            &text.defaults,
            codes,
        ));
    }
    all
}

const NO_CODE: &str =
    "[[candidate.code]] for all instances, or [[candidate.instance.code]] for this one";

/// Codes that every instance has, and those of one instance.
fn codes(
    shared: &[CodeText],
    own: &[CodeText],
    defines: Option<&Texts>,
    x: &CodeContext<'_>,
    c: &Context<'_>,
) -> Vec<Code> {
    let mut names = BTreeMap::new();
    let mut codes = Vec::new();
    for text in shared.iter().chain(own) {
        let named = text.name.as_ref().is_none_or(|name| {
            is_good_name(name, "code", c) && is_new(name, &mut names, "codes of one instance", c)
        });
        let code = code(text, defines, x, c);
        codes.extend(code.filter(|_| named));
    }
    codes
}

fn instance(
    label: &str,
    text: &InstanceText,
    defaults: &InstanceDefaults,
    codes: Vec<Code>,
) -> Instance {
    let counter = |keys: &InstanceDefaults| keys.rejected_counter.clone();
    Instance {
        label: label.to_owned(),
        security_bits: text.security_bits,
        key_per: text
            .own
            .key_per
            .or(defaults.key_per)
            .unwrap_or(KeyPer::Trial),
        unauthenticated_signature_bytes: text.unauthenticated.clone(),
        rejected_counter: counter(&text.own).or_else(|| counter(defaults)),
        codes,
    }
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
    /// Label of the instance, if it has one.
    label: Option<&'c str>,
    candidate: &'c CandidateText,
    crates: Option<&'c [String]>,
    builds: &'c BTreeMap<String, Build>,
    archs: &'c BTreeSet<Arch>,
}

impl CodeContext<'_> {
    /// Fills in the label; `None` if the text needs it and it is not known.
    fn fill(&self, text: &str) -> Option<String> {
        self.fill_with(text, self.label)
    }

    /// The same for a pattern, in which `*`, `?` and `[` of the label itself are made harmless.
    fn fill_pattern(&self, text: &str) -> Option<String> {
        let escaped = self.label.map(glob::Pattern::escape);
        self.fill_with(text, escaped.as_deref())
    }

    fn fill_with(&self, text: &str, label: Option<&str>) -> Option<String> {
        let needed = text.contains("{label}") || text.contains("{LABEL}");
        match label {
            Some(label) => Some(words::fill_label(text, label)),
            None => (!needed).then(|| text.to_owned()),
        }
    }

    fn fill_all(&self, texts: Option<&Texts>) -> Vec<String> {
        let texts = texts.iter().flat_map(|list| list.get_ref());
        texts.filter_map(|text| self.fill(text.get_ref())).collect()
    }
}

fn code(
    text: &CodeText,
    defines: Option<&Texts>,
    x: &CodeContext<'_>,
    c: &Context<'_>,
) -> Option<Code> {
    for source in text.sources.iter().flat_map(|list| list.get_ref()) {
        check_source(source, x, c);
    }
    for folder in text.include.iter().flat_map(|list| list.get_ref()) {
        check_include(folder, x, c);
    }
    for define in [text.defines.as_ref(), defines].into_iter().flatten() {
        check_defines(define, x, c);
    }
    let library = text
        .library
        .as_ref()
        .and_then(|path| check_library(path, x, c));
    let builds = check_builds(text, x, c);
    let sources = text.sources.iter().flat_map(|list| list.get_ref());
    let own_fallback = text.fallback_cflags.clone();
    Some(Code {
        name: text.name.as_ref()?.get_ref().clone(),
        sources: sources
            .filter_map(|source| x.fill_pattern(source.get_ref()))
            .collect(),
        include: x.fill_all(text.include.as_ref()),
        defines: [x.fill_all(text.defines.as_ref()), x.fill_all(defines)].concat(),
        extra_cflags: text
            .extra_cflags
            .iter()
            .filter_map(|flag| x.fill(flag))
            .collect(),
        fallback_cflags: own_fallback.or_else(|| x.candidate.fallback_cflags.clone()),
        archs: text.archs.clone(),
        requires: text.requires.clone(),
        builds,
        library,
    })
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
    let Some(filled) = x.fill_pattern(source.get_ref()) else {
        return;
    };
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
    let Some(filled) = x.fill(folder.get_ref()) else {
        return;
    };
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

fn check_defines(list: &Texts, x: &CodeContext<'_>, c: &Context<'_>) {
    for define in list.get_ref() {
        let filled = x
            .fill(define.get_ref())
            .unwrap_or_else(|| "FILLED".to_owned());
        let name = filled.split(['=', '(']).next().unwrap_or_default();
        if !words::is_c_name(name) {
            let what = format!("`{}` is no macro of C", define.get_ref());
            c.wrong(define, what, r#""NAME" or "NAME=VALUE", without -D"#);
        }
    }
}

fn check_library(
    library: &Located<String>,
    x: &CodeContext<'_>,
    c: &Context<'_>,
) -> Option<PathBuf> {
    let filled = PathBuf::from(x.fill(library.get_ref())?);
    if filled.is_absolute() || c.sources && !c.root.join(&filled).is_file() {
        c.wrong_hint(
            library,
            format!("`{}` is no file relative to this file", filled.display()),
            Some(r#"library = "lib/libx.so""#.to_owned()),
            paths::explain(c.root, &filled.to_string_lossy()),
        );
    }
    Some(filled)
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
