//! Symmetric primitives: which share of an operation is spent in wrapped hash functions and in the
//! DRNG, and how often they are called.

use super::common::{why_null, Rows};
use super::memory::LTO_REMOVED;
use crate::dataset::Key;
use crate::evidence::{ProfileDerived, ProfileEvidence};
use crate::report::format;
use crate::report::table::{Cell, Notes, Table};
use protocol::ProfileRun;
use std::collections::BTreeSet;

/// The candidate's verdict over all profiles: theirs, where they agree.
pub(super) fn verdict(rows: &Rows) -> Option<String> {
    let words: BTreeSet<&str> = profiles(rows)
        .filter_map(|profile| Some(profile.derived.as_ref()?.verdict.as_str()))
        .collect();
    match words.len() {
        0 => None,
        1 => words.first().map(|word| (*word).to_owned()),
        _ => Some("mixed".to_owned()),
    }
}

/// What became of the cost of the wrappers in the shares of a candidate.
pub(super) fn wrappers(rows: &Rows) -> &'static str {
    let mut measured = profiles(rows).map(|profile| profile.wrapper_cost_ticks.is_some());
    match measured.next() {
        None => "unknown",
        Some(first) if first && measured.all(|other| other) => "subtracted",
        Some(_) => "contained",
    }
}

/// Why a candidate has no verdict.
pub(super) fn why_no_verdict(rows: &Rows) -> String {
    match (rows.dataset.cells.is_some(), rows.shown.first()) {
        (true, _) => "the published cells hold no verdict (aggregate)".to_owned(),
        (false, Some(identity)) => rows.why_not(identity, "profile"),
        (false, None) => "nothing of it was planned (not_in_plan)".to_owned(),
    }
}

fn profiles<'r>(rows: &'r Rows) -> impl Iterator<Item = &'r ProfileEvidence> + 'r {
    rows.each()
        .filter_map(|key| rows.dataset.profile.get(&key).map(|entry| &entry.value))
}

/// The table in the form of the public pages; `None` without any profile.
pub(super) fn table(rows: &Rows, notes: &mut Notes) -> Option<Table> {
    profiles(rows).next()?;
    let share = format!("{}#", rows.candidate.wrap_column);
    let mut table = rows.table(&["operation", &share, "DRNG#", "calls per operation"]);
    for key in rows.each() {
        let mut cells = rows.head(&key.0, notes);
        cells.push(Cell::text(key.1.name()));
        cells.extend(cells_of(rows, &key, notes));
        table.rows.push(cells);
    }
    Some(table)
}

fn cells_of(rows: &Rows, key: &Key, notes: &mut Notes) -> Vec<Cell> {
    let Some(profile) = rows.dataset.profile.get(key).map(|entry| &entry.value) else {
        let why = rows.why_not(&key.0, "profile");
        return (0..3).map(|_| Cell::missing(notes, &why)).collect();
    };
    let Some(derived) = &profile.derived else {
        let why = why_null(&profile.head, "/derived");
        return (0..3).map(|_| Cell::missing(notes, &why)).collect();
    };
    let mut shares = [
        (derived.hash_share, "/derived/hash_share"),
        (derived.drng_share, "/derived/drng_share"),
    ]
    .map(|(share, pointer)| {
        Cell::or_missing(
            share.map(format::share_seed),
            notes,
            &why_null(&profile.head, pointer),
        )
    });
    if profile.lto_removed == Some(true) {
        shares[0] = std::mem::take(&mut shares[0]).with_note(notes, LTO_REMOVED);
    }
    if let Some(text) = disturbed(profile) {
        shares = shares.map(|cell| cell.with_note(notes, &text));
    }
    let [hash, drng] = shares;
    vec![hash, drng, Cell::text(calls_text(derived, &profile.runs))]
}

/// What a reader must know where keys have no undisturbed pass: how many, and how bad the worst was.
fn disturbed(profile: &ProfileEvidence) -> Option<String> {
    let bad = profile.passes.iter().filter(|key| key.all_disturbed());
    let worst = bad.clone().map(|key| key.involuntary_switches).max();
    let count = bad.count();
    (count > 0).then(|| {
        format!(
            "the machine was busy: for {count} of {} keys every pass was disturbed (switched out more often than once in 100 ms, or off the CPU for more than 1% of the time); the worst of those that count has {} involuntary switches",
            profile.passes.len(),
            worst.unwrap_or(0)
        )
    })
}

/// `drng 1, pseudoXOF 140`, names sorted. Where draws were rejected, the base count is that of the
/// operations without any, and what each of them costs stands beside it:
/// `pseudoXOF 3 + 1 × rejected (2 in 20 operations)`.
fn calls_text(derived: &ProfileDerived, runs: &[ProfileRun]) -> String {
    let rejected = derived.rejected_draws.unwrap_or(0);
    let operations = runs.len();
    let base: Vec<&ProfileRun> = runs.iter().filter(|run| run.rejected_draws == 0).collect();
    let told = rejected > 0 && !base.is_empty();
    let one = |(name, mean): (&String, &f64)| {
        if !told {
            return format!("{name} {}", format::general3(*mean));
        }
        let calls: u64 = base.iter().filter_map(|run| run.calls.get(name)).sum();
        let each = calls as f64 / base.len() as f64;
        let more = (mean - each) * operations as f64 / rejected as f64;
        // Calls are whole numbers: less than this is the rounding of the mean.
        match more.abs() < 1e-6 {
            true => format!("{name} {}", format::general3(each)),
            false => format!(
                "{name} {} + {} × rejected",
                format::general3(each),
                format::general3(more)
            ),
        }
    };
    let called = derived
        .calls_per_operation
        .iter()
        .filter(|(_, n)| **n > 0.0);
    let list: Vec<String> = called.map(one).collect();
    let list = match list.is_empty() {
        true => "none".to_owned(),
        false => list.join(", "),
    };
    match (rejected, told) {
        (0, _) => list,
        (_, true) => format!("{list} ({rejected} in {operations} operations)"),
        (_, false) => format!("{list} ({rejected} draws rejected in {operations} operations)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn named<T: Copy>(all: &[(&str, T)]) -> BTreeMap<String, T> {
        all.iter().map(|&(name, n)| (name.to_owned(), n)).collect()
    }

    fn text(runs: &[ProfileRun]) -> String {
        let mut calls: BTreeMap<String, f64> = named(&[("sm3hash", 0.0)]);
        for (name, n) in runs.iter().flat_map(|run| &run.calls) {
            *calls.entry(name.clone()).or_default() += *n as f64 / runs.len() as f64;
        }
        let derived = ProfileDerived {
            share: None,
            hash_share: None,
            drng_share: None,
            calls_per_operation: calls,
            rejected_draws: Some(runs.iter().map(|run| run.rejected_draws).sum()),
            verdict: "ICCS-only".into(),
        };
        calls_text(&derived, runs)
    }

    #[test]
    fn rejected_draws_stand_beside_the_base_count() {
        // Each rejected draw makes two calls more.
        let run = |rejected_draws| ProfileRun {
            calls: named(&[("pseudoXOF", 3 + 2 * rejected_draws), ("drng", 1)]),
            rejected_draws,
        };
        let runs = |rejected: [u64; 4]| rejected.map(run);
        assert_eq!(text(&runs([0; 4])), "drng 1, pseudoXOF 3");
        assert_eq!(
            text(&runs([0, 2, 0, 1])),
            "drng 1, pseudoXOF 3 + 2 × rejected (3 in 4 operations)"
        );
        // Every operation rejected something: no base is known.
        assert_eq!(
            text(&runs([1, 1, 1, 2])),
            "drng 1, pseudoXOF 5.5 (5 draws rejected in 4 operations)"
        );
        let none = ProfileRun {
            calls: named(&[]),
            rejected_draws: 0,
        };
        assert_eq!(text(&[none]), "none");
    }
}
