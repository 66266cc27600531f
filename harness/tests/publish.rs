//! `campaign publish`: a sealed run becomes a dataset whole or not at all, and what must not leave the
//! lab does not. Signatures of seals.

use crate::support::{copy_tree, files, have, root, same_tree};
use harness::audit::audit;
use harness::publish::{publish, PublishError, Published, Request};
use harness::signature;
use harness::testing::{sealed, Synthetic};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// A campaign folder with a sealed run.
struct Lab {
    home: tempfile::TempDir,
    run: PathBuf,
}

impl Lab {
    fn new() -> Self {
        Lab::with(&Synthetic::default())
    }

    fn with(spec: &Synthetic) -> Self {
        let home = tempfile::tempdir().unwrap();
        let run = home.path().join("runs/x86_1-guide-1");
        sealed::write(spec, &run).unwrap();
        for folder in ["pages", "lib", "keys"] {
            fs::create_dir(run.join(folder)).unwrap();
            fs::write(run.join(folder).join("x"), folder).unwrap();
        }
        Lab { home, run }
    }

    /// Puts the project's configuration above the run, for the command.
    fn configure(&self) {
        let home = self.home.path();
        fs::copy(root().join("campaign.toml"), home.join("campaign.toml")).unwrap();
        for folder in ["performance/kat", "drivers/dilithium"] {
            copy_tree(&root().join(folder), &home.join(folder), &[]);
        }
    }

    fn request(&self) -> Request<'_> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        Request {
            root: self.home.path(),
            run: &self.run,
            id: None,
            current: false,
            partial: None,
            allow_unfixed_host: false,
            names: &NONE,
        }
    }

    fn publish(&self) -> Result<Published, PublishError> {
        publish(&self.request())
    }

    /// Changes a file of the run and seals it again.
    fn edit(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let path = self.run.join(file);
        let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        let text = serde_json::to_string_pretty(&value).unwrap() + "\n";
        fs::write(path, text).unwrap();
        sealed::reseal(&self.run).unwrap();
    }

    fn nothing_published(&self) {
        let data = self.home.path().join("performance/data/x86_1");
        let left = fs::read_dir(data).map_or(0, |entries| entries.count());
        assert_eq!(left, 0);
    }
}

const RECORD: &str = "records/sign-09/dove_a_128.ref.reference__sign.json";

#[test]
fn a_run_becomes_a_dataset_with_its_seal_and_without_what_stays_in_the_lab() {
    let lab = Lab::new();
    let published = publish(&Request {
        current: true,
        ..lab.request()
    })
    .unwrap();
    assert!(published.path.ends_with("performance/data/x86_1/guide-1"));
    for gone in ["pages", "lib", "keys"] {
        assert!(!published.path.join(gone).exists(), "{gone}");
        fs::remove_dir_all(lab.run.join(gone)).unwrap();
    }
    same_tree(&lab.run, &published.path);
    let report = audit(&published.path);
    assert_eq!(report.findings, []);
    assert_eq!(report.seal.as_ref(), Some(&published.seal));
    let data = lab.home.path().join("performance/data/x86_1");
    assert_eq!(
        fs::read_to_string(data.join("current")).unwrap(),
        "guide-1\n"
    );
}

#[test]
fn publishing_again_replaces_the_dataset_whole() {
    let lab = Lab::new();
    let first = lab.publish().unwrap();
    fs::write(first.path.join("stray"), "").unwrap();
    let again = lab.publish().unwrap();
    assert_eq!(first, again);
    assert_eq!(audit(&again.path).findings, []);
}

#[test]
fn a_stated_part_is_sealed_as_such() {
    let lab = Lab::new();
    let regex = Regex::new("sign-09/dove_a_128/.*/(sign|verify)$").unwrap();
    let request = Request {
        partial: Some(&regex),
        id: Some("part"),
        ..lab.request()
    };
    let published = publish(&request).unwrap();
    let report = audit(&published.path);
    assert_eq!(report.findings, []);
    let there: Vec<String> = files(&published.path.join("records"))
        .iter()
        .map(|f| f.display().to_string())
        .collect();
    assert_eq!(
        there,
        [
            "sign-09/dove_a_128.ref.reference__sign.json",
            "sign-09/dove_a_128.ref.reference__verify.aa.json",
            "sign-09/dove_a_128.ref.reference__verify.json",
        ]
    );
    let journal = fs::read_to_string(published.path.join("journal.jsonl")).unwrap();
    assert!(journal.contains("\"event\":\"subset\""), "{journal}");
    let whole = harness::dataset::Dataset::read(&lab.run).unwrap();
    assert_eq!(whole.subsets, []);
    let dataset = harness::dataset::Dataset::read(&published.path).unwrap();
    assert_eq!(dataset.subsets, [(whole.seal.unwrap(), regex.to_string())]);
    // A part from which something else was taken is not sound.
    fs::remove_file(published.path.join(RECORD)).unwrap();
    sealed::reseal(&published.path).unwrap();
    assert!(audit(&published.path).is_refuted());
    let nothing = Regex::new("no such thing").unwrap();
    let request = Request {
        partial: Some(&nothing),
        ..lab.request()
    };
    assert!(matches!(publish(&request), Err(PublishError::Nothing(_))));
}

#[test]
fn an_incomplete_run_is_refused_and_its_complete_part_is_not() {
    let lab = Lab::new();
    lab.edit("campaign.json", |campaign| {
        let row = &mut campaign["rows"][0];
        row["status"] = "failed".into();
        row["reason"] = serde_json::json!({"code": "crash", "text": "trial 3: signal 11"});
    });
    let error = lab.publish().unwrap_err();
    assert!(matches!(error, PublishError::Incomplete { .. }), "{error}");
    assert!(error.to_string().contains("trial 3: signal 11"), "{error}");
    lab.nothing_published();
    let regex = Regex::new("^toy/").unwrap();
    publish(&Request {
        partial: Some(&regex),
        ..lab.request()
    })
    .unwrap();
}

#[test]
fn a_record_that_is_not_there_makes_a_run_incomplete() {
    let lab = Lab::new();
    fs::remove_file(lab.run.join(RECORD)).unwrap();
    sealed::reseal(&lab.run).unwrap();
    let error = lab.publish().unwrap_err();
    assert!(error.to_string().contains(RECORD), "{error}");
}

#[test]
fn local_and_emulated_runs_never_leave_the_lab() {
    for class in ["local", "emulated"] {
        let lab = Lab::new();
        lab.edit("campaign.json", |campaign| campaign["class"] = class.into());
        let error = lab.publish().unwrap_err();
        assert!(
            matches!(error, PublishError::Class { class: of, .. } if of == class),
            "{error}"
        );
        lab.nothing_published();
    }
}

#[test]
fn an_unfixed_host_needs_its_flag() {
    let lab = Lab::with(&Synthetic {
        fixed_host: false,
        ..Synthetic::default()
    });
    let error = lab.publish().unwrap_err();
    assert!(matches!(error, PublishError::UnfixedHost { .. }), "{error}");
    assert!(error.to_string().contains("governor"), "{error}");
    lab.nothing_published();
    publish(&Request {
        allow_unfixed_host: true,
        ..lab.request()
    })
    .unwrap();
}

#[test]
fn names_and_paths_of_the_machine_are_found_as_whole_values_and_path_parts() {
    let names = BTreeSet::from(["vivo".to_owned(), "ada".to_owned()]);
    for (value, private) in [
        ("vivo", true),
        ("runs/ada/lib", true),
        ("/home/x/y", true),
        ("ASUS Vivobook S 15", false),
        ("adamant", false),
    ] {
        let lab = Lab::new();
        lab.edit(RECORD, |record| {
            record["trials"][0]["attempts"][0]["command"] = serde_json::json!([value]);
        });
        let result = publish(&Request {
            names: &names,
            ..lab.request()
        });
        match (result, private) {
            (Err(PublishError::Private { what, .. }), true) => {
                assert!(
                    what[0].contains("/trials/0/attempts/0/command/0"),
                    "{what:?}"
                );
                lab.nothing_published();
            }
            (Ok(_), false) => {}
            (other, _) => panic!("{value}: {other:?}"),
        }
    }
}

#[test]
fn the_command_takes_the_names_from_the_machine_that_it_runs_on() {
    let lab = Lab::new();
    lab.configure();
    lab.edit(RECORD, |record| {
        record["trials"][0]["attempts"][0]["command"] = serde_json::json!(["quetzal"]);
    });
    let publish = |variable: &str, value: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_campaign"))
            .args(["publish", "runs/x86_1-guide-1", "--id", "a"])
            .current_dir(lab.home.path())
            .env(variable, value)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    for (variable, value) in [
        ("USER", "quetzal"),
        ("LOGNAME", "quetzal"),
        ("SUDO_USER", "quetzal"),
        ("HOME", "/homes/quetzal"),
    ] {
        let (status, said) = publish(variable, value);
        assert_eq!(status, Some(1), "{variable}: {said}");
        assert!(
            said.contains("/trials/0/attempts/0/command/0"),
            "{variable}: {said}"
        );
        lab.nothing_published();
    }
    let (status, said) = publish("USER", "quetz");
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn a_run_that_was_changed_after_its_seal_is_refused() {
    let lab = Lab::new();
    let path = lab.run.join(RECORD);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"cpu\": 2", "\"cpu\": 3")).unwrap();
    assert!(matches!(lab.publish(), Err(PublishError::Changed { .. })));
    fs::write(&path, text).unwrap();
    let seal = lab.run.with_extension("seal");
    fs::write(&seal, "0".repeat(64) + "\n").unwrap();
    assert!(matches!(lab.publish(), Err(PublishError::Seal(_))));
    fs::remove_file(&seal).unwrap();
    assert!(matches!(lab.publish(), Err(PublishError::Seal(_))));
    let journal = lab.run.join("journal.jsonl");
    let lines = fs::read_to_string(&journal).unwrap();
    let unsealed: String = lines.split_inclusive('\n').take(5).collect();
    fs::write(&journal, unsealed).unwrap();
    assert!(matches!(lab.publish(), Err(PublishError::NotSealed(_))));
    lab.nothing_published();
}

#[test]
fn the_command_says_where_the_dataset_is_and_what_is_wrong_with_a_request() {
    let lab = Lab::new();
    lab.configure();
    let home = lab.home.path();
    let run = |words: &[&str]| {
        std::process::Command::new(env!("CARGO_BIN_EXE_campaign"))
            .args(words)
            .current_dir(home)
            .output()
            .unwrap()
    };
    let output = run(&["publish", "runs/x86_1-guide-1", "--id", "a", "--current"]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("performance/data/x86_1/a"));
    let output = run(&["audit", "x86_1/a", "--json"]);
    let reports: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{reports}");
    assert_eq!(reports[0]["auditable"], true);
    let output = run(&["publish", "runs/x86_1-guide-1", "--id", "../a"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let record = home.join("performance/data/x86_1/a").join(RECORD);
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replacen("\"n\": 105", "\"n\": 106", 1)).unwrap();
    let output = run(&["audit", "x86_1/a", "--quiet"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.contains(&format!("error: {RECORD} /derived/n: ")),
        "{said}"
    );
    assert!(said.contains("expected 105, found 106"), "{said}");
}

#[test]
fn a_seal_is_signed_and_the_signature_verified_against_allowed_signers() {
    if !have("ssh-keygen", "openssh-client") {
        return;
    }
    let lab = Lab::new();
    let keys = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let file = keys.path().join(name);
        let output = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
            .arg(&file)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let public = fs::read_to_string(file.with_extension("pub")).unwrap();
        let allowed = keys.path().join(format!("{name}.allowed"));
        fs::write(&allowed, format!("{name}@example.org {public}")).unwrap();
        (file, allowed)
    };
    let (lab_key, lab_allowed) = make("lab");
    let (_, other_allowed) = make("other");
    let unsigned = signature::verify(&lab.run, &lab_allowed);
    assert!(matches!(
        unsigned,
        Err(signature::SignatureError::NotSigned(_))
    ));
    signature::sign(&lab.run, &lab_key).unwrap();
    assert_eq!(
        signature::verify(&lab.run, &lab_allowed).unwrap(),
        "lab@example.org"
    );
    assert!(signature::verify(&lab.run, &other_allowed).is_err());
    // The whole carries the signature along, a part does not, and another seal is not signed.
    let published = lab.publish().unwrap();
    assert_eq!(
        signature::verify(&published.path, &lab_allowed).unwrap(),
        "lab@example.org"
    );
    let regex = Regex::new("^toy/").unwrap();
    let part = publish(&Request {
        partial: Some(&regex),
        ..lab.request()
    })
    .unwrap();
    let of_part = signature::verify(&part.path, &lab_allowed);
    assert!(matches!(
        of_part,
        Err(signature::SignatureError::NotSigned(_))
    ));
    lab.edit("campaign.json", |campaign| {
        campaign["title"] = "Another".into()
    });
    assert!(signature::verify(&lab.run, &lab_allowed).is_err());
}
