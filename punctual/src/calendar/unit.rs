//! One elemental unit of a calendar, as its owner describes it.
//!
//! For the builder. Plain data with defaults; checks nothing.

use punctual_core::table::OnOverrun;

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
    /// execution, ns, at least 1.
    ///
    /// # Real-time: setup only
    pub fn new(name: impl Into<String>, budget_ns: u64) -> Self {
        Self {
            name: name.into(),
            task: None,
            place: Place::At(0),
            budget_ns,
            deadline_ns: None,
            start_ns: None,
            policy: None,
        }
    }

    /// Sets when it is ready, ns after the start of the frame.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn ready_ns(mut self, ready_ns: u64) -> Self {
        self.place = Place::At(ready_ns);
        self
    }

    /// Has it ready this many nanoseconds after the place of another unit ends: for orders such as
    /// read, compute, write.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn after(mut self, unit: impl Into<String>, gap_ns: u64) -> Self {
        self.place = Place::After(unit.into(), gap_ns);
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

    /// Sets the time from when it is ready to its latest finish, ns: at least the budget, at most
    /// the frame. A unit that could not start by then is missed.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn deadline_ns(mut self, deadline_ns: u64) -> Self {
        self.deadline_ns = Some(deadline_ns);
        self
    }

    /// Sets how late it may start without being counted as late, ns.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn start_ns(mut self, start_ns: u64) -> Self {
        self.start_ns = Some(start_ns);
        self
    }

    /// Sets what a time-out does to its task: [`OnOverrun::Skip`], [`OnOverrun::Terminate`] or
    /// [`OnOverrun::Stop`]. All units of a task that say so say the same.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn policy(mut self, policy: OnOverrun) -> Self {
        self.policy = Some(policy);
        self
    }

    /// The name of the task that it belongs to.
    pub(super) fn task(&self) -> &str {
        self.task.as_deref().unwrap_or(&self.name)
    }
}
