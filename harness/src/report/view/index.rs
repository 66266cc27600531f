//! The index of a dataset: its candidates and how far each one is.

use super::common::{kat_marks, kat_word, left_out, page_name, Frame, Place, Rows};
use super::environment;
use super::figures::Figures;
use crate::dataset::Dataset;
use crate::evidence::{KatResult, Status, TimingRecord};
use crate::report::table::{Cell, Note, Notes, Table};
use serde::Serialize;

/// All that `index.md` shows.
#[derive(Debug, Clone, Serialize)]
pub struct IndexPage {
    /// Top and foot.
    pub frame: Frame,
    /// One row per candidate.
    pub candidates: Table,
    /// Stem of the only page of a study; none for a campaign.
    pub study: Option<String>,
    /// Security targets that have a ranking, bits.
    pub targets: Vec<u32>,
    /// What was left out, one sentence a reason.
    pub left_out: Vec<String>,
    /// Name of the plan.
    pub plan: Option<String>,
    /// Start, UTC.
    pub started: Option<String>,
    /// End, UTC.
    pub ended: Option<String>,
    /// All notes.
    pub notes: Vec<Note>,
}

impl IndexPage {
    /// The index of a dataset.
    pub fn new(dataset: &Dataset, place: &Place) -> Self {
        let mut notes = Notes::default();
        let mut candidates = Table::with(&[
            "candidate",
            "name",
            "origin",
            "instances#",
            "KAT passed#",
            "operations timed#",
            "CPU",
        ]);
        for candidate in &dataset.campaign.candidates {
            let rows = Rows::of(dataset, candidate);
            if rows.shown.is_empty() || dataset.campaign.study.is_some() {
                continue;
            }
            candidates.rows.push(row(&rows, &mut notes));
        }
        let campaign = &dataset.campaign;
        IndexPage {
            frame: Frame::new(dataset, place, None, |_| Some("index.md".to_owned())),
            candidates,
            study: campaign
                .study
                .as_ref()
                .map(|_| super::STUDY_PAGE.to_owned()),
            targets: super::targets(&dataset.campaign),
            left_out: left_out(campaign, |_| true),
            plan: campaign.plan.as_ref().map(|plan| plan.name.clone()),
            started: campaign.started_utc.clone(),
            ended: campaign.ended_utc.clone(),
            notes: notes.into_list(),
        }
    }
}

fn row(rows: &Rows, notes: &mut Notes) -> Vec<Cell> {
    let candidate = rows.candidate;
    let passed = rows
        .shown
        .iter()
        .filter(|identity| kat_word(rows.dataset, identity) == Some(KatResult::Pass.word()))
        .count();
    let planned = rows.each().count();
    let timed = rows
        .each()
        .filter(|key| {
            let complete = |record: &TimingRecord| record.head.status == Status::Complete;
            rows.timing(key).is_some_and(|entry| complete(&entry.value))
                || (rows.dataset.cells.is_some() && Figures::of(rows.dataset, key).time.is_some())
        })
        .count();
    let of = |done: usize, all: usize| format!("{done} of {all}");
    let cpus = environment::cpus(rows);
    let cpu = (!cpus.is_empty()).then(|| environment::list(&cpus));
    let why_no_cpu = match rows.dataset.cells {
        Some(_) => "published cells name it in the text of the processor only (aggregate)",
        None => "nothing of it has been timed",
    };
    let passed = Cell::text(of(passed, rows.shown.len()));
    let passed = kat_marks(rows)
        .into_iter()
        .fold(passed, |cell, (label, text)| {
            cell.with_note(notes, format!("{label}: {text}"))
        });
    vec![
        Cell::code(&candidate.id).to(format!("{}.md", page_name(&candidate.id))),
        Cell::text(&candidate.name),
        Cell::text(candidate.origin.word()),
        Cell::text(rows.shown.len().to_string()),
        passed,
        Cell::text(of(timed, planned)),
        Cell::or_missing(cpu, notes, why_no_cpu),
    ]
}
