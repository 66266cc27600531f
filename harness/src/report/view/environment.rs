//! Assessment environment: the machine as the records' sessions found it.

use super::common::Rows;
use super::figures::Figures;
use crate::dataset::{Dataset, Key};
use crate::evidence::{CpuFacts, EnvironmentFile, VolatileFacts};
use crate::report::format;
use crate::report::table::{Cell, Notes, Table};
use protocol::{Operation, SourceKind};
use std::collections::BTreeSet;

/// The table of a candidate's page; only the CPUs that its records name are in it.
pub(super) fn table(rows: &Rows, notes: &mut Notes) -> Table {
    table_of(rows.dataset, &cpus(rows), notes)
}

/// The table of a dataset with these CPUs.
pub(super) fn table_of(dataset: &Dataset, cpus: &BTreeSet<u32>, notes: &mut Notes) -> Table {
    let mut table = Table::with(&["item", "value"]);
    let why = not_found(dataset);
    let mut item = |name: &str, value: Option<String>, reason: &str| {
        let value = Cell::or_missing(value, notes, reason);
        table.rows.push(vec![Cell::text(name), value]);
    };
    let each = |fact: &dyn Fn(&EnvironmentFile) -> Option<String>| distinct(dataset, fact);
    item("processor", processor(dataset, cpus), why);
    if let Some(machine) = each(&|e| e.stable.machine.clone()) {
        item("machine", Some(machine), why);
    }
    item("clock", clock(dataset, cpus), why);
    item(
        "memory",
        each(&|e| e.stable.memory_total_kib.map(format::mib_of_kib)),
        why,
    );
    item(
        "OS / kernel",
        each(&|e| pair(e.stable.os.as_deref(), e.stable.kernel.as_deref())),
        why,
    );
    item("compiler / build tool", compiler(dataset), why);
    item("campaign start / end (UTC)", dates(dataset), why);
    table
}

/// Facts of a dataset's machine over all its records, by the names of the table; those of an aggregate
/// are the document's.
pub(super) fn facts(dataset: &Dataset) -> Vec<(&'static str, Option<String>)> {
    let printed = |name: &str| {
        let table = dataset.cells.as_ref()?.value.table("environment")?;
        let row = table
            .rows
            .iter()
            .find(|row| row.first().is_some_and(|c| c.text == name))?;
        Some(row.get(1)?.text.clone())
    };
    let cpus: BTreeSet<u32> = dataset
        .timing
        .values()
        .flat_map(|entry| record_cpus(&entry.value))
        .collect();
    let each = |fact: &dyn Fn(&EnvironmentFile) -> Option<String>| distinct(dataset, fact);
    let identities = dataset.campaign.rows.iter().map(|row| &row.identity);
    let keys = identities.flat_map(|id| Operation::ALL.map(|operation| (id.clone(), operation)));
    let own = [
        ("processor", processor(dataset, &cpus)),
        ("machine", each(&|e| e.stable.machine.clone())),
        ("clock", clock(dataset, &cpus)),
        ("measured clock", measured_clock(dataset, &cpus)),
        (
            "core cycles over time of the timed calls",
            timed_clock(dataset, keys),
        ),
        (
            "memory",
            each(&|e| e.stable.memory_total_kib.map(format::mib_of_kib)),
        ),
        (
            "OS / kernel",
            each(&|e| pair(e.stable.os.as_deref(), e.stable.kernel.as_deref())),
        ),
        ("compiler / build tool", compiler(dataset)),
        ("campaign start / end (UTC)", dates(dataset)),
    ];
    own.into_iter()
        .map(|(name, value)| (name, printed(name).or(value)))
        .collect()
}

/// Why a fact of the machine is missing.
fn not_found(dataset: &Dataset) -> &'static str {
    match dataset.campaign.provenance {
        Some(_) => "the source of the import does not record it (not_recorded)",
        None => "the machine does not tell (not_recorded)",
    }
}

/// CPUs that the counted attempts of the shown rows ran on.
pub(super) fn cpus(rows: &Rows) -> BTreeSet<u32> {
    rows.each()
        .filter_map(|key| rows.timing(&key))
        .flat_map(|entry| record_cpus(&entry.value))
        .collect()
}

/// CPUs of one record.
pub(super) fn record_cpus(record: &crate::evidence::TimingRecord) -> BTreeSet<u32> {
    let attempts = record.trials.iter().filter_map(|t| t.counted_attempt());
    let seen: BTreeSet<u32> = attempts.filter_map(|a| a.cpu_before).collect();
    if seen.is_empty() {
        record.cpu.into_iter().collect()
    } else {
        seen
    }
}

/// Numbers as words: `2`, `2 and 3`, `2, 3 and 4`.
pub(super) fn list(numbers: &BTreeSet<u32>) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

fn processor(dataset: &Dataset, cpus: &BTreeSet<u32>) -> Option<String> {
    let model = distinct(dataset, &|e| e.stable.cpu_model.clone());
    let runner = &dataset.campaign.tool.runner;
    if !runner.is_empty() {
        // What the kernel tells of its processor says nothing of the one that is emulated.
        let host = model.unwrap_or_else(|| "an unknown processor".to_owned());
        return Some(format!("emulated by {}, on {host}", runner.join(" ")));
    }
    let model = model?;
    Some(match cpus.len() {
        0 => model,
        1 => format!("{model} (CPU {}, one core)", list(cpus)),
        _ => format!("{model} (CPUs {}, one core at a time)", list(cpus)),
    })
}

fn pair(a: Option<&str>, b: Option<&str>) -> Option<String> {
    match (a, b) {
        (Some(a), Some(b)) => Some(format!("{a} / {b}")),
        (one, other) => one.or(other).map(str::to_owned),
    }
}

fn compiler(dataset: &Dataset) -> Option<String> {
    let compiler = distinct(dataset, &|e| e.stable.compiler.clone());
    let tool = distinct(dataset, &|e| e.stable.build_tool.clone());
    let own = dataset.campaign.provenance.is_none().then(|| {
        let tool = &dataset.campaign.tool;
        format!("{} {}", tool.name, tool.version)
    });
    let tool = tool.or(own);
    pair(compiler.as_deref(), tool.as_deref())
}

fn dates(dataset: &Dataset) -> Option<String> {
    let campaign = &dataset.campaign;
    let start = campaign.started_utc.as_deref().map(format::date);
    let end = campaign.ended_utc.as_deref().map(format::date);
    Some(format!(
        "{} / {}",
        start?,
        end.unwrap_or_else(|| "not finished".to_owned())
    ))
}

/// A fact of all sessions; different values are all given.
fn distinct(
    dataset: &Dataset,
    fact: &dyn Fn(&EnvironmentFile) -> Option<String>,
) -> Option<String> {
    let mut values: Vec<String> = Vec::new();
    for entry in &dataset.environments {
        if let Some(value) = fact(&entry.value) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    (!values.is_empty()).then(|| values.join("; "))
}

fn clock(dataset: &Dataset, cpus: &BTreeSet<u32>) -> Option<String> {
    distinct(dataset, &|environment| {
        let mut texts: Vec<String> = Vec::new();
        for cpu in &environment.cpus {
            if cpus.is_empty() || cpus.contains(&cpu.cpu) {
                let text = clock_text(&environment.stable.architecture, cpu, &environment.volatile);
                if let Some(text) = text.filter(|text| !texts.contains(text)) {
                    texts.push(text);
                }
            }
        }
        (!texts.is_empty()).then(|| texts.join("; "))
    })
}

/// The clock that each CPU was found to run at, beside what its frequency driver says; where there is no
/// such driver, it is in the clock line.
pub(super) fn measured_clock(dataset: &Dataset, cpus: &BTreeSet<u32>) -> Option<String> {
    distinct(dataset, &|environment| {
        let named = environment
            .cpus
            .iter()
            .filter(|cpu| (cpus.is_empty() || cpus.contains(&cpu.cpu)) && cpu.max_khz.is_some());
        let texts = named.filter_map(|cpu| {
            let hz = cpu.measured_clock_hz?;
            Some(format!("{} on CPU {}", format::ghz(hz as f64), cpu.cpu))
        });
        let texts: Vec<String> = texts.collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    })
}

/// Core cycles over time of the timed calls, least and most of these operations.
pub(super) fn timed_clock(dataset: &Dataset, keys: impl Iterator<Item = Key>) -> Option<String> {
    let figures = keys.map(|key| Figures::of(dataset, &key));
    let counted = figures.filter(|figures| figures.source == SourceKind::Perf);
    let hertz = counted.filter_map(|f| Some(f.mean?.value / f.time?.value));
    let mut all: Vec<f64> = hertz.filter(|hz| hz.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    let texts = [all.first()?, all.last()?].map(|hz| format::ghz(*hz));
    let [least, most] = &texts;
    Some(match least == most {
        true => least.clone(),
        false => format!("{} to {most}", least.trim_end_matches(" GHz")),
    })
}

/// The clock line of one CPU.
fn clock_text(arch: &str, cpu: &CpuFacts, volatile: &VolatileFacts) -> Option<String> {
    let ghz = |khz: u64| format::ghz(khz as f64 * 1e3);
    let governor = cpu.governor.as_deref().unwrap_or("unknown");
    let mut parts = Vec::new();
    match (cpu.min_khz, cpu.max_khz, cpu.measured_clock_hz) {
        (Some(min), Some(max), _) if arch == "aarch64" && min == max => parts.push(format!(
            "fixed {} (governor {governor}, minimum = maximum)",
            ghz(max)
        )),
        (_, Some(max), _) => {
            parts.push(format!("max {}", ghz(max)));
            parts.push(format!("governor {governor}"));
        }
        // Whatever takes the CPU away during the loop of dependent additions makes the estimate smaller.
        (_, None, Some(hz)) => parts.push(format!(
            "measured {} or more, set by firmware or hypervisor (no cpufreq interface)",
            format::ghz(hz as f64)
        )),
        (_, None, None) => return None,
    }
    parts.extend(boost(arch, volatile));
    parts.extend(smt(volatile));
    Some(parts.join(", "))
}

/// `turbo off` where the processor's vendor calls it so, `boost off` elsewhere.
fn boost(arch: &str, volatile: &VolatileFacts) -> Option<String> {
    let name = if arch == "aarch64" { "boost" } else { "turbo" };
    let on = match (
        volatile.intel_pstate_no_turbo.as_deref(),
        volatile.cpufreq_boost.as_deref(),
    ) {
        (Some("1"), _) | (None, Some("0")) => "off",
        (Some("0"), _) | (None, Some("1")) => "on",
        (None, None) => return None,
        _ => "unknown",
    };
    Some(format!("{name} {on}"))
}

fn smt(volatile: &VolatileFacts) -> Option<String> {
    let word = match volatile.smt_control.as_deref()? {
        "off" | "forceoff" => "off",
        "on" => "on",
        "notsupported" | "notimplemented" => "none",
        _ => "unknown",
    };
    Some(format!("SMT {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(min: Option<u64>, max: Option<u64>, measured: Option<u64>) -> CpuFacts {
        CpuFacts {
            governor: max.map(|_| "performance".into()),
            min_khz: min,
            max_khz: max,
            measured_clock_hz: measured,
            ..CpuFacts::default()
        }
    }

    #[test]
    fn clock_lines_of_three_kinds_of_machine() {
        let intel = VolatileFacts {
            intel_pstate_no_turbo: Some("1".into()),
            smt_control: Some("off".into()),
            ..VolatileFacts::default()
        };
        let arm = VolatileFacts {
            cpufreq_boost: Some("0".into()),
            smt_control: Some("notsupported".into()),
            ..VolatileFacts::default()
        };
        assert_eq!(
            clock_text("x86_64", &cpu(Some(800_000), Some(2_100_000), None), &intel).unwrap(),
            "max 2.10 GHz, governor performance, turbo off, SMT off"
        );
        assert_eq!(
            clock_text(
                "aarch64",
                &cpu(Some(2_707_200), Some(2_707_200), None),
                &arm
            )
            .unwrap(),
            "fixed 2.71 GHz (governor performance, minimum = maximum), boost off, SMT none"
        );
        assert_eq!(
            clock_text(
                "x86_64",
                &cpu(None, None, Some(2_600_000_000)),
                &VolatileFacts::default()
            )
            .unwrap(),
            "measured 2.60 GHz or more, set by firmware or hypervisor (no cpufreq interface)"
        );
        assert_eq!(clock_text("x86_64", &cpu(None, None, None), &intel), None);
    }

    #[test]
    fn several_cpus_are_all_named() {
        assert_eq!(list(&BTreeSet::from([2])), "2");
        assert_eq!(list(&BTreeSet::from([3, 2])), "2 and 3");
        assert_eq!(list(&BTreeSet::from([11, 3, 2])), "2, 3 and 11");
    }
}
