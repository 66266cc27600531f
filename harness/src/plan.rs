//! How often and how long: the arithmetic of plans. Pure functions; `measure` and the other phases
//! carry out what is decided here, and `campaign plan` shows it.
//!
//! With `c` the calibrated cost of one call in seconds:
//!
//! ```text
//! iterations = clamp(max(ceil(target / c), ceil(min_total / trials)),
//!                    1, min(max_iterations, max(1, floor(budget / (trials * c)))))
//! warm-ups   = 3 if c < 0.05, 1 if c < 10, else 0
//! time limit = timeout_floor + 3 * (iterations + warm-ups) * c + 3 * preparation
//! ```
//!
//! A plan with a cost of its own (`cost_s`) reckons with that one. Which identities take part is [`crate::select`]'s.

use crate::evidence::{PlanRecord, PlanSettings};
use crate::stats::median;
use protocol::{Operation, STUDY_KEYS};

/// Least cost that a plan reckons with, seconds: a median below the clock's step would be 0.
pub const LEAST_COST_S: f64 = 1e-9;

/// A worker may take this many times its expected time, beyond the floor.
const PATIENCE: f64 = 3.0;

/// A KAT under a runner may take this many times as long (3.7 times was seen for an emulated DOVE).
const RUNNER_PATIENCE: f64 = 5.0;

/// What calibration found out about one operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// One call, seconds.
    pub call_s: f64,
    /// Preparation of a trial (its key, its signatures), seconds.
    pub preparation_s: f64,
}

/// Cost of one call from the timed calls of a calibration: their median, at least
/// [`LEAST_COST_S`]; `None` for no calls.
pub fn cost_s(calls_ns: &[u64]) -> Option<f64> {
    let seconds: Vec<f64> = calls_ns.iter().map(|&ns| ns as f64 / 1e9).collect();
    median(&seconds).map(|cost| cost.max(LEAST_COST_S))
}

/// Timed calls of one trial.
pub fn iterations(plan: &PlanSettings, call_s: f64) -> u64 {
    if let Some(fixed) = plan.iterations {
        return fixed.max(1);
    }
    let call_s = call_s.max(LEAST_COST_S);
    let trials = plan.trials.max(1);
    // Float to integer saturates: a quotient beyond u64 is cut by max_iterations anyway.
    let aimed = (plan.target_s / call_s).ceil() as u64;
    let least = plan.min_total.div_ceil(u64::from(trials));
    let paid = (plan.budget_s / (f64::from(trials) * call_s)).floor() as u64;
    let most = plan.max_iterations.min(paid.max(1)).max(1);
    aimed.max(least).clamp(1, most)
}

/// Untimed calls before the timed ones.
pub fn warmups(call_s: f64) -> u32 {
    match call_s {
        c if c < 0.05 => 3,
        c if c < 10.0 => 1,
        _ => 0,
    }
}

/// The plan of one operation, as its record states it.
pub fn measure(plan: &PlanSettings, cost: Cost) -> PlanRecord {
    let call_s = plan.cost_s.unwrap_or(cost.call_s).max(LEAST_COST_S);
    let iterations = iterations(plan, call_s);
    let warmups = warmups(call_s);
    PlanRecord {
        name: plan.name.clone(),
        trials: plan.trials,
        iterations,
        warmups,
        cost_s: Some(call_s),
        preparation_s: Some(cost.preparation_s),
        target_s: plan.target_s,
        min_total: plan.min_total,
        max_iterations: plan.max_iterations,
        budget_s: plan.budget_s,
        repeats: Some(plan.repeats),
        fixed_iterations: plan.iterations,
        timeout_s: plan.timeout_floor_s
            + PATIENCE * (iterations as f64 + f64::from(warmups)) * call_s
            + PATIENCE * cost.preparation_s,
    }
}

/// Seconds aimed at for the timed calls of an attempt in a study.
const STUDY_TARGET_S: f64 = 0.03;

/// Most timed calls of an attempt in a study.
const STUDY_MAX_ITERATIONS: u64 = 100;

/// What a byte of a message is reckoned to cost when the calls of a study are planned, seconds: hash
/// functions of the candidates reach 150 to 350 MB/s. What it costs in fact is what the study finds out.
pub const STUDY_S_PER_BYTE: f64 = 4e-9;

/// The plan of a study: `base` decides limits, repeats and verdicts, the study how often and how long.
pub fn study(base: &PlanSettings, trials: u32) -> PlanSettings {
    PlanSettings {
        name: "study".to_owned(),
        trials,
        target_s: STUDY_TARGET_S,
        min_total: u64::from(trials),
        max_iterations: STUDY_MAX_ITERATIONS,
        builds: "all".to_owned(),
        iterations: None,
        defer: Vec::new(),
        ..base.clone()
    }
}

/// The plan of one point of a study. `call_s` and `key_s` are the calibrated costs of a call on a short
/// message and of a key generation. A signature made in the preparation has warmed everything up, so
/// calls on long messages need no warm-up of their own.
pub fn study_point(
    plan: &PlanSettings,
    operation: Operation,
    size_bytes: u64,
    call_s: f64,
    key_s: f64,
) -> PlanRecord {
    let per_byte = match operation {
        Operation::Keygen => 0.0,
        _ => STUDY_S_PER_BYTE,
    };
    let cost = call_s.max(LEAST_COST_S) + size_bytes as f64 * per_byte;
    let warmups = match operation {
        Operation::Keygen => warmups(cost),
        _ => u32::from(cost < 0.02),
    };
    let iterations = iterations(plan, cost);
    // Reading and hashing the file before and after, one signature, one verification.
    let preparation = key_s * STUDY_KEYS.min(iterations) as f64
        + 2.0 * cost
        + size_bytes as f64 * STUDY_S_PER_BYTE;
    PlanRecord {
        iterations,
        warmups,
        cost_s: Some(cost),
        preparation_s: Some(preparation),
        timeout_s: plan.timeout_floor_s
            + PATIENCE * (iterations as f64 + f64::from(warmups)) * cost
            + PATIENCE * preparation,
        ..measure(
            plan,
            Cost {
                call_s: cost,
                preparation_s: preparation,
            },
        )
    }
}

/// Expected time of all trials of one operation without repeats, seconds.
pub fn expected_s(plan: &PlanSettings, cost: Cost) -> f64 {
    let record = measure(plan, cost);
    let calls = record.iterations as f64 + f64::from(record.warmups);
    f64::from(plan.trials) * (calls * cost.call_s.max(LEAST_COST_S) + cost.preparation_s)
}

/// Time limit of a calibrating worker, seconds.
pub fn calibrate_timeout_s(plan: &PlanSettings) -> f64 {
    plan.timeout_floor_s
}

/// Time limit of a KAT, seconds.
pub fn kat_timeout_s(plan: &PlanSettings, under_runner: bool) -> f64 {
    match under_runner {
        true => RUNNER_PATIENCE * plan.kat_timeout_s,
        false => plan.kat_timeout_s,
    }
}

/// Keys of the memory and profile phases; `key_s` is the cost of one key generation, seconds.
pub fn keys(plan: &PlanSettings, key_s: f64) -> u32 {
    match key_s > plan.keys_limit_s {
        true => plan.keys_expensive,
        false => plan.keys,
    }
}

/// Time limit of a worker of the memory or profile phase, seconds; `costs_s` are the calibrated costs
/// of the identity's operations.
pub fn keys_timeout_s(plan: &PlanSettings, keys: u32, costs_s: &[f64]) -> f64 {
    let each: f64 = costs_s.iter().sum();
    plan.timeout_floor_s + PATIENCE * f64::from(keys) * each
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::defaults::defaults;
    use proptest::prelude::*;

    fn plan(name: &str) -> PlanSettings {
        defaults().plans[name].clone()
    }

    fn cost(call_s: f64) -> Cost {
        Cost {
            call_s,
            preparation_s: 0.0,
        }
    }

    #[test]
    fn the_cost_is_the_median_and_at_least_a_nanosecond() {
        for (calls, expected) in [
            (&[][..], None),
            (&[0][..], Some(1e-9)),
            (&[0, 0, 5][..], Some(1e-9)),
            (&[50_000_000][..], Some(0.05)),
            (&[3, 1, 2][..], Some(2e-9)),
            (&[1, 2, 3, 10][..], Some((2e-9 + 3e-9) / 2.0)),
        ] {
            assert_eq!(cost_s(calls), expected, "{calls:?}");
        }
    }

    #[test]
    fn iterations_follow_the_target_then_the_least_total_then_the_budget() {
        let guide = plan("guide"); // 15 trials, 0.35 s, 100, 20000, 900 s
        for (c, expected, why) in [
            (0.001, 350, "0.35 / 0.001"),
            (0.0099, 36, "ceil(35.35)"),
            (0.05, 7, "0.35 / 0.05 = 7, and ceil(100 / 15) = 7"),
            (0.35, 7, "the least total"),
            (8.0, 7, "900 / 120 = 7.5"),
            (9.0, 6, "900 / 135 = 6.67"),
            (10.0, 6, "900 / 150 = 6 exactly"),
            (59.9, 1, "900 / 898.5"),
            (60.1, 1, "the budget does not pay one, one is made"),
            (1e9, 1, "far beyond the budget"),
            (1e-5, 20000, "35000 are too many"),
            (1e-9, 20000, "the least cost"),
            (0.0, 20000, "no cost counts as the least"),
            (f64::INFINITY, 1, "no limit at all"),
        ] {
            assert_eq!(iterations(&guide, c), expected, "{c}: {why}");
        }
    }

    #[test]
    fn the_budget_wins_over_the_least_total_and_one_call_over_everything() {
        let mut p = plan("public"); // 5 trials, so at least 20 iterations
        assert_eq!(iterations(&p, 1.0), 20);
        assert_eq!(iterations(&p, 30.0), 6, "900 / 150");
        p.max_iterations = 3;
        assert_eq!(iterations(&p, 1e-6), 3);
        p.max_iterations = 0; // not from a configuration, which refuses it
        assert_eq!(iterations(&p, 1e-6), 1);
        p.min_total = u64::MAX;
        p.max_iterations = u64::MAX;
        p.budget_s = f64::MAX;
        assert_eq!(iterations(&p, 1.0), u64::MAX.div_ceil(5), "no overflow");
    }

    #[test]
    fn points_of_a_study_have_many_short_calls_or_a_few_long_ones() {
        let study = study(&plan("quick"), 5);
        assert_eq!((study.name.as_str(), study.trials), ("study", 5));
        let of = |operation, size| {
            let record = study_point(&study, operation, size, 1e-4, 1e-4);
            (record.iterations, record.warmups)
        };
        for (operation, size, expected, why) in [
            (
                Operation::Sign,
                1000,
                (100, 1),
                "0.03 s are 288 calls, above the most",
            ),
            (Operation::Sign, 1_000_000, (8, 1), "ceil(0.03 / 0.0041)"),
            (Operation::Verify, 100_000_000, (1, 0), "0.4 s"),
            (
                Operation::Keygen,
                100_000_000,
                (100, 3),
                "it takes no message",
            ),
        ] {
            assert_eq!(of(operation, size), expected, "{why}");
        }
        let large = study_point(&study, Operation::Sign, 1_000_000_000, 1e-3, 1e-3);
        let expected = 4.001 + 1e-3 + 2.0 * 4.001 + 4.0;
        let spent = large.cost_s.unwrap() + large.preparation_s.unwrap();
        assert!((spent - expected).abs() < 1e-9, "{spent}");
        assert!((large.timeout_s - study.timeout_floor_s - 3.0 * spent).abs() < 1e-9);
    }

    #[test]
    fn a_fixed_number_of_iterations_is_taken_as_it_is() {
        let mut p = plan("quick");
        p.iterations = Some(1000);
        assert_eq!(iterations(&p, 100.0), 1000);
        assert_eq!(measure(&p, cost(100.0)).fixed_iterations, Some(1000));
    }

    #[test]
    fn a_plan_with_a_cost_of_its_own_reckons_with_it_whatever_was_calibrated() {
        let mut p = plan("quick");
        (p.iterations, p.cost_s) = (Some(4), Some(1e-9));
        let records = [1e-6, 0.06, 20.0].map(|c| measure(&p, cost(c)));
        for record in &records {
            assert_eq!((record.iterations, record.warmups), (4, 3));
            assert_eq!(record.cost_s, Some(1e-9));
            assert_eq!(record, &records[0]);
        }
        assert_eq!(expected_s(&p, cost(2.0)), 5.0 * 7.0 * 2.0, "the real one");
    }

    #[test]
    fn warm_ups_depend_on_the_cost_with_open_ends() {
        let below = |x: f64| f64::from_bits(x.to_bits() - 1);
        for (c, expected) in [
            (1e-9, 3),
            (below(0.05), 3),
            (0.05, 1),
            (below(10.0), 1),
            (10.0, 0),
            (1e6, 0),
        ] {
            assert_eq!(warmups(c), expected, "{c}");
        }
    }

    #[test]
    fn time_limits_grow_with_the_expected_time() {
        let guide = plan("guide");
        let record = measure(
            &guide,
            Cost {
                call_s: 2.0,
                preparation_s: 5.0,
            },
        );
        assert_eq!((record.iterations, record.warmups), (7, 1));
        assert_eq!(record.timeout_s, 300.0 + 3.0 * 8.0 * 2.0 + 3.0 * 5.0);
        assert_eq!(calibrate_timeout_s(&guide), 300.0);
        assert_eq!(kat_timeout_s(&guide, false), 1800.0);
        assert_eq!(kat_timeout_s(&guide, true), 9000.0);
        assert_eq!(
            keys_timeout_s(&guide, 20, &[1.0, 0.5, 0.25]),
            300.0 + 3.0 * 20.0 * 1.75
        );
        assert_eq!(
            expected_s(&guide, cost(2.0)),
            15.0 * 8.0 * 2.0,
            "warm-ups take their time too"
        );
    }

    #[test]
    fn a_key_above_the_limit_is_expensive_and_one_at_the_limit_is_not() {
        let (quick, guide) = (plan("quick"), plan("guide"));
        assert_eq!((keys(&quick, 0.2), keys(&quick, 0.21)), (20, 3));
        assert_eq!((keys(&guide, 10.0), keys(&guide, 10.1)), (20, 3));
    }

    /// Plans of the public campaign's records (sign-09 on arm_1, public campaign evidence, 2026):
    /// instance and operation, iterations, warm-ups, estimated_s, timeout_per_process_s. Its plan: 5
    /// trials, target 0.5 s, at least 100 calls, at most 20000, budget 300 s.
    const PUBLIC: [(&str, u64, u32, f64, f64); 18] = [
        (
            "classic_128 keygen",
            20,
            3,
            3.297573517124634,
            301.97854411027475,
        ),
        (
            "classic_128 sign",
            759,
            3,
            2.6601352825164795,
            301.5960811695099,
        ),
        (
            "classic_128 verify",
            1429,
            3,
            2.656073505045776,
            301.5936441030275,
        ),
        (
            "classic_256 keygen",
            20,
            1,
            61.26165109289246,
            336.7569906557355,
        ),
        (
            "classic_256 sign",
            78,
            3,
            5.561806929995727,
            303.3370841579974,
        ),
        (
            "classic_256 verify",
            343,
            3,
            5.481737762451171,
            303.2890426574707,
        ),
        (
            "classic_512 keygen",
            4,
            0,
            266.9256402620551,
            460.155384157233,
        ),
        (
            "classic_512 sign",
            20,
            1,
            74.25383397788086,
            344.5523003867285,
        ),
        (
            "classic_512 verify",
            29,
            3,
            69.90416960915587,
            341.94250176549355,
        ),
        (
            "pkc_skc_128 keygen",
            20,
            3,
            2.896088752746582,
            301.73765325164794,
        ),
        (
            "pkc_skc_128 sign",
            71,
            3,
            2.762923110961914,
            301.65775386657714,
        ),
        (
            "pkc_skc_128 verify",
            225,
            3,
            2.7042177950543214,
            301.6225306770326,
        ),
        (
            "pkc_skc_256 keygen",
            20,
            1,
            57.27321077249145,
            334.36392646349486,
        ),
        (
            "pkc_skc_256 sign",
            20,
            1,
            13.680833034152222,
            308.20849982049134,
        ),
        (
            "pkc_skc_256 verify",
            24,
            3,
            6.175449852321167,
            303.7052699113927,
        ),
        (
            "pkc_skc_512 keygen",
            4,
            0,
            258.42104891344786,
            455.05262934806876,
        ),
        (
            "pkc_skc_512 sign",
            20,
            1,
            233.91200417859193,
            440.34720250715515,
        ),
        (
            "pkc_skc_512 verify",
            20,
            1,
            98.00929438096009,
            358.80557662857603,
        ),
    ];

    fn public_campaign() -> PlanSettings {
        PlanSettings {
            target_s: 0.5,
            budget_s: 300.0,
            ..plan("public")
        }
    }

    /// The calibrated cost is not in that evidence. What is there is the time of a trial, `(iterations
    /// + warm-ups) * c + preparation`. A key generation has nothing to prepare, so its cost follows.
    #[test]
    fn the_public_key_generation_plans_are_reproduced_to_the_last_digit() {
        let p = public_campaign();
        for (name, iterations, warmups, estimated_s, timeout_s) in PUBLIC {
            if !name.ends_with("keygen") {
                continue;
            }
            let c = estimated_s / 5.0 / (iterations as f64 + f64::from(warmups));
            let record = measure(&p, cost(c));
            assert_eq!(
                (record.iterations, record.warmups),
                (iterations, warmups),
                "{name}"
            );
            assert!(
                (record.timeout_s - timeout_s).abs() < 1e-9,
                "{name}: {}",
                record.timeout_s
            );
            assert!(
                (expected_s(&p, cost(c)) - estimated_s).abs() < 1e-9,
                "{name}"
            );
        }
    }

    /// For all of them a cost must exist that gives the recorded iterations and warm-ups and leaves a
    /// preparation that is not negative; the time limit then follows. The cost is tried where nothing
    /// is prepared, and where the target is just met.
    #[test]
    fn for_every_public_plan_there_is_a_cost_that_gives_it() {
        let p = public_campaign();
        for (name, iterations, warmups, estimated_s, timeout_s) in PUBLIC {
            let (trial_s, calls) = (estimated_s / 5.0, iterations as f64 + f64::from(warmups));
            let record = [trial_s / calls, p.target_s / iterations as f64]
                .map(|call_s| Cost {
                    call_s,
                    preparation_s: trial_s - calls * call_s,
                })
                .into_iter()
                .filter(|cost| cost.preparation_s > -1e-12) // the first is 0 up to rounding
                .map(|cost| measure(&p, cost))
                .find(|record| (record.iterations, record.warmups) == (iterations, warmups))
                .unwrap_or_else(|| panic!("{name}: no cost gives this plan"));
            assert!(
                (record.timeout_s - timeout_s).abs() < 1e-9,
                "{name}: {}",
                record.timeout_s
            );
        }
    }

    fn settings() -> impl Strategy<Value = PlanSettings> {
        (
            1u32..=10_000,
            1e-3..1e7,
            1u64..=1_000_000_000,
            1u64..=1_000_000_000,
            1e-3..1e7,
        )
            .prop_map(|(trials, target_s, min_total, max_iterations, budget_s)| {
                PlanSettings {
                    trials,
                    target_s,
                    min_total,
                    max_iterations,
                    budget_s,
                    ..plan("guide")
                }
            })
    }

    /// Costs over all magnitudes.
    fn calls() -> impl Strategy<Value = f64> {
        (-12.0..8.0).prop_map(|exponent: f64| libm::pow(10.0, exponent))
    }

    proptest! {
        #[test]
        fn iterations_stay_within_their_limits(p in settings(), c in calls()) {
            let n = iterations(&p, c);
            prop_assert!(n >= 1 && n <= p.max_iterations);
            let c = c.max(LEAST_COST_S);
            let paid = f64::from(p.trials) * n as f64 * c;
            prop_assert!(n == 1 || paid <= p.budget_s * (1.0 + 1e-12), "{paid}");
            let short = n < p.max_iterations
                && f64::from(p.trials) * (n + 1) as f64 * c <= p.budget_s * (1.0 - 1e-12);
            if short {
                prop_assert!(n as f64 * c >= p.target_s * (1.0 - 1e-12));
                prop_assert!(n * u64::from(p.trials) >= p.min_total);
            }
        }

        #[test]
        fn a_call_that_costs_more_is_not_made_more_often(p in settings(), a in calls(), b in calls()) {
            let (cheap, dear) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(iterations(&p, cheap) >= iterations(&p, dear));
            prop_assert!(warmups(cheap) >= warmups(dear));
        }

        #[test]
        fn a_time_limit_is_finite_and_above_three_times_the_expected_time(
            p in settings(), c in calls(), preparation_s in 0.0..1e4,
        ) {
            let cost = Cost { call_s: c, preparation_s };
            let record = measure(&p, cost);
            let trial_s = expected_s(&p, cost) / f64::from(p.trials);
            prop_assert!(record.timeout_s.is_finite());
            prop_assert!(record.timeout_s >= p.timeout_floor_s + 3.0 * trial_s * (1.0 - 1e-12));
        }

        #[test]
        fn the_cost_lies_between_the_calls(calls in prop::collection::vec(0..=u64::MAX, 1..40)) {
            let cost = cost_s(&calls).unwrap();
            let (least, most) = (calls.iter().min().unwrap(), calls.iter().max().unwrap());
            prop_assert!(cost >= (*least as f64 / 1e9) && cost <= (*most as f64 / 1e9).max(LEAST_COST_S));
        }
    }
}
