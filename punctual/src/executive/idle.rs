//! Background work: slices that run while a loop would wait, where one more ends before the next
//! release.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::clock::Clock;
use punctual_core::cycle::Flow;
use punctual_core::time::{Instant, Span};
use punctual_core::wait::{Stalls, Strategy, Wait, WaitStatus};

use super::ending::Ending;
use super::work::guarded;

/// The least time from the end of a slice to the release: for the start of a wait, and for a turn
/// of the loop.
const MARGIN: Span = Span::from_us(20);

/// Background work, and the longest time that a slice of it may take.
pub(super) struct Idle<'env> {
    slice: Span,
    body: Box<dyn FnMut() -> Flow + Send + 'env>,
}

impl<'env> Idle<'env> {
    /// Slices of at most this length.
    pub(super) fn new(slice: Span, body: impl FnMut() -> Flow + Send + 'env) -> Self {
        Self { slice, body: Box::new(body) }
    }

    /// Returns true where a slice has no length.
    pub(super) fn is_empty(&self) -> bool {
        self.slice <= Span::ZERO
    }
}

/// Counts of background work.
#[derive(Debug, Default)]
pub(super) struct IdleCounts {
    ran: AtomicU64,
    over: AtomicU64,
}

impl IdleCounts {
    /// Slices that ran, and those of them that took longer than they may.
    pub(super) fn read(&self) -> (u64, u64) {
        (self.ran.load(Ordering::Relaxed), self.over.load(Ordering::Relaxed))
    }
}

/// Adds one to a counter that one thread writes, so that no locked instruction is needed.
#[inline]
fn add(word: &AtomicU64) {
    word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// A wait that runs background work first, where there is any.
pub(super) struct Filling<'r, 'env> {
    pub(super) wait: Strategy,
    pub(super) idle: Option<Idle<'env>>,
    pub(super) counts: &'r IdleCounts,
    pub(super) ending: &'r Ending,
}

impl Filling<'_, '_> {
    /// Runs slices while there is time for one more.
    #[inline]
    fn fill<C: Clock>(&mut self, clock: &mut C, release: Instant, stop: &AtomicBool) {
        let Some(idle) = &mut self.idle else { return };
        let mut now = clock.now();
        while now + idle.slice + MARGIN <= release && !stop.load(Ordering::Relaxed) {
            let name = || "background work".to_owned();
            let flow = guarded(self.ending, name, &mut idle.body);
            let end = clock.now();
            add(&self.counts.ran);
            if end - now > idle.slice {
                add(&self.counts.over);
            }
            match flow {
                Flow::Continue => now = end,
                Flow::Break => return,
                Flow::Stop => return self.ending.stop(),
            }
        }
    }
}

impl Wait for Filling<'_, '_> {
    #[inline]
    fn until<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        self.wait.until(clock, release, stop)
    }

    #[inline]
    fn near<C: Clock>(
        &mut self,
        clock: &mut C,
        release: Instant,
        stop: &AtomicBool,
    ) -> Option<Instant> {
        self.fill(clock, release, stop);
        self.wait.near(clock, release, stop)
    }

    fn take_stalls(&mut self) -> Stalls {
        self.wait.take_stalls()
    }

    fn status(&self) -> WaitStatus {
        self.wait.status()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_core::stop::StopRequest;
    use punctual_core::wait::Sleep;

    use super::*;
    use crate::sim::SimulatedClock;

    fn slices(takes_us: u64, flow: Flow, until_us: u64) -> (u64, u64, u64) {
        let mut clock = SimulatedClock::new();
        let (works, counts, ending) = (clock.clone(), IdleCounts::default(), Ending::default());
        let body = || {
            works.spend(Duration::from_micros(takes_us));
            flow
        };
        let idle = Some(Idle::new(Span::from_us(100), body));
        let wait = Strategy::Sleep(Sleep);
        let mut filling = Filling { wait, idle, counts: &counts, ending: &ending };
        let release = Instant::from_ns(until_us * 1_000);
        let _near = filling.near(&mut clock, release, ending.stop.flag());
        let (ran, over) = counts.read();
        (ran, over, clock.now().as_ns() / 1_000)
    }

    #[test]
    fn slices_run_only_where_one_more_ends_before_the_release() {
        // 100 µs and a margin of 20 µs each.
        assert_eq!(slices(100, Flow::Continue, 119), (0, 0, 0));
        assert_eq!(slices(100, Flow::Continue, 120), (1, 0, 100));
        assert_eq!(slices(100, Flow::Continue, 1_000), (9, 0, 900));
        assert_eq!(slices(60, Flow::Continue, 1_000), (15, 0, 900));
        assert_eq!(slices(150, Flow::Continue, 1_000), (6, 6, 900));
        assert_eq!(slices(100, Flow::Break, 1_000), (1, 0, 100));
        assert_eq!(slices(100, Flow::Stop, 1_000), (1, 0, 100));
    }
}
