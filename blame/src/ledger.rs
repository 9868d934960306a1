//! The sums of one thread: for each cause and each octave of lateness, so that what counts as late
//! can be decided at the end.
//!
//! Of fixed size, whatever the length of the run.

use std::collections::BTreeMap;

use crate::account::{main_cause, sums};
use crate::cause::{Certainty, LateCause, RuleId, Unexplained};
use crate::culprits::{Culprit, CulpritBook, Culprits};
use crate::facts::WakeFacts;
use crate::part::WakePart;
use crate::release::ReleaseAnchor;
use crate::spread::{LatenessBounds, Spread, bucket, upper_ns};
use crate::stall::StallSums;
use crate::timeline::Activity;
use crate::wake::Wake;

/// Buckets an octave of lateness, as a power of two: 16, each at most 6.3 % wide.
const COARSE: u32 = 4;
/// Sums that are kept apart: some 0.7 MB.
const CELLS: usize = 8_192;

/// The sums of one cause.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CauseSum {
    /// Wakes of which it is the main cause.
    pub(crate) main: u64,
    /// Wakes that have it at all.
    pub(crate) touched: u64,
    pub(crate) time_ns: u64,
    /// The most that it took of one wake.
    pub(crate) worst_ns: u64,
    /// Σ confidence · time.
    pub(crate) trust_ns: f64,
    /// Wakes of which a part of it lies before the first event of its CPU.
    pub(crate) inferred: u64,
    /// Wakes with it of which records are missing.
    pub(crate) broken: u64,
    /// Wakes that it made late by making the one before late.
    pub(crate) followed: u64,
    /// Wakes that the thread which it names had released itself.
    pub(crate) by_waker: u64,
    /// Of the two causes without events: wakes that have the other one too.
    beside: u64,
    /// The most that both together took of one of those wakes, ns.
    both_ns: u64,
    /// Its stretches without an event.
    pub(crate) stalls: StallSums,
}

impl CauseSum {
    fn merge(&mut self, from: &Self) {
        self.main += from.main;
        self.touched += from.touched;
        self.time_ns = self.time_ns.saturating_add(from.time_ns);
        self.worst_ns = self.worst_ns.max(from.worst_ns);
        self.trust_ns += from.trust_ns;
        self.inferred += from.inferred;
        self.broken += from.broken;
        self.followed += from.followed;
        self.by_waker += from.by_waker;
        self.beside += from.beside;
        self.both_ns = self.both_ns.max(from.both_ns);
        self.stalls.merge(&from.stalls);
    }

    /// Adds the evidence on its stretches without an event in a wake.
    fn examine(&mut self, wake: &Wake, parts: impl Iterator<Item = WakePart>) {
        // One that follows a late wake is no stretch of its own.
        for part in parts.filter(|part| part.rule != RuleId::Follows) {
            let is_stretch = part.activity.is_task_or_idle()
                || matches!(
                    part.activity,
                    Activity::TimerInterrupt | Activity::TimerCallback { .. }
                );
            if let Some(evidence) = wake.stall_around(&part).filter(|_| is_stretch) {
                self.stalls.add(evidence, part.length_ns());
            }
        }
    }
}

/// Details of a cause beside its sums, over all wakes.
#[derive(Debug, Clone, PartialEq)]
struct CauseMemory {
    /// The threads that it names, each with the latest of its wakes.
    threads: CulpritBook<Cell>,
    /// The only CPU that it was on; `None` for several.
    cpu: Option<u32>,
    rule: RuleId,
    /// Times that the most frequent address of its gaps came; 0 where it has none.
    repeats: u64,
}

/// A cause among the late wakes, with its sums and details.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BookedCause {
    pub(crate) cause: LateCause,
    pub(crate) sum: CauseSum,
    /// The threads that it names.
    pub(crate) culprits: Culprits,
    /// The only CPU that it was on; `None` for several.
    pub(crate) cpu: Option<u32>,
    pub(crate) rule: RuleId,
    /// Times that the most frequent address of its gaps came; 0 where it has none.
    pub(crate) repeats: u64,
}

impl BookedCause {
    /// Of so many wakes, that none of their causes has a fifth of them.
    pub(crate) fn no_single(wakes: u64) -> Self {
        Self {
            cause: LateCause::NoSingle,
            sum: CauseSum { main: wakes, touched: wakes, ..CauseSum::default() },
            culprits: Culprits::default(),
            cpu: None,
            rule: RuleId::NoRule,
            repeats: 0,
        }
    }

    /// Adds the same cause of other wakes.
    fn merge(&mut self, from: &Self) {
        if from.sum.time_ns > self.sum.time_ns {
            self.rule = from.rule;
        }
        self.sum.merge(&from.sum);
        self.repeats = self.repeats.max(from.repeats);
        self.culprits.merge(&from.culprits);
        self.cpu = self.cpu.filter(|_| self.cpu == from.cpu);
    }
}

/// The cause that most of the latest wake is booked to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WorstWake {
    cell: Cell,
    release_ns: u64,
    /// Lower bound of its lateness, ns: by this it is the latest.
    least_ns: u64,
    pub(crate) lateness_ns: u64,
    /// Its cause with most time beside the normal path.
    pub(crate) cause: LateCause,
    /// The time of that, ns.
    pub(crate) time_ns: u64,
    /// The time of both causes without events, ns.
    silent_ns: u64,
}

impl WorstWake {
    /// Both causes without events are this one.
    fn rename(&mut self, to: LateCause) {
        if self.cause.is_without_events() {
            (self.cause, self.time_ns) = (to, self.silent_ns);
        }
    }
}

/// A place in the spread of lateness: on which side of the absolute threshold, and the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    is_over: bool,
    bucket: u16,
}

/// The time that one wake added to a cause, to be moved where another turns out to be the cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Booking {
    cell: Cell,
    release_ns: u64,
    cause: LateCause,
    is_main: bool,
    /// Records of that wake are missing.
    is_broken: bool,
    /// The time of the cause in that wake, ns; of it, `time_ns` is in question.
    sum_ns: u64,
    time_ns: u64,
    trust_ns: f64,
    culprit: Option<Culprit>,
    cpu: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Total {
    wakes: u64,
    no_single: u64,
}

/// The wakes that count as late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Those beyond the absolute threshold.
    Over,
    /// Those in higher buckets than this.
    Beyond(u16),
}

impl Selection {
    fn includes(self, cell: Cell) -> bool {
        match self {
            Self::Over => cell.is_over,
            Self::Beyond(bucket) => cell.bucket > bucket,
        }
    }

    /// The wakes above a lateness, rounded up to the end of its bucket, and where that is, ns.
    pub(crate) fn beyond(lateness_ns: u64) -> (Self, u64) {
        let bucket = bucket(lateness_ns, COARSE);
        (Self::Beyond(bucket), upper_ns(bucket, COARSE))
    }

    /// The same, rounded down, so that each above that lateness is among them; of less than 1 ns
    /// rounded up.
    pub(crate) fn down_to(lateness_ns: u64) -> (Self, u64) {
        let bucket = bucket(lateness_ns, COARSE);
        let is_end = upper_ns(bucket, COARSE) == lateness_ns;
        let bucket = if is_end { bucket } else { bucket.saturating_sub(1) };
        (Self::Beyond(bucket), upper_ns(bucket, COARSE))
    }
}

/// The late part of a ledger.
#[derive(Debug, Clone, Default)]
pub(crate) struct LatePart {
    pub(crate) late: u64,
    pub(crate) no_single: u64,
    pub(crate) causes: Vec<BookedCause>,
    pub(crate) worst: Option<WorstWake>,
}

impl LatePart {
    /// Adds that of another thread.
    pub(crate) fn merge(&mut self, with: &Self) {
        self.late += with.late;
        self.no_single += with.no_single;
        with.causes.iter().cloned().for_each(|booked| self.add(booked));
        let worst = [self.worst, with.worst].into_iter().flatten();
        self.worst = worst.max_by_key(|worst| worst.least_ns);
    }

    fn add(&mut self, booked: BookedCause) {
        match self.causes.iter_mut().find(|known| known.cause == booked.cause) {
            Some(known) => known.merge(&booked),
            None => self.causes.push(booked),
        }
    }

    /// Sums of the evidence that CPUs did not run, over all stretches that could be that.
    pub(crate) fn stalls(&self) -> StallSums {
        let mut sums = StallSums::default();
        self.without_events().for_each(|booked| sums.merge(&booked.sum.stalls));
        sums
    }

    /// Books one of the causes without events as the other one.
    fn rename(&mut self, from: LateCause, to: LateCause, change: impl Fn(&mut BookedCause)) {
        let Some(at) = self.causes.iter().position(|booked| booked.cause == from) else { return };
        let mut renamed = self.causes.swap_remove(at);
        renamed.cause = to;
        change(&mut renamed);
        if self.causes.iter().any(|booked| booked.cause == to) {
            let sum = &mut renamed.sum;
            sum.touched = sum.touched.saturating_sub(std::mem::take(&mut sum.beside));
            sum.inferred = sum.inferred.min(sum.touched);
            sum.worst_ns = sum.worst_ns.max(sum.both_ns);
        }
        self.add(renamed);
        if let Some(worst) = &mut self.worst {
            worst.rename(to);
        }
    }

    /// What could be CPUs that did not run.
    fn without_events(&self) -> impl Iterator<Item = &BookedCause> {
        self.causes.iter().filter(|booked| booked.cause.is_without_events())
    }

    /// The wakes that are late mostly by what could be a CPU that did not run.
    pub(crate) fn stopped_wakes(&self) -> u64 {
        // One that follows a late wake is not a stop of its own.
        self.without_events()
            .map(|booked| booked.sum.main.saturating_sub(booked.sum.followed))
            .sum()
    }

    /// Moves time without an event to the firmware: its interrupts were counted, one at least for
    /// each wake.
    pub(crate) fn give_to_firmware(&mut self) {
        self.rename(LateCause::NoEvent, LateCause::HostOrFirmware, |silent| {
            silent.sum.trust_ns = silent.sum.time_ns as f64 * Certainty::Fair.confidence();
            silent.rule = RuleId::CountedInterrupts;
        });
    }

    /// Moves the time of CPUs that did not run to time without an event: for no more than chance
    /// shows that they did not.
    pub(crate) fn take_back_stops(&mut self) {
        self.rename(LateCause::HostOrFirmware, LateCause::NoEvent, |stop| {
            stop.sum.trust_ns = stop.sum.time_ns as f64 * Certainty::Weak.confidence();
            stop.rule = stop.rule.unconfirmed();
        });
    }
}

/// Wakes that reach out of the recording: later than what counts as their lateness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenWakes {
    /// Those that waited when it began, or whose timer was programmed before that.
    pub begun: u64,
    /// Those that still waited when it ended.
    pub waiting: u64,
}

impl OpenWakes {
    pub(crate) const fn merge(&mut self, from: Self) {
        self.begun += from.begun;
        self.waiting += from.waiting;
    }
}

/// The sums of one thread, by cause and by lateness.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    causes: Vec<(LateCause, CauseMemory)>,
    worst: Option<WorstWake>,
    room: usize,
    cells: BTreeMap<(Cell, u16), CauseSum>,
    totals: BTreeMap<Cell, Total>,
    spread: Spread,
    most: Spread,
    censored: u64,
    broken: u64,
    open: OpenWakes,
    over: u64,
    uncounted: u64,
}

impl Ledger {
    /// An empty ledger with room for so many causes, 2..65535.
    pub(crate) fn new(causes: usize) -> Self {
        Self { room: causes.clamp(2, usize::from(u16::MAX)), ..Self::default() }
    }

    /// The spread of the lower bounds of lateness.
    pub(crate) const fn spread(&self) -> &Spread {
        &self.spread
    }

    /// The lateness that this share of all wakes, 0..1, does not exceed, between its bounds.
    pub(crate) fn quantile(&self, share: f64) -> LatenessBounds {
        LatenessBounds::new(self.spread.quantile_ns(share), self.most.quantile_ns(share))
    }

    /// The largest lateness, between its bounds.
    pub(crate) const fn max(&self) -> LatenessBounds {
        LatenessBounds::new(self.spread.max_ns(), self.most.max_ns())
    }

    /// Wakes whose begin is bounded only, and not by CPU time.
    pub(crate) const fn censored(&self) -> u64 {
        self.censored
    }

    /// Wakes of which something is missing.
    pub(crate) const fn broken(&self) -> u64 {
        self.broken
    }

    /// Wakes that waited before the recording began, and those that still did at its end.
    pub(crate) const fn open(&self) -> OpenWakes {
        self.open
    }

    /// Wakes beyond the absolute threshold.
    pub(crate) const fn over(&self) -> u64 {
        self.over
    }

    /// Sums that did not fit, and were left out.
    pub(crate) const fn uncounted(&self) -> u64 {
        self.uncounted
    }

    /// Counts a wake at once; its causes may follow later.
    pub(crate) fn note(&mut self, wake: &Wake, threshold_ns: u64) {
        self.spread.add(wake.least_ns());
        self.most.add(wake.lateness_ns());
        self.over += u64::from(wake.least_ns() > threshold_ns);
        self.censored += u64::from(wake.is_censored() && !wake.run.is_inferred);
        self.broken += u64::from(!wake.activation.is_whole);
        self.open.begun += u64::from(wake.activation.anchor == ReleaseAnchor::Unseen);
        self.open.waiting += u64::from(wake.run.is_waiting);
    }

    fn cell(wake: &Wake, threshold_ns: u64) -> Cell {
        let least_ns = wake.least_ns();
        Cell { is_over: least_ns > threshold_ns, bucket: bucket(least_ns, COARSE) }
    }

    /// The booking of a part of a wake that was just added.
    pub(crate) fn booking(
        wake: &Wake,
        parts: &[WakePart],
        part: &WakePart,
        threshold_ns: u64,
    ) -> Booking {
        let facts = &wake.facts;
        let sums = sums(parts, facts);
        let cause = part.cause.grouped(&facts.programs);
        let is_at = |other: &&WakePart| other.cause == part.cause;
        let time_ns = parts.iter().filter(is_at).map(WakePart::length_ns).sum();
        Booking {
            cell: Self::cell(wake, threshold_ns),
            release_ns: wake.activation.release_ns,
            cause,
            is_main: main_cause(&sums, wake.lateness_ns()) == cause,
            is_broken: !wake.activation.is_whole,
            sum_ns: sums.iter().find(|(known, _)| *known == cause).map_or(0, |(_, sum)| *sum),
            time_ns,
            trust_ns: time_ns as f64 * part.certainty.confidence(),
            culprit: facts.culprit(part),
            cpu: part.cpu,
        }
    }

    /// Moves what was booked to another cause, that of `part`, which is as rows have it.
    pub(crate) fn rebook(&mut self, booking: &Booking, part: &WakePart) {
        let Booking { cell, time_ns, sum_ns, .. } = *booking;
        let is_whole_sum = time_ns == sum_ns;
        let from = self.causes.iter().position(|(known, _)| *known == booking.cause);
        let Some(sum) = from.and_then(|index| self.cells.get_mut(&(cell, index as u16))) else {
            return;
        };
        sum.time_ns = sum.time_ns.saturating_sub(time_ns);
        sum.trust_ns = (sum.trust_ns - booking.trust_ns).max(0.0);
        let [main, broken] = [booking.is_main, booking.is_broken].map(u64::from);
        if is_whole_sum {
            sum.main = sum.main.saturating_sub(main);
            sum.touched = sum.touched.saturating_sub(1);
            sum.broken = sum.broken.saturating_sub(broken);
        }
        let moved = CauseSum {
            main: if is_whole_sum { main } else { 0 },
            touched: 1,
            broken,
            time_ns,
            worst_ns: time_ns,
            trust_ns: time_ns as f64 * part.certainty.confidence(),
            ..CauseSum::default()
        };
        let index = self.index(part.cause, part, true);
        let memory = &mut self.causes[usize::from(index)].1;
        if let Some(culprit) = booking.culprit {
            memory.threads.add(culprit, cell, time_ns);
        }
        memory.cpu = memory.cpu.filter(|&cpu| cpu == booking.cpu);
        self.cells.entry((cell, index)).or_default().merge(&moved);
        let is_it = |worst: &&mut WorstWake| {
            (worst.release_ns, worst.cause, worst.time_ns)
                == (booking.release_ns, booking.cause, time_ns)
        };
        if let Some(worst) = self.worst.as_mut().filter(is_it) {
            worst.cause = part.cause;
        }
    }

    /// Takes in that the address of this cause came so many times.
    pub(crate) fn note_repeats(&mut self, cause: LateCause, repeats: u64) {
        if let Some((_, memory)) = self.causes.iter_mut().find(|(known, _)| *known == cause) {
            memory.repeats = memory.repeats.max(repeats);
        }
    }

    /// Adds the causes of a wake, and returns the main one.
    pub(crate) fn add(&mut self, wake: &Wake, parts: &[WakePart], threshold_ns: u64) -> LateCause {
        let facts = &wake.facts;
        let lateness_ns = wake.lateness_ns();
        let cell = Self::cell(wake, threshold_ns);
        let sums = sums(parts, facts);
        let main = main_cause(&sums, lateness_ns);
        let total = self.totals.entry(cell).or_default();
        total.wakes += 1;
        total.no_single += u64::from(main == LateCause::NoSingle);
        let silent = sums.iter().filter(|(cause, _)| cause.is_without_events());
        let (silent, silent_ns) =
            silent.fold((0, 0), |(causes, total_ns), (_, ns)| (causes + 1, total_ns + ns));
        let is_both = silent > 1;
        let is_latest = self.worst.is_none_or(|worst| wake.least_ns() > worst.least_ns);
        let longest = sums.iter().find(|(cause, _)| cause.is_nameable());
        if let Some(&(cause, time_ns)) = longest.filter(|_| is_latest) {
            let (release_ns, least_ns) = (wake.activation.release_ns, wake.least_ns());
            self.worst = Some(WorstWake {
                cell,
                release_ns,
                least_ns,
                lateness_ns,
                cause,
                time_ns,
                silent_ns,
            });
        }
        let sound = if wake.activation.is_whole { 1.0 } else { sound(parts, lateness_ns) };
        for (cause, time_ns) in sums {
            let of_cause =
                || parts.iter().copied().filter(move |part| facts.counted(part) == cause);
            let waker = wake.activation.anchor.waker();
            let is_wakers = |part: WakePart| part.cause.culprit().map(|task| task.tid) == waker;
            let trust = |part: WakePart| part.length_ns() as f64 * part.certainty.confidence();
            let mut sum = CauseSum {
                main: u64::from(cause == main),
                touched: 1,
                time_ns,
                worst_ns: time_ns,
                trust_ns: of_cause().map(trust).sum::<f64>() * sound,
                inferred: u64::from(of_cause().any(|part| part.is_inferred)),
                broken: u64::from(!wake.activation.is_whole),
                followed: u64::from(of_cause().any(|part| facts.has_root(&part))),
                by_waker: u64::from(waker.is_some() && of_cause().any(is_wakers)),
                beside: u64::from(is_both && cause.is_without_events()),
                both_ns: if is_both && cause.is_without_events() { silent_ns } else { 0 },
                ..CauseSum::default()
            };
            sum.examine(wake, of_cause());
            let Some(first) = of_cause().next() else { continue };
            let index = self.index(cause, &first, cell.is_over || threshold_ns == u64::MAX);
            self.remember(index, of_cause(), cell, facts);
            let is_known = self.cells.contains_key(&(cell, index));
            if is_known || self.cells.len() < CELLS {
                self.cells.entry((cell, index)).or_default().merge(&sum);
            } else {
                self.uncounted += 1;
            }
        }
        main
    }

    /// The number of a cause. Those of wakes on time may take half of the room.
    fn index(&mut self, cause: LateCause, first: &WakePart, is_late: bool) -> u16 {
        let known = |wanted: LateCause| {
            self.causes.iter().position(|(known, _)| *known == wanted).map(|index| index as u16)
        };
        if let Some(index) = known(cause) {
            return index;
        }
        let room = if is_late { self.room } else { self.room.div_ceil(2) };
        let is_last = self.causes.len() + 1 >= room;
        let cause = if is_last { LateCause::Unexplained(Unexplained::TooMany) } else { cause };
        if let Some(index) = known(cause).filter(|_| is_last) {
            return index;
        }
        let memory = CauseMemory {
            threads: CulpritBook::default(),
            cpu: Some(first.cpu),
            rule: first.rule,
            repeats: 0,
        };
        self.causes.push((cause, memory));
        // The room is at most that of a u16.
        (self.causes.len() - 1) as u16
    }

    /// Remembers the threads of a cause, and its CPU.
    fn remember(
        &mut self,
        index: u16,
        parts: impl Iterator<Item = WakePart>,
        cell: Cell,
        facts: &WakeFacts,
    ) {
        let memory = &mut self.causes[usize::from(index)].1;
        for part in parts {
            if memory.rule == RuleId::Follows {
                // What shows the cause itself.
                memory.rule = part.rule;
            }
            if let Some(culprit) = facts.culprit(&part) {
                memory.threads.add(culprit, cell, part.length_ns());
            }
            memory.cpu = memory.cpu.filter(|&cpu| cpu == part.cpu);
        }
    }

    /// The sums of the wakes that are late.
    pub(crate) fn late(&self, selection: Selection) -> LatePart {
        let mut late = LatePart::default();
        let selected = self.totals.iter().filter(|(cell, _)| selection.includes(**cell));
        for (_, total) in selected {
            late.late += total.wakes;
            late.no_single += total.no_single;
        }
        let mut sums: BTreeMap<u16, CauseSum> = BTreeMap::new();
        for ((cell, index), sum) in &self.cells {
            if selection.includes(*cell) {
                sums.entry(*index).or_default().merge(sum);
            }
        }
        let booked = sums.into_iter().filter(|(_, sum)| sum.touched > 0).map(|(index, sum)| {
            let (cause, memory) = &self.causes[usize::from(index)];
            BookedCause {
                cause: *cause,
                sum,
                culprits: memory.threads.of(|cell| selection.includes(cell)),
                cpu: memory.cpu,
                rule: memory.rule,
                repeats: memory.repeats,
            }
        });
        late.causes = booked.collect();
        late.worst = self.worst.filter(|worst| selection.includes(worst.cell));
        late
    }
}

/// Factor of the confidence in a wake of which records are missing, 0..1.
const BROKEN: f64 = 0.5;

/// Factor of the confidence in causes of a wake with missing records, 0..1: half of the share of it
/// that is explained.
fn sound(parts: &[WakePart], lateness_ns: u64) -> f64 {
    let is_open = |part: &&WakePart| matches!(part.cause, LateCause::Unexplained(_));
    let open_ns: u64 = parts.iter().filter(is_open).map(WakePart::length_ns).sum();
    BROKEN * (1.0 - open_ns as f64 / lateness_ns.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::tests::part;
    use crate::release::Activation;
    use crate::timeline::Moment;
    use crate::wake::Run;
    use punctual_trace::event::TaskName;

    #[test]
    fn the_latest_wake_has_the_time_of_both_causes_without_events() {
        // As rows have it, without its number.
        let hog = TaskName { kernel_priority: 3, ..TaskName::default() };
        let late = |host_ns, no_event_ns| {
            let parts = [
                part(120, LateCause::HigherPriority { task: hog }),
                part(host_ns, LateCause::HostOrFirmware),
                part(no_event_ns, LateCause::NoEvent),
            ];
            let at_ns = parts.iter().map(WakePart::length_ns).sum();
            let run = Run::new(Moment { cpu: 0, at_ns }, TaskName::default());
            let wake = Wake::new(0, TaskName::default(), Activation::unseen(0), run);
            let mut ledger = Ledger::new(8);
            ledger.add(&wake, &parts, 0);
            ledger.late(Selection::Over)
        };
        let worst = |late: &LatePart| late.worst.map(|worst| (worst.cause, worst.time_ns));
        let silent = |late: &LatePart| {
            late.without_events().map(|booked| (booked.cause, booked.sum)).next().expect("one")
        };
        let host = LateCause::HostOrFirmware;
        let mut firmware = late(100, 130);
        assert_eq!(worst(&firmware), Some((LateCause::NoEvent, 130)));
        firmware.give_to_firmware();
        assert_eq!(worst(&firmware), Some((host, 230)));
        let mut chance = late(130, 100);
        chance.take_back_stops();
        assert_eq!(worst(&chance), Some((LateCause::NoEvent, 230)));
        for (late, cause) in [(firmware, host), (chance, LateCause::NoEvent)] {
            let (only, sum) = silent(&late);
            assert_eq!((only, sum.worst_ns, sum.touched), (cause, 230, 1));
        }
        // What is judged for one of its other causes stays so.
        let mut hung = late(100, 80);
        hung.give_to_firmware();
        assert_eq!(worst(&hung), Some((LateCause::HigherPriority { task: hog }, 120)));
    }
}
