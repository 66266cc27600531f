//! Texts of the evidence that an audit has to understand itself: times, digests, paths.

use crate::json::{escape_key, Value};

/// Nanoseconds since the epoch of an RFC 3339 time; `None` for anything else.
pub fn utc_ns(text: &str) -> Option<i128> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(time.as_nanosecond())
}

/// Whether it is a SHA-256 as the evidence writes it.
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The first word of a text that is an absolute path of somebody's machine. Paths of the kernel's own
/// interfaces (`/proc`, `/sys`, `/dev`) are the same everywhere and say nothing.
pub fn local_path(text: &str) -> Option<&str> {
    let separators = [
        ' ', '\t', '\n', '\r', '"', '\'', '=', ',', ';', ':', '(', ')', '[', ']', '`',
    ];
    text.split(separators).find(|word| {
        let path = word
            .strip_prefix("-I")
            .or(word.strip_prefix("-L"))
            .unwrap_or(word);
        is_local(path)
    })
}

/// The first string of a document that holds such a path: its JSON pointer and the path.
pub fn local_path_in(value: &Value) -> Option<(String, String)> {
    match value {
        Value::String(text) => {
            local_path(&text.decode()).map(|path| (String::new(), path.to_owned()))
        }
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let (below, path) = local_path_in(item)?;
            Some((format!("/{index}{below}"), path))
        }),
        // `--only` is an expression over identities, which have slashes themselves.
        Value::Object(members) => {
            members
                .iter()
                .filter(|(key, _)| !key.is("only"))
                .find_map(|(key, item)| {
                    let (below, path) = local_path_in(item)?;
                    Some((format!("/{}{below}", escape_key(&key.decode())), path))
                })
        }
        _ => None,
    }
}

fn is_local(path: &str) -> bool {
    if path.starts_with("~/") {
        return true;
    }
    let Some(below) = path.strip_prefix('/') else {
        return false;
    };
    let first = below.split('/').next().unwrap_or_default();
    let named = first.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    match first {
        "proc" | "sys" | "dev" => false,
        "etc" | "home" | "mnt" | "opt" | "root" | "srv" | "tmp" | "usr" | "var" => true,
        _ => named && below.contains('/'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_are_told_from_other_slashes() {
        for (text, path) in [
            ("gcc -I/home/ada/include -O2", Some("-I/home/ada/include")),
            ("/usr/lib/x.so", Some("/usr/lib/x.so")),
            ("see ~/x", Some("~/x")),
            ("file:/opt/a/b", Some("/opt/a/b")),
            ("in /tmp", Some("/tmp")),
            ("/proc/cpuinfo", None),
            ("/sys/devices/system/cpu", None),
            ("sign-09/dove_classic_128/ref/reference", None),
            ("OS / kernel", None),
            ("ops/s", None),
            ("https://www.niccs.org.cn/", None),
            ("//x/y", None),
            ("performance/ngcc_perf", None),
            ("/", None),
        ] {
            assert_eq!(local_path(text), path, "{text}");
        }
    }

    #[test]
    fn times_are_compared_across_their_spellings() {
        assert_eq!(
            utc_ns("2026-09-28T15:05:46.790099+00:00"),
            utc_ns("2026-09-28T15:05:46.790099Z")
        );
        assert!(utc_ns("2026-09-28T17:05:47+02:00") > utc_ns("2026-09-28T15:05:46Z"));
        assert_eq!(utc_ns("2026-09-28"), None);
    }
}
