//! The begin of a wait that is longer than its thread's memory: judged while all of its evidence is
//! still there.
//!
//! Of bounded size: its first parts stay as they are, the rest is added up by cause. So a wait of
//! any length keeps the exact sum of each of its causes; of those behind the first parts the order
//! is lost.

use std::cmp::Ordering;

use punctual_trace::event::TaskName;

use crate::cause::{Certainty, LateCause, RuleId, Unexplained};
use crate::normal::WakeTimes;
use crate::part::{PartSums, WakePart};
use crate::past::{Piece, unseen};
use crate::timeline::Activity;

/// Parts that stay as they are.
const FIRST: usize = 64;

/// The part of a wait that was judged and dropped before its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WakeBegin {
    release_ns: u64,
    /// True of a thread that still worked: its next release was expected then, and not known.
    is_expected: bool,
    to_ns: u64,
    first: Vec<WakePart>,
    sums: PartSums,
    /// The sums of the thread that ran last, since that was switched in.
    turn: PartSums,
    /// Normal time that no part has used up yet.
    left: WakeTimes,
    /// The last piece of it; `None` where there is none yet.
    last: Option<Piece>,
}

impl WakeBegin {
    /// An empty one, of a wait since this release, ns; `left` is its normal time.
    pub(crate) fn new(release_ns: u64, left: WakeTimes) -> Self {
        Self {
            release_ns,
            is_expected: false,
            to_ns: release_ns,
            first: Vec::new(),
            sums: PartSums::default(),
            turn: PartSums::default(),
            left,
            last: None,
        }
    }

    /// A whole wait whose parts are known, each as it is.
    pub(crate) fn judged(release_ns: u64, parts: Vec<WakePart>) -> Self {
        let to_ns = parts.last().map_or(release_ns, |last| last.to_ns);
        Self { to_ns, first: parts, ..Self::new(release_ns, WakeTimes::default()) }
    }

    /// The same, of a thread that still works where `is_expected`.
    pub(crate) fn with_expected(self, is_expected: bool) -> Self {
        Self { is_expected, ..self }
    }

    /// Goes on by parts that follow each other without a gap; so much is left of what is normal.
    pub(crate) fn add(&mut self, parts: &[WakePart], left: WakeTimes) {
        for part in parts {
            let is_summed = self.is_summed();
            let has_room = self.first.len() < FIRST;
            match self.first.last_mut() {
                Some(last) if !is_summed && last.is_like(part) => last.to_ns = part.to_ns,
                _ if !is_summed && has_room => self.first.push(*part),
                _ => self.add_up(part),
            }
            self.to_ns += part.length_ns();
            let WakePart { from_ns, to_ns, phase, activity, cpu, .. } = *part;
            self.last = Some(Piece { phase, activity, cpu, ..unseen(from_ns, to_ns) });
        }
        self.left = left;
    }

    /// Returns true where parts behind the first ones are added up.
    const fn is_summed(&self) -> bool {
        !self.sums.is_empty() || !self.turn.is_empty()
    }

    /// Adds a part to the sums.
    fn add_up(&mut self, part: &WakePart) {
        let runner = |part: &WakePart| match part.activity {
            Activity::Task { task, .. } => Some(task.tid),
            _ => None,
        };
        let (last, next) = (self.turn.parts().find_map(runner), runner(part));
        let is_other = last.is_some() && next.is_some() && last != next;
        if is_other || matches!(part.activity, Activity::Idle { .. }) {
            std::mem::take(&mut self.turn).parts().for_each(|sum| self.sums.add(sum));
        }
        self.turn.add(part);
    }

    /// The part of it that belongs to a wait since this release, ns, which may have been expected
    /// earlier or later than that; `None` where there is none, or where it cannot be told apart.
    pub(crate) fn since(mut self, release_ns: u64) -> Option<Self> {
        if self.release_ns == release_ns {
            return Some(self);
        }
        let first_to_ns = self.first.last().map_or(self.release_ns, |last| last.to_ns);
        let is_there = release_ns < first_to_ns || !self.is_summed();
        if !self.is_expected || release_ns >= self.to_ns || !is_there {
            return None;
        }
        self.first.retain(|part| part.to_ns > release_ns);
        self.release_ns = self.release_ns.max(release_ns);
        if let Some(first) = self.first.first_mut() {
            first.from_ns = first.from_ns.max(self.release_ns);
        }
        Some(self)
    }

    /// The same behind a front, all of whose parts are there, which ends where it begins.
    pub(crate) fn behind(self, front: Self) -> Self {
        debug_assert_eq!(front.to_ns, self.release_ns);
        let first = [front.first, self.first].concat();
        Self { release_ns: front.release_ns, first, ..self }
    }

    /// The thread that its thread waits behind turns out to have another priority than was booked:
    /// what counted as run in its place by the scheduler's choice ran above it, or as its equal,
    /// since that thread was switched in.
    pub(crate) fn correct(&mut self, wrong: TaskName, right: TaskName, waiting_priority: i32) {
        let priority = right.kernel_priority;
        let corrected = |part: &WakePart| {
            let task = part.cause.culprit().filter(|task| task.tid == wrong.tid)?;
            let task = TaskName { kernel_priority: priority, ..task };
            let is_passed_over = matches!(part.rule, RuleId::FairServer | RuleId::PassedOver);
            let (cause, rule) = match priority.cmp(&waiting_priority) {
                _ if !is_passed_over => return None,
                Ordering::Less => (LateCause::HigherPriority { task }, RuleId::Higher),
                Ordering::Equal => (LateCause::EqualPriority { task }, RuleId::Equal),
                Ordering::Greater => return None,
            };
            Some(WakePart { cause, rule, certainty: Certainty::Certain, ..*part })
        };
        let is_of_turn = |part: &WakePart| match part.activity {
            Activity::Task { task, .. } => task.tid == wrong.tid,
            activity => activity.is_interrupt(),
        };
        if !self.turn.parts().all(is_of_turn) {
            return;
        }
        self.turn.rebook(corrected);
        if self.sums.is_empty() {
            for part in self.first.iter_mut().rev().take_while(|part| is_of_turn(part)) {
                *part = corrected(part).unwrap_or(*part);
            }
        }
    }

    pub(crate) const fn release_ns(&self) -> u64 {
        self.release_ns
    }

    /// Its end, ns on the events' clock.
    pub(crate) const fn to_ns(&self) -> u64 {
        self.to_ns
    }

    pub(crate) const fn left(&self) -> WakeTimes {
        self.left
    }

    pub(crate) const fn last(&self) -> Option<Piece> {
        self.last
    }

    /// Returns true where a part of it is unexplained for this reason.
    pub(crate) fn lacks(&self, reason: Unexplained) -> bool {
        let is_for_reason = |part: &WakePart| {
            let is_hole = reason == Unexplained::Hole && part.rule == RuleId::MigrationUnseen;
            is_hole || part.cause == LateCause::Unexplained(reason)
        };
        self.laid().any(|part| is_for_reason(&part))
    }

    /// Its parts, from the release on. Whether its thread was throttled shows in the end alone.
    pub(crate) fn parts(&self, is_unthrottled: bool) -> Vec<WakePart> {
        let settled = |part: WakePart| match part.rule {
            RuleId::PassedOver | RuleId::FairServer if is_unthrottled => {
                let cause = part.cause.throttled();
                WakePart { cause, rule: RuleId::Unthrottled, certainty: Certainty::Fair, ..part }
            }
            _ => part,
        };
        self.laid().map(settled).collect()
    }

    /// Its parts, from the release on, as they were judged.
    fn laid(&self) -> impl Iterator<Item = WakePart> + '_ {
        let sums_from_ns = self.first.last().map_or(self.release_ns, |last| last.to_ns);
        let sums: Vec<WakePart> = self.sums.laid(sums_from_ns).collect();
        let turn_from_ns = sums.last().map_or(sums_from_ns, |last| last.to_ns);
        self.first.iter().copied().chain(sums).chain(self.turn.laid(turn_from_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::tests::part;
    use crate::timeline::TaskMode;

    /// 7 ns in which a thread ran in its place, from 100 on, and 3 behind them.
    fn passed_and_behind(task: TaskName) -> (WakePart, WakePart) {
        let passed = part(7, LateCause::FairServer { task });
        let passed = WakePart { from_ns: 100, to_ns: 107, rule: RuleId::FairServer, ..passed };
        (passed, WakePart { from_ns: 107, to_ns: 110, ..part(3, LateCause::Nmi) })
    }

    #[test]
    fn who_turns_out_to_run_above_was_no_choice_of_the_scheduler() {
        let task = TaskName { tid: 4, kernel_priority: 120, ..TaskName::default() };
        let (passed, behind) = passed_and_behind(task);
        let corrected = |kernel_priority, tid| {
            let mut begin = WakeBegin::new(100, WakeTimes::default());
            begin.add(&[passed, behind], WakeTimes::default());
            let wrong = TaskName { tid, ..task };
            begin.correct(wrong, TaskName { kernel_priority, ..wrong }, 9);
            let parts = begin.parts(false);
            assert_eq!(parts.iter().map(WakePart::length_ns).sum::<u64>(), 10);
            parts[0].cause
        };
        let above = TaskName { kernel_priority: 2, ..task };
        assert_eq!(corrected(2, 4), LateCause::HigherPriority { task: above });
        let equal = TaskName { kernel_priority: 9, ..task };
        assert_eq!(corrected(9, 4), LateCause::EqualPriority { task: equal });
        assert_eq!(corrected(119, 4), LateCause::FairServer { task });
        assert_eq!(corrected(2, 5), LateCause::FairServer { task }, "another thread");
    }

    #[test]
    fn who_turns_out_to_run_above_did_not_in_its_turns_before() {
        let wrong = TaskName { tid: 4, kernel_priority: 120, ..TaskName::default() };
        let hog = TaskName { tid: 5, kernel_priority: 2, ..TaskName::default() };
        let mut at_ns = 100;
        let mut turn = |task: TaskName, length_ns: u64, cause, rule| {
            let activity = Activity::Task { task, mode: TaskMode::Code };
            let from_ns = at_ns;
            at_ns += length_ns;
            WakePart { from_ns, to_ns: at_ns, activity, rule, ..part(1, cause) }
        };
        for turns in [1, 3, 40, 100] {
            let mut parts: Vec<WakePart> = Vec::new();
            for _ in 0..turns {
                let passed = LateCause::FairServer { task: wrong };
                parts.push(turn(wrong, 7, passed, RuleId::FairServer));
                parts.push(turn(hog, 5, LateCause::HigherPriority { task: hog }, RuleId::Higher));
            }
            parts.push(turn(wrong, 9, LateCause::FairServer { task: wrong }, RuleId::FairServer));
            let mut begin = WakeBegin::new(parts[0].from_ns, WakeTimes::default());
            begin.add(&parts, WakeTimes::default());
            begin.correct(wrong, TaskName { kernel_priority: 1, ..wrong }, 9);
            let time_of = |rule, tid| {
                let parts = begin.parts(false).into_iter().filter(|part| part.rule == rule);
                let its = parts.filter(|part| part.cause.culprit().is_some_and(|t| t.tid == tid));
                its.map(|part| part.length_ns()).sum::<u64>()
            };
            assert_eq!(time_of(RuleId::FairServer, 4), turns * 7, "{turns}");
            assert_eq!((time_of(RuleId::Higher, 4), time_of(RuleId::Higher, 5)), (9, turns * 5));
        }
    }

    #[test]
    fn what_was_passed_over_is_throttled_where_that_shows_in_the_end() {
        let task = TaskName { tid: 4, ..TaskName::default() };
        let (passed, behind) = passed_and_behind(task);
        let mut begin = WakeBegin::new(100, WakeTimes::default());
        begin.add(&[passed, behind], WakeTimes::default());
        assert_eq!((begin.release_ns(), begin.to_ns()), (100, 110));
        let rules = |is_unthrottled| begin.parts(is_unthrottled)[0].rule;
        assert_eq!((rules(false), rules(true)), (RuleId::FairServer, RuleId::Unthrottled));
        assert_eq!(begin.parts(true)[0].cause, LateCause::Throttled { task });
        assert_eq!(begin.parts(true)[1], behind);
    }
}
