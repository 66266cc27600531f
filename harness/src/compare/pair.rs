//! Two datasets side by side: values, trial means, and what may be compared at all.

use super::verdict::{NotTested, Verdict};
use super::{
    is_cycles, keys, metric_of, Compared, Fastest, FastestRow, Memory, Metric, NoiseFloor, Row,
};
use crate::dataset::{Dataset, Key};
use crate::evidence::{Class, EnvironmentFile, Origin, TimingRecord, Trial};
use crate::identity::Identity;
use crate::import::cells;
use crate::report::view::figures::{Figures, Share, Shown};
use crate::report::view::memory::{resident_of, static_bytes};
use crate::stats::{self, Welch, WelchError};
use protocol::Operation;
use std::collections::{BTreeMap, BTreeSet};

/// Digits of a ratio of records: more than any interval of a campaign leaves.
const RECORD_DIGITS: u32 = 4;

pub(super) struct Pair<'d> {
    pub a: &'d Dataset,
    pub b: &'d Dataset,
    reference: Option<&'d Identity>,
    /// Why times cannot be compared, if so.
    time_barrier: Option<String>,
}

/// Digits of a ratio: as many as the printed cells of both sides carry, where one of them is nothing
/// but a printed cell.
fn digits(shown: &[Option<Shown>; 2]) -> u32 {
    let carried = shown.iter().flatten().filter_map(|shown| shown.digits);
    carried.min().unwrap_or(RECORD_DIGITS)
}

/// Headline figures of a key.
pub(super) fn figures(dataset: &Dataset, key: &Key) -> Figures {
    Figures::of(dataset, key)
}

impl<'d> Pair<'d> {
    pub(super) fn new(a: &'d Dataset, b: &'d Dataset, reference: Option<&'d Identity>) -> Self {
        Pair {
            a,
            b,
            reference,
            time_barrier: time_barrier(a, b),
        }
    }

    /// Rows without their verdicts on tests.
    pub(super) fn rows(&self) -> Vec<Row> {
        keys(self.a)
            .intersection(&keys(self.b))
            .map(|key| self.row(key))
            .collect()
    }

    fn row(&self, key: &Key) -> Row {
        let figures = [figures(self.a, key), figures(self.b, key)];
        let origins = [origin(self.a, key), origin(self.b, key)];
        let cycles = self.compared(key, Metric::Cycles, &figures, origins);
        let time = self.compared(key, Metric::Time, &figures, origins);
        let metric = metric_of(&cycles);
        Row {
            identity: key.0.clone(),
            operation: key.1,
            origins,
            calls: figures.each_ref().map(|f| f.calls),
            verdict: Verdict::NotTested(NotTested::TooFewTrials),
            to_reference: [
                self.to_reference(self.a, &figures[0], key.1, metric),
                self.to_reference(self.b, &figures[1], key.1, metric),
            ],
            memory: [memory(self.a, key), memory(self.b, key)],
            symmetric_share: figures.each_ref().map(|f| match &f.share {
                Share::Known(share) => Some(share.value),
                _ => None,
            }),
            symmetric_texts: figures.each_ref().map(|f| f.share.text()),
            cycles,
            time,
        }
    }

    /// Values and ratio of a metric, or why there is no ratio. The verdict on a ratio is left to the
    /// tests.
    fn compared(
        &self,
        key: &Key,
        metric: Metric,
        figures: &[Figures; 2],
        origins: [Origin; 2],
    ) -> Compared {
        let shown = figures.each_ref().map(|f| value(f, metric).cloned());
        let shown = self.alike(shown, metric);
        let mut compared = Compared {
            values: shown.each_ref().map(|s| s.as_ref().map(|s| s.value)),
            texts: shown.each_ref().map(|s| s.as_ref().map(|s| s.text.clone())),
            ratio: None,
            digits: digits(&shown),
            interval: None,
            p: None,
            p_holm: None,
            trials: [
                trial_means(self.a, key, metric).len(),
                trial_means(self.b, key, metric).len(),
            ],
            verdict: Verdict::NotTested(NotTested::TooFewTrials),
        };
        if let Some(barrier) = self.barrier(metric, figures, origins) {
            compared.verdict = Verdict::NotComparable(barrier);
            return compared;
        }
        let [Some(a), Some(b)] = compared.values else {
            let reason = figures.iter().find_map(|f| f.reason.clone());
            let reason = reason.unwrap_or_else(|| format!("no {} on one side", metric.name()));
            compared.verdict = Verdict::NotComparable(reason);
            return compared;
        };
        compared.ratio = Some(self.mean_ratio([key; 2], metric).unwrap_or(b / a));
        compared
    }

    /// Both values as printed cells, where a side is nothing else: their ratio is the quotient of what
    /// stands on the page, which a reader can form again. A mean of all digits over a rounded cell would
    /// be no better known, and contradict the two cells beside it.
    fn alike(&self, shown: [Option<Shown>; 2], metric: Metric) -> [Option<Shown>; 2] {
        if self.a.cells.is_none() && self.b.cells.is_none() {
            return shown;
        }
        shown.map(|shown| shown.map(|shown| as_printed(shown, metric)))
    }

    /// Ratio of the geometric means of the trials, where both sides have trials.
    fn mean_ratio(&self, [a, b]: [&Key; 2], metric: Metric) -> Option<f64> {
        let mean = |dataset, key| {
            let logs: Vec<f64> = trial_means(dataset, key, metric)
                .iter()
                .map(|&m| libm::log(m))
                .collect();
            (!logs.is_empty()).then(|| stats::exact_sum(&logs) / logs.len() as f64)
        };
        Some(libm::exp(mean(self.b, b)? - mean(self.a, a)?))
    }

    /// Why a metric of a row cannot be compared, if so.
    fn barrier(
        &self,
        metric: Metric,
        figures: &[Figures; 2],
        origins: [Origin; 2],
    ) -> Option<String> {
        if origins[0] != origins[1] {
            return Some(format!(
                "different implementations ({} and {})",
                origins[0].word(),
                origins[1].word()
            ));
        }
        match metric {
            Metric::Cycles => match figures.each_ref().map(|f| is_cycles(f.source)) {
                [true, true] => None,
                [false, false] => Some("no core cycles on either side".to_owned()),
                _ => Some("no core cycles on one side".to_owned()),
            },
            Metric::Time => self.time_barrier.clone(),
        }
    }

    fn to_reference(
        &self,
        dataset: &Dataset,
        own: &Figures,
        operation: Operation,
        metric: Metric,
    ) -> Option<f64> {
        let reference = figures(dataset, &(self.reference?.clone(), operation));
        Some(value(own, metric)?.value / value(&reference, metric)?.value)
    }

    /// The fastest code of each label that both sides have; by cycles where all of them have cycles.
    pub(super) fn fastest(&self) -> Vec<FastestRow> {
        let labels = |dataset| -> BTreeMap<(String, String, Operation), Vec<Identity>> {
            let mut all: BTreeMap<_, Vec<Identity>> = BTreeMap::new();
            for (identity, operation) in keys(dataset) {
                let label = (
                    identity.candidate.clone(),
                    identity.label.clone(),
                    operation,
                );
                all.entry(label).or_default().push(identity);
            }
            all
        };
        let (in_a, in_b) = (labels(self.a), labels(self.b));
        let mut rows: Vec<FastestRow> = in_a
            .iter()
            .filter_map(|(label, of_a)| {
                let of_b = in_b.get(label)?;
                Metric::ALL
                    .into_iter()
                    .find_map(|metric| self.fastest_row(label, [of_a, of_b], metric))
            })
            .collect();
        // Labels in natural order, whichever code is the fastest of each operation.
        rows.sort_by_cached_key(|row| {
            let label = Identity {
                code: String::new(),
                build: String::new(),
                ..row.sides[0].identity.clone()
            };
            (label, row.operation)
        });
        rows
    }

    fn fastest_row(
        &self,
        (candidate, label, operation): &(String, String, Operation),
        identities: [&Vec<Identity>; 2],
        metric: Metric,
    ) -> Option<FastestRow> {
        if metric == Metric::Time && self.time_barrier.is_some() {
            return None;
        }
        let fastest = |dataset, identities: &[Identity]| {
            let values: Vec<(Shown, Fastest)> = identities
                .iter()
                .map(|identity| fastest_of(dataset, &(identity.clone(), *operation), metric))
                .collect::<Option<_>>()?;
            values
                .into_iter()
                .min_by(|x, y| x.0.value.total_cmp(&y.0.value))
        };
        let sides = [
            fastest(self.a, identities[0])?,
            fastest(self.b, identities[1])?,
        ];
        let keys = sides
            .each_ref()
            .map(|(_, side)| (side.identity.clone(), *operation));
        let ratio = self.mean_ratio(keys.each_ref(), metric);
        let [(a, mut side_a), (b, mut side_b)] = sides;
        let shown = self.alike([Some(a), Some(b)], metric);
        for (side, shown) in [&mut side_a, &mut side_b].into_iter().zip(&shown) {
            side.value = shown.as_ref().map_or(side.value, |shown| shown.value);
        }
        Some(FastestRow {
            candidate: candidate.clone(),
            label: label.clone(),
            operation: *operation,
            metric,
            ratio: ratio.unwrap_or(side_b.value / side_a.value),
            digits: digits(&shown),
            sides: [side_a, side_b],
        })
    }

    /// Floors of both families, from the operation that each run timed twice.
    pub(super) fn noise_floors(&self) -> Vec<NoiseFloor> {
        Metric::ALL
            .into_iter()
            .map(|metric| NoiseFloor {
                metric,
                a: noise_floor(self.a, metric),
                b: noise_floor(self.b, metric),
            })
            .collect()
    }
}

/// A candidate for the fastest code: its value in a metric, and what is said of it.
fn fastest_of(dataset: &Dataset, key: &Key, metric: Metric) -> Option<(Shown, Fastest)> {
    let figures = figures(dataset, key);
    let shown = value(&figures, metric)?.clone();
    let fastest = Fastest {
        identity: key.0.clone(),
        origin: origin(dataset, key),
        calls: figures.calls,
        value: shown.value,
        text: shown.text.clone(),
    };
    Some((shown, fastest))
}

/// Trial means of a record in a metric; none for published cells, or where one trial lacks cycles.
pub(super) fn trial_means(dataset: &Dataset, key: &Key, metric: Metric) -> Vec<f64> {
    let record = dataset.timing.get(key);
    record.map_or_else(Vec::new, |entry| means_of(&entry.value, metric))
}

fn means_of(record: &TimingRecord, metric: Metric) -> Vec<f64> {
    if metric == Metric::Cycles && !is_cycles(record.cycle_source.kind) {
        return Vec::new();
    }
    let counted = record.trials.iter().filter_map(Trial::counted_attempt);
    let means: Option<Vec<f64>> = counted
        .map(|attempt| {
            let total = match metric {
                Metric::Cycles => attempt.cycles? as f64,
                Metric::Time => attempt.seconds(),
            };
            Some(total / attempt.calls as f64)
        })
        .collect();
    means.unwrap_or_default()
}

fn noise_floor(dataset: &Dataset, metric: Metric) -> Option<f64> {
    let (_, pair) = second_timing(dataset, metric)?;
    Some(stats::noise_floor(&pair.ok()?))
}

/// The pair of the noise floor.
pub(super) fn second_timing(
    dataset: &Dataset,
    metric: Metric,
) -> Option<(Key, Result<Welch, WelchError>)> {
    let second = &dataset.aa.first()?.value;
    let key = (second.head.identity.clone(), second.operation);
    let first = &dataset.timing.get(&key)?.value;
    let pair = stats::welch(&means_of(first, metric), &means_of(second, metric));
    Some((key, pair))
}

fn value(figures: &Figures, metric: Metric) -> Option<&Shown> {
    match metric {
        Metric::Cycles => figures.mean.as_ref().filter(|_| is_cycles(figures.source)),
        Metric::Time => figures.time.as_ref(),
    }
}

/// A figure of a record as its cell prints it.
fn as_printed(shown: Shown, metric: Metric) -> Shown {
    let title = match metric {
        Metric::Cycles => "mean cycles",
        Metric::Time => "mean time",
    };
    match cells::quantity("performance", title, &shown.text) {
        Some(printed) if shown.digits.is_none() => Shown {
            value: printed.value,
            digits: Some(printed.digits),
            ..shown
        },
        _ => shown,
    }
}

fn memory(dataset: &Dataset, key: &Key) -> Memory {
    let isolated = dataset.memory.get(key);
    let isolated = isolated.and_then(|entry| entry.value.derived.as_ref());
    Memory {
        static_bytes: static_bytes(dataset, key),
        resident: resident_of(dataset, key),
        isolated_bytes: isolated.map(|derived| derived.guide_total_bytes),
    }
}

fn origin(dataset: &Dataset, key: &Key) -> Origin {
    if let Some(entry) = dataset.timing.get(key) {
        return entry.value.head.origin;
    }
    if let Some(cells) = &dataset.cells {
        return cells.value.origin;
    }
    let candidates = &dataset.campaign.candidates;
    let candidate = candidates.iter().find(|c| c.id == key.0.candidate);
    candidate.map_or(Origin::Independent, |c| c.origin)
}

/// Why times of two datasets cannot be compared, if so: they can where both machines are registered
/// ones (measured by us, imported or published), or where both runs are of one and the same machine.
fn time_barrier(a: &Dataset, b: &Dataset) -> Option<String> {
    let known = |class| {
        matches!(
            class,
            Class::Registered | Class::Imported | Class::Aggregate
        )
    };
    let (class_a, class_b) = (a.campaign.class, b.campaign.class);
    if known(class_a) && known(class_b) {
        return None;
    }
    if class_a != Class::Local || class_b != Class::Local {
        let odd = if known(class_a) { class_b } else { class_a };
        return Some(match odd {
            Class::Emulated => "times of an emulated run say nothing about a system".to_owned(),
            Class::Published => "figures of a document are never set into a ratio".to_owned(),
            _ => "a machine that is not registered is compared with itself only".to_owned(),
        });
    }
    let facts = |dataset: &Dataset| -> BTreeSet<String> {
        let environments = dataset.environments.iter().map(|entry| &entry.value);
        environments.map(machine).collect()
    };
    (facts(a) != facts(b)).then(|| {
        "two machines that are not registered: processor, memory or kernel differ".to_owned()
    })
}

/// Processor, memory and kernel: what makes two local runs comparable.
fn machine(environment: &EnvironmentFile) -> String {
    let stable = &environment.stable;
    format!(
        "{:?} {:?} {:?}",
        stable.cpu_model, stable.memory_total_kib, stable.kernel
    )
}
