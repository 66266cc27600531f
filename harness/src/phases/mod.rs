//! phases
pub mod measure;
