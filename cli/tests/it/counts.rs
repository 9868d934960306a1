//! `punctual run`: every way to end × every kind of process × every disturbance: each release of
//! the span is in the JSON once, as one of `cycles`, `missed` and `vacant`.
//!
//! The span is from the first release of all to the end of releases, and a test outside knows each
//! only as between two stamps. The model ([`punctual_testkit::span`]) has to find one span in which
//! every task has as many releases as its row; where a run ends by its time, the end follows from
//! the begin. Each process writes its own releases down besides.
//! `--nocapture` shows the table; testkit/tests/ends has the other kinds and ways. No time is
//! asserted.
//!
//! This program is the processes too: the test `a_process` is one where it is started as a task.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use punctual_core::time::Period;
use punctual_engine::clocks::monotonic_now;
use punctual_engine::process::{Registration, TASK_VARIABLE};
use punctual_os::affinity;
use punctual_os::process::EndSignal;
use punctual_testkit::ends::{Counted, DisturbedBy, EndCase, EndsTable, Way, WorkRunner};
use punctual_testkit::span::{ReleaseGrid, Until};
use punctual_testkit::task;
use serde_json::Value;

use crate::{Dir, children, json_file, punctual, signal, until};

const PERIOD_NS: u64 = 10_000_000;
const PERIOD: Period = Period::from_ns(PERIOD_NS).expect("in range");
/// The length of a disturbance: it ends between two releases.
const LENGTH: Duration = Duration::from_nanos(PERIOD_NS * 7 / 2);
/// The phase of the unit, ns.
const UNIT_AT_NS: u64 = 3_000_000;
/// The time that a run takes which ends by its time, ns: the unit's last release is just in it.
/// Every task has 121 releases then, where it counts from the first of all. From any other instant
/// on, but for 1 ns of each period, one of them has 120.
const TIME_NS: u64 = 120 * PERIOD_NS + UNIT_AT_NS + 1;
/// The cycle of a process in which it overruns, and the one in which it ends the run.
const DISTURBED: usize = 4;
const LAST: usize = 8;

/// A process of a run, and the keys of its task.
struct Row {
    name: &'static str,
    kind: WorkRunner,
    keys: &'static str,
}

const ROWS: [Row; 3] = [
    Row { name: "even", kind: WorkRunner::Process, keys: "period = \"10ms\"\nphase = \"0\"" },
    Row { name: "joined", kind: WorkRunner::Joined, keys: "period = \"10ms\"\nphase = \"0\"" },
    Row { name: "unit", kind: WorkRunner::ProcessUnit, keys: "at = \"3ms\"\nbudget = \"500us\"" },
];

/// Ends that no run of a file has, with the reason.
const ABSENT: [(Way, &str); 3] = [
    (Way::Handle, "no handle reaches into another program: it is stopped by a signal"),
    (Way::Removal, "the tasks of a file stay as long as the run"),
    (Way::Watchdog, "nothing from outside keeps its loop alone from its turn"),
];

/// One run.
#[derive(Clone, Copy, Debug)]
struct Run {
    way: Way,
    by: DisturbedBy,
}

impl Run {
    /// The process whose overrun ends it; `None` where another thing does.
    fn ender(self) -> Option<&'static str> {
        (self.way == Way::Policy).then_some(match self.by {
            DisturbedBy::Nothing => "even",
            DisturbedBy::Stall => "joined",
            DisturbedBy::Overrun => "unit",
        })
    }

    /// Its processes. While one may still join, a run goes on though all have exited.
    fn rows(self) -> impl Iterator<Item = &'static Row> {
        ROWS.iter().filter(move |row| self.way != Way::Flow || row.kind != WorkRunner::Joined)
    }

    /// The file of its tasks.
    fn text(self, supervisor: &str) -> String {
        let own = std::env::current_exe().expect("this program");
        let cpu = affinity::get(0).expect("own").iter().last().expect("one at least");
        let mut text = format!(
            "[supervisor]\nname = {supervisor:?}\ncpu = {cpu}\n[calendar]\nframe = \"10ms\"\n"
        );
        for Row { name, kind, keys } in self.rows() {
            let table = if *kind == WorkRunner::ProcessUnit { "unit" } else { "task" };
            text += &format!("[[{table}]]\nname = {name:?}\n{keys}\n");
            if *kind != WorkRunner::Joined {
                text += &format!(
                    "register_within = \"60s\"\n\
                     command = [{own:?}, \"--exact\", \"counts::a_process\", \"--nocapture\"]\n"
                );
            }
            if self.ender() == Some(name) {
                text += "overrun = \"stop\"\n";
            }
        }
        text
    }

    /// The end that a result names.
    fn over(self) -> &'static str {
        match self.way {
            Way::Time => "finished",
            Way::Flow => "all gone",
            Way::Policy => "overran",
            _ => "stopped",
        }
    }
}

/// The settings of a process, in its environment: where it writes, and the run as it is to behave.
const PLACE: &str = "PUNCTUAL_TEST_PLACE";
const WAY: &str = "PUNCTUAL_TEST_WAY";
const BY: &str = "PUNCTUAL_TEST_BY";
const ENDER: &str = "PUNCTUAL_TEST_ENDER";
/// The supervisor that one joins.
const JOINS: &str = "PUNCTUAL_TEST_JOINS";

/// A process of a run: writes each of its releases down, and behaves as it is to.
#[test]
fn a_process() {
    task::behave_if_started(behave);
}

fn behave(name: &str) {
    let setting = |key| std::env::var(key).ok();
    let Some(place) = setting(PLACE) else { return };
    let is = |key, value: &str| setting(key).is_some_and(|set| set == value);
    let [exits, aborts] = [Way::Flow, Way::Panic].map(|way| is(WAY, &format!("{way:?}")));
    let (ends, overruns) = (is(ENDER, name), is(BY, "Overrun"));
    let mut task = match setting(JOINS) {
        Some(supervisor) => join(&supervisor, name),
        None => Registration::from_env(Some(name)).expect("a supervisor started it"),
    };
    let mut releases = File::create(Path::new(&place).join(name)).expect("writable");
    let mut calls = 0;
    while let Ok(cycle) = task.wait() {
        calls += 1;
        let line = format!("{} {}\n", cycle.release.as_ns(), cycle.missed);
        releases.write_all(line.as_bytes()).expect("writable");
        match calls {
            LAST if exits => return,
            LAST if aborts => std::process::abort(),
            LAST if ends => sleep(LENGTH),
            DISTURBED if overruns && !ends => sleep(LENGTH),
            _ => {}
        }
    }
}

/// Joins a supervisor, as soon as it is there.
fn join(supervisor: &str, name: &str) -> Registration {
    let mut joined = None;
    until("the supervisor", || {
        joined = Registration::join(supervisor, name).ok();
        joined.is_some()
    });
    joined.expect("it is there")
}

/// A release as its process had it.
struct Seen {
    release_ns: u64,
    /// The releases that were missed just before it.
    missed: u64,
}

/// The releases that a process wrote down so far.
fn seen(place: &Path, name: &str) -> Vec<Seen> {
    let text = fs::read_to_string(place.join(name)).unwrap_or_default();
    // The last one may be half written.
    let whole = &text[..text.rfind('\n').unwrap_or(0)];
    let number = |digits: &str| digits.parse().expect("a number");
    let line = |line: &str| {
        let (release, missed) = line.split_once(' ').expect("two numbers");
        Seen { release_ns: number(release), missed: number(missed) }
    };
    whole.lines().map(line).collect()
}

/// A run that has ended.
struct Ended {
    supervised: Value,
    /// Stamps around the first release of all, ns.
    begun_ns: [u64; 2],
    /// Stamps around the end, ns.
    ended_ns: [u64; 2],
    /// The releases of each process, in the order of its rows.
    seen: Vec<Vec<Seen>>,
}

fn now_ns() -> u64 {
    monotonic_now().as_ns()
}

/// The processes of a run while it goes on.
struct Started {
    run: Run,
    dir: Dir,
    supervisor: Child,
    joined: Option<Child>,
}

impl Started {
    fn new(run: Run) -> Self {
        let dir = Dir::new(&format!("counts-{:?}-{:?}", run.way, run.by));
        let name = format!("counts-{:?}-{:?}-{}", run.way, run.by, std::process::id());
        let file = dir.path("tasks.toml");
        fs::write(&file, run.text(&name)).expect("writable");
        let [way, by] = [format!("{:?}", run.way), format!("{:?}", run.by)];
        let settings = [(WAY, way.as_str()), (BY, &by), (ENDER, run.ender().unwrap_or(""))];
        let mut supervisor = punctual();
        supervisor.arg("run").arg(&file).arg("--json").arg(dir.path("report.json"));
        if run.way == Way::Time {
            supervisor.arg("--duration").arg(format!("{TIME_NS}ns"));
        }
        let events = File::create(dir.path("events")).expect("writable");
        supervisor.stdout(Stdio::null()).stderr(events).envs(settings).env(PLACE, &dir.0);
        let supervisor = supervisor.spawn().expect("built");
        let joined = run.rows().find(|row| row.kind == WorkRunner::Joined).map(|row| {
            let mut joined = Command::new(std::env::current_exe().expect("this program"));
            joined.args(["--exact", "counts::a_process", "--nocapture"]);
            joined.envs(settings).env(PLACE, &dir.0).env(JOINS, name).env(TASK_VARIABLE, row.name);
            joined.stdout(Stdio::null()).spawn().expect("it was started once")
        });
        Self { run, dir, supervisor, joined }
    }

    fn has_ended(&mut self) -> bool {
        self.supervisor.try_wait().expect("ours").is_some()
    }

    /// Waits until each process had so many releases, or all is over.
    fn let_run(&mut self, releases: usize) {
        until("releases", || {
            let is_due = |row: &Row| seen(&self.dir.0, row.name).len() >= releases;
            self.run.rows().all(is_due) || self.has_ended()
        });
    }

    /// Sends a signal to the processes but the one that ends the run; some may have exited.
    fn signal_all(&self, how: &str) {
        let started = children(&self.supervisor).into_iter().map(i32::unsigned_abs);
        let joined = self.joined.iter().filter(|_| self.run.ender() != Some("joined"));
        let pids = started.chain(joined.map(Child::id)).map(|pid| format!(" {pid}"));
        let line = format!("kill -{how}{}", pids.collect::<String>());
        let _some_may_be_gone = Command::new("sh").args(["-c", &line]).output().expect("a shell");
    }

    /// Has it stopped by SIGINT, unless it has ended; a stamp before that.
    fn stop(&mut self) -> u64 {
        let before_ns = now_ns();
        if !self.has_ended() {
            signal(&self.supervisor, EndSignal::Interrupt);
        }
        before_ns
    }

    /// Disturbs it and brings it to its end.
    fn end(mut self, started_ns: u64) -> Ended {
        let Run { way, by } = self.run;
        let mut stopped_ns = 0;
        self.let_run(3);
        if by == DisturbedBy::Stall {
            self.signal_all("STOP");
            sleep(LENGTH);
            if way == Way::Stop {
                stopped_ns = self.stop();
            }
            self.signal_all("CONT");
        }
        match way {
            Way::Stop if stopped_ns == 0 => {
                self.let_run(DISTURBED);
                stopped_ns = self.stop();
            }
            Way::Panic => {
                let aborted = self.joined.take().map(|mut joined| joined.wait());
                assert!(aborted.is_some_and(|status| !status.expect("ours").success()));
                until("the others to abort", || children(&self.supervisor).is_empty());
                // Then releases find no process.
                sleep(LENGTH);
                stopped_ns = self.stop();
            }
            _ => {}
        }
        self.supervisor.wait().expect("ours");
        let after_ns = now_ns();
        if let Some(mut joined) = self.joined.take() {
            assert!(joined.wait().expect("ours").success());
        }
        let seen: Vec<_> = self.run.rows().map(|row| seen(&self.dir.0, row.name)).collect();
        let firsts = seen.iter().filter_map(|seen| seen.first());
        let first_ns = firsts.map(|seen| seen.release_ns).min();
        let lasts = seen.iter().filter_map(|seen| seen.last());
        let last_ns = lasts.map(|seen| seen.release_ns).max();
        Ended {
            supervised: json_file(&self.dir.path("report.json"))["supervised"].take(),
            begun_ns: [started_ns, first_ns.unwrap_or(after_ns)],
            ended_ns: [last_ns.unwrap_or(started_ns).max(stopped_ns), after_ns],
            seen,
        }
    }
}

/// The counts of a task in a result.
struct Counts {
    grid: ReleaseGrid,
    cycles: u64,
    missed: u64,
    censored: u64,
    unattended: u64,
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key} in {row}"))
}

impl Counts {
    fn new(supervised: &Value, name: &str, from_ns: u64) -> Self {
        let rows = supervised["tasks"].as_array().expect("rows");
        let row = rows.iter().find(|row| row["name"] == name).expect("its row");
        let [cycles, missed, censored, unattended] =
            ["cycles", "missed", "censored", "vacant"].map(|key| number(row, key));
        assert_eq!(number(row, "period_ns"), PERIOD_NS);
        // Its first release that is not before that.
        let phase_ns = number(&supervised["executive"], "phase_ns") + number(row, "phase_ns");
        let periods = (from_ns - phase_ns % PERIOD_NS).div_ceil(PERIOD_NS);
        let grid =
            ReleaseGrid { period: PERIOD, phase_ns: phase_ns % PERIOD_NS + periods * PERIOD_NS };
        Self { grid, cycles, missed, censored, unattended }
    }

    fn releases(&self) -> u64 {
        self.cycles + self.missed + self.unattended
    }
}

/// Releases of any of the tasks between two stamps.
fn instants(tasks: &[Counts], [from_ns, to_ns]: [u64; 2]) -> Vec<u64> {
    let mut instants = Vec::new();
    for Counts { grid, .. } in tasks {
        let mut at_ns = grid.first_ns(from_ns);
        while at_ns <= to_ns {
            instants.push(at_ns);
            at_ns = grid.first_ns(at_ns + 1);
        }
    }
    instants
}

/// A span in which each task has as many releases as it counted: its begin, and its end. It begins
/// with a frame, at whose begin the first of the tasks is released.
fn span(run: Run, ended: &Ended, tasks: &[Counts]) -> Option<(u64, Until)> {
    let Ended { begun_ns, ended_ns, .. } = *ended;
    let ends: Vec<u64> = instants(tasks, ended_ns).into_iter().chain(ended_ns).collect();
    let untils = |from_ns: u64| match run.way {
        Way::Time => vec![Until::Before(from_ns + TIME_NS)],
        _ => ends.iter().copied().map(Until::UpTo).collect(),
    };
    let begins = instants(&tasks[..1], begun_ns).into_iter();
    let mut spans =
        begins.flat_map(|from_ns| untils(from_ns).into_iter().map(move |until| (from_ns, until)));
    spans.find(|(from_ns, until)| {
        tasks.iter().all(|task| task.grid.count(*from_ns, *until) == task.releases())
    })
}

/// Adds the counts of a run to the table, with the faults found.
fn judge(table: &mut EndsTable, run: Run, ended: &Ended) {
    let Ended { supervised, begun_ns, ended_ns, seen } = ended;
    let tasks: Vec<Counts> =
        run.rows().map(|row| Counts::new(supervised, row.name, begun_ns[0])).collect();
    let span = span(run, ended, &tasks);
    if span.is_none() {
        table.note(format!("{run:?}: no span has these releases: {supervised}"));
    }
    for ((row, task), seen) in run.rows().zip(&tasks).zip(seen) {
        let Counts { grid, cycles: ran, missed, censored, unattended } = *task;
        let releases = match span {
            Some((from_ns, until)) => {
                let count = grid.count(from_ns, until);
                count..=count
            }
            None => {
                let count = |from_ns, to_ns| grid.count(from_ns, Until::UpTo(to_ns));
                count(begun_ns[1], ended_ns[0])..=count(begun_ns[0], ended_ns[1])
            }
        };
        let counted = Counted { releases, ran, missed, censored, unattended, recorded: None };
        table.add(EndCase { kind: row.kind, way: run.way, by: run.by }, &counted, &run);
        let before_cycles: u64 = seen.iter().map(|seen| seen.missed).sum();
        let own = seen.len() as u64;
        if own != ran || before_cycles > missed {
            let (name, counts) = (row.name, [ran, missed]);
            let own = [own, before_cycles];
            table.note(format!("{run:?}: {name} itself ran and missed {own:?}, not {counts:?}"));
        }
    }
    // The supervisor's loop releases each of them, or misses it.
    let executive = &supervised["executive"];
    let released = number(executive, "cycles") + number(executive, "missed");
    if released != tasks.iter().map(Counts::releases).sum::<u64>() {
        table.note(format!("{run:?}: the tasks have other releases than their loop: {supervised}"));
    }
    let ender = run.ender().map_or(Value::Null, Value::from);
    if supervised["over"] != run.over() || supervised["overran"] != ender {
        table.note(format!("{run:?} ended otherwise: {}", supervised["over"]));
    }
}

#[test]
fn each_release_of_a_process_counts_once_in_json_however_it_ends() {
    let mut table = EndsTable::default();
    for way in [Way::Time, Way::Stop, Way::Flow, Way::Panic, Way::Policy] {
        for by in DisturbedBy::EACH {
            let run = Run { way, by };
            let started_ns = now_ns();
            let ended = Started::new(run).end(started_ns);
            judge(&mut table, run, &ended);
        }
    }
    for Row { kind, .. } in &ROWS {
        ABSENT.iter().for_each(|(way, why)| table.absent(*kind, *way, *why));
    }
    let why = "another may join: the run goes on when all have left";
    table.absent(WorkRunner::Joined, Way::Flow, why);
    println!("{table}");
    table.check(&ROWS.map(|row| row.kind));
}
