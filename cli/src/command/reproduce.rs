//! `punctual reproduce`: the experiments of the papers that punctual builds on, on this machine.
//!
//! Each paper's figures and plan are in `papers`; here is what measures for it, and the result.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use punctual_core::time::{Period, Span};
use punctual_engine::wait_policy::WaitKind;
use punctual_host::choose::helper_cpu;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_lab::experiment::{ConditionChanges, Experiment};
use punctual_lab::load::{LoadSpec, Loads};
use punctual_lab::periodic::{Condition, Stream};
use punctual_os::signal;
use punctual_papers::bench::{self, LoopPhase, LoopSet, MeasuredLoop, WithLoads};
use punctual_papers::claim::PaperClaim;
use punctual_papers::figure::Drawing;
use punctual_papers::row::PaperRow;
use punctual_papers::{Paper, PaperLength};

use crate::args::{Detail, PRIORITY, PolicyName, ReportArgs, StateArgs};
use crate::comparison::grid::{self, GridSide};
use crate::experiment::choices::{LoopChoices, blocks};
use crate::experiment::loops::{LoopContext, LoopExperiment};
use crate::experiment::{self, Machine, words};
use crate::output::{Dir, OutputArgs};
use crate::parse::{self, Phase};
use crate::program::PROGRAM;
use crate::progress::Line;
use crate::settings::WorkloadName;
use crate::settings::changes::{Changes, PlannedSettings};
use crate::stored;
use crate::subcommand::{Exit, ResultsArgs};
use crate::{format, papers, writing};
use punctual_report::reproduced::{PaperFigure, ReproduceBody};
use punctual_report::{Body, Choice, Comparison, EndedBy, Envelope, Load, Report, Request, Run};

/// `punctual reproduce`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReproduceArgs {
    /// The paper
    #[arg(value_parser = paper_parser(), conflicts_with = "all")]
    paper: Option<Paper>,
    /// All papers, one after the other: about eleven minutes; with --full an hour and a half
    #[arg(long)]
    all: bool,
    /// Shorter measurements: less than two minutes for all papers, half a minute for one
    #[arg(long)]
    quick: bool,
    /// As long as the paper measured, where it says so: linuxcnc's threads 1500 s under each
    /// condition, wince's responses a million each. The others take the usual time
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// linuxcnc: measure also with the runtime settings of 'tune plan --for step-generation',
    /// written before each of their blocks and put back after it
    #[arg(long)]
    tune: bool,
    /// Show another machine's result of the same paper beside this one: each row here, there and
    /// in the paper, the claims of both, and its figures laid over these. FILE is what --json wrote
    /// there
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
    #[command(flatten)]
    state: StateArgs,
    /// The CPU to measure on [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    results: ResultsArgs,
}

impl ReproduceArgs {
    fn length(&self) -> PaperLength {
        match (self.quick, self.full) {
            (true, _) => PaperLength::Quick,
            (false, true) => PaperLength::Full,
            (false, false) => PaperLength::Usual,
        }
    }
}

/// Reads the short name of a paper.
fn paper_parser() -> impl TypedValueParser<Value = Paper> {
    let value = |paper: Paper| PossibleValue::new(paper.name()).help(paper.title());
    PossibleValuesParser::new(Paper::ALL.map(value))
        .try_map(|name| Paper::named(&name).ok_or("no paper has this name"))
}

/// Runs the subcommand.
pub(crate) fn run(args: &ReproduceArgs) -> Result<Exit> {
    let machine = Machine::of(None)?;
    let (cpu, choice) =
        experiment::one_cpu(args.cpu.as_deref(), &machine.measuring, "papers are measured")?;
    let papers: Vec<Paper> = match args.paper {
        Some(paper) => vec![paper],
        None if args.all => Paper::ALL.to_vec(),
        None => {
            let names = Paper::ALL.map(Paper::name).join(", ");
            bail!("PAPER is missing; accepted are {names}, or --all");
        }
    };
    let beside = args.beside.as_deref().map(|path| Beside::read(path, &papers)).transpose()?;
    args.output.spare(args.beside.as_deref())?;
    // Ten minutes are not measured for forty lines on a terminal alone.
    let is_kept = args.results.is_named() || !args.output.are_some();
    let outputs = args.output.open()?;
    let mut bench = Bench::new(&machine, (cpu, choice), args.length());
    if args.tune {
        bench.tune(PlannedSettings::of(cpu, WorkloadName::StepGeneration, &args.state)?);
    }
    // From here on an interruption ends it with what there is, not with an empty directory.
    signal::catch_stop().context("cannot catch SIGINT")?;
    let results = is_kept.then(|| args.results.begin()).transpose()?;
    let (mut rows, mut claims) = (Vec::new(), Vec::new());
    for &paper in &papers {
        bench.begin(paper);
        let reproduction = paper.reproduce(&mut bench).inspect_err(|_| {
            // Nothing was measured: an empty directory would only be in the way.
            let _left = results.clone().map(Dir::remove_empty);
        })?;
        rows.extend(reproduction.rows);
        claims.extend(reproduction.claims);
    }
    if rows.is_empty() {
        let _left = results.map(Dir::remove_empty);
        bail!("no paper was measured");
    }
    let papers = papers.into_iter().map(|paper| paper.name().to_owned()).collect();
    let (envelope, runs, mut figures) = bench.finish();
    beside.iter().for_each(|beside| beside.lay_over(&mut figures));
    if envelope.incomplete {
        rows = rows.into_iter().map(PaperRow::ended_early).collect();
        claims = claims.into_iter().map(PaperClaim::ended_early).collect();
    }
    let refused = envelope.session.iter().flat_map(|session| &session.refused);
    let policy = refused.map(|refused| &refused.attempt).find_map(|attempt| match attempt {
        Request::Policy(policy) => Some(policy.clone()),
        Request::Other(_) => None,
    });
    if let Some(policy) = policy {
        claims = claims.into_iter().map(|claim| claim.without_policy(&policy)).collect();
    }
    let rows = rows.into_iter().map(papers::row).collect();
    let claims = claims.into_iter().map(papers::claim).collect();
    let (quick, full) = (args.quick, args.full);
    let body = ReproduceBody { papers, quick, full, claims, rows, runs, figures, beside: None };
    let mut report = Report { envelope, body: body.into() };
    if let Some(beside) = &beside
        && let Some(comparison) = beside.compare(&report)?
    {
        report.body.set_compare(comparison);
    }
    match results {
        Some(results) => writing::write_kept(&report, &results, outputs, Detail::Short)?,
        None => writing::write_in(&report, outputs, Detail::Short)?,
    }
    Ok(Exit::Fine)
}

/// Another machine's result of the same papers.
struct Beside {
    report: Report,
    /// The name of its columns and series.
    label: String,
}

impl Beside {
    /// This machine, beside another one.
    const HERE: &str = "here";

    /// Reads it before anything is measured.
    ///
    /// # Errors
    /// It is no result, of another schema or kind, or of none of these papers.
    fn read(path: &Path, papers: &[Paper]) -> Result<Self> {
        let stored = stored::read(path).context("--beside")?;
        let (report, shown) = (stored.report, stored.path.display());
        let Body::Reproduce(body) = &report.body else {
            bail!(
                "--beside {shown}: a result of '{}'; give one of 'punctual reproduce', as --json \
                 writes it",
                report.envelope.experiment
            );
        };
        if !papers.iter().any(|paper| body.papers.iter().any(|name| name == paper.name())) {
            let wanted: Vec<&str> = papers.iter().map(|paper| paper.name()).collect();
            bail!(
                "--beside {shown}: it reproduces {}, not {}; measure that there too, or give \
                 another result",
                body.papers.join(", "),
                wanted.join(", ")
            );
        }
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let label = stem.filter(|stem| !matches!(stem.as_str(), Self::HERE | "result"));
        let label = format::plain(&label.unwrap_or_else(|| "beside".to_owned()));
        let mut report = report;
        if let Body::Reproduce(body) = &mut report.body {
            body.keep(&papers.iter().map(|paper| paper.name()).collect::<Vec<_>>());
        }
        Ok(Self { label, report })
    }

    /// Its figures over those that were drawn here.
    fn lay_over(&self, figures: &mut [PaperFigure]) {
        let Body::Reproduce(body) = &self.report.body else { return };
        for figure in figures {
            if let Some(other) = body.figures.iter().find(|other| other.id == figure.id) {
                figure.overlay(other, &self.label);
            }
        }
    }

    /// Both on one grid.
    fn compare(&self, measured: &Report) -> Result<Option<Comparison>> {
        let first = GridSide { label: Self::HERE, from: Self::HERE, report: measured };
        let second = GridSide { label: &self.label, from: &self.label, report: &self.report };
        grid::of(&[first, second])
    }
}

/// The subcommand's name.
const NAME: &str = "reproduce";

/// The measurements for all papers, and their results so far.
struct Bench<'a> {
    machine: &'a Machine,
    cpu: u32,
    choice: Choice,
    length: PaperLength,
    /// The paper that is measured.
    paper: Paper,
    /// All loops, by paper, period and condition, and figures so far.
    runs: Vec<Run>,
    figures: Vec<PaperFigure>,
    /// The envelope of the first measurement, with the warnings of all.
    envelope: Option<Envelope>,
    /// The settings of conditions that are tuned; none without --tune.
    settings: Option<PlannedSettings>,
    /// The quiet phases that were found, ns.
    quiet: Vec<(Period, u64)>,
}

impl<'a> Bench<'a> {
    fn new(machine: &'a Machine, (cpu, choice): (u32, Choice), length: PaperLength) -> Self {
        Self {
            machine,
            cpu,
            choice,
            length,
            paper: Paper::Nist,
            runs: Vec::new(),
            figures: Vec::new(),
            envelope: None,
            settings: None,
            quiet: Vec::new(),
        }
    }

    /// Measures with these settings too, where a paper tunes.
    fn tune(&mut self, settings: PlannedSettings) {
        self.settings = Some(settings);
    }

    /// The paper that is measured from now on.
    fn begin(&mut self, paper: Paper) {
        self.paper = paper;
    }

    /// The parts of the result besides its rows: the envelope, the loops and the figures.
    fn finish(self) -> (Envelope, Vec<Run>, Vec<PaperFigure>) {
        let mut envelope = self.envelope.unwrap_or_else(|| Envelope::of(PROGRAM, NAME));
        if stopped() {
            envelope.end_early(EndedBy::of_signal(signal::stop_signal()));
        }
        (envelope, self.runs, self.figures)
    }

    /// Takes in what every measurement says.
    fn keep(&mut self, mut next: Envelope) {
        next.warn_of(self.settings.iter().flat_map(PlannedSettings::warnings));
        match &mut self.envelope {
            Some(envelope) => envelope.take_in(next),
            None => self.envelope = Some(next),
        }
    }

    /// Puts loops where the paper has them: at the quiet phase that was found for the first of this
    /// period. What there is to say of it, once.
    fn settle(&mut self, streams: &mut [Stream], phase: LoopPhase) -> Result<Vec<String>> {
        let after_ns = match phase {
            LoopPhase::Zero => return Ok(Vec::new()),
            LoopPhase::Quiet => 0,
            LoopPhase::AfterQuiet(after_ns) => after_ns,
        };
        let [stream] = streams else { return experiment::settle(streams, Phase::Quiet) };
        let known = self.quiet.iter().find(|(period, _)| *period == stream.period);
        let notes = match known {
            Some((_, phase_ns)) => {
                stream.phase_ns = *phase_ns;
                Vec::new()
            }
            None => {
                let notes = experiment::settle(std::slice::from_mut(stream), Phase::Quiet)?;
                self.quiet.push((stream.period, stream.phase_ns));
                notes
            }
        };
        stream.phase_ns = (stream.phase_ns + after_ns) % stream.period.as_ns();
        Ok(notes)
    }

    /// Keeps loops with their paper and period in their names.
    fn name(&mut self, runs: &[Run], period: &str) {
        let named = |run: &Run| Run {
            name: format!("{} {period} {}", self.paper.name(), run.name),
            ..run.clone()
        };
        self.runs.extend(runs.iter().map(named));
    }
}

impl bench::Bench for Bench<'_> {
    type Error = anyhow::Error;

    fn cpu(&self) -> u32 {
        self.cpu
    }

    fn other_cpu(&self) -> Option<u32> {
        helper_cpu(&CpuList::single(self.cpu), &self.machine.measuring)
    }

    fn machine(&self) -> &MachineFacts {
        &self.machine.measuring
    }

    fn share(&self, share: f64) -> Span {
        let seconds = self.paper.seconds(self.length, self.settings.is_some());
        Span::from_ns((seconds * 1e9 * share) as i64)
    }

    fn tuned(&self) -> Option<Vec<&str>> {
        Some(self.settings.as_ref()?.paths().collect())
    }

    fn together(
        &mut self,
        periods_ns: &[u64],
        loops: &LoopSet<'_>,
    ) -> Result<Vec<Vec<MeasuredLoop>>> {
        let LoopSet { conditions, length, cold, phase, keep, .. } = *loops;
        if stopped() {
            return Ok(Vec::new());
        }
        let period = |ns: &u64| parse::Duration(Span::from_ns(ns.cast_signed()));
        let periods: Vec<parse::Duration> = periods_ns.iter().map(period).collect();
        let none = Loads::AtOnce(Vec::new());
        let cpu = self.cpu.to_string();
        let choices = LoopChoices {
            cpu: Some(&cpu),
            period: &periods,
            duration: length,
            policy: PolicyName::Fifo,
            priority: PRIORITY,
            wait: WaitKind::Sleep,
            phase: Phase::At(0),
            load: &none,
        };
        let mut plan = choices.plan(&self.machine.measuring)?.plan;
        let notes = self.settle(&mut plan.streams, phase)?;
        plan.conditions.clear();
        for condition in conditions {
            plan.conditions.push(Condition {
                name: condition.name.to_owned(),
                wait: Some(condition.wait),
                library: None,
                loads: LoadSpec::parse_list(condition.load)?,
            });
        }
        plan.blocks = blocks(conditions.len(), length);
        plan.cold = cold;
        let args = ReportArgs::unjudged(cold == 0);
        let with: Vec<bool> = conditions.iter().map(|condition| condition.tuned).collect();
        let settings = self.settings.as_mut().filter(|_| with.contains(&true));
        let mut changes = settings.map(|settings| settings.changes(&with));
        let (machine, choice) = (self.machine, self.choice.clone());
        let context = LoopContext { name: NAME, machine, choice, args: &args };
        let loops = LoopExperiment {
            changes: changes.as_mut().map(|changes| changes as &mut dyn ConditionChanges),
            notes,
            first: keep,
            ..LoopExperiment::new(context, plan)
        };
        let measured = loops.run()?;
        changes.and_then(Changes::into_failure).map_or(Ok(()), Err)?;
        self.keep(measured.envelope);
        let mut runs = measured.loops.judged.runs.into_iter();
        let mut first = measured.first.into_iter().chain(std::iter::repeat(Vec::new()));
        let mut by_period = Vec::new();
        for &period_ns in periods_ns {
            // By period, then by condition. Their names are those of the conditions alone.
            let own = conditions.iter().zip(runs.by_ref());
            let own = own.map(|(condition, run)| Run { name: condition.name.to_owned(), ..run });
            let own: Vec<Run> = own.collect();
            self.name(&own, &format::period(period_ns));
            let made = |(run, first)| MeasuredLoop { first, ..loop_run(run, period_ns) };
            by_period.push(own.into_iter().zip(first.by_ref()).map(made).collect());
        }
        Ok(by_period)
    }

    fn measure<E: Experiment>(&mut self, measured: E) -> Result<Option<WithLoads<E::Outcome>>> {
        if stopped() {
            return Ok(None);
        }
        let started = jiff::Timestamp::now();
        let finished = experiment::run(measured, &self.machine.measuring, &mut Line::new());
        let finished = finished.map_err(words::error)?;
        let choice = self.choice.clone();
        self.keep(experiment::envelope(NAME, self.machine, choice, started, &finished));
        Ok(Some((finished.outcome, finished.loads)))
    }

    fn draw(&mut self, figures: impl IntoIterator<Item = Drawing>) {
        let drawn = figures.into_iter().filter(|figure| !figure.series.is_empty());
        self.figures.extend(drawn.map(papers::figure));
    }
}

/// A run of this period, as a paper's figures use it.
fn loop_run(run: Run, period_ns: u64) -> MeasuredLoop {
    let stolen_ns = (run.steal_ns.unwrap_or(0) as f64).max(run.stall_max_ns.unwrap_or(0.0));
    let ran_ns = run.outcome.releases() as f64 * period_ns as f64;
    MeasuredLoop {
        stolen: if ran_ns > 0.0 { (stolen_ns / ran_ns).min(1.0) } else { 0.0 },
        name: run.name,
        figures: run.outcome,
        cpu_load: run.cpu_load,
        hop_ns: run.approach.and_then(|approach| approach.hop_ns),
        first: Vec::new(),
        load_notes: run.loads.iter().flat_map(Load::notes).cloned().collect(),
    }
}

/// Returns true where an end was requested.
fn stopped() -> bool {
    signal::stop_flag().load(Ordering::Relaxed)
}
