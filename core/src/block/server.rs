//! The executive's side of a task block: posts cycles, takes results and checks each of them.
//!
//! For the executive's loop, which owns it. Never waits, never allocates; a result says whether the
//! task has to be woken. Another thread starts and replaces the task, by an [`Admission`].

use core::sync::atomic::Ordering;

use super::{
    CANCEL, END, FIRST, HEAD, OUTPUT_WORDS_MAX, POSTED, RESULTS, RING, START, STATE, TAIL, TAKEN,
    TaskState, Terms, Words, clear, words,
};
use crate::atomic::AtomicU64;
use crate::cycle::{Cancel, Missed};
use crate::time::{Instant, Span};

/// The most that the clocks of a task and its server may be apart: both follow CLOCK_MONOTONIC by
/// counters of their own.
const CLOCKS_APART: Span = Span::from_us(100);

/// The gate for the child of a task that is released: opened and closed by the thread that starts
/// children, read by the loop at the task's next release. Lies in memory that no task can reach.
#[derive(Debug, Default)]
pub struct Admission {
    /// The child's number, twice; and one more while it is open.
    requested: AtomicU64,
    /// The request that the loop has carried out.
    done: AtomicU64,
}

impl Admission {
    /// Closed, without a child.
    ///
    /// # Real-time: setup only
    pub const fn new() -> Self {
        Self { requested: AtomicU64::new(0), done: AtomicU64::new(0) }
    }

    /// Child `number`, in [1, 2⁶³) and never used before, is released from now on.
    ///
    /// # Real-time: setup only
    pub fn open(&self, number: u64) {
        self.requested.store(number << 1 | 1, Ordering::Release);
    }

    /// Child `number` is not released any more, from the loop's next look on.
    ///
    /// # Real-time: setup only
    pub fn close(&self, number: u64) {
        self.requested.store(number << 1, Ordering::Release);
    }

    /// True once the loop has seen that child `number` is not released any more, and does not touch
    /// the task block before the admission is opened again.
    ///
    /// # Real-time: setup only
    pub fn is_left(&self, number: u64) -> bool {
        self.done.load(Ordering::Acquire) == number << 1
    }
}

/// The outcome of a post.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// True where one sleeper on the bell is to be woken.
    pub wake: bool,
    /// The earlier cycle that was still running.
    pub overran: Option<u64>,
}

/// A cycle that a task reported, after the checks that are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The number of the cycle.
    pub cycle: u64,
    /// The number of its place in the frame ([`Places`](super::Places)); 0 where releases come
    /// evenly.
    pub place: usize,
    /// The instant at which it was due.
    pub release: Instant,
    /// The instant at which it started.
    pub start: Instant,
    /// The instant at which it finished.
    pub finish: Instant,
    /// The instant of the first release that was still to come at its start.
    pub next: Instant,
    /// Releases just before it that never ran.
    pub missed: Option<Missed>,
}

/// The executive's end of one task block.
#[derive(Debug)]
pub struct TaskServer<'a> {
    block: Words<'a>,
    terms: Terms,
    /// The last request of the admission.
    admission: u64,
    /// The cycles posted, counted here: the word in the block is not read again.
    posted: u64,
    /// The cycle whose result is expected next.
    next: u64,
    tail: u64,
    /// When the next result was seen that came after its time: it waits for the next look.
    ahead: Option<Instant>,
    /// The child has ended, and its block is not the server's until the admission opens again.
    left: bool,
    invalid: u64,
}

impl<'a> TaskServer<'a> {
    /// An empty task block over `whole`; `None` when the words are too few or the output too long.
    ///
    /// # Real-time: setup only
    pub fn new(whole: &'a [AtomicU64], terms: Terms) -> Option<Self> {
        let block = Words::of(whole)?;
        if terms.output_words > OUTPUT_WORDS_MAX || whole.len() < words(terms.output_words) {
            return None;
        }
        clear(whole, &terms);
        let (ahead, left) = (None, false);
        Some(Self {
            block,
            terms,
            admission: 0,
            posted: 0,
            next: 0,
            tail: 0,
            ahead,
            left,
            invalid: 0,
        })
    }

    /// The terms on which the task is released.
    ///
    /// # Real-time: in loop
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The word that sleepers sleep on.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn bell(&self) -> &'a AtomicU64 {
        &self.block.fixed[POSTED]
    }

    /// Results that cannot be: of cycles that were not posted, or at impossible times.
    ///
    /// # Real-time: in loop
    pub fn invalid(&self) -> u64 {
        self.invalid
    }

    /// Looks at the admission, and takes note of the child to be released, if any. After a child
    /// has ended, its last results go to `each`, and the cycle in which it ended; where a result
    /// came after `now` was read, it is left at the next look only.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn enter(
        &mut self,
        admission: &Admission,
        now: Instant,
        mut each: impl FnMut(Done),
    ) -> Entered {
        let request = admission.requested.load(Ordering::Acquire);
        let (is_open, was_open) = (request & 1 == 1, self.admission & 1 == 1);
        if request == self.admission {
            return if is_open { Entered::Open } else { Entered::Closed };
        }
        let mut unclaimed = None;
        if was_open {
            self.harvest(now, &mut each);
            if self.ahead.is_some() {
                return Entered::Closed;
            }
            self.take_begun(now, each);
            unclaimed = self.unclaimed();
        }
        (self.admission, self.posted, self.next, self.tail) = (request, 0, 0, 0);
        self.left = !is_open;
        admission.done.store(request, Ordering::Release);
        if is_open { Entered::Open } else { Entered::Left(unclaimed) }
    }

    /// Posts `cycle`: the task is released. With `cancel`, an earlier one that still runs has its
    /// cancel token set.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn post(&mut self, cycle: u64, cancel: bool) -> Posted {
        let get = |at: usize| self.block.fixed[at].load(Ordering::Acquire);
        let (state, taken) = (get(STATE), get(TAKEN));
        let behind = state == TaskState::Running.code() && taken <= cycle;
        let overran = if behind { taken.checked_sub(1) } else { None };
        if cancel && overran.is_some() {
            self.block.fixed[CANCEL].store(taken, Ordering::Relaxed);
        }
        if self.posted == 0 {
            self.block.fixed[FIRST].store(cycle, Ordering::Relaxed);
            self.next = cycle;
        }
        self.posted = cycle.saturating_add(1);
        // Either the task sees what is posted, or this sees that it sleeps.
        self.bell().store(self.posted, Ordering::SeqCst);
        let state = self.block.fixed[STATE].load(Ordering::SeqCst);
        // Before its first release a task requests releases and sleeps in that state.
        let wake = state == TaskState::Idle.code() || state == TaskState::Asking.code();
        Posted { wake, overran }
    }

    /// Takes the results that the task left, in order; none of a child that has ended, whose last
    /// ones [`TaskServer::enter`] took.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn harvest(&mut self, now: Instant, mut each: impl FnMut(Done)) {
        if self.left {
            return;
        }
        let head = self.block.fixed[HEAD].load(Ordering::Acquire);
        if head.wrapping_sub(self.tail) > RESULTS as u64 {
            self.invalid += 1;
            self.tail = head;
        }
        while self.tail != head {
            let at = RING + 3 * (self.tail % RESULTS as u64) as usize;
            let get = |at: usize| self.block.fixed[at].load(Ordering::Relaxed);
            let (cycle, start, finish) = (get(at), get(at + 1), get(at + 2));
            if Instant::from_ns(finish) > now + CLOCKS_APART && self.is_new(now) {
                break;
            }
            self.ahead = None;
            match self.check(cycle, Instant::from_ns(start), Instant::from_ns(finish), now) {
                Some(done) => {
                    self.next = cycle + 1;
                    each(done);
                }
                None => self.invalid += 1,
            }
            self.tail = self.tail.wrapping_add(1);
        }
        self.block.fixed[TAIL].store(self.tail, Ordering::Release);
    }

    /// Returns true where a result that is ahead of `now` was not so at an earlier look: it may
    /// have come since that stamp was taken, where the CPU was elsewhere.
    fn is_new(&mut self, now: Instant) -> bool {
        *self.ahead.get_or_insert(now) >= now
    }

    /// The result, where such a cycle was posted and ran at possible instants; else `None`.
    fn check(&self, cycle: u64, start: Instant, finish: Instant, now: Instant) -> Option<Done> {
        if cycle < self.next || cycle >= self.posted {
            return None;
        }
        let release = self.terms.release(cycle);
        let possible =
            start >= release - CLOCKS_APART && finish >= start && finish <= now + CLOCKS_APART;
        let releases = self.terms.releases;
        let following = match self.terms.burst {
            0 => self.terms.next(cycle, start),
            _ => cycle + 1,
        };
        let (first, count) = (self.next, cycle - self.next);
        let missed = if count == 0 { None } else { Some(Missed { releases, first, count }) };
        let next = self.terms.release(following);
        let place = self.terms.places.place(cycle);
        possible.then_some(Done { cycle, place, release, start, finish, next, missed })
    }

    /// Takes the cycle that the task began and does not end any more, if there is one: it began, so
    /// that it ran, and as nothing more is known of it, it overran nothing. Call it once the task
    /// runs no more, after the last [`TaskServer::harvest`].
    ///
    /// # Real-time: in loop
    pub fn take_begun(&mut self, now: Instant, each: impl FnOnce(Done)) {
        let get = |at: usize| self.block.fixed[at].load(Ordering::Acquire);
        let runs = !self.left && get(STATE) == TaskState::Running.code();
        let Some(cycle) = get(TAKEN).checked_sub(1).filter(|_| runs) else { return };
        let start = Instant::from_ns(get(START));
        if let Some(done) = self.check(cycle, start, start, now) {
            self.next = cycle + 1;
            each(done);
        }
    }

    /// Releases that were posted and have no result: once the task runs no more, those that never
    /// ran.
    ///
    /// # Real-time: in loop
    pub fn unclaimed(&self) -> Option<Missed> {
        let (first, count) = (self.next, self.posted.saturating_sub(self.next));
        (count > 0).then_some(Missed { releases: self.terms.releases, first, count })
    }

    /// Sets the cancel token of whichever cycle runs or is about to: before [`TaskServer::end`],
    /// after which no release will do so any more.
    ///
    /// # Real-time: in loop
    pub fn cancel(&self) {
        self.block.fixed[CANCEL].store(Cancel::WHICHEVER, Ordering::Relaxed);
    }

    /// Ends the task's loop; then wake all that sleep on the bell.
    ///
    /// # Real-time: in loop
    pub fn end(&self) {
        self.bell().store(END, Ordering::SeqCst);
    }
}

/// Ends the loop of a task whose server may be gone; returns the bell, to wake all that sleep on
/// it, or `None` where the words are too few for a task block.
///
/// # Real-time: in loop
pub fn end_task(whole: &[AtomicU64]) -> Option<&AtomicU64> {
    let bell = &Words::of(whole)?.fixed[POSTED];
    bell.store(END, Ordering::SeqCst);
    Some(bell)
}

/// The state of an admission, as [`TaskServer::enter`] found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entered {
    /// A child is to be released.
    Open,
    /// There is no child.
    Closed,
    /// The child has ended; these cycles were posted and never ran.
    Left(Option<Missed>),
}
