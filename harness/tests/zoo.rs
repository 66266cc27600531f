//! The zoo: C libraries with one misbehaviour each, all of them in one campaign between two neighbours
//! that do nothing wrong. What is expected of each is data (`zoo/expected.toml`); what the campaign made
//! of it is compared with that, the neighbours with a campaign of their own, and nothing may be left
//! running or written anywhere else.

use crate::support::lab::{self, json, Lab};
use crate::support::{copy_tree, root};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// First and last of the campaign.
const NEIGHBOURS: [&str; 2] = ["good_first", "good_last"];

/// Left behind by an animal that could write where it must not.
const MARK: &str = "zoo-was-here";

/// The fast plan. `min_total` gives a trial more calls than a KAT has, for the animals that wait for it.
const PLAN: &str = r#"
[build.reference]
cflags = "-std=c99 -O2"
[plan.quick]
trials = 2
target_s = 0.001
min_total = 800
budget_s = 30
keys = 1
kat_timeout_s = 5
timeout_floor_s = 5
[[candidate]]
id = "zoo"
name = "ZOO"
origin = "independent"
kat = { flow = "iccs", manifest = "lab.sha256" }
wrap = { hash = ["sm3hash"], drng = ["get_random_number"] }
"#;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    animal: Vec<Animal>,
}

/// One table of `expected.toml`, which explains the keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Animal {
    name: String,
    issue: String,
    #[serde(default)]
    made: Made,
    kat: String,
    row: String,
    says: Vec<String>,
    flag: Option<String>,
    exempt: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Made {
    #[default]
    #[serde(skip)]
    FromSource,
    #[serde(rename = "foreign")]
    Foreign,
    #[serde(rename = "foreign without adapter")]
    WithoutAdapter,
    #[serde(rename = "wrong class")]
    WrongClass,
    #[serde(rename = "text")]
    Text,
    #[serde(rename = "empty")]
    Empty,
    #[serde(rename = "cut short")]
    CutShort,
}

fn folder() -> PathBuf {
    root().join("harness/tests/zoo")
}

fn expected() -> Vec<Animal> {
    let text = fs::read_to_string(folder().join("expected.toml")).unwrap();
    toml::from_str::<Expected>(&text).unwrap().animal
}

/// A folder with the campaign of all animals, and a worker of its own name.
struct Zoo {
    lab: Lab,
    animals: Vec<Animal>,
    worker: String,
}

impl Zoo {
    /// `None`, after saying so, where there is no worker.
    fn new() -> Option<Zoo> {
        let found = lab::worker()?;
        let zoo = Zoo {
            lab: Lab::bare(),
            animals: expected(),
            // The name of its processes, forked ones included; at most 15 bytes.
            worker: format!("zoo-{}", std::process::id()),
        };
        fs::copy(&found, zoo.lab.path(&zoo.worker)).unwrap();
        fs::remove_file(zoo.lab.path("sources/lab_candidate.c")).unwrap();
        copy_tree(&folder(), &zoo.lab.path("zoo"), &[]);
        fs::create_dir(zoo.lab.path("home")).unwrap();
        let home = zoo.lab.path("home").display().to_string();
        let places = format!("#define ZOO_HOME {home:?}\n");
        fs::write(zoo.lab.path("zoo/places.h"), places).unwrap();
        fs::create_dir(zoo.lab.path("made")).unwrap();
        for animal in &zoo.animals {
            zoo.make(animal);
        }
        zoo.configure();
        Some(zoo)
    }

    /// Makes the library of an animal that the campaign does not build.
    fn make(&self, animal: &Animal) {
        let path = self.lab.path(&format!("made/{}.so", animal.name));
        let good = || {
            let good = self.foreign("good_first", &self.lab.path("made/good.so"), true);
            fs::read(good).unwrap()
        };
        let content = match animal.made {
            Made::FromSource => return,
            Made::Foreign => return drop(self.foreign(&animal.name, &path, true)),
            Made::WithoutAdapter => return drop(self.foreign("good_first", &path, false)),
            Made::WrongClass => {
                let mut bytes = good();
                bytes[4] = 1; // ELFCLASS32
                bytes
            }
            Made::Text => b"int main(void) { return 0; }\n".to_vec(),
            Made::Empty => Vec::new(),
            Made::CutShort => cut_short(good()),
        };
        fs::write(path, content).unwrap();
    }

    /// A library as a stranger makes it: everything in it is exported.
    fn foreign(&self, source: &str, path: &Path, with_adapter: bool) -> PathBuf {
        let drivers = root().join("drivers");
        let mut command = Command::new("cc");
        command
            .args(["-std=c99", "-O2", "-fPIC", "-shared"])
            .args(["-DCAMPAIGN_LABEL=\"stranger\"", "-DCAMPAIGN_KIND=\"timed\""])
            .arg("-I")
            .arg(self.lab.path("zoo"));
        for below in ["iccs", "abi", "abi/include"] {
            command.arg("-I").arg(drivers.join(below));
        }
        command.arg(self.lab.path(&format!("zoo/animals/{source}.c")));
        if with_adapter {
            command.arg(drivers.join("abi/adapter.c"));
        }
        for entry in fs::read_dir(drivers.join("iccs")).unwrap().flatten() {
            if entry.path().extension().is_some_and(|e| e == "c") {
                command.arg(entry.path());
            }
        }
        let made = command.arg("-o").arg(path).output().unwrap();
        assert!(made.status.success(), "{source}: {made:?}");
        path.to_owned()
    }

    /// Writes `campaign.toml`: the animals between their neighbours.
    fn configure(&self) {
        let [first, last] = NEIGHBOURS;
        let mut text = PLAN.to_owned();
        instance(&mut text, first, Made::FromSource, None);
        for animal in &self.animals {
            instance(
                &mut text,
                &animal.name,
                animal.made,
                animal.exempt.as_deref(),
            );
        }
        instance(&mut text, last, Made::FromSource, None);
        fs::write(self.lab.path("campaign.toml"), text).unwrap();
    }

    /// Writes the manifest: each animal's own text where it is to pass, the first neighbour's digest
    /// elsewhere, so that an animal that must not pass has something to be compared with.
    fn publish_known_answers(&self) {
        let passing = self.animals.iter().filter(|a| a.kat == "PASS");
        let passing: Vec<&str> = passing.map(|a| a.name.as_str()).chain(NEIGHBOURS).collect();
        let only = format!("^zoo/({})/", passing.join("|"));
        let end = self.campaign(&[
            "kat",
            "--only",
            &only,
            "--keep-text",
            "texts",
            "--run",
            "runs/texts",
        ]);
        assert_eq!(end.status, Some(1), "no published digest yet\n{end}");
        let digest = |name: &str| {
            let text = format!("texts/zoo/{name}.ref.reference/KAT_SIG_{name}.txt");
            lab::digest_of_canonical(&self.lab.path(&text))
        };
        let other = digest(NEIGHBOURS[0]);
        let all = self.animals.iter().map(|a| a.name.as_str());
        let lines: String = all
            .chain(NEIGHBOURS)
            .map(|name| {
                let digest = match passing.contains(&name) {
                    true => digest(name),
                    false => other.clone(),
                };
                format!("{digest} strict {name}/KAT_SIG_{name}.txt\n")
            })
            .collect();
        fs::write(self.lab.path("lab.sha256"), lines).unwrap();
    }

    fn campaign(&self, arguments: &[&str]) -> lab::End {
        let worker = ["--worker", self.worker.as_str()];
        self.lab.campaign(&[arguments, &worker].concat())
    }

    /// Numbers of living processes that carry the worker's name. Any user may read these files.
    fn processes(&self) -> Vec<String> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let ours = entries.filter(|entry| {
            fs::read_to_string(entry.path().join("comm"))
                .is_ok_and(|name| name.trim_end() == self.worker)
        });
        ours.map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }
}

/// Adds an instance to the configuration.
fn instance(text: &mut String, name: &str, made: Made, exempt: Option<&str>) {
    write!(
        text,
        "\n[[candidate.instance]]\nlabel = \"{name}\"\n{}[[candidate.instance.code]]\nname = \"ref\"\nbuilds = [\"reference\"]\n",
        exempt.map_or(String::new(), |bytes| format!("unauthenticated_signature_bytes = \"{bytes}\"\n")),
    )
    .unwrap();
    match made {
        Made::FromSource => writeln!(
            text,
            "sources = [\"zoo/animals/{name}.c\", \"sources/*.c\"]\ninclude = [\"zoo\", \"sources\"]"
        ),
        _ => writeln!(text, "library = \"made/{name}.so\""),
    }
    .unwrap();
}

/// The library without its last bytes that are loaded, and without its section headers, which lie
/// behind them and are the first that a reader would miss.
fn cut_short(mut library: Vec<u8>) -> Vec<u8> {
    library[40..48].fill(0); // e_shoff
    library[60..64].fill(0); // e_shnum, e_shstrndx
    library.truncate(library.len() / 3);
    library
}

#[test]
fn every_animal_is_described_and_every_description_has_its_animal() {
    let animals = expected();
    let names: BTreeSet<&str> = animals.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names.len(), animals.len(), "a name is there twice");
    let with_source = animals
        .iter()
        .filter(|a| matches!(a.made, Made::FromSource | Made::Foreign))
        .map(|a| a.name.clone());
    let described: BTreeSet<String> = with_source.chain(NEIGHBOURS.map(str::to_owned)).collect();
    let files: BTreeSet<String> = fs::read_dir(folder().join("animals"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(described, files);
    for animal in &animals {
        assert!(
            ["3", "4", "more"].contains(&animal.issue.as_str()),
            "{animal:?}"
        );
        assert!(!animal.says.is_empty(), "{animal:?}");
    }
}

#[test]
fn the_zoo_harms_nobody() {
    let Some(zoo) = Zoo::new() else { return };
    zoo.publish_known_answers();
    let alone = zoo.lab.run_dir(1);
    zoo.campaign(&["run", "--only", "^zoo/good_"]).expect(0);
    lab::check_complete_of(&alone, 2);
    zoo.campaign(&["run"]).expect(1);
    let run = zoo.lab.run_dir(2);
    lab::check_complete_of(&run, 2);
    assert_eq!(zoo.processes(), [""; 0], "left running");
    nothing_written(&zoo);

    let rows = rows(&run);
    let page = fs::read_to_string(run.join("pages/zoo.md")).unwrap();
    let page = page.replace('\\', ""); // Markdown's escapes
    let wrong: Vec<String> = zoo
        .animals
        .iter()
        .flat_map(|animal| differences(&run, animal, &rows[&animal.name], &page))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for name in NEIGHBOURS {
        assert_eq!(rows[name]["status"], "complete", "{}", rows[name]);
        assert_eq!(results(&run, name), results(&alone, name));
    }
    every_layer_is_in_force_or_has_a_reason(&run);
    assert!(
        !lab::has_event(&run, &[("event", "host_change")]),
        "a worker had other layers than the first"
    );
    twenty_megabytes_of_stack_are_evidence(&run);
    names_of_the_c_library_are_said(&run);
    zoo.campaign(&["audit", "runs/local-quick-2"]).expect(0);
}

/// Rows of `campaign.json` by label.
fn rows(run: &Path) -> BTreeMap<String, Value> {
    let campaign = json(run, "campaign.json");
    let rows = campaign["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        let identity = row["identity"].as_str().unwrap();
        let label = identity.split('/').nth(1).unwrap();
        (label.to_owned(), row.clone())
    })
    .collect()
}

/// In what the evidence of an animal is not what is expected of it.
fn differences(run: &Path, animal: &Animal, row: &Value, page: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = &animal.name;
    let mut differ = |what: &str, found: String, expected: &str| {
        wrong.push(format!("{name}: {what}: {found}, expected {expected}"));
    };
    let kat = format!("kat/zoo/{name}.ref.reference.timed");
    match animal.kat.as_str() {
        "" if run.join(format!("{kat}.json")).exists() => {
            differ("KAT evidence", "there".into(), "none")
        }
        "" => {}
        word => {
            let found = json(run, &format!("{kat}.json"))["result"].clone();
            if found != word {
                differ("KAT", found.to_string(), word);
            }
        }
    }
    let (status, code) = match animal.row.as_str() {
        "complete" => ("complete", Value::Null),
        code => ("failed", code.into()),
    };
    if row["status"] != status || row["reason"]["code"] != code {
        differ("row", row.to_string(), &animal.row);
    }
    // What it says: in the KAT's log where all is well, else in the reason.
    let told = match animal.row.as_str() {
        "complete" => fs::read_to_string(run.join(format!("{kat}.log"))).unwrap_or_default(),
        _ => row["reason"]["text"].as_str().unwrap_or("").to_owned(),
    };
    for text in &animal.says {
        if !told.contains(text) {
            differ("says", told.clone(), text);
        }
    }
    if told.contains("IT WORKED") {
        differ("something forbidden", told.clone(), "refused");
    }
    let records = records(run, name);
    let complete = records.values().filter(|r| r["status"] == "complete");
    let complete = complete.count();
    if animal.row == "complete" && complete != 3 {
        differ("complete records", complete.to_string(), "3");
    }
    // No time where the function failed.
    records
        .values()
        .filter(|record| record["status"] != "complete" && !record["derived"].is_null())
        .for_each(|r| differ("derived", r["operation"].to_string(), "null"));
    if let Some(flag) = &animal.flag {
        let attempts: Vec<&Value> = records.values().flat_map(attempts).collect();
        let flagged = |a: &&&Value| {
            let flags = a["flags"].as_array().unwrap();
            flags.iter().any(|f| f["name"] == *flag)
        };
        let count = attempts.iter().filter(flagged).count();
        if count < attempts.len() || count == 0 {
            differ("flagged", format!("{count} of {}", attempts.len()), "all");
        }
    }
    if animal.row != "complete" && !page.contains(own_words(&told)) {
        differ("the page", "no such footnote".into(), own_words(&told));
    }
    wrong
}

/// The first line of a row's reason without the operation and phase that it begins with.
fn own_words(reason: &str) -> &str {
    let line = reason.lines().next().unwrap_or_default();
    match line.split_once(" (measure): ") {
        Some((_, words)) => words,
        None => line
            .split_once(" (memory): ")
            .map_or(line, |(_, words)| words),
    }
}

/// Timing records of a label, by operation.
fn records(run: &Path, label: &str) -> BTreeMap<String, Value> {
    let found = ["keygen", "sign", "verify"].map(|operation| {
        let path = format!("records/zoo/{label}.ref.reference__{operation}.json");
        let there = run.join(&path).is_file();
        there.then(|| (operation.to_owned(), json(run, &path)))
    });
    found.into_iter().flatten().collect()
}

fn attempts(record: &Value) -> impl Iterator<Item = &Value> {
    let trials = record["trials"].as_array().unwrap().iter();
    trials.flat_map(|trial| trial["attempts"].as_array().unwrap())
}

/// What does not depend on the moment of a measurement: known answers, outputs, what was drawn, sizes,
/// stack and heap, calls of the helper functions.
fn results(run: &Path, label: &str) -> BTreeMap<String, Value> {
    let mut results = BTreeMap::new();
    for kind in ["timed", "profile", "memory"] {
        let kat = json(run, &format!("kat/zoo/{label}.ref.reference.{kind}.json"));
        for key in ["result", "library", "digests", "flips", "text_bytes"] {
            results.insert(format!("kat {kind} {key}"), there(&kat, key).clone());
        }
    }
    for operation in ["keygen", "sign", "verify"] {
        let read = |folder: &str| {
            json(
                run,
                &format!("{folder}/zoo/{label}.ref.reference__{operation}.json"),
            )
        };
        let mut keep = |what: &str, value: &Value| {
            results.insert(format!("{operation} {what}"), value.clone());
        };
        keep("outputs", there(&read("calibrate"), "outputs"));
        let record = read("records");
        keep("status", there(&record, "status"));
        keep("seeds", there(&record["inputs"], "seeds"));
        keep("sizes", there(&record, "sizes"));
        keep("memory", there(&read("memory"), "runs"));
        let mut profile = read("profile")["calls"].clone();
        for row in profile.as_array_mut().unwrap() {
            row["ticks"] = Value::Null;
        }
        keep("profile", &profile);
    }
    results
}

/// A member that must be there: what neither side has is equal too.
fn there<'v>(value: &'v Value, key: &str) -> &'v Value {
    value.get(key).unwrap_or_else(|| panic!("no {key}"))
}

/// Neither in the home folder nor in the folders that all users share, nor in the run.
fn nothing_written(zoo: &Zoo) {
    assert_eq!(lab::files(&zoo.lab.path("home")).len(), 0);
    for folder in ["/tmp", "/var/tmp", "/dev/shm"] {
        assert!(!Path::new(folder).join(MARK).exists(), "{folder}");
    }
    for path in lab::files(&zoo.lab.path("runs")).keys() {
        let name = path.display().to_string();
        assert!(!name.contains(MARK), "{name}");
    }
}

fn every_layer_is_in_force_or_has_a_reason(run: &Path) {
    let environment = json(run, "environment/0.json");
    let layers = environment["layers"].as_array().unwrap();
    let named: BTreeSet<&str> = layers.iter().map(|l| l["name"].as_str().unwrap()).collect();
    let known = [
        "capabilities",
        "cgroup",
        "landlock",
        "namespaces",
        "no_new_privs",
        "not_dumpable",
        "open_files",
        "processes",
        "rlimits",
        "seccomp",
        "session",
    ];
    assert_eq!(named, BTreeSet::from(known));
    for layer in layers {
        assert!(layer["active"].is_boolean(), "{layer}");
        assert!(layer["detail"].as_str().unwrap().len() > 2, "{layer}");
    }
}

fn twenty_megabytes_of_stack_are_evidence(run: &Path) {
    let memory = json(run, "memory/zoo/stack_20_mb.ref.reference__sign.json");
    let peak = memory["derived"]["worst"]["stack_peak_bytes"].as_f64();
    assert!(peak.unwrap() >= 20e6, "{memory}");
}

fn names_of_the_c_library_are_said(run: &Path) {
    let build = json(run, "build.json");
    let rows = build["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| {
        row["identity"]
            .as_str()
            .unwrap()
            .contains("clashes_with_libc")
    });
    let warnings = row.unwrap()["warnings"].to_string();
    for name in ["malloc", "clock_gettime", "sched_getcpu"] {
        assert!(warnings.contains(name), "{warnings}");
    }
}
