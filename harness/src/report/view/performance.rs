//! Performance: the table of means in the form of the public pages, and what those lack: trials,
//! calls, disturbances.

use super::common::{source_mean, source_title, sources, why_null, Rows};
use super::environment::{list, record_cpus};
use super::figures::FEW_CALLS;
use crate::dataset::Key;
use crate::evidence::{
    Attempt, Class, DerivedTiming, Exit, Flag, ReasonCode, Status, TimingRecord, Trial, Verdict,
};
use crate::report::format;
use crate::report::table::{Cell, Notes, Table};
use protocol::SourceKind;
use std::collections::{BTreeMap, BTreeSet};

/// Said of fewer calls than [`FEW_CALLS`] (NICCS guide §3.3).
pub(super) const FEWER_THAN_THE_GUIDE: &str =
    "fewer than the 100 measurements that the guide recommends";

/// The table of means.
pub(super) fn means(rows: &Rows, notes: &mut Notes) -> Table {
    let kinds = sources(records(rows));
    let titles: Vec<String> = kinds
        .iter()
        .map(|k| format!("{}#", source_title(*k)))
        .collect();
    let mut columns = vec!["operation"];
    columns.extend(titles.iter().map(String::as_str));
    columns.extend([
        "mean time#",
        "ops/s#",
        "median trial#",
        "n (trials × iters)#",
    ]);
    let mut table = rows.table(&columns);
    for key in rows.each() {
        let mut cells = rows.head(&key.0, notes);
        cells.push(Cell::text(key.1.name()));
        match rows.timing(&key).map(|entry| &entry.value) {
            Some(record) => cells.extend(mean_cells(record, &kinds, notes)),
            None => cells.extend(missing(kinds.len() + 4, rows, &key, notes)),
        }
        table.rows.push(cells);
    }
    table
}

/// All records of the shown rows.
pub(super) fn records<'r>(rows: &'r Rows) -> impl Iterator<Item = &'r TimingRecord> + 'r {
    rows.each()
        .filter_map(|key| rows.timing(&key).map(|entry| &entry.value))
}

/// What the sources of imported records say of disturbances, whose attempts carry no flags; `None`
/// where this program measured.
pub(super) fn stated_retries<'r>(
    records: impl Iterator<Item = &'r TimingRecord>,
) -> Option<String> {
    let mut imported = records
        .filter(|record| record.head.class == Class::Imported)
        .peekable();
    imported.peek()?;
    let stated: Option<u64> = imported.map(|r| r.stated_disturbed_retries).sum();
    Some(match stated {
        Some(1) => "the source states 1 disturbed retry; its attempts carry no flags".to_owned(),
        Some(n) => format!("the source states {n} disturbed retries; its attempts carry no flags"),
        None => {
            "the source's attempts carry no flags, and it states no disturbed retries".to_owned()
        }
    })
}

/// The operation of a record, marked where the figures beside it are of few calls.
fn operation_cell(key: &Key, derived: &DerivedTiming, notes: &mut Notes) -> Cell {
    let cell = Cell::text(key.1.name());
    match derived.n < FEW_CALLS {
        true => cell.with_note(notes, format!("n={}: {FEWER_THAN_THE_GUIDE}", derived.n)),
        false => cell,
    }
}

/// As many missing marks as a row without a record has values.
fn missing(count: usize, rows: &Rows, key: &Key, notes: &mut Notes) -> Vec<Cell> {
    let reason = rows.why_not(&key.0, "measure");
    (0..count).map(|_| Cell::missing(notes, &reason)).collect()
}

fn mean_cells(record: &TimingRecord, kinds: &[SourceKind], notes: &mut Notes) -> Vec<Cell> {
    let Some(derived) = &record.derived else {
        let reason = why_null(&record.head, "/derived");
        return (0..kinds.len() + 4)
            .map(|_| Cell::missing(notes, &reason))
            .collect();
    };
    let mut cells: Vec<Cell> = kinds
        .iter()
        .map(|kind| source_cell(record, *kind, notes))
        .collect();
    let mean = Cell::text(format::time(derived.mean_s));
    cells.push(match below_resolution(record) {
        true => mean.with_note(notes, why_null(&record.head, "/derived/quantiles")),
        false => mean,
    });
    cells.push(Cell::text(format::general3(derived.ops_per_s)));
    cells.push(Cell::text(format::time(derived.median_trial_s)));
    cells.push(count_cell(record, derived, notes));
    cells
}

/// Whether a whole trial is too short for the clock.
fn below_resolution(record: &TimingRecord) -> bool {
    let reason = record.head.missing.get("/derived/quantiles");
    reason.is_some_and(|reason| reason.code == ReasonCode::BelowResolution)
}

/// Mean cycles or ticks, or why there are none.
fn source_cell(record: &TimingRecord, kind: SourceKind, notes: &mut Notes) -> Cell {
    if let Some(mean) = source_mean(record, kind) {
        return Cell::text(format::cycles(mean));
    }
    let source = &record.cycle_source;
    let reason = match (
        &source.reason,
        kind == SourceKind::Perf || source.kind == SourceKind::None,
    ) {
        (Some(reason), true) => crate::report::table::reason_text(reason),
        _ if source.kind != kind => format!(
            "counted with {} on this row, not with {}",
            source.kind.name(),
            kind.name()
        ),
        _ => why_null(
            &record.head,
            if kind == SourceKind::Perf {
                "/derived/mean_cycles"
            } else {
                "/derived/mean_ticks"
            },
        ),
    };
    Cell::missing(notes, reason)
}

/// `105 (5 × 21)`, marked where it is fewer than planned or than the guide asks for.
fn count_cell(record: &TimingRecord, derived: &DerivedTiming, notes: &mut Notes) -> Cell {
    let counted: Vec<&Attempt> = record
        .trials
        .iter()
        .filter_map(Trial::counted_attempt)
        .collect();
    let each = counted.first().map_or(0, |attempt| attempt.calls);
    let text = if counted.iter().all(|attempt| attempt.calls == each) {
        format::n(derived.n, counted.len() as u64, each)
    } else {
        format!("{} ({} trials)", derived.n, counted.len())
    };
    let mut cell = Cell::text(text);
    if record.head.status != Status::Complete {
        let planned = record.plan.trials;
        cell = cell.with_note(
            notes,
            format!("{} of {planned} trials are counted so far", counted.len()),
        );
    }
    if derived.n < FEW_CALLS {
        cell = cell.with_note(notes, FEWER_THAN_THE_GUIDE);
    }
    cell
}

/// The trials of each operation: interval, extremes, verdict, CPU, disturbances.
pub(super) fn trials(rows: &Rows, notes: &mut Notes) -> Table {
    let mut table = rows.table(&[
        "operation",
        "95% interval#",
        "fastest trial#",
        "slowest trial#",
        "spread#",
        "stability",
        "trials for ±1%#",
        "disturbed#",
        "repeated#",
        "CPU",
    ]);
    for key in rows.each() {
        let Some(record) = rows.timing(&key).map(|entry| &entry.value) else {
            continue;
        };
        let Some(derived) = &record.derived else {
            continue;
        };
        let mut cells = rows.head(&key.0, notes);
        cells.push(operation_cell(&key, derived, notes));
        cells.extend(trial_cells(record, derived, notes));
        table.rows.push(cells);
    }
    table
}

fn trial_cells(record: &TimingRecord, derived: &DerivedTiming, notes: &mut Notes) -> Vec<Cell> {
    let spread = (derived.max_trial_s - derived.min_trial_s) / derived.median_trial_s;
    let interval = derived.ci95.map(|ci| {
        let half = (ci.high - ci.low) / 2.0;
        format!("± {}", format::share(half / derived.mean_s))
    });
    let why_interval = why_null(&record.head, "/derived/ci95");
    vec![
        Cell::or_missing(interval, notes, &why_interval),
        Cell::text(format::time(derived.min_trial_s)),
        Cell::text(format::time(derived.max_trial_s)),
        Cell::text(format::share(spread)),
        stability_cell(record, derived, notes),
        wanted_trials_cell(record, derived, notes),
        disturbed_cell(record, notes),
        repeated_cell(record, notes),
        Cell::text(list(&record_cpus(record))),
    ]
}

fn stability_cell(record: &TimingRecord, derived: &DerivedTiming, notes: &mut Notes) -> Cell {
    let Some(stability) = &derived.stability else {
        return Cell::missing(notes, why_null(&record.head, "/derived/stability"));
    };
    let word = match stability.verdict {
        Verdict::Stable => "stable",
        Verdict::Noisy => "noisy",
        Verdict::Unusable => "unusable",
    };
    let cell = Cell::text(word);
    if stability.reasons.is_empty() {
        cell
    } else {
        cell.with_note(notes, stability.reasons.join("; "))
    }
}

fn wanted_trials_cell(record: &TimingRecord, derived: &DerivedTiming, notes: &mut Notes) -> Cell {
    let Some(stability) = &derived.stability else {
        return Cell::missing(notes, why_null(&record.head, "/derived/stability"));
    };
    let wanted = stability.trials_for_1_percent.map(|n| n.to_string());
    Cell::or_missing(
        wanted,
        notes,
        "an estimate needs three trials (too_few_trials)",
    )
}

/// How many attempts were disturbed, and by what at worst.
fn disturbed_cell(record: &TimingRecord, notes: &mut Notes) -> Cell {
    if let Some(stated) = stated_retries(std::iter::once(record)) {
        return Cell::missing(notes, stated);
    }
    let attempts = record.trials.iter().flat_map(|trial| &trial.attempts);
    let disturbed = attempts.clone().filter(|a| !a.flags.is_empty()).count();
    let cell = Cell::text(disturbed.to_string());
    if disturbed == 0 {
        return cell;
    }
    let mut worst: BTreeMap<&str, &Flag> = BTreeMap::new();
    for flag in attempts.flat_map(|attempt| &attempt.flags) {
        let known = worst.entry(&flag.name).or_insert(flag);
        if (flag.value - flag.limit).abs() > (known.value - known.limit).abs() {
            *known = flag;
        }
    }
    let list: Vec<String> = worst.into_values().map(beyond).collect();
    cell.with_note(notes, format!("disturbed: {}", list.join("; ")))
}

/// A disturbance in words, with its value and its limit.
fn beyond(flag: &Flag) -> String {
    if flag.is_threads() {
        // The kernel cannot spread them: the worker is pinned, and nothing may change its affinity.
        return format!(
            "the library ran other threads ({} at worst, the calling one included), all of them on the one CPU \
             that is measured: the time is that of all, and cycles, which are counted for the calling thread \
             alone, are not given",
            format::general3(flag.value)
        );
    }
    let side = if flag.value < flag.limit {
        "below"
    } else {
        "above"
    };
    format!(
        "{} is {} at worst, {side} its limit of {}",
        flag.name,
        format::general3(flag.value),
        flag.limit
    )
}

/// How many attempts were made beyond one for each trial, and why.
fn repeated_cell(record: &TimingRecord, notes: &mut Notes) -> Cell {
    if let Some(stated) = stated_retries(std::iter::once(record)) {
        return match record.stated_disturbed_retries {
            Some(n) => Cell::text(n.to_string()).with_note(notes, NOT_KEPT),
            None => Cell::missing(notes, stated),
        };
    }
    let extra: usize = record
        .trials
        .iter()
        .map(|trial| trial.attempts.len().saturating_sub(1))
        .sum();
    let cell = Cell::text(extra.to_string());
    if extra == 0 {
        return cell;
    }
    let interrupted = record
        .trials
        .iter()
        .flat_map(|trial| &trial.attempts)
        .filter(|attempt| attempt.exit == Exit::Interrupted)
        .count();
    let mut text = "a disturbed attempt is repeated as often as the plan allows; the first undisturbed one counts, else the last".to_owned();
    if interrupted > 0 {
        text += "; attempts cut off with the orchestrator are kept and never count";
    }
    cell.with_note(notes, text)
}

/// Said of the repetitions that the source of an import states.
const NOT_KEPT: &str =
    "disturbed retries, as the source states them; it does not keep what it repeated";

/// Whether the CPU of the shown records is known from the processes' pinning only, and not from where
/// they ran: so it is in an import.
pub(super) fn pinned_only(rows: &Rows) -> bool {
    let counted = |record: &'_ TimingRecord| {
        let attempts = record.trials.iter().filter_map(Trial::counted_attempt);
        attempts.filter_map(|a| a.cpu_before).next().is_none()
    };
    records(rows).all(counted) && records(rows).any(|record| record.cpu.is_some())
}

/// Columns of [`calls`] after the operation.
const CALL_VALUES: usize = 10;

/// The calls of each operation: quantiles and robust spread of the samples.
pub(super) fn calls(rows: &Rows, notes: &mut Notes) -> Table {
    let mut table = rows.table(&[
        "operation",
        "P5#",
        "P25#",
        "median#",
        "P75#",
        "P95#",
        "P99#",
        "MAD#",
        "P75 − P25#",
        "outliers mild / severe#",
        "samples#",
    ]);
    for key in rows.each() {
        let Some(record) = rows.timing(&key).map(|entry| &entry.value) else {
            continue;
        };
        let Some(derived) = &record.derived else {
            continue;
        };
        // Where samples were not recorded at all there is nothing to show; a clock that is too coarse is said.
        if derived.quantiles.is_none() && !below_resolution(record) {
            continue;
        }
        let mut cells = rows.head(&key.0, notes);
        cells.push(operation_cell(&key, derived, notes));
        cells.extend(call_cells(record, derived, notes));
        table.rows.push(cells);
    }
    table
}

/// Why no trial has samples of single calls, where there are trials and none has any.
pub(super) fn no_calls(rows: &Rows) -> Option<String> {
    let of_record = |record: &TimingRecord| match &record.derived {
        Some(derived) if derived.quantiles.is_none() => {
            Some(why_null(&record.head, "/derived/quantiles"))
        }
        _ => None,
    };
    let derived = records(rows).filter(|record| record.derived.is_some());
    let reasons: Vec<Option<String>> = derived.map(of_record).collect();
    let all: Option<BTreeSet<String>> = reasons.into_iter().collect();
    let list: Vec<String> = all?.into_iter().collect();
    (!list.is_empty()).then(|| list.join("; "))
}

fn call_cells(record: &TimingRecord, derived: &DerivedTiming, notes: &mut Notes) -> Vec<Cell> {
    let Some(q) = &derived.quantiles else {
        let why = why_null(&record.head, "/derived/quantiles");
        return (0..CALL_VALUES)
            .map(|_| Cell::missing(notes, &why))
            .collect();
    };
    let mut cells: Vec<Cell> = [q.p5, q.p25, q.p50, q.p75, q.p95, q.p99]
        .into_iter()
        .map(|value| Cell::text(format::time(value)))
        .collect();
    let resolved = derived.mad_s.is_some_and(|mad| mad > 0.0) && q.p50 > 0.0;
    let relative = |value: f64| {
        if resolved {
            format::share(value / q.p50)
        } else {
            "below resolution".to_owned()
        }
    };
    cells.push(match derived.mad_s {
        Some(mad) => Cell::text(relative(mad)),
        None => Cell::missing(notes, why_null(&record.head, "/derived/mad_s")),
    });
    cells.push(Cell::text(relative(q.p75 - q.p25)));
    let outliers = derived
        .tukey
        .map(|tukey| format!("{} / {}", tukey.mild, tukey.severe));
    let why = why_null(&record.head, "/derived/tukey");
    cells.push(Cell::or_missing(outliers, notes, &why));
    let samples = Cell::text(q.samples.to_string());
    cells.push(if q.batch > 1 {
        samples.with_note(
            notes,
            format!("quantiles of batches of {} calls, per call", q.batch),
        )
    } else {
        samples
    });
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disturbance_is_said_with_its_value_and_its_limit() {
        let flag = |name: &str, value, limit| Flag {
            name: name.into(),
            value,
            limit,
        };
        assert_eq!(
            beyond(&flag("involuntary_switches_per_s", 78.25, 60.0)),
            "involuntary_switches_per_s is 78.2 at worst, above its limit of 60"
        );
        assert_eq!(
            beyond(&flag("min_cpu_per_wall", 0.5, 0.98)),
            "min_cpu_per_wall is 0.5 at worst, below its limit of 0.98"
        );
    }
}
