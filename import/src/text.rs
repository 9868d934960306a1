//! Text files of other programs: lines in bounded memory, the numbers in them, and the error that
//! names the place.
//!
//! Takes LF and CR LF; keeps at most [`LINE_BYTES_MAX`] of a line. A file whose last line has no
//! end may have been cut within a number, so it is refused.

use std::io::{BufRead, BufReader, ErrorKind, Read};

/// The most characters of a reason.
const WHY_CHARS: usize = 240;

/// A file that was refused.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A line that cannot be what the program writes.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// The defect, in words.
        why: String,
    },
    /// A record that cannot be what the program writes.
    #[error("byte {at_byte}: {why}")]
    Byte {
        /// Its offset from the start of the file.
        at_byte: u64,
        /// The defect, in words.
        why: String,
    },
    /// JSON that cannot be what the program writes; the reason has line and column.
    #[error("{0}")]
    Json(String),
}

impl ImportError {
    pub(super) fn line(line: u64, why: impl Into<String>) -> Self {
        Self::Line { line, why: why.into() }
    }

    pub(super) fn byte(at_byte: u64, why: impl Into<String>) -> Self {
        Self::Byte { at_byte, why: why.into() }
    }
}

impl From<serde_json::Error> for ImportError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(clean(&error.to_string(), WHY_CHARS))
    }
}

/// The most bytes of a line that are kept.
const LINE_BYTES_MAX: usize = 1 << 20;

/// A source of lines, standing on one of them.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(1 << 16, reader), line: Vec::new(), number: 0 }
    }

    /// The number of the line last given, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// An error about the line last given.
    pub(super) fn refuse(&self, why: impl Into<String>) -> ImportError {
        ImportError::line(self.number.max(1), why)
    }

    /// The next line without its end; `None` at the end of the file.
    pub(super) fn advance(&mut self) -> Result<Option<&str>, ImportError> {
        self.line.clear();
        self.number += 1;
        let (mut cut, mut any) = (false, false);
        loop {
            let bytes = match self.reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    let why = format!("cannot be read: {error}");
                    return Err(ImportError::line(self.number, why));
                }
            };
            if bytes.is_empty() {
                if !any {
                    self.number -= 1;
                    return Ok(None);
                }
                return Err(self.refuse("the last line has no end: the file may have been cut"));
            }
            any = true;
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let (part, used) = match end {
                Some(end) => (&bytes[..end], end + 1),
                None => (bytes, bytes.len()),
            };
            let room = LINE_BYTES_MAX.saturating_sub(self.line.len());
            cut |= part.len() > room;
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            self.reader.consume(used);
            if cut && !self.line.starts_with(b"#") {
                return Err(self.refuse(format!("longer than {LINE_BYTES_MAX} bytes")));
            }
            if end.is_some() {
                break;
            }
        }
        if self.line.ends_with(b"\r") {
            self.line.pop();
        }
        let start = if self.number == 1 && self.line.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        match std::str::from_utf8(&self.line[start..]) {
            Ok(line) => Ok(Some(line)),
            // A comment that was cut may have been cut inside of a letter.
            Err(error) if cut => {
                let valid = start + error.valid_up_to();
                Ok(Some(std::str::from_utf8(&self.line[start..valid]).unwrap_or_default()))
            }
            Err(_) => Err(ImportError::line(self.number, "the line is not UTF-8 text")),
        }
    }
}

/// At most 40 characters of a text, for messages; bytes that are no text are replaced.
pub(super) fn shortened(text: &[u8]) -> String {
    // A character has at most 4 bytes, so this holds more than 40 characters.
    let text = String::from_utf8_lossy(&text[..text.len().min(400)]);
    let text = text.trim();
    if text.chars().count() <= 40 {
        return text.to_owned();
    }
    text.chars().take(39).chain(['…']).collect()
}

/// A text of a file as it may be shown: without control characters and marks that turn the
/// direction of text, and at most `chars` long.
pub(super) fn clean(text: &str, chars: usize) -> String {
    let harmless = |c: char| match c {
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.trim().chars().map(harmless).take(chars).collect()
}

/// A whole number ≥ 0, digits only.
pub(super) fn whole(text: &str) -> Result<u64, String> {
    let shown = || shortened(text.as_bytes());
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(if text.starts_with('-') {
            format!("{:?} is negative", shown())
        } else {
            format!("{:?} is not a count", shown())
        });
    }
    text.parse().map_err(|_| format!("{:?} is too large", shown()))
}

/// A whole number with a sign or without, in units of `unit_ns`, as ns.
pub(super) fn signed_ns(text: &str, unit_ns: i64) -> Result<i64, String> {
    let magnitude = whole(text.strip_prefix('-').unwrap_or(text))?;
    let sign = if text.starts_with('-') { -1 } else { 1 };
    scaled(magnitude, unit_ns).map(|ns| sign * ns)
}

/// A decimal number in units of `unit_ns`, as ns, rounded to the nearest.
pub(super) fn decimal_ns(text: &str, unit_ns: i64) -> Result<f64, String> {
    let plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'e' | b'+');
    let number = text.parse::<f64>().ok().filter(|_| text.bytes().all(plain));
    match number.map(|number| number * unit_ns as f64) {
        Some(ns) if ns.abs() <= NS_MAX as f64 => Ok(ns),
        Some(_) => Err(format!("{:?} is too large", shortened(text.as_bytes()))),
        None => Err(format!("{:?} is not a number", shortened(text.as_bytes()))),
    }
}

/// The longest time that is believed: 292 years would not leave room to add a bucket to it.
const NS_MAX: i64 = i64::MAX / 4;

/// A count of units of `unit_ns`, as ns.
pub(super) fn scaled(value: u64, unit_ns: i64) -> Result<i64, String> {
    i64::try_from(value)
        .ok()
        .and_then(|value| value.checked_mul(unit_ns))
        .filter(|&ns| ns <= NS_MAX)
        .ok_or_else(|| format!("{value} is too large for a time"))
}
