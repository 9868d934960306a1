//! The life that experiments of the lab share, from arguments to a report; it writes none.
//!
//! An experiment is a file in `command/measure` that implements [`Measuring`] for its arguments;
//! `command/blame.rs` is one more.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow, bail};
use punctual_host::choose::{helper_cpu, parse_cpus};
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::experiment::{Experiment, ExperimentEnd};
use punctual_lab::load::{LoadReport, LoadSpec, Loads};
use punctual_lab::response::Competitor;
use punctual_os::scheduler::SchedPolicy;
use punctual_report::measured::Measured;
use punctual_report::{self as report, About, Body, Choice, EndedBy, Load, Report};

use crate::args::{Detail, PolicyName};
use crate::comparison::RecordedRun;
use crate::comparison::baseline::BaselineUse;
use crate::experiment::claims::PlannedReport;
use crate::experiment::{self, Machine, condition_name, words};
use crate::output::{OutputArgs, Outputs};
use crate::progress::Line;
use crate::unthrottled::Unthrottled;

/// Arguments that make an experiment of the lab, and what becomes of its outcome.
pub(crate) trait Measuring {
    /// Its name in results.
    const NAME: &'static str;
    /// True where a line shows its progress on a terminal: false for an experiment that reports
    /// none.
    const HAS_PROGRESS: bool = true;
    /// The experiment of the lab.
    type Experiment: Experiment;

    /// Where the result goes.
    fn output(&self) -> &OutputArgs;

    /// The part of the result that is shown.
    fn detail(&self) -> Detail {
        Detail::Long
    }

    /// The captured machine whose facts the result names; `None` for this one.
    fn captured(&self) -> Option<&Path> {
        None
    }

    /// The experiment for a machine. Nothing is changed or written yet.
    ///
    /// # Errors
    /// In one line, which option asks for what cannot be.
    fn plan(&self, machine: &Machine) -> Result<Planned<Self::Experiment>>;

    /// Switches throttling off where that was requested; it is on again after the measurement.
    fn unthrottle(&self, _: &Self::Experiment) -> Result<Option<Unthrottled>> {
        Ok(None)
    }

    /// Writes the result where else it goes.
    ///
    /// # Errors
    /// It could not be written.
    fn keep(&self, _: &Report) -> Result<()> {
        Ok(())
    }

    /// The part of the result that only this experiment has, and what is said with it.
    fn body(&self, measured: Outcome<'_, Self::Experiment>) -> MeasuredBody;
}

/// The policies of the two stages that answer, and a competitor of the second.
#[derive(Debug, clap::Args)]
pub(crate) struct StageArgs {
    /// The priority of stage 1, SCHED_FIFO, and of the thread that raises stimuli
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
    /// The scheduling policy of stage 2
    #[arg(long, value_enum, value_name = "POLICY", default_value = "fifo")]
    stage2: PolicyName,
    /// The priority of stage 2
    #[arg(
        long,
        value_name = "PRIORITY",
        default_value_t = 70,
        value_parser = clap::value_parser!(u8).range(1..=98)
    )]
    stage2_priority: u8,
    /// Let a thread with the policy and priority of stage 2 run on its CPU for seven tenths of the
    /// time: the paper's load of equal priority
    #[arg(
        long,
        value_enum,
        value_name = "KIND",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "computes"
    )]
    competitor: Option<CompetitorName>,
}

impl StageArgs {
    /// The policy of stage 1.
    pub(crate) fn first(&self) -> SchedPolicy {
        PolicyName::Fifo.with(self.priority)
    }

    /// The policy of stage 2.
    pub(crate) fn second(&self) -> SchedPolicy {
        self.stage2.with(self.stage2_priority)
    }

    /// The work of a competing thread of the same policy; `None`: there is none.
    pub(crate) fn competitor(&self) -> Option<Competitor> {
        self.competitor.map(|name| match name {
            CompetitorName::Computes => Competitor::Computes,
            CompetitorName::Polygons => Competitor::Polygons,
        })
    }
}

/// The work of a competitor, on the command line.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum CompetitorName {
    /// Computes 14 ms at a stretch
    Computes,
    /// Draws polygons, and gives way to threads of its priority after each
    Polygons,
}

/// An experiment that is chosen.
pub(crate) struct Planned<E> {
    /// The experiment.
    pub(crate) experiment: E,
    /// The CPUs, and why those.
    pub(crate) choice: Choice,
}

/// The outcome of an experiment.
pub(crate) struct Outcome<'a, E: Experiment> {
    /// Its figures.
    pub(crate) figures: E::Outcome,
    /// The reports of the loads of each condition.
    loads: Vec<Vec<LoadReport>>,
    /// True where it came to its end.
    pub(crate) is_whole: bool,
    /// The time that it ran, with its setup.
    pub(crate) took: Duration,
    /// The facts of the machine that measured.
    pub(crate) facts: &'a MachineFacts,
}

impl<E: Experiment> Outcome<'_, E> {
    /// The loads of all conditions, as results have them.
    pub(crate) fn load_rows(&self) -> Vec<Load> {
        self.loads.iter().flat_map(|loads| report::loads(loads)).collect()
    }
}

/// The part of a result that an outcome gives.
pub(crate) struct MeasuredBody {
    /// The part of the result that only this experiment has.
    pub(crate) body: Measured,
    /// Warnings for a reader.
    pub(crate) warnings: Vec<String>,
    /// The release that ended it before its time, in words: then it fails, and is kept.
    pub(crate) late: Option<String>,
    /// The reason why it fails although it has a result.
    pub(crate) trouble: Option<Error>,
}

impl MeasuredBody {
    /// A result without more to say.
    pub(crate) fn of(body: impl Into<Measured>) -> Self {
        Self { body: body.into(), warnings: Vec::new(), late: None, trouble: None }
    }

    /// Ended by a release that was later than may be.
    pub(crate) fn ended_by(self, late: Option<String>) -> Self {
        Self { late, ..self }
    }

    /// The result with the trouble that occurred beside it, and warnings for a reader.
    pub(crate) fn with(self, trouble: Option<Error>, warnings: Vec<String>) -> Self {
        Self { trouble, warnings, ..self }
    }
}

/// The outcome of a command that measures, for the command line to write.
pub(crate) enum Measurement {
    /// Nothing was measured: the report has what its claims take.
    Planned(Box<PlannedReport>),
    /// It is over, and has a result.
    Finished(Box<FinishedMeasuring>),
}

/// A measurement that is over: what is to be written, and where.
pub(crate) struct FinishedMeasuring {
    /// Its result.
    pub(crate) report: Report,
    /// Where that goes.
    pub(crate) outputs: Outputs,
    /// The part of the result that is shown.
    pub(crate) detail: Detail,
    /// The runs that may be kept as a baseline once they are written; `None` where none can be.
    pub(crate) baseline: Option<(BaselineUse, Vec<RecordedRun>)>,
    /// The reason why it fails although it has a result.
    pub(crate) trouble: Option<Error>,
}

/// The life of an experiment: chosen, its output opened, measured. Writes nothing but what the
/// experiment keeps elsewhere.
///
/// # Errors
/// Nothing was measured.
pub(crate) fn measured<M: Measuring>(args: &M) -> Result<Measurement> {
    let machine = Machine::of(args.captured())?;
    let facts = &machine.measuring;
    let Planned { experiment, choice } = args.plan(&machine)?;
    let outputs = args.output().open()?;
    let unthrottled = args.unthrottle(&experiment)?;
    let (started, begun) = (jiff::Timestamp::now(), Instant::now());
    let finished = if M::HAS_PROGRESS {
        experiment::run(experiment, facts, &mut Line::new())
    } else {
        experiment::run(experiment, facts, &mut ())
    };
    let took = begun.elapsed();
    // Whatever came of it, the machine is as before.
    let as_before = unthrottled.map_or(Ok(()), Unthrottled::end);
    let finished = finished.map_err(words::error)?;
    let no_load = match &finished.end {
        ExperimentEnd::Load(why) => Some(anyhow!("{why}")),
        _ => None,
    };
    let mut envelope = experiment::envelope(M::NAME, &machine, choice, started, &finished);
    let outcome = Outcome {
        figures: finished.outcome,
        loads: finished.loads,
        is_whole: finished.end == ExperimentEnd::Finished,
        took,
        facts,
    };
    let MeasuredBody { body, warnings, late, trouble } = args.body(outcome);
    envelope.warn_first(machine.foreign.clone());
    envelope.warn_of(warnings);
    if let Some(why) = late {
        envelope.end_early(EndedBy::Late);
        envelope.verdict.fail_about(About::StopOver, why);
    }
    if envelope.ended_by == Some(EndedBy::Watchdog) {
        envelope.verdict.fail(EndedBy::brief(envelope.ended_by));
    }
    let report = Report { envelope, body: Body::Measured(body) };
    let kept = args.keep(&report);
    Ok(Measurement::Finished(Box::new(FinishedMeasuring {
        report,
        outputs,
        detail: args.detail(),
        baseline: None,
        trouble: kept.err().or(as_before.err()).or(trouble).or(no_load),
    })))
}

/// The CPU of an experiment that measures one.
#[derive(Debug, clap::Args)]
pub(crate) struct CpuArgs {
    /// The CPU to measure on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
}

impl CpuArgs {
    /// The CPU, and why that; `measured` says what is done on one CPU alone, for a refusal.
    pub(crate) fn choose(&self, machine: &Machine, measured: &str) -> Result<(u32, Choice)> {
        experiment::one_cpu(self.cpu.as_deref(), &machine.measuring, measured)
    }
}

/// The CPU that raises stimuli: as requested, else another one than `cpu`, where there is one.
pub(crate) fn stimulus_cpu(requested: Option<&str>, cpu: u32, facts: &MachineFacts) -> Result<u32> {
    match requested {
        Some(text) => match parse_cpus(text, facts) {
            Ok(cpus) if cpus.len() == 1 => Ok(cpus.first().unwrap_or(cpu)),
            Ok(_) => bail!("--stimulus-cpu {text}: stimuli are raised on one CPU"),
            Err(why) => bail!("--stimulus-cpu {text}: {why}"),
        },
        None => Ok(helper_cpu(&CpuList::single(cpu), facts).unwrap_or(cpu)),
    }
}

/// The error of a measurement whose source was lost, although it has a result.
pub(crate) fn lost_source() -> Error {
    anyhow!("the source was lost while it was measured; the result has what there was")
}

/// The idle machine, then each set of loads that runs in turn.
pub(crate) fn with_idle(load: &Loads) -> Vec<(String, Vec<LoadSpec>)> {
    let turns = load.turns().into_iter().filter(|loads| !loads.is_empty());
    let loaded = turns.map(|loads| (condition_name(&loads), loads));
    std::iter::once((condition_name(&[]), Vec::new())).chain(loaded).collect()
}
