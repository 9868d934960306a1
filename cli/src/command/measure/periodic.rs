//! `punctual measure periodic`: the periodic experiment with every choice open.
//!
//! One loop for each CPU and period, all at once; the shortest period has the highest priority
//! (rate-monotonic, as LinuxCNC's base and servo threads).

use std::path::PathBuf;

use anyhow::{Error, Result};
use punctual_lab::load::Loads;
use punctual_lab::periodic::PeriodicPlan;
use punctual_report::{LoopsBody, PeriodicBody, Question, Report};

use crate::args::{
    BlameWord, CausesArgs, CpusArgs, Detail, LearnArgs, LiveArgs, PeriodsArgs, PlanArgs,
    PolicyName, ReportArgs, RootArgs, StopArgs, WaitName,
};
use crate::comparison::baseline::{BaselineArgs, BaselineUse};
use crate::experiment::choices::{LoopChoices, PlannedLoops, blocks, wait_kind};
use crate::experiment::claims::{self, PlannedReport};
use crate::experiment::follow::FollowedClock;
use crate::experiment::loops::{CauseRecording, Judging, LoopContext, LoopExperiment};
use crate::experiment::{self, Machine};
use crate::measuring::{FinishedMeasuring, Measurement};
use crate::output::{self, Opened};
use crate::parse::{self, FollowName, Phase};
use crate::program::PROGRAM;
use crate::question::{self, QuestionArgs};
use crate::stored;

/// The experiment's name in results.
const NAME: &str = "measure periodic";

/// `punctual measure periodic`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    cpus: CpusArgs,
    #[command(flatten)]
    periods: PeriodsArgs,
    #[command(flatten)]
    question: QuestionArgs,
    /// How long to measure, in all
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// The scheduling policy to request
    #[arg(long, value_enum, default_value = "fifo")]
    policy: PolicyName,
    /// The priority to request, as the kernel counts: 98 is the highest, for the watchdog uses 99
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: u8,
    /// How to wait for a release
    #[arg(long, value_enum, default_value = "sleep")]
    wait: WaitName,
    /// For --wait fixed: how long before the release the sleep ends [default: 125us]; for --wait
    /// rearm: the interval of re-arming
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse::duration)]
    margin: Option<parse::Duration>,
    /// For --wait adaptive: the share of the CPU that waiting may take
    #[arg(
        long,
        value_name = "SHARE",
        default_value = parse::BUDGET,
        value_parser = parse::share
    )]
    budget: f64,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: zero, quiet (away from
    /// the kernel's tick) or a duration
    #[arg(long, default_value = "zero", allow_hyphen_values = true)]
    phase: Phase,
    /// Align the grid with another clock than CLOCK_MONOTONIC and follow it: tai, realtime or a PTP
    /// device such as /dev/ptp0; --phase is then the offset on that clock
    #[arg(long, value_name = "CLOCK")]
    follow: Option<FollowName>,
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    #[arg(help = parse::loads_help(), long_help = parse::loads_long_help())]
    load: Loads,
    /// Write every sample to FILE, for 'punctual analyse'; a recording that
    /// is there is replaced
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    stop: StopArgs,
    #[command(flatten)]
    live: LiveArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    learn: LearnArgs,
    #[command(flatten)]
    causes: CausesArgs,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    baseline: BaselineArgs,
}

impl Args {
    /// Measures, unless `--plan` asks for what the claims take alone.
    pub(super) fn measurement(&self) -> Result<Measurement> {
        let machine = Machine::of(self.root.path())?;
        let spec = self.question.spec();
        let periods = self.question.periods_to_run(&self.periods.period).map_err(Error::msg)?;
        let options = self.question.options(&self.periods.period);
        let choices = LoopChoices {
            cpu: self.cpus.cpu.as_deref(),
            period: &periods,
            duration: self.duration.0,
            policy: self.policy,
            priority: self.priority,
            wait: wait_kind(self.wait, self.margin, self.budget)?,
            phase: self.phase,
            load: &self.load,
        };
        let PlannedLoops { mut plan, choice } = choices.plan(&machine.measuring)?;
        let follow =
            self.follow.as_ref().map(|clock| FollowedClock::open(clock, self.phase)).transpose()?;
        self.report.output().distinct(self.samples.as_deref())?;
        let gate = BaselineUse::open(&self.baseline, &machine.facts, machine.foreign.is_some())?;
        gate.spare(&self.report.output())?;
        let clock = follow.as_ref().map(|target| target.name.as_str());
        gate.refuse_others(&experiment::loops::planned(
            &plan,
            false,
            self.report.keep_cold,
            clock,
        ))?;
        let outputs = self.report.output().open()?;
        let conditions = plan.conditions.len();
        let plan_of =
            |duration| PeriodicPlan { blocks: blocks(conditions, duration), ..plan.clone() };
        let plans = claims::plans(&self.report, &self.plan, self.duration.0, false, &plan_of);
        if self.plan.plan {
            let loops = LoopsBody { plans, ..LoopsBody::default() };
            let report = Report::new(PROGRAM, NAME, PeriodicBody { loops, compare: None });
            let (duration, announced) = (self.duration.0, claims::measuring(self.duration.0));
            let planned = PlannedReport { report, duration, announced, outputs };
            return Ok(Measurement::Planned(Box::new(planned)));
        }
        claims::announce(&plans, self.duration.0);
        let placed = experiment::settle(&mut plan.streams, self.phase)?;
        // A night's recording is not replaced without a word.
        let replaced =
            self.samples.as_ref().filter(|path| stored::is_samples(path).unwrap_or(false));
        if let Some(path) = replaced {
            output::message(&format!(
                "{}: a recording is there, which this one replaces",
                path.display()
            ));
        }
        let samples = self.samples.as_deref().map(Opened::at).transpose()?;
        let question = Question {
            command: Some(("punctual measure periodic", options.as_str())),
            ..question::question(spec.as_ref())
        };
        let causes = self.causes.when(BlameWord::Off, gate.is_used());
        let context = LoopContext { name: NAME, machine: &machine, choice, args: &self.report };
        let loops = LoopExperiment {
            learn: self.learn,
            live: self.live.live,
            causes: causes.map(CauseRecording::usual),
            plans,
            samples,
            follow,
            stop_over: self.stop.over(),
            judging: Some(Judging { question, gate: self.question.is_gate() }),
            notes: machine.foreign.iter().cloned().chain(placed).collect(),
            ..LoopExperiment::new(context, plan)
        };
        let measured = loops.run()?;
        let body = PeriodicBody { loops: measured.loops, compare: None };
        let mut report = Report { envelope: measured.envelope, body: body.into() };
        let uncompared = gate.judge(&mut report, &measured.recorded);
        let trouble = measured.trouble.or(uncompared);
        Ok(Measurement::Finished(Box::new(FinishedMeasuring {
            report,
            outputs,
            detail: self.report.detail(Detail::Short),
            baseline: Some((gate, measured.recorded)),
            trouble,
        })))
    }
}
