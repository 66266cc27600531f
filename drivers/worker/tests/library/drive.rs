//! Starts the real worker, hands it one request, collects its events.

use command_fds::{CommandFdExt, FdMapping};
use protocol::{
    Body, Event, Failure, FailureCode, InputRule, Inputs, Isolation, LibraryFile, Request, Task,
};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};

/// Token of all requests here.
const TOKEN: &str = "00112233445566778899aabbccddeeff";

/// What a worker left.
#[derive(Debug)]
pub struct Run {
    /// Its events, each with the token and the next number.
    pub events: Vec<Body>,
    /// Lines that are no such event.
    pub strange: Vec<String>,
    /// How it ended.
    pub status: ExitStatus,
    /// Captured outputs.
    pub stdout: String,
    pub stderr: String,
    /// What came on the extra descriptor.
    pub extra: Vec<u8>,
}

/// A request to build on.
pub fn request(task: Task, library: Option<LibraryFile>) -> Request {
    Request {
        version: protocol::VERSION,
        token: TOKEN.into(),
        library,
        cpu: None,
        stack_bytes: 64 << 20,
        isolation: Isolation::NONE,
        task,
    }
}

/// The protections of a campaign.
pub fn isolated(mut request: Request) -> Request {
    request.isolation = Isolation {
        drop_privileges: true,
        landlock: true,
        seccomp: true,
        namespaces: true,
        address_space_bytes: Some(4 << 30),
        cpu_seconds: Some(120),
        file_bytes: Some(0),
    };
    request
}

/// Inputs of trial 7 of the toy.
pub fn inputs() -> Inputs {
    Inputs {
        subject: "toys/toy".into(),
        rule: InputRule::Fresh,
        message_bytes: 64,
        trial: 7,
        key_trial: 7,
        prepared_key: None,
    }
}

/// Runs the worker on `request`.
pub fn run(request: &Request) -> Run {
    run_with(request, None)
}

/// Runs the worker with one more descriptor for it to write to, named by `variable`.
pub fn run_with(request: &Request, variable: Option<&str>) -> Run {
    start(&serde_json::to_vec(request).unwrap(), variable, None)
}

/// Runs the worker with `file` as the descriptor named by `variable`.
pub fn run_on_file(request: &Request, variable: &str, file: std::fs::File) -> Run {
    start(
        &serde_json::to_vec(request).unwrap(),
        None,
        Some((variable, file.into())),
    )
}

/// Runs the worker on any bytes.
pub fn start(input: &[u8], out: Option<&str>, file: Option<(&str, OwnedFd)>) -> Run {
    let (mut events, events_in) = std::io::pipe().unwrap();
    let mut command = worker();
    command
        .env_clear()
        .env("LC_ALL", "C")
        .env(protocol::EVENT_FD, "3")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut mappings = vec![mapping(events_in.into(), 3)];
    let mut extra = None;
    if let Some(variable) = out {
        let (reader, writer) = std::io::pipe().unwrap();
        command.env(variable, "4");
        mappings.push(mapping(writer.into(), 4));
        extra = Some(reader);
    }
    if let Some((variable, file)) = file {
        command.env(variable, "5");
        mappings.push(mapping(file, 5));
    }
    command.fd_mappings(mappings).unwrap();
    let mut child = command.spawn().expect("the worker starts");
    drop(command); // holds our copies of the descriptors
    child.stdin.take().unwrap().write_all(input).unwrap();
    let extra = extra.map(|mut reader| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            bytes
        })
    });
    let lines = std::thread::spawn(move || {
        let mut text = Vec::new();
        events.read_to_end(&mut text).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    });
    let output = child.wait_with_output().unwrap();
    let (events, strange) = sort(&lines.join().unwrap());
    Run {
        events,
        strange,
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        extra: extra.map(|t| t.join().unwrap()).unwrap_or_default(),
    }
}

/// The worker, under the runner that cargo uses for this target where there is one: an emulated
/// test cannot start a program of its own architecture directly.
pub fn worker() -> Command {
    let program = crate::support::here(env!("CARGO_BIN_EXE_worker"), "target/debug/worker");
    let runner = runner();
    let words = runner.split_whitespace().map(OsStr::new);
    let mut words = words.chain([program.as_os_str()]);
    let mut command = Command::new(words.next().expect("the worker itself is a word"));
    command.args(words);
    command
}

/// Whether worker and test run under an emulator, whose own memory and threads they show.
pub fn is_emulated() -> bool {
    !runner().is_empty()
}

fn runner() -> String {
    let architecture = std::env::consts::ARCH.to_uppercase();
    let variable = format!("CARGO_TARGET_{architecture}_UNKNOWN_LINUX_GNU_RUNNER");
    std::env::var(variable).unwrap_or_default()
}

fn mapping(parent_fd: OwnedFd, child_fd: i32) -> FdMapping {
    FdMapping {
        parent_fd,
        child_fd,
    }
}

fn sort(text: &str) -> (Vec<Body>, Vec<String>) {
    let (mut events, mut strange) = (Vec::new(), Vec::new());
    for line in text.lines() {
        match serde_json::from_str::<Event>(line) {
            Ok(event) if event.token == TOKEN && event.seq == events.len() as u64 => {
                events.push(event.body);
            }
            _ => strange.push(line.to_owned()),
        }
    }
    (events, strange)
}

impl Run {
    /// Whether the last event is `done`.
    pub fn done(&self) -> bool {
        matches!(self.events.last(), Some(Body::Done))
    }

    /// The answer of a run that went well.
    pub fn answer(&self) -> &Body {
        assert!(self.done() && self.status.success(), "{self:#?}");
        &self.events[self.events.len() - 2]
    }

    /// The failure of a run that said why it failed.
    pub fn failure(&self) -> &Failure {
        assert!(self.done(), "{self:#?}");
        match &self.events[self.events.len() - 2] {
            Body::Failed(failure) => failure,
            Body::Kat(outcome) => outcome.failure.as_ref().expect("a failed KAT"),
            other => panic!("no failure: {other:?}"),
        }
    }

    /// Asserts the class of a failure and a part of its text.
    #[track_caller]
    pub fn fails_with(&self, code: FailureCode, part: &str) {
        let failure = self.failure();
        assert_eq!(failure.code, code, "{failure:?}");
        assert!(failure.text.contains(part), "{failure:?}");
    }

    /// Asserts that the process ended without its last event.
    #[track_caller]
    pub fn crashed(&self) {
        assert!(!self.done(), "{self:#?}");
    }
}
