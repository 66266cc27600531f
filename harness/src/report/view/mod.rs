//! View models: what each page shows, decided here down to the last cell, footnote and missing mark,
//! as plain data that templates only arrange.

pub mod candidate;
mod common;
mod environment;
pub mod index;
mod memory;
mod performance;
mod symmetric;

pub use candidate::CandidatePage;
pub use common::{is_empty, page_name, Place, SystemLink};
pub use index::IndexPage;
