//! The comparison of two datasets, as a command: page, data, exit status.

use crate::support::root;
use harness::testing::{self, Synthetic};
use std::path::Path;

fn campaign(folder: &Path) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::cargo_bin("campaign").expect("the binary");
    command.current_dir(folder);
    command
}

fn two_runs(speed: f64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let trials = |speed| Synthetic {
        trials: 7,
        speed,
        ..Synthetic::default()
    };
    testing::write(&trials(1.0).build(), &folder.path().join("before")).unwrap();
    testing::write(&trials(speed).build(), &folder.path().join("after")).unwrap();
    folder
}

#[test]
fn a_regression_between_two_runs_is_status_1_and_an_equal_run_is_not() {
    let folder = two_runs(1.5);
    campaign(folder.path())
        .args(["compare", "before", "after"])
        .assert()
        .code(1);
    let again = folder.path().join("again");
    crate::support::copy_tree(&folder.path().join("before"), &again, &[]);
    campaign(folder.path())
        .args(["compare", "before", "again"])
        .assert()
        .success();
    campaign(folder.path())
        .args(["compare", "after", "before"])
        .assert()
        .success();
}

#[test]
fn page_and_data_say_the_same() {
    let folder = two_runs(1.5);
    let output = campaign(folder.path())
        .args(["compare", "before", "after", "--json"])
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = json[0]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 18);
    let files = folder.path().join("compare");
    let read = |end: &str| {
        let file = files.join(format!("before--after.{end}"));
        std::fs::read_to_string(&file).unwrap()
    };
    let on_disk: serde_json::Value = serde_json::from_str(&read("json")).unwrap();
    assert_eq!(on_disk, json[0]);
    let page = read("md");
    let table = crate::support::cells::tables(&page)
        .into_iter()
        .find(|table| table.caption.starts_with("Mean core cycles"))
        .unwrap();
    assert_eq!(table.rows.len(), 18);
    let mut lines = read("csv")
        .lines()
        .skip(1)
        .map(str::to_owned)
        .collect::<Vec<_>>();
    lines.retain(|line| line.contains(",cycles,"));
    for (row, (line, cells)) in rows.iter().zip(lines.iter().zip(&table.rows)) {
        let ratio = row["cycles"]["ratio"].as_f64().unwrap();
        assert!((ratio - 1.5).abs() < 0.03, "{ratio}");
        assert!(line.contains(&format!(",{ratio},")), "{line}");
        let cells = crate::support::cells::by_title(&table, cells);
        assert_eq!(cells["ratio after / before"], format!("{ratio:.3}"));
        assert_eq!(cells["after is"], "slower");
    }
}

#[test]
fn the_public_comparison_points_at_what_stands_out() {
    let page = root().join("reports/compare/x86_1--arm_1.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(
            "verify takes 3.7 to 8.9 times fewer cycles on arm_1 than on x86_1: \
             dove_classic_128, dove_classic_256, dove_classic_512."
        ),
        "{page}"
    );
    assert!(
        page.contains("max 2.10 GHz") && page.contains("fixed 2.71 GHz"),
        "clocks"
    );
    assert_eq!(
        page.matches("none: aggregate").count(),
        36,
        "two tables of 18 rows"
    );
}
