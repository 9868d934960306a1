//! A row of the table of loads: its words, and how it starts.
//!
//! For the kinds of loads, each of which is one. Plain data.

use std::time::Duration;

use super::bounds::LoadBounds;
use super::error::LoadError;
use super::protocol::Setup;
use super::stress_args::StressArgs;
use super::worker::Prepared;

/// A load.
pub struct LoadRow {
    /// As `--load` names it.
    pub name: &'static str,
    /// The unit of its count: its rate is so many a second.
    pub unit: &'static str,
    /// Its work, in a line.
    pub help: &'static str,
    /// The arguments that follow its name after a colon, where it needs any.
    pub args: Option<&'static str>,
    /// The most workers that it has where it is a load of its own; `None`: one for each CPU.
    pub(super) workers_max: Option<usize>,
    /// The way to start it.
    pub(super) start: Start,
}

impl LoadRow {
    /// The process that it is in `bounds` where it is a load of its own.
    pub(super) fn setup(&self, bounds: &LoadBounds) -> Setup {
        let setup = Setup::new(self.name, bounds);
        let workers = setup.workers.min(self.workers_max.unwrap_or(usize::MAX));
        Setup { workers, ..setup }
    }
}

/// Sets a load up in its own process.
pub(super) type Prepare = fn(&Setup) -> Result<Prepared, String>;

/// A way to start a load.
pub(super) enum Start {
    /// As a process of ours, which sets this up and works. Those need nothing installed, and are
    /// what `all` stands for.
    Own(Prepare),
    /// As such a process too, but one without a limit of its own, which `all` leaves out.
    Heavy(Prepare),
    /// As several processes.
    Parts(fn(&LoadBounds) -> Vec<Part>),
    /// As another program, with arguments.
    Program(fn(&StressArgs, &LoadBounds) -> Result<Part, LoadError>),
}

/// A load of ours has so long to end in order, and as long again while it has CPU time: it only
/// says a last count, which took 0.9 s where 16 threads wanted two CPUs.
pub(super) const GRACE: Duration = Duration::from_millis(1500);

/// One process of a load, or the reason why there is none.
pub(super) struct Part {
    /// As reports name it.
    pub(super) name: String,
    /// The process; none when something is not installed.
    pub(super) setup: Option<Setup>,
    /// The unit of its count, for a report of one that has not named it itself.
    pub(super) unit: &'static str,
    /// The programs that are not installed, in words for the user.
    pub(super) note: Option<String>,
    /// Time that it may take to end when that is requested.
    pub(super) grace: Duration,
}
