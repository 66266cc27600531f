//! phases
pub mod calibrate;
pub mod context;
pub mod inputs;
pub mod kat;
pub mod measure;
mod together;

/// Work of one CPU.
type Lane<'a> =
    std::pin::Pin<Box<dyn std::future::Future<Output = Result<(), context::PhaseError>> + 'a>>;
