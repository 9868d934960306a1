//! Late wakes that are kept whole: the worst, and an even sample of the others.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use punctual_trace::event::{CodeAddress, TaskName, Tid};

use crate::cause::{Certainty, LateCause, RuleId};
use crate::counters::WakeCounts;
use crate::culprits::Culprits;
use crate::facts::WakeFacts;
use crate::part::{PartSums, WakePart};
use crate::programs::ProgramOwner;
use crate::release::ReleaseAnchor;
use crate::wake::Wake;

/// Parts of a kept wake; of more, the middle ones are added up.
const PARTS: usize = 256;

/// A late wake, to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct LateWake {
    /// The thread, as it was then.
    pub task: TaskName,
    /// The event that released it.
    pub anchor: ReleaseAnchor,
    /// Its release, ns on the events' clock.
    pub release_ns: u64,
    /// The first event that shows it running, ns on the events' clock; the end of the recording
    /// where it still waited.
    pub ran_ns: u64,
    /// The earliest instant at which it can have run: before `ran_ns` where a switch was not
    /// recorded. What counts as its lateness ends there.
    pub ran_from_ns: u64,
    /// The CPU that it ran on.
    pub cpu: u32,
    /// The thread that ran before it; all empty where no switch shows that.
    pub before: TaskName,
    /// Its main cause.
    pub main: LateCause,
    /// The time of that cause, ns.
    pub main_ns: u64,
    /// True where all events of it are there.
    pub is_whole: bool,
    /// Its parts, without gaps, from release to run; they add up to the nanosecond.
    pub parts: Vec<WakePart>,
    /// True where it still waited when the recording ended.
    pub(crate) is_waiting: bool,
    /// True where its run is bounded by the CPU time that was booked to it.
    pub(crate) is_inferred: bool,
    /// True where parts lost their order and were added up by cause, since there were too many.
    pub is_condensed: bool,
    /// The call chain that shows its main cause, innermost first; empty where there is none.
    pub chain: Box<[CodeAddress]>,
    /// The facts beside the events by which it was judged.
    pub(crate) facts: WakeFacts,
}

impl LateWake {
    /// A late wake to be kept, from its account, of which `main` is the main cause. `unsettled` is
    /// the account before addresses that came again were taken for causes, where there are any:
    /// their number is known in the end.
    pub(crate) fn new(
        wake: Wake,
        parts: Vec<WakePart>,
        unsettled: Option<Vec<WakePart>>,
        main: LateCause,
    ) -> Self {
        let facts = &wake.facts;
        let is_main = |part: &&WakePart| facts.counted(part) == main;
        let main_ns = parts.iter().filter(is_main).map(WakePart::length_ns).sum();
        let longest = parts.iter().filter(is_main).max_by_key(|part| part.length_ns());
        let chain = longest.and_then(|part| {
            let tid = part.cause.culprit()?.tid;
            let index = wake.window.pieces.iter().position(|piece| piece.to_ns >= part.to_ns)?;
            wake.chain_near(index, tid, part.cpu)
        });
        let parts = unsettled.unwrap_or(parts);
        let is_long = parts.len() > PARTS;
        Self {
            task: wake.task,
            anchor: wake.activation.anchor,
            release_ns: wake.activation.release_ns,
            ran_ns: wake.run.at_ns,
            ran_from_ns: wake.run.from_ns,
            cpu: wake.run.cpu,
            before: wake.run.before,
            main,
            main_ns,
            is_whole: wake.activation.is_whole,
            is_waiting: wake.run.is_waiting,
            is_inferred: wake.run.is_inferred,
            chain: chain.map_or(&wake.judged_chain, |chain| &chain.addresses).clone(),
            parts: if is_long { condensed(&parts) } else { parts },
            is_condensed: is_long || wake.begin.is_some(),
            facts: wake.facts,
        }
    }

    /// From the release to the first event that shows it running, ns.
    #[must_use]
    pub const fn lateness_ns(&self) -> u64 {
        self.ran_ns - self.release_ns
    }

    /// As [`LatePart::take_back_stops`](crate::ledger::LatePart::take_back_stops).
    pub(crate) fn take_back_stops(&mut self) {
        self.rename(LateCause::HostOrFirmware, |part| {
            part.cause = part.cause.unconfirmed();
            (part.rule, part.certainty) = (part.rule.unconfirmed(), Certainty::Weak);
        });
        self.main = self.main.unconfirmed();
        self.add_up_main();
    }

    /// As [`LatePart::give_to_firmware`](crate::ledger::LatePart::give_to_firmware).
    pub(crate) fn give_to_firmware(&mut self) {
        self.rename(LateCause::NoEvent, |part| {
            part.cause = part.cause.confirmed();
            (part.rule, part.certainty) = (RuleId::CountedInterrupts, Certainty::Fair);
        });
        self.main = self.main.confirmed();
        self.add_up_main();
    }

    fn rename(&mut self, from: LateCause, change: impl Fn(&mut WakePart)) {
        self.parts.iter_mut().filter(|part| part.cause == from).for_each(change);
    }

    /// The time of the main cause, after others became it: never less than before, for parts may
    /// have been left out.
    fn add_up_main(&mut self) {
        let is_main = |part: &&WakePart| self.facts.counted(part) == self.main;
        let main_ns: u64 = self.parts.iter().filter(is_main).map(WakePart::length_ns).sum();
        self.main_ns = self.main_ns.max(main_ns);
    }

    /// The threads that its main cause names.
    pub(crate) fn culprits(&self) -> Culprits {
        let is_main = |part: &&WakePart| self.facts.counted(part) == self.main;
        let main = self.parts.iter().filter(is_main);
        Culprits::of_wake(
            main.filter_map(|part| Some((self.facts.culprit(part)?, part.length_ns()))),
        )
    }

    /// The owner of a thread that its parts name.
    pub(crate) fn owner(&self, tid: Tid) -> ProgramOwner {
        self.facts.programs.owner(tid)
    }

    /// Counts of the processor around it, where they were recorded.
    #[must_use]
    pub const fn counts(&self) -> WakeCounts {
        self.facts.counts
    }

    /// Lower bound of its lateness, ns: by this it is judged late.
    #[must_use]
    pub const fn least_ns(&self) -> u64 {
        self.ran_from_ns.saturating_sub(self.release_ns)
    }
}

/// The first and the last parts as they are, and those between added up by cause.
fn condensed(parts: &[WakePart]) -> Vec<WakePart> {
    let kept = (PARTS - PartSums::ROOM - 1) / 2;
    let (begin, rest) = parts.split_at(kept);
    let (middle, end) = rest.split_at(rest.len() - kept);
    let mut sums = PartSums::default();
    middle.iter().for_each(|part| sums.add(part));
    let from_ns = middle.first().map_or(0, |part| part.from_ns);
    let laid = sums.laid(from_ns);
    begin.iter().copied().chain(laid).chain(end.iter().copied()).collect()
}

#[derive(Debug, Clone)]
struct Ranked(LateWake);

impl Ranked {
    fn key(&self) -> (u64, Reverse<u64>) {
        (self.0.least_ns(), Reverse(self.0.release_ns))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, with: &Self) -> bool {
        self.key() == with.key()
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, with: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(with))
    }
}

impl Ord for Ranked {
    fn cmp(&self, with: &Self) -> std::cmp::Ordering {
        self.key().cmp(&with.key())
    }
}

/// Late wakes that are kept whole: the worst, and an even sample of the others.
#[derive(Debug, Clone)]
pub(crate) struct Keep {
    worst: BinaryHeap<Reverse<Ranked>>,
    worst_room: usize,
    sample: Vec<LateWake>,
    sample_room: usize,
    offered: u64,
    state: u64,
}

impl Keep {
    pub(crate) const fn new(worst_room: usize, sample_room: usize) -> Self {
        Self {
            worst: BinaryHeap::new(),
            worst_room,
            sample: Vec::new(),
            sample_room,
            offered: 0,
            state: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Offers a late wake: it takes the place of a less late one, which goes to the sample.
    pub(crate) fn offer(&mut self, wake: LateWake) {
        self.worst.push(Reverse(Ranked(wake)));
        if self.worst.len() > self.worst_room
            && let Some(Reverse(Ranked(wake))) = self.worst.pop()
        {
            self.offer_sample(wake);
        }
    }

    /// Vitter's algorithm R: each that was offered is kept with the same probability.
    fn offer_sample(&mut self, wake: LateWake) {
        self.offered += 1;
        if self.sample.len() < self.sample_room {
            self.sample.push(wake);
            return;
        }
        // Marsaglia's xorshift64: the same each time.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let place = self.state % self.offered;
        if let Some(kept) = usize::try_from(place).ok().and_then(|at| self.sample.get_mut(at)) {
            *kept = wake;
        }
    }

    /// Threads and releases of what is kept now.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (Tid, u64)> + '_ {
        let worst = self.worst.iter().map(|Reverse(Ranked(wake))| wake);
        worst.chain(&self.sample).map(|wake| (wake.task.tid, wake.release_ns))
    }

    /// The worst, latest first, and the sample, in the order of time.
    pub(crate) fn into_parts(self) -> (Vec<LateWake>, Vec<LateWake>) {
        let worst = self.worst.into_sorted_vec().into_iter().map(|Reverse(Ranked(wake))| wake);
        let mut sample = self.sample;
        sample.sort_by_key(|wake| wake.release_ns);
        (worst.collect(), sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::RuleId;
    use crate::past::{Piece, WakePhase, unseen};
    use crate::timeline::Activity;

    fn part(from_ns: u64, to_ns: u64) -> WakePart {
        let piece =
            Piece { phase: WakePhase::Ready, activity: Activity::Nmi, ..unseen(from_ns, to_ns) };
        WakePart::new(&piece, LateCause::Nmi, RuleId::Interrupt, Certainty::Certain)
    }

    fn wake(release_ns: u64, lateness_ns: u64) -> LateWake {
        LateWake {
            task: TaskName::default(),
            anchor: ReleaseAnchor::Interrupt,
            release_ns,
            ran_ns: release_ns + lateness_ns,
            ran_from_ns: release_ns + lateness_ns,
            cpu: 0,
            before: TaskName::default(),
            main: LateCause::Nmi,
            main_ns: 0,
            is_whole: true,
            is_waiting: false,
            is_inferred: false,
            parts: Vec::new(),
            is_condensed: false,
            chain: Box::default(),
            facts: WakeFacts::default(),
        }
    }

    #[test]
    fn keeps_the_worst_and_an_even_sample_of_the_others() {
        let mut keep = Keep::new(20, 100);
        for number in 0..10_000_u64 {
            keep.offer(wake(number * 1_000, number * 7_919 % 10_000));
        }
        let (worst, sample) = keep.into_parts();
        let latest: Vec<u64> = worst.iter().map(LateWake::lateness_ns).collect();
        assert_eq!(latest, (9_980..10_000).rev().collect::<Vec<u64>>());
        assert_eq!(sample.len(), 100);
        let first_half = sample.iter().filter(|wake| wake.release_ns < 5_000_000).count();
        assert!((30..=70).contains(&first_half), "{first_half}");
        assert!(sample.iter().all(|wake| wake.lateness_ns() < 9_980));
    }

    #[test]
    fn room_for_none_keeps_none() {
        let mut keep = Keep::new(0, 0);
        (0..10).for_each(|number| keep.offer(wake(number, number)));
        assert_eq!(keep.into_parts(), (Vec::new(), Vec::new()));
    }

    #[test]
    fn too_many_parts_keep_begin_end_and_the_sum_of_each_cause() {
        let cause =
            |at: u64| if at.is_multiple_of(3) { LateCause::OwnCode } else { LateCause::Nmi };
        let part = |at: u64| WakePart { cause: cause(at), ..part(at * 10, at * 10 + 10) };
        let parts: Vec<WakePart> = (0..1_000).map(part).collect();
        let joined = condensed(&parts);
        assert!(joined.len() < PARTS, "{}", joined.len());
        let is_own = |part: &&WakePart| part.cause == LateCause::OwnCode;
        let sum = |parts: &[WakePart]| parts.iter().map(WakePart::length_ns).sum::<u64>();
        let own =
            |parts: &[WakePart]| parts.iter().filter(is_own).map(WakePart::length_ns).sum::<u64>();
        assert_eq!((sum(&joined), own(&joined)), (10_000, own(&parts)));
        assert!(joined.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
    }
}
