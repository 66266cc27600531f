//! Charts as SVG, all in one style: rows with a label at the left, grouped by operation, one axis
//! with its unit. They are drawn with plotters into a text, without any font of the system, so that
//! the same figures give the same bytes everywhere.
//!
//! Colours are those of Okabe and Ito ("Color Universal Design", 2008), which stay apart for readers
//! with impaired colour vision; no chart needs its colours to be understood. Ink, paper and grid have
//! fixed colours that the style sheet of a page exchanges in the dark.

mod axis;
mod bars;
mod dots;
mod lines;
mod ratios;
mod stacks;

pub use bars::{bars, percents};
pub use dots::{dots, DotRow, Mark};
pub use lines::{lines, Scale, Series};
pub use ratios::{ratios, RatioRow};
pub use stacks::{stacks, StackRow};

use axis::Axis;
use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Width of every chart in its own units. At 360 CSS pixels a unit is half a pixel.
const WIDTH: i32 = 720;
/// Size of text: 10 CSS pixels where the chart is 360 wide.
const TEXT: f64 = 20.0;
/// Least space for labels: half of the number under the left end of the axis.
const LEFT_LEAST: i32 = 36;
/// Widest label.
const LABEL_MAX: i32 = 310;
/// Between a label and the plot: more than half of a mark, which may stand at the plot's end.
const GAP: i32 = 16;
/// Height of a row.
const ROW: i32 = 28;
/// Height of a group's title.
const TITLE: i32 = 36;
/// Space below an axis for its numbers and its title.
const AXIS: i32 = 64;
/// Space at the right, where values stand.
const VALUES: i32 = 112;

const INK: RGBColor = RGBColor(0x1b, 0x1f, 0x24);
const SOFT: RGBColor = RGBColor(0x57, 0x60, 0x6a);
const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
const GRID: RGBColor = RGBColor(0xd0, 0xd7, 0xde);
const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
const ORANGE: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);

/// Rows under a title.
#[derive(Debug, Clone, PartialEq)]
pub struct Group<R> {
    /// Title (`keygen`).
    pub title: String,
    /// Rows.
    pub rows: Vec<R>,
}

/// One row with one value.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What it is about.
    pub label: String,
    /// Value.
    pub value: f64,
    /// The value as tables print it.
    pub text: String,
    /// What must be kept in mind of it: a star stands behind the value.
    pub care: Option<String>,
}

/// A value, with a star where something must be kept in mind of it.
fn starred(text: &str, care: Option<&str>) -> String {
    match care {
        Some(_) => format!("{text}*"),
        None => text.to_owned(),
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// What is drawn on, with the calls that all charts need.
struct Canvas<'a> {
    area: Area<'a>,
    /// Left and right end of the plot.
    left: i32,
    right: i32,
}

/// Draws a chart of rows in groups: `draw` gets each row with the middle of its line. Returns SVG.
fn chart<R>(
    groups: &[Group<R>],
    label: impl Fn(&R) -> String,
    axis: &Axis,
    legend: &[(Glyph, &str)],
    draw: impl Fn(&Canvas, &R, i32),
) -> String {
    let widest = groups
        .iter()
        .flat_map(|group| &group.rows)
        .map(|row| width(&cut(&label(row))))
        .max()
        .unwrap_or(0);
    let top = 8 + legend_height(legend);
    let rows: i32 = groups.iter().map(|group| group.rows.len() as i32).sum();
    let bottom = top + groups.len() as i32 * TITLE + rows * ROW + 8;
    let mut svg = String::new();
    {
        let size = (WIDTH as u32, (bottom + AXIS) as u32);
        let canvas = Canvas {
            area: SVGBackend::with_string(&mut svg, size).into_drawing_area(),
            left: GAP + 4 + widest.max(LEFT_LEAST),
            right: WIDTH - VALUES,
        };
        canvas.rectangle((0, 0), (WIDTH, bottom + AXIS), PAPER);
        canvas.legend(legend);
        canvas.axis(axis, top, bottom);
        let mut y = top;
        for group in groups {
            canvas.text(&group.title, (0, y + TITLE - 10), Side::Left, true, INK);
            y += TITLE;
            for row in &group.rows {
                let middle = y + ROW / 2;
                let name = cut(&label(row));
                canvas.text(
                    &name,
                    (canvas.left - GAP, middle + 7),
                    Side::Right,
                    false,
                    INK,
                );
                draw(&canvas, row, middle);
                y += ROW;
            }
        }
        canvas.area.present().expect(NEVER);
    }
    svg.trim_end().to_owned()
}

/// Drawing into a text has nothing that could fail.
const NEVER: &str = "drawing into a text does not fail";

/// Width of a text at size [`TEXT`], never too small: no font is asked, so each character counts as
/// in a wide one (DejaVu Sans), rounded up.
fn width(text: &str) -> i32 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | '\'' | '.' | ',' | ':' | ';' | '|' | '!' | ' ' => 7,
        'f' | 'r' | 't' | '-' | '(' | ')' | '[' | ']' | '/' | '"' => 9,
        'm' | 'w' | '@' | '%' | 'M' | 'W' => 20,
        'a'..='z' | '0'..='9' | '_' => 13,
        'A'..='Z' => 16,
        c if c.is_ascii() => 17,
        _ => 20,
    };
    text.chars().map(of).sum()
}

/// A label that fits: the middle of a long one is left out.
fn cut(label: &str) -> String {
    let plain = super::escape::one_line(label);
    if width(&plain) <= LABEL_MAX {
        return plain;
    }
    let characters: Vec<char> = plain.chars().collect();
    let cut_to = |kept: usize| {
        let tail = kept / 2;
        let start: String = characters[..kept - tail].iter().collect();
        let end: String = characters[characters.len() - tail..].iter().collect();
        format!("{start}…{end}")
    };
    (0..characters.len())
        .rev()
        .map(cut_to)
        .find(|text| width(text) <= LABEL_MAX)
        .unwrap_or_default()
}

/// Where a text ends or begins.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Middle,
    Right,
}

/// Marks, for plots and legends.
#[derive(Clone, Copy)]
enum Glyph {
    Dot(RGBColor),
    Diamond(RGBColor),
    Cross(RGBColor),
    Whisker,
    Box(RGBColor),
}

/// Space that a legend takes: one line for each two entries.
fn legend_height(legend: &[(Glyph, &str)]) -> i32 {
    legend.len().div_ceil(2) as i32 * ROW + if legend.is_empty() { 0 } else { 8 }
}

impl Canvas<'_> {
    fn text(&self, text: &str, (x, y): (i32, i32), side: Side, bold: bool, colour: RGBColor) {
        let anchor = match side {
            Side::Left => HPos::Left,
            Side::Middle => HPos::Center,
            Side::Right => HPos::Right,
        };
        let weight = if bold {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        };
        // The backend divides sizes by 1.24, and puts `Bottom` half an x-height above the point.
        let style = TextStyle::from(("sans-serif", TEXT * 1.24, weight).into_font())
            .color(&colour)
            .pos(Pos::new(anchor, VPos::Bottom));
        self.area.draw_text(text, &style, (x, y + 5)).expect(NEVER);
    }

    fn rectangle(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) {
        self.area
            .draw(&Rectangle::new([from, to], colour.filled()))
            .expect(NEVER);
    }

    fn line(&self, points: &[(i32, i32)], colour: RGBColor, width: u32) {
        self.area
            .draw(&PathElement::new(
                points.to_vec(),
                colour.stroke_width(width),
            ))
            .expect(NEVER);
    }

    /// A mark around a point.
    fn glyph(&self, glyph: Glyph, (x, y): (i32, i32)) {
        const R: i32 = 7;
        match glyph {
            Glyph::Dot(colour) => self
                .area
                .draw(&Circle::new((x, y), R - 1, colour.filled()))
                .expect(NEVER),
            Glyph::Diamond(colour) => {
                let corners = [
                    (x, y - R - 1),
                    (x + R + 1, y),
                    (x, y + R + 1),
                    (x - R - 1, y),
                ];
                self.area
                    .draw(&Polygon::new(corners, PAPER.filled()))
                    .expect(NEVER);
                let [a, b, c, d] = corners;
                self.line(&[a, b, c, d, a], colour, 3);
            }
            Glyph::Cross(colour) => {
                self.line(&[(x - R, y - R), (x + R, y + R)], colour, 3);
                self.line(&[(x - R, y + R), (x + R, y - R)], colour, 3);
            }
            Glyph::Whisker => self.whisker((x - 14, true), (x + 14, true), y),
            Glyph::Box(colour) => self.rectangle((x - R, y - R), (x + R, y + R), colour),
        }
    }

    /// An interval with its two ends: where each stands, and whether it ends there.
    fn whisker(&self, from: (i32, bool), to: (i32, bool), y: i32) {
        self.line(&[(from.0, y), (to.0, y)], INK, 2);
        for (x, _) in [from, to].into_iter().filter(|(_, ends)| *ends) {
            self.line(&[(x, y - 6), (x, y + 6)], INK, 2);
        }
    }

    /// The interval of two values of an axis; one that goes on beyond the axis has no end there.
    fn interval(&self, axis: &Axis, (low, high): (f64, f64), y: i32) {
        let end = |value| (self.x(axis, value), axis.holds(value));
        self.whisker(end(low), end(high), y);
    }

    fn legend(&self, legend: &[(Glyph, &str)]) {
        for (index, (glyph, text)) in legend.iter().enumerate() {
            let x = 22 + (index as i32 % 2) * WIDTH / 2;
            let y = 8 + (index as i32 / 2) * ROW + ROW / 2;
            self.glyph(*glyph, (x, y));
            self.text(text, (x + 26, y + 7), Side::Left, false, SOFT);
        }
    }

    /// Grid, numbers and title of the axis.
    fn axis(&self, axis: &Axis, top: i32, bottom: i32) {
        for tick in &axis.ticks {
            let x = self.x(axis, tick.value);
            let colour = if tick.strong { SOFT } else { GRID };
            self.line(
                &[(x, top), (x, bottom)],
                colour,
                if tick.strong { 2 } else { 1 },
            );
            self.text(&tick.text, (x, bottom + 22), Side::Middle, false, SOFT);
        }
        self.text(
            &axis.title,
            (WIDTH / 2, bottom + 50),
            Side::Middle,
            false,
            SOFT,
        );
    }

    /// Place of a value of the axis.
    fn x(&self, axis: &Axis, value: f64) -> i32 {
        let width = f64::from(self.right - self.left);
        self.left + (axis.place(value).clamp(0.0, 1.0) * width).round() as i32
    }
}

/// Colour of an operation; its name stands beside it everywhere.
pub(super) fn colour_of(operation: &str) -> RGBColor {
    match operation {
        "keygen" => BLUE,
        "sign" => ORANGE,
        _ => GREEN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_labels_keep_both_ends() {
        let cut = cut(&format!("begin{}end", "x".repeat(300)));
        assert!(cut.starts_with("begin") && cut.ends_with("end"));
        assert!(width(&cut) <= LABEL_MAX && width(&cut) > LABEL_MAX - 20);
    }
}
