//! Which system a run is of, and which identities take part in it, each with the reason where it does
//! not. Pure decisions over the configuration and what was found out about the machine; how often and
//! how long the rest is measured is [`crate::plan`]'s.

use crate::config::{Arch, Campaign, System};
use crate::evidence::{Class, PlanSettings, Reason, ReasonCode};
use crate::identity::Identity;
use protocol::Operation;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// Id of a machine that is not registered.
pub const LOCAL: &str = "local";

/// The system of a run, and what the machine is to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The system; one called [`LOCAL`] where the machine is not registered.
    pub system: System,
    /// `registered`, `local` or `emulated`.
    pub class: Class,
}

/// What is known of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Architecture that this program was built for.
    pub arch: Arch,
    /// Names of the processors of the measured CPUs, each once. A system must be that of all of them;
    /// none matches no system.
    pub cpu_models: Vec<String>,
}

/// No system, or no plan, can be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// A name that the configuration does not have.
    #[error("there is no {what} `{name}` in the configuration; it has {known}")]
    Unknown {
        /// `system` or `plan`.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Several systems match the machine.
    #[error("this machine matches several systems ({0}); name one with --system")]
    Several(String),
    /// `--only` lets nothing through.
    #[error("`{only}` matches no candidate/label/code/build/operation of {arch}; `campaign plan` without --only shows them")]
    Nothing {
        /// The expression.
        only: String,
        /// Architecture of the system.
        arch: &'static str,
    },
    /// The system needs a runner and has none.
    #[error("system `{system}` is {theirs}, this machine is {ours}: give the system a `runner` in campaign.toml, or run on a machine of its kind")]
    NoRunner {
        /// System.
        system: String,
        /// Its architecture.
        theirs: &'static str,
        /// The machine's.
        ours: &'static str,
    },
}

/// The system that is asked for, else the only registered one that matches the machine, else `local`.
///
/// A system that is asked for on a machine of its architecture but of another processor is taken, and
/// the run is of class `local`: what it measures is not that system's.
pub fn system(
    campaign: &Campaign,
    asked: Option<&str>,
    machine: &Machine,
) -> Result<Chosen, SelectError> {
    if let Some(id) = asked {
        return match campaign.system(id) {
            Some(system) => named(system, machine),
            None if id == LOCAL => Ok(local(machine)),
            None => Err(unknown(
                "system",
                id,
                campaign.systems.iter().map(|s| &s.id),
            )),
        };
    }
    let matching: Vec<&System> = campaign
        .systems
        .iter()
        .filter(|system| matches(system, machine))
        .collect();
    match matching[..] {
        [] => Ok(local(machine)),
        [system] => Ok(Chosen {
            system: system.clone(),
            class: Class::Registered,
        }),
        _ => {
            let ids: Vec<&str> = matching.iter().map(|system| system.id.as_str()).collect();
            Err(SelectError::Several(ids.join(", ")))
        }
    }
}

fn named(system: &System, machine: &Machine) -> Result<Chosen, SelectError> {
    let class = match (matches(system, machine), system.arch == machine.arch) {
        (true, _) => Class::Registered,
        (false, true) => Class::Local,
        (false, false) if system.runner.is_empty() => {
            return Err(SelectError::NoRunner {
                system: system.id.clone(),
                theirs: system.arch.word(),
                ours: machine.arch.word(),
            })
        }
        (false, false) => Class::Emulated,
    };
    Ok(Chosen {
        system: system.clone(),
        class,
    })
}

fn matches(system: &System, machine: &Machine) -> bool {
    let is_one = |regex: Regex| machine.cpu_models.iter().all(|model| regex.is_match(model));
    system.arch == machine.arch
        && !machine.cpu_models.is_empty()
        && Regex::new(&system.cpu_model).is_ok_and(is_one)
}

fn local(machine: &Machine) -> Chosen {
    Chosen {
        system: System {
            id: LOCAL.to_owned(),
            arch: machine.arch,
            cpu_model: String::new(),
            cc: "gcc".to_owned(),
            runner: Vec::new(),
            description: None,
        },
        class: Class::Local,
    }
}

/// The plan of that name.
pub fn plan<'c>(campaign: &'c Campaign, name: &str) -> Result<&'c PlanSettings, SelectError> {
    let found = campaign.plans.get(name);
    found.ok_or_else(|| unknown("plan", name, campaign.plans.keys()))
}

fn unknown<'n>(
    what: &'static str,
    name: &str,
    known: impl Iterator<Item = &'n String>,
) -> SelectError {
    let names: Vec<&str> = known.map(String::as_str).collect();
    SelectError::Unknown {
        what,
        name: name.to_owned(),
        known: match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        },
    }
}

/// Features of the CPU that the code will run on, as /proc/cpuinfo names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Features {
    /// Exactly these.
    Known {
        /// Whose, in a reason: `the CPU`, or the one that a runner emulates.
        cpu: String,
        /// Their names.
        words: BTreeSet<String>,
    },
    /// They cannot be found out (a runner whose CPU is not in our table, or the kernel does not
    /// tell). A code that requires some is then left out: it could end in an illegal instruction.
    Unknown,
    /// Nothing is left out for a feature: another machine will decide (packs).
    NotAsked,
}

/// What decides who takes part.
#[derive(Debug, Clone)]
pub struct Selection<'s> {
    /// Architecture of the system.
    pub arch: Arch,
    /// CPU features of the machine.
    pub features: &'s Features,
    /// The plan.
    pub plan: &'s PlanSettings,
    /// `--only`: over operation keys.
    pub only: Option<&'s Regex>,
    /// `--no-deferred`.
    pub no_deferred: bool,
}

/// One identity and whether it takes part.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Which.
    pub identity: Identity,
    /// Operations that were asked for; none of them is measured if the row is skipped.
    pub operations: Vec<Operation>,
    /// Why it takes no part.
    pub skipped: Option<Reason>,
    /// Measured after everything else.
    pub deferred: bool,
}

/// All identities of the system's architecture that `--only` lets through, in page order; none is an
/// error.
pub fn rows(campaign: &Campaign, selection: &Selection<'_>) -> Result<Vec<Row>, SelectError> {
    let identities = campaign.identities(selection.arch).into_iter();
    let rows: Vec<Row> = identities
        .filter_map(|identity| row(campaign, selection, identity))
        .collect();
    match selection.only {
        Some(only) if rows.is_empty() => Err(SelectError::Nothing {
            only: only.as_str().to_owned(),
            arch: selection.arch.word(),
        }),
        _ => Ok(rows),
    }
}

/// `None` for an identity that `--only` keeps out.
fn row(campaign: &Campaign, selection: &Selection<'_>, identity: Identity) -> Option<Row> {
    let wanted = |operation: &Operation| {
        selection
            .only
            .is_none_or(|only| only.is_match(&identity.operation_key(*operation)))
    };
    let operations: Vec<Operation> = Operation::ALL.into_iter().filter(wanted).collect();
    if operations.is_empty() {
        return None;
    }
    let deferred = is_deferred(selection.plan, &identity);
    let skipped = not_in_plan(campaign, selection, &identity)
        .or_else(|| no_flags(campaign, selection.arch, &identity))
        .or_else(|| lacks_feature(campaign, selection, &identity))
        .or_else(|| (deferred && selection.no_deferred).then(deferred_reason));
    Some(Row {
        identity,
        operations,
        skipped,
        deferred,
    })
}

fn is_deferred(plan: &PlanSettings, identity: &Identity) -> bool {
    let name = identity.to_string();
    plan.defer
        .iter()
        .any(|pattern| Regex::new(pattern).is_ok_and(|regex| regex.is_match(&name)))
}

fn deferred_reason() -> Reason {
    Reason::new(
        ReasonCode::Deferred,
        "the plan defers it, and --no-deferred was given",
    )
}

/// Plans with `builds = "first"` take the first listed build of each code.
fn not_in_plan(
    campaign: &Campaign,
    selection: &Selection<'_>,
    identity: &Identity,
) -> Option<Reason> {
    let (_, _, code, _) = campaign.find(identity)?;
    let first = code.builds.first()?;
    let plan = selection.plan;
    (plan.builds == "first" && *first != identity.build).then(|| {
        Reason::new(
            ReasonCode::NotInPlan,
            format!(
                "plan {} takes the first listed build of each code only, here {first}; --plan guide takes all",
                plan.name
            ),
        )
    })
}

/// On an architecture that no registered system has, a build may have no flags.
fn no_flags(campaign: &Campaign, arch: Arch, identity: &Identity) -> Option<Reason> {
    let build = campaign.builds.get(&identity.build)?;
    (!build.cflags.contains_key(&arch)).then(|| {
        let text = format!(
            "[build.{}] of the configuration has no flags for {}",
            build.name,
            arch.word()
        );
        Reason::new(ReasonCode::BuildFailed, text)
    })
}

fn lacks_feature(
    campaign: &Campaign,
    selection: &Selection<'_>,
    identity: &Identity,
) -> Option<Reason> {
    let (_, _, code, build) = campaign.find(identity)?;
    let of_build = build.requires.get(&selection.arch);
    let required = of_build.into_iter().flatten().chain(&code.requires);
    let missing: BTreeSet<&str> = match selection.features {
        Features::Known { words, .. } => required
            .filter(|feature| !words.contains(*feature))
            .map(String::as_str)
            .collect(),
        Features::Unknown => required.map(String::as_str).collect(),
        Features::NotAsked => BTreeSet::new(),
    };
    if missing.is_empty() {
        return None;
    }
    let names = missing.into_iter().collect::<Vec<_>>().join(", ");
    let text = match selection.features {
        Features::Known { cpu, .. } => format!("{cpu} lacks {names}"),
        Features::Unknown | Features::NotAsked => {
            format!("it needs {names}, and the CPU's features are not known")
        }
    };
    Some(Reason::new(ReasonCode::CpuFeature, text))
}

/// How many rows take part, and how many are left out for which reason.
pub fn count(rows: &[Row]) -> (usize, BTreeMap<ReasonCode, usize>) {
    let mut reasons = BTreeMap::new();
    for reason in rows.iter().filter_map(|row| row.skipped.as_ref()) {
        *reasons.entry(reason.code).or_default() += 1;
    }
    let skipped: usize = reasons.values().sum();
    (rows.len() - skipped, reasons)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Sources};
    use std::path::Path;

    /// The checkout's own campaign.
    fn campaign() -> Campaign {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        config::load(&root.join(config::FILE), Sources::Required).unwrap()
    }

    fn machine(arch: Arch, cpu_model: Option<&str>) -> Machine {
        Machine {
            arch,
            cpu_models: cpu_model.map(str::to_owned).into_iter().collect(),
        }
    }

    const I7: &str = "12th Gen Intel(R) Core(TM) i7-12700";

    #[test]
    fn the_system_is_the_one_asked_for_else_the_one_that_matches_else_local() {
        let campaign = campaign();
        let x86 = machine(Arch::X86_64, Some(I7));
        let other = machine(Arch::X86_64, Some("AMD EPYC"));
        let unnamed = machine(Arch::Aarch64, None);
        let oryon = machine(Arch::Aarch64, Some("Qualcomm Oryon"));
        for (asked, machine, id, class) in [
            (None, &x86, "x86_1", Class::Registered),
            (Some("x86_1"), &x86, "x86_1", Class::Registered),
            (Some("x86_1"), &other, "x86_1", Class::Local),
            (None, &other, "local", Class::Local),
            (Some("local"), &x86, "local", Class::Local),
            (Some("arm_1"), &x86, "arm_1", Class::Emulated),
            (None, &unnamed, "local", Class::Local),
            (Some("arm_1"), &unnamed, "arm_1", Class::Local),
            (None, &oryon, "arm_1", Class::Registered),
        ] {
            let chosen = system(&campaign, asked, machine).unwrap();
            assert_eq!(
                (chosen.system.id.as_str(), chosen.class),
                (id, class),
                "{asked:?}"
            );
        }
        let chosen = system(&campaign, None, &other).unwrap();
        assert_eq!(
            (chosen.system.arch, chosen.system.cc.as_str()),
            (Arch::X86_64, "gcc")
        );
    }

    #[test]
    fn a_system_or_plan_that_cannot_be_had_is_an_error_that_names_what_there_is() {
        let mut campaign = campaign();
        let text = |result: Result<Chosen, SelectError>| result.unwrap_err().to_string();
        let x86 = machine(Arch::X86_64, Some(I7));
        assert_eq!(
            text(system(&campaign, Some("x86_2"), &x86)),
            "there is no system `x86_2` in the configuration; it has x86_1, arm_1"
        );
        assert_eq!(
            plan(&campaign, "gude").unwrap_err().to_string(),
            "there is no plan `gude` in the configuration; it has guide, public, quick"
        );
        let oryon = machine(Arch::Aarch64, Some("Oryon"));
        let error = system(&campaign, Some("x86_1"), &oryon).unwrap_err();
        assert!(matches!(error, SelectError::NoRunner { .. }));
        let mut twin = campaign.systems[0].clone();
        twin.id = "x86_2".to_owned();
        campaign.systems.push(twin);
        assert_eq!(
            text(system(&campaign, None, &x86)),
            "this machine matches several systems (x86_1, x86_2); name one with --system"
        );
    }

    fn known(features: &[&str]) -> Features {
        Features::Known {
            cpu: "the CPU".to_owned(),
            words: features.iter().map(|f| (*f).to_owned()).collect(),
        }
    }

    /// Identities that take part, and the reasons of the rest.
    fn taken(
        campaign: &Campaign,
        arch: Arch,
        features: &Features,
        plan: &str,
        only: Option<&str>,
    ) -> (Vec<String>, BTreeMap<ReasonCode, usize>) {
        let only = only.map(|only| Regex::new(only).unwrap());
        let rows = rows(
            campaign,
            &Selection {
                arch,
                features,
                plan: &campaign.plans[plan],
                only: only.as_ref(),
                no_deferred: false,
            },
        )
        .unwrap();
        let names = rows
            .iter()
            .filter(|row| row.skipped.is_none())
            .map(|row| row.identity.to_string())
            .collect();
        (names, count(&rows).1)
    }

    #[test]
    fn quick_takes_the_first_listed_build_of_each_code_and_guide_all() {
        let campaign = campaign();
        let features = known(&["avx2", "popcnt"]);
        let (quick, left) = taken(&campaign, Arch::X86_64, &features, "quick", None);
        // Six DOVE instances as ref/reference; six others as clean/reference and avx2/performance.
        assert_eq!(quick.len(), 18);
        assert!(quick.contains(&"ml-dsa/ml-dsa-87/avx2/performance".to_owned()));
        assert_eq!(left, BTreeMap::from([(ReasonCode::NotInPlan, 18)]));
        let (guide, left) = taken(&campaign, Arch::X86_64, &features, "guide", None);
        assert_eq!((guide.len(), left.len()), (36, 0));
    }

    #[test]
    fn what_the_cpu_lacks_is_left_out_with_the_reason() {
        let campaign = campaign();
        let (names, left) = taken(&campaign, Arch::X86_64, &known(&["avx2"]), "guide", None);
        // avx2 codes need popcnt too.
        assert_eq!((names.len(), left[&ReasonCode::CpuFeature]), (30, 6));
        let (names, left) = taken(&campaign, Arch::X86_64, &known(&[]), "guide", None);
        // Reference builds only: 6 DOVE, 6 clean.
        assert_eq!((names.len(), left[&ReasonCode::CpuFeature]), (12, 24));
        let (names, left) = taken(&campaign, Arch::Aarch64, &Features::Unknown, "guide", None);
        // DOVE reference and resource, clean and round-3 NEON reference; not SVE, not SHA3.
        assert_eq!((names.len(), left[&ReasonCode::CpuFeature]), (21, 15));
        assert!(!names.iter().any(|name| name.contains("/performance")));
        let (names, _) = taken(
            &campaign,
            Arch::Aarch64,
            &known(&["sha3", "sve"]),
            "guide",
            None,
        );
        assert_eq!(names.len(), 36);
        let (names, _) = taken(&campaign, Arch::Aarch64, &Features::NotAsked, "guide", None);
        assert_eq!(names.len(), 36);
    }

    #[test]
    fn a_build_without_flags_for_the_architecture_is_left_out() {
        let mut campaign = campaign();
        let build = campaign.builds.get_mut("performance").unwrap();
        build.cflags.remove(&Arch::Aarch64);
        let all = known(&["sve", "sha3"]);
        let (_, left) = taken(&campaign, Arch::Aarch64, &all, "guide", None);
        // Six DOVE and six clean rows.
        assert_eq!(left, BTreeMap::from([(ReasonCode::BuildFailed, 12)]));
    }

    #[test]
    fn only_matches_operation_keys_and_leaves_no_row_for_the_rest() {
        let campaign = campaign();
        let features = known(&["avx2", "popcnt"]);
        let only = Regex::new("^dilithium/.*/clean/reference/(sign|verify)$").unwrap();
        let rows = rows(
            &campaign,
            &Selection {
                arch: Arch::X86_64,
                features: &features,
                plan: &campaign.plans["quick"],
                only: Some(&only),
                no_deferred: false,
            },
        )
        .unwrap();
        assert_eq!(rows.len(), 3);
        for row in &rows {
            assert_eq!(row.operations, [Operation::Sign, Operation::Verify]);
            assert_eq!(row.skipped, None);
        }
        let only = Regex::new("dilitium").unwrap();
        let error = super::rows(
            &campaign,
            &Selection {
                arch: Arch::X86_64,
                features: &features,
                plan: &campaign.plans["quick"],
                only: Some(&only),
                no_deferred: false,
            },
        );
        assert!(matches!(error, Err(SelectError::Nothing { .. })));
    }

    #[test]
    fn deferred_rows_come_last_or_not_at_all() {
        let mut campaign = campaign();
        let plan = campaign.plans.get_mut("guide").unwrap();
        plan.defer = vec!["_512/".to_owned()];
        let features = known(&["avx2", "popcnt"]);
        let rows_with = |no_deferred| {
            rows(
                &campaign,
                &Selection {
                    arch: Arch::X86_64,
                    features: &features,
                    plan: &campaign.plans["guide"],
                    only: None,
                    no_deferred,
                },
            )
            .unwrap()
        };
        let all = rows_with(false);
        assert_eq!(all.iter().filter(|row| row.deferred).count(), 6);
        assert_eq!(count(&all), (36, BTreeMap::new()));
        let some = rows_with(true);
        assert_eq!(
            count(&some),
            (30, BTreeMap::from([(ReasonCode::Deferred, 6)]))
        );
    }
}
