//! How fast a counter register runs, against CLOCK_MONOTONIC_RAW.
//!
//! The kernel often derives that clock from the same register: the comparison then checks the method
//! and not the crystal. AArch64 has its rate in a register and does without.

use crate::timing::read_clock;
use std::time::Duration;

/// Span over which a rate is measured: an error of 50 ns at each end is 25 millionths of it.
pub const CALIBRATION: Duration = Duration::from_millis(4);
/// Pairs of readings of which the tightest is taken, at each end.
const PAIRS: u32 = 16;

/// A moment by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Ticks of the register.
    pub ticks: u64,
    /// CLOCK_MONOTONIC_RAW, nanoseconds.
    pub nanoseconds: u64,
}

/// Both clocks at one moment: the pair with the least time between its readings, so that an
/// interruption in the middle of one does not count.
pub fn moment(mut ticks: impl FnMut() -> u64) -> Moment {
    let mut best = (
        u64::MAX,
        Moment {
            ticks: 0,
            nanoseconds: 0,
        },
    );
    for _ in 0..PAIRS {
        let before = ticks();
        let nanoseconds = read_clock(libc::CLOCK_MONOTONIC_RAW);
        let after = ticks();
        let gap = after.saturating_sub(before);
        if gap < best.0 {
            best = (
                gap,
                Moment {
                    ticks: before + gap / 2,
                    nanoseconds,
                },
            );
        }
    }
    best.1
}

/// Ticks a second between two moments, rounded; `None` unless both clocks moved forward.
pub fn rate(from: Moment, to: Moment) -> Option<u64> {
    let ticks = u128::from(to.ticks.checked_sub(from.ticks)?);
    let nanoseconds = u128::from(to.nanoseconds.checked_sub(from.nanoseconds)?);
    if ticks == 0 || nanoseconds == 0 {
        return None;
    }
    u64::try_from((ticks * 1_000_000_000 + nanoseconds / 2) / nanoseconds).ok()
}

/// Measures the rate over [`CALIBRATION`].
pub fn calibrate(mut ticks: impl FnMut() -> u64) -> Option<u64> {
    let from = moment(&mut ticks);
    std::thread::sleep(CALIBRATION);
    rate(from, moment(&mut ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_rounded_and_needs_clocks_that_move() {
        let at = |ticks, nanoseconds| Moment { ticks, nanoseconds };
        assert_eq!(rate(at(0, 0), at(19_200, 1_000_000)), Some(19_200_000));
        assert_eq!(rate(at(5, 0), at(6, 3)), Some(333_333_333));
        let far = rate(at(0, 0), at(u64::MAX, u64::MAX));
        assert_eq!(far, Some(1_000_000_000), "no overflow in between");
        for (from, to) in [
            (at(1, 0), at(1, 9)),
            (at(1, 5), at(9, 5)),
            (at(9, 0), at(1, 5)),
            (at(0, 9), at(9, 5)),
        ] {
            assert_eq!(rate(from, to), None);
        }
    }

    #[test]
    fn the_tightest_pair_is_the_moment() {
        // Distance of the two readings of each pair: the third pair is not interrupted.
        let mut readings = [0, 900, 1000, 1500, 2000, 2010]
            .into_iter()
            .chain((3..).map(|k| k * 1000));
        assert_eq!(moment(|| readings.next().unwrap()).ticks, 2005);
    }
}
