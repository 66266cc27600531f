//! Whole campaigns on a small candidate: a folder with a `campaign.toml`, and the real program run in it.

use super::root;
use harness::evidence::journal::{self, Chain, JournalLine};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// One parameter set of the candidate.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Label.
    pub label: &'static str,
    /// Further macros.
    pub defines: &'static [&'static str],
    /// `key_per = "run"`.
    pub one_key: bool,
    /// Its manifest has a wrong digit.
    pub wrong_digest: bool,
}

/// An instance with nothing special.
pub const FINE: Instance = Instance {
    label: "lab-1",
    defines: &[],
    one_key: false,
    wrong_digest: false,
};

/// A folder with a campaign, and what its runs leave. Gone when dropped, unless
/// `CAMPAIGN_KEEP_LAB` is set.
pub struct Lab {
    dir: tempfile::TempDir,
}

/// Trials of the lab's plan.
pub const TRIALS: u64 = 3;

impl Lab {
    /// A campaign of these instances; `plan` are further lines of `[plan.quick]`.
    pub fn new(instances: &[Instance], plan: &str) -> Lab {
        let lab = Lab::bare();
        lab.configure(instances, plan);
        let mut manifest = String::new();
        for (n, instance) in instances.iter().enumerate() {
            let mut digest = known_answers(id(n));
            if instance.wrong_digest {
                let other = if digest.starts_with('0') { "1" } else { "0" };
                digest.replace_range(..1, other);
            }
            let label = instance.label;
            writeln!(manifest, "{digest} strict {label}/KAT_SIG_{label}.txt").unwrap();
        }
        fs::write(lab.path("lab.sha256"), manifest).unwrap();
        lab
    }

    /// The sources and an empty manifest.
    pub fn bare() -> Lab {
        let lab = Lab {
            dir: tempfile::Builder::new()
                .prefix("lab ")
                .disable_cleanup(std::env::var_os("CAMPAIGN_KEEP_LAB").is_some())
                .tempdir()
                .unwrap(),
        };
        let sources = lab.path("sources");
        fs::create_dir(&sources).unwrap();
        let from = |folder: &str, name: &str| {
            let path = root().join(folder).join(name);
            fs::copy(path, sources.join(name)).unwrap();
        };
        from("harness/tests/c", "lab_candidate.c");
        for entry in fs::read_dir(root().join("drivers/iccs")).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".c") || name.ends_with(".h") {
                from("drivers/iccs", &name);
            }
        }
        fs::write(lab.path("lab.sha256"), "").unwrap();
        lab
    }

    /// Writes `campaign.toml`.
    pub fn configure(&self, instances: &[Instance], plan: &str) {
        let mut text = format!(
            r#"
[build.reference]
cflags = "-std=c99 -Wpedantic -Wall -Wextra -O2"

[[candidate]]
id = "lab"
name = "LAB"
origin = "independent"
kat = {{ flow = "iccs", manifest = "lab.sha256" }}
wrap = {{ hash = ["sm3hash"], drng = ["get_random_number"] }}

[plan.quick]
trials = {TRIALS}
target_s = 0.002
min_total = 3
budget_s = 5
keys = 2
{plan}
"#
        );
        for (n, instance) in instances.iter().enumerate() {
            let mut defines = vec![format!("LAB_ID={}", id(n))];
            defines.extend(instance.defines.iter().map(|d| (*d).to_owned()));
            write!(
                text,
                r#"
[[candidate.instance]]
label = "{}"
key_per = "{}"
[[candidate.instance.code]]
name = "ref"
sources = ["sources/*.c"]
include = ["sources"]
defines = {defines:?}
builds = ["reference"]
"#,
                instance.label,
                if instance.one_key { "run" } else { "trial" },
            )
            .unwrap();
        }
        fs::write(self.path("campaign.toml"), text).unwrap();
    }

    /// A path below the folder.
    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// The `k`th run.
    pub fn run_dir(&self, k: u32) -> PathBuf {
        self.path(&format!("runs/local-quick-{k}"))
    }

    /// The program with these arguments, to be started in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .current_dir(self.dir.path())
            .args(arguments)
            .env("CAMPAIGN_LOCK_DIR", self.dir.path())
            .env("CAMPAIGN_CACHE", cache())
            .env_remove("CAMPAIGN_NO_SKIP")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub fn campaign(&self, arguments: &[&str]) -> End {
        End::of(self.command(arguments).output().unwrap())
    }

    /// Starts the program in a process group of its own.
    pub fn start(&self, arguments: &[&str]) -> Running {
        Running::start(&mut self.command(arguments))
    }
}

/// The macro that tells instances apart; 1, 2, ...
fn id(index: usize) -> usize {
    index + 1
}

fn program() -> PathBuf {
    assert_cmd::cargo::cargo_bin("campaign")
}

/// The worker beside the program. `None`, after saying so, where there is none of this version: `cargo test
/// -p harness` alone does not make it.
pub fn worker() -> Option<PathBuf> {
    let path = program().with_file_name("worker");
    let id = Command::new(&path).arg("--build-id").output();
    let ours = id.is_ok_and(|out| out.stdout.trim_ascii() == protocol::BUILD_ID.as_bytes());
    if !ours {
        super::skip("no worker of this version beside the program; run cargo build -p worker");
        return None;
    }
    Some(path)
}

/// Compiled objects are shared by all tests: they are found by their content.
pub fn cache() -> PathBuf {
    match std::env::var_os("CAMPAIGN_TEST_ROOT") {
        Some(copy) => Path::new(&copy).join("target/tmp/campaign-cache"),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("campaign-cache"),
    }
}

/// SHA-256 of the canonical text of the candidate's known answers. The text is the candidate's own, for
/// nobody publishes it; the canonical form is made here.
pub fn known_answers(id: usize) -> String {
    static DIGESTS: OnceLock<[String; 3]> = OnceLock::new();
    DIGESTS.get_or_init(|| [1, 2, 3].map(digest_of_text))[id - 1].clone()
}

fn digest_of_text(id: usize) -> String {
    let lab = Lab::bare();
    let labels = ["lab-1", "lab-2", "lab-3"];
    lab.configure(&labels.map(|label| Instance { label, ..FINE }), "");
    let only = format!("lab-{id}/");
    let end = lab.campaign(&["kat", "--keep-text", "text", "--only", &only]);
    assert_eq!(end.status, Some(1), "no published digest yet\n{end}");
    let label = labels[id - 1];
    let file = format!("text/lab/{label}.ref.reference/KAT_SIG_{label}.txt");
    digest_of_canonical(&lab.path(&file))
}

/// SHA-256 of the canonical form, made here, of a KAT text that was kept.
pub fn digest_of_canonical(text: &Path) -> String {
    let kept = fs::read_to_string(text).unwrap_or_else(|e| panic!("{}: {e}", text.display()));
    let mut canonical = String::new();
    for line in kept.lines().map(str::trim_end).filter(|l| !l.is_empty()) {
        canonical.push_str(line);
        canonical.push('\n');
    }
    assert_eq!(canonical.matches("Count = ").count(), 10);
    harness::hash::sha256(canonical.as_bytes())
}

/// How a command ended.
#[derive(Debug)]
pub struct End {
    /// Exit status; `None` for a signal.
    pub status: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl End {
    /// Of a command that has ended.
    pub fn of(output: Output) -> End {
        End {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Panics with both outputs unless the status is `expected`.
    pub fn expect(self, expected: i32) -> End {
        assert_eq!(self.status, Some(expected), "{self}");
        self
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "status {:?}\n--- stdout\n{}--- stderr\n{}",
            self.status, self.stdout, self.stderr
        )
    }
}

/// A program that runs.
pub struct Running {
    child: Child,
}

impl Running {
    /// Starts a command in a process group of its own.
    pub fn start(command: &mut Command) -> Running {
        command.process_group(0).stdout(Stdio::null());
        Running {
            child: command.spawn().unwrap(),
        }
    }

    /// Its process number.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal to it alone.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.pid());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub fn end(self) -> End {
        End::of(self.child.wait_with_output().unwrap())
    }
}

/// Waits until `condition` holds or the program has ended; returns whether it holds.
pub fn wait_until(running: &mut Running, mut condition: impl FnMut() -> bool) -> bool {
    let give_up = Instant::now() + Duration::from_secs(120);
    while Instant::now() < give_up {
        if condition() {
            return true;
        }
        if !running.is_alive() {
            return condition();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("nothing happened for two minutes");
}

/// The journal of a run, which must verify.
pub fn journal(run: &Path) -> Chain {
    journal::verify(&run.join(journal::JOURNAL)).unwrap_or_else(|e| panic!("{e}"))
}

/// Whether a line says `event`, as JSON.
pub fn event(line: &JournalLine) -> Value {
    serde_json::to_value(line).unwrap()
}

/// Whether the journal, as far as it is written, has an event with these members.
pub fn has_event(run: &Path, members: &[(&str, &str)]) -> bool {
    let text = fs::read_to_string(run.join(journal::JOURNAL)).unwrap_or_default();
    text.lines().any(|line| {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        members.iter().all(|(key, text)| value[*key] == *text)
    })
}

/// A JSON file of a run.
pub fn json(run: &Path, below: &str) -> Value {
    let path = run.join(below);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// Content of every file below a folder, by path.
pub fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    collect(dir, &mut found);
    found
}

fn collect(dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => collect(&entry.path(), found),
            false => {
                // A file may be replaced while a campaign runs.
                if let Ok(content) = fs::read(entry.path()) {
                    found.insert(entry.path(), content);
                }
            }
        }
    }
}

/// Commands of the living processes that work in `dir`: workers start in their run.
pub fn processes_in(dir: &Path) -> Vec<String> {
    let found = numbers_in(dir).into_iter().map(|pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).replace('\0', " ")
    });
    found.collect()
}

/// Their numbers.
pub fn numbers_in(dir: &Path) -> Vec<i32> {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == dir))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Evidence of a complete run, checked for what every run must hold: manifest, chain, seal, a reason
/// for each null, the planned trials with one counted attempt each.
pub fn check_complete(run: &Path) {
    check_complete_of(run, TRIALS);
}

/// [`check_complete`] of a run with another number of trials.
pub fn check_complete_of(run: &Path, planned: u64) {
    let chain = journal(run);
    assert!(chain.sealed().is_some(), "not sealed");
    let mut beside = run.as_os_str().to_owned();
    beside.push(".seal");
    let seal = fs::read_to_string(beside).unwrap();
    assert_eq!(seal.trim_end(), chain.last_sha256);
    assert!(run.join("pages/index.html").is_file(), "no pages");
    let check = Command::new("sha256sum")
        .args(["-c", "--strict", "--quiet", "MANIFEST.sha256"])
        .current_dir(run)
        .output()
        .unwrap();
    assert!(check.status.success(), "{check:?}");
    let mut complete = 0;
    for (path, content) in files(&run.join("records")) {
        let record: Value = serde_json::from_slice(&content).unwrap();
        if record["status"] != "complete" {
            continue;
        }
        complete += 1;
        let trials = record["trials"].as_array().unwrap();
        assert_eq!(trials.len() as u64, planned, "{}", path.display());
        for trial in trials {
            let counted = trial["counted"].as_u64().expect("a counted attempt") as usize;
            assert_eq!(trial["attempts"][counted]["exit"], "ok");
            let ok = trial["attempts"].as_array().unwrap().iter();
            let good = ok.filter(|a| a["exit"] == "ok").count();
            assert_eq!(good, 1, "a trial was made twice: {}", path.display());
        }
    }
    assert!(complete > 0, "nothing was measured");
}
