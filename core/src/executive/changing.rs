//! A source that the loop leaves when something is to be changed, at a moment that hurts nobody.
//!
//! For executives whose tasks are registered and removed while they run: the loop ends, what it
//! runs is exchanged, and it is entered again; no release is lost by that, since what the clock
//! says decides, not when it was asked. Costs a cycle one load. Pure: time is an argument.

use core::sync::atomic::{AtomicU64, Ordering};

use super::many::Flow;
use super::source::{Rehearse, Source};
use crate::dispatch::{Job, Overruns, Step};
use crate::page::Missed;
use crate::table::OnOverrun;
use crate::time::{Instant, Span};

/// A source, and who may ask the loop to leave it.
#[derive(Debug)]
pub struct Changing<'a, S> {
    source: &'a mut S,
    asked: &'a AtomicU64,
    turns: &'a AtomicU64,
    look: Span,
    since: Option<Instant>,
    left: bool,
}

impl<'a, S: Source> Changing<'a, S> {
    /// Leaves `source` when `asked` is not 0: at the first moment with nothing to do for so many
    /// nanoseconds, and after `look` in any case, as soon as no task runs. Waits for `look` at most
    /// at a time, so that it sees that it is asked; each such look counts in `turns`.
    ///
    /// # Real-time: in loop
    pub fn new(source: &'a mut S, asked: &'a AtomicU64, turns: &'a AtomicU64, look: Span) -> Self {
        Self { source, asked, turns, look, since: None, left: false }
    }

    /// Whether it was left to be changed; otherwise the loop is over.
    ///
    /// # Real-time: in loop
    pub fn left(&self) -> bool {
        self.left
    }

    /// Nothing to do: waits no longer than until the next look.
    #[inline]
    fn idle(&self, now: Instant, until: Instant) -> Step {
        // One writer, so that no locked instruction is needed.
        self.turns.store(self.turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        Step::Idle(until.min(now + self.look))
    }

    #[cold]
    #[inline(never)]
    fn step_asked(&mut self, now: Instant, room_ns: u64) -> Step {
        let since = *self.since.get_or_insert(now);
        if now - since < self.look {
            match self.source.step(now) {
                Step::Run(job) => return Step::Run(job),
                Step::Idle(until) if until.as_ns().saturating_sub(now.as_ns()) < room_ns => {
                    return self.idle(now, until);
                }
                Step::Idle(_) => {}
            }
        }
        self.left = true;
        // No loop has a release then: it ends.
        Step::Idle(Instant::from_ns(u64::MAX))
    }
}

impl<S: Source> Source for Changing<'_, S> {
    fn end(&mut self, end: Instant) {
        self.source.end(end);
    }

    #[inline]
    fn step(&mut self, now: Instant) -> Step {
        let room_ns = self.asked.load(Ordering::Relaxed);
        if room_ns > 0 {
            return self.step_asked(now, room_ns);
        }
        match self.source.step(now) {
            Step::Idle(until) => self.idle(now, until),
            run @ Step::Run(_) => run,
        }
    }

    #[inline]
    fn coming(&self) -> Option<usize> {
        self.source.coming()
    }

    #[inline]
    fn dt_ns(&self, job: &Job) -> u64 {
        self.source.dt_ns(job)
    }

    #[inline]
    fn policy(&self, rank: usize) -> OnOverrun {
        self.source.policy(rank)
    }

    #[inline]
    fn finish(&mut self, job: &Job, start: Instant, finish: Instant, flow: Flow) -> Overruns {
        self.source.finish(job, start, finish, flow)
    }

    #[inline]
    fn ends(&self, job: &Job, overruns: Overruns) -> bool {
        self.source.ends(job, overruns)
    }

    #[inline]
    fn refuse(&mut self, job: &Job) {
        self.source.refuse(job);
    }

    fn ranks(&self) -> usize {
        self.source.ranks()
    }

    /// Where it was left to be changed nothing has ended.
    fn never_ran(&mut self, rank: usize, now: Instant) -> Option<Missed> {
        if self.left { None } else { self.source.never_ran(rank, now) }
    }

    #[inline]
    fn rehearse(&self, now: Instant, turn: &mut impl Rehearse) {
        self.source.rehearse(now, &mut Around { turn, look: self.look });
    }
}

/// Rehearses a turn on a source that may be left, so that it is the very code that runs.
struct Around<'r, R> {
    turn: &'r mut R,
    look: Span,
}

impl<R: Rehearse> Rehearse for Around<'_, R> {
    #[inline]
    fn on<S: Source>(&mut self, source: &mut S, now: Instant) {
        let (asked, turns) = (AtomicU64::new(0), AtomicU64::new(0));
        self.turn.on(&mut Changing::new(source, &asked, &turns, self.look), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Period;

    /// Runs at each instant below 10 µs, then every 500 µs.
    struct Script;

    impl Source for Script {
        fn end(&mut self, _: Instant) {}
        fn step(&mut self, now: Instant) -> Step {
            let next = Instant::from_ns(now.as_ns().next_multiple_of(500_000));
            if now.as_ns() >= 10_000 && next > now {
                return Step::Idle(next);
            }
            let period = Period::from_ns(500_000).expect("in range");
            let (missed, passed) = (0, 0);
            let job =
                Job { rank: 3, cycle: 1, part: 0, release: now, next, missed, passed, period };
            Step::Run(job)
        }
        fn coming(&self) -> Option<usize> {
            Some(3)
        }
        fn dt_ns(&self, _: &Job) -> u64 {
            7
        }
        fn policy(&self, _: usize) -> OnOverrun {
            OnOverrun::Stop
        }
        fn finish(&mut self, _: &Job, _: Instant, _: Instant, _: Flow) -> Overruns {
            Overruns::default()
        }
        fn ends(&self, _: &Job, _: Overruns) -> bool {
            true
        }
        fn ranks(&self) -> usize {
            0
        }
        fn never_ran(&mut self, _: usize, _: Instant) -> Option<Missed> {
            None
        }
        fn rehearse(&self, now: Instant, turn: &mut impl Rehearse) {
            turn.on(&mut Script, now);
        }
    }

    fn at(us: u64) -> Instant {
        Instant::from_ns(us * 1_000)
    }

    const LEFT: Step = Step::Idle(Instant::from_ns(u64::MAX));

    #[test]
    fn it_is_left_with_room_until_the_next_release_or_after_a_look_in_any_case() {
        let (asked, turns) = (AtomicU64::new(0), AtomicU64::new(0));
        let mut script = Script;
        let mut source = Changing::new(&mut script, &asked, &turns, Span::from_us(100));
        assert!(matches!(source.step(at(0)), Step::Run(_)));
        assert_eq!(turns.load(Ordering::Relaxed), 0);
        assert_eq!(source.step(at(20)), Step::Idle(at(120)), "no further than a look");
        assert_eq!(source.step(at(450)), Step::Idle(at(500)));
        assert_eq!(turns.load(Ordering::Relaxed), 2);
        asked.store(60_000, Ordering::Relaxed);
        assert_eq!(source.step(at(450)), Step::Idle(at(500)), "too little room");
        assert!(matches!(source.step(at(500)), Step::Run(_)));
        assert!(!source.left());
        assert_eq!((source.step(at(501)), source.left()), (LEFT, true));
        let mut script = Script;
        let mut busy = Changing::new(&mut script, &asked, &turns, Span::from_us(5));
        assert!(matches!(busy.step(at(1)), Step::Run(_)));
        assert!(matches!(busy.step(at(5)), Step::Run(_)));
        assert_eq!((busy.step(at(6)), busy.left()), (LEFT, true), "always busy");
    }

    #[test]
    fn the_rest_is_the_source_itself() {
        let (asked, turns) = (AtomicU64::new(0), AtomicU64::new(0));
        let mut script = Script;
        let mut source = Changing::new(&mut script, &asked, &turns, Span::from_ms(100));
        let Step::Run(job) = source.step(at(0)) else { panic!("there is a job") };
        assert_eq!((source.coming(), source.dt_ns(&job)), (Some(3), 7));
        assert_eq!(source.policy(3), OnOverrun::Stop);
        let fine = source.finish(&job, at(0), at(1), Flow::Continue);
        assert!(source.ends(&job, fine));
        /// Whether what is rehearsed runs, and is bounded as what is meant.
        struct Turn(Option<Step>);
        impl Rehearse for Turn {
            fn on<S: Source>(&mut self, source: &mut S, now: Instant) {
                self.0 = Some(source.step(now));
            }
        }
        let mut turn = Turn(None);
        source.rehearse(at(300), &mut turn);
        assert_eq!(turn.0, Some(Step::Idle(at(500))));
        let soon = Changing::new(&mut script, &asked, &turns, Span::from_us(100));
        soon.rehearse(at(300), &mut turn);
        assert_eq!(turn.0, Some(Step::Idle(at(400))));
    }
}
