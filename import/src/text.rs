//! Lines of a text file, in bounded memory.
//!
//! For the importers of texts. Takes LF and CR LF; keeps at most [`LINE_BYTES_MAX`] of a line. A
//! file whose last line has no end may have been cut within a number, so it is refused.

use std::io::{BufRead, BufReader, ErrorKind, Read};

use super::error::ImportError;

/// The most bytes of a line that are kept.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;

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
