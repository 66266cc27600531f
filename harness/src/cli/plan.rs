//! `campaign plan`: what would be measured, how often and how long; measures nothing.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::output;
use super::prepare::{self, Prepared};
use crate::config::Sources;
use crate::evidence::Class;
use crate::outlook::{self, Costs, Outlook};
use crate::report::format::{self, MISSING};
use crate::run::directory::{Choice, Place};
use crate::values::number_list;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `plan`.
pub type Args = super::options::PhaseArgs;

/// Prints the outlook, as a table or as JSON.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let prepared = prepare::prepare(&args.selection, global, Sources::Required, false)?;
    let choice = match &args.selection.run {
        Some(dir) => Choice::Named(dir.clone()),
        None => Choice::Newest,
    };
    let run = existing(prepared.place(&choice)?);
    let outlook = look(&prepared, run);
    match global.json {
        true => output::print_json(&outlook)?,
        false => output::print(&table(&outlook))?,
    }
    Ok(Outcome::Done)
}

/// The run that has been begun, if any.
fn existing(place: Place) -> Option<PathBuf> {
    match place {
        Place::New(_) => None,
        Place::Unfinished(dir) | Place::Complete(dir) => Some(dir),
    }
}

fn look(prepared: &Prepared, run: Option<PathBuf>) -> Outlook {
    let costs = run
        .as_ref()
        .map_or_else(Costs::new, |run| outlook::costs_of(run, &prepared.rows));
    let from = run.filter(|_| !costs.is_empty()).map(|run| {
        let short = run.strip_prefix(&prepared.campaign.root).unwrap_or(&run);
        short.display().to_string()
    });
    outlook::outlook(
        &prepared.plan,
        &prepared.chosen,
        &prepared.cpus,
        &prepared.rows,
        &costs,
        from,
    )
}

/// The outlook as text.
fn table(outlook: &Outlook) -> String {
    let mut text = head(outlook);
    let names: Vec<String> = outlook
        .operations
        .iter()
        .map(|o| o.identity.to_string())
        .collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    if !names.is_empty() {
        line(
            &mut text,
            width,
            "identity",
            &["operation", "one call", "trials", "calls", "in all"],
        );
    }
    for (operation, name) in outlook.operations.iter().zip(&names) {
        let shown = |value: Option<String>| value.unwrap_or_else(|| MISSING.to_owned());
        let calls = operation.iterations.map(|n| match operation.warmups {
            Some(warmups) if warmups > 0 => format!("{warmups} + {n}"),
            _ => n.to_string(),
        });
        let cells = [
            operation.operation.to_string(),
            shown(operation.cost_s.map(format::time)),
            operation.trials.to_string(),
            shown(calls),
            shown(operation.expected_s.map(duration)),
        ];
        line(
            &mut text,
            width,
            name,
            &cells.each_ref().map(String::as_str),
        );
    }
    text += &skipped(outlook);
    text += &total(outlook);
    text
}

fn head(outlook: &Outlook) -> String {
    let class = match outlook.class {
        Class::Registered => "registered",
        Class::Emulated => {
            "emulated here: libraries are checked and calls counted, nothing is timed"
        }
        _ => "a machine that is not registered",
    };
    let costs = match (&outlook.costs_from, outlook.class) {
        (_, Class::Emulated) => String::new(),
        (Some(run), _) => format!(
            "Costs of one call: calibrated in {run}. Calls of a trial: warm-ups + timed ones.\n"
        ),
        (None, _) => format!(
            "Costs of one call: not known yet ({MISSING}); `campaign calibrate` finds them out.\n"
        ),
    };
    format!(
        "Plan {}, system {} ({class}), CPU {}.\n{costs}\n",
        outlook.plan,
        outlook.system,
        number_list(&outlook.cpus)
    )
}

/// One line of the table: the name, then cells to the right.
fn line(text: &mut String, width: usize, name: &str, cells: &[&str; 5]) {
    let [operation, cost, trials, calls, all] = cells;
    let pad = width - name.chars().count().min(width);
    let row = format!(
        "{name}{:pad$}  {operation:<9}  {cost:>9}  {trials:>6}  {calls:>10}  {all:>10}",
        ""
    );
    text.push_str(row.trim_end());
    text.push('\n');
}

fn skipped(outlook: &Outlook) -> String {
    let mut by_reason: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    for skipped in &outlook.skipped {
        let key = (skipped.reason.code.word(), skipped.reason.text.as_str());
        by_reason
            .entry(key)
            .or_default()
            .push(skipped.identity.to_string());
    }
    let mut text = String::new();
    for ((code, reason), identities) in by_reason {
        let _ = writeln!(text, "\nSkipped, {code}: {reason} ({})", identities.len());
        for identity in identities {
            let _ = writeln!(text, "  {identity}");
        }
    }
    text
}

fn total(outlook: &Outlook) -> String {
    let total = &outlook.total;
    let operations = outlook.operations.len();
    let mut text = format!("\n{} identities, {operations} operations", total.identities);
    if outlook.class == Class::Emulated {
        return text + ".\n";
    }
    match total.unknown {
        0 => text += ".",
        unknown if unknown == operations => return text + ", times not known yet.\n",
        unknown => {
            let _ = write!(
                text,
                ", {unknown} of them not known yet and not in these sums."
            );
        }
    }
    let parallel = match outlook.cpus.len() {
        0 | 1 => String::new(),
        n => format!(" on one CPU, less on {n}"),
    };
    let _ = writeln!(
        text,
        " Timing {}{parallel}, memory and profile {};\nbuilding, KATs, start of processes and repeats of disturbed trials come on top.",
        duration(total.measure_s),
        duration(total.keys_s)
    );
    text
}

/// A duration to plan by: `2 h 05 min`, `3 min 20 s`, `12 s`; below 10 s as a time.
fn duration(seconds: f64) -> String {
    if seconds < 9.5 {
        return format::time(seconds);
    }
    let s = seconds.round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Reason, ReasonCode};
    use crate::outlook::{PlannedOperation, Skipped, Total};
    use protocol::Operation;

    fn operation(name: &str, operation: Operation, cost_s: Option<f64>) -> PlannedOperation {
        PlannedOperation {
            identity: name.parse().unwrap(),
            operation,
            deferred: false,
            trials: 15,
            cost_s,
            iterations: cost_s.map(|c| (0.35 / c).ceil() as u64),
            warmups: cost_s.map(crate::plan::warmups),
            expected_s: cost_s.map(|_| 5.25),
            timeout_s: cost_s.map(|_| 303.5),
        }
    }

    fn example() -> Outlook {
        Outlook {
            plan: "guide".to_owned(),
            system: "x86_1".to_owned(),
            class: Class::Registered,
            cpus: vec![3],
            costs_from: Some("runs/x86_1-guide-1".to_owned()),
            operations: vec![
                operation(
                    "ml-dsa/ml-dsa-44/clean/reference",
                    Operation::Sign,
                    Some(0.00031),
                ),
                operation(
                    "sign-09/dove_classic_512/ref/reference",
                    Operation::Keygen,
                    Some(12.5),
                ),
                operation(
                    "sign-09/dove_classic_512/ref/reference",
                    Operation::Verify,
                    None,
                ),
            ],
            skipped: vec![Skipped {
                identity: "ml-dsa/ml-dsa-44/avx2/performance".parse().unwrap(),
                reason: Reason::new(ReasonCode::CpuFeature, "the CPU lacks avx2"),
            }],
            total: Total {
                identities: 2,
                unknown: 1,
                measure_s: 7505.0,
                keys_s: 75.2,
            },
        }
    }

    #[test]
    fn the_table_shows_what_is_known_and_says_what_is_not() {
        insta::assert_snapshot!(table(&example()));
    }

    #[test]
    fn an_outlook_without_costs_and_one_under_emulation_claim_no_times() {
        let mut unknown = example();
        unknown.costs_from = None;
        unknown.total.unknown = 3;
        unknown.operations.iter_mut().for_each(|o| {
            (o.cost_s, o.iterations, o.warmups, o.expected_s) = (None, None, None, None);
        });
        let mut emulated = unknown.clone();
        emulated.class = Class::Emulated;
        insta::assert_snapshot!(format!("{}\n====\n\n{}", table(&unknown), table(&emulated)));
    }

    #[test]
    fn durations_are_in_the_units_that_people_plan_in() {
        for (seconds, shown) in [
            (0.0031, "3.1 ms"),
            (9.49, "9.49 s"),
            (9.5, "10 s"),
            (59.4, "59 s"),
            (59.5, "1 min 00 s"),
            (3599.4, "59 min 59 s"),
            (3599.6, "1 h 00 min"),
            (90061.0, "25 h 01 min"),
        ] {
            assert_eq!(duration(seconds), shown, "{seconds}");
        }
    }
}
