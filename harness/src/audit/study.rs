//! The message-size study: what follows from the attempts of a point beyond a timing record, and the
//! fitted models, computed again.

use super::facts::{text, Facts, Row, Study};
use super::finding::{Finding, Findings};
use super::head::Head;
use super::number::{close, sum, t_975};
use crate::json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Seconds that the plan of a study reckons for a byte.
pub const PLANNED_S_PER_BYTE: f64 = 4e-9;

/// Modes that sign the file itself, so that their signatures agree.
const SAME: [&str; 3] = ["buffer", "mmap", "stream"];

/// A point, as far as others are held against it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// How the message reached the library.
    pub mode: String,
    /// Bytes of the message.
    pub size: u64,
    /// Digest of the message.
    pub file: String,
    /// Mean over the trial means, seconds.
    pub mean_s: Option<f64>,
    /// Share of the hashing within a call.
    pub hash_share: Option<f64>,
    /// First signature of each trial that counts.
    pub signatures: Vec<Option<String>>,
}

/// What a counted attempt gives.
#[derive(Debug, Clone, Default)]
struct Counted {
    calls: u64,
    wall: u64,
    user: Option<u64>,
    system: Option<u64>,
    baseline: Option<u64>,
    peak: Option<u64>,
    read: Option<u64>,
    hash: Option<u64>,
    signature: Option<String>,
}

/// Checks a point; `timing` has checked what it has in common with a timing record.
pub fn check(value: &Value, head: &Head, facts: &Facts, f: &mut Findings) -> Point {
    let mode = text(value, "mode").unwrap_or_default();
    let size = value.get("size_bytes").and_then(Value::u64).unwrap_or(0);
    let keygen = head.operation.as_deref() == Some("keygen");
    asked_for(value, &mode, size, keygen, facts, f);
    called(value, &mode, head, facts, f);
    let online = value.get("online_cpus").and_then(Value::u64).unwrap_or(0);
    let seen = head.sessions.iter().filter_map(|k| facts.sessions.get(k));
    if !seen.clone().any(|s| s.online == online || s.online == 0) && !head.sessions.is_empty() {
        let rule = "the CPUs online are those of a session of the record";
        f.error(
            "/online_cpus",
            rule,
            format!("{:?}", seen.map(|s| s.online).collect::<Vec<_>>()),
            online,
        );
    }
    let trials = attempts(value, &mode, size, keygen, f);
    let first = trials.first().and_then(|c| c.as_ref()?.signature.clone());
    if text(value, "signature_sha256") != first {
        f.error(
            "/signature_sha256",
            "the signature is that of trial 0",
            format!("{first:?}"),
            format!("{:?}", text(value, "signature_sha256")),
        );
    }
    let counted: Vec<&Counted> = trials.iter().flatten().collect();
    let derived = match head.status.as_str() {
        "failed" | "skipped" => None,
        _ => derive(&counted, &mode, size, keygen, online),
    };
    let study = value.get("study").unwrap_or(&Value::Null);
    compare(study, derived.as_deref(), f);
    let means: Vec<f64> = counted
        .iter()
        .map(|c| c.wall as f64 / 1e9 / c.calls as f64)
        .collect();
    let usable = head.status == "complete" && !means.is_empty();
    Point {
        mean_s: usable.then(|| sum(means.iter().copied()) / means.len() as f64),
        hash_share: usable.then(|| share(&counted)).flatten(),
        signatures: trials
            .into_iter()
            .map(|counted| counted?.signature)
            .collect(),
        file: text(value, "file_sha256").unwrap_or_default(),
        mode,
        size,
    }
}

/// The point is one of the study's.
fn asked_for(value: &Value, mode: &str, size: u64, keygen: bool, facts: &Facts, f: &mut Findings) {
    let Some(study) = &facts.study_settings else {
        f.error(
            "",
            "points of a study are in a study",
            "a study",
            "a campaign",
        );
        return;
    };
    if !study.sizes.contains(&size) {
        f.error(
            "/size_bytes",
            "the size is one of the study's",
            format!("{:?}", study.sizes),
            size,
        );
    }
    let modes = study.modes_of(keygen);
    if !modes.iter().any(|m| m == mode) {
        f.error(
            "/mode",
            "the mode is one of the study's",
            modes.join(" "),
            mode,
        );
    }
    let chunk = (!matches!(mode, "buffer" | "mmap")).then_some(study.chunk);
    let found = value.get("chunk_bytes").and_then(Value::u64);
    if found != chunk {
        f.error(
            "/chunk_bytes",
            "chunks are the study's",
            format!("{chunk:?}"),
            format!("{found:?}"),
        );
    }
    let file = text(value, "file_sha256").unwrap_or_default();
    if study
        .file
        .as_ref()
        .is_some_and(|(sha256, _)| *sha256 != file)
    {
        f.error(
            "/file_sha256",
            "the message is the file of the study",
            format!("{:?}", study.file),
            &file,
        );
    }
    if study.file.as_ref().is_some_and(|(_, bytes)| *bytes != size) {
        f.error(
            "/size_bytes",
            "the message is the file of the study",
            format!("{:?}", study.file),
            size,
        );
    }
    let bytes = value.at(&["inputs", "message_bytes"]).and_then(Value::u64);
    if bytes.is_some_and(|bytes| bytes != size) {
        f.error(
            "/inputs/message_bytes",
            "the message has the size of the point",
            size,
            format!("{bytes:?}"),
        );
    }
}

/// The library that was called is the one of `build.json`.
fn called(value: &Value, mode: &str, head: &Head, facts: &Facts, f: &mut Findings) {
    let kind = if mode == "stream" { "stream" } else { "timed" };
    let Some(library) = value.get("library").filter(|l| !l.is_null()) else {
        if head.status == "complete" {
            f.error(
                "/library",
                "what was measured names its library",
                kind,
                "null",
            );
        }
        return;
    };
    let built = facts
        .builds
        .get(&head.identity)
        .and_then(|b| b.libraries.get(kind))
        .cloned();
    let found = (
        text(library, "kind").unwrap_or_default(),
        text(library, "sha256"),
    );
    if found != (kind.to_owned(), built.clone()) {
        f.error(
            "/library",
            "the library is the one of build.json",
            format!("{kind} {built:?}"),
            format!("{found:?}"),
        );
    }
}

/// What the counted attempt of each trial gives; what each attempt read.
fn attempts(
    value: &Value,
    mode: &str,
    size: u64,
    keygen: bool,
    f: &mut Findings,
) -> Vec<Option<Counted>> {
    let trials = value.get("trials").map_or(&[][..], Value::items);
    let io = value.get("io").map_or(&[][..], Value::items);
    if io.len() != trials.len() {
        f.error("/io", "each trial has what it read", trials.len(), io.len());
    }
    let mut all = Vec::new();
    for (index, (trial, io)) in trials.iter().zip(io).enumerate() {
        let attempts = trial.get("attempts").map_or(&[][..], Value::items);
        let io = io.items();
        if io.len() != attempts.len() {
            f.error(
                format!("/io/{index}"),
                "each attempt has what it read",
                attempts.len(),
                io.len(),
            );
        }
        for (number, (attempt, io)) in attempts.iter().zip(io).enumerate() {
            let place = format!("/io/{index}/{number}");
            read(attempt, io, mode, size, keygen, &place, f);
        }
        let counted = trial
            .get("counted")
            .and_then(Value::u64)
            .map(|c| c as usize);
        let both = counted.and_then(|c| Some((attempts.get(c)?, io.get(c)?)));
        all.push(
            both.map(|(attempt, io)| of(attempt, io))
                .filter(|c| c.calls > 0),
        );
    }
    all
}

/// An attempt that ended well has read what its mode reads, in no more time than it took.
fn read(
    attempt: &Value,
    io: &Value,
    mode: &str,
    size: u64,
    keygen: bool,
    place: &str,
    f: &mut Findings,
) {
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::u64);
    let ok = text(attempt, "exit").as_deref() == Some("ok");
    let calls = number(attempt, "calls").unwrap_or(0);
    let bytes = match mode {
        _ if !ok || keygen => 0,
        "buffer" => size,
        "mmap" => 0,
        _ => calls.saturating_mul(size),
    };
    if number(io, "bytes_read") != Some(bytes) {
        f.error(
            format!("{place}/bytes_read"),
            "an attempt reads what its mode reads",
            bytes,
            format!("{:?}", number(io, "bytes_read")),
        );
    }
    let in_calls = ok && !keygen && !matches!(mode, "buffer" | "mmap");
    if number(io, "hash_ns").is_some() != in_calls {
        f.error(
            format!("{place}/hash_ns"),
            "modes that read in chunks tell reading and hashing apart",
            in_calls,
            format!("{:?}", number(io, "hash_ns")),
        );
    }
    let parts = number(io, "read_ns").unwrap_or(0) + number(io, "hash_ns").unwrap_or(0);
    let whole = number(attempt, "nanoseconds").unwrap_or(0);
    if in_calls && parts > whole {
        f.error(
            format!("{place}/hash_ns"),
            "the parts of a call are no longer than it",
            whole,
            parts,
        );
    }
}

fn of(attempt: &Value, io: &Value) -> Counted {
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::u64);
    Counted {
        calls: number(attempt, "calls").unwrap_or(0),
        wall: number(attempt, "nanoseconds").unwrap_or(0),
        user: number(attempt, "user_ns"),
        system: number(attempt, "system_ns"),
        baseline: number(attempt, "baseline_rss_bytes"),
        peak: number(attempt, "peak_rss_bytes"),
        read: number(io, "read_ns"),
        hash: number(io, "hash_ns"),
        signature: text(io, "signature_sha256"),
    }
}

/// Sum over the counted attempts; `None` where one of them lacks it.
fn total(counted: &[&Counted], of: fn(&Counted) -> Option<u64>) -> Option<f64> {
    let all = counted.iter().map(|c| of(c));
    let sum = all
        .collect::<Option<Vec<u64>>>()?
        .into_iter()
        .map(u128::from)
        .sum::<u128>();
    Some(sum as f64)
}

fn share(counted: &[&Counted]) -> Option<f64> {
    let wall = total(counted, |c| Some(c.wall))?;
    Some(total(counted, |c| c.hash)? / wall)
}

type Derived = Vec<(&'static str, Option<f64>)>;

fn derive(
    counted: &[&Counted],
    mode: &str,
    size: u64,
    keygen: bool,
    online: u64,
) -> Option<Derived> {
    if counted.is_empty() || counted.iter().any(|c| c.wall == 0) {
        return None;
    }
    let calls = total(counted, |c| Some(c.calls))?;
    let wall = total(counted, |c| Some(c.wall))?;
    let seconds = sum(counted.iter().map(|c| c.wall as f64 / 1e9));
    let (user, system) = (total(counted, |c| c.user)?, total(counted, |c| c.system)?);
    let percent = 100.0 * (user + system) / wall;
    let readings = if mode == "buffer" {
        counted.len() as f64
    } else {
        calls
    };
    let most = |of: fn(&Counted) -> Option<u64>| {
        counted.iter().filter_map(|c| of(c)).max().map(|n| n as f64)
    };
    Some(vec![
        (
            "throughput_mb_per_s",
            (!keygen).then(|| size as f64 / (seconds / calls) / 1e6),
        ),
        ("cpu_percent_one", Some(percent)),
        ("cpu_percent_all", Some(percent / online as f64)),
        ("user_s", Some(user / 1e9 / calls)),
        ("system_s", Some(system / 1e9 / calls)),
        ("baseline_rss_bytes", most(|c| c.baseline)),
        ("peak_rss_bytes", most(|c| c.peak)),
        (
            "read_s",
            total(counted, |c| c.read).map(|ns| ns / 1e9 / readings),
        ),
        (
            "hash_s",
            total(counted, |c| c.hash).map(|ns| ns / 1e9 / calls),
        ),
        ("hash_share", share(counted)),
    ])
}

fn compare(found: &Value, expected: Option<&[(&'static str, Option<f64>)]>, f: &mut Findings) {
    let Some(expected) = expected else {
        if !found.is_null() {
            f.error(
                "/study",
                "nothing follows from no counted attempt",
                "null",
                "values",
            );
        }
        return;
    };
    for (key, expected) in expected {
        let value = found.get(key).and_then(Value::f64);
        if value != *expected {
            let rule = "values of a study follow from the counted attempts";
            f.error(
                format!("/study/{key}"),
                rule,
                format!("{expected:?}"),
                format!("{value:?}"),
            );
        }
    }
}

/// Points by identity and operation.
pub type Points = BTreeMap<(String, String), Vec<Point>>;

/// A file of fits, as far as others are held against it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fit {
    /// Modes in the order of the file, with their figures by name.
    pub modes: Vec<(String, BTreeMap<String, Option<f64>>)>,
    /// Signatures compared and identical.
    pub signatures: Option<(u64, u64)>,
}

/// Reads the figures of a fit.
pub fn fit(value: &Value) -> Fit {
    let modes = value.get("modes").map_or(&[][..], Value::items).iter();
    Fit {
        modes: modes
            .map(|mode| (text(mode, "mode").unwrap_or_default(), figures(mode)))
            .collect(),
        signatures: value.get("signatures").and_then(|both| {
            let number = |key: &str| both.get(key).and_then(Value::u64);
            Some((number("compared")?, number("identical")?))
        }),
    }
}

const VALUES: [&str; 4] = [
    "fixed_s",
    "s_per_byte",
    "throughput_mb_per_s",
    "growing_above_90_bytes",
];

fn figures(mode: &Value) -> BTreeMap<String, Option<f64>> {
    let mut figures = BTreeMap::new();
    for point in mode.get("points").map_or(&[][..], Value::items) {
        let size = point.get("size_bytes").and_then(Value::u64).unwrap_or(0);
        figures.insert(
            format!("point {size}"),
            point.get("mean_s").and_then(Value::f64),
        );
    }
    let above = mode.get("hash_above_90_bytes").and_then(Value::u64);
    figures.insert("hash_above_90_bytes".into(), above.map(|n| n as f64));
    let Some(model) = mode.get("model").filter(|m| !m.is_null()) else {
        return figures;
    };
    for key in ["worst_relative_residual", "t"] {
        figures.insert(key.into(), model.get(key).and_then(Value::f64));
    }
    for key in VALUES {
        let value = model.get(key).filter(|v| !v.is_null());
        for end in ["value", "low", "high"] {
            let number = value.and_then(|v| v.get(end)).and_then(Value::f64);
            figures.insert(format!("{key}/{end}"), number);
        }
    }
    figures
}

/// Files of fits against the points that they were made of.
pub fn fits(
    fits: &BTreeMap<(String, String), (String, Fit)>,
    points: &Points,
    facts: &Facts,
    findings: &mut Vec<Finding>,
) {
    let Some(study) = &facts.study_settings else {
        return;
    };
    for (key, of_operation) in points {
        let Some((path, fit)) = fits.get(key) else {
            let mut f = Findings::of(&format!("study of {}/{}", key.0, key.1));
            f.error(
                "",
                "an operation that was measured has its fit",
                "a file",
                "none",
            );
            findings.append(&mut f.list);
            continue;
        };
        let mut f = Findings::of(path);
        check_fit(study, key.1 == "keygen", of_operation, fit, &mut f);
        findings.append(&mut f.list);
    }
}

fn check_fit(study: &Study, keygen: bool, points: &[Point], fit: &Fit, f: &mut Findings) {
    let modes: Vec<&String> = fit.modes.iter().map(|(mode, _)| mode).collect();
    let expected = study.modes_of(keygen);
    if !modes.iter().copied().eq(expected.iter()) {
        f.error(
            "/modes",
            "one model for each mode of the study",
            expected.join(" "),
            format!("{modes:?}"),
        );
    }
    for (index, (mode, found)) in fit.modes.iter().enumerate() {
        let expected = model(points.iter().filter(|p| p.mode == *mode));
        let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
        for name in names {
            let (expected, found) = (expected.get(name), found.get(name));
            let agrees = match (expected, found) {
                (Some(Some(a)), Some(Some(b))) => close(*a, *b) || (a - b).abs() < 1e-18,
                (a, b) => a == b,
            };
            if !agrees {
                let rule = "a model is the weighted least squares of its points";
                let place = format!("/modes/{index}/{name}");
                f.error(place, rule, format!("{expected:?}"), format!("{found:?}"));
            }
        }
    }
    let expected = (!keygen).then(|| same_signatures(points));
    if fit.signatures != expected {
        f.error(
            "/signatures",
            "signatures are compared by size and trial",
            format!("{expected:?}"),
            format!("{:?}", fit.signatures),
        );
    }
    if expected.is_some_and(|(compared, identical)| compared != identical) {
        f.error(
            "/signatures",
            "buffer, mmap and stream give the same signatures",
            "all identical",
            format!("{expected:?}"),
        );
    }
}

/// Figures of a model from its points: straight from the normal equations, about the weighted means.
fn model<'p>(points: impl Iterator<Item = &'p Point>) -> BTreeMap<String, Option<f64>> {
    let mut points: Vec<&Point> = points.filter(|p| p.mean_s.is_some()).collect();
    points.sort_by_key(|point| point.size);
    let mut figures = BTreeMap::new();
    let above = points
        .iter()
        .rev()
        .take_while(|p| p.hash_share.is_some_and(|share| share > 0.9))
        .last();
    figures.insert(
        "hash_above_90_bytes".to_owned(),
        above.map(|p| p.size as f64),
    );
    let all: Vec<(f64, f64)> = points
        .iter()
        .map(|p| (p.size as f64, p.mean_s.unwrap_or(f64::NAN)))
        .collect();
    for (point, (_, mean)) in points.iter().zip(&all) {
        figures.insert(format!("point {}", point.size), Some(*mean));
    }
    if all.len() < 3 {
        return figures;
    }
    let over = |of: &dyn Fn(f64, f64) -> f64| sum(all.iter().map(|&(x, y)| of(x, y) / (y * y)));
    let weight = over(&|_, _| 1.0);
    let (x_mean, y_mean) = (over(&|x, _| x) / weight, over(&|_, y| y) / weight);
    let x_spread = over(&|x, _| (x - x_mean).powi(2));
    let slope = over(&|x, y| (x - x_mean) * (y - y_mean)) / x_spread;
    let fixed = y_mean - slope * x_mean;
    let freedom = all.len() as u32 - 2;
    let variance = over(&|x, y| (y - fixed - slope * x).powi(2)) / f64::from(freedom);
    let t = t_975(freedom);
    let fixed_half = t * (variance * (1.0 / weight + x_mean * x_mean / x_spread)).sqrt();
    let slope_half = t * (variance / x_spread).sqrt();
    let (least, most) = (slope - slope_half, slope + slope_half);
    let grows = slope > 0.0;
    let both = grows && fixed > 0.0;
    let size = |fixed: f64, slope: f64| 9.0 * fixed / slope;
    let rows = [
        (
            "fixed_s",
            Some(fixed),
            Some(fixed - fixed_half),
            Some(fixed + fixed_half),
        ),
        ("s_per_byte", Some(slope), Some(least), Some(most)),
        (
            "throughput_mb_per_s",
            grows.then_some(1.0 / slope / 1e6),
            grows.then_some(1.0 / most / 1e6),
            (grows && least > 0.0).then_some(1.0 / least / 1e6),
        ),
        (
            "growing_above_90_bytes",
            both.then(|| size(fixed, slope)),
            both.then(|| size(fixed - fixed_half, most).max(0.0)),
            (both && least > 0.0).then(|| size(fixed + fixed_half, least)),
        ),
    ];
    for (name, value, low, high) in rows {
        for (end, number) in [("value", value), ("low", low), ("high", high)] {
            figures.insert(format!("{name}/{end}"), number);
        }
    }
    let residual = all
        .iter()
        .map(|(x, y)| (y / (fixed + slope * x) - 1.0).abs());
    figures.insert(
        "worst_relative_residual".to_owned(),
        Some(residual.fold(0.0, f64::max)),
    );
    figures.insert("t".to_owned(), Some(t));
    figures
}

fn same_signatures(points: &[Point]) -> (u64, u64) {
    let mut by_slot: BTreeMap<(u64, usize), Vec<&String>> = BTreeMap::new();
    for point in points.iter().filter(|p| SAME.contains(&p.mode.as_str())) {
        for (trial, signature) in point.signatures.iter().enumerate() {
            by_slot
                .entry((point.size, trial))
                .or_default()
                .extend(signature);
        }
    }
    let several: Vec<_> = by_slot.values().filter(|all| all.len() > 1).collect();
    let identical = several
        .iter()
        .filter(|all| all.iter().all(|s| *s == all[0]));
    (several.len() as u64, identical.count() as u64)
}

/// A message of one size is the same for all points, and every row that is complete has all its points.
pub fn whole(
    points: &Points,
    facts: &Facts,
    wanted: &dyn Fn(&str) -> bool,
    findings: &mut Vec<Finding>,
) {
    let Some(study) = &facts.study_settings else {
        return;
    };
    let mut files: BTreeMap<u64, BTreeSet<&String>> = BTreeMap::new();
    for point in points.values().flatten() {
        files.entry(point.size).or_default().insert(&point.file);
    }
    let mut f = Findings::of("campaign.json");
    for (size, files) in files.iter().filter(|(_, files)| files.len() > 1) {
        f.error(
            "/study/sizes",
            format!("all messages of {size} bytes are the same"),
            1,
            files.len(),
        );
    }
    let complete = |row: &Row| row.status == "complete";
    for (identity, row) in facts.rows.iter().filter(|(_, row)| complete(row)) {
        let status = &row.status;
        for operation in ["keygen", "sign", "verify"] {
            if !wanted(&format!("{identity}/{operation}")) {
                continue;
            }
            let none = Vec::new();
            let there = points
                .get(&(identity.clone(), operation.to_owned()))
                .unwrap_or(&none);
            for mode in study.modes_of(operation == "keygen") {
                let lacking = study
                    .sizes
                    .iter()
                    .find(|&&size| !there.iter().any(|p| p.mode == mode && p.size == size));
                if let Some(size) = lacking {
                    f.error(
                        format!("/rows ({identity})"),
                        format!("a {status} row has all its points"),
                        format!("{operation} in mode {mode} at {size} bytes"),
                        "none",
                    );
                }
            }
        }
    }
    findings.append(&mut f.list);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{FitPoint, FitValue};

    fn point(mode: &str, size: u64, mean_s: f64, signature: &str) -> Point {
        Point {
            mode: mode.into(),
            size,
            mean_s: Some(mean_s),
            signatures: vec![Some(signature.into()), None],
            ..Point::default()
        }
    }

    #[test]
    fn the_models_are_those_of_the_measuring_side() {
        let sizes = [1000, 64_000, 1_000_000, 10_000_000, 100_000_000];
        for errors in [
            [0.0; 5],
            [0.03, -0.02, 0.01, -0.01, 0.02],
            [0.5, -0.4, 0.3, -0.2, 0.1],
        ] {
            for (fixed, slope) in [(4e-4, 3.2e-9), (5e-5, 0.0), (1e-3, 1e-12)] {
                let mean = |size: u64, error: f64| (fixed + slope * size as f64) * (1.0 + error);
                let points: Vec<Point> = sizes
                    .iter()
                    .zip(errors)
                    .map(|(&size, error)| point("buffer", size, mean(size, error), "s"))
                    .collect();
                let own = model(points.iter());
                let theirs: Vec<FitPoint> = points
                    .iter()
                    .map(|p| FitPoint {
                        size_bytes: p.size,
                        mean_s: p.mean_s.unwrap(),
                    })
                    .collect();
                let theirs = crate::stats::fit(&theirs).unwrap();
                let same = |name: &str, value: Option<FitValue>| {
                    let of = |pick: fn(FitValue) -> Option<f64>| value.and_then(pick);
                    let ends = [
                        ("value", of(|v| Some(v.value))),
                        ("low", of(|v| v.low)),
                        ("high", of(|v| v.high)),
                    ];
                    for (end, theirs) in ends {
                        let own = own[&format!("{name}/{end}")];
                        let agree = match (own, theirs) {
                            (Some(a), Some(b)) => close(a, b) || (a - b).abs() < 1e-18,
                            (a, b) => a == b,
                        };
                        assert!(agree, "{name}/{end}: {own:?} {theirs:?}");
                    }
                };
                same("fixed_s", Some(theirs.fixed_s));
                same("s_per_byte", Some(theirs.s_per_byte));
                same("throughput_mb_per_s", theirs.throughput_mb_per_s);
                same("growing_above_90_bytes", theirs.growing_above_90_bytes);
            }
        }
    }

    #[test]
    fn signatures_are_compared_where_there_are_several() {
        let points = [
            point("buffer", 1, 1.0, "a"),
            point("mmap", 1, 1.0, "a"),
            point("prehash-sha3", 1, 1.0, "z"),
            point("buffer", 2, 1.0, "b"),
            point("stream", 2, 1.0, "c"),
            point("stream", 3, 1.0, "d"),
        ];
        assert_eq!(same_signatures(&points), (2, 1));
    }
}
