//! Memory that the worker owns itself: mappings, buffers with guard bytes, the dedicated stack.
//!
//! Nothing here comes from the allocator that the library uses, so that the worker's buffers
//! neither warm nor fragment it.

mod guarded;
mod mapping;
mod stack;

pub use guarded::{Guarded, Touched};
pub use mapping::Mapping;
pub use stack::{contain, OnStack, Stack};
