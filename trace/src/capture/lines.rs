//! Lines of bounded length off whatever can be read.

use std::io::{BufRead, Read};

use super::CaptureError;

/// Longest line that is taken whole, bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Reads line by line into one buffer.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    source: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) const fn new(source: R) -> Self {
        Self { source, line: Vec::new(), number: 0 }
    }

    /// The number of the last line, from 1 on.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The last line, without what ends it; what is no UTF-8 is replaced.
    pub(crate) fn line(&self) -> String {
        String::from_utf8_lossy(&self.line).into_owned()
    }

    /// Reads the next line; nothing at the end, false for one that is too long and was passed over.
    pub(crate) fn next(&mut self) -> Result<Option<bool>, CaptureError> {
        self.line.clear();
        let most = LINE_BYTES_MAX as u64 + 1;
        let read = (&mut self.source).take(most).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
            if self.line.last() == Some(&b'\r') {
                self.line.pop();
            }
            return Ok(Some(true));
        }
        if self.line.len() <= LINE_BYTES_MAX {
            return Ok(Some(true));
        }
        loop {
            self.line.clear();
            let read = (&mut self.source).take(most).read_until(b'\n', &mut self.line)?;
            if read == 0 || self.line.last() == Some(&b'\n') {
                self.line.clear();
                return Ok(Some(false));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE_BYTES_MAX, Lines};

    #[test]
    fn long_lines_are_passed_over() {
        let long = "x".repeat(3 * LINE_BYTES_MAX);
        let whole = "y".repeat(LINE_BYTES_MAX);
        let text = format!("a\r\n{long}\n{whole}\nlast");
        let mut lines = Lines::new(text.as_bytes());
        assert_eq!(lines.next(), Ok(Some(true)));
        assert_eq!(lines.line(), "a");
        assert_eq!(lines.next(), Ok(Some(false)));
        assert_eq!(lines.next(), Ok(Some(true)));
        assert_eq!(lines.line(), whole);
        assert_eq!(lines.next(), Ok(Some(true)));
        assert_eq!((lines.line().as_str(), lines.number()), ("last", 4));
        assert_eq!(lines.next(), Ok(None));
        let mut lines = Lines::new(long.as_bytes());
        assert_eq!(lines.next(), Ok(Some(false)));
        assert_eq!(lines.next(), Ok(None));
    }
}
