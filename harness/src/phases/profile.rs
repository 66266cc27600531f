//! The profile phase: which share of an operation is spent in hash functions and in the DRNG, from
//! wrappers that the linker put around them, with the profile library, on the measured CPUs.
//!
//! The worker runs each key's operation several times on the same inputs; the pass with the fewest ticks
//! counts ([`ProfilePasses`](protocol::ProfilePasses)), so that a busy machine does not decide the shares.
//!
//! Under emulation the numbers of calls are exact and the ticks mean nothing, so shares are left out.

use super::context::{Context, PhaseError};
use super::inputs::other_answer;
use super::singles::{self, Phase, ReadyMade, Single, Written};
use crate::evidence::{
    self, profile_file, Kind, LibraryKind, ProfileDerived, ProfileEvidence, ProfileTotal, Reason,
    ReasonCode, TicksRecord, Wrapped,
};
use crate::report::view::calls_text;
use protocol::{Body, Inputs, ProfileOutcome, ProfileRow, SourceKind, Task, TRIAL_PROFILE};
use std::collections::{BTreeMap, BTreeSet};

/// Name of the phase.
pub const NAME: &str = "profile";

/// Symbols of the helper functions that the programme ships.
const ICCS: [&str; 4] = ["pseudohash", "pseudoXOF", "sm3hash", "get_random_number"];
/// Reported name of every DRNG.
const DRNG: &str = "drng";

/// Runs the phase.
pub async fn run(context: &Context<'_>) -> Result<(), PhaseError> {
    singles::run::<Profile>(context, context.timing_lanes()).await
}

struct Profile;

impl Phase for Profile {
    const NAME: &'static str = NAME;
    const LIBRARY: LibraryKind = LibraryKind::Profile;
    const TRIAL: u32 = TRIAL_PROFILE;

    fn ready_made() -> ReadyMade {
        let text = "its library comes already built: there are no objects that wrappers could be linked into";
        ReadyMade::Skip(Reason::new(ReasonCode::NotRecorded, text))
    }

    fn known(context: &Context, single: &Single) -> Result<Option<String>, PhaseError> {
        let file = profile_file(&single.row.identity, single.operation);
        let known = context.book.read::<ProfileEvidence>(&file)?;
        // What was left out has no library, as there is none of its kind.
        Ok(known.map(|stored| stored.value.library.map_or_else(String::new, |l| l.sha256)))
    }

    fn task(single: &Single, inputs: Inputs) -> Task {
        Task::Profile {
            operation: single.operation,
            inputs,
            keys: single.keys,
        }
    }

    fn write(
        context: &Context,
        single: &Single,
        answer: Result<&Body, Reason>,
    ) -> Result<Written, PhaseError> {
        let outcome = match answer {
            Ok(Body::Profile(outcome)) => Ok(outcome),
            Ok(_) => Err(other_answer()),
            Err(reason) => Err(reason),
        };
        let evidence = evidence(context, single, outcome);
        let file = profile_file(&single.row.identity, single.operation);
        context.book.write(&file, &evidence)?;
        // Of an emulated run the calls are all that the phase finds.
        match evidence.derived.filter(|_| context.is_emulated()) {
            Some(derived) => Ok(Written::Said(calls_text(&derived, &evidence.runs))),
            None => Ok(evidence.head.reason.filter(|_| !single.left_out).into()),
        }
    }
}

fn evidence(
    context: &Context,
    single: &Single,
    outcome: Result<&ProfileOutcome, Reason>,
) -> ProfileEvidence {
    let mut head = context.head(Kind::Profile, &single.row.identity);
    let mut why = outcome.as_ref().err().cloned();
    let outcome = outcome.ok();
    let overflow = outcome.map_or(0, |o| o.overflow_calls);
    if overflow > 0 {
        let text = format!("the table was full for {overflow} calls: the profile is not valid");
        why = Some(Reason::new(ReasonCode::NotRecorded, text));
    }
    if let Some(reason) = &why {
        single.mark(&mut head, reason);
    }
    let valid = outcome.filter(|_| why.is_none());
    let emulated = context.is_emulated();
    let found = context.campaign.find(&single.row.identity);
    let counts_draws = found.is_some_and(|(_, instance, ..)| instance.rejected_counter.is_some());
    let names: BTreeSet<String> = single
        .built
        .wrapped
        .iter()
        .map(|w| w.name.clone())
        .collect();
    let mut evidence = ProfileEvidence {
        head,
        operation: single.operation,
        library: (!single.left_out).then(|| single.library_ref()),
        lto_removed: single.built.lto_removed,
        wrapped: names.into_iter().collect(),
        keys: Some(single.keys),
        passes: outcome.map(|o| o.passes.clone()).unwrap_or_default(),
        ticks: TicksRecord {
            source: outcome.map_or(SourceKind::None, |o| o.tick_source),
            hz: outcome.and_then(|o| o.tick_hz),
        },
        wrapper_cost_ticks: outcome.map(|o| o.wrapper_cost_ticks),
        wrapper_inside_milliticks: outcome.map(|o| o.wrapper_inside_milliticks),
        wrapper_around_milliticks: outcome.map(|o| o.wrapper_around_milliticks),
        total: ProfileTotal {
            operations: outcome.map_or(0, |o| o.operations),
            ticks: outcome.map_or(0, |o| o.total_ticks),
        },
        calls: outcome.map(|o| o.calls.clone()).unwrap_or_default(),
        runs: outcome.map(|o| o.runs.clone()).unwrap_or_default(),
        overflow_calls: overflow,
        derived: valid.map(|o| {
            let mut derived = derive(o, &single.built.wrapped, !emulated);
            derived.rejected_draws = counts_draws.then_some(o.rejected_draws);
            derived
        }),
    };
    evidence::explain_with(&mut evidence, |pointer| match pointer {
        "/derived/rejected_draws" => Some(Reason::new(
            ReasonCode::NotRecorded,
            "the candidate names no counter of rejected draws (`rejected_counter`)",
        )),
        _ if pointer.starts_with("/derived/") && emulated => Some(Reason::new(
            ReasonCode::Emulated,
            "ticks of an emulated processor mean nothing",
        )),
        _ => why.clone(),
    });
    evidence
}

/// Calls and ticks of a function over all its shapes.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    calls: u64,
    ticks: u64,
}

/// What follows from the counts; shares only where the ticks mean something.
///
/// A call costs `inside` in its own row and `around` in the whole, thousandths of a tick, so
/// share = (ticks - calls * inside / 1000) / (total - all calls * around / 1000).
fn derive(outcome: &ProfileOutcome, wrapped: &[Wrapped], shares: bool) -> ProfileDerived {
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    // A function that was wrapped and never called has a share of exactly zero.
    for function in wrapped {
        sums.entry(&function.name).or_default();
    }
    for row in &outcome.calls {
        let sum = sums.entry(&row.function).or_default();
        sum.calls += row.calls;
        sum.ticks += row.ticks;
    }
    let milli = |calls: u64, each: u64| calls as f64 * each as f64 / 1000.0;
    let calls: u64 = sums.values().map(|s| s.calls).sum();
    let total = outcome.total_ticks as f64 - milli(calls, outcome.wrapper_around_milliticks);
    let share_of = |sum: &Sum| {
        let own = sum.ticks as f64 - milli(sum.calls, outcome.wrapper_inside_milliticks);
        (own.max(0.0) / total).min(1.0)
    };
    let shares = (shares && total > 0.0).then(|| -> BTreeMap<String, f64> {
        sums.iter()
            .map(|(name, sum)| ((*name).to_owned(), share_of(sum)))
            .collect()
    });
    let operations = outcome.operations.max(1) as f64;
    ProfileDerived {
        hash_share: shares.as_ref().map(|shares| {
            let parts: Vec<f64> = shares
                .iter()
                .filter(|(name, _)| *name != DRNG)
                .map(|(_, &share)| share)
                .collect();
            crate::stats::exact_sum(&parts)
        }),
        drng_share: shares
            .as_ref()
            .map(|shares| shares.get(DRNG).copied().unwrap_or(0.0)),
        share: shares,
        calls_per_operation: sums
            .iter()
            .filter(|(_, sum)| sum.calls > 0)
            .map(|(name, sum)| ((*name).to_owned(), sum.calls as f64 / operations))
            .collect(),
        rejected_draws: Some(outcome.rejected_draws),
        verdict: verdict(&outcome.calls, wrapped).to_owned(),
    }
}

/// Whose primitives an operation calls, by call counts.
fn verdict(calls: &[ProfileRow], wrapped: &[Wrapped]) -> &'static str {
    let is_iccs = |name: &str| {
        let mut symbols = wrapped.iter().filter(|w| w.name == name).peekable();
        symbols.peek().is_some() && symbols.all(|w| ICCS.contains(&w.symbol.as_str()))
    };
    let called = calls.iter().filter(|row| row.calls > 0);
    let (iccs, own): (Vec<&ProfileRow>, Vec<&ProfileRow>) =
        called.partition(|row| is_iccs(&row.function));
    match (wrapped.is_empty(), iccs.is_empty(), own.is_empty()) {
        (true, ..) => "none wrapped",
        (_, false, true) => "ICCS-only",
        (_, false, false) => "mixed",
        (_, true, _) => "own primitives",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Operation;

    fn row(function: &str, out_bits: u64, calls: u64, ticks: u64) -> ProfileRow {
        ProfileRow {
            function: function.into(),
            group: "hash".into(),
            in_bits: 512,
            out_bits,
            calls,
            ticks,
        }
    }

    fn wrapped(pairs: &[(&str, &str)]) -> Vec<Wrapped> {
        pairs
            .iter()
            .map(|&(symbol, name)| Wrapped {
                symbol: symbol.into(),
                name: name.into(),
                group: "hash".into(),
            })
            .collect()
    }

    fn outcome(calls: Vec<ProfileRow>) -> ProfileOutcome {
        ProfileOutcome {
            operation: Operation::Keygen,
            tick_source: SourceKind::Tsc,
            tick_hz: None,
            wrapper_cost_ticks: 20,
            wrapper_inside_milliticks: 20_000,
            wrapper_around_milliticks: 50_000,
            operations: 2,
            total_ticks: 10_600,
            calls,
            overflow_calls: 0,
            rejected_draws: 3,
            runs: Vec::new(),
            passes: Vec::new(),
        }
    }

    #[test]
    fn shares_are_without_the_wrappers_cost() {
        let iccs = wrapped(&[
            ("pseudoXOF", "pseudoXOF"),
            ("sm3hash", "sm3hash"),
            ("get_random_number", "drng"),
        ]);
        let calls = vec![
            row("pseudoXOF", 512, 8, 1160),
            row("pseudoXOF", 1024, 2, 1040),
            row("drng", 64, 2, 540),
        ];
        let derived = derive(&outcome(calls), &iccs, true);
        // total 10600 - 12 * 50 = 10000; XOF 2200 - 10 * 20 = 2000; DRNG 540 - 2 * 20 = 500.
        let share = derived.share.unwrap();
        assert_eq!(
            (share["pseudoXOF"], share["sm3hash"], share["drng"]),
            (0.2, 0.0, 0.05)
        );
        assert_eq!(
            (derived.hash_share, derived.drng_share),
            (Some(0.2), Some(0.05))
        );
        assert_eq!(
            derived.calls_per_operation,
            [("drng".to_owned(), 1.0), ("pseudoXOF".to_owned(), 5.0)].into()
        );
        assert_eq!(derived.verdict, "ICCS-only");
        let emulated = derive(&outcome(Vec::new()), &iccs, false);
        assert_eq!((emulated.share, emulated.hash_share), (None, None));
    }

    #[test]
    fn the_verdict_is_by_who_is_called() {
        let all = wrapped(&[
            ("pseudoXOF", "pseudoXOF"),
            ("shake256", "shake256"),
            ("PQCLEAN_randombytes", "drng"),
        ]);
        let cases = [
            (vec![row("pseudoXOF", 1, 1, 0)], "ICCS-only"),
            (vec![row("shake256", 1, 1, 0)], "own primitives"),
            (vec![row("drng", 1, 1, 0)], "own primitives"),
            (
                vec![row("pseudoXOF", 1, 1, 0), row("shake256", 1, 1, 0)],
                "mixed",
            ),
            (
                vec![row("pseudoXOF", 1, 1, 0), row("shake256", 1, 0, 0)],
                "ICCS-only",
            ),
            (vec![], "own primitives"),
        ];
        for (calls, expected) in cases {
            assert_eq!(verdict(&calls, &all), expected, "{calls:?}");
        }
        assert_eq!(verdict(&[], &[]), "none wrapped");
    }
}
