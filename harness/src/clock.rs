//! The two clocks of the evidence: UTC for people, the monotonic clock for order and differences.
//! Measurements use neither; the worker reads CLOCK_MONOTONIC_RAW itself.

use jiff::Timestamp;

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Microseconds since the epoch, UTC.
    pub utc_us: i64,
    /// CLOCK_MONOTONIC, nanoseconds.
    pub monotonic_ns: u64,
}

/// Reads both clocks.
pub fn now() -> Stamp {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let (seconds, nanoseconds) = (time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u64);
    Stamp {
        utc_us: Timestamp::now().as_microsecond(),
        monotonic_ns: seconds * 1_000_000_000 + nanoseconds,
    }
}

/// UTC as the evidence writes it: RFC 3339 with six decimals and `Z`.
pub fn utc_text(utc_us: i64) -> String {
    match Timestamp::from_microsecond(utc_us) {
        Ok(time) => format!("{time:.6}"),
        // A clock set beyond year 9999 is the machine's mistake; the evidence shows it as it is.
        Err(_) => format!("invalid:{utc_us}"),
    }
}

/// The time that [`utc_text`] wrote, microseconds since the epoch; `None` for anything else.
pub fn utc_us(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(|t| t.as_microsecond())
}

/// UTC now, as the evidence writes it.
pub fn utc_now() -> String {
    utc_text(now().utc_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utc_has_six_decimals_and_z() {
        assert_eq!(utc_text(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(utc_text(1_500_000), "1970-01-01T00:00:01.500000Z");
        assert_eq!(utc_us("1970-01-01T00:00:01.500000Z"), Some(1_500_000));
        assert_eq!(utc_us(&utc_text(i64::MAX)), None);
        assert_eq!(utc_text(i64::MAX), format!("invalid:{}", i64::MAX));
    }

    #[test]
    fn monotonic_time_does_not_go_back() {
        let (a, b) = (now(), now());
        assert!(a.monotonic_ns <= b.monotonic_ns);
    }
}
