//! Runs that were judged: their verdicts, and the first lines of a result: each measured period in
//! counts, its worst release, what is asked of it, and why it came out so.
//!
//! Plain data with its words, the same in text, JSON and the page.

use std::collections::BTreeSet;

use punctual_analysis::verdict::{Deadline, Stands};
use punctual_host::CpuList;
use punctual_host::rules::KnobVerdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;
use crate::advice::{self, Advice, Findings};
use crate::format;
use crate::run::{LoadRow, Run};
use crate::verdict::{self, Question, QuestionSpec, Verdict};

/// Runs, and verdicts for applications.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    /// One for each loop and condition.
    pub runs: Vec<Run>,
    /// Verdicts: which applications it is good enough for.
    pub verdicts: Vec<Verdict>,
    /// The first lines: what was measured, in counts; null in results of before, and where the runs
    /// are not judged.
    #[serde(default)]
    pub headline: Option<Headline>,
}

/// The first lines of a result.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// One for each measured period.
    pub loops: Vec<LoopLine>,
    /// Threads that ran where no load did, in a sentence a CPU: with any, a condition called idle
    /// was not. Behind it a sentence on those that the loop does not preempt, where any ran: the
    /// latest releases may be their doing.
    #[serde(default)]
    pub not_idle: Vec<String>,
    /// The question that the verdicts about loops answer, as a heading; null where no loop was
    /// measured.
    pub question: Option<String>,
    /// The question as it was put, by the options; null where none was.
    #[serde(default)]
    pub question_spec: Option<QuestionSpec>,
    /// Causes of lateness that were seen, and what to do next: from facts of the machine and of the
    /// run.
    pub advice: Vec<Advice>,
    /// Settings of the measured CPU that could be better, the most urgent first.
    #[serde(default)]
    pub settings: Vec<KnobVerdict>,
}

/// A measured period in two sentences.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LoopLine {
    /// "1 kHz on CPU 1: 36 of 59 300 releases missed, 97 in all over 100 µs late."
    pub counts: String,
    /// "Worst 5.0 ms, under fork."; "Worst 5.0 ms, under fork: host took the CPU.", where its cause
    /// was recorded.
    pub worst: Option<String>,
}

/// Judges runs: their verdicts and first lines. `rows` are the loads of those under load.
pub fn judged(
    runs: Vec<Run>,
    rows: &[LoadRow],
    envelope: &Envelope,
    question: &Question<'_>,
) -> Judged {
    let mut runs = runs;
    let apart = runs.split_off(of_first_wait(&runs).len());
    let mut periods: Vec<Option<u64>> = Vec::new();
    let own = runs.iter().filter(|run| run.outcome.lateness.count() > 0);
    for run in own.clone() {
        if !periods.contains(&run.setup.period_ns) {
            periods.push(run.setup.period_ns);
        }
    }
    periods.sort_unstable();
    let periods_ns: Vec<u64> = periods.iter().copied().flatten().collect();
    let question = &Question { periods_ns: &periods_ns, ..*question };
    let verdicts = verdict::of(&runs, question);
    let line = |period: &Option<u64>| {
        let runs: Vec<&Run> = own.clone().filter(|run| run.setup.period_ns == *period).collect();
        let rows: Vec<&LoadRow> = rows.iter().filter(|row| row.period_ns == *period).collect();
        LoopLine { counts: counts(&runs, *period, question), worst: worst(&runs, &rows) }
    };
    let loops: Vec<LoopLine> = periods.iter().map(line).collect();
    let is_good = |stands: Option<Stands>| matches!(stands, Some(Stands::Shown | Stands::IfAlone));
    let measured = |stands: Option<Stands>| {
        matches!(stands, Some(Stands::Shown | Stands::IfAlone | Stands::Refuted | Stands::Open))
    };
    let failing = verdicts.iter().any(|v| measured(v.stands) && !is_good(v.stands));
    let headline = Headline {
        not_idle: not_idle(&runs),
        question: (!loops.is_empty()).then(|| verdict::heading(question)),
        question_spec: question.spec.cloned(),
        loops,
        advice: match &envelope.machine {
            Some(facts) if failing => {
                advice::of(facts, envelope.session.as_ref(), (&runs, rows), question)
            }
            // What made the latest late stands there all the same.
            _ => advice::causes(&runs, rows, question),
        },
        settings: question.findings.map_or_else(Vec::new, Findings::open),
    };
    runs.extend(apart);
    Judged { runs, verdicts, headline: Some(headline) }
}

/// The runs that wait like the first one; those behind them are shown too, and not judged with
/// them.
pub fn of_first_wait(runs: &[Run]) -> &[Run] {
    let first = runs.first().and_then(|run| run.setup.wait.as_ref());
    let same = runs.iter().take_while(|run| run.setup.wait.as_ref() == first);
    &runs[..same.count()]
}

/// Sentences on the threads that ran on each CPU that was to be idle, one a CPU, and on those that
/// a loop does not preempt; loops of one CPU saw the same.
fn not_idle(runs: &[Run]) -> Vec<String> {
    let mut cpus: Vec<u32> = runs.iter().filter_map(|run| run.setup.cpu).collect();
    let mut known = BTreeSet::new();
    cpus.retain(|cpu| known.insert(*cpu));
    let of_cpu = |cpu: u32| {
        let on_cpu = || runs.iter().filter(move |run| run.setup.cpu == Some(cpu));
        let used = on_cpu().find_map(|run| run.others.as_ref()?.not_idle(cpu));
        let delayed = on_cpu().find_map(|run| run.others.as_ref()?.may_have_delayed(&run.setup));
        used.into_iter().chain(delayed)
    };
    cpus.into_iter().flat_map(of_cpu).collect()
}

impl Headline {
    /// The heading of its advice: why, only where a cause was seen.
    pub fn advice_heading(&self) -> &'static str {
        match self.advice.iter().any(|advice| advice.topic == "cause") {
            true => "Why, and what next",
            false => "What could help, and what next",
        }
    }
}

/// The sentence of a loop's counts: releases measured, missed, and late beyond the deadline.
fn counts(runs: &[&Run], period: Option<u64>, question: &Question<'_>) -> String {
    let n: u64 = runs.iter().map(|run| run.outcome.releases()).sum();
    let cpus: CpuList = runs.iter().filter_map(|run| run.setup.cpu).collect();
    let on = match cpus.len() {
        0 => String::new(),
        1 => format!(" on CPU {cpus}"),
        _ => format!(" on CPUs {cpus}"),
    };
    // Without a real-time policy it is another machine, as it were: the answer itself says so.
    let is_ordinary = runs.iter().any(|run| run.setup.policy.as_deref() == Some("SCHED_OTHER"));
    let policy = if is_ordinary { " as SCHED_OTHER, not real-time" } else { "" };
    let deadline_ns = match (period, question.requirement.deadline) {
        (None, Deadline::Tenth | Deadline::TenthFrom(_)) => None,
        (period, _) => Some(question.requirement.deadline_ns(period.unwrap_or(0))),
    };
    let late = |ns: i64| -> (u64, u64) {
        let within = runs.iter().map(|run| run.outcome.tails.exceedances_within(ns));
        within.fold((0, 0), |(least, most), (more, at_most)| (least + more, most + at_most))
    };
    let subject = period.map_or_else(|| "Wakes".to_owned(), |ns| question.subject(ns));
    let missed: Option<u64> = runs.iter().map(|run| run.outcome.missed).sum();
    let n_shown = format::count(n);
    let releases = if n == 1 { "release" } else { "releases" };
    let over = |ns: i64| format::period(ns.unsigned_abs());
    let text = match (missed, deadline_ns) {
        (Some(0), Some(ns)) if late(ns).1 == 0 => {
            format!("none of {n_shown} {releases} missed or over {} late", over(ns))
        }
        (Some(0), Some(ns)) => {
            let late = format::count_within(late(ns));
            format!("none of {n_shown} {releases} missed, {late} over {} late", over(ns))
        }
        // What the answer counts. Of the missed all are late, or, where the deadline is the period
        // or more, those alone that are later than it: then the two counts overlap.
        (Some(missed), Some(ns)) if period.is_some_and(|period| ns.unsigned_abs() >= period) => {
            let most = late(ns).1;
            format!(
                "{} of {n_shown} {releases} missed (not run), {} over {} late{}",
                format::count(missed),
                format::count_within(late(ns)),
                over(ns),
                if most == 0 { String::new() } else { overlap(runs, missed, ns) }
            )
        }
        (Some(missed), Some(ns)) => {
            format!(
                "{} of {n_shown} {releases} missed, {} in all over {} late",
                format::count(missed),
                format::count_within(late(ns)),
                over(ns)
            )
        }
        (None, Some(ns)) => {
            format!("{} of {n_shown} wakes over {} late", format::count_within(late(ns)), over(ns))
        }
        (_, None) => format!("{n_shown} measured"),
    };
    format!("{subject}{on}{policy}: {text}.")
}

/// The missed ones of the releases over `ns` late, and the releases that are missed or late, each
/// counted once.
fn overlap(runs: &[&Run], missed: u64, ns: i64) -> String {
    let both = runs.iter().map(|run| run.outcome.tails.missed_exceedances(ns));
    let late = runs.iter().map(|run| run.outcome.tails.exceedances(ns));
    match (both.sum::<Option<u64>>(), late.sum::<Option<u64>>()) {
        (Some(both), Some(late)) => {
            let in_all = missed.saturating_add(late).saturating_sub(both);
            format!(" ({} of these missed): {} in all", format::count(both), format::count(in_all))
        }
        _ => " (missed ones included)".to_owned(),
    }
}

/// The worst of all, and what ran meanwhile.
fn worst(runs: &[&Run], rows: &[&LoadRow]) -> Option<String> {
    let by = |a: &Option<f64>, b: &Option<f64>| a.unwrap_or(0.0).total_cmp(&b.unwrap_or(0.0));
    let own = |run: &&&Run| run.outcome.lateness_ns.max;
    let run = runs.iter().max_by(|a, b| by(&own(a), &own(b)))?;
    let largest = run.outcome.lateness_ns.max?;
    // Any of those that are not known may have been the worst of all.
    let unknown = runs.iter().map(|run| run.outcome.unknown()).fold(0, u64::saturating_add);
    let most = format::largest(Some(largest), unknown);
    let row = rows.iter().find(|row| row.lateness_ns.max == Some(largest));
    let loaded = runs.iter().any(|run| !run.setup.load.is_empty());
    let known = runs.iter().all(|run| run.setup.wait.is_some());
    let when = match row {
        Some(row) if !run.setup.load.is_empty() => format!(", under {}", row.load),
        _ if runs.len() > 1 => match (run.setup.cpu, runs[0].setup.cpu) {
            (Some(cpu), first) if runs.iter().any(|run| run.setup.cpu != first) => {
                // A run without a condition of its own may have its name by its CPU.
                let by_cpu = format!("CPU {cpu}");
                match run.condition() {
                    condition if condition == by_cpu => format!(", on {by_cpu}"),
                    condition => format!(", {condition} on {by_cpu}"),
                }
            }
            _ => format!(", {}", run.condition()),
        },
        _ if !loaded && known => "; measured without load".to_owned(),
        _ => String::new(),
    };
    let cause = run.worst_cause().map_or_else(String::new, |cause| format!(": {cause}"));
    Some(match when.starts_with(';') {
        true => format!("Worst {most}{cause}{when}."),
        false => format!("Worst {most}{when}{cause}."),
    })
}

#[cfg(test)]
mod tests {
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_core::sample::Sample;
    use punctual_core::time::Span;

    use super::*;
    use crate::Program;
    use crate::run::Setup;

    #[test]
    fn too_many_late_in_too_few_cycles_are_to_be_measured_longer() {
        let period = punctual_core::time::Period::from_ns(1_000_000);
        let mut recording = Recording::new(RecordingConfig { period, ..Default::default() });
        for cycle in 0..3_000 {
            let late = (1_000..1_020).contains(&cycle);
            let lateness = Span::from_us(if late { 500 } else { 5 });
            recording.push(&Sample { cycle, lateness, ..Sample::default() });
        }
        let setup = Setup { cpu: Some(1), period_ns: Some(1_000_000), ..Setup::default() };
        let run = Run::recorded("idle".to_owned(), setup, recording.finish(0));
        let question = Question { command: Some(("punctual check", "")), ..Question::default() };
        let judged = judged(vec![run], &[], &Envelope::of(Program::default(), "check"), &question);
        let own = judged.verdicts.iter().find(|verdict| verdict.period_ns == Some(1_000_000.0));
        let own = own.expect("of the period");
        assert_eq!(own.stands, Some(Stands::Open), "{}", own.statement);
        let share_seen = "; the share seen is 6.67e-3 already, so a longer run is more likely to \
                          refute it than to show it; measure 60 s";
        assert!(own.statement.ends_with(share_seen), "{own:?}");
        assert_eq!(own.lead, "not shown yet");
        assert_eq!(format!("{}: {}", own.lead, own.reason()), own.statement);
        let expected = judged.verdicts.iter().filter(|verdict| !verdict.is_measured());
        for verdict in expected {
            assert!(verdict.statement.starts_with(&verdict.lead), "{verdict:?}");
        }
        let command = own.command.as_deref();
        assert!(command.is_some_and(|command| command.ends_with(" -d 60s")), "{own:?}");
    }

    #[test]
    fn without_a_period_an_open_answer_has_the_number_of_cycles_and_no_time() {
        let own = |period_ns: Option<u64>, files: usize| {
            let run = |at: usize| {
                let period = period_ns.and_then(punctual_core::time::Period::from_ns);
                let mut recording =
                    Recording::new(RecordingConfig { period, ..Default::default() });
                for cycle in 0..50 {
                    let lateness = Span::from_us(8);
                    recording.push(&Sample { cycle, lateness, ..Sample::default() });
                }
                let setup = Setup { period_ns, ..Setup::default() };
                Run::recorded(format!("file {at}"), setup, recording.finish(0))
            };
            let deadline = Deadline::Ns(50_000);
            let requirement = punctual_analysis::verdict::Requirement { deadline, p: 1e-3 };
            let command = Some(("punctual check", ""));
            let question = Question { requirement, command, ..Question::default() };
            let envelope = Envelope::of(Program::default(), "check");
            let judged = judged((0..files).map(run).collect(), &[], &envelope, &question);
            let own = judged.verdicts.into_iter().find(Verdict::is_measured).expect("measured");
            (own.statement.replace('\u{a0}', " "), own.command)
        };
        let (statement, command) = own(None, 1);
        let counts = "not shown yet: none of 50 releases were later than 50 µs";
        assert_eq!(statement, format!("{counts}; measure at least 2 996 cycles"));
        assert_eq!(command, None);
        let (statement, _) = own(None, 2);
        assert!(statement.ends_with(" cycles in each run"), "{statement}");
        // With a period the time is known.
        let (statement, command) = own(Some(1_000_000), 1);
        assert!(statement.ends_with(" s") && !statement.contains("cycles"), "{statement}");
        assert!(command.is_some_and(|command| command.contains(" -d ")), "{statement}");
    }

    #[test]
    fn loops_of_all_periods_are_told_in_the_same_words_and_count_what_their_answers_count() {
        // Every tenth release is late, and those that pass meanwhile are missed: by 25 µs some of
        // them are less late than may be, by 1 ms none.
        let run = |period_ns: u64, late_us: i64| {
            let period = punctual_core::time::Period::from_ns(period_ns);
            let thresholds_ns = vec![50_000, 100_000];
            let config = RecordingConfig { period, thresholds_ns, ..Default::default() };
            let mut recording = Recording::new(config);
            let (mut cycle, mut missed) = (0, 0);
            while cycle < 20_000 {
                let is_late = cycle % 10 == 0;
                let lateness = Span::from_us(if is_late { late_us } else { 5 });
                recording.push(&Sample { cycle, lateness, ..Sample::default() });
                let passed = lateness.as_ns().unsigned_abs() / period_ns;
                missed += passed;
                cycle += 1 + passed;
            }
            let setup = Setup { cpu: Some(1), period_ns: Some(period_ns), ..Setup::default() };
            Run::recorded("idle".to_owned(), setup, recording.finish_with(missed, 0))
        };
        let labels = &[(25_000, "base thread"), (1_000_000, "servo thread")];
        let requirement = punctual_analysis::verdict::Requirement {
            deadline: Deadline::TenthFrom(50_000),
            p: 1e-4,
        };
        let question =
            Question { requirement, labels, measured_alone: true, ..Question::default() };
        let envelope = Envelope::of(Program::default(), "check");
        let runs = vec![run(25_000, 120), run(1_000_000, 1_200)];
        let judged = judged(runs, &[], &envelope, &question);
        let lines = judged.headline.expect("measured").loops;
        let is_number = |c: char| c.is_ascii_digit() || c == '\u{a0}';
        for (line, subject) in lines.iter().zip(["base", "servo"]) {
            let period_ns = if subject == "base" { 25_000 } else { 1_000_000 };
            let named = format!("{subject} thread, {}", format::period(period_ns));
            let counts = line.counts.strip_prefix(&named).unwrap_or_else(|| panic!("{line:?}"));
            let parts: Vec<&str> =
                counts.split(is_number).filter(|part| !part.is_empty()).collect();
            let words = match subject {
                "base" => [" releases missed (not run), ", " over "],
                _ => [" releases missed, ", " in all over "],
            };
            assert_eq!(parts[..3], [" on CPU ", ": ", " of "], "{}", line.counts);
            assert_eq!(parts[3..5], words, "{}", line.counts);
            let counted = line.counts.split(words[0]).nth(1).and_then(|n| n.split(' ').next());
            let counted = format!("{} of ", counted.expect("a count"));
            let period = if subject == "base" { 25e3 } else { 1e6 };
            let own = judged.verdicts.iter().find(|verdict| verdict.period_ns == Some(period));
            let statement = &own.expect("its answer").statement;
            assert!(statement.contains(&counted), "{}: {statement}", line.counts);
        }
        assert_eq!(lines.len(), 2);
        // As many loops of other periods have the names of their places, others their rates.
        let named = |periods: &[u64]| -> Vec<String> {
            let runs = periods.iter().map(|&period_ns| run(period_ns, 120)).collect();
            let headline = super::judged(runs, &[], &envelope, &question).headline;
            let loops = headline.expect("measured").loops;
            let name = |line: &LoopLine| line.counts.split(" on ").next().map(str::to_owned);
            loops.iter().filter_map(name).collect()
        };
        let own = [("base", 50_000), ("servo", 2_000_000)];
        let own = own.map(|(name, ns)| format!("{name} thread, {}", format::period(ns)));
        assert_eq!(named(&[2_000_000, 50_000]), own);
        assert_eq!(named(&[50_000]), [format::frequency(50_000)]);
    }

    #[test]
    fn missed_and_late_releases_of_a_deadline_beyond_the_period_are_related_and_summed() {
        // Of 120 µs each: one runs, four are missed, of which those 95 and 70 µs late are late.
        let period = punctual_core::time::Period::from_ns(25_000);
        let outcome = |unrecorded: u64| {
            let thresholds_ns = vec![25_000, 50_000];
            let config = RecordingConfig { period, thresholds_ns, ..Default::default() };
            let mut recording = Recording::new(config);
            for cycle in (0..1_500).step_by(5) {
                let lateness = Span::from_us(120);
                recording.push(&Sample { cycle, lateness, ..Sample::default() });
            }
            recording.push(&Sample { cycle: 1_500, ..Sample::default() });
            recording.finish_with(1_200, unrecorded)
        };
        let counts_at = |outcome, deadline| {
            let setup = Setup { period_ns: Some(25_000), ..Setup::default() };
            let run = Run::recorded("idle".to_owned(), setup, outcome);
            let requirement = punctual_analysis::verdict::Requirement { deadline, p: 1e-4 };
            let question = Question { requirement, ..Question::default() };
            let envelope = Envelope::of(Program::default(), "check");
            let headline = judged(vec![run], &[], &envelope, &question).headline;
            headline.expect("measured").loops[0].counts.replace('\u{a0}', " ")
        };
        let counts = |outcome| counts_at(outcome, Deadline::TenthFrom(50_000));
        let related = "1 200 of 1 501 releases missed (not run), 900 over 50 µs late (600 of these \
                       missed): 1 500 in all.";
        let whole = counts(outcome(0));
        assert!(whole.ends_with(related), "{whole}");
        // As late as the period and no later is not late at a deadline of one.
        let related = "1 200 of 1 501 releases missed (not run), 1 200 over 25 µs late (900 of \
                       these missed): 1 500 in all.";
        let whole = counts_at(outcome(0), Deadline::Ns(25_000));
        assert!(whole.ends_with(related), "{whole}");
        // Where cycles went unrecorded it is not known which are late, nor where all were counted
        // together.
        let stored = outcome(0).read_back(&[50_000]).expect("counts of a run");
        for counted in [counts(outcome(7)), counts(stored)] {
            assert!(counted.ends_with(" late (missed ones included)."), "{counted}");
        }
    }

    #[test]
    fn a_run_that_waits_otherwise_is_shown_and_not_judged() {
        let run = |name: &str, wait: &str, late_us| {
            let period = punctual_core::time::Period::from_ns(1_000_000);
            let mut recording = Recording::new(RecordingConfig { period, ..Default::default() });
            for cycle in 0..5_000 {
                let lateness = Span::from_us(late_us);
                recording.push(&Sample { cycle, lateness, ..Sample::default() });
            }
            let setup = Setup {
                cpu: Some(1),
                period_ns: Some(1_000_000),
                wait: Some(wait.to_owned()),
                ..Setup::default()
            };
            Run::recorded(name.to_owned(), setup, recording.finish(0))
        };
        let runs = || vec![run("idle", "sleep", 5), run("library loop, idle", "adaptive", 500)];
        assert_eq!(of_first_wait(&runs()).len(), 1);
        assert!(of_first_wait(&[]).is_empty());
        let judged =
            judged(runs(), &[], &Envelope::of(Program::default(), "check"), &Question::default());
        assert_eq!(judged.runs.len(), 2, "both are shown");
        let line = &judged.headline.expect("measured").loops[0];
        assert!(line.counts.contains("none of 5\u{a0}000 releases"), "{}", line.counts);
        let own = judged.verdicts.iter().find(|verdict| verdict.period_ns == Some(1_000_000.0));
        assert_ne!(own.expect("of the period").stands, Some(Stands::Refuted));
    }

    #[test]
    fn one_release_is_counted_as_one() {
        let period = punctual_core::time::Period::from_ns(1_000_000);
        for (late_us, counts, answer) in [
            (
                5,
                ": none of 1 release missed or over 100 µs late.",
                "none of 1 release was later than",
            ),
            (500, ": none of 1 release missed, 1 over 100 µs late.", "1 of 1 release was later"),
        ] {
            let mut recording = Recording::new(RecordingConfig { period, ..Default::default() });
            recording.push(&Sample { lateness: Span::from_us(late_us), ..Sample::default() });
            let setup = Setup { cpu: Some(1), period_ns: Some(1_000_000), ..Setup::default() };
            let runs = vec![Run::recorded("idle".to_owned(), setup, recording.finish(0))];
            let envelope = Envelope::of(Program::default(), "check");
            let judged = judged(runs, &[], &envelope, &Question::default());
            let line = &judged.headline.expect("measured").loops[0];
            assert!(line.counts.replace('\u{a0}', " ").ends_with(counts), "{}", line.counts);
            let mut own = judged.verdicts.iter();
            let own = own.find(|verdict| verdict.period_ns == Some(1_000_000.0));
            let statement = own.expect("of the period").statement.replace('\u{a0}', " ");
            assert!(statement.contains(answer), "{statement}");
        }
    }

    #[test]
    fn the_worst_of_loops_on_several_cpus_has_its_cpu() {
        let period = punctual_core::time::Period::from_ns(1_000_000);
        let run = |cpu: u32, late_us| {
            let mut recording = Recording::new(RecordingConfig { period, ..Default::default() });
            for cycle in 0..3_000 {
                let lateness = Span::from_us(late_us);
                recording.push(&Sample { cycle, lateness, ..Sample::default() });
            }
            let setup = Setup { cpu: Some(cpu), period_ns: Some(1_000_000), ..Setup::default() };
            Run::recorded(format!("CPU {cpu}, 1 ms"), setup, recording.finish(0)).under("idle")
        };
        let worst = |runs: Vec<Run>| {
            let envelope = Envelope::of(Program::default(), "measure periodic");
            let headline = judged(runs, &[], &envelope, &Question::default()).headline;
            headline.expect("measured").loops[0].worst.clone().expect("known")
        };
        assert_eq!(worst(vec![run(0, 5), run(1, 9)]), "Worst 9.00 µs, idle on CPU 1.");
        assert_eq!(worst(vec![run(1, 5), run(1, 9)]), "Worst 9.00 µs, idle.");
        // Where the kernel's events show why, that is behind it.
        let mut blamed = run(1, 9);
        blamed.outcome.worst[0].cause = Some("host took the CPU".to_owned());
        let why = "Worst 9.00 µs, idle on CPU 1: host took the CPU.";
        assert_eq!(worst(vec![run(0, 5), blamed.clone()]), why);
        blamed.setup.wait = Some("sleep".to_owned());
        let alone = "Worst 9.00 µs: host took the CPU; measured without load.";
        assert_eq!(worst(vec![blamed]), alone);
        let by_cpu = |cpu: u32, late_us| Run {
            condition: None,
            name: format!("CPU {cpu}"),
            ..run(cpu, late_us)
        };
        assert_eq!(worst(vec![by_cpu(0, 5), by_cpu(5, 9)]), "Worst 9.00 µs, on CPU 5.");
        // Those between are not measured.
        let counts = |runs: Vec<Run>| {
            let envelope = Envelope::of(Program::default(), "measure periodic");
            let headline = judged(runs, &[], &envelope, &Question::default()).headline;
            headline.expect("measured").loops[0].counts.clone()
        };
        let two = counts(vec![run(0, 5), run(5, 9), run(0, 5)]);
        assert!(two.contains(" on CPUs 0,5: "), "{two}");
    }
}
