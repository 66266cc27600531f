//! A run: one directory that is begun, interrupted, resumed and sealed.
//!
//! [`directory`] finds or makes it, [`lock`] keeps two orchestrators apart, [`preflight`] looks for
//! space before anything is measured. What is measured inside is the business of [`crate::phases`].

pub mod book;
pub mod directory;
pub mod lock;
pub mod preflight;
pub mod session;
