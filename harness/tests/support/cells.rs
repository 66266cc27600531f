//! Pages against the evidence: every cell of a candidate's page is computed again from the counted
//! attempts, with arithmetic of its own. Nothing here calls the harness, and no derived value is read.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A table of a page in Markdown.
#[derive(Debug)]
pub struct PageTable {
    /// Its caption.
    pub caption: String,
    /// Titles.
    pub header: Vec<String>,
    /// Cells as written.
    pub rows: Vec<Vec<String>>,
}

/// The tables of a page.
pub fn tables(markdown: &str) -> Vec<PageTable> {
    let mut all: Vec<PageTable> = Vec::new();
    let mut caption = String::new();
    let mut in_table = false;
    for line in markdown.lines() {
        if let Some(row) = line.strip_prefix("| ") {
            let row = row.trim_end_matches('|').trim_end();
            let cells: Vec<String> = row.split(" | ").map(|c| c.trim().to_owned()).collect();
            if in_table {
                all.last_mut()
                    .expect("a header came first")
                    .rows
                    .push(cells);
            } else {
                all.push(PageTable {
                    caption: std::mem::take(&mut caption),
                    header: cells,
                    rows: Vec::new(),
                });
                in_table = true;
            }
        } else if !line.starts_with("|:") && !line.starts_with("|-") {
            in_table = false;
            if let Some(text) = line.strip_prefix('*') {
                caption = text.trim_end_matches('*').to_owned();
            }
        }
    }
    all
}

/// A cell without its notes and without the signs of code.
pub fn plain(cell: &str) -> String {
    let mut text = cell.to_owned();
    while let Some(start) = text.find("[^") {
        let end = start + text[start..].find(']').expect("a note ends");
        text.replace_range(start..=end, "");
    }
    text.trim_matches('`').to_owned()
}

/// One row of a table by title.
pub fn by_title(table: &PageTable, row: &[String]) -> BTreeMap<String, String> {
    assert_eq!(table.header.len(), row.len(), "{row:?}");
    table
        .header
        .iter()
        .cloned()
        .zip(row.iter().cloned())
        .collect()
}

/// What a page says that its evidence does not, over all tables that are known here. Returns how many
/// cells were recomputed.
pub fn recompute(run: &Path, candidate: &str, markdown: &str) -> (usize, Vec<String>) {
    let records = records(run, candidate);
    let mut cells = 0;
    let mut wrong = Vec::new();
    for table in tables(markdown) {
        if !table.header.contains(&"operation".to_owned()) {
            continue;
        }
        for row in &table.rows {
            let row = by_title(&table, row);
            let Some(record) = record_of(&records, &row) else {
                continue;
            };
            for (title, cell) in &row {
                let Some(expected) = expected(record, run, title, &table.header) else {
                    continue;
                };
                cells += 1;
                if plain(cell) != expected {
                    let place = format!("{} {} {}", row["instance"], row["operation"], title);
                    wrong.push(format!(
                        "{place}: page `{}`, evidence `{expected}`",
                        plain(cell)
                    ));
                }
                if expected == "–" && !cell.contains("[^") {
                    wrong.push(format!("{} {title}: no reason", row["instance"]));
                }
            }
        }
    }
    (cells, wrong)
}

/// All timing records of a candidate, by file.
fn records(run: &Path, candidate: &str) -> Vec<Value> {
    let folder = run.join("records").join(candidate);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("records")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !path.to_string_lossy().ends_with(".aa.json"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap())
        .collect()
}

/// The record of a row. Without columns for code and build the label has only one of each that was
/// measured.
fn record_of<'r>(records: &'r [Value], row: &BTreeMap<String, String>) -> Option<&'r Value> {
    records.iter().find(|record| {
        let identity: Vec<&str> = record["identity"].as_str().unwrap().split('/').collect();
        let is = |column: &str, part: &str| row.get(column).is_none_or(|cell| plain(cell) == part);
        is("instance", identity[1])
            && is("code", identity[2])
            && is("build", identity[3])
            && is("operation", record["operation"].as_str().unwrap())
    })
}

/// The counted attempts of a record.
pub fn counted(record: &Value) -> Vec<&Value> {
    record["trials"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|trial| trial["attempts"].get(trial["counted"].as_u64()? as usize))
        .collect()
}

fn expected(record: &Value, run: &Path, title: &str, header: &[String]) -> Option<String> {
    let attempts = counted(record);
    let calls: Vec<u64> = attempts
        .iter()
        .map(|a| a["calls"].as_u64().unwrap())
        .collect();
    let nanoseconds: Vec<u64> = attempts
        .iter()
        .map(|a| a["nanoseconds"].as_u64().unwrap())
        .collect();
    let n: u64 = calls.iter().sum();
    let total_ns: u64 = nanoseconds.iter().sum();
    let means: Vec<f64> = nanoseconds
        .iter()
        .zip(&calls)
        .map(|(ns, calls)| *ns as f64 / 1e9 / *calls as f64)
        .collect();
    if attempts.is_empty() {
        return title.starts_with("mean").then(|| "–".to_owned());
    }
    let mean = total_ns as f64 / 1e9 / n as f64;
    let calls_table = header.contains(&"P5".to_owned());
    let samples = samples(&attempts);
    Some(match title {
        "mean cycles" => counter(&attempts, "cycles", n),
        "mean TSC ticks" | "mean CNTVCT ticks" => counter(&attempts, "ticks", n),
        "mean time" => time(mean),
        "ops/s" => significant(n as f64 / (total_ns as f64 / 1e9)),
        "median trial" => time(middle(&means)),
        "n (trials × iters)" => format!("{n} ({} × {})", attempts.len(), calls[0]),
        "95% interval" => interval(&means, mean),
        "fastest trial" => time(means.iter().copied().fold(f64::MAX, f64::min)),
        "slowest trial" => time(means.iter().copied().fold(0.0, f64::max)),
        "spread" => {
            let most = means.iter().copied().fold(0.0, f64::max);
            let least = means.iter().copied().fold(f64::MAX, f64::min);
            percent((most - least) / middle(&means))
        }
        "disturbed" => all(record)
            .filter(|a| a["flags"] != Value::Array(vec![]))
            .count()
            .to_string(),
        "repeated" => {
            (all(record).count() - record["trials"].as_array().unwrap().len()).to_string()
        }
        "P5" if calls_table => time(at(&samples, 0.05)),
        "P25" if calls_table => time(at(&samples, 0.25)),
        "median" if calls_table => time(at(&samples, 0.5)),
        "P75" if calls_table => time(at(&samples, 0.75)),
        "P95" if calls_table => time(at(&samples, 0.95)),
        "P99" if calls_table => time(at(&samples, 0.99)),
        "MAD" | "P75 − P25" if calls_table => spread_of(&samples, title),
        "samples" if calls_table => samples.len().to_string(),
        "baseline RSS" => resident(record, run, "baseline_rss_bytes"),
        "peak RSS" => resident(record, run, "peak_rss_bytes"),
        _ => return None,
    })
}

fn all(record: &Value) -> impl Iterator<Item = &Value> {
    let trials = record["trials"].as_array().unwrap();
    trials
        .iter()
        .flat_map(|trial| trial["attempts"].as_array().unwrap())
}

/// Integer sum over the calls, or a mark where one attempt lacks it.
fn counter(attempts: &[&Value], key: &str, n: u64) -> String {
    match attempts
        .iter()
        .map(|a| a[key].as_u64())
        .sum::<Option<u64>>()
    {
        Some(total) => cycles(total as f64 / n as f64),
        None => "–".to_owned(),
    }
}

/// Samples per call, ascending, seconds.
fn samples(attempts: &[&Value]) -> Vec<f64> {
    let mut all: Vec<f64> = Vec::new();
    for attempt in attempts {
        let batch = attempt["batch"].as_u64().unwrap_or(1) as f64;
        let values = attempt["samples"].as_array().unwrap();
        all.extend(
            values
                .iter()
                .map(|v| v.as_u64().unwrap() as f64 / 1e9 / batch),
        );
    }
    all.sort_by(f64::total_cmp);
    all
}

/// Linear interpolation between order statistics.
fn at(sorted: &[f64], p: f64) -> f64 {
    let place = p * (sorted.len() - 1) as f64;
    let (low, part) = (place.floor() as usize, place.fract());
    match sorted.get(low + 1) {
        Some(next) => sorted[low] + part * (next - sorted[low]),
        None => sorted[low],
    }
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    at(&sorted, 0.5)
}

fn spread_of(samples: &[f64], title: &str) -> String {
    let centre = at(samples, 0.5);
    let distances: Vec<f64> = samples.iter().map(|v| (v - centre).abs()).collect();
    let mad = middle(&distances);
    if mad == 0.0 {
        return "below resolution".to_owned();
    }
    percent(match title {
        "MAD" => mad / centre,
        _ => (at(samples, 0.75) - at(samples, 0.25)) / centre,
    })
}

/// t(0.975, k - 1) for k = 3 to 15, from printed tables of Student's distribution. With the usual three
/// decimals a wide interval could round to another last digit than the page's.
const T: [f64; 13] = [
    4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139,
    2.200985, 2.178813, 2.160369, 2.144787,
];

fn interval(means: &[f64], mean: f64) -> String {
    let k = means.len();
    if k < 3 {
        return "–".to_owned();
    }
    let centre = means.iter().sum::<f64>() / k as f64;
    let square: f64 = means.iter().map(|m| (m - centre) * (m - centre)).sum();
    let s = (square / (k - 1) as f64).sqrt();
    format!("± {}", percent(T[k - 3] * s / (k as f64).sqrt() / mean))
}

/// Baseline and peak of the process of the memory phase, else of the counted attempt with the highest
/// peak; an import's are maxima.
fn resident(record: &Value, run: &Path, key: &str) -> String {
    let identity: Vec<&str> = record["identity"].as_str().unwrap().split('/').collect();
    let [candidate, label, code, build] = identity[..] else {
        panic!("an identity has four parts");
    };
    let operation = record["operation"].as_str().unwrap();
    let memory = run.join(format!(
        "memory/{candidate}/{label}.{code}.{build}__{operation}.json"
    ));
    let process = std::fs::read(memory)
        .ok()
        .map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap()["process"].clone());
    let attempts = counted(record);
    let peak = |a: &Value| a["peak_rss_bytes"].as_u64();
    let value = match process {
        Some(process) if !process.is_null() => process[key].as_u64(),
        _ if record["class"] == "imported" => attempts.iter().filter_map(|a| a[key].as_u64()).max(),
        _ => {
            let most = attempts.iter().filter_map(|a| peak(a)).max();
            let last = attempts
                .iter()
                .rev()
                .find(|a| peak(a) == most && most.is_some());
            last.and_then(|a| a[key].as_u64())
        }
    };
    value.map_or_else(|| "–".to_owned(), |bytes| format!("{} KiB", bytes / 1024))
}

// Number formats, written down a second time.

fn cycles(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2} G", v / 1e9),
        v if v >= 1e6 => format!("{:.2} M", v / 1e6),
        v if v >= 1e4 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

fn time(seconds: f64) -> String {
    let units = [(1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")];
    let (factor, unit) = units
        .into_iter()
        .find(|(factor, _)| seconds * factor >= 1.0)
        .unwrap_or(units[3]);
    format!("{} {unit}", significant(seconds * factor))
}

/// Three significant digits, as `%.3g` of C prints them.
fn significant(value: f64) -> String {
    let rounded = format!("{value:.2e}");
    let (digits, exponent) = rounded.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let short = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 {
        return format!("{}e-{:02}", short(digits), -exponent);
    }
    if exponent > 2 {
        return format!("{}e+{exponent:02}", short(digits));
    }
    short(&format!("{value:.0$}", (2 - exponent) as usize))
}

fn percent(share: f64) -> String {
    match share {
        0.0 => "0%".to_owned(),
        s if s < 0.0005 => "<0.1%".to_owned(),
        s if s < 0.095 => format!("{:.1}%", s * 100.0),
        s => format!("{:.0}%", s * 100.0),
    }
}
