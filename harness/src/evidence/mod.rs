//! The evidence: versioned types of every JSON file that a run writes, their reader and writer,
//! the journal and the seal.
//!
//! Only shapes and storage are here. Derived values are computed by [`crate::stats`] and recomputed
//! by `audit` with code of its own; nothing in this module does arithmetic on measurements.

mod build;
mod campaign;
mod cells;
mod environment;
mod head;
pub mod journal;
mod missing;
mod other;
mod paths;
pub mod seal;
pub mod store;
mod study;
mod timing;

pub use build::*;
pub use campaign::*;
pub use cells::*;
pub use environment::*;
pub use head::*;
pub use missing::*;
pub use other::*;
pub use paths::*;
pub use study::*;
pub use timing::*;
