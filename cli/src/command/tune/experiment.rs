//! `punctual tune experiment`: each runtime setting of the plan tried alone, those that help kept.
//!
//! What is tried when, and what counts, is `lab::tuning`'s; here settings are applied and put back,
//! block by block, around the loops that `measure periodic` runs too.

use anyhow::{Context, Error, Result, bail};
use punctual::wait_policy::WaitKind;
use punctual_analysis::rng::Rng;
use punctual_core::time::Span;
use punctual_host::plan::TuningPlan;
use punctual_lab::load::LoadSpec;
use punctual_lab::tuning::{
    self, CountedTail, MachineFiles, StepOutcome, TuningTrials, WantedValue,
};
use punctual_os::signal;

use super::bench::Bench;
use super::conditions::Watched;
use super::{Machine, apply, boot_of, show};
use crate::args::{PolicyName, TuneExperimentArgs};
use crate::command;
use crate::command::measure::{LoopChoices, PlannedLoops};
use crate::exit::Exit;
use crate::experiment::{self, PRIORITY};
use crate::format;
use crate::output::{JournalFile, JournalName, SettingsLock};
use crate::parse::{self, Phase};
use crate::report::trials::{TrialVerdict, TrialsBody, TriedSetting};
use crate::report::{Body, Envelope, Report};

/// The subcommand's name.
pub(super) const NAME: &str = "tune experiment";
/// Seeds the order of blocks, the same in every run.
const SEED: u64 = 20_261_123;

/// Runs the subcommand.
pub(super) fn run(args: &TuneExperimentArgs) -> Result<Exit> {
    if args.scope.root.root.is_some() {
        bail!("--root: settings are tried on this machine only");
    }
    let machine = Machine::read(&args.scope)?;
    machine.leaves_cpus(&args.scope)?;
    let mut settings = settings(&machine.plan(&args.only)?);
    let outputs = args.output.open()?;
    let (state, boot) = (&args.state.state, boot_of(&machine.root)?);
    let mut lock = SettingsLock::take(None, &boot, NAME)?;
    let mut journal = JournalFile::begin(&mut lock, state, JournalName::EXPERIMENT)?;
    // Before anything is applied, if only for a moment: then it is put back, whatever comes.
    signal::catch_stop().context("cannot catch SIGINT")?;
    revert(&mut journal, &boot)?;
    // Nothing is measured for hours that cannot be kept then.
    let keeping = || JournalFile::lock(&lock, state, JournalName::SETTINGS);
    let mut keeping = (!args.dry_run).then(keeping).transpose()?;
    let mut watched = Watched::of(settings.iter().flat_map(|setting| &setting.writes));
    let tried = probe(&mut settings, args, &mut journal, &boot)?;
    watched.look();
    let here = experiment::Machine::of(None)?;
    let loads: Vec<LoadSpec> = args.load.turns().into_iter().flatten().collect();
    let PlannedLoops { plan, choice } = planned(args, &machine, &here)?;
    let mut bench = Bench {
        here: &here,
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
    };
    let wanted = (args.tail, args.duration.0);
    let trials = tuning::try_settings(tried.len(), wanted, &mut bench);
    let Bench { envelope, trouble, mut watched, .. } = bench;
    // Whatever became of it, nothing stays that was only tried.
    let mut trouble = revert(&mut journal, &boot).err().or(trouble);
    watched.look();
    let trials = match trials {
        Ok(trials) => trials,
        Err(why) => return Err(trouble.unwrap_or(why)),
    };
    let mut body = body(args, &machine, (&settings, &tried), &trials);
    void(&mut body, &settings, &watched);
    // As of an interrupted run, nothing is kept where somebody else had a hand in it, or where
    // something is not as before.
    let is_clean = body.changed.is_empty() && trouble.is_none();
    if let Some(journal) = keeping.as_mut().filter(|_| is_clean) {
        let helpful = trials.kept().into_iter().map(|at| &settings[tried[at]]);
        (body.kept, trouble) = keep(helpful, args, journal, &boot);
    }
    let report = report(envelope, body);
    command::write(&report, outputs)?;
    Exit::after(&report, trouble)
}

fn report(envelope: Option<Envelope>, body: TrialsBody) -> Report {
    let mut envelope =
        Envelope { experiment: NAME.to_owned(), ..envelope.unwrap_or_else(|| Envelope::of(NAME)) };
    let reason = |change: &String| format!("changed by somebody else while it was tried: {change}");
    envelope.verdict.reasons.extend(body.changed.iter().map(reason));
    envelope.verdict.ok &= body.changed.is_empty();
    Report { envelope, body: Body::Measured(body.into()) }
}

/// Says of no setting that somebody else changed meanwhile what it does.
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
    let least = tuning::least(tried.len());
    if args.duration.0 < least {
        bail!(
            "--duration {}: {} settings take at least {}; try fewer with --only",
            format::long(args.duration.0.as_ns() as f64),
            tried.len(),
            format::long(least.as_ns() as f64)
        );
    }
    Ok(tried)
}

/// A setting of the plan: one name, one file or several.
pub(super) struct Setting {
    pub(super) knob: String,
    pub(super) writes: Vec<WantedValue>,
    refused: Vec<String>,
    /// Whether the kernel takes any of it.
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
                _ => refused.push(apply::words(&step)),
            }
        })?;
        (self.is_taken, self.refused) = (taken, refused);
        revert(journal, boot)
    }
}

/// The runtime settings of a plan by name, in its order.
fn settings(plan: &TuningPlan) -> Vec<Setting> {
    let mut all: Vec<Setting> = Vec::new();
    for (step, path, value) in plan.writes() {
        let write = WantedValue::new(path, value);
        match all.iter_mut().find(|known| known.knob == step.knob) {
            Some(known) => known.writes.push(write),
            None => all.push(Setting {
                knob: step.knob.clone(),
                writes: vec![write],
                refused: Vec::new(),
                is_taken: false,
            }),
        }
    }
    all
}

/// The loop: SCHED_FIFO, asleep between releases, on the first of the CPUs.
fn planned(
    args: &TuneExperimentArgs,
    machine: &Machine,
    here: &experiment::Machine,
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
    choices.plan(&here.here)
}

/// Puts back what is applied; an error where something is not as before.
pub(super) fn revert(journal: &mut JournalFile, boot: &str) -> Result<()> {
    let mut left = Vec::new();
    tuning::revert(&mut MachineFiles::live(), journal, boot, |step| {
        if step.outcome.is_open() {
            left.push(super::revert::words(&step.entry, &step.outcome));
        }
    })?;
    if !left.is_empty() {
        let left = left.join("; ");
        bail!("not put back: {left}; punctual tune revert, with the same --state, tries again");
    }
    Ok(())
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
                    show(apply::words(&step));
                }
            });
        kept.extend(is_applied.then(|| setting.knob.clone()));
        if let Err(why) = done {
            return (kept, Some(why.into()));
        }
    }
    (kept, None)
}

/// The result.
fn body(
    args: &TuneExperimentArgs,
    machine: &Machine,
    (settings, tried): (&[Setting], &[usize]),
    trials: &TuningTrials,
) -> TrialsBody {
    let one = |(at, setting): (usize, &Setting)| {
        let trial = tried.iter().position(|&of| of == at).map(|at| &trials.settings[at]);
        let verdict = trial.map_or(TrialVerdict::Refused, TrialVerdict::of);
        TriedSetting {
            knob: setting.knob.clone(),
            writes: setting.writes.iter().map(|of| format!("{} {}", of.path, of.value)).collect(),
            refused: setting.refused.clone(),
            first: trial.and_then(|trial| trial.first.clone()),
            again: trial.and_then(|trial| trial.again.clone()),
            verdict,
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
        settings: settings.iter().enumerate().map(one).collect(),
        together: trials.together.clone(),
        kept: Vec::new(),
        changed: Vec::new(),
        state: args.state.state.display().to_string(),
    }
}
