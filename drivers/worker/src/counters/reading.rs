//! Two readings of a counter, and the count between them.
//!
//! The subtraction is where a wrong count would slip through, so it refuses: values that went
//! backwards, a group that was not on the hardware all the time (its count would need scaling, and
//! scaled cycles are never published), a counter that stands still while its group ran.

/// What a counter was read as without the kernel's help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Direct {
    /// As [`Reading::value`].
    pub value: u64,
    /// As [`Reading::instructions`].
    pub instructions: Option<u64>,
}

/// One reading of a counter group. Values grow from an arbitrary start: only differences mean
/// something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Core cycles (`perf`) or ticks (`tsc`, `cntvct`).
    pub value: u64,
    /// Instructions of the same group, where it has them.
    pub instructions: Option<u64>,
    /// `time_enabled` and `time_running` of the group, nanoseconds; `None` for clocks.
    pub enabled_running: Option<(u64, u64)>,
    /// Direct reading just before the kernel's, where it is permitted: the end of a span.
    pub before: Option<Direct>,
    /// Direct reading just after the kernel's, where it is permitted: the start of a span.
    pub after: Option<Direct>,
}

impl Reading {
    /// Reading of a clock: a value and nothing else.
    pub fn clock(value: u64) -> Reading {
        Reading {
            value,
            instructions: None,
            enabled_running: None,
            before: None,
            after: None,
        }
    }
}

/// What was counted between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Core cycles or ticks.
    pub value: u64,
    /// Instructions, where the group has them.
    pub instructions: Option<u64>,
    /// `time_enabled` and `time_running` in between, nanoseconds; `None` for clocks.
    pub enabled_running: Option<(u64, u64)>,
    /// Whether both ends were read directly; otherwise both are the kernel's.
    pub direct: bool,
}

/// Why two readings give no count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// A value is smaller than the one before.
    #[error("the {what} went backwards, from {from} to {to}")]
    Backwards {
        /// Which value.
        what: &'static str,
        /// Earlier value.
        from: u64,
        /// Later value.
        to: u64,
    },
    /// The group shared the hardware with others.
    #[error(
        "the group was on the hardware for {running} of {enabled} ns: other events share its counters \
         (NMI watchdog, another perf), and scaled cycles are not published; stop them and repeat"
    )]
    Multiplexed {
        /// `time_enabled`, nanoseconds.
        enabled: u64,
        /// `time_running`, nanoseconds.
        running: u64,
    },
    /// The counter did not move although its group ran.
    #[error("the {what} counted nothing in {running} ns on the hardware: it is frozen")]
    Frozen {
        /// Which value.
        what: &'static str,
        /// `time_running`, nanoseconds.
        running: u64,
    },
}

/// What was counted from `first` to `last`. Where both carry a direct reading on the inner side, the
/// difference of these is taken, else that of the kernel's readings: never one of each.
pub fn difference(first: &Reading, last: &Reading) -> Result<Count, CountError> {
    let enabled_running = running(first, last)?;
    let kernels = (
        Direct {
            value: first.value,
            instructions: first.instructions,
        },
        Direct {
            value: last.value,
            instructions: last.instructions,
        },
    );
    let (pair, direct) = match (first.after, last.before) {
        (Some(from), Some(to)) => ((from, to), true),
        _ => (kernels, false),
    };
    let value = forward("counter", pair.0.value, pair.1.value)?;
    let instructions = match (pair.0.instructions, pair.1.instructions) {
        (Some(from), Some(to)) => Some(forward("instruction counter", from, to)?),
        _ => None,
    };
    if let Some((_, running)) = enabled_running {
        moved("counter", value, running)?;
        moved("instruction counter", instructions.unwrap_or(1), running)?;
    }
    Ok(Count {
        value,
        instructions,
        enabled_running,
        direct,
    })
}

/// What a refused count went on by, as far as it went forward: the kernel's readings, unjudged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Raw {
    /// Core cycles or ticks.
    pub value: Option<u64>,
    /// Instructions.
    pub instructions: Option<u64>,
    /// `time_enabled`, nanoseconds.
    pub enabled: Option<u64>,
    /// `time_running`, nanoseconds.
    pub running: Option<u64>,
}

/// The raw differences of two readings, for the evidence of a refusal.
pub fn raw(first: &Reading, last: &Reading) -> Raw {
    let instructions = first.instructions.zip(last.instructions);
    let times = first.enabled_running.zip(last.enabled_running);
    Raw {
        value: last.value.checked_sub(first.value),
        instructions: instructions.and_then(|(from, to)| to.checked_sub(from)),
        enabled: times.and_then(|(from, to)| to.0.checked_sub(from.0)),
        running: times.and_then(|(from, to)| to.1.checked_sub(from.1)),
    }
}

/// Times of the group in between; an error unless it was on the hardware all the time.
fn running(first: &Reading, last: &Reading) -> Result<Option<(u64, u64)>, CountError> {
    let (Some(from), Some(to)) = (first.enabled_running, last.enabled_running) else {
        return Ok(None);
    };
    let enabled = forward("time enabled", from.0, to.0)?;
    let running = forward("time running", from.1, to.1)?;
    if enabled != running {
        return Err(CountError::Multiplexed { enabled, running });
    }
    Ok(Some((enabled, running)))
}

fn forward(what: &'static str, from: u64, to: u64) -> Result<u64, CountError> {
    to.checked_sub(from)
        .ok_or(CountError::Backwards { what, from, to })
}

fn moved(what: &'static str, value: u64, running: u64) -> Result<(), CountError> {
    match value {
        0 => Err(CountError::Frozen { what, running }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn group(value: u64, instructions: u64, times: (u64, u64)) -> Reading {
        Reading {
            instructions: Some(instructions),
            enabled_running: Some(times),
            ..Reading::clock(value)
        }
    }

    fn direct(value: u64, instructions: u64) -> Option<Direct> {
        Some(Direct {
            value,
            instructions: Some(instructions),
        })
    }

    #[test]
    fn a_group_that_ran_all_the_time_gives_its_differences() {
        let count = difference(&group(100, 50, (10, 10)), &group(350, 90, (30, 30))).unwrap();
        assert_eq!((count.value, count.instructions), (250, Some(40)));
        assert_eq!(
            (count.enabled_running, count.direct),
            (Some((20, 20)), false)
        );
    }

    #[test]
    fn a_group_that_shared_the_hardware_gives_none() {
        let error = difference(&group(0, 0, (0, 0)), &group(9, 9, (100, 70))).unwrap_err();
        assert_eq!(
            error,
            CountError::Multiplexed {
                enabled: 100,
                running: 70
            }
        );
    }

    #[test]
    fn a_counter_that_stands_still_while_its_group_runs_is_frozen() {
        let frozen = |what| CountError::Frozen { what, running: 9 };
        let cycles = difference(&group(5, 0, (0, 0)), &group(5, 7, (9, 9)));
        assert_eq!(cycles, Err(frozen("counter")));
        let instructions = difference(&group(5, 7, (0, 0)), &group(9, 7, (9, 9)));
        assert_eq!(instructions, Err(frozen("instruction counter")));
    }

    #[test]
    fn direct_readings_count_only_when_both_ends_have_them() {
        let mut first = group(100, 10, (0, 0));
        let mut last = group(400, 40, (9, 9));
        first.after = direct(110, 11);
        assert_eq!(difference(&first, &last).unwrap().value, 300);
        last.before = direct(390, 39);
        let count = difference(&first, &last).unwrap();
        assert_eq!(
            (count.value, count.instructions, count.direct),
            (280, Some(28), true)
        );
        first.after = None;
        first.before = direct(90, 9);
        let count = difference(&first, &last).unwrap();
        assert_eq!(
            (count.value, count.direct),
            (300, false),
            "the outer side of the first is not the inner"
        );
    }

    proptest! {
        #[test]
        fn clocks_count_forward_or_say_that_they_do_not(from: u64, to: u64) {
            let count = difference(&Reading::clock(from), &Reading::clock(to));
            match to.checked_sub(from) {
                Some(value) => prop_assert_eq!(count.unwrap().value, value),
                None => prop_assert_eq!(
                    count.unwrap_err(),
                    CountError::Backwards { what: "counter", from, to }
                ),
            }
        }
    }
}
