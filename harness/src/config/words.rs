//! Small notations inside the values of the configuration: flags in one text, byte ranges, gaps in
//! braces, names.

/// Splits flags as a shell would, as far as flags need it: blanks separate, single or double quotes
/// keep blanks together. `None` if a quote is not closed.
pub fn split_flags(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// A range of bytes, end excluded: `3..7`, or `112..` to the end (`u64::MAX`). `None` for anything
/// else, and for a range that holds nothing.
pub fn byte_range(text: &str) -> Option<(u64, u64)> {
    let (first, end) = text.split_once("..")?;
    let first = decimal(first)?;
    let end = if end.is_empty() {
        u64::MAX
    } else {
        decimal(end)?
    };
    (first < end).then_some((first, end))
}

/// Digits only: `parse` alone would take `+3`.
fn decimal(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// The names in braces: `{r3}/x/{label}` holds `r3` and `label`. `None` if a brace has no partner.
pub fn gaps(text: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let close = rest[open..].find('}')? + open;
        let name = rest.get(open + 1..close)?;
        if name.contains('{') {
            return None;
        }
        names.push(name);
        rest = &rest[close + 1..];
    }
    Some(names)
}

/// Fills `{label}` with the label and `{LABEL}` with its letters and digits in upper case; other
/// gaps stay.
pub fn fill_label(text: &str, label: &str) -> String {
    let upper: String = label
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .map(|c| c.to_ascii_uppercase())
        .collect();
    // `{LABEL}` first: a label could hold the text "{LABEL}", and must not be filled again.
    text.split("{LABEL}")
        .map(|part| part.replace("{label}", label))
        .collect::<Vec<_>>()
        .join(&upper)
}

/// Whether `text` is an identifier of C.
pub fn is_c_name(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(word)
}

/// Whether `text` can be a CPU feature as `/proc/cpuinfo` writes it.
pub fn is_feature(text: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
    !text.is_empty() && text.chars().all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_split_at_blanks_outside_quotes() {
        for (text, words) in [
            ("", vec![]),
            ("  -O2\t-flto\n", vec!["-O2", "-flto"]),
            (
                r#"-I"my dir/include" -DA='x y'"#,
                vec!["-Imy dir/include", "-DA=x y"],
            ),
            (r#"-DEMPTY="" ''"#, vec!["-DEMPTY=", ""]),
            (r#"-DQ='"q"'"#, vec![r#"-DQ="q""#]),
        ] {
            assert_eq!(split_flags(text).unwrap(), words, "{text}");
        }
        assert_eq!(split_flags("-DA='x"), None);
    }

    #[test]
    fn byte_ranges_have_two_forms() {
        assert_eq!(byte_range("112.."), Some((112, u64::MAX)));
        assert_eq!(byte_range("3..7"), Some((3, 7)));
        assert_eq!(byte_range("0..1"), Some((0, 1)));
        for bad in [
            "",
            "..",
            "112",
            "7..3",
            "3..3",
            "-1..3",
            "a..",
            "3..=7",
            "+1..2",
            " 1..2",
            "99999999999999999999..",
        ] {
            assert_eq!(byte_range(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn gaps_are_named_in_braces() {
        assert_eq!(gaps("a/*.c"), Some(vec![]));
        assert_eq!(gaps("{r3}/x/{label}/*.c"), Some(vec!["r3", "label"]));
        for bad in ["{", "}", "{r3", "a}b", "{a{b}}"] {
            assert_eq!(gaps(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_label_fills_its_gaps_and_no_others() {
        assert_eq!(
            fill_label("{mldsa}/{label}: {LABEL}", "ml-dsa-44"),
            "{mldsa}/ml-dsa-44: MLDSA44"
        );
        assert_eq!(fill_label("{label}", "{LABEL}"), "{LABEL}");
    }

    #[test]
    fn names_of_c_and_of_features() {
        assert!(is_c_name("_a1") && is_c_name("dove_rejected_draws"));
        assert!(!is_c_name("") && !is_c_name("1a") && !is_c_name("a-b") && !is_c_name("é"));
        assert!(is_feature("sse4_1") && is_feature("armv8.2"));
        assert!(!is_feature("AVX2") && !is_feature("") && !is_feature("a b"));
    }
}
