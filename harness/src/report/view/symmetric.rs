//! Symmetric primitives: which share of an operation is spent in wrapped hash functions and in the
//! DRNG, and how often they are called.

use super::common::{why_null, Rows};
use super::figures::PRINTED_ZERO;
use super::memory::LTO_REMOVED;
use crate::dataset::Key;
use crate::evidence::{CellTable, ProfileDerived, ProfileEvidence};
use crate::import::derive::{DRNG, HELPERS};
use crate::report::format;
use crate::report::table::{Cell, Notes, Table};
use protocol::ProfileRun;
use serde::Serialize;
use std::collections::BTreeSet;

/// The candidate's verdict over all profiles: theirs, where they agree. That of published cells follows
/// from the calls that they print.
pub(super) fn verdict(rows: &Rows) -> Option<String> {
    if let Some(entry) = &rows.dataset.cells {
        let cells = &entry.value;
        let table = cells.table("symmetric");
        let table = table.filter(|_| cells.candidate == rows.candidate.id)?;
        return printed_verdict(table).map(str::to_owned);
    }
    let words: BTreeSet<&str> = profiles(rows)
        .filter_map(|profile| Some(profile.derived.as_ref()?.verdict.as_str()))
        .collect();
    match words.len() {
        0 => None,
        1 => words.first().map(|word| (*word).to_owned()),
        _ => Some("mixed".to_owned()),
    }
}

/// The verdict that the printed calls allow: which functions all operations together call. `None` where
/// they call none, since cells do not say what was wrapped.
fn printed_verdict(table: &CellTable) -> Option<&'static str> {
    let column = table.column("calls per operation")?;
    let texts = table.rows.iter().filter_map(|row| row.get(column));
    let calls = texts.flat_map(|cell| cell.text.split(", "));
    // `pseudoXOF 140`: a name without a number is none (`none`, `–`).
    let names = calls.filter_map(|call| Some(call.trim().split_once(' ')?.0));
    let names: BTreeSet<&str> = names.filter(|name| *name != DRNG).collect();
    let helpers = names.iter().filter(|name| HELPERS.contains(name)).count();
    match (helpers, names.len()) {
        (_, 0) => None,
        (0, _) => Some("own primitives"),
        (helpers, all) if helpers == all => Some("ICCS-only"),
        _ => Some("mixed"),
    }
}

/// What became of the cost of the wrappers in shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Wrappers {
    /// It was measured, and is subtracted.
    Subtracted,
    /// It was not measured, and is in the shares.
    Contained,
    /// Published cells do not say.
    Unknown,
}

impl Wrappers {
    /// What became of it in these profiles.
    pub(super) fn of<'p>(profiles: impl Iterator<Item = &'p ProfileEvidence>) -> Self {
        let mut measured = profiles.map(|profile| profile.wrapper_cost_ticks.is_some());
        match measured.next() {
            None => Wrappers::Unknown,
            Some(first) if first && measured.all(|other| other) => Wrappers::Subtracted,
            Some(_) => Wrappers::Contained,
        }
    }

    /// In a sentence about the shares of a side.
    pub(super) fn sentence(self, side: &str) -> String {
        match self {
            Wrappers::Subtracted => {
                format!("From the shares of {side} the cost of the wrappers is subtracted.")
            }
            Wrappers::Contained => format!(
                "The shares of {side} contain what the wrappers cost, which was not measured: \
                 they are too high, most where many short calls are counted."
            ),
            Wrappers::Unknown => format!(
                "What became of the cost of the wrappers in the shares of {side} is not known."
            ),
        }
    }
}

/// What became of the cost of the wrappers in the shares of a candidate.
pub(super) fn wrappers(rows: &Rows) -> Wrappers {
    Wrappers::of(profiles(rows))
}

/// Said of a verdict on published cells.
pub(super) const FROM_PRINTED_CALLS: &str =
    "from the calls per operation that the published page prints";

/// Why a candidate has no verdict.
pub(super) fn why_no_verdict(rows: &Rows) -> String {
    match (rows.dataset.cells.is_some(), rows.shown.first()) {
        (true, _) => {
            "the published cells name no call that a verdict could follow from (aggregate)"
                .to_owned()
        }
        (false, Some(identity)) => rows.why_not(identity, "profile"),
        (false, None) => "nothing of it was planned (not_in_plan)".to_owned(),
    }
}

fn profiles<'r>(rows: &'r Rows) -> impl Iterator<Item = &'r ProfileEvidence> + 'r {
    rows.each()
        .filter_map(|key| rows.dataset.profile.get(&key).map(|entry| &entry.value))
}

/// How a table prints shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shares {
    /// As the public pages do, where zero and tiny ones look alike: a note tells them apart.
    AsPublished,
    /// As everywhere else.
    Plain,
}

impl Shares {
    fn cell(self, share: Option<f64>, notes: &mut Notes, why: &str) -> Cell {
        let (Some(value), Shares::AsPublished) = (share, self) else {
            return Cell::or_missing(share.map(format::share), notes, why);
        };
        let cell = Cell::text(format::share_seed(value));
        match (cell.text == PRINTED_ZERO, value == 0.0) {
            (false, _) => cell,
            (true, true) => cell.with_note(notes, "a share of exactly zero"),
            (true, false) => cell.with_note(notes, "a share above zero and below 0.05%"),
        }
    }
}

/// The table in the form of the public pages; `None` without any profile.
pub(super) fn table(rows: &Rows, shares: Shares, notes: &mut Notes) -> Option<Table> {
    profiles(rows).next()?;
    let share = format!("{}#", rows.candidate.wrap_column);
    let mut table = rows.table(&["operation", &share, "DRNG#", "calls per operation"]);
    for key in rows.each() {
        let mut cells = rows.head(&key.0, notes);
        cells.push(Cell::text(key.1.name()));
        cells.extend(cells_of(rows, &key, shares, notes));
        table.rows.push(cells);
    }
    Some(table)
}

fn cells_of(rows: &Rows, key: &Key, form: Shares, notes: &mut Notes) -> Vec<Cell> {
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
    .map(|(share, pointer)| form.cell(share, notes, &why_null(&profile.head, pointer)));
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
pub fn calls_text(derived: &ProfileDerived, runs: &[ProfileRun]) -> String {
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
    fn the_verdict_on_published_cells_follows_from_their_calls() {
        let table = |calls: &[&str]| CellTable {
            section: "symmetric".into(),
            header: [
                "instance",
                "operation",
                "SHAKE",
                "DRNG",
                "calls per operation",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: calls
                .iter()
                .map(|text| {
                    let texts = ["a", "sign", "1.0%", "0.0%", text];
                    texts.map(|text| crate::evidence::Cell {
                        text: text.into(),
                        quantity: None,
                    })
                })
                .map(Vec::from)
                .collect(),
        };
        for (calls, verdict) in [
            (
                &["drng 1, pseudoXOF 140", "pseudoXOF 3"][..],
                Some("ICCS-only"),
            ),
            (&["drng 1, shake256 9"], Some("own primitives")),
            (&["sm3hash 2", "shake256 9"], Some("mixed")),
            (&["none", "–", "drng 1"], None),
            (&[], None),
        ] {
            assert_eq!(printed_verdict(&table(calls)), verdict, "{calls:?}");
        }
    }

    #[test]
    fn a_share_of_zero_is_told_from_a_tiny_one() {
        let shown = |form: Shares, share: f64| {
            let mut notes = Notes::default();
            let cell = form.cell(Some(share), &mut notes, "");
            let note = notes.into_list().pop();
            (cell.text, note.map(|note| note.text))
        };
        let plain = |share| shown(Shares::Plain, share);
        assert_eq!(plain(0.0), ("0%".into(), None));
        assert_eq!(plain(0.0003), ("<0.1%".into(), None));
        let published = |share| shown(Shares::AsPublished, share);
        let noted = |text: &str| ("0.0%".to_owned(), Some(text.to_owned()));
        assert_eq!(published(0.0), noted("a share of exactly zero"));
        assert_eq!(
            published(0.0003),
            noted("a share above zero and below 0.05%")
        );
        assert_eq!(published(0.19), ("19%".into(), None));
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
