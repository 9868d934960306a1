//! The one who stimulates: measures itself looped back, opens a session, sends stimuli on a grid
//! and takes the answers in.
//!
//! One thread, which sleeps between instants. Believes nothing that the other machine says but
//! which stimulus an answer belongs to.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::RtThread;
use punctual_analysis::summary::Distribution;
use punctual_core::time::{Period, Span};
use punctual_engine::clocks::{MachineClock, StampCost};
use punctual_engine::session::ThreadSession;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::frame::{Frame, FrameKind, LinkEvent, VERSION};
use super::link::{Arrival, Link, LinkName};
use super::{Loopback, Others, StimulateOutcome};
use crate::experiment::{
    ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError, ExperimentOutcome,
    demand, on_one_thread,
};
use crate::load::LoadSpec;

/// Stimuli at most: each keeps 16 bytes.
pub const STIMULI_MAX: u64 = 1_000_000;
/// Frames of the loop, from one to the next, and how long one may take.
const LOOPS: u64 = 500;
const LOOPS_APART_NS: u64 = 200_000;
const LOOP_PATIENCE_NS: u64 = 500_000_000;
/// Requests for a session at most, and time that each waits for an answer, ns.
const HELLOS: u64 = 8;
const HELLO_NS: u64 = 500_000_000;
/// Time that the last answers may take, ns.
const ANSWERS_NS: u64 = 500_000_000;
/// Time of a stimulus and its answer here, about, ns.
const STIMULUS_NS: f64 = 40_000.0;

/// Stimulates another machine and measures its answers.
#[derive(Debug)]
pub struct StimulateExperiment {
    /// The way to it.
    pub link: Link,
    /// Its name.
    pub name: LinkName,
    /// The thread that sends and receives.
    pub thread: RtThread,
    /// From one stimulus to the next.
    pub period: Period,
    /// Time that stimuli are sent for.
    pub duration: Span,
}

/// The counts of the sending thread at its end.
#[derive(Debug, Default)]
struct Sent {
    late: Distribution,
    not_sent: u64,
}

impl Experiment for StimulateExperiment {
    type Outcome = StimulateOutcome;

    fn demands(&self) -> Vec<Demand> {
        let share = (STIMULUS_NS / self.period.as_ns() as f64).min(1.0);
        vec![demand(&self.thread, self.period, share)]
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<StimulateOutcome>, ExperimentError> {
        let stop = context.stop;
        let mut measured = on_one_thread(stop, move || self.measure(stop))?;
        if measured.outcome.ended.is_some() {
            measured.end = ExperimentEnd::Lost;
        }
        Ok(measured)
    }
}

impl StimulateExperiment {
    /// Stimuli in all.
    pub fn stimuli(&self) -> u64 {
        (self.duration.as_ns().max(0).unsigned_abs() / self.period.as_ns().max(1)).max(1)
    }

    /// On the calling thread.
    fn measure(mut self, stop: &AtomicBool) -> ExperimentOutcome<StimulateOutcome> {
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let thread = ThreadSession::enter(self.thread.pinned_to(), self.thread.policy());
        let count = usize::try_from(self.stimuli().min(STIMULI_MAX)).unwrap_or(0);
        let session = RandomState::new().build_hasher().finish();
        let mut answers = Answers::new(session, count);
        let mut sent = Sent::default();
        let loopback = self.link.loopback().and_then(|ends| loopback(ends, stop));
        let (loopback, ended) = match loopback {
            Ok(loopback) => (loopback, self.stimulate((&mut answers, &mut sent), stop).err()),
            Err(why) => (Loopback::default(), Some(format!("no loopback on this machine: {why}"))),
        };
        let stimuli = answers.sent.len() as u64;
        let outcome = StimulateOutcome {
            link: self.name.to_string(),
            period_ns: self.period.as_ns(),
            cpu: self.thread.pinned_to(),
            loopback,
            stimuli,
            not_sent: sent.not_sent,
            sent_late_ns: sent.late.stats(),
            answered: answers.answered,
            late: answers.late,
            lost: stimuli - answers.answered,
            latency_ns: answers.latency.stats(),
            others: answers.others,
            ended,
        };
        let facts = ClockFacts::of(&clock, cost, None);
        ExperimentOutcome::of_thread(outcome, facts, thread.refused().to_vec())
    }

    /// Opens a session and sends all stimuli.
    fn stimulate(
        &mut self,
        (answers, sent): (&mut Answers, &mut Sent),
        stop: &AtomicBool,
    ) -> Result<(), String> {
        self.greet(answers, stop)?;
        let period_ns = self.period.as_ns();
        let first_ns = now_ns(ClockId::Monotonic) + period_ns;
        let lost = |why: io::Error| format!("the link was lost: {why}");
        for at in 0..self.stimuli().min(STIMULI_MAX) {
            let due_ns = first_ns + at * period_ns;
            answers.until(due_ns, |until_ns| self.link.receive(until_ns)).map_err(lost)?;
            // A signal may have ended the wait. Not the gate: the wait is for answers, and a
            // stimulus that is late by less than a period is sent all the same.
            let _interrupted = sleep_until_ns(due_ns);
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let now = now_ns(ClockId::Monotonic);
            if now >= due_ns + period_ns {
                sent.not_sent += 1;
                continue;
            }
            let number = answers.sent.len() as u64 + 1;
            let frame = Frame { kind: FrameKind::Stimulus, session: answers.session, number };
            match self.link.send(frame, None) {
                Ok(()) => {
                    sent.late.push((now - due_ns).cast_signed());
                    answers.sent.push(Sending { at_ns: now, next_ns: due_ns + period_ns });
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => sent.not_sent += 1,
                Err(why) => return Err(lost(why)),
            }
        }
        let until_ns = now_ns(ClockId::Monotonic) + ANSWERS_NS;
        while answers.answered < answers.sent.len() as u64
            && now_ns(ClockId::Monotonic) < until_ns
            && !stop.load(Ordering::Relaxed)
        {
            if let Some(arrival) = self.link.receive(until_ns).map_err(lost)? {
                answers.take(&arrival);
            }
        }
        Ok(())
    }

    /// Requests a session until it is welcome.
    fn greet(&mut self, answers: &mut Answers, stop: &AtomicBool) -> Result<(), String> {
        let hello = Frame { kind: FrameKind::Hello, session: answers.session, number: 0 };
        let nobody = |why: &str| format!("no responder at {}: {why}", self.name);
        let mut refused = None;
        for _ in 0..HELLOS {
            let until_ns = now_ns(ClockId::Monotonic) + HELLO_NS;
            refused = self.link.send(hello, None).err();
            while now_ns(ClockId::Monotonic) < until_ns {
                match self.link.receive(until_ns) {
                    Ok(Some(arrival)) => answers.take(&arrival),
                    Ok(None) => {}
                    Err(why) if why.kind() == io::ErrorKind::ConnectionRefused => {
                        // Nobody has the port yet: it may come.
                        refused = Some(why);
                        let _interrupted = sleep_until_ns(until_ns);
                    }
                    Err(why) => return Err(nobody(&why.to_string())),
                }
                if let Some(version) = answers.refused {
                    return Err(match version {
                        VERSION => format!("the responder refuses version {VERSION}"),
                        theirs => format!("the responder has version {theirs}, this is {VERSION}"),
                    });
                }
                if answers.welcome || stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
        }
        let busy = "no answer; start 'punctual respond' there, or wait until it is idle";
        Err(nobody(&refused.map_or_else(|| busy.to_owned(), |why| why.to_string())))
    }
}

/// Frames from one end to the other within this thread.
fn loopback((near, mut far): (Link, Link), stop: &AtomicBool) -> io::Result<Loopback> {
    let mut times = Distribution::default();
    let mut n = 0;
    let first_ns = now_ns(ClockId::Monotonic);
    // Not the gate: none may be left out.
    for number in 1..=LOOPS {
        let _interrupted = sleep_until_ns(first_ns + number * LOOPS_APART_NS);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let begun_ns = now_ns(ClockId::Monotonic);
        near.send(Frame { kind: FrameKind::Stimulus, session: 0, number }, None)?;
        let arrival = far.receive(begun_ns + LOOP_PATIENCE_NS)?;
        // One that a signal or a full machine kept away is not counted.
        if let Some(arrival) = arrival
            && matches!(arrival.received, LinkEvent::Frame(frame) if frame.number == number)
        {
            times.push((arrival.at_ns - begun_ns).cast_signed());
            n += 1;
        }
    }
    Ok(Loopback { n, time_ns: times.stats() })
}

/// In the place of an instant: the stimulus has its answer.
const ANSWERED: u64 = u64::MAX;

/// A stimulus that was sent.
#[derive(Clone, Copy, Debug)]
struct Sending {
    /// The instant at which it was sent, ns.
    at_ns: u64,
    /// The instant at which the next one was due, ns: by the grid, however late this one was.
    next_ns: u64,
}

/// The stimuli that were sent, and what became of them.
#[derive(Debug)]
struct Answers {
    session: u64,
    sent: Vec<Sending>,
    answered: u64,
    late: u64,
    latency: Distribution,
    others: Others,
    /// The version that refused this one.
    refused: Option<u8>,
    welcome: bool,
}

impl Answers {
    fn new(session: u64, count: usize) -> Self {
        Self {
            session,
            sent: Vec::with_capacity(count),
            answered: 0,
            late: 0,
            latency: Distribution::default(),
            others: Others::default(),
            refused: None,
            welcome: false,
        }
    }

    /// Takes in what arrived.
    fn take(&mut self, arrival: &Arrival) {
        let frame = match arrival.received {
            LinkEvent::Foreign => {
                self.others.foreign += 1;
                return;
            }
            LinkEvent::WrongVersion { version, .. } => {
                self.others.wrong_version += 1;
                self.refused = Some(version);
                return;
            }
            LinkEvent::Frame(frame) => frame,
        };
        match frame.kind {
            FrameKind::Welcome if frame.session == self.session => self.welcome = true,
            // Ours is of another version than the one who responds wants.
            FrameKind::Refusal => self.refused = Some(VERSION),
            FrameKind::Answer if frame.session == self.session => self.answer(frame, arrival.at_ns),
            FrameKind::Answer | FrameKind::Welcome => self.others.replayed += 1,
            FrameKind::Hello | FrameKind::Stimulus => self.others.foreign += 1,
        }
    }

    fn answer(&mut self, frame: Frame, at_ns: u64) {
        let at = usize::try_from(frame.number).ok().and_then(|number| number.checked_sub(1));
        match at.and_then(|at| self.sent.get_mut(at)) {
            None => self.others.replayed += 1,
            Some(Sending { at_ns: ANSWERED, .. }) => self.others.duplicates += 1,
            Some(sending) => {
                let took_ns = at_ns.saturating_sub(sending.at_ns);
                sending.at_ns = ANSWERED;
                self.answered += 1;
                self.late += u64::from(at_ns >= sending.next_ns);
                self.latency.push(took_ns.cast_signed());
            }
        }
    }

    /// Takes in whatever arrives until an instant. That nothing arrived may be that instant, a
    /// signal, or a frame that was damaged on its way: only the clock tells.
    fn until(
        &mut self,
        until_ns: u64,
        mut receive: impl FnMut(u64) -> io::Result<Option<Arrival>>,
    ) -> io::Result<()> {
        while now_ns(ClockId::Monotonic) < until_ns {
            if let Some(arrival) = receive(until_ns)? {
                self.take(&arrival);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instrument_is_measured_over_the_loopback_device() {
        let stop = AtomicBool::new(false);
        let udp = Link::at(&"udp:127.0.0.1:0".parse().expect("a link"), 0).expect("free").0;
        let loopback = loopback(udp.loopback().expect("loopback"), &stop).expect("it goes on");
        assert!(loopback.n > 0 && loopback.time_ns.min.is_some_and(|ns| ns > 0.0), "{loopback:?}");
    }

    fn arrival(kind: FrameKind, session: u64, number: u64, at_ns: u64) -> Arrival {
        Arrival { received: LinkEvent::Frame(Frame { kind, session, number }), at_ns, from: None }
    }

    #[test]
    fn each_answer_is_counted_as_what_it_is() {
        let mut answers = Answers::new(7, 4);
        let sent = |at_ns: u64| Sending { at_ns, next_ns: at_ns + 100 };
        answers.sent.extend([1_000, 1_100, 1_200].map(sent));
        answers.take(&arrival(FrameKind::Answer, 7, 1, 1_030));
        answers.take(&arrival(FrameKind::Answer, 7, 2, 1_200));
        answers.take(&arrival(FrameKind::Answer, 7, 1, 1_210));
        for number in [0, 4, u64::MAX] {
            answers.take(&arrival(FrameKind::Answer, 7, number, 1_220));
        }
        answers.take(&arrival(FrameKind::Answer, 8, 3, 1_230));
        answers.take(&arrival(FrameKind::Stimulus, 7, 3, 1_230));
        assert_eq!((answers.answered, answers.late), (2, 1));
        let latency = answers.latency.stats();
        assert_eq!((latency.min, latency.max), (Some(30.0), Some(100.0)));
        let Others { duplicates, replayed, foreign, wrong_version } = answers.others;
        assert_eq!((duplicates, replayed, foreign, wrong_version), (1, 4, 1, 0));
        assert!(!answers.welcome);
    }

    #[test]
    fn a_wait_that_ends_with_nothing_is_followed_by_another() {
        let mut answers = Answers::new(7, 1);
        answers.sent.push(Sending { at_ns: 1_000, next_ns: 1_100 });
        let answer = arrival(FrameKind::Answer, 7, 1, 1_030);
        let mut waits =
            [Ok(None), Ok(Some(answer)), Err(io::ErrorKind::BrokenPipe.into())].into_iter();
        let ended = answers.until(u64::MAX, |_| waits.next().expect("it ends with the error"));
        assert!(ended.is_err());
        assert_eq!(answers.answered, 1);
    }

    #[test]
    fn an_answer_is_late_by_the_grid_also_where_its_stimulus_was() {
        let mut answers = Answers::new(7, 2);
        // Due at 1 000 and 1 200, sent 80 late.
        answers.sent.push(Sending { at_ns: 1_080, next_ns: 1_200 });
        answers.sent.push(Sending { at_ns: 1_280, next_ns: 1_400 });
        answers.take(&arrival(FrameKind::Answer, 7, 1, 1_230));
        answers.take(&arrival(FrameKind::Answer, 7, 2, 1_399));
        assert_eq!((answers.answered, answers.late), (2, 1));
        assert_eq!(answers.latency.stats().max, Some(150.0));
    }
}
