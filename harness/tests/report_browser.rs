//! Pages in a real browser: nothing injected, nothing wider than a phone, nothing loaded, sorting by
//! click and by keyboard, no serious finding of the accessibility rules, valid HTML.

use crate::support::{have, root, skip};
use harness::compare::compare;
use harness::evidence::{KatIssueInfo, Reason, ReasonCode, Status};
use harness::report::comparison::render_comparison;
use harness::report::{self, escape, templates::Templates, view::Place};
use harness::testing::{Synthetic, SyntheticCandidate};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Elements that a page may have; everything else was injected.
const ELEMENTS: &str =
    "a blockquote body button caption circle code div em figure h1 h2 h3 head hr \
    html input label li line link main meta ol p polygon polyline rect script section strong style \
    sup svg table tbody td text th thead title tr ul";

/// Smallest text of a chart on a phone, CSS pixels.
const CHART_TEXT_PX: f64 = 9.0;

/// How closely the browser looks: `full` in three views and with the accessibility rules, `brief` in
/// one view.
#[derive(Clone, Copy)]
pub enum Extent {
    Full,
    Brief,
}

/// What the browser found on pages; `None` where there is no browser (said as a skipped test).
pub fn look(extent: Extent, pages: &[PathBuf]) -> Option<Vec<Value>> {
    if !have("node", "nodejs") || !have("chromium", "chromium") {
        return None;
    }
    let folder = root().join("harness/tests/browser");
    if !folder.join("node_modules").is_dir() {
        skip("the modules of harness/tests/browser are not here; run `npm ci` there");
        return None;
    }
    let output = Command::new("node")
        .arg("check.mjs")
        .arg(path_of("chromium"))
        .arg(match extent {
            Extent::Full => "full",
            Extent::Brief => "brief",
        })
        .args(pages)
        .current_dir(&folder)
        .output()
        .expect("node runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let found: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found.len(), pages.len());
    Some(found)
}

/// Where a program is that is known to be on PATH.
fn path_of(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").expect("PATH");
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
    places.find(|place| place.is_file()).expect(program)
}

/// Asserts what must hold for every page.
pub fn assert_good(page: &Value) {
    let file = page["file"].as_str().unwrap();
    assert_eq!(
        page["invalid"],
        Value::Array(vec![]),
        "{file} is no valid HTML"
    );
    let views = page["views"].as_array().unwrap();
    assert!(!views.is_empty(), "{file}");
    for view in views {
        let place = format!("{file} at {}", view["view"]);
        for empty in [
            "messages",
            "requests",
            "violations",
            "handlers",
            "deadLinks",
        ] {
            assert_eq!(view[empty], Value::Array(vec![]), "{place}: {empty}");
        }
        assert_eq!(view["scripts"], 1, "{place}: the page's own script alone");
        let width = |key: &str| view[key].as_u64().expect(key);
        assert!(
            width("scrollWidth") <= width("innerWidth"),
            "{place}: too wide"
        );
        let elements = view["elements"].as_array().unwrap();
        assert!(elements.contains(&"html".into()), "{place}");
        for element in elements {
            let name = element.as_str().unwrap();
            assert!(
                ELEMENTS.split_whitespace().any(|e| e == name),
                "{place}: <{name}>"
            );
        }
        for table in view["tables"].as_array().unwrap() {
            assert!(
                table["caption"].is_string(),
                "{place}: a table without a caption"
            );
            assert_eq!(table["scoped"], true, "{place}: {}", table["caption"]);
            assert_eq!(table["ragged"], 0, "{place}: {}", table["caption"]);
        }
        for chart in view["charts"].as_array().unwrap() {
            let smallest = chart["smallestTextPx"].as_f64().unwrap();
            assert!(
                smallest >= CHART_TEXT_PX,
                "{place}: {smallest} px in {}",
                chart["label"]
            );
            assert_eq!(
                chart["textOutside"],
                Value::Array(vec![]),
                "{place}: {}",
                chart["label"]
            );
        }
    }
}

/// Asserts what must hold for a page without scripts, and on paper.
fn assert_good_without(page: &Value) {
    let file = page["file"].as_str().unwrap();
    let [scripted, scriptless, print] =
        ["scripted", "scriptless", "print"].map(|how| &page["without"][how]);
    let number = |found: &Value, key: &str| found[key].as_u64().expect(key);
    // A script adds controls and takes nothing away.
    assert!(number(scripted, "controls") > 0, "{file}");
    assert_eq!(
        scriptless["controls"], 0,
        "{file}: a control that does nothing"
    );
    assert_eq!(print["inputs"], 0, "{file}: nobody types on paper");
    for (how, found) in [("without scripts", scriptless), ("in print", print)] {
        let place = format!("{file} {how}");
        assert!(number(found, "rows") > 10, "{place}");
        for key in ["text", "rows", "charts"] {
            assert_eq!(found[key], scripted[key], "{place}: {key}");
        }
        for key in ["hiddenRows", "hiddenCharts"] {
            assert_eq!(found[key], 0, "{place}: {key}");
        }
        assert!(
            number(found, "scrollWidth") <= number(found, "innerWidth"),
            "{place}: {} of {}",
            found["scrollWidth"],
            found["innerWidth"]
        );
    }
    // Paper cannot be scrolled, and is white for whoever prefers the dark.
    assert_eq!(print["cutTables"], Value::Array(vec![]), "{file} in print");
    let black_on_white = ["rgb(255, 255, 255)", "rgb(0, 0, 0)"];
    assert_eq!(
        print["colours"],
        serde_json::json!(black_on_white),
        "{file}"
    );
    assert!(
        number(print, "pdfBytes") > 10_000,
        "{file}: it can be printed"
    );
}

/// Renders a dataset into a folder, without writing it.
fn render(dataset: &harness::dataset::Dataset, folder: &Path) -> Vec<PathBuf> {
    let templates = Templates::new(None).unwrap();
    let pages = report::render(dataset, &Place::default(), &templates).unwrap();
    let written = report::write(folder, &pages).unwrap();
    written
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "html"))
        .collect()
}

#[test]
fn pages_work_in_a_browser_at_desk_and_phone() {
    let folder = tempfile::tempdir().unwrap();
    let unfixed = Synthetic {
        fixed_host: false,
        ..Synthetic::default()
    };
    let (full, brief): (Vec<PathBuf>, Vec<PathBuf>) = render(&unfixed.build(), folder.path())
        .into_iter()
        .partition(|page| page.ends_with("toy.html") || page.ends_with("summary.html"));
    assert_eq!((full.len(), brief.len()), (2, 7));
    let Some(found) = look(Extent::Full, &full) else {
        return;
    };
    for page in found
        .iter()
        .chain(&look(Extent::Brief, &brief).unwrap_or_default())
    {
        assert_good(page);
    }
    for page in &found {
        assert_good_without(page);
    }
    let summary = of(&found, "summary.html");
    let rows = summary["views"][0]["use"]["rows"].as_array().unwrap();
    assert_ne!(rows[1], rows[2], "a second click turns the order");
    assert_eq!(rows[1], rows[3], "the keyboard sorts too");
    let candidate = of(&found, "toy.html");
    let filter = &candidate["views"][0]["use"]["filter"];
    assert_eq!(
        (&filter["all"], &filter["some"]),
        (&12.into(), &4.into()),
        "one operation of three"
    );
    assert_eq!(candidate["views"][0]["charts"].as_array().unwrap().len(), 3);
}

/// The two candidate pages that are published and their comparison, as they are in the repository.
#[test]
fn the_published_pages_work_in_a_browser() {
    let names = ["arm_1/sign-09", "x86_1/sign-09", "compare/x86_1--arm_1"];
    let pages = names.map(|name| root().join(format!("reports/{name}.html")));
    let Some(found) = look(Extent::Full, &pages) else {
        return;
    };
    for page in &found {
        assert_good(page);
        assert_good_without(page);
        let rows = page["views"][0]["use"]["rows"].as_array().unwrap();
        assert_ne!(
            rows[1], rows[2],
            "{}: a second click turns the order",
            page["file"]
        );
        assert!(!page["views"][0]["charts"].as_array().unwrap().is_empty());
    }
}

/// All other pages that are published.
#[test]
fn every_other_published_page_is_valid_and_works_in_a_browser() {
    let reports = root().join("reports");
    let mut pages: Vec<PathBuf> = crate::support::files(&reports)
        .into_iter()
        .filter(|page| page.extension().is_some_and(|e| e == "html"))
        .filter(|page| !page.ends_with("sign-09.html") && !page.starts_with("compare"))
        .map(|page| reports.join(page))
        .collect();
    pages.sort();
    for name in [
        "index",
        "method",
        "sizes",
        "symmetric",
        "ranking-128",
        "summary",
    ] {
        for system in ["arm_1", "x86_1"] {
            let page = reports.join(format!("{system}/{name}.html"));
            assert!(pages.contains(&page), "{}", page.display());
        }
    }
    let Some(found) = look(Extent::Brief, &pages) else {
        return;
    };
    for page in &found {
        assert_good(page);
        let tables = page["views"][0]["tables"].as_array().unwrap();
        let file = page["file"].as_str().unwrap();
        assert!(
            !tables.is_empty() || file.ends_with("x86_1/method.html"),
            "{file}"
        );
    }
}

/// The page of that file name.
fn of<'p>(pages: &'p [Value], name: &str) -> &'p Value {
    pages
        .iter()
        .find(|page| {
            page["file"]
                .as_str()
                .unwrap()
                .ends_with(&format!("/{name}"))
        })
        .expect(name)
}

/// Names that must stay names.
fn hostile() -> Vec<String> {
    let mut names: Vec<String> = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "a|b|c",
        "`tick` ``ticks``",
        "a\\|b\\",
        "&lt;b&gt; &amp;",
        "[x](javascript:alert(1))",
        "![i](https://example.invalid/i.png)",
        "line one\nline two",
        "{{ frame.system }} {% raw %}",
        "שלום-عالم-\u{202E}gnp.exe",
        "*b* _i_ ~~s~~ $x$ <!-- c -->",
        "'; DROP TABLE t; --",
    ]
    .map(str::to_owned)
    .to_vec();
    names.push("x".repeat(300));
    names
}

#[test]
fn hostile_names_stay_names() {
    let names = hostile();
    let labels: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 128)).collect();
    let spec = Synthetic {
        candidates: vec![
            SyntheticCandidate::new("<h1>cand\"idate|", "<b>Name</b> | `x`", &labels)
                .with_codes(&[("re|f`", "<i>b&b")]),
            SyntheticCandidate::new("index", "</title><script>alert(2)</script>", &[("l", 128)]),
        ],
        system: "sys</style><script>alert(3)</script>".into(),
        ..Synthetic::default()
    };
    let mut dataset = spec.build();
    dataset.campaign.title = "</title><script>alert(4)</script>".into();
    dataset.campaign.system_description =
        Some("# not a heading\n\n<script>alert(5)</script>".into());
    dataset.environments[0].value.stable.cpu_model = Some("<b>| CPU` |".into());
    let candidate = &mut dataset.campaign.candidates[0];
    candidate
        .links
        .insert("<i>run</i>".into(), "javascript:alert(6)".into());
    candidate
        .links
        .insert("a](b".into(), "https://example.invalid/\"><script>".into());
    candidate.kat_issues.push(KatIssueInfo {
        instance: names[0].clone(),
        result: "NOKAT".into(),
        reason: "<script>alert(7)</script> | `".into(),
    });
    let failed = dataset.campaign.rows[0].identity.clone();
    dataset.campaign.rows[0].status = Status::Failed;
    dataset.campaign.rows[0].reason = Some(Reason::new(
        ReasonCode::BuildFailed,
        "cc: error: |x| `y`\n[^9]: z <script>alert(8)</script>",
    ));
    dataset.timing.retain(|key, _| key.0 != failed);

    let folder = tempfile::tempdir().unwrap();
    let pages = render(&dataset, folder.path());
    let Some(found) = look(Extent::Brief, &pages) else {
        return;
    };
    for page in &found {
        assert_good(page);
        for target in page["views"][0]["targets"].as_array().unwrap() {
            let target = target.as_str().unwrap();
            assert!(
                escape::is_harmless(target) || target.starts_with('#') || target == "data:,",
                "{target}"
            );
        }
    }
    let page = of(
        &found,
        &format!("{}.html", report::view::page_name("<h1>cand\"idate|")),
    );
    let tables = page["views"][0]["tables"].as_array().unwrap();
    let performance = tables
        .iter()
        .find(|table| {
            table["caption"]
                .as_str()
                .unwrap()
                .starts_with("Cost of one operation")
        })
        .unwrap();
    let shown: Vec<&str> = performance["firstColumn"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell.as_str().unwrap())
        .collect();
    assert_eq!(shown.len(), names.len() * 3);
    for name in &names {
        let name = escape::one_line(name);
        assert_eq!(
            shown.iter().filter(|cell| **cell == name).count(),
            3,
            "{name} in {shown:?}"
        );
    }
}

/// Names of the two sides are folders of the user's, and those of instances are anybody's.
#[test]
fn a_comparison_of_hostile_names_is_a_page() {
    let names = hostile();
    let labels: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), 128)).collect();
    let candidate = SyntheticCandidate::new("<h1>cand\"idate|", "<b>Name</b>", &labels);
    let spec = Synthetic {
        candidates: vec![candidate.with_codes(&[("re|f`", "<i>b&b"), ("a#b", "%3C")])],
        trials: 5,
        ..Synthetic::default()
    };
    let datasets = [spec.build(), Synthetic { speed: 2.0, ..spec }.build()];
    let sides = ["<script>alert(1)<script>", "a \"b|c` #?%41&amp;"];
    let comparison = compare(&datasets[0], &datasets[1], sides, None);
    let templates = Templates::new(None).unwrap();
    let pair = [&datasets[0], &datasets[1]];
    let files = render_comparison(&comparison, pair, None, &templates).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // A folder's name has no slash.
    assert!(files.iter().all(|page| page.file.components().count() <= 2));
    let written = report::write(folder.path(), &files).unwrap();
    let html = written
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "html"));
    let Some(found) = look(Extent::Brief, &html.cloned().collect::<Vec<_>>()) else {
        return;
    };
    let [page] = &found[..] else {
        panic!("{found:?}")
    };
    assert_good(page);
    let view = &page["views"][0];
    assert_eq!(
        view["charts"].as_array().unwrap().len(),
        1,
        "the chart is inside the page"
    );
    let tables = view["tables"].as_array().unwrap();
    let named = |table: &Value, name: &str| {
        let cells = table["firstColumn"].as_array().unwrap();
        cells
            .iter()
            .filter(|cell| cell.as_str() == Some(name))
            .count()
    };
    let starts = |table: &&Value, text: &str| table["caption"].as_str().unwrap().starts_with(text);
    for (caption, rows) in [("Mean core cycles", 6), ("The fastest code", 3)] {
        let table = tables.iter().find(|table| starts(table, caption)).unwrap();
        for name in &names {
            assert_eq!(
                named(table, &escape::one_line(name)),
                rows,
                "{caption}: {name}"
            );
        }
    }
    for target in view["targets"].as_array().unwrap() {
        let target = target.as_str().unwrap();
        let file = target.strip_suffix(".json").or(target.strip_suffix(".csv"));
        assert!(
            file.is_some_and(|stem| !stem.contains(['#', '?', ' ', '"', '<']))
                || target.starts_with('#')
                || target == "data:,",
            "{target}"
        );
    }
}
