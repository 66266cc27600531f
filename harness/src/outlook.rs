//! What a campaign would measure, how often and how long: the answer of `campaign plan`.
//!
//! A pure function of the rows that take part ([`crate::select`]) and of the costs that a run has
//! calibrated, where there is one; it measures nothing and claims nothing that is not known.

use crate::evidence::store;
use crate::evidence::{CalibrateEvidence, Class, PlanSettings, Reason, Status};
use crate::identity::Identity;
use crate::plan::{self, Cost};
use crate::select::{Chosen, Row};
use protocol::Operation;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Calibrated costs by operation key.
pub type Costs = BTreeMap<String, Cost>;

/// What would be measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlook {
    /// Name of the plan.
    pub plan: String,
    /// Id of the system, or `local`.
    pub system: String,
    /// What this machine is to it.
    pub class: Class,
    /// CPUs that would be measured on.
    pub cpus: Vec<u32>,
    /// Run that the costs are from.
    pub costs_from: Option<String>,
    /// Operations in page order, deferred ones last.
    pub operations: Vec<PlannedOperation>,
    /// Identities that take no part.
    pub skipped: Vec<Skipped>,
    /// Sums.
    pub total: Total,
}

/// One operation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedOperation {
    /// Identity.
    pub identity: Identity,
    /// Operation.
    pub operation: Operation,
    /// Measured after everything else.
    pub deferred: bool,
    /// Fresh processes.
    pub trials: u32,
    /// Calibrated cost of one call, seconds; null while unknown.
    pub cost_s: Option<f64>,
    /// Timed calls of a trial; null while unknown.
    pub iterations: Option<u64>,
    /// Untimed calls before them; null while unknown.
    pub warmups: Option<u32>,
    /// Expected time of all trials without repeats, seconds; null while unknown.
    pub expected_s: Option<f64>,
    /// Time limit of one worker, seconds; null while unknown.
    pub timeout_s: Option<f64>,
}

/// One identity that takes no part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Which.
    pub identity: Identity,
    /// Why.
    pub reason: Reason,
}

/// Sums over all operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Total {
    /// Identities that take part.
    pub identities: usize,
    /// Operations whose time is not known.
    pub unknown: usize,
    /// Timing all trials one after the other, the second timing of the cheapest verify included,
    /// seconds; of the known operations only.
    pub measure_s: f64,
    /// One key with its operations for each key of the memory and of the profile phase, seconds; of
    /// the identities that are known completely.
    pub keys_s: f64,
}

/// The outlook on a campaign.
pub fn outlook(
    plan: &PlanSettings,
    chosen: &Chosen,
    cpus: &[u32],
    rows: &[Row],
    costs: &Costs,
    costs_from: Option<String>,
) -> Outlook {
    // Under a runner time means nothing: libraries are checked and calls counted.
    let timed = chosen.class != Class::Emulated;
    let taking_part = || rows.iter().filter(|row| row.skipped.is_none());
    let mut operations: Vec<PlannedOperation> = taking_part()
        .flat_map(|row| row.operations.iter().map(move |op| (row, *op)))
        .map(|(row, operation)| planned(plan, row, operation, costs, timed))
        .collect();
    operations.sort_by_key(|operation| operation.deferred); // stable: page order within
    Outlook {
        plan: plan.name.clone(),
        system: chosen.system.id.clone(),
        class: chosen.class,
        cpus: cpus.to_vec(),
        costs_from,
        total: Total {
            identities: taking_part().count(),
            unknown: operations.iter().filter(|o| o.expected_s.is_none()).count(),
            measure_s: measure_s(&operations),
            keys_s: taking_part()
                .filter_map(|row| keys_s(plan, row, costs))
                .fold(0.0, |sum, each| sum + each), // `sum` of nothing is -0
        },
        operations,
        skipped: rows
            .iter()
            .filter_map(|row| {
                Some(Skipped {
                    identity: row.identity.clone(),
                    reason: row.skipped.clone()?,
                })
            })
            .collect(),
    }
}

fn planned(
    plan: &PlanSettings,
    row: &Row,
    operation: Operation,
    costs: &Costs,
    timed: bool,
) -> PlannedOperation {
    let cost = costs
        .get(&row.identity.operation_key(operation))
        .copied()
        .filter(|_| timed);
    let record = cost.map(|cost| plan::measure(plan, cost));
    let fixed = plan.iterations.filter(|_| timed);
    PlannedOperation {
        identity: row.identity.clone(),
        operation,
        deferred: row.deferred,
        trials: plan.trials,
        cost_s: cost.map(|cost| cost.call_s),
        iterations: record.as_ref().map(|record| record.iterations).or(fixed),
        warmups: record.as_ref().map(|record| record.warmups),
        expected_s: cost.map(|cost| plan::expected_s(plan, cost)),
        timeout_s: record.map(|record| record.timeout_s),
    }
}

/// All known times, and the cheapest known verify once more (the noise floor's second timing).
fn measure_s(operations: &[PlannedOperation]) -> f64 {
    let known = operations.iter().filter_map(|o| o.expected_s);
    let known = known.fold(0.0, |sum, each| sum + each); // `sum` of nothing is -0
    let again = operations
        .iter()
        .filter(|o| o.operation == Operation::Verify)
        .filter_map(|o| Some((o.cost_s?, o.expected_s?)))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(0.0, |(_, expected_s)| expected_s);
    known + again
}

/// Memory and profile phases of one identity: each makes its keys and uses them once.
fn keys_s(plan: &PlanSettings, row: &Row, costs: &Costs) -> Option<f64> {
    let cost = |operation| costs.get(&row.identity.operation_key(operation));
    let key_s = cost(Operation::Keygen)?.call_s;
    let mut each = 0.0;
    for operation in Operation::ALL {
        each += cost(operation)?.call_s;
    }
    Some(2.0 * f64::from(plan::keys(plan, key_s)) * each)
}

/// The costs that a run has calibrated. A file that is absent or unreadable leaves its operation
/// unknown: the phases that need it say what is wrong with it.
pub fn costs_of(run: &Path, rows: &[Row]) -> Costs {
    let mut costs = Costs::new();
    for row in rows {
        for operation in Operation::ALL {
            let file = run
                .join("calibrate")
                .join(row.identity.operation_file(operation));
            let evidence: Option<CalibrateEvidence> = store::read_json(&file).ok();
            let complete = evidence.filter(|evidence| evidence.head.status == Status::Complete);
            if let Some(cost) = complete.and_then(|evidence| cost_of(&evidence)) {
                costs.insert(row.identity.operation_key(operation), cost);
            }
        }
    }
    costs
}

fn cost_of(evidence: &CalibrateEvidence) -> Option<Cost> {
    Some(Cost {
        call_s: evidence.c_s?,
        preparation_s: evidence.preparation_s?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{defaults::defaults, Arch, System};
    use crate::evidence::ReasonCode;

    fn row(name: &str, deferred: bool, skipped: Option<Reason>) -> Row {
        Row {
            identity: name.parse().unwrap(),
            operations: Operation::ALL.to_vec(),
            skipped,
            deferred,
        }
    }

    fn chosen(class: Class) -> Chosen {
        Chosen {
            system: System {
                id: "x86_1".to_owned(),
                arch: Arch::X86_64,
                cpu_model: "i7".to_owned(),
                cc: "gcc".to_owned(),
                runner: Vec::new(),
                description: None,
            },
            class,
        }
    }

    fn costs(entries: &[(&str, f64)]) -> Costs {
        let cost = |call_s| Cost {
            call_s,
            preparation_s: 0.0,
        };
        entries
            .iter()
            .map(|(key, call_s)| ((*key).to_owned(), cost(*call_s)))
            .collect()
    }

    fn rows() -> Vec<Row> {
        let reason = Reason::new(ReasonCode::CpuFeature, "the CPU lacks avx2");
        vec![
            row("a/big/ref/reference", true, None),
            row("a/small/avx2/performance", false, Some(reason)),
            row("a/small/ref/reference", false, None),
        ]
    }

    #[test]
    fn without_costs_the_trials_are_known_and_nothing_else() {
        let plan = &defaults().plans["guide"];
        let seen = outlook(
            plan,
            &chosen(Class::Local),
            &[3],
            &rows(),
            &Costs::new(),
            None,
        );
        assert_eq!((seen.operations.len(), seen.skipped.len()), (6, 1));
        assert_eq!((seen.total.identities, seen.total.unknown), (2, 6));
        let sums = [seen.total.measure_s, seen.total.keys_s];
        assert!(sums.iter().all(|sum| *sum == 0.0 && sum.is_sign_positive()));
        for operation in &seen.operations {
            assert_eq!((operation.trials, operation.iterations), (15, None));
        }
        let order: Vec<&str> = seen
            .operations
            .iter()
            .map(|o| o.identity.label.as_str())
            .collect();
        assert_eq!(
            order,
            ["small", "small", "small", "big", "big", "big"],
            "deferred last"
        );
    }

    #[test]
    fn known_costs_give_iterations_times_and_their_sum() {
        let plan = &defaults().plans["guide"]; // 15 trials, 0.35 s
        let costs = costs(&[
            ("a/small/ref/reference/keygen", 0.07),
            ("a/small/ref/reference/sign", 0.035),
            ("a/small/ref/reference/verify", 0.035),
            ("a/big/ref/reference/verify", 0.07),
        ]);
        let from = Some("runs/x".to_owned());
        let seen = outlook(
            plan,
            &chosen(Class::Registered),
            &[3],
            &rows(),
            &costs,
            from,
        );
        let numbers: Vec<_> = seen
            .operations
            .iter()
            .map(|o| (o.iterations, o.warmups))
            .collect();
        assert_eq!(
            numbers,
            [
                (Some(7), Some(1)), // the least total: ceil(100 / 15)
                (Some(10), Some(3)),
                (Some(10), Some(3)),
                (None, None),
                (None, None),
                (Some(7), Some(1)),
            ]
        );
        assert_eq!(seen.total.unknown, 2);
        let verify = 15.0 * 13.0 * 0.035;
        let sum = 15.0 * 8.0 * 0.07 + 2.0 * verify + 15.0 * 8.0 * 0.07 + verify;
        assert!(
            (seen.total.measure_s - sum).abs() < 1e-9,
            "the cheapest verify counts twice"
        );
        // 20 keys in two phases, of the one identity that is known completely.
        assert!((seen.total.keys_s - 2.0 * 20.0 * 0.14).abs() < 1e-9);
    }

    #[test]
    fn fixed_iterations_are_known_without_costs() {
        let mut plan = defaults().plans["quick"].clone();
        plan.iterations = Some(10);
        let seen = outlook(
            &plan,
            &chosen(Class::Local),
            &[0],
            &rows(),
            &Costs::new(),
            None,
        );
        let known = seen.operations.iter();
        let known: Vec<_> = known.map(|o| (o.iterations, o.expected_s)).collect();
        assert_eq!(known, [(Some(10), None); 6]);
    }

    #[test]
    fn nothing_is_timed_under_emulation() {
        let plan = &defaults().plans["guide"];
        let costs = costs(&[("a/small/ref/reference/verify", 0.035)]);
        let seen = outlook(plan, &chosen(Class::Emulated), &[0], &rows(), &costs, None);
        let iterations: Vec<_> = seen.operations.iter().map(|o| o.iterations).collect();
        assert_eq!(iterations, [None; 6]);
        assert_eq!(seen.total.measure_s, 0.0);
    }

    #[test]
    fn costs_are_read_from_complete_calibrations_only() {
        let run = tempfile::tempdir().unwrap();
        let rows = vec![row("a/small/ref/reference", false, None)];
        let identity = &rows[0].identity;
        let mut evidence = serde_json::json!({
            "schema": "campaign/1", "kind": "calibrate", "identity": identity, "origin": "independent",
            "class": "local", "system": "local", "status": "complete", "reason": null,
            "host_token": null, "sessions": [], "missing": {}, "operation": "sign",
            "library": { "kind": "timed", "sha256": "0" }, "calls_ns": [2000000], "c_s": 0.002,
            "key_s": 0.001, "preparation_s": 0.25, "outputs": null
        });
        let write = |operation: Operation, evidence: &serde_json::Value| {
            let file = run
                .path()
                .join("calibrate")
                .join(identity.operation_file(operation));
            store::write_json(&file, evidence).unwrap();
        };
        write(Operation::Sign, &evidence);
        evidence["status"] = "failed".into();
        write(Operation::Verify, &evidence);
        let costs = costs_of(run.path(), &rows);
        let expected = Cost {
            call_s: 0.002,
            preparation_s: 0.25,
        };
        assert_eq!(
            costs,
            Costs::from([("a/small/ref/reference/sign".to_owned(), expected)])
        );
    }
}
