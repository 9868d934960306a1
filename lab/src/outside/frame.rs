//! The frames between the one who stimulates and the one who responds: version, session, number.
//!
//! Pure. The first six bytes are the same in all versions: "PNCT", the version, the kind.

use std::collections::VecDeque;

/// The version of this protocol.
pub const VERSION: u8 = 1;
/// Bytes of a frame.
const BYTES: usize = 28;
const MAGIC: [u8; 4] = *b"PNCT";
/// The part that tells the version and the kind.
const HEAD: usize = 6;
/// What a line keeps at most of bytes that are no frame yet.
const KEPT: usize = 4_096;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Opens a session.
    Hello = 1,
    /// The answer to that.
    Welcome = 2,
    /// A stimulus.
    Stimulus = 3,
    /// The answer to that.
    Answer = 4,
    /// The answer to another version: its head alone, which all versions read, so that it is never
    /// larger than what it answers.
    Refusal = 5,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) session: u64,
    /// From 1 on; 0 where it is no stimulus and no answer.
    pub(super) number: u64,
}

/// What came over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Frame(Frame),
    /// One of another version, and whether it opens a session.
    WrongVersion {
        version: u8,
        hello: bool,
    },
    /// No frame: bytes of something else, or damaged ones.
    Foreign,
}

/// FNV-1a, 32 bits: a damaged byte on a line is no answer.
fn check(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

impl Frame {
    /// How many of its bytes are sent.
    pub(super) fn length(self) -> usize {
        if self.kind == Kind::Refusal { HEAD } else { BYTES }
    }

    pub(super) fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = VERSION;
        bytes[5] = self.kind as u8;
        bytes[8..16].copy_from_slice(&self.session.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        let sum = check(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

/// What one datagram is.
pub(super) fn parse(bytes: &[u8]) -> Received {
    let kinds = [Kind::Hello, Kind::Welcome, Kind::Stimulus, Kind::Answer, Kind::Refusal];
    let kind = |byte: u8| kinds.into_iter().find(|kind| *kind as u8 == byte);
    if bytes.len() < HEAD || bytes[..4] != MAGIC {
        return Received::Foreign;
    }
    if bytes[4] != VERSION {
        let hello = bytes[5] == Kind::Hello as u8;
        return Received::WrongVersion { version: bytes[4], hello };
    }
    if bytes.len() != BYTES || number(&bytes[24..]) != u64::from(check(&bytes[..24])) {
        return Received::Foreign;
    }
    kind(bytes[5]).map_or(Received::Foreign, |kind| {
        let (session, number) = (number(&bytes[8..16]), number(&bytes[16..24]));
        Received::Frame(Frame { kind, session, number })
    })
}

/// Frames from the bytes of a line, which begin and end anywhere.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    bytes: VecDeque<u8>,
    /// Whether what comes now belongs to foreign bytes that were counted.
    foreign: bool,
}

impl Decoder {
    /// Takes in what was read; beyond a few thousand bytes the oldest are given up.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..over);
    }

    /// The next frame or run of foreign bytes; `None` until more is read.
    pub(super) fn next(&mut self) -> Option<Received> {
        loop {
            let bytes = self.bytes.make_contiguous();
            let begins = |rest: &[u8]| rest.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic);
            let skipped = (0..bytes.len()).find(|&at| begins(&bytes[at..])).unwrap_or(bytes.len());
            self.bytes.drain(..skipped);
            if skipped > 0 && !std::mem::replace(&mut self.foreign, true) {
                return Some(Received::Foreign);
            }
            let bytes = self.bytes.make_contiguous();
            if bytes.len() < HEAD || (bytes[4] == VERSION && bytes.len() < BYTES) {
                return None;
            }
            let received = parse(&bytes[..bytes.len().min(BYTES)]);
            let took = match received {
                Received::Frame(_) => BYTES,
                Received::WrongVersion { .. } => HEAD,
                Received::Foreign => 1,
            };
            self.bytes.drain(..took);
            let was_foreign = self.foreign;
            self.foreign = !matches!(received, Received::Frame(_));
            if received != Received::Foreign || !was_foreign {
                return Some(received);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STIMULUS: Frame = Frame { kind: Kind::Stimulus, session: 0x1234_5678_9abc, number: 77 };

    fn all(decoder: &mut Decoder) -> Vec<Received> {
        std::iter::from_fn(|| decoder.next()).collect()
    }

    #[test]
    fn a_frame_is_read_back_and_a_damaged_one_is_foreign() {
        let bytes = STIMULUS.to_bytes();
        assert_eq!(parse(&bytes), Received::Frame(STIMULUS));
        for at in 0..BYTES {
            let mut damaged = bytes;
            damaged[at] ^= 0x10;
            match parse(&damaged) {
                Received::WrongVersion { version, hello } => {
                    assert_eq!((at, version, hello), (4, 0x11, false));
                }
                other => assert_eq!(other, Received::Foreign, "byte {at}"),
            }
        }
        for cut in 0..BYTES {
            assert_eq!(parse(&bytes[..cut]), Received::Foreign);
        }
        assert_eq!(parse(&[&bytes[..], &[0]].concat()), Received::Foreign);
        let mut hello = Frame { kind: Kind::Hello, ..STIMULUS }.to_bytes();
        hello[4] = 9;
        assert_eq!(parse(&hello[..HEAD]), Received::WrongVersion { version: 9, hello: true });
    }

    #[test]
    fn a_line_finds_frames_among_foreign_bytes_wherever_they_are_cut() {
        let frame = STIMULUS.to_bytes();
        let mut changed = frame;
        changed[4] = 2;
        let stream = [&frame[..], b"login: PN", &frame, &frame[..20], &frame, &changed, &frame];
        let stream = stream.concat();
        let expected = [
            Received::Frame(STIMULUS),
            Received::Foreign,
            Received::Frame(STIMULUS),
            Received::Foreign,
            Received::Frame(STIMULUS),
            Received::WrongVersion { version: 2, hello: false },
            Received::Frame(STIMULUS),
        ];
        for size in 1..stream.len() {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for part in stream.chunks(size) {
                decoder.push(part);
                found.extend(all(&mut decoder));
            }
            assert_eq!(found, expected, "in parts of {size}");
        }
    }

    #[test]
    fn foreign_bytes_without_end_are_one_event_and_little_memory() {
        let mut decoder = Decoder::default();
        decoder.push(&vec![b'x'; 1 << 20]);
        assert_eq!(all(&mut decoder), [Received::Foreign]);
        decoder.push(b"yyyyPNC");
        assert_eq!((all(&mut decoder), decoder.bytes.len()), (vec![], 3));
    }
}
