//! Releases on the time of another clock than CLOCK_MONOTONIC: TAI, the time of day, PTP, a bus.
//!
//! For loops whose releases have to lie on that clock's timescale. A thread reads the reference
//! beside CLOCK_MONOTONIC and steers a map from one to the other;
//! [`Follower::clock`] is a clock on the reference's time, for a loop or an executive. No period is
//! longer or shorter than the limit allows. Steps and stops of the reference are counted. A clock
//! that the system does not have, a bus's or a sound card's, is read by a
//! [callback](Reference::Callback).
//!
//! ```
//! # mod punctual {
//! #     pub use punctual_core::clock::Clock;
//! #     pub use punctual_engine::{error::Error, follow};
//! # }
//! use punctual::Clock;
//! use punctual::follow::{Follow, Reference};
//!
//! let follower = Follow::new(Reference::Tai).start()?;
//! let mut clock = follower.clock();
//! // Nanoseconds since 1970, not since the machine started.
//! assert!(clock.now().as_ns() > 1_000_000_000_000_000_000);
//! assert_eq!(follower.status().steps, 0);
//! # Ok::<(), punctual::Error>(())
//! ```

mod reference;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use punctual_core::clock::Clock;
use punctual_core::follow::{Following, Servo, Shared};
use punctual_core::time::{Instant, Span};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::sleep_until_ns;
use punctual_os::fork::Origin;

use crate::clocks::{MachineClock, monotonic_now};
use crate::error::{Error, FollowError, Kind};
use crate::spawn::{self, OwnThread};

pub use punctual_core::follow::{ClockReading, Last, ServoStatus, Settings};
pub use reference::PtpClock;
pub use reference::Reference;

/// Tries of the first reading.
const TRIES: usize = 5;

/// The readings that determine the rate before the map is used, and the time between them.
const FIRST: usize = 16;

const FIRST_EVERY: Span = Span::from_ms(5);

/// The most that a grid's time may be made to differ from CLOCK_MONOTONIC's, parts in 10⁹.
const LIMIT_MAX_PPB: i64 = 100_000_000;

/// The shortest time between two readings.
const EVERY_MIN: Span = Span::from_ms(1);

/// The longest sleep of the thread: how soon it ends once the last share is dropped.
const NAP: Span = Span::from_ms(50);

/// A reference to be followed, with the limits, the time between readings and the lead.
#[derive(Debug)]
pub struct Follow {
    reference: Reference,
    settings: Settings,
    every: Span,
    lead: Span,
    cpus: CpuMask,
}

impl Follow {
    /// Follows this reference with a reading every half second, and corrects by at most 100 parts
    /// in a million. The defaults suit loops with periods up to 100 ms.
    ///
    /// # Real-time: setup only
    pub fn new(reference: Reference) -> Self {
        let (every, lead) = (Span::from_ms(500), Span::from_ms(100));
        Self { reference, settings: Settings::default(), every, lead, cpus: CpuMask::EMPTY }
    }

    /// Sets the limit of the rate correction, the threshold of a step, and the period.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the time between two readings, at least a millisecond, and the lead by which a
    /// correction is published before it takes effect [default: 500 ms, 100 ms]. `lead` must be at
    /// least the longest period of all loops on this clock, which is refused otherwise, and shorter
    /// than `every`. An executive looks every 100 ms, so that its periods may be longer than that.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn every(mut self, every: Span, lead: Span) -> Self {
        (self.every, self.lead) = (every, lead);
        self
    }

    /// Sets the CPUs on which the reading thread runs, where the kernel permits it [default: any].
    /// A driver may keep its CPU busy for some microseconds during each reading.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn cpus(mut self, cpus: impl IntoIterator<Item = u32>) -> Self {
        self.cpus = CpuMask::EMPTY;
        cpus.into_iter().for_each(|cpu| self.cpus.insert(cpu));
        self
    }

    /// Reads the reference for the first time, determines its rate from some more readings (80 ms),
    /// and starts the thread that goes on reading it.
    ///
    /// # Errors
    /// A setting out of range; the reference cannot be read; the thread cannot be started.
    ///
    /// # Real-time: setup only
    pub fn start(mut self) -> Result<Follower, Error> {
        self.check()?;
        let Some(first) = (0..TRIES).find_map(|_| self.reference.read()) else {
            return Err(FollowError::Unreadable(format!("{:?}", self.reference)).into());
        };
        let mut servo = Servo::new(self.settings, first);
        for _ in 1..FIRST {
            pause(FIRST_EVERY);
            if let Some(reading) = self.reference.read() {
                servo.follow(reading, reading.monotonic);
            }
        }
        servo.begin();
        let common = Arc::new(Common::new(self.settings, self.lead));
        common.shared.publish(&servo);
        let (theirs, origin) = (Arc::clone(&common), Origin::here());
        let run = move || {
            if self.cpus != CpuMask::EMPTY {
                let _anywhere = affinity::set(0, &self.cpus);
            }
            let mut next = monotonic_now() + self.every;
            while theirs.nap(next) {
                next = next.max(monotonic_now()) + self.every;
                match origin.callback(|| self.reference.read()) {
                    Some(reading) => theirs.follow(&mut servo, reading, self.lead),
                    None => theirs.unread(),
                }
            }
        };
        let thread = spawn::plain("punctual-follow", run).map_err(FollowError::Thread)?;
        Ok(Follower::new(common, thread))
    }

    fn check(&self) -> Result<(), FollowError> {
        let Self { settings, every, lead, .. } = *self;
        if every < EVERY_MIN {
            return Err(FollowError::Every { got: every, least: EVERY_MIN });
        }
        if lead < Span::ZERO || lead >= every {
            return Err(FollowError::Lead(lead, every));
        }
        let in_range = (0..=LIMIT_MAX_PPB).contains(&settings.limit_ppb)
            && settings.step >= Span::ZERO
            && settings.period_ns != Some(0);
        if in_range {
            Ok(())
        } else {
            Err(FollowError::Settings { got: settings, limit_max_ppb: LIMIT_MAX_PPB })
        }
    }
}

/// A reference that is followed, until this, all its clones and all its clocks are dropped: each
/// clock keeps it alive, for loops that outlive the scope in which it was started. Reading never
/// waits.
#[derive(Clone, Debug)]
pub struct Follower(Arc<Thread>);

/// A clock on the timescale of the reference; made by [`Follower::clock`].
pub type FollowedClock<C = MachineClock> = Following<Follower, C>;

/// The thread that reads, ended when the last share is dropped.
#[derive(Debug)]
struct Thread {
    common: Arc<Common>,
    thread: OwnThread<()>,
}

impl AsRef<Shared> for Follower {
    #[inline]
    fn as_ref(&self) -> &Shared {
        &self.0.common.shared
    }
}

impl Follower {
    fn new(common: Arc<Common>, thread: JoinHandle<()>) -> Self {
        Self(Arc::new(Thread { common, thread: OwnThread::new(thread) }))
    }

    /// A clock on the reference's timescale, for `LoopBuilder::start_on` or
    /// `ExecutiveBuilder::clock`: all releases then lie on that timescale. It takes 50 ms to
    /// calibrate.
    ///
    /// # Panics
    /// In a child of fork(2), without the panic hook: the thread that follows is its parent's.
    ///
    /// # Real-time: setup only
    pub fn clock(&self) -> FollowedClock {
        self.over(MachineClock::best())
    }

    /// As [`Follower::clock`], over a clock of the caller's.
    ///
    /// # Panics
    /// As [`Follower::clock`] does.
    ///
    /// # Real-time: setup only
    pub fn over<C: Clock + Clone>(&self, clock: C) -> FollowedClock<C> {
        if !self.0.thread.is_here() {
            // Without the panic hook: another thread of the parent's may hold its locks.
            resume_unwind(Box::new(Error::from(Kind::Forked).to_string()));
        }
        loop {
            if let Some(following) = Following::new(clock.clone(), self.clone()) {
                return following.known_ahead(self.0.common.lead);
            }
            std::hint::spin_loop();
        }
    }

    /// The drift, the phase errors and the steps so far; all 0 in a child of fork(2), where nothing
    /// follows.
    ///
    /// # Real-time: reader side
    pub fn status(&self) -> ServoStatus {
        // The fork may have come within a publication, which nobody would end.
        while self.0.thread.is_here() {
            if let Some(view) = self.0.common.shared.view() {
                return view.status;
            }
            std::hint::spin_loop();
        }
        ServoStatus::default()
    }

    /// The settings with which it follows.
    ///
    /// # Real-time: setup only
    pub fn settings(&self) -> Settings {
        self.0.common.settings
    }

    /// Readings of the reference that failed.
    ///
    /// # Real-time: reader side
    pub fn unread(&self) -> u64 {
        self.0.common.unread.load(Ordering::Relaxed)
    }

    /// Corrections that were published too late, because the thread had no CPU for as long as its
    /// lead while it published. Only then was a period longer or shorter than the limit allows.
    ///
    /// # Real-time: reader side
    pub fn late(&self) -> u64 {
        self.0.common.late.load(Ordering::Relaxed)
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.common.over.store(true, Ordering::Relaxed);
        // A panic of a callback ended the reading: the map stays as it was.
        let _panicked = self.thread.join();
    }
}

/// The state that the reading thread and all its owners share.
#[derive(Debug)]
struct Common {
    shared: Shared,
    settings: Settings,
    lead: Span,
    unread: AtomicU64,
    late: AtomicU64,
    over: AtomicBool,
}

impl Common {
    fn new(settings: Settings, lead: Span) -> Self {
        Self {
            shared: Shared::default(),
            settings,
            lead,
            unread: AtomicU64::new(0),
            late: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Counts a reading that failed.
    fn unread(&self) {
        self.unread.fetch_add(1, Ordering::Relaxed);
    }

    /// Follows a reading, and publishes the correction before it takes effect: a thread that lost
    /// its CPU in between tries again, or drops the reading.
    fn follow(&self, servo: &mut Servo, reading: ClockReading, lead: Span) {
        for _ in 0..TRIES {
            let bend = monotonic_now() + lead;
            let mut next = servo.clone();
            next.follow(reading, bend);
            let bent = next.map() != servo.map();
            if bent && lead > Span::ZERO && bend - monotonic_now() < Span::from_ns(lead.as_ns() / 2)
            {
                continue;
            }
            *servo = next;
            self.shared.publish(servo);
            if bent && lead > Span::ZERO && monotonic_now() >= bend {
                self.late.fetch_add(1, Ordering::Relaxed);
            }
            return;
        }
        self.unread();
    }

    /// Sleeps until `until`; false when the follower ends before that.
    fn nap(&self, until: Instant) -> bool {
        loop {
            if self.over.load(Ordering::Relaxed) {
                return false;
            }
            let now = monotonic_now();
            if now >= until {
                return true;
            }
            // A signal ends the sleep early: the loop checks again.
            let _interrupted = sleep_until_ns(until.min(now + NAP).as_ns());
        }
    }
}

/// Sleeps for this time, also when signals arrive.
fn pause(span: Span) {
    let until = monotonic_now() + span;
    while monotonic_now() < until {
        let _interrupted = sleep_until_ns(until.as_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::Vdso;

    /// A clock 30 000 parts in 10⁹ fast that steps once, by a second.
    fn made_up(stepped: Arc<AtomicBool>) -> Reference {
        Reference::Callback(Box::new(move || {
            let ns = monotonic_now().as_ns();
            let step = if stepped.load(Ordering::Relaxed) { 1_000_000_000 } else { 0 };
            let reference = Instant::from_ns(ns + ns / 1_000_000 * 30 + (1 << 55) + step);
            Some(ClockReading::new(Instant::from_ns(ns), reference, Span::ZERO))
        }))
    }

    /// Waits until the follower has reached this status.
    fn until(follower: &Follower, reached: impl Fn(ServoStatus) -> bool) -> ServoStatus {
        let end = monotonic_now() + Span::from_ms(60_000);
        while !reached(follower.status()) && monotonic_now() < end {
            let _interrupted = sleep_until_ns((monotonic_now() + Span::from_ms(1)).as_ns());
        }
        follower.status()
    }

    #[test]
    fn a_thread_follows_what_it_is_given_and_counts_its_step() {
        let stepped = Arc::new(AtomicBool::new(false));
        let follow = Follow::new(made_up(Arc::clone(&stepped)));
        let follower = follow.every(Span::from_ms(2), Span::from_ms(1)).start().expect("a thread");
        let status = until(&follower, |status| status.readings > 40);
        assert!((status.drift_ppb - 30_000.0).abs() < 3_000.0, "{status:?}");
        assert_eq!(status.steps, 0);
        let mut clock = follower.over(Vdso);
        let before = (clock.wake(), monotonic_now());
        stepped.store(true, Ordering::Relaxed);
        let status = until(&follower, |status| status.steps > 0);
        assert_eq!(status.steps, 1);
        let after = (clock.wake(), monotonic_now());
        let apart = (after.0 - before.0).as_ns() - (after.1 - before.1).as_ns();
        // A part in ten thousand of what has passed, and the time between the two looks.
        assert!(apart.abs() < 500_000_000, "the grid has not stepped: {apart}");
    }

    #[test]
    fn what_cannot_be_read_is_refused_and_what_cannot_any_more_is_counted() {
        let never = Follow::new(Reference::Callback(Box::new(|| None)));
        let refusal = never.start().expect_err("unreadable").to_string();
        assert_eq!(refusal, "Callback cannot be read");
        let mut first = true;
        let once = Reference::Callback(Box::new(move || {
            let ns = monotonic_now().as_ns();
            let at = Instant::from_ns(ns);
            let reading = ClockReading::new(at, at, Span::ZERO);
            std::mem::take(&mut first).then_some(reading)
        }));
        let follower = Follow::new(once).every(Span::from_ms(1), Span::ZERO).start();
        let follower = follower.expect("read once");
        let end = monotonic_now() + Span::from_ms(60_000);
        while follower.unread() == 0 && monotonic_now() < end {
            let _interrupted = sleep_until_ns((monotonic_now() + Span::from_ms(1)).as_ns());
        }
        assert!(follower.unread() > 0);
        assert_eq!(follower.status().readings, 0);
    }

    #[test]
    fn what_was_set_and_cannot_be_is_refused_before_anything_is_read() {
        let unread = || Follow::new(Reference::Callback(Box::new(|| panic!("read"))));
        let refused = |follow: Follow| follow.start().expect_err("refused").to_string();
        let every = |every_ns, lead_ns| {
            refused(unread().every(Span::from_ns(every_ns), Span::from_ns(lead_ns)))
        };
        assert_eq!(
            every(500_000, 0),
            "time between two readings must be at least 1.00 ms (got 500 µs)"
        );
        let lead = "lead must be from 0 to below the time between two readings of 2.00 ms";
        assert_eq!(every(2_000_000, -1), format!("{lead} (got -1 ns)"));
        assert_eq!(every(2_000_000, 2_000_000), format!("{lead} (got 2.00 ms)"));
        let usual = Settings::default();
        for (settings, expected) in [
            (usual.with_limit_ppb(-1), "parts in 10^9 (got -1)"),
            (usual.with_limit_ppb(100_000_001), "parts in 10^9 (got 100000001)"),
            (usual.with_step(Span::from_ns(-1)), "step must not be negative (got -1 ns)"),
            (usual.with_period_ns(Some(0)), "period must be greater than 0"),
        ] {
            let is = refused(unread().settings(settings));
            assert!(is.contains(expected), "{is}");
        }
    }

    #[test]
    fn a_reference_that_stops_is_counted_once() {
        let (stopped, still) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (theirs, at) = (Arc::clone(&stopped), Arc::clone(&still));
        let reference = Reference::Callback(Box::new(move || {
            let ns = monotonic_now().as_ns();
            if !theirs.load(Ordering::Relaxed) {
                at.store(ns, Ordering::Relaxed);
            }
            let reference = Instant::from_ns(at.load(Ordering::Relaxed));
            Some(ClockReading::new(Instant::from_ns(ns), reference, Span::ZERO))
        }));
        let follow = Follow::new(reference).every(Span::from_ms(5), Span::from_ms(1));
        let follower = follow.start().expect("a thread");
        let before = until(&follower, |status| status.readings > 3);
        assert_eq!((before.stops, before.steps), (0, 0));
        stopped.store(true, Ordering::Relaxed);
        let after = until(&follower, |status| status.stops > 0);
        assert_eq!((after.stops, after.steps), (1, 0), "{after:?}");
    }

    #[test]
    fn what_was_thought_of_too_late_is_not_published() {
        let common = Common::new(Settings::default(), Span::from_ms(100));
        let reading = |ns: u64| {
            let at = Instant::from_ns(ns);
            ClockReading::new(at, at + Span::from_ns(ns.cast_signed() / 50_000), Span::ZERO)
        };
        let mut servo = Servo::new(Settings::default(), reading(1_000_000_000));
        common.shared.publish(&servo);
        let (map, turn) = (servo.map(), common.shared.turn());
        // No thread is as quick as this lead asks for.
        common.follow(&mut servo, reading(2_000_000_000), Span::from_ns(2));
        assert_eq!((servo.map(), common.shared.turn()), (map, turn));
        assert_eq!(common.unread.load(Ordering::Relaxed), 1);
        common.follow(&mut servo, reading(2_000_000_000), Span::from_ms(60_000));
        assert_ne!(servo.map(), map);
        assert_eq!(common.shared.view().map(|view| view.map), Some(servo.map()));
        let counts = (common.unread.load(Ordering::Relaxed), common.late.load(Ordering::Relaxed));
        assert_eq!(counts, (1, 0));
    }

    #[test]
    fn it_is_on_the_references_time_also_when_its_maker_let_go() {
        let follower = Follow::new(Reference::Tai).start().expect("it can be read");
        let mut clock = follower.over(Vdso);
        drop(follower);
        let (before, monotonic) = (clock.now(), Vdso.now());
        assert!(before > monotonic, "seconds since 1970, not since the machine started");
        let until = before + Span::from_ms(1);
        while clock.wake() < until {
            clock.sleep_until(until);
        }
        assert!(clock.poll() >= until);
    }
}
