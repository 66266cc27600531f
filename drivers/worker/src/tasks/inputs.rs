//! Inputs of timed calls, by the rule of the record: keys, messages and signatures that exist before
//! the first timed call, all from recorded streams.
//!
//! `fresh`: the library's stream starts from the seed of role `key` for key generation and of role
//! `random` for signing; messages come from a generator of the worker's own, started from the seed of
//! role `message`, one request each. `fixed`: every stream starts from bytes 00 to 2f, and there is one
//! message.

use crate::error::{Result, WorkerError};
use crate::library::{open_identified, Candidate, DrngState};
use crate::memory::{Guarded, Mapping, OnStack};
use crate::random::{seed, HashDrbg, Role, FIXED_SEED};
use crate::timing::{Clock, MonotonicRaw};
use protocol::{InputRule, LibraryFile, Operation};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Start of a prepared key file; two little-endian 64-bit lengths, the public and the secret key
/// follow.
const KEY_MAGIC: &[u8; 8] = b"campkey1";

/// Bytes before the keys.
const KEY_HEAD: u64 = 24;

/// The inputs of one operation.
#[derive(Debug)]
pub struct Inputs<'a> {
    candidate: &'a Candidate,
    wanted: &'a protocol::Inputs,
    operation: Operation,
    prepared: Option<&'a File>,
    used: Vec<Role>,
    /// Stream that the library's generator is in, and states of those that were left.
    current: Option<Role>,
    left: Vec<(Role, DrngState)>,
}

/// A key pair, and how long it took to have it.
#[derive(Debug)]
pub struct KeyPair {
    /// Public key.
    pub pk: Guarded,
    /// Secret key.
    pub sk: Guarded,
    /// Key generation, or reading of the prepared key, nanoseconds.
    pub nanoseconds: u64,
    /// Lengths that a bare key generation returned, until they are accepted.
    pub returned: (u64, u64),
}

impl KeyPair {
    /// Lays the patterns where a bare key generation follows.
    pub fn lay_patterns_if(&mut self, follows: bool) {
        if follows {
            self.pk.lay_pattern();
            self.sk.lay_pattern();
        }
    }

    /// Takes the outputs of a bare key generation over, checked.
    pub fn accept(&mut self, call: &str) -> Result<()> {
        self.pk.accept(call, self.returned.0)?;
        self.sk.accept(call, self.returned.1)
    }
}

impl<'a> Inputs<'a> {
    /// Inputs for `operation`; `prepared` is the opened file of `wanted.prepared_key`.
    pub fn new(
        candidate: &'a Candidate,
        operation: Operation,
        wanted: &'a protocol::Inputs,
        prepared: Option<&'a File>,
    ) -> Inputs<'a> {
        Inputs {
            candidate,
            wanted,
            operation,
            prepared,
            used: Vec::new(),
            current: None,
            left: Vec::new(),
        }
    }

    /// Opens the prepared key that a request names; before the isolation closes the way.
    pub fn open_prepared(wanted: Option<&LibraryFile>) -> Result<Option<File>> {
        wanted
            .map(|file| {
                open_identified(file).map_err(|error| match error {
                    WorkerError::Load(text) => WorkerError::Io {
                        what: "prepared key".to_owned(),
                        source: std::io::Error::other(text),
                    },
                    other => other,
                })
            })
            .transpose()
    }

    /// Seeds that were used so far: role and hex.
    pub fn seeds(&self) -> Vec<(String, String)> {
        let hex = |role: &Role| {
            let seed = const_hex::encode(self.seed_bytes(*role));
            (role.name().to_owned(), seed)
        };
        self.used.iter().map(hex).collect()
    }

    /// Starts the library's stream for key generation.
    pub fn start_keys(&mut self, on: &OnStack<'_>) -> Result<()> {
        self.start(on, Role::Key)
    }

    /// Starts the library's stream for signing.
    pub fn start_random(&mut self, on: &OnStack<'_>) -> Result<()> {
        self.start(on, Role::Random)
    }

    fn start(&mut self, on: &OnStack<'_>, role: Role) -> Result<()> {
        let seed = self.note(role);
        self.candidate.seed(on, &seed)?;
        self.current = Some(role);
        Ok(())
    }

    /// Gives the library's one generator the stream of `role`, where it was left or at its start: so
    /// that keys can be made between signatures without either stream knowing of the other.
    pub fn enter(&mut self, on: &OnStack<'_>, role: Role) -> Result<()> {
        if self.current == Some(role) {
            return Ok(());
        }
        if let Some(left) = self.current {
            self.left.retain(|(other, _)| *other != left);
            self.left.push((left, self.candidate.drng_state()));
        }
        match self.left.iter().find(|(other, _)| *other == role) {
            Some((_, state)) => {
                self.candidate.set_drng_state(state);
                self.current = Some(role);
                Ok(())
            }
            None => self.start(on, role),
        }
    }

    /// Forgets where the stream of `role` was left: it starts anew.
    pub fn forget(&mut self, role: Role) {
        self.left.retain(|(other, _)| *other != role);
        self.current = self.current.filter(|&current| current != role);
    }

    fn note(&mut self, role: Role) -> Vec<u8> {
        if !self.used.contains(&role) {
            self.used.push(role);
        }
        self.seed_bytes(role)
    }

    /// Seed of a stream. A prepared key belongs to signing, whichever operation uses it.
    fn seed_bytes(&self, role: Role) -> Vec<u8> {
        if self.wanted.rule == InputRule::Fixed {
            return FIXED_SEED.to_vec();
        }
        let (operation, trial) = match (role, self.operation) {
            (Role::Key, Operation::Keygen) => (Operation::Keygen, self.wanted.trial),
            (Role::Key, _) if self.prepared.is_some() => (Operation::Sign, self.wanted.key_trial),
            (Role::Key, operation) => (operation, self.wanted.key_trial),
            (_, operation) => (operation, self.wanted.trial),
        };
        seed(&self.wanted.subject, operation, trial, role).to_vec()
    }

    /// The key pair of the trial: the prepared one, or generated.
    pub fn key(&mut self, on: &OnStack<'_>) -> Result<KeyPair> {
        self.forget(Role::Key);
        self.next_key(on, 0)
    }

    /// Key pair `number` of the stream; number 0 is the prepared one where there is one.
    pub fn next_key(&mut self, on: &OnStack<'_>, number: u64) -> Result<KeyPair> {
        let mut key = self.empty_key()?;
        let start = MonotonicRaw.now();
        match self.prepared.filter(|_| number == 0) {
            Some(file) => {
                self.note(Role::Key);
                read_key(file, &mut key)?;
            }
            None => {
                self.enter(on, Role::Key)?;
                self.candidate.keygen(on, &mut key.pk, &mut key.sk)?;
            }
        }
        key.nanoseconds = MonotonicRaw.now().saturating_sub(start);
        Ok(key)
    }

    /// Buffers for a key pair.
    pub fn empty_key(&self) -> Result<KeyPair> {
        Ok(KeyPair {
            pk: self.candidate.pk_buffer()?,
            sk: self.candidate.sk_buffer()?,
            nanoseconds: 0,
            returned: (0, 0),
        })
    }

    /// `count` messages, one request each; under the rule `fixed` one message for all.
    pub fn messages(&mut self, count: u64) -> Result<Messages> {
        let seed = self.note(Role::Message);
        let distinct = match self.wanted.rule {
            InputRule::Fresh => count.max(1),
            InputRule::Fixed => 1,
        };
        let mut messages = Messages::new(distinct, self.wanted.message_bytes as usize)?;
        let mut drbg = HashDrbg::new(&seed);
        for number in 0..distinct {
            drbg.fill(messages.get(number));
        }
        Ok(messages)
    }

    /// Signatures of the first `count` messages, with the recorded randomness.
    pub fn signatures(
        &mut self,
        on: &OnStack<'_>,
        key: &mut KeyPair,
        messages: &mut Messages,
        count: u64,
    ) -> Result<Signatures> {
        self.start_random(on)?;
        let mut sn = self.candidate.sn_buffer()?;
        let mut signatures = Signatures::new(count, sn.capacity())?;
        for number in 0..count {
            let mut message = messages.guarded(number)?;
            self.candidate
                .sign(on, &mut key.sk, &mut message, &mut sn)
                .map_err(|error| error.at(format_args!("the preparation of pair {number}")))?;
            signatures.put(number, sn.bytes());
        }
        Ok(signatures)
    }
}

/// Messages of equal length, one behind the other.
#[derive(Debug)]
pub struct Messages {
    memory: Mapping,
    each: usize,
    count: u64,
}

impl Messages {
    fn new(count: u64, each: usize) -> Result<Messages> {
        Ok(Messages {
            memory: map("messages", count, each)?,
            each,
            count,
        })
    }

    /// Distinct messages.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Message for call `number`, from 0, counted over warm-ups and timed calls; where there are
    /// fewer messages than calls they come in turn.
    #[inline(always)]
    pub fn get(&mut self, number: u64) -> &mut [u8] {
        let number = if number < self.count {
            number
        } else {
            number % self.count
        };
        let start = number as usize * self.each;
        &mut self.memory.as_mut_slice()[start..start + self.each]
    }

    /// A copy between guard bytes.
    pub fn guarded(&mut self, number: u64) -> Result<Guarded> {
        Guarded::with("the message", self.get(number))
    }
}

/// Signatures, each in a slot of the claimed length.
#[derive(Debug)]
pub struct Signatures {
    memory: Mapping,
    slot: usize,
    lengths: Vec<usize>,
}

impl Signatures {
    fn new(count: u64, claimed: usize) -> Result<Signatures> {
        let slot = claimed.next_multiple_of(64);
        Ok(Signatures {
            memory: map("signatures", count, slot)?,
            slot,
            lengths: vec![0; count as usize],
        })
    }

    fn put(&mut self, number: u64, signature: &[u8]) {
        let start = number as usize * self.slot;
        self.memory.as_mut_slice()[start..start + signature.len()].copy_from_slice(signature);
        self.lengths[number as usize] = signature.len();
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.lengths.len() as u64
    }

    /// Signature `number`.
    #[inline(always)]
    pub fn get(&mut self, number: u64) -> &mut [u8] {
        let start = number as usize * self.slot;
        let len = self.lengths[number as usize];
        &mut self.memory.as_mut_slice()[start..start + len]
    }
}

fn map(what: &'static str, count: u64, each: usize) -> Result<Mapping> {
    let bytes = u128::from(count) * each as u128;
    usize::try_from(bytes)
        .map_err(|_| std::io::Error::from_raw_os_error(libc::ENOMEM))
        .and_then(Mapping::new)
        .map_err(|source| WorkerError::Memory {
            what,
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            source,
        })
}

/// Head of a key file.
pub fn key_head(pk: usize, sk: usize) -> [u8; KEY_HEAD as usize] {
    let mut head = [0; KEY_HEAD as usize];
    head[..8].copy_from_slice(KEY_MAGIC);
    head[8..16].copy_from_slice(&(pk as u64).to_le_bytes());
    head[16..].copy_from_slice(&(sk as u64).to_le_bytes());
    head
}

fn read_key(file: &File, key: &mut KeyPair) -> Result<()> {
    let failed = |source| WorkerError::Io {
        what: "reading the prepared key".to_owned(),
        source,
    };
    let mut head = [0; KEY_HEAD as usize];
    file.read_exact_at(&mut head, 0).map_err(failed)?;
    let length = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    let (pk, sk) = (length(8), length(16));
    let fits = pk <= key.pk.capacity() as u64 && sk <= key.sk.capacity() as u64;
    if !head.starts_with(KEY_MAGIC) || !fits {
        return Err(failed(std::io::Error::other(format!(
            "it is no key file of this library (lengths {pk} and {sk}, claimed {} and {})",
            key.pk.capacity(),
            key.sk.capacity()
        ))));
    }
    key.pk.set_len(pk as usize);
    key.sk.set_len(sk as usize);
    file.read_exact_at(key.pk.bytes_mut(), KEY_HEAD)
        .and_then(|()| file.read_exact_at(key.sk.bytes_mut(), KEY_HEAD + pk))
        .map_err(failed)
}
