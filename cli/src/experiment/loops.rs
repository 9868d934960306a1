//! Loops that are measured and become runs of a report: what `check`, `measure periodic` and
//! `measure wait` share.
//!
//! The experiment itself is `punctual_lab::periodic`; here are its sample file, its names and its
//! words.

use std::collections::{BTreeMap, BTreeSet};
use std::{error, io};

use anyhow::{Context as _, Error, Result, anyhow, bail};
use punctual_analysis::compare::series::Builder;
use punctual_analysis::recording::{Recording, RunFigures};
use punctual_blame::config::LateThreshold;
use punctual_core::sample::Sample;
use punctual_core::time::Span;
use punctual_engine::drain::{GrowingFile, SampleFile};
use punctual_engine::file_facts::{ExperimentFacts, FileFacts, RunFacts};
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_host::threads::{RunningThread, name_of_another};
use punctual_import::samples::RUNS_MAX;
use punctual_lab::blame::{LATE, RecordingPrice};
use punctual_lab::experiment::{
    ConditionChanges, ExperimentEnd, ExperimentError, FinishedExperiment, RunSoFar, Standings,
};
use punctual_lab::load::LoadReport;
use punctual_lab::others::OthersOnCpu;
use punctual_lab::periodic::{
    Begun, BlameWhen, Destination, EvaluationConfig, LoopBlamePlan, LoopCauses, PeriodicExperiment,
    PeriodicOutcome, PeriodicPlan, Prepared, Recordings, RunOutcome, StopOver, Stream,
    first_waiting,
};
use punctual_os::scheduler::SchedPolicy;
use punctual_report::{
    self as report, About, Approach, BlameRecording, Choice, EndedBy, Envelope, Follow, Judged,
    KeptWaiting, LoadRow, LoopsBody, OtherThreads, PlannedRun, Question, QuestionSpec,
    RecordedBehind, Run, RunEvidence, Setup, StoppedBy, WorstWake, loads,
};

use super::follow::FollowedClock;
use super::learned::LearnedStore;
use super::{Machine, envelope, run, words};
use crate::args::{LearnArgs, ReportArgs};
use crate::comparison::RecordedRun;
use crate::format;
use crate::live;
use crate::output::{self, Opened};

/// The command that measures loops, and where it does.
pub(crate) struct LoopContext<'a> {
    /// The subcommand's name.
    pub(crate) name: &'static str,
    /// The machine that it is measured on.
    pub(crate) machine: &'a Machine,
    /// The measured CPUs and why those.
    pub(crate) choice: Choice,
    /// The limits and claims of every run, and whether cold cycles count.
    pub(crate) args: &'a ReportArgs,
}

/// The recording of the causes of late wakes.
pub(crate) struct CauseRecording {
    when: BlameWhen,
    late: LateThreshold,
}

impl CauseRecording {
    /// Of wakes above this threshold.
    pub(crate) fn over(when: BlameWhen, late: LateThreshold) -> Self {
        Self { when, late }
    }

    /// Of the latest hundredth of the wakes of a run, as for `blame`.
    pub(crate) fn usual(when: BlameWhen) -> Self {
        Self::over(when, LATE)
    }
}

/// The question that the runs answer.
pub(crate) struct Judging<'a> {
    pub(crate) question: Question<'a>,
    /// True where a "no" fails.
    pub(crate) gate: bool,
}

/// Loops to be measured.
pub(crate) struct LoopExperiment<'a> {
    pub(crate) context: LoopContext<'a>,
    /// The loops, their conditions and blocks.
    pub(crate) plan: PeriodicPlan,
    /// True where all conditions but the first count as one, "under load".
    pub(crate) merge: bool,
    /// The option to learn anew: without it waits begin with what earlier runs learned.
    pub(crate) learn: LearnArgs,
    /// True where a screen shows them as they run.
    pub(crate) live: bool,
    /// The recording of causes; `None` for none.
    pub(crate) causes: Option<CauseRecording>,
    /// The cycles and the time that its claims take.
    pub(crate) plans: Vec<PlannedRun>,
    /// Where the samples go, opened.
    pub(crate) samples: Option<Opened>,
    /// The clock whose time the grids lie on, where it is not CLOCK_MONOTONIC.
    pub(crate) follow: Option<FollowedClock>,
    /// The changes of the machine for each condition; `None` where there are none.
    pub(crate) changes: Option<&'a mut dyn ConditionChanges>,
    /// The lateness beyond which a release ends it; `None` for none.
    pub(crate) stop_over: Option<Span>,
    /// The question that the runs answer; `None` where they are not judged.
    pub(crate) judging: Option<Judging<'a>>,
    /// A lateness beyond which releases are counted one by one, beside that of the question, ns.
    pub(crate) threshold_ns: Option<i64>,
    /// Warnings that are known already.
    pub(crate) notes: Vec<String>,
    /// Samples of each run that are kept as they came, from its first on; 0 for none.
    pub(crate) first: usize,
}

/// Loops that were measured.
pub(crate) struct MeasuredLoops {
    /// The part that every result has.
    pub(crate) envelope: Envelope,
    /// The runs, and what is known of them.
    pub(crate) loops: LoopsBody,
    /// A row for each condition of those that count as one.
    pub(crate) rows: Vec<LoadRow>,
    /// The runs as comparisons see them, recorded on the way.
    pub(crate) recorded: Vec<RecordedRun>,
    /// The first samples of each run, as many as were requested.
    pub(crate) first: Vec<Vec<Sample>>,
    /// An error on the way that left the result worth having: a sample file that ends early,
    /// a load that did not start again.
    pub(crate) trouble: Option<Error>,
}

impl<'a> LoopExperiment<'a> {
    /// These loops and nothing beside their runs: each condition is a run, waits learn anew, and no
    /// run is judged, recorded or kept.
    pub(crate) fn new(context: LoopContext<'a>, plan: PeriodicPlan) -> Self {
        Self {
            context,
            plan,
            merge: false,
            learn: LearnArgs { relearn: true },
            live: false,
            causes: None,
            plans: Vec::new(),
            samples: None,
            follow: None,
            changes: None,
            stop_over: None,
            judging: None,
            threshold_ns: None,
            notes: Vec::new(),
            first: 0,
        }
    }

    /// Measures them to their end, or to Ctrl-C.
    ///
    /// # Errors
    /// Nothing was measured.
    pub(crate) fn run(self) -> Result<MeasuredLoops> {
        let Self { context, plan, merge, causes, follow, stop_over, mut notes, first, .. } = self;
        let LoopContext { name, machine, choice, args } = context;
        let (question, gate) =
            self.judging.map(|Judging { question, gate }| (question, gate)).unzip();
        let started = jiff::Timestamp::now();
        notes.extend(follow.as_ref().and_then(FollowedClock::warning));
        // Where loops are judged; an experiment of many parts would repeat it.
        for neighbours in question.iter().flat_map(|_| in_the_way(&plan)) {
            if !args.quiet {
                output::message(&neighbours);
            }
            notes.push(neighbours);
        }
        let followed =
            follow.as_ref().map(|target| Follow::of(&target.name, target.read.as_deref()));
        let clock = follow.as_ref().map(|target| target.name.clone());
        let mut watch = EvaluationConfig { first, ..watch(args, merge) };
        for requirement in question.iter().map(|question| question.requirement) {
            let deadline_ns = |stream: &Stream| requirement.deadline_ns(stream.period.as_ns());
            watch.thresholds_ns.extend(plan.streams.iter().map(deadline_ns));
        }
        watch.thresholds_ns.extend(self.threshold_ns);
        let mut destination = Samples {
            question: question.and_then(|question| question.spec),
            ..Samples::new(self.samples, watch, &machine.facts, clock.clone(), started)
        };
        let store = LearnedStore::of(&plan, &machine.measuring, self.learn.relearn);
        let is_asked = causes.as_ref().is_some_and(|causes| causes.when == BlameWhen::Asked);
        let blame_plan = causes.map(|CauseRecording { when, late }| LoopBlamePlan {
            when,
            late,
            machine: machine.recorded(),
            groups: groups(&plan, merge),
        });
        let experiment = PeriodicExperiment {
            plan,
            known: store.known(),
            follow: follow.map(FollowedClock::into_reference),
            recording_cost: true,
            blame: blame_plan,
            changes: self.changes.map(|changes| changes as &mut dyn ConditionChanges),
            stop_over: stop_over.map(|above| StopOver { above, counts_cold: args.keep_cold }),
            destination: &mut destination,
        };
        let mut observer = live::observer(self.live, args.quiet).context("--live")?;
        let finished = run(experiment, &machine.measuring, observer.as_mut());
        // The screen that was there before, for whatever is said from here on.
        drop(observer);
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
        let stop_over = stop_over.map(|above| stopped_over(above, &finished.outcome));
        let failed = trouble.is_some();
        let ended = destination.finish(failed);
        let trouble = trouble.or(ended.err());
        let mut envelope = envelope(name, machine, choice, started, &finished);
        envelope.warn_first(notes);
        let mut measured = made(envelope, finished, followed, self.plans, (args, merge, question));
        measured.loops.blame.iter_mut().for_each(|recording| recording.is_asked = is_asked);
        let late = stop_over.as_ref().and_then(report::StopOver::sentence);
        let verdict = &mut measured.envelope.verdict;
        late.into_iter().for_each(|why| verdict.fail_about(About::StopOver, why));
        measured.loops.stop_over = stop_over;
        if gate == Some(true) {
            measured.envelope.verdict.judge_answers(&measured.loops.judged.verdicts);
        }
        // After the limits were judged: the figures are those of the whole run.
        if let Some(why) = &trouble {
            measured.envelope.end_early(EndedBy::File);
            measured.envelope.warn(format!("{why:#}"));
        }
        Ok(MeasuredLoops { trouble, ..measured })
    }
}

/// The demand that a run ends at a release later than this, and the release that did end it.
fn stopped_over<S>(above: Span, outcome: &PeriodicOutcome<S>) -> report::StopOver {
    let plan = &outcome.plan;
    let stopped_by = outcome.late.map(|late| {
        let at = i128::from(late.seen_unix_ns);
        let at = jiff::Timestamp::from_nanosecond(at).map(|at| format!("{at:.3}"));
        StoppedBy {
            run: run_name(plan, &plan.streams[late.stream], &plan.conditions[late.condition].name),
            cycle: late.cycle,
            release_ns: late.release.as_ns(),
            lateness_ns: late.lateness.as_ns().unsigned_abs(),
            // A clock of this machine is within what can be written.
            at: at.unwrap_or_default(),
        }
    });
    report::StopOver { above_ns: above.as_ns().unsigned_abs(), stopped_by }
}

/// So many threads are named.
const NAMED_MAX: usize = 4;

/// For each measured CPU, the real-time threads of others that may run there at the priority of its
/// lowest loop or above: what is late then may be theirs.
fn in_the_way(plan: &PeriodicPlan) -> Vec<String> {
    let root = Root::live();
    let own = std::process::id().cast_signed();
    // Of the kernel's own threads those of interrupts are named; the others run on each machine.
    let is_named = |thread: &RunningThread| !thread.is_kernel || thread.name.starts_with("irq/");
    let mut threads = RunningThread::real_time_beside(&root, own);
    threads.retain(|(thread, _)| is_named(thread));
    let mut sentences = Vec::new();
    for (cpu, priority) in lowest_priorities(plan) {
        let above = threads.iter().filter(|(thread, allowed)| {
            thread.is_at_least(priority.into()) && allowed.contains(cpu)
        });
        let above = above.map(|(thread, _)| thread);
        let named = named_together(above);
        if named.is_empty() {
            continue;
        }
        let more = match named.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        sentences.push(format!(
            "real-time threads may run on CPU {cpu} at priority {priority}, requested for the \
             loop, or above: {}{more}",
            named[..named.len().min(NAMED_MAX)].join(", ")
        ));
    }
    sentences
}

/// Threads in words, those of one name and policy together, with the processes that they are of.
fn named_together<'a>(threads: impl Iterator<Item = &'a RunningThread>) -> Vec<String> {
    let mut groups: Vec<(&RunningThread, usize, BTreeSet<i32>)> = Vec::new();
    for thread in threads {
        let key = |thread: &RunningThread| (thread.policy, thread.priority);
        let is_alike =
            |other: &RunningThread| other.name == thread.name && key(other) == key(thread);
        match groups.iter_mut().find(|(other, ..)| is_alike(other)) {
            Some((_, count, pids)) => {
                *count += 1;
                pids.insert(thread.pid);
            }
            None => groups.push((thread, 1, BTreeSet::from([thread.pid]))),
        }
    }
    let words = |(thread, count, pids): (&RunningThread, usize, BTreeSet<i32>)| {
        let (name, policy) = (name_of_another(&thread.name), thread.policy_words());
        let threads = if count > 1 { format!("{count} threads ") } else { String::new() };
        let first = pids.iter().take(NAMED_MAX).map(i32::to_string).collect::<Vec<_>>().join(", ");
        let more = if pids.len() > NAMED_MAX { " and more" } else { "" };
        // An interrupt's thread is a process of its own.
        let noun = if pids.len() == 1 { "pid" } else { "pids" };
        format!("{threads}{name} ({policy}, {noun} {first}{more})")
    };
    groups.into_iter().map(words).collect()
}

/// Each CPU that has real-time loops of its own, with the lowest of their priorities.
fn lowest_priorities(plan: &PeriodicPlan) -> BTreeMap<u32, u8> {
    let mut lowest = BTreeMap::new();
    for stream in &plan.streams {
        let (SchedPolicy::Fifo(priority) | SchedPolicy::RoundRobin(priority), Some(cpu)) =
            (stream.thread.policy(), stream.thread.pinned_to())
        else {
            continue;
        };
        let known = lowest.entry(cpu).or_insert(priority);
        *known = priority.min(*known);
    }
    lowest
}

/// The latest wakes of a run that was recorded behind the measurement that are told.
const LATEST: usize = 5;

/// The first condition of each condition's run: those of one run count their late wakes together.
fn groups(plan: &PeriodicPlan, merge: bool) -> Vec<usize> {
    let conditions = 0..plan.conditions.len();
    let is_one = |condition: &usize| merge && plan.counts_as_one(*condition);
    let first = conditions.clone().find(is_one).unwrap_or(0);
    conditions.map(|condition| if is_one(&condition) { first } else { condition }).collect()
}

/// The recording of causes in a result; `is_asked` is set elsewhere.
fn blame_recording(causes: &LoopCauses) -> BlameRecording {
    BlameRecording {
        is_recorded: causes.lacks().is_none(),
        why_not: causes.lacks().map(ToString::to_string),
        is_asked: false,
        place: causes.place(),
        price: causes.price().cloned(),
        evidence: causes.evidence().cloned(),
    }
}

/// The thresholds and claims that the recordings of a run watch.
pub(crate) fn watch(args: &ReportArgs, merge: bool) -> EvaluationConfig {
    EvaluationConfig {
        merge,
        keep_cold: args.keep_cold,
        thresholds_ns: report::thresholds(&args.limits, &args.claims),
        claims: args.claims.clone(),
        first: 0,
    }
}

/// The error on the way, if any.
fn trouble<S>(
    finished: &mut FinishedExperiment<PeriodicOutcome<S>>,
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
    finished: FinishedExperiment<PeriodicOutcome<Recordings>>,
    followed: Option<Follow>,
    plans: Vec<PlannedRun>,
    (args, merge, question): (&ReportArgs, bool, Option<Question<'_>>),
) -> MeasuredLoops {
    let FinishedExperiment { outcome, loads, clock, .. } = finished;
    let (mut sink, measured) = outcome.without_sink();
    let series = std::mem::take(&mut sink.series);
    let first = std::mem::take(&mut sink.first);
    let follow = followed.map(|follow| match &measured.followed {
        Some(ended) => follow.ended(ended),
        None => follow,
    });
    envelope.warn_of(follow.iter().flat_map(Follow::warnings));
    let follows = follow.as_ref().map(|follow| follow.clock.as_str());
    let maker = Maker { outcome: &measured, follows, loads: &loads, floor_ns: clock.cost.now_ns };
    let (runs, rows) = maker.runs(sink);
    let recorded = recorded(&measured.plan, merge, args.keep_cold, &measured.runs, series, &runs);
    if !envelope.incomplete {
        envelope.warn_of(unmeasured(&runs));
    }
    let judged = if merge { report::of_first_wait(&runs) } else { &runs };
    envelope.verdict =
        report::judge(judged, &args.limits, envelope.incomplete, args.undecided.counts_as());
    envelope.verdict.judge_claims(judged, (&args.claims, args.strict), envelope.incomplete);
    if !envelope.incomplete {
        envelope.verdict.judge_measured(judged);
    }
    if envelope.ended_by == Some(EndedBy::Watchdog) {
        // Whatever was asked: a loop that could not run is no loop that held.
        envelope.verdict.fail("the watchdog ended the run".to_owned());
    }
    let judged = match question {
        Some(question) => {
            let question = Question { incomplete: envelope.incomplete, ..question };
            report::judged(runs, &rows, &envelope, &question)
        }
        None => Judged { runs, ..Judged::default() },
    };
    let recording = measured
        .recording
        .map(|cost| report::measured::Recording { hot_ns: cost.hot_ns, cold_ns: cost.cold_ns });
    let blame = measured.causes.as_ref().map(blame_recording);
    let loops = LoopsBody { judged, follow, recording, plans, blame, stop_over: None };
    MeasuredLoops { envelope, loops, rows, recorded, first, trouble: None }
}

/// The runs that have no cycle that counts, in a sentence for each reason: no lateness is no good
/// one. Not for a result that ended early, which is why its runs have none.
fn unmeasured(runs: &[Run]) -> impl Iterator<Item = String> {
    let empty = |is_cold: bool| {
        let empty = runs.iter().filter(move |run| {
            run.outcome.lateness.count() == 0 && (run.outcome.cycles > 0) == is_cold
        });
        let names: Vec<String> = empty.map(|run| format!("\"{}\"", run.name)).collect();
        match &names[..] {
            [] => None,
            [only] => Some((format!("{only} has"), "its", "loop")),
            [first @ .., last] => {
                Some((format!("{} and {last} have", first.join(", ")), "their", "loops"))
            }
        }
    };
    let without = empty(false).map(|(names, their, loops)| {
        format!(
            "{names} no cycles: {their} blocks were over before the {loops} ran; use a longer \
             --duration"
        )
    });
    let cold = empty(true).map(|(names, ..)| {
        format!(
            "{names} none but cold cycles, the first ones of each block, which are left out: use \
             a longer --duration or --keep-cold"
        )
    });
    without.into_iter().chain(cold)
}

/// The destination of samples.
struct Samples<'a> {
    file: Option<Opened>,
    watch: EvaluationConfig,
    machine: &'a MachineFacts,
    follows: Option<String>,
    started: jiff::Timestamp,
    /// The question that they are recorded for.
    question: Option<&'a QuestionSpec>,
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
        Self { file, watch, machine, follows, started, question: None, standings: None }
    }

    /// The sentence about what an error of the sample file leaves of it.
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

    /// The description at the head of the sample file.
    fn describe(&self, prepared: &Prepared, granted: &[SchedPolicy]) -> Result<FileFacts> {
        let plan = prepared.plan();
        let mut runs = Vec::new();
        let mut grids = prepared.run_grids().iter();
        for (stream, &policy) in plan.streams.iter().zip(granted) {
            for ((index, condition), grid) in plan.conditions.iter().enumerate().zip(&mut grids) {
                let merged = self.watch.merge && plan.counts_as_one(index);
                let experiment = ExperimentFacts {
                    condition: condition.name.clone(),
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
            question_json: self.question.map(serde_json::to_string).transpose()?,
            runs,
        })
    }
}

impl Destination for Samples<'_> {
    type Sink = Recordings;
    type File = GrowingFile;

    fn lateness_ns(sink: &Recordings, stream: usize, condition: usize, share: f64) -> Option<u64> {
        sink.lateness_ns(stream, condition, share)
    }

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

/// The name of the run in which all loads of `check` count as one.
pub(crate) const UNDER_LOAD: &str = "under load";

/// The name of the run of a stream under a condition: the condition alone while there is one
/// stream.
pub(crate) fn run_name(plan: &PeriodicPlan, stream: &Stream, condition: &str) -> String {
    if plan.streams.len() == 1 {
        return condition.to_owned();
    }
    let cpu =
        stream.thread.pinned_to().map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let name = format!("{cpu}, {}", format::period(stream.period.as_ns()));
    if plan.conditions.len() == 1 { name } else { format!("{name}, {condition}") }
}

/// The parts that runs of a report are made from.
struct Maker<'a> {
    /// The outcome of the experiment.
    outcome: &'a PeriodicOutcome<()>,
    /// The clock that the grids follow.
    follows: Option<&'a str>,
    /// The reports of the loads of each condition.
    loads: &'a [Vec<LoadReport>],
    /// The cost of a stamp, ns.
    floor_ns: f64,
}

impl Maker<'_> {
    /// All runs; where conditions count as one, that one in their place, and a row for each.
    fn runs(&self, recorded: Recordings) -> (Vec<Run>, Vec<LoadRow>) {
        let plan = &self.outcome.plan;
        let (mut runs, mut rows) = (Vec::new(), Vec::new());
        let mut recordings = recorded.runs.into_iter();
        let mut merged = recorded.merged.into_iter();
        for stream in 0..plan.streams.len() {
            let together = merged.next();
            let as_one = |at: usize| together.is_some() && plan.counts_as_one(at);
            let mut apart = Vec::new();
            for condition in 0..plan.conditions.len() {
                let Some(recording) = recordings.next() else { break };
                let outcome = self.finish(recording, &[plan.run_index(stream, condition)]);
                let name = &plan.conditions[condition].name;
                if as_one(condition) {
                    rows.push(self.row(stream, condition, outcome));
                } else if together.is_some() && condition > 0 {
                    apart.push(self.run(stream, name, &[condition], outcome));
                } else {
                    runs.push(self.run(stream, name, &[condition], outcome));
                }
            }
            if let Some(together) = together {
                let loaded = 1..plan.conditions.len();
                let conditions: Vec<usize> = loaded.filter(|&at| plan.counts_as_one(at)).collect();
                let together_of: Vec<usize> =
                    conditions.iter().map(|&c| plan.run_index(stream, c)).collect();
                let outcome = self.finish(together, &together_of);
                runs.push(self.run(stream, UNDER_LOAD, &conditions, outcome));
            }
            runs.extend(apart);
        }
        (runs, rows)
    }

    /// The recorder's own counters hold also where nothing came after.
    fn finish(&self, recording: Recording, runs: &[usize]) -> RunFigures {
        let sum = |count: fn(&RunOutcome) -> u64| {
            runs.iter().map(|&run| count(&self.outcome.runs[run])).sum()
        };
        recording.finish_with(sum(|run| run.missed), sum(|run| run.unrecorded))
    }

    fn row(&self, number: usize, condition: usize, outcome: RunFigures) -> LoadRow {
        LoadRow {
            period_ns: Some(self.outcome.plan.streams[number].period.as_ns()),
            load: self.outcome.plan.conditions[condition].name.clone(),
            cycles: outcome.cycles,
            missed: outcome.missed.unwrap_or_default(),
            censored: outcome.censored,
            unrecorded: outcome.unrecorded,
            lateness_ns: outcome.lateness_ns,
            steal_ns: self.outcome.runs[self.outcome.plan.run_index(number, condition)].steal_ns,
            loads: loads(&self.loads[condition]),
        }
    }

    fn run(&self, number: usize, name: &str, conditions: &[usize], outcome: RunFigures) -> Run {
        let plan = &self.outcome.plan;
        let stream = &plan.streams[number];
        let outcomes: Vec<&RunOutcome> =
            conditions.iter().map(|&c| &self.outcome.runs[plan.run_index(number, c)]).collect();
        let spins = conditions.iter().any(|&c| plan.wait(stream, c).spins());
        let stall_max = outcomes.iter().map(|run| run.stalls.longest).max().unwrap_or(Span::ZERO);
        let busy: f64 = outcomes.iter().map(|run| run.cpu_load * run.wall_ns as f64).sum();
        let wall: f64 = outcomes.iter().map(|run| run.wall_ns as f64).sum();
        let run = Run {
            name: run_name(plan, stream, name),
            condition: None,
            setup: self.setup(number, conditions, outcomes.first().map(|run| run.policy)),
            stalled: spins.then(|| outcomes.iter().map(|run| run.stalls.count).sum()),
            stall_max_ns: spins.then_some(stall_max.as_ns() as f64),
            cpu_load: (wall > 0.0).then_some(busy / wall),
            page_faults: Some(
                outcomes.iter().map(|run| run.usage.minor_faults + run.usage.major_faults).sum(),
            ),
            preempted: Some(outcomes.iter().map(|run| run.usage.involuntary_switches).sum()),
            steal_ns: outcomes.iter().filter_map(|run| run.steal_ns).reduce(u64::saturating_add),
            others: outcomes.iter().find_map(|run| OtherThreads::of(run.others.as_ref()?)),
            kept_waiting: kept_waiting(&outcomes),
            floor_ns: Some(self.floor_ns),
            approach: outcomes.last().filter(|_| spins).map(|run| Approach::of(run)),
            loads: conditions.iter().flat_map(|&c| loads(&self.loads[c])).collect(),
            load_deaths: conditions.iter().map(|&c| load_deaths(&self.loads[c])).sum(),
            outcome,
            causes: Vec::new(),
            blame: None,
        };
        self.blamed(run.under(name), number, conditions)
    }

    /// The run with the causes of its late wakes, where they were recorded.
    fn blamed(&self, run: Run, number: usize, conditions: &[usize]) -> Run {
        let plan = &self.outcome.plan;
        let (Some(causes), Some(&first)) = (&self.outcome.causes, conditions.first()) else {
            return run;
        };
        let Some(blamed) = causes.run(plan, number, first) else { return run };
        let stream = &plan.streams[number];
        let are_cycles = conditions.iter().all(|&c| LoopCauses::are_cycles(plan.wait(stream, c)));
        let grid = self.outcome.run_grids[plan.run_index(number, first)];
        // The kernel's events are not on the clock that a grid follows.
        let is_placed = self.follows.is_none();
        let cycles = causes.late_cycles(number, first, &grid);
        let cycles = if is_placed { cycles } else { Vec::new() };
        let behind = causes.behind_ns(first).map(|length_ns| RecordedBehind {
            latest: causes.latest_behind(number, first, LATEST),
            length_ns,
            price_ns: causes.price().and_then(RecordingPrice::median_ns),
        });
        run.blamed(RunEvidence { blamed, are_cycles, cycles, behind }, |release| {
            let times = (grid.release(release.cycle).as_ns(), release.at_ns);
            let wake = causes.wake_at(number, first, times).filter(|_| is_placed)?;
            let cycle = first_waiting(wake.release_ns, &grid).min(release.cycle);
            Some(WorstWake { cycle, wake })
        })
    }

    fn setup(&self, number: usize, conditions: &[usize], policy: Option<SchedPolicy>) -> Setup {
        let plan = &self.outcome.plan;
        let stream = &plan.streams[number];
        let policy = policy.unwrap_or(stream.thread.policy());
        Setup {
            cpu: stream.thread.pinned_to(),
            period_ns: Some(stream.period.as_ns()),
            phase_ns: conditions.first().map(|&c| plan.phase_ns(stream, c)),
            follows: self.follows.map(ToOwned::to_owned),
            policy: Some(policy.name().to_owned()),
            priority: policy.priority(),
            wait: conditions.first().map(|&c| plan.wait(stream, c).name().to_owned()),
            load: conditions
                .iter()
                .flat_map(|&c| plan.conditions[c].loads.iter().map(ToString::to_string))
                .collect(),
            duration_ns: Some(conditions.iter().map(|&c| length_ns(plan, c)).sum()),
        }
    }
}

/// Threads that had the CPU of these runs while their loops were seen waiting for it; `None` where
/// none was seen.
fn kept_waiting(outcomes: &[&RunOutcome]) -> Option<KeptWaiting> {
    let mut seen = OthersOnCpu::default();
    outcomes.iter().filter_map(|run| run.kept_waiting.as_ref()).for_each(|part| seen.add(part));
    KeptWaiting::of(&seen)
}

/// The number of processes of these loads that died.
pub(crate) fn load_deaths(reports: &[LoadReport]) -> u64 {
    reports.iter().map(|report| report.deaths.len() as u64).sum()
}

/// The time that a condition was to run in all, ns.
fn length_ns(plan: &PeriodicPlan, condition: usize) -> u64 {
    plan.length_of(condition).as_ns().unsigned_abs()
}

/// The runs that a plan is to give, without anything measured; their grids follow `clock`.
pub(crate) fn planned(
    plan: &PeriodicPlan,
    merge: bool,
    keep_cold: bool,
    clock: Option<&str>,
) -> Vec<RecordedRun> {
    let mut planned: Vec<RecordedRun> = Vec::new();
    for stream in &plan.streams {
        for (at, condition) in plan.conditions.iter().enumerate() {
            let Some(name) = name(plan, merge, stream, at) else { continue };
            let load: Vec<String> = condition.loads.iter().map(ToString::to_string).collect();
            if let Some(together) = planned.iter_mut().find(|run| run.name() == name) {
                together.add_loads(load);
                continue;
            }
            let setup = Setup {
                cpu: stream.thread.pinned_to(),
                period_ns: Some(stream.period.as_ns()),
                follows: clock.map(ToOwned::to_owned),
                wait: Some(plan.wait(stream, at).name().to_owned()),
                load,
                ..Setup::default()
            };
            planned.push(RecordedRun::planned(name, setup, !keep_cold));
        }
    }
    planned
}

/// The name of the run of a stream in which a condition counts; `None` where a wait of its own is
/// shown beside the others and compared with nothing.
fn name(plan: &PeriodicPlan, merge: bool, stream: &Stream, condition: usize) -> Option<String> {
    let as_one = merge && plan.counts_as_one(condition);
    let is_compared = !merge || condition == 0 || as_one;
    let named = if as_one { UNDER_LOAD } else { &plan.conditions[condition].name };
    is_compared.then(|| run_name(plan, stream, named))
}

/// The runs of a plan, by the names that they have in `runs`; with `merge` those that count as
/// one ([`PeriodicPlan::counts_as_one`]) are one.
fn recorded(
    plan: &PeriodicPlan,
    merge: bool,
    keep_cold: bool,
    outcomes: &[RunOutcome],
    series: Vec<Builder>,
    runs: &[Run],
) -> Vec<RecordedRun> {
    let mut found: Vec<RecordedRun> = Vec::new();
    let mut series = series.into_iter();
    for (number, stream) in plan.streams.iter().enumerate() {
        for condition in 0..plan.conditions.len() {
            let Some(builder) = series.next() else { return found };
            let Some(name) = name(plan, merge, stream, condition) else { continue };
            let outcome = &outcomes[plan.run_index(number, condition)];
            let part = builder.finish_with(outcome.missed, outcome.unrecorded);
            if let Some(together) = found.iter_mut().find(|run| run.name() == name) {
                together.add(part, outcome.unrecorded);
                continue;
            }
            let mut recorded = match runs.iter().find(|run| run.name == name) {
                Some(run) => RecordedRun::measured(run, !keep_cold),
                None => RecordedRun::planned(name, Setup::default(), !keep_cold),
            };
            recorded.add(part, outcome.unrecorded);
            found.push(recorded);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::PROGRAM;
    use punctual::{RtThread, WaitPolicy};
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Period;
    use punctual_host::root::Root;
    use punctual_import::samples::FileInfo;
    use punctual_lab::periodic::{Condition, LibraryLoop, WaitKind, split};

    #[test]
    fn threads_of_one_name_and_policy_are_named_together() {
        let thread = |pid, name: &str, priority| RunningThread {
            pid,
            tid: pid + 1,
            name: name.to_owned(),
            is_kernel: false,
            is_runnable: false,
            policy: 1,
            priority,
            last_cpu: 0,
            faults: 0,
            started: 0,
        };
        let threads = [
            thread(7, "punctual-watch", 99),
            thread(8, "hog", 95),
            thread(9, "punctual-watch", 99),
            thread(10, "hog", 96),
            thread(8, "hog", 95),
        ];
        assert_eq!(
            named_together(threads.iter()),
            [
                "2 threads punctual-watch of another process (SCHED_FIFO 99, pids 7, 9)",
                "2 threads hog (SCHED_FIFO 95, pid 8)",
                "hog (SCHED_FIFO 96, pid 10)"
            ]
        );
    }

    #[test]
    fn the_head_of_a_file_is_what_its_reader_would_write() {
        let experiment = ExperimentFacts {
            condition: "under load".to_owned(),
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
            question_json: Some("{\"for\":\"plc\"}".to_owned()),
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
        let run = |name: &str, recording: Recording| {
            Run::recorded(name.to_owned(), Setup::default(), recording.finish(0))
        };
        let empty = |name| run(name, Recording::new(RecordingConfig::default()));
        // Two blocks, of which each has cold cycles and no other one.
        let mut cold =
            Recording::new(RecordingConfig { leave_out_cold: true, ..RecordingConfig::default() });
        for n in 0..15 {
            cold.push(&Sample { cycle: n, flags: Flags::COLD, ..Sample::default() });
        }
        let runs = [
            run("idle", some),
            empty("under load"),
            empty("under cpu"),
            empty("quiet"),
            run("short", cold),
        ];
        let warnings = |n: usize| unmeasured(&runs[..n]).collect::<Vec<_>>();
        assert!(warnings(1).is_empty());
        let only = warnings(2);
        assert!(only[0].starts_with("\"under load\" has no cycles: its"), "{only:?}");
        let several = warnings(5);
        let names = "\"under load\", \"under cpu\" and \"quiet\" have no cycles: their blocks";
        assert!(several[0].starts_with(names), "{several:?}");
        assert!(several[1].starts_with("\"short\" has none but cold cycles"), "{several:?}");
        assert_eq!(several.len(), 2);
    }

    /// The row of `check` about the library's own loop, which it has from 20 s on: here for as long
    /// as its wait learns, and half a second.
    #[test]
    fn a_loop_of_the_library_becomes_a_run_with_a_wait_and_a_phase_of_its_own() {
        let condition = |name: &str, library| Condition {
            name: name.to_owned(),
            wait: None,
            library,
            loads: Vec::new(),
        };
        let library = LibraryLoop { phase_ns: 300_000 };
        let plan = PeriodicPlan {
            streams: vec![Stream {
                thread: RtThread::any().other().wait(WaitKind::Sleep),
                period: Period::from_ns(1_000_000).expect("positive"),
                phase_ns: 0,
            }],
            conditions: vec![condition("idle", None), condition("library loop", Some(library))],
            blocks: split(&[0, 1], Span::from_ms(500)),
            housekeeping: Vec::new(),
            cold: 0,
        };
        let facts = MachineFacts::collect(&Root::live());
        let args = ReportArgs::default();
        let started = jiff::Timestamp::now();
        let mut destination = Samples::new(None, watch(&args, false), &facts, None, started);
        let experiment = PeriodicExperiment {
            plan,
            known: Vec::new(),
            follow: None,
            recording_cost: false,
            blame: None,
            changes: None,
            stop_over: None,
            destination: &mut destination,
        };
        let finished = run(experiment, &facts, &mut ()).expect("measured");
        let envelope = Envelope::of(PROGRAM, "check");
        let measured = made(envelope, finished, None, Vec::new(), (&args, false, None));
        let runs = &measured.loops.judged.runs;
        let run = |name: &str| runs.iter().find(|run| run.name == name).expect("its run");
        let (idle, library) = (run("idle"), run("library loop"));
        assert!(library.outcome.cycles > 0 && library.outcome.lateness.count() > 0);
        assert_eq!((idle.setup.phase_ns, library.setup.phase_ns), (Some(0), Some(300_000)));
        let waits = [idle, library].map(|run| run.setup.wait.clone().unwrap_or_default());
        let adaptive = WaitPolicy::adaptive().kind().name();
        assert_eq!(waits, [WaitKind::Sleep.name(), adaptive]);
        assert!(library.approach.is_some(), "how its wait came to its releases");
        // A run of its own: those that count as one leave it out.
        assert!(measured.rows.is_empty() && measured.trouble.is_none());
    }
}
