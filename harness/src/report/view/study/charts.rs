//! The six figures: size, then level, against time, CPU and memory.

use super::data::{self, mean_s, Data};
use super::Figure;
use crate::evidence::StudyRecord;
use crate::identity::Identity;
use crate::report::chart::{self, Group, Row, Scale, Series};
use crate::report::format;
use crate::report::html::Charts;
use crate::report::view::charts::{put, ChartView};
use crate::values::Size;
use protocol::{Operation, StudyMode};

/// The figures, and what they are of.
pub struct Figures {
    /// Candidate, code and build.
    pub of: String,
    /// Size against time, CPU, memory.
    pub by_size: Vec<Figure>,
    /// Level against time, CPU, memory.
    pub by_level: Vec<Figure>,
}

/// A measured value and how it is written.
type Value = (fn(&StudyRecord) -> Option<f64>, fn(f64) -> String);

/// A figure of levels: name of the file, title, axis, value, and how powers of ten are written on a
/// logarithmic axis (`None`: percents).
type Level = (
    &'static str,
    &'static str,
    &'static str,
    Value,
    Option<fn(f64) -> String>,
);

const TIME: Value = (mean_s, format::time);
const CPU: Value = (cpu, percent);
const MEMORY: Value = (peak, megabytes);

fn cpu(record: &StudyRecord) -> Option<f64> {
    data::value(record, |study| study.cpu_percent_one)
}

fn peak(record: &StudyRecord) -> Option<f64> {
    data::value(record, |study| study.peak_rss_bytes as f64)
}

/// A percentage with one decimal.
pub fn percent(value: f64) -> String {
    format!("{value:.1}%")
}

/// Bytes as 10^6 bytes with one decimal.
pub fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1e6)
}

/// A size under an axis.
fn size(bytes: f64) -> String {
    Size(bytes.round() as u64).to_string()
}

/// All figures of a study, as far as it has their points.
pub fn figures(data: &Data, charts: &mut Charts) -> Figures {
    let family = data.family();
    let Some(highest) = family.last().copied() else {
        return Figures {
            of: String::new(),
            by_size: Vec::new(),
            by_level: Vec::new(),
        };
    };
    let main = |operation| data.main_mode(operation);
    let operations = |value: Value| -> Vec<Series> {
        let line = |operation: Operation| {
            let mode = main(operation);
            series(data, highest, operation, mode, value, operation.name())
        };
        data.operations().into_iter().filter_map(line).collect()
    };
    let modes = || -> Vec<Series> {
        let line =
            |mode: &StudyMode| series(data, highest, Operation::Sign, *mode, MEMORY, mode.name());
        data.settings.modes.iter().filter_map(line).collect()
    };
    let label = &highest.label;
    let by_size = [
        (
            "time",
            format!(
                "Size of the message against time, {label}, mode {}",
                main(Operation::Sign).name()
            ),
            operations(TIME),
            ("time of one operation", Scale::Logarithmic, TIME.1),
            TIME,
        ),
        (
            "cpu",
            format!(
                "Size of the message against use of one core, {label}, mode {}",
                main(Operation::Sign).name()
            ),
            operations(CPU),
            (
                "percent of one core",
                Scale::Percent,
                whole_percent as fn(f64) -> String,
            ),
            CPU,
        ),
        (
            "memory",
            format!("Size of the message against peak resident set, signing with {label}"),
            modes(),
            (
                "peak resident set",
                Scale::Logarithmic,
                size as fn(f64) -> String,
            ),
            MEMORY,
        ),
    ];
    let mut all = Figures {
        of: format!(
            "{}, code {}, build {}",
            highest.candidate, highest.code, highest.build
        ),
        by_size: Vec::new(),
        by_level: Vec::new(),
    };
    for (name, title, lines, (unit, scale, text), value) in by_size {
        if lines.is_empty() {
            continue;
        }
        let svg = chart::lines(&lines, "size of the message", size, unit, scale, text);
        let better = which_is_better(scale == Scale::Percent);
        let chart = put(
            charts,
            &format!("study-size-{name}"),
            svg,
            format!("{title}."),
            format!("{} {better}", said(&lines, value)),
        );
        push(&mut all.by_size, 1, title, chart);
    }
    let at = data.level_size();
    let levels: [Level; 3] = [
        (
            "time",
            "time",
            "mean time of one operation",
            TIME,
            Some(format::time),
        ),
        ("cpu", "use of one core", "percent of one core", CPU, None),
        (
            "memory",
            "peak resident set",
            "peak resident set",
            MEMORY,
            Some(size),
        ),
    ];
    for (name, what, unit, value, text) in levels {
        let groups = groups(data, &family, at, value);
        if groups.is_empty() {
            continue;
        }
        let title = format!("Level against {what}, message of {}", Size(at));
        let svg = match text {
            Some(text) => chart::bars(&groups, unit, text),
            None => chart::percents(&groups, unit),
        };
        let better = which_is_better(text.is_none());
        let said = format!("{} {better}", extremes(&groups));
        let chart = put(
            charts,
            &format!("study-level-{name}"),
            svg,
            format!("{title}."),
            said,
        );
        push(&mut all.by_level, 4, title, chart);
    }
    all
}

fn push(figures: &mut Vec<Figure>, first: u32, title: String, chart: ChartView) {
    figures.push(Figure {
        number: first + figures.len() as u32,
        title,
        chart,
    });
}

/// The last words beside a chart, of percents of a core or of anything else.
fn which_is_better(percents: bool) -> &'static str {
    match percents {
        true => "Neither more nor less is better.",
        false => "Lower is better.",
    }
}

fn whole_percent(value: f64) -> String {
    format!("{value:.0}%")
}

fn series(
    data: &Data,
    identity: &Identity,
    operation: Operation,
    mode: StudyMode,
    (of, _): Value,
    label: &str,
) -> Option<Series> {
    let point = |&size: &u64| {
        let record = data.complete(identity, operation, mode, size)?;
        Some((size as f64, of(record)?))
    };
    let points: Vec<(f64, f64)> = data.settings.sizes.iter().filter_map(point).collect();
    (!points.is_empty()).then(|| Series {
        label: label.to_owned(),
        points,
    })
}

fn groups(data: &Data, family: &[&Identity], size: u64, (of, text): Value) -> Vec<Group<Row>> {
    let row = |identity: &&Identity, operation: Operation| {
        let record = data.complete(identity, operation, data.main_mode(operation), size)?;
        let value = of(record)?;
        Some(Row {
            label: identity.label.clone(),
            value,
            text: text(value),
            care: None,
        })
    };
    let group = |operation: Operation| Group {
        title: operation.name().to_owned(),
        rows: family
            .iter()
            .filter_map(|identity| row(identity, operation))
            .collect(),
    };
    let all = data.operations().into_iter().map(group);
    all.filter(|group| !group.rows.is_empty()).collect()
}

/// The first and the last point of each line, in words.
fn said(lines: &[Series], (_, text): Value) -> String {
    let sentences: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let (first, last) = (line.points.first()?, line.points.last()?);
            Some(format!(
                "{}: {} at {}, {} at {}.",
                line.label,
                text(first.1),
                size(first.0),
                text(last.1),
                size(last.0)
            ))
        })
        .collect();
    sentences.join(" ")
}

fn extremes(groups: &[Group<Row>]) -> String {
    let each = groups.iter().map(|group| {
        let rows: Vec<String> = group
            .rows
            .iter()
            .map(|row| format!("{} {}", row.label, row.text))
            .collect();
        format!("{}: {}.", group.title, rows.join(", "))
    });
    each.collect::<Vec<_>>().join(" ")
}
