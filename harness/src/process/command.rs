//! The description of a child process.

use super::cgroup::Delegation;
use super::Image;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// First bytes of stdout and stderr that are kept unless the command says otherwise.
const KEEP_BYTES: usize = 64 * 1024;
/// Time between the polite signal and SIGKILL unless the command says otherwise.
const GRACE: Duration = Duration::from_secs(2);

/// Who gives the child a process group of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// We do, at the start (any foreign program).
    Group,
    /// The child calls `setsid` itself, which a group leader could not (the worker).
    Session,
}

/// What the child reads on standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Nothing: the end of file at once.
    Closed,
    /// These bytes, then the end of file. A child that does not read them all is not in the wrong.
    Bytes(Vec<u8>),
}

/// A descriptor that the child writes to, beside stdout and stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Channel {
    /// Number in the child.
    pub fd: i32,
    /// First bytes to keep.
    pub keep: usize,
}

/// One child process to be. Consumed by [`super::run`].
#[derive(Debug)]
pub struct Command {
    pub(super) program: OsString,
    pub(super) image: Option<Image>,
    pub(super) args: Vec<OsString>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) inherit_env: bool,
    pub(super) input: Input,
    pub(super) own: Own,
    pub(super) keep: usize,
    pub(super) channel: Option<Channel>,
    pub(super) descriptors: Vec<(i32, OwnedFd)>,
    pub(super) deadline: Option<Duration>,
    pub(super) grace: Duration,
    pub(super) cgroups: Option<Delegation>,
}

impl Command {
    /// `program`, looked for on PATH when it has no slash, with no arguments, nothing on stdin, its own
    /// process group, no time limit, and an environment of `LC_ALL=C` and our `PATH` alone.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut env = vec![("LC_ALL".into(), "C".into())];
        if let Some(path) = std::env::var_os("PATH") {
            env.push(("PATH".into(), path));
        }
        Command {
            program: program.as_ref().to_owned(),
            image: None,
            args: Vec::new(),
            cwd: None,
            env,
            inherit_env: false,
            input: Input::Closed,
            own: Own::Group,
            keep: KEEP_BYTES,
            channel: None,
            descriptors: Vec::new(),
            deadline: None,
            grace: GRACE,
            cgroups: None,
        }
    }

    /// The command that a list of words names: a runner and what it runs, say. `None` for no words.
    pub fn from_words<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> Option<Self> {
        let mut words = words.into_iter();
        Some(Command::new(words.next()?).args(words))
    }

    /// Starts `image` instead of the file that the program's name leads to; the name remains the one that
    /// the child is called by.
    pub fn image(mut self, image: Image) -> Self {
        self.image = Some(image);
        self
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|a| a.as_ref().to_owned()));
        self
    }

    /// Working directory.
    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Self {
        self.cwd = Some(dir.as_ref().to_owned());
        self
    }

    /// Sets a variable, over an earlier value.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref();
        self.env.retain(|(n, _)| n != name);
        self.env.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts from our whole environment instead of a clean one: for cargo, which finds its home, its
    /// proxies and its toolchain there.
    pub fn inherit_env(mut self) -> Self {
        self.inherit_env = true;
        self
    }

    /// What it reads on stdin.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    /// Who makes its process group.
    pub fn own(mut self, own: Own) -> Self {
        self.own = own;
        self
    }

    /// First bytes of stdout and of stderr to keep.
    pub fn keep(mut self, bytes: usize) -> Self {
        self.keep = bytes;
        self
    }

    /// Opens descriptor `fd` in the child for writing; the first `keep` bytes of what is written there
    /// are kept, and [`super::run_observed`] hears of each line.
    pub fn channel(mut self, fd: i32, keep: usize) -> Self {
        self.channel = Some(Channel { fd, keep });
        self
    }

    /// Gives the child a descriptor of ours as its descriptor `fd` (3 or above).
    pub fn descriptor(mut self, fd: i32, ours: impl Into<OwnedFd>) -> Self {
        self.descriptors.push((fd, ours.into()));
        self
    }

    /// Time limit, from the start.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = Some(limit);
        self
    }

    /// Time between the polite signal and SIGKILL.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// A cgroup of its own. The child is moved there before it gets its input, so one that does nothing
    /// before it has read it is bounded from its first step.
    pub fn in_cgroup_of(mut self, delegation: Delegation) -> Self {
        self.cgroups = Some(delegation);
        self
    }

    /// Program and arguments, for messages and for evidence.
    pub fn words(&self) -> Vec<String> {
        std::iter::once(&self.program)
            .chain(&self.args)
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }
}
