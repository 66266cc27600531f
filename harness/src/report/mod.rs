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
//! | `chart/` | charts as SVG |
//! | `pages.rs` | which pages there are, and their files |
//! | `png.rs` | charts as PNG files, on request |
//! | `comparison.rs` | page and data of a comparison |
//! | `check.rs` | pages that are there against those that a dataset gives |
//! | `site.rs` | where the pages of a run or a dataset stand |

pub mod chart;
pub mod check;
pub mod comparison;
pub mod escape;
pub mod format;
pub mod html;
mod pages;
pub mod png;
pub mod site;
pub mod table;
pub mod templates;
pub mod view;

pub use pages::{render, render_run, render_systems, write, PageFile, ReportError};
