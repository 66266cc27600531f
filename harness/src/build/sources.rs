//! The source files of a code: patterns expanded, each file with the name that records give it.

use super::crates::SourceCrates;
use super::error::RowError;
use super::names::Names;
use crate::config::{paths, Code};
use std::path::{Path, PathBuf};

/// A file for the compiler.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Recorded name (`drivers/dove/sign.c`, `{r3}/pqclean/common/fips202.c`).
    pub name: String,
    /// Path as given to the compiler: relative to the root where it lies below it.
    pub path: PathBuf,
}

/// Sources and include folders of one code.
#[derive(Debug, Clone)]
pub struct Sources {
    /// In order of their names, none twice: the order of the link.
    pub files: Vec<Source>,
    /// Include folders, in order.
    pub include: Vec<Source>,
    /// The crates they come from, by the names in the patterns.
    pub crates: SourceCrates,
}

/// Expands the patterns of `code`; `crates` are those of its candidate.
pub fn expand(
    root: &Path,
    code: &Code,
    crates: &SourceCrates,
    names: &Names,
) -> Result<Sources, RowError> {
    let mut used = SourceCrates::new();
    let mut files = Vec::new();
    for pattern in &code.sources {
        let (base, rest) = base(root, pattern, crates, &mut used)?;
        files.extend(matches(&base, rest, pattern)?);
    }
    let mut include = Vec::new();
    for pattern in &code.include {
        let (base, rest) = base(root, pattern, crates, &mut used)?;
        include.push(base.join(rest));
    }
    let source = |path: PathBuf| Source {
        name: names.path(&path),
        path: path.strip_prefix(root).map(Path::to_owned).unwrap_or(path),
    };
    let mut files: Vec<Source> = files.into_iter().map(source).collect();
    files.sort();
    files.dedup();
    Ok(Sources {
        files,
        include: include.into_iter().map(source).collect(),
        crates: used,
    })
}

/// Splits `{name}/rest` into the folder that the name stands for and the rest.
fn base<'p>(
    root: &Path,
    pattern: &'p str,
    crates: &SourceCrates,
    used: &mut SourceCrates,
) -> Result<(PathBuf, &'p str), RowError> {
    let Some((name, rest)) = pattern
        .strip_prefix('{')
        .and_then(|rest| rest.split_once('}'))
    else {
        return Ok((root.to_owned(), pattern));
    };
    let found = crates.get(name).ok_or_else(|| RowError::UnknownCrate {
        pattern: pattern.to_owned(),
        known: match crates.is_empty() {
            true => "none".to_owned(),
            false => crates.keys().cloned().collect::<Vec<_>>().join(", "),
        },
    })?;
    used.insert(name.to_owned(), found.clone());
    Ok((found.dir.clone(), rest.trim_start_matches('/')))
}

/// The files below `base` that match; none is an error.
fn matches(base: &Path, rest: &str, pattern: &str) -> Result<Vec<PathBuf>, RowError> {
    let found = paths::files(base, rest).map_err(|error| RowError::Pattern {
        pattern: pattern.to_owned(),
        cause: error.to_string(),
    })?;
    match found.is_empty() {
        true => Err(RowError::NoSource {
            pattern: pattern.to_owned(),
        }),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::super::crates::CrateSource;
    use super::*;

    fn code(sources: &[&str], include: &[&str]) -> Code {
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        Code {
            name: "ref".into(),
            sources: own(sources),
            include: own(include),
            defines: vec![],
            extra_cflags: vec![],
            fallback_cflags: None,
            archs: vec![],
            requires: vec![],
            builds: vec![],
            library: None,
        }
    }

    #[test]
    fn patterns_become_sorted_files_with_names_that_tell_no_path() {
        let dir = tempfile::tempdir().unwrap();
        let (root, registry) = (dir.path().join("ro[o]t"), dir.path().join("registry/x-1.0"));
        for file in [
            root.join("src/b.c"),
            root.join("src/a.c"),
            root.join("src/a.h"),
            registry.join("c/z.c"),
            registry.join("c/k.S"),
        ] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let crates = SourceCrates::from([(
            "x".to_owned(),
            CrateSource {
                dir: registry.clone(),
                name: "x-sys".into(),
                version: "1.0.0".into(),
                checksum: "-".into(),
            },
        )]);
        let mut names = Names::default();
        names.add(&root, "");
        names.add(&registry, "{x}");
        let code = code(
            &["{x}/c/*.c", "src/*.c", "src/a.c", "{x}/c/*.S"],
            &["src", "{x}/c"],
        );
        let sources = expand(&root, &code, &crates, &names).unwrap();
        let files: Vec<_> = sources.files.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(files, ["src/a.c", "src/b.c", "{x}/c/k.S", "{x}/c/z.c"]);
        assert_eq!(sources.files[0].path, Path::new("src/a.c"));
        assert_eq!(sources.files[3].path, registry.join("c/z.c"));
        assert_eq!(sources.include[1].name, "{x}/c");
        assert_eq!(sources.crates.len(), 1);
    }

    #[test]
    fn a_pattern_without_files_and_an_unknown_crate_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let names = Names::default();
        let none = SourceCrates::new();
        let error = expand(dir.path(), &code(&["no/*.c"], &[]), &none, &names).unwrap_err();
        assert_eq!(error.to_string(), "no file matches the source `no/*.c`");
        let error = expand(dir.path(), &code(&["{r9}/*.c"], &[]), &none, &names).unwrap_err();
        assert!(error.to_string().contains("it has: none"), "{error}");
    }
}
