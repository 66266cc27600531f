//! The build phase of a campaign that was packed on another machine: its libraries are taken as they
//! are, by digest, with what `build.json` of the pack says of them.

use super::context::{Context, PhaseError};
use crate::build;
use crate::evidence::store::{self, StoreError};
use crate::evidence::{BuildFile, BUILD_FILE};
use crate::hash;
use crate::pack::{self, PackError};
use crate::progress::{Event, StepEnd};
use std::path::Path;
use std::time::{Duration, Instant};

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
    for row in context.active() {
        if !file.rows.iter().any(|built| built.identity == row.identity) {
            let identity = row.identity.to_string();
            return Err(PackError::Absent { identity });
        }
    }
    let listed = pack::digests(pack)?;
    for row in &mut file.rows {
        if let Some(why) = build::refuses(row, &cpuinfo) {
            *row = build::skipped(row, why);
            continue;
        }
        for library in row.libraries.values() {
            let entry = listed.iter().find(|entry| entry.path == library.file);
            if entry.is_none_or(|entry| entry.sha256 != library.sha256) {
                let file = library.file.clone();
                return Err(PackError::Changed { file });
            }
            copy(pack, context, &library.file, &library.sha256)?;
        }
    }
    build::explain_rows(&mut file);
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
