//! The release of a thread: the event by which it is due to run, and when that was.

use punctual_trace::event::{CodeAddress, Tid};
use serde::{Deserialize, Serialize};

use crate::timeline::Activity;

/// Instants beyond this are none, ns: 146 years.
pub(crate) const LAST_NS: u64 = 1 << 62;

/// The event that released a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReleaseAnchor {
    /// The expiry of a timer.
    Timer {
        /// Its address.
        timer: u64,
        /// Its function; 0 where it was not seen to be programmed.
        function: CodeAddress,
    },
    /// The entry of an interrupt, for a thread without a timer of its own.
    Interrupt,
    /// Its waking by another thread, for one that no timer ever released.
    Thread {
        /// The other thread.
        waker: Tid,
    },
    /// Not recorded: it waited for its CPU already when the recording began, or its timer was
    /// programmed before that. The release is no later than what counts as it.
    Unseen,
}

impl ReleaseAnchor {
    /// Returns true where an interrupt or a thread released it, and no timer.
    pub(crate) const fn is_event_driven(self) -> bool {
        matches!(self, Self::Interrupt | Self::Thread { .. })
    }

    /// The thread that released it by waking it; `None` for a timer, an interrupt, or one that was
    /// not seen.
    pub(crate) const fn waker(self) -> Option<Tid> {
        match self {
            Self::Thread { waker } => Some(waker),
            _ => None,
        }
    }

    /// Returns true where this may be the interrupt by which another thread's waking reaches its
    /// CPU: one for a single CPU. Not every kernel records its sender.
    pub(crate) fn may_bring(self, activity: &Activity) -> bool {
        let Some(waker) = self.waker() else { return false };
        match activity {
            Activity::Ipi { sender, .. } if activity.is_for_one_cpu() => {
                sender.is_none_or(|sender| sender.tid == waker)
            }
            _ => false,
        }
    }
}

/// A release that its thread has not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Activation {
    pub(crate) anchor: ReleaseAnchor,
    /// The earliest expiry, the requested one, ns on the events' clock.
    pub(crate) release_ns: u64,
    /// The latest expiry that its timer slack allows, ns on the events' clock.
    pub(crate) latest_ns: u64,
    /// The instant at which the timer was programmed, ns; `None` where none released it.
    pub(crate) armed_ns: Option<u64>,
    /// True where all events of it are there.
    pub(crate) is_whole: bool,
}

impl Activation {
    /// One that came before what is recorded, of a thread that is ready at this instant.
    pub(crate) const fn unseen(at_ns: u64) -> Self {
        Self {
            anchor: ReleaseAnchor::Unseen,
            release_ns: at_ns,
            latest_ns: at_ns,
            armed_ns: None,
            is_whole: true,
        }
    }
}
