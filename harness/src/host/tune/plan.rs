//! What to change on this machine for these CPUs: a pure decision over its files.
//!
//! | setting | changed to |
//! |---|---|
//! | kernel.perf_event_paranoid | 2, where it is stricter |
//! | governor of the measured CPUs | performance |
//! | turbo, boost | off |
//! | maximum, then minimum frequency of the measured CPUs | the highest frequency without boost |
//! | affinity of interrupts | away from the measured CPUs, and from those that go offline |
//! | SMT | off, where a measured core has another thread |
//!
//! SMT comes last because CPUs that go offline take files with them: it is then restored first, and
//! every other file is there again.

use super::TuneError;
use crate::evidence::CpuFacts;
use crate::host::facts::{self, cpu_file, irq_file, parse_cpu_list};
use crate::host::root::Root;
use serde::Serialize;
use std::collections::BTreeSet;

const PARANOID: &str = "proc/sys/kernel/perf_event_paranoid";
const SMT: &str = "sys/devices/system/cpu/smt/control";
/// Strictest level at which an ordinary user may count user mode.
const PARANOID_ENOUGH: i64 = 2;

/// What a file is to hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This value.
    Value(String),
    /// What that other file holds when its turn comes.
    SameAs(String),
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The file, below the root.
    pub path: String,
    /// What it holds now.
    pub from: String,
    /// What it is to hold.
    pub to: Target,
}

/// All changes, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The changes.
    pub steps: Vec<Step>,
    /// Files that these changes may change as well.
    pub touched: Vec<String>,
    /// What is left as it is although it is not as it should be, and why.
    pub notes: Vec<String>,
}

/// Decides what to change for measuring on `cpus`.
pub fn plan(root: &Root, cpus: &[u32]) -> Result<Plan, TuneError> {
    let mut planner = Planner {
        root,
        cpus,
        leaving: BTreeSet::new(),
        plan: Plan::default(),
    };
    planner.decide_smt()?;
    planner.paranoid();
    planner.governors();
    let boost = planner.boost();
    planner.frequencies(boost);
    planner.interrupts();
    planner.smt();
    let Planner { mut plan, .. } = planner;
    let steps: BTreeSet<&String> = plan.steps.iter().map(|step| &step.path).collect();
    let mut seen = BTreeSet::new();
    plan.touched
        .retain(|path| !steps.contains(path) && seen.insert(path.clone()));
    Ok(plan)
}

struct Planner<'a> {
    root: &'a Root,
    cpus: &'a [u32],
    /// CPUs that go offline with SMT.
    leaving: BTreeSet<u32>,
    plan: Plan,
}

impl Planner<'_> {
    /// A change of a file that can be read and does not hold the value yet.
    fn step(&mut self, path: String, to: Target) {
        let Some(from) = self.root.text(&path) else {
            return;
        };
        if to != Target::Value(from.clone()) {
            self.plan.steps.push(Step { path, from, to });
        }
    }

    /// A file that another change may change, if it is there.
    fn touches(&mut self, path: String) {
        if self.root.text(&path).is_some() {
            self.plan.touched.push(path);
        }
    }

    fn paranoid(&mut self) {
        let level: Option<i64> = self.root.number(PARANOID);
        if level.is_some_and(|level| level > PARANOID_ENOUGH) {
            self.step(
                PARANOID.to_owned(),
                Target::Value(PARANOID_ENOUGH.to_string()),
            );
        }
    }

    /// Frequency files of the measured CPUs, those of a shared policy once.
    fn policies(&self, cpus: impl IntoIterator<Item = u32>) -> Vec<Policy> {
        let mut policies: Vec<Policy> = Vec::new();
        for cpu in cpus {
            let governor = self
                .root
                .resolve(&cpu_file(cpu, "cpufreq/scaling_governor"));
            let Some(folder) = governor.strip_suffix("/scaling_governor") else {
                continue;
            };
            if self.root.exists(folder) && !policies.iter().any(|known| known.folder == folder) {
                policies.push(Policy {
                    folder: folder.to_owned(),
                    cpu,
                });
            }
        }
        policies
    }

    fn governors(&mut self) {
        for policy in self.policies(self.cpus.iter().copied()) {
            let offered = self.root.text(&policy.file("scaling_available_governors"));
            let is_offered = |list: &String| list.split_whitespace().any(|g| g == "performance");
            if offered.as_ref().is_some_and(|list| !is_offered(list)) {
                self.plan.notes.push(format!(
                    "CPU {}: the kernel offers no governor `performance`",
                    policy.cpu
                ));
                continue;
            }
            self.step(
                policy.file("scaling_governor"),
                Target::Value("performance".to_owned()),
            );
            // The preference follows the governor of drivers that have one.
            self.touches(policy.file("energy_performance_preference"));
        }
    }

    /// Whether a switch is changed.
    fn boost(&mut self) -> bool {
        let on: Vec<_> = facts::boost_switches(self.root, self.cpus)
            .into_iter()
            .filter(|switch| switch.is_on)
            .collect();
        for switch in &on {
            self.step(switch.path.clone(), Target::Value(switch.off.to_owned()));
        }
        if !on.is_empty() {
            // Drivers set the limits of every policy anew when boost is switched.
            for policy in self.policies(facts::online(self.root)) {
                self.touches_policy(&policy);
            }
        }
        !on.is_empty()
    }

    fn touches_policy(&mut self, policy: &Policy) {
        for name in [
            "boost",
            "scaling_max_freq",
            "scaling_min_freq",
            "scaling_governor",
            "energy_performance_preference",
        ] {
            self.touches(policy.file(name));
        }
    }

    /// Minimum = maximum. The kernel keeps minimum <= maximum, so the one that is moved away from the
    /// other goes first; the second takes what the kernel made of the first.
    fn frequencies(&mut self, boost_changes: bool) {
        for policy in self.policies(self.cpus.iter().copied()) {
            let (min, max) = (
                policy.file("scaling_min_freq"),
                policy.file("scaling_max_freq"),
            );
            let (Some(low), Some(high)) = (self.number(&min), self.number(&max)) else {
                continue;
            };
            let target = self.highest(&policy);
            let wanted = match &target {
                Target::Value(text) => text.parse().ok(),
                Target::SameAs(path) => self.number(path),
            };
            // `boost_changes`: the limits will have moved when their turn comes.
            if !boost_changes && low == high && Some(low) == wanted {
                continue;
            }
            let (first, second) = match wanted.is_some_and(|wanted| wanted < low) {
                true => (min, max),
                false => (max, min),
            };
            let push = |plan: &mut Plan, path: String, from: u64, to| {
                let from = from.to_string();
                plan.steps.push(Step { path, from, to });
            };
            let values = match first.ends_with("scaling_max_freq") {
                true => (high, low),
                false => (low, high),
            };
            if boost_changes || Some(values.0) != wanted {
                push(&mut self.plan, first.clone(), values.0, target);
            }
            push(&mut self.plan, second, values.1, Target::SameAs(first));
        }
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.root.number(path)
    }

    /// The highest frequency without boost: as the driver names it (intel_pstate: `base_frequency`), of
    /// the table of frequencies (those of boost are listed apart), as the firmware names it (CPPC,
    /// MHz), else what the processor's highest is once boost is off.
    fn highest(&self, policy: &Policy) -> Target {
        let listed = || -> Option<u64> {
            let text = self
                .root
                .text(&policy.file("scaling_available_frequencies"))?;
            text.split_whitespace().filter_map(|f| f.parse().ok()).max()
        };
        let nominal = || Some(self.number(&cpu_file(policy.cpu, "acpi_cppc/nominal_freq"))? * 1000);
        self.number(&policy.file("base_frequency"))
            .or_else(listed)
            .or_else(nominal)
            .filter(|&khz| khz > 0)
            .map(|khz| Target::Value(khz.to_string()))
            .unwrap_or_else(|| Target::SameAs(policy.file("cpuinfo_max_freq")))
    }

    fn interrupts(&mut self) {
        let online = facts::online(self.root);
        let is_elsewhere = |cpu: &u32| !self.cpus.contains(cpu) && !self.leaving.contains(cpu);
        let elsewhere: Vec<u32> = online.iter().copied().filter(is_elsewhere).collect();
        let irqs = facts::irqs(self.root);
        let here = |cpus: &Vec<u32>| cpus.iter().any(|cpu| self.cpus.contains(cpu));
        if elsewhere.is_empty() {
            if irqs.iter().any(|(_, cpus)| here(cpus)) {
                let text = "interrupts stay: there is no other CPU that they could go to";
                self.plan.notes.push(text.to_owned());
            }
            return;
        }
        for (irq, cpus) in irqs {
            let rest: Vec<u32> = cpus
                .iter()
                .copied()
                .filter(|cpu| elsewhere.contains(cpu))
                .collect();
            // When the last CPU of an interrupt goes offline, the kernel may move it anywhere.
            if here(&cpus) || (rest.is_empty() && cpus.iter().any(|c| self.leaving.contains(c))) {
                let to = if rest.is_empty() { &elsewhere } else { &rest };
                self.step(irq_file(irq), Target::Value(kernel_list(to)));
            }
        }
    }

    /// Which CPUs go offline with SMT; none where it stays as it is.
    fn decide_smt(&mut self) -> Result<(), TuneError> {
        if self.root.text(SMT).as_deref() != Some("on") {
            return Ok(());
        }
        let measured: Vec<CpuFacts> = self
            .cpus
            .iter()
            .map(|&cpu| facts::cpu(self.root, cpu))
            .collect();
        if measured.iter().all(|cpu| cpu.siblings.is_empty()) {
            return Ok(());
        }
        for facts in &measured {
            let first = facts.siblings.iter().copied().min();
            if let Some(first) = first.filter(|first| *first < facts.cpu) {
                return Err(TuneError::SecondThread {
                    cpu: facts.cpu,
                    first,
                });
            }
        }
        let leaving: BTreeSet<u32> = facts::online(self.root)
            .into_iter()
            .filter(|&cpu| !facts::is_first_thread(self.root, cpu))
            .collect();
        match bound_to(self.root, &leaving) {
            Some(name) => self.plan.notes.push(format!(
                "SMT stays on: the process {name} is bound to CPUs that would go offline, and would not be bound to them again"
            )),
            None => self.leaving = leaving,
        }
        Ok(())
    }

    fn smt(&mut self) {
        if self.leaving.is_empty() {
            return;
        }
        for policy in self.policies(self.leaving.clone()) {
            self.touches_policy(&policy);
        }
        // Switching SMT on again brings every thread back, those that were offline before as well.
        for cpu in self.present() {
            self.touches(cpu_file(cpu, "online"));
        }
        self.step(SMT.to_owned(), Target::Value("off".to_owned()));
    }

    fn present(&self) -> Vec<u32> {
        match self.root.text("sys/devices/system/cpu/present") {
            Some(list) => parse_cpu_list(&list),
            None => facts::online(self.root),
        }
    }
}

/// Frequency files of CPUs that share a clock.
struct Policy {
    folder: String,
    /// One of them.
    cpu: u32,
}

impl Policy {
    fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }
}

/// A process, by number and name, that may run on these CPUs only: the kernel would let it run
/// everywhere once they are gone. Threads of the kernel's own look after themselves.
fn bound_to(root: &Root, cpus: &BTreeSet<u32>) -> Option<String> {
    let process = |id: &String| -> Option<String> {
        let status = root.text(&format!("proc/{id}/status"))?;
        let field = |name: &str| {
            let mut lines = status.lines().filter_map(|line| line.split_once(':'));
            lines
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.trim().to_owned())
        };
        // Only processes with a memory of their own have a line about it.
        field("VmSize")?;
        let allowed = parse_cpu_list(&field("Cpus_allowed_list")?);
        let bound = !allowed.is_empty() && allowed.iter().all(|cpu| cpus.contains(cpu));
        bound.then(|| format!("{id} ({})", field("Name").unwrap_or_default()))
    };
    root.names("proc")
        .iter()
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .find_map(process)
}

/// CPUs as the kernel lists them: `0-3,8`.
fn kernel_list(cpus: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let words: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        })
        .collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_the_kernels_own_form() {
        for list in ["0", "0-3", "0-2,5", "1,3,5-7"] {
            assert_eq!(kernel_list(&parse_cpu_list(list)), list);
        }
    }

    fn root(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    const SIBLINGS: [(&str, &str); 5] = [
        (SMT, "on\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        (
            "sys/devices/system/cpu/cpu2/topology/thread_siblings_list",
            "2-3\n",
        ),
        (
            "sys/devices/system/cpu/cpu3/topology/thread_siblings_list",
            "2-3\n",
        ),
        (
            "proc/7/status",
            "Name:\tdaemon\nVmSize:\t4 kB\nCpus_allowed_list:\t0-3\n",
        ),
    ];

    #[test]
    fn a_cpu_that_smt_would_take_away_is_refused() {
        let (_dir, root) = root(&SIBLINGS);
        let error = plan(&root, &[3]).unwrap_err();
        assert!(
            matches!(error, TuneError::SecondThread { cpu: 3, first: 2 }),
            "{error}"
        );
        assert_eq!(plan(&root, &[2]).unwrap().steps[0].path, SMT);
        // A core of its own has no reason to switch SMT off.
        assert_eq!(plan(&root, &[0]).unwrap(), Plan::default());
    }

    #[test]
    fn smt_stays_where_somebody_is_bound_to_the_threads_that_would_go() {
        let status = "Name:\tguest\nVmSize:\t4 kB\nCpus_allowed_list:\t3\n";
        let kernel = "Name:\tksoftirqd/3\nCpus_allowed_list:\t3\n";
        let (_dir, bound) = root(&[&SIBLINGS[..], &[("proc/8/status", status)]].concat());
        let found = plan(&bound, &[2]).unwrap();
        assert_eq!(found.steps, []);
        assert!(found.notes[0].contains("8 (guest)"), "{:?}", found.notes);
        let (_dir, free) = root(&[&SIBLINGS[..], &[("proc/8/status", kernel)]].concat());
        assert_eq!(plan(&free, &[2]).unwrap().steps.len(), 1);
    }

    #[test]
    fn without_another_cpu_interrupts_stay() {
        let (_dir, root) = root(&[
            ("sys/devices/system/cpu/online", "0\n"),
            ("proc/irq/9/smp_affinity_list", "0\n"),
        ]);
        let found = plan(&root, &[0]).unwrap();
        assert_eq!((found.steps.len(), found.notes.len()), (0, 1));
    }

    #[test]
    fn frequencies_move_in_the_order_that_the_kernel_allows() {
        let policy = "sys/devices/system/cpu/cpu0/cpufreq";
        let file = |name: &str| format!("{policy}/{name}");
        let steps = |min: &str, max: &str, base: &str| {
            let (_dir, root) = root(&[
                (&file("scaling_governor"), "performance\n"),
                (&file("scaling_min_freq"), min),
                (&file("scaling_max_freq"), max),
                (&file("base_frequency"), base),
            ]);
            let steps = plan(&root, &[0]).unwrap().steps;
            steps
                .into_iter()
                .map(|step| step.path.rsplit('/').next().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            steps("800", "4900", "2100"),
            ["scaling_max_freq", "scaling_min_freq"]
        );
        assert_eq!(
            steps("800", "1000", "2100"),
            ["scaling_max_freq", "scaling_min_freq"]
        );
        assert_eq!(
            steps("3000", "4900", "2100"),
            ["scaling_min_freq", "scaling_max_freq"]
        );
        assert_eq!(steps("800", "2100", "2100"), ["scaling_min_freq"]);
        assert_eq!(steps("2100", "2100", "2100"), [""; 0]);
    }
}
