//! What gzip packed, read as it was before.
//!
//! For all that is read, whatever its name. Bounded: a small file may unpack to any size.

use std::io::{self, BufRead, Cursor, Error, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The most bytes that are unpacked: a recording of months, and still an end.
const UNPACKED_BYTES_MAX: u64 = 1 << 38;

/// What `reader` has, unpacked where gzip packed it.
///
/// # Errors
/// Its first bytes cannot be read.
pub(crate) fn unpacked<'r>(mut reader: impl BufRead + 'r) -> io::Result<Box<dyn Read + 'r>> {
    Ok(match starts_with(&mut reader, &GZIP)? {
        (true, first) => {
            let unpacked = MultiGzDecoder::new(Cursor::new(first).chain(reader));
            Box::new(Bounded { reader: unpacked, left: UNPACKED_BYTES_MAX })
        }
        (false, first) => Box::new(Cursor::new(first).chain(reader)),
    })
}

/// Returns true where the bytes to come begin with `magic`, and those of them that had to be taken.
fn starts_with(reader: &mut impl BufRead, magic: &[u8]) -> io::Result<(bool, Vec<u8>)> {
    let mut first = Vec::new();
    reader.by_ref().take(magic.len() as u64).read_to_end(&mut first)?;
    Ok((first == magic, first))
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
