//! One run of an executive, as its loops have it: the state that handles see, and the start of all
//! threads.

use punctual_core::clock::Clock;
use punctual_core::cycle::Ended;
use punctual_core::time::Instant;
use punctual_engine::counting::CycleCounting;
use punctual_engine::release_span::ReleaseSpan;

use super::shared::Shared;
use super::startup::{Startup, pause};

/// One run of an executive.
pub(super) struct Run<'r, 'env, C> {
    shared: &'r Shared<'env>,
    startup: Startup<C>,
    /// True where tasks run elsewhere, which have until the end of the run.
    waits_for_end: bool,
}

impl<'r, 'env, C: Clock + Clone + Send> Run<'r, 'env, C> {
    /// With the state that handles see; where `waits_for_end` loops that are done wait for the end
    /// of all.
    pub(super) fn new(shared: &'r Shared<'env>, startup: Startup<C>, waits_for_end: bool) -> Self {
        Self { shared, startup, waits_for_end }
    }

    /// The state that handles see.
    pub(super) fn shared(&self) -> &'r Shared<'env> {
        self.shared
    }

    /// The start of all threads.
    pub(super) fn startup(&self) -> &Startup<C> {
        &self.startup
    }

    /// The start of all threads, once they have ended.
    pub(super) fn into_startup(self) -> Startup<C> {
        self.startup
    }

    /// The observer of a task's cycles; `None` for a process.
    pub(super) fn counting(&self, entry: usize, epoch: Instant) -> Option<CycleCounting> {
        self.shared.counting(entry, epoch, self.startup.ring(entry))
    }

    /// A loop has come to its end: where tasks run elsewhere they have until the end of all.
    pub(super) fn rest(&self, ended: &Ended, span: &ReleaseSpan, clock: &mut C) {
        while (self.waits_for_end || self.shared.has_added())
            && *ended == Ended::Finished
            && clock.now() < span.end
            && !self.shared.ending.stopped()
        {
            pause();
        }
    }
}
