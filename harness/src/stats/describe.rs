//! Descriptive statistics of a few numbers: order statistics, spread, Student's quantile.

use crate::evidence::Tukey;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A sorted copy (total order; the values are finite).
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_by(f64::total_cmp);
    copy
}

/// Quantile `p` in [0, 1] of sorted values by linear interpolation between order statistics
/// ("type 7" of Hyndman and Fan, 1996); `None` for no values.
pub fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = p * last as f64;
    let below = position.floor() as usize;
    let low = sorted[below.min(last)];
    let high = sorted[(below + 1).min(last)];
    Some(low + (position - below as f64) * (high - low))
}

/// Median: of an even number, the mean of the middle two. `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let ordered = sorted(values);
    let half = ordered.len() / 2;
    match ordered.len() {
        0 => None,
        n if n % 2 == 1 => Some(ordered[half]),
        _ => Some((ordered[half - 1] + ordered[half]) / 2.0),
    }
}

/// Median absolute deviation from `centre`, unscaled.
pub fn mad(values: &[f64], centre: f64) -> Option<f64> {
    let deviations: Vec<f64> = values.iter().map(|v| (v - centre).abs()).collect();
    median(&deviations)
}

/// Outliers by Tukey's fences at 1.5 and 3 interquartile ranges; counted, never removed.
pub fn tukey(values: &[f64], p25: f64, p75: f64) -> Tukey {
    let range = p75 - p25;
    let beyond = |factor: f64| {
        values
            .iter()
            .filter(|&&v| v < p25 - factor * range || v > p75 + factor * range)
            .count() as u64
    };
    let severe = beyond(3.0);
    Tukey {
        mild: beyond(1.5) - severe,
        severe,
    }
}

/// Student's t(0.975, df) for `df` >= 1 degrees of freedom (fractions allowed), rounded to 14 significant
/// digits: what two programs with other algorithms agree on.
pub fn student_t_975(df: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, df).expect("degrees of freedom are positive and finite");
    // statrs inverts by bisection on its cdf; one Newton step settles the last digits.
    let start = t.inverse_cdf(0.975);
    let density = statrs::distribution::Continuous::pdf(&t, start);
    let settled = start - (t.cdf(start) - 0.975) / density;
    format!("{settled:.13e}").parse().unwrap_or(settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-11 * b.abs()
    }

    #[test]
    fn students_quantile_matches_its_closed_forms() {
        // Closed forms for 1, 2 and 4 degrees of freedom (Shaw, "Sampling Student's T distribution",
        // 2006), at p = 0.975; the last one is the value of the statistics page.
        let p: f64 = 0.975;
        let one = (std::f64::consts::PI * (p - 0.5)).tan();
        let two = (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt();
        let a = (4.0 * p * (1.0 - p)).sqrt();
        let four = 2.0 * ((a.acos() / 3.0).cos() / a - 1.0).sqrt();
        for (df, expected) in [(1.0, one), (2.0, two), (4.0, four), (4.0, 2.7764451051978)] {
            assert!(
                close(student_t_975(df), expected),
                "{df}: {} {expected}",
                student_t_975(df)
            );
        }
    }

    #[test]
    fn students_quantile_falls_towards_the_normal_one() {
        let values: Vec<f64> = [1.0, 1.5, 2.0, 14.0, 99.5, 1e6].map(student_t_975).to_vec();
        assert!(values.windows(2).all(|w| w[0] > w[1]), "{values:?}");
        assert!((values[5] - 1.959963984540054).abs() < 1e-5);
    }

    #[test]
    fn quantiles_interpolate_between_order_statistics() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 0.25), Some(1.75));
        assert_eq!(quantile(&values, 0.5), Some(2.5));
        assert_eq!(quantile(&values, 1.0), Some(4.0));
        assert_eq!(quantile(&[7.0], 0.99), Some(7.0));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn medians_and_spread_of_degenerate_inputs() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(mad(&[1.0, 1.0, 1.0], 1.0), Some(0.0));
        assert_eq!(mad(&[1.0, 2.0, 9.0], 2.0), Some(1.0));
    }

    #[test]
    fn outliers_are_counted_by_fence() {
        // Quartiles 0 and 1: fences at -1.5, 2.5 and -3, 4; a value on a fence is inside.
        let values = [0.0, 1.0, 2.5, 2.6, 4.0, 4.1, -1.6, -9.0];
        assert_eq!(tukey(&values, 0.0, 1.0), Tukey { mild: 3, severe: 2 });
    }
}
