//! The bodies behind the ranks of a run, and the pages that their cycles are kept on.
//!
//! In the loop: calls what C gave, writes atomic words, allocates nothing.

use std::ffi::c_int;

use punctual::core::dispatch::{Job, Overruns};
use punctual::core::executive::cancel::Cancelling;
use punctual::core::executive::many::{Cycle, Dispatch, Flow, Observe};
use punctual::core::time::Instant;
use punctual::handover::Beside;
use punctual::loops::Control;

use crate::room::Kept;
use crate::task::Callback;

/// Calls the body of the task that is to run.
pub(crate) struct Calls {
    /// By rank.
    pub(crate) callbacks: Vec<Callback>,
    /// What the last one said that ended the run.
    pub(crate) said: c_int,
    /// Whose stop ends this run too, at the next cycle.
    also: Option<Control>,
}

impl Calls {
    /// Nothing was said yet.
    pub(crate) fn new(callbacks: Vec<Callback>) -> Self {
        Self { callbacks, said: 0, also: None }
    }

    /// The same; a stop of that one ends this run too.
    pub(crate) fn stopped_by(self, other: &Control) -> Self {
        Self { also: Some(other.clone()), ..self }
    }
}

impl Dispatch for Calls {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        let Some(callback) = self.callbacks.get(rank) else { return Flow::Stop };
        let (flow, said) = callback.flow(cycle);
        if flow == Flow::Stop {
            self.said = said;
        }
        match &self.also {
            Some(other) if other.stopped() => Flow::Stop,
            _ => flow,
        }
    }
}

/// Writes the page of each task, and shows the watchdog that the loop gets on.
pub(crate) struct Keeps<'b> {
    /// By rank.
    pub(crate) pages: Vec<Option<Kept>>,
    pub(crate) remote: &'b Control,
}

impl Observe for Keeps<'_> {
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        if let Some(Some(kept)) = self.pages.get_mut(job.rank) {
            kept.ran(job, start, finish, overruns);
        }
        self.remote.beat();
    }
}

/// What changes with the tasks of a run: bodies and pages, by the new ranks; a task that goes on
/// has its page from its old rank.
pub(crate) struct Swap {
    pub(crate) callbacks: Vec<Callback>,
    pub(crate) pages: Vec<Option<Kept>>,
}

impl<'b> Beside<Cancelling<'b, Calls>, Keeps<'b>> for Swap {
    fn exchange(
        &mut self,
        tasks: &mut Cancelling<'b, Calls>,
        observe: &mut Keeps<'b>,
        ranks: &[Option<u32>],
    ) {
        for (page, from) in self.pages.iter_mut().zip(ranks) {
            let kept = from.and_then(|from| observe.pages.get_mut(from as usize));
            if let Some(kept) = kept {
                std::mem::swap(page, kept);
            }
        }
        std::mem::swap(&mut self.pages, &mut observe.pages);
        std::mem::swap(&mut self.callbacks, &mut tasks.tasks.callbacks);
    }
}
