//! Run directories: layout, numbers, and which one a command means.
//!
//! A run is `runs/<system>-<plan>-<k>`, mode 0700. It comes into being whole: made under another
//! name with its first journal line, lock and salt in place, then renamed. The first line holds the
//! request that made the run, and a resume must ask for the same.

use super::lock::{self, Lock, LockError, Patience};
use crate::evidence::journal::{self, Chain, Journal, JournalError, JournalEvent, JOURNAL};
use crate::evidence::seal;
use crate::evidence::store::{self, StoreError};
use crate::evidence::StudySettings;
use crate::values::number_list;
use protocol::path_to_text;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Folder of the runs, below the folder of the configuration.
pub const RUNS: &str = "runs";

/// Salt of the host token, 32 bytes; it never leaves the run.
const SALT: &str = "keys/host.salt";
/// Lock of the run.
const LOCK: &str = "keys/run.lock";
/// Name of a run that is being made.
const UNBORN: &str = ".new-";

/// No run directory can be had.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The run was made by another request.
    #[error("{path}: it is a run of another {what} ({theirs}, asked for {ours}); name another place with --run, or start another run with --new", path = path_to_text(path))]
    Another {
        /// The run.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// What the run has.
        theirs: String,
        /// What was asked for.
        ours: String,
    },
    /// A folder with something else in it.
    #[error("{path}: it is not empty and no run directory; name another place with --run", path = path_to_text(path))]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// A phase was asked for in a sealed run.
    #[error("{path}: the run is sealed, nothing can be added to it; start another with `campaign run --new`", path = path_to_text(path))]
    Sealed {
        /// The run.
        path: PathBuf,
    },
    /// The run's machine is another one.
    #[error("{path}: it was begun on another machine and can only be resumed there; start another run with --new", path = path_to_text(path))]
    AnotherHost {
        /// The run.
        path: PathBuf,
    },
    /// An evidence file is not what the journal says.
    #[error("{path}: it was changed after it was written, or something else put it there; restore it, or start another run with --new", path = path_to_text(path))]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The journal cannot be read, or is damaged.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Another orchestrator works there.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// What a cut-off write left cannot be removed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A folder or file cannot be made or read.
    #[error("{path}: cannot be {action}", path = path_to_text(path))]
    Io {
        /// Which.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// What makes two commands ask for the same run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Id of the system, or `local`.
    pub system: String,
    /// Name of the plan, or `study`.
    pub plan: String,
    /// SHA-256 of the configuration.
    pub config_sha256: String,
    /// `--only` as given.
    pub only: Option<String>,
    /// `--cpu` as given.
    pub cpus: Option<Vec<u32>>,
    /// What is studied; `None` for a campaign.
    pub study: Option<StudySettings>,
}

impl Request {
    /// `<system>-<plan>-`, the beginning of the names of such runs.
    fn prefix(&self) -> String {
        format!("{}-{}-", self.system, self.plan)
    }

    /// What of `theirs` is not as asked for.
    fn difference(&self, theirs: &Request) -> Option<(&'static str, String, String)> {
        let only = |r: &Request| r.only.clone().unwrap_or_else(|| "everything".into());
        let study = |r: &Request| match &r.study {
            None => "none".to_owned(),
            Some(study) => study.describe(),
        };
        let cpus = |r: &Request| match &r.cpus {
            None => "chosen CPUs".into(),
            Some(list) => number_list(list),
        };
        [
            (
                "configuration",
                theirs.config_sha256.clone(),
                self.config_sha256.clone(),
            ),
            ("system", theirs.system.clone(), self.system.clone()),
            ("plan", theirs.plan.clone(), self.plan.clone()),
            ("selection", only(theirs), only(self)),
            ("CPU list", cpus(theirs), cpus(self)),
            ("study", study(theirs), study(self)),
        ]
        .into_iter()
        .find(|(_, theirs, ours)| theirs != ours)
    }
}

/// Which run a command means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The newest of the same request, else a new one.
    Newest,
    /// A new one.
    New,
    /// The one in this folder, new where there is none.
    Named(PathBuf),
}

/// Where the work is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A new run; `None`: with the next free number.
    New(Option<PathBuf>),
    /// One that can be resumed.
    Unfinished(PathBuf),
    /// One that is sealed.
    Complete(PathBuf),
}

/// Decides where the work of `request` is done; `runs` is the folder of the runs. Changes nothing.
pub fn choose(runs: &Path, request: &Request, choice: &Choice) -> Result<Place, DirectoryError> {
    match choice {
        Choice::New => Ok(Place::New(None)),
        Choice::Named(dir) => match request_of(dir)? {
            None => Ok(Place::New(Some(dir.clone()))),
            Some(theirs) => match request.difference(&theirs) {
                None => state(dir),
                Some((what, theirs, ours)) => Err(DirectoryError::Another {
                    path: dir.clone(),
                    what,
                    theirs,
                    ours,
                }),
            },
        },
        Choice::Newest => {
            for (_, dir) in numbered(runs, &request.prefix())?.into_iter().rev() {
                if matches!(request_of(&dir), Ok(Some(theirs)) if theirs == *request) {
                    return state(&dir);
                }
            }
            Ok(Place::New(None))
        }
    }
}

fn state(dir: &Path) -> Result<Place, DirectoryError> {
    let chain = journal::verify(&dir.join(JOURNAL))?;
    Ok(match chain.sealed() {
        Some(_) => Place::Complete(dir.to_owned()),
        None => Place::Unfinished(dir.to_owned()),
    })
}

/// The request that made the run in `dir`; `None` where there is no folder or an empty one.
pub fn request_of(dir: &Path) -> Result<Option<Request>, DirectoryError> {
    let path = dir.join(JOURNAL);
    let first = match first_line(&path) {
        Ok(first) => first,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match is_empty(dir) {
                Ok(true) => Ok(None),
                Ok(false) => Err(DirectoryError::Foreign {
                    path: dir.to_owned(),
                }),
                Err(source) => Err(DirectoryError::Io {
                    path: dir.to_owned(),
                    action: "read",
                    source,
                }),
            }
        }
        Err(source) => {
            return Err(DirectoryError::Io {
                path,
                action: "read",
                source,
            })
        }
    };
    match serde_json::from_slice(&first).map(|line: journal::JournalLine| line.event) {
        Ok(JournalEvent::RunBegun {
            system,
            plan,
            config_sha256,
            only,
            cpus,
            study,
            ..
        }) => Ok(Some(Request {
            system,
            plan,
            config_sha256,
            only,
            cpus,
            study: study.map(|study| *study),
        })),
        _ => Err(DirectoryError::Foreign {
            path: dir.to_owned(),
        }),
    }
}

fn first_line(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::{BufRead, Read};
    let mut line = Vec::new();
    io::BufReader::new(File::open(path)?)
        .take(1 << 20)
        .read_until(b'\n', &mut line)?;
    Ok(line)
}

/// Whether there is nothing in `dir`, or no such folder.
fn is_empty(dir: &Path) -> io::Result<bool> {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Runs of that prefix with their numbers, in order of these.
fn numbered(runs: &Path, prefix: &str) -> Result<Vec<(u64, PathBuf)>, DirectoryError> {
    let entries = match std::fs::read_dir(runs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(DirectoryError::Io {
                path: runs.to_owned(),
                action: "read",
                source,
            })
        }
    };
    let mut found: Vec<(u64, PathBuf)> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()))
        .filter_map(|entry| Some((number(&entry.file_name(), prefix)?, entry.path())))
        .collect();
    found.sort();
    Ok(found)
}

fn number(name: &OsStr, prefix: &str) -> Option<u64> {
    let digits = name.to_str()?.strip_prefix(prefix)?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain)
}

/// An open run: nobody else works on it while this lives.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    salt: [u8; 32],
    order_seed: String,
    request: Request,
    _lock: Lock,
}

impl RunDirectory {
    /// Makes a run: at `at`, or with the next free number below `runs`. Returns it with its journal.
    pub fn create(
        runs: &Path,
        at: Option<&Path>,
        request: &Request,
    ) -> Result<(Self, Journal), DirectoryError> {
        let parent = match at {
            Some(path) => path.parent().filter(|p| !p.as_os_str().is_empty()),
            None => Some(runs),
        };
        let parent = parent.unwrap_or(Path::new("."));
        let io = |path: &Path, action| {
            let path = path.to_owned();
            move |source| DirectoryError::Io {
                path,
                action,
                source,
            }
        };
        std::fs::create_dir_all(parent).map_err(io(parent, "made"))?;
        remove_unborn(parent);
        let unborn = tempfile::Builder::new()
            .prefix(UNBORN)
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(parent)
            .map_err(io(parent, "written to"))?;
        let (mut run, mut journal) = Self::furnish(unborn.path(), request)?;
        run.path = settle(unborn.path(), runs, at, request)?;
        let _ = unborn.keep(); // it has its name now
        sync_dir(parent).map_err(io(parent, "synced"))?;
        journal = {
            drop(journal);
            Journal::resume(&run.path.join(JOURNAL))?.0
        };
        Ok((run, journal))
    }

    /// Fills a new folder: lock, salt, first journal line.
    fn furnish(dir: &Path, request: &Request) -> Result<(Self, Journal), DirectoryError> {
        let io = |path: &Path, action| {
            let path = path.to_owned();
            move |source| DirectoryError::Io {
                path,
                action,
                source,
            }
        };
        DirBuilder::new()
            .mode(0o700)
            .create(dir.join("keys"))
            .map_err(io(dir, "written to"))?;
        let lock = lock_run(dir)?;
        let mut random = [0; 48];
        getrandom::fill(&mut random).map_err(|error| DirectoryError::Io {
            path: dir.to_owned(),
            action: "given a random salt",
            source: io::Error::other(error.to_string()),
        })?;
        let (salt, seed) = random.split_at(32);
        let path = dir.join(SALT);
        std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| {
                file.write_all(salt)?;
                file.sync_all()
            })
            .map_err(io(&path, "written"))?;
        let order_seed = const_hex::encode(seed);
        let mut journal = Journal::create(&dir.join(JOURNAL))?;
        journal.append(JournalEvent::RunBegun {
            system: request.system.clone(),
            plan: request.plan.clone(),
            config_sha256: request.config_sha256.clone(),
            only: request.only.clone(),
            cpus: request.cpus.clone(),
            order_seed: order_seed.clone(),
            study: request.study.clone().map(Box::new),
        })?;
        sync_dir(dir).map_err(io(dir, "synced"))?;
        Ok((
            RunDirectory {
                path: dir.to_owned(),
                salt: salt.try_into().expect("32 of 48 bytes"),
                order_seed,
                request: request.clone(),
                _lock: lock,
            },
            journal,
        ))
    }

    /// Opens a run that is there, for resuming: verifies its journal, repairs a torn last line, and
    /// checks every evidence file against the journal.
    pub fn open(dir: &Path) -> Result<(Self, Journal, Chain), DirectoryError> {
        let lock = lock_run(dir)?;
        let (journal, chain) = Journal::resume(&dir.join(JOURNAL))?;
        if chain.sealed().is_some() {
            return Err(DirectoryError::Sealed {
                path: dir.to_owned(),
            });
        }
        let Some(JournalEvent::RunBegun {
            system,
            plan,
            config_sha256,
            only,
            cpus,
            order_seed,
            study,
        }) = chain.lines.first().map(|line| line.event.clone())
        else {
            return Err(DirectoryError::Foreign {
                path: dir.to_owned(),
            });
        };
        let path = dir.join(SALT);
        let salt = std::fs::read(&path)
            .and_then(|bytes| {
                <[u8; 32]>::try_from(bytes).map_err(|_| io::Error::other("expected 32 bytes in it"))
            })
            .map_err(|source| DirectoryError::Io {
                path,
                action: "read",
                source,
            })?;
        store::remove_leftovers(dir)?;
        unchanged(dir, &chain)?;
        Ok((
            RunDirectory {
                path: dir.to_owned(),
                salt,
                order_seed,
                request: Request {
                    system,
                    plan,
                    config_sha256,
                    only,
                    cpus,
                    study: study.map(|study| *study),
                },
                _lock: lock,
            },
            journal,
            chain,
        ))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last part of its path, for messages.
    pub fn name(&self) -> String {
        name(&self.path)
    }

    /// Salt of the host token.
    pub fn salt(&self) -> &[u8; 32] {
        &self.salt
    }

    /// Seed of the order of trials, 32 hex digits.
    pub fn order_seed(&self) -> &str {
        &self.order_seed
    }

    /// The request that made it.
    pub fn request(&self) -> &Request {
        &self.request
    }
}

fn name(dir: &Path) -> String {
    match dir.file_name() {
        Some(name) => path_to_text(Path::new(name)),
        None => path_to_text(dir),
    }
}

fn lock_run(dir: &Path) -> Result<Lock, DirectoryError> {
    let what = format!("the run {}", name(dir));
    Ok(lock::lock(
        &dir.join(LOCK),
        &what,
        "campaign",
        Patience::None,
    )?)
}

/// Gives a furnished folder its name.
fn settle(
    unborn: &Path,
    runs: &Path,
    at: Option<&Path>,
    request: &Request,
) -> Result<PathBuf, DirectoryError> {
    let failed = |path: &Path, source| DirectoryError::Io {
        path: path.to_owned(),
        action: "made",
        source,
    };
    if let Some(path) = at {
        // Takes the place of an empty folder; anything else there is an error.
        return match std::fs::rename(unborn, path) {
            Ok(()) => Ok(path.to_owned()),
            Err(source) => Err(failed(path, source)),
        };
    }
    let prefix = request.prefix();
    let taken = numbered(runs, &prefix)?;
    let mut number = taken.last().map_or(1, |(last, _)| last + 1);
    loop {
        let path = runs.join(format!("{prefix}{number}"));
        match std::fs::rename(unborn, &path) {
            Ok(()) => return Ok(path),
            // Somebody else was faster.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => number += 1,
            Err(source) => return Err(failed(&path, source)),
        }
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Removes what a kill left of runs that were being made.
fn remove_unborn(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let unborn = entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(UNBORN.as_bytes());
        // A living maker holds the lock, or is about to take it.
        if unborn && is_old(&entry) && lock_run(&entry.path()).is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_old(entry: &std::fs::DirEntry) -> bool {
    const LONG_AGO: std::time::Duration = std::time::Duration::from_secs(60);
    entry
        .metadata()
        .and_then(|data| data.modified())
        .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > LONG_AGO))
}

/// Every covered file must have a digest that the journal announced for its path. The last one need
/// not be there: a kill between the line and the file leaves the one before, or none.
fn unchanged(dir: &Path, chain: &Chain) -> Result<(), DirectoryError> {
    let written = chain.written();
    let entries = seal::entries(dir).map_err(|error| match error {
        seal::SealError::Foreign { path, .. } => DirectoryError::Changed { path },
        other => DirectoryError::Io {
            path: dir.to_owned(),
            action: "read",
            source: io::Error::other(other),
        },
    })?;
    for entry in entries {
        let known = written.get(entry.path.as_str());
        if !known.is_some_and(|digests| digests.contains(&entry.sha256.as_str())) {
            return Err(DirectoryError::Changed {
                path: dir.join(entry.path),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            system: "x86_1".into(),
            plan: "quick".into(),
            config_sha256: "00".into(),
            only: None,
            cpus: None,
            study: None,
        }
    }

    fn home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let runs = home.path().join(RUNS);
        (home, runs)
    }

    /// Makes a run, sealed or not, and lets it go.
    fn make(runs: &Path, request: &Request, sealed: bool) -> PathBuf {
        let (run, mut journal) = RunDirectory::create(runs, None, request).unwrap();
        if sealed {
            seal::seal(run.path(), &mut journal).unwrap();
        }
        run.path().to_owned()
    }

    #[test]
    fn runs_are_numbered_private_and_whole() {
        let (_home, runs) = home();
        for k in 1..=3 {
            let path = make(&runs, &request(), false);
            assert_eq!(path, runs.join(format!("x86_1-quick-{k}")));
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
            assert_eq!(request_of(&path).unwrap(), Some(request()));
        }
        assert_eq!(std::fs::read_dir(&runs).unwrap().count(), 3);
    }

    #[test]
    fn the_newest_run_of_the_same_request_decides() {
        let (_home, runs) = home();
        let newest = |request: &Request| choose(&runs, request, &Choice::Newest).unwrap();
        assert_eq!(newest(&request()), Place::New(None));
        let first = make(&runs, &request(), false);
        assert_eq!(newest(&request()), Place::Unfinished(first));
        let other = Request {
            only: Some("dove".into()),
            ..request()
        };
        let second = make(&runs, &other, false);
        let third = make(&runs, &request(), true);
        assert_eq!(newest(&request()), Place::Complete(third.clone()));
        assert_eq!(newest(&other), Place::Unfinished(second.clone()));
        let with_cpus = Request {
            cpus: Some(vec![1]),
            ..request()
        };
        assert_eq!(newest(&with_cpus), Place::New(None));
        assert_eq!(
            choose(&runs, &request(), &Choice::New).unwrap(),
            Place::New(None)
        );
        let named = |dir: &Path| choose(&runs, &request(), &Choice::Named(dir.to_owned()));
        assert_eq!(named(&third).unwrap(), Place::Complete(third));
        let error = named(&second).unwrap_err().to_string();
        assert!(
            error.contains("another selection (dove, asked for everything)"),
            "{error}"
        );
    }

    #[test]
    fn a_named_place_is_taken_where_it_is_free() {
        let (home, runs) = home();
        let dir = home.path().join("elsewhere/a run");
        let named = || choose(&runs, &request(), &Choice::Named(dir.clone()));
        assert_eq!(named().unwrap(), Place::New(Some(dir.clone())));
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(named().unwrap(), Place::New(Some(dir.clone())));
        RunDirectory::create(&runs, Some(&dir), &request()).unwrap();
        assert_eq!(named().unwrap(), Place::Unfinished(dir.clone()));
        let foreign = home.path().to_owned();
        let error = choose(&runs, &request(), &Choice::Named(foreign)).unwrap_err();
        assert!(matches!(error, DirectoryError::Foreign { .. }));
    }

    #[test]
    fn two_orchestrators_do_not_share_a_run() {
        let (_home, runs) = home();
        let (run, _journal) = RunDirectory::create(&runs, None, &request()).unwrap();
        let error = RunDirectory::open(run.path()).unwrap_err();
        assert!(
            matches!(error, DirectoryError::Lock(LockError::Held { .. })),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_the_journal_does_not_know_stops_a_resume() {
        let (_home, runs) = home();
        let path = make(&runs, &request(), false);
        let (run, mut journal, _) = RunDirectory::open(&path).unwrap();
        let file = path.join("records/c/a.json");
        for text in ["one", "two"] {
            journal
                .append(JournalEvent::Written {
                    path: "records/c/a.json".into(),
                    sha256: crate::hash::sha256(text.as_bytes()),
                })
                .unwrap();
        }
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        drop((run, journal));
        // Both digests are announced: a kill may have kept the second from the disk.
        for text in ["one", "two"] {
            store::write_atomic(&file, text.as_bytes()).unwrap();
            RunDirectory::open(&path).unwrap();
        }
        std::fs::write(&file, "three").unwrap();
        let error = RunDirectory::open(&path).unwrap_err();
        assert!(matches!(error, DirectoryError::Changed { path } if path == file));
    }

    #[test]
    fn a_sealed_run_is_not_opened_again() {
        let (_home, runs) = home();
        let path = make(&runs, &request(), true);
        assert!(matches!(
            RunDirectory::open(&path),
            Err(DirectoryError::Sealed { .. })
        ));
    }
}
