//! The periodic loop that `punctual::Loop` and the experiments run: one clock, one wait, one
//! observer, and any number of segments.
//!
//! Decides nothing about threads, sessions or files. A segment begins on a grid that its caller
//! gives; what the wait learned stays from one to the next. In a segment nothing is allocated, and
//! nothing called but the clock, the wait and the observer, what counts stalls and beats for the
//! watchdog, and what keeps the grid away from the kernel's tick.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Observe};
use punctual_core::gate::Gate;
use punctual_core::releases::Releases;
use punctual_core::stop::StopRequest;
use punctual_core::time::{Instant, Span};
use punctual_core::wait::{Stalls, Strategy, Wait, WaitStatus};

use crate::comb::TickDetector;
use crate::monitor::Watched;
use crate::quiet::{self, KernelTick, Quiet};

/// A periodic loop in segments.
#[derive(Debug)]
pub struct SegmentedLoop<C, O> {
    gate: Gate<C, Strategy, TickDetector<O>>,
    /// Its quiet places, the latest last.
    places: [Option<Quiet>; MOVES_MAX + 1],
    met: Option<KernelTick>,
}

/// The most times that a loop is moved away from a tick that it met.
const MOVES_MAX: usize = 8;

impl<C: Clock, O: Observe> SegmentedLoop<C, O> {
    /// A loop whose wait is ready ([`crate::wait_policy`]), and whose cycles go to `observe`. Its
    /// first segment begins with [`SegmentedLoop::begin_on`]: until then its releases lie at the
    /// beginning of the clock.
    ///
    /// # Real-time: setup only
    pub fn new(clock: C, wait: Strategy, observe: O, grid: Releases) -> Self {
        let observe = TickDetector::new(observe, Some(grid.period()));
        let gate = Gate::new(clock, wait, observe, grid, 0);
        Self { gate, met: None, places: [None; MOVES_MAX + 1] }
    }

    /// Has its releases keep away from the kernel's tick, from this place on, where they begin:
    /// where they meet it all the same they are moved, and no number is left out. Wrong where
    /// somebody else knows where they lie, as a sample file does.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn staying_quiet(mut self, place: Quiet) -> Self {
        self.places[0] = Some(place);
        self
    }

    /// The quiet places of its grid, the latest last; none where it stays where it is.
    ///
    /// # Real-time: setup only
    pub fn places(&self) -> impl Iterator<Item = &Quiet> {
        self.places.iter().flatten()
    }

    /// The tick that its releases meet where they stay.
    ///
    /// # Real-time: in loop
    pub fn met(&self) -> Option<KernelTick> {
        self.met
    }

    /// Its releases met this tick.
    #[cold]
    fn keep_away(&mut self, tick: &KernelTick) {
        let releases = self.gate.releases();
        let (period, phase_ns) = (releases.period(), releases.phase_ns());
        let moves = self.places().count();
        let place = self.places().last().filter(|_| moves <= MOVES_MAX);
        let place = place.and_then(|before| quiet::moved(before, tick, period));
        let by_ns = place.map_or(0, |place| {
            (place.phase_ns % period.as_ns() + period.as_ns() - phase_ns % period.as_ns())
                % period.as_ns()
        });
        if by_ns == 0 {
            self.met = Some(*tick);
            return;
        }
        // After an overrun it stays where it is, and meets the tick again.
        if self.gate.postpone(Span::from_ns(by_ns.cast_signed())) {
            self.places[moves] = place;
        }
    }

    /// Begins a segment without an end: its first release is number `first` of `grid`.
    ///
    /// # Real-time: in loop
    pub fn begin_on(&mut self, grid: Releases, first: u64) {
        self.gate.observe.begin(grid.period());
        self.gate.begin(grid, first);
    }

    /// Ends the segment at `end`: releases at or after it do not run. Holds for this segment alone.
    ///
    /// # Real-time: in loop
    pub fn end_at(&mut self, end: Instant) {
        self.gate.end_at(end);
    }

    /// Waits for the next release of the segment, and returns its cycle. A cycle reaches the
    /// observer at the beginning of the next wait, and gaps in spins reach `vitals` then.
    ///
    /// # Errors
    ///
    /// The reason why there is none: its end has come, or `stop` was set. The observer has counted
    /// everything then.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    pub fn wait(
        &mut self,
        stop: &impl StopRequest,
        vitals: &Vitals,
    ) -> Result<Cycle<'static>, Ended> {
        // A wait that need not sleep does not look at the flag: a loop that always overruns would
        // never stop.
        self.hand_over_stalls(vitals);
        if stop.flag().load(Ordering::Relaxed) {
            self.gate.finish(stop);
            return Err(Ended::Stopped);
        }
        if let Some(tick) = self.gate.observe.take_met() {
            self.keep_away(&tick);
        }
        let cycle = self.gate.wait(stop);
        vitals.watched.beat();
        if cycle.is_err() {
            // No wait comes after this one.
            self.hand_over_stalls(vitals);
        }
        cycle
    }

    /// Gives `vitals` the gaps in the spins since the last call.
    #[inline]
    fn hand_over_stalls(&mut self, vitals: &Vitals) {
        let stalls = self.gate.wait.take_stalls();
        if stalls.count > 0 {
            vitals.stalled(stalls);
        }
    }

    /// Runs the segment to its end, or until `stop` is set, with a body that does nothing: what an
    /// experiment measures.
    ///
    /// # Real-time: in loop, waits
    pub fn run(&mut self, stop: &impl StopRequest, vitals: &Vitals) -> Ended {
        loop {
            if let Err(ended) = self.wait(stop, vitals) {
                return ended;
            }
        }
    }

    /// Breaks the segment off, and counts all of it; does nothing where it has ended.
    ///
    /// # Real-time: in loop
    pub fn finish(&mut self, stop: &impl StopRequest) {
        self.gate.finish(stop);
    }

    /// Counts the cycle that runs now, as if it were over.
    ///
    /// # Real-time: in loop
    pub fn count(&mut self) {
        self.gate.count();
    }

    /// The clock that it reads.
    ///
    /// # Real-time: in loop
    pub fn clock(&mut self) -> &mut C {
        &mut self.gate.clock
    }

    /// The observer of its cycles, between segments.
    ///
    /// # Real-time: in loop
    pub fn observer(&mut self) -> &mut O {
        self.gate.observe.inner_mut()
    }

    /// The state of its wait at present, with its knowledge of this machine.
    ///
    /// # Real-time: in loop
    pub fn wait_status(&self) -> WaitStatus {
        self.gate.wait.status()
    }
}

/// The state that a loop shows to other threads while it runs: its heartbeat for a watchdog, and
/// gaps inside spins. Atomic numbers alone, with one writer; each is whole, and they may be one
/// cycle apart.
#[derive(Debug, Default)]
pub struct Vitals {
    watched: Watched,
    stalls: AtomicU64,
    longest_stall_ns: AtomicU64,
    stalled_ns: AtomicU64,
}

impl Vitals {
    /// The progress that a watchdog looks at. The loop's owner arms it for as long as a segment
    /// runs.
    ///
    /// # Real-time: in loop
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Gaps inside spins so far.
    ///
    /// # Real-time: reader side
    pub fn stalls(&self) -> Stalls {
        let get = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let span = |ns| Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX));
        let (longest, sum) = (span(get(&self.longest_stall_ns)), span(get(&self.stalled_ns)));
        Stalls::new(get(&self.stalls), longest, sum)
    }

    /// Gaps inside spins since they were last taken: for the loop's own thread, between segments.
    ///
    /// # Real-time: in loop
    pub fn take_stalls(&self) -> Stalls {
        let stalls = self.stalls();
        for word in [&self.stalls, &self.longest_stall_ns, &self.stalled_ns] {
            word.store(0, Ordering::Relaxed);
        }
        stalls
    }

    /// Counts what [`Wait::take_stalls`] gave. One writer, so that no locked instruction is needed.
    #[inline]
    fn stalled(&self, stalls: Stalls) {
        let ns = |span: Span| span.as_ns().max(0).unsigned_abs();
        let add = |word: &AtomicU64, by: u64| {
            word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        };
        add(&self.stalls, stalls.count);
        add(&self.stalled_ns, ns(stalls.sum));
        let longest_ns = self.longest_stall_ns.load(Ordering::Relaxed).max(ns(stalls.longest));
        self.longest_stall_ns.store(longest_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::iter::from_fn;
    use std::sync::atomic::AtomicBool;

    use punctual_core::ring::{self, SplitRing};
    use punctual_core::sample::Flags;
    use punctual_core::time::Period;
    use punctual_core::wait::Sleep;
    use punctual_testkit::sim::HeldClock;

    use super::*;
    use crate::counting::{SampleRecorder, ring_of};

    #[test]
    fn numbers_go_on_over_segments_and_no_release_is_lost_where_one_ends() {
        let period = Period::from_ns(100).expect("in range");
        let grid = Releases::new(Instant::from_ns(1_000), period);
        let memory = ring_of(period);
        let SplitRing { ring, mut drain, view } = ring::split(&memory).expect("large enough");
        let (now, stop, vitals) = (Cell::new(900), AtomicBool::new(false), Vitals::default());
        let (wait, observe) = (Strategy::Sleep(Sleep), SampleRecorder::new(ring, 1));
        let mut segments = SegmentedLoop::new(HeldClock(&now), wait, observe, grid);
        let mut numbers = Vec::new();
        // A body of 10 ns, but for one of 150 in cycle 2, in which release 3 passes.
        segments.begin_on(grid, 0);
        segments.end_at(grid.release(5));
        let ended = loop {
            match segments.wait(&stop, &vitals) {
                Ok(cycle) => {
                    numbers.push(cycle.n);
                    now.set(now.get() + if cycle.n == 2 { 150 } else { 10 });
                }
                Err(ended) => break ended,
            }
        };
        assert_eq!((ended, now.get(), view.missed()), (Ended::Finished, 1_410, 1));
        // What is due between two segments is no release of either.
        now.set(1_740);
        segments.observer().begin(1);
        segments.begin_on(grid, grid.at_or_after(Instant::from_ns(now.get())));
        for length_ns in [10, 10, 250] {
            numbers.push(segments.wait(&stop, &vitals).expect("no end").n);
            now.set(now.get() + length_ns);
        }
        // Broken off in cycle 10, in which 11 and 12 passed.
        segments.finish(&stop);
        segments.finish(&stop);
        assert_eq!(numbers, [0, 1, 2, 4, 8, 9, 10]);
        assert_eq!((view.missed(), view.unrecorded()), (1 + 2, 0));
        let samples: Vec<_> = from_fn(|| drain.pop()).collect();
        assert_eq!(samples.iter().map(|sample| sample.cycle).collect::<Vec<_>>(), numbers);
        let first = Flags::FIRST.with(Flags::COLD);
        let flags: Vec<_> = samples.iter().map(|sample| sample.flags).collect();
        assert_eq!(flags.iter().filter(|&&flags| flags == first).count(), 2);
        assert_eq!((flags[0], flags[4]), (first, first), "the first of each segment");
        assert!(samples.iter().all(|sample| sample.lateness == Span::ZERO));
        assert_eq!(vitals.watched().beats(), 5 + 3, "one a wait");
    }

    #[test]
    fn a_segment_that_does_not_count_runs_as_the_others_and_leaves_no_trace() {
        let period = Period::from_ns(100).expect("in range");
        let grid = Releases::new(Instant::from_ns(1_000), period);
        let memory = ring_of(period);
        let SplitRing { ring, mut drain, view } = ring::split(&memory).expect("large enough");
        let (now, stop, vitals) = (Cell::new(900), AtomicBool::new(false), Vitals::default());
        let (wait, observe) = (Strategy::Sleep(Sleep), SampleRecorder::new(ring, 1));
        let mut segments = SegmentedLoop::new(HeldClock(&now), wait, observe, grid);
        // Bodies of 150: every second release passes in one.
        let mut numbers = Vec::new();
        let mut segment = |first, counts: bool| {
            if !counts {
                segments.observer().begin_uncounted();
            }
            segments.begin_on(grid, first);
            segments.end_at(grid.release(first + 6));
            while let Ok(cycle) = segments.wait(&stop, &vitals) {
                numbers.push(cycle.n);
                now.set(now.get() + 150);
            }
        };
        segment(0, true);
        let missed = view.missed();
        assert!(missed > 0);
        segment(20, false);
        segment(40, false);
        assert_eq!(numbers, [0, 2, 4, 20, 22, 24, 40, 42, 44]);
        let samples: Vec<_> = from_fn(|| drain.pop()).map(|sample| sample.cycle).collect();
        assert_eq!((samples, view.count()), (vec![0, 2, 4], 3));
        assert_eq!((view.missed(), view.unrecorded()), (missed, 0));
    }
}
