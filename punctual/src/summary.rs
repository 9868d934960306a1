//! What a loop or an executive did, once it is over.
//!
//! Plain data and its text. For whoever ran it; decides nothing.

use std::fmt;
use std::io;
use std::path::PathBuf;

use punctual_core::stats::{Counts, PageKind, View};
use punctual_core::time::{Instant, Span};
use punctual_core::wait::{Learned, WaitStatus};
use punctual_os::scheduler::SchedPolicy;

use crate::error::{Error, Kind};
use crate::monitor::Force;
use crate::process::TaskOutcome;
use crate::quantile;
use crate::quiet::Quiet;
use crate::session::Refusal;

/// Why a loop or an executive is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Its time was up.
    Finished,
    /// Somebody stopped it.
    Stopped,
    /// The watchdog stopped it: it had the CPU and did not yield.
    Forced,
    /// The watchdog stopped it: it did not get the CPU, though it wanted it.
    Starved,
    /// The watchdog stopped it: a body blocked, that is, waited for something other than the CPU.
    Blocked,
    /// The watchdog stopped it: it made no progress, and nothing shows why.
    Stuck,
    /// A task panicked; also where the watchdog stopped it before that, or while the program's
    /// panic hook ran.
    Panicked {
        /// Its name.
        task: String,
        /// What the panic said.
        text: String,
    },
    /// This task overran, and its policy is to stop everything.
    Overran(String),
    /// It belongs to another process, of which fork(2) made this one.
    Forked,
}

/// What one loop or task did.
#[derive(Clone, Debug, PartialEq)]
pub struct Stats {
    /// The task's name; that of a single loop is `loop`.
    pub name: String,
    /// Its counts, and the extremes and the sum of the lateness of all its releases.
    pub counts: Counts,
    /// Quantiles of the lateness of all its releases, those that ran and those that were missed:
    /// the share of 0.5, 0.99 and 0.999, at most 0.8 % too much; `None` before the first release.
    pub p50: Option<Span>,
    /// See [`Stats::p50`].
    pub p99: Option<Span>,
    /// See [`Stats::p50`].
    pub p99_9: Option<Span>,
    /// Whether its figures are distances from start to start instead: of a task that a device
    /// triggers, which has no releases. `ran` counts them then, one fewer than its cycles.
    pub distances: bool,
    /// How often its own thread lost its real-time policy because it ran on; 0 for one without.
    pub demotions: u64,
}

impl Stats {
    /// Of a loop or task of this name with this page, as it is now.
    pub(crate) fn of(name: &str, page: Option<&View<'_>>) -> Self {
        let quantile = |share| page.and_then(|page| quantile::of(page, share));
        let counts = page.map(View::counts).unwrap_or_default();
        let distances = page.is_some_and(|page| page.kind() == PageKind::Distance);
        let (p50, p99, p99_9) = (quantile(0.5), quantile(0.99), quantile(0.999));
        Self { name: name.to_owned(), counts, p50, p99, p99_9, distances, demotions: 0 }
    }
}

/// What became of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    /// The file.
    pub path: PathBuf,
    /// How many samples are in it.
    pub written: u64,
    /// How many did not fit in memory until they could be written.
    pub unrecorded: u64,
    /// Why the file is not whole: writing stopped before the end, or another program removed or
    /// changed the file meanwhile.
    pub failed: Option<String>,
}

/// What a loop or an executive did.
#[derive(Clone, Debug)]
#[must_use = "it says whether all went well: see `ok`"]
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
    /// The quiet phase that it took; `None` where none was requested, or found.
    #[doc(hidden)]
    pub quiet: Option<Quiet>,
    /// How its own thread waited at the end, and what its wait learned of this machine.
    #[doc(hidden)]
    pub wait: WaitStatus,
    /// What became of the tasks that are processes.
    pub processes: Vec<TaskOutcome>,
}

impl Summary {
    /// What its wait learned of this machine, for [`WaitPolicy::learned`] of the next start; `None`
    /// for a wait that learns nothing.
    ///
    /// [`WaitPolicy::learned`]: crate::WaitPolicy::learned
    ///
    /// # Real-time: setup only
    pub fn learned(&self) -> Option<Learned> {
        self.wait.learned
    }

    /// The same, or an error where it did not end as planned: by the watchdog, a panic or an
    /// overrun, or where the sample file is not whole.
    ///
    /// # Errors
    /// How it ended.
    ///
    /// # Real-time: setup only
    pub fn ok(self) -> Result<Self, Error> {
        match &self.end {
            End::Finished | End::Stopped => match &self.samples {
                Some(Samples { path, failed: Some(why), .. }) => {
                    Err(Kind::Samples(path.clone(), io::Error::other(why.clone())).into())
                }
                _ => Ok(self),
            },
            End::Starved => Err(Kind::Forced("it did not get the CPU").into()),
            End::Blocked => Err(Kind::Forced("a body blocked").into()),
            End::Stuck => Err(Kind::Forced("it made no progress").into()),
            End::Forced => Err(Kind::Forced("it did not yield").into()),
            End::Panicked { task, text } => Err(Kind::Panicked(task.clone(), text.clone()).into()),
            End::Overran(task) => Err(Kind::Overran(task.clone()).into()),
            End::Forked => Err(Kind::Forked.into()),
        }
    }

    /// What the task of this name did.
    ///
    /// # Real-time: setup only
    pub fn task(&self, name: &str) -> Option<&Stats> {
        self.tasks.iter().find(|task| task.name == name)
    }
}

impl From<Force> for End {
    fn from(force: Force) -> Self {
        match force {
            Force::Starved => Self::Starved,
            Force::Blocked => Self::Blocked,
            Force::Stuck => Self::Stuck,
            Force::Demoted | Force::NotDemoted => Self::Forced,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::Stopped => f.write_str("stopped"),
            Self::Starved => f.write_str("stopped by the watchdog: it did not get the CPU"),
            Self::Blocked => f.write_str("stopped by the watchdog: a body blocked"),
            Self::Stuck => f.write_str("stopped by the watchdog: it made no progress"),
            Self::Forced => f.write_str("stopped by the watchdog: it did not yield"),
            Self::Panicked { task, text } => write!(f, "task {task:?} panicked: {text}"),
            Self::Overran(task) => write!(f, "stopped: task {task:?} overran"),
            Self::Forked => f.write_str("left: it runs in the process that this one was forked of"),
        }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { ran, missed, max, over_budget, over_deadline, .. } = self.counts;
        let of = if self.distances { "distance" } else { "lateness" };
        match self.distances {
            true => write!(f, "{}: {ran} distances from start to start", self.name)?,
            false => write!(f, "{}: {ran} ran, {missed} missed", self.name)?,
        }
        for (count, what) in [(over_budget, "over budget"), (over_deadline, "after the deadline")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        if let (Some(p50), Some(p99), Some(p99_9), Some(max)) =
            (self.p50, self.p99, self.p99_9, max)
        {
            write!(f, "; {of} p50 {p50}, p99 {p99}, p99.9 {p99_9}, max {max}")?;
        }
        if self.demotions > 0 {
            write!(f, "; its thread lost its real-time policy {} times", self.demotions)?;
        }
        Ok(())
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
