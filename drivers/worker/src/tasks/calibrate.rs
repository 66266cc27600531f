//! The cost of one call, and the digests that must be equal for every code and architecture.

use super::inputs::{Inputs, KeyPair, Messages};
use crate::error::{Result, WorkerError};
use crate::library::{Candidate, Verdict};
use crate::memory::OnStack;
use crate::timing::{Clock, MonotonicRaw};
use protocol::{Calibrated, Operation, Outputs, CALIBRATE_PAIRS};
use sha2::{Digest, Sha256};
use std::fs::File;

/// Timed calls end when they have taken this long.
const ENOUGH_NS: u64 = 50_000_000;

/// Most timed calls.
const MOST_CALLS: usize = 32;

/// Signatures in the digest of trial 0's outputs.
const DIGEST_SIGNATURES: u64 = 4;

/// Calibrates `operation`; with `outputs` it also digests trial 0's outputs.
pub fn calibrate(
    on: &OnStack<'_>,
    candidate: &Candidate,
    operation: Operation,
    wanted: &protocol::Inputs,
    outputs: bool,
    prepared: Option<&File>,
) -> Result<Calibrated> {
    let mut inputs = Inputs::new(candidate, operation, wanted, prepared);
    let start = MonotonicRaw.now();
    let (calls_ns, key_ns, preparation_ns) = match operation {
        Operation::Keygen => {
            let mut key = inputs.empty_key()?;
            inputs.start_keys(on)?;
            let preparation_ns = MonotonicRaw.now().saturating_sub(start);
            let mut call = candidate.keygen_call(&mut key.pk, &mut key.sk);
            let calls = time_calls(&mut MonotonicRaw, |_| check("sig_keygen", call.call(on)))?;
            (calls, 0, preparation_ns)
        }
        Operation::Sign => {
            let (mut key, mut messages) = key_and_messages(on, &mut inputs)?;
            inputs.start_random(on)?;
            let preparation_ns = MonotonicRaw.now().saturating_sub(start) - key.nanoseconds;
            let mut sn = candidate.sn_buffer()?;
            let mut call = candidate.sign_call(&mut key.sk, &mut sn);
            let calls = time_calls(&mut MonotonicRaw, |number| {
                check("sig_sign", call.call(on, messages.get(number)))
            })?;
            (calls, key.nanoseconds, preparation_ns)
        }
        Operation::Verify => {
            let (mut key, mut messages) = key_and_messages(on, &mut inputs)?;
            let mut signatures = inputs.signatures(on, &mut key, &mut messages, CALIBRATE_PAIRS)?;
            let preparation_ns = MonotonicRaw.now().saturating_sub(start) - key.nanoseconds;
            let mut call = candidate.verify_call(&mut key.pk);
            let calls = time_calls(&mut MonotonicRaw, |number| {
                let pair = number % CALIBRATE_PAIRS;
                let code = call.call(on, signatures.get(pair), messages.get(pair));
                check("sig_verify", code)
            })?;
            (calls, key.nanoseconds, preparation_ns)
        }
    };
    let outputs = outputs
        .then(|| trial_outputs(on, candidate, wanted, prepared))
        .transpose()?;
    Ok(Calibrated {
        calls_ns,
        key_ns,
        preparation_ns,
        outputs,
    })
}

/// Calls that a calibration may make: one untimed and the timed ones.
const CALLS: u64 = MOST_CALLS as u64 + 1;

fn key_and_messages(on: &OnStack<'_>, inputs: &mut Inputs<'_>) -> Result<(KeyPair, Messages)> {
    let key = inputs.key(on)?;
    Ok((key, inputs.messages(CALLS)?))
}

fn check(call: &'static str, code: i32) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(WorkerError::Call {
            call,
            code,
            place: String::new(),
        }),
    }
}

/// The rule of the calibrate phase: a first call below 50 ms is a warm-up and not counted, then
/// calls are timed until they have taken 50 ms or are 32. A slower first call is the only one.
fn time_calls(clock: &mut impl Clock, mut call: impl FnMut(u64) -> Result<()>) -> Result<Vec<u64>> {
    let mut time = |number| -> Result<u64> {
        let start = clock.now();
        call(number)?;
        let end = clock.now();
        let backwards =
            || format!("the clock went from {start} ns back to {end} ns (call {number})");
        end.checked_sub(start)
            .ok_or_else(|| WorkerError::Clock(backwards()))
    };
    let first = time(0)?;
    if first >= ENOUGH_NS {
        return Ok(vec![first]);
    }
    let mut calls = Vec::with_capacity(MOST_CALLS);
    let mut total = 0;
    while total < ENOUGH_NS && calls.len() < MOST_CALLS {
        let ns = time(calls.len() as u64 + 1)?;
        total += ns;
        calls.push(ns);
    }
    Ok(calls)
}

/// Digests of trial 0 of signing: its key pair (prepared or generated), and its first four
/// signatures joined.
fn trial_outputs(
    on: &OnStack<'_>,
    candidate: &Candidate,
    wanted: &protocol::Inputs,
    prepared: Option<&File>,
) -> Result<Outputs> {
    let prepared = prepared.filter(|_| wanted.key_trial == 0);
    let wanted = protocol::Inputs {
        trial: 0,
        key_trial: 0,
        ..wanted.clone()
    };
    let mut inputs = Inputs::new(candidate, Operation::Sign, &wanted, prepared);
    let mut key = inputs.key(on)?;
    let mut messages = inputs.messages(DIGEST_SIGNATURES)?;
    let mut signatures = inputs.signatures(on, &mut key, &mut messages, DIGEST_SIGNATURES)?;
    let mut joined = Sha256::new();
    for number in 0..DIGEST_SIGNATURES {
        joined.update(signatures.get(number));
        verify(
            on,
            candidate,
            &mut key,
            &mut messages,
            &mut signatures,
            number,
        )?;
    }
    Ok(Outputs {
        pk: const_hex::encode(Sha256::digest(key.pk.bytes())),
        sk: const_hex::encode(Sha256::digest(key.sk.bytes())),
        signatures: const_hex::encode(joined.finalize()),
    })
}

fn verify(
    on: &OnStack<'_>,
    candidate: &Candidate,
    key: &mut KeyPair,
    messages: &mut Messages,
    signatures: &mut super::Signatures,
    number: u64,
) -> Result<()> {
    let mut message = messages.guarded(number)?;
    let mut sn = crate::memory::Guarded::with("the signature", signatures.get(number))?;
    match candidate.verify(on, &mut key.pk, &mut sn, &mut message)? {
        Verdict::Valid => Ok(()),
        Verdict::Rejected(code) => Err(WorkerError::NotVerified(format!(
            "signature {number} of trial 0 did not verify (sig_verify returned {code})"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that shows the given calls.
    struct Replay<'a> {
        calls: std::iter::Copied<std::slice::Iter<'a, u64>>,
        now: u64,
        inside: bool,
    }

    impl Clock for Replay<'_> {
        fn now(&mut self) -> u64 {
            if self.inside {
                self.now += self.calls.next().expect("no call beyond the recorded ones");
            }
            self.inside = !self.inside;
            self.now
        }
    }

    fn timed(calls: &[u64]) -> Vec<u64> {
        let mut clock = Replay {
            calls: calls.iter().copied(),
            now: 7,
            inside: false,
        };
        time_calls(&mut clock, |_| Ok(())).unwrap()
    }

    #[test]
    fn the_rule_of_the_calibrate_phase_holds_at_its_edges() {
        const MS: u64 = 1_000_000;
        // A first call of 50 ms or more is the only one; below, it is not counted.
        assert_eq!(timed(&[50 * MS]), [50 * MS]);
        assert_eq!(timed(&[11_000 * MS]), [11_000 * MS]);
        assert_eq!(timed(&[50 * MS - 1, 50 * MS]), [50 * MS]);
        assert_eq!(timed(&[40 * MS, 30 * MS, 20 * MS]), [30 * MS, 20 * MS]);
        assert_eq!(timed(&[1; 33]), [1; 32]);
    }

    #[test]
    fn a_clock_that_goes_backwards_ends_the_calibration() {
        struct Back(u64);
        impl Clock for Back {
            fn now(&mut self) -> u64 {
                self.0 -= 1;
                self.0
            }
        }
        let error = time_calls(&mut Back(9), |_| Ok(())).unwrap_err();
        assert_eq!(error.code(), protocol::FailureCode::Clock);
        assert!(
            error.to_string().contains("from 8 ns back to 7 ns"),
            "{error}"
        );
    }

    #[test]
    fn a_failing_call_ends_the_calibration() {
        let error = time_calls(&mut MonotonicRaw, |_| check("sig_sign", -5)).unwrap_err();
        assert_eq!(error.code(), protocol::FailureCode::CallFailed);
        assert_eq!(error.to_string(), "sig_sign returned -5");
    }
}
