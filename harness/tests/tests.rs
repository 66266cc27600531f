//! Integration tests of the orchestrator: they drive the real binary and real C libraries.
//! One line per module.

mod process;
mod support;
