//! Which pages a dataset has, and their files: each page is rendered once to Markdown, and the HTML
//! file is made from that text.

use super::html::{self, Charts};
use super::templates::{TemplateError, Templates};
use super::view::{page_name, CandidatePage, IndexPage, Place};
use crate::dataset::{Dataset, DatasetError};
use rayon::prelude::*;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A file of the pages, with its path below their folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageFile {
    /// Path below the folder of the pages.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
}

/// Pages that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The dataset.
    #[error("cannot read the dataset to be shown")]
    Dataset(#[from] DatasetError),
    /// A template.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A page that cannot be written.
    #[error("cannot write the page `{}`: make room there, or make the place writable", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// Renders all pages of the run in `run_dir` into the folder `out` (which a run has as `pages/`), and
/// returns their paths: index first, then each candidate, HTML behind Markdown.
pub fn render_run(run_dir: &Path, out: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let dataset = Dataset::read(run_dir)?;
    let templates = Templates::new(None)?;
    let place = Place {
        evidence: "../".to_owned(),
        ..Place::default()
    };
    let pages = render(&dataset, &place, &templates)?;
    write(out, &pages)
}

/// All pages of a dataset.
pub fn render(
    dataset: &Dataset,
    place: &Place,
    templates: &Templates,
) -> Result<Vec<PageFile>, ReportError> {
    let mut pages = one(
        templates,
        "index.md",
        "index",
        &IndexPage::new(dataset, place),
    )?;
    let candidates: Vec<Vec<PageFile>> = dataset
        .campaign
        .candidates
        .par_iter()
        .filter(|candidate| has_page(dataset, &candidate.id))
        .map(|candidate| {
            let page = CandidatePage::new(dataset, candidate, place);
            one(templates, "candidate.md", &page_name(&candidate.id), &page)
        })
        .collect::<Result<_, _>>()?;
    pages.extend(candidates.into_iter().flatten());
    Ok(pages)
}

/// Whether any row of a candidate is shown.
fn has_page(dataset: &Dataset, candidate: &str) -> bool {
    let info = dataset
        .campaign
        .candidates
        .iter()
        .find(|c| c.id == candidate);
    info.is_some_and(|info| !super::view::is_empty(dataset, info))
}

/// One page in both forms.
fn one<T: Serialize>(
    templates: &Templates,
    template: &str,
    name: &str,
    page: &T,
) -> Result<Vec<PageFile>, ReportError> {
    let markdown = templates.render(template, page)?;
    let html = templates.shell(&title(&markdown), &html::body(&markdown, &Charts::new()))?;
    Ok(vec![
        PageFile {
            file: PathBuf::from(format!("{name}.md")),
            text: markdown,
        },
        PageFile {
            file: PathBuf::from(format!("{name}.html")),
            text: html,
        },
    ])
}

/// Text of the first heading.
fn title(markdown: &str) -> String {
    html::first_heading(markdown).unwrap_or_else(|| "Report".to_owned())
}

/// Writes pages below a folder; a page that is there already, byte for byte, is left alone.
pub fn write(folder: &Path, pages: &[PageFile]) -> Result<Vec<PathBuf>, ReportError> {
    let mut written = Vec::new();
    for page in pages {
        let path = folder.join(&page.file);
        put(&path, page.text.as_bytes()).map_err(|source| ReportError::Write {
            path: path.clone(),
            source,
        })?;
        written.push(path);
    }
    Ok(written)
}

/// A page is whole or not there, but can be made again, so that it need not be flushed to the disk.
fn put(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file =
        tempfile::NamedTempFile::with_prefix_in(crate::evidence::store::TEMPORARY, folder)?;
    std::io::Write::write_all(&mut file, bytes)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    file.persist(path)?;
    Ok(())
}
