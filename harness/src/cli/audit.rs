//! `campaign audit`: recomputes every published number from the raw evidence.

/// Arguments of `audit`.
pub type Args = super::options::Datasets;
