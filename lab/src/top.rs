//! Real-time threads as they run: the lateness of each, and its cause.
//!
//! For `punctual top`. A few events, filtered in the kernel, go into the same account as those of
//! [`crate::blame`]. What it shows is the newest: a reader that is slow misses what came between,
//! and costs nothing. Changes nothing of the machine; the events end with the process. Never
//! prints.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use punctual_blame::blame::Blame;
use punctual_blame::cause::{CauseKind, LateCause, Who};
use punctual_blame::config::{BlameBounds, BlameConfig, FollowedThreads, LateThreshold};
use punctual_blame::outcome::{ThreadSnapshot, TopSnapshot, WaitingNow};
use punctual_blame::symbols::SymbolMap;
use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::{ROUND_ROBIN, SchedAttributes};
use punctual_trace::event::{TaskName, Tid};

use crate::blame::{BlamedRun, RecordedMachine, SETTLE, live_map, program};
use crate::capture::{
    Capture, CaptureConsumer, CaptureItem, CaptureRefused, CaptureSoFar, EventSet, FollowedThread,
    kernel_symbols,
};

/// The most threads that are shown; further ones are counted.
pub const THREADS_MAX: usize = 256;
/// Pieces of its past that are kept of each thread: 27 kB.
const PIECES: usize = 256;
/// Segments of a CPU that are kept while one thread is watched more closely: 350 kB of a copy at
/// each showing.
const SEGMENTS: usize = 4_096;

/// The plan of what is shown: which threads, from which lateness on, how often.
#[derive(Clone, Debug)]
pub struct TopPlan {
    /// These threads; `None` for each that has a real-time policy.
    pub threads: Option<Vec<FollowedThread>>,
    /// The lateness beyond which a wake is late, ns.
    pub late_over_ns: u64,
    /// The lateness, ns, of a wake that stops it: the showing of then stays.
    pub stop_over_ns: Option<u64>,
    /// The time from one showing to the next; less than 100 ms is 100 ms.
    pub interval: Span,
    /// The machine that is watched.
    pub machine: RecordedMachine,
}

impl TopPlan {
    fn config(&self) -> BlameConfig {
        let follow = match &self.threads {
            None => FollowedThreads::RealTime,
            Some(threads) => FollowedThreads::Threads(
                threads.iter().map(|thread| thread.tid.unsigned_abs()).collect(),
            ),
        };
        BlameConfig {
            follow,
            late: LateThreshold::Above(self.late_over_ns),
            bounds: BlameBounds { threads: THREADS_MAX, pieces: PIECES, ..BlameBounds::default() },
            ..self.machine.config()
        }
    }

    /// The filters of the small set let real-time threads through alone.
    fn events(&self) -> EventSet {
        let threads = self.threads.iter().flatten();
        let mut ordinary = threads.filter(|thread| !thread.is_real_time());
        if ordinary.next().is_some() { EventSet::Full } else { EventSet::Top }
    }
}

/// What keeps a thread from its CPU now, else the most frequent cause of its late wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopCause {
    /// A cause that the events show.
    Known(LateCause),
    /// Its timer was late; this ran before it.
    TimerLate(TaskName),
    /// It waited for its CPU; this ran before it.
    Waited(TaskName),
    /// It waits for its CPU, later than is late.
    Waits(WaitingNow),
}

impl TopCause {
    /// The few events show who ran, and no more: what else the account concluded from them is left
    /// out, and who ran before stands for it.
    fn of(figures: &ThreadSnapshot, set: EventSet, late_over_ns: u64) -> Option<Self> {
        // It spins its margin away: up to that a wake is on time.
        let late_over_ns = late_over_ns.saturating_add(figures.margin_ns);
        if let Some(waiting) = figures.waiting.filter(|waiting| waiting.for_ns > late_over_ns) {
            return Some(Self::Waits(waiting));
        }
        let first = figures.first_cause.filter(|cause| {
            let is_of_threads = matches!(
                cause.kind(),
                CauseKind::HigherPriority
                    | CauseKind::EqualPriority
                    | CauseKind::OwnCode
                    | CauseKind::Follows
            );
            set == EventSet::Full || is_of_threads
        });
        if let Some(cause) = first {
            return Some(Self::Known(cause));
        }
        let before = figures.ran_before?;
        let is_timer = figures.delivery_ns > figures.ready_ns;
        Some(if is_timer { Self::TimerLate(before) } else { Self::Waited(before) })
    }

    /// In a word: the thread that it names, else what kind it is.
    pub fn short(&self) -> String {
        let name = |task: TaskName| match is_idle(task) {
            true => "idle".to_owned(),
            false => task.name.to_string(),
        };
        match self {
            Self::Known(cause) => {
                cause.culprit().map_or_else(|| cause.kind().word().to_owned(), name)
            }
            Self::TimerLate(before) | Self::Waited(before) => name(*before),
            Self::Waits(waiting) => name(waiting.runner),
        }
    }

    /// In a few words, with the names of functions.
    fn words(&self, symbols: &SymbolMap) -> String {
        match self {
            Self::Known(cause) => cause.name(symbols),
            Self::TimerLate(before) if is_idle(*before) => "timer late, from idle".to_owned(),
            Self::TimerLate(before) => format!("timer late, {} ran", Who(*before)),
            Self::Waited(before) if is_idle(*before) => "late to leave idle".to_owned(),
            Self::Waited(before) => format!("waited while {} ran", Who(*before)),
            Self::Waits(waiting) => {
                let waited = Span::from_ns(waiting.for_ns.min(i64::MAX as u64) as i64);
                format!("waits {waited}: {} runs", Who(waiting.runner))
            }
        }
    }
}

/// Returns true for a CPU's idle thread. Causes that were put together by name have no number
/// either.
fn is_idle(task: TaskName) -> bool {
    let name = task.name.as_bytes();
    task.tid == 0 && (name.is_empty() || name.starts_with(b"swapper"))
}

/// A policy of the kernel, with what ranks threads in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopPriority {
    /// SCHED_FIFO, 1 to 99.
    Fifo(i32),
    /// SCHED_RR, 1 to 99.
    RoundRobin(i32),
    /// SCHED_DEADLINE, or the kernel's own above all.
    Deadline,
    /// No real-time policy; its nice value.
    Nice(i32),
}

impl TopPriority {
    /// By the priority as the kernel counts.
    const fn of(kernel_priority: i32, is_round_robin: bool) -> Self {
        match kernel_priority {
            ..0 => Self::Deadline,
            0..100 if is_round_robin => Self::RoundRobin(99 - kernel_priority),
            0..100 => Self::Fifo(99 - kernel_priority),
            100.. => Self::Nice(kernel_priority - 120),
        }
    }
}

/// `F90`, `R10`, `DL`, `n0`.
impl fmt::Display for TopPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fifo(priority) => write!(f, "F{priority}"),
            Self::RoundRobin(priority) => write!(f, "R{priority}"),
            Self::Deadline => f.write_str("DL"),
            Self::Nice(nice) => write!(f, "n{nice}"),
        }
    }
}

/// A thread, as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct TopThread {
    /// Its figures since the beginning.
    pub figures: ThreadSnapshot,
    /// Its policy.
    pub priority: TopPriority,
    /// Its wakes since the showing before.
    pub new_wakes: u64,
    /// The late ones among them.
    pub new_late: u64,
    /// What keeps it now, else the most frequent cause of its late wakes.
    pub cause: Option<TopCause>,
    /// The same in words; empty where it is not known.
    pub why: String,
}

impl TopThread {
    /// Returns true for one that waits for its CPU, later than is late.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.cause, Some(TopCause::Waits(_)))
    }
}

/// One showing.
#[derive(Clone, Debug, PartialEq)]
pub struct TopFrame {
    /// The time since the begin or the last reset.
    pub elapsed: Span,
    /// Events a second since the frame before.
    pub events_per_s: f64,
    /// Records that the kernel dropped, since the begin.
    pub lost: u64,
    /// CPU time of this process over time, since the frame before; 1 is a whole CPU.
    pub own_cpu_share: f64,
    /// The lateness beyond which a wake is late, ns.
    pub late_over_ns: u64,
    /// The thread whose wake stopped it, and the lateness of that, ns.
    pub stopped_by: Option<(TaskName, u64)>,
    /// Times that a thread was met for which there is no room.
    pub unfollowed: u64,
    /// The threads, in the order in which they were met.
    pub threads: Vec<TopThread>,
}

/// The figures that the reader publishes at once.
#[derive(Debug)]
struct Published {
    snapshot: TopSnapshot,
    /// The number of the reset that it is of.
    generation: u64,
    late_over_ns: u64,
    begun_ns: u64,
    stopped_by: Option<(TaskName, u64)>,
}

/// The orders to the reader.
#[derive(Debug, Default)]
struct Orders {
    /// Counts resets.
    generation: AtomicU64,
    late_over_ns: AtomicU64,
}

/// Takes events, and publishes the figures of their threads.
#[derive(Debug)]
struct Watcher {
    blame: Blame,
    config: BlameConfig,
    orders: Arc<Orders>,
    to_view: SyncSender<Published>,
    interval_ns: u64,
    stop_over_ns: Option<u64>,
    generation: u64,
    from_ns: u64,
    due_ns: u64,
    stopped_by: Option<(TaskName, u64)>,
}

impl Watcher {
    /// Publishes what is due; called every 100 ms, on the capture's own clock.
    fn look(&mut self, now_ns: u64) {
        if self.from_ns == u64::MAX {
            // What opening the events does to the machine is not counted.
            self.from_ns = now_ns + SETTLE.as_ns().unsigned_abs();
            self.due_ns = self.from_ns + self.interval_ns;
        }
        let generation = self.orders.generation.load(Ordering::Acquire);
        if generation != self.generation {
            self.begin_anew(generation, now_ns);
        }
        let is_due = now_ns >= self.due_ns;
        let may_stop = self.stop_over_ns.is_some() && now_ns >= self.from_ns;
        if self.stopped_by.is_some() || !is_due && !may_stop {
            return;
        }
        let mut snapshot = self.blame.snapshot();
        snapshot.threads.iter_mut().for_each(|figures| end_ordinary_wait(figures, attributes));
        let least_ns = |thread: &ThreadSnapshot| thread.worst_so_far().least_ns();
        // What it spins away is not late.
        let beyond_ns = |thread: &ThreadSnapshot| least_ns(thread).saturating_sub(thread.margin_ns);
        let worst = snapshot.threads.iter().max_by_key(|thread| beyond_ns(thread));
        let over = worst.filter(|worst| self.stop_over_ns.is_some_and(|ns| beyond_ns(worst) > ns));
        let stopped_by = over.map(|thread| (thread.task, least_ns(thread)));
        if !is_due && stopped_by.is_none() {
            return;
        }
        let published = Published {
            snapshot,
            generation,
            late_over_ns: self.orders.late_over_ns.load(Ordering::Relaxed),
            begun_ns: self.from_ns,
            stopped_by,
        };
        // Where the one before still waits to be taken this one is not wanted yet: in 100 ms again.
        if self.to_view.try_send(published).is_ok() {
            self.stopped_by = stopped_by;
            self.due_ns = (self.due_ns + self.interval_ns).max(now_ns);
        }
    }

    fn begin_anew(&mut self, generation: u64, now_ns: u64) {
        self.generation = generation;
        let late_over_ns = self.orders.late_over_ns.load(Ordering::Relaxed);
        self.config.late = LateThreshold::Above(late_over_ns);
        self.blame = Blame::new(self.config.clone());
        self.stopped_by = None;
        self.from_ns = self.from_ns.max(now_ns);
        self.due_ns = self.from_ns + self.interval_ns;
    }
}

impl CaptureConsumer for Watcher {
    fn take(&mut self, item: CaptureItem<'_>) {
        match item {
            CaptureItem::Event(event) if event.at_ns >= self.from_ns => self.blame.push(event),
            CaptureItem::Clocks(_) => self.look(now_ns(ClockId::Monotonic)),
            _ => {}
        }
    }
}

/// Scheduling attributes of a thread; `None` where it has ended, or they cannot be seen.
fn attributes(tid: Tid) -> Option<SchedAttributes> {
    SchedAttributes::get(tid.cast_signed()).ok()
}

/// Ends the wait of a thread that gave its real-time policy up while it waited: no event shows
/// that, and the filtered ones do not show that it runs either.
fn end_ordinary_wait(
    figures: &mut ThreadSnapshot,
    attributes: impl Fn(Tid) -> Option<SchedAttributes>,
) {
    let TaskName { tid, kernel_priority, .. } = figures.task;
    let is_real_time = |kernel_priority: i32| kernel_priority < 100;
    figures.waiting = figures.waiting.filter(|_| {
        !is_real_time(kernel_priority)
            || attributes(tid).is_none_or(|found| is_real_time(found.kernel_priority()))
    });
}

/// The reader has ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopEnded;

impl fmt::Display for TopEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread that reads the kernel's events has ended")
    }
}

impl std::error::Error for TopEnded {}

/// The instant, CPU time and counts at a frame.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at_ns: u64,
    own_cpu_ns: u64,
    so_far: CaptureSoFar,
}

/// Takes all events, and publishes why one thread was late.
#[derive(Debug)]
struct Examiner {
    blame: Blame,
    to_view: SyncSender<BlamedRun>,
    interval_ns: u64,
    from_ns: u64,
    due_ns: u64,
}

impl CaptureConsumer for Examiner {
    fn take(&mut self, item: CaptureItem<'_>) {
        match item {
            CaptureItem::Process { tid, process } => {
                self.blame.set_program(tid, program(process));
            }
            CaptureItem::Event(event) if event.at_ns >= self.from_ns => self.blame.push(event),
            CaptureItem::Clocks(_) => self.look(now_ns(ClockId::Monotonic)),
            _ => {}
        }
    }
}

impl Examiner {
    /// Publishes what is due; called every 100 ms, on the capture's own clock.
    fn look(&mut self, now_ns: u64) {
        if self.from_ns == u64::MAX {
            self.from_ns = now_ns + SETTLE.as_ns().unsigned_abs();
            self.due_ns = self.from_ns + self.interval_ns;
        }
        if now_ns < self.due_ns {
            return;
        }
        self.due_ns = now_ns + self.interval_ns;
        // A copy of it ends: what it has so far is judged, and it goes on.
        let outcome = self.blame.clone().finish();
        if let Some(run) = outcome.threads.first().map(BlamedRun::of) {
            // Where the one before still waits to be taken this one is not wanted yet.
            let _unwanted = self.to_view.try_send(run);
        }
    }
}

/// One thread that is watched more closely, by all events.
#[derive(Debug)]
struct Examined {
    /// Its events end where this is dropped.
    _capture: Capture<Examiner>,
    found: Receiver<BlamedRun>,
}

/// Shows real-time threads, until it is dropped.
#[derive(Debug)]
pub struct Top {
    plan: TopPlan,
    examined: Option<Examined>,
    capture: Capture<Watcher>,
    frames: Receiver<Published>,
    orders: Arc<Orders>,
    set: EventSet,
    symbols: SymbolMap,
    mark: Mark,
    history: History,
}

/// The events and the names by which causes are shown.
#[derive(Clone, Copy, Debug)]
struct CauseNames<'a> {
    set: EventSet,
    symbols: &'a SymbolMap,
}

/// The figures of the frame before.
#[derive(Debug, Default)]
struct History {
    generation: u64,
    /// Wakes, and late ones among them.
    counts: HashMap<Tid, (u64, u64)>,
    /// The kernel priority of each thread, and true where that is of SCHED_RR, which the kernel's
    /// events do not show.
    round_robin: HashMap<Tid, (i32, bool)>,
}

impl History {
    /// The threads of a frame, compared with the one before.
    fn threads(
        &mut self,
        published: Published,
        names: CauseNames<'_>,
        attributes: impl Fn(Tid) -> Option<SchedAttributes>,
    ) -> Vec<TopThread> {
        if self.generation != published.generation {
            *self = Self { generation: published.generation, ..Self::default() };
        }
        let threads = published.snapshot.threads.into_iter().map(|mut figures| {
            let (tid, kernel_priority) = (figures.task.tid, figures.task.kernel_priority);
            let counts = (figures.wakes, figures.late);
            let (wakes, late) = self.counts.insert(tid, counts).unwrap_or_default();
            let seen = self.round_robin.entry(tid).or_insert((i32::MIN, false));
            if seen.0 != kernel_priority {
                let is_round_robin = |found: SchedAttributes| found.policy == ROUND_ROBIN;
                *seen = (kernel_priority, attributes(tid).is_some_and(is_round_robin));
            }
            // It may have changed since that thread was switched to: no event shows that.
            if let Some(WaitingNow { runner, .. }) = &mut figures.waiting
                && let Some(found) = attributes(runner.tid)
            {
                runner.kernel_priority = found.kernel_priority();
            }
            let cause = TopCause::of(&figures, names.set, published.late_over_ns);
            TopThread {
                priority: TopPriority::of(kernel_priority, seen.1),
                new_wakes: figures.wakes.saturating_sub(wakes),
                new_late: figures.late.saturating_sub(late),
                why: cause.map(|cause| cause.words(names.symbols)).unwrap_or_default(),
                cause,
                figures,
            }
        });
        threads.collect()
    }
}

impl Top {
    /// Opens the events. What that does to the machine, 0.2 s, is not counted.
    ///
    /// # Errors
    /// The reason for which the kernel gives none.
    pub fn start(plan: &TopPlan) -> Result<Self, CaptureRefused> {
        let symbols = kernel_symbols();
        let orders = Arc::new(Orders::default());
        orders.late_over_ns.store(plan.late_over_ns, Ordering::Relaxed);
        let set = plan.events();
        let tids: Vec<i32> = plan.threads.iter().flatten().map(|thread| thread.tid).collect();
        let capture = plan.machine.capture_plan(set).following(&tids).with_symbols(&symbols);
        // What a timer's function does is known by its name, also of the few events.
        let symbols = live_map(&symbols);
        let config = BlameConfig { symbols: symbols.clone(), ..plan.config() };
        let interval_ns = plan.interval.as_ns().max(0).unsigned_abs();
        let (to_view, frames) = sync_channel(1);
        let watcher = Watcher {
            blame: Blame::new(config.clone()),
            config,
            orders: Arc::clone(&orders),
            to_view,
            interval_ns,
            stop_over_ns: plan.stop_over_ns,
            generation: 0,
            from_ns: u64::MAX,
            due_ns: u64::MAX,
            stopped_by: None,
        };
        let capture = Capture::start(&capture, watcher)?;
        let mark = Mark::now(capture.so_far());
        let history = History::default();
        let (plan, examined) = (plan.clone(), None);
        Ok(Self { plan, examined, capture, frames, orders, set, symbols, mark, history })
    }

    /// Watches one thread more closely: all events, which cost every loop of the machine more than
    /// the few that the table needs (docs/blame.md has how much), until [`Self::leave`]. One that
    /// was watched before is left.
    ///
    /// # Errors
    /// The reason for which the kernel gives no events.
    pub fn examine(&mut self, tid: Tid) -> Result<(), CaptureRefused> {
        self.leave();
        let capture = self.plan.machine.capture_plan(EventSet::Full);
        let capture = capture.following(&[tid.cast_signed()]);
        let (to_view, found) = sync_channel(1);
        let config = BlameConfig {
            follow: FollowedThreads::Threads(vec![tid]),
            late: LateThreshold::Above(self.orders.late_over_ns.load(Ordering::Relaxed)),
            symbols: live_map(&kernel_symbols()),
            bounds: BlameBounds { segments: SEGMENTS, ..BlameBounds::default() },
            ..self.plan.config()
        };
        let examiner = Examiner {
            blame: Blame::new(config),
            to_view,
            interval_ns: self.plan.interval.as_ns().max(0).unsigned_abs(),
            from_ns: u64::MAX,
            due_ns: u64::MAX,
        };
        let capture = Capture::start(&capture, examiner)?;
        self.examined = Some(Examined { _capture: capture, found });
        Ok(())
    }

    /// Ends the watch that [`Self::examine`] began.
    pub fn leave(&mut self) {
        self.examined = None;
    }

    /// The newest figures of the thread that is watched more closely, where they are new.
    pub fn examined(&self) -> Option<BlamedRun> {
        self.examined.as_ref()?.found.try_iter().last()
    }

    /// The next frame, where there is one in time.
    ///
    /// # Errors
    /// None will come any more.
    pub fn next(&mut self, wait: Duration) -> Result<Option<TopFrame>, TopEnded> {
        let published = match self.frames.recv_timeout(wait) {
            Ok(published) => published,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => return Err(TopEnded),
        };
        if published.generation != self.orders.generation.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let before = std::mem::replace(&mut self.mark, Mark::now(self.capture.so_far()));
        let took_ns = self.mark.at_ns.saturating_sub(before.at_ns).max(1) as f64;
        let events = self.mark.so_far.events.saturating_sub(before.so_far.events);
        let used_ns = self.mark.own_cpu_ns.saturating_sub(before.own_cpu_ns);
        let elapsed_ns = published.snapshot.at_ns.saturating_sub(published.begun_ns);
        let names = CauseNames { set: self.set, symbols: &self.symbols };
        Ok(Some(TopFrame {
            elapsed: Span::from_ns(i64::try_from(elapsed_ns).unwrap_or(i64::MAX)),
            events_per_s: events as f64 * 1e9 / took_ns,
            lost: self.mark.so_far.lost,
            own_cpu_share: used_ns as f64 / took_ns,
            late_over_ns: published.late_over_ns,
            stopped_by: published.stopped_by,
            unfollowed: published.snapshot.counts.unfollowed,
            threads: self.history.threads(published, names, attributes),
        }))
    }

    /// Forgets all figures, and begins anew; later than this, ns, is late then.
    pub fn begin_anew(&self, late_over_ns: u64) {
        self.orders.late_over_ns.store(late_over_ns, Ordering::Relaxed);
        self.orders.generation.fetch_add(1, Ordering::Release);
    }
}

impl Mark {
    fn now(so_far: CaptureSoFar) -> Self {
        // The reader's thread, and the one that shows; the others of the process do nothing.
        let own_cpu_ns = so_far.reader_cpu_ns + now_ns(ClockId::ThreadCpu);
        Self { at_ns: now_ns(ClockId::Monotonic), own_cpu_ns, so_far }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_blame::cause::Unexplained;
    use punctual_blame::outcome::{BlameCounts, LatenessBounds};
    use punctual_blame::programs::ThreadPrograms;
    use punctual_os::scheduler::FIFO;
    use punctual_trace::event::ShortName;

    fn task(tid: Tid, kernel_priority: i32) -> TaskName {
        TaskName { tid, name: ShortName::new(b"servo"), kernel_priority }
    }

    fn figures(tid: Tid, wakes: u64, late: u64) -> ThreadSnapshot {
        ThreadSnapshot {
            task: task(tid, 9),
            cpu: 0,
            period_ns: Some(1_000_000),
            margin_ns: 0,
            wakes,
            p50: LatenessBounds::exact(20_000),
            p99: LatenessBounds::exact(300_000),
            max: LatenessBounds::exact(400_000),
            late,
            delivery_ns: 1_000,
            ready_ns: 2_000,
            first_cause: None,
            ran_before: None,
            has_ended: false,
            unmatched: 0,
            waiting: None,
        }
    }

    fn names(symbols: &SymbolMap) -> CauseNames<'_> {
        CauseNames { set: EventSet::Top, symbols }
    }

    fn published(generation: u64, threads: Vec<ThreadSnapshot>) -> Published {
        let counts = BlameCounts::default();
        Published {
            snapshot: TopSnapshot { at_ns: 0, cpus: 1, counts, threads },
            generation,
            late_over_ns: 100_000,
            begun_ns: 0,
            stopped_by: None,
        }
    }

    #[test]
    fn what_is_new_is_told_until_it_begins_anew() {
        let (mut history, symbols) = (History::default(), SymbolMap::default());
        let mut new = |generation, wakes, late| {
            let published = published(generation, vec![figures(7, wakes, late)]);
            let threads = history.threads(published, names(&symbols), |_| None);
            (threads[0].new_wakes, threads[0].new_late)
        };
        assert_eq!(new(0, 10, 2), (10, 2));
        assert_eq!(new(0, 25, 2), (15, 0));
        assert_eq!(new(1, 5, 1), (5, 1), "a reset");
        assert_eq!(new(1, 4, 0), (0, 0), "fewer than before cannot be, and is no panic");
    }

    #[test]
    fn the_policy_is_asked_once_and_again_when_the_priority_changes() {
        let (mut history, symbols) = (History::default(), SymbolMap::default());
        let questions = std::cell::Cell::new(0);
        let mut shown = |kernel_priority| {
            let thread = ThreadSnapshot { task: task(7, kernel_priority), ..figures(7, 1, 0) };
            let threads = history.threads(published(0, vec![thread]), names(&symbols), |_| {
                questions.set(questions.get() + 1);
                Some(SchedAttributes::of(ROUND_ROBIN))
            });
            (threads[0].priority.to_string(), questions.get())
        };
        assert_eq!(shown(9), ("R90".to_owned(), 1));
        assert_eq!(shown(9), ("R90".to_owned(), 1));
        assert_eq!(shown(98), ("R1".to_owned(), 2));
        assert_eq!(shown(-1), ("DL".to_owned(), 3));
        assert_eq!(shown(120), ("n0".to_owned(), 4));
        assert_eq!(TopPriority::of(0, false).to_string(), "F99");
    }

    #[test]
    fn of_few_events_only_what_they_show_is_concluded() {
        let hog = task(8, 2);
        let above = LateCause::HigherPriority { task: hog };
        let vague = LateCause::Unexplained(Unexplained::NoRule);
        let with = |first_cause, ran_before, set| {
            let figures = ThreadSnapshot { first_cause, ran_before, ..figures(7, 9, 3) };
            TopCause::of(&figures, set, 100_000)
        };
        let known = Some(TopCause::Known(above));
        assert_eq!(with(Some(above), Some(hog), EventSet::Top), known);
        let waited = Some(TopCause::Waited(hog));
        assert_eq!(with(Some(vague), Some(hog), EventSet::Top), waited);
        let vague_one = Some(TopCause::Known(vague));
        assert_eq!(with(Some(vague), Some(hog), EventSet::Full), vague_one);
        assert_eq!(with(None, None, EventSet::Top), None);
        let late_timer =
            ThreadSnapshot { ran_before: Some(hog), delivery_ns: 5_000, ..figures(7, 9, 3) };
        let late_timer = TopCause::of(&late_timer, EventSet::Top, 100_000).expect("late");
        assert_eq!(late_timer, TopCause::TimerLate(hog));
        let words = |cause: TopCause| (cause.short(), cause.words(&SymbolMap::default()));
        let (short, long) = words(late_timer);
        assert_eq!(short, "servo");
        assert!(long.starts_with("timer late, servo"), "{long}");
        let idle = TaskName::default();
        let from_idle = [TopCause::TimerLate(idle), TopCause::Waited(idle)].map(words);
        assert!(from_idle.iter().all(|(short, long)| short == "idle" && long.contains("idle")));
        assert_eq!(TopCause::Known(vague).short(), "unexplained");
        // Put together by name, its number is gone.
        assert_eq!(TopCause::Known(above.grouped(&ThreadPrograms::default())).short(), "servo");
        let swapper = TaskName { name: ShortName::new(b"swapper/1"), ..idle };
        assert_eq!(TopCause::Waited(swapper).short(), "idle");
    }

    #[test]
    fn a_thread_that_waits_is_shown_with_what_runs_now() {
        let (hog, before) = (task(8, 2), task(9, 4));
        let with = |for_ns, late_over_ns| {
            let waiting = Some(WaitingNow { for_ns, runner: hog });
            let figures = ThreadSnapshot { waiting, ran_before: Some(before), ..figures(7, 9, 3) };
            let cause = TopCause::of(&figures, EventSet::Top, late_over_ns).expect("it is late");
            (cause.short(), cause.words(&SymbolMap::default()), figures.worst_so_far())
        };
        let (short, words, worst) = with(2_310_000_000, 100_000);
        assert_eq!(short, "servo");
        assert_eq!(words, "waits 2.31 s: servo (priority 97, 8) runs");
        assert_eq!((worst.least_ns(), worst.known_ns()), (2_310_000_000, None));
        let spins = |for_ns| {
            let waiting = Some(WaitingNow { for_ns, runner: hog });
            let figures = ThreadSnapshot { waiting, margin_ns: 300_000, ..figures(7, 9, 3) };
            let cause = TopCause::of(&figures, EventSet::Top, 100_000);
            matches!(cause, Some(TopCause::Waits(_)))
        };
        assert_eq!((spins(390_000), spins(410_000)), (false, true), "behind its margin");
        let (_, words, worst) = with(90_000, 100_000);
        assert!(words.starts_with("waited while servo (priority 95, 9)"), "{words}");
        assert_eq!(worst.least_ns(), 400_000, "less than it was late before");
    }

    #[test]
    fn the_priority_of_who_runs_is_that_of_now() {
        let waiting = Some(WaitingNow { for_ns: 2_000_000_000, runner: task(8, 120) });
        let threads = vec![ThreadSnapshot { waiting, ..figures(7, 9, 3) }];
        let (mut history, symbols) = (History::default(), SymbolMap::default());
        let fifo = |_| Some(SchedAttributes { priority: 50, ..SchedAttributes::of(FIFO) });
        let shown = history.threads(published(0, threads), names(&symbols), fifo);
        assert_eq!(shown[0].why, "waits 2.00 s: servo (priority 50, 8) runs");
    }

    #[test]
    fn a_thread_that_gave_its_policy_up_does_not_wait() {
        let waits = |kernel_priority, now: Option<SchedAttributes>| {
            let waiting = Some(WaitingNow { for_ns: 2_000_000_000, runner: task(8, 2) });
            let task = task(7, kernel_priority);
            let mut figures = ThreadSnapshot { task, waiting, ..figures(7, 9, 3) };
            end_ordinary_wait(&mut figures, |_| now);
            figures.waiting.is_some()
        };
        let fifo = SchedAttributes { priority: 50, ..SchedAttributes::of(FIFO) };
        let ordinary = SchedAttributes::of(0);
        assert!(waits(49, Some(fifo)) && !waits(49, Some(ordinary)) && waits(49, None));
        assert!(waits(120, Some(ordinary)), "one that was ordinary before");
    }

    /// A watcher without a capture.
    fn watcher(stop_over_ns: Option<u64>) -> (Watcher, Receiver<Published>) {
        let (to_view, frames) = sync_channel(1);
        let config = BlameConfig::default();
        let watcher = Watcher {
            blame: Blame::new(config.clone()),
            config,
            orders: Arc::new(Orders::default()),
            to_view,
            interval_ns: 1_000,
            stop_over_ns,
            generation: 0,
            from_ns: u64::MAX,
            due_ns: u64::MAX,
            stopped_by: None,
        };
        (watcher, frames)
    }

    #[test]
    fn frames_come_when_due_and_wait_for_their_reader() {
        let (mut watcher, frames) = watcher(None);
        let settle_ns = SETTLE.as_ns().unsigned_abs();
        watcher.look(0);
        watcher.look(settle_ns + 999);
        assert!(frames.try_recv().is_err(), "not yet");
        watcher.look(settle_ns + 1_000);
        // Nobody takes it: the next is not lost, only late.
        watcher.look(settle_ns + 2_100);
        assert_eq!(frames.try_iter().count(), 1);
        watcher.look(settle_ns + 2_200);
        assert_eq!(frames.try_iter().count(), 1);
        watcher.look(settle_ns + 2_300);
        assert_eq!(frames.try_iter().count(), 0);
    }

    #[test]
    fn a_reset_forgets_and_takes_the_threshold() {
        let (mut watcher, frames) = watcher(Some(5));
        let settle_ns = SETTLE.as_ns().unsigned_abs();
        watcher.look(0);
        watcher.stopped_by = Some((task(7, 9), 6));
        watcher.look(settle_ns + 9_000);
        assert_eq!(frames.try_iter().count(), 0, "what it showed stays");
        watcher.orders.late_over_ns.store(77, Ordering::Relaxed);
        watcher.orders.generation.store(1, Ordering::Release);
        watcher.look(settle_ns + 10_000);
        watcher.look(settle_ns + 11_000);
        let frame = frames.try_recv().expect("it is due");
        assert_eq!((frame.generation, frame.late_over_ns, frame.stopped_by), (1, 77, None));
        assert_eq!(watcher.config.late, LateThreshold::Above(77));
        assert_eq!(frame.begun_ns, settle_ns + 10_000);
    }
}
