//! Whether core cycles can be counted, and what decides about it.

use super::{Item, Seen};
use crate::evidence::{CpuFacts, Finding};
use crate::host::root::NotRead;
use protocol::{SourceKind, SourceProbe};

const PARANOID: &str = "proc/sys/kernel/perf_event_paranoid";
const STATUS: &str = "proc/self/status";
/// Highest level at which an ordinary user may count the user mode of own processes.
const PARANOID_MOST: i64 = 2;
/// CAP_SYS_ADMIN and, since Linux 5.8, CAP_PERFMON (linux/capability.h).
const CAPABILITIES: u64 = 1 << 21 | 1 << 38;

/// The level and what it means. The file's existence is how a kernel says that it has performance
/// events at all (perf_event_open(2)).
pub(super) fn perf_event_paranoid(seen: &Seen) -> Finding {
    let item = Item::required(
        "perf_event_paranoid",
        PARANOID,
        "campaign tune, or as root: sysctl kernel.perf_event_paranoid=2",
    );
    match seen.root.read(PARANOID) {
        Ok(text) => match text.trim().parse() {
            Ok(level) if level <= PARANOID_MOST => item.ok(meaning(level)),
            Ok(level) => item.bad(meaning(level)),
            Err(_) => item.unknown(format!("`{text}` is no level")),
        },
        Err(NotRead::Absent) if seen.root.exists("proc/sys/kernel") => item
            .with_remedy("boot a kernel with CONFIG_PERF_EVENTS")
            .bad("file absent: this kernel has no performance events"),
        Err(why) => item.not_read(&why),
    }
}

/// Documentation/admin-guide/sysctl/kernel.rst; levels above 2 are patches of distributions.
fn meaning(level: i64) -> String {
    let text = match level {
        ..=-1 => "everybody may use almost all events",
        0 => "all but raw tracepoints for ordinary users",
        1 => "own processes with their kernel part for ordinary users",
        2 => "own processes in user mode for ordinary users, which is enough",
        3 => "no events for ordinary users (Debian's and Android's own level)",
        _ => "no events for ordinary users (Ubuntu's own level)",
    };
    format!("{level}: {text}")
}

/// Capabilities help only where the level is too strict; workers give theirs up.
pub(super) fn capabilities(seen: &Seen) -> Finding {
    let item = Item::advice(
        "capabilities",
        STATUS,
        "lower the level (perf_event_paranoid), or give the user CAP_PERFMON",
    );
    let Some(text) = status(seen, "CapEff") else {
        return item.unknown("CapEff cannot be read");
    };
    let Ok(mask) = u64::from_str_radix(&text, 16) else {
        return item.unknown(format!("CapEff `{text}` is no mask"));
    };
    let held = mask & CAPABILITIES != 0;
    let value = format!(
        "CapEff {text}: CAP_PERFMON or CAP_SYS_ADMIN {}",
        if held { "held" } else { "not held" }
    );
    match (held, seen.volatile.perf_event_paranoid) {
        (true, _) => item.ok(value),
        (false, Some(..=PARANOID_MOST)) => item.not_applicable(format!("{value}, not needed")),
        (false, Some(_)) => item.bad(value),
        (false, None) => item.unknown(format!("{value}; the level is not known")),
    }
}

/// A filter may refuse the call whatever the level; only a probe shows whether it does.
pub(super) fn seccomp(seen: &Seen) -> Finding {
    let item = Item::advice(
        "seccomp",
        STATUS,
        "start the container with a profile that allows perf_event_open \
         (docker: --security-opt seccomp=PROFILE --cap-add PERFMON)",
    );
    let perf: Vec<&SourceProbe> = seen
        .probes
        .iter()
        .flat_map(|probe| &probe.probe.sources)
        .filter(|source| source.kind == SourceKind::Perf)
        .collect();
    let refused = |s: &&SourceProbe| s.reason.as_ref().is_some_and(|(code, _)| code == EPERM);
    let other = || perf.iter().find_map(|source| source.reason.as_ref());
    match status(seen, "Seccomp").as_deref() {
        Some("0") => item.ok("mode 0: off"),
        Some(mode) if perf.iter().any(refused) => item.bad(format!(
            "mode {mode}: a filter, and perf_event_open is refused"
        )),
        // The call came through once, so the filter lets it through.
        Some(mode) if perf.iter().any(|source| source.source.is_some()) => item.ok(format!(
            "mode {mode}: a filter, which does not refuse perf_event_open"
        )),
        // A filter may answer with any error: ENOSYS and EACCES are as usual as EPERM.
        Some(mode) if other().is_some() => item.unknown(format!(
            "mode {mode}: a filter; there is no counter ({}), and whether the filter has a part in that is \
             not known",
            other().map_or("", |(code, _)| code.as_str())
        )),
        Some(mode) => item.unknown(format!(
            "mode {mode}: a filter; whether it allows counters is not known ({})",
            seen.not_probed
        )),
        None => item.unknown("Seccomp cannot be read"),
    }
}

/// A line of the status file of this process.
fn status(seen: &Seen, name: &str) -> Option<String> {
    let text = seen.root.text(STATUS)?;
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.trim().to_owned())
}

const EPERM: &str = "no_counter_eperm";

/// What a worker on that CPU found, with the flags that are used later.
pub(super) fn cycle_counter(seen: &Seen, cpu: &CpuFacts) -> Finding {
    let item = Item::required(
        "cycle_counter",
        "perf_event_open by a worker on that CPU",
        "run `campaign check` on the machine itself",
    )
    .on(cpu.cpu);
    let probe = seen.probes.iter().find(|probe| probe.cpu == cpu.cpu);
    let perf = probe.map(|probe| {
        let mut sources = probe.probe.sources.iter();
        sources.find(|source| source.kind == SourceKind::Perf)
    });
    match perf {
        None => item.unknown(format!("not probed: {}", seen.not_probed)),
        Some(None) => item.unknown("the probe says nothing of it"),
        Some(Some(SourceProbe {
            source: Some(source),
            ..
        })) => item.ok(format!(
            "{} of {}, user mode, by {}; {}",
            source.event,
            source.pmu.as_deref().unwrap_or("the default PMU"),
            source.access,
            source.self_test.text
        )),
        Some(Some(SourceProbe { reason, .. })) => refused(item, reason.as_ref()),
    }
}

/// The reason's text ends with its remedy where it has one for this machine.
fn refused(item: Item, reason: Option<&(String, String)>) -> Finding {
    let Some((code, text)) = reason else {
        return item.unknown("not usable, and no reason given");
    };
    let (value, remedy) = match text.split_once(" Remedy: ") {
        Some((value, remedy)) => (value, remedy),
        None => (text.as_str(), general_remedy(code)),
    };
    item.with_remedy(remedy).bad(value)
}

fn general_remedy(code: &str) -> &'static str {
    match code {
        "no_counter_enoent" => {
            "give the virtual machine a PMU (KVM: -cpu host,pmu=on), or measure on a real one \
             whose kernel has the driver of its PMU"
        }
        "no_counter_enosys" => "measure on a real kernel, and not under an emulator or sandbox",
        "no_counter_eacces" => "campaign tune",
        EPERM => "allow perf_event_open in the container's profile",
        "no_counter_eopnotsupp" => {
            "measure on a CPU whose PMU can tell user mode from kernel, or with a newer kernel"
        }
        _ => "see the value; times can be measured without cycles",
    }
}

/// It keeps a counter for itself, so that groups may not fit.
pub(super) fn nmi_watchdog(seen: &Seen) -> Finding {
    let path = "proc/sys/kernel/nmi_watchdog";
    let item = Item::advice(
        "nmi_watchdog",
        path,
        "as root: sysctl kernel.nmi_watchdog=0 (it keeps a hardware counter)",
    );
    match seen.root.read(path) {
        Ok(text) if text == "0" => item.ok("0: off"),
        Ok(text) => item.bad(format!("{text}: on")),
        Err(NotRead::Absent) if seen.root.exists("proc/sys/kernel") => {
            item.not_applicable("file absent: this kernel has none")
        }
        Err(why) => item.not_read(&why),
    }
}
