//! A session: stimuli on a grid, answers stamped, and what became of them.
//!
//! Time is ticks of the board's clock, an argument. [`Session::poll`] says what is to be done now,
//! and is asked again and again; [`Session::receive`] and [`Session::edge`] take answers in.

use crate::command::{Command, Path};
use crate::figures::SessionFigures;
use crate::frame::{Frame, FrameKind, LinkEvent, VERSION};

/// Stimuli that wait for their answers at most: one that is older is lost.
pub const WAITED: usize = 256;
/// Requests for a session at most, and time that each waits for an answer, µs.
const HELLOS: u32 = 8;
const HELLO_US: u64 = 500_000;
/// Time that the last answers may take, µs.
const ANSWERS_US: u64 = 500_000;
/// In the place of an instant: the stimulus has its answer, or was never sent.
const NONE: u64 = u64::MAX;

/// The next action of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionAct {
    /// Nothing before the next poll.
    Nothing,
    /// Send these frames' bytes: no stimulus.
    Send(Frame),
    /// Send a stimulus, now: its frame, or an edge. [`Session::sent`] says when that was.
    Stimulus(Frame),
    /// It is over.
    Over(Ending),
}

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All stimuli were sent, and the last ones answered or waited for.
    Done,
    /// Nobody welcomed it.
    NoResponder,
    /// The responder has this version.
    Version(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Requests a session: requests so far, and when the next one is due.
    Greets(u32, u64),
    /// Stimulates since this instant.
    Stimulates(u64),
    /// Waits for the last answers until this instant.
    Waits(u64),
    Over(Ending),
}

/// A session.
#[derive(Debug)]
pub struct Session {
    id: u64,
    command: Command,
    ticks_per_us: u64,
    state: State,
    /// Places of the grid that came.
    places: u32,
    /// When each stimulus was sent, by its number modulo [`WAITED`].
    sent: [u64; WAITED],
    /// When the one after each was due, by the grid.
    next: [u64; WAITED],
    /// That of the stimulus of the last poll.
    next_due: u64,
    figures: SessionFigures,
}

impl Session {
    /// One that begins at `now`; `id` is one that no earlier session had.
    pub fn new(command: Command, id: u64, ticks_per_us: u32, now: u64) -> Self {
        let ticks_per_us = u64::from(ticks_per_us);
        let period = u64::from(command.period_us) * ticks_per_us;
        let state = match command.path {
            Path::Serial => State::Greets(0, now),
            Path::Edges => State::Stimulates(now + period),
        };
        Self {
            id,
            command,
            ticks_per_us,
            state,
            places: 0,
            sent: [NONE; WAITED],
            next: [NONE; WAITED],
            next_due: NONE,
            figures: SessionFigures::default(),
        }
    }

    /// The way of stimuli out.
    pub fn path(&self) -> Path {
        self.command.path
    }

    /// Its counts and latencies so far.
    pub fn figures(&self) -> &SessionFigures {
        &self.figures
    }

    fn ticks(&self, us: u64) -> u64 {
        us * self.ticks_per_us
    }

    fn period(&self) -> u64 {
        self.ticks(self.command.period_us.into())
    }

    /// The action to take at `now`, in ticks.
    pub fn poll(&mut self, now: u64) -> SessionAct {
        match self.state {
            State::Over(ending) => SessionAct::Over(ending),
            State::Greets(_, due) if now < due => SessionAct::Nothing,
            State::Greets(HELLOS, _) => self.end(Ending::NoResponder),
            State::Greets(requests, _) => {
                self.state = State::Greets(requests + 1, now + self.ticks(HELLO_US));
                SessionAct::Send(Frame { kind: FrameKind::Hello, session: self.id, number: 0 })
            }
            State::Stimulates(first) => self.stimulate(first, now),
            State::Waits(until) => {
                let answered = self.figures.latency.count() == self.figures.stimuli;
                if answered || now >= until { self.end(Ending::Done) } else { SessionAct::Nothing }
            }
        }
    }

    fn stimulate(&mut self, first: u64, now: u64) -> SessionAct {
        if self.places == self.command.stimuli {
            self.state = State::Waits(now + self.ticks(ANSWERS_US));
            return SessionAct::Nothing;
        }
        let due = first + u64::from(self.places) * self.period();
        if now < due {
            return SessionAct::Nothing;
        }
        self.places += 1;
        self.next_due = due + self.period();
        // As the host does it: one that is late by a period is not sent.
        if now >= self.next_due {
            self.figures.not_sent += 1;
            return SessionAct::Nothing;
        }
        let number = u64::from(self.figures.stimuli) + 1;
        SessionAct::Stimulus(Frame { kind: FrameKind::Stimulus, session: self.id, number })
    }

    /// The stimulus of the last poll went out at this instant.
    pub fn sent(&mut self, at: u64) {
        self.figures.stimuli += 1;
        let place = place(self.figures.stimuli.into());
        (self.sent[place], self.next[place]) = (at, self.next_due);
    }

    /// The stimulus of the last poll did not go out: the line was full.
    pub fn not_sent(&mut self) {
        self.figures.not_sent += 1;
    }

    /// Takes in what came over the line, and had come whole at this instant.
    pub fn receive(&mut self, received: LinkEvent, at: u64) {
        let frame = match received {
            LinkEvent::Frame(frame) => frame,
            LinkEvent::WrongVersion { version, .. } => return self.refused(version),
            LinkEvent::Foreign => {
                self.figures.foreign += 1;
                return;
            }
        };
        match frame.kind {
            FrameKind::Welcome if frame.session == self.id => {
                if let State::Greets(..) = self.state {
                    self.state = State::Stimulates(at + self.period());
                }
            }
            FrameKind::Answer if frame.session == self.id => self.answer(frame.number, at),
            FrameKind::Answer | FrameKind::Welcome => self.figures.replayed += 1,
            // Ours is of another version than the one who responds wants.
            FrameKind::Refusal => self.refused(VERSION),
            FrameKind::Hello | FrameKind::Stimulus => self.figures.foreign += 1,
        }
    }

    /// Takes in an edge, which answers the newest stimulus.
    pub fn edge(&mut self, at: u64) {
        self.answer(self.figures.stimuli.into(), at);
    }

    fn answer(&mut self, number: u64, at: u64) {
        let newest = u64::from(self.figures.stimuli);
        let is_waited_for = number >= 1 && number <= newest && newest - number < WAITED as u64;
        if !is_waited_for {
            self.figures.replayed += 1;
            return;
        }
        let sent = core::mem::replace(&mut self.sent[place(number)], NONE);
        if sent == NONE {
            self.figures.duplicates += 1;
            return;
        }
        self.figures.late += u32::from(at >= self.next[place(number)]);
        self.figures.latency.push(at.saturating_sub(sent));
    }

    fn refused(&mut self, version: u8) {
        if let State::Greets(..) = self.state {
            self.state = State::Over(Ending::Version(version));
        } else {
            self.figures.foreign += 1;
        }
    }

    fn end(&mut self, ending: Ending) -> SessionAct {
        self.state = State::Over(ending);
        SessionAct::Over(ending)
    }
}

fn place(number: u64) -> usize {
    (number % WAITED as u64) as usize
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    const SERIAL: Command = Command { path: Path::Serial, period_us: 1_000, stimuli: 4 };

    /// Ticks of a clock of 125 MHz.
    fn us(us: u64) -> u64 {
        us * 125
    }

    fn welcome(session: &mut Session, at: u64) {
        let hello = Frame { kind: FrameKind::Hello, session: 7, number: 0 };
        assert_eq!(session.poll(at), SessionAct::Send(hello));
        session.receive(LinkEvent::Frame(Frame { kind: FrameKind::Welcome, ..hello }), at);
    }

    fn answer(number: u64) -> LinkEvent {
        LinkEvent::Frame(Frame { kind: FrameKind::Answer, session: 7, number })
    }

    #[test]
    fn stimuli_come_on_their_grid_and_their_answers_are_stamped() {
        let mut session = Session::new(SERIAL, 7, 125, us(10));
        welcome(&mut session, us(10));
        let mut sent = Vec::new();
        for now in 10..6_000 {
            match session.poll(us(now)) {
                SessionAct::Stimulus(frame) => {
                    session.sent(us(now));
                    sent.push((frame.number, now));
                }
                SessionAct::Over(ending) => {
                    assert_eq!(ending, Ending::Done);
                    break;
                }
                _ => {}
            }
            if let Some((number, at)) = sent.last()
                && now == at + 30
            {
                session.receive(answer(*number), us(now));
            }
        }
        assert_eq!(sent, [(1, 1_010), (2, 2_010), (3, 3_010), (4, 4_010)]);
        let figures = session.figures();
        assert_eq!((figures.stimuli, figures.latency.count(), figures.late), (4, 4, 0));
        assert_eq!(figures.latency.ends(), Some((us(30), us(30))));
    }

    #[test]
    fn each_answer_is_counted_as_what_it_is() {
        let mut session = Session::new(SERIAL, 7, 125, 0);
        welcome(&mut session, 0);
        for k in 1..=3 {
            assert!(matches!(session.poll(us(1_000 * k)), SessionAct::Stimulus(_)));
            session.sent(us(1_000 * k));
        }
        session.receive(answer(1), us(3_100));
        session.receive(answer(1), us(3_110));
        for number in [0, 4, u64::MAX] {
            session.receive(answer(number), us(3_120));
        }
        let stray = Frame { kind: FrameKind::Answer, session: 8, number: 2 };
        session.receive(LinkEvent::Frame(stray), us(3_130));
        session.receive(LinkEvent::Frame(Frame { kind: FrameKind::Stimulus, ..stray }), us(3_140));
        session.receive(LinkEvent::Foreign, us(3_150));
        session.receive(LinkEvent::WrongVersion { version: 9, hello: false }, us(3_150));
        let figures = session.figures();
        assert_eq!((figures.latency.count(), figures.late, figures.duplicates), (1, 1, 1));
        assert_eq!((figures.replayed, figures.foreign), (4, 3));
        // Late by a period: not sent, and the grid goes on.
        assert_eq!(session.poll(us(5_000)), SessionAct::Nothing);
        assert_eq!(session.figures().not_sent, 1);
        assert_eq!(session.poll(us(5_000)), SessionAct::Nothing, "all places came");
        assert_eq!(session.poll(us(504_999)), SessionAct::Nothing);
        assert_eq!(session.poll(us(505_000)), SessionAct::Over(Ending::Done));
    }

    #[test]
    fn an_answer_is_late_by_the_grid_also_where_its_stimulus_was() {
        let mut session = Session::new(SERIAL, 7, 125, 0);
        welcome(&mut session, 0);
        for (number, answered) in [(1, 2_010), (2, 2_999)] {
            // Due at a whole millisecond, sent 400 µs later.
            let at = us(1_000 * number + 400);
            assert!(matches!(session.poll(at), SessionAct::Stimulus(_)));
            session.sent(at);
            session.receive(answer(number), us(answered));
        }
        assert_eq!((session.figures().latency.count(), session.figures().late), (2, 1));
    }

    #[test]
    fn nobody_there_and_another_version_end_it() {
        let mut session = Session::new(SERIAL, 7, 125, 0);
        let mut hellos = 0;
        let ending = (0..=5_000).find_map(|ms| match session.poll(us(1_000 * ms)) {
            SessionAct::Send(_) => {
                hellos += 1;
                None
            }
            SessionAct::Over(ending) => Some((ms, ending)),
            _ => None,
        });
        assert_eq!((hellos, ending), (8, Some((4_000, Ending::NoResponder))));
        for (received, version) in [
            (LinkEvent::WrongVersion { version: 3, hello: false }, 3),
            (LinkEvent::Frame(Frame { kind: FrameKind::Refusal, session: 0, number: 0 }), VERSION),
        ] {
            let mut session = Session::new(SERIAL, 7, 125, 0);
            session.poll(0);
            session.receive(received, 1);
            assert_eq!(session.poll(2), SessionAct::Over(Ending::Version(version)));
        }
    }

    #[test]
    fn edges_need_no_welcome_and_an_answer_belongs_to_the_newest() {
        let command = Command { path: Path::Edges, ..SERIAL };
        let mut session = Session::new(command, 0, 125, 0);
        assert_eq!(session.poll(us(999)), SessionAct::Nothing);
        session.edge(us(999));
        assert_eq!(session.figures().replayed, 1, "before the first one");
        assert!(matches!(session.poll(us(1_000)), SessionAct::Stimulus(_)));
        session.sent(us(1_000));
        session.edge(us(1_012));
        session.edge(us(1_013));
        let figures = session.figures();
        assert_eq!((figures.latency.ends(), figures.duplicates), (Some((us(12), us(12))), 1));
    }

    #[test]
    fn an_answer_to_one_that_is_too_old_is_no_answer() {
        let many = Command { stimuli: 1_000, ..SERIAL };
        let mut session = Session::new(many, 7, 125, 0);
        welcome(&mut session, 0);
        for k in 1..=WAITED as u64 + 1 {
            assert!(matches!(session.poll(us(1_000 * k)), SessionAct::Stimulus(_)));
            session.sent(us(1_000 * k));
        }
        session.receive(answer(1), us(300_000));
        session.receive(answer(2), us(300_000));
        let figures = session.figures();
        assert_eq!((figures.replayed, figures.latency.count()), (1, 1));
    }
}
