//! A measuring subcommand, from its choices to its report: what `check` and `measure` share.
//!
//! Outputs are opened first, then the experiment runs, then the report is made. Prints only the
//! progress line; what the numbers mean is decided elsewhere.

mod background;
pub(crate) mod claims;
pub(crate) mod follow;
mod live;
pub(crate) mod quiet;
mod safety;
mod sink;

use std::fs::File;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use punctual::clocks::MachineClock;
use punctual::drain::SampleFile;
use punctual::os::scheduler::Policy;
use punctual::os::signal;
use punctual::session::Thread;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::import::info::{FileInfo, RunInfo};
use punctual_analysis::limit::Limit;
use punctual_host::facts::Facts;
use punctual_lab::cost::RecordCost;
use punctual_lab::load::{Bounds, LoadSpec};
use punctual_lab::periodic::{End, Plan, Prepared};

use crate::args::ReportArgs;
use crate::format;
use crate::output::Opened;
use crate::report::{self, Context, Report};
pub(crate) use background::Loading;
pub(crate) use background::startable;
pub(crate) use live::{Live, Standing};
pub(crate) use safety::{hit, judge};
pub(crate) use sink::Recordings;

/// The priority that a measuring loop asks for: above the kernel's threaded interrupts (50).
pub(crate) const PRIORITY: u8 = 90;

/// Cycles at the start of each block that are marked cold.
pub(crate) const COLD_CYCLES: u32 = 10;

/// Pushes that the cold cost of recording is measured over: 0.2 s before the run.
const COLD_PUSHES: u32 = 200;

/// An experiment with all its choices made.
pub(crate) struct Experiment {
    /// The subcommand's name.
    pub(crate) name: &'static str,
    /// What to run.
    pub(crate) plan: Plan,
    /// The loads of each condition.
    pub(crate) specs: Vec<Vec<LoadSpec>>,
    /// Whether all conditions but the first count as one, "under load".
    pub(crate) merge: bool,
    /// What is known of the machine that the report names: with `--root`, another one.
    pub(crate) facts: Facts,
    /// What is known of the machine that measures.
    pub(crate) here: Facts,
    /// The measured CPUs and why those.
    pub(crate) choice: report::Choice,
    /// What to hold every run to, what it is to show, whether cold cycles count.
    pub(crate) asked: ReportArgs,
    /// What its claims take.
    pub(crate) plans: Vec<report::PlannedRun>,
    /// Where the samples go, opened.
    pub(crate) samples: Option<Opened>,
    /// The clock whose time the grids lie on, where it is not CLOCK_MONOTONIC.
    pub(crate) follow: Option<follow::Target>,
    /// What a reader should know, already.
    pub(crate) warnings: Vec<String>,
}

impl Experiment {
    /// Runs it to its end, or to Ctrl-C. What went wrong on the way and left the report worth
    /// having comes beside it: a sample file that ends early, a load that did not start again.
    pub(crate) fn run(mut self) -> Result<(Report, Option<anyhow::Error>)> {
        self.warnings.extend(judge(&self.plan, &self.here)?);
        signal::catch_stop().context("cannot catch SIGINT")?;
        let started = jiff::Timestamp::now();
        let (prepared, followed) = self.prepare()?;
        refuse_short_periods(&prepared)?;
        let recording = self.record_cost(prepared.clock());
        let granted = prepared.granted().context("cannot start a thread")?;
        let info = self.describe(&prepared, &granted, followed.as_ref(), started)?;
        let file = self.begin_samples(&info)?;
        let thresholds = thresholds(&self.asked.limits, &self.asked.claims);
        let conditions = self.plan.conditions.len();
        let live = Live::new(&self.asked.claims, self.plan.runs());
        let sink = Recordings::new(
            prepared.grids(),
            conditions,
            self.merge,
            self.asked.keep_cold,
            &thresholds,
            (&self.asked.claims, &live),
        );
        let names = self.plan.conditions.iter().map(|c| c.name.clone()).collect();
        let mut loading = Loading::new(names, self.specs.clone(), bounds(&self.here), live);
        let grids = prepared.grids().to_vec();
        let outcome = prepared.run(sink, file, &mut loading, signal::stop_flag());
        let mut outcome = outcome.context("cannot start a thread")?;
        let loads = loading.finish();
        let trouble = match (&outcome.end, &self.samples, outcome.file_error.take()) {
            (End::Load(why), ..) => Some(anyhow!("{why}")),
            (_, Some(file), Some(why)) => Some(anyhow!(
                "{}: {why}: the file ends early and is readable up to there",
                file.path().display()
            )),
            _ => None,
        };
        if outcome.runs.iter().all(|run| run.cycles + run.missed == 0)
            && let Some(why) = trouble
        {
            return Err(why);
        }
        if let Some(samples) = self.samples.take() {
            samples.keep();
        }
        self.warnings.extend(hit(&self.plan, &outcome.runs, &self.here));
        let report = report::from_experiment(Context {
            experiment: self,
            grids,
            followed,
            outcome,
            loads,
            recording,
            started: started.to_string(),
        });
        Ok((report, trouble))
    }

    /// The experiment set up, on the time of the clock that is to be followed, if there is one.
    fn prepare(&mut self) -> Result<(Prepared, Option<report::Follow>)> {
        let prepared = Prepared::new(self.plan.clone());
        let Some(target) = self.follow.take() else { return Ok((prepared, None)) };
        self.warnings.extend(target.warning());
        let followed = report::Follow::of(&target);
        Ok((prepared.following(target.start(&self.plan)?), Some(followed)))
    }

    /// The sample file, with what it says of itself, where there is to be one.
    fn begin_samples(&self, info: &str) -> Result<Option<SampleFile<File>>> {
        let Some(opened) = &self.samples else { return Ok(None) };
        let begun = SampleFile::begin(opened.begin()?, info, self.plan.runs());
        Ok(Some(begun.with_context(|| format!("cannot write {}", opened.path().display()))?))
    }

    /// What recording costs where the first loop will run, and as it will run. `None` where no
    /// thread could be had for it.
    fn record_cost(&self, mut clock: MachineClock) -> Option<RecordCost> {
        let (cpu, policy) = self.plan.streams.first().map(|stream| (stream.cpu, stream.policy))?;
        let measure = move || {
            let _session = Thread::enter(cpu, policy);
            RecordCost::measure(&mut clock, COLD_PUSHES)
        };
        std::thread::Builder::new().spawn(measure).ok()?.join().ok()?
    }

    /// What the sample file says of itself, as JSON.
    fn describe(
        &self,
        prepared: &Prepared,
        granted: &[Policy],
        followed: Option<&report::Follow>,
        started: jiff::Timestamp,
    ) -> Result<String> {
        let plan = &self.plan;
        let mut runs = Vec::new();
        let streams = plan.streams.iter().zip(prepared.grids()).zip(granted);
        for ((stream, grid), &policy) in streams {
            for (index, condition) in plan.conditions.iter().enumerate() {
                let (policy, priority) = policy_words(policy);
                runs.push(RunInfo {
                    name: report::run_name(plan, stream, &condition.name),
                    part_of: (self.merge && index > 0).then(|| report::UNDER_LOAD.to_owned()),
                    cpu: stream.cpu.unwrap_or_default(),
                    period_ns: grid.period().as_ns(),
                    epoch_ns: grid.epoch().as_ns(),
                    phase_ns: grid.phase_ns(),
                    follows: followed.map(|followed| followed.clock.clone()),
                    policy: policy.to_owned(),
                    priority,
                    wait: plan.wait(stream, index).name().to_owned(),
                    load: self.specs[index].iter().map(ToString::to_string).collect(),
                    duration_ns: report::duration_ns(plan, index),
                    floor_ns: Some(prepared.cost().now_ns),
                    clock: prepared.clock_name().to_owned(),
                });
            }
        }
        let info = FileInfo {
            tool: "punctual".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: started.to_string(),
            machine: Some(serde_json::to_value(&self.facts)?),
            runs,
        };
        Ok(serde_json::to_string(&info)?)
    }
}

/// Loads may use every CPU that this process may; each block sets its own limit of time.
pub(crate) fn bounds(facts: &Facts) -> Bounds {
    let cpus: Vec<u32> = punctual::os::affinity::get(0)
        .map(|mask| mask.iter().collect())
        .unwrap_or_else(|_| vec![0]);
    let isolated = facts.isolation.isolated();
    let unisolated = cpus.iter().filter(|&&cpu| !isolated.contains(cpu)).count();
    Bounds { unisolated: unisolated.max(1), ..Bounds::new(Duration::from_secs(5), cpus) }
}

/// Lateness thresholds that limits and claims ask about, to be watched while recording.
pub(crate) fn thresholds(limits: &[Limit], claims: &[Ask]) -> Vec<i64> {
    let of_claims = claims.iter().filter_map(|ask| ask.lateness_ns());
    limits.iter().filter_map(Limit::threshold_ns).chain(of_claims).collect()
}

/// The kernel's name of a policy, and its priority.
pub(crate) fn policy_words(policy: Policy) -> (&'static str, Option<u8>) {
    match policy {
        Policy::Other => ("SCHED_OTHER", None),
        Policy::Fifo(priority) => ("SCHED_FIFO", Some(priority)),
        Policy::RoundRobin(priority) => ("SCHED_RR", Some(priority)),
        Policy::Unknown(_) => ("unknown", None),
    }
}

/// Stamps that a period must have room for: one at the wake, and the loop's own work beside it.
const STAMPS_IN_A_PERIOD: f64 = 4.0;

/// A period that the clock's own stamps would fill is refused.
pub(crate) fn refuse_short_periods(prepared: &Prepared) -> Result<()> {
    let wake_ns = prepared.cost().wake_ns;
    for stream in &prepared.plan().streams {
        let period_ns = stream.period.as_ns();
        if (period_ns as f64) < STAMPS_IN_A_PERIOD * wake_ns {
            bail!(
                "--period {}: a stamp alone takes {wake_ns:.0} ns here; the period must be \
                 at least {STAMPS_IN_A_PERIOD} times that",
                format::period(period_ns),
            );
        }
    }
    Ok(())
}
