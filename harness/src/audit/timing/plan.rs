//! The plan of a record: what it says of costs, calls and limits.

use crate::audit::facts::{text, Facts, Plan};
use crate::audit::finding::Findings;
use crate::audit::head::Head;
use crate::json::Value;

pub(super) fn check_plan(plan: &Value, head: &Head, facts: &Facts, f: &mut Findings) {
    let number = |key: &str| plan.get(key).and_then(Value::u64);
    let real = |key: &str| plan.get(key).and_then(Value::f64);
    let Some(known) = &facts.plan else {
        return; // an import's plan is derived again from its source
    };
    let mut same = |key: &str, expected: f64, found: Option<f64>| {
        if found != Some(expected) {
            f.error(
                format!("/plan/{key}"),
                "a record repeats the campaign's plan",
                expected,
                format!("{found:?}"),
            );
        }
    };
    same("trials", known.trials as f64, real("trials"));
    same("target_s", known.target_s, real("target_s"));
    same("min_total", known.min_total as f64, real("min_total"));
    same(
        "max_iterations",
        known.max_iterations as f64,
        real("max_iterations"),
    );
    same("budget_s", known.budget_s, real("budget_s"));
    same("repeats", known.repeats as f64, real("repeats"));
    if number("fixed_iterations") != known.iterations {
        let found = format!("{:?}", number("fixed_iterations"));
        f.error(
            "/plan/fixed_iterations",
            "a record repeats the campaign's plan",
            format!("{:?}", known.iterations),
            found,
        );
    }
    let name = text(plan, "name").unwrap_or_default();
    if name != known.name {
        f.error(
            "/plan/name",
            "a record repeats the campaign's plan",
            &known.name,
            name,
        );
    }
    match real("cost_s") {
        Some(cost) => {
            let keygen = head.operation.as_deref() == Some("keygen");
            let warmups = match facts.study && !keygen {
                // The signature of the preparation has warmed up what long messages need.
                true => u64::from(cost < 0.02),
                false => warmups(cost),
            };
            formula(plan, known, cost, warmups, f);
        }
        None if head.status == "complete" => {
            f.error(
                "/plan/cost_s",
                "what was measured was calibrated",
                "a cost",
                "null",
            );
        }
        None => {}
    }
}

/// Untimed calls of a campaign.
fn warmups(cost: f64) -> u64 {
    let cost = cost.max(1e-9);
    if cost < 0.05 {
        3
    } else {
        u64::from(cost < 10.0)
    }
}

/// Iterations, warm-ups and time limit from the calibrated cost.
fn formula(plan: &Value, known: &Plan, cost: f64, warmups: u64, f: &mut Findings) {
    let cost = cost.max(1e-9);
    let trials = known.trials.max(1);
    let iterations = match known.iterations {
        Some(fixed) => fixed.max(1),
        None => {
            let aimed = (known.target_s / cost).ceil().min(1e18) as u64;
            let least = known.min_total.div_ceil(trials);
            let paid = (known.budget_s / (trials as f64 * cost)).floor().min(1e18) as u64;
            let most = known.max_iterations.min(paid.max(1)).max(1);
            aimed.max(least).max(1).min(most)
        }
    };
    for (key, expected) in [("iterations", iterations), ("warmups", warmups)] {
        let found = plan.get(key).and_then(Value::u64);
        if found != Some(expected) {
            f.error(
                format!("/plan/{key}"),
                "the plan formula gives it from the calibrated cost",
                expected,
                format!("{found:?}"),
            );
        }
    }
    let preparation = plan
        .get("preparation_s")
        .and_then(Value::f64)
        .unwrap_or(0.0);
    let limit = known.timeout_floor_s
        + 3.0 * (iterations as f64 + warmups as f64) * cost
        + 3.0 * preparation;
    let found = plan.get("timeout_s").and_then(Value::f64);
    if found != Some(limit) {
        f.error(
            "/plan/timeout_s",
            "the time limit follows from the plan",
            limit,
            format!("{found:?}"),
        );
    }
}
