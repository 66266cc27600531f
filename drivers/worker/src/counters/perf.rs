//! User-mode core cycles of the calling thread, from the PMU of its CPU, grouped with instructions.
//!
//! The crate `perf-event` opens the leader: its builder fills the attribute, and `attrs_mut` lets the
//! PMU of the pinned CPU be named. Its `Group` is not used: its leader is always a software dummy, so
//! cycles could not lead, and its `read` allocates and panics on a short answer. Therefore the member
//! (instructions) is opened under the cycle counter with the raw binding `perf-event-open-sys2`, and
//! the group is read into a buffer on the stack. Which PMU it is comes from `pmu`, what an error
//! means from `refusal`, reading from user mode from `direct`.

use super::direct::{self, Mapped};
use super::pmu::{Choice, Pmu, Pmus};
use super::reading::{Direct, Reading};
use super::refusal::{self, Permission};
use super::selftest;
use super::CycleSource;
use perf_event::{events::Hardware, Builder};
use perf_event_open_sys as raw;
use perf_event_open_sys::bindings as sys;
use protocol::SourceKind;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::path::Path;

/// Place of the PMU type in the configuration of a generic hardware event (PERF_PMU_TYPE_SHIFT).
const PMU_TYPE_SHIFT: u32 = 32;
/// arm64, `config1`: a counter of 64 bits, and one that user mode may read.
const ARM_LONG_AND_USER: u64 = 0b11;
/// arm64, `config1`: a counter that user mode may read.
const ARM_USER: u64 = 0b10;
/// Words of a group read: number, enabled, running, and at most two values.
const WORDS: usize = 5;

/// What is tried beyond counting cycles by `read()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Instructions in the group.
    pub instructions: bool,
    /// Reading from user mode.
    pub direct: bool,
}

/// An event as the kernel is asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Event {
    kind: u32,
    config: u64,
}

/// Cycles and instructions of one way to name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    cycles: Event,
    instructions: Option<Event>,
}

/// An open group that counts.
#[derive(Debug)]
pub struct Perf {
    leader: OwnedFd,
    member: Option<OwnedFd>,
    pages: Option<(Mapped, Option<Mapped>)>,
    facts: protocol::CycleSource,
}

/// Opens the group for the calling thread on `cpu` and starts it; an error is reason code and text.
pub fn open(root: &Path, cpu: Option<u32>, options: Options) -> Result<Perf, (String, String)> {
    let pmus = Pmus::read(root);
    let choice = pmus.choose(cpu);
    let pmu = match &choice {
        Choice::Generic(pmu) => pmu.as_ref(),
        Choice::Named(pmu) => Some(pmu),
        Choice::NoPmu => return Err(no_pmu(cpu, &pmus)),
    };
    let user_read = options.direct && pmu.is_some_and(|pmu| user_read_by_request(root, pmu));
    let (way, leader) = open_leader(&ways(&choice), user_read).map_err(|error| {
        let permission = Permission::read(root, pmus.describe());
        let (code, text) = refusal::reason(error.raw_os_error().unwrap_or(0), &permission);
        (code.to_owned(), text)
    })?;
    let member = way.instructions.filter(|_| options.instructions);
    let member = member.and_then(|event| open_member(event, leader.as_fd(), user_read).ok());
    let pages = options
        .direct
        .then(|| map(leader.as_fd(), member.as_ref()))
        .flatten();
    let facts = facts(pmu, way, pages.is_some());
    let perf = Perf {
        leader,
        member,
        pages,
        facts,
    };
    let broken = |error: io::Error| {
        let text = format!("the group was opened but does not count: {error}");
        ("not_recorded".to_owned(), text)
    };
    perf.enable().map_err(broken)?;
    perf.group().map_err(broken)?;
    Ok(perf)
}

fn no_pmu(cpu: Option<u32>, pmus: &Pmus) -> (String, String) {
    let text = match cpu {
        Some(cpu) => format!(
            "no PMU counts on CPU {cpu}; {}. Measure on a CPU that one of them lists",
            pmus.describe()
        ),
        None => format!(
            "this machine has several kinds of cores and the worker is not pinned; {}. Name a CPU",
            pmus.describe()
        ),
    };
    ("no_counter_enoent".to_owned(), text)
}

/// On arm64 a counter is readable from user mode only when the event asks for it and the
/// administrator allows it; asking in vain is an error, so it is asked only then.
fn user_read_by_request(root: &Path, pmu: &Pmu) -> bool {
    let allowed = std::fs::read_to_string(root.join("proc/sys/kernel/perf_user_access"));
    pmu.user_read_bit && allowed.is_ok_and(|text| text.trim() == "1")
}

/// Ways to name the two events, best first: the generic numbers (the kernel then knows what the PMU
/// cannot count), on machines with several PMUs with the PMU's type in the upper half (Linux 5.13;
/// arm64 later), and there also the codes that the PMU's own folder gives.
fn ways(choice: &Choice) -> Vec<Way> {
    let generic = |upper: u64| Way {
        cycles: hardware(upper | u64::from(sys::PERF_COUNT_HW_CPU_CYCLES)),
        instructions: Some(hardware(upper | u64::from(sys::PERF_COUNT_HW_INSTRUCTIONS))),
    };
    let Choice::Named(pmu) = choice else {
        return vec![generic(0)];
    };
    let own = |config| Event {
        kind: pmu.kind,
        config,
    };
    let mut ways = vec![generic(u64::from(pmu.kind) << PMU_TYPE_SHIFT)];
    ways.extend(pmu.cycles.map(|cycles| Way {
        cycles: own(cycles),
        instructions: pmu.instructions.map(own),
    }));
    ways
}

fn hardware(config: u64) -> Event {
    Event {
        kind: sys::PERF_TYPE_HARDWARE,
        config,
    }
}

/// The first way that opens; else the error of the last.
fn open_leader(ways: &[Way], user_read: bool) -> io::Result<(Way, OwnedFd)> {
    let mut last = io::Error::from_raw_os_error(libc::ENOENT);
    for &way in ways {
        match build_leader(way.cycles, user_read) {
            Ok(leader) => return Ok((way, leader)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The builder's own defaults are a disabled event, of this thread, without kernel and hypervisor.
fn build_leader(event: Event, user_read: bool) -> io::Result<OwnedFd> {
    let mut builder = Builder::new()
        .kind(Hardware::CPU_CYCLES)
        .observe_self()
        .any_cpu();
    let attributes = builder.attrs_mut();
    attributes.type_ = event.kind;
    attributes.config = event.config;
    attributes.read_format = u64::from(
        sys::PERF_FORMAT_TOTAL_TIME_ENABLED
            | sys::PERF_FORMAT_TOTAL_TIME_RUNNING
            | sys::PERF_FORMAT_GROUP,
    );
    if user_read {
        // `config1` of the kernel's structure; the bindings name the union by its older member.
        attributes.__bindgen_anon_3.config1 = ARM_LONG_AND_USER;
    }
    let counter = builder.build()?;
    // SAFETY: the counter gives its descriptor away and is gone.
    Ok(unsafe { OwnedFd::from_raw_fd(counter.into_raw_fd()) })
}

fn open_member(event: Event, leader: BorrowedFd<'_>, user_read: bool) -> io::Result<OwnedFd> {
    let mut attributes = sys::perf_event_attr::default();
    attributes.size = size_of::<sys::perf_event_attr>() as u32;
    attributes.type_ = event.kind;
    attributes.config = event.config;
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    if user_read {
        attributes.__bindgen_anon_3.config1 = ARM_USER;
    }
    let flags = sys::PERF_FLAG_FD_CLOEXEC.into();
    // SAFETY: `attributes` is initialised and outlives the call; counting our own thread changes
    // nothing of it.
    let fd = unsafe { raw::perf_event_open(&mut attributes, 0, -1, leader.as_raw_fd(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Both pages, or none: a span is never half direct.
fn map(leader: BorrowedFd<'_>, member: Option<&OwnedFd>) -> Option<(Mapped, Option<Mapped>)> {
    let leader = Mapped::new(leader).ok()?;
    let member = match member {
        Some(member) => Some(Mapped::new(member.as_fd()).ok()?),
        None => None,
    };
    Some((leader, member))
}

fn facts(pmu: Option<&Pmu>, way: Way, direct: bool) -> protocol::CycleSource {
    let Event { kind, config } = way.cycles;
    protocol::CycleSource {
        kind: SourceKind::Perf,
        pmu: pmu.map(|pmu| pmu.name.clone()),
        event: format!("cycles (type {kind}, config {config:#x})"),
        user_only: true,
        access: if direct { selftest::DIRECT } else { "read" }.to_owned(),
        frequency_hz: None,
        resolution: None,
        read_cost_ns: 0,
        self_test: selftest::pending(),
    }
}

impl Perf {
    fn enable(&self) -> io::Result<()> {
        let whole_group = sys::PERF_IOC_FLAG_GROUP;
        // SAFETY: the descriptor is open, and this request takes a number.
        match unsafe { raw::ioctls::ENABLE(self.leader.as_raw_fd(), whole_group) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Both values as the kernel adds them up.
    fn group(&self) -> io::Result<Reading> {
        let mut words = [0u64; WORDS];
        let members = 1 + usize::from(self.member.is_some());
        let wanted = (3 + members) * size_of::<u64>();
        let fd = self.leader.as_raw_fd();
        // SAFETY: the buffer is at least `wanted` bytes of integers.
        let got = unsafe { libc::read(fd, words.as_mut_ptr().cast(), wanted) };
        match usize::try_from(got) {
            Err(_) => Err(io::Error::last_os_error()),
            Ok(got) if got != wanted || words[0] != members as u64 => Err(io::Error::other(format!(
                "a group read gave {got} bytes for {} events instead of {wanted} for {members}: the group is \
                 in error state (its counters are taken by a pinned event)",
                words[0]
            ))),
            Ok(_) => Ok(Reading {
                instructions: self.member.as_ref().map(|_| words[4]),
                enabled_running: Some((words[1], words[2])),
                ..Reading::clock(words[3])
            }),
        }
    }

    #[inline]
    fn direct(&self) -> Option<Direct> {
        let (cycles, instructions) = self.pages.as_ref()?;
        let value = direct::read(cycles)?;
        let instructions = match instructions {
            Some(page) => Some(direct::read(page)?),
            None => None,
        };
        Some(Direct {
            value,
            instructions,
        })
    }

    /// Whether a reading from user mode works now.
    pub fn reads_directly(&self) -> bool {
        self.direct().is_some()
    }

    /// Keeps to `read()` from now on.
    pub fn forget_direct(&mut self) {
        self.pages = None;
        self.facts.access = "read".to_owned();
    }
}

impl CycleSource for Perf {
    fn facts(&self) -> &protocol::CycleSource {
        &self.facts
    }

    fn facts_mut(&mut self) -> &mut protocol::CycleSource {
        &mut self.facts
    }

    #[inline]
    fn read(&mut self) -> io::Result<Reading> {
        let before = self.direct();
        let mut reading = self.group()?;
        reading.before = before;
        reading.after = self.direct();
        Ok(reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pmu(cycles: Option<u64>) -> Pmu {
        Pmu {
            name: "cpu_atom".to_owned(),
            kind: 10,
            cpus: Some([4, 5].into()),
            cycles,
            instructions: Some(0xc0),
            user_read_bit: false,
        }
    }

    #[test]
    fn one_kind_of_core_is_asked_for_by_the_generic_event_only() {
        let only = ways(&Choice::Generic(Some(pmu(Some(0x3c)))));
        assert_eq!(only.len(), 1);
        assert_eq!(only[0].cycles, Event { kind: 0, config: 0 });
        assert_eq!(only[0].instructions, Some(Event { kind: 0, config: 1 }));
    }

    #[test]
    fn a_named_pmu_is_asked_for_by_its_type_and_then_by_its_own_codes() {
        let both = ways(&Choice::Named(pmu(Some(0x3c))));
        assert_eq!(
            both[0].cycles,
            Event {
                kind: 0,
                config: 10 << 32
            }
        );
        assert_eq!(
            both[0].instructions,
            Some(Event {
                kind: 0,
                config: 10 << 32 | 1
            })
        );
        assert_eq!(
            both[1].cycles,
            Event {
                kind: 10,
                config: 0x3c
            }
        );
        assert_eq!(
            both[1].instructions,
            Some(Event {
                kind: 10,
                config: 0xc0
            })
        );
        assert_eq!(ways(&Choice::Named(pmu(None))).len(), 1);
    }

    #[test]
    fn user_reads_are_asked_for_only_where_the_administrator_allows_them() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("proc/sys/kernel/perf_user_access");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let arm = Pmu {
            user_read_bit: true,
            ..pmu(None)
        };
        assert!(!user_read_by_request(root.path(), &arm), "no such file");
        for (text, asked) in [("0\n", false), ("1\n", true)] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(user_read_by_request(root.path(), &arm), asked);
            assert!(!user_read_by_request(root.path(), &pmu(None)));
        }
    }

    #[test]
    fn a_cpu_without_pmu_is_refused_with_the_list_of_those_there_are() {
        let pmus = Pmus {
            cores: vec![pmu(None)],
            others: Vec::new(),
            readable: true,
        };
        let (code, text) = no_pmu(Some(9), &pmus);
        assert_eq!(code, "no_counter_enoent");
        assert!(
            text.contains("CPU 9") && text.contains("cpu_atom (CPUs 4-5)"),
            "{text}"
        );
    }

    #[test]
    fn this_machine_opens_a_group_or_gives_one_of_the_reasons() {
        let options = Options {
            instructions: true,
            direct: true,
        };
        match open(Path::new("/"), None, options) {
            Ok(mut perf) => {
                let first = perf.read().unwrap();
                super::super::adds::run(1000, 0, 1);
                let last = perf.read().unwrap();
                assert!(last.value > first.value);
            }
            Err((code, text)) => {
                assert!(
                    code.starts_with("no_counter_e") || code == "not_recorded",
                    "{code}: {text}"
                );
                assert!(text.len() > 40, "{text}");
            }
        }
    }
}
