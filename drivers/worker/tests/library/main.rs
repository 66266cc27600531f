//! The real worker on small C libraries, one behaviour each.
//!
//! `toy` builds the libraries, `drive` starts workers; the other files are one group of tasks each.

mod drive;
mod kat;
mod loading;
mod measuring;
mod single;
mod study;
#[path = "../support/mod.rs"]
mod support;
mod toy;
