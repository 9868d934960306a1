//! The stretches of one session, one after the other, until the end or a stop.
//!
//! Each stretch is an experiment of its own: threads, clock and loads begin anew, so that nothing
//! grows from one to the next. Between two of them a tenth of a second is not measured; there the
//! line of the stretch is said.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use punctual::core::time::Span;
use punctual::os::clock::{ClockId, now_ns};
use punctual::os::signal;
use punctual_analysis::campaign::{Effort, Extent, Row, RunSetup, Start, Watched, plain};
use punctual_host::facts::Facts;
use punctual_host::root::Root;
use punctual_lab::periodic::{Background, End, Outcome, Plan, Prepared, Progress, RunOutcome};

use super::keeper::Keeper;
use super::live::{Feed, Running, time_of_day_ns, unix_s};
use super::pages::{self, Here};
use super::place;
use crate::command::measure::blocks;
use crate::experiment::{self, Live, Loading, policy_words};
use crate::report::{self, Load};

/// Stretches that may fail one after the other before a session gives up.
const FAILURES_MAX: u32 = 3;
/// How long it waits after one that failed.
const PAUSE: Duration = Duration::from_secs(5);

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// All that was asked for is measured.
    Finished,
    /// It was told to stop, or a limit was broken.
    Stopped,
}

/// What a session goes by.
pub(super) struct Session<'a> {
    pub(super) root: &'a Root,
    pub(super) plan: Plan,
    pub(super) specs: Vec<Vec<punctual_lab::load::LoadSpec>>,
    pub(super) keeper: &'a Keeper<'a>,
    pub(super) here: Here,
    /// Where the keeper hears that a stretch is over.
    pub(super) stretches: SyncSender<Here>,
}

/// Loads without a line of progress off a terminal: a journal has the line of each stretch.
struct Quiet {
    loading: Loading,
    terminal: bool,
}

impl Background for Quiet {
    fn begin(&mut self, condition: usize, length: Span) -> Result<(), String> {
        self.loading.begin(condition, length)
    }

    fn end(&mut self, condition: usize) {
        self.loading.end(condition);
    }

    fn progress(&mut self, progress: &Progress) {
        if self.terminal {
            self.loading.progress(progress);
        }
    }
}

impl Session<'_> {
    /// Runs stretches until the campaign is complete or is told to stop.
    ///
    /// # Errors
    /// When loops cannot be started, or loads fail again and again.
    pub(super) fn run(&mut self) -> Result<Ended> {
        let mut failures = 0;
        loop {
            if signal::stop_flag().load(Ordering::Relaxed) {
                return Ok(Ended::Stopped);
            }
            let Some(length) = self.next_length() else { return Ok(Ended::Finished) };
            let end = self.stretch(length)?;
            let failed = match &end {
                End::Load(why) => Some(format!("a load did not start: {why}")),
                End::Watchdog(force) => Some(format!("the watchdog ended a loop ({force:?})")),
                End::Finished | End::Stopped => None,
            };
            let Some(why) = failed else {
                failures = 0;
                continue;
            };
            failures += 1;
            self.keeper.note(&why);
            if failures == FAILURES_MAX || self.keeper.is_empty() {
                bail!(why);
            }
            pause(PAUSE, signal::stop_flag());
        }
    }

    /// How long the next stretch is; `None` when all is measured.
    fn next_length(&self) -> Option<Span> {
        let asked = self.keeper.asked();
        let measured = self.keeper.shared().lock().campaign.measured_ns();
        let periods = self.plan.streams.iter().map(|stream| stream.period.as_ns());
        // Less than that is not worth a cycle.
        let least = periods.max().unwrap_or(0).saturating_add(10_000_000);
        let left = asked.duration.map(|all| all.as_ns().unsigned_abs().saturating_sub(measured));
        match left {
            Some(left) if left < least => None,
            Some(left) => {
                let left = Span::from_ns(i64::try_from(left).unwrap_or(i64::MAX));
                Some(left.min(asked.every))
            }
            None => Some(asked.every),
        }
    }

    fn stretch(&mut self, length: Span) -> Result<End> {
        self.plan.blocks = blocks(self.plan.conditions.len(), length);
        let facts = Facts::collect(self.root);
        let from_unix_s = unix_s();
        let prepared = Prepared::new(self.plan.clone());
        experiment::refuse_short_periods(&prepared)?;
        let pool = self.begin(&prepared, &facts, from_unix_s)?;
        let names = self.plan.conditions.iter().map(|c| c.name.clone()).collect();
        let live = Live::new(&[], self.plan.runs());
        let loading = Loading::new(names, self.specs.clone(), experiment::bounds(&facts), live);
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let mut quiet = Quiet { loading, terminal };
        let feed = Feed(self.keeper.shared());
        let outcome = prepared.run(feed, None::<_SampleFile>, &mut quiet, signal::stop_flag());
        let running = self.keeper.shared().lock().running.as_ref().map(Running::measured_ns);
        let loads = quiet.loading.finish();
        let outcome = outcome.context("cannot start a thread")?;
        self.learn(&outcome, &facts, pool, &loads);
        let extent = Extent {
            from_unix_s,
            to_unix_s: unix_s(),
            measured_ns: running.unwrap_or_default(),
            efforts: outcome.runs.iter().map(effort).collect(),
        };
        let rows = self.finish(&outcome, &extent);
        for row in &rows {
            let loads = self.here.loads.get(row.run).map_or(&[][..], Vec::as_slice);
            let line = pages::line(&self.keeper.shared().lock().campaign, row, loads);
            self.keeper.say(&line);
        }
        // Where the keeper is still at the last one, it saves this one with the next.
        let _busy = self.stretches.try_send(self.here.clone());
        Ok(outcome.end)
    }

    /// Puts collectors in the place where the drain finds them. Gives back which setup it is.
    fn begin(&self, prepared: &Prepared, facts: &Facts, from_unix_s: i64) -> Result<usize> {
        let granted = prepared.granted().context("cannot start a thread")?;
        let plan = &self.plan;
        let mut runs = Vec::new();
        let mut starts = Vec::new();
        let mut live = self.keeper.shared().lock();
        for ((stream, grid), &policy) in plan.streams.iter().zip(prepared.grids()).zip(&granted) {
            let (policy, priority) = policy_words(policy);
            for (index, condition) in plan.conditions.iter().enumerate() {
                let loads = self.specs[index].iter();
                runs.push(RunSetup {
                    name: plain(&report::run_name(plan, stream, &condition.name)),
                    cpu: stream.cpu,
                    period_ns: grid.period().as_ns(),
                    phase_ns: grid.phase_ns(),
                    policy: policy.to_owned(),
                    priority,
                    wait: stream.wait.name().to_owned(),
                    load: loads.map(|load| plain(&load.to_string())).collect(),
                });
                starts.push(Start {
                    period: grid.period(),
                    epoch: grid.first(),
                    time_of_day_ns: time_of_day_ns(),
                    leave_out_cold: !self.keeper.asked().keep_cold,
                    boot: live.campaign.boot(),
                });
            }
        }
        let setup = place::setup(runs, facts);
        let (pool, differences) = live.campaign.pool(&setup)?;
        let asked = self.keeper.asked();
        let watched = Watched {
            lateness_ns: experiment::thresholds(&asked.limits, &asked.claims),
            interval_ns: asked.claims.iter().filter_map(|ask| ask.interval_ns()).collect(),
        };
        let stretch = live.campaign.stretch(pool, &starts, &watched);
        let (from_ns, length) = (now_ns(ClockId::Monotonic), plan.length());
        live.running = Some(Running { stretch, from_unix_s, from_ns, length });
        drop(live);
        if !differences.is_empty() {
            let what = differences.join("; ");
            self.keeper.note(&format!("kept apart from what was before: {what}"));
        }
        Ok(pool)
    }

    /// The stretch is over: takes it in, with the recorders' own counters.
    fn finish(&self, outcome: &Outcome<Feed<'_>>, extent: &Extent) -> Vec<Row> {
        let ahead_ns = time_of_day_ns();
        let mut live = self.keeper.shared().lock();
        let Some(running) = live.running.take() else { return Vec::new() };
        let rows = live.campaign.add(running.stretch, extent);
        for (at_ns, what) in &outcome.disturbances {
            let at_unix_ns = at_ns.cast_signed().saturating_add(ahead_ns);
            live.campaign.note(at_unix_ns / 1_000_000_000, &what.to_string());
        }
        rows
    }

    /// What the process knows beside the numbers.
    fn learn(
        &mut self,
        outcome: &Outcome<Feed<'_>>,
        facts: &Facts,
        pool: usize,
        loads: &[Vec<punctual_lab::load::LoadReport>],
    ) {
        let cold = if self.keeper.asked().keep_cold { 0 } else { self.plan.cold };
        self.here.machine = Some(facts.clone());
        self.here.clock = Some(report::clock(outcome));
        self.here.session = Some(report::session(outcome, facts));
        self.here.warnings = report::warnings(outcome, facts, cold);
        self.here.warnings.extend(experiment::hit(&self.plan, &outcome.runs, facts));
        self.here.pool = Some(pool);
        let by_condition: Vec<Vec<Load>> = loads.iter().map(|l| report::loads(l)).collect();
        self.here.loads = self.plan.streams.iter().flat_map(|_| by_condition.clone()).collect();
    }
}

/// A soak writes no samples; the experiment asks for the type of their file.
type _SampleFile = punctual::drain::SampleFile<File>;

fn effort(run: &RunOutcome) -> Effort {
    Effort {
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

/// Waits, unless it is told to stop meanwhile.
fn pause(time: Duration, stop: &AtomicBool) {
    let step = Duration::from_millis(100);
    let mut left = time;
    while left > Duration::ZERO && !stop.load(Ordering::Relaxed) {
        // Nothing is measured now; a signal only sets the flag that is looked at here.
        thread::sleep(step);
        left = left.saturating_sub(step);
    }
}
