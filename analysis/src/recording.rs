//! The one streaming pass over one run: samples in, [`RunFigures`] out.
//!
//! Feeds every accumulator of this crate. Bounded memory (1.6 MiB at most; before the first sample
//! some KiB), no allocation per sample. Never reads a clock or a file; never drops a sample without
//! counting it.

use punctual_core::sample::{Flags, Sample};
use punctual_core::time::{Instant, Period, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::ask::{Ask, ClaimEvent};
use crate::claim::count::{EventCount, WatchedThreshold};
use crate::claim::dependence::{Exceedances, Tails, ThresholdCount};
use crate::claim::{Claim, claims, quantile_within, watched};
use crate::extremes::{self, Peaks};
use crate::gridfit::{Grid, GridFit, Line};
use crate::histogram::{Bucket, Histogram, HistogramView};
use crate::imported::{Imported, ImportedQuantity};
use crate::interval::Interval;
use crate::jitters::Jitters;
use crate::plot::HeatColumn;
use crate::quantile::Probability;
use crate::release::{Lateness, ReleaseGap, Walk};
use crate::summary::{Distribution, SummaryStats};

/// The meaning of a sample's lateness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReleaseInstants {
    /// Its release is known: the lateness is that of the glossary.
    #[default]
    Known,
    /// Only instants are known; the "lateness" is the deviation from a nominal grid through the
    /// first one, which drift alone makes meaningless. Interval and grid are reported, lateness
    /// (and with it quantiles, claims and verdict) is not.
    Unknown,
    /// As `Unknown`, in a second pass: lateness is counted from the earliest line that the first
    /// pass found ([`RunFigures::line`]), which late wakes do not tilt, so it misses only a
    /// constant that instants alone do not show; a wake before the release that it was counted
    /// for is a late one of the release before, where that has none.
    Fitted(Line),
}

/// A run, as it is known before its first sample.
#[derive(Clone, Debug, Default)]
pub struct RecordingConfig {
    /// The nominal period; without it there is no grid, and intervals are differences of lateness.
    pub period: Option<Period>,
    /// Instant of release 0.
    pub epoch: Instant,
    /// Leave samples flagged [`COLD`](punctual_core::sample::Flags::COLD) out of every figure (they
    /// are counted).
    pub leave_out_cold: bool,
    /// Thresholds to watch in addition to the 1-2-5 ladder, ns.
    pub thresholds_ns: Vec<i64>,
    /// The meaning of lateness.
    pub releases: ReleaseInstants,
}

/// The accumulator of one run.
#[derive(Clone, Debug)]
pub struct Recording {
    setup: RecordingConfig,
    walk: Walk,
    lateness: Lateness,
    interval: Distribution,
    grid: Option<GridFit>,
    exceedances: Exceedances,
    requested: Requested,
    peaks: Peaks,
    worst: WorstList,
}

impl Recording {
    /// An empty recording.
    pub fn new(setup: RecordingConfig) -> Self {
        let period_ns =
            setup.period.map_or(0, |period| i64::try_from(period.as_ns()).unwrap_or(i64::MAX));
        Self {
            walk: Walk::new(period_ns, setup.leave_out_cold).spaced(match &setup.releases {
                ReleaseInstants::Fitted(line) => line.spacing_ns(period_ns),
                ReleaseInstants::Known | ReleaseInstants::Unknown => period_ns,
            }),
            lateness: Lateness::default(),
            interval: Distribution::default(),
            grid: setup.period.map(match &setup.releases {
                ReleaseInstants::Known => GridFit::new,
                ReleaseInstants::Unknown | ReleaseInstants::Fitted(_) => GridFit::of_instants,
            }),
            exceedances: Exceedances::new(period_ns, &setup.thresholds_ns),
            requested: Requested::default(),
            peaks: Peaks::default(),
            worst: WorstList::default(),
            setup,
        }
    }

    /// Watches the events of these claims that are not lateness; thresholds of lateness are those
    /// of [`RecordingConfig::thresholds_ns`]. Before the first sample.
    #[must_use]
    pub fn watching(mut self, asks: &[Ask]) -> Self {
        self.requested = Requested::new(asks);
        self
    }

    /// Sets release 0, when it is known only after the first samples (CSV instants).
    pub fn set_epoch(&mut self, epoch: Instant) {
        self.setup.epoch = epoch;
    }

    /// Takes in the next sample. Cycles must not decrease.
    #[inline]
    pub fn push(&mut self, sample: &Sample) {
        let ReleaseInstants::Fitted(line) = self.setup.releases else {
            return self.push_late_by(sample, sample.lateness.as_ns());
        };
        let counted = (sample.cycle, sample.lateness.as_ns());
        let after = self.walk.follows().map(|before| before.cycle);
        let placed = self.setup.period.map(|period| line.placed(counted, after, period));
        let (cycle, deviation_ns) = placed.unwrap_or(counted);
        let sample = Sample { cycle, lateness: Span::from_ns(deviation_ns), ..*sample };
        self.push_late_by(&sample, line.above_earliest_ns(cycle, deviation_ns));
    }

    /// Takes in a sample that was `lateness_ns` late.
    #[inline]
    fn push_late_by(&mut self, sample: &Sample, lateness_ns: i64) {
        let deviation_ns = sample.lateness.as_ns();
        let knows_lateness = self.setup.releases != ReleaseInstants::Unknown;
        let step = self.walk.step(sample, lateness_ns);
        if let Some(gap) = step.gap {
            self.requested.miss(gap.missed());
            if knows_lateness {
                self.miss(&gap, sample);
            }
        }
        if step.left_out {
            return;
        }
        if let Some(ns) = step.interval_ns {
            self.interval.push(ns);
            self.requested.push_interval(ns);
        }
        self.requested.push_release();
        if let Some(grid) = &mut self.grid {
            grid.push(sample.cycle, deviation_ns);
        }
        if knows_lateness {
            self.lateness.push(lateness_ns);
            self.exceedances.push(lateness_ns, 0, 0);
            self.peaks.push(lateness_ns);
            if self.worst.takes(lateness_ns) {
                let (cycle, kind) = (sample.cycle, ReleaseKind::Ran);
                self.worst.push(Kept { lateness_ns, cycle, deviation_ns, kind });
            }
        }
    }

    /// Takes in the releases that were missed before `sample`.
    #[cold]
    fn miss(&mut self, gap: &ReleaseGap, sample: &Sample) {
        self.lateness.miss(gap);
        self.exceedances.miss(*gap);
        let (Some((releases, lateness_ns)), Some(period)) = (gap.longest_wait(), self.setup.period)
        else {
            return;
        };
        if self.worst.takes(lateness_ns) {
            let wait_ns = i128::from(releases) * i128::from(period.as_ns());
            let late_ns = i128::from(sample.lateness.as_ns()) + wait_ns;
            let deviation_ns = i64::try_from(late_ns).unwrap_or(i64::MAX);
            let cycle = sample.cycle - releases;
            self.worst.push(Kept { lateness_ns, cycle, deviation_ns, kind: ReleaseKind::Missed });
        }
    }

    /// Samples so far, cold ones included.
    pub fn samples(&self) -> u64 {
        self.walk.samples()
    }

    /// Releases without a sample so far: missed, or run but unrecorded.
    pub fn gaps(&self) -> u64 {
        self.walk.gaps()
    }

    /// The count so far of the event of a claim, for a live view. Copies what is watched, some KiB:
    /// fine several times a second, not for each sample.
    ///
    /// # Errors
    /// In one line, why the data do not show it.
    pub fn counted_so_far(&self, ask: &Ask) -> Result<EventCount, String> {
        let gaps = self.walk.gaps();
        let tails = self.exceedances.clone().finish(gaps);
        // What went unrecorded is a gap so far, and counts as missed.
        let counts = CycleCounts {
            latenesses: self.lateness.wakes().histogram().count(),
            recorded: self.walk.samples(),
            unrecorded: 0,
        };
        counted(ask, &tails, counts, &self.requested.so_far(gaps))
    }

    /// The figures. `unrecorded` is how many samples did not fit in the recorder: their releases
    /// ran, so they are taken off the gaps in k, and what remains was missed.
    pub fn finish(self, unrecorded: u64) -> RunFigures {
        let missed = self.walk.gaps().saturating_sub(unrecorded);
        self.finish_with(missed, unrecorded)
    }

    /// The figures, where the recorder itself counted the missed releases (which also covers those
    /// after the last sample).
    pub fn finish_with(self, missed: u64, unrecorded: u64) -> RunFigures {
        let placement = self.walk.placement(missed, unrecorded);
        let tails = self.exceedances.placed(missed, &placement).tails(unrecorded);
        let releases = self.lateness.finish(&placement, unrecorded);
        let (grid, line) = self.grid.as_ref().and_then(GridFit::finish).unzip();
        let jitters = Jitters::of(&releases.wakes, &self.interval, grid.as_ref());
        let known = releases.known();
        let histogram = known.histogram();
        let mut claims = claims(&tails, histogram);
        claims.extend(extremes::claim(&self.peaks, missed, unrecorded));
        RunFigures {
            cycles: self.walk.samples(),
            cold: self.walk.cold(),
            cold_max_ns: match self.setup.releases {
                ReleaseInstants::Known => self.walk.cold_max_ns().map(|ns| ns as f64),
                ReleaseInstants::Unknown | ReleaseInstants::Fitted(_) => None,
            },
            missed: Some(missed),
            censored: releases.censored,
            unrecorded,
            lateness_ns: releases.stats_of(&known),
            wakes: Wakes::of(&releases.wakes, Some(missed.saturating_add(unrecorded))),
            interval_ns: self.interval.stats(),
            response_ns: None,
            grid,
            jitters,
            histogram: HistogramView::of(histogram).with_unknown(releases.unknown()),
            claims,
            watched: watched(&tails),
            worst: self.worst.finish(&self.setup),
            imported: None,
            line,
            requested: self.requested.finish(missed),
            tails,
            lateness: known.into_histogram(),
            intervals: self.interval.into_histogram(),
        }
    }

    /// The nine numbers of lateness so far, and how often it was how much, of releases that ran or
    /// lie in a gap.
    pub fn lateness_so_far(&self) -> (SummaryStats, HeatColumn) {
        let placement = self.walk.placement(self.walk.gaps(), 0);
        let releases = self.lateness.clone().finish(&placement, 0);
        let known = releases.known();
        (known.stats(), HeatColumn::of(known.histogram()))
    }

    /// The quantile of the lateness of wakes alone so far, ns; `None` where too few show it.
    pub fn wakes_so_far(&self, p: Probability) -> Option<i64> {
        self.lateness.wakes().histogram().quantile(p)
    }

    /// Takes in a block of samples.
    pub fn extend(&mut self, samples: &[Sample]) {
        let mut block = Block::EMPTY;
        for some in samples.chunks(BLOCK) {
            let known = matches!(self.setup.releases, ReleaseInstants::Known);
            match self.walk.follows().filter(|_| known) {
                Some(previous) if block.hold(previous, some) => {
                    self.push_block(&block, some);
                }
                _ => some.iter().for_each(|sample| self.push(sample)),
            }
        }
    }

    fn push_block(&mut self, block: &Block, samples: &[Sample]) {
        debug_assert!(samples.iter().all(|sample| sample.flags == Flags::NONE));
        let lateness_ns = &block.lateness_ns[..block.len];
        let interval_ns = &block.interval_ns[..block.len];
        self.walk.stride(block.len as u64, samples.last());
        self.interval.extend_near(interval_ns);
        self.requested.extend(interval_ns);
        if let Some(grid) = &mut self.grid {
            grid.extend_near(block.first_cycle, lateness_ns);
        }
        let largest_ns = self.lateness.extend_near(lateness_ns);
        self.exceedances.extend(lateness_ns);
        self.peaks.extend(lateness_ns, largest_ns);
        if self.worst.takes(largest_ns) {
            for (cycle, &ns) in (block.first_cycle..).zip(lateness_ns) {
                let kind = ReleaseKind::Ran;
                self.worst.push(Kept { lateness_ns: ns, cycle, deviation_ns: ns, kind });
            }
        }
    }
}

/// The most that are kept; of equals the earlier.
pub const WORST_MAX: usize = 10;

/// The fate of a release: it ran, or it was missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReleaseKind {
    /// It ran.
    #[default]
    Ran,
    /// It was missed.
    Missed,
}

/// One late release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstRelease {
    /// Its cycle.
    pub cycle: u64,
    /// Instant of its wake, ns: on CLOCK_MONOTONIC, or on the clock that the run follows. For a
    /// missed release the first wake after it.
    pub at_ns: u64,
    /// "ran", or "missed": then the first of those that waited for the same wake.
    #[serde(default)]
    pub kind: ReleaseKind,
    /// Its lateness, ns.
    pub lateness_ns: f64,
    /// The cause of its lateness, where that is known.
    pub cause: Option<String>,
}

/// A late release as it is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    lateness_ns: i64,
    cycle: u64,
    /// wake − (epoch + cycle·period), which is not the lateness where that is about a fitted line.
    deviation_ns: i64,
    kind: ReleaseKind,
}

/// The latest releases so far, latest first.
#[derive(Clone, Debug)]
struct WorstList {
    kept: Vec<Kept>,
    /// A lateness must exceed this to be kept.
    bar_ns: Option<i64>,
}

impl WorstList {
    /// True where a lateness would be kept.
    #[inline]
    fn takes(&self, lateness_ns: i64) -> bool {
        self.bar_ns.is_none_or(|bar| lateness_ns > bar)
    }

    /// Takes one in that is late enough.
    #[cold]
    fn push(&mut self, late: Kept) {
        if !self.takes(late.lateness_ns) {
            return;
        }
        let at = self.kept.partition_point(|kept| kept.lateness_ns >= late.lateness_ns);
        self.kept.insert(at, late);
        self.kept.truncate(WORST_MAX);
        if self.kept.len() == WORST_MAX {
            self.bar_ns = self.kept.last().map(|kept| kept.lateness_ns);
        }
    }

    fn finish(&self, setup: &RecordingConfig) -> Vec<WorstRelease> {
        let period_ns = setup.period.map_or(0, |period| u128::from(period.as_ns()));
        let worst = |kept: &Kept| {
            let release = u128::from(setup.epoch.as_ns()) + u128::from(kept.cycle) * period_ns;
            let release = u64::try_from(release).unwrap_or(u64::MAX);
            WorstRelease {
                cycle: kept.cycle,
                at_ns: release.saturating_add_signed(kept.deviation_ns),
                kind: kept.kind,
                lateness_ns: kept.lateness_ns as f64,
                cause: None,
            }
        };
        self.kept.iter().map(worst).collect()
    }
}

impl Default for WorstList {
    fn default() -> Self {
        Self { kept: Vec::with_capacity(WORST_MAX + 1), bar_ns: None }
    }
}

/// The most samples at once.
const BLOCK: usize = 256;

/// Lateness within ± this: 256 squares of intervals, of twice that, fit in 2⁶².
const NEAR_NS: i64 = 1 << 26;

/// Neighbouring cycles, and the intervals that lead to them.
///
/// A block is at most [`BLOCK`] cycles without a gap or a flag, each within 67 ms of its release:
/// their sums fit in words, none starts or ends anything, and each accumulator keeps its state in
/// registers while it passes over them. The result is exactly that of `Recording::push` sample by
/// sample; every other sample goes there.
struct Block {
    first_cycle: u64,
    len: usize,
    lateness_ns: [i64; BLOCK],
    interval_ns: [i64; BLOCK],
}

impl Block {
    const EMPTY: Self =
        Self { first_cycle: 0, len: 0, lateness_ns: [0; BLOCK], interval_ns: [0; BLOCK] };

    /// Holds `samples` from now on, which follow on `previous`; false where they are no block. In
    /// place, because returning a value of this size costs more than filling it.
    fn hold(&mut self, previous: &Sample, samples: &[Sample]) -> bool {
        let Some(first_cycle) = samples.first().map(|sample| sample.cycle) else { return false };
        if previous.cycle.checked_add(1) != Some(first_cycle) || samples.len() > BLOCK {
            return false;
        }
        (self.first_cycle, self.len) = (first_cycle, samples.len());
        let mut last_ns = previous.lateness.as_ns();
        // Bits that must all be 0: one pass without a branch.
        let mut odd = far(last_ns);
        let slots = self.lateness_ns.iter_mut().zip(&mut self.interval_ns);
        for ((cycle, sample), (lateness, interval)) in (first_cycle..).zip(samples).zip(slots) {
            let ns = sample.lateness.as_ns();
            odd |= far(ns) | (sample.cycle ^ cycle) | u64::from(sample.flags.bits());
            *lateness = ns;
            *interval = ns.wrapping_sub(last_ns);
            last_ns = ns;
        }
        odd == 0
    }
}

/// 0 for a lateness in [−2²⁶, 2²⁶) ns.
#[inline]
fn far(ns: i64) -> u64 {
    ns.wrapping_add(NEAR_NS).cast_unsigned() >> (NEAR_NS.trailing_zeros() + 1)
}

/// The figures of one run.
///
/// The JSON keys are those of the schema; limits and verdicts need the parts that JSON leaves out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunFigures {
    /// Recorded cycles, cold ones included; 0 for imported data without a count.
    pub cycles: u64,
    /// Recorded cycles that were flagged cold.
    pub cold: u64,
    /// Largest lateness among the cold cycles, whether they count or are left out; null without
    /// any.
    pub cold_max_ns: Option<f64>,
    /// Releases that never ran; null for data that do not record it.
    pub missed: Option<u64>,
    /// Missed releases known only to be at least a period late, the first of several in a row as
    /// many periods as came behind it: no wake followed, or cycles went unrecorded among them.
    #[serde(default)]
    pub censored: u64,
    /// Cycles that ran but did not fit in the recorder.
    pub unrecorded: u64,
    /// Lateness of all releases: wake − release of those that ran; of those that were missed until
    /// the first wake after them, and a period at least. Where `censored` or `unrecorded` is not 0
    /// quantiles take those for the latest of all, and `max` is a lower bound. Data that know no
    /// releases have that of their wakes.
    pub lateness_ns: SummaryStats,
    /// Lateness of wakes alone, as programs report it that know no releases.
    #[serde(default)]
    pub wakes: Wakes,
    /// wake − previous wake − period.
    pub interval_ns: SummaryStats,
    /// finish − release; null when not recorded.
    pub response_ns: Option<SummaryStats>,
    /// The least-squares grid; null without a period or with fewer than two cycles.
    pub grid: Option<Grid>,
    /// Every measure that goes by that name.
    pub jitters: Jitters,
    /// Lateness, for people; for imported data, whatever they hold.
    pub histogram: HistogramView,
    /// The claims that the run supports.
    pub claims: Vec<Claim>,
    /// The thresholds that were watched, rising, from the last that all cycles exceed to the first
    /// that none does; not there where the order of cycles is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<WatchedThreshold>,
    /// The latest releases, latest first.
    pub worst: Vec<WorstRelease>,
    /// The description of another program's data; null for the project's own.
    #[serde(default)]
    pub imported: Option<Imported>,
    /// The line behind `grid`; of instants the earliest line, for a second pass.
    #[serde(skip)]
    pub line: Option<Line>,
    /// Events other than lateness that the requested claims are about.
    #[serde(skip)]
    pub requested: RequestedTails,
    /// Exceedances of every watched threshold.
    #[serde(skip)]
    pub tails: Tails,
    /// Lateness in full resolution.
    #[serde(skip)]
    pub lateness: Histogram,
    /// Intervals less the period in full resolution, shorter ones below zero; empty for imported
    /// data.
    #[serde(skip)]
    pub intervals: Histogram,
}

/// Lateness of the cycles that ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wakes {
    /// Releases that these numbers leave out, missed or unrecorded; null for data that do not
    /// record it.
    pub left_out: Option<u64>,
    /// The nine numbers.
    #[serde(flatten)]
    pub stats: SummaryStats,
}

impl Wakes {
    /// Of a distribution of wakes.
    pub(crate) fn of(wakes: &Distribution, left_out: Option<u64>) -> Self {
        Self { left_out, stats: wakes.stats() }
    }
}

impl RunFigures {
    /// Releases that the figures of lateness are of: those that ran, those that were missed and
    /// those that went unrecorded. Cold ones that are left out are not among them.
    pub fn releases(&self) -> u64 {
        let view = &self.histogram;
        let known = view.buckets.iter().map(|bucket| bucket.count);
        known.fold(view.overflow, u64::saturating_add).saturating_add(self.unknown())
    }

    /// What another program left out of its histogram: between the end of that and the largest
    /// value. `None` where nothing is left out, or the two are not known.
    pub fn left_out(&self) -> Option<Bucket> {
        let count = self.histogram.overflow;
        let imported = self.imported.as_ref().filter(|_| count > 0)?;
        let (lowest_ns, highest_ns) = imported.beyond_ns(self.lateness_ns.max)?;
        Some(Bucket { lowest_ns, highest_ns, count })
    }

    /// Releases whose lateness is not known, which may have been later than all others.
    pub fn unknown(&self) -> u64 {
        self.censored.saturating_add(self.unrecorded)
    }

    /// A quantile of lateness with the ends of its interval, 95 % sure; `None` where there are too
    /// few releases for the quantile.
    pub fn quantile_within(&self, p: Probability) -> Option<Interval> {
        quantile_within(&self.tails, &self.lateness, p)
    }

    /// The count of the event of a claim: exact for a threshold that was watched, else between the
    /// two nearest that were.
    ///
    /// # Errors
    /// In one line, why the data do not show it.
    pub fn counted(&self, ask: &Ask) -> Result<EventCount, String> {
        if let (Some(imported), ClaimEvent::Interval { .. }) = (&self.imported, ask.event())
            && imported.holds == ImportedQuantity::Interval
            && self.cycles == 0
        {
            let program = &imported.program;
            return Err(format!(
                "{program} records how large intervals were, not how many there were"
            ));
        }
        let counts = CycleCounts {
            latenesses: self.lateness.count(),
            recorded: self.cycles,
            unrecorded: self.unrecorded,
        };
        counted(ask, &self.tails, counts, &self.requested)
    }

    /// These figures as a result's JSON gives them, with the parts that it leaves out made from
    /// its histogram: lateness at the resolution of its buckets, exceedances of `thresholds_ns`
    /// between the least and the most that these allow, missed releases as counted. The order of
    /// cycles is not known, so clusters do not show; intervals other than the largest are not known
    /// at all.
    ///
    /// # Errors
    /// Counts that no run has, in one line.
    pub fn read_back(self, thresholds_ns: &[i64]) -> Result<Self, String> {
        let releases = self.releases();
        if releases > RELEASES_MAX {
            return Err(format!("its histogram holds more than {RELEASES_MAX} releases"));
        }
        let buckets = &self.histogram.buckets;
        let are_whole = buckets.iter().all(|bucket| bucket.lower_ns < bucket.upper_ns);
        if !are_whole || buckets.windows(2).any(|pair| pair[0].upper_ns > pair[1].lower_ns) {
            return Err("the buckets of its histogram are not in rising order".to_owned());
        }
        let mut lateness = Histogram::new();
        for bucket in buckets.iter().map(|bucket| bucket.closed()) {
            lateness.push_many(bucket.highest_ns, bucket.count);
        }
        let latest_ns = self.lateness_ns.max.map_or(i64::MAX, |ns| ns as i64);
        lateness.push_beyond(latest_ns, self.histogram.overflow);
        let n = releases - self.unrecorded;
        let mut thresholds = thresholds_ns.to_vec();
        thresholds.sort_unstable();
        thresholds.dedup();
        let left_out = self.left_out();
        let beyond = if left_out.is_some() { 0 } else { self.histogram.overflow };
        let exceeded = |threshold_ns: &i64| {
            let buckets = buckets.iter().map(|bucket| bucket.closed()).chain(left_out);
            let seen = EventCount::of_buckets(*threshold_ns, buckets, beyond);
            let most = seen.most.saturating_add(self.censored);
            ThresholdCount { threshold_ns: *threshold_ns, most, unsure: most - seen.least }
        };
        let counts: Vec<ThresholdCount> = thresholds.iter().map(exceeded).collect();
        let missed = self.missed.map(|missed| {
            let missed = ThresholdCount { threshold_ns: MISSED, most: missed, unsure: 0 };
            // What went unrecorded ran.
            Tails::of_counts(n, 0, &[missed])
        });
        let requested = RequestedTails::of(None, missed);
        let tails = Tails::of_counts(n, self.unrecorded, &counts);
        Ok(Self { tails, requested, lateness, ..self })
    }
}

/// More releases than any run has: 29 years at 1 GHz.
pub(crate) const RELEASES_MAX: u64 = 1 << 59;

/// The events that are watched beside lateness.
///
/// Lateness is watched anyway, with the requested thresholds among its own; |interval| and missed
/// releases only when a claim asks, so that nobody else pays. Constant memory.
#[derive(Clone, Debug, Default)]
struct Requested {
    /// |interval|.
    interval: Option<Exceedances>,
    /// Releases: 0 for each that ran, beyond any threshold for each that did not.
    missed: Option<Exceedances>,
}

/// The exceedances of the quantities that claims ask about other than lateness, counted.
#[derive(Clone, Debug, Default)]
pub struct RequestedTails {
    /// Distances of intervals from zero.
    interval: Option<Tails>,
    /// Releases, as [`Requested`] has them.
    missed: Option<Tails>,
}

impl RequestedTails {
    /// From what was watched; `None` of what was not.
    pub fn of(interval: Option<Tails>, missed: Option<Tails>) -> Self {
        Self { interval, missed }
    }
}

/// Any threshold between a release that ran and one that did not.
pub(crate) const MISSED: i64 = 1;

impl Requested {
    fn new(asks: &[Ask]) -> Self {
        let thresholds: Vec<i64> = asks.iter().filter_map(|ask| ask.interval_ns()).collect();
        let missed = asks.iter().any(|ask| ask.event() == ClaimEvent::Missed);
        Self {
            interval: (!thresholds.is_empty()).then(|| Exceedances::new(0, &thresholds)),
            missed: missed.then(|| Exceedances::new(0, &[MISSED])),
        }
    }

    #[inline]
    fn push_interval(&mut self, interval_ns: i64) {
        if let Some(interval) = &mut self.interval {
            interval.push(interval_ns.saturating_abs(), 0, 0);
        }
    }

    /// One release that ran.
    #[inline]
    fn push_release(&mut self) {
        if let Some(releases) = &mut self.missed {
            releases.push(0, 0, 0);
        }
    }

    /// Releases that did not.
    fn miss(&mut self, missed: u64) {
        if let Some(releases) = &mut self.missed {
            releases.miss(ReleaseGap::new(missed, 0, 0, 0));
        }
    }

    /// Intervals of releases that ran, with none missed between.
    #[inline]
    fn extend(&mut self, interval_ns: &[i64]) {
        if self.interval.is_some() || self.missed.is_some() {
            for &ns in interval_ns {
                self.push_interval(ns);
                self.push_release();
            }
        }
    }

    fn finish(self, missed: u64) -> RequestedTails {
        RequestedTails {
            interval: self.interval.map(|interval| interval.finish(0)),
            missed: self.missed.map(|releases| releases.finish(missed)),
        }
    }

    /// As [`Self::finish`], for now; the run goes on.
    fn so_far(&self, missed: u64) -> RequestedTails {
        self.clone().finish(missed)
    }
}

/// The cycles of a run, by what is known of them.
struct CycleCounts {
    /// Recorded cycles whose lateness is known.
    latenesses: u64,
    /// Recorded cycles.
    recorded: u64,
    /// Cycles that ran without a record: any of them may have been late.
    unrecorded: u64,
}

/// The count of the event of a claim: of lateness by `lateness`, else by the tails that were
/// requested.
///
/// # Errors
/// In one line, why the data do not show it.
fn counted(
    ask: &Ask,
    lateness: &Tails,
    counts: CycleCounts,
    requested: &RequestedTails,
) -> Result<EventCount, String> {
    match ask.event() {
        ClaimEvent::Lateness { .. } if counts.latenesses == 0 && counts.recorded > 0 => {
            Err("it is about lateness, and this run holds none".to_owned())
        }
        ClaimEvent::Lateness { above_ns } => Ok(lateness.counted(above_ns)),
        ClaimEvent::Interval { above_ns } => match &requested.interval {
            Some(interval) => Ok(interval.counted(above_ns).with_unseen(counts.unrecorded)),
            None => Err("it is about intervals, and these data do not hold them".to_owned()),
        },
        ClaimEvent::Missed => match &requested.missed {
            Some(releases) => Ok(releases.counted(MISSED)),
            None => Err("these data do not record which releases were missed".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::{Instant, Period, Span};

    use crate::claim::ask::Ask;
    use crate::histogram::ViewBucket;

    fn sample(cycle: u64, lateness_ns: i64, flags: Flags) -> Sample {
        Sample { cycle, lateness: Span::from_ns(lateness_ns), flags }
    }

    fn setup() -> RecordingConfig {
        RecordingConfig {
            period: Period::from_ns(1_000),
            epoch: Instant::from_ns(500),
            ..RecordingConfig::default()
        }
    }

    fn outcome(setup: RecordingConfig, samples: &[Sample], unrecorded: u64) -> RunFigures {
        let mut recording = Recording::new(setup);
        recording.extend(samples);
        recording.finish(unrecorded)
    }

    #[test]
    fn a_result_read_back_counts_between_what_its_buckets_allow() {
        let asks = ["p(lateness>50us)<1e-3", "p(lateness>700us)<1e-3", "p(missed)<1e-3"];
        let asks = asks.map(|text| Ask::parse(text).expect("a claim"));
        let thresholds_ns = [50_000, 700_000];
        let setup = RecordingConfig {
            period: Period::from_ns(1_000_000),
            thresholds_ns: thresholds_ns.to_vec(),
            ..RecordingConfig::default()
        };
        let mut recording = Recording::new(setup).watching(&asks);
        // Each fortieth release is missed, behind a wake that is late.
        let ran = (0..40_000_u64).filter(|k| k % 40 != 0);
        let samples: Vec<Sample> =
            ran.map(|k| sample(k, (k * 7_919 % 90_000).cast_signed(), Flags::NONE)).collect();
        recording.extend(&samples);
        let recorded = recording.finish_with(999, 7);
        let text = serde_json::to_string(&recorded).expect("JSON");
        let bare: RunFigures = serde_json::from_str(&text).expect("the same");
        assert!(bare.tails.tails().is_empty() && bare.lateness.count() == 0);
        let read = bare.clone().read_back(&thresholds_ns).expect("sound");
        assert_eq!(read.lateness.count(), recorded.lateness.count());
        for ask in &asks {
            let (exact, back) = (recorded.counted(ask), read.counted(ask));
            let (exact, back) = (exact.expect("counted"), back.expect("counted"));
            assert_eq!(back.n, exact.n, "{ask:?}");
            assert!(back.least <= exact.least && exact.most <= back.most, "{exact:?}: {back:?}");
            assert!(!back.ordered && back.most - back.least < exact.n / 20, "{back:?}");
        }
        let mut wrong = bare.clone();
        wrong.histogram.buckets = [(5, 9, 1), (4, 5, 1)].map(ViewBucket::from).to_vec();
        assert!(wrong.read_back(&[0]).expect_err("turned").contains("rising order"));
        let mut wrong = bare;
        let endless = [(0, 1, u64::MAX), (i64::MIN, i64::MIN, u64::MAX)];
        wrong.histogram.buckets = endless.map(ViewBucket::from).to_vec();
        assert!(wrong.read_back(&[0]).expect_err("no run").contains("releases"));
    }

    #[test]
    fn nothing_recorded_is_an_outcome_too() {
        let outcome = outcome(setup(), &[], 0);
        assert_eq!((outcome.cycles, outcome.missed), (0, Some(0)));
        assert_eq!(outcome.lateness_ns, SummaryStats::default());
        assert!(outcome.claims.is_empty() && outcome.grid.is_none() && outcome.worst.is_empty());
    }

    #[test]
    fn gaps_inside_a_segment_are_missed_and_between_segments_are_not() {
        let samples = [
            sample(0, 10, Flags::FIRST),
            sample(1, 30, Flags::NONE),
            sample(5, 20, Flags::NONE),
            sample(100, 10, Flags::FIRST),
            sample(101, 10, Flags::NONE),
        ];
        let figures = outcome(setup(), &samples, 0);
        assert_eq!((figures.cycles, figures.missed, figures.unrecorded), (5, Some(3), 0));
        assert_eq!(outcome(setup(), &samples, 2).missed, Some(1));
        // Intervals 20, 3 periods − 10, 0; none into cycle 100.
        assert_eq!(figures.interval_ns.max, Some(2_990.0));
        assert_eq!(figures.interval_ns.mean, Some((20.0 + 2_990.0) / 3.0));
    }

    #[test]
    fn cold_samples_can_be_left_out_and_start_no_interval() {
        let samples = [
            sample(0, 900, Flags::FIRST.with(Flags::COLD)),
            sample(1, 10, Flags::NONE),
            sample(2, 12, Flags::NONE),
        ];
        let kept = outcome(setup(), &samples, 0);
        assert_eq!((kept.cold, kept.lateness_ns.max), (1, Some(900.0)));
        let left = outcome(RecordingConfig { leave_out_cold: true, ..setup() }, &samples, 0);
        assert_eq!((left.cycles, left.cold, left.lateness_ns.max), (3, 1, Some(12.0)));
        assert_eq!(left.cold_max_ns, Some(900.0), "left out, and reported");
        assert_eq!((left.interval_ns.min, left.interval_ns.max), (Some(2.0), Some(2.0)));
    }

    #[test]
    fn the_worst_are_named_with_their_instant() {
        let samples: Vec<Sample> =
            (0..100).map(|k| sample(k, (k as i64 * 37) % 100, Flags::NONE)).collect();
        let worst = outcome(setup(), &samples, 0).worst;
        assert_eq!(worst.len(), WORST_MAX);
        assert_eq!(
            worst.iter().map(|w| w.lateness_ns).collect::<Vec<_>>(),
            [99.0, 98.0, 97.0, 96.0, 95.0, 94.0, 93.0, 92.0, 91.0, 90.0]
        );
        assert!(worst.iter().all(|w| w.at_ns == 500 + w.cycle * 1_000 + w.lateness_ns as u64));
    }

    #[test]
    fn a_missed_release_is_late_by_a_period_at_least() {
        let mut samples: Vec<Sample> = (0..50).map(|k| sample(k, 10, Flags::NONE)).collect();
        samples.push(sample(52, 10, Flags::NONE));
        let outcome = outcome(setup(), &samples, 0);
        assert_eq!(outcome.missed, Some(2));
        assert_eq!(outcome.tails.exceedances(500), Some(2));
        assert_eq!(outcome.tails.exceedances(1_000_000_000), Some(0));
        assert_eq!(outcome.tails.n(), 53);
    }

    #[test]
    fn instants_alone_get_a_lateness_in_the_second_pass() {
        // 1000 ppm of drift: the deviation from the nominal grid is no lateness.
        let samples: Vec<Sample> = (0..20_000u64)
            .map(|k| sample(k, k as i64 + [0, 4, 8][k as usize % 3], Flags::NONE))
            .collect();
        let first =
            outcome(RecordingConfig { releases: ReleaseInstants::Unknown, ..setup() }, &samples, 0);
        assert_eq!(first.lateness_ns, SummaryStats::default());
        assert_eq!(first.interval_ns.max, Some(5.0));
        let line = first.line.unwrap();
        let second = outcome(
            RecordingConfig { releases: ReleaseInstants::Fitted(line), ..setup() },
            &samples,
            0,
        );
        assert_eq!((second.lateness_ns.min, second.lateness_ns.max), (Some(0.0), Some(8.0)));
        assert_eq!(first.grid, second.grid);
        // The instant is that of the wake itself.
        let worst = &second.worst[0];
        assert_eq!(worst.at_ns, 500 + worst.cycle * 1_000 + worst.cycle + 8);
    }

    #[test]
    fn extremes_saturate() {
        let far = punctual_core::sample::CYCLE_MAX;
        let samples = [sample(0, i64::MIN, Flags::NONE), sample(far, i64::MAX, Flags::NONE)];
        let outcome = outcome(setup(), &samples, 0);
        assert_eq!(outcome.missed, Some(far - 1));
        assert_eq!(outcome.interval_ns.max, Some(i64::MAX as f64));
    }

    fn figures(
        setup: &RecordingConfig,
        requested: &[Ask],
        samples: &[Sample],
        at_once: bool,
    ) -> RunFigures {
        let mut recording = Recording::new(setup.clone()).watching(requested);
        if at_once {
            recording.extend(samples);
        } else {
            samples.iter().for_each(|sample| recording.push(sample));
        }
        recording.finish(0)
    }

    /// Blocks with what ends them: gaps, flags, stalls, steps back, absurd values.
    fn recordings() -> impl Strategy<Value = Vec<Sample>> {
        let lateness = prop_oneof![
            60 => 2_000i64..9_000,
            6 => -50_000i64..200_000,
            1 => -100_000_000i64..100_000_000,
        ];
        let odd = prop_oneof![
            400 => Just((1u64, Flags::NONE, 0i64)),
            1 => (2u64..9, Just(Flags::NONE), Just(0i64)),
            1 => (1u64..9, Just(Flags::FIRST.with(Flags::COLD)), Just(0i64)),
            1 => Just((1, Flags::COLD, 0)),
            1 => Just((1, Flags::NONE, 1i64 << 40)),
        ];
        (0u64..1 << 40, prop::collection::vec((odd, lateness), 0..6_000)).prop_map(
            |(mut k, steps)| {
                let samples = steps.into_iter().map(|((step, flags, stall), lateness)| {
                    k += step;
                    Sample { cycle: k, lateness: Span::from_ns(lateness + stall), flags }
                });
                samples.collect()
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_block_gives_what_its_samples_give(
            samples in recordings(), leave_out_cold: bool, with_period: bool, asks: bool,
        ) {
            let setup = RecordingConfig {
                period: Period::from_ns(1_000_000).filter(|_| with_period),
                epoch: Instant::from_ns(7),
                leave_out_cold,
                ..RecordingConfig::default()
            };
            let ask = |text: &str| text.parse::<Ask>().unwrap();
            let requested = ["p(|interval|>5us)<1e-3", "p(missed)<1e-3"].map(ask);
            let requested = if asks { &requested[..] } else { &[] };
            let finished = |at_once| figures(&setup, requested, &samples, at_once);
            let [singly, at_once] = [false, true].map(finished);
            prop_assert_eq!(format!("{singly:?}"), format!("{at_once:?}"));
        }
    }

    #[test]
    fn the_border_of_what_is_near_is_exact() {
        assert_eq!([far(NEAR_NS - 1), far(-NEAR_NS), far(0)], [0; 3]);
        assert!(far(NEAR_NS) > 0 && far(-NEAR_NS - 1) > 0 && far(i64::MIN) > 0);
    }

    fn keys(value: &serde_json::Value) -> Vec<&str> {
        value
            .as_object()
            .map(|object| object.keys().map(String::as_str).collect())
            .unwrap_or_default()
    }

    #[test]
    fn the_keys_are_those_of_the_schema() {
        let period = Period::from_ns(1_000_000);
        let mut recording =
            Recording::new(RecordingConfig { period, ..RecordingConfig::default() });
        for cycle in 0..3_000 {
            let lateness = Span::from_ns(5_000 + (cycle * 7_919 % 1_000) as i64);
            recording.push(&Sample { cycle, lateness, ..Sample::default() });
        }
        let json = serde_json::to_value(recording.finish(0)).unwrap();
        let of_run = ["cycles", "missed", "unrecorded", "lateness_ns", "interval_ns", "grid"];
        let more = ["response_ns", "histogram", "claims", "worst"];
        for key in of_run.iter().chain(&more) {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert!(json.get("tails").is_none() && json.get("lateness").is_none());
        let mut stats = ["min", "mean", "stddev", "p50", "p90", "p99", "p99_9", "p99_99", "max"];
        stats.sort_unstable();
        assert_eq!(keys(&json["lateness_ns"]), stats);
        assert!(json["lateness_ns"]["p99_99"].is_null() && json["response_ns"].is_null());
        for key in ["period_ns", "drift_ppb", "phase_ns", "jitter_pp_ns", "rms_ns"] {
            assert!(json["grid"][key].is_number(), "{key}");
        }
        assert!(json["histogram"]["buckets"][0][2].is_u64());
        assert_eq!(json["histogram"]["unit_ns"], 1);
        let claim = ["alone", "bound_ns", "conditions", "confidence", "given", "level"];
        assert_eq!(keys(&json["claims"][0])[..6], claim);
        assert_eq!(keys(&json["claims"][0])[6..], ["n", "p", "statement"]);
        assert_eq!(json["claims"][0]["level"], "L0");
        assert_eq!(keys(&json["worst"][0]), ["at_ns", "cause", "cycle", "kind", "lateness_ns"]);
        assert_eq!(json["wakes"]["left_out"], 0);
        assert_eq!(json["wakes"]["p99"], json["lateness_ns"]["p99"]);
        // What results of before had, always null, is read over.
        let mut earlier = json.clone();
        earlier["execution_ns"] = serde_json::Value::Null;
        let read: RunFigures = serde_json::from_value(earlier).expect("an earlier result");
        assert_eq!(serde_json::to_value(&read).unwrap(), json);
    }

    fn ask(text: &str) -> Ask {
        Ask::parse(text).unwrap()
    }

    fn asks() -> [Ask; 3] {
        ["p(lateness>777ns)<0.1", "p(|interval|>777ns)<0.1", "p(missed)<0.1"].map(ask)
    }

    fn recording(cycles: &[(u64, i64)], releases: ReleaseInstants) -> Recording {
        let setup = RecordingConfig {
            period: Period::from_ns(10_000),
            thresholds_ns: vec![777],
            releases,
            ..RecordingConfig::default()
        };
        let mut recording = Recording::new(setup).watching(&asks());
        for &(cycle, ns) in cycles {
            let lateness = Span::from_ns(ns);
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        }
        recording
    }

    #[test]
    fn what_was_not_watched_or_not_recorded_is_an_error() {
        let samples = [(0, 5), (1, 900), (2, 5)];
        let [lateness, interval, missed] = asks();
        let instants = recording(&samples, ReleaseInstants::Unknown).finish(0);
        assert!(instants.counted(&lateness).unwrap_err().contains("holds none"));
        assert_eq!(instants.counted(&interval).map(|c| (c.least, c.n)), Ok((2, 2)));
        assert_eq!(instants.counted(&missed).map(|c| (c.least, c.n)), Ok((0, 3)));
        let plain = Recording::new(RecordingConfig::default()).finish(0);
        assert!(plain.counted(&missed).is_err() && plain.counted(&interval).is_err());
        assert_eq!(plain.counted(&lateness).map(|c| c.n), Ok(0));
        // A threshold between two that were watched.
        let recorded = recording(&samples, ReleaseInstants::Known).finish(0);
        let between = recorded.counted(&ask("p(lateness>600ns)<0.1")).unwrap();
        assert_eq!((between.least, between.most), (1, 1));
        let near = recording(&[(0, 5), (1, 900), (2, 760)], ReleaseInstants::Known).finish(0);
        let between = near.counted(&ask("p(lateness>700ns)<0.1")).unwrap();
        assert_eq!((between.least, between.most), (1, 2));
    }

    #[test]
    fn what_went_unrecorded_may_have_been_late_and_was_not_missed() {
        let samples: Vec<(u64, i64)> = (0..100).map(|k| (k, 5)).collect();
        let outcome = recording(&samples, ReleaseInstants::Known).finish_with(0, 30);
        let [lateness, interval, missed] = asks().map(|ask| outcome.counted(&ask).unwrap());
        assert_eq!((lateness.n, lateness.least, lateness.most), (130, 0, 30));
        assert_eq!((interval.n, interval.least, interval.most), (129, 0, 30));
        assert_eq!((missed.n, missed.least, missed.most), (100, 0, 0));
    }

    #[test]
    fn releases_missed_after_the_last_cycle_count() {
        let outcome = recording(&[(0, 5), (3, 5)], ReleaseInstants::Known).finish_with(6, 0);
        let missed = outcome.counted(&asks()[2]).unwrap();
        assert_eq!((missed.n, missed.least, missed.most), (8, 6, 6));
    }

    proptest! {
        // Each case finishes whole recordings, histograms and all.
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn every_count_is_exact_at_every_time(
            steps in prop::collection::vec((1u64..4, 0i64..2_000), 1..400),
            cut in 0usize..400,
        ) {
            let mut cycle = 0;
            let cycles: Vec<(u64, i64)> = steps
                .iter()
                .map(|&(step, ns)| {
                    cycle += step;
                    (cycle, ns)
                })
                .collect();
            let cut = &cycles[..cut.clamp(1, cycles.len())];
            let gaps: u64 = cut.windows(2).map(|pair| pair[1].0 - pair[0].0 - 1).sum();
            let late = cut.iter().filter(|cycle| cycle.1 > 777).count() as u64;
            let far = cut.windows(2).filter(|pair| {
                let apart = (pair[1].0 - pair[0].0 - 1) as i64 * 10_000;
                (pair[1].1 - pair[0].1 + apart).abs() > 777
            });
            // A missed release is a period late at least, which is beyond the threshold.
            let expected = [
                (late + gaps, cut.len() as u64 + gaps),
                (far.count() as u64, cut.len() as u64 - 1),
                (gaps, cut.len() as u64 + gaps),
            ];
            let running = recording(cut, ReleaseInstants::Known);
            for (ask, (count, n)) in asks().iter().zip(expected) {
                let so_far = running.counted_so_far(ask).unwrap();
                let finished = running.clone().finish(0).counted(ask).unwrap();
                for counted in [so_far, finished] {
                    prop_assert_eq!((counted.least, counted.most, counted.n), (count, count, n));
                    prop_assert!(counted.theta > 0.0 && counted.theta <= 1.0);
                }
            }
        }
    }
}
