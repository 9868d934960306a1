//! The samples of a loop on their way into a file: a thread beside the loop.
//!
//! Opens the file before the loop begins, and completes it at the end. A file that cannot be
//! written any more ends the recording, never the loop.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use punctual_core::ring;
use punctual_core::sample::Sample;
use punctual_core::time::{Instant, Period};
use punctual_os::affinity;
use punctual_os::scheduler::SchedPolicy;

use super::counting::{Words, words};
use crate::drain::{Drainage, INTERVAL, SampleFile, Sink};
use crate::error::{Error, Kind};
use crate::stage::aside;
use crate::summary::Samples;

/// The ring has room for what comes while the thread beside the loop does not run for so long.
const ROOM_S: u64 = 4;
/// The fewest and the most samples of a ring; 16 bytes each.
const RING: (u64, u64) = (1 << 12, 1 << 20);

/// What a file says of its one run.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) cpu: Option<u32>,
    pub(super) period: Period,
    pub(super) phase_ns: u64,
    pub(super) policy: SchedPolicy,
    pub(super) wait: &'static str,
}

impl Facts {
    fn json(&self, first: Instant) -> String {
        let (policy, priority) = match self.policy {
            SchedPolicy::Fifo(priority) => ("SCHED_FIFO", priority.to_string()),
            SchedPolicy::RoundRobin(priority) => ("SCHED_RR", priority.to_string()),
            SchedPolicy::Other | SchedPolicy::Unknown(_) => ("SCHED_OTHER", "null".to_owned()),
        };
        format!(
            "{{\"tool\":\"punctual library\",\"version\":\"{}\",\"runs\":[{{\"name\":\"loop\",\
             \"cpu\":{},\"period_ns\":{},\"epoch_ns\":{},\"phase_ns\":{},\"policy\":\"{policy}\",\
             \"priority\":{priority},\"wait\":\"{}\"}}]}}",
            env!("CARGO_PKG_VERSION"),
            self.cpu.unwrap_or(0),
            self.period.as_ns(),
            first.as_ns(),
            self.phase_ns,
            self.wait,
        )
    }
}

/// A recording in progress.
#[derive(Debug)]
pub(super) struct Recording {
    /// The instant of release 0, ns; 0 before the first wait.
    first_ns: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<Samples>>,
}

/// Samples go to the file alone.
struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _: usize, _: &[Sample]) {}
}

impl Recording {
    /// Opens the file and starts the thread; the ring that the loop writes to.
    pub(super) fn start(path: PathBuf, facts: Facts) -> Result<(Self, Words), Error> {
        let file =
            File::create(&path).map_err(|why| Error::from(Kind::Samples(path.clone(), why)))?;
        let wanted = ROOM_S.saturating_mul(1_000_000_000) / facts.period.as_ns();
        let samples = wanted.clamp(RING.0, RING.1).next_power_of_two();
        let ring = words(ring::words(samples as usize));
        // Made before anybody resumes it.
        let _made = ring::split(&ring);
        let (first_ns, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let writer = Writer {
            file,
            path,
            facts: facts.clone(),
            ring: Arc::clone(&ring),
            first_ns: Arc::clone(&first_ns),
            done: Arc::clone(&done),
        };
        let beside = aside(facts.cpu.as_slice());
        let thread = Builder::new()
            .name("punctual-drain".to_owned())
            .spawn(move || {
                // Where it may not go there it writes where it is.
                let _beside_the_loop = affinity::set(0, &beside);
                writer.run()
            })
            .map_err(|why| Error::from(Kind::Thread("the sample file", why)))?;
        Ok((Self { first_ns, done, thread: Some(thread) }, ring))
    }

    /// The loop begins with its release 0 at `first`.
    pub(super) fn begin(&self, first: Instant) {
        self.first_ns.store(first.as_ns(), Ordering::Release);
    }

    /// Waits until all samples are in the file, and says how many.
    pub(super) fn finish(mut self) -> Samples {
        self.end().unwrap_or_default()
    }

    fn end(&mut self) -> Option<Samples> {
        self.done.store(true, Ordering::Release);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _written = self.end();
    }
}

/// Waits for the next look, or for the loop's end.
#[expect(clippy::disallowed_methods, reason = "no instant is meant: the loop's end cuts it short")]
fn rest() {
    std::thread::park_timeout(Duration::from_nanos(INTERVAL.as_ns().unsigned_abs()));
}

/// What the thread beside the loop has.
struct Writer {
    file: File,
    path: PathBuf,
    facts: Facts,
    ring: Words,
    first_ns: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
}

impl Writer {
    fn run(self) -> Samples {
        while self.first_ns.load(Ordering::Acquire) == 0 && !self.done.load(Ordering::Acquire) {
            rest();
        }
        let first = Instant::from_ns(self.first_ns.load(Ordering::Acquire));
        let Self { file, path, facts, ring, done, .. } = self;
        let begun = SampleFile::begin(file, &facts.json(first), 1);
        let (file, failed) = match begun {
            Ok(file) => (Some(file), None),
            Err(why) => (None, Some(why)),
        };
        let Some((drain, view)) = ring::readers(&ring) else { return Samples::default() };
        let mut drainage = Drainage::new(vec![(drain, view)], Nowhere, file);
        while !done.load(Ordering::Acquire) {
            drainage.empty();
            rest();
        }
        let (_, stopped) = drainage.finish(false);
        let unrecorded = view.unrecorded();
        let failed = failed.or(stopped).map(|why| why.to_string());
        Samples { path, written: view.count() - unrecorded, unrecorded, failed }
    }
}
