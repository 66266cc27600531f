//! Pages from evidence. Templates hold words, Rust decides values, order, footnotes and missing
//! marks before it renders; rendering reads a run or a dataset and never measures.
//!
//! | file | holds |
//! |---|---|
//! | `view/` | what each page shows, as plain data |
//! | `table.rs` | tables, cells and notes, and how they are written in Markdown |
//! | `format.rs` | number formats |
//! | `escape.rs` | names and notes from data, inside Markdown |
//! | `templates.rs` | the templates and their filters |
//! | `html.rs` | HTML from the Markdown of a page |
//! | `pages.rs` | which pages there are, and their files |

pub mod chart;
pub mod escape;
pub mod format;
pub mod html;
mod pages;
pub mod table;
pub mod templates;
pub mod view;

pub use pages::{render, render_run, write, PageFile, ReportError};
