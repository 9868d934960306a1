//! A reference that is followed, and the clock on its timescale.
//!
//! The thread and the clocks share one map. Each clock keeps its follower alive, for loops and
//! executives that outlive the scope in which it was started. Reading the map never waits.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use punctual_core::clock::Clock;
use punctual_core::follow::{ClockReading, Following, Servo, ServoStatus, Settings, Shared};
use punctual_core::time::{Instant, Span};
use punctual_os::clock::sleep_until_ns;

use super::{TRIES, monotonic};
use crate::clocks::MachineClock;
use crate::error::{Error, Kind};
use crate::spawn::OwnThread;

/// The longest sleep of the thread: how soon it ends once the last share is dropped.
const NAP: Span = Span::from_ms(50);

/// A reference that is followed, until this, all its clones and all its clocks are dropped.
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
    pub(super) fn new(common: Arc<Common>, thread: JoinHandle<()>) -> Self {
        Self(Arc::new(Thread { common, thread: OwnThread::new(thread) }))
    }

    /// A clock on the reference's timescale, for [`LoopBuilder::start_on`] or
    /// [`ExecutiveBuilder::clock`]: all releases then lie on that timescale. It takes 50 ms to
    /// calibrate.
    ///
    /// # Panics
    /// In a child of fork(2), without the panic hook: the thread that follows is its parent's.
    ///
    /// [`LoopBuilder::start_on`]: crate::LoopBuilder::start_on
    /// [`ExecutiveBuilder::clock`]: crate::ExecutiveBuilder::clock
    ///
    /// # Real-time: setup only
    pub fn clock(&self) -> FollowedClock {
        self.over(MachineClock::best())
    }

    /// The same over a clock of the caller's.
    ///
    /// # Panics
    /// As [`Follower::clock`] does.
    ///
    /// # Real-time: setup only
    #[doc(hidden)]
    pub fn over<C: Clock + Clone>(&self, clock: C) -> FollowedClock<C> {
        if !self.0.thread.is_here() {
            // Without the panic hook: another thread of the parent's may hold its locks.
            resume_unwind(Box::new(Error::from(Kind::Forked).to_string()));
        }
        loop {
            if let Some(following) = Following::new(clock.clone(), self.clone()) {
                return following;
            }
            std::hint::spin_loop();
        }
    }

    /// How well it follows; all 0 in a child of fork(2), where nothing does.
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
    #[doc(hidden)]
    pub fn settings(&self) -> Settings {
        self.0.common.settings
    }

    /// How often the reference could not be read.
    ///
    /// # Real-time: reader side
    pub fn unread(&self) -> u64 {
        self.0.common.unread.load(Ordering::Relaxed)
    }

    /// How often a correction was published too late, because the thread had no CPU for as long as
    /// its lead while it published. Only then was a period longer or shorter than the limit allows.
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

/// What the thread and its owners share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) shared: Shared,
    settings: Settings,
    pub(super) unread: AtomicU64,
    pub(super) late: AtomicU64,
    over: AtomicBool,
}

impl Common {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            shared: Shared::default(),
            settings,
            unread: AtomicU64::new(0),
            late: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Counts a reading that failed.
    pub(super) fn unread(&self) {
        self.unread.fetch_add(1, Ordering::Relaxed);
    }

    /// Follows a reading, and publishes the correction before it takes effect: a thread that lost
    /// its CPU in between tries again, or drops the reading.
    pub(super) fn follow(&self, servo: &mut Servo, reading: ClockReading, lead: Span) {
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
        self.unread();
    }

    /// Sleeps until `until`; false when the follower ends before that.
    pub(super) fn nap(&self, until: Instant) -> bool {
        loop {
            if self.over.load(Ordering::Relaxed) {
                return false;
            }
            let now = monotonic();
            if now >= until {
                return true;
            }
            // A signal ends the sleep early: the loop checks again.
            let _interrupted = sleep_until_ns(until.min(now + NAP).as_ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks::Vdso;
    use crate::follow::{Follow, Reference};

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
