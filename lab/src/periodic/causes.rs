//! Why the loops of a periodic experiment were late: the kernel's events, recorded while they run.
//!
//! For `--blame` of `check`, `measure periodic` and `measure wait`. What recording costs is
//! measured first, on a loop like the first one, with and without it in turns; where that is too
//! much, the loops are measured without, and recorded behind that in blocks that do not count. Only
//! what passes in blocks is looked at. Changes nothing of the machine; the events end with the
//! process. Never prints.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use punctual::RtThread;
use punctual_blame::blame::Blame;
use punctual_blame::config::{BlameBounds, BlameConfig, FollowedThreads, LateThreshold};
use punctual_blame::keep::LateWake;
use punctual_blame::outcome::{BlameOutcome, ThreadOutcome};
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};
use punctual_engine::spawn;
use punctual_engine::wait_policy::WaitKind;
use punctual_host::facts::SmiCount;
use punctual_os::clock::{ClockId, now_ns};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConditionBlock, PeriodicPlan};
use crate::blame::{
    BlamedRun, BlamedWake, CaptureEvidence, LoopEnd, MissingEvent, Orders, RecordedMachine,
    RecordingPrice, SETTLE, live_map, pause, program, run_loop,
};
use crate::capture::{
    Capture, CaptureConsumer, CaptureItem, CapturePlan, EventSet, FAST_NS, FastLoop,
    kernel_symbols, must_share_cpu,
};
use crate::experiment::cpu_of;

/// Turns of the loop with and without recording, for the price.
const PRICE_TURNS: u32 = 4;
/// The longest that the price is measured for.
const PRICE_MAX: Span = Span::from_ms(2_000);
/// The longest period of the loop that it is measured on: slower ones would have too few wakes.
const PRICE_PERIOD_MAX_NS: u64 = 4_000_000;
/// Wakes that each side of a price needs.
const PRICE_WAKES_MIN: u64 = 100;
/// The most that recording may add to the median unless it was requested, ns, and as a share of the
/// median: whichever is more. Measured: docs/blame.md, "Its price".
const PRICE_BOUND_NS: f64 = 2_000.0;
const PRICE_BOUND_SHARE: f64 = 0.1;
/// Shorter experiments are not recorded unless that is asked for: blocks behind them would make
/// them much longer.
const UNASKED_FROM: Span = Span::from_ms(10_000);
/// The least time that each group of conditions is recorded behind a measurement: at a period of
/// 1 ms ten late wakes, of which shares can be told.
const BEHIND_GROUP_MIN: Span = Span::from_ms(1_000);
/// The least time of a block behind a measurement.
const BEHIND_BLOCK_MIN: Span = Span::from_ms(250);
/// Cycles of the loop of the shortest period, beside the cold ones, that such a block needs.
const BEHIND_BLOCK_CYCLES: i64 = 25;
/// Such blocks take a tenth of the measurement together, or their least time, and at most this.
const BEHIND_MAX: Span = Span::from_ms(20_000);
/// Late wakes of each loop that are kept with all their parts.
const KEPT_WAKES: usize = 20;

/// Late cycles of a run that are told, at most.
const CYCLES_MAX: usize = 200;
/// The most that a stamp of the loop's clock may be away from the kernel's, ns.
const CLOCKS_NS: u64 = 1_000;

/// The rule that decides when to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlameWhen {
    /// Where the kernel allows it, the reader has a CPU beside the measured ones, and the
    /// experiment takes 10 s or more: within it where the price is at most 2 µs or 10 % of the
    /// median, and no more releases are missed for it, else behind it.
    Unasked,
    /// Likewise, but behind it whatever the price: its figures are held against others.
    UnaskedBehind,
    /// Within it, wherever the kernel allows it.
    Asked,
}

/// The blocks in which wakes are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordedWhere {
    /// In the blocks that are measured, whose figures contain the price.
    #[default]
    Within,
    /// In blocks behind them, which do not count.
    Behind,
}

/// The way to find the causes of late wakes in a periodic experiment.
#[derive(Clone, Debug)]
pub struct LoopBlamePlan {
    /// The rule that decides when to record.
    pub when: BlameWhen,
    /// The lateness that makes a wake late, of the wakes of each loop in each group of conditions.
    pub late: LateThreshold,
    /// The machine that is recorded.
    pub machine: RecordedMachine,
    /// By condition: its group. Wakes of one group are summed up together.
    pub groups: Vec<usize>,
}

/// The reason for which nothing was recorded.
#[derive(Clone, Debug, PartialEq)]
pub enum NotRecorded {
    /// The kernel does not allow it: what forbids it, and what would allow it.
    Refused(String),
    /// The reader would have to run on a measured CPU.
    SharesCpu,
    /// It was not asked for, and the experiment is short.
    Short,
    /// Its loops spin: blocks behind the measurement would tell nothing of them.
    Spins,
    /// Blocks behind the measurement would take too long, for the periods are long.
    TooSlow,
    /// The experiment ended before the first block that would have been recorded.
    Stopped,
    /// The recording is lost: the reader failed.
    Failed,
}

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::SharesCpu => f.write_str("no CPU beside the measured ones could read the events"),
            Self::Short => f.write_str(
                "a run of less than 10 s is too short for it; --blame on records it where rights \
                 allow",
            ),
            Self::Spins => f.write_str(
                "figures are to be without its price, and behind the measurement it shows nothing \
                 of loops that spin; --blame on records them while they are measured",
            ),
            Self::TooSlow => f.write_str(
                "figures are to be without its price, and behind the measurement enough cycles \
                 would take more than 20 s; --blame on records them while they are measured",
            ),
            Self::Stopped => f.write_str("the run ended before that"),
            Self::Failed => f.write_str("the thread that reads the events failed"),
        }
    }
}

/// A part of the experiment that counts.
#[derive(Clone, Copy, Debug)]
struct Turn {
    group: usize,
    /// The condition of that group whose block it is.
    condition: usize,
    from_ns: u64,
    /// Not known yet: the end of time.
    to_ns: u64,
}

/// Gives each event of a turn to the account of its group; all others count for nothing.
struct TurnAccounts {
    groups: Vec<Blame>,
    turns: Arc<Mutex<Vec<Turn>>>,
    /// The turn that events are in, or the next; whether it has had one.
    at: usize,
    has_begun: bool,
}

impl TurnAccounts {
    /// The turn of an event, and whether it is its first.
    fn turn(&mut self, at_ns: u64) -> Option<(Turn, bool)> {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        while turns.get(self.at).is_some_and(|turn| turn.to_ns <= at_ns) {
            (self.at, self.has_begun) = (self.at + 1, false);
        }
        let turn = *turns.get(self.at).filter(|turn| turn.from_ns <= at_ns)?;
        Some((turn, !std::mem::replace(&mut self.has_begun, true)))
    }
}

impl CaptureConsumer for TurnAccounts {
    fn take(&mut self, item: CaptureItem<'_>) {
        let event = match item {
            CaptureItem::Event(event) => event,
            CaptureItem::Process { tid, process } => {
                let program = program(process);
                self.groups.iter_mut().for_each(|blame| blame.set_program(tid, program));
                return;
            }
            _ => return,
        };
        let Some((turn, is_first)) = self.turn(event.at_ns) else { return };
        let Some(blame) = self.groups.get_mut(turn.group) else { return };
        if is_first {
            blame.resume(turn.from_ns);
        }
        blame.push(event);
    }
}

/// A capture that goes on.
struct Recorded {
    capture: Capture<TurnAccounts>,
    missing: Vec<MissingEvent>,
    begun_ns: u64,
    machine: RecordedMachine,
    /// The group whose turn it is, and the count of system management interrupts at its begin.
    begun: Option<(usize, SmiCount)>,
    /// Those in the turns of each group, where they are counted.
    smis: BTreeMap<usize, u64>,
}

impl Recorded {
    /// A turn of a group begins.
    fn begin_turn(&mut self, group: usize) {
        self.begun = self.machine.smi_count().map(|count| (group, count));
    }

    /// It is over.
    fn end_turn(&mut self) {
        let Some((group, before)) = self.begun.take() else { return };
        if let Some(count) = self.machine.smis_since(Some(before)) {
            *self.smis.entry(group).or_default() += count;
        }
    }

    /// Ends it, and waits until the events are closed, which disturbs all CPUs: unless all has been
    /// stopped, and nothing more is measured.
    fn end(mut self, stop: &AtomicBool) -> Option<(TurnAccounts, CaptureEvidence)> {
        // A turn that was broken off counts too.
        self.end_turn();
        let mut ended = self.capture.end()?;
        for (group, blame) in ended.consumer.groups.iter_mut().enumerate() {
            if let Some(&count) = self.smis.get(&group) {
                blame.set_smi_count(count);
            }
        }
        let evidence = CaptureEvidence::of(&ended.facts, self.missing, self.begun_ns);
        if !stop.load(Ordering::Relaxed) {
            ended.closing.wait();
        }
        Some((ended.consumer, evidence))
    }
}

/// Records while the blocks of an experiment run, or blocks behind them.
pub(super) struct LoopRecorder {
    plan: LoopBlamePlan,
    turns: Arc<Mutex<Vec<Turn>>>,
    tids: Vec<u32>,
    price: Option<RecordingPrice>,
    place: RecordedWhere,
    recorded: Result<Recorded, NotRecorded>,
}

/// The experiment that is recorded, while its loops wait.
pub(super) struct ReadyLoops<'a> {
    /// The experiment.
    pub(super) plan: &'a PeriodicPlan,
    /// Set when all is to end.
    pub(super) stop: &'a AtomicBool,
}

impl LoopRecorder {
    /// Nothing is opened yet.
    pub(super) fn new(plan: LoopBlamePlan) -> Self {
        let place = match plan.when {
            BlameWhen::UnaskedBehind => RecordedWhere::Behind,
            BlameWhen::Unasked | BlameWhen::Asked => RecordedWhere::Within,
        };
        Self {
            plan,
            turns: Arc::default(),
            tids: Vec::new(),
            price: None,
            place,
            recorded: Err(NotRecorded::Stopped),
        }
    }

    /// The threads of the streams, which wait for their first block. Opens the events, and finds
    /// out what recording costs: takes a tenth of the experiment's length, 2 s at most, and what it
    /// takes to open events and, where they are not for now, to close them; `look` is called
    /// meanwhile.
    pub(super) fn begin(&mut self, tids: &[i32], loops: &ReadyLoops<'_>, look: &mut dyn FnMut()) {
        self.tids = tids.iter().map(|tid| tid.unsigned_abs()).collect();
        if self.plan.when != BlameWhen::Asked && loops.plan.length() < UNASKED_FROM {
            self.recorded = Err(NotRecorded::Short);
        } else if self.place == RecordedWhere::Within {
            self.recorded = self.open(loops, look);
            let is_cheap = self.price.as_ref().is_some_and(is_cheap);
            if self.plan.when == BlameWhen::Unasked && !is_cheap && self.recorded.is_ok() {
                self.place = RecordedWhere::Behind;
                let opened = std::mem::replace(&mut self.recorded, Err(NotRecorded::Stopped));
                // Closing them disturbs all CPUs.
                let _nothing = opened.ok().and_then(|recorded| recorded.end(loops.stop));
            }
        }
    }

    /// The blocks behind the measurement; none where they are not needed.
    pub(super) fn blocks_behind(&mut self, plan: &PeriodicPlan) -> Vec<ConditionBlock> {
        let is_open = matches!(self.recorded, Err(NotRecorded::Stopped));
        if self.place == RecordedWhere::Within || !is_open {
            return Vec::new();
        }
        blocks_behind(plan, &self.plan.groups).unwrap_or_else(|why| {
            self.recorded = Err(why);
            Vec::new()
        })
    }

    /// Opens the events for those blocks, and finds out what recording costs where that is not
    /// known yet. Whether they are recorded.
    pub(super) fn begin_behind(&mut self, loops: &ReadyLoops<'_>, look: &mut dyn FnMut()) -> bool {
        self.recorded = self.open(loops, look);
        self.recorded.is_ok()
    }

    fn open(
        &mut self,
        loops: &ReadyLoops<'_>,
        look: &mut dyn FnMut(),
    ) -> Result<Recorded, NotRecorded> {
        let mut measured: Vec<u32> =
            loops.plan.streams.iter().filter_map(|stream| stream.thread.pinned_to()).collect();
        measured.sort_unstable();
        measured.dedup();
        if self.plan.when != BlameWhen::Asked && must_share_cpu(&measured) {
            return Err(NotRecorded::SharesCpu);
        }
        let streams = self.tids.iter().zip(&loops.plan.streams);
        let fast = streams.filter_map(|(&tid, stream)| {
            FastLoop::of(tid, stream.thread.pinned_to()?, stream.period)
        });
        let capture = self.plan.machine.capture_plan(EventSet::Full).away_from(&measured);
        let capture = capture.with_fast_loops(fast.collect());
        if self.price.is_some() {
            let recorded = self.start(&capture)?;
            recorded.capture.resume();
            return Ok(recorded);
        }
        let Some(stream) = loops.plan.streams.first() else { return Err(NotRecorded::Stopped) };
        let period = Period::from_ns(stream.period.as_ns().min(PRICE_PERIOD_MAX_NS));
        let period = period.unwrap_or(stream.period);
        let measured_on = PriceLoop { thread: &stream.thread, period, loops };
        let (recorded, price) = measured_on.run(look, || self.start(&capture));
        self.price = price;
        recorded
    }

    /// Opens the events, which record nothing yet.
    fn start(&self, capture: &CapturePlan) -> Result<Recorded, NotRecorded> {
        let streams = self.tids.len();
        let bounds = BlameBounds::default();
        let config = BlameConfig {
            follow: FollowedThreads::Threads(self.tids.clone()),
            late: self.plan.late,
            symbols: live_map(&kernel_symbols()),
            event_driven: false,
            workless: self.tids.clone(),
            bounds: BlameBounds {
                threads: streams.max(bounds.threads),
                worst: bounds.worst.max(streams * KEPT_WAKES),
                ..bounds
            },
            ..self.plan.machine.config()
        };
        let groups = self.plan.groups.iter().max().map_or(0, |last| last + 1);
        let accounts = TurnAccounts {
            groups: (0..groups).map(|_| Blame::new(config.clone())).collect(),
            turns: Arc::clone(&self.turns),
            at: 0,
            has_begun: false,
        };
        let capture = Capture::start(capture, accounts)
            .map_err(|why| NotRecorded::Refused(why.to_string()))?;
        let missing = capture.missing().iter().map(MissingEvent::of).collect();
        let begun_ns = now_ns(ClockId::Monotonic);
        capture.pause();
        pause(SETTLE);
        let machine = self.plan.machine;
        Ok(Recorded { capture, missing, begun_ns, machine, begun: None, smis: BTreeMap::new() })
    }

    /// A block of this condition begins: what passes from its first warm cycle on is looked at,
    /// where events are recorded now.
    pub(super) fn begin_block(&mut self, plan: &PeriodicPlan, condition: usize) {
        let Ok(recorded) = &mut self.recorded else { return };
        if self.place == RecordedWhere::Behind {
            // With rings that are empty more of it fits in; it does not count anyway.
            recorded.capture.drain();
            recorded.capture.resume();
        }
        let Some(&group) = self.plan.groups.get(condition) else { return };
        recorded.begin_turn(group);
        let shortest = plan.streams.iter().map(|stream| stream.period.as_ns()).min().unwrap_or(0);
        let cold_ns = shortest.saturating_mul(u64::from(plan.cold));
        let from_ns = now_ns(ClockId::Monotonic).saturating_add(cold_ns);
        self.turns().push(Turn { group, condition, from_ns, to_ns: u64::MAX });
    }

    /// The block is over.
    pub(super) fn end_block(&mut self) {
        let now_ns = now_ns(ClockId::Monotonic);
        if let Some(turn) = self.turns().last_mut() {
            turn.to_ns = turn.to_ns.min(now_ns);
        }
        let Ok(recorded) = &mut self.recorded else { return };
        recorded.end_turn();
        // The reader may be behind: until it has stopped nothing more counts.
        if self.place == RecordedWhere::Behind {
            recorded.capture.pause();
        }
    }

    fn turns(&self) -> std::sync::MutexGuard<'_, Vec<Turn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The causes found; `stop` is true where nothing more is measured. `measured` returns a
    /// quantile of the lateness of a stream under a condition when it was measured, ns: that of
    /// this share. A wake behind a measurement is late where it is later than that.
    pub(super) fn finish(
        self,
        stop: &AtomicBool,
        measured: impl Fn(usize, usize, f64) -> Option<u64>,
    ) -> LoopCauses {
        let Self { plan, turns, tids, price, place, recorded } = self;
        let ended = recorded.and_then(|recorded| recorded.end(stop).ok_or(NotRecorded::Failed));
        let (mut accounts, evidence, lacks) = match ended {
            Ok((accounts, evidence)) => (accounts.groups, Some(evidence), None),
            Err(why) => (Vec::new(), None, Some(why)),
        };
        // Each recorded wake is later by the price.
        let more_ns = price.as_ref().and_then(RecordingPrice::median_ns).unwrap_or(0.0).max(0.0);
        let accounts_behind = accounts.iter_mut().filter(|_| place == RecordedWhere::Behind);
        for (group, blame) in accounts_behind.enumerate() {
            let Some(condition) = plan.groups.iter().position(|&own| own == group) else {
                continue;
            };
            for (stream, &tid) in tids.iter().enumerate() {
                let late_ns = match plan.late {
                    LateThreshold::Above(late_ns) => Some(late_ns),
                    LateThreshold::Quantile(share) => measured(stream, condition, share),
                };
                if let Some(late_ns) = late_ns {
                    blame.set_threshold(tid, late_ns.saturating_add(more_ns as u64));
                }
            }
        }
        let turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
        let recorded_ns = |group: usize| {
            let turns = turns.iter().filter(|turn| turn.group == group);
            turns.map(|turn| turn.to_ns.saturating_sub(turn.from_ns)).fold(0, u64::saturating_add)
        };
        LoopCauses {
            price,
            evidence,
            lacks,
            place,
            recorded_ns: (0..accounts.len()).map(recorded_ns).collect(),
            outcomes: accounts.into_iter().map(Blame::finish).collect(),
            group_of: plan.groups,
            turns: turns.clone(),
            tids,
        }
    }
}

/// Returns true where it may be paid unrequested: a price that is not known may not.
fn is_cheap(price: &RecordingPrice) -> bool {
    let (Some(more_ns), Some(median_ns)) = (price.median_ns(), price.unrecorded_ns.p50) else {
        return false;
    };
    let is_known = price.unrecorded.min(price.recorded) >= PRICE_WAKES_MIN;
    let is_small = more_ns <= (median_ns * PRICE_BOUND_SHARE).max(PRICE_BOUND_NS);
    is_known && is_small && !price.makes_missed()
}

/// Blocks of the conditions whose wakes tell something, each once: the groups of conditions have
/// equal shares of a tenth of the experiment, but each its least time.
///
/// # Errors
/// Why there are none.
fn blocks_behind(
    plan: &PeriodicPlan,
    group_of: &[usize],
) -> Result<Vec<ConditionBlock>, NotRecorded> {
    let are_cycles = |&condition: &usize| {
        plan.streams.iter().any(|stream| LoopCauses::are_cycles(plan.wait(stream, condition)))
    };
    let conditions: Vec<usize> =
        (0..plan.conditions.len().min(group_of.len())).filter(are_cycles).collect();
    let size = |group: usize| {
        let members = conditions.iter().filter(|&&condition| group_of[condition] == group);
        members.count() as i64
    };
    let mut groups: Vec<usize> = conditions.iter().map(|&condition| group_of[condition]).collect();
    groups.sort_unstable();
    groups.dedup();
    let shortest_ns = plan.streams.iter().map(|stream| stream.period.as_ns()).min().unwrap_or(0);
    let shortest_ns = i64::try_from(shortest_ns).unwrap_or(i64::MAX);
    let cycles = BEHIND_BLOCK_CYCLES + i64::from(plan.cold);
    let block_ns = shortest_ns.saturating_mul(cycles).max(BEHIND_BLOCK_MIN.as_ns());
    let least_ns = |group: usize| block_ns.saturating_mul(size(group));
    let Some(count) = i64::try_from(groups.len()).ok().filter(|&count| count > 0) else {
        return Err(NotRecorded::Spins);
    };
    let share_ns = (plan.length().as_ns() / 10).min(BEHIND_MAX.as_ns()) / count;
    let length_ns = |group: usize, floor_ns: i64| least_ns(group).max(floor_ns);
    let fits = |floor_ns: &i64| {
        let lengths = groups.iter().map(|&group| length_ns(group, *floor_ns));
        lengths.fold(0, i64::saturating_add) <= BEHIND_MAX.as_ns()
    };
    let group_ns = BEHIND_GROUP_MIN.as_ns();
    // The wakes of a fast loop are many in a second, and its ring holds no more.
    let is_fast = shortest_ns.unsigned_abs() < FAST_NS;
    let share_ns = if is_fast { group_ns } else { share_ns.max(group_ns) };
    let floors_ns = [share_ns, group_ns, 0];
    let floor_ns = floors_ns.into_iter().find(fits).ok_or(NotRecorded::TooSlow)?;
    let block = |condition: usize| {
        let group = group_of[condition];
        ConditionBlock {
            condition,
            length: Span::from_ns(length_ns(group, floor_ns) / size(group)),
        }
    };
    Ok(conditions.iter().map(|&condition| block(condition)).collect())
}

/// A loop that is recorded and not, in turns.
struct PriceLoop<'a> {
    thread: &'a RtThread,
    period: Period,
    loops: &'a ReadyLoops<'a>,
}

impl PriceLoop<'_> {
    /// Opens the events once its loop runs, and measures; the capture records when it comes back.
    fn run(
        &self,
        look: &mut dyn FnMut(),
        open: impl FnOnce() -> Result<Recorded, NotRecorded>,
    ) -> (Result<Recorded, NotRecorded>, Option<RecordingPrice>) {
        let orders = Orders::default();
        orders.is_settling.store(true, Ordering::Release);
        thread::scope(|scope| {
            // The experiment has locked memory and holds idle states.
            let thread = self.thread.clone().pinned(Some(cpu_of(self.thread)));
            let thread = thread.lock_memory(false).hold_idle_states(false);
            let loop_thread =
                spawn::scoped(scope, "punctual-price", || run_loop(thread, self.period, &orders));
            let Ok(loop_thread) = loop_thread else {
                let recorded = open();
                if let Ok(recorded) = &recorded {
                    recorded.capture.resume();
                }
                return (recorded, None);
            };
            while orders.tid.load(Ordering::Acquire) == 0 && !self.is_over(&orders) {
                pause(Span::from_ms(1));
            }
            let recorded = open();
            if let Ok(recorded) = &recorded {
                self.turns(recorded, &orders, look);
                recorded.capture.resume();
            }
            orders.stop.store(true, Ordering::Release);
            let ended = loop_thread.join().ok().and_then(Result::ok);
            let price = ended
                .filter(|_| recorded.is_ok())
                .map(|ended: LoopEnd| RecordingPrice::of(&ended.unrecorded, &ended.recorded));
            (recorded, price)
        })
    }

    fn is_over(&self, orders: &Orders) -> bool {
        self.loops.stop.load(Ordering::Relaxed) || orders.stop.load(Ordering::Acquire)
    }

    fn turns(&self, recorded: &Recorded, orders: &Orders, look: &mut dyn FnMut()) {
        let tenth = Span::from_ns(self.loops.plan.length().as_ns() / 10);
        let in_all = tenth.min(PRICE_MAX);
        let each = Span::from_ns(in_all.as_ns() / i64::from(2 * PRICE_TURNS));
        for turn in 0..2 * PRICE_TURNS {
            if self.is_over(orders) {
                break;
            }
            look();
            let is_recorded = turn % 2 == 1;
            if is_recorded {
                recorded.capture.resume();
            } else {
                recorded.capture.pause();
            }
            orders.is_recorded.store(is_recorded, Ordering::Release);
            orders.is_settling.store(false, Ordering::Release);
            pause(each);
            orders.is_settling.store(true, Ordering::Release);
        }
    }
}

/// The causes of late wakes of loops.
#[derive(Debug)]
pub struct LoopCauses {
    price: Option<RecordingPrice>,
    evidence: Option<CaptureEvidence>,
    lacks: Option<NotRecorded>,
    place: RecordedWhere,
    /// By group: how long.
    recorded_ns: Vec<u64>,
    /// By group.
    outcomes: Vec<BlameOutcome>,
    /// By condition.
    group_of: Vec<usize>,
    /// In the order of time.
    turns: Vec<Turn>,
    /// By stream.
    tids: Vec<u32>,
}

impl LoopCauses {
    /// Cost of recording for a loop like the first; `None` where it was not measured.
    pub fn price(&self) -> Option<&RecordingPrice> {
        self.price.as_ref()
    }

    /// The evidence that the kernel gave; `None` where nothing was recorded.
    pub fn evidence(&self) -> Option<&CaptureEvidence> {
        self.evidence.as_ref()
    }

    /// The reason for which nothing was recorded; `None` where something was.
    pub fn lacks(&self) -> Option<&NotRecorded> {
        self.lacks.as_ref()
    }

    /// The blocks that were recorded, or were to be.
    pub fn place(&self) -> RecordedWhere {
        self.place
    }

    /// Time that the group of a condition was recorded behind the measurement, ns; `None` where it
    /// was not, or within it.
    pub fn behind_ns(&self, condition: usize) -> Option<u64> {
        let group = *self.group_of.get(condition)?;
        self.recorded_ns.get(group).copied().filter(|_| self.place == RecordedWhere::Behind)
    }

    /// Returns true where the wakes of a wait are those of its cycles: then the causes of its late
    /// ones are shown. Others wake several times a cycle, and before their release.
    pub fn are_cycles(wait: WaitKind) -> bool {
        wait == WaitKind::Sleep
    }

    fn thread(&self, stream: usize, condition: usize) -> Option<(&BlameOutcome, &ThreadOutcome)> {
        let outcome = self.outcomes.get(*self.group_of.get(condition)?)?;
        let tid = *self.tids.get(stream)?;
        let thread = outcome.threads.iter().find(|thread| thread.figures.task.tid == tid)?;
        Some((outcome, thread))
    }

    /// Likewise, where its wakes are those that were measured.
    fn measured_thread(
        &self,
        stream: usize,
        condition: usize,
    ) -> Option<(&BlameOutcome, &ThreadOutcome)> {
        self.thread(stream, condition).filter(|_| self.place == RecordedWhere::Within)
    }

    /// The causes of a stream's wakes, under all conditions of `plan` in the group of this one; not
    /// of a wait that [`Self::are_cycles`] leaves out. Where these are several, each cause has the
    /// one of its latest wake.
    pub fn run(&self, plan: &PeriodicPlan, stream: usize, condition: usize) -> Option<BlamedRun> {
        let (outcome, thread) = self.thread(stream, condition)?;
        let mut run = BlamedRun::of(thread);
        let group = self.group_of.get(condition);
        if self.group_of.iter().filter(|own| Some(*own) == group).count() > 1 {
            run.set_latest_under(thread, outcome, |ran_ns| {
                Some(plan.conditions.get(condition_at(&self.turns, ran_ns)?)?.name.clone())
            });
        }
        Some(run)
    }

    /// The latest wakes of a stream behind the measurement, the latest first, at most so many; none
    /// where it was recorded within.
    pub fn latest_behind(&self, stream: usize, condition: usize, most: usize) -> Vec<BlamedWake> {
        let thread = self.thread(stream, condition);
        let Some((outcome, thread)) = thread.filter(|_| self.place == RecordedWhere::Behind) else {
            return Vec::new();
        };
        let tid = thread.figures.task.tid;
        let wakes = outcome.worst.iter().filter(|wake| wake.task.tid == tid).take(most);
        wakes.map(|wake| BlamedWake::of(wake, outcome)).collect()
    }

    /// The latest wakes of a stream as cycles of its grid, the latest first; at most 200. Behind
    /// the measurement none is one of its cycles.
    pub fn late_cycles(
        &self,
        stream: usize,
        condition: usize,
        grid: &Releases,
    ) -> Vec<BlamedCycle> {
        let Some((outcome, thread)) = self.measured_thread(stream, condition) else {
            return Vec::new();
        };
        let tid = thread.figures.task.tid;
        let wakes = outcome.worst.iter().filter(|wake| wake.task.tid == tid);
        let blamed = wakes.filter_map(|wake| {
            let (cycle, waited_ns) = WakeSpan::of(wake).cycle(grid)?;
            Some(BlamedCycle { cycle, waited_ns, cause: outcome.main_name(wake) })
        });
        blamed.take(CYCLES_MAX).collect()
    }

    /// The wake that a stream waited in at an instant at which it was to be released, ns on
    /// CLOCK_MONOTONIC, and which is at least half of how late it was until `ran_ns`. `None` for
    /// one that was late by something else, or was not recorded, as none is that was measured
    /// before.
    pub fn wake_at(
        &self,
        stream: usize,
        condition: usize,
        (release_ns, ran_ns): (u64, u64),
    ) -> Option<BlamedWake> {
        let (outcome, thread) = self.measured_thread(stream, condition)?;
        let tid = thread.figures.task.tid;
        let mut wakes = outcome.worst.iter().chain(&outcome.sample);
        let wake = wakes
            .find(|wake| wake.task.tid == tid && WakeSpan::of(wake).explains(release_ns, ran_ns))?;
        Some(BlamedWake::of(wake, outcome))
    }
}

/// The condition of the block in which a thread ran at this instant, ns on CLOCK_MONOTONIC.
fn condition_at(turns: &[Turn], ran_ns: u64) -> Option<usize> {
    turns.iter().rfind(|turn| turn.from_ns <= ran_ns).map(|turn| turn.condition)
}

/// A cycle that was late, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlamedCycle {
    /// The first release that its wake kept waiting: the one that ran.
    pub cycle: u64,
    /// From that release until it ran, ns.
    pub waited_ns: u64,
    /// Its main cause.
    pub cause: String,
}

/// The first cycle of a grid whose release waited for a wake that was to come at `release_ns`.
pub fn first_waiting(release_ns: u64, grid: &Releases) -> u64 {
    grid.at_or_after(Instant::from_ns(release_ns.saturating_sub(CLOCKS_NS)))
}

/// A late wake, from its release until it ran at the earliest.
#[derive(Clone, Copy, Debug)]
struct WakeSpan {
    release_ns: u64,
    ran_ns: u64,
}

impl WakeSpan {
    const fn of(wake: &LateWake) -> Self {
        Self { release_ns: wake.release_ns, ran_ns: wake.ran_from_ns }
    }

    /// The cycle that it ran for, and how long that waited, ns: none where it ran before a release.
    /// Of several that waited the oldest runs, with the whole lateness.
    fn cycle(self, grid: &Releases) -> Option<(u64, u64)> {
        let cycle = first_waiting(self.release_ns, grid);
        Some((cycle, self.ran_ns.checked_sub(grid.release(cycle).as_ns())?))
    }

    /// Returns true where a thread waited in it when it was to be released, and for at least half
    /// of the time until `ran_ns`, when its loop ran.
    fn explains(self, release_ns: u64, ran_ns: u64) -> bool {
        let waited_ns = self.ran_ns.saturating_sub(release_ns);
        let late_ns = ran_ns.saturating_sub(release_ns);
        let is_within = self.release_ns <= release_ns && release_ns < self.ran_ns;
        is_within && waited_ns <= late_ns.saturating_add(CLOCKS_NS) && waited_ns >= late_ns / 2
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_analysis::summary::SummaryStats;
    use punctual_blame::config::Platform;
    use punctual_blame::symbols::SymbolMap;
    use punctual_core::sample::Sample;
    use punctual_engine::drain::{SampleFile, Sink};
    use punctual_os::{affinity, process};
    use punctual_testkit::skip;
    use punctual_trace::event::{ContextFlags, ShortName, TaskName, TraceEvent, TraceKind, Vector};

    use super::super::{Condition, ConditionBlock, Prepared, Stream};
    use super::*;
    use crate::blame::{BlamedCause, CulpritOwner, MissedReleases};
    use crate::experiment::BackgroundLoads;
    use crate::inject::{Injection, InjectionPlan, RunningInjection, Victim};

    fn event(at_ns: u64) -> TraceEvent {
        let context = ContextFlags::default();
        let kind = TraceKind::PageFaultEntry;
        TraceEvent { at_ns, cpu: 0, tid: 7, context, kind, chain: Box::default() }
    }

    #[test]
    fn only_what_passes_in_a_turn_counts_and_for_its_group() {
        let turn = |group, from_ns, to_ns| Turn { group, condition: group, from_ns, to_ns };
        let turns = Arc::new(Mutex::new(vec![turn(0, 10, 20), turn(1, 30, 40)]));
        let groups = (0..2).map(|_| Blame::new(BlameConfig::default())).collect();
        let known = Arc::clone(&turns);
        let mut accounts = TurnAccounts { groups, turns, at: 0, has_begun: false };
        let events = |accounts: &TurnAccounts| -> Vec<u64> {
            accounts.groups.iter().map(|blame| blame.counts().events).collect()
        };
        for at_ns in [5, 9, 10, 15, 19, 20, 25, 30, 39, 40, 50] {
            accounts.take(CaptureItem::Event(&event(at_ns)));
        }
        assert_eq!(events(&accounts), [3, 2]);
        // One that goes on has no end yet.
        known.lock().expect("whole").push(turn(0, 60, u64::MAX));
        [55, 60, 1_000].iter().for_each(|&at_ns| accounts.take(CaptureItem::Event(&event(at_ns))));
        assert_eq!(events(&accounts), [5, 2]);
        // A group that is not there is not asked for.
        known.lock().expect("whole")[2].to_ns = 2_000;
        known.lock().expect("whole").push(turn(9, 2_000, u64::MAX));
        accounts.take(CaptureItem::Event(&event(3_000)));
        assert_eq!(events(&accounts), [5, 2]);
    }

    const WAKEUP: u64 = 0x9000;

    /// The loop of thread 7, whose timer expires while this thread above it runs, for so long more.
    fn kept_by(hog: u32, expires_ns: u64, late_ns: u64) -> Vec<TraceEvent> {
        let task = |tid: u32| {
            let name = format!("thread {tid}");
            let kernel_priority = if tid == 7 { 9 } else { 2 };
            TaskName { tid, name: ShortName::new(name.as_bytes()), kernel_priority }
        };
        let switch = |from: u32, to: u32| TraceKind::Switch {
            previous: task(from),
            previous_state: 1,
            next: task(to),
        };
        let (timer, at_ns) = (0xffff_8880_0000_1000, expires_ns.cast_signed());
        let start = TraceKind::TimerStart {
            timer,
            function: WAKEUP,
            expires_ns: at_ns,
            soft_expires_ns: at_ns,
        };
        let expire = TraceKind::TimerExpireEntry { timer, function: WAKEUP, now_ns: at_ns + 5_000 };
        let events = [
            (-900_000, 7, start),
            (-898_000, 7, switch(7, hog)),
            (5_000, hog, TraceKind::VectorEntry(Vector::LocalTimer)),
            (5_500, hog, expire),
            (6_000, hog, TraceKind::Waking { task: task(7), target_cpu: 0 }),
            (7_000, hog, TraceKind::VectorExit(Vector::LocalTimer)),
            (late_ns.cast_signed(), hog, switch(hog, 7)),
        ];
        let at = |(after_ns, tid, kind)| {
            let at_ns = expires_ns.saturating_add_signed(after_ns);
            TraceEvent { tid, kind, ..event(at_ns) }
        };
        events.into_iter().map(at).collect()
    }

    #[test]
    fn a_cause_has_the_condition_of_its_latest_wake() {
        let loaded = loaded(1_000_000, 2, WaitKind::Sleep, 1_000);
        let (plan, ms) = (loaded.plan, 1_000_000);
        let turn = |group, condition, from_ns, to_ns| Turn { group, condition, from_ns, to_ns };
        let turns = [
            turn(0, 0, 0, 30 * ms),
            turn(1, 1, 30 * ms, 60 * ms),
            turn(1, 2, 60 * ms, 90 * ms),
            turn(1, 1, 90 * ms, 120 * ms),
        ];
        let names = SymbolMap::new([(WAKEUP, "hrtimer_wakeup".to_owned())]);
        let config = BlameConfig {
            follow: FollowedThreads::Threads(vec![7]),
            late: LateThreshold::Above(50_000),
            symbols: names,
            ..BlameConfig::default()
        };
        let mut accounts = TurnAccounts {
            groups: (0..2).map(|_| Blame::new(config.clone())).collect(),
            turns: Arc::new(Mutex::new(turns.to_vec())),
            at: 0,
            has_begun: false,
        };
        // Thread 31 makes the latest wake of all, under c2; that of thread 32 is in the second
        // block under c1.
        let hogs = [
            (31, 10, 300_000),
            (32, 12, 900_000),
            (31, 40, 300_000),
            (32, 50, 200_000),
            (32, 70, 400_000),
            (31, 80, 900_000),
            (31, 100, 200_000),
            (32, 110, 500_000),
        ];
        for (hog, at_ms, late_ns) in hogs {
            for event in kept_by(hog, at_ms * ms, late_ns) {
                accounts.take(CaptureItem::Event(&event));
            }
        }
        let causes = LoopCauses {
            price: None,
            evidence: None,
            lacks: None,
            place: RecordedWhere::Within,
            recorded_ns: vec![30 * ms, 90 * ms],
            outcomes: accounts.groups.into_iter().map(Blame::finish).collect(),
            group_of: vec![0, 1, 1, 3],
            turns: turns.to_vec(),
            tids: vec![7],
        };
        let under = |condition: usize| -> Vec<_> {
            let run = causes.run(&plan, 0, condition).expect("recorded");
            let named = run.causes.into_iter().filter(BlamedCause::is_named);
            named.map(|cause| (cause.name, cause.latest_under)).collect()
        };
        let named = |hog: u32, condition: Option<&str>| {
            let name = format!("thread {hog} (priority 97, {hog}) ran above");
            (name, condition.map(str::to_owned))
        };
        for condition in [1, 2] {
            assert_eq!(under(condition), [named(31, Some("c2")), named(32, Some("c1"))]);
        }
        // One condition alone is the run's own.
        assert_eq!(under(0), [named(32, None), named(31, None)]);
    }

    const fn wake(release_ns: u64, ran_ns: u64) -> WakeSpan {
        WakeSpan { release_ns, ran_ns }
    }

    #[test]
    fn a_wake_explains_the_releases_that_it_kept_waiting_and_no_others() {
        let (period, late) = (1_000_000, wake(5_000_000, 7_300_000));
        // Its own, and both that were missed meanwhile.
        for missed in 0..3 {
            assert!(late.explains(5_000_000 + missed * period, 7_301_000), "{missed}");
        }
        assert!(!late.explains(8_000_000, 8_020_000), "the next");
        assert!(!late.explains(4_000_000, 7_301_000), "the one before");
        // The wake was on time, and the thread late all the same.
        assert!(!wake(5_000_000, 5_020_000).explains(5_000_000, 5_300_000));
        // It woke before the release, as one that spins does.
        assert!(!wake(4_900_000, 4_950_000).explains(5_000_000, 5_300_000));
        assert!(wake(4_900_000, 5_280_000).explains(5_000_000, 5_300_000));
        // The stamp of the loop cannot be before it ran.
        assert!(!late.explains(5_000_000, 5_100_000));
    }

    #[test]
    fn a_wake_is_the_first_cycle_that_it_kept_waiting() {
        let period = Period::from_ns(1_000_000).expect("positive");
        let grid = Releases::new(Instant::from_ns(1_000_000), period);
        let cycle = |release_ns, ran_ns| wake(release_ns, ran_ns).cycle(&grid);
        assert_eq!(cycle(5_000_000, 5_020_000), Some((4, 20_000)));
        assert_eq!(cycle(5_000_000, 7_300_000), Some((4, 2_300_000)), "the oldest runs");
        assert_eq!(cycle(5_000_400, 5_020_000), Some((4, 20_000)), "stamps of two clocks");
        assert_eq!(cycle(4_900_000, 5_300_000), Some((4, 300_000)), "it spins from there on");
        assert_eq!(cycle(4_900_000, 4_950_000), None, "it ran before the release");
        assert_eq!(cycle(200_000, 900_000), None, "before the first");
    }

    #[test]
    fn a_price_is_paid_up_to_its_bound_and_where_it_is_known() {
        let price = |without_ns: f64, with_ns: f64, wakes: u64| {
            is_cheap(&RecordingPrice {
                unrecorded_ns: SummaryStats { p50: Some(without_ns), ..SummaryStats::default() },
                recorded_ns: SummaryStats { p50: Some(with_ns), ..SummaryStats::default() },
                unrecorded: wakes,
                recorded: wakes,
                unrecorded_missed: None,
                recorded_missed: None,
            })
        };
        assert!(price(17e3, 18.9e3, 200));
        assert!(price(17e3, 15e3, 200));
        assert!(!price(17e3, 19.1e3, 200));
        assert!(price(100e3, 109e3, 200), "10 %");
        assert!(!price(17e3, 17e3, 99));
    }

    #[test]
    fn a_price_in_missed_releases_is_not_paid_where_the_median_is_no_later() {
        // Of as many releases of either kind of turn, so many were missed, in so many stalls.
        let is_paid = |total: u64, without: (u64, u64), with: (u64, u64)| {
            let [without, with] =
                [without, with].map(|(releases, gaps)| MissedReleases { releases, gaps });
            let lateness_ns = SummaryStats { p50: Some(7e3), ..SummaryStats::default() };
            is_cheap(&RecordingPrice {
                unrecorded_ns: lateness_ns.clone(),
                recorded_ns: lateness_ns,
                unrecorded: total - without.releases,
                recorded: total - with.releases,
                unrecorded_missed: Some(without),
                recorded_missed: Some(with),
            })
        };
        // A period of 25 µs: 5 % without, 22 % with.
        assert!(!is_paid(40_000, (1_885, 1_885), (8_987, 8_987)));
        assert!(is_paid(40_000, (1_885, 1_885), (2_200, 2_200)), "by less than one in a hundred");
        assert!(!is_paid(40_000, (1_885, 1_885), (2_400, 2_400)), "by more");
        assert!(is_paid(40_000, (16_000, 16_000), (17_500, 17_500)), "by less than a tenth");
        assert!(!is_paid(40_000, (16_000, 16_000), (17_700, 17_700)), "by more than a tenth");
        // One stall of the machine in a turn that was recorded.
        assert!(is_paid(1_000, (0, 0), (100, 1)));
        assert!(is_paid(1_000, (100, 1), (0, 0)));
        assert!(!is_paid(1_000, (0, 0), (100, 20)));
    }

    #[test]
    fn reasons_are_one_line() {
        let reasons = [
            NotRecorded::Refused("kernel.perf_event_paranoid is 2".to_owned()),
            NotRecorded::SharesCpu,
            NotRecorded::Short,
            NotRecorded::Spins,
            NotRecorded::TooSlow,
            NotRecorded::Stopped,
            NotRecorded::Failed,
        ];
        for reason in reasons {
            let text = reason.to_string();
            assert!(!text.contains('\n') && !text.is_empty(), "{text}");
        }
    }

    /// A plan of one loop, measured for so long under idle, so many loads that are one group, and
    /// a wait of its own at the end; with its groups.
    fn loaded(period_ns: u64, loads: usize, last: WaitKind, length_ms: i64) -> Loaded {
        let name = |condition: usize| format!("c{condition}");
        let condition = |at: usize| Condition {
            name: name(at),
            wait: (at > loads).then_some(last),
            library: None,
            loads: Vec::new(),
        };
        let period = Period::from_ns(period_ns).expect("positive");
        let thread = RtThread::cpu(0).fifo(20).wait(WaitKind::Sleep);
        let plan = PeriodicPlan {
            streams: vec![Stream { thread, period, phase_ns: 0 }],
            conditions: (0..loads + 2).map(condition).collect(),
            blocks: vec![ConditionBlock { condition: 0, length: Span::from_ms(length_ms) }],
            housekeeping: Vec::new(),
            cold: 10,
        };
        let groups = (0..loads + 2).map(|at| if (1..=loads).contains(&at) { 1 } else { at });
        Loaded { plan, groups: groups.collect() }
    }

    struct Loaded {
        plan: PeriodicPlan,
        groups: Vec<usize>,
    }

    impl Loaded {
        /// Lengths by condition, ms; or why there are none.
        fn behind(&self) -> Result<Vec<(usize, i64)>, NotRecorded> {
            let blocks = blocks_behind(&self.plan, &self.groups)?;
            let block =
                |block: &ConditionBlock| (block.condition, block.length.as_ns() / 1_000_000);
            Ok(blocks.iter().map(block).collect())
        }
    }

    #[test]
    fn blocks_behind_have_a_tenth_but_each_group_its_least_and_together_at_most_20_s() {
        let ms = 1_000_000;
        let behind = |loads, length_ms| loaded(ms, loads, WaitKind::Spin, length_ms).behind();
        let every = |first: i64, loads: usize, each: i64| {
            let loads = (1..=loads).map(|load| (load, each));
            Ok(std::iter::once((0, first)).chain(loads).collect::<Vec<_>>())
        };
        assert_eq!(behind(1, 10_000), every(1_000, 1, 1_000), "the least");
        assert_eq!(behind(8, 30_000), every(1_500, 8, 250), "a tenth, and the least of a block");
        assert_eq!(behind(8, 80_000), every(4_000, 8, 500));
        assert_eq!(behind(8, 3_600_000), every(10_000, 8, 1_250), "20 s");
        // More blocks than there is time for with one second each.
        assert_eq!(behind(76, 80_000), every(1_000, 76, 250));
        assert_eq!(behind(79, 80_000), every(250, 79, 250));
        assert_eq!(behind(80, 80_000), Err(NotRecorded::TooSlow));
        // A wait that sleeps is a group too, one that spins is not.
        let sleeps = loaded(ms, 1, WaitKind::Sleep, 90_000).behind();
        assert_eq!(sleeps, Ok(vec![(0, 3_000), (1, 3_000), (2, 3_000)]));
        // Those of a fast loop have a second each, however long the measurement.
        let fast = loaded(25_000, 1, WaitKind::Spin, 80_000).behind();
        assert_eq!(fast, every(1_000, 1, 1_000));
        // Periods that are long need longer blocks: 35 cycles.
        let slow = |period_ns| loaded(period_ns, 8, WaitKind::Spin, 30_000).behind();
        assert_eq!(slow(20 * ms), every(1_500, 8, 700));
        assert_eq!(slow(100 * ms), Err(NotRecorded::TooSlow));
        let mut spins = loaded(ms, 0, WaitKind::Spin, 30_000);
        spins.plan.streams[0].thread = RtThread::cpu(0).fifo(20).wait(WaitKind::Spin);
        assert_eq!(spins.behind(), Err(NotRecorded::Spins));
    }

    #[derive(Default)]
    struct Kept(Vec<Sample>);

    impl Sink for Kept {
        fn take(&mut self, _: usize, samples: &[Sample]) {
            self.0.extend(samples);
        }
    }

    /// Records, and has the loop disturbed in its only block.
    struct Disturbed<'a> {
        plan: &'a PeriodicPlan,
        stop: &'a AtomicBool,
        recorder: LoopRecorder,
        injection: InjectionPlan,
        running: Option<RunningInjection>,
    }

    impl BackgroundLoads for Disturbed<'_> {
        fn ready(&mut self, tids: &[i32]) {
            let loops = ReadyLoops { plan: self.plan, stop: self.stop };
            self.recorder.begin(tids, &loops, &mut || {});
        }

        fn begin(&mut self, condition: usize, _: Span) -> Result<(), String> {
            self.recorder.begin_block(self.plan, condition);
            let running = RunningInjection::start(self.injection).map_err(|why| why.to_string())?;
            self.running = Some(running);
            Ok(())
        }

        fn end(&mut self, _: usize) {
            self.recorder.end_block();
        }
    }

    #[test]
    fn a_thread_above_the_loop_is_named_also_for_the_worst_cycle() {
        if !skip::need_tracing() || !skip::need_fifo() {
            return;
        }
        let cpu = affinity::get(0).expect("own").iter().next().expect("one");
        let period = Period::from_ns(1_000_000).expect("positive");
        let thread = RtThread::cpu(cpu).fifo(20).wait(WaitKind::Sleep);
        let condition =
            Condition { name: "idle".to_owned(), wait: None, library: None, loads: Vec::new() };
        let plan = PeriodicPlan {
            streams: vec![Stream { thread, period, phase_ns: 0 }],
            conditions: vec![condition],
            blocks: vec![ConditionBlock { condition: 0, length: Span::from_ms(2_400) }],
            housekeeping: Vec::new(),
            cold: 10,
        };
        let blame = LoopBlamePlan {
            when: BlameWhen::Asked,
            late: LateThreshold::Above(500_000),
            machine: RecordedMachine { platform: Platform::Unknown, kernel: None, smi_cpu: None },
            groups: vec![0],
        };
        let victim = Victim {
            cpu,
            other_cpu: cpu,
            priority: 20,
            pid: std::process::id().cast_signed(),
            tid: process::tid(),
        };
        let times = (Duration::from_millis(50), Duration::from_millis(3));
        let stop = AtomicBool::new(false);
        let mut disturbed = Disturbed {
            plan: &plan,
            stop: &stop,
            recorder: LoopRecorder::new(blame),
            injection: InjectionPlan::new(Injection::HigherPriority, victim, 40, times)
                .expect("bounded"),
            running: None,
        };
        let prepared = Prepared::new(plan.clone());
        let grid: Releases = prepared.run_grids()[0];
        let no_file = None::<SampleFile<Vec<u8>>>;
        let outcome = prepared.run(Kept::default(), no_file, &mut disturbed, &stop);
        let samples = outcome.expect("threads").sink.0;
        let log = disturbed.running.take().expect("it began").wait().expect("granted");
        let causes = disturbed.recorder.finish(&stop, |_, _, _| None);
        assert_eq!(causes.lacks(), None);
        let price = causes.price().expect("measured");
        assert!(price.recorded > 50 && price.unrecorded > 50, "{price:?}");
        assert!(price.missed_shares().is_some(), "{price:?}");
        assert!(causes.evidence().is_some_and(|evidence| evidence.events > 1_000));
        let run = causes.run(&plan, 0, 0).expect("it woke");
        let is_hog = |name: &str| name.contains(&log.name) && name.contains(&log.tid.to_string());
        let hog = run.causes.iter().find(|cause| is_hog(&cause.name));
        let hog = hog.unwrap_or_else(|| panic!("{}", run.sentence));
        assert!(hog.wakes >= 3 && hog.worst_ns > 500_000, "{hog:?}");
        // The test is the measurement.
        assert_eq!(hog.owner, CulpritOwner::Measurement);
        assert!(hog.name.starts_with("a thread of this measurement ("), "{hog:?}");
        assert!(!hog.advice.contains("chrt"), "{hog:?}");
        // Those that woke within the log, and those alone.
        let (mut named, mut hit, mut others) = (0, 0, Vec::new());
        for sample in &samples {
            let release_ns = grid.release(sample.cycle).as_ns();
            let ran_ns = release_ns.saturating_add_signed(sample.lateness.as_ns());
            let wake = causes.wake_at(0, 0, (release_ns, ran_ns));
            let covered = log.intervals.iter().map(|hog| hog.overlap_ns(release_ns, ran_ns));
            let covered_ns: u64 = covered.sum();
            let is_named = wake.as_ref().is_some_and(|wake| is_hog(&wake.cause));
            assert!(!is_named || covered_ns > 0, "{sample:?} is not the hog's");
            let is_hit = covered_ns > 600_000 && covered_ns * 10 > (ran_ns - release_ns) * 9;
            hit += u32::from(is_hit);
            named += u32::from(is_hit && is_named);
            others.extend((is_hit && !is_named).then_some(wake));
        }
        assert!(hit >= 5 && named * 10 >= hit * 8, "{named} of {hit} named: {others:?}");
        let cycles = causes.late_cycles(0, 0, &grid);
        let hogs = cycles.iter().filter(|late| is_hog(&late.cause)).count();
        assert!(hogs >= 5, "{cycles:?}");
        assert!(cycles.iter().all(|late| late.waited_ns <= 5_000_000_000));
        assert_eq!(causes.run(&plan, 1, 0), None);
        assert_eq!(causes.run(&plan, 0, 1), None);
        assert_eq!(causes.wake_at(0, 0, (1, 2)), None);
    }
}
