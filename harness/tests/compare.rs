//! The comparison of two datasets, as a command: page, data, exit status.

use crate::support::cells::{self, PageTable};
use crate::support::root;
use harness::dataset::Dataset;
use harness::evidence::{KatResult, Origin};
use harness::testing::{self, Synthetic};
use protocol::SourceKind;
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
    assert_eq!(lines.len(), 18);
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

/// The files of the comparison of two datasets, which are called `a` and `b`.
struct Compared {
    _folder: tempfile::TempDir,
    page: String,
    csv: String,
    chart: Option<String>,
}

fn compared(a: &Dataset, b: &Dataset) -> Compared {
    let folder = tempfile::tempdir().unwrap();
    for (name, dataset) in [("a", a), ("b", b)] {
        testing::write(dataset, &folder.path().join(name)).unwrap();
    }
    let output = campaign(folder.path())
        .args(["compare", "a", "b"])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code().is_some_and(|code| code <= 1),
        "{error}"
    );
    let read = |file: &str| std::fs::read_to_string(folder.path().join("compare").join(file));
    Compared {
        page: read("a--b.md").unwrap(),
        csv: read("a--b.csv").unwrap(),
        chart: read("charts/a--b-cycles.svg").ok(),
        _folder: folder,
    }
}

impl Compared {
    fn table(&self, caption: &str) -> PageTable {
        let found = cells::tables(&self.page)
            .into_iter()
            .find(|table| table.caption.starts_with(caption));
        found.unwrap_or_else(|| panic!("no table `{caption}` in {}", self.page))
    }

    /// The text of the notes of a cell.
    fn notes(&self, cell: &str) -> Vec<&str> {
        let numbers = cell.split("[^").skip(1);
        let numbers = numbers.filter_map(|rest| rest.split(']').next());
        let text = |number: &str| {
            let start = format!("[^{number}]: ");
            let mut lines = self.page.lines();
            lines.find_map(|line| line.strip_prefix(&start)).unwrap()
        };
        numbers.map(text).collect()
    }
}

#[test]
fn the_fastest_codes_of_the_two_public_systems_stand_side_by_side() {
    let page = root().join("reports/compare/x86_1--arm_1.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = cells::tables(&page)
        .into_iter()
        .find(|table| table.caption.starts_with("The fastest code and build"))
        .unwrap();
    assert_eq!(table.rows.len(), 18, "six labels, three operations");
    let row = cells::by_title(&table, &table.rows[6]);
    for (title, cell) in [
        ("instance", "`dove_classic_512`"),
        ("metric", "cycles"),
        ("x86_1: code", "ref reference"),
        ("x86_1", "48.53 G (n=35)"),
        ("arm_1: code", "ref reference"),
        ("arm_1", "45.42 G (n=20)"),
        ("ratio arm_1 / x86_1", "0.9359"),
    ] {
        assert_eq!(row[title], cell, "{title}");
    }
    assert_eq!(row.len(), 8, "and no verdict");
    assert!(page.contains("Neither side has a figure of the reference instance"));
}

#[test]
fn few_calls_and_a_failed_kat_are_marked_wherever_a_ratio_is_repeated() {
    let few = Synthetic {
        trials: 7,
        calls: 3,
        ..Synthetic::default()
    };
    let a = few.build();
    let mut b = few.build();
    let label = "dove_b_256";
    for ((identity, _), entry) in &mut b.kat {
        if identity.label == label {
            entry.value.result = KatResult::Mismatch;
        }
    }
    let compared = compared(&a, &b);
    for caption in [
        "Mean core cycles",
        "Mean time",
        "The fastest code and build",
        "Cost relative to",
        "Memory of each side",
    ] {
        let table = compared.table(caption);
        let of_label = |row: &&Vec<String>| cells::plain(&row[0]) == label;
        let rows: Vec<&Vec<String>> = table.rows.iter().filter(of_label).collect();
        assert_eq!(rows.len(), 3, "{caption}");
        for row in rows {
            let notes = compared.notes(&row[0]);
            assert!(
                notes.iter().any(|n| n.starts_with("b: KAT MISMATCH")),
                "{caption}: {row:?}"
            );
            let marked = row.iter().filter(|cell| cell.ends_with("(n=21)")).count();
            assert_eq!(
                marked,
                if caption.starts_with("Memory") { 0 } else { 2 },
                "{caption}: {row:?}"
            );
        }
    }
    let named = "dove_b_256 ref reference (n=21 on a, n=21 on b, KAT MISMATCH on b)";
    let means = compared.table("Geometric means");
    assert!(
        means.rows.iter().all(|row| row[4].contains(named)),
        "{means:?}"
    );
    let chart = compared.chart.as_ref().unwrap();
    assert_eq!(chart.matches("*\n</text>").count(), 18, "{chart}");
    assert!(compared.page.contains("A star marks fewer than 100 calls"));
}

/// Every ratio of the published comparison is the quotient of the two cells beside it.
#[test]
fn the_ratios_of_the_public_comparison_are_those_of_their_cells() {
    let page = root().join("reports/compare/x86_1--arm_1.md");
    let page = std::fs::read_to_string(page).unwrap();
    let value = |cell: &str| -> f64 {
        let mut words = cell.split(' ');
        let number: f64 = words.next().unwrap().parse().unwrap();
        let unit = [
            ("G", 1e9),
            ("M", 1e6),
            ("s", 1.0),
            ("ms", 1e-3),
            ("µs", 1e-6),
        ];
        let word = words.next().unwrap();
        number * unit.iter().find(|(name, _)| *name == word).expect(word).1
    };
    let mut ratios = 0;
    for caption in [
        "Mean core cycles",
        "Mean time",
        "The fastest code and build",
    ] {
        let tables = cells::tables(&page);
        let table = tables
            .iter()
            .find(|t| t.caption.starts_with(caption))
            .unwrap();
        for row in &table.rows {
            let row = cells::by_title(table, row);
            let shown = &row["ratio arm_1 / x86_1"];
            let quotient = value(&row["arm_1"]) / value(&row["x86_1"]);
            let decimals = shown.split_once('.').unwrap().1.len();
            assert_eq!(
                format!("{quotient:.decimals$}"),
                *shown,
                "{caption}: {row:?}"
            );
            ratios += 1;
        }
    }
    assert_eq!(ratios, 54);
    assert!(page.contains("Such a ratio is the quotient of the two cells as this page prints them"));
}

#[test]
fn the_public_comparison_names_its_methods_and_what_it_did_not_compare() {
    let page = root().join("reports/compare/x86_1--arm_1.md");
    let page = std::fs::read_to_string(page).unwrap();
    for text in [
        "| KAT results | 6 | 6 | 6 |",
        "Not stated by both sides, and so not compared: KAT texts (SHA-256);",
        "those of x86_1 are as its published page prints them, which does not say of which processes",
        "those of arm_1 are the maxima over the timed processes of a row",
        "Neither side holds evidence of the memory of an operation in isolation.",
        "What became of the cost of the wrappers in the shares of x86_1 is not known.",
        "The shares of arm_1 contain what the wrappers cost",
        "A difference between the two sides may be one of method",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let tables = cells::tables(&page);
    let memory = tables
        .iter()
        .find(|t| t.caption.starts_with("Memory of each side"))
        .unwrap();
    assert_eq!(memory.rows.len(), 18);
    let row = cells::by_title(memory, &memory.rows[0]);
    for (title, cell) in [
        ("static image (bytes) x86_1", "37149"),
        ("static image (bytes) arm_1", "34236"),
        ("baseline RSS x86_1", "1724 KiB"),
        ("baseline RSS arm_1", "1800 KiB"),
        ("peak RSS x86_1", "2276 KiB"),
        ("peak RSS arm_1", "1960 KiB"),
    ] {
        assert_eq!(row[title], cell, "{title}");
    }
}

/// A resident set of the memory phase and one of a timed process are two things.
#[test]
fn memory_of_different_methods_is_not_set_side_by_side() {
    let spec = Synthetic {
        trials: 7,
        ..Synthetic::default()
    };
    let mut timed = spec.build();
    timed.memory.clear();
    let compared = compared(&spec.build(), &timed);
    let text = "Resident sets are not set side by side: those of a are of the process of the memory phase; \
                those of b are of the timed process with the highest peak.";
    assert!(compared.page.contains(text), "{}", compared.page);
    assert!(compared
        .page
        .contains("Only a holds evidence of the memory of an operation in isolation."));
    let memory = compared.table("Memory of each side");
    assert!(memory
        .header
        .iter()
        .any(|title| title == "static image (bytes) a"));
    for title in ["RSS", "in isolation"] {
        assert!(
            !memory.header.iter().any(|t| t.contains(title)),
            "{:?}",
            memory.header
        );
    }
}

/// A side without the reference instance, and one that has it in another metric.
#[test]
fn a_missing_ratio_to_the_reference_says_which_of_the_two_lacks_it() {
    let spec = Synthetic {
        trials: 7,
        ..Synthetic::default()
    };
    let a = spec.build();
    let reference = a.campaign.rows[0].identity.clone();
    let note = |b: &Dataset| {
        let folder = tempfile::tempdir().unwrap();
        for (name, dataset) in [("a", &a), ("b", b)] {
            testing::write(dataset, &folder.path().join(name)).unwrap();
        }
        let config = format!("[report]\nreference = \"{reference}\"\n");
        std::fs::write(folder.path().join("campaign.toml"), config).unwrap();
        let output = campaign(folder.path())
            .args(["compare", "a", "b"])
            .output()
            .unwrap();
        let page = std::fs::read_to_string(folder.path().join("compare/a--b.md"));
        let page = page.unwrap_or_else(|e| panic!("{e}: {output:?}"));
        let tables = cells::tables(&page);
        let table = tables
            .iter()
            .find(|t| t.caption.starts_with("Cost relative to"))
            .unwrap();
        let row = cells::by_title(table, table.rows.last().unwrap());
        let number = row["b"]
            .split("[^")
            .nth(1)
            .and_then(|rest| rest.split(']').next());
        let start = format!("[^{}]: ", number.expect("a note"));
        let text = page.lines().find_map(|line| line.strip_prefix(&start));
        text.expect("its text").to_owned()
    };
    let mut without = spec.build();
    without
        .timing
        .retain(|(identity, _), _| *identity != reference);
    assert_eq!(
        note(&without),
        "this side does not have the reference instance"
    );
    let mut other = spec.build();
    for ((identity, _), entry) in &mut other.timing {
        if *identity == reference {
            entry.value.cycle_source.kind = SourceKind::None;
        }
    }
    assert_eq!(
        note(&other),
        "this side has no cycles of the reference instance"
    );
}

/// What both runs warn of, what only one of them has, and that nothing stands out.
#[test]
fn a_comparison_warns_names_what_one_side_lacks_and_says_that_nothing_stands_out() {
    let unfixed = Synthetic {
        fixed_host: false,
        trials: 7,
        ..Synthetic::default()
    };
    let fixed = Synthetic {
        fixed_host: true,
        ..unfixed.clone()
    };
    let mut b = fixed.build();
    b.timing
        .retain(|(identity, _), _| identity.label != "toy10");
    let compared = compared(&unfixed.build(), &b);
    let top = compared.page.split("Ratios are").next().unwrap();
    for warning in [
        "> - a: Virtual machine (kvm)",
        "> - a: The host was not fixed",
    ] {
        assert!(top.contains(warning), "{top}");
    }
    assert!(!top.contains("> - b:"), "{top}");
    let only = compared.table("Identities that the other side does not have");
    let alone: Vec<_> = only
        .rows
        .iter()
        .map(|row| (cells::plain(&row[0]), row[1].as_str()))
        .collect();
    let expected = ["toy/toy10/avx2/performance", "toy/toy10/clean/reference"];
    let mut names: Vec<&str> = alone.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, expected);
    assert!(alone.iter().all(|(_, side)| *side == "a"), "{alone:?}");
    assert!(
        compared
            .page
            .contains("No row lies further than a factor of 2 from the median ratio."),
        "{}",
        compared.page
    );
}

#[test]
fn rows_without_a_ratio_keep_their_values_and_say_why() {
    let spec = Synthetic {
        trials: 7,
        ..Synthetic::default()
    };
    let ticks = Synthetic {
        source: SourceKind::Tsc,
        ..spec.clone()
    };
    let one = compared(&spec.build(), &ticks.build());
    let cycles = one.table("Mean core cycles");
    assert_eq!(cycles.rows.len(), 18);
    let row = cells::by_title(&cycles, &cycles.rows[0]);
    assert!(
        row["a"].ends_with(" M") || row["a"].ends_with(" k"),
        "{row:?}"
    );
    assert_eq!(
        one.notes(&row["b"]),
        ["this side has no such figure (not_recorded)"]
    );
    assert_eq!(
        one.notes(&row["ratio b / a"]),
        ["no core cycles on one side"]
    );
    assert_eq!(row["b is"], "not comparable");
    assert!(
        one.csv
            .contains(",not comparable: no core cycles on one side,"),
        "{}",
        one.csv
    );
    let neither = compared(&ticks.build(), &ticks.build());
    assert!(neither
        .page
        .contains("Cycles are not compared: no core cycles on either side."));

    let mut upstream = spec.build();
    for entry in upstream.timing.values_mut() {
        entry.value.head.origin = Origin::Upstream;
    }
    let other = compared(&spec.build(), &upstream);
    let table = other.table("Rows without a ratio");
    assert_eq!(table.rows.len(), 18);
    let row = cells::by_title(&table, &table.rows[0]);
    let why = "different implementations (independent and upstream)";
    assert_eq!(row["why"], why);
    for title in ["cycles a", "cycles b", "time a", "time b"] {
        assert!(row[title].contains(' '), "{title}: {row:?}");
    }
    assert!(
        other
            .page
            .contains(&format!("18 rows: not comparable: {why}")),
        "{}",
        other.page
    );
    let fastest = other.table("The fastest code and build");
    let row = cells::by_title(&fastest, &fastest.rows[0]);
    assert_eq!(
        row["b: code"], "ref reference (upstream)",
        "different origins are named"
    );
}
