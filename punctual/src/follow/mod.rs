//! A grid that follows another clock than CLOCK_MONOTONIC: TAI, the time of day, PTP, a bus.
//!
//! For loops whose releases are to lie on that clock's timescale. A thread reads it beside
//! CLOCK_MONOTONIC and steers a map of one onto the other ([`punctual_core::follow`]); the loop's
//! clock is wrapped ([`Follower::clock`]) and its grid laid out on the reference's time. No period
//! is ever longer or shorter than the limit says, and a reference that steps or stops is counted.
//! A grid that follows nothing is on CLOCK_MONOTONIC, which is the default everywhere. What is none
//! of the system's clocks, a bus's or a sound card's, is given as a
//! [callback](Reference::Callback).
//!
//! ```
//! use punctual::clocks::Vdso;
//! use punctual::core::clock::Clock;
//! use punctual::follow::{Follow, Reference};
//!
//! let follower = Follow::new(Reference::Tai).start()?;
//! let mut clock = follower.clock(Vdso);
//! // Seconds since 1970, not since the machine started.
//! assert!(clock.now() > Vdso.now());
//! assert_eq!(follower.status().steps, 0);
//! # Ok::<(), punctual::follow::FollowError>(())
//! ```

mod error;
mod ptp;
mod reference;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use punctual_core::clock::Clock;
pub use punctual_core::follow::{Event, Following, Last, Map, Reading, Settings, Status};
use punctual_core::follow::{Servo, Shared};
use punctual_core::time::{Instant, Span};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

pub use error::FollowError;
pub use ptp::PtpClock;
pub use reference::Reference;

/// The longest sleep of the thread: how soon it ends when it is told to.
const NAP: Span = Span::from_ms(50);
/// How often a first reading is tried.
const TRIES: usize = 5;
/// Readings before the first look at the map, from which the rate is known, and their distance.
const FIRST: usize = 16;
const FIRST_EVERY: Span = Span::from_ms(5);

/// How a reference is to be followed.
#[derive(Debug)]
pub struct Follow {
    reference: Reference,
    settings: Settings,
    every: Span,
    lead: Span,
    cpus: CpuMask,
}

/// A reference that is followed, until this is dropped.
#[derive(Debug)]
pub struct Follower {
    common: Arc<Common>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread and its owner share.
#[derive(Debug)]
struct Common {
    shared: Shared,
    settings: Settings,
    unread: AtomicU64,
    over: AtomicBool,
}

impl Follow {
    /// The shortest distance of two readings.
    pub const EVERY_MIN: Span = Span::from_ms(1);

    /// Follows with readings every half second, by 100 parts in a million at most, for loops that
    /// look at their clock every 100 ms or more often.
    ///
    /// # Real-time: setup only
    pub fn new(reference: Reference) -> Self {
        let (every, lead) = (Span::from_ms(500), Span::from_ms(100));
        Self { reference, settings: Settings::default(), every, lead, cpus: CpuMask::EMPTY }
    }

    /// Sets the limit, the threshold of a step, and the period.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets how often the reference is read, at least a millisecond apart, and how long before a
    /// bend it is published: at least the longest period of all loops on it, and less than the
    /// distance of two readings. [`Follow::start`] refuses what cannot be.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn every(mut self, every: Span, lead: Span) -> Self {
        (self.every, self.lead) = (every, lead);
        self
    }

    /// Keeps the thread that reads to these CPUs, as far as the kernel lets it; none for any. A
    /// driver may hold its CPU for some microseconds a reading.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn cpus(mut self, cpus: CpuMask) -> Self {
        self.cpus = cpus;
        self
    }

    /// Reads the reference for a first time, takes its rate from some more readings (80 ms), and
    /// starts the thread that goes on with it.
    ///
    /// # Errors
    /// What was set and cannot be; that the reference could not be read, or that there is no
    /// thread.
    ///
    /// # Real-time: setup only
    pub fn start(mut self) -> Result<Follower, FollowError> {
        self.check()?;
        let Some(first) = (0..TRIES).find_map(|_| self.reference.read()) else {
            return Err(FollowError::Unreadable(self.reference));
        };
        let mut servo = Servo::new(self.settings, first);
        for _ in 1..FIRST {
            pause(FIRST_EVERY);
            if let Some(reading) = self.reference.read() {
                servo.follow(reading, reading.monotonic);
            }
        }
        servo.begin();
        let common = Arc::new(Common {
            shared: Shared::default(),
            settings: self.settings,
            unread: AtomicU64::new(0),
            over: AtomicBool::new(false),
        });
        common.shared.publish(&servo);
        let theirs = Arc::clone(&common);
        let run = move || {
            if self.cpus != CpuMask::EMPTY {
                let _anywhere = affinity::set(0, &self.cpus);
            }
            let mut next = monotonic() + self.every;
            while nap(next, &theirs.over) {
                next = next.max(monotonic()) + self.every;
                match self.reference.read() {
                    Some(reading) => {
                        servo.follow(reading, monotonic() + self.lead);
                        theirs.shared.publish(&servo);
                    }
                    None => {
                        theirs.unread.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("punctual follow".to_owned()).spawn(run);
        Ok(Follower { common, thread: Some(thread.map_err(FollowError::Thread)?) })
    }
}

impl Follow {
    fn check(&self) -> Result<(), FollowError> {
        let Self { settings, every, lead, .. } = *self;
        if every < Self::EVERY_MIN {
            return Err(FollowError::Every(every));
        }
        if lead < Span::ZERO || lead >= every {
            return Err(FollowError::Lead(lead, every));
        }
        let can_be = (0..=error::LIMIT_MAX_PPB).contains(&settings.limit_ppb)
            && settings.step >= Span::ZERO
            && settings.period_ns != Some(0);
        if can_be { Ok(()) } else { Err(FollowError::Settings(settings)) }
    }
}

impl Follower {
    /// A clock on the reference's timescale: for the clock of an executive, whose grid, table or
    /// calendar is then laid out on that timescale too.
    ///
    /// # Real-time: setup only
    pub fn clock<C: Clock + Clone>(&self, clock: C) -> Following<'_, C> {
        loop {
            if let Some(following) = Following::new(clock.clone(), &self.common.shared) {
                return following;
            }
            std::hint::spin_loop();
        }
    }

    /// How well it follows.
    ///
    /// # Real-time: reader side
    pub fn status(&self) -> Status {
        loop {
            if let Some(view) = self.common.shared.view() {
                return view.status;
            }
            std::hint::spin_loop();
        }
    }

    /// How it follows.
    ///
    /// # Real-time: setup only
    pub fn settings(&self) -> Settings {
        self.common.settings
    }

    /// How often the reference could not be read.
    ///
    /// # Real-time: reader side
    pub fn unread(&self) -> u64 {
        self.common.unread.load(Ordering::Relaxed)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.common.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _its_panic_is_its_own = thread.join();
        }
    }
}

fn monotonic() -> Instant {
    Instant::from_ns(now_ns(ClockId::Monotonic))
}

/// Sleeps for so long, signals or not.
fn pause(span: Span) {
    let until = monotonic() + span;
    while monotonic() < until {
        let _interrupted = sleep_until_ns(until.as_ns());
    }
}

/// Sleeps until `until`; false when it is over before.
fn nap(until: Instant, over: &AtomicBool) -> bool {
    loop {
        if over.load(Ordering::Relaxed) {
            return false;
        }
        let now = monotonic();
        if now >= until {
            return true;
        }
        // A signal ends it early: the loop looks again.
        let _interrupted = sleep_until_ns(until.min(now + NAP).as_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::Vdso;

    /// A clock 30 000 parts in 10⁹ fast that steps once, by a second.
    fn made_up(stepped: Arc<AtomicBool>) -> Reference {
        Reference::Callback(Box::new(move || {
            let ns = now_ns(ClockId::Monotonic);
            let step = if stepped.load(Ordering::Relaxed) { 1_000_000_000 } else { 0 };
            let reference = Instant::from_ns(ns + ns / 1_000_000 * 30 + (1 << 55) + step);
            Some(Reading { monotonic: Instant::from_ns(ns), reference, width: Span::ZERO })
        }))
    }

    /// Waits until the follower has counted what is asked for.
    fn until(follower: &Follower, reached: impl Fn(Status) -> bool) -> Status {
        let end = monotonic() + Span::from_ms(60_000);
        while !reached(follower.status()) && monotonic() < end {
            let _interrupted = sleep_until_ns((monotonic() + Span::from_ms(1)).as_ns());
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
        let mut clock = follower.clock(Vdso);
        let before = (clock.wake(), monotonic());
        stepped.store(true, Ordering::Relaxed);
        let status = until(&follower, |status| status.steps > 0);
        assert_eq!(status.steps, 1);
        let after = (clock.wake(), monotonic());
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
            let ns = now_ns(ClockId::Monotonic);
            let at = Instant::from_ns(ns);
            let reading = Reading { monotonic: at, reference: at, width: Span::ZERO };
            std::mem::take(&mut first).then_some(reading)
        }));
        let follower = Follow::new(once).every(Span::from_ms(1), Span::ZERO).start();
        let follower = follower.expect("read once");
        let end = monotonic() + Span::from_ms(60_000);
        while follower.unread() == 0 && monotonic() < end {
            let _interrupted = sleep_until_ns((monotonic() + Span::from_ms(1)).as_ns());
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
        assert_eq!(every(500_000, 0), "readings 500 µs apart: at least 1.00 ms");
        let lead = "from 0 to below the distance of two readings, 2.00 ms";
        assert_eq!(every(2_000_000, -1), format!("a lead of -1 ns: {lead}"));
        assert_eq!(every(2_000_000, 2_000_000), format!("a lead of 2.00 ms: {lead}"));
        let usual = Settings::default();
        for (settings, said) in [
            (Settings { limit_ppb: -1, ..usual }, "a limit of -1 parts"),
            (Settings { limit_ppb: 100_000_001, ..usual }, "a limit of 100000001 parts"),
            (Settings { step: Span::from_ns(-1), ..usual }, "steps from -1 ns"),
            (Settings { period_ns: Some(0), ..usual }, "a period of nothing"),
        ] {
            let is = refused(unread().settings(settings));
            assert!(is.contains(said), "{is}");
        }
    }

    #[test]
    fn a_reference_that_stops_is_counted_once() {
        let (stopped, still) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (theirs, at) = (Arc::clone(&stopped), Arc::clone(&still));
        let reference = Reference::Callback(Box::new(move || {
            let ns = now_ns(ClockId::Monotonic);
            if !theirs.load(Ordering::Relaxed) {
                at.store(ns, Ordering::Relaxed);
            }
            let reference = Instant::from_ns(at.load(Ordering::Relaxed));
            Some(Reading { monotonic: Instant::from_ns(ns), reference, width: Span::ZERO })
        }));
        let follow = Follow::new(reference).every(Span::from_ms(5), Span::from_ms(1));
        let follower = follow.start().expect("a thread");
        let before = until(&follower, |status| status.readings > 3);
        assert_eq!((before.stops, before.steps), (0, 0));
        stopped.store(true, Ordering::Relaxed);
        let after = until(&follower, |status| status.stops > 0);
        assert_eq!((after.stops, after.steps), (1, 0), "{after:?}");
    }
}
