//! phases
pub mod context;
pub mod kat;
pub mod measure;
mod together;
