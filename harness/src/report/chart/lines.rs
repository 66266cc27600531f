//! Lines over a logarithmic size: how something grows, one line a series. Every point has its mark; no
//! line needs its colour to be told apart.

use super::{legend_height, BLUE, GREEN, GRID, ORANGE, SOFT};
use super::{
    width, Axis, Canvas, Glyph, Side, AXIS, INK, LEFT_LEAST, NEVER, PAPER, TEXT, TITLE, WIDTH,
};
use plotters::backend::SVGBackend;
use plotters::prelude::*;

/// Height of the plot.
const HEIGHT: i32 = 320;
/// Between the plot and the texts above and below it: half of the numbers at its left corners.
const TICK: i32 = 10;
/// Space at the right: half of the number under the end of the axis.
const RIGHT: i32 = 44;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is about.
    pub label: String,
    /// Size and value, ascending in size.
    pub points: Vec<(f64, f64)>,
}

/// What values are drawn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Whole decades; less is better.
    Logarithmic,
    /// From 0, where the line at 100 stands out; neither end is better.
    Percent,
}

/// A chart of lines; `text` writes a value of the axis that counts `unit`, `size` one of the other.
pub fn lines(
    series: &[Series],
    sizes: &str,
    size: impl Fn(f64) -> String,
    unit: &str,
    scale: Scale,
    text: impl Fn(f64) -> String,
) -> String {
    let all = || series.iter().flat_map(|line| line.points.iter().copied());
    let across = Axis::decades(all().map(|(x, _)| x), format!("{sizes}, logarithmic"), size);
    let up = match scale {
        Scale::Logarithmic => {
            let title = format!("{unit}, logarithmic; lower is better");
            Axis::decades(all().map(|(_, y)| y), title, text)
        }
        Scale::Percent => {
            let most = all().map(|(_, y)| y).fold(100.0, f64::max);
            let title = format!("{unit}; neither end is better");
            Axis::linear(0.0, most * 1.1, 100.0, title, text)
        }
    };
    let glyphs: Vec<Glyph> = (0..series.len()).map(glyph).collect();
    let legend: Vec<(Glyph, &str)> = glyphs
        .iter()
        .copied()
        .zip(series.iter().map(|line| line.label.as_str()))
        .collect();
    let top = 8 + legend_height(&legend) + TITLE + TICK;
    let bottom = top + HEIGHT;
    let widest = up.ticks.iter().map(|tick| width(&tick.text)).max();
    let mut svg = String::new();
    {
        let size = (WIDTH as u32, (bottom + TICK + AXIS) as u32);
        let canvas = Canvas {
            area: SVGBackend::with_string(&mut svg, size).into_drawing_area(),
            left: 14 + widest.unwrap_or(0).max(LEFT_LEAST),
            right: WIDTH - RIGHT,
        };
        canvas.rectangle((0, 0), (WIDTH, bottom + TICK + AXIS), PAPER);
        canvas.legend(&legend);
        canvas.axis(&across, top, bottom + TICK);
        upright(&canvas, &up, top, bottom);
        for (line, &glyph) in series.iter().zip(&glyphs) {
            draw(&canvas, line, glyph, &across, &up, (top, bottom));
        }
        canvas.area.present().expect(NEVER);
    }
    svg.trim_end().to_owned()
}

/// The mark of a series; there are as many as a chart can bear.
fn glyph(index: usize) -> Glyph {
    let marks = [
        Glyph::Dot(BLUE),
        Glyph::Diamond(ORANGE),
        Glyph::Cross(GREEN),
        Glyph::Box(SOFT),
        Glyph::Dot(INK),
    ];
    marks[index % marks.len()]
}

fn colour(glyph: Glyph) -> RGBColor {
    match glyph {
        Glyph::Dot(colour) | Glyph::Diamond(colour) | Glyph::Cross(colour) | Glyph::Box(colour) => {
            colour
        }
        Glyph::Whisker => INK,
    }
}

/// Grid, numbers and title of the axis of the values.
fn upright(canvas: &Canvas, axis: &Axis, top: i32, bottom: i32) {
    for tick in &axis.ticks {
        let y = height(axis, tick.value, (top, bottom));
        let colour = if tick.strong { SOFT } else { GRID };
        let line = if tick.strong { 2 } else { 1 };
        canvas.line(&[(canvas.left, y), (canvas.right, y)], colour, line);
        let at = (canvas.left - 8, y + TEXT as i32 / 3);
        canvas.text(&tick.text, at, Side::Right, false, SOFT);
    }
    canvas.text(&axis.title, (0, top - TICK - 14), Side::Left, true, INK);
}

fn height(axis: &Axis, value: f64, (top, bottom): (i32, i32)) -> i32 {
    let place = axis.place(value).clamp(0.0, 1.0);
    bottom - (place * f64::from(bottom - top)).round() as i32
}

fn draw(canvas: &Canvas, line: &Series, glyph: Glyph, across: &Axis, up: &Axis, frame: (i32, i32)) {
    let points: Vec<(i32, i32)> = line
        .points
        .iter()
        .map(|&(x, y)| (canvas.x(across, x), height(up, y, frame)))
        .collect();
    if points.len() > 1 {
        canvas.line(&points, colour(glyph), 3);
    }
    for point in points {
        canvas.glyph(glyph, point);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(label: &str, values: [f64; 3]) -> Series {
        let sizes = [1e3, 1e5, 1e8];
        Series {
            label: label.into(),
            points: sizes.into_iter().zip(values).collect(),
        }
    }

    #[test]
    fn each_series_has_a_line_with_its_marks_and_stands_in_the_legend() {
        let series = [
            series("sign", [1e-3, 2e-3, 0.3]),
            series("<verify>", [5e-4, 1e-3, 0.3]),
        ];
        let chart = |scale| {
            lines(
                &series,
                "size of the message",
                |v| format!("{v:e}"),
                "time of one operation",
                scale,
                crate::report::format::time,
            )
        };
        let svg = chart(Scale::Logarithmic);
        assert_eq!(svg, chart(Scale::Logarithmic));
        assert_eq!(
            svg.matches("<circle").count(),
            4,
            "three points, one legend"
        );
        assert!(svg.contains("&lt;verify&gt;") && svg.contains("size of the message, logarithmic"));
        for text in ["100 µs", "1 s", "1e3", "1e8"] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn percents_begin_at_zero_and_hold_what_is_above_a_hundred() {
        let one = series("one", [99.0, 100.5, 400.0]);
        let svg = lines(
            &[one],
            "size",
            |v| format!("{v:e}"),
            "percent of one core",
            Scale::Percent,
            |v| format!("{v}%"),
        );
        for text in ["0%", "100%", "400%"] {
            assert!(svg.contains(&format!(">\n{text}\n<")), "{text} in {svg}");
        }
    }
}
