//! The page of a comparison.

use super::charts::{put, ChartView};
use super::common::{arch_name, kat_mark, warnings, Crumb};
use super::environment;
use super::figures::FEW_CALLS;
use super::systems::class_word;
use crate::compare::{Compared, Comparison, Metric, Row, Verdict};
use crate::dataset::Dataset;
use crate::identity::Identity;
use crate::report::chart::{self, Group, RatioRow};
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
    /// Disagreements.
    pub findings: Option<Table>,
    /// Rows that differ most from the others, in words.
    pub standing_out: Vec<String>,
    /// How many rows got which verdict.
    pub verdicts: Vec<String>,
    /// Whether any row was tested.
    pub tested: bool,
    /// Ratios of cycles.
    pub cycles: Option<Table>,
    /// Their chart.
    pub cycles_chart: Option<ChartView>,
    /// Ratios of time.
    pub time: Option<Table>,
    /// Their chart, where there are no cycles.
    pub time_chart: Option<ChartView>,
    /// Rows without any ratio.
    pub not_comparable: Option<Table>,
    /// Reference instance.
    pub reference: Option<String>,
    /// Cost relative to the reference instance on the same system.
    pub to_reference: Option<Table>,
    /// Memory and symmetric share side by side.
    pub beside: Option<Table>,
    /// The fastest code of each label.
    pub fastest: Option<Table>,
    /// Geometric means.
    pub means: Option<Table>,
    /// Identities that only one side has.
    pub only_in_one: Option<Table>,
    /// Stem of the files with the same content as JSON and CSV.
    pub files: String,
    /// All notes.
    pub notes: Vec<Note>,
}

/// The comparison with what its page needs beside it.
struct Maker<'a> {
    comparison: &'a Comparison,
    datasets: [&'a Dataset; 2],
    notes: Notes,
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
            findings: maker.findings(),
            standing_out: standing_out(comparison),
            verdicts: maker.verdicts(),
            tested: comparison
                .rows
                .iter()
                .any(|row| row.cycles.p.is_some() || row.time.p.is_some()),
            cycles: maker.ratios(Metric::Cycles),
            cycles_chart,
            time: maker.ratios(Metric::Time),
            time_chart,
            not_comparable: maker.not_comparable(),
            reference: comparison.reference.as_ref().map(Identity::to_string),
            to_reference: maker.reference_table(),
            beside: maker.beside(),
            fastest: maker.fastest(),
            means: maker.means(),
            only_in_one: maker.only_in_one(),
            files: stem.to_owned(),
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
                    value.map(|ln: f64| format::share(ln.exp_m1())),
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
        let mut table = Table::with(&["what", "instances", "stated by both", "equal"]);
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
        if self.builds {
            table.add_columns(&["code", "build"]);
        }
        table.add_columns(&["operation"]);
        table.add_columns(titles);
        table
    }

    /// The cells that name a row, marked where a KAT did not pass on a side.
    fn head(&mut self, row: &Row) -> Vec<Cell> {
        let mut label = Cell::code(&row.identity.label);
        let names = [
            self.comparison.a.name.clone(),
            self.comparison.b.name.clone(),
        ];
        for (name, dataset) in names.iter().zip(self.datasets) {
            if let Some(text) = kat_mark(dataset, &row.identity) {
                label = label.with_note(&mut self.notes, format!("{name}: {text}"));
            }
        }
        let mut cells = vec![label];
        if self.builds {
            cells.push(Cell::text(&row.identity.code));
            cells.push(Cell::text(&row.identity.build));
        }
        cells.push(Cell::text(row.operation.name()));
        cells
    }

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
        let with = |row: &&Row| row.of(metric).ratio.is_some();
        for row in comparison.rows.iter().filter(with) {
            let mut cells = self.head(row);
            cells.extend(self.ratio_cells(row, row.of(metric), tested));
            table.rows.push(cells);
        }
        filled(table)
    }

    fn ratio_cells(&mut self, row: &Row, compared: &Compared, tested: bool) -> Vec<Cell> {
        let mut cells: Vec<Cell> = (0..2)
            .map(|side| value_cell(compared.texts[side].as_deref(), row.calls[side]))
            .collect();
        let digits = compared.digits;
        let ratio = compared.ratio.map(|ratio| format::ratio(ratio, digits));
        cells.push(Cell::text(ratio.unwrap_or_default()));
        let why = match &compared.verdict {
            Verdict::NotTested(why) => format!("none: {}", why.text()),
            _ => "none".to_owned(),
        };
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

    /// Rows without a ratio in either metric.
    fn not_comparable(&mut self) -> Option<Table> {
        let mut table = self.table(&["why"]);
        let comparison = self.comparison;
        let without = |row: &&Row| row.cycles.ratio.is_none() && row.time.ratio.is_none();
        for row in comparison.rows.iter().filter(without) {
            let mut cells = self.head(row);
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
            let text = row.verdict.text();
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

    fn reference_table(&mut self) -> Option<Table> {
        let [a, b] = self.names().map(|name| format!("{name}#"));
        let mut table = self.table(&[&a, &b, "metric"]);
        let comparison = self.comparison;
        let have = |row: &&Row| row.to_reference.iter().any(Option::is_some);
        for row in comparison.rows.iter().filter(have) {
            let mut cells = self.head(row);
            for ratio in row.to_reference {
                let text = ratio.map(|ratio| format::ratio(ratio, 3));
                cells.push(Cell::or_missing(
                    text,
                    &mut self.notes,
                    "this side does not have the reference instance, or not in this metric",
                ));
            }
            let metric = if row.cycles.ratio.is_some() {
                Metric::Cycles
            } else {
                Metric::Time
            };
            cells.push(Cell::text(metric.name()));
            table.rows.push(cells);
        }
        filled(table)
    }

    /// Memory and symmetric share, each where a side has it.
    fn beside(&mut self) -> Option<Table> {
        let rows = &self.comparison.rows;
        let memory = rows
            .iter()
            .any(|row| row.memory_bytes.iter().any(Option::is_some));
        let share = rows
            .iter()
            .any(|row| row.symmetric_texts.iter().any(Option::is_some));
        let mut titles = Vec::new();
        for name in self.names().iter().filter(|_| memory) {
            titles.push(format!("memory {name} (bytes)#"));
        }
        for name in self.names().iter().filter(|_| share) {
            titles.push(format!("symmetric share {name}#"));
        }
        if titles.is_empty() {
            return None;
        }
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let mut table = self.table(&titles);
        let comparison = self.comparison;
        for row in &comparison.rows {
            let mut cells = self.head(row);
            let bytes = row.memory_bytes.map(|bytes| bytes.map(|b| b.to_string()));
            for text in bytes.into_iter().filter(|_| memory) {
                cells.push(Cell::or_missing(
                    text,
                    &mut self.notes,
                    &no_evidence("memory"),
                ));
            }
            for text in row.symmetric_texts.iter().filter(|_| share) {
                cells.push(Cell::or_missing(
                    text.clone(),
                    &mut self.notes,
                    &no_evidence("profile"),
                ));
            }
            table.rows.push(cells);
        }
        filled(table)
    }

    fn fastest(&self) -> Option<Table> {
        let [a, b] = self.names();
        let titles = [
            format!("{a}: code"),
            format!("{a}#"),
            format!("{b}: code"),
            format!("{b}#"),
            format!("ratio {b} / {a}#"),
        ];
        let mut table = Table::with(&["instance", "operation"]);
        table.add_columns(&titles.each_ref().map(String::as_str));
        for row in &self.comparison.fastest {
            let mut cells = vec![Cell::code(&row.label), Cell::text(row.operation.name())];
            for side in &row.sides {
                cells.push(Cell::text(format!(
                    "{} {}",
                    side.identity.code, side.identity.build
                )));
                cells.push(Cell::text(&side.text));
            }
            cells.push(Cell::text(format::ratio(row.ratio, row.digits)));
            table.rows.push(cells);
        }
        // With one code and build of each label the table would say nothing new.
        let choice = self
            .comparison
            .fastest
            .iter()
            .any(|row| row.sides[0].identity != row.sides[1].identity);
        filled(table).filter(|_| choice || self.builds)
    }

    fn means(&self) -> Option<Table> {
        let mut table =
            Table::with(&["operation", "metric", "geometric mean#", "over#", "members"]);
        for mean in &self.comparison.geometric_means {
            let members: Vec<String> = mean.members.iter().map(|id| self.short(id)).collect();
            table.rows.push(vec![
                Cell::text(mean.operation.name()),
                Cell::text(mean.metric.name()),
                Cell::text(format::ratio(mean.ratio, mean.digits)),
                Cell::text(mean.members.len().to_string()),
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
        let title = format!("{} {b} / {a}; left of 1, {b} takes less", metric.name());
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
        let text = format!(
            "The ratios go from {} ({} of {}) to {} ({} of {}).",
            least.1.text, least.0.title, least.1.label, most.1.text, most.0.title, most.1.label
        );
        let svg = chart::ratios(&groups, &title);
        Some(put(
            charts,
            &format!("{stem}-{}", metric.name()),
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

/// A value with the number of its calls where they are few.
fn value_cell(text: Option<&str>, calls: Option<u64>) -> Cell {
    let text = text.unwrap_or(format::MISSING);
    Cell::text(match calls {
        Some(calls) if calls < FEW_CALLS => format!("{text} (n={calls})"),
        _ => text.to_owned(),
    })
}

/// How far a ratio must lie from the median ratio to stand out: a factor.
const STANDS_OUT: f64 = 2.0;

/// Rows whose ratio is far from the median of all, one sentence for each operation and direction.
fn standing_out(comparison: &Comparison) -> Vec<String> {
    let metric = match comparison.rows.iter().any(|row| row.cycles.ratio.is_some()) {
        true => Metric::Cycles,
        false => Metric::Time,
    };
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
                sentences.push(sentence(comparison, metric, operation, &rows));
            }
        }
    }
    sentences
}

fn sentence(
    comparison: &Comparison,
    metric: Metric,
    operation: Operation,
    rows: &[&Row],
) -> String {
    let (a, b) = (&comparison.a.name, &comparison.b.name);
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
    let labels: Vec<&str> = rows.iter().map(|row| row.identity.label.as_str()).collect();
    let than = if fewer { "than" } else { "as" };
    format!(
        "{operation} takes {range} {what} on {b} {than} on {a}: {}.",
        labels.join(", ")
    )
}
