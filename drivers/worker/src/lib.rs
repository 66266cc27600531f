//! The process that loads ONE candidate library and times ONE operation of it.
//!
//! All `unsafe` of the project is here. What to run comes as one request on standard input, what
//! was found goes out as events on a private descriptor (crate `protocol`).

pub mod counters;
pub mod error;
pub mod events;
pub mod faults;
pub mod isolation;
pub mod kat;
pub mod library;
pub mod memory;
pub mod process;
pub mod random;
pub mod serve;
pub mod tasks;
pub mod timing;
pub mod traces;
