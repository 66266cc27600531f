//! Whether a counter counts: a loop of known length must give a plausible number.
//!
//! Virtual machines have been seen to count 395 cycles where 3.5e9 were due, hybrid processors to
//! count 0 on the other kind of core, and some PMUs to accept an event they do not have. So every
//! source counts the loop of `adds` before it is used, and the loop's figures are recorded. It also
//! gives an estimate of the core clock where there is no counter: an addition a cycle, by wall time.

use super::reading::{difference, Count};
use super::{adds, CycleSource};
use crate::timing::read_clock;
use protocol::{SelfTest, SourceKind};

/// Additions of the loop where the caller names none: some 0.3 ms.
pub const DEFAULT_ADDS: u64 = 1 << 20;
/// Times the loop is counted; the median counts.
const REPETITIONS: usize = 5;
/// Times the loop is timed for the estimate of the core clock.
const CLOCK_REPETITIONS: usize = 15;
/// Readings of one batch, and batches, for the cost of a reading.
const COST_READINGS: u64 = 32;
const COST_BATCHES: usize = 31;

/// Cycles for an addition, in hundredths. A dependent addition of registers takes one cycle or more
/// (5% for the ends of the loop); the upper bound leaves room for emulated machines whose cycle is a
/// fixed part of an instruction, and still refuses a counter that counts something else.
const CYCLES_PER_100_ADDS: std::ops::RangeInclusive<u128> = 95..=1600;
/// Difference between ticks and nanoseconds that a clock may show, in thousandths of the span.
const CLOCK_DEVIATION: u128 = 20;
/// Instructions beyond the loop's own that two readings may take.
const EXTRA_INSTRUCTIONS: u64 = 10_000;

/// `access` of a counter that is read from user mode.
pub const DIRECT: &str = "rdpmc";

/// The state before the test.
pub fn pending() -> SelfTest {
    SelfTest {
        adds: 0,
        counted: 0,
        instructions: None,
        nanoseconds: 0,
        time_enabled_running: None,
        plausible: false,
        text: "not tested yet".to_owned(),
    }
}

/// One counted run of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    rounds: u64,
    count: Count,
    nanoseconds: u64,
}

/// Counts the loop, measures what a reading costs, and enters both into the source's facts. An error
/// says why two readings gave no count at all.
pub fn examine(source: &mut dyn CycleSource, adds: u64) -> Result<(), String> {
    let rounds = adds::rounds(adds);
    adds::run(rounds, 0, 1);
    let mut spans = Vec::with_capacity(REPETITIONS);
    for _ in 0..REPETITIONS {
        spans.push(span(source, rounds)?);
    }
    if source.facts().access == DIRECT && !spans.iter().all(|span| span.count.direct) {
        return Err("a reading from user mode did not settle".to_owned());
    }
    spans.sort_by_key(|span| span.count.value);
    let median = spans[REPETITIONS / 2];
    let cost = read_cost(source)?;
    let facts = source.facts_mut();
    facts.self_test = report(facts.kind, facts.frequency_hz, &median);
    facts.read_cost_ns = cost;
    Ok(())
}

fn span(source: &mut dyn CycleSource, rounds: u64) -> Result<Span, String> {
    let mut read = || {
        source
            .read()
            .map_err(|error| format!("reading failed: {error}"))
    };
    let first = read()?;
    let nanoseconds = timed(rounds);
    let last = read()?;
    let count = difference(&first, &last).map_err(|error| error.to_string())?;
    Ok(Span {
        rounds,
        count,
        nanoseconds,
    })
}

fn timed(rounds: u64) -> u64 {
    let start = read_clock(libc::CLOCK_MONOTONIC_RAW);
    std::hint::black_box(adds::run(rounds, start, 1));
    read_clock(libc::CLOCK_MONOTONIC_RAW).saturating_sub(start)
}

fn report(kind: SourceKind, frequency_hz: Option<u64>, span: &Span) -> SelfTest {
    let verdict = match kind {
        SourceKind::Perf => cycles(span),
        _ => ticks(span, frequency_hz.unwrap_or(0)),
    };
    let plausible = verdict.is_ok();
    let (Ok(text) | Err(text)) = verdict;
    SelfTest {
        adds: span.rounds * adds::ADDS_PER_ROUND,
        counted: span.count.value,
        instructions: span.count.instructions,
        nanoseconds: span.nanoseconds,
        time_enabled_running: span.count.enabled_running,
        plausible,
        text,
    }
}

fn cycles(span: &Span) -> Result<String, String> {
    let adds = u128::from(span.rounds * adds::ADDS_PER_ROUND);
    let per_100 = u128::from(span.count.value) * 100 / adds;
    let said = format!("{}.{:02} cycles an addition", per_100 / 100, per_100 % 100);
    let (low, high) = (CYCLES_PER_100_ADDS.start(), CYCLES_PER_100_ADDS.end());
    let bounds = format!("{}.{:02} to {}", low / 100, low % 100, high / 100);
    if !CYCLES_PER_100_ADDS.contains(&per_100) {
        return Err(format!(
            "{said}, outside {bounds}: the counter does not count core cycles here"
        ));
    }
    match span.count.instructions {
        None => Ok(format!(
            "{said}, within {bounds}; no instructions in the group"
        )),
        Some(found) => {
            instructions(span, found).map(|text| format!("{said}, within {bounds}; {text}"))
        }
    }
}

fn instructions(span: &Span, found: u64) -> Result<String, String> {
    let expected = span.rounds * adds::INSTRUCTIONS_PER_ROUND;
    let most = expected + expected / 100 + EXTRA_INSTRUCTIONS;
    let text = format!("{found} instructions of {expected} expected");
    match (expected..=most).contains(&found) {
        true => Ok(text),
        false => Err(format!(
            "{text} (at most {most}): the instruction counter counts something else"
        )),
    }
}

fn ticks(span: &Span, frequency_hz: u64) -> Result<String, String> {
    let expected = u128::from(span.nanoseconds) * u128::from(frequency_hz) / 1_000_000_000;
    let allowed = expected * CLOCK_DEVIATION / 1000 + 2;
    let found = u128::from(span.count.value);
    let text = format!(
        "{found} ticks in {} ns, {expected} expected by the rate, {allowed} allowed between",
        span.nanoseconds
    );
    match found.abs_diff(expected) <= allowed {
        true => Ok(text),
        false => Err(format!("{text}: the clock does not run at its rate")),
    }
}

/// Median cost of a reading, nanoseconds, rounded up.
fn read_cost(source: &mut dyn CycleSource) -> Result<u64, String> {
    let mut costs = [0; COST_BATCHES];
    for cost in &mut costs {
        let start = read_clock(libc::CLOCK_MONOTONIC_RAW);
        for _ in 0..COST_READINGS {
            source
                .read()
                .map_err(|error| format!("reading failed: {error}"))?;
        }
        let end = read_clock(libc::CLOCK_MONOTONIC_RAW);
        *cost = end.saturating_sub(start).div_ceil(COST_READINGS);
    }
    costs.sort_unstable();
    Ok(costs[COST_BATCHES / 2].max(1))
}

/// Core clock by the loop against CLOCK_MONOTONIC_RAW: median, lowest and highest estimate, hertz.
/// An estimate: it takes an addition for a cycle, and an interruption for a slow clock.
pub fn core_clock(adds: u64) -> Option<(u64, (u64, u64))> {
    let rounds = adds::rounds(adds);
    adds::run(rounds, 0, 1);
    let spans = (0..CLOCK_REPETITIONS).map(|_| timed(rounds)).collect();
    estimates(rounds * adds::ADDS_PER_ROUND, spans)
}

fn estimates(adds: u64, mut spans: Vec<u64>) -> Option<(u64, (u64, u64))> {
    spans.sort_unstable();
    let hertz = |ns: u64| u64::try_from(u128::from(adds) * 1_000_000_000 / u128::from(ns)).ok();
    let (shortest, longest) = (*spans.first()?, *spans.last()?);
    if shortest == 0 {
        return None;
    }
    Some((
        hertz(spans[spans.len() / 2])?,
        (hertz(longest)?, hertz(shortest)?),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::reading::Reading;
    use super::*;

    const ROUNDS: u64 = 1000;
    const ADDS: u64 = ROUNDS * adds::ADDS_PER_ROUND;
    const INSTRUCTIONS: u64 = ROUNDS * adds::INSTRUCTIONS_PER_ROUND;

    fn counted(value: u64, instructions: Option<u64>, nanoseconds: u64) -> Span {
        let count = Count {
            value,
            instructions,
            enabled_running: None,
            direct: false,
        };
        Span {
            rounds: ROUNDS,
            count,
            nanoseconds,
        }
    }

    #[test]
    fn cycles_are_plausible_from_one_an_addition() {
        for (value, plausible) in [
            (0, false),
            (395, false),
            (ADDS / 4, false), // a 1 GHz clock beside a fast core
            (ADDS * 94 / 100, false),
            (ADDS * 95 / 100, true),
            (ADDS + 37, true),
            (ADDS * 33 / 8, true), // an emulated core with 4 cycles an instruction
            (ADDS * 16, true),
            (ADDS * 17, false),
        ] {
            let test = report(SourceKind::Perf, None, &counted(value, None, 1));
            assert_eq!(test.plausible, plausible, "{value}: {}", test.text);
        }
    }

    #[test]
    fn instructions_are_plausible_when_they_are_those_of_the_loop() {
        for (found, plausible) in [
            (INSTRUCTIONS - 1, false),
            (INSTRUCTIONS, true),
            (INSTRUCTIONS + 40, true),
            (INSTRUCTIONS * 2, false),
        ] {
            let test = report(SourceKind::Perf, None, &counted(ADDS, Some(found), 1));
            assert_eq!(test.plausible, plausible, "{found}: {}", test.text);
        }
    }

    #[test]
    fn a_clock_is_plausible_within_two_percent_of_its_rate() {
        let millisecond = |ticks| counted(ticks, None, 1_000_000);
        for (ticks, hz, plausible) in [
            (19_200, 19_200_000, true),
            (19_582, 19_200_000, true),
            (19_700, 19_200_000, false),
            (0, 19_200_000, false),
            (2_596_144, 2_596_144_000, true),
            (2_596_144, 0, false),
        ] {
            let test = report(SourceKind::Tsc, Some(hz), &millisecond(ticks));
            assert_eq!(test.plausible, plausible, "{ticks} at {hz}: {}", test.text);
        }
    }

    #[test]
    fn the_core_clock_is_an_addition_a_cycle() {
        let spans = vec![2_000, 1_000, 1_250];
        let expected = (800_000_000, (500_000_000, 1_000_000_000));
        assert_eq!(estimates(1000, spans), Some(expected));
        assert_eq!(estimates(1000, vec![0, 5]), None);
    }

    /// Counts `per_read` for each reading, whatever happens in between.
    struct Fixed {
        facts: protocol::CycleSource,
        value: u64,
        per_read: u64,
        times: (u64, u64),
    }

    impl Fixed {
        fn new(per_read: u64, times: (u64, u64)) -> Fixed {
            let facts = protocol::CycleSource {
                kind: SourceKind::Perf,
                pmu: None,
                event: "fixed".to_owned(),
                user_only: true,
                access: "read".to_owned(),
                frequency_hz: None,
                resolution: None,
                read_cost_ns: 0,
                self_test: pending(),
            };
            Fixed {
                facts,
                value: 0,
                per_read,
                times,
            }
        }
    }

    impl CycleSource for Fixed {
        fn facts(&self) -> &protocol::CycleSource {
            &self.facts
        }
        fn facts_mut(&mut self) -> &mut protocol::CycleSource {
            &mut self.facts
        }
        fn read(&mut self) -> std::io::Result<Reading> {
            self.value += 1;
            let enabled_running = Some((self.value * self.times.0, self.value * self.times.1));
            Ok(Reading {
                enabled_running,
                ..Reading::clock(self.value * self.per_read)
            })
        }
    }

    #[test]
    fn a_frozen_a_multiplexed_and_a_wrong_counter_do_not_pass() {
        let text = examine(&mut Fixed::new(0, (9, 9)), 64).unwrap_err();
        assert!(text.contains("frozen"), "{text}");
        let text = examine(&mut Fixed::new(64, (9, 8)), 64).unwrap_err();
        assert!(text.contains("share"), "{text}");
        let mut wrong = Fixed::new(3, (9, 9));
        examine(&mut wrong, 64).unwrap();
        assert!(!wrong.facts.self_test.plausible);
        let mut indirect = Fixed::new(64, (9, 9));
        indirect.facts.access = DIRECT.to_owned();
        let text = examine(&mut indirect, 64).unwrap_err();
        assert!(text.contains("user mode"), "{text}");
        let mut right = Fixed::new(64, (9, 9));
        examine(&mut right, 64).unwrap();
        let test = &right.facts.self_test;
        assert_eq!((test.plausible, test.adds, test.counted), (true, 64, 64));
        assert!(right.facts.read_cost_ns >= 1);
    }
}
