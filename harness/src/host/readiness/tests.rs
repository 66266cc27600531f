//! Judgements that rest on more than files: probes, watched siblings, a campaign's needs. What the
//! files of whole machines lead to is in `tests/host.rs`.

use super::*;
use crate::testing::counter;
use protocol::{Overhead, Probe, SourceKind, SourceProbe};

struct Machine {
    _dir: tempfile::TempDir,
    root: Root,
    stable: StableFacts,
    volatile: VolatileFacts,
    cpus: Vec<CpuFacts>,
}

/// An x86 machine with everything as it should be, but for what `files` replace.
fn machine(files: &[(&str, &str)]) -> Machine {
    const GOOD: [(&str, &str); 21] = [
        (
            "proc/cpuinfo",
            "processor\t: 2\nvendor_id\t: GenuineIntel\nflags\t\t: fpu avx2 popcnt\n",
        ),
        (
            "proc/meminfo",
            "MemTotal: 32551112 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
        ),
        ("proc/loadavg", "0.05 0.10 0.10 1/300 4000\n"),
        (
            "proc/self/status",
            "CapEff:\t0000000000000000\nSeccomp:\t0\n",
        ),
        ("proc/sys/kernel/osrelease", "6.12.0\n"),
        ("proc/sys/kernel/perf_event_paranoid", "2\n"),
        ("proc/sys/kernel/nmi_watchdog", "0\n"),
        ("proc/sys/kernel/randomize_va_space", "2\n"),
        ("proc/1/comm", "systemd\n"),
        ("proc/irq/9/smp_affinity_list", "0-1\n"),
        ("sys/class/thermal/thermal_zone0/temp", "40000\n"),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "tsc\n",
        ),
        ("sys/devices/system/cpu/online", "0-2\n"),
        ("sys/devices/system/cpu/isolated", "2\n"),
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
        ("sys/devices/system/cpu/smt/control", "off\n"),
        (
            "sys/devices/system/cpu/cpu2/topology/thread_siblings_list",
            "2\n",
        ),
        (
            "sys/devices/system/cpu/cpu2/cpufreq/scaling_driver",
            "intel_pstate\n",
        ),
        (
            "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
            "performance\n",
        ),
        (
            "sys/devices/system/cpu/cpu2/cpufreq/scaling_min_freq",
            "2100000\n",
        ),
        (
            "sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq",
            "2100000\n",
        ),
    ];
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in GOOD.iter().chain(files) {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match *text {
            "" => std::fs::remove_file(path).unwrap(),
            text => std::fs::write(path, text).unwrap(),
        }
    }
    let root = Root::at(dir.path());
    let mut stable = super::super::facts::stable(&root, &[2], &[]);
    stable.compiler = Some("gcc (GCC) 14.2.0".to_owned());
    Machine {
        volatile: super::super::facts::volatile(&root),
        cpus: vec![super::super::facts::cpu(&root, 2)],
        _dir: dir,
        root,
        stable,
    }
}

fn findings_with(
    machine: &Machine,
    probes: &[CpuProbe],
    busy: Option<&BTreeMap<u32, f64>>,
    needs: Option<&[Need]>,
) -> Vec<Finding> {
    findings(&Seen {
        root: &machine.root,
        stable: &machine.stable,
        volatile: &machine.volatile,
        cpus: &machine.cpus,
        probes,
        not_probed: "no worker",
        busy,
        needs,
    })
}

fn perf(result: Result<&str, (&str, &str)>) -> Vec<CpuProbe> {
    let source = |text: &str| counter("rdpmc", text);
    vec![CpuProbe {
        cpu: 2,
        probe: Probe {
            sources: vec![SourceProbe {
                kind: SourceKind::Perf,
                source: result.ok().map(source),
                reason: result
                    .err()
                    .map(|(code, text)| (code.to_owned(), text.to_owned())),
            }],
            core_clock_estimate_hz: None,
            core_clock_spread_hz: None,
            overhead: Overhead {
                clock_read_ps: 1,
                empty_call_ps: 1,
                iterations: 1,
            },
            facts: Vec::new(),
        },
    }]
}

fn of<'a>(findings: &'a [Finding], item: &str) -> &'a Finding {
    findings.iter().find(|f| f.item == item).unwrap()
}

/// State, value and remedy of one item.
fn item(findings: &[Finding], name: &str) -> (FindingState, String, Option<String>) {
    let found = of(findings, name);
    (found.state, found.value.clone(), found.remedy.clone())
}

#[test]
fn a_machine_that_is_as_it_should_be_is_ready_and_one_that_was_not_probed_is_not() {
    let machine = machine(&[]);
    let probes = perf(Ok("1.00 cycles an addition"));
    let found = findings_with(&machine, &probes, None, Some(&[]));
    let open: Vec<&Finding> = found.iter().filter(|f| !is_fine(f)).collect();
    assert_eq!(open, Vec::<&Finding>::new());
    assert!(is_ready(&found));
    let found = findings_with(&machine, &[], None, Some(&[]));
    let open: Vec<&str> = found
        .iter()
        .filter(|f| !is_fine(f))
        .map(|f| f.item.as_str())
        .collect();
    assert_eq!(open, ["cycle_counter"]);
    assert_eq!(of(&found, "cycle_counter").state, FindingState::Unknown);
    assert!(!is_ready(&found));
}

/// A filter may answer with any error; only a counter that opens shows that it lets the call through.
#[test]
fn a_filter_is_fine_only_where_a_counter_opens() {
    let filter = machine(&[("proc/self/status", "CapEff:\t0\nSeccomp:\t2\n")]);
    let state = |probes: &[CpuProbe]| {
        let found = findings_with(&filter, probes, None, None);
        item(&found, "seccomp")
    };
    assert_eq!(state(&perf(Ok("fine"))).0, FindingState::Ok);
    for code in [
        "no_counter_enosys",
        "no_counter_eacces",
        "no_counter_enoent",
        "no_counter_eopnotsupp",
        "not_recorded",
    ] {
        let (found, value, remedy) = state(&perf(Err((code, "why"))));
        assert_eq!(found, FindingState::Unknown, "{code}");
        assert!(value.contains(code) && remedy.is_some(), "{value}");
    }
    let off = machine(&[("proc/self/status", "CapEff:\t0\nSeccomp:\t0\n")]);
    let refused = perf(Err(("no_counter_enosys", "why")));
    let found = findings_with(&off, &refused, None, None);
    assert_eq!(of(&found, "seccomp").state, FindingState::Ok);
}

#[test]
fn a_refused_counter_is_bad_with_the_remedy_of_its_reason() {
    let machine = machine(&[("proc/self/status", "CapEff:\t0\nSeccomp:\t2\n")]);
    let with = "EPERM: refused; a filter. Remedy: start it with a profile";
    let found = findings_with(&machine, &perf(Err(("no_counter_eperm", with))), None, None);
    assert_eq!(
        item(&found, "cycle_counter"),
        (
            FindingState::Bad,
            "EPERM: refused; a filter.".to_owned(),
            Some("start it with a profile".to_owned())
        )
    );
    assert_eq!(of(&found, "seccomp").state, FindingState::Bad);
    let without = perf(Err(("no_counter_enoent", "ENOENT: no event")));
    let found = findings_with(&machine, &without, None, None);
    let remedy = item(&found, "cycle_counter").2.unwrap();
    assert!(remedy.contains("PMU"), "{remedy}");
    assert_eq!(of(&found, "seccomp").state, FindingState::Unknown);
    let found = findings_with(&machine, &[], None, None);
    assert_eq!(of(&found, "seccomp").state, FindingState::Unknown);
}

#[test]
fn a_sibling_is_judged_by_what_it_did() {
    let siblings = "sys/devices/system/cpu/cpu2/topology/thread_siblings_list";
    let machine = machine(&[
        (siblings, "2-3\n"),
        ("sys/devices/system/cpu/smt/control", "on\n"),
    ]);
    let state = |busy: Option<f64>| {
        let busy = busy.map(|part| BTreeMap::from([(3, part)]));
        let found = findings_with(&machine, &[], busy.as_ref(), None);
        assert_eq!(of(&found, "smt").state, FindingState::Bad);
        item(&found, "sibling")
    };
    assert_eq!(state(Some(0.02)).0, FindingState::Ok);
    let (bad, value, _) = state(Some(0.5));
    assert_eq!(
        (bad, value.as_str()),
        (FindingState::Bad, "CPU 3 busy 50 % of the time")
    );
    assert_eq!(state(None).0, FindingState::Unknown);
}

#[test]
fn implementations_that_would_end_in_sigill_are_counted_by_what_they_need() {
    let machine = machine(&[]);
    let need = |identity: &str, features: &[&str]| Need {
        identity: identity.to_owned(),
        features: features.iter().map(|f| (*f).to_owned()).collect(),
    };
    let needs = [
        need("a", &["sve"]),
        need("b", &["sha3"]),
        need("c", &["sve"]),
    ];
    let found = findings_with(&machine, &[], None, Some(&needs));
    assert_eq!(
        item(&found, "cpu_features").1,
        "implementations lack features: 1 need sha3; 2 need sve"
    );
    let found = findings_with(&machine, &[], None, None);
    assert_eq!(
        of(&found, "cpu_features").state,
        FindingState::NotApplicable
    );
}

/// Each file that is wrong or missing, and what becomes of its item.
#[test]
fn single_files_decide_their_items() {
    use FindingState::*;
    let governor = "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor";
    let turbo = "sys/devices/system/cpu/intel_pstate/no_turbo";
    let boost = "sys/devices/system/cpu/cpufreq/boost";
    let own_boost = "sys/devices/system/cpu/cpu2/cpufreq/boost";
    let paranoid = "proc/sys/kernel/perf_event_paranoid";
    /// Files that are other than in the base, the item, its state, and a part of its value.
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, FindingState, &'a str);
    let cases: [Case; 23] = [
        (&[(governor, "\n")], "governor", Unknown, "file empty"),
        (&[(governor, "")], "governor", Unknown, "file absent"),
        (&[(turbo, "0\n")], "turbo", Bad, "on"),
        (&[(turbo, ""), (boost, "1\n")], "turbo", Bad, "on"),
        (
            &[(turbo, ""), (boost, "0\n"), (own_boost, "1\n")],
            "turbo",
            Bad,
            "on",
        ),
        (&[(turbo, ""), (boost, "0\n")], "turbo", Ok, "off"),
        (
            &[(turbo, "")],
            "turbo",
            Unknown,
            "file absent: driver intel_pstate has no switch",
        ),
        (
            &[(paranoid, "-1\n")],
            "perf_event_paranoid",
            Ok,
            "-1: everybody may use almost all events",
        ),
        (
            &[(paranoid, "4\n")],
            "perf_event_paranoid",
            Bad,
            "4: no events for ordinary users (Ubuntu's own level)",
        ),
        (
            &[(paranoid, "")],
            "perf_event_paranoid",
            Bad,
            "file absent: this kernel has no performance events",
        ),
        (
            &[(paranoid, "x\n")],
            "perf_event_paranoid",
            Unknown,
            "`x` is no level",
        ),
        (
            &[("proc/sys/kernel/nmi_watchdog", "1\n")],
            "nmi_watchdog",
            Bad,
            "1: on",
        ),
        (
            &[("proc/1/comm", "irqbalance\n")],
            "irqbalance",
            Bad,
            "runs",
        ),
        (
            &[("proc/irq/9/smp_affinity_list", "0-3\n")],
            "irq_affinity",
            Bad,
            "1 of 1 interrupts may come here (9)",
        ),
        (
            &[("sys/hypervisor/type", "xen\n")],
            "virtualization",
            Bad,
            "xen",
        ),
        (
            &[(
                "proc/sys/kernel/osrelease",
                "5.15.1-microsoft-standard-WSL2\n",
            )],
            "virtualization",
            Bad,
            "wsl",
        ),
        (
            &[("proc/sys/kernel/osrelease", "4.18.0\n")],
            "guide_kernel",
            Bad,
            "4.18.0",
        ),
        (
            &[("proc/meminfo", "MemTotal: 3900000 kB\n")],
            "guide_memory",
            Bad,
            "3808 MiB",
        ),
        (
            &[("proc/meminfo", "MemTotal: 3900000 kB\n")],
            "swap",
            Unknown,
            "SwapTotal and SwapFree cannot be read",
        ),
        (
            &[("proc/loadavg", "1.50 1 1 1/1 1\n")],
            "load",
            Bad,
            "1.50 over a minute",
        ),
        (
            &[
                ("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n"),
                ("sys/class/thermal/thermal_zone0/temp", "96000\n"),
                (
                    "sys/class/thermal/thermal_zone0/trip_point_0_type",
                    "active\n",
                ),
                (
                    "sys/class/thermal/thermal_zone0/trip_point_0_temp",
                    "50000\n",
                ),
                (
                    "sys/class/thermal/thermal_zone0/trip_point_1_type",
                    "passive\n",
                ),
                (
                    "sys/class/thermal/thermal_zone0/trip_point_1_temp",
                    "95000\n",
                ),
            ],
            "thermal",
            Bad,
            "x86_pkg_temp 96 °C, and slows the processor down there",
        ),
        (
            &[(
                "sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count",
                "7\n",
            )],
            "throttling",
            Bad,
            "7 times since boot",
        ),
        (
            &[(
                "proc/cpuinfo",
                "processor\t: 2\nvendor_id\t: GenuineIntel\nflags\t: fpu\n",
            )],
            "guide_processor",
            Unknown,
            "the features of the processor cannot be read",
        ),
    ];
    for (files, name, state, value) in cases {
        let machine = machine(files);
        let found = findings_with(&machine, &[], None, None);
        let (found_state, found_value, remedy) = item(&found, name);
        assert_eq!(
            (found_state, found_value.as_str()),
            (state, value),
            "{files:?}"
        );
        let fine = matches!(state, Ok | NotApplicable);
        assert_eq!(remedy.is_none_or(|text| text.is_empty()), fine, "{files:?}");
    }
}
