//! Loops, tasks and units in one thread, in simulated time: the end is known to the nanosecond.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use punctual::sim::SimulatedClock;
use punctual::{
    Calendar, Clock, Counts, Cycle, End, Executive, Flow, Handle, Instant, Loop, LoopHandle,
    OnOverrun, Period, Phase, RtThread, StopHandle, Summary, Task, Unit, WaitPolicy, sim,
};
use punctual_import::samples::{RunCounts, SampleFileReader};
use punctual_testkit::ends::{Counted, DisturbedBy, EndCase, EndsTable, Way, WorkRunner};
use punctual_testkit::span::{ReleaseGrid, Until, moving};

const MS: u64 = 1_000_000;
/// Where the clock is at the beginning.
const START_NS: u64 = 20 * MS + 1;
/// From the end of setup to the first release, at least: of an executive and of a loop.
const LEAD_NS: [u64; 2] = [MS, MS / 10];
/// The call of the body that overruns, and the releases before a stall.
const DISTURBED: u64 = 6;
/// The execution time of a body.
const WORK_NS: u64 = 10_000;

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// A simulated clock on which something is done once an instant has passed.
#[derive(Clone)]
struct ActingClock {
    time: SimulatedClock,
    at_ns: Arc<AtomicU64>,
    act: Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>,
}

impl ActingClock {
    fn new(time: SimulatedClock) -> Self {
        time.spend(ns(START_NS));
        Self { time, at_ns: Arc::new(AtomicU64::new(u64::MAX)), act: Arc::default() }
    }

    fn now_ns(&self) -> u64 {
        self.time.clone().now().as_ns()
    }

    fn spend(&self, time_ns: u64) {
        self.time.spend(ns(time_ns));
        self.look();
    }

    /// Does `act` at that instant.
    fn at(&self, at_ns: u64, act: impl Fn() + Send + Sync + 'static) {
        assert!(self.act.set(Box::new(act)).is_ok(), "once");
        self.at_ns.store(at_ns, Ordering::Relaxed);
    }

    fn look(&self) {
        if self.now_ns() >= self.at_ns.load(Ordering::Relaxed)
            && let Some(act) = self.act.get()
        {
            act();
        }
    }
}

impl Clock for ActingClock {
    fn now(&mut self) -> Instant {
        self.time.now()
    }
    fn poll(&mut self) -> Instant {
        let now = self.time.poll();
        self.look();
        now
    }
    fn sleep_until(&mut self, at: Instant) {
        self.time.sleep_until(at);
        self.look();
    }
    fn wake(&mut self) -> Instant {
        self.time.wake()
    }
    fn relax(&mut self) {}
    /// It was requested when that instant passed, and may be seen later.
    fn at_monotonic(&mut self, _: Instant) -> Option<Instant> {
        let at_ns = self.at_ns.load(Ordering::Relaxed);
        (at_ns < u64::MAX).then(|| Instant::from_ns(at_ns))
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
struct Trial {
    kind: WorkRunner,
    way: Way,
    by: DisturbedBy,
    number: usize,
    policy: OnOverrun,
    period: Period,
    /// The length of the disturbance.
    length_ns: u64,
    /// From the first release to the end, where that is an instant.
    after_ns: u64,
    /// The call of the body that ends it, where one does.
    last: u64,
}

impl Trial {
    fn wait(&self) -> WaitPolicy {
        match self.number % 12 {
            0 => WaitPolicy::spin(),
            1..=5 => WaitPolicy::fixed(Duration::from_micros(100)),
            _ => WaitPolicy::sleep(),
        }
    }

    fn thread(&self) -> RtThread {
        let thread = sim::thread().wait(self.wait());
        if self.way == Way::Watchdog { thread.watchdog(Duration::from_millis(60)) } else { thread }
    }

    fn is_by_body(&self) -> bool {
        matches!(self.way, Way::Panic | Way::Flow | Way::Watchdog | Way::Policy)
    }

    /// The clock, where the first release is at `first_ns`.
    fn clock(&self, first_ns: u64) -> ActingClock {
        let clock = SimulatedClock::new();
        ActingClock::new(match self.by {
            DisturbedBy::Stall => {
                let at_ns = first_ns + self.period.offset_ns(DISTURBED) + self.period.as_ns() / 3;
                clock.stall(ns(at_ns), ns(self.length_ns))
            }
            _ => clock,
        })
    }

    /// The execution time of call number `call` of the body, `late_ns` after its release, ns.
    fn work_ns(&self, call: u64, late_ns: u64) -> u64 {
        match self.by {
            DisturbedBy::Overrun if call == DISTURBED => self.length_ns,
            // What ends it by its policy, where nothing else does: it ends at its next release.
            DisturbedBy::Nothing if self.way == Way::Policy && call == self.last => {
                self.period.as_ns() + 1 - late_ns.min(WORK_NS)
            }
            _ => WORK_NS,
        }
    }

    fn file(&self) -> PathBuf {
        let name = format!("punctual-ends-{}-{}", std::process::id(), self.number);
        std::env::temp_dir().join(name)
    }

    /// The end that the summary is to say.
    fn is_end(&self, end: &End, subject: &str) -> bool {
        match self.way {
            Way::Time => *end == End::Finished,
            Way::Stop | Way::Handle | Way::Flow | Way::Removal => *end == End::Stopped,
            Way::Panic => matches!(end, End::Panicked { task, .. } if task == subject),
            Way::Policy => *end == End::Overran(subject.to_owned()),
            Way::Watchdog => {
                matches!(end, End::Blocked | End::Forced | End::Starved | End::Stuck)
            }
        }
    }
}

/// The body of the task that a run is about.
struct Subject {
    trial: Trial,
    clock: ActingClock,
    calls: u64,
    finishes_ns: Arc<Mutex<Vec<u64>>>,
    stopped: Arc<OnceLock<Box<dyn Fn() -> bool + Send + Sync>>>,
}

impl Subject {
    fn new(trial: &Trial, clock: &ActingClock) -> Self {
        let (trial, clock) = (*trial, clock.clone());
        Self { trial, clock, calls: 0, finishes_ns: Arc::default(), stopped: Arc::default() }
    }

    fn run(&mut self, cycle: &Cycle<'_>) -> Flow {
        let Self { trial, clock, calls, finishes_ns, stopped } = self;
        *calls += 1;
        clock.spend(trial.work_ns(*calls, cycle.lateness.as_ns().unsigned_abs()));
        finishes_ns.lock().expect("no panic").push(clock.now_ns());
        if *calls != trial.last {
            return Flow::Continue;
        }
        match trial.way {
            Way::Flow => return Flow::Stop,
            // Past the hook, which would print it.
            Way::Panic => resume_unwind(Box::new("on purpose".to_owned())),
            Way::Watchdog => {
                while !stopped.get().is_some_and(|stopped| stopped()) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            _ => {}
        }
        Flow::Continue
    }
}

/// Samples and missed releases that a sample file, which was to be written, has of the run of this
/// name.
pub(crate) fn recorded(file: &Path, name: &str) -> (u64, u64) {
    let opened = std::fs::File::open(file).unwrap_or_else(|why| panic!("{name}: no file: {why}"));
    let mut reader = SampleFileReader::open(opened).expect("a sample file");
    let run = reader.info().runs.iter().position(|run| run.name == name);
    let run = run.unwrap_or_else(|| panic!("the file has no run {name}"));
    while reader.next_block().is_some() {}
    let RunCounts { samples, missed, unrecorded } = reader.counts(run).expect("it has that run");
    assert_eq!(unrecorded, 0, "{name}");
    (samples, missed)
}

fn counted(counts: &Counts, releases: u64, recorded: (u64, u64)) -> Counted {
    let Counts { ran, missed, censored, .. } = *counts;
    let recorded = Some(recorded);
    Counted { releases: releases..=releases, ran, missed, censored, unattended: 0, recorded }
}

/// A run's tasks: which kind each is, and what it counted; and how it ended where it was to end
/// otherwise.
type Outcome = (Vec<(WorkRunner, Counted)>, Option<String>);

/// A loop of one period.
fn single(trial: &Trial) -> Outcome {
    let grid = ReleaseGrid { period: trial.period, phase_ns: 0 };
    let first_ns = grid.first_ns(START_NS + LEAD_NS[1]);
    let (clock, file) = (trial.clock(first_ns), trial.file());
    let mut subject = Subject::new(trial, &clock);
    let stopped = Arc::clone(&subject.stopped);
    let thread =
        if trial.way == Way::Watchdog { trial.thread() } else { trial.thread().without_watchdog() };
    let builder = Loop::builder(trial.period).phase(Phase::Zero).thread(thread).record(&file);
    let mut each = builder.start_on(clock.clone()).expect("a loop");
    let handle: LoopHandle = each.handle();
    let stops = handle.clone();
    assert!(stopped.set(Box::new(move || stops.stopped())).is_ok());
    if trial.way == Way::Handle {
        let stops = handle.clone();
        clock.at(first_ns + trial.after_ns, move || stops.stop());
    }
    let mut until = None;
    let end = match trial.way {
        Way::Time => {
            until = Some(Until::Before(first_ns + trial.after_ns));
            Some(each.run_for(ns(trial.after_ns), |cycle| subject.run(cycle)).end)
        }
        Way::Stop => {
            while let Some(cycle) = each.wait() {
                let _flow = subject.run(&cycle);
                if subject.calls == trial.last {
                    break;
                }
            }
            // Its owner does something else before.
            clock.spend(trial.after_ns);
            Some(each.finish().end)
        }
        Way::Panic => {
            let run = || each.run_for(ns(u64::MAX >> 1), |cycle| subject.run(cycle)).end;
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
            None
        }
        _ => Some(each.run_for(ns(u64::MAX >> 1), |cycle| subject.run(cycle)).end),
    };
    if trial.way == Way::Handle {
        until = Some(Until::UpTo(first_ns + trial.after_ns));
    }
    let until = until.unwrap_or_else(|| Until::UpTo(clock.now_ns()));
    let wrong = end.filter(|end| !trial.is_end(end, "loop")).map(|end| format!("ended {end:?}"));
    let counts = handle.counts();
    let recorded = recorded(&file, "loop");
    let _gone = std::fs::remove_file(&file);
    (vec![(WorkRunner::Loop, counted(&counts, grid.count(first_ns, until), recorded))], wrong)
}

/// Runs `executive` to the end that the trial says; the summary, and until when its releases are.
fn run(
    trial: &Trial,
    executive: Executive<'static, ActingClock>,
    (clock, first_ns): (&ActingClock, u64),
    subject: &OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
) -> (Summary, Until) {
    let (handle, stop): (Handle<'static>, StopHandle) =
        (executive.handle(), executive.stop_handle());
    let stops = stop.clone();
    assert!(subject.set(Box::new(move || stops.stopped())).is_ok());
    let end_ns = first_ns + trial.after_ns;
    match trial.way {
        Way::Stop => clock.at(end_ns, move || stop.stop()),
        Way::Handle => {
            // It borrows nothing, but is not shared between threads as the clock is.
            let handle = Mutex::new(handle);
            clock.at(end_ns, move || handle.lock().expect("no panic").stop());
        }
        _ => {}
    }
    let summary = match trial.way {
        Way::Time => executive.run_for(ns(trial.after_ns)),
        _ => executive.run(),
    };
    let until = match trial.way {
        Way::Time => Until::Before(end_ns),
        Way::Stop | Way::Handle => Until::UpTo(end_ns),
        _ => Until::UpTo(clock.now_ns()),
    };
    (summary.expect("it starts"), until)
}

const BESIDE: ReleaseGrid =
    ReleaseGrid { period: Period::from_ns(3 * MS).expect("in range"), phase_ns: 4 * MS / 10 };

/// A task, and one beside it.
fn inline(trial: &Trial) -> Outcome {
    let grid = ReleaseGrid { period: trial.period, phase_ns: 0 };
    let from_ns = START_NS + LEAD_NS[0];
    let own_ns = grid.first_ns(from_ns);
    let first_ns = own_ns.min(BESIDE.first_ns(from_ns));
    let (clock, file) = (trial.clock(first_ns), trial.file());
    let mut subject = Subject::new(trial, &clock);
    let (finishes_ns, stopped) = (Arc::clone(&subject.finishes_ns), Arc::clone(&subject.stopped));
    let works = clock.clone();
    let own = Task::every("own", trial.period).at(Duration::ZERO).on_overrun(trial.policy);
    let beside = Task::every("beside", BESIDE.period).at(ns(BESIDE.phase_ns));
    let (executive, _ids) = Executive::builder()
        .clock(clock.clone())
        .thread(trial.thread())
        .record(&file)
        .task(own, move |cycle: &mut Cycle<'_>| subject.run(cycle))
        .task(beside, move |_| works.spend(2 * WORK_NS))
        .build()
        .expect("fine");
    let (summary, until) = run(trial, executive, (&clock, first_ns), &stopped);
    let finishes_ns = finishes_ns.lock().expect("no panic");
    let own = match trial.policy {
        OnOverrun::Delay => moving(own_ns, trial.period.as_ns(), &finishes_ns, until),
        _ => grid.count(own_ns, until),
    };
    let releases = [("own", own), ("beside", BESIDE.count(from_ns, until))];
    let expected =
        releases.map(|(name, releases)| Expected { name, kind: WorkRunner::Inline, releases });
    outcome(trial, &summary, (&file, "own"), expected)
}

/// Three tasks of a calendar, one of them in two parts, and one beside it.
fn units(trial: &Trial) -> Outcome {
    let frame = trial.period;
    let grid = |phase_ns| ReleaseGrid { period: frame, phase_ns };
    // No frame is begun in its middle.
    let from_ns = grid(0).first_ns(START_NS + LEAD_NS[0]);
    let places = [("read", 100_000), ("filter", 250_000), ("write", 500_000)];
    let first_ns = BESIDE.first_ns(from_ns).min(grid(100_000).first_ns(from_ns));
    let (clock, file) = (trial.clock(first_ns), trial.file());
    // One or the other is what disturbs it, and what ends it.
    let is_first = trial.number.is_multiple_of(2);
    let name = if is_first { "read" } else { "write" };
    let subject = Subject::new(trial, &clock);
    let stopped = Arc::clone(&subject.stopped);
    let subject = Arc::new(Mutex::new(subject));
    let body = |own: bool| {
        let (subject, works) = (Arc::clone(&subject), clock.clone());
        move |cycle: &mut Cycle<'_>| match own {
            true => subject.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).run(cycle),
            false => {
                works.spend(WORK_NS);
                Flow::Continue
            }
        }
    };
    let unit = |name: &str, at_ns| Unit::new(name, ns(100_000)).at(ns(at_ns));
    let policy = |own: bool| if own { trial.policy } else { OnOverrun::Skip };
    let works = clock.clone();
    let calendar = Calendar::frame(frame)
        .unit(unit("read", places[0].1).on_overrun(policy(is_first)), body(is_first))
        .unit(unit("filter", places[1].1), move |cycle: &mut Cycle<'_>| {
            works.spend(WORK_NS);
            if cycle.part == 0 { Flow::Break } else { Flow::Continue }
        })
        .unit(unit("write", places[2].1).on_overrun(policy(!is_first)), body(!is_first))
        .part(unit("filter 2", 750_000).of("filter"));
    let works = clock.clone();
    let beside = Task::every("beside", BESIDE.period).at(ns(BESIDE.phase_ns)).budget(ns(20_000));
    let (executive, _ids) = Executive::builder()
        .clock(clock.clone())
        .thread(trial.thread())
        .record(&file)
        .calendar(calendar)
        .task(beside, move |_| works.spend(WORK_NS))
        .build()
        .expect("it fits");
    let (summary, until) = run(trial, executive, (&clock, first_ns), &stopped);
    let units = places.map(|(name, at_ns)| {
        let releases = grid(at_ns).count(from_ns, until);
        Expected { name, kind: WorkRunner::Unit, releases }
    });
    let releases = BESIDE.count(from_ns, until);
    let beside = Expected { name: "beside", kind: WorkRunner::Inline, releases };
    outcome(trial, &summary, (&file, name), units.into_iter().chain([beside]))
}

/// A task of a run, and its releases by the model.
struct Expected<'n> {
    name: &'n str,
    kind: WorkRunner,
    releases: u64,
}

/// The counts of each task of a summary.
fn outcome<'n>(
    trial: &Trial,
    summary: &Summary,
    (file, subject): (&Path, &str),
    expected: impl IntoIterator<Item = Expected<'n>>,
) -> Outcome {
    let task = |Expected { name, kind, releases }: Expected<'_>| {
        let counts = &summary.task(name).expect("there").counts;
        (kind, counted(counts, releases, recorded(file, name)))
    };
    let tasks = expected.into_iter().map(task).collect();
    let _gone = std::fs::remove_file(file);
    let wrong = !trial.is_end(&summary.end, subject);
    (tasks, wrong.then(|| format!("ended {:?}", summary.end)))
}

/// A guest of a task beside it is removed, at an instant between two readings of the clock.
fn removal(by: DisturbedBy, number: usize) -> (Counted, String) {
    let period = Period::from_ns(MS).expect("in range");
    let grid = ReleaseGrid { period, phase_ns: 0 };
    let clock = ActingClock::new(SimulatedClock::new());
    let leaving = Arc::new(AtomicU64::new(0));
    let (host, hold) = (clock.clone(), Arc::clone(&leaving));
    let work = move |_: &mut Cycle<'_>| {
        host.spend(WORK_NS);
        // So that simulated time does not run away while it is removed; once it stalls the guest.
        match hold.load(Ordering::Relaxed) {
            0 => std::thread::yield_now(),
            1 => {
                hold.store(2, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
                if by == DisturbedBy::Stall {
                    host.spend(3 * MS + MS / 2);
                }
            }
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let (executive, _ids) = Executive::builder()
        .clock(clock.clone())
        .thread(sim::thread())
        .task(Task::every("host", period).at(Duration::ZERO), work)
        .build()
        .expect("fine");
    let guest = clock.clone();
    let first_ns = Arc::new(AtomicU64::new(0));
    let first = Arc::clone(&first_ns);
    let leaves = Arc::clone(&leaving);
    let body = move |cycle: &mut Cycle<'_>| {
        let ns = cycle.release.as_ns() - cycle.missed * MS;
        let _later = first.compare_exchange(0, ns, Ordering::Relaxed, Ordering::Relaxed);
        let is_over = by == DisturbedBy::Overrun && leaves.load(Ordering::Relaxed) == 2;
        guest.spend(if is_over { 2 * MS + MS / 2 } else { WORK_NS });
    };
    let ((stats, before_ns, after_ns), _summary) = executive
        .run_with(ns(u64::MAX >> 1), |handle| {
            let id = handle.add(Task::every("guest", period).at(Duration::ZERO), body);
            let id = id.expect("it fits");
            while handle.counts(id).expect("there").ran < 3 {
                std::thread::yield_now();
            }
            leaving.store(1, Ordering::Relaxed);
            let before_ns = clock.now_ns();
            let stats = handle.remove(id).expect("there");
            let after_ns = clock.now_ns();
            handle.stop();
            (stats, before_ns, after_ns)
        })
        .expect("it starts");
    let due = |ns| grid.count(first_ns.load(Ordering::Relaxed), Until::UpTo(ns));
    let Counts { ran, missed, censored, .. } = stats.counts;
    let releases = due(before_ns)..=due(after_ns);
    let counted = Counted { releases, ran, missed, censored, unattended: 0, recorded: None };
    (counted, format!("removal {number}"))
}

/// All runs of one kind, one way and one disturbance.
fn trials(at: EndCase, number: &mut usize) -> Vec<Trial> {
    let EndCase { kind, way, by } = at;
    let period = |num, den| Period::ratio(num, den).expect("in range");
    let periods: &[Period] = match kind {
        // A frame is a whole number of nanoseconds.
        WorkRunner::Unit => &[period(MS, 1)],
        _ => &[period(MS, 1), period(10 * MS, 7)],
    };
    let policies: &[OnOverrun] = match (kind, way) {
        (_, Way::Policy) => &[OnOverrun::Stop],
        (WorkRunner::Loop, _) => &[OnOverrun::Skip],
        (WorkRunner::Unit, _) => &[OnOverrun::Skip, OnOverrun::Terminate],
        _ => &[
            OnOverrun::Skip,
            OnOverrun::Burst(2),
            OnOverrun::Burst(40),
            OnOverrun::Delay,
            OnOverrun::Terminate,
        ],
    };
    let mut trials = Vec::new();
    for &period in periods {
        let of_period = |num, den| period.as_ns() * num / den;
        // Of a fraction one period may be a nanosecond longer than another.
        let whole_ns = period.as_ns() + u64::from(period.den() > 1);
        let lengths = [of_period(3, 20), whole_ns, of_period(5, 2), of_period(93, 10)];
        let lengths = if by == DisturbedBy::Nothing { &lengths[..1] } else { &lengths[..] };
        let fifth = period.offset_ns(5);
        let afters = [
            fifth - 1,
            fifth,
            fifth + 1,
            fifth + of_period(1, 2),
            period.offset_ns(DISTURBED) + of_period(2, 3),
            period.offset_ns(8) + of_period(1, 10),
            period.offset_ns(11),
            period.offset_ns(19) + of_period(4, 5),
        ];
        let lasts = [1, 5, DISTURBED, DISTURBED + 1, DISTURBED + 5];
        for &policy in policies {
            // It moves by whole nanoseconds.
            if policy == OnOverrun::Delay && period.den() != 1 {
                continue;
            }
            for &length_ns in lengths {
                let trial = Trial {
                    kind,
                    way,
                    by,
                    number: 0,
                    policy,
                    period,
                    length_ns,
                    after_ns: 7 * MS,
                    last: 0,
                };
                let owner = kind == WorkRunner::Loop && way == Way::Stop;
                if trial.is_by_body() || owner {
                    trials.extend(lasts.map(|last| Trial { last, ..trial }));
                } else {
                    trials.extend(afters.map(|after_ns| Trial { after_ns, ..trial }));
                }
            }
        }
    }
    // Some of each, more of the common policy; the watchdog takes its time.
    let most = if way == Way::Watchdog { 12 } else { 60 };
    let mut step = trials.len().div_ceil(most);
    // Not always the same instant, or the same call.
    while step > 1 && (step.is_multiple_of(2) || step.is_multiple_of(5)) {
        step += 1;
    }
    let mut trials: Vec<Trial> = trials.into_iter().step_by(step).collect();
    for trial in &mut trials {
        *number += 1;
        trial.number = *number;
    }
    // It ends by an overrun: one that is none ends nothing.
    trials.retain(|trial| {
        let overruns = match (trial.kind, trial.by) {
            (_, DisturbedBy::Nothing) => true,
            (WorkRunner::Unit, DisturbedBy::Stall) => trial.length_ns > 2 * trial.period.as_ns(),
            (WorkRunner::Unit, DisturbedBy::Overrun) => trial.length_ns > 100_000,
            (_, DisturbedBy::Stall) => trial.length_ns > 2 * trial.period.as_ns(),
            (_, DisturbedBy::Overrun) => trial.length_ns >= trial.period.as_ns(),
        };
        trial.way != Way::Policy || overruns
    });
    trials
}

/// Runs at a time: they mostly wait for their watchdogs to end.
const AT_ONCE: usize = 12;

/// Fills the places of the kinds that a simulated clock runs.
pub(crate) fn fill(table: &mut EndsTable) {
    let (mut trials_of_all, mut number) = (Vec::new(), 0);
    for kind in [WorkRunner::Loop, WorkRunner::Inline, WorkRunner::Unit] {
        for way in Way::EACH.into_iter().filter(|way| *way != Way::Removal) {
            for by in DisturbedBy::EACH {
                if (kind, way) != (WorkRunner::Loop, Way::Policy) {
                    trials_of_all.extend(trials(EndCase { kind, way, by }, &mut number));
                }
            }
        }
    }
    let (next, outcomes) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(trial) =
                    trials_of_all.get(next.fetch_add(1, Ordering::Relaxed) as usize)
                {
                    let outcome = match trial.kind {
                        WorkRunner::Loop => single(trial),
                        WorkRunner::Inline => inline(trial),
                        _ => units(trial),
                    };
                    outcomes.lock().expect("no panic").push((*trial, outcome));
                }
            });
        }
    });
    for (trial, (tasks, wrong)) in outcomes.into_inner().expect("no panic") {
        for (kind, counted) in tasks {
            table.add(EndCase { kind, way: trial.way, by: trial.by }, &counted, &trial);
        }
        if let Some(wrong) = wrong {
            table.note(format!("{trial:?} {wrong}"));
        }
    }
    for by in DisturbedBy::EACH {
        for number in 0..3 {
            let (counted, run) = removal(by, number);
            let at = EndCase { kind: WorkRunner::Inline, way: Way::Removal, by };
            table.add(at, &counted, &run);
        }
    }
    table.absent(WorkRunner::Loop, Way::Policy, "a loop has no policy: its owner sees `missed`");
    table.absent(WorkRunner::Loop, Way::Removal, "it is in no executive");
    table.absent(WorkRunner::Unit, Way::Removal, unit_stays());
}

/// Why a unit's task is not removed.
fn unit_stays() -> String {
    let frame = Period::from_ns(MS).expect("in range");
    let calendar = Calendar::frame(frame).unit(Unit::new("unit", ns(100_000)), |_| ());
    let clock = ActingClock::new(SimulatedClock::new());
    let builder = Executive::builder().clock(clock).thread(sim::thread()).calendar(calendar);
    let (executive, ids) = builder.build().expect("it fits");
    let (why, _summary) = executive
        .run_with(ns(u64::MAX >> 1), |handle| {
            let why = handle.remove(ids[0]).expect_err("refused");
            handle.stop();
            why
        })
        .expect("it starts");
    why.to_string()
}
