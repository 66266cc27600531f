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
    /// Workers started for a record: by path, how many of each trial.
    pub attempts: BTreeMap<String, BTreeMap<u64, u64>>,
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
    /// A jump of the clock is said: UTC is no order here, and neither proves nor refutes anything.
    pub clock_jumped: bool,
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
}

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
    utc_ns: Option<i128>,
    monotonic_ns: u64,
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
        // A session has its own monotonic clock, and so has the publication of a subset.
        // A jump that comes first in a session is one since the session before.
        let fresh = matches!(
            event,
            "session_begun" | "repaired" | "subset" | "run_begun" | "clock_jump"
        );
        if !fresh && monotonic < self.monotonic_ns {
            f.error(
                self.place(),
                "time goes forward",
                self.monotonic_ns,
                monotonic,
            );
        }
        let jumped = self.before == "clock_jump" || event == "clock_jump";
        if !jumped && self.utc_ns.is_some_and(|before| utc < before) {
            f.error(
                self.place(),
                "UTC goes forward, or a jump is said",
                "",
                "an earlier time",
            );
        }
        self.journal.clock_jumped |= jumped;
        self.journal.first_ns.get_or_insert(utc);
        if self.before != "sealed" && self.before != "subset" {
            self.journal.last_ns = Some(utc);
        }
        self.utc_ns = Some(utc);
        self.monotonic_ns = monotonic;
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
                });
            }
            "session_begun" => {
                // One that was killed before its file was there has left its number to the next.
                let number = value.get("session").and_then(Value::u64);
                if number.is_some_and(|n| n + 1 == journal.sessions.len() as u64) {
                    journal.sessions.pop();
                }
                journal.sessions.extend(word("host_token"));
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
                    journal.written.entry(path).or_default().push(digest);
                }
            }
            "attempt_begun" => {
                let trial = value.get("trial").and_then(Value::u64);
                if let Some((record, trial)) = word("record").zip(trial) {
                    *journal
                        .attempts
                        .entry(record)
                        .or_default()
                        .entry(trial)
                        .or_default() += 1;
                }
            }
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
fn left_out(path: &str, subsets: &[String]) -> bool {
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
