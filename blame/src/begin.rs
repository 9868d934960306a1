//! The begin of a wait that is longer than its thread's memory: judged while all of its evidence is
//! still there, and added up by cause.
//!
//! Of fixed size: so a wait of any length keeps the exact sum of each of its causes. What is lost
//! is their order.

use crate::account::WakePart;
use crate::cause::{LateCause, Unexplained};
use crate::normal::WakeTimes;
use crate::past::{Piece, unseen};
use crate::programs::ThreadPrograms;
use crate::rules::{Certainty, RuleId};

/// Parts of a wake, added up by what they are booked to.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PartSums {
    /// Each from 0 to its length.
    parts: Vec<WakePart>,
}

impl PartSums {
    /// Sums that are kept apart. Of more, threads of one name are one, and the rest is open.
    pub(crate) const ROOM: usize = 96;

    pub(crate) fn add(&mut self, part: &WakePart) {
        let length_ns = part.length_ns();
        let is_like = |sum: &WakePart| sum.cause == part.cause && is_beside(sum, part);
        if let Some(sum) = self.parts.iter_mut().find(|sum| is_like(sum)) {
            sum.to_ns += length_ns;
            return;
        }
        let of_name = |part: &WakePart| part.cause.grouped(&ThreadPrograms::default());
        let new = WakePart { from_ns: 0, to_ns: length_ns, ..*part };
        if self.parts.len() < Self::ROOM {
            self.parts.push(new);
            return;
        }
        let is_akin = |sum: &WakePart| of_name(sum) == of_name(part) && is_beside(sum, part);
        if let Some(sum) = self.parts.iter_mut().find(|sum| is_akin(sum)) {
            sum.to_ns += length_ns;
            return;
        }
        let cause = LateCause::Unexplained(Unexplained::TooMany);
        match self.parts.iter_mut().find(|sum| sum.cause == cause) {
            Some(sum) => sum.to_ns += length_ns,
            None => {
                let (rule, certainty) = (RuleId::NoRule, Certainty::Open);
                self.parts.push(WakePart { cause, rule, certainty, ..new });
            }
        }
    }

    /// The sums as parts that follow each other without a gap, from an instant on, ns.
    pub(crate) fn laid(&self, from_ns: u64) -> impl Iterator<Item = WakePart> + '_ {
        let mut at_ns = from_ns;
        self.parts.iter().map(move |sum| {
            let from_ns = at_ns;
            at_ns += sum.length_ns();
            WakePart { from_ns, to_ns: at_ns, ..*sum }
        })
    }
}

/// Returns true where two parts differ in nothing but their times, cause and activity.
fn is_beside(sum: &WakePart, part: &WakePart) -> bool {
    (sum.phase, sum.cpu, sum.rule) == (part.phase, part.cpu, part.rule)
        && (sum.certainty, sum.is_inferred) == (part.certainty, part.is_inferred)
}

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
        let laid = |part: &WakePart| WakePart { from_ns: 0, to_ns: part.length_ns(), ..*part };
        let sums = PartSums { parts: parts.iter().map(laid).collect() };
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
        self.sums.parts.iter().any(|part| part.cause == LateCause::Unexplained(reason))
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
    use crate::past::WakePhase;
    use crate::timeline::Activity;
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
    use punctual_trace::event::{ShortName, TaskName};
    use std::collections::BTreeMap;

    fn part(length_ns: u64, cause: LateCause) -> WakePart {
        WakePart {
            from_ns: 0,
            to_ns: length_ns,
            phase: WakePhase::Ready,
            activity: Activity::Nmi,
            cpu: 0,
            cause,
            rule: RuleId::NotPreempted,
            certainty: Certainty::Certain,
            is_inferred: false,
        }
    }

    fn ran(tid: u32, name: &[u8]) -> LateCause {
        let name = ShortName::new(name);
        LateCause::HigherPriority { task: TaskName { tid, name, kernel_priority: 3 } }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn sums_are_those_of_the_parts(
            parts in proptest::collection::vec((1u64..50, 0u32..200), 1..400),
        ) {
            let mut sums = PartSums::default();
            let mut wanted: BTreeMap<u32, u64> = BTreeMap::new();
            let mut apart: Vec<u32> = Vec::new();
            for &(length_ns, number) in &parts {
                let tid = number + 1;
                sums.add(&part(length_ns, ran(tid, format!("t{tid}").as_bytes())));
                if !apart.contains(&tid) && apart.len() < PartSums::ROOM {
                    apart.push(tid);
                }
                *wanted.entry(if apart.contains(&tid) { tid } else { 0 }).or_default() += length_ns;
            }
            let mut edge = 1_000;
            let mut found: BTreeMap<u32, u64> = BTreeMap::new();
            for sum in sums.laid(1_000) {
                prop_assert_eq!(sum.from_ns, edge);
                edge = sum.to_ns;
                let tid = sum.cause.culprit().map_or(0, |task| task.tid);
                *found.entry(tid).or_default() += sum.length_ns();
            }
            prop_assert_eq!(&found, &wanted);
            prop_assert!(sums.parts.len() <= PartSums::ROOM + 1);
        }
    }

    #[test]
    fn beyond_the_room_threads_of_one_name_are_one() {
        let mut sums = PartSums::default();
        (1..=1_000).for_each(|tid| sums.add(&part(10, ran(tid, b"cc1"))));
        assert_eq!(sums.parts.len(), PartSums::ROOM);
        assert_eq!(sums.laid(5).last().map(|last| last.to_ns), Some(10_005));
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
