//! What a lone loop is to be, and what cannot be one.
//!
//! For whoever starts one. Plain data with the best defaults; [`Options::check`] says what is
//! wrong with it before anything is touched.

use std::fmt;

use punctual_core::table::PERIOD_MAX_NS;
use punctual_core::time::{Period, Span};
use punctual_os::scheduler::Policy;

use crate::periodic::Rate;
use crate::way::{SPIN_PERIOD_MIN, Way};

/// Where a loop's releases lie within its period, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Away from the kernel's tick, which is listened for at the start; at multiples of the period
    /// where none is heard, or where the period meets it at any phase.
    #[default]
    Quiet,
    /// At multiples of the period, where separate processes agree on them.
    Zero,
    /// This many nanoseconds after those, below the period.
    At(u64),
}

/// A loop to be: its period, how it waits, and where it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    pub(super) rate: Rate,
    pub(super) place: Place,
    pub(super) way: Way,
    pub(super) late_share: f64,
    pub(super) rehearse: bool,
    pub(super) cpu: Option<u32>,
    pub(super) policy: Policy,
    pub(super) watchdog: Option<Span>,
}

impl Options {
    /// A loop of this period with the best of all else: quiet phase, adaptive wait for a tenth of
    /// the CPU and one wake in a thousand late, learned before the first cycle; SCHED_FIFO 90, any
    /// CPU, no watchdog.
    ///
    /// # Real-time: setup only
    pub fn new(rate: impl Into<Rate>) -> Self {
        Self {
            rate: rate.into(),
            place: Place::Quiet,
            way: Way::Adaptive(0.1),
            late_share: 1e-3,
            rehearse: true,
            cpu: None,
            policy: Policy::Fifo(90),
            watchdog: None,
        }
    }

    /// Sets where its releases lie.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn place(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    /// Sets how it waits.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn way(mut self, way: Way) -> Self {
        self.way = way;
        self
    }

    /// Sets the share of wakes that may be late, in (0, 1): what the adaptive wait aims at.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn late_share(mut self, share: f64) -> Self {
        self.late_share = share;
        self
    }

    /// Sets whether a wait that learns does so before the first cycle, where that takes no longer
    /// than [`super::REHEARSAL_MAX`]; otherwise the first cycles teach it.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn rehearse(mut self, rehearse: bool) -> Self {
        self.rehearse = rehearse;
        self
    }

    /// Pins the loop's thread to a CPU.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// Sets the scheduling policy to ask for.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Has a watchdog stop the loop, and demote its thread to SCHED_OTHER, when it gets nowhere
    /// for this long: at least two periods.
    ///
    /// The watchdog is a thread of this process: both it and the loop end with that, also by
    /// `kill -9`. One that alone does not run (stopped in a debugger) guards nothing meanwhile;
    /// what bounds a loop that does not yield then is the kernel's real-time throttling
    /// (`/proc/sys/kernel/sched_rt_runtime_us`), and RLIMIT_RTTIME where the process was started
    /// with that limit. This library sets none: it holds for all threads of a process.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn watchdog(mut self, bound: Span) -> Self {
        self.watchdog = Some(bound);
        self
    }

    /// The period, rounded down to whole nanoseconds.
    pub(super) fn period(&self) -> Period {
        // A rate is a nanosecond at least.
        Period::from_ns(self.rate.whole_ns()).unwrap_or(const { Period::from_ns(1).unwrap() })
    }

    /// Whether all of it can be.
    ///
    /// # Errors
    /// The first thing that cannot.
    ///
    /// # Real-time: setup only
    pub fn check(&self) -> Result<(), BadOptions> {
        let period_ns = self.rate.whole_ns();
        if period_ns > PERIOD_MAX_NS {
            return Err(BadOptions::Period(self.rate));
        }
        let within = |ns: i64| u64::try_from(ns).is_ok_and(|ns| ns < period_ns);
        match self.place {
            Place::At(ns) if ns >= period_ns => return Err(BadOptions::Phase(ns, self.rate)),
            _ => {}
        }
        match self.way {
            Way::Fixed(margin) if !within(margin.as_ns()) => {
                return Err(BadOptions::Margin(margin.as_ns(), self.rate));
            }
            Way::Rearm(Some(every)) if every.as_ns() > period_ns => {
                return Err(BadOptions::Rearm(every.as_ns(), self.rate));
            }
            Way::Spin if period_ns < SPIN_PERIOD_MIN.as_ns().unsigned_abs() => {
                return Err(BadOptions::Spin(self.rate));
            }
            // Not a number is neither.
            Way::Adaptive(budget) if !(budget > 0.0 && budget <= 1.0) => {
                return Err(BadOptions::Budget(budget));
            }
            _ => {}
        }
        if !(self.late_share > 0.0 && self.late_share < 1.0) {
            return Err(BadOptions::Late(self.late_share));
        }
        match self.policy {
            Policy::Fifo(1..=99) | Policy::RoundRobin(1..=99) | Policy::Other => {}
            policy => return Err(BadOptions::Policy(policy)),
        }
        match self.watchdog {
            Some(bound) if bound.as_ns().max(0).unsigned_abs() / 2 < period_ns => {
                Err(BadOptions::Watchdog(bound.as_ns(), self.rate))
            }
            _ => Ok(()),
        }
    }
}

/// What cannot be a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BadOptions {
    /// A period above 2⁶² ns (146 years).
    Period(Rate),
    /// A phase, ns, that is not below the period.
    Phase(u64, Rate),
    /// A margin, ns, below nothing, or with which the loop would never sleep.
    Margin(i64, Rate),
    /// Early calls further apart, ns, than releases.
    Rearm(u64, Rate),
    /// A period too short to spin in and rest.
    Spin(Rate),
    /// A share of the CPU outside (0, 1].
    Budget(f64),
    /// A share of late wakes outside (0, 1).
    Late(f64),
    /// A policy that cannot be asked for, or a priority outside [1, 99].
    Policy(Policy),
    /// A watchdog whose bound, ns, is below two periods.
    Watchdog(i64, Rate),
}

impl fmt::Display for BadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Period(rate) => write!(f, "a period of {rate} is above {PERIOD_MAX_NS} ns"),
            Self::Phase(ns, rate) => write!(f, "a phase of {ns} ns is not in a period of {rate}"),
            Self::Margin(ns, rate) => {
                write!(f, "a margin of {ns} ns: from 0 to below the period, {rate}")
            }
            Self::Rearm(ns, rate) => {
                write!(f, "early calls every {ns} ns in a period of {rate}")
            }
            Self::Spin(rate) => write!(
                f,
                "a loop that spins rests in between: its period, {rate}, is below {SPIN_PERIOD_MIN}"
            ),
            Self::Budget(share) => write!(f, "a CPU budget of {share}: above 0, at most 1"),
            Self::Late(share) => {
                write!(f, "a share of late wakes of {share}: above 0 and below 1")
            }
            Self::Policy(policy) => write!(f, "{policy:?}: a priority is from 1 to 99"),
            Self::Watchdog(ns, rate) => {
                write!(f, "a watchdog's bound of {ns} ns: at least two periods of {rate}")
            }
        }
    }
}

impl std::error::Error for BadOptions {}
