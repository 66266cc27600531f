//! The C that every library is made with, carried inside this program.
//!
//! Adapter, wrappers and headers belong to the version of the orchestrator, not to a campaign: a
//! configuration may lie anywhere, and its libraries must still speak the interface that this version
//! speaks. They are compiled in from `drivers/` and unfolded into the cache under the digest of their
//! contents; records name them by their place in the repository.

use super::error::BuildError;
use crate::hash;
use std::path::{Path, PathBuf};

macro_rules! embedded {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../", $path)))),+]
    };
}

/// Place in the repository, content.
const FILES: &[(&str, &str)] = embedded![
    "drivers/abi/adapter.c",
    "drivers/abi/campaign_abi.h",
    "drivers/abi/export.map",
    "drivers/abi/include/auxfunc.h",
    "drivers/abi/include/drng.h",
    "drivers/abi/include/sig_api.h",
    "drivers/abi/memory.c",
    "drivers/abi/profile.c",
    "drivers/abi/profile.h",
    "drivers/dilithium/stream.c",
];

/// Template of the wrapper source.
pub const WRAP_TEMPLATE: &str = include_str!("../../../drivers/abi/wrap.c.in");
/// Name of that template in messages.
pub const WRAP_TEMPLATE_NAME: &str = "drivers/abi/wrap.c.in";
/// Table of the ICCS helper functions.
pub const WRAPPABLE: &str = include_str!("../../../drivers/abi/wrappable.toml");
/// Name of that table in messages.
pub const WRAPPABLE_NAME: &str = "drivers/abi/wrappable.toml";

/// Include folders, for every library, after the candidate's own.
pub const INCLUDE: [&str; 2] = ["drivers/abi", "drivers/abi/include"];
/// Version script.
pub const EXPORT_MAP: &str = "drivers/abi/export.map";
/// Compiled into every library.
pub const ADAPTER: &str = "drivers/abi/adapter.c";
/// Of a profile library, beside the generated wrappers.
pub const PROFILE: &str = "drivers/abi/profile.c";
/// Of a memory library.
pub const MEMORY: &str = "drivers/abi/memory.c";
/// Of a stream library.
pub const STREAM: &str = "drivers/dilithium/stream.c";
/// The function through which a stream library takes its message: only where it crosses the link can
/// there be one.
pub const STREAM_FUNCTION: &str = "shake256_inc_absorb";

/// Unfolds the files below `cache` and returns their folder. What is there is compared, not trusted.
pub fn unfold(cache: &Path) -> Result<PathBuf, BuildError> {
    let all: String = FILES
        .iter()
        .map(|(path, text)| format!("{} {path}\n", hash::sha256(text.as_bytes())))
        .collect();
    let dir = cache.join("abi").join(&hash::sha256(all.as_bytes())[..16]);
    for (path, text) in FILES {
        let path = dir.join(path);
        if std::fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            continue;
        }
        super::cache::put(&path, text.as_bytes())?;
    }
    Ok(dir)
}
