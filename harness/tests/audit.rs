//! `campaign audit`: a sound dataset holds, and every bad input is a finding with its place.

use crate::support::datasets::{seal_of, small, SMALL};
use crate::support::{copy_tree, files, have, root};
use harness::audit::{audit, Report};
use harness::testing::{sealed, Synthetic};
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn published() -> PathBuf {
    root().join("performance/data/arm_1/public-2026")
}

fn shown(report: &Report) -> String {
    report.findings.iter().map(|f| format!("{f}\n")).collect()
}

/// Numbers for mutations; any will do.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

#[test]
fn a_sound_run_has_no_findings() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("x86_1-guide-1");
    sealed::write(&Synthetic::default(), &dir).unwrap();
    assert_eq!(shown(&audit(&dir)), "");
    assert_eq!(shown(&audit(&small().1)), "");
}

#[test]
fn the_published_datasets_hold() {
    for dataset in ["arm_1/public-2026", "x86_1/public-2026"] {
        let report = audit(&root().join("performance/data").join(dataset));
        // After a change of the evidence types: `campaign import` makes them again.
        assert_eq!(shown(&report), "", "{dataset}");
    }
    assert!(audit(&published()).auditable);
    assert!(!audit(&root().join("performance/data/x86_1/public-2026")).auditable);
}

/// One change of the bytes of a dataset; false when there was nothing to change.
fn damage(dir: &Path, random: &mut Random) -> Option<String> {
    let all: Vec<PathBuf> = files(dir)
        .into_iter()
        .map(|file| dir.join(file))
        .chain([seal_of(dir)])
        .collect();
    let file = random.pick(&all).clone();
    let other = random.pick(&all).clone();
    let bytes = fs::read(&file).unwrap();
    let at = random.below(bytes.len());
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let put = |bytes: &[u8]| fs::write(&file, bytes).unwrap();
    let kind = random.below(12);
    match kind {
        0 | 1 => {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << random.below(8);
            put(&bytes);
        }
        2 | 3 => {
            let digits: Vec<usize> = (0..bytes.len())
                .filter(|&i| bytes[i].is_ascii_digit())
                .collect();
            let at = *digits.get(random.below(digits.len()))?;
            let mut bytes = bytes.clone();
            bytes[at] = b'0' + (bytes[at] - b'0' + 1 + random.below(9) as u8) % 10;
            put(&bytes);
        }
        4 => fs::remove_file(&file).unwrap(),
        5 => {
            let folder = file.parent().unwrap();
            // Beside the dataset lies whatever its owner wants.
            if !folder.starts_with(dir) {
                return None;
            }
            fs::write(folder.join("added.json"), &bytes).unwrap();
        }
        6 => {
            let theirs = fs::read(&other).unwrap();
            put(&theirs);
            fs::write(&other, &bytes).unwrap();
        }
        7 => {
            let file = dir.join("journal.jsonl");
            let text = fs::read_to_string(&file).unwrap();
            let mut lines: Vec<&str> = text.lines().collect();
            let (a, b) = (random.below(lines.len()), random.below(lines.len()));
            lines.swap(a, b);
            let swapped = lines.join("\n") + "\n";
            if swapped == text {
                return None;
            }
            fs::write(&file, swapped).unwrap();
            return Some("two lines of the journal".into());
        }
        8 => put(&bytes[..at]),
        9 => {
            // Once more a key that is there.
            let start = text.find("  \"")?;
            let line = text[start..].lines().next()?.to_owned();
            put(text
                .replacen(&line, &format!("{line}\n{line}"), 1)
                .as_bytes());
        }
        10 => {
            let word = *random.pick(&["NaN", "1e400", "-Infinity", "\u{0}", "\"\\ud800\""]);
            let number = text.find(": 1").or_else(|| text.find(": 2"))?;
            put(format!("{}: {word}{}", &text[..number], &text[number + 3..]).as_bytes());
        }
        _ => {
            let mut bytes = bytes.clone();
            bytes.insert(at, 0xff);
            put(&bytes);
        }
    }
    // Two files with the same content may change places, and a cut at the end cuts nothing.
    let changed = !file.exists() || fs::read(&file).unwrap() != bytes || kind == 5;
    changed.then(|| format!("{kind} {}", file.display()))
}

/// Cases of each of the two properties; together 2000.
const CASES: u32 = 1000;

fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES");
    ProptestConfig {
        cases: asked.map_or(CASES, |n| n.parse().expect("a number of cases")),
        failure_persistence: None,
        max_shrink_iters: 0,
        max_global_rejects: 20 * CASES,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_change_of_a_sealed_dataset_is_found(seed in any::<u64>()) {
        let (_home, dir) = small();
        let done = damage(&dir, &mut Random(seed));
        prop_assume!(done.is_some());
        let report = audit(&dir);
        prop_assert!(report.is_refuted(), "{done:?} was not found");
        for finding in &report.findings {
            prop_assert!(!finding.file.is_empty() && !finding.rule.is_empty());
        }
    }

    #[test]
    fn every_false_figure_is_found_although_the_dataset_was_sealed_again(seed in any::<u64>()) {
        let (_home, dir) = small();
        let random = &mut Random(seed);
        let forgery = &FORGERIES[random.below(FORGERIES.len())];
        let done = forge(&dir, forgery, random);
        prop_assume!(done.is_some());
        let report = audit(&dir);
        prop_assert!(report.is_refuted(), "{}: {done:?} was not found", forgery.name);
        let structure = ["MANIFEST.sha256", "journal.jsonl"];
        let chain = report.findings.iter().any(|f| structure.contains(&f.file.as_str()));
        prop_assert!(!chain, "{}: the forger's chain is sound:\n{}", forgery.name, shown(&report));
    }
}

/// A false figure: in which files, and how it is made; `None` when there is no place for it.
struct Forgery {
    name: &'static str,
    folders: &'static [&'static str],
    make: fn(&mut Value, &mut Random) -> Option<()>,
}

const FORGERIES: &[Forgery] = &[
    Forgery {
        name: "derived value",
        folders: &["records", "memory"],
        make: |v, r| leaf(v.get_mut("derived")?, r),
    },
    Forgery {
        name: "number of calls",
        folders: &["records"],
        make: |v, r| number(v.pointer_mut("/derived/n")?, r),
    },
    Forgery {
        name: "sum",
        folders: &["records"],
        make: |v, r| number(v.pointer_mut("/derived/total_s")?, r),
    },
    Forgery {
        name: "rate",
        folders: &["records"],
        make: |v, r| number(v.pointer_mut("/derived/ops_per_s")?, r),
    },
    Forgery {
        name: "share",
        folders: &["profile"],
        make: |v, r| {
            let keys = ["share", "hash_share", "drng_share", "calls_per_operation"];
            leaf(v.get_mut("derived")?.get_mut(*r.pick(&keys))?, r)
        },
    },
    Forgery {
        name: "ticks",
        folders: &["profile"],
        make: |v, r| number(item(v.get_mut("calls")?, r)?.get_mut("ticks")?, r),
    },
    Forgery {
        name: "all ticks",
        folders: &["profile"],
        make: |v, r| number(v.pointer_mut("/total/ticks")?, r),
    },
    Forgery {
        name: "calls of a function",
        folders: &["profile"],
        make: |v, r| number(item(v.get_mut("calls")?, r)?.get_mut("calls")?, r),
    },
    Forgery {
        name: "planned calls",
        folders: &["records"],
        make: |v, r| number(v.pointer_mut("/plan/iterations")?, r),
    },
    Forgery {
        name: "plan",
        folders: &["records"],
        make: |v, r| leaf(v.get_mut("plan")?, r),
    },
    Forgery {
        name: "cost",
        folders: &["calibrate"],
        make: |v, r| number(v.get_mut("c_s")?, r),
    },
    Forgery {
        name: "calibrated calls",
        folders: &["calibrate"],
        make: |v, r| {
            for call in v.get_mut("calls_ns")?.as_array_mut()? {
                number(call, r)?;
            }
            Some(())
        },
    },
    Forgery {
        name: "calls of an attempt",
        folders: &["records"],
        make: |v, r| number(attempt(v, r)?.get_mut("calls")?, r),
    },
    Forgery {
        name: "time of an attempt",
        folders: &["records"],
        make: |v, r| number(attempt(v, r)?.get_mut("nanoseconds")?, r),
    },
    Forgery {
        name: "a sample",
        folders: &["records"],
        make: |v, r| number(item(attempt(v, r)?.get_mut("samples")?, r)?, r),
    },
    Forgery {
        name: "cycles of a trial that counts",
        folders: &["records"],
        make: |v, r| number(counted(v, r)?.get_mut("cycles")?, r),
    },
    Forgery {
        name: "a dropped trial",
        folders: &["records"],
        make: |v, r| {
            let trials = v.get_mut("trials")?.as_array_mut()?;
            trials.remove(r.below(trials.len()));
            Some(())
        },
    },
    Forgery {
        name: "a repeated trial",
        folders: &["records"],
        make: |v, r| {
            let trials = v.get_mut("trials")?.as_array_mut()?;
            let one = trials[r.below(trials.len())].clone();
            trials.push(one);
            Some(())
        },
    },
    Forgery {
        name: "a trial in place of another",
        folders: &["records"],
        make: |v, r| {
            let trials = v.get_mut("trials")?.as_array_mut()?;
            let (a, b) = (r.below(trials.len()), r.below(trials.len()));
            let one = trials[a].clone();
            (trials[b] != one).then(|| trials[b] = one)
        },
    },
    Forgery {
        name: "a dropped attempt",
        folders: &["records"],
        make: |v, _| {
            let trial = v
                .get_mut("trials")?
                .as_array_mut()?
                .iter_mut()
                .find(|t| t["attempts"].as_array().is_some_and(|a| a.len() > 1))?;
            trial["attempts"].as_array_mut()?.remove(0);
            trial["counted"] = 0.into();
            Some(())
        },
    },
    Forgery {
        name: "another attempt counts",
        folders: &["records"],
        make: |v, _| {
            let trial = v
                .get_mut("trials")?
                .as_array_mut()?
                .iter_mut()
                .find(|t| t["attempts"].as_array().is_some_and(|a| a.len() > 1))?;
            trial["counted"] = 0.into();
            Some(())
        },
    },
    Forgery {
        name: "a flag taken off",
        folders: &["records"],
        make: |v, _| {
            let trials = v.get_mut("trials")?.as_array_mut()?;
            let attempt = trials
                .iter_mut()
                .flat_map(|t| t["attempts"].as_array_mut().unwrap())
                .find(|a| !a["flags"].as_array().unwrap().is_empty())?;
            attempt["flags"] = Value::Array(vec![]);
            Some(())
        },
    },
    Forgery {
        name: "a limit that is not the plan's",
        folders: &["records"],
        make: |v, _| {
            let trials = v.get_mut("trials")?.as_array_mut()?;
            let flag = trials
                .iter_mut()
                .flat_map(|t| t["attempts"].as_array_mut().unwrap())
                .find_map(|a| a["flags"].as_array_mut()?.first_mut())?;
            flag["name"] = "sibling_busy_percent".into();
            (flag["value"], flag["limit"]) = (15.0.into(), 12.0.into());
            Some(())
        },
    },
    Forgery {
        name: "a second cycle source",
        folders: &["records"],
        make: |v, r| {
            attempt(v, r)?["ticks"] = 5.into();
            Some(())
        },
    },
    Forgery {
        name: "no cycles",
        folders: &["records"],
        make: |v, r| {
            counted(v, r)?["cycles"] = Value::Null;
            Some(())
        },
    },
    Forgery {
        name: "another cycle source",
        folders: &["records"],
        make: |v, _| {
            v["cycle_source"]["kind"] = "tsc".into();
            Some(())
        },
    },
    Forgery {
        name: "a second CPU",
        folders: &["records"],
        make: |v, r| number(attempt(v, r)?.get_mut("cpu_after")?, r),
    },
    Forgery {
        name: "another CPU",
        folders: &["records"],
        make: |v, r| number(v.get_mut("cpu")?, r),
    },
    Forgery {
        name: "KAT result",
        folders: &["kat"],
        make: |v, _| {
            v["result"] = "NOKAT".into();
            Some(())
        },
    },
    Forgery {
        name: "KAT result of a record",
        folders: &["records"],
        make: |v, _| {
            v["kat"]["result"] = "MISMATCH".into();
            Some(())
        },
    },
    Forgery {
        name: "KAT digest",
        folders: &["kat"],
        make: |v, r| text(item(v.get_mut("digests")?, r)?.get_mut("found")?, r),
    },
    Forgery {
        name: "rejected flips",
        folders: &["kat"],
        make: |v, _| {
            v["flips"]["signature"]["rejected"] = 3.into();
            Some(())
        },
    },
    Forgery {
        name: "size",
        folders: &["records"],
        make: |v, r| leaf(v.get_mut("sizes")?, r),
    },
    Forgery {
        name: "time outside of the campaign",
        folders: &["records"],
        make: |v, r| {
            attempt(v, r)?["started_utc"] = "2027-01-01T00:00:00.000000Z".into();
            Some(())
        },
    },
    Forgery {
        name: "end of the campaign",
        folders: &["campaign.json"],
        make: |v, _| {
            v["ended_utc"] = "2026-01-02T03:04:05.020000Z".into();
            Some(())
        },
    },
    Forgery {
        name: "library",
        folders: &["records", "memory", "profile", "calibrate", "kat"],
        make: library,
    },
    Forgery {
        name: "built library",
        folders: &["build.json"],
        make: |v, r| text(v.pointer_mut("/rows/0/libraries/timed/sha256")?, r),
    },
    Forgery {
        name: "session",
        folders: &["records", "kat", "memory"],
        make: |v, r| text(v.pointer_mut("/sessions/0/environment_sha256")?, r),
    },
    Forgery {
        name: "host",
        folders: &["records", "kat"],
        make: |v, r| text(v.get_mut("host_token")?, r),
    },
    Forgery {
        name: "seed",
        folders: &["records"],
        make: |v, r| {
            text(
                item(v.pointer_mut("/inputs/seeds")?, r)?.get_mut("seed")?,
                r,
            )
        },
    },
    Forgery {
        name: "stack of a run",
        folders: &["memory"],
        make: |v, r| {
            for run in v.get_mut("runs")?.as_array_mut()? {
                number(run.get_mut("stack_peak_bytes")?, r)?;
            }
            Some(())
        },
    },
    Forgery {
        name: "pass of a profile",
        folders: &["profile"],
        make: |v, r| {
            let key = item(v.get_mut("passes")?, r)?;
            let counted = key["counted"].as_u64()? as usize;
            number(key.get_mut("ticks")?.get_mut(counted)?, r)
        },
    },
    Forgery {
        name: "pass that counts",
        folders: &["profile"],
        make: |v, r| number(item(v.get_mut("passes")?, r)?.get_mut("counted")?, r),
    },
    Forgery {
        name: "switches of a pass",
        folders: &["profile"],
        make: |v, r| {
            let key = item(v.get_mut("passes")?, r)?;
            number(key.get_mut("involuntary_switches")?, r)
        },
    },
    Forgery {
        name: "mark of a disturbed key",
        folders: &["profile"],
        make: |v, r| {
            let key = item(v.get_mut("passes")?, r)?;
            key["disturbed"] = serde_json::json!([key["counted"]]);
            Some(())
        },
    },
    Forgery {
        name: "static figures",
        folders: &["memory"],
        make: |v, r| number(v.pointer_mut("/static/load_bytes")?, r),
    },
    Forgery {
        name: "built figures",
        folders: &["build.json"],
        make: |v, r| number(v.pointer_mut("/rows/0/elf/text")?, r),
    },
    Forgery {
        name: "class",
        folders: &["records", "kat", "memory", "profile"],
        make: |v, _| {
            v["class"] = "local".into();
            Some(())
        },
    },
    Forgery {
        name: "origin",
        folders: &["records", "kat", "memory", "profile"],
        make: |v, _| {
            v["origin"] = "submission".into();
            Some(())
        },
    },
    Forgery {
        name: "status",
        folders: &["records", "kat", "memory"],
        make: |v, _| {
            v["status"] = "failed".into();
            Some(())
        },
    },
    Forgery {
        name: "a null without a reason",
        folders: &["records"],
        make: |v, _| {
            v["host_ready"] = Value::Null;
            Some(())
        },
    },
    Forgery {
        name: "a reason without a null",
        folders: &["records"],
        make: |v, _| {
            v["missing"]["/operation"] = serde_json::json!({"code": "deferred", "text": "x"});
            Some(())
        },
    },
    Forgery {
        name: "an unknown key",
        folders: &["records", "kat", "build.json", "campaign.json"],
        make: |v, _| {
            v["more"] = 1.into();
            Some(())
        },
    },
    Forgery {
        name: "a missing key",
        folders: &["records", "kat", "build.json", "campaign.json"],
        make: |v, r| {
            let object = v.as_object_mut()?;
            let keys: Vec<String> = object.keys().cloned().collect();
            object.shift_remove(r.pick(&keys));
            Some(())
        },
    },
    Forgery {
        name: "a path of a machine",
        folders: &["records"],
        make: |v, r| {
            attempt(v, r)?["command"] = serde_json::json!(["/home/ada/worker"]);
            Some(())
        },
    },
    Forgery {
        name: "a row that was not measured",
        folders: &["campaign.json"],
        make: |v, _| {
            let mut row = v["rows"][0].clone();
            row["identity"] = "sign-09/dove_a_999/ref/reference".into();
            v["rows"].as_array_mut()?.push(row);
            Some(())
        },
    },
    Forgery {
        name: "plan of the campaign",
        folders: &["campaign.json"],
        make: |v, r| {
            v["plan"]["trials"] = (6 + r.below(9)).into();
            Some(())
        },
    },
];

/// Any item of an array.
fn item<'a>(value: &'a mut Value, random: &mut Random) -> Option<&'a mut Value> {
    let items = value.as_array_mut()?;
    let index = random.below(items.len());
    items.get_mut(index)
}

/// Changes the digest of the library that a file is about.
fn library(value: &mut Value, random: &mut Random) -> Option<()> {
    let pointer = match value.pointer("/library/sha256") {
        Some(_) => "/library/sha256",
        None => "/libraries/timed",
    };
    text(value.pointer_mut(pointer)?, random)
}

/// Any attempt of a record.
fn attempt<'a>(record: &'a mut Value, random: &mut Random) -> Option<&'a mut Value> {
    let trial = item(record.get_mut("trials")?, random)?;
    item(trial.get_mut("attempts")?, random)
}

/// Any attempt that counts.
fn counted<'a>(record: &'a mut Value, random: &mut Random) -> Option<&'a mut Value> {
    let trial = item(record.get_mut("trials")?, random)?;
    let index = trial.get("counted")?.as_u64()? as usize;
    trial.get_mut("attempts")?.get_mut(index)
}

/// Changes something below a value: a number, a word or a truth value; or takes an entry out of a list, or a
/// key with its value out of an object.
fn leaf(value: &mut Value, random: &mut Random) -> Option<()> {
    match value {
        Value::Object(members) if random.below(8) == 0 => {
            let keys: Vec<String> = members.keys().cloned().collect();
            members.shift_remove(random.pick(&keys)).map(|_| ())
        }
        Value::Object(members) => {
            let keys: Vec<String> = members.keys().cloned().collect();
            let key = random.pick(&keys).clone();
            leaf(members.get_mut(&key)?, random)
        }
        Value::Array(items) if !items.is_empty() && random.below(4) == 0 => {
            items.remove(random.below(items.len()));
            Some(())
        }
        Value::Array(_) => leaf(item(value, random)?, random),
        Value::Number(_) => number(value, random),
        Value::String(word) => {
            // A word of the format, or any other.
            let words = [
                "noisy",
                "unusable",
                "stable",
                "mixed",
                "own primitives",
                "guide",
                "x",
            ];
            let other = *random.pick(&words);
            (word != other).then(|| *value = other.into())
        }
        Value::Bool(is) => {
            *is = !*is;
            Some(())
        }
        Value::Null => None,
    }
}

/// Changes one digit of a number; the result is another number.
fn number(value: &mut Value, random: &mut Random) -> Option<()> {
    let text = value.as_number()?.to_string();
    let mantissa = text.find('e').unwrap_or(text.len());
    let digits: Vec<usize> = (0..mantissa)
        .filter(|&i| text.as_bytes()[i].is_ascii_digit())
        .collect();
    let at = *random.pick(&digits);
    let mut bytes = text.clone().into_bytes();
    bytes[at] = b'0' + (bytes[at] - b'0' + 1 + random.below(9) as u8) % 10;
    let changed: Value = serde_json::from_str(&String::from_utf8(bytes).ok()?).ok()?;
    // 0.50 is 0.5, and two long decimals may be one double.
    (changed != *value).then(|| *value = changed)
}

/// Changes one character of a digest.
fn text(value: &mut Value, random: &mut Random) -> Option<()> {
    let text = value.as_str()?;
    let at = random.below(text.len());
    let other = if text.as_bytes()[at] == b'0' {
        "1"
    } else {
        "0"
    };
    let mut changed = text.to_owned();
    changed.replace_range(at..=at, other);
    *value = changed.into();
    Some(())
}

/// Makes a false figure and seals the dataset again.
fn forge(dir: &Path, forgery: &Forgery, random: &mut Random) -> Option<String> {
    let all = files(dir);
    let folder = random.pick(forgery.folders);
    let some: Vec<&PathBuf> = all
        .iter()
        .filter(|f| f.starts_with(folder) && f.extension().is_some_and(|e| e == "json"))
        .collect();
    let file = dir.join(random.pick(&some));
    let before = fs::read(&file).unwrap();
    let mut value: Value = serde_json::from_slice(&before).unwrap();
    (forgery.make)(&mut value, random)?;
    let mut bytes = serde_json::to_vec_pretty(&value).unwrap();
    bytes.push(b'\n');
    if bytes == before {
        return None;
    }
    fs::write(&file, &bytes).unwrap();
    sealed::reseal(dir).unwrap();
    Some(file.display().to_string())
}

/// A folder with the project's configuration, its published datasets and their pages.
fn project() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::copy(
        root().join("campaign.toml"),
        home.path().join("campaign.toml"),
    )
    .unwrap();
    for below in ["performance", "reports", "drivers/dilithium"] {
        copy_tree(&root().join(below), &home.path().join(below), &[]);
    }
    home
}

fn command(home: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_campaign"))
        .args(words)
        .current_dir(home)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn a_published_page_that_was_changed_is_found() {
    let home = project();
    let sound = command(
        home.path(),
        &["audit", "arm_1/public-2026", "x86_1/public-2026"],
    );
    assert_eq!(sound.0, Some(0), "{}", sound.1);
    let pages: Vec<PathBuf> = files(&home.path().join("reports/arm_1"));
    let page = pages
        .iter()
        .find(|p| p.extension().is_some_and(|e| e == "md"))
        .unwrap();
    let page = home.path().join("reports/arm_1").join(page);
    let text = fs::read_to_string(&page).unwrap();
    let at = text.rfind(|c: char| c.is_ascii_digit()).unwrap();
    let digit = if &text[at..=at] == "1" { "2" } else { "1" };
    fs::write(&page, format!("{}{digit}{}", &text[..at], &text[at + 1..])).unwrap();
    let (status, said) = command(home.path(), &["audit", "arm_1/public-2026"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("a page is what its dataset gives"), "{said}");
    let name = page.file_name().unwrap().to_str().unwrap();
    assert!(said.contains(name), "{said}");
    fs::remove_file(&page).unwrap();
    let (status, said) = command(home.path(), &["audit", "arm_1/public-2026"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("a page is there"), "{said}");
}

/// A copy of a published dataset with its seal.
fn copied(name: &str) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let from = root().join("performance/data").join(name);
    let dir = home.path().join("copy");
    copy_tree(&from, &dir, &[]);
    fs::copy(seal_of(&from), seal_of(&dir)).unwrap();
    (home, dir)
}

fn finds(report: &Report, file: &str, rule: &str) -> bool {
    report
        .findings
        .iter()
        .any(|f| f.file == file && f.rule.contains(rule))
}

#[test]
fn an_imports_records_are_derived_again_from_their_source() {
    let record = "records/sign-09/dove_classic_128.ref.reference__sign.json";
    let rule = "the file follows from the source";
    // A fact that nothing else in the record follows from.
    let (_home, dir) = copied("arm_1/public-2026");
    let file = dir.join(record);
    let mut value: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    value["host_ready"] = (value["host_ready"] != true).into();
    fs::write(&file, serde_json::to_string_pretty(&value).unwrap() + "\n").unwrap();
    sealed::reseal(&dir).unwrap();
    let report = audit(&dir);
    assert!(finds(&report, record, rule), "{}", shown(&report));
    // A record that is gone, with its line in the journal.
    let (_home, dir) = copied("arm_1/public-2026");
    fs::remove_file(dir.join(record)).unwrap();
    sealed::reseal(&dir).unwrap();
    let report = audit(&dir);
    let rule = "the file that follows from the source is there";
    assert!(finds(&report, record, rule), "{}", shown(&report));
    // A source that is gone.
    let (_home, dir) = copied("arm_1/public-2026");
    fs::remove_file(dir.join("source/records/sign-09/dove_classic_128__sign.json")).unwrap();
    sealed::reseal(&dir).unwrap();
    assert!(audit(&dir).is_refuted());
    // A file that follows from nothing.
    let (_home, dir) = copied("arm_1/public-2026");
    let more = "records/sign-09/dove_classic_999.ref.reference__sign.json";
    fs::copy(dir.join(record), dir.join(more)).unwrap();
    let journal = dir.join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let line = text.lines().find(|line| line.contains(record)).unwrap();
    let with = format!("{line}\n{}\n", line.replace(record, more));
    fs::write(&journal, text.replace(&format!("{line}\n"), &with)).unwrap();
    sealed::reseal(&dir).unwrap();
    let report = audit(&dir);
    let rule = "every file follows from the source";
    assert!(finds(&report, "source", rule), "{}", shown(&report));
}

#[test]
fn the_cells_of_an_aggregate_are_derived_again_from_their_table() {
    let change = |make: fn(&mut Value)| {
        let (home, dir) = copied("x86_1/public-2026");
        let file = dir.join("cells.json");
        let mut value: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        make(&mut value);
        fs::write(&file, serde_json::to_string_pretty(&value).unwrap() + "\n").unwrap();
        sealed::reseal(&dir).unwrap();
        (home, audit(&dir))
    };
    let (_home, sound) = change(|_| ());
    assert_eq!(shown(&sound), "");
    let changes: [fn(&mut Value); 2] = [
        |v| {
            v["tables"][1]["rows"].as_array_mut().unwrap().pop();
        },
        |v| v["tables"][2]["rows"][0][1]["text"] = "1.0".into(),
    ];
    for make in changes {
        let (_home, report) = change(make);
        let rule = "the file follows from the source";
        assert!(finds(&report, "cells.json", rule), "{}", shown(&report));
    }
}

#[test]
fn claimed_sizes_are_held_against_the_catalogue_of_the_project() {
    let (home, dir) = small();
    let data = home.path().join("performance/data/x86_1");
    fs::create_dir_all(&data).unwrap();
    let place = data.join("a");
    fs::rename(&dir, &place).unwrap();
    fs::rename(seal_of(&dir), seal_of(&place)).unwrap();
    let audited = |row: &str| {
        let text =
            format!("ID;Instance;PublicKeyBytes;CiphertextBytes;SignatureBytes;Basis\n{row}\n");
        fs::write(home.path().join("performance/external_sizes.csv"), text).unwrap();
        audit(&place)
    };
    let record = "records/sign-09/dove_a_128.ref.reference__sign.json";
    let rule = "the API claims the published size";
    for (row, pointer) in [
        ("sign-09;dove_a_128;1312;-;2420;encoded", None),
        ("sign-09;dove_b_256;1;-;1;encoded", None),
        ("sign-09;dove_a_128;1312;-;9;nominal-variable", None),
        (
            "sign-09;dove_a_128;1312;-;9;maximum-variable",
            Some("/sizes/signature_bytes"),
        ),
        (
            "sign-09;dove_a_128;1313;-;2420;encoded",
            Some("/sizes/public_key_bytes"),
        ),
        (
            "sign-09;dove_a_128;1313;-;2420;nominal-variable",
            Some("/sizes/public_key_bytes"),
        ),
    ] {
        let report = audited(row);
        let found = report.findings.iter().find(|f| f.file == record);
        assert_eq!(
            found.map(|f| f.pointer.as_str()),
            pointer,
            "{row}\n{}",
            shown(&report)
        );
        assert!(found.is_none_or(|f| f.rule == rule));
        assert_eq!(report.is_refuted(), pointer.is_some(), "{row}");
    }
}

#[test]
fn the_commands_sign_a_seal_and_find_who_did_not() {
    if !have("ssh-keygen", "openssh-client") {
        return;
    }
    let (home, _dir) = small();
    let make = |name: &str| {
        let output = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name])
            .current_dir(home.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let public = fs::read_to_string(home.path().join(format!("{name}.pub"))).unwrap();
        let allowed = format!("{name}@example.org {public}");
        fs::write(home.path().join(format!("{name}.allowed")), allowed).unwrap();
    };
    make("lab");
    make("other");
    let audited = |signer: &str| {
        let allowed = format!("{signer}.allowed");
        command(
            home.path(),
            &["audit", SMALL, "--allowed-signers", &allowed],
        )
    };
    let rule = "the seal is signed by an allowed signer";
    let (status, said) = audited("lab");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(rule), "{said}");
    let (status, said) = command(home.path(), &["seal", "--run", SMALL, "--sign", "lab"]);
    assert_eq!(status, Some(0), "{said}");
    let (status, said) = audited("lab");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("signed by lab@example.org"), "{said}");
    let (status, said) = audited("other");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(rule), "{said}");
}
