//! KAT evidence: the result against its digests and flips, what its log says, the manifest of the
//! project, and what the other libraries of an identity found.
//!
//! Logs of imports are their source's, in a format of its own; `schema2.rs` reads them.

use super::cross::{Evidence, OPERATIONS};
use super::facts::{text, Facts};
use super::finding::{Finding, Findings};
use super::head::Head;
use super::other::Kat;
use super::text::is_digest;
use crate::json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Published digests of each label: `(stream, digest)` in order.
pub type Published = BTreeMap<String, Vec<(String, String)>>;

/// One stream of a KAT.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stream {
    mode: String,
    expected: Option<String>,
    found: Option<String>,
    records: Option<u64>,
}

impl Stream {
    fn of(value: &Value) -> Self {
        Stream {
            mode: text(value, "mode").unwrap_or_default(),
            expected: text(value, "expected"),
            found: text(value, "found"),
            records: value.get("records").and_then(Value::u64),
        }
    }

    /// Records that it covers, of a flow that has so many.
    fn covers(&self, all: u64) -> Option<u64> {
        match self.mode.split_once(':') {
            Some((_, first)) => first.parse().ok(),
            None if self.mode == "nistkat" => Some(1),
            None => Some(all),
        }
    }
}

/// The streams of KAT evidence.
pub fn streams(value: &Value) -> Vec<Stream> {
    let digests = value.get("digests").map_or(&[][..], Value::items);
    digests.iter().map(Stream::of).collect()
}

/// Records of a flow, the stream of its first one, its modes, and its word in a log.
fn flow_of(name: &str) -> Option<(u64, &'static str, &'static [&'static str], &'static str)> {
    match name {
        "iccs" => Some((10, "strict:1", &["strict", "nolen"], "Iccs")),
        "nist" => Some((100, "nistkat", &["nistkat", "rsp", "all"], "Nist")),
        _ => None,
    }
}

/// Words of a KAT that came to no comparison.
const NOT_COMPARED: [&str; 5] = ["CRYPTOFAIL", "OVERFLOW", "LOADFAIL", "TIMEOUT", "CRASH"];

/// The result follows from the digests, and a comparison is made of a library that rejects flips.
pub fn result(value: &Value, kat: &Kat, f: &mut Findings) {
    let flow = text(value, "flow").unwrap_or_default();
    let Some((all, first, modes, _)) = flow_of(&flow) else {
        f.error("/flow", "a KAT is of a known flow", "iccs or nist", flow);
        return;
    };
    let is_timed = kat.library == "timed";
    for (index, stream) in kat.streams.iter().enumerate() {
        let mode = stream.mode.split(':').next().unwrap_or_default();
        if !modes.contains(&mode) {
            f.error(
                format!("/digests/{index}/mode"),
                "a stream is of the flow",
                modes.join(" or "),
                &stream.mode,
            );
        }
        if stream.expected.is_none() && !(is_timed && stream.mode == first) {
            f.error(
                format!("/digests/{index}/expected"),
                "only the first vector of the timed library has nothing to be held against",
                "a digest",
                "null",
            );
        }
    }
    let firsts = kat.streams.iter().filter(|s| s.mode == first).count();
    if !kat.streams.is_empty() && firsts != 1 {
        f.error(
            "/digests",
            "a comparison has the first vector, once",
            1,
            firsts,
        );
    }
    let expected = due(&kat.streams, is_timed, all, first);
    let agrees = match expected {
        Some(word) => kat.result == word,
        // Without a first vector of the timed library there is nothing to compare another with.
        None => NOT_COMPARED.contains(&kat.result.as_str()) || (kat.result == "NOKAT" && !is_timed),
    };
    if !agrees {
        f.error(
            "/result",
            "the result follows from the digests",
            expected.unwrap_or("a word of a KAT that compared nothing"),
            &kat.result,
        );
    }
    flips(value, kat, expected.is_some(), f);
}

/// The word of these streams; `None` where there are none.
fn due(streams: &[Stream], is_timed: bool, all: u64, first: &str) -> Option<&'static str> {
    if streams.is_empty() {
        return None;
    }
    let published = || streams.iter().filter(|s| s.expected.is_some());
    let short = |s: &Stream| s.records.is_none() || s.records != s.covers(all);
    let differs = |s: &Stream| s.expected != s.found;
    let whole = |s: &Stream| s.covers(all).is_some_and(|n| n >= all);
    Some(if published().any(|s| short(s) || differs(s)) {
        "MISMATCH"
    } else if published().any(whole) || (!is_timed && published().any(|s| s.mode == first)) {
        "PASS"
    } else if published().next().is_none() {
        "NOKAT"
    } else {
        "PARTIAL"
    })
}

/// Bits that are flipped in each part: fewer only of what has fewer.
const FLIPS: [(&str, u64); 3] = [("message", 16), ("signature", 32), ("key", 64)];

/// Tried, rejected, exempt.
fn flip(value: &Value, part: &str) -> Option<[u64; 3]> {
    let count = |key: &str| value.at(&["flips", part, key]).and_then(Value::u64);
    Some([count("tried")?, count("rejected")?, count("exempt")?])
}

fn flips(value: &Value, kat: &Kat, compared: bool, f: &mut Findings) {
    let there = value.get("flips").is_some_and(|flips| !flips.is_null());
    let is_timed = kat.library == "timed";
    if there != is_timed && (there || compared) {
        f.error(
            "/flips",
            "bits are flipped for the timed library, before anything is compared",
            is_timed,
            there,
        );
    }
    for (part, most) in FLIPS {
        let Some([tried, rejected, exempt]) = flip(value, part) else {
            continue;
        };
        let pointer = format!("/flips/{part}");
        if rejected > tried || tried + exempt > most {
            f.error(
                &pointer,
                "no more are rejected than were tried, and no more tried than there are",
                most,
                format!("{tried} tried, {rejected} rejected, {exempt} exempt"),
            );
        }
        if exempt > 0 && part != "signature" {
            f.error(
                format!("{pointer}/exempt"),
                "only bytes of a signature are exempt",
                0,
                exempt,
            );
        }
        // Exempt bits were not tried. Some bits of a public key are not touched by a given signature: 90%
        // suffice there.
        let enough = match part {
            "key" => rejected * 10 >= tried * 9,
            _ => rejected == tried,
        };
        if compared && !enough {
            f.error(
                format!("{pointer}/rejected"),
                "modified inputs are rejected",
                tried,
                rejected,
            );
        }
    }
}

/// Lines of a log by what they begin with.
struct Log<'a>(Vec<&'a str>);

impl<'a> Log<'a> {
    fn all(&self, prefix: &str) -> Vec<&'a str> {
        let rest = |line: &&'a str| line.strip_prefix(prefix);
        self.0.iter().filter_map(rest).collect()
    }
}

/// The log says what the evidence says, no less and no more; the claimed lengths that it names.
pub fn log(
    value: &Value,
    head: &Head,
    kat: &Kat,
    bytes: &[u8],
    f: &mut Findings,
) -> Option<[u64; 3]> {
    let whole = String::from_utf8_lossy(bytes);
    let log = Log(whole.lines().collect());
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let number = |key: &str| value.get(key).and_then(Value::u64);
    let digest = |s: &Stream| {
        let (expected, found) = (or(&s.expected), or(&s.found));
        let records = s.records.unwrap_or(0);
        format!(
            "{} expected {expected} found {found} records {records}",
            s.mode
        )
    };
    let flipped = |(part, _): (&str, u64)| {
        let [tried, rejected, exempt] = flip(value, part)?;
        Some(format!(
            "{part}: {tried} tried, {rejected} rejected, {exempt} exempt"
        ))
    };
    let path = match head.identity.split('/').collect::<Vec<_>>()[..] {
        [candidate, label, code, build] => {
            format!("kat/{candidate}/{label}.{code}.{build}.{}.log", kat.library)
        }
        _ => String::new(),
    };
    let stated = text(value, "log").unwrap_or_default();
    if stated != path {
        f.error("/log", "the log lies beside the evidence", path, stated);
    }
    let text_bytes = number("text_bytes");
    let flow = text(value, "flow").unwrap_or_default();
    let word = flow_of(&flow).map_or("", |(.., word)| word);
    let flows = log.all("flow ");
    let of_flow: Vec<&str> = flows
        .iter()
        .filter_map(|line| line.split(',').next())
        .collect();
    let once = |there: bool, text: String| Vec::from_iter(there.then_some(text));
    for (pointer, expected, found) in [
        (
            "/identity",
            vec![head.identity.clone()],
            log.all("identity "),
        ),
        (
            "/library",
            vec![format!("{} {}", kat.library, kat.sha256)],
            log.all("library "),
        ),
        (
            "/manifest_sha256",
            vec![or(&kat.manifest)],
            log.all("manifest "),
        ),
        (
            "/digests",
            kat.streams.iter().map(digest).collect(),
            log.all("digest "),
        ),
        (
            "/flips",
            FLIPS.into_iter().filter_map(flipped).collect(),
            log.all("flips of the "),
        ),
        (
            "/text_bytes",
            Vec::from_iter(text_bytes.map(|n| format!("{n} bytes"))),
            log.all("text "),
        ),
        (
            "/flow",
            once(text_bytes.is_some(), word.to_owned()),
            of_flow,
        ),
        ("/result", vec![kat.result.clone()], log.all("RESULT ")),
    ] {
        if found != expected {
            f.error(
                pointer,
                "the log says what the evidence says",
                found.join("; "),
                expected.join("; "),
            );
        }
    }
    let result = format!("RESULT {}\n", kat.result);
    let end = match text(value, "detail") {
        Some(detail) => format!("\ndetail {detail}\n{result}"),
        None => result,
    };
    let more = text(value, "detail").is_none() && log.0.iter().rev().nth(1).is_some_and(is_detail);
    if !whole.ends_with(&end) || more {
        f.error(
            "/detail",
            "the log ends with the detail and the result",
            log.0.last().copied().unwrap_or_default(),
            end.trim(),
        );
    }
    made(kat, &log, flows.first().copied(), f);
    claimed(&log, text_bytes.is_some(), f)
}

fn is_detail(line: &&str) -> bool {
    line.starts_with("detail ")
}

/// What the worker says that it made: vectors, digests, accepted flips.
fn made(kat: &Kat, log: &Log, flow: Option<&str>, f: &mut Findings) {
    if kat.streams.is_empty() {
        return;
    }
    let digests = |s: &Stream| {
        let (found, records) = (s.found.as_ref()?, s.records?);
        Some(format!("{found} {} over {records} records", s.mode))
    };
    let expected: BTreeSet<String> = kat.streams.iter().filter_map(digests).collect();
    // What the library printed is there too, indented.
    let over = |line: &&&str| {
        line.split_once(' ').is_some_and(|(first, rest)| {
            is_digest(first) && rest.contains(" over ") && rest.ends_with(" records")
        })
    };
    let found: BTreeSet<String> = log.0.iter().filter(over).map(|l| (*l).to_owned()).collect();
    if expected != found {
        let list = |of: BTreeSet<String>| Vec::from_iter(of).join("; ");
        f.error(
            "/digests",
            "the digests found are those that the worker told",
            list(found),
            list(expected),
        );
    }
    // `Iccs, 10 of 10 vectors`
    let planned = flow
        .and_then(|line| line.split_once(", "))
        .and_then(|(_, counts)| counts.split(' ').next())
        .and_then(|n| n.parse::<usize>().ok());
    let vectors = log.all("vector ");
    let numbered = vectors
        .iter()
        .enumerate()
        .all(|(n, line)| line.starts_with(&format!("{n}: ")));
    let most = kat.streams.iter().filter_map(|s| s.records).max();
    if planned != Some(vectors.len())
        || !numbered
        || most.is_some_and(|n| n as usize > vectors.len())
    {
        f.error(
            "/digests",
            "every vector of the streams was made, in order",
            format!("{planned:?} vectors"),
            vectors.len(),
        );
    }
    let again = log.all("the same seed again: equal outputs").len();
    if kat.library == "timed" && again != 1 {
        f.error(
            "/result",
            "the first vector was made twice with equal outputs",
            1,
            again,
        );
    }
}

/// `claimed lengths: public key P, secret key S, signature G bytes`.
fn claimed(log: &Log, ran: bool, f: &mut Findings) -> Option<[u64; 3]> {
    let lines = log.all("claimed lengths: ");
    if lines.len() != usize::from(ran) {
        f.error(
            "/log",
            "the log of a library that ran has its claimed lengths, once",
            usize::from(ran),
            lines.len(),
        );
    }
    let claimed = lengths(lines.first()?)?;
    for line in log.all("vector ") {
        let parts = line.split_once("bytes, ").map(|(_, rest)| rest);
        let actual = parts.and_then(lengths);
        let within = actual.is_some_and(|actual| actual.iter().zip(claimed).all(|(a, c)| *a <= c));
        if !within {
            f.error(
                "/log",
                "no output is longer than its claimed length",
                format!("{claimed:?}"),
                line,
            );
        }
    }
    Some(claimed)
}

/// The three numbers of `public key P, secret key S, signature G`.
fn lengths(text: &str) -> Option<[u64; 3]> {
    let mut parts = text.trim_end_matches(" bytes").split(", ");
    let mut next = |name: &str| parts.next()?.strip_prefix(name)?.parse().ok();
    Some([
        next("public key ")?,
        next("secret key ")?,
        next("signature ")?,
    ])
}

/// Manifests below the nearest `performance/kat` above a dataset, by their digests.
pub fn manifests(dataset: &Path) -> BTreeMap<String, Published> {
    let absolute = dataset
        .canonicalize()
        .unwrap_or_else(|_| dataset.to_owned());
    let folder = absolute
        .ancestors()
        .map(|folder| folder.join("performance/kat"))
        .find(|folder| folder.is_dir());
    let files = folder.and_then(|folder| std::fs::read_dir(folder).ok());
    let entries = files.into_iter().flatten().flatten().map(|e| e.path());
    entries
        .filter(|path| path.extension().is_some_and(|e| e == "sha256"))
        .filter_map(|path| {
            let text = std::fs::read_to_string(path).ok()?;
            Some((crate::hash::sha256(text.as_bytes()), published(&text)))
        })
        .collect()
}

/// `<digest> <stream> <label>/<file>`, a line each.
fn published(text: &str) -> Published {
    let mut all = Published::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        if let (Some(digest), Some(mode), Some(place)) = (words.next(), words.next(), words.next())
        {
            let label = place.split('/').next().unwrap_or_default().to_owned();
            let entry = (mode.to_owned(), digest.to_ascii_lowercase());
            all.entry(label).or_default().push(entry);
        }
    }
    all
}

/// What the KAT evidence of several libraries, the records and the rows say of each other.
pub fn cross(
    evidence: &Evidence,
    facts: &Facts,
    wanted: &dyn Fn(&str) -> bool,
    findings: &mut Vec<Finding>,
) {
    if facts.class == "imported" || facts.class == "aggregate" {
        return;
    }
    let known: BTreeMap<(&str, &str), &Kat> = evidence
        .kat
        .values()
        .map(|(head, kat)| ((head.identity.as_str(), kat.library.as_str()), kat))
        .collect();
    let mut manifests = BTreeMap::new();
    for (path, (head, kat)) in &evidence.kat {
        let mut f = Findings::of(path);
        let timed = known.get(&(head.identity.as_str(), "timed")).copied();
        if kat.library != "timed" {
            of_timed(kat, timed, &mut f);
        }
        let candidate = head.identity.split('/').next().unwrap_or_default();
        let first = *manifests.entry(candidate).or_insert(&kat.manifest);
        if *first != kat.manifest {
            f.error(
                "/manifest_sha256",
                "all KATs of a candidate are held against one manifest",
                format!("{first:?}"),
                format!("{:?}", kat.manifest),
            );
        }
        if kat.library == "timed" {
            of_manifest(head, kat, facts, &mut f);
        }
        findings.append(&mut f.list);
    }
    for (path, (head, record)) in &evidence.timing {
        let kat = known.get(&(head.identity.as_str(), "timed"));
        let claimed = kat.and_then(|kat| kat.claimed);
        if let (Some(sizes), Some(claimed)) =
            (record.sizes, claimed.filter(|c| Some(*c) != record.sizes))
        {
            let mut f = Findings::of(path);
            f.error(
                "/sizes",
                "the sizes are the lengths that the library claimed in its KAT",
                format!("{claimed:?}"),
                format!("{sizes:?}"),
            );
            findings.append(&mut f.list);
        }
    }
    libraries(evidence, facts, wanted, &known, findings);
}

/// Another library gave the timed library's first vector, and claims its lengths.
fn of_timed(kat: &Kat, timed: Option<&Kat>, f: &mut Findings) {
    for (index, stream) in kat.streams.iter().enumerate() {
        let same = |s: &&Stream| s.mode == stream.mode;
        let theirs = timed.and_then(|timed| timed.streams.iter().find(same)?.found.clone());
        if stream.expected != theirs {
            f.error(
                format!("/digests/{index}/expected"),
                "the first vector of the other libraries is held against the timed library's",
                format!("{theirs:?}"),
                format!("{:?}", stream.expected),
            );
        }
    }
    let claimed = timed.and_then(|timed| timed.claimed);
    if kat.claimed.is_some() && claimed.is_some() && kat.claimed != claimed {
        f.error(
            "/log",
            "all libraries of an identity claim the same lengths",
            format!("{claimed:?}"),
            format!("{:?}", kat.claimed),
        );
    }
}

/// Expected digests are those of the project's manifest, where that is the one that was used: one that
/// was changed since says nothing about the dataset.
fn of_manifest(head: &Head, kat: &Kat, facts: &Facts, f: &mut Findings) {
    let manifest = kat.manifest.as_ref().and_then(|m| facts.manifests.get(m));
    let Some(manifest) = manifest.filter(|_| !kat.streams.is_empty()) else {
        return;
    };
    let label = head.subject.split('/').nth(1).unwrap_or_default();
    let published = manifest.get(label).cloned().unwrap_or_default();
    let pair = |s: &Stream| Some((s.mode.clone(), s.expected.clone()?));
    let expected: Vec<(String, String)> = kat.streams.iter().filter_map(pair).collect();
    if expected != published {
        f.error(
            "/digests",
            "the expected digests are those of the manifest",
            format!("{published:?}"),
            format!("{expected:?}"),
        );
    }
}

/// What was built was tested, and what was measured with a library was allowed by its KAT.
fn libraries(
    evidence: &Evidence,
    facts: &Facts,
    wanted: &dyn Fn(&str) -> bool,
    known: &BTreeMap<(&str, &str), &Kat>,
    findings: &mut Vec<Finding>,
) {
    let kinds: &[&str] = match facts.study {
        true => &["timed", "stream"],
        false => &["timed", "profile", "memory"],
    };
    let mut f = Findings::of("build.json");
    for (identity, build) in &facts.builds {
        let subject = identity.split('/').take(2).collect::<Vec<_>>().join("/");
        let row = facts.rows.get(identity).map(|row| row.status.as_str());
        let asked = |operation: &&str| wanted(&format!("{identity}/{operation}"));
        let complete = row == Some("complete") && OPERATIONS.iter().any(asked);
        for kind in kinds
            .iter()
            .filter(|kind| build.libraries.contains_key(**kind))
        {
            let statuses = statuses(evidence, identity, kind);
            let used = complete || statuses.contains("complete");
            let result = known
                .get(&(identity.as_str(), *kind))
                .map(|kat| &kat.result);
            let allowed = |result: &String| {
                result == "PASS" || facts.issues.contains(&(subject.clone(), result.clone()))
            };
            let pointer = format!("/rows ({identity})/libraries/{kind}");
            match result {
                None if used || !statuses.is_empty() => f.error(
                    pointer,
                    "every library of what was measured has KAT evidence",
                    format!("that of the {kind} library"),
                    "none",
                ),
                Some(result) if used && !allowed(result) => f.error(
                    pointer,
                    "only what passes its KAT is used, or what campaign.json allows for",
                    "PASS",
                    result,
                ),
                _ => {}
            }
        }
    }
    findings.append(&mut f.list);
}

/// How far the evidence goes that was made with the memory or profile library of an identity.
fn statuses<'a>(evidence: &'a Evidence, identity: &str, kind: &str) -> BTreeSet<&'a str> {
    let of = match kind {
        "memory" => &evidence.memory,
        "profile" => &evidence.profile,
        _ => return BTreeSet::new(),
    };
    let keys = OPERATIONS.map(|operation| (identity.to_owned(), operation.to_owned()));
    let heads = keys.iter().filter_map(|key| of.get(key));
    heads.map(|(head, _)| head.status.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_the_worker_writes_them() {
        let read = lengths("public key 1, secret key 22, signature 333 bytes");
        assert_eq!(read, Some([1, 22, 333]));
        let read = lengths("public key 1, secret key 22, signature 333");
        assert_eq!(read, Some([1, 22, 333]));
        for text in [
            "",
            "public key 1",
            "public key x, secret key 2, signature 3",
        ] {
            assert_eq!(lengths(text), None, "{text}");
        }
    }

    fn stream(mode: &str, expected: Option<&str>, found: &str, records: u64) -> Stream {
        Stream {
            mode: mode.to_owned(),
            expected: expected.map(str::to_owned),
            found: Some(found.to_owned()),
            records: Some(records),
        }
    }

    #[test]
    fn the_word_follows_from_the_streams() {
        let (first, none) = (stream("strict:1", None, "f", 1), &[][..]);
        let strict = |found, records| stream("strict", Some("s"), found, records);
        let part = stream("strict:3", Some("p"), "p", 3);
        for (streams, is_timed, word) in [
            (none, true, None),
            (&[strict("s", 10), first.clone()], true, Some("PASS")),
            (&[strict("x", 10), first.clone()], true, Some("MISMATCH")),
            (&[strict("s", 9), first.clone()], true, Some("MISMATCH")),
            (&[part, first.clone()], true, Some("PARTIAL")),
            (&[first], true, Some("NOKAT")),
            (
                &[stream("strict:1", Some("f"), "f", 1)],
                false,
                Some("PASS"),
            ),
            (
                &[stream("strict:1", Some("f"), "g", 1)],
                false,
                Some("MISMATCH"),
            ),
        ] {
            assert_eq!(due(streams, is_timed, 10, "strict:1"), word, "{streams:?}");
        }
    }
}
