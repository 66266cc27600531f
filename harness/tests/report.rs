//! Pages: complete, every cell from the counted attempts, nothing injected by names.

use crate::support::{cells, have};
use harness::evidence::{Flag, Reason, ReasonCode, Status};
use harness::report::{self, render_run};
use harness::testing::{self, Synthetic};
use protocol::SourceKind;
use std::path::{Path, PathBuf};

/// A synthetic dataset on disk with its pages; `CAMPAIGN_KEEP_PAGES` names a folder that keeps them.
struct Pages {
    _folder: tempfile::TempDir,
    run: PathBuf,
    pages: PathBuf,
    files: Vec<PathBuf>,
}

fn pages(name: &str, dataset: &harness::dataset::Dataset) -> Pages {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = folder.path().join("run");
    testing::write(dataset, &run).expect("a dataset on disk");
    let pages = match std::env::var_os("CAMPAIGN_KEEP_PAGES") {
        Some(keep) => Path::new(&keep).join(name),
        None => run.join("pages"),
    };
    let files = render_run(&run, &pages).expect("pages");
    Pages {
        _folder: folder,
        run,
        pages,
        files,
    }
}

impl Pages {
    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.pages.join(file)).expect(file)
    }
}

#[test]
fn a_run_has_an_index_and_a_page_of_each_candidate_in_both_forms() {
    let pages = pages("fixed", &Synthetic::default().build());
    for file in ["index", "sign-09", "toy"] {
        for form in ["md", "html"] {
            let path = pages.pages.join(format!("{file}.{form}"));
            assert!(pages.files.contains(&path), "{path:?}");
        }
    }
    let page = pages.text("sign-09.md");
    for section in [
        "## 1. Basic information",
        "## 2. Assessment environment",
        "## 3. Functional testing (KAT)",
        "## 4. Performance",
        "## 5. Resource consumption",
        "## 6. Transmission and storage overhead",
        "### Symmetric primitives",
        "## 7. Raw evidence index",
    ] {
        assert!(page.contains(section), "{section}");
    }
    assert!(!page.contains("[!WARNING]"), "nothing to warn of");
}

#[test]
fn an_unfixed_virtual_host_is_said_at_the_top() {
    let dataset = Synthetic {
        fixed_host: false,
        source: SourceKind::Tsc,
        ..Synthetic::default()
    };
    let page = pages("unfixed", &dataset.build()).text("toy.md");
    let top = page.split("## 1.").next().unwrap();
    assert!(top.contains("Virtual machine (kvm)"), "{top}");
    assert!(top.contains("governor powersave"), "{top}");
    assert!(page.contains("mean TSC ticks") && !page.contains("mean cycles"));
}

#[test]
fn without_a_counter_no_page_has_a_number_in_a_column_of_cycles() {
    for source in [SourceKind::Tsc, SourceKind::Cntvct, SourceKind::None] {
        let dataset = Synthetic {
            source,
            ..Synthetic::default()
        };
        let pages = pages("uncounted", &dataset.build());
        let mut tables_seen = 0;
        for file in &pages.files {
            if file.extension().is_none_or(|e| e != "md") {
                continue;
            }
            let text = std::fs::read_to_string(file).unwrap();
            for table in cells::tables(&text) {
                tables_seen += 1;
                for row in &table.rows {
                    for (title, cell) in cells::by_title(&table, row) {
                        let is_cycles = title.to_lowercase().contains("cycle");
                        assert!(
                            !is_cycles || cell.starts_with('–'),
                            "{}: {title}: {cell}",
                            file.display()
                        );
                    }
                }
            }
        }
        assert!(tables_seen > 20, "{tables_seen} tables");
    }
}

#[test]
fn pages_are_the_same_bytes_every_time() {
    let dataset = Synthetic::default().build();
    let templates = report::templates::Templates::new(None).unwrap();
    let place = report::view::Place::default();
    let one = report::render(&dataset, &place, &templates).unwrap();
    let two = report::render(&dataset, &place, &templates).unwrap();
    assert!(one == two && one.len() > 20);
}

/// The program, in a folder.
fn campaign(folder: &Path) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::cargo_bin("campaign").expect("the binary");
    command.current_dir(folder);
    command
}

/// A root with two published datasets, of which `old` is no system's current one.
fn published() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a temporary folder");
    let data = root.path().join("performance/data");
    let slower = Synthetic {
        system: "arm_1".into(),
        arch: "aarch64".into(),
        speed: 1.5,
        ..Synthetic::default()
    };
    testing::write(&Synthetic::default().build(), &data.join("x86_1/first")).unwrap();
    testing::write(&slower.build(), &data.join("arm_1/new")).unwrap();
    testing::write(&slower.build(), &data.join("arm_1/old")).unwrap();
    std::fs::write(data.join("arm_1/current"), "new\n").unwrap();
    root
}

#[test]
fn published_datasets_have_their_pages_in_reports_and_a_check_finds_every_difference() {
    let root = published();
    let datasets = ["x86_1/first", "arm_1/new", "arm_1/old"];
    std::fs::write(root.path().join("campaign.toml"), "").unwrap();
    let report = |more: &[&str]| {
        let mut command = campaign(root.path());
        command.arg("report").args(datasets).args(more);
        command
    };
    report(&["--check"]).assert().code(1);
    report(&[]).assert().success();
    report(&["--check"]).assert().success();
    let reports = root.path().join("reports");
    let read = |file: &str| std::fs::read_to_string(reports.join(file)).expect(file);
    assert!(read("index.md").contains("[`x86_1`](x86_1/index.md)"));
    let page = read("x86_1/sign-09.md");
    assert!(page.contains("system: [arm_1](../arm_1/sign-09.md) · x86_1\n"));
    assert!(page.contains("(../../performance/data/x86_1/first/records/sign-09/"));
    assert!(read("arm_1/old/sign-09.md").contains("../../../performance/data/arm_1/old/records/"));

    std::fs::write(
        reports.join("x86_1/sign-09.md"),
        page.replace("5 × 21", "5 × 22"),
    )
    .unwrap();
    std::fs::write(reports.join("x86_1/sign-10.md"), "somebody's\n").unwrap();
    std::fs::remove_file(reports.join("arm_1/summary.html")).unwrap();
    std::fs::create_dir(reports.join("gone_1")).unwrap();
    std::fs::write(reports.join("gone_1/index.md"), "x\n").unwrap();
    let output = report(&["--check"]).assert().code(1);
    let text = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
    for found in [
        "5 × 22",
        "x86_1/sign-10.md",
        "missing: ",
        "arm_1/summary.html",
        "gone_1/index.md",
    ] {
        assert!(text.contains(found), "{found} in {text}");
    }
}

#[test]
fn own_templates_change_the_wording_and_a_wrong_name_in_one_is_said() {
    let folder = tempfile::tempdir().unwrap();
    testing::write(&Synthetic::default().build(), &folder.path().join("run")).unwrap();
    let own = folder.path().join("own");
    campaign(folder.path())
        .args(["templates", "export", "own"])
        .assert()
        .success();
    campaign(folder.path())
        .args(["templates", "export", "own"])
        .assert()
        .code(2);
    let index = std::fs::read_to_string(own.join("index.md")).unwrap();
    std::fs::write(
        own.join("index.md"),
        index.replace("Candidates measured", "Was gemessen wurde"),
    )
    .unwrap();
    let report = || {
        let mut command = campaign(folder.path());
        command.args(["report", "run", "--templates", "own"]);
        command
    };
    report().assert().success();
    let page = std::fs::read_to_string(folder.path().join("run/pages/index.md")).unwrap();
    assert!(page.contains("Was gemessen wurde on this system"), "{page}");
    std::fs::write(own.join("index.md"), "{{ frame.sytem }}").unwrap();
    let output = report().assert().code(3);
    let text = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(
        text.contains("index.md") && text.contains("line 1"),
        "{text}"
    );
}

#[test]
fn charts_become_pictures_on_request_and_a_check_does_not_mind_them() {
    if !have("rsvg-convert", "librsvg2-bin") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    testing::write(&Synthetic::default().build(), &run).unwrap();
    let report = |more: &[&str]| {
        let mut command = campaign(folder.path());
        command.args(["report", "run"]).args(more);
        command
    };
    report(&["--charts", "png"]).assert().success();
    let charts = run.join("pages/charts");
    let files = crate::support::files(&charts);
    let svg = files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "svg"));
    let mut pictures = 0;
    for chart in svg {
        let text = std::fs::read_to_string(charts.join(chart)).unwrap();
        let width = text
            .split("width=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        let png = std::fs::read(charts.join(chart.with_extension("png"))).unwrap();
        // PNG, section 5.2 and 11.2.2: signature, then the header chunk with the width.
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let pixels = u32::from_be_bytes(png[16..20].try_into().unwrap());
        assert_eq!(pixels, 2 * width.parse::<u32>().unwrap());
        assert!(png.len() > 5000, "it is not empty");
        pictures += 1;
    }
    assert_eq!(pictures, 6);
    report(&["--check"]).assert().success();
    std::fs::copy(charts.join("toy-means.png"), charts.join("other.png")).unwrap();
    report(&["--check"]).assert().code(1);
}

#[test]
fn pictures_without_the_program_are_refused_with_its_package() {
    let folder = tempfile::tempdir().unwrap();
    testing::write(&Synthetic::default().build(), &folder.path().join("run")).unwrap();
    let mut command = campaign(folder.path());
    let output = command
        .args(["report", "run", "--charts", "png"])
        .env("PATH", folder.path())
        .assert()
        .code(3);
    let text = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(text.contains("librsvg2-bin"), "{text}");
    assert!(folder
        .path()
        .join("run/pages/charts/toy-means.svg")
        .is_file());
}

#[test]
fn a_system_and_its_current_file_name_its_current_dataset() {
    let root = published();
    std::fs::write(root.path().join("campaign.toml"), "").unwrap();
    let data = root.path().join("performance/data");
    for name in ["arm_1", "arm_1/current", "performance/data/arm_1/current"] {
        campaign(root.path())
            .args(["report", name])
            .assert()
            .success();
        let pages = root.path().join("reports");
        assert!(pages.join("arm_1/sign-09.md").is_file(), "{name}");
        std::fs::remove_dir_all(pages).unwrap();
        for words in [
            &["audit", name][..],
            &["compare", "x86_1", name],
            &["export", "--csv", "--overwrite", name],
        ] {
            let output = campaign(root.path()).args(words).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            // The synthetic dataset is not sealed: an audit finds that, and found it.
            let code = i32::from(words[0] == "audit");
            assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        }
        assert!(root.path().join("export/arm_1/new/records.csv").is_file());
    }
    std::fs::write(data.join("arm_1/current"), "gone\n").unwrap();
    let output = campaign(root.path())
        .args(["audit", "performance/data/arm_1/current"])
        .assert()
        .code(2);
    let text = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(text.contains("names `gone`"), "{text}");
    let output = campaign(root.path())
        .args(["compare", "x86_1", "arm_2"])
        .assert()
        .code(2);
    let text = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(
        text.contains("these are there: arm_1/new, arm_1/old, x86_1/first"),
        "{text}"
    );
}

#[test]
fn what_is_no_dataset_is_a_wrong_request() {
    let folder = tempfile::tempdir().unwrap();
    campaign(folder.path())
        .args(["report", "nothing"])
        .assert()
        .code(2);
}

#[test]
fn every_cell_follows_from_the_counted_attempts() {
    let odd = |source, all_phases| Synthetic {
        source,
        all_phases,
        ..Synthetic::default()
    };
    for (name, spec) in [
        ("perf", odd(SourceKind::Perf, true)),
        ("tsc", odd(SourceKind::Tsc, false)),
        ("none", odd(SourceKind::None, false)),
    ] {
        let pages = pages(&format!("cells-{name}"), &spec.build());
        for (candidate, records) in [("sign-09", 6), ("toy", 12)] {
            let page = pages.text(&format!("{candidate}.md"));
            let (cells, wrong) = cells::recompute(&pages.run, candidate, &page);
            assert_eq!(cells, 22 * records, "cells of {candidate}");
            assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        }
    }
}

#[test]
fn a_wrong_cell_is_found() {
    let pages = pages("wrong", &Synthetic::default().build());
    let page = pages.text("sign-09.md");
    for (right, wrong) in [
        (" ms |", " s |"),
        ("105 (5 × 21)", "105 (5 × 20)"),
        ("± 0.", "± 1."),
    ] {
        assert!(page.contains(right), "{right}");
        let changed = page.replacen(right, wrong, 1);
        let (_, found) = cells::recompute(&pages.run, "sign-09", &changed);
        assert_eq!(found.len(), 1, "{right}: {found:?}");
    }
}

#[test]
fn the_worst_disturbance_of_a_row_is_named_with_its_value() {
    let mut dataset = Synthetic::default().build();
    let record = &mut dataset.timing.values_mut().next().unwrap().value;
    for (trial, value) in record.trials.iter_mut().zip([0.9, 4.5, 2.0]) {
        trial.attempts[0].flags.push(Flag {
            name: "steal_percent".into(),
            value,
            limit: 0.5,
        });
    }
    let page = pages("disturbed", &dataset).text("sign-09.md");
    let note = "steal_percent is 4.5 at worst, above its limit of 0.5";
    assert!(page.contains(note), "{page}");
}

#[test]
fn attempts_that_were_read_in_another_way_than_their_record_are_counted() {
    let mut dataset = Synthetic::default().build();
    let record = &mut dataset.timing.values_mut().next().unwrap().value;
    record.cycle_source.access = Some("rdpmc".into());
    for trial in &mut record.trials[1..3] {
        trial.attempts[0].read_by = Some("read".into());
    }
    let page = pages("read_by", &dataset).text("method.md");
    let note =
        "2 attempts counted by read: the right to read the counter from user mode came or went";
    assert!(page.contains(note), "{page}");
    let tables = cells::tables(&page);
    let cells = tables.iter().flat_map(|table| {
        let rows = table.rows.iter();
        rows.flat_map(|row| cells::by_title(table, row))
            .filter(|(title, _)| *title == "read by")
    });
    let noted: Vec<_> = cells
        .filter(|(_, cell)| cell.starts_with("rdpmc"))
        .collect();
    assert_eq!(noted.len(), 1);
    assert!(
        noted[0].1.len() > "rdpmc".len(),
        "the note hangs on the cell: {noted:?}"
    );
}

#[test]
fn a_library_with_threads_is_said_to_share_one_cpu() {
    let mut dataset = Synthetic::default().build();
    let record = &mut dataset.timing.values_mut().next().unwrap().value;
    record.trials[0].attempts[0].flags.push(Flag {
        name: Flag::THREADS.into(),
        value: 3.0,
        limit: 1.0,
    });
    let page = pages("threads", &dataset).text("sign-09.md");
    let note = "the library ran other threads (3 at worst, the calling one included), all of them on the one CPU";
    assert!(page.contains(note), "{page}");
}

#[test]
fn calls_below_the_resolution_of_the_clock_keep_their_row_and_say_so() {
    let mut dataset = Synthetic::default().build();
    let record = &mut dataset.timing.values_mut().next().unwrap().value;
    let derived = record.derived.as_mut().unwrap();
    (derived.quantiles, derived.mad_s, derived.tukey) = (None, None, None);
    for field in ["quantiles", "mad_s", "tukey"] {
        let reason = Reason::new(ReasonCode::BelowResolution, "too short for the clock");
        record
            .head
            .missing
            .insert(format!("/derived/{field}"), reason);
    }
    let page = pages("resolution", &dataset).text("sign-09.md");
    let note = "too short for the clock (below_resolution)";
    assert!(page.contains(note), "{page}");
    let tables = cells::tables(&page);
    let of = |caption: &str| {
        let table = tables.iter().find(|t| t.caption.starts_with(caption));
        table.unwrap_or_else(|| panic!("{caption}: {page}"))
    };
    let means = of("Cost of one operation.");
    let mean = &cells::by_title(means, &means.rows[0])["mean time"];
    assert!(mean.contains("[^") && !mean.starts_with('–'), "{mean}");
    let calls = of("Quantiles of the time of one call");
    assert_eq!(calls.rows.len(), means.rows.len(), "no row is dropped");
    let median = &cells::by_title(calls, &calls.rows[0])["median"];
    assert!(median.starts_with("–[^"), "{median}");
}

#[test]
fn published_vectors_that_were_reproduced_are_counted() {
    let mut dataset = Synthetic::default().build();
    let vectors = |dataset: &harness::dataset::Dataset| {
        let page = pages("vectors", dataset).text("sign-09.md");
        let tables = cells::tables(&page);
        let table = tables
            .iter()
            .find(|t| t.caption.starts_with("Result of the known-answer tests"));
        let table = table.unwrap();
        cells::by_title(table, &table.rows[0])["published vectors reproduced"].clone()
    };
    assert_eq!(vectors(&dataset), "10 of 10");
    let kat = dataset.kat.values_mut();
    let kat = kat.map(|entry| &mut entry.value);
    for digest in kat.flat_map(|kat| &mut kat.digests) {
        digest.found = Some("00".repeat(32));
    }
    assert_eq!(vectors(&dataset), "0 of 10");
}

#[test]
fn every_page_of_an_unfinished_run_says_so() {
    let mut dataset = Synthetic::default().build();
    dataset.campaign.ended_utc = None;
    let rows = dataset.campaign.rows.len();
    dataset.campaign.rows[0].status = harness::evidence::Status::Partial;
    let words = format!(
        "This run is not finished: {} of {rows} rows are complete.",
        rows - 1
    );
    let pages = pages("unfinished", &dataset);
    for page in [
        "index",
        "method",
        "sizes",
        "summary",
        "symmetric",
        "sign-09",
    ] {
        let page = pages.text(&format!("{page}.md"));
        assert!(page.contains(&words), "{page}");
    }
}

#[test]
fn a_profile_of_a_busy_machine_is_marked() {
    let mut dataset = Synthetic::default().build();
    let profile = &mut dataset.profile.values_mut().next().unwrap().value;
    for key in &mut profile.passes[..4] {
        key.disturbed = vec![0, 1, 2];
        key.counted = 2;
        key.involuntary_switches = 7;
    }
    let all = profile.passes.len();
    let pages = pages("busy", &dataset);
    let note = format!("for 4 of {all} keys every pass was disturbed");
    for page in ["sign-09.md", "symmetric.md"] {
        let page = pages.text(page);
        assert!(page.contains(&note), "{page}");
        assert!(page.contains("has 7 involuntary switches"), "{page}");
    }
    let method = pages.text("method.md");
    assert!(
        method.contains("4 of 180 keys had disturbed passes only"),
        "{method}"
    );
}

#[test]
fn medians_of_memory_stand_beside_the_worst() {
    let mut dataset = Synthetic::default().build();
    let memory = &mut dataset.memory.values_mut().next().unwrap().value;
    let derived = memory.derived.as_mut().unwrap();
    (
        derived.median.stack_peak_bytes,
        derived.median.heap_peak_bytes,
    ) = (1234.0, 567.5);
    let page = pages("medians", &dataset).text("sign-09.md");
    let tables = cells::tables(&page);
    let caption = "Memory of one operation in isolation";
    let table = tables
        .iter()
        .find(|t| t.caption.starts_with(caption))
        .unwrap();
    let row = cells::by_title(table, &table.rows[0]);
    assert_eq!(row["median stack (bytes)"], "1234");
    assert_eq!(row["median heap (bytes)"], "567.5");
    assert_eq!(row["stack (bytes)"], "4128", "the worst of three runs");
}

/// An accepted deviation is said on every page that has a number of the instance: its row is marked
/// wherever a table names it, and pages that only count it have the note.
#[test]
fn a_known_deviation_is_marked_on_every_page() {
    let mut dataset = Synthetic::default().build();
    let label = "dove_a_128";
    for ((identity, _), entry) in &mut dataset.kat {
        if identity.label == label {
            entry.value.result = harness::evidence::KatResult::Mismatch;
        }
    }
    dataset.campaign.candidates[0].kat_issues = vec![harness::evidence::KatIssueInfo {
        instance: label.into(),
        result: "MISMATCH".into(),
        reason: "the published text has a wrong digit".into(),
    }];
    let pages = pages("deviation", &dataset);
    let mark = "KAT MISMATCH, a known deviation: the published text has a wrong digit";
    let mut named = Vec::new();
    for file in pages
        .files
        .iter()
        .filter(|file| file.extension().is_some_and(|e| e == "md"))
    {
        let page = std::fs::read_to_string(file).unwrap();
        let file = file.file_name().unwrap().to_string_lossy().into_owned();
        let quoted = format!("`{label}`");
        let rows = cells::tables(&page)
            .into_iter()
            .flat_map(|table| table.rows);
        for row in rows.filter(|row| row.iter().any(|cell| cells::plain(cell) == label)) {
            let cell = row.iter().find(|cell| cell.starts_with(&quoted)).unwrap();
            let marked = notes_of(cell).any(|note| {
                page.lines()
                    .any(|line| line.starts_with(&format!("[^{note}]: ")) && line.contains(mark))
            });
            assert!(marked, "{file}: {row:?}");
            named.push(file.clone());
        }
        if file == "index.md" || file == "method.md" {
            assert!(
                page.contains(&format!("dove_a_128: {mark}")),
                "{file}: {page}"
            );
        }
        // The other instances pass.
        let other = page.lines().filter(|line| line.contains("`dove_b_256`"));
        for line in other {
            assert!(
                !notes_of(line).any(|note| page.contains(&format!("[^{note}]: {mark}"))),
                "{file}: {line}"
            );
        }
    }
    named.dedup();
    for file in [
        "sign-09.md",
        "summary.md",
        "sizes.md",
        "symmetric.md",
        "ranking-128.md",
    ] {
        assert!(
            named.iter().any(|n| n == file),
            "{file} names no row: {named:?}"
        );
    }
    let sections = pages.text("sign-09.md");
    assert!(
        sections.matches(&format!("`{label}`[^")).count() >= 10,
        "{sections}"
    );
}

/// Few calls and a failed KAT go with a figure into charts and the sentences beside them.
#[test]
fn charts_star_what_must_be_kept_in_mind() {
    let spec = Synthetic {
        calls: 3,
        ..Synthetic::default()
    };
    let mut dataset = spec.build();
    for ((identity, _), entry) in &mut dataset.kat {
        if identity.label == "dove_b_256" {
            entry.value.result = harness::evidence::KatResult::Crash;
        }
    }
    let pages = pages("stars", &dataset);
    let stars = |chart: &str| {
        pages
            .text(&format!("charts/{chart}.svg"))
            .matches("*\n</text>")
            .count()
    };
    assert_eq!(stars("sign-09-means"), 6, "every row has few calls");
    assert_eq!(
        stars("sign-09-symmetric"),
        3,
        "shares of the code whose KAT failed"
    );
    let page = pages.text("sign-09.md");
    assert!(page.contains("of dove_b_256 (n=15, KAT CRASH)"), "{page}");
    assert_eq!(page.matches("A star marks fewer than 100 calls").count(), 3);
    assert_eq!(stars("sign-09-trials"), 6, "trials of few calls");
    let farthest = page
        .lines()
        .find(|line| line.starts_with("The counted trial farthest"));
    let marked = |text: &str| text.contains(" (n=15) ") || text.contains(" (n=15, KAT CRASH) ");
    assert!(farthest.is_some_and(marked), "{farthest:?}");
    let all = self::pages("no-stars", &Synthetic::default().build());
    assert!(!all.text("sign-09.md").contains("A star marks"));
}

/// The tables that repeat figures of a record say so where it has few calls.
#[test]
fn trials_and_calls_are_marked_where_there_are_few() {
    let few = Synthetic {
        calls: 3,
        ..Synthetic::default()
    };
    let page = pages("few", &few.build()).text("sign-09.md");
    let tables = cells::tables(&page);
    for caption in [
        "Agreement of the trials",
        "Quantiles of the time of one call",
    ] {
        let table = tables
            .iter()
            .find(|t| t.caption.starts_with(caption))
            .unwrap();
        assert_eq!(table.rows.len(), 6, "{caption}");
        for row in &table.rows {
            let operation = &cells::by_title(table, row)["operation"];
            let start = |note: &str| format!("[^{note}]: n=15: fewer than the 100 measurements");
            let marked = notes_of(operation).any(|note| page.contains(&start(note)));
            assert!(marked, "{caption}: {row:?}");
        }
    }
    let enough = pages("enough", &Synthetic::default().build()).text("sign-09.md");
    assert!(!enough.contains("]: n="), "{enough}");
}

/// Every chart says which way is better, in the chart and in the sentence beside it.
#[test]
fn every_chart_says_which_way_is_better() {
    let pages = pages("better", &Synthetic::default().build());
    let page = pages.text("toy.md");
    for (chart, inside, beside) in [
        ("means", "shorter is better", "Lower is better."),
        (
            "trials",
            "closer together is better",
            "Trials that lie closer together are better.",
        ),
        (
            "symmetric",
            "neither end is better",
            "Neither a larger nor a smaller share is better.",
        ),
    ] {
        let svg = pages.text(&format!("charts/toy-{chart}.svg"));
        assert!(svg.contains(inside), "{chart}: {svg}");
        let (_, after) = page
            .split_once(&format!("](charts/toy-{chart}.svg)"))
            .expect(chart);
        let sentence = after.trim_start().lines().next().unwrap();
        assert!(sentence.contains(beside), "{chart}: {sentence}");
    }
}

/// `[report] kind = "self-assessment"`: the pages of a submitter say that they are no independent ones.
#[test]
fn a_self_assessment_says_that_it_is_one() {
    let top = |kind: &str| {
        let mut dataset = Synthetic::default().build();
        dataset.campaign.report_kind = kind.to_owned();
        let page = pages(kind, &dataset).text("sign-09.md");
        page.split("## 1.").next().unwrap().to_owned()
    };
    let own = top("self-assessment");
    assert!(
        own.contains("Submitter's self-assessment following the structure"),
        "{own}"
    );
    assert!(own.contains("Not an independent measurement."), "{own}");
    assert!(!own.contains("Independent measurement"), "{own}");
    let independent = top("independent");
    assert!(
        independent.contains("Independent measurement following"),
        "{independent}"
    );
    assert!(
        independent.contains("Not a submitter self-assessment."),
        "{independent}"
    );
}

/// What a finished dataset has no evidence of is not going to come.
#[test]
fn only_an_unfinished_run_has_something_that_is_not_measured_yet() {
    let without_phases = || {
        let spec = Synthetic {
            all_phases: false,
            ..Synthetic::default()
        };
        spec.build()
    };
    let finished = pages("finished", &without_phases()).text("sign-09.md");
    for text in [
        "The memory of an operation in isolation was not measured",
        "The share of symmetric primitives was not measured",
    ] {
        assert!(finished.contains(text), "{text}: {finished}");
    }
    assert!(!finished.contains("not measured yet"));
    let mut running = without_phases();
    running.campaign.ended_utc = None;
    let running = pages("running", &running).text("sign-09.md");
    assert_eq!(
        running
            .matches("not measured yet: this run is not finished")
            .count(),
        2
    );
}

/// Zone and language of whoever renders are no part of a page.
#[test]
fn pages_are_the_same_in_every_time_zone_and_language() {
    let folder = tempfile::tempdir().unwrap();
    testing::write(&Synthetic::default().build(), &folder.path().join("run")).unwrap();
    let report = |zone: &str, language: &str, more: &[&str]| {
        let mut command = campaign(folder.path());
        command.args(["report", "run"]).args(more);
        command
            .env("TZ", zone)
            .env("LC_ALL", language)
            .env("LANG", language);
        command
    };
    report("UTC", "C", &[]).assert().success();
    // Those that a machine lacks fall back to C; a zone with its rule in its name needs no file.
    for (zone, language) in [
        ("Pacific/Kiritimati", "de_DE.UTF-8"),
        ("XYZ-13:45", "tr_TR.UTF-8"),
        ("America/St_Johns", "ar_EG.UTF-8"),
        ("", "C.UTF-8"),
    ] {
        let output = report(zone, language, &["--check"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{zone} {language}: {text}");
    }
}

/// The clock of the governor and the one that was measured are two facts.
#[test]
fn a_measured_clock_stands_beside_the_one_that_is_set() {
    let arm = published_page("arm_1/sign-09.md");
    assert!(arm.contains("| fixed 2.71 GHz (governor performance, minimum = maximum)"));
    assert!(
        arm.contains("Measured clock: 2.70 GHz on CPU 2, 2.69 GHz on CPU 3, 2.69 GHz on CPU 7, as the source"),
        "{arm}"
    );
    assert!(arm.contains("Core cycles over time of the timed calls below: 2.69 to 2.70 GHz."));
    let compared = published_page("compare/x86_1--arm_1.md");
    let row =
        "| measured clock | –[^1] | 2.70 GHz on CPU 2, 2.69 GHz on CPU 3, 2.69 GHz on CPU 7 |";
    assert!(compared.contains(row), "{compared}");
    assert!(compared.contains(
        "| core cycles over time of the timed calls | 2.06 to 2.10 GHz | 2.69 to 2.70 GHz |"
    ));
    // Where it was measured by this program, how is said.
    let mut dataset = Synthetic::default().build();
    for cpu in &mut dataset.environments[0].value.cpus {
        cpu.measured_clock_hz = Some(2_095_000_000);
    }
    let page = pages("clock", &dataset).text("toy.md");
    assert!(page.contains("by a loop of dependent additions"), "{page}");
    let descriptions =
        ["arm_1", "x86_1"].map(|system| published_page(&format!("{system}/index.md")));
    assert!(descriptions[0].contains("one core at a time, fixed 2.71 GHz"));
    assert!(!descriptions[1].contains("fixed"), "{}", descriptions[1]);
}

fn published_page(file: &str) -> String {
    let page = crate::support::root().join("reports").join(file);
    std::fs::read_to_string(page).expect(file)
}

/// What an import does not know is not stated as if it were: disturbances, CPUs, wrappers, processes.
#[test]
fn the_published_pages_state_no_more_than_their_sources() {
    let arm = published_page("arm_1/sign-09.md");
    for text in [
        "The source states 0 disturbed retries; its attempts carry no flags.",
        "CPU is the one that the processes were pinned to; where they ran was not recorded.",
        "an interval itself needs at least 3",
        "The memory of an operation in isolation was not measured",
        "What a wrapper costs was not measured: the shares contain it.",
    ] {
        assert!(arm.contains(text), "{text}: {arm}");
    }
    for text in ["attempts were disturbed", "really ran on", " yet"] {
        assert!(!arm.contains(text), "{text}");
    }
    let tables = cells::tables(&arm);
    let trials = tables
        .iter()
        .find(|t| t.caption.starts_with("Agreement"))
        .unwrap();
    for row in &trials.rows {
        let row = cells::by_title(trials, row);
        assert_eq!(cells::plain(&row["disturbed"]), "–");
        assert_eq!(cells::plain(&row["repeated"]), "0");
    }
    let x86 = published_page("x86_1/sign-09.md");
    for text in [
        "Baseline and peak are as the published page prints them. It does not say that the two are of one process",
        "Survey verdict, by the calls that the published page prints: `ICCS-only`.",
        "Whether the shares contain the cost of the wrappers is not known.",
    ] {
        assert!(x86.contains(text), "{text}: {x86}");
    }
    let method = published_page("arm_1/method.md");
    for text in [
        "| disturbed retries that the source states (not among the attempts, which carry no flags) | 0 |",
        ": core cycles have no fixed rate (not_recorded)",
        ": the source does not record it (not_recorded)",
        "Flow `iccs`: ten vectors",
        "Mode `strict`: the SHA-256",
    ] {
        assert!(method.contains(text), "{text}: {method}");
    }
    for page in [&arm, &x86, &method] {
        assert!(!page.contains("or has no such thing"), "{page}");
    }
    for page in [&arm, &x86, &published_page("arm_1/symmetric.md")] {
        let expanded = page.find("ICCS, the Institute of Commercial Cryptography Standards");
        // `NICCS`, the site, is another word.
        let first = page.match_indices("ICCS").map(|(at, _)| at);
        let first = first.filter(|at| page.as_bytes()[at - 1] != b'N').min();
        assert!(expanded.is_some(), "{page}");
        assert_eq!(expanded, first, "expanded where it is first named");
    }
}

/// Outside the seed's own table a share of zero is `0%` and a tiny one `<0.1%`; there a note tells.
#[test]
fn the_survey_tells_zero_from_tiny() {
    let survey = published_page("arm_1/symmetric.md");
    let page = published_page("arm_1/sign-09.md");
    let rows = |text: &str| {
        let tables = cells::tables(text);
        let mut tables = tables.into_iter();
        let found = tables
            .find(|t| t.header.contains(&"DRNG".to_owned()))
            .unwrap();
        found
            .rows
            .iter()
            .map(|row| cells::by_title(&found, row))
            .collect::<Vec<_>>()
    };
    let both: Vec<_> = rows(&survey).into_iter().zip(rows(&page)).collect();
    assert_eq!(both.len(), 18);
    let mut seen = std::collections::BTreeSet::new();
    for (survey, seed) in both {
        for title in ["pseudohash/XOF/sm3", "DRNG"] {
            let seed = &seed[title];
            let note = notes_of(seed).find_map(|note| {
                let start = format!("[^{note}]: ");
                page.lines().find_map(|line| line.strip_prefix(&start))
            });
            let printed = cells::plain(seed);
            let expected = match (printed.as_str(), note) {
                ("0.0%", Some("a share of exactly zero")) => "0%",
                ("0.0%", Some("a share above zero and below 0.05%")) => "\\<0.1%",
                (other, None) => other,
                other => panic!("{other:?}"),
            };
            assert_eq!(survey[title], expected);
            seen.insert(expected.to_owned());
        }
    }
    assert!(seen.contains("0%") && seen.contains("\\<0.1%"), "{seen:?}");
}

/// Why there is no noise floor: one reason, the one that holds.
#[test]
fn a_missing_noise_floor_says_why() {
    let method = |trials: u32, change: fn(&mut harness::dataset::Dataset)| {
        let spec = Synthetic {
            trials,
            ..Synthetic::default()
        };
        let mut dataset = spec.build();
        change(&mut dataset);
        let page = pages("floor", &dataset).text("method.md");
        let line = page
            .lines()
            .find(|line| line.contains("noise floor:") || line.contains("timed twice"));
        line.unwrap_or_else(|| panic!("{page}")).to_owned()
    };
    let nothing = |_: &mut harness::dataset::Dataset| {};
    assert_eq!(
        method(4, nothing),
        "No noise floor: the two timings cannot be tested: fewer than five trials."
    );
    assert!(method(7, nothing).contains("was timed twice in the same run"));
    let steady = |dataset: &mut harness::dataset::Dataset| {
        let all = dataset.timing.values_mut().chain(&mut dataset.aa);
        for attempt in all
            .flat_map(|e| &mut e.value.trials)
            .flat_map(|t| &mut t.attempts)
        {
            (attempt.nanoseconds, attempt.cycles) = (1_000_000, Some(1_000_000));
        }
    };
    assert_eq!(
        method(7, steady),
        "No noise floor: the two timings cannot be tested: their trials do not spread."
    );
    let alone = |dataset: &mut harness::dataset::Dataset| dataset.aa.clear();
    assert_eq!(
        method(7, alone),
        "No noise floor: no operation was timed a second time."
    );
}

/// A run of some instances: no ranking without rows, and what was left out is said.
#[test]
fn what_a_run_leaves_out_is_said_and_has_no_empty_table() {
    let mut dataset = Synthetic::default().build();
    dataset.campaign.only = Some("128|toy2".into());
    let is_256 = |identity: &harness::identity::Identity| identity.label.contains("256");
    dataset.campaign.rows.retain(|row| !is_256(&row.identity));
    let deferred = Reason::new(ReasonCode::NotInPlan, "plan quick takes the first build");
    for row in &mut dataset.campaign.rows {
        if row.identity.build == "performance" {
            row.status = Status::Skipped;
            row.reason = Some(deferred.clone());
        }
    }
    let shown: Vec<_> = dataset
        .campaign
        .rows
        .iter()
        .filter(|row| row.reason.is_none() && row.identity.label != "toy10")
        .map(|row| row.identity.clone())
        .collect();
    dataset
        .campaign
        .rows
        .retain(|row| row.identity.label != "toy10");
    dataset.timing.retain(|key, _| shown.contains(&key.0));
    let pages = pages("partial", &dataset);
    assert!(
        !pages.pages.join("ranking-256.md").exists(),
        "nothing of it was measured"
    );
    for file in ["index.md", "summary.md", "ranking-128.md"] {
        let page = pages.text(file);
        for text in [
            "1 identity: plan quick takes the first build (not_in_plan)",
            "all that --only 128\\|toy2 does not match: not asked for",
        ] {
            assert!(page.contains(text), "{file}: {text} in {page}");
        }
        assert!(!page.contains("ranking-256"), "{file}");
        assert!(
            cells::tables(&page)
                .iter()
                .all(|table| !table.rows.is_empty()),
            "{file}"
        );
    }
}

#[test]
fn a_summary_without_a_counter_says_why_and_keeps_the_shares() {
    let spec = Synthetic {
        source: SourceKind::None,
        ..Synthetic::default()
    };
    let mut dataset = spec.build();
    for entry in dataset.timing.values_mut() {
        let reason = Reason::new(ReasonCode::NoCounterEnoent, "the kernel refuses it");
        entry.value.cycle_source.reason = Some(reason);
    }
    let pages = pages("no-counter", &dataset);
    for file in ["summary.md", "ranking-128.md"] {
        let page = pages.text(file);
        let tables = cells::tables(&page);
        let share = |cell: &String| cell.contains("s (") && cell.contains('%');
        assert!(tables[0].rows[0].iter().any(share), "{file}: {page}");
    }
    let page = pages.text("summary.md");
    assert!(
        page.contains("No cycles and no ticks: the kernel refuses it"),
        "{page}"
    );
}

/// The files that are of all instances are among the evidence too, and an import without samples of
/// calls says so.
#[test]
fn shares_are_never_repeated_without_what_the_wrappers_cost() {
    let said = |dataset: &harness::dataset::Dataset| {
        let pages = pages("wrappers", dataset);
        ["summary.md", "ranking-128.md"].map(|file| {
            let text = pages.text(file);
            let sentences = text.split_inclusive(". ").map(str::trim);
            sentences
                .filter(|s| s.contains("the wrappers"))
                .map(|s| s.lines().next().unwrap().to_owned())
                .collect::<Vec<_>>()
        })
    };
    let mut dataset = Synthetic::default().build();
    let subtracted = "From the shares of sign-09, toy the cost of the wrappers is subtracted.";
    assert_eq!(said(&dataset), [[subtracted], [subtracted]]);
    for (key, profile) in &mut dataset.profile {
        if key.0.candidate == "toy" {
            profile.value.wrapper_cost_ticks = None;
        }
    }
    let [summary, ranking] = said(&dataset);
    assert_eq!(summary, ranking);
    assert_eq!(summary.len(), 2, "{summary:?}");
    assert!(
        summary[0].starts_with("From the shares of sign-09 the cost"),
        "{summary:?}"
    );
    assert!(
        summary[1].starts_with("The shares of toy contain what"),
        "{summary:?}"
    );
    dataset.profile.clear();
    assert_eq!(
        said(&dataset),
        [[""; 0], [""; 0]],
        "where there are no shares, nothing is said"
    );
}

#[test]
fn the_evidence_of_all_instances_has_its_digests() {
    let pages = pages("evidence", &Synthetic::default().build());
    let page = pages.text("toy.md");
    let tables = cells::tables(&page);
    let table = tables
        .iter()
        .find(|t| t.caption.starts_with("Files behind"))
        .unwrap();
    for file in ["campaign.json", "build.json", "environment/0.json"] {
        let digest = harness::hash::sha256(&std::fs::read(pages.run.join(file)).unwrap());
        let row = table
            .rows
            .iter()
            .find(|row| row[4].starts_with(&format!("[`{file}`]")));
        let row = row.unwrap_or_else(|| panic!("{file} in {table:?}"));
        assert_eq!(
            cells::plain(&row[5]),
            harness::report::format::digest16(&digest)
        );
        assert_eq!(row[..3], ["all", "all", "all"]);
    }
    let reports = crate::support::root().join("reports");
    let read = |file: &str| std::fs::read_to_string(reports.join(file)).unwrap();
    assert!(read("arm_1/sign-09.md").contains("The spread of single calls is not known: "));
    assert!(read("x86_1/sign-09.md").contains("| [`cells.json`]("));
}

/// An aggregate has what its published page states: results of KATs, and few calls.
#[test]
fn published_cells_count_and_are_marked_like_records() {
    let reports = crate::support::root().join("reports/x86_1");
    let read = |file: &str| std::fs::read_to_string(reports.join(file)).unwrap();
    let index = read("index.md");
    assert!(index.contains("| 6 | 6 of 6 | 18 of 18 |"), "{index}");
    assert!(!index.contains("nothing of it has been timed"));
    let page = read("sign-09.md");
    assert!(page.contains("| 35 (5 × 7)[^1] |"), "{page}");
}

/// Numbers of the notes that a cell points to.
fn notes_of(cell: &str) -> impl Iterator<Item = &str> {
    cell.split("[^")
        .skip(1)
        .filter_map(|rest| rest.split(']').next())
}

/// Tables of the published pages by section, in the order of ours.
const SECTIONS: [(&str, &str); 6] = [
    ("environment", "The machine"),
    ("kat", "Result of the known-answer"),
    ("performance", "Cost of one operation"),
    ("resource", "Static image"),
    ("sizes", "Sizes in bytes"),
    ("symmetric", "Share of wrapped"),
];

#[test]
fn every_cell_of_the_public_pages_is_reproduced() {
    let reports = crate::support::root().join("reports");
    for system in ["arm_1", "x86_1"] {
        let page = std::fs::read_to_string(reports.join(system).join("sign-09.md")).unwrap();
        let tables = cells::tables(&page);
        let expected = crate::support::root()
            .join(format!("harness/tests/data/expected/{system}-sign-09.tsv"));
        let mut compared = 0;
        let mut rows = std::collections::BTreeMap::new();
        let expected = std::fs::read_to_string(expected).unwrap();
        for line in expected.lines() {
            let parts: Vec<&str> = line.split('\t').collect();
            let [section, kind, cells @ ..] = &parts[..] else {
                continue;
            };
            let caption = SECTIONS.iter().find(|(name, _)| name == section).unwrap().1;
            let table = tables
                .iter()
                .find(|t| t.caption.starts_with(caption))
                .unwrap();
            if *kind == "header" {
                assert_eq!(table.header, *cells, "{system} {section}");
                continue;
            }
            let index = rows.entry(*section).or_insert(0);
            let ours: Vec<String> = table.rows[*index].iter().map(|c| cells::plain(c)).collect();
            *index += 1;
            // The public page of arm_1 names one CPU for all; its records name three.
            let wrong_cpu = system == "arm_1" && cells[0] == "processor";
            if !wrong_cpu {
                assert_eq!(ours, *cells, "{system} {section}");
            }
            compared += cells.len();
        }
        assert!(compared >= 360, "{compared} cells of {system}");
        for (section, caption) in SECTIONS {
            let table = tables
                .iter()
                .find(|t| t.caption.starts_with(caption))
                .unwrap();
            assert_eq!(
                table.rows.len(),
                rows[section],
                "{system} {section}: no more rows"
            );
        }
    }
}

#[test]
fn the_pages_in_the_repository_are_those_of_the_datasets() {
    let output = campaign(&crate::support::root())
        .args([
            "report",
            "--check",
            "x86_1/public-2026",
            "arm_1/public-2026",
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
