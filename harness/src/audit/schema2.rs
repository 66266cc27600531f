//! What must follow from what in the public campaign's evidence: applied before an import, and by an
//! audit to the `source/` of an imported dataset.

use super::finding::Findings;
use super::number::{close, middle, ordered, sum};
use super::text;
use crate::import::schema2::{
    Campaign, Environment, Instance, Log, Planning, Process, Profile, Record, Trial, VERSION,
};
use std::collections::BTreeMap;

/// The calls that the guide asks for.
const GUIDE_CALLS: u64 = 100;

/// Compares and reports.
macro_rules! same {
    ($findings:expr, $pointer:expr, $rule:expr, $expected:expr, $found:expr) => {
        match (&$expected, &$found) {
            (expected, found) if expected != found => {
                $findings.error(
                    $pointer,
                    $rule,
                    format!("{expected:?}"),
                    format!("{found:?}"),
                );
            }
            _ => {}
        }
    };
}

/// Where a record or profile lies, by what it says of itself.
fn place(folder: &str, candidate: &str, label: &str, operation: &str, input_bytes: u64) -> String {
    match input_bytes {
        0 => format!("{folder}/{candidate}/{label}__{operation}.json"),
        bytes => format!("{folder}/{candidate}/{label}__{operation}_{bytes}.json"),
    }
}

/// Checks one record against itself, its instance, and the campaign.
pub fn record(
    file: &str,
    record: &Record,
    instance: Option<&Instance>,
    campaign: &Campaign,
) -> Findings {
    let mut f = Findings::of(file);
    same!(f, "/schema", "the schema is 2", VERSION, record.schema);
    same!(
        f,
        "",
        "a file lies where its content says",
        place(
            "records",
            &record.candidate,
            &record.label,
            &record.operation,
            record.input_bytes
        ),
        file
    );
    match instance {
        None => f.error(
            "/label",
            "a record's instance is in build.json",
            "",
            &record.label,
        ),
        Some(instance) => against_build(record, instance, &mut f),
    }
    same!(
        f,
        "/kat_not_passed",
        "kat_not_passed says whether the KAT result is other than PASS",
        record.kat != "PASS",
        record.kat_not_passed
    );
    processes(record, &mut f);
    derived(record, &mut f);
    plan(record, &campaign.planning, &mut f);
    times(record, campaign, &mut f);
    machine(&record.environment, campaign, &mut f);
    f
}

fn against_build(record: &Record, instance: &Instance, f: &mut Findings) {
    for (key, built, recorded) in [
        ("instance", &instance.instance, &record.instance),
        ("variant", &instance.variant, &record.variant),
        ("flags", &instance.flags, &record.flags),
        ("kat", &instance.kat, &record.kat),
        ("library", &instance.library, &record.library),
        (
            "library_sha256",
            &instance.library_sha256,
            &record.library_sha256,
        ),
        ("kat_log", &instance.kat_log, &record.kat_log),
        (
            "kat_log_sha256",
            &instance.kat_log_sha256,
            &record.kat_log_sha256,
        ),
    ] {
        same!(
            f,
            format!("/{key}"),
            "a record repeats build.json",
            built,
            recorded
        );
    }
}

fn processes(record: &Record, f: &mut Findings) {
    let complete = record.status == "complete";
    if !complete {
        f.note(
            "/status",
            "a record is complete",
            "complete",
            &record.status,
        );
    }
    let trials: Vec<Trial> = record
        .processes
        .iter()
        .flat_map(|p| p.trials.iter().copied())
        .collect();
    same!(
        f,
        "/trials",
        "the trials are those of the processes, in order",
        trials,
        record.trials
    );
    if complete {
        same!(
            f,
            "/trials",
            "as many trials as planned",
            record.plan.trials as usize,
            record.trials.len()
        );
    }
    if record.plan.separate_processes {
        for (index, process) in record.processes.iter().enumerate() {
            same!(
                f,
                format!("/processes/{index}/trials"),
                "one trial a process",
                1,
                process.trials.len()
            );
        }
    }
    let retries: u64 = record.processes.iter().map(|p| p.disturbed_retries).sum();
    same!(
        f,
        "/disturbed_retries",
        "retries add up",
        retries,
        record.disturbed_retries
    );
    for (index, one) in record.processes.iter().enumerate() {
        process(record, index, one, f);
    }
    for (index, trial) in record.trials.iter().enumerate() {
        same!(
            f,
            format!("/trials/{index}/measurements"),
            "a trial makes the planned calls",
            record.plan.iterations_per_trial,
            trial.measurements
        );
        if trial.nanoseconds().is_none() {
            f.error(
                format!("/trials/{index}/seconds"),
                "seconds are whole nanoseconds",
                "at most nine decimals",
                trial.seconds,
            );
        }
    }
    for (key, recorded) in [
        ("baseline_rss_bytes", record.baseline_rss_bytes),
        ("peak_rss_bytes", record.peak_rss_bytes),
    ] {
        let most = record.processes.iter().filter_map(|p| p.number(key)).max();
        same!(
            f,
            format!("/{key}"),
            "a maximum over the processes",
            most,
            Some(recorded)
        );
    }
}

fn process(record: &Record, index: usize, process: &Process, f: &mut Findings) {
    let at = |key: &str| format!("/processes/{index}/{key}");
    if record.status == "complete" {
        same!(
            f,
            at("status"),
            "every process of a complete record is complete",
            "complete",
            process.status
        );
        same!(
            f,
            at("exit_code"),
            "every process of a complete record ended well",
            0,
            process.exit_code
        );
    }
    let calls: u64 = process.trials.iter().map(|t| t.measurements).sum();
    let met = if calls >= GUIDE_CALLS {
        "met"
    } else {
        "not_met"
    };
    let cycles = if process.trials.iter().all(|t| t.cycles.is_some()) {
        "yes"
    } else {
        "no"
    };
    let number = |n: u64| n.to_string();
    for (key, expected) in [
        ("id", record.candidate.clone()),
        ("instance", record.instance.clone()),
        ("operation", record.operation.clone()),
        ("input_bytes", number(record.input_bytes)),
        ("build_flags", record.build_flags.clone()),
        ("pk_bytes", number(record.sizes.pk_bytes)),
        ("sk_bytes", number(record.sizes.sk_bytes)),
        ("ct_bytes", number(record.sizes.ct_bytes)),
        ("ss_bytes", number(record.sizes.ss_bytes)),
        ("signature_bytes", number(record.sizes.signature_bytes)),
        ("digest_bytes", number(record.sizes.digest_bytes)),
        ("timing_scope", record.timing_scope.clone()),
        ("warmups", number(u64::from(record.plan.warmups))),
        ("measurement_count", number(calls)),
        ("guide_100_measurements", met.to_owned()),
        ("cpu_cycles_available", cycles.to_owned()),
        ("setup_verify_failed", "0".to_owned()),
    ] {
        same!(
            f,
            at(&format!("meta/{key}")),
            "what a process says of itself agrees with its record",
            Some(&expected),
            process.meta.get(key)
        );
    }
    command(record, index, &process.command, f);
    let timed = sum(process.trials.iter().map(|t| t.seconds));
    if process.wall_s < timed {
        f.error(
            at("wall_s"),
            "a process lasts longer than its timed calls",
            timed,
            process.wall_s,
        );
    }
}

/// `taskset -c CPU program library operation input_bytes trials processes iterations warmups`
fn command(record: &Record, index: usize, command: &[String], f: &mut Findings) {
    let number = |n: u64| n.to_string();
    let cpu = record.environment.number("cpu_number").map(number);
    let expected = [
        (0, Some("taskset".to_owned())),
        (2, cpu),
        (4, Some(record.library.clone())),
        (5, Some(record.operation.clone())),
        (6, Some(number(record.input_bytes))),
        (9, Some(number(record.plan.iterations_per_trial))),
        (10, Some(number(u64::from(record.plan.warmups)))),
    ];
    for (word, expected) in expected {
        same!(
            f,
            format!("/processes/{index}/command/{word}"),
            "the command is that of the record, on its CPU",
            expected.as_ref(),
            command.get(word)
        );
    }
}

fn derived(record: &Record, f: &mut Findings) {
    let n: u64 = record.trials.iter().map(|t| t.measurements).sum();
    same!(
        f,
        "/measurements",
        "n is the sum of the trials",
        n,
        record.measurements
    );
    same!(
        f,
        "/guide_100_measurements_met",
        "the guide asks for 100 calls",
        n >= GUIDE_CALLS,
        record.guide_100_measurements_met
    );
    let total = sum(record.trials.iter().map(|t| t.seconds));
    let means = |value: &dyn Fn(&Trial) -> Option<f64>| -> Option<Vec<f64>> {
        let each = record
            .trials
            .iter()
            .map(|t| Some(value(t)? / t.measurements as f64));
        each.collect::<Option<Vec<f64>>>().map(ordered)
    };
    let seconds = means(&|t| Some(t.seconds)).unwrap_or_default();
    let cycles = means(&|t| t.cycles.map(|c| c as f64));
    let cycles_total: Option<u128> = record.trials.iter().map(|t| t.cycles.map(u128::from)).sum();
    let size = record.input_bytes as f64;
    let throughput = (record.input_bytes > 0).then(|| size * n as f64 / total / 1e6);
    let found = |value: f64| Some(value);
    for (key, expected, found) in [
        (
            "mean_seconds",
            found(total / n as f64),
            found(record.mean_seconds),
        ),
        (
            "median_trial_seconds",
            middle(&seconds),
            found(record.median_trial_seconds),
        ),
        (
            "min_trial_seconds",
            seconds.first().copied(),
            found(record.min_trial_seconds),
        ),
        (
            "max_trial_seconds",
            seconds.last().copied(),
            found(record.max_trial_seconds),
        ),
        (
            "operations_per_second",
            found(n as f64 / total),
            found(record.operations_per_second),
        ),
        (
            "mean_cycles",
            cycles_total.map(|c| c as f64 / n as f64),
            record.mean_cycles,
        ),
        (
            "median_trial_cycles",
            cycles.as_deref().and_then(middle),
            record.median_trial_cycles,
        ),
        (
            "throughput_MB_per_second",
            throughput,
            record.throughput_MB_per_second,
        ),
    ] {
        same!(
            f,
            format!("/{key}"),
            "derived values follow from the trials",
            expected,
            found
        );
    }
    same!(
        f,
        "/sizes/input_bytes",
        "one input size",
        record.input_bytes,
        record.sizes.input_bytes
    );
}

/// The plan formula: iterations and warm-ups that a cost of one call explains, the same cost that the
/// estimate was made with (`trials * ((iterations + warmups) * cost + setup)`).
fn plan(record: &Record, planning: &Planning, f: &mut Findings) {
    let plan = &record.plan;
    same!(
        f,
        "/plan/trials",
        "the campaign's number of trials",
        planning.trials,
        plan.trials
    );
    let limit = 300.0 + 3.0 * plan.estimated_s / f64::from(plan.trials);
    if !close(limit, plan.timeout_per_process_s) {
        f.error(
            "/plan/timeout_per_process_s",
            "the limit is 300 s and three times the estimate of a trial",
            limit,
            plan.timeout_per_process_s,
        );
    }
    // Key generation needs nothing prepared; the others at most what separate processes allow.
    let setup = match record.operation == "keygen" {
        true => 0.0,
        false => planning.separate_process_setup_s,
    };
    if !explained(plan, planning, setup) {
        f.error(
            "/plan",
            "a cost of one call exists that gives these iterations, warm-ups and this estimate",
            "by the campaign's planning",
            format!(
                "{} iterations, {} warm-ups, estimated {} s",
                plan.iterations_per_trial, plan.warmups, plan.estimated_s
            ),
        );
    }
}

/// Whether a cost exists. Each condition on it is an interval; they must have a point in common.
fn explained(plan: &crate::import::schema2::Plan, planning: &Planning, setup_s: f64) -> bool {
    let (iterations, trials) = (plan.iterations_per_trial as f64, f64::from(plan.trials));
    if plan.iterations_per_trial == 0 || plan.trials == 0 || plan.estimated_s < 0.0 {
        return false;
    }
    const SLACK: f64 = 1e-9;
    let calls = iterations + f64::from(plan.warmups);
    let each = plan.estimated_s / trials;
    let mut low = (each - setup_s).max(0.0) / calls * (1.0 - SLACK);
    let mut high = each / calls * (1.0 + SLACK);
    let (least, below) = match plan.warmups {
        3 => (0.0, 0.05),
        1 => (0.05, 10.0),
        0 => (10.0, f64::INFINITY),
        _ => return false,
    };
    low = low.max(least);
    high = high.min(below);
    let floor = (planning.min_total as f64 / trials).ceil();
    let target = planning.trial_target_s;
    let per = |count: f64| planning.op_budget_s / (trials * count);
    let most = planning.max_iters_per_trial as f64;
    // By the target: ceil(target / c) = iterations, or the floor; and the budget allows them.
    let target_low = if iterations >= floor {
        target / iterations
    } else {
        f64::INFINITY
    };
    let target_high = match iterations > floor && iterations > 1.0 {
        true => target / (iterations - 1.0),
        false => f64::INFINITY,
    };
    let paid = if iterations > most {
        f64::NEG_INFINITY
    } else if iterations <= 1.0 {
        f64::INFINITY
    } else {
        per(iterations)
    };
    let by_target = meets(low.max(target_low), high.min(target_high).min(paid));
    // By the budget: floor(budget / (trials * c)) = iterations, or the most; and more were aimed at.
    let cap_low = if iterations == most {
        0.0
    } else {
        per(iterations + 1.0)
    };
    let aimed = if iterations <= floor || iterations <= 1.0 {
        f64::INFINITY
    } else {
        target / (iterations - 1.0)
    };
    let by_budget = meets(low.max(cap_low), high.min(paid).min(aimed));
    by_target || by_budget
}

/// Whether an interval has a point, rounding of its ends forgiven.
fn meets(low: f64, high: f64) -> bool {
    low <= high * (1.0 + 1e-9)
}

fn times(record: &Record, campaign: &Campaign, f: &mut Findings) {
    let order = [
        (
            "/started_utc",
            "the campaign began before",
            &campaign.started_utc,
            &record.started_utc,
        ),
        (
            "/ended_utc",
            "a record ends after it begins",
            &record.started_utc,
            &record.ended_utc,
        ),
        (
            "/ended_utc",
            "the campaign ended after",
            &record.ended_utc,
            &campaign.ended_utc,
        ),
    ];
    for (pointer, rule, earlier, later) in order {
        match (text::utc_ns(earlier), text::utc_ns(later)) {
            (Some(a), Some(b)) if a <= b => {}
            _ => f.error(pointer, rule, format!("not before {earlier}"), later),
        }
    }
    let lasted = text::utc_ns(&record.ended_utc).zip(text::utc_ns(&record.started_utc));
    let timed = sum(record.trials.iter().map(|t| t.seconds));
    if lasted.is_some_and(|(end, start)| ((end - start) as f64) < timed * 1e9) {
        f.error(
            "/ended_utc",
            "a record lasts longer than its timed calls",
            timed,
            "less",
        );
    }
}

/// Facts that do not change while a machine is up.
const STABLE: [&str; 9] = [
    "architecture",
    "cpu_model",
    "machine",
    "logical_cpus_online",
    "virtualized",
    "memory_total_kib",
    "os",
    "kernel",
    "compiler",
];

fn machine(environment: &Environment, campaign: &Campaign, f: &mut Findings) {
    for key in STABLE {
        same!(
            f,
            format!("/environment/{key}"),
            "one machine in the whole campaign",
            campaign.environment_at_end.0.get(key),
            environment.0.get(key)
        );
    }
}

/// Checks the campaign against itself.
pub fn campaign(file: &str, campaign: &Campaign) -> Findings {
    let mut f = Findings::of(file);
    match (
        text::utc_ns(&campaign.started_utc),
        text::utc_ns(&campaign.ended_utc),
    ) {
        (Some(start), Some(end)) if start <= end => {
            for (index, check) in campaign.host_checks.iter().enumerate() {
                if !text::utc_ns(&check.utc).is_some_and(|at| (start..=end).contains(&at)) {
                    f.error(
                        format!("/host_checks/{index}/utc"),
                        "host checks lie inside the campaign",
                        format!("{} to {}", campaign.started_utc, campaign.ended_utc),
                        &check.utc,
                    );
                }
            }
        }
        _ => f.error(
            "/ended_utc",
            "a campaign ends after it begins",
            &campaign.started_utc,
            &campaign.ended_utc,
        ),
    }
    let end = &campaign.environment_at_end.0;
    for key in STABLE {
        same!(
            f,
            format!("/environment_at_start/{key}"),
            "one machine in the whole campaign",
            end.get(key),
            campaign.environment_at_start.0.get(key)
        );
    }
    f
}

/// Checks an instance of `build.json` against its KAT log.
pub fn instance(key: &str, instance: &Instance, log: Option<&Log>) -> Findings {
    let mut f = Findings::of("build.json");
    let at = |name: &str| format!("/instances/{}/{name}", crate::json::escape_key(key));
    same!(
        f,
        at("label"),
        "an instance's key is candidate/label",
        key,
        format!("{}/{}", instance.candidate, instance.label)
    );
    let Some(log) = log else {
        f.error(
            at("kat_log"),
            "the KAT log is there",
            &instance.kat_log,
            "no such file",
        );
        return f;
    };
    same!(
        f,
        at("kat_log_sha256"),
        "the digest is that of the KAT log",
        &log.sha256,
        &instance.kat_log_sha256
    );
    let result = Some((
        instance.candidate.as_str(),
        instance.label.as_str(),
        instance.kat.as_str(),
    ));
    same!(
        f,
        at("kat"),
        "the result is the last RESULT line of the KAT log",
        log.result(),
        result
    );
    f
}

/// Checks the sizes of a record against what the KAT log says of the API.
pub fn sizes(file: &str, record: &Record, log: &Log) -> Findings {
    let mut f = Findings::of(file);
    for (key, recorded) in [
        ("pk_len", record.sizes.pk_bytes),
        ("sk_len", record.sizes.sk_bytes),
        ("sn_len", record.sizes.signature_bytes),
    ] {
        if let Some(said) = log.value(key) {
            same!(
                f,
                "/sizes",
                "the sizes are those of the KAT log",
                said,
                recorded.to_string()
            );
        }
    }
    f
}

/// Checks one profile.
pub fn profile(file: &str, profile: &Profile, instance: Option<&Instance>) -> Findings {
    let mut f = Findings::of(file);
    same!(f, "/schema", "the schema is 2", VERSION, profile.schema);
    same!(
        f,
        "",
        "a file lies where its content says",
        place(
            "profile",
            &profile.candidate,
            &profile.label,
            &profile.operation,
            profile.input_bytes
        ),
        file
    );
    if instance.is_none() {
        f.error(
            "/label",
            "a profile's instance is in build.json",
            "",
            &profile.label,
        );
    }
    for (key, expected) in [
        ("id", &profile.candidate),
        ("instance", &profile.label),
        ("operation", &profile.operation),
    ] {
        same!(
            f,
            format!("/meta/{key}"),
            "what a process says of itself agrees",
            Some(expected),
            profile.meta.get(key)
        );
    }
    for (word, expected) in [
        (5, profile.operation.clone()),
        (6, profile.input_bytes.to_string()),
        (7, profile.total.operations.to_string()),
        (8, profile.meta.get("warmups").cloned().unwrap_or_default()),
    ] {
        same!(
            f,
            format!("/command/{word}"),
            "the command is that of the profile",
            Some(&expected),
            profile.command.get(word)
        );
    }
    let overflow = profile.meta.get("overflow_calls").map(String::as_str);
    same!(
        f,
        "/meta/overflow_calls",
        "every call found its slot",
        Some("0"),
        overflow
    );
    shares(profile, &mut f);
    f
}

fn shares(profile: &Profile, f: &mut Findings) {
    let total = profile.total.ticks as f64;
    let mut ticks = BTreeMap::<&str, u128>::new();
    for row in &profile.calls {
        *ticks.entry(&row.function).or_default() += u128::from(row.ticks);
    }
    let all: u128 = ticks.values().sum();
    if all > u128::from(profile.total.ticks) {
        f.error(
            "/total/ticks",
            "no more ticks in functions than in all",
            all,
            profile.total.ticks,
        );
    }
    let share: BTreeMap<String, f64> = ticks
        .iter()
        .map(|(&name, &t)| (name.to_owned(), t as f64 / total))
        .collect();
    same!(
        f,
        "/share",
        "a share is a function's ticks over all ticks",
        share,
        profile.share
    );
    // The source may have added ticks or shares, and shares in two ways.
    let others = ticks.iter().filter(|(name, _)| **name != "drng");
    let of_ticks: u128 = others.map(|(_, t)| t).sum();
    let parts: Vec<f64> = share
        .iter()
        .filter(|(name, _)| *name != "drng")
        .map(|(_, s)| *s)
        .collect();
    let ways = [
        of_ticks as f64 / total,
        sum(parts.iter().copied()),
        parts.iter().sum(),
    ];
    if !ways.contains(&profile.hash_share) {
        f.error(
            "/hash_share",
            "the hash share is everything but drng",
            ways[0],
            profile.hash_share,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::schema2::Plan;

    fn planning() -> Planning {
        Planning {
            trials: 5,
            trial_target_s: 0.5,
            min_total: 100,
            max_iters_per_trial: 20000,
            op_budget_s: 300.0,
            separate_process_setup_s: 60.0,
        }
    }

    /// The plan formula, forwards.
    fn planned(cost: f64, setup: f64) -> Plan {
        let p = planning();
        let trials = f64::from(p.trials);
        let paid = (p.op_budget_s / (trials * cost)).floor().max(1.0);
        let iterations = (p.trial_target_s / cost)
            .ceil()
            .max((p.min_total as f64 / trials).ceil())
            .min((p.max_iters_per_trial as f64).min(paid))
            .max(1.0);
        let warmups = if cost < 0.05 {
            3
        } else {
            u32::from(cost < 10.0)
        };
        let estimated_s = trials * ((iterations + f64::from(warmups)) * cost + setup);
        Plan {
            iterations_per_trial: iterations as u64,
            warmups,
            trials: p.trials,
            separate_processes: true,
            estimated_s,
            timeout_per_process_s: 0.0,
        }
    }

    #[test]
    fn every_plan_of_the_formula_is_explained_and_its_neighbours_are_not() {
        for exponent in -80..20 {
            let cost = 1.3f64.powi(exponent);
            let plan = planned(cost, 0.0);
            assert!(explained(&plan, &planning(), 0.0), "{cost}");
            let with_setup = planned(cost, 7.0);
            assert!(explained(&with_setup, &planning(), 60.0), "{cost}");
            for iterations in [plan.iterations_per_trial + 1, plan.iterations_per_trial - 1] {
                let wrong = Plan {
                    iterations_per_trial: iterations,
                    ..plan.clone()
                };
                // A neighbour may itself be what a slightly different cost gives.
                let own =
                    wrong.estimated_s / (5.0 * (iterations as f64 + f64::from(wrong.warmups)));
                let truly = iterations > 0
                    && planned(own, 0.0).iterations_per_trial == iterations
                    && planned(own, 0.0).warmups == wrong.warmups;
                assert_eq!(
                    explained(&wrong, &planning(), 0.0),
                    truly,
                    "{cost} {iterations}"
                );
            }
            let wrong = Plan { warmups: 2, ..plan };
            assert!(!explained(&wrong, &planning(), 60.0));
        }
    }
}
