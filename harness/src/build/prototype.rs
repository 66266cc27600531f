//! C prototypes, as far as a wrapper needs them: return type, parameters, names of these.

/// A prototype taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prototype {
    /// `int`, `const uint8_t *`, `void`.
    pub returns: String,
    /// Text between the brackets.
    pub parameters: String,
    /// Names of the parameters, joined by commas.
    pub arguments: String,
}

/// Takes `text`, the prototype of `symbol`, apart. The error says what is wrong with it.
pub fn parse(text: &str, symbol: &str) -> Result<Prototype, String> {
    let text = text.replace("{symbol}", symbol);
    let text = text.trim().trim_end_matches(';').trim_end();
    let at = find_word(text, symbol).ok_or_else(|| format!("it does not name `{symbol}`"))?;
    let returns = text[..at].trim();
    if returns.is_empty() {
        return Err("it has no return type".to_owned());
    }
    let parameters = text[at + symbol.len()..]
        .trim()
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .ok_or("its parameters are not in brackets behind the name")?
        .trim();
    let names = match parameters {
        "void" => Vec::new(),
        "" => return Err("its brackets are empty: write `void`".to_owned()),
        list => split(list)?
            .into_iter()
            .map(|parameter| name(parameter.trim()))
            .collect::<Result<Vec<_>, _>>()?,
    };
    Ok(Prototype {
        returns: returns.to_owned(),
        parameters: parameters.to_owned(),
        arguments: names.join(", "),
    })
}

/// Whether `text` is a C identifier.
pub fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(is_word)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Where `word` stands as a whole word.
fn find_word(text: &str, word: &str) -> Option<usize> {
    text.match_indices(word)
        .map(|(at, _)| at)
        .find(|&at| !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

/// Splits at commas outside brackets.
fn split(list: &str) -> Result<Vec<&str>, String> {
    let mut depth = 0i32;
    let mut start = 0;
    let mut parts = Vec::new();
    for (at, c) in list.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        if depth < 0 {
            return Err("its brackets do not match".to_owned());
        }
    }
    if depth != 0 {
        return Err("its brackets do not match".to_owned());
    }
    parts.push(&list[start..]);
    Ok(parts)
}

/// The name of a parameter: its last identifier before any `[`.
fn name(parameter: &str) -> Result<String, String> {
    if parameter == "..." {
        return Err("variable argument lists cannot be wrapped".to_owned());
    }
    let declarator = parameter.split('[').next().unwrap_or_default().trim_end();
    let start = declarator.rfind(|c| !is_word(c)).map_or(0, |at| {
        at + declarator[at..].chars().next().map_or(1, char::len_utf8)
    });
    let name = &declarator[start..];
    // `unsigned char *`, `size_t`: a type without a name; the second word of a type is not a name.
    let is_type = start == 0
        || matches!(
            name,
            "int"
                | "char"
                | "long"
                | "short"
                | "unsigned"
                | "signed"
                | "float"
                | "double"
                | "void"
                | "const"
        );
    match is_identifier(name) && !is_type {
        true => Ok(name.to_owned()),
        false => Err(format!("its parameter `{parameter}` has no name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prototypes_are_taken_apart() {
        let table = [
            (
                "int {symbol}(int digest_bits, const unsigned char *m, unsigned long long m_bits)",
                ("int", "digest_bits, m, m_bits"),
            ),
            ("void {symbol}(void);", ("void", "")),
            (
                "const uint8_t *{symbol}(uint8_t a[static 2], size_t n)",
                ("const uint8_t *", "a, n"),
            ),
            (
                "uint64_t {symbol}(uint8_t out[4][8],size_t n )",
                ("uint64_t", "out, n"),
            ),
        ];
        for (text, (returns, arguments)) in table {
            let prototype = parse(text, "f1").unwrap();
            assert_eq!(prototype.returns, returns, "{text}");
            assert_eq!(prototype.arguments, arguments, "{text}");
        }
        assert_eq!(
            parse("int lattice_hash(size_t n)", "lattice_hash")
                .unwrap()
                .parameters,
            "size_t n"
        );
    }

    #[test]
    fn what_cannot_be_wrapped_is_refused_with_the_reason() {
        let table = [
            ("int g(int a)", "does not name `f`"),
            ("f(int a)", "no return type"),
            ("int f(int, char *b)", "`int` has no name"),
            ("int f(unsigned char *)", "`unsigned char *` has no name"),
            ("int f(unsigned long)", "has no name"),
            ("int f(const char *s, ...)", "variable argument lists"),
            ("int f()", "write `void`"),
            ("int f", "not in brackets"),
            ("int f(int a[2)", "do not match"),
        ];
        for (text, expected) in table {
            let error = parse(text, "f").unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
