//! Drives a flow through a library.

use super::flips::{self, Signed};
use super::flow::{Flow, Outputs, Vector};
use super::streams::Streams;
use super::{Iccs, Nist};
use crate::error::{Result, WorkerError};
use crate::library::Candidate;
use crate::memory::{Guarded, OnStack};
use protocol::{Flips, KatFlow, KatOutcome, KatTask};
use sha2::{Digest, Sha256};
use std::fs::File;

/// Runs `task`. A failure of the library is part of the outcome; an error is the worker's own.
/// `progress` is told the vectors done and planned.
pub fn run(
    on: &OnStack<'_>,
    candidate: &Candidate,
    task: &KatTask,
    kept: Option<File>,
    progress: &mut dyn FnMut(u64, u64) -> Result<()>,
) -> Result<KatOutcome> {
    let mut flow: Box<dyn Flow> = match task.flow {
        KatFlow::Iccs => Box::new(Iccs::new()),
        KatFlow::Nist => Box::new(Nist::new()),
    };
    let streams = Streams::new(task.flow, &task.name, &task.modes, kept)?;
    let planned = task
        .vectors
        .unwrap_or_else(|| streams.needed(flow.vectors()))
        .min(flow.vectors());
    let sizes = candidate.sizes();
    let mut run = Run {
        on,
        candidate,
        task,
        streams,
        pk: candidate.pk_buffer()?,
        sk: candidate.sk_buffer()?,
        sn: candidate.sn_buffer()?,
        keys: Vec::new(),
        flips: None,
        log: vec![
            machine(),
            format!(
                "flow {:?}, {planned} of {} vectors",
                task.flow,
                flow.vectors()
            ),
            format!(
                "claimed lengths: public key {}, secret key {}, signature {} bytes",
                sizes.pk, sizes.sk, sizes.sn
            ),
        ],
    };
    let mut failure = None;
    let mut records = 0;
    while records < planned && failure.is_none() {
        let vector = flow.next();
        match run.vector(flow.as_ref(), &vector) {
            Ok(()) => {
                records += 1;
                progress(records.into(), planned.into())?;
            }
            Err(error @ (WorkerError::Io { .. } | WorkerError::Memory { .. })) => {
                return Err(error)
            }
            Err(error) => failure = Some(error.at(format_args!("vector {}", vector.number))),
        }
    }
    if failure.is_none() {
        failure = candidate.check_sizes(on).err();
    }
    Ok(run.outcome(planned, records, failure))
}

/// What the bytes of the vectors were made on: reference code with an endianness or a word size built in
/// gives other vectors elsewhere. Worker and library share it, or the library would not have been loaded.
fn machine() -> String {
    let order = match cfg!(target_endian = "little") {
        true => "little",
        false => "big",
    };
    let arch = std::env::consts::ARCH;
    format!("machine {arch}, {order}-endian, {}-bit words", usize::BITS)
}

struct Run<'a> {
    on: &'a OnStack<'a>,
    candidate: &'a Candidate,
    task: &'a KatTask,
    streams: Streams,
    pk: Guarded,
    sk: Guarded,
    sn: Guarded,
    keys: Vec<[u8; 32]>,
    flips: Option<Flips>,
    log: Vec<String>,
}

impl Run<'_> {
    fn vector(&mut self, flow: &dyn Flow, vector: &Vector) -> Result<()> {
        let mut message = Guarded::with("the message", &vector.message)?;
        self.make(flow, vector, &mut message)?;
        self.note_key(vector)?;
        let mut signed = Signed {
            pk: &mut self.pk,
            sn: &mut self.sn,
            message: &mut message,
        };
        // The fill changes sides from vector to vector: neither value may decide.
        let (one, other) = if vector.number.is_multiple_of(2) {
            (0x00, 0xff)
        } else {
            (0xff, 0x00)
        };
        signed.must_verify(self.on, self.candidate, one)?;
        let bit = 8 * vector.message.len() / 2 + vector.number as usize % 8;
        signed.must_reject_message(self.on, self.candidate, bit, other)?;
        self.write(flow, vector)?;
        if vector.number == 0 && self.task.flips {
            self.first_vector_checks(flow, vector, &mut message)?;
        }
        Ok(())
    }

    /// Key pair and signature with the vector's randomness.
    fn make(&mut self, flow: &dyn Flow, vector: &Vector, message: &mut Guarded) -> Result<()> {
        let (on, candidate) = (self.on, self.candidate);
        let (pk, sk, sn) = (&mut self.pk, &mut self.sk, &mut self.sn);
        flow.serve(on, candidate, vector, &mut || {
            candidate.keygen(on, pk, sk)?;
            candidate.sign(on, sk, message, sn)
        })
    }

    /// Different seeds must give different keys.
    fn note_key(&mut self, vector: &Vector) -> Result<()> {
        let digest = Sha256::digest(self.pk.bytes()).into();
        if let Some(earlier) = self.keys.iter().position(|key| *key == digest) {
            return Err(WorkerError::Contract(format!(
                "key generation gave the public key of vector {earlier} again, with another seed"
            )));
        }
        self.keys.push(digest);
        self.log.push(format!(
            "vector {}: message {} bytes, public key {}, secret key {}, signature {}",
            vector.number,
            vector.message.len(),
            self.pk.bytes().len(),
            self.sk.bytes().len(),
            self.sn.bytes().len()
        ));
        Ok(())
    }

    fn write(&mut self, flow: &dyn Flow, vector: &Vector) -> Result<()> {
        self.streams.begin();
        let outputs = Outputs {
            pk: self.pk.bytes(),
            sk: self.sk.bytes(),
            sn: self.sn.bytes(),
        };
        flow.write(vector, outputs, &mut self.streams)?;
        self.streams.end()
    }

    /// Flips, and the same vector once more: equal seeds must give equal outputs.
    fn first_vector_checks(
        &mut self,
        flow: &dyn Flow,
        vector: &Vector,
        message: &mut Guarded,
    ) -> Result<()> {
        let mut signed = Signed {
            pk: &mut self.pk,
            sn: &mut self.sn,
            message,
        };
        let exempt = &self.task.unauthenticated_signature_bytes;
        flips::try_all(
            self.on,
            self.candidate,
            &mut signed,
            exempt,
            &mut self.flips,
            &mut self.log,
        )?;
        let digests = |run: &Self| [&run.pk, &run.sk, &run.sn].map(|b| Sha256::digest(b.bytes()));
        let before = digests(self);
        self.make(flow, vector, message)?;
        let names = ["public key", "secret key", "signature"];
        for ((name, one), other) in names.iter().zip(before).zip(digests(self)) {
            if one != other {
                return Err(WorkerError::Contract(format!(
                    "the same seed gave another {name} the second time"
                )));
            }
        }
        self.log
            .push("the same seed again: equal outputs".to_owned());
        Ok(())
    }

    fn outcome(mut self, planned: u32, records: u32, failure: Option<WorkerError>) -> KatOutcome {
        let text_bytes = self.streams.bytes();
        let digests = self.streams.digests(planned);
        for digest in &digests {
            self.log.push(format!(
                "{} {} over {} records",
                digest.sha256, digest.mode, digest.records
            ));
        }
        let failure = failure.map(|error| error.failure());
        if let Some(failure) = &failure {
            self.log.push(format!("failed: {}", failure.text));
        }
        KatOutcome {
            digests,
            records,
            text_bytes,
            flips: self.flips,
            log: self.log,
            failure,
        }
    }
}
