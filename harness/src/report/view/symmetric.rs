//! Symmetric primitives: which share of an operation is spent in wrapped hash functions and in the
//! DRNG, and how often they are called.

use super::common::{why_null, Rows};
use super::memory::LTO_REMOVED;
use crate::dataset::Key;
use crate::evidence::ProfileEvidence;
use crate::report::format;
use crate::report::table::{Cell, Notes, Table};
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
    let [hash, drng] = shares;
    vec![
        hash,
        drng,
        Cell::text(calls_text(&derived.calls_per_operation)),
    ]
}

/// `drng 1, pseudoXOF 140`, names sorted.
fn calls_text(calls: &std::collections::BTreeMap<String, f64>) -> String {
    let list: Vec<String> = calls
        .iter()
        .filter(|(_, number)| **number > 0.0)
        .map(|(name, number)| format!("{name} {}", format::general3(*number)))
        .collect();
    if list.is_empty() {
        "none".to_owned()
    } else {
        list.join(", ")
    }
}
