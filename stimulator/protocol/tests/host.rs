//! The frames of the board held against those of the host, whose own source file is compiled here.

use punctual_stimulator_protocol::frame::{
    BYTES, Frame, FrameKind, LineDecoder, LineEvent, VERSION,
};

/// The host's own file.
#[allow(unreachable_pub, reason = "there it is part of a crate")]
#[path = "../../../lab/src/outside/frame.rs"]
mod frame;

/// What the host writes and reads.
mod outside {
    use super::frame::{Decoder, Frame, Kind, Received};

    pub(super) use super::frame::VERSION;

    /// A frame as the host writes it, by the number of its kind.
    pub(super) fn written(kind: u8, session: u64, number: u64) -> Vec<u8> {
        let kinds = [Kind::Hello, Kind::Welcome, Kind::Stimulus, Kind::Answer, Kind::Refusal];
        let kind = kinds.into_iter().find(|known| *known as u8 == kind).expect("a kind");
        let frame = Frame { kind, session, number };
        frame.to_bytes()[..frame.length()].to_vec()
    }

    /// What the host reads of a line, in words.
    pub(super) fn read(bytes: &[u8]) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut found = Vec::new();
        for byte in bytes {
            decoder.push(&[*byte]);
            while let Some(received) = decoder.next() {
                found.push(match received {
                    Received::Frame(Frame { kind, session, number }) => {
                        format!("{} {session} {number}", kind as u8)
                    }
                    Received::WrongVersion { version, .. } => format!("version {version}"),
                    Received::Foreign => "foreign".to_owned(),
                });
            }
        }
        found
    }
}

const KINDS: [FrameKind; 5] = [
    FrameKind::Hello,
    FrameKind::Welcome,
    FrameKind::Stimulus,
    FrameKind::Answer,
    FrameKind::Refusal,
];

/// What the board reads of a line, in the same words.
fn read(bytes: &[u8]) -> Vec<String> {
    let mut decoder = LineDecoder::new();
    let mut found = Vec::new();
    for byte in bytes {
        decoder.push(*byte);
        while let Some(received) = decoder.take() {
            found.push(match received {
                LineEvent::Frame(Frame { kind, session, number }) => {
                    format!("{} {session} {number}", kind as u8)
                }
                LineEvent::WrongVersion(version) => format!("version {version}"),
                LineEvent::Foreign => "foreign".to_owned(),
            });
        }
    }
    found
}

/// Numbers that look random, always the same ones.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % most
    }
}

#[test]
fn both_write_the_same_bytes() {
    assert_eq!(VERSION, outside::VERSION);
    for kind in KINDS {
        for (session, number) in [(0, 0), (7, 1), (u64::MAX, u64::MAX), (0x1234_5678_9abc, 77)] {
            let own = Frame { kind, session, number }.to_bytes();
            let host = outside::written(kind as u8, session, number);
            assert_eq!(own[..host.len()], host, "{kind:?}");
            assert!(host.len() == BYTES || kind == FrameKind::Refusal);
        }
    }
}

#[test]
fn both_read_the_same_of_lines_that_are_cut_damaged_and_full_of_other_things() {
    let mut random = Random(11);
    let mut frames = 0;
    for _ in 0..500 {
        let mut line = Vec::new();
        for _ in 0..random.below(12) {
            let kind = KINDS[random.below(5) as usize] as u8;
            let mut frame = outside::written(kind, random.below(1 << 30), random.below(1_000));
            match random.below(6) {
                0 => frame.truncate(random.below(frame.len() as u64) as usize),
                1 => {
                    let at = random.below(frame.len() as u64) as usize;
                    frame[at] ^= 1 << random.below(8);
                }
                2 => frame.extend(b"PNCTlogin: PN"),
                3 => frame.splice(0..0, b"PPNPNC".iter().copied()).for_each(drop),
                _ => {}
            }
            line.extend(frame);
        }
        let own = read(&line);
        assert_eq!(own, outside::read(&line), "{line:?}");
        frames += own.iter().filter(|word| word.contains(' ') && !word.contains('v')).count();
    }
    assert!(frames > 500, "{frames} frames are enough to tell");
}
