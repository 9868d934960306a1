//! The bytes of a file: opened only where reading comes to an end, unpacked where they are packed.
//!
//! For `analyse`. Regular files and standard input; what is compressed by gzip is unpacked as it is
//! read, up to a limit.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Error, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::bufread::MultiGzDecoder;

/// How a gzip file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The most bytes that are unpacked: a recording of months, and still an end.
const UNPACKED_BYTES_MAX: u64 = 1 << 38;

/// A file, or standard input for `-`, unpacked.
pub(super) fn open(path: &Path) -> Result<Box<dyn Read>> {
    let mut reader = BufReader::with_capacity(1 << 16, raw(path)?);
    let shown = path.display();
    let packed = starts_with(&mut reader, &GZIP).with_context(|| format!("cannot read {shown}"))?;
    match packed {
        (true, first) => {
            let unpacked = MultiGzDecoder::new(Cursor::new(first).chain(reader));
            Ok(Box::new(Bounded { reader: unpacked, left: UNPACKED_BYTES_MAX }))
        }
        (false, first) => Ok(Box::new(Cursor::new(first).chain(reader))),
    }
}

/// What is behind a name. A directory opens, and does not read; a pipe might never end.
fn raw(path: &Path) -> Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let shown = path.display();
    let kind = path.metadata().with_context(|| format!("cannot read {shown}"))?.file_type();
    if kind.is_dir() {
        bail!("cannot read {shown}: it is a directory");
    }
    if kind.is_fifo() || kind.is_socket() {
        bail!("cannot read {shown}: it is a pipe; use '-' to read from a pipe");
    }
    Ok(Box::new(File::open(path).with_context(|| format!("cannot read {shown}"))?))
}

/// Whether the bytes to come begin with `magic`; and those of them that had to be taken.
fn starts_with(reader: &mut impl BufRead, magic: &[u8]) -> io::Result<(bool, Vec<u8>)> {
    let mut first = Vec::new();
    reader.by_ref().take(magic.len() as u64).read_to_end(&mut first)?;
    Ok((first == magic, first))
}

/// Fills `head` as far as there are bytes.
pub(super) fn head(reader: &mut impl Read, bytes: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    reader.by_ref().take(bytes as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// A reader that ends with an error once it gave too much.
struct Bounded<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(bytes as u64).ok_or_else(|| {
            let gib = UNPACKED_BYTES_MAX >> 30;
            Error::new(ErrorKind::InvalidData, format!("it decompresses to more than {gib} GiB"))
        })?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unpacks_without_end_is_ended() {
        let mut bounded = Bounded { reader: io::repeat(0), left: 100_000 };
        let error = io::copy(&mut bounded, &mut io::sink()).expect_err("too much");
        assert!(error.to_string().contains("decompresses to more"), "{error}");
    }
}
