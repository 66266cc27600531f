//! Imports: the source is checked by the rules of its own format, and every record is derived again.

use super::files;
use super::finding::{Finding, Findings};
use crate::evidence::CampaignFile;
use crate::import::{cells, derive, read, Context};
use std::collections::BTreeSet;
use std::path::Path;

/// Checks an import or an aggregate against its source.
pub fn check(root: &Path, class: &str, findings: &mut Vec<Finding>) {
    let bytes = match files::read(root, "campaign.json", files::LARGEST) {
        Ok(bytes) if matches!(class, "imported" | "aggregate") => bytes,
        _ => return,
    };
    let Ok(stated) = serde_json::from_slice::<CampaignFile>(&bytes) else {
        return; // said already
    };
    let derived = match class {
        "imported" => evidence(root, &stated, findings),
        _ => table(root, &stated, findings),
    };
    for (path, expected) in derived.unwrap_or_default() {
        let mut f = Findings::of(&path);
        match files::read(root, &path, files::LARGEST) {
            Ok(found) if found == expected => {}
            Ok(found) => {
                let (pointer, expected, found) = super::shape::first_difference(&expected, &found);
                f.error(pointer, "the file follows from the source", expected, found);
            }
            Err(error) => f.error(
                "",
                "the file that follows from the source is there",
                "a file",
                error,
            ),
        }
        findings.append(&mut f.list);
    }
}

type Derived = Option<Vec<derive::DerivedFile>>;

fn evidence(root: &Path, stated: &CampaignFile, findings: &mut Vec<Finding>) -> Derived {
    let (evidence, found) = read::read(&root.join(derive::SOURCE), &|_, _| Ok(()));
    findings.extend(found.into_iter().map(below_source));
    let evidence = evidence?;
    let mut f = Findings::of(derive::SOURCE);
    if evidence.dropped > 0 {
        f.error("", "host names were taken out", 0, evidence.dropped);
    }
    for file in &evidence.unknown {
        f.error("", "the source holds evidence only", "a known place", file);
    }
    let files = derive::files(&evidence, &Context::stated(stated));
    let files = files
        .map_err(|error| f.error("", "records can be derived from the source", "", error))
        .ok();
    // Nothing is there that the source does not give.
    if let Some(files) = &files {
        extra(root, files, &mut f);
    }
    findings.append(&mut f.list);
    files
}

fn extra(root: &Path, files: &[derive::DerivedFile], f: &mut Findings) {
    let known: BTreeSet<&String> = files.iter().map(|(path, _)| path).collect();
    let skip = [super::chain::NOT_COVERED.as_slice(), &[derive::SOURCE]].concat();
    for path in files::list(root, &skip).files.keys() {
        if !known.contains(path) {
            f.error(
                "",
                "every file follows from the source",
                "no such file",
                path,
            );
        }
    }
}

fn below_source(finding: Finding) -> Finding {
    Finding {
        file: format!("{}/{}", derive::SOURCE, finding.file),
        ..finding
    }
}

fn table(root: &Path, stated: &CampaignFile, findings: &mut Vec<Finding>) -> Derived {
    let mut f = Findings::of(cells::TABLE);
    let files = match files::read(root, cells::TABLE, files::LARGEST) {
        Ok(bytes) => cells_of(&bytes, stated, &mut f),
        Err(error) => {
            f.error("", "the table is there", "a file", error);
            None
        }
    };
    findings.append(&mut f.list);
    files
}

fn cells_of(bytes: &[u8], stated: &CampaignFile, f: &mut Findings) -> Derived {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| f.error("", "the table is UTF-8", "", error))
        .ok()?;
    let table = cells::parse(text)
        .map_err(|(line, what)| f.error(format!("line {line}"), "the table can be read", "", what))
        .ok()?;
    let candidate = stated
        .candidates
        .first()
        .map(|c| c.id.clone())
        .unwrap_or_default();
    let known = cells::Stated {
        system: &stated.system,
        arch: &stated.arch,
        candidate: &candidate,
    };
    cells::files(&table, &known, &Context::stated(stated))
        .map_err(|error| f.error("", "cells can be derived from the table", "", error))
        .ok()
}
