//! A table of the file while it is read: typed values with their places, unknown and missing keys.
//!
//! Each getter takes the key, and an example of what is accepted; it answers `None` both for a key
//! that is not there and for a value that is wrong, and has reported the latter. What the values
//! mean is not known here.

use super::mistake::Collector;
use std::ops::{Range, RangeInclusive};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// A value of the file and the bytes where it stands.
pub type Located<T> = Spanned<T>;

/// Puts another value at the same place.
pub fn at<T, U>(place: &Located<T>, value: U) -> Located<U> {
    Spanned::new(place.span(), value)
}

/// A table that is being read.
pub struct Section<'t> {
    /// How a message names it: `[plan.quick]`.
    pub title: String,
    /// Where its header stands.
    pub span: Range<usize>,
    table: &'t DeTable<'t>,
    known: Vec<&'static str>,
    mistakes: &'t Collector<'t>,
}

/// What a value is, in words of the format.
pub fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The nearest of some words, if it is near enough to be a slip of the pen.
pub fn did_you_mean<'w>(word: &str, words: impl IntoIterator<Item = &'w str>) -> Option<String> {
    let simple = |text: &str| text.to_lowercase().replace('-', "_");
    let wanted = simple(word);
    let near = |known: &str| strsim::damerau_levenshtein(&wanted, &simple(known));
    let (distance, best) = words
        .into_iter()
        .map(|known| (near(known), known))
        .min_by_key(|(distance, _)| *distance)?;
    let limit = word.chars().count().div_ceil(3).min(4);
    (distance <= limit).then(|| format!("did you mean `{best}`?"))
}

/// Words as a sentence part: `a`, `b` or `c`.
pub fn one_of<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|w| format!("`{w}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}

impl<'t> Section<'t> {
    /// The file as a whole.
    pub fn root(table: &'t DeTable<'t>, mistakes: &'t Collector<'t>) -> Self {
        Section {
            title: "the file".to_owned(),
            span: 0..0,
            table,
            known: Vec::new(),
            mistakes,
        }
    }

    fn sub(&self, title: String, span: Range<usize>, table: &'t DeTable<'t>) -> Section<'t> {
        Section {
            title,
            span,
            table,
            known: Vec::new(),
            mistakes: self.mistakes,
        }
    }

    /// Reports a mistake at a place of this file.
    pub fn report(&self, span: Range<usize>, what: impl Into<String>, expected: &str) {
        self.mistakes
            .add(span, what, Some(expected.to_owned()), None);
    }

    /// Reports that this table lacks a key.
    pub fn missing(&self, key: &str, example: &str) {
        self.mistakes.add_absence(
            self.span.clone(),
            format!("{} lacks the key `{key}`", self.title),
            example.to_owned(),
        );
    }

    /// The value of a key as it stands; the key counts as known from now on.
    pub fn raw(&mut self, key: &'static str) -> Option<&'t Located<DeValue<'t>>> {
        self.known.push(key);
        self.table.get(key)
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    fn wrong(&self, key: &str, value: &Located<DeValue<'_>>, wanted: &str, example: &str) {
        self.wrong_value(&format!("`{key}`"), value, wanted, example);
    }

    fn wrong_item(&self, key: &str, value: &Located<DeValue<'_>>, wanted: &str, example: &str) {
        self.wrong_value(&format!("an item of `{key}`"), value, wanted, example);
    }

    fn wrong_value(&self, name: &str, value: &Located<DeValue<'_>>, wanted: &str, example: &str) {
        let found = type_name(value.get_ref());
        let what = format!("{name} is {found}; it must be {wanted}");
        self.report(value.span(), what, example);
    }

    /// Text.
    pub fn text(&mut self, key: &'static str, example: &str) -> Option<Located<String>> {
        let value = self.raw(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(at(value, text.clone().into_owned())),
            _ => {
                self.wrong(key, value, "text", example);
                None
            }
        }
    }

    /// Text that must be there and not be blank.
    pub fn required_text(&mut self, key: &'static str, example: &str) -> Option<Located<String>> {
        if !self.has(key) {
            self.missing(key, example);
        }
        let text = self.text(key, example)?;
        if text.get_ref().trim().is_empty() {
            self.report(text.span(), format!("`{key}` is empty"), example);
            return None;
        }
        Some(text)
    }

    /// One of some words, as its index.
    pub fn choice(&mut self, key: &'static str, words: &[&str]) -> Option<Located<usize>> {
        let example = format!(
            "{key} = {}",
            one_of(words.iter().copied()).replace('`', "\"")
        );
        let text = self.text(key, &example)?;
        let word = text.get_ref().as_str();
        let found = words.iter().position(|known| *known == word);
        if found.is_none() {
            self.mistakes.add(
                text.span(),
                format!("`{key}` cannot be \"{word}\""),
                Some(example),
                did_you_mean(word, words.iter().copied()),
            );
        }
        found.map(|index| at(&text, index))
    }

    /// A whole number within a range.
    pub fn integer(
        &mut self,
        key: &'static str,
        range: RangeInclusive<u64>,
        example: &str,
    ) -> Option<Located<u64>> {
        let value = self.raw(key)?;
        let DeValue::Integer(digits) = value.get_ref() else {
            self.wrong(key, value, "a whole number", example);
            return None;
        };
        let number = u64::from_str_radix(digits.as_str(), digits.radix())
            .ok()
            .filter(|number| range.contains(number));
        if number.is_none() {
            let (low, high) = (range.start(), range.end());
            self.report(
                value.span(),
                format!("`{key}` is {digits}; it must be from {low} to {high}"),
                example,
            );
        }
        number.map(|number| at(value, number))
    }

    /// A number above `low` (or equal to it, where `low_included`) and up to `high`.
    pub fn number(
        &mut self,
        key: &'static str,
        (low_included, low, high): (bool, f64, f64),
        example: &str,
    ) -> Option<Located<f64>> {
        let value = self.raw(key)?;
        let number: f64 = match value.get_ref() {
            DeValue::Float(digits) => digits.as_str().parse().unwrap_or(f64::NAN),
            DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
                .map_or(f64::INFINITY, |number| number as f64), // exact below 2^53; limits are far lower
            _ => {
                self.wrong(key, value, "a number", example);
                return None;
            }
        };
        let inside = number <= high && (number > low || low_included && number == low);
        if !inside {
            let range = match low_included {
                true => format!("from {low} to {high}"),
                false => format!("above {low} and at most {high}"),
            };
            let what = format!("`{key}` is out of range; it must be {range}");
            self.report(value.span(), what, example);
        }
        inside.then(|| at(value, number))
    }

    /// True or false.
    pub fn boolean(&mut self, key: &'static str, example: &str) -> Option<Located<bool>> {
        let value = self.raw(key)?;
        match value.get_ref() {
            DeValue::Boolean(yes) => Some(at(value, *yes)),
            _ => {
                self.wrong(key, value, "true or false", example);
                None
            }
        }
    }

    /// A list of texts. Items that are no text are reported and left out.
    pub fn list(
        &mut self,
        key: &'static str,
        example: &str,
    ) -> Option<Located<Vec<Located<String>>>> {
        let value = self.raw(key)?;
        self.texts(key, value, example)
    }

    /// A value that must be a list of texts.
    pub fn texts(
        &self,
        key: &str,
        value: &'t Located<DeValue<'t>>,
        example: &str,
    ) -> Option<Located<Vec<Located<String>>>> {
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong(key, value, "a list of texts", example);
            return None;
        };
        let mut texts = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::String(text) => texts.push(at(item, text.clone().into_owned())),
                _ => self.wrong_item(key, item, "text", example),
            }
        }
        Some(at(value, texts))
    }

    /// A list of texts that must be there and hold something.
    pub fn required_list(
        &mut self,
        key: &'static str,
        example: &str,
    ) -> Option<Located<Vec<Located<String>>>> {
        if !self.has(key) {
            self.missing(key, example);
        }
        let list = self.list(key, example)?;
        if list.get_ref().is_empty() {
            self.report(list.span(), format!("`{key}` is empty"), example);
            return None;
        }
        Some(list)
    }

    /// A table below a key.
    pub fn section(
        &mut self,
        key: &'static str,
        title: &str,
        example: &str,
    ) -> Option<Section<'t>> {
        let value = self.raw(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(self.sub(title.to_owned(), value.span(), table)),
            _ => {
                self.wrong(key, value, "a table", example);
                None
            }
        }
    }

    /// A list of tables (`[[key]]`).
    pub fn sections(&mut self, key: &'static str, title: &str, example: &str) -> Vec<Section<'t>> {
        let Some(value) = self.raw(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong(key, value, "a list of tables", example);
            return Vec::new();
        };
        let mut sections = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(table) => {
                    sections.push(self.sub(title.to_owned(), item.span(), table))
                }
                _ => self.wrong_item(key, item, "a table", example),
            }
        }
        sections
    }

    /// Tables whose names the user chooses (`[key.NAME]`).
    pub fn named(
        &mut self,
        key: &'static str,
        example: &str,
    ) -> Vec<(Located<String>, Section<'t>)> {
        let Some(mut all) = self.section(key, &format!("[{key}]"), example) else {
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (name, value) in all.entries() {
            match value.get_ref() {
                DeValue::Table(table) => {
                    let title = format!("[{key}.{}]", name.get_ref());
                    sections.push((name, all.sub(title, value.span(), table)));
                }
                _ => all.wrong(name.get_ref(), value, "a table", example),
            }
        }
        sections
    }

    /// All keys and values; none of them is unknown.
    pub fn entries(&mut self) -> Vec<(Located<String>, &'t Located<DeValue<'t>>)> {
        self.table
            .iter()
            .map(|(key, value)| (at(key, key.get_ref().clone().into_owned()), value))
            .collect()
    }

    /// The collector, for what needs more than a getter.
    pub fn mistakes(&self) -> &'t Collector<'t> {
        self.mistakes
    }

    /// Reports every key that no getter has asked for.
    pub fn finish(self) {
        for (key, _) in self.table.iter() {
            let name = key.get_ref().as_ref();
            if !self.known.contains(&name) {
                let words = self.known.iter().copied();
                self.mistakes.add(
                    key.span(),
                    format!("unknown key `{name}` in {}", self.title),
                    Some(format!(
                        "the keys {}",
                        one_of(words.clone()).replace(" or ", ", ")
                    )),
                    did_you_mean(name, words),
                );
            }
        }
    }
}
