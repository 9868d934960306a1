//! Answers of the runs for applications: loops of the measured period and of its neighbours, and
//! software stepping where requested.
//!
//! Picks the numbers and the words; the rules themselves are in `punctual_analysis`.

use punctual_analysis::claim::judge::StoppingRule;
use punctual_analysis::claim::seen_share;
use punctual_analysis::impact::step_generation::{DriveTimings, SteppingClass, step_generation};
use punctual_analysis::verdict::{Deadline, MeasuredRun, Requirement, Rung, Stands, ladder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::Findings;
use crate::run::Run;
use crate::{format, longer};

/// The fitness of a machine for one application, in the application's unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// "loop" (wakes without a period too), "software stepping".
    pub application: String,
    /// Its subject: "1 kHz", "base thread"; empty in results of before.
    #[serde(default)]
    pub subject: String,
    /// "yes", "no" or "unknown".
    pub answer: Answer,
    /// For "loop": the state of its evidence, such as shown or not measured; null in results of
    /// before.
    #[serde(default)]
    pub stands: Option<Stands>,
    /// The verdict as a sentence.
    pub statement: String,
    /// The words with which that begins and which answer: "not shown yet"; empty where it only says
    /// why there is no answer, and in results of before.
    #[serde(default)]
    pub lead: String,
    /// For "loop": its period; null for wakes without one.
    pub period_ns: Option<f64>,
    /// For "loop": the same as a rate; for steps: the highest rate that holds.
    pub rate_hz: Option<f64>,
    /// For "loop": the latest that a release may be, in ns.
    #[serde(default)]
    pub deadline_ns: Option<f64>,
    /// For "loop": the share of releases that may be later.
    #[serde(default)]
    pub p: Option<f64>,
    /// The command that would decide, where something is left to decide.
    #[serde(default)]
    pub command: Option<String>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It is good enough.
    Yes,
    /// It is not good enough.
    No,
    /// It was not measured, or this run is too short to decide.
    Unknown,
}

/// The question that data were recorded for, as it was put: kept with them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionSpec {
    /// The purpose of the loop, as `--for` names it; null for a loop as such.
    #[serde(default, rename = "for")]
    pub purpose: Option<String>,
    /// The latest that a release may be, in ns; null for what its purpose says, else a tenth of its
    /// period.
    #[serde(default)]
    pub deadline_ns: Option<i64>,
    /// The share of releases that may be later; null for what its purpose says, else 1e-3.
    #[serde(default)]
    pub miss: Option<f64>,
}

/// The question that runs are judged by, with the words of its answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Question<'a> {
    /// The deadline that a loop has to keep, and the share of releases that may be later.
    pub requirement: Requirement,
    /// True where only the measured periods are judged.
    pub measured_alone: bool,
    /// True where software stepping is judged.
    pub stepping: bool,
    /// Names of loops by their periods, in ns, the shortest first; of as many loops of other
    /// periods each has the name of its place.
    pub labels: &'a [(u64, &'a str)],
    /// The periods that were measured, each once, the shortest first, ns.
    pub periods_ns: &'a [u64],
    /// The purpose of the loop, in words.
    pub purpose: Option<&'a str>,
    /// The command that measures, and the options that say what for; `None` for recorded data.
    pub command: Option<(&'a str, &'a str)>,
    /// True where the run ended early.
    pub incomplete: bool,
    /// The findings of the rules about tuning; `None` for recorded data.
    pub findings: Option<&'a Findings>,
    /// The question as it was put; `None` where none was.
    pub spec: Option<&'a QuestionSpec>,
    /// The command that says what holds where the answer is no.
    pub refuted: Option<&'a str>,
}

impl Question<'_> {
    /// The name of a loop of this period, with the period; without a name its rate.
    pub(crate) fn subject(&self, period_ns: u64) -> String {
        let usual = || self.labels.iter().find(|(ns, _)| *ns == period_ns);
        let are_as_many = self.periods_ns.len() == self.labels.len();
        let place = self.periods_ns.iter().position(|&ns| ns == period_ns && are_as_many);
        match place.map_or_else(usual, |at| self.labels.get(at)) {
            Some((_, label)) => format!("{label}, {}", format::period(period_ns)),
            None => format::frequency(period_ns),
        }
    }

    /// The command that measures a loop of this period, where it takes one; `None` for recorded
    /// data.
    pub(crate) fn command_at(&self, period_ns: Option<u64>) -> Option<String> {
        let (command, options) = self.command?;
        Some(match period_ns.filter(|_| !self.measured_alone) {
            Some(period_ns) => format!(
                "{command} --period {}{options}{}",
                format::period_argument(period_ns),
                self::options(self.requirement)
            ),
            None => format!("{command}{options}"),
        })
    }
}

/// Fewer cycles than this show no worst case worth a yes: their maximum bounds no more than one
/// cycle in 330 (rule of three).
const CYCLES_MIN: u64 = 1_000;

impl Verdict {
    /// Its statement behind the words that answer.
    pub fn reason(&self) -> &str {
        let behind = self.statement.strip_prefix(&self.lead[..]).unwrap_or(&self.statement);
        behind.trim_start_matches([':', ',']).trim_start()
    }

    /// Its subject and its statement.
    pub(crate) fn sentence(&self) -> String {
        format!("{}: {}", self.subject, self.statement)
    }

    /// Tells whether what it is about was measured.
    pub fn is_measured(&self) -> bool {
        !matches!(self.stands, Some(Stands::Expected | Stands::Unmeasured))
    }

    /// Its answer in a word or two.
    pub fn word(&self) -> &'static str {
        match (self.stands, self.answer) {
            (Some(Stands::Open), _) => "not yet",
            (Some(Stands::IfAlone), _) => "yes, if alone",
            (Some(Stands::Expected), _) => "expected",
            (Some(Stands::Unmeasured), _) => "not measured",
            (_, Answer::Yes) => "yes",
            (_, Answer::No) => "no",
            (_, Answer::Unknown) => "unknown",
        }
    }
}

/// All verdicts; of runs without any lateness (instants alone) what their intervals say.
pub(crate) fn of(runs: &[Run], question: &Question<'_>) -> Vec<Verdict> {
    let judged: Vec<&Run> = runs.iter().filter(|run| run.outcome.lateness.count() > 0).collect();
    if judged.is_empty() {
        // Another program's intervals say at least what software can step with.
        let holds = |run: &&Run| run.outcome.imported.is_some();
        let intervals: Vec<&Run> = runs.iter().filter(holds).collect();
        let n = intervals.iter().map(|run| run.outcome.cycles).sum();
        return stepping(&intervals, n).into_iter().collect();
    }
    let mut measured = Vec::new();
    for run in &judged {
        measured.push(MeasuredRun { period_ns: run.setup.period_ns, tails: &run.outcome.tails });
    }
    let ended = if question.incomplete { StoppingRule::AtAnyTime } else { StoppingRule::AsPlanned };
    let rungs = ladder(&measured, &question.requirement, ended);
    // Data that do not say their period are about no rate, measured or not.
    let periodic = judged.iter().any(|run| run.setup.period_ns.is_some());
    let wanted = |rung: &&Rung| {
        let unknown = matches!(rung.stands, Stands::Expected | Stands::Unmeasured);
        !unknown || (periodic && !question.measured_alone)
    };
    let verdict = |rung: &Rung| of_rung(rung, &judged, question);
    let mut verdicts: Vec<Verdict> = rungs.iter().filter(wanted).map(verdict).collect();
    if question.stepping {
        // Steps are made by the thread of the shortest period, LinuxCNC's base thread.
        let shortest = judged.iter().filter_map(|run| run.setup.period_ns).min();
        let fastest: Vec<&Run> =
            judged.iter().filter(|run| run.setup.period_ns == shortest).copied().collect();
        let n = fastest.iter().map(|run| run.outcome.releases()).sum();
        verdicts.extend(stepping(&fastest, n));
    }
    if judged.iter().any(|run| run.load_deaths > 0) {
        // A yes is one of the machine at work, which it was not all the time.
        for verdict in verdicts.iter_mut().filter(|verdict| verdict.answer == Answer::Yes) {
            verdict.answer = Answer::Unknown;
            verdict.stands = verdict.stands.map(|_| Stands::Open);
            "not shown, as a load did not run all the time".clone_into(&mut verdict.lead);
            verdict.statement = format!("{}: {}", verdict.lead, verdict.statement);
        }
    }
    verdicts
}

/// The question to the loops, as a heading.
pub(crate) fn heading(question: &Question<'_>) -> String {
    let Requirement { deadline, p } = question.requirement;
    let by = match deadline {
        Deadline::Tenth => "by a tenth of its period".to_owned(),
        Deadline::TenthFrom(ns) => {
            format!("by {} or a tenth of a longer period", format::period(ns.unsigned_abs()))
        }
        Deadline::Ns(ns) => format!("by {}", format::period(ns.unsigned_abs())),
    };
    let purpose = question.purpose.unwrap_or("A loop");
    format!("{purpose} that may be late {by} once in {} releases (95 %)", format::rate(1.0 / p))
}

fn of_rung(rung: &Rung, runs: &[&Run], question: &Question<'_>) -> Verdict {
    let where_ = rung.run.map_or_else(String::new, |at| format!("{}, ", runs[at].name));
    // As the first line calls them: releases only where the missed ones are known.
    let are_releases = match rung.run {
        Some(at) => runs[at].outcome.missed.is_some(),
        None => runs
            .iter()
            .filter(|run| run.setup.period_ns == rung.period_ns)
            .all(|run| run.outcome.missed.is_some()),
    };
    let noun = if are_releases { "release" } else { "wake" };
    let counts = format!(
        "{where_}{} of {} {noun}{} later than {}",
        format::count_within((rung.exceedances_at_least, rung.exceedances)),
        format::count(rung.n),
        if rung.n == 1 { " was" } else { "s were" },
        format::period(rung.deadline_ns.unsigned_abs())
    );
    let base = question.command_at(rung.period_ns);
    let (answer, lead, rest, command) = match rung.stands {
        Stands::Shown => (Answer::Yes, "yes".to_owned(), format!(": {counts}"), None),
        Stands::IfAlone => {
            let lead = "yes if late releases come alone".to_owned();
            (Answer::Yes, lead, format!(": {counts}"), None)
        }
        Stands::Refuted => {
            let command = question.refuted.map(ToOwned::to_owned);
            (Answer::No, "no".to_owned(), format!(": {counts}"), command)
        }
        Stands::Open => {
            let (rest, length) = left_open(rung, runs);
            let command = base.zip(length).map(|(base, length)| format!("{base} -d {length}"));
            (Answer::Unknown, "not shown yet".to_owned(), format!(": {counts}{rest}"), command)
        }
        Stands::Expected => {
            let from = runs.iter().filter_map(|run| run.setup.period_ns).max();
            let from = from.map_or_else(|| "these data".to_owned(), format::frequency);
            (Answer::Unknown, format!("expected from {from}"), ", not measured".to_owned(), base)
        }
        Stands::Unmeasured => (Answer::Unknown, "not measured".to_owned(), String::new(), base),
    };
    Verdict {
        application: "loop".to_owned(),
        subject: rung.period_ns.map_or_else(|| "wakes".to_owned(), |ns| question.subject(ns)),
        answer,
        stands: Some(rung.stands),
        statement: format!("{lead}{rest}"),
        lead,
        period_ns: rung.period_ns.map(|ns| ns as f64),
        rate_hz: rung.period_ns.map(|ns| 1e9 / ns as f64),
        deadline_ns: Some(rung.deadline_ns as f64),
        p: Some(question.requirement.p),
        command,
    }
}

/// The least time to measure where too many releases were late, in ns.
const REFUTE_NS: f64 = 60e9;
/// Fewer late releases tell little of their share.
const FEW: u64 = 10;

/// What is open: the words behind the counts, and the length of a measurement that would decide it,
/// as an argument, where its time is known.
fn left_open(rung: &Rung, runs: &[&Run]) -> (String, Option<String>) {
    let every = || runs.iter().copied();
    let of_period = runs.iter().filter(|run| run.setup.period_ns == rung.period_ns);
    let several = of_period.count() > 1;
    let ns = match (runs.first(), rung.longer, rung.share_too_large) {
        (Some(first), Some(times), _) => longer::longer_ns(first, every(), times),
        // More cycles would refute it, but how many depends on how they come.
        (Some(first), None, Some(_)) => match longer::whole_ns(first, every()) {
            whole_ns if whole_ns > 0.0 => REFUTE_NS.max(4.0 * whole_ns),
            _ => 0.0,
        },
        _ => 0.0,
    };
    // Data without a period do not tell how long their cycles take.
    let known = |ns: f64| Some((longer::words(ns), format::argument(ns)?));
    let (long, length) = Some(ns).filter(|ns| *ns > 0.0).and_then(known).unzip();
    let cycles = || {
        let each = if several { " in each run" } else { "" };
        rung.n_needed.map(|needed| longer::words_of_cycles(needed) + each)
    };
    let long = long.or_else(cycles).unwrap_or_else(|| longer::words(0.0));
    let sure = match rung.share_too_large {
        None => String::new(),
        Some(_) if rung.exceedances < FEW => ", too few cycles to be sure".to_owned(),
        Some(share) => {
            // The counts are those of all runs where none is named.
            let of_run = if several && rung.run.is_none() { " in one run" } else { "" };
            let share = seen_share(share);
            format!(
                "; the share seen{of_run} is {share} already, so a longer run is more likely to \
                 refute it than to show it"
            )
        }
    };
    (format!("{sure}; {long}"), length)
}

/// The options that ask for this, where it is not what is asked without any.
fn options(requirement: Requirement) -> String {
    let deadline = match requirement.deadline {
        Deadline::Tenth | Deadline::TenthFrom(_) => String::new(),
        Deadline::Ns(ns) => format!(" --deadline {}", format::period_argument(ns.unsigned_abs())),
    };
    let usual = requirement.p.total_cmp(&Requirement::default().p).is_eq();
    deadline + &if usual { String::new() } else { format!(" --miss {:e}", requirement.p) }
}

/// LinuxCNC's rule, with the slow timings that nearly every drive takes.
fn stepping(runs: &[&Run], n: u64) -> Option<Verdict> {
    let deviation = |run: &&Run| run.outcome.jitters.interval_max_abs_ns;
    let worst = runs.iter().filter_map(deviation).max_by(f64::total_cmp)?;
    let result = step_generation(worst.ceil() as u64, DriveTimings::default());
    let lost: u64 = runs.iter().map(|run| run.outcome.unrecorded).sum();
    let supported = matches!(result.class, SteppingClass::Good | SteppingClass::Fair);
    // An interval was seen, so that none is no count: the data do not have it.
    let cycles = match n {
        0 => "an unknown number of".to_owned(),
        n => format::count(n),
    };
    let seen =
        format!("intervals are off by up to {} in {cycles} cycles", format::ns(Some(worst)),);
    let (answer, lead, rest) = match supported {
        true if lost > 0 => (
            Answer::Unknown,
            "",
            format!(
                "{} cycles were not recorded, so their intervals are unknown",
                format::count(lost)
            ),
        ),
        true if n == 0 => (
            Answer::Unknown,
            "not shown yet",
            format!(
                ": {seen}; at least {} are needed to trust the worst of them",
                format::count(CYCLES_MIN)
            ),
        ),
        true if n < CYCLES_MIN => (
            Answer::Unknown,
            "not shown yet",
            format!(
                ": {cycles} cycles are too few to trust the worst of them; at least {} are \
                 needed",
                format::count(CYCLES_MIN)
            ),
        ),
        true => (
            Answer::Yes,
            "yes",
            format!(
                ": base thread of {} or longer, up to {} steps/s ({seen})",
                format::ns(Some(result.base_period_ns as f64)),
                format::rate(result.max_step_rate_hz)
            ),
        ),
        false => (Answer::No, "no", format!(": {seen}; {}", result.class.advice())),
    };
    Some(Verdict {
        application: "software stepping".to_owned(),
        subject: "software stepping".to_owned(),
        answer,
        stands: None,
        statement: format!("{lead}{rest}"),
        lead: lead.to_owned(),
        period_ns: Some(result.base_period_ns as f64),
        rate_hz: Some(result.max_step_rate_hz),
        deadline_ns: None,
        p: None,
        command: None,
    })
}

#[cfg(test)]
mod tests {
    use punctual_analysis::recording::{Recording, RecordingConfig};

    use super::*;
    use crate::run::Setup;

    #[test]
    fn an_unknown_number_of_cycles_is_not_too_few() {
        let mut outcome = Recording::new(RecordingConfig::default()).finish(0);
        outcome.jitters.interval_max_abs_ns = Some(5_000.0);
        let run = Run::recorded("base".to_owned(), Setup::default(), outcome);
        let statement = |n| stepping(&[&run], n).expect("an interval").statement;
        assert_eq!(
            statement(0).replace('\u{a0}', " "),
            "not shown yet: intervals are off by up to 5.00 µs in an unknown number of cycles; at \
             least 1 000 are needed to trust the worst of them"
        );
        assert!(statement(900).contains("900 cycles are too few"), "{}", statement(900));
        assert!(statement(2_000).starts_with("yes: "), "{}", statement(2_000));
    }
}
