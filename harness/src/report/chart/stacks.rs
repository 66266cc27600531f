//! Stacked bars of shares: wrapped hash functions, DRNG, everything else.

use super::{chart, starred, Axis, Glyph, Group, Side, BLUE, GRID, INK, ORANGE, WIDTH};

/// Shares of one row.
#[derive(Debug, Clone, PartialEq)]
pub struct StackRow {
    /// What it is about.
    pub label: String,
    /// Share of wrapped hash functions.
    pub hash: f64,
    /// Share of the DRNG.
    pub drng: f64,
    /// The hash share as tables print it.
    pub text: String,
    /// What must be kept in mind of it: a star stands behind the share.
    pub care: Option<String>,
}

/// A chart of shares; `hash` names what was wrapped.
pub fn stacks(groups: &[Group<StackRow>], hash: &str) -> String {
    let axis = Axis::linear(
        0.0,
        1.0,
        1.0,
        "share of the operation's time; neither end is better".to_owned(),
        |v| format!("{:.0}%", v * 100.0),
    );
    let hash = super::cut(hash);
    chart(
        groups,
        |row| row.label.clone(),
        &axis,
        &[
            (Glyph::Box(BLUE), hash.as_str()),
            (Glyph::Box(ORANGE), "DRNG"),
            (Glyph::Box(GRID), "everything else"),
        ],
        |canvas, row, y| {
            let hash_end = canvas.x(&axis, row.hash);
            let drng_end = canvas.x(&axis, row.hash + row.drng);
            canvas.rectangle((canvas.left, y - 9), (canvas.right, y + 9), GRID);
            if drng_end > canvas.left {
                canvas.rectangle((canvas.left, y - 9), (drng_end, y + 9), ORANGE);
            }
            if hash_end > canvas.left {
                canvas.rectangle((canvas.left, y - 9), (hash_end, y + 9), BLUE);
            }
            let text = starred(&row.text, row.care.as_deref());
            canvas.text(&text, (WIDTH - 4, y + 7), Side::Right, false, INK);
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_without_width_draw_nothing() {
        let rows = vec![StackRow {
            label: "x".into(),
            hash: 0.0,
            drng: 0.0,
            text: "0%".into(),
            care: None,
        }];
        let groups = [Group {
            title: "verify".into(),
            rows,
        }];
        let svg = stacks(&groups, "SHAKE");
        let blue = svg.matches("fill=\"#0072B2\"").count();
        assert_eq!(blue, 1, "the legend alone");
    }
}
