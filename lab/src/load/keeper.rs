//! The keeper: a thread that starts the processes of loads, hears them and ends them.
//!
//! The kernel ties a process to the *thread* that started it (PR_SET_PDEATHSIG, prctl(2)). This
//! thread lives exactly as long as the loads, so that the caller may start them from any thread.
//! It sleeps while they run; a reader for each wakes when its load says a count, 10 times a second.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_os::process::{self, Ending};
use punctual_os::scheduler::{self, Policy};

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

/// What a load has said so far.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) counts: Vec<Counted>,
    pub(super) notes: Vec<String>,
    failed: Option<String>,
}

/// Shared between a reader, the keeper and whoever asks.
pub(super) type Shared = Arc<Mutex<Heard>>;

/// What was heard, also from a thread that panicked: each line is taken in whole.
pub(super) fn lock(heard: &Shared) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process to start.
pub(super) struct Order {
    pub(super) name: String,
    pub(super) command: Command,
    pub(super) heard: Shared,
    /// It has so long to end when it is asked to.
    pub(super) grace: Duration,
}

/// Starts all, says so, waits until `stop` has no sender any more, and ends all.
pub(super) fn keep(
    orders: Vec<Order>,
    started: &Sender<Result<Vec<u32>, LoadError>>,
    stop: &Receiver<()>,
) {
    // A caller under a real-time policy must not hand it to threads that only read; when this is
    // refused they read all the same.
    let _ = scheduler::set(0, Policy::Other);
    let mut kept = Vec::new();
    let result = start_all(orders, &mut kept);
    let failed = result.is_err();
    let said = started.send(result);
    if !failed && said.is_ok() {
        let _ = stop.recv();
    }
    end_all(kept);
}

fn start_all(orders: Vec<Order>, kept: &mut Vec<Kept>) -> Result<Vec<u32>, LoadError> {
    for order in orders {
        kept.push(Kept::start(order)?);
    }
    let deadline = Instant::now() + READY;
    for one in &*kept {
        one.wait_ready(deadline)?;
    }
    Ok(kept.iter().map(|one| one.child.id()).collect())
}

fn end_all(mut kept: Vec<Kept>) {
    for one in &mut kept {
        one.ask();
    }
    let asked = Instant::now();
    for one in kept {
        one.end(asked);
    }
}

/// A process that runs, leader of a group of its own so that Ctrl-C does not reach it before the
/// caller has decided, and so that whatever it started ends with it.
struct Kept {
    name: String,
    child: Child,
    heard: Shared,
    grace: Duration,
    ready: Receiver<()>,
    over: Receiver<()>,
    reader: JoinHandle<()>,
}

impl Kept {
    fn start(order: Order) -> Result<Self, LoadError> {
        let Order { name, mut command, heard, grace } = order;
        let failed = |why: String| LoadError::Start { name: name.clone(), why };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|why| failed(why.to_string()))?;
        let (to_ready, ready) = channel();
        let (to_over, over) = channel();
        let group = child.id().cast_signed();
        let out = child.stdout.take();
        let shared = Arc::clone(&heard);
        let reader = std::thread::Builder::new().name("load-reader".to_owned()).spawn(move || {
            if let Some(out) = out {
                read(out, &shared, &to_ready);
            }
            // It has ended, or will: whatever it started ends too. Its number is still its own,
            // since nobody waits for it before this thread has ended.
            let _ = process::end_group(group, Ending::Kill);
            drop(to_over);
        });
        match reader {
            Ok(reader) => Ok(Self { name, child, heard, grace, ready, over, reader }),
            Err(why) => {
                let _ = process::end_group(group, Ending::Kill);
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
                let failed = lock(&self.heard).failed.take();
                failed.unwrap_or_else(|| "its process ended before it was ready".to_owned())
            }
        };
        Err(LoadError::Start { name: self.name.clone(), why })
    }

    /// Asks it to end.
    fn ask(&mut self) {
        if let Some(pipe) = &mut self.child.stdin {
            // A process that has ended cannot be asked any more.
            let _ = writeln!(pipe, "{STOP}");
        }
    }

    /// Waits for its end, brings it about when the grace since `asked` is over, and buries it.
    fn end(mut self, asked: Instant) {
        let left = (asked + self.grace).saturating_duration_since(Instant::now());
        let killed = self.over.recv_timeout(left) == Err(RecvTimeoutError::Timeout);
        if killed {
            let _ = process::end_group(self.child.id().cast_signed(), Ending::Kill);
        }
        // The reader ends when the process has; only then is the process waited for, and its
        // number free again.
        let _ = self.reader.join();
        drop(self.child.stdin.take());
        let status = self.child.wait();
        let mut heard = lock(&self.heard);
        if killed {
            heard.notes.push("it had to be killed".to_owned());
        } else if let Some(why) = heard.failed.take() {
            heard.notes.push(format!("it failed: {why}"));
        } else if let Ok(status) = status
            && !status.success()
        {
            heard.notes.push(format!("it ended by itself: {status}"));
        }
    }
}

/// Takes in what a load says, until it ends.
fn read(out: ChildStdout, heard: &Shared, ready: &Sender<()>) {
    for line in BufReader::new(out).lines().map_while(Result::ok) {
        let Some(line) = Line::parse(&line) else { continue };
        if line == Line::Ready {
            // Nobody waits any more when the start was given up.
            let _ = ready.send(());
        }
        take_in(&mut lock(heard), line);
    }
}

fn take_in(heard: &mut Heard, line: Line) {
    match line {
        Line::Ready => {}
        Line::Note(note) => {
            if !heard.notes.contains(&note) {
                heard.notes.push(note);
            }
        }
        Line::Failed(why) => heard.failed = Some(why),
        Line::Count { count, at_ns, unit } => {
            let counted = Counted { unit, count, at_ns };
            match heard.counts.iter_mut().find(|before| before.unit == counted.unit) {
                Some(before) => *before = counted,
                None => heard.counts.push(counted),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_count_of_each_unit_stays() {
        let mut heard = Heard::default();
        let count = |count, unit: &str| Line::Count { count, at_ns: 5, unit: unit.to_owned() };
        let lines = [count(1, "a"), count(2, "b"), count(3, "a")];
        lines.into_iter().for_each(|line| take_in(&mut heard, line));
        take_in(&mut heard, Line::Note("x".into()));
        take_in(&mut heard, Line::Note("x".into()));
        let counts: Vec<_> = heard.counts.iter().map(|c| (c.count, c.unit.as_str())).collect();
        assert_eq!(counts, [(3, "a"), (2, "b")]);
        assert_eq!(heard.notes, ["x"]);
    }

    #[test]
    fn a_process_that_ends_at_once_did_not_start() {
        let order = Order {
            name: "x".to_owned(),
            command: Command::new("true"),
            heard: Shared::default(),
            grace: Duration::ZERO,
        };
        let (started, result) = channel();
        let (_stop, stopped) = channel();
        keep(vec![order], &started, &stopped);
        let result = result.recv().expect("said");
        assert!(matches!(result, Err(LoadError::Start { name, .. }) if name == "x"));
    }
}
