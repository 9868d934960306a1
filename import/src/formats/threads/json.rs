//! JSON read as it comes, in bounded memory: objects give their fields one by one.
//!
//! For the importers of JSON. A string longer than [`TEXT_BYTES_MAX`] ends the reading, so that a
//! hostile file cannot use much memory; unknown fields are skipped.

use std::fmt;
use std::io::{Error, ErrorKind, Read};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};

use crate::text::ImportError;

/// The most bytes between two quotes.
const TEXT_BYTES_MAX: usize = 1 << 16;

/// What takes the fields of an object.
pub(super) trait Object {
    /// Takes the value of `key` from `map`, which must be read.
    fn field<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error>;

    /// All fields have been given.
    fn done(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Reads one whole document into `object`.
pub(super) fn read(reader: impl Read, object: &mut impl Object) -> Result<(), ImportError> {
    let guarded = Guarded { reader, since_quote: 0, escaped: false };
    let buffered = std::io::BufReader::with_capacity(1 << 16, guarded);
    let mut json = serde_json::Deserializer::from_reader(buffered);
    Fields(object).deserialize(&mut json)?;
    Ok(json.end()?)
}

/// The value of a field as an object of its own.
pub(super) struct Fields<'a, T>(pub(super) &'a mut T);

impl<'de, T: Object> DeserializeSeed<'de> for Fields<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Object> Visitor<'de> for Fields<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.0.field(&key, &mut map)?;
        }
        self.0.done().map_err(A::Error::custom)
    }
}

/// Passes bytes on until a string is too long for what it may be.
struct Guarded<R> {
    reader: R,
    since_quote: usize,
    escaped: bool,
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.reader.read(buffer)?;
        for &byte in &buffer[..bytes] {
            if byte == b'"' && !self.escaped {
                self.since_quote = 0;
            } else {
                self.since_quote += 1;
            }
            self.escaped = byte == b'\\' && !self.escaped;
            if self.since_quote > TEXT_BYTES_MAX {
                return Err(Error::new(ErrorKind::InvalidData, "a string or a gap is too long"));
            }
        }
        Ok(bytes)
    }
}
