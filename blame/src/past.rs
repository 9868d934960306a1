//! A followed thread's own past: pieces that follow each other without a gap, each with what the
//! thread did and what its CPU did.
//!
//! Of fixed size. A piece that is pushed out while a release waits for its thread is added up by
//! label, so that a wait of any length keeps its exact sum.

use std::collections::VecDeque;

use crate::timeline::Activity;
use punctual_trace::event::TaskName;

/// What the thread does in a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WakePhase {
    /// It sleeps, its release has passed: the CPU is that of its timer or interrupt.
    Delivery,
    /// It is ready: the CPU is the one that it waits for.
    Ready,
    /// It runs.
    Running,
    /// A signal stopped it.
    Stopped,
    /// It sleeps, and its release was not due or not programmed; or waits for the kernel.
    Waiting {
        /// In a sleep that no signal ends.
        is_blocked: bool,
        /// The number of the system call that it sleeps in, where that was recorded.
        call: Option<u32>,
    },
    /// Not known.
    Unseen,
}

/// A stretch of a thread's past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) phase: WakePhase,
    pub(crate) activity: Activity,
    pub(crate) cpu: u32,
    /// The number of the call chain that came with its begin, in the ring of that CPU.
    pub(crate) chain: Option<u64>,
    /// Whether its end is not sure: a switch was not recorded.
    pub(crate) is_hole: bool,
    /// Whether it lies before the first event of its CPU.
    pub(crate) is_inferred: bool,
    /// Whether the scheduler chose a lower thread although this one was ready.
    pub(crate) is_passed_over: bool,
    /// Whether no event has ended it yet: what follows under the same label belongs to it.
    pub(crate) is_open: bool,
}

impl Piece {
    pub(crate) const fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Whether another one differs in nothing but its times.
    fn is_like(&self, next: &Self) -> bool {
        (self.phase, self.cpu, self.is_passed_over, self.is_inferred)
            == (next.phase, next.cpu, next.is_passed_over, next.is_inferred)
            && self.activity == next.activity
    }
}

/// Labels of pushed-out pieces that are added up apart; further ones are one stretch of which
/// nothing is known.
const FOLDED: usize = 64;

/// The pieces.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pieces: VecDeque<Piece>,
    capacity: usize,
    /// Sums of what was pushed out since `folded_from_ns`.
    folded: Vec<Piece>,
    folded_from_ns: Option<u64>,
    settled_ns: u64,
    condensed: u64,
}

/// A wait cut out of the past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// Without gaps, from the release to the end.
    pub(crate) pieces: Vec<Piece>,
    /// Whether its begin was added up by label, so that the order is lost.
    pub(crate) is_condensed: bool,
    /// What the CPU of the first piece did right before the release.
    pub(crate) lead: Option<Activity>,
}

impl Past {
    pub(crate) fn new(at_ns: u64, capacity: usize) -> Self {
        Self {
            pieces: VecDeque::new(),
            capacity: capacity.max(2),
            folded: Vec::new(),
            folded_from_ns: None,
            settled_ns: at_ns,
            condensed: 0,
        }
    }

    /// Up to when it is complete, ns.
    pub(crate) const fn settled_ns(&self) -> u64 {
        self.settled_ns
    }

    /// Adds a piece that begins where the last one ended; one without length is left out.
    pub(crate) fn append(&mut self, piece: Piece, release_ns: Option<u64>) {
        debug_assert_eq!(piece.from_ns, self.settled_ns);
        if piece.to_ns <= piece.from_ns {
            return;
        }
        self.settled_ns = piece.to_ns;
        if let Some(last) = self.pieces.back_mut() {
            if last.is_open && last.is_like(&piece) {
                last.to_ns = piece.to_ns;
                last.is_hole |= piece.is_hole;
                last.chain = last.chain.or(piece.chain);
                last.is_open = piece.is_open;
                return;
            }
            last.is_open = false;
        }
        if self.pieces.len() == self.capacity
            && let Some(oldest) = self.pieces.pop_front()
        {
            self.push_out(oldest, release_ns);
        }
        self.pieces.push_back(piece);
    }

    fn push_out(&mut self, piece: Piece, release_ns: Option<u64>) {
        let Some(release_ns) = release_ns.filter(|&release_ns| release_ns < piece.to_ns) else {
            self.folded.clear();
            self.folded_from_ns = None;
            return;
        };
        let from_ns = piece.from_ns.max(release_ns);
        if self.folded_from_ns.is_none() {
            self.folded_from_ns = Some(from_ns);
            self.condensed += 1;
        }
        let length_ns = piece.to_ns - from_ns;
        if let Some(sum) = self.folded.iter_mut().find(|sum| sum.is_like(&piece)) {
            sum.to_ns += length_ns;
        } else if self.folded.len() < FOLDED {
            self.folded.push(Piece { from_ns: 0, to_ns: length_ns, is_open: false, ..piece });
        }
        // Beyond that, the sums fall short of the stretch, which shows as not recorded.
    }

    /// Marks what it was ready for since then as passed over by the scheduler.
    pub(crate) fn mark_passed_over(&mut self, since_ns: u64) {
        for piece in self.pieces.iter_mut().rev() {
            if piece.to_ns <= since_ns || piece.phase != WakePhase::Ready {
                break;
            }
            piece.is_passed_over = true;
        }
    }

    /// The thread that it waits behind turns out to have another name or priority: it changed them
    /// while it ran, which no event shows. What was booked to it since it runs is that one's.
    pub(crate) fn correct(&mut self, wrong: TaskName, right: TaskName, waiting_priority: i32) {
        for piece in self.pieces.iter_mut().rev() {
            let is_interrupt = piece.phase == WakePhase::Ready && !piece.activity.is_task_or_idle();
            match &mut piece.activity {
                Activity::Task { task, .. }
                    if *task == wrong && piece.phase == WakePhase::Ready =>
                {
                    *task = right;
                }
                _ if is_interrupt => {}
                _ => break,
            }
            piece.is_passed_over &= right.kernel_priority > waiting_priority;
        }
    }

    /// The window from a release to now. What the memory no longer holds is one piece of which
    /// nothing is known.
    pub(crate) fn window(&mut self, release_ns: u64, end_ns: u64) -> Window {
        let mut pieces = Vec::new();
        for piece in self.pieces.iter().rev() {
            if piece.to_ns <= release_ns {
                break;
            }
            let (from_ns, to_ns) = (piece.from_ns.max(release_ns), piece.to_ns.min(end_ns));
            if from_ns < to_ns {
                pieces.push(Piece { from_ns, to_ns, ..*piece });
            }
        }
        pieces.reverse();
        let first_ns = pieces.first().map_or(end_ns, |piece| piece.from_ns);
        let is_condensed = first_ns > release_ns && self.folded_from_ns.is_some();
        if first_ns > release_ns {
            pieces.splice(0..0, self.begin(release_ns, first_ns));
        }
        self.folded.clear();
        self.folded_from_ns = None;
        Window { pieces, is_condensed, lead: None }
    }

    /// The begin that was pushed out: its sums one after the other, then what they fall short of.
    fn begin(&self, release_ns: u64, first_ns: u64) -> Vec<Piece> {
        let mut at_ns = release_ns;
        let mut begin = Vec::new();
        for sum in &self.folded {
            let to_ns = (at_ns + sum.length_ns()).min(first_ns);
            if at_ns < to_ns {
                begin.push(Piece { from_ns: at_ns, to_ns, chain: None, ..*sum });
            }
            at_ns = to_ns;
        }
        if at_ns < first_ns {
            begin.push(unseen(at_ns, first_ns));
        }
        begin
    }

    /// How many waits were longer than the memory.
    pub(crate) const fn condensed(&self) -> u64 {
        self.condensed
    }
}

/// A piece of which nothing is known.
pub(crate) const fn unseen(from_ns: u64, to_ns: u64) -> Piece {
    Piece {
        from_ns,
        to_ns,
        phase: WakePhase::Unseen,
        activity: Activity::Unseen,
        cpu: 0,
        chain: None,
        is_hole: false,
        is_inferred: false,
        is_passed_over: false,
        is_open: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
    use std::collections::BTreeMap;

    fn label(number: u8) -> Activity {
        Activity::Softirq { number, device: Default::default() }
    }

    fn sums(pieces: &[Piece]) -> BTreeMap<u8, u64> {
        let mut sums = BTreeMap::new();
        for piece in pieces {
            let number = match piece.activity {
                Activity::Softirq { number, .. } => number,
                _ => 255,
            };
            *sums.entry(number).or_default() += piece.length_ns();
        }
        sums
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

        /// A memory of a few pieces gives the sums of one that forgets none.
        #[test]
        fn a_wait_longer_than_the_memory_keeps_its_sums(
            lengths in proptest::collection::vec((0u64..20, 0u8..6), 1..80),
            capacity in 2usize..12,
            release in 0u64..200,
        ) {
            let (mut small, mut whole) = (Past::new(0, capacity), Past::new(0, 1_000));
            let mut at = 0;
            for (length, number) in lengths {
                let piece = Piece {
                    phase: WakePhase::Ready,
                    activity: label(number),
                    ..unseen(at, at + length)
                };
                small.append(piece, Some(release));
                whole.append(piece, Some(release));
                at += length;
            }
            let (small, whole) = (small.window(release, at), whole.window(release, at));
            prop_assert_eq!(sums(&small.pieces), sums(&whole.pieces));
            let mut edge = release;
            for piece in &small.pieces {
                prop_assert_eq!(piece.from_ns, edge);
                prop_assert!(piece.to_ns > piece.from_ns);
                edge = piece.to_ns;
            }
            prop_assert!(edge == at.max(release));
        }
    }

    #[test]
    fn what_was_pushed_out_before_the_release_was_known_is_unseen() {
        let mut past = Past::new(0, 2);
        for at in 0..5 {
            let piece = Piece { activity: label(at as u8), ..unseen(at * 10, at * 10 + 10) };
            past.append(piece, None);
        }
        let window = past.window(5, 50);
        assert_eq!(window.pieces[0], unseen(5, 30));
        assert_eq!(sums(&window.pieces), BTreeMap::from([(255, 25), (3, 10), (4, 10)]));
        assert!(!window.is_condensed);
    }

    #[test]
    fn more_labels_than_room_show_as_unseen() {
        let mut past = Past::new(0, 2);
        for at in 0..200 {
            let piece = Piece { activity: label(at as u8), ..unseen(at * 10, at * 10 + 10) };
            past.append(piece, Some(0));
        }
        let window = past.window(0, 2_000);
        assert!(window.is_condensed);
        assert_eq!(sums(&window.pieces).get(&255), Some(&((200 - 64 - 2) * 10)));
        assert_eq!(window.pieces.iter().map(Piece::length_ns).sum::<u64>(), 2_000);
    }

    #[test]
    fn an_open_piece_goes_on() {
        let mut past = Past::new(0, 8);
        let piece = |from, to, is_open| Piece { activity: label(1), is_open, ..unseen(from, to) };
        past.append(piece(0, 5, true), None);
        past.append(piece(5, 9, false), None);
        past.append(piece(9, 12, false), None);
        assert_eq!(past.window(0, 12).pieces.len(), 2);
    }
}
