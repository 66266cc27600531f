//! Which functions a profile library wraps, and the source of their wrappers.
//!
//! Only a symbol that one object leaves undefined and another object of the same link defines can be
//! wrapped: a call inside one object never reaches the linker. A candidate lists names, or has a table
//! of prototypes by which the names are derived from its objects; a derived name without an entry in
//! the table is an error, since a hash function that is not counted would look like the candidate's
//! own work.

use super::abi;
use super::elf::Symbols;
use super::prototype::{self, Prototype};
use crate::config::{Wrap, WrapFunction};
use crate::evidence::Wrapped;
use minijinja::value::Serde;
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// What to wrap cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum WrapError {
    /// The table cannot be read.
    #[error("the table `{table}` cannot be read")]
    Read {
        /// The table.
        table: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The table is no such table.
    #[error("the table `{table}` is wrong: {why}")]
    Table {
        /// The table.
        table: String,
        /// What is wrong, with line and column where there is one.
        why: String,
    },
    /// Derived names without an entry.
    #[error("`{table}` has no prototype for {symbols}, which the objects of the candidate share: add an entry, or exclude them")]
    NoEntry {
        /// The table.
        table: String,
        /// The names.
        symbols: String,
    },
    /// A listed name without a prototype.
    #[error("`{symbol}` is to be wrapped and has no prototype: only the ICCS helper functions are known; give `prototype`, `in_bits` and `out_bits` with it")]
    NoPrototype {
        /// The name.
        symbol: String,
    },
    /// A prototype that cannot be used.
    #[error("the prototype of `{symbol}` cannot be used: {why}")]
    Prototype {
        /// The name.
        symbol: String,
        /// What is wrong with it.
        why: String,
    },
    /// The template of the wrappers is wrong.
    #[error(
        "the template `{}` cannot be filled: {source:#}",
        abi::WRAP_TEMPLATE_NAME
    )]
    Template {
        /// What is wrong, with the line.
        #[from]
        source: minijinja::Error,
    },
}

/// A table of prototypes.
#[derive(Debug)]
pub struct Table {
    name: String,
    derive: Option<Regex>,
    exclude: Option<Regex>,
    entries: Vec<(Regex, EntryText)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    derive: Option<String>,
    exclude: Option<String>,
    function: Vec<EntryText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryText {
    pattern: String,
    prototype: String,
    in_bits: String,
    out_bits: String,
    name: String,
    group: String,
}

impl Table {
    /// Reads a table; `name` is for messages.
    pub fn parse(text: &str, name: &str) -> Result<Table, WrapError> {
        let wrong = |why: String| WrapError::Table {
            table: name.to_owned(),
            why,
        };
        let regex = |pattern: &str| Regex::new(pattern).map_err(|e| wrong(e.to_string()));
        let table: TableText = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        let mut entries = Vec::new();
        for entry in table.function {
            if !matches!(entry.group.as_str(), "hash" | "drng" | "other") {
                return Err(wrong(format!(
                    "group `{}` of `{}`: expected hash, drng or other",
                    entry.group, entry.pattern
                )));
            }
            entries.push((regex(&entry.pattern)?, entry));
        }
        Ok(Table {
            name: name.to_owned(),
            derive: table.derive.as_deref().map(regex).transpose()?,
            exclude: table.exclude.as_deref().map(regex).transpose()?,
            entries,
        })
    }

    /// The table of the ICCS helper functions.
    pub fn iccs() -> Result<Table, WrapError> {
        Table::parse(abi::WRAPPABLE, abi::WRAPPABLE_NAME)
    }

    /// A table of a campaign, `root/path`.
    pub fn read(root: &Path, path: &Path) -> Result<Table, WrapError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(root.join(path)).map_err(|source| WrapError::Read {
            table: name.clone(),
            source,
        })?;
        Table::parse(&text, &name)
    }

    /// The first entry that matches `symbol`.
    fn function(&self, symbol: &str) -> Result<Option<Function>, WrapError> {
        let found = self
            .entries
            .iter()
            .find_map(|(pattern, entry)| Some((pattern.captures(symbol)?, entry)));
        let Some((captures, entry)) = found else {
            return Ok(None);
        };
        let mut name = String::new();
        // `$0` is the symbol, also where the pattern matches a part of it.
        captures.expand(&entry.name.replace("$0", symbol), &mut name);
        Function::new(
            symbol,
            &name,
            &entry.group,
            &entry.prototype,
            &entry.in_bits,
            &entry.out_bits,
        )
        .map(Some)
    }
}

/// One function to wrap, as the template takes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Linker symbol.
    pub symbol: String,
    /// Reported name.
    pub name: String,
    /// `hash`, `drng`, `other`.
    pub group: String,
    returns: String,
    parameters: String,
    arguments: String,
    in_bits: String,
    out_bits: String,
}

impl Function {
    fn new(
        symbol: &str,
        name: &str,
        group: &str,
        prototype: &str,
        in_bits: &str,
        out_bits: &str,
    ) -> Result<Function, WrapError> {
        let wrong = |why: String| WrapError::Prototype {
            symbol: symbol.to_owned(),
            why,
        };
        if !prototype::is_identifier(symbol) {
            return Err(wrong("the symbol is no C identifier".to_owned()));
        }
        if name.contains(['"', '\\', '\n']) {
            return Err(wrong(format!("`{name}` cannot be its name on a page")));
        }
        let Prototype {
            returns,
            parameters,
            arguments,
        } = prototype::parse(prototype, symbol).map_err(wrong)?;
        Ok(Function {
            symbol: symbol.to_owned(),
            name: name.to_owned(),
            group: group.to_owned(),
            returns,
            parameters,
            arguments,
            in_bits: in_bits.to_owned(),
            out_bits: out_bits.to_owned(),
        })
    }

    /// As `build.json` has it.
    pub fn recorded(&self) -> Wrapped {
        Wrapped {
            symbol: self.symbol.clone(),
            name: self.name.clone(),
            group: self.group.clone(),
        }
    }
}

/// What is wrapped, and what was listed and cannot be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wrapping {
    /// In order of their symbols.
    pub functions: Vec<Function>,
    /// Listed names that do not cross the link.
    pub not_wrapped: Vec<String>,
}

/// Symbols that one object leaves undefined and another defines.
pub fn crossing(objects: &[Symbols]) -> BTreeSet<String> {
    let defined: BTreeSet<&String> = objects.iter().flat_map(|o| &o.defined).collect();
    objects
        .iter()
        .flat_map(|o| &o.undefined)
        .filter(|symbol| defined.contains(symbol))
        .cloned()
        .collect()
}

/// Decides what to wrap in a link of objects whose shared symbols are `crossing`.
pub fn decide(
    wrap: &Wrap,
    root: &Path,
    crossing: &BTreeSet<String>,
) -> Result<Wrapping, WrapError> {
    match wrap {
        Wrap::None => Ok(Wrapping::default()),
        Wrap::Listed(list) => listed(list, crossing),
        Wrap::Derived(path) => Ok(Wrapping {
            functions: derived(&Table::read(root, path)?, crossing)?,
            not_wrapped: Vec::new(),
        }),
    }
}

fn listed(list: &[WrapFunction], crossing: &BTreeSet<String>) -> Result<Wrapping, WrapError> {
    let iccs = Table::iccs()?;
    let mut wrapping = Wrapping::default();
    for wanted in list {
        let function = match (&wanted.prototype, &wanted.in_bits, &wanted.out_bits) {
            (Some(prototype), in_bits, out_bits) => Function::new(
                &wanted.symbol,
                &wanted.name,
                &wanted.group,
                prototype,
                in_bits.as_deref().unwrap_or("0"),
                out_bits.as_deref().unwrap_or("0"),
            )?,
            (None, ..) => Function {
                name: wanted.name.clone(),
                group: wanted.group.clone(),
                ..iccs
                    .function(&wanted.symbol)?
                    .ok_or_else(|| WrapError::NoPrototype {
                        symbol: wanted.symbol.clone(),
                    })?
            },
        };
        match crossing.contains(&wanted.symbol) {
            true => wrapping.functions.push(function),
            false => wrapping.not_wrapped.push(wanted.symbol.clone()),
        }
    }
    wrapping.functions.sort_by(|a, b| a.symbol.cmp(&b.symbol));
    wrapping.functions.dedup_by(|a, b| a.symbol == b.symbol);
    wrapping.not_wrapped.sort();
    Ok(wrapping)
}

fn derived(table: &Table, crossing: &BTreeSet<String>) -> Result<Vec<Function>, WrapError> {
    let Some(derive) = &table.derive else {
        return Err(WrapError::Table {
            table: table.name.clone(),
            why: "it has no `derive`, the expression by which names are found".to_owned(),
        });
    };
    let excluded = |symbol: &str| table.exclude.as_ref().is_some_and(|e| e.is_match(symbol));
    let mut functions = Vec::new();
    let mut without = Vec::new();
    for symbol in crossing {
        if !derive.is_match(symbol) || excluded(symbol) {
            continue;
        }
        match table.function(symbol)? {
            Some(function) => functions.push(function),
            None => without.push(format!("`{symbol}`")),
        }
    }
    match without.is_empty() {
        true => Ok(functions),
        false => Err(WrapError::NoEntry {
            table: table.name.clone(),
            symbols: without.join(", "),
        }),
    }
}

/// The C source of the wrappers.
pub fn source(functions: &[Function]) -> Result<String, WrapError> {
    let mut environment = minijinja::Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.add_template(abi::WRAP_TEMPLATE_NAME, abi::WRAP_TEMPLATE)?;
    let functions = Serde(functions);
    let includes: Vec<&str> = Vec::new();
    let text = environment
        .get_template(abi::WRAP_TEMPLATE_NAME)?
        .render(minijinja::context! { functions, includes })?;
    Ok(text + "\n") // rendering takes the last line end away
}

/// Functions that an added object wraps: it defines `__wrap_F`.
pub fn wrapped_by(objects: &[Symbols]) -> BTreeSet<String> {
    objects
        .iter()
        .flat_map(|o| &o.defined)
        .filter_map(|symbol| symbol.strip_prefix("__wrap_"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    fn helper(symbol: &str, group: &str, name: &str) -> WrapFunction {
        WrapFunction {
            symbol: symbol.into(),
            group: group.into(),
            name: name.into(),
            prototype: None,
            in_bits: None,
            out_bits: None,
        }
    }

    const TABLE: &str = r#"
        derive = '(^|_)(shake|keccak)|randombytes'
        exclude = '_stream_init$'
        [[function]]
        pattern = '^(?:P_)?(shake(?:128|256))$'
        prototype = "void {symbol}(uint8_t *out, size_t n)"
        in_bits = "0"
        out_bits = "8ULL * n"
        name = "$1"
        group = "hash"
        [[function]]
        pattern = 'randombytes$'
        prototype = "int {symbol}(uint8_t *out, size_t n)"
        in_bits = "0"
        out_bits = "8ULL * n"
        name = "drng"
        group = "drng"
    "#;

    #[test]
    fn only_what_crosses_the_link_can_be_wrapped() {
        let objects = [
            Symbols {
                defined: set(&["shake256", "inside"]),
                undefined: set(&["memcpy"]),
            },
            Symbols {
                defined: set(&["sign"]),
                undefined: set(&["shake256", "memcpy"]),
            },
        ];
        assert_eq!(crossing(&objects), set(&["shake256"]));
    }

    #[test]
    fn names_are_derived_and_reported_by_the_table() {
        let table = Table::parse(TABLE, "t.toml").unwrap();
        let found = derived(
            &table,
            &set(&["P_shake128", "Q_randombytes", "shake128_stream_init", "ntt"]),
        )
        .unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|f| (f.symbol.as_str(), f.name.as_str()))
            .collect();
        assert_eq!(
            names,
            [("P_shake128", "shake128"), ("Q_randombytes", "drng")]
        );
        assert_eq!(found[0].parameters, "uint8_t *out, size_t n");
    }

    #[test]
    fn a_derived_name_without_an_entry_is_an_error_that_names_it() {
        let table = Table::parse(TABLE, "t.toml").unwrap();
        let error = derived(&table, &set(&["keccak_absorb", "shake256"])).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("`keccak_absorb`") && text.contains("t.toml"),
            "{text}"
        );
        assert!(!text.contains("`shake256`"), "{text}");
    }

    #[test]
    fn helpers_are_known_and_what_does_not_cross_is_reported() {
        let list = [
            helper("pseudoXOF", "hash", "pseudoXOF"),
            helper("sm3hash", "hash", "sm3hash"),
            helper("get_random_number", "drng", "drng"),
        ];
        let wrapping = listed(&list, &set(&["pseudoXOF", "get_random_number"])).unwrap();
        let names: Vec<_> = wrapping.functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["drng", "pseudoXOF"]);
        assert_eq!(wrapping.not_wrapped, ["sm3hash"]);
        let error =
            listed(&[helper("my_hash", "hash", "my_hash")], &set(&["my_hash"])).unwrap_err();
        assert!(matches!(error, WrapError::NoPrototype { .. }), "{error}");
    }

    #[test]
    fn a_wrong_table_is_refused() {
        for (text, expected) in [
            ("function = []\nextra = 1", "unknown field"),
            ("derive = '('\nfunction = []", "regex"),
            (&TABLE.replace("\"hash\"", "\"hsah\""), "`hsah`"),
        ] {
            let error = Table::parse(text, "t.toml").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let table = Table::parse("function = []", "t.toml").unwrap();
        assert!(derived(&table, &set(&[])).is_err());
    }

    #[test]
    fn the_template_is_filled() {
        let table = Table::parse(TABLE, "t.toml").unwrap();
        let functions = derived(&table, &set(&["shake256"])).unwrap();
        let text = source(&functions).unwrap();
        assert!(
            text.contains("void __wrap_shake256(uint8_t *out, size_t n)"),
            "{text}"
        );
        assert!(text.contains("= 1;"), "{text}");
        assert!(!text.contains("{{"), "{text}");
        source(&[]).unwrap();
    }

    #[test]
    fn wrappers_are_known_by_their_symbols() {
        let added = [Symbols {
            defined: set(&["__wrap_malloc", "campaign_memory_peak"]),
            undefined: set(&["__real_malloc"]),
        }];
        assert_eq!(wrapped_by(&added), set(&["malloc"]));
    }
}
