//! `campaign`: the command line of the orchestrator.
#![forbid(unsafe_code)]

fn main() {}
