//! The lifecycle of a task block: started, registered, ended, left, started again.
//!
//! Pure: what was seen goes in, what is to be done comes out; runs on made-up clocks. Each thing is
//! done once: the state changes with it.

use std::fmt;
use std::io::Error;
use std::time::Duration;

use punctual_core::block::TaskState;
use punctual_core::time::{Instant, Span};

use crate::duration::span;
use crate::periodic::OnOverrun;

/// The state of a task block in its lifecycle.
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
    /// To be ended, which was requested.
    Ending(Instant, Cause),
    /// The process is gone, its loop has not left the block: true where it failed, and the time for
    /// which it ran.
    Leaving(bool, Span),
    /// For good.
    Over,
}

/// The lifecycle of one block.
#[derive(Debug)]
pub(super) struct Lifecycle {
    state: LifecycleState,
    /// True where it has a program; else a process may join.
    program: bool,
    /// The policy for overruns, and for a process that takes no releases.
    policy: OnOverrun,
    /// A process that takes none of so many releases is silent.
    silent_after: u64,
    register_within: Span,
    restart: Restart,
    restarts: Count,
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
        let state = if program { LifecycleState::Due(now) } else { LifecycleState::Free };
        let restarts = Count::default();
        Self {
            state,
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
        let free = self.state == LifecycleState::Free;
        if free {
            self.state = LifecycleState::Started(now);
        }
        free
    }

    /// The state after the last tick.
    pub(super) fn state(&self) -> LifecycleState {
        self.state
    }

    /// Times that its program was started again.
    pub(super) fn restarts(&self) -> u64 {
        self.restarts.total
    }

    /// Returns true where no process will run for this block any more.
    pub(super) fn is_over(&self) -> bool {
        self.state == LifecycleState::Over
    }

    /// Takes in what was seen at `now`; the act is to be carried out, for it is not requested
    /// again.
    pub(super) fn tick(&mut self, seen: &Seen, now: Instant) -> Act {
        let overran = seen.overran != self.overran;
        self.overran = seen.overran;
        match self.state {
            LifecycleState::Free | LifecycleState::Over => Act::Nothing,
            LifecycleState::Due(at) if now >= at => {
                self.state = LifecycleState::Started(now);
                Act::Start
            }
            LifecycleState::Due(_) => Act::Nothing,
            LifecycleState::Started(since) => self.started(seen, since, now),
            LifecycleState::Registered(since) => self.registered(seen, since, now, overran),
            LifecycleState::Dismissed(since, _) => match seen.ended {
                // One that joined by name may go on for ever: it is not ours to end.
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
            // It registered and left between two looks: no failure where its block says that it
            // left.
            (Some(exit), state) => {
                let failed = state != TaskState::Gone || exit != ProcessEnd::Status(0);
                self.reap(exit, failed, Span::ZERO)
            }
            (None, TaskState::Asking) => {
                self.state = LifecycleState::Registered(now);
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
            // One that unregistered before it ended has not failed.
            let failed = seen.state != TaskState::Gone || exit != ProcessEnd::Status(0);
            return self.reap(exit, failed, now - since);
        }
        match seen.state {
            TaskState::Gone => {
                self.state = LifecycleState::Dismissed(since, None);
                Act::Dismiss
            }
            TaskState::Unknown | TaskState::Empty => self.kill(Cause::Invalid, now),
            TaskState::Asking | TaskState::Idle | TaskState::Running
                if overran && self.policy == OnOverrun::Terminate =>
            {
                self.kill(Cause::Overran, now)
            }
            // A cycle that runs long is an overrun, or left to the monitor.
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
        let since = match self.state {
            LifecycleState::Started(_) => now,
            LifecycleState::Registered(since) | LifecycleState::Dismissed(since, _) => since,
            _ => return Act::Nothing,
        };
        if self.program || matches!(cause, Cause::Overran | Cause::Silent) {
            self.state = LifecycleState::Ending(since, cause);
            return Act::Kill(cause);
        }
        self.state = LifecycleState::Dismissed(since, Some(cause));
        Act::Dismiss
    }

    /// The reason for which it was sent away; `None` where it left by itself.
    pub(super) fn dismissed_for(&self) -> Option<Cause> {
        match self.state {
            LifecycleState::Dismissed(_, cause) => cause,
            _ => None,
        }
    }

    fn reap(&mut self, exit: ProcessEnd, failed: bool, ran: Span) -> Act {
        self.state = LifecycleState::Leaving(failed, ran);
        Act::Reap(exit)
    }

    /// Returns true where it is started again however it ended.
    pub(super) const fn runs_always(&self) -> bool {
        self.restart.always
    }

    fn again(&mut self, failed: bool, ran: Span, now: Instant) -> Act {
        if !self.program {
            self.state = LifecycleState::Free;
            return Act::Free;
        }
        let next = self.restarts.next(&self.restart, failed, ran, now);
        self.state = next.map_or(LifecycleState::Over, LifecycleState::Due);
        Act::Nothing
    }
}

/// The reason for which a supervisor ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It did not register in time.
    NeverRegistered,
    /// It was still running at its next release, and its policy is to be terminated.
    Overran,
    /// It took none of the releases of a second, ten at least, and its policy is to be terminated.
    Silent,
    /// Its block holds what no task writes there.
    Invalid,
    /// It registered a thread that is not its own.
    ForeignThread,
    /// The supervisor ends.
    Over,
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessEnd {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody can tell: it is no child of the supervisor's.
    Unknown,
    /// It could not be started, with this errno.
    NotStarted(i32),
}

impl fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(0) => f.write_str("exited normally"),
            Self::Status(status) => write!(f, "exited with status {status}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::Unknown => f.write_str("ended with unknown status"),
            Self::NotStarted(errno) => {
                write!(f, "could not be started: {}", Error::from_raw_os_error(*errno))
            }
        }
    }
}

/// The observations of one look at a task block, which a lifecycle judges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The end of the process, where it has ended.
    pub(super) ended: Option<ProcessEnd>,
    /// The state in its block, as the task wrote it.
    pub(super) state: TaskState,
    /// Releases so far that found it still running.
    pub(super) overran: u64,
    /// The last release that the task took, as its block has it.
    pub(super) taken: Option<u64>,
    /// Releases posted so far.
    pub(super) posted: u64,
    /// True where the loop has seen that the gate is closed.
    pub(super) left: bool,
}

/// An act of the supervising thread that a lifecycle asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing.
    Nothing,
    /// Clear the block, and start the program.
    Start,
    /// Give its thread its CPU and its priority, and open the gate.
    Admit,
    /// Say that it takes no releases.
    Note,
    /// End everything: it takes no releases, and that is its policy.
    Stop,
    /// Close the gate; the process goes on without releases.
    Dismiss,
    /// Close the gate, and end the process.
    Kill(Cause),
    /// Close the gate; the process is gone, and the safe value is its output.
    Reap(ProcessEnd),
    /// Clear the block for whoever comes by name.
    Free,
}

/// The restarts of a task whose process has ended; by default none. Limited, and slower each time,
/// so that a task that cannot run takes nothing from the others.
///
/// `Restart::ON_FAILURE.most(2)`; a field is set directly too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restart {
    /// The most restarts in a row, 0 for none: a process that ran for [`Restart::WELL`] begins a
    /// new row.
    pub most: u32,
    /// The pause before the first restart, not negative; twice as long before each further one in a
    /// row, up to [`Restart::LONGEST`].
    pub pause: Span,
    /// True for a restart also where the process did not fail.
    pub always: bool,
}

impl Default for Restart {
    /// No restarts.
    fn default() -> Self {
        Self { most: 0, ..Self::ON_FAILURE }
    }
}

impl Restart {
    /// Restarts where it failed (an exit status other than 0, a signal, or an end by its
    /// supervisor): five times in a row, from 100 ms on.
    pub const ON_FAILURE: Self = Self { most: 5, pause: Span::from_ms(100), always: false };
    /// Restarts however it ended: five times in a row, from 100 ms on.
    pub const ALWAYS: Self = Self { always: true, ..Self::ON_FAILURE };
    /// The longest pause before a restart.
    pub const LONGEST: Span = Span::from_ms(10_000);
    /// The time after which a process that was released ran well.
    pub const WELL: Span = Span::from_ms(60_000);

    /// Sets [`Restart::most`].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn most(mut self, restarts: u32) -> Self {
        self.most = restarts;
        self
    }

    /// Sets [`Restart::pause`].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = span(pause);
        self
    }
}

/// Restarts of a task: in a row, and in total.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    in_row: u32,
    total: u64,
}

impl Count {
    /// The instant at which a process that ended at `now` is started again; `None` for never. It
    /// had been released for `ran`.
    fn next(
        &mut self,
        restart: &Restart,
        failed: bool,
        ran: Span,
        now: Instant,
    ) -> Option<Instant> {
        let wanted = failed || restart.always;
        if ran >= Restart::WELL {
            self.in_row = 0;
        }
        if !wanted || self.in_row >= restart.most {
            return None;
        }
        let doubled = restart.pause.as_ns().max(0).saturating_mul(1 << self.in_row.min(40));
        self.in_row += 1;
        self.total += 1;
        Some(now + Span::from_ns(doubled).min(Restart::LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    const ALIVE: Seen = Seen {
        ended: None,
        state: TaskState::Empty,
        overran: 0,
        taken: None,
        posted: 0,
        left: true,
    };

    fn is(state: TaskState) -> Seen {
        Seen { state, ..ALIVE }
    }

    fn ended(exit: ProcessEnd, state: TaskState) -> Seen {
        Seen { ended: Some(exit), state, ..ALIVE }
    }

    fn lifecycle(restart: Restart) -> Lifecycle {
        let restart = Restart { most: restart.most.min(1), ..restart };
        Lifecycle::new(true, (OnOverrun::Terminate, 10), Span::from_ms(1_000), restart, at(0))
    }

    #[test]
    fn a_whole_life() {
        let mut lifecycle = lifecycle(Restart::ON_FAILURE);
        assert_eq!(lifecycle.tick(&ALIVE, at(0)), Act::Start);
        assert_eq!(lifecycle.tick(&ALIVE, at(5)), Act::Nothing);
        assert_eq!(lifecycle.tick(&is(TaskState::Asking), at(10)), Act::Admit);
        assert_eq!(lifecycle.tick(&is(TaskState::Asking), at(15)), Act::Nothing);
        assert_eq!(lifecycle.tick(&is(TaskState::Running), at(20)), Act::Nothing);
        assert_eq!(lifecycle.tick(&is(TaskState::Gone), at(25)), Act::Dismiss);
        assert_eq!(lifecycle.tick(&is(TaskState::Gone), at(30)), Act::Nothing);
        let exit = ProcessEnd::Status(0);
        assert_eq!(lifecycle.tick(&ended(exit, TaskState::Gone), at(35)), Act::Reap(exit));
        let unseen = Seen { left: false, ..ALIVE };
        assert_eq!(lifecycle.tick(&unseen, at(40)), Act::Nothing, "the loop may still touch it");
        assert_eq!(lifecycle.tick(&ALIVE, at(45)), Act::Nothing);
        assert!(lifecycle.is_over());
    }

    #[test]
    fn an_overrun_ends_it_and_it_is_started_again_as_often_as_it_may() {
        let mut lifecycle = lifecycle(Restart::ON_FAILURE);
        assert_eq!(lifecycle.tick(&ALIVE, at(0)), Act::Start);
        assert_eq!(lifecycle.tick(&is(TaskState::Asking), at(1)), Act::Admit);
        let over = Seen { overran: 1, ..is(TaskState::Running) };
        assert_eq!(lifecycle.tick(&over, at(2)), Act::Kill(Cause::Overran));
        assert_eq!(lifecycle.tick(&over, at(3)), Act::Nothing);
        let killed = Seen { overran: 1, ..ended(ProcessEnd::Signal(9), TaskState::Running) };
        assert_eq!(lifecycle.tick(&killed, at(4)), Act::Reap(ProcessEnd::Signal(9)));
        let after = Seen { overran: 1, ..ALIVE };
        assert_eq!(lifecycle.tick(&after, at(5)), Act::Nothing);
        assert_eq!(lifecycle.state, LifecycleState::Due(at(105)));
        assert_eq!(lifecycle.tick(&after, at(104)), Act::Nothing);
        assert_eq!(lifecycle.tick(&after, at(105)), Act::Start);
        // This time it ends before it registers.
        let at_once = Seen { overran: 1, ..ended(ProcessEnd::Status(1), TaskState::Empty) };
        assert_eq!(lifecycle.tick(&at_once, at(106)), Act::Reap(ProcessEnd::Status(1)));
        assert_eq!(lifecycle.tick(&after, at(107)), Act::Nothing);
        assert!(lifecycle.is_over(), "once in a row was all");
        assert_eq!(lifecycle.restarts.total, 1);
    }

    #[test]
    fn an_overrun_is_nothing_to_a_task_that_is_not_to_be_terminated() {
        let mut lifecycle = Lifecycle { policy: OnOverrun::Skip, ..lifecycle(Restart::default()) };
        lifecycle.tick(&ALIVE, at(0));
        lifecycle.tick(&is(TaskState::Asking), at(1));
        let over = Seen { overran: 9, ..is(TaskState::Running) };
        assert_eq!(lifecycle.tick(&over, at(2)), Act::Nothing);
    }

    #[test]
    fn who_does_not_register_or_writes_rubbish_is_ended() {
        let mut silent = lifecycle(Restart::default());
        silent.tick(&ALIVE, at(0));
        assert_eq!(silent.tick(&ALIVE, at(1_000)), Act::Nothing);
        assert_eq!(silent.tick(&ALIVE, at(1_001)), Act::Kill(Cause::NeverRegistered));
        for state in [TaskState::Unknown, TaskState::Running] {
            let mut invalid = lifecycle(Restart::default());
            invalid.tick(&ALIVE, at(0));
            assert_eq!(invalid.tick(&is(state), at(1)), Act::Kill(Cause::Invalid), "{state:?}");
        }
        let mut later = lifecycle(Restart::default());
        later.tick(&ALIVE, at(0));
        later.tick(&is(TaskState::Asking), at(1));
        assert_eq!(later.tick(&is(TaskState::Unknown), at(2)), Act::Kill(Cause::Invalid));
    }

    #[test]
    fn who_registers_and_leaves_between_two_looks_is_waited_for() {
        for (exit, failed) in [(ProcessEnd::Status(0), false), (ProcessEnd::Status(3), true)] {
            let mut brief = lifecycle(Restart::default());
            brief.tick(&ALIVE, at(0));
            assert_eq!(brief.tick(&is(TaskState::Gone), at(1)), Act::Nothing);
            assert_eq!(brief.tick(&ended(exit, TaskState::Gone), at(2)), Act::Reap(exit));
            assert!(matches!(brief.state, LifecycleState::Leaving(is, _) if is == failed));
        }
        let mut lingering = lifecycle(Restart::default());
        lingering.tick(&ALIVE, at(0));
        let later = lingering.tick(&is(TaskState::Gone), at(1_001));
        assert_eq!(later, Act::Kill(Cause::NeverRegistered));
    }

    #[test]
    fn a_block_without_a_program_is_given_once_and_free_again() {
        let restart = Restart::default();
        let mut lifecycle =
            Lifecycle::new(false, (OnOverrun::Skip, 10), Span::from_ms(1_000), restart, at(0));
        assert_eq!(lifecycle.tick(&ALIVE, at(0)), Act::Nothing);
        assert!(lifecycle.join(at(1)) && !lifecycle.join(at(1)), "one at a time");
        assert_eq!(lifecycle.tick(&is(TaskState::Asking), at(2)), Act::Admit);
        assert_eq!(lifecycle.tick(&is(TaskState::Gone), at(3)), Act::Dismiss);
        // It goes on without us.
        assert_eq!(lifecycle.tick(&is(TaskState::Gone), at(4)), Act::Reap(ProcessEnd::Unknown));
        assert_eq!(lifecycle.tick(&ALIVE, at(5)), Act::Free);
        assert!(lifecycle.join(at(6)));
        // One that does not behave is sent away, not ended.
        assert_eq!(lifecycle.tick(&is(TaskState::Running), at(7)), Act::Dismiss);
        assert_eq!(lifecycle.dismissed_for(), Some(Cause::Invalid));
        let gone = ended(ProcessEnd::Unknown, TaskState::Empty);
        assert_eq!(lifecycle.tick(&gone, at(7)), Act::Reap(ProcessEnd::Unknown));
        assert_eq!(lifecycle.tick(&ALIVE, at(8)), Act::Free);
    }

    #[test]
    fn who_takes_no_releases_is_told_ended_or_ends_all_as_its_policy_says() {
        let at_release = |state, taken, posted| Seen { taken: Some(taken), posted, ..is(state) };
        for (policy, act) in [
            (OnOverrun::Terminate, Act::Kill(Cause::Silent)),
            (OnOverrun::Stop, Act::Stop),
            (OnOverrun::Skip, Act::Note),
        ] {
            let mut lifecycle = Lifecycle { policy, ..lifecycle(Restart::default()) };
            lifecycle.tick(&ALIVE, at(0));
            // What was posted to others before counts for nothing.
            lifecycle.tick(&Seen { posted: 50, ..is(TaskState::Asking) }, at(1));
            let mut tick =
                |state, taken, posted| lifecycle.tick(&at_release(state, taken, posted), at(2));
            assert_eq!(tick(TaskState::Idle, 7, 59), Act::Nothing, "it took one");
            assert_eq!(tick(TaskState::Idle, 7, 68), Act::Nothing);
            assert_eq!(
                tick(TaskState::Running, 7, 90),
                Act::Nothing,
                "a long cycle is something else"
            );
            assert_eq!(tick(TaskState::Idle, 7, 99), Act::Nothing);
            assert_eq!(tick(TaskState::Idle, 7, 100), act);
            assert_eq!(tick(TaskState::Idle, 7, 200), Act::Nothing, "once");
        }
        let mut silent = lifecycle(Restart::default());
        silent.tick(&ALIVE, at(0));
        silent.tick(&is(TaskState::Asking), at(1));
        let never = Seen { posted: 10, ..is(TaskState::Asking) };
        assert_eq!(silent.tick(&never, at(2)), Act::Kill(Cause::Silent), "not even its first");
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_the_row_has_an_end() {
        let restart = Restart { most: 9, ..Restart::ALWAYS };
        let mut count = Count::default();
        let mut next = |ran_ms| count.next(&restart, false, Span::from_ms(ran_ms), at(1_000));
        let pauses = [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000];
        for pause in pauses {
            assert_eq!(next(5), Some(at(1_000 + pause)));
        }
        assert_eq!(next(5), None);
        assert_eq!(next(60_000), Some(at(1_100)), "it ran well");
        assert_eq!(count.total, 10);
    }

    #[test]
    fn who_asks_for_failures_gets_those_alone() {
        let (ran, now) = (Span::ZERO, at(0));
        let failures = Restart::ON_FAILURE;
        assert_eq!(Count::default().next(&failures, false, ran, now), None);
        assert!(Count::default().next(&failures, true, ran, now).is_some());
        assert_eq!(Count::default().next(&Restart::default(), true, ran, now), None);
        let none = Restart { most: 0, ..failures };
        assert_eq!(Count::default().next(&none, true, ran, now), None);
    }
}
