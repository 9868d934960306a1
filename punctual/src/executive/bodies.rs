//! The bodies of one loop by rank, and those of a plan to come, which change places with them
//! while the loop runs.

use punctual_core::cycle::{Cycle, Flow};
use punctual_core::executive::{Cancelling, Dispatch};
use punctual_core::time::Span;
use punctual_engine::comb::TickDetector;
use punctual_engine::counting::{ByRank, CycleCounting, Words};
use punctual_engine::handover::Exchange;
use punctual_engine::monitor::Watched;
use punctual_engine::remote::RemoteTask;

use super::ending::Ending;
use super::work::{Body, guarded};

/// The work of a rank.
pub(super) enum Ranked<'env> {
    /// A body, which this loop runs.
    Here(Body<'env>),
    /// A task that another thread runs: released by the post of this number.
    Remote(usize),
}

/// The work of a rank that does nothing, in no memory.
fn nothing<'env>() -> Ranked<'env> {
    Ranked::Here(Box::new(|_| Flow::Continue))
}

/// The bodies of one loop, by rank.
pub(super) struct Bodies<'r, 'env> {
    pub(super) ranked: Vec<Ranked<'env>>,
    pub(super) names: Vec<String>,
    /// The tasks that it releases elsewhere.
    pub(super) remotes: Vec<RemoteTask<'r, CycleCounting>>,
    pub(super) watched: &'r Watched,
    pub(super) ending: &'r Ending,
}

impl Dispatch for Bodies<'_, '_> {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        self.watched.beat();
        match self.ranked.get_mut(rank) {
            Some(Ranked::Here(body)) => {
                guarded(self.ending, || self.names[rank].clone(), || body(cycle))
            }
            Some(Ranked::Remote(at)) => {
                let Some(post) = self.remotes.get_mut(*at) else { return Flow::Continue };
                let flow = post.post(cycle.n, cycle.missed, cycle.release + cycle.lateness);
                if flow == Flow::Stop {
                    self.ending.overran(&self.names[rank]);
                }
                flow
            }
            None => Flow::Continue,
        }
    }
}

/// Bodies and statistics of a plan to come, by rank; once they were exchanged, of the one before.
pub(super) struct Parts<'env> {
    /// The ranks before those of the plan: the calendar's tasks, which stay.
    units: usize,
    /// Bodies by rank. A task that goes on has one here that does nothing: its own stays in the
    /// loop.
    ranked: Vec<Ranked<'env>>,
    names: Vec<String>,
    /// Statistics by rank; none for a task that goes on: its own stay in the loop.
    counting: Vec<Option<CycleCounting>>,
    /// The longest time without progress in a loop of that plan; `None` without a watchdog.
    bound: Option<Span>,
}

impl<'env> Parts<'env> {
    /// Tasks of these names by rank, all of which go on; the first `units` are the calendar's. They
    /// may make no progress for `bound`.
    pub(super) fn new(units: usize, names: Vec<String>, bound: Option<Span>) -> Self {
        let ranked = names.iter().map(|_| nothing()).collect();
        let counting = names.iter().map(|_| None).collect();
        Self { units, ranked, names, counting, bound }
    }

    /// The task of this rank of the plan is new, and counted on this page.
    pub(super) fn begin(&mut self, rank: usize, body: Body<'env>, page: Words) {
        self.ranked[self.units + rank] = Ranked::Here(body);
        self.counting[self.units + rank] = Some(CycleCounting::on(page, None));
    }
}

impl<'env> Exchange<Cancelling<'_, Bodies<'_, 'env>>, TickDetector<ByRank>> for Parts<'env> {
    fn exchange(
        &mut self,
        tasks: &mut Cancelling<'_, Bodies<'_, 'env>>,
        detector: &mut TickDetector<ByRank>,
        ranks: &[Option<u32>],
    ) {
        detector.cease();
        let counting = detector.inner_mut().tasks_mut();
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
            let own = counting.get_mut(from);
            if let (Some(next), Some(own)) = (self.counting.get_mut(at), own) {
                std::mem::swap(next, own);
            }
        }
        std::mem::swap(&mut self.ranked, ranked);
        std::mem::swap(&mut self.names, names);
        std::mem::swap(&mut self.counting, counting);
        watched.allow(self.bound);
    }
}
