//! A run of an executive's tasks: [`crate::run`] with the table of a plan, and of those that follow
//! it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use punctual::core::executive::Ended;
use punctual::handover::{Running, Stretch};

use super::book::Built;
use super::executive::Executive;
use super::live::Live;
use crate::border::Failure;
use crate::calls::Calls;
use crate::options::Options;
use crate::owned::mark;
use crate::run::{Run, overran};

/// Has no change taken any more, on every way out of a run, a panic's too.
struct Over<'e>(&'e Executive, Arc<Live>);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.1.handover.close();
        self.0.book().live = None;
    }
}

impl Executive {
    /// Runs for so long, or until it is stopped.
    pub(super) fn run(&self, options: &Options, duration_ns: u64) -> Result<(), Failure> {
        self.runs.with(|told| {
            let (built, live) = self.begin(options)?;
            let Over(_, live) = &Over(self, live);
            let Some(period) = built.shortest else {
                return Err(Failure::invalid("an executive without tasks"));
            };
            let run = Run {
                options,
                period,
                duration_ns,
                remote: &self.remote,
                terminates: built.terminates,
                calls: Calls::new(built.callbacks),
                rooms: built.rooms,
                cancels: &live.cancels,
            };
            let mut culprit = None;
            let ended = run.go(told, |many, stretch| {
                let mut running = Running::new(built.plan, stretch.epoch, stretch.from);
                let turns = AtomicU64::new(0);
                let (from, end, stop) = (stretch.from, stretch.end, self.remote.flag());
                let stretch = Stretch { from, end, stop, turns: &turns };
                let ended = live.handover.run(many, &mut running, &stretch);
                // Of the plan that ran last.
                if let Ended::Overran(rank) = ended {
                    culprit = Some(running.plan().name(rank).to_owned());
                }
                Ok(ended)
            })?;
            match (ended, culprit) {
                (Ended::Overran(_), Some(name)) => Err(overran(&name)),
                _ => Ok(()),
            }
        })
    }

    /// A run begins: what it runs, and where its tasks are changed from now on. A change that is
    /// under way was for the run before: it hears of its end and goes first.
    fn begin(&self, options: &Options) -> Result<(Built, Arc<Live>), Failure> {
        self.unchanged(|book| {
            let built = book.built()?.clone();
            let epoch_ns = match built.shortest {
                Some(shortest) => options.of_executive(shortest)?.0,
                None => 0,
            };
            let live = Arc::new(Live::new(*options, epoch_ns, mark()));
            book.live = Some(Arc::clone(&live));
            Ok((built, live))
        })
    }
}
