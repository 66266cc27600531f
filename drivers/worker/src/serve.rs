//! From request to last event: the order of steps of a worker process.
//!
//! detach, read the request, pin, open every file and counter, install the protections, load the
//! library on the dedicated stack, close the way to further files, do the task, say `done`.

use crate::counters;
use crate::error::{Result, WorkerError};
use crate::events::Events;
use crate::faults;
use crate::isolation;
use crate::kat;
use crate::library::{Candidate, LibraryHandle, MemorySymbols};
use crate::memory::{OnStack, Stack};
use crate::process::{self, Migrations, Status};
use crate::tasks::{self, Inputs, MemoryTask, Meters, ProfileTask};
use crate::timing;
use crate::traces::Settings;
use protocol::{Body, Hello, KatTask, Layer, LibraryFile, Loaded, Request, SourceKind, Task};
use std::fs::File;
use std::io::Read;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};

/// Iterations of the empty loop whose cost goes with every attempt.
const OVERHEAD_ITERATIONS: u64 = 2000;

/// Largest request, bytes.
const LARGEST_REQUEST: u64 = 16 << 20;

/// Runs the worker; the result is the exit status of the process. Without an event descriptor
/// there is nobody to tell: the error goes to standard error.
pub fn main() -> i32 {
    process::take_name();
    let started = process::detach().and_then(|()| Descriptors::take());
    let (descriptors, request) = match started.and_then(|d| Ok((d, read_request()?))) {
        Ok(both) => both,
        Err(error) => {
            eprintln!("worker: {error}");
            return 2;
        }
    };
    let mut events = Events::new(descriptors.events, request.token.clone());
    let files = Files {
        text: descriptors.text,
        key: descriptors.key,
        message: descriptors.message,
    };
    let outcome = serve(&request, files, &mut events);
    let told = match outcome {
        Ok(()) => Ok(()),
        Err(error) => events.send(Body::Failed(error.failure())),
    };
    process::flush_streams();
    match told.and_then(|()| events.send(Body::Done)) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("worker: {error}");
            3
        }
    }
}

/// Descriptors that the orchestrator names in the environment.
struct Descriptors {
    events: OwnedFd,
    text: Option<File>,
    key: Option<File>,
    message: Option<File>,
}

/// Those that a task may need.
struct Files {
    text: Option<File>,
    key: Option<File>,
    message: Option<File>,
}

impl Descriptors {
    /// Takes them, out of the environment and away from the low numbers that libraries guess.
    fn take() -> Result<Descriptors> {
        let events = private(protocol::EVENT_FD)?.ok_or_else(|| {
            WorkerError::Request(format!(
                "{} is not set: a worker is started by campaign, not by hand",
                protocol::EVENT_FD
            ))
        })?;
        Ok(Descriptors {
            events,
            text: private(protocol::TEXT_FD)?.map(File::from),
            key: private(protocol::KEY_FD)?.map(File::from),
            message: private(protocol::FILE_FD)?.map(File::from),
        })
    }
}

/// The descriptor whose number is in the variable `name`, moved to a high number and closed on
/// exec; the variable is removed.
fn private(name: &str) -> Result<Option<OwnedFd>> {
    let Some(value) = std::env::var_os(name) else {
        return Ok(None);
    };
    // SAFETY: the process has one thread, so nobody reads the environment meanwhile.
    unsafe { std::env::remove_var(name) };
    let number: RawFd = value
        .to_str()
        .and_then(|text| text.parse().ok())
        .filter(|&n| n > 2)
        .ok_or_else(|| WorkerError::Request(format!("{name} is no descriptor: {value:?}")))?;
    // SAFETY: the orchestrator opened the descriptor for this process, and nothing else in it owns
    // the number; if it is not open, the duplication fails and nothing is closed twice.
    let given = unsafe { OwnedFd::from_raw_fd(number) };
    let moved = move_away(&given);
    if moved.is_err() {
        std::mem::forget(given); // not open: closing it would be a second error
    }
    moved.map(Some).map_err(WorkerError::io(format!(
        "the descriptor {number} of {name}"
    )))
}

fn move_away(given: &OwnedFd) -> std::io::Result<OwnedFd> {
    use nix::fcntl::{fcntl, FcntlArg};
    let (soft, _) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE)?;
    // Not at the very end: other descriptors come after it.
    let lowest = (soft.min(1 << 20) as RawFd - 64).max(3);
    let number = fcntl(given, FcntlArg::F_DUPFD_CLOEXEC(lowest))?;
    // SAFETY: the kernel just gave this number to us.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn read_request() -> Result<Request> {
    let mut text = Vec::new();
    std::io::stdin()
        .take(LARGEST_REQUEST + 1)
        .read_to_end(&mut text)
        .map_err(WorkerError::io("reading the request"))?;
    if text.len() as u64 > LARGEST_REQUEST {
        return Err(WorkerError::Request(format!(
            "longer than {LARGEST_REQUEST} bytes"
        )));
    }
    serde_json::from_slice(&text).map_err(|e| WorkerError::Request(e.to_string()))
}

fn serve(request: &Request, files: Files, events: &mut Events) -> Result<()> {
    if request.version != protocol::VERSION {
        return Err(WorkerError::Request(format!(
            "protocol version {} was asked for, this worker speaks {}",
            request.version,
            protocol::VERSION
        )));
    }
    if let Some(cpu) = request.cpu {
        process::pin(cpu)?;
    }
    faults::install()?;
    match &request.task {
        Task::Probe { loop_adds } => {
            let probe = counters::probe(*loop_adds, request.cpu);
            alone(request, events)?;
            events.send(Body::Probe(probe))
        }
        Task::Empty { iterations } => {
            alone(request, events)?;
            events.send(Body::Empty(counters::measure_overhead(*iterations)))
        }
        Task::Message { subject, bytes } => {
            alone(request, events)?;
            let out = needed(files.message, protocol::FILE_FD)?;
            events.send(Body::Message(tasks::generate(subject, *bytes, out)?))
        }
        _ => with_library(request, files, events),
    }
}

/// Installs all protections and says so in the first event: no library is loaded afterwards.
fn alone(request: &Request, events: &mut Events) -> Result<()> {
    let mut layers = isolation::install(&request.isolation, &[]);
    layers.extend(isolation::close(&request.isolation));
    hello(request, layers, events)
}

/// Says who answers, and which protections are on.
fn hello(request: &Request, layers: Vec<Layer>, events: &mut Events) -> Result<()> {
    events.send(Body::Hello(Hello {
        version: protocol::VERSION,
        build_id: protocol::BUILD_ID.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        pid: std::process::id(),
        cpu: request.cpu.map(|_| process::current_cpu()).transpose()?,
        layers,
    }))
}

fn with_library(request: &Request, files: Files, events: &mut Events) -> Result<()> {
    let wanted = request.library.as_ref().ok_or_else(|| {
        WorkerError::Request("this task needs a library, and none is named".to_owned())
    })?;
    // What the library may close is not closed by us: the process ends soon, and closing a descriptor
    // that is gone would end it before it has said why.
    let handle = ManuallyDrop::new(LibraryHandle::open(wanted)?);
    let prepared = ManuallyDrop::new(Inputs::open_prepared(prepared_key(&request.task))?);
    let interposed = match &request.task {
        Task::Memory { interposed, .. } => interposed.as_ref(),
        _ => None,
    };
    let interposed = interposed.map(MemorySymbols::interposed).transpose()?;
    let mut stack = Stack::new(request.stack_bytes)?;
    stack.arm(events.last_words(stack.bytes()))?;
    let meters = ManuallyDrop::new(Meters::open(request)?);
    let tick_hz = match &request.task {
        Task::Profile { .. } => tasks::tick_hz(request.cpu),
        _ => None,
    };
    let layers = isolation::install(&request.isolation, &[handle.as_fd()]);
    hello(request, layers, events)?;
    let settings = Settings::now();
    let candidate = stack.run(|on| Candidate::load(on, &handle))?;
    // Loading opens files, nothing after it does: what is read later is open already.
    let layers = isolation::close(&request.isolation);
    events.send(Body::Loaded(Loaded {
        layers,
        ..stack.run(|on| candidate.loaded(on))
    }))?;
    let mut work = ManuallyDrop::new(Work {
        request,
        candidate: &candidate,
        interposed: interposed.as_ref(),
        prepared: prepared.as_ref(),
        files,
        events,
        meters: ManuallyDrop::into_inner(meters),
        tick_hz,
    });
    let answer = work.task(&mut stack).map_err(blame)?;
    settings.check()?;
    if let Some(answer) = answer {
        events.send(answer)?;
    }
    if matches!(request.task, Task::Load | Task::Kat(_)) {
        // Unloading is part of what is checked; the other tasks end without it.
        stack.run(|on| candidate.unload(on));
    } else {
        std::mem::forget(candidate);
    }
    Ok(())
}

fn prepared_key(task: &Task) -> Option<&LibraryFile> {
    let inputs = match task {
        Task::Prepare { inputs, .. }
        | Task::Calibrate { inputs, .. }
        | Task::Memory { inputs, .. }
        | Task::Profile { inputs, .. } => inputs,
        Task::Measure(task) => &task.inputs,
        Task::Study(task) => &task.measure.inputs,
        Task::Probe { .. }
        | Task::Empty { .. }
        | Task::Load
        | Task::Kat(_)
        | Task::Message { .. } => return None,
    };
    inputs.prepared_key.as_ref()
}

impl Meters {
    /// Opens what the task of `request` reads.
    pub fn open(request: &Request) -> Result<Meters> {
        let kinds: &[SourceKind] = match &request.task {
            Task::Measure(task) => &task.sources,
            Task::Study(task) => &task.measure.sources,
            _ => &[SourceKind::None],
        };
        let (source, probe) = counters::open(kinds, request.cpu);
        Ok(Meters {
            cpu: request.cpu,
            source,
            probe,
            overhead: counters::measure_overhead(OVERHEAD_ITERATIONS),
            clock_step_ns: timing::clock_step_ns(),
            status: Status::open()?,
            migrations: Migrations::open(),
        })
    }
}

/// The part of a worker's life that knows the library.
struct Work<'a> {
    request: &'a Request,
    candidate: &'a Candidate,
    interposed: Option<&'a MemorySymbols>,
    prepared: Option<&'a File>,
    files: Files,
    events: &'a mut Events,
    meters: Meters,
    tick_hz: Option<u64>,
}

impl Work<'_> {
    /// Does the task; `None` when what was said at loading is the answer.
    fn task(&mut self, stack: &mut Stack) -> Result<Option<Body>> {
        let answer = match &self.request.task {
            Task::Load => {
                stack.run(|on| self.candidate.check_sizes(on))?;
                return Ok(None);
            }
            Task::Memory {
                operation,
                inputs,
                keys,
                interposed: _,
            } => {
                let task = MemoryTask {
                    operation: *operation,
                    inputs,
                    keys: *keys,
                    interposed: self.interposed,
                };
                Body::Memory(tasks::memory(
                    stack,
                    self.candidate,
                    &task,
                    self.prepared,
                    &self.meters,
                )?)
            }
            _ => stack.run(|on| self.on_stack(on))?,
        };
        Ok(Some(answer))
    }

    /// The tasks that run on the dedicated stack as a whole.
    fn on_stack(&mut self, on: &OnStack<'_>) -> Result<Body> {
        let (candidate, prepared) = (self.candidate, self.prepared);
        match &self.request.task {
            Task::Kat(task) => self.kat(on, task),
            Task::Prepare { operation, inputs } => {
                let out = needed(self.files.key.take(), protocol::KEY_FD)?;
                tasks::prepare(on, candidate, *operation, inputs, out).map(Body::Prepared)
            }
            Task::Calibrate {
                operation,
                inputs,
                outputs,
            } => tasks::calibrate(on, candidate, *operation, inputs, *outputs, prepared)
                .map(Body::Calibrated),
            Task::Measure(task) => tasks::measure(on, candidate, task, prepared, &mut self.meters)
                .map(|measured| Body::Measured(Box::new(measured))),
            Task::Profile {
                operation,
                inputs,
                keys,
            } => {
                let task = ProfileTask {
                    operation: *operation,
                    inputs,
                    keys: *keys,
                    tick_hz: self.tick_hz,
                };
                tasks::profile(on, candidate, &task, prepared).map(Body::Profile)
            }
            Task::Study(task) => {
                let file = needed(self.files.message.take(), protocol::FILE_FD)?;
                let meters = &mut self.meters;
                tasks::study(on, candidate, task, &file, prepared, meters)
                    .map(|outcome| Body::Study(Box::new(outcome)))
            }
            Task::Probe { .. }
            | Task::Empty { .. }
            | Task::Load
            | Task::Memory { .. }
            | Task::Message { .. } => {
                unreachable!("these were done before")
            }
        }
    }

    fn kat(&mut self, on: &OnStack<'_>, task: &KatTask) -> Result<Body> {
        let kept = if task.keep_text {
            Some(needed(self.files.text.take(), protocol::TEXT_FD)?)
        } else {
            None
        };
        let events = &mut self.events;
        let mut progress = |done, planned| events.send(Body::Progress { done, planned });
        let mut outcome = kat::run(on, self.candidate, task, kept, &mut progress)?;
        outcome.log.push(format!(
            "largest resident set: {} bytes (VmHWM)",
            self.meters.status.read()?.peak_rss_bytes
        ));
        Ok(Body::Kat(outcome))
    }
}

/// What a worker reads and writes after loading was open before. Where that fails, the library has
/// closed or replaced it, unless the disk is to blame: a finding about the library, and no reason to
/// end the campaign.
fn blame(error: WorkerError) -> WorkerError {
    use nix::errno::Errno;
    const DISK: [Errno; 5] = [
        Errno::ENOSPC,
        Errno::EDQUOT,
        Errno::EIO,
        Errno::EFBIG,
        Errno::EROFS,
    ];
    let WorkerError::Io { what, source } = error else {
        return error;
    };
    match source.raw_os_error().map(Errno::from_raw) {
        Some(code) if !DISK.contains(&code) => {}
        _ => return WorkerError::Io { what, source },
    }
    WorkerError::Contract(format!(
        "{what}: {source}; it was open before the library was loaded, which has closed or replaced it"
    ))
}

fn needed(file: Option<File>, variable: &str) -> Result<File> {
    file.ok_or_else(|| WorkerError::Request(format!("this task needs the descriptor {variable}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::FailureCode;

    #[test]
    fn a_descriptor_that_is_gone_is_the_library_s_doing_and_a_full_disk_is_not() {
        for (code, expected) in [
            (libc::EBADF, FailureCode::Contract),
            (libc::ESPIPE, FailureCode::Contract),
            (libc::ENOSPC, FailureCode::Io),
            (libc::EDQUOT, FailureCode::Io),
        ] {
            let source = std::io::Error::from_raw_os_error(code);
            let blamed = blame(WorkerError::io("reading it")(source));
            assert_eq!(blamed.code(), expected, "{blamed}");
        }
        let other = blame(WorkerError::Pin("gone".into()));
        assert_eq!(other.code(), FailureCode::Pin);
    }
}
