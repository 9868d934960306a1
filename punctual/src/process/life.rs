//! The life of a seat as its supervisor leads it: started, seated, ended, left, started again.
//!
//! Pure: what was seen goes in, what is to be done comes out; runs on made-up clocks. Each thing is
//! done once: the state changes with it.

use punctual_core::seat::State;
use punctual_core::time::{Instant, Span};

use super::restart::{Count, Restart};

/// Why a supervisor ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It did not register in time.
    NeverRegistered,
    /// It was still running at its next release, and its policy is to be terminated.
    Overran,
    /// Its seat holds what no task writes there.
    Rubbish,
    /// It registered a thread that is not its own.
    ForeignThread,
    /// The supervisor ends.
    Over,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody can tell: it is no child of the supervisor's.
    Unknown,
    /// It could not be started, with this errno.
    NotStarted(i32),
}

/// What the supervisor sees of a seat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// How the process ended, if it did.
    pub(super) ended: Option<Exit>,
    /// What its seat says.
    pub(super) state: State,
    /// Releases so far that found it still running.
    pub(super) overran: u64,
    /// Whether the loop has seen that the door is closed.
    pub(super) left: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Nothing.
    Nothing,
    /// Clear the seat, and start the program.
    Start,
    /// Give its thread its place, and open the door.
    Seat,
    /// Close the door; the process goes on by itself.
    Dismiss,
    /// Close the door, and end the process.
    Kill(Cause),
    /// Close the door; the process is gone, and its outputs are the safe value's.
    Bury(Exit),
    /// Clear the seat for whoever comes by name.
    Free,
}

/// Where a seat is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Free for who joins by name.
    Free,
    /// To be started at this instant.
    Due(Instant),
    /// Started at this instant; has not registered.
    Started(Instant),
    /// Released since this instant.
    Seated(Instant),
    /// Unregistered, or sent away for a reason; its process may go on.
    Dismissed(Instant, Option<Cause>),
    /// To be ended, which was asked for.
    Ending(Instant, Cause),
    /// The process is gone; the loop has not left the seat. Whether it failed, and how long it ran.
    Leaving(bool, Span),
    /// For good.
    Over,
}

/// The life of one seat.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) stage: Stage,
    /// Whether it has a program; else it is for who joins.
    program: bool,
    /// Whether an overrun ends its process.
    terminates: bool,
    register_within: Span,
    restart: Restart,
    pub(super) restarts: Count,
    overran: u64,
}

impl Life {
    /// A seat whose program, if it has one, is to be started at once.
    pub(super) fn new(
        program: bool,
        terminates: bool,
        register_within: Span,
        restart: Restart,
        now: Instant,
    ) -> Self {
        let stage = if program { Stage::Due(now) } else { Stage::Free };
        let restarts = Count::default();
        Self { stage, program, terminates, register_within, restart, restarts, overran: 0 }
    }

    /// Somebody has joined; only a free seat is given.
    pub(super) fn join(&mut self, now: Instant) -> bool {
        let free = self.stage == Stage::Free;
        if free {
            self.stage = Stage::Started(now);
        }
        free
    }

    /// Whether nothing will run here any more.
    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// What is to be done at `now`.
    pub(super) fn tick(&mut self, seen: &Seen, now: Instant) -> Act {
        let overran = seen.overran != self.overran;
        self.overran = seen.overran;
        match self.stage {
            Stage::Free | Stage::Over => Act::Nothing,
            Stage::Due(at) if now >= at => {
                self.stage = Stage::Started(now);
                Act::Start
            }
            Stage::Due(_) => Act::Nothing,
            Stage::Started(since) => self.started(seen, since, now),
            Stage::Seated(since) => self.seated(seen, since, now, overran),
            Stage::Dismissed(since, _) => match seen.ended {
                // One that was joined may go on for ever, and is nothing to us.
                None if self.program => Act::Nothing,
                None => self.bury(Exit::Unknown, false, now - since),
                Some(exit) => self.bury(exit, exit != Exit::Status(0), now - since),
            },
            Stage::Ending(since, _) => match seen.ended {
                None => Act::Nothing,
                Some(exit) => self.bury(exit, true, now - since),
            },
            Stage::Leaving(..) if !seen.left => Act::Nothing,
            Stage::Leaving(failed, ran) => self.again(failed, ran, now),
        }
    }

    fn started(&mut self, seen: &Seen, since: Instant, now: Instant) -> Act {
        match (seen.ended, seen.state) {
            (Some(exit), _) => self.bury(exit, true, Span::ZERO),
            (None, State::Asking) => {
                self.stage = Stage::Seated(now);
                Act::Seat
            }
            (None, State::Empty) if now - since <= self.register_within => Act::Nothing,
            (None, State::Empty) => self.kill(Cause::NeverRegistered, now),
            (None, _) => self.kill(Cause::Rubbish, now),
        }
    }

    fn seated(&mut self, seen: &Seen, since: Instant, now: Instant, overran: bool) -> Act {
        if let Some(exit) = seen.ended {
            // One that says so before it goes has not failed.
            let failed = seen.state != State::Gone || exit != Exit::Status(0);
            return self.bury(exit, failed, now - since);
        }
        match seen.state {
            State::Gone => {
                self.stage = Stage::Dismissed(since, None);
                Act::Dismiss
            }
            State::Unknown | State::Empty => self.kill(Cause::Rubbish, now),
            State::Asking | State::Idle | State::Running if overran && self.terminates => {
                self.kill(Cause::Overran, now)
            }
            State::Asking | State::Idle | State::Running => Act::Nothing,
        }
    }

    /// To be ended by its supervisor. A process that was started by hand is ended for an overrun
    /// alone, and sent away otherwise.
    pub(super) fn kill(&mut self, cause: Cause, now: Instant) -> Act {
        // How long it ran counts, not how long it takes to end.
        let since = match self.stage {
            Stage::Started(_) => now,
            Stage::Seated(since) | Stage::Dismissed(since, _) => since,
            _ => return Act::Nothing,
        };
        if self.program || cause == Cause::Overran {
            self.stage = Stage::Ending(since, cause);
            return Act::Kill(cause);
        }
        self.stage = Stage::Dismissed(since, Some(cause));
        Act::Dismiss
    }

    /// Why it was sent away; `None` where it left by itself.
    pub(super) fn dismissed_for(&self) -> Option<Cause> {
        match self.stage {
            Stage::Dismissed(_, cause) => cause,
            _ => None,
        }
    }

    fn bury(&mut self, exit: Exit, failed: bool, ran: Span) -> Act {
        self.stage = Stage::Leaving(failed, ran);
        Act::Bury(exit)
    }

    fn again(&mut self, failed: bool, ran: Span, now: Instant) -> Act {
        if !self.program {
            self.stage = Stage::Free;
            return Act::Free;
        }
        let next = self.restarts.next(&self.restart, failed, ran, now);
        self.stage = next.map_or(Stage::Over, Stage::Due);
        Act::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::super::restart::When;
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    const ALIVE: Seen = Seen { ended: None, state: State::Empty, overran: 0, left: true };

    fn is(state: State) -> Seen {
        Seen { state, ..ALIVE }
    }

    fn ended(exit: Exit, state: State) -> Seen {
        Seen { ended: Some(exit), state, ..ALIVE }
    }

    fn life(when: When) -> Life {
        let restart = Restart { when, most: 1, ..Restart::default() };
        Life::new(true, true, Span::from_ms(1_000), restart, at(0))
    }

    #[test]
    fn a_whole_life() {
        let mut life = life(When::OnFailure);
        assert_eq!(life.tick(&ALIVE, at(0)), Act::Start);
        assert_eq!(life.tick(&ALIVE, at(5)), Act::Nothing);
        assert_eq!(life.tick(&is(State::Asking), at(10)), Act::Seat);
        assert_eq!(life.tick(&is(State::Asking), at(15)), Act::Nothing);
        assert_eq!(life.tick(&is(State::Running), at(20)), Act::Nothing);
        assert_eq!(life.tick(&is(State::Gone), at(25)), Act::Dismiss);
        assert_eq!(life.tick(&is(State::Gone), at(30)), Act::Nothing);
        let exit = Exit::Status(0);
        assert_eq!(life.tick(&ended(exit, State::Gone), at(35)), Act::Bury(exit));
        let unseen = Seen { left: false, ..ALIVE };
        assert_eq!(life.tick(&unseen, at(40)), Act::Nothing, "the loop may still touch it");
        assert_eq!(life.tick(&ALIVE, at(45)), Act::Nothing);
        assert!(life.is_over());
    }

    #[test]
    fn an_overrun_ends_it_and_it_is_started_again_as_often_as_it_may() {
        let mut life = life(When::OnFailure);
        assert_eq!(life.tick(&ALIVE, at(0)), Act::Start);
        assert_eq!(life.tick(&is(State::Asking), at(1)), Act::Seat);
        let over = Seen { overran: 1, ..is(State::Running) };
        assert_eq!(life.tick(&over, at(2)), Act::Kill(Cause::Overran));
        assert_eq!(life.tick(&over, at(3)), Act::Nothing);
        let killed = Seen { overran: 1, ..ended(Exit::Signal(9), State::Running) };
        assert_eq!(life.tick(&killed, at(4)), Act::Bury(Exit::Signal(9)));
        let after = Seen { overran: 1, ..ALIVE };
        assert_eq!(life.tick(&after, at(5)), Act::Nothing);
        assert_eq!(life.stage, Stage::Due(at(105)));
        assert_eq!(life.tick(&after, at(104)), Act::Nothing);
        assert_eq!(life.tick(&after, at(105)), Act::Start);
        // This time it ends before it registers.
        let at_once = Seen { overran: 1, ..ended(Exit::Status(1), State::Empty) };
        assert_eq!(life.tick(&at_once, at(106)), Act::Bury(Exit::Status(1)));
        assert_eq!(life.tick(&after, at(107)), Act::Nothing);
        assert!(life.is_over(), "once in a row was all");
        assert_eq!(life.restarts.all, 1);
    }

    #[test]
    fn an_overrun_is_nothing_to_a_task_that_is_not_to_be_terminated() {
        let mut life = Life { terminates: false, ..life(When::Never) };
        life.tick(&ALIVE, at(0));
        life.tick(&is(State::Asking), at(1));
        let over = Seen { overran: 9, ..is(State::Running) };
        assert_eq!(life.tick(&over, at(2)), Act::Nothing);
    }

    #[test]
    fn who_does_not_register_or_writes_rubbish_is_ended() {
        let mut silent = life(When::Never);
        silent.tick(&ALIVE, at(0));
        assert_eq!(silent.tick(&ALIVE, at(1_000)), Act::Nothing);
        assert_eq!(silent.tick(&ALIVE, at(1_001)), Act::Kill(Cause::NeverRegistered));
        for state in [State::Unknown, State::Running, State::Gone] {
            let mut rubbish = life(When::Never);
            rubbish.tick(&ALIVE, at(0));
            assert_eq!(rubbish.tick(&is(state), at(1)), Act::Kill(Cause::Rubbish), "{state:?}");
        }
        let mut later = life(When::Never);
        later.tick(&ALIVE, at(0));
        later.tick(&is(State::Asking), at(1));
        assert_eq!(later.tick(&is(State::Unknown), at(2)), Act::Kill(Cause::Rubbish));
    }

    #[test]
    fn a_seat_without_a_program_is_given_once_and_free_again() {
        let restart = Restart::default();
        let mut life = Life::new(false, false, Span::from_ms(1_000), restart, at(0));
        assert_eq!(life.tick(&ALIVE, at(0)), Act::Nothing);
        assert!(life.join(at(1)) && !life.join(at(1)), "one at a time");
        assert_eq!(life.tick(&is(State::Asking), at(2)), Act::Seat);
        assert_eq!(life.tick(&is(State::Gone), at(3)), Act::Dismiss);
        // It goes on without us.
        assert_eq!(life.tick(&is(State::Gone), at(4)), Act::Bury(Exit::Unknown));
        assert_eq!(life.tick(&ALIVE, at(5)), Act::Free);
        assert!(life.join(at(6)));
        // One that does not behave is sent away, not ended.
        assert_eq!(life.tick(&is(State::Running), at(7)), Act::Dismiss);
        assert_eq!(life.dismissed_for(), Some(Cause::Rubbish));
        let gone = ended(Exit::Unknown, State::Empty);
        assert_eq!(life.tick(&gone, at(7)), Act::Bury(Exit::Unknown));
        assert_eq!(life.tick(&ALIVE, at(8)), Act::Free);
    }
}
