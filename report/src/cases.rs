//! The judgements of a report as the test cases of a build: one for each limit, claim, answer and
//! comparison, and one for the measurement itself.
//!
//! For JUnit files. Pure; says nothing that the report does not, and fails where its exit status
//! does.

use punctual_analysis::compare;
use punctual_analysis::compare::RunComparison;
use punctual_analysis::recording::RunFigures;
use punctual_analysis::verdict::Stands;
use punctual_core::time::Span;

use crate::compared::run_words;
use crate::format;
use crate::grid::FigureGrid;
use crate::judge::{About, JudgedClaim, JudgedLimit, Overall, Reason, UndecidedAs};
use crate::run::Run;
use crate::verdict::{Answer, Verdict};
use crate::{Body, Comparison, EndedBy, Report, StopOver};

/// A test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedCase {
    /// Subject of the case: "idle: p99.9<50us". The same in each run of the same command.
    pub name: String,
    /// Identifier of its figure for programs, where it is one of a paper: "nist.fig3.second".
    pub id: Option<String>,
    /// The kind of judgement.
    pub kind: CaseKind,
    /// The finding, with its sentence where it does not hold.
    pub finding: CaseFinding,
    /// Time measured for it.
    pub took: Span,
}

/// The kind of judgement that a test case is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseKind {
    /// A `--limit` on a run.
    Limit,
    /// A `--claim` on a run.
    Claim,
    /// An answer to the question of the loops, which may count for nothing.
    Answer(Answer),
    /// A run, or a figure, held against that of a reference.
    Comparison,
    /// The demand that no release is later than `--stop-over` allows.
    StopOver,
    /// The demand that the measurement comes to its end.
    Measurement,
}

impl CaseKind {
    /// It in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Claim => "claim",
            Self::Answer(_) => "answer",
            Self::Comparison => "comparison",
            Self::StopOver => "stop-over",
            Self::Measurement => "measurement",
        }
    }
}

/// The finding of a test case, with its sentence where it does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseFinding {
    /// It holds.
    Holds,
    /// It fails, and the exit status is 1.
    Fails(String),
    /// It could not be decided, and the exit status is 3, or that of an interruption.
    Undecided(String),
    /// It does not hold, or is not decided, and was not to count.
    DoesNotCount(String),
}

impl CaseFinding {
    /// The words that [`Self::word`] gives.
    pub const WORDS: [&str; 4] = ["holds", "fails", "undecided", "does-not-count"];

    /// It in a word.
    pub fn word(&self) -> &'static str {
        let [holds, fails, undecided, does_not_count] = Self::WORDS;
        match self {
            Self::Holds => holds,
            Self::Fails(_) => fails,
            Self::Undecided(_) => undecided,
            Self::DoesNotCount(_) => does_not_count,
        }
    }
}

/// The test cases of a report.
pub fn cases(report: &Report) -> Vec<JudgedCase> {
    let maker = CaseMaker { report, verdict: &report.envelope.verdict, body: &report.body };
    let verdict = maker.verdict;
    let mut cases: Vec<JudgedCase> = Vec::new();
    cases.extend(verdict.limits.iter().enumerate().map(|(at, limit)| maker.limit(at, limit)));
    cases.extend(verdict.claims.iter().enumerate().map(|(at, claim)| maker.claim(at, claim)));
    let answers = report.body.verdicts().iter().enumerate();
    let measured = answers.filter(|(_, verdict)| verdict.is_measured());
    cases.extend(measured.map(|(at, answer)| maker.answer(at, answer)));
    cases.extend(maker.deadline_of_waits());
    cases.extend(report.body.compare().iter().flat_map(|comparison| maker.compared(comparison)));
    let loops = report.body.loops();
    cases
        .extend(loops.and_then(|loops| loops.stop_over.as_ref()).map(|stop| maker.stop_over(stop)));
    if let Some(measurement) = maker.measurement() {
        cases.push(measurement);
    }
    cases
}

/// Time that a report measured: the sum over conditions in turn, of loops at once the longest.
pub fn measured(report: &Report) -> Span {
    let mut conditions: Vec<(&str, u64)> = Vec::new();
    for run in report.body.runs() {
        let name = run.condition.as_deref().unwrap_or(&run.name);
        let length_ns = length_ns(run, report.envelope.incomplete);
        match conditions.iter_mut().find(|(other, _)| *other == name) {
            Some((_, longest_ns)) => *longest_ns = length_ns.max(*longest_ns),
            None => conditions.push((name, length_ns)),
        }
    }
    span(conditions.iter().map(|(_, ns)| ns).fold(0, |sum, ns| sum.saturating_add(*ns)))
}

/// Length of a run, in ns: as planned where it ran to its end, else the time of its releases, as
/// planned at most.
fn length_ns(run: &Run, incomplete: bool) -> u64 {
    let planned_ns = run.setup.duration_ns.unwrap_or(0);
    let Some(period_ns) = run.setup.period_ns.filter(|_| incomplete) else { return planned_ns };
    let RunFigures { cycles, missed, unrecorded, .. } = run.outcome;
    let releases = cycles.saturating_add(missed.unwrap_or(0)).saturating_add(unrecorded);
    planned_ns.min(releases.saturating_mul(period_ns))
}

fn span(ns: u64) -> Span {
    Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// The report whose cases are made, and the parts of it that they need.
struct CaseMaker<'a> {
    report: &'a Report,
    verdict: &'a Overall,
    body: &'a Body,
}

impl CaseMaker<'_> {
    /// A case about this, with its sentence, which the verdict has where it counts; `holds` where
    /// it does not have it.
    fn found(&self, about: About, sentence: String, holds: bool) -> CaseFinding {
        if self.verdict.fails_by(about) {
            return CaseFinding::Fails(sentence);
        }
        if self.verdict.is_open(about) {
            return match self.verdict.counts_undecided_as() {
                UndecidedAs::Held => CaseFinding::DoesNotCount(sentence),
                UndecidedAs::Itself | UndecidedAs::Failed => CaseFinding::Undecided(sentence),
            };
        }
        if holds { CaseFinding::Holds } else { CaseFinding::DoesNotCount(sentence) }
    }

    /// Length of the run of this name; 0 for a name that no run has.
    fn length(&self, run: &str) -> Span {
        let run = self.body.runs().iter().find(|other| other.name == run);
        span(run.map_or(0, |run| length_ns(run, self.report.envelope.incomplete)))
    }

    fn limit(&self, at: usize, limit: &JudgedLimit) -> JudgedCase {
        JudgedCase {
            name: format!("{}: {}", limit.run, limit.judgement.text),
            id: None,
            kind: CaseKind::Limit,
            finding: self.found(About::Limit { at }, limit.failure(), limit.judgement.ok),
            took: self.length(&limit.run),
        }
    }

    fn claim(&self, at: usize, claim: &JudgedClaim) -> JudgedCase {
        JudgedCase {
            name: format!("{}: {}", claim.run, claim.judged.statement),
            id: None,
            kind: CaseKind::Claim,
            finding: self.found(About::Claim { at }, claim.failure(), true),
            took: self.length(&claim.run),
        }
    }

    fn answer(&self, at: usize, answer: &Verdict) -> JudgedCase {
        let is_yes = answer.answer == Answer::Yes;
        JudgedCase {
            name: answer.subject.clone(),
            id: None,
            kind: CaseKind::Answer(answer.answer),
            finding: self.found(About::Answer { at }, answer.sentence(), is_yes),
            took: measured(self.report),
        }
    }

    /// The answer to the deadline that ways to wait have to hold; `None` without a deadline.
    fn deadline_of_waits(&self) -> Option<JudgedCase> {
        let Body::Wait(waits) = self.body else { return None };
        let held = waits.strategies.iter().find_map(|row| row.held.as_ref())?;
        let sentence = waits.advice().unwrap_or_default();
        let is_held = waits.recommendation.is_some();
        let mut stands = waits.strategies.iter().filter_map(|row| Some(row.held.as_ref()?.stands));
        let answer = match is_held {
            true => Answer::Yes,
            false if stands.all(|stands| stands == Stands::Refuted) => Answer::No,
            false => Answer::Unknown,
        };
        Some(JudgedCase {
            name: format!("deadline of {}", format::period(held.deadline_ns.unsigned_abs())),
            id: None,
            kind: CaseKind::Answer(answer),
            finding: self.found(About::Answer { at: 0 }, sentence, is_held),
            took: measured(self.report),
        })
    }

    fn compared(&self, comparison: &Comparison) -> Vec<JudgedCase> {
        let grid = comparison.grid.iter().flat_map(|grid| self.grid(comparison, grid));
        let baseline = comparison.baseline();
        let pairs = comparison.pairs.iter().enumerate();
        let runs = pairs.flat_map(|(number, pair)| {
            pair.runs.iter().enumerate().map(move |(at, run)| JudgedCase {
                name: format!("{} against {}: {}", pair.b, pair.a, run.name),
                id: None,
                kind: CaseKind::Comparison,
                finding: self.run_compared(About::Run { pair: number, at }, baseline, run),
                took: self.length(&run.name),
            })
        });
        grid.chain(runs).collect()
    }

    fn run_compared(
        &self,
        about: About,
        baseline: Option<&str>,
        run: &RunComparison,
    ) -> CaseFinding {
        let sentence = run_words(run);
        let is_worse = matches!(run.verdict, compare::Verdict::Worse | compare::Verdict::Mixed);
        // Of a baseline the verdict has its name before it; of 'compare' one sentence for all.
        let known = match baseline {
            Some(name) => against_words(name, &sentence),
            None => sentence.clone(),
        };
        if is_worse && baseline.is_none() {
            return self.as_all_that_is_worse(sentence);
        }
        self.found(about, known, !is_worse && !run.is_open())
    }

    /// Worse than a reference, where all that is worse is one reason.
    fn as_all_that_is_worse(&self, sentence: String) -> CaseFinding {
        match self.verdict.fails_by(About::Worse) {
            true => CaseFinding::Fails(sentence),
            false => CaseFinding::DoesNotCount(sentence),
        }
    }

    fn grid(&self, comparison: &Comparison, grid: &FigureGrid) -> Vec<JudgedCase> {
        let (Some(first), others) = (comparison.sides.first(), comparison.sides.iter().skip(1))
        else {
            return Vec::new();
        };
        let others: Vec<_> = others.enumerate().collect();
        let mut cases = Vec::new();
        for row in &grid.rows {
            for (side, other) in &others {
                let owner = grid.owner_words(row);
                let name =
                    format!("{} against {}: {owner}: {}", other.label, first.label, row.figure);
                let id = grid.is_of_papers().then(|| row.name.clone());
                let sentence = || format!("{name}: {}", row.word(*side));
                let finding = match row.verdict(*side) {
                    compare::Verdict::Worse => self.as_all_that_is_worse(sentence()),
                    _ => CaseFinding::Holds,
                };
                let (kind, took) = (CaseKind::Comparison, Span::ZERO);
                cases.push(JudgedCase { name, id, kind, finding, took });
            }
        }
        cases
    }

    fn stop_over(&self, stop: &StopOver) -> JudgedCase {
        JudgedCase {
            name: stop.demand(),
            id: None,
            kind: CaseKind::StopOver,
            finding: match stop.sentence() {
                None => CaseFinding::Holds,
                Some(sentence) => self.found(About::StopOver, sentence, true),
            },
            took: measured(self.report),
        }
    }

    /// That it came to its end, and all reasons for a failure that are no other case's; `None`
    /// where nothing was measured or read.
    fn measurement(&self) -> Option<JudgedCase> {
        let envelope = &self.report.envelope;
        let is_its_own = |reason: &Reason<'_>| {
            matches!(
                reason.about,
                About::EndedEarly | About::Unmeasured | About::Uncompared | About::Other
            )
        };
        let rest: Vec<&str> =
            self.verdict.reasons().filter(is_its_own).map(|reason| reason.text).collect();
        let unmeasured = self.verdict.open().find(|reason| reason.about == About::Unmeasured);
        if matches!(self.body, Body::Compare(_)) && rest.is_empty() {
            return None;
        }
        let is_read = matches!(self.body, Body::Recorded(_) | Body::Soak(_));
        let ended = || EndedBy::words(envelope.ended_by);
        let finding = match (rest.is_empty(), envelope.incomplete) {
            (false, _) => CaseFinding::Fails(rest.join("; ")),
            (true, false) => match unmeasured {
                Some(Reason { text, about }) => self.found(about, text.to_owned(), false),
                None => CaseFinding::Holds,
            },
            // What limits could not be held against has no other case.
            (true, true) if self.verdict.is_open(About::EndedEarly) => {
                self.found(About::EndedEarly, ended(), false)
            }
            (true, true) if is_read && !envelope.is_interrupted() => {
                CaseFinding::DoesNotCount(ended())
            }
            // Whoever else ended it has its own case.
            (true, true) if envelope.ended_by == Some(EndedBy::Late) => {
                CaseFinding::DoesNotCount(ended())
            }
            (true, true) => CaseFinding::Undecided(ended()),
        };
        let name = if is_read { "the data are whole" } else { "the measurement came to its end" };
        let (name, kind) = (name.to_owned(), CaseKind::Measurement);
        Some(JudgedCase { name, id: None, kind, finding, took: measured(self.report) })
    }
}

/// The limits of a comparison of one run with one: a warning where something is worse.
pub const ONE_AGAINST_ONE: &str = "one run compared with one: a drift of the machine or a reboot \
                                   can look the same; 'punctual compare --a A1,A2,A3 --b \
                                   B1,B2,B3' with runs measured in turn separates them";

/// The words about a run, headed by the baseline that it is held against.
pub fn against_words(baseline: &str, words: &str) -> String {
    format!("against {baseline}: {words}")
}

#[cfg(test)]
mod tests {
    use punctual_analysis::claim::ask::Ask;
    use punctual_analysis::limit::MetricLimit;
    use punctual_core::time::{Instant, Period};

    use super::*;
    use crate::headline::Judged;
    use crate::run::Setup;
    use crate::verdict::Question;
    use crate::{Envelope, Program, headline, judge};

    /// A run of 3 ms of these latenesses, in µs.
    fn run(name: &str, late_us: &[i64]) -> Run {
        use punctual_analysis::recording::{Recording, RecordingConfig, ReleaseInstants};
        use punctual_core::sample::{Flags, Sample};
        let claims = [Ask::parse("p(lateness>50us)<1e-1").expect("a claim")];
        let mut recording = Recording::new(RecordingConfig {
            period: Period::from_ns(1_000_000),
            epoch: Instant::from_ns(0),
            leave_out_cold: false,
            thresholds_ns: vec![50_000, 100_000],
            releases: ReleaseInstants::Known,
        })
        .watching(&claims);
        let sample = |(cycle, &us): (u64, &i64)| Sample {
            cycle,
            lateness: Span::from_ns(us * 1_000),
            flags: Flags::NONE,
        };
        let samples: Vec<Sample> = (0..).zip(late_us).map(sample).collect();
        recording.extend(&samples);
        let setup =
            Setup { period_ns: Some(1_000_000), duration_ns: Some(3_000_000), ..Setup::default() };
        Run::recorded(name.to_owned(), setup, recording.finish_with(0, 0))
    }

    /// The report of such runs, judged by these.
    fn report(
        runs: Vec<Run>,
        (limits, claims): (&[&str], &[&str]),
        gate: bool,
        undecided: UndecidedAs,
    ) -> Report {
        let limits: Vec<MetricLimit> =
            limits.iter().map(|text| text.parse().expect("a limit")).collect();
        let claims: Vec<Ask> = claims.iter().map(|text| Ask::parse(text).expect("one")).collect();
        let mut envelope = Envelope::of(Program::default(), "analyse");
        envelope.verdict = judge(&runs, &limits, false, undecided);
        envelope.verdict.judge_claims(&runs, (&claims, false), false);
        let judged: Judged = headline::judged(runs, &[], &envelope, &Question::default());
        if gate {
            envelope.verdict.judge_answers(&judged.verdicts);
        }
        Report { envelope, body: judged.into() }
    }

    fn findings(report: &Report, kind: CaseKind) -> Vec<(String, CaseFinding)> {
        let cases = cases(report).into_iter().filter(|case| case.kind == kind);
        cases.map(|case| (case.name, case.finding)).collect()
    }

    #[test]
    fn a_limit_on_each_run_is_a_case_and_fails_with_its_sentence() {
        let runs = vec![run("idle", &[10, 20, 30]), run("under load", &[10, 70, 30])];
        let report = report(runs, (&["max<50us"], &[]), false, UndecidedAs::Itself);
        let limits = findings(&report, CaseKind::Limit);
        assert_eq!(limits[0], ("idle: max<50us".to_owned(), CaseFinding::Holds));
        let (name, CaseFinding::Fails(sentence)) = &limits[1] else { panic!("{limits:?}") };
        assert_eq!(name, "under load: max<50us");
        let reasons: Vec<_> = report.envelope.verdict.reasons().collect();
        assert_eq!(reasons, [Reason { text: sentence, about: About::Limit { at: 1 } }]);
        assert_eq!(
            findings(&report, CaseKind::Measurement),
            [("the data are whole".to_owned(), CaseFinding::Holds)]
        );
        assert_eq!(measured(&report), Span::from_ns(6_000_000));
    }

    #[test]
    fn a_result_without_cycles_is_open_and_so_is_its_case() {
        let judged = |late_us: &[i64], undecided| {
            let runs = vec![run("idle", late_us), run("under load", &[])];
            let mut report = report(runs, (&[], &[]), false, undecided);
            let mut verdict = std::mem::take(&mut report.envelope.verdict);
            verdict.judge_measured(report.body.runs());
            report.envelope.verdict = verdict;
            let found = findings(&report, CaseKind::Measurement).remove(0).1;
            (report.envelope.verdict.ok, report.envelope.verdict.is_undecided(), found)
        };
        let words = "nothing was measured: no run has a cycle that counts".to_owned();
        let open = (false, true, CaseFinding::Undecided(words.clone()));
        assert_eq!(judged(&[], UndecidedAs::Itself), open);
        let failed = (false, false, CaseFinding::Fails(words.clone()));
        assert_eq!(judged(&[], UndecidedAs::Failed), failed);
        let held = (true, false, CaseFinding::DoesNotCount(words));
        assert_eq!(judged(&[], UndecidedAs::Held), held);
        assert_eq!(judged(&[10], UndecidedAs::Itself), (true, false, CaseFinding::Holds));
    }

    #[test]
    fn what_is_undecided_is_what_it_counts_as() {
        let found = |undecided| {
            let runs = vec![run("idle", &[10, 20, 30])];
            let claims = (&[][..], &["p(lateness>50us)<1e-1"][..]);
            let report = report(runs, claims, false, undecided);
            let mut found = findings(&report, CaseKind::Claim);
            assert_eq!(found.len(), 1, "{found:?}");
            (found.remove(0).1, report.envelope.verdict.ok)
        };
        assert!(matches!(found(UndecidedAs::Itself), (CaseFinding::Undecided(_), false)));
        assert!(matches!(found(UndecidedAs::Failed), (CaseFinding::Fails(_), false)));
        assert!(matches!(found(UndecidedAs::Held), (CaseFinding::DoesNotCount(_), true)));
    }

    #[test]
    fn an_answer_fails_where_it_is_a_gate_and_counts_for_nothing_elsewhere() {
        let late = [900; 40];
        for (gate, is_failure) in [(true, true), (false, false)] {
            let report = report(vec![run("idle", &late)], (&[], &[]), gate, UndecidedAs::Itself);
            let answers = findings(&report, CaseKind::Answer(Answer::No));
            let (name, finding) = answers.first().expect("the measured period has an answer");
            assert!(name.contains("1\u{a0}kHz"), "{name}");
            assert_eq!(matches!(finding, CaseFinding::Fails(_)), is_failure, "{finding:?}");
            assert_eq!(matches!(finding, CaseFinding::DoesNotCount(_)), !is_failure);
            assert_eq!(report.envelope.verdict.ok, !is_failure);
        }
    }

    #[test]
    fn every_reason_for_a_failure_is_in_a_case() {
        let mut report =
            report(vec![run("idle", &[10, 20])], (&["max<50us"], &[]), false, UndecidedAs::Itself);
        report.envelope.verdict.fail("the watchdog ended the run".to_owned());
        let measurement = findings(&report, CaseKind::Measurement);
        let failed = CaseFinding::Fails("the watchdog ended the run".to_owned());
        assert_eq!(measurement[0].1, failed);
        // Cut off, and nothing fails for it.
        let mut report =
            self::report(vec![run("idle", &[1])], (&[], &[]), false, UndecidedAs::Held);
        report.envelope.end_early(EndedBy::File);
        let measurement = &findings(&report, CaseKind::Measurement)[0].1;
        assert!(matches!(measurement, CaseFinding::DoesNotCount(_)), "{measurement:?}");
        report.envelope.ended_by = Some(EndedBy::Interrupt);
        let measurement = &findings(&report, CaseKind::Measurement)[0].1;
        assert!(matches!(measurement, CaseFinding::Undecided(_)), "{measurement:?}");
    }

    #[test]
    fn what_an_early_end_leaves_open_is_no_failure_and_what_it_shows_broken_is() {
        let limits: Vec<MetricLimit> =
            ["max<50us", "max<15us"].map(|text| text.parse().expect("a limit")).into();
        let ended = |undecided| {
            let mut envelope = Envelope::of(Program::default(), "check");
            envelope.end_early(EndedBy::Interrupt);
            let runs = vec![run("idle", &[10, 20])];
            envelope.verdict = judge(&runs, &limits[..1], true, undecided);
            let verdict = envelope.verdict.clone();
            let judged: Judged = headline::judged(runs, &[], &envelope, &Question::default());
            (verdict, Report { envelope, body: judged.into() })
        };
        let (verdict, report) = ended(UndecidedAs::Itself);
        assert!(verdict.is_undecided() && verdict.limits[0].judgement.open, "{verdict:?}");
        let words = "max is 20.0 µs, below 50.0 µs, but the run ended early";
        assert_eq!(verdict.limits[0].judgement.reason, words);
        let failures: Vec<String> = verdict.failures().collect();
        assert_eq!(failures.len(), 2, "{failures:?}");
        assert!(failures.iter().all(|why| why.starts_with("OPEN ")), "{failures:?}");
        for kind in [CaseKind::Limit, CaseKind::Measurement] {
            let found = &findings(&report, kind)[0].1;
            assert!(matches!(found, CaseFinding::Undecided(_)), "{found:?}");
        }
        // Two releases of the three that were planned.
        assert_eq!(measured(&report), Span::from_ns(2_000_000));
        assert!(cases(&report).iter().all(|case| case.took == Span::from_ns(2_000_000)));
        assert!(ended(UndecidedAs::Held).0.ok);
        let broken = judge(&[run("idle", &[10, 20])], &limits[1..], true, UndecidedAs::Itself);
        assert!(!broken.is_undecided() && !broken.limits[0].judgement.open, "{broken:?}");
    }

    #[test]
    fn a_case_is_known_by_its_place_and_not_by_its_words() {
        // The same limit twice, and a reason of another kind with the very words of one that holds.
        let runs = vec![run("idle", &[10, 70])];
        let mut report =
            report(runs, (&["max<50us", "max<50us", "max<1s"], &[]), false, UndecidedAs::Itself);
        let holds = report.envelope.verdict.limits[2].failure();
        report.envelope.verdict.fail(holds.clone());
        let limits = findings(&report, CaseKind::Limit);
        assert!(limits[..2].iter().all(|(_, found)| matches!(found, CaseFinding::Fails(_))));
        assert_eq!(limits[2].1, CaseFinding::Holds);
        assert_eq!(findings(&report, CaseKind::Measurement)[0].1, CaseFinding::Fails(holds));
        // It comes back from a file as it was; in one of before nothing is known of them.
        let stored = serde_json::to_string(&report.envelope.verdict).expect("plain data");
        let read: Overall = serde_json::from_str(&stored).expect("the same");
        assert!(read.reasons().eq(report.envelope.verdict.reasons()));
        let before: Overall =
            serde_json::from_str("{\"ok\":false,\"limits\":[],\"reasons\":[\"a\"]}")
                .expect("before");
        assert_eq!(
            before.reasons().collect::<Vec<_>>(),
            [Reason { text: "a", about: About::Other }]
        );
    }
}
