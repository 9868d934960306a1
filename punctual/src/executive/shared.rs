//! What the threads of an executive share with each other and with handles from outside.
//!
//! Atomics for the loops; locks for setup and readers alone, which no loop waits for.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Index, IndexMut};
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_core::cycle::CancelToken;
use punctual_core::stats::View;
use punctual_core::time::{Instant, Period, Span};
use punctual_engine::calendar::CalendarPlan;
use punctual_engine::counting::{StatsPage, Words};
use punctual_engine::handover::Handover;
use punctual_engine::monitor::{Force, Watched};
use punctual_engine::outcome::Stats;
use punctual_engine::periodic::{Periodic, Plan};
use punctual_engine::rt_thread::RtThread;
use punctual_engine::safety::Demand;
use punctual_engine::task::{Task, ns};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};

use super::ending::Ending;
use super::handle::TaskId;
use super::idle::IdleCounts;
use super::lane::Parts;
use super::slot::{LATE_MOST, LateTask, Slot, Starter};

/// What the wait of a loop without tasks adapts to.
pub(super) const IDLE: Period = match Period::from_ns(100_000_000) {
    Some(period) => period,
    None => panic!(),
};

/// How often a thread that is no loop looks at what it waits for, ns.
const LOOK_NS: u64 = 500_000;

/// A look later.
pub(super) fn pause() {
    // A signal that cuts this short costs an extra look.
    let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
}

/// How many executives were built so far.
static EXECUTIVES: AtomicU64 = AtomicU64::new(0);

/// Where an executive is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunState {
    Built,
    Starting,
    Running,
    Over,
}

/// One loop of an executive, as others see it.
#[derive(Debug)]
pub(super) struct LaneShared<'env> {
    pub(super) cpu: Option<u32>,
    pub(super) handover: Handover<Parts<'env>>,
    pub(super) token: CancelToken,
    pub(super) watched: Watched,
}

impl LaneShared<'_> {
    /// Of a loop on this CPU, or on any.
    pub(super) fn new(cpu: Option<u32>) -> Self {
        let (handover, token, watched) = (Handover::new(), CancelToken::new(), Watched::default());
        Self { cpu, handover, token, watched }
    }
}

/// The periodic tasks of one loop as they are now.
#[derive(Clone, Debug)]
pub(super) struct LaneTasks {
    pub(super) tasks: Vec<Task>,
    pub(super) plan: Plan,
}

/// All tasks.
#[derive(Debug)]
pub(super) struct AllTasks {
    pub(super) entries: Entries,
    pub(super) lanes: Vec<LaneTasks>,
    /// Those with threads of their own that came while it ran.
    pub(super) late: Vec<LateTask>,
}

/// What holds for all changes.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) thread: RtThread,
    pub(super) overload: bool,
    pub(super) most: f64,
    pub(super) tick: Option<Duration>,
    /// The calendar, and how long before each unit nothing else runs.
    pub(super) calendar: Option<(Arc<CalendarPlan>, Span)>,
}

impl Rules {
    /// The builder of one loop's table.
    pub(super) fn periodic(&self, tasks: impl IntoIterator<Item = Task>) -> Periodic {
        let all = tasks.into_iter().fold(Periodic::new(), Periodic::task);
        let all = match self.tick {
            Some(tick) => all.tick_ns(ns(tick)),
            None => all,
        };
        if self.overload { all.allow_overload() } else { all }
    }
}

/// What all share.
#[derive(Debug)]
#[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
pub(super) struct Shared<'env> {
    /// Tells the executives of this process apart.
    number: u64,
    pub(super) ending: Arc<Ending>,
    pub(super) lanes: Vec<LaneShared<'env>>,
    /// Of the tasks in threads of their own that wait for themselves, or for a device; then of
    /// those that come while it runs.
    pub(super) threads: Vec<Slot<'env>>,
    pub(super) starter: Starter,
    /// What its loops, threads and processes may take of their CPUs, as it was built.
    pub(super) demands: Vec<Demand>,
    pub(super) idle: IdleCounts,
    /// Whether there is a task that may have to be cancelled.
    pub(super) cancels: AtomicBool,
    pub(super) rules: Rules,
    /// One call at a time changes the tasks.
    pub(super) changes: Mutex<()>,
    tasks: Mutex<AllTasks>,
    state: AtomicU8,
    epoch_ns: AtomicU64,
}

impl<'env> Shared<'env> {
    #[expect(clippy::disallowed_types, reason = "setup and readers; no loop waits for it")]
    pub(super) fn new(
        lanes: Vec<LaneShared<'env>>,
        threads: usize,
        rules: Rules,
        tasks: AllTasks,
        (cancels, demands): (bool, Vec<Demand>),
    ) -> Self {
        Self {
            number: EXECUTIVES.fetch_add(1, Ordering::Relaxed),
            ending: Arc::default(),
            lanes,
            threads: (0..threads + LATE_MOST).map(|at| Slot::new(at >= threads)).collect(),
            starter: Starter::default(),
            demands,
            idle: IdleCounts::default(),
            cancels: AtomicBool::new(cancels),
            rules,
            changes: Mutex::new(()),
            tasks: Mutex::new(tasks),
            state: AtomicU8::new(RunState::Built as u8),
            epoch_ns: AtomicU64::new(0),
        }
    }

    /// The id of the task of this number.
    pub(super) fn id(&self, at: usize) -> TaskId {
        TaskId { executive: self.number, at }
    }

    /// The ids of all tasks.
    pub(super) fn ids(&self) -> Vec<TaskId> {
        (0..self.tasks().entries.next()).map(|at| self.id(at)).collect()
    }

    /// The number of a task by its id; `None` for one of another executive.
    pub(super) fn at(&self, id: TaskId) -> Option<usize> {
        (id.executive == self.number).then_some(id.at)
    }

    /// The tasks as they are. Held for moments only.
    pub(super) fn tasks(&self) -> MutexGuard<'_, AllTasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks' statistics as they are now, in the order in which they were given.
    pub(super) fn stats(&self) -> Vec<Stats> {
        let entries: Vec<Entry> = self.tasks().entries.iter().cloned().collect();
        entries.iter().map(Entry::stats).collect()
    }

    /// Marks a task as removed; what it did.
    pub(super) fn removed(&self, at: usize) -> Stats {
        let entry = {
            let entries = &mut self.tasks().entries;
            entries.remove(at);
            entries[at].clone()
        };
        entry.stats()
    }

    /// What each unit of the calendar did, in the order of the frame.
    pub(super) fn units(&self) -> Vec<Stats> {
        let entries: Vec<Entry> = self.tasks().entries.iter().cloned().collect();
        let mut units: Vec<_> = entries.iter().flat_map(|entry| &entry.units).collect();
        units.sort_by_key(|(_, ready_ns, _)| *ready_ns);
        units
            .iter()
            .map(|(name, _, page)| Stats::of(name, View::open(page).ok().as_ref()))
            .collect()
    }

    /// How the watchdog ended it, if it did.
    pub(super) fn forced(&self) -> Option<Force> {
        let loops = self.lanes.iter().map(|lane| &lane.watched);
        loops.chain(self.threads.iter().map(|slot| &slot.watched)).find_map(Watched::ended)
    }

    pub(super) fn state(&self) -> RunState {
        match self.state.load(Ordering::Acquire) {
            0 => RunState::Built,
            1 => RunState::Starting,
            2 => RunState::Running,
            _ => RunState::Over,
        }
    }

    pub(super) fn enter(&self, stage: RunState) {
        self.state.store(stage as u8, Ordering::Release);
    }

    /// Release 0 of phase 0 is at this instant; all run.
    pub(super) fn begin(&self, epoch: Instant) {
        self.epoch_ns.store(epoch.as_ns(), Ordering::Relaxed);
        self.enter(RunState::Running);
    }

    /// The instant of release 0 of phase 0.
    pub(super) fn epoch(&self) -> Instant {
        Instant::from_ns(self.epoch_ns.load(Ordering::Relaxed))
    }
}

/// Ends what an executive shares when it is dropped: a change that waits is refused, and all
/// handles say that it is over.
#[derive(Debug)]
pub(super) struct Closing<'env>(pub(super) Arc<Shared<'env>>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.ending.stop();
        self.0.enter(RunState::Over);
        self.0.lanes.iter().for_each(|lane| lane.handover.close());
    }
}

/// Removed tasks that are kept: 34 KiB each.
pub(super) const KEPT: usize = 64;

/// A task that is or was there.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// None for a process whose memory is not there yet.
    pub(super) stats: Option<StatsPage>,
    pub(super) removed: bool,
    /// Of a calendar's task: its units' names, when they are ready in the frame, ns, and the page
    /// of each; that of an only one is the task's.
    pub(super) units: Vec<(String, u64, Words)>,
}

impl Entry {
    /// A task of this name, without statistics yet.
    pub(super) fn new(name: String) -> Self {
        Self { name, stats: None, removed: false, units: Vec::new() }
    }

    pub(super) fn stats(&self) -> Stats {
        let view = self.stats.as_ref().and_then(StatsPage::view);
        Stats::of(&self.name, view.as_ref())
    }
}

/// All tasks that are known.
#[derive(Debug)]
pub(super) struct Entries {
    by_number: BTreeMap<usize, Entry>,
    next: usize,
    removed: VecDeque<usize>,
}

impl Entries {
    /// Those that an executive begins with, numbered in their order.
    pub(super) fn new(entries: Vec<Entry>) -> Self {
        let next = entries.len();
        let by_number = entries.into_iter().enumerate().collect();
        Self { by_number, next, removed: VecDeque::new() }
    }

    /// One more, and its number.
    pub(super) fn push(&mut self, entry: Entry) -> usize {
        let number = self.next;
        self.next += 1;
        self.by_number.insert(number, entry);
        number
    }

    /// The number that the next one gets.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    /// Takes back one that never ran.
    pub(super) fn withdraw(&mut self, number: usize) {
        self.by_number.remove(&number);
    }

    /// Marks one as removed, and forgets the one that was removed [`KEPT`] before it.
    pub(super) fn remove(&mut self, number: usize) {
        self[number].removed = true;
        self.removed.push_back(number);
        if self.removed.len() > KEPT
            && let Some(oldest) = self.removed.pop_front()
        {
            self.by_number.remove(&oldest);
        }
    }

    /// The one of this number, unless it is forgotten.
    pub(super) fn get(&self, number: usize) -> Option<&Entry> {
        self.by_number.get(&number)
    }

    /// All, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.by_number.values()
    }
}

impl Index<usize> for Entries {
    type Output = Entry;

    /// # Panics
    /// Where there is none of this number.
    fn index(&self, number: usize) -> &Entry {
        &self.by_number[&number]
    }
}

impl IndexMut<usize> for Entries {
    fn index_mut(&mut self, number: usize) -> &mut Entry {
        self.by_number.get_mut(&number).expect("the number of a task that is there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_were_removed_stay_and_no_number_comes_twice() {
        let mut entries = Entries::new(vec![Entry::new("a".to_owned())]);
        for round in 0..3 * KEPT {
            let number = entries.push(Entry::new(format!("{round}")));
            assert_eq!(number, round + 1);
            entries.remove(number);
            assert!(entries.get(number).is_some_and(|entry| entry.removed));
        }
        assert_eq!(entries.iter().count(), 1 + KEPT);
        assert!(entries.get(0).is_some() && entries.get(1).is_none());
        assert_eq!(entries.next(), 3 * KEPT + 1);
        let never = entries.push(Entry::new("never ran".to_owned()));
        entries.withdraw(never);
        assert!(entries.get(never).is_none());
    }
}
