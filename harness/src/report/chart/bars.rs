//! Bars: on a logarithmic axis for means that span decades, from 0 for percents.

use super::{chart, colour_of, starred, Axis, Group, Row, Side, INK, WIDTH};

/// A chart of positive values; `unit` names what the axis counts, `text` writes a power of ten.
pub fn bars(groups: &[Group<Row>], unit: &str, text: impl Fn(f64) -> String) -> String {
    let title = format!("{unit}, logarithmic; shorter is better");
    let axis = Axis::decades(values(groups), title, text);
    draw(groups, &axis)
}

/// A chart of percents on an axis from 0, where the line at 100 stands out; neither end is better.
pub fn percents(groups: &[Group<Row>], unit: &str) -> String {
    let most = values(groups).fold(100.0, f64::max);
    let title = format!("{unit}; neither end is better");
    let axis = Axis::linear(0.0, most * 1.1, 100.0, title, |v| format!("{v:.0}%"));
    draw(groups, &axis)
}

fn values(groups: &[Group<Row>]) -> impl Iterator<Item = f64> + '_ {
    groups
        .iter()
        .flat_map(|g| g.rows.iter().map(|row| row.value))
}

fn draw(groups: &[Group<Row>], axis: &Axis) -> String {
    let coloured: Vec<Group<(Row, &str)>> = groups
        .iter()
        .map(|group| Group {
            title: group.title.clone(),
            rows: group
                .rows
                .iter()
                .map(|row| (row.clone(), group.title.as_str()))
                .collect(),
        })
        .collect();
    chart(
        &coloured,
        |(row, _)| row.label.clone(),
        axis,
        &[],
        |canvas, (row, operation), y| {
            let end = canvas.x(axis, row.value);
            let colour = colour_of(operation);
            canvas.rectangle(
                (canvas.left, y - 9),
                (end.max(canvas.left + 2), y + 9),
                colour,
            );
            let text = starred(&row.text, row.care.as_deref());
            canvas.text(&text, (WIDTH - 4, y + 7), Side::Right, false, INK);
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_have_a_line_at_a_hundred_and_room_for_more() {
        let rows = vec![Row {
            label: "a".into(),
            value: 150.0,
            text: "150.0%".into(),
            care: None,
        }];
        let groups = [Group {
            title: "sign".into(),
            rows,
        }];
        let svg = percents(&groups, "percent of one core");
        assert!(svg.contains("100%") && svg.contains("150.0%"), "{svg}");
        assert!(svg.contains("percent of one core; neither end is better"));
    }

    #[test]
    fn the_same_values_give_the_same_bytes_and_names_are_escaped() {
        let rows = vec![
            Row {
                label: "<a&\"b\">".into(),
                value: 96_506_109.9,
                text: "96.51 M".into(),
                care: Some("n=20".into()),
            },
            Row {
                label: "b".into(),
                value: 9510.0,
                text: "9510".into(),
                care: None,
            },
        ];
        let groups = [Group {
            title: "keygen".into(),
            rows,
        }];
        let one = bars(
            &groups,
            "mean cycles of one operation",
            crate::report::format::cycles,
        );
        let two = bars(
            &groups,
            "mean cycles of one operation",
            crate::report::format::cycles,
        );
        assert_eq!(one, two);
        assert!(one.contains("&lt;a&amp;&quot;b&quot;&gt;") && !one.contains("<a&"));
        assert!(one.contains("font-size=\"20\"") && one.starts_with("<svg width=\"720\""));
        for text in ["96.51 M*", "9510\n", "1000", "100.0 k", "100.00 M"] {
            assert!(one.contains(text), "{text}");
        }
    }
}
