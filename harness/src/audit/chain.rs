//! Journal, manifest and seal: that nothing was added, taken out or changed since the run was closed.

use super::files;
use super::finding::{Finding, Findings};
use super::text::{is_digest, utc_ns};
use crate::evidence::journal::JournalLine;
use crate::json::{self, Value};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Name of the journal.
pub const JOURNAL: &str = "journal.jsonl";
/// Name of the manifest.
pub const MANIFEST: &str = "MANIFEST.sha256";
/// What no manifest covers.
pub const NOT_COVERED: [&str; 5] = [MANIFEST, JOURNAL, "pages", "lib", "keys"];

/// Longest line of a journal.
const LONGEST: u64 = 1 << 20;

/// What the journal says.
#[derive(Debug, Default)]
pub struct Journal {
    /// Digests announced for each path, in order.
    pub written: BTreeMap<String, Vec<String>>,
    /// Where each path was announced first and last.
    pub placed: BTreeMap<String, Placed>,
    /// Workers started for a record, by its path, in order.
    pub attempts: BTreeMap<String, Vec<Started>>,
    /// What was noted since the campaign was last written down.
    pub notes: Vec<String>,
    /// Times of the key generation of each prepared key, nanoseconds, by library: one that was lost is made
    /// again.
    pub prepared: BTreeMap<String, Vec<u64>>,
    /// Phases that ended.
    pub ended: BTreeSet<String>,
    /// Host token of each session, in order.
    pub sessions: Vec<String>,
    /// The request of the first line: system, plan, configuration, selection.
    pub begun: Option<Begun>,
    /// The dataset was imported.
    pub imported: bool,
    /// Patterns of the subsets that were taken, in order.
    pub subsets: Vec<String>,
    /// UTC of the first and the sealing line, nanoseconds.
    pub first_ns: Option<i128>,
    /// See `first_ns`.
    pub last_ns: Option<i128>,
    /// How far UTC jumped in all, nanoseconds: further from each other no two moments can be explained.
    pub jumped_ns: i128,
    /// Digest of the manifest in the last line.
    pub manifest_sha256: Option<String>,
    /// SHA-256 of the last line.
    pub seal: Option<String>,
}

/// The first line of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Id of the system.
    pub system: String,
    /// Name of the plan.
    pub plan: String,
    /// Digest of the configuration.
    pub config_sha256: String,
    /// `--only`.
    pub only: Option<String>,
    /// `--cpu`.
    pub cpus: Option<Vec<u64>>,
    /// Seed of the order of trials.
    pub order_seed: String,
    /// What is studied, as written.
    pub study: Option<String>,
}

/// A line of the journal as a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// Number of the line, from 0.
    pub line: u64,
    /// Session of the line.
    pub session: u64,
    /// UTC, nanoseconds.
    pub utc: i128,
    /// How far UTC and the monotonic clock of the session have parted so far, in either direction.
    parted: i128,
}

impl Moment {
    /// Whether a moment that was read between two lines can be read from their clock: not before the
    /// first nor after the second, but for what UTC moved against the monotonic clock meanwhile.
    pub fn frames(&self, until: &Moment, at: i128) -> bool {
        // Each session has a monotonic clock of its own, and nothing tells what UTC did in between.
        if self.session != until.session {
            return at == self.utc;
        }
        let moved = until.parted - self.parted;
        (self.utc - moved..=until.utc + moved).contains(&at)
    }
}

/// Where a path was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Begin of the session of the first announcement.
    pub session_first: Moment,
    /// The first announcement.
    pub first: Moment,
    /// Begin of the phase, or of the session, of the last announcement.
    pub since: Moment,
    /// The last announcement.
    pub last: Moment,
}

/// A worker that was started for a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Index of the planned slot.
    pub trial: u64,
    /// Index of the attempt in it.
    pub attempt: u64,
    /// When.
    pub at: Moment,
    /// The next announcement of its record.
    pub until: Option<Moment>,
    /// Flags that asked for it, where it is a repeat.
    pub retry: Option<Vec<String>>,
}

/// UTC may drift against the monotonic clock by this much between two lines before it is said.
const JUMP_MS: i128 = 1000;

/// Reads the journal line by line and follows its chain.
pub fn journal(root: &Path, findings: &mut Vec<Finding>) -> Journal {
    match files::open(root, JOURNAL, files::LARGEST_JOURNAL) {
        Ok((file, _)) => journal_from(BufReader::with_capacity(1 << 16, file), findings),
        Err(error) => {
            let mut f = Findings::of(JOURNAL);
            f.error("", "the journal can be read", "", error);
            findings.append(&mut f.list);
            Journal::default()
        }
    }
}

/// [`journal`] of lines from elsewhere.
pub fn journal_from(reader: impl BufRead, findings: &mut Vec<Finding>) -> Journal {
    let mut f = Findings::of(JOURNAL);
    let mut reading = Reading::default();
    reading.all(reader, &mut f);
    if reading.lines == 0 && f.list.is_empty() {
        f.error("line 1", "a journal has lines", "a line", "none");
    }
    if reading.lines > 0 && reading.journal.manifest_sha256.is_none() {
        let last = format!("line {}", reading.lines);
        f.error(
            last,
            "the last line seals the run",
            "sealed",
            reading.before,
        );
    }
    findings.append(&mut f.list);
    reading.journal
}

/// Bytes of lines that are looked at together, on all CPUs.
const TOGETHER: usize = 1 << 21;

/// What follows from a line by itself.
struct Line<'a> {
    value: Result<Value<'a>, json::JsonError>,
    /// Whether it is of its schema, in the one form in which this format writes it.
    conforms: serde_json::Result<bool>,
    sha256: String,
}

impl<'a> Line<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self {
            value: json::parse(text),
            conforms: serde_json::from_slice::<JournalLine>(text)
                .and_then(|line| serde_json::to_vec(&line).map(|again| again == text)),
            sha256: const_hex::encode(Sha256::digest(text)),
        }
    }
}

fn conforms(conforms: &serde_json::Result<bool>, text: &[u8], place: String, f: &mut Findings) {
    match conforms {
        Ok(true) => {}
        Ok(false) => f.error(
            place,
            "a line is written as its schema writes it",
            "the keys of the event in order, no blanks",
            String::from_utf8_lossy(text),
        ),
        Err(error) => f.error(place, "a line conforms to its schema", "", error),
    }
}

/// Why no further line was read.
enum End {
    /// There may be more.
    Full,
    /// The end of the file.
    Whole,
    /// The last line has no end.
    Torn,
    Error(std::io::Error),
}

/// The next lines, without their ends.
fn next_lines(reader: &mut impl BufRead) -> (Vec<Vec<u8>>, End) {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while bytes < TOGETHER {
        let mut line = Vec::new();
        match reader.take(LONGEST).read_until(b'\n', &mut line) {
            Ok(0) => return (lines, End::Whole),
            Ok(read) => bytes += read,
            Err(error) => return (lines, End::Error(error)),
        }
        if line.pop() != Some(b'\n') {
            return (lines, End::Torn);
        }
        lines.push(line);
    }
    (lines, End::Full)
}

#[derive(Default)]
struct Reading {
    journal: Journal,
    lines: u64,
    prev: String,
    /// Event of the line before.
    before: String,
    /// UTC and monotonic clock of the line before.
    stamp: Option<(i128, u64)>,
    /// A jump that was said, with its stamps: it is held against the line that follows.
    jump: Option<(i128, (i128, u64))>,
    /// The line that is read.
    now: Moment,
    /// Begin of the session, and of the phase in it.
    session: Moment,
    since: Moment,
    /// Flags of a repeat that was said, by record and trial.
    retries: BTreeMap<(String, u64), Vec<String>>,
}

impl Reading {
    fn all(&mut self, mut reader: impl BufRead, f: &mut Findings) {
        self.prev = "0".repeat(64);
        loop {
            let (lines, end) = next_lines(&mut reader);
            let read: Vec<Line> = lines.par_iter().map(|text| Line::of(text)).collect();
            for (text, line) in lines.iter().zip(read) {
                // After a broken link nothing that follows can be trusted.
                if self.line(text, line, f).is_none() {
                    return;
                }
            }
            match end {
                End::Full => {}
                End::Whole => return,
                End::Torn => {
                    f.error(
                        self.place(),
                        "every line of a sealed journal is whole",
                        "a line end",
                        "none",
                    );
                    return;
                }
                End::Error(error) => {
                    f.error(self.place(), "the journal can be read", "", error);
                    return;
                }
            }
        }
    }

    fn place(&self) -> String {
        format!("line {}", self.lines + 1)
    }

    /// Takes one line; `None` when the chain ends here.
    fn line(&mut self, text: &[u8], line: Line, f: &mut Findings) -> Option<()> {
        let value = match line.value {
            Ok(value) => value,
            Err(error) => {
                f.error(self.place(), "a line is strict JSON", "", error);
                return None;
            }
        };
        let word = |key: &str| value.get(key).and_then(|v| v.str()).map(|s| s.into_owned());
        let seq = value.get("seq").and_then(Value::u64);
        if seq != Some(self.lines) {
            f.error(
                self.place(),
                "lines are numbered",
                self.lines,
                format!("{seq:?}"),
            );
            return None;
        }
        let prev = word("prev").unwrap_or_default();
        if prev != self.prev {
            f.error(
                self.place(),
                "prev is the SHA-256 of the line before",
                &self.prev,
                prev,
            );
            return None;
        }
        let event = word("event").unwrap_or_default();
        self.order(&event, f)?;
        conforms(&line.conforms, text, self.place(), f);
        self.times(&value, &event, f);
        self.event(&event, &value, f);
        self.prev = line.sha256;
        self.journal.seal = Some(self.prev.clone());
        self.lines += 1;
        self.before = event;
        Some(())
    }

    /// A seal ends a journal; only a subset follows it, and only a seal follows a subset.
    fn order(&self, event: &str, f: &mut Findings) -> Option<()> {
        let expected = match self.before.as_str() {
            "" => ["run_begun", "imported"].as_slice(),
            "sealed" => ["subset"].as_slice(),
            "subset" => ["sealed"].as_slice(),
            _ if matches!(event, "subset" | "run_begun" | "imported") => {
                ["another event"].as_slice()
            }
            _ => return Some(()),
        };
        if expected.contains(&event) {
            return Some(());
        }
        f.error(
            self.place(),
            "events are in order",
            expected.join(" or "),
            event,
        );
        None
    }

    fn times(&mut self, value: &Value, event: &str, f: &mut Findings) {
        let utc = value
            .get("utc")
            .and_then(Value::str)
            .and_then(|text| utc_ns(&text));
        let monotonic = value.get("monotonic_ns").and_then(Value::u64);
        let (Some(utc), Some(monotonic)) = (utc, monotonic) else {
            f.error(
                self.place(),
                "a line has its times",
                "utc and monotonic_ns",
                "none",
            );
            return;
        };
        self.now.line = self.lines;
        if event == "clock_jump" {
            let milliseconds = value.get("milliseconds").and_then(|v| match v {
                Value::Number(text) => text.parse::<i128>().ok(),
                _ => None,
            });
            self.jump = milliseconds.map(|ms| (ms, (utc, monotonic)));
            self.journal.jumped_ns += milliseconds.unwrap_or(0).abs() * 1_000_000;
            return;
        }
        if let Some(before) = self.stamp {
            self.moved(before, (utc, monotonic), event, f);
        }
        self.journal.first_ns.get_or_insert(utc);
        if self.before != "sealed" && self.before != "subset" {
            self.journal.last_ns = Some(utc);
        }
        self.now.utc = utc;
        self.stamp = Some((utc, monotonic));
    }

    /// How the clocks moved between two lines, and whether what was said of it is so.
    fn moved(&mut self, before: (i128, u64), now: (i128, u64), event: &str, f: &mut Findings) {
        // A session has its own monotonic clock, and so has the publication of a subset.
        let fresh = matches!(event, "session_begun" | "repaired" | "subset");
        let (utc, monotonic) = (now.0 - before.0, i128::from(now.1) - i128::from(before.1));
        let back = utc < 0;
        if !fresh && monotonic < 0 {
            f.error(self.place(), "time goes forward", before.1, now.1);
        }
        let apart_ms = match fresh {
            true => utc / 1_000_000,
            false => utc / 1_000_000 - monotonic / 1_000_000,
        };
        let jumps = back || !fresh && apart_ms.abs() > JUMP_MS;
        match self.jump.take() {
            // What publishes says no jumps.
            None if jumps && (back || self.before != "subset") => f.error(
                self.place(),
                "UTC goes forward with the monotonic clock, or a jump is said",
                "",
                format!("{apart_ms} ms apart"),
            ),
            Some((said, stamp)) if !jumps || said != apart_ms || stamp != now => f.error(
                self.place(),
                "a jump of the clock is as large as its stamps say, and at the time of the line that follows",
                format!("{apart_ms} ms"),
                format!("{said} ms"),
            ),
            _ => {}
        }
        if !fresh {
            self.now.parted += (utc - monotonic).abs();
        }
    }

    fn event(&mut self, event: &str, value: &Value, f: &mut Findings) {
        let word = |key: &str| value.get(key).and_then(|v| v.str()).map(|s| s.into_owned());
        let (place, prev) = (self.place(), self.prev.clone());
        let journal = &mut self.journal;
        journal.manifest_sha256 = None;
        match event {
            "run_begun" => {
                journal.begun = Some(Begun {
                    system: word("system").unwrap_or_default(),
                    plan: word("plan").unwrap_or_default(),
                    config_sha256: word("config_sha256").unwrap_or_default(),
                    only: word("only"),
                    cpus: value
                        .get("cpus")
                        .filter(|cpus| !cpus.is_null())
                        .map(|cpus| cpus.items().iter().filter_map(Value::u64).collect()),
                    order_seed: word("order_seed").unwrap_or_default(),
                    study: value.get("study").map(|study| format!("{study:?}")),
                });
            }
            "session_begun" => {
                // One that was killed before its file was there has left its number to the next.
                let number = value.get("session").and_then(Value::u64);
                if number.is_some_and(|n| n + 1 == journal.sessions.len() as u64) {
                    journal.sessions.pop();
                }
                journal.sessions.extend(word("host_token"));
                self.now.session = number.unwrap_or(0);
                (self.session, self.since) = (self.now, self.now);
            }
            "written" => {
                let (path, digest) = (
                    word("path").unwrap_or_default(),
                    word("sha256").unwrap_or_default(),
                );
                if !files::is_below(&path) || !is_digest(&digest) {
                    f.error(
                        place,
                        "a written file has a path below the run and a SHA-256",
                        "",
                        path,
                    );
                } else {
                    if path == "campaign.json" {
                        journal.notes.clear();
                    }
                    let (session, since, now) = (self.session, self.since, self.now);
                    for started in journal.attempts.get_mut(&path).into_iter().flatten().rev() {
                        if started.until.is_some() {
                            break;
                        }
                        started.until = Some(now);
                    }
                    journal
                        .placed
                        .entry(path.clone())
                        .and_modify(|placed| (placed.since, placed.last) = (since, now))
                        .or_insert(Placed {
                            session_first: session,
                            first: now,
                            since,
                            last: now,
                        });
                    journal.written.entry(path).or_default().push(digest);
                }
            }
            "attempt_begun" => {
                let number = |key: &str| value.get(key).and_then(Value::u64);
                if let (Some(record), Some(trial), Some(attempt)) =
                    (word("record"), number("trial"), number("attempt"))
                {
                    let retry = self.retries.remove(&(record.clone(), trial));
                    let started = Started {
                        trial,
                        attempt,
                        at: self.now,
                        until: None,
                        retry,
                    };
                    journal.attempts.entry(record).or_default().push(started);
                }
            }
            "retry" => {
                let flags = value.get("flags").map_or(&[][..], Value::items);
                let flags = flags
                    .iter()
                    .filter_map(|flag| Some(flag.str()?.into_owned()));
                let trial = value.get("trial").and_then(Value::u64).unwrap_or(0);
                let key = (word("record").unwrap_or_default(), trial);
                self.retries.insert(key, flags.collect());
            }
            "prepared" => {
                let time = value.get("keygen_ns").and_then(Value::u64);
                if let Some((library, time)) = word("library").zip(time) {
                    journal.prepared.entry(library).or_default().push(time);
                }
            }
            "phase_begun" => self.since = self.now,
            "phase_ended" => journal.ended.extend(word("phase")),
            "note" => journal.notes.extend(word("text")),
            "imported" => journal.imported = true,
            "subset" => {
                let parent = word("parent_seal").unwrap_or_default();
                if parent != prev {
                    f.error(place, "a subset names the seal of its whole", &prev, parent);
                }
                journal.subsets.extend(word("regex"));
            }
            "sealed" => journal.manifest_sha256 = word("manifest_sha256"),
            _ => {}
        }
    }
}

/// Reads the manifest: path and digest of every covered file.
pub fn manifest(
    root: &Path,
    journal: &Journal,
    findings: &mut Vec<Finding>,
) -> BTreeMap<String, String> {
    let mut f = Findings::of(MANIFEST);
    let mut entries = BTreeMap::new();
    match files::read(root, MANIFEST, files::LARGEST) {
        Ok(bytes) => {
            let digest = const_hex::encode(Sha256::digest(&bytes));
            if let Some(sealed) = journal.manifest_sha256.as_ref().filter(|s| **s != digest) {
                f.error(
                    "",
                    "the sealing line holds the manifest's digest",
                    sealed,
                    digest,
                );
            }
            parse_manifest(&bytes, &mut entries, &mut f);
        }
        Err(error) => f.error("", "the manifest can be read", "", error),
    }
    findings.append(&mut f.list);
    entries
}

/// Reads the text of a manifest.
pub fn parse_manifest(bytes: &[u8], entries: &mut BTreeMap<String, String>, f: &mut Findings) {
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        f.error("", "every line is whole", "a line end", "none");
    }
    let mut last = String::new();
    for (index, line) in bytes.split(|&b| b == b'\n').enumerate() {
        let place = format!("line {}", index + 1);
        if line.is_empty() {
            if index + 1 < bytes.split(|&b| b == b'\n').count() {
                f.error(place, "no line is empty", "", "");
            }
            continue;
        }
        let Some((path, digest)) = std::str::from_utf8(line).ok().and_then(entry) else {
            let line = String::from_utf8_lossy(line);
            f.error(
                place,
                "a line is a SHA-256, two blanks and a path",
                "",
                line,
            );
            continue;
        };
        if !files::is_below(&path) {
            f.error(place, "a path stays below the dataset", "", path);
        } else if path <= last {
            f.error(
                place,
                "paths are sorted and each is there once",
                format!("after {last}"),
                path,
            );
        } else {
            last.clone_from(&path);
            entries.insert(path, digest);
        }
    }
}

/// `<digest>  <path>`; with a backslash in front, backslashes of the path are doubled.
fn entry(line: &str) -> Option<(String, String)> {
    let (escaped, line) = match line.strip_prefix('\\') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (digest, path) = line.split_once("  ")?;
    let path = if escaped {
        path.replace("\\\\", "\\")
    } else {
        path.to_owned()
    };
    is_digest(digest).then(|| (path, digest.to_owned()))
}

/// The seal file beside the dataset against the digest of the journal's last line.
pub fn seal(root: &Path, journal: &Journal, findings: &mut Vec<Finding>) -> Option<String> {
    let path: std::path::PathBuf = root.components().collect();
    let mut name = path.file_name()?.to_owned();
    name.push(".seal");
    let shown = name.to_string_lossy().into_owned();
    let mut f = Findings::of(&format!("../{shown}"));
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let text =
        files::read(folder, &shown, 1024).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let found = match text {
        Ok(text) => {
            let seal = journal.seal.clone().unwrap_or_default();
            if text != format!("{seal}\n") {
                f.error(
                    "",
                    "the seal is the SHA-256 of the journal's last line",
                    seal,
                    text.trim_end(),
                );
            }
            text.strip_suffix('\n').map(str::to_owned)
        }
        Err(error) => {
            f.error("", "the seal lies beside the dataset", "a file", error);
            None
        }
    };
    findings.append(&mut f.list);
    found
}

/// Files that are there against the manifest, and both against what the journal announced.
pub fn coverage(
    there: &BTreeMap<String, u64>,
    manifest: &BTreeMap<String, String>,
    journal: &Journal,
    findings: &mut Vec<Finding>,
) {
    let mut add = |path: &str, rule: &str, expected: &str, found: &str| {
        let mut f = Findings::of(path);
        f.error("", rule, expected, found);
        findings.append(&mut f.list);
    };
    for path in there.keys().filter(|path| !manifest.contains_key(*path)) {
        add(path, "every file is in the manifest", "a line", "none");
    }
    for path in manifest.keys().filter(|path| !there.contains_key(*path)) {
        add(
            path,
            "every file of the manifest is there",
            "a file",
            "none",
        );
    }
    for (path, digest) in manifest {
        match journal.written.get(path).and_then(|all| all.last()) {
            None => add(path, "the journal announces every file", "a line", "none"),
            Some(last) if last != digest => {
                add(
                    path,
                    "the journal's last digest of a file is the manifest's",
                    last,
                    digest,
                );
            }
            Some(_) => {}
        }
    }
    for path in journal
        .written
        .keys()
        .filter(|path| !manifest.contains_key(*path))
    {
        if !left_out(path, &journal.subsets) {
            add(
                path,
                "every announced file is in the manifest, but for what a subset left out",
                "a line",
                "none",
            );
        }
    }
}

/// Whether a file was left out on purpose by the patterns of the subsets.
pub fn left_out(path: &str, subsets: &[String]) -> bool {
    let Some(subject) = crate::publish::subject(path) else {
        return false;
    };
    subsets.iter().any(|pattern| {
        let Ok(pattern) = regex::Regex::new(pattern) else {
            return false;
        };
        let keys: BTreeSet<String> = match subject.operation {
            Some(operation) => BTreeSet::from([subject.identity.operation_key(operation)]),
            None => protocol::Operation::ALL
                .map(|o| subject.identity.operation_key(o))
                .into(),
        };
        !keys.iter().any(|key| pattern.is_match(key))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_read_line_by_line_with_their_faults() {
        let digest = "a".repeat(64);
        let good = format!("{digest}  a\n{digest}  b/c d\n\\{digest}  c\\\\d\n");
        let mut entries = BTreeMap::new();
        let mut f = Findings::of(MANIFEST);
        parse_manifest(good.as_bytes(), &mut entries, &mut f);
        assert_eq!(f.list, []);
        assert_eq!(entries.keys().collect::<Vec<_>>(), ["a", "b/c d", "c\\d"]);
        for (bad, place) in [
            (format!("{digest}  a\n{digest}  a\n"), "line 2"),
            (format!("{digest}  a\n# x\n"), "line 2"),
            (format!("{digest}  a\n{digest}  ../b\n"), "line 2"),
            (format!("{digest}  a\n{digest}  /b\n"), "line 2"),
            (format!("{digest}  a\n\n{digest}  b\n"), "line 2"),
            (format!("{}  a\n", digest.to_uppercase()), "line 1"),
            (format!("{digest}  a"), ""),
        ] {
            let mut f = Findings::of(MANIFEST);
            parse_manifest(bad.as_bytes(), &mut BTreeMap::new(), &mut f);
            assert_eq!(f.list.len(), 1, "{bad}");
            assert_eq!(f.list[0].pointer, place, "{bad}");
        }
    }

    #[test]
    fn what_a_subset_left_out_is_told_from_what_is_gone() {
        let subsets = ["/keygen$".to_owned()];
        assert!(left_out("records/c/l.ref.reference__sign.json", &subsets));
        assert!(!left_out(
            "records/c/l.ref.reference__keygen.json",
            &subsets
        ));
        assert!(!left_out("kat/c/l.ref.reference.timed.json", &subsets));
        assert!(!left_out("campaign.json", &subsets));
        assert!(!left_out("records/c/l.ref.reference__sign.json", &[]));
    }
}
