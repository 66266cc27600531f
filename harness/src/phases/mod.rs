//! The phases of a campaign. Each reads files of earlier phases and writes its own, does nothing that
//! is already done, and can be run alone.
//!
//! | file | does |
//! |---|---|
//! | `pipeline.rs` | opens the run and carries the phases out in order |
//! | `context.rs` | what every phase works with |
//! | `kat.rs`, `calibrate.rs`, `measure/`, `memory.rs`, `profile.rs` | one phase each |
//! | `finish.rs` | `campaign.json` |
//! | `study/` | the message-size study, in place of measure, memory and profile |
//! | `inputs.rs`, `singles.rs`, `together.rs` | what several phases share |
//!
//! The build phase is [`crate::build`]; of a packed campaign, [`packed`].

pub mod calibrate;
pub mod context;
mod finish;
mod inputs;
pub mod kat;
pub mod measure;
pub mod memory;
pub mod packed;
pub mod pipeline;
pub mod profile;
mod singles;
pub mod study;
mod together;

/// Work of one CPU.
type Lane<'a> =
    std::pin::Pin<Box<dyn std::future::Future<Output = Result<(), context::PhaseError>> + 'a>>;
