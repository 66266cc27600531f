//! The audit's own arithmetic. Nothing here is shared with what measures: sums go through a
//! fixed-point number that is wide enough for every double, Student's t through the finite series for
//! whole degrees of freedom.

/// Limbs of the accumulator: a double's bits lie between 2^-1074 and 2^1023, and 2^64 of them may add up.
const LIMBS: usize = 35;

/// Weight of the accumulator's lowest bit is 2^-LOWEST.
const LOWEST: i32 = 1074;

/// A sum of doubles without any rounding.
#[derive(Clone)]
struct Accumulator {
    positive: [u64; LIMBS],
    negative: [u64; LIMBS],
}

impl Accumulator {
    fn new() -> Self {
        Accumulator {
            positive: [0; LIMBS],
            negative: [0; LIMBS],
        }
    }

    /// Adds a finite double.
    fn add(&mut self, value: f64) {
        let bits = value.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        // Subnormal numbers have exponent 1 and no hidden bit.
        let (mantissa, shift) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | (1 << 52), (exponent - 1) as usize),
        };
        let limbs = match value.is_sign_negative() {
            false => &mut self.positive,
            true => &mut self.negative,
        };
        let wide = u128::from(mantissa) << (shift % 64);
        add_at(limbs, shift / 64, wide as u64);
        add_at(limbs, shift / 64 + 1, (wide >> 64) as u64);
    }

    /// The double nearest to the sum, ties to even.
    fn round(&self) -> f64 {
        match compare(&self.positive, &self.negative) {
            std::cmp::Ordering::Less => -nearest(&subtract(&self.negative, &self.positive)),
            _ => nearest(&subtract(&self.positive, &self.negative)),
        }
    }
}

fn add_at(limbs: &mut [u64; LIMBS], mut at: usize, value: u64) {
    let mut carry = value;
    while carry != 0 && at < LIMBS {
        let (sum, over) = limbs[at].overflowing_add(carry);
        limbs[at] = sum;
        carry = u64::from(over);
        at += 1;
    }
}

fn compare(a: &[u64; LIMBS], b: &[u64; LIMBS]) -> std::cmp::Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

/// `a - b` for `a >= b`.
fn subtract(a: &[u64; LIMBS], b: &[u64; LIMBS]) -> [u64; LIMBS] {
    let mut result = [0; LIMBS];
    let mut borrow = false;
    for index in 0..LIMBS {
        let (difference, first) = a[index].overflowing_sub(b[index]);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        result[index] = difference;
        borrow = first || second;
    }
    result
}

fn bit(limbs: &[u64; LIMBS], at: usize) -> bool {
    limbs[at / 64] >> (at % 64) & 1 == 1
}

/// The double nearest to a fixed-point number, ties to even.
fn nearest(limbs: &[u64; LIMBS]) -> f64 {
    let Some(top) = (0..LIMBS * 64).rev().find(|&at| bit(limbs, at)) else {
        return 0.0;
    };
    // 53 bits are kept; below 2^-1022 there are fewer, and all of them fit.
    let low = top.saturating_sub(52);
    let mut mantissa: u64 = (low..=top)
        .rev()
        .fold(0, |m, at| m << 1 | u64::from(bit(limbs, at)));
    let half = low > 0 && bit(limbs, low - 1);
    let beyond = low > 1 && (0..low - 1).any(|at| bit(limbs, at));
    if half && (beyond || mantissa & 1 == 1) {
        mantissa += 1;
    }
    // 2^(low - LOWEST) in two steps, each of which is a normal double.
    let exponent = low as i32 - LOWEST;
    let step = exponent / 2;
    mantissa as f64 * 2f64.powi(step) * 2f64.powi(exponent - step)
}

/// Sum of finite doubles, rounded once to the nearest double, ties to even.
pub fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut accumulator = Accumulator::new();
    for value in values {
        accumulator.add(value);
    }
    accumulator.round()
}

/// Values in order; they are finite.
pub fn ordered(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Median of ordered values: the middle one, or the mean of the middle two. `None` for none.
pub fn middle(ordered: &[f64]) -> Option<f64> {
    let n = ordered.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(ordered[n / 2]),
        _ => Some((ordered[n / 2 - 1] + ordered[n / 2]) / 2.0),
    }
}

/// Quantile of ordered values between order statistics h = (n-1)p and the next ("type 7" of Hyndman
/// and Fan, 1996).
pub fn type7(ordered: &[f64], p: f64) -> Option<f64> {
    let h = ordered.len().checked_sub(1)? as f64 * p;
    let below = *ordered.get(h.floor() as usize)?;
    let above = *ordered.get(h.ceil() as usize)?;
    Some(below + (h - h.floor()) * (above - below))
}

/// Mean and standard deviation with divisor k - 1 of at least two values.
pub fn mean_deviation(values: &[f64]) -> (f64, f64) {
    let k = values.len() as f64;
    let mean = sum(values.iter().copied()) / k;
    let squares = sum(values.iter().map(|v| (v - mean).powi(2)));
    (mean, (squares / (k - 1.0)).sqrt())
}

/// P(|T| < t) of Student's t with `df` whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and
/// 26.7.4: finite series in the angle whose tangent is t / sqrt(df)).
fn central(t: f64, df: u32) -> f64 {
    let angle = (t / f64::from(df).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let square = cosine * cosine;
    let even = df.is_multiple_of(2);
    let mut term = if even { 1.0 } else { cosine };
    let mut series = if df == 1 { 0.0 } else { term };
    let mut k = if even { 2.0 } else { 3.0 };
    while k <= f64::from(df) - 2.0 {
        term *= square * (k - 1.0) / k;
        series += term;
        k += 2.0;
    }
    match even {
        true => sine * series,
        false => 2.0 / std::f64::consts::PI * (angle + sine * series),
    }
}

/// Student's t(0.975, df): the t with P(|T| < t) = 0.95, by halving an interval.
pub fn t_975(df: u32) -> f64 {
    let (mut low, mut high) = (1.9, 13.0); // df = infinity gives 1.96, df = 1 gives 12.71
    for _ in 0..200 {
        let half = (low + high) / 2.0;
        match central(half, df) < 0.95 {
            true => low = half,
            false => high = half,
        }
    }
    (low + high) / 2.0
}

/// Whether two values agree to a relative 1e-9.
pub fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sums_are_rounded_once() {
        for (values, expected) in [
            (vec![], 0.0),
            (vec![0.41, 0.40, 0.43, 0.40, 0.41], 2.05),
            (vec![1e100, 1.0, -1e100], 1.0),
            (vec![1e16, 1.0, 1e-16], 10000000000000002.0),
            (vec![1e16, 1.0], 1e16),
            (vec![-1e16, -1.0, -1e-16], -10000000000000002.0),
            (vec![0.1; 10], 1.0),
            (vec![5e-324, 5e-324], 1e-323),
            (vec![f64::MAX, -f64::MAX, 5e-324], 5e-324),
            (vec![f64::MAX, f64::MAX], f64::INFINITY),
            (
                vec![2.2250738585072014e-308, -5e-324],
                2.225073858507201e-308,
            ),
        ] {
            assert_eq!(sum(values.iter().copied()), expected, "{values:?}");
        }
    }

    proptest! {
        #[test]
        fn sums_equal_integer_arithmetic(units in prop::collection::vec(-(1i64 << 51)..(1i64 << 51), 0..100)) {
            let scale = f64::from(1u32 << 20);
            let total: i128 = units.iter().map(|&u| i128::from(u)).sum();
            prop_assert_eq!(sum(units.iter().map(|&u| u as f64 / scale)), total as f64 / scale);
        }

        /// Two programs that follow the statistics page produce the same digits.
        #[test]
        fn sums_equal_the_measuring_sides(values in prop::collection::vec(any::<f64>(), 0..40)) {
            let finite: Vec<f64> = values.into_iter().filter(|v| v.abs() < 1e300).collect();
            prop_assert_eq!(sum(finite.iter().copied()), crate::stats::exact_sum(&finite));
        }
    }

    #[test]
    fn students_quantile_matches_its_closed_forms() {
        // Shaw, "Sampling Student's T distribution", 2006: df 1, 2, 4; and the statistics page.
        let one = (std::f64::consts::PI * 0.475).tan();
        let two = 0.95 * (2.0 / (4.0 * 0.975 * 0.025f64)).sqrt();
        for (df, expected) in [(1, one), (2, two), (4, 2.7764451051978)] {
            assert!((t_975(df) / expected - 1.0).abs() < 1e-12, "{df}");
        }
        for df in [1, 2, 3, 4, 5, 14, 29, 99, 1000] {
            assert!(
                close(t_975(df), crate::stats::student_t_975(f64::from(df))),
                "{df}"
            );
        }
    }

    #[test]
    fn order_statistics_of_few_values() {
        assert_eq!(middle(&[]), None);
        assert_eq!(middle(&[1.0, 3.0]), Some(2.0));
        assert_eq!(middle(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(type7(&[], 0.5), None);
        assert_eq!(type7(&[7.0], 0.99), Some(7.0));
        assert_eq!(type7(&[1.0, 2.0, 3.0, 4.0], 0.25), Some(1.75));
        assert_eq!(type7(&[1.0, 2.0, 3.0, 4.0], 1.0), Some(4.0));
    }
}
