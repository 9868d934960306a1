//! Attribution as it happens: events in, in the order of time, and at the end an outcome.
//!
//! Each event goes to the timeline of its CPU and then to the threads that it concerns. Time never
//! runs backwards here: an event that comes late counts as of now, and is counted.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use punctual_trace::event::{TaskName, Tid, TraceEvent, TraceKind, Vector};

use crate::begin::WakeBegin;
use crate::cause::Unexplained;
use crate::config::BlameConfig;
use crate::counters::{CounterBook, WakeCounts};
use crate::court::{Court, Known};
use crate::facts::WakeFacts;
use crate::figures::ThreadSnapshot;
use crate::followed::FollowedBook;
use crate::frequency::{ClockBook, SlowClock};
use crate::machine::{RecordingBegin, RunnableThread};
use crate::outcome::{BlameCounts, BlameOutcome, TopSnapshot, outcome};
use crate::past::{ByPiece, Piece, SwitchHole, WakePhase, Window, forgotten, unseen};
use crate::programs::ThreadProgram;
use crate::recall::JudgedWake;
use crate::release::{Activation, LAST_NS, ReleaseAnchor};
use crate::senders::Senders;
use crate::stall::{STALL_NS, SpentTime, StallEvidence, StealBook};
use crate::tasks::TaskTable;
use crate::thread::{Chosen, OpenCycle, Thread, ThreadState};
use crate::timeline::{Activity, CpuTimeline, Moment, TaskMode};
use crate::timers::{Arm, ClockBases, TimerTable};
use crate::wake::{Answer, FinishedWake, Run, Wake, WindowChain};

/// The handler's name of the interrupt of a CPU's own timer, where it has one
/// (drivers/clocksource/arm_arch_timer.c).
const TIMER_HANDLER: &[u8] = b"arch_timer";

/// The timer that ends throttling expired at most so long before its thread runs, ns.
const UNTHROTTLE_NS: u64 = 300_000;
/// Another CPU's request to choose again arrives within this, ns.
const REQUEST_NS: u64 = 60_000;
/// A signal that stops reaches all threads of its process within this, ns.
const STOP_NS: u64 = 10_000_000;
/// A thread of an interrupt wakes others at most so long after that interrupt, ns.
const IRQ_THREAD_NS: u64 = 10_000_000;
/// Other CPUs that are looked at for silence, the first ones that have events.
const WITNESSES: usize = 64;
/// Functions of timers that have been seen to wake, and bear no name.
const WAKING: usize = 16;
/// A wait that began before the recording, or goes on at its end, counts from this length on, ns:
/// of a shorter one it is open whether it is late.
const OPEN_WAIT_NS: u64 = 1_000_000;

/// Threads that other CPUs sent to one, which are remembered.
const SENT_MAX: usize = 8;

/// Finished wakes that wait to be taken, at least: at the end one of each thread that is followed.
const FINISHED: usize = 64;

/// An expiry of a timer, whose function is called.
#[derive(Debug, Clone, Copy)]
struct Expiry {
    timer: u64,
    function: u64,
    /// Its programming; `None` where that was not seen.
    arm: Option<Arm>,
    /// The offset of its clock ahead of that of the events, ns.
    ahead_ns: i64,
}

impl Expiry {
    /// The release by it; `None` where the timer was not seen to be programmed.
    fn activation(&self) -> Option<Activation> {
        let Self { timer, function, arm, ahead_ns } = *self;
        let anchor = ReleaseAnchor::Timer { timer, function };
        Some(Activation { anchor, ..arm?.activation(ahead_ns) })
    }
}

#[derive(Debug, Clone)]
struct Cpu {
    timeline: CpuTimeline,
    steal: StealBook,
    counters: CounterBook,
    expiring: Option<Expiry>,
    /// The highest of the threads in [`RecordingBegin::runnable`] that were on this CPU.
    first: Option<TaskName>,
    /// The end of the segment before the event that is handled.
    before_ns: u64,
    /// The last stretch whose end was not recorded, as long as the CPU time of the thread that
    /// showed itself behind it may show how much of it was that one's.
    hole: Option<SwitchHole>,
    /// The last threads that another CPU woke for this one, or moved to it, and when, ns.
    sent_here: VecDeque<(Tid, u64)>,
}

/// Attribution while events come in: the state of each CPU and of each followed thread.
#[derive(Debug, Clone)]
pub struct Blame {
    config: BlameConfig,
    cpus: Vec<Option<Box<Cpu>>>,
    threads: FollowedBook,
    timers: TimerTable,
    bases: ClockBases,
    tasks: TaskTable,
    senders: Senders,
    /// The frequencies of each CPU that changed its own.
    clocks: Vec<ClockBook>,
    court: Court,
    now_ns: u64,
    first_ns: Option<u64>,
    /// Time that was not recorded on purpose, ns.
    skipped_ns: u64,
    beginning: Option<RecordingBegin>,
    /// The number of the interrupt of CPUs' own timers, where that has a handler.
    timer_irq: Option<u32>,
    has_flags: bool,
    has_timer_ends: bool,
    unthrottle_ns: Option<u64>,
    last_stop: Option<(u64, TaskName)>,
    waking: Vec<u64>,
    finished: VecDeque<FinishedWake>,
    /// The first instant from which on a thread whose answer waits has come to its own code, ns.
    own_code_ns: Option<u64>,
    counts: BlameCounts,
}

impl Blame {
    /// Attribution before the first event.
    #[must_use]
    pub fn new(config: BlameConfig) -> Self {
        let recalled = config.recall.as_ref().and_then(|recall| recall.beginning.clone());
        let mut blame = Self {
            cpus: Vec::new(),
            threads: FollowedBook::default(),
            timers: TimerTable::default(),
            bases: ClockBases::new(&config.machine.clock_offsets_ns, config.is_clock_foreign),
            tasks: TaskTable::default(),
            senders: Senders::new(config.bounds.cpus),
            clocks: Vec::new(),
            court: Court::new(&config),
            now_ns: 0,
            first_ns: None,
            skipped_ns: 0,
            beginning: None,
            timer_irq: None,
            has_flags: false,
            has_timer_ends: false,
            unthrottle_ns: None,
            last_stop: None,
            waking: Vec::new(),
            finished: VecDeque::new(),
            own_code_ns: None,
            counts: BlameCounts::default(),
            config,
        };
        if let Some(beginning) = recalled {
            blame.begin(&beginning);
        }
        blame
    }

    /// Counts system management interrupts of the capture, which are read when it ends.
    pub const fn set_smi_count(&mut self, count: u64) {
        self.config.machine.smi_count = Some(count);
    }

    /// Sets the lateness beyond which wakes of a thread are late, ns, in place of the
    /// configuration's. It is rounded up to the end of a bucket, by at most 6.3 %. Also for those
    /// that came in already: causes of all wakes are summed up. One that is not followed is left
    /// out.
    pub fn set_threshold(&mut self, tid: Tid, threshold_ns: u64) {
        if let Some(place) = self.threads.place(tid) {
            self.threads[place].set_threshold(threshold_ns);
        }
    }

    /// A thread belongs to this program, from now on: before its first event where that can be.
    pub fn set_program(&mut self, tid: Tid, program: ThreadProgram) {
        self.tasks.set_program(tid, program);
    }

    /// The recording begins, and these threads run, or wait for a CPU. Before the first event.
    pub fn begin(&mut self, beginning: &RecordingBegin) {
        if beginning.at_ns >= LAST_NS {
            self.counts.refused += 1;
            return;
        }
        let at_ns = beginning.at_ns.max(self.now_ns);
        self.now_ns = at_ns;
        self.beginning = Some(beginning.clone());
        self.first_ns.get_or_insert(at_ns);
        for &RunnableThread { task, cpu: number } in &beginning.runnable {
            let Some(cpu) = self.cpu(number, at_ns) else { continue };
            if cpu.first.is_none_or(|first| task.kernel_priority < first.kernel_priority) {
                cpu.first = Some(task);
            }
            self.tasks.see(task);
            if let Some(place) = self.threads.follow(task, at_ns, &self.config) {
                // One of SCHED_DEADLINE looks the same while it waits for its next budget.
                if !task.is_deadline() {
                    self.threads[place].find_ready(at_ns);
                }
                self.set_state(place, ThreadState::Ready(number));
            }
        }
    }

    fn cpu(&mut self, number: u32, at_ns: u64) -> Option<&mut Cpu> {
        let place = usize::try_from(number).ok().filter(|&at| at < self.config.bounds.cpus)?;
        if self.cpus.len() <= place {
            self.cpus.resize(place + 1, None);
        }
        let bounds = self.config.bounds;
        let since_ns = self.first_ns.map_or(at_ns, |first_ns| first_ns.min(at_ns));
        let cpu = self.cpus[place].get_or_insert_with(|| {
            let segments = bounds.segments.max(4);
            Box::new(Cpu {
                timeline: CpuTimeline::new(since_ns, at_ns, segments, bounds.chains),
                steal: StealBook::default(),
                counters: CounterBook::default(),
                expiring: None,
                first: None,
                before_ns: at_ns,
                hole: None,
                sent_here: VecDeque::new(),
            })
        });
        Some(&mut **cpu)
    }

    fn known_cpu(&self, number: u32) -> Option<&Cpu> {
        self.cpus.get(number as usize)?.as_deref()
    }

    fn known_cpu_mut(&mut self, number: u32) -> Option<&mut Cpu> {
        self.cpus.get_mut(number as usize)?.as_deref_mut()
    }

    /// Takes in an event. They come in the order of time, those of one CPU as that CPU recorded
    /// them.
    pub fn push(&mut self, event: &TraceEvent) {
        match self.timer_vector(event) {
            Some(vector) => self.push_known(&TraceEvent { kind: vector, ..event.clone() }),
            None => self.push_known(event),
        }
    }

    /// The begin or the end of the interrupt of a CPU's own timer, where it has a handler as those
    /// of devices have.
    fn timer_vector(&mut self, event: &TraceEvent) -> Option<TraceKind> {
        match event.kind {
            TraceKind::IrqEntry { irq, name } if name.as_bytes() == TIMER_HANDLER => {
                self.timer_irq = Some(irq);
                Some(TraceKind::VectorEntry(Vector::LocalTimer))
            }
            TraceKind::IrqExit { irq, .. } if self.timer_irq == Some(irq) => {
                Some(TraceKind::VectorExit(Vector::LocalTimer))
            }
            _ => None,
        }
    }

    fn push_known(&mut self, event: &TraceEvent) {
        self.counts.events += 1;
        if event.at_ns >= LAST_NS {
            self.counts.refused += 1;
            return;
        }
        let ended_ns = self.config.recall.as_ref().and_then(|recall| recall.ended_ns);
        if ended_ns.is_some_and(|ended_ns| event.at_ns > ended_ns) {
            // Behind the end of the recording, in the window of the last wakes.
            return;
        }
        if event.at_ns < self.now_ns {
            self.counts.disordered += 1;
        }
        let at_ns = event.at_ns.max(self.now_ns);
        self.now_ns = at_ns;
        self.first_ns.get_or_insert(at_ns);
        if self.own_code_ns.is_some_and(|own_ns| own_ns <= at_ns) {
            self.run_long(at_ns);
        }
        let now = Moment { cpu: event.cpu, at_ns };
        let Some(cpu) = self.cpu(event.cpu, at_ns) else {
            self.counts.beyond_cpus += 1;
            return;
        };
        if let TraceKind::Counters(counts) = event.kind {
            // It says nothing of who runs: the switch behind it does.
            cpu.counters.read(at_ns, counts);
            return;
        }
        if cpu.timeline.leaves_out(event, at_ns) {
            return;
        }
        cpu.before_ns = cpu.timeline.last_ns();
        if let TraceKind::Lost { count } = event.kind {
            cpu.timeline.lose(at_ns, count);
            self.lose(now);
            return;
        }
        cpu.timeline.close(at_ns);
        if cpu.timeline.is_half_full() {
            self.take(now);
        }
        self.has_flags |= event.context.flags != 0;
        self.check_current(event, now);
        if self.has_flags && !event.context.is_interrupt() {
            self.in_task_context(event, now);
        }
        self.handle(event, now);
    }

    /// Nothing was recorded since the last event, and that is no loss: what is open then is left
    /// out, what was learnt holds. Events go on at `at_ns`.
    pub fn resume(&mut self, at_ns: u64) {
        let at_ns = at_ns.max(self.now_ns);
        if at_ns >= LAST_NS {
            self.counts.refused += 1;
            return;
        }
        if self.first_ns.is_some() {
            self.skipped_ns += at_ns - self.now_ns;
        }
        self.now_ns = at_ns;
        for cpu in self.cpus.iter_mut().flatten() {
            cpu.timeline.skip(at_ns);
            cpu.steal = StealBook::default();
            cpu.counters.forget();
            (cpu.expiring, cpu.hole) = (None, None);
        }
        for place in 0..self.threads.len() {
            self.conclude(place);
            self.settle(place, at_ns, None);
            self.set_state(place, ThreadState::Unknown);
            self.threads[place].forget();
        }
        self.timers.forget();
        self.unthrottle_ns = None;
        self.clocks.iter_mut().for_each(|clock| clock.forget(at_ns));
    }

    /// Every thread takes what concerns it out of a CPU's ring before that is overwritten.
    fn take(&mut self, now: Moment) {
        for place in 0..self.threads.len() {
            if self.threads[place].takes_from(now) {
                self.settle(place, now.at_ns, None);
            }
        }
        if let Some(cpu) = self.known_cpu_mut(now.cpu) {
            cpu.timeline.set_taken();
        }
    }

    /// Events of a CPU were lost: what its threads did since is not known.
    fn lose(&mut self, now: Moment) {
        let from_ns = self.known_cpu(now.cpu).map_or(now.at_ns, |cpu| cpu.before_ns);
        // Whichever CPU records it, a change of any CPU's frequency may be among them.
        self.clocks.iter_mut().for_each(|clock| clock.forget(from_ns));
        // Between the wakes of a capture that was cut down to them nothing is known anyway.
        let is_whole = self.config.recall.is_none();
        for place in 0..self.threads.len() {
            self.conclude(place);
            let thread = &mut self.threads[place];
            if is_whole {
                thread.lose(from_ns, now);
            }
            if thread.state() == ThreadState::Running(now.cpu) {
                self.settle(place, now.at_ns, None);
                self.set_state(place, ThreadState::Unknown);
            }
        }
        if let Some(cpu) = self.known_cpu_mut(now.cpu) {
            (cpu.expiring, cpu.hole) = (None, None);
            cpu.counters.forget();
        }
    }

    /// The thread that an event came from.
    fn who(&self, event: &TraceEvent) -> TaskName {
        let current = self.known_cpu(event.cpu).and_then(|cpu| cpu.timeline.current());
        current.filter(|task| task.tid == event.tid).unwrap_or_else(|| self.tasks.get(event.tid))
    }

    /// Holds who the event says ran against who is booked.
    fn check_current(&mut self, event: &TraceEvent, now: Moment) {
        let Some(cpu) = self.known_cpu(now.cpu) else { return };
        let current = cpu.timeline.current();
        let from_ns = cpu.before_ns;
        let place = self.threads.place(event.tid);
        if current.is_some_and(|task| task.tid == event.tid) {
            let is_running =
                |place: &usize| self.threads[*place].state() == ThreadState::Running(now.cpu);
            if let Some(place) = place.filter(|place| !is_running(place)) {
                self.seen_running(place, from_ns, now);
            }
            return;
        }
        let task = match event.kind {
            TraceKind::Switch { previous, .. } if previous.tid == event.tid => previous,
            _ => place.map_or_else(|| self.tasks.get(event.tid), |at| self.threads[at].task),
        };
        let mode = place.map_or(TaskMode::Code, |place| self.threads[place].mode());
        let is_first = cpu.timeline.is_untouched();
        if let Some(place) = place.filter(|_| is_first)
            && self.threads[place].was_not_ready()
        {
            self.set_state(place, ThreadState::Unknown);
        }
        if let Some(cpu) = self.known_cpu_mut(now.cpu) {
            let was_idle = matches!(cpu.timeline.activity(), Activity::Idle { .. });
            let is_known = was_idle || matches!(cpu.timeline.activity(), Activity::Task { .. });
            let (to_ns, tid) = (now.at_ns, task.tid);
            let hole = SwitchHole { cpu: now.cpu, from_ns, to_ns, was_idle, tid };
            cpu.hole = is_known.then_some(hole);
            if is_first {
                cpu.timeline.discover_first(task, mode);
            } else {
                cpu.timeline.discover(task, mode);
            }
            cpu.steal.begin(task.tid, now.at_ns, cpu.timeline.interrupts_ns());
        }
        if let Some(old) = current.and_then(|task| self.threads.place(task.tid))
            && self.threads[old].state() == ThreadState::Running(now.cpu)
        {
            self.settle(old, now.at_ns, None);
            self.set_state(old, ThreadState::Unknown);
        }
        if let Some(place) = place {
            self.seen_running(place, from_ns, now);
        }
    }

    /// A thread runs of which the switch was not recorded: some time since `from_ns`.
    fn seen_running(&mut self, place: usize, from_ns: u64, now: Moment) {
        let old = self.threads[place].state();
        if let ThreadState::Running(elsewhere) = old
            && let Some(cpu) = self.known_cpu_mut(elsewhere)
            && elsewhere != now.cpu
        {
            cpu.timeline.forget_current();
        }
        self.threads[place].adopt(now.at_ns);
        self.settle(place, now.at_ns, Some(now.cpu));
        self.complete(place, Run { from_ns, ..Run::new(now, TaskName::default()) });
        self.set_state(place, ThreadState::Running(now.cpu));
    }

    /// Takes in an event from no interrupt: interrupts that began before have ended, and threads
    /// that still wait for the CPU may be passed over.
    fn in_task_context(&mut self, event: &TraceEvent, now: Moment) {
        let Some(cpu) = self.known_cpu_mut(now.cpu) else { return };
        cpu.timeline.end_flagged();
        let is_asked = event.context.is_reschedule_wanted();
        if is_asked || !cpu.timeline.is_awaited() || matches!(event.kind, TraceKind::Switch { .. })
        {
            return;
        }
        let (last_ipi_ns, current) = (cpu.timeline.last_ipi_ns(), cpu.timeline.current());
        let Some(runner) = current else { return };
        // The scheduler has chosen, and nobody asks it to choose again: it leaves those out that
        // wait although they are above.
        let are_interrupts_off = event.context.are_interrupts_off();
        self.pass_over(
            &Chosen { runner, is_since_ready: true, last_ipi_ns, are_interrupts_off },
            now,
        );
    }

    /// Takes in that the timer's interrupt found a thread running, before it does anything: no
    /// other event shows one that only computes.
    fn found_by_timer(&mut self, event: &TraceEvent, now: Moment) {
        let is_asked = event.context.is_reschedule_wanted();
        let Some(cpu) = self.known_cpu(now.cpu) else { return };
        let timeline = &cpu.timeline;
        if is_asked || !timeline.is_awaited() || timeline.is_interrupted() {
            return;
        }
        let (last_ipi_ns, current) = (timeline.last_ipi_ns(), timeline.current());
        let Some(runner) = current else { return };
        // A request from another CPU may still be on its way.
        if let Some(settled_ns) = now.at_ns.checked_sub(REQUEST_NS) {
            let settled = Moment { at_ns: settled_ns, ..now };
            let chosen =
                Chosen { runner, is_since_ready: true, last_ipi_ns, are_interrupts_off: false };
            self.pass_over(&chosen, settled);
        }
    }

    /// Marks threads that wait for a CPU, while one below them runs.
    fn pass_over(&mut self, chosen: &Chosen, now: Moment) {
        for place in 0..self.threads.len() {
            if self.threads[place].is_below(chosen, now) {
                self.settle(place, now.at_ns, None);
                self.threads[place].pass_over(chosen);
            }
        }
    }

    fn set_state(&mut self, place: usize, state: ThreadState) {
        let old = self.threads[place].state();
        for (cpu, step) in [(old, -1), (state, 1)] {
            if let ThreadState::Ready(number) = cpu
                && let Some(cpu) = self.cpu(number, self.now_ns)
            {
                cpu.timeline.count_waiting(step);
            }
        }
        self.threads[place].set_state(state);
    }

    /// Completes a thread's past up to now.
    fn settle(&mut self, place: usize, at_ns: u64, delivery_cpu: Option<u32>) {
        let Self { threads, cpus, .. } = self;
        let timeline = |number: u32| Some(&cpus.get(number as usize)?.as_deref()?.timeline);
        threads[place].settle(at_ns, delivery_cpu, timeline);
        if let Some(to_ns) = self.threads[place].past.surplus_to_ns() {
            self.conclude(place);
            self.condense(place, to_ns);
        }
    }

    /// A released thread runs: its wait is cut out and judged, once it is known when it began.
    fn complete(&mut self, place: usize, run: Run) {
        self.conclude(place);
        let Some(activation) = self.threads[place].answer(run.at_ns) else { return };
        // A capture of late wakes has those that the recording had.
        if let Some(cycle) =
            self.threads[place].take_cycle().filter(|_| self.config.recall.is_none())
        {
            let known = Known { config: &self.config, tasks: &self.tasks };
            self.court.book_passed(cycle, &mut self.threads, known);
        }
        let thread = &mut self.threads[place];
        let is_lost = thread.takes_loss(&activation);
        if run.is_waiting || activation.anchor == ReleaseAnchor::Unseen {
            let threshold_ns = match self.config.late.absolute_ns() {
                u64::MAX => OPEN_WAIT_NS,
                threshold_ns => threshold_ns.max(OPEN_WAIT_NS),
            };
            if run.at_ns.saturating_sub(activation.release_ns) <= threshold_ns {
                return;
            }
        }
        // How late it was is not known: neither its release nor its run need be what they seem.
        if is_lost {
            thread.count_unseen();
            return;
        }
        let cycle = thread.work.next_cycle();
        if activation.release_ns > run.at_ns {
            self.counts.early += 1;
        }
        let tid = thread.task.tid;
        let begin = self.take_begin(place, activation, run);
        self.threads[place].set_waited(begin.clone());
        let hole = self.known_cpu(run.cpu).and_then(|cpu| cpu.hole);
        let answer = Answer {
            activation,
            run,
            begin,
            cycle,
            awaits_cpu_time: hole.is_some_and(|hole| (hole.tid, hole.to_ns) == (tid, run.at_ns)),
            awaits_own_code: !run.is_waiting && self.threads[place].shows_calls(),
        };
        self.hold(place, answer);
    }

    /// Judges an answer, or waits for what more shows when its thread ran.
    fn hold(&mut self, place: usize, answer: Answer) {
        if answer.is_settled() {
            self.judge(place, answer);
            return;
        }
        let thread = &mut self.threads[place];
        thread.set_answer(answer);
        let next_ns = thread.runs_own_code_from_ns();
        self.own_code_ns = self.own_code_ns.into_iter().chain(next_ns).min();
    }

    /// Threads that answered long ago have come to their own code.
    fn run_long(&mut self, at_ns: u64) {
        for place in 0..self.threads.len() {
            if self.threads[place].runs_own_code_from_ns().is_some_and(|own_ns| own_ns <= at_ns) {
                self.run_own_code(self.threads[place].task.tid);
            }
        }
        self.own_code_ns = self.threads.iter().filter_map(Thread::runs_own_code_from_ns).min();
    }

    /// A thread does what only its own code does: it has answered its release.
    fn run_own_code(&mut self, tid: Tid) {
        if let Some(place) = self.threads.place(tid)
            && let Some(answer) = self.threads[place].run_own_code()
        {
            self.judge(place, answer);
        }
    }

    /// Judges the last answer of a thread, where that was not yet.
    fn conclude(&mut self, place: usize) {
        if let Some(answer) = self.threads[place].take_answer() {
            self.judge(place, answer);
        }
    }

    /// Takes in CPU time that the kernel books to the thread that runs: where no switch to it was
    /// recorded, it ran since as long, or since later where that counts from its waking.
    fn reveal(&mut self, now: Moment, tid: Tid, took_ns: u64) {
        let Some(cpu) = self.known_cpu_mut(now.cpu) else { return };
        let current = cpu.timeline.current().filter(|task| task.tid == tid);
        let Some((task, hole)) = current.zip(cpu.hole.take_if(|hole| hole.tid == tid)) else {
            return;
        };
        let is_sent = |(sent, at_ns): &(Tid, u64)| *sent == tid && *at_ns >= hole.from_ns;
        // Of more than are remembered any may be among them.
        let is_full = cpu.sent_here.len() == SENT_MAX
            && cpu.sent_here.front().is_some_and(|(_, at_ns)| *at_ns >= hole.from_ns);
        let is_from_elsewhere = is_full || cpu.sent_here.iter().any(is_sent);
        let may_come_later = is_from_elsewhere || !hole.was_idle;
        let own = self.threads.place(tid);
        let answered_ns = own.and_then(|place| self.threads[place].answered_ns());
        let began_ns = now.at_ns.saturating_sub(took_ns).max(hole.from_ns);
        let began_ns = began_ns.max(answered_ns.unwrap_or(0));
        // Its CPU time counts from there, and the CPU left its idle state later.
        for place in 0..self.threads.len() {
            if self.threads[place].takes_from(now) {
                self.settle(place, now.at_ns, None);
            }
            if may_come_later {
                self.threads[place].confirm(hole, began_ns);
            } else if began_ns < hole.to_ns {
                self.threads[place].reveal(hole, began_ns, task);
            }
        }
        if let Some((place, answer)) =
            own.and_then(|at| Some((at, self.threads[at].take_answer()?)))
        {
            let answer = match may_come_later {
                true => answer.not_before(began_ns),
                false => answer.chosen_at(began_ns),
            };
            self.hold(place, answer);
        }
    }

    /// Cuts a wait out, up to the run that answered it, and judges it.
    fn judge(&mut self, place: usize, answer: Answer) {
        let Answer { activation, run, begin, cycle, .. } = answer;
        if begin.is_some() {
            self.threads[place].count_condensed();
        }
        let mut wake = self.cut_out(place, activation, begin, run);
        let book = self.known_cpu(run.cpu).map(|cpu| &cpu.counters);
        let wait = book.and_then(|book| book.since(wake.activation.release_ns, run.at_ns));
        wake.facts.counts = WakeCounts { wait, cycle };
        if wake.lacks(Unexplained::Lost) {
            self.threads[place].count_unseen();
            return;
        }
        let mut finished = FinishedWake::new(&wake, self.now_ns);
        let known = Known { config: &self.config, tasks: &self.tasks };
        finished.is_late = self.court.accept(wake, &mut self.threads, known);
        finished.margin_ns = self.threads[place].margin_ns();
        if self.finished.len() >= self.config.bounds.threads.max(FINISHED) {
            self.finished.pop_front();
        }
        self.finished.push_back(finished);
    }

    /// The judged part of a thread's wait for a release, with what lies before it where that was
    /// expected later; `None` where nothing was dropped of it.
    fn take_begin(&mut self, place: usize, activation: Activation, run: Run) -> Option<WakeBegin> {
        let thread = &mut self.threads[place];
        let begin = thread.take_begin(activation.release_ns)?;
        let to_ns = begin.release_ns();
        if to_ns <= activation.release_ns {
            return Some(begin);
        }
        let mut wake = Wake::new(place, thread.task, activation, run);
        wake.window.pieces.push(forgotten(activation.release_ns, to_ns));
        let known = Known { config: &self.config, tasks: &self.tasks };
        Some(begin.behind(Court::begin(wake, thread, known, to_ns)))
    }

    /// The wait for a release, up to a run, without what was dropped of it before.
    fn cut_out(
        &self,
        place: usize,
        activation: Activation,
        begin: Option<WakeBegin>,
        run: Run,
    ) -> Wake {
        let thread = &self.threads[place];
        let wake = Wake::new(place, thread.task, activation, run);
        let from_ns = begin.as_ref().map_or(wake.activation.release_ns, WakeBegin::to_ns);
        let mut window = thread.past.window(from_ns, run.at_ns);
        window.lead = match &begin {
            Some(begin) => begin.last(),
            None => self.lead(&window),
        };
        let unthrottled_ns = self.unthrottle_ns.and_then(|at_ns| run.at_ns.checked_sub(at_ns));
        let is_unthrottled = unthrottled_ns.is_some_and(|since_ns| since_ns <= UNTHROTTLE_NS);
        let facts = WakeFacts {
            stalls: self.stalls(&window),
            clocks: self.slow_clocks(&window),
            stop_sender: thread.stop_sender(),
            ..WakeFacts::default()
        };
        let chains = self.chains(&window);
        let mut wake = Wake { begin, window, chains, facts, is_unthrottled, ..wake };
        wake.activation.is_whole &=
            !wake.lacks(Unexplained::Hole) && !wake.lacks(Unexplained::Unrecorded);
        wake
    }

    /// The activity of a CPU right before a release that it was to bring, as a piece without
    /// length.
    fn lead(&self, window: &Window) -> Option<Piece> {
        let first = window.pieces.first().filter(|piece| piece.phase == WakePhase::Delivery)?;
        let activity = self.known_cpu(first.cpu)?.timeline.before(first.from_ns)?;
        Some(Piece { activity, cpu: first.cpu, ..unseen(first.from_ns, first.from_ns) })
    }

    /// Judges the older half of a past that is full, up to `to_ns`, as far as it belongs to a wait,
    /// and drops it: what shows its causes is still there.
    fn condense(&mut self, place: usize, to_ns: u64) {
        let thread = &mut self.threads[place];
        let at_ns = thread.past.settled_ns();
        let due = thread.due(at_ns);
        let activation = due.or_else(|| thread.expected());
        let Some(activation) = activation.filter(|next| next.release_ns < to_ns) else {
            thread.past.drop_until(to_ns);
            return;
        };
        let run = Run::new(Moment { cpu: thread.last_cpu(), at_ns }, thread.task);
        let begin = self.take_begin(place, activation, run);
        let wake = self.cut_out(place, activation, begin, run);
        let known = Known { config: &self.config, tasks: &self.tasks };
        let begin = Court::begin(wake, &self.threads[place], known, to_ns);
        self.threads[place].condense(begin.with_expected(due.is_none()));
    }

    /// Takes the wakes of a capture that are not judged anew.
    fn take_judged(&mut self) {
        let Some(recall) = &self.config.recall else { return };
        let late: Vec<JudgedWake> = recall.judged().cloned().collect();
        let passed = recall.passed.clone();
        let late = late.iter().map(|judged| (judged, false));
        for (judged, has_passed) in late.chain(passed.iter().map(|judged| (judged, true))) {
            let Some(place) = self.threads.follow(judged.task(), self.now_ns, &self.config) else {
                continue;
            };
            let known = Known { config: &self.config, tasks: &self.tasks };
            let wake = judged.finished(place);
            match has_passed {
                false => self.court.accept_judged(wake, &mut self.threads, known),
                true => self.court.recall_passed(wake, &mut self.threads, known),
            }
        }
    }

    /// Threads and releases of the late wakes that are kept whole now, or may be.
    pub fn kept(&self) -> impl Iterator<Item = (Tid, u64)> + '_ {
        self.court.kept()
    }

    /// A wake that the last event, or the end, finished: once, in the order in which that was
    /// known, of the last 64.
    pub fn take_finished(&mut self) -> Option<FinishedWake> {
        self.finished.pop_front()
    }

    fn chains(&self, window: &Window) -> ByPiece<WindowChain> {
        let found = window.pieces.iter().enumerate().filter_map(|(index, piece)| {
            let record = self.known_cpu(piece.cpu)?.timeline.chain(piece.chain?)?;
            let work = self.tasks.work(record.tid);
            let chain = WindowChain::new(record, piece.cpu, work, &self.config.symbols);
            Some((index, chain))
        });
        found.collect()
    }

    /// Evidence on each stretch without an event: silence of other CPUs and missing CPU time.
    fn stalls(&self, window: &Window) -> ByPiece<StallEvidence> {
        let is_stretch = |piece: &Piece| {
            let is_silent = match piece.phase {
                WakePhase::Delivery => {
                    matches!(piece.activity, Activity::Task { .. } | Activity::Idle { .. })
                }
                WakePhase::Ready => matches!(piece.activity, Activity::Idle { .. }),
                WakePhase::Running => matches!(piece.activity, Activity::Task { .. }),
                _ => false,
            };
            let is_of_timer =
                matches!(piece.activity, Activity::TimerInterrupt | Activity::TimerCallback { .. });
            piece.length_ns() >= STALL_NS && (is_silent || is_of_timer)
        };
        let stretches = window.pieces.iter().enumerate().filter(|(_, piece)| is_stretch(piece));
        let stretches: Vec<(usize, &Piece)> = stretches.collect();
        let stolen = self.stolen(&stretches);
        let stall = |(index, piece)| (index, self.stall(piece, stolen.contains(&index)));
        stretches.into_iter().map(stall).collect()
    }

    /// The numbers of stretches of which CPU time is missing: of several in the time that was
    /// booked at once the longest first.
    fn stolen(&self, stretches: &[(usize, &Piece)]) -> Vec<usize> {
        let mut longest_first: Vec<_> = stretches.iter().collect();
        longest_first.sort_by_key(|(_, piece)| Reverse(piece.length_ns()));
        let mut spent: BTreeMap<u32, SpentTime> = BTreeMap::new();
        let mut is_stolen = |piece: &Piece| {
            let (from_ns, to_ns) = (piece.from_ns, piece.to_ns);
            let Some(cpu) = self.known_cpu(piece.cpu) else { return false };
            // Of what a thread computes itself only missing time shows that it did not.
            if piece.phase == WakePhase::Running {
                return cpu.steal.is_mostly_stolen(from_ns, to_ns);
            }
            cpu.steal.takes_stolen(from_ns, to_ns, spent.entry(piece.cpu).or_default())
        };
        let stolen = longest_first.into_iter().filter(|(_, piece)| is_stolen(piece));
        stolen.map(|(index, _)| *index).collect()
    }

    /// The frequencies of pieces whose CPU was slower than usual.
    fn slow_clocks(&self, window: &Window) -> ByPiece<SlowClock> {
        if self.clocks.is_empty() {
            return ByPiece::default();
        }
        let pieces = window.pieces.iter().enumerate();
        let slow = pieces.filter_map(|(index, piece)| {
            let is_path = match piece.activity {
                Activity::TimerInterrupt | Activity::TimerCallback { .. } => true,
                Activity::Idle { .. } => piece.phase == WakePhase::Ready,
                _ => false,
            };
            if !is_path {
                return None;
            }
            let clock = self.clocks.get(piece.cpu as usize)?;
            Some((index, clock.slow_in(piece.from_ns, piece.to_ns)?))
        });
        slow.collect()
    }

    fn stall(&self, piece: &Piece, is_stolen: bool) -> StallEvidence {
        let (from_ns, to_ns) = (piece.from_ns, piece.to_ns);
        let witness = |(number, cpu): (usize, &Option<Box<Cpu>>)| {
            let cpu = cpu.as_deref().filter(|_| number != piece.cpu as usize)?;
            Some(cpu.timeline.silence(from_ns, to_ns))
        };
        if piece.phase == WakePhase::Running {
            return StallEvidence::new(std::iter::empty(), is_stolen);
        }
        let witnesses = self.cpus.iter().enumerate().filter_map(witness).take(WITNESSES);
        StallEvidence::new(witnesses, is_stolen)
    }

    fn handle(&mut self, event: &TraceEvent, now: Moment) {
        match &event.kind {
            TraceKind::TimerStart { .. } | TraceKind::TimerCancel { .. } => {
                self.program(event, now);
            }
            TraceKind::TimerExpireEntry { timer, function, now_ns } => {
                let arm = self.timers.take(*timer);
                let since_ns = self
                    .known_cpu(now.cpu)
                    .map_or(now.at_ns, |cpu| cpu.timeline.clock_read_since_ns(event.context));
                let ahead_ns =
                    self.bases.offset_at_expiry(*now_ns, since_ns, now.at_ns, arm.as_ref());
                self.expire(
                    event,
                    now,
                    Expiry { timer: *timer, function: *function, arm, ahead_ns },
                );
            }
            TraceKind::TimerStartExpired { timer } => self.expire_at_start(event, now, *timer),
            TraceKind::Waking { task, target_cpu } => {
                let task = self.with_priority(*task);
                self.tasks.see(task);
                self.waking(event, now, task, *target_cpu);
            }
            TraceKind::Switch { previous, previous_state, next } => {
                let [previous, next] = [*previous, *next].map(|task| self.with_priority(task));
                self.tasks.see(previous);
                self.tasks.see(next);
                self.correct(now, previous);
                if let Some(cpu) = self.known_cpu_mut(now.cpu) {
                    cpu.timeline.break_off(event.context);
                }
                self.leave(now, previous, *previous_state);
                self.enter(now, previous, next);
            }
            TraceKind::Migrate { task, to_cpu, .. } => {
                self.note_sent(now, task.tid, *to_cpu);
                if let Some(place) = self.threads.place(task.tid)
                    && let ThreadState::Ready(_) = self.threads[place].state()
                {
                    self.settle(place, now.at_ns, None);
                    // That CPU's scheduler has not chosen yet.
                    self.threads[place].queue_on(now, *to_cpu);
                    self.set_state(place, ThreadState::Ready(*to_cpu));
                }
            }
            TraceKind::IpiSend { targets, callback } => {
                let sender = self.who(event);
                self.senders.send(now.at_ns, sender, targets, *callback);
            }
            TraceKind::CallQueued { target_cpu, request, .. } => {
                let sender = self.who(event);
                self.senders.queue(now.at_ns, sender, *target_cpu, *request);
            }
            TraceKind::Signal { number, .. } => {
                if TraceKind::stops(*number) {
                    self.last_stop = Some((now.at_ns, self.who(event)));
                }
            }
            TraceKind::RunTime { tid, took_ns } => {
                if let Some(cpu) = self.known_cpu_mut(now.cpu) {
                    cpu.steal.book(*tid, now.at_ns, *took_ns, cpu.timeline.interrupts_ns());
                }
                self.reveal(now, *tid, *took_ns);
            }
            TraceKind::PriorityLent { task, to_kernel_priority } => {
                self.name(TaskName { kernel_priority: *to_kernel_priority, ..*task });
            }
            TraceKind::Renamed { task } => self.name(self.with_priority(*task)),
            TraceKind::Frequency { cpu, khz } => {
                let cpu = if *cpu == TraceKind::UNKNOWN_CPU { now.cpu } else { *cpu };
                self.change_frequency(Moment { cpu, ..now }, *khz);
            }
            TraceKind::WorkStart { function } => self.tasks.set_work(event.tid, *function),
            TraceKind::PageFaultEntry
            | TraceKind::PageFaultExit
            | TraceKind::SyscallEntry { .. }
            | TraceKind::SyscallExit { .. } => self.set_mode(event),
            _ => self.frame(event, now),
        }
    }

    fn change_frequency(&mut self, now: Moment, khz: u32) {
        let place = now.cpu as usize;
        if place >= self.config.bounds.cpus {
            return;
        }
        if self.clocks.len() <= place {
            self.clocks.resize_with(place + 1, ClockBook::default);
        }
        self.clocks[place].change(now.at_ns, khz);
    }

    /// A thread that an event names without a priority has the one that it had.
    fn with_priority(&self, task: TaskName) -> TaskName {
        if task.kernel_priority != TaskName::UNKNOWN_PRIORITY {
            return task;
        }
        let followed = self.threads.place(task.tid).map(|place| self.threads[place].task);
        let known = followed.unwrap_or_else(|| self.tasks.get(task.tid));
        TaskName { kernel_priority: known.kernel_priority, ..task }
    }

    fn name(&mut self, task: TaskName) {
        self.tasks.see(task);
        if let Some(place) = self.threads.place(task.tid) {
            self.threads[place].task = task;
        }
        for cpu in self.cpus.iter_mut().flatten() {
            cpu.timeline.rename_current(task);
        }
    }

    /// A followed thread enters or leaves a fault or a system call.
    fn set_mode(&mut self, event: &TraceEvent) {
        // In the window of a late wake the call that its thread slept in comes first.
        let who = self.who(event);
        let place = self.threads.place(event.tid);
        let place = place.or_else(|| self.threads.follow(who, event.at_ns, &self.config));
        let Some(place) = place else { return };
        if matches!(event.kind, TraceKind::SyscallEntry { .. } | TraceKind::PageFaultEntry) {
            self.run_own_code(event.tid);
        }
        let thread = &mut self.threads[place];
        thread.change_mode(event);
        let mode = thread.mode();
        if let Some(cpu) = self.known_cpu_mut(event.cpu) {
            cpu.timeline.set_mode(mode);
        }
    }

    /// Takes in an event that only begins or ends an interrupt.
    fn frame(&mut self, event: &TraceEvent, now: Moment) {
        let sender = match event.kind {
            TraceKind::VectorEntry(Vector::OtherCpu) => None,
            TraceKind::VectorEntry(_) => self.senders.of_interrupt(now.cpu, now.at_ns),
            TraceKind::CallEntry { request, .. } => {
                self.senders.of_call(now.cpu, request, now.at_ns)
            }
            _ => None,
        };
        if event.kind == TraceKind::VectorEntry(Vector::LocalTimer) {
            self.found_by_timer(event, now);
        }
        let is_timer_end = matches!(
            event.kind,
            TraceKind::VectorExit(Vector::LocalTimer) | TraceKind::TimerExpireExit { .. }
        );
        self.has_timer_ends |= is_timer_end;
        let Some(cpu) = self.known_cpu_mut(now.cpu) else { return };
        if is_timer_end {
            cpu.expiring = None;
        }
        cpu.timeline.frame(event, sender);
    }

    fn wakes(&self, function: u64) -> bool {
        self.config
            .symbols
            .wakes(function)
            .unwrap_or_else(|| self.waking.is_empty() || self.waking.contains(&function))
    }

    /// A timer is programmed, or no longer.
    fn program(&mut self, event: &TraceEvent, now: Moment) {
        // What is known of a followed thread is not overwritten by what may have been forgotten.
        let who = self.who(event);
        let place = self
            .threads
            .place(event.tid)
            .or_else(|| self.threads.follow(who, now.at_ns, &self.config));
        let (timer, function, expires_ns, soft_expires_ns) = match event.kind {
            TraceKind::TimerStart { timer, function, expires_ns, soft_expires_ns } => {
                (timer, function, expires_ns, soft_expires_ns)
            }
            // The kernel also says so of a timer that is about to expire: it stays in the table.
            TraceKind::TimerCancel { timer } => {
                if let Some(place) = place {
                    self.threads[place].cancel(timer, event.context.is_interrupt());
                }
                return;
            }
            _ => return,
        };
        let soft_expires_ns = soft_expires_ns.min(expires_ns);
        let is_task = !event.context.is_interrupt()
            && self.known_cpu(now.cpu).is_some_and(|cpu| !cpu.timeline.is_interrupted());
        let own = place.filter(|&place| {
            let armer = self.threads[place].task;
            let is_servers = self.config.symbols.is_fair_server_timer(function, armer);
            is_task && self.wakes(function) && !is_servers
        });
        if own.is_some() {
            self.run_own_code(event.tid);
        }
        let again_ns = own.and_then(|place| self.threads[place].armed_ns(function, expires_ns));
        let arm = Arm {
            timer,
            function,
            expires_ns,
            soft_expires_ns,
            armer: who,
            armed_ns: again_ns.unwrap_or(now.at_ns),
            cpu: now.cpu,
        };
        self.timers.insert(arm);
        if let Some(place) = own {
            let ahead_ns = self.bases.guess(expires_ns, now.at_ns);
            self.threads[place].program(arm, ahead_ns, now.at_ns);
        }
    }

    /// A timer's function is called.
    fn expire(&mut self, event: &TraceEvent, now: Moment, expiry: Expiry) {
        let Expiry { timer, function, arm, .. } = expiry;
        let armer = arm.map_or_else(TaskName::default, |arm| arm.armer);
        let function = if function == 0 { arm.map_or(0, |arm| arm.function) } else { function };
        let expiry = Expiry { function, ..expiry };
        if let Some(cpu) = self.known_cpu_mut(now.cpu) {
            let is_soft = event.context.is_soft_interrupt();
            let callback = Activity::TimerCallback { timer, function, armer, is_soft };
            cpu.timeline.begin_callback(callback, event.context);
            cpu.expiring = Some(expiry);
        }
        if self.config.symbols.is_throttle_timer(function) {
            self.unthrottle_ns = Some(now.at_ns);
        }
        if self.config.symbols.is_deadline_timer(function)
            && let Some(arm) = arm
            && let Some(place) = self.threads.place(arm.armer.tid)
            && self.threads[place].awaits_budget(&arm)
        {
            // SCHED_DEADLINE wakes without `sched_waking`, and sleeps in a state that looks ready.
            if matches!(self.threads[place].state(), ThreadState::Ready(_)) {
                self.set_state(place, ThreadState::Sleeping);
            }
            let target = self.threads[place].last_cpu();
            self.release(place, now, expiry);
            self.make_ready(place, target, now);
        }
        if self.config.symbols.may_end_sleep(function)
            && let Some(arm) = arm
            && let Some(place) = self.threads.place(arm.armer.tid)
            && self.threads[place].is_released_awake(&arm)
        {
            self.release(place, now, expiry);
            if let ThreadState::Running(cpu) = self.threads[place].state() {
                self.complete(place, Run::new(Moment { cpu, ..now }, self.threads[place].task));
                // A waking by it releases nobody else.
                if let Some(cpu) = self.known_cpu_mut(now.cpu) {
                    cpu.expiring = None;
                }
            }
        }
    }

    /// A timer had expired before it was started: its thread is released, and runs already.
    fn expire_at_start(&mut self, event: &TraceEvent, now: Moment, timer: u64) {
        let arm = self.timers.take(timer);
        // A file descriptor or a signal may be another thread's, and who waits for it is woken.
        let is_sleep = arm.is_some_and(|arm| self.config.symbols.may_end_sleep(arm.function));
        let Some(place) = self.threads.place(event.tid).filter(|_| is_sleep) else { return };
        if self.threads[place].expire_at_start(timer) {
            self.settle(place, now.at_ns, None);
            self.complete(place, Run::new(now, self.threads[place].task));
        }
    }

    /// The expiry of a timer releases a thread.
    fn release(&mut self, place: usize, now: Moment, expiry: Expiry) {
        let thread = &mut self.threads[place];
        match expiry.activation() {
            None => {
                self.counts.unknown_releases += 1;
                thread.count_unmatched();
                thread.find_ready(now.at_ns);
            }
            Some(activation) => thread.release(activation),
        }
        self.settle(place, now.at_ns, Some(now.cpu));
    }

    fn make_ready(&mut self, place: usize, target: u32, now: Moment) {
        self.threads[place].wake(now, target);
        self.set_state(place, ThreadState::Ready(target));
    }

    /// A thread is woken.
    fn waking(&mut self, event: &TraceEvent, now: Moment, task: TaskName, target: u32) {
        self.note_sent(now, task.tid, target);
        let Some(cpu) = self.known_cpu(now.cpu) else { return };
        let is_interrupted = cpu.timeline.is_interrupted();
        let visit_ns = cpu.timeline.visit_ns();
        let inner = cpu.timeline.frames().next_back().copied();
        let has_entry = cpu.timeline.frames().count() > 1;
        let is_timer = matches!(inner, Some(Activity::TimerCallback { .. }));
        let expiring = cpu.expiring.filter(|_| is_timer);
        if is_interrupted && task.name.as_bytes().starts_with(b"irq/") {
            self.tasks.set_anchor(task, visit_ns);
        }
        let Some(place) = self.threads.follow(task, now.at_ns, &self.config) else { return };
        if let Some(expiring) = expiring {
            self.learn_waking(expiring.function);
        }
        if let ThreadState::Running(_) = self.threads[place].state() {
            self.woken_while_running(place, now, expiring);
            return;
        }
        if let ThreadState::Ready(_) = self.threads[place].state() {
            if !self.threads[place].was_not_ready() {
                self.woken_while_preempted(place, now, expiring);
                return;
            }
            // Who is woken slept: so it did not wait since the recording began.
            self.settle(place, now.at_ns, None);
            self.set_state(place, ThreadState::Sleeping);
        }
        match expiring {
            Some(expiring) => self.release(place, now, expiring),
            None => {
                let cause = if is_interrupted && !is_timer {
                    // The timer wheel and the load balancer bring nothing from outside.
                    let is_inside = matches!(inner, Some(Activity::Softirq { number: 1 | 7, .. }));
                    (!is_inside).then_some((ReleaseAnchor::Interrupt, visit_ns))
                } else {
                    let interrupt_ns = self
                        .tasks
                        .anchor_ns(event.tid)
                        .filter(|&anchor_ns| now.at_ns.saturating_sub(anchor_ns) <= IRQ_THREAD_NS);
                    match interrupt_ns {
                        Some(anchor_ns) => Some((ReleaseAnchor::Interrupt, anchor_ns)),
                        None => (event.tid != 0 && !is_interrupted)
                            .then_some((ReleaseAnchor::Thread { waker: event.tid }, now.at_ns)),
                    }
                };
                self.release_by(place, now, cause);
            }
        }
        self.make_ready(place, target, now);
        // Where neither interrupts of the timer nor ends of its functions are recorded, a function
        // is taken to end with the waking.
        if is_timer
            && !has_entry
            && !self.has_timer_ends
            && let Some(cpu) = self.known_cpu_mut(now.cpu)
        {
            cpu.timeline.end_callback();
        }
    }

    /// A thread without a timer of its own is released by an interrupt or another thread: by what,
    /// and when that was, ns.
    fn release_by(&mut self, place: usize, now: Moment, cause: Option<(ReleaseAnchor, u64)>) {
        let thread = &mut self.threads[place];
        let cause = cause.filter(|&(anchor, _)| self.config.event_driven && thread.awaits(anchor));
        if let Some((anchor, anchor_ns)) = cause {
            thread.release_at(anchor, anchor_ns, now.at_ns);
        } else {
            thread.count_unmatched();
        }
        // Of a waking by a thread nothing passed before it.
        let interrupted = cause.filter(|(anchor, _)| *anchor == ReleaseAnchor::Interrupt);
        self.settle(place, now.at_ns, interrupted.map(|_| now.cpu));
    }

    /// A CPU wakes a thread for the CPU `target`, or moves it there.
    fn note_sent(&mut self, now: Moment, tid: Tid, target: u32) {
        if target != now.cpu
            && let Some(cpu) = self.known_cpu_mut(target)
        {
            if cpu.sent_here.len() == SENT_MAX {
                cpu.sent_here.pop_front();
            }
            cpu.sent_here.push_back((tid, now.at_ns));
        }
    }

    fn learn_waking(&mut self, function: u64) {
        if self.waking.len() < WAKING && !self.waking.contains(&function) {
            self.waking.push(function);
        }
    }

    /// Its timer expires while it still runs: it overran, or slept so shortly that it never left.
    fn woken_while_running(&mut self, place: usize, now: Moment, expiring: Option<Expiry>) {
        if let Some(expiring) = self.own_expiry(place, expiring) {
            self.release(place, now, expiring);
            let cpu = self.threads[place].state().cpu().unwrap_or(now.cpu);
            self.complete(place, Run::new(Moment { cpu, ..now }, self.threads[place].task));
        }
    }

    /// What it was to wait for comes after it lost the CPU on the way into its sleep: it waits for
    /// the CPU already, and goes on without sleeping once it has it. Where that is no timer it may
    /// have been on its way to wait for a lock or a page, in the middle of its work, which its
    /// state does not show: it is counted, and is in no figure.
    fn woken_while_preempted(&mut self, place: usize, now: Moment, expiring: Option<Expiry>) {
        match expiring {
            _ if self.threads[place].has_release() => {}
            None => self.threads[place].count_unmatched_preempted(),
            Some(_) => {
                if let Some(expiring) = self.own_expiry(place, expiring) {
                    self.release(place, now, expiring);
                }
            }
        }
    }

    /// The expiry, where it is that of a timer of the thread's own.
    fn own_expiry(&self, place: usize, expiring: Option<Expiry>) -> Option<Expiry> {
        let thread = &self.threads[place];
        expiring.filter(|expiring| {
            expiring.arm.is_some_and(|arm| arm.armer.tid == thread.task.tid)
                || thread.awaits_timer(expiring.timer)
        })
    }

    /// The thread that ran has another name or priority than when it began, or had none yet:
    /// threads that wait for its CPU, or for a timer there, wait behind that one.
    fn correct(&mut self, now: Moment, right: TaskName) {
        let booked = self.known_cpu(now.cpu).and_then(|cpu| cpu.timeline.current());
        let Some(wrong) = booked.filter(|task| task.tid == right.tid && *task != right) else {
            return;
        };
        for place in 0..self.threads.len() {
            if self.threads[place].takes_from(now) {
                self.settle(place, now.at_ns, None);
                self.threads[place].correct(wrong, right);
            }
        }
    }

    /// A thread stops to run.
    fn leave(&mut self, now: Moment, previous: TaskName, previous_state: u64) {
        let Some(place) = self.threads.follow(previous, now.at_ns, &self.config) else { return };
        self.settle(place, now.at_ns, None);
        // The bits of task_state_to_char (sched.h): X 0x10, Z 0x20, D 2.
        let state = match previous_state {
            bits if TraceKind::stays_runnable(bits) => ThreadState::Ready(now.cpu),
            bits if TraceKind::is_stopped(bits) => ThreadState::Stopped,
            bits if bits & 0x30 != 0 => ThreadState::Unknown,
            bits if bits & 0x2 != 0 => ThreadState::Blocked,
            _ => ThreadState::Sleeping,
        };
        let last_ipi_ns = self.known_cpu(now.cpu).map_or(0, |cpu| cpu.timeline.last_ipi_ns());
        if !self.threads[place].reopens(now.at_ns, state, last_ipi_ns) {
            self.conclude(place);
        }
        if matches!(state, ThreadState::Sleeping | ThreadState::Blocked) {
            self.end_cycle(place, now);
        }
        let stop = self.last_stop.filter(|(sent_ns, _)| now.at_ns - sent_ns <= STOP_NS);
        let counts = self.known_cpu(now.cpu).and_then(|cpu| cpu.counters.at(now.at_ns));
        self.threads[place].work.end(counts);
        self.threads[place].leave(now.at_ns, state, stop.map(|(_, sender)| sender));
        self.set_state(place, state);
        if state == ThreadState::Unknown {
            self.threads.end(previous.tid);
        }
    }

    /// A thread begins to wait: where releases passed before that, what made its cycle so long is
    /// judged as long as its past reaches back.
    fn end_cycle(&mut self, place: usize, now: Moment) {
        let thread = &self.threads[place];
        let Some(OpenCycle { activation, next_ns, begin }) = thread.passing_cycle(now.at_ns) else {
            return;
        };
        let run = Run::new(now, thread.task);
        let wake = self.cut_out(place, activation, begin, run);
        let known = Known { config: &self.config, tasks: &self.tasks };
        if let Some(cycle) = Court::passed(wake, &self.threads[place], known, next_ns) {
            self.threads[place].set_cycle(cycle);
        }
    }

    /// A thread begins to run.
    fn enter(&mut self, now: Moment, previous: TaskName, next: TaskName) {
        let place = self.threads.follow(next, now.at_ns, &self.config);
        let mut mode = TaskMode::Code;
        if let Some(place) = place {
            if self.threads[place].state() == ThreadState::Ready(TraceKind::UNKNOWN_CPU) {
                // Its waking said no CPU: it waited for the one on which it runs now.
                self.set_state(place, ThreadState::Ready(now.cpu));
            }
            let is_woken_unseen = self.threads[place].adopt(now.at_ns);
            self.settle(place, now.at_ns, Some(now.cpu));
            if is_woken_unseen {
                self.threads[place].wake_in_hole();
            }
            self.complete(place, Run::new(now, previous));
            if let ThreadState::Running(elsewhere) = self.threads[place].state()
                && elsewhere != now.cpu
                && let Some(cpu) = self.known_cpu_mut(elsewhere)
            {
                cpu.timeline.forget_current();
            }
            self.set_state(place, ThreadState::Running(now.cpu));
            let counts = self.known_cpu(now.cpu).and_then(|cpu| cpu.counters.at(now.at_ns));
            self.threads[place].work.begin(counts);
            mode = self.threads[place].mode();
        }
        let Some(cpu) = self.known_cpu_mut(now.cpu) else { return };
        cpu.steal.begin(next.tid, now.at_ns, cpu.timeline.interrupts_ns());
        (cpu.expiring, cpu.hole) = (None, None);
        if cpu.timeline.is_awaited() {
            let last_ipi_ns = cpu.timeline.last_ipi_ns();
            let chosen = Chosen {
                runner: next,
                is_since_ready: false,
                last_ipi_ns,
                are_interrupts_off: false,
            };
            self.pass_over(&chosen, now);
        }
        if let Some(cpu) = self.known_cpu_mut(now.cpu) {
            cpu.timeline.switch(next, mode);
        }
    }

    /// Returns true where a thread may have answered a release before this instant, and it is not
    /// yet known whether it had: at most for a millisecond of events.
    #[must_use]
    pub fn awaits_answer_before(&self, at_ns: u64) -> bool {
        self.threads.iter().any(|thread| thread.ran_ns().is_some_and(|ran_ns| ran_ns < at_ns))
    }

    /// The figures of all followed threads up to now, for a live view.
    #[must_use]
    pub fn snapshot(&self) -> TopSnapshot {
        TopSnapshot {
            at_ns: self.now_ns,
            cpus: self.cpus.iter().flatten().count(),
            counts: self.counts(),
            threads: self.threads.iter().map(|thread| self.thread_snapshot(thread)).collect(),
        }
    }

    fn thread_snapshot(&self, thread: &Thread) -> ThreadSnapshot {
        let runs = |cpu| self.known_cpu(cpu)?.timeline.current();
        ThreadSnapshot { waiting: thread.waiting(self.now_ns, runs), ..thread.snapshot() }
    }

    /// Counts of events and of what went wrong, up to now.
    #[must_use]
    pub fn counts(&self) -> BlameCounts {
        let mut counts = self.counts;
        for cpu in self.cpus.iter().flatten() {
            let seen = cpu.timeline.counts();
            counts.timeline.holes += seen.holes;
            counts.timeline.unclosed += seen.unclosed;
            counts.timeline.unopened += seen.unopened;
            counts.timeline.too_deep += seen.too_deep;
            counts.timeline.losses += seen.losses;
            counts.timeline.lost_events =
                counts.timeline.lost_events.saturating_add(seen.lost_events);
        }
        if self.config.recall.is_some() {
            // Windows of late wakes begin and end within interrupts.
            (counts.timeline.unclosed, counts.timeline.unopened) = (0, 0);
        }
        counts.displaced_timers = self.timers.displaced();
        counts.unfollowed = self.threads.unfollowed();
        counts.clock_steps = self.bases.steps();
        counts.condensed = self.threads.iter().map(|thread| thread.condensed()).sum();
        counts.uncounted = self.threads.iter().map(|thread| thread.ledger.uncounted()).sum();
        counts.uncounted += self.senders.uncounted();
        counts
    }

    /// Ends: who waits for a CPU since long is judged up to now, what else is open is left out.
    #[must_use]
    pub fn finish(mut self) -> BlameOutcome {
        self.end_waits();
        self.take_judged();
        let known = Known { config: &self.config, tasks: &self.tasks };
        self.court.settle_all(&mut self.threads, known);
        let counts = self.counts();
        let duration_ns = self.now_ns - self.first_ns.unwrap_or(self.now_ns);
        let duration_ns = duration_ns.saturating_sub(self.skipped_ns);
        outcome(&self.config, &self.threads, &self.court, &self.senders, counts, duration_ns)
            .between(self.beginning, self.now_ns)
    }
}

/// The end of the recording.
impl Blame {
    /// Ends the waits of those who wait for a CPU since long, or are stopped, and whose wait no
    /// event ends: as finished wakes, before [`Self::finish`], which does it too.
    pub fn end_waits(&mut self) {
        let ended_ns = self.config.recall.as_ref().and_then(|recall| recall.ended_ns);
        self.now_ns = self.now_ns.max(ended_ns.unwrap_or(0));
        for cpu in self.cpus.iter_mut().flatten() {
            // Not one event came from it.
            if let Some(first) = cpu.first.filter(|_| cpu.timeline.is_untouched()) {
                cpu.timeline.close(self.now_ns);
                cpu.timeline.discover_first(first, TaskMode::Code);
            }
        }
        let at_ns = self.now_ns;
        for place in 0..self.threads.len() {
            self.conclude(place);
            let thread = &self.threads[place];
            let cpu = match thread.state() {
                ThreadState::Ready(cpu) => cpu,
                // On its way out of the sleep that its release ended.
                ThreadState::Stopped => thread.last_cpu(),
                _ => continue,
            };
            let current = self.known_cpu(cpu).and_then(|cpu| cpu.timeline.current());
            let before = current.unwrap_or_default();
            if !thread.has_release() || before.tid == thread.task.tid {
                continue;
            }
            self.settle(place, at_ns, None);
            let run = Run::new(Moment { cpu, at_ns }, before);
            self.complete(place, Run { is_waiting: true, ..run });
        }
    }
}
