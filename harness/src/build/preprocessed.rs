//! What a preprocessed source tells: the files it was made of, and the files that the assembler will
//! read behind the preprocessor's back.

use regex::bytes::Regex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Files named by line markers (`# 1 "path" flags`) that are not system headers, in order of their
/// names. Names that stand for no file (`<built-in>`, the working directory) are left out.
pub fn dependencies(text: &[u8]) -> BTreeSet<PathBuf> {
    text.split(|&b| b == b'\n')
        .filter(|line| line.starts_with(b"# "))
        .filter_map(|line| std::str::from_utf8(line).ok())
        .filter_map(marker)
        .collect()
}

/// The file of one marker.
fn marker(line: &str) -> Option<PathBuf> {
    let (number, rest) = line.strip_prefix("# ")?.split_once(' ')?;
    number.parse::<u64>().ok()?;
    let (name, flags) = quoted(rest.strip_prefix('"')?)?;
    let system = flags.split_whitespace().any(|flag| flag == "3");
    let no_file = name.starts_with('<') || name.ends_with('/') || name.is_empty();
    (!system && !no_file).then(|| PathBuf::from(name))
}

/// A C string up to its closing quote, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((name, &text[at + 1..])),
            '\\' => name.push(chars.next()?.1),
            c => name.push(c),
        }
    }
    None
}

/// Files that `.include` and `.incbin` of an assembler text name, or `None` where a directive names
/// its file in a way that is not understood (a macro's argument).
pub fn assembled_files(text: &[u8]) -> Option<BTreeSet<String>> {
    static ANY: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\.(include|incbin)\b").expect("a constant pattern"));
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"\.(?:include|incbin)[ \t]*\\?"([^"\\\n]+)\\?""#).expect("a constant pattern")
    });
    let names: Vec<&[u8]> = NAMED
        .captures_iter(text)
        .map(|found| found.get(1).expect("always there").as_bytes())
        .collect();
    if names.len() != ANY.find_iter(text).count() {
        return None;
    }
    names
        .into_iter()
        .map(|name| std::str::from_utf8(name).ok().map(str::to_owned))
        .collect()
}

/// Everything that the assembler may read for those names: for each place where it would look, the
/// content or that nothing is there, so that a file that appears in an earlier place is noticed.
/// Follows `.include` in what it finds. `None` where something is not understood.
pub fn assembled_contents(
    root: &Path,
    include: &[PathBuf],
    names: BTreeSet<String>,
) -> Option<Vec<(PathBuf, Option<Vec<u8>>)>> {
    let mut seen = BTreeSet::new();
    let mut contents = Vec::new();
    let mut open: Vec<String> = names.into_iter().collect();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let places =
            std::iter::once(PathBuf::from(&name)).chain(include.iter().map(|d| d.join(&name)));
        let mut found = false;
        for place in places {
            let content = std::fs::read(root.join(&place)).ok();
            if let Some(content) = &content {
                found = true;
                open.extend(assembled_files(content)?);
            }
            contents.push((place, content));
        }
        if !found {
            return None;
        }
    }
    Some(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_name_the_files_and_system_headers_are_left_out() {
        let text = b"# 0 \"drivers/a.c\"\n# 0 \"<built-in>\"\n# 1 \"/somewhere//\"\n\
            # 1 \"/usr/include/stdlib.h\" 1 3 4\n# 2 \"drivers/a.c\" 2\n\
            # 1 \"drivers/odd \\\"name\\\".h\" 1\nint x; // # 1 \"no.h\"\n#pragma once\n";
        let found: Vec<_> = dependencies(text).into_iter().collect();
        assert_eq!(
            found,
            [
                Path::new("drivers/a.c"),
                Path::new("drivers/odd \"name\".h")
            ]
        );
    }

    #[test]
    fn files_of_the_assembler_are_found_in_text_and_in_strings() {
        let names = |text: &str| assembled_files(text.as_bytes());
        assert_eq!(names("int x;"), Some(BTreeSet::new()));
        assert_eq!(
            names(".include \"shuffle.inc\"\n__asm__(\".incbin \\\"t.bin\\\"\");"),
            Some(BTreeSet::from(["shuffle.inc".into(), "t.bin".into()]))
        );
        assert_eq!(names(".macro m f\n.include \\f\n.endm"), None);
    }

    #[test]
    fn every_place_counts_where_the_assembler_would_look() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("inc")).unwrap();
        std::fs::write(dir.path().join("inc/a.inc"), ".include \"b.inc\"").unwrap();
        std::fs::write(dir.path().join("inc/b.inc"), "nop").unwrap();
        let include = [PathBuf::from("early"), PathBuf::from("inc")];
        let ask = || {
            assembled_contents(dir.path(), &include, BTreeSet::from(["a.inc".to_owned()])).unwrap()
        };
        let before = ask();
        assert_eq!(before.len(), 6);
        assert_eq!(before.iter().filter(|(_, c)| c.is_some()).count(), 2);
        std::fs::create_dir(dir.path().join("early")).unwrap();
        std::fs::write(dir.path().join("early/b.inc"), "ret").unwrap();
        assert_ne!(ask(), before);
        let none = assembled_contents(dir.path(), &include, BTreeSet::from(["z".to_owned()]));
        assert_eq!(none, None);
    }
}
