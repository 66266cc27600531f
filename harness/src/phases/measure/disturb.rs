//! What disturbed an attempt: each flag with its value and the limit it broke.
//!
//! Thresholds are those of the plan in `campaign.toml`. Nothing is dropped for a flag: the attempt is
//! kept, shown, and repeated as often as the plan says.

use crate::evidence::{Disturbed, Flag};
use protocol::Measured;
use std::time::Duration;

/// Page faults that come and go with the placement of stack and heap are no disturbance: below this
/// difference their number says nothing.
const FAULTS_OF_PLACEMENT: u64 = 16;
/// Share by which the number of page faults may differ between trials.
const FAULTS_CHANGED: f64 = 0.10;
/// Share of the time by which CLOCK_BOOTTIME may be ahead: clock corrections stay far below it.
const CLOCK_CORRECTION: f64 = 0.001;
/// `/proc/stat` counts in ticks of 10 ms (USER_HZ is 100 on all Linux architectures of ours).
const TICK_S: f64 = 0.01;

/// Least time that a rate is taken over, seconds: a loop may be too short for the clock.
const LEAST_S: f64 = 1e-9;

/// What was seen around an attempt from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Outside {
    /// Time of the whole process.
    pub elapsed: Duration,
    /// Steal of the pinned CPU, clock ticks.
    pub steal: Option<u64>,
    /// Busy time of its sibling threads, clock ticks.
    pub sibling_busy: Option<u64>,
    /// How often it was throttled.
    pub throttled: Option<u64>,
    /// How often its frequency or the limits of it changed.
    pub frequency_changes: Option<u64>,
}

/// What a normal attempt looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normal<'a> {
    /// Thresholds.
    pub limits: &'a Disturbed,
    /// Fixed core clock, hertz.
    pub clock_hz: Option<f64>,
    /// Minor page faults of the first counted trial.
    pub minor_faults: Option<u64>,
}

/// All that disturbed an attempt; empty when nothing did.
pub fn flags(measured: &Measured, outside: Outside, normal: Normal) -> Vec<Flag> {
    let seconds = measured.nanoseconds as f64 / 1e9;
    let usage = &measured.usage;
    let limits = normal.limits;
    let mut flags = Vec::new();
    let mut above = |name: &str, value: f64, limit: f64| {
        if value > limit {
            flags.push(flag(name, value, limit));
        }
    };
    let switches = usage.involuntary_switches as f64 / seconds.max(LEAST_S);
    above(
        "involuntary_switches_per_s",
        switches,
        limits.involuntary_switches_per_s,
    );
    if let Some(steal) = outside.steal {
        above(
            "steal_percent",
            share_percent(steal, outside.elapsed),
            limits.steal_percent,
        );
    }
    if let Some(busy) = outside.sibling_busy.filter(|&ticks| ticks > 1) {
        above(
            "sibling_busy_percent",
            share_percent(busy, outside.elapsed),
            limits.sibling_busy_percent,
        );
    }
    above("throttled", outside.throttled.unwrap_or(0) as f64, 0.0);
    above(
        "frequency_changed",
        outside.frequency_changes.unwrap_or(0) as f64,
        0.0,
    );
    above("page_faults_major", usage.major_faults as f64, 0.0);
    above(
        "page_faults_changed",
        faults_changed(usage.minor_faults, normal.minor_faults),
        FAULTS_CHANGED,
    );
    let moved = u64::from(measured.cpu_before != measured.cpu_after);
    above(
        "migrations",
        usage.migrations.unwrap_or(0).max(moved) as f64,
        0.0,
    );
    // What other threads do is not counted, and what they take from the pinned CPU is.
    above(Flag::THREADS, f64::from(measured.threads), 1.0);
    let ahead = measured.boottime_ns.saturating_sub(measured.nanoseconds) as f64 / 1e9;
    above("suspended_s", ahead, seconds * CLOCK_CORRECTION + 0.001);

    let mut below = |name: &str, value: f64, limit: f64| {
        if value < limit {
            flags.push(flag(name, value, limit));
        }
    };
    let cpu = (usage.user_ns + usage.system_ns) as f64 / measured.nanoseconds.max(1) as f64;
    below("min_cpu_per_wall", cpu, limits.min_cpu_per_wall);
    if let Some((cycles, clock)) = measured.cycles.zip(normal.clock_hz) {
        below(
            "min_clock_ratio",
            cycles as f64 / seconds / clock,
            limits.min_clock_ratio,
        );
    }
    flags
}

fn flag(name: &str, value: f64, limit: f64) -> Flag {
    Flag {
        name: name.to_owned(),
        value,
        limit,
    }
}

fn share_percent(ticks: u64, of: Duration) -> f64 {
    100.0 * ticks as f64 * TICK_S / of.as_secs_f64().max(TICK_S)
}

/// By which share the number of faults differs from that of the trial it is held against.
fn faults_changed(faults: u64, reference: Option<u64>) -> f64 {
    match reference {
        Some(reference) if faults.abs_diff(reference) > FAULTS_OF_PLACEMENT => {
            faults.abs_diff(reference) as f64 / reference.max(1) as f64
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    const LIMITS: Disturbed = Disturbed {
        min_clock_ratio: 0.95,
        min_cpu_per_wall: 0.98,
        involuntary_switches_per_s: 60.0,
        steal_percent: 0.5,
        sibling_busy_percent: 10.0,
    };

    fn normal() -> Normal<'static> {
        Normal {
            limits: &LIMITS,
            clock_hz: Some(2.1e9),
            minor_faults: Some(1000),
        }
    }

    fn outside() -> Outside {
        Outside {
            elapsed: Duration::from_secs(4),
            steal: Some(2),
            sibling_busy: Some(1),
            throttled: Some(0),
            frequency_changes: Some(0),
        }
    }

    /// One second, at its limits, on a CPU of 2.1 GHz.
    fn quiet() -> Measured {
        let mut m = measured(1, 1_000_000_000);
        m.cycles = Some(1_995_000_000);
        m.usage.user_ns = 980_000_000;
        m.usage.involuntary_switches = 60;
        m.usage.minor_faults = 1100;
        m
    }

    fn names(m: &Measured, outside: Outside) -> Vec<String> {
        let flags = flags(m, outside, normal());
        flags.into_iter().map(|flag| flag.name).collect()
    }

    #[test]
    fn an_attempt_at_every_limit_is_undisturbed() {
        assert_eq!(names(&quiet(), outside()), [""; 0]);
    }

    #[test]
    fn each_limit_that_is_passed_gives_its_flag() {
        type Change = fn(&mut Measured, &mut Outside);
        let cases: [(&str, Change); 14] = [
            ("involuntary_switches_per_s", |m, _| {
                m.usage.involuntary_switches = 61
            }),
            ("steal_percent", |_, o| o.steal = Some(3)),
            ("sibling_busy_percent", |_, o| o.sibling_busy = Some(41)),
            ("throttled", |_, o| o.throttled = Some(1)),
            ("frequency_changed", |_, o| o.frequency_changes = Some(1)),
            ("page_faults_major", |m, _| m.usage.major_faults = 1),
            ("page_faults_changed", |m, _| m.usage.minor_faults = 1101),
            ("page_faults_changed", |m, _| m.usage.minor_faults = 899),
            ("migrations", |m, _| m.cpu_after = 9),
            ("migrations", |m, _| m.usage.migrations = Some(2)),
            (Flag::THREADS, |m, _| m.threads = 2),
            ("suspended_s", |m, _| m.boottime_ns = 1_100_000_000),
            ("min_cpu_per_wall", |m, _| m.usage.user_ns = 979_000_000),
            ("min_clock_ratio", |m, _| m.cycles = Some(1_994_000_000)),
        ];
        for (name, change) in cases {
            let (mut m, mut o) = (quiet(), outside());
            change(&mut m, &mut o);
            assert_eq!(names(&m, o), [name]);
        }
    }

    #[test]
    fn the_limit_of_a_sibling_is_the_plans() {
        let busy = Outside {
            sibling_busy: Some(41), // 10.25% of 4 s
            ..outside()
        };
        let limits = Disturbed {
            sibling_busy_percent: 10.25,
            ..LIMITS
        };
        let lenient = Normal {
            limits: &limits,
            ..normal()
        };
        assert_eq!(flags(&quiet(), busy, lenient), []);
        let flag = flags(&quiet(), busy, normal()).remove(0);
        assert_eq!((flag.value, flag.limit), (10.25, 10.0));
    }

    #[test]
    fn what_is_not_known_gives_no_flag() {
        let mut m = quiet();
        m.cycles = None;
        m.usage.migrations = None;
        assert_eq!(
            names(
                &m,
                Outside {
                    elapsed: Duration::from_secs(4),
                    ..Outside::default()
                }
            ),
            [""; 0]
        );
        let unknown = Normal {
            clock_hz: None,
            minor_faults: None,
            ..normal()
        };
        m.usage.minor_faults = 5000;
        assert_eq!(flags(&m, outside(), unknown), []);
    }

    #[test]
    fn a_loop_too_short_for_the_clock_gives_numbers_all_the_same() {
        let mut m = measured(1, 0);
        m.usage.involuntary_switches = 1000;
        let flags = flags(&m, outside(), normal());
        assert!(flags.iter().all(|flag| flag.value.is_finite()), "{flags:?}");
    }

    #[test]
    fn a_handful_of_faults_is_the_placements() {
        assert_eq!(faults_changed(17, Some(1)), 0.0);
        assert_eq!(faults_changed(18, Some(1)), 17.0);
        assert_eq!(faults_changed(500, None), 0.0);
    }
}
