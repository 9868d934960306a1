//! The tasks of an executive as they are: what was added, what was built of it, what runs.
//!
//! For setup and readers, under a lock that no loop ever takes.

use std::sync::Arc;

use punctual::periodic::{BuildError, OnOverrun, Period, Periodic, Plan, Successor, Task};

use super::live::Live;
use crate::border::Failure;
use crate::room::Room;
use crate::task::Callback;

/// All that is known of an executive's tasks.
#[derive(Default)]
pub(crate) struct Book {
    /// By index; none for one that was removed.
    pub(super) entries: Vec<Option<Entry>>,
    pub(super) overload: bool,
    /// Once it is built: of the entries as they are.
    pub(super) built: Option<Built>,
    /// The run that is under way.
    pub(super) live: Option<Arc<Live>>,
    /// Whether a change waits for the loop of that run.
    pub(super) changing: bool,
    /// Whether it runs beside a calendar, where tasks cannot change.
    pub(super) lent: bool,
}

/// One task.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(super) name: String,
    pub(super) task: Task,
    pub(super) callback: Callback,
    /// Where its page is.
    pub(super) room: Arc<Room>,
}

/// What the entries make together.
#[derive(Clone)]
pub(crate) struct Built {
    pub(crate) plan: Plan,
    /// The rank of each entry.
    pub(super) ranks: Vec<Option<usize>>,
    /// By rank.
    pub(crate) callbacks: Vec<Callback>,
    /// By rank.
    pub(crate) rooms: Vec<Arc<Room>>,
    /// The shortest period; none without a task.
    pub(crate) shortest: Option<Period>,
    /// Whether there is a task that is to be terminated.
    pub(crate) terminates: bool,
}

/// What cannot be built.
pub(crate) fn failure(why: &BuildError) -> Failure {
    let errno = match why {
        BuildError::SameName(_) => libc::EEXIST,
        BuildError::TooMany(_) => libc::E2BIG,
        BuildError::Unknown(..) => libc::ENOENT,
        BuildError::Overload(_) => libc::ENOSPC,
        _ => libc::EINVAL,
    };
    Failure::new(errno, why.to_string())
}

impl Book {
    /// What was built.
    pub(super) fn built(&self) -> Result<&Built, Failure> {
        self.built.as_ref().ok_or_else(|| Failure::invalid("the executive is not built yet"))
    }

    /// A task.
    pub(super) fn entry(&self, task: u32) -> Result<&Entry, Failure> {
        let entry = self.entries.get(task as usize).and_then(Option::as_ref);
        entry.ok_or(Failure::bare(libc::ENOENT))
    }

    /// The rank of a task.
    pub(super) fn rank(&self, task: u32) -> Result<usize, Failure> {
        let rank = self.built()?.ranks.get(task as usize).copied().flatten();
        rank.ok_or(Failure::bare(libc::ENOENT))
    }
}

impl Entry {
    /// A task whose page is still empty.
    pub(super) fn new(name: String, task: Task, callback: Callback) -> Self {
        Self { name, task, callback, room: Room::new() }
    }
}

/// The builder of these tasks.
fn periodic(entries: &[Option<Entry>], overload: bool) -> Periodic {
    let tasks = entries.iter().flatten().map(|entry| entry.task.clone());
    let periodic = tasks.fold(Periodic::new(), Periodic::task);
    if overload { periodic.allow_overload() } else { periodic }
}

impl Built {
    /// What these tasks make for the first time.
    pub(super) fn of(entries: &[Option<Entry>], overload: bool) -> Result<Self, Failure> {
        if entries.iter().flatten().next().is_none() {
            return Err(Failure::invalid("an executive without tasks"));
        }
        let plan = periodic(entries, overload).build().map_err(|why| failure(&why))?;
        Ok(Self::with(plan, entries))
    }

    /// What they make after this: who goes on keeps its phase; and from which rank each goes on.
    pub(super) fn then(
        &self,
        entries: &[Option<Entry>],
        overload: bool,
    ) -> Result<(Self, Vec<Option<u32>>), Failure> {
        let next = periodic(entries, overload).build_after(&self.plan);
        let Successor { plan, ranks } = next.map_err(|why| failure(&why))?;
        Ok((Self::with(plan, entries), ranks))
    }

    fn with(plan: Plan, entries: &[Option<Entry>]) -> Self {
        // Names are unique in a plan.
        let by_name: std::collections::HashMap<&str, usize> =
            (0..plan.tasks()).map(|rank| (plan.name(rank), rank)).collect();
        let rank = |entry: &Entry| by_name.get(entry.name.as_str()).copied();
        let ranks: Vec<Option<usize>> =
            entries.iter().map(|entry| entry.as_ref().and_then(rank)).collect();
        let mut by_rank: Vec<(usize, &Entry)> =
            entries.iter().flatten().filter_map(|entry| Some((rank(entry)?, entry))).collect();
        by_rank.sort_by_key(|(rank, _)| *rank);
        let tasks = || entries.iter().flatten().map(|entry| &entry.task);
        Self {
            callbacks: by_rank.iter().map(|(_, entry)| entry.callback).collect(),
            rooms: by_rank.iter().map(|(_, entry)| Arc::clone(&entry.room)).collect(),
            ranks,
            shortest: tasks().map(Task::period).min(),
            terminates: tasks().any(|task| task.policy_of() == OnOverrun::Terminate),
            plan,
        }
    }
}
