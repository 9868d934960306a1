//! The supervising thread: drives the lifecycle of each block and answers requests.
//!
//! The kernel ends every process that this thread started when this thread ends. Looks when it is
//! called, and every few milliseconds; does what [`super::super::lifecycle`] says, and decides
//! nothing itself.

mod poller;
mod task_process;
mod wind_down;

use punctual_core::block::{TaskState, clear, look};
use punctual_core::time::Instant;
use punctual_os::Errno;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::{self, SchedPolicy};

use super::super::cgroup::Home;
use super::super::lifecycle::{Act, Cause, LifecycleState, Seen};
use super::super::listener::{Guest, Listener};
use super::super::request::Request;
use super::stop::Stop;
use super::{Event, Ready, What};
use crate::session::Attempt;
pub(super) use poller::Poller;
pub(super) use task_process::TaskProcess;
use task_process::own_thread;

/// Now.
pub(super) fn now() -> Instant {
    Instant::from_ns(now_ns(ClockId::Monotonic))
}

/// The supervising thread at work.
pub(super) struct SupervisorLoop<'l, 's> {
    pub(super) ready: &'s Ready,
    pub(super) all: &'l mut [TaskProcess],
    pub(super) say: &'l mut dyn FnMut(Event),
    pub(super) poller: Poller,
    pub(super) stop: Stop<'l>,
    /// Where tasks get cgroups of their own.
    pub(super) home: Option<Home>,
    /// Who ends everything by taking no releases.
    pub(super) stopped_by: Option<usize>,
}

impl SupervisorLoop<'_, '_> {
    fn say(&mut self, rank: usize, what: What) {
        let task = self.ready.plan.name(rank).to_owned();
        (self.say)(Event { task, what });
    }

    /// Leads all lives until the loop has ended or is to end, or until none is left, which it says.
    /// Nobody comes any more after it.
    pub(super) fn supervise(
        &mut self,
        mut listener: Option<Listener>,
        has_ended: impl Fn() -> bool,
    ) -> bool {
        let mut gone = false;
        while !has_ended() && !gone && !self.stop.is_set() && self.stopped_by.is_none() {
            self.tick(listener.as_mut());
            gone = self.all.iter().all(|one| one.lifecycle.is_over());
            self.rest(listener.as_ref());
        }
        self.stop.set();
        gone
    }

    /// Rests until a process ends, a connection or a request comes, or the next look is due.
    pub(super) fn rest(&mut self, listener: Option<&Listener>) {
        let ends = self.all.iter().filter_map(TaskProcess::descriptor);
        self.poller.rest(ends.chain(listener.into_iter().flat_map(Listener::descriptors)));
    }

    /// A look at everything.
    pub(super) fn tick(&mut self, listener: Option<&mut Listener>) {
        let mut came = Vec::new();
        if let Some(listener) = listener {
            listener.look(now(), |guest, request| came.push((guest, request)));
        }
        for (guest, request) in came {
            self.receive(guest, request);
        }
        for rank in 0..self.all.len() {
            self.look(rank);
        }
    }

    fn look(&mut self, rank: usize) {
        let block = &self.ready.blocks[rank];
        let one = &mut self.all[rank];
        // Before the block: what is taken after this was posted.
        let posted = block.counts.posted();
        let on_block = look(block.memory.mapping.words());
        let seen = Seen {
            ended: one.has_ended(),
            state: on_block.map_or(TaskState::Unknown, |seen| seen.state),
            taken: on_block.and_then(|seen| seen.cycle),
            posted,
            overran: block.counts.overran(),
            left: block.door.is_left(one.number),
        };
        let before = one.lifecycle.stage;
        let act = one.lifecycle.tick(&seen, now());
        self.act(rank, act);
        self.say_demoted(rank);
        let one = &mut self.all[rank];
        if let LifecycleState::Leaving(failed, _) = before {
            match one.lifecycle.stage {
                LifecycleState::Due(at) => self.say(rank, What::StartsAgain(at - now())),
                LifecycleState::Over => {
                    one.failed = failed;
                    self.say(rank, What::GivenUp);
                }
                _ => {}
            }
        }
    }

    /// Says what the guard did to threads beside the registered one.
    fn say_demoted(&mut self, rank: usize) {
        let demoted = self.ready.blocks[rank].others.demoted();
        let news = demoted - std::mem::replace(&mut self.all[rank].others_demoted, demoted);
        if news > 0 {
            self.say(rank, What::ThreadsDemoted(news));
        }
    }

    pub(super) fn act(&mut self, rank: usize, act: Act) {
        let block = &self.ready.blocks[rank];
        let one = &mut self.all[rank];
        match act {
            Act::Nothing => {}
            Act::Start => {
                clear(block.memory.mapping.words(), &block.terms);
                let what = one.start(block, self.home.as_ref());
                self.say(rank, what);
            }
            Act::Admit => self.block(rank),
            Act::Note => self.say(rank, What::Silent),
            Act::Stop => {
                self.stopped_by = Some(rank);
                self.say(rank, What::Silent);
            }
            Act::Dismiss => {
                let thread = one.close(block);
                // Not a task any more: as any other thread.
                let _gone = thread.map(|thread| scheduler::set(thread, SchedPolicy::Other));
                block.take_over();
                let cause = one.lifecycle.dismissed_for();
                self.say(rank, cause.map_or(What::Unregistered, What::Dismissed));
            }
            Act::Kill(cause) => {
                one.close(block);
                let by_policy = matches!(cause, Cause::Overran | Cause::Silent);
                one.terminated += u64::from(by_policy);
                one.kill();
                self.say(rank, What::Killed(cause));
            }
            Act::Reap(exit) => {
                one.close(block);
                block.take_over();
                one.reap(block, exit);
                self.say(rank, What::Ended(exit));
            }
            Act::Free => clear(block.memory.mapping.words(), &block.terms),
        }
    }

    /// Gives a registered thread its CPU and its priority, and opens the gate.
    fn block(&mut self, rank: usize) {
        let block = &self.ready.blocks[rank];
        let one = &mut self.all[rank];
        let told = look(block.memory.mapping.words()).map_or(0, |seen| seen.thread);
        let Some(thread) = own_thread(one.pid, told) else {
            let act = one.lifecycle.kill(Cause::ForeignThread, now());
            return self.act(rank, act);
        };
        let mut refused = Vec::new();
        let mut ask = |attempt, answer: Result<(), Errno>| {
            if let Err(errno) = answer {
                refused.push(What::Refused(attempt, errno));
            }
        };
        if let Some(cpu) = block.cpu {
            ask(Attempt::Affinity(cpu), affinity::set(thread, &CpuMask::one(cpu)));
        }
        let policy = SchedPolicy::Fifo(block.fifo);
        ask(Attempt::Scheduler(policy), scheduler::set(thread, policy));
        let granted = scheduler::get(thread).unwrap_or(SchedPolicy::Other);
        one.policy = Some(granted);
        one.registered += 1;
        block.guarded.arm(if granted == policy { thread } else { 0 });
        block.door.open(one.number);
        refused.into_iter().for_each(|what| self.say(rank, what));
        self.say(rank, What::Registered);
    }

    /// Carries out a request.
    fn receive(&mut self, guest: Guest, request: Request) {
        let (Request::Join(name) | Request::Watch(name)) = &request;
        let rank = (0..self.all.len()).find(|&rank| self.ready.plan.name(rank) == name);
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
        let block = &self.ready.blocks[rank];
        let one = &mut self.all[rank];
        let refused = if !block.spec.command.is_empty() {
            Some("the task has a program of its own")
        } else {
            match guest.pidfd() {
                Err(_) => Some("its process is gone"),
                Ok(_) if !one.lifecycle.join(now()) => Some("the block is taken"),
                Ok(pidfd) => {
                    clear(block.memory.mapping.words(), &block.terms);
                    one.number += 1;
                    one.starts += 1;
                    (one.pid, one.ended, one.pidfd) = (guest.peer.pid, None, Some(pidfd));
                    None
                }
            }
        };
        if let Some(why) = refused {
            guest.answer(Some(why), &[]);
            return self.say(rank, What::TurnedAway(why));
        }
        let pid = one.pid;
        guest.answer(None, &[block.memory.descriptor()]);
        one.connection = Some(guest.keep());
        self.say(rank, What::Joined(pid));
    }
}
