//! `punctual reproduce`: the experiments of the papers that punctual builds on, on this machine.
//!
//! One file a paper: what it prints, what its own formula gives, what is measured here, and where
//! it errs. The measurements are the lab's.

mod ant;
mod linuxcnc;
mod maruti;
mod nist;

mod wince;

use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use clap::ValueEnum;
use punctual::RtThread;
use punctual_analysis::histogram::HistogramView;
use punctual_analysis::plot::bins;
use punctual_core::time::{Period, Span};
use punctual_engine::wait_policy::WaitKind;
use punctual_host::choose::helper_cpu;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::accuracy::{AccuracyExperiment, AccuracyOutcome, AccuracyRow};
use punctual_lab::executive::{
    ExecutiveOutcome, ExecutiveRow, RegistrationExperiment, RegistrationRow,
};
use punctual_lab::experiment::{ConditionChanges, Experiment};
use punctual_lab::load::{LoadReport, Loads};
use punctual_lab::periodic::Condition;
use punctual_lab::response::{ResponseExperiment, ResponseOutcome, SourceName};
use punctual_lab::saturation::{SaturationExperiment, SaturationOutcome};
use punctual_lab::timer::{Background, TimerExperiment, TimerOutcome, TimerRow};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::signal;

use crate::args::{LearnArgs, PolicyName, ReportArgs, StateArgs};
use crate::command::measure::{LoopChoices, blocks, executive_experiment};
use crate::command::tune::PlannedSettings;
use crate::command::tune::WorkloadName;
use crate::exit::Exit;
use crate::experiment::{self, LoopExperiment, Machine, PRIORITY, words};
use crate::output::OutputArgs;
use crate::parse::{self, Phase};
use crate::progress::Line;
use crate::report::reproduced::{PaperFigure, ReproduceBody, ReproducedRow};
use crate::report::{Choice, EndedBy, Envelope, Report, Run};
use crate::{command, format};

/// The papers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Paper {
    /// Timing jitter of real-time Linux, and its effect on motor control
    Nist,
    /// Tuning the kernel for LinuxCNC
    Linuxcnc,
    /// Benchmarking real-time determinism in Windows CE
    Wince,
    /// Sophisticated periodic execution control (AnT against ART-Linux)
    Ant,
    /// Temporal accuracy on the Pentium Pro (Maruti)
    Maruti,
}

/// `punctual reproduce`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReproduceArgs {
    /// The paper
    #[arg(value_enum, required_unless_present = "all", conflicts_with = "all")]
    paper: Option<Paper>,
    /// All papers, one after the other: about ten minutes
    #[arg(long)]
    all: bool,
    /// Shorter measurements: less than two minutes for all papers, half a minute for one
    #[arg(long)]
    quick: bool,
    /// linuxcnc: measure also with the runtime settings of 'tune plan --for step-generation',
    /// written before each of their blocks and put back after it
    #[arg(long)]
    tune: bool,
    #[command(flatten)]
    state: StateArgs,
    /// The CPU to measure on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Paper {
    /// Its short name.
    fn name(self) -> &'static str {
        match self {
            Self::Nist => "nist",
            Self::Linuxcnc => "linuxcnc",
            Self::Wince => "wince",
            Self::Ant => "ant",
            Self::Maruti => "maruti",
        }
    }

    /// Its rows, measured.
    fn rows(self, bench: &mut Bench<'_>) -> Result<Vec<ReproducedRow>> {
        match self {
            Self::Nist => nist::rows(bench),
            Self::Linuxcnc => linuxcnc::rows(bench),
            Self::Wince => wince::rows(bench),
            Self::Ant => ant::rows(bench),
            Self::Maruti => maruti::rows(bench),
        }
    }
}

/// Runs the subcommand.
pub(crate) fn run(args: &ReproduceArgs) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let (cpu, choice) =
        experiment::one_cpu(args.cpu.as_deref(), &machine.here, "papers are measured")?;
    let papers: Vec<Paper> = match args.paper {
        Some(paper) => vec![paper],
        None => Paper::value_variants().to_vec(),
    };
    let outputs = args.output.open()?;
    let mut bench = Bench::new(&machine, (cpu, choice), args.quick);
    if args.tune {
        bench.tune(PlannedSettings::of(cpu, WorkloadName::StepGeneration, &args.state)?);
    }
    let mut rows = Vec::new();
    for &paper in &papers {
        bench.begin(paper.name());
        rows.extend(paper.rows(&mut bench)?);
    }
    if rows.is_empty() {
        bail!("no paper was measured");
    }
    let papers = papers.into_iter().map(|paper| paper.name().to_owned()).collect();
    let (envelope, runs, figures) = bench.finish();
    if envelope.incomplete {
        rows = rows.into_iter().map(ReproducedRow::ended_early).collect();
    }
    let body = ReproduceBody { papers, quick: args.quick, rows, runs, figures };
    command::write(&Report { envelope, body: body.into() }, outputs)?;
    Ok(Exit::Fine)
}

/// The subcommand's name.
const NAME: &str = "reproduce";
/// The priority of an application's stage.
const APP_PRIORITY: u8 = 70;
/// What the measurements of one paper take together, about.
const PAPER_S: i64 = 100;
const QUICK_S: i64 = 16;

/// A loop under one condition.
#[derive(Clone, Copy)]
struct LoopCondition {
    /// Its name in results.
    name: &'static str,
    /// How the loop waits.
    wait: WaitKind,
    /// The loads, as --load has them.
    load: &'static str,
    /// Whether the settings of --tune hold while it runs; false without --tune.
    tuned: bool,
}

impl LoopCondition {
    /// Of a machine as it is, without loads.
    const fn idle(name: &'static str, wait: WaitKind) -> Self {
        Self { name, wait, load: "none", tuned: false }
    }
}

/// What an experiment gave, and what the loads of each condition did.
type WithLoads<T> = (T, Vec<Vec<LoadReport>>);

/// What measures for all papers.
struct Bench<'a> {
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
    /// What conditions that are tuned have; none without --tune.
    settings: Option<PlannedSettings>,
}

impl<'a> Bench<'a> {
    fn new(machine: &'a Machine, (cpu, choice): (u32, Choice), quick: bool) -> Self {
        let (runs, figures, envelope, settings) = (Vec::new(), Vec::new(), None, None);
        Self { machine, cpu, choice, quick, paper: "", runs, figures, envelope, settings }
    }

    /// Measures with these settings too, where a paper tunes.
    fn tune(&mut self, settings: PlannedSettings) {
        self.settings = Some(settings);
    }

    /// The settings that are tried, where --tune was given.
    fn tuned(&self) -> Option<Vec<&str>> {
        Some(self.settings.as_ref()?.paths().collect())
    }

    /// What is known of the machine.
    fn here(&self) -> &MachineFacts {
        &self.machine.here
    }

    /// A share of the time for one paper.
    fn share(&self, share: f64) -> Span {
        let seconds = if self.quick { QUICK_S } else { PAPER_S };
        Span::from_ns((seconds as f64 * 1e9 * share) as i64)
    }

    /// The paper that is measured from now on.
    fn begin(&mut self, paper: &'static str) {
        self.paper = paper;
    }

    /// Draws figures of the paper that is measured.
    fn draw(&mut self, figures: impl IntoIterator<Item = PaperFigure>) {
        let drawn = figures.into_iter().filter(|figure| !figure.series.is_empty());
        self.figures.extend(drawn);
    }

    /// What the result has besides its rows: what every result has, the loops and the figures.
    fn finish(self) -> (Envelope, Vec<Run>, Vec<PaperFigure>) {
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
    fn loops(
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
        for LoopCondition { name, wait, load, .. } in conditions {
            let loads = Loads::parse(load).map_err(|why| anyhow::anyhow!("{load}: {why}"))?;
            let loads = loads.turns().into_iter().flatten().collect();
            plan.conditions.push(Condition {
                name: (*name).to_owned(),
                wait: Some(*wait),
                library: None,
                loads,
            });
        }
        plan.blocks = blocks(conditions.len(), length);
        plan.cold = cold;
        let args = ReportArgs { keep_cold: cold == 0, ..ReportArgs::default() };
        let with: Vec<bool> = conditions.iter().map(|condition| condition.tuned).collect();
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
    fn executive(&mut self, sizes: &[u32], length: Span) -> Result<Option<ExecutiveOutcome>> {
        let experiment = executive_experiment(self.cpu, sizes.to_vec(), length);
        Ok(self.measure(experiment)?.map(|(outcome, _)| outcome))
    }

    /// Tasks that register at irregular times.
    fn registration(&mut self) -> Result<Vec<RegistrationRow>> {
        let thread = RtThread::cpu(self.cpu).fifo(PRIORITY);
        Ok(self.measure(RegistrationExperiment { thread })?.map(|(of, _)| of).unwrap_or_default())
    }

    /// How exactly waits end.
    fn accuracy(&mut self, duration: Span) -> Result<Option<AccuracyOutcome>> {
        let thread = RtThread::cpu(self.cpu).fifo(PRIORITY);
        Ok(self.measure(AccuracyExperiment { thread, duration })?.map(|(outcome, _)| outcome))
    }

    /// How late timers of these periods are, with this work behind and these loads beside.
    fn timer(
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
    fn response(
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
    fn other_cpu(&self) -> Option<u32> {
        helper_cpu(&CpuList::single(self.cpu), &self.machine.here)
    }

    /// The highest frequencies of an eventfd that are served; `None` on one CPU.
    fn saturation(&mut self, duration: Span) -> Result<Option<SaturationOutcome>> {
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

/// The designs that AnT's figures compare; the last is not in the paper.
const DESIGNS: [&str; 3] = ["art-linux", "ant", "punctual"];

/// A figure of costs: its name, what it shows, the cost in µs.
type Costs<'c> = (&'c str, &'c str, fn(&ExecutiveRow) -> f64);

/// Histograms of lateness, each with its name, in the same bins.
fn histograms(figure: PaperFigure, of: &[(&str, &HistogramView)]) -> PaperFigure {
    let views: Vec<&HistogramView> = of.iter().map(|(_, view)| *view).collect();
    let bins = bins(&views, &[]);
    let edges_us: Vec<f64> = bins.edges_ns.iter().map(|ns| ns / 1e3).collect();
    of.iter().zip(&bins.counts).fold(figure, |figure, ((name, _), counts)| {
        figure.steps(&format!("here: {name}"), &edges_us, counts)
    })
}

/// AnT's figure 2, with what its table 2 says of the same distribution.
fn distribution(of: Option<&HistogramView>) -> PaperFigure {
    let (x, y) = ("from the timer interrupt to the process, µs (log)", "wakes, of 100");
    let figure = PaperFigure::new("ant.fig2", "time from timer interrupt to process", x, y);
    let published = [(2.57, "minimum"), (2.84, "average"), (5.47, "maximum")];
    let here = of.map(|of| ("a wake after its release", of));
    histograms(figure.log([true, false]), here.as_slice())
        .points("published in table 2", published.map(|(us, name)| ([us, 0.0], name)))
}

/// AnT's figures 3 and 9 to 12. `errors` has periods in ms and errors of the mean interval in µs.
fn ant(
    errors: Vec<[f64; 2]>,
    executive: Option<&ExecutiveOutcome>,
    registration: &[RegistrationRow],
) -> Vec<PaperFigure> {
    let error = "error of the mean interval, µs";
    let fig3 = PaperFigure::new("ant.fig3", "error of the interval", "period, ms", error)
        .line("formula: 0.4 % of the period", vec![[0.0, 0.0], [10.0, 40.0]])
        .points("published", [([1.0, 4.0], "4 µs")])
        .points("here", errors.into_iter().map(|at| (at, "")));
    let costs: [Costs<'_>; 2] = [
        ("ant.fig9", "processing time of release", |row| row.release_ns / 1e3),
        ("ant.fig10", "processing time of wait", |row| row.wait_ns / 1e3),
    ];
    let rows = executive.map_or(&[][..], |of| &of.rows);
    let cost = |(id, what, value): Costs<'_>| {
        let figure = PaperFigure::new(id, what, "tasks", "µs");
        DESIGNS.iter().fold(figure, |figure, design| {
            let own = rows.iter().filter(|row| row.design == *design && !row.cold);
            let mut points: Vec<[f64; 2]> = own.map(|row| [row.n as f64, value(row)]).collect();
            points.sort_by(|a, b| a[0].total_cmp(&b[0]));
            figure.line(&format!("here: {design}"), points)
        })
    };
    let released = |(id, designs): (&str, &[&str])| {
        let figure = PaperFigure::new(id, "tasks released at a tick", "tick of 100", "tasks");
        designs.iter().fold(figure, |figure, design| {
            let row = registration.iter().find(|row| row.design == *design);
            let of = row.map_or(&[][..], |row| &row.released);
            let points = of.iter().enumerate().map(|(at, of)| [at as f64, *of as f64]);
            figure.line(&format!("here: {design}"), points.collect())
        })
    };
    let ticks: [(&str, &[&str]); 2] =
        [("ant.fig11", &["ant", "punctual"]), ("ant.fig12", &["art-linux"])];
    let costs = costs.into_iter().map(cost);
    std::iter::once(fig3).chain(costs).chain(ticks.into_iter().map(released)).collect()
}

/// A way to wait as one of Maruti's figures has it: exit, code, cache.
type ExitChoice<'e> = (&'e str, Option<&'e str>, &'e str);

/// Maruti's figures 3 to 8: the error over the offset of the target.
fn waits(of: &AccuracyOutcome, [plain, fenced]: [&str; 2]) -> Vec<PaperFigure> {
    let figures: [(&str, &str, ExitChoice<'_>); 6] = [
        ("maruti.fig3", "error of the loop over the offset", (plain, Some("aligned"), "warm")),
        ("maruti.fig4", "the same with cold code", (plain, Some("aligned"), "cold code")),
        ("maruti.fig5", "the same with a slower read", (fenced, Some("aligned"), "warm")),
        ("maruti.fig6", "the same with code not aligned", (plain, Some("split"), "warm")),
        ("maruti.fig7", "error without correction", ("plain", None, "warm")),
        ("maruti.fig8", "error with a computed delay", ("corrected", None, "warm")),
    ];
    let figure = |(id, what, way): (&str, &str, ExitChoice<'_>)| {
        let points = row(of, way).map(curve).unwrap_or_default();
        PaperFigure::new(id, what, "offset of the target, ticks", "error, ticks")
            .line("here: median at each offset", points)
    };
    figures.into_iter().map(figure).collect()
}

/// The row of a way to wait; those that enter late are left aside where the cache is warm.
fn row<'o>(
    of: &'o AccuracyOutcome,
    (exit, code, cache): ExitChoice<'_>,
) -> Option<&'o AccuracyRow> {
    of.rows.iter().find(|row| {
        row.exit == exit
            && row.code.as_deref() == code
            && row.cache == cache
            && (cache != "warm" || row.lead_ticks > 0.0)
    })
}

fn curve(row: &AccuracyRow) -> Vec<[f64; 2]> {
    let at = |(offset, error): (usize, &Option<f64>)| {
        error.map(|error| [row.lead_ticks + offset as f64, error])
    };
    row.curve.iter().enumerate().filter_map(at).collect()
}

/// Maruti's figures 9 and 10: how late timers are, as a curve of quantiles.
fn timers(of: &TimerOutcome) -> Vec<PaperFigure> {
    let figures = [
        ("maruti.fig9", "timer interrupts, CPUID behind", "cpuid"),
        ("maruti.fig10", "timer interrupts, NOPs behind", "nop"),
    ];
    let figure = |(id, what, behind): (&str, &str, &str)| {
        let figure = PaperFigure::new(id, what, "1 in … is later (log)", "lateness, ns (log)");
        let periods = [("here: each 100 µs", 100_000), ("here: each 15 µs", 15_000)];
        periods.into_iter().fold(figure.log([true; 2]), |figure, (name, period_ns)| {
            let is = |row: &&TimerRow| {
                row.path == "sleep"
                    && row.store == "array"
                    && row.background == behind
                    && row.period_ns == period_ns
            };
            figure.line(name, of.rows.iter().find(is).map(quantiles).unwrap_or_default())
        })
    };
    figures.into_iter().map(figure).collect()
}

/// How late the latest of so many wakes was, ns.
fn quantiles(row: &TimerRow) -> Vec<[f64; 2]> {
    let ns = &row.lateness_ns;
    let all = [
        (1.0, ns.min),
        (2.0, ns.p50),
        (10.0, ns.p90),
        (100.0, ns.p99),
        (1e3, ns.p99_9),
        (row.n as f64, ns.max),
    ];
    all.into_iter().filter_map(|(one_in, ns)| Some([one_in, ns?])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::histogram::Histogram;

    fn view(values: &[i64]) -> HistogramView {
        let mut histogram = Histogram::new();
        values.iter().for_each(|ns| histogram.push(*ns));
        HistogramView::of(&histogram)
    }

    #[test]
    fn histograms_have_the_same_bins_and_all_that_was_counted() {
        let (idle, loaded) = (view(&[2_000, 2_000, 5_000]), view(&[90_000, 4_000, 2_100]));
        let figure = PaperFigure::new("a.fig1", "times", "µs", "wakes");
        let drawn = histograms(figure.clone(), &[("idle", &idle), ("loaded", &loaded)]);
        let edges = |at: usize| drawn.series[at].points.iter().map(|at| at[0]).collect::<Vec<_>>();
        assert_eq!(edges(0), edges(1));
        assert!(edges(0)[0] <= 2.0 && edges(0).last().is_some_and(|us| *us > 90.0));
        for series in &drawn.series {
            let columns = &series.points[..series.points.len() - 1];
            assert_eq!(columns.iter().map(|at| at[1]).sum::<f64>(), 3.0, "{series:?}");
        }
        assert!(histograms(figure, &[("none", &view(&[]))]).series.is_empty());
    }

    #[test]
    fn figure_2_has_the_published_ends_beside_what_was_measured() {
        let drawn = distribution(Some(&view(&[3_000, 4_000])));
        assert_eq!(drawn.series.len(), 2);
        assert_eq!(drawn.series[1].points, [[2.57, 0.0], [2.84, 0.0], [5.47, 0.0]]);
        assert_eq!(distribution(None).series.len(), 1, "published alone");
    }
}
