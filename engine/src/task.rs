//! One task of an executive in the settings of its owner: its releases, its limits, its place.
//!
//! For builders. Plain data with defaults; checks nothing.

use std::time::Duration;

use punctual_core::releases::Releases;
use punctual_core::table::OnOverrun;
use punctual_core::time::{Instant, Period};

use crate::duration::ns;
use crate::rt_thread::RtThread;

/// The place of a task's releases within its period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offset {
    /// The place where it meets the fewest others.
    #[default]
    Balanced,
    /// This many nanoseconds after the epoch, below the period.
    At(u64),
    /// This many nanoseconds after the release of the named task, which has the same period: for
    /// chains from sensor to actuator.
    After(String, u64),
}

/// The place where a task's body runs: in an executive's loop, or in a thread of its own.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Placement(Place);

/// The place where a task's body runs, for the code that starts it, which must know each: these
/// three are all. See [`Placement`]'s constructors.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// In the executive's own thread, or the CPU's that it is packed on.
    Inline,
    /// In the executive's thread on this CPU.
    Cpu(u32),
    /// In a thread of its own.
    Thread(RtThread),
}

impl Placement {
    /// In the executive's own thread, to its end: on one of its CPUs where it was given several.
    /// One that only another task names ([`Placement::cpu`]) is not among them. The default.
    ///
    /// # Real-time: setup only
    pub const fn inline() -> Self {
        Self(Place::Inline)
    }

    /// In a thread of the executive's on this CPU, to its end, with the other tasks there.
    ///
    /// # Real-time: setup only
    pub const fn cpu(cpu: u32) -> Self {
        Self(Place::Cpu(cpu))
    }

    /// In a thread of its own, which the executive releases by a wake-up of the kernel (tens of
    /// microseconds, where a task inline takes a function call): for a task that may take longer
    /// than the most urgent one can wait. The kernel preempts it by priority, which is below the
    /// executive's: that of `thread` where it names one ([`RtThread::fifo`]), otherwise one that
    /// follows the tasks' order. Of `thread` its CPU and policy count, and its wait where the task
    /// waits for itself: with [`OnOverrun::Delay`], and where it comes while the executive runs.
    ///
    /// # Real-time: setup only
    pub const fn thread(thread: RtThread) -> Self {
        Self(Place::Thread(thread))
    }

    /// The place itself.
    ///
    /// # Real-time: setup only
    pub const fn place(&self) -> &Place {
        &self.0
    }

    /// The CPU that a thread of its own is pinned to; `None` for any, and in a loop.
    ///
    /// # Real-time: setup only
    pub const fn thread_cpu(&self) -> Option<u32> {
        match &self.0 {
            Place::Thread(thread) => thread.pinned_to(),
            Place::Inline | Place::Cpu(_) => None,
        }
    }
}

/// A task: its name, its releases, its limits, its policy for an overrun, and its placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    name: String,
    period: Period,
    phase: Offset,
    is_remote: bool,
    priority: Option<u8>,
    budget_ns: Option<u64>,
    deadline_ns: Option<u64>,
    start_ns: Option<u64>,
    policy: OnOverrun,
    placement: Placement,
}

/// The period of a task that was given none.
const NO_PERIOD: Period = match Period::from_ns(Period::MAX_NS) {
    Some(period) => period,
    None => panic!(),
};

impl Task {
    /// A task that is released once a period, of a name that no other has: with a phase at which it
    /// meets the fewest others, rate-monotonic priority, no budget, the period as deadline, and
    /// [`OnOverrun::Skip`].
    ///
    /// # Real-time: setup only
    pub fn every(name: impl Into<String>, period: Period) -> Self {
        Self {
            name: name.into(),
            period,
            phase: Offset::Balanced,
            is_remote: false,
            priority: None,
            budget_ns: None,
            deadline_ns: None,
            start_ns: None,
            policy: OnOverrun::Skip,
            placement: Placement::inline(),
        }
    }

    /// A task without a period: one that a device triggers. The `dt` of its first cycle is 0, and
    /// `next` of every cycle lies 146 years ahead: nothing of it is late.
    ///
    /// # Real-time: setup only
    pub fn named(name: impl Into<String>) -> Self {
        Self::every(name, NO_PERIOD)
    }

    /// Returns true where it was given a period.
    ///
    /// # Real-time: setup only
    pub fn has_period(&self) -> bool {
        self.period != NO_PERIOD
    }

    /// Sets its releases to lie this long after the epoch, below the period.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn at(self, offset: Duration) -> Self {
        Self { phase: Offset::At(ns(offset)), ..self }
    }

    /// Sets its releases to lie this long after those of the named task, which has the same period:
    /// for chains from sensor to actuator.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn after(self, task: impl Into<String>, offset: Duration) -> Self {
        Self { phase: Offset::After(task.into(), ns(offset)), ..self }
    }

    /// Sets its longest execution: above 0, at most the period. It is what the tasks of a CPU are
    /// checked and placed by, and what longer cycles are counted against (`over_budget`); a task
    /// that exceeds it is not stopped.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn budget(self, budget: Duration) -> Self {
        Self { budget_ns: Some(ns(budget)), ..self }
    }

    /// Sets the time from release to the latest finish, above 0 [default: the period].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline_ns: Some(ns(deadline)), ..self }
    }

    /// Sets the latest start after its release that is not counted as late [default: none].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn start_within(self, limit: Duration) -> Self {
        Self { start_ns: Some(ns(limit)), ..self }
    }

    /// Sets the policy for when it still runs or waits at its next release [default:
    /// [`OnOverrun::Skip`]].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn on_overrun(mut self, then: OnOverrun) -> Self {
        self.policy = then;
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

    /// Sets the place where its body runs [default: [`Placement::inline`]].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn placed(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// The releases of its cycles, with release 0 of phase 0 at `epoch`.
    ///
    /// # Real-time: setup only
    pub fn releases(&self, epoch: Instant, phase_ns: u64) -> Releases {
        Releases::new(Instant::from_ns(epoch.as_ns().saturating_add(phase_ns)), self.period)
    }

    /// The task as the table of its executive has it where its body runs elsewhere: to release it
    /// is done at once, and what it does wrong is judged by what it reports.
    ///
    /// # Real-time: setup only
    pub fn remote(&self, phase_ns: u64) -> Self {
        let task = self.clone().on_overrun(OnOverrun::Skip);
        let phase = Offset::At(phase_ns);
        let (budget_ns, deadline_ns, start_ns) = (None, None, None);
        Self { phase, budget_ns, deadline_ns, start_ns, is_remote: true, ..task }
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

    /// The share of a CPU that its budget takes; 0 without a budget.
    ///
    /// # Real-time: setup only
    pub fn load(&self) -> f64 {
        self.budget_ns.unwrap_or(0) as f64 / self.period.as_ns_f64()
    }

    /// Its priority, where it was given one.
    ///
    /// # Real-time: setup only
    pub fn named_priority(&self) -> Option<u8> {
        self.priority
    }

    /// The place of its releases within its period.
    ///
    /// # Real-time: setup only
    pub fn offset(&self) -> &Offset {
        &self.phase
    }

    /// The place where its body runs.
    ///
    /// # Real-time: setup only
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Returns true where its body runs elsewhere: see [`Task::remote`].
    ///
    /// # Real-time: setup only
    pub fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Its longest execution, ns; `None` where none was set.
    ///
    /// # Real-time: setup only
    pub fn budget_ns(&self) -> Option<u64> {
        self.budget_ns
    }

    /// The time from release to the latest finish, ns; `None` for the period.
    ///
    /// # Real-time: setup only
    pub fn deadline_ns(&self) -> Option<u64> {
        self.deadline_ns
    }

    /// The latest start after its release that is not counted as late, ns; `None` where none was
    /// set.
    ///
    /// # Real-time: setup only
    pub fn start_ns(&self) -> Option<u64> {
        self.start_ns
    }

    /// Its policy for an overrun.
    ///
    /// # Real-time: setup only
    pub fn overrun_policy(&self) -> OnOverrun {
        self.policy
    }
}
