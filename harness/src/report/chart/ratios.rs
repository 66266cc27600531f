//! Ratios of two systems or runs, one dot a row, with intervals where there are any.

use super::{chart, starred, width, Axis, Glyph, Group, Side, BLUE, INK, WIDTH};

/// The ratio of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioRow {
    /// What it is about.
    pub label: String,
    /// Ratio.
    pub ratio: f64,
    /// Its 95% interval.
    pub interval: Option<(f64, f64)>,
    /// The ratio as tables print it.
    pub text: String,
    /// What must be kept in mind of it: a star stands behind the ratio.
    pub care: Option<String>,
}

/// A chart of ratios; its title says of what, and which way is better: the one that names the sides,
/// where it fits, else the other.
pub fn ratios(groups: &[Group<RatioRow>], naming: &str, short: &str) -> String {
    let title = if width(naming) <= WIDTH {
        naming
    } else {
        short
    };
    let ends = groups.iter().flat_map(|group| &group.rows).flat_map(|row| {
        let ends = row.interval.into_iter().flat_map(|(low, high)| [low, high]);
        std::iter::once(row.ratio).chain(ends)
    });
    let axis = Axis::ratios(ends, title.to_owned());
    chart(
        groups,
        |row| row.label.clone(),
        &axis,
        &[],
        |canvas, row, y| {
            if let Some(interval) = row.interval {
                canvas.interval(&axis, interval, y);
            }
            canvas.glyph(Glyph::Dot(BLUE), (canvas.x(&axis, row.ratio), y));
            let text = starred(&row.text, row.care.as_deref());
            canvas.text(&text, (WIDTH - 4, y + 7), Side::Right, false, INK);
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the ink of a whisker: the interval, and each end that is on the axis.
    fn whiskers(interval: Option<(f64, f64)>) -> usize {
        let rows = vec![RatioRow {
            label: "x".into(),
            ratio: 0.5,
            interval,
            text: "0.5".into(),
            care: None,
        }];
        let groups = [Group {
            title: "sign".into(),
            rows,
        }];
        let svg = ratios(&groups, "cycles b / a", "cycles");
        svg.matches("stroke=\"#1B1F24\" stroke-width=\"2\"").count()
    }

    #[test]
    fn an_interval_is_drawn_with_its_two_ends() {
        assert_eq!(whiskers(None), 0);
        assert_eq!(whiskers(Some((0.4, 0.6))), 3);
    }

    #[test]
    fn the_line_of_equality_stands_out() {
        let rows = vec![RatioRow {
            label: "x".into(),
            ratio: 0.27,
            interval: Some((0.26, 0.28)),
            text: "0.27".into(),
            care: None,
        }];
        let svg = ratios(
            &[Group {
                title: "verify".into(),
                rows,
            }],
            &format!("cycles {} / a", "b".repeat(60)),
            "cycles B/A",
        );
        assert!(svg.contains("\ncycles B/A\n"), "a title that fits: {svg}");
        assert_eq!(svg.matches("<circle").count(), 1);
        assert!(
            svg.contains("stroke=\"#57606A\" stroke-width=\"2\""),
            "{svg}"
        );
    }
}
