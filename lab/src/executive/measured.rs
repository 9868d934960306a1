//! One design with one number of tasks, cycle after cycle between stamps.
//!
//! For `cell`. All tasks are due at each tick. Two kinds of cycle take turns: one in parts (the
//! release, the first dispatch, the wait of the last), one as a whole.

use std::hint::black_box;

use punctual_os::cache;

use super::stamps::Stamps;
use crate::baseline::{Design, Visit};

/// One measured part, in ticks: the middle of each block.
#[derive(Clone, Debug, Default)]
pub(super) struct Cost {
    block: Vec<u64>,
    blocks: Vec<f64>,
}

impl Cost {
    #[inline]
    fn push(&mut self, ticks: u64) {
        self.block.push(ticks);
    }

    /// Ends a block: the mean of the middle half, which is finer than the counter's own steps (ten
    /// nanoseconds on some machines) and takes no notice of interrupts.
    fn end_block(&mut self) {
        self.block.sort_unstable();
        let n = self.block.len();
        let middle = &self.block[n / 4..n - n / 4];
        if !middle.is_empty() {
            self.blocks.push(middle.iter().sum::<u64>() as f64 / middle.len() as f64);
        }
        self.block.clear();
    }

    /// The median of all blocks.
    pub(super) fn ticks(&self) -> f64 {
        let mut blocks = self.blocks.clone();
        blocks.sort_by(f64::total_cmp);
        blocks.get(blocks.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Costs {
    pub(super) release: Cost,
    pub(super) dispatch: Cost,
    pub(super) wait: Cost,
    pub(super) cycle: Cost,
    pub(super) floor: Cost,
    /// Cycles of each kind.
    pub(super) cycles: usize,
}

/// A design, and what it cost so far.
pub(super) trait Measured {
    /// Runs pairs of cycles for about `ticks`, one at least; before each measured part all cache
    /// lines of the design are flushed when it is to be cold.
    fn block(&mut self, stamps: &Stamps, cold: bool, ticks: u64);

    /// What it cost.
    fn costs(&self) -> &Costs;
}

/// A design of `n` tasks.
#[derive(Debug)]
pub(super) struct Of<D> {
    design: D,
    n: usize,
    costs: Costs,
}

/// Sends all memory that it is shown out of the caches.
struct Flush;

impl Visit for Flush {
    fn part<T>(&mut self, part: &[T]) {
        cache::flush(part);
    }
}

impl<D: Design> Of<D> {
    pub(super) fn new(design: D, n: usize) -> Self {
        Self { design, n, costs: Costs::default() }
    }

    fn chill(&self, cold: bool) {
        if cold {
            self.design.visit(&mut Flush);
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<D::Job> {
        let job = self.design.dispatch();
        if let Some(job) = &job {
            black_box(D::number(job));
        }
        job
    }

    /// A cycle in parts. `None` when a task was not ready that should be.
    #[inline(never)]
    fn parts(&mut self, stamps: &Stamps, cold: bool) -> Option<()> {
        self.chill(cold);
        let before = stamps.now();
        self.design.release();
        let released = stamps.now();
        self.chill(cold);
        let first = stamps.now();
        let mut job = self.dispatch()?;
        let dispatched = stamps.now();
        for _ in 1..self.n {
            self.design.wait(job);
            job = self.dispatch()?;
        }
        self.chill(cold);
        let last = stamps.now();
        self.design.wait(job);
        let waited = stamps.now();
        let floor = stamps.now();
        self.costs.release.push(released - before);
        self.costs.dispatch.push(dispatched - first);
        self.costs.wait.push(waited - last);
        self.costs.floor.push(floor - waited);
        Some(())
    }

    /// A whole cycle.
    #[inline(never)]
    fn whole(&mut self, stamps: &Stamps, cold: bool) -> Option<()> {
        self.chill(cold);
        let before = stamps.now();
        self.design.release();
        for _ in 0..self.n {
            let job = self.dispatch()?;
            self.design.wait(job);
        }
        let after = stamps.now();
        self.costs.cycle.push(after - before);
        self.costs.cycles += 1;
        Some(())
    }
}

impl<D: Design> Measured for Of<D> {
    fn block(&mut self, stamps: &Stamps, cold: bool, ticks: u64) {
        let begun = stamps.now();
        loop {
            let went = self.parts(stamps, cold).and_then(|()| self.whole(stamps, cold));
            if went.is_none() || stamps.now() - begun >= ticks {
                break;
            }
        }
        let Costs { release, dispatch, wait, cycle, floor, .. } = &mut self.costs;
        [release, dispatch, wait, cycle, floor].into_iter().for_each(Cost::end_block);
    }

    fn costs(&self) -> &Costs {
        &self.costs
    }
}
