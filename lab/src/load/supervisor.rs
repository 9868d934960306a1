//! The supervisor: a thread that starts the processes of loads, reads what they report, ends them.
//!
//! The kernel ties a process to the *thread* that started it (PR_SET_PDEATHSIG, prctl(2)). This
//! thread lives exactly as long as the loads, so that the caller may start them from any thread.
//! It looks 10 times a second whether one has ended, and starts that again, once; a reader for each
//! wakes when its load reports a count, as often.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_engine::spawn;
use punctual_os::clock::{ClockId, now_ns, process_cpu_ns};
use punctual_os::process::{self, EndSignal};
use punctual_os::scheduler::{self, SchedPolicy};

use super::bounds::LoadBounds;
use super::error::LoadError;
use super::kinds::own;
use super::launcher::Launcher;
use super::protocol::{LIMIT, Line, STOP};
use super::row::{GRACE, Part, Start};
use super::{LoadDeath, LoadReport, LoadSpec, rate_per_s};

/// Time that a load may take to be ready: a machine that others use may take seconds for it, and a
/// guest whose host has little time for it minutes.
const READY: Patience = Patience { idle: Duration::from_secs(30), most: READY_MAX };
/// The longest of that.
pub(super) const READY_MAX: Duration = Duration::from_secs(120);
/// One that has CPU time has at most so long to end: as long as to be ready.
const END: Duration = READY.idle;
/// Between two looks at the processes.
const LOOK: Duration = Duration::from_millis(100);

/// The most time that something may take.
#[derive(Clone, Copy)]
struct Patience {
    /// While it has no CPU time.
    idle: Duration,
    /// In any case.
    most: Duration,
}

/// A process to start.
struct Launch {
    name: String,
    command: Command,
    observed: Shared,
    /// True where it reports each tenth of a second; false where it reports at its end only.
    reports: bool,
    /// Time that it may take to end when that is requested.
    grace: Duration,
}

/// Starts all, reports that, waits until `stop` has no sender any more, and ends all.
fn supervise(
    launches: Vec<Launch>,
    started: &Sender<Result<Vec<u32>, LoadError>>,
    stop: &Receiver<()>,
) {
    // A caller under a real-time policy must not hand it to threads that only read; when this is
    // refused they read all the same.
    let _ = scheduler::set(0, SchedPolicy::Other);
    let mut loads = Vec::new();
    let result = start_all(launches, &mut loads);
    let failed = result.is_err();
    let received = started.send(result);
    if !failed && received.is_ok() {
        while stop.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            loads.iter_mut().for_each(Load::look);
        }
    }
    end_all(loads);
}

fn start_all(launches: Vec<Launch>, loads: &mut Vec<Load>) -> Result<Vec<u32>, LoadError> {
    for launch in launches {
        loads.push(Load::start(launch)?);
    }
    let begun = Instant::now();
    for load in &mut *loads {
        load.wait_ready(READY, begun)?;
    }
    Ok(loads.iter().filter_map(|load| Some(load.process.as_ref()?.child.id())).collect())
}

fn end_all(mut loads: Vec<Load>) {
    let requested = (Instant::now(), now_ns(ClockId::Monotonic));
    for load in &mut loads {
        load.request_end();
    }
    for load in loads {
        let observed = Arc::clone(&load.launch.observed);
        load.end(requested);
        let mut observed = lock(&observed);
        let stood_still = observed.progress.stood_still();
        observed.deaths.extend(stood_still);
        observed.deaths.sort_by_key(|death| death.at_ns);
    }
}

/// A load, and its process while it has one.
struct Load {
    launch: Launch,
    process: Option<Process>,
    /// True where `process` is the second one.
    restarted: bool,
}

/// A process that runs, leader of a group of its own so that Ctrl-C does not reach it before the
/// caller has decided, and so that whatever it started ends with it.
struct Process {
    child: Child,
    ready: Receiver<()>,
    ended: Receiver<Ended>,
    reader: JoinHandle<()>,
    /// Its CPU time when that was last looked at.
    cpu_ns: Option<u64>,
}

/// The end of a process.
struct Ended {
    /// On CLOCK_MONOTONIC, in ns.
    at_ns: u64,
    /// Time from when it was ready until then, in ns; `None` when it was not.
    worked_ns: Option<u64>,
}

impl Load {
    fn start(mut launch: Launch) -> Result<Self, LoadError> {
        let process = Process::start(&mut launch)
            .map_err(|why| LoadError::Start { name: launch.name.clone(), why })?;
        Ok(Self { launch, process: Some(process), restarted: false })
    }

    /// Waits until it is ready: while it has CPU time as long as `patience` allows since `begun`,
    /// when all were started.
    fn wait_ready(&mut self, patience: Patience, begun: Instant) -> Result<(), LoadError> {
        let why = loop {
            let Some(process) = &mut self.process else { break self.early_end() };
            process.has_run();
            match process.ready.recv_timeout(patience.idle) {
                Ok(()) => return Ok(()),
                Err(RecvTimeoutError::Timeout) if begun.elapsed() >= patience.most => {
                    break format!("it was not ready in {} s", begun.elapsed().as_secs());
                }
                Err(RecvTimeoutError::Timeout) if process.has_run() => {}
                Err(RecvTimeoutError::Timeout) => {
                    break format!(
                        "it was not ready in {} s, and had no CPU time",
                        begun.elapsed().as_secs()
                    );
                }
                Err(RecvTimeoutError::Disconnected) => break self.early_end(),
            }
        };
        Err(LoadError::Start { name: self.launch.name.clone(), why })
    }

    /// The reason, in words, for which it ended before it was ready.
    fn early_end(&self) -> String {
        let failed = lock(&self.launch.observed).failed.take();
        failed.unwrap_or_else(|| "its process ended before it was ready".to_owned())
    }

    /// Takes in that its process has ended, and starts it again if that was the first; or that it
    /// has not.
    fn look(&mut self) {
        let ended = self.process.as_ref().map(|process| process.ended.try_recv());
        let Some(Ok(ended)) = ended else {
            if self.launch.reports && self.process.is_some() {
                lock(&self.launch.observed).progress.look(now_ns(ClockId::Monotonic));
            }
            return;
        };
        let Some(process) = self.process.take() else { return };
        let why = self.reason(process.reap());
        // One that came to its limit must not get another.
        if !self.restarted && why != LIMIT {
            self.restarted = true;
            lock(&self.launch.observed).carry();
            // One that cannot be started has died for good; the report says so.
            self.process = Process::start(&mut self.launch).ok();
        }
        let restarted = self.process.is_some();
        self.died(&ended, why, restarted);
    }

    /// The reason, in words, for which its process ended by itself.
    fn reason(&self, status: Option<ExitStatus>) -> String {
        let mut observed = lock(&self.launch.observed);
        match (observed.failed.take(), status) {
            (Some(why), _) => format!("it failed: {why}"),
            (None, Some(status)) if !status.success() => format!("it ended by itself: {status}"),
            _ if observed.notes.iter().any(|note| note == LIMIT) => LIMIT.to_owned(),
            _ => observed.notes.last().cloned().unwrap_or_else(|| "it ended by itself".to_owned()),
        }
    }

    fn died(&self, ended: &Ended, why: String, restarted: bool) {
        let Ended { at_ns, worked_ns } = *ended;
        let mut observed = lock(&self.launch.observed);
        if !observed.notes.contains(&why) {
            observed.notes.push(why.clone());
        }
        let stood_still_ns = None;
        observed.deaths.push(LoadDeath { at_ns, worked_ns, why, restarted, stood_still_ns });
    }

    /// Requests the end of its process.
    fn request_end(&mut self) {
        let Some(process) = &mut self.process else { return };
        process.has_run();
        if let Some(pipe) = &mut process.child.stdin {
            // A process that has ended reads nothing any more.
            let _ = writeln!(pipe, "{STOP}");
        }
    }

    /// Waits for the end of its process, forces it when the grace since `requested` is over, and
    /// reaps it. One that had ended before has died.
    ///
    /// A grace in which it had CPU time is followed by another, up to [`END`]: on a busy machine
    /// its end takes longer. One that is stopped or frozen has none.
    fn end(mut self, requested: (Instant, u64)) {
        let Some(mut process) = self.process.take() else { return };
        let (at, at_ns) = requested;
        let left = (at + self.launch.grace).saturating_duration_since(Instant::now());
        let mut ended = process.wait(left);
        while matches!(ended, Err(RecvTimeoutError::Timeout))
            && at.elapsed() < END
            && process.has_run()
        {
            ended = process.wait(self.launch.grace);
        }
        let killed = matches!(ended, Err(RecvTimeoutError::Timeout));
        let mut worked_ns = None;
        if killed {
            lock(&self.launch.observed).progress.unanswered(at_ns);
            process.kill();
            let worked = process.ended.recv_timeout(END).ok().and_then(|ended| ended.worked_ns);
            let overdue_ns = now_ns(ClockId::Monotonic).saturating_sub(at_ns);
            worked_ns = worked.map(|ns| ns.saturating_sub(overdue_ns));
        }
        let status = process.reap();
        if let Some(ended) = ended.ok().filter(|ended| ended.at_ns < at_ns) {
            let why = self.reason(status);
            return self.died(&ended, why, false);
        }
        let silent = lock(&self.launch.observed).counts.is_empty();
        if killed && silent && !self.launch.reports {
            // It may have stood still: nothing shows that it did anything.
            let why = "it did not answer the request of its end, and gave no counts".to_owned();
            return self.died(&Ended { at_ns, worked_ns }, why, false);
        }
        let mut observed = lock(&self.launch.observed);
        if killed {
            observed.notes.push("it had to be killed".to_owned());
        } else if let Some(why) = observed.failed.take() {
            observed.notes.push(format!("it failed: {why}"));
        } else if let Some(status) = status
            && !status.success()
        {
            observed.notes.push(format!("it ended by itself: {status}"));
        }
    }
}

impl Process {
    fn start(launch: &mut Launch) -> Result<Self, String> {
        let Launch { command, observed, .. } = launch;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = spawn::process(command).map_err(|why| why.to_string())?;
        let (to_ready, ready) = channel();
        let (to_ended, ended) = channel();
        let group = child.id().cast_signed();
        let out = child.stdout.take();
        let shared = Arc::clone(observed);
        let reader = spawn::plain("load-reader", move || {
            let began_ns = out.and_then(|out| read(out, &shared, to_ready));
            let at_ns = now_ns(ClockId::Monotonic);
            let worked_ns = began_ns.map(|began_ns| at_ns.saturating_sub(began_ns));
            // It has ended, or will: whatever it started ends too. Its number is still its own,
            // since nobody waits for it before this thread has ended.
            let _ = process::end_group(group, EndSignal::Kill);
            // Nobody waits any more when the start was given up.
            let _ = to_ended.send(Ended { at_ns, worked_ns });
        });
        match reader {
            Ok(reader) => Ok(Self { child, ready, ended, reader, cpu_ns: None }),
            Err(why) => {
                let _ = process::end_group(group, EndSignal::Kill);
                let _ = child.wait();
                Err(why.to_string())
            }
        }
    }

    /// Waits for its end so long, in looks: a machine that stood still as a whole meanwhile, a
    /// guest for instance, costs it one of them.
    fn wait(&self, time: Duration) -> Result<Ended, RecvTimeoutError> {
        let looks = time.as_nanos().div_ceil(LOOK.as_nanos());
        for _ in 1..looks {
            let ended = self.ended.recv_timeout(LOOK);
            if !matches!(ended, Err(RecvTimeoutError::Timeout)) {
                return ended;
            }
        }
        self.ended.recv_timeout(LOOK.min(time))
    }

    /// Returns true where it had CPU time since the last call.
    fn has_run(&mut self) -> bool {
        let before = self.cpu_ns;
        self.cpu_ns = process_cpu_ns(self.child.id().cast_signed());
        self.cpu_ns != before
    }

    fn kill(&mut self) {
        let _ = process::end_group(self.child.id().cast_signed(), EndSignal::Kill);
    }

    /// Waits for its end. The reader ends when the process has; only then is the process waited
    /// for, and its number free again.
    fn reap(mut self) -> Option<ExitStatus> {
        let _ = self.reader.join();
        drop(self.child.stdin.take());
        self.child.wait().ok()
    }
}

/// Takes in what a load reports, until it ends; when it was ready, on CLOCK_MONOTONIC.
fn read(out: ChildStdout, observed: &Shared, ready: Sender<()>) -> Option<u64> {
    let mut began_ns = None;
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        let Some(line) = Line::parse(&line) else { continue };
        if line == Line::Ready {
            began_ns = Some(now_ns(ClockId::Monotonic));
            // Nobody waits any more when the start was given up.
            let _ = ready.send(());
        }
        lock(observed).take_in(line);
    }
    began_ns
}

/// A part as long as it runs.
struct RunningPart {
    name: String,
    unit: &'static str,
    note: Option<String>,
    observed: Shared,
}

/// Loads that run; they end when it is dropped, and with this process in any case.
pub struct RunningLoads {
    parts: Vec<RunningPart>,
    pids: Vec<u32>,
    /// The supervisor ends the loads when this is dropped.
    stop: Option<Sender<()>>,
    supervisor: Option<JoinHandle<()>>,
}

impl RunningLoads {
    /// Starts `specs` together and returns when each is ready, or none of them runs. No spec is
    /// fine: nothing is started then.
    ///
    /// May be called from any thread; the loads inherit neither its policy nor its CPUs. SIGPIPE
    /// must be ignored, as Rust programs have it, since a load may end before it is spoken to.
    ///
    /// # Errors
    /// [`LoadError::Bounds`], [`LoadError::Missing`] and [`LoadError::StressNg`] before anything is
    /// started, [`LoadError::Start`] after.
    pub fn start(
        specs: &[LoadSpec],
        launcher: &dyn Launcher,
        bounds: &LoadBounds,
    ) -> Result<Self, LoadError> {
        bounds.check()?;
        let mut running =
            Self { parts: Vec::new(), pids: Vec::new(), stop: None, supervisor: None };
        let mut launches = Vec::new();
        for spec in specs {
            for part in parts(spec, bounds)? {
                let observed = Shared::default();
                if let Some(setup) = part.setup {
                    let command: Command = launcher.command(&setup.to_args());
                    let (name, observed) = (part.name.clone(), Arc::clone(&observed));
                    let (grace, reports) = (part.grace, own(&setup.name).is_some());
                    launches.push(Launch { name, command, observed, reports, grace });
                }
                let (name, unit, note) = (part.name, part.unit, part.note);
                running.parts.push(RunningPart { name, unit, note, observed });
            }
        }
        if !launches.is_empty() {
            running.supervise(launches)?;
        }
        Ok(running)
    }

    fn supervise(&mut self, launches: Vec<Launch>) -> Result<(), LoadError> {
        let failed = |why: String| LoadError::Start { name: "supervisor".to_owned(), why };
        let (to_supervisor, stop) = channel();
        let (to_us, started) = channel();
        let supervise = move || supervise(launches, &to_us, &stop);
        let supervisor = spawn::plain("load-supervisor", supervise);
        let supervisor = supervisor.map_err(|why| failed(why.to_string()))?;
        self.stop = Some(to_supervisor);
        self.supervisor = Some(supervisor);
        let started = started.recv().map_err(|_| failed("its thread ended".to_owned()))?;
        // On an error the drop of `self` waits until the supervisor has ended what did start.
        self.pids = started?;
        Ok(())
    }

    /// The processes of the loads, for whoever traces; each leads a process group.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// The reports of the loads so far.
    pub fn reports(&self) -> Vec<LoadReport> {
        self.parts.iter().flat_map(reports).collect()
    }

    /// Ends the loads, waits until nothing of them is left (a moment for our own, some seconds at
    /// most for stress-ng and glxgears), and gives what they did.
    pub fn stop(mut self) -> Vec<LoadReport> {
        self.end();
        self.reports()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(supervisor) = self.supervisor.take() {
            // A supervisor that panicked has ended, and the kernel has ended its loads with it.
            let _ = supervisor.join();
        }
    }
}

impl Drop for RunningLoads {
    fn drop(&mut self) {
        self.end();
    }
}

/// The processes of one load.
fn parts(spec: &LoadSpec, bounds: &LoadBounds) -> Result<Vec<Part>, LoadError> {
    let row = spec.row();
    Ok(match (&row.start, spec.args()) {
        (Start::Own(_) | Start::Heavy(_), _) => vec![Part {
            name: spec.to_string(),
            setup: Some(row.setup(bounds)),
            unit: row.unit,
            note: None,
            grace: GRACE,
        }],
        (Start::Parts(parts), _) => parts(bounds),
        (Start::Program(part), Some(args)) => vec![part(args, bounds)?],
        // A list that was read has them.
        (Start::Program(_), None) => Vec::new(),
    })
}

fn reports(part: &RunningPart) -> Vec<LoadReport> {
    let observed = lock(&part.observed);
    let report = |rate: Option<f64>, unit: &str| LoadReport {
        name: part.name.clone(),
        rate,
        unit: format!("{unit}/s"),
        notes: part.note.iter().chain(&observed.notes).cloned().collect(),
        deaths: Vec::new(),
    };
    let rated = observed.counts.iter();
    let rated =
        rated.map(|counted| report(rate_per_s(counted.count, counted.at_ns), &counted.unit));
    let mut reports: Vec<LoadReport> = rated.collect();
    if reports.is_empty() {
        let mut none = report(None, part.unit);
        if none.notes.is_empty() {
            none.notes.push("no counts yet".to_owned());
        }
        reports.push(none);
    }
    // A process is listed once, however many rates it has.
    reports[0].deaths.clone_from(&observed.deaths);
    reports
}

/// One count, the last of its unit.
#[derive(Clone, Debug, PartialEq)]
struct Counted {
    unit: String,
    count: u64,
    at_ns: u64,
}

/// The reports of a load so far.
///
/// Shared between its reader, the supervisor and whoever wants a report; nothing here waits.
#[derive(Default)]
struct Observed {
    counts: Vec<Counted>,
    notes: Vec<String>,
    deaths: Vec<LoadDeath>,
    /// Its reports and silences; of no use for one that reports at its end only.
    progress: Progress,
    /// The counts of a process that died before.
    carried: Vec<Counted>,
    failed: Option<String>,
}

/// Shared between a reader, the supervisor and whoever wants a report.
type Shared = Arc<Mutex<Observed>>;

/// Locks the reports, also those of a thread that panicked: each line is taken in whole.
fn lock(observed: &Shared) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observed {
    /// The next process adds to the counts of the one that died.
    fn carry(&mut self) {
        self.carried = self.counts.clone();
        self.progress.pause();
    }

    /// Takes in one line.
    fn take_in(&mut self, line: Line) {
        match line {
            Line::Ready => self.progress.begin(),
            Line::Note(note) => {
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            Line::Failed(why) => self.failed = Some(why),
            Line::Count { count, at_ns, unit } => {
                let carried = self.carried.iter().find(|before| before.unit == unit);
                let (more, more_ns) = carried.map_or((0, 0), |before| (before.count, before.at_ns));
                let (count, at_ns) = (count.saturating_add(more), at_ns.saturating_add(more_ns));
                self.progress.report((count, at_ns));
                let counted = Counted { unit, count, at_ns };
                match self.counts.iter_mut().find(|before| before.unit == counted.unit) {
                    Some(before) => *before = counted,
                    None => self.counts.push(counted),
                }
            }
        }
    }
}

/// So many looks in a row without a report, a tenth of a second each at least, are a silence.
const SILENT: u32 = 20;
/// Counts the silence before an end that the load did not answer, at `at_ns`.
const SILENT_AT_END: u32 = 5;
/// The share of its other rate below which a load did next to nothing.
const SHARE: f64 = 0.1;
/// The silences that are kept.
const SILENCES_MAX: usize = 16;

/// The progress of a load: its count, and its own time since it was ready, in ns.
type Mark = (u64, u64);

/// The reports of a load, and the looks that found none.
///
/// For the supervisor, which looks at its loads and hears their counts. A load of ours reports each
/// tenth of a second however little it does, and a busy machine delays that, but not for long; nor
/// does it keep the load's other threads from their work meanwhile. So a load stood still where it
/// reported nothing over many looks of the supervisor, each of them a time that the supervisor
/// itself ran, *and* then had done less in that time than a tenth of what it does otherwise. Reads
/// no clock.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// True once its process has reported that it works.
    works: bool,
    last: Mark,
    /// Looks since the last report, and when the first of them was, on CLOCK_MONOTONIC in ns.
    looks: u32,
    since_ns: u64,
    silences: Vec<Silence>,
}

/// A time without a report, longer than a busy machine makes it.
#[derive(Clone, Copy, Debug)]
struct Silence {
    /// Its begin, ns on CLOCK_MONOTONIC.
    at_ns: u64,
    /// The progress of the load at the beginning and at the end.
    from: Mark,
    to: Mark,
    /// True where a report ended it: then the load's own time includes it.
    reported: bool,
}

impl Progress {
    /// Its process works from now on.
    fn begin(&mut self) {
        (self.works, self.looks) = (true, 0);
    }

    /// Its process has ended: nothing is expected of it.
    fn pause(&mut self) {
        (self.works, self.looks) = (false, 0);
    }

    /// The supervisor looked, at `now_ns` on CLOCK_MONOTONIC.
    fn look(&mut self, now_ns: u64) {
        if self.works {
            if self.looks == 0 {
                self.since_ns = now_ns;
            }
            self.looks = self.looks.saturating_add(1);
        }
    }

    /// It reported how far it is.
    fn report(&mut self, to: Mark) {
        if self.looks >= SILENT {
            self.keep(to, true);
        }
        (self.last, self.looks) = (to, 0);
    }

    /// It did not answer the request of its end, which was at `at_ns`.
    fn unanswered(&mut self, at_ns: u64) {
        if self.works && self.looks >= SILENT_AT_END {
            let (count, own_ns) = self.last;
            let to = (count, own_ns.saturating_add(at_ns.saturating_sub(self.since_ns)));
            self.keep(to, false);
        }
    }

    fn keep(&mut self, to: Mark, reported: bool) {
        if self.silences.len() < SILENCES_MAX {
            let (at_ns, from) = (self.since_ns, self.last);
            self.silences.push(Silence { at_ns, from, to, reported });
        }
    }

    /// The silences in which it did next to nothing, as what they are to its run: as bad as a
    /// death.
    fn stood_still(&self) -> Vec<LoadDeath> {
        let (mut count, mut own_ns) = self.last;
        for silence in self.silences.iter().filter(|silence| silence.reported) {
            count = count.saturating_sub(silence.done());
            own_ns = own_ns.saturating_sub(silence.length_ns());
        }
        let otherwise = if own_ns > 0 { count as f64 / own_ns as f64 } else { 0.0 };
        let still = |silence: &&Silence| {
            let usual = otherwise * silence.length_ns() as f64;
            silence.done() == 0 || (silence.done() as f64) < SHARE * usual
        };
        let event = |silence: &Silence| LoadDeath {
            at_ns: silence.at_ns,
            worked_ns: Some(silence.from.1),
            why: "it was stopped, frozen, or had no CPU".to_owned(),
            restarted: false,
            stood_still_ns: Some(silence.length_ns()),
        };
        self.silences.iter().filter(still).map(event).collect()
    }
}

impl Silence {
    fn done(&self) -> u64 {
        self.to.0.saturating_sub(self.from.0)
    }

    fn length_ns(&self) -> u64 {
        self.to.1.saturating_sub(self.from.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_at_once_did_not_start() {
        let launch = Launch {
            name: "x".to_owned(),
            command: Command::new("true"),
            observed: Shared::default(),
            reports: true,
            grace: Duration::ZERO,
        };
        let (started, result) = channel();
        let (_stop, stopped) = channel();
        supervise(vec![launch], &started, &stopped);
        let result = result.recv().expect("a result");
        assert!(matches!(result, Err(LoadError::Start { name, .. }) if name == "x"));
    }

    /// The notes on a process of a shell that ends by `at_stop` when it is requested to, and has a
    /// grace of half a second.
    fn notes_of(at_stop: &str, meanwhile: impl FnOnce()) -> Vec<String> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo ready; echo count 1 1 a; read stop; {at_stop}")]);
        let observed = Shared::default();
        let launch = Launch {
            name: "x".to_owned(),
            command,
            observed: Arc::clone(&observed),
            reports: true,
            grace: Duration::from_millis(500),
        };
        let (started, result) = channel();
        let (stop, stopped) = channel();
        let supervisor = std::thread::spawn(move || supervise(vec![launch], &started, &stopped));
        result.recv().expect("a result").expect("it starts");
        drop(stop);
        meanwhile();
        supervisor.join().expect("no panic");
        std::mem::take(&mut lock(&observed).notes)
    }

    /// Why a process of a shell that does `work` before it is ready did not start, with so much
    /// patience while it has no CPU time, and so much in all.
    fn refused(work: &str, idle: Duration, most: Duration) -> Option<String> {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{work}; echo ready; read stop")]);
        let launch = Launch {
            name: "x".to_owned(),
            command,
            observed: Shared::default(),
            reports: true,
            grace: Duration::ZERO,
        };
        let mut load = super::Load::start(launch).expect("it starts");
        let patience = Patience { idle, most };
        let ready = load.wait_ready(patience, Instant::now());
        load.end((Instant::now(), now_ns(ClockId::Monotonic)));
        ready.err().map(|why| why.to_string())
    }

    #[test]
    fn one_that_works_has_longer_to_be_ready_than_one_that_does_nothing() {
        let (minute, second) = (Duration::from_secs(60), Duration::from_secs(1));
        let tenth = second / 10;
        // Beside loops of other tests it may have to wait for a CPU.
        let counts = "i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done";
        assert_eq!(refused(counts, second, minute), None);
        let why = refused("sleep 60", tenth, minute).expect("it does nothing");
        assert!(why.contains("had no CPU time"), "{why}");
        let why = refused("while :; do :; done", second, 4 * tenth).expect("no end");
        assert!(why.contains("not ready in") && !why.contains("CPU"), "{why}");
    }

    #[test]
    fn one_that_is_slow_to_end_is_killed_only_where_it_does_nothing() {
        assert_eq!(notes_of("sleep 600", || ()), ["it had to be killed"]);
        let end = std::env::temp_dir().join(format!("punctual-end-{}", std::process::id()));
        let works = format!("while [ ! -e {} ]; do :; done", end.display());
        let notes = notes_of(&works, || {
            std::thread::sleep(Duration::from_millis(1800));
            std::fs::write(&end, "").expect("a file");
        });
        std::fs::remove_file(&end).expect("just written");
        assert!(notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn the_last_count_of_each_unit_stays() {
        let mut observed = Observed::default();
        let count = |count, unit: &str| Line::Count { count, at_ns: 5, unit: unit.to_owned() };
        let lines = [count(1, "a"), count(2, "b"), count(3, "a")];
        lines.into_iter().for_each(|line| observed.take_in(line));
        observed.take_in(Line::Note("x".into()));
        observed.take_in(Line::Note("x".into()));
        let counts: Vec<_> = observed.counts.iter().map(|c| (c.count, c.unit.as_str())).collect();
        assert_eq!(counts, [(3, "a"), (2, "b")]);
        assert_eq!(observed.notes, ["x"]);
    }

    #[test]
    fn counts_of_a_second_process_are_added() {
        let mut observed = Observed::default();
        let count = |count, at_ns| Line::Count { count, at_ns, unit: "a".to_owned() };
        observed.take_in(count(3, 5));
        observed.carry();
        observed.take_in(count(1, 2));
        observed.take_in(count(2, 4));
        assert_eq!((observed.counts[0].count, observed.counts[0].at_ns), (5, 9));
    }

    const TENTH: u64 = 100_000_000;

    /// A load of one a tenth of a second, seen at each look but those that are silent.
    #[derive(Default)]
    struct Load {
        progress: Progress,
        now_ns: u64,
        count: u64,
        own_ns: u64,
    }

    impl Load {
        fn new() -> Self {
            let mut load = Self::default();
            load.progress.begin();
            load
        }

        fn works(&mut self, tenths: u64) {
            for _ in 0..tenths {
                (self.count, self.now_ns) = (self.count + 10, self.now_ns + TENTH);
                self.own_ns += TENTH;
                self.progress.look(self.now_ns);
                self.progress.report((self.count, self.own_ns));
            }
        }

        /// Silent, with so much done in each tenth.
        fn silent(&mut self, tenths: u64, done: u64) {
            for _ in 0..tenths {
                (self.count, self.now_ns) = (self.count + done, self.now_ns + TENTH);
                self.own_ns += TENTH;
                self.progress.look(self.now_ns);
            }
        }

        fn still_s(&self) -> Vec<f64> {
            let deaths = self.progress.stood_still();
            deaths
                .iter()
                .map(|deaths| deaths.stood_still_ns.expect("its length") as f64 / 1e9)
                .collect()
        }
    }

    #[test]
    fn a_load_that_is_stopped_and_goes_on_stood_still_meanwhile() {
        let mut load = Load::new();
        load.works(30);
        load.silent(50, 0);
        load.works(30);
        let deaths = load.progress.stood_still();
        assert_eq!(deaths.len(), 1);
        assert_eq!((deaths[0].at_ns, deaths[0].worked_ns), (31 * TENTH, Some(30 * TENTH)));
        // A tenth more: until the report that ended it.
        assert_eq!(deaths[0].stood_still_ns, Some(51 * TENTH));
        assert!(!deaths[0].restarted);
    }

    #[test]
    fn a_load_that_does_not_answer_its_end_stood_still_since_it_was_silent() {
        let mut load = Load::new();
        load.works(30);
        load.silent(40, 0);
        load.progress.unanswered(load.now_ns);
        assert_eq!(load.still_s(), [3.9]);
        // From its beginning on, in a short block.
        let mut load = Load::new();
        load.silent(5, 0);
        load.progress.unanswered(load.now_ns);
        assert_eq!(load.still_s().len(), 1);
    }

    #[test]
    fn a_busy_machine_that_slows_a_load_or_delays_its_reports_is_none_that_stopped_it() {
        let mut slow = Load::new();
        slow.works(30);
        // Reports late, now and then, and never twenty looks in a row.
        for _ in 0..30 {
            slow.silent(u64::from(SILENT) - 2, 0);
            slow.works(1);
        }
        assert!(slow.still_s().is_empty());
        // The thread that reports had no CPU, those that work had.
        let mut late = Load::new();
        late.works(30);
        late.silent(60, 3);
        late.works(30);
        assert!(late.still_s().is_empty());
        // The whole machine stood: the supervisor too, which looked once.
        let mut host = Load::new();
        host.works(30);
        (host.now_ns, host.own_ns) = (host.now_ns + 100 * TENTH, host.own_ns + 100 * TENTH);
        host.works(30);
        assert!(host.still_s().is_empty());
        // Killed at its end, having reported until just before.
        let mut killed = Load::new();
        killed.works(30);
        killed.silent(3, 0);
        killed.progress.unanswered(killed.now_ns);
        assert!(killed.still_s().is_empty());
    }

    #[test]
    fn one_that_starts_again_is_not_expected_to_work_before_it_is_ready() {
        let mut load = Load::new();
        load.works(30);
        load.progress.pause();
        load.silent(100, 0);
        load.progress.begin();
        load.works(10);
        assert!(load.still_s().is_empty());
    }
}
