//! The threads of workers: what runs in each, from its first release to its end.
//!
//! For a crew. In their loops no system call is made but futex, by one that the executive posts;
//! sleep, by one that waits for itself; and what its device takes, by one that is external.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::clock::Clock;
use punctual_core::dispatch::State;
use punctual_core::executive::Ended;
use punctual_core::executive::many::{Cycle, Dispatch, Flow, Many};
use punctual_core::executive::paced::{Distances, Paced};
use punctual_core::page::{Page, PageKind};
use punctual_core::seat::{ClientStep, TaskClient};
use punctual_core::time::{Instant, Period};
use punctual_core::wait::Sleep;
use punctual_os::futex::{self, Scope};

use super::{Body, Source};
use crate::clocks::MachineClock;
use crate::periodic::Plan;
use crate::posts::Limits;

/// A body behind rank 0.
struct Only<'b, 'w>(&'b mut Body<'w>);

impl Dispatch for Only<'_, '_> {
    fn run(&mut self, _: usize, cycle: &mut Cycle<'_>) -> Flow {
        (self.0)(cycle)
    }
}

/// Runs `all`, and says whether it panicked; then everything is told to stop where it `stops`.
pub(super) fn caught(all: impl FnOnce()) -> bool {
    // What it borrowed is not used again but by atomics.
    catch_unwind(AssertUnwindSafe(all)).is_err()
}

/// A worker that the executive posts, until its seat is ended; a body that says stop stops all.
///
/// # Real-time: in loop, waits
pub(super) fn posted(
    sitter: &mut TaskClient<'_>,
    clock: &mut MachineClock,
    body: &mut Body<'_>,
    stop: &AtomicBool,
) {
    loop {
        match sitter.turn() {
            ClientStep::Ended => return,
            ClientStep::Wait(seen) => futex::wait(sitter.bell(), seen, Scope::Process),
            ClientStep::Run => {
                let start = clock.wake();
                let flow = body(&mut sitter.begin(start));
                sitter.done(clock.now());
                if flow == Flow::Stop {
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
    }
}

/// A worker that waits for its releases itself, because its phase may move.
///
/// # Real-time: in loop, waits
pub(super) fn own(
    plan: &Plan,
    epoch: Instant,
    clock: &MachineClock,
    body: &mut Body<'_>,
    page: Page<'_>,
    (end, stop): (Instant, &AtomicBool),
) {
    let table = plan.table(epoch);
    let mut storage = plan.storage();
    let mut clock = clock.clone();
    let from = clock.now();
    let Some(mut state) = State::begin(&table, storage.lend(), from) else { return };
    let mut many = Many { clock, wait: Sleep, tasks: Only(body), observe: page };
    let before = stop.load(Ordering::Relaxed);
    if many.run(&table, &mut state, end, stop) == Ended::Stopped && !before {
        stop.store(true, Ordering::Relaxed);
    }
}

/// A worker that its device paces.
///
/// # Real-time: in loop, waits
pub(super) fn device(
    (source, period_ns): (&mut Source<'_>, u64),
    clock: &MachineClock,
    body: &mut Body<'_>,
    page: Page<'_>,
    (limits, stop): (&Limits, &AtomicBool),
) {
    let Some(period) = Period::from_ns(period_ns) else { return };
    let mut paced = Paced {
        clock: clock.clone(),
        pacer: source,
        tasks: Only(body),
        observe: Distances::new(page),
        period,
        budget_ns: limits.budget_ns,
    };
    if paced.run(stop) == Ended::Stopped {
        stop.store(true, Ordering::Relaxed);
    }
}

/// What the page of a worker is of.
pub(super) fn kind(is_external: bool) -> PageKind {
    if is_external { PageKind::Distance } else { PageKind::Lateness }
}
