//! The index of systems: the current dataset of each.

use super::common::{arch_name, warnings};
use crate::dataset::Dataset;
use crate::evidence::Class;
use crate::report::format;
use crate::report::table::{Cell, Note, Notes, Table};
use serde::Serialize;

/// All that `systems.md` shows.
#[derive(Debug, Clone, Serialize)]
pub struct SystemsPage {
    /// Title of all pages.
    pub site: String,
    /// One row per system.
    pub systems: Table,
    /// Comparisons by name, with the page of each.
    pub comparisons: Vec<super::common::Crumb>,
    /// All notes.
    pub notes: Vec<Note>,
}

/// A system in the index.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemRow {
    site: String,
    system: String,
    folder: String,
    arch: String,
    processor: Option<String>,
    class: &'static str,
    candidates: usize,
    start: Option<String>,
    warnings: Vec<String>,
}

impl SystemRow {
    /// The row of a dataset whose pages are in `folder`.
    pub fn of(dataset: &Dataset, folder: &str) -> Self {
        let campaign = &dataset.campaign;
        let cells = dataset.cells.as_ref().map(|entry| &entry.value);
        let printed = cells.and_then(|cells| {
            let rows = &cells.table("environment")?.rows;
            let row = rows
                .iter()
                .find(|row| row.first().is_some_and(|c| c.text == "processor"))?;
            Some(row.get(1)?.text.clone())
        });
        SystemRow {
            site: campaign.title.clone(),
            system: campaign.system.clone(),
            folder: folder.to_owned(),
            arch: arch_name(&campaign.arch).to_owned(),
            processor: printed.or_else(|| dataset.environment()?.stable.cpu_model.clone()),
            class: class_word(campaign.class),
            candidates: super::candidates_with_page(campaign).len(),
            start: campaign.started_utc.as_deref().map(format::date),
            warnings: warnings(dataset),
        }
    }
}

/// The word of a class on pages.
pub(super) fn class_word(class: Class) -> &'static str {
    match class {
        Class::Local => "local: not a registered system",
        Class::Registered => "measured",
        Class::Emulated => "emulated: functional only",
        Class::Imported => "imported evidence",
        Class::Aggregate => "published cells, without trials",
        Class::Published => "figures quoted from a document",
    }
}

impl SystemsPage {
    /// The index of all systems.
    pub fn new(rows: &[SystemRow], comparisons: &[String]) -> Self {
        let mut notes = Notes::default();
        let mut systems = Table::with(&[
            "system",
            "architecture",
            "processor",
            "candidates#",
            "kind",
            "start (UTC)",
        ]);
        for row in rows {
            let mut name = Cell::code(&row.system).to(format!("{}/index.md", row.folder));
            for warning in &row.warnings {
                name = name.with_note(&mut notes, warning);
            }
            let unknown = "not recorded (not_recorded)";
            systems.rows.push(vec![
                name,
                Cell::text(&row.arch),
                Cell::or_missing(row.processor.clone(), &mut notes, unknown),
                Cell::text(row.candidates.to_string()),
                Cell::text(row.class),
                Cell::or_missing(row.start.clone(), &mut notes, unknown),
            ]);
        }
        let comparisons = comparisons.iter().map(|name| {
            let href = format!("compare/{}.md", crate::report::escape::path_part(name));
            super::common::Crumb::new(name.replace("--", " against "), Some(href))
        });
        SystemsPage {
            site: rows
                .first()
                .map_or_else(String::new, |row| row.site.clone()),
            systems,
            comparisons: comparisons.collect(),
            notes: notes.into_list(),
        }
    }
}
