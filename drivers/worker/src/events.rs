//! Events on the private descriptor: each with the token of the request and the next number.

use crate::error::{Result, WorkerError};
use protocol::{Body, Event, Failure, FailureCode};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of the next event. Global: the fault handler reads it.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The way out.
#[derive(Debug)]
pub struct Events {
    file: File,
    token: String,
}

impl Events {
    /// Events of the request with `token`, written to `descriptor`.
    pub fn new(descriptor: OwnedFd, token: String) -> Events {
        Events {
            file: descriptor.into(),
            token,
        }
    }

    /// Writes one event, whole, as one line.
    pub fn send(&mut self, body: Body) -> Result<()> {
        let event = Event {
            token: self.token.clone(),
            seq: NEXT.fetch_add(1, Ordering::SeqCst),
            body,
        };
        let mut line = serde_json::to_vec(&event).expect("event types are plain data");
        line.push(b'\n');
        self.file
            .write_all(&line)
            .map_err(WorkerError::io("writing an event"))
    }

    /// What the process says when its stack of `stack_bytes` is exhausted.
    pub fn last_words(&self, stack_bytes: usize) -> LastWords {
        let failure = Body::Failed(Failure {
            code: FailureCode::StackExhausted,
            text: format!("stack exhausted at {stack_bytes} bytes"),
        });
        LastWords {
            descriptor: self.file.as_raw_fd(),
            lines: [
                split_at_number(&self.token, failure),
                split_at_number(&self.token, Body::Done),
            ],
        }
    }
}

/// Serialised events with a gap for the number: made before, written by a signal handler.
#[derive(Debug)]
pub struct LastWords {
    descriptor: RawFd,
    lines: [(Vec<u8>, Vec<u8>); 2],
}

impl LastWords {
    /// Writes the events with the next numbers. Async-signal-safe: no allocation, no lock.
    pub fn speak(&self) {
        for (before, after) in &self.lines {
            let mut digits = [0u8; 20];
            let number = decimal(NEXT.fetch_add(1, Ordering::SeqCst), &mut digits);
            for part in [before, number, after] {
                write_all(self.descriptor, part);
            }
        }
    }
}

fn write_all(descriptor: RawFd, mut part: &[u8]) {
    while !part.is_empty() {
        // SAFETY: `part` is valid memory of that length; `write` is async-signal-safe.
        let written = unsafe { libc::write(descriptor, part.as_ptr().cast(), part.len()) };
        match usize::try_from(written) {
            Ok(bytes) if bytes > 0 => part = &part[bytes..],
            _ => return, // the reader is gone: nobody to tell
        }
    }
}

/// Digits of `value` at the end of `digits`.
fn decimal(mut value: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &digits[start..];
        }
    }
}

fn split_at_number(token: &str, body: Body) -> (Vec<u8>, Vec<u8>) {
    let event = Event {
        token: token.to_owned(),
        seq: 0,
        body,
    };
    let text = serde_json::to_string(&event).expect("event types are plain data") + "\n";
    const NUMBER: &str = "\"seq\":";
    let at = text.find(NUMBER).expect("every event has a number") + NUMBER.len();
    (text[..at].into(), text[at + 1..].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_events_like_any_other() {
        let body = Body::Done;
        let (before, after) = split_at_number("to\"ken", body.clone());
        let mut digits = [0; 20];
        let line = [&before[..], decimal(u64::MAX, &mut digits), &after[..]].concat();
        let event: Event = serde_json::from_slice(&line).unwrap();
        assert_eq!(
            (event.token.as_str(), event.seq, event.body),
            ("to\"ken", u64::MAX, body)
        );
        assert_eq!(decimal(0, &mut digits), b"0");
    }
}
