//! Every order in which two CPUs and two threads can do a few things, against a model that writes
//! down what each of them does in each 5 µs.
//!
//! The things are those of a scheduler: a thread programs its timer (ahead or too late), sleeps, is
//! preempted, is stopped, is woken by its timer or by another thread, moves, runs; an interrupt
//! comes; the timer's interrupt comes.

use punctual_blame::blame::Blame;
use punctual_blame::cause::CauseKind;
use punctual_blame::config::{BlameConfig, LateThreshold};
use punctual_blame::keep::LateWake;
use punctual_blame::past::WakePhase;
use punctual_blame::timeline::Activity;
use punctual_trace::event::{ContextFlags, ShortName, TaskName, TraceEvent, TraceKind, Vector};

use crate::scenario::{TIMER, US, WAKEUP, assert_exact, config, hog, idle, servo};

/// The step of the model, ns.
const UNIT: u64 = 5 * US;
/// An event each so many steps.
const STEP: u64 = 2;
/// Actions of a path.
const DEPTH: usize = 7;
/// The model's first instant, in steps.
const FIRST: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    Idle,
    Servo,
    Hog,
    Irq,
    TimerInterrupt,
    Callback,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running(usize),
    Ready(usize),
    Asleep,
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Armed {
    release: u64,
    cpu: usize,
}

/// The state of the model in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    labels: [Label; 2],
    state: State,
    armed: Option<Armed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    ArmAhead,
    ArmLate,
    Sleep,
    Stop,
    Preempt,
    Expire,
    WakeByOther(usize),
    Run,
    Irq(usize),
    Migrate,
    HogRuns(usize),
    HogSleeps,
}

const ACTIONS: [Action; 15] = [
    Action::ArmAhead,
    Action::ArmLate,
    Action::Sleep,
    Action::Stop,
    Action::Preempt,
    Action::Expire,
    Action::WakeByOther(0),
    Action::WakeByOther(1),
    Action::Run,
    Action::Irq(0),
    Action::Irq(1),
    Action::Migrate,
    Action::HogRuns(0),
    Action::HogRuns(1),
    Action::HogSleeps,
];

/// A wake as the model sees it, in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expected {
    release: u64,
    ran: u64,
}

#[derive(Clone)]
struct World {
    now: u64,
    moments: Vec<Moment>,
    running: [Label; 2],
    interrupt: [Option<Label>; 2],
    state: State,
    armed: Option<Armed>,
    is_hog_asleep: bool,
    released: Option<u64>,
    wakes: Vec<Expected>,
    last_cpu: usize,
    blame: Blame,
}

impl World {
    fn new() -> Self {
        let config = BlameConfig { late: LateThreshold::Above(0), event_driven: false, ..config() };
        let mut world = Self {
            now: FIRST,
            moments: Vec::new(),
            running: [Label::Servo, Label::Idle],
            interrupt: [None; 2],
            state: State::Running(0),
            armed: None,
            is_hog_asleep: true,
            released: None,
            wakes: Vec::new(),
            last_cpu: 0,
            blame: Blame::new(config),
        };
        // Both CPUs and the thread are seen once.
        world.switch_event(1, idle(), 1, idle());
        world.switch_event(0, hog(), 1, servo());
        world.pass();
        world
    }

    /// Time goes by: the model writes down what holds.
    fn pass(&mut self) {
        for _ in 0..STEP {
            let label = |cpu: usize| self.interrupt[cpu].unwrap_or(self.running[cpu]);
            let labels = [label(0), label(1)];
            self.moments.push(Moment { labels, state: self.state, armed: self.armed });
        }
        self.now += STEP;
    }

    fn event(&mut self, cpu: usize, kind: TraceKind) {
        let tid = task(self.running[cpu]).tid;
        self.event_of(cpu, tid, kind);
    }

    fn event_of(&mut self, cpu: usize, tid: u32, kind: TraceKind) {
        let is_inside = self.interrupt[cpu].is_some()
            || matches!(kind, TraceKind::IrqEntry { .. } | TraceKind::VectorEntry(_));
        let context = ContextFlags { flags: if is_inside { 0x08 } else { 0x04 }, preempt_depth: 0 };
        let (at_ns, cpu) = (self.now * UNIT, cpu as u32);
        self.blame.push(&TraceEvent { at_ns, cpu, tid, context, kind, chain: Box::default() });
    }

    fn switch_event(&mut self, cpu: usize, previous: TaskName, state: u64, next: TaskName) {
        let kind = TraceKind::Switch { previous, previous_state: state, next };
        self.event_of(cpu, previous.tid, kind);
    }

    fn switch(&mut self, cpu: usize, state: u64, next: Label) {
        self.switch_event(cpu, task(self.running[cpu]), state, task(next));
        self.running[cpu] = next;
    }

    /// Does it, where it is possible: whether it was.
    fn act(&mut self, action: Action) -> bool {
        let running = match self.state {
            State::Running(cpu) => Some(cpu),
            _ => None,
        };
        match (action, running) {
            (Action::ArmAhead, Some(cpu)) if self.armed.is_none() => {
                self.arm(cpu, self.now + 3);
            }
            (Action::ArmLate, Some(cpu)) if self.armed.is_none() => {
                self.arm(cpu, self.now - 5);
                // It expires at once, and the thread goes on.
                self.expire(cpu);
            }
            (Action::Sleep, Some(cpu)) => {
                self.leave(cpu, 1, State::Asleep);
            }
            (Action::Stop, Some(cpu)) => {
                self.leave(cpu, 4, State::Stopped);
                // The kernel ends the sleep that a signal interrupts.
                self.armed = None;
            }
            (Action::Preempt, Some(cpu)) if self.is_hog_asleep => {
                self.is_hog_asleep = false;
                self.switch(cpu, 0, Label::Hog);
                self.state = State::Ready(cpu);
            }
            (Action::Expire, None) => {
                // Of one that was preempted too: it did not come to sleep yet.
                let is_waiting = match self.state {
                    State::Asleep => true,
                    State::Ready(_) => self.released.is_none(),
                    _ => false,
                };
                let Some(armed) =
                    self.armed.filter(|armed| armed.release <= self.now && is_waiting)
                else {
                    return false;
                };
                self.expire(armed.cpu);
                return true;
            }
            (Action::WakeByOther(cpu), None)
                if matches!(self.state, State::Asleep | State::Stopped) =>
            {
                let target_cpu = self.last_cpu as u32;
                self.event(cpu, TraceKind::Waking { task: servo(), target_cpu });
                self.state = State::Ready(self.last_cpu);
                self.armed = None;
            }
            (Action::Run, None) => {
                let State::Ready(cpu) = self.state else { return false };
                let state = if self.running[cpu] == Label::Hog { 1 } else { 0 };
                self.is_hog_asleep |= self.running[cpu] == Label::Hog;
                self.switch(cpu, state, Label::Servo);
                self.state = State::Running(cpu);
                self.last_cpu = cpu;
                self.run();
            }
            (Action::Migrate, None) => {
                let State::Ready(cpu) = self.state else { return false };
                let other = 1 - cpu;
                let (from_cpu, to_cpu) = (cpu as u32, other as u32);
                self.event(other, TraceKind::Migrate { task: servo(), from_cpu, to_cpu });
                self.state = State::Ready(other);
            }
            (Action::Irq(cpu), _) => {
                let name = ShortName::new(b"eth0");
                self.event(cpu, TraceKind::IrqEntry { irq: 9, name });
                self.interrupt[cpu] = Some(Label::Irq);
                self.pass();
                self.event(cpu, TraceKind::IrqExit { irq: 9, is_handled: None });
                self.interrupt[cpu] = None;
            }
            (Action::HogRuns(cpu), _) if self.is_hog_asleep && self.running[cpu] == Label::Idle => {
                self.is_hog_asleep = false;
                self.switch(cpu, 0, Label::Hog);
            }
            (Action::HogSleeps, _) => {
                let Some(cpu) = (0..2).find(|&cpu| self.running[cpu] == Label::Hog) else {
                    return false;
                };
                self.is_hog_asleep = true;
                self.switch(cpu, 1, Label::Idle);
            }
            _ => return false,
        }
        self.pass();
        true
    }

    fn arm(&mut self, cpu: usize, release: u64) {
        let expires_ns = (release * UNIT) as i64;
        let start = TraceKind::TimerStart {
            timer: TIMER,
            function: WAKEUP,
            expires_ns,
            soft_expires_ns: expires_ns,
        };
        self.event(cpu, start);
        self.armed = Some(Armed { release, cpu });
        self.last_cpu = cpu;
        self.pass();
    }

    fn leave(&mut self, cpu: usize, state: u64, now: State) {
        self.switch(cpu, state, Label::Idle);
        self.state = now;
        self.last_cpu = cpu;
    }

    /// The timer's interrupt: entry, function, waking, exit.
    fn expire(&mut self, cpu: usize) {
        self.event(cpu, TraceKind::VectorEntry(Vector::LocalTimer));
        self.interrupt[cpu] = Some(Label::TimerInterrupt);
        self.pass();
        let now_ns = (self.now * UNIT) as i64;
        let expire = TraceKind::TimerExpireEntry { timer: TIMER, function: WAKEUP, now_ns };
        self.event(cpu, expire);
        self.interrupt[cpu] = Some(Label::Callback);
        self.pass();
        let target_cpu = self.last_cpu as u32;
        self.event(cpu, TraceKind::Waking { task: servo(), target_cpu });
        self.released = self.armed.take().map(|armed| armed.release);
        match self.state {
            State::Asleep => self.state = State::Ready(self.last_cpu),
            State::Running(_) => self.run(),
            _ => {}
        }
        self.pass();
        self.event(cpu, TraceKind::VectorExit(Vector::LocalTimer));
        self.interrupt[cpu] = None;
        self.pass();
    }

    fn run(&mut self) {
        if let Some(release) = self.released.take() {
            self.wakes.push(Expected { release, ran: self.now });
        }
    }

    fn moment(&self, step: u64) -> Option<Moment> {
        self.moments.get(usize::try_from(step.checked_sub(FIRST)?).ok()?).copied()
    }

    /// Holds the outcome against the model, step by step.
    fn check(&self, path: &[Action]) -> usize {
        let outcome = self.blame.clone().finish();
        assert_exact(&outcome);
        assert_eq!(outcome.table.wakes, self.wakes.len() as u64, "{path:?}");
        for expected in &self.wakes {
            let Expected { release, ran } = *expected;
            let Some(wake) = outcome.worst.iter().find(|wake| wake.ran_ns == ran * UNIT) else {
                panic!("{path:?}: no wake at {ran}")
            };
            assert_eq!(wake.release_ns, release * UNIT, "{path:?}");
            assert!(wake.is_whole || release < FIRST, "{path:?}");
            for step in release..ran {
                if let Some(moment) = self.moment(step) {
                    check_step(wake, step, moment, path);
                }
            }
        }
        self.wakes.len()
    }
}

fn task(label: Label) -> TaskName {
    match label {
        Label::Servo => servo(),
        Label::Hog => hog(),
        _ => idle(),
    }
}

fn check_step(wake: &LateWake, step: u64, moment: Moment, path: &[Action]) {
    let at_ns = step * UNIT;
    let found = wake.parts.iter().find(|part| part.from_ns <= at_ns && at_ns < part.to_ns);
    let Some(part) = found else { panic!("{path:?}: nothing at {step}") };
    let due = moment.armed.filter(|armed| armed.release <= step);
    let (phase, cpu) = match (moment.state, due) {
        (State::Running(cpu), _) => (WakePhase::Running, Some(cpu)),
        (State::Ready(cpu), _) => (WakePhase::Ready, Some(cpu)),
        (State::Stopped, _) => (WakePhase::Stopped, None),
        (State::Asleep, Some(armed)) => (WakePhase::Delivery, Some(armed.cpu)),
        (State::Asleep, None) => (WakePhase::Waiting { is_blocked: false, call: None }, None),
    };
    let label = match part.activity {
        Activity::Idle { .. } => Some(Label::Idle),
        Activity::Task { task, .. } if task == servo() => Some(Label::Servo),
        Activity::Task { task, .. } if task == hog() => Some(Label::Hog),
        Activity::HardIrq { .. } => Some(Label::Irq),
        Activity::TimerInterrupt => Some(Label::TimerInterrupt),
        Activity::TimerCallback { .. } => Some(Label::Callback),
        Activity::Elsewhere => None,
        activity => panic!("{path:?}: {activity:?} at {step}"),
    };
    let wanted = cpu.map(|cpu| moment.labels[cpu]);
    assert_eq!((part.phase, label), (phase, wanted), "{path:?} at {step}: {wake:#?}");
    if let Some(cpu) = cpu {
        assert_eq!(part.cpu as usize, cpu, "{path:?} at {step}");
    }
    let kind = match (phase, wanted) {
        (_, Some(Label::Irq)) => Some(CauseKind::HardIrq),
        (_, Some(Label::Callback)) => Some(CauseKind::NormalPath),
        (WakePhase::Ready, Some(Label::Hog)) => Some(CauseKind::HigherPriority),
        (WakePhase::Stopped, _) => Some(CauseKind::Stopped),
        _ => None,
    };
    if let Some(kind) = kind {
        assert_eq!(part.cause.kind(), kind, "{path:?} at {step}");
    }
}

/// Paths that were walked, and wakes that were compared.
#[derive(Debug, Default)]
struct Walked {
    paths: usize,
    wakes: usize,
}

fn walk(world: &World, path: &mut Vec<Action>, depth: usize, walked: &mut Walked) {
    for action in ACTIONS {
        let mut next = world.clone();
        if !next.act(action) {
            continue;
        }
        path.push(action);
        if next.wakes.len() > world.wakes.len() {
            walked.wakes += next.check(path);
        }
        walked.paths += 1;
        if depth > 1 {
            walk(&next, path, depth - 1, walked);
        }
        path.pop();
    }
}

#[test]
fn every_order_is_what_the_model_writes_down() {
    let mut walked = Walked::default();
    walk(&World::new(), &mut Vec::new(), DEPTH - 2, &mut walked);
    assert!(walked.paths > 5_000 && walked.wakes > 500, "{walked:?}");
}

/// Longer paths, of those that end in a wake by a timer which was programmed ahead.
#[test]
fn every_order_after_a_sleep_is_what_the_model_writes_down() {
    let mut walked = Walked::default();
    let mut asleep = World::new();
    assert!(asleep.act(Action::ArmAhead) && asleep.act(Action::Sleep));
    let mut path = vec![Action::ArmAhead, Action::Sleep];
    walk(&asleep, &mut path, DEPTH - 2, &mut walked);
    assert!(walked.paths > 5_000 && walked.wakes > 500, "{walked:?}");
}
