//! Carries a [`Command`] out: results, signals and timers meet in one loop.

use super::cgroup::Delegation;
use super::{group, Capture, Command, End, Input, Outcome, Own, Stop, StopLevel};
use command_fds::{CommandFdExt, FdMapping};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::signal::unix::{signal, SignalKind};

/// Time for the last bytes in the pipes once all processes are gone; only an escaped daemon that keeps
/// a pipe open uses it up.
const LAST_BYTES: Duration = Duration::from_secs(2);
/// Time after SIGKILL before a child is given up (it hangs inside the kernel).
const GIVE_UP: Duration = Duration::from_secs(30);
/// Read at once from a pipe: the default capacity of a Linux pipe.
const PIPE_BYTES: usize = 64 * 1024;

/// Runs `command` to its end. Needs a tokio runtime with time and I/O. Dropping the future kills the
/// child.
pub async fn run(command: Command, stop: &Stop) -> Outcome {
    run_observed(command, stop, &mut |_| {}).await
}

/// [`run`] on a runtime of its own, for code that is not asynchronous.
pub fn run_blocking(command: Command, stop: &Stop) -> Outcome {
    match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime.block_on(run(command, stop)),
        Err(error) => outcome_without_child(&command, End::NotStarted(error)),
    }
}

/// [`run`], with `line` called for each complete line of the channel as it arrives, without its line
/// end. A line longer than what the channel keeps is passed on in pieces.
pub async fn run_observed(command: Command, stop: &Stop, line: &mut dyn FnMut(&[u8])) -> Outcome {
    if stop.is_requested() {
        return outcome_without_child(&command, End::Interrupted);
    }
    let mut outcome = outcome_without_child(&command, End::Interrupted);
    let start = Instant::now();
    if let Err(error) = supervise(command, stop, line, &mut outcome).await {
        outcome.end = End::NotStarted(error);
    }
    outcome.elapsed = start.elapsed();
    outcome
}

fn outcome_without_child(command: &Command, end: End) -> Outcome {
    Outcome {
        end,
        stdout: Capture::new(command.keep),
        stderr: Capture::new(command.keep),
        channel: Capture::new(command.channel.map_or(0, |c| c.keep)),
        elapsed: Duration::ZERO,
        killed: false,
        swept: 0,
        left: Vec::new(),
    }
}

/// Spawns, drains, waits, sweeps, reaps; fills in the outcome.
async fn supervise(
    command: Command,
    stop: &Stop,
    line: &mut dyn FnMut(&[u8]),
    outcome: &mut Outcome,
) -> io::Result<()> {
    // Before the start, so that no end of a child goes by unheard.
    let mut ended = signal(SignalKind::child())?;
    let limits = Limits {
        deadline: command.deadline,
        grace: command.grace,
    };
    let own = command.own;
    // Made before the child and dropped after it: what is still in it then is killed.
    let cgroup = command
        .cgroups
        .as_ref()
        .map(Delegation::group)
        .transpose()?;
    let (mut guard, pipes) = spawn(command)?;
    if let Some(cgroup) = &cgroup {
        cgroup.add(guard.pid)?;
    }
    let captures = Captures {
        stdout: &mut outcome.stdout,
        stderr: &mut outcome.stderr,
        channel: &mut outcome.channel,
    };
    let mut drained = Box::pin(drain_all(pipes, captures, line));
    let mut all_read = false;
    let mut waiting = Box::pin(wait(guard.pid, &mut ended, limits, stop));
    let ending = loop {
        tokio::select! {
            ending = &mut waiting => break ending?,
            () = &mut drained, if !all_read => all_read = true,
        }
    };
    // A group is asked for after its leader has been reaped, because a dead leader counts as a member.
    let early = match own {
        Own::Group => guard.reap(ending.gone)?,
        Own::Session => None,
    };
    let (swept, left) = match (ending.gone, own) {
        (false, _) => (0, group::alive(guard.pid)),
        (true, Own::Group) if !group::has_members(guard.pid) => (0, Vec::new()),
        (true, _) => group::sweep(guard.pid).await,
    };
    if !all_read {
        let _ = tokio::time::timeout(LAST_BYTES, &mut drained).await;
    }
    drop(drained);
    let status = match early {
        None => guard.reap(ending.gone)?,
        status => status,
    };
    outcome.end = ending.end(status);
    outcome.killed = ending.killed;
    outcome.swept = swept;
    outcome.left = left;
    Ok(())
}

#[derive(Clone, Copy)]
struct Limits {
    deadline: Option<Duration>,
    grace: Duration,
}

/// Why and how the child was ended.
struct Ending {
    asked: Option<Asked>,
    killed: bool,
    /// It has ended (and waits to be reaped); false when even SIGKILL did not end it in time.
    gone: bool,
}

#[derive(Clone, Copy)]
enum Asked {
    TimedOut(Duration),
    Interrupted,
}

impl Ending {
    /// A child that ends by itself at the moment at which we ask counts as asked.
    fn end(&self, status: Option<ExitStatus>) -> End {
        match (self.asked, status) {
            (Some(Asked::TimedOut(after)), _) => End::TimedOut { after },
            (Some(Asked::Interrupted), _) => End::Interrupted,
            (None, Some(status)) => match (status.code(), status.signal()) {
                (Some(status), _) => End::Finished { status },
                (None, signal) => End::Signalled {
                    signal: signal.unwrap_or(0),
                },
            },
            (None, None) => unreachable!("only a child that was asked to end is given up"),
        }
    }
}

/// Waits for the end of the child; asks it, then makes it, when its time is over or a stop is wished.
async fn wait(
    child: Pid,
    ended: &mut tokio::signal::unix::Signal,
    limits: Limits,
    stop: &Stop,
) -> io::Result<Ending> {
    let mut ending = Ending {
        asked: None,
        killed: false,
        gone: false,
    };
    let far = Duration::from_secs(100 * 365 * 86400); // no limit: further than any campaign
    let mut timer = Box::pin(tokio::time::sleep(limits.deadline.unwrap_or(far)));
    loop {
        if group::has_ended(child)? {
            ending.gone = true;
            return Ok(ending);
        }
        let next_level = match ending.asked {
            None => StopLevel::Polite,
            Some(_) => StopLevel::Kill,
        };
        tokio::select! {
            _ = ended.recv() => continue,
            () = &mut timer => match (ending.asked, ending.killed) {
                (None, _) => ending.asked = Some(Asked::TimedOut(limits.deadline.unwrap_or(far))),
                (Some(_), false) => ending.killed = true,
                (Some(_), true) => return Ok(ending),
            },
            () = stop.reached(next_level), if !ending.killed => match ending.asked {
                None => ending.asked = Some(Asked::Interrupted),
                Some(_) => ending.killed = true,
            },
        }
        let (word, patience) = match ending.killed {
            false => (Signal::SIGTERM, limits.grace),
            true => (Signal::SIGKILL, GIVE_UP),
        };
        group::signal_all(child, word);
        timer.set(tokio::time::sleep(patience));
    }
}

/// Our ends of the pipes.
struct Pipes {
    stdin: Option<(tokio::process::ChildStdin, Vec<u8>)>,
    stdout: tokio::process::ChildStdout,
    stderr: tokio::process::ChildStderr,
    channel: Option<tokio::process::ChildStdout>,
}

fn spawn(command: Command) -> io::Result<(Guard, Pipes)> {
    let mut std_command = match &command.image {
        None => std::process::Command::new(&command.program),
        Some(image) => {
            let mut by_descriptor = std::process::Command::new(image.path());
            by_descriptor.arg0(&command.program);
            by_descriptor
        }
    };
    std_command.args(&command.args);
    if !command.inherit_env {
        std_command.env_clear();
    }
    std_command.envs(command.env.iter().map(|(n, v)| (n, v)));
    if let Some(dir) = &command.cwd {
        std_command.current_dir(dir);
    }
    if command.own == Own::Group {
        std_command.process_group(0);
    }
    let input = match command.input {
        Input::Closed => None,
        Input::Bytes(bytes) => Some(bytes),
    };
    std_command
        .stdin(match input {
            None => Stdio::null(),
            Some(_) => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());

    let mut descriptors = command.descriptors;
    let mut reader = None;
    if let Some(channel) = command.channel {
        let (ours, theirs) = io::pipe()?;
        descriptors.push((channel.fd, theirs.into()));
        reader = Some(ours);
    }
    let reserved = map_descriptors(&mut std_command, descriptors)?;
    let mut child = std_command.spawn()?;
    // Our copies of the child's ends go with these, so that its end is an end of file.
    drop((std_command, reserved));
    let stdin = child.stdin.take();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    // From here on, an error on the way ends the child.
    let guard = Guard::new(child);
    let pipes = Pipes {
        stdin: match (stdin, input) {
            (Some(pipe), Some(bytes)) => Some((tokio::process::ChildStdin::from_std(pipe)?, bytes)),
            _ => None,
        },
        stdout: tokio::process::ChildStdout::from_std(stdout.expect("piped above"))?,
        stderr: tokio::process::ChildStderr::from_std(stderr.expect("piped above"))?,
        channel: match reader {
            // Any pipe will do for this type; it is how tokio reads one without its network part.
            Some(pipe) => Some(tokio::process::ChildStdout::from_std(ChildStdout::from(
                OwnedFd::from(pipe),
            ))?),
            None => None,
        },
    };
    Ok((guard, pipes))
}

/// Maps our descriptors to the child's numbers. The result keeps these numbers occupied in our own
/// process until after the start: otherwise the pipe by which the standard library learns that exec
/// failed could sit on one of them and be overwritten by the mapping.
fn map_descriptors(
    command: &mut std::process::Command,
    descriptors: Vec<(i32, OwnedFd)>,
) -> io::Result<Vec<OwnedFd>> {
    if descriptors.is_empty() {
        return Ok(Vec::new());
    }
    let mut reserved = Vec::new();
    let mut mappings = Vec::new();
    for (child_fd, parent_fd) in descriptors {
        if child_fd < 3 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("descriptor {child_fd} is one of the standard streams"),
            ));
        }
        // Gives the number itself where it is free, and another where it is occupied anyway.
        reserved.push(rustix::io::fcntl_dupfd_cloexec(&parent_fd, child_fd)?);
        mappings.push(FdMapping {
            parent_fd,
            child_fd,
        });
    }
    command
        .fd_mappings(mappings)
        .map_err(|collision| io::Error::new(io::ErrorKind::InvalidInput, collision))?;
    Ok(reserved)
}

/// Owns a child that has not been reaped. Dropped in that state (an error, a panic, a future that is
/// no longer wanted), it kills the whole group.
struct Guard {
    child: Option<Child>,
    pid: Pid,
}

impl Guard {
    fn new(child: Child) -> Self {
        let pid = Pid::from_raw(child.id() as i32); // a Linux process number is below 2^22
        Guard {
            child: Some(child),
            pid,
        }
    }

    /// Takes the exit status and with it the entry of the process table. A child that is not gone is
    /// abandoned.
    fn reap(&mut self, gone: bool) -> io::Result<Option<ExitStatus>> {
        match (self.child.take(), gone) {
            (Some(mut child), true) => child.wait().map(Some),
            _ => Ok(None),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            group::signal_all(self.pid, Signal::SIGKILL);
            let _ = child.wait();
        }
    }
}

/// Where the pipes are drained to.
struct Captures<'a> {
    stdout: &'a mut Capture,
    stderr: &'a mut Capture,
    channel: &'a mut Capture,
}

/// Feeds and drains everything until the last writer has closed its end.
async fn drain_all(pipes: Pipes, captures: Captures<'_>, line: &mut dyn FnMut(&[u8])) {
    tokio::join!(
        feed(pipes.stdin),
        drain(pipes.stdout, captures.stdout),
        drain(pipes.stderr, captures.stderr),
        drain_lines(pipes.channel, captures.channel, line),
    );
}

/// Writes the input and closes the pipe. A child that closes it early, or ends, is not in the wrong.
async fn feed(stdin: Option<(tokio::process::ChildStdin, Vec<u8>)>) {
    if let Some((mut pipe, bytes)) = stdin {
        let _ = pipe.write_all(&bytes).await;
    }
}

async fn drain(mut pipe: impl AsyncRead + Unpin, capture: &mut Capture) {
    let mut buffer = vec![0; PIPE_BYTES];
    while let Ok(n @ 1..) = pipe.read(&mut buffer).await {
        capture.push(&buffer[..n]);
    }
}

async fn drain_lines(
    pipe: Option<tokio::process::ChildStdout>,
    capture: &mut Capture,
    line: &mut dyn FnMut(&[u8]),
) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; PIPE_BYTES];
    let mut open_line = Vec::new();
    let longest = capture.keep();
    while let Ok(n @ 1..) = pipe.read(&mut buffer).await {
        capture.push(&buffer[..n]);
        for piece in buffer[..n].split_inclusive(|&b| b == b'\n') {
            open_line.extend_from_slice(piece);
            if open_line.last() == Some(&b'\n') {
                open_line.pop();
                line(&open_line);
                open_line.clear();
            } else if open_line.len() >= longest {
                line(&open_line);
                open_line.clear();
            }
        }
    }
}
