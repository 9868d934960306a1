//! The sums of one thread: for each cause and each octave of lateness, so that what counts as late
//! can be decided at the end.
//!
//! Of fixed size, whatever the length of the run.

use std::collections::BTreeMap;

use punctual_trace::event::Tid;

use crate::account::{WakePart, main_cause, sums};
use crate::cause::{LateCause, Unexplained};
use crate::rules::RuleId;
use crate::spread::{LatenessBounds, Spread, bucket, upper_ns};
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
    /// Of those, the ones with nothing lost.
    pub(crate) whole: u64,
    pub(crate) time_ns: u64,
    /// The most that it took of one wake.
    pub(crate) worst_ns: u64,
    /// Σ confidence · time.
    pub(crate) trust_ns: f64,
}

impl CauseSum {
    pub(crate) fn merge(&mut self, from: &Self) {
        self.main += from.main;
        self.touched += from.touched;
        self.whole += from.whole;
        self.time_ns = self.time_ns.saturating_add(from.time_ns);
        self.worst_ns = self.worst_ns.max(from.worst_ns);
        self.trust_ns += from.trust_ns;
    }
}

/// What is remembered of a cause beside its sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CauseDetail {
    /// The only thread that it names; `None` for several.
    pub(crate) tid: Option<Tid>,
    /// The only CPU that it was on; `None` for several.
    pub(crate) cpu: Option<u32>,
    pub(crate) rule: RuleId,
    /// Stretches without an event that were examined.
    pub(crate) stalls: u64,
    pub(crate) coincident: u64,
    pub(crate) expected: f64,
    pub(crate) stolen: u64,
    /// How often the address of a gap came, at most.
    pub(crate) repeats: u64,
}

impl CauseDetail {
    pub(crate) fn merge(&mut self, from: &Self) {
        self.repeats = self.repeats.max(from.repeats);
        self.tid = self.tid.filter(|_| self.tid == from.tid);
        self.cpu = self.cpu.filter(|_| self.cpu == from.cpu);
        self.stalls += from.stalls;
        self.coincident += from.coincident;
        self.expected += from.expected;
        self.stolen += from.stolen;
    }
}

/// Where in the spread of lateness: later than the absolute threshold, and in which bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    is_over: bool,
    bucket: u16,
}

/// What one wake added to a cause that it may turn out not to have been.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Booking {
    cell: Cell,
    cause: LateCause,
    is_main: bool,
    is_whole: bool,
    /// Of the cause in that wake: all, and the part in question.
    sum_ns: u64,
    time_ns: u64,
    trust_ns: f64,
    tid: Option<Tid>,
    cpu: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Total {
    wakes: u64,
    lateness_ns: u64,
    no_single: u64,
}

/// Which wakes are late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Those beyond the absolute threshold.
    Over,
    /// Those beyond a bucket.
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
}

/// The late part of a ledger.
#[derive(Debug, Clone, Default)]
pub(crate) struct LatePart {
    pub(crate) late: u64,
    pub(crate) lateness_ns: u64,
    pub(crate) no_single: u64,
    pub(crate) causes: Vec<(LateCause, CauseSum, CauseDetail)>,
}

/// The sums.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    causes: Vec<(LateCause, CauseDetail)>,
    room: usize,
    cells: BTreeMap<(Cell, u16), CauseSum>,
    totals: BTreeMap<Cell, Total>,
    spread: Spread,
    most: Spread,
    censored: u64,
    broken: u64,
    over: u64,
    uncounted: u64,
}

impl Ledger {
    /// With room for so many causes.
    pub(crate) fn new(causes: usize) -> Self {
        Self { room: causes.clamp(2, usize::from(u16::MAX)), ..Self::default() }
    }

    /// How late wakes were, as far as is certain.
    pub(crate) const fn spread(&self) -> &Spread {
        &self.spread
    }

    /// How late this share of them is at most, between what is certain and what may be.
    pub(crate) fn quantile(&self, share: f64) -> LatenessBounds {
        LatenessBounds::new(self.spread.quantile_ns(share), self.most.quantile_ns(share))
    }

    /// How late the latest was.
    pub(crate) const fn max(&self) -> LatenessBounds {
        LatenessBounds::new(self.spread.max_ns(), self.most.max_ns())
    }

    /// Wakes whose begin is only bounded.
    pub(crate) const fn censored(&self) -> u64 {
        self.censored
    }

    /// Wakes of which something is missing.
    pub(crate) const fn broken(&self) -> u64 {
        self.broken
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
        self.censored += u64::from(wake.is_censored());
        self.broken += u64::from(!wake.is_whole);
    }

    fn cell(wake: &Wake, threshold_ns: u64) -> Cell {
        let least_ns = wake.least_ns();
        Cell { is_over: least_ns > threshold_ns, bucket: bucket(least_ns, COARSE) }
    }

    /// What a part of a wake that was just added stands for.
    pub(crate) fn booking(
        wake: &Wake,
        parts: &[WakePart],
        part: &WakePart,
        threshold_ns: u64,
    ) -> Booking {
        let sums = sums(parts);
        let cause = part.cause.grouped();
        let is_at = |other: &&WakePart| other.cause == part.cause;
        let time_ns = parts.iter().filter(is_at).map(WakePart::length_ns).sum();
        Booking {
            cell: Self::cell(wake, threshold_ns),
            cause,
            is_main: main_cause(&sums, wake.lateness_ns()) == cause,
            is_whole: wake.is_whole,
            sum_ns: sums.iter().find(|(known, _)| *known == cause).map_or(0, |(_, sum)| *sum),
            time_ns,
            trust_ns: time_ns as f64 * part.certainty.confidence(),
            tid: part.cause.culprit().map(|task| task.tid),
            cpu: part.cpu,
        }
    }

    /// Moves what was booked to another cause, that of `part`.
    pub(crate) fn rebook(&mut self, booking: &Booking, part: &WakePart) {
        let Booking { cell, time_ns, sum_ns, .. } = *booking;
        let is_whole_sum = time_ns == sum_ns;
        let from = self.causes.iter().position(|(known, _)| *known == booking.cause);
        let Some(sum) = from.and_then(|index| self.cells.get_mut(&(cell, index as u16))) else {
            return;
        };
        sum.time_ns = sum.time_ns.saturating_sub(time_ns);
        sum.trust_ns = (sum.trust_ns - booking.trust_ns).max(0.0);
        let (main, whole) = (u64::from(booking.is_main), u64::from(booking.is_whole));
        if is_whole_sum {
            sum.main = sum.main.saturating_sub(main);
            sum.touched = sum.touched.saturating_sub(1);
            sum.whole = sum.whole.saturating_sub(whole);
        }
        let moved = CauseSum {
            main: if is_whole_sum { main } else { 0 },
            touched: 1,
            whole,
            time_ns,
            worst_ns: time_ns,
            trust_ns: time_ns as f64 * part.certainty.confidence(),
        };
        let index = self.index(part.cause.grouped(), part, true);
        let detail = &mut self.causes[usize::from(index)].1;
        detail.tid = detail.tid.filter(|_| detail.tid == booking.tid);
        detail.cpu = detail.cpu.filter(|&cpu| cpu == booking.cpu);
        self.cells.entry((cell, index)).or_default().merge(&moved);
    }

    /// The address of this cause came so often.
    pub(crate) fn note_repeats(&mut self, cause: LateCause, repeats: u64) {
        if let Some((_, detail)) = self.causes.iter_mut().find(|(known, _)| *known == cause) {
            detail.repeats = detail.repeats.max(repeats);
        }
    }

    /// Adds the causes of a wake, and returns the main one.
    pub(crate) fn add(&mut self, wake: &Wake, parts: &[WakePart], threshold_ns: u64) -> LateCause {
        let lateness_ns = wake.lateness_ns();
        let cell = Self::cell(wake, threshold_ns);
        let sums = sums(parts);
        let main = main_cause(&sums, lateness_ns);
        let total = self.totals.entry(cell).or_default();
        total.wakes += 1;
        total.lateness_ns = total.lateness_ns.saturating_add(lateness_ns);
        total.no_single += u64::from(main == LateCause::NoSingle);
        for (cause, time_ns) in sums {
            let of_cause = || parts.iter().filter(move |part| part.cause.grouped() == cause);
            let trust = |part: &WakePart| part.length_ns() as f64 * part.certainty.confidence();
            let sum = CauseSum {
                main: u64::from(cause == main),
                touched: 1,
                whole: u64::from(wake.is_whole),
                time_ns,
                worst_ns: time_ns,
                trust_ns: of_cause().map(trust).sum(),
            };
            let Some(first) = of_cause().next() else { continue };
            let index = self.index(cause, first, cell.is_over || threshold_ns == u64::MAX);
            self.detail(index, of_cause(), wake);
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
        let detail = CauseDetail {
            tid: first.cause.culprit().map(|task| task.tid),
            cpu: Some(first.cpu),
            rule: first.rule,
            stalls: 0,
            coincident: 0,
            expected: 0.0,
            stolen: 0,
            repeats: 0,
        };
        self.causes.push((cause, detail));
        // The room is at most that of a u16.
        (self.causes.len() - 1) as u16
    }

    fn detail<'a>(&mut self, index: u16, parts: impl Iterator<Item = &'a WakePart>, wake: &Wake) {
        let detail = &mut self.causes[usize::from(index)].1;
        for part in parts {
            let tid = part.cause.culprit().map(|task| task.tid);
            detail.tid = detail.tid.filter(|_| detail.tid == tid);
            detail.cpu = detail.cpu.filter(|&cpu| cpu == part.cpu);
            let is_stretch =
                part.activity.is_task_or_idle() || part.activity == Activity::TimerInterrupt;
            let evidence = wake.stalls.iter().find(|(piece, _)| {
                let piece = &wake.window.pieces[*piece];
                is_stretch && piece.from_ns <= part.from_ns && part.to_ns <= piece.to_ns
            });
            if let Some((_, evidence)) = evidence {
                detail.stalls += 1;
                detail.coincident += u64::from(evidence.is_coincident);
                detail.expected += evidence.chance;
                detail.stolen += u64::from(evidence.is_stolen);
            }
        }
    }

    /// What is late.
    pub(crate) fn late(&self, selection: Selection) -> LatePart {
        let mut late = LatePart::default();
        let selected = self.totals.iter().filter(|(cell, _)| selection.includes(**cell));
        for (_, total) in selected {
            late.late += total.wakes;
            late.lateness_ns = late.lateness_ns.saturating_add(total.lateness_ns);
            late.no_single += total.no_single;
        }
        let mut sums: BTreeMap<u16, CauseSum> = BTreeMap::new();
        for ((cell, index), sum) in &self.cells {
            if selection.includes(*cell) {
                sums.entry(*index).or_default().merge(sum);
            }
        }
        late.causes = sums
            .into_iter()
            .filter(|(_, sum)| sum.touched > 0)
            .map(|(index, sum)| {
                let (cause, detail) = self.causes[usize::from(index)];
                (cause, sum, detail)
            })
            .collect();
        late
    }
}
