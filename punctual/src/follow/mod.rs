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
//! use punctual_core::clock::Clock;
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
mod followed;
mod ptp;
mod reference;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use punctual_core::clock::Clock;
pub use punctual_core::follow::{
    ClockReading, Following, Last, Map, ServoEvent, ServoStatus, Settings,
};
use punctual_core::follow::{Servo, Shared};
use punctual_core::time::{Instant, Span};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

pub use error::FollowError;
pub use followed::{FollowedClock, FollowerShare};
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
    late: AtomicU64,
    over: AtomicBool,
}

impl Common {
    /// Follows a reading, and publishes what comes of it before it counts: a thread that lost its
    /// CPU in between begins anew, or gives the reading up.
    fn follow(&self, servo: &mut Servo, reading: ClockReading, lead: Span) {
        for _ in 0..TRIES {
            let bend = monotonic() + lead;
            let mut next = servo.clone();
            next.follow(reading, bend);
            let bent = next.map() != servo.map();
            if bent && lead > Span::ZERO && bend - monotonic() < Span::from_ns(lead.as_ns() / 2) {
                continue;
            }
            *servo = next;
            self.shared.publish(servo);
            if bent && lead > Span::ZERO && monotonic() >= bend {
                self.late.fetch_add(1, Ordering::Relaxed);
            }
            return;
        }
        self.unread.fetch_add(1, Ordering::Relaxed);
    }
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
            late: AtomicU64::new(0),
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
                    Some(reading) => theirs.follow(&mut servo, reading, self.lead),
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
    pub fn clock<C: Clock + Clone>(&self, clock: C) -> Following<&Shared, C> {
        loop {
            if let Some(following) = Following::new(clock.clone(), &self.common.shared) {
                return following;
            }
            std::hint::spin_loop();
        }
    }

    /// The same with a share in the follower, for loops that outlive the scope in which it was
    /// started: the reference is followed until the last share is dropped.
    ///
    /// # Real-time: setup only
    pub fn shared_clock<C: Clock + Clone>(self: &Arc<Self>, clock: C) -> FollowedClock<C> {
        loop {
            if let Some(following) = Following::new(clock.clone(), FollowerShare(Arc::clone(self)))
            {
                return following;
            }
            std::hint::spin_loop();
        }
    }

    /// How well it follows.
    ///
    /// # Real-time: reader side
    pub fn status(&self) -> ServoStatus {
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

impl Follower {
    /// How often a bend was known only after it came: the thread had no CPU for as long as its
    /// lead, just while it published. Only then was a period longer or shorter than the limit says.
    ///
    /// # Real-time: reader side
    pub fn late(&self) -> u64 {
        self.common.late.load(Ordering::Relaxed)
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
