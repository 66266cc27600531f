//! The open run as the phases see it: evidence files, each with its journal line, and what earlier
//! sessions began.

use super::directory::{DirectoryError, RunDirectory};
use crate::evidence::journal::{Chain, Journal, JournalError, JournalEvent};
use crate::evidence::seal::{self, SealError};
use crate::evidence::store::{self, StoreError};
use crate::hash;
use protocol::Operation;
use serde::{de::DeserializeOwned, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Evidence cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BookError {
    /// A file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The seal.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// A worker that was started for a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Session that started it.
    pub session: u32,
    /// When, UTC.
    pub utc: String,
    /// Index of the planned slot.
    pub trial: u32,
    /// Index of the attempt in it.
    pub attempt: u32,
}

/// A prepared key pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedKey {
    /// SHA-256 of its file.
    pub sha256: String,
    /// Time of its generation, nanoseconds.
    pub keygen_ns: u64,
}

/// An evidence file as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored<T> {
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Its content.
    pub value: T,
}

/// An open run.
#[derive(Debug)]
pub struct Book {
    directory: RunDirectory,
    journal: RefCell<Journal>,
    /// What was in the journal before this session.
    before: Chain,
    prepared: RefCell<BTreeMap<(String, Operation), PreparedKey>>,
}

impl Book {
    /// The book of a run that was just made.
    pub fn new(directory: RunDirectory, journal: Journal) -> Result<Self, BookError> {
        let before = crate::evidence::journal::verify(journal.path())?;
        Ok(Book::resumed(directory, journal, before))
    }

    /// The book of a run that was there; `before` is its journal.
    pub fn resumed(directory: RunDirectory, journal: Journal, before: Chain) -> Self {
        let prepared = prepared(&before);
        Book {
            directory,
            journal: RefCell::new(journal),
            before,
            prepared: RefCell::new(prepared),
        }
    }

    /// The directory.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// Where a path below the run lies.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    /// Appends a line to the journal.
    pub fn log(&self, event: JournalEvent) -> Result<(), BookError> {
        Ok(self.journal.borrow_mut().append(event)?)
    }

    /// Writes an evidence file and says so in the journal first; returns its SHA-256.
    pub fn write<T: Serialize>(&self, relative: &str, value: &T) -> Result<String, BookError> {
        let bytes = store::json(&self.path(relative), value)?;
        self.write_bytes(relative, &bytes)
    }

    /// [`Book::write`] for a file that is not JSON.
    pub fn write_bytes(&self, relative: &str, bytes: &[u8]) -> Result<String, BookError> {
        let sha256 = hash::sha256(bytes);
        self.log(JournalEvent::Written {
            path: relative.to_owned(),
            sha256: sha256.clone(),
        })?;
        store::write_atomic(&self.path(relative), bytes)?;
        Ok(sha256)
    }

    /// Reads an evidence file; `None` where there is none.
    pub fn read<T: DeserializeOwned>(
        &self,
        relative: &str,
    ) -> Result<Option<Stored<T>>, BookError> {
        let path = self.path(relative);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Read { path, source }.into()),
        };
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Some(Stored {
                sha256: hash::sha256(&bytes),
                value,
            })),
            Err(source) => Err(StoreError::Parse { path, source }.into()),
        }
    }

    /// Workers that earlier sessions started for a record, in order.
    pub fn begun(&self, record: &str) -> Vec<Begun> {
        let mut session = 0;
        let mut found = Vec::new();
        for line in &self.before.lines {
            match &line.event {
                JournalEvent::SessionBegun { session: k, .. } => session = *k,
                JournalEvent::AttemptBegun {
                    record: of,
                    trial,
                    attempt,
                } if of == record => found.push(Begun {
                    session,
                    utc: line.utc.clone(),
                    trial: *trial,
                    attempt: *attempt,
                }),
                _ => {}
            }
        }
        found
    }

    /// Records for which earlier sessions started workers.
    pub fn begun_records(&self) -> impl Iterator<Item = &str> {
        self.before
            .lines
            .iter()
            .filter_map(|line| match &line.event {
                JournalEvent::AttemptBegun { record, .. } => Some(record.as_str()),
                _ => None,
            })
    }

    /// The key that a library has prepared, if its file is still there and unchanged.
    pub fn prepared(&self, library: &str, operation: Operation) -> Option<PreparedKey> {
        let key = (library.to_owned(), operation);
        let known = self.prepared.borrow().get(&key)?.clone();
        let file = self.path(&key_file(&known.sha256));
        let unchanged = hash::sha256_file(&file).is_ok_and(|sha256| sha256 == known.sha256);
        unchanged.then_some(known)
    }

    /// Remembers a prepared key, whose file is in its place.
    pub fn add_prepared(
        &self,
        library: &str,
        operation: Operation,
        key: PreparedKey,
    ) -> Result<(), BookError> {
        self.log(JournalEvent::Prepared {
            library: library.to_owned(),
            operation,
            sha256: key.sha256.clone(),
            keygen_ns: key.keygen_ns,
        })?;
        self.prepared
            .borrow_mut()
            .insert((library.to_owned(), operation), key);
        Ok(())
    }

    /// Seals the run; nothing can be written afterwards.
    pub fn seal(&self) -> Result<String, BookError> {
        let dir: &Path = self.directory.path();
        Ok(seal::seal(dir, &mut self.journal.borrow_mut())?)
    }
}

/// Path of a prepared key below the run.
pub fn key_file(sha256: &str) -> String {
    format!("keys/{sha256}.key")
}

fn prepared(chain: &Chain) -> BTreeMap<(String, Operation), PreparedKey> {
    let mut keys = BTreeMap::new();
    for line in &chain.lines {
        if let JournalEvent::Prepared {
            library,
            operation,
            sha256,
            keygen_ns,
        } = &line.event
        {
            let key = PreparedKey {
                sha256: sha256.clone(),
                keygen_ns: *keygen_ns,
            };
            keys.insert((library.clone(), *operation), key);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::directory::Request;

    fn book(runs: &Path) -> Book {
        let request = Request {
            system: "local".into(),
            plan: "quick".into(),
            config_sha256: "00".into(),
            only: None,
            cpus: None,
            study: None,
        };
        let (directory, journal) = RunDirectory::create(runs, None, &request).unwrap();
        Book::new(directory, journal).unwrap()
    }

    fn reopen(book: Book) -> Book {
        let path = book.directory().path().to_owned();
        drop(book);
        let (directory, journal, chain) = RunDirectory::open(&path).unwrap();
        Book::resumed(directory, journal, chain)
    }

    #[test]
    fn what_was_begun_and_prepared_is_known_after_a_resume() {
        let home = tempfile::tempdir().unwrap();
        let book = book(&home.path().join("runs"));
        let begun = |trial, attempt| JournalEvent::AttemptBegun {
            record: "records/c/a.json".into(),
            trial,
            attempt,
        };
        for k in 0..2 {
            let session = JournalEvent::SessionBegun {
                session: k,
                host_token: "00".into(),
            };
            book.log(session).unwrap();
            book.log(begun(k, 0)).unwrap();
        }
        let bytes = b"a key";
        let key = PreparedKey {
            sha256: hash::sha256(bytes),
            keygen_ns: 7,
        };
        let file = book.path(&key_file(&key.sha256));
        std::fs::write(&file, bytes).unwrap();
        book.add_prepared("lib", Operation::Sign, key.clone())
            .unwrap();
        let sha256 = book.write("kat/c/a.json", &["PASS"]).unwrap();

        let book = reopen(book);
        let found = book.begun("records/c/a.json");
        let places: Vec<_> = found.iter().map(|b| (b.session, b.trial)).collect();
        assert_eq!(places, [(0, 0), (1, 1)]);
        assert_eq!(book.begun("records/c/b.json"), []);
        assert_eq!(book.prepared("lib", Operation::Sign), Some(key));
        assert_eq!(book.prepared("lib", Operation::Verify), None);
        std::fs::write(&file, "another key").unwrap();
        assert_eq!(book.prepared("lib", Operation::Sign), None);
        let stored = book.read::<Vec<String>>("kat/c/a.json").unwrap().unwrap();
        assert_eq!((stored.sha256, stored.value), (sha256, vec!["PASS".into()]));
        assert!(book.read::<Vec<String>>("kat/c/b.json").unwrap().is_none());
    }
}
