//! `punctual tune experiment`: each runtime setting of the plan tried alone, those that help kept.
//!
//! The plan of trials and their counts are `lab::tuning`'s; here settings are applied and put back,
//! block by block, around the loops that `measure periodic` runs too.

use anyhow::{Context, Error, Result, bail};
use punctual_analysis::compare::series::LatenessSeries;
use punctual_analysis::rng::Rng;
use punctual_blame::config::LateThreshold;
use punctual_core::time::Span;
use punctual_engine::wait_policy::WaitKind;
use punctual_host::plan::{PlannedWrite, TuningPlan};
use punctual_lab::load::{LoadSpec, Loads};
use punctual_lab::periodic::{BlameWhen, Condition, PeriodicPlan, split};
use punctual_lab::tuning::{
    self, CountedTail, MachineFiles, Measure, SettingSets, StepOutcome, TuningTrials, WantedValue,
};
use punctual_os::signal;
use punctual_report::trials::{CausesPair, TrialVerdict, TrialsBody, TriedSetting, moved};
use punctual_report::{BlameRecording, Body, Choice, Envelope, Report, Run};

use crate::args::{BlameWord, CausesArgs, PRIORITY, PolicyName, ReportArgs, StateArgs};
use crate::experiment;
use crate::experiment::choices::{LoopChoices, PlannedLoops};
use crate::experiment::loops::{CauseRecording, LoopContext, LoopExperiment};
use crate::format;
use crate::output::{JournalFile, JournalName, OutputArgs, SettingsLock, SettingsOwner};
use crate::parse::{self, Phase};
use crate::program::PROGRAM;
use crate::settings::changes::{Changes, Watched, revert};
use crate::settings::{TuneScopeArgs, TunedMachine, applied_line, counted, show};
use crate::subcommand::Exit;
use crate::writing;

/// `punctual tune experiment`.
#[derive(Debug, clap::Args)]
pub(super) struct TuneExperimentArgs {
    #[command(flatten)]
    scope: TuneScopeArgs,
    /// Try only this setting, by its name in the verdicts; may be given again
    #[arg(long, value_name = "SETTING")]
    only: Vec<String>,
    /// How long everything may take
    #[arg(long, short, default_value = "10min", value_parser = parse::duration)]
    duration: parse::Duration,
    /// The period of the loop, on the first of the CPUs
    #[arg(long, short, default_value = "1ms", value_parser = parse::period)]
    period: parse::Duration,
    /// The releases that count: later than this time (50us), or than this quantile without any
    /// setting (p99)
    #[arg(long, value_name = "TIME|QUANTILE", default_value = "p99", value_parser = tail)]
    tail: CountedTail,
    /// Loads that run in every block, as for 'measure periodic'
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    /// Put all settings back at the end, also those that help
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    causes: CausesArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    state: StateArgs,
}

/// The tail of `--tail`.
fn tail(text: &str) -> Result<CountedTail, String> {
    let wrong = || format!("{text:?} is neither a time (50us) nor a quantile (p99, p99.9)");
    match text.strip_prefix('p') {
        Some(percent) => {
            let share = percent.parse::<f64>().map_err(|_| wrong())? / 100.0;
            (0.5..1.0).contains(&share).then_some(CountedTail::Quantile(share)).ok_or_else(wrong)
        }
        None => {
            let time = parse::duration(text).map_err(|_| wrong())?;
            Ok(CountedTail::Above(time.0.as_ns()))
        }
    }
}

/// The subcommand's name.
const NAME: &str = "tune experiment";
/// Seeds the order of blocks, the same in every run.
const SEED: u64 = 20_261_123;

/// `punctual tune experiment`.
pub(super) fn run(args: &TuneExperimentArgs) -> Result<Exit> {
    if args.scope.root.path().is_some() {
        bail!("--root: settings are tried on this machine only");
    }
    let machine = TunedMachine::read(&args.scope)?;
    machine.leaves_cpus(&args.scope)?;
    let mut settings = settings(&machine.plan(&args.only)?);
    let outputs = args.output.open()?;
    let (state, owner) = (&args.state.state, SettingsOwner::of(&machine.root)?);
    let boot = owner.to_string();
    let mut lock = SettingsLock::take(None, &owner, NAME)?;
    let mut journal = JournalFile::begin(&mut lock, state, JournalName::Experiment)?;
    // Before anything is applied, if only for a moment: then it is put back, whatever comes.
    signal::catch_stop().context("cannot catch SIGINT")?;
    revert(&mut journal, &boot)?;
    // Nothing is measured for hours that cannot be kept then.
    let keeping = || JournalFile::lock(&lock, state, JournalName::Settings);
    let mut keeping = (!args.dry_run).then(keeping).transpose()?;
    let mut watched = Watched::of(settings.iter().flat_map(|setting| &setting.writes));
    let tried = probe(&mut settings, args, &mut journal, &boot)?;
    watched.look();
    let live = experiment::Machine::of(None)?;
    let loads: Vec<LoadSpec> = args.load.turns().into_iter().flatten().collect();
    let PlannedLoops { plan, choice } = planned(args, &machine, &live)?;
    let mut bench = Bench {
        live: &live,
        blame: blame(args),
        plan,
        choice,
        loads,
        settings: &settings,
        tried: &tried,
        journal: &mut journal,
        boot: &boot,
        watched,
        rng: Rng::new(SEED),
        envelope: None,
        trouble: None,
        parts: Vec::new(),
        recording: None,
    };
    let (measured, parts) = measured_parts(args);
    let wanted = (args.tail, Span::from_ns(args.duration.0.as_ns() / parts * measured));
    let trials = tuning::try_settings(tried.len(), wanted, &mut bench);
    let Bench { envelope, trouble, mut watched, parts, recording, .. } = bench;
    // Whatever became of it, nothing stays that was only tried.
    let mut trouble = revert(&mut journal, &boot).err().or(trouble);
    watched.look();
    let trials = match trials {
        Ok(trials) => trials,
        Err(why) => return Err(trouble.unwrap_or(why)),
    };
    let mut body = body(args, &machine, (&settings, &tried), &trials);
    body.blame = recording;
    add_causes(&mut body, &tried, &trials, &parts);
    void(&mut body, &settings, &watched);
    // As of an interrupted run, nothing is kept where somebody else had a hand in it, or where
    // something is not as before.
    // A stop may have come behind the last part, which was whole then.
    let is_stopped = signal::stop_signal().is_some();
    let is_clean = body.changed.is_empty() && trouble.is_none() && !is_stopped;
    if let Some(journal) = keeping.as_mut().filter(|_| is_clean) {
        let helpful = trials.kept().into_iter().map(|at| &settings[tried[at]]);
        (body.kept, trouble) = keep(helpful, args, journal, &boot);
    }
    let report = report(envelope, body);
    writing::write(&report, outputs)?;
    Exit::after(&report, trouble)
}

/// The way that causes are recorded; `None` for not at all.
fn blame(args: &TuneExperimentArgs) -> Option<BlameWhen> {
    // Settings are held against each other.
    args.causes.when(BlameWord::Off, true)
}

/// The parts of the time that are measured, of all parts: what is recorded behind them has the
/// rest.
fn measured_parts(args: &TuneExperimentArgs) -> (i64, i64) {
    match blame(args) {
        None | Some(BlameWhen::Asked) => (1, 1),
        Some(BlameWhen::Unasked | BlameWhen::UnaskedBehind) => (10, 11),
    }
}

/// Adds the causes that each setting moved, as its last part recorded them.
fn add_causes(
    body: &mut TrialsBody,
    tried: &[usize],
    trials: &TuningTrials,
    parts: &[RecordedPart],
) {
    let mut pairs: Vec<(usize, CausesPair<'_>)> = Vec::new();
    for (number, (&setting, trial)) in tried.iter().zip(&trials.settings).enumerate() {
        let found = parts.iter().rev().find_map(|part| {
            Some((part.run(&[])?, part.run(&[number]).filter(|run| run.blame.is_some())?))
        });
        let rate = trial.again.as_ref().or(trial.first.as_ref());
        if let (Some((without, with)), Some(rate)) = (found, rate) {
            pairs.push((setting, CausesPair { without, with, dispersion: rate.dispersion }));
        }
    }
    let compared: Vec<CausesPair<'_>> = pairs.iter().map(|(_, pair)| *pair).collect();
    for ((setting, _), causes) in pairs.iter().zip(moved(&compared, body.threshold_ns)) {
        body.settings[*setting].causes = causes;
    }
    let without = parts.iter().find_map(|part| part.run(&[])?.blame.as_ref());
    body.sentence = without.and_then(|blame| blame.sentence.clone());
}

fn report(envelope: Option<Envelope>, body: TrialsBody) -> Report {
    let mut envelope = Envelope {
        experiment: NAME.to_owned(),
        ..envelope.unwrap_or_else(|| Envelope::of(PROGRAM, NAME))
    };
    for change in &body.changed {
        envelope.verdict.fail(format!("changed by somebody else while it was tried: {change}"));
    }
    Report { envelope, body: Body::Measured(body.into()) }
}

/// Makes the verdict void of settings that somebody else changed meanwhile.
fn void(body: &mut TrialsBody, settings: &[Setting], watched: &Watched) {
    body.changed = watched.changed().map(|(path, now)| format!("{path}: {now}")).collect();
    for (tried, setting) in body.settings.iter_mut().zip(settings) {
        let is_changed =
            |write: &WantedValue| watched.changed().any(|(path, _)| path == write.path);
        if setting.writes.iter().any(is_changed) {
            tried.verdict = TrialVerdict::Void;
        }
    }
}

/// The numbers of the settings that the kernel takes; there is one at least, and time for all.
fn probe(
    settings: &mut [Setting],
    args: &TuneExperimentArgs,
    journal: &mut JournalFile,
    boot: &str,
) -> Result<Vec<usize>> {
    settings.iter_mut().try_for_each(|setting| setting.probe(journal, boot))?;
    let tried: Vec<usize> = (0..settings.len()).filter(|&at| settings[at].is_taken).collect();
    if tried.is_empty() {
        bail!("the plan has no runtime setting that the kernel takes: punctual tune plan");
    }
    let (measured, parts) = measured_parts(args);
    let least = Span::from_ns(tuning::least(tried.len()).as_ns() / measured * parts);
    if args.duration.0 < least {
        bail!(
            "--duration {}: {} {} at least {}; try fewer with --only",
            format::long(args.duration.0.as_ns() as f64),
            counted(tried.len()),
            if tried.len() == 1 { "takes" } else { "take" },
            format::long(least.as_ns() as f64)
        );
    }
    Ok(tried)
}

/// A setting of the plan: one name, one file or several.
struct Setting {
    knob: String,
    writes: Vec<WantedValue>,
    refused: Vec<String>,
    /// True where the kernel takes any of it.
    is_taken: bool,
}

impl Setting {
    /// Applies it for a moment: what the kernel refuses is known before anything is measured.
    fn probe(&mut self, journal: &mut JournalFile, boot: &str) -> Result<()> {
        let (mut taken, mut refused) = (false, Vec::new());
        tuning::apply(&self.writes, &mut MachineFiles::live(), journal, boot, |step| {
            match step.outcome {
                StepOutcome::Applied => taken = true,
                StepOutcome::Already => {}
                _ => refused.push(applied_line(&step)),
            }
        })?;
        (self.is_taken, self.refused) = (taken, refused);
        revert(journal, boot)
    }
}

/// The runtime settings of a plan by name, in its order.
fn settings(plan: &TuningPlan) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    for PlannedWrite { step, path, value } in plan.writes() {
        let write = WantedValue::new(path, value);
        match settings.iter_mut().find(|known| known.knob == step.knob) {
            Some(known) => known.writes.push(write),
            None => settings.push(Setting {
                knob: step.knob.clone(),
                writes: vec![write],
                refused: Vec::new(),
                is_taken: false,
            }),
        }
    }
    settings
}

/// The loop: SCHED_FIFO, asleep between releases, on the first of the CPUs.
fn planned(
    args: &TuneExperimentArgs,
    machine: &TunedMachine,
    live: &experiment::Machine,
) -> Result<PlannedLoops> {
    let cpu = machine.scope.cpus.iter().next().unwrap_or_default().to_string();
    let choices = LoopChoices {
        cpu: Some(&cpu),
        period: &[parse::Duration(args.period.0)],
        duration: args.duration.0,
        policy: PolicyName::Fifo,
        priority: PRIORITY,
        wait: WaitKind::Sleep,
        phase: Phase::At(0),
        load: &args.load,
    };
    choices.plan(&live.measuring)
}

/// Applies what helps, for `tune revert` to put back: the names of what is applied, and the error
/// that ended it.
fn keep<'a>(
    helpful: impl Iterator<Item = &'a Setting>,
    args: &TuneExperimentArgs,
    journal: &mut JournalFile,
    boot: &str,
) -> (Vec<String>, Option<Error>) {
    let mut kept = Vec::new();
    for setting in helpful {
        let mut is_applied = false;
        let done =
            tuning::apply(&setting.writes, &mut MachineFiles::live(), journal, boot, |step| {
                is_applied |= matches!(step.outcome, StepOutcome::Applied | StepOutcome::Already);
                if !args.output.are_some() {
                    show(applied_line(&step));
                }
            });
        kept.extend(is_applied.then(|| setting.knob.clone()));
        if let Err(why) = done {
            return (kept, Some(why.into()));
        }
    }
    (kept, None)
}

/// The part of the result that only this command has.
fn body(
    args: &TuneExperimentArgs,
    machine: &TunedMachine,
    (settings, tried): (&[Setting], &[usize]),
    trials: &TuningTrials,
) -> TrialsBody {
    let row = |(at, setting): (usize, &Setting)| {
        let trial = tried.iter().position(|&number| number == at).map(|at| &trials.settings[at]);
        let verdict = trial.map_or(TrialVerdict::Refused, TrialVerdict::of);
        TriedSetting {
            knob: setting.knob.clone(),
            writes: setting
                .writes
                .iter()
                .map(|write| format!("{} {}", write.path, write.value))
                .collect(),
            refused: setting.refused.clone(),
            first: trial.and_then(|trial| trial.first.clone()),
            again: trial.and_then(|trial| trial.again.clone()),
            verdict,
            causes: Vec::new(),
        }
    };
    TrialsBody {
        cpu: machine.scope.cpus.iter().next().unwrap_or_default(),
        period_ns: Span::as_ns(args.period.0).unsigned_abs(),
        load: args.load.to_string(),
        quantile: match args.tail {
            CountedTail::Quantile(p) => Some(p),
            CountedTail::Above(_) => None,
        },
        threshold_ns: trials.threshold_ns,
        confidence: punctual_analysis::claim::bound::CONFIDENCE,
        settings: settings.iter().enumerate().map(row).collect(),
        together: trials.together.clone(),
        kept: Vec::new(),
        changed: Vec::new(),
        state: args.state.state.display().to_string(),
        blame: None,
        sentence: None,
    }
}

/// A part of the experiment in which causes were recorded: sets of settings, and the run of each.
struct RecordedPart {
    sets: Vec<Vec<usize>>,
    runs: Vec<Run>,
}

impl RecordedPart {
    /// The run of a set.
    fn run(&self, set: &[usize]) -> Option<&Run> {
        self.sets.iter().zip(&self.runs).find(|(known, _)| *known == set).map(|(_, run)| run)
    }
}

/// Measures sets of settings in blocks.
struct Bench<'a> {
    live: &'a experiment::Machine,
    plan: PeriodicPlan,
    choice: Choice,
    loads: Vec<LoadSpec>,
    settings: &'a [Setting],
    /// The numbers of those that are tried.
    tried: &'a [usize],
    journal: &'a mut JournalFile,
    boot: &'a str,
    watched: Watched,
    rng: Rng,
    /// The envelope of the first measurement, with the warnings of all.
    envelope: Option<Envelope>,
    /// The error that ended a measurement: what was found before it counts.
    trouble: Option<Error>,
    /// The way that causes are recorded; `None` for not at all.
    blame: Option<BlameWhen>,
    /// The parts in which they were, in their order.
    parts: Vec<RecordedPart>,
    /// The recording in the last of those parts, with its price.
    recording: Option<BlameRecording>,
}

impl Bench<'_> {
    /// The recording of causes in a part, and the threshold of late wakes then. The part that finds
    /// the threshold has no others to be held against; but where recording makes loops later, it
    /// must be later by the same.
    fn causes(&self, sets: &SettingSets) -> Option<CauseRecording> {
        let over = sets.threshold_ns.map(|ns| LateThreshold::Above(ns.max(0).unsigned_abs()));
        match (self.blame?, over) {
            (when, Some(late)) => Some(CauseRecording::over(when, late)),
            (BlameWhen::Asked, None) => Some(CauseRecording::usual(BlameWhen::Asked)),
            _ => None,
        }
    }
}

impl Measure for Bench<'_> {
    type Error = Error;

    fn measure(&mut self, sets: &SettingSets) -> Result<Option<Vec<LatenessSeries>>> {
        let name = |set: &Vec<usize>| match set.as_slice() {
            [] => "none".to_owned(),
            [only] => self.settings[self.tried[*only]].knob.clone(),
            several => format!("{} together", several.len()),
        };
        let condition = |set: &Vec<usize>| Condition {
            name: name(set),
            wait: None,
            library: None,
            loads: self.loads.clone(),
        };
        let conditions: Vec<Condition> = sets.sets.iter().map(condition).collect();
        let names: Vec<String> =
            conditions.iter().map(|condition| condition.name.clone()).collect();
        let order = order(sets, &mut self.rng);
        let plan =
            PeriodicPlan { conditions, blocks: split(&order, sets.length), ..self.plan.clone() };
        let writes = |set: &Vec<usize>| -> Vec<WantedValue> {
            let writes = |&at: &usize| self.settings[self.tried[at]].writes.clone();
            set.iter().flat_map(writes).collect()
        };
        let writes = sets.sets.iter().map(writes).collect();
        let causes = self.causes(sets);
        let journal = (&mut *self.journal, self.boot);
        let mut changes = Changes::new(writes, journal, &mut self.watched);
        let (machine, choice, args) = (self.live, self.choice.clone(), &ReportArgs::default());
        let context = LoopContext { name: NAME, machine, choice, args };
        let loops = LoopExperiment {
            causes,
            changes: Some(&mut changes),
            ..LoopExperiment::new(context, plan)
        };
        let measured = loops.run()?;
        let trouble = changes.into_failure().or(measured.trouble);
        let mut envelope = measured.envelope;
        envelope.incomplete |= trouble.is_some();
        self.trouble = trouble;
        let incomplete = envelope.incomplete;
        match &mut self.envelope {
            Some(first) => first.take_in(envelope),
            None => self.envelope = Some(envelope),
        }
        if incomplete {
            return Ok(None);
        }
        if let Some(recording) = measured.loops.blame.filter(|_| sets.threshold_ns.is_some()) {
            self.recording = Some(recording);
            let (sets, runs) = (sets.sets.clone(), measured.loops.judged.runs);
            self.parts.push(RecordedPart { sets, runs });
        }
        let mut recorded = measured.recorded.iter();
        let series = |_: &String| {
            let first = recorded.next().and_then(|run| run.series().first());
            first.cloned().unwrap_or_default()
        };
        Ok(Some(names.iter().map(series).collect()))
    }
}

/// Each set once in every round, in an order of its own.
fn order(sets: &SettingSets, rng: &mut Rng) -> Vec<usize> {
    let mut blocks = Vec::new();
    for _ in 0..sets.rounds {
        let mut round: Vec<usize> = (0..sets.sets.len()).collect();
        for last in (1..round.len()).rev() {
            round.swap(last, (rng.bits() % (last as u64 + 1)) as usize);
        }
        blocks.extend(round);
    }
    blocks
}
