//! What runs beside the loops: the drain, which also looks for disturbances, and the watchdog.
//!
//! For the coordinator. Both keep to the housekeeping CPUs.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use punctual::core::recorder::View;
use punctual::core::time::Span;
use punctual::disturbance::{Disturbance, Observation, compare};
use punctual::drain::{Drainage, INTERVAL, Sink};
use punctual::os::affinity::{self, CpuMask};
use punctual::os::scheduler::{self, Policy};
use punctual::watchdog::{Charge, watch};

use super::crew::Site;
use super::plan::Stream;

/// Keeps the calling thread on the housekeeping CPUs. Where that is refused it runs where it may.
fn keep_house(cpus: &[u32]) {
    if !cpus.is_empty() {
        let mut mask = CpuMask::EMPTY;
        cpus.iter().for_each(|&cpu| mask.insert(cpu));
        let _anywhere = affinity::set(0, &mask);
    }
}

/// What the drain has when all is over.
pub(super) struct Drained<S> {
    pub(super) sink: S,
    pub(super) file_error: Option<io::Error>,
    pub(super) disturbances: Vec<(u64, Disturbance)>,
}

/// The coordinator's bell: rings the drain and waits until all rings are empty. So the samples of
/// one block reach the sink before those of the next.
pub(super) struct Bell(Sender<Sender<()>>);

impl Bell {
    /// Rings, and waits. Returns at once when the drain is gone.
    pub(super) fn ring(&self) {
        let (answer, emptied) = channel();
        if self.0.send(answer).is_ok() {
            let _gone = emptied.recv();
        }
    }
}

/// Empties the rings every [`INTERVAL`] and when its bell rings, until the bell is gone; looks at
/// the machine each time.
pub(super) fn drain_thread<'scope, 'env, S, W>(
    scope: &'scope Scope<'scope, 'env>,
    site: &Site<'env>,
    mut drainage: Drainage<'env, S, W>,
    early: &'env AtomicBool,
) -> io::Result<(Bell, ScopedJoinHandle<'scope, Drained<S>>)>
where
    S: Sink + Send + 'scope,
    W: Write + Send + 'scope,
    'env: 'scope,
{
    let (bell, rung): (_, Receiver<Sender<()>>) = channel();
    let (plan, pinned) = (site.plan, site.pinned);
    let thread = Builder::new().spawn_scoped(scope, move || {
        keep_house(&plan.housekeeping);
        let look = || Observation::look(&pinned.lock().map_or_else(|_| Vec::new(), |p| p.clone()));
        let mut disturbances = Vec::new();
        let mut before = look();
        loop {
            let answer =
                match rung.recv_timeout(Duration::from_nanos(INTERVAL.as_ns().unsigned_abs())) {
                    Ok(answer) => Some(answer),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
            drainage.empty();
            if let Some(answer) = answer {
                let _gone = answer.send(());
            }
            let after = look();
            disturbances
                .extend(compare(&before, &after).into_iter().map(|what| (after.at_ns, what)));
            before = after;
        }
        let (sink, file_error) = drainage.finish(early.load(Ordering::Acquire));
        Drained { sink, file_error, disturbances }
    })?;
    Ok((Bell(bell), thread))
}

/// How long a loop may get nowhere: longer than any period, longer than RT throttling (50 ms).
fn bound(stream: &Stream) -> Span {
    let period_ns = i64::try_from(stream.period.as_ns()).unwrap_or(i64::MAX);
    Span::from_ns(period_ns.saturating_mul(3)).max(Span::from_ms(2_000))
}

/// Watches all streams until `done`.
pub(super) fn watchdog_thread<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    site: &Site<'env>,
    views: &'env [View<'env>],
    done: &'env AtomicBool,
) -> io::Result<()> {
    let (plan, watched, stop) = (site.plan, site.watched, site.stop);
    Builder::new().spawn_scoped(scope, move || {
        keep_house(&plan.housekeeping);
        // Above the loops where permitted; below them it still runs, as it has another CPU.
        let _as_it_is = scheduler::set(0, Policy::Fifo(99));
        let conditions = plan.conditions.len();
        let charges: Vec<_> = plan
            .streams
            .iter()
            .zip(watched)
            .zip(views.chunks(conditions))
            .map(|((stream, watched), views)| Charge {
                watched,
                progress: || watched.beats() + views.iter().map(View::count).sum::<u64>(),
                bound: bound(stream),
            })
            .collect();
        watch(&charges, stop, done);
    })?;
    Ok(())
}
