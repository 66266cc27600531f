//! The words that the orchestrator and the worker share: one [`Request`] on the worker's standard
//! input, a stream of [`Event`]s on a private descriptor.
//!
//! The crate holds data only. What a worker does with a request is `drivers/worker`'s, what an
//! event becomes in the evidence is `harness`'s. Integers stay integers: time is nanoseconds,
//! memory is bytes, and a value that could not be had is `None` beside a reason.

mod event;
mod request;

pub use event::*;
pub use request::*;

/// SHA-256 prefix over the sources that decide what a worker does; equal in a worker and an
/// orchestrator built from the same tree, whatever the profile or the target.
pub const BUILD_ID: &str = env!("CAMPAIGN_BUILD_ID");

/// Version of this protocol; part of every request and of the first event.
pub const VERSION: u32 = 1;

/// First part of the hash that every recorded input stream starts from.
pub const INPUT_DOMAIN: &[u8] = b"campaign/1";
