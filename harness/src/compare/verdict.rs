//! Verdicts: Welch's test on every row, Holm's correction over each family, and the noise floor.

use super::pair::{trial_means, Pair};
use super::{Metric, NoiseFloor, Row};
use crate::dataset::Dataset;
use crate::evidence::Class;
use crate::stats::{self, Welch, WelchError};
use serde::Serialize;

/// Level of significance after Holm's correction.
const LEVEL: f64 = 0.05;

/// What is said of B against A.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "word", content = "reason")]
pub enum Verdict {
    /// B takes less.
    Faster,
    /// B takes more.
    Slower,
    /// The trials show no difference above the noise.
    NoDetectableDifference,
    /// There is a ratio, and no test of it.
    NotTested(NotTested),
    /// There is no ratio.
    NotComparable(String),
}

/// Why a ratio is not tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotTested {
    /// Published cells have no trials.
    Aggregate,
    /// A plan without verdicts.
    Plan,
    /// Fewer than 5 trials on a side.
    TooFewTrials,
    /// No spread on either side.
    NoVariance,
    /// No operation was timed twice in one of the runs.
    NoNoiseFloor,
    /// A trial mean that is no positive number.
    NotPositive,
}

impl Verdict {
    /// In words.
    pub fn text(&self) -> String {
        match self {
            Verdict::Faster => "faster".to_owned(),
            Verdict::Slower => "slower".to_owned(),
            Verdict::NoDetectableDifference => "no detectable difference".to_owned(),
            Verdict::NotTested(why) => format!("not tested: {}", why.text()),
            Verdict::NotComparable(_) => "not comparable".to_owned(),
        }
    }

    /// In words, with the reason where there is one.
    pub fn with_reason(&self) -> String {
        match self {
            Verdict::NotComparable(why) => format!("not comparable: {why}"),
            verdict => verdict.text(),
        }
    }
}

impl NotTested {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            NotTested::Aggregate => "aggregate",
            NotTested::Plan => "the plan gives no verdicts",
            NotTested::TooFewTrials => "too few trials",
            NotTested::NoVariance => "no variance",
            NotTested::NoNoiseFloor => "no noise floor",
            NotTested::NotPositive => "a trial took no time",
        }
    }
}

/// Tests both families and settles the verdict of every row.
pub(super) fn decide(rows: &mut [Row], pair: &Pair, floors: &[NoiseFloor]) {
    for NoiseFloor { metric, a, b } in floors {
        let floor = a.zip(*b).map(|(a, b)| a.max(b));
        family(rows, pair, *metric, floor);
    }
    for row in rows {
        row.verdict = row.of(row.metric()).verdict.clone();
    }
}

/// The verdicts of one metric; `floor` is the higher one of both sides.
fn family(rows: &mut [Row], pair: &Pair, metric: Metric, floor: Option<f64>) {
    let tests: Vec<Option<Result<Welch, NotTested>>> = rows
        .iter()
        .map(|row| row.of(metric).ratio.map(|_| test(pair, row, metric)))
        .collect();
    let tested: Vec<f64> = tests
        .iter()
        .flatten()
        .flatten()
        .map(|welch| welch.p)
        .collect();
    let mut adjusted = stats::holm(&tested).into_iter();
    for (row, outcome) in rows.iter_mut().zip(tests) {
        let compared = row.of_mut(metric);
        match outcome {
            None => {}
            Some(Err(why)) => compared.verdict = Verdict::NotTested(why),
            Some(Ok(welch)) => {
                let p_holm = adjusted.next();
                compared.ratio = Some(welch.ratio);
                compared.interval = Some([welch.low, welch.high]);
                compared.p = Some(welch.p);
                compared.p_holm = p_holm;
                compared.verdict = verdict(pair, welch.ratio, p_holm, floor);
            }
        }
    }
}

/// The test of one row; a refusal says why.
fn test(pair: &Pair, row: &Row, metric: Metric) -> Result<Welch, NotTested> {
    let aggregate = |dataset: &Dataset| dataset.campaign.class == Class::Aggregate;
    if aggregate(pair.a) || aggregate(pair.b) {
        return Err(NotTested::Aggregate);
    }
    let key = (row.identity.clone(), row.operation);
    let a = trial_means(pair.a, &key, metric);
    let b = trial_means(pair.b, &key, metric);
    stats::welch(&a, &b).map_err(|error| match error {
        WelchError::TooFewTrials => NotTested::TooFewTrials,
        WelchError::NoVariance => NotTested::NoVariance,
        WelchError::NotPositive => NotTested::NotPositive,
    })
}

/// A difference counts where it is significant and above the noise of both runs.
fn verdict(pair: &Pair, ratio: f64, p_holm: Option<f64>, floor: Option<f64>) -> Verdict {
    let silent = |dataset: &Dataset| {
        let plan = dataset.campaign.plan.as_ref();
        plan.is_some_and(|plan| !plan.verdicts)
    };
    if silent(pair.a) || silent(pair.b) {
        return Verdict::NotTested(NotTested::Plan);
    }
    let Some(floor) = floor else {
        return Verdict::NotTested(NotTested::NoNoiseFloor);
    };
    let significant = p_holm.is_some_and(|p| p < LEVEL);
    if !significant || libm::log(ratio).abs() <= floor {
        Verdict::NoDetectableDifference
    } else if ratio < 1.0 {
        Verdict::Faster
    } else {
        Verdict::Slower
    }
}
