//! Tasks in threads and processes of their own, on the machine's clock: the end lies between two
//! stamps, and what was due by then between two numbers.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use punctual::{
    Counts, Cycle, End, Executive, Flow, Handle, OnOverrun, Period, Phase, Placement, Process,
    RtThread, StopHandle, Summary, Task, TaskId, Trigger, WaitPolicy, now,
};
use punctual_os::affinity;
use punctual_testkit::ends::{Counted, DisturbedBy, EndCase, EndsTable, Way, WorkRunner};
use punctual_testkit::span::{ReleaseGrid, Until};

use crate::child;
use crate::simulated::recorded;

/// Of all tasks that have one, at phase 0.
pub(crate) const PERIOD_NS: u64 = 10_000_000;
/// The length of a disturbance: it ends between two releases.
const LENGTH: Duration = Duration::from_nanos(PERIOD_NS * 7 / 2);

const PERIOD: Period = Period::from_ns(PERIOD_NS).expect("in range");

fn now_ns() -> u64 {
    now().as_ns()
}

/// One run, which ends by what the task of kind `ender` does, where a task does it.
#[derive(Clone, Copy, Debug)]
struct Run {
    way: Way,
    by: DisturbedBy,
    ender: Option<WorkRunner>,
    /// True where all is as before when it ends; otherwise it is disturbed then.
    is_late: bool,
}

/// The cycles that a body saw: their count, and instants of the first, the last and the finish, ns.
#[derive(Debug, Default)]
struct Seen {
    calls: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
    finish_ns: AtomicU64,
}

/// The state that the bodies of a run share.
#[derive(Debug, Default)]
struct Stage {
    /// Set once the bodies, or what keeps them from running, shall take long.
    disturbs: AtomicBool,
    /// Set once the task shall end it.
    ends: AtomicBool,
    /// The last stamp that is not after the end.
    before_ns: AtomicU64,
    stop: OnceLock<StopHandle>,
    /// The first release of what stalls the others, which may be the first of all.
    hog_ns: AtomicU64,
}

impl Stage {
    fn is_stopped(&self) -> bool {
        self.stop.get().is_some_and(StopHandle::stopped)
    }
}

/// The body of the task of one kind.
struct Body {
    kind: WorkRunner,
    run: Run,
    stage: Arc<Stage>,
    seen: Arc<Seen>,
    was_disturbed: bool,
}

impl Body {
    fn new(kind: WorkRunner, run: Run, stage: &Arc<Stage>) -> (Self, Arc<Seen>) {
        let seen = Arc::<Seen>::default();
        let stage = Arc::clone(stage);
        (Self { kind, run, stage, seen: Arc::clone(&seen), was_disturbed: false }, seen)
    }

    fn call(&mut self, cycle: &Cycle<'_>) -> Flow {
        let Self { kind, run, stage, seen, .. } = self;
        let release_ns = cycle.release.as_ns();
        if seen.calls.load(Ordering::Relaxed) == 0 {
            let first_ns = release_ns - cycle.missed * PERIOD_NS;
            seen.first_ns.store(first_ns, Ordering::Relaxed);
        }
        if !self.was_disturbed
            && run.by == DisturbedBy::Overrun
            && *kind != WorkRunner::Inline
            && stage.disturbs.load(Ordering::Relaxed)
        {
            self.was_disturbed = true;
            std::thread::sleep(LENGTH);
        }
        let ends = run.ender == Some(*kind) && stage.ends.load(Ordering::Relaxed);
        let answer = if ends { self.end() } else { Flow::Continue };
        let Self { seen, .. } = self;
        seen.last_ns.store(release_ns, Ordering::Relaxed);
        seen.finish_ns.store(now_ns(), Ordering::Relaxed);
        seen.calls.fetch_add(1, Ordering::Release);
        answer
    }

    /// Does what ends the run.
    fn end(&mut self) -> Flow {
        let Self { run, stage, seen, .. } = self;
        let stamp_ns = now_ns();
        // What it did before may have ended it.
        if !stage.is_stopped() {
            stage.before_ns.store(stamp_ns, Ordering::Relaxed);
        }
        match run.way {
            Way::Flow => return Flow::Stop,
            Way::Panic => {
                seen.calls.fetch_add(1, Ordering::Release);
                // Past the hook, which would print it.
                resume_unwind(Box::new("on purpose".to_owned()));
            }
            Way::Policy => std::thread::sleep(LENGTH),
            Way::Watchdog => {
                let mut stamp_ns = now_ns();
                while !stage.is_stopped() {
                    stage.before_ns.store(stamp_ns, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(1));
                    stamp_ns = now_ns();
                }
            }
            _ => {}
        }
        Flow::Continue
    }
}

/// The CPU that all share, so that what holds it stalls all.
fn cpu() -> u32 {
    affinity::get(0).expect("own").iter().last().expect("one at least")
}

fn thread(run: Run) -> RtThread {
    let thread = RtThread::cpu(cpu()).fifo(60).wait(WaitPolicy::sleep());
    let thread = thread.lock_memory(false).hold_idle_states(false);
    match run.way {
        Way::Watchdog => thread.watchdog(Duration::from_millis(150)),
        _ => thread,
    }
}

fn task(name: &str, run: Run, kind: WorkRunner) -> Task {
    let stops = run.way == Way::Policy && run.ender == Some(kind);
    let policy = match kind {
        WorkRunner::Delaying => OnOverrun::Delay,
        _ if stops => OnOverrun::Stop,
        _ => OnOverrun::Skip,
    };
    let own = Placement::thread(RtThread::cpu(cpu()).wait(WaitPolicy::sleep()));
    let task = Task::every(name, PERIOD).at(Duration::ZERO).on_overrun(policy);
    if matches!(kind, WorkRunner::Inline | WorkRunner::Process) { task } else { task.placed(own) }
}

/// The name of the process, by what it does.
fn process(run: Run) -> &'static str {
    match (run.way, run.by) {
        (Way::Panic, _) if run.ender == Some(WorkRunner::Process) => "process-aborts",
        (_, DisturbedBy::Overrun) => "process-overruns",
        (Way::Policy, _) if run.ender == Some(WorkRunner::Process) => "process-overruns",
        _ => "process",
    }
}

const THREADS: [(&str, WorkRunner); 3] = [
    ("witness", WorkRunner::Inline),
    ("thread", WorkRunner::Thread),
    ("delaying", WorkRunner::Delaying),
];

/// The counts and instants of one run that ended.
struct Ended {
    summary: Summary,
    seen: Vec<(WorkRunner, Arc<Seen>)>,
    /// The first release of all.
    first_ns: u64,
    before_ns: u64,
    after_ns: u64,
    /// The counts of the task that was removed, at its removal.
    removed: Option<Counts>,
    refusals: Vec<(WorkRunner, String)>,
    recorded: Vec<(WorkRunner, (u64, u64))>,
}

/// The time that a run takes that ends by its time.
const TIME: Duration = Duration::from_nanos(80 * PERIOD_NS + PERIOD_NS / 3);

fn run(run: Run) -> Ended {
    let stage = Arc::<Stage>::default();
    let mut seen = Vec::new();
    let mut body = |kind| {
        let (mut body, kept) = Body::new(kind, run, &stage);
        seen.push((kind, kept));
        move |cycle: &mut Cycle<'_>| body.call(cycle)
    };
    let file: PathBuf =
        std::env::temp_dir().join(format!("punctual-ends-machine-{}", std::process::id()));
    let mut builder = Executive::builder().thread(thread(run)).phase(Phase::Zero).record(&file);
    for (name, kind) in THREADS {
        builder = builder.task(task(name, run, kind), body(kind));
    }
    let (device, hog) = (Arc::clone(&stage), Arc::clone(&stage));
    let pace = Trigger::wait(move || {
        std::thread::sleep(Duration::from_millis(3));
        !device.is_stopped()
    });
    let triggered =
        Task::named("triggered").placed(task("", run, WorkRunner::Triggered).placement().clone());
    builder = builder.triggered(pace, triggered, body(WorkRunner::Triggered));
    let mut stalled = false;
    // Between the releases of the others it holds the CPU that they have.
    let at = Duration::from_nanos(PERIOD_NS / 2);
    builder = builder.task(Task::every("hog", PERIOD).at(at), move |cycle: &mut Cycle<'_>| {
        let (release_ns, relaxed) = (cycle.release.as_ns(), Ordering::Relaxed);
        let _later = hog.hog_ns.compare_exchange(0, release_ns, relaxed, relaxed);
        let is_to = run.by == DisturbedBy::Stall && hog.disturbs.load(Ordering::Relaxed);
        if is_to && !std::mem::replace(&mut stalled, true) {
            let until_ns = now_ns() + LENGTH.as_nanos() as u64;
            while now_ns() < until_ns {
                std::hint::spin_loop();
            }
        }
    });
    let child =
        || Process::command(child::words()).cpu(cpu()).register_within(Duration::from_secs(60));
    builder = builder.external(task(process(run), run, WorkRunner::Process), child());
    if process(run) == "process-aborts" {
        // With the last process the supervisor ends.
        builder = builder.external(task("other", run, WorkRunner::Inline), child());
    }
    let added = body(WorkRunner::Added);
    let (executive, ids) = builder.build().expect("fine");
    assert!(stage.stop.set(executive.stop_handle()).is_ok());
    let duration = if run.way == Way::Time { TIME } else { Duration::from_secs(120) };
    let acts = Acts { run, stage: &stage, seen: &seen, ids: &ids };
    let (acted, summary) =
        executive.run_with(duration, |handle| acts.act(handle, added)).expect("it starts");
    let recorded = THREADS.map(|(name, kind)| (kind, recorded(&file, name)));
    let _gone = std::fs::remove_file(&file);
    let Acted { removed, refusals, after_ns } = acted;
    let [before_ns, hog_ns] =
        [&stage.before_ns, &stage.hog_ns].map(|word| word.load(Ordering::Relaxed));
    let first_ns = seen[0].1.first_ns.load(Ordering::Relaxed).min(hog_ns);
    let recorded = recorded.to_vec();
    Ended { summary, seen, first_ns, before_ns, after_ns, removed, refusals, recorded }
}

/// The results of the acts beside a run.
struct Acted {
    /// The counts of the task that was removed.
    removed: Option<Counts>,
    /// The reasons why others were not removed.
    refusals: Vec<(WorkRunner, String)>,
    /// A stamp after the end; 0 of a run that ends by its time.
    after_ns: u64,
}

/// The acts of the handle's thread beside a run.
struct Acts<'a> {
    run: Run,
    stage: &'a Stage,
    seen: &'a [(WorkRunner, Arc<Seen>)],
    ids: &'a [TaskId],
}

impl Acts<'_> {
    /// Waits until each task ran so many cycles more, or all is over.
    fn let_run(&self, handle: &Handle<'_>, more: u64) {
        let calls = || self.seen.iter().map(|(_, seen)| seen.calls.load(Ordering::Acquire));
        let before: Vec<u64> = calls().collect();
        let is_due = || calls().zip(&before).all(|(calls, before)| calls >= before + more);
        while !is_due() && !handle.stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn counts(&self, handle: &Handle<'_>, name: &str) -> Counts {
        let id = handle.task_named(name).expect("there");
        handle.counts(id).expect("there")
    }

    /// Brings the run to its end.
    fn act<'env>(
        &self,
        handle: &Handle<'env>,
        added: impl FnMut(&mut Cycle<'_>) -> Flow + Send + 'env,
    ) -> Acted {
        let Self { run, stage, .. } = self;
        let mut added = Some(added);
        let task = task("added", *run, WorkRunner::Added);
        let id = handle.add(task, added.take().expect("once")).expect("it fits");
        self.let_run(handle, 3);
        // From its fourth cycle on a process may end it, which shows too late: before that it did
        // not.
        let is_by_process = (run.way, run.ender) == (Way::Policy, Some(WorkRunner::Process));
        while run.way != Way::Time && !handle.stopped() {
            let stamp_ns = now_ns();
            if self.counts(handle, process(*run)).ran >= 3 {
                break;
            }
            stage.before_ns.store(stamp_ns, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
        // On a busy machine the watchdog may have ended it already.
        let stamp = || {
            let stamp_ns = now_ns();
            if !handle.stopped() {
                stage.before_ns.store(stamp_ns, Ordering::Relaxed);
            }
        };
        if !is_by_process {
            stamp();
        }
        stage.disturbs.store(true, Ordering::Relaxed);
        if run.is_late {
            std::thread::sleep(LENGTH);
            self.let_run(handle, 2);
        } else {
            std::thread::sleep(LENGTH / 2);
        }
        let mut refusals = Vec::new();
        if run.way != Way::Policy {
            // By its policy it may have ended already, which shows too late.
            stamp();
        }
        match run.way {
            Way::Stop => stage.stop.get().expect("set").stop(),
            Way::Handle => handle.stop(),
            Way::Removal => {
                let removed = handle.remove(id).expect("there").counts;
                let after_ns = now_ns();
                // Since before it ran, but for the witness, the hog's and the unit's.
                for (at, kind) in [
                    (1, WorkRunner::Thread),
                    (2, WorkRunner::Delaying),
                    (3, WorkRunner::Triggered),
                    (5, WorkRunner::Process),
                ] {
                    let why = handle.remove(self.ids[at]).expect_err("it stays");
                    refusals.push((kind, why.to_string()));
                }
                handle.stop();
                return Acted { removed: Some(removed), refusals, after_ns };
            }
            Way::Panic if run.ender == Some(WorkRunner::Process) => {
                // It aborted by itself; then releases find nobody.
                let before = self.counts(handle, "witness").ran;
                while self.counts(handle, "witness").ran < before + 9 && !handle.stopped() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                stamp();
                handle.stop();
            }
            // It goes on until then without what is done beside it.
            Way::Time => return Acted { removed: None, refusals, after_ns: 0 },
            _ => stage.ends.store(true, Ordering::Relaxed),
        }
        while !handle.stopped() {
            std::thread::yield_now();
        }
        Acted { removed: None, refusals, after_ns: now_ns() }
    }
}

/// The releases of a task on the grid of all, between those by one instant and by another.
fn due(first_ns: u64, ended: &Ended, way: Way) -> (u64, u64) {
    let grid = ReleaseGrid { period: PERIOD, phase_ns: first_ns };
    if way == Way::Time {
        let end_ns = ended.first_ns + TIME.as_nanos() as u64;
        let count = grid.count(first_ns, Until::Before(end_ns));
        return (count, count);
    }
    let by = |ns| grid.count(first_ns, Until::UpTo(ns));
    (by(ended.before_ns), by(ended.after_ns))
}

/// The counts of each kind of a run, and the faults found in it otherwise.
fn judge(run: Run, ended: &Ended) -> (Vec<(WorkRunner, Counted)>, Vec<String>) {
    let Ended { summary, seen, removed, recorded, .. } = ended;
    let (mut tasks, mut wrong) = (Vec::new(), Vec::new());
    let first = |kind| {
        let (_, seen) = seen.iter().find(|(of_kind, _)| *of_kind == kind).expect("one of each");
        seen.first_ns.load(Ordering::Relaxed)
    };
    let all_ns = first(WorkRunner::Inline);
    let total = |name: &str| {
        let counts = &summary.task(name).expect("there").counts;
        counts.ran + counts.missed
    };
    // One that ended before its first call shows no release.
    let is_elsewhere = ![0, all_ns].contains(&first(WorkRunner::Thread));
    if is_elsewhere || total("thread") != total("witness") {
        wrong.push(format!("one loop, one grid, and they differ: {summary}"));
    }
    let mut add = |kind, name: &str, (least, most), removed: Option<Counts>, unattended| {
        let counts = removed.unwrap_or_else(|| summary.task(name).expect("there").counts);
        let Counts { ran, missed, censored, .. } = counts;
        let recorded = recorded.iter().find(|(of_kind, _)| *of_kind == kind);
        let recorded = recorded.map(|&(_, recorded)| recorded);
        let releases = least..=most;
        tasks.push((kind, Counted { releases, ran, missed, censored, unattended, recorded }));
    };
    let whole = due(all_ns, ended, run.way);
    if run.way != Way::Removal {
        add(WorkRunner::Thread, "thread", whole, None, 0);
        add(WorkRunner::Delaying, "delaying", delayed(run, ended), None, 0);
        let calls = |kind| {
            let (_, seen) = seen.iter().find(|(of_kind, _)| *of_kind == kind).expect("one of each");
            seen.calls.load(Ordering::Acquire)
        };
        let distances = calls(WorkRunner::Triggered).saturating_sub(1);
        add(WorkRunner::Triggered, "triggered", (distances, distances), None, 0);
        let name = process(run);
        let process = summary.processes.iter().find(|process| process.name == name);
        add(WorkRunner::Process, name, whole, None, process.expect("there").unattended);
    }
    let own = match first(WorkRunner::Added) {
        0 => (0, whole.1),
        first_ns => due(first_ns, ended, run.way),
    };
    add(WorkRunner::Added, "added", own, *removed, 0);
    let is_end = match run.way {
        Way::Time => summary.end == End::Finished,
        Way::Panic if run.ender == Some(WorkRunner::Process) => summary.end == End::Stopped,
        Way::Panic => matches!(summary.end, End::Panicked { .. }),
        Way::Policy => matches!(summary.end, End::Overran(_)),
        Way::Watchdog => {
            matches!(summary.end, End::Blocked | End::Forced | End::Starved | End::Stuck)
        }
        _ => summary.end == End::Stopped,
    };
    if !is_end {
        wrong.push(format!("ended {:?}", summary.end));
    }
    (tasks, wrong)
}

/// The releases of the task that moves its phase: each ran but the last one, which is a period
/// after the release before it, or after the finish where that overran.
fn delayed(run: Run, ended: &Ended) -> (u64, u64) {
    let is = |(kind, _): &&(WorkRunner, Arc<Seen>)| *kind == WorkRunner::Delaying;
    let (_, seen) = ended.seen.iter().find(is).expect("one of each");
    let get = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let (calls, planned_ns) = (get(&seen.calls), get(&seen.last_ns) + PERIOD_NS);
    let finish_ns = get(&seen.finish_ns);
    let next_ns = if finish_ns >= planned_ns { finish_ns + PERIOD_NS } else { planned_ns };
    let one_more =
        |until: Until| calls + ReleaseGrid { period: PERIOD, phase_ns: next_ns }.count_first(until);
    match run.way {
        Way::Time => {
            let count = one_more(Until::Before(ended.first_ns + TIME.as_nanos() as u64));
            (count, count)
        }
        // The panic left no finish.
        Way::Panic if run.ender == Some(WorkRunner::Delaying) => (calls, calls),
        _ => (one_more(Until::UpTo(ended.before_ns)), one_more(Until::UpTo(ended.after_ns))),
    }
}

/// Fills the places of the kinds that run elsewhere.
pub(crate) fn fill(table: &mut EndsTable) {
    let mut runs = Vec::new();
    for by in DisturbedBy::EACH {
        let new = |way, ender, is_late| Run { way, by, ender, is_late };
        runs.push(new(Way::Time, None, true));
        for way in [Way::Stop, Way::Handle] {
            runs.extend([new(way, None, false), new(way, None, true)]);
        }
        runs.push(new(Way::Removal, None, false));
        runs.push(new(Way::Panic, Some(WorkRunner::Process), true));
        runs.push(new(Way::Policy, Some(WorkRunner::Thread), false));
        for way in [Way::Flow, Way::Panic] {
            runs.push(new(way, Some(WorkRunner::Thread), true));
        }
        let others = match by {
            DisturbedBy::Nothing => [WorkRunner::Added, WorkRunner::Delaying],
            DisturbedBy::Stall => [WorkRunner::Triggered, WorkRunner::Added],
            DisturbedBy::Overrun => [WorkRunner::Delaying, WorkRunner::Triggered],
        };
        for way in [Way::Flow, Way::Panic] {
            runs.push(new(way, Some(others[0]), false));
        }
        runs.push(new(Way::Watchdog, Some(others[1]), false));
        if by == DisturbedBy::Nothing {
            runs.push(new(Way::Policy, Some(WorkRunner::Process), true));
            runs.push(new(Way::Policy, Some(WorkRunner::Added), true));
        }
    }
    let reasons = Mutex::new(Vec::new());
    for each in runs {
        let ended = run(each);
        let (tasks, wrong) = judge(each, &ended);
        let is_own = |kind| {
            each.ender != Some(WorkRunner::Process)
                || each.way != Way::Panic
                || kind == WorkRunner::Process
        };
        for (kind, counted) in tasks.into_iter().filter(|(kind, _)| is_own(*kind)) {
            table.add(EndCase { kind, way: each.way, by: each.by }, &counted, &each);
        }
        wrong.into_iter().for_each(|wrong| table.note(format!("{each:?} {wrong}")));
        reasons.lock().expect("no panic").extend(ended.refusals);
    }
    for (kind, reason) in reasons.into_inner().expect("no panic") {
        table.absent(kind, Way::Removal, reason);
    }
}
