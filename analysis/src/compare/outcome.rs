//! The result of a comparison, as plain data: the JSON key `compare`.
//!
//! Holds; computes nothing.

use punctual_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::together;
use crate::plain::grouped;

/// The verdict on B, compared with A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B is late less often, or less late.
    Better,
    /// B is late more often, or later.
    Worse,
    /// Better in one place of the distribution and worse in another.
    Mixed,
    /// No significant difference; there may be one all the same
    /// ([`RunComparison::is_open`]).
    Undecided,
}

/// What else ran on the CPUs of the two sides of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SideDisturbance {
    /// What ran on the CPU of A, in words; null where it was idle, or the data do not record it.
    pub a: Option<String>,
    /// What ran on the CPU of B.
    pub b: Option<String>,
    /// The side of which others used more: a difference to its disadvantage may be theirs. Null
    /// where both were disturbed alike.
    pub more: Option<DisturbedSide>,
    /// True where what else ran is the very change that is compared: then it withholds nothing.
    /// Not there where it is not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_the_change: bool,
    /// The sides of which it is unknown what else ran, because samples and imports do not hold it:
    /// a difference may be of that. Not there where it is known of both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<DisturbedSide>,
}

/// One of two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DisturbedSide {
    /// The reference.
    A,
    /// What is held against it.
    B,
}

impl SideDisturbance {
    /// The verdict of one test, undecided where it is against the side that was disturbed more:
    /// others may account for it. What speaks for that side stands.
    pub fn weigh(&self, verdict: Verdict) -> Verdict {
        match (self.more.filter(|_| !self.is_the_change), verdict) {
            (Some(DisturbedSide::A), Verdict::Better) => Verdict::Undecided,
            (Some(DisturbedSide::B), Verdict::Worse) => Verdict::Undecided,
            (_, verdict) => verdict,
        }
    }

    /// Takes back the verdict of one test where [`Self::weigh`] does; returns what it was.
    pub(super) fn withhold(&self, verdict: &mut Verdict) -> Option<Verdict> {
        let by_test = std::mem::replace(verdict, self.weigh(*verdict));
        (by_test != *verdict).then_some(by_test)
    }

    /// The verdict of several tests: undecided too where all that is left speaks for B, while
    /// something against it is withheld.
    pub(super) fn weigh_together(
        &self,
        verdicts: impl Iterator<Item = Verdict> + Clone,
    ) -> Verdict {
        let is_withheld = verdicts.clone().any(|verdict| self.weigh(verdict) != verdict);
        match together(verdicts.map(|verdict| self.weigh(verdict))) {
            Verdict::Better if is_withheld => Verdict::Undecided,
            verdict => verdict,
        }
    }

    /// The name of the side of which others used more.
    fn label<'a>(&self, labels: [&'a str; 2]) -> &'a str {
        labels[usize::from(self.more == Some(DisturbedSide::B))]
    }

    /// The sides that were not idle, in words, and where `is_decided` those of which that is
    /// unknown; `None` where nothing is to be said.
    fn brief(&self, labels: [&str; 2], is_decided: bool) -> Option<String> {
        let restless = match (&self.a, &self.b) {
            (Some(_), Some(_)) => Some("neither side was idle".to_owned()),
            (Some(_), None) => Some(format!("{} was not idle", labels[0])),
            (None, Some(_)) => Some(format!("{} was not idle", labels[1])),
            (None, None) => None,
        };
        let change = if self.is_the_change { ", which is the change" } else { "" };
        let restless = restless.map(|restless| restless + change);
        let unknown = self.unknown_words(labels).filter(|_| is_decided && !self.is_the_change);
        let unknown = unknown.map(|unknown| unknown + ", and may account for that");
        let words: Vec<String> = restless.into_iter().chain(unknown).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// The sides of which it is unknown what else ran, in words; `None` where it is known.
    pub fn unknown_words(&self, labels: [&str; 2]) -> Option<String> {
        let label = |side: &DisturbedSide| labels[usize::from(*side == DisturbedSide::B)];
        let cpus = match &self.unknown[..] {
            [] => return None,
            [side] => format!("CPU of {}", label(side)),
            [side, other, ..] => format!("CPUs of {} and {}", label(side), label(other)),
        };
        Some(format!("what else ran on the {cpus} is unknown"))
    }
}

/// The exceedances of one threshold by two runs, compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateRatio {
    /// An exceedance is a release whose lateness is above this. A missed release counts with the
    /// lateness that the stall caused, and at least a period.
    pub threshold_ns: f64,
    /// Exceedances of A, at most.
    pub exceedances_a: u64,
    /// Exceedances of B, at most.
    pub exceedances_b: u64,
    /// Those of both that may be none, as a bucket of a histogram holds the threshold: the verdict
    /// holds whether they are or not, and so does the interval. Not there where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsure: u64,
    /// Releases of A, missed ones included.
    pub n_a: u64,
    /// Releases of B.
    pub n_b: u64,
    /// Rate of B over rate of A, of the exceedances that there are at most; null where A has none.
    pub ratio: Option<f64>,
    /// Lower end of its interval.
    pub lower: f64,
    /// Upper end; null where A has no exceedance.
    pub upper: Option<f64>,
    /// By how much the counts scatter more than those of independent cycles, at least 1; both
    /// counts are divided by it before the test.
    pub dispersion: f64,
    /// p value of equal rates.
    pub p_value: f64,
    /// The same adjusted for all tests of the comparison; null where it is no test.
    pub p_adjusted: Option<f64>,
    /// The verdict on B by this ratio.
    pub verdict: Verdict,
    /// The verdict by the test alone, where what else ran may account for it and `verdict` is
    /// "undecided"; not there where it is `verdict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Verdict>,
    /// Cycles that each side would need beyond those it has, to detect a ratio of 2 four times in
    /// five; 0 where a ratio of 2 would have been detected. Null where nothing exceeds the
    /// threshold, or no number of cycles would, as too many exceedances are unsure.
    pub more_cycles: Option<u64>,
    /// True where only the dependence of the cycles keeps the difference from being significant:
    /// with independent ones it would be.
    #[serde(default)]
    pub clustered: bool,
    /// The smallest ratio that would have been detected four times in five; null where none up to
    /// 1000 would.
    #[serde(default)]
    pub detectable: Option<f64>,
    /// Results of A and of B, where each of one side has a higher rate than each of the other. Not
    /// there where they overlap, and with one result a side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<[u64; 2]>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl RateRatio {
    /// The verdict by the test alone, whatever else ran.
    pub fn by_test(&self) -> Verdict {
        self.withheld.unwrap_or(self.verdict)
    }

    /// Returns true where only the buckets of a histogram leave it undecided.
    fn is_coarse(&self) -> bool {
        self.is_open() && self.unsure > 0 && self.more_cycles.is_none()
    }

    /// Returns true where it shows neither: no difference was seen, and twice as often would not
    /// have been, or clusters alone keep the difference from being significant.
    pub fn is_open(&self) -> bool {
        self.by_test() == Verdict::Undecided && (self.more_cycles != Some(0) || self.clustered)
    }

    /// The ratio in words, with its interval: in brackets where it decides something, else with
    /// all that it may be. `None` where no ratio is bounded.
    fn as_often(&self) -> Option<String> {
        let lower = ratio_figures(self.lower);
        let Some(ratio) = self.ratio else {
            let is_bounded = self.lower >= RATIO_MIN;
            return is_bounded.then(|| format!("at least {lower} times as often"));
        };
        let shown = format!("{} times as often", ratio_figures(ratio));
        let upper = self.upper.filter(|&upper| upper < RATIO_MAX).map(ratio_figures);
        if !self.is_open() {
            let upper = self.upper.map_or_else(|| "∞".to_owned(), ratio_figures);
            return Some(format!("{shown} [{lower}, {upper}]"));
        }
        let anything = match (self.lower >= RATIO_MIN, upper) {
            (true, Some(upper)) => format!("anything from {lower} to {upper} times"),
            (true, None) => format!("anything from {lower} times up"),
            (false, Some(upper)) => format!("anything up to {upper} times"),
            (false, None) => "anything".to_owned(),
        };
        Some(format!("{shown}, but it may be {anything}"))
    }
}

/// One quantile of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuantileDifference {
    /// Which, as a share in (0, 1).
    pub p: f64,
    /// Of A: missed releases count with the lateness that the stall caused; within 1/128.
    pub a_ns: f64,
    /// Of B.
    pub b_ns: f64,
    /// B − A.
    pub difference_ns: f64,
    /// Lower end of its interval, the width of a bucket included; null where n is too small or
    /// there are too many tests.
    pub lower_ns: Option<f64>,
    /// Upper end.
    pub upper_ns: Option<f64>,
    /// p value of equal quantiles; null where n is too small.
    pub p_value: Option<f64>,
    /// Why they were not tested, with what a test takes; null where they were.
    #[serde(default)]
    pub untested: Option<String>,
    /// The same adjusted for all tests of the comparison.
    pub p_adjusted: Option<f64>,
    /// The verdict on B by this quantile.
    pub verdict: Verdict,
    /// The verdict by the test alone, where what else ran may account for it and `verdict` is
    /// "undecided"; not there where it is `verdict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Verdict>,
}

/// The way out where a difference of this name keeps a verdict from being given.
pub fn named_as_change(difference: &str) -> String {
    format!("name it as the change that you compare with --changed {difference}")
}

/// How many times longer to measure is said up to here.
const LONGER_MAX: f64 = 1e4;

/// The least difference of quantiles that is not to be missed, ns.
const RELEVANT_MIN_NS: f64 = 1_000.0;

impl QuantileDifference {
    /// The verdict by the test alone, whatever else ran.
    pub fn by_test(&self) -> Verdict {
        self.withheld.unwrap_or(self.verdict)
    }

    /// The difference that is not to be missed, ns: there one side is twice as late as the other,
    /// by a microsecond at least, below which clocks and their reading differ too.
    fn relevant_ns(&self) -> f64 {
        self.a_ns.min(self.b_ns).max(RELEVANT_MIN_NS)
    }

    /// The largest difference that its interval leaves possible, ns; `None` without one.
    fn possible_ns(&self) -> Option<f64> {
        self.lower_ns.zip(self.upper_ns).map(|(lower, upper)| lower.abs().max(upper.abs()))
    }

    /// Returns true where a test shows neither: no difference was seen, and one side may be twice
    /// as late as the other all the same.
    pub fn is_open(&self) -> bool {
        let is_tested = self.p_value.is_some();
        let may_be = self.possible_ns().is_none_or(|possible| possible >= self.relevant_ns());
        self.by_test() == Verdict::Undecided && is_tested && may_be
    }

    /// Why it is open, and what it takes; `None` where it is not.
    pub fn open_words(&self) -> Option<String> {
        if !self.is_open() {
            return None;
        }
        let Some((lower, upper)) = self.lower_ns.zip(self.upper_ns) else {
            return Some("too many tests for an interval; compare fewer runs at a time".to_owned());
        };
        let (margin, difference) = (self.relevant_ns(), self.difference_ns);
        let possible = format!(
            "they may differ by {}, and one side be twice as late as the other",
            shown(lower.abs().max(upper.abs()))
        );
        // An interval narrows by the square root of the length.
        let half = (upper - difference).max(difference - lower);
        let room = margin - difference.abs();
        let times = (half / room).powi(2).max(1.1);
        let longer = (room > 0.0 && times < LONGER_MAX).then(|| as_long(times));
        let longer = longer.unwrap_or_else(|| "longer".to_owned());
        Some(format!("{possible}; run both sides {longer}, in turn, to tell that"))
    }
}

/// One run of B, compared with the run of A of the same name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunComparison {
    /// The run.
    pub name: String,
    /// The verdict of all its tests together.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub statement: String,
    /// Releases of A, missed ones included.
    pub n_a: u64,
    /// Releases of B.
    pub n_b: u64,
    /// Missed releases of A; null where they are not recorded. Where one side does not record them
    /// those of the other are in no count.
    pub missed_a: Option<u64>,
    /// Missed releases of B.
    pub missed_b: Option<u64>,
    /// The largest lateness of A: shown, never compared.
    pub max_a_ns: Option<f64>,
    /// The largest lateness of B.
    pub max_b_ns: Option<f64>,
    /// True where releases of A may have been later than `max_a_ns`.
    #[serde(default)]
    pub max_a_open: bool,
    /// True where releases of B may have been later than `max_b_ns`.
    #[serde(default)]
    pub max_b_open: bool,
    /// Exceedances, thresholds rising.
    pub rates: Vec<RateRatio>,
    /// Quantiles, rising.
    pub quantiles: Vec<QuantileDifference>,
    /// The deadline of the question that it was measured for: the first of `rates` from there on
    /// counts what is later. Null without a question.
    #[serde(default)]
    pub deadline_ns: Option<f64>,
    /// The period of its loop, ns; null where it is not known.
    #[serde(default)]
    pub period_ns: Option<u64>,
    /// What else ran on the CPUs of the two sides; not there where nothing is known to have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<SideDisturbance>,
    /// The verdict by the tests alone, where the disturbance may account for it and `verdict` is
    /// less sure; not there where it is `verdict`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<Verdict>,
}

impl RunComparison {
    /// Returns true where it shows neither: the counts differ and clusters or a disturbance may
    /// account for that, nowhere would twice as often have been detected, or nothing was tested.
    pub fn is_open(&self) -> bool {
        let is_untested = |rate: &RateRatio| rate.p_adjusted.is_none();
        let nowhere = self.rates.iter().all(|rate| rate.is_open() || is_untested(rate));
        // The question is about one place; that others show no difference is no answer to it.
        // None late on either side is one.
        let is_asked = self.at_deadline().is_some_and(|rate| {
            rate.is_open() && rate.exceedances_a.saturating_add(rate.exceedances_b) > 0
        });
        let is_clustered = self.clustered().is_some();
        self.verdict == Verdict::Undecided
            && (nowhere || is_asked || is_clustered || self.withheld.is_some())
    }

    /// The rarest threshold that shows this, of the tests that show one.
    fn rate_of(&self, verdict: Verdict) -> Option<&RateRatio> {
        let is_shown = matches!(verdict, Verdict::Better | Verdict::Worse);
        self.rates.iter().rev().find(|rate| is_shown && rate.verdict == verdict)
    }

    /// A threshold at which clusters alone keep a difference from being significant.
    fn clustered(&self) -> Option<&RateRatio> {
        self.foremost(|rate| rate.clustered)
    }

    /// A threshold at which more cycles would show twice as often.
    fn short_of_cycles(&self) -> Option<&RateRatio> {
        self.foremost(|rate| rate.more_cycles.is_some_and(|more| more > 0))
    }

    /// The deadline where this is so of it, else the rarest threshold of which it is.
    fn foremost(&self, is_so: impl Fn(&RateRatio) -> bool) -> Option<&RateRatio> {
        let at_deadline = self.at_deadline().filter(|rate| is_so(rate));
        at_deadline.or_else(|| self.rates.iter().rev().find(|rate| is_so(rate)))
    }

    /// Returns true where the deadline is the rarest threshold that shows this.
    fn is_shown_at_deadline(&self, verdict: Verdict) -> bool {
        self.rate_of(verdict).is_some_and(|rate| Some(rate) == self.at_deadline())
    }

    /// The exceedances of the deadline; `None` without a question.
    pub fn at_deadline(&self) -> Option<&RateRatio> {
        let deadline_ns = self.deadline_ns?;
        self.rates.iter().find(|rate| rate.threshold_ns >= deadline_ns)
    }
}

/// The number of tests, and the confidence of all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Family {
    /// Tests of all runs and pairs.
    pub tests: u64,
    /// The probability that no test reports a difference when there is none.
    pub confidence: f64,
}

/// The sentences: what to do where it is open, the deadline of the question where one is known, the
/// verdict of all tests, and what else ran. `untested` says why nothing could be tested.
pub(super) fn statement(
    run: &RunComparison,
    labels: [&str; 2],
    untested: Option<String>,
) -> String {
    let is_untested = untested.is_some() || run.rates.is_empty();
    let mut parts = Vec::new();
    if run.is_open() {
        parts.push(format!("undecided: {}", to_do(run, labels, untested)));
    }
    parts.extend(run.at_deadline().map(|rate| of_deadline(run, rate, labels)));
    let by_tests = match (&run.disturbance, run.withheld) {
        _ if is_untested => None,
        (Some(seen), Some(withheld)) => Some(withheld_words(run, withheld, seen.label(labels))),
        _ => of_tests(run, labels),
    };
    // The deadline is one place of several.
    let overall = match (&by_tests, run.deadline_ns, run.is_open()) {
        (Some(words), Some(_), false) => Some(format!("overall {words}")),
        _ => by_tests,
    };
    parts.extend(overall);
    let is_decided = run.verdict != Verdict::Undecided;
    parts.extend(run.disturbance.as_ref().and_then(|seen| seen.brief(labels, is_decided)));
    parts.join("; ")
}

/// What to do where a comparison is open.
fn to_do(run: &RunComparison, labels: [&str; 2], untested: Option<String>) -> String {
    if let Some(why) = untested {
        return why;
    }
    if run.rates.is_empty() {
        let (a, b) = (grouped(run.n_a), grouped(run.n_b));
        return format!("measure longer: {a} and {b} releases are too few");
    }
    if let (Some(seen), Some(_)) = (&run.disturbance, run.withheld) {
        let (label, way_out) = (seen.label(labels), named_as_change("others"));
        return format!("measure {label} again with nothing else on its CPU, or {way_out}");
    }
    // The question's own row before others.
    let is_short =
        |rate: &&RateRatio| rate.is_open() && rate.more_cycles.is_some_and(|more| more > 0);
    let at_deadline = run.at_deadline().filter(is_short);
    if let (None, Some(rate)) = (at_deadline, run.foremost(RateRatio::is_coarse)) {
        return format!(
            "keep samples, or ask about the end of a bucket: {} lies within one of a histogram",
            shown(rate.threshold_ns)
        );
    }
    let rate = at_deadline.or_else(|| run.clustered()).or_else(|| run.short_of_cycles());
    let longer = rate.and_then(|rate| longer_words(run, rate, labels));
    longer.unwrap_or_else(|| "measure longer".to_owned())
}

/// What stands, and what others on the CPU of the side of this name may account for, in a sentence.
fn withheld_words(run: &RunComparison, withheld: Verdict, label: &str) -> String {
    let shows = |verdict| format!("{}, {}", word(verdict), of_place(run, verdict));
    let open = |verdict| format!("undecided whether {}", shows(verdict));
    let parts = match (withheld, run.verdict) {
        (Verdict::Mixed, Verdict::Worse) => {
            format!("{}, but {}", shows(Verdict::Worse), open(Verdict::Better))
        }
        (Verdict::Mixed, _) => format!("{}, but {}", shows(Verdict::Better), open(Verdict::Worse)),
        (withheld, _) => open(withheld),
    };
    format!("{parts}: others had more of the CPU of {label}, and may account for that")
}

/// The question's own row: how often each side was later than the deadline.
fn of_deadline(run: &RunComparison, rate: &RateRatio, labels: [&str; 2]) -> String {
    let counted = |label: &str, late, n| format!("{label} {} of {}", grouped(late), grouped(n));
    let ratio = rate.as_often().unwrap_or_else(|| "which bounds no ratio".to_owned());
    let weighed = run.disturbance.as_ref().map_or(rate.verdict, |seen| seen.weigh(rate.verdict));
    let answer = match weighed {
        _ if rate.exceedances_a.saturating_add(rate.exceedances_b) == 0 => {
            "none on either side".to_owned()
        }
        // Its interval would be that of independent releases.
        _ if rate.p_adjusted.is_none() => "not tested".to_owned(),
        Verdict::Worse => format!("more, {ratio}"),
        Verdict::Better => format!("fewer, {ratio}"),
        Verdict::Undecided | Verdict::Mixed if rate.is_coarse() => {
            format!(
                "undecided, as a bucket holds it: {} of these may be no later",
                grouped(rate.unsure)
            )
        }
        Verdict::Undecided | Verdict::Mixed if rate.is_open() && !rate.clustered => {
            format!("undecided, {ratio}: too few late releases")
        }
        Verdict::Undecided | Verdict::Mixed if rate.is_open() || weighed != rate.verdict => {
            format!("undecided, {ratio}")
        }
        Verdict::Undecided | Verdict::Mixed => format!("no difference seen, {ratio}"),
    };
    let deadline_ns = run.deadline_ns.unwrap_or(rate.threshold_ns);
    let (deadline, edge) = (shown(deadline_ns), shown(rate.threshold_ns));
    let counted_from = match deadline.to_string() == edge.to_string() {
        _ if rate.threshold_ns == deadline_ns => String::new(),
        // Three figures of both are the same.
        true => format!(" (counted from {} ns on)", grouped(rate.threshold_ns.round() as u64 + 1)),
        false => format!(" (counted from {edge} on)"),
    };
    format!(
        "later than {deadline}, the deadline{counted_from}: {}, {}: {answer}",
        counted(labels[0], rate.exceedances_a, rate.n_a),
        counted(labels[1], rate.exceedances_b, rate.n_b),
    )
}

/// The verdict of all tests, with the threshold or the quantile that shows it; `None` where it is
/// open and that was said.
fn of_tests(run: &RunComparison, labels: [&str; 2]) -> Option<String> {
    let place = |verdict| of_place(run, verdict);
    match run.verdict {
        Verdict::Undecided => undecided(run, labels),
        // The deadline was the words before.
        verdict if run.is_shown_at_deadline(verdict) => Some(word(verdict).to_owned()),
        verdict @ (Verdict::Better | Verdict::Worse) => {
            Some(format!("{}: {}", word(verdict), place(verdict)))
        }
        Verdict::Mixed => Some(format!(
            "mixed: worse, {}; better, {}",
            place(Verdict::Worse),
            place(Verdict::Better)
        )),
    }
}

/// The threshold or the quantile that shows this verdict; the deadline without its figures, which
/// stand before.
fn of_place(run: &RunComparison, verdict: Verdict) -> String {
    match run.rate_of(verdict) {
        Some(_) if run.is_shown_at_deadline(verdict) => "at the deadline".to_owned(),
        Some(rate) => of_rate(rate),
        None => of_quantile(run, verdict),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Mixed => "mixed",
        Verdict::Undecided => "no significant difference",
    }
}

fn shown(ns: f64) -> Span {
    Span::from_ns(ns.round() as i64)
}

fn of_rate(rate: &RateRatio) -> String {
    let threshold = shown(rate.threshold_ns);
    let counts = format!(
        "{} of {} against {} of {}",
        grouped(rate.exceedances_b),
        grouped(rate.n_b),
        grouped(rate.exceedances_a),
        grouped(rate.n_a)
    );
    match rate.as_often() {
        Some(ratio) => format!("later than {threshold} {ratio} ({counts})"),
        None => format!("later than {threshold} {counts}, which bounds no ratio"),
    }
}

/// Ratios below and above these are not told apart: nobody plans with them, and as the ends of an
/// interval they are chance.
const RATIO_MIN: f64 = 0.005;
const RATIO_MAX: f64 = 9_999.5;

/// A ratio in three figures: `0.70`, `12.3`, `580`, `<0.01`, `>9999`.
pub fn ratio_figures(value: f64) -> String {
    match value {
        v if v >= RATIO_MAX => ">9999".to_owned(),
        v if v > 0.0 && v < RATIO_MIN => "<0.01".to_owned(),
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn of_quantile(run: &RunComparison, verdict: Verdict) -> String {
    let quantile = run.quantiles.iter().rev().find(|quantile| quantile.verdict == verdict);
    quantile.map_or_else(String::new, |quantile| {
        format!(
            "the {} % quantile {} instead of {}",
            quantile.p * 100.0,
            shown(quantile.b_ns),
            shown(quantile.a_ns)
        )
    })
}

/// The largest probability, two-sided, that results fall apart so by chance, which shows a
/// difference by their ranks.
const APART_P_MAX: f64 = 0.05;

/// The probability that all results of one side lie above all of the other by chance alone, where
/// the two do not differ: that of a rank test, 2 in as many as there are ways to choose one side.
fn apart_by_chance([a, b]: [u64; 2]) -> f64 {
    (1..=a).map(|k| k as f64 / (b + k) as f64).product::<f64>() * 2.0
}

/// What the results of each side show by their order alone, and how many it takes; `None` where
/// they do not lie apart.
fn apart_words(rate: &RateRatio, labels: [&str; 2]) -> Option<String> {
    let [a, b] = rate.apart?;
    let (higher, lower) = match rate.ratio.is_none_or(|ratio| ratio > 1.0) {
        true => ((labels[1], b), (labels[0], a)),
        false => ((labels[0], a), (labels[1], b)),
    };
    let seen = format!(
        "each of the {} results of {} was so late more often than each of the {} of {}",
        higher.1, higher.0, lower.1, lower.0
    );
    let chance = apart_by_chance([a, b]);
    let share = format!("{:.2} %", chance * 100.0);
    let share = share.replace(".00 %", " %");
    Some(match chance > APART_P_MAX {
        true => {
            let enough = (2..).find(|&n| apart_by_chance([n, n]) <= APART_P_MAX).unwrap_or(a);
            format!(
                "{seen}, which so few do by chance alone with a probability of {share}: give \
                 {enough} results a side or more, measured in turn"
            )
        }
        false => format!(
            "{seen}, which they do by chance alone with a probability of {share}, but by how much \
             is unsure: give more results a side, measured in turn"
        ),
    })
}

/// Why no difference is shown, beside what to do; `None` where that says it all.
fn undecided(run: &RunComparison, labels: [&str; 2]) -> Option<String> {
    if let Some(rate) = run.clustered() {
        let counts = (run.at_deadline() != Some(rate)).then(|| of_rate(rate));
        let parts = counts.into_iter().chain([in_clusters(rate)]).chain(apart_words(rate, labels));
        return Some(parts.collect::<Vec<_>>().join("; "));
    }
    let enough = run.rates.iter().rev().find(|rate| rate.more_cycles == Some(0))?;
    let longer = run.short_of_cycles().and_then(|rate| longer_words(run, rate, labels));
    let longer = longer.map(|longer| format!("; {longer}")).unwrap_or_default();
    Some(format!(
        "no significant difference: twice as often {} would have been seen with a probability of \
         80 %{longer}",
        later_than(run, enough)
    ))
}

/// The threshold of a rate in words; that of the deadline by its name, as its figures stand before.
fn later_than(run: &RunComparison, rate: &RateRatio) -> String {
    match run.at_deadline() == Some(rate) {
        true => "at the deadline".to_owned(),
        false => format!("later than {}", shown(rate.threshold_ns)),
    }
}

/// How much longer both sides are to run, to see twice as often at this threshold; `None` where no
/// length is known that shows it. In lengths of the run that there is: it may have taken turns with
/// others, and then lasts as long as they do together.
fn longer_words(run: &RunComparison, rate: &RateRatio, labels: [&str; 2]) -> Option<String> {
    let fewest = run.n_a.min(run.n_b);
    let more = rate.more_cycles.filter(|&more| more > 0 && fewest > 0)?;
    let needed = more.saturating_add(fewest);
    let [a, b] = [run.n_a, run.n_b].map(|releases| times_as_long(needed, releases));
    let sides = match a == b {
        true => format!("both sides {a}"),
        false => format!("{} {a} and {} {b}", labels[0], labels[1]),
    };
    let time = run.period_ns.map(|period_ns| shown(needed as f64 * period_ns as f64));
    let time = time.map_or_else(String::new, |time| format!(" ({time} of '{}' each)", run.name));
    let place = later_than(run, rate);
    Some(format!("run {sides}{time}, in turn, to tell twice as often {place}"))
}

/// How long a side is to run, in multiples of the releases that there are, rounded up to two
/// figures: `as long as before`, `about 1.4 times as long`.
fn times_as_long(needed: u64, releases: u64) -> String {
    as_long(needed as f64 / releases as f64)
}

/// The same of a factor.
fn as_long(times: f64) -> String {
    let tenths = (times.max(1.0) * 10.0).ceil() / 10.0;
    match tenths {
        ..1.05 => "as long as before".to_owned(),
        ..9.95 => format!("about {tenths:.1} times as long"),
        _ => format!("about {} times as long", two_figures(times.ceil() as u64)),
    }
}

/// Why counts that differ so much are no evidence, and what would have been.
fn in_clusters(rate: &RateRatio) -> String {
    let late = rate.exceedances_a.saturating_add(rate.exceedances_b);
    let independent = (late as f64 / rate.dispersion).round() as u64;
    let worth = match independent {
        0 | 1 => "as one alone".to_owned(),
        several => format!("as about {} that come alone", grouped(several)),
    };
    let detectable = match rate.detectable {
        Some(ratio) => {
            format!("only {} times as often or more would have been seen", ratio_figures(ratio))
        }
        None => "too few to tell any difference".to_owned(),
    };
    format!(
        "the {} late releases come in clusters and tell as much {worth}, {detectable}",
        grouped(late)
    )
}

/// A count rounded to two figures: it is an estimate.
fn two_figures(count: u64) -> String {
    let digits = count.checked_ilog10().unwrap_or(0);
    let place = 10u64.pow(digits.saturating_sub(1));
    grouped(count.div_ceil(place).saturating_mul(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_three_figures_however_large() {
        let shown = [0.7, 12.34, 580.4, 9_999.0, 3.6e75, 1e-9, 0.0].map(ratio_figures);
        assert_eq!(shown, ["0.70", "12.3", "580", "9999", ">9999", "<0.01", "0.00"]);
    }

    #[test]
    fn a_quantile_that_may_be_twice_as_late_is_open_with_what_it_takes() {
        let quantile = |a_ns, b_ns, lower_ns, upper_ns| QuantileDifference {
            p: 0.99,
            a_ns,
            b_ns,
            difference_ns: b_ns - a_ns,
            lower_ns: Some(lower_ns),
            upper_ns: Some(upper_ns),
            p_value: Some(0.9),
            untested: None,
            p_adjusted: Some(1.0),
            verdict: Verdict::Undecided,
            withheld: None,
        };
        let wide = quantile(400_000.0, 405_000.0, -391_000.0, 401_000.0);
        let words = wide.open_words().expect("it may be twice as late");
        assert_eq!(
            words,
            "they may differ by 401 µs, and one side be twice as late as the other; run both sides \
             about 1.1 times as long, in turn, to tell that"
        );
        let wider = quantile(40_000.0, 40_000.0, -391_000.0, 400_000.0);
        let words = wider.open_words().expect("ten times as late").replace('\u{a0}', " ");
        assert!(words.contains("run both sides about 100 times as long, in turn"), "{words}");
        // A tenth is no difference that matters.
        let narrow = quantile(40_000.0, 41_000.0, -3_000.0, 5_000.0);
        assert_eq!((narrow.is_open(), narrow.open_words()), (false, None));
        // The same whichever side comes first.
        let half = quantile(80_000.0, 60_000.0, -65_000.0, 10_000.0);
        let twice = quantile(60_000.0, 80_000.0, -10_000.0, 65_000.0);
        assert!(half.is_open() && twice.is_open());
        let untested = QuantileDifference { p_value: None, ..wide.clone() };
        assert!(!untested.is_open());
        assert!(!QuantileDifference { verdict: Verdict::Worse, ..wide }.is_open());
    }

    #[test]
    fn a_side_that_is_long_enough_runs_as_long_as_before() {
        assert_eq!(
            [1.0, 1.04, 2.31, 9.99, 183.0].map(as_long),
            [
                "as long as before",
                "about 1.1 times as long",
                "about 2.4 times as long",
                "about 10 times as long",
                "about 190 times as long"
            ]
        );
    }

    #[test]
    fn a_ratio_that_nothing_bounds_is_none() {
        let rate = RateRatio {
            threshold_ns: 1e6,
            n_a: 100,
            n_b: 100,
            exceedances_a: 0,
            exceedances_b: 2,
            unsure: 0,
            ratio: None,
            lower: 0.0,
            upper: None,
            dispersion: 1.0,
            p_value: 1.0,
            p_adjusted: None,
            verdict: Verdict::Undecided,
            withheld: None,
            more_cycles: None,
            clustered: false,
            detectable: None,
            apart: None,
        };
        let open = RateRatio { ratio: Some(10.1), lower: 0.37, upper: Some(2e4), ..rate.clone() };
        let words = |rate: &RateRatio| rate.as_often().expect("bounded");
        assert_eq!(words(&open), "10.1 times as often, but it may be anything from 0.37 times up");
        let above = RateRatio { lower: 0.0, upper: Some(30.0), ..open.clone() };
        assert_eq!(words(&above), "10.1 times as often, but it may be anything up to 30.0 times");
        let worse = RateRatio { verdict: Verdict::Worse, lower: 2.0, upper: Some(30.0), ..open };
        assert_eq!(words(&worse), "10.1 times as often [2.00, 30.0]");
        assert_eq!(
            of_rate(&rate),
            "later than 1.00 ms 2 of 100 against 0 of 100, which bounds no ratio"
        );
        let bounded = RateRatio { lower: 0.5, ..rate };
        assert!(
            of_rate(&bounded).contains("at least 0.50 times as often"),
            "{}",
            of_rate(&bounded)
        );
    }
}
