//! One key pair, written to a descriptor: expensive keys are made once and named by their digest.

use super::inputs::{key_head, Inputs};
use crate::error::{Result, WorkerError};
use crate::library::Candidate;
use crate::memory::OnStack;
use protocol::{Operation, Prepared};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Write;

/// Makes the key of `wanted.key_trial` for `operation` and writes it to `out`.
pub fn prepare(
    on: &OnStack<'_>,
    candidate: &Candidate,
    operation: Operation,
    wanted: &protocol::Inputs,
    mut out: File,
) -> Result<Prepared> {
    let key = Inputs::new(candidate, operation, wanted, None).key(on)?;
    let (pk, sk) = (key.pk.bytes(), key.sk.bytes());
    let head = key_head(pk.len(), sk.len());
    let mut hash = Sha256::new();
    for part in [&head[..], pk, sk] {
        hash.update(part);
        out.write_all(part)
            .map_err(WorkerError::io("writing the prepared key"))?;
    }
    Ok(Prepared {
        sha256: const_hex::encode(hash.finalize()),
        bytes: (head.len() + pk.len() + sk.len()) as u64,
        keygen_ns: key.nanoseconds,
    })
}
