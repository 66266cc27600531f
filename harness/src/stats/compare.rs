//! Comparison of two records: Welch's t on logarithms of trial means, Holm's correction, the noise
//! floor.

use super::timing::mean_and_deviation;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Result of Welch's test on the logarithms of trial means; the ratio is B/A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// exp(difference of the means of logarithms).
    pub ratio: f64,
    /// Lower end of its 95% interval.
    pub low: f64,
    /// Upper end of its 95% interval.
    pub high: f64,
    /// Two-sided p value.
    pub p: f64,
    /// Degrees of freedom of Welch and Satterthwaite.
    pub df: f64,
}

/// Why a pair is not tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WelchError {
    /// Fewer than 5 trials on a side.
    #[error("not tested: too few trials")]
    TooFewTrials,
    /// No spread on either side.
    #[error("not tested: no variance")]
    NoVariance,
    /// A trial mean that is no positive number.
    #[error("not tested: a trial mean is not a positive number")]
    NotPositive,
}

/// Least number of trials of a side.
pub const LEAST_TRIALS: usize = 5;

/// Tests the trial means of two records (Welch 1947; degrees of freedom of Satterthwaite 1946).
pub fn welch(a: &[f64], b: &[f64]) -> Result<Welch, WelchError> {
    if a.len() < LEAST_TRIALS || b.len() < LEAST_TRIALS {
        return Err(WelchError::TooFewTrials);
    }
    if a.iter().chain(b).any(|&x| !(x > 0.0 && x.is_finite())) {
        return Err(WelchError::NotPositive);
    }
    // The mean of equal values may be off by a last digit, and would leave them a deviation.
    let steady = |x: &[f64]| x.windows(2).all(|pair| pair[0] == pair[1]);
    if steady(a) && steady(b) {
        return Err(WelchError::NoVariance);
    }
    let logs = |x: &[f64]| x.iter().map(|&v| libm::log(v)).collect::<Vec<f64>>();
    let (mean_a, s_a) = mean_and_deviation(&logs(a));
    let (mean_b, s_b) = mean_and_deviation(&logs(b));
    let (k_a, k_b) = (a.len() as f64, b.len() as f64);
    let (v_a, v_b) = (s_a * s_a / k_a, s_b * s_b / k_b);
    let variance = v_a + v_b;
    if variance == 0.0 {
        // Values that differ by less than their logarithms can tell.
        return Err(WelchError::NoVariance);
    }
    let df = variance * variance / (v_a * v_a / (k_a - 1.0) + v_b * v_b / (k_b - 1.0));
    let difference = mean_b - mean_a;
    let half = super::student_t_975(df) * variance.sqrt();
    let t = StudentsT::new(0.0, 1.0, df).expect("degrees of freedom are positive and finite");
    Ok(Welch {
        ratio: libm::exp(difference),
        low: libm::exp(difference - half),
        high: libm::exp(difference + half),
        p: settled(2.0 * t.cdf(-(difference / variance.sqrt()).abs())),
        df,
    })
}

/// A p value to 11 significant digits: its last ones depend on the machine's own logarithm, which
/// `statrs` calls, and pages must be the same bytes everywhere.
fn settled(p: f64) -> f64 {
    format!("{p:.10e}").parse().unwrap_or(p)
}

/// Holm's step-down adjustment (Holm 1979): adjusted p values in the order given.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut adjusted = vec![0.0; p.len()];
    let mut running: f64 = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        running = running.max((p.len() - rank) as f64 * p[index]).min(1.0);
        adjusted[index] = running;
    }
    adjusted
}

/// Noise floor of one run from its `aa` pair: the larger of |ln low| and |ln high| of the pair's
/// ratio. Two runs compare against the larger of their floors.
pub fn noise_floor(pair: &Welch) -> f64 {
    libm::log(pair.low).abs().max(libm::log(pair.high).abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn welch_agrees_with_an_independent_computation() {
        // exp() of the classic two samples, so that the test sees the logarithms as they stand;
        // t, df and p were computed with exact rationals and the incomplete beta function.
        let a: Vec<f64> = [27.5, 21.0, 19.0, 23.6, 17.0]
            .iter()
            .map(|x: &f64| libm::exp(x / 10.0))
            .collect();
        let b: Vec<f64> = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5]
            .iter()
            .map(|x: &f64| libm::exp(x / 10.0))
            .collect();
        let result = welch(&a, &b).unwrap();
        assert!((libm::log(result.ratio) - (23.366666666666667 - 21.62) / 10.0).abs() < 1e-12);
        assert!(result.low < result.ratio && result.ratio < result.high);
        assert!((result.df - 5.751963681170372).abs() < 1e-9, "{result:?}");
        assert!((result.p - 0.42293003).abs() < 1e-6, "{result:?}");
    }

    #[test]
    fn a_swap_inverts_the_ratio_and_keeps_p() {
        let a = [1.0, 1.1, 1.05, 1.02, 1.07];
        let b = [2.0, 2.1, 2.2, 2.05, 2.3, 2.1];
        let (ab, ba) = (welch(&a, &b).unwrap(), welch(&b, &a).unwrap());
        assert!(
            (ab.ratio * ba.ratio - 1.0).abs() < 1e-12 && (ab.low * ba.high - 1.0).abs() < 1e-12
        );
        assert!((ab.p - ba.p).abs() < 1e-15);
    }

    #[test]
    fn pairs_that_cannot_be_tested_say_why() {
        let five = [1.0; 5];
        assert_eq!(welch(&five[..4], &five), Err(WelchError::TooFewTrials));
        assert_eq!(welch(&five, &[2.0; 5]), Err(WelchError::NoVariance));
        for trials in [5, 7, 15] {
            for value in [1e-3, 0.1, 1.7, 95_812_345.6] {
                let steady = vec![value; trials];
                let pair = welch(&steady, &vec![value * 1.1; trials]);
                assert_eq!(pair, Err(WelchError::NoVariance), "{trials} of {value}");
            }
        }
        assert_eq!(
            welch(&[1.0, 2.0, 3.0, 4.0, 0.0], &five),
            Err(WelchError::NotPositive)
        );
        assert!(
            welch(&[1.0, 2.0, 3.0, 4.0, 5.0], &five).is_ok(),
            "spread on one side is enough"
        );
    }

    #[test]
    fn holm_steps_down_and_never_decreases() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        assert_eq!(adjusted.len(), expected.len());
        for (a, e) in adjusted.iter().zip(expected) {
            assert!((a - e).abs() < 1e-12, "{adjusted:?}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn the_floor_is_the_farther_end() {
        let pair = Welch {
            ratio: 1.0,
            low: 0.97,
            high: 1.01,
            p: 0.5,
            df: 8.0,
        };
        assert_eq!(noise_floor(&pair), libm::log(0.97).abs());
    }
}
