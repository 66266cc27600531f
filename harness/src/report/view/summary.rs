//! The summary of a system: all candidates, their means with symmetric share and number of calls.
//! The rankings of a security target: the same cells, cheapest first.

use super::common::{
    kat_mark, left_out, page_name, shown_identities, source_title, Frame, Place, Rows, SOURCES,
};
use super::figures::{Figures, Share};
use super::symmetric::{self, Wrappers};
use crate::dataset::Dataset;
use crate::evidence::CampaignFile;
use crate::identity::Identity;
use crate::report::table::{Cell, Note, Notes, Table};
use protocol::{Operation, SourceKind};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A table with the source of its cells.
#[derive(Debug, Clone, Serialize)]
pub struct SourceTable {
    /// `mean cycles`, `mean TSC ticks`, `mean CNTVCT ticks`, `mean time`.
    pub title: String,
    /// The table.
    pub table: Table,
}

/// All that `summary.md` shows.
#[derive(Debug, Clone, Serialize)]
pub struct SummaryPage {
    /// Top and foot.
    pub frame: Frame,
    /// One table per kind of counter.
    pub means: Vec<SourceTable>,
    /// Mean times of all.
    pub times: Table,
    /// Names of the wrapped functions, where they are the same for all.
    pub wrapped: Option<String>,
    /// What became of the cost of the wrappers in the shares, a sentence each.
    pub wrappers: Vec<String>,
    /// Why there are neither cycles nor ticks, where no row has any.
    pub no_means: Option<String>,
    /// What has no place in the tables, one sentence a reason.
    pub left_out: Vec<String>,
    /// All notes.
    pub notes: Vec<Note>,
}

/// A row with all that the pages of this module need.
struct Line<'a> {
    rows: usize,
    identity: &'a Identity,
    figures: BTreeMap<Operation, Figures>,
}

/// All shown rows of a dataset.
struct Lines<'a> {
    all: Vec<Rows<'a>>,
    lines: Vec<Line<'a>>,
    operations: Vec<Operation>,
    builds: bool,
}

impl<'a> Lines<'a> {
    fn of(dataset: &'a Dataset) -> Self {
        let candidates = &dataset.campaign.candidates;
        let all: Vec<Rows> = candidates.iter().map(|c| Rows::of(dataset, c)).collect();
        let mut lines = Vec::new();
        for (index, rows) in all.iter().enumerate() {
            for identity in &rows.shown {
                let figures = rows.operations.iter().map(|operation| {
                    let key = ((*identity).clone(), *operation);
                    (*operation, Figures::of(dataset, &key))
                });
                lines.push(Line {
                    rows: index,
                    identity,
                    figures: figures.collect(),
                });
            }
        }
        let operations: BTreeSet<Operation> = lines
            .iter()
            .flat_map(|line| line.figures.keys().copied())
            .collect();
        let builds = all.iter().any(|rows| rows.builds);
        Lines {
            all,
            lines,
            operations: operations.into_iter().collect(),
            builds,
        }
    }

    fn table(&self, titles: &[String]) -> Table {
        let mut columns = vec!["instance", "candidate"];
        if self.builds {
            columns.extend(["code", "build"]);
        }
        columns.extend(titles.iter().map(String::as_str));
        Table::with(&columns)
    }

    fn head(&self, line: &Line, notes: &mut Notes) -> Vec<Cell> {
        let rows = &self.all[line.rows];
        let mut label = Cell::code(&line.identity.label);
        if let Some(text) = kat_mark(rows.dataset, line.identity) {
            label = label.with_note(notes, text);
        }
        let candidate =
            Cell::text(&rows.candidate.id).to(format!("{}.md", page_name(&rows.candidate.id)));
        let mut cells = vec![label, candidate];
        if self.builds {
            cells.push(Cell::text(&line.identity.code));
            cells.push(Cell::text(&line.identity.build));
        }
        cells
    }

    /// Kinds of counters that rows have, in column order.
    fn kinds(&self) -> Vec<SourceKind> {
        let found: BTreeSet<SourceKind> = self
            .lines
            .iter()
            .flat_map(|line| line.figures.values())
            .filter(|figures| figures.mean.is_some())
            .map(|figures| figures.source)
            .collect();
        SOURCES
            .into_iter()
            .filter(|kind| found.contains(kind))
            .collect()
    }

    /// Why no row has cycles or ticks.
    fn why_no_means(&self) -> String {
        let figures = self.lines.iter().flat_map(|line| line.figures.values());
        let reasons: BTreeSet<&str> = figures.filter_map(|f| f.reason.as_deref()).collect();
        reasons.into_iter().collect::<Vec<_>>().join("; ")
    }

    /// Names of what was wrapped, where they are the same for all candidates.
    fn wrapped(&self) -> Option<String> {
        let names: BTreeSet<&str> = self
            .all
            .iter()
            .filter(|rows| !rows.shown.is_empty())
            .map(|rows| rows.candidate.wrap_column.as_str())
            .collect();
        (names.len() == 1).then(|| names.into_iter().collect())
    }

    /// What became of the cost of the wrappers in the shares that the lines show: a sentence for all
    /// candidates of which the same holds.
    fn wrappers(&self) -> Vec<String> {
        let with_shares = self.lines.iter().filter(|line| {
            let mut figures = line.figures.values();
            figures.any(|figures| matches!(figures.share, Share::Known(_)))
        });
        let shown: BTreeSet<usize> = with_shares.map(|line| line.rows).collect();
        let mut alike: Vec<(Wrappers, Vec<&str>)> = Vec::new();
        for rows in shown.into_iter().map(|index| &self.all[index]) {
            let wrappers = symmetric::wrappers(rows);
            let id = rows.candidate.id.as_str();
            match alike.iter_mut().find(|(other, _)| *other == wrappers) {
                Some((_, ids)) => ids.push(id),
                None => alike.push((wrappers, vec![id])),
            }
        }
        let sentences = alike.into_iter();
        sentences
            .map(|(wrappers, ids)| wrappers.sentence(&ids.join(", ")))
            .collect()
    }
}

impl SummaryPage {
    /// The summary of a dataset.
    pub fn new(dataset: &Dataset, place: &Place) -> Self {
        let lines = Lines::of(dataset);
        let mut notes = Notes::default();
        let wrapped = lines.wrapped();
        let kinds = lines.kinds();
        let means = kinds.iter().map(|kind| SourceTable {
            title: source_title(*kind).to_owned(),
            table: means(
                &lines,
                *kind,
                kinds.len() > 1,
                wrapped.is_none(),
                &mut notes,
            ),
        });
        let means = means.collect();
        let times = times(&lines, kinds.is_empty(), &mut notes);
        SummaryPage {
            frame: Frame::new(dataset, place, Some("summary"), |_| {
                Some("summary.md".to_owned())
            }),
            means,
            times,
            wrapped,
            wrappers: lines.wrappers(),
            no_means: kinds.is_empty().then(|| lines.why_no_means()),
            left_out: left_out(&dataset.campaign, |_| true),
            notes: notes.into_list(),
        }
    }
}

/// Rows of one kind of counter; where it is the only kind, all rows.
fn means(
    lines: &Lines,
    kind: SourceKind,
    only_these: bool,
    name_wrapped: bool,
    notes: &mut Notes,
) -> Table {
    let mut titles: Vec<String> = lines.operations.iter().map(|op| format!("{op}#")).collect();
    if name_wrapped {
        titles.push("share of".to_owned());
    }
    let mut table = lines.table(&titles);
    for line in &lines.lines {
        let of_kind = line
            .figures
            .values()
            .any(|f| f.source == kind && f.mean.is_some());
        if only_these && !of_kind {
            continue;
        }
        let mut cells = lines.head(line, notes);
        for operation in &lines.operations {
            cells.push(match line.figures.get(operation) {
                Some(figures) => figures.mean_cell(notes),
                None => Cell::missing(notes, NO_SUCH),
            });
        }
        if name_wrapped {
            cells.push(Cell::text(&lines.all[line.rows].candidate.wrap_column));
        }
        table.rows.push(cells);
    }
    table
}

const NO_SUCH: &str = "this candidate has no such operation";

/// Times of all rows, with the symmetric share where no other table has it.
fn times(lines: &Lines, with_share: bool, notes: &mut Notes) -> Table {
    let titles: Vec<String> = lines.operations.iter().map(|op| format!("{op}#")).collect();
    let mut table = lines.table(&titles);
    for line in &lines.lines {
        let mut cells = lines.head(line, notes);
        for operation in &lines.operations {
            cells.push(match line.figures.get(operation) {
                Some(figures) => figures.time_cell(with_share, notes),
                None => Cell::missing(notes, NO_SUCH),
            });
        }
        table.rows.push(cells);
    }
    table
}

/// All that `ranking.md` shows.
#[derive(Debug, Clone, Serialize)]
pub struct RankingPage {
    /// Top and foot.
    pub frame: Frame,
    /// Security target, bits.
    pub bits: u32,
    /// What became of the cost of the wrappers in the shares, a sentence each.
    pub wrappers: Vec<String>,
    /// One ranking per operation and kind of counter.
    pub rankings: Vec<Ranking>,
    /// What of this target is not ranked at all, one sentence a reason.
    pub left_out: Vec<String>,
    /// All notes.
    pub notes: Vec<Note>,
}

/// Cheapest first.
#[derive(Debug, Clone, Serialize)]
pub struct Ranking {
    /// Operation.
    pub operation: String,
    /// `mean cycles` and so on.
    pub title: String,
    /// The table.
    pub table: Table,
    /// Rows that have no figure.
    pub missing: usize,
}

/// Security targets of the shown rows, ascending. One whose rows were all left out has no ranking.
pub fn targets(campaign: &CampaignFile) -> Vec<u32> {
    let shown = shown_identities(campaign);
    let targets: BTreeSet<u32> = shown
        .filter_map(|identity| target_of(campaign, identity))
        .collect();
    targets.into_iter().collect()
}

fn target_of(campaign: &CampaignFile, identity: &Identity) -> Option<u32> {
    let candidates = &campaign.candidates;
    let candidate = candidates.iter().find(|c| c.id == identity.candidate)?;
    let instance = candidate
        .instances
        .iter()
        .find(|i| i.label == identity.label)?;
    instance.security_bits
}

impl RankingPage {
    /// The ranking of a security target.
    pub fn new(dataset: &Dataset, place: &Place, bits: u32) -> Self {
        let mut lines = Lines::of(dataset);
        lines
            .lines
            .retain(|line| target_of(&dataset.campaign, line.identity) == Some(bits));
        let mut notes = Notes::default();
        let mut rankings = Vec::new();
        let kinds = match lines.kinds() {
            kinds if kinds.is_empty() => vec![SourceKind::None],
            kinds => kinds,
        };
        for operation in &lines.operations {
            for kind in &kinds {
                rankings.push(ranking(&lines, *operation, *kind, &mut notes));
            }
        }
        let name = format!("ranking-{bits}");
        RankingPage {
            frame: Frame::new(dataset, place, Some(&name), |system| {
                system.targets.contains(&bits).then(|| format!("{name}.md"))
            }),
            bits,
            wrappers: lines.wrappers(),
            rankings,
            left_out: left_out(&dataset.campaign, |identity| {
                target_of(&dataset.campaign, identity) == Some(bits)
            }),
            notes: notes.into_list(),
        }
    }
}

fn ranking(lines: &Lines, operation: Operation, kind: SourceKind, notes: &mut Notes) -> Ranking {
    let title = match kind {
        SourceKind::None => "mean time",
        kind => source_title(kind),
    };
    let mut with: Vec<(f64, &Line)> = Vec::new();
    let mut without: Vec<&Line> = Vec::new();
    for line in &lines.lines {
        let Some(figures) = line.figures.get(&operation) else {
            continue;
        };
        let value = match kind {
            SourceKind::None => figures.time.as_ref(),
            kind if figures.source == kind => figures.mean.as_ref(),
            _ => None,
        };
        match value {
            Some(shown) => with.push((shown.value, line)),
            None => without.push(line),
        }
    }
    with.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut table = lines.table(&[format!("{title}#"), "mean time#".to_owned()]);
    if kind == SourceKind::None {
        table.columns.pop();
    }
    table.columns.insert(
        0,
        crate::report::table::Column {
            title: "rank".to_owned(),
            number: true,
        },
    );
    let missing = without.len();
    let ranked = with.into_iter().map(|(_, line)| line).zip(1..);
    let ranked = ranked.map(|(line, rank)| (line, Some(rank)));
    for (line, rank) in ranked.chain(without.into_iter().map(|line| (line, None::<u32>))) {
        let figures = &line.figures[&operation];
        let mut cells = vec![match rank {
            Some(rank) => Cell::text(rank.to_string()),
            None => Cell::missing(notes, NOT_RANKED),
        }];
        cells.extend(lines.head(line, notes));
        if kind != SourceKind::None {
            cells.push(if rank.is_some() {
                figures.mean_cell(notes)
            } else {
                Cell::missing(notes, figures.reason.as_deref().unwrap_or(OTHER_COUNTER))
            });
        }
        cells.push(figures.time_cell(kind == SourceKind::None, notes));
        table.rows.push(cells);
    }
    Ranking {
        operation: operation.name().to_owned(),
        title: title.to_owned(),
        table,
        missing,
    }
}

const NOT_RANKED: &str = "not ranked: it has no such figure";
const OTHER_COUNTER: &str = "counted with another kind of counter, which is ranked apart";
