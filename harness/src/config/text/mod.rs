//! The first step: the file as typed text. Every value has its type and its place; what is not there
//! is `None`. Nothing is looked up, compared or filled in: that is [`super::check`]'s.
//!
//! Here are the file as a whole, report, systems and builds; `candidate.rs`, `code.rs` and `plan.rs` hold the
//! other tables.

mod candidate;
mod code;
mod plan;

pub use candidate::*;
pub use code::*;
pub use plan::*;

use super::model::{Arch, ReportKind};
use super::reader::{Located, Section};
use super::words;
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
        candidates: candidates.into_iter().map(candidate::candidate).collect(),
        plans: named(plans, plan::plan),
        study: study.and_then(plan::study),
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
