//! `export`: a dataset as tidy tables for other programs. One observation a row, one variable a column,
//! units in the header, nothing where a value is missing. Numbers are those of the evidence, unrounded.

use crate::dataset::{Dataset, Entry};
use crate::evidence::store::{self, StoreError};
use crate::evidence::{
    Attempt, Cell, CellTable, CellsFile, DerivedTiming, Head, StudyDerived, StudyRecord,
    TimingRecord,
};
use std::path::{Path, PathBuf};

/// Tables cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Somebody's tables are there already.
    #[error("`{}` is there already, and nothing was written: name another folder with --to, or say --overwrite", .0.display())]
    Exists(PathBuf),
    /// The folder is in a run or dataset, which tables would break.
    #[error("`{}` is in a run or dataset, whose files are sealed: name another folder with --to", .0.display())]
    InDataset(PathBuf),
    /// The file system refuses.
    #[error(transparent)]
    Write(#[from] StoreError),
}

/// A table in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Name of its file, without ending.
    pub name: &'static str,
    /// Titles of the columns.
    pub header: Vec<&'static str>,
    /// Rows of as many cells.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// As comma-separated values (RFC 4180, but lines end in LF).
    pub fn csv(&self) -> Vec<u8> {
        const MEMORY: &str = "rows are as long as the header, and memory takes them";
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.header).expect(MEMORY);
        for row in &self.rows {
            writer.write_record(row).expect(MEMORY);
        }
        writer.into_inner().expect(MEMORY)
    }
}

/// All tables of a dataset; those without rows are there too, so that readers find every file.
pub fn tables(dataset: &Dataset) -> Vec<Table> {
    vec![
        records(dataset),
        trials(dataset),
        calls(dataset),
        memory(dataset),
        study(dataset),
        cells(dataset),
    ]
}

/// Writes all tables as `<name>.csv` into a folder; returns the files. Each is whole or not there, and
/// without `overwrite` none takes the place of a file that is there.
pub fn write(
    dataset: &Dataset,
    folder: &Path,
    overwrite: bool,
) -> Result<Vec<PathBuf>, ExportError> {
    let path = |table: &Table| folder.join(format!("{}.csv", table.name));
    let tables = tables(dataset);
    let there = tables.iter().map(path).find(|path| path.exists());
    if let Some(path) = there.filter(|_| !overwrite) {
        return Err(ExportError::Exists(path));
    }
    tables
        .iter()
        .map(|table| {
            store::write_atomic(&path(table), &table.csv())?;
            Ok(path(table))
        })
        .collect()
}

/// A value or nothing.
fn cell<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A double in the shortest form that reads back as itself.
fn real(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{value:?}"))
}

const KEY: [&str; 6] = ["candidate", "label", "code", "build", "operation", "aa"];

/// Columns that say what a row is about.
fn key(head: &Head, operation: protocol::Operation, aa: bool) -> Vec<String> {
    let identity = &head.identity;
    [
        &identity.candidate,
        &identity.label,
        &identity.code,
        &identity.build,
    ]
    .into_iter()
    .cloned()
    .chain([operation.to_string(), aa.to_string()])
    .collect()
}

/// The word of an evidence enum.
fn word<T: serde::Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn timings(dataset: &Dataset) -> impl Iterator<Item = &Entry<TimingRecord>> {
    dataset.timing.values().chain(&dataset.aa)
}

fn records(dataset: &Dataset) -> Table {
    let columns = [
        "system",
        "class",
        "origin",
        "status",
        "reason",
        "cpu",
        "cycle_source",
        "no_cycles_reason",
        "trials",
        "iterations",
        "warmups",
        "calibrated_cost_s",
        "n_calls",
        "total_s",
        "mean_s",
        "ops_per_s",
        "median_trial_s",
        "min_trial_s",
        "max_trial_s",
        "ci95_low_s",
        "ci95_high_s",
        "mean_cycles",
        "mean_ticks",
        "p5_s",
        "p25_s",
        "p50_s",
        "p75_s",
        "p95_s",
        "p99_s",
        "mad_s",
        "stability",
        "most_baseline_rss_bytes",
        "most_peak_rss_bytes",
        "public_key_bytes",
        "secret_key_bytes",
        "signature_bytes",
        "kat",
        "library_sha256",
        "file",
    ];
    Table {
        name: "records",
        header: KEY.into_iter().chain(columns).collect(),
        rows: timings(dataset).map(record).collect(),
    }
}

fn record(entry: &Entry<TimingRecord>) -> Vec<String> {
    let record = &entry.value;
    let head = &record.head;
    let derived = record.derived.as_ref();
    let of = |value: fn(&DerivedTiming) -> Option<f64>| real(derived.and_then(value));
    let quantiles = derived.and_then(|d| d.quantiles);
    let counted: Vec<&Attempt> = record
        .trials
        .iter()
        .filter_map(|t| t.counted_attempt())
        .collect();
    let most =
        |value: fn(&Attempt) -> Option<u64>| cell(counted.iter().filter_map(|a| value(a)).max());
    let mut row = key(head, record.operation, record.aa);
    row.extend([
        head.system.clone(),
        word(head.class),
        word(head.origin),
        word(head.status),
        cell(head.reason.as_ref().map(|r| r.code.word())),
        cell(record.cpu),
        record.cycle_source.kind.name().to_owned(),
        cell(record.cycle_source.reason.as_ref().map(|r| r.code.word())),
        record.plan.trials.to_string(),
        record.plan.iterations.to_string(),
        record.plan.warmups.to_string(),
        real(record.plan.cost_s),
        cell(derived.map(|d| d.n)),
        of(|d| Some(d.total_s)),
        of(|d| Some(d.mean_s)),
        of(|d| Some(d.ops_per_s)),
        of(|d| Some(d.median_trial_s)),
        of(|d| Some(d.min_trial_s)),
        of(|d| Some(d.max_trial_s)),
        of(|d| d.ci95.map(|i| i.low)),
        of(|d| d.ci95.map(|i| i.high)),
        of(|d| d.mean_cycles),
        of(|d| d.mean_ticks),
    ]);
    row.extend(match quantiles {
        Some(q) => [q.p5, q.p25, q.p50, q.p75, q.p95, q.p99].map(|x| real(Some(x))),
        None => Default::default(),
    });
    row.extend([
        of(|d| d.mad_s),
        cell(
            derived
                .and_then(|d| d.stability.as_ref())
                .map(|s| word(s.verdict)),
        ),
        most(|a| a.baseline_rss_bytes),
        most(|a| a.peak_rss_bytes),
        cell(record.sizes.map(|s| s.public_key_bytes)),
        cell(record.sizes.map(|s| s.secret_key_bytes)),
        cell(record.sizes.map(|s| s.signature_bytes)),
        cell(record.kat.as_ref().map(|k| k.result.word())),
        cell(record.libraries.timed.as_ref()),
        entry.file.clone(),
    ]);
    row
}

fn trials(dataset: &Dataset) -> Table {
    let columns = [
        "trial",
        "attempt",
        "counted",
        "session",
        "started_utc",
        "exit",
        "calls",
        "time_ns",
        "cycles",
        "ticks",
        "instructions",
        "batch_calls",
        "user_ns",
        "system_ns",
        "voluntary_switches",
        "involuntary_switches",
        "minor_faults",
        "major_faults",
        "baseline_rss_bytes",
        "peak_rss_bytes",
        "cpu_before",
        "cpu_after",
        "flags",
    ];
    let mut rows = Vec::new();
    for entry in timings(dataset) {
        let record = &entry.value;
        for (trial, slot) in record.trials.iter().enumerate() {
            for (attempt, one) in slot.attempts.iter().enumerate() {
                let mut row = key(&record.head, record.operation, record.aa);
                let counted = slot.counted == u32::try_from(attempt).ok();
                row.extend([trial.to_string(), attempt.to_string(), counted.to_string()]);
                row.extend(attempt_cells(one));
                rows.push(row);
            }
        }
    }
    Table {
        name: "trials",
        header: KEY.into_iter().chain(columns).collect(),
        rows,
    }
}

fn attempt_cells(attempt: &Attempt) -> Vec<String> {
    let flags: Vec<&str> = attempt
        .flags
        .iter()
        .map(|flag| flag.name.as_str())
        .collect();
    vec![
        attempt.session.to_string(),
        cell(attempt.started_utc.as_ref()),
        word(attempt.exit),
        attempt.calls.to_string(),
        attempt.nanoseconds.to_string(),
        cell(attempt.cycles),
        cell(attempt.ticks),
        cell(attempt.instructions),
        cell(attempt.batch),
        cell(attempt.user_ns),
        cell(attempt.system_ns),
        cell(attempt.switches.map(|s| s.voluntary)),
        cell(attempt.switches.map(|s| s.involuntary)),
        cell(attempt.faults.map(|f| f.minor)),
        cell(attempt.faults.map(|f| f.major)),
        cell(attempt.baseline_rss_bytes),
        cell(attempt.peak_rss_bytes),
        cell(attempt.cpu_before),
        cell(attempt.cpu_after),
        flags.join(" "),
    ]
}

fn calls(dataset: &Dataset) -> Table {
    let columns = [
        "function",
        "group",
        "in_bits",
        "out_bits",
        "calls",
        "ticks",
        "tick_source",
        "tick_hz",
        "operations",
        "total_ticks",
        "wrapper_inside_milliticks",
        "wrapper_around_milliticks",
        "function_share",
    ];
    let mut rows = Vec::new();
    for entry in dataset.profile.values() {
        let profile = &entry.value;
        let shares = profile.derived.as_ref().and_then(|d| d.share.as_ref());
        for call in &profile.calls {
            let mut row = key(&profile.head, profile.operation, false);
            row.extend([
                call.function.clone(),
                call.group.clone(),
                call.in_bits.to_string(),
                call.out_bits.to_string(),
                call.calls.to_string(),
                call.ticks.to_string(),
                profile.ticks.source.name().to_owned(),
                cell(profile.ticks.hz),
                profile.total.operations.to_string(),
                profile.total.ticks.to_string(),
                cell(profile.wrapper_inside_milliticks),
                cell(profile.wrapper_around_milliticks),
                real(shares.and_then(|s| s.get(&call.function).copied())),
            ]);
            rows.push(row);
        }
    }
    Table {
        name: "calls",
        header: KEY.into_iter().chain(columns).collect(),
        rows,
    }
}

fn memory(dataset: &Dataset) -> Table {
    let columns = [
        "key",
        "message",
        "stack_peak_bytes",
        "heap_peak_bytes",
        "allocations",
        "leaked_bytes",
        "static_load_bytes",
        "guide_total_bytes",
    ];
    let mut rows = Vec::new();
    for entry in dataset.memory.values() {
        let memory = &entry.value;
        for run in &memory.runs {
            let mut row = key(&memory.head, memory.operation, false);
            row.extend([
                run.key.to_string(),
                run.message.to_string(),
                run.stack_peak_bytes.to_string(),
                run.heap_peak_bytes.to_string(),
                run.allocations.to_string(),
                run.leaked_bytes.to_string(),
                memory.static_.load_bytes.to_string(),
                cell(memory.derived.as_ref().map(|d| d.guide_total_bytes)),
            ]);
            rows.push(row);
        }
    }
    Table {
        name: "memory",
        header: KEY.into_iter().chain(columns).collect(),
        rows,
    }
}

/// Points of the message-size study: one a row.
fn study(dataset: &Dataset) -> Table {
    let columns = [
        "mode",
        "size_bytes",
        "chunk_bytes",
        "status",
        "reason",
        "cpu",
        "n_calls",
        "mean_s",
        "ci95_low_s",
        "ci95_high_s",
        "mean_cycles",
        "mean_ticks",
        "throughput_mb_per_s",
        "cpu_percent_one",
        "cpu_percent_all",
        "user_s",
        "system_s",
        "read_s",
        "hash_s",
        "hash_share",
        "baseline_rss_bytes",
        "peak_rss_bytes",
        "file_sha256",
        "signature_sha256",
        "file",
    ];
    Table {
        name: "study",
        header: KEY.into_iter().chain(columns).collect(),
        rows: dataset.studies.iter().map(point).collect(),
    }
}

fn point(entry: &Entry<StudyRecord>) -> Vec<String> {
    let (point, timing) = (&entry.value, &entry.value.timing);
    let (derived, study) = (timing.derived.as_ref(), point.study.as_ref());
    let of = |value: fn(&DerivedTiming) -> Option<f64>| real(derived.and_then(value));
    let its = |value: fn(&StudyDerived) -> Option<f64>| real(study.and_then(value));
    let mut row = key(&timing.head, timing.operation, timing.aa);
    row.extend([
        point.mode.name().to_owned(),
        point.size_bytes.to_string(),
        cell(point.chunk_bytes),
        word(timing.head.status),
        cell(timing.head.reason.as_ref().map(|r| r.code.word())),
        cell(timing.cpu),
        cell(derived.map(|d| d.n)),
        of(|d| Some(d.mean_s)),
        of(|d| d.ci95.map(|i| i.low)),
        of(|d| d.ci95.map(|i| i.high)),
        of(|d| d.mean_cycles),
        of(|d| d.mean_ticks),
        its(|s| s.throughput_mb_per_s),
        its(|s| Some(s.cpu_percent_one)),
        its(|s| Some(s.cpu_percent_all)),
        its(|s| Some(s.user_s)),
        its(|s| Some(s.system_s)),
        its(|s| s.read_s),
        its(|s| s.hash_s),
        its(|s| s.hash_share),
        cell(study.map(|s| s.baseline_rss_bytes)),
        cell(study.map(|s| s.peak_rss_bytes)),
        point.file_sha256.clone(),
        cell(point.signature_sha256.as_ref()),
        entry.file.clone(),
    ]);
    row
}

/// Cells of an aggregate: one a row, the first column of its table says what it is about.
fn cells(dataset: &Dataset) -> Table {
    let file = dataset.cells.as_ref().map(|entry| &entry.value);
    let rows = file.into_iter().flat_map(|cells| {
        let tables = cells.tables.iter();
        tables.flat_map(move |table| {
            table
                .rows
                .iter()
                .flat_map(move |row| cell_rows(cells, table, row))
        })
    });
    Table {
        name: "cells",
        header: vec![
            "system",
            "candidate",
            "section",
            "row",
            "operation",
            "column",
            "text",
            "value",
            "unit",
            "significant_digits",
        ],
        rows: rows.collect(),
    }
}

fn cell_rows(cells: &CellsFile, table: &CellTable, row: &[Cell]) -> Vec<Vec<String>> {
    let about = row
        .first()
        .map(|first| first.text.clone())
        .unwrap_or_default();
    let one = |(title, shown): (&String, &Cell)| {
        let quantity = shown.quantity.as_ref();
        vec![
            cells.system.clone(),
            cells.candidate.clone(),
            table.section.clone(),
            about.clone(),
            operation(&table.header, row),
            title.clone(),
            shown.text.clone(),
            real(quantity.map(|q| q.value)),
            cell(quantity.map(|q| q.unit.as_str())),
            cell(quantity.map(|q| q.digits)),
        ]
    };
    table.header.iter().zip(row).map(one).collect()
}

fn operation(header: &[String], row: &[Cell]) -> String {
    let index = header.iter().position(|title| title == "operation");
    cell(
        index
            .and_then(|index| row.get(index))
            .map(|c| c.text.as_str()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Synthetic;

    #[test]
    fn every_table_is_rectangular_and_its_columns_are_named_once() {
        let tables = tables(&Synthetic::default().build());
        let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
        let all = ["records", "trials", "calls", "memory", "study", "cells"];
        assert_eq!(names, all);
        for table in &tables {
            let mut names = table.header.clone();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.header.len(), "{}", table.name);
            assert!(
                table.rows.iter().all(|row| row.len() == table.header.len()),
                "{}",
                table.name
            );
            assert!(
                ["cells", "study"].contains(&table.name) || !table.rows.is_empty(),
                "{}",
                table.name
            );
        }
    }

    #[test]
    fn numbers_are_the_evidences_own() {
        let dataset = Synthetic::default().build();
        let (_, entry) = dataset.timing.iter().next().unwrap();
        let table = &tables(&dataset)[0];
        let column = |name: &str| table.header.iter().position(|h| *h == name).unwrap();
        let derived = entry.value.derived.as_ref().unwrap();
        assert_eq!(table.rows[0][column("mean_s")].parse(), Ok(derived.mean_s));
        assert_eq!(table.rows[0][column("n_calls")].parse(), Ok(derived.n));
        assert_eq!(
            table.rows[0][column("mean_ticks")],
            "",
            "what is missing is empty"
        );
    }

    #[test]
    fn there_is_a_row_for_each_record_attempt_and_call_shape() {
        let dataset = Synthetic::default().build();
        let count = |name: &str| {
            let tables = tables(&dataset);
            tables.iter().find(|t| t.name == name).unwrap().rows.len()
        };
        let attempts = |e: &Entry<TimingRecord>| {
            e.value
                .trials
                .iter()
                .map(|t| t.attempts.len())
                .sum::<usize>()
        };
        assert_eq!(count("records"), dataset.timing.len() + dataset.aa.len());
        assert_eq!(
            count("trials"),
            timings(&dataset).map(attempts).sum::<usize>()
        );
        assert_eq!(
            count("calls"),
            dataset
                .profile
                .values()
                .map(|e| e.value.calls.len())
                .sum::<usize>()
        );
    }
}
