//! Counts of exceedances of thresholds, and how much they came in clusters.
//!
//! The extremal index θ in (0, 1] (1: independent) by the intervals estimator of Ferro and Segers
//! (2003), streaming and in constant memory, at a ladder of thresholds fixed beforehand: 1-2-5
//! steps from 100 ns to 1 s, the caller's, and four quantiles of the first samples, so that there
//! is always a threshold inside the body. A threshold is touched only when the series crosses it.
//!
//! Missed releases count with their lateness ([`crate::release`]).

use serde::{Deserialize, Serialize};

use crate::claim::bound::p_upper;
use crate::claim::count::{EventCount, Separate};
use crate::extremes::battery::{EvenPart, kuiper};
use crate::release::{Falling, ReleaseGap, StartPlacement};

/// The number of first samples that choose the adaptive thresholds.
const WARM_UP: usize = 4_096;

/// Their quantiles, in thousandths.
const ADAPTIVE: [usize; 4] = [500, 900, 990, 999];

/// The thresholds of the ladder: 100 ns, 200 ns, 500 ns … 1 s.
pub fn ladder() -> impl Iterator<Item = i64> {
    (2..=9)
        .flat_map(|decade| [1, 2, 5].map(|step| step * 10i64.pow(decade)))
        .filter(|&ns| ns <= 1_000_000_000)
}

/// The accumulator: push latenesses, then finish.
#[derive(Clone, Debug)]
pub struct Exceedances {
    watches: Vec<Watch>,
    /// For each number of significant bits: the first threshold a positive value might not exceed.
    starts: [u16; 65],
    /// The number of thresholds that the last release exceeded.
    level: usize,
    /// Releases so far, missed ones included; and recorded cycles so far.
    index: u64,
    recorded: u64,
    /// The most releases without a sample between two recorded cycles.
    gap_longest: u64,
    /// Values pushed before the thresholds are chosen.
    warm_up: Vec<Pushed>,
    warm: bool,
    /// The period, ns; 0 when there is none.
    period_ns: i64,
}

impl Exceedances {
    /// Watches the ladder, the period, and the given thresholds (ns), for cycles `period_ns` apart;
    /// 0 when there is no period, and then a missed release is later than any threshold.
    pub fn new(period_ns: i64, thresholds_ns: &[i64]) -> Self {
        let period = (period_ns > 0).then_some(period_ns);
        let given = thresholds_ns.iter().copied().chain(period);
        let mut requested: Vec<i64> = ladder().chain(given).collect();
        requested.sort_unstable();
        requested.dedup();
        Self {
            watches: requested.into_iter().map(|ns| Watch::new(ns, true)).collect(),
            starts: [0; 65],
            level: 0,
            index: 0,
            recorded: 0,
            gap_longest: 0,
            warm_up: Vec::new(),
            warm: false,
            period_ns,
        }
    }

    /// Watches the thresholds of `pooled`, so that the counts can be added to it. Where that has
    /// none yet, as [`Self::new`].
    pub fn like(period_ns: i64, pooled: &Pooled) -> Self {
        let mut like = Self::new(period_ns, &[]);
        if !pooled.counts.is_empty() {
            like.watches = pooled.counts.iter().map(Watch::like).collect();
            like.warm_up = Vec::new();
            like.begin();
        }
        like
    }

    /// Takes in one recorded cycle, and how many releases were missed just before it, after a cycle
    /// that was `before_ns` late. (How many count in all is given at the end.)
    #[inline]
    pub fn push(&mut self, lateness_ns: i64, missed: u64, before_ns: i64) {
        if missed > 0 {
            self.miss(ReleaseGap::new(missed, before_ns, lateness_ns, self.period_ns));
        }
        self.take(Pushed::Ran(lateness_ns));
    }

    /// Takes in the releases of a gap.
    pub(crate) fn miss(&mut self, gap: ReleaseGap) {
        self.take(Pushed::Missed(gap));
    }

    #[inline]
    fn take(&mut self, pushed: Pushed) {
        if self.warm {
            self.watch(pushed);
        } else {
            self.warm_up.push(pushed);
            if self.warm_up.len() == WARM_UP {
                self.choose();
            }
        }
    }

    /// Adds the adaptive thresholds and replays the buffered values.
    #[cold]
    fn choose(&mut self) {
        let held = std::mem::take(&mut self.warm_up);
        let ran = |pushed: &Pushed| match *pushed {
            Pushed::Ran(lateness_ns) => Some(lateness_ns),
            Pushed::Missed(_) => None,
        };
        let mut sorted: Vec<i64> = held.iter().filter_map(ran).collect();
        sorted.sort_unstable();
        if !sorted.is_empty() {
            for share in ADAPTIVE {
                let threshold_ns = sorted[(sorted.len() - 1) * share / 1000];
                let at = self.watches.binary_search_by_key(&threshold_ns, |w| w.threshold_ns());
                if let Err(at) = at {
                    self.watches.insert(at, Watch::new(threshold_ns, false));
                }
            }
        }
        self.begin();
        held.into_iter().for_each(|pushed| self.watch(pushed));
    }

    /// The thresholds are fixed: from here on they are watched.
    fn begin(&mut self) {
        for (bits, start) in self.starts.iter_mut().enumerate() {
            // A value of `bits` significant bits is at least 2^(bits − 1).
            let least = if bits == 0 { 0 } else { 1u64 << (bits - 1) };
            let below = |w: &Watch| w.threshold_ns() < 0 || w.threshold_ns().unsigned_abs() < least;
            *start = u16::try_from(self.watches.partition_point(below)).unwrap_or(0);
        }
        self.warm = true;
    }

    /// The number of thresholds that a value exceeds.
    #[inline]
    fn level_of(&self, lateness_ns: i64) -> usize {
        let mut level = if lateness_ns > 0 {
            usize::from(self.starts[64 - lateness_ns.leading_zeros() as usize])
        } else {
            0
        };
        while self.watches.get(level).is_some_and(|watch| lateness_ns > watch.threshold_ns()) {
            level += 1;
        }
        level
    }

    #[inline]
    fn watch(&mut self, pushed: Pushed) {
        let lateness_ns = match pushed {
            Pushed::Ran(lateness_ns) => lateness_ns,
            Pushed::Missed(gap) => return self.watch_missed(&gap),
        };
        let level = self.level_of(lateness_ns);
        if level != self.level {
            self.move_to(level);
        }
        self.index = self.index.saturating_add(1);
        self.recorded += 1;
    }

    /// The missed releases, a threshold at a time.
    #[cold]
    fn watch_missed(&mut self, gap: &ReleaseGap) {
        self.gap_longest = self.gap_longest.max(gap.missed());
        for piece in gap.pieces() {
            self.each_level(piece, |watching, level, count| {
                watching.move_to(level);
                watching.index = watching.index.saturating_add(count);
            });
        }
    }

    /// Counts releases by how many thresholds they exceed, all that exceed the same ones at once.
    fn each_level(&mut self, mut piece: Falling, mut give: impl FnMut(&mut Self, usize, u64)) {
        while let Some(lateness_ns) = piece.next_ns() {
            let level = self.level_of(lateness_ns);
            let highest = level.checked_sub(1).map(|at| self.watches[at].threshold_ns());
            let alike_ns = highest.map_or(i64::MIN, |below| below.saturating_add(1));
            let count = piece.take_from(alike_ns).count();
            give(self, level, count);
        }
    }

    fn move_to(&mut self, level: usize) {
        let (index, recorded) = (self.index, self.recorded);
        if level > self.level {
            self.watches[self.level..level].iter_mut().for_each(|watch| watch.up(index, recorded));
        } else {
            self.watches[level..self.level]
                .iter_mut()
                .for_each(|watch| watch.down(index, recorded));
        }
        self.level = level;
    }

    /// The exceedances, with the number of releases that were really missed.
    pub fn finish(self, missed: u64) -> Tails {
        self.finish_with(missed, 0)
    }

    /// The tails at the end of a run of which `unrecorded` more cycles ran: each may have been
    /// later than any threshold.
    pub fn finish_with(self, missed: u64, unrecorded: u64) -> Tails {
        self.counted(missed).tails(unrecorded)
    }

    /// The end of a run as counts, to be added to those of other recordings.
    pub fn counted(mut self, missed: u64) -> Pooled {
        self.close();
        let censored = missed.saturating_sub(self.index.saturating_sub(self.recorded));
        let placement = StartPlacement {
            gaps: true,
            trailing: Vec::new(),
            censored,
            censored_from_ns: self.period_ns,
            unanswered_ns: self.period_ns,
        };
        self.placed(missed, &placement)
    }

    /// Ends the series.
    fn close(&mut self) {
        if !self.warm {
            self.choose();
        }
        self.move_to(0);
    }

    /// The end of a run as counts, where `placement` knows more of the releases that are in no gap.
    pub(crate) fn placed(mut self, missed: u64, placement: &StartPlacement) -> Pooled {
        self.close();
        for piece in placement.trailing.iter().flat_map(|end| end.pieces) {
            self.each_level(piece, |watching, level, count| {
                watching.watches[..level].iter_mut().for_each(|watch| watch.counts.miss(count));
            });
        }
        // Gaps that may not be missed releases have nothing censored: all of them count.
        let unplaced = if placement.gaps {
            placement.censored
        } else {
            missed.saturating_sub(self.index.saturating_sub(self.recorded))
        };
        Pooled {
            counts: self.watches.into_iter().map(|watch| watch.counts).collect(),
            releases: self.index,
            recorded: self.recorded,
            gap_longest: self.gap_longest,
            missed,
            unplaced,
            unplaced_from_ns: if self.period_ns > 0 { self.period_ns } else { i64::MAX },
        }
    }

    /// Takes in recorded cycles with no release missed between them, each within 2³¹ ns.
    pub(crate) fn extend(&mut self, latenesses_ns: &[i64]) {
        for some in latenesses_ns.chunks(BLOCK) {
            if self.warm {
                self.watch_all(some);
            } else {
                some.iter().for_each(|&ns| self.push(ns, 0, 0));
            }
        }
    }

    fn watch_all(&mut self, latenesses_ns: &[i64]) {
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        for &ns in latenesses_ns {
            (min, max) = (min.min(ns), max.max(ns));
        }
        let (low, high) = (self.level_of(min), self.level_of(max));
        let (index, recorded) = (self.index, self.recorded);
        // Narrow, so that more fit in a register; these thresholds lie between min and max.
        let mut narrow = [0i32; BLOCK];
        narrow.iter_mut().zip(latenesses_ns).for_each(|(narrow, &ns)| *narrow = ns as i32);
        let mut levels = [low as i32; BLOCK];
        for watch in &self.watches[low..high] {
            let threshold_ns = watch.threshold_ns() as i32;
            for (level, &ns) in levels.iter_mut().zip(&narrow) {
                *level += i32::from(ns > threshold_ns);
            }
        }
        // Written whether the level changes or not; kept only where it does.
        let mut changes = [0u16; BLOCK];
        let (mut many, mut before) = (0, self.level as i32);
        for (at, &level) in levels[..latenesses_ns.len()].iter().enumerate() {
            changes[many] = at as u16;
            many += usize::from(level != before);
            before = level;
        }
        for &at in &changes[..many] {
            self.index = index.saturating_add(u64::from(at));
            self.recorded = recorded + u64::from(at);
            self.move_to(levels[usize::from(at)] as usize);
        }
        self.index = index.saturating_add(latenesses_ns.len() as u64);
        self.recorded = recorded + latenesses_ns.len() as u64;
    }
}

/// The next release or releases.
#[derive(Clone, Copy, Debug)]
enum Pushed {
    Ran(i64),
    Missed(ReleaseGap),
}

/// The most values at once.
const BLOCK: usize = 256;

/// Gaps between clusters that an estimate needs.
const GAPS_MIN: u64 = 10;

/// Exceedances further apart than this belong to different clusters (runs estimator).
const RUN_GAP: u64 = 10;

/// Below this many clusters the runs estimator is used too.
const FEW: u64 = 30;

/// It is used only on thresholds that at most this share of the releases exceeds.
const RARE: f64 = 0.1;

/// The counts of one threshold: additive over separate series.
///
/// Constant memory; touched only when the series crosses the threshold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Counts {
    threshold_ns: i64,
    #[serde(rename = "asked")]
    requested: bool,
    exceedances: u64,
    missed: u64,
    /// Series in which it was exceeded: each has one exceedance that no gap leads to.
    series: u64,
    /// Neighbouring exceedances (gaps of 1), and gaps of more than 1.
    neighbours: u64,
    gaps: u64,
    gap_max: u64,
    /// Σ(T − 1) and Σ(T − 1)(T − 2) over gaps T.
    #[serde(with = "crate::summary::decimal")]
    sum: u128,
    #[serde(with = "crate::summary::decimal")]
    squares: u128,
    clusters: u64,
    /// Where they were.
    #[serde(default)]
    places: Places,
}

impl Counts {
    /// Counts missed releases that exceed the threshold and whose position is unknown.
    fn miss(&mut self, count: u64) {
        self.missed = self.missed.saturating_add(count);
    }

    /// Adds those of another series, which began after `releases` of this one.
    fn add(&mut self, releases: u64, added: &Self) {
        self.requested |= added.requested;
        self.exceedances += added.exceedances;
        self.missed = self.missed.saturating_add(added.missed);
        self.series += added.series;
        self.neighbours += added.neighbours;
        self.gaps += added.gaps;
        self.gap_max = self.gap_max.max(added.gap_max);
        self.sum = self.sum.saturating_add(added.sum);
        self.squares = self.squares.saturating_add(added.squares);
        self.clusters += added.clusters;
        self.places.append(releases, &added.places);
    }

    /// True where no count is beyond `most`.
    fn is_sound(&self, most: u64) -> bool {
        let counts = [self.exceedances, self.missed, self.series, self.neighbours, self.gaps];
        counts.into_iter().chain([self.gap_max, self.clusters]).all(|count| count <= most)
            && self.places.is_sound(most)
    }

    fn finish(&self, releases: u64) -> ThresholdExceedances {
        ThresholdExceedances {
            threshold_ns: self.threshold_ns,
            exceedances: self.exceedances,
            unsure: 0,
            missed: self.missed,
            theta: self.intervals().map(|theta| with_doubt(theta, self.gaps)),
            theta_few: self.runs(releases),
            separate: self.separate(releases),
            requested: self.requested,
        }
    }

    /// The number of separate clusters; unknown of counts that were kept without places.
    fn separate(&self, releases: u64) -> Separate {
        let known = self.places.count() == self.neighbours + self.gaps + self.series;
        if known { self.places.separate(releases) } else { Separate::Unknown }
    }

    /// Ferro and Segers' estimate from the gaps between exceedances.
    fn intervals(&self) -> Option<f64> {
        if self.gaps < GAPS_MIN {
            return None;
        }
        let times = (self.neighbours + self.gaps) as f64;
        let (sum, squares) = if self.gap_max <= 2 {
            // Gaps of 1 and 2 only: their sums follow from the counts.
            let (ones, twos) = (self.neighbours as f64, self.gaps as f64);
            (ones + 2.0 * twos, ones + 4.0 * twos)
        } else {
            (self.sum as f64, self.squares as f64)
        };
        Some((2.0 * sum * sum / (times * squares)).min(1.0))
    }

    /// Clusters per exceedance of a rare threshold, while there are few clusters; less what chance
    /// alone brings together. Used once some exceedances came together: then the size of clusters
    /// is known from few of them.
    fn runs(&self, releases: u64) -> Option<f64> {
        let events = self.neighbours + self.gaps + self.series;
        let share = events as f64 / releases as f64;
        if events == 0 || self.clusters >= FEW || share > RARE {
            return None;
        }
        let apart = (1.0 - share).powi(RUN_GAP as i32);
        let theta = (self.clusters as f64 / events as f64 / apart).min(1.0);
        Some(if self.clusters < events { with_doubt(theta, self.clusters) } else { theta })
    }
}

/// One threshold while it is watched. Indices count releases, missed ones included.
#[derive(Clone, Debug)]
struct Watch {
    counts: Counts,
    /// Start of the present run of exceedances, while the series is above.
    run_start: u64,
    /// The last exceedance before the present run; `None` before the first.
    last: Option<u64>,
    /// Recorded exceedances before the present run started.
    recorded_at_start: u64,
}

impl Watch {
    fn new(threshold_ns: i64, requested: bool) -> Self {
        let counts = Counts { threshold_ns, requested, gap_max: 1, ..Counts::default() };
        Self { counts, run_start: 0, last: None, recorded_at_start: 0 }
    }

    /// Counts of the threshold of `counts`, with nothing counted yet.
    fn like(counts: &Counts) -> Self {
        Self::new(counts.threshold_ns, counts.requested)
    }

    fn threshold_ns(&self) -> i64 {
        self.counts.threshold_ns
    }

    /// The series rose above the threshold at this index.
    fn up(&mut self, index: u64, recorded: u64) {
        self.run_start = index;
        self.recorded_at_start = recorded;
        let counts = &mut self.counts;
        match self.last {
            Some(last) => {
                let gap = index - last;
                counts.gaps += 1;
                counts.gap_max = counts.gap_max.max(gap);
                counts.sum += u128::from(gap - 1);
                counts.squares += u128::from(gap - 1) * u128::from(gap.saturating_sub(2));
                counts.clusters += u64::from(gap > RUN_GAP);
            }
            None => (counts.clusters, counts.series) = (1, 1),
        }
    }

    /// The series is no longer above the threshold at this index.
    fn down(&mut self, index: u64, recorded: u64) {
        self.counts.neighbours += index - self.run_start - 1;
        let recorded = recorded - self.recorded_at_start;
        self.counts.exceedances += recorded;
        self.counts.missed += index - self.run_start - recorded;
        self.counts.places.push(self.run_start, index);
        self.last = Some(index - 1);
    }
}

/// The counts of [`Exceedances::counted`], of one recording or of several.
///
/// For campaigns, which cannot keep one accumulator for weeks and over reboots. Each recording is a
/// series of its own: the distance between two of them is not defined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pooled {
    /// In rising order of threshold.
    counts: Vec<Counts>,
    /// Releases seen, missed ones that lie between recorded ones included.
    releases: u64,
    recorded: u64,
    /// The most releases without a sample between two recorded cycles; 0 where that was not
    /// recorded.
    #[serde(default)]
    gap_longest: u64,
    missed: u64,
    /// Missed releases that were at least this late, ns; no more is known of them.
    unplaced: u64,
    #[serde(default)]
    unplaced_from_ns: i64,
}

impl Pooled {
    /// Adds another recording's, which watched the thresholds of this one
    /// ([`Exceedances::like`]); a threshold that only one of both watched is dropped, as its
    /// count would be that of a part.
    pub fn merge(&mut self, added: &Self) {
        if self.counts.is_empty() {
            *self = added.clone();
            return;
        }
        if added.counts.is_empty() {
            return;
        }
        let releases = self.releases;
        self.counts.retain_mut(|mine| {
            let at = added.counts.binary_search_by_key(&mine.threshold_ns, |c| c.threshold_ns);
            at.is_ok_and(|at| {
                mine.add(releases, &added.counts[at]);
                true
            })
        });
        self.releases += added.releases;
        self.recorded += added.recorded;
        self.gap_longest = self.gap_longest.max(added.gap_longest);
        self.missed += added.missed;
        self.unplaced_from_ns = match (self.unplaced, added.unplaced) {
            (0, _) => added.unplaced_from_ns,
            (_, 0) => self.unplaced_from_ns,
            _ => self.unplaced_from_ns.min(added.unplaced_from_ns),
        };
        self.unplaced += added.unplaced;
    }

    /// The exceedances that bounds are made from, where `unrecorded` more cycles ran.
    pub fn tails(&self, unrecorded: u64) -> Tails {
        let gaps = self.releases.saturating_sub(self.recorded);
        let longest = if self.gap_longest == 0 { gaps } else { self.gap_longest };
        // Releases that are in no gap came before the first cycle or after the last one of a
        // recording.
        let hidden = self.missed.saturating_add(unrecorded).saturating_sub(gaps);
        Tails {
            tails: self.counts.iter().map(|counts| counts.finish(self.releases)).collect(),
            recorded: self.recorded,
            missed: self.missed,
            unplaced: self.unplaced,
            unplaced_from_ns: self.unplaced_from_ns,
            unrecorded,
            lost_together: longest.max(hidden),
            unordered: false,
        }
    }

    /// Recorded cycles.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Checks counts that were read back: in order, and small enough to add up.
    pub fn is_sound(&self) -> bool {
        let small = |count: u64| count <= COUNT_MAX;
        self.counts.len() <= THRESHOLDS_MAX
            && self.counts.is_sorted_by(|a, b| a.threshold_ns < b.threshold_ns)
            && [self.releases, self.recorded, self.missed, self.unplaced].into_iter().all(small)
            && small(self.gap_longest)
            && self.counts.iter().all(|c| c.is_sound(COUNT_MAX))
    }
}

/// More thresholds than any recording watches.
const THRESHOLDS_MAX: usize = 512;

/// More cycles than any recording has: so many that sums of a few of them cannot overflow.
const COUNT_MAX: u64 = 1 << 56;

/// θ less one standard error (relative 1/√clusters): an estimate must not claim independence that
/// it could not have distinguished from dependence.
fn with_doubt(theta: f64, clusters: u64) -> f64 {
    theta * (1.0 - 1.0 / (clusters as f64 + 1.0).sqrt())
}

/// The most segments.
const SEGMENTS: usize = 128;
/// The fewest parts of a run that a dispersion is taken over.
const PARTS_MIN: usize = 4;
/// Kuiper's V at 10 %: who is suspected wrongly gets a weaker answer, not a wrong one.
const KUIPER: f64 = 1.620;

/// Exceedances in each segment of a run.
///
/// At most 128 segments of equal length, which double while the run goes on: constant memory, an
/// addition for each run of exceedances. The count over the dispersion of the segments is the
/// number of *separate* clusters, so that many clusters in one bad stretch of the run count as the
/// one that they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Places {
    /// Binary logarithm of the releases in a segment.
    shift: u32,
    /// Exceedances by segment, up to the last that has some.
    counts: Vec<u64>,
    /// The first release after that one.
    end: u64,
}

impl Places {
    /// Releases from `from` to before `to` exceeded the threshold; none before them is to come.
    #[inline]
    fn push(&mut self, from: u64, to: u64) {
        match self.counts.last_mut() {
            Some(count) if to <= self.end => *count += to - from,
            _ => self.push_on(from, to),
        }
    }

    /// The rare case of [`Self::push`]: into segments that there are not yet.
    #[cold]
    fn push_on(&mut self, mut from: u64, to: u64) {
        while (to - 1) >> self.shift >= SEGMENTS as u64 {
            self.halve();
        }
        while from < to {
            let at = from >> self.shift;
            let next = ((at + 1) << self.shift).min(to);
            self.counts.resize(self.counts.len().max(at as usize + 1), 0);
            self.counts[at as usize] += next - from;
            from = next;
        }
        self.end = (self.counts.len() as u64) << self.shift;
    }

    /// Segments of twice the length.
    fn halve(&mut self) {
        self.counts = self.counts.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.shift += 1;
        self.end = (self.counts.len() as u64) << self.shift;
    }

    /// Appends those of another series, which began after `releases` of this one.
    fn append(&mut self, releases: u64, next: &Self) {
        while self.shift < next.shift {
            self.halve();
        }
        for (at, &count) in next.counts.iter().enumerate() {
            let from = releases.saturating_add((at as u64) << next.shift);
            if count > 0 {
                self.push_on(from, from.saturating_add(count));
            }
        }
    }

    /// Exceedances.
    fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Checks that these can be counts of at most `most` releases, after reading them back.
    fn is_sound(&self, most: u64) -> bool {
        self.shift < 64
            && self.counts.len() <= SEGMENTS
            && self.end == (self.counts.len() as u64) << self.shift
            && self.counts.iter().all(|&count| count <= most)
            && self.count() <= most
    }

    /// The number of separate clusters that they are, of a run of so many releases.
    fn separate(&self, releases: u64) -> Separate {
        let count = self.count();
        if count == 0 || releases == 0 {
            return Separate::Evenly(0.0);
        }
        let separate = count as f64 / self.dispersion(releases);
        let edge = |at: usize| (((at as u64) << self.shift) as f64 / releases as f64).min(1.0);
        let parts = self.counts.iter().enumerate();
        let parts = parts.map(|(at, &count)| EvenPart { from: edge(at), to: edge(at + 1), count });
        match kuiper(parts, count, separate) {
            even if even < KUIPER => Separate::Evenly(separate),
            _ => Separate::Unevenly(separate),
        }
    }

    /// The index of dispersion of the counts of segments, 1 at least: the largest of those over
    /// segments, pairs of segments, fours … down to four parts of the run.
    fn dispersion(&self, releases: u64) -> f64 {
        let total = self.count() as f64;
        let mut dispersion = 1.0f64;
        let mut joined = 1;
        loop {
            let length = (joined as u64) << self.shift;
            let parts = releases.div_ceil(length);
            if parts < PARTS_MIN as u64 {
                return dispersion;
            }
            let mut sums = self.counts.chunks(joined).map(|part| part.iter().sum::<u64>());
            let mut chi_squared = 0.0;
            for at in 0..parts {
                let within = length.min(releases - at * length);
                let expected = total * within as f64 / releases as f64;
                chi_squared += (sums.next().unwrap_or(0) as f64 - expected).powi(2) / expected;
            }
            // As few parts show their dispersion but roughly: about what Student's t adds to the
            // normal quantile at 95 %.
            let doubt = (1.0 + 1.0 / (parts - 1) as f64).powi(2);
            dispersion = dispersion.max(chi_squared / (parts - 1) as f64 * doubt);
            joined *= 2;
        }
    }
}

/// An upper 95 % bound of P(lateness > threshold).
pub(crate) struct L1Bound {
    /// The bound, in [0, 1].
    pub p: f64,
    /// The extremal index that it is adjusted by, in (0, 1].
    pub theta: f64,
    /// True where it holds only if late releases come alone.
    pub alone: bool,
}

/// The exceedances of one threshold.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdExceedances {
    /// The threshold, ns.
    pub threshold_ns: i64,
    /// Recorded cycles whose lateness was above it.
    pub exceedances: u64,
    /// Those of `exceedances` that may not have been: they are in a bucket that the threshold cuts.
    /// 0 where every cycle was recorded.
    pub unsure: u64,
    /// Missed releases that were above it, as far as their lateness is known.
    pub missed: u64,
    /// Extremal index with its uncertainty taken off, in (0, 1]; `None` when there are too few
    /// clusters for an estimate.
    theta: Option<f64>,
    /// Clusters per exceedance when there are few clusters.
    theta_few: Option<f64>,
    /// The number of separate clusters that the exceedances came in.
    separate: Separate,
    /// True where it belongs to the fixed ladder (1-2-5 steps, or requested).
    pub requested: bool,
}

/// The number of values that exceed a threshold, where they were counted in buckets that it may
/// cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThresholdCount {
    /// The threshold, ns.
    pub threshold_ns: i64,
    /// The most values that may be above it.
    pub most: u64,
    /// The number of those that may not be.
    pub unsure: u64,
}

/// The exceedances of every threshold of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tails {
    tails: Vec<ThresholdExceedances>,
    /// Recorded cycles.
    recorded: u64,
    /// Releases that never ran.
    pub(crate) missed: u64,
    /// Missed releases that were at least `unplaced_from_ns` late; each may exceed every threshold.
    unplaced: u64,
    unplaced_from_ns: i64,
    /// Cycles that ran and did not fit in the recorder. Any of them may have been late, so it is
    /// not known which gaps in k were missed releases.
    pub(crate) unrecorded: u64,
    /// The most releases without a sample that came together.
    lost_together: u64,
    /// True where the order of cycles, and so their dependence, is unknown.
    unordered: bool,
}

impl Tails {
    /// Exceedances that were counted without their order, so that their dependence is unknown: of
    /// n recorded cycles, by rising threshold; `unrecorded` more ran, at one time.
    pub fn of_counts(n: u64, unrecorded: u64, counts: &[ThresholdCount]) -> Self {
        let tail = |count: &ThresholdCount| ThresholdExceedances {
            threshold_ns: count.threshold_ns,
            exceedances: count.most,
            unsure: count.unsure,
            missed: 0,
            theta: None,
            theta_few: None,
            separate: Separate::Unknown,
            requested: true,
        };
        Self {
            tails: counts.iter().map(tail).collect(),
            recorded: n,
            unrecorded,
            lost_together: unrecorded,
            unordered: true,
            ..Self::default()
        }
    }

    /// As they are, but of values that were rounded up before they were pushed: `counts`, by rising
    /// threshold, tell how many exceedances are unsure; without a count all of them are.
    pub fn with_unsure(mut self, counts: &[ThresholdCount]) -> Self {
        for tail in &mut self.tails {
            let known = counts.binary_search_by_key(&tail.threshold_ns, |count| count.threshold_ns);
            tail.unsure = known.map_or(tail.exceedances, |at| counts[at].unsure);
        }
        self
    }

    /// All thresholds in rising order.
    pub fn tails(&self) -> &[ThresholdExceedances] {
        &self.tails
    }

    /// Releases that count: recorded, missed and unrecorded.
    pub fn n(&self) -> u64 {
        self.recorded.saturating_add(self.missed).saturating_add(self.unrecorded)
    }

    /// The counts behind bounds of P(lateness > threshold): the least and the most exceedances
    /// possible, and the extremal index to use.
    pub fn counted(&self, above_ns: i64) -> EventCount {
        let (least, most) = self.exceedances_within(above_ns);
        let theta = self.theta_at(above_ns);
        let separate = self.separate_at(above_ns);
        EventCount { n: self.n(), least, most, theta, separate, ordered: !self.unordered }
    }

    /// The number of separate clusters that exceeded the watched threshold at or next below this
    /// one.
    fn separate_at(&self, above_ns: i64) -> Separate {
        let at = self.tails.partition_point(|tail| tail.threshold_ns <= above_ns);
        match at.checked_sub(1) {
            Some(at) if !self.unordered => self.tails[at].separate,
            _ => Separate::Unknown,
        }
    }

    /// Returns true where the order of cycles is known, so that bursts would have shown.
    pub(crate) fn is_ordered(&self) -> bool {
        !self.unordered
    }

    /// Cycles that ran and did not fit in the recorder.
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// Exceedances of a threshold of the ladder at most, missed releases included, and each cycle
    /// that went unrecorded. `None` for a threshold that was not watched.
    pub fn exceedances(&self, threshold_ns: i64) -> Option<u64> {
        let at = self.tails.binary_search_by_key(&threshold_ns, |tail| tail.threshold_ns).ok()?;
        Some(self.exceeding(&self.tails[at]))
    }

    /// Releases above a threshold, at least and at most: the same number for a threshold that was
    /// watched, else those of the nearest watched ones above and below it.
    pub fn exceedances_within(&self, threshold_ns: i64) -> (u64, u64) {
        let count = |tail: Option<&ThresholdExceedances>| tail.map(|tail| self.exceeding(tail));
        let (below, above) =
            self.tails.split_at(self.tails.partition_point(|t| t.threshold_ns <= threshold_ns));
        let most = count(below.last());
        if let Some(tail) = below.last().filter(|tail| tail.threshold_ns == threshold_ns) {
            return (self.surely_exceeding(tail), self.exceeding(tail));
        }
        let none = || self.surely_missed(threshold_ns, 0);
        let least = above.first().map_or_else(none, |tail| self.surely_exceeding(tail));
        (least, most.unwrap_or_else(|| self.n()))
    }

    /// The missed ones of the releases above a threshold. `None` where that number is not exact:
    /// the threshold was not watched, the lateness of some release is not known, or missed ones
    /// were counted together with those that ran.
    pub fn missed_exceedances(&self, threshold_ns: i64) -> Option<u64> {
        if self.unordered {
            return None;
        }
        let at = self.tails.binary_search_by_key(&threshold_ns, |tail| tail.threshold_ns).ok()?;
        let tail = &self.tails[at];
        let missed = self.lost(tail.missed);
        let is_exact = tail.unsure == 0 && self.surely_missed(threshold_ns, tail.missed) == missed;
        is_exact.then_some(missed)
    }

    /// Exceedances of one of the thresholds at most.
    pub(crate) fn exceeding(&self, tail: &ThresholdExceedances) -> u64 {
        tail.exceedances.saturating_add(self.lost(tail.missed))
    }

    /// Releases without a sample that exceed a threshold at most, where the gaps in k give `missed`
    /// ones. With unrecorded cycles among the gaps, the gaps are no evidence.
    fn lost(&self, missed: u64) -> u64 {
        match self.unrecorded {
            0 => missed.saturating_add(self.unplaced).min(self.missed),
            some => self.missed.saturating_add(some),
        }
    }

    /// Exceedances of one of the thresholds at least.
    fn surely_exceeding(&self, tail: &ThresholdExceedances) -> u64 {
        (tail.exceedances - tail.unsure)
            .saturating_add(self.surely_missed(tail.threshold_ns, tail.missed))
    }

    /// Missed releases that exceed a threshold at least, of which the gaps in k give `placed`. A
    /// release that is censored, or in a gap where cycles went unrecorded, is only known to be at
    /// least a period late.
    fn surely_missed(&self, threshold_ns: i64, placed: u64) -> u64 {
        let censored = if self.unrecorded > 0 { self.missed } else { self.unplaced };
        let censored = if threshold_ns < self.unplaced_from_ns { censored } else { 0 };
        let placed = if self.unrecorded > 0 { 0 } else { placed };
        placed.saturating_add(censored).min(self.missed)
    }

    /// Releases whose lateness is not known: censored, or among those that went unrecorded. They
    /// count as the latest.
    pub(crate) fn unknown(&self) -> u64 {
        self.lost(0)
    }

    /// Missed releases known only to be at least a period late.
    pub(crate) fn censored(&self) -> u64 {
        if self.unrecorded > 0 { self.missed } else { self.unplaced.min(self.missed) }
    }

    /// The lateness that each of those had at least, ns; `None` without any.
    pub(crate) fn censored_from_ns(&self) -> Option<i64> {
        (self.censored() > 0 && self.unplaced_from_ns < i64::MAX).then_some(self.unplaced_from_ns)
    }

    /// Upper 95 % bound of P(lateness > threshold), adjusted for dependence; `None` for a threshold
    /// that was not watched.
    pub fn p_upper(&self, threshold_ns: i64) -> Option<f64> {
        self.exceedances(threshold_ns)?;
        Some(self.p_upper_below(threshold_ns))
    }

    /// The lowest bound of all watched thresholds up to this one: what is later than it is later
    /// than each of them, so that a bound never rises with its threshold. 1 where there is none.
    pub(crate) fn p_upper_below(&self, threshold_ns: i64) -> f64 {
        let up_to = self.tails.iter().take_while(|tail| tail.threshold_ns <= threshold_ns);
        let bound = |tail: &ThresholdExceedances| {
            p_upper(self.exceeding(tail), self.n(), self.theta_at(tail.threshold_ns))
        };
        up_to.map(bound).fold(1.0, f64::min)
    }

    /// The bound of P(lateness > threshold) for a watched threshold.
    pub(crate) fn l1_bound(&self, threshold_ns: i64) -> L1Bound {
        match self.counted(threshold_ns).theta_shown() {
            Some(theta) => {
                let exceedances = self.exceedances(threshold_ns).unwrap_or_else(|| self.n());
                L1Bound { p: p_upper(exceedances, self.n(), theta), theta, alone: false }
            }
            None => L1Bound {
                p: self.p_upper_below(threshold_ns),
                theta: self.theta_at(threshold_ns),
                alone: true,
            },
        }
    }

    /// The extremal index to use at a lateness: the lowest of the nearest watched threshold above
    /// it and the two nearest at or below it, among those with enough clusters. 1 when none has.
    /// Where cycles went unrecorded, those that came together are a cluster.
    pub fn theta_at(&self, lateness_ns: i64) -> f64 {
        let split = self.tails.partition_point(|tail| tail.threshold_ns <= lateness_ns);
        let (below, above) = self.tails.split_at(split);
        let below = below.iter().rev().filter_map(|tail| tail.theta).take(2);
        let above = above.iter().filter_map(|tail| tail.theta).take(1);
        let few = self.tails[..split].last().and_then(|tail| tail.theta_few);
        let lost = (self.unrecorded > 0).then(|| 1.0 / self.lost_together.max(1) as f64);
        below.chain(above).chain(few).chain(lost).fold(1.0, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::release::model;
    use crate::rng::Rng;

    fn tails(latenesses: impl IntoIterator<Item = i64>, requested: &[i64]) -> Tails {
        let mut exceedances = Exceedances::new(0, requested);
        latenesses.into_iter().for_each(|ns| exceedances.push(ns, 0, 0));
        exceedances.finish(0)
    }

    #[test]
    fn the_ladder_holds_a_tenth_of_every_period() {
        let ladder: Vec<i64> = ladder().collect();
        assert_eq!((ladder[0], ladder[1], ladder[ladder.len() - 1]), (100, 200, 1_000_000_000));
        assert!(crate::verdict::periods_ns().all(|ns| ladder.contains(&(ns / 10))));
    }

    #[test]
    fn neighbours_are_a_cluster_and_loners_are_not() {
        // Bursts of ten late releases, at irregular distances: θ = 1/10. One every 50: none.
        let mut state = 1u64;
        let clustered = (0..5_000).flat_map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let is_late = (state >> 33).is_multiple_of(50);
            [if is_late { 90_000 } else { 5_000 }; 10]
        });
        let theta = tails(clustered, &[]).theta_at(50_000);
        assert!((0.06..=0.11).contains(&theta), "{theta}");
        let alone = (0..50_000).map(|i| if i % 50 == 0 { 90_000 } else { 5_000 });
        let theta = tails(alone, &[]).theta_at(50_000);
        assert!(theta > 0.9, "{theta}");
    }

    #[test]
    fn one_burst_among_many_cycles_counts_as_one() {
        let burst = (0..100_000).map(|i| if (500..540).contains(&i) { 90_000 } else { 5_000 });
        let tails = tails(burst, &[]);
        assert_eq!(tails.exceedances(50_000), Some(40));
        assert!(tails.theta_at(50_000) <= 1.0 / 40.0);
        // A threshold that everything exceeds says nothing about dependence.
        assert_eq!(tails.theta_at(2_000), 1.0);
    }

    #[test]
    fn a_gap_of_missed_releases_is_one_cluster() {
        let mut exceedances = Exceedances::new(0, &[]);
        (0..10_000)
            .for_each(|i| exceedances.push(5_000, if i % 1_000 == 999 { 20 } else { 0 }, 5_000));
        let tails = exceedances.finish(200);
        assert_eq!((tails.n(), tails.exceedances(1_000_000)), (10_200, Some(200)));
        assert!(tails.theta_at(1_000_000) <= 0.05, "{}", tails.theta_at(1_000_000));
    }

    #[test]
    fn cycles_that_went_unrecorded_may_all_have_been_late_and_together() {
        let lost = |unrecorded| {
            let mut exceedances = Exceedances::new(1_000_000, &[]);
            (0..10_000).for_each(|i| exceedances.push(5_000, if i == 4_000 { 40 } else { 0 }, 0));
            exceedances.finish_with(40 - unrecorded, unrecorded)
        };
        let (none, some) = (lost(0), lost(30));
        assert_eq!((none.n(), some.n()), (10_040, 10_040));
        // A missed release is late until the next wake; of one that nobody saw nothing is known,
        // nor which of the forty were missed, but that each of these was a period late.
        assert_eq!(none.exceedances(2_000_000), Some(39));
        assert_eq!(none.exceedances(50_000_000), Some(0));
        assert_eq!(some.exceedances(2_000_000), Some(40));
        assert_eq!(some.exceedances_within(2_000_000), (0, 40));
        assert_eq!(some.exceedances_within(500_000), (10, 40));
        assert_eq!(some.exceedances_within(50_000_000), (0, 40));
        assert!(none.theta_at(2_000_000) <= 1.0 / 39.0 && some.theta_at(50_000_000) <= 1.0 / 40.0);
        let p = |tails: &Tails| tails.p_upper(50_000_000).unwrap();
        assert!(p(&none) < 1e-3 && p(&some) > 40.0 / 10_040.0, "{} {}", p(&none), p(&some));
    }

    #[test]
    fn a_missed_release_is_as_late_as_what_was_left_of_the_stall() {
        // 10.4 ms late at 1 ms: ten releases went by, 9.4 to 0.4 ms before the wake.
        let mut exceedances = Exceedances::new(1_000_000, &[]);
        exceedances.push(10_400_000, 0, 0);
        exceedances.push(5_000, 10, 10_400_000);
        let tails = exceedances.finish(10);
        let above = |ns| tails.exceedances(ns);
        assert_eq!(
            (above(10_000_000), above(5_000_000), above(2_000_000)),
            (Some(1), Some(6), Some(9))
        );
        // To a loop of this period, or a shorter one, all of them were lost.
        assert_eq!((above(500_000), above(100_000)), (Some(11), Some(11)));
    }

    proptest! {
        #[test]
        fn missed_releases_agree_with_the_definition(
            period in 400_000i64..2_000_000,
            cycles in prop::collection::vec((0i64..20_000_000, 0u64..30), 1..60),
            trailing in 0u64..5,
        ) {
            let mut exceedances = Exceedances::new(period, &[]);
            let (mut series, mut cycle, mut previous) = (Vec::new(), 0, 0);
            for &(ns, missed) in &cycles {
                // Releases that passed before a late wake were missed.
                let passed = (previous / period) as u64;
                let missed = if series.is_empty() { 0 } else { missed + passed };
                cycle += missed + 1;
                series.push((cycle, ns));
                exceedances.push(ns, missed, previous);
                previous = ns;
            }
            let model = model::Series::of(period, &series);
            let (known, _) = model.known();
            let missed = model.missed().len() as u64 + trailing;
            let tails = exceedances.finish(missed);
            prop_assert_eq!(tails.n(), known.len() as u64 + trailing);
            for tail in tails.tails() {
                let at = tail.threshold_ns;
                let counted = known.iter().filter(|&&ns| ns > at).count() as u64;
                // One that no wake followed may have been later than anything, and was a period.
                let surely = if at < period { trailing } else { 0 };
                prop_assert_eq!(tails.exceedances(at), Some(counted + trailing));
                let within = (counted + surely, counted + trailing);
                prop_assert_eq!(tails.exceedances_within(at), within);
            }
        }

        #[test]
        fn counts_agree_with_counting(
            values in prop::collection::vec(
                prop_oneof![-500i64..500, 0i64..2_000_000, any::<i64>()],
                0..6_000,
            ),
            requested in prop::collection::vec(-1_000i64..1_000_000, 0..4),
        ) {
            let tails = tails(values.iter().copied(), &requested);
            prop_assert!(tails.tails().is_sorted_by(|a, b| a.threshold_ns < b.threshold_ns));
            for tail in tails.tails() {
                let counted = values.iter().filter(|&&ns| ns > tail.threshold_ns).count();
                prop_assert_eq!(tail.exceedances, counted as u64);
                let theta = tails.theta_at(tail.threshold_ns);
                prop_assert!(theta > 0.0 && theta <= 1.0);
            }
            prop_assert!(requested.iter().all(|&ns| tails.exceedances(ns).is_some()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn many_at_once_are_what_they_are_one_by_one(
            values in prop::collection::vec(
                prop_oneof![20 => 1_000i64..20_000, 1 => -5_000_000i64..50_000_000], 3_900..6_000,
            ),
            split in 0usize..6_000,
        ) {
            let mut single = Exceedances::new(1_000_000, &[-3, 7_777]);
            let mut blocks = single.clone();
            let (first, second) = values.split_at(split.min(values.len()));
            blocks.extend(first);
            blocks.push(9_000, 3, 4_000_000);
            first.iter().for_each(|&ns| single.push(ns, 0, 0));
            single.push(9_000, 3, 4_000_000);
            second.iter().for_each(|&ns| single.push(ns, 0, 0));
            blocks.extend(second);
            prop_assert_eq!(single.finish(3), blocks.finish(3));
        }
    }

    fn counted(exceedances: Exceedances, latenesses: &[i64]) -> Pooled {
        let mut exceedances = exceedances;
        latenesses.iter().for_each(|&ns| exceedances.push(ns, 0, 0));
        exceedances.counted(0)
    }

    proptest! {
        #[test]
        fn counts_of_parts_add_up_to_those_of_the_whole(
            a in prop::collection::vec(0i64..2_000_000, 1..5_000),
            b in prop::collection::vec(0i64..2_000_000, 1..500),
        ) {
            let mut pooled = counted(Exceedances::new(0, &[777]), &a);
            let like = Exceedances::like(0, &pooled);
            pooled.merge(&counted(like, &b));
            let tails = pooled.tails(0);
            prop_assert_eq!(tails.n(), (a.len() + b.len()) as u64);
            for tail in tails.tails() {
                let above = |v: &[i64]| v.iter().filter(|&&ns| ns > tail.threshold_ns).count();
                prop_assert_eq!(tail.exceedances, (above(&a) + above(&b)) as u64);
                prop_assert!((0.0..=1.0).contains(&tails.theta_at(tail.threshold_ns)));
            }
            prop_assert!(tails.exceedances(777).is_some() && pooled.is_sound());
            let text = serde_json::to_string(&pooled).unwrap();
            prop_assert_eq!(serde_json::from_str::<Pooled>(&text).unwrap(), pooled);
        }
    }

    #[test]
    fn clusters_in_many_short_series_are_seen_as_in_a_long_one() {
        let bursts: Vec<i64> =
            (0..20_000).map(|i| if (i * i) % 997 < 40 { 90_000 } else { 5_000 }).collect();
        let bursts: Vec<i64> = bursts.into_iter().flat_map(|ns| [ns; 5]).collect();
        let whole = counted(Exceedances::new(0, &[]), &bursts);
        let mut pooled = Pooled::default();
        for part in bursts.chunks(10_000) {
            let next = if pooled == Pooled::default() {
                Exceedances::new(0, &[])
            } else {
                Exceedances::like(0, &pooled)
            };
            pooled.merge(&counted(next, part));
        }
        let (whole_theta, pooled_theta) =
            (whole.tails(0).theta_at(50_000), pooled.tails(0).theta_at(50_000));
        assert!(
            whole_theta < 0.3 && (whole_theta - pooled_theta).abs() < 0.03,
            "{whole_theta} {pooled_theta}"
        );
    }

    #[test]
    fn a_single_recording_pooled_is_that_recording() {
        let values: Vec<i64> = (0..6_000).map(|i| (i * 7_919) % 300_000).collect();
        let mut exceedances = Exceedances::new(1_000_000, &[]);
        values.iter().for_each(|&ns| exceedances.push(ns, u64::from(ns % 97 == 0), 5_000));
        let tails = exceedances.clone().finish(70);
        assert_eq!(exceedances.counted(70).tails(0), tails);
    }

    fn places(at: impl IntoIterator<Item = u64>) -> Places {
        let mut places = Places::default();
        at.into_iter().for_each(|at| places.push(at, at + 1));
        places
    }

    fn clusters(places: &Places, releases: u64) -> f64 {
        match places.separate(releases) {
            Separate::Evenly(count) | Separate::Unevenly(count) => count,
            Separate::Unknown => panic!("unknown"),
        }
    }

    #[test]
    fn those_that_come_alone_are_as_many_as_they_are_and_a_stretch_is_one() {
        let mut rng = Rng::new(3);
        let alone = places((0..50_000).filter(|_| rng.uniform() < 0.01));
        let count = alone.count() as f64;
        assert!(clusters(&alone, 50_000) > 0.5 * count, "{:?}", alone.separate(50_000));
        assert!(matches!(alone.separate(50_000), Separate::Evenly(_)));
        let stretch = places((20_000..21_000).step_by(20));
        assert!(clusters(&stretch, 50_000) < 2.0, "{:?}", stretch.separate(50_000));
        // Half of the run has none.
        let half = places((0..25_000).filter(|_| rng.uniform() < 0.02));
        assert!(clusters(&half, 50_000) < 5.0, "{:?}", half.separate(50_000));
        // As many as before, and rising.
        let rising = places((0..50_000u64).filter(|&at| rng.uniform() < 0.04 * at as f64 / 5e4));
        assert!(
            matches!(rising.separate(50_000), Separate::Unevenly(_))
                || clusters(&rising, 50_000) < 25.0
        );
        assert_eq!(Places::default().separate(7), Separate::Evenly(0.0));
    }

    proptest! {
        #[test]
        fn every_exceedance_is_in_its_segment(
            runs in prop::collection::vec((1u64..3_000, 1u64..3_000), 0..60),
            split in 0usize..60,
        ) {
            let (mut at, mut exceed) = (0, Vec::new());
            for (gap, length) in runs {
                exceed.push((at + gap, at + gap + length));
                at += gap + length;
            }
            let split = split.min(exceed.len());
            let (mut whole, mut first, mut second) = <(Places, Places, Places)>::default();
            exceed.iter().for_each(|&(from, to)| whole.push(from, to));
            exceed[..split].iter().for_each(|&(from, to)| first.push(from, to));
            let releases = first.end;
            exceed[split..].iter().filter(|run| run.0 >= releases).for_each(|&(from, to)| {
                second.push(from - releases, to - releases);
            });
            let cycles = whole.counts.iter().enumerate().map(|(at, &count)| {
                let [from, to] = [at as u64, at as u64 + 1].map(|at| at << whole.shift);
                let within = exceed.iter().map(|run| run.1.min(to).saturating_sub(run.0.max(from)));
                (within.sum::<u64>(), count)
            });
            for (counted, count) in cycles {
                prop_assert_eq!(counted, count);
            }
            let parts = first.count() + second.count();
            first.append(releases, &second);
            prop_assert_eq!(first.count(), parts);
            prop_assert!(whole.is_sound(at) && first.is_sound(at));
            let text = serde_json::to_string(&whole).unwrap();
            prop_assert_eq!(serde_json::from_str::<Places>(&text).unwrap(), whole);
        }
    }
}
