//! All that a campaign keeps of one run over all batches with one setup.
//!
//! Mergeable, constant memory, and checked when it is read back.

use serde::{Deserialize, Serialize};

use super::collector::{Collector, Start};
use super::counted::WatchedThresholds;
use super::maxima::Maxima;
use super::outliers::Outliers;
use crate::claim::dependence::{Pooled, Tails};
use crate::claim::{Claim, Level, claims};
use crate::extremes::rarest;
use crate::histogram::display::HistogramView;
use crate::jitters::Jitters;
use crate::recording::{RequestedTails, RunFigures, WORST_MAX, Wakes, WorstRelease};
use crate::release::Releases;
use crate::summary::{Distribution, SummaryStats};

/// A limit above every count of a campaign.
const COUNT_MAX: u64 = 1 << 56;

/// What only the measuring process knows about a batch of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Releases that never ran.
    pub missed: u64,
    /// Cycles that did not fit in the recorder.
    pub unrecorded: u64,
    /// Time that the loop ran, ns.
    pub wall_ns: u64,
    /// CPU time that it took, ns.
    pub cpu_ns: u64,
    /// Page faults of its thread.
    pub page_faults: u64,
    /// Times that its thread was preempted.
    pub preempted: u64,
    /// Gaps inside spins, and the longest, ns.
    pub stalled: u64,
    /// The longest of them, ns.
    pub stall_max_ns: u64,
    /// Times that a process of its loads ended before the batch did.
    #[serde(default)]
    pub load_deaths: u64,
}

impl Effort {
    fn add(&mut self, other: &Self) {
        self.missed += other.missed;
        self.unrecorded += other.unrecorded;
        self.wall_ns += other.wall_ns;
        self.cpu_ns += other.cpu_ns;
        self.page_faults += other.page_faults;
        self.preempted += other.preempted;
        self.stalled += other.stalled;
        self.stall_max_ns = self.stall_max_ns.max(other.stall_max_ns);
        self.load_deaths += other.load_deaths;
    }

    fn is_sound(&self) -> bool {
        let times = [self.wall_ns, self.cpu_ns, self.stall_max_ns];
        let counts = [
            self.missed,
            self.unrecorded,
            self.page_faults,
            self.preempted,
            self.stalled,
            self.load_deaths,
        ];
        times.iter().all(|&ns| ns <= 1 << 62) && counts.iter().all(|&count| count <= COUNT_MAX)
    }
}

/// One run over many batches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Total {
    cycles: u64,
    cold: u64,
    cold_max_ns: Option<i64>,
    lateness: Releases,
    interval: Distribution,
    exceedances: Pooled,
    /// Distances of intervals from zero; empty in a campaign that began without them.
    #[serde(default)]
    intervals: Pooled,
    /// Which releases were missed, likewise.
    #[serde(default)]
    releases: Pooled,
    maxima: Maxima,
    outliers: Outliers,
    effort: Effort,
}

impl Total {
    /// A collector for the next batch. The thresholds in addition to the ladder are fixed by the
    /// first batch.
    pub fn collector(&self, start: Start, watched: &WatchedThresholds) -> Collector {
        Collector::new(start, self, watched)
    }

    /// Adds a batch that [`Self::collector`] of this total began; nothing may have been added
    /// since.
    pub fn add(&mut self, batch: Collector, effort: &Effort) {
        let (lateness, exceedances) = batch.finish(effort.missed, effort.unrecorded);
        let walk = batch.walk();
        self.cycles += walk.samples();
        self.cold += walk.cold();
        self.cold_max_ns = self.cold_max_ns.max(walk.cold_max_ns());
        self.lateness.merge(&lateness);
        self.interval.merge(&batch.interval);
        self.exceedances.merge(&exceedances);
        self.intervals.merge(&batch.intervals.counted(0));
        self.releases.merge(&batch.releases.counted(effort.missed));
        self.maxima = batch.maxima;
        self.outliers = batch.outliers;
        self.effort.add(effort);
    }

    /// Recorded cycles, cold ones included.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Lateness of all releases.
    pub fn lateness_ns(&self) -> SummaryStats {
        self.lateness.stats()
    }

    /// Releases whose lateness is not known: the largest is a lower bound where it is not 0.
    pub fn unknown(&self) -> u64 {
        self.lateness.unknown()
    }

    pub(super) fn lateness(&self) -> &Releases {
        &self.lateness
    }

    /// Latenesses that were recorded.
    fn recorded(&self) -> u64 {
        self.lateness.wakes.histogram().count()
    }

    /// Intervals between them.
    pub fn interval(&self) -> &Distribution {
        &self.interval
    }

    /// What the measuring process counted.
    pub fn effort(&self) -> &Effort {
        &self.effort
    }

    /// Exceedances of all thresholds.
    pub fn tails(&self) -> Tails {
        self.exceedances.tails(self.effort.unrecorded)
    }

    pub(super) fn exceedances(&self) -> &Pooled {
        &self.exceedances
    }

    pub(super) fn intervals(&self) -> &Pooled {
        &self.intervals
    }

    pub(super) fn releases(&self) -> &Pooled {
        &self.releases
    }

    /// Distances of all intervals from zero; `None` where not all were watched.
    pub(super) fn interval_tails(&self) -> Option<Tails> {
        let all = self.intervals.recorded() == self.interval.histogram().count();
        all.then(|| self.intervals.tails(0))
    }

    /// All releases; `None` where not all were watched.
    pub(super) fn release_tails(&self) -> Option<Tails> {
        let all = self.releases.recorded() == self.recorded();
        all.then(|| self.releases.tails(0))
    }

    /// The block maxima.
    pub fn maxima(&self) -> &Maxima {
        &self.maxima
    }

    /// The latest wakes.
    pub fn outliers(&self) -> &Outliers {
        &self.outliers
    }

    /// The figures of all batches as one run. There is no grid, because no grid continues across
    /// boots.
    pub fn outcome(&self) -> RunFigures {
        let tails = self.tails();
        let known = self.lateness.known();
        let histogram = known.histogram();
        let worst = |late: &super::outliers::Outlier| WorstRelease {
            cycle: late.cycle,
            at_ns: late.at_ns,
            kind: late.kind,
            lateness_ns: late.lateness_ns as f64,
            cause: None,
        };
        RunFigures {
            cycles: self.cycles,
            cold: self.cold,
            cold_max_ns: self.cold_max_ns.map(|ns| ns as f64),
            missed: Some(self.effort.missed),
            censored: self.lateness.censored,
            unrecorded: self.effort.unrecorded,
            lateness_ns: self.lateness.stats_of(&known),
            wakes: Wakes::of(
                &self.lateness.wakes,
                Some(self.effort.missed.saturating_add(self.effort.unrecorded)),
            ),
            interval_ns: self.interval.stats(),
            response_ns: None,
            execution_ns: None,
            grid: None,
            jitters: Jitters::of(&self.lateness.wakes, &self.interval, None, None),
            histogram: HistogramView::of(histogram).with_unknown(self.lateness.unknown()),
            claims: claims(&tails, histogram).into_iter().chain(self.unextrapolated()).collect(),
            worst: self.outliers.kept().iter().take(WORST_MAX).map(worst).collect(),
            imported: None,
            line: None,
            requested: RequestedTails::of(self.interval_tails(), self.release_tails()),
            tails,
            lateness: known.into_histogram(),
        }
    }

    /// The one claim of level L3: refused, because a campaign keeps too little for its tests.
    fn unextrapolated(&self) -> Option<Claim> {
        let n = self.recorded();
        let p = rarest(n);
        let blocks = self.maxima.largest_ns().len();
        (n > 0).then(|| Claim {
            level: Level::L3,
            statement: format!(
                "no extrapolation to {p:.0e}: a campaign keeps only the maxima of {} \
                of {} cycles, so independence and stationarity of the latest cycles cannot \
                be tested; 'punctual check' and 'punctual measure periodic' can test them",
                if blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") },
                self.maxima.block_cycles()
            ),
            p: Some(p),
            bound_ns: None,
            confidence: None,
            n,
            given: false,
            conditions: "extrapolated by a model, only if its tests pass".to_owned(),
            alone: false,
        })
    }

    pub(super) fn is_sound(&self) -> bool {
        let counts = [self.cycles, self.cold];
        counts.iter().all(|&count| count <= COUNT_MAX)
            && self.lateness.is_sound(COUNT_MAX)
            && self.interval.is_sound()
            && self.exceedances.is_sound()
            && self.intervals.is_sound()
            && self.releases.is_sound()
            && self.maxima.is_sound()
            && self.outliers.is_sound()
            && self.effort.is_sound()
            && self.recorded() <= self.cycles
            && self.exceedances.recorded() == self.recorded()
            && self.intervals.recorded() <= self.interval.histogram().count()
            && self.releases.recorded() <= self.recorded()
    }
}
