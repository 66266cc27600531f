//! The message of a study: a file, brought to the library in one of five ways.

use crate::error::{Result, WorkerError};
use crate::library::{hash_file, Candidate, Message, StreamSymbols};
use crate::memory::Mapping;
use crate::timing::{Clock, MonotonicRaw};
use protocol::{StudyMode, StudyTask};
use sha2::{Digest, Sha256};
use sha3::Sha3_512;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// Bytes read at a time where the task does not say.
const CHUNK: usize = 64 << 10;

/// Largest chunk.
const LARGEST_CHUNK: usize = 1 << 20;

/// What reading and hashing took so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileCost {
    /// Bytes read.
    pub bytes_read: u64,
    /// Nanoseconds of reading.
    pub read_ns: u64,
    /// Nanoseconds of hashing.
    pub hash_ns: u64,
}

impl FileCost {
    /// What was added since `earlier`.
    pub fn since(self, earlier: FileCost) -> FileCost {
        FileCost {
            bytes_read: self.bytes_read - earlier.bytes_read,
            read_ns: self.read_ns - earlier.read_ns,
            hash_ns: self.hash_ns - earlier.hash_ns,
        }
    }
}

/// The file as a message.
#[derive(Debug)]
pub struct FileMessage<'a> {
    file: &'a File,
    bytes: u64,
    way: Way,
    own: FileCost,
}

/// How it gets there.
#[derive(Debug)]
enum Way {
    /// In memory, read or mapped before the first call.
    Memory(Mapping),
    /// Read by the library's hooked absorb.
    Stream(StreamSymbols),
    /// Hashed in each call; the digest is the message.
    Prehash {
        sha3: bool,
        chunk: Vec<u8>,
        digest: [u8; 64],
    },
}

/// A message that could not be read: what a call returns in its place.
pub const UNREADABLE: i32 = -100;

impl<'a> FileMessage<'a> {
    /// Brings the file up for `task`; its size and content must be as planned.
    pub fn open(candidate: &Candidate, task: &StudyTask, file: &'a File) -> Result<Self> {
        let kind = file
            .metadata()
            .map_err(WorkerError::io("the message file"))?;
        if !kind.is_file() || kind.len() != task.size_bytes {
            return Err(changed(format!(
                "it is no regular file of {} bytes",
                task.size_bytes
            )));
        }
        let chunk = match task.chunk_bytes {
            0 => CHUNK,
            bytes => usize::try_from(bytes)
                .ok()
                .filter(|&bytes| bytes <= LARGEST_CHUNK)
                .ok_or_else(|| {
                    WorkerError::Request(format!(
                        "chunks of {bytes} bytes: at most {LARGEST_CHUNK}"
                    ))
                })?,
        };
        let mut message = FileMessage {
            file,
            bytes: task.size_bytes,
            way: Way::Prehash {
                sha3: task.mode == StudyMode::PrehashSha3,
                chunk: Vec::new(),
                digest: [0; 64],
            },
            own: FileCost::default(),
        };
        message.way = match task.mode {
            StudyMode::Buffer => Way::Memory(message.read_all()?),
            StudyMode::Mmap => Way::Memory(
                Mapping::of_file(file, message.bytes as usize)
                    .map_err(WorkerError::io("mapping the message file"))?,
            ),
            StudyMode::Stream => {
                let symbols = candidate.stream_symbols()?;
                let code = symbols.open(file.as_fd(), message.bytes, chunk as u64);
                if code != 0 {
                    return Err(changed(format!("campaign_stream_open returned {code}")));
                }
                Way::Stream(symbols)
            }
            StudyMode::PrehashSha256 | StudyMode::PrehashSha3 => Way::Prehash {
                sha3: task.mode == StudyMode::PrehashSha3,
                chunk: vec![0; chunk],
                digest: [0; 64],
            },
        };
        Ok(message)
    }

    fn read_all(&mut self) -> Result<Mapping> {
        let mut memory = usize::try_from(self.bytes)
            .map_err(|_| std::io::Error::from_raw_os_error(libc::ENOMEM))
            .and_then(Mapping::new)
            .map_err(|source| WorkerError::Memory {
                what: "the message",
                bytes: self.bytes,
                source,
            })?;
        let start = MonotonicRaw.now();
        self.file
            .read_exact_at(&mut memory.as_mut_slice()[..self.bytes as usize], 0)
            .map_err(WorkerError::io("reading the message file"))?;
        self.own = FileCost {
            bytes_read: self.bytes,
            read_ns: MonotonicRaw.now().saturating_sub(start),
            hash_ns: 0,
        };
        Ok(memory)
    }

    /// The message for one call; `None` when the file could not be read.
    #[inline]
    pub fn get(&mut self) -> Option<Message<'_>> {
        let bytes = self.bytes;
        match &mut self.way {
            Way::Memory(memory) => Some((&mut memory.as_mut_slice()[..bytes as usize]).into()),
            Way::Stream(symbols) => Some(symbols.message(bytes)),
            Way::Prehash {
                sha3,
                chunk,
                digest,
            } => {
                let length = if *sha3 {
                    prehash::<Sha3_512>(self.file, bytes, chunk, digest, &mut self.own)
                } else {
                    prehash::<Sha256>(self.file, bytes, chunk, digest, &mut self.own)
                };
                let length = length.ok()?;
                Some((&mut digest[..length]).into())
            }
        }
    }

    /// What reading and hashing cost so far.
    pub fn cost(&self) -> FileCost {
        match &self.way {
            Way::Stream(symbols) => {
                let [bytes_read, read_ns, hash_ns] = symbols.figures();
                FileCost {
                    bytes_read,
                    read_ns,
                    hash_ns,
                }
            }
            _ => self.own,
        }
    }

    /// Whether reading happens within the calls.
    pub fn reads_in_calls(&self) -> bool {
        !matches!(self.way, Way::Memory(_))
    }

    /// Digest of the file now. An error when it is not the planned one any more, or when a call
    /// changed the message in memory.
    pub fn check(&mut self, planned: &str) -> Result<String> {
        if let Way::Stream(symbols) = &self.way {
            if symbols.error() != 0 {
                return Err(changed(format!(
                    "campaign_stream_error returned {}",
                    symbols.error()
                )));
            }
        }
        let (found, bytes) =
            hash_file(self.file).map_err(WorkerError::io("reading the message file"))?;
        if found != planned || bytes != self.bytes {
            return Err(changed(format!(
                "its SHA-256 is {found} ({bytes} bytes), {planned} ({} bytes) was planned",
                self.bytes
            )));
        }
        if let Way::Memory(memory) = &self.way {
            let held = Sha256::digest(&memory.as_slice()[..self.bytes as usize]);
            if const_hex::encode(held) != planned {
                return Err(WorkerError::Contract(
                    "a call changed its input the message".to_owned(),
                ));
            }
        }
        Ok(found)
    }
}

/// Hashes the file in chunks, as the stream library absorbs it; the digest's length.
fn prehash<D: Digest>(
    file: &File,
    bytes: u64,
    chunk: &mut [u8],
    digest: &mut [u8; 64],
    cost: &mut FileCost,
) -> std::io::Result<usize> {
    let mut hash = D::new();
    let mut offset = 0;
    while offset < bytes {
        let want = chunk.len().min((bytes - offset) as usize);
        let start = MonotonicRaw.now();
        file.read_exact_at(&mut chunk[..want], offset)?;
        let middle = MonotonicRaw.now();
        hash.update(&chunk[..want]);
        cost.hash_ns += MonotonicRaw.now().saturating_sub(middle);
        cost.read_ns += middle.saturating_sub(start);
        cost.bytes_read += want as u64;
        offset += want as u64;
    }
    let result = hash.finalize();
    digest[..result.len()].copy_from_slice(&result);
    Ok(result.len())
}

fn changed(text: String) -> WorkerError {
    WorkerError::Io {
        what: "the message file is not the planned one".to_owned(),
        source: std::io::Error::other(text),
    }
}
