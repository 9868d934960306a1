//! What a loop or an executive did, once it is over.
//!
//! Plain data and its text. For whoever ran it; decides nothing.

use std::fmt;
use std::io;

use punctual_core::time::Instant;
use punctual_core::wait::{Learned, WaitStatus};
use punctual_engine::error::{Error, Kind};
use punctual_engine::outcome::{End, Samples, Stats};
use punctual_engine::process::TaskOutcome;
use punctual_engine::quiet::Quiet;
use punctual_engine::session::Refusal;
use punctual_os::scheduler::SchedPolicy;

/// What a loop or an executive did.
#[derive(Clone, Debug)]
#[must_use = "it says whether all went well: see `ok`"]
#[non_exhaustive]
pub struct Summary {
    /// Why it is over.
    pub end: End,
    /// Each task; one for a single loop. Of tasks that were removed while an executive ran the last
    /// 64: each was given back by the call that removed it.
    pub tasks: Vec<Stats>,
    /// Each unit of the calendar, in the order of the frame. An only unit is as its task; of
    /// several of one task those that ran count, and frames are missed by the task.
    pub units: Vec<Stats>,
    /// The policy that its thread had at the end.
    pub policy: SchedPolicy,
    /// What the kernel refused.
    pub refused: Vec<Refusal>,
    /// Which settings could not be kept on this machine, and why.
    pub warnings: Vec<String>,
    /// What became of the sample file; `None` where nothing was recorded.
    pub samples: Option<Samples>,
    /// Slices of background work that ran, and those of them that took longer than a slice may.
    pub idle_slices: (u64, u64),
    /// The instant of release 0 of phase 0.
    pub epoch: Instant,
    /// The quiet phase that it took; `None` where none was requested, or the period meets
    /// the tick at any phase.
    pub quiet: Option<Quiet>,
    /// How often the releases of a loop were moved away from the kernel's tick, which they met
    /// while it ran.
    pub moves: u64,
    /// How its own thread waited at the end, and what its wait learned of this machine.
    pub wait: WaitStatus,
    /// What became of the tasks that are processes.
    pub processes: Vec<TaskOutcome>,
}

impl Summary {
    /// What its wait learned of this machine, for [`WaitPolicy::learned`] of the next start, also
    /// of a later program ([`learned`](crate::learned)); `None` for a wait that learns nothing.
    ///
    /// [`WaitPolicy::learned`]: crate::WaitPolicy::learned
    ///
    /// # Real-time: setup only
    pub fn learned(&self) -> Option<Learned> {
        self.wait.learned
    }

    /// The same, or an error where it did not end as planned: by the watchdog, a panic or an
    /// overrun, or where the sample file is not whole. The error has the summary, for its counts
    /// are wanted most then.
    ///
    /// # Errors
    /// How it ended.
    ///
    /// # Real-time: setup only
    pub fn ok(self) -> Result<Self, Failed> {
        let samples = || match &self.samples {
            Some(Samples { path, failed: Some(why), .. }) => {
                Err(Kind::Samples(path.clone(), io::Error::other(why.clone())).into())
            }
            _ => Ok(()),
        };
        match self.end.ok().and_then(|()| samples()) {
            Ok(()) => Ok(self),
            Err(why) => Err(Failed { why, summary: Box::new(self) }),
        }
    }

    /// What the task of this name did.
    ///
    /// # Real-time: setup only
    pub fn task(&self, name: &str) -> Option<&Stats> {
        self.tasks.iter().find(|task| task.name == name)
    }
}

/// What did not end as planned: why, and all that it did until then.
///
/// Where an [`Error`] is returned, `?` leaves the reason of it alone. `{:?}` is the reason and the
/// summary, so that a `main` that returns it shows both; `{:#?}` shows its parts.
pub struct Failed {
    why: Error,
    summary: Box<Summary>,
}

impl Failed {
    /// Why: see [`Error::kind`].
    ///
    /// # Real-time: setup only
    pub fn why(&self) -> &Error {
        &self.why
    }

    /// What it did until then.
    ///
    /// # Real-time: setup only
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Both.
    ///
    /// # Real-time: setup only
    pub fn into_parts(self) -> (Error, Summary) {
        (self.why, *self.summary)
    }
}

impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            let mut parts = f.debug_struct("Failed");
            parts.field("why", &self.why).field("summary", &self.summary).finish()
        } else {
            write!(f, "{}\n{}", self.why, self.summary)
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.why, f)
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.why.source()
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.why
    }
}

impl fmt::Display for Summary {
    /// A line for each task, and one for each thing that a reader should know.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for task in &self.tasks {
            writeln!(f, "{task}")?;
        }
        // Where a unit has the name of its task that line says it all.
        for unit in self.units.iter().filter(|unit| self.task(&unit.name).is_none()) {
            writeln!(f, "unit {unit}")?;
        }
        write!(f, "{}", self.end)?;
        let (slices, over) = self.idle_slices;
        if slices > 0 {
            write!(f, "\nbackground: {slices} slices, {over} of them too long")?;
        }
        for refusal in &self.refused {
            write!(f, "\nrefused by the kernel: {refusal}")?;
        }
        for warning in &self.warnings {
            write!(f, "\nwarning: {warning}")?;
        }
        if let Some(samples) = &self.samples {
            write!(f, "\n{} samples in {}", samples.written, samples.path.display())?;
            if samples.unrecorded > 0 {
                write!(f, ", {} did not fit in memory", samples.unrecorded)?;
            }
            if let Some(why) = &samples.failed {
                write!(f, "; the file is not whole: {why}")?;
            }
        }
        Ok(())
    }
}
