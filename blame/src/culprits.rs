//! The threads that a cause names: how many, of which program, and whose that is.
//!
//! Of fixed size: of more threads those that made the latest wakes late are known, and that there
//! are more.

use std::collections::BTreeMap;

use punctual_trace::event::{ShortName, TaskName, Tid};
use serde::{Deserialize, Serialize};

use crate::cause::{Priority, Who};
use crate::programs::{ProgramOwner, ThreadProgram};
use crate::share::per_cent;

/// Threads of one cause that are kept apart.
const ROOM: usize = 64;
/// Times that are kept apart, by rank and thread: 24 bytes each.
const TIMES: usize = 512;
/// Names of this project's threads that run loops.
const LOOPS: [&[u8]; 2] = [b"punctual-loop", b"punctual-price"];
/// The name of the thread that reads events.
pub(crate) const RECORDER: &[u8] = b"punctual-trace";

/// A thread that a cause names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Culprit {
    /// The thread, as it was seen first.
    pub task: TaskName,
    /// Its program, where that is known.
    pub program: Option<ThreadProgram>,
}

/// The task of a thread that is the measurement's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnThread {
    /// A loop.
    Loop,
    /// It reads events.
    Recorder,
    /// Any other: its watchdog, its coordinator, what writes samples.
    Other,
}

impl OwnThread {
    /// The task of a thread with this name, which the project gave it.
    pub(crate) fn named(name: ShortName) -> Self {
        let name = name.as_bytes();
        match name {
            RECORDER => Self::Recorder,
            _ if LOOPS.contains(&name) => Self::Loop,
            _ => Self::Other,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Loop => "another loop of this measurement",
            Self::Recorder => "the recording itself",
            Self::Other => "a thread of this measurement",
        }
    }
}

/// A thread of this owner in words.
pub(crate) fn who(task: TaskName, owner: ProgramOwner) -> String {
    match owner {
        ProgramOwner::Stranger => Who(task).to_string(),
        ProgramOwner::Load => format!("the load {}", Who(task)),
        ProgramOwner::Measurement => {
            let (name, priority) = (task.name, Priority(task.kernel_priority));
            let number = if task.tid == 0 { String::new() } else { format!(", {}", task.tid) };
            format!("{} ({name}, {priority}{number})", OwnThread::named(name).words())
        }
    }
}

/// A thread with what ranks it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Seen<K> {
    culprit: Culprit,
    latest: K,
}

/// Threads, each with the latest of its wakes by `K`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CulpritBook<K> {
    seen: Vec<Seen<K>>,
    is_full: bool,
    /// The time of each in wakes of each rank, ns; those of the least rank make way.
    times: BTreeMap<(K, Tid), u64>,
}

impl<K> Default for CulpritBook<K> {
    fn default() -> Self {
        Self { seen: Vec::new(), is_full: false, times: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> CulpritBook<K> {
    /// A thread had a part in a wake of this rank, of so many ns.
    pub(crate) fn add(&mut self, culprit: Culprit, rank: K, time_ns: u64) {
        let sum_ns = self.times.entry((rank, culprit.task.tid)).or_default();
        *sum_ns = sum_ns.saturating_add(time_ns);
        if self.times.len() > TIMES {
            self.times.pop_first();
        }
        let is_it = |seen: &&mut Seen<K>| seen.culprit.task.tid == culprit.task.tid;
        if let Some(seen) = self.seen.iter_mut().find(is_it) {
            seen.latest = seen.latest.max(rank);
            seen.culprit.program = seen.culprit.program.or(culprit.program);
            return;
        }
        if self.seen.len() < ROOM {
            self.seen.push(Seen { culprit, latest: rank });
            return;
        }
        self.is_full = true;
        let least = self.seen.iter_mut().min_by_key(|seen| seen.latest);
        if let Some(least) = least.filter(|least| least.latest < rank) {
            *least = Seen { culprit, latest: rank };
        }
    }

    /// The threads of wakes whose rank `is_wanted`.
    pub(crate) fn of(&self, is_wanted: impl Fn(K) -> bool) -> Culprits {
        let mut culprits = Culprits::default();
        for seen in self.seen.iter().filter(|seen| is_wanted(seen.latest)) {
            let tid = seen.culprit.task.tid;
            let is_its =
                |((rank, thread), _): &(&(K, Tid), &u64)| *thread == tid && is_wanted(*rank);
            let times = self.times.iter().filter(is_its).map(|(_, time_ns)| *time_ns);
            culprits.add(seen.culprit, times.fold(0, u64::saturating_add));
        }
        culprits.is_more = self.is_full && culprits.threads.len() == ROOM;
        culprits
    }
}

/// The threads behind a row, each with its time, ns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Culprits {
    threads: Vec<(Culprit, u64)>,
    is_more: bool,
}

/// The one of several threads that took most time of their cause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LargestCulprit {
    /// The thread, as it was seen first.
    pub task: TaskName,
    /// Its share of the time of that cause, in (0, 1].
    pub share: f64,
}

impl Culprits {
    /// Those of one wake, from its threads with their times, ns.
    pub(crate) fn of_wake(threads: impl Iterator<Item = (Culprit, u64)>) -> Self {
        let mut culprits = Self::default();
        threads.for_each(|(culprit, time_ns)| culprits.add(culprit, time_ns));
        culprits
    }

    fn add(&mut self, culprit: Culprit, time_ns: u64) {
        let tid = culprit.task.tid;
        match self.threads.iter_mut().find(|(known, _)| known.task.tid == tid) {
            Some((_, sum_ns)) => *sum_ns = sum_ns.saturating_add(time_ns),
            None => self.threads.push((culprit, time_ns)),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Culprit> + '_ {
        self.threads.iter().map(|(culprit, _)| *culprit)
    }

    /// Adds those of another thread that was followed.
    pub(crate) fn merge(&mut self, with: &Self) {
        with.threads.iter().for_each(|&(culprit, time_ns)| self.add(culprit, time_ns));
        self.is_more |= with.is_more;
    }

    /// Number of threads; a lower bound where [`Self::is_more`].
    #[must_use]
    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// Returns true where there are more than were kept apart.
    #[must_use]
    pub const fn is_more(&self) -> bool {
        self.is_more
    }

    /// The only one; `None` where there are several, or none.
    #[must_use]
    pub fn only(&self) -> Option<Culprit> {
        match self.threads[..] {
            [(only, _)] if !self.is_more => Some(only),
            _ => None,
        }
    }

    /// The one of several that took most of `whole_ns`, the time of their cause; `None` where there
    /// is one alone, or that is not known.
    #[must_use]
    pub fn largest(&self, whole_ns: u64) -> Option<LargestCulprit> {
        if self.count() < 2 {
            return None;
        }
        let (largest, time_ns) = self.threads.iter().max_by_key(|(_, time_ns)| *time_ns)?;
        let share = (*time_ns as f64 / whole_ns.max(1) as f64).min(1.0);
        (*time_ns > 0).then_some(LargestCulprit { task: largest.task, share })
    }

    /// Their processes, each once, as far as they are known.
    #[must_use]
    pub fn processes(&self) -> Vec<Tid> {
        let pids = self.iter().filter_map(|thread| Some(thread.program?.pid));
        let mut pids: Vec<Tid> = pids.collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// The name of their program, where it is known.
    #[must_use]
    pub fn program(&self) -> Option<ShortName> {
        self.iter().find_map(|thread| Some(thread.program?.name))
    }

    /// The owner of their program; a stranger where that is not known.
    #[must_use]
    pub fn owner(&self) -> ProgramOwner {
        let program = self.iter().find_map(|thread| thread.program);
        program.map_or_else(ProgramOwner::default, |program| program.owner)
    }

    /// Returns true where they are the thread that reads the events of this recording, or, in a
    /// capture without owners, of the one that made it.
    #[must_use]
    pub fn are_the_recorder(&self) -> bool {
        let is_reader = |thread: Culprit| {
            let owner = thread.program.map(|program| program.owner);
            let is_named = OwnThread::named(thread.task.name) == OwnThread::Recorder;
            is_named && matches!(owner, None | Some(ProgramOwner::Measurement))
        };
        !self.threads.is_empty() && self.iter().all(is_reader)
    }

    /// Returns true where one of them has this name and priority.
    pub(crate) fn have(&self, task: TaskName) -> bool {
        let name = (task.name, task.kernel_priority);
        self.iter().any(|thread| (thread.task.name, thread.task.kernel_priority) == name)
    }

    /// The thread of a grouped cause in words: with its number where there is one alone, else with
    /// how many there are.
    pub(crate) fn words(&self, grouped: TaskName) -> String {
        self.words_with(grouped, String::new())
    }

    /// As [`Self::words`], and of several strangers the one that took most of `whole_ns`.
    pub(crate) fn headline(&self, grouped: TaskName, whole_ns: u64) -> String {
        let is_strange = self.owner() == ProgramOwner::Stranger;
        let largest = self.largest(whole_ns).filter(|_| is_strange).map(|largest| {
            let LargestCulprit { task, share } = largest;
            format!(", {} by {} {}", per_cent(share), task.name, task.tid)
        });
        self.words_with(grouped, largest.unwrap_or_default())
    }

    fn words_with(&self, grouped: TaskName, most: String) -> String {
        if let Some(Culprit { task, .. }) = self.only() {
            let priority = grouped.kernel_priority;
            return who(TaskName { kernel_priority: priority, ..task }, self.owner());
        }
        if self.count() < 2 || grouped.name.as_bytes().is_empty() {
            return who(grouped, self.owner());
        }
        let more = if self.is_more { "more than " } else { "" };
        let of_several = match self.processes().len() {
            0 | 1 => String::new(),
            // Workers of the kernel and others of one name are no more than that.
            processes if processes >= self.count() => String::new(),
            processes => format!(" of {processes} processes"),
        };
        let load = if self.owner() == ProgramOwner::Load { "the load " } else { "" };
        format!(
            "{load}{} ({}, {more}{} threads{of_several}{most})",
            grouped.name,
            Priority(grouped.kernel_priority),
            self.count()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn culprit(tid: Tid, name: &[u8], pid: Tid, owner: ProgramOwner) -> Culprit {
        let task = TaskName { tid, name: ShortName::new(name), kernel_priority: 120 };
        Culprit {
            task,
            program: Some(ThreadProgram { pid, name: ShortName::new(b"rustc"), owner }),
        }
    }

    const GROUPED: fn() -> TaskName =
        || TaskName { tid: 0, name: ShortName::new(b"rustc"), kernel_priority: 120 };

    fn words(culprits: &[Culprit]) -> String {
        let mut book = CulpritBook::default();
        culprits.iter().for_each(|&culprit| book.add(culprit, 1, 1));
        book.of(|_| true).words(GROUPED())
    }

    #[test]
    fn a_row_says_how_many_threads_of_how_many_processes_it_has() {
        let rustc = |tid, pid| culprit(tid, b"opt cgu.1", pid, ProgramOwner::Stranger);
        assert_eq!(words(&[rustc(5, 4)]), "opt cgu.1 (nice 0, 5)");
        let two = [rustc(5, 4), rustc(6, 4), rustc(5, 4)];
        assert_eq!(words(&two), "rustc (nice 0, 2 threads)");
        let three = [rustc(5, 4), rustc(6, 4), rustc(8, 7)];
        assert_eq!(words(&three), "rustc (nice 0, 3 threads of 2 processes)");
        assert_eq!(words(&[rustc(4, 4), rustc(7, 7)]), "rustc (nice 0, 2 threads)");
        let load = |tid| culprit(tid, b"load-cpu", 4, ProgramOwner::Load);
        assert_eq!(words(&[load(5)]), "the load load-cpu (nice 0, 5)");
    }

    #[test]
    fn threads_of_the_measurement_are_named_by_what_they_are() {
        for (name, expected) in [
            ("punctual-loop", "another loop of this measurement (punctual-loop, nice 0, 9)"),
            ("punctual-trace", "the recording itself (punctual-trace, nice 0, 9)"),
            ("punctual-watch", "a thread of this measurement (punctual-watch, nice 0, 9)"),
        ] {
            let own = culprit(9, name.as_bytes(), 8, ProgramOwner::Measurement);
            assert_eq!(words(&[own]), expected);
        }
    }

    #[test]
    fn of_too_many_those_of_the_latest_wakes_are_known() {
        let mut book = CulpritBook::default();
        for tid in 1..=100 {
            book.add(culprit(tid, b"t", 1, ProgramOwner::Stranger), tid % 10, 1);
        }
        let late = book.of(|rank| rank >= 9);
        assert_eq!((late.count(), late.is_more()), (10, false));
        let most = book.of(|_| true);
        assert_eq!((most.count(), most.is_more()), (ROOM, true));
        assert_eq!(most.words(GROUPED()), "rustc (nice 0, more than 64 threads)");
    }

    #[test]
    fn of_several_the_one_with_most_time_in_late_wakes_is_named() {
        let rustc = |tid| culprit(tid, b"opt cgu.1", 4, ProgramOwner::Stranger);
        let mut book = CulpritBook::default();
        // What the first took of wakes on time is no share of late ones.
        for (tid, rank, time_ns) in [(5, 1, 9_000), (5, 2, 100), (6, 2, 250), (6, 3, 50)] {
            book.add(rustc(tid), rank, time_ns);
        }
        let late = book.of(|rank| rank >= 2);
        assert_eq!(late.headline(GROUPED(), 400), "rustc (nice 0, 2 threads, 75 % by opt cgu.1 6)");
        assert_eq!(late.words(GROUPED()), "rustc (nice 0, 2 threads)");
        let alone = book.of(|rank| rank == 3);
        assert_eq!(
            (alone.largest(50), alone.headline(GROUPED(), 50)),
            (None, alone.words(GROUPED()))
        );
    }

    #[test]
    fn times_of_the_latest_wakes_are_kept_where_room_ends() {
        let mut book = CulpritBook::default();
        for rank in 0..2_000 {
            for tid in [5, 6] {
                book.add(culprit(tid, b"t", 1, ProgramOwner::Stranger), rank, u64::from(tid));
            }
        }
        assert_eq!(book.times.len(), TIMES);
        let largest = book.of(|rank| rank >= 1_990).largest(110).expect("two threads");
        assert_eq!((largest.task.tid, largest.share), (6, 60.0 / 110.0));
    }
}
