//! Writing to standard output. A reader that closes the pipe early (`| head`) is no error, and a
//! disk that is full is one.

use super::exit::Failure;
use std::io::{ErrorKind, Write};

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output: see where it goes, and whether that disk is full")]
pub struct OutputError(#[source] std::io::Error);

/// Prints a text as it is.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::could_not(OutputError(error)))
        }
        _ => Ok(()),
    }
}

/// Prints a value as one JSON document (`--json`).
pub fn print_json<T: serde::Serialize>(value: &T) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(Failure::could_not)?;
    text.push('\n');
    print(&text)
}
