//! Axes: where a value stands between 0 and 1, and which values are written under it.

/// An axis.
pub(super) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Values that are written.
    pub ticks: Vec<Tick>,
    /// What it counts, in which unit.
    pub title: String,
}

/// A value on an axis.
pub(super) struct Tick {
    pub value: f64,
    pub text: String,
    /// Whether its line stands out (the value that others are compared with).
    pub strong: bool,
}

impl Tick {
    fn plain(value: f64, text: String) -> Self {
        Tick {
            value,
            text,
            strong: false,
        }
    }
}

/// Most numbers under an axis: more would touch on a phone.
const TICKS_MAX: i32 = 6;

impl Axis {
    /// Whole decades around all values, which must be positive; `text` writes a power of ten.
    pub(super) fn decades(
        values: impl Iterator<Item = f64>,
        title: String,
        text: impl Fn(f64) -> String,
    ) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| *value > 0.0 && value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (1.0, 10.0);
        }
        let first = libm::log10(low).floor() as i32;
        let last = (libm::log10(high).ceil() as i32).max(first + 1);
        let step = ((last - first) as f64 / f64::from(TICKS_MAX - 1)).ceil() as i32;
        let ticks = (first..=last)
            .step_by(step as usize)
            .map(|power| {
                let value = power_of_ten(power);
                Tick::plain(value, text(value))
            })
            .collect();
        Axis {
            low: power_of_ten(first),
            high: power_of_ten(last),
            logarithmic: true,
            ticks,
            title,
        }
    }

    /// From `low` to `high` in steps of 1, 2 or 5 times a power of ten; the line at `at` stands out.
    pub(super) fn linear(
        low: f64,
        high: f64,
        at: f64,
        title: String,
        text: impl Fn(f64) -> String,
    ) -> Self {
        let step = round_step((high - low) / f64::from(TICKS_MAX - 1));
        let first = (low / step).ceil() as i64;
        let last = (high / step).floor() as i64;
        let ticks = (first..=last)
            .map(|k| {
                let value = k as f64 * step;
                Tick {
                    value,
                    text: text(value),
                    strong: value == at,
                }
            })
            .collect();
        Axis {
            low,
            high,
            logarithmic: false,
            ticks,
            title,
        }
    }

    /// Ratios on a logarithmic axis, with 1 and as much on each side of it as the values need.
    pub(super) fn ratios(values: impl Iterator<Item = f64>, title: String) -> Self {
        let sound = values.filter(|value| *value > 0.0 && value.is_finite());
        let (least, most) = sound.fold((1.0, 1.0), |(least, most): (f64, f64), value| {
            (least.min(value), most.max(value))
        });
        let far = libm::log(most).max(-libm::log(least));
        let candidates: [&[f64]; 6] = [
            &[0.98, 0.99, 1.0, 1.01, 1.02],
            &[0.9, 0.95, 1.0, 1.05, 1.1],
            &[0.5, 0.7, 1.0, 1.4, 2.0],
            &[0.25, 0.5, 1.0, 2.0, 4.0],
            &[0.1, 0.3, 1.0, 3.0, 10.0],
            &[0.01, 0.1, 1.0, 10.0, 100.0],
        ];
        let ticks = candidates
            .into_iter()
            .find(|ticks| far <= libm::log(ticks[4]))
            .unwrap_or(candidates[5]);
        // The number nearest beyond the values, or the values' own end where none is.
        let below = ticks.iter().rev().find(|tick| **tick <= least);
        let above = ticks.iter().find(|tick| **tick >= most);
        let room = libm::exp(libm::log(ticks[4]) * 0.03);
        let low = below.copied().unwrap_or(least) / room;
        let high = above.copied().unwrap_or(most) * room;
        Axis {
            low,
            high,
            logarithmic: true,
            ticks: ticks
                .iter()
                .filter(|value| (low..=high).contains(*value))
                .map(|&value| Tick {
                    value,
                    text: format!("{value}"),
                    strong: value == 1.0,
                })
                .collect(),
            title,
        }
    }

    /// Place of a value: 0 at the low end, 1 at the high end. The logarithm is a portable one, so that
    /// a point stands at the same place on every machine.
    pub(super) fn place(&self, value: f64) -> f64 {
        if !self.logarithmic {
            return (value - self.low) / (self.high - self.low);
        }
        let low = libm::log10(self.low);
        (libm::log10(value) - low) / (libm::log10(self.high) - low)
    }

    /// Whether a value lies on the axis.
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Exact for the powers that matter here (10^22 and below), and the nearest double beyond.
fn power_of_ten(power: i32) -> f64 {
    format!("1e{power}")
        .parse()
        .expect("a power of ten is a number")
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = power_of_ten(libm::log10(step).floor() as i32);
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|candidate| *candidate >= step * (1.0 - 1e-12))
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_enclose_all_values_with_few_numbers() {
        let axis = Axis::decades([9510.0, 4.5e10].into_iter(), String::new(), |v| {
            format!("{v:e}")
        });
        let texts: Vec<&str> = axis.ticks.iter().map(|t| t.text.as_str()).collect();
        assert_eq!(texts, ["1e3", "1e5", "1e7", "1e9", "1e11"]);
        assert_eq!(axis.place(1e3), 0.0);
        assert_eq!(axis.place(1e7), 0.5);
        let same = Axis::decades([1000.0].into_iter(), String::new(), |v| format!("{v:e}"));
        assert_eq!(same.ticks.len(), 2, "one value has an axis too");
        let none = Axis::decades(std::iter::empty(), String::new(), |v| format!("{v:e}"));
        assert!(!none.ticks.is_empty());
    }

    #[test]
    fn steps_are_round() {
        for (step, round) in [
            (0.3, 0.5),
            (1.0, 1.0),
            (1.1, 2.0),
            (2.4, 5.0),
            (60.0, 100.0),
        ] {
            assert!((round_step(step) - round).abs() < 1e-12, "{step}");
        }
    }

    #[test]
    fn ratios_have_one_and_what_they_need_on_each_side_of_it() {
        let numbers = |values: &[f64]| -> Vec<f64> {
            let axis = Axis::ratios(values.iter().copied(), String::new());
            assert!(values.iter().all(|value| axis.holds(*value)), "{values:?}");
            assert_eq!(axis.ticks.iter().filter(|tick| tick.strong).count(), 1);
            axis.ticks.iter().map(|tick| tick.value).collect()
        };
        assert_eq!(numbers(&[0.112, 0.95]), [0.1, 0.3, 1.0]);
        assert_eq!(numbers(&[0.112, 1.01]), [0.1, 0.3, 1.0, 3.0]);
        assert_eq!(numbers(&[1.04, 1.06]), [1.0, 1.05, 1.1]);
        assert_eq!(numbers(&[0.0001, 150.0]), [0.01, 0.1, 1.0, 10.0, 100.0]);
        assert_eq!(numbers(&[1.0]), [1.0], "equal to the last digit");
    }
}
