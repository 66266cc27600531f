//! `report --check`: the pages that are there against those that a dataset gives, byte for byte, and
//! pages that no dataset explains.

use super::pages::PageFile;
use similar::TextDiff;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// A page is not there.
    Missing(PathBuf),
    /// A page has other bytes; the first differences as a unified diff.
    Changed {
        /// The page.
        path: PathBuf,
        /// The diff.
        diff: String,
    },
    /// A page that no dataset explains.
    Orphan(PathBuf),
}

impl Difference {
    /// What it is, for a person.
    pub fn text(&self) -> String {
        match self {
            Difference::Missing(path) => format!("missing: {}\n", path.display()),
            Difference::Orphan(path) => {
                format!("no dataset explains this page: {}\n", path.display())
            }
            Difference::Changed { path, diff } => format!("differs: {}\n{diff}", path.display()),
        }
    }
}

/// Lines of a diff that are shown.
const DIFF_LINES: usize = 40;
/// Longest line of a diff that is shown, characters.
const LINE_CHARACTERS: usize = 300;

/// Compares the pages of a folder.
pub fn compare(folder: &Path, pages: &[PageFile]) -> Vec<Difference> {
    pages
        .iter()
        .filter_map(|page| {
            let path = folder.join(&page.file);
            match std::fs::read(&path) {
                Err(_) => Some(Difference::Missing(path)),
                Ok(bytes) if bytes == page.text.as_bytes() => None,
                Ok(bytes) => Some(Difference::Changed {
                    diff: diff(&String::from_utf8_lossy(&bytes), &page.text),
                    path,
                }),
            }
        })
        .collect()
}

/// The first differences between what is there and what should be.
fn diff(there: &str, rendered: &str) -> String {
    let diff = TextDiff::from_lines(there, rendered);
    let mut unified = diff.unified_diff();
    let text = unified
        .context_radius(1)
        .header("there", "rendered")
        .to_string();
    let lines: Vec<&str> = text.lines().collect();
    let mut shown: String = lines
        .iter()
        .take(DIFF_LINES)
        .map(|line| format!("  {}\n", shorten(line)))
        .collect();
    if lines.len() > DIFF_LINES {
        shown += &format!("  ... and {} more lines\n", lines.len() - DIFF_LINES);
    }
    shown
}

fn shorten(line: &str) -> String {
    let mut characters = line.chars();
    let start: String = characters.by_ref().take(LINE_CHARACTERS).collect();
    match characters.next() {
        Some(_) => start + "…",
        None => start,
    }
}

/// Files below a folder that are not among `explained` (paths below the folder), except below the
/// subfolders `others`, which belong to somebody else.
pub fn orphans(
    folder: &Path,
    explained: &BTreeSet<PathBuf>,
    others: &BTreeSet<PathBuf>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(folder, Path::new(""), others, &mut found);
    // A chart's picture was asked for; its bytes depend on the fonts of a machine.
    let picture = |file: &PathBuf| {
        file.extension().is_some_and(|e| e == "png")
            && explained.contains(&file.with_extension("svg"))
    };
    found.retain(|file| !explained.contains(file) && !picture(file));
    found.sort();
    found
        .into_iter()
        .map(|file| Difference::Orphan(folder.join(file)))
        .collect()
}

fn walk(root: &Path, below: &Path, others: &BTreeSet<PathBuf>, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(root.join(below))
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = below.join(entry.file_name());
        if others.contains(&path) {
            continue;
        }
        if entry.path().is_dir() {
            walk(root, &path, others, found);
        } else {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(file: &str, text: &str) -> PageFile {
        PageFile {
            file: file.into(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn missing_changed_and_unexplained_pages_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let at = |file: &str| folder.path().join(file);
        std::fs::write(at("same.md"), "a\n").unwrap();
        std::fs::write(at("changed.md"), "a\nb\nc\n").unwrap();
        std::fs::write(at("old.md"), "x\n").unwrap();
        std::fs::create_dir(at("elsewhere")).unwrap();
        std::fs::write(at("elsewhere/old.md"), "x\n").unwrap();
        let pages = [
            page("same.md", "a\n"),
            page("changed.md", "a\nB\nc\n"),
            page("new.md", "n\n"),
        ];
        let differences = compare(folder.path(), &pages);
        assert_eq!(differences.len(), 2, "{differences:?}");
        assert!(differences[0].text().contains("-b\n") && differences[0].text().contains("+B\n"));
        assert_eq!(differences[1], Difference::Missing(at("new.md")));
        let explained = pages.iter().map(|p| p.file.clone()).collect();
        let others = BTreeSet::from(["elsewhere".into()]);
        assert_eq!(
            orphans(folder.path(), &explained, &others),
            [Difference::Orphan(at("old.md"))]
        );
    }

    #[test]
    fn long_diffs_are_cut_and_say_so() {
        let there: String = (0..200).map(|i| format!("line {i}\n")).collect();
        let text = diff(&there, &there.replace("line", "LINE"));
        assert_eq!(text.lines().count(), DIFF_LINES + 1);
        assert!(text.contains("more lines"));
    }
}
