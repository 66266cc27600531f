//! Forgers who know the format: files changed together, digests, journal, manifest and seal made again. What
//! an audit recomputes finds them; what it cannot is listed, key by key.

use crate::support::datasets::small;
use crate::support::files;
use harness::audit::{audit, Report};
use harness::hash::sha256;
use harness::testing::sealed;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const IDENTITY: &str = "sign-09/dove_a_128/ref/reference";
const KAT: &str = "kat/sign-09/dove_a_128.ref.reference.timed.json";

/// File of an operation.
fn of(folder: &str, operation: &str) -> String {
    format!("{folder}/sign-09/dove_a_128.ref.reference__{operation}.json")
}

fn read(dir: &Path, file: &str) -> Value {
    serde_json::from_slice(&fs::read(dir.join(file)).unwrap()).unwrap()
}

fn write(dir: &Path, file: &str, value: &Value) {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap();
    bytes.push(b'\n');
    fs::write(dir.join(file), bytes).unwrap();
}

fn edit(dir: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    let mut value = read(dir, file);
    change(&mut value);
    write(dir, file, &value);
}

/// Evidence files below a folder, or all.
fn evidence(dir: &Path, folder: &str) -> Vec<String> {
    files(dir)
        .into_iter()
        .map(|file| file.display().to_string())
        .filter(|file| file.starts_with(folder) && file.ends_with(".json"))
        .collect()
}

fn everywhere(dir: &Path, key: &str, word: &str) {
    for file in evidence(dir, "") {
        edit(dir, &file, |v| {
            if v.get(key).is_some() {
                v[key] = word.into();
            }
        });
    }
}

fn remove(dir: &Path, folder: &str) {
    for file in evidence(dir, folder) {
        fs::remove_file(dir.join(file)).unwrap();
    }
}

/// Changes the lines of the journal; sealing again makes the chain.
fn journal(dir: &Path, change: impl FnOnce(&mut Vec<Value>)) {
    let file = dir.join("journal.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    change(&mut lines);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(file, text).unwrap();
}

fn is(line: &Value, event: &str) -> bool {
    line["event"] == event
}

/// Nothing is left of the row but the row itself.
fn never_built(dir: &Path) {
    for folder in ["records/", "calibrate/", "memory/", "profile/", "kat/"] {
        remove(dir, folder);
    }
    fs::remove_file(dir.join(KAT.replace(".json", ".log"))).unwrap();
    no_attempts(dir, "");
    edit(dir, "build.json", |v| {
        (v["rows"], v["missing"]) = (json!([]), json!({}));
    });
}

/// Takes lines about workers of a record out.
fn no_attempts(dir: &Path, of: &str) {
    let about = |line: &Value| line["record"].as_str().is_some_and(|r| r.contains(of));
    journal(dir, |lines| lines.retain(|line| !about(line)));
}

fn row(dir: &Path, status: &str, code: &str, text: &str) {
    edit(dir, "campaign.json", |v| {
        v["rows"][0]["status"] = status.into();
        v["rows"][0]["reason"] = json!({"code": code, "text": text});
    });
    if status == "failed" {
        // What failed is noted after the campaign was written down, before the seal.
        journal(dir, |lines| {
            let mut note = lines.last().unwrap().clone();
            let line = note.as_object_mut().unwrap();
            line.shift_remove("manifest_sha256");
            line["event"] = "note".into();
            line.insert("text".into(), format!("{IDENTITY} failed: {text}").into());
            let last = lines.len() - 1;
            lines.insert(last, note);
        });
    }
}

/// Digests that files have of each other, made again.
fn settle(dir: &Path) {
    let digest = |file: &str| fs::read(dir.join(file)).map(|bytes| sha256(&bytes)).ok();
    let environment = digest("environment/0.json").unwrap();
    for file in evidence(dir, "") {
        edit(dir, &file, |v| {
            let sessions = v.get_mut("sessions").and_then(Value::as_array_mut);
            for session in sessions.into_iter().flatten() {
                session["environment_sha256"] = environment.clone().into();
            }
            if file.starts_with("kat/") {
                let log = digest(v["log"].as_str().unwrap());
                v["log_sha256"] = log.into();
            }
        });
    }
    let kat = digest(KAT);
    for file in evidence(dir, "records/") {
        edit(dir, &file, |v| {
            if let (Some(kat), Some(true)) = (&kat, v.get("kat").map(Value::is_object)) {
                v["kat"]["sha256"] = kat.clone().into();
            }
        });
    }
    sealed::reseal(dir).unwrap();
}

fn shown(report: &Report) -> String {
    report.findings.iter().map(|f| format!("{f}\n")).collect()
}

/// Whether nothing but the content tells a forgery from a sound dataset.
fn chain_is_sound(report: &Report) -> bool {
    let chain = [
        "chain",
        "manifest",
        "SHA-256 of the line",
        "digest",
        "in order",
        "is numbered",
    ];
    report
        .findings
        .iter()
        .all(|f| !chain.iter().any(|word| f.rule.contains(word)))
}

/// Time of day, `seconds` later.
fn later(time: &Value, seconds: f64) -> Value {
    let time: jiff::Timestamp = time.as_str().unwrap().parse().unwrap();
    let time = time + jiff::SignedDuration::from_secs_f64(seconds);
    format!("{time:.6}").into()
}

/// The request of the first attempt, changed.
fn request(dir: &Path, change: fn(&mut Value)) {
    edit(dir, &of("records", "sign"), |v| {
        let word = &mut v["trials"][0]["attempts"][0]["command"][1];
        let mut request: Value = serde_json::from_str(word.as_str().unwrap()).unwrap();
        change(&mut request);
        *word = request.to_string().into();
    });
}

struct Forged {
    name: &'static str,
    make: fn(&Path),
    /// File and part of the rule of a finding that there must be.
    finding: (&'static str, &'static str),
}

const SIGN: &str = "records/sign-09/dove_a_128.ref.reference__sign.json";
const AA: &str = "records/sign-09/dove_a_128.ref.reference__verify.aa.json";
const CAMPAIGN: &str = "campaign.json";
const JOURNAL: &str = "journal.jsonl";

const FORGED: &[Forged] = &[
    Forged {
        name: "a measured row is said to have failed, and its evidence is gone",
        make: |dir| {
            row(dir, "failed", "crash", "it crashed");
            for folder in ["records/", "calibrate/", "memory/", "profile/"] {
                remove(dir, folder);
            }
        },
        finding: (SIGN, "a worker that the journal saw start"),
    },
    Forged {
        name: "the same, without the lines about its workers",
        make: |dir| {
            row(dir, "failed", "crash", "it crashed");
            for folder in ["records/", "calibrate/", "memory/", "profile/"] {
                remove(dir, folder);
            }
            no_attempts(dir, "");
        },
        finding: (CAMPAIGN, "a row is what its evidence makes of it"),
    },
    Forged {
        name: "a measured row is said not to be finished, and one operation is gone",
        make: |dir| {
            let text = "keygen (measure): there is no evidence of it";
            row(dir, "partial", "not_recorded", text);
            remove(dir, &of("records", "keygen"));
            no_attempts(dir, "keygen");
        },
        finding: (
            "records/sign-09/dove_a_128.ref.reference__keygen.json",
            "what was built and passed its known answers has all its evidence",
        ),
    },
    Forged {
        name: "a measured row is said to have been left out by the plan",
        make: |dir| {
            row(dir, "skipped", "not_in_plan", "plan guide takes the first");
            never_built(dir);
        },
        finding: (CAMPAIGN, "a row is left out for what the plan"),
    },
    Forged {
        name: "a measured row is said to have been put off",
        make: |dir| {
            row(dir, "skipped", "deferred", "the plan defers it");
            never_built(dir);
        },
        finding: (CAMPAIGN, "a row is left out for what the plan"),
    },
    Forged {
        name: "a row that takes part was not built",
        make: |dir| {
            row(dir, "partial", "interrupted", "the run is not finished");
            never_built(dir);
        },
        finding: (CAMPAIGN, "what takes part is built"),
    },
    Forged {
        name: "a row failed although all its evidence is complete",
        make: |dir| row(dir, "failed", "crash", "it crashed"),
        finding: (CAMPAIGN, "a row is what its evidence makes of it"),
    },
    Forged {
        name: "a build failed although it was measured",
        make: |dir| {
            row(dir, "failed", "build_failed", "no such file");
            edit(dir, "build.json", |v| {
                v["rows"][0]["status"] = "failed".into();
                v["rows"][0]["reason"] = json!({"code": "build_failed", "text": "no such file"});
            });
        },
        finding: (SIGN, "no evidence is of what was not built"),
    },
    Forged {
        name: "a failure that nobody noted",
        make: |dir| {
            row(dir, "failed", "crash", "it crashed");
            journal(dir, |lines| lines.retain(|line| !is(line, "note")));
        },
        finding: (CAMPAIGN, "the journal notes each row that failed"),
    },
    Forged {
        name: "the second timing is gone",
        make: |dir| {
            remove(dir, AA);
            no_attempts(dir, ".aa.json");
        },
        finding: (AA, "the cheapest verification is timed a second time"),
    },
    Forged {
        name: "a phase that never ended",
        make: |dir| journal(dir, |l| l.retain(|l| l["phase"] != "memory")),
        finding: (JOURNAL, "a sealed run has ended all its phases"),
    },
    Forged {
        name: "another configuration",
        make: |dir| edit(dir, CAMPAIGN, |v| v["config_sha256"] = sha256(b"x").into()),
        finding: (
            CAMPAIGN,
            "campaign.json is of the run that the journal began",
        ),
    },
    Forged {
        name: "another selection",
        make: |dir| {
            edit(dir, CAMPAIGN, |v| {
                v["only"] = ".".into();
                v["missing"].as_object_mut().unwrap().shift_remove("/only");
            });
        },
        finding: (
            CAMPAIGN,
            "campaign.json is of the run that the journal began",
        ),
    },
    Forged {
        name: "other CPUs were asked for",
        make: |dir| journal(dir, |lines| lines[0]["cpus"] = json!([3])),
        finding: (
            CAMPAIGN,
            "campaign.json is of the run that the journal began",
        ),
    },
    Forged {
        name: "a campaign without a plan",
        make: |dir| {
            edit(dir, CAMPAIGN, |v| {
                v["plan"] = Value::Null;
                let none = json!({"code": "not_in_plan", "text": "not asked for"});
                let mut missing: BTreeMap<String, Value> =
                    serde_json::from_value(v["missing"].take()).unwrap();
                missing.insert("/plan".to_owned(), none);
                v["missing"] = json!(missing);
            });
        },
        finding: (CAMPAIGN, "a campaign has its plan"),
    },
    Forged {
        name: "another order of trials",
        make: |dir| journal(dir, |l| l[0]["order_seed"] = "1".repeat(32).into()),
        finding: ("records/", "trials are made in the order that the seed"),
    },
    Forged {
        name: "known answers that end before they begin",
        make: |dir| {
            edit(dir, KAT, |v| v["end"] = later(&v["start"], -0.005));
        },
        finding: (KAT, "a moment lies between the lines of the journal"),
    },
    Forged {
        name: "known answers from before their phase",
        make: |dir| {
            edit(dir, KAT, |v| {
                v["start"] = "2026-01-02T03:04:05.020000Z".into()
            });
        },
        finding: (KAT, "a moment lies between the lines of the journal"),
    },
    Forged {
        name: "known answers after the timing",
        make: |dir| {
            journal(dir, |lines| {
                let kat = lines.iter().position(|l| l["path"] == KAT).unwrap();
                let mut line = lines[kat].clone();
                let at = lines.len() - 1;
                for key in ["utc", "monotonic_ns"] {
                    line[key] = lines[at][key].clone();
                }
                lines.insert(at, line);
            });
        },
        finding: (SIGN, "attempts begin after the known answers"),
    },
    Forged {
        name: "trials that change places",
        make: |dir| {
            edit(dir, &of("records", "keygen"), |v| {
                let trials = v["trials"].as_array_mut().unwrap();
                let first = trials[0]["attempts"][0]["started_utc"].clone();
                let second = trials[1]["attempts"][0]["started_utc"].clone();
                trials[0]["attempts"][0]["started_utc"] = second;
                trials[1]["attempts"][0]["started_utc"] = first;
            });
        },
        finding: ("records/", "a moment lies between the lines of the journal"),
    },
    Forged {
        name: "an attempt at another moment of the campaign",
        make: |dir| {
            let start = read(dir, CAMPAIGN)["started_utc"].clone();
            edit(dir, SIGN, |v| {
                v["trials"][0]["attempts"][0]["started_utc"] = start;
            });
        },
        finding: (SIGN, "a moment lies between the lines of the journal"),
    },
    Forged {
        name: "a jump of the clock that was none, and an attempt that it is to explain",
        make: |dir| {
            journal(dir, |lines| {
                let at = lines.iter().position(|l| is(l, "attempt_begun")).unwrap();
                let mut jump = lines[at].clone();
                let line = jump.as_object_mut().unwrap();
                for key in ["record", "trial", "attempt"] {
                    line.shift_remove(key);
                }
                line["event"] = "clock_jump".into();
                line.insert("milliseconds".into(), json!(-90_000_000));
                lines.insert(at, jump);
            });
            edit(dir, SIGN, |v| {
                let at = &mut v["trials"][0]["attempts"][0]["started_utc"];
                *at = later(at, -3600.0);
            });
        },
        finding: (JOURNAL, "a jump of the clock is as large as its stamps say"),
    },
    Forged {
        name: "a jump of the clock that was one does not explain other moments",
        make: |dir| {
            jump(dir);
            edit(dir, SIGN, |v| {
                let attempt = &mut v["trials"][0]["attempts"][0];
                attempt["started_utc"] = later(&attempt["started_utc"], -1800.0);
            });
        },
        finding: (SIGN, "a moment lies between the lines of the journal"),
    },
    Forged {
        name: "a jump of the clock that is not said",
        make: |dir| {
            jump(dir);
            journal(dir, |lines| lines.retain(|line| !is(line, "clock_jump")));
        },
        finding: (JOURNAL, "UTC goes forward with the monotonic clock"),
    },
    Forged {
        name: "a session that looked at the machine after it began",
        make: |dir| {
            edit(dir, "environment/0.json", |v| {
                v["started_utc"] = later(&v["started_utc"], 0.1);
            });
        },
        finding: ("environment/0.json", "a session looks at the machine"),
    },
    Forged {
        name: "a repeat for another flag",
        make: |dir| {
            journal(dir, |lines| {
                let retry = lines.iter_mut().find(|l| is(l, "retry")).unwrap();
                retry["flags"] = json!(["migrations"]);
            });
        },
        finding: (SIGN, "the journal says which flags asked for a repeat"),
    },
    Forged {
        name: "inputs by another rule",
        make: |dir| edit(dir, SIGN, |v| v["inputs"]["rule"] = "fixed".into()),
        finding: (SIGN, "inputs are made by the rule of the plan"),
    },
    Forged {
        name: "a plan with another rule of inputs",
        make: |dir| edit(dir, CAMPAIGN, |v| v["plan"]["inputs"] = "fixed".into()),
        finding: (SIGN, "inputs are made by the rule of the plan"),
    },
    Forged {
        name: "no seeds",
        make: |dir| edit(dir, SIGN, |v| v["inputs"]["seeds"] = json!([])),
        finding: (SIGN, "each trial has the seed of each of its streams"),
    },
    Forged {
        name: "a seed less",
        make: |dir| {
            edit(dir, SIGN, |v| {
                v["inputs"]["seeds"].as_array_mut().unwrap().remove(4);
            });
        },
        finding: (SIGN, "each trial has the seed of each of its streams"),
    },
    Forged {
        name: "the key of another trial",
        make: |dir| {
            edit(dir, SIGN, |v| {
                let seeds = v["inputs"]["seeds"].as_array_mut().unwrap();
                seeds[3]["seed"] = seeds[0]["seed"].clone();
            });
        },
        finding: (SIGN, "a seed is the hash of its purpose"),
    },
    Forged {
        name: "messages of another length",
        make: |dir| edit(dir, SIGN, |v| v["inputs"]["message_bytes"] = 32.into()),
        finding: (SIGN, "messages of a campaign have one length"),
    },
    Forged {
        name: "more keys",
        make: |dir| edit(dir, SIGN, |v| v["inputs"]["keys"] = 24.into()),
        finding: (SIGN, "keys and messages of a trial follow from its calls"),
    },
    Forged {
        name: "more messages",
        make: |dir| edit(dir, SIGN, |v| v["inputs"]["messages"] = 1.into()),
        finding: (SIGN, "keys and messages of a trial follow from its calls"),
    },
    Forged {
        name: "another CPU in a command",
        make: |dir| request(dir, |r| r["cpu"] = 5.into()),
        finding: (SIGN, "a worker was asked for what the record says (cpu)"),
    },
    Forged {
        name: "another library in a command",
        make: |dir| request(dir, |r| r["library"]["sha256"] = sha256(b"x").into()),
        finding: (
            SIGN,
            "a worker was asked for what the record says (library)",
        ),
    },
    Forged {
        name: "fewer calls in a command",
        make: |dir| request(dir, |r| r["task"]["iterations"] = 20.into()),
        finding: (
            SIGN,
            "a worker was asked for what the record says (iterations)",
        ),
    },
    Forged {
        name: "another trial in a command",
        make: |dir| request(dir, |r| r["task"]["inputs"]["trial"] = 3.into()),
        finding: (SIGN, "a worker was asked for what the record says (trial)"),
    },
    Forged {
        name: "no command",
        make: |dir| {
            edit(dir, SIGN, |v| {
                v["trials"][0]["attempts"][0]["command"] = json!([])
            });
        },
        finding: (SIGN, "an attempt has its command"),
    },
    Forged {
        name: "link-time optimisation in the memory library",
        make: |dir| {
            edit(dir, &of("memory", "sign"), |v| {
                v["lto_removed"] = true.into()
            })
        },
        finding: ("memory/", "the library is the one of build.json"),
    },
    Forged {
        name: "link-time optimisation in the profile library",
        make: |dir| {
            edit(dir, &of("profile", "sign"), |v| {
                v["lto_removed"] = true.into()
            })
        },
        finding: ("profile/", "the library is the one of build.json"),
    },
    Forged {
        name: "link-time optimisation that no flag asks for",
        make: |dir| {
            edit(dir, "build.json", |v| {
                v["rows"][0]["lto_removed"] = true.into()
            });
            for folder in ["memory/", "profile/"] {
                for file in evidence(dir, folder) {
                    edit(dir, &file, |v| v["lto_removed"] = true.into());
                }
            }
        },
        finding: ("build.json", "link-time optimisation is taken out"),
    },
    Forged {
        name: "cycles of the kernel too",
        make: |dir| edit(dir, SIGN, |v| v["cycle_source"]["user_only"] = false.into()),
        finding: (SIGN, "core cycles are those of user mode"),
    },
    Forged {
        name: "cycles of a counter that failed its self-test",
        make: |dir| {
            edit(dir, SIGN, |v| {
                v["cycle_source"]["self_test"] = json!({
                    "adds": 1000, "counted": 1, "instructions": 1000, "nanoseconds": 500,
                    "time_enabled_running": [1, 1], "plausible": false, "text": "too few"
                });
                let missing = v["missing"].as_object_mut().unwrap();
                missing.shift_remove("/cycle_source/self_test");
            });
        },
        finding: (SIGN, "a source that failed its self-test"),
    },
    Forged {
        name: "another reason of a null",
        make: |dir| {
            edit(dir, SIGN, |v| {
                v["missing"]["/derived/mean_ticks"]["code"] = "not_recorded".into();
            });
        },
        finding: (SIGN, "the code of a reason follows from what is there"),
    },
    Forged {
        name: "a migration without its flag",
        make: |dir| {
            edit(dir, SIGN, |v| {
                v["trials"][0]["attempts"][0]["switches"] =
                    json!({"voluntary": 0, "involuntary": 0, "migrations": 1});
            });
        },
        finding: (SIGN, "an attempt is flagged by its own figures"),
    },
    Forged {
        name: "a reason for a verdict that has none",
        make: |dir| {
            edit(dir, SIGN, |v| {
                let reasons = v["derived"]["stability"]["reasons"].as_array_mut().unwrap();
                match reasons.is_empty() {
                    true => reasons.push("trial means spread over 2.1% (limit 2%)".into()),
                    false => reasons.clear(),
                }
            });
        },
        finding: (SIGN, "derived values follow from the counted attempts"),
    },
    Forged {
        name: "a machine that is not registered, of class registered",
        make: |dir| {
            everywhere(dir, "system", "local");
            journal(dir, |lines| lines[0]["system"] = "local".into());
        },
        finding: (
            CAMPAIGN,
            "a machine that is no registered system is of class local",
        ),
    },
    Forged {
        name: "a registered machine, of class local",
        make: |dir| everywhere(dir, "class", "local"),
        finding: (
            CAMPAIGN,
            "nothing describes a machine that is not registered",
        ),
    },
    Forged {
        name: "a machine of another architecture, of class registered",
        make: |dir| {
            edit(dir, "environment/0.json", |v| {
                v["stable"]["architecture"] = "aarch64".into();
            });
        },
        finding: (
            CAMPAIGN,
            "a run on another architecture than the system's is emulated",
        ),
    },
    Forged {
        name: "another processor than that of the registered system",
        make: |dir| {
            let config =
                "[[system]]\nid = \"x86_1\"\narch = \"x86_64\"\ncpu_model = \"i7-12700\"\n";
            fs::write(dir.with_file_name("campaign.toml"), config).unwrap();
            edit(dir, "environment/0.json", |v| {
                v["stable"]["cpu_model"] = "Example CPU".into();
            });
        },
        finding: (CAMPAIGN, "a registered machine matches its system"),
    },
    Forged {
        name: "an import's class",
        make: |dir| everywhere(dir, "class", "imported"),
        finding: (CAMPAIGN, "an import's journal says that it is one"),
    },
    Forged {
        name: "a host that was not ready, and was",
        make: |dir| {
            edit(dir, "environment/0.json", |v| v["ready"] = false.into());
        },
        finding: ("environment/0.json", "a host is ready when no item"),
    },
    Forged {
        name: "a host that was not ready and for which nothing was allowed",
        make: |dir| {
            edit(dir, "environment/0.json", |v| {
                v["ready"] = false.into();
                v["check"] = json!([{
                    "item": "governor", "cpu": 2, "advice": false, "state": "bad",
                    "value": "powersave", "source": "cpufreq", "remedy": "campaign tune"
                }]);
            });
            for file in evidence(dir, "records/") {
                edit(dir, &file, |v| v["host_ready"] = false.into());
            }
        },
        finding: (SIGN, "a host that is not ready is said in campaign.json"),
    },
    Forged {
        name: "a counter that an attempt read in a way that its source does not have",
        make: |dir| {
            edit(dir, SIGN, |v| {
                v["trials"][0]["attempts"][0]["read_by"] = "rdpmc".into()
            });
        },
        finding: (SIGN, "where that is the other way than its record's"),
    },
    Forged {
        name: "keys of memory and profile that the plan does not give",
        make: |dir| edit(dir, CAMPAIGN, |v| v["plan"]["keys"] = 11.into()),
        finding: ("memory/", "as many keys as the plan gives"),
    },
];

/// The clock went an hour ahead at the beginning of the timing, and the journal says so; every moment after
/// it is an hour later.
fn jump(dir: &Path) {
    const HOUR: f64 = 3600.0;
    journal(dir, |lines| {
        let at = lines.iter().position(|l| is(l, "attempt_begun")).unwrap();
        for line in &mut lines[at..] {
            line["utc"] = later(&line["utc"], HOUR);
        }
        let mut jump = lines[at].clone();
        let before = lines[at - 1]["monotonic_ns"].as_i64().unwrap();
        assert!(before < jump["monotonic_ns"].as_i64().unwrap());
        let line = jump.as_object_mut().unwrap();
        for key in ["record", "trial", "attempt"] {
            line.shift_remove(key);
        }
        line["event"] = "clock_jump".into();
        line.insert("milliseconds".into(), json!(3_600_000));
        lines.insert(at, jump);
    });
    for file in evidence(dir, "records/") {
        edit(dir, &file, |v| {
            for trial in v["trials"].as_array_mut().unwrap() {
                for attempt in trial["attempts"].as_array_mut().unwrap() {
                    attempt["started_utc"] = later(&attempt["started_utc"], HOUR);
                }
            }
        });
    }
    edit(dir, CAMPAIGN, |v| {
        v["ended_utc"] = later(&v["ended_utc"], HOUR)
    });
}

#[test]
fn what_a_careful_forger_changes_is_found_where_it_is() {
    let mut missed = String::new();
    for forged in FORGED {
        let (_home, dir) = small();
        (forged.make)(&dir);
        settle(&dir);
        let report = audit(&dir);
        let (file, rule) = forged.finding;
        let found = report
            .findings
            .iter()
            .any(|f| f.file.starts_with(file) && f.rule.contains(rule));
        if !report.is_refuted() || !found || !chain_is_sound(&report) {
            missed += &format!("{}:\n{}\n", forged.name, shown(&report));
        }
    }
    assert_eq!(missed, "");
}

#[test]
fn a_jump_of_the_clock_that_the_journal_explains_is_sound() {
    let (_home, dir) = small();
    jump(&dir);
    settle(&dir);
    assert_eq!(shown(&audit(&dir)), "");
}

#[test]
fn a_careful_forger_who_changes_nothing_leaves_a_sound_dataset() {
    let (_home, dir) = small();
    settle(&dir);
    assert_eq!(shown(&audit(&dir)), "");
}

/// What only one place tells: nothing else says it, so no recomputation can find that it was changed.
/// Folder or file, and the place with `*` for an index or a name, `[]` for an entry taken out. The format's
/// page says it in words.
const TOLD_ONCE: &[(&str, &str)] = &[
    // Words for people, and what pages call things.
    ("build.json", "/missing/*/text"),
    ("calibrate", "/missing/*/text"),
    ("campaign.json", "/missing/*/text"),
    ("kat", "/missing/*/text"),
    ("environment", "/missing/*/text"),
    ("records", "/missing/*/text"),
    ("campaign.json", "/candidates/*/category"),
    ("campaign.json", "/candidates/*/function"),
    ("campaign.json", "/candidates/*/instances/*/security_bits"),
    ("campaign.json", "/candidates/*/name"),
    ("campaign.json", "/candidates/*/wrap_column"),
    ("campaign.json", "/reference_instance"),
    ("campaign.json", "/system_description"),
    ("campaign.json", "/title"),
    // The request: what was allowed and what the configuration, whose digest is there, asked for.
    ("campaign.json", "/allow_unfixed_host"),
    (
        "campaign.json",
        "/plan/disturbed/involuntary_switches_per_s",
    ),
    ("campaign.json", "/plan/disturbed/min_clock_ratio"),
    ("campaign.json", "/plan/disturbed/sibling_busy_percent"),
    ("campaign.json", "/plan/kat_timeout_s"),
    ("campaign.json", "/plan/keys_expensive"),
    ("campaign.json", "/plan/keys_limit_s"),
    ("campaign.json", "/tool/version"),
    // How libraries were built: only building them again tells.
    ("build.json", "/rows/*/compiler"),
    ("build.json", "/rows/*/compiler_version"),
    ("build.json", "/rows/*/flags"),
    ("build.json", "/rows/*/libraries/memory/bytes"),
    ("build.json", "/rows/*/libraries/profile/bytes"),
    ("build.json", "/rows/*/libraries/timed/bytes"),
    ("build.json", "/rows/*/link_flags"),
    ("build.json", "/rows/*/source_files"),
    ("build.json", "/rows/*/source_sha256"),
    // The machine, as it described itself.
    ("environment", "/cpus/*/governor"),
    ("environment", "/cpus/*/max_khz"),
    ("environment", "/cpus/*/min_khz"),
    ("environment", "/stable/build_tool"),
    ("environment", "/stable/compiler"),
    ("environment", "/stable/cpu_model"),
    ("environment", "/stable/cpus_allowed/*"),
    ("environment", "/stable/cpus_allowed[]"),
    ("environment", "/stable/kernel"),
    ("environment", "/stable/logical_cpus_online"),
    ("environment", "/stable/memory_total_kib"),
    ("environment", "/stable/os"),
    ("environment", "/stable/virtualization"),
    ("environment", "/volatile/intel_pstate_no_turbo"),
    ("environment", "/volatile/perf_event_paranoid"),
    ("environment", "/volatile/smt_control"),
    ("records", "/cycle_source/event"),
    ("records", "/cycle_source/pmu"),
    ("records", "/cycle_source/read_cost_ns"),
    ("profile", "/ticks/hz"),
    ("profile", "/wrapper_cost_ticks"),
    // Raw figures, as they were read once. What is recomputed from them may stay the same.
    ("calibrate", "/calls_ns/*"),
    ("calibrate", "/calls_ns[]"),
    ("calibrate", "/outputs/pk"),
    ("calibrate", "/outputs/signatures"),
    ("calibrate", "/outputs/sk"),
    ("memory", "/empty/stack_peak_bytes"),
    ("memory", "/process/baseline_rss_bytes"),
    ("memory", "/process/peak_rss_bytes"),
    ("memory", "/runs/*/allocations"),
    ("memory", "/runs/*/leaked_bytes"),
    ("memory", "/runs/*/stack_peak_bytes"),
    ("profile", "/calls/*/in_bits"),
    ("profile", "/calls/*/out_bits"),
    ("profile", "/passes/*/cpu_ns"),
    ("profile", "/passes/*/ticks/*"),
    ("profile", "/passes/*/wall_ns"),
    ("records", "/trials/*/attempts/*/baseline_rss_bytes"),
    ("records", "/trials/*/attempts/*/command/*"),
    ("records", "/trials/*/attempts/*/flags/*/value"),
    ("records", "/trials/*/attempts/*/peak_rss_bytes"),
    ("records", "/trials/*/attempts/*/steal"),
    ("records", "/trials/*/attempts/*/system_ns"),
    ("records", "/trials/*/attempts/*/user_ns"),
];

/// Every place below a value that holds a number, a word, a truth value or a list with entries: its pointer,
/// and its pattern.
fn places(value: &Value, pointer: &str, pattern: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            // Digests that a forger makes again.
            let again = |key: &str| matches!(key, "environment_sha256" | "log_sha256");
            let members = members.iter().filter(|(key, _)| !again(key));
            for (key, item) in members.filter(|(key, _)| pattern != "/kat" || *key != "sha256") {
                // Names of functions and reasons' pointers are keys here.
                let named = ["/missing", "/derived/share", "/derived/calls_per_operation"];
                let key = key.replace('~', "~0").replace('/', "~1");
                let step = if named.contains(&pattern) { "*" } else { &key };
                let below = (format!("{pointer}/{key}"), format!("{pattern}/{step}"));
                places(item, &below.0, &below.1, found);
            }
        }
        Value::Array(items) => {
            if !items.is_empty() {
                found.push((pointer.to_owned(), format!("{pattern}[]")));
            }
            for (index, item) in items.iter().enumerate() {
                let below = (format!("{pointer}/{index}"), format!("{pattern}/*"));
                places(item, &below.0, &below.1, found);
            }
        }
        _ => found.push((pointer.to_owned(), pattern.to_owned())),
    }
}

/// Another value of the same type that a careful forger would write.
fn another(value: &Value) -> Value {
    match value {
        Value::Bool(is) => (!is).into(),
        Value::Number(n) if n.is_u64() => (n.as_u64().unwrap() + 1).into(),
        Value::Number(n) => (n.as_f64().unwrap() * 1.5 + 0.5).into(),
        Value::Array(items) => items[1..].into(),
        Value::String(word) => {
            let digest = word.len() >= 16 && word.bytes().all(|b| b.is_ascii_hexdigit());
            let time: Option<jiff::Timestamp> = word.parse().ok();
            match (digest, time) {
                (true, _) => {
                    let first = if word.starts_with('0') { "1" } else { "0" };
                    format!("{first}{}", &word[1..]).into()
                }
                (_, Some(_)) => later(value, 86_400.0),
                _ => format!("{word}x").into(),
            }
        }
        other => other.clone(),
    }
}

#[test]
fn whatever_is_told_twice_is_held_against_the_other_and_what_is_told_once_is_listed() {
    let (_home, dir) = small();
    let mut first = BTreeMap::new();
    for file in evidence(&dir, "") {
        let kind = file.split('/').next().unwrap().to_owned();
        let mut found = Vec::new();
        places(&read(&dir, &file), "", "", &mut found);
        for (pointer, pattern) in found {
            first
                .entry((kind.clone(), pattern))
                .or_insert((file.clone(), pointer));
        }
    }
    assert!(first.len() > 200, "{}", first.len());
    let mut told_once = Vec::new();
    for ((kind, pattern), (file, pointer)) in first {
        let (_home, dir) = small();
        edit(&dir, &file, |v| {
            let place = v.pointer_mut(&pointer).unwrap();
            *place = another(place);
        });
        settle(&dir);
        if !audit(&dir).is_refuted() {
            told_once.push((kind, pattern));
        }
    }
    // Exact in both directions: what is found meanwhile leaves the list.
    let listed = TOLD_ONCE
        .iter()
        .map(|(kind, pattern)| (kind.to_string(), pattern.to_string()));
    let (listed, told_once) = (BTreeSet::from_iter(listed), BTreeSet::from_iter(told_once));
    let shown = |set: &mut dyn Iterator<Item = &(String, String)>| -> String {
        set.map(|(kind, pattern)| format!("    ({kind:?}, {pattern:?}),\n"))
            .collect()
    };
    assert_eq!(
        shown(&mut told_once.difference(&listed)),
        "",
        "neither found nor listed"
    );
    assert_eq!(
        shown(&mut listed.difference(&told_once)),
        "",
        "listed, and found or not there"
    );
}
