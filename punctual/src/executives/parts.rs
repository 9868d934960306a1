//! What an executive has beside its plan: the bodies of its tasks and the pages of those.
//!
//! For its loop, which runs them, and takes others in their place when its tasks change.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::executive::cancel::{Cancelling, Token};
use punctual_core::executive::many::{Cycle, Dispatch, Flow};
use punctual_core::time::Span;

use crate::handover::Beside;
use crate::pages::Writers;
use crate::watchdog::Watched;
use crate::workers::Body;

/// What the threads about one executive share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) token: Token,
    pub(super) beats: AtomicU64,
    pub(super) watched: Watched,
}

/// Bodies behind the ranks, and how often one ran.
pub(super) struct Bodies<'b, 'w> {
    pub(super) all: Vec<Body<'w>>,
    pub(super) shared: &'b Shared,
}

impl Dispatch for Bodies<'_, '_> {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        let beats = &self.shared.beats;
        // One writer, so that no locked instruction is needed.
        beats.store(beats.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.all.get_mut(rank).map_or(Flow::Continue, |body| body(cycle))
    }
}

/// Bodies and pages of a plan to come, by rank; then of the one that was.
pub(super) struct Parts<'w> {
    /// Of a task that goes on one that does nothing: its own is where it runs.
    pub(super) bodies: Vec<Body<'w>>,
    pub(super) pages: Writers,
    /// How long an executive of that plan may get nowhere.
    pub(super) bound: Option<Span>,
}

/// A body that does nothing, in no memory.
pub(super) fn nothing<'w>() -> Body<'w> {
    Box::new(|_| Flow::Continue)
}

impl<'w> Beside<Cancelling<'_, Bodies<'_, 'w>>, Writers> for Parts<'w> {
    fn exchange(
        &mut self,
        tasks: &mut Cancelling<'_, Bodies<'_, 'w>>,
        pages: &mut Writers,
        ranks: &[Option<u32>],
    ) {
        let Bodies { all, shared } = &mut tasks.tasks;
        for (body, from) in self.bodies.iter_mut().zip(ranks) {
            if let Some(own) = from.and_then(|from| all.get_mut(from as usize)) {
                std::mem::swap(body, own);
            }
        }
        std::mem::swap(&mut self.bodies, all);
        std::mem::swap(&mut self.pages, pages);
        shared.watched.allow(self.bound);
    }
}
