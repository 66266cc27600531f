//! The worker from outside: where its binary comes from, and one session with it.
//!
//! [`binary`] finds or builds it; [`session`] starts it with one request and believes only events
//! that carry the request's token, in order, up to `done`. What the answers mean is decided by the
//! phases.

pub mod binary;
pub mod session;

pub use binary::{Worker, WorkerError};
pub use session::{Answer, Ending, Job};
