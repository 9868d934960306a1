//! What a loop keeps of each cycle: counts and histogram, and samples where it records.
//!
//! In the loop, at the beginning of a wait. Owns its memory with those who read it; never
//! allocates, never fails.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use punctual_core::dispatch::{Job, Overruns};
use punctual_core::executive::many::Observe;
use punctual_core::page::{self, Missed, Page, PageKind};
use punctual_core::ring::Ring;
use punctual_core::sample::{Beginning, Sample};
use punctual_core::time::Instant;

/// Memory that a loop shares with its readers.
pub(crate) type Words = Arc<[AtomicU64]>;

/// Memory of so many words, all touched.
pub(crate) fn words(count: usize) -> Words {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// The observer of a loop.
#[derive(Debug)]
pub(crate) struct Counting {
    stats: Words,
    samples: Option<(Words, Beginning)>,
}

impl Counting {
    /// Counts on a page of its own; samples go to `ring`, where there is one.
    pub(crate) fn new(ring: Option<Words>) -> Self {
        let stats = words(page::WORDS);
        let _page = Page::new(&stats, PageKind::Lateness);
        Self { stats, samples: ring.map(|ring| (ring, Beginning::new(0))) }
    }

    /// The memory of its page.
    pub(crate) fn stats(&self) -> Words {
        Arc::clone(&self.stats)
    }
}

impl Observe for Counting {
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        if let Some(mut page) = Page::resume(&self.stats) {
            page.ran(job, start, finish, overruns);
        }
        if let Some((ring, beginning)) = &mut self.samples
            && let Some(mut ring) = Ring::resume(ring)
        {
            if job.missed > 0 {
                ring.miss(job.missed);
            }
            ring.push(Sample::of(job, start, beginning.flags()));
        }
    }

    fn never_ran(&mut self, _: usize, missed: Missed, end: Instant) {
        if let Some(mut page) = Page::resume(&self.stats) {
            page.end(missed, end);
        }
        if let Some((ring, _)) = &self.samples
            && let Some(mut ring) = Ring::resume(ring)
        {
            ring.miss(missed.count);
        }
    }
}
