//! What follows from the counted attempts.

use super::Attempt;
use crate::audit::finding::Findings;
use crate::audit::number::{mean_deviation, middle, ordered, sum, t_975, type7};
use crate::json::Value;

/// Derived values by pointer below `/derived`; a value is a number, a null, or a word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expected {
    Real(f64),
    Count(u64),
    Word(String),
    Words(Vec<String>),
    Null,
}

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expected::Real(value) => write!(f, "{value}"),
            Expected::Count(value) => write!(f, "{value}"),
            Expected::Word(word) => f.write_str(word),
            Expected::Words(words) => write!(f, "{words:?}"),
            Expected::Null => f.write_str("null"),
        }
    }
}

/// What is there, for a finding.
fn shown(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::Null) => "null".to_owned(),
        Some(Value::Number(text)) => (*text).to_owned(),
        Some(other) => other
            .str()
            .map_or_else(|| format!("{other:?}"), |s| s.into_owned()),
    }
}

pub(super) type Derived = Vec<(&'static str, Expected)>;

fn real(value: Option<f64>) -> Expected {
    value.map_or(Expected::Null, Expected::Real)
}

/// Student's t of `k` trials. It is recorded to 14 significant digits; the recorded one is taken where
/// it is the rounded true one, so that what follows from it can be compared to the last digit.
pub(super) fn recorded_t(derived: &Value, k: usize) -> Option<f64> {
    if k < 3 {
        return None;
    }
    let expected = t_975(k as u32 - 1);
    let found = derived.at(&["ci95", "t"]).and_then(Value::f64);
    let unit = 10f64.powi(libm::log10(expected).floor() as i32 - 13);
    Some(match found {
        Some(found) if (found - expected).abs() <= 0.55 * unit => found,
        _ => expected,
    })
}

pub(super) fn derive(
    counted: &[&Attempt],
    verdicts: bool,
    clock: Option<f64>,
    empty_ps: Option<u64>,
    t: Option<f64>,
) -> Option<Derived> {
    // A trial without duration says nothing, and neither does a mean with it.
    if counted.is_empty() || counted.iter().any(|a| a.nanoseconds == 0) {
        return None;
    }
    let n: u64 = counted.iter().map(|a| a.calls).sum();
    let total = sum(counted.iter().map(|a| a.seconds()));
    let mean = total / n as f64;
    let means: Vec<f64> = counted
        .iter()
        .map(|a| a.seconds() / a.calls as f64)
        .collect();
    let in_order = ordered(means.clone());
    let mut derived = vec![
        ("/n", Expected::Count(n)),
        ("/total_s", Expected::Real(total)),
        ("/mean_s", Expected::Real(mean)),
        ("/ops_per_s", Expected::Real(n as f64 / total)),
        ("/median_trial_s", real(middle(&in_order))),
        ("/min_trial_s", real(in_order.first().copied())),
        ("/max_trial_s", real(in_order.last().copied())),
    ];
    let names = [
        [
            "/mean_cycles",
            "/median_trial_cycles",
            "/min_trial_cycles",
            "/max_trial_cycles",
        ],
        [
            "/mean_ticks",
            "/median_trial_ticks",
            "/min_trial_ticks",
            "/max_trial_ticks",
        ],
    ];
    for (names, value) in names
        .iter()
        .zip([(|a| a.cycles) as fn(&Attempt) -> Option<u64>, |a| a.ticks])
    {
        let figures = counter(counted, n, value);
        derived.extend(
            names
                .iter()
                .zip(figures)
                .map(|(name, figure)| (*name, real(figure))),
        );
    }
    interval(&means, t, &mut derived);
    spread(counted, &mut derived);
    if verdicts {
        stability(&means, &in_order, counted, clock, t, &mut derived);
    } else {
        derived.push(("/stability", Expected::Null));
    }
    overhead(empty_ps, mean, &mut derived);
    Some(derived)
}

/// Mean, median, least and greatest of a counter; nothing where a counted attempt lacks it.
fn counter(counted: &[&Attempt], n: u64, value: fn(&Attempt) -> Option<u64>) -> [Option<f64>; 4] {
    let Some(all) = counted
        .iter()
        .map(|a| Some((value(a)?, a.calls)))
        .collect::<Option<Vec<_>>>()
    else {
        return [None; 4];
    };
    let total: u128 = all.iter().map(|(v, _)| u128::from(*v)).sum();
    let means = ordered(
        all.iter()
            .map(|(v, calls)| *v as f64 / *calls as f64)
            .collect(),
    );
    [
        Some(total as f64 / n as f64),
        middle(&means),
        means.first().copied(),
        means.last().copied(),
    ]
}

fn interval(means: &[f64], t: Option<f64>, derived: &mut Derived) {
    let Some(t) = t else {
        derived.push(("/ci95", Expected::Null));
        return;
    };
    let k = means.len();
    let (mean, deviation) = mean_deviation(means);
    let half = t * deviation / (k as f64).sqrt();
    derived.extend([
        ("/ci95/low", Expected::Real(mean - half)),
        ("/ci95/high", Expected::Real(mean + half)),
        ("/ci95/t", Expected::Real(t)),
        ("/ci95/k", Expected::Count(k as u64)),
    ]);
}

fn spread(counted: &[&Attempt], derived: &mut Derived) {
    let per_call = |a: &&Attempt| {
        let batch = a.batch.unwrap_or(1) as f64;
        a.samples
            .iter()
            .map(move |&ns| ns as f64 / 1e9 / batch)
            .collect::<Vec<f64>>()
    };
    let samples = ordered(counted.iter().flat_map(per_call).collect());
    let (Some(p25), Some(p50), Some(p75)) = (
        type7(&samples, 0.25),
        type7(&samples, 0.5),
        type7(&samples, 0.75),
    ) else {
        derived.extend([
            ("/quantiles", Expected::Null),
            ("/mad_s", Expected::Null),
            ("/tukey", Expected::Null),
        ]);
        return;
    };
    let batch = counted.iter().filter_map(|a| a.batch).max().unwrap_or(1);
    let deviations = ordered(samples.iter().map(|x| (x - p50).abs()).collect());
    let range = p75 - p25;
    let beyond = |factor: f64| {
        let (low, high) = (p25 - factor * range, p75 + factor * range);
        samples.iter().filter(|&&x| x < low || x > high).count() as u64
    };
    derived.extend([
        ("/quantiles/p5", real(type7(&samples, 0.05))),
        ("/quantiles/p25", Expected::Real(p25)),
        ("/quantiles/p50", Expected::Real(p50)),
        ("/quantiles/p75", Expected::Real(p75)),
        ("/quantiles/p95", real(type7(&samples, 0.95))),
        ("/quantiles/p99", real(type7(&samples, 0.99))),
        ("/quantiles/batch", Expected::Count(batch)),
        ("/quantiles/samples", Expected::Count(samples.len() as u64)),
        ("/mad_s", real(middle(&deviations))),
        ("/tukey/mild", Expected::Count(beyond(1.5) - beyond(3.0))),
        ("/tukey/severe", Expected::Count(beyond(3.0))),
    ]);
}

fn stability(
    means: &[f64],
    in_order: &[f64],
    counted: &[&Attempt],
    clock: Option<f64>,
    t: Option<f64>,
    derived: &mut Derived,
) {
    let (least, most) = (in_order[0], in_order[in_order.len() - 1]);
    let spread = (most - least) / middle(in_order).unwrap_or(f64::NAN);
    let wide = |limit: u32| {
        format!(
            "trial means spread over {:.1}% (limit {limit}%)",
            spread * 100.0
        )
    };
    let (by_spread, reason) = match spread {
        s if s > 0.10 => ("unusable", Some(wide(10))),
        s if s > 0.02 => ("noisy", Some(wide(2))),
        _ => ("stable", None),
    };
    let impossible = |a: &&Attempt| {
        let rate = a.cycles? as f64 / a.seconds();
        let odd = clock.is_some_and(|clock| !(0.2..=2.0).contains(&(rate / clock)));
        match a.cycles {
            Some(0) => Some("a trial counted no cycles".to_owned()),
            _ if odd => Some(format!(
                "{:.3} GHz counted, outside 0.2 to 2 times the clock",
                rate / 1e9
            )),
            _ => None,
        }
    };
    let impossible: Vec<String> = counted.iter().filter_map(impossible).collect();
    let verdict = if impossible.is_empty() {
        by_spread
    } else {
        "unusable"
    };
    let reasons = reason.into_iter().chain(impossible).collect();
    let trials = t.map(|t| {
        let (mean, deviation) = mean_deviation(means);
        (t * deviation / (0.01 * mean)).powi(2).ceil() as u64
    });
    derived.extend([
        ("/stability/verdict", Expected::Word(verdict.to_owned())),
        ("/stability/spread", Expected::Real(spread)),
        ("/stability/reasons", Expected::Words(reasons)),
        (
            "/stability/trials_for_1_percent",
            trials.map_or(Expected::Null, Expected::Count),
        ),
    ]);
}

fn overhead(empty_ps: Option<u64>, mean: f64, derived: &mut Derived) {
    let Some(empty) = empty_ps.map(|ps| ps as f64 / 1e12) else {
        derived.push(("/loop_overhead", Expected::Null));
        return;
    };
    let share = empty / mean;
    derived.extend([
        ("/loop_overhead/empty_call_s", Expected::Real(empty)),
        ("/loop_overhead/share", Expected::Real(share)),
        (
            "/loop_overhead/mean_less_overhead_s",
            real((share > 0.001).then_some(mean - empty)),
        ),
    ]);
}

pub(super) fn compare(derived: &Value, expected: Option<&Derived>, f: &mut Findings) {
    let Some(expected) = expected else {
        if !derived.is_null() {
            f.error(
                "/derived",
                "nothing follows from no counted attempt",
                "null",
                "values",
            );
        }
        return;
    };
    let rule = "derived values follow from the counted attempts";
    for (pointer, expected) in expected {
        let keys: Vec<&str> = pointer[1..].split('/').collect();
        let found = derived.at(&keys);
        let agrees = match expected {
            Expected::Real(e) => found.and_then(Value::f64) == Some(*e),
            Expected::Count(e) => found.and_then(Value::u64) == Some(*e),
            Expected::Word(e) => found.and_then(Value::str).is_some_and(|x| x == *e),
            Expected::Words(e) => found.is_some_and(|x| {
                matches!(x, Value::Array(_))
                    && x.items()
                        .iter()
                        .map(Value::str)
                        .eq(e.iter().map(|e| Some(e.as_str().into())))
            }),
            Expected::Null => found.is_some_and(Value::is_null),
        };
        if !agrees {
            f.error(format!("/derived{pointer}"), rule, expected, shown(found));
        }
    }
}
