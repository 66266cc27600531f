//! What can go wrong in a worker, and which failure of the protocol it becomes.

use protocol::{Failure, FailureCode};

/// A task that could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The request cannot be read, or asks for what this worker does not do.
    #[error("bad request: {0}")]
    Request(String),
    /// The CPU cannot be had, or was taken away.
    #[error("{0}")]
    Pin(String),
    /// The library does not load.
    #[error("{0}")]
    Load(String),
    /// A call returned an error.
    #[error("{call} returned {code}{place}")]
    Call {
        /// Function.
        call: &'static str,
        /// What it returned.
        code: i32,
        /// Where: ` in record 3`, or nothing.
        place: String,
    },
    /// A signature did not verify, or a modified one did.
    #[error("{0}")]
    NotVerified(String),
    /// A call wrote outside its buffer, or claimed more than it.
    #[error("{0}")]
    Overflow(String),
    /// The library does what the API forbids.
    #[error("{0}")]
    Contract(String),
    /// A counter failed in the middle of the work.
    #[error("cycle source {what}: {source}")]
    Counter {
        /// Source and step.
        what: String,
        /// Cause.
        source: std::io::Error,
    },
    /// Time went backwards, or the machine was suspended.
    #[error("{0}")]
    Clock(String),
    /// A protection that was asked for is not in force.
    #[error("{0}")]
    Isolation(String),
    /// Input or output of the worker itself failed.
    #[error("{what}: {source}")]
    Io {
        /// File or descriptor, and the step.
        what: String,
        /// Cause.
        source: std::io::Error,
    },
    /// No memory for inputs.
    #[error("no memory for {what} ({bytes} bytes): {source}")]
    Memory {
        /// What it was for.
        what: &'static str,
        /// Bytes asked for.
        bytes: u64,
        /// Cause.
        source: std::io::Error,
    },
}

impl WorkerError {
    /// An I/O error with the step that failed.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> WorkerError {
        let what = what.into();
        move |source| WorkerError::Io { what, source }
    }

    /// Adds where a call failed; other errors stay as they are.
    #[must_use]
    pub fn at(self, place: impl std::fmt::Display) -> WorkerError {
        match self {
            WorkerError::Call { call, code, .. } => WorkerError::Call {
                call,
                code,
                place: format!(" in {place}"),
            },
            WorkerError::NotVerified(text) => {
                WorkerError::NotVerified(format!("{text} in {place}"))
            }
            WorkerError::Overflow(text) => WorkerError::Overflow(format!("{text} in {place}")),
            WorkerError::Contract(text) => WorkerError::Contract(format!("{text} in {place}")),
            other => other,
        }
    }

    /// The class of failure that goes out.
    pub fn code(&self) -> FailureCode {
        match self {
            WorkerError::Request(_) => FailureCode::BadRequest,
            WorkerError::Pin(_) => FailureCode::Pin,
            WorkerError::Load(_) => FailureCode::LoadFail,
            WorkerError::Call { .. } => FailureCode::CallFailed,
            WorkerError::NotVerified(_) => FailureCode::NotVerified,
            WorkerError::Overflow(_) => FailureCode::Overflow,
            WorkerError::Contract(_) => FailureCode::Contract,
            WorkerError::Counter { .. } => FailureCode::Counter,
            WorkerError::Clock(_) => FailureCode::Clock,
            WorkerError::Isolation(_) => FailureCode::Isolation,
            WorkerError::Io { .. } => FailureCode::Io,
            WorkerError::Memory { .. } => FailureCode::Memory,
        }
    }

    /// The failure as it goes out.
    pub fn failure(&self) -> Failure {
        Failure {
            code: self.code(),
            text: self.to_string(),
        }
    }
}

/// Result of a step of a worker.
pub type Result<T> = std::result::Result<T, WorkerError>;
