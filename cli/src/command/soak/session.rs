//! The batches of one session, one after the other, until the end or a stop.
//!
//! Each batch is an experiment of its own: threads, clock and loads begin anew, so that nothing
//! grows from one to the next. Between two of them a tenth of a second is not measured; there the
//! line of the batch is said.

use std::error::Error;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use punctual_analysis::campaign::{
    BatchRow, Effort, Extent, RunSetup, Start, WatchedThresholds, plain,
};
use punctual_core::time::Span;
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_lab::experiment::{ExperimentEnd, ExperimentEvent, FinishedExperiment, Observer};
use punctual_lab::periodic::{
    Begun, Destination, PeriodicExperiment, PeriodicOutcome, PeriodicPlan, Prepared, RunOutcome,
};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::signal;
use punctual_report::{self as report, Load, policy_words};

use super::checkpointer::Checkpointer;
use super::pages::{self, Here};
use super::{Feed, Running, time_of_day_ns, unix_s};
use crate::command::measure::blocks;
use crate::experiment::{self, run_name, words};
use crate::progress::Line;

/// Batches that may fail one after the other before a session gives up.
const FAILURES_MAX: u32 = 3;
/// How long it waits after one that failed.
const PAUSE: Duration = Duration::from_secs(5);

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// All of the duration is measured.
    Finished,
    /// It was to stop, or a limit was broken.
    Stopped,
}

/// What a session goes by.
pub(super) struct Session<'a> {
    pub(crate) root: &'a Root,
    pub(crate) plan: PeriodicPlan,
    pub(crate) checkpointer: &'a Checkpointer<'a>,
    pub(crate) here: Here,
    /// To the checkpointer, whenever a batch is over.
    pub(crate) batches: SyncSender<Here>,
}

/// A progress line on a terminal only: a journal has the line of each batch.
struct OnTerminal(Option<Line>);

impl Observer for OnTerminal {
    fn event(&mut self, event: &ExperimentEvent<'_>) {
        if let Some(line) = &mut self.0 {
            line.event(event);
        }
    }
}

impl Session<'_> {
    /// Runs batches until the campaign is complete or has to stop.
    ///
    /// # Errors
    /// When loops cannot be started, or loads fail again and again.
    pub(crate) fn run(&mut self) -> Result<Ended> {
        let mut failures = 0;
        loop {
            if signal::stop_flag().load(Ordering::Relaxed) {
                return Ok(Ended::Stopped);
            }
            let Some(length) = self.next_length() else { return Ok(Ended::Finished) };
            let end = self.batch(length)?;
            let failed = match &end {
                ExperimentEnd::Load(why) => Some(format!("a load did not start: {why}")),
                ExperimentEnd::Watchdog(force) => {
                    Some(format!("the watchdog ended a loop ({force:?})"))
                }
                ExperimentEnd::Finished | ExperimentEnd::Stopped | ExperimentEnd::Lost => None,
            };
            let Some(why) = failed else {
                failures = 0;
                continue;
            };
            failures += 1;
            self.checkpointer.note(&why);
            if failures == FAILURES_MAX || self.checkpointer.is_empty() {
                bail!(why);
            }
            pause(PAUSE, signal::stop_flag());
        }
    }

    /// How long the next batch is; `None` when all is measured.
    fn next_length(&self) -> Option<Span> {
        let config = self.checkpointer.config();
        let measured = self.checkpointer.shared().lock().campaign.measured_ns();
        let periods = self.plan.streams.iter().map(|stream| stream.period.as_ns());
        // Less than that is not worth a cycle.
        let least = periods.max().unwrap_or(0).saturating_add(10_000_000);
        let left = config.duration.map(|all| all.as_ns().unsigned_abs().saturating_sub(measured));
        match left {
            Some(left) if left < least => None,
            Some(left) => {
                let left = Span::from_ns(i64::try_from(left).unwrap_or(i64::MAX));
                Some(left.min(config.every))
            }
            None => Some(config.every),
        }
    }

    fn batch(&mut self, length: Span) -> Result<ExperimentEnd> {
        self.plan.blocks = blocks(self.plan.conditions.len(), length);
        let facts = MachineFacts::collect(self.root);
        let from_unix_s = unix_s();
        let mut place =
            Place { checkpointer: self.checkpointer, facts: &facts, from_unix_s, pool: 0 };
        let loops = PeriodicExperiment {
            plan: self.plan.clone(),
            follow: None,
            known: Vec::new(),
            recording_cost: false,
            changes: None,
            destination: &mut place,
        };
        let mut line = OnTerminal(io::stderr().is_terminal().then(Line::new));
        let finished = experiment::run(loops, &facts, &mut line).map_err(words::error)?;
        let pool = place.pool;
        let running = self.checkpointer.shared().lock().running.as_ref().map(Running::measured_ns);
        self.learn(&finished, &facts, pool);
        let extent = Extent {
            from_unix_s,
            to_unix_s: unix_s(),
            measured_ns: running.unwrap_or_default(),
            efforts: efforts(&finished),
        };
        let rows = self.finish(&finished, &extent);
        for row in &rows {
            let loads = self.here.loads.get(row.run).map_or(&[][..], Vec::as_slice);
            let line = pages::line(&self.checkpointer.shared().lock().campaign, row, loads);
            self.checkpointer.print(&line);
        }
        // Where the checkpointer is still at the last one, it saves this one with the next.
        let _busy = self.batches.try_send(self.here.clone());
        Ok(finished.end)
    }

    /// The batch is over: takes it in, with the recorders' own counters.
    fn finish<T>(&self, finished: &FinishedExperiment<T>, extent: &Extent) -> Vec<BatchRow> {
        let ahead_ns = time_of_day_ns();
        let mut live = self.checkpointer.shared().lock();
        let Some(running) = live.running.take() else { return Vec::new() };
        let rows = live.campaign.add(running.batch, extent);
        let at_unix_s = extent.to_unix_s;
        let died = finished.loads.iter().flat_map(|loads| report::deaths(loads));
        died.for_each(|why| live.campaign.note(at_unix_s, &why));
        for (at_ns, what) in &finished.disturbances {
            let at_unix_ns = at_ns.cast_signed().saturating_add(ahead_ns);
            live.campaign.note(at_unix_ns / 1_000_000_000, &what.to_string());
        }
        rows
    }

    /// What the process knows apart from the numbers.
    fn learn<T>(&mut self, finished: &FinishedExperiment<T>, facts: &MachineFacts, pool: usize) {
        self.here.machine = Some(facts.clone());
        self.here.clock = Some(experiment::clock(&finished.clock));
        self.here.session = Some(words::session(finished, facts));
        self.here.warnings = words::warnings(finished, facts);
        self.here.pool = Some(pool);
        let by_condition: Vec<Vec<Load>> =
            finished.loads.iter().map(|loads| report::loads(loads)).collect();
        self.here.loads = self.plan.streams.iter().flat_map(|_| by_condition.clone()).collect();
    }
}

/// Where the samples of a batch go: into the campaign.
struct Place<'a> {
    checkpointer: &'a Checkpointer<'a>,
    facts: &'a MachineFacts,
    from_unix_s: i64,
    /// Which setup it is, once it has begun.
    pool: usize,
}

impl<'a> Destination for Place<'a> {
    type Sink = Feed<'a>;
    type File = File;

    /// Puts collectors in the place where the drain finds them.
    fn begin(
        &mut self,
        prepared: &Prepared,
        granted: &[SchedPolicy],
    ) -> Result<Begun<Feed<'a>, File>, Box<dyn Error + Send + Sync>> {
        let plan = prepared.plan();
        let config = self.checkpointer.config();
        let mut runs = Vec::new();
        let mut starts = Vec::new();
        let mut live = self.checkpointer.shared().lock();
        let mut grids = prepared.run_grids().iter();
        for (stream, &policy) in plan.streams.iter().zip(granted) {
            let (policy, priority) = policy_words(policy);
            for (condition, grid) in plan.conditions.iter().zip(&mut grids) {
                let loads = condition.loads.iter();
                runs.push(RunSetup {
                    name: plain(&run_name(plan, stream, &condition.name)),
                    cpu: stream.thread.pinned_to(),
                    period_ns: grid.period().as_ns(),
                    phase_ns: grid.phase_ns(),
                    policy: policy.to_owned(),
                    priority,
                    wait: stream.thread.wait_kind().name().to_owned(),
                    load: loads.map(|load| plain(&load.to_string())).collect(),
                });
                starts.push(Start {
                    period: grid.period(),
                    epoch: grid.first(),
                    time_of_day_ns: time_of_day_ns(),
                    leave_out_cold: !config.keep_cold,
                    boot: live.campaign.boot(),
                });
            }
        }
        let setup = super::setup(runs, self.facts);
        let (pool, differences) = live.campaign.pool(&setup)?;
        let watched = WatchedThresholds {
            lateness_ns: report::thresholds(&config.limits, &config.claims),
            interval_ns: config.claims.iter().filter_map(|ask| ask.interval_ns()).collect(),
        };
        let batch = live.campaign.batch(pool, &starts, &watched);
        let (from_ns, length) = (now_ns(ClockId::Monotonic), plan.length());
        live.running = Some(Running { batch, from_unix_s: self.from_unix_s, from_ns, length });
        drop(live);
        if !differences.is_empty() {
            let what = differences.join("; ");
            self.checkpointer.note(&format!("kept apart from earlier results: {what}"));
        }
        self.pool = pool;
        Ok(Begun { sink: Feed(self.checkpointer.shared()), file: None })
    }
}

/// What the process counted for each run: loops in the order of the plan, each under all
/// conditions.
fn efforts<S>(finished: &FinishedExperiment<PeriodicOutcome<S>>) -> Vec<Effort> {
    let deaths: Vec<u64> =
        finished.loads.iter().map(|loads| experiment::load_deaths(loads)).collect();
    let runs = finished.outcome.runs.iter().zip(deaths.iter().cycle());
    runs.map(|(run, &load_deaths)| effort(run, load_deaths)).collect()
}

fn effort(run: &RunOutcome, load_deaths: u64) -> Effort {
    Effort {
        load_deaths,
        missed: run.missed,
        unrecorded: run.unrecorded,
        wall_ns: run.wall_ns,
        cpu_ns: (run.cpu_load * run.wall_ns as f64) as u64,
        page_faults: run.usage.minor_faults + run.usage.major_faults,
        preempted: run.usage.involuntary_switches,
        stalled: run.stalls.count,
        stall_max_ns: run.stalls.longest.as_ns().unsigned_abs(),
    }
}

/// Waits, unless it has to stop meanwhile.
fn pause(time: Duration, stop: &AtomicBool) {
    let step = Duration::from_millis(100);
    let mut left = time;
    while left > Duration::ZERO && !stop.load(Ordering::Relaxed) {
        // Nothing is measured now; a signal only sets the flag that is looked at here.
        thread::sleep(step);
        left = left.saturating_sub(step);
    }
}
