//! The build phase of a campaign that was packed on another machine: its libraries are taken as they
//! are, by digest, with what `build.json` of the pack says of them.

use super::context::{Context, PhaseError};
use crate::build;
use crate::evidence::store::{self, StoreError};
use crate::evidence::{BuildFile, Reason, ReasonCode, Status, BUILD_FILE};
use crate::hash;
use crate::progress::{Event, StepEnd};
use std::path::Path;
use std::time::{Duration, Instant};

/// A pack cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It is for another system.
    #[error("the pack was made for the system {theirs}, and this run is of {ours}; make one for it with `campaign pack --system {ours}`")]
    AnotherSystem {
        /// The pack's.
        theirs: String,
        /// The run's.
        ours: String,
    },
    /// A file of it is not what it says.
    #[error("`{file}` of the pack was changed since it was packed; unpack it again")]
    Changed {
        /// The file, below the pack.
        file: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Takes over what the run does not have yet.
pub fn run(context: &Context, pack: &Path) -> Result<(), PhaseError> {
    let start = Instant::now();
    let known = context.book.read::<BuildFile>(BUILD_FILE)?;
    let phase = "build";
    context.progress.event(Event::Begin {
        phase,
        steps: usize::from(known.is_none()),
        planned: Duration::ZERO,
    });
    if known.is_some() {
        return Ok(());
    }
    let file = take(context, pack).map_err(PhaseError::Pack)?;
    context.book.write(BUILD_FILE, &file)?;
    context.progress.event(Event::Step {
        label: "pack",
        planned: Duration::ZERO,
        end: StepEnd::Silent,
    });
    context.progress.event(Event::End {
        phase,
        took: start.elapsed(),
    });
    Ok(())
}

fn take(context: &Context, pack: &Path) -> Result<BuildFile, PackError> {
    let mut file: BuildFile = store::read_json(&pack.join(BUILD_FILE))?;
    if file.system != context.system.id {
        return Err(PackError::AnotherSystem {
            theirs: file.system,
            ours: context.system.id.clone(),
        });
    }
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let wanted = |identity: &crate::identity::Identity| {
        context.active().any(|row| row.identity == *identity)
    };
    file.rows.retain(|row| wanted(&row.identity));
    for row in &mut file.rows {
        if let Some(why) = build::refuses(row, &cpuinfo) {
            row.status = Status::Skipped;
            row.reason = Some(Reason::new(ReasonCode::CpuFeature, why));
            continue;
        }
        for library in row.libraries.values() {
            copy(pack, context, &library.file, &library.sha256)?;
        }
    }
    Ok(file)
}

/// Copies one library, whose content must have that digest.
fn copy(pack: &Path, context: &Context, file: &str, sha256: &str) -> Result<(), PackError> {
    let from = pack.join(file);
    let bytes = std::fs::read(&from).map_err(|source| StoreError::Read { path: from, source })?;
    if hash::sha256(&bytes) != sha256 {
        return Err(PackError::Changed {
            file: file.to_owned(),
        });
    }
    store::write_atomic(&context.book.path(file), &bytes)?;
    Ok(())
}
