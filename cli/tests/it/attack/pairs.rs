//! Two commands at once that change settings of this machine, with one directory of state or two,
//! one of them killed at any time: they exclude each other, and after a revert each everything is
//! as before.
//!
//! In `cargo test` only settings that disturb nobody; where nothing else runs, whole plans too, and
//! what isolates CPUs or switches throttling off.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use punctual_os::process::EndSignal;
use punctual_testkit::random::Random;
use punctual_testkit::skip;

use super::{Attack, Place, Settings};
use crate::{names, run, signal, stderr, stdout, text, until};

/// Settings that disturb nobody for a moment, and of which one depends on the CPUs.
const HARMLESS: &str = "--only vm.stat_interval --only workqueue/cpumask";

/// Commands that change settings for as long as they run; the others of [`SHORT`] are over at once.
const LONG: [&str; 3] = [
    "tune experiment --cpus 1 --only workqueue/cpumask --duration 9s --dry-run",
    // Where nothing else runs.
    "isolate --cpus 1 -- sleep 5",
    "measure saturation --duration 1s --unsafe-no-throttle",
];
const SHORT: [&str; 3] = ["tune apply --cpus 0 ONLY", "tune apply --cpus 1 ONLY", "tune revert"];

/// So many of [`LONG`] where something else runs too.
const SHARED: usize = 1;

/// The attack, settings and place that a command is started with.
struct Turn<'a> {
    attack: &'a mut Attack,
    settings: &'a Settings,
    place: Place,
}

/// A command that was started, and where its state is.
struct Started {
    child: Child,
    line: &'static str,
    state: PathBuf,
    errors: PathBuf,
}

impl Started {
    /// Waits for its end, which is requested.
    fn end(&mut self, how: EndSignal) -> ExitStatus {
        if self.child.try_wait().expect("ours").is_none() {
            signal(&self.child, how);
        }
        until(self.line, || self.child.try_wait().expect("ours").is_some());
        let status = self.child.wait().expect("ours");
        let errors = fs::read(&self.errors).expect("readable");
        let errors = String::from_utf8_lossy(&errors);
        assert!(!errors.contains("panicked at"), "{}: {errors}", self.line);
        status
    }
}

impl Turn<'_> {
    fn random(&mut self) -> &mut Random {
        &mut self.attack.random
    }

    /// One of the commands that take a while.
    fn long(&mut self) -> &'static str {
        let count = if self.attack.is_alone() { LONG.len() } else { SHARED };
        LONG[self.random().index(count)]
    }

    fn any(&mut self) -> &'static str {
        match self.random().index(2) {
            0 => self.long(),
            _ => SHORT[self.random().index(SHORT.len())],
        }
    }

    fn start(&self, line: &'static str, state: &str) -> Started {
        let only = if self.attack.is_alone() { "" } else { HARMLESS };
        let (state, errors) = (self.place.path(state), self.place.path(&format!("{state}.errors")));
        let errors_file = fs::File::options().create(true).append(true).open(&errors);
        let (own, ran) = line.split_once(" -- ").unwrap_or((line, ""));
        let mut command = self.place.shell("");
        command.args(own.replace("ONLY", only).split_whitespace()).arg("--state").arg(&state);
        if !ran.is_empty() {
            command.arg("--").args(ran.split(' '));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors_file.expect("writable"));
        Started { child: command.spawn().expect("a shell"), line, state, errors }
    }

    /// A revert of each, the last one that changed something first; all must be as before.
    fn revert(&self, trial: &str, states: [&Path; 2]) {
        let mut states = states.to_vec();
        states.dedup();
        states.sort_by_key(|state| std::cmp::Reverse(last_change(state)));
        let mut reverted = String::new();
        for state in &states {
            let out = run(["tune", "revert", "--state", text(state)]);
            reverted += &format!("; revert: {}{}", stdout(&out), stderr(&out));
            assert_eq!(out.status.code(), Some(0), "{trial}{reverted}");
        }
        self.settings.are_as_before(&format!("{trial}{reverted}"));
        for state in states {
            let out = run(["tune", "status", "--state", text(state)]);
            assert!(stdout(&out).contains("nothing is applied"), "{trial}: {}", stdout(&out));
        }
    }

    /// Both at any time, and one perhaps killed.
    fn at_random(&mut self) -> &'static str {
        let (first, second) = (self.any(), self.any());
        let state = if self.random().index(2) == 0 { "one" } else { "two" };
        let (apart, after) = (self.random().index(400), self.random().index(3_000));
        let (kills, which) = (self.random().index(2) == 0, self.random().index(2));
        let mut pair = [self.start(first, "one"), {
            thread::sleep(Duration::from_millis(apart as u64));
            self.start(second, state)
        }];
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(after as u64)
            && pair.iter_mut().any(|started| started.child.try_wait().expect("ours").is_none())
        {
            thread::sleep(Duration::from_millis(5));
        }
        let how = if kills { EndSignal::Kill } else { EndSignal::Terminate };
        let ended = pair[which].end(how);
        let another = pair[1 - which].end(EndSignal::Terminate);
        let trial = format!(
            "{first:?}, {apart} ms later {second:?} (state {state}), {how:?} of number {which} \
             after {after} ms: {ended}, the other {another}"
        );
        self.revert(&trial, [&pair[0].state, &pair[1].state]);
        self.place.left_nothing(&trial, pair[which].child.id(), ended);
        self.place.left_nothing(&trial, pair[1 - which].child.id(), another);
        if kills { "one killed, all as before" } else { "both ended, all as before" }
    }

    /// The second while the first has settings changed: it is refused.
    fn beside(&mut self) -> &'static str {
        let (first, second) = (self.long(), self.any());
        let state = if self.random().index(2) == 0 { "one" } else { "two" };
        let mut long = self.start(first, "one");
        // Throttling cannot be switched off where debugfs is missing.
        until("its settings to be changed", || {
            let is_over = long.child.try_wait().expect("ours").is_some();
            is_over || !self.settings.changed().is_empty()
        });
        let mut other = self.start(second, state);
        let mut is_over = false;
        until("either to end", || {
            is_over = long.child.try_wait().expect("ours").is_some();
            is_over || other.child.try_wait().expect("ours").is_some()
        });
        let refused = other.end(EndSignal::Terminate);
        let status = long.end(EndSignal::Terminate);
        let trial =
            format!("{second:?} (state {state}) beside {first:?}: {refused}, the other {status}");
        // A revert has nothing to do between two blocks of an experiment, or with another state.
        let may_end = is_over || (second == SHORT[2] && refused.code() == Some(0));
        assert!(may_end || refused.code() == Some(2), "{trial}: it was not refused");
        self.revert(&trial, [&long.state, &other.state]);
        self.place.left_nothing(&trial, long.child.id(), status);
        self.place.left_nothing(&trial, other.child.id(), refused);
        if is_over { "over before the second, all as before" } else { "the second refused" }
    }
}

/// When something was last written into a journal that is not empty.
fn last_change(state: &Path) -> Option<SystemTime> {
    let files = if state.is_dir() { names(state) } else { Vec::new() };
    let changed = files.into_iter().filter_map(|name| {
        let meta = fs::metadata(state.join(name)).ok()?;
        (meta.len() > 0).then(|| meta.modified().ok()).flatten()
    });
    changed.max()
}

#[test]
fn pairs() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let settings = Settings::read(&["/proc/sys/kernel/sched_rt_runtime_us"]);
    let mut attack = Attack::begin("pairs");
    while attack.goes_on() {
        let place = Place::within_turn(&format!("pairs-{}", attack.trials()));
        let is_beside = attack.random.index(4) == 0;
        let mut turn = Turn { attack: &mut attack, settings: &settings, place };
        let outcome = if is_beside { turn.beside() } else { turn.at_random() };
        attack.note(outcome);
    }
    attack.end();
}
