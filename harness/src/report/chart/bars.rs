//! Bars on a logarithmic axis: means that span decades.

use super::{chart, colour_of, Axis, Group, Row, Side, INK, WIDTH};

/// A chart of positive values; `unit` names what the axis counts, `text` writes a power of ten.
pub fn bars(groups: &[Group<Row>], unit: &str, text: impl Fn(f64) -> String) -> String {
    let values = groups
        .iter()
        .flat_map(|g| g.rows.iter().map(|row| row.value));
    let title = format!("{unit}, logarithmic; shorter is better");
    let axis = Axis::decades(values, title, text);
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
        |(row, _)| &row.label,
        &axis,
        &[],
        |canvas, (row, operation), y| {
            let end = canvas.x(&axis, row.value);
            let colour = colour_of(operation);
            canvas.rectangle(
                (canvas.left, y - 9),
                (end.max(canvas.left + 2), y + 9),
                colour,
            );
            canvas.text(&row.text, (WIDTH - 4, y + 7), Side::Right, false, INK);
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_values_give_the_same_bytes_and_names_are_escaped() {
        let rows = vec![
            Row {
                label: "<a&\"b\">".into(),
                value: 96_506_109.9,
                text: "96.51 M".into(),
            },
            Row {
                label: "b".into(),
                value: 9510.0,
                text: "9510".into(),
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
        for text in ["96.51 M", "9510", "1000", "100.0 k", "100.00 M"] {
            assert!(one.contains(text), "{text}");
        }
    }
}
