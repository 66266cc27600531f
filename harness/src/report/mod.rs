//! Pages from evidence. Templates hold words, Rust decides values, order, footnotes and missing
//! marks before it renders; rendering reads a run or a dataset and never measures.

pub mod format;
