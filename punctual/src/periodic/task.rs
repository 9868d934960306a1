//! One task of a periodic executive, as its owner describes it.
//!
//! For the builder. Plain data with defaults; checks nothing.

use punctual_core::table::OnOverrun;

use super::Period;

/// Where a task's releases lie within its period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Where it meets the fewest others.
    #[default]
    Balanced,
    /// This many nanoseconds after the epoch, below the period.
    At(u64),
    /// This many nanoseconds after the release of the named task, which has the same period: for
    /// chains from sensor to actuator.
    After(String, u64),
}

/// A task: what is run, when, and what may go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub(crate) name: String,
    pub(crate) period: Period,
    pub(crate) phase: Phase,
    pub(crate) priority: Option<u8>,
    pub(crate) budget_ns: Option<u64>,
    pub(crate) deadline_ns: Option<u64>,
    pub(crate) start_ns: Option<u64>,
    pub(crate) policy: OnOverrun,
}

impl Task {
    /// A task of a name that no other has, with a balanced phase, rate-monotonic priority, no
    /// budget, the period as deadline, and [`OnOverrun::Skip`].
    ///
    /// # Real-time: setup only
    pub fn new(name: impl Into<String>, period: impl Into<Period>) -> Self {
        Self {
            name: name.into(),
            period: period.into(),
            phase: Phase::Balanced,
            priority: None,
            budget_ns: None,
            deadline_ns: None,
            start_ns: None,
            policy: OnOverrun::Skip,
        }
    }

    /// Its name.
    ///
    /// # Real-time: setup only
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its period.
    ///
    /// # Real-time: setup only
    pub fn period(&self) -> Period {
        self.period
    }

    /// What an overrun does.
    ///
    /// # Real-time: setup only
    pub fn policy_of(&self) -> OnOverrun {
        self.policy
    }

    /// Sets where its releases lie.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }

    /// Sets its priority: the higher number runs first, as the kernel counts. Either all tasks of
    /// an executive have one, or none, and then the shorter period runs first (rate-monotonic).
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets its longest execution, ns: at least 1, at most the period.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn budget_ns(mut self, budget_ns: u64) -> Self {
        self.budget_ns = Some(budget_ns);
        self
    }

    /// Sets the time from release to the latest finish, ns, at least 1.
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

    /// Sets what an overrun does.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn policy(mut self, policy: OnOverrun) -> Self {
        self.policy = policy;
        self
    }
}
