//! One block of a supervisor: what its loop, its guard and its supervising thread share.
//!
//! Only atomics change here; the supervising thread alone knows which process has the block.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use punctual_core::block::{Outputs, Source, TaskGate, TaskServer, Terms, restate};
use punctual_core::stats::{Page, PageKind};
use punctual_core::time::Span;
use punctual_os::futex::Scope;
use punctual_os::scheduler::SchedPolicy;

use super::super::spec::Resolved;
use super::super::spec::Spec;
use super::Memory;
use super::threads::{Others, Watch};
use crate::monitor::{Guarded, RunawayRule, hang_bound};
use crate::remote::{Limits, RemoteCounts, RemoteOverrun, RemoteTask};

/// One block.
#[derive(Debug)]
pub(super) struct TaskBlock {
    pub(super) spec: Spec,
    pub(super) terms: Terms,
    pub(super) limits: Limits,
    pub(super) on_overrun: RemoteOverrun,
    pub(super) fifo: u8,
    pub(super) cpu: Option<u32>,
    pub(super) grace: Span,
    /// A process that takes none of so many releases is silent.
    pub(super) silent_after: u64,
    pub(super) safe: Vec<u64>,
    /// What its process runs as and in.
    pub(super) resolved: Resolved,
    pub(super) memory: Memory,
    pub(super) page: Arc<Memory>,
    pub(super) door: TaskGate,
    pub(super) counts: RemoteCounts,
    pub(super) guarded: Guarded,
    pub(super) others: Others,
    /// How long a thread of its process may run under a real-time policy without blocking, µs.
    pub(super) realtime_us: u64,
}

impl TaskBlock {
    /// As the loop has it; `None` never: the memory was made for it.
    pub(super) fn post(&self) -> Option<RemoteTask<'_, Page<'_>>> {
        Some(RemoteTask {
            server: TaskServer::new(self.memory.mapping.words(), self.terms)?,
            kept: Page::new(self.page.mapping.words(), PageKind::Lateness)?,
            door: &self.door,
            counts: &self.counts,
            limits: self.limits,
            on_overrun: self.on_overrun,
            scope: Scope::Machine,
        })
    }

    /// As the guard has it.
    pub(super) fn guard(&self) -> RunawayRule<'_> {
        let words = self.memory.mapping.words();
        let policy = SchedPolicy::Fifo(self.fifo);
        RunawayRule::new(words, self.terms.releases, self.grace, policy, &self.guarded)
    }

    /// As the guard has the other threads of its process.
    pub(super) fn watch(&self) -> Watch<'_> {
        let bound = hang_bound(self.spec.task.period.as_ns());
        Watch::new(&self.others, &self.guarded, bound)
    }

    /// States the terms again, over which the task may have written, and commits the safe value:
    /// nobody else writes any more.
    pub(super) fn take_over(&self) {
        restate(self.memory.mapping.words(), &self.terms);
        if !self.safe.is_empty()
            && let Some(outputs) = Outputs::of(self.memory.mapping.words(), self.safe.len())
        {
            outputs.commit(&self.safe, Source::Safe);
        }
    }

    /// A word of the block is in memory: pays its first touch.
    pub(super) fn touch(&self) {
        let touched = self.memory.mapping.words().iter().chain(self.page.mapping.words());
        let sum = touched.step_by(512).map(|word| word.load(Ordering::Relaxed));
        std::hint::black_box(sum.fold(0u64, u64::wrapping_add));
    }
}
