//! The one who responds: answers each stimulus of one session at once.
//!
//! One thread, which sleeps until something arrives. Who floods it takes its CPU as far as
//! real-time throttling allows.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::RtThread;
use punctual_analysis::summary::Distribution;
use punctual_core::time::{Period, Span};
use punctual_engine::clocks::{MachineClock, StampCost};
use punctual_engine::session::ThreadSession;
use punctual_os::clock::{ClockId, now_ns};

use super::frame::{Frame, FrameKind, LinkEvent};
use super::link::{Arrival, Link, LinkName};
use super::{Others, RespondOutcome};
use crate::experiment::{
    ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError, ExperimentOutcome,
    demand, on_one_thread,
};
use crate::load::LoadSpec;

/// Time between two looks for a stop, ns.
const LOOK_NS: u64 = 50_000_000;
/// A session without a stimulus for this long may be followed by another one.
const IDLE_NS: u64 = 2_000_000_000;
/// Sessions that are remembered, so that what is replayed from them opens no new one.
const REMEMBERED: usize = 64;
/// The share of a CPU that it may take, where nothing is known of who stimulates: a tenth of each
/// millisecond.
const SHARE: f64 = 0.1;

/// Answers the stimuli of another machine.
#[derive(Debug)]
pub struct RespondExperiment {
    /// The link that stimuli come from.
    pub link: Link,
    /// Its name.
    pub name: LinkName,
    /// The thread that answers.
    pub thread: RtThread,
    /// Time that it answers; `None` until it is stopped.
    pub duration: Option<Span>,
}

/// The session that is answered.
#[derive(Clone, Copy, Debug)]
struct Session {
    id: u64,
    from: Option<SocketAddr>,
    last: u64,
    seen_ns: u64,
}

/// Which frames are answered, and how: no more than one frame for each that arrives.
#[derive(Debug, Default)]
struct Responder {
    session: Option<Session>,
    past: VecDeque<u64>,
    sessions: u64,
    answered: u64,
    not_sent: u64,
    skipped: u64,
    others: Others,
}

impl Responder {
    /// Counts what became of a frame that [`Responder::take`] gave: an answer, or none of one.
    fn passed_on(&mut self, frame: Frame, is_sent: bool) {
        if frame.kind == FrameKind::Answer {
            let count = if is_sent { &mut self.answered } else { &mut self.not_sent };
            *count += 1;
        }
    }

    /// The frame to send for an arrival; `None` where it has no answer.
    fn take(&mut self, arrival: &Arrival) -> Option<Frame> {
        match arrival.received {
            LinkEvent::Foreign => self.others.foreign += 1,
            LinkEvent::WrongVersion { hello, .. } => {
                self.others.wrong_version += 1;
                return hello.then_some(Frame { kind: FrameKind::Refusal, session: 0, number: 0 });
            }
            LinkEvent::Frame(frame) => match frame.kind {
                FrameKind::Hello => return self.open(frame, arrival),
                FrameKind::Stimulus => return self.answer(frame, arrival),
                FrameKind::Welcome | FrameKind::Answer | FrameKind::Refusal => {
                    self.others.foreign += 1;
                }
            },
        }
        None
    }

    fn open(&mut self, frame: Frame, arrival: &Arrival) -> Option<Frame> {
        let welcome = Some(Frame { kind: FrameKind::Welcome, session: frame.session, number: 0 });
        if let Some(own) = &self.session {
            if own.id == frame.session && own.from == arrival.from && own.last == 0 {
                return welcome;
            }
            if own.id != frame.session && arrival.at_ns < own.seen_ns + IDLE_NS {
                self.others.foreign += 1;
                return None;
            }
        }
        if self.is_past(frame.session) || self.session.is_some_and(|own| own.id == frame.session) {
            self.others.replayed += 1;
            return None;
        }
        if let Some(before) = self.session.take() {
            self.past.truncate(REMEMBERED - 1);
            self.past.push_front(before.id);
        }
        let (id, from) = (frame.session, arrival.from);
        self.session = Some(Session { id, from, last: 0, seen_ns: arrival.at_ns });
        self.sessions += 1;
        welcome
    }

    fn answer(&mut self, frame: Frame, arrival: &Arrival) -> Option<Frame> {
        let is_past = self.is_past(frame.session);
        match &mut self.session {
            Some(own) if own.id == frame.session && own.from == arrival.from => {
                if frame.number <= own.last {
                    self.others.replayed += 1;
                    return None;
                }
                // The number is whatever the other side says.
                self.skipped = self.skipped.saturating_add(frame.number - own.last - 1);
                (own.last, own.seen_ns) = (frame.number, arrival.at_ns);
                Some(Frame { kind: FrameKind::Answer, ..frame })
            }
            _ => {
                let count =
                    if is_past { &mut self.others.replayed } else { &mut self.others.foreign };
                *count += 1;
                None
            }
        }
    }

    fn is_past(&self, session: u64) -> bool {
        self.past.contains(&session)
    }
}

impl Experiment for RespondExperiment {
    type Outcome = RespondOutcome;

    fn demands(&self) -> Vec<Demand> {
        let demand_of = |period| demand(&self.thread, period, SHARE);
        Period::hz(1_000).map(demand_of).into_iter().collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<RespondOutcome>, ExperimentError> {
        let stop = context.stop;
        let mut measured = on_one_thread(stop, move || self.measure(stop))?;
        if measured.outcome.ended.is_some() {
            measured.end = ExperimentEnd::Lost;
        }
        Ok(measured)
    }
}

impl RespondExperiment {
    /// On the calling thread.
    fn measure(mut self, stop: &AtomicBool) -> ExperimentOutcome<RespondOutcome> {
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let session = ThreadSession::enter(self.thread.pinned_to(), self.thread.policy());
        let length_ns = self.duration.map(|duration| duration.as_ns().max(0).unsigned_abs());
        let end_ns = length_ns.map_or(u64::MAX, |ns| now_ns(ClockId::Monotonic) + ns);
        let (mut responder, mut took) = (Responder::default(), Distribution::default());
        let mut ended = None;
        while !stop.load(Ordering::Relaxed) && ended.is_none() {
            let before_ns = now_ns(ClockId::Monotonic);
            if before_ns >= end_ns {
                break;
            }
            let arrival = match self.link.receive((before_ns + LOOK_NS).min(end_ns)) {
                Ok(Some(arrival)) => arrival,
                Ok(None) => continue,
                Err(why) => {
                    ended = Some(why.to_string());
                    break;
                }
            };
            let Some(frame) = responder.take(&arrival) else { continue };
            let sent = self.link.send(frame, arrival.from);
            responder.passed_on(frame, sent.is_ok());
            match sent {
                Ok(()) if frame.kind == FrameKind::Answer => {
                    let took_ns = now_ns(ClockId::Monotonic) - arrival.at_ns;
                    took.push(took_ns.cast_signed());
                }
                Ok(()) => {}
                // One who is gone, or a full link, costs its answer alone.
                Err(why) if why.kind() != ErrorKind::BrokenPipe => {}
                Err(why) => ended = Some(why.to_string()),
            }
        }
        let (policy, priority) = (session.policy().name().to_owned(), session.policy().priority());
        let outcome = RespondOutcome {
            link: self.name.to_string(),
            cpu: self.thread.pinned_to(),
            policy,
            priority,
            sessions: responder.sessions,
            answered: responder.answered,
            skipped: responder.skipped,
            not_sent: responder.not_sent,
            answer_ns: took.stats(),
            others: responder.others,
            ended,
        };
        let facts = ClockFacts::of(&clock, cost, None);
        ExperimentOutcome::of_thread(outcome, facts, session.refused().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{VERSION, parse};
    use super::*;

    fn arrival(kind: FrameKind, session: u64, number: u64, at_ns: u64) -> Arrival {
        Arrival { received: LinkEvent::Frame(Frame { kind, session, number }), at_ns, from: None }
    }

    fn kind(frame: Option<Frame>) -> Option<FrameKind> {
        frame.map(|frame| frame.kind)
    }

    #[test]
    fn a_session_is_opened_once_and_each_stimulus_answered_once() {
        let mut responder = Responder::default();
        assert_eq!(responder.take(&arrival(FrameKind::Stimulus, 7, 1, 0)), None, "no session yet");
        for _ in 0..2 {
            assert_eq!(
                kind(responder.take(&arrival(FrameKind::Hello, 7, 0, 0))),
                Some(FrameKind::Welcome)
            );
        }
        let answer = responder.take(&arrival(FrameKind::Stimulus, 7, 1, 1)).expect("an answer");
        assert_eq!((answer.kind, answer.session, answer.number), (FrameKind::Answer, 7, 1));
        assert_eq!(
            kind(responder.take(&arrival(FrameKind::Stimulus, 7, 5, 2))),
            Some(FrameKind::Answer)
        );
        for number in [5, 1, 0] {
            assert_eq!(responder.take(&arrival(FrameKind::Stimulus, 7, number, 3)), None);
        }
        assert_eq!(responder.take(&arrival(FrameKind::Hello, 7, 0, 4)), None, "replayed");
        assert_eq!((responder.sessions, responder.skipped), (1, 3));
        assert_eq!((responder.others.replayed, responder.others.foreign), (4, 1));
    }

    #[test]
    fn what_the_link_does_not_take_is_no_answer() {
        let mut responder = Responder::default();
        let welcome = responder.take(&arrival(FrameKind::Hello, 7, 0, 0)).expect("a welcome");
        responder.passed_on(welcome, false);
        assert_eq!((responder.answered, responder.not_sent), (0, 0));
        for number in 1..=3 {
            let answer = responder.take(&arrival(FrameKind::Stimulus, 7, number, number));
            responder.passed_on(answer.expect("an answer"), number != 2);
        }
        assert_eq!((responder.answered, responder.not_sent), (2, 1));
    }

    #[test]
    fn another_session_waits_until_the_first_is_idle_and_what_is_over_does_not_come_back() {
        let mut responder = Responder::default();
        responder.take(&arrival(FrameKind::Hello, 7, 0, 0));
        assert_eq!(responder.take(&arrival(FrameKind::Hello, 8, 0, IDLE_NS - 1)), None);
        assert_eq!(
            kind(responder.take(&arrival(FrameKind::Hello, 8, 0, IDLE_NS))),
            Some(FrameKind::Welcome)
        );
        assert_eq!(responder.take(&arrival(FrameKind::Stimulus, 7, 9, IDLE_NS)), None);
        assert_eq!(responder.take(&arrival(FrameKind::Hello, 7, 0, 3 * IDLE_NS)), None);
        assert_eq!(
            (responder.sessions, responder.others.foreign, responder.others.replayed),
            (2, 1, 2)
        );
    }

    #[test]
    fn numbers_that_were_made_up_do_not_wrap() {
        let mut responder = Responder::default();
        for session in [7, 8] {
            let at_ns = session * IDLE_NS;
            assert!(responder.take(&arrival(FrameKind::Hello, session, 0, at_ns)).is_some());
            assert!(
                responder.take(&arrival(FrameKind::Stimulus, session, u64::MAX, at_ns)).is_some()
            );
            assert_eq!(
                responder.take(&arrival(FrameKind::Stimulus, session, u64::MAX, at_ns)),
                None
            );
        }
        assert_eq!((responder.skipped, responder.others.replayed), (u64::MAX, 2));
    }

    #[test]
    fn no_answer_is_larger_than_what_it_answers() {
        let mut answered = Vec::new();
        for version in [0, VERSION, 2, 255] {
            for kind in 0..=255 {
                let mut frame = Frame { kind: FrameKind::Hello, session: 7, number: 0 }.to_bytes();
                (frame[4], frame[5]) = (version, kind);
                let bytes = [&frame[..], &[0; 40]].concat();
                for length in 0..bytes.len() {
                    let received = parse(&bytes[..length]);
                    let arrival = Arrival { received, at_ns: 0, from: None };
                    let Some(answer) = Responder::default().take(&arrival) else { continue };
                    assert!(answer.length() <= length, "{answer:?} to {length} bytes");
                    answered.push((version, length));
                }
            }
        }
        assert!(answered.contains(&(VERSION, 28)) && answered.contains(&(2, 6)), "{answered:?}");
    }

    #[test]
    fn answers_and_refusals_are_never_answered() {
        let mut responder = Responder::default();
        for received in [FrameKind::Welcome, FrameKind::Answer, FrameKind::Refusal] {
            assert_eq!(responder.take(&arrival(received, 7, 1, 0)), None);
        }
        let foreign = |hello| {
            let received = LinkEvent::WrongVersion { version: 2, hello };
            Arrival { received, at_ns: 0, from: None }
        };
        assert_eq!(responder.take(&foreign(false)), None);
        assert_eq!(kind(responder.take(&foreign(true))), Some(FrameKind::Refusal));
        assert_eq!((responder.others.wrong_version, responder.others.foreign), (2, 3));
    }
}
