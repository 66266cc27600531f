//! Number formats of the pages: one function per format, exactly as the public pages of this field
//! print them, with their boundary cases below.
//!
//! Rounding is that of Rust's own decimal output: correctly rounded from the exact binary value,
//! ties to even. The value rounded is the double that is printed (`share * 100`, `seconds * 1e3`).

/// Stands for a missing value.
pub const MISSING: &str = "–";

/// Cycles or ticks: `47.33 G`, `96.51 M`, `12.3 k`, `9510`. The unit is chosen before rounding.
pub fn cycles(value: f64) -> String {
    if value >= 1e9 {
        format!("{:.2} G", value / 1e9)
    } else if value >= 1e6 {
        format!("{:.2} M", value / 1e6)
    } else if value >= 1e4 {
        format!("{:.1} k", value / 1e3)
    } else {
        format!("{value:.0}")
    }
}

/// Seconds in the first unit of s, ms, µs, ns whose scaled value is at least 1, three significant
/// digits: `48.7 ms`. Below 1 ns still ns.
pub fn time(seconds: f64) -> String {
    for (factor, unit) in [(1.0, "s"), (1e3, "ms"), (1e6, "µs")] {
        if seconds * factor >= 1.0 {
            return format!("{} {unit}", general3(seconds * factor));
        }
    }
    format!("{} ns", general3(seconds * 1e9))
}

/// `%.3g` of C: three significant digits, trailing zeros dropped, an exponent of at least two
/// digits below 1e-4 and from 1e3 up (after rounding).
pub fn general3(value: f64) -> String {
    const DIGITS: i32 = 3;
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{:.*e}", (DIGITS - 1) as usize, value);
    let (mantissa, exponent) = scientific
        .split_once('e')
        .expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    if (-4..DIGITS).contains(&exponent) {
        return trim_zeros(&format!("{:.*}", (DIGITS - 1 - exponent) as usize, value)).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs())
}

fn trim_zeros(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

/// A share as the seed's table prints it: whole percent from 0.095 up, one decimal below; zero and
/// tiny shares alike are `0.0%`.
pub fn share_seed(share: f64) -> String {
    if share >= 0.095 {
        format!("{:.0}%", share * 100.0)
    } else {
        format!("{:.1}%", share * 100.0)
    }
}

/// A share elsewhere: `0%` is exactly zero, `<0.1%` is tiny.
pub fn share(share: f64) -> String {
    if share == 0.0 {
        "0%".to_owned()
    } else if share > 0.0 && share < 0.0005 {
        "<0.1%".to_owned()
    } else {
        share_seed(share)
    }
}

/// A ratio with so many significant digits, trailing zeros kept: `3.70`, `0.0512`, `12.3`.
pub fn ratio(value: f64, digits: u32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = digits.max(1) as i32;
    let scientific = format!("{:.*e}", (digits - 1) as usize, value);
    let exponent = scientific
        .split_once('e')
        .map_or("0", |(_, exponent)| exponent);
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    format!("{:.*}", (digits - 1 - exponent).max(0) as usize, value)
}

/// Bytes as KiB, rounded down.
pub fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes / 1024)
}

/// KiB as MiB, rounded down.
pub fn mib_of_kib(kib: u64) -> String {
    format!("{} MiB", kib / 1024)
}

/// Number of calls with trials and iterations: `105 (5 × 21)`.
pub fn n(total: u64, trials: u64, iterations: u64) -> String {
    format!("{total} ({trials} × {iterations})")
}

/// First 19 characters of an ISO text in UTC: `2026-09-25T10:02:21`.
pub fn date(utc: &str) -> String {
    utc.chars().take(19).collect()
}

/// Hertz as GHz with two decimals.
pub fn ghz(hertz: f64) -> String {
    format!("{:.2} GHz", hertz / 1e9)
}

/// A text with a capital letter at its beginning, and the others as they are.
pub fn initial(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + characters.as_str()
}

/// First 16 digits of a digest, with an ellipsis.
pub fn digest16(digest: &str) -> String {
    format!("{}…", digest.chars().take(16).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_at_their_thresholds() {
        for (value, text) in [
            (0.0, "0"),
            (9510.0, "9510"),
            (9999.4, "9999"),
            (9999.6, "10000"),
            (10000.0, "10.0 k"),
            (999_999.0, "1000.0 k"),
            (1e6, "1.00 M"),
            (999_999_999.0, "1000.00 M"),
            (1e9, "1.00 G"),
            (48_530_000_000.0, "48.53 G"),
            (0.5, "0"),
            (1.5, "2"),
            (2.5, "2"),
        ] {
            assert_eq!(cycles(value), text, "{value}");
        }
    }

    #[test]
    fn times_at_their_thresholds() {
        for (value, text) in [
            (1.0, "1 s"),
            (1.04, "1.04 s"),
            (0.9996, "1e+03 ms"),
            (0.9994, "999 ms"),
            (0.0487, "48.7 ms"),
            (0.09, "90 ms"),
            (1e-3, "1 ms"),
            (2.5e-5, "25 µs"),
            (1e-9, "1 ns"),
            (2.5e-10, "0.25 ns"),
            (123.4, "123 s"),
            (0.0, "0 ns"),
        ] {
            assert_eq!(time(value), text, "{value}");
        }
    }

    #[test]
    fn three_significant_digits_as_in_c() {
        for (value, text) in [
            (1215.86, "1.22e+03"),
            (999.5, "1e+03"),
            (999.4, "999"),
            (442.0, "442"),
            (20.5, "20.5"),
            (0.0429, "0.0429"),
            (0.34, "0.34"),
            (140.0, "140"),
            (0.0001, "0.0001"),
            (0.00001234, "1.23e-05"),
            (-20.55, "-20.6"),
            (0.0, "0"),
            (2.5e120, "2.5e+120"),
            (0.125, "0.125"),
            (1.125, "1.12"),
            (1.375, "1.38"),
        ] {
            assert_eq!(general3(value), text, "{value}");
        }
    }

    #[test]
    fn shares_at_their_thresholds() {
        for (value, seed, elsewhere) in [
            (0.0949, "9.5%", "9.5%"),
            (0.095, "10%", "10%"),
            (0.105, "10%", "10%"),
            (0.115, "12%", "12%"),
            (0.145, "14%", "14%"),
            (0.0004, "0.0%", "<0.1%"),
            (0.0005, "0.1%", "0.1%"),
            (0.0, "0.0%", "0%"),
            (0.19, "19%", "19%"),
            (1.0, "100%", "100%"),
        ] {
            assert_eq!(share_seed(value), seed, "{value}");
            assert_eq!(share(value), elsewhere, "{value}");
        }
    }

    #[test]
    fn ratios_keep_their_digits() {
        for (value, digits, text) in [
            (3.695, 3, "3.69"),
            (1.0, 4, "1.000"),
            (0.05123, 3, "0.0512"),
            (9.996, 3, "10.0"),
            (123.4, 2, "123"),
            (0.0, 3, "0"),
        ] {
            assert_eq!(ratio(value, digits), text, "{value}");
        }
    }

    #[test]
    fn bytes_are_rounded_down() {
        assert_eq!(kib(3_678_208), "3592 KiB");
        assert_eq!(kib(1023), "0 KiB");
        assert_eq!(mib_of_kib(32_551_112), "31788 MiB");
    }

    #[test]
    fn counts_dates_and_digests() {
        assert_eq!(n(105, 5, 21), "105 (5 × 21)");
        assert_eq!(
            date("2026-09-25T10:02:21.123456+00:00"),
            "2026-09-25T10:02:21"
        );
        assert_eq!(initial("mean TSC ticks"), "Mean TSC ticks");
        assert_eq!(initial(""), "");
        assert_eq!(digest16("89d908ec521c54490011"), "89d908ec521c5449…");
    }
}
