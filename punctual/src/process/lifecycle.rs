//! The lifecycle of a task block: started, registered, ended, left, started again.
//!
//! Pure: what was seen goes in, what is to be done comes out; runs on made-up clocks. Each thing is
//! done once: the state changes with it.

mod act;
mod end;
mod restart;

use punctual_core::block::TaskState;
use punctual_core::time::{Instant, Span};

use crate::periodic::OnOverrun;
use restart::Count;

pub(super) use act::{Act, Seen};
pub use end::{Cause, ProcessEnd};
pub use restart::Restart;

/// Where a task block is in its lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LifecycleState {
    /// Free for a process that joins by name.
    Free,
    /// To be started at this instant.
    Due(Instant),
    /// Started at this instant; has not registered.
    Started(Instant),
    /// Released since this instant.
    Registered(Instant),
    /// Unregistered, or sent away for a reason; its process may go on.
    Dismissed(Instant, Option<Cause>),
    /// To be ended, which was asked for.
    Ending(Instant, Cause),
    /// The process is gone, its loop has not left the block: whether it failed, how long it ran.
    Leaving(bool, Span),
    /// For good.
    Over,
}

/// The lifecycle of one block.
#[derive(Debug)]
pub(super) struct Lifecycle {
    pub(super) stage: LifecycleState,
    /// Whether it has a program; else a process may join.
    program: bool,
    /// What an overrun does.
    policy: OnOverrun,
    /// A process that takes none of so many releases is silent.
    silent_after: u64,
    register_within: Span,
    restart: Restart,
    pub(super) restarts: Count,
    overran: u64,
    /// The release that was taken last, and how many were posted then.
    last_seen: (Option<u64>, u64),
    silent: bool,
}

impl Lifecycle {
    /// A task block whose program, if it has one, is to be started at once.
    pub(super) fn new(
        program: bool,
        (policy, silent_after): (OnOverrun, u64),
        register_within: Span,
        restart: Restart,
        now: Instant,
    ) -> Self {
        let stage = if program { LifecycleState::Due(now) } else { LifecycleState::Free };
        let restarts = Count::default();
        Self {
            stage,
            program,
            policy,
            silent_after,
            register_within,
            restart,
            restarts,
            overran: 0,
            last_seen: (None, 0),
            silent: false,
        }
    }

    /// A process asks to join; only a free block is given.
    pub(super) fn join(&mut self, now: Instant) -> bool {
        let free = self.stage == LifecycleState::Free;
        if free {
            self.stage = LifecycleState::Started(now);
        }
        free
    }

    /// Whether nothing will run here any more.
    pub(super) fn is_over(&self) -> bool {
        self.stage == LifecycleState::Over
    }

    /// What is to be done at `now`.
    pub(super) fn tick(&mut self, seen: &Seen, now: Instant) -> Act {
        let overran = seen.overran != self.overran;
        self.overran = seen.overran;
        match self.stage {
            LifecycleState::Free | LifecycleState::Over => Act::Nothing,
            LifecycleState::Due(at) if now >= at => {
                self.stage = LifecycleState::Started(now);
                Act::Start
            }
            LifecycleState::Due(_) => Act::Nothing,
            LifecycleState::Started(since) => self.started(seen, since, now),
            LifecycleState::Registered(since) => self.registered(seen, since, now, overran),
            LifecycleState::Dismissed(since, _) => match seen.ended {
                // One that was joined may go on for ever, and is nothing to us.
                None if self.program => Act::Nothing,
                None => self.reap(ProcessEnd::Unknown, false, now - since),
                Some(exit) => self.reap(exit, exit != ProcessEnd::Status(0), now - since),
            },
            LifecycleState::Ending(since, _) => match seen.ended {
                None => Act::Nothing,
                Some(exit) => self.reap(exit, true, now - since),
            },
            LifecycleState::Leaving(..) if !seen.left => Act::Nothing,
            LifecycleState::Leaving(failed, ran) => self.again(failed, ran, now),
        }
    }

    fn started(&mut self, seen: &Seen, since: Instant, now: Instant) -> Act {
        match (seen.ended, seen.state) {
            // It registered and left between two looks: no failure where it says so.
            (Some(exit), state) => {
                let failed = state != TaskState::Gone || exit != ProcessEnd::Status(0);
                self.reap(exit, failed, Span::ZERO)
            }
            (None, TaskState::Asking) => {
                self.stage = LifecycleState::Registered(now);
                (self.last_seen, self.silent) = ((seen.taken, seen.posted), false);
                Act::Admit
            }
            (None, TaskState::Empty | TaskState::Gone) if now - since <= self.register_within => {
                Act::Nothing
            }
            (None, TaskState::Empty | TaskState::Gone) => self.kill(Cause::NeverRegistered, now),
            (None, _) => self.kill(Cause::Invalid, now),
        }
    }

    fn registered(&mut self, seen: &Seen, since: Instant, now: Instant, overran: bool) -> Act {
        if let Some(exit) = seen.ended {
            // One that says so before it goes has not failed.
            let failed = seen.state != TaskState::Gone || exit != ProcessEnd::Status(0);
            return self.reap(exit, failed, now - since);
        }
        match seen.state {
            TaskState::Gone => {
                self.stage = LifecycleState::Dismissed(since, None);
                Act::Dismiss
            }
            TaskState::Unknown | TaskState::Empty => self.kill(Cause::Invalid, now),
            TaskState::Asking | TaskState::Idle | TaskState::Running
                if overran && self.policy == OnOverrun::Terminate =>
            {
                self.kill(Cause::Overran, now)
            }
            // A cycle that runs long is an overrun, or the guard's.
            TaskState::Running => self.hear(seen),
            TaskState::Asking | TaskState::Idle if self.last_seen.0 != seen.taken => {
                self.hear(seen)
            }
            TaskState::Asking | TaskState::Idle => self.listen(seen, now),
        }
    }

    fn hear(&mut self, seen: &Seen) -> Act {
        (self.last_seen, self.silent) = ((seen.taken, seen.posted), false);
        Act::Nothing
    }

    /// It waits for a release, as it says: one that is stopped, or hangs elsewhere, takes none.
    fn listen(&mut self, seen: &Seen, now: Instant) -> Act {
        if self.silent || seen.posted.saturating_sub(self.last_seen.1) < self.silent_after {
            return Act::Nothing;
        }
        self.silent = true;
        match self.policy {
            OnOverrun::Terminate => self.kill(Cause::Silent, now),
            OnOverrun::Stop => Act::Stop,
            _ => Act::Note,
        }
    }

    /// To be ended by its supervisor. A process that was started by hand is ended for an overrun or
    /// for silence alone, and sent away otherwise.
    pub(super) fn kill(&mut self, cause: Cause, now: Instant) -> Act {
        // How long it ran counts, not how long it takes to end.
        let since = match self.stage {
            LifecycleState::Started(_) => now,
            LifecycleState::Registered(since) | LifecycleState::Dismissed(since, _) => since,
            _ => return Act::Nothing,
        };
        if self.program || matches!(cause, Cause::Overran | Cause::Silent) {
            self.stage = LifecycleState::Ending(since, cause);
            return Act::Kill(cause);
        }
        self.stage = LifecycleState::Dismissed(since, Some(cause));
        Act::Dismiss
    }

    /// Why it was sent away; `None` where it left by itself.
    pub(super) fn dismissed_for(&self) -> Option<Cause> {
        match self.stage {
            LifecycleState::Dismissed(_, cause) => cause,
            _ => None,
        }
    }

    fn reap(&mut self, exit: ProcessEnd, failed: bool, ran: Span) -> Act {
        self.stage = LifecycleState::Leaving(failed, ran);
        Act::Reap(exit)
    }

    fn again(&mut self, failed: bool, ran: Span, now: Instant) -> Act {
        if !self.program {
            self.stage = LifecycleState::Free;
            return Act::Free;
        }
        let next = self.restarts.next(&self.restart, failed, ran, now);
        self.stage = next.map_or(LifecycleState::Over, LifecycleState::Due);
        Act::Nothing
    }
}

#[cfg(test)]
mod tests;
