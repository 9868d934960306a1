//! What the thread of a task that the executive releases shares with its server and its monitor.
//!
//! Made before the threads start; in the loops nothing but atomic numbers of it is touched.

use std::sync::atomic::AtomicU64;

use punctual_core::block::{TaskGate, TaskServer, Terms, words};
use punctual_core::time::Instant;
use punctual_os::futex::Scope;

use super::pace::Pace;
use super::thread_task::ThreadTask;
use crate::counting::Counting;
use crate::monitor::{Guarded, RunawayRule};
use crate::remote::{RemoteCounts, RemoteTask};

/// The only thread that is ever released for a task.
const ONLY: u64 = 1;

/// What the thread of a released task shares with its server and its monitor.
#[derive(Debug, Default)]
pub(super) struct Released {
    pub(super) memory: Vec<AtomicU64>,
    pub(super) door: TaskGate,
    pub(super) counts: RemoteCounts,
    pub(super) guarded: Guarded,
}

impl Released {
    pub(super) fn new() -> Self {
        let memory = (0..words(0)).map(|_| AtomicU64::new(0)).collect();
        Self { memory, ..Self::default() }
    }

    /// Who releases it.
    pub(super) fn post(
        &self,
        of: &ThreadTask,
        epoch: Instant,
        kept: Counting,
    ) -> Option<RemoteTask<'_, Counting>> {
        let Pace::Remote { phase_ns, burst, on_overrun, limits, .. } = of.pace else { return None };
        let terms = Terms { releases: of.task.releases(epoch, phase_ns), burst, output_words: 0 };
        Some(RemoteTask {
            server: TaskServer::new(&self.memory, terms)?,
            kept,
            door: &self.door,
            counts: &self.counts,
            limits,
            on_overrun,
            scope: Scope::Process,
        })
    }

    /// As its monitor sees it.
    pub(super) fn guard(&self, of: &ThreadTask, epoch: Instant) -> Option<RunawayRule<'_>> {
        let Pace::Remote { phase_ns, grace, .. } = of.pace else { return None };
        let releases = of.task.releases(epoch, phase_ns);
        Some(RunawayRule::new(&self.memory, releases, grace, of.policy, &self.guarded))
    }

    /// Has it released from now on.
    pub(super) fn open(&self) {
        self.door.open(ONLY);
    }

    /// How often it lost its real-time policy because it ran on.
    pub(super) fn demotions(&self) -> u64 {
        self.guarded.demotions()
    }
}
