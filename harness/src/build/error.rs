//! What can go wrong in the build phase as a whole. A row that does not build is no error of the
//! phase: it becomes a row with its log, and the rest goes on.

use crate::evidence::store::StoreError;
use crate::identity::Identity;
use std::io;
use std::path::PathBuf;

/// Why the build phase could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The compiler of the system is not on PATH.
    #[error("compiler `{command}` is not here: install the package {package} (Debian, Ubuntu), or name another compiler with `cc` of the system in campaign.toml")]
    MissingCompiler {
        /// The command of the configuration.
        command: String,
        /// Debian packages.
        package: String,
    },
    /// The compiler is there and cannot make a trivial shared library.
    #[error("compiler `{command}` cannot build a trivial shared library (are the C library's headers there? package {package}):\n{log}")]
    UnfitCompiler {
        /// The command.
        command: String,
        /// Debian packages that it needs beside itself.
        package: String,
        /// How it ended and what it said.
        log: String,
    },
    /// The compiler makes code for another machine.
    #[error("compiler `{command}` makes code for {target}, but the system needs {arch}: correct `cc` of the system in campaign.toml")]
    WrongTarget {
        /// The command.
        command: String,
        /// What `-dumpmachine` says.
        target: String,
        /// Architecture of the system.
        arch: &'static str,
    },
    /// An identity that the configuration does not have.
    #[error("`{0}` is not in the configuration")]
    UnknownIdentity(Identity),
    /// The file of a run could not be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The cache of objects cannot be used.
    #[error("the build cache `{}` cannot be used: make it writable and make room, or name another place with the environment variable CAMPAIGN_CACHE", .path.display())]
    Cache {
        /// File or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Whoever keeps the journal refused.
    #[error("a built file could not be entered in the journal")]
    Journal(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Processes of a tool outlived SIGKILL.
    #[error(transparent)]
    Survivors(#[from] crate::process::Survivors),
    /// A stop was asked for.
    #[error("interrupted while building; objects that are complete are kept")]
    Interrupted,
}

/// Why one identity did not build.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// Nothing matches a source pattern.
    #[error("no file matches the source `{pattern}`")]
    NoSource {
        /// The pattern of the configuration.
        pattern: String,
    },
    /// The pattern is wrong, or the folder cannot be read.
    #[error("source `{pattern}`: {cause}")]
    Pattern {
        /// The pattern of the configuration.
        pattern: String,
        /// The cause.
        cause: String,
    },
    /// `{name}` of a path stands for no crate.
    #[error(
        "`{pattern}` names a source crate that `source_crates` does not have; it has: {known}"
    )]
    UnknownCrate {
        /// The pattern of the configuration.
        pattern: String,
        /// Names that exist.
        known: String,
    },
    /// The source crates could not be found.
    #[error(transparent)]
    Crates(#[from] std::sync::Arc<super::crates::CratesError>),
    /// The build has no flags for the architecture.
    #[error("build `{build}` has no flags for {arch}: add `cflags.{arch}` to [build.{build}]")]
    NoFlags {
        /// Name of the build.
        build: String,
        /// Architecture.
        arch: &'static str,
    },
    /// The compiler or linker refused.
    #[error("{what} failed")]
    Tool {
        /// `compiling drivers/dove/sign.c`, `linking the timed library`.
        what: String,
        /// Command and output, bounded.
        log: String,
    },
    /// A file changed while it was compiled.
    #[error("`{0}` or a file that it includes changed while it was compiled: build again when nobody is editing it")]
    Unsteady(String),
    /// What to wrap cannot be determined.
    #[error(transparent)]
    Wrap(#[from] super::wrap::WrapError),
    /// An object or a library is not what it should be.
    #[error("{what} cannot be read as ELF")]
    Elf {
        /// Which file.
        what: String,
        /// The cause.
        source: super::elf::ElfError,
    },
    /// A file of the candidate could not be read.
    #[error("cannot read `{name}`: {source}")]
    Read {
        /// The file.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// Not this row's fault: the phase ends.
    #[error(transparent)]
    Fatal(#[from] BuildError),
}

impl RowError {
    /// Message with the log of the tool, if one ran.
    pub fn text(&self) -> String {
        match self {
            RowError::Tool { log, .. } => format!("{self}:\n{log}"),
            _ => {
                let mut text = self.to_string();
                let mut cause = std::error::Error::source(self);
                while let Some(error) = cause {
                    text += &format!("\ncause: {error}");
                    cause = error.source();
                }
                text
            }
        }
    }

    /// Whether other flags might help.
    pub fn is_about_flags(&self) -> bool {
        matches!(self, RowError::Tool { .. } | RowError::NoFlags { .. })
    }
}
