//! Every way to end × every kind of work × every disturbance: a table of counts, and of the
//! combinations that cannot be, with the reason.
//!
//! For tests that hold counts against the model of [`span`](crate::span): each release of the span
//! ran or was missed, once.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// Who runs the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkRunner {
    /// A loop of one period.
    Loop,
    /// A task in the loop of an executive.
    Inline,
    /// A unit of its calendar.
    Unit,
    /// A task in a thread of its own, which the loop releases.
    Thread,
    /// One that waits for its releases itself, for its phase moves.
    Delaying,
    /// One that was added with a thread of its own while the executive ran.
    Added,
    /// A process.
    Process,
    /// A process that was started by hand, and joined by name.
    Joined,
    /// A process that is a unit of a calendar.
    ProcessUnit,
    /// A task that a device triggers.
    Triggered,
}

/// The way it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Its time is up.
    Time,
    /// By a `StopHandle`; of a loop by its owner; of `punctual run` by SIGINT.
    Stop,
    /// By a `Handle`, or a `LoopHandle`.
    Handle,
    /// A body panics; a process aborts.
    Panic,
    /// `OnOverrun::Stop`.
    Policy,
    /// `Flow::Stop`; of `punctual run`: its processes exit.
    Flow,
    /// `Handle::remove`.
    Removal,
    /// A body that never returns.
    Watchdog,
}

impl Way {
    /// All of them.
    pub const EACH: [Self; 8] = [
        Self::Time,
        Self::Stop,
        Self::Handle,
        Self::Panic,
        Self::Policy,
        Self::Flow,
        Self::Removal,
        Self::Watchdog,
    ];
}

/// The disturbance of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisturbedBy {
    /// Nothing disturbs it.
    Nothing,
    /// It does not get the CPU for some periods.
    Stall,
    /// It runs for some periods.
    Overrun,
}

impl DisturbedBy {
    /// All of them.
    pub const EACH: [Self; 3] = [Self::Nothing, Self::Stall, Self::Overrun];
}

/// A place of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndCase {
    /// Who runs the work.
    pub kind: WorkRunner,
    /// The way it ends.
    pub way: Way,
    /// Its disturbance.
    pub by: DisturbedBy,
}

/// The counts of one task in one run.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Releases of the span, by the model.
    pub releases: RangeInclusive<u64>,
    /// Cycles that ran.
    pub ran: u64,
    /// Releases that never ran.
    pub missed: u64,
    /// Missed releases that no start followed.
    pub censored: u64,
    /// Releases at which no process was registered.
    pub unattended: u64,
    /// Samples in the file, and what it counts as missed.
    pub recorded: Option<(u64, u64)>,
}

impl Counted {
    /// The fault of the counts; `None` where there is none.
    fn wrong(&self) -> Option<&'static str> {
        let Self { releases, ran, missed, censored, unattended, recorded } = self;
        if !releases.contains(&(ran + missed + unattended)) {
            return Some("not each release counts once");
        }
        if censored > missed {
            return Some("more are censored than missed");
        }
        let is_same = recorded.is_none_or(|recorded| recorded == (*ran, *missed));
        (!is_same).then_some("the sample file counts otherwise")
    }
}

/// The sums of one place.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    runs: u64,
    /// The fewest and the most, by the model.
    releases: (u64, u64),
    ran: u64,
    missed: u64,
    censored: u64,
    unattended: u64,
    /// Runs of which the file was read.
    recorded: u64,
}

/// The sums of all runs by their place; the faults that they showed.
#[derive(Debug, Default)]
pub struct EndsTable {
    cells: BTreeMap<EndCase, Cell>,
    absent: BTreeMap<(WorkRunner, Way), String>,
    wrong: Vec<String>,
}

impl EndsTable {
    /// One task of one run, which `run` describes.
    pub fn add(&mut self, at: EndCase, counted: &Counted, run: &dyn fmt::Debug) {
        let cell = self.cells.entry(at).or_default();
        cell.runs += 1;
        cell.releases.0 += counted.releases.start();
        cell.releases.1 += counted.releases.end();
        cell.ran += counted.ran;
        cell.missed += counted.missed;
        cell.censored += counted.censored;
        cell.unattended += counted.unattended;
        cell.recorded += u64::from(counted.recorded.is_some());
        if let Some(why) = counted.wrong() {
            self.wrong.push(format!("{at:?}: {why}: {counted:?} in {run:?}"));
        }
    }

    /// A run ended otherwise than it was to.
    pub fn note(&mut self, wrong: String) {
        self.wrong.push(wrong);
    }

    /// This kind cannot end so, for this reason.
    pub fn absent(&mut self, kind: WorkRunner, way: Way, reason: impl Into<String>) {
        self.absent.insert((kind, way), reason.into());
    }

    /// Checks that nothing is wrong, and that no place of these kinds is without runs or a reason.
    ///
    /// # Panics
    /// Where one is.
    #[track_caller]
    pub fn check(&self, kinds: &[WorkRunner]) {
        let Self { cells, absent, wrong } = self;
        for &kind in kinds {
            for way in Way::EACH {
                let filled =
                    DisturbedBy::EACH.map(|by| cells.contains_key(&EndCase { kind, way, by }));
                let is_absent = absent.contains_key(&(kind, way));
                assert!(filled == [!is_absent; 3], "{kind:?} {way:?}: {filled:?}");
            }
        }
        let shown = wrong.iter().take(12).cloned().collect::<Vec<_>>().join("\n");
        assert!(wrong.is_empty(), "{} runs count otherwise:\n{shown}", wrong.len());
    }
}

impl fmt::Display for EndsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "kind      way      disturbed  runs      releases     ran  missed  (censored)  \
             unattended  recorded"
        )?;
        for (EndCase { kind, way, by }, cell) in &self.cells {
            let Cell { runs, releases: (least, most), ran, missed, .. } = *cell;
            let Cell { censored, unattended, recorded, .. } = *cell;
            let releases =
                if least == most { format!("{least}") } else { format!("{least}-{most}") };
            let [kind, way, by] = [format!("{kind:?}"), format!("{way:?}"), format!("{by:?}")];
            write!(f, "{kind:9} {way:8} {by:9} {runs:5} {releases:>13} {ran:7} {missed:7}  ")?;
            writeln!(f, "{censored:>10}  {unattended:>10}  {recorded:8}")?;
        }
        for ((kind, way), reason) in &self.absent {
            let [kind, way] = [format!("{kind:?}"), format!("{way:?}")];
            writeln!(f, "{kind:9} {way:8} cannot be: {reason}")?;
        }
        Ok(())
    }
}
