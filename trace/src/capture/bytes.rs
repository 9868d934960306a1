//! Numbers, texts and blocks off the front of whatever can be read, with the place of each.

use std::io::{self, Read, Seek, SeekFrom};

use super::CaptureError;

/// Reads little-endian numbers, and never more than is asked for.
#[derive(Debug)]
pub(crate) struct ByteReader<R> {
    source: R,
    at: u64,
}

impl<R: Read> ByteReader<R> {
    /// Continues with byte `at` of a file.
    pub(crate) const fn new(source: R, at: u64) -> Self {
        Self { source, at }
    }

    /// The place of the next byte.
    pub(crate) const fn at(&self) -> u64 {
        self.at
    }

    pub(crate) fn into_inner(self) -> R {
        self.source
    }

    /// Fills as much as there is, and says how much.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) -> Result<usize, CaptureError> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.source.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why.into()),
            }
        }
        self.at += filled as u64;
        Ok(filled)
    }

    /// Fills all of `bytes`.
    fn exact(&mut self, bytes: &mut [u8], part: &'static str) -> Result<(), CaptureError> {
        let filled = self.fill(bytes)?;
        if filled < bytes.len() {
            return Err(CaptureError::Ended { at: self.at, part });
        }
        Ok(())
    }

    pub(crate) fn array<const N: usize>(
        &mut self,
        part: &'static str,
    ) -> Result<[u8; N], CaptureError> {
        let mut bytes = [0; N];
        self.exact(&mut bytes, part)?;
        Ok(bytes)
    }

    fn u8(&mut self, part: &'static str) -> Result<u8, CaptureError> {
        self.array::<1>(part).map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self, part: &'static str) -> Result<u16, CaptureError> {
        self.array(part).map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, part: &'static str) -> Result<u32, CaptureError> {
        self.array(part).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, part: &'static str) -> Result<u64, CaptureError> {
        self.array(part).map(u64::from_le_bytes)
    }

    /// A block of so many bytes, at most `most`. What is taken of memory grows with what is there,
    /// not with what is claimed.
    pub(crate) fn block(
        &mut self,
        bytes: u64,
        most: usize,
        part: &'static str,
    ) -> Result<Vec<u8>, CaptureError> {
        if bytes > most as u64 {
            let why = format!("{part} of {bytes} bytes; at most {most} are read");
            return Err(CaptureError::damaged(self.at, why));
        }
        let mut block = Vec::new();
        (&mut self.source).take(bytes).read_to_end(&mut block)?;
        self.at += block.len() as u64;
        if (block.len() as u64) < bytes {
            return Err(CaptureError::Ended { at: self.at, part });
        }
        Ok(block)
    }

    /// A text up to its NUL, which is taken too, of at most `most` bytes.
    pub(crate) fn text(&mut self, most: usize, part: &'static str) -> Result<String, CaptureError> {
        let mut text = Vec::new();
        loop {
            match self.u8(part)? {
                0 => break,
                byte if text.len() < most => text.push(byte),
                _ => {
                    let why = format!("a text in its {part} longer than {most} bytes");
                    return Err(CaptureError::damaged(self.at, why));
                }
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Reads on without keeping.
    pub(crate) fn skip(&mut self, bytes: u64, part: &'static str) -> Result<(), CaptureError> {
        let skipped = io::copy(&mut (&mut self.source).take(bytes), &mut io::sink())?;
        self.at += skipped;
        if skipped < bytes {
            return Err(CaptureError::Ended { at: self.at, part });
        }
        Ok(())
    }
}

impl<R: Seek> ByteReader<R> {
    /// Goes on with this byte of the file.
    pub(crate) fn seek_to(&mut self, at: u64) -> Result<(), CaptureError> {
        self.source.seek(SeekFrom::Start(at))?;
        self.at = at;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ByteReader;

    #[test]
    fn reads_and_counts() {
        let mut bytes = ByteReader::new(&b"\x01\x02\0\x03\0\0\0text\0blockskipend"[..], 10);
        assert_eq!(bytes.u8("head"), Ok(1));
        assert_eq!(bytes.u16("head"), Ok(2));
        assert_eq!(bytes.u32("head"), Ok(3));
        assert_eq!(bytes.text(4, "head").as_deref(), Ok("text"));
        assert_eq!(bytes.block(5, 5, "head").as_deref(), Ok(&b"block"[..]));
        assert_eq!(bytes.skip(4, "head"), Ok(()));
        assert_eq!(bytes.at(), 10 + 7 + 5 + 5 + 4);
        let error = bytes.u64("head").unwrap_err().to_string();
        assert_eq!(error, "ends at byte 34, within its head");
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let mut bytes = ByteReader::new(&b"abcdef"[..], 0);
        let error = bytes.block(u64::MAX, 4, "symbols").unwrap_err().to_string();
        assert_eq!(error, "byte 0: symbols of 18446744073709551615 bytes; at most 4 are read");
        let error = bytes.text(3, "head").unwrap_err().to_string();
        assert_eq!(error, "byte 4: a text in its head longer than 3 bytes");
        let error = bytes.block(3, 4, "symbols").unwrap_err().to_string();
        assert_eq!(error, "ends at byte 6, within its symbols");
        assert!(bytes.skip(1, "symbols").is_err());
    }
}
