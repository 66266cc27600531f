//! Which pages a dataset has, and their files: each page is rendered once to Markdown, and the HTML
//! file is made from that text.

use super::html::{self, Charts};
use super::templates::{TemplateError, Templates};
use super::view::{
    self, page_name, CandidatePage, IndexPage, MethodPage, Place, RankingPage, SizesPage,
    StudyPage, SummaryPage, SymmetricPage, SystemsPage, STUDY_PAGE,
};
use crate::catalogue::CatalogueError;
use crate::dataset::{Dataset, DatasetError, Shelf};
use crate::evidence::CandidateInfo;
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

impl PageFile {
    fn new(file: String, text: String) -> Self {
        PageFile {
            file: PathBuf::from(file),
            text,
        }
    }
}

/// Pages that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The dataset.
    #[error("cannot read the dataset to be shown")]
    Dataset(#[from] DatasetError),
    /// The size catalogue.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// A template.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A chart as PNG.
    #[error(transparent)]
    Png(#[from] super::png::PngError),
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
/// returns their paths: index first, then each candidate, then the pages over all of them; HTML behind
/// Markdown, charts behind their page.
pub fn render_run(run_dir: &Path, out: &Path) -> Result<Vec<PathBuf>, ReportError> {
    let dataset = Dataset::read(run_dir)?;
    let templates = Templates::new(None)?;
    let place = Place {
        evidence: "../".to_owned(),
        catalogue: super::site::catalogue_for(run_dir)?,
        ..Place::default()
    };
    let pages = render(&dataset, &place, &templates)?;
    write(out, &pages)
}

/// The index of the systems of a root, with the comparisons that have pages there.
pub fn render_systems(
    root: &Path,
    comparisons: &[String],
    templates: &Templates,
    shelf: &mut Shelf,
) -> Result<Vec<PageFile>, ReportError> {
    let page = SystemsPage::new(&super::site::system_rows(root, shelf)?, comparisons);
    both_of(templates, "systems.md", "index", &page, Charts::new())
}

/// A page to be rendered: each is a job of its own.
enum Job<'a> {
    Index,
    Candidate(&'a CandidateInfo),
    Summary,
    Method,
    Sizes,
    Symmetric,
    Ranking(u32),
}

/// All pages of a dataset.
pub fn render(
    dataset: &Dataset,
    place: &Place,
    templates: &Templates,
) -> Result<Vec<PageFile>, ReportError> {
    if dataset.campaign.study.is_some() {
        return study(dataset, place, templates);
    }
    let mut jobs = vec![Job::Index];
    let shown = view::candidates_with_page(&dataset.campaign);
    let candidates = dataset.campaign.candidates.iter();
    jobs.extend(
        candidates
            .filter(|candidate| shown.contains(&candidate.id))
            .map(Job::Candidate),
    );
    jobs.extend([Job::Summary, Job::Method, Job::Sizes, Job::Symmetric]);
    jobs.extend(
        view::targets(&dataset.campaign)
            .into_iter()
            .map(Job::Ranking),
    );
    let pages: Vec<Vec<PageFile>> = jobs
        .par_iter()
        .map(|job| page(job, dataset, place, templates))
        .collect::<Result<_, _>>()?;
    Ok(pages.into_iter().flatten().collect())
}

/// The pages of a study: an index, and the one that everything is on.
fn study(
    dataset: &Dataset,
    place: &Place,
    templates: &Templates,
) -> Result<Vec<PageFile>, ReportError> {
    let index = page(&Job::Index, dataset, place, templates)?;
    let mut charts = Charts::new();
    let mut pages = index;
    if let Some(page) = StudyPage::new(dataset, place, &mut charts) {
        let template = format!("{STUDY_PAGE}.md");
        pages.extend(both_of(templates, &template, STUDY_PAGE, &page, charts)?);
    }
    Ok(pages)
}

fn page(
    job: &Job,
    dataset: &Dataset,
    place: &Place,
    templates: &Templates,
) -> Result<Vec<PageFile>, ReportError> {
    let mut charts = Charts::new();
    match job {
        Job::Index => both_of(
            templates,
            "index.md",
            "index",
            &IndexPage::new(dataset, place),
            charts,
        ),
        Job::Candidate(candidate) => {
            let page = CandidatePage::new(dataset, candidate, place, &mut charts);
            both_of(
                templates,
                "candidate.md",
                &page_name(&candidate.id),
                &page,
                charts,
            )
        }
        Job::Summary => both_of(
            templates,
            "summary.md",
            "summary",
            &SummaryPage::new(dataset, place),
            charts,
        ),
        Job::Method => both_of(
            templates,
            "method.md",
            "method",
            &MethodPage::new(dataset, place),
            charts,
        ),
        Job::Sizes => both_of(
            templates,
            "sizes.md",
            "sizes",
            &SizesPage::new(dataset, place),
            charts,
        ),
        Job::Symmetric => both_of(
            templates,
            "symmetric.md",
            "symmetric",
            &SymmetricPage::new(dataset, place),
            charts,
        ),
        Job::Ranking(bits) => {
            let page = RankingPage::new(dataset, place, *bits);
            both_of(
                templates,
                "ranking.md",
                &format!("ranking-{bits}"),
                &page,
                charts,
            )
        }
    }
}

/// One page in both forms, and its charts as files of their own.
pub(super) fn both_of<T: Serialize>(
    templates: &Templates,
    template: &str,
    name: &str,
    page: &T,
    charts: Charts,
) -> Result<Vec<PageFile>, ReportError> {
    let markdown = templates.render(template, page)?;
    let html = templates.shell(&title(&markdown), &html::body(&markdown, &charts))?;
    let mut files = vec![
        PageFile::new(format!("{name}.md"), markdown),
        PageFile::new(format!("{name}.html"), html),
    ];
    let svg = charts.into_iter();
    files.extend(svg.map(|(file, text)| PageFile::new(file, text + "\n")));
    Ok(files)
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
