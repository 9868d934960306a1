//! The stimuli that were sent, and what became of them.
//!
//! Pure, but for the wait on the link. Believes nothing of an answer but which stimulus it belongs
//! to.

use std::io;

use punctual_analysis::summary::Distribution;
use punctual_os::clock::{ClockId, now_ns};

use super::frame::{Frame, Kind, Received, VERSION};
use super::link::{Arrival, Link};
use super::outcome::Others;

/// In the place of an instant: the stimulus has its answer.
const ANSWERED: u64 = u64::MAX;

/// The stimuli that were sent, and what became of them.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) session: u64,
    period_ns: u64,
    /// When each was sent.
    pub(super) sent_ns: Vec<u64>,
    pub(super) answered: u64,
    pub(super) late: u64,
    pub(super) latency: Distribution,
    pub(super) others: Others,
    /// The version that refused this one.
    pub(super) refused: Option<u8>,
    pub(super) welcome: bool,
}

impl Answers {
    pub(super) fn new(session: u64, period_ns: u64, count: usize) -> Self {
        Self {
            session,
            period_ns,
            sent_ns: Vec::with_capacity(count),
            answered: 0,
            late: 0,
            latency: Distribution::default(),
            others: Others::default(),
            refused: None,
            welcome: false,
        }
    }

    /// Takes in what arrived.
    pub(super) fn take(&mut self, of: &Arrival) {
        let frame = match of.received {
            Received::Foreign => {
                self.others.foreign += 1;
                return;
            }
            Received::WrongVersion { version, .. } => {
                self.others.wrong_version += 1;
                self.refused = Some(version);
                return;
            }
            Received::Frame(frame) => frame,
        };
        match frame.kind {
            Kind::Welcome if frame.session == self.session => self.welcome = true,
            // Ours is of another version than the one who responds wants.
            Kind::Refusal => self.refused = Some(VERSION),
            Kind::Answer if frame.session == self.session => self.answer(frame, of.at_ns),
            Kind::Answer | Kind::Welcome => self.others.replayed += 1,
            Kind::Hello | Kind::Stimulus => self.others.foreign += 1,
        }
    }

    fn answer(&mut self, frame: Frame, at_ns: u64) {
        let at = usize::try_from(frame.number).ok().and_then(|number| number.checked_sub(1));
        match at.and_then(|at| self.sent_ns.get_mut(at)) {
            None => self.others.replayed += 1,
            Some(&mut ANSWERED) => self.others.duplicates += 1,
            Some(sent) => {
                let took_ns = at_ns.saturating_sub(*sent);
                *sent = ANSWERED;
                self.answered += 1;
                self.late += u64::from(took_ns >= self.period_ns);
                self.latency.push(took_ns.cast_signed());
            }
        }
    }

    /// Takes in whatever arrives until an instant.
    pub(super) fn until(&mut self, link: &mut Link, until_ns: u64) -> io::Result<()> {
        while now_ns(ClockId::Monotonic) < until_ns {
            match link.receive(until_ns)? {
                Some(arrival) => self.take(&arrival),
                None => return Ok(()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(kind: Kind, session: u64, number: u64, at_ns: u64) -> Arrival {
        Arrival { received: Received::Frame(Frame { kind, session, number }), at_ns, from: None }
    }

    #[test]
    fn each_answer_is_counted_as_what_it_is() {
        let mut of = Answers::new(7, 100, 4);
        of.sent_ns.extend([1_000, 1_100, 1_200]);
        of.take(&arrival(Kind::Answer, 7, 1, 1_030));
        of.take(&arrival(Kind::Answer, 7, 2, 1_200));
        of.take(&arrival(Kind::Answer, 7, 1, 1_210));
        for number in [0, 4, u64::MAX] {
            of.take(&arrival(Kind::Answer, 7, number, 1_220));
        }
        of.take(&arrival(Kind::Answer, 8, 3, 1_230));
        of.take(&arrival(Kind::Stimulus, 7, 3, 1_230));
        assert_eq!((of.answered, of.late), (2, 1));
        let latency = of.latency.stats();
        assert_eq!((latency.min, latency.max), (Some(30.0), Some(100.0)));
        let Others { duplicates, replayed, foreign, wrong_version } = of.others;
        assert_eq!((duplicates, replayed, foreign, wrong_version), (1, 4, 1, 0));
        assert!(!of.welcome);
    }
}
