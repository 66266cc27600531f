//! Derived values of a timing record, from its counted attempts.

use super::describe::{mad, median, quantile, sorted, student_t_975, tukey};
use super::exact_sum;
use crate::evidence::{
    Attempt, DerivedTiming, Interval, LoopOverhead, Quantiles, Reason, ReasonCode, Stability,
    Trial, Verdict,
};
use std::collections::BTreeMap;

/// What a derivation needs beside the trials.
#[derive(Debug, Clone, Copy)]
pub struct TimingInput {
    /// Whether the plan gives stability verdicts.
    pub verdicts: bool,
    /// Core clock of the measured CPU, hertz, where it is known to be fixed: cycles per second are
    /// held against it.
    pub clock_hz: Option<f64>,
    /// Cost of the loop around an empty operation, seconds per call, where it was measured.
    pub empty_call_s: Option<f64>,
    /// Cost of a call that the batches were reckoned with, seconds, where the plan has one.
    pub cost_s: Option<f64>,
}

/// Derives the values of a record and the reason of every value that is missing, by the name of the
/// field. `None` when no attempt counts, or one took no time at all by the clock: nothing follows from
/// such a trial, and a mean over the others would hide it.
pub fn derive_timing(
    trials: &[Trial],
    input: TimingInput,
) -> Option<(DerivedTiming, BTreeMap<String, Reason>)> {
    let counted: Vec<&Attempt> = trials
        .iter()
        .filter_map(Trial::counted_attempt)
        .filter(|a| a.calls > 0)
        .collect();
    if counted.is_empty() || counted.iter().any(|a| a.nanoseconds == 0) {
        return None;
    }
    let mut missing = BTreeMap::new();
    let n: u64 = counted.iter().map(|a| a.calls).sum();
    let seconds: Vec<f64> = counted.iter().map(|a| a.seconds()).collect();
    let total_s = exact_sum(&seconds);
    let means: Vec<f64> = counted.iter().map(|a| a.mean_s()).collect();
    let cycles = CounterMeans::of(&counted, n, |a| a.cycles);
    let ticks = CounterMeans::of(&counted, n, |a| a.ticks);
    let mean_s = total_s / n as f64;
    let ci95 = interval(&means);
    if ci95.is_none() {
        let text = format!("an interval needs 3 trials, {} counted", means.len());
        missing.insert(
            "ci95".to_owned(),
            Reason::new(ReasonCode::TooFewTrials, text),
        );
    }
    let samples = samples(&counted);
    let (quantiles, mad_s, tukey) = spread(&samples, &counted, input.cost_s, &mut missing);
    let stability = input
        .verdicts
        .then(|| stability(&means, &counted, input.clock_hz));
    if stability
        .as_ref()
        .is_some_and(|s| s.trials_for_1_percent.is_none())
    {
        let text = format!("it needs 3 trials, {} counted", means.len());
        missing.insert(
            "stability/trials_for_1_percent".to_owned(),
            Reason::new(ReasonCode::TooFewTrials, text),
        );
    }
    if stability.is_none() {
        missing.insert(
            "stability".to_owned(),
            Reason::new(
                ReasonCode::NotInPlan,
                "this plan gives no stability verdicts",
            ),
        );
    }
    let derived = DerivedTiming {
        n,
        total_s,
        mean_s,
        ops_per_s: n as f64 / total_s,
        mean_cycles: cycles.as_ref().map(|c| c.mean),
        mean_ticks: ticks.as_ref().map(|c| c.mean),
        median_trial_s: median(&means)?,
        min_trial_s: least(&means),
        max_trial_s: greatest(&means),
        median_trial_cycles: cycles.as_ref().and_then(|c| median(&c.trials)),
        min_trial_cycles: cycles.as_ref().map(|c| least(&c.trials)),
        max_trial_cycles: cycles.as_ref().map(|c| greatest(&c.trials)),
        median_trial_ticks: ticks.as_ref().and_then(|c| median(&c.trials)),
        min_trial_ticks: ticks.as_ref().map(|c| least(&c.trials)),
        max_trial_ticks: ticks.as_ref().map(|c| greatest(&c.trials)),
        ci95,
        quantiles,
        mad_s,
        tukey,
        stability,
        loop_overhead: input.empty_call_s.map(|empty| loop_overhead(empty, mean_s)),
    };
    Some((derived, missing))
}

/// A counter's means: null as soon as one counted attempt lacks it.
struct CounterMeans {
    mean: f64,
    trials: Vec<f64>,
}

impl CounterMeans {
    fn of(counted: &[&Attempt], n: u64, value: impl Fn(&Attempt) -> Option<u64>) -> Option<Self> {
        let values: Vec<u64> = counted.iter().map(|a| value(a)).collect::<Option<_>>()?;
        let total: u128 = values.iter().map(|&v| u128::from(v)).sum();
        let trials = values
            .iter()
            .zip(counted)
            .map(|(&v, a)| v as f64 / a.calls as f64)
            .collect();
        Some(CounterMeans {
            mean: total as f64 / n as f64,
            trials,
        })
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Mean and standard deviation (divisor k - 1) of at least two values.
pub(super) fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let k = values.len() as f64;
    let mean = exact_sum(values) / k;
    let squares: Vec<f64> = values.iter().map(|v| (v - mean) * (v - mean)).collect();
    (mean, (exact_sum(&squares) / (k - 1.0)).sqrt())
}

/// 95% interval of the mean over trial means; `None` below 3 trials.
fn interval(means: &[f64]) -> Option<Interval> {
    let k = means.len();
    if k < 3 {
        return None;
    }
    let (mean, s) = mean_and_deviation(means);
    let t = student_t_975((k - 1) as f64);
    let half = t * s / (k as f64).sqrt();
    Some(Interval {
        low: mean - half,
        high: mean + half,
        t,
        k: k as u32,
    })
}

/// All samples of the counted attempts, seconds per call.
fn samples(counted: &[&Attempt]) -> Vec<f64> {
    counted
        .iter()
        .flat_map(|a| {
            let batch = a.batch.unwrap_or(1) as f64;
            a.samples.iter().map(move |&ns| ns as f64 / 1e9 / batch)
        })
        .collect()
}

type Spread = (
    Option<Quantiles>,
    Option<f64>,
    Option<crate::evidence::Tukey>,
);

fn spread(
    samples: &[f64],
    counted: &[&Attempt],
    cost_s: Option<f64>,
    missing: &mut BTreeMap<String, Reason>,
) -> Spread {
    let ordered = sorted(samples);
    let q = |p: f64| quantile(&ordered, p);
    let (Some(p50), Some(p25), Some(p75)) = (q(0.5), q(0.25), q(0.75)) else {
        let reason = no_samples(counted, cost_s);
        for field in ["quantiles", "mad_s", "tukey"] {
            missing.insert(field.to_owned(), reason.clone());
        }
        return (None, None, None);
    };
    let quantiles = Quantiles {
        p5: q(0.05).unwrap_or(p50),
        p25,
        p50,
        p75,
        p95: q(0.95).unwrap_or(p50),
        p99: q(0.99).unwrap_or(p50),
        batch: counted.iter().filter_map(|a| a.batch).max().unwrap_or(1),
        samples: samples.len() as u64,
    };
    (
        Some(quantiles),
        mad(samples, p50),
        Some(tukey(samples, p25, p75)),
    )
}

/// Why no counted attempt has a sample. A batch is as long as a thousand readings (or steps) of the
/// clock at the cost that was reckoned with, so a whole trial that took less is below the resolution.
fn no_samples(counted: &[&Attempt], cost_s: Option<f64>) -> Reason {
    let has_no_batch = |a: &&Attempt| a.batch.is_some_and(|batch| batch > a.calls);
    let is_below = |a: &&Attempt| {
        let thousand_reads = a.batch.zip(cost_s).map(|(batch, cost)| batch as f64 * cost);
        thousand_reads.is_some_and(|span| a.seconds() < span)
    };
    if !counted.iter().all(has_no_batch) {
        return Reason::new(ReasonCode::NotRecorded, "no samples were recorded");
    }
    match counted.iter().all(is_below) {
        true => Reason::new(
            ReasonCode::BelowResolution,
            "all calls of a trial together take less than a thousand readings of the clock, which is more \
             than 0.1% of the mean then; more calls to a trial (max_iterations, iterations) would tell more",
        ),
        false => Reason::new(
            ReasonCode::NotRecorded,
            "a trial has fewer calls than a batch at the cost that the plan reckons with",
        ),
    }
}

/// Above this spread of the trial means a record is noisy.
const NOISY_ABOVE: f64 = 0.02;
/// Above this spread of the trial means a record is unusable.
const UNUSABLE_ABOVE: f64 = 0.10;
/// Cycles per second over the clock must lie in here.
const CLOCK_RATIO: std::ops::RangeInclusive<f64> = 0.2..=2.0;

fn stability(means: &[f64], counted: &[&Attempt], clock_hz: Option<f64>) -> Stability {
    let middle = median(means).unwrap_or(f64::NAN);
    let spread = (greatest(means) - least(means)) / middle;
    let mut reasons = Vec::new();
    let mut verdict = Verdict::Stable;
    if spread > UNUSABLE_ABOVE {
        verdict = Verdict::Unusable;
        reasons.push(format!(
            "trial means spread over {:.1}% (limit 10%)",
            spread * 100.0
        ));
    } else if spread > NOISY_ABOVE {
        verdict = Verdict::Noisy;
        reasons.push(format!(
            "trial means spread over {:.1}% (limit 2%)",
            spread * 100.0
        ));
    }
    for reason in impossible_clocks(counted, clock_hz) {
        verdict = Verdict::Unusable;
        reasons.push(reason);
    }
    Stability {
        verdict,
        spread,
        reasons,
        trials_for_1_percent: trials_for_1_percent(means),
    }
}

fn impossible_clocks(counted: &[&Attempt], clock_hz: Option<f64>) -> Vec<String> {
    let mut reasons = Vec::new();
    for attempt in counted {
        let Some(cycles) = attempt.cycles else {
            continue;
        };
        let rate = cycles as f64 / attempt.seconds();
        if cycles == 0 {
            reasons.push("a trial counted no cycles".to_owned());
        } else if clock_hz.is_some_and(|hz| !CLOCK_RATIO.contains(&(rate / hz))) {
            reasons.push(format!(
                "{:.3} GHz counted, outside 0.2 to 2 times the clock",
                rate / 1e9
            ));
        }
    }
    reasons
}

/// Trials that would bring the 95% interval to ±1% of the mean; `None` below 3 trials.
fn trials_for_1_percent(means: &[f64]) -> Option<u64> {
    if means.len() < 3 {
        return None;
    }
    let (mean, s) = mean_and_deviation(means);
    let t = student_t_975((means.len() - 1) as f64);
    Some((t * s / (0.01 * mean)).powi(2).ceil() as u64)
}

/// The loop's own cost matters above this share of a call.
const OVERHEAD_SHARE: f64 = 0.001;

fn loop_overhead(empty_call_s: f64, mean_s: f64) -> LoopOverhead {
    let share = empty_call_s / mean_s;
    LoopOverhead {
        empty_call_s,
        share,
        mean_less_overhead_s: (share > OVERHEAD_SHARE).then_some(mean_s - empty_call_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Exit;

    fn attempt(calls: u64, nanoseconds: u64) -> Attempt {
        Attempt {
            calls,
            nanoseconds,
            batch: Some(1),
            ..Attempt::empty(Exit::Ok)
        }
    }

    fn trials(attempts: &[Attempt]) -> Vec<Trial> {
        attempts
            .iter()
            .map(|a| Trial {
                attempts: vec![a.clone()],
                counted: Some(0),
            })
            .collect()
    }

    const PLAIN: TimingInput = TimingInput {
        verdicts: true,
        clock_hz: None,
        empty_call_s: None,
        cost_s: None,
    };

    fn worked_example() -> Vec<Attempt> {
        [410, 400, 430, 400, 410]
            .map(|ms| attempt(4, ms * 1_000_000))
            .to_vec()
    }

    #[test]
    fn the_worked_example_comes_out_to_the_digit() {
        let (derived, _) = derive_timing(&trials(&worked_example()), PLAIN).unwrap();
        assert_eq!(derived.n, 20);
        assert_eq!(derived.total_s, 2.05);
        assert_eq!(derived.mean_s, 0.1025);
        assert_eq!(format!("{:.14}", derived.ops_per_s), "9.75609756097561");
        assert_eq!(derived.median_trial_s, 0.1025);
        assert_eq!((derived.min_trial_s, derived.max_trial_s), (0.1, 0.1075));
        let ci = derived.ci95.unwrap();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * b;
        assert!(
            close(ci.t, 2.7764451051978)
                && close(ci.low, 0.0986981959655209)
                && close(ci.high, 0.106301804034479)
        );
        let (_, s) = mean_and_deviation(&[0.1025, 0.1, 0.1075, 0.1, 0.1025]);
        assert!(close(s, 0.00306186217847897));
        let stability = derived.stability.unwrap();
        assert_eq!(stability.verdict, Verdict::Noisy);
        assert_eq!(format!("{:.1}", stability.spread * 100.0), "7.3");
        assert_eq!(stability.trials_for_1_percent, Some(69));
    }

    #[test]
    fn attempts_that_do_not_count_leave_no_trace() {
        let mut trials = trials(&worked_example());
        trials[0].attempts.insert(0, attempt(4, 9_000_000_000));
        trials[0].counted = Some(1);
        trials.push(Trial {
            attempts: vec![attempt(4, 1)],
            counted: None,
        });
        let (derived, _) = derive_timing(&trials, PLAIN).unwrap();
        assert_eq!((derived.n, derived.total_s), (20, 2.05));
        assert!(derive_timing(
            &[Trial {
                attempts: vec![],
                counted: None
            }],
            PLAIN
        )
        .is_none());
    }

    #[test]
    fn one_attempt_without_cycles_takes_the_cycles_away() {
        let mut attempts = worked_example();
        for a in &mut attempts {
            a.cycles = Some(1000);
        }
        assert_eq!(
            derive_timing(&trials(&attempts), PLAIN)
                .unwrap()
                .0
                .mean_cycles,
            Some(250.0)
        );
        attempts[2].cycles = None;
        assert_eq!(
            derive_timing(&trials(&attempts), PLAIN)
                .unwrap()
                .0
                .mean_cycles,
            None
        );
    }

    #[test]
    fn two_trials_have_no_interval_and_say_why() {
        let (derived, missing) = derive_timing(&trials(&worked_example()[..2]), PLAIN).unwrap();
        assert_eq!(derived.ci95, None);
        assert_eq!(missing["ci95"].code, ReasonCode::TooFewTrials);
        assert_eq!(derived.stability.unwrap().trials_for_1_percent, None);
        let few = &missing["stability/trials_for_1_percent"];
        assert_eq!(few.code, ReasonCode::TooFewTrials);
    }

    #[test]
    fn stability_changes_just_above_its_limits() {
        let verdict = |last: u64| {
            let ns = [1_000_000, 1_000_000, 1_000_000, 1_000_000, last];
            let attempts: Vec<Attempt> = ns.iter().map(|&n| attempt(1, n)).collect();
            derive_timing(&trials(&attempts), PLAIN)
                .unwrap()
                .0
                .stability
                .unwrap()
                .verdict
        };
        assert_eq!(verdict(1_019_999), Verdict::Stable);
        assert_eq!(verdict(1_020_001), Verdict::Noisy);
        assert_eq!(verdict(1_099_999), Verdict::Noisy);
        assert_eq!(verdict(1_100_001), Verdict::Unusable);
    }

    #[test]
    fn a_clock_that_cannot_be_makes_a_record_unusable() {
        let mut attempts = worked_example();
        for a in &mut attempts {
            a.cycles = Some(a.nanoseconds * 2); // 2 GHz
        }
        let at = |hz: f64| {
            let input = TimingInput {
                clock_hz: Some(hz),
                ..PLAIN
            };
            derive_timing(&trials(&attempts), input)
                .unwrap()
                .0
                .stability
                .unwrap()
                .verdict
        };
        assert_eq!(at(2.1e9), Verdict::Noisy);
        assert_eq!(at(0.9e9), Verdict::Unusable);
        assert_eq!(at(11e9), Verdict::Unusable);
    }

    #[test]
    fn quantiles_are_of_batches_per_call() {
        let mut a = attempt(8, 800);
        a.batch = Some(2);
        a.samples = vec![100, 200, 300, 200];
        let (derived, _) = derive_timing(&trials(&[a]), PLAIN).unwrap();
        let q = derived.quantiles.unwrap();
        assert_eq!((q.p50, q.batch, q.samples), (100e-9, 2, 4));
        assert_eq!(derived.mad_s, Some(25e-9));
    }

    #[test]
    fn a_trial_shorter_than_a_thousand_clock_reads_is_below_the_resolution() {
        // 2 ns a call and 23 ns a reading: batches of 11500 calls.
        let reckoned = TimingInput {
            cost_s: Some(2e-9),
            ..PLAIN
        };
        let reason = |calls: u64, nanoseconds: u64, batch: Option<u64>, input| {
            let mut a = attempt(calls, nanoseconds);
            a.batch = batch;
            let (derived, missing) = derive_timing(&trials(&[a]), input).unwrap();
            assert_eq!((derived.quantiles, derived.tukey), (None, None));
            missing["quantiles"].code
        };
        use ReasonCode::{BelowResolution, NotRecorded};
        assert_eq!(reason(9, 18, Some(11_500), reckoned), BelowResolution);
        assert_eq!(reason(9, 22_990, Some(11_500), reckoned), BelowResolution);
        // The cost was set far too low: the calls take long enough, but make no batch.
        assert_eq!(reason(9, 23_010, Some(11_500), reckoned), NotRecorded);
        assert_eq!(reason(9, 18, Some(11_500), PLAIN), NotRecorded);
        assert_eq!(reason(9, 18, None, reckoned), NotRecorded);
    }

    #[test]
    fn a_trial_that_took_no_time_leaves_nothing_to_derive() {
        let mut attempts = worked_example();
        attempts[3].nanoseconds = 0;
        assert_eq!(derive_timing(&trials(&attempts), PLAIN), None);
    }

    #[test]
    fn the_loop_is_subtracted_only_above_a_thousandth() {
        assert_eq!(loop_overhead(1e-9, 1e-6).mean_less_overhead_s, None);
        assert_eq!(
            loop_overhead(2e-9, 1e-6).mean_less_overhead_s,
            Some(1e-6 - 2e-9)
        );
    }

    /// Trials with known truth: each call costs a number of rounds, each of which is rejected with
    /// probability 3/4 (so 4 on average, as in a signer with rejection sampling), and the trial as a
    /// whole is off by a normal deviate of 0.5%.
    fn synthetic(random: &mut fastrand::Rng, k: usize) -> Vec<Attempt> {
        use statrs::distribution::{ContinuousCDF, Normal};
        const CALLS: u64 = 400;
        let drift = Normal::new(1.0, 0.005).unwrap();
        let one = |random: &mut fastrand::Rng| {
            let rounds = (0..CALLS)
                .map(|_| 1 + (libm::log(random.f64()) / libm::log(0.75)).floor() as u64)
                .sum::<u64>();
            let off = drift.inverse_cdf(random.f64().max(1e-12));
            attempt(CALLS, (rounds as f64 * ROUND_NS * off).round() as u64)
        };
        (0..k).map(|_| one(random)).collect()
    }

    const ROUND_NS: f64 = 10_000.0;

    #[test]
    fn the_interval_covers_the_truth_in_95_of_100_synthetic_records() {
        let truth = 4.0 * ROUND_NS / 1e9;
        for (seed, k) in [(1, 3), (2, 5), (3, 15)] {
            let mut random = fastrand::Rng::with_seed(seed);
            let covered = (0..1000)
                .filter(|_| {
                    let attempts = synthetic(&mut random, k);
                    let (derived, _) = derive_timing(&trials(&attempts), PLAIN).unwrap();
                    let interval = derived.ci95.unwrap();
                    interval.low <= truth && truth <= interval.high
                })
                .count();
            assert!((935..=965).contains(&covered), "{covered} with {k} trials");
        }
    }

    #[test]
    fn the_interval_of_a_ratio_covers_1_in_95_of_100_synthetic_pairs() {
        let mut random = fastrand::Rng::with_seed(4);
        let mut means = |k| -> Vec<f64> {
            let attempts = synthetic(&mut random, k);
            attempts.iter().map(|a| a.mean_s()).collect()
        };
        let covered = (0..1000)
            .filter(|_| {
                let test = crate::stats::welch(&means(5), &means(5)).unwrap();
                test.low <= 1.0 && 1.0 <= test.high
            })
            .count();
        assert!((935..=965).contains(&covered), "{covered}");
    }
}
