//! Trials as dots: each row shows how far its trials lie from their median, with the interval of the
//! mean. Nothing is left out: what lies beyond the axis stands at its end, with its value.

use super::{chart, starred, Axis, Canvas, Glyph, Group, Side, BLUE, ORANGE, SOFT};

/// The trials of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct DotRow {
    /// What it is about.
    pub label: String,
    /// 95% interval of the mean, relative to the median trial (0.01 is 1% above).
    pub interval: Option<(f64, f64)>,
    /// Attempts.
    pub marks: Vec<Mark>,
    /// What must be kept in mind of it: a star stands behind the label.
    pub care: Option<String>,
}

/// One attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Its mean relative to the median trial.
    pub deviation: f64,
    /// Whether it counts.
    pub counted: bool,
    /// Whether it was disturbed.
    pub disturbed: bool,
}

/// Half width of the axis at least and at most.
const REACH: (f64, f64) = (0.01, 0.25);

/// A chart of trials.
pub fn dots(groups: &[Group<DotRow>]) -> String {
    let far = groups
        .iter()
        .flat_map(|group| &group.rows)
        .flat_map(extremes)
        .fold(0.0, |far: f64, value| far.max(value.abs()));
    let reach = (far * 1.08).clamp(REACH.0, REACH.1);
    let title = "mean of a trial against the median trial; closer together is better".to_owned();
    let axis = Axis::linear(-reach, reach, 0.0, title, percent);
    chart(
        groups,
        |row| starred(&row.label, row.care.as_deref()),
        &axis,
        &[
            (Glyph::Dot(BLUE), "counted trial"),
            (Glyph::Diamond(ORANGE), "disturbed, counted"),
            (Glyph::Cross(ORANGE), "disturbed, repeated"),
            (Glyph::Whisker, "95% interval of the mean"),
        ],
        |canvas, row, y| draw(canvas, &axis, row, y),
    )
}

fn extremes(row: &DotRow) -> impl Iterator<Item = f64> + '_ {
    let ends = row.interval.into_iter().flat_map(|(low, high)| [low, high]);
    row.marks.iter().map(|mark| mark.deviation).chain(ends)
}

fn draw(canvas: &Canvas, axis: &Axis, row: &DotRow, y: i32) {
    if let Some(interval) = row.interval {
        canvas.interval(axis, interval, y);
    }
    for mark in &row.marks {
        let glyph = match (mark.counted, mark.disturbed) {
            (true, false) => Glyph::Dot(BLUE),
            (true, true) => Glyph::Diamond(ORANGE),
            (false, _) => Glyph::Cross(ORANGE),
        };
        canvas.glyph(glyph, (canvas.x(axis, mark.deviation), y));
    }
    let beyond = row
        .marks
        .iter()
        .map(|mark| mark.deviation)
        .filter(|value| !axis.holds(*value))
        .fold(
            0.0,
            |far: f64, value| if value.abs() > far.abs() { value } else { far },
        );
    if beyond != 0.0 {
        let text = format!("to {}", percent(beyond));
        canvas.text(&text, (super::WIDTH - 4, y + 7), Side::Right, false, SOFT);
    }
}

/// A deviation with its sign, as short as its size allows.
fn percent(value: f64) -> String {
    let percent = value * 100.0;
    let digits = match percent.abs() {
        p if p >= 10.0 => 0,
        p if p >= 1.0 && (p - p.round()).abs() < 1e-9 => 0,
        _ => 1,
    };
    match percent {
        p if p.abs() < 1e-9 => "0%".to_owned(),
        p if p > 0.0 => format!("+{p:.digits$}%"),
        p => format!("−{:.digits$}%", p.abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_attempts_and_distant_ones_are_marked() {
        let mark = |deviation, counted, disturbed| Mark {
            deviation,
            counted,
            disturbed,
        };
        let groups = [Group {
            title: "sign".into(),
            rows: vec![DotRow {
                label: "x".into(),
                interval: Some((-0.01, 0.01)),
                marks: vec![
                    mark(0.0, true, false),
                    mark(0.02, true, true),
                    mark(3.0, false, true),
                ],
                care: Some("n=15".into()),
            }],
        }];
        let svg = dots(&groups);
        let ends = |low: f64| {
            let mut groups = groups.clone();
            groups[0].rows[0].interval = Some((low, 0.01));
            dots(&groups)
                .matches("stroke=\"#1B1F24\" stroke-width=\"2\"")
                .count()
        };
        assert_eq!(ends(-0.01), 6, "a line and two ends, and the legend's");
        assert_eq!(ends(-0.5), 5, "an interval that goes on beyond the axis");
        assert_eq!(
            svg.matches("<circle").count(),
            2,
            "one mark, and the legend's"
        );
        assert_eq!(svg.matches("<polygon").count(), 2);
        assert!(svg.contains("to +300%"), "{svg}");
        assert!(svg.contains("\nx*\n"), "few calls: {svg}");
    }

    #[test]
    fn deviations_have_a_sign() {
        for (value, text) in [
            (0.0, "0%"),
            (0.005, "+0.5%"),
            (-0.02, "−2%"),
            (0.125, "+12%"),
        ] {
            assert_eq!(percent(value), text);
        }
    }
}
