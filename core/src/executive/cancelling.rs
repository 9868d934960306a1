//! Tasks that can be cancelled from another CPU, behind the ranks of a loop.
//!
//! In the loop: publishes which cycle runs and until when, and hands its cancel token to the task.

use super::many::Dispatch;
use crate::cycle::{CancelToken, Cycle, Flow};

/// Tasks whose cycles hold the cancel token, where their policy is to be terminated.
#[derive(Debug)]
pub struct Cancelling<'t, D> {
    /// The tasks.
    pub tasks: D,
    /// Shared with the watchdog.
    pub token: &'t CancelToken,
}

impl<D: Dispatch> Dispatch for Cancelling<'_, D> {
    #[inline]
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        if !cycle.terminates() {
            return self.tasks.run(rank, cycle);
        }
        let cancel = self.token.begin(cycle.next);
        let flow = self.tasks.run(rank, &mut cycle.with_cancel(cancel));
        self.token.end();
        flow
    }

    #[inline]
    fn warm(&mut self, rank: usize) {
        self.tasks.warm(rank);
    }
}
