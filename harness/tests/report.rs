//! Pages: complete, every cell from the counted attempts, nothing injected by names.

use harness::report::{self, render_run};
use harness::testing::{self, Synthetic};
use protocol::SourceKind;
use std::path::{Path, PathBuf};

/// A synthetic dataset on disk with its pages; `CAMPAIGN_KEEP_PAGES` names a folder that keeps them.
struct Pages {
    _folder: tempfile::TempDir,
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
fn pages_are_the_same_bytes_every_time() {
    let dataset = Synthetic::default().build();
    let templates = report::templates::Templates::new(None).unwrap();
    let place = report::view::Place::default();
    let one = report::render(&dataset, &place, &templates).unwrap();
    let two = report::render(&dataset, &place, &templates).unwrap();
    assert!(one == two && one.len() == 6);
}
