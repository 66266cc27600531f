//! Flags: what is given to the compiler, and what is recorded.

use std::ffi::OsString;

/// Whether link-time optimisation is on after all words.
pub fn has_lto(flags: &[String]) -> bool {
    flags
        .iter()
        .rev()
        .find(|flag| is_lto(flag) || *flag == "-fno-lto")
        .is_some_and(|flag| flag != "-fno-lto")
}

/// `-flto`, `-flto=auto`, but not `-flto-partition=...`, which means nothing by itself.
fn is_lto(flag: &str) -> bool {
    flag == "-flto" || flag.starts_with("-flto=")
}

/// The same flags without link-time optimisation, which would make calls between files invisible to
/// the linker's wrapping.
pub fn without_lto(flags: &[String]) -> Vec<String> {
    let belongs = |flag: &str| {
        flag.starts_with("-flto")
            || matches!(
                flag,
                "-ffat-lto-objects"
                    | "-fno-fat-lto-objects"
                    | "-fuse-linker-plugin"
                    | "-fwhole-program"
            )
    };
    flags.iter().filter(|f| !belongs(f)).cloned().collect()
}

/// The options among `flags` that mean "the machine that compiles".
pub fn native(flags: &[String]) -> Vec<String> {
    flags
        .iter()
        .filter(|f| {
            matches!(
                f.as_str(),
                "-march=native" | "-mtune=native" | "-mcpu=native"
            )
        })
        .cloned()
        .collect()
}

/// Whether an object could hold the words of its command line (debug information, recorded switches),
/// so that even a macro that changes nothing else makes another object.
pub fn records_command_line(flags: &[String]) -> bool {
    flags
        .iter()
        .any(|f| (f.starts_with("-g") && f != "-g0") || f.starts_with("-frecord"))
}

/// Words as one line that a shell would split into the same words.
pub fn line<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let quote = |word: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%^{}".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words
        .into_iter()
        .map(|word| quote(word.as_ref()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// `-DNAME="text"` for a C string; `?` is escaped because `-std=c99` has trigraphs.
pub fn string_define(name: &str, text: &str) -> OsString {
    let mut value = String::new();
    for c in text.chars() {
        if matches!(c, '\\' | '"' | '?') {
            value.push('\\');
        }
        value.push(c);
    }
    format!("-D{name}=\"{value}\"").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn lto_is_found_and_removed() {
        let table = [
            ("-O2", false, "-O2"),
            ("-O3 -flto -Wall", true, "-O3 -Wall"),
            (
                "-flto=auto -flto-partition=none -ffat-lto-objects -O2",
                true,
                "-O2",
            ),
            ("-flto -fno-lto", false, "-fno-lto"),
            ("-fno-lto -flto", true, "-fno-lto"),
            ("-flto-partition=none", false, ""),
        ];
        for (flags, lto, rest) in table {
            assert_eq!(has_lto(&words(flags)), lto, "{flags}");
            assert_eq!(without_lto(&words(flags)), words(rest), "{flags}");
        }
    }

    #[test]
    fn native_options_are_found() {
        let flags = words("-O3 -march=x86-64 -mavx2 -mtune=native");
        assert_eq!(native(&flags), ["-mtune=native"]);
        assert!(native(&words("-march=armv8.2-a")).is_empty());
    }

    #[test]
    fn lines_can_be_pasted_into_a_shell() {
        assert_eq!(
            line(["-O2", "-DX=\"a b\"", "it's", ""]),
            r#"-O2 '-DX="a b"' 'it'\''s' ''"#
        );
    }

    #[test]
    fn strings_survive_the_preprocessor() {
        assert_eq!(string_define("L", r#"a"b\c??/"#), r#"-DL="a\"b\\c\?\?/""#);
    }
}
