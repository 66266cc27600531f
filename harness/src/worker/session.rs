//! One session: a request on the worker's standard input, events on a private pipe, an ending.
//!
//! Library and worker share an address space, so the pipe may carry anything. An event counts only
//! with the request's token and the next number; one that does not, or an end without `done`, makes
//! the session a crash, whatever the exit status says.

use super::binary::{Worker, WorkerError};
use crate::clock;
use crate::process::{self, End, Own, Stop};
use protocol::{
    Body, Event, Failure, Hello, Isolation, Layer, LibraryFile, Loaded, Request, Task, EVENT_FD,
};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// Number of the event descriptor in the worker.
const EVENTS: i32 = 3;
/// Number of the descriptor of [`Job::file`] in the worker.
const FILE: i32 = 4;
/// Size of the stack that every timed call runs on.
const STACK_BYTES: u64 = 64 << 20;
/// First bytes of stdout and stderr that become evidence.
const KEEP_OUTPUT: usize = 4096;
/// Longest event; the log of a KAT is the longest that there is.
const LONGEST_EVENT: usize = 4 << 20;
/// Time limit of [`try_out`].
const TRY_OUT_LIMIT: Duration = Duration::from_secs(60);
/// Address space of a worker beside its stack: far above any candidate, far below a lab machine.
const ADDRESS_SPACE: u64 = 4 << 30;

/// What one worker is to do.
#[derive(Debug)]
pub struct Job<'a> {
    /// The task.
    pub task: Task,
    /// The library, its path relative to the run.
    pub library: Option<LibraryFile>,
    /// CPU to pin to.
    pub cpu: Option<u32>,
    /// Time limit.
    pub limit: Duration,
    /// A file for it: the variable that names it, and the file, open.
    pub file: Option<(&'a str, OwnedFd)>,
    /// A library that it loads before everything else, its path relative to the run.
    pub preload: Option<LibraryFile>,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The task was carried out; the answer is there.
    Done,
    /// The worker says why not.
    Failed(Failure),
    /// Its time limit passed; seconds.
    Timeout(u64),
    /// It ended without `done`, or its events were not its own.
    Crash(String),
    /// A stop was asked for.
    Interrupted,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// How it ended.
    pub ending: Ending,
    /// First event.
    pub hello: Option<Hello>,
    /// Second event, of tasks with a library.
    pub loaded: Option<Loaded>,
    /// The answer to the task; there whenever [`Ending::Done`].
    pub body: Option<Body>,
    /// When it was started, UTC.
    pub started_utc: String,
    /// Outputs and times of the process.
    pub outcome: process::Outcome,
    /// The command, and the request as its last word, without the token.
    pub command: Vec<String>,
}

impl Answer {
    /// Protections of the worker, as far as it came to tell of them.
    pub fn layers(&self) -> impl Iterator<Item = &Layer> {
        let first = self.hello.iter().flat_map(|hello| &hello.layers);
        first.chain(self.loaded.iter().flat_map(|loaded| &loaded.layers))
    }
}

/// Runs one job in `dir` (the run: relative paths of the request start there). Errors are those of the
/// worker binary itself, and processes that cannot be ended: nothing may be measured beside them.
/// Everything else that a library can cause is an [`Ending`].
pub async fn run(
    worker: &Worker,
    dir: &Path,
    job: Job<'_>,
    stop: &Stop,
) -> Result<Answer, WorkerError> {
    let mut request = Request {
        version: protocol::VERSION,
        token: String::new(),
        isolation: isolation(&job),
        library: job.library,
        cpu: job.cpu,
        stack_bytes: STACK_BYTES,
        task: job.task,
    };
    let shown = serde_json::to_string(&request).expect("requests are plain data");
    request.token = token();
    let input = serde_json::to_vec(&request).expect("requests are plain data");
    let mut command = worker
        .command()?
        .own(Own::Session)
        .cwd(dir)
        .env(EVENT_FD, EVENTS.to_string())
        .channel(EVENTS, LONGEST_EVENT)
        .keep(KEEP_OUTPUT)
        .deadline(job.limit)
        .input(input);
    if let Some(library) = &job.preload {
        // The loader takes a relative path, with a slash in it, from the working directory; an absolute
        // one might have a space or a colon, which part libraries here.
        command = command.env("LD_PRELOAD", &library.path);
    }
    if let Some((variable, file)) = job.file {
        command = command
            .env(variable, FILE.to_string())
            .descriptor(FILE, file);
    }
    let mut listener = Listener::new(&request.token);
    let started_utc = clock::utc_now();
    let outcome = process::run_observed(command, stop, &mut |line| listener.line(line)).await;
    outcome.proven_empty()?;
    let mut words = worker.words();
    words.push(shown);
    Ok(Answer {
        ending: listener.ending(&outcome.end),
        hello: listener.hello,
        loaded: listener.loaded,
        body: listener.body,
        started_utc,
        outcome,
        command: words,
    })
}

/// Lets the worker do the least of its tasks, on `cpu` if one is given: a worker of another version,
/// for another machine, or that may not be pinned is told here, and not by each library in turn. Returns
/// its protections.
pub async fn try_out(
    worker: &Worker,
    dir: &Path,
    cpu: Option<u32>,
    stop: &Stop,
) -> Result<Vec<Layer>, WorkerError> {
    let job = Job {
        task: Task::Empty { iterations: 100 },
        library: None,
        cpu,
        limit: TRY_OUT_LIMIT,
        file: None,
        preload: None,
    };
    let answer = run(worker, dir, job, stop).await?;
    let layers = answer.layers().cloned().collect();
    let why = match (answer.ending, answer.outcome.end) {
        (Ending::Done, _) => return Ok(layers),
        (Ending::Interrupted, End::Interrupted) => return Err(WorkerError::Interrupted),
        (_, End::NotStarted(error)) => match worker.runner().first() {
            Some(runner) => format!(
                "its runner `{runner}` could not be started: {error}; install it (Debian's package qemu-user-static), \
                 or name another with `runner` of the system"
            ),
            None => format!("it could not be started: {error}"),
        },
        (Ending::Failed(failure), _) => failure.text,
        (Ending::Timeout(seconds), _) => format!("it was killed after {seconds} s"),
        (Ending::Crash(text), _) => text,
        (Ending::Interrupted, _) => "it was interrupted".to_owned(),
    };
    Err(WorkerError::Unfit {
        path: worker.path().to_owned(),
        why,
    })
}

/// All protections, with limits that fit the task.
fn isolation(job: &Job) -> Isolation {
    Isolation {
        drop_privileges: true,
        landlock: true,
        seccomp: true,
        namespaces: true,
        address_space_bytes: Some(ADDRESS_SPACE + message_bytes(&job.task)),
        // A backstop: the time limit comes first unless the orchestrator is gone.
        cpu_seconds: Some(2 * job.limit.as_secs() + 60),
        file_bytes: match job.file {
            Some(_) => None,
            None => Some(0),
        },
    }
}

/// What the message of a task may take beside everything else.
fn message_bytes(task: &Task) -> u64 {
    match task {
        Task::Study(task) => task.size_bytes,
        _ => 0,
    }
}

fn token() -> String {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("the kernel has random bytes once it has booted");
    const_hex::encode(random)
}

/// Takes the lines of the event pipe one by one.
#[derive(Debug)]
struct Listener<'a> {
    token: &'a str,
    next: u64,
    hello: Option<Hello>,
    loaded: Option<Loaded>,
    body: Option<Body>,
    failure: Option<Failure>,
    done: bool,
    /// The first thing that was not as it should be; nothing after it is believed.
    wrong: Option<String>,
}

impl<'a> Listener<'a> {
    fn new(token: &'a str) -> Self {
        Listener {
            token,
            next: 0,
            hello: None,
            loaded: None,
            body: None,
            failure: None,
            done: false,
            wrong: None,
        }
    }

    fn line(&mut self, line: &[u8]) {
        if self.wrong.is_none() {
            self.wrong = self.take(line).err();
        }
    }

    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        let at = self.next;
        let event: Event = serde_json::from_slice(line)
            .map_err(|error| format!("event {at} cannot be read ({error})"))?;
        if event.token != self.token {
            return Err(format!(
                "event {at} is forged: it has not the request's token"
            ));
        }
        if event.seq != at {
            return Err(format!("event {} came where {at} was due", event.seq));
        }
        if self.done {
            return Err(format!("event {at} came after the last"));
        }
        self.next += 1;
        self.sort(event.body)
    }

    fn sort(&mut self, body: Body) -> Result<(), String> {
        let answered = self.body.is_some() || self.failure.is_some();
        match body {
            Body::Hello(hello) if self.hello.is_none() && self.next == 1 => {
                if hello.version != protocol::VERSION {
                    return Err(format!(
                        "the worker speaks protocol {}, this program {}",
                        hello.version,
                        protocol::VERSION
                    ));
                }
                self.hello = Some(hello);
            }
            // A worker may fail before it says hello: a CPU that cannot be had, a library that was replaced.
            Body::Failed(failure) if !answered => self.failure = Some(failure),
            Body::Done if answered => self.done = true,
            _ if self.hello.is_none() => return Err("the first event is not `hello`".into()),
            Body::Hello(_) => return Err("a second `hello`".into()),
            Body::Loaded(loaded) if self.loaded.is_none() && !answered => {
                self.loaded = Some(loaded);
            }
            Body::Progress { .. } => {}
            Body::Done => return Err("`done` without an answer".into()),
            _ if answered => return Err("a second answer".into()),
            Body::Loaded(_) => return Err("a second `loaded`".into()),
            Body::Failed(_) => unreachable!("taken above when nothing was answered"),
            answer => self.body = Some(answer),
        }
        Ok(())
    }

    fn ending(&self, end: &End) -> Ending {
        match end {
            End::TimedOut { after } => return Ending::Timeout(after.as_secs()),
            End::Interrupted => return Ending::Interrupted,
            _ => {}
        }
        if let Some(wrong) = &self.wrong {
            return Ending::Crash(format!("{wrong}; the process {end}"));
        }
        match (&self.failure, self.done) {
            (_, false) => Ending::Crash(format!("it {end} without its last event")),
            // How it goes after it has said that it failed is of no interest.
            (Some(failure), true) => Ending::Failed(failure.clone()),
            (None, true) if end.is_success() => Ending::Done,
            (None, true) => Ending::Crash(format!("it {end} after its last event")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::FailureCode;

    const TOKEN: &str = "00112233445566778899aabbccddeeff";

    fn event(seq: u64, body: Body) -> Vec<u8> {
        serde_json::to_vec(&Event {
            token: TOKEN.into(),
            seq,
            body,
        })
        .unwrap()
    }

    fn hello() -> Body {
        Body::Hello(Hello {
            version: protocol::VERSION,
            build_id: "id".into(),
            arch: "x86_64".into(),
            pid: 1,
            cpu: None,
            layers: Vec::new(),
        })
    }

    fn answer() -> Body {
        Body::Empty(protocol::Overhead {
            clock_read_ps: 1,
            empty_call_ps: 1,
            iterations: 1,
        })
    }

    fn failed() -> Body {
        Body::Failed(Failure {
            code: FailureCode::LoadFail,
            text: "no symbol".into(),
        })
    }

    fn end(lines: &[Vec<u8>], end: End) -> Ending {
        let mut listener = Listener::new(TOKEN);
        for line in lines {
            listener.line(line);
        }
        listener.ending(&end)
    }

    fn ok() -> End {
        End::Finished { status: 0 }
    }

    #[test]
    fn a_session_with_all_its_events_is_done() {
        let lines = [
            event(0, hello()),
            event(
                1,
                Body::Progress {
                    done: 1,
                    planned: 2,
                },
            ),
            event(2, answer()),
            event(3, Body::Done),
        ];
        assert_eq!(end(&lines, ok()), Ending::Done);
    }

    #[test]
    fn a_failure_that_the_worker_tells_is_believed_however_it_exits() {
        let lines = [event(0, hello()), event(1, failed()), event(2, Body::Done)];
        for how in [
            ok(),
            End::Finished { status: 1 },
            End::Signalled { signal: 11 },
        ] {
            assert!(matches!(end(&lines, how), Ending::Failed(_)));
        }
    }

    #[test]
    fn a_failure_before_hello_is_one_and_no_crash() {
        let lines = [event(0, failed()), event(1, Body::Done)];
        assert!(matches!(end(&lines, ok()), Ending::Failed(_)));
        assert!(matches!(end(&lines[..1], ok()), Ending::Crash(_)));
    }

    #[test]
    fn limits_and_stops_are_told_apart_from_crashes() {
        let after = Duration::from_secs(300);
        assert_eq!(end(&[], End::TimedOut { after }), Ending::Timeout(300));
        assert_eq!(end(&[], End::Interrupted), Ending::Interrupted);
    }

    #[test]
    fn whatever_else_comes_is_a_crash() {
        let forged = serde_json::to_vec(&Event {
            token: "guess".into(),
            seq: 1,
            body: answer(),
        })
        .unwrap();
        let whole = [event(0, hello()), event(1, answer()), event(2, Body::Done)];
        let cases: Vec<(&str, Vec<Vec<u8>>, End)> = vec![
            ("exit(0) in a call", vec![event(0, hello())], ok()),
            ("nothing at all", vec![], ok()),
            ("no done", whole[..2].to_vec(), ok()),
            (
                "forged token",
                vec![
                    event(0, hello()),
                    forged,
                    event(1, answer()),
                    event(2, Body::Done),
                ],
                ok(),
            ),
            (
                "gap",
                vec![event(0, hello()), event(2, answer()), event(3, Body::Done)],
                ok(),
            ),
            (
                "repeated number",
                vec![event(0, hello()), event(0, answer())],
                ok(),
            ),
            (
                "no JSON",
                vec![
                    event(0, hello()),
                    b"PASS".to_vec(),
                    event(1, answer()),
                    event(2, Body::Done),
                ],
                ok(),
            ),
            (
                "half a line",
                vec![event(0, hello()), b"{\"token\":".to_vec()],
                ok(),
            ),
            (
                "no hello",
                vec![event(0, answer()), event(1, Body::Done)],
                ok(),
            ),
            (
                "two answers",
                vec![
                    event(0, hello()),
                    event(1, answer()),
                    event(2, answer()),
                    event(3, Body::Done),
                ],
                ok(),
            ),
            (
                "answer after failure",
                vec![
                    event(0, hello()),
                    event(1, failed()),
                    event(2, answer()),
                    event(3, Body::Done),
                ],
                ok(),
            ),
            (
                "done alone",
                vec![event(0, hello()), event(1, Body::Done)],
                ok(),
            ),
            (
                "more after done",
                [&whole[..], &[event(3, answer())]].concat(),
                ok(),
            ),
            ("bad status", whole.to_vec(), End::Finished { status: 1 }),
            (
                "signal at the end",
                whole.to_vec(),
                End::Signalled { signal: 11 },
            ),
        ];
        for (name, lines, how) in cases {
            let ending = end(&lines, how);
            assert!(matches!(ending, Ending::Crash(_)), "{name}: {ending:?}");
        }
    }

    #[test]
    fn another_version_of_the_protocol_is_refused() {
        let Body::Hello(mut old) = hello() else {
            unreachable!()
        };
        old.version += 1;
        let lines = [
            event(0, Body::Hello(old)),
            event(1, answer()),
            event(2, Body::Done),
        ];
        let Ending::Crash(text) = end(&lines, ok()) else {
            panic!()
        };
        assert!(
            text.starts_with("the worker speaks protocol 2, this program 1"),
            "{text}"
        );
    }

    #[test]
    fn a_runner_that_is_missing_is_named_with_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("worker");
        std::fs::write(&path, "").unwrap();
        let worker = Worker::at(&path, &["no-such-runner".to_owned()]).unwrap();
        let stop = Stop::new();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let error = runtime
            .block_on(try_out(&worker, dir.path(), None, &stop))
            .unwrap_err();
        let text = error.to_string();
        for part in ["`no-such-runner`", "qemu-user-static", "`runner`"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
