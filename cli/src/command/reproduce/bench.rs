//! Where papers are measured: one CPU, the lab's experiments, and how long each may take.
//!
//! After an interrupt nothing more is measured: what is asked for then is `None`, and the result is
//! incomplete.

use std::sync::atomic::Ordering;

use anyhow::Result;
use punctual::RtThread;
use punctual::wait_policy::WaitKind;
use punctual_core::time::{Period, Span};
use punctual_host::choose::helper_cpu;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::accuracy::{AccuracyExperiment, AccuracyOutcome};
use punctual_lab::executive::{ExecutiveOutcome, RegistrationExperiment, RegistrationRow};
use punctual_lab::experiment::{ConditionChanges, Experiment};
use punctual_lab::load::{LoadReport, Loads};
use punctual_lab::periodic::Condition;
use punctual_lab::response::{ResponseExperiment, ResponseOutcome, SourceName};
use punctual_lab::saturation::{SaturationExperiment, SaturationOutcome};
use punctual_lab::timer::{Background, TimerExperiment, TimerOutcome};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::signal;

use crate::args::{LearnArgs, PolicyName, ReportArgs};
use crate::command::measure::{LoopChoices, blocks, executive_of};
use crate::command::tune::PlannedSettings;
use crate::experiment::{self, LoopExperiment, Machine, PRIORITY, words};
use crate::format;
use crate::parse::{self, Phase};
use crate::progress::Line;
use crate::report::reproduced::PaperFigure;
use crate::report::{Choice, EndedBy, Envelope, Run};

/// The subcommand's name.
const NAME: &str = "reproduce";
/// The priority of an application's stage.
pub(super) const APP_PRIORITY: u8 = 70;
/// What the measurements of one paper take together, about.
const PAPER_S: i64 = 100;
const QUICK_S: i64 = 16;

/// The end of the name of a condition that has the settings of a plan.
pub(super) const TUNED: &str = " tuned";

/// A loop under one condition: its name, how it waits, and the loads, as --load has them.
pub(super) type LoopCondition = (&'static str, WaitKind, &'static str);

/// What an experiment gave, and what the loads of each condition did.
pub(super) type WithLoads<T> = (T, Vec<Vec<LoadReport>>);

/// What measures for all papers.
pub(super) struct Bench<'a> {
    machine: &'a Machine,
    cpu: u32,
    choice: Choice,
    quick: bool,
    /// The paper that is measured.
    paper: &'static str,
    /// All loops, by paper, period and condition, and figures so far.
    runs: Vec<Run>,
    figures: Vec<PaperFigure>,
    /// Of the first measurement, with the warnings of all.
    envelope: Option<Envelope>,
    /// What conditions whose names end with [`TUNED`] have; none without --tune.
    settings: Option<PlannedSettings>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(machine: &'a Machine, (cpu, choice): (u32, Choice), quick: bool) -> Self {
        let (runs, figures, envelope, settings) = (Vec::new(), Vec::new(), None, None);
        Self { machine, cpu, choice, quick, paper: "", runs, figures, envelope, settings }
    }

    /// Measures with these settings too, where a paper tunes.
    pub(super) fn tune(&mut self, settings: PlannedSettings) {
        self.settings = Some(settings);
    }

    /// The settings that are tried, where --tune was given.
    pub(super) fn tuned(&self) -> Option<Vec<&str>> {
        Some(self.settings.as_ref()?.paths().collect())
    }

    /// What is known of the machine.
    pub(super) fn here(&self) -> &MachineFacts {
        &self.machine.here
    }

    /// A share of the time for one paper.
    pub(super) fn share(&self, share: f64) -> Span {
        let seconds = if self.quick { QUICK_S } else { PAPER_S };
        Span::from_ns((seconds as f64 * 1e9 * share) as i64)
    }

    /// The paper that is measured from now on.
    pub(super) fn begin(&mut self, paper: &'static str) {
        self.paper = paper;
    }

    /// Draws figures of the paper that is measured.
    pub(super) fn draw(&mut self, figures: impl IntoIterator<Item = PaperFigure>) {
        let drawn = figures.into_iter().filter(|figure| !figure.series.is_empty());
        self.figures.extend(drawn);
    }

    /// What the result has besides its rows: what every result has, the loops and the figures.
    pub(super) fn finish(self) -> (Envelope, Vec<Run>, Vec<PaperFigure>) {
        let mut envelope = self.envelope.unwrap_or_else(|| Envelope::of(NAME));
        if stopped() {
            envelope.end_early(EndedBy::Interrupt);
        }
        (envelope, self.runs, self.figures)
    }

    /// Takes in what every measurement says.
    fn keep(&mut self, mut next: Envelope) {
        next.warnings.extend(self.settings.iter().flat_map(PlannedSettings::warnings));
        match &mut self.envelope {
            Some(envelope) => envelope.take_in(next),
            None => self.envelope = Some(next),
        }
    }

    /// A loop under each condition, all together `length`; the runs in the order of conditions.
    /// `cold` cycles at the start of each block are left out.
    pub(super) fn loops(
        &mut self,
        period_ns: u64,
        conditions: &[LoopCondition],
        (length, cold): (Span, u32),
    ) -> Result<Vec<Run>> {
        if stopped() {
            return Ok(Vec::new());
        }
        let period = parse::Duration(Span::from_ns(period_ns.cast_signed()));
        let none = Loads::AtOnce(Vec::new());
        let cpu = self.cpu.to_string();
        let choices = LoopChoices {
            cpu: Some(&cpu),
            period: &[period],
            duration: length,
            policy: PolicyName::Fifo,
            priority: PRIORITY,
            wait: WaitKind::Sleep,
            phase: Phase::At(0),
            load: &none,
        };
        let mut plan = choices.plan(&self.machine.here)?.plan;
        plan.conditions.clear();
        for (name, wait, load) in conditions {
            let loads = Loads::parse(load).map_err(|why| anyhow::anyhow!("{load}: {why}"))?;
            let loads = loads.turns().into_iter().flatten().collect();
            plan.conditions.push(Condition { name: (*name).to_owned(), wait: Some(*wait), loads });
        }
        plan.blocks = blocks(conditions.len(), length);
        plan.cold = cold;
        let args = ReportArgs { keep_cold: cold == 0, ..ReportArgs::default() };
        let with: Vec<bool> = conditions.iter().map(|(name, ..)| name.ends_with(TUNED)).collect();
        let settings = self.settings.as_mut().filter(|_| with.contains(&true));
        let mut changes = settings.map(|settings| settings.changes(&with));
        let loops = LoopExperiment {
            name: NAME,
            plan,
            merge: false,
            learn: LearnArgs { relearn: true },
            machine: self.machine,
            choice: self.choice.clone(),
            args: &args,
            plans: Vec::new(),
            samples: None,
            follow: None,
            changes: changes.as_mut().map(|changes| changes as &mut dyn ConditionChanges),
            question: None,
            notes: Vec::new(),
        };
        let measured = loops.run()?;
        changes.and_then(|changes| changes.failed).map_or(Ok(()), Err)?;
        self.keep(measured.envelope);
        let runs = measured.loops.judged.runs;
        self.name(&runs, &format::period(period_ns));
        Ok(runs)
    }

    /// Keeps loops with their paper and period in their names.
    fn name(&mut self, runs: &[Run], period: &str) {
        let named = |run: &Run| Run {
            name: format!("{} {period} {}", self.paper, run.name),
            ..run.clone()
        };
        self.runs.extend(runs.iter().map(named));
    }

    /// What the designs of executives cost with these numbers of tasks.
    pub(super) fn executive(
        &mut self,
        sizes: &[u32],
        length: Span,
    ) -> Result<Option<ExecutiveOutcome>> {
        let experiment = executive_of(self.cpu, sizes.to_vec(), length);
        Ok(self.measure(experiment)?.map(|(outcome, _)| outcome))
    }

    /// Tasks that register at irregular times.
    pub(super) fn registration(&mut self) -> Result<Vec<RegistrationRow>> {
        let thread = RtThread::cpu(self.cpu).fifo(PRIORITY);
        Ok(self.measure(RegistrationExperiment { thread })?.map(|(of, _)| of).unwrap_or_default())
    }

    /// How exactly waits end.
    pub(super) fn accuracy(&mut self, duration: Span) -> Result<Option<AccuracyOutcome>> {
        let thread = RtThread::cpu(self.cpu).fifo(PRIORITY);
        Ok(self.measure(AccuracyExperiment { thread, duration })?.map(|(outcome, _)| outcome))
    }

    /// How late timers of these periods are, with this work behind and these loads beside.
    pub(super) fn timer(
        &mut self,
        periods_ns: &[u64],
        backgrounds: &[Background],
        (load, duration): (&str, Span),
    ) -> Result<Option<TimerOutcome>> {
        let loads = Loads::parse(load).map_err(|why| anyhow::anyhow!("{load}: {why}"))?;
        let measured = self.measure(TimerExperiment {
            thread: RtThread::cpu(self.cpu).fifo(PRIORITY),
            periods: periods_ns.iter().filter_map(|&ns| Period::from_ns(ns)).collect(),
            backgrounds: backgrounds.to_vec(),
            duration,
            loads: loads.turns().into_iter().flatten().collect(),
        })?;
        Ok(measured.map(|(outcome, _)| outcome))
    }

    /// How fast an eventfd is answered, idle and under `load`, each for `duration`; with stage 2 of
    /// this policy, and a competitor of the same where that is wanted.
    pub(super) fn response(
        &mut self,
        period: Period,
        load: Option<&str>,
        (second, competitor, duration): (SchedPolicy, bool, Span),
    ) -> Result<Option<WithLoads<ResponseOutcome>>> {
        let mut conditions = vec![("idle".to_owned(), Vec::new())];
        if let Some(load) = load {
            let loads = Loads::parse(load).map_err(|why| anyhow::anyhow!("{load}: {why}"))?;
            conditions.push((load.to_owned(), loads.turns().into_iter().flatten().collect()));
        }
        let (cpu, other) = (self.cpu, self.other_cpu());
        self.measure(ResponseExperiment {
            source: SourceName::default(),
            cpu,
            stimulus_cpu: other.unwrap_or(cpu),
            period,
            duration,
            first: SchedPolicy::Fifo(PRIORITY),
            second,
            competitor,
            conditions,
        })
    }

    /// The CPU that raises stimuli for the measured one; `None` on one CPU.
    pub(super) fn other_cpu(&self) -> Option<u32> {
        helper_cpu(&CpuList::single(self.cpu), &self.machine.here)
    }

    /// The highest frequencies of an eventfd that are served; `None` on one CPU.
    pub(super) fn saturation(&mut self, duration: Span) -> Result<Option<SaturationOutcome>> {
        let cpu = self.cpu;
        let Some(other) = self.other_cpu() else { return Ok(None) };
        let measured = self.measure(SaturationExperiment {
            source: SourceName::default(),
            cpu,
            stimulus_cpu: other,
            first: SchedPolicy::Fifo(PRIORITY),
            second: SchedPolicy::Fifo(APP_PRIORITY),
            duration,
            unthrottled: false,
        })?;
        Ok(measured.map(|(outcome, _)| outcome))
    }

    fn measure<E: Experiment>(&mut self, measured: E) -> Result<Option<WithLoads<E::Outcome>>> {
        if stopped() {
            return Ok(None);
        }
        let started = jiff::Timestamp::now();
        let finished = experiment::run(measured, &self.machine.here, &mut Line::new());
        let finished = finished.map_err(words::error)?;
        let choice = self.choice.clone();
        self.keep(experiment::envelope(NAME, self.machine, choice, started, &finished));
        Ok(Some((finished.outcome, finished.loads)))
    }
}

/// Whether an end was requested.
fn stopped() -> bool {
    signal::stop_flag().load(Ordering::Relaxed)
}
