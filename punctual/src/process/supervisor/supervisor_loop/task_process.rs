//! The process of a block, as the supervising thread knows it: started or joined, until it is gone.
//!
//! Decides nothing: that is [`crate::process::lifecycle`].

use std::ffi::c_int;
use std::os::unix::net::UnixStream;

use punctual_core::block::look;
use punctual_core::time::Instant;
use punctual_os::descriptor::Descriptor;
use punctual_os::pidfd;
use punctual_os::process::EndSignal;
use punctual_os::scheduler::SchedPolicy;

use super::super::What;
use super::super::child::Child;
use super::super::task_block::TaskBlock;
use super::now;
use crate::process::cgroup::Home;
use crate::process::lifecycle::{Lifecycle, ProcessEnd};

/// The process of a block, as the supervising thread knows it.
#[derive(Debug)]
pub(in super::super) struct TaskProcess {
    pub(in super::super) lifecycle: Lifecycle,
    /// Of the last one; each has its own.
    pub(in super::super) number: u64,
    /// Where it was started here.
    pub(in super::super) child: Option<Child>,
    /// Where it joined.
    pub(in super::super) pidfd: Option<Descriptor>,
    pub(in super::super) pid: i32,
    pub(in super::super) connection: Option<UnixStream>,
    /// Known without looking: it could not be started.
    pub(in super::super) ended: Option<ProcessEnd>,
    pub(in super::super) policy: Option<SchedPolicy>,
    pub(in super::super) starts: u64,
    pub(in super::super) registered: u64,
    pub(in super::super) terminated: u64,
    /// Threads beside the registered one that were demoted, as far as that was said.
    pub(in super::super) others_demoted: u64,
    pub(in super::super) failed: bool,
    pub(in super::super) exit: Option<ProcessEnd>,
}

impl TaskProcess {
    pub(in super::super) fn new(block: &TaskBlock, now: Instant) -> Self {
        let spec = &block.spec;
        let policy = (spec.task.policy, block.silent_after);
        let program = !spec.command.is_empty();
        Self {
            lifecycle: Lifecycle::new(program, policy, spec.register_within, spec.restart, now),
            number: 0,
            child: None,
            pidfd: None,
            pid: 0,
            connection: None,
            ended: None,
            policy: None,
            starts: 0,
            registered: 0,
            terminated: 0,
            others_demoted: 0,
            failed: false,
            exit: None,
        }
    }
}

impl TaskProcess {
    /// How the process ended, if it did.
    pub(in super::super) fn has_ended(&mut self) -> Option<ProcessEnd> {
        if self.ended.is_some() {
            return self.ended;
        }
        if let Some(child) = &mut self.child {
            return child.has_ended(now());
        }
        let pidfd = self.pidfd.as_ref()?;
        (pidfd::has_ended(pidfd) != Ok(false)).then_some(ProcessEnd::Unknown)
    }

    /// What tells that the process has ended, while that is not known.
    pub(in super::super) fn descriptor(&self) -> Option<c_int> {
        match &self.child {
            Some(child) => child.descriptor(),
            None => self.pidfd.as_ref().map(Descriptor::number),
        }
    }

    /// Starts the program of a block that is clear.
    pub(in super::super) fn start(&mut self, block: &TaskBlock, home: Option<&Home>) -> What {
        self.number += 1;
        self.starts += 1;
        self.ended = None;
        match Child::start(block, home) {
            Ok(child) => {
                self.pid = child.pid();
                block.others.watch(self.pid);
                self.child = Some(child);
                What::Started(self.pid.unsigned_abs())
            }
            Err(why) => {
                let exit = ProcessEnd::NotStarted(why.0);
                self.ended = Some(exit);
                What::Ended(exit)
            }
        }
    }

    /// Ends the process.
    pub(in super::super) fn kill(&self) {
        match (&self.child, &self.pidfd) {
            (Some(child), _) => child.kill(),
            // Only itself: what else is in its process group is not ours.
            (None, Some(pidfd)) => drop(pidfd::end(pidfd, EndSignal::Kill)),
            (None, None) => {}
        }
    }

    /// Its process is gone.
    pub(in super::super) fn reap(&mut self, block: &TaskBlock, exit: ProcessEnd) {
        block.others.watch(0);
        (self.child, self.pidfd, self.connection) = (None, None, None);
        self.exit = Some(exit);
    }

    /// Closes the gate and disarms the guard; the thread that was registered.
    pub(in super::super) fn close(&self, block: &TaskBlock) -> Option<i32> {
        block.door.close(self.number);
        block.guarded.arm(0);
        let thread = look(block.memory.mapping.words()).map_or(0, |seen| seen.thread);
        own_thread(self.pid, thread)
    }
}

/// A thread by the number that a task gave, where it really is one of its process.
pub(in super::super) fn own_thread(pid: i32, thread: u64) -> Option<i32> {
    let thread = i32::try_from(thread).ok().filter(|&thread| thread > 0)?;
    std::fs::exists(format!("/proc/{pid}/task/{thread}")).ok()?.then_some(thread)
}
