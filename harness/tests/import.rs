//! `campaign import`: the public campaign's evidence of arm_1 and its page of x86_1, cell for cell.

use crate::support::{self, root};
use harness::dataset::Dataset;
use harness::evidence::{CellsFile, Class};
use harness::report::format;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn data(path: &str) -> PathBuf {
    root().join("harness/tests/data").join(path)
}

/// Disturbed retries: of the record or a process, in the order of the file.
const RETRIES: [u64; 6] = [3, 1, 2, 0, 0, 0];

/// A campaign folder with the project's configuration, its sources left out.
fn campaign() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::copy(
        root().join("campaign.toml"),
        home.path().join("campaign.toml"),
    )
    .unwrap();
    for below in ["performance", "drivers/dilithium"] {
        support::copy_tree(&root().join(below), &home.path().join(below), &["data"]);
    }
    home
}

fn run(home: &Path, words: &[&str]) -> std::process::Output {
    std::process::Command::new(env!("CARGO_BIN_EXE_campaign"))
        .args(words)
        .current_dir(home)
        .output()
        .unwrap()
}

/// The evidence as its owner had it: with a host name in every environment.
fn with_host_name(to: &Path) {
    support::copy_tree(&data("arm_1"), to, &[]);
    let mut files = vec![to.join("campaign.json")];
    for file in fs::read_dir(to.join("records/sign-09")).unwrap() {
        files.push(file.unwrap().path());
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace(
            "\"architecture\": ",
            "\"hostname\": \"kiwi\",\n  \"architecture\": ",
        );
        fs::write(&file, text).unwrap();
    }
}

fn arm_1() -> (tempfile::TempDir, Dataset) {
    let home = campaign();
    let evidence = home.path().join("evidence");
    with_host_name(&evidence);
    let output = run(
        home.path(),
        &["import", "evidence", "--system", "arm_1", "--current"],
    );
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("host name dropped in 20 places"));
    let path = home.path().join("performance/data/arm_1/public-2026");
    let dataset = Dataset::read(&path).unwrap();
    (home, dataset)
}

/// Rows of a section of a table of cells.
fn expected(file: &str, section: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(data(file)).unwrap();
    let prefix = format!("{section}\trow\t");
    let rows = text.lines().filter_map(|line| line.strip_prefix(&prefix));
    let rows: Vec<Vec<String>> = rows
        .map(|row| row.split('\t').map(str::to_owned).collect())
        .collect();
    assert!(!rows.is_empty(), "{section}");
    rows
}

/// `drng 1, pseudoXOF 140`
fn calls(calls: &BTreeMap<String, f64>) -> String {
    let each: Vec<String> = calls
        .iter()
        .map(|(name, n)| format!("{name} {}", format::general3(*n)))
        .collect();
    each.join(", ")
}

#[test]
fn the_imported_records_carry_every_cell_of_the_public_page() {
    let (_home, dataset) = arm_1();
    let (mut performance, mut resource, mut symmetric) = (vec![], vec![], vec![]);
    for ((identity, operation), record) in &dataset.timing {
        let record = &record.value;
        let derived = record.derived.as_ref().unwrap();
        let operation = operation.name().to_owned();
        performance.push(vec![
            identity.label.clone(),
            operation.clone(),
            format::cycles(derived.mean_cycles.unwrap()),
            format::time(derived.mean_s),
            format::general3(derived.ops_per_s),
            format::time(derived.median_trial_s),
            format::n(
                derived.n,
                record.trials.len() as u64,
                record.plan.iterations,
            ),
        ]);
        let attempts: Vec<_> = record.trials.iter().flat_map(|t| &t.attempts).collect();
        let elf = dataset.build_row(identity).unwrap().elf.as_ref().unwrap();
        let most =
            |values: Vec<Option<u64>>| format::kib(values.into_iter().flatten().max().unwrap());
        resource.push(vec![
            identity.label.clone(),
            operation,
            elf.load_bytes.to_string(),
            most(attempts.iter().map(|a| a.baseline_rss_bytes).collect()),
            most(attempts.iter().map(|a| a.peak_rss_bytes).collect()),
        ]);
    }
    for ((identity, operation), profile) in &dataset.profile {
        let derived = profile.value.derived.as_ref().unwrap();
        assert_eq!(derived.verdict, "ICCS-only");
        symmetric.push(vec![
            identity.label.clone(),
            operation.name().to_owned(),
            format::share_seed(derived.hash_share.unwrap()),
            format::share_seed(derived.drng_share.unwrap()),
            calls(&derived.calls_per_operation),
        ]);
    }
    let table = "expected/arm_1-sign-09.tsv";
    assert_eq!(performance, expected(table, "performance"));
    assert_eq!(resource, expected(table, "resource"));
    assert_eq!(symmetric, expected(table, "symmetric"));
    let sizes: Vec<Vec<String>> = dataset
        .timing
        .iter()
        .filter(|((_, operation), _)| operation.name() == "keygen")
        .map(|((identity, _), record)| {
            let sizes = record.value.sizes.unwrap();
            let numbers = [
                sizes.public_key_bytes,
                sizes.secret_key_bytes,
                sizes.signature_bytes,
            ];
            let numbers = numbers.map(|n| n.to_string());
            [vec![identity.label.clone()], numbers.to_vec()].concat()
        })
        .collect();
    assert_eq!(sizes, expected(table, "sizes"));
    let kat: Vec<Vec<String>> = dataset
        .kat
        .iter()
        .map(|((identity, _), kat)| {
            vec![
                identity.label.clone(),
                "guide".into(),
                kat.value.result.word().into(),
            ]
        })
        .collect();
    assert_eq!(kat, expected(table, "kat"));
}

/// The source repeats disturbed processes and keeps their number alone: that is carried, and said.
#[test]
fn disturbed_retries_of_the_source_are_carried_and_said() {
    let home = campaign();
    let evidence = home.path().join("evidence");
    with_host_name(&evidence);
    let record = evidence.join("records/sign-09/dove_classic_128__sign.json");
    let text = fs::read_to_string(&record).unwrap();
    assert_eq!(
        text.matches("\"disturbed_retries\": 0").count(),
        6,
        "five processes and their record"
    );
    let mut parts = text.split("\"disturbed_retries\": 0").map(str::to_owned);
    let mut changed = parts.next().unwrap();
    for (rest, retries) in parts.zip(RETRIES) {
        changed += &format!("\"disturbed_retries\": {retries}{rest}");
    }
    fs::write(&record, changed).unwrap();
    let output = run(
        home.path(),
        &["import", "evidence", "--system", "arm_1", "--current"],
    );
    assert!(output.status.success(), "{output:?}");
    let dataset = Dataset::read(&home.path().join("performance/data/arm_1/public-2026")).unwrap();
    let records = dataset
        .timing
        .values()
        .map(|entry| entry.value.stated_disturbed_retries);
    assert_eq!(records.sum::<Option<u64>>(), Some(3));
    let output = run(home.path(), &["report", "arm_1"]);
    assert!(output.status.success(), "{output:?}");
    let read =
        |page: &str| fs::read_to_string(home.path().join("reports/arm_1").join(page)).unwrap();
    let page = read("sign-09.md");
    let said = "The source states 3 disturbed retries; its attempts carry no flags.";
    assert!(page.contains(said), "{page}");
    assert!(read("method.md").contains("(not among the attempts, which carry no flags) | 3 |"));
    let tables = support::cells::tables(&page);
    let trials = tables
        .iter()
        .find(|t| t.caption.starts_with("Agreement"))
        .unwrap();
    let sign = support::cells::by_title(trials, &trials.rows[1]);
    assert_eq!(support::cells::plain(&sign["repeated"]), "3");
    assert_eq!(support::cells::plain(&sign["disturbed"]), "–");
}

#[test]
fn the_imported_environment_names_the_machine_and_every_cpu() {
    let (_home, dataset) = arm_1();
    let rows: BTreeMap<String, String> = expected("expected/arm_1-sign-09.tsv", "environment")
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    let environment = dataset.environment().unwrap();
    let stable = &environment.stable;
    let text = |value: &Option<String>| value.clone().unwrap();
    assert_eq!(rows["machine"], text(&stable.machine));
    assert_eq!(
        rows["memory"],
        format::mib_of_kib(stable.memory_total_kib.unwrap())
    );
    assert_eq!(
        rows["OS / kernel"],
        format!("{} / {}", text(&stable.os), text(&stable.kernel))
    );
    assert_eq!(
        rows["compiler / build tool"],
        format!("{} / {}", text(&stable.compiler), text(&stable.build_tool))
    );
    let utc = |value: &Option<String>| format::date(&text(value));
    assert_eq!(
        rows["campaign start / end (UTC)"],
        format!(
            "{} / {}",
            utc(&dataset.campaign.started_utc),
            utc(&dataset.campaign.ended_utc)
        )
    );
    assert_eq!(
        environment.cpus.iter().map(|c| c.cpu).collect::<Vec<_>>(),
        [2, 3, 7]
    );
    for cpu in &environment.cpus {
        assert_eq!(
            (cpu.min_khz, cpu.max_khz),
            (Some(2_707_200), Some(2_707_200))
        );
        assert_eq!(cpu.governor.as_deref(), Some("performance"));
    }
    assert_eq!(environment.volatile.cpufreq_boost.as_deref(), Some("0"));
    assert_eq!(
        environment.volatile.smt_control.as_deref(),
        Some("notsupported")
    );
}

#[test]
fn an_import_is_a_function_of_its_source_and_keeps_no_host_name() {
    let (home, dataset) = arm_1();
    let provenance = dataset.campaign.provenance.as_ref().unwrap();
    assert_eq!(provenance.dropped["hostname"], 20);
    assert_eq!(dataset.campaign.class, Class::Imported);
    let published = root().join("performance/data/arm_1/public-2026");
    // What pages say of a candidate comes from campaign.toml, which may change; the rest may not.
    for folder in ["environment", "kat", "profile", "records", "source"] {
        support::same_tree(&dataset.path.join(folder), &published.join(folder));
    }
    // The kept source is evidence again, and gives the same records.
    let again = run(
        home.path(),
        &[
            "import",
            "performance/data/arm_1/public-2026/source",
            "--system",
            "arm_1",
            "--id",
            "b",
        ],
    );
    assert!(again.status.success(), "{again:?}");
    let again = home.path().join("performance/data/arm_1/b");
    support::same_tree(&dataset.path.join("records"), &again.join("records"));
    for file in support::files(&dataset.path) {
        let bytes = fs::read(dataset.path.join(&file)).unwrap();
        assert!(
            !String::from_utf8_lossy(&bytes).contains("\"kiwi\""),
            "{}",
            file.display()
        );
    }
}

#[test]
fn evidence_that_does_not_hold_is_refused_with_its_places() {
    let home = campaign();
    let evidence = home.path().join("evidence");
    with_host_name(&evidence);
    let record = evidence.join("records/sign-09/dove_classic_256__sign.json");
    let text = fs::read_to_string(&record).unwrap();
    for (from, to, place) in [
        (
            "\"seconds\": 0.635348333",
            "\"seconds\": 0.635348334",
            "/mean_seconds",
        ),
        (
            "\"measurements\": 390",
            "\"measurements\": 391",
            "/measurements",
        ),
        ("\"kat\": \"PASS\"", "\"kat\": \"NOKAT\"", "/kat"),
        ("\"warmups\": 3,", "\"warmups\": 2,", "/plan"),
        ("\"schema\": 2", "\"schema\": 3", "/schema"),
        (
            "\"status\": \"complete\"",
            "\"status\": \"complete\", \"new\": 1",
            "unknown field",
        ),
        (
            "\"baseline_rss_bytes\": 75",
            "\"baseline_rss_bytes\": 74",
            "/baseline_rss_bytes",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&record, text.replace(from, to)).unwrap();
        let output = run(home.path(), &["import", "evidence", "--system", "arm_1"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{from}: {said}");
        assert!(
            said.contains("dove_classic_256__sign.json") && said.contains(place),
            "{from}: {said}"
        );
    }
    assert!(!home
        .path()
        .join("performance/data/arm_1/public-2026")
        .exists());
    let left = fs::read_dir(home.path().join("performance/data/arm_1")).unwrap();
    assert_eq!(left.count(), 0, "a refused import leaves nothing behind");
}

#[test]
fn another_system_than_the_evidences_is_a_wrong_request() {
    let home = campaign();
    for system in ["x86_1", "nowhere"] {
        let evidence = data("arm_1");
        let words = ["import", evidence.to_str().unwrap(), "--system", system];
        let output = run(home.path(), &words);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[test]
fn published_cells_become_an_aggregate_with_the_digits_they_carry() {
    let home = campaign();
    let table = data("expected/x86_1-sign-09.tsv");
    let words = [
        "import",
        "--aggregate",
        table.to_str().unwrap(),
        "--system",
        "x86_1",
        "--current",
    ];
    let output = run(home.path(), &words);
    assert!(output.status.success(), "{output:?}");
    let path = home.path().join("performance/data/x86_1/public-2026");
    let cells: CellsFile =
        serde_json::from_slice(&fs::read(path.join("cells.json")).unwrap()).unwrap();
    assert_eq!(cells.class, Class::Aggregate);
    assert_eq!(cells.tables.len(), 6);
    for table in &cells.tables {
        let rows: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.text.clone()).collect())
            .collect();
        assert_eq!(rows, expected("expected/x86_1-sign-09.tsv", &table.section));
    }
    let performance = cells.table("performance").unwrap();
    let column = performance.column("mean cycles").unwrap();
    let quantity = performance.rows[0][column].quantity.as_ref().unwrap();
    assert_eq!((quantity.value, quantity.digits), (101_870_000.0, 5));
    let published = root().join("performance/data/x86_1/public-2026");
    support::same_tree(&path.join("source"), &published.join("source"));
    assert_eq!(
        fs::read(path.join("cells.json")).unwrap(),
        fs::read(published.join("cells.json")).unwrap()
    );
}

#[test]
fn a_table_of_cells_that_is_none_is_refused_with_its_line() {
    let home = campaign();
    let table = home.path().join("cells.tsv");
    let good = fs::read_to_string(data("expected/x86_1-sign-09.tsv")).unwrap();
    let huge = || fs::File::create(&table).unwrap().set_len(2 << 30).unwrap();
    let put = |bytes: &[u8]| fs::write(&table, bytes).unwrap();
    let more = format!("{good}performance\trow\tone\n");
    let line = good.lines().count() + 1;
    let half = &good.as_bytes()[..good.len() / 2];
    let cut = half.iter().filter(|byte| **byte == b'\n').count() + 1;
    let cases: [(&dyn Fn(), String); 4] = [
        (&|| put(b"environment\xff"), "cells.tsv:1:".into()),
        (&huge, "2147483648 bytes".into()),
        (&|| put(more.as_bytes()), format!("cells.tsv:{line}:")),
        (&|| put(half), format!("cells.tsv:{cut}:")),
    ];
    for (make, place) in cases {
        make();
        let output = run(
            home.path(),
            &["import", "--aggregate", "cells.tsv", "--system", "x86_1"],
        );
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{place}: {said}");
        assert!(
            said.contains("cells.tsv") && said.contains(&place),
            "{place}: {said}"
        );
    }
    assert!(
        !home.path().join("performance/data").exists(),
        "nothing is left behind"
    );
}
