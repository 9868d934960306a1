//! A run that is under way, for those who change its tasks meanwhile.
//!
//! The loop's side is `run.rs`'s; here a change is made beside it, handed over, and what ran before
//! is freed.

use punctual::core::time::Instant;
use punctual::handover::{Change, Handover, Refused};
use punctual::periodic::Successor;

use super::book::Built;
use crate::border::Failure;
use crate::calls::Swap;
use crate::cancels::Cancels;
use crate::options::Options;
use crate::room::Kept;

/// A run, from the start of its setup to its end.
pub(crate) struct Live {
    pub(super) handover: Handover<Swap>,
    pub(super) cancels: Cancels,
    options: Options,
    epoch: Instant,
    /// The mark of its thread, see [`crate::owned::mark`].
    thread: u64,
}

/// What became of a change.
pub(super) enum Changed {
    /// The loop has it.
    Taken,
    /// There is no loop any more that could.
    Ended,
}

impl Live {
    pub(super) fn new(options: Options, epoch_ns: u64, thread: u64) -> Self {
        Self {
            handover: Handover::new(),
            cancels: Cancels::default(),
            options,
            epoch: Instant::from_ns(epoch_ns),
            thread,
        }
    }

    /// Whether the run is this thread's: it would wait for itself.
    pub(super) fn is_of(&self, thread: u64) -> bool {
        self.thread == thread
    }

    /// Whether the run's options go with what it is to be.
    pub(super) fn check(&self, next: &Built) -> Result<(), Failure> {
        match next.shortest {
            Some(shortest) => self.options.of_executive(shortest).map(drop),
            None if self.options.watchdog_ns > 0 => {
                Err(Failure::invalid("without a task the watchdog would end the run"))
            }
            None => Ok(()),
        }
    }

    /// Hands the change over and waits for the loop; `ranks` says who goes on from where.
    pub(super) fn publish(
        &self,
        next: &Built,
        ranks: Vec<Option<u32>>,
    ) -> Result<Changed, Failure> {
        if next.terminates {
            self.cancels.start(&self.options)?;
        }
        let page = |(room, from): (_, &Option<u32>)| match from {
            Some(_) => None,
            None => Kept::new(room),
        };
        let pages = next.rooms.iter().zip(&ranks).map(page).collect();
        let beside = Swap { callbacks: next.callbacks.clone(), pages };
        let next = Successor { plan: next.plan.clone(), ranks };
        match self.handover.publish(Change::new(next, self.epoch, beside)) {
            Ok(_before) => Ok(Changed::Taken),
            Err((Refused::Ended, _)) => Ok(Changed::Ended),
            Err((Refused::Busy, _)) => Err(Failure::bare(libc::EBUSY)),
            Err((why, _)) => Err(Failure::new(libc::ENOTRECOVERABLE, why.to_string())),
        }
    }
}
