//! Statistics of a recording that a model of an application needs, each with its evidence.
//!
//! Holds numbers that were found elsewhere, or one that a person gives. An observed maximum keeps
//! its n, a probability keeps its confidence; nothing is extrapolated.

use punctual_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::ask::{Ask, ClaimEvent};
use crate::claim::bound::{
    CONFIDENCE, events_upper, independent_share, p_lower_at, p_upper, p_upper_at,
};
use crate::claim::count::{CLUSTERS_MIN, EventCount, Separate, WatchedThreshold};
use crate::claim::judge::{StoppingRule, judge};
use crate::claim::{Claim, Level};
use crate::histogram::Bucket;
use crate::imported::ImportedQuantity;
use crate::plain::grouped;
use crate::quantile::Probability;
use crate::recording::RunFigures;

/// A statistic and its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Basis {
    /// Which one: "largest lateness".
    pub statistic: String,
    /// Its value.
    pub value_ns: f64,
    /// L0 for what was seen, L1 or L2 for a bound; null for a value that was given.
    pub level: Option<Level>,
    /// Cycles that it is based on; null when not given.
    pub n: Option<u64>,
    /// Those of them that were beyond the value, at least; null where they were not counted.
    #[serde(default)]
    pub exceedances: Option<u64>,
    /// Upper bound of the probability that a cycle is beyond the value; null where none is known.
    pub p: Option<f64>,
    /// Of that bound: 0.95.
    pub confidence: Option<f64>,
    /// The trials that the cycles count as in that bound; not there where each is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<Trials>,
}

/// The trials that cycles count as in a bound, where they are fewer than these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trials {
    /// So many.
    pub n: u64,
    /// Why no more.
    pub why: FewerTrials,
}

/// The reason why cycles count as fewer trials in a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FewerTrials {
    /// Late cycles come together, as far as is seen at the nearest thresholds.
    Together,
    /// The share is of wakes that come more seldom than cycles: no more of them fit into the time
    /// that was measured.
    FitIn,
}

impl Trials {
    fn words(self) -> String {
        let why = match self.why {
            FewerTrials::Together => "late ones come together",
            FewerTrials::FitIn => "no more such wakes fit into the time measured",
        };
        format!(", as these cycles count as {}: {why}", grouped(self.n))
    }
}

/// The answer to a requirement of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Suits {
    /// It is, as far as the recording shows.
    Yes,
    /// It is not.
    No,
    /// The recording is too short to decide.
    Unknown,
}

/// A statistic that a recording lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data have no {0}")]
pub struct Lack(pub &'static str);

/// P(lateness > `above_ns`) is at most `p`, with 95 % confidence, by `n` cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The lateness, ns.
    pub above_ns: f64,
    /// The probability, in [0, 1].
    pub p: f64,
    /// The level of the claim behind it.
    pub level: Level,
}

/// The statistics of one run, or a value given in place of them. Times in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Cycles; `None` when not known.
    pub n: Option<u64>,
    /// Nominal period.
    pub period_ns: Option<f64>,
    /// Smallest, mean and largest lateness.
    pub lateness_ns: [Option<f64>; 3],
    /// Largest interval, signed: what the longest wait from wake to wake had above the period. A
    /// missed release is a period of it.
    pub interval_max_ns: Option<f64>,
    /// Largest |interval|.
    pub interval_max_abs_ns: Option<f64>,
    /// Standard deviation of the interval.
    pub interval_stddev_ns: Option<f64>,
    /// Peak-to-peak about the fitted grid.
    pub grid_pp_ns: Option<f64>,
    /// Root mean square about the fitted grid.
    pub grid_rms_ns: Option<f64>,
    /// The known bounds of the tail.
    pub bounds: Vec<Bound>,
    /// All latenesses, counted; `None` where they are not known one by one.
    pub counted: Option<Latenesses>,
    /// True where a person gave it.
    pub given: bool,
}

/// The latenesses of a run, counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latenesses {
    /// In rising order.
    buckets: Vec<Bucket>,
    /// More that lie above all buckets.
    beyond: u64,
    /// More of which nothing is known.
    unknown: u64,
    /// How many are later than a threshold and how they come together, in rising order of it;
    /// nothing is known of that without any, and they count as independent.
    watched: Vec<WatchedThreshold>,
}

/// The thresholds of the claims of a run that kept no others. Where none of them knows the order of
/// cycles it is that of the one that counts as none above the largest, which is a bound over θ·n.
fn thresholds_of_claims(claims: &[Claim]) -> Vec<WatchedThreshold> {
    let of_claim = |claim: &Claim| {
        let (above_ns, theta) = (claim.bound_ns? as i64, claim.theta?);
        Some(WatchedThreshold { above_ns, least: 0, most: 0, theta, alone: claim.alone })
    };
    let bounds = || claims.iter().filter(|claim| claim.level == Level::L1 && claim.given);
    let mut known: Vec<WatchedThreshold> = bounds().filter_map(of_claim).collect();
    if known.is_empty() {
        known.extend(bounds().next().and_then(|claim| {
            let effective_n = events_upper(0.0, CONFIDENCE) / claim.p.filter(|p| *p > 0.0)?;
            let theta = effective_n / claim.n as f64;
            of_claim(&Claim { theta: Some(theta), alone: true, ..claim.clone() })
        }));
    }
    known
}

impl Latenesses {
    /// Those of a run; `None` where its data hold no latenesses of counted cycles.
    fn of(outcome: &RunFigures) -> Option<Self> {
        let holds = outcome.imported.as_ref().map(|imported| imported.holds);
        let view = &outcome.histogram;
        let is_lateness = holds.is_none_or(|holds| holds == ImportedQuantity::Lateness);
        if !is_lateness || outcome.cycles == 0 || outcome.releases() == 0 {
            return None;
        }
        let imported = outcome.imported.as_ref();
        let rounding_ns = imported.map_or(0.0, |imported| imported.rounding_ns);
        let max_ns = outcome.lateness_ns.max.map(|ns| (ns + rounding_ns).ceil() as i64);
        let buckets = view.buckets.iter().map(|bucket| {
            let closed = bucket.closed();
            let highest_ns = max_ns.map_or(closed.highest_ns, |max_ns| {
                closed.highest_ns.min(max_ns.max(closed.lowest_ns))
            });
            Bucket { highest_ns, ..closed }
        });
        let between = outcome.left_out();
        let counted = Self {
            buckets: buckets.chain(between).collect(),
            beyond: if between.is_some() { 0 } else { view.overflow },
            unknown: outcome.unknown(),
            watched: Vec::new(),
        };
        let n = counted.n();
        let mut watched = outcome.watched.clone();
        watched.retain(|threshold| threshold.least <= threshold.most && threshold.most <= n);
        if watched.is_empty() {
            watched = thresholds_of_claims(&outcome.claims);
            for threshold in &mut watched {
                let seen = counted.count(threshold.above_ns);
                (threshold.least, threshold.most) = (seen.least, seen.most);
            }
        }
        for threshold in &mut watched {
            threshold.theta = threshold.theta.clamp(f64::MIN_POSITIVE, 1.0);
        }
        watched.sort_by_key(|threshold| threshold.above_ns);
        Some(Self { watched, ..counted })
    }

    /// One of `n` cycles was that late, and none was later.
    fn up_to(largest_ns: f64, n: u64) -> Self {
        let largest_ns = largest_ns.ceil() as i64;
        let largest = Bucket { lowest_ns: largest_ns, highest_ns: largest_ns, count: 1 };
        let others = Bucket { lowest_ns: i64::MIN, count: n.saturating_sub(1), ..largest };
        Self { buckets: vec![others, largest], beyond: 0, unknown: 0, watched: Vec::new() }
    }

    /// The highest value of the first bucket of which it is shown that a cycle is later with a
    /// probability of at most `p`.
    fn exceeded_by(&self, p: f64) -> Option<Bound> {
        let (mut later, n) = (self.beyond + self.unknown, self.n() as f64);
        let mut lowest = None;
        for &Bucket { highest_ns, count, .. } in self.buckets.iter().rev() {
            let upper = p_upper_at(later as f64, n, self.theta_at(highest_ns), CONFIDENCE);
            if upper > p {
                break;
            }
            lowest = Some(Bound { above_ns: highest_ns as f64, p: upper, level: Level::L1 });
            later += count;
        }
        lowest
    }

    /// All cycles.
    fn n(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.count).sum::<u64>() + self.beyond + self.unknown
    }

    /// The nearest thresholds that were watched: at or below this one, and above it.
    fn nearest(&self, above_ns: i64) -> [Option<&WatchedThreshold>; 2] {
        let (below, above) = self
            .watched
            .split_at(self.watched.partition_point(|threshold| threshold.above_ns <= above_ns));
        [below.last(), above.first()]
    }

    /// The extremal index to use at a threshold: the lower of the two of the nearest watched ones.
    fn theta_at(&self, above_ns: i64) -> f64 {
        let thetas = self.nearest(above_ns).into_iter().flatten().map(|nearest| nearest.theta);
        thetas.fold(1.0, f64::min)
    }

    /// The number of separate clusters that cycles above a threshold came in, by those above the
    /// watched one at or below it; unknown where those are too few.
    ///
    /// The counts of parts of the run lie as far from even ones as those of the watched threshold
    /// do, and farther by the cycles that it has more, if all of these were in one part (triangle
    /// inequality). Parts are of equal length here.
    fn separate_at(&self, above_ns: i64) -> Separate {
        let below = self.nearest(above_ns)[0].filter(|below| !below.alone);
        let Some(below) = below else { return Separate::Unknown };
        let (watched, later) = (below.most as f64, self.count(above_ns).least as f64);
        let scatter = (watched / independent_share(below.theta)).sqrt();
        let clusters = (later / (scatter + FEW_PARTS * (watched - later))).powi(2);
        match clusters >= CLUSTERS_MIN {
            true => Separate::Evenly(clusters),
            false => Separate::Unknown,
        }
    }

    /// The count of latenesses above `above_ns`, at least and at most, whatever their order: that
    /// of a watched threshold, else that of buckets, within those of the nearest watched ones.
    fn count(&self, above_ns: i64) -> EventCount {
        let seen = EventCount::of_buckets(above_ns, self.buckets.iter().copied(), self.beyond);
        let seen = seen.with_unseen(self.unknown);
        let [below, above] = self.nearest(above_ns);
        if let Some(&WatchedThreshold { least, most, .. }) =
            below.filter(|below| below.above_ns == above_ns)
        {
            return EventCount { least, most, ..seen };
        }
        let least = above.map_or(seen.least, |above| above.least.max(seen.least));
        let most = below.map_or(seen.most, |below| below.most.min(seen.most));
        EventCount { least, most: most.max(least), ..seen }
    }

    /// The count of latenesses above `above_ns`, at least and at most, where `trials` of each cycle
    /// count at most. Where it is not shown how they come together, their order counts as unknown.
    fn later_than(&self, above_ns: i64, trials: f64) -> EventCount {
        let theta = self.theta_at(above_ns).min(trials);
        let separate = self.separate_at(above_ns);
        let ordered = separate != Separate::Unknown;
        EventCount { theta, separate, ordered, ..self.count(above_ns) }
    }

    /// The lower bound of the share of cycles above `above_ns`, at 95 %. Where no clusters of them
    /// are known it is the larger of that of one cluster and that of the next watched threshold
    /// above of which they are; each holds with half of the doubt then.
    fn share_at_least(&self, above_ns: i64, trials: f64) -> f64 {
        let lower = |above_ns, confidence| {
            let seen = self.later_than(above_ns, trials);
            p_lower_at(seen.least as f64, seen.n as f64, seen.theta_refuting(), confidence)
        };
        let mut above = self.watched.iter().filter(|threshold| threshold.above_ns > above_ns);
        match above.find(|threshold| !threshold.alone) {
            Some(above) if self.separate_at(above_ns) == Separate::Unknown => {
                let each = (1.0 + CONFIDENCE) / 2.0;
                lower(above_ns, each).max(lower(above.above_ns, each))
            }
            _ => lower(above_ns, CONFIDENCE),
        }
    }
}

/// The most by which the dispersion of few parts of a run is taken for larger, as a factor of the
/// deviation: with four parts.
const FEW_PARTS: f64 = 4.0 / 3.0;

/// Evidence of the share of cycles later than a bound.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exceedance {
    /// Than what, ns.
    above_ns: f64,
    /// Cycles that were; `None` where they were not counted.
    seen: Option<EventCount>,
    /// An upper bound of the probability; `None` where none is known.
    upper: Option<Bound>,
    /// A lower bound of it, in [0, 1].
    lower: f64,
    /// The period of the loop, ns.
    period_ns: Option<f64>,
    /// True where a person gave it.
    given: bool,
    /// Cycles of the run.
    n: Option<u64>,
    /// The mean number of late cycles that come together, where for that fewer trials count than
    /// there was time for; `None` where the time decides, or nothing was counted.
    cluster: Option<f64>,
}

/// The name of the share of cycles that are later than a bound, without the bound.
const SHARE_LATER: &str = "share of cycles later";

impl Exceedance {
    /// The mean number of late cycles that come together, where that lessens how many trials count.
    pub(super) fn cluster(&self) -> Option<f64> {
        self.cluster
    }

    /// The upper bound of the probability, at 95 %.
    pub(super) fn at_most(&self) -> Option<f64> {
        self.upper.map(|bound| bound.p)
    }

    /// The lower bound of the probability, at 95 %; `None` where no cycle is known to be later.
    pub(super) fn at_least(&self) -> Option<f64> {
        self.seen.filter(|seen| seen.least > 0).map(|_| self.lower)
    }

    /// Returns true where cycles of a run were counted.
    pub(super) fn is_counted(&self) -> bool {
        self.seen.is_some() && !self.given
    }

    /// The upper bound of the share, by which two runs are ordered: the larger the worse. What is
    /// unknown is no better than anything.
    pub(super) fn severity(&self) -> f64 {
        self.at_most().unwrap_or(f64::MAX)
    }

    /// The answer to a requirement that it happens in less than a share `allowed` of the cycles.
    pub(super) fn suits(&self, allowed: f64) -> Suits {
        match self.at_most() {
            Some(upper) if upper < allowed => Suits::Yes,
            _ if allowed > 1.0 => Suits::Yes,
            _ if self.lower >= allowed => Suits::No,
            _ => Suits::Unknown,
        }
    }

    /// The length of a run that shows that it happens in less than a share `allowed` of the cycles,
    /// if the loop goes on as seen, ns; `None` where more cycles would not, or nothing was counted.
    pub(super) fn duration_needed_ns(&self, allowed: f64) -> Option<f64> {
        let (seen, period_ns) = (self.seen?, self.period_ns?);
        let event = ClaimEvent::Lateness { above_ns: self.above_ns as i64 };
        let ask = Ask::new(event, allowed, Probability::from_share(CONFIDENCE)?)?;
        let period_ns = Some(period_ns as u64);
        judge(&ask, &Ok(seen), StoppingRule::AsPlanned, period_ns).duration_needed_ns
    }

    /// The count in words, as a clause: "3 of 60 000 were later"; `None` where it was not counted.
    pub(super) fn words(&self) -> Option<String> {
        let EventCount { n, least, most, .. } = self.seen?;
        let seen = match (least, most) {
            (_, 0) => return Some(format!("none of {} was later", grouped(n))),
            (1, 1) => return Some(format!("1 of {} was later", grouped(n))),
            (least, most) if least == most => grouped(least),
            (least, most) => format!("{} to {}", grouped(least), grouped(most)),
        };
        Some(format!("{seen} of {} were later", grouped(n)))
    }

    /// As a basis; `None` where nothing is known.
    pub(super) fn basis(&self) -> Option<Basis> {
        Some(Basis {
            statistic: SHARE_LATER.to_owned(),
            value_ns: self.seen.map_or(self.upper?.above_ns, |_| self.above_ns),
            level: (!self.given).then_some(self.upper.map_or(Level::L1, |bound| bound.level)),
            n: self.seen.map(|seen| seen.n).or(self.n),
            exceedances: self.seen.map(|seen| seen.least),
            p: self.at_most(),
            confidence: self.upper.map(|_| CONFIDENCE),
            trials: self.trials(),
        })
    }

    /// The trials that its cycles count as; `None` where each is one.
    fn trials(&self) -> Option<Trials> {
        let seen = self.seen.filter(|seen| seen.theta < 1.0 && !self.given)?;
        let why = if self.cluster.is_some() { FewerTrials::Together } else { FewerTrials::FitIn };
        Some(Trials { n: (seen.n as f64 * seen.theta).round() as u64, why })
    }
}

impl Timing {
    /// The statistics of a run with the given nominal period.
    pub fn of(outcome: &RunFigures, period_ns: Option<u64>) -> Self {
        let lateness = &outcome.lateness_ns;
        Self {
            n: Some(counted(outcome)),
            period_ns: period_ns.map(|ns| ns as f64),
            lateness_ns: [lateness.min, lateness.mean, lateness.max],
            interval_max_ns: outcome.interval_ns.max,
            interval_max_abs_ns: outcome.jitters.interval_max_abs_ns,
            interval_stddev_ns: outcome.interval_ns.stddev,
            grid_pp_ns: outcome.grid.as_ref().map(|grid| grid.jitter_pp_ns),
            grid_rms_ns: outcome.grid.as_ref().map(|grid| grid.rms_ns),
            bounds: outcome.claims.iter().filter_map(bound).collect(),
            counted: Latenesses::of(outcome),
            given: false,
        }
    }

    /// One value, in ns, that stands for whatever statistic a model uses; seen as the largest of
    /// `n` cycles where that is given.
    pub fn given(value_ns: f64, n: Option<u64>) -> Self {
        let value = Some(value_ns);
        let p = n.filter(|&n| n > 0).map(|n| p_upper(0, n, 1.0));
        Self {
            n,
            period_ns: None,
            lateness_ns: [Some(0.0), value, value],
            interval_max_ns: value,
            interval_max_abs_ns: value,
            interval_stddev_ns: value,
            grid_pp_ns: value,
            grid_rms_ns: value,
            bounds: p
                .map(|p| Bound { above_ns: value_ns, p, level: Level::L1 })
                .into_iter()
                .collect(),
            counted: n.filter(|&n| n > 0).map(|n| Latenesses::up_to(value_ns, n)),
            given: true,
        }
    }

    /// The nominal period, ns: `given` before that of the run.
    ///
    /// # Errors
    /// Neither is known.
    pub fn period_ns(&self, given: Option<f64>) -> Result<f64, Lack> {
        given.or(self.period_ns).filter(|ns| *ns > 0.0).ok_or(Lack("period"))
    }

    /// The mean lateness.
    ///
    /// # Errors
    /// It is not known; the same for all that follow.
    pub fn mean_lateness(&self) -> Result<Basis, Lack> {
        self.seen("mean lateness", self.lateness_ns[1], None)
    }

    /// The largest lateness, with how rare a later one is.
    ///
    /// # Errors
    /// It is not known.
    pub fn largest_lateness(&self) -> Result<Basis, Lack> {
        let max = self.lateness_ns[2];
        let p = max.and_then(|max| self.p_above(max)).map(|bound| bound.p);
        self.seen("largest lateness", max, p)
    }

    /// Largest less smallest lateness.
    ///
    /// # Errors
    /// It is not known.
    pub fn lateness_range(&self) -> Result<Basis, Lack> {
        let [min, _, max] = self.lateness_ns;
        self.seen("range of lateness", max.zip(min).map(|(max, min)| max - min), None)
    }

    /// The excess of the longest wait from wake to wake over the period, ns; 0 where none was
    /// longer.
    ///
    /// # Errors
    /// It is not known.
    pub fn longest_gap(&self) -> Result<Basis, Lack> {
        self.seen("largest interval", self.interval_max_ns.map(|ns| ns.max(0.0)), None)
    }

    /// The largest |interval|.
    ///
    /// # Errors
    /// It is not known.
    pub fn largest_interval(&self) -> Result<Basis, Lack> {
        self.seen("largest |interval|", self.interval_max_abs_ns, None)
    }

    /// The standard deviation of the interval.
    ///
    /// # Errors
    /// It is not known.
    pub fn interval_stddev(&self) -> Result<Basis, Lack> {
        self.seen("standard deviation of the interval", self.interval_stddev_ns, None)
    }

    /// The peak-to-peak about the fitted grid.
    ///
    /// # Errors
    /// It is not known.
    pub fn grid_pp(&self) -> Result<Basis, Lack> {
        self.seen("peak-to-peak about the grid", self.grid_pp_ns, None)
    }

    /// The root mean square about the fitted grid.
    ///
    /// # Errors
    /// It is not known.
    pub fn grid_rms(&self) -> Result<Basis, Lack> {
        self.seen("rms about the grid", self.grid_rms_ns, None)
    }

    /// The lowest bound of P(lateness > `above_ns`) that the recording supports: the bound of any
    /// smaller lateness is one too. `None` when nothing is known up to there.
    pub fn p_above(&self, above_ns: f64) -> Option<Bound> {
        let below = self.bounds.iter().filter(|bound| bound.above_ns <= above_ns);
        below.copied().min_by(|a, b| a.p.total_cmp(&b.p))
    }

    /// The smallest lateness that is exceeded with a probability of at most `p`; `None` when the
    /// recording does not support one.
    pub fn exceeded_by(&self, p: f64) -> Option<Bound> {
        if let Some(counted) = &self.counted {
            return counted.exceeded_by(p);
        }
        let by_claims = self.bounds.iter().filter(|bound| bound.p <= p).copied();
        by_claims.min_by(|a, b| a.above_ns.total_cmp(&b.above_ns))
    }

    /// Evidence of the share of cycles later than `above_ns`.
    pub(super) fn later_than(&self, above_ns: f64) -> Exceedance {
        self.later_of_trials(above_ns, 1.0)
    }

    /// Evidence of the share of wakes later than `above_ns` that come every `every_ns`. Where that
    /// is longer than the period of the loop, its time holds fewer such wakes than cycles: no
    /// more trials count than fit into it. Without a period each cycle is such a wake.
    pub(super) fn later_of_wakes(&self, above_ns: f64, every_ns: f64) -> Exceedance {
        let ratio = self.period_ns.map_or(1.0, |period_ns| period_ns / every_ns);
        self.later_of_trials(above_ns, ratio.clamp(f64::MIN_POSITIVE, 1.0))
    }

    /// The time that was measured, ns; `None` where the number of cycles or their period is not
    /// known.
    pub(super) fn measured_ns(&self) -> Option<f64> {
        Some(self.n? as f64 * self.period_ns?)
    }

    /// Evidence of a share of which at most `trials` of each cycle count, in (0, 1].
    fn later_of_trials(&self, above_ns: f64, trials: f64) -> Exceedance {
        let (counted, whole_ns) = (self.counted.as_ref(), above_ns.floor() as i64);
        let seen = counted.map(|counted| counted.later_than(whole_ns, trials));
        let cluster = seen.filter(|seen| seen.theta < trials).map(|seen| 1.0 / seen.theta);
        let by_count = seen.map(|seen| Bound {
            above_ns,
            p: p_upper_at(seen.most as f64, seen.n as f64, seen.theta, CONFIDENCE),
            level: Level::L1,
        });
        // A claim counts every cycle as a trial: no bound of it lies below that of no late wake.
        let least = self.n.map_or(0.0, |n| p_upper_at(0.0, n as f64, trials, CONFIDENCE));
        let by_claim = self.p_above(above_ns);
        let by_claim = by_claim.map(|bound| match trials {
            trials if trials < 1.0 => Bound { p: bound.p.max(least), ..bound },
            _ => bound,
        });
        let lower = counted.map_or(0.0, |counted| counted.share_at_least(whole_ns, trials));
        Exceedance {
            above_ns,
            seen,
            // A claim may be that of a lower threshold, of cycles that come less together.
            upper: by_count.or(by_claim),
            lower,
            period_ns: self.period_ns,
            given: self.given,
            n: self.n,
            cluster,
        }
    }

    fn seen(
        &self,
        statistic: &'static str,
        value_ns: Option<f64>,
        p: Option<f64>,
    ) -> Result<Basis, Lack> {
        let value_ns = value_ns.filter(|ns| ns.is_finite()).ok_or(Lack(statistic))?;
        Ok(Basis {
            statistic: statistic.to_owned(),
            value_ns,
            level: (!self.given).then_some(Level::L0),
            n: self.n,
            exceedances: None,
            p,
            confidence: p.map(|_| CONFIDENCE),
            trials: None,
        })
    }
}

impl Basis {
    /// In words: the statistic, its value, its evidence.
    pub fn words(&self) -> String {
        let value = Span::from_ns(self.value_ns.round() as i64);
        let no_bound = if self.p.is_some() { "" } else { ", not a bound" };
        let from = match (self.level, self.n) {
            (None, None) => "as given".to_owned(),
            (None, Some(n)) => format!("as given for {} cycles", grouped(n)),
            (Some(_), Some(n)) => format!("observed in {} cycles{no_bound}", grouped(n)),
            (Some(_), None) => format!("observed{no_bound}"),
        };
        let tail = match (self.p, self.confidence) {
            (Some(p), Some(confidence)) => {
                let trials = self.trials.map(Trials::words).unwrap_or_default();
                let percent = confidence * 100.0;
                format!("; later with p ≤ {p:.1e} at {percent:.0} % confidence{trials}")
            }
            _ => String::new(),
        };
        match self.level {
            Some(level @ (Level::L1 | Level::L2)) => {
                let n = grouped(self.n.unwrap_or(0));
                let from = match self.exceedances {
                    Some(0) => format!("none of {n} cycles"),
                    Some(beyond) => format!("{} of {n} cycles", grouped(beyond)),
                    None => format!("from {n} cycles"),
                };
                format!("{level:?}: {} than {value}, {from}{tail}", self.statistic)
            }
            Some(level) => format!("{level:?}: {} {value}, {from}{tail}", self.statistic),
            None if self.statistic == SHARE_LATER => {
                format!("{} than {value}, {from}{tail}", self.statistic)
            }
            None => format!("{} {value}, {from}{tail}", self.statistic),
        }
    }
}

/// The number of cycles that its figures are of: cold ones that were left out are in no claim.
fn counted(outcome: &RunFigures) -> u64 {
    let seen = outcome.claims.iter().find(|claim| claim.level == Level::L0);
    seen.map_or(outcome.cycles, |claim| claim.n)
}

/// The bound of the tail in a claim, where it has one.
fn bound(claim: &Claim) -> Option<Bound> {
    let (p, above_ns) = (claim.p?, claim.bound_ns?);
    let p = match claim.level {
        Level::L1 => p,
        // The upper end of the interval of the quantile at p: at most 1 − p is above it.
        Level::L2 => 1.0 - p,
        _ => return None,
    };
    (claim.given && (0.0..=1.0).contains(&p)).then_some(Bound { above_ns, p, level: claim.level })
}

#[cfg(test)]
mod tests {
    use punctual_core::sample::Sample;
    use punctual_core::time::Period;

    use super::*;
    use crate::recording::{Recording, RecordingConfig};
    use crate::rng::Rng;

    /// A run of 1 ms of these latenesses.
    fn recorded(latenesses_ns: impl Iterator<Item = i64>) -> RunFigures {
        let period = Period::from_ns(1_000_000);
        let mut recording =
            Recording::new(RecordingConfig { period, ..RecordingConfig::default() });
        for (cycle, ns) in (0..).zip(latenesses_ns) {
            recording.push(&Sample { cycle, lateness: Span::from_ns(ns), ..Sample::default() });
        }
        recording.finish(0)
    }

    /// Cycles of 5 µs in the mean, each with its number; those of `late` are later.
    fn with_late(n: u64, late: impl Fn(u64) -> Option<i64>) -> RunFigures {
        let mut rng = Rng::new(5);
        let body = move |_| (5_000.0 * rng.exponential()) as i64;
        recorded((0..n).zip((0..n).map(body)).map(|(cycle, ns)| late(cycle).unwrap_or(ns)))
    }

    #[test]
    fn one_long_stretch_shows_no_share_whatever_came_alone_elsewhere() {
        let stretch = |cycle| match cycle {
            10_000..11_000 => Some(80_000),
            40_000 => Some(950_000),
            _ => None,
        };
        let outcome = with_late(60_000, stretch);
        let timing = Timing::of(&outcome, Some(1_000_000));
        let later = timing.later_than(60_000.0);
        assert_eq!(later.words().as_deref(), Some("1\u{a0}001 of 60\u{a0}000 were later"));
        assert!(later.at_most().is_some_and(|upper| upper > 0.03), "{later:?}");
        // Markov: 0.0513 of the share seen.
        let lower = later.at_least().expect("1 001 were");
        assert!((lower - 0.051_293 * 1_001.0 / 60_000.0).abs() < 1e-6, "{lower}");
        assert_eq!([0.01, 0.03].map(|allowed| later.suits(allowed)), [Suits::Unknown; 2]);
        assert_eq!(later.suits(8e-4), Suits::No);
        // Of results of before, which do not keep the index of each claim, neither.
        let claims = outcome.claims.iter().map(|claim| Claim { theta: None, ..claim.clone() });
        let before = RunFigures { claims: claims.collect(), watched: Vec::new(), ..outcome };
        let later = Timing::of(&before, Some(1_000_000)).later_than(60_000.0);
        assert_eq!(later.suits(0.01), Suits::Unknown, "{later:?}");
    }

    #[test]
    fn many_clusters_bound_a_share_by_their_number() {
        // 300 bursts of ten, spread over the run.
        let bursts = |cycle: u64| ((cycle / 10) * 7_919 % 100 < 5).then_some(80_000);
        let timing = Timing::of(&with_late(60_000, bursts), Some(1_000_000));
        let shares = |ns| {
            let later = timing.later_than(ns);
            (later.at_least().expect("some"), later.at_most().expect("some"))
        };
        let (lower, upper) = shares(60_000.0);
        assert!(lower > 0.03 && lower < 0.05 && upper > 0.05 && upper < 0.07, "{lower} {upper}");
        // No claim is about the body, of which more are later still.
        let (of_body, upper) = shares(500.0);
        assert!(of_body >= lower && upper > 0.9, "{of_body} {upper}");
    }
    #[test]
    fn gross_failures_are_refused() {
        for (late, allowed) in [(40, 0.05), (15, 0.01)] {
            let mut rng = Rng::new(7);
            let lateness = move |_| match rng.below(100) as u64 {
                below if below < late => 550_001 + rng.below(100_000) as i64,
                _ => 5_000,
            };
            let outcome = recorded((0..60_000).map(lateness));
            let json = serde_json::to_string(&outcome).expect("figures");
            let stored: RunFigures = serde_json::from_str(&json).expect("figures");
            for outcome in [outcome, stored] {
                let later = Timing::of(&outcome, Some(1_000_000)).later_than(550_000.0);
                assert_eq!(later.suits(allowed), Suits::No, "{later:?}");
                assert!(later.at_least().is_some_and(|p| p > late as f64 * 0.008), "{later:?}");
            }
        }
        // All of them, below the lowest threshold that none exceeds.
        let late = recorded((0..60_000).map(|_| 30_000));
        let later = Timing::of(&late, Some(1_000_000)).later_than(25_000.0);
        assert_eq!(later.suits(0.9), Suits::No, "{later:?}");
    }

    #[test]
    fn a_stretch_among_even_ones_shows_no_share() {
        // 1 001 evenly placed, of which 200 neighbours are later still.
        let late = |cycle: u64| {
            let place = cycle / 131;
            (cycle % 131 == 7).then_some(if (300..500).contains(&place) { 92_000 } else { 60_000 })
        };
        let timing = Timing::of(&with_late(131_072, late), Some(1_000_000));
        let counted = timing.counted.as_ref().expect("latenesses");
        assert!(matches!(counted.separate_at(50_000), Separate::Evenly(_)));
        assert_eq!(counted.separate_at(90_000), Separate::Unknown);
        let later = timing.later_than(90_000.0);
        let share = 200.0 / 131_072.0;
        assert!(later.at_least().is_some_and(|p| p < 0.06 * share), "{later:?}");
    }

    #[test]
    fn a_threshold_of_the_ladder_has_its_exact_count() {
        let late = |cycle| (cycle % 1_500 == 3).then_some(499_800);
        let timing = Timing::of(&with_late(60_000, late), Some(1_000_000));
        let later = timing.later_than(500_000.0);
        assert_eq!(later.words().as_deref(), Some("none of 60\u{a0}000 was later"), "{later:?}");
    }
}
