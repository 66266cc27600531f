//! Charts of a candidate's page: their values, and the sentence beside each.

use super::common::{kat_failure, page_name, Rows};
use super::figures::{Figures, Share, FEW_CALLS};
use super::performance::{self, stated_retries};
use crate::dataset::Key;
use crate::evidence::TimingRecord;
use crate::report::chart::{self, DotRow, Group, Mark, Row, StackRow};
use crate::report::format;
use crate::report::html::Charts;
use protocol::SourceKind;
use serde::{Deserialize, Serialize};

/// A chart as templates see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChartView {
    /// Path of the SVG from the page.
    pub file: String,
    /// What it shows, for those who do not see it.
    pub alt: String,
    /// What it says, in words.
    pub text: String,
}

/// Adds a chart to the page's and returns what the template needs.
pub(super) fn put(
    charts: &mut Charts,
    name: &str,
    svg: String,
    alt: String,
    text: String,
) -> ChartView {
    let file = format!("charts/{name}.svg");
    charts.insert(file.clone(), svg);
    ChartView { file, alt, text }
}

/// One group of rows per operation, empty groups left out.
fn groups<R>(rows: &Rows, row: impl Fn(&Key) -> Option<R>) -> Vec<Group<R>> {
    rows.operations
        .iter()
        .map(|operation| Group {
            title: operation.name().to_owned(),
            rows: rows
                .shown
                .iter()
                .filter_map(|identity| row(&((*identity).clone(), *operation)))
                .collect(),
        })
        .filter(|group: &Group<R>| !group.rows.is_empty())
        .collect()
}

/// What a chart of means counts.
fn unit(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Perf => "mean core cycles of one operation",
        SourceKind::Tsc => "mean TSC ticks of one operation",
        SourceKind::Cntvct => "mean CNTVCT ticks of one operation",
        SourceKind::None => "mean time of one operation",
    }
}

/// Means: cycles or ticks where all rows have the same kind, else time.
pub(super) fn means(rows: &Rows, charts: &mut Charts) -> Option<ChartView> {
    let figures: Vec<Figures> = rows
        .each()
        .map(|key| Figures::of(rows.dataset, &key))
        .collect();
    let mut kinds = figures
        .iter()
        .filter(|f| f.time.is_some())
        .map(|f| f.source);
    let first = kinds.next()?;
    let kind = if kinds.all(|kind| kind == first) {
        first
    } else {
        SourceKind::None
    };
    let groups = groups(rows, |key| {
        let figures = Figures::of(rows.dataset, key);
        let shown = match kind {
            SourceKind::None => figures.time,
            _ => figures.mean,
        }?;
        Some(Row {
            label: rows.short_name(&key.0),
            value: shown.value,
            text: shown.text,
            care: care(rows, key, figures.calls),
        })
    });
    if groups.is_empty() {
        return None;
    }
    let tick = |value: f64| match kind {
        SourceKind::None => format::time(value),
        _ => decade(value),
    };
    let sentences: Vec<String> = groups.iter().map(extremes).collect();
    let text = format!(
        "{}: {}. Lower is better.",
        format::initial(unit(kind)),
        sentences.join("; ")
    );
    let starred = groups.iter().flat_map(|group| &group.rows);
    let text = with_stars(text, starred.clone().any(|row| row.care.is_some()));
    Some(put(
        charts,
        &format!("{}-means", page_name(&rows.candidate.id)),
        chart::bars(&groups, unit(kind), tick),
        format!("Bars of the {} of {}.", unit(kind), rows.candidate.id),
        text,
    ))
}

/// What must be kept in mind of a row wherever its figure is repeated: few calls, and a KAT that did
/// not pass.
fn care(rows: &Rows, key: &Key, calls: Option<u64>) -> Option<String> {
    let few = calls.filter(|calls| *calls < FEW_CALLS);
    let few = few.map(|calls| format!("n={calls}"));
    let parts: Vec<String> = few
        .into_iter()
        .chain(kat_failure(rows.dataset, &key.0))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// A name in a sentence, with what must be kept in mind of it.
pub(super) fn with_care(name: &str, care: Option<&str>) -> String {
    match care {
        Some(care) => format!("{name} ({care})"),
        None => name.to_owned(),
    }
}

/// The text beside a chart, with the meaning of its stars if it has any.
pub(super) fn with_stars(text: String, any: bool) -> String {
    match any {
        true => {
            format!("{text} A star marks fewer than {FEW_CALLS} calls, or a KAT that did not pass.")
        }
        false => text,
    }
}

/// A power of ten without decimals: `10 k`, `1 M`.
fn decade(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e9 => (v / 1e9, " G"),
        v if v >= 1e6 => (v / 1e6, " M"),
        v if v >= 1e3 => (v / 1e3, " k"),
        v => (v, ""),
    };
    format!("{scaled:.0}{unit}")
}

/// `keygen from 1.00 M of a to 2.00 G of b (n=20)`
fn extremes(group: &Group<Row>) -> String {
    let named = |row: &Row| {
        let label = with_care(&row.label, row.care.as_deref());
        format!("{} of {label}", row.text)
    };
    let least = group.rows.iter().min_by(|a, b| a.value.total_cmp(&b.value));
    let most = group.rows.iter().max_by(|a, b| a.value.total_cmp(&b.value));
    match (least, most) {
        (Some(least), Some(most)) if least != most => {
            format!("{} from {} to {}", group.title, named(least), named(most))
        }
        (Some(only), _) => format!("{} {}", group.title, named(only)),
        _ => String::new(),
    }
}

/// Trials as dots.
pub(super) fn trials(rows: &Rows, charts: &mut Charts) -> Option<ChartView> {
    let groups = groups(rows, |key| {
        let record = &rows.timing(key)?.value;
        let calls = record.derived.as_ref().map(|derived| derived.n);
        dot_row(record, rows.short_name(&key.0), care(rows, key, calls))
    });
    if groups.is_empty() {
        return None;
    }
    let text = trials_text(&groups, stated_retries(performance::records(rows)));
    let starred = groups.iter().flat_map(|group| &group.rows);
    let text = with_stars(text, starred.clone().any(|row| row.care.is_some()));
    Some(put(
        charts,
        &format!("{}-trials", page_name(&rows.candidate.id)),
        chart::dots(&groups),
        format!(
            "Dots of the trials of each operation of {}, relative to the median trial.",
            rows.candidate.id
        ),
        text,
    ))
}

fn dot_row(record: &TimingRecord, label: String, care: Option<String>) -> Option<DotRow> {
    let derived = record.derived.as_ref()?;
    let relative = |seconds: f64| seconds / derived.median_trial_s - 1.0;
    let marks = record.trials.iter().flat_map(|trial| {
        let counted = trial.counted.map(|index| index as usize);
        trial
            .attempts
            .iter()
            .enumerate()
            .filter(|(_, attempt)| attempt.calls > 0 && attempt.nanoseconds > 0)
            .map(move |(index, attempt)| (Some(index) == counted, attempt))
    });
    Some(DotRow {
        label,
        care,
        interval: derived.ci95.map(|ci| (relative(ci.low), relative(ci.high))),
        marks: marks
            .map(|(counted, attempt)| Mark {
                deviation: relative(attempt.mean_s()),
                counted,
                disturbed: !attempt.flags.is_empty(),
            })
            .collect(),
    })
}

/// The farthest counted trial, and how many attempts were disturbed; of an import, what its source says
/// of that.
fn trials_text(groups: &[Group<DotRow>], stated: Option<String>) -> String {
    let all = || {
        groups.iter().flat_map(|group| {
            group
                .rows
                .iter()
                .flat_map(move |row| row.marks.iter().map(move |mark| (group, row, mark)))
        })
    };
    let disturbed = all().filter(|(_, _, mark)| mark.disturbed).count();
    let attempts = all().count();
    let farthest = all()
        .filter(|(_, _, mark)| mark.counted)
        .max_by(|a, b| a.2.deviation.abs().total_cmp(&b.2.deviation.abs()));
    let mut text = String::new();
    if let Some((group, row, mark)) = farthest {
        let side = if mark.deviation < 0.0 {
            "below"
        } else {
            "above"
        };
        text = format!(
            "The counted trial farthest from its median is {} {side}, of {} {}. ",
            format::share(mark.deviation.abs()),
            with_care(&row.label, row.care.as_deref()),
            group.title
        );
    }
    text += &match stated {
        Some(stated) => format!("{}.", format::initial(&stated)),
        None => format!("{disturbed} of {attempts} attempts were disturbed."),
    };
    text + " Trials that lie closer together are better."
}

/// Symmetric share as stacked bars.
pub(super) fn symmetric(rows: &Rows, charts: &mut Charts) -> Option<ChartView> {
    let groups = groups(rows, |key| {
        let Share::Known(hash) = Figures::of(rows.dataset, key).share else {
            return None;
        };
        let drng = rows.drng_share(key);
        Some(StackRow {
            label: rows.short_name(&key.0),
            hash: hash.value,
            drng: drng.unwrap_or(0.0),
            text: hash.text,
            care: kat_failure(rows.dataset, &key.0),
        })
    });
    let most = groups
        .iter()
        .flat_map(|group| group.rows.iter().map(move |row| (group, row)))
        .max_by(|a, b| a.1.hash.total_cmp(&b.1.hash))?;
    let text = format!(
        "The largest share is {}, of {} {}. Neither a larger nor a smaller share is better.",
        most.1.text,
        with_care(&most.1.label, most.1.care.as_deref()),
        most.0.title
    );
    let starred = groups.iter().flat_map(|group| &group.rows);
    let text = with_stars(text, starred.clone().any(|row| row.care.is_some()));
    Some(put(
        charts,
        &format!("{}-symmetric", page_name(&rows.candidate.id)),
        chart::stacks(&groups, &rows.candidate.wrap_column),
        format!(
            "Stacked bars of the share of symmetric primitives in each operation of {}.",
            rows.candidate.id
        ),
        text,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_have_no_decimals() {
        for (value, text) in [
            (100.0, "100"),
            (1e3, "1 k"),
            (1e5, "100 k"),
            (1e7, "10 M"),
            (1e10, "10 G"),
        ] {
            assert_eq!(decade(value), text);
        }
    }
}
