//! Known answer tests: what was published, and what our libraries produce.
//!
//! The text is produced and hashed by the worker; here are the published digests ([`manifest`]).

pub mod manifest;
