//! The result of a loop or an executive that is over: statistics, refused settings, its end.
//!
//! Plain data and its text, for the program that ran it. Decides nothing.

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

/// The result of a loop or an executive that is over: its statistics, and the settings that it had.
///
/// Its maximum is exact. Its quantiles are upper ends of histogram buckets, at most 0.8 % too much
/// and never above the maximum; `punctual analyse` of the same run, which has every sample, rounds
/// up by at most 0.1 %, so that its quantiles may be that much lower. Of a loop that its watchdog
/// ended the maximum has the stall up to that end ("≥"). The sample file has the number of missed
/// releases and not the end, so that `punctual analyse` knows of a period at least.
#[derive(Clone, Debug)]
#[must_use = "it says whether all went well: see `ok`"]
#[non_exhaustive]
pub struct Summary {
    /// The reason why it ended.
    pub end: End,
    /// The statistics of each task, in the order in which they were given; a loop has one entry. Of
    /// the tasks that were removed while an executive ran, the last 64 are here too.
    pub tasks: Vec<Stats>,
    /// The statistics of each unit of the calendar, in the order of the frame; empty without one.
    /// An only unit is as its task; of several of one task those that ran count, and frames are
    /// missed by the task.
    pub units: Vec<Stats>,
    /// The scheduling policy that its own thread had at the end.
    pub policy: SchedPolicy,
    /// The settings that the kernel refused; it ran without them.
    pub refused: Vec<Refusal>,
    /// The settings that could not be kept on this machine, and risks of its tasks: a sentence
    /// each.
    pub warnings: Vec<String>,
    /// The sample file, and the number of samples in it; `None` where nothing was recorded.
    pub samples: Option<Samples>,
    /// Slices of background work that ran, and those of them that took longer than a slice may.
    pub idle_slices: (u64, u64),
    /// The instant of release 0 of phase 0.
    pub epoch: Instant,
    /// The quiet phase that it took; `None` where none was requested, or the period meets
    /// the tick at any phase.
    pub quiet: Option<Quiet>,
    /// Times that the releases of a loop were moved away from the kernel's tick, which they met
    /// while it ran; 0 for an executive.
    pub moves: u64,
    /// The state of the wait of its own thread at the end, with its knowledge of this machine.
    pub wait: WaitStatus,
    /// The outcome of each task that is a process; empty without them.
    pub processes: Vec<TaskOutcome>,
}

impl Summary {
    /// The knowledge of this machine that its wait has, for [`WaitPolicy::learned`] of the next
    /// start, also of a later program ([`learned`](crate::learned)); `None` for a wait that learns
    /// nothing.
    ///
    /// [`WaitPolicy::learned`]: crate::WaitPolicy::learned
    ///
    /// # Real-time: setup only
    pub fn learned(&self) -> Option<Learned> {
        self.wait.learned
    }

    /// Returns the summary itself, or an error where it did not end as planned: by the watchdog, a
    /// panic or an overrun, or where the sample file is not whole. The error has the summary, for
    /// its counts are wanted most then.
    ///
    /// # Errors
    /// The reason why it did not end as planned, with the summary.
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

    /// The statistics of the task of this name; `None` where there is none.
    ///
    /// # Real-time: setup only
    pub fn task(&self, name: &str) -> Option<&Stats> {
        self.tasks.iter().find(|task| task.name == name)
    }
}

/// The error of a loop or an executive that did not end as planned, with its summary.
///
/// `{:?}` is the reason and the summary, so that a `main` that returns it shows both, also where
/// `?` made an [`Error`] of it; `{}` is the reason alone, and `{:#?}` shows its parts. For both as
/// values: [`Failed::into_parts`].
pub struct Failed {
    why: Error,
    summary: Box<Summary>,
}

impl Failed {
    /// The reason: see [`Error::kind`].
    ///
    /// # Real-time: setup only
    pub fn why(&self) -> &Error {
        &self.why
    }

    /// The summary, with the counts until it ended.
    ///
    /// # Real-time: setup only
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The reason and the summary.
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
        failed.why.with_summary(&failed.summary)
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
            if let Some(way_out) = refusal.way_out() {
                write!(f, ": {way_out}")?;
            }
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
