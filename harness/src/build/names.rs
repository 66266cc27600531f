//! Names in place of paths.
//!
//! What is recorded must not tell where somebody's checkout, home or registry lies, and must be the
//! same in every checkout. Known folders get a symbolic name (`{r3}` for a source crate); every other
//! absolute path in a compiler's message is cut to `{system}/` and its last part.

use regex::Regex;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Folders and their symbolic names, longest folder first.
#[derive(Debug, Clone, Default)]
pub struct Names {
    folders: Vec<(String, String)>,
    places: Vec<(PathBuf, String)>,
}

impl Names {
    /// Lets `name` stand for `folder`. An empty name stands for nothing: what lies below is relative.
    pub fn add(&mut self, folder: &Path, name: &str) {
        self.places.push((folder.to_owned(), name.to_owned()));
        let folder = folder.to_string_lossy().into_owned();
        if !folder.is_empty() && folder != "/" {
            self.folders.push((folder, name.to_owned()));
            self.folders
                .sort_by_key(|(folder, _)| std::cmp::Reverse(folder.len()));
        }
    }

    /// One path or flag, known folders replaced.
    pub fn word(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (folder, name) in &self.folders {
            text = replace_folder(&text, folder, name);
        }
        text
    }

    /// A path, known folders replaced; bytes that are no UTF-8 are escaped, so that it stays one path.
    pub fn path(&self, path: &Path) -> String {
        match path.to_str() {
            Some(text) => self.word(text),
            None => self.escaped(path),
        }
    }

    fn escaped(&self, path: &Path) -> String {
        let known = self.places.iter().find_map(|(place, name)| {
            let below = path.strip_prefix(place).ok()?;
            Some(Path::new(name).join(below))
        });
        protocol::path_to_text(known.as_deref().unwrap_or(path))
    }

    /// A tool's message: known folders replaced, other absolute paths cut.
    pub fn message(&self, text: &str) -> String {
        static ABSOLUTE: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r#"(?m)(^|[\s"'`‘(,=:\[])/(?:[^\s:"'`’(),;\]/]+/)+([^\s:"'`’(),;\]/]+)"#)
                .expect("a constant pattern")
        });
        ABSOLUTE
            .replace_all(&self.word(text), "$1{system}/$2")
            .into_owned()
    }
}

/// Replaces `folder/` at path boundaries, and `folder` as a whole path.
fn replace_folder(text: &str, folder: &str, name: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(folder) {
        let (before, from) = rest.split_at(at);
        let after = &from[folder.len()..];
        out.push_str(before);
        let starts = !before.ends_with(|c: char| c.is_alphanumeric() || "._-/".contains(c))
            // An option that takes its folder without a space: -I/home/x
            || before.ends_with("-I");
        let ends = !after.starts_with(|c: char| c.is_alphanumeric() || "._-".contains(c));
        match (starts && ends, after.strip_prefix('/')) {
            (true, Some(below)) if name.is_empty() => rest = below,
            (true, None) if name.is_empty() => {
                out.push('.');
                rest = after;
            }
            (true, _) => {
                out.push_str(name);
                rest = after;
            }
            (false, _) => {
                out.push_str(folder);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let mut names = Names::default();
        names.add(Path::new("/home/x/checkout"), "");
        names.add(Path::new("/home/x/checkout/target/cache/abi/12"), "");
        names.add(Path::new("/home/x/.cargo/registry/src/reg/r-1.0"), "{r3}");
        names
    }

    #[test]
    fn known_folders_get_their_names_and_others_are_left() {
        let table = [
            ("/home/x/checkout/drivers/a.c:3:4", "drivers/a.c:3:4"),
            ("-I/home/x/checkout/drivers", "-Idrivers"),
            ("/home/x/checkout", "."),
            ("/home/x/checkout2/a.c", "/home/x/checkout2/a.c"),
            ("/home/x/.cargo/registry/src/reg/r-1.0/p/a.c", "{r3}/p/a.c"),
            (
                "/home/x/checkout/target/cache/abi/12/drivers/abi/adapter.c",
                "drivers/abi/adapter.c",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(names().word(text), expected);
        }
    }

    #[test]
    fn a_name_that_is_no_text_is_escaped_below_its_folder() {
        use std::os::unix::ffi::OsStrExt;
        let below = std::ffi::OsStr::from_bytes(b"caf\xe9/a.c");
        for (folder, expected) in [
            ("/home/x/checkout", "caf\\xe9/a.c"),
            ("/home/x/.cargo/registry/src/reg/r-1.0", "{r3}/caf\\xe9/a.c"),
            ("elsewhere", "elsewhere/caf\\xe9/a.c"),
        ] {
            assert_eq!(names().path(&Path::new(folder).join(below)), expected);
        }
    }

    #[test]
    fn messages_hold_no_absolute_path() {
        let table = [
            (
                "In file included from /usr/lib/gcc/x86_64-linux-gnu/12/include/immintrin.h:43,",
                "In file included from {system}/immintrin.h:43,",
            ),
            (
                "/usr/bin/ld: /tmp/ccAB.o: in function `f':",
                "{system}/ld: {system}/ccAB.o: in function `f':",
            ),
            ("a / b is no path, and/or", "a / b is no path, and/or"),
            (
                "drivers/dove/a.c:1:2: warning: x",
                "drivers/dove/a.c:1:2: warning: x",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(names().message(text), expected);
        }
    }
}
