//! The supervisor: a thread that starts the processes of loads, reads what they report, ends them.
//!
//! The kernel ties a process to the *thread* that started it (PR_SET_PDEATHSIG, prctl(2)). This
//! thread lives exactly as long as the loads, so that the caller may start them from any thread.
//! It looks 10 times a second whether one has ended, and starts that again, once; a reader for each
//! wakes when its load reports a count, as often.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual::spawn;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::process::{self, EndSignal};
use punctual_os::scheduler::{self, SchedPolicy};

use super::kinds::{Start, own};
use super::observed::{Shared, lock};
use super::protocol::{LIMIT, Line, STOP, Setup};
use super::{Launcher, LoadBounds, LoadDeath, LoadError, LoadReport, LoadSpec, rate_per_s};

/// A load has so long to be ready: a machine that others use may take seconds for it.
pub const READY: Duration = Duration::from_secs(30);
/// Between two looks at the processes.
const LOOK: Duration = Duration::from_millis(100);

/// A process to start.
struct Launch {
    name: String,
    command: Command,
    observed: Shared,
    /// Whether it reports each tenth of a second, or at its end only.
    reports: bool,
    /// How long it may take to end when that is requested.
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
    let deadline = Instant::now() + READY;
    for one in &*loads {
        one.wait_ready(deadline)?;
    }
    Ok(loads.iter().filter_map(|load| Some(load.process.as_ref()?.child.id())).collect())
}

fn end_all(mut loads: Vec<Load>) {
    let requested = (Instant::now(), now_ns(ClockId::Monotonic));
    for one in &mut loads {
        one.request_end();
    }
    for one in loads {
        let observed = Arc::clone(&one.launch.observed);
        one.end(requested);
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
    /// Whether `process` is the second one.
    restarted: bool,
}

/// A process that runs, leader of a group of its own so that Ctrl-C does not reach it before the
/// caller has decided, and so that whatever it started ends with it.
struct Process {
    child: Child,
    ready: Receiver<()>,
    ended: Receiver<Ended>,
    reader: JoinHandle<()>,
}

/// When a process ended.
struct Ended {
    /// On CLOCK_MONOTONIC, in ns.
    at_ns: u64,
    /// How long after it was ready, in ns.
    worked_ns: Option<u64>,
}

impl Load {
    fn start(mut launch: Launch) -> Result<Self, LoadError> {
        let process = Process::start(&mut launch)
            .map_err(|why| LoadError::Start { name: launch.name.clone(), why })?;
        Ok(Self { launch, process: Some(process), restarted: false })
    }

    fn wait_ready(&self, deadline: Instant) -> Result<(), LoadError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let why = match self.process.as_ref().map(|process| process.ready.recv_timeout(left)) {
            Some(Ok(())) => return Ok(()),
            Some(Err(RecvTimeoutError::Timeout)) => "it was not ready in time".to_owned(),
            Some(Err(RecvTimeoutError::Disconnected)) | None => {
                let failed = lock(&self.launch.observed).failed.take();
                failed.unwrap_or_else(|| "its process ended before it was ready".to_owned())
            }
        };
        Err(LoadError::Start { name: self.launch.name.clone(), why })
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

    /// Why its process ended by itself.
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
        if let Some(pipe) = self.process.as_mut().and_then(|process| process.child.stdin.as_mut()) {
            // A process that has ended reads nothing any more.
            let _ = writeln!(pipe, "{STOP}");
        }
    }

    /// Waits for the end of its process, forces it when the grace since `requested` is over, and
    /// reaps it. One that had ended before has died.
    fn end(mut self, requested: (Instant, u64)) {
        let Some(mut process) = self.process.take() else { return };
        let (at, at_ns) = requested;
        let left = (at + self.launch.grace).saturating_duration_since(Instant::now());
        let ended = process.ended.recv_timeout(left);
        let killed = matches!(ended, Err(RecvTimeoutError::Timeout));
        let mut worked_ns = None;
        if killed {
            lock(&self.launch.observed).progress.unanswered(at_ns);
            process.kill();
            let worked = process.ended.recv_timeout(READY).ok().and_then(|ended| ended.worked_ns);
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
            Ok(reader) => Ok(Self { child, ready, ended, reader }),
            Err(why) => {
                let _ = process::end_group(group, EndSignal::Kill);
                let _ = child.wait();
                Err(why.to_string())
            }
        }
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

    /// What the loads did so far.
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
        (Start::Own(_), _) => vec![Part {
            name: spec.to_string(),
            setup: Some(Setup::new(row.name, bounds)),
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
    let notes: Vec<&str> = part.note.iter().chain(&observed.notes).map(String::as_str).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    let report = |rate: Option<f64>, unit: &str| LoadReport {
        name: part.name.clone(),
        rate,
        unit: format!("{unit}/s"),
        note: note.clone(),
        deaths: Vec::new(),
    };
    let rated = observed.counts.iter();
    let rated =
        rated.map(|counted| report(rate_per_s(counted.count, counted.at_ns), &counted.unit));
    let mut reports: Vec<LoadReport> = rated.collect();
    if reports.is_empty() {
        let mut none = report(None, part.unit);
        none.note.get_or_insert_with(|| "no counts yet".to_owned());
        reports.push(none);
    }
    // A process is listed once, however many rates it has.
    reports[0].deaths.clone_from(&observed.deaths);
    reports
}

/// A load of ours has so long to end in order: it only says a last count.
pub(super) const GRACE: Duration = Duration::from_millis(1500);

/// One process of a load, or the reason why there is none.
pub(super) struct Part {
    /// As reports name it.
    pub(super) name: String,
    /// The process; none when something is not installed.
    pub(super) setup: Option<Setup>,
    /// What it counts, for a report of one that has not named it itself.
    pub(super) unit: &'static str,
    /// What is not installed.
    pub(super) note: Option<String>,
    /// How long it may take to end when that is requested.
    pub(super) grace: Duration,
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
}
