//! The generated message of a study, written to a descriptor: the same bytes on every machine.

use crate::error::{Result, WorkerError};
use crate::random::{seed, HashDrbg, Role};
use protocol::{MessageWritten, Operation, MESSAGE_DRAW};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Write;

/// Writes the first `bytes` bytes of the message of `subject` to `out`.
pub fn generate(subject: &str, bytes: u64, mut out: File) -> Result<MessageWritten> {
    let seed = seed(subject, Operation::Sign, 0, Role::Message);
    let mut drbg = HashDrbg::new(&seed);
    let mut hash = Sha256::new();
    let mut buffer = vec![0; MESSAGE_DRAW];
    let mut left = bytes;
    while left > 0 {
        // A whole request each time: what a longer message begins with does not depend on its length.
        drbg.fill(&mut buffer);
        let part = &buffer[..left.min(MESSAGE_DRAW as u64) as usize];
        hash.update(part);
        out.write_all(part)
            .map_err(WorkerError::io("writing the message"))?;
        left -= part.len() as u64;
    }
    Ok(MessageWritten {
        bytes,
        sha256: const_hex::encode(hash.finalize()),
        seed: const_hex::encode(seed),
    })
}
