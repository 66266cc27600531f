//! `campaign compare`: two or more datasets, or two systems, row by row.

use super::exit::{Failure, Outcome};
use super::options::Global;
use super::{named, output, report as report_command};
use crate::compare::{compare, Comparison};
use crate::dataset::{Dataset, Shelf};
use crate::identity::Identity;
use crate::report::comparison::{render_comparison, REFERENCE};
use crate::report::templates::Templates;
use crate::report::{self, site, PageFile, ReportError};
use std::path::{Path, PathBuf};

/// Arguments of `compare`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The dataset that ratios are relative to
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// The datasets compared with it
    #[arg(value_name = "B", required = true)]
    pub b: Vec<PathBuf>,
}

/// Compares A with each B, writes the pages and says where.
pub fn run(args: &Args, global: &Global) -> Result<Outcome, Failure> {
    let templates = Templates::new(None).map_err(could_not)?;
    let mut paths = vec![args.a.clone()];
    paths.extend(args.b.iter().cloned());
    let paths = named::resolve(&paths, global)?;
    let (a, rest) = paths.split_first().expect("A is required");
    let real = |path: &Path| path.canonicalize().ok();
    if let Some(same) = rest.iter().find(|b| real(b) == real(a)) {
        return Err(Failure::request(format!(
            "`{}` is named twice: name two datasets, or two runs of one system",
            same.display()
        )));
    }
    let mut shelf = Shelf::default();
    let of_a = shelf.take(a).map_err(could_not)?;
    let mut all = Vec::new();
    for b in rest {
        let of_b = shelf.take(b).map_err(could_not)?;
        let (comparison, pages) = one([a, b], [&of_a, &of_b], &templates).map_err(could_not)?;
        let (folder, _) = site::comparison_place(a, b);
        let written = report::write(&folder, &pages).map_err(could_not)?;
        if !global.json {
            output::print(&summary(&comparison))?;
            if !global.quiet {
                let list: String = written
                    .iter()
                    .map(|p| format!("{}\n", p.display()))
                    .collect();
                output::print(&list)?;
            }
        }
        all.push(comparison);
    }
    let root = site::Published::at(a).map(|published| published.root);
    let published = rest.iter().any(|b| site::Published::at(b).is_some());
    if let Some(root) = root.filter(|_| published) {
        report_command::write_index(&root, &templates, &mut shelf)?;
    }
    if global.json {
        output::print_json(&all)?;
    }
    Ok(Outcome::found(all.iter().any(Comparison::found_anything)))
}

/// A comparison of two datasets and its files.
pub(super) fn one(
    [a, b]: [&Path; 2],
    datasets: [&Dataset; 2],
    templates: &Templates,
) -> Result<(Comparison, Vec<PageFile>), ReportError> {
    let [a_name, b_name] = [site::name_of(a), site::name_of(b)];
    let named = datasets
        .iter()
        .find_map(|d| d.campaign.reference_instance.clone());
    let reference: Option<Identity> = named.or_else(|| REFERENCE.parse().ok());
    let comparison = compare(
        datasets[0],
        datasets[1],
        [&a_name, &b_name],
        reference.as_ref(),
    );
    let (_, home) = site::comparison_place(a, b);
    let pages = render_comparison(&comparison, datasets, home, templates)?;
    Ok((comparison, pages))
}

/// Verdicts and findings in a few lines.
fn summary(comparison: &Comparison) -> String {
    let mut text = format!("{} against {}:\n", comparison.a.name, comparison.b.name);
    for row in &comparison.rows {
        let ratio = row.of(row.metric()).ratio;
        let ratio = ratio.map_or_else(String::new, |r| format!("{r:.4}  "));
        text += &format!(
            "  {}  {ratio}{}\n",
            row.identity.operation_key(row.operation),
            row.verdict.with_reason()
        );
    }
    for agreement in &comparison.agreement {
        let (equal, of) = (agreement.equal, agreement.facts);
        let what = agreement.what.text();
        let instances = agreement.identities;
        text += &format!("  {equal} of {of} equal: {what}, of {instances} instances\n");
    }
    for kind in comparison.not_compared() {
        text += &format!("  not compared: {}\n", kind.text());
    }
    for finding in &comparison.findings {
        text += &format!(
            "  disagreement: {} {}: {} and {}\n",
            finding.identity, finding.what, finding.a, finding.b
        );
    }
    text
}

fn could_not(error: impl Into<ReportError>) -> Failure {
    Failure::could_not(error.into())
}
