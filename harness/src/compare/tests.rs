use super::*;
use crate::evidence::{PlanSettings, Trial};
use crate::testing::Synthetic;
use std::path::Path;

fn spec() -> Synthetic {
    Synthetic {
        trials: 7,
        ..Synthetic::default()
    }
}

fn compared(a: &Dataset, b: &Dataset) -> Comparison {
    let reference = a.campaign.rows[0].identity.clone();
    compare(a, b, ["a", "b"], Some(&reference))
}

/// Makes every trial of B `factor` times as long, in cycles and time.
fn slower(dataset: &mut Dataset, factor: f64) {
    for entry in dataset.timing.values_mut() {
        for attempt in entry.value.trials.iter_mut().flat_map(|t| &mut t.attempts) {
            attempt.nanoseconds = (attempt.nanoseconds as f64 * factor) as u64;
            attempt.cycles = attempt.cycles.map(|c| (c as f64 * factor) as u64);
        }
    }
}

/// A dataset, and one of a system that takes half as long again.
fn two_speeds() -> [Dataset; 2] {
    [1.0, 1.5].map(|speed| Synthetic { speed, ..spec() }.build())
}

#[test]
fn an_equal_dataset_shows_no_difference() {
    let same = compared(&spec().build(), &spec().build());
    assert_eq!(same.rows.len(), 18);
    assert!(same
        .rows
        .iter()
        .all(|row| row.verdict == Verdict::NoDetectableDifference));
    assert!(same.rows.iter().all(|row| row.cycles.ratio == Some(1.0)));
    assert!(same.findings.is_empty() && !same.found_anything());
    assert!(same.only_in_one.is_empty());
}

#[test]
fn a_large_difference_is_found_in_its_direction_and_a_regression_counts() {
    let a = spec().build();
    let mut b = spec().build();
    slower(&mut b, 1.5);
    let forth = compared(&a, &b);
    assert_eq!(forth.rows.len(), 18);
    assert!(forth.rows.iter().all(|row| row.verdict == Verdict::Slower));
    assert!(forth.found_anything(), "one system: a regression");
    for row in &forth.rows {
        let [low, high] = row.cycles.interval.unwrap();
        assert!(low < 1.5 && 1.5 < high, "{:?}", row.cycles);
        assert!(row.cycles.p_holm.unwrap() >= row.cycles.p.unwrap());
    }
    let back = compared(&b, &a);
    assert_eq!(back.rows.len(), 18);
    assert!(back.rows.iter().all(|row| row.verdict == Verdict::Faster));
    b.campaign.system = "other".into();
    assert!(!compared(&a, &b).found_anything(), "two systems: a result");
}

#[test]
fn a_difference_below_the_noise_floor_says_nothing() {
    let a = spec().build();
    let mut b = spec().build();
    slower(&mut b, 1.2);
    // The second timing of both runs is far off: floors above the difference.
    for dataset in [&mut b] {
        for attempt in dataset.aa[0]
            .value
            .trials
            .iter_mut()
            .flat_map(|t| &mut t.attempts)
        {
            attempt.nanoseconds *= 3;
            attempt.cycles = attempt.cycles.map(|c| c * 3);
        }
    }
    let comparison = compared(&a, &b);
    let floor = &comparison.noise_floors[0];
    assert!(floor.b.unwrap() > 0.2 && floor.a.unwrap() < 0.2);
    assert!(comparison
        .rows
        .iter()
        .all(|row| row.verdict == Verdict::NoDetectableDifference));
    assert!(
        comparison.rows[0].cycles.p_holm.unwrap() < 0.05,
        "significant all the same"
    );
}

#[test]
fn what_is_not_tested_says_why() {
    let a = spec().build();
    let reason = |b: &Dataset| compared(&a, b).rows[0].verdict.clone();
    let mut few = spec().build();
    for entry in few.timing.values_mut() {
        entry.value.trials.truncate(4);
    }
    assert_eq!(reason(&few), Verdict::NotTested(NotTested::TooFewTrials));
    let mut no_floor = spec().build();
    no_floor.aa.clear();
    assert_eq!(
        reason(&no_floor),
        Verdict::NotTested(NotTested::NoNoiseFloor)
    );
    let mut quick = spec().build();
    quick.campaign.plan = quick.campaign.plan.map(|plan| PlanSettings {
        verdicts: false,
        ..plan
    });
    assert_eq!(reason(&quick), Verdict::NotTested(NotTested::Plan));
    let mut steady = spec().build();
    for entry in steady.timing.values_mut() {
        let first = entry.value.trials[0].attempts[0].clone();
        entry.value.trials = vec![
            Trial {
                attempts: vec![first],
                counted: Some(0)
            };
            5
        ];
    }
    let both = compare(&steady, &steady, ["a", "b"], None);
    assert_eq!(
        both.rows[0].verdict,
        Verdict::NotTested(NotTested::NoVariance)
    );
}

#[test]
fn what_cannot_be_compared_has_no_ratio() {
    let a = spec().build();
    let mut upstream = spec().build();
    for entry in upstream.timing.values_mut() {
        entry.value.head.origin = Origin::Upstream;
    }
    let row = compared(&a, &upstream).rows.remove(0);
    assert_eq!((row.cycles.ratio, row.time.ratio), (None, None));
    assert!(
        matches!(row.verdict, Verdict::NotComparable(why) if why.contains("different implementations"))
    );

    let ticks = Synthetic {
        source: SourceKind::Tsc,
        ..spec()
    };
    let row = compared(&a, &ticks.build()).rows.remove(0);
    assert_eq!(row.cycles.ratio, None, "ticks are no cycles");
    assert!(row.time.ratio.is_some());
    assert_eq!(
        row.verdict, row.time.verdict,
        "the row's verdict is that of time"
    );

    let mut emulated = ticks.build();
    emulated.campaign.class = Class::Emulated;
    let row = compared(&a, &emulated).rows.remove(0);
    assert!(matches!(row.verdict, Verdict::NotComparable(_)));
}

#[test]
fn local_runs_are_compared_on_one_machine_only() {
    let local = |kernel: &str| {
        let mut dataset = spec().build();
        dataset.campaign.class = Class::Local;
        dataset.environments[0].value.stable.kernel = Some(kernel.to_owned());
        dataset
    };
    assert!(compared(&local("6.1"), &local("6.1")).rows[0]
        .time
        .ratio
        .is_some());
    assert_eq!(
        compared(&local("6.1"), &local("6.2")).rows[0].time.ratio,
        None
    );
    assert_eq!(
        compared(&local("6.1"), &spec().build()).rows[0].time.ratio,
        None
    );
}

#[test]
fn disagreements_are_findings() {
    let a = spec().build();
    let mut b = spec().build();
    for entry in b.timing.values_mut() {
        entry.value.sizes.as_mut().unwrap().signature_bytes += 1;
    }
    for entry in b.kat.values_mut() {
        entry.value.digests[0].found = Some("0".repeat(64));
    }
    let comparison = compared(&a, &b);
    assert_eq!(
        comparison.findings.len(),
        12,
        "size and digest of six identities"
    );
    assert!(comparison.found_anything());
    let calls = comparison.agreement.last().unwrap();
    assert_eq!((calls.identities, calls.facts, calls.equal), (6, 180, 180));
    // One call more with the second key.
    let mut b = spec().build();
    let entry = b.profile.values_mut().next().unwrap();
    *entry.value.runs[1].calls.get_mut("pseudoXOF").unwrap() += 1;
    let comparison = compared(&a, &b);
    let [finding] = &comparison.findings[..] else {
        panic!("{:?}", comparison.findings)
    };
    assert_eq!(finding.what, "calls of keygen, key 2 (fresh inputs)");
    let texts = [&finding.a, &finding.b].map(String::as_str);
    assert_eq!(texts, ["drng 1, pseudoXOF 140", "drng 1, pseudoXOF 141"]);
}

/// The two published datasets of the repository: cells of x86_1, and imported records of arm_1.
fn published() -> [Dataset; 2] {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../performance/data");
    ["x86_1", "arm_1"].map(|system| Dataset::read(&data.join(system).join("public-2026")).unwrap())
}

/// Changes the text of a size of a published page.
fn print_signature(dataset: &mut Dataset, text: &str) {
    let cells = &mut dataset.cells.as_mut().unwrap().value;
    let sizes = cells
        .tables
        .iter_mut()
        .find(|t| t.section == "sizes")
        .unwrap();
    let column = sizes.column("signature").unwrap();
    sizes.rows[0][column].text = text.to_owned();
}

#[test]
fn only_exact_sizes_are_held_against_each_other() {
    let [mut a, b] = published();
    let sizes = |a: &Dataset| {
        let comparison = compared(a, &b);
        let sizes = comparison.agreement.iter().find(|a| a.what == Kind::Sizes);
        (sizes.unwrap().facts, comparison.findings)
    };
    assert_eq!(sizes(&a), (18, vec![]));
    for nominal in ["≈666", "≈ 666", "4627 (maximum)", "–"] {
        print_signature(&mut a, nominal);
        assert_eq!(sizes(&a), (17, vec![]), "{nominal}");
    }
    print_signature(&mut a, "137");
    let (facts, findings) = sizes(&a);
    assert_eq!((facts, findings.len()), (18, 1));
    let [finding] = &findings[..] else {
        panic!("{findings:?}")
    };
    assert_eq!([&finding.a, &finding.b].map(String::as_str), ["137", "136"]);
}

#[test]
fn what_was_not_compared_is_named() {
    let [a, b] = published();
    let missing: Vec<Kind> = compared(&a, &b).not_compared().collect();
    assert_eq!(missing, [Kind::KatDigests, Kind::Outputs, Kind::Calls]);
    let all = compared(&spec().build(), &spec().build());
    assert_eq!(all.agreement[1].what, Kind::KatResults);
    assert_eq!(all.agreement[2].what, Kind::KatDigests);
}

/// A ratio with a published cell is the quotient of the two cells that a page shows.
#[test]
fn a_ratio_with_published_cells_is_the_quotient_of_what_is_printed() {
    let [a, b] = published();
    let comparison = compared(&a, &b);
    assert_eq!(comparison.rows.len(), 18);
    for row in &comparison.rows {
        for metric in Metric::ALL {
            let of = row.of(metric);
            let [a, b] = of.values.map(Option::unwrap);
            assert_eq!(of.ratio, Some(b / a), "{}", row.identity);
        }
    }
    let is_keygen = |row: &&Row| row.identity.label == "dove_pkc_skc_256";
    let row = comparison.rows.iter().find(is_keygen).unwrap();
    assert_eq!(row.cycles.values, [Some(2.02e9), Some(1.86e9)]);
    assert_eq!(row.cycles.digits, 3);
    let fastest = comparison
        .fastest
        .iter()
        .find(|row| row.label == "dove_pkc_skc_256");
    assert_eq!(fastest.unwrap().ratio, 1.86e9 / 2.02e9);
}

#[test]
fn memory_of_published_cells_is_what_they_print() {
    let [a, b] = published();
    let [printed, imported] = compared(&a, &b).rows[0].memory;
    assert_eq!(printed.static_bytes, Some(37149));
    assert_eq!(imported.static_bytes, Some(34236));
    let [printed, imported] = [printed, imported].map(|memory| memory.resident.unwrap());
    assert_eq!(printed.peak_bytes, Some(2276 * 1024));
    assert_eq!(imported.peak_bytes.map(|bytes| bytes / 1024), Some(1960));
    assert!(printed.method.is_like(imported.method));
    let own = compared(&spec().build(), &spec().build()).rows[0].memory[0];
    assert!(!own.resident.unwrap().method.is_like(printed.method));
    assert!(own.isolated_bytes.is_some());
}

/// Other plans use another number of keys.
#[test]
fn calls_are_compared_as_far_as_both_sides_have_keys() {
    let (a, mut b) = (spec().build(), spec().build());
    for entry in b.profile.values_mut() {
        entry.value.runs.truncate(3);
    }
    let comparison = compared(&a, &b);
    assert_eq!(comparison.findings, []);
    assert_eq!(comparison.agreement.last().unwrap().facts, 3 * 18);
}

#[test]
fn the_fastest_codes_stand_side_by_side() {
    let [a, b] = two_speeds();
    let comparison = compared(&a, &b);
    assert_eq!(
        comparison.fastest.len(),
        12,
        "four labels, three operations"
    );
    for row in &comparison.fastest {
        let all = comparison
            .rows
            .iter()
            .filter(|other| other.identity.label == row.label && other.operation == row.operation);
        for (n, side) in row.sides.iter().enumerate() {
            let values = all.clone().filter_map(|other| other.cycles.values[n]);
            assert_eq!(side.value, values.fold(f64::MAX, f64::min));
        }
        assert!((row.ratio - 1.5).abs() < 0.01, "{row:?}");
    }
    // The same code on both sides has the same ratio as in its own row.
    let mut b = spec().build();
    slower(&mut b, 1.3);
    for attempt in b
        .timing
        .values_mut()
        .flat_map(|e| &mut e.value.trials[0].attempts)
    {
        attempt.cycles = attempt.cycles.map(|cycles| cycles * 2);
    }
    let other = compared(&a, &b);
    for fastest in &other.fastest {
        let identity = &fastest.sides[0].identity;
        let mut rows = other.rows.iter();
        let row = rows.find(|row| row.identity == *identity && row.operation == fastest.operation);
        assert_eq!(Some(fastest.ratio), row.unwrap().cycles.ratio);
    }
    let mean = &comparison.geometric_means[0];
    assert_eq!(mean.members.len(), 6);
    assert!((mean.ratio - 1.5).abs() < 0.01, "{mean:?}");
}

#[test]
fn ratios_to_the_reference_are_within_one_system() {
    let [a, b] = two_speeds();
    let comparison = compared(&a, &b);
    let reference = comparison.reference.clone().unwrap();
    let of_reference = |operation| {
        let mut rows = comparison.rows.iter();
        let row = rows.find(|row| row.identity == reference && row.operation == operation);
        row.unwrap().cycles.values.map(Option::unwrap)
    };
    assert_eq!(comparison.rows.len(), 18);
    for row in &comparison.rows {
        let ours = row.cycles.values.map(Option::unwrap);
        let theirs = of_reference(row.operation);
        let expected = [ours[0] / theirs[0], ours[1] / theirs[1]].map(Some);
        assert_eq!(row.to_reference, expected, "{}", row.identity);
    }
    let none = compare(&a, &b, ["a", "b"], None);
    assert_eq!(none.rows[0].to_reference, [None, None]);
}
