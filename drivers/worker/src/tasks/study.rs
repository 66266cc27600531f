//! One point of the message-size study: an attempt whose message is a file.

use super::inputs::KeyPair;
use super::measure::{Attempt, Meters, Used};
use super::message::{FileCost, FileMessage, UNREADABLE};
use crate::error::{Result, WorkerError};
use crate::library::Candidate;
use crate::memory::{Guarded, OnStack};
use protocol::{Measured, Operation, StudyOutcome, StudyTask, STUDY_KEYS};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::fs::File;

/// Runs `task` on `file`.
pub fn study<'a>(
    on: &'a OnStack<'a>,
    candidate: &'a Candidate,
    task: &'a StudyTask,
    file: &File,
    prepared: Option<&'a File>,
    meters: &'a mut Meters,
) -> Result<StudyOutcome> {
    // Before the message: what it adds to the resident set is the peak less this.
    let baseline_rss_bytes = meters.status.read()?.rss_bytes;
    let message = FileMessage::open(candidate, task, file)?;
    let attempt = Attempt::new(on, candidate, &task.measure, prepared, meters)?;
    let mut point = Point {
        message: RefCell::new(message),
        task,
        baseline_rss_bytes,
    };
    match task.measure.operation {
        Operation::Keygen => {
            let measured = attempt.keygen()?;
            point.outcome(measured, FileCost::default(), None)
        }
        Operation::Sign => point.sign(attempt),
        Operation::Verify => point.verify(attempt),
    }
}

struct Point<'a> {
    // The warm-up hook looks at the message between calls that use it.
    message: RefCell<FileMessage<'a>>,
    task: &'a StudyTask,
    baseline_rss_bytes: u64,
}

impl Point<'_> {
    /// Signs with several keys in turn where one call is cheap: how often a signature is rejected
    /// depends on key and message, and the message is the file.
    fn sign(&mut self, mut attempt: Attempt<'_>) -> Result<StudyOutcome> {
        let (on, candidate) = (attempt.on, attempt.candidate);
        let mut pairs = self.keys(&mut attempt)?;
        // The first signature of the stream, made for its digest: with equal randomness it is the
        // same in every mode, whatever the numbers of warm-ups and calls.
        attempt.inputs.start_random(on)?;
        let (key, sn) = &mut pairs[0];
        self.sign_once(on, candidate, key, sn)?;
        let digest = const_hex::encode(Sha256::digest(sn.bytes()));
        attempt.inputs.start_random(on)?;
        let count = pairs.len();
        let mut calls: Vec<_> = pairs
            .iter_mut()
            .map(|(key, sn)| {
                sn.lay_pattern();
                candidate.sign_call(&mut key.sk, sn)
            })
            .collect();
        let message = &self.message;
        let mut before = FileCost::default();
        let mut last = 0;
        let timed = attempt.run(
            "sig_sign",
            &mut |_| {
                before = message.borrow().cost();
                Ok(())
            },
            |number| {
                last = number as usize % count;
                match message.borrow_mut().get() {
                    Some(message) => calls[last].call(on, message),
                    None => UNREADABLE,
                }
            },
        )?;
        let cost = self.cost_since(before);
        let used = Used {
            messages: 1,
            keys: count as u64,
            signature_bytes: calls[last].returned(),
        };
        let measured = attempt.measured(timed, used)?;
        calls.into_iter().try_for_each(|call| call.accept())?;
        let (key, sn) = &mut pairs[last];
        self.must_verify(on, candidate, key, sn)?;
        let measured = attempt.checked(measured)?;
        self.outcome(measured, cost, Some(digest))
    }

    /// Keys to sign with, each with a place for its signature; no more than there are calls.
    fn keys(&self, attempt: &mut Attempt<'_>) -> Result<Vec<(KeyPair, Guarded)>> {
        let (on, candidate, task) = (attempt.on, attempt.candidate, attempt.task);
        let count = match task.inputs.prepared_key {
            Some(_) => 1, // one key is expensive
            None => (u64::from(task.warmups) + task.iterations).min(STUDY_KEYS),
        };
        let mut pairs = vec![(attempt.inputs.key(on)?, candidate.sn_buffer()?)];
        for number in 1..count {
            let key = attempt.inputs.next_key(on, number)?;
            pairs.push((key, candidate.sn_buffer()?));
        }
        Ok(pairs)
    }

    fn verify(&mut self, mut attempt: Attempt<'_>) -> Result<StudyOutcome> {
        let (on, candidate) = (attempt.on, attempt.candidate);
        let mut key = attempt.inputs.key(on)?;
        let mut sn = candidate.sn_buffer()?;
        attempt.inputs.start_random(on)?;
        self.sign_once(on, candidate, &mut key, &mut sn)?;
        let digest = const_hex::encode(Sha256::digest(sn.bytes()));
        let mut call = candidate.verify_call(&mut key.pk);
        let message = &self.message;
        let mut before = FileCost::default();
        let timed = attempt.run(
            "sig_verify",
            &mut |_| {
                before = message.borrow().cost();
                Ok(())
            },
            |_| match message.borrow_mut().get() {
                Some(message) => call.call(on, sn.bytes_mut(), message),
                None => UNREADABLE,
            },
        )?;
        let cost = self.cost_since(before);
        let used = Used {
            messages: 1,
            keys: 1,
            signature_bytes: sn.bytes().len() as u64,
        };
        let measured = attempt.measured(timed, used)?;
        self.must_reject(on, candidate, &mut key, &mut sn)?;
        let measured = attempt.checked(measured)?;
        self.outcome(measured, cost, Some(digest))
    }

    fn sign_once(
        &self,
        on: &OnStack<'_>,
        candidate: &Candidate,
        key: &mut KeyPair,
        sn: &mut Guarded,
    ) -> Result<()> {
        sn.lay_pattern();
        let mut call = candidate.sign_call(&mut key.sk, sn);
        let code = match self.message.borrow_mut().get() {
            Some(message) => call.call(on, message),
            None => UNREADABLE,
        };
        if code != 0 {
            return Err(WorkerError::Call {
                call: "sig_sign",
                code,
                place: " in the preparation".to_owned(),
            });
        }
        call.accept()
    }

    fn verdict(
        &self,
        on: &OnStack<'_>,
        candidate: &Candidate,
        key: &mut KeyPair,
        sn: &mut Guarded,
    ) -> i32 {
        match self.message.borrow_mut().get() {
            Some(message) => candidate
                .verify_call(&mut key.pk)
                .call(on, sn.bytes_mut(), message),
            None => UNREADABLE,
        }
    }

    fn must_verify(
        &self,
        on: &OnStack<'_>,
        candidate: &Candidate,
        key: &mut KeyPair,
        sn: &mut Guarded,
    ) -> Result<()> {
        match self.verdict(on, candidate, key, sn) {
            0 => Ok(()),
            code => Err(WorkerError::NotVerified(format!(
                "the last output did not verify (sig_verify returned {code})"
            ))),
        }
    }

    /// With a bit of the signature flipped it must not verify (the message may be a file).
    fn must_reject(
        &self,
        on: &OnStack<'_>,
        candidate: &Candidate,
        key: &mut KeyPair,
        sn: &mut Guarded,
    ) -> Result<()> {
        sn.bytes_mut()[0] ^= 1;
        match self.verdict(on, candidate, key, sn) {
            0 => Err(WorkerError::NotVerified(
                "the timed signature verified with its bit 0 flipped".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// What the timed calls cost of the file; for a buffer, what its one reading took.
    fn cost_since(&self, before: FileCost) -> FileCost {
        let message = self.message.borrow();
        if message.reads_in_calls() {
            message.cost().since(before)
        } else {
            message.cost()
        }
    }

    fn outcome(
        &mut self,
        measured: Measured,
        cost: FileCost,
        signature_sha256: Option<String>,
    ) -> Result<StudyOutcome> {
        let message = self.message.get_mut();
        let file_sha256 = message.check(&self.task.file_sha256)?;
        let used = signature_sha256.is_some();
        Ok(StudyOutcome {
            measured: Measured {
                baseline_rss_bytes: self.baseline_rss_bytes,
                ..measured
            },
            bytes_read: cost.bytes_read,
            read_ns: (cost.bytes_read > 0).then_some(cost.read_ns),
            hash_ns: (used && message.reads_in_calls()).then_some(cost.hash_ns),
            signature_sha256,
            file_sha256,
        })
    }
}
