//! Integration tests of the orchestrator: they drive the real binary and real C libraries.
//! One line per module.

mod arm_campaign;
mod arm_machine;
mod audit;
mod audit_kat;
mod bad_input;
mod build;
mod compare;
mod drivers_abi;
mod drivers_dilithium;
mod drivers_dove;
mod drivers_iccs;
mod durability;
mod emulated;
mod export;
mod forged;
mod format;
mod host;
mod import;
mod kat_faults;
mod memory_profile;
mod pack;
mod plan;
mod process;
mod publish;
mod readme;
mod report;
mod report_browser;
mod run;
mod sealed;
mod study;
mod support;
mod zoo;
