//! The bodies behind the ranks of an executive's loop.
//!
//! In the loop. A body runs here, or is released where it runs; what panics is caught, and ends the
//! executive in order. Counts progress for the monitor.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_core::executive::cancelling::Cancelling;
use punctual_core::executive::many::{Cycle, Dispatch, Flow};
use punctual_core::time::Span;

use super::ending::Ending;
use crate::counting::{ByRank, Counting};
use crate::handover::Exchange;
use crate::monitor::Watched;
use crate::remote::RemoteTask;

/// What runs in each cycle.
pub(crate) type Body<'env> = Box<dyn FnMut(&mut Cycle<'_>) -> Flow + Send + 'env>;

/// A body as the executive has it.
pub(super) fn boxed<'env, R: Into<Flow>>(
    mut body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
) -> Body<'env> {
    Box::new(move |cycle| body(cycle).into())
}

/// A body that does nothing, in no memory.
pub(super) fn nothing<'env>() -> Ranked<'env> {
    Ranked::Here(Box::new(|_| Flow::Continue))
}

/// Where the body of a rank is.
pub(super) enum Ranked<'env> {
    /// Here.
    Here(Body<'env>),
    /// Elsewhere: released by the post of this number.
    Remote(usize),
}

/// Runs a body's cycle; one that panics ends the executive, which goes on to its end in order.
#[inline]
pub(super) fn guarded(
    body: &mut Body<'_>,
    cycle: &mut Cycle<'_>,
    name: impl FnOnce() -> String,
    ending: &Ending,
) -> Flow {
    // Only its owner uses the body again, who learns of the panic by the end.
    let ended = catch_unwind(AssertUnwindSafe(|| ending.callback(|| body(cycle))));
    match ended {
        Ok(flow) => flow,
        Err(panic) => {
            ending.panicked(&name(), panic_text(&*panic));
            Flow::Stop
        }
    }
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a payload that is no text")
}

/// The bodies of one loop, by rank.
pub(super) struct Bodies<'r, 'env> {
    pub(super) ranked: Vec<Ranked<'env>>,
    pub(super) names: Vec<String>,
    pub(super) remotes: Vec<RemoteTask<'r, Counting>>,
    pub(super) watched: &'r Watched,
    pub(super) ending: &'r Ending,
}

impl Dispatch for Bodies<'_, '_> {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        self.watched.beat();
        match self.ranked.get_mut(rank) {
            Some(Ranked::Here(body)) => {
                guarded(body, cycle, || self.names[rank].clone(), self.ending)
            }
            Some(Ranked::Remote(at)) => {
                let Some(post) = self.remotes.get_mut(*at) else { return Flow::Continue };
                let flow = post.post(cycle.n, cycle.release + cycle.lateness);
                if flow == Flow::Stop {
                    self.ending.overran(&self.names[rank]);
                }
                flow
            }
            None => Flow::Continue,
        }
    }
}

/// Bodies and statistics of a plan to come, by rank; then of the one that was.
pub(super) struct Parts<'env> {
    /// The ranks before those of the plan: the calendar's tasks, which stay.
    pub(super) units: usize,
    /// Of a task that goes on one that does nothing: its own is where it runs.
    pub(super) ranked: Vec<Ranked<'env>>,
    pub(super) names: Vec<String>,
    /// Of a task that goes on none: its own is where it runs.
    pub(super) counting: Vec<Option<Counting>>,
    /// How long an executive of that plan may make no progress.
    pub(super) bound: Option<Span>,
}

impl<'env> Exchange<Cancelling<'_, Bodies<'_, 'env>>, ByRank> for Parts<'env> {
    fn exchange(
        &mut self,
        tasks: &mut Cancelling<'_, Bodies<'_, 'env>>,
        counting: &mut ByRank,
        ranks: &[Option<u32>],
    ) {
        let Bodies { ranked, names, watched, .. } = &mut tasks.tasks;
        let stay = (0..self.units).map(|at| (at, at));
        let go_on = ranks
            .iter()
            .enumerate()
            .filter_map(|(at, from)| Some((self.units + at, self.units + (*from)? as usize)));
        for (at, from) in stay.chain(go_on) {
            if let (Some(next), Some(own)) = (self.ranked.get_mut(at), ranked.get_mut(from)) {
                std::mem::swap(next, own);
            }
            let own = counting.tasks.get_mut(from);
            if let (Some(next), Some(own)) = (self.counting.get_mut(at), own) {
                std::mem::swap(next, own);
            }
        }
        std::mem::swap(&mut self.ranked, ranked);
        std::mem::swap(&mut self.names, names);
        std::mem::swap(&mut self.counting, &mut counting.tasks);
        watched.allow(self.bound);
    }
}
