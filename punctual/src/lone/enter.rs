//! How a thread becomes a lone loop's, and the memory that it brings.
//!
//! Setup only: everything that takes time, memory or the kernel's consent is here.

use std::fmt;
use std::sync::atomic::AtomicU64;

use punctual_core::clock::Clock;
use punctual_core::page::{self, Kind, Page};
use punctual_core::time::Span;
use punctual_core::wait::adaptive::Aim;
use punctual_core::wait::exit::Exit;
use punctual_core::wait::{Adaptive, Strategy};

use super::guard::Guard;
use super::options::{BadOptions, Options, Place};
use super::rehearsal::rehearse;
use super::remote::Remote;
use super::{Loop, Where};
use crate::clocks::{MachineClock, wake_cost};
use crate::quiet::{self, Quiet};
use crate::session::Thread;
use crate::way::Way;

/// How long the tick is listened for: 75 ticks at 250 Hz, 30 at 100 Hz.
pub const LISTEN: Span = Span::from_ms(300);
/// Memory of a loop: its page, with its counts and its histogram of lateness, 34 KiB.
#[derive(Debug)]
pub struct Storage {
    words: Vec<AtomicU64>,
}

impl Default for Storage {
    fn default() -> Self {
        Self::new()
    }
}

impl Storage {
    /// Memory for one loop.
    ///
    /// # Real-time: setup only
    pub fn new() -> Self {
        Self { words: (0..page::WORDS).map(|_| AtomicU64::new(0)).collect() }
    }
}

/// Why there is no loop.
#[derive(Debug)]
pub enum EnterError {
    /// The options cannot be.
    Options(BadOptions),
    /// The watchdog's thread could not be started.
    Watchdog(std::io::Error),
}

impl fmt::Display for EnterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(why) => why.fmt(f),
            Self::Watchdog(why) => write!(f, "no thread for the watchdog: {why}"),
        }
    }
}

impl std::error::Error for EnterError {}

impl Options {
    /// Makes the calling thread a loop's: takes 50 ms for the clock, 300 ms to find a quiet phase,
    /// and what the wait takes to learn, [`super::REHEARSAL_MAX`] at most. What the kernel refused
    /// is kept in [`Loop::refused`].
    ///
    /// # Errors
    /// What in the options cannot be, or that there is no thread for the watchdog.
    ///
    /// # Real-time: setup only
    pub fn enter(self, storage: &mut Storage) -> Result<Loop<'_>, EnterError> {
        let clock = |options: &Self| {
            let mut clock = MachineClock::best();
            let quiet = match options.place {
                Place::Quiet => {
                    let gaps = quiet::listen(&mut clock, LISTEN);
                    quiet::place(&gaps, options.period)
                }
                _ => None,
            };
            (clock, quiet)
        };
        self.enter_with(storage, clock, MachineClock::discipline)
    }

    /// The same on a clock of the caller's: one that is followed
    /// ([`Follower::clock`](crate::follow::Follower::clock)), or that of a simulation. Releases are
    /// on its time. [`Place::Quiet`] is zero there: the kernel's tick keeps to CLOCK_MONOTONIC, and
    /// a grid that drifts against it passes through it wherever it begins.
    ///
    /// # Errors
    /// As [`Options::enter`].
    ///
    /// # Real-time: setup only
    pub fn enter_on<C: Clock>(
        self,
        clock: C,
        storage: &mut Storage,
    ) -> Result<Loop<'_, C>, EnterError> {
        self.enter_with(storage, |_| (clock, None), |_| {})
    }

    /// Makes the clock on the thread that is the loop's by then; `discipline` takes in what was
    /// learned of its rate.
    fn enter_with<C: Clock>(
        self,
        storage: &mut Storage,
        clock: impl FnOnce(&Self) -> (C, Option<Quiet>),
        discipline: impl Fn(&mut C),
    ) -> Result<Loop<'_, C>, EnterError> {
        self.check().map_err(EnterError::Options)?;
        let words: &[AtomicU64] = &storage.words;
        let page = Page::new(words, Kind::Lateness).expect("storage is of a page's size");
        let view = page::View::open(words).expect("a page was just made of it");
        let remote = Remote::default();
        // Before the session, so that it may run on any CPU that the caller may.
        let watchdog = self
            .watchdog
            .map(|bound| Guard::start(&remote, bound))
            .transpose()
            .map_err(EnterError::Watchdog)?;
        let session = Thread::enter(self.cpu, self.policy);
        let (mut clock, quiet) = clock(&self);
        let phase_ns = match (self.place, quiet) {
            (Place::At(ns), _) => ns,
            (_, quiet) => quiet.map_or(0, |quiet| quiet.phase_ns),
        };
        let mut wait = self.strategy(&mut clock);
        discipline(&mut clock);
        if self.rehearse {
            rehearse(&mut wait, &mut clock, self.period, phase_ns);
            discipline(&mut clock);
        }
        Ok(Loop {
            options: self,
            phase_ns,
            quiet,
            state: Where::Ready(clock, wait, page),
            view,
            remote,
            session,
            _watchdog: watchdog,
        })
    }

    /// The strategy that it asks for; measures what a wake costs where that is needed.
    ///
    /// # Real-time: setup only
    pub fn strategy<C: Clock>(&self, clock: &mut C) -> Strategy {
        match self.way {
            Way::Adaptive(budget) => {
                let aim = Aim {
                    budget,
                    late: self.late_share,
                    wake_cost: wake_cost(clock),
                    ..Aim::of(self.period)
                };
                Strategy::Adaptive(Adaptive::new(aim).with_exit(Exit::calibrate(clock)))
            }
            way => way.strategy(self.period, || wake_cost(clock)),
        }
    }
}
