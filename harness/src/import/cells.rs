//! Tables of published cells: a page without its trials, as a dataset of class `aggregate`.
//!
//! A line is `<section> TAB header|row TAB <cell> TAB <cell> ...`; lines that begin with `#` say what
//! the table is. Cells keep their text; what they say as numbers stands beside it.

use super::context::Context;
use super::dataset::{close, public, put, Imported};
use super::derive::{plain, DerivedFile, SOURCE};
use super::ImportError;
use crate::audit::{files as plain_files, text};
use crate::clock::Stamp;
use crate::config::model::Campaign;
use crate::evidence::store::StoreError;
use crate::evidence::*;
use crate::identity::Identity;
use crate::place::Place;
use protocol::SourceKind;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The public campaign's pages show the submitters' reference code in its reference build.
const CODE: &str = "ref";
/// See [`CODE`].
const BUILD: &str = "reference";

/// The table below a dataset.
pub const TABLE: &str = "source/cells.tsv";

/// What such a dataset says of itself on every page.
pub const TEXT: &str = "Cells of a published page, without the trials behind them: they can be shown and compared to the digits \
    that they carry, and cannot be recomputed.";

/// Imports a table of cells for a system. Without an id the dataset is `public-<year>`.
pub fn import(
    config: &Campaign,
    file: &Path,
    system: &str,
    id: Option<&str>,
    current: bool,
) -> Result<Imported, ImportError> {
    let wrong = |line: usize, what: String| ImportError::Table {
        file: file.to_owned(),
        line,
        what,
    };
    let bytes = read(file)?.map_err(|what| wrong(1, what))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(1, "it is not UTF-8".to_owned()))?;
    let table = parse(&text).map_err(|(line, what)| wrong(line, what))?;
    let candidate = candidate(config, &table.labels()).map_err(|what| wrong(1, what))?;
    let labels = BTreeMap::from([(candidate.as_str(), table.labels().into_iter().collect())]);
    let context = Context::new(config, system, labels, BTreeMap::new());
    let arch = config.system(system).map_or("", |s| s.arch.word());
    let files = files(
        &table,
        &Stated {
            system,
            arch,
            candidate: &candidate,
        },
        &context,
    )?;
    let (start, end) = table.period().ok_or_else(|| {
        wrong(
            1,
            "the environment has no row `campaign start / end (UTC)`".to_owned(),
        )
    })?;
    let place = Place::new(
        &config.root,
        system,
        &id.map_or_else(|| public(start), str::to_owned),
    )?;
    let workshop = place.workshop()?;
    let mut entries = vec![put(workshop.path(), TABLE, text.as_bytes())?];
    for (path, bytes) in &files {
        entries.push(put(workshop.path(), path, bytes)?);
    }
    let stamp = Stamp {
        utc_us: text::utc_ns(&format!("{end}Z"))
            .and_then(|ns| i64::try_from(ns / 1000).ok())
            .ok_or_else(|| wrong(1, format!("`{end}` is no time")))?,
        monotonic_ns: 0,
    };
    let seal = close(workshop.path(), entries, TEXT, stamp)?;
    Ok(Imported {
        path: place.install(workshop, &seal, current)?,
        seal,
        files: files.len() + 1,
        dropped: 0,
        left_out: Vec::new(),
    })
}

/// The bytes of a table, or what is wrong with the file.
fn read(file: &Path) -> Result<Result<Vec<u8>, String>, StoreError> {
    let real = file.canonicalize().map_err(|source| StoreError::Read {
        path: file.to_owned(),
        source,
    })?;
    let name = real.file_name().and_then(|name| name.to_str());
    Ok(match (real.parent(), name) {
        (Some(folder), Some(name)) => plain_files::read(folder, name, plain_files::LARGEST),
        _ => Err("it is no plain file with a readable name".to_owned()),
    })
}

/// The only candidate that has all of these parameter sets.
fn candidate(config: &Campaign, labels: &BTreeSet<&str>) -> Result<String, String> {
    let has = |c: &&crate::config::model::Candidate| {
        labels
            .iter()
            .all(|label| c.instances.iter().any(|i| i.label == *label))
    };
    let mut found = config.candidates.iter().filter(has);
    match (found.next(), found.next()) {
        (Some(one), None) if !labels.is_empty() => Ok(one.id.clone()),
        _ => Err("its instances are not those of one candidate of campaign.toml".to_owned()),
    }
}

/// A table as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Comment lines.
    pub document: Vec<String>,
    /// Tables in the order of the text.
    pub tables: Vec<CellTable>,
}

impl Table {
    fn rows(&self, section: &str) -> impl Iterator<Item = &Vec<Cell>> {
        let wanted = move |table: &&CellTable| table.section == section;
        let table = self.tables.iter().find(wanted);
        table.into_iter().flat_map(|table| &table.rows)
    }

    /// Parameter sets of the performance table.
    pub fn labels(&self) -> BTreeSet<&str> {
        self.rows("performance")
            .map(|row| row[0].text.as_str())
            .collect()
    }

    /// Text of an item of the environment.
    fn environment(&self, item: &str) -> Option<&str> {
        let row = self.rows("environment").find(|row| row[0].text == item)?;
        Some(&row.get(1)?.text)
    }

    /// Start and end of the campaign.
    fn period(&self) -> Option<(&str, &str)> {
        self.environment("campaign start / end (UTC)")?
            .split_once(" / ")
    }

    /// The measured CPU, where the environment names it.
    fn cpu(&self) -> Option<u32> {
        let (_, rest) = self.environment("processor")?.split_once("(CPU ")?;
        rest.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    }

    fn cycle_source(&self) -> SourceKind {
        let performance = self.tables.iter().find(|t| t.section == "performance");
        let has = |title: &str| performance.is_some_and(|t| t.column(title).is_some());
        match () {
            () if has("mean cycles") => SourceKind::Perf,
            () if has("mean TSC ticks") => SourceKind::Tsc,
            () if has("mean CNTVCT ticks") => SourceKind::Cntvct,
            () => SourceKind::None,
        }
    }
}

/// Reads a table; an error has the number of its line, from 1.
pub fn parse(text: &str) -> Result<Table, (usize, String)> {
    let mut table = Table {
        document: Vec::new(),
        tables: Vec::new(),
    };
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str| (index + 1, what.to_owned());
        if let Some(comment) = line.strip_prefix('#') {
            table.document.push(comment.trim().to_owned());
            continue;
        }
        if line.trim().is_empty() {
            continue;
        }
        let mut parts = line.split('\t');
        let (section, kind) = (parts.next().unwrap_or_default(), parts.next());
        let cells: Vec<&str> = parts.collect();
        match kind {
            Some("header") if table.tables.iter().all(|t| t.section != section) => {
                table.tables.push(CellTable {
                    section: section.to_owned(),
                    header: cells.iter().map(|c| (*c).to_owned()).collect(),
                    rows: Vec::new(),
                });
            }
            Some("row") => match table.tables.last_mut() {
                Some(last) if last.section == section && last.header.len() == cells.len() => {
                    let row = last
                        .header
                        .iter()
                        .zip(&cells)
                        .map(|(h, c)| cell(section, h, c));
                    let row = row.collect();
                    last.rows.push(row);
                }
                Some(last) if last.section == section => {
                    return Err(wrong("it has another number of cells than its header"))
                }
                _ => return Err(wrong("a row comes after the header of its section")),
            },
            _ => {
                return Err(wrong(
                    "expected a section, then `header` or `row`, once a section, between tabs",
                ))
            }
        }
    }
    Ok(table)
}

fn cell(section: &str, header: &str, text: &str) -> Cell {
    Cell {
        text: text.to_owned(),
        quantity: quantity(section, header, text),
    }
}

/// What a printed cell says as a number.
pub(crate) fn quantity(section: &str, header: &str, text: &str) -> Option<Quantity> {
    let unit = match (section, header) {
        ("performance", "mean cycles") => "cycles",
        ("performance", "mean TSC ticks" | "mean CNTVCT ticks") => "ticks",
        ("performance", "mean time" | "median trial") => "s",
        ("performance", "ops/s") => "1/s",
        ("performance", header) if header.starts_with("n ") => "calls",
        ("resource" | "sizes", header) if !matches!(header, "instance" | "operation") => "bytes",
        ("symmetric", _) if text.ends_with('%') => "share",
        _ => return None,
    };
    // `≈ 2420`, `4627 (maximum)`, `105 (5 × 21)`: the number is what matters.
    let text = text.trim_start_matches('≈').trim_start();
    let text = text.split(" (").next().unwrap_or_default();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || ".e+-".contains(c)))
        .unwrap_or(text.len());
    let (number, suffix) = (&text[..end], text[end..].trim());
    let power = match suffix {
        "" | "s" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "ms" => -3,
        "µs" => -6,
        "ns" => -9,
        "%" => -2,
        "KiB" => {
            let kib: u64 = number.parse().ok()?;
            return Some(Quantity {
                value: kib.checked_mul(1024)? as f64,
                unit: unit.to_owned(),
                digits: digits(number),
            });
        }
        _ => return None,
    };
    let (mantissa, exponent) = number.split_once('e').unwrap_or((number, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let value: f64 = format!("{mantissa}e{}", exponent.checked_add(power)?)
        .parse()
        .ok()?;
    Some(Quantity {
        value,
        unit: unit.to_owned(),
        // These formats print three digits and then drop zeros: `90 ms` is 90.0 ms.
        digits: if matches!(unit, "s" | "1/s") {
            3
        } else {
            digits(mantissa)
        },
    })
}

/// Significant digits of a decimal number.
fn digits(number: &str) -> u32 {
    let all: String = number.chars().filter(char::is_ascii_digit).collect();
    all.trim_start_matches('0').len().max(1) as u32
}

/// What the table does not say.
#[derive(Debug, Clone, Copy)]
pub struct Stated<'a> {
    /// System that was measured.
    pub system: &'a str,
    /// Its architecture.
    pub arch: &'a str,
    /// Candidate of the page.
    pub candidate: &'a str,
}

/// All files of the dataset but the table, the manifest and the journal: a pure function, so that an
/// audit can make them again.
pub fn files(
    table: &Table,
    stated: &Stated,
    context: &Context,
) -> Result<Vec<DerivedFile>, ImportError> {
    let mut campaign = campaign(table, stated, context)?;
    explain(&mut campaign);
    let cells = CellsFile {
        schema: SCHEMA.to_owned(),
        kind: Kind::Cells,
        system: stated.system.to_owned(),
        class: Class::Aggregate,
        candidate: stated.candidate.to_owned(),
        origin: Origin::Submission,
        code: CODE.to_owned(),
        build: BUILD.to_owned(),
        document: table.document.clone(),
        cycle_source: table.cycle_source(),
        tables: table.tables.clone(),
    };
    Ok(vec![
        plain(CAMPAIGN_FILE, &campaign)?,
        plain("cells.json", &cells)?,
    ])
}

fn campaign(
    table: &Table,
    stated: &Stated,
    context: &Context,
) -> Result<CampaignFile, ImportError> {
    let mut rows = Vec::new();
    for label in table.labels() {
        let identity = Identity::new(stated.candidate, label, CODE, BUILD);
        rows.push(RowInfo {
            identity: identity.map_err(|error| ImportError::Foreign {
                file: format!("{SOURCE}/cells.tsv"),
                what: error.to_string(),
            })?,
            status: Status::Complete,
            reason: None,
        });
    }
    rows.sort_by(|a, b| a.identity.cmp(&b.identity));
    let utc = |text: &str| Some(format!("{text}Z"));
    Ok(CampaignFile {
        schema: SCHEMA.to_owned(),
        kind: Kind::Campaign,
        system: stated.system.to_owned(),
        arch: stated.arch.to_owned(),
        system_description: context.system_description.clone(),
        class: Class::Aggregate,
        study: None,
        plan: None,
        config_sha256: None,
        only: None,
        cpus: table.cpu().into_iter().collect(),
        allow_unfixed_host: false,
        tool: ToolInfo {
            name: "table of cells".to_owned(),
            version: "1".to_owned(),
            source_digest: None,
            worker_sha256: None,
            runner: Vec::new(),
        },
        report_kind: context.report_kind.clone(),
        title: context.title.clone(),
        reference_instance: context.reference_instance.clone(),
        candidates: context.candidates.clone(),
        rows,
        started_utc: table.period().and_then(|(start, _)| utc(start)),
        ended_utc: table.period().and_then(|(_, end)| utc(end)),
        provenance: Some(Provenance {
            text: TEXT.to_owned(),
            format: "table of cells".to_owned(),
            dropped: context.dropped.clone(),
            source: serde_json::json!({}),
        }),
        missing: BTreeMap::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_cells_are_read_to_the_digit() {
        for (section, header, text, value, unit, digits) in [
            (
                "performance",
                "mean cycles",
                "101.87 M",
                101_870_000.0,
                "cycles",
                5,
            ),
            ("performance", "mean cycles", "1.30 G", 1.3e9, "cycles", 3),
            ("performance", "mean cycles", "9510", 9510.0, "cycles", 4),
            ("performance", "mean time", "90 ms", 0.09, "s", 3),
            ("performance", "median trial", "438 µs", 0.000438, "s", 3),
            ("performance", "ops/s", "1.22e+03", 1220.0, "1/s", 3),
            ("performance", "ops/s", "0.0429", 0.0429, "1/s", 3),
            (
                "performance",
                "n (trials × iters)",
                "105 (5 × 21)",
                105.0,
                "calls",
                3,
            ),
            ("resource", "peak RSS", "1724 KiB", 1_765_376.0, "bytes", 4),
            (
                "resource",
                "static: ELF image (bytes)",
                "37149",
                37149.0,
                "bytes",
                5,
            ),
            ("sizes", "signature", "4627 (maximum)", 4627.0, "bytes", 4),
            ("sizes", "signature", "≈ 2420", 2420.0, "bytes", 4),
            ("symmetric", "DRNG", "0.0%", 0.0, "share", 1),
            ("symmetric", "DRNG", "9.5%", 0.095, "share", 2),
        ] {
            let found = quantity(section, header, text).unwrap();
            assert_eq!(
                (found.value, found.unit.as_str(), found.digits),
                (value, unit, digits),
                "{text}"
            );
        }
        for (section, header, text) in [
            ("performance", "operation", "sign"),
            ("performance", "mean cycles", "–"),
            ("symmetric", "calls per operation", "drng 1, pseudoXOF 140"),
            ("environment", "value", "31788 MiB"),
            ("resource", "operation", "sign"),
        ] {
            assert_eq!(quantity(section, header, text), None, "{text}");
        }
    }

    #[test]
    fn tables_that_do_not_hold_together_are_refused_with_their_line() {
        for (text, line) in [
            ("performance\trow\ta", 1),
            ("# x\nperformance\theader\ta\tb\nperformance\trow\ta", 3),
            ("kat\theader\ta\nkat\theader\ta", 2),
            ("kat\theader\ta\nsizes\trow\ta", 2),
            ("kat\tfooter\ta", 1),
            ("kat", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().0, line, "{text}");
        }
    }
}
