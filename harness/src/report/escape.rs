//! Text from data inside Markdown: whatever a name, a note or a path holds, it is read as that text
//! and as nothing else, in running text, in code spans and in table cells.
//!
//! Rules are those of CommonMark 0.31 and of the GFM table extension. Characters that a reader
//! cannot see, or that turn the direction of what follows, are written out as `⟨U+202E⟩`.

/// Punctuation that can open or close markup anywhere in a line.
const MARKUP: [char; 12] = ['\\', '`', '*', '[', ']', '<', '>', '|', '~', '&', '$', '#'];

/// `text` as running text of one line.
pub fn text(text: &str) -> String {
    let plain = one_line(text);
    let mut out = String::with_capacity(plain.len() + 8);
    let begins_block = begins_block(&plain);
    let mut in_word = false;
    let mut characters = plain.char_indices().peekable();
    while let Some((index, c)) = characters.next() {
        let next_in_word = characters
            .peek()
            .is_some_and(|(_, next)| next.is_alphanumeric());
        // An underscore inside a word (`x86_1`) opens nothing.
        let marks = MARKUP.contains(&c) || (c == '_' && !(in_word && next_in_word));
        if marks || Some(index) == begins_block {
            out.push('\\');
        }
        out.push(c);
        in_word = c.is_alphanumeric();
    }
    out
}

/// Where a backslash must stand so that the line does not begin a list, a rule or a heading: the
/// byte index of the character to be escaped.
fn begins_block(line: &str) -> Option<usize> {
    let first = line.chars().next()?;
    if matches!(first, '-' | '+' | '=' | ':') {
        return Some(0);
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let after = line[digits..].chars().next()?;
    (digits > 0 && matches!(after, '.' | ')') && !number_follows(&line[digits + 1..]))
        .then_some(digits)
}

/// A decimal point with digits behind it begins no list.
fn number_follows(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_ascii_digit())
}

/// `text` as a code span; `in_table` where it stands in a cell.
pub fn code(text: &str, in_table: bool) -> String {
    let plain = one_line(text);
    if plain.is_empty() {
        return String::new();
    }
    // A backslash before a pipe cannot be written inside a code span of a table cell.
    if in_table && plain.contains("\\|") {
        return self::text(&plain);
    }
    let fence = "`".repeat(longest_run(&plain, '`') + 1);
    let pad = if plain.starts_with('`') || plain.ends_with('`') {
        " "
    } else {
        ""
    };
    let body = if in_table {
        plain.replace('|', "\\|")
    } else {
        plain
    };
    format!("{fence}{pad}{body}{pad}{fence}")
}

/// A link whose target has a scheme that cannot run anything, or is relative; other targets leave
/// the text alone.
pub fn link(label: &str, target: &str) -> String {
    if !is_harmless(target) {
        return label.to_owned();
    }
    format!("[{label}]({})", destination(target))
}

/// Whether a link target is `http`, `https`, or relative.
pub fn is_harmless(target: &str) -> bool {
    let scheme_end = target.find([':', '/', '?', '#']);
    match scheme_end {
        Some(end) if target.as_bytes()[end] == b':' => {
            let scheme = target[..end].to_ascii_lowercase();
            matches!(scheme.as_str(), "http" | "https")
        }
        _ => !target.is_empty(),
    }
}

/// A link destination: everything that is not plain URL text is percent-encoded. What is encoded
/// already stays so.
pub fn destination(target: &str) -> String {
    let mut out = String::with_capacity(target.len());
    for byte in target.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:/?#@!$&+,;=%".contains(&byte) {
            out.push(byte as char);
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    // `&` would begin an entity, `_`, `~` and `$` are harmless inside parentheses.
    out.replace('&', "&amp;")
}

/// One component of a relative path as part of a URL.
pub fn path_part(part: &str) -> String {
    let mut out = String::with_capacity(part.len());
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte as char);
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

/// White space collapsed and trimmed, characters that cannot be seen written out.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for c in word.chars() {
            if is_unseen(c) {
                out += &format!("⟨U+{:04X}⟩", u32::from(c));
            } else {
                out.push(c);
            }
        }
    }
    out
}

/// Controls, zero-width characters, and those that turn the direction of text.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{061C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}')
}

fn longest_run(text: &str, wanted: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use comrak::nodes::{AstNode, NodeValue};
    use comrak::{parse_document, Arena};
    use proptest::prelude::*;

    /// All text of a node, code included, as a reader sees it.
    fn seen<'a>(node: &'a AstNode<'a>, out: &mut String) {
        match &node.data().value {
            NodeValue::Text(text) => out.push_str(text),
            NodeValue::Code(code) => out.push_str(&code.literal),
            NodeValue::Paragraph | NodeValue::Document | NodeValue::Table(_) => {}
            NodeValue::TableRow(_) | NodeValue::TableCell => {}
            other => out.push_str(&format!("<{other:?}>")),
        }
        for child in node.children() {
            seen(child, out);
        }
    }

    fn paragraph(markdown: &str) -> String {
        let arena = Arena::new();
        let root = parse_document(&arena, markdown, &crate::report::html::markdown_options());
        let mut out = String::new();
        seen(root, &mut out);
        out
    }

    /// The cells of the only body row of the only table.
    fn cells(markdown: &str) -> Vec<String> {
        let arena = Arena::new();
        let root = parse_document(&arena, markdown, &crate::report::html::markdown_options());
        assert_eq!(root.children().count(), 1, "one block only: {markdown}");
        let table = root.first_child().expect("a table");
        assert!(matches!(table.data().value, NodeValue::Table(_)));
        assert_eq!(table.children().count(), 2, "one row only: {markdown}");
        let row = table.last_child().expect("a row");
        row.children()
            .map(|cell| {
                let mut out = String::new();
                seen(cell, &mut out);
                out
            })
            .collect()
    }

    const NASTY: [&str; 14] = [
        "<script>alert(1)</script>",
        "a|b",
        "a\\|b",
        "\\",
        "`` ` ```",
        "*bold* _it_ ~~s~~ [x](javascript:1) ![i](j)",
        "- item",
        "1. item",
        "# head",
        "===",
        "&lt;&amp;",
        "שלום עולם",
        "$math$ [^1] http://example.invalid",
        "> quote",
    ];

    #[test]
    fn hostile_text_is_read_as_itself() {
        for name in NASTY {
            assert_eq!(paragraph(&text(name)), one_line(name), "{name}");
            assert_eq!(paragraph(&code(name, false)), one_line(name), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_written_out() {
        assert_eq!(one_line("a\u{202E}b\0\nc"), "a⟨U+202E⟩b⟨U+0000⟩ c");
    }

    #[test]
    fn plain_text_stays_plain() {
        for plain in [
            "96.51 M (19%)",
            "–",
            "gcc (Debian 14.2.0-19) 14.2.0",
            "1.22e+03",
            "x86_1",
        ] {
            assert_eq!(text(plain), plain);
        }
    }

    #[test]
    fn links_run_nothing() {
        assert_eq!(link("x", "javascript:alert(1)"), "x");
        assert_eq!(link("x", "data:text/html,1"), "x");
        assert_eq!(link("x", "a b)|.md"), "[x](a%20b%29%7C.md)");
        assert_eq!(
            link("x", "https://example.invalid/?a=1&b"),
            "[x](https://example.invalid/?a=1&amp;b)"
        );
        assert!(is_harmless("../a:b") && !is_harmless("a:b") && !is_harmless(""));
    }

    proptest! {
        #[test]
        fn any_text_survives(name in "[a\\\\`|*_<>&!~#$^0-9.()\\[\\]{}+=:'\" -]{1,24}") {
            prop_assert_eq!(paragraph(&text(&name)), one_line(&name));
            prop_assert_eq!(paragraph(&code(&name, false)), one_line(&name));
            let row = format!(
                "| a | b | c |\n|---|---|---|\n| {} | {} | end |\n",
                text(&name),
                code(&name, true)
            );
            prop_assert_eq!(
                cells(&row),
                vec![one_line(&name), one_line(&name), "end".to_owned()]
            );
        }
    }
}
