//! The frames between the one who stimulates and the one who responds: version, session, number.
//!
//! Pure, and of core alone: the firmware in `stimulator/` compiles this file. The first six bytes
//! are the same in all versions: "PNCT", the version, the kind.

/// The version of this protocol.
pub const VERSION: u8 = 1;
/// Bytes of a frame.
pub const BYTES: usize = 28;
/// The first bytes of a frame of any version.
pub const MAGIC: [u8; 4] = *b"PNCT";
/// The bytes that tell the version and the kind.
pub const HEAD: usize = 6;

/// The kind of a frame.
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
    /// The answer to another version: its head alone, which all versions read, so that it is never
    /// larger than what it answers.
    Refusal = 5,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its kind.
    pub kind: FrameKind,
    /// The session that it belongs to.
    pub session: u64,
    /// From 1 on; 0 where it is no stimulus and no answer.
    pub number: u64,
}

/// An arrival over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A frame of this version.
    Frame(Frame),
    /// One of another version.
    WrongVersion {
        /// The other version.
        version: u8,
        /// True where it opens a session.
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
    /// Number of its bytes that are sent.
    pub fn length(self) -> usize {
        if self.kind == FrameKind::Refusal { HEAD } else { BYTES }
    }

    /// Its bytes; [`length`](Self::length) of them are sent.
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
}

/// Reads one datagram; anything but one whole frame is foreign.
pub fn parse(bytes: &[u8]) -> LinkEvent {
    let kinds = [
        FrameKind::Hello,
        FrameKind::Welcome,
        FrameKind::Stimulus,
        FrameKind::Answer,
        FrameKind::Refusal,
    ];
    let kind = |byte: u8| kinds.into_iter().find(|kind| *kind as u8 == byte);
    if bytes.len() < HEAD || bytes[..4] != MAGIC {
        return LinkEvent::Foreign;
    }
    if bytes[4] != VERSION {
        let hello = bytes[5] == FrameKind::Hello as u8;
        return LinkEvent::WrongVersion { version: bytes[4], hello };
    }
    if bytes.len() != BYTES || number(&bytes[24..]) != u64::from(check(&bytes[..24])) {
        return LinkEvent::Foreign;
    }
    kind(bytes[5]).map_or(LinkEvent::Foreign, |kind| {
        let (session, number) = (number(&bytes[8..16]), number(&bytes[16..24]));
        LinkEvent::Frame(Frame { kind, session, number })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STIMULUS: Frame =
        Frame { kind: FrameKind::Stimulus, session: 0x1234_5678_9abc, number: 77 };

    #[test]
    fn a_frame_is_read_back_and_a_damaged_one_is_foreign() {
        let bytes = STIMULUS.to_bytes();
        assert_eq!(parse(&bytes), LinkEvent::Frame(STIMULUS));
        for at in 0..BYTES {
            let mut damaged = bytes;
            damaged[at] ^= 0x10;
            match parse(&damaged) {
                LinkEvent::WrongVersion { version, hello } => {
                    assert_eq!((at, version, hello), (4, 0x11, false));
                }
                event => assert_eq!(event, LinkEvent::Foreign, "byte {at}"),
            }
        }
        for cut in 0..BYTES {
            assert_eq!(parse(&bytes[..cut]), LinkEvent::Foreign);
        }
        let mut longer = [0; BYTES + 1];
        longer[..BYTES].copy_from_slice(&bytes);
        assert_eq!(parse(&longer), LinkEvent::Foreign);
        let mut hello = Frame { kind: FrameKind::Hello, ..STIMULUS }.to_bytes();
        hello[4] = 9;
        assert_eq!(parse(&hello[..HEAD]), LinkEvent::WrongVersion { version: 9, hello: true });
    }
}
