//! The passes of a profile over one key: how often an operation runs on the same inputs, and which of
//! the runs counts.
//!
//! One run of a fast operation says little: a single time slice of another process, inside or outside
//! a wrapped function, decides its share. Several runs on the same inputs make the same calls, so the
//! one with the fewest ticks is the one that was disturbed least. What a run is belongs to `profile`.

use crate::library::ProfileRowRaw;
use protocol::ProfilePasses;

/// An operation from here on runs once: it is longer than the time slices of others, which then fall
/// on its parts in proportion. Nanoseconds.
pub const LONG_NS: u64 = 100_000_000;
/// Time that the passes over one key are planned for, nanoseconds.
const KEY_NS: u64 = 30_000_000;
/// Passes over a key that are planned at least and at most, unless the operation is long.
const PLANNED: (u64, u64) = (3, 20);
/// Largest step in which kernels account CPU time: a tick of 100 Hz, nanoseconds.
const TICK_NS: u64 = 10_000_000;
/// Where all passes were disturbed, there are more: up to this many times those planned ...
const MORE: usize = 4;
/// ... and for no longer than this, nanoseconds.
const MORE_NS: u64 = 200_000_000;

/// One run of an operation with its calls counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pass {
    /// Ticks, wrappers included.
    pub ticks: u64,
    /// CLOCK_MONOTONIC_RAW, nanoseconds.
    pub wall_ns: u64,
    /// CPU time of the process, nanoseconds.
    pub cpu_ns: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Call shapes.
    pub rows: Vec<ProfileRowRaw>,
    /// Calls without a slot.
    pub overflow: u64,
    /// Draws that the candidate rejected.
    pub rejected: u64,
}

impl Pass {
    /// See [`ProfilePasses`] for the rule.
    fn is_disturbed(&self) -> bool {
        let away_ns = self.wall_ns.saturating_sub(self.cpu_ns);
        self.involuntary_switches > self.wall_ns / LONG_NS
            || away_ns > TICK_NS.max(self.wall_ns / 100)
    }

    /// What it called, whatever the order and the time.
    fn calls(&self) -> (Vec<[u64; 4]>, u64, u64) {
        let shape = |row: &ProfileRowRaw| {
            [
                u64::from(row.function),
                row.in_bits,
                row.out_bits,
                row.calls,
            ]
        };
        let mut shapes: Vec<[u64; 4]> = self.rows.iter().map(shape).collect();
        shapes.sort_unstable();
        (shapes, self.overflow, self.rejected)
    }
}

/// Whether a key needs another pass after these.
pub fn wants_more(passes: &[Pass]) -> bool {
    let Some(first) = passes.first() else {
        return true;
    };
    if first.wall_ns >= LONG_NS {
        return false;
    }
    let (least, most) = PLANNED;
    let planned = (KEY_NS / first.wall_ns.max(1)).clamp(least, most) as usize;
    if passes.len() < planned {
        return true;
    }
    let spent: u64 = passes.iter().map(|pass| pass.wall_ns).sum();
    passes.len() < MORE * planned && spent < MORE_NS && passes.iter().all(Pass::is_disturbed)
}

/// Number of the pass that counts, and the evidence of all of them; there is at least one.
pub fn settle(passes: &[Pass]) -> (usize, ProfilePasses) {
    let calls: Vec<_> = passes.iter().map(Pass::calls).collect();
    let (same, other): (Vec<usize>, Vec<usize>) =
        (0..passes.len()).partition(|&number| calls[number] == calls[0]);
    let counted = same
        .into_iter()
        .min_by_key(|&number| (passes[number].is_disturbed(), passes[number].ticks))
        .unwrap_or(0);
    let numbers = |all: Vec<usize>| all.into_iter().map(|number| number as u32).collect();
    let disturbed = (0..passes.len()).filter(|&number| passes[number].is_disturbed());
    let pass = &passes[counted];
    let evidence = ProfilePasses {
        ticks: passes.iter().map(|pass| pass.ticks).collect(),
        disturbed: numbers(disturbed.collect()),
        other_calls: numbers(other),
        counted: counted as u32,
        wall_ns: pass.wall_ns,
        cpu_ns: pass.cpu_ns,
        involuntary_switches: pass.involuntary_switches,
    };
    (counted, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pass of so many microseconds, off the CPU for some of them.
    fn pass(us: u64, away_us: u64, involuntary_switches: u64) -> Pass {
        Pass {
            ticks: us * 2000,
            wall_ns: us * 1000,
            cpu_ns: (us - away_us) * 1000,
            involuntary_switches,
            ..Pass::default()
        }
    }

    #[test]
    fn the_least_undisturbed_pass_counts() {
        let cases: [(&str, Vec<Pass>, usize, bool); 5] = [
            ("one", vec![pass(100, 0, 0)], 0, false),
            (
                "least",
                vec![pass(103, 0, 0), pass(100, 0, 0), pass(101, 0, 0)],
                1,
                false,
            ),
            (
                "a time slice",
                vec![pass(4100, 4000, 1), pass(130, 0, 0)],
                1,
                false,
            ),
            (
                "fewer ticks, disturbed",
                vec![pass(100, 2, 1), pass(101, 0, 0)],
                1,
                false,
            ),
            (
                "all disturbed",
                vec![pass(4100, 4000, 1), pass(8100, 8000, 2)],
                0,
                true,
            ),
        ];
        for (name, passes, counted, disturbed) in cases {
            let (number, evidence) = settle(&passes);
            assert_eq!(number, counted, "{name}");
            assert_eq!(evidence.all_disturbed(), disturbed, "{name}");
            assert_eq!(evidence.counted as usize, counted);
            assert_eq!(evidence.ticks[counted], passes[counted].ticks);
            assert_eq!(evidence.wall_ns, passes[counted].wall_ns);
        }
    }

    #[test]
    fn a_pass_with_other_calls_never_counts() {
        let row = |calls| {
            let mut row = ProfileRowRaw::default();
            (row.function, row.in_bits, row.out_bits, row.calls) = (1, 8, 256, calls);
            row
        };
        let with = |us, calls| Pass {
            rows: vec![row(calls)],
            ..pass(us, 0, 0)
        };
        let (number, evidence) = settle(&[with(100, 7), with(50, 3), with(90, 7)]);
        assert_eq!((number, evidence.other_calls), (2, vec![1]));
        let rejected = Pass {
            rejected: 1,
            ..with(50, 7)
        };
        let (number, evidence) = settle(&[with(100, 7), rejected]);
        assert_eq!((number, evidence.other_calls), (0, vec![1]));
    }

    #[test]
    fn short_operations_run_often_and_long_ones_once() {
        let made = |one: Pass| {
            let mut passes = Vec::new();
            while wants_more(&passes) {
                passes.push(one.clone());
            }
            passes.len()
        };
        assert_eq!(made(pass(50, 0, 0)), 20);
        assert_eq!(made(pass(3000, 0, 0)), 10);
        assert_eq!(made(pass(60_000, 0, 0)), 3);
        assert_eq!(made(pass(100_000, 0, 0)), 1);
        assert_eq!(made(pass(1_500_000, 900_000, 99)), 1, "long ones average");
        assert_eq!(made(pass(50, 0, 1)), 80, "bounded by their number");
        assert_eq!(made(pass(60_000, 30_000, 8)), 4, "bounded by their time");
    }

    #[test]
    fn a_switch_in_each_tenth_of_a_second_is_no_disturbance() {
        let cases = [
            (pass(50, 0, 1), true),
            (pass(99_999, 0, 1), true),
            (pass(100_000, 0, 1), false),
            (pass(1_500_000, 100, 15), false),
            (pass(1_500_000, 100, 16), true),
            (pass(1000, 1000, 0), false),
            (pass(1_500_000, 15_000, 0), false),
            (pass(1_500_000, 15_001, 0), true),
            (pass(50_000, 10_001, 0), true),
        ];
        for (pass, disturbed) in cases {
            assert_eq!(pass.is_disturbed(), disturbed, "{pass:?}");
        }
    }
}
