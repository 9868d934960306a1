//! A campaign while it is measured: what the drain's thread feeds and others look at.
//!
//! One lock, taken for the time of a copy at most; nothing is written to disk under it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual::drain::Sink;
use punctual_analysis::campaign::{Batch, Campaign, Effort, Extent, RunSetup};
use punctual_core::sample::Sample;
use punctual_core::time::Span;
use punctual_os::clock::{ClockId, now_ns};

/// The campaign, and the batch that runs.
pub(crate) struct Live {
    /// All batches that are over.
    pub(crate) campaign: Campaign,
    /// The one that runs.
    pub(crate) running: Option<Running>,
}

/// A batch that runs.
#[derive(Clone)]
pub(crate) struct Running {
    /// Its collectors.
    pub(crate) batch: Batch,
    /// When it began, in seconds since 1970.
    pub(crate) from_unix_s: i64,
    /// And on CLOCK_MONOTONIC, once it was set up.
    pub(crate) from_ns: u64,
    /// How long it is to be.
    pub(crate) length: Span,
}

impl Running {
    /// How long it was measured so far, ns. Ending its threads and loads takes time too, in which
    /// nothing is measured.
    pub(crate) fn measured_ns(&self) -> u64 {
        let passed = now_ns(ClockId::Monotonic).saturating_sub(self.from_ns);
        passed.min(self.length.as_ns().unsigned_abs())
    }
}

/// How results name a run: with its setup where there are several.
pub(crate) fn run_name(campaign: &Campaign, pool: usize, run: &RunSetup) -> String {
    if campaign.pools().len() == 1 {
        run.name.clone()
    } else {
        format!("{}, setup {}", run.name, pool + 1)
    }
}

/// Live, behind its lock.
pub(crate) struct Shared(Mutex<Live>);

/// The time of day, in seconds since 1970.
pub(crate) fn unix_s() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// CLOCK_REALTIME − CLOCK_MONOTONIC, ns.
pub(crate) fn time_of_day_ns() -> i64 {
    now_ns(ClockId::Realtime).cast_signed() - now_ns(ClockId::Monotonic).cast_signed()
}

impl Shared {
    /// A campaign in which nothing runs yet.
    pub(crate) fn new(campaign: Campaign) -> Self {
        Self(Mutex::new(Live { campaign, running: None }))
    }

    /// A thread that panicked with the lock leaves numbers that are whole all the same.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The campaign as if the batch that runs ended now.
    pub(crate) fn snapshot(&self) -> Campaign {
        let live = self.lock();
        let mut campaign = live.campaign.clone();
        let running = live.running.clone();
        drop(live);
        if let Some(running) = running {
            let measured_ns = running.measured_ns();
            // Exact counters come at the end: until then, gaps in k are missed releases.
            let effort = |gaps| Effort { missed: gaps, wall_ns: measured_ns, ..Effort::default() };
            let efforts = running.batch.collectors.iter().map(|c| effort(c.gaps())).collect();
            let extent = Extent {
                from_unix_s: running.from_unix_s,
                to_unix_s: unix_s(),
                measured_ns,
                efforts,
            };
            let _rows = campaign.add(running.batch, &extent);
        }
        campaign
    }
}

/// The drain's way in.
pub(crate) struct Feed<'a>(pub(crate) &'a Shared);

impl Sink for Feed<'_> {
    fn take(&mut self, run: usize, samples: &[Sample]) {
        let ahead_ns = time_of_day_ns();
        let mut live = self.0.lock();
        let collectors = live.running.as_mut().map(|running| &mut running.batch.collectors);
        if let Some(collector) = collectors.and_then(|collectors| collectors.get_mut(run)) {
            collector.set_time_of_day(ahead_ns);
            collector.extend(samples);
        }
    }
}
