//! A part of a wake with what it is booked to, and the sums of many.

use crate::cause::{Certainty, LateCause, RuleId, Unexplained};
use crate::past::{Piece, WakePhase};
use crate::programs::ThreadPrograms;
use crate::timeline::Activity;

/// A part of a wake with its cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WakePart {
    /// Its begin, ns on the events' clock.
    pub from_ns: u64,
    /// Its end, ns on the events' clock.
    pub to_ns: u64,
    /// The state of its thread in it.
    pub phase: WakePhase,
    /// The activity of the CPU in it.
    pub activity: Activity,
    /// The CPU of `activity`; 0 also where that is elsewhere or unseen.
    pub cpu: u32,
    /// The cause that it is booked to.
    pub cause: LateCause,
    /// The rule that booked it.
    pub rule: RuleId,
    /// The certainty of that rule, lowered where `is_inferred`.
    pub certainty: Certainty,
    /// True where a later event shows who ran in it: the first one of its CPU, or the CPU time that
    /// was booked.
    pub is_inferred: bool,
    /// True of several stretches of a long wait that were added up: its length is right, its place
    /// among the others is not.
    pub is_sum: bool,
}

impl WakePart {
    /// A piece that a rule books to a cause. Where only a later event of the CPU shows who ran, it
    /// is strong at most, and weak for a thread without a name, whose priority is not known either.
    pub(crate) fn new(piece: &Piece, cause: LateCause, rule: RuleId, certainty: Certainty) -> Self {
        let Piece { from_ns, to_ns, phase, activity, cpu, is_inferred, .. } = *piece;
        let is_nameless = cause.culprit().is_some_and(|task| task.name.as_bytes().is_empty());
        let most = match (is_inferred, is_nameless) {
            (false, _) => Certainty::Certain,
            (true, false) => Certainty::Strong,
            (true, true) => Certainty::Weak,
        };
        let certainty = certainty.min(most);
        let is_sum = false;
        Self { from_ns, to_ns, phase, activity, cpu, cause, rule, certainty, is_inferred, is_sum }
    }

    /// Returns true where the next part differs in its times and certainty at most.
    pub(crate) fn is_like(&self, next: &Self) -> bool {
        (self.phase, self.activity, self.cpu) == (next.phase, next.activity, next.cpu)
            && (self.cause, self.rule) == (next.cause, next.rule)
            && (self.is_inferred, self.is_sum) == (next.is_inferred, next.is_sum)
    }

    /// The same of a thread that does not wait for a release yet: where it runs, what would be a
    /// switch on the way to its wake is a short stretch of its work.
    pub(crate) fn before_its_wait(self) -> Self {
        match (self.rule, self.phase, self.activity) {
            (RuleId::Switch, WakePhase::Running, Activity::Task { mode, .. }) => {
                Self { cause: LateCause::own(mode), rule: RuleId::Own, ..self }
            }
            _ => self,
        }
    }

    /// Its length, ns.
    #[must_use]
    pub const fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

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
        let new = WakePart { from_ns: 0, to_ns: length_ns, is_sum: true, ..*part };
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

    /// Books each sum anew for which `rebooked` has another part, of the same length.
    pub(crate) fn rebook(&mut self, rebooked: impl Fn(&WakePart) -> Option<WakePart>) {
        for sum in std::mem::take(&mut self.parts) {
            self.add(&rebooked(&sum).unwrap_or(sum));
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The sums, each from 0 to its length.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &WakePart> {
        self.parts.iter()
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::past::unseen;
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
    use punctual_trace::event::{ShortName, TaskName};
    use std::collections::BTreeMap;

    /// A part from 0 on, as if a thread was not preempted.
    pub(crate) fn part(length_ns: u64, cause: LateCause) -> WakePart {
        let piece =
            Piece { phase: WakePhase::Ready, activity: Activity::Nmi, ..unseen(0, length_ns) };
        WakePart::new(&piece, cause, RuleId::NotPreempted, Certainty::Certain)
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
}
