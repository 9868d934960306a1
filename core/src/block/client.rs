//! The task's side of a task block: takes what was posted, stamps start and finish.
//!
//! For the thread that runs the task, in this process or another. Makes no system call: on
//! [`ClientStep::Wait`] its caller sleeps on [`TaskClient::bell`]. Never allocates, never panics
//! whatever the block holds.

use core::sync::atomic::Ordering;

use super::{
    BURST, CANCEL, DEN, DROPPED, END, FIRST, FIRST_NS, HEAD, MAGIC, NUM_NS, OUTPUT_WORDS,
    OUTPUT_WORDS_MAX, Outputs, PLACE_COUNT, PLACES, PLACES_MAX, POSTED, Places, RESULTS, RING,
    START, STATE, TAIL, TAKEN, THREAD, TaskBlockError, TaskState, Terms, VERSION, Words, words,
};
use crate::atomic::AtomicU64;
use crate::clock::{self, Clock};
use crate::cycle::{Cancel, Cycle, Job};
use crate::releases::Releases;
use crate::time::{Instant, Period};

/// The next step of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStep {
    /// Run a cycle now: call [`TaskClient::begin`].
    Run,
    /// Sleep while the low half of the bell is this.
    Wait(u32),
    /// The server ended the task.
    Ended,
}

/// The task's end of a task block.
#[derive(Debug)]
pub struct TaskClient<'a> {
    block: Words<'a>,
    whole: &'a [AtomicU64],
    terms: Terms,
    /// The cycle that is expected next; `None` before the first one is posted.
    next: Option<u64>,
    /// The cycle that is to run or runs, and its start.
    cycle: u64,
    start: Instant,
    /// The first one after it that is neither run nor missed.
    following: u64,
    /// The cycle before that.
    last: Option<u64>,
    /// Missed releases that no cycle has counted in its `missed` yet.
    uncounted: u64,
    missed: u64,
    head: u64,
}

impl<'a> TaskClient<'a> {
    /// Opens the task block in `whole`. Everything that the server wrote is checked and copied, so
    /// that it cannot change any more.
    ///
    /// # Errors
    ///
    /// The words are no task block of this version.
    ///
    /// # Real-time: setup only
    pub fn open(whole: &'a [AtomicU64]) -> Result<Self, TaskBlockError> {
        let block = Words::of(whole).ok_or(TaskBlockError::NoBlock)?;
        let get = |at: usize| block.fixed[at].load(Ordering::Acquire);
        if get(0) != MAGIC {
            return Err(TaskBlockError::NoBlock);
        }
        if get(1) != VERSION {
            return Err(TaskBlockError::Version(get(1)));
        }
        let output_words = usize::try_from(get(OUTPUT_WORDS)).unwrap_or(usize::MAX);
        let fits = output_words <= OUTPUT_WORDS_MAX && words(output_words) <= whole.len();
        if !fits || get(2) != words(output_words) as u64 {
            return Err(TaskBlockError::Size(get(2)));
        }
        let first = Instant::from_ns(get(FIRST_NS));
        let period = Period::ratio(get(NUM_NS), get(DEN)).ok_or(TaskBlockError::Period)?;
        let releases = Releases::new(first, period);
        let burst = u32::try_from(get(BURST)).unwrap_or(u32::MAX);
        let mut offsets_ns = [0; PLACES_MAX];
        for (at, offset_ns) in (PLACES..).zip(&mut offsets_ns) {
            *offset_ns = get(at);
        }
        let count = get(PLACE_COUNT);
        let given = usize::try_from(count).ok().and_then(|count| offsets_ns.get(..count));
        let places = given.and_then(|given| Places::new(&releases, given));
        let places = places.ok_or(TaskBlockError::Places(count))?;
        let terms = Terms { releases, places, burst, output_words };
        Ok(Self {
            block,
            whole,
            terms,
            next: None,
            cycle: 0,
            following: 0,
            start: Instant::from_ns(0),
            last: None,
            uncounted: 0,
            missed: 0,
            head: 0,
        })
    }

    /// The terms on which the task is released.
    ///
    /// # Real-time: in loop
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The outputs that it writes to.
    ///
    /// # Real-time: in loop
    pub fn outputs(&self) -> Option<Outputs<'a>> {
        Outputs::of(self.whole, self.terms.output_words)
    }

    fn put(&self, at: usize, value: u64) {
        self.block.fixed[at].store(value, Ordering::Relaxed);
    }

    /// Requests releases, as this thread. Nothing is posted before the server has seen the request.
    ///
    /// # Real-time: setup only
    pub fn ask(&mut self, thread: u64) {
        self.put(THREAD, thread);
        self.block.fixed[STATE].store(TaskState::Asking.code(), Ordering::Release);
    }

    /// The word to sleep on.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn bell(&self) -> &'a AtomicU64 {
        &self.block.fixed[POSTED]
    }

    /// The next step. Where the count of posted cycles goes back, it waits.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn turn(&mut self) -> ClientStep {
        let mut posted = self.bell().load(Ordering::SeqCst);
        loop {
            if posted == END {
                return ClientStep::Ended;
            }
            if posted != 0 {
                let next = self.expected(posted);
                if posted > next {
                    self.take(posted, next);
                    return ClientStep::Run;
                }
            }
            // Either the server sees that this sleeps, or this sees what the server posted.
            let seen = posted;
            if self.next.is_some() {
                self.block.fixed[STATE].store(TaskState::Idle.code(), Ordering::SeqCst);
            }
            posted = self.bell().load(Ordering::SeqCst);
            if posted == seen {
                return ClientStep::Wait(posted as u32);
            }
        }
    }

    #[inline]
    fn expected(&mut self, posted: u64) -> u64 {
        *self.next.get_or_insert_with(|| {
            let first = self.block.fixed[FIRST].load(Ordering::Relaxed);
            first.min(posted - 1)
        })
    }

    /// The cycle that is to run of those that were posted: the oldest one, also where several
    /// passed in a stall.
    #[inline]
    fn take(&mut self, posted: u64, next: u64) {
        self.cycle = match self.terms.burst {
            0 => next,
            most => next.max(posted.saturating_sub(u64::from(most))),
        };
        self.missed = self.uncounted.saturating_add(self.cycle - next);
        self.uncounted = 0;
        self.following = self.cycle.saturating_add(1);
    }

    /// Begins the cycle of the last [`ClientStep::Run`]. The caller takes the stamp as late as
    /// possible.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn begin(&mut self, start: Instant) -> Cycle<'a> {
        let (cycle, terms) = (self.cycle, &self.terms);
        self.start = start;
        self.put(TAKEN, cycle.wrapping_add(1));
        self.put(START, start.as_ns());
        self.block.fixed[STATE].store(TaskState::Running.code(), Ordering::Release);
        if terms.burst == 0 && start >= terms.release(self.following) {
            // Those that passed before it could start are missed.
            let released = terms.released(start).max(self.following);
            self.uncounted = released - self.following;
            self.following = released;
        }
        let release = terms.release(cycle);
        let dt = match self.last.map(|last| last.min(cycle)).or(cycle.checked_sub(1)) {
            Some(last) => release - terms.release(last),
            None => terms.releases.period().as_span(),
        };
        let cancel = self.cancel();
        let next = terms.release(self.following);
        let (missed, passed, period) = (self.missed, self.uncounted, terms.releases.period());
        let job = Job { rank: 0, cycle, part: 0, release, next, missed, passed, period };
        Cycle::new(&job, start, dt).with_cancel(cancel)
    }

    #[inline]
    fn cancel(&self) -> Cancel<'a> {
        Cancel::new(&self.block.fixed[CANCEL], self.cycle.wrapping_add(1))
    }

    /// True where the cycle that began is to come to its end ([`Cycle::cancelled`]), for a task
    /// that does not keep its cycle.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn cancelled(&self) -> bool {
        self.cancel().is_set()
    }

    /// Ends the cycle that began, now by this clock, the one by which it began; returns the end.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn end(&mut self, clock: &mut impl Clock) -> Instant {
        let now = clock.now();
        let finish = clock::end_of(clock, self.start, now);
        self.done(finish);
        finish
    }

    /// Ends the cycle that began. One that still ran at its next release has missed all that
    /// passed, unless it may catch up.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn done(&mut self, finish: Instant) {
        let mut next = self.following;
        if self.terms.burst == 0 && finish >= self.terms.release(next) {
            let released = self.terms.released(finish).max(next);
            self.uncounted = self.uncounted.saturating_add(released - next);
            next = released;
        }
        self.next = Some(next);
        self.last = Some(self.cycle);
        self.leave_result(finish);
        self.block.fixed[STATE].store(TaskState::Idle.code(), Ordering::Release);
    }

    #[inline]
    fn leave_result(&mut self, finish: Instant) {
        let taken = self.block.fixed[TAIL].load(Ordering::Acquire);
        if self.head.wrapping_sub(taken) >= RESULTS as u64 {
            let dropped = self.block.fixed[DROPPED].load(Ordering::Relaxed);
            self.put(DROPPED, dropped.wrapping_add(1));
            return;
        }
        let at = RING + 3 * (self.head % RESULTS as u64) as usize;
        self.put(at, self.cycle);
        self.put(at + 1, self.start.as_ns());
        self.put(at + 2, finish.as_ns());
        self.head = self.head.wrapping_add(1);
        self.block.fixed[HEAD].store(self.head, Ordering::Release);
    }

    /// The task ends: nothing runs here any more.
    ///
    /// # Real-time: setup only
    pub fn leave(&mut self) {
        self.block.fixed[STATE].store(TaskState::Gone.code(), Ordering::Release);
    }
}
