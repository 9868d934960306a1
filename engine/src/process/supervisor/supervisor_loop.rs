//! The supervising thread: drives the lifecycle of each block and answers requests.
//!
//! The kernel ends every process that this thread started when this thread ends. Looks when it is
//! called, and every few milliseconds; does what [`Lifecycle`] says, and decides
//! nothing itself.

use std::ffi::c_int;
use std::os::unix::net::UnixStream;

use punctual_core::block::{TaskState, clear, look};
use punctual_core::time::{Instant, Span};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::descriptor::Descriptor;
use punctual_os::events::{self, Interest};
use punctual_os::process::EndSignal;
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::{Errno, pidfd};

use super::super::lifecycle::{Act, Cause, Lifecycle, LifecycleState, ProcessEnd, Seen};
use super::super::listener::{Guest, Listener};
use super::super::request::Request;
use super::child::{Child, Home};
use super::{Event, EventKind, Figures, Ready, Stop, TaskBlock, TaskOutcome};
use crate::clocks::monotonic_now;
use crate::session::Attempt;

/// The time that tasks have to leave when the supervisor ends, and then again to be ended.
const LEAVE: Span = Span::from_ms(2_000);

/// The time after which the supervisor looks where nothing calls it.
const TICK: Span = Span::from_ms(5);

/// The most calls that it takes from one such look to the next: whoever comes again and again takes
/// no more of the CPU than that.
const CALLS_MAX: u32 = 32;

/// The work of the supervising thread from the first start to the end of the last process.
pub(super) struct SupervisorLoop<'l, 's> {
    ready: &'s Ready,
    /// By rank.
    processes: &'l mut [TaskProcess],
    say: &'l mut dyn FnMut(Event),
    poller: Poller,
    stop: Stop<'l>,
    /// The cgroup below which tasks get their own.
    home: Option<Home>,
    /// The rank of the task that ends everything by taking no releases.
    stopped_by: Option<usize>,
}

impl<'l, 's> SupervisorLoop<'l, 's> {
    /// The loop of these processes, by rank; their events go to `say`.
    pub(super) fn new(
        ready: &'s Ready,
        processes: &'l mut [TaskProcess],
        say: &'l mut dyn FnMut(Event),
        stop: Stop<'l>,
    ) -> Self {
        let (poller, home) = (Poller::new(), Home::find());
        Self { ready, processes, say, poller, stop, home, stopped_by: None }
    }

    /// The rank of the task that ended everything by taking no releases.
    pub(super) fn stopped_by(&self) -> Option<usize> {
        self.stopped_by
    }

    fn say(&mut self, rank: usize, happened: EventKind) {
        let task = self.ready.plan.name(rank).to_owned();
        (self.say)(Event { task, kind: happened });
    }

    /// Drives all lifecycles until the executive has ended or is to end, or until no process will
    /// run any more; then true. No process can join after it.
    pub(super) fn supervise(
        &mut self,
        mut listener: Option<Listener>,
        has_ended: impl Fn() -> bool,
    ) -> bool {
        let mut gone = false;
        while !has_ended() && !gone && !self.stop.is_set() && self.stopped_by.is_none() {
            self.tick(listener.as_mut());
            gone = self.processes.iter().all(|process| process.lifecycle.is_over());
            self.rest(listener.as_ref());
        }
        self.stop.set();
        gone
    }

    /// Rests until a process ends, a connection or a request comes, or the next look is due.
    pub(super) fn rest(&mut self, listener: Option<&Listener>) {
        let ends = self.processes.iter().filter_map(TaskProcess::descriptor);
        self.poller.rest(ends.chain(listener.into_iter().flat_map(Listener::descriptors)));
    }

    /// One look at all blocks, and at the requests that came.
    fn tick(&mut self, listener: Option<&mut Listener>) {
        let mut came = Vec::new();
        if let Some(listener) = listener {
            listener.look(monotonic_now(), |guest, request| came.push((guest, request)));
        }
        for (guest, request) in came {
            self.receive(guest, request);
        }
        for rank in 0..self.processes.len() {
            self.look(rank);
        }
    }

    fn look(&mut self, rank: usize) {
        let block = &self.ready.blocks[rank];
        let process = &mut self.processes[rank];
        // Both before the block: one that has ended writes no more, so that what its block says is
        // its last word; and what is taken after this was posted.
        let ended = process.has_ended();
        let posted = block.counts.posted();
        let on_block = look(block.memory.words());
        let seen = Seen {
            ended,
            state: on_block.map_or(TaskState::Unknown, |seen| seen.state),
            taken: on_block.and_then(|seen| seen.cycle),
            posted,
            overran: block.counts.overran(),
            left: block.admission.is_left(process.number),
        };
        let before = process.lifecycle.state();
        let act = process.lifecycle.tick(&seen, monotonic_now());
        self.act(rank, act);
        self.say_demoted(rank);
        let process = &mut self.processes[rank];
        if let LifecycleState::Leaving(failed, _) = before {
            // One that is always to run, and does not any more, has failed however it ended.
            let failed = failed || process.lifecycle.runs_always();
            match process.lifecycle.state() {
                LifecycleState::Due(at) => {
                    self.say(rank, EventKind::StartsAgain(at - monotonic_now()));
                }
                LifecycleState::Over => {
                    process.failed = failed;
                    self.say(rank, EventKind::GivenUp);
                }
                _ => {}
            }
        }
    }

    /// Reports that the monitor demoted its thread, and the number of others that it demoted.
    fn say_demoted(&mut self, rank: usize) {
        let demotions = self.ready.blocks[rank].demotable.demotions();
        if demotions > std::mem::replace(&mut self.processes[rank].demotions, demotions) {
            self.say(rank, EventKind::Demoted);
        }
        let demoted = self.ready.blocks[rank].others.demoted();
        let news = demoted - std::mem::replace(&mut self.processes[rank].others_demoted, demoted);
        if news > 0 {
            self.say(rank, EventKind::ThreadsDemoted(news));
        }
    }

    fn act(&mut self, rank: usize, act: Act) {
        let block = &self.ready.blocks[rank];
        let process = &mut self.processes[rank];
        match act {
            Act::Nothing => {}
            Act::Start => {
                clear(block.memory.words(), &block.terms);
                // One that cannot be started has ended: the next look takes its end.
                if let Some(pid) = process.start(block, self.home.as_ref()) {
                    self.say(rank, EventKind::Started(pid.unsigned_abs()));
                }
            }
            Act::Admit => self.admit(rank),
            Act::Note => self.say(rank, EventKind::Silent),
            Act::Stop => {
                self.stopped_by = Some(rank);
                self.say(rank, EventKind::Silent);
            }
            Act::Dismiss => {
                let thread = process.close(block);
                // Not a task any more: as any other thread.
                let _gone = thread.map(|thread| scheduler::set(thread, SchedPolicy::Other));
                block.take_over();
                let cause = process.lifecycle.dismissed_for();
                self.say(rank, cause.map_or(EventKind::Unregistered, EventKind::Dismissed));
            }
            Act::Kill(cause) => {
                process.close(block);
                let by_policy = matches!(cause, Cause::Overran | Cause::Silent);
                process.terminated += u64::from(by_policy);
                process.kill();
                self.say(rank, EventKind::Killed(cause));
            }
            Act::Reap(exit) => {
                process.close(block);
                block.take_over();
                process.reap(block, exit);
                self.say(rank, EventKind::Ended(exit));
            }
            Act::Free => clear(block.memory.words(), &block.terms),
        }
    }

    /// Gives a registered thread its CPU and its priority, and releases its task from then on.
    fn admit(&mut self, rank: usize) {
        let block = &self.ready.blocks[rank];
        let process = &mut self.processes[rank];
        let thread_number = look(block.memory.words()).map_or(0, |seen| seen.thread);
        let Some(thread) = process.own_thread(thread_number) else {
            let act = process.lifecycle.kill(Cause::ForeignThread, monotonic_now());
            return self.act(rank, act);
        };
        let mut refused = Vec::new();
        let mut ask = |attempt, answer: Result<(), Errno>| {
            if let Err(errno) = answer {
                refused.push(EventKind::Refused(attempt, errno));
            }
        };
        if let Some(cpu) = block.cpu {
            ask(Attempt::Affinity(cpu), affinity::set(thread, &CpuMask::one(cpu)));
        }
        let policy = SchedPolicy::Fifo(block.fifo);
        ask(Attempt::Scheduler(policy), scheduler::set(thread, policy));
        let granted = scheduler::get(thread).unwrap_or(SchedPolicy::Other);
        process.policy = Some(granted);
        process.registered += 1;
        block.demotable.arm(if granted == policy { thread } else { 0 });
        block.admission.open(process.number);
        refused.into_iter().for_each(|happened| self.say(rank, happened));
        self.say(rank, EventKind::Registered);
    }

    /// Carries out a request.
    fn receive(&mut self, guest: Guest, request: Request) {
        let (Request::Join(name) | Request::Watch(name)) = &request;
        let rank = (0..self.processes.len()).find(|&rank| self.ready.plan.name(rank) == name);
        let Some(rank) = rank else {
            guest.answer(Some("it has no task of this name"), &[]);
            return;
        };
        let refused = match request {
            Request::Watch(_) => self.show(&guest, rank),
            Request::Join(_) => return self.join(guest, rank),
        };
        if let Some(why) = refused {
            guest.answer(Some(why), &[]);
        }
    }

    /// Hands out what may be read.
    fn show(&self, guest: &Guest, rank: usize) -> Option<&'static str> {
        let block = &self.ready.blocks[rank];
        match (block.memory.read_only(), block.page.read_only()) {
            (Ok(memory), Ok(page)) => {
                guest.answer(None, &[&memory, &page]);
                None
            }
            _ => Some("its memory cannot be handed out"),
        }
    }

    fn join(&mut self, guest: Guest, rank: usize) {
        match self.try_join(&guest, rank) {
            Ok(pidfd) => {
                guest.answer(None, &[self.ready.blocks[rank].memory.descriptor()]);
                let pid = guest.pid();
                let connection = guest.keep();
                self.processes[rank].handle =
                    ProcessHandle::Joined { pid, pidfd, _connection: connection };
                self.say(rank, EventKind::Joined(pid));
            }
            Err(why) => {
                guest.answer(Some(why), &[]);
                self.say(rank, EventKind::TurnedAway(why));
            }
        }
    }

    /// Gives a block to a process that wants to join; the words for it where it may not.
    fn try_join(&mut self, guest: &Guest, rank: usize) -> Result<Descriptor, &'static str> {
        let block = &self.ready.blocks[rank];
        let process = &mut self.processes[rank];
        if !block.spec.command.is_empty() {
            return Err("the task has a program of its own");
        }
        let pidfd = guest.pidfd().map_err(|_| "its process is gone")?;
        if !process.lifecycle.join(monotonic_now()) {
            return Err("the block is taken");
        }
        clear(block.memory.words(), &block.terms);
        process.number += 1;
        process.starts += 1;
        Ok(pidfd)
    }

    /// The loop has ended and every task knows it: a child that does not exit is ended.
    pub(super) fn wind_down(&mut self) {
        let mut down = WindDown::new(monotonic_now(), self.stop);
        while (0..self.processes.len())
            .fold(false, |left, rank| left | self.leave(rank, down.killed))
        {
            match down.step(monotonic_now()) {
                Step::Wait => {}
                Step::Kill => self.kill_all(),
                Step::GiveUp => break,
            }
            self.rest(None);
        }
        for (process, block) in self.processes.iter().zip(&self.ready.blocks) {
            // A process that joined lives on, without a monitor: it does not keep its priority.
            let thread = process.close(block);
            let _gone = thread.map(|thread| scheduler::set(thread, SchedPolicy::Other));
        }
        self.ready.blocks.iter().for_each(TaskBlock::take_over);
    }

    /// Ends the children. Those that joined are not ours to end.
    fn kill_all(&mut self) {
        for rank in 0..self.processes.len() {
            if matches!(self.processes[rank].handle, ProcessHandle::Started(_)) {
                let act = self.processes[rank].lifecycle.kill(Cause::Over, monotonic_now());
                self.act(rank, act);
            }
        }
    }

    /// Takes the end of the block's process, if it has ended. True while a process that was started
    /// here runs.
    fn leave(&mut self, rank: usize, killed: bool) -> bool {
        let process = &mut self.processes[rank];
        if !matches!(process.handle, ProcessHandle::Started(_) | ProcessHandle::NotStarted(_)) {
            return false;
        }
        let Some(exit) = process.has_ended() else { return true };
        // That it ends now is as it should be, unless it had to be ended.
        process.failed |= killed || exit != ProcessEnd::Status(0);
        self.act(rank, Act::Reap(exit));
        false
    }
}

/// The one process that a block has, if any.
#[derive(Debug)]
enum ProcessHandle {
    /// None, or one whose end was taken.
    Absent,
    /// A program that this supervisor started.
    Started(Child),
    /// A process that joined by name. Its connection stays open for as long as it has the block.
    Joined { pid: i32, pidfd: Descriptor, _connection: UnixStream },
    /// A program that could not be started, until its end is taken.
    NotStarted(ProcessEnd),
}

/// The process of a block, as the supervising thread knows it, and the counts of those before it.
/// Decides nothing: that is [`Lifecycle`].
#[derive(Debug)]
pub(super) struct TaskProcess {
    lifecycle: Lifecycle,
    /// The number of the last process of this block; each has its own.
    number: u64,
    handle: ProcessHandle,
    policy: Option<SchedPolicy>,
    starts: u64,
    registered: u64,
    terminated: u64,
    /// Threads beside the registered one that were demoted, as far as an event reported them.
    others_demoted: u64,
    /// Demotions of the registered one, likewise.
    demotions: u64,
    failed: bool,
    exit: Option<ProcessEnd>,
}

impl TaskProcess {
    pub(super) fn new(block: &TaskBlock, now: Instant) -> Self {
        let spec = &block.spec;
        let policy = (spec.task.overrun_policy(), block.silent_after);
        let program = !spec.command.is_empty();
        Self {
            lifecycle: Lifecycle::new(program, policy, spec.register_within, spec.restart, now),
            number: 0,
            handle: ProcessHandle::Absent,
            policy: None,
            starts: 0,
            registered: 0,
            terminated: 0,
            others_demoted: 0,
            demotions: 0,
            failed: false,
            exit: None,
        }
    }

    /// The end of the process; `None` while it runs, and where there is none.
    fn has_ended(&mut self) -> Option<ProcessEnd> {
        match &mut self.handle {
            ProcessHandle::Absent => None,
            ProcessHandle::Started(child) => child.has_ended(monotonic_now()),
            ProcessHandle::Joined { pidfd, .. } => {
                (pidfd::has_ended(pidfd) != Ok(false)).then_some(ProcessEnd::Unknown)
            }
            ProcessHandle::NotStarted(end) => Some(*end),
        }
    }

    /// A descriptor that becomes readable when the process ends; `None` once that is known.
    fn descriptor(&self) -> Option<c_int> {
        match &self.handle {
            ProcessHandle::Started(child) => child.descriptor(),
            ProcessHandle::Joined { pidfd, .. } => Some(pidfd.number()),
            ProcessHandle::Absent | ProcessHandle::NotStarted(_) => None,
        }
    }

    /// The number of the process; `None` where there is none, for others may have that of one that
    /// is gone.
    fn pid(&self) -> Option<i32> {
        match &self.handle {
            ProcessHandle::Started(child) => Some(child.pid()),
            ProcessHandle::Joined { pid, .. } => Some(*pid),
            ProcessHandle::Absent | ProcessHandle::NotStarted(_) => None,
        }
    }

    /// A thread by the number that a task gave, where it really is one of its process.
    fn own_thread(&self, thread: u64) -> Option<i32> {
        let pid = self.pid()?;
        let thread = i32::try_from(thread).ok().filter(|&thread| thread > 0)?;
        std::fs::exists(format!("/proc/{pid}/task/{thread}")).ok()?.then_some(thread)
    }

    /// Starts the program of a block that is clear; its number, or `None` where it could not be.
    fn start(&mut self, block: &TaskBlock, home: Option<&Home>) -> Option<i32> {
        self.number += 1;
        self.starts += 1;
        self.handle = match Child::start(block, home) {
            Ok(child) => ProcessHandle::Started(child),
            Err(why) => ProcessHandle::NotStarted(ProcessEnd::NotStarted(why.0)),
        };
        self.pid().inspect(|&pid| block.others.watch(pid))
    }

    /// Ends the process.
    fn kill(&self) {
        match &self.handle {
            ProcessHandle::Started(child) => child.kill(),
            // Only itself: what else is in its process group is not ours.
            ProcessHandle::Joined { pidfd, .. } => drop(pidfd::end(pidfd, EndSignal::Kill)),
            ProcessHandle::Absent | ProcessHandle::NotStarted(_) => {}
        }
    }

    /// Forgets the process, which is gone.
    fn reap(&mut self, block: &TaskBlock, exit: ProcessEnd) {
        block.others.watch(0);
        self.handle = ProcessHandle::Absent;
        self.exit = Some(exit);
    }

    /// The outcome of the task of this rank.
    pub(super) fn outcome(&self, ready: &Ready, rank: usize) -> TaskOutcome {
        let block = &ready.blocks[rank];
        TaskOutcome {
            name: block.spec.task.name().to_owned(),
            period_ns: ready.plan.period(rank).as_ns(),
            phase_ns: ready.plan.phase_ns(rank),
            figures: Figures::read(block.page.words()),
            policy: self.policy,
            starts: self.starts,
            registered: self.registered,
            restarts: self.lifecycle.restarts(),
            overran: block.counts.overran(),
            terminated: self.terminated,
            demoted: (block.demotable.demotions(), block.demotable.restored()),
            threads_demoted: block.others.demoted(),
            unattended: block.counts.unattended(),
            after_end: block.counts.after_end(),
            invalid: block.counts.invalid(),
            failed: self.failed,
            exit: self.exit,
        }
    }

    /// Releases the task no more, and demotes it no more; the thread that was registered.
    fn close(&self, block: &TaskBlock) -> Option<i32> {
        block.admission.close(self.number);
        block.demotable.arm(0);
        let thread = look(block.memory.words()).map_or(0, |seen| seen.thread);
        self.own_thread(thread)
    }
}

/// One step of a wind-down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Tasks leave.
    Wait,
    /// Those that are still there are ended.
    Kill,
    /// Processes that cannot be ended are left behind.
    GiveUp,
}

/// The progress of a supervisor's end: its loop has ended, tasks leave or are ended. Decided by the
/// time alone; whoever is in a hurry shortens the time that tasks have, and skips nothing.
#[derive(Clone, Copy, Debug)]
struct WindDown<'s> {
    stop: Stop<'s>,
    /// The instant until which tasks may leave; once that is over, until which they may end.
    until: Instant,
    killed: bool,
}

impl<'s> WindDown<'s> {
    fn new(now: Instant, stop: Stop<'s>) -> Self {
        Self { stop, until: now + LEAVE, killed: false }
    }

    /// The step that is due at `now`.
    fn step(&mut self, now: Instant) -> Step {
        match self.killed {
            false if now >= self.until || self.stop.is_hurried() => {
                (self.until, self.killed) = (now + LEAVE, true);
                Step::Kill
            }
            true if now >= self.until => Step::GiveUp,
            _ => Step::Wait,
        }
    }
}

/// The rests of one supervising thread between two looks: the end of a process, a connection or a
/// request ends a rest at once. A change in shared memory alone (a registration, an overrun) is
/// seen at the next look. Never reads what it waits for.
#[derive(Debug)]
struct Poller {
    interests: Vec<Interest>,
    /// The next look, called or not.
    next: Instant,
    calls: u32,
}

impl Poller {
    fn new() -> Self {
        Self { interests: Vec::new(), next: monotonic_now() + TICK, calls: 0 }
    }

    /// Rests until one of these descriptors is there, or the next look is due.
    fn rest(&mut self, descriptors: impl Iterator<Item = c_int>) {
        self.interests.clear();
        if self.calls < CALLS_MAX {
            self.interests.extend(descriptors.map(Interest::new));
        }
        // A signal that cuts this short costs an extra look.
        let called = events::wait_until(&mut self.interests, self.next.as_ns());
        self.calls += u32::from(called.is_ok_and(|ready| ready > 0));
        let at = monotonic_now();
        if at >= self.next {
            (self.next, self.calls) = (at + TICK, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn tasks_have_two_seconds_to_leave_and_two_to_end() {
        let set = AtomicBool::new(true);
        let mut down = WindDown::new(at(1_000), Stop::new(&set));
        assert_eq!(down.step(at(2_999)), Step::Wait);
        assert_eq!(down.step(at(3_000)), Step::Kill);
        assert_eq!(down.step(at(4_999)), Step::Wait);
        assert_eq!(down.step(at(5_000)), Step::GiveUp);
    }

    #[test]
    fn who_is_in_a_hurry_takes_the_time_to_leave_and_nothing_else() {
        let (set, hurry) = (AtomicBool::new(true), AtomicBool::new(false));
        let mut down = WindDown::new(at(0), Stop::new(&set).hurry(&hurry));
        assert_eq!(down.step(at(1)), Step::Wait);
        hurry.store(true, Ordering::Relaxed);
        assert_eq!(down.step(at(700)), Step::Kill);
        assert_eq!(down.step(at(2_699)), Step::Wait, "what was killed is waited for");
        assert_eq!(down.step(at(2_700)), Step::GiveUp);
    }

    #[test]
    fn a_call_ends_a_rest_and_who_calls_without_end_is_not_always_heard() {
        let (mut process, two) = UnixStream::pair().expect("sockets");
        process.write_all(b"x").expect("open");
        let mut poller = Poller::new();
        // As if the next look were never due.
        poller.next = Instant::from_ns(u64::MAX);
        for _ in 0..CALLS_MAX {
            poller.rest(std::iter::once(two.as_raw_fd()));
        }
        assert_eq!(poller.calls, CALLS_MAX);
        poller.next = monotonic_now();
        poller.rest(std::iter::once(two.as_raw_fd()));
        assert!(poller.interests.is_empty() && poller.calls == 0, "and then it is looked at again");
    }
}
