//! `campaign report`: pages of runs and datasets.

use super::exit::{Failure, Outcome};
use super::options::{Datasets, Global};
use super::{compare, named, output};
use crate::dataset::Shelf;
use crate::report::templates::{TemplateError, Templates};
use crate::report::{self, check, png, site, PageFile, ReportError};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Arguments of `report`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// What to show.
    #[command(flatten)]
    pub datasets: Datasets,
    /// Write nothing: compare with the pages that are there, show the differences, status 1 if any
    #[arg(long)]
    pub check: bool,
    /// Templates instead of the built-in ones (`campaign templates export` gives a start)
    #[arg(long, value_name = "DIR")]
    pub templates: Option<PathBuf>,
    /// Write each chart as a picture beside its SVG file too (needs rsvg-convert)
    #[arg(long, value_name = "FORMAT")]
    pub charts: Option<ChartFormat>,
}

/// Formats of chart files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ChartFormat {
    /// Portable network graphics
    Png,
}

/// What was done, for `--json`.
#[derive(Debug, Serialize)]
struct Done {
    /// Pages rendered.
    pages: usize,
    /// Folders they are in.
    folders: Vec<PathBuf>,
    /// Differences under `--check`.
    differences: Vec<String>,
}

/// Renders the pages of every dataset, and the index of systems where any is published; under
/// `--check` compares instead of writing.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let templates = Templates::new(args.templates.as_deref()).map_err(|error| match error {
        TemplateError::NoTemplates(_) => Failure::request(error),
        error => could_not(error),
    })?;
    let paths = named::resolve(&args.datasets.datasets, global)?;
    let mut done = Done {
        pages: 0,
        folders: Vec::new(),
        differences: Vec::new(),
    };
    let mut roots = BTreeSet::new();
    let mut shelf = Shelf::default();
    for path in &paths {
        let dataset = shelf.take(path).map_err(could_not)?;
        let target = site::target(path).map_err(could_not)?;
        let pages = report::render(&dataset, &target.place, &templates).map_err(could_not)?;
        settle(args, &target.folder, &pages, others(&target), &mut done)?;
        roots.extend(target.published.map(|published| published.root));
    }
    for root in &roots {
        comparisons(args, root, &templates, &mut shelf, &mut done)?;
        let index = index(root, &templates, &mut shelf)?;
        let folder = root.join(site::REPORTS);
        let systems = site::current(root)
            .into_iter()
            .map(|p| PathBuf::from(p.system));
        let others = systems.chain([PathBuf::from(site::COMPARE)]).collect();
        settle(args, &folder, &index, others, &mut done)?;
    }
    say(args, global, &done)
}

/// The index of systems with the comparisons that have pages.
fn index(root: &Path, templates: &Templates, shelf: &mut Shelf) -> Result<Vec<PageFile>, Failure> {
    let comparisons = site::comparisons(root);
    let names: Vec<String> = comparisons.into_iter().map(|(stem, _)| stem).collect();
    report::render_systems(root, &names, templates, shelf).map_err(could_not)
}

/// Writes the index of systems.
pub(super) fn write_index(
    root: &Path,
    templates: &Templates,
    shelf: &mut Shelf,
) -> Result<(), Failure> {
    let pages = index(root, templates, shelf)?;
    report::write(&root.join(site::REPORTS), &pages).map_err(could_not)?;
    Ok(())
}

/// Renders again the comparisons that have pages; one whose datasets are not there is left to be
/// found as unexplained.
fn comparisons(
    args: &Args,
    root: &Path,
    templates: &Templates,
    shelf: &mut Shelf,
    done: &mut Done,
) -> Result<(), Failure> {
    let folder = root.join(site::REPORTS).join(site::COMPARE);
    let mut pages = Vec::new();
    for [a, b] in site::comparisons(root)
        .into_iter()
        .filter_map(|(_, paths)| paths)
    {
        let of_a = shelf.take(&a).map_err(could_not)?;
        let of_b = shelf.take(&b).map_err(could_not)?;
        let (_, files) = compare::one([&a, &b], [&of_a, &of_b], templates).map_err(could_not)?;
        pages.extend(files);
    }
    if pages.is_empty() && !folder.is_dir() {
        return Ok(());
    }
    settle(args, &folder, &pages, BTreeSet::new(), done)
}

/// Writes the pages of a folder, or compares them.
fn settle(
    args: &Args,
    folder: &Path,
    pages: &[PageFile],
    others: BTreeSet<PathBuf>,
    done: &mut Done,
) -> Result<(), Failure> {
    done.pages += pages.len();
    done.folders.push(folder.to_owned());
    if args.check {
        let explained = pages.iter().map(|page| page.file.clone()).collect();
        let found = check::compare(folder, pages)
            .into_iter()
            .chain(check::orphans(folder, &explained, &others));
        done.differences
            .extend(found.map(|difference| difference.text()));
        return Ok(());
    }
    report::write(folder, pages).map_err(could_not)?;
    if let Some(ChartFormat::Png) = args.charts {
        png::write(folder, pages).map_err(could_not)?;
    }
    Ok(())
}

/// Subfolders of a system's pages that belong to its other datasets.
fn others(target: &site::Target) -> BTreeSet<PathBuf> {
    let published = target
        .published
        .iter()
        .filter(|published| published.is_current());
    published
        .flat_map(site::Published::siblings)
        .map(PathBuf::from)
        .collect()
}

fn say(args: &Args, global: &Global, done: &Done) -> Result<Outcome, Failure> {
    if global.json {
        output::print_json(done)?;
    } else {
        for difference in &done.differences {
            output::print(difference)?;
        }
        if !global.quiet {
            let verb = if args.check { "compared" } else { "rendered" };
            for folder in &done.folders {
                output::print(&format!("{}\n", folder.display()))?;
            }
            output::print(&format!(
                "{} files {verb}, {} differences\n",
                done.pages,
                done.differences.len()
            ))?;
        }
    }
    Ok(Outcome::found(!done.differences.is_empty()))
}

fn could_not(error: impl Into<ReportError>) -> Failure {
    Failure::could_not(error.into())
}
