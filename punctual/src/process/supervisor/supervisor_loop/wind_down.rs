//! The end of a supervisor: its loop has ended, tasks leave or are ended, no thread keeps a
//! priority, all outputs are safe.
//!
//! How far it has got is decided by the time alone ([`WindDown`]); whoever is in a hurry shortens
//! the time that tasks have, and skips nothing.

use punctual_core::time::{Instant, Span};
use punctual_os::scheduler::{self, SchedPolicy};

use super::super::stop::Stop;
use super::super::task_block::TaskBlock;
use super::{SupervisorLoop, now};
use crate::process::lifecycle::{Act, Cause, ProcessEnd};

/// How long tasks may take to leave when the supervisor ends, and then to be ended.
const LEAVE: Span = Span::from_ms(2_000);

/// What a wind-down has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Tasks leave.
    Wait,
    /// Those that are still there are ended.
    Kill,
    /// What cannot be ended is left behind.
    GiveUp,
}

/// How far a wind-down has got.
#[derive(Clone, Copy, Debug)]
struct WindDown<'s> {
    stop: Stop<'s>,
    /// Until when tasks may leave; once that is over, until when they may end.
    until: Instant,
    killed: bool,
}

impl<'s> WindDown<'s> {
    fn new(now: Instant, stop: Stop<'s>) -> Self {
        Self { stop, until: now + LEAVE, killed: false }
    }

    /// What is to be done at `now`.
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

impl SupervisorLoop<'_, '_> {
    /// The loop has ended and every task knows it: a child that does not exit is ended.
    pub(in super::super) fn wind_down(&mut self) {
        let mut down = WindDown::new(now(), self.stop);
        while (0..self.all.len()).fold(false, |left, rank| left | self.leave(rank, down.killed)) {
            match down.step(now()) {
                Step::Wait => {}
                Step::Kill => self.kill_all(),
                Step::GiveUp => break,
            }
            self.rest(None);
        }
        for (one, block) in self.all.iter().zip(&self.ready.blocks) {
            // A process that joined lives on, without a guard: it does not keep its priority.
            let thread = one.close(block);
            let _gone = thread.map(|thread| scheduler::set(thread, SchedPolicy::Other));
        }
        self.ready.blocks.iter().for_each(TaskBlock::take_over);
    }

    /// Ends the children. Those that joined are not ours to end.
    fn kill_all(&mut self) {
        for rank in 0..self.all.len() {
            if self.all[rank].child.is_some() {
                let act = self.all[rank].lifecycle.kill(Cause::Over, now());
                self.act(rank, act);
            }
        }
    }

    /// Whether a child of this block is still there.
    fn leave(&mut self, rank: usize, killed: bool) -> bool {
        let one = &mut self.all[rank];
        if one.child.is_none() && one.ended.is_none() {
            return false;
        }
        let Some(exit) = one.has_ended() else { return true };
        // That it ends now is as it should be, unless it had to be ended.
        one.failed |= killed || exit != ProcessEnd::Status(0);
        self.act(rank, Act::Reap(exit));
        self.all[rank].ended = None;
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

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
}
