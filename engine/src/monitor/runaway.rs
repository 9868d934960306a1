//! The rule for tasks elsewhere: a runaway alone loses its real-time policy, the others are left
//! alone; when it comes back it gets it again.
//!
//! A rule of the monitor, for tasks in threads and in processes of their own. Deciding
//! ([`RunawayRule::tick`]) is apart from doing, so that it runs on made-up clocks. Never ends a
//! process: that is its supervisor's.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use punctual_core::block::{TaskState, Terms, look};
use punctual_core::time::{Instant, Span};
use punctual_os::scheduler::{self, SchedPolicy};

/// The time between two looks of the monitor at tasks elsewhere.
pub const TICK: Span = Span::from_ms(2);

/// The time after its next release for which a task may still run one cycle, unless it is to be
/// terminated: ten periods, at least a second.
///
/// # Real-time: setup only
pub fn hang_bound(period_ns: u64) -> Span {
    let ten = i64::try_from(period_ns.saturating_mul(10)).unwrap_or(i64::MAX);
    Span::from_ns(ten.max(1_000_000_000))
}

/// The thread of a task that a [`RunawayRule`] may demote, and the times that it did; the rule
/// shares it with whoever owns the task.
#[derive(Debug, Default)]
pub struct Demotable {
    /// The thread to be demoted; 0 for none.
    thread: AtomicI32,
    demotions: AtomicU64,
    restored: AtomicU64,
}

impl Demotable {
    /// Sets the thread that may be demoted from now on; 0 for none.
    ///
    /// # Real-time: setup only
    pub fn arm(&self, thread: i32) {
        self.thread.store(thread, Ordering::Release);
    }

    /// The thread that is demotable; 0 for none.
    ///
    /// # Real-time: setup only
    pub fn thread(&self) -> i32 {
        self.thread.load(Ordering::Acquire)
    }

    /// Gives `thread` a policy; returns true where the kernel did. With `is_new` it counts.
    pub(crate) fn set(&self, thread: i32, policy: SchedPolicy, is_new: bool) -> bool {
        let counter = match policy {
            SchedPolicy::Other => &self.demotions,
            _ => &self.restored,
        };
        // One that is gone needs neither.
        let is_set = scheduler::set(thread, policy).is_ok();
        if is_set && is_new {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        is_set
    }

    /// Times that the task was made SCHED_OTHER.
    ///
    /// # Real-time: reader side
    pub fn demotions(&self) -> u64 {
        self.demotions.load(Ordering::Relaxed)
    }

    /// Times that it got its policy back.
    ///
    /// # Real-time: reader side
    pub fn restored(&self) -> u64 {
        self.restored.load(Ordering::Relaxed)
    }
}

/// The act of the monitor that is due on a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// Make it SCHED_OTHER.
    Demote,
    /// Give it back what it had.
    Restore,
}

/// One task that runs elsewhere, as the monitor judges it.
#[derive(Debug)]
pub struct RunawayRule<'a> {
    words: &'a [AtomicU64],
    terms: Terms,
    /// The time beyond its next release for which it may run.
    grace: Span,
    policy: SchedPolicy,
    demotable: &'a Demotable,
    /// The cycle that is over its time, and for how long by the monitor's own ticks: time in which
    /// the monitor did not run either is no fault of the task.
    over: Option<(u64, Span)>,
    demoted: Option<u64>,
}

impl<'a> RunawayRule<'a> {
    /// The task whose block is in `words`, on these terms, which has `policy`.
    ///
    /// # Real-time: setup only
    pub fn new(
        words: &'a [AtomicU64],
        terms: Terms,
        grace: Span,
        policy: SchedPolicy,
        demotable: &'a Demotable,
    ) -> Self {
        Self { words, terms, grace, policy, demotable, over: None, demoted: None }
    }

    /// The act that is due at `now`, `elapsed` after the look before.
    ///
    /// # Real-time: reader side
    pub fn tick(&mut self, now: Instant, elapsed: Span) -> Act {
        let seen = look(self.words).unwrap_or_default();
        let running = seen.cycle.filter(|_| seen.state == TaskState::Running);
        if let Some(cycle) = self.demoted {
            if running == Some(cycle) {
                return Act::Nothing;
            }
            self.demoted = None;
            return Act::Restore;
        }
        let late = |cycle: &u64| now >= self.terms.release(cycle.saturating_add(1));
        let Some(cycle) = running.filter(late) else {
            self.over = None;
            return Act::Nothing;
        };
        let fair = elapsed.min(Span::from_ns(2 * TICK.as_ns()));
        let before = self.over.filter(|(over, _)| *over == cycle);
        let span = before.map_or(Span::ZERO, |(_, span)| {
            Span::from_ns(span.as_ns().saturating_add(fair.as_ns()))
        });
        self.over = Some((cycle, span));
        if span <= self.grace {
            return Act::Nothing;
        }
        self.demoted = Some(cycle);
        Act::Demote
    }

    pub(super) fn act(&mut self, act: Act) {
        let thread = self.demotable.thread();
        if thread == 0 {
            self.demoted = None;
            return;
        }
        let policy = match act {
            Act::Nothing => return,
            Act::Demote => SchedPolicy::Other,
            Act::Restore => self.policy,
        };
        self.demotable.set(thread, policy, true);
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::block::{ClientStep, TaskClient, TaskServer, words};
    use punctual_core::releases::Releases;
    use punctual_core::time::Period;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    #[test]
    fn a_runaway_is_demoted_after_its_grace_and_restored_when_it_is_back() {
        let memory: Vec<AtomicU64> = (0..words(0)).map(|_| AtomicU64::new(0)).collect();
        let releases = Releases::new(at(0), Period::from_ns(10_000_000).expect("in range"));
        let terms = Terms::even(releases, 0);
        let mut server = TaskServer::new(&memory, terms).expect("large enough");
        let mut client = TaskClient::open(&memory).expect("a task block");
        let demotable = Demotable::default();
        let policy = SchedPolicy::Fifo(5);
        let mut rule = RunawayRule::new(&memory, terms, Span::from_ms(3), policy, &demotable);
        client.ask(1);
        server.post(0, false);
        assert_eq!(client.turn(), ClientStep::Run);
        let _cycle = client.begin(at(0));
        let mut tick = |ms| rule.tick(at(ms), TICK);
        assert!((0..10).all(|ms| tick(ms) == Act::Nothing), "it may");
        // Seen at 10; 3 ms of grace by ticks of 2 ms are over at the third look.
        assert_eq!([tick(10), tick(12), tick(14)], [Act::Nothing, Act::Nothing, Act::Demote]);
        assert_eq!(tick(16), Act::Nothing, "once");
        client.done(at(17));
        assert_eq!([tick(18), tick(20)], [Act::Restore, Act::Nothing]);
        assert_eq!((demotable.demotions(), demotable.restored()), (0, 0), "nothing was done here");
    }

    #[test]
    fn time_in_which_the_monitor_slept_too_is_no_fault() {
        let memory: Vec<AtomicU64> = (0..words(0)).map(|_| AtomicU64::new(0)).collect();
        let releases = Releases::new(at(0), Period::from_ns(10_000_000).expect("in range"));
        let terms = Terms::even(releases, 0);
        let mut server = TaskServer::new(&memory, terms).expect("fits");
        let mut client = TaskClient::open(&memory).expect("a task block");
        let demotable = Demotable::default();
        let bound = hang_bound(10_000_000);
        let mut rule = RunawayRule::new(&memory, terms, bound, SchedPolicy::Fifo(5), &demotable);
        client.ask(1);
        server.post(0, false);
        assert_eq!(client.turn(), ClientStep::Run);
        let _cycle = client.begin(at(0));
        let hour = Span::from_ms(3_600_000);
        assert_eq!(rule.tick(at(3_600_000), hour), Act::Nothing);
        assert_eq!(rule.tick(at(7_200_000), hour), Act::Nothing);
    }
}
