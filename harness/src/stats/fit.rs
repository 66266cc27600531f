//! The model of the message-size study: time = fixed + bytes × seconds per byte, by weighted least
//! squares.
//!
//! Times span five decades and vary in proportion to themselves, so deviations are relative: the weight
//! of a size is 1/mean². The units of the fit are the sizes, not the trials: what makes all trials of a
//! size deviate together (its number of rejections, the caches that it fits into) is then part of the
//! intervals.

use super::{exact_sum, student_t_975};
use crate::evidence::{FitModel, FitPoint, FitValue};

/// Sizes that a fit needs at least.
pub const LEAST_SIZES: usize = 3;

/// Times the share of the growing part above which hashing counts as all: 90% of the whole is 9 parts
/// to 1.
const NINE: f64 = 9.0;

/// Fits the model; `None` for fewer than [`LEAST_SIZES`] different sizes, or a mean that is no
/// positive number.
pub fn fit(points: &[FitPoint]) -> Option<FitModel> {
    if points
        .iter()
        .any(|p| !(p.mean_s > 0.0 && p.mean_s.is_finite()))
    {
        return None;
    }
    let mut sizes: Vec<u64> = points.iter().map(|p| p.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < LEAST_SIZES || sizes.len() != points.len() {
        return None;
    }
    let sum = |of: &dyn Fn(f64, f64, f64) -> f64| {
        let terms: Vec<f64> = points
            .iter()
            .map(|p| of(p.size_bytes as f64, p.mean_s, 1.0 / (p.mean_s * p.mean_s)))
            .collect();
        exact_sum(&terms)
    };
    let weight = sum(&|_, _, w| w);
    let x_mean = sum(&|x, _, w| w * x) / weight;
    let y_mean = sum(&|_, y, w| w * y) / weight;
    let x_spread = sum(&|x, _, w| w * (x - x_mean) * (x - x_mean));
    let slope = sum(&|x, y, w| w * (x - x_mean) * (y - y_mean)) / x_spread;
    let fixed = y_mean - slope * x_mean;
    let model = |x: f64| fixed + slope * x;
    let freedom = points.len() as f64 - 2.0;
    let variance = sum(&|x, y, w| w * (y - model(x)) * (y - model(x))) / freedom;
    let t = student_t_975(freedom);
    let around = |value: f64, variance: f64| {
        let half = t * variance.sqrt();
        FitValue {
            value,
            low: Some(value - half),
            high: Some(value + half),
        }
    };
    let fixed_s = around(
        fixed,
        variance * (1.0 / weight + x_mean * x_mean / x_spread),
    );
    let s_per_byte = around(slope, variance / x_spread);
    let residuals = points
        .iter()
        .map(|p| (p.mean_s / model(p.size_bytes as f64) - 1.0).abs());
    Some(FitModel {
        worst_relative_residual: residuals.fold(0.0, f64::max),
        t,
        throughput_mb_per_s: throughput(s_per_byte),
        growing_above_90_bytes: growing(fixed_s, s_per_byte),
        fixed_s,
        s_per_byte,
    })
}

/// The inverse of a slope, 10^6 bytes per second. An interval that reaches zero has no upper end.
fn throughput(slope: FitValue) -> Option<FitValue> {
    let inverse = |s: f64| 1.0 / s / 1e6;
    (slope.value > 0.0).then(|| FitValue {
        value: inverse(slope.value),
        low: slope.high.map(inverse),
        high: slope.low.filter(|&low| low > 0.0).map(inverse),
    })
}

/// 9 fixed / slope: from this size on the growing part is more than 90% of the model.
fn growing(fixed: FitValue, slope: FitValue) -> Option<FitValue> {
    let size = |fixed: f64, slope: f64| NINE * fixed / slope;
    let known = fixed.value > 0.0 && slope.value > 0.0;
    let high = fixed.high.zip(slope.low.filter(|&low| low > 0.0));
    known.then(|| FitValue {
        value: size(fixed.value, slope.value),
        low: fixed
            .low
            .zip(slope.high)
            .map(|(fixed, slope)| size(fixed, slope).max(0.0)),
        high: high.map(|(fixed, slope)| size(fixed, slope)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: [u64; 5] = [1000, 64_000, 1_000_000, 10_000_000, 100_000_000];

    fn points(fixed: f64, slope: f64, error: [f64; 5]) -> Vec<FitPoint> {
        SIZES
            .into_iter()
            .zip(error)
            .map(|(size_bytes, error)| FitPoint {
                size_bytes,
                mean_s: (fixed + slope * size_bytes as f64) * (1.0 + error),
            })
            .collect()
    }

    fn holds(value: FitValue, truth: f64) -> bool {
        value.low.unwrap() <= truth && truth <= value.high.unwrap()
    }

    #[test]
    fn an_exact_line_is_found_again() {
        let model = fit(&points(4e-4, 3.2e-9, [0.0; 5])).unwrap();
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        assert!(near(model.fixed_s.value, 4e-4), "{model:?}");
        assert!(near(model.s_per_byte.value, 3.2e-9), "{model:?}");
        assert!(near(model.throughput_mb_per_s.unwrap().value, 312.5));
        assert!(near(
            model.growing_above_90_bytes.unwrap().value,
            9.0 * 4e-4 / 3.2e-9
        ));
        assert!(model.worst_relative_residual < 1e-9);
    }

    #[test]
    fn relative_deviations_leave_the_truth_inside_the_intervals() {
        let model = fit(&points(4e-4, 3.2e-9, [0.02, -0.02, 0.01, -0.01, 0.01])).unwrap();
        assert!(holds(model.fixed_s, 4e-4), "{model:?}");
        assert!(holds(model.s_per_byte, 3.2e-9), "{model:?}");
        let above = model.growing_above_90_bytes.unwrap();
        assert!(holds(above, 9.0 * 4e-4 / 3.2e-9), "{above:?}");
        assert!((0.005..0.05).contains(&model.worst_relative_residual));
        // A deviation of the largest size by a hundredth is a hundred times the fixed cost: without
        // the weights it would carry the fit away.
        assert!((model.fixed_s.value / 4e-4 - 1.0).abs() < 0.05, "{model:?}");
    }

    #[test]
    fn a_time_that_does_not_grow_has_no_throughput_or_one_without_bound() {
        let flat = fit(&points(5e-5, 0.0, [0.01, -0.01, 0.01, -0.01, 0.005])).unwrap();
        assert!(holds(flat.s_per_byte, 0.0), "{flat:?}");
        assert!(flat.throughput_mb_per_s.is_none_or(|t| t.high.is_none()));
        let falling = fit(&points(5e-5, -1e-13, [0.0; 5])).unwrap();
        assert_eq!(falling.throughput_mb_per_s, None);
        assert_eq!(falling.growing_above_90_bytes, None);
    }

    #[test]
    fn a_curve_that_is_no_line_says_so() {
        let mut bent = points(4e-4, 3.2e-9, [0.0; 5]);
        for point in &mut bent {
            point.mean_s *= libm::pow(point.size_bytes as f64, 0.2);
        }
        let model = fit(&bent).unwrap();
        assert!(model.worst_relative_residual > 0.2, "{model:?}");
    }

    #[test]
    fn degenerate_points_have_no_fit() {
        let good = points(4e-4, 3.2e-9, [0.0; 5]);
        assert_eq!(fit(&good[..2]), None);
        assert!(fit(&good[..3]).is_some());
        assert_eq!(fit(&[]), None);
        assert_eq!(fit(&[good[0]; 5]), None, "one size five times");
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let mut points = good.clone();
            points[1].mean_s = bad;
            assert_eq!(fit(&points), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_line_without_deviation_is_found(fixed in 1e-6..1.0f64, rate in 1e6..1e10f64) {
            let model = fit(&points(fixed, 1.0 / rate, [0.0; 5])).unwrap();
            prop_assert!((model.fixed_s.value / fixed - 1.0).abs() < 1e-6);
            // Where the fixed part is a million times the rest, the rest is lost in rounding.
            let seen = SIZES[4] as f64 / rate / fixed > 1e-6;
            prop_assert!(!seen || (model.s_per_byte.value * rate - 1.0).abs() < 1e-6);
        }
    }
}
