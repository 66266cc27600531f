//! Exactly rounded sums of doubles.

/// Sum of finite doubles, rounded once: the double nearest to the true sum, ties to even.
///
/// Keeps the running sum as non-overlapping partials (Shewchuk, "Adaptive Precision Floating-Point
/// Arithmetic", 1997), as `math.fsum` of Python does. An empty slice gives 0. Overflow of a
/// partial gives an infinity, as the plain sum would.
pub fn exact_sum(values: &[f64]) -> f64 {
    let mut partials: Vec<f64> = Vec::new();
    for &value in values {
        let mut x = value;
        let mut kept = 0;
        for index in 0..partials.len() {
            let (high, low) = two_sum(x, partials[index]);
            if low != 0.0 {
                partials[kept] = low;
                kept += 1;
            }
            x = high;
        }
        partials.truncate(kept);
        partials.push(x);
    }
    round_once(&partials)
}

/// `a + b` as a rounded sum and its exact error (Knuth's two-sum: no condition on magnitudes).
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// Rounds non-overlapping partials, given in increasing magnitude, once.
fn round_once(partials: &[f64]) -> f64 {
    let mut rest = partials.iter().rev().copied();
    let Some(mut high) = rest.next() else {
        return 0.0;
    };
    let mut low = 0.0;
    for next in rest.by_ref() {
        (high, low) = two_sum(high, next);
        if low != 0.0 {
            break;
        }
    }
    // `low` may be exactly half a unit in the last place, and what is below it decides the tie.
    if let Some(below) = rest.next() {
        if (low < 0.0 && below < 0.0) || (low > 0.0 && below > 0.0) {
            let doubled = low * 2.0;
            let candidate = high + doubled;
            if candidate - high == doubled {
                high = candidate;
            }
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_worked_example_is_rounded_once() {
        let seconds = [0.41, 0.40, 0.43, 0.40, 0.41];
        assert_eq!(exact_sum(&seconds), 2.05);
        assert_eq!(
            seconds.iter().sum::<f64>(),
            2.0500000000000003,
            "the plain sum is the wrong one"
        );
    }

    #[test]
    fn cancellation_and_ties_are_exact() {
        let cases: [(&[f64], f64); 6] = [
            (&[], 0.0),
            (&[1e100, 1.0, -1e100], 1.0),
            (&[1e16, 1.0, 1e-16], 10000000000000002.0),
            (&[1e16, 1.0], 1e16),
            (&[-1e16, -1.0, -1e-16], -10000000000000002.0),
            (&[0.1; 10], 1.0),
        ];
        for (values, expected) in cases {
            assert_eq!(exact_sum(values), expected, "{values:?}");
        }
    }

    proptest! {
        /// Multiples of 2^-20 below 2^31 add up exactly in 128-bit integers.
        #[test]
        fn equals_integer_arithmetic(units in prop::collection::vec(-(1i64 << 51)..(1i64 << 51), 0..200)) {
            let scale = f64::from(1u32 << 20);
            let values: Vec<f64> = units.iter().map(|&u| u as f64 / scale).collect();
            let total: i128 = units.iter().map(|&u| i128::from(u)).sum();
            prop_assert_eq!(exact_sum(&values), total as f64 / scale);
        }

        #[test]
        fn does_not_depend_on_the_order(mut values in prop::collection::vec(-1e12f64..1e12, 1..60)) {
            let sum = exact_sum(&values);
            values.reverse();
            prop_assert_eq!(exact_sum(&values), sum);
            values.sort_by(f64::total_cmp);
            prop_assert_eq!(exact_sum(&values), sum);
        }
    }
}
