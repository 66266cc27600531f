//! The machine: what it is, what state it is in, which CPUs may be used.

pub mod affinity;
pub mod check;
pub mod facts;
