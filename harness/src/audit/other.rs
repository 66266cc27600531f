//! KAT, calibration, memory and profile evidence: what follows from what, computed again.

use super::facts::{elf, text, Facts};
use super::finding::Findings;
use super::head::Head;
use super::kat;
use super::number::{middle, ordered, sum};
use super::text::utc_ns;
use crate::json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// KAT evidence, for others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kat {
    /// `timed`, `profile`, `memory`, `stream`.
    pub library: String,
    /// Its digest.
    pub sha256: String,
    /// The word.
    pub result: String,
    /// Its streams.
    pub streams: Vec<kat::Stream>,
    /// SHA-256 of the manifest.
    pub manifest: Option<String>,
    /// Claimed lengths of public key, secret key and signature, bytes, by its log.
    pub claimed: Option<[u64; 3]>,
}

/// Calibration, for others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibration {
    /// Cost of one call, seconds.
    pub cost_s: Option<f64>,
    /// Cost of one key generation, seconds.
    pub key_s: Option<f64>,
    /// Preparation of a trial, seconds.
    pub preparation_s: Option<f64>,
    /// Timed library.
    pub library: String,
    /// Digests of trial 0's outputs.
    pub outputs: Option<[String; 3]>,
}

fn library(value: &Value, facts: &Facts, head: &Head, kind: &str, f: &mut Findings) -> String {
    let Some(library) = value.get("library").filter(|l| !l.is_null()) else {
        return String::new();
    };
    let found = text(library, "sha256").unwrap_or_default();
    let named = text(library, "kind").unwrap_or_default();
    if named != kind {
        f.error(
            "/library/kind",
            "evidence is of its phase's library",
            kind,
            &named,
        );
    }
    let built = facts
        .builds
        .get(&head.identity)
        .and_then(|b| b.libraries.get(&named));
    // An import knows the timed library only.
    if built.is_some() || facts.class != "imported" {
        let built = built.cloned().unwrap_or_default();
        if built != found {
            f.error(
                "/library/sha256",
                "the library is the one of build.json",
                built,
                &found,
            );
        }
    }
    found
}

/// Checks KAT evidence against its log.
pub fn kat(value: &Value, head: &Head, facts: &Facts, log: Option<&[u8]>, f: &mut Findings) -> Kat {
    let kind = value
        .get("library")
        .and_then(|l| text(l, "kind"))
        .unwrap_or_default();
    let sha256 = library(value, facts, head, &kind, f);
    let mut found = Kat {
        library: kind,
        sha256,
        result: text(value, "result").unwrap_or_default(),
        streams: kat::streams(value),
        manifest: text(value, "manifest_sha256"),
        claimed: None,
    };
    passes(value, &found.result, head, f);
    if facts.class != "imported" {
        kat::result(value, &found, f);
    }
    found.claimed = log_of(value, &found, facts, head, log, f);
    for key in ["start", "end"] {
        let Some(time) = value.get(key).and_then(Value::str) else {
            continue;
        };
        if !facts.is_inside(utc_ns(&time)) {
            f.error(
                format!("/{key}"),
                "a KAT lies inside the campaign",
                "",
                time,
            );
        }
    }
    found
}

/// PASS needs every published digest found.
fn passes(value: &Value, result: &str, head: &Head, f: &mut Findings) {
    let digests = value.get("digests").map_or(&[][..], Value::items);
    let passed = result == "PASS";
    if passed != (head.status == "complete") {
        f.error(
            "/status",
            "KAT evidence is complete when its result is PASS",
            passed,
            &head.status,
        );
    }
    if passed && digests.is_empty() {
        f.error(
            "/digests",
            "a KAT that passed compared something",
            "a digest",
            "none",
        );
    }
    for (index, digest) in digests.iter().enumerate() {
        let (expected, found) = (text(digest, "expected"), text(digest, "found"));
        if passed && found.is_some() && expected.is_some() && expected != found {
            let rule = "a KAT passes when every digest is the published one";
            f.error(
                format!("/digests/{index}/found"),
                rule,
                format!("{expected:?}"),
                format!("{found:?}"),
            );
        }
    }
}

/// The log is there, ends with the result and says what the evidence says; the lengths that it names.
fn log_of(
    value: &Value,
    kat: &Kat,
    facts: &Facts,
    head: &Head,
    log: Option<&[u8]>,
    f: &mut Findings,
) -> Option<[u64; 3]> {
    let path = text(value, "log").unwrap_or_default();
    let Some(bytes) = log else {
        f.error("/log", "the log of a KAT is there", "a file", path);
        return None;
    };
    let digest = const_hex::encode(Sha256::digest(bytes));
    let stated = text(value, "log_sha256").unwrap_or_default();
    if digest != stated {
        f.error(
            "/log_sha256",
            "the digest is that of the log",
            digest,
            stated,
        );
    }
    if facts.class != "imported" {
        return kat::log(value, head, kat, bytes, f);
    }
    let log = String::from_utf8_lossy(bytes);
    let results = log.lines().rev();
    let last = results
        .filter_map(|line| line.strip_prefix("RESULT "))
        .next()
        .unwrap_or_default();
    let expected = head.subject.split('/').chain([kat.result.as_str()]);
    if !last.split_whitespace().eq(expected) {
        f.error(
            "/result",
            "the result is the last RESULT line of the log",
            last,
            &kat.result,
        );
    }
    None
}

/// Checks a calibration.
pub fn calibrate(value: &Value, head: &Head, facts: &Facts, f: &mut Findings) -> Calibration {
    let library = library(value, facts, head, "timed", f);
    let calls: Vec<f64> = value
        .get("calls_ns")
        .map_or(&[][..], Value::items)
        .iter()
        .filter_map(Value::u64)
        .map(|ns| ns as f64 / 1e9)
        .collect();
    let expected = middle(&ordered(calls)).map(|cost| cost.max(1e-9));
    let real = |key: &str| value.get(key).and_then(Value::f64);
    let cost_s = real("c_s");
    if cost_s != expected {
        f.error(
            "/c_s",
            "the cost is the median of the calls, at least 1 ns",
            format!("{expected:?}"),
            format!("{cost_s:?}"),
        );
    }
    let output = |key: &str| {
        value
            .at(&["outputs", key])
            .and_then(|v| v.str())
            .map(|s| s.into_owned())
    };
    Calibration {
        cost_s,
        key_s: real("key_s"),
        preparation_s: real("preparation_s"),
        library,
        outputs: output("pk")
            .zip(output("sk"))
            .zip(output("signatures"))
            .map(|((a, b), c)| [a, b, c]),
    }
}

/// Checks memory evidence.
pub fn memory(value: &Value, head: &Head, facts: &Facts, f: &mut Findings) {
    let libraries = facts.builds.get(&head.identity).map(|b| &b.libraries);
    let interposed = libraries.and_then(|l| l.get("interpose")).cloned();
    let kind = if interposed.is_some() {
        "timed"
    } else {
        "memory"
    };
    library(value, facts, head, kind, f);
    let stated = text(value, "interposed_sha256");
    if stated != interposed {
        f.error(
            "/interposed_sha256",
            "only a library that comes already built has its allocator interposed",
            format!("{interposed:?}"),
            format!("{stated:?}"),
        );
    }
    let built = facts.builds.get(&head.identity).and_then(|b| b.elf.clone());
    let found = value.get("static").map(elf);
    if built != found {
        f.error(
            "/static",
            "the static figures are those of build.json",
            format!("{built:?}"),
            format!("{found:?}"),
        );
    }
    let runs = value.get("runs").map_or(&[][..], Value::items);
    let column = |key: &str| -> Vec<u64> {
        runs.iter()
            .filter_map(|r| r.get(key).and_then(Value::u64))
            .collect()
    };
    let (stack, heap) = (column("stack_peak_bytes"), column("heap_peak_bytes"));
    if runs.is_empty() {
        if value.get("derived").is_some_and(|d| !d.is_null()) {
            f.error("/derived", "nothing follows from no run", "null", "values");
        }
        return;
    }
    let most = |all: &[u64]| all.iter().max().copied().unwrap_or(0);
    let median = |all: &[u64]| middle(&ordered(all.iter().map(|&b| b as f64).collect()));
    let load = value
        .at(&["static", "load_bytes"])
        .and_then(Value::u64)
        .unwrap_or(0);
    let total = load + most(&stack) + most(&heap);
    for (path, expected) in [
        (["worst", "stack_peak_bytes"], Some(most(&stack) as f64)),
        (["worst", "heap_peak_bytes"], Some(most(&heap) as f64)),
        (["median", "stack_peak_bytes"], median(&stack)),
        (["median", "heap_peak_bytes"], median(&heap)),
        (["guide_total_bytes", ""], Some(total as f64)),
    ] {
        let keys: Vec<&str> = ["derived"]
            .into_iter()
            .chain(path)
            .filter(|k| !k.is_empty())
            .collect();
        let found = value.at(&keys).and_then(Value::f64);
        if found != expected {
            let pointer = format!("/{}", keys.join("/"));
            f.error(
                pointer,
                "derived values follow from the runs",
                format!("{expected:?}"),
                format!("{found:?}"),
            );
        }
    }
    let rss = |key: &str| value.at(&["process", key]).and_then(Value::u64);
    if let (Some(baseline), Some(peak)) = (rss("baseline_rss_bytes"), rss("peak_rss_bytes")) {
        if peak < baseline {
            f.error(
                "/process/peak_rss_bytes",
                "a peak is not below the baseline of its process",
                baseline,
                peak,
            );
        }
    }
}

/// Calls and ticks of a function over all its shapes.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    calls: u64,
    ticks: u128,
}

/// Helper functions of the programme, by their symbols.
const HELPERS: [&str; 4] = ["pseudohash", "pseudoXOF", "sm3hash", "get_random_number"];

/// Checks a profile.
pub fn profile(value: &Value, head: &Head, facts: &Facts, f: &mut Findings) {
    library(value, facts, head, "profile", f);
    let libraries = facts.builds.get(&head.identity).map(|b| &b.libraries);
    let ready_made = libraries.is_some_and(|l| l.contains_key("interpose"));
    if (head.status == "skipped") != ready_made {
        f.error(
            "/status",
            "only the profile of a library that comes already built is skipped",
            ready_made,
            &head.status,
        );
    }
    let number = |path: &[&str]| value.at(path).and_then(Value::u64);
    let imported = facts.class == "imported";
    let wrapped = value.get("wrapped").map_or(&[][..], Value::items);
    let mut sums = BTreeMap::<String, Sum>::new();
    for name in wrapped.iter().filter_map(Value::str) {
        sums.entry(name.into_owned()).or_default();
    }
    for (index, row) in value
        .get("calls")
        .map_or(&[][..], Value::items)
        .iter()
        .enumerate()
    {
        let name = text(row, "function").unwrap_or_default();
        let Some(sum) = sums.get_mut(&name) else {
            f.error(
                format!("/calls/{index}/function"),
                "what was called is among what was wrapped",
                "",
                name,
            );
            continue;
        };
        sum.calls += row.get("calls").and_then(Value::u64).unwrap_or(0);
        sum.ticks += u128::from(row.get("ticks").and_then(Value::u64).unwrap_or(0));
    }
    if !imported && head.status == "complete" {
        runs(value, &sums, f);
    }
    let overflow = number(&["overflow_calls"]).unwrap_or(0);
    if !imported && head.status == "complete" {
        keys(value, f);
    }
    let derived = value.get("derived").unwrap_or(&Value::Null);
    if derived.is_null() {
        if head.status == "complete" {
            f.error(
                "/derived",
                "a complete profile has derived values",
                "values",
                "null",
            );
        }
        return;
    }
    if overflow > 0 {
        f.error(
            "/derived",
            "a profile whose table overflowed is invalid",
            "null",
            "values",
        );
    }
    let total = number(&["total", "ticks"]).unwrap_or(0);
    let all_ticks: u128 = sums.values().map(|s| s.ticks).sum();
    if all_ticks > u128::from(total) {
        f.error(
            "/total/ticks",
            "no more ticks in functions than in all",
            all_ticks,
            total,
        );
    }
    let operations = number(&["total", "operations"]).unwrap_or(0).max(1) as f64;
    let calls: BTreeMap<&str, f64> = sums
        .iter()
        .filter(|(_, sum)| sum.calls > 0)
        .map(|(name, sum)| (name.as_str(), sum.calls as f64 / operations))
        .collect();
    same_map(
        derived.get("calls_per_operation"),
        &calls,
        "/derived/calls_per_operation",
        f,
    );
    let costs = (
        number(&["wrapper_inside_milliticks"]).unwrap_or(0),
        number(&["wrapper_around_milliticks"]).unwrap_or(0),
    );
    shares(derived, &sums, total, costs, imported, f);
    let expected = match imported {
        true => imported_verdict(&sums),
        false => verdict(
            &sums,
            facts
                .builds
                .get(&head.identity)
                .map_or(&[][..], |b| &b.wrapped),
        ),
    };
    let found = text(derived, "verdict").unwrap_or_default();
    if found != expected {
        f.error(
            "/derived/verdict",
            "the verdict follows from what was called",
            expected,
            found,
        );
    }
}

/// Each key's operation has its run, and together they are the calls.
fn runs(value: &Value, sums: &BTreeMap<String, Sum>, f: &mut Findings) {
    let runs = value.get("runs").map_or(&[][..], Value::items);
    let operations = value.at(&["total", "operations"]).and_then(Value::u64);
    if operations != Some(runs.len() as u64) {
        f.error(
            "/runs",
            "a profile has a run for each operation",
            format!("{operations:?}"),
            runs.len(),
        );
        return;
    }
    let mut calls = BTreeMap::<String, u64>::new();
    for (name, count) in runs
        .iter()
        .filter_map(|run| run.get("calls"))
        .flat_map(Value::members)
    {
        *calls.entry(name.decode().into_owned()).or_default() += count.u64().unwrap_or(0);
    }
    let called = sums.iter().filter(|(_, sum)| sum.calls > 0);
    let expected: BTreeMap<String, u64> = called
        .map(|(name, sum)| (name.clone(), sum.calls))
        .collect();
    if calls != expected {
        f.error(
            "/runs",
            "the runs add up to the calls",
            format!("{expected:?}"),
            format!("{calls:?}"),
        );
    }
    let rejected = |of: &Value| of.get("rejected_draws").and_then(Value::u64);
    let sum: u64 = runs.iter().filter_map(rejected).sum();
    if value
        .get("derived")
        .and_then(rejected)
        .is_some_and(|all| all != sum)
    {
        f.error(
            "/derived/rejected_draws",
            "the rejected draws of the runs add up",
            sum,
            format!("{:?}", value.get("derived").and_then(rejected)),
        );
    }
}

/// `(ticks - calls * inside) / (total - all calls * around)`, costs in thousandths of a tick. An import's
/// `hash_share` is its source's, and checked there.
fn shares(
    derived: &Value,
    sums: &BTreeMap<String, Sum>,
    total: u64,
    (inside, around): (u64, u64),
    imported: bool,
    f: &mut Findings,
) {
    let Some(share) = derived.get("share").filter(|s| !s.is_null()) else {
        return; // under emulation ticks mean nothing
    };
    let milli = |calls: u64, each: u64| calls as f64 * each as f64 / 1000.0;
    let calls: u64 = sums.values().map(|s| s.calls).sum();
    let whole = total as f64 - milli(calls, around);
    let expected: BTreeMap<&str, f64> = sums
        .iter()
        .map(|(name, sum)| {
            let own = sum.ticks as f64 - milli(sum.calls, inside);
            (name.as_str(), (own.max(0.0) / whole).min(1.0))
        })
        .collect();
    same_map(Some(share), &expected, "/derived/share", f);
    let drng = expected.get("drng").copied().unwrap_or(0.0);
    let hash = sum(expected
        .iter()
        .filter(|(name, _)| **name != "drng")
        .map(|(_, share)| *share));
    for (key, expected) in [("drng_share", drng), ("hash_share", hash)] {
        let found = derived.get(key).and_then(Value::f64);
        if found != Some(expected) && !(imported && key == "hash_share") {
            f.error(
                format!("/derived/{key}"),
                "shares add up",
                expected,
                format!("{found:?}"),
            );
        }
    }
}

fn same_map(
    found: Option<&Value>,
    expected: &BTreeMap<&str, f64>,
    pointer: &str,
    f: &mut Findings,
) {
    let found: BTreeMap<String, f64> = found
        .map_or(&[][..], Value::members)
        .iter()
        .filter_map(|(key, value)| Some((key.decode().into_owned(), value.f64()?)))
        .collect();
    let same = found.len() == expected.len()
        && found
            .iter()
            .all(|(key, value)| expected.get(key.as_str()) == Some(value));
    if !same {
        f.error(
            pointer,
            "derived values follow from the calls",
            format!("{expected:?}"),
            format!("{found:?}"),
        );
    }
}

/// Checks the passes of each key against the totals: which of them counts, and what they add up to.
fn keys(value: &Value, f: &mut Findings) {
    let number = |path: &[&str]| value.at(path).and_then(Value::u64);
    let all = value.get("passes").map_or(&[][..], Value::items);
    let operations = number(&["total", "operations"]);
    for (pointer, found) in [
        ("/total/operations", operations),
        ("/keys", number(&["keys"])),
    ] {
        if found != Some(all.len() as u64) {
            f.error(
                pointer,
                "one operation of each key counts",
                all.len(),
                format!("{found:?}"),
            );
        }
    }
    let mut total = 0u128;
    for (index, key) in all.iter().enumerate() {
        let column = |name: &str| -> Vec<u64> {
            let items = key.get(name).map_or(&[][..], Value::items);
            items.iter().filter_map(Value::u64).collect()
        };
        let (ticks, others, disturbed) =
            (column("ticks"), column("other_calls"), column("disturbed"));
        let best = (0..ticks.len() as u64)
            .filter(|pass| !others.contains(pass))
            .min_by_key(|pass| (disturbed.contains(pass), ticks[*pass as usize]));
        let counted = key.get("counted").and_then(Value::u64);
        if counted != best {
            f.error(
                format!("/passes/{index}/counted"),
                "the undisturbed pass with the fewest ticks counts",
                format!("{best:?}"),
                format!("{counted:?}"),
            );
        }
        // More than one switch in 100 ms, or more than 1% of the time and 10 ms off the CPU.
        let figure = |name: &str| key.get(name).and_then(Value::u64).unwrap_or(0);
        let (wall, switches) = (figure("wall_ns"), figure("involuntary_switches"));
        let off = wall.saturating_sub(figure("cpu_ns"));
        let was = switches > wall / 100_000_000 || off > (wall / 100).max(10_000_000);
        let marked = best.is_some_and(|pass| disturbed.contains(&pass));
        if was != marked {
            f.error(
                format!("/passes/{index}/disturbed"),
                "whether the pass that counts was disturbed follows from its figures",
                was,
                marked,
            );
        }
        total += u128::from(best.map_or(0, |pass| ticks[pass as usize]));
    }
    let found = number(&["total", "ticks"]).unwrap_or(0);
    if total != u128::from(found) {
        f.error(
            "/total/ticks",
            "the ticks are those of the passes that count",
            total,
            found,
        );
    }
}

fn verdict(sums: &BTreeMap<String, Sum>, wrapped: &[(String, String)]) -> &'static str {
    let helper = |name: &str| {
        let mut symbols = wrapped
            .iter()
            .filter(|(_, reported)| reported == name)
            .peekable();
        symbols.peek().is_some() && symbols.all(|(symbol, _)| HELPERS.contains(&symbol.as_str()))
    };
    let called: Vec<bool> = sums
        .iter()
        .filter(|(_, s)| s.calls > 0)
        .map(|(name, _)| helper(name))
        .collect();
    match (
        wrapped.is_empty(),
        called.iter().any(|h| *h),
        called.iter().all(|h| *h),
    ) {
        (true, ..) => "none wrapped",
        (_, true, true) => "ICCS-only",
        (_, true, false) => "mixed",
        (_, false, _) => "own primitives",
    }
}

/// The public campaign reports the helpers under their own names, the generator as `drng`.
fn imported_verdict(sums: &BTreeMap<String, Sum>) -> &'static str {
    let helper = |name: &str| name == "drng" || HELPERS.contains(&name);
    let called: Vec<bool> = sums.keys().map(|name| helper(name)).collect();
    match (
        called.is_empty(),
        called.iter().any(|h| *h),
        called.iter().all(|h| *h),
    ) {
        (true, ..) => "none wrapped",
        (_, true, true) => "ICCS-only",
        (_, false, _) => "own primitives",
        _ => "mixed",
    }
}
