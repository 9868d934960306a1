//! The batches of one session, one after the other, until the end or a stop.
//!
//! Each batch is an experiment of its own: threads, clock and loads begin anew, so that nothing
//! grows from one to the next. Between two of them a tenth of a second is not measured; there the
//! line of the batch is said.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Result, bail};
use punctual_analysis::campaign::{
    Batch, BatchRow, Campaign, Effort, Extent, OtherTime, RunSetup, Setup, Start,
    WatchedThresholds, plain,
};
use punctual_analysis::plain::plain as one_line;
use punctual_core::sample::Sample;
use punctual_core::time::Span;
use punctual_engine::drain::Sink;
use punctual_engine::spawn;
use punctual_host::baseline;
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_host::settings::WatchedSettings;
use punctual_lab::experiment::{ExperimentEnd, ExperimentEvent, FinishedExperiment, Observer};
use punctual_lab::others::{NamedOthers, OthersOnCpu};
use punctual_lab::periodic::{
    Begun, Destination, PeriodicExperiment, PeriodicOutcome, PeriodicPlan, Prepared, RunOutcome,
};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::signal;
use punctual_report::{self as report, Choice, EndedBy, Load, Report};

use super::SoakArgs;
use crate::args::Detail;
use crate::campaign::config::CampaignConfig;
use crate::campaign::directory::Directory;
use crate::campaign::pages::{self, SessionFacts};
use crate::experiment::choices::blocks;
use crate::experiment::loops::run_name;
use crate::experiment::{self, words};
use crate::format;
use crate::output::{self, Opened, Outputs};
use crate::progress::Line;
use crate::stored::RESULT;
use crate::subcommand::Exit;
use crate::view;
use crate::writing::write_in;

/// Batches that may fail one after the other before a session gives up.
const FAILURES_MAX: u32 = 3;
/// The pause after one that failed.
const PAUSE: Duration = Duration::from_secs(5);

/// A campaign that is about to go on.
pub(super) struct SessionStart<'a> {
    pub(super) campaign: Campaign,
    pub(super) config: &'a CampaignConfig,
    pub(super) directory: Directory,
    /// The name of the directory.
    pub(super) path: &'a Path,
    pub(super) root: &'a Root,
    pub(super) plan: PeriodicPlan,
    pub(super) choice: Choice,
    pub(super) facts: &'a MachineFacts,
    /// Notes for the campaign, before the first batch.
    pub(super) notes: Vec<String>,
    /// The error of one of the two states.
    pub(super) trouble: Option<String>,
    /// True where the session before this one was cut off.
    pub(super) cut_off: bool,
    pub(super) args: &'a SoakArgs,
    pub(super) outputs: Outputs,
}

/// Goes on with a campaign until it is complete or has to stop; writes all, and shows the page.
///
/// # Errors
/// The state cannot be saved, loops cannot be started, or loads fail again and again.
pub(super) fn hold(start: SessionStart<'_>) -> Result<Exit> {
    let SessionStart { config, path, root, args, outputs, .. } = start;
    let shared = Shared::new(start.campaign);
    let aside = outputs.are_on_stdout();
    let checkpointer =
        Checkpointer::new(&shared, config, start.directory, args.stop_on_fail, aside);
    report_start(&checkpointer, &start.notes, start.trouble, start.cut_off);
    report_place(&checkpointer, path, config);
    checkpointer.checkpoint();
    if checkpointer.unsaved().is_some() {
        bail!("{}: the state cannot be saved there", path.display());
    }
    let known = SessionFacts {
        choice: Some(start.choice),
        machine: Some(start.facts.clone()),
        ..SessionFacts::default()
    };
    let (batches, over) = mpsc::sync_channel(1);
    let session = Session { root, plan: start.plan, checkpointer: &checkpointer, known, batches };
    let (ended, known) = measure(session, over, args)?;
    finish(&checkpointer, config, ended?, &known, outputs)
}

/// Reports what is to be known before the first batch.
fn report_start(
    checkpointer: &Checkpointer<'_>,
    notes: &[String],
    trouble: Option<String>,
    cut_off: bool,
) {
    notes.iter().for_each(|note| checkpointer.note(note));
    if let Some(why) = trouble {
        checkpointer.note(&format!("one state file is corrupt, so the other one is used: {why}"));
    }
    if cut_off {
        checkpointer.note("the last session was cut off: data after its last save is lost");
    }
}

fn report_place(checkpointer: &Checkpointer<'_>, path: &Path, config: &CampaignConfig) {
    let live = checkpointer.shared().lock();
    let (name, boot) = (live.campaign.name.clone(), live.campaign.boot());
    let measured_ns = live.campaign.measured_ns();
    drop(live);
    let until = match config.duration {
        Some(duration) => format!("{duration} in all"),
        None => "without end".to_owned(),
    };
    let measured = match measured_ns {
        0 => "nothing measured yet".to_owned(),
        ns => format!("{} measured so far", format::long(ns as f64)),
    };
    let shown = path.display();
    checkpointer.print(&format!(
        "campaign {name} in {shown}: boot {boot}, {measured}, {until}; to \
         continue later: punctual soak --resume {shown}"
    ));
}

/// Runs a session with the checkpointer's thread next to it. What is learnt comes back also when it
/// ends in an error.
fn measure(
    mut session: Session<'_>,
    over: mpsc::Receiver<SessionFacts>,
    args: &SoakArgs,
) -> Result<(Result<Ended>, SessionFacts)> {
    let checkpointer = session.checkpointer;
    let every = Duration::from_nanos(args.save_every.0.as_ns().unsigned_abs());
    let housekeeping = session.plan.housekeeping.clone();
    thread::scope(|scope| {
        checkpointer.start(scope, &housekeeping, every, over)?;
        let ended = session.run();
        let Session { known, batches, .. } = session;
        // The checkpointer's thread ends with it.
        drop(batches);
        Ok((ended, known))
    })
}

/// The end of a session: all is written, and the page shown.
fn finish(
    checkpointer: &Checkpointer<'_>,
    config: &CampaignConfig,
    ended: Ended,
    known: &SessionFacts,
    outputs: Outputs,
) -> Result<Exit> {
    checkpointer.shared().lock().campaign.end(unix_s());
    checkpointer.checkpoint();
    checkpointer.write_result(known);
    let mut report = pages::report(&checkpointer.shared().snapshot(), config, known);
    match ended {
        Ended::Finished => {}
        // A broken limit raises the flag as well.
        Ended::Stopped if signal::stop_signal().is_some() => {
            report.envelope.ended_by = Some(EndedBy::of_signal(signal::stop_signal()));
        }
        Ended::Stopped => report.envelope.ended_by = Some(EndedBy::Limit),
    }
    print(&report, outputs, config.verbose).and_then(|exit| {
        checkpointer.unsaved().map_or(Ok(exit), |file| bail!("{file} could not be saved"))
    })
}

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// All of the duration is measured.
    Finished,
    /// It was to stop, or a limit was broken.
    Stopped,
}

/// A session: batches, one after the other.
struct Session<'a> {
    root: &'a Root,
    plan: PeriodicPlan,
    checkpointer: &'a Checkpointer<'a>,
    known: SessionFacts,
    /// To the checkpointer, whenever a batch is over.
    batches: SyncSender<SessionFacts>,
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
    /// Loops cannot be started, or loads fail again and again.
    fn run(&mut self) -> Result<Ended> {
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
                // Of these no campaign sees but the first two.
                ExperimentEnd::Finished
                | ExperimentEnd::Stopped
                | ExperimentEnd::Late
                | ExperimentEnd::Lost => None,
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

    /// The length of the next batch; `None` when all is measured.
    fn next_length(&self) -> Option<Span> {
        let config = self.checkpointer.config();
        let measured = self.checkpointer.shared().lock().campaign.measured_ns();
        match config.left_ns(measured) {
            Some(0) => None,
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
        self.watch_settings();
        let from_unix_s = unix_s();
        let mut place =
            Place { checkpointer: self.checkpointer, facts: &facts, from_unix_s, pool: 0 };
        let loops = PeriodicExperiment {
            plan: self.plan.clone(),
            follow: None,
            known: Vec::new(),
            recording_cost: false,
            blame: None,
            changes: None,
            stop_over: None,
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
            let loads = self.known.loads.get(row.run).map_or(&[][..], Vec::as_slice);
            let line = pages::line(&self.checkpointer.shared().lock().campaign, row, loads);
            self.checkpointer.print(&line);
        }
        // Where the checkpointer is still at the last one, it saves this one with the next.
        let _busy = self.batches.try_send(self.known.clone());
        Ok(finished.end)
    }

    /// Keeps the settings before a batch, and notes those that are not what they were.
    fn watch_settings(&mut self) {
        let settings = WatchedSettings::read(&Root::live());
        let before = self.known.settings.replace(settings.clone());
        let changed = before.map(|before| before.changed(&settings)).unwrap_or_default();
        if let Some(changes) = words::changes(&changed) {
            self.checkpointer.note(&format!("settings changed: {changes}"));
        }
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
        for (at_ns, disturbance) in &finished.disturbances {
            let at_unix_ns = at_ns.cast_signed().saturating_add(ahead_ns);
            live.campaign.note(at_unix_ns / 1_000_000_000, &disturbance.to_string());
        }
        rows
    }

    /// Keeps what the process knows apart from the numbers.
    fn learn<T>(&mut self, finished: &FinishedExperiment<T>, facts: &MachineFacts, pool: usize) {
        self.known.machine = Some(facts.clone());
        self.known.clock = Some(experiment::clock(&finished.clock));
        self.known.session = Some(words::session(finished, facts));
        let measured = self.plan.streams.iter().filter_map(|stream| stream.thread.pinned_to());
        self.known.warnings = words::warnings(finished, facts, &measured.collect());
        self.known.pool = Some(pool);
        let by_condition: Vec<Vec<Load>> =
            finished.loads.iter().map(|loads| report::loads(loads)).collect();
        self.known.loads = self.plan.streams.iter().flat_map(|_| by_condition.clone()).collect();
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
            for (condition, grid) in plan.conditions.iter().zip(&mut grids) {
                let loads = condition.loads.iter();
                runs.push(RunSetup {
                    name: plain(&run_name(plan, stream, &condition.name)),
                    cpu: stream.thread.pinned_to(),
                    period_ns: grid.period().as_ns(),
                    phase_ns: grid.phase_ns(),
                    policy: policy.name().to_owned(),
                    priority: policy.priority(),
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
        let setup = setup(runs, self.facts);
        let (pool, differences) = live.campaign.pool(&setup)?;
        let watched = WatchedThresholds {
            lateness_ns: config.thresholds_ns(),
            interval_ns: config.claims.iter().filter_map(|ask| ask.interval_ns()).collect(),
        };
        let batch = live.campaign.batch(pool, &starts, &watched);
        let (from_ns, length) = (now_ns(ClockId::Monotonic), plan.length());
        live.running = Some(Running { batch, from_unix_s: self.from_unix_s, from_ns, length });
        drop(live);
        if !differences.is_empty() {
            let differences = differences.join("; ");
            self.checkpointer.note(&format!("kept apart from earlier results: {differences}"));
        }
        self.pool = pool;
        Ok(Begun { sink: Feed(self.checkpointer.shared()), file: None })
    }
}

/// The effort of each run, as the process counted it: loops in the order of the plan, each under
/// all conditions.
fn efforts<S>(finished: &FinishedExperiment<PeriodicOutcome<S>>) -> Vec<Effort> {
    let deaths: Vec<u64> =
        finished.loads.iter().map(|loads| experiment::loops::load_deaths(loads)).collect();
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
        steal_ns: run.steal_ns,
        others: run.others.as_ref().map(other_time),
    }
}

fn other_time(others: &OthersOnCpu) -> OtherTime {
    let time_of = |threads: &NamedOthers| (plain(threads.name()), threads.ran_ns());
    OtherTime {
        wall_ns: others.wall_ns,
        run_ns: others.run_ns,
        threads: others.threads.iter().map(time_of).collect(),
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

/// Saves a campaign, checks its limits and claims, reports what happens.
///
/// A thread of its own, on the housekeeping CPUs. A disk that cannot be written ends nothing: it is
/// reported once, the campaign goes on in memory, and each time it is tried again.
struct Checkpointer<'a> {
    shared: &'a Shared,
    config: &'a CampaignConfig,
    directory: Mutex<Directory>,
    /// True where the last save failed.
    failing: AtomicBool,
    /// True where the last result could not be written.
    unwritten: AtomicBool,
    stop_on_fail: bool,
    /// True where standard output is the JSON's.
    aside: bool,
}

impl<'a> Checkpointer<'a> {
    fn new(
        shared: &'a Shared,
        config: &'a CampaignConfig,
        directory: Directory,
        stop_on_fail: bool,
        aside: bool,
    ) -> Self {
        let directory = Mutex::new(directory);
        let (failing, unwritten) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { shared, config, directory, failing, unwritten, stop_on_fail, aside }
    }

    fn shared(&self) -> &'a Shared {
        self.shared
    }

    fn config(&self) -> &'a CampaignConfig {
        self.config
    }

    /// Returns true where nothing was recorded yet.
    fn is_empty(&self) -> bool {
        self.shared.lock().campaign.rows().is_empty()
    }

    /// Prints one line where lines go. A closed output is no error.
    fn print(&self, line: &str) {
        if self.aside {
            output::line(line);
        } else {
            let _nobody = output::page(&(one_line(line) + "\n"));
        }
    }

    /// Prints what happened, and keeps it.
    fn note(&self, event: &str) {
        let mut live = self.shared.lock();
        live.campaign.note(unix_s(), event);
        let name = live.campaign.name.clone();
        drop(live);
        let now =
            jiff::Timestamp::from_second(unix_s()).map_or_else(|_| "-".into(), |t| t.to_string());
        self.print(&format!("{now} {name}: {event}"));
    }

    /// Checks the limits, and saves.
    fn checkpoint(&self) {
        let mut campaign = self.shared.snapshot();
        for (about, why) in pages::broken(&campaign, self.config) {
            let why = one_line(&why);
            if campaign.add_broken(&about, &why) {
                self.note(&format!("broken for good: {why}"));
                self.shared.lock().campaign.add_broken(&about, &why);
            }
        }
        if self.stop_on_fail && !campaign.broken.is_empty() {
            signal::stop_flag().store(true, Ordering::Relaxed);
        }
        let saved = self.directory().save(&campaign);
        match saved {
            Ok(()) if self.failing.swap(false, Ordering::Relaxed) => {
                self.note("the state can be saved again");
            }
            Ok(()) => {}
            Err(why) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    self.note(&format!(
                        "cannot save the state: {why:#}; measuring continues in memory, and \
                         saving will be retried"
                    ));
                }
            }
        }
    }

    /// The file that is not on the disk as it is now.
    fn unsaved(&self) -> Option<&'static str> {
        let failed = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let state = failed(&self.failing).then_some("the state");
        state.or(failed(&self.unwritten).then_some(RESULT))
    }

    fn directory(&self) -> MutexGuard<'_, Directory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the campaign as a result, for other subcommands. Where the state cannot be saved
    /// either, that is reported already.
    fn write_result(&self, known: &SessionFacts) {
        let report = pages::report(&self.shared.snapshot(), self.config, known);
        let dir = self.directory().dir().clone();
        let written = view::json(&report).and_then(|json| Opened::replace(&dir, RESULT, json));
        let before = self.unwritten.swap(written.is_err(), Ordering::Relaxed);
        if let Err(why) = written
            && !before
            && self.unsaved() == Some(RESULT)
        {
            self.note(&format!("{why:#}; retrying after the next batch"));
        }
    }

    /// Saves every so often, and with the result whenever a batch is over, until the channel's
    /// other end is gone. A disk may take its time: the loops do not wait for it.
    fn start<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        housekeeping: &[u32],
        every: Duration,
        batches: mpsc::Receiver<SessionFacts>,
    ) -> io::Result<ScopedJoinHandle<'scope, ()>> {
        let housekeeping = housekeeping.to_vec();
        spawn::scoped(scope, "punctual-save", move || {
            let mut mask = CpuMask::EMPTY;
            housekeeping.iter().for_each(|&cpu| mask.insert(cpu));
            if !housekeeping.is_empty() {
                // Where that is refused it runs where it may.
                let _anywhere = affinity::set(0, &mask);
            }
            loop {
                match batches.recv_timeout(every) {
                    Ok(known) => {
                        self.checkpoint();
                        self.write_result(&known);
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => self.checkpoint(),
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
            }
        })
    }
}

/// The campaign, and the batch that runs.
struct Live {
    /// All batches that are over.
    campaign: Campaign,
    /// The one that runs.
    running: Option<Running>,
}

/// A batch that runs.
#[derive(Clone)]
struct Running {
    /// Its collectors.
    batch: Batch,
    /// Its start, in seconds since 1970.
    from_unix_s: i64,
    /// And on CLOCK_MONOTONIC, once it was set up.
    from_ns: u64,
    /// Its length.
    length: Span,
}

impl Running {
    /// The time that it was measured so far, ns. Ending its threads and loads takes time too, in
    /// which nothing is measured.
    fn measured_ns(&self) -> u64 {
        let passed = now_ns(ClockId::Monotonic).saturating_sub(self.from_ns);
        passed.min(self.length.as_ns().unsigned_abs())
    }
}

/// The campaign and the batch that runs, behind a lock.
struct Shared(Mutex<Live>);

impl Shared {
    /// A campaign in which nothing runs yet.
    fn new(campaign: Campaign) -> Self {
        Self(Mutex::new(Live { campaign, running: None }))
    }

    /// A thread that panicked with the lock leaves numbers that are whole all the same.
    fn lock(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The campaign as if the batch that runs ended now.
    fn snapshot(&self) -> Campaign {
        let live = self.lock();
        let mut campaign = live.campaign.clone();
        let running = live.running.clone();
        drop(live);
        if let Some(running) = running {
            let measured_ns = running.measured_ns();
            // Exact counters come at the end: until then, gaps in k are missed releases.
            let effort = |gaps| Effort { missed: gaps, wall_ns: measured_ns, ..Effort::default() };
            let efforts = running.batch.collectors.iter().map(|c| effort(c.gaps())).collect();
            let extent = Extent {
                from_unix_s: running.from_unix_s,
                to_unix_s: unix_s(),
                measured_ns,
                efforts,
            };
            let _rows = campaign.add(running.batch, &extent);
        }
        campaign
    }
}

/// Takes the samples of the drain into the batch that runs.
struct Feed<'a>(&'a Shared);

impl Sink for Feed<'_> {
    fn take(&mut self, run: usize, samples: &[Sample]) {
        let ahead_ns = time_of_day_ns();
        let mut live = self.0.lock();
        let collectors = live.running.as_mut().map(|running| &mut running.batch.collectors);
        if let Some(collector) = collectors.and_then(|collectors| collectors.get_mut(run)) {
            collector.set_time_of_day(ahead_ns);
            collector.extend(samples);
        }
    }
}

/// The time of day, in seconds since 1970.
pub(super) fn unix_s() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// CLOCK_REALTIME − CLOCK_MONOTONIC, ns.
fn time_of_day_ns() -> i64 {
    now_ns(ClockId::Realtime).cast_signed() - now_ns(ClockId::Monotonic).cast_signed()
}

/// Facts by name, as a campaign keeps text.
pub(super) fn named<'a>(
    facts: &MachineFacts,
    names: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, String> {
    baseline::known(names, facts).into_iter().map(|(name, text)| (name, plain(&text))).collect()
}

/// The setup of these runs on this machine.
fn setup(runs: Vec<RunSetup>, facts: &MachineFacts) -> Setup {
    Setup { runs, facts: named(facts, baseline::lasting()) }
}

pub(super) fn print(report: &Report, outputs: Outputs, verbose: bool) -> Result<Exit> {
    write_in(report, outputs, if verbose { Detail::Long } else { Detail::Short })?;
    Ok(Exit::of(report))
}
