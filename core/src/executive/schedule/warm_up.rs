//! A schedule of one task or unit, on which the loop warms up its code.
//!
//! For [`crate::executive::many::Many`], in the time before a release. Pure; its parts are on the
//! stack, and nothing of the real schedule changes.

use core::sync::atomic::AtomicU64;

use super::{Change, Schedule};
use crate::calendar::{self, TaskProgress};
use crate::dispatch::{self, TableState};
use crate::time::Instant;

impl Schedule<'_, '_> {
    /// Runs `turn` on a schedule of the same kind with one task or unit, due at `now`: the code
    /// that the next release needs is in the caches afterwards.
    #[inline]
    pub(in crate::executive) fn warm_up(
        &self,
        now: Instant,
        turn: impl FnOnce(&mut Schedule<'_, '_>),
    ) {
        let calendar = calendar::warm_up::calendar(now);
        let table = dispatch::warm_up::table(now);
        let (mut progress, mut storage) =
            ([TaskProgress::default()], dispatch::warm_up::OneTask::default());
        let units = self.units.as_ref();
        let mut units =
            units.and_then(|_| calendar::CalendarState::begin(&calendar, &mut progress, now));
        let tasks = self.tasks.as_ref();
        let mut tasks = tasks.and_then(|_| TableState::begin(&table, storage.lend(), now));
        let (request_ns, idles) = (&AtomicU64::new(0), &AtomicU64::new(0));
        let change = self.change.as_ref().map(|change| Change {
            request_ns,
            idles,
            poll: change.poll,
            since: None,
            left: false,
        });
        turn(&mut Schedule {
            first: usize::from(units.is_some()),
            units: units.as_mut().map(|state| (&calendar, state)),
            tasks: tasks.as_mut().map(|state| (&table, state)),
            guard: self.guard,
            change,
        });
    }
}
