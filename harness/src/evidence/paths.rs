//! Where each file lies below a run or a dataset.

use super::{LibraryKind, MESSAGE_SIZE};
use crate::identity::Identity;
use protocol::{Operation, StudyMode};

/// The campaign.
pub const CAMPAIGN_FILE: &str = "campaign.json";
/// What was built.
pub const BUILD_FILE: &str = "build.json";

/// The machine in session `k`.
pub fn environment_file(k: u32) -> String {
    format!("environment/{k}.json")
}

/// KAT evidence of a library.
pub fn kat_file(identity: &Identity, library: LibraryKind) -> String {
    let (candidate, stem) = (&identity.candidate, identity.stem());
    format!("kat/{candidate}/{stem}.{}.json", library.name())
}

/// Log of a KAT.
pub fn kat_log(identity: &Identity, library: LibraryKind) -> String {
    let (candidate, stem) = (&identity.candidate, identity.stem());
    format!("kat/{candidate}/{stem}.{}.log", library.name())
}

/// Calibrated cost.
pub fn calibrate_file(identity: &Identity, operation: Operation) -> String {
    format!("calibrate/{}", identity.operation_file(operation))
}

/// Timing record.
pub fn record_file(identity: &Identity, operation: Operation) -> String {
    format!("records/{}", identity.operation_file(operation))
}

/// Second timing of the noise floor.
pub fn aa_file(identity: &Identity) -> String {
    format!("records/{}", identity.aa_file())
}

/// Isolated memory.
pub fn memory_file(identity: &Identity, operation: Operation) -> String {
    format!("memory/{}", identity.operation_file(operation))
}

/// Symmetric share.
pub fn profile_file(identity: &Identity, operation: Operation) -> String {
    format!("profile/{}", identity.operation_file(operation))
}

/// One point of the message-size study.
pub fn study_file(
    identity: &Identity,
    operation: Operation,
    mode: StudyMode,
    size_bytes: u64,
) -> String {
    let (candidate, stem, mode) = (&identity.candidate, identity.stem(), mode.name());
    format!("study/{MESSAGE_SIZE}/{candidate}/{stem}__{operation}__{mode}__{size_bytes}.json")
}

/// Models of one operation in the message-size study.
pub fn fit_file(identity: &Identity, operation: Operation) -> String {
    let (candidate, stem) = (&identity.candidate, identity.stem());
    format!("study/{MESSAGE_SIZE}/{candidate}/{stem}__{operation}.fit.json")
}
