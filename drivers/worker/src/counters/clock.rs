//! A counter register that is a clock: the smallest step that it shows. Its ticks are never cycles.

/// Readings that are searched for the smallest step.
const STEP_READINGS: u32 = 4096;

/// Smallest difference between two readings in a row that differ; `None` for a register that stands
/// still.
pub fn smallest_step(mut ticks: impl FnMut() -> u64) -> Option<u64> {
    let mut last = ticks();
    let mut smallest = None;
    for _ in 0..STEP_READINGS {
        let now = ticks();
        let step = now.wrapping_sub(last);
        if step != 0 && smallest.is_none_or(|smallest| step < smallest) {
            smallest = Some(step);
        }
        last = now;
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_step_is_that_between_different_values() {
        let mut at = 0;
        let mut steps = [0, 26, 0, 52, 78].into_iter().cycle();
        let ticks = || {
            at += steps.next().unwrap();
            at
        };
        assert_eq!(smallest_step(ticks), Some(26));
        assert_eq!(smallest_step(|| 7), None);
    }
}
