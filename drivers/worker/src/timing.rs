//! The timing loop, and the arithmetic that turns its clock readings into samples.
//!
//! The loop ([`run`]) does nothing between two clock reads but the calls: readings go into a buffer
//! that exists before it starts. What they mean is computed afterwards by [`settle`], a pure
//! function, so that a recorded clock can be replayed through it. Inputs, counters and what the
//! samples are for belong to the tasks.

use protocol::{Overhead, Rest};

/// Most samples of an attempt.
pub const MAX_SAMPLES: u64 = 512;

/// A clock that never goes backwards, in nanoseconds.
pub trait Clock {
    /// Nanoseconds since an arbitrary start.
    fn now(&mut self) -> u64;
}

/// CLOCK_MONOTONIC_RAW: not slewed by NTP, the clock of every record.
#[derive(Debug, Clone, Copy, Default)]
pub struct MonotonicRaw;

impl Clock for MonotonicRaw {
    #[inline(always)]
    fn now(&mut self) -> u64 {
        read_clock(libc::CLOCK_MONOTONIC_RAW)
    }
}

/// Nanoseconds of a clock of the kernel.
#[inline(always)]
pub fn read_clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec that outlives the call; the call writes nothing else.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How many calls, and how many of them between two clock reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopPlan {
    /// Timed calls, at least one.
    pub calls: u64,
    /// Calls of one sample, at least one.
    pub batch: u64,
}

impl LoopPlan {
    /// Samples: the first whole batches, at most [`MAX_SAMPLES`].
    pub fn samples(&self) -> u64 {
        (self.calls / self.batch).min(MAX_SAMPLES)
    }

    /// Calls after the last sample.
    pub fn rest(&self) -> u64 {
        self.calls - self.samples() * self.batch
    }

    /// Clock readings that the loop makes: one before, one after each sample, one after the rest.
    pub fn readings(&self) -> usize {
        self.samples() as usize + 1 + usize::from(self.rest() > 0)
    }
}

/// Calls between two clock reads so that reading (`read_ps`) and the steps of the clock
/// (`step_ns`) each stay below a thousandth of a sample of calls that cost `cost_ns`:
/// `max(1, ceil(1000 × r / c))` with r the larger of the two.
pub fn batch(read_ps: u64, step_ns: u64, cost_ns: u64) -> u64 {
    let r_ps = u128::from(read_ps).max(u128::from(step_ns) * 1000);
    // r / c in like units (r_ps/1000 over cost_ns), times 1000.
    let batch = r_ps.div_ceil(u128::from(cost_ns.max(1)));
    u64::try_from(batch).unwrap_or(u64::MAX).max(1)
}

/// A call that did not return 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallError {
    /// Number of the call in the loop.
    pub call: u64,
    /// What it returned.
    pub code: i32,
}

/// Runs `plan.calls` calls of `op` (given the number of the call) and enters the clock's readings.
/// `readings` must have room for [`LoopPlan::readings`]. Stops at the first call that fails.
#[inline(always)]
pub fn run<C: Clock>(
    plan: LoopPlan,
    clock: &mut C,
    readings: &mut [u64],
    mut op: impl FnMut(u64) -> i32,
) -> Result<(), CallError> {
    let (first, others) = readings.split_first_mut().expect("room for the readings");
    let sampled = plan.samples() * plan.batch;
    let mut call = 0;
    *first = clock.now();
    for reading in others {
        let end = if call < sampled {
            call + plan.batch
        } else {
            plan.calls
        };
        while call < end {
            let code = op(call);
            if code != 0 {
                return Err(CallError { call, code });
            }
            call += 1;
        }
        *reading = clock.now();
    }
    Ok(())
}

/// What the readings say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// Last reading less the first, nanoseconds.
    pub nanoseconds: u64,
    /// One per sample, nanoseconds.
    pub samples: Vec<u64>,
    /// Calls after the samples, and their nanoseconds.
    pub rest: Rest,
}

/// Time went backwards between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the clock went from {from} ns back to {to} ns (reading {reading})")]
pub struct ClockError {
    /// Number of the later reading.
    pub reading: usize,
    /// Earlier reading.
    pub from: u64,
    /// Later reading.
    pub to: u64,
}

/// Turns the readings of [`run`] into samples: neighbours share a reading, so samples and rest add
/// up to the total exactly.
pub fn settle(plan: LoopPlan, readings: &[u64]) -> Result<Settled, ClockError> {
    assert_eq!(readings.len(), plan.readings(), "readings of another plan");
    let mut spans = Vec::with_capacity(readings.len() - 1);
    for (index, pair) in readings.windows(2).enumerate() {
        let span = pair[1].checked_sub(pair[0]).ok_or(ClockError {
            reading: index + 1,
            from: pair[0],
            to: pair[1],
        })?;
        spans.push(span);
    }
    let nanoseconds = spans.iter().sum();
    let rest = Rest {
        calls: plan.rest(),
        value: if plan.rest() > 0 {
            spans.pop().unwrap_or(0)
        } else {
            0
        },
    };
    Ok(Settled {
        nanoseconds,
        samples: spans,
        rest,
    })
}

/// Cost of the loop: the median of batches of clock reads, and the median cost of an empty
/// operation in the loop.
pub fn overhead(iterations: u64) -> Overhead {
    let iterations = iterations.max(1);
    Overhead {
        clock_read_ps: median_of(31, clock_read_ps),
        empty_call_ps: median_of(31, || empty_call_ps(iterations)),
        iterations,
    }
}

fn median_of(repeats: usize, mut measure: impl FnMut() -> u64) -> u64 {
    let mut values: Vec<u64> = (0..repeats).map(|_| measure()).collect();
    values.sort_unstable();
    values[repeats / 2]
}

fn clock_read_ps() -> u64 {
    const READS: u64 = 256;
    let mut clock = MonotonicRaw;
    let start = clock.now();
    let mut last = start;
    for _ in 0..READS {
        last = std::hint::black_box(clock.now());
    }
    last.saturating_sub(start) * 1000 / READS
}

fn empty_call_ps(iterations: u64) -> u64 {
    let plan = LoopPlan {
        calls: iterations,
        batch: iterations,
    };
    let mut readings = [0; 2];
    let _ = run(plan, &mut MonotonicRaw, &mut readings, |_| {
        std::hint::black_box(0)
    });
    (readings[1].saturating_sub(readings[0])) * 1000 / iterations
}

/// Smallest step between different readings of the clock, nanoseconds.
pub fn clock_step_ns() -> u64 {
    let mut clock = MonotonicRaw;
    let mut smallest = u64::MAX;
    let mut last = clock.now();
    for _ in 0..2000 {
        let now = clock.now();
        if now > last {
            smallest = smallest.min(now - last);
        }
        last = now;
    }
    if smallest == u64::MAX {
        1
    } else {
        smallest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Shows recorded readings, one after the other.
    struct Recorded<'a>(std::slice::Iter<'a, u64>);

    impl Clock for Recorded<'_> {
        fn now(&mut self) -> u64 {
            *self.0.next().expect("no reading beyond the recorded ones")
        }
    }

    /// Runs the loop on recorded readings: what it enters, and in which order calls were made.
    fn replay(plan: LoopPlan, recorded: &[u64]) -> (Vec<u64>, Vec<u64>) {
        let mut readings = vec![0; plan.readings()];
        let mut calls = Vec::new();
        let mut clock = Recorded(recorded.iter());
        run(plan, &mut clock, &mut readings, |call| {
            calls.push(call);
            0
        })
        .unwrap();
        assert_eq!(clock.0.len(), 0, "every recorded reading was taken");
        (readings, calls)
    }

    #[test]
    fn a_recorded_clock_gives_its_samples_back() {
        let plan = LoopPlan { calls: 7, batch: 2 };
        let (readings, calls) = replay(plan, &[100, 130, 170, 171, 200]);
        assert_eq!(calls, [0, 1, 2, 3, 4, 5, 6]);
        let settled = settle(plan, &readings).unwrap();
        assert_eq!(settled.samples, [30, 40, 1]);
        assert_eq!(
            settled.rest,
            Rest {
                calls: 1,
                value: 29
            }
        );
        assert_eq!(settled.nanoseconds, 100);
    }

    #[test]
    fn a_clock_that_goes_backwards_is_an_error_with_both_readings() {
        let plan = LoopPlan { calls: 2, batch: 1 };
        assert_eq!(
            settle(plan, &[5, 9, 8]),
            Err(ClockError {
                reading: 2,
                from: 9,
                to: 8
            })
        );
    }

    #[test]
    fn a_failing_call_stops_the_loop_at_once() {
        let plan = LoopPlan { calls: 9, batch: 2 };
        let mut made = 0;
        let error = run(plan, &mut MonotonicRaw, &mut [0; 6], |call| {
            made += 1;
            if call == 3 {
                -6
            } else {
                0
            }
        });
        assert_eq!((error, made), (Err(CallError { call: 3, code: -6 }), 4));
    }

    #[test]
    fn the_batch_keeps_reading_and_resolution_below_a_thousandth() {
        // (read, ps; step, ns; cost, ns) -> batch
        let cases = [
            (23_000, 1, 23_000, 1),
            (23_000, 1, 22_999, 2),
            (23_000, 1, 1000, 23),
            (23_000, 30, 1000, 30),
            (23_001, 1, 1000, 24),
            (0, 0, 1000, 1),
            (23_000, 1, 0, 23_000),
            (23_000, 1, u64::MAX, 1),
        ];
        for (read_ps, step_ns, cost_ns, expected) in cases {
            let found = batch(read_ps, step_ns, cost_ns);
            assert_eq!(found, expected, "{read_ps} ps, {step_ns} ns, {cost_ns} ns");
        }
    }

    proptest! {
        #[test]
        fn samples_and_rest_add_up_to_the_total(
            calls in 1u64..3000,
            batch in 1u64..400,
            spans in prop::collection::vec(0u64..1_000_000, 514),
            start: u32,
        ) {
            let plan = LoopPlan { calls, batch };
            let mut now = u64::from(start);
            let mut recorded = vec![now];
            for span in &spans[..plan.readings() - 1] {
                now += span;
                recorded.push(now);
            }
            let (readings, made) = replay(plan, &recorded);
            prop_assert_eq!(made, (0..calls).collect::<Vec<_>>());
            let settled = settle(plan, &readings).unwrap();
            let samples = settled.samples.len() as u64;
            prop_assert_eq!(samples, (calls / batch).min(512));
            prop_assert_eq!(samples * batch + settled.rest.calls, calls);
            let sum: u64 = settled.samples.iter().sum();
            prop_assert_eq!(sum + settled.rest.value, settled.nanoseconds);
            prop_assert_eq!(settled.nanoseconds, now - u64::from(start));
            prop_assert_eq!(&settled.samples[..], &spans[..samples as usize]);
        }
    }
}
