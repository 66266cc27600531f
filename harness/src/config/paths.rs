//! Files that a pattern of the configuration stands for.
//!
//! Patterns are matched folder by folder, so that the root may have any name (blanks, brackets, bytes
//! that are no UTF-8), and the result is sorted: it does not depend on the file system.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Bad brackets and the like.
    #[error("`{pattern}` is no pattern: {why}")]
    Bad {
        /// The part of the pattern.
        pattern: String,
        /// The pattern crate's words.
        why: String,
    },
    /// Patterns are relative to the configuration.
    #[error("`{0}` is an absolute path")]
    Absolute(String),
}

/// The files below `root` that match `pattern`, sorted; `*`, `?`, `[...]` match within a name, `**`
/// any number of folders. A name with a leading dot must be written out.
pub fn files(root: &Path, pattern: &str) -> Result<Vec<PathBuf>, PatternError> {
    if Path::new(pattern).is_absolute() {
        return Err(PatternError::Absolute(pattern.to_owned()));
    }
    let mut places = vec![root.to_owned()];
    for component in Path::new(pattern).components() {
        places = match component {
            Component::CurDir => places,
            Component::Normal(part) if part == "**" => {
                places.iter().flat_map(|p| tree(p)).collect()
            }
            Component::Normal(part) if is_pattern(part) => matching(&places, part)?,
            other => places
                .iter()
                .map(|place| place.join(other.as_os_str()))
                .collect(),
        };
    }
    places.retain(|place| place.is_file());
    places.sort();
    places.dedup();
    Ok(places)
}

fn is_pattern(part: &OsStr) -> bool {
    part.to_string_lossy().contains(['*', '?', '['])
}

/// Entries of the folders whose name matches.
fn matching(folders: &[PathBuf], part: &OsStr) -> Result<Vec<PathBuf>, PatternError> {
    let text = part.to_string_lossy();
    let pattern = glob::Pattern::new(&text).map_err(|error| PatternError::Bad {
        pattern: text.clone().into_owned(),
        why: error.msg.to_owned(),
    })?;
    let options = glob::MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    Ok(folders
        .iter()
        .flat_map(|folder| entries(folder))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| pattern.matches_with(&name.to_string_lossy(), options))
        })
        .collect())
}

/// A folder and all folders below it; links are not followed.
fn tree(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    for path in entries(folder) {
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !hidden && path.is_dir() && !path.is_symlink() {
            all.extend(tree(&path));
        }
    }
    all
}

/// Entries of a folder; none if it cannot be read, which then shows as "no file matches".
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// What is wrong with a path that leads nowhere: the first part that is not there, and the name next
/// to it that may have been meant. Ends at the first part that is a pattern.
pub fn explain(root: &Path, path: &str) -> Option<String> {
    let mut folder = root.to_owned();
    for component in Path::new(path).components() {
        if is_pattern(component.as_os_str()) {
            break;
        }
        let next = folder.join(component.as_os_str());
        if !next.exists() {
            let shown = next.strip_prefix(root).unwrap_or(&next).display();
            let names: Vec<String> = entries(&folder)
                .iter()
                .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
                .collect();
            let name = component.as_os_str().to_string_lossy();
            let near = super::reader::did_you_mean(&name, names.iter().map(String::as_str));
            return Some(match near {
                Some(near) => format!("there is no `{shown}`; {near}"),
                None => format!("there is no `{shown}`"),
            });
        }
        folder = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree_of(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::Builder::new()
            .prefix("a [b] c")
            .tempdir()
            .unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    fn found(root: &Path, pattern: &str) -> Vec<String> {
        files(root, pattern)
            .unwrap()
            .iter()
            .map(|path| path.strip_prefix(root).unwrap().display().to_string())
            .collect()
    }

    #[test]
    fn patterns_find_files_in_order_below_any_root() {
        let root = tree_of(&[
            "s/b.c",
            "s/a.c",
            "s/a.h",
            "s/.c.c",
            "s/my dir/x.c",
            "s/d.c/y.c",
        ]);
        assert_eq!(found(root.path(), "s/*.c"), ["s/a.c", "s/b.c"]);
        assert_eq!(
            found(root.path(), "s/[ab].[ch]"),
            ["s/a.c", "s/a.h", "s/b.c"]
        );
        assert_eq!(found(root.path(), "./s/my dir/*.c"), ["s/my dir/x.c"]);
        assert_eq!(
            found(root.path(), "s/**/*.c"),
            ["s/a.c", "s/b.c", "s/d.c/y.c", "s/my dir/x.c"]
        );
        assert_eq!(found(root.path(), "s/a.c"), ["s/a.c"]);
        assert_eq!(found(root.path(), "s/../s/a.c").len(), 1);
        assert!(found(root.path(), "none/*.c").is_empty());
        assert!(found(root.path(), "s").is_empty());
    }

    #[test]
    fn bad_patterns_are_errors() {
        let root = tree_of(&[]);
        assert!(matches!(
            files(root.path(), "s/[.c"),
            Err(PatternError::Bad { .. })
        ));
        assert!(matches!(
            files(root.path(), "/etc/*"),
            Err(PatternError::Absolute(_))
        ));
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_no_utf8_are_found() {
        use std::os::unix::ffi::OsStrExt;
        let root = tree_of(&[]);
        let odd = root.path().join(OsStr::from_bytes(b"\xff"));
        std::fs::create_dir(&odd).unwrap();
        std::fs::write(odd.join("x.c"), "").unwrap();
        assert_eq!(files(&odd, "*.c").unwrap(), [odd.join("x.c")]);
        assert_eq!(files(root.path(), "*/x.c").unwrap(), [odd.join("x.c")]);
    }

    #[test]
    fn a_path_that_leads_nowhere_is_explained() {
        let root = tree_of(&["drivers/dove/a.c"]);
        assert_eq!(
            explain(root.path(), "drivers/dov/*.c").unwrap(),
            "there is no `drivers/dov`; did you mean `dove`?"
        );
        assert_eq!(
            explain(root.path(), "elsewhere/x").unwrap(),
            "there is no `elsewhere`"
        );
        assert_eq!(explain(root.path(), "drivers/*.c"), None);
    }
}
