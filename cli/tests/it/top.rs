//! `top`, for real: a loop that is known is listed with its period; on a terminal it shows itself
//! and leaves the terminal as it was, whatever ends it.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::events::{self, Interest};
use punctual_os::process;
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_testkit::skip;

use crate::terminal::Terminal;
use crate::{Dir, PROGRAM, punctual, run, stderr, stdout};

/// The period of the loop, ns.
const PERIOD_NS: u64 = 5_000_000;

/// The ways in which a loop waits for its next release.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopWait {
    /// By clock_nanosleep to an instant.
    Sleep,
    /// By poll and read of a timerfd that has the period.
    Timerfd,
}

/// A loop with SCHED_FIFO that only sleeps, until it is dropped.
struct TestLoop {
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
    tid: i32,
}

impl TestLoop {
    fn new(name: &str) -> Self {
        Self::waiting(name, LoopWait::Sleep)
    }

    fn waiting(name: &str, wait: LoopWait) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let (to_test, from_loop) = std::sync::mpsc::channel();
        let named = thread::Builder::new().name(name.to_owned());
        let thread = named.spawn(move || {
            scheduler::set(0, SchedPolicy::Fifo(80)).expect("root");
            // All on one CPU: they differ by nothing but how they wait.
            let first = affinity::get(0).expect("readable").iter().next().expect("a CPU");
            affinity::set(0, &CpuMask::one(first)).expect("allowed");
            to_test.send(process::tid()).expect("the test waits");
            let mut next_ns = now_ns(ClockId::Monotonic);
            let timer = events::timer().expect("a timer");
            if wait == LoopWait::Timerfd {
                events::arm(&timer, next_ns + PERIOD_NS, PERIOD_NS).expect("it takes a period");
            }
            while !seen.load(Ordering::Relaxed) {
                if wait == LoopWait::Timerfd {
                    // As loops of events do: a wait with a timeout, then what is there is taken.
                    let until_ns = now_ns(ClockId::Monotonic) + 1_000_000_000;
                    let _ready = events::wait_until(&mut [Interest::new(timer.number())], until_ns);
                    let _count = events::take(&timer);
                    continue;
                }
                next_ns = (next_ns + PERIOD_NS).max(now_ns(ClockId::Monotonic));
                let _signal = sleep_until_ns(next_ns);
            }
        });
        let tid = from_loop.recv().expect("it says its number");
        Self { is_over, thread: Some(thread.expect("a thread")), tid }
    }
}

impl Drop for TestLoop {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// The row of a thread in each of these tables.
fn rows(text: &str, tid: i32) -> Vec<Vec<&str>> {
    let rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|words| words.first().is_some_and(|word| *word == tid.to_string())).collect()
}

#[test]
fn a_loop_is_listed_with_its_period() {
    if !skip::need_tracing() {
        return;
    }
    let control_loop = TestLoop::new("top-loop");
    let out = run(["top", "--once", "2", "--interval", "1s"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = stdout(&out);
    assert!(!text.contains('\x1b'), "{text:?}");
    assert_eq!(text.matches("punctual top").count(), 2, "{text}");
    let rows = rows(&text, control_loop.tid);
    assert_eq!(rows.len(), 2, "{text}");
    let wakes: Vec<u64> =
        rows.iter().map(|row| row[5].parse().unwrap_or_else(|_| panic!("{row:?}"))).collect();
    assert!(0 < wakes[0] && wakes[0] < wakes[1], "{text}");
    for row in &rows {
        assert_eq!((row[1], row[2]), ("top-loop", "F80"), "{row:?}");
        // The median of what it asked for; on a machine that skips releases, a multiple of it.
        assert!(row[4].ends_with("ms"), "{row:?}");
    }
}

#[test]
fn a_loop_on_a_periodic_timerfd_is_seen_like_one_that_sleeps() {
    if !skip::need_tracing() {
        return;
    }
    let control_loop = TestLoop::waiting("top-timerfd", LoopWait::Timerfd);
    let sleeper = TestLoop::new("top-sleeper");
    let out = run(["top", "--once", "1", "--interval", "2s"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = stdout(&out);
    let wakes = |tid| -> u64 {
        let rows = rows(&text, tid);
        rows.first().and_then(|row| row[5].parse().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    let (by_timerfd, by_sleep) = (wakes(control_loop.tid), wakes(sleeper.tid));
    // Both have the same period, and each skips what it is too late for.
    assert!(by_timerfd > by_sleep / 2, "{text}");
}

#[test]
fn one_thread_is_followed_and_a_late_wake_stops_it() {
    if !skip::need_tracing() {
        return;
    }
    let control_loop = TestLoop::new("top-late");
    let tid = control_loop.tid.to_string();
    // Every wake is later than 1 ns.
    let out = run(["top", "--tid", &tid, "--stop-over", "1ns", "--over", "1ns", "--once", "9"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let text = stdout(&out);
    // On a busy machine a showing may come before the first wake was read.
    assert!((1..9).contains(&text.matches("punctual top").count()), "{text}");
    assert_eq!(text.matches(&format!("stopped: top-late ({tid}) was ")).count(), 1, "{text}");
    assert_eq!(rows(&text, control_loop.tid).len(), 1, "{text}");
}

#[test]
fn bad_options_and_nobody_are_refused_in_one_line() {
    let refusals: [(&[&str], &str); 7] = [
        (&["--interval", "99ms"], "100ms to 1h"),
        (&["--interval", "1"], "needs a unit"),
        (&["--once", "0"], "0 is not in"),
        (&["--over", "p99"], "'p99'"),
        (&["--pid", "0"], "0 is not in"),
        (&["--pid", "1", "--name", "x"], "cannot be used with"),
        (&["--name", "no-such-name-here"], "no thread or process is called"),
    ];
    for (arguments, why) in refusals {
        let out = punctual().arg("top").args(arguments).output().expect("it starts");
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {}", stdout(&out));
        let words = stderr(&out);
        assert!(words.contains(why) && words.lines().count() == 1, "{arguments:?}: {words}");
    }
}

#[test]
fn without_rights_the_refusal_is_one_line() {
    if !skip::need("root", skip::is_root()) || !skip::need_program("setpriv") {
        return;
    }
    let dir = Dir::new("top-user");
    let out = crate::as_user(&dir).args(["top", "--once", "1"]).output().expect("it starts");
    assert_eq!(out.status.code(), Some(2), "{}", stdout(&out));
    let words = stderr(&out);
    assert!(crate::names_what_forbids_recording(&words), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");
}

#[test]
fn whatever_ends_it_the_terminal_is_as_before() {
    if !skip::need_tracing() || !skip::need_program("tmux") {
        return;
    }
    let dir = Dir::new("top-terminal");
    let terminal = Terminal::start(&dir, 80, 24);
    let _looped = TestLoop::new("top-shown");
    for (end, status) in [("q", 0), ("C-c", 0), ("TERM", 143), ("HUP", 129), ("INT", 130)] {
        let [pid, before, after] = ["pid", "before", "after"].map(|name| dir.path(name));
        terminal.type_in(&format!("clear; stty -g > {}", before.display()));
        // The shell tells the number of what it starts.
        terminal.type_in(&format!(
            "clear; sh -c 'echo $$ > {}; exec {PROGRAM} top --interval 200ms'; \
             echo status $?; stty -g > {}",
            pid.display(),
            after.display()
        ));
        let screen = terminal.screen_until("top-shown");
        assert!(screen.starts_with("punctual top"), "{screen}");
        match end {
            "q" | "C-c" => drop(terminal.tmux(&["send-keys", end])),
            signal => {
                let pid = std::fs::read_to_string(&pid).expect("the shell wrote it");
                let mut kill = Command::new("kill");
                let sent = kill.args([&format!("-{signal}"), pid.trim()]).status();
                assert!(sent.expect("kill starts").success());
            }
        }
        let screen = terminal.screen_until(&format!("status {status}"));
        assert!(!screen.contains("top-shown"), "the screen before is back:\n{screen}");
        terminal.type_in("echo d''one");
        terminal.screen_until("done");
        let modes = [&before, &after].map(|path| std::fs::read_to_string(path).expect("written"));
        assert_eq!(modes[0], modes[1], "{end}");
        let cursor = terminal.tmux(&["display-message", "-p", "#{cursor_flag} #{alternate_on}"]);
        assert_eq!(stdout(&cursor).trim(), "1 0", "{end}");
    }
}
