//! What a `punctual_periodic` is: tasks while they are added, then a plan with a page a task.
//!
//! Setup and readers; the run is `run.rs`'s.

#[expect(
    clippy::disallowed_types,
    reason = "filled by build, a call of setup; then only read"
)]
use std::sync::OnceLock;

use punctual::core::page::View;
use punctual::lone::Remote;
use punctual::periodic::{BuildError, Periodic, Plan, Policy, Rate, Task};

use crate::border::{Exclusive, Failure};
use crate::run::{PageWords, Told, empty_page};
use crate::task::Callback;
use crate::wait_info::WaitInfo;

/// An executive.
#[derive(Default)]
#[expect(clippy::disallowed_types, reason = "filled by build, a call of setup; then only read")]
pub(crate) struct Executive {
    pub(super) setup: Exclusive<Setup>,
    built: OnceLock<Built>,
    pub(crate) remote: Remote,
}

/// What one call at a time may touch.
#[derive(Default)]
pub(super) struct Setup {
    tasks: Vec<(String, Task, Callback)>,
    overload: bool,
    /// Of the last run.
    pub(super) told: Told,
}

/// What is fixed once it is built.
pub(crate) struct Built {
    pub(crate) plan: Plan,
    /// The rank of each task, in the order of adding.
    ranks: Vec<usize>,
    /// By rank.
    pub(crate) callbacks: Vec<Callback>,
    /// The words of a page for each rank.
    pub(crate) pages: Vec<PageWords>,
    /// The shortest period.
    pub(crate) shortest: Rate,
    /// Whether there is a task that is to be terminated.
    pub(crate) terminates: bool,
}

impl Executive {
    /// One more task; its index.
    pub(super) fn add(&self, name: String, task: Task, callback: Callback) -> Result<u32, Failure> {
        self.setup.with(|setup| {
            self.not_yet_built()?;
            let index = u32::try_from(setup.tasks.len())
                .map_err(|_| Failure::new(libc::E2BIG, "too many tasks"))?;
            setup.tasks.push((name, task, callback));
            Ok(index)
        })
    }

    pub(super) fn allow_overload(&self) -> Result<(), Failure> {
        self.setup.with(|setup| {
            self.not_yet_built()?;
            setup.overload = true;
            Ok(())
        })
    }

    fn not_yet_built(&self) -> Result<(), Failure> {
        match self.built.get() {
            None => Ok(()),
            Some(_) => Err(Failure::new(libc::EBUSY, "the executive is built already")),
        }
    }

    /// Checks all tasks and lays them out.
    pub(super) fn build(&self) -> Result<(), Failure> {
        self.setup.with(|setup| {
            self.not_yet_built()?;
            let built = Built::of(setup)?;
            // Nobody else is in here.
            let _first = self.built.set(built);
            Ok(())
        })
    }

    /// What was built.
    pub(crate) fn built(&self) -> Result<&Built, Failure> {
        self.built.get().ok_or_else(|| Failure::invalid("the executive is not built yet"))
    }

    /// What was built, for a run that is not its own; EBUSY while it runs.
    pub(crate) fn lend<R>(
        &self,
        run: impl FnOnce(&Built) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        self.setup.with(|_| run(self.built()?))
    }

    pub(super) fn wait_info(&self) -> Result<Option<WaitInfo>, Failure> {
        self.setup.with(|setup| Ok(setup.told.info))
    }

    pub(super) fn refused(&self) -> Result<String, Failure> {
        self.setup.with(|setup| Ok(setup.told.refused.clone()))
    }

    /// EBUSY while it runs.
    pub(super) fn idle(&self) -> Result<(), Failure> {
        self.setup.with(|_| Ok(()))
    }
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

impl Built {
    fn of(setup: &Setup) -> Result<Self, Failure> {
        let shortest = setup.tasks.iter().map(|(_, task, _)| task.rate()).min();
        let shortest = shortest.ok_or_else(|| Failure::invalid("an executive without tasks"))?;
        let mut periodic = Periodic::new();
        if setup.overload {
            periodic = periodic.allow_overload();
        }
        for (_, task, _) in &setup.tasks {
            periodic = periodic.task(task.clone());
        }
        let plan = periodic.build().map_err(|why| failure(&why))?;
        // Names are unique in a plan.
        let by_name: std::collections::HashMap<&str, usize> =
            (0..plan.tasks()).map(|rank| (plan.name(rank), rank)).collect();
        let mut ranks = Vec::with_capacity(setup.tasks.len());
        let mut callbacks: Vec<Option<Callback>> = vec![None; plan.tasks()];
        for (name, _, callback) in &setup.tasks {
            let rank = by_name.get(name.as_str()).copied().unwrap_or(0);
            callbacks[rank] = Some(*callback);
            ranks.push(rank);
        }
        let callbacks = callbacks.into_iter().flatten().collect();
        let pages = (0..plan.tasks()).map(|_| empty_page()).collect();
        let terminates =
            setup.tasks.iter().any(|(_, task, _)| task.policy_of() == Policy::Terminate);
        Ok(Self { plan, ranks, callbacks, pages, shortest, terminates })
    }

    /// The rank of a task.
    pub(super) fn rank(&self, task: u32) -> Result<usize, Failure> {
        self.ranks.get(task as usize).copied().ok_or(Failure::bare(libc::ENOENT))
    }

    /// The page of a task; `None` in the moment in which a run empties it.
    pub(super) fn view(&self, task: u32) -> Result<Option<View<'_>>, Failure> {
        let words = &self.pages[self.rank(task)?];
        Ok(View::open(words).ok())
    }
}
