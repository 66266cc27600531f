//! The real counter path, in an emulated ARM machine whose kernel counts.
//!
//! In the mode `exact` a user-mode count is the number of instructions times 2^N, so equality is
//! asserted; the other modes and `tests/c/launch.c` make the situations in which a
//! counter must be refused, each with its own reason. No value here says anything about speed.

use crate::support::objects::{adapter_defines, include, Toolchain};
use crate::support::{arm, root, skip};
use protocol::{
    Body, Event, Failure, FailureCode, InputRule, Inputs, Isolation, LibraryFile, MeasureTask,
    Measured, Operation, Probe, Request, SelfTest, SourceKind, Task,
};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// The machine's cycles per instruction in the mode `exact`: not 1, so that a mix-up of the two
/// counters shows.
const SHIFT: u32 = 2;
/// Additions of the loop: with [`SHIFT`] about as long as the kernel lets one of two competing
/// counters count (4 ms).
const ADDS: u64 = 1 << 20;
/// Calls of a measurement, and the additions of each (`tests/c/adds_candidate.c`).
const CALLS: u64 = 500;
const ADDS_PER_CALL: u64 = 4096;
/// About what a call takes in the machine, nanoseconds.
const CALL_NS: u64 = 20_000;
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

// --- requests and answers ---

fn request(
    cpu: Option<u32>,
    library: Option<LibraryFile>,
    isolation: Isolation,
    task: Task,
) -> String {
    let request = Request {
        version: protocol::VERSION,
        token: TOKEN.to_owned(),
        library,
        cpu,
        stack_bytes: 64 << 20,
        isolation,
        task,
    };
    serde_json::to_string(&request).expect("a request is JSON")
}

fn probe_request(cpu: Option<u32>, loop_adds: u64) -> String {
    request(cpu, None, Isolation::NONE, Task::Probe { loop_adds })
}

/// A measurement of the candidate of known cost on CPU 0; `cost_ns` decides the batch size.
fn measure_request(
    library: &LibraryFile,
    isolation: Isolation,
    iterations: u64,
    cost_ns: u64,
) -> String {
    let inputs = Inputs {
        subject: "test/adds".to_owned(),
        rule: InputRule::Fresh,
        message_bytes: 64,
        trial: 0,
        key_trial: 0,
        prepared_key: None,
    };
    let task = Task::Measure(MeasureTask {
        operation: Operation::Verify,
        inputs,
        iterations,
        warmups: 2,
        cost_ns,
        sources: vec![SourceKind::Perf],
    });
    request(Some(0), Some(library.clone()), isolation, task)
}

/// Every protection that the worker has.
fn isolated() -> Isolation {
    Isolation {
        drop_privileges: true,
        landlock: true,
        seccomp: true,
        namespaces: true,
        address_space_bytes: Some(1 << 30),
        cpu_seconds: Some(60),
        file_bytes: Some(1 << 20),
    }
}

/// Checks what every answer must obey, and returns what it says.
fn bodies(events: &str) -> Vec<Body> {
    let events: Vec<Event> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    for (at, event) in events.iter().enumerate() {
        assert_eq!((event.token.as_str(), event.seq), (TOKEN, at as u64));
    }
    events.into_iter().map(|event| event.body).collect()
}

fn answer(events: &str) -> Probe {
    let bodies = bodies(events);
    assert_eq!(bodies.last(), Some(&Body::Done), "the worker crashed");
    let found = bodies.into_iter().find_map(|body| match body {
        Body::Probe(probe) => Some(probe),
        _ => None,
    });
    found.expect("a probe answers with a probe")
}

fn measured(events: &str) -> Measured {
    let bodies = bodies(events);
    assert_eq!(bodies.last(), Some(&Body::Done), "the worker crashed");
    let found = bodies.into_iter().find_map(|body| match body {
        Body::Measured(measured) => Some(*measured),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no measurement: {events}"))
}

fn failure(events: &str) -> Option<Failure> {
    bodies(events).into_iter().find_map(|body| match body {
        Body::Failed(failure) => Some(failure),
        _ => None,
    })
}

fn perf(probe: &Probe) -> &protocol::SourceProbe {
    source(probe, SourceKind::Perf)
}

fn source(probe: &Probe, kind: SourceKind) -> &protocol::SourceProbe {
    let found = probe.sources.iter().find(|source| source.kind == kind);
    found.unwrap_or_else(|| panic!("no answer about {kind:?}: {:?}", probe.sources))
}

fn self_test(probe: &Probe) -> &SelfTest {
    let perf = perf(probe);
    let Some(source) = &perf.source else {
        panic!("the counter is refused: {:?}", perf.reason)
    };
    &source.self_test
}

/// Reason code and text.
fn refused(probe: &Probe) -> (&str, &str) {
    let perf = perf(probe);
    assert_eq!(perf.source, None, "a refused counter must not be usable");
    let (code, text) = perf
        .reason
        .as_ref()
        .expect("a refused counter has a reason");
    (code, text)
}

fn refusal(probe: &Probe) -> &str {
    let (code, text) = refused(probe);
    assert!(!text.is_empty());
    code
}

fn assert_shared(probe: &Probe) {
    let (_, text) = refused(probe);
    assert!(text.contains("other events share its counters"), "{text}");
}

// --- boots: one for several tests, since each takes seconds ---

/// Shell function of the guest: `probe NAME REQUEST [COMMAND...]` runs the worker, under COMMAND,
/// with the request and leaves its events as NAME.
const PROBE: &str = r#"
export CAMPAIGN_EVENT_FD=3
probe() {
    name=$1 request=$2; shift 2
    "$@" /tmp/worker <$request 3>$OUT/$name
}
as_user() { su user -c "$*"; }
"#;

fn c_source(name: &str) -> std::path::PathBuf {
    root().join("harness/tests/c").join(name)
}

fn adds_objects(tools: &Toolchain) -> Vec<std::path::PathBuf> {
    let mut flags = include(&["drivers/iccs", "drivers/abi", "drivers/abi/include"]);
    flags.extend(adapter_defines("adds", "timed"));
    let sources = [
        "drivers/iccs/sm3.c",
        "drivers/iccs/drng.c",
        "drivers/abi/adapter.c",
    ];
    let candidate = c_source("adds_candidate.c");
    let sources = sources.iter().map(|file| root().join(file));
    sources
        .chain([candidate])
        .map(|source| tools.object(&source, &flags))
        .collect()
}

fn sha256(file: &Path) -> String {
    const_hex::encode(Sha256::digest(std::fs::read(file).expect("the library")))
}

fn boot(options: &[&str], commands: &str) -> Result<arm::Boot, String> {
    let worker = arm::worker()?;
    let guest = arm::Guest::new()?;
    guest.copy(worker);
    let tools = Toolchain::aarch64().expect("the worker was built with them");
    let launcher = tools.object(&c_source("launch.c"), &["-std=gnu99".to_owned()]);
    guest.copy(&tools.link("launch", &[launcher], &[]));
    let library = tools.library("adds.so", &adds_objects(&tools));
    guest.copy(&library);
    guest.write("cpu0", probe_request(Some(0), ADDS));
    guest.write("cpu0.double", probe_request(Some(0), 2 * ADDS));
    guest.write("cpu1", probe_request(Some(1), ADDS));
    let library = LibraryFile {
        path: "/tmp/adds.so".to_owned(),
        sha256: sha256(&library),
    };
    let measure = |isolation, calls, cost_ns| measure_request(&library, isolation, calls, cost_ns);
    guest.write("measure", measure(Isolation::NONE, CALLS, CALL_NS));
    guest.write("isolated", measure(isolated(), CALLS, CALL_NS));
    guest.write("one_batch", measure(Isolation::NONE, CALLS, 1));
    guest.write("long", measure(Isolation::NONE, 300_000, CALL_NS));
    guest.write("second", measure(Isolation::NONE, 60_000, CALL_NS));
    let boot = guest.boot(options, &format!("{PROBE}\n{commands}\ntrue"));
    assert_eq!(boot.status, 0, "the guest failed:\n{}", boot.console);
    Ok(boot)
}

/// What is asked in the mode `exact`.
const EXACT: &str = r#"
probe root cpu0
probe again cpu0
probe measured measure
probe once one_batch
probe twice one_batch
probe isolated isolated
probe double cpu0.double
for level in 3 2 1 0 -1; do
    echo $level >/proc/sys/kernel/perf_event_paranoid
    probe user$level cpu0 as_user
    probe root$level cpu0
done
echo 2 >/proc/sys/kernel/perf_event_paranoid
probe crowd cpu0 ./launch crowd 10
probe hog cpu0 ./launch hog 7
probe single cpu0 ./launch hog 6
probe eperm cpu0 ./launch refuse 1
probe eopnotsupp cpu0 ./launch refuse 95
probe absent cpu1
echo 1 >/proc/sys/kernel/perf_user_access
probe direct cpu0
probe allowed measure
echo 0 >/proc/sys/kernel/perf_user_access
probe forbidden measure
"#;

fn exact() -> Result<&'static arm::Boot, String> {
    static BOOT: OnceLock<Result<arm::Boot, String>> = OnceLock::new();
    BOOT.get_or_init(|| {
        let shift = SHIFT.to_string();
        boot(&["--mode", "exact", "--shift", &shift], EXACT)
    })
    .as_ref()
    .map_err(Clone::clone)
}

/// What is asked of two CPUs: one goes offline, then one is outside the cpuset.
const TWO_CPUS: &str = r#"
probe online cpu1
echo 0 >/sys/devices/system/cpu/cpu1/online
probe offline cpu1
echo 1 >/sys/devices/system/cpu/cpu1/online
mkdir /tmp/group
mount -t cgroup2 group /tmp/group
echo +cpuset >/tmp/group/cgroup.subtree_control
mkdir /tmp/group/first
echo 0 >/tmp/group/first/cpuset.cpus
echo $$ >/tmp/group/first/cgroup.procs
probe outside cpu1
probe inside cpu0
echo $$ >/tmp/group/cgroup.procs
mkdir /tmp/group/second
echo 1 >/tmp/group/second/cpuset.cpus
/tmp/worker <long 3>$OUT/stolen & worker=$!
until grep -q loaded $OUT/stolen; do sleep 0.02; done
sleep 0.2
echo $worker >/tmp/group/second/cgroup.procs
wait $worker
"#;

/// The right to read counters from user mode is withdrawn while a worker runs alone on CPU 0: where
/// nothing interrupts it until its last reading, the page that it reads is still the old one. Something
/// may, hence the rounds.
const WITHDRAWN: &str = r#"
taskset -p 2 $$ >/dev/null
for round in 0 1 2 3 4 5 6 7; do
    echo 1 >/proc/sys/kernel/perf_user_access
    /tmp/worker <second 3>$OUT/$round & worker=$!
    until grep -q loaded $OUT/$round; do sleep 0.02; done
    sleep 0.1
    echo 0 >/proc/sys/kernel/perf_user_access
    wait $worker
done
"#;

fn two_cpus() -> Result<&'static arm::Boot, String> {
    static BOOT: OnceLock<Result<arm::Boot, String>> = OnceLock::new();
    BOOT.get_or_init(|| boot(&["--mode", "both"], TWO_CPUS))
        .as_ref()
        .map_err(Clone::clone)
}

/// The boot, or the end of the test with its reason.
macro_rules! boot_or_skip {
    ($boot:expr) => {
        match $boot {
            Ok(boot) => boot,
            Err(reason) => return skip(&reason),
        }
    };
}

// --- the counts ---

#[test]
fn cycles_of_the_dependent_add_loop_equal_instructions_times_two_to_the_shift() {
    let boot = boot_or_skip!(exact());
    for name in ["root", "double"] {
        let probe = answer(&boot.text(name));
        let test = self_test(&probe);
        let instructions = test.instructions.expect("the group counts instructions");
        assert_eq!(test.counted, instructions << SHIFT, "{name}: {test:?}");
        assert!(instructions > test.adds, "{name}: {test:?}");
    }
}

#[test]
fn the_loop_costs_the_same_in_every_process() {
    let boot = boot_or_skip!(exact());
    let count = |name: &str| {
        let probe = answer(&boot.text(name));
        let test = self_test(&probe).clone();
        (test.adds, test.counted, test.instructions)
    };
    assert_eq!(count("root"), count("again"));
}

/// The fixed cost around the loop drops out of the difference of two lengths.
#[test]
fn twice_the_additions_cost_at_least_the_added_ones_and_less_than_two_instructions_each() {
    let boot = boot_or_skip!(exact());
    let [single, double] = ["root", "double"].map(|name| {
        let probe = answer(&boot.text(name));
        let test = self_test(&probe);
        (test.adds, test.instructions.expect("counted"))
    });
    let (adds, instructions) = (double.0 - single.0, double.1 - single.1);
    assert_eq!(adds, ADDS);
    assert!((adds..2 * adds).contains(&instructions), "{instructions}");
}

#[test]
fn an_accepted_counter_ran_all_the_time_it_was_enabled() {
    let boot = boot_or_skip!(exact());
    let probe = answer(&boot.text("root"));
    let test = self_test(&probe);
    let (enabled, running) = test
        .time_enabled_running
        .expect("the group reads its times");
    assert_eq!(enabled, running);
    assert!(enabled > 0);
    assert!(test.plausible, "{}", test.text);
}

#[test]
fn the_counter_is_the_pinned_cpus_own_and_counts_user_mode_only() {
    let boot = boot_or_skip!(exact());
    let probe = answer(&boot.text("root"));
    let source = perf(&probe).source.as_ref().expect("usable");
    assert_eq!(source.pmu.as_deref(), Some("armv8_pmuv3"));
    assert!(source.user_only);
    assert_eq!(source.frequency_hz, None, "cycles are no clock");
}

#[test]
fn the_virtual_counter_is_a_clock_with_the_frequency_of_its_register() {
    let boot = boot_or_skip!(exact());
    let probe = answer(&boot.text("root"));
    let cntvct = source(&probe, SourceKind::Cntvct);
    let cntvct = cntvct.source.as_ref().expect("every ARM machine has it");
    // The machine's: 62.5 MHz (QEMU's GTIMER_SCALE of 16 ns).
    assert_eq!(cntvct.frequency_hz, Some(62_500_000));
    assert_eq!(cntvct.pmu, None);
}

/// The kernel's page says which register to read; a mistake in its protocol would make the two
/// counts drift apart, since they are read one after the other.
#[test]
fn counters_read_from_user_mode_are_exact_too() {
    let boot = boot_or_skip!(exact());
    let probe = answer(&boot.text("direct"));
    let source = perf(&probe).source.as_ref().expect("usable");
    assert_eq!(source.access, "rdpmc");
    let test = &source.self_test;
    let instructions = test.instructions.expect("the group counts instructions");
    assert_eq!(test.counted, instructions << SHIFT);
    assert!(
        (test.adds..2 * test.adds).contains(&instructions),
        "{test:?}"
    );
}

#[test]
fn a_measurement_reads_from_user_mode_where_that_is_allowed_and_else_by_the_kernel() {
    let boot = boot_or_skip!(exact());
    for (name, access, directly) in [("allowed", "rdpmc", true), ("forbidden", "read", false)] {
        let measured = measured(&boot.text(name));
        assert_exact(&measured);
        let source = measured.source.source.expect("usable");
        assert_eq!(
            (source.access.as_str(), measured.read_directly),
            (access, directly)
        );
    }
}

/// The kernel's page still promises the right that the administrator has just withdrawn, and the next
/// reading traps: that is no crash of the library, and the attempt is counted by the kernel's readings
/// at both ends.
#[test]
fn a_right_to_read_that_is_withdrawn_within_an_attempt_leaves_the_kernels_count() {
    let boot = boot_or_skip!(boot(&["--mode", "both"], WITHDRAWN));
    for round in 0..8 {
        let measured = measured(&boot.text(&round.to_string()));
        let source = measured.source.source.as_ref().expect("usable");
        assert_eq!(
            (source.access.as_str(), measured.read_directly),
            ("rdpmc", false)
        );
        assert_eq!(measured.count_refused, None);
        let least = measured.calls * ADDS_PER_CALL;
        let instructions = measured.instructions.expect("counted");
        assert!((least..2 * least).contains(&instructions), "{measured:?}");
        assert!(
            (least..2 * least).contains(&measured.cycles.expect("counted")),
            "{measured:?}"
        );
    }
}

#[test]
fn with_one_counter_left_cycles_are_counted_without_instructions() {
    let boot = boot_or_skip!(exact());
    let probe = answer(&boot.text("single"));
    let test = self_test(&probe);
    assert_eq!(test.instructions, None);
    let least = test.adds << SHIFT;
    assert!((least..2 * least).contains(&test.counted), "{test:?}");
}

// --- a measurement ---

fn assert_exact(measured: &Measured) {
    let instructions = measured
        .instructions
        .expect("the group counts instructions");
    assert_eq!(measured.cycles, Some(instructions << SHIFT));
    assert_eq!(measured.ticks, None, "sources are never mixed");
    assert_eq!(measured.time_enabled_ns, measured.time_running_ns);
    assert_eq!(measured.calls, CALLS);
    // The rest is the loop around the additions, 32 bytes to compare, and the call.
    let adds = CALLS * ADDS_PER_CALL;
    assert!(
        (adds..adds * 5 / 4).contains(&instructions),
        "{instructions}"
    );
    let sampled: u64 = measured.samples_ns.iter().sum();
    assert_eq!(sampled + measured.rest.value, measured.nanoseconds);
}

#[test]
fn a_measured_operation_costs_the_additions_it_makes() {
    let boot = boot_or_skip!(exact());
    assert_exact(&measured(&boot.text("measured")));
}

/// A clock read that the timer's tick interrupts is repeated in user mode, some 2 times in 100,000:
/// so this is asked with the two clock reads of one batch only.
#[test]
fn two_attempts_with_the_same_seed_give_the_same_cycles() {
    let boot = boot_or_skip!(exact());
    let [first, second] = ["once", "twice"].map(|name| measured(&boot.text(name)));
    assert!(first.cycles.is_some());
    assert_eq!(first.cycles, second.cycles);
    assert_eq!(first.instructions, second.instructions);
}

#[test]
fn the_counter_works_inside_every_protection() {
    let boot = boot_or_skip!(exact());
    let events = boot.text("isolated");
    let hello = bodies(&events).into_iter().find_map(|body| match body {
        Body::Hello(hello) => Some(hello),
        _ => None,
    });
    let layers = hello.expect("the worker says hello").layers;
    let inactive: Vec<_> = layers.iter().filter(|layer| !layer.active).collect();
    assert!(inactive.is_empty(), "{inactive:?}");
    assert_exact(&measured(&events));
}

// --- the refusals, each with its own reason ---

#[test]
fn an_ordinary_user_may_count_from_paranoid_level_2_down_and_gets_eacces_above() {
    let boot = boot_or_skip!(exact());
    let at_3 = answer(&boot.text("user3"));
    assert_eq!(refusal(&at_3), "no_counter_eacces");
    for level in ["2", "1", "0", "-1"] {
        let allowed = answer(&boot.text(&format!("user{level}")));
        let test = self_test(&allowed);
        assert_eq!(
            Some(test.counted),
            test.instructions.map(|n| n << SHIFT),
            "level {level}"
        );
    }
}

#[test]
fn root_may_count_at_every_paranoid_level() {
    let boot = boot_or_skip!(exact());
    for level in ["3", "2", "1", "0", "-1"] {
        let probe = answer(&boot.text(&format!("root{level}")));
        assert!(self_test(&probe).plausible, "level {level}");
    }
}

#[test]
fn errors_of_a_security_filter_keep_their_names() {
    let boot = boot_or_skip!(exact());
    for (name, code) in [
        ("eperm", "no_counter_eperm"),
        ("eopnotsupp", "no_counter_eopnotsupp"),
    ] {
        assert_eq!(refusal(&answer(&boot.text(name))), code);
    }
}

/// A count that ran half of the time is half of the truth, and its ratio to the instructions is
/// as it should be: only the two times give it away.
#[test]
fn a_counter_that_took_turns_with_others_is_never_scaled() {
    let boot = boot_or_skip!(exact());
    assert_shared(&answer(&boot.text("crowd")));
}

#[test]
fn a_counter_that_never_ran_is_an_error_and_not_zero() {
    let boot = boot_or_skip!(exact());
    assert_shared(&answer(&boot.text("hog")));
}

#[test]
fn without_a_pmu_the_reason_is_enoent() {
    let boot = boot_or_skip!(boot(&["--mode", "nopmu"], "probe root cpu0"));
    assert_eq!(refusal(&answer(&boot.text("root"))), "no_counter_enoent");
}

#[test]
fn under_user_mode_emulation_the_reason_is_enosys() {
    let worker = boot_or_skip!(arm::worker());
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (input, events) = (dir.path().join("request"), dir.path().join("events"));
    std::fs::write(&input, probe_request(None, 100_000)).expect("a writable directory");
    let emulated = arm::emulated(worker);
    let status = Command::new("sh")
        .args(["-c", "\"$@\" <$INPUT 3>$EVENTS", "sh"])
        .arg(emulated.get_program())
        .args(emulated.get_args())
        .envs([("INPUT", &input), ("EVENTS", &events)])
        .env("CAMPAIGN_EVENT_FD", "3")
        .status()
        .expect("the emulator runs");
    assert!(status.success(), "{status}");
    let events = std::fs::read_to_string(events).expect("text");
    assert_eq!(refusal(&answer(&events)), "no_counter_enosys");
}

// --- pinning ---

fn assert_never_measured(boot: &arm::Boot, name: &str) {
    let events = boot.text(name);
    let failure = failure(&events).expect("a pin that fails is reported");
    assert_eq!(failure.code, FailureCode::Pin, "{}", failure.text);
    assert!(
        failure.text.contains('1'),
        "names the CPU: {}",
        failure.text
    );
    let measured = bodies(&events)
        .iter()
        .any(|body| matches!(body, Body::Probe(_)));
    assert!(!measured, "the worker went on unpinned");
}

#[test]
fn a_cpu_that_is_absent_is_a_pin_failure() {
    assert_never_measured(boot_or_skip!(exact()), "absent");
}

#[test]
fn a_cpu_that_went_offline_is_a_pin_failure() {
    let boot = boot_or_skip!(two_cpus());
    assert_eq!(failure(&boot.text("online")), None);
    assert_never_measured(boot, "offline");
}

#[test]
fn a_worker_whose_cpu_is_taken_away_brings_no_measurement() {
    let boot = boot_or_skip!(two_cpus());
    let events = boot.text("stolen");
    let failure = failure(&events).unwrap_or_else(|| panic!("it went on: {events}"));
    // A changed affinity is the library's doing or the machine's: the worker cannot tell, and says what it saw.
    let said = &failure.text;
    match failure.code {
        FailureCode::Pin => {}
        FailureCode::Contract => assert!(said.contains("affinity was changed"), "{said}"),
        other => panic!("{other:?}: {said}"),
    }
    let measured = bodies(&events)
        .iter()
        .any(|body| matches!(body, Body::Measured(_)));
    assert!(!measured, "the worker published what it measured elsewhere");
}

#[test]
fn a_cpu_outside_the_cpuset_is_a_pin_failure() {
    let boot = boot_or_skip!(two_cpus());
    assert_eq!(failure(&boot.text("inside")), None);
    assert_never_measured(boot, "outside");
}
