//! The page of a comparison.

use super::charts::{put, with_care, with_stars, ChartView};
use super::common::{arch_name, kat_failure, kat_mark, page_name, warnings, Crumb};
use super::environment;
use super::figures::{Figures, FEW_CALLS, ZERO_OR_TINY};
use super::memory::ResidentMethod;
use super::symmetric::Wrappers;
use super::systems::class_word;
use crate::compare::{Compared, Comparison, Fastest, Kind, Memory, Metric, Row, Verdict};
use crate::dataset::Dataset;
use crate::identity::Identity;
use crate::report::chart::{self, Group, RatioRow};
use crate::report::escape;
use crate::report::format;
use crate::report::html::Charts;
use crate::report::table::{Cell, Note, Notes, Table};
use crate::stats;
use protocol::Operation;
use serde::Serialize;
use std::collections::BTreeSet;

/// All that `compare.md` shows.
#[derive(Debug, Clone, Serialize)]
pub struct ComparisonPage {
    /// Title of all pages.
    pub site: String,
    /// Where the page stands.
    pub breadcrumb: Vec<Crumb>,
    /// Name of A.
    pub a: String,
    /// Name of B.
    pub b: String,
    /// Whether both are of one system.
    pub same_system: bool,
    /// What a reader must know before any figure.
    pub warnings: Vec<String>,
    /// The two sides.
    pub sides: Table,
    /// What both sides state and must agree on.
    pub agreement: Option<Table>,
    /// What must agree and is not stated by both sides.
    pub not_compared: Vec<&'static str>,
    /// Disagreements.
    pub findings: Option<Table>,
    /// Rows that differ most from the others, in words.
    pub standing_out: Vec<String>,
    /// How many rows got which verdict.
    pub verdicts: Vec<String>,
    /// Whether any row was tested.
    pub tested: bool,
    /// Whether any ratio is one of trials.
    pub trials: bool,
    /// Whether a side is published cells, which have no trials.
    pub aggregate: bool,
    /// Ratios of cycles.
    pub cycles: Option<Table>,
    /// Why no row has a ratio of cycles.
    pub no_cycles: Option<String>,
    /// Their chart.
    pub cycles_chart: Option<ChartView>,
    /// Ratios of time.
    pub time: Option<Table>,
    /// Why no row has a ratio of times.
    pub no_time: Option<String>,
    /// Their chart, where there are no cycles.
    pub time_chart: Option<ChartView>,
    /// Rows without any ratio.
    pub not_comparable: Option<Table>,
    /// Reference instance.
    pub reference: Option<String>,
    /// Cost relative to the reference instance on the same system.
    pub to_reference: Option<Table>,
    /// Memory side by side.
    pub memory: Option<Table>,
    /// How the figures of that table came about, and what is not in it.
    pub memory_methods: Vec<String>,
    /// Symmetric share side by side.
    pub shares: Option<Table>,
    /// What became of the cost of the wrappers in the shares of each side.
    pub share_methods: Vec<String>,
    /// The fastest code of each label.
    pub fastest: Option<Table>,
    /// Geometric means.
    pub means: Option<Table>,
    /// Identities that only one side has.
    pub only_in_one: Option<Table>,
    /// Stem of the files with the same content as JSON and CSV, as part of a link.
    pub files: String,
    /// All notes.
    pub notes: Vec<Note>,
}

/// The comparison with what its page needs beside it.
struct Maker<'a> {
    comparison: &'a Comparison,
    datasets: [&'a Dataset; 2],
    notes: Notes,
    /// Whether rows need the names of candidates, and of codes and builds.
    candidates: bool,
    builds: bool,
}

impl ComparisonPage {
    /// The page; `home` is the page above, `stem` the file name without its extension.
    pub fn new(
        comparison: &Comparison,
        datasets: [&Dataset; 2],
        home: Option<String>,
        stem: &str,
        charts: &mut Charts,
    ) -> Self {
        let identities: Vec<&Identity> = comparison.rows.iter().map(|row| &row.identity).collect();
        let kinds: BTreeSet<(&str, &str)> = identities
            .iter()
            .map(|id| (id.code.as_str(), id.build.as_str()))
            .collect();
        let mut maker = Maker {
            comparison,
            datasets,
            notes: Notes::default(),
            candidates: identities
                .iter()
                .any(|id| id.candidate != identities[0].candidate),
            builds: kinds.len() > 1,
        };
        let (a, b) = (&comparison.a.name, &comparison.b.name);
        let cycles_chart = maker.chart(Metric::Cycles, stem, charts);
        let time_chart = match cycles_chart {
            Some(_) => None,
            None => maker.chart(Metric::Time, stem, charts),
        };
        ComparisonPage {
            site: datasets[0].campaign.title.clone(),
            breadcrumb: vec![
                Crumb::new("Performance measurements", home),
                Crumb::new(format!("{a} against {b}"), None),
            ],
            a: a.clone(),
            b: b.clone(),
            same_system: comparison.same_system,
            warnings: maker.warnings(),
            sides: maker.sides(),
            agreement: maker.agreement(),
            not_compared: comparison.not_compared().map(Kind::text).collect(),
            findings: maker.findings(),
            standing_out: standing_out(&maker),
            verdicts: maker.verdicts(),
            tested: comparison
                .rows
                .iter()
                .any(|row| row.cycles.p.is_some() || row.time.p.is_some()),
            trials: comparison.rows.iter().any(has_ratio)
                && datasets.iter().all(|d| d.cells.is_none()),
            aggregate: datasets.iter().any(|dataset| dataset.cells.is_some()),
            cycles: maker.ratios(Metric::Cycles),
            no_cycles: no_ratio(comparison, Metric::Cycles),
            cycles_chart,
            time: maker.ratios(Metric::Time),
            no_time: no_ratio(comparison, Metric::Time),
            time_chart,
            not_comparable: maker.not_comparable(),
            reference: comparison.reference.as_ref().map(Identity::to_string),
            to_reference: maker.reference_table(),
            memory: maker.memory(),
            memory_methods: maker.memory_methods(),
            shares: maker.shares(),
            share_methods: maker.share_methods(),
            fastest: maker.fastest(),
            means: maker.means(),
            only_in_one: maker.only_in_one(),
            files: escape::path_part(stem),
            notes: maker.notes.into_list(),
        }
    }
}

fn filled(table: Table) -> Option<Table> {
    (!table.is_empty()).then_some(table)
}

impl Maker<'_> {
    fn names(&self) -> [&str; 2] {
        [&self.comparison.a.name, &self.comparison.b.name]
    }

    fn warnings(&self) -> Vec<String> {
        let named = |(name, dataset): (&str, &&Dataset)| -> Vec<String> {
            let of = warnings(dataset).into_iter();
            of.map(|text| format!("{name}: {text}")).collect()
        };
        self.names()
            .into_iter()
            .zip(&self.datasets)
            .flat_map(named)
            .collect()
    }

    fn sides(&mut self) -> Table {
        let [a, b] = self.names().map(str::to_owned);
        let mut table = Table::with(&["item", &a, &b]);
        let unknown = "not recorded (not_recorded)";
        let facts = self.datasets.map(environment::facts);
        for ((name, of_a), (_, of_b)) in facts[0].iter().zip(&facts[1]) {
            if of_a.is_none() && of_b.is_none() {
                continue;
            }
            table.rows.push(vec![
                Cell::text(*name),
                Cell::or_missing(of_a.clone(), &mut self.notes, unknown),
                Cell::or_missing(of_b.clone(), &mut self.notes, unknown),
            ]);
        }
        let sides = [&self.comparison.a, &self.comparison.b];
        let mut both = |name: &str, cells: [Cell; 2]| {
            let [a, b] = cells;
            table.rows.push(vec![Cell::text(name), a, b]);
        };
        both(
            "architecture",
            self.datasets
                .map(|d| Cell::text(arch_name(&d.campaign.arch))),
        );
        both("kind", sides.map(|side| Cell::text(class_word(side.class))));
        both("dataset", sides.map(|side| Cell::code(&side.dataset)));
        for floor in &self.comparison.noise_floors {
            let name = format!("noise floor, {}", floor.metric.name());
            let cells = [floor.a, floor.b].map(|value| {
                Cell::or_missing(
                    value.map(|ln| format::share(libm::expm1(ln))),
                    &mut self.notes,
                    "no operation was timed twice in this metric (no_noise_floor)",
                )
            });
            both(&name, cells);
        }
        both(
            "seal",
            sides.map(|side| match &side.seal {
                Some(seal) => Cell::code(format::digest16(seal)),
                None => Cell::missing(&mut self.notes, "not sealed"),
            }),
        );
        table
    }

    fn agreement(&self) -> Option<Table> {
        let mut table = Table::with(&["what", "instances#", "stated by both#", "equal#"]);
        for agreement in &self.comparison.agreement {
            table.rows.push(vec![
                Cell::text(agreement.what.text()),
                Cell::text(agreement.identities.to_string()),
                Cell::text(agreement.facts.to_string()),
                Cell::text(agreement.equal.to_string()),
            ]);
        }
        filled(table)
    }

    fn findings(&self) -> Option<Table> {
        let [a, b] = self.names();
        let mut table = Table::with(&["identity", "what", a, b]);
        for finding in &self.comparison.findings {
            table.rows.push(vec![
                Cell::code(finding.identity.to_string()),
                Cell::text(&finding.what),
                Cell::code(&finding.a),
                Cell::code(&finding.b),
            ]);
        }
        filled(table)
    }

    /// An empty table with the columns that name a row, then `titles`.
    fn table(&self, titles: &[&str]) -> Table {
        let mut table = Table::with(&["instance"]);
        if self.candidates {
            table.add_columns(&["candidate"]);
        }
        if self.builds {
            table.add_columns(&["code", "build"]);
        }
        table.add_columns(&["operation"]);
        table.add_columns(titles);
        table
    }

    /// The cells that name a row, marked where a KAT did not pass on a side.
    fn head(&mut self, row: &Row) -> Vec<Cell> {
        let both = [&row.identity, &row.identity];
        let mut cells = vec![self.kat_marked(Cell::code(&row.identity.label), both)];
        if self.candidates {
            cells.push(Cell::text(&row.identity.candidate));
        }
        if self.builds {
            cells.push(Cell::text(&row.identity.code));
            cells.push(Cell::text(&row.identity.build));
        }
        cells.push(Cell::text(row.operation.name()));
        cells
    }

    /// A cell, marked where the KAT of its identity did not pass on a side.
    fn kat_marked(&mut self, mut cell: Cell, identities: [&Identity; 2]) -> Cell {
        let sides = [&self.comparison.a, &self.comparison.b];
        for ((side, dataset), identity) in sides.into_iter().zip(self.datasets).zip(identities) {
            if let Some(text) = kat_mark(dataset, identity) {
                cell = cell.with_note(&mut self.notes, format!("{}: {text}", side.name));
            }
        }
        cell
    }

    /// What must be kept in mind of a row wherever its ratio is repeated: few calls, and a KAT that did
    /// not pass.
    fn care(&self, row: &Row) -> Option<String> {
        let mut parts = Vec::new();
        let sides = [&self.comparison.a, &self.comparison.b].into_iter();
        for ((side, dataset), calls) in sides.zip(self.datasets).zip(row.calls) {
            let few = calls.filter(|calls| *calls < FEW_CALLS);
            parts.extend(few.map(|calls| format!("n={calls} on {}", side.name)));
            let failure = kat_failure(dataset, &row.identity);
            parts.extend(failure.map(|failure| format!("{failure} on {}", side.name)));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// The name of a row in a sentence, with what must be kept in mind.
    fn named(&self, row: &Row) -> String {
        with_care(&self.short(&row.identity), self.care(row).as_deref())
    }

    /// Rows of a metric: those with a ratio, and those whose values stand beside a ratio of the other.
    fn ratios(&mut self, metric: Metric) -> Option<Table> {
        let [a, b] = self.names();
        let comparison = self.comparison;
        let tested = comparison.rows.iter().any(|row| row.of(metric).p.is_some());
        let mut titles = vec![
            format!("{a}#"),
            format!("{b}#"),
            format!("ratio {b} / {a}#"),
            "95% interval#".to_owned(),
            "p (Holm)#".to_owned(),
            format!("{b} is"),
        ];
        if !tested {
            titles.remove(4);
        }
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let mut table = self.table(&titles);
        let shown = |row: &&Row| {
            let of = row.of(metric);
            of.ratio.is_some() || (has_ratio(row) && of.values.iter().any(Option::is_some))
        };
        for row in comparison.rows.iter().filter(shown) {
            let mut cells = self.head(row);
            cells.extend(self.ratio_cells(row, row.of(metric), tested));
            table.rows.push(cells);
        }
        filled(table)
    }

    fn ratio_cells(&mut self, row: &Row, compared: &Compared, tested: bool) -> Vec<Cell> {
        let mut cells = self.value_cells(row, compared);
        let digits = compared.digits;
        let why = match &compared.verdict {
            Verdict::NotTested(why) => format!("none: {}", why.text()),
            Verdict::NotComparable(why) => why.clone(),
            _ => "none".to_owned(),
        };
        let Some(ratio) = compared.ratio else {
            let missing = if tested { 3 } else { 2 };
            cells.extend((0..missing).map(|_| Cell::missing(&mut self.notes, &why)));
            cells.push(Cell::text(compared.verdict.text()));
            return cells;
        };
        cells.push(Cell::text(format::ratio(ratio, digits)));
        let interval = compared.interval.map(|[low, high]| {
            format!(
                "{} to {}",
                format::ratio(low, digits),
                format::ratio(high, digits)
            )
        });
        cells.push(Cell::text(interval.unwrap_or_else(|| why.clone())));
        if tested {
            cells.push(match compared.p_holm {
                Some(p) if p < 0.0001 => Cell::text("<0.0001"),
                Some(p) => Cell::text(format!("{p:.4}")),
                None => Cell::missing(&mut self.notes, &why),
            });
        }
        cells.push(Cell::text(compared.verdict.text()));
        cells
    }

    /// The values of both sides, each with the number of its calls where they are few.
    fn value_cells(&mut self, row: &Row, compared: &Compared) -> Vec<Cell> {
        let sides = compared.texts.iter().zip(row.calls);
        sides
            .map(|(text, calls)| match text {
                Some(text) => value_cell(text, calls),
                None => Cell::missing(&mut self.notes, NO_VALUE),
            })
            .collect()
    }

    /// Rows without a ratio in either metric, with the values that there are.
    fn not_comparable(&mut self) -> Option<Table> {
        let comparison = self.comparison;
        let rows: Vec<&Row> = comparison
            .rows
            .iter()
            .filter(|row| !has_ratio(row))
            .collect();
        let has = |metric: &Metric| {
            let values = rows.iter().flat_map(|row| row.of(*metric).values);
            values.flatten().next().is_some()
        };
        let metrics: Vec<Metric> = Metric::ALL.into_iter().filter(has).collect();
        let titles = metrics.iter().flat_map(|metric| {
            self.names()
                .map(|name| format!("{} {name}#", metric.name()))
        });
        let mut titles: Vec<String> = titles.collect();
        titles.push("why".to_owned());
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let mut table = self.table(&titles);
        for row in rows {
            let mut cells = self.head(row);
            for metric in &metrics {
                cells.extend(self.value_cells(row, row.of(*metric)));
            }
            let why = match &row.time.verdict {
                Verdict::NotComparable(why) => why.clone(),
                other => other.text(),
            };
            cells.push(Cell::text(why));
            table.rows.push(cells);
        }
        filled(table)
    }

    fn verdicts(&self) -> Vec<String> {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for row in &self.comparison.rows {
            let text = row.verdict.with_reason();
            match counts.iter_mut().find(|(word, _)| *word == text) {
                Some((_, count)) => *count += 1,
                None => counts.push((text, 1)),
            }
        }
        counts
            .into_iter()
            .map(|(word, count)| match count {
                1 => format!("1 row: {word}"),
                _ => format!("{count} rows: {word}"),
            })
            .collect()
    }

    /// Why a side has no ratio to the reference instance.
    fn no_reference(&self, side: usize, row: &Row) -> String {
        if row.of(row.metric()).values[side].is_none() {
            return NO_VALUE.to_owned();
        }
        let reference = self.comparison.reference.clone();
        let key = reference.map(|reference| (reference, row.operation));
        let known = key.map(|key| Figures::of(self.datasets[side], &key));
        match known.is_some_and(|figures| figures.time.is_some()) {
            true => format!(
                "this side has no {} of the reference instance",
                row.metric().name()
            ),
            false => "this side does not have the reference instance".to_owned(),
        }
    }

    fn reference_table(&mut self) -> Option<Table> {
        let [a, b] = self.names().map(|name| format!("{name}#"));
        let mut table = self.table(&[&a, &b, "metric"]);
        let comparison = self.comparison;
        let have = |row: &&Row| row.to_reference.iter().any(Option::is_some);
        for row in comparison.rows.iter().filter(have) {
            let mut cells = self.head(row);
            for (side, (ratio, calls)) in row.to_reference.into_iter().zip(row.calls).enumerate() {
                let why = self.no_reference(side, row);
                cells.push(match ratio {
                    Some(ratio) => value_cell(&format::ratio(ratio, 3), calls),
                    None => Cell::missing(&mut self.notes, why),
                });
            }
            cells.push(Cell::text(row.metric().name()));
            table.rows.push(cells);
        }
        filled(table)
    }

    /// Items of memory that both sides have of some row, each beside its like.
    fn memory_items(&self) -> Vec<&'static MemoryItem> {
        let both = |item: &&MemoryItem| {
            let mut rows = self.comparison.rows.iter();
            rows.any(|row| row.memory.iter().all(|m| (item.bytes)(m).is_some()) && item.alike(row))
        };
        MEMORY.iter().filter(both).collect()
    }

    /// Memory side by side, as far as both sides have it.
    fn memory(&mut self) -> Option<Table> {
        let items = self.memory_items();
        let names = self.names();
        let titles = items.iter().flat_map(|item| {
            let names = names.iter();
            names.map(|name| format!("{} {name}#", item.title))
        });
        let titles: Vec<String> = titles.collect();
        if titles.is_empty() {
            return None;
        }
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let mut table = self.table(&titles);
        let comparison = self.comparison;
        for row in &comparison.rows {
            let mut cells = self.head(row);
            for item in &items {
                let why = match item.alike(row) {
                    true => NO_VALUE,
                    false => "the two sides have it of other processes: not set side by side",
                };
                for memory in &row.memory {
                    let bytes = (item.bytes)(memory).filter(|_| item.alike(row));
                    let text = bytes.map(item.text);
                    cells.push(Cell::or_missing(text, &mut self.notes, why));
                }
            }
            table.rows.push(cells);
        }
        filled(table)
    }

    /// How the two sides came to the figures of that table, and what is not in it.
    fn memory_methods(&self) -> Vec<String> {
        let rows = &self.comparison.rows;
        let methods = [0, 1].map(|side| -> BTreeSet<ResidentMethod> {
            let residents = rows.iter().filter_map(|row| row.memory[side].resident);
            residents.map(|resident| resident.method).collect()
        });
        let named = |(name, methods): (&str, &BTreeSet<ResidentMethod>)| {
            let texts: Vec<&str> = methods.iter().map(|method| method.text()).collect();
            (!texts.is_empty()).then(|| format!("those of {name} are {}", texts.join(" or ")))
        };
        let sides: Vec<String> = self
            .names()
            .into_iter()
            .zip(&methods)
            .filter_map(named)
            .collect();
        let shown = self.memory_items();
        let has = |title: &str| shown.iter().any(|item| item.title == title);
        let mut all = Vec::new();
        if !sides.is_empty() {
            all.push(match has(PEAK) || has(BASELINE) {
                true => format!("Resident sets: {}.", sides.join("; ")),
                false => format!(
                    "Resident sets are not set side by side: {}.",
                    sides.join("; ")
                ),
            });
        }
        let isolated = [0, 1].map(|side| {
            let mut rows = rows.iter();
            rows.any(|row| row.memory[side].isolated_bytes.is_some())
        });
        match (isolated, self.names()) {
            ([false, false], _) => all.push(
                "Neither side holds evidence of the memory of an operation in isolation."
                    .to_owned(),
            ),
            ([true, false], [name, _]) | ([false, true], [_, name]) => all.push(format!(
                "Only {name} holds evidence of the memory of an operation in isolation."
            )),
            ([true, true], _) => {}
        }
        all
    }

    /// Symmetric share side by side, where a side has it.
    fn shares(&mut self) -> Option<Table> {
        let comparison = self.comparison;
        let has = |row: &Row| row.symmetric_texts.iter().any(Option::is_some);
        if !comparison.rows.iter().any(has) {
            return None;
        }
        let titles = self.names().map(|name| format!("symmetric share {name}#"));
        let mut table = self.table(&titles.each_ref().map(String::as_str));
        for row in &comparison.rows {
            let mut cells = self.head(row);
            for (text, dataset) in row.symmetric_texts.iter().zip(self.datasets) {
                let cell = Cell::or_missing(text.clone(), &mut self.notes, &no_evidence("profile"));
                let key = (row.identity.clone(), row.operation);
                let share = Figures::of(dataset, &key).share;
                cells.push(match share.is_printed_zero() {
                    true => cell.with_note(&mut self.notes, ZERO_OR_TINY),
                    false => cell,
                });
            }
            table.rows.push(cells);
        }
        filled(table)
    }

    /// What became of the cost of the wrappers on each side that has shares.
    fn share_methods(&self) -> Vec<String> {
        let comparison = self.comparison;
        let sides = self.names().into_iter().zip(self.datasets).enumerate();
        let sides = sides.filter(|(side, _)| {
            let mut rows = comparison.rows.iter();
            rows.any(|row| row.symmetric_texts[*side].is_some())
        });
        let ways = sides.map(|(_, (name, dataset))| {
            let keys = comparison
                .rows
                .iter()
                .map(|row| (row.identity.clone(), row.operation));
            let profiles = keys.filter_map(|key| dataset.profile.get(&key));
            (name, Wrappers::of(profiles.map(|entry| &entry.value)))
        });
        let ways: Vec<(&str, Wrappers)> = ways.collect();
        let mut all: Vec<String> = ways.iter().map(|(name, way)| way.sentence(name)).collect();
        if ways.len() == 2 && ways.iter().any(|(_, way)| *way != Wrappers::Subtracted) {
            all.push(
                "A difference between the two sides may be one of method, not of the code."
                    .to_owned(),
            );
        }
        all
    }

    fn fastest(&mut self) -> Option<Table> {
        let [a, b] = self.names();
        let titles = [
            format!("{a}: code"),
            format!("{a}#"),
            format!("{b}: code"),
            format!("{b}#"),
            format!("ratio {b} / {a}#"),
        ];
        let mut table = Table::with(&["instance"]);
        if self.candidates {
            table.add_columns(&["candidate"]);
        }
        table.add_columns(&["operation", "metric"]);
        table.add_columns(&titles.each_ref().map(String::as_str));
        let comparison = self.comparison;
        for row in &comparison.fastest {
            let identities = row.sides.each_ref().map(|side| &side.identity);
            let origins = row.sides.each_ref().map(|side| side.origin);
            let mut cells = vec![self.kat_marked(Cell::code(&row.label), identities)];
            if self.candidates {
                cells.push(Cell::text(&row.candidate));
            }
            cells.push(Cell::text(row.operation.name()));
            cells.push(Cell::text(row.metric.name()));
            for side in &row.sides {
                cells.push(Cell::text(code_of(side, origins[0] != origins[1])));
                cells.push(value_cell(&side.text, side.calls));
            }
            cells.push(Cell::text(format::ratio(row.ratio, row.digits)));
            table.rows.push(cells);
        }
        filled(table)
    }

    fn means(&self) -> Option<Table> {
        let mut table =
            Table::with(&["operation", "metric", "geometric mean#", "over#", "members"]);
        for mean in &self.comparison.geometric_means {
            let is_member = |row: &&Row| {
                row.operation == mean.operation && mean.members.contains(&row.identity)
            };
            let members = self.comparison.rows.iter().filter(is_member);
            let members: Vec<String> = members.map(|row| self.named(row)).collect();
            table.rows.push(vec![
                Cell::text(mean.operation.name()),
                Cell::text(mean.metric.name()),
                Cell::text(format::ratio(mean.ratio, mean.digits)),
                Cell::text(members.len().to_string()),
                Cell::text(members.join(", ")),
            ]);
        }
        filled(table)
    }

    fn only_in_one(&self) -> Option<Table> {
        let mut table = Table::with(&["identity", "only in"]);
        for only in &self.comparison.only_in_one {
            table.rows.push(vec![
                Cell::code(only.identity.to_string()),
                Cell::text(&only.side),
            ]);
        }
        filled(table)
    }

    fn short(&self, identity: &Identity) -> String {
        match self.builds {
            true => format!("{} {} {}", identity.label, identity.code, identity.build),
            false => identity.label.clone(),
        }
    }

    fn chart(&self, metric: Metric, stem: &str, charts: &mut Charts) -> Option<ChartView> {
        let groups: Vec<Group<RatioRow>> = Operation::ALL
            .into_iter()
            .map(|operation| Group {
                title: operation.name().to_owned(),
                rows: self.chart_rows(metric, operation),
            })
            .filter(|group| !group.rows.is_empty())
            .collect();
        if groups.is_empty() {
            return None;
        }
        let [a, b] = self.names();
        let name = metric.name();
        let naming = format!("{name} {b} / {a}; left of 1, {b} takes less");
        let short = format!("{name}, second side / first; left of 1, the second takes less");
        let alt = format!(
            "Dots of the ratios of {}, {b} to {a}, sorted.",
            metric.name()
        );
        let all = || {
            groups
                .iter()
                .flat_map(|group| group.rows.iter().map(move |row| (group, row)))
        };
        let least = all().min_by(|x, y| x.1.ratio.total_cmp(&y.1.ratio))?;
        let most = all().max_by(|x, y| x.1.ratio.total_cmp(&y.1.ratio))?;
        let named = |(group, row): (&Group<RatioRow>, &RatioRow)| {
            let label = with_care(&row.label, row.care.as_deref());
            format!("{}, {} of {label}", row.text, group.title)
        };
        let text = format!(
            "The ratios go from {}, to {}. Below 1, {b} takes less: lower is better for {b}.",
            named(least),
            named(most)
        );
        let text = with_stars(text, all().any(|(_, row)| row.care.is_some()));
        let svg = chart::ratios(&groups, &naming, &short);
        Some(put(
            charts,
            &format!("{}-{}", page_name(stem), metric.name()),
            svg,
            alt,
            text,
        ))
    }

    fn chart_rows(&self, metric: Metric, operation: Operation) -> Vec<RatioRow> {
        let rows = self
            .comparison
            .rows
            .iter()
            .filter(|row| row.operation == operation);
        let mut rows: Vec<RatioRow> = rows
            .filter_map(|row| {
                let compared = row.of(metric);
                let ratio = compared.ratio?;
                Some(RatioRow {
                    label: self.short(&row.identity),
                    ratio,
                    interval: compared.interval.map(|[low, high]| (low, high)),
                    text: format::ratio(ratio, compared.digits),
                    care: self.care(row),
                })
            })
            .collect();
        rows.sort_by(|x, y| x.ratio.total_cmp(&y.ratio));
        rows
    }
}

fn no_evidence(phase: &str) -> String {
    format!("this side holds no evidence of the {phase} phase (not_recorded)")
}

const NO_VALUE: &str = "this side has no such figure (not_recorded)";

/// A figure of memory that may stand beside its like.
struct MemoryItem {
    title: &'static str,
    bytes: fn(&Memory) -> Option<u64>,
    text: fn(u64) -> String,
    /// Whether it is one of a resident set.
    resident: bool,
}

impl MemoryItem {
    /// Whether both sides of a row have it by the same method.
    fn alike(&self, row: &Row) -> bool {
        let [a, b] = row.memory.map(|memory| memory.resident);
        !self.resident || a.zip(b).is_none_or(|(a, b)| a.method.is_like(b.method))
    }
}

const BASELINE: &str = "baseline RSS";
const PEAK: &str = "peak RSS";

/// In the order of their columns.
const MEMORY: [MemoryItem; 4] = [
    MemoryItem {
        title: "static image (bytes)",
        bytes: |memory| memory.static_bytes,
        text: |bytes| bytes.to_string(),
        resident: false,
    },
    MemoryItem {
        title: BASELINE,
        bytes: |memory| memory.resident?.baseline_bytes,
        text: format::kib,
        resident: true,
    },
    MemoryItem {
        title: PEAK,
        bytes: |memory| memory.resident?.peak_bytes,
        text: format::kib,
        resident: true,
    },
    MemoryItem {
        title: "in isolation (bytes)",
        bytes: |memory| memory.isolated_bytes,
        text: |bytes| bytes.to_string(),
        resident: false,
    },
];

fn has_ratio(row: &Row) -> bool {
    row.cycles.ratio.is_some() || row.time.ratio.is_some()
}

/// Why no row has a ratio in a metric, where none has and there are rows.
fn no_ratio(comparison: &Comparison, metric: Metric) -> Option<String> {
    let why = |row: &Row| match &row.of(metric).verdict {
        Verdict::NotComparable(why) => Some(why.clone()),
        _ => None,
    };
    let all: Option<BTreeSet<String>> = comparison.rows.iter().map(why).collect();
    let list: Vec<String> = all?.into_iter().collect();
    (!list.is_empty()).then(|| list.join("; "))
}

/// The code and build of a side, and whose code it is where that differs.
fn code_of(side: &Fastest, with_origin: bool) -> String {
    let Identity { code, build, .. } = &side.identity;
    match with_origin {
        true => format!("{code} {build} ({})", side.origin.word()),
        false => format!("{code} {build}"),
    }
}

/// A value with the number of its calls where they are few.
fn value_cell(text: &str, calls: Option<u64>) -> Cell {
    Cell::text(match calls {
        Some(calls) if calls < FEW_CALLS => format!("{text} (n={calls})"),
        _ => text.to_owned(),
    })
}

/// How far a ratio must lie from the median ratio to stand out: a factor.
const STANDS_OUT: f64 = 2.0;

/// Rows whose ratio is far from the median of all, one sentence for each operation and direction.
fn standing_out(maker: &Maker) -> Vec<String> {
    let comparison = maker.comparison;
    let mut metrics = comparison.rows.iter().map(Row::metric);
    let metric = metrics
        .find(|metric| *metric == Metric::Cycles)
        .unwrap_or(Metric::Time);
    let ratio = |row: &Row| row.of(metric).ratio;
    let all: Vec<f64> = comparison
        .rows
        .iter()
        .filter_map(ratio)
        .map(libm::log)
        .collect();
    let Some(median) = stats::median(&all) else {
        return Vec::new();
    };
    let mut sentences = Vec::new();
    for operation in Operation::ALL {
        for less in [true, false] {
            let rows: Vec<&Row> = comparison
                .rows
                .iter()
                .filter(|row| row.operation == operation)
                .filter(|row| {
                    let far = ratio(row).map_or(0.0, |ratio| libm::log(ratio) - median);
                    far.abs() > libm::log(STANDS_OUT) && (far < 0.0) == less
                })
                .collect();
            if !rows.is_empty() {
                sentences.push(sentence(maker, metric, operation, &rows));
            }
        }
    }
    sentences
}

fn sentence(maker: &Maker, metric: Metric, operation: Operation, rows: &[&Row]) -> String {
    let [a, b] = maker.names();
    let ratios: Vec<f64> = rows.iter().filter_map(|row| row.of(metric).ratio).collect();
    let fewer = ratios.iter().all(|ratio| *ratio < 1.0);
    // "3.7 times fewer" is the inverse of the ratio.
    let factors = ratios
        .iter()
        .map(|ratio| if fewer { 1.0 / ratio } else { *ratio });
    let least = factors.clone().fold(f64::INFINITY, f64::min);
    let most = factors.fold(0.0, f64::max);
    let range = match rows.len() {
        1 => format::ratio(most, 2),
        _ => format!("{} to {}", format::ratio(least, 2), format::ratio(most, 2)),
    };
    let what = match (metric, fewer) {
        (Metric::Cycles, true) => "times fewer cycles",
        (Metric::Cycles, false) => "times as many cycles",
        (Metric::Time, true) => "times less time",
        (Metric::Time, false) => "times as much time",
    };
    let labels: Vec<String> = rows.iter().map(|row| maker.named(row)).collect();
    let than = if fewer { "than" } else { "as" };
    format!(
        "{operation} takes {range} {what} on {b} {than} on {a}: {}.",
        labels.join(", ")
    )
}
