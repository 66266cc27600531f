//! A loop of known length: additions of which each needs the result of the one before.
//!
//! An integer addition of two registers takes one clock cycle on the processors this tool runs on,
//! and a dependent one cannot start earlier, so the loop takes at least as many core cycles as it
//! has additions, whatever the width of the core. Both operands are registers: an addition of a
//! constant may be folded away when registers are renamed (Intel since Golden Cove).

use std::arch::asm;

/// Additions of one round of the loop.
pub const ADDS_PER_ROUND: u64 = 64;

/// Instructions of one round: the additions, one to count rounds, one to jump.
pub const INSTRUCTIONS_PER_ROUND: u64 = ADDS_PER_ROUND + 2;

/// Whole rounds that hold at least `adds` additions, at least one.
pub fn rounds(adds: u64) -> u64 {
    adds.div_ceil(ADDS_PER_ROUND).max(1)
}

/// Adds `step` to `start`, [`ADDS_PER_ROUND`] times a round, in one dependent chain.
#[inline(never)]
pub fn run(rounds: u64, start: u64, step: u64) -> u64 {
    assert!(rounds > 0, "the loop counts down to zero");
    let mut sum = start;
    // SAFETY: the block only adds registers and counts its own register down to zero; `rounds` is
    // not zero, so it ends.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!(
            ".p2align 5",
            "2:",
            ".rept 64",
            "add {sum}, {step}",
            ".endr",
            "dec {left}",
            "jnz 2b",
            sum = inout(reg) sum,
            step = in(reg) step,
            left = inout(reg) rounds => _,
            options(nomem, nostack),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!(
            ".p2align 5",
            "2:",
            ".rept 64",
            "add {sum}, {sum}, {step}",
            ".endr",
            "subs {left}, {left}, #1",
            "b.ne 2b",
            sum = inout(reg) sum,
            step = in(reg) step,
            left = inout(reg) rounds => _,
            options(nomem, nostack),
        );
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_makes_exactly_the_additions_it_claims() {
        for (rounds, start, step) in [(1, 0, 1u64), (7, 5, 3), (1000, u64::MAX, 2)] {
            let expected = start.wrapping_add(step.wrapping_mul(rounds * ADDS_PER_ROUND));
            assert_eq!(run(rounds, start, step), expected);
        }
    }

    #[test]
    fn rounds_hold_at_least_the_additions_asked_for() {
        for (adds, expected) in [(0, 1), (1, 1), (64, 1), (65, 2), (6400, 100)] {
            assert_eq!(rounds(adds), expected);
        }
    }
}
