//! Places of a frame at which a task elsewhere is released, where its releases do not come evenly.
//!
//! For units of a calendar that run in a process of their own. Plain numbers in a fixed room, so
//! that both ends of a block have them as values that nobody changes; reads no clock.

use crate::releases::Releases;
use crate::time::Instant;

/// The most places of one task in a frame: each takes a word of its block.
pub const PLACES_MAX: usize = 64;

/// The places of a task's releases in a frame that comes round for ever; none where they come
/// evenly.
///
/// Beside an even [`Releases`] of as many releases a frame, of which number 0 is the first place of
/// frame 0: its number `k·n` is the first place of frame k, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    count: usize,
    /// From the first place of the frame, ns; grows.
    offsets_ns: [u64; PLACES_MAX],
}

impl Default for Places {
    fn default() -> Self {
        Self::EVEN
    }
}

impl Places {
    /// Releases come evenly.
    pub const EVEN: Self = Self { count: 0, offsets_ns: [0; PLACES_MAX] };

    /// Places at these distances from the first of them, ns: it is 0, and each lies after the one
    /// before and within the frame, which is as many periods of `releases` as there are places.
    /// `None` otherwise, and where there are more than [`PLACES_MAX`] of them.
    ///
    /// # Real-time: setup only
    pub fn new(releases: &Releases, offsets_ns: &[u64]) -> Option<Self> {
        let mut places = Self { count: offsets_ns.len(), ..Self::EVEN };
        places.offsets_ns.get_mut(..offsets_ns.len())?.copy_from_slice(offsets_ns);
        let frame_ns = releases.period().offset_ns(offsets_ns.len() as u64);
        let grows = offsets_ns.windows(2).all(|pair| pair[0] < pair[1]);
        let is_within = offsets_ns.last().is_none_or(|last_ns| *last_ns < frame_ns);
        let begins = offsets_ns.first().is_none_or(|first_ns| *first_ns == 0);
        (grows && is_within && begins).then_some(places)
    }

    /// Their distances from the first one, ns; empty where releases come evenly.
    ///
    /// # Real-time: in loop
    pub fn offsets_ns(&self) -> &[u64] {
        &self.offsets_ns[..self.count]
    }

    /// The number of the place of cycle `k` in its frame; 0 where releases come evenly.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn place(&self, k: u64) -> usize {
        if self.count == 0 { 0 } else { (k % self.count as u64) as usize }
    }

    /// The instant at which cycle `k` is due.
    #[inline]
    pub(super) fn release(&self, releases: &Releases, k: u64) -> Instant {
        if self.count == 0 {
            return releases.release(k);
        }
        let place = self.place(k);
        let first = releases.release(k - place as u64);
        Instant::from_ns(first.as_ns().saturating_add(self.offsets_ns[place]))
    }

    /// The count of releases up to `now`, one at `now` included.
    #[inline]
    pub(super) fn released(&self, releases: &Releases, now: Instant) -> u64 {
        let evenly = releases.released(now);
        if self.count == 0 || evenly == 0 {
            return evenly;
        }
        let newest = evenly - 1;
        let first = newest - self.place(newest) as u64;
        let since_ns = now.as_ns().saturating_sub(releases.release(first).as_ns());
        let passed = self.offsets_ns().iter().filter(|offset_ns| **offset_ns <= since_ns).count();
        first + passed as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Period;

    /// Three places in frames of 10 ns that begin at 100.
    fn three() -> (Releases, Places) {
        let period = Period::ratio(10, 3).expect("in range");
        let releases = Releases::new(Instant::from_ns(100), period);
        (releases, Places::new(&releases, &[0, 1, 8]).expect("in order"))
    }

    #[test]
    fn each_release_is_at_its_place_and_counted_from_then_on() {
        let (releases, places) = three();
        let due_ns: [u64; 7] = [100, 101, 108, 110, 111, 118, 120];
        for (k, due_ns) in (0..).zip(due_ns) {
            assert_eq!(places.release(&releases, k).as_ns(), due_ns);
        }
        for now_ns in 90..=120 {
            let counted = due_ns.iter().filter(|due_ns| **due_ns <= now_ns).count() as u64;
            assert_eq!(places.released(&releases, Instant::from_ns(now_ns)), counted, "{now_ns}");
        }
        // A billion frames on it is as exact.
        let far = 3_000_000_000;
        assert_eq!(places.release(&releases, far + 2).as_ns(), 100 + 10_000_000_000 + 8);
    }

    #[test]
    fn without_places_releases_come_evenly() {
        let (releases, _) = three();
        for k in 0..9 {
            assert_eq!(Places::EVEN.release(&releases, k), releases.release(k));
        }
        for now_ns in 95..130 {
            let now = Instant::from_ns(now_ns);
            assert_eq!(Places::EVEN.released(&releases, now), releases.released(now));
        }
        assert_eq!((Places::EVEN.place(7), Places::EVEN.offsets_ns().len()), (0, 0));
    }

    #[test]
    fn what_is_no_order_within_a_frame_is_refused() {
        let (releases, _) = three();
        for offsets_ns in [&[0, 0, 8][..], &[0, 8, 1], &[1, 2, 3], &[0, 1, 10]] {
            assert_eq!(Places::new(&releases, offsets_ns), None, "{offsets_ns:?}");
        }
        assert_eq!(Places::new(&releases, &[0; PLACES_MAX + 1]), None);
    }
}
