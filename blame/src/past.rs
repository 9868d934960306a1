//! A followed thread's own past: pieces that follow each other without a gap, each with what the
//! thread did and what its CPU did.
//!
//! Bounded: where a wait is longer than the memory, its oldest pieces are judged and added up
//! (`crate::begin::WakeBegin`) before they are dropped.

use std::collections::VecDeque;

use punctual_trace::event::{TaskName, Tid};
use serde::{Deserialize, Serialize};

use crate::timeline::{Activity, CpuTimeline, Moment, TaskMode};

/// The state of a followed thread in a piece of its past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
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
        /// True in a sleep that no signal ends.
        is_blocked: bool,
        /// The number of the system call that it sleeps in, where that was recorded.
        call: Option<u32>,
    },
    /// It did something that was seen, longer ago than its memory reaches.
    Forgotten,
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
    /// True where its end is not sure: a switch was not recorded.
    pub(crate) is_hole: bool,
    /// As [`crate::part::WakePart::is_inferred`].
    pub(crate) is_inferred: bool,
    /// True where the scheduler chose a lower thread although this one was ready.
    pub(crate) is_passed_over: bool,
    /// True where no event has ended it yet: a piece that follows under the same label belongs to
    /// it.
    pub(crate) is_open: bool,
}

impl Piece {
    pub(crate) const fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Returns true where another one has the same phase, CPU and activity, and is passed over and
    /// inferred alike.
    fn is_like(&self, next: &Self) -> bool {
        (self.phase, self.cpu, self.is_passed_over, self.is_inferred)
            == (next.phase, next.cpu, next.is_passed_over, next.is_inferred)
            && self.activity == next.activity
    }
}

/// The pieces of one thread, without a gap up to `settled_ns`.
#[derive(Debug, Clone)]
pub(crate) struct Past {
    pieces: VecDeque<Piece>,
    capacity: usize,
    /// The instant since which it is known, though perhaps no longer held, ns.
    begun_ns: u64,
    settled_ns: u64,
}

/// A stretch of a CPU until an event showed another thread than was known to run: on some virtual
/// machines an idle CPU records nothing, also not that it is left, nor do some threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SwitchHole {
    pub(crate) cpu: u32,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    /// True where the CPU was known to idle. It makes way at once; another thread may be in kernel
    /// code that is not preempted.
    pub(crate) was_idle: bool,
    /// The thread that was shown.
    pub(crate) tid: Tid,
}

/// A wait cut out of the past.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Window {
    /// Without gaps, up to the end.
    pub(crate) pieces: Vec<Piece>,
    /// The piece of the first one's CPU right before it, where that is known.
    pub(crate) lead: Option<Piece>,
}

impl Window {
    /// The piece before one of these.
    pub(crate) fn before(&self, index: usize) -> Option<&Piece> {
        match index.checked_sub(1) {
            Some(before) => self.pieces.get(before),
            None => self.lead.as_ref(),
        }
    }
}

/// Values of some pieces of a window, each with the index of its piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ByPiece<T>(Vec<(usize, T)>);

impl<T> ByPiece<T> {
    /// The value of the piece at this index; `None` where it has none.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.iter().find(|(piece, _)| *piece == index).map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.0.iter().map(|(index, value)| (*index, value))
    }

    /// Drops the values of pieces beyond so many.
    pub(crate) fn truncate(&mut self, pieces: usize) {
        self.0.retain(|(index, _)| *index < pieces);
    }
}

impl<T> Default for ByPiece<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<(usize, T)> for ByPiece<T> {
    fn from_iter<I: IntoIterator<Item = (usize, T)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl Past {
    pub(crate) fn new(at_ns: u64, capacity: usize) -> Self {
        let (begun_ns, capacity) = (at_ns, capacity.max(4));
        Self { pieces: VecDeque::new(), capacity, begun_ns, settled_ns: at_ns }
    }

    /// The instant up to which it is complete, ns.
    pub(crate) const fn settled_ns(&self) -> u64 {
        self.settled_ns
    }

    /// Completes it up to a moment, by what its CPU did: of a thread in this phase, which the
    /// scheduler has passed over where `is_passed_over`.
    pub(crate) fn pull(
        &mut self,
        now: Moment,
        timeline: Option<&CpuTimeline>,
        phase: WakePhase,
        is_passed_over: bool,
    ) {
        let Moment { cpu, at_ns } = now;
        let piece = |from_ns, to_ns, activity| Piece {
            phase,
            activity,
            cpu,
            is_passed_over,
            ..unseen(from_ns, to_ns)
        };
        let Some(timeline) = timeline else {
            self.append(piece(self.settled_ns, at_ns, Activity::Unseen));
            return;
        };
        for segment in timeline.since(self.settled_ns) {
            let begin_ns = segment.from_ns.min(at_ns);
            if begin_ns > self.settled_ns {
                self.append(piece(self.settled_ns, begin_ns, Activity::Unseen));
            }
            let (from_ns, to_ns) = (self.settled_ns, segment.to_ns.min(at_ns));
            let is_end = to_ns == segment.to_ns;
            let whole = Piece {
                chain: segment.chain,
                is_hole: segment.is_hole && is_end,
                is_inferred: segment.is_inferred,
                ..piece(from_ns, to_ns, segment.activity)
            };
            if to_ns > from_ns {
                self.append(whole);
            }
        }
        let last_ns = timeline.last_ns().min(at_ns);
        if self.settled_ns < last_ns {
            // Before the first event of that CPU.
            self.append(piece(self.settled_ns, last_ns, Activity::Unseen));
        }
        if self.settled_ns < at_ns {
            let open = piece(self.settled_ns, at_ns, timeline.activity());
            self.append(Piece { is_open: true, ..open });
        }
    }

    /// Completes it up to an instant, ns, as time in which the thread was on no CPU.
    pub(crate) fn wait(&mut self, to_ns: u64, phase: WakePhase) {
        let activity = Activity::Elsewhere;
        self.append(Piece { phase, activity, ..unseen(self.settled_ns, to_ns) });
    }

    /// Adds a piece that begins where the last one ended; one without length is left out.
    fn append(&mut self, piece: Piece) {
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
        self.pieces.push_back(piece);
    }

    /// The instant up to which pieces are to be dropped so that it is half full, ns; `None` as long
    /// as it may keep them.
    pub(crate) fn surplus_to_ns(&self) -> Option<u64> {
        let count = self.pieces.len();
        (count > self.capacity).then(|| self.pieces[count - self.capacity / 2 - 1].to_ns)
    }

    /// Drops the pieces that end by then.
    pub(crate) fn drop_until(&mut self, to_ns: u64) {
        let kept = self.pieces.partition_point(|piece| piece.to_ns <= to_ns);
        self.pieces.drain(..kept);
        // One pull out of a ring may have brought many more than it keeps.
        self.pieces.shrink_to(2 * self.capacity);
    }

    /// Up to `began_ns`, at least, a CPU did what it was known to do before a stretch whose end was
    /// not recorded. Where this thread itself, `is_own`, came behind one that records nothing, it
    /// was ready: neither the expiry of its timer nor its waking can be there.
    pub(crate) fn confirm(&mut self, hole: SwitchHole, began_ns: u64, is_own: bool) {
        let index = self.pieces.partition_point(|piece| piece.to_ns <= began_ns);
        let Some(piece) = self.pieces.get_mut(index) else { return };
        let is_inside = piece.from_ns < began_ns && piece.to_ns <= hole.to_ns;
        if piece.cpu != hole.cpu || !is_inside {
            return;
        }
        let is_woken = is_own && !hole.was_idle && piece.phase == WakePhase::Delivery;
        let phase = if is_woken { WakePhase::Ready } else { piece.phase };
        let known = Piece { to_ns: began_ns, phase, is_hole: false, is_inferred: true, ..*piece };
        piece.from_ns = began_ns;
        self.pieces.insert(index, known);
    }

    /// The same, and a thread ran since `began_ns`: this one itself where `is_own`, which was ready
    /// since then.
    pub(crate) fn reveal(&mut self, hole: SwitchHole, began_ns: u64, task: TaskName, is_own: bool) {
        self.confirm(hole, began_ns, is_own);
        let activity = Activity::Task { task, mode: TaskMode::Code };
        let first = self.pieces.partition_point(|piece| piece.from_ns < began_ns);
        let is_before_end = |piece: &&mut Piece| piece.to_ns <= hole.to_ns;
        let behind = self.pieces.range_mut(first..).take_while(is_before_end);
        for piece in behind.filter(|piece| piece.cpu == hole.cpu) {
            let phase = if is_own { WakePhase::Ready } else { piece.phase };
            *piece = Piece { activity, phase, is_hole: false, is_inferred: true, ..*piece };
        }
    }

    /// It was woken while an idle CPU recorded nothing: since the end of that it was ready. Returns
    /// false where no such time lies behind its release.
    pub(crate) fn wake_in_hole(&mut self) -> bool {
        let is_due = |piece: &&Piece| piece.phase == WakePhase::Delivery;
        let due = self.pieces.iter().rev().take_while(is_due).count();
        let from = self.pieces.len() - due;
        let is_unrecorded = |piece: &Piece| {
            let is_idle = matches!(piece.activity, Activity::Idle { .. });
            is_idle && (piece.is_hole || piece.is_inferred)
        };
        let idle = self.pieces.range(from..).rposition(is_unrecorded);
        let Some(idle) = idle else { return false };
        self.pieces.range_mut(from + idle + 1..).for_each(|piece| piece.phase = WakePhase::Ready);
        true
    }

    /// Marks the pieces since then in which it was ready as passed over by the scheduler.
    pub(crate) fn mark_passed_over(&mut self, since_ns: u64) {
        for piece in self.pieces.iter_mut().rev() {
            if piece.to_ns <= since_ns || piece.phase != WakePhase::Ready {
                break;
            }
            piece.is_passed_over = true;
        }
    }

    /// The thread that it waits behind turns out to have another name or priority: it changed them
    /// while it ran, which no event shows. What was booked to it since it runs is that one's, under
    /// the names that it had meanwhile. Returns true where it runs since before all that is held.
    pub(crate) fn correct(
        &mut self,
        wrong: TaskName,
        right: TaskName,
        waiting_priority: i32,
    ) -> bool {
        for piece in self.pieces.iter_mut().rev() {
            let is_wait = matches!(piece.phase, WakePhase::Ready | WakePhase::Delivery);
            let is_interrupt = is_wait && !piece.activity.is_task_or_idle();
            match &mut piece.activity {
                Activity::Task { task, .. } if task.tid == wrong.tid && is_wait => {
                    let name = if task.name == wrong.name { right.name } else { task.name };
                    *task = TaskName { name, ..right };
                }
                _ if is_interrupt => {}
                _ => return false,
            }
            piece.is_passed_over &= right.kernel_priority > waiting_priority;
        }
        true
    }

    /// The pieces between two instants, ns. Time that the memory no longer holds is one forgotten
    /// piece, and time before all of it one of which nothing is known.
    pub(crate) fn window(&self, from_ns: u64, end_ns: u64) -> Window {
        let begin_ns = from_ns;
        let mut pieces = Vec::new();
        for piece in self.pieces.iter().rev() {
            if piece.to_ns <= begin_ns {
                break;
            }
            let (from_ns, to_ns) = (piece.from_ns.max(begin_ns), piece.to_ns.min(end_ns));
            if from_ns < to_ns {
                pieces.push(Piece { from_ns, to_ns, ..*piece });
            }
        }
        let first_ns = pieces.last().map_or(end_ns, |piece: &Piece| piece.from_ns);
        let known_ns = self.begun_ns.min(first_ns).max(begin_ns);
        if first_ns > known_ns {
            pieces.push(forgotten(known_ns, first_ns));
        }
        if known_ns > begin_ns {
            pieces.push(unseen(begin_ns, known_ns));
        }
        pieces.reverse();
        Window { pieces, lead: None }
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

/// A piece that the memory no longer holds.
pub(crate) const fn forgotten(from_ns: u64, to_ns: u64) -> Piece {
    Piece { phase: WakePhase::Forgotten, ..unseen(from_ns, to_ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(number: u8) -> Activity {
        Activity::Softirq { number, device: Default::default() }
    }

    #[test]
    fn what_was_dropped_is_forgotten_and_what_came_before_is_unseen() {
        let mut past = Past::new(10, 4);
        for at in 1..6 {
            assert_eq!(past.surplus_to_ns(), None);
            past.append(Piece { activity: label(at as u8), ..unseen(at * 10, at * 10 + 10) });
        }
        assert_eq!(past.surplus_to_ns(), Some(40));
        past.drop_until(40);
        let window = past.window(5, 58);
        assert_eq!(window.pieces[..2], [unseen(5, 10), forgotten(10, 40)]);
        let edges: Vec<u64> = window.pieces.iter().map(|piece| piece.to_ns).collect();
        assert_eq!(edges, [10, 40, 50, 58]);
        past.drop_until(60);
        let pieces = past.window(58, 60).pieces;
        assert_eq!((past.surplus_to_ns(), pieces), (None, vec![forgotten(58, 60)]));
        assert_eq!(past.window(5, 8).pieces, [unseen(5, 8)]);
    }

    #[test]
    fn an_open_piece_goes_on() {
        let mut past = Past::new(0, 8);
        let piece = |from, to, is_open| Piece { activity: label(1), is_open, ..unseen(from, to) };
        past.append(piece(0, 5, true));
        past.append(piece(5, 9, false));
        past.append(piece(9, 12, false));
        assert_eq!(past.window(0, 12).pieces.len(), 2);
    }
}
