//! A run of an executive's tasks: [`crate::run`] with the table of a plan.

use punctual::core::dispatch::State;
use punctual::core::executive::Ended;

use super::executive::{Built, Executive};
use crate::border::Failure;
use crate::calls::Calls;
use crate::options::Options;
use crate::run::{Run, overran, too_small};

impl Executive {
    /// Runs for so long, or until it is stopped.
    pub(super) fn run(&self, options: &Options, duration_ns: u64) -> Result<(), Failure> {
        self.setup.with(|setup| {
            let built = self.built()?;
            let run = Run {
                options,
                rate: built.shortest,
                duration_ns,
                remote: &self.remote,
                terminates: built.terminates,
                calls: Calls::new(built.callbacks.clone()),
                pages: built.pages.iter().map(|words| &words[..]).collect(),
            };
            let ended = run.go(&mut setup.told, |many, stretch| {
                let table = built.plan.table(stretch.epoch);
                let mut storage = built.plan.storage();
                let mut state =
                    State::begin(&table, storage.lend(), stretch.from).ok_or_else(too_small)?;
                Ok(many.run(&table, &mut state, stretch.end, self.remote.flag()))
            })?;
            built.judge(ended)
        })
    }
}

impl Built {
    fn judge(&self, ended: Ended) -> Result<(), Failure> {
        match ended {
            Ended::Overran(rank) => Err(overran(self.plan.name(rank))),
            Ended::Finished | Ended::Stopped => Ok(()),
        }
    }
}
