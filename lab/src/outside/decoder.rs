//! Frames among the bytes of a line, as many as were read at once.

use std::collections::VecDeque;

use super::frame::{BYTES, HEAD, LinkEvent, MAGIC, VERSION, parse};

/// The most bytes that a line keeps that are no frame yet.
const KEPT: usize = 4_096;

/// Frames from the bytes of a line, which begin and end anywhere.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    bytes: VecDeque<u8>,
    /// True while the bytes that come belong to foreign ones that were counted.
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
    pub(super) fn next(&mut self) -> Option<LinkEvent> {
        loop {
            let bytes = self.bytes.make_contiguous();
            let begins = |rest: &[u8]| rest.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic);
            let skipped = (0..bytes.len()).find(|&at| begins(&bytes[at..])).unwrap_or(bytes.len());
            self.bytes.drain(..skipped);
            if skipped > 0 && !std::mem::replace(&mut self.foreign, true) {
                return Some(LinkEvent::Foreign);
            }
            let bytes = self.bytes.make_contiguous();
            if bytes.len() < HEAD || (bytes[4] == VERSION && bytes.len() < BYTES) {
                return None;
            }
            let received = parse(&bytes[..bytes.len().min(BYTES)]);
            let took = match received {
                LinkEvent::Frame(_) => BYTES,
                LinkEvent::WrongVersion { .. } => HEAD,
                LinkEvent::Foreign => 1,
            };
            self.bytes.drain(..took);
            let was_foreign = self.foreign;
            self.foreign = !matches!(received, LinkEvent::Frame(_));
            if received != LinkEvent::Foreign || !was_foreign {
                return Some(received);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{Frame, FrameKind};
    use super::*;

    const STIMULUS: Frame =
        Frame { kind: FrameKind::Stimulus, session: 0x1234_5678_9abc, number: 77 };

    fn events(decoder: &mut Decoder) -> Vec<LinkEvent> {
        std::iter::from_fn(|| decoder.next()).collect()
    }

    #[test]
    fn a_line_finds_frames_among_foreign_bytes_wherever_they_are_cut() {
        let frame = STIMULUS.to_bytes();
        let mut changed = frame;
        changed[4] = 2;
        let stream = [&frame[..], b"login: PN", &frame, &frame[..20], &frame, &changed, &frame];
        let stream = stream.concat();
        let expected = [
            LinkEvent::Frame(STIMULUS),
            LinkEvent::Foreign,
            LinkEvent::Frame(STIMULUS),
            LinkEvent::Foreign,
            LinkEvent::Frame(STIMULUS),
            LinkEvent::WrongVersion { version: 2, hello: false },
            LinkEvent::Frame(STIMULUS),
        ];
        for size in 1..stream.len() {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for part in stream.chunks(size) {
                decoder.push(part);
                found.extend(events(&mut decoder));
            }
            assert_eq!(found, expected, "in parts of {size}");
        }
    }

    #[test]
    fn foreign_bytes_without_end_are_one_event_and_little_memory() {
        let mut decoder = Decoder::default();
        decoder.push(&vec![b'x'; 1 << 20]);
        assert_eq!(events(&mut decoder), [LinkEvent::Foreign]);
        decoder.push(b"yyyyPNC");
        assert_eq!((events(&mut decoder), decoder.bytes.len()), (vec![], 3));
    }
}
