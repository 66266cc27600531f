//! The page of the message-size study.
//!
//! | file | holds |
//! |---|---|
//! | `data.rs` | the points of a dataset, found by what they are about |
//! | `tables.rs` | tables of points, models and levels |
//! | `charts.rs` | the six figures |
//! | `published.rs` | the published figures beside ours, and what their document says |

mod charts;
mod data;
mod published;
mod tables;

use super::charts::ChartView;
use super::common::{Frame, Place};
use super::environment;
use crate::dataset::Dataset;
use crate::evidence::{StudySettings, MESSAGE_SIZE};
use crate::report::html::Charts;
use crate::report::table::{Cell, Note, Notes, Table};
use crate::values::Size;
use data::Data;
use protocol::StudyMode;
use serde::Serialize;

/// Stem of the page's files.
pub const STUDY_PAGE: &str = "study-message-size";

/// All that `study-message-size.md` shows.
#[derive(Debug, Clone, Serialize)]
pub struct StudyPage {
    /// Top and foot.
    pub frame: Frame,
    /// Settings of the study.
    pub settings: Table,
    /// What each mode is.
    pub modes: Table,
    /// Whose code was measured.
    pub candidates: Table,
    /// Assessment environment.
    pub environment: Table,
    /// What the study answers, a sentence each.
    pub answers: Vec<String>,
    /// What the figures are of.
    pub of: String,
    /// Size against time, CPU and memory.
    pub by_size: Vec<Figure>,
    /// Level against time, CPU and memory.
    pub by_level: Vec<Figure>,
    /// Size of the figures of levels.
    pub level_size: String,
    /// Fitted models.
    pub models: Table,
    /// Levels against each other, where one pair of them was tested.
    pub levels: Option<Table>,
    /// Why none was.
    pub why_no_levels: Vec<String>,
    /// Tables of each instance.
    pub instances: Vec<InstanceTables>,
    /// Published figures beside ours.
    pub published: Table,
    /// Statements of the published document.
    pub statements: Table,
    /// Files of the models.
    pub fits: Table,
    /// All notes.
    pub notes: Vec<Note>,
}

/// One figure with its number.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Number.
    pub number: u32,
    /// What it shows.
    pub title: String,
    /// The chart.
    pub chart: ChartView,
}

/// Tables of one instance.
#[derive(Debug, Clone, Serialize)]
pub struct InstanceTables {
    /// `candidate/label/code/build`
    pub identity: String,
    /// Time of each point.
    pub time: Table,
    /// CPU and memory of each point.
    pub resources: Table,
    /// Reading and hashing, where a mode tells them apart.
    pub reading: Option<Table>,
}

impl StudyPage {
    /// The page of a dataset that is a study; its charts go to `charts`. `None` for a campaign.
    pub fn new(dataset: &Dataset, place: &Place, charts: &mut Charts) -> Option<Self> {
        let settings = dataset.campaign.study.as_ref()?;
        let mut notes = Notes::default();
        let data = Data::of(dataset, settings);
        let frame = Frame::new(dataset, place, Some(STUDY_PAGE), |_| None);
        let environment = environment::table_of(dataset, &data.cpus(), &mut notes);
        let figures = charts::figures(&data, charts);
        let levels = tables::levels(&data, &mut notes);
        Some(StudyPage {
            frame,
            settings: settings_table(&data, settings),
            modes: modes(settings),
            candidates: tables::candidates(&data, &mut notes),
            environment,
            answers: tables::answers(&data),
            of: figures.of,
            by_size: figures.by_size,
            by_level: figures.by_level,
            level_size: Size(data.level_size()).to_string(),
            models: tables::models(&data, &mut notes),
            why_no_levels: levels.as_ref().err().cloned().unwrap_or_default(),
            levels: levels.ok(),
            instances: data
                .identities
                .iter()
                .map(|identity| InstanceTables {
                    identity: identity.to_string(),
                    time: tables::time(&data, identity, place, &mut notes),
                    resources: tables::resources(&data, identity, &mut notes),
                    reading: tables::reading(&data, identity),
                })
                .collect(),
            published: published::figures(&data, &mut notes),
            statements: published::statements(&data),
            fits: tables::fits(&data, place),
            notes: notes.into_list(),
        })
    }
}

fn settings_table(data: &Data, settings: &StudySettings) -> Table {
    let sizes: Vec<String> = settings
        .sizes
        .iter()
        .map(|&s| Size(s).to_string())
        .collect();
    let message = match &settings.file {
        None => "generated: the programme's DRNG from the seed of study/message-size, requests of 65536 bytes; the same bytes on every machine, a longer message begins with a shorter one".to_owned(),
        Some(file) => format!(
            "a file of {} bytes with SHA-256 {}{}",
            file.bytes,
            file.sha256,
            match file.sparse {
                true => "; it has holes, which are read as zeros without any disk",
                false => "",
            }
        ),
    };
    let online = data
        .online()
        .map_or("not recorded".to_owned(), |n| n.to_string());
    let mut table = Table::with(&["item", "value"]);
    let mut item = |name: &str, value: String| {
        table.rows.push(vec![Cell::text(name), Cell::text(value)]);
    };
    item("study", MESSAGE_SIZE.to_owned());
    item("sizes", sizes.join(", "));
    item("message", message);
    item("trials of each point", settings.trials.to_string());
    item(
        "page cache",
        "warm: every file is written or read in whole before the first attempt, and each attempt has read it before its timed calls".to_owned(),
    );
    item("CPUs online", online);
    item(
        "memory guard",
        Size(settings.memory_guard_bytes).to_string(),
    );
    item(
        "limits and repeats",
        format!("those of the plan {}", settings.plan),
    );
    table
}

fn modes(settings: &StudySettings) -> Table {
    let chunk = Size(settings.chunk_bytes).to_string();
    let mut table = Table::with(&[
        "mode",
        "how the message reaches the library",
        "what its time holds",
    ]);
    for mode in &settings.modes {
        let (how, holds) = match mode {
            StudyMode::Buffer => (
                "read into memory as a whole before the calls".to_owned(),
                "the call; reading is timed apart",
            ),
            StudyMode::Mmap => (
                "mapped from the file".to_owned(),
                "the call on pages that were touched before",
            ),
            StudyMode::Stream => (
                format!("read by the library itself in chunks of {chunk}: the C is unmodified, its absorb function is hooked at the link"),
                "the call with reading and hashing, each timed apart",
            ),
            StudyMode::PrehashSha256 => (
                format!("the SHA-256 of the file, read in chunks of {chunk}, is the message"),
                "reading, hashing (each timed apart) and the call on 32 bytes",
            ),
            StudyMode::PrehashSha3 => (
                format!("the SHA3-512 of the file, read in chunks of {chunk}, is the message"),
                "reading, hashing (each timed apart) and the call on 64 bytes",
            ),
        };
        table.rows.push(vec![
            Cell::code(mode.name()),
            Cell::text(how),
            Cell::text(holds),
        ]);
    }
    table
}
