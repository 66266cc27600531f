//! One attempt of a trial: inputs, warm-ups, the timed loop, and what the last outputs are worth.

use super::inputs::{Inputs, KeyPair};
use crate::counters::{difference, raw, CycleSource, Raw, Reading};
use crate::error::{Result, WorkerError};
use crate::library::{Candidate, Verdict};
use crate::memory::{Guarded, OnStack};
use crate::process::{self, Migrations, Status};
use crate::timing::{self, CallError, LoopPlan, MonotonicRaw};
use protocol::{
    MeasureTask, Measured, Operation, Overhead, SourceKind, SourceProbe, Usage, VERIFY_PAIRS,
};
use std::ops::RangeInclusive;

/// Slack of BOOTTIME against RAW before the machine is said to have been suspended: 1% (BOOTTIME is
/// slewed, at most 500 ppm) and 50 ms.
const SUSPEND_SLACK_NS: u64 = 50_000_000;

/// CPU time of other threads during the timed calls above which the library has run some. Exact but for
/// the rounding of two clocks.
const OTHERS_NS: u64 = 1_000;

/// What reads the machine around the loop: opened before the isolation closes the way.
pub struct Meters {
    /// CPU that the worker is pinned to.
    pub cpu: Option<u32>,
    /// Opened counter.
    pub source: Option<Box<dyn CycleSource>>,
    /// What opening it found.
    pub probe: SourceProbe,
    /// Cost of the loop.
    pub overhead: Overhead,
    /// Smallest step of the clock, nanoseconds.
    pub clock_step_ns: u64,
    /// Memory and threads.
    pub status: Status,
    /// Migrations.
    pub migrations: Migrations,
}

/// What the meters showed at one moment.
struct Moment {
    usage: Usage,
    others_ns: RangeInclusive<u64>,
    boottime: u64,
    reading: Option<Reading>,
}

/// What came out of the timed loop.
pub(super) struct Timed {
    settled: timing::Settled,
    before: Moment,
    after: Moment,
    baseline_rss_bytes: u64,
    cpu_before: u32,
}

/// Runs `task`.
pub fn measure<'a>(
    on: &'a OnStack<'a>,
    candidate: &'a Candidate,
    task: &'a MeasureTask,
    prepared: Option<&'a std::fs::File>,
    meters: &'a mut Meters,
) -> Result<Measured> {
    let attempt = Attempt::new(on, candidate, task, prepared, meters)?;
    match task.operation {
        Operation::Keygen => attempt.keygen(),
        Operation::Sign => attempt.sign(),
        Operation::Verify => attempt.verify(),
    }
}

/// One attempt: the message-size study uses its steps with messages of its own.
pub(super) struct Attempt<'a> {
    pub(super) on: &'a OnStack<'a>,
    pub(super) candidate: &'a Candidate,
    pub(super) task: &'a MeasureTask,
    pub(super) inputs: Inputs<'a>,
    meters: &'a mut Meters,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        on: &'a OnStack<'a>,
        candidate: &'a Candidate,
        task: &'a MeasureTask,
        prepared: Option<&'a std::fs::File>,
        meters: &'a mut Meters,
    ) -> Result<Attempt<'a>> {
        if task.iterations == 0 {
            return Err(WorkerError::Request("0 iterations: at least 1".to_owned()));
        }
        Ok(Attempt {
            on,
            candidate,
            task,
            inputs: Inputs::new(candidate, task.operation, &task.inputs, prepared),
            meters,
        })
    }

    pub(super) fn keygen(mut self) -> Result<Measured> {
        let (on, candidate) = (self.on, self.candidate);
        let mut key = self.inputs.empty_key()?;
        self.inputs.start_keys(on)?;
        key.pk.lay_pattern();
        key.sk.lay_pattern();
        let mut call = candidate.keygen_call(&mut key.pk, &mut key.sk);
        let timed = self.run("sig_keygen", &mut |_| Ok(()), |_| call.call(on))?;
        let measured = self.measured(timed, Used::default())?;
        call.accept()?;
        let mut message = Guarded::with("the message", &[0x5a; 64])?;
        let mut sn = candidate.sn_buffer()?;
        candidate
            .sign(on, &mut key.sk, &mut message, &mut sn)
            .map_err(after_timing)?;
        self.must_verify(&mut key.pk, &mut sn, &mut message)?;
        self.checked(measured)
    }

    fn sign(mut self) -> Result<Measured> {
        let (on, candidate, total) = (self.on, self.candidate, self.total());
        let mut key = self.inputs.key(on)?;
        let mut messages = self.inputs.messages(total)?;
        let mut sn = candidate.sn_buffer()?;
        sn.lay_pattern();
        self.inputs.start_random(on)?;
        let mut call = candidate.sign_call(&mut key.sk, &mut sn);
        let timed = self.run("sig_sign", &mut |_| Ok(()), |number| {
            call.call(on, messages.get(number))
        })?;
        let used = Used {
            messages: messages.count(),
            keys: 1,
            signature_bytes: call.returned(),
        };
        let measured = self.measured(timed, used)?;
        call.accept()?;
        let mut message = messages.guarded(total - 1)?;
        self.must_verify(&mut key.pk, &mut sn, &mut message)?;
        self.checked(measured)
    }

    fn verify(mut self) -> Result<Measured> {
        let (on, candidate) = (self.on, self.candidate);
        let mut key = self.inputs.key(on)?;
        let mut messages = self.inputs.messages(self.total().min(VERIFY_PAIRS))?;
        let pairs = messages.count();
        let mut signatures = self.inputs.signatures(on, &mut key, &mut messages, pairs)?;
        let mut call = candidate.verify_call(&mut key.pk);
        let mut pair = 0;
        let timed = self.run("sig_verify", &mut |_| Ok(()), |_| {
            let code = call.call(on, signatures.get(pair), messages.get(pair));
            pair = if pair + 1 == pairs { 0 } else { pair + 1 };
            code
        })?;
        let used = Used {
            messages: pairs,
            keys: 1,
            signature_bytes: signatures.get(pairs - 1).len() as u64,
        };
        let measured = self.measured(timed, used)?;
        self.must_tell_apart(&mut key, messages.get(0), signatures.get(0))?;
        self.checked(measured)
    }

    /// Calls in all: warm-ups draw first.
    fn total(&self) -> u64 {
        u64::from(self.task.warmups) + self.task.iterations
    }

    /// Warm-ups, then the timed loop. `call` gets the number of the call over both; `warmed` runs
    /// between the two and gets the number of warm-ups.
    pub(super) fn run(
        &mut self,
        name: &'static str,
        warmed: &mut dyn FnMut(u64) -> Result<()>,
        mut call: impl FnMut(u64) -> i32,
    ) -> Result<Timed> {
        let warmups = u64::from(self.task.warmups);
        let batch = timing::batch(
            self.meters.overhead.clock_read_ps,
            self.meters.clock_step_ns,
            self.task.cost_ns,
        );
        let plan = LoopPlan {
            calls: self.task.iterations,
            batch,
        };
        let mut readings = vec![0; plan.readings()];
        let baseline_rss_bytes = self.meters.status.read()?.rss_bytes;
        for number in 0..warmups {
            let code = call(number);
            failed_call(
                name,
                "warm-up",
                (code != 0).then_some(CallError { call: number, code }),
            )?;
        }
        warmed(warmups)?;
        let cpu_before = self.cpu()?;
        let before = self.moment_before()?;
        let outcome = timing::run(plan, &mut MonotonicRaw, &mut readings, |number| {
            call(warmups + number)
        });
        let after = self.moment_after()?;
        failed_call(name, "timed call", outcome.err())?;
        let settled = timing::settle(plan, &readings)
            .map_err(|error| WorkerError::Clock(error.to_string()))?;
        Ok(Timed {
            settled,
            before,
            after,
            baseline_rss_bytes,
            cpu_before,
        })
    }

    fn moment_before(&mut self) -> Result<Moment> {
        let usage = self.usage()?;
        let others_ns = process::others_cpu_ns();
        let boottime = timing::read_clock(libc::CLOCK_BOOTTIME);
        let reading = self.reading()?; // last, nearest to the loop
        Ok(Moment {
            usage,
            others_ns,
            boottime,
            reading,
        })
    }

    fn moment_after(&mut self) -> Result<Moment> {
        let reading = self.reading()?; // first, nearest to the loop
        let boottime = timing::read_clock(libc::CLOCK_BOOTTIME);
        Ok(Moment {
            reading,
            boottime,
            others_ns: process::others_cpu_ns(),
            usage: self.usage()?,
        })
    }

    fn reading(&mut self) -> Result<Option<Reading>> {
        let source = self.meters.source.as_mut();
        source
            .map(|source| source.read().map_err(counter("read")))
            .transpose()
    }

    fn usage(&self) -> Result<Usage> {
        Ok(Usage {
            migrations: self.meters.migrations.read(),
            ..process::usage()?
        })
    }

    fn cpu(&self) -> Result<u32> {
        if let Some(cpu) = self.meters.cpu {
            process::verify_pin(cpu)?;
        }
        process::current_cpu()
    }

    /// The record of the loop, from the meters as they stand right after it.
    pub(super) fn measured(&mut self, timed: Timed, used: Used) -> Result<Measured> {
        let status = self.meters.status.read()?;
        let cpu_after = self.cpu()?;
        let boottime_ns = timed.after.boottime.saturating_sub(timed.before.boottime);
        let nanoseconds = timed.settled.nanoseconds;
        must_be_awake(nanoseconds, boottime_ns)?;
        let counted = Counted::between(timed.before.reading, timed.after.reading);
        let source = self.meters.probe.clone();
        let is_cycles = source.kind == SourceKind::Perf;
        Ok(Measured {
            calls: self.task.iterations,
            nanoseconds,
            cycles: counted.value.filter(|_| is_cycles),
            ticks: counted.value.filter(|_| !is_cycles),
            instructions: counted.instructions,
            time_enabled_ns: counted.enabled,
            time_running_ns: counted.running,
            read_directly: counted.direct,
            count_refused: counted.refused,
            refused_value: counted.raw.value,
            refused_instructions: counted.raw.instructions,
            batch: timing::batch(
                self.meters.overhead.clock_read_ps,
                self.meters.clock_step_ns,
                self.task.cost_ns,
            ),
            samples_ns: timed.settled.samples,
            rest: timed.settled.rest,
            source,
            overhead: self.meters.overhead.clone(),
            usage: process::used(timed.before.usage, timed.after.usage),
            baseline_rss_bytes: timed.baseline_rss_bytes,
            peak_rss_bytes: status.peak_rss_bytes,
            cpu_before: timed.cpu_before,
            cpu_after,
            messages: used.messages,
            keys: used.keys,
            seeds: self.inputs.seeds(),
            sizes: self.candidate.sizes(),
            last_signature_bytes: used.signature_bytes,
            boottime_ns,
            threads: status
                .threads
                .max(threads_seen(&timed.before, &timed.after)),
        })
    }

    fn must_verify(&self, pk: &mut Guarded, sn: &mut Guarded, message: &mut Guarded) -> Result<()> {
        match self.candidate.verify(self.on, pk, sn, message)? {
            Verdict::Valid => Ok(()),
            Verdict::Rejected(code) => Err(WorkerError::NotVerified(format!(
                "the last output did not verify (sig_verify returned {code})"
            ))),
        }
    }

    /// After a verify trial: a pair of it still verifies, and with one bit of the message flipped
    /// it does not.
    fn must_tell_apart(&self, key: &mut KeyPair, message: &[u8], signature: &[u8]) -> Result<()> {
        let mut message = Guarded::with("the message", message)?;
        let mut sn = Guarded::with("the signature", signature)?;
        self.must_verify(&mut key.pk, &mut sn, &mut message)?;
        let Some(byte) = message.bytes_mut().first_mut() else {
            return Ok(()); // an empty message has no bit to flip
        };
        *byte ^= 1;
        match self
            .candidate
            .verify(self.on, &mut key.pk, &mut sn, &mut message)?
        {
            Verdict::Rejected(_) => Ok(()),
            Verdict::Valid => Err(WorkerError::NotVerified(
                "a timed signature verified with bit 0 of its message flipped".to_owned(),
            )),
        }
    }

    /// Last look: the CPU is still ours, and the lengths are what they were.
    pub(super) fn checked(self, measured: Measured) -> Result<Measured> {
        self.candidate.check_sizes(self.on)?;
        self.cpu()?;
        Ok(measured)
    }
}

/// CLOCK_BOOTTIME goes on while a machine sleeps, CLOCK_MONOTONIC_RAW does not.
fn must_be_awake(nanoseconds: u64, boottime_ns: u64) -> Result<()> {
    let most = nanoseconds
        .saturating_add(nanoseconds / 100)
        .saturating_add(SUSPEND_SLACK_NS);
    match boottime_ns > most {
        false => Ok(()),
        true => Err(WorkerError::Clock(format!(
            "the machine was suspended: {boottime_ns} ns of CLOCK_BOOTTIME passed in \
             {nanoseconds} ns of CLOCK_MONOTONIC_RAW"
        ))),
    }
}

/// Threads that ran between two moments, those included that have ended since: 2 stands for any number
/// above 1.
fn threads_seen(before: &Moment, after: &Moment) -> u32 {
    let others = after.others_ns.start();
    match others.saturating_sub(*before.others_ns.end()) > OTHERS_NS {
        true => 2,
        false => 1,
    }
}

/// What the calls used.
#[derive(Debug, Default)]
pub(super) struct Used {
    pub(super) messages: u64,
    pub(super) keys: u64,
    pub(super) signature_bytes: u64,
}

/// Differences of a counter, or why they do not count. The time stays good in both cases.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    value: Option<u64>,
    instructions: Option<u64>,
    enabled: Option<u64>,
    running: Option<u64>,
    direct: bool,
    refused: Option<String>,
    /// Raw differences of a refused count.
    raw: Raw,
}

impl Counted {
    fn between(before: Option<Reading>, after: Option<Reading>) -> Counted {
        let (Some(before), Some(after)) = (before, after) else {
            return Counted::default();
        };
        match difference(&before, &after) {
            Ok(count) => Counted {
                value: Some(count.value),
                instructions: count.instructions,
                enabled: count.enabled_running.map(|times| times.0),
                running: count.enabled_running.map(|times| times.1),
                direct: count.direct,
                refused: None,
                raw: Raw::default(),
            },
            Err(error) => {
                let raw = raw(&before, &after);
                Counted {
                    refused: Some(error.to_string()),
                    enabled: raw.enabled,
                    running: raw.running,
                    raw,
                    ..Counted::default()
                }
            }
        }
    }
}

fn counter(step: &'static str) -> impl FnOnce(std::io::Error) -> WorkerError {
    move |source| WorkerError::Counter {
        what: step.to_owned(),
        source,
    }
}

fn failed_call(name: &'static str, kind: &str, error: Option<CallError>) -> Result<()> {
    match error {
        None => Ok(()),
        Some(CallError { call, code }) => Err(WorkerError::Call {
            call: name,
            code,
            place: format!(" in {kind} {call}"),
        }),
    }
}

fn after_timing(error: WorkerError) -> WorkerError {
    match error {
        WorkerError::Call { call, code, .. } => WorkerError::NotVerified(format!(
            "{call} with the last key returned {code}, after the timed calls"
        )),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_slept_during_the_calls_is_found_out() {
        const S: u64 = 1_000_000_000;
        assert!(must_be_awake(S, S).is_ok());
        assert!(must_be_awake(S, S + S / 100 + SUSPEND_SLACK_NS).is_ok());
        let error = must_be_awake(S, S + S / 100 + SUSPEND_SLACK_NS + 1).unwrap_err();
        assert_eq!(error.code(), protocol::FailureCode::Clock);
        assert!(error.to_string().contains("suspended"), "{error}");
        assert!(must_be_awake(u64::MAX, u64::MAX).is_ok(), "no overflow");
    }

    #[test]
    fn only_work_of_other_threads_between_two_moments_counts() {
        let moment = |low: u64, high: u64| Moment {
            usage: Usage::default(),
            others_ns: low..=high,
            boottime: 0,
            reading: None,
        };
        assert_eq!(threads_seen(&moment(0, 400), &moment(300, 900)), 1);
        assert_eq!(threads_seen(&moment(0, 400), &moment(1_400, 1_900)), 1);
        assert_eq!(threads_seen(&moment(0, 400), &moment(1_401, 1_900)), 2);
    }

    #[test]
    fn a_count_that_is_refused_leaves_its_reason_and_no_value() {
        let group = |value, times| {
            Some(Reading {
                enabled_running: Some(times),
                ..Reading::clock(value)
            })
        };
        let good = Counted::between(group(10, (1, 1)), group(25, (8, 8)));
        assert_eq!((good.value, good.running), (Some(15), Some(7)));
        let shared = Counted::between(group(10, (0, 0)), group(25, (9, 4)));
        assert_eq!(
            (shared.value, shared.enabled, shared.running),
            (None, Some(9), Some(4))
        );
        // Odd and above 2^53: no floating-point number holds it.
        const MOST: u64 = (1 << 60) + 1;
        let shared = Counted::between(group(0, (0, 0)), group(MOST, (9, 4)));
        assert_eq!((shared.value, shared.raw.value), (None, Some(MOST)));
        let frozen = Counted::between(group(7, (0, 0)), group(7, (9, 9)));
        assert_eq!((frozen.value, frozen.raw.value), (None, Some(0)));
        assert_eq!((frozen.enabled, frozen.running), (Some(9), Some(9)));
        let backwards = Counted::between(group(7, (0, 0)), group(6, (9, 9)));
        assert_eq!(backwards.raw.value, None);
        let text = backwards.refused.unwrap();
        assert!(text.contains("from 7 to 6"), "{text}");
        assert!(shared.refused.unwrap().contains("4 of 9 ns"));
        assert_eq!(Counted::between(None, group(1, (0, 0))), Counted::default());
    }
}
