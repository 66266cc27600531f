//! The files of a comparison: page, data, chart.

use super::html::Charts;
use super::pages::{both_of, PageFile, ReportError};
use super::templates::Templates;
use super::view::ComparisonPage;
use crate::compare::{Comparison, Metric, Row};
use crate::dataset::Dataset;
use std::path::PathBuf;

/// Instance that costs are relative to where the campaign names none.
pub const REFERENCE: &str = "dilithium/dilithium2/clean/reference";

/// Stem of the files of a comparison.
pub fn stem(names: [&str; 2]) -> String {
    format!("{}--{}", names[0], names[1])
}

/// Page, JSON, CSV and chart of a comparison; `home` is the page above it.
pub fn render_comparison(
    comparison: &Comparison,
    datasets: [&Dataset; 2],
    home: Option<String>,
    templates: &Templates,
) -> Result<Vec<PageFile>, ReportError> {
    let stem = stem([&comparison.a.name, &comparison.b.name]);
    let mut charts = Charts::new();
    let page = ComparisonPage::new(comparison, datasets, home, &stem, &mut charts);
    let mut files = both_of(templates, "compare.md", &stem, &page, charts)?;
    let json = serde_json::to_string_pretty(comparison).expect("a comparison serialises");
    files.push(PageFile {
        file: PathBuf::from(format!("{stem}.json")),
        text: json + "\n",
    });
    files.push(PageFile {
        file: PathBuf::from(format!("{stem}.csv")),
        text: csv(comparison),
    });
    Ok(files)
}

const COLUMNS: [&str; 34] = [
    "candidate",
    "label",
    "code",
    "build",
    "operation",
    "metric",
    "unit",
    "a",
    "b",
    "calls_a",
    "calls_b",
    "trials_a",
    "trials_b",
    "ratio",
    "digits",
    "low",
    "high",
    "p",
    "p_holm",
    "verdict",
    "to_reference_a",
    "to_reference_b",
    "static_bytes_a",
    "static_bytes_b",
    "resident_of_a",
    "resident_of_b",
    "baseline_rss_bytes_a",
    "baseline_rss_bytes_b",
    "peak_rss_bytes_a",
    "peak_rss_bytes_b",
    "isolated_bytes_a",
    "isolated_bytes_b",
    "symmetric_share_a",
    "symmetric_share_b",
];

/// One line per row and metric; empty where there is nothing. The ratio to the reference instance is in
/// the line of the metric that the row is compared by.
fn csv(comparison: &Comparison) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).expect(NEVER);
    for row in &comparison.rows {
        for metric in Metric::ALL {
            writer.write_record(line(row, metric)).expect(NEVER);
        }
    }
    let bytes = writer.into_inner().expect(NEVER);
    String::from_utf8(bytes).expect("CSV of texts is text")
}

const NEVER: &str = "writing to memory does not fail";

fn line(row: &Row, metric: Metric) -> Vec<String> {
    fn or_empty<T: ToString>(value: Option<T>) -> String {
        value.map_or_else(String::new, |value| value.to_string())
    }
    let compared = row.of(metric);
    let unit = match metric {
        Metric::Cycles => "cycles",
        Metric::Time => "s",
    };
    let mut line: Vec<String> = [
        &row.identity.candidate,
        &row.identity.label,
        &row.identity.code,
        &row.identity.build,
    ]
    .map(String::clone)
    .to_vec();
    line.extend([
        row.operation.to_string(),
        metric.name().to_owned(),
        unit.to_owned(),
    ]);
    line.extend(compared.values.map(or_empty));
    line.extend(row.calls.map(or_empty));
    line.extend(compared.trials.map(|trials| trials.to_string()));
    line.push(or_empty(compared.ratio));
    line.push(compared.digits.to_string());
    line.push(or_empty(compared.interval.map(|[low, _]| low)));
    line.push(or_empty(compared.interval.map(|[_, high]| high)));
    line.push(or_empty(compared.p));
    line.push(or_empty(compared.p_holm));
    line.push(compared.verdict.with_reason());
    let of_row = metric == row.metric();
    line.extend(
        row.to_reference
            .map(|ratio| or_empty(ratio.filter(|_| of_row))),
    );
    line.extend(row.memory.map(|m| or_empty(m.static_bytes)));
    let resident = row.memory.map(|memory| memory.resident);
    line.extend(resident.map(|r| or_empty(r.map(|r| r.method.text()))));
    line.extend(resident.map(|r| or_empty(r.and_then(|r| r.baseline_bytes))));
    line.extend(resident.map(|r| or_empty(r.and_then(|r| r.peak_bytes))));
    line.extend(row.memory.map(|m| or_empty(m.isolated_bytes)));
    line.extend(row.symmetric_share.map(or_empty));
    line
}
