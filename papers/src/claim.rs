//! A claim that a paper makes, and whether it holds here: judged by tests of what was measured, of
//! which every one must be clear for a yes and one is enough for a no.
//!
//! Plain data without a serialised form: results have a counterpart.

use punctual_analysis::claim::judge::Holds;
use punctual_analysis::interval::{Interval, Takes};
use punctual_analysis::plain::concise;
use punctual_analysis::scatter::Scatter;

use crate::row::{ENDED_EARLY, NO_DATA};

/// The share of the cycles that a spread up to 99 % leaves out.
const LEFT_OUT: f64 = 0.01;

/// A claim of a paper, and its verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperClaim {
    /// Paper and claim: "nist.claim.factor".
    pub id: String,
    /// The claim in words: a sentence without its full stop.
    pub claim: String,
    /// The verdict.
    pub holds: Holds,
    /// The figure that decided the verdict; where none did, what it would take.
    pub because: String,
    /// What stands beside the verdict, in a few words for a terminal; `None` where nothing does.
    pub remark: Option<String>,
    /// The numbers that it rests on.
    pub figures: Vec<ClaimFigure>,
    /// Why a part of it was not tested, and what would do that.
    untested: Vec<String>,
}

/// A number that a claim rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimFigure {
    /// The name of the number.
    pub title: String,
    /// The unit of its value and its bound.
    pub unit: String,
    /// Its value, between the ends that its samples leave.
    pub value: Interval,
    /// Samples.
    pub n: Option<u64>,
    /// The bound that the claim sets, and the verdict on it; `None` where it stands beside.
    pub test: Option<(ClaimedBound, Holds)>,
}

/// A bound that a claim sets to a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClaimedBound {
    /// It is this much or more.
    AtLeast(f64),
    /// It is this much or less.
    AtMost(f64),
}

/// A number that a claim is tested by.
#[derive(Clone, Copy, Debug)]
pub struct ClaimTest<'t> {
    /// The name of the number.
    pub title: &'t str,
    /// The unit of value and bound.
    pub unit: &'t str,
    /// The measured value; `None` where nothing was measured.
    pub value: Option<Interval>,
    /// Samples.
    pub n: Option<u64>,
    /// The bound that the claim sets.
    pub bound: ClaimedBound,
}

impl ClaimedBound {
    /// The verdict on a value: decided where all of its interval lies on one side of the bound.
    pub fn judge(self, value: Interval) -> Holds {
        match self {
            Self::AtLeast(bound) => value.at_least(bound),
            Self::AtMost(bound) => value.at_most(bound),
        }
    }

    /// The number.
    fn number(self) -> f64 {
        match self {
            Self::AtLeast(bound) | Self::AtMost(bound) => bound,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::AtLeast(_) => "at least",
            Self::AtMost(_) => "at most",
        }
    }
}

impl ClaimFigure {
    /// A number beside the tests.
    fn beside(title: String, unit: &str, value: Interval, n: u64) -> Self {
        Self { title, unit: unit.to_owned(), value, n: Some(n), test: None }
    }

    /// The test in words: what was measured, and what is claimed.
    fn words(&self) -> String {
        let Self { title, unit, value, .. } = self;
        let space = if unit.is_empty() { "" } else { " " };
        match self.test {
            Some((bound, _)) => {
                let number = concise(bound.number());
                format!("{title}: {value}{space}{unit}, claimed {} {number}", bound.words())
            }
            None => format!("{title}: {value}{space}{unit}"),
        }
    }

    /// The effort that would decide an undecided test.
    fn takes(&self) -> Takes {
        Takes::of(self.value, self.test.map(|(bound, _)| bound.number()))
    }
}

impl PaperClaim {
    /// One that is not judged yet: nothing decides it.
    pub fn new(id: &str, claim: &str) -> Self {
        Self {
            id: id.to_owned(),
            claim: claim.to_owned(),
            holds: Holds::Undecided,
            because: String::new(),
            remark: None,
            figures: Vec::new(),
            untested: Vec::new(),
        }
    }

    /// With a test.
    pub fn test(mut self, test: ClaimTest<'_>) -> Self {
        let ClaimTest { title, unit, value, n, bound } = test;
        match value.filter(|value| value.value.is_finite()) {
            Some(value) => {
                let (title, unit) = (title.to_owned(), unit.to_owned());
                let test = Some((bound, bound.judge(value)));
                self.figures.push(ClaimFigure { title, unit, value, n, test });
                self
            }
            None => self.untested(&format!("{NO_DATA} ({title})")),
        }
    }

    /// With a part that is not tested here, why, and what it would take.
    pub fn untested(mut self, why: &str) -> Self {
        self.untested.push(why.to_owned());
        self
    }

    /// With how far values lie apart beside the tests: as spreads, and as the range that one stall
    /// makes.
    pub fn beside(mut self, name: &str, unit: &str, scatter: Option<&Scatter>) -> Self {
        let Some(scatter) = scatter else { return self };
        let parts = [
            ("5 to 95 %", scatter.middle()),
            ("99 % less the least", scatter.to_p99()),
            (
                "largest less the least, which one stall makes",
                Some(Interval::exact(scatter.range())),
            ),
        ];
        for (part, value) in parts {
            let title = format!("{name}: {part}");
            self.figures
                .extend(value.map(|value| ClaimFigure::beside(title, unit, value, scatter.n)));
        }
        self
    }

    /// With a number beside the tests.
    pub fn figure(mut self, title: &str, unit: &str, value: Option<Interval>, n: u64) -> Self {
        let figure = value.map(|value| ClaimFigure::beside(title.to_owned(), unit, value, n));
        self.figures.extend(figure);
        self
    }

    /// Judged: one clear failure is a no, all tests clear a yes, all else is open.
    pub fn judged(mut self) -> Self {
        let tests = || self.figures.iter().filter_map(|figure| Some((figure, figure.test?.1)));
        let words = |wanted: Holds| -> Vec<String> {
            let found = tests().filter(|(_, holds)| *holds == wanted);
            found.map(|(figure, _)| figure.words()).collect()
        };
        let failed = words(Holds::No);
        let open = || tests().filter(|(_, holds)| *holds == Holds::Undecided);
        let takes = open().map(|(figure, _)| figure.takes());
        let takes = takes.reduce(|a, b| if a < b { b } else { a }).map(Takes::words);
        let open: Vec<String> = words(Holds::Undecided).into_iter().chain(takes).collect();
        let (holds, because) = if !failed.is_empty() {
            (Holds::No, failed)
        } else if open.is_empty() && self.untested.is_empty() && tests().count() > 0 {
            (Holds::Yes, words(Holds::Yes))
        } else {
            let why: Vec<String> = self.untested.iter().cloned().chain(open).collect();
            (Holds::Undecided, if why.is_empty() { vec![NO_DATA.to_owned()] } else { why })
        };
        self.holds = holds;
        self.because = because.join("; ");
        self
    }

    /// With a sentence behind what decided it, and the same in a few words for a terminal.
    pub fn remark(self, sentence: &str, in_short: &str) -> Self {
        let because = format!("{}; {sentence}", self.because);
        Self { because, remark: Some(in_short.to_owned()), ..self }
    }

    /// Of tests that come out alike on each machine, why: what was measured could not refute it.
    /// Nothing where nothing was tested.
    pub fn by_construction(self, why: &str) -> Self {
        match self.holds {
            Holds::Undecided => self,
            _ => self.remark(why, "by construction"),
        }
    }

    /// Of loops and timers that had no real-time policy: what was measured is another thing than
    /// what the paper claims, whichever way it came out, and so of each of its figures.
    pub fn without_policy(mut self, policy: &str) -> Self {
        let mut is_tested = false;
        for (_, holds) in self.figures.iter_mut().filter_map(|figure| figure.test.as_mut()) {
            *holds = Holds::Undecided;
            is_tested = true;
        }
        if is_tested {
            let why =
                format!("the kernel refused {policy}, which stands in for the paper's priority");
            self.because = format!("{why}: run as root");
            self.holds = Holds::Undecided;
        }
        self
    }

    /// Of a loop that others may have kept from its CPU for this share of the time: where that is
    /// more than its tests leave out, a failure may be theirs, and leaves it open. What holds in
    /// spite of them holds.
    pub fn allowing_for_steal(self, stolen: f64) -> Self {
        if stolen <= LEFT_OUT {
            return self;
        }
        let percent = stolen * 100.0;
        let why = format!(
            "the host may have kept the loop from its CPU for {percent:.1} % of the time, more \
             than the 1 in 100 that is left out: it takes a quieter host"
        );
        self.failing_open(&why, &format!("its host may have had {percent:.1} % of the time"))
    }

    /// Of a test that can fail by something else than what the paper claims: a failure leaves it
    /// open, with why, and the same in a few words for a terminal. What holds holds.
    pub fn failing_open(mut self, why: &str, in_short: &str) -> Self {
        if self.holds != Holds::No {
            return self;
        }
        let tests = self.figures.iter_mut().filter_map(|figure| figure.test.as_mut());
        tests.filter(|(_, holds)| *holds == Holds::No).for_each(|test| test.1 = Holds::Undecided);
        let because = format!("{why}; {}", self.because);
        Self { holds: Holds::Undecided, because, remark: Some(in_short.to_owned()), ..self }
    }

    /// Of a run that ended early: that is the reason where no better one is known.
    pub fn ended_early(self) -> Self {
        Self { because: self.because.replace(NO_DATA, ENDED_EARLY), ..self }
    }
}

/// Values that lie evenly over so many from `from` on, in the order of chance; one of them a
/// stall, where that is wanted. For tests.
#[cfg(test)]
pub(crate) fn evenly(from: i64, over: i64, n: usize, stall: bool) -> Vec<i64> {
    let mut random = punctual_analysis::rng::Rng::new(11);
    let mut values: Vec<i64> =
        (0..n).map(|_| from + random.below(10_001) as i64 * over / 10_000).collect();
    if stall {
        values[n / 3] = 80_000_000;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(value: Interval, bound: ClaimedBound) -> ClaimTest<'static> {
        ClaimTest { title: "the gain", unit: "times", value: Some(value), n: Some(100), bound }
    }

    fn judged(tests: &[ClaimTest<'static>]) -> PaperClaim {
        let claim = PaperClaim::new("p.claim.gain", "It gains");
        tests.iter().fold(claim, |claim, test| claim.test(*test)).judged()
    }

    const CLEAR: Interval = Interval { value: 50.0, low: Some(45.0), high: Some(60.0) };
    const OPEN: Interval = Interval { value: 38.0, low: Some(30.0), high: Some(60.0) };
    const LESS: Interval = Interval { value: 3.0, low: Some(2.0), high: Some(4.0) };

    #[test]
    fn all_clear_is_a_yes_one_failure_a_no_and_the_rest_says_what_it_takes() {
        let bound = ClaimedBound::AtLeast(40.0);
        let yes = judged(&[test(CLEAR, bound), test(LESS, ClaimedBound::AtMost(4.0))]);
        assert_eq!(yes.holds, Holds::Yes);
        assert_eq!(
            yes.because,
            "the gain: 50.0 [45.0, 60.0] times, claimed at least 40; the gain: 3.00 [2.00, 4.00] \
             times, claimed at most 4"
        );
        let no = judged(&[test(OPEN, bound), test(LESS, bound)]);
        assert_eq!(no.holds, Holds::No);
        assert_eq!(no.because, "the gain: 3.00 [2.00, 4.00] times, claimed at least 40");
        let open = judged(&[test(CLEAR, bound), test(OPEN, bound)]);
        assert_eq!(open.holds, Holds::Undecided);
        assert_eq!(
            open.because,
            "the gain: 38.0 [30.0, 60.0] times, claimed at least 40; about 121 times as many \
             samples would tell"
        );
    }

    #[test]
    fn without_a_test_or_with_a_part_untested_nothing_holds_but_a_failure_stays_one() {
        let bound = ClaimedBound::AtLeast(40.0);
        assert_eq!(judged(&[]).holds, Holds::Undecided);
        let none = ClaimTest { value: None, ..test(CLEAR, bound) };
        let part = judged(&[test(CLEAR, bound), none]);
        assert_eq!((part.holds, part.figures.len()), (Holds::Undecided, 1));
        assert_eq!(part.because, "not measured: too few data for it (the gain)");
        assert!(part.ended_early().because.starts_with("not measured: the run ended early"));
        let claim = PaperClaim::new("p.claim.gain", "It gains").untested("it takes a cable");
        assert_eq!(claim.clone().judged().because, "it takes a cable");
        assert_eq!(claim.test(test(LESS, bound)).judged().holds, Holds::No);
    }

    #[test]
    fn without_its_policy_nothing_that_was_measured_decides() {
        let bound = ClaimedBound::AtLeast(40.0);
        for value in [CLEAR, LESS] {
            let without = judged(&[test(value, bound)]).without_policy("SCHED_FIFO 90");
            assert_eq!((without.holds, without.figures.len()), (Holds::Undecided, 1));
            assert!(without.figures[0].test.is_some_and(|(_, holds)| holds == Holds::Undecided));
            let why = "the kernel refused SCHED_FIFO 90, which stands in for the paper's priority: \
                       run as root";
            assert_eq!(without.because, why);
        }
        let untested = PaperClaim::new("p.claim.gain", "It gains").untested("it takes a cable");
        let without = untested.judged().without_policy("SCHED_FIFO 90");
        assert_eq!(without.because, "it takes a cable");
    }

    #[test]
    fn a_failure_that_the_host_may_have_made_is_open_and_says_so() {
        let failed = judged(&[test(LESS, ClaimedBound::AtLeast(40.0))]);
        assert_eq!(failed.clone().allowing_for_steal(0.009).holds, Holds::No);
        let open = failed.allowing_for_steal(0.023);
        assert_eq!(open.holds, Holds::Undecided);
        assert!(open.figures[0].test.is_some_and(|(_, holds)| holds == Holds::Undecided));
        assert_eq!(open.remark.as_deref(), Some("its host may have had 2.3 % of the time"));
        assert!(open.because.starts_with("the host may have kept the loop from its CPU for 2.3 %"));
        let held = judged(&[test(CLEAR, ClaimedBound::AtLeast(40.0))]);
        assert_eq!(held.clone().allowing_for_steal(0.5), held);
    }

    #[test]
    fn what_it_takes_depends_on_why_it_is_open() {
        let takes = |value, low, high| {
            let value = Interval { value, low, high };
            judged(&[test(value, ClaimedBound::AtLeast(40.0))]).because
        };
        assert!(takes(50.0, None, Some(60.0)).ends_with("a longer run would tell"));
        assert!(takes(40.0, Some(30.0), None).ends_with("a longer run would tell"));
        assert!(takes(40.01, Some(30.0), Some(60.0)).contains("takes a quieter machine"));
        assert!(takes(40.0, Some(30.0), Some(60.0)).contains("takes a quieter machine"));
    }

    #[test]
    fn several_open_tests_say_once_what_takes_most() {
        let bound = ClaimedBound::AtLeast(40.0);
        let near = Interval { value: 42.0, low: Some(39.0), high: Some(44.0) };
        let because = judged(&[test(near, bound), test(OPEN, bound), test(near, bound)]).because;
        assert_eq!(because.matches("would tell").count(), 1, "{because}");
        assert!(because.ends_with("about 121 times as many samples would tell"), "{because}");
        let few = Interval { low: None, ..near };
        let because = judged(&[test(OPEN, bound), test(few, bound)]).because;
        assert!(because.ends_with("a longer run would tell"), "{because}");
    }

    #[test]
    fn beside_a_scatter_stands_its_range_with_n_and_never_alone() {
        let scatter = Scatter::of_series((0..1_000).map(|at| at % 100));
        let claim = PaperClaim::new("p.claim.a", "A").beside("alone", "µs", scatter.as_ref());
        let titles: Vec<&str> = claim.figures.iter().map(|figure| &*figure.title).collect();
        assert_eq!(titles.len(), 3, "{titles:?}");
        assert!(titles[2].contains("one stall"), "{titles:?}");
        assert!(claim.figures.iter().all(|figure| figure.n == Some(1_000)));
        assert_eq!(claim.judged().holds, Holds::Undecided, "beside is no test");
    }
}
