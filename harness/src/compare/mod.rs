//! Comparison of two datasets, row by row: two systems, or two runs of one. The rules are those of the
//! project's statistics page; this module decides, [`crate::stats`] computes.
//!
//! Ratios are B/A throughout: below 1 the second dataset takes less. A verdict is about B.

mod findings;
mod pair;
mod verdict;

pub use findings::{Agreement, Finding, Kind};
pub use verdict::{NotTested, Verdict};

use crate::dataset::{Dataset, Key};
use crate::evidence::{Class, Origin};
use crate::identity::Identity;
use crate::report::view::memory::Resident;
use crate::stats::{Welch, WelchError};
use pair::Pair;
use protocol::{Operation, SourceKind};
use serde::Serialize;
use std::collections::BTreeSet;

/// Two datasets, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What ratios are relative to.
    pub a: Side,
    /// What is compared with it.
    pub b: Side,
    /// Whether both are of one system.
    pub same_system: bool,
    /// Reference instance of the ratios within a system.
    pub reference: Option<Identity>,
    /// Noise floors of the families.
    pub noise_floors: Vec<NoiseFloor>,
    /// Every operation of an identity that both have.
    pub rows: Vec<Row>,
    /// The fastest code of each label, side by side.
    pub fastest: Vec<FastestRow>,
    /// Geometric means of ratios.
    pub geometric_means: Vec<GeometricMean>,
    /// What must agree and does not.
    pub findings: Vec<Finding>,
    /// What must agree, by kind: how much of it both sides have, and how much of that is equal. A kind
    /// that is not here was not compared: no side states it exactly, or only one does.
    pub agreement: Vec<Agreement>,
    /// Identities that only one of them has.
    pub only_in_one: Vec<OnlyInOne>,
}

/// One dataset of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Side {
    /// Name in the comparison.
    pub name: String,
    /// Id of the dataset.
    pub dataset: String,
    /// Id of the system.
    pub system: String,
    /// What the machine was to the campaign.
    pub class: Class,
    /// Its seal.
    pub seal: Option<String>,
}

/// Noise floor of a family: a ratio within exp(±floor) says nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// Which.
    pub metric: Metric,
    /// Floor of A, as |ln ratio|.
    pub a: Option<f64>,
    /// Floor of B.
    pub b: Option<f64>,
}

/// What is compared; the two are families of their own in the correction for many tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Core cycles.
    Cycles,
    /// Time at the clock of each system.
    Time,
}

impl Metric {
    /// Both.
    pub const ALL: [Metric; 2] = [Metric::Cycles, Metric::Time];

    /// The word on pages.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Cycles => "cycles",
            Metric::Time => "time",
        }
    }
}

/// One operation of one identity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which.
    pub identity: Identity,
    /// Its operation.
    pub operation: Operation,
    /// Origins of the two.
    pub origins: [Origin; 2],
    /// Timed calls of A and B.
    pub calls: [Option<u64>; 2],
    /// Core cycles.
    pub cycles: Compared,
    /// Time.
    pub time: Compared,
    /// The row's verdict: that of cycles, else of time.
    pub verdict: Verdict,
    /// Ratio to the reference instance on the same system, by the metric of the row.
    pub to_reference: [Option<f64>; 2],
    /// Memory of A and B.
    pub memory: [Memory; 2],
    /// Share of wrapped hash functions.
    pub symmetric_share: [Option<f64>; 2],
    /// The same as tables print it.
    pub symmetric_texts: [Option<String>; 2],
}

/// Memory of a row on one side, as far as that side states it. Each figure is of a method of its own
/// and is compared with its like only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Sum of the loaded ELF segments of the timed library.
    pub static_bytes: Option<u64>,
    /// Resident set of a process, and of which.
    pub resident: Option<Resident>,
    /// Worst memory of the operation in isolation: static image, stack, heap.
    pub isolated_bytes: Option<u64>,
}

/// One metric of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Values of A and B, base units; where a side is published cells, both are what the cells print.
    pub values: [Option<f64>; 2],
    /// The same as tables print them.
    pub texts: [Option<String>; 2],
    /// B/A; null where the metric cannot be compared.
    pub ratio: Option<f64>,
    /// Significant digits that the ratio carries.
    pub digits: u32,
    /// 95% interval of the ratio.
    pub interval: Option<[f64; 2]>,
    /// Two-sided p value of Welch's test.
    pub p: Option<f64>,
    /// The same after Holm's correction over the family.
    pub p_holm: Option<f64>,
    /// Counted trials of A and B.
    pub trials: [usize; 2],
    /// What is to be said.
    pub verdict: Verdict,
}

/// The fastest code of a label on each side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FastestRow {
    /// Candidate.
    pub candidate: String,
    /// Label.
    pub label: String,
    /// Operation.
    pub operation: Operation,
    /// Metric by which they are the fastest.
    pub metric: Metric,
    /// Identity, value, and text of A and B.
    pub sides: [Fastest; 2],
    /// B/A.
    pub ratio: f64,
    /// Significant digits that the ratio carries.
    pub digits: u32,
}

/// The fastest code on one side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fastest {
    /// Which.
    pub identity: Identity,
    /// Whose code it is.
    pub origin: Origin,
    /// Its timed calls.
    pub calls: Option<u64>,
    /// Its value, base unit.
    pub value: f64,
    /// The same as tables print it.
    pub text: String,
}

/// Geometric mean of ratios, with its members.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GeometricMean {
    /// Operation.
    pub operation: Operation,
    /// Metric.
    pub metric: Metric,
    /// Mean of B/A.
    pub ratio: f64,
    /// Least number of digits that a member carries.
    pub digits: u32,
    /// Whose ratios.
    pub members: Vec<Identity>,
}

/// An identity that only one side has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OnlyInOne {
    /// Which.
    pub identity: Identity,
    /// Name of the side that has it.
    pub side: String,
}

impl Comparison {
    /// Whether something was found that must not be: a disagreement, or a regression within one system.
    pub fn found_anything(&self) -> bool {
        let slower = self.rows.iter().any(|row| row.verdict == Verdict::Slower);
        !self.findings.is_empty() || (self.same_system && slower)
    }
}

impl Comparison {
    /// Kinds of what must agree that were not compared, because they are not stated by both sides.
    pub fn not_compared(&self) -> impl Iterator<Item = Kind> + '_ {
        let compared = |kind: &Kind| self.agreement.iter().any(|a| a.what == *kind);
        Kind::ALL.into_iter().filter(move |kind| !compared(kind))
    }
}

/// Compares two datasets; `names` are theirs in the comparison, `reference` is the instance of the
/// ratios within a system.
pub fn compare(
    a: &Dataset,
    b: &Dataset,
    names: [&str; 2],
    reference: Option<&Identity>,
) -> Comparison {
    let pair = Pair::new(a, b, reference);
    let mut rows = pair.rows();
    let noise_floors = pair.noise_floors();
    verdict::decide(&mut rows, &pair, &noise_floors);
    let (findings, agreement) = findings::findings(&pair, &rows);
    Comparison {
        a: side(a, names[0]),
        b: side(b, names[1]),
        same_system: a.campaign.system == b.campaign.system,
        reference: reference.cloned(),
        noise_floors,
        fastest: pair.fastest(),
        geometric_means: geometric_means(&rows),
        findings,
        agreement,
        only_in_one: only_in_one(a, b, names),
        rows,
    }
}

fn side(dataset: &Dataset, name: &str) -> Side {
    Side {
        name: name.to_owned(),
        dataset: dataset.id.clone(),
        system: dataset.campaign.system.clone(),
        class: dataset.campaign.class,
        seal: dataset.seal.clone(),
    }
}

/// The operation that a run timed twice, its two timings set into a ratio, or why they cannot be tested;
/// `None` where there is no such pair.
pub fn second_timing(
    dataset: &Dataset,
    metric: Metric,
) -> Option<(Key, Result<Welch, WelchError>)> {
    pair::second_timing(dataset, metric)
}

/// Keys with a figure, of a record or of a published cell.
fn keys(dataset: &Dataset) -> BTreeSet<Key> {
    let identities = dataset.campaign.rows.iter().map(|row| &row.identity);
    identities
        .flat_map(|identity| Operation::ALL.map(|operation| (identity.clone(), operation)))
        .filter(|key| {
            dataset.timing.contains_key(key)
                || dataset
                    .cells
                    .as_ref()
                    .is_some_and(|_| pair::figures(dataset, key).time.is_some())
        })
        .collect()
}

fn only_in_one(a: &Dataset, b: &Dataset, names: [&str; 2]) -> Vec<OnlyInOne> {
    let of = |dataset| -> BTreeSet<Identity> {
        keys(dataset)
            .into_iter()
            .map(|(identity, _)| identity)
            .collect()
    };
    let (in_a, in_b) = (of(a), of(b));
    let alone = |have: &BTreeSet<Identity>, other: &BTreeSet<Identity>, side: &str| {
        have.difference(other)
            .map(|identity| OnlyInOne {
                identity: identity.clone(),
                side: side.to_owned(),
            })
            .collect::<Vec<_>>()
    };
    let mut all = alone(&in_a, &in_b, names[0]);
    all.extend(alone(&in_b, &in_a, names[1]));
    all
}

/// Geometric means over all rows of an operation that have a ratio, cycles and time apart.
fn geometric_means(rows: &[Row]) -> Vec<GeometricMean> {
    let mut all = Vec::new();
    for operation in Operation::ALL {
        for metric in Metric::ALL {
            let members: Vec<(&Identity, f64, u32)> = rows
                .iter()
                .filter(|row| row.operation == operation)
                .filter_map(|row| {
                    let compared = row.of(metric);
                    Some((&row.identity, compared.ratio?, compared.digits))
                })
                .collect();
            if members.is_empty() {
                continue;
            }
            let logs: Vec<f64> = members
                .iter()
                .map(|(_, ratio, _)| libm::log(*ratio))
                .collect();
            let mean = crate::stats::exact_sum(&logs) / logs.len() as f64;
            all.push(GeometricMean {
                operation,
                metric,
                ratio: libm::exp(mean),
                digits: members
                    .iter()
                    .map(|(_, _, digits)| *digits)
                    .min()
                    .unwrap_or(1),
                members: members.into_iter().map(|(id, _, _)| id.clone()).collect(),
            });
        }
    }
    all
}

impl Row {
    /// The metric that speaks for the row: cycles where both sides have them.
    pub fn metric(&self) -> Metric {
        metric_of(&self.cycles)
    }

    /// One of its metrics.
    pub fn of(&self, metric: Metric) -> &Compared {
        match metric {
            Metric::Cycles => &self.cycles,
            Metric::Time => &self.time,
        }
    }

    fn of_mut(&mut self, metric: Metric) -> &mut Compared {
        match metric {
            Metric::Cycles => &mut self.cycles,
            Metric::Time => &mut self.time,
        }
    }
}

/// The metric that speaks for a row with these cycles.
fn metric_of(cycles: &Compared) -> Metric {
    match cycles.ratio {
        Some(_) => Metric::Cycles,
        None => Metric::Time,
    }
}

/// Whether a source counts core cycles.
fn is_cycles(source: SourceKind) -> bool {
    source == SourceKind::Perf
}

#[cfg(test)]
mod tests;
