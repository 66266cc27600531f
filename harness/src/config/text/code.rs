//! `[[candidate.instance]]` and `[[candidate.code]]`.

use super::candidate::{instance_defaults, InstanceDefaults};
use super::{bare, features_value, flags, title, Texts, ARCHS};
use crate::config::model::Arch;
use crate::config::reader::{at, did_you_mean, one_of, Located, Section};
use crate::config::words;
use std::ops::Range;
use toml::de::DeValue;

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

pub(super) fn instance(mut s: Section<'_>) -> InstanceText {
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

pub(super) fn code(mut s: Section<'_>) -> CodeText {
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
