//! The decoder of the board held against the host's, whose own source file is compiled here.

use decoder::Decoder;
use frame::{Frame, FrameKind, LinkEvent};
use punctual_stimulator_protocol::frame;
use punctual_stimulator_protocol::line::LineDecoder;

/// The host's own file, which finds the frames beside it.
#[path = "../../../lab/src/outside/decoder.rs"]
mod decoder;

const KINDS: [FrameKind; 5] = [
    FrameKind::Hello,
    FrameKind::Welcome,
    FrameKind::Stimulus,
    FrameKind::Answer,
    FrameKind::Refusal,
];

/// Numbers that look random, always the same ones.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % most
    }
}

#[test]
fn both_read_the_same_of_lines_that_are_cut_damaged_and_full_of_other_things() {
    let mut random = Random(11);
    let mut frames = 0;
    for _ in 0..500 {
        let mut line = Vec::new();
        for _ in 0..random.below(12) {
            let kind = KINDS[random.below(5) as usize];
            let (session, number) = (random.below(1 << 30), random.below(1_000));
            let frame = Frame { kind, session, number };
            let mut frame = frame.to_bytes()[..frame.length()].to_vec();
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
        let (mut own, mut host) = (LineDecoder::new(), Decoder::default());
        for byte in &line {
            own.push(*byte);
            host.push(&[*byte]);
            loop {
                let received = own.take();
                assert_eq!(received, host.next(), "{line:?}");
                frames += usize::from(matches!(received, Some(LinkEvent::Frame(_))));
                if received.is_none() {
                    break;
                }
            }
        }
    }
    assert!(frames > 500, "{frames} frames are enough to tell");
}
