//! Defaults of the configuration, from `default.toml`, which is compiled in and read by the same
//! reader as a user's file.

use super::mistake::Collector;
use super::model::{MessageSizeStudy, ReportKind};
use super::reader::Section;
use super::text::{self, plain, PlanText, ReportText, StudyText};
use crate::evidence::{Disturbed, PlanSettings};
use crate::identity::Identity;
use std::collections::BTreeMap;
use std::path::Path;
use toml::de::DeTable;

/// The file itself: the manual of its keys.
pub const TEXT: &str = include_str!("default.toml");

/// What `default.toml` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Defaults {
    /// `[report]`.
    pub report: ReportDefaults,
    /// `quick`, `guide`, `public`.
    pub plans: BTreeMap<String, PlanSettings>,
    /// `[study.message-size]`.
    pub study: MessageSizeStudy,
}

/// `[report]`.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportDefaults {
    /// Who speaks.
    pub kind: ReportKind,
    /// Title of the pages.
    pub title: String,
    /// Reference of ratios, where the campaign has it.
    pub reference: Option<Identity>,
}

/// The defaults. That the compiled-in file is complete and without mistakes is tested below.
pub fn defaults() -> Defaults {
    read(TEXT).expect("default.toml is complete")
}

fn read(text: &str) -> Option<Defaults> {
    let table = DeTable::parse(text).ok()?;
    let mistakes = Collector::new(Path::new("default.toml"), text);
    let text = text::campaign(Section::root(table.get_ref(), &mistakes));
    let mut plans = BTreeMap::new();
    for (name, plan) in &text.plans {
        plans.insert(name.get_ref().clone(), complete(name.get_ref(), plan)?);
    }
    let defaults = Defaults {
        report: report(text.report)?,
        plans,
        study: study(text.study?)?,
    };
    mistakes.is_empty().then_some(defaults)
}

fn report(text: ReportText) -> Option<ReportDefaults> {
    Some(ReportDefaults {
        kind: text.kind?,
        title: text.title?,
        reference: text.reference?.get_ref().parse().ok(),
    })
}

/// A plan that sets everything itself.
fn complete(name: &str, text: &PlanText) -> Option<PlanSettings> {
    let d = &text.disturbed;
    Some(PlanSettings {
        name: name.to_owned(),
        trials: text.trials?,
        target_s: text.target_s?,
        min_total: text.min_total?,
        max_iterations: text.max_iterations?,
        budget_s: text.budget_s?,
        repeats: text.repeats?,
        builds: text.builds.clone()?,
        inputs: text.inputs.clone()?,
        iterations: text.iterations,
        cost_s: text.cost_s,
        timeout_floor_s: text.timeout_floor_s?,
        kat_timeout_s: text.kat_timeout_s?,
        defer: plain(text.defer.as_ref()?),
        disturbed: Disturbed {
            min_clock_ratio: d.min_clock_ratio?,
            min_cpu_per_wall: d.min_cpu_per_wall?,
            involuntary_switches_per_s: d.involuntary_switches_per_s?,
            steal_percent: d.steal_percent?,
            sibling_busy_percent: d.sibling_busy_percent?,
        },
        keys: text.keys?,
        keys_expensive: text.keys_expensive?,
        keys_limit_s: text.keys_limit_s?,
        verdicts: text.verdicts?,
    })
}

/// `base` with everything that `text` sets, under another name.
pub fn overlay(name: &str, base: &PlanSettings, text: &PlanText) -> PlanSettings {
    let (d, b) = (&text.disturbed, &base.disturbed);
    PlanSettings {
        name: name.to_owned(),
        trials: text.trials.unwrap_or(base.trials),
        target_s: text.target_s.unwrap_or(base.target_s),
        min_total: text.min_total.unwrap_or(base.min_total),
        max_iterations: text.max_iterations.unwrap_or(base.max_iterations),
        budget_s: text.budget_s.unwrap_or(base.budget_s),
        repeats: text.repeats.unwrap_or(base.repeats),
        builds: text.builds.clone().unwrap_or(base.builds.clone()),
        inputs: text.inputs.clone().unwrap_or(base.inputs.clone()),
        iterations: text.iterations.or(base.iterations),
        cost_s: text.cost_s.or(base.cost_s),
        timeout_floor_s: text.timeout_floor_s.unwrap_or(base.timeout_floor_s),
        kat_timeout_s: text.kat_timeout_s.unwrap_or(base.kat_timeout_s),
        defer: text.defer.as_ref().map_or(base.defer.clone(), plain),
        disturbed: Disturbed {
            min_clock_ratio: d.min_clock_ratio.unwrap_or(b.min_clock_ratio),
            min_cpu_per_wall: d.min_cpu_per_wall.unwrap_or(b.min_cpu_per_wall),
            involuntary_switches_per_s: d
                .involuntary_switches_per_s
                .unwrap_or(b.involuntary_switches_per_s),
            steal_percent: d.steal_percent.unwrap_or(b.steal_percent),
            sibling_busy_percent: d.sibling_busy_percent.unwrap_or(b.sibling_busy_percent),
        },
        keys: text.keys.unwrap_or(base.keys),
        keys_expensive: text.keys_expensive.unwrap_or(base.keys_expensive),
        keys_limit_s: text.keys_limit_s.unwrap_or(base.keys_limit_s),
        verdicts: text.verdicts.unwrap_or(base.verdicts),
    }
}

fn study(text: StudyText) -> Option<MessageSizeStudy> {
    Some(MessageSizeStudy {
        instances: plain(&text.instances?),
        sizes: text.sizes?,
        full_sizes: text.full_sizes?,
        modes: text.modes?,
        trials: text.trials?,
        memory_guard_bytes: text.memory_guard?,
        chunk_bytes: text.chunk?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::StudyMode;

    /// The table of plans: trials, target, min_total, max_iterations, budget, repeats, builds, keys,
    /// keys where expensive, from how many seconds on, verdicts.
    #[test]
    fn the_plans_have_the_numbers_of_the_table_of_plans() {
        let plans = defaults().plans;
        let rows: Vec<_> = ["quick", "guide", "public"]
            .map(|name| {
                let p = &plans[name];
                (
                    p.name.as_str(),
                    (
                        p.trials,
                        p.target_s,
                        p.min_total,
                        p.max_iterations,
                        p.budget_s,
                    ),
                    (p.repeats, p.builds.as_str()),
                    (p.keys, p.keys_expensive, p.keys_limit_s),
                    p.verdicts,
                )
            })
            .to_vec();
        assert_eq!(
            rows,
            [
                (
                    "quick",
                    (5, 0.1, 5, 20000, 20.0),
                    (0, "first"),
                    (20, 3, 0.2),
                    false
                ),
                (
                    "guide",
                    (15, 0.35, 100, 20000, 900.0),
                    (2, "all"),
                    (20, 3, 10.0),
                    true
                ),
                (
                    "public",
                    (5, 1.0, 100, 20000, 900.0),
                    (2, "all"),
                    (20, 3, 10.0),
                    true
                ),
            ]
        );
        assert_eq!(plans.len(), 3);
    }

    #[test]
    fn all_plans_share_limits_inputs_and_thresholds() {
        for plan in defaults().plans.values() {
            assert_eq!((plan.timeout_floor_s, plan.kat_timeout_s), (300.0, 1800.0));
            assert_eq!((plan.inputs.as_str(), plan.iterations), ("fresh", None));
            assert!(plan.defer.is_empty());
            let d = &plan.disturbed;
            assert_eq!((d.min_clock_ratio, d.min_cpu_per_wall), (0.95, 0.98));
            assert_eq!((d.involuntary_switches_per_s, d.steal_percent), (60.0, 0.5));
            assert_eq!(d.sibling_busy_percent, 10.0);
        }
    }

    #[test]
    fn the_study_has_the_sizes_of_the_issue() {
        let study = defaults().study;
        assert_eq!(
            study.sizes,
            [1_000, 64_000, 1_000_000, 10_000_000, 100_000_000]
        );
        assert_eq!(study.full_sizes, [500_000_000, 1_000_000_000]);
        assert_eq!(study.modes.len(), 5);
        assert_eq!(study.modes[0], StudyMode::Buffer);
        assert_eq!(study.chunk_bytes, 65536);
    }

    #[test]
    fn a_plan_that_lacks_a_key_is_not_complete() {
        let without = TEXT.replacen("trials = 5 ", "#", 1);
        assert_ne!(without, TEXT);
        assert_eq!(read(&without), None);
        assert_eq!(read(&TEXT.replacen("keys = 20", "kays = 20", 1)), None);
    }
}
