//! All that a campaign keeps of one run over all batches with one setup.
//!
//! Mergeable, constant memory, and checked when it is read back.

use punctual_core::sample::Sample;
use punctual_core::time::{Instant, Period};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::ask::{Ask, ClaimEvent};
use crate::claim::count::{EventCount, Separate};
use crate::claim::dependence::{Exceedances, Pooled, Tails};
use crate::claim::{Claim, Level, claims, watched};
use crate::extremes::rarest;
use crate::histogram::{Bucket, Histogram, HistogramView};
use crate::jitters::Jitters;
use crate::recording::{
    MISSED, ReleaseKind, RequestedTails, RunFigures, WORST_MAX, Wakes, WorstRelease,
};
use crate::release::{Lateness, ReleaseGap, Releases, Walk};
use crate::summary::{Distribution, SummaryStats};

/// A limit above every count of a campaign.
const COUNT_MAX: u64 = 1 << 56;

/// A limit above every time of a campaign, ns.
const TIME_MAX_NS: u64 = 1 << 62;

/// The most bytes of a thread's name: the kernel keeps 15, of its own workers up to 63.
const NAME_BYTES_MAX: usize = 256;

/// Counts of a batch of one run that only the measuring process has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// Time that the host took from its CPU, ns; `None` where not every batch recorded it.
    #[serde(default)]
    pub steal_ns: Option<u64>,
    /// The other threads on its CPU while that was to be idle; `None` where no batch recorded them.
    #[serde(default)]
    pub others: Option<OtherTime>,
}

impl Effort {
    fn add(&mut self, added: &Self) {
        self.steal_ns = match self.wall_ns {
            0 => added.steal_ns,
            _ => self.steal_ns.zip(added.steal_ns).map(|(sum, ns)| sum.saturating_add(ns)),
        };
        self.steal_ns = self.steal_ns.map(|ns| ns.min(TIME_MAX_NS));
        self.missed += added.missed;
        self.unrecorded += added.unrecorded;
        self.wall_ns += added.wall_ns;
        self.cpu_ns += added.cpu_ns;
        self.page_faults += added.page_faults;
        self.preempted += added.preempted;
        self.stalled += added.stalled;
        self.stall_max_ns = self.stall_max_ns.max(added.stall_max_ns);
        self.load_deaths += added.load_deaths;
        if let Some(others) = &added.others {
            self.others.get_or_insert_default().add(others);
        }
    }

    fn is_sound(&self) -> bool {
        let steal_ns = self.steal_ns.unwrap_or(0);
        let times = [self.wall_ns, self.cpu_ns, self.stall_max_ns, steal_ns];
        let counts = [
            self.missed,
            self.unrecorded,
            self.page_faults,
            self.preempted,
            self.stalled,
            self.load_deaths,
        ];
        times.iter().all(|&ns| ns <= TIME_MAX_NS)
            && counts.iter().all(|&count| count <= COUNT_MAX)
            && self.others.as_ref().is_none_or(OtherTime::is_sound)
    }
}

/// The most names of other threads that are kept: those with most time. A name that had to make way
/// begins anew where it comes again, so that of more names than these each may lack time.
const NAMES_MAX: usize = 256;

/// The CPU time of other threads on the CPU of a run, over its batches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherTime {
    /// Length of the batches, ns.
    pub wall_ns: u64,
    /// CPU time of all others, ns.
    pub run_ns: u64,
    /// By name of the thread, ns, most first.
    pub threads: Vec<(String, u64)>,
}

impl OtherTime {
    fn add(&mut self, added: &Self) {
        self.wall_ns += added.wall_ns;
        self.run_ns += added.run_ns;
        for (name, ran_ns) in &added.threads {
            match self.threads.iter_mut().find(|(known, _)| known == name) {
                Some((_, known_ns)) => *known_ns += ran_ns,
                None => self.threads.push((name.clone(), *ran_ns)),
            }
        }
        self.threads.sort_by(|(name, ns), (other, other_ns)| {
            other_ns.cmp(ns).then_with(|| name.cmp(other))
        });
        self.threads.truncate(NAMES_MAX);
    }

    fn is_sound(&self) -> bool {
        let times = self.threads.iter().map(|(_, ns)| ns);
        self.wall_ns <= TIME_MAX_NS
            && self.run_ns <= self.wall_ns
            && self.threads.len() <= NAMES_MAX
            && self.threads.iter().all(|(name, _)| name.len() <= NAME_BYTES_MAX)
            && times.max().is_none_or(|&ns| ns <= self.run_ns)
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
        let walk = &batch.walk;
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

    /// Latenesses that were recorded.
    fn recorded(&self) -> u64 {
        self.lateness.wakes.histogram().count()
    }

    /// Intervals between them.
    pub fn interval(&self) -> &Distribution {
        &self.interval
    }

    /// The counts of the measuring process.
    pub fn effort(&self) -> &Effort {
        &self.effort
    }

    /// Exceedances of all thresholds.
    pub fn tails(&self) -> Tails {
        self.exceedances.tails(self.effort.unrecorded)
    }

    /// Distances of all intervals from zero; `None` where not all were watched.
    fn interval_tails(&self) -> Option<Tails> {
        let complete = self.intervals.recorded() == self.interval.histogram().count();
        complete.then(|| self.intervals.tails(0))
    }

    /// All releases; `None` where not all were watched.
    fn release_tails(&self) -> Option<Tails> {
        let complete = self.releases.recorded() == self.recorded();
        complete.then(|| self.releases.tails(0))
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
        let worst = |late: &Outlier| WorstRelease {
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
            grid: None,
            jitters: Jitters::of(&self.lateness.wakes, &self.interval, None),
            histogram: HistogramView::of(histogram).with_unknown(self.lateness.unknown()),
            claims: claims(&tails, histogram).into_iter().chain(self.unextrapolated()).collect(),
            watched: watched(&tails),
            worst: self.outliers.kept().iter().take(WORST_MAX).map(worst).collect(),
            imported: None,
            line: None,
            requested: RequestedTails::of(self.interval_tails(), self.release_tails()),
            tails,
            lateness: known.into_histogram(),
            intervals: self.interval.histogram().clone(),
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
            theta: None,
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

    /// The counts of the event of a claim.
    pub fn counted(&self, ask: &Ask) -> EventCount {
        let tails = self.tails();
        let unrecorded = self.effort().unrecorded;
        match ask.event() {
            ClaimEvent::Lateness { above_ns } => {
                let known = self.lateness.known();
                let seen = buckets(known.histogram(), above_ns, false);
                narrowed(tails.counted(above_ns), &seen, self.lateness.unknown())
            }
            ClaimEvent::Interval { above_ns } => {
                let intervals = self.interval.histogram();
                let seen = buckets(intervals, above_ns, true);
                let watched = self.interval_tails().map(|watched| watched.counted(above_ns));
                // A campaign of a version that did not watch intervals has their histogram alone.
                let counted = watched.map_or(seen, |counted| narrowed(counted, &seen, 0));
                counted.with_unseen(unrecorded)
            }
            ClaimEvent::Missed => match self.release_tails() {
                Some(releases) => releases.counted(MISSED),
                None => missed_of(&tails, self.effort().missed),
            },
        }
    }
}

/// Thresholds to watch in addition to the ladder, ns.
///
/// Exact where its threshold was watched from the first cycle on. Otherwise between the nearest
/// watched thresholds or by the buckets of the histogram, whichever is narrower.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedThresholds {
    /// Of lateness.
    pub lateness_ns: Vec<i64>,
    /// Of the distance of intervals from zero.
    pub interval_ns: Vec<i64>,
}

/// The releases of a campaign that did not watch which of them were missed.
fn missed_of(tails: &Tails, missed: u64) -> EventCount {
    let n = tails.n() - tails.unrecorded();
    let (least, most, separate) = (missed, missed, Separate::Unknown);
    EventCount { n, least, most, theta: 1.0, separate, ordered: false }
}

/// Narrows the counts of a threshold by the buckets of the same values; `without` more values are
/// in no bucket.
fn narrowed(counted: EventCount, buckets: &EventCount, without: u64) -> EventCount {
    let least = counted.least.max(buckets.least);
    let most = counted.most.min(buckets.most.saturating_add(without));
    EventCount { least, most: most.max(least), ..counted }
}

/// Counts from the buckets; with `signed`, of the distance from zero.
fn buckets(values: &Histogram, above_ns: i64, signed: bool) -> EventCount {
    let cut = values.buckets().map(|bucket| match signed && bucket.highest_ns < 0 {
        true => Bucket {
            lowest_ns: -bucket.highest_ns,
            highest_ns: -bucket.lowest_ns,
            count: bucket.count,
        },
        false => bucket,
    });
    EventCount::of_buckets(above_ns, cut, values.overflow())
}

/// A batch, as it is known before its first sample.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The nominal period.
    pub period: Period,
    /// Instant of release 0 on CLOCK_MONOTONIC.
    pub epoch: Instant,
    /// CLOCK_REALTIME − CLOCK_MONOTONIC, ns.
    pub time_of_day_ns: i64,
    /// Leave samples flagged cold out of every figure (they are counted).
    pub leave_out_cold: bool,
    /// The number of the boot.
    pub boot: u32,
}

/// Watches the thresholds that a total watches, or the requested ones where it has none yet.
fn more(period_ns: i64, total: &Pooled, thresholds_ns: &[i64]) -> Exceedances {
    if total.recorded() == 0 {
        Exceedances::new(period_ns, thresholds_ns)
    } else {
        Exceedances::like(period_ns, total)
    }
}

/// The accumulator of one run during one batch.
///
/// Constant memory, no allocation per sample; the grid is not fitted, because no grid continues
/// across boots.
#[derive(Clone, Debug)]
pub struct Collector {
    start: Start,
    walk: Walk,
    lateness: Lateness,
    interval: Distribution,
    exceedances: Exceedances,
    /// Distances of intervals from zero.
    intervals: Exceedances,
    /// Releases: 0 for each that ran, beyond any threshold for each that did not.
    releases: Exceedances,
    maxima: Maxima,
    outliers: Outliers,
}

impl Collector {
    /// An empty collector whose counts will be added to `total`.
    fn new(start: Start, total: &Total, watched: &WatchedThresholds) -> Self {
        let period_ns = i64::try_from(start.period.as_ns()).unwrap_or(i64::MAX);
        Self {
            walk: Walk::new(period_ns, start.leave_out_cold),
            start,
            lateness: Lateness::default(),
            interval: Distribution::default(),
            exceedances: more(period_ns, &total.exceedances, &watched.lateness_ns),
            intervals: more(0, &total.intervals, &watched.interval_ns),
            releases: more(0, &total.releases, &[MISSED]),
            maxima: total.maxima().clone(),
            outliers: total.outliers().clone(),
        }
    }

    /// Sets the current time of day, for the outliers that follow.
    pub fn set_time_of_day(&mut self, ahead_ns: i64) {
        self.start.time_of_day_ns = ahead_ns;
    }

    /// Takes in a block of samples, in order.
    pub fn extend(&mut self, samples: &[Sample]) {
        samples.iter().for_each(|sample| self.push(sample));
    }

    /// Takes in the next sample. Cycles must not decrease.
    #[inline]
    pub fn push(&mut self, sample: &Sample) {
        let lateness_ns = sample.lateness.as_ns();
        let step = self.walk.step(sample, lateness_ns);
        if let Some(gap) = step.gap {
            self.miss(&gap, sample);
        }
        if step.left_out {
            return;
        }
        if let Some(ns) = step.interval_ns {
            self.interval.push(ns);
            self.intervals.push(ns.saturating_abs(), 0, 0);
        }
        self.releases.push(0, 0, 0);
        self.lateness.push(lateness_ns);
        self.exceedances.push(lateness_ns, 0, 0);
        self.maxima.push(lateness_ns);
        if self.outliers.wants(lateness_ns) {
            self.note(sample, lateness_ns, ReleaseKind::Ran);
        }
    }

    /// Takes in the releases that were missed before `sample`.
    #[cold]
    fn miss(&mut self, gap: &ReleaseGap, sample: &Sample) {
        self.releases.miss(ReleaseGap::new(gap.missed(), 0, 0, 0));
        self.lateness.miss(gap);
        self.exceedances.miss(*gap);
        if let Some((releases, lateness_ns)) = gap.longest_wait()
            && self.outliers.wants(lateness_ns)
        {
            let missed = Sample { cycle: sample.cycle - releases, ..*sample };
            self.note(&missed, lateness_ns, ReleaseKind::Missed);
        }
    }

    /// Keeps the release of a sample as an outlier.
    #[cold]
    fn note(&mut self, sample: &Sample, lateness_ns: i64, kind: ReleaseKind) {
        let period_ns = u128::from(self.start.period.as_ns());
        let release = u128::from(self.start.epoch.as_ns()) + u128::from(sample.cycle) * period_ns;
        let release = u64::try_from(release).unwrap_or(u64::MAX);
        let at_ns = release.saturating_add_signed(lateness_ns);
        let monotonic = i64::try_from(at_ns).unwrap_or(i64::MAX);
        self.outliers.insert(Outlier {
            lateness_ns,
            at_unix_ns: monotonic.saturating_add(self.start.time_of_day_ns),
            at_ns,
            cycle: sample.cycle,
            kind,
            boot: self.start.boot,
        });
    }

    /// Recorded cycles so far, cold ones included.
    pub fn cycles(&self) -> u64 {
        self.walk.samples()
    }

    /// Lateness of the releases, and exceedances of the thresholds, of a batch that is over.
    pub(super) fn finish(&self, missed: u64, unrecorded: u64) -> (Releases, Pooled) {
        let placement = self.walk.placement(missed, unrecorded);
        let exceedances = self.exceedances.clone().placed(missed, &placement);
        (self.lateness.clone().finish(&placement, unrecorded), exceedances)
    }

    /// Releases without a sample so far: missed, or run but unrecorded.
    pub fn gaps(&self) -> u64 {
        self.walk.gaps()
    }
}

/// Cycles of a block at first.
pub const BLOCK_CYCLES: u64 = 1_000;

/// The most blocks; from the first doubling on there are at least half as many.
pub const BLOCKS_MAX: usize = 1_024;

/// A series of block maxima.
///
/// For extreme values. When there are too many blocks, neighbours become one and the length
/// doubles: every block always holds the same number of cycles, however long it goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maxima {
    /// Cycles of each block: [`BLOCK_CYCLES`] times a power of two.
    block_cycles: u64,
    /// Of whole blocks, oldest first.
    largest_ns: Vec<i64>,
    /// Cycles of the block that is not full yet, and the largest of them.
    open: u64,
    open_largest_ns: i64,
}

impl Maxima {
    /// Takes in the lateness of the next cycle.
    #[inline]
    pub fn push(&mut self, lateness_ns: i64) {
        self.open_largest_ns = self.open_largest_ns.max(lateness_ns);
        self.open += 1;
        if self.open == self.block_cycles {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        self.largest_ns.push(self.open_largest_ns);
        (self.open, self.open_largest_ns) = (0, i64::MIN);
        if self.largest_ns.len() == BLOCKS_MAX {
            let pairs = self.largest_ns.as_chunks::<2>().0;
            self.largest_ns = pairs.iter().map(|&[a, b]| a.max(b)).collect();
            self.block_cycles *= 2;
        }
    }

    /// Cycles of each block.
    pub fn block_cycles(&self) -> u64 {
        self.block_cycles
    }

    /// The maxima of all whole blocks, ns, oldest first.
    pub fn largest_ns(&self) -> &[i64] {
        &self.largest_ns
    }

    fn is_sound(&self) -> bool {
        let times = self.block_cycles / BLOCK_CYCLES;
        self.block_cycles.is_multiple_of(BLOCK_CYCLES)
            && times.is_power_of_two()
            && times <= 1 << 40
            && self.open < self.block_cycles
            && self.largest_ns.len() < BLOCKS_MAX
    }
}

impl Default for Maxima {
    fn default() -> Self {
        let largest_ns = Vec::new();
        Self { block_cycles: BLOCK_CYCLES, largest_ns, open: 0, open_largest_ns: i64::MIN }
    }
}

/// The most outliers that are kept of each run.
pub const OUTLIERS_MAX: usize = 64;

/// One late release of a campaign.
///
/// Keeps [`OUTLIERS_MAX`]; of equals the earlier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outlier {
    /// Its lateness.
    pub lateness_ns: i64,
    /// When, in ns since 1970 by the time of day as it was set then.
    pub at_unix_ns: i64,
    /// The instant of the wake on CLOCK_MONOTONIC of that boot; for a missed release the first wake
    /// after it.
    pub at_ns: u64,
    /// Its cycle, counted from the start of its batch.
    pub cycle: u64,
    /// Ran or missed; `ran` in campaigns of earlier versions.
    #[serde(default)]
    pub kind: ReleaseKind,
    /// The number of the boot.
    pub boot: u32,
}

/// The latest releases so far, latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outliers {
    kept: Vec<Outlier>,
}

impl Outliers {
    /// True where a wake of this lateness would be kept.
    #[inline]
    pub fn wants(&self, lateness_ns: i64) -> bool {
        match self.kept.last() {
            Some(last) if self.kept.len() == OUTLIERS_MAX => lateness_ns > last.lateness_ns,
            _ => true,
        }
    }

    /// Adds a wake if it is late enough.
    #[cold]
    pub fn insert(&mut self, late: Outlier) {
        let at = self.kept.partition_point(|kept| kept.lateness_ns >= late.lateness_ns);
        self.kept.insert(at, late);
        self.kept.truncate(OUTLIERS_MAX);
    }

    /// Adds the entries of another list.
    pub fn merge(&mut self, added: &Self) {
        for late in &added.kept {
            if self.wants(late.lateness_ns) {
                self.insert(late.clone());
            }
        }
    }

    /// All entries, latest first.
    pub fn kept(&self) -> &[Outlier] {
        &self.kept
    }

    fn is_sound(&self) -> bool {
        self.kept.len() <= OUTLIERS_MAX
            && self.kept.is_sorted_by(|a, b| a.lateness_ns >= b.lateness_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::{Instant, Period, Span};

    use crate::campaign::{Effort, Start};
    use crate::recording::{Recording, RecordingConfig};

    const ASKS: [&str; 4] =
        ["p(lateness>50us)<0.1", "p(lateness>61us)<0.1", "p(|interval|>30us)<0.1", "p(missed)<0.1"];

    /// Cycles of 1 ms, bursts of late ones, a missed release now and then.
    fn samples(seed: u64) -> Vec<Sample> {
        let mut cycle = 0;
        let sample = |k: u64| {
            let mixed = (seed * 9_000 + k).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let late = (k / 5).wrapping_mul(0x9e37_79b9) >> 8 & 63 == 0;
            cycle += if mixed.is_multiple_of(400) { 3 } else { 1 };
            let ns = if late { 40_000 } else { 5_000 } + (mixed % 30_000) as i64;
            let flags = if k == 0 { Flags::FIRST } else { Flags::NONE };
            Sample { cycle, lateness: Span::from_ns(ns), flags }
        };
        (0..6_000).map(sample).collect()
    }

    fn start() -> Start {
        Start {
            period: Period::from_ns(1_000_000).expect("positive"),
            epoch: Instant::from_ns(0),
            time_of_day_ns: 0,
            leave_out_cold: true,
            boot: 1,
        }
    }

    #[test]
    fn who_else_ran_is_added_up_and_stays_bounded() {
        let ran = |threads: &[(&str, u64)]| Effort {
            others: Some(OtherTime {
                wall_ns: 1_000,
                run_ns: threads.iter().map(|(_, ns)| ns).sum(),
                threads: threads.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect(),
            }),
            steal_ns: Some(7),
            wall_ns: 1_000,
            ..Effort::default()
        };
        let mut effort = Effort::default();
        effort.add(&Effort::default());
        assert_eq!((effort.steal_ns, &effort.others), (None, &None));
        effort.add(&ran(&[("rustc", 300), ("sshd", 20)]));
        effort.add(&ran(&[("sshd", 30), ("cron", 10)]));
        let others = effort.others.clone().expect("two batches recorded them");
        let named: Vec<(&str, u64)> =
            others.threads.iter().map(|(name, ns)| (name.as_str(), *ns)).collect();
        assert_eq!(named, [("rustc", 300), ("sshd", 50), ("cron", 10)]);
        assert_eq!((others.wall_ns, others.run_ns, effort.steal_ns), (2_000, 360, Some(14)));
        (0..400).for_each(|number| effort.add(&ran(&[(&format!("t{number}"), 1)])));
        // One that comes late and runs longer than the least of them stays.
        (0..9).for_each(|_| effort.add(&ran(&[("backup", 100)])));
        let others = effort.others.clone().expect("there");
        assert_eq!((others.threads.len(), others.run_ns), (NAMES_MAX, 1_660));
        assert_eq!(others.threads[0], ("backup".to_owned(), 900));
        assert!(effort.is_sound());
        // Batches of an earlier version did not record it.
        let mut began = Effort { wall_ns: 5_000, ..Effort::default() };
        began.add(&ran(&[]));
        assert_eq!(began.steal_ns, None);
        effort.add(&Effort { steal_ns: Some(u64::MAX), ..ran(&[]) });
        assert!(effort.is_sound());
        let broken = OtherTime { wall_ns: 1, run_ns: 2, threads: Vec::new() };
        assert!(!Effort { others: Some(broken), ..effort }.is_sound());
    }

    #[test]
    fn a_campaign_counts_as_one_recording_of_it_does() {
        let asks = ASKS.map(|text| Ask::parse(text).expect("a claim"));
        let watched = WatchedThresholds { lateness_ns: vec![61_000], interval_ns: vec![30_000] };
        let mut total = Total::default();
        let setup = RecordingConfig {
            period: Period::from_ns(1_000_000),
            thresholds_ns: vec![61_000],
            ..RecordingConfig::default()
        };
        let mut whole = Recording::new(setup).watching(&asks);
        for seed in 0..4 {
            let mut batch = total.collector(start(), &watched);
            batch.extend(&samples(seed));
            whole.extend(&samples(seed));
            let missed = batch.gaps();
            total.add(batch, &Effort { missed, ..Effort::default() });
        }
        let whole = whole.finish(0);
        for ask in &asks {
            let (counted, exact) = (total.counted(ask), whole.counted(ask).expect("watched"));
            assert_eq!(
                (counted.n, counted.least, counted.most),
                (exact.n, exact.least, exact.most)
            );
            assert!(counted.least > 0 && counted.ordered, "{ask}: {counted:?}");
            assert!((counted.theta - exact.theta).abs() < 0.1, "{ask}: {counted:?} {exact:?}");
        }
        assert!(total.counted(&asks[2]).theta < 1.0, "one late wake makes two intervals");
        let text = serde_json::to_string(&total).expect("JSON");
        let back: Total = serde_json::from_str(&text).expect("a total");
        assert_eq!(back, total);
    }

    #[test]
    fn what_was_not_watched_lies_between_and_what_was_lost_counts() {
        let mut total = Total::default();
        let mut batch = total.collector(start(), &WatchedThresholds::default());
        batch.extend(&samples(1));
        let missed = batch.gaps() - 7;
        total.add(batch, &Effort { missed, unrecorded: 7, ..Effort::default() });
        let requested = |text| total.counted(&Ask::parse(text).expect("a claim"));
        let late = requested("p(lateness>61us)<0.1");
        let exact = samples(1).iter().filter(|s| s.lateness.as_ns() > 61_000).count() as u64;
        // A missed release was later than this; one that nobody saw may have been.
        assert!(late.least <= exact + missed, "{late:?} {exact}");
        assert!((exact + missed + 7..exact + missed + 67).contains(&late.most), "{late:?} {exact}");
        let missed = requested("p(missed)<0.1");
        assert_eq!((missed.least, missed.most), (total.effort().missed, total.effort().missed));
        let interval = requested("p(|interval|>30us)<0.1");
        assert!(interval.most >= interval.least + 7);
    }

    proptest! {
        // Each case is millions of cycles.
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn every_block_holds_as_many_cycles(blocks in 0usize..5_000, rest in 0usize..999) {
            let lateness = |k: usize| ((k as i64) * 7_919) % 1_000_003;
            let mut maxima = Maxima::default();
            let cycles = blocks * BLOCK_CYCLES as usize + rest;
            (0..cycles).for_each(|k| maxima.push(lateness(k)));
            let block = maxima.block_cycles() as usize;
            prop_assert!(maxima.is_sound());
            prop_assert_eq!(maxima.largest_ns().len(), cycles / block);
            let few = maxima.largest_ns().len() < BLOCKS_MAX / 2;
            prop_assert!(block == BLOCK_CYCLES as usize || !few);
            for (at, &largest) in maxima.largest_ns().iter().enumerate().step_by(97) {
                prop_assert_eq!(Some(largest), (at * block..(at + 1) * block).map(lateness).max());
            }
        }
    }

    #[test]
    fn the_latest_stay_and_merging_is_collecting_together() {
        let late = |n: i64| Outlier {
            lateness_ns: (n * 7_919) % 1_000,
            at_unix_ns: n,
            at_ns: 0,
            cycle: 0,
            kind: ReleaseKind::Ran,
            boot: 0,
        };
        let collect = |numbers: std::ops::Range<i64>| {
            let mut outliers = Outliers::default();
            for late in numbers.map(late).filter(|late| late.lateness_ns >= 0) {
                if outliers.wants(late.lateness_ns) {
                    outliers.insert(late);
                }
            }
            outliers
        };
        let mut merged = collect(0..500);
        merged.merge(&collect(500..1_000));
        assert_eq!(merged, collect(0..1_000));
        assert!(merged.is_sound() && merged.kept().len() == OUTLIERS_MAX);
        assert_eq!(merged.kept()[0].lateness_ns, 999);
    }
}
