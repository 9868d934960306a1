//! The reader's end of a page: reads, never writes, relies only on the layout.
//!
//! For readers in another thread or process. A page whose writer broke off, or is broken, is
//! reported as not consistent; the reader never waits.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use super::{
    ABOVE, BELOW, CENSORED, CYCLE, HEADER_WORDS, KIND, MAGIC, MAX, MIN, MISSED, OVER_BUDGET,
    OVER_DEADLINE, OVER_RELEASE, PageKind, RAN, RELEASE, SEQUENCE, STARTED_LATE, SUM, VERSION,
    WORDS,
};
use crate::bucket;
use crate::time::{Instant, Span};

/// How often a reader tries for one state before it takes what there is. A writer is done in well
/// under a microsecond, a reader in some.
const TRIES: u32 = 64;

/// Why words are not a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageError {
    /// They do not begin as a page does.
    NoPage,
    /// A page of another version: this one.
    Version(u64),
    /// A page that states this size, in words.
    Size(u64),
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPage => f.write_str("this memory is not a page of a loop"),
            Self::Version(version) => {
                write!(f, "page version {version} is not supported, only version {VERSION}")
            }
            Self::Size(words) => write!(f, "a page has {WORDS} words, this one states {words}"),
        }
    }
}

impl core::error::Error for PageError {}

/// The counters of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Whether all are of one moment: false when the writer wrote all the time, or broke off.
    pub consistent: bool,
    /// Cycles that ran; one that takes several units of a calendar counts once, when it begins.
    pub ran: u64,
    /// Releases that never ran, each counted with the next cycle or at the end.
    pub missed: u64,
    /// Those of the missed that no start followed before the end: what the other values say of
    /// them are lower bounds.
    pub censored: u64,
    /// Cycles that started later than their slot allows; here and below each unit of a calendar
    /// counts, also where several of them are one cycle.
    pub started_late: u64,
    /// Cycles that ran longer than their budget.
    pub over_budget: u64,
    /// Cycles that ran beyond their `next`: their next release; or, of a unit, the end of its
    /// budget.
    pub over_release: u64,
    /// Cycles that finished after their deadline.
    pub over_deadline: u64,
    /// Values below 0, which have no bucket.
    pub below: u64,
    /// Values above the last bucket.
    pub above: u64,
    /// The smallest value, of releases that ran and of missed ones; `None` before the first.
    pub min: Option<Span>,
    /// The largest value.
    pub max: Option<Span>,
    /// The sum of all values, ns, wrapping.
    pub sum_ns: i64,
    /// The last release that ran.
    pub release: Instant,
    /// Its cycle.
    pub cycle: u64,
}

/// The reader's end of a page.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a [AtomicU64; HEADER_WORDS],
    buckets: &'a [AtomicU64; bucket::COUNT],
    kind: PageKind,
}

impl<'a> View<'a> {
    /// The page in `words`.
    ///
    /// # Errors
    ///
    /// When there is none that this version can read.
    ///
    /// # Real-time: reader side
    pub fn open(words: &'a [AtomicU64]) -> Result<Self, PageError> {
        let (header, rest): (&[AtomicU64; HEADER_WORDS], _) =
            words.split_first_chunk().ok_or(PageError::NoPage)?;
        if header[0].load(Ordering::Acquire) != MAGIC {
            return Err(PageError::NoPage);
        }
        let get = |at: usize| header[at].load(Ordering::Relaxed);
        if get(1) != VERSION {
            return Err(PageError::Version(get(1)));
        }
        let (buckets, _) = rest.split_first_chunk().ok_or(PageError::Size(words.len() as u64))?;
        if get(2) != WORDS as u64 {
            return Err(PageError::Size(get(2)));
        }
        let kind = if get(KIND) == 0 { PageKind::Lateness } else { PageKind::Distance };
        Ok(Self { header, buckets, kind })
    }

    /// What the histogram is of.
    ///
    /// # Real-time: reader side
    pub fn kind(&self) -> PageKind {
        self.kind
    }

    /// The counters alone.
    ///
    /// # Real-time: reader side
    pub fn counts(&self) -> Counts {
        let (counts, consistent) = self.once(|| self.load());
        Counts { consistent, ..counts }
    }

    /// The counters and the histogram, which goes to `buckets`.
    ///
    /// # Real-time: reader side
    pub fn read(&self, buckets: &mut [u64; bucket::COUNT]) -> Counts {
        let (counts, consistent) = self.once(|| {
            for (to, from) in buckets.iter_mut().zip(self.buckets) {
                *to = from.load(Ordering::Relaxed);
            }
            self.load()
        });
        Counts { consistent, ..counts }
    }

    /// What `read` returns, and whether no write came between.
    fn once<T>(&self, mut read: impl FnMut() -> T) -> (T, bool) {
        let mut tries = 0;
        loop {
            let before = self.header[SEQUENCE].load(Ordering::Acquire);
            let seen = read();
            // What was read is read before the sequence is again.
            fence(Ordering::Acquire);
            let after = self.header[SEQUENCE].load(Ordering::Relaxed);
            let consistent = before == after && before.is_multiple_of(2);
            tries += 1;
            if consistent || tries == TRIES {
                return (seen, consistent);
            }
            core::hint::spin_loop();
        }
    }

    fn load(&self) -> Counts {
        let get = |at: usize| self.header[at].load(Ordering::Relaxed);
        let span =
            |at: usize| (get(RAN) + get(MISSED) > 0).then(|| Span::from_ns(get(at).cast_signed()));
        Counts {
            consistent: false,
            ran: get(RAN),
            missed: get(MISSED),
            censored: get(CENSORED),
            started_late: get(STARTED_LATE),
            over_budget: get(OVER_BUDGET),
            over_release: get(OVER_RELEASE),
            over_deadline: get(OVER_DEADLINE),
            below: get(BELOW),
            above: get(ABOVE),
            min: span(MIN),
            max: span(MAX),
            sum_ns: get(SUM).cast_signed(),
            release: Instant::from_ns(get(RELEASE)),
            cycle: get(CYCLE),
        }
    }
}
