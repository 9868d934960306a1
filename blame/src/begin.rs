//! The begin of a wait that is longer than its thread's memory: judged while all of its evidence is
//! still there, and added up by cause.
//!
//! Of fixed size: so a wait of any length keeps the exact sum of each of its causes. What is lost
//! is their order.

use std::cmp::Ordering;

use punctual_trace::event::TaskName;

use crate::cause::{Certainty, LateCause, RuleId, Unexplained};
use crate::normal::WakeTimes;
use crate::part::{PartSums, WakePart};
use crate::past::{Piece, unseen};

/// The part of a wait that was judged and dropped before its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WakeBegin {
    release_ns: u64,
    to_ns: u64,
    sums: PartSums,
    /// Normal time that no part has used up yet.
    left: WakeTimes,
    /// The last piece of it; `None` where there is none yet.
    last: Option<Piece>,
}

impl WakeBegin {
    /// An empty one, of a wait since this release, ns; `left` is its normal time.
    pub(crate) fn new(release_ns: u64, left: WakeTimes) -> Self {
        Self { release_ns, to_ns: release_ns, sums: PartSums::default(), left, last: None }
    }

    /// A whole wait whose parts are known, each as it is.
    pub(crate) fn judged(release_ns: u64, parts: &[WakePart]) -> Self {
        let sums = PartSums::apart(parts);
        let to_ns = parts.last().map_or(release_ns, |last| last.to_ns);
        Self { to_ns, sums, ..Self::new(release_ns, WakeTimes::default()) }
    }

    /// Goes on by parts that follow each other without a gap; so much is left of what is normal.
    pub(crate) fn add(&mut self, parts: &[WakePart], left: WakeTimes) {
        for part in parts {
            self.sums.add(part);
            self.to_ns += part.length_ns();
            let WakePart { from_ns, to_ns, phase, activity, cpu, .. } = *part;
            self.last = Some(Piece { phase, activity, cpu, ..unseen(from_ns, to_ns) });
        }
        self.left = left;
    }

    /// The thread that its thread waits behind turns out to have another priority than was booked:
    /// what counted as run in its place by the scheduler's choice ran above it, or as its equal.
    pub(crate) fn correct(&mut self, wrong: TaskName, right: TaskName, waiting_priority: i32) {
        let priority = right.kernel_priority;
        self.sums.rebook(|part| {
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
        });
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
        let is_hole = reason == Unexplained::Hole && self.sums.have_rule(RuleId::MigrationUnseen);
        is_hole || self.sums.have(LateCause::Unexplained(reason))
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
        self.sums.laid(self.release_ns).map(settled).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::tests::part;

    #[test]
    fn who_turns_out_to_run_above_was_no_choice_of_the_scheduler() {
        let task = TaskName { tid: 4, kernel_priority: 120, ..TaskName::default() };
        let passed =
            WakePart { rule: RuleId::FairServer, ..part(7, LateCause::FairServer { task }) };
        let corrected = |kernel_priority, tid| {
            let mut begin = WakeBegin::new(100, WakeTimes::default());
            begin.add(&[passed, part(3, LateCause::Nmi)], WakeTimes::default());
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
    fn what_was_passed_over_is_throttled_where_that_shows_in_the_end() {
        let task = TaskName { tid: 4, ..TaskName::default() };
        let passed =
            WakePart { rule: RuleId::FairServer, ..part(7, LateCause::FairServer { task }) };
        let mut begin = WakeBegin::new(100, WakeTimes::default());
        begin.add(&[passed, part(3, LateCause::Nmi)], WakeTimes::default());
        assert_eq!((begin.release_ns(), begin.to_ns()), (100, 110));
        let rules = |is_unthrottled| begin.parts(is_unthrottled)[0].rule;
        assert_eq!((rules(false), rules(true)), (RuleId::FairServer, RuleId::Unthrottled));
        assert_eq!(begin.parts(true)[0].cause, LateCause::Throttled { task });
        assert_eq!(
            begin.parts(true)[1],
            WakePart { from_ns: 107, to_ns: 110, ..part(3, LateCause::Nmi) }
        );
    }
}
