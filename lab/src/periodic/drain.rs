//! What runs next to the loops: the drain, which also looks for disturbances, and the watchdog.
//!
//! For the coordinator. Both keep to the housekeeping CPUs.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use punctual::disturbance::Disturbance;
use punctual::drain::{Drainage, INTERVAL, Sink};
use punctual::monitor::{Progress, Watched};
use punctual::spawn;
use punctual_core::ring::RingView;
use punctual_core::time::Span;

use super::context::RunContext;
use super::plan::Stream;
use crate::experiment::{Lookout, keep_to, watchdog};

/// What the drain has when all is over.
pub(super) struct Drained<S> {
    pub(super) sink: S,
    pub(super) file_error: Option<io::Error>,
    pub(super) disturbances: Vec<(u64, Disturbance)>,
}

/// The coordinator's way to the drain: waits until all rings are empty. So the samples of one
/// block reach the sink before those of the next.
pub(super) struct DrainHandle(Sender<Sender<()>>);

impl DrainHandle {
    /// Has the rings emptied, and waits for it. Returns at once when the drain is gone.
    pub(super) fn flush(&self) {
        let (answer, emptied) = channel();
        if self.0.send(answer).is_ok() {
            let _gone = emptied.recv();
        }
    }
}

/// Empties the rings every [`INTERVAL`] and when a flush is requested, until its handle is gone;
/// looks at the machine each time.
pub(super) fn drain_thread<'scope, 'env, S, W>(
    scope: &'scope Scope<'scope, 'env>,
    context: &RunContext<'env>,
    mut drainage: Drainage<'env, S, W>,
    early: &'env AtomicBool,
) -> io::Result<(DrainHandle, ScopedJoinHandle<'scope, Drained<S>>)>
where
    S: Sink + Send + 'scope,
    W: Write + Send + 'scope,
    'env: 'scope,
{
    let (requests, requested): (_, Receiver<Sender<()>>) = channel();
    let (plan, pinned) = (context.plan, context.pinned);
    let thread = spawn::scoped(scope, "punctual-drain", move || {
        keep_to(&plan.housekeeping);
        let threads = || pinned.lock().map_or_else(|_| Vec::new(), |pinned| pinned.clone());
        let mut lookout = Lookout::new(&threads());
        loop {
            let answer = match requested
                .recv_timeout(Duration::from_nanos(INTERVAL.as_ns().unsigned_abs()))
            {
                Ok(answer) => Some(answer),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            drainage.empty();
            if let Some(answer) = answer {
                let _gone = answer.send(());
            }
            lookout.look(&threads());
        }
        let (sink, file_error) = drainage.finish(early.load(Ordering::Acquire));
        Drained { sink, file_error, disturbances: lookout.happened() }
    })?;
    Ok((DrainHandle(requests), thread))
}

/// How long a loop may get nowhere: longer than any period, longer than RT throttling (50 ms).
fn bound(stream: &Stream) -> Span {
    let period_ns = i64::try_from(stream.period.as_ns()).unwrap_or(i64::MAX);
    Span::from_ns(period_ns.saturating_mul(3)).max(Span::from_ms(2_000))
}

/// Watches all streams until `done`.
pub(super) fn watchdog_thread<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    context: &RunContext<'env>,
    views: &'env [RingView<'env>],
    done: &'env AtomicBool,
) -> io::Result<()> {
    let plan = context.plan;
    let charge =
        |((stream, watched), views): ((&Stream, &'env Watched), &'env [RingView<'env>])| {
            let progress = || watched.beats() + views.iter().map(RingView::count).sum::<u64>();
            Progress { watched, progress, bound: bound(stream) }
        };
    let views = views.chunks(plan.conditions.len());
    let charges = plan.streams.iter().zip(context.watched).zip(views).map(charge).collect();
    watchdog(scope, &plan.housekeeping, charges, (context.stop, done))
}
