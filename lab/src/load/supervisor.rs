//! The supervisor: a thread that starts the processes of loads, reads what they report, ends them.
//!
//! The kernel ties a process to the *thread* that started it (PR_SET_PDEATHSIG, prctl(2)). This
//! thread lives exactly as long as the loads, so that the caller may start them from any thread.
//! It sleeps while they run; a reader for each wakes when its load reports a count, 10 times a
//! second.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_os::process::{self, EndSignal};
use punctual_os::scheduler::{self, SchedPolicy};

use super::error::LoadError;
use super::protocol::{Line, STOP};

/// A load has so long to be ready.
const READY: Duration = Duration::from_secs(15);

/// One count, the last of its unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counted {
    pub(super) unit: String,
    pub(super) count: u64,
    pub(super) at_ns: u64,
}

/// What a load has reported so far.
#[derive(Default)]
pub(super) struct Observed {
    pub(super) counts: Vec<Counted>,
    pub(super) notes: Vec<String>,
    failed: Option<String>,
}

/// Shared between a reader, the supervisor and whoever wants a report.
pub(super) type Shared = Arc<Mutex<Observed>>;

/// What was observed, also from a thread that panicked: each line is taken in whole.
pub(super) fn lock(observed: &Shared) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process to start.
pub(super) struct Launch {
    pub(super) name: String,
    pub(super) command: Command,
    pub(super) observed: Shared,
    /// How long it may take to end when that is requested.
    pub(super) grace: Duration,
}

/// Starts all, reports that, waits until `stop` has no sender any more, and ends all.
pub(super) fn supervise(
    launches: Vec<Launch>,
    started: &Sender<Result<Vec<u32>, LoadError>>,
    stop: &Receiver<()>,
) {
    // A caller under a real-time policy must not hand it to threads that only read; when this is
    // refused they read all the same.
    let _ = scheduler::set(0, SchedPolicy::Other);
    let mut processes = Vec::new();
    let result = start_all(launches, &mut processes);
    let failed = result.is_err();
    let received = started.send(result);
    if !failed && received.is_ok() {
        let _ = stop.recv();
    }
    end_all(processes);
}

fn start_all(launches: Vec<Launch>, processes: &mut Vec<Process>) -> Result<Vec<u32>, LoadError> {
    for launch in launches {
        processes.push(Process::start(launch)?);
    }
    let deadline = Instant::now() + READY;
    for one in &*processes {
        one.wait_ready(deadline)?;
    }
    Ok(processes.iter().map(|one| one.child.id()).collect())
}

fn end_all(mut processes: Vec<Process>) {
    for one in &mut processes {
        one.request_end();
    }
    let requested = Instant::now();
    for one in processes {
        one.end(requested);
    }
}

/// A process that runs, leader of a group of its own so that Ctrl-C does not reach it before the
/// caller has decided, and so that whatever it started ends with it.
struct Process {
    name: String,
    child: Child,
    observed: Shared,
    grace: Duration,
    ready: Receiver<()>,
    over: Receiver<()>,
    reader: JoinHandle<()>,
}

impl Process {
    fn start(launch: Launch) -> Result<Self, LoadError> {
        let Launch { name, mut command, observed, grace } = launch;
        let failed = |why: String| LoadError::Start { name: name.clone(), why };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|why| failed(why.to_string()))?;
        let (to_ready, ready) = channel();
        let (to_over, over) = channel();
        let group = child.id().cast_signed();
        let out = child.stdout.take();
        let shared = Arc::clone(&observed);
        let reader = std::thread::Builder::new().name("load-reader".to_owned()).spawn(move || {
            if let Some(out) = out {
                read(out, &shared, &to_ready);
            }
            // It has ended, or will: whatever it started ends too. Its number is still its own,
            // since nobody waits for it before this thread has ended.
            let _ = process::end_group(group, EndSignal::Kill);
            drop(to_over);
        });
        match reader {
            Ok(reader) => Ok(Self { name, child, observed, grace, ready, over, reader }),
            Err(why) => {
                let _ = process::end_group(group, EndSignal::Kill);
                let _ = child.wait();
                Err(failed(why.to_string()))
            }
        }
    }

    fn wait_ready(&self, deadline: Instant) -> Result<(), LoadError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let why = match self.ready.recv_timeout(left) {
            Ok(()) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => "it was not ready in time".to_owned(),
            Err(RecvTimeoutError::Disconnected) => {
                let failed = lock(&self.observed).failed.take();
                failed.unwrap_or_else(|| "its process ended before it was ready".to_owned())
            }
        };
        Err(LoadError::Start { name: self.name.clone(), why })
    }

    /// Requests its end.
    fn request_end(&mut self) {
        if let Some(pipe) = &mut self.child.stdin {
            // A process that has ended reads nothing any more.
            let _ = writeln!(pipe, "{STOP}");
        }
    }

    /// Waits for its end, forces it when the grace since `requested` is over, and reaps it.
    fn end(mut self, requested: Instant) {
        let left = (requested + self.grace).saturating_duration_since(Instant::now());
        let killed = self.over.recv_timeout(left) == Err(RecvTimeoutError::Timeout);
        if killed {
            let _ = process::end_group(self.child.id().cast_signed(), EndSignal::Kill);
        }
        // The reader ends when the process has; only then is the process waited for, and its
        // number free again.
        let _ = self.reader.join();
        drop(self.child.stdin.take());
        let status = self.child.wait();
        let mut observed = lock(&self.observed);
        if killed {
            observed.notes.push("it had to be killed".to_owned());
        } else if let Some(why) = observed.failed.take() {
            observed.notes.push(format!("it failed: {why}"));
        } else if let Ok(status) = status
            && !status.success()
        {
            observed.notes.push(format!("it ended by itself: {status}"));
        }
    }
}

/// Takes in what a load reports, until it ends.
fn read(out: ChildStdout, observed: &Shared, ready: &Sender<()>) {
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        let Some(line) = Line::parse(&line) else { continue };
        if line == Line::Ready {
            // Nobody waits any more when the start was given up.
            let _ = ready.send(());
        }
        take_in(&mut lock(observed), line);
    }
}

fn take_in(observed: &mut Observed, line: Line) {
    match line {
        Line::Ready => {}
        Line::Note(note) => {
            if !observed.notes.contains(&note) {
                observed.notes.push(note);
            }
        }
        Line::Failed(why) => observed.failed = Some(why),
        Line::Count { count, at_ns, unit } => {
            let counted = Counted { unit, count, at_ns };
            match observed.counts.iter_mut().find(|before| before.unit == counted.unit) {
                Some(before) => *before = counted,
                None => observed.counts.push(counted),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_count_of_each_unit_stays() {
        let mut observed = Observed::default();
        let count = |count, unit: &str| Line::Count { count, at_ns: 5, unit: unit.to_owned() };
        let lines = [count(1, "a"), count(2, "b"), count(3, "a")];
        lines.into_iter().for_each(|line| take_in(&mut observed, line));
        take_in(&mut observed, Line::Note("x".into()));
        take_in(&mut observed, Line::Note("x".into()));
        let counts: Vec<_> = observed.counts.iter().map(|c| (c.count, c.unit.as_str())).collect();
        assert_eq!(counts, [(3, "a"), (2, "b")]);
        assert_eq!(observed.notes, ["x"]);
    }

    #[test]
    fn a_process_that_ends_at_once_did_not_start() {
        let launch = Launch {
            name: "x".to_owned(),
            command: Command::new("true"),
            observed: Shared::default(),
            grace: Duration::ZERO,
        };
        let (started, result) = channel();
        let (_stop, stopped) = channel();
        supervise(vec![launch], &started, &stopped);
        let result = result.recv().expect("a result");
        assert!(matches!(result, Err(LoadError::Start { name, .. }) if name == "x"));
    }
}
