//! The measured core: whether it is shared, of which kind it is, and who else may run on it.

use super::{Item, Seen};
use crate::evidence::{CpuFacts, Finding};
use crate::host::facts::{self, cpu_file, parse_cpu_list};
use crate::host::root::NotRead;
use crate::values::number_list;

/// Part of a short time that a sibling may be busy and still count as idle.
const SIBLING_BUSY_MOST: f64 = 0.05;

/// Simultaneous multithreading (Documentation/ABI/testing/sysfs-devices-system-cpu).
pub(super) fn smt(seen: &Seen) -> Finding {
    let path = "sys/devices/system/cpu/smt/control";
    let item = Item::required(
        "smt",
        path,
        format!("campaign tune, or as root: echo off > /{path}"),
    );
    let shared: Vec<u32> = seen
        .cpus
        .iter()
        .filter(|cpu| !cpu.siblings.is_empty())
        .map(|cpu| cpu.cpu)
        .collect();
    match seen.root.read(path) {
        Ok(text) => match text.as_str() {
            "off" | "forceoff" => item.ok(text),
            "notsupported" | "notimplemented" => item.not_applicable(text),
            _ if shared.is_empty() => item.ok(format!(
                "{text}, but the measured CPUs have no sibling thread"
            )),
            _ => item.bad(format!(
                "{text}: CPU {} shares its core",
                number_list(&shared)
            )),
        },
        Err(why) if !knows_threads(seen) => item.not_read(&why),
        Err(_) if shared.is_empty() => {
            item.ok("file absent; the measured CPUs have no sibling thread")
        }
        Err(_) => item
            .with_remedy("switch SMT off in the firmware, or boot with nosmt")
            .bad(format!(
                "file absent; CPU {} shares its core",
                number_list(&shared)
            )),
    }
}

/// Whether the kernel lists the threads of every measured core.
fn knows_threads(seen: &Seen) -> bool {
    seen.cpus.iter().all(|cpu| has_thread_list(seen, cpu))
}

fn has_thread_list(seen: &Seen, cpu: &CpuFacts) -> bool {
    let path = cpu_file(cpu.cpu, "topology/thread_siblings_list");
    seen.root.read(&path).is_ok()
}

/// Another thread of the core that works takes part of it.
pub(super) fn sibling(seen: &Seen, cpu: &CpuFacts) -> Finding {
    let path = cpu_file(cpu.cpu, "topology/thread_siblings_list");
    let remedy = "campaign tune switches SMT off; else end what runs on the sibling";
    let item = Item::required("sibling", &path, remedy).on(cpu.cpu);
    if !has_thread_list(seen, cpu) {
        return item.unknown("file absent or empty");
    }
    if cpu.siblings.is_empty() {
        return item.not_applicable("no other thread of the core is online");
    }
    let siblings = number_list(&cpu.siblings);
    let busiest = |busy: &std::collections::BTreeMap<u32, f64>| {
        let parts = cpu.siblings.iter().map(|other| busy.get(other).copied());
        parts.collect::<Option<Vec<f64>>>().map(|parts| {
            let most = parts.into_iter().fold(0.0, f64::max);
            (
                most,
                format!("CPU {siblings} busy {:.0} % of the time", most * 100.0),
            )
        })
    };
    match seen.busy.and_then(busiest) {
        Some((most, value)) if most <= SIBLING_BUSY_MOST => item.ok(value),
        Some((_, value)) => item.bad(value),
        None => item.unknown(format!("CPU {siblings}, not watched")),
    }
}

/// On a machine with several kinds of cores figures are of one kind, which must be named.
pub(super) fn core_type(seen: &Seen, cpu: &CpuFacts) -> Finding {
    if let Some(kind) = &cpu.core_type {
        return hybrid(seen, cpu, kind);
    }
    let path = cpu_file(cpu.cpu, "cpu_capacity");
    let item = |strongest: &[u32]| {
        let remedy = format!("measure on a strong core: --cpu {}", number_list(strongest));
        Item::advice("core_type", &path, remedy).on(cpu.cpu)
    };
    let capacities: Vec<(u32, u64)> = facts::online(seen.root)
        .into_iter()
        .filter_map(|other| Some((other, seen.root.number(&cpu_file(other, "cpu_capacity"))?)))
        .collect();
    let Some(own) = cpu.capacity else {
        return match seen.root.exists(&cpu_file(cpu.cpu, "topology")) {
            true if seen.stable.architecture == "x86_64" => {
                item(&[]).not_applicable("one kind of core")
            }
            _ => item(&facts::online(seen.root)).unknown("file absent or empty"),
        };
    };
    let most = capacities.iter().map(|(_, c)| *c).max().unwrap_or(own);
    let strongest: Vec<u32> = capacities
        .iter()
        .filter(|(_, c)| *c == most)
        .map(|(n, _)| *n)
        .collect();
    let cluster = cluster(seen, cpu);
    let is_mixed = capacities.iter().any(|(_, c)| *c != most);
    match (is_mixed, own == most) {
        (false, _) => {
            item(&strongest).not_applicable(format!("one kind of core (capacity {own}{cluster})"))
        }
        (true, true) => item(&strongest).ok(format!("capacity {own}, the highest{cluster}")),
        (true, false) => item(&strongest).bad(format!("capacity {own} of {most}{cluster}")),
    }
}

fn hybrid(seen: &Seen, cpu: &CpuFacts, kind: &str) -> Finding {
    let path = format!("sys/devices/{kind}/cpus");
    let strong = seen.root.text("sys/devices/cpu_core/cpus");
    let item = |remedy| Item::advice("core_type", &path, remedy).on(cpu.cpu);
    match (kind, strong) {
        ("cpu_core", _) => item(String::new()).ok("cpu_core: a performance core"),
        (_, Some(cpus)) => item(format!("measure on a performance core: --cpu {cpus}"))
            .bad(format!("{kind}: an efficiency core")),
        (_, None) => item(String::new()).not_applicable(format!("{kind}, the only kind")),
    }
}

/// The CPUs that share the cluster, where the kernel tells.
fn cluster(seen: &Seen, cpu: &CpuFacts) -> String {
    let path = cpu_file(cpu.cpu, "topology/cluster_cpus_list");
    match seen.root.text(&path) {
        Some(cpus) => format!(", cluster of CPUs {cpus}"),
        None => String::new(),
    }
}

/// CPUs that the scheduler, the timer tick and RCU leave alone
/// (Documentation/admin-guide/kernel-parameters.txt).
pub(super) fn isolation(seen: &Seen, cpu: &CpuFacts) -> Finding {
    let path = "sys/devices/system/cpu/isolated";
    let n = cpu.cpu;
    let remedy = format!(
        "boot with isolcpus={n} nohz_full={n} rcu_nocbs={n}, or see that nothing else runs"
    );
    let item = Item::advice("isolation", path, remedy).on(n);
    let has = |list: &str| parse_cpu_list(list).contains(&n);
    let isolated = match seen.root.read(path) {
        Ok(list) => has(&list),
        Err(NotRead::Empty) => false,
        Err(why) => return item.not_read(&why),
    };
    let nohz_full = seen.root.text("sys/devices/system/cpu/nohz_full");
    let nohz_full = nohz_full.is_some_and(|list| has(&list));
    let callbacks = facts::parameter(seen.root, "rcu_nocbs");
    let callbacks = nohz_full || callbacks.is_some_and(|list| list == "all" || has(&list));
    let word = |is: bool| if is { "yes" } else { "no" };
    let value = format!(
        "isolated {}, nohz_full {}, rcu_nocbs {}",
        word(isolated),
        word(nohz_full),
        word(callbacks)
    );
    match isolated {
        true => item.ok(format!(
            "{value}; nothing balances the load there: all threads of a library stay on it"
        )),
        false => item.bad(value),
    }
}
