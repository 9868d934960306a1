//! Why another program's file was refused: one line with the place.

use super::csv::shortened;

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
        /// What is wrong.
        why: String,
    },
    /// A record that cannot be what the program writes.
    #[error("byte {at_byte}: {why}")]
    Byte {
        /// Its offset from the start of the file.
        at_byte: u64,
        /// What is wrong.
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
