//! Lines and fields of a CSV file, from any source of bytes.
//!
//! Holds one buffer; finds lines (LF or CR LF), skips a byte order mark, takes fields apart (quoted
//! ones included). Returns bytes; interprets no numbers.

use std::borrow::Cow;
use std::fmt;
use std::io::{ErrorKind, Read};

use super::error::{CsvError, shortened};

/// A longer line is no line of numbers.
pub(super) const LINE_BYTES_MAX: usize = 65_536;
/// The ways out where a line may be one number with a decimal comma, or several.
pub(super) const BOTH_WAYS: &str = "for a decimal comma write a point, for several columns name \
                                    each in a first line";
const BUFFER_BYTES: usize = 2 * LINE_BYTES_MAX;

/// What stands between fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    Comma,
    Semicolon,
    Tab,
}

impl Separator {
    fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
        }
    }
}

/// A source of lines, standing on one of them. What it reads from is boxed, not a parameter, so
/// that the loops over lines are compiled here, whatever the crate that reads is built with.
pub(super) struct Lines<'r> {
    reader: Box<dyn Read + 'r>,
    buffer: Vec<u8>,
    /// The present line, without its end; and where the next one begins.
    start: usize,
    end: usize,
    next: usize,
    /// How much of the buffer holds bytes.
    filled: usize,
    at_end: bool,
    number: u64,
    unquoted: Vec<u8>,
}

impl fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("number", &self.number).finish_non_exhaustive()
    }
}

impl<'r> Lines<'r> {
    pub(super) fn new(reader: impl Read + 'r) -> Self {
        Self {
            reader: Box::new(reader),
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            next: 0,
            filled: 0,
            at_end: false,
            number: 0,
            unquoted: Vec::new(),
        }
    }

    /// Goes to the next line; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, CsvError> {
        self.start = self.next;
        self.number += 1;
        let mut searched = self.start;
        loop {
            let end = self.buffer[searched..self.filled].iter().position(|&byte| byte == b'\n');
            if let Some(end) = end.map(|end| searched + end) {
                self.next = end + 1;
                return self.stand_on(end);
            }
            if self.at_end {
                self.next = self.filled;
                return if self.start < self.filled {
                    self.stand_on(self.filled)
                } else {
                    Ok(false)
                };
            }
            if self.filled - self.start > LINE_BYTES_MAX {
                return Err(CsvError::TooLong { line: self.number });
            }
            searched = self.fill()?;
        }
    }

    /// Reads more behind what is there; where the new bytes begin.
    fn fill(&mut self) -> Result<usize, CsvError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        }
        let before = self.filled;
        match self.reader.read(&mut self.buffer[before..]) {
            Ok(0) => self.at_end = true,
            Ok(bytes) => self.filled += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        Ok(before)
    }

    fn stand_on(&mut self, end: usize) -> Result<bool, CsvError> {
        if end - self.start > LINE_BYTES_MAX {
            return Err(CsvError::TooLong { line: self.number });
        }
        if self.number == 1 && self.buffer[self.start..end].starts_with(b"\xef\xbb\xbf") {
            self.start += 3;
        }
        self.end = end;
        if self.buffer[self.start..end].ends_with(b"\r") {
            self.end -= 1;
        }
        Ok(true)
    }

    fn line(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn is_blank(&self) -> bool {
        self.line().trim_ascii().is_empty()
    }

    /// The separator that the line shows: tab before semicolon before comma.
    pub(super) fn separator(&self) -> Separator {
        let line = self.line();
        if line.contains(&b'\t') {
            Separator::Tab
        } else if line.contains(&b';') {
            Separator::Semicolon
        } else {
            Separator::Comma
        }
    }

    /// One field of the line, from 0, where the first line has so many `columns`.
    pub(super) fn field(
        &mut self,
        separator: Separator,
        at: usize,
        columns: usize,
    ) -> Result<&[u8], CsvError> {
        let separators = self.line().iter().filter(|&&byte| byte == separator.byte()).count();
        if separators >= columns {
            self.refuse_more(separator, columns)?;
        }
        let mut rest = &self.buffer[self.start..self.end];
        for column in 0.. {
            let (field, after) = split(rest, separator).ok_or_else(|| self.unclosed())?;
            if column == at {
                return Ok(match field {
                    Cow::Borrowed(field) => field,
                    Cow::Owned(field) => {
                        self.unquoted = field;
                        &self.unquoted
                    }
                });
            }
            match after {
                Some(after) => rest = after,
                None => break,
            }
        }
        Err(self.refuse(format!("column {} is missing", at + 1)))
    }

    /// All fields of the line, as text.
    pub(super) fn fields(&self, separator: Separator) -> Result<Vec<String>, CsvError> {
        let mut fields = Vec::new();
        let mut rest = Some(self.line());
        while let Some(line) = rest {
            let (field, after) = split(line, separator).ok_or_else(|| self.unclosed())?;
            fields.push(String::from_utf8_lossy(&field).trim().to_owned());
            rest = after;
        }
        Ok(fields)
    }

    /// Refuses a line of more fields than the first one has: a decimal comma looks like that.
    pub(super) fn refuse_more(&self, separator: Separator, columns: usize) -> Result<(), CsvError> {
        let fields = self.fields(separator)?;
        let filled = fields.iter().rposition(|field| !field.is_empty()).map_or(0, |last| last + 1);
        if filled <= columns {
            return Ok(());
        }
        let first = if columns == 1 { "one".to_owned() } else { columns.to_string() };
        Err(self.refuse(format!("{filled} fields, but {first} in the first line; {BOTH_WAYS}")))
    }

    /// Why the requested field of the line is no number.
    pub(super) fn refuse_text(&self, why: &str, separator: Separator, columns: usize) -> CsvError {
        let own = self.separator();
        let other = (own != separator).then(|| self.refuse_more(own, columns).err()).flatten();
        let is_comma = |byte: &u8| *byte == b',' && separator != Separator::Comma;
        let comma =
            if self.line().iter().any(is_comma) { "; write decimals with a point" } else { "" };
        other.unwrap_or_else(|| self.refuse(format!("{why}{comma}")))
    }

    fn unclosed(&self) -> CsvError {
        self.refuse("a quote is not closed")
    }

    /// An error about this line.
    pub(super) fn refuse(&self, why: impl Into<String>) -> CsvError {
        CsvError::Line { line: self.number, why: why.into(), text: shortened(self.line()) }
    }
}

/// A field, and what stands after the separator behind it.
type Split<'a> = (Cow<'a, [u8]>, Option<&'a [u8]>);

/// The first field and what follows its separator; `None` when a quote is not closed.
fn split(line: &[u8], separator: Separator) -> Option<Split<'_>> {
    let separator = separator.byte();
    let begin = line.iter().take_while(|&&byte| byte == b' ').count();
    if line.get(begin) != Some(&b'"') {
        let end = line.iter().position(|&byte| byte == separator).unwrap_or(line.len());
        return Some((Cow::Borrowed(&line[..end]), line.get(end + 1..)));
    }
    let mut field = Vec::new();
    let mut rest = &line[begin + 1..];
    loop {
        let quote = rest.iter().position(|&byte| byte == b'"')?;
        field.extend_from_slice(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix(b"\"") {
            // Two quotes inside quotes are one.
            Some(after) => {
                field.push(b'"');
                rest = after;
            }
            None => break,
        }
    }
    let end = rest.iter().position(|&byte| byte == separator).unwrap_or(rest.len());
    Some((Cow::Owned(field), rest.get(end + 1..)))
}
