//! What says when a task in a thread of its own runs.
//!
//! Plain data, for the threads and for who releases them.

use punctual_core::time::Span;

use crate::monitor::hang_bound;
use crate::periodic::Plan;
use crate::remote::{Limits, RemoteOverrun};
use crate::task::Task;

/// What says when a task runs.
#[derive(Debug)]
pub(super) enum Pace {
    /// The main loop releases it, in the order of those that it releases.
    Remote { phase_ns: u64, burst: u32, on_overrun: RemoteOverrun, grace: Span, limits: Limits },
    /// It waits for its releases itself: its phase may move.
    Own(Box<Plan>),
    /// Its device does.
    Triggered,
}

impl Pace {
    /// Released by the main loop.
    pub(super) fn remote(task: &Task, phase_ns: u64, grace: Option<Span>) -> Self {
        let period = Span::from_ns(i64::try_from(task.period.as_ns()).unwrap_or(i64::MAX));
        let (burst, on_overrun) = RemoteOverrun::of(task.policy);
        let grace = match on_overrun {
            RemoteOverrun::Cancel => grace.unwrap_or(period),
            _ => hang_bound(task.period.as_ns()),
        };
        let limits = Limits::of(task);
        Pace::Remote { phase_ns, burst, on_overrun, grace, limits }
    }
}
