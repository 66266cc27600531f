//! A candidate's page.

use super::charts::{self, ChartView};
use super::common::{evidence_cell, page_name, why_null, Frame, Place, Rows};
use super::symmetric::Shares;
use super::{aggregate, environment, memory, performance, sizes, symmetric};
use crate::dataset::{Dataset, Entry};
use crate::evidence::{
    CandidateInfo, Class, FlagsKind, KatEvidence, KatResult, LibraryKind, Origin, CAMPAIGN_FILE,
};
use crate::identity::Identity;
use crate::report::format;
use crate::report::html::Charts;
use crate::report::table::{Cell, Note, Notes, Table};
use serde::Serialize;
use std::collections::BTreeSet;

/// All that `candidate.md` shows.
#[derive(Debug, Clone, Serialize)]
pub struct CandidatePage {
    /// Top and foot.
    pub frame: Frame,
    /// Whether the cells are those of a published page, without trials.
    pub aggregate: bool,
    /// The candidate.
    pub candidate: Basics,
    /// Assessment environment.
    pub environment: Table,
    /// The clock that each CPU was found to run at, where a frequency driver answers for it.
    pub measured_clock: Option<String>,
    /// Core cycles over time of the timed calls.
    pub timed_clock: Option<String>,
    /// Whether this program measured, and not the tool of an import.
    pub own: bool,
    /// Whether the run is not finished, so that what is missing may still come.
    pub unfinished: bool,
    /// KAT results.
    pub kat: Table,
    /// Means.
    pub performance: Table,
    /// Chart of the means.
    pub means_chart: Option<ChartView>,
    /// Rows that were not planned or put off.
    pub left_out: Option<Table>,
    /// Trials.
    pub trials: Option<Table>,
    /// What the source of an import says of disturbances, in a sentence without its end.
    pub stated_retries: Option<String>,
    /// Whether the CPU is known from the processes' pinning only.
    pub pinned_only: bool,
    /// Chart of the trials.
    pub trials_chart: Option<ChartView>,
    /// Calls.
    pub calls: Option<Table>,
    /// Why there are none, where trials have no samples of single calls.
    pub no_calls: Option<String>,
    /// Image and resident set.
    pub resident: Table,
    /// Whether resident sets are maxima over processes, as the source of an import states them.
    pub resident_maxima: bool,
    /// Parts of the static image.
    pub static_parts: Option<Table>,
    /// Memory in isolation.
    pub isolated: Option<Table>,
    /// Sizes.
    pub sizes: Table,
    /// Verdict on symmetric primitives.
    pub symmetric_verdict: Option<String>,
    /// What became of the cost of the wrappers.
    pub symmetric_wrappers: symmetric::Wrappers,
    /// Symmetric share.
    pub symmetric: Option<Table>,
    /// Chart of the symmetric share.
    pub symmetric_chart: Option<ChartView>,
    /// Raw evidence.
    pub evidence: Table,
    /// All notes.
    pub notes: Vec<Note>,
}

/// What is known of a candidate beside measurements.
#[derive(Debug, Clone, Serialize)]
pub struct Basics {
    /// `sign-09`.
    pub id: String,
    /// `DOVE`.
    pub name: String,
    /// `public-key algorithm`.
    pub category: String,
    /// `digital signature`.
    pub function: String,
    /// `submission`, `upstream`, `independent`.
    pub origin: String,
    /// The same in a sentence.
    pub origin_text: String,
    /// Where the algorithm is specified.
    pub specification: Option<String>,
    /// The guide's versions that were measured.
    pub versions: Vec<String>,
    /// Labels.
    pub labels: Vec<String>,
    /// Links by name.
    pub links: Vec<Link>,
}

/// A link of a candidate.
#[derive(Debug, Clone, Serialize)]
pub struct Link {
    /// What it is.
    pub name: String,
    /// Where it leads.
    pub href: String,
}

impl CandidatePage {
    /// The page of a candidate of a dataset; its charts go to `charts`.
    pub fn new(
        dataset: &Dataset,
        candidate: &CandidateInfo,
        place: &Place,
        charts: &mut Charts,
    ) -> Self {
        let rows = Rows::of(dataset, candidate);
        let mut notes = Notes::default();
        let file = format!("{}.md", page_name(&candidate.id));
        let frame = Frame::new(dataset, place, Some(&candidate.id), |system| {
            let there = system.candidates.contains(&candidate.id);
            there.then(|| file.clone())
        });
        let filled = |table: Table| (!table.is_empty()).then_some(table);
        let printed = |section: &str, notes: &mut Notes| aggregate::table(&rows, section, notes);
        CandidatePage {
            frame,
            aggregate: dataset.cells.is_some(),
            candidate: basics(&rows),
            environment: printed("environment", &mut notes)
                .unwrap_or_else(|| environment::table(&rows, &mut notes)),
            measured_clock: environment::measured_clock(dataset, &environment::cpus(&rows)),
            timed_clock: environment::timed_clock(dataset, rows.each()),
            own: dataset.campaign.provenance.is_none(),
            unfinished: dataset.campaign.ended_utc.is_none(),
            kat: printed("kat", &mut notes).unwrap_or_else(|| kat(&rows, &mut notes)),
            performance: printed("performance", &mut notes)
                .unwrap_or_else(|| performance::means(&rows, &mut notes)),
            means_chart: charts::means(&rows, charts),
            left_out: left_out(&rows),
            trials: filled(performance::trials(&rows, &mut notes)),
            stated_retries: performance::stated_retries(performance::records(&rows)),
            pinned_only: performance::pinned_only(&rows),
            trials_chart: charts::trials(&rows, charts),
            calls: filled(performance::calls(&rows, &mut notes)),
            no_calls: performance::no_calls(&rows),
            resident: printed("resource", &mut notes)
                .unwrap_or_else(|| memory::resident(&rows, &mut notes)),
            resident_maxima: dataset.campaign.class == Class::Imported,
            static_parts: memory::static_parts(&rows, &mut notes),
            isolated: memory::isolated(&rows, &mut notes),
            sizes: printed("sizes", &mut notes)
                .unwrap_or_else(|| sizes::table(&rows, place, &mut notes)),
            symmetric_verdict: symmetric::verdict(&rows),
            symmetric_wrappers: symmetric::wrappers(&rows),
            symmetric: printed("symmetric", &mut notes)
                .or_else(|| symmetric::table(&rows, Shares::AsPublished, &mut notes)),
            symmetric_chart: charts::symmetric(&rows, charts),
            evidence: evidence(&rows, place, &mut notes),
            notes: notes.into_list(),
        }
    }
}

fn basics(rows: &Rows) -> Basics {
    let candidate = rows.candidate;
    let measured: BTreeSet<&str> = rows
        .each()
        .filter(|key| rows.timing(key).is_some() || rows.dataset.cells.is_some())
        .filter_map(|key| rows.shown.iter().find(|id| ***id == key.0))
        .map(|identity| identity.build.as_str())
        .collect();
    let mut labels: Vec<String> = Vec::new();
    for identity in &rows.shown {
        if !labels.contains(&identity.label) {
            labels.push(identity.label.clone());
        }
    }
    Basics {
        id: candidate.id.clone(),
        name: candidate.name.clone(),
        category: candidate.category.clone(),
        function: candidate.function.clone(),
        origin: candidate.origin.word().to_owned(),
        origin_text: origin_text(candidate.origin).to_owned(),
        specification: candidate.specification.clone(),
        versions: in_guide_order(&measured),
        labels,
        links: candidate
            .links
            .iter()
            .map(|(name, href)| Link {
                name: name.clone(),
                href: href.clone(),
            })
            .collect(),
    }
}

/// The guide's versions first, in its order.
fn in_guide_order(builds: &BTreeSet<&str>) -> Vec<String> {
    let guide = ["reference", "performance", "resource"];
    let first = guide.into_iter().filter(|build| builds.contains(build));
    let rest = builds
        .iter()
        .copied()
        .filter(|build| !guide.contains(build));
    first.chain(rest).map(str::to_owned).collect()
}

fn origin_text(origin: Origin) -> &'static str {
    match origin {
        Origin::Submission => "the submitters' own source",
        Origin::Upstream => "a maintained library",
        Origin::Independent => {
            "our own implementation of the public specification, not the submitters' source"
        }
    }
}

fn kat(rows: &Rows, notes: &mut Notes) -> Table {
    // A source that does not count its vectors has no such column: it would be empty.
    let counts = |identity: &&Identity| {
        let entry = rows.dataset.kat_of(identity);
        entry.is_some_and(|e| reproduced(&e.value).is_some())
    };
    let vectors = rows.shown.iter().any(counts);
    let columns = ["build flags", "KAT", "published vectors reproduced#"];
    let mut table = rows.table(&columns[..if vectors { 3 } else { 2 }]);
    for identity in &rows.shown {
        let mut cells = rows.head(identity, notes);
        cells.push(flags_cell(rows, identity, notes));
        cells.push(kat_cell(rows, identity, notes));
        if vectors {
            cells.push(vectors_cell(rows, identity, notes));
        }
        table.rows.push(cells);
    }
    table
}

fn flags_cell(rows: &Rows, identity: &Identity, notes: &mut Notes) -> Cell {
    let Some(row) = rows.dataset.build_row(identity) else {
        return Cell::missing(notes, rows.why_not(identity, "build"));
    };
    match row.flags_kind {
        FlagsKind::Guide => Cell::text("guide"),
        FlagsKind::HarnessDefault => Cell::text("harness-default").with_note(
            notes,
            "it does not build with the guide's flags; built with those of the campaign",
        ),
    }
}

fn kat_cell(rows: &Rows, identity: &Identity, notes: &mut Notes) -> Cell {
    let Some(entry) = rows.dataset.kat_of(identity) else {
        return Cell::missing(notes, rows.why_not(identity, "kat"));
    };
    let evidence = &entry.value;
    let cell = Cell::text(evidence.result.word());
    if evidence.result == KatResult::Pass {
        return cell;
    }
    match &evidence.detail {
        Some(detail) => cell.with_note(notes, detail),
        None => cell.with_note(notes, why_null(&evidence.head, "/detail")),
    }
}

/// How many published vectors the library reproduced, and of how many: of each stream with a published
/// digest, all or none. `None` when the evidence does not say how many a stream holds.
fn reproduced(evidence: &KatEvidence) -> Option<Vec<(u32, u32)>> {
    let published = evidence.digests.iter().filter(|d| d.expected.is_some());
    let equal = published.map(|d| {
        let records = d.records?;
        Some((if d.expected == d.found { records } else { 0 }, records))
    });
    equal.collect()
}

/// The vectors of the longest stream.
fn vectors_cell(rows: &Rows, identity: &Identity, notes: &mut Notes) -> Cell {
    let Some(entry) = rows.dataset.kat_of(identity) else {
        return Cell::missing(notes, rows.why_not(identity, "kat"));
    };
    let Some(equal) = reproduced(&entry.value) else {
        let why = why_null(&entry.value.head, "/digests/*/records");
        return Cell::missing(notes, why);
    };
    let none = "nothing is published to compare with (kat_nokat)";
    let most = equal.into_iter().max();
    let most = most.map(|(n, all)| format!("{n} of {all}"));
    Cell::or_missing(most, notes, none)
}

/// Rows that were not planned or put off, one line per reason and label.
fn left_out(rows: &Rows) -> Option<Table> {
    let mut table = Table::with(&["instance", "code", "build", "reason"]);
    for (identity, reason) in &rows.left_out {
        table.rows.push(vec![
            Cell::code(&identity.label),
            Cell::text(&identity.code),
            Cell::text(&identity.build),
            Cell::text(crate::report::table::reason_text(reason)),
        ]);
    }
    (!table.is_empty()).then_some(table)
}

/// Every evidence file behind the page, with its digest.
fn evidence(rows: &Rows, place: &Place, notes: &mut Notes) -> Table {
    let dataset = rows.dataset;
    let mut table = rows.table(&["item", "file", "SHA-256"]);
    let mut add = |identity: &Identity, item: String, file: &str, digest: &str| {
        let mut cells = rows.head(identity, notes);
        cells.push(Cell::text(item));
        cells.push(evidence_cell(place, file));
        cells.push(Cell::code(format::digest16(digest)));
        table.rows.push(cells);
    };
    for identity in &rows.shown {
        for kind in [
            LibraryKind::Timed,
            LibraryKind::Profile,
            LibraryKind::Memory,
        ] {
            if let Some(entry) = dataset.kat.get(&((*identity).clone(), kind)) {
                let of = match kind {
                    LibraryKind::Timed => String::new(),
                    other => format!(" of the {} library", other.name()),
                };
                let log = &entry.value;
                add(identity, format!("KAT log{of}"), &log.log, &log.log_sha256);
                add(
                    identity,
                    format!("KAT result{of}"),
                    &entry.file,
                    &entry.sha256,
                );
            }
        }
        for operation in &rows.operations {
            let key = ((*identity).clone(), *operation);
            let mut item = |what: &str, file: Option<(&str, &str)>| {
                if let Some((file, digest)) = file {
                    add(identity, format!("{what} {operation}"), file, digest);
                }
            };
            item("calibration", of(dataset.calibrate.get(&key)));
            item("timing", of(dataset.timing.get(&key)));
            item("memory", of(dataset.memory.get(&key)));
            item("hash profile", of(dataset.profile.get(&key)));
        }
    }
    let mut of_all = |item: &str, file: &str, digest: &str| {
        let mut cells = vec![Cell::text(ALL)];
        cells.extend(
            rows.builds
                .then(|| [Cell::text(ALL), Cell::text(ALL)])
                .into_iter()
                .flatten(),
        );
        cells.extend([
            Cell::text(item),
            evidence_cell(place, file),
            Cell::code(format::digest16(digest)),
        ]);
        table.rows.push(cells);
    };
    of_all("plan and rows", CAMPAIGN_FILE, &dataset.campaign_sha256);
    for entry in &dataset.environments {
        of_all("environment", &entry.file, &entry.sha256);
    }
    if let Some(entry) = &dataset.build {
        of_all("builds", &entry.file, &entry.sha256);
    }
    if let Some(entry) = &dataset.cells {
        of_all("published cells", &entry.file, &entry.sha256);
    }
    table
}

/// Stands where a file is of all instances.
const ALL: &str = "all";

/// File and digest of an entry.
fn of<T>(entry: Option<&Entry<T>>) -> Option<(&str, &str)> {
    entry.map(|entry| (entry.file.as_str(), entry.sha256.as_str()))
}
