//! The measurement campaign orchestrator as a library.
//!
//! Data flows one way: plan, build, kat, calibrate, measure, memory, profile, seal, publish,
//! report. Each phase reads files of earlier phases and writes its own; `measure` never looks at
//! `report`, `report` never measures, `audit` recomputes and shares no arithmetic with `measure`.
#![forbid(unsafe_code)]

pub mod audit;
pub mod build;
pub mod catalogue;
pub mod cli;
pub mod clock;
pub mod collect;
pub mod compare;
pub mod config;
pub mod dataset;
pub mod evidence;
pub mod export;
pub mod hash;
pub mod host;
pub mod identity;
pub mod import;
pub mod json;
pub mod kat;
pub mod outlook;
pub mod pack;
pub mod phases;
pub mod place;
pub mod plan;
pub mod process;
pub mod progress;
pub mod publish;
pub mod report;
pub mod run;
pub mod schema;
pub mod select;
pub mod signature;
pub mod stats;
#[doc(hidden)]
pub mod testing;
pub mod values;
pub mod worker;
