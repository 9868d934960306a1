//! Frames among the bytes of a line, one byte after the other, in the room of one frame.

use crate::frame::{BYTES, HEAD, LinkEvent, MAGIC, VERSION, parse};

/// Frames from the bytes of a line, which begin and end anywhere; holds one frame at most.
///
/// After each byte that is pushed, ask for what came until there is nothing more.
#[derive(Debug, Default)]
pub struct LineDecoder {
    bytes: [u8; BYTES],
    held: usize,
    /// True while the bytes that come belong to foreign ones that were counted.
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
    pub fn take(&mut self) -> Option<LinkEvent> {
        loop {
            let held = &self.bytes[..self.held];
            let begins = |rest: &[u8]| rest.iter().zip(&MAGIC).all(|(byte, magic)| byte == magic);
            let skipped = (0..held.len()).find(|&at| begins(&held[at..])).unwrap_or(held.len());
            self.drop_first(skipped);
            if skipped > 0 && !core::mem::replace(&mut self.foreign, true) {
                return Some(LinkEvent::Foreign);
            }
            let is_own = self.bytes[4] == VERSION;
            if self.held < HEAD || (is_own && self.held < BYTES) {
                return None;
            }
            let received = parse(&self.bytes[..self.held]);
            let took = match received {
                LinkEvent::Frame(_) => BYTES,
                LinkEvent::WrongVersion { .. } => HEAD,
                LinkEvent::Foreign => 1,
            };
            self.drop_first(took);
            let was_foreign = self.foreign;
            self.foreign = !matches!(received, LinkEvent::Frame(_));
            if received != LinkEvent::Foreign || !was_foreign {
                return Some(received);
            }
        }
    }

    fn drop_first(&mut self, count: usize) {
        self.bytes.copy_within(count..self.held, 0);
        self.held -= count;
    }
}
