//! One table of a file, of which each key is asked for by name and kind.
//!
//! Pure. Says in the file's words what stands where something else should, and finds the keys that
//! nobody asked for.

use std::ops::{Range, RangeInclusive};

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::TaskFileError;

/// A text and where it stands.
pub(super) type Word = Spanned<String>;

/// A table of a file.
#[derive(Debug)]
pub(super) struct Keys<'t, 'f> {
    text: &'t Text<'f>,
    place: Range<usize>,
    left: DeTable<'f>,
}

impl<'t, 'f> Keys<'t, 'f> {
    /// All of a file.
    pub(super) fn of(text: &'t Text<'f>) -> Result<Self, TaskFileError> {
        let whole = DeTable::parse(text.as_str()).map_err(|why| text.refused(&why))?;
        Ok(Self { text, place: whole.span(), left: whole.into_inner() })
    }

    /// Where the table begins.
    pub(super) fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    fn take(&mut self, key: &str) -> Option<Spanned<DeValue<'f>>> {
        self.left.remove(key)
    }

    fn wrong(&self, key: &str, wanted: &str, value: &Spanned<DeValue<'_>>) -> TaskFileError {
        let is = kind(value.get_ref());
        self.text.within(value.span(), &format!("{key} must be {wanted} (got {is})"))
    }

    /// A text.
    pub(super) fn word(&mut self, key: &str) -> Result<Option<Word>, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(word) => Ok(Some(Spanned::new(value.span(), word.to_owned()))),
            None => Err(self.wrong(key, "a string", &value)),
        }
    }

    /// Texts in brackets.
    pub(super) fn words(
        &mut self,
        key: &str,
    ) -> Result<Option<Spanned<Vec<String>>>, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let wanted = "an array of strings";
        let Some(list) = value.get_ref().as_array() else {
            return Err(self.wrong(key, wanted, &value));
        };
        let word = |value: &Spanned<DeValue<'_>>| match value.get_ref().as_str() {
            Some(word) => Ok(word.to_owned()),
            None => Err(self.wrong(&format!("each element of {key}"), "a string", value)),
        };
        let words = list.iter().map(word).collect::<Result<_, _>>()?;
        Ok(Some(Spanned::new(value.span(), words)))
    }

    /// A whole number within a range.
    pub(super) fn number(
        &mut self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let (least, most) = (range.start(), range.end());
        let wanted = format!("an integer in [{least}, {most}]");
        let Some(number) = value.get_ref().as_integer() else {
            return Err(self.wrong(key, &wanted, &value));
        };
        // What does not fit is out of any range here.
        let is = u64::from_str_radix(number.as_str(), number.radix()).ok();
        match is.filter(|is| range.contains(is)) {
            Some(is) => Ok(Some(is)),
            None => {
                let why = format!("{key} must be {wanted} (got {number})");
                Err(self.text.within(value.span(), &why))
            }
        }
    }

    /// Yes or no; no where it is not said.
    pub(super) fn flag(&mut self, key: &str) -> Result<bool, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(false) };
        value.get_ref().as_bool().ok_or_else(|| self.wrong(key, "a boolean", &value))
    }

    /// A table of texts, in the order of their names; `None` where there is none.
    pub(super) fn variables(
        &mut self,
        key: &str,
    ) -> Result<Option<Vec<(Word, String)>>, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let wanted = "a table of strings, written { NAME = \"value\" }";
        let Some(table) = value.get_ref().as_table() else {
            return Err(self.wrong(key, wanted, &value));
        };
        let variable = |(name, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
            let name = Spanned::new(name.span(), name.get_ref().to_string());
            match value.get_ref().as_str() {
                Some(word) => Ok((name, word.to_owned())),
                None => Err(self.wrong(&format!("each value of {key}"), "a string", value)),
            }
        };
        table.iter().map(variable).collect::<Result<_, _>>().map(Some)
    }

    /// A table, written `[key]`; empty where there is none.
    pub(super) fn table(&mut self, key: &str) -> Result<Self, TaskFileError> {
        let text = self.text;
        let Some(value) = self.take(key) else {
            return Ok(Self { text, place: 0..0, left: DeTable::new() });
        };
        self.as_table(value, key, || format!("one table, written [{key}]"))
    }

    /// All tables that are written `[[key]]`, in their order.
    pub(super) fn tables(&mut self, key: &str) -> Result<Vec<Self>, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        let wanted = || format!("a table, written [[{key}]]");
        let each = format!("each {key}");
        let place = value.span();
        match value.into_inner() {
            DeValue::Array(list) => {
                list.into_iter().map(|value| self.as_table(value, &each, wanted)).collect()
            }
            DeValue::Table(_) => {
                let why = format!("{each} must be {} (got a table in single brackets)", wanted());
                Err(self.text.within(place, &why))
            }
            other => Err(self.wrong(&each, &wanted(), &Spanned::new(place, other))),
        }
    }

    fn as_table(
        &self,
        value: Spanned<DeValue<'f>>,
        key: &str,
        wanted: impl Fn() -> String,
    ) -> Result<Self, TaskFileError> {
        let place = value.span();
        match value.into_inner() {
            DeValue::Table(left) => Ok(Self { text: self.text, place, left }),
            other => Err(self.wrong(key, &wanted(), &Spanned::new(place, other))),
        }
    }

    /// Nobody asks for more: refuses the first key that was not asked for.
    pub(super) fn end(self, known: &str) -> Result<(), TaskFileError> {
        let first = self.left.keys().min_by_key(|key| key.span().start);
        first.map_or(Ok(()), |key| {
            let why = format!("unknown key {}: {known}", quoted(key.get_ref()));
            Err(self.text.within(key.span(), &why))
        })
    }
}

/// A key as it may be shown: a foreign one may hold anything.
fn quoted(key: &str) -> String {
    let shown: String = key.chars().take(48).collect();
    format!("{shown:?}")
}

/// What stands there, in words.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a datetime",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// The longest file, bytes.
pub const FILE_MAX: usize = 1 << 20;

/// A file's text, by which places are found.
#[derive(Debug)]
pub(super) struct Text<'t>(&'t str);

impl<'t> Text<'t> {
    pub(super) fn of(bytes: &'t [u8]) -> Result<Self, TaskFileError> {
        if bytes.len() > FILE_MAX {
            return Err(TaskFileError::new(None, "the file is larger than 1 MiB"));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self(text)),
            Err(why) => {
                let valid = bytes.get(..why.valid_up_to()).unwrap_or_default();
                let place = place(&String::from_utf8_lossy(valid), valid.len());
                Err(TaskFileError::new(Some(place), "no UTF-8"))
            }
        }
    }

    fn as_str(&self) -> &'t str {
        self.0
    }

    /// The line of a value, from 1.
    pub(super) fn line<T>(&self, value: &Spanned<T>) -> usize {
        place(self.0, value.span().start).0
    }

    /// A value that is refused.
    pub(super) fn at<T>(&self, value: &Spanned<T>, why: &str) -> TaskFileError {
        self.within(value.span(), why)
    }

    /// Something at a place that is refused.
    pub(super) fn within(&self, span: Range<usize>, why: &str) -> TaskFileError {
        TaskFileError::new(Some(place(self.0, span.start)), why)
    }

    /// What the TOML parser refused.
    fn refused(&self, why: &toml::de::Error) -> TaskFileError {
        match why.span() {
            Some(span) => self.within(span, why.message()),
            None => TaskFileError::new(None, why.message()),
        }
    }
}

/// Line and column of a byte, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    (line, column)
}
