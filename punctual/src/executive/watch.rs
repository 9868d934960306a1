//! What the monitor of an executive watches: its loops, and the tasks in threads of their own.
//!
//! In the monitor's thread.

use punctual_core::clock::Clock;
use punctual_core::executive::cancel::Token;
use punctual_core::time::Span;

use super::released::Released;
use super::run::Run;
use super::thread_task::ThreadTask;
use crate::monitor::{Monitor, Progress, RunawayRule};

/// The monitor of all loops and of the tasks beside them.
pub(super) fn watch<C: Clock + Clone + Send>(
    run: &Run<'_, '_, C>,
    bounds: &[Option<Span>],
    threads: &[ThreadTask],
    released: &[Released],
) {
    let Some((mut clock, epoch)) = run.await_settled() else { return };
    let mut guards: Vec<RunawayRule<'_>> =
        threads.iter().zip(released).filter_map(|(of, at)| at.guard(of, epoch)).collect();
    let lanes = run.shared.lanes.iter().map(|lane| &lane.watched).zip(bounds.iter().copied());
    let bound = bounds.first().copied().flatten();
    let beside = run.shared.threads.iter().map(|slot| (&slot.watched, bound));
    let charges = lanes.chain(beside).filter_map(|(watched, bound)| {
        Some(Progress { watched, progress: move || watched.beats(), bound: bound? })
    });
    let loops: Vec<_> = charges.collect();
    let tokens = run.shared.lanes.iter().map(|lane| &lane.token);
    let tokens: Vec<&Token> =
        tokens.chain(run.shared.threads.iter().map(|slot| &slot.token)).collect();
    let cancels = &run.shared.cancels;
    let monitor = Monitor { loops: &loops, guards: &mut guards, tokens: &tokens, cancels };
    monitor.run(|| clock.now(), &*run.shared.ending, &run.done, || ());
}
