//! Whether the clock of the measured cores is fixed.
//!
//! The files are those of Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate}.rst.

use super::{Item, Seen};
use crate::evidence::{CpuFacts, Finding};
use crate::host::facts::{self, cpu_file};

/// What to do where the kernel has no say.
const NO_DRIVER: &str =
    "measure on a machine whose clock the kernel controls (a frequency driver), or fix the clock in \
     the firmware and state it with --allow-unfixed-host";

/// Who sets the frequency.
pub(super) fn driver(seen: &Seen, cpu: &CpuFacts) -> Finding {
    let path = cpu_file(cpu.cpu, "cpufreq/scaling_driver");
    let item = Item::advice("driver", &path, NO_DRIVER).on(cpu.cpu);
    match seen.root.read(&path) {
        Ok(driver) => item.ok(driver),
        Err(why) => item.not_read(&why),
    }
}

/// Only `performance` asks for the highest frequency whatever the load.
pub(super) fn governor(seen: &Seen, cpu: &CpuFacts) -> Finding {
    let path = cpu_file(cpu.cpu, "cpufreq/scaling_governor");
    let remedy = format!("campaign tune, or as root: echo performance > /{path}");
    let item = Item::required("governor", &path, remedy).on(cpu.cpu);
    match seen.root.read(&path) {
        Ok(text) if text == "performance" => item.ok(text),
        Ok(text) => item.bad(text),
        Err(why) => item.with_remedy(NO_DRIVER).not_read(&why),
    }
}

/// Minimum = maximum.
pub(super) fn frequency(seen: &Seen, cpu: &CpuFacts) -> Finding {
    let (low, high) = (
        cpu_file(cpu.cpu, "cpufreq/scaling_min_freq"),
        cpu_file(cpu.cpu, "cpufreq/scaling_max_freq"),
    );
    let remedy = "campaign tune: it makes minimum = maximum at the highest clock without boost";
    let item = Item::required("frequency", &low, remedy).on(cpu.cpu);
    let read = |path: &str| seen.root.read(path);
    match (read(&low), read(&high)) {
        (Ok(low), Ok(high)) if low == high => item.ok(format!("fixed at {low} kHz")),
        (Ok(low), Ok(high)) => item.bad(format!("{low} to {high} kHz")),
        (Err(why), _) | (_, Err(why)) => item.with_remedy(NO_DRIVER).not_read(&why),
    }
}

/// Every switch that bears on a measured CPU must be off.
pub(super) fn turbo(seen: &Seen) -> Finding {
    let cpus: Vec<u32> = seen.cpus.iter().map(|cpu| cpu.cpu).collect();
    let switches = facts::boost_switches(seen.root, &cpus);
    let item = |path: &str, remedy: String| Item::required("turbo", path, remedy);
    if let Some(on) = switches.iter().find(|switch| switch.is_on) {
        let path = &on.path;
        let remedy = format!("campaign tune, or as root: echo {} > /{path}", on.off);
        return item(path, remedy).bad("on");
    }
    if let Some(off) = switches.first() {
        return item(&off.path, String::new()).ok("off");
    }
    let item = item(
        "sys/devices/system/cpu/cpufreq/boost",
        "switch turbo off in the firmware and state it with --allow-unfixed-host".to_owned(),
    );
    let driver = seen.cpus.iter().find_map(|cpu| cpu.driver.as_deref());
    match (driver, seen.stable.architecture.as_str()) {
        (Some(driver), "aarch64") => {
            item.not_applicable(format!("driver {driver} has no boost to switch"))
        }
        (Some(driver), _) => item.unknown(format!("file absent: driver {driver} has no switch")),
        (None, _) => item.unknown("file absent, and no frequency driver"),
    }
}
