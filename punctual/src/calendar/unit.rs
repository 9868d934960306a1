//! One elemental unit of a calendar, as its owner describes it.
//!
//! For the builder. Plain data with defaults; checks nothing.

use std::time::Duration;

use punctual_core::table::OnOverrun;

use crate::task::ns;

/// Where a unit's place begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// This many nanoseconds after the start of the frame.
    At(u64),
    /// This many nanoseconds after the end of the named unit's place.
    After(String, u64),
}

/// An elemental unit: a place in the frame, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub(super) name: String,
    pub(super) task: Option<String>,
    pub(super) place: Place,
    pub(super) budget_ns: u64,
    pub(super) deadline_ns: Option<u64>,
    pub(super) start_ns: Option<u64>,
    pub(super) policy: Option<OnOverrun>,
}

impl Unit {
    /// A unit of a name that no other has, ready at the start of the frame, of a task of the same
    /// name, with its budget as deadline and [`OnOverrun::Skip`]. The budget is its longest
    /// execution, above 0.
    ///
    /// # Real-time: setup only
    pub fn new(name: impl Into<String>, budget: Duration) -> Self {
        Self {
            name: name.into(),
            task: None,
            place: Place::At(0),
            budget_ns: ns(budget),
            deadline_ns: None,
            start_ns: None,
            policy: None,
        }
    }

    /// Sets when it is ready, after the start of the frame.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn at(mut self, offset: Duration) -> Self {
        self.place = Place::At(ns(offset));
        self
    }

    /// Sets it to be ready this long after the place of another unit ends: for orders such as read,
    /// compute, write.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn after(mut self, unit: impl Into<String>, gap: Duration) -> Self {
        self.place = Place::After(unit.into(), ns(gap));
        self
    }

    /// Makes it a unit of the task of this name, which may have several in a frame: one that breaks
    /// off goes on in the next.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn of(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Sets the time from when it is ready to its latest finish: at least the budget, at most the
    /// frame. A unit that could not start by then is missed.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline_ns = Some(ns(deadline));
        self
    }

    /// Sets how late it may start without being counted as late.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn start_within(mut self, limit: Duration) -> Self {
        self.start_ns = Some(ns(limit));
        self
    }

    /// Sets what a time-out does to its task: [`OnOverrun::Skip`], [`OnOverrun::Terminate`] or
    /// [`OnOverrun::Stop`]. All units of a task that say so say the same.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn on_overrun(mut self, then: OnOverrun) -> Self {
        self.policy = Some(then);
        self
    }

    /// Whether its task is to be terminated at a time-out.
    pub(crate) fn terminates(&self) -> bool {
        self.policy == Some(OnOverrun::Terminate)
    }

    /// The name of the task that it belongs to.
    pub(crate) fn task(&self) -> &str {
        self.task.as_deref().unwrap_or(&self.name)
    }
}
