//! The layout of a sample file: a header, then blocks, each with its checksum.
//!
//! For the drain that writes such files and the analysis that reads them; this is the only
//! description of the layout. Turns headers into bytes and back; computes no checksum (its callers
//! do), opens no file.
//!
//! All numbers are little-endian.
//!
//! ```text
//! file    = file header, JSON text (what was run, `json_bytes` long), block*
//! file header, 24 bytes: "PUNCTUAL", version u32, json_bytes u32, crc32 of the JSON u32, 0 u32
//! block   = block header, payload (`samples` × 16 bytes, see `sample`)
//! block header, 48 bytes: "pblk", kind u32, run u32, samples u32, first u64, missed u64,
//!                         unrecorded u64, crc32 of the payload u32, crc32 of all before it u32
//! ```
//! A file whose last block is of kind [`BlockKind::End`] is complete; any other was cut off.

use crate::sample::SAMPLE_BYTES;

/// The first eight bytes of every sample file.
pub const FILE_MAGIC: [u8; 8] = *b"PUNCTUAL";
/// The version of the layout that this code writes, and the only one that it reads.
pub const FILE_VERSION: u32 = 1;
/// Bytes of the file header, before the JSON text.
pub const FILE_HEADER_BYTES: usize = 24;
/// The longest JSON text that a reader accepts: larger is damage.
pub const JSON_BYTES_MAX: u32 = 1 << 24;
/// The first four bytes of every block.
pub const BLOCK_MAGIC: [u8; 4] = *b"pblk";
/// Bytes of a block header.
pub const BLOCK_HEADER_BYTES: usize = 48;
/// The most samples in a block: 16 MiB of payload.
pub const BLOCK_SAMPLES_MAX: u32 = 1 << 20;

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Samples of one run, and that run's counters up to then.
    Data,
    /// No samples: the file is complete; `run` is 0 where the recording ran for all its time, 1
    /// where it was ended early.
    End,
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// Its kind.
    pub kind: BlockKind,
    /// The number of its run in the file, counted from 0 in the order of the JSON text.
    pub run: u32,
    /// Samples in the payload, in [0, `BLOCK_SAMPLES_MAX`].
    pub samples: u32,
    /// Samples of this run in the blocks before this one.
    pub first: u64,
    /// Releases of this run that never ran, up to the end of this block.
    pub missed: u64,
    /// Samples of this run that did not fit in the ring, up to the end of this block.
    pub unrecorded: u64,
    /// CRC-32 (IEEE) of the payload.
    pub payload_crc: u32,
}

impl BlockHeader {
    /// Bytes of the payload that follows.
    ///
    /// # Real-time: reader side
    pub const fn payload_bytes(&self) -> usize {
        self.samples as usize * SAMPLE_BYTES
    }

    /// The header as bytes; `crc32` computes the checksum of the bytes it is given.
    ///
    /// # Real-time: reader side
    pub fn to_bytes(&self, crc32: impl Fn(&[u8]) -> u32) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        let kind: u32 = match self.kind {
            BlockKind::Data => 0,
            BlockKind::End => 1,
        };
        bytes[..4].copy_from_slice(&BLOCK_MAGIC);
        bytes[4..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.run.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.samples.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.missed.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.unrecorded.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32(&bytes[..44]);
        bytes[44..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header in `bytes`; `None` when it is damaged in any way.
    ///
    /// # Real-time: reader side
    pub fn from_bytes(
        bytes: &[u8; BLOCK_HEADER_BYTES],
        crc32: impl Fn(&[u8]) -> u32,
    ) -> Option<Self> {
        if bytes[..4] != BLOCK_MAGIC || word32(bytes, 44) != crc32(&bytes[..44]) {
            return None;
        }
        let header = Self {
            kind: match word32(bytes, 4) {
                0 => BlockKind::Data,
                1 => BlockKind::End,
                _ => return None,
            },
            run: word32(bytes, 8),
            samples: word32(bytes, 12),
            first: word64(bytes, 16),
            missed: word64(bytes, 24),
            unrecorded: word64(bytes, 32),
            payload_crc: word32(bytes, 40),
        };
        (header.samples <= BLOCK_SAMPLES_MAX).then_some(header)
    }
}

/// The header of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The version of the layout.
    pub version: u32,
    /// Bytes of the JSON text that follows.
    pub json_bytes: u32,
    /// CRC-32 (IEEE) of the JSON text.
    pub json_crc: u32,
}

impl FileHeader {
    /// The header as bytes.
    ///
    /// # Real-time: setup only
    pub fn to_bytes(&self) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..8].copy_from_slice(&FILE_MAGIC);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.json_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.json_crc.to_le_bytes());
        bytes
    }

    /// The header in `bytes`; `None` when this is not a sample file. The version is not checked
    /// here, so that a newer file and a foreign one are different errors.
    ///
    /// # Real-time: reader side
    pub fn from_bytes(bytes: &[u8; FILE_HEADER_BYTES]) -> Option<Self> {
        (bytes[..8] == FILE_MAGIC).then(|| Self {
            version: word32(bytes, 8),
            json_bytes: word32(bytes, 12),
            json_crc: word32(bytes, 16),
        })
    }
}

fn word32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn word64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bytes: &[u8]) -> u32 {
        bytes.iter().fold(7, |sum, &byte| sum.rotate_left(5) ^ u32::from(byte))
    }

    #[test]
    fn a_block_header_survives_and_any_flipped_bit_is_seen() {
        let header = BlockHeader {
            kind: BlockKind::Data,
            run: 3,
            samples: 250,
            first: 1_000,
            missed: 2,
            unrecorded: 1,
            payload_crc: 0xdead_beef,
        };
        let bytes = header.to_bytes(sum);
        assert_eq!(BlockHeader::from_bytes(&bytes, sum), Some(header));
        for bit in 0..BLOCK_HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BlockHeader::from_bytes(&damaged, sum), None, "bit {bit}");
        }
    }

    #[test]
    fn a_file_header_survives_and_a_foreign_file_is_told() {
        let header = FileHeader { version: FILE_VERSION, json_bytes: 9, json_crc: 5 };
        assert_eq!(FileHeader::from_bytes(&header.to_bytes()), Some(header));
        assert_eq!(FileHeader::from_bytes(&[b'x'; FILE_HEADER_BYTES]), None);
    }
}
