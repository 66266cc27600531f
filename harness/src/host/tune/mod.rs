//! Fixing the host for measuring, and restoring exactly what it was.
//!
//! [`plan`] decides from the machine's files what to change; [`apply`] saves every value that a change
//! touches, or may touch, to a journal on disk and then makes the changes one by one; [`restore`]
//! brings each saved value back. Between any two steps the process may be killed or the machine may
//! lose power: what is on disk is enough to restore. [`guard`] does both around a run, in a process
//! that outlives the orchestrator.
//!
//! Nothing is changed that could not be restored: a value that cannot be read is not written, SMT stays
//! on where a process is bound to the threads that would go, and without a journal nothing begins.
//!
//! | file | owns |
//! |---|---|
//! | `plan.rs` | the decision |
//! | `journal.rs` | the journal: lines, writing, reading, who holds it |
//! | `apply.rs`, `restore.rs` | the acts |
//! | `guard.rs` | the supervisor of `run --tune` |

mod apply;
pub mod guard;
mod journal;
mod plan;
mod restore;

pub use apply::{apply, Applied, Change, Refused};
pub use journal::{left, How, Left, JOURNAL};
pub use plan::{plan, Plan, Step, Target};
pub use restore::{restore, Restored, Unrestored};

use std::io;
use std::path::PathBuf;

/// The host cannot be tuned or restored.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// Switching SMT off would take the measured CPU away.
    #[error("CPU {cpu} is the second thread of a core and goes offline when SMT is switched off; measure on CPU {first} instead (--cpu {first})")]
    SecondThread {
        /// The CPU.
        cpu: u32,
        /// The thread of its core that stays.
        first: u32,
    },
    /// There is a journal already.
    #[error("{0}; `campaign untune` restores it first")]
    Tuned(Left),
    /// The process that tuned is alive and will restore.
    #[error("{0}; wait for its end, which restores the host")]
    InUse(Left),
    /// The journal cannot be begun, so that nothing was changed.
    #[error("{path}: the journal of the values before cannot be made, so nothing was changed; this needs root", path = path.display())]
    NoJournal {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The journal could not be continued.
    #[error("tuning was given up, and {}", match open { 0 => "everything is as it was".to_owned(), n => format!("{n} values are not restored: see `campaign untune`") })]
    GivenUp {
        /// Values that could not be restored.
        open: usize,
        /// What was in the way.
        source: Box<TuneError>,
    },
    /// The journal cannot be used.
    #[error("{path}: the journal of the values before cannot be {action}; this needs root", path = path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The journal was cut or changed in the middle.
    #[error("{path}, line {line}: it is damaged, so nothing is restored from it; the lines before it hold the values to restore by hand; remove it then", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
}
