//! What else may take time from the measured core, or make its clock or its layout vary.

use super::{Item, Seen};
use crate::evidence::{CpuFacts, Finding};
use crate::host::facts::{self, cpu_file};
use crate::host::root::{NotRead, Root};
use crate::values::number_list;

/// Load average, one minute, from which on something else is running.
const LOAD_MOST: f64 = 0.5;
/// Interrupts that are listed by number; more are only counted.
const IRQS_SHOWN: usize = 8;

/// A virtual machine shares its processor with others, and cannot fix its clock.
pub(super) fn virtualization(seen: &Seen) -> Finding {
    let item = Item::required(
        "virtualization",
        "/proc/cpuinfo, /sys/class/dmi/id, /proc/device-tree",
        "measure on the machine itself: a virtual one shares its processor with others",
    );
    match seen.stable.virtualization.as_deref() {
        Some("none") => item.ok("none"),
        Some(kind) if kind.starts_with("container:") => item.ok(format!(
            "{kind}, on a machine that is not virtual as far as it tells"
        )),
        Some(kind) => item.bad(kind),
        None => item.unknown("neither processor nor firmware tells"),
    }
}

/// It moves interrupts back to where `tune` took them away.
pub(super) fn irqbalance(seen: &Seen) -> Finding {
    let item = Item::advice(
        "irqbalance",
        "/proc/*/comm",
        "as root, for the time of the campaign: systemctl stop irqbalance",
    );
    let processes: Vec<String> = seen
        .root
        .names("proc")
        .into_iter()
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .collect();
    let runs = |id: &String| {
        let comm = seen.root.text(&format!("proc/{id}/comm"));
        comm.as_deref() == Some("irqbalance")
    };
    let kind = seen.stable.virtualization.as_deref().unwrap_or("");
    match processes.iter().any(runs) {
        true => item.bad("runs"),
        false if processes.is_empty() => item.unknown("no process can be seen"),
        false if kind.starts_with("container:") => {
            item.unknown("a container does not see the processes of its machine")
        }
        false => item.ok("does not run"),
    }
}

/// What the machine did in the last minute.
pub(super) fn load(seen: &Seen) -> Finding {
    let item = Item::advice(
        "load",
        "proc/loadavg",
        "end what else runs, and wait a minute",
    );
    match seen.volatile.load_average {
        Some(load) if load <= LOAD_MOST => item.ok(format!("{load:.2} over a minute")),
        Some(load) => item.bad(format!("{load:.2} over a minute")),
        None => item.unknown("file absent or empty"),
    }
}

/// Memory on disk.
pub(super) fn swap(seen: &Seen) -> Finding {
    let item = Item::advice(
        "swap",
        "proc/meminfo",
        "as root, where memory allows it: swapoff -a",
    );
    match seen.volatile.swap_used_kib {
        Some(0) => item.ok("none in use"),
        Some(used) => item.bad(format!("{} MiB in use", used.div_ceil(1024))),
        None => item.unknown("SwapTotal and SwapFree cannot be read"),
    }
}

/// A zone at or above a trip point at which the kernel slows the processor down
/// (Documentation/driver-api/thermal/sysfs-api.rst).
pub(super) fn thermal(seen: &Seen) -> Finding {
    const ZONES: &str = "sys/class/thermal";
    let item = Item::advice(
        "thermal",
        ZONES,
        "let the machine cool down, and look at its fans",
    );
    let zones: Vec<Zone> = seen
        .root
        .names(ZONES)
        .iter()
        .filter(|name| name.starts_with("thermal_zone"))
        .filter_map(|name| Zone::read(seen.root, &format!("{ZONES}/{name}")))
        .collect();
    if let Some(hot) = zones.iter().find(|zone| zone.trips()) {
        return item.bad(format!("{hot}, and slows the processor down there"));
    }
    match zones.iter().max_by_key(|zone| zone.millidegrees) {
        Some(hottest) => item.ok(format!("hottest: {hottest}")),
        None if seen.root.exists(ZONES) => item.not_applicable("no zone with a temperature"),
        None => item.unknown("folder absent"),
    }
}

struct Zone {
    kind: String,
    millidegrees: i64,
    /// The lowest trip point of kind passive, hot or critical; fans are `active`.
    slows_at: Option<i64>,
}

impl Zone {
    fn read(root: &Root, folder: &str) -> Option<Zone> {
        let names = root.names(folder);
        let trips = names
            .iter()
            .filter_map(|name| name.strip_suffix("_type")?.strip_prefix("trip_point_"));
        let slows = |trip: &&str| {
            let kind = root.text(&format!("{folder}/trip_point_{trip}_type"));
            matches!(kind.as_deref(), Some("passive" | "hot" | "critical"))
        };
        let temperature = |trip: &str| root.number(&format!("{folder}/trip_point_{trip}_temp"));
        Some(Zone {
            kind: root.text(&format!("{folder}/type")).unwrap_or_default(),
            millidegrees: root.number(&format!("{folder}/temp"))?,
            slows_at: trips
                .filter(slows)
                .filter_map(temperature)
                // Firmware gives 0 or less for a point that it does not have.
                .filter(|&at: &i64| at > 0)
                .min(),
        })
    }

    fn trips(&self) -> bool {
        self.slows_at.is_some_and(|at| self.millidegrees >= at)
    }
}

impl std::fmt::Display for Zone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} °C", self.kind, self.millidegrees / 1000)
    }
}

/// Random layout stays on: each process has another one, and figures are means over processes.
pub(super) fn aslr(seen: &Seen) -> Finding {
    let item = Item::advice(
        "aslr",
        "proc/sys/kernel/randomize_va_space",
        "as root: sysctl kernel.randomize_va_space=2 (one fixed layout would favour some code)",
    );
    match seen.volatile.aslr.as_deref() {
        Some("2") => item.ok("2: on, averaged over processes"),
        Some("1") => item.bad("1: on but for the heap"),
        Some(other) => item.bad(format!("{other}: off")),
        None => item.unknown("file absent or empty"),
    }
}

/// Clocks that are read from user mode; of the others each reading is a system call.
pub(super) fn clocksource(seen: &Seen) -> Finding {
    let item = Item::advice(
        "clocksource",
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "boot with clocksource=tsc, or find out why the kernel took another (dmesg)",
    );
    match seen.stable.clocksource.as_deref() {
        Some(name @ ("tsc" | "arch_sys_counter" | "kvm-clock" | "hyperv_clocksource_tsc_page")) => {
            item.ok(name)
        }
        Some(name) => item.bad(format!("{name}: slow to read")),
        None => item.unknown("file absent or empty"),
    }
}

/// Interrupts that may come to the CPU (Documentation/core-api/irq/irq-affinity.rst).
pub(super) fn irq_affinity(seen: &Seen, cpu: &CpuFacts) -> Finding {
    let item = Item::advice(
        "irq_affinity",
        "/proc/irq/*/smp_affinity_list",
        "campaign tune moves those that can be moved",
    )
    .on(cpu.cpu);
    let irqs = facts::irqs(seen.root);
    if irqs.is_empty() {
        return item.unknown("no interrupt has an affinity that can be read");
    }
    let here: Vec<u32> = irqs
        .iter()
        .filter(|(_, cpus)| cpus.contains(&cpu.cpu))
        .map(|(irq, _)| *irq)
        .collect();
    if here.is_empty() {
        return item.ok(format!("none of {} interrupts may come here", irqs.len()));
    }
    let shown = number_list(&here[..here.len().min(IRQS_SHOWN)]);
    let more = if here.len() > IRQS_SHOWN { ", ..." } else { "" };
    item.bad(format!(
        "{} of {} interrupts may come here ({shown}{more})",
        here.len(),
        irqs.len()
    ))
}

/// Events since boot; those of an attempt disturb it.
pub(super) fn throttling(seen: &Seen, cpu: &CpuFacts) -> Finding {
    let path = cpu_file(cpu.cpu, "thermal_throttle/core_throttle_count");
    let remedy = "look at cooling and power limits; attempts that are hit are repeated";
    let item = Item::advice("throttling", &path, remedy).on(cpu.cpu);
    match (facts::throttled(seen.root, cpu.cpu), seen.root.read(&path)) {
        (Some(0), _) => item.ok("never since boot"),
        (Some(n), _) => item.bad(format!("{n} times since boot")),
        (None, Err(NotRead::Absent)) if seen.root.exists(&cpu_file(cpu.cpu, "")) => {
            item.not_applicable("file absent: the kernel counts none for this processor")
        }
        (None, Err(why)) => item.not_read(&why),
        (None, Ok(text)) => item.unknown(format!("`{text}` is no count")),
    }
}
