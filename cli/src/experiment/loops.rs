//! Loops that are measured and become runs of a report: what `check`, `measure periodic` and
//! `measure wait` share.
//!
//! The experiment itself is `punctual_lab::periodic`; here are its sample file, its names and its
//! words.

use std::error;
use std::io;

use anyhow::{Error, Result, anyhow, bail};
use punctual_engine::drain::SampleFile;
use punctual_engine::file_facts::{ExperimentFacts, FileFacts, RunFacts};
use punctual_host::facts::MachineFacts;
use punctual_import::samples::RUNS_MAX;
use punctual_lab::experiment::{
    ConditionChanges, ExperimentEnd, ExperimentError, FinishedExperiment, RunSoFar, Standings,
};
use punctual_lab::periodic::{
    self, Begun, Destination, EvaluationConfig, PeriodicExperiment, PeriodicPlan, Prepared,
    Recordings, Stream,
};
use punctual_os::scheduler::SchedPolicy;

use super::Machine;
use super::follow::FollowedClock;
use super::learned::LearnedStore;
use super::runs::{Maker, UNDER_LOAD, length_ns, recorded, run_name};
use super::{envelope, run, words};
use crate::args::{LearnArgs, ReportArgs};
use crate::comparison::RecordedRun;
use crate::output::{GrowingFile, Opened};
use crate::progress::Line;
use crate::report::{
    self, Choice, EndedBy, Envelope, Follow, Judged, LoadRow, LoopsBody, PlannedRun, Question, Run,
};

/// Loops to be measured.
pub(crate) struct LoopExperiment<'a> {
    /// The subcommand's name.
    pub(crate) name: &'static str,
    /// What to run.
    pub(crate) plan: PeriodicPlan,
    /// Whether all conditions but the first count as one, "under load".
    pub(crate) merge: bool,
    /// Where it is measured.
    pub(crate) machine: &'a Machine,
    /// The measured CPUs and why those.
    pub(crate) choice: Choice,
    /// What to hold every run to, what it is to show, whether cold cycles count.
    pub(crate) args: &'a ReportArgs,
    /// Whether waits begin with what earlier runs learned.
    pub(crate) learn: LearnArgs,
    /// What its claims take.
    pub(crate) plans: Vec<PlannedRun>,
    /// Where the samples go, opened.
    pub(crate) samples: Option<Opened>,
    /// The clock whose time the grids lie on, where it is not CLOCK_MONOTONIC.
    pub(crate) follow: Option<FollowedClock>,
    /// Who changes the machine for each condition, where somebody does.
    pub(crate) changes: Option<&'a mut dyn ConditionChanges>,
    /// What is asked of the runs; `None` where they are not judged.
    pub(crate) question: Option<Question<'a>>,
    /// What a reader should know, already.
    pub(crate) notes: Vec<String>,
}

/// Loops that were measured.
pub(crate) struct MeasuredLoops {
    /// What every result has.
    pub(crate) envelope: Envelope,
    /// The runs, and what is known of them.
    pub(crate) loops: LoopsBody,
    /// A row for each condition of those that count as one.
    pub(crate) rows: Vec<LoadRow>,
    /// The runs as comparisons see them, recorded on the way.
    pub(crate) recorded: Vec<RecordedRun>,
    /// What went wrong on the way and left the result worth having: a sample file that ends early,
    /// a load that did not start again.
    pub(crate) trouble: Option<Error>,
}

impl LoopExperiment<'_> {
    /// Measures them to their end, or to Ctrl-C.
    ///
    /// # Errors
    /// Why nothing was measured.
    pub(crate) fn run(self) -> Result<MeasuredLoops> {
        let Self {
            name,
            plan,
            merge,
            machine,
            choice,
            args,
            learn,
            plans,
            samples,
            follow,
            changes,
            question,
            mut notes,
        } = self;
        let started = jiff::Timestamp::now();
        notes.extend(follow.as_ref().and_then(FollowedClock::warning));
        let followed =
            follow.as_ref().map(|target| Follow::of(&target.name, target.read.as_deref()));
        let clock = follow.as_ref().map(|target| target.name.clone());
        let mut watch = watch(args, merge);
        for requirement in question.iter().map(|question| question.requirement) {
            let deadline_ns = |stream: &Stream| requirement.deadline_ns(stream.period.as_ns());
            watch.thresholds_ns.extend(plan.streams.iter().map(deadline_ns));
        }
        let mut destination = Samples::new(samples, watch, &machine.facts, clock.clone(), started);
        let store = LearnedStore::of(&plan, &machine.here, learn.relearn);
        let experiment = PeriodicExperiment {
            plan,
            known: store.known(),
            follow: follow.map(FollowedClock::into_reference),
            recording_cost: true,
            changes: changes.map(|changes| changes as &mut dyn ConditionChanges),
            destination: &mut destination,
        };
        let finished = run(experiment, &machine.here, &mut Line::of(args.quiet));
        let mut finished = finished.map_err(|why| match (why, &clock) {
            (ExperimentError::Follow(why), Some(clock)) => super::follow::refused(clock, &why),
            (why, _) => words::error(why),
        })?;
        let trouble = trouble(&mut finished, &destination);
        let empty = finished.outcome.runs.iter().all(|run| run.cycles + run.missed == 0);
        if empty && let Some(why) = trouble {
            return Err(why);
        }
        store.keep(&finished.outcome.plan, &finished.outcome.runs);
        let failed = trouble.is_some();
        let ended = destination.finish(failed);
        let trouble = trouble.or(ended.err());
        let mut envelope = envelope(name, machine, choice, started, &finished);
        envelope.warnings.splice(0..0, notes);
        let mut measured = made(envelope, finished, followed, plans, (args, merge, question));
        // After the limits were judged: the figures are those of the whole run.
        if let Some(why) = &trouble {
            measured.envelope.end_early(EndedBy::File);
            measured.envelope.warnings.push(format!("{why:#}"));
        }
        Ok(MeasuredLoops { trouble, ..measured })
    }
}

/// What the recordings of a run are to look for.
pub(crate) fn watch(args: &ReportArgs, merge: bool) -> EvaluationConfig {
    EvaluationConfig {
        merge,
        keep_cold: args.keep_cold,
        thresholds_ns: report::thresholds(&args.limits, &args.claims),
        claims: args.claims.clone(),
    }
}

/// What went wrong on the way.
fn trouble<S>(
    finished: &mut FinishedExperiment<periodic::PeriodicOutcome<S>>,
    samples: &Samples<'_>,
) -> Option<Error> {
    match (&finished.end, finished.outcome.file_error.take()) {
        (ExperimentEnd::Load(why), _) => Some(anyhow!("{why}")),
        (_, Some(why)) => samples.cut_off(&why),
        _ => None,
    }
}

/// The result, verdicts and limits included.
fn made(
    mut envelope: Envelope,
    finished: FinishedExperiment<periodic::PeriodicOutcome<Recordings>>,
    followed: Option<Follow>,
    plans: Vec<PlannedRun>,
    (args, merge, question): (&ReportArgs, bool, Option<Question<'_>>),
) -> MeasuredLoops {
    let FinishedExperiment { outcome, loads, clock, .. } = finished;
    let (mut sink, measured) = outcome.without_sink();
    let series = std::mem::take(&mut sink.series);
    let cold = if args.keep_cold { 0 } else { measured.plan.cold };
    let interrupted = envelope.is_interrupted();
    let all_cold = |run: &periodic::RunOutcome| run.cycles > 0 && run.cycles <= u64::from(cold);
    if !interrupted && measured.runs.iter().any(all_cold) {
        envelope.warnings.push(
            "a run was so short that all its cycles were cold and left out: use a longer \
             --duration or --keep-cold"
                .to_owned(),
        );
    }
    let follow = followed.map(|follow| match &measured.followed {
        Some(ended) => follow.ended(ended),
        None => follow,
    });
    envelope.warnings.extend(follow.iter().flat_map(Follow::warnings));
    let follows = follow.as_ref().map(|follow| follow.clock.as_str());
    let maker = Maker { outcome: &measured, follows, loads: &loads, floor_ns: clock.cost.now_ns };
    let (runs, rows) = maker.runs(sink);
    let recorded = recorded(&measured.plan, merge, args.keep_cold, &measured.runs, series, &runs);
    envelope.warnings.extend(unmeasured(&runs, interrupted));
    let judged = if merge { report::of_first_wait(&runs) } else { &runs };
    envelope.verdict = report::judge(judged, &args.limits, envelope.incomplete);
    envelope.verdict.judge_claims(judged, (&args.claims, args.strict), envelope.incomplete);
    let judged = match question {
        Some(question) => {
            let question = Question { incomplete: envelope.incomplete, ..question };
            report::judged(runs, &rows, &envelope, &question)
        }
        None => Judged { runs, ..Judged::default() },
    };
    let recording = measured
        .recording
        .map(|cost| report::Recording { hot_ns: cost.hot_ns, cold_ns: cost.cold_ns });
    let loops = LoopsBody { judged, follow, recording, plans };
    MeasuredLoops { envelope, loops, rows, recorded, trouble: None }
}

/// Runs without a cycle that counts: no lateness is no good one. After an interruption there is
/// nothing else to say of them.
fn unmeasured(runs: &[Run], interrupted: bool) -> Vec<String> {
    let empty = runs.iter().filter(|run| run.outcome.lateness.count() == 0 && !interrupted);
    let warnings = empty.map(|run| {
        let why = "its blocks were over before the loop ran";
        format!("\"{}\" has no cycles: {why}; use a longer --duration", run.name)
    });
    warnings.collect()
}

/// The destination of samples.
struct Samples<'a> {
    file: Option<Opened>,
    watch: EvaluationConfig,
    machine: &'a MachineFacts,
    follows: Option<String>,
    started: jiff::Timestamp,
    /// The figures so far, once it has begun, and how many conditions there are.
    standings: Option<(Standings, usize)>,
}

impl<'a> Samples<'a> {
    /// Samples into `file`, of loops that follow the clock `follows`.
    fn new(
        file: Option<Opened>,
        watch: EvaluationConfig,
        machine: &'a MachineFacts,
        follows: Option<String>,
        started: jiff::Timestamp,
    ) -> Self {
        Self { file, watch, machine, follows, started, standings: None }
    }

    /// What an error of the sample file leaves of it.
    fn cut_off(&self, why: &io::Error) -> Option<Error> {
        self.file.as_ref().map(|file| file.cut_off(why))
    }

    /// Ends the sample file; the work `failed` where that is reported elsewhere.
    fn finish(&self, failed: bool) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.finish(failed))
    }

    /// The sample file, with what it says of itself, where there is to be one.
    fn begin_file(
        &self,
        prepared: &Prepared,
        granted: &[SchedPolicy],
    ) -> Result<Option<SampleFile<GrowingFile>>> {
        let Some(opened) = &self.file else { return Ok(None) };
        let runs = prepared.plan().runs();
        if runs > RUNS_MAX {
            bail!("{runs} runs: a sample file has at most {RUNS_MAX}; use fewer CPUs or loads");
        }
        let info = self.describe(prepared, granted)?.json();
        let (file, place) = opened.begin(|to| SampleFile::begin(to, &info, runs))?;
        Ok(Some(file.at_first_samples(place)))
    }

    /// What the sample file says of itself.
    fn describe(&self, prepared: &Prepared, granted: &[SchedPolicy]) -> Result<FileFacts> {
        let plan = prepared.plan();
        let mut runs = Vec::new();
        let mut grids = prepared.run_grids().iter();
        for (stream, &policy) in plan.streams.iter().zip(granted) {
            for ((index, condition), grid) in plan.conditions.iter().enumerate().zip(&mut grids) {
                let merged = self.watch.merge && plan.counts_as_one(index);
                let experiment = ExperimentFacts {
                    part_of: merged.then(|| run_name(plan, stream, UNDER_LOAD)),
                    follows: self.follows.clone(),
                    load: condition.loads.iter().map(ToString::to_string).collect(),
                    duration_ns: length_ns(plan, index),
                    floor_ns: prepared.cost().now_ns,
                    clock: prepared.clock_name(),
                };
                runs.push(RunFacts {
                    name: run_name(plan, stream, &condition.name),
                    cpu: stream.thread.pinned_to(),
                    period: grid.period(),
                    epoch_ns: grid.first().as_ns(),
                    phase_ns: grid.phase_ns(),
                    policy,
                    wait: plan.wait(stream, index).name(),
                    experiment: Some(experiment),
                });
            }
        }
        Ok(FileFacts {
            tool: "punctual",
            version: env!("CARGO_PKG_VERSION"),
            started_at: Some(self.started.to_string()),
            machine_json: Some(serde_json::to_value(self.machine)?.to_string()),
            runs,
        })
    }
}

impl Destination for Samples<'_> {
    type Sink = Recordings;
    type File = GrowingFile;

    fn begin(
        &mut self,
        prepared: &Prepared,
        granted: &[SchedPolicy],
    ) -> Result<Begun<Recordings, GrowingFile>, Box<dyn error::Error + Send + Sync>> {
        let file = self.begin_file(prepared, granted)?;
        let conditions = prepared.plan().conditions.len();
        let standings = Standings::new(&self.watch.claims, prepared.plan().runs());
        let sink = Recordings::new(prepared.run_grids(), prepared.plan(), &self.watch, &standings);
        self.standings = Some((standings, conditions));
        Ok(Begun { sink, file })
    }

    fn so_far(&self, condition: usize) -> Vec<Option<RunSoFar>> {
        let standings = self.standings.as_ref();
        standings.map_or_else(Vec::new, |(standings, conditions)| {
            standings.so_far(condition, *conditions)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_core::sample::Sample;
    use punctual_core::time::Period;
    use punctual_import::samples::FileInfo;

    #[test]
    fn the_head_of_a_file_is_what_its_reader_would_write() {
        let experiment = ExperimentFacts {
            part_of: Some("under load".to_owned()),
            follows: None,
            load: vec!["cpu".to_owned(), "command=a \"b\"\n\\c".to_owned()],
            duration_ns: 1_500_000_000,
            floor_ns: 13.25,
            clock: "tsc",
        };
        let run = RunFacts {
            name: "memory, ümlaut".to_owned(),
            cpu: Some(3),
            period: Period::from_ns(1_000_000).expect("in range"),
            epoch_ns: 123_456_789_000,
            phase_ns: 789_000,
            policy: SchedPolicy::Fifo(90),
            wait: "adaptive",
            experiment: Some(experiment.clone()),
        };
        let following = ExperimentFacts { follows: Some("/dev/ptp0".to_owned()), ..experiment };
        let other = RunFacts {
            policy: SchedPolicy::Other,
            experiment: Some(ExperimentFacts { part_of: None, ..following }),
            ..run.clone()
        };
        let facts = FileFacts {
            tool: "punctual",
            version: "1",
            started_at: Some("2026-01-02T03:04:05Z".to_owned()),
            machine_json: Some("{\"cpus\":4}".to_owned()),
            runs: vec![run, other],
        };
        let info: FileInfo = serde_json::from_str(&facts.json()).expect("JSON");
        // A control character may be written in two ways.
        let written = facts.json().replace("\\u000a", "\\n");
        assert_eq!(written, serde_json::to_string(&info).expect("JSON"));
        assert_eq!(info.runs[0].load[1], "command=a \"b\"\n\\c");
        assert_eq!((info.runs[0].priority, info.runs[1].priority), (Some(90), None));
    }

    #[test]
    fn a_run_without_cycles_is_not_taken_for_a_good_one() {
        let mut some = Recording::new(RecordingConfig::default());
        some.push(&Sample::default());
        let none = Recording::new(RecordingConfig::default());
        let run = |name: &str, recording: Recording| {
            Run::recorded(name.to_owned(), report::Setup::default(), recording.finish(0))
        };
        let runs = [run("idle", some), run("under load", none)];
        assert!(unmeasured(&runs, true).is_empty(), "it was interrupted");
        let warnings = unmeasured(&runs, false);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("\"under load\" has no cycle"), "{warnings:?}");
    }
}
