//! `[plan.*]` and `[study.*]`.

use super::{bare, Texts};
use crate::config::reader::{did_you_mean, one_of, Located, Section};
use crate::values::Size;
use protocol::StudyMode;
use toml::de::DeValue;

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
    pub cost_s: Option<f64>,
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
    pub sibling_busy_percent: Option<f64>,
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

/// Limits of a count: enough for any campaign, small enough that no product overflows.
const COUNT_MAX: u64 = 1_000_000_000;
/// Limit of a time: 116 days.
const SECONDS_MAX: f64 = 1e7;

pub(super) fn plan(mut s: Section<'_>) -> PlanText {
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
        cost_s: seconds(&mut s, "cost_s", "cost_s = 1e-9"),
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
        sibling_busy_percent: bare(s.number(
            "sibling_busy_percent",
            (true, 0.0, 100.0),
            "sibling_busy_percent = 10",
        )),
    };
    s.finish();
    text
}

pub(super) fn study(mut studies: Section<'_>) -> Option<StudyText> {
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
