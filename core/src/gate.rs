//! The gate of a loop of one period: waits for the next release, and returns its cycle and the
//! releases missed before it.
//!
//! For such loops: the library's own, the periodic experiment's and that of `measure work`. Never
//! allocates, never fails, calls nothing but the clock, the wait and the observer that it is given.
//!
//! Between the end of a sleep and the body stand, in this order: the stamp of its end, the clock's
//! new anchor (a read of the kernel's clock and one more of the counter), the spin where the wait
//! has one, a load of the stop flag, what was missed, the cycle. The start of the cycle is the last
//! poll of the spin; without one, that stamp. Where a wait with a spin has no time to sleep, the
//! clock is anchored before the spin all the same. What counts and records the cycle before (the
//! observer), and the search for releases that passed while the body ran, stand at the beginning of
//! the next wait.
//!
//! After a stall in the wait the oldest release runs, and carries the whole lateness; the others
//! that passed are missed, and so are those that pass while the body runs. A missed release never
//! runs later, and the loop keeps its phase.

use core::sync::atomic::{AtomicBool, Ordering};

use crate::clock::{self, Clock};
use crate::cycle::{Cycle, Ended, Job, Missed, Observe, Overruns};
use crate::releases::Releases;
use crate::stop::StopRequest;
use crate::time::{Instant, Span};
use crate::wait::Wait;

/// The longest sleep of a loop before it looks whether it is to stop.
pub const LOOK: Span = Span::from_ms(100);

/// A loop of one period: a clock, a wait, and an observer of each cycle.
///
/// Call [`Gate::wait`] once a cycle and run the body after it. A loop that breaks off before `wait`
/// has returned an end calls [`Gate::finish`]: without that its last cycle, and what passed in it,
/// are not counted. Of several tasks in one thread: [`crate::executive`].
#[derive(Debug)]
pub struct Gate<C, W, O> {
    /// The clock that it reads and sleeps by; its instants are those of the releases.
    pub clock: C,
    /// The wait for a release.
    pub wait: W,
    /// The observer that is given each cycle, at the beginning of the wait after it.
    pub observe: O,
    releases: Releases,
    /// The number of the first release that does not run any more.
    end: u64,
    /// The first release that has neither run nor passed.
    next: u64,
    /// The cycle that runs, until the observer is given it.
    running: Option<Job>,
    /// The start of the last cycle that began.
    start: Instant,
    /// The number of the last cycle that began, and its release.
    last: Option<(u64, Instant)>,
    /// The instant that the end is of.
    end_at: Option<Instant>,
}

impl<C: Clock, W: Wait, O: Observe> Gate<C, W, O> {
    /// A loop whose first release is number `first` of `releases`.
    ///
    /// # Real-time: setup only
    pub fn new(clock: C, wait: W, observe: O, releases: Releases, first: u64) -> Self {
        Self {
            clock,
            wait,
            observe,
            releases,
            end: u64::MAX,
            next: first,
            running: None,
            start: Instant::from_ns(0),
            last: None,
            end_at: None,
        }
    }

    /// Sets an end: releases at or after it do not run.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn until(mut self, end: Instant) -> Self {
        self.end_at(end);
        self
    }

    /// From now on releases at or after `end` do not run.
    ///
    /// # Real-time: in loop
    pub fn end_at(&mut self, end: Instant) {
        self.end_at = Some(end);
        self.end = self.releases.at_or_after(end);
    }

    /// Begins anew, without an end: its first release is number `first` of `releases`. An end is
    /// kept as the number of a release, so that a wait compares numbers alone; one that was set
    /// before this call meant the grid before, and is dropped: set it again.
    ///
    /// # Real-time: in loop
    pub fn begin(&mut self, releases: Releases, first: u64) {
        (self.releases, self.end, self.next) = (releases, u64::MAX, first);
        (self.last, self.running, self.end_at) = (None, None, None);
    }

    /// Moves all releases from the next one on by so much, less than a period: those that have run
    /// stay what they were, and no number is left out. Returns false, and moves nothing, where
    /// releases have passed since the last cycle: they are late by where they were.
    ///
    /// # Real-time: in loop
    pub fn postpone(&mut self, by: Span) -> bool {
        debug_assert!(by < self.releases.period().as_span(), "a number would be left out: {by:?}");
        let passed = self.last.is_some_and(|(last, _)| last + 1 != self.next)
            || self.clock.poll() >= self.releases.release(self.next);
        if passed {
            return false;
        }
        self.releases = self.releases.later(by);
        if let Some(end) = self.end_at {
            self.end = self.releases.at_or_after(end);
        }
        true
    }

    /// Waits for the next release that is still to come, and returns its cycle. The one before is
    /// over with this call: its finish is stamped first of all, and the observer is given it.
    ///
    /// # Errors
    ///
    /// [`Ended::Finished`] at the end that was set, [`Ended::Stopped`] where `stop` was set. The
    /// observer has counted everything then.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    pub fn wait(&mut self, stop: &impl StopRequest) -> Result<Cycle<'static>, Ended> {
        if self.last.is_some() {
            let finish = self.end_of_body();
            self.observe_end(finish);
            if finish >= self.releases.release(self.next) {
                // They passed while the body ran.
                self.next = self.releases.released(finish).min(self.end);
            }
        }
        let n = self.next;
        if n >= self.end {
            let now = self.clock.now();
            return Err(self.ended(Ended::Finished, now));
        }
        let release = self.releases.release(n);
        if self.releases.period().as_span() > LOOK {
            self.approach(release, stop.flag());
        }
        let wake = self.wait.until(&mut self.clock, release, stop.flag());
        if stop.flag().load(Ordering::Relaxed) {
            let at = stop.requested_on(&mut self.clock).unwrap_or(release - Span::from_ns(1));
            if at < release {
                // It was waited for when the stop was requested.
                return Err(self.ended(Ended::Stopped, at));
            }
        }
        // A wait that lost its CPU between its stamp and its look at the flag has found the stop
        // first, and the release has passed all the same.
        let wake = match wake {
            Some(wake) => wake,
            None => self.clock.wake().max(release),
        };
        let mut following = n + 1;
        let mut next = self.releases.release(following);
        if wake >= next {
            // They passed in a stall of the wait, or of the machine.
            following = self.releases.released(wake);
            next = self.releases.release(following);
            following = following.min(self.end);
        }
        let missed = self.last.map_or(0, |(last, _)| n - last - 1);
        let (passed, period) = (following - n - 1, self.releases.period());
        let job = Job { rank: 0, cycle: n, part: 0, release, next, missed, passed, period };
        // A first cycle has its period to go on by.
        let dt = match self.last {
            Some((_, before)) => release - before,
            None => period.as_span(),
        };
        (self.last, self.next) = (Some((n, release)), following);
        (self.running, self.start) = (Some(job), wake);
        Ok(Cycle::new(&job, wake, dt))
    }

    /// Sleeps until [`LOOK`] before the release, or until `stop` is set. Not on a clock of its own,
    /// such as a simulated one: there a sleep belongs to its release, and passes at once.
    #[cold]
    fn approach(&mut self, release: Instant, stop: &AtomicBool) {
        if self.clock.at_monotonic(release).is_none() {
            return;
        }
        let mut now = self.clock.wake();
        while release - now > LOOK && !stop.load(Ordering::Relaxed) {
            self.clock.sleep_until(now + LOOK);
            now = self.clock.wake();
        }
    }

    /// Runs to the end, or until `stop` is set, with a body that does nothing.
    ///
    /// # Real-time: in loop, waits
    pub fn run(&mut self, stop: &impl StopRequest) -> Ended {
        loop {
            if let Err(ended) = self.wait(stop) {
                return ended;
            }
        }
    }

    /// Gives the observer the cycle that ran up to now, and what passed since, up to `stop` where
    /// that was requested: for the end of a loop that breaks off. Does nothing where
    /// [`Gate::wait`] has returned an end.
    ///
    /// # Real-time: in loop
    pub fn finish(&mut self, stop: &impl StopRequest) {
        if self.last.is_some() {
            self.count();
            // Anchored anew: the machine may have been suspended since it was last.
            let now = self.clock.wake();
            let at = stop.requested_on(&mut self.clock).unwrap_or(now);
            let _why = self.ended(Ended::Stopped, at);
        }
    }

    /// Gives the observer the cycle that runs, as if it were over now: for a body that reads the
    /// observer's counters.
    ///
    /// # Real-time: in loop
    pub fn count(&mut self) {
        if self.running.is_some() {
            let finish = self.end_of_body();
            self.observe_end(finish);
        }
    }

    /// The end of the body that ran, now; also where the observer was given its cycle before.
    #[inline]
    fn end_of_body(&mut self) -> Instant {
        let finish = self.clock.poll();
        clock::end_of(&mut self.clock, self.start, finish)
    }

    /// The grid that it waits on.
    ///
    /// # Real-time: in loop
    pub fn releases(&self) -> &Releases {
        &self.releases
    }

    /// Gives the observer the cycle that ran, over at `finish`; once, where it is called again.
    #[inline]
    fn observe_end(&mut self, finish: Instant) {
        if let Some(job) = self.running.take() {
            let over_release = finish >= job.next;
            let overruns = Overruns { over_release, ..Overruns::default() };
            self.observe.ran(&job, self.start, finish, overruns);
        }
    }

    /// Gives the observer what passed since the last cycle up to `at`, and is missed.
    #[cold]
    fn ended(&mut self, ended: Ended, at: Instant) -> Ended {
        let first = self.last.map_or(self.next, |(last, _)| last + 1);
        let released = self.releases.released(at).min(self.end).max(first);
        let count = released - first;
        if count > 0 {
            let missed = Missed { releases: self.releases, first, count };
            self.observe.never_ran(0, missed, at);
        }
        (self.next, self.last) = (released, None);
        ended
    }
}

#[cfg(test)]
mod tests {
    //! The gate in a simulated clock, against a model that looks at every single release.

    use std::collections::BTreeMap;
    use std::vec::Vec;

    use super::*;
    use crate::bucket::{self, BucketPlace};
    use crate::stats::{Page, PageKind, View, WORDS};
    use crate::stop::StopFlag;
    use crate::testing::{Now, Random};
    use crate::time::Period;
    use crate::wait::adaptive::Target;
    use crate::wait::{Adaptive, Sleep, Spin, Strategy};
    use core::cell::Cell;
    use core::sync::atomic::AtomicU64;

    /// A wait that is late by a script.
    struct Late<'c, I>(&'c Cell<u64>, I);

    impl<'c, I: Iterator<Item = u64>> Wait for Late<'c, I> {
        fn until<C: Clock>(
            &mut self,
            _: &mut C,
            release: Instant,
            stop: &AtomicBool,
        ) -> Option<Instant> {
            let at = self.0.get().max(release.as_ns()) + self.1.next().unwrap_or(0);
            self.0.set(at);
            let stopped = stop.load(Ordering::Relaxed);
            (!stopped).then_some(Instant::from_ns(at))
        }
    }

    /// Lateness by the definition: of a release that ran its start, of another one the first start
    /// at or after it, and a period at least.
    fn by_definition(
        releases: &Releases,
        starts: &BTreeMap<u64, u64>,
        (first, end): (u64, u64),
        over_ns: u64,
    ) -> (Vec<i64>, u64) {
        let (mut latenesses, mut censored) = (Vec::new(), 0);
        for k in first..end {
            let release = releases.release(k).as_ns();
            let late = match starts.get(&k) {
                Some(start) => start - release,
                None => {
                    let after = starts.values().find(|&&start| start >= release);
                    censored += u64::from(after.is_none());
                    (after.unwrap_or(&over_ns) - release).max(releases.period().as_ns())
                }
            };
            latenesses.push(late.cast_signed());
        }
        (latenesses, censored)
    }

    #[test]
    fn every_release_counts_once_whatever_stalls_and_overruns() {
        let mut ends = [0; 2];
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let period = Period::from_ns(50 + random.below(2_000)).expect("in range");
            let releases = Releases::aligned(Instant::from_ns(5_000), period, random.below(40));
            let (now, stop) = (Cell::new(4_900), StopFlag::default());
            let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
            let page = Page::new(&words, PageKind::Lateness).expect("large enough");
            let mut stalls = Random::new(seed ^ 77);
            let script = core::iter::from_fn(move || {
                Some(if stalls.below(9) == 0 { stalls.below(300_000) } else { stalls.below(40) })
            });
            let first = random.below(5);
            let mut gate = Gate::new(Now(&now), Late(&now, script), page, releases, first)
                .until(releases.release(first + 500));
            let (mut starts, mut counted, mut last, mut over) = (BTreeMap::new(), 0, None, None);
            let ended = loop {
                let cycle = match gate.wait(&stop) {
                    Ok(cycle) => cycle,
                    Err(ended) => break ended,
                };
                starts.insert(cycle.n, (cycle.release + cycle.lateness).as_ns());
                counted += cycle.missed;
                let dt = last.map_or(period.as_ns(), |last| (cycle.n - last) * period.as_ns());
                assert_eq!(cycle.dt.as_ns().unsigned_abs(), dt, "seed {seed}");
                assert_eq!(cycle.release, releases.release(cycle.n));
                let start = cycle.release + cycle.lateness;
                assert!(cycle.next > start && cycle.next <= start + Span::from_ns(2_050));
                last = Some(cycle.n);
                let body =
                    if random.below(12) == 0 { random.below(90_000) } else { random.below(30) };
                now.set(now.get() + body);
                if seed % 2 == 1 && starts.len() > 8 {
                    stop.request(Instant::from_ns(now.get()));
                    over.get_or_insert(now.get());
                }
            };
            // What is due after a stop is no release of the run.
            let over_ns = over.unwrap_or(now.get());
            let end = releases.released(Instant::from_ns(over_ns)).min(first + 500);
            ends[usize::from(ended == Ended::Stopped)] += 1;
            let (latenesses, censored) = by_definition(&releases, &starts, (first, end), over_ns);
            let mut buckets = std::boxed::Box::new([0; bucket::COUNT]);
            let counts = View::open(&words).expect("a page").read(&mut buckets);
            assert_eq!(counts.ran, starts.len() as u64, "seed {seed}");
            assert_eq!(counts.ran + counts.missed, end - first, "seed {seed}");
            assert!(counted <= counts.missed);
            assert_eq!(counts.censored, censored, "seed {seed}");
            assert_eq!(
                counts.max.map(Span::as_ns),
                latenesses.iter().max().copied(),
                "seed {seed}"
            );
            assert_eq!(
                counts.min.map(Span::as_ns),
                latenesses.iter().min().copied(),
                "seed {seed}"
            );
            let mut expected = std::boxed::Box::new([0u64; bucket::COUNT]);
            for &late in &latenesses {
                let BucketPlace::In(at) = bucket::index(late) else {
                    panic!("{late} has a bucket")
                };
                expected[at] += 1;
            }
            assert!(buckets == expected, "seed {seed}");
        }
        assert!(ends[0] >= 100 && ends[1] > 30, "finished and stopped: {ends:?}");
    }

    #[test]
    fn a_cycle_that_ends_at_its_next_release_has_overrun_and_missed_it() {
        let releases =
            Releases::new(Instant::from_ns(1_000), Period::from_ns(100).expect("in range"));
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let page = Page::new(&words, PageKind::Lateness).expect("large enough");
        let (now, stop) = (Cell::new(950), AtomicBool::new(false));
        let mut gate = Gate::new(Now(&now), Late(&now, core::iter::empty()), page, releases, 0);
        let mut next = |finish_ns: u64| {
            let cycle = gate.wait(&stop).expect("no end");
            now.set(finish_ns);
            (cycle.n, cycle.missed)
        };
        // One ends a nanosecond before its next release, one at it.
        assert_eq!([next(1_099), next(1_200), next(1_350)], [(0, 0), (1, 0), (3, 1)]);
        let counts = View::open(&words).expect("a page").counts();
        assert_eq!((counts.ran, counts.over_release, counts.missed), (2, 1, 0));
    }

    #[test]
    fn after_a_stall_the_oldest_release_runs_and_after_a_long_body_the_next_to_come() {
        let releases =
            Releases::new(Instant::from_ns(1_000), Period::from_ns(100).expect("in range"));
        let now = Cell::new(950);
        let wait = Late(&now, [0, 350, 0, 0].into_iter());
        let mut gate = Gate::new(Now(&now), wait, (), releases, 0);
        let stop = AtomicBool::new(false);
        let next = |gate: &mut Gate<_, _, _>, body: u64| {
            let cycle: Cycle<'static> = gate.wait(&stop).expect("no end");
            now.set(now.get() + body);
            (cycle.n, cycle.lateness.as_ns(), cycle.missed, cycle.dt.as_ns(), cycle.next.as_ns())
        };
        assert_eq!(next(&mut gate, 10), (0, 0, 0, 100, 1_100));
        // Due at 1100, awake at 1450: releases 2, 3 and 4 passed in the stall.
        assert_eq!(next(&mut gate, 10), (1, 350, 0, 100, 1_500));
        // And the body of 5 runs until 1790: 6 and 7 pass.
        assert_eq!(next(&mut gate, 290), (5, 0, 3, 400, 1_600));
        assert_eq!(next(&mut gate, 10), (8, 0, 2, 300, 1_900));
    }

    #[test]
    fn releases_are_moved_only_where_none_has_passed_since_the_last_cycle() {
        let (now, stop) = (Cell::new(900), StopFlag::default());
        let releases = Releases::new(Instant::from_ns(1_000), Period::from_ns(100).expect("one"));
        let late = Late(&now, [0, 250].into_iter());
        let mut gate = Gate::new(Now(&now), late, (), releases, 0);
        let next = |gate: &mut Gate<_, _, _>| {
            let cycle = gate.wait(&stop).expect("it goes on");
            (cycle.n, cycle.release.as_ns(), cycle.lateness.as_ns(), cycle.missed)
        };
        let by = Span::from_ns(30);
        assert_eq!(next(&mut gate), (0, 1_000, 0, 0));
        assert_eq!(next(&mut gate), (1, 1_100, 250, 0));
        assert!(!gate.postpone(by), "releases 2 and 3 passed");
        assert_eq!(next(&mut gate), (4, 1_400, 0, 2));
        now.set(now.get() + 120);
        assert!(!gate.postpone(by), "release 5 passed while the body ran");
        assert_eq!(next(&mut gate), (6, 1_600, 0, 1));
        assert!(gate.postpone(by));
        assert_eq!(next(&mut gate), (7, 1_730, 0, 0));
    }

    /// A wait that loses its CPU before it looks at the flag, and is stopped meanwhile.
    struct Starved<'t>(&'t Cell<u64>, &'t StopFlag);

    impl Wait for Starved<'_> {
        fn until<C: Clock>(
            &mut self,
            _: &mut C,
            release: Instant,
            _: &AtomicBool,
        ) -> Option<Instant> {
            self.1.request(release + Span::from_ns(2_050));
            self.0.set(release.as_ns() + 3_070);
            None
        }
    }

    #[test]
    fn a_stop_that_came_behind_a_release_leaves_it_as_late_as_it_was() {
        let (now, stop) = (Cell::new(900), StopFlag::default());
        let releases = Releases::new(Instant::from_ns(1_000), Period::from_ns(100).expect("one"));
        let mut gate = Gate::new(Now(&now), Starved(&now, &stop), (), releases, 0);
        let cycle = gate.wait(&stop).expect("it was released");
        assert_eq!((cycle.n, cycle.lateness.as_ns()), (0, 3_070));
    }

    /// A clock on which somebody requests a stop in the sleep of this number.
    struct StoppedIn<'s> {
        now_ns: u64,
        sleeps: u64,
        stops_in: u64,
        /// So much later its next sleep ends.
        late_ns: u64,
        stop: &'s StopFlag,
        is_simulated: bool,
    }

    impl<'s> StoppedIn<'s> {
        fn new(stop: &'s StopFlag, stops_in: u64, is_simulated: bool) -> Self {
            Self { now_ns: 7, sleeps: 0, stops_in, late_ns: 0, stop, is_simulated }
        }
    }

    impl Clock for StoppedIn<'_> {
        fn now(&mut self) -> Instant {
            Instant::from_ns(self.now_ns)
        }

        fn poll(&mut self) -> Instant {
            self.now()
        }

        fn sleep_until(&mut self, at: Instant) {
            self.sleeps += 1;
            if self.sleeps == self.stops_in {
                self.stop.request(Instant::from_ns(self.now_ns + 1));
            }
            self.now_ns = self.now_ns.max(at.as_ns()) + core::mem::take(&mut self.late_ns);
        }

        fn wake(&mut self) -> Instant {
            self.now()
        }

        fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
            (!self.is_simulated).then_some(at)
        }

        fn relax(&mut self) {}
    }

    #[test]
    fn a_flag_alone_that_is_set_while_it_sleeps_ends_it_before_the_release() {
        let releases = Releases::new(Instant::from_ns(1_000), Period::from_ns(100).expect("one"));
        let (now, stop) = (Cell::new(900), AtomicBool::new(false));
        /// A wait in which the flag is set.
        struct Set<'c>(&'c Cell<u64>, &'c AtomicBool);
        impl Wait for Set<'_> {
            fn until<C: Clock>(
                &mut self,
                _: &mut C,
                release: Instant,
                _: &AtomicBool,
            ) -> Option<Instant> {
                self.0.set(release.as_ns() + 5);
                self.1.store(true, Ordering::Relaxed);
                Some(release + Span::from_ns(5))
            }
        }
        let mut gate = Gate::new(Now(&now), Set(&now, &stop), (), releases, 0);
        assert_eq!(gate.wait(&stop).map(|cycle| cycle.n), Err(Ended::Stopped));
    }

    /// A counter that goes on while the machine is suspended, until it is anchored anew.
    struct Suspended<'c> {
        now_ns: &'c Cell<u64>,
        suspended_ns: &'c Cell<u64>,
    }

    impl Clock for Suspended<'_> {
        fn now(&mut self) -> Instant {
            Instant::from_ns(self.now_ns.get() + self.suspended_ns.get())
        }
        fn poll(&mut self) -> Instant {
            self.now()
        }
        fn sleep_until(&mut self, at: Instant) {
            self.now_ns.set(self.now_ns.get().max(at.as_ns()));
        }
        fn wake(&mut self) -> Instant {
            self.suspended_ns.set(0);
            self.now()
        }
        fn relax(&mut self) {}
    }

    #[test]
    fn a_suspend_while_a_body_runs_misses_no_release() {
        let (now, suspended) = (Cell::new(900_000), Cell::new(0));
        let period = Period::from_ns(1_000_000).expect("in range");
        let releases = Releases::new(Instant::from_ns(1_000_000), period);
        let clock = Suspended { now_ns: &now, suspended_ns: &suspended };
        let mut gate = Gate::new(clock, Sleep, (), releases, 0);
        let stop = AtomicBool::new(false);
        for n in 0..6 {
            let cycle = gate.wait(&stop).expect("no end");
            assert_eq!((cycle.n, cycle.missed), (n, 0));
            now.set(now.get() + 20_000);
            if n == 3 {
                gate.count();
            }
            if n == 2 || n == 3 {
                suspended.set(3_600_000_000_000);
            }
        }
        // What passes by CLOCK_MONOTONIC is missed.
        now.set(now.get() + 200_000_000);
        assert_eq!(gate.wait(&stop).map(|cycle| cycle.missed), Ok(200));
        // Also where it is the last one, and the loop breaks off.
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let page = Page::new(&words, PageKind::Lateness).expect("large enough");
        let clock = Suspended { now_ns: &now, suspended_ns: &suspended };
        let mut gate = Gate::new(clock, Sleep, page, releases, 300);
        gate.wait(&stop).expect("no end");
        suspended.set(3_600_000_000_000);
        gate.finish(&stop);
        let counts = View::open(&words).expect("a page").counts();
        assert_eq!((counts.ran, counts.over_release, counts.missed), (1, 0, 0));
    }

    #[test]
    fn a_stop_ends_a_long_sleep_within_a_tenth_of_a_second_and_a_stall_in_it_is_no_miss() {
        let period = Period::from_ns(1_000_000_000).expect("in range");
        let waits = [
            Strategy::Sleep(Sleep),
            Strategy::Spin(Spin::new(Span::from_us(50))),
            Strategy::Adaptive(Adaptive::new(Target::of(period))),
        ];
        let releases = Releases::new(Instant::from_ns(0), period);
        for wait in waits {
            for stops_in in [1, 3, 9] {
                let stop = StopFlag::default();
                let clock = StoppedIn::new(&stop, stops_in, false);
                let mut gate = Gate::new(clock, wait.clone(), (), releases, 1);
                assert_eq!(gate.wait(&stop).map(|cycle| cycle.n), Err(Ended::Stopped));
                assert_eq!(gate.clock.now_ns, 7 + stops_in * 100_000_000);
            }
        }
        // One sleep belongs to each release of a simulation.
        let stop = StopFlag::default();
        let mut gate = Gate::new(StoppedIn::new(&stop, 0, true), Sleep, (), releases, 1);
        assert_eq!(gate.wait(&stop).map(|cycle| cycle.n), Ok(1));
        assert_eq!(gate.clock.sleeps, 1);
        // The oldest release runs after a stall, in whatever sleep that was.
        (gate.clock.is_simulated, gate.clock.late_ns) = (false, 2_500_000_000);
        let cycle = gate.wait(&stop).expect("not stopped");
        assert_eq!((cycle.n, cycle.missed), (2, 0));
        assert_eq!(cycle.lateness, Span::from_ns(1_600_000_000));
    }
}
