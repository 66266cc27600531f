//! The published figures of `performance/published/file-size.csv` beside ours, and which statements of
//! their document our points bear out. Every verdict here is computed from the points by the criterion
//! that stands beside it.

use super::charts::{megabytes, percent};
use super::data::{mean_s, value, Data};
use super::tables::{mean_text, pairs, together_from};
use crate::evidence::StudyRecord;
use crate::identity::Identity;
use crate::report::format;
use crate::report::table::{Cell, Notes, Table};
use crate::values::Size;
use protocol::{Operation, StudyMode};

/// Figures stated in the text of the published document.
const FIGURES: &str = include_str!("../../../../../performance/published/file-size.csv");

/// Bytes of a MB of the document.
const MB: u64 = 1_000_000;

/// A published figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published<'t> {
    /// `dilithium2`, or `all`.
    pub instance: &'t str,
    /// Operation.
    pub operation: Operation,
    /// Size of the file, bytes.
    pub size: u64,
    /// `time`, `cpu`, `memory`.
    pub quantity: &'t str,
    /// As printed.
    pub value: &'t str,
    /// As printed.
    pub unit: &'t str,
}

/// The figures in the order of the file; a line that cannot be read is left to the test that counts
/// them.
pub fn read(text: &str) -> Vec<Published<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines
        .filter_map(|line| {
            let cells: Vec<&str> = line.splitn(6, ',').collect();
            let [instance, operation, mb, quantity, value, unit] = cells[..] else {
                return None;
            };
            let operation = Operation::ALL.into_iter().find(|o| o.name() == operation)?;
            Some(Published {
                instance,
                operation,
                size: mb.parse::<u64>().ok()? * MB,
                quantity,
                value,
                unit,
            })
        })
        .collect()
}

/// The parameter set of a published figure in the family that the figures of the page are of.
fn ours<'a>(data: &Data<'a>, label: &str) -> Option<&'a Identity> {
    let family = data.family();
    family
        .into_iter()
        .find(|id| id.candidate == "dilithium" && id.label == label)
}

/// A row of the published figures beside ours; a figure of all levels stands beside each of them.
pub fn figures(data: &Data, notes: &mut Notes) -> Table {
    let mut table = Table::with(&[
        "instance",
        "operation",
        "file#",
        "quantity",
        "published#",
        "ours, whole message in memory#",
        "ours, in chunks#",
        "unit of ours",
    ]);
    for row in read(FIGURES) {
        let labels: Vec<&str> = match row.instance {
            "all" => vec!["dilithium2", "dilithium3", "dilithium5"],
            one => vec![one],
        };
        for label in labels {
            let name = match row.instance {
                "all" => Cell::text(format!("all, {label}")),
                _ => Cell::code(label),
            };
            let mut cells = vec![
                name,
                Cell::text(row.operation.name()),
                Cell::text(format!("{} MB", row.size / MB)),
                Cell::text(row.quantity),
                Cell::text(format!("{} {}", row.value, short(row.unit))),
            ];
            let main = data.main_mode(row.operation);
            cells.push(own(data, label, &row, main, notes));
            cells.push(match row.operation {
                Operation::Keygen => {
                    Cell::missing(notes, "key generation takes no message (not_in_plan)")
                }
                _ => own(data, label, &row, StudyMode::Stream, notes),
            });
            cells.push(Cell::text(match row.quantity {
                "time" => "mean of one call",
                "cpu" => "percent of all cores, of one core",
                _ => "peak resident set",
            }));
            table.rows.push(cells);
        }
    }
    table
}

fn short(unit: &str) -> &str {
    match unit.starts_with("percent") {
        true => "% of four cores",
        false => unit,
    }
}

fn own(data: &Data, label: &str, row: &Published, mode: StudyMode, notes: &mut Notes) -> Cell {
    let Some(identity) = ours(data, label) else {
        return Cell::missing(
            notes,
            "this parameter set is not in this study (not_in_plan)",
        );
    };
    if !data.settings.sizes.contains(&row.size) {
        return Cell::missing(
            notes,
            "this size is not in this study: `--full` adds 500 MB and 1 GB (not_in_plan)",
        );
    }
    let Some(record) = data.complete(identity, row.operation, mode, row.size) else {
        return Cell::missing(
            notes,
            "not measured in this mode; the row of the point says why",
        );
    };
    let text = match row.quantity {
        "time" => mean_text(record),
        "cpu" => value(record, |study| {
            let (all, one) = (study.cpu_percent_all, study.cpu_percent_one);
            format!("{}, {}", percent(all), percent(one))
        }),
        _ => value(record, |study| megabytes(study.peak_rss_bytes as f64)),
    };
    Cell::or_missing(text, notes, "not recorded")
}

/// What a statement is about: what other processes take can be told from memory, and not from time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Time,
    Memory,
}

/// What became of a statement.
struct Verdict {
    says: String,
    word: &'static str,
}

const HOLDS: &str = "holds";
const ARTEFACT: &str = "artefact of its harness";
const NOT: &str = "does not hold here";
const OPEN: &str = "not measured here";
const BUSY: &str = "not judged: the machine was busy";

fn verdict(holds: bool, otherwise: &'static str, says: String) -> Verdict {
    Verdict {
        says,
        word: if holds { HOLDS } else { otherwise },
    }
}

fn open(needs: &str) -> Verdict {
    Verdict {
        says: format!("it needs {needs}"),
        word: OPEN,
    }
}

/// Points of one level in the mode that holds the whole message in memory.
struct Levels<'d, 'a> {
    data: &'d Data<'a>,
    family: Vec<&'a Identity>,
}

impl<'a> Levels<'_, 'a> {
    fn record(&self, level: usize, operation: Operation, size: u64) -> Option<&'a StudyRecord> {
        let mode = self.data.main_mode(operation);
        self.data
            .complete(self.family.get(level)?, operation, mode, size)
    }

    /// A value of every level at a size; `None` unless all have it and there are several.
    fn all(
        &self,
        operation: Operation,
        size: u64,
        of: impl Fn(&StudyRecord) -> Option<f64>,
    ) -> Option<Vec<f64>> {
        let level = |index| self.record(index, operation, size).and_then(&of);
        let all = (0..self.family.len())
            .map(level)
            .collect::<Option<Vec<f64>>>()?;
        (all.len() > 1).then_some(all)
    }

    fn highest(&self) -> usize {
        self.family.len().saturating_sub(1)
    }

    /// Sizes ascending that the highest level has in an operation.
    fn sizes(&self, operation: Operation) -> Vec<u64> {
        let sizes = self.data.settings.sizes.iter().copied();
        sizes
            .filter(|&size| self.record(self.highest(), operation, size).is_some())
            .collect()
    }
}

fn peak(record: &StudyRecord) -> Option<f64> {
    value(record, |study| study.peak_rss_bytes as f64)
}

fn one_core(record: &StudyRecord) -> Option<f64> {
    value(record, |study| study.cpu_percent_one)
}

fn texts(values: &[f64], text: fn(f64) -> String) -> String {
    let all: Vec<String> = values.iter().map(|&v| text(v)).collect();
    all.join(", ")
}

/// Greatest over least.
fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    most / least
}

/// The statements of the document, each with its criterion and what our points say.
pub fn statements(data: &Data) -> Table {
    let levels = Levels {
        data,
        family: data.family(),
    };
    let mut table = Table::with(&["the document says", "criterion", "ours", "verdict"]);
    // What other processes took cannot be told from what an operation needs; memory can.
    let busy = data.is_busy();
    // The document is about Dilithium; what another scheme does says nothing of its statements.
    let is_its_subject = levels
        .family
        .first()
        .is_some_and(|identity| identity.candidate == "dilithium");
    let mut row = |about: About, says: &str, criterion: &str, verdict: Verdict| {
        let verdict = match is_its_subject {
            true => verdict,
            false => open("a parameter set of the document, Dilithium, in the study"),
        };
        table.rows.push(vec![
            Cell::text(says),
            Cell::text(criterion),
            Cell::text(verdict.says),
            Cell::text(match busy && about == About::Time && verdict.word != OPEN {
                true => BUSY,
                false => verdict.word,
            }),
        ]);
    };
    row(
        About::Time,
        "Key generation does not depend on the size of the file.",
        "the fitted growth over the largest size is below 5% of the fixed cost",
        keygen(&levels),
    );
    row(
        About::Time,
        "Signing and verifying grow almost linearly: ten times the file, nearly ten times the time.",
        "between the two largest sizes at least 1 MB the time grows by the ratio of the sizes, within 10%",
        linear(&levels),
    );
    row(
        About::Time,
        "At 1000 MB the levels converge; the cost of a higher level is negligible.",
        "at the largest size the slowest level is within 2% of the fastest, in signing and verifying",
        converge(&levels),
    );
    row(
        About::Time,
        "At 1 MB Dilithium-5 signs 72% and verifies 45% slower than Dilithium-2.",
        "the highest level is at least 30% slower at 1 MB in both",
        small(&levels),
    );
    row(
        About::Time,
        "Key generation of Dilithium-3 takes 1.5 times, of Dilithium-5 twice as long as of Dilithium-2.",
        "the levels are in ascending order, the highest between 1.5 and 3.5 times the lowest",
        keygen_levels(&levels),
    );
    row(
        About::Memory,
        "Memory of signing and verifying is the size of the file and a fixed overhead.",
        "with the whole message in memory, peak less baseline is within 5% of the file at the largest size; in chunks it is not",
        memory(&levels),
    );
    row(
        About::Memory,
        "Memory of verifying 100 MB depends on the level: 23.9, 64.5, 114.7 MB.",
        "at the largest size the levels differ by more than 10% of the smallest",
        memory_levels(&levels),
    );
    row(
        About::Time,
        "Use of the CPU rises with the file: 15-24% of four cores at 1 MB, 29-30% at 1000 MB.",
        "use of one core at the largest size is more than 1.1 times that at 1 MB, in signing or verifying",
        cpu_by_size(&levels),
    );
    row(
        About::Time,
        "At 100 MB Dilithium-5 verifies with less CPU (23.19%) than Dilithium-2 (29.23%).",
        "use of one core differs between the levels by more than a tenth at the largest size",
        cpu_by_level(&levels, Operation::Verify, None),
    );
    row(
        About::Time,
        "Key generation of a higher level uses more CPU: 10-12% for Dilithium-2, 17-18% for Dilithium-5.",
        "use of one core differs between the levels by more than a tenth at 1 MB",
        cpu_by_level(&levels, Operation::Keygen, Some(data.level_size())),
    );
    row(
        About::Time,
        "30% of a quad core suggests hyper-threading or task switching between cores.",
        "a process of one thread uses more than 101% of one core in some point",
        above_a_core(data),
    );
    row(
        About::Memory,
        "Signing a digest of the file instead avoids the memory.",
        "a prehash mode needs less than a tenth of the file at the largest size",
        prehash(&levels),
    );
    table
}

fn keygen(levels: &Levels) -> Verdict {
    let (data, operation) = (levels.data, Operation::Keygen);
    let mode = data.main_mode(operation);
    let fits = levels
        .family
        .iter()
        .map(|id| data.mode_fit(id, operation, mode)?.model);
    let Some(fits) = fits
        .collect::<Option<Vec<_>>>()
        .filter(|fits| !fits.is_empty())
    else {
        return open("key generations at three sizes");
    };
    let largest = levels.sizes(operation).last().copied().unwrap_or(0) as f64;
    let growth: Vec<f64> = fits
        .iter()
        .map(|fit| fit.s_per_byte.value * largest / fit.fixed_s.value)
        .collect();
    let is_small = |growth: &f64| growth.abs() < 0.05;
    // A wide interval is no finding: it may hold 0 and a doubling.
    let unsure = fits.iter().zip(&growth).any(|(fit, growth)| {
        let ends = fit.s_per_byte.low.zip(fit.s_per_byte.high);
        let holds_zero = ends.is_none_or(|(low, high)| low <= 0.0 && high >= 0.0);
        holds_zero && !is_small(growth)
    });
    if unsure {
        return open("more sizes or trials: the growth can be told neither from 0 nor from 5%");
    }
    let still = growth.iter().all(is_small);
    let growth: Vec<String> = growth
        .iter()
        .map(|g| format!("{:+.1}%", g * 100.0))
        .collect();
    verdict(
        still,
        NOT,
        format!(
            "fitted change up to the largest size, by level: {}",
            growth.join(", ")
        ),
    )
}

fn linear(levels: &Levels) -> Verdict {
    let mut says = Vec::new();
    let mut holds = true;
    for operation in [Operation::Sign, Operation::Verify] {
        let sizes = levels.sizes(operation);
        let large: Vec<u64> = sizes.into_iter().filter(|&size| size >= MB).collect();
        let [.., small, large] = large[..] else {
            return open("two sizes of at least 1 MB");
        };
        let time = |size| {
            levels
                .record(levels.highest(), operation, size)
                .and_then(mean_s)
        };
        let (Some(a), Some(b)) = (time(small), time(large)) else {
            return open("two sizes of at least 1 MB");
        };
        let (grown, sizes) = (b / a, large as f64 / small as f64);
        holds &= (grown / sizes - 1.0).abs() < 0.1;
        says.push(format!(
            "{} takes {} times as long on {} as on {}",
            operation.name(),
            format::general3(grown),
            Size(large),
            Size(small)
        ));
    }
    verdict(holds, NOT, says.join("; "))
}

fn converge(levels: &Levels) -> Verdict {
    let mut says = Vec::new();
    let mut holds = true;
    for operation in [Operation::Sign, Operation::Verify] {
        let Some(&size) = levels.sizes(operation).last() else {
            return open("signatures and verifications");
        };
        let Some(times) = levels.all(operation, size, mean_s) else {
            return open("several levels");
        };
        holds &= spread(&times) < 1.02;
        let together = together_from(&pairs(levels.data, &levels.family, operation));
        let together = match together {
            Some(size) => format!("not told apart from {} on", Size(size)),
            None => "told apart still".to_owned(),
        };
        says.push(format!(
            "{} of {}: {} ({together})",
            operation.name(),
            Size(size),
            texts(&times, format::time)
        ));
    }
    verdict(holds, NOT, says.join("; "))
}

fn small(levels: &Levels) -> Verdict {
    let size = levels.data.level_size();
    let mut says = Vec::new();
    let mut holds = true;
    for operation in [Operation::Sign, Operation::Verify] {
        let Some(times) = levels.all(operation, size, mean_s) else {
            return open("several levels at 1 MB");
        };
        let slower = times[times.len() - 1] / times[0] - 1.0;
        holds &= slower > 0.3;
        says.push(format!(
            "{} of {}: {:+.0}%",
            operation.name(),
            Size(size),
            slower * 100.0
        ));
    }
    verdict(holds, ARTEFACT, says.join(", "))
}

fn keygen_levels(levels: &Levels) -> Verdict {
    let size = levels.data.level_size();
    let Some(times) = levels.all(Operation::Keygen, size, mean_s) else {
        return open("several levels");
    };
    let ratio = times[times.len() - 1] / times[0];
    let holds = times.is_sorted() && (1.5..=3.5).contains(&ratio);
    let relative: Vec<String> = times
        .iter()
        .map(|t| format::general3(t / times[0]))
        .collect();
    verdict(
        holds,
        NOT,
        format!(
            "{}, that is, in the ratio {}",
            texts(&times, format::time),
            relative.join(" : ")
        ),
    )
}

fn memory(levels: &Levels) -> Verdict {
    let operation = Operation::Sign;
    let Some(&size) = levels
        .sizes(operation)
        .last()
        .filter(|&&size| size >= 10 * MB)
    else {
        return open("a size of at least 10 MB");
    };
    let added = |record: &StudyRecord| {
        value(record, |s| {
            s.peak_rss_bytes as f64 - s.baseline_rss_bytes as f64
        })
    };
    let highest = levels.highest();
    let Some(whole) = levels.record(highest, operation, size).and_then(added) else {
        return open("a signature with the whole message in memory");
    };
    let chunks = levels
        .data
        .complete(levels.family[highest], operation, StudyMode::Stream, size)
        .and_then(added);
    let holds = (whole / size as f64 - 1.0).abs() < 0.05;
    let chunks_text = match chunks {
        Some(chunks) => format!(
            "in chunks it adds {}: the memory is that of who holds the file, not of the algorithm",
            megabytes(chunks)
        ),
        None => "in chunks it was not measured".to_owned(),
    };
    let mode = levels.data.main_mode(operation).name();
    verdict(
        holds,
        NOT,
        format!(
            "in mode {mode} a file of {} adds {} to the baseline; {chunks_text}",
            Size(size),
            megabytes(whole)
        ),
    )
}

fn memory_levels(levels: &Levels) -> Verdict {
    let operation = Operation::Verify;
    let Some(&size) = levels.sizes(operation).last() else {
        return open("verifications");
    };
    let Some(peaks) = levels.all(operation, size, peak) else {
        return open("several levels");
    };
    let says = format!(
        "peak at {}, by level: {}",
        Size(size),
        texts(&peaks, megabytes)
    );
    verdict(spread(&peaks) > 1.1, ARTEFACT, says)
}

fn cpu_by_size(levels: &Levels) -> Verdict {
    let small = levels.data.level_size();
    let mut says = Vec::new();
    let mut rises = false;
    for operation in [Operation::Sign, Operation::Verify] {
        let largest = levels.sizes(operation).last().copied().unwrap_or(0);
        let use_at = |size| {
            levels
                .record(levels.highest(), operation, size)
                .and_then(one_core)
        };
        let (Some(a), Some(b)) = (use_at(small), use_at(largest)) else {
            return open("signatures and verifications at 1 MB");
        };
        if small < MB || largest <= small {
            return open("signatures and verifications at 1 MB and at a larger size");
        }
        rises |= b > 1.1 * a;
        says.push(format!(
            "{}: {} of one core at {}, {} at {}",
            operation.name(),
            percent(a),
            Size(small),
            percent(b),
            Size(largest)
        ));
    }
    verdict(rises, ARTEFACT, says.join("; "))
}

fn cpu_by_level(levels: &Levels, operation: Operation, at: Option<u64>) -> Verdict {
    let Some(size) = at.or_else(|| levels.sizes(operation).last().copied()) else {
        return open("such operations");
    };
    let Some(all) = levels.all(operation, size, one_core) else {
        return open("several levels");
    };
    let says = format!(
        "of one core at {}, by level: {}",
        Size(size),
        texts(&all, percent)
    );
    verdict(spread(&all) > 1.1, ARTEFACT, says)
}

fn above_a_core(data: &Data) -> Verdict {
    let all = data.identities.iter().flat_map(|id| data.points_of(id));
    let uses: Vec<f64> = all.filter_map(|entry| one_core(&entry.value)).collect();
    let Some(most) = uses.iter().copied().max_by(f64::total_cmp) else {
        return open("any point");
    };
    let of_four = most / 4.0;
    verdict(
        most > 101.0,
        ARTEFACT,
        format!(
            "at most {} of one core, which is {} of four, in {} points: a process of one thread cannot use more than one core, so the rest belongs to other processes or to the way of sampling",
            percent(most),
            percent(of_four),
            uses.len()
        ),
    )
}

fn prehash(levels: &Levels) -> Verdict {
    let (data, operation) = (levels.data, Operation::Sign);
    let mode = StudyMode::PrehashSha256;
    let found = levels.family.last().and_then(|id| {
        let size = data.largest(id, operation, mode)?;
        Some((size, data.complete(id, operation, mode, size)?))
    });
    let Some((size, record)) = found.filter(|(size, _)| *size >= 100 * MB) else {
        return open("the mode prehash-sha256 at 100 MB");
    };
    let (Some(peak), Some(time)) = (peak(record), mean_text(record)) else {
        return open("the mode prehash-sha256 at 100 MB");
    };
    verdict(
        peak < size as f64 / 10.0,
        NOT,
        format!(
            "prehash-sha256 of {}: peak {}, {time}; so does signing the file itself in chunks",
            Size(size),
            megabytes(peak)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_is_read() {
        let rows = read(FIGURES);
        let lines = FIGURES
            .lines()
            .filter(|l| !l.starts_with('#') && !l.is_empty());
        assert_eq!(rows.len(), lines.count() - 1, "all but the head");
        assert_eq!(rows.len(), 40);
        assert_eq!(rows[0].size, MB);
        assert!(rows.iter().any(|row| row.value == "10-12"));
        assert!(rows
            .iter()
            .all(|row| ["time", "cpu", "memory"].contains(&row.quantity)));
    }
}
