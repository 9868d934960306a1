//! The frames between the one who stimulates and the one who responds: version, session, number.

/// The version of the protocol.
pub const VERSION: u8 = 1;
/// Bytes of a frame.
pub const BYTES: usize = 28;

const MAGIC: [u8; 4] = *b"PNCT";
/// The part that tells the version and the kind.
const HEAD: usize = 6;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Opens a session.
    Hello = 1,
    /// The answer to that.
    Welcome = 2,
    /// A stimulus.
    Stimulus = 3,
    /// The answer to that.
    Answer = 4,
    /// The answer to another version.
    Refusal = 5,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: FrameKind,
    /// The session that it belongs to.
    pub session: u64,
    /// From 1 on; 0 where it is no stimulus and no answer.
    pub number: u64,
}

/// What came over the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEvent {
    /// A frame of this version.
    Frame(Frame),
    /// One of another version.
    WrongVersion(u8),
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
    /// Its bytes, as they are sent.
    pub fn to_bytes(self) -> [u8; BYTES] {
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

    /// A frame of its bytes, which begin as one of this version does.
    fn parse(bytes: &[u8; BYTES]) -> Option<Self> {
        let kinds = [
            FrameKind::Hello,
            FrameKind::Welcome,
            FrameKind::Stimulus,
            FrameKind::Answer,
            FrameKind::Refusal,
        ];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == bytes[5])?;
        if number(&bytes[24..]) != u64::from(check(&bytes[..24])) {
            return None;
        }
        Some(Self { kind, session: number(&bytes[8..16]), number: number(&bytes[16..24]) })
    }
}

/// Frames from the bytes of a line, which begin and end anywhere; holds one frame at most.
///
/// After each byte that is pushed, ask for what came until there is nothing more.
#[derive(Debug, Default)]
pub struct LineDecoder {
    bytes: [u8; BYTES],
    held: usize,
    /// Whether what comes now belongs to foreign bytes that were counted.
    foreign: bool,
}

impl LineDecoder {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { bytes: [0; BYTES], held: 0, foreign: false }
    }

    /// Takes in a byte. Where there is no room, because nobody asked, the oldest is given up.
    pub fn push(&mut self, byte: u8) {
        if self.held == BYTES {
            self.drop_first(1);
        }
        self.bytes[self.held] = byte;
        self.held += 1;
    }

    /// The next frame or run of foreign bytes; `None` until more is pushed.
    pub fn take(&mut self) -> Option<LineEvent> {
        loop {
            let held = &self.bytes[..self.held];
            let begins = |rest: &[u8]| rest.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic);
            let skipped = (0..held.len()).find(|&at| begins(&held[at..])).unwrap_or(held.len());
            self.drop_first(skipped);
            if skipped > 0 && !core::mem::replace(&mut self.foreign, true) {
                return Some(LineEvent::Foreign);
            }
            let is_own = self.bytes[4] == VERSION;
            if self.held < HEAD || (is_own && self.held < BYTES) {
                return None;
            }
            let (received, took) = match is_own {
                false => (LineEvent::WrongVersion(self.bytes[4]), HEAD),
                true => match Frame::parse(&self.bytes) {
                    Some(frame) => (LineEvent::Frame(frame), BYTES),
                    None => (LineEvent::Foreign, 1),
                },
            };
            self.drop_first(took);
            let was_foreign = self.foreign;
            self.foreign = !matches!(received, LineEvent::Frame(_));
            if received != LineEvent::Foreign || !was_foreign {
                return Some(received);
            }
        }
    }

    fn drop_first(&mut self, count: usize) {
        self.bytes.copy_within(count..self.held, 0);
        self.held -= count;
    }
}
