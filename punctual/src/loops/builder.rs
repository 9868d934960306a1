//! What a loop of one period is to be.
//!
//! For whoever starts one. Plain data with the best defaults; [`LoopBuilder::check`] says what is
//! wrong with it before anything is touched.

use std::path::PathBuf;

use punctual_core::time::Period;

use crate::error::{Error, Kind};
use crate::rt_thread::RtThread;

/// Where releases lie within their period on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Away from the kernel's tick, whose place is measured at the start; at multiples of the
    /// period where no tick is found, or where the period meets it at any phase.
    #[default]
    Quiet,
    /// At multiples of the period, where separate processes agree on them.
    Zero,
    /// This many nanoseconds after those, below the period.
    At(u64),
}

/// A loop to be: its period, where its releases lie, how its thread runs, what it records.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a loop begins with `start`"]
pub struct LoopBuilder {
    pub(super) period: Period,
    pub(super) phase: Phase,
    pub(super) thread: RtThread,
    pub(super) samples: Option<PathBuf>,
}

impl LoopBuilder {
    /// A loop of this period at a quiet phase, on a thread with the defaults of [`RtThread`].
    ///
    /// # Real-time: setup only
    #[doc(hidden)]
    pub fn new(period: Period) -> Self {
        Self { period, phase: Phase::Quiet, thread: RtThread::any(), samples: None }
    }

    /// Sets where its releases lie.
    ///
    /// # Real-time: setup only
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }

    /// Sets how its thread runs and waits.
    ///
    /// # Real-time: setup only
    pub fn thread(mut self, thread: RtThread) -> Self {
        self.thread = thread;
        self
    }

    /// Records the lateness of every cycle in a sample file, which `punctual analyse` reads. A file
    /// of that name stays until the first samples are written, and is replaced then. A companion
    /// thread writes them, so that a kill costs no more than half a second of samples. The file is
    /// not synced: a power cut may cost all of them.
    ///
    /// # Real-time: setup only
    pub fn record(mut self, file: impl Into<PathBuf>) -> Self {
        self.samples = Some(file.into());
        self
    }

    /// Whether all of it can be.
    ///
    /// # Errors
    /// The first thing that cannot.
    ///
    /// # Real-time: setup only
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Error> {
        match self.phase {
            Phase::At(ns) if ns >= self.period.as_ns() => Err(Kind::Phase(ns, self.period).into()),
            _ => self.thread.check(self.period),
        }
    }
}
