//! The statistics of a loop or a task, and the reason of its end.
//!
//! Plain data and its text. For the program that ran it; decides nothing.

use std::fmt;
use std::path::PathBuf;

use punctual_core::bucket;
use punctual_core::stats::{Counts, PageKind, View};
use punctual_core::time::Span;

use crate::error::{Error, Kind};
use crate::monitor::Force;

/// The reason for which a loop or an executive ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// Its time was up.
    Finished,
    /// Somebody stopped it.
    Stopped,
    /// The watchdog stopped it: it had the CPU and did not yield.
    Forced,
    /// The watchdog stopped it: it did not get the CPU, though it wanted it.
    Starved,
    /// The watchdog stopped it: a body blocked, that is, waited for something other than the CPU.
    Blocked,
    /// The watchdog stopped it: it made no progress, and nothing shows why.
    Stuck,
    /// A task panicked; also where the watchdog stopped it before that, or while the program's
    /// panic hook ran.
    Panicked {
        /// The name of the task.
        task: String,
        /// The text of the panic.
        text: String,
    },
    /// This task overran, and its policy is to stop everything.
    Overran(String),
    /// It belongs to another process, of which fork(2) made this one.
    Forked,
}

impl End {
    /// Nothing where it ended as planned: its time was up, or somebody stopped it.
    ///
    /// # Errors
    /// The watchdog, a panic or an overrun ended it.
    ///
    /// # Real-time: setup only
    pub fn ok(&self) -> Result<(), Error> {
        Err(Error::from(match self {
            Self::Finished | Self::Stopped => return Ok(()),
            Self::Starved => Kind::Forced("it did not get the CPU"),
            Self::Blocked => Kind::Forced("a body blocked"),
            Self::Stuck => Kind::Forced("it made no progress"),
            Self::Forced => Kind::Forced("it did not yield"),
            Self::Panicked { task, text } => Kind::Panicked(task.clone(), text.clone()),
            Self::Overran(task) => Kind::Overran(task.clone()),
            Self::Forked => Kind::Forked,
        }))
    }
}

/// The statistics of one loop or task.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The task's name; that of a single loop is `loop`.
    pub name: String,
    /// Its counts, and the extremes and the sum of the lateness of all its releases.
    pub counts: Counts,
    /// Quantiles of the lateness of all its releases, those that ran and those that were missed:
    /// the share of 0.5, 0.99 and 0.999, at most 0.8 % too much; `None` before the first release.
    pub p50: Option<Span>,
    /// The quantile of 0.99, as [`Stats::p50`].
    pub p99: Option<Span>,
    /// The quantile of 0.999, as [`Stats::p50`].
    pub p99_9: Option<Span>,
    /// True where its figures are distances from start to start instead: of a task that a device
    /// triggers, which has no releases. `ran` counts them then, one fewer than its cycles.
    pub distances: bool,
    /// Times that its own thread lost its real-time policy because it ran on; 0 without one.
    pub demotions: u64,
}

impl Stats {
    /// The statistics of a loop or task of this name with this page, as it is now.
    ///
    /// # Real-time: setup only
    pub fn of(name: &str, page: Option<&View<'_>>) -> Self {
        let at = |share| page.and_then(|page| quantile(page, share));
        let counts = page.map(View::counts).unwrap_or_default();
        let distances = page.is_some_and(|page| page.kind() == PageKind::Distance);
        let (p50, p99, p99_9) = (at(0.5), at(0.99), at(0.999));
        Self { name: name.to_owned(), counts, p50, p99, p99_9, distances, demotions: 0 }
    }
}

/// The outcome of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Samples {
    /// The file.
    pub path: PathBuf,
    /// Samples in the file.
    pub written: u64,
    /// Samples that did not fit in memory until they could be written; they are in no file.
    pub unrecorded: u64,
    /// The reason why the file is not whole, `None` where it is whole: writing stopped before the
    /// end, or another program removed or changed the file meanwhile.
    pub failed: Option<String>,
}

impl From<Force> for End {
    fn from(force: Force) -> Self {
        match force {
            Force::Starved => Self::Starved,
            Force::Blocked => Self::Blocked,
            Force::Stuck => Self::Stuck,
            Force::Demoted | Force::NotDemoted => Self::Forced,
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::Stopped => f.write_str("stopped"),
            Self::Starved => f.write_str("stopped by the watchdog: it did not get the CPU"),
            Self::Blocked => f.write_str("stopped by the watchdog: a body blocked"),
            Self::Stuck => f.write_str("stopped by the watchdog: it made no progress"),
            Self::Forced => f.write_str("stopped by the watchdog: it did not yield"),
            Self::Panicked { task, text } => write!(f, "task {task:?} panicked: {text}"),
            Self::Overran(task) => write!(f, "stopped: task {task:?} overran"),
            Self::Forked => f.write_str("left: it runs in the process that this one was forked of"),
        }
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { ran, missed, max, .. } = self.counts;
        let Counts { over_budget, over_release, over_deadline, .. } = self.counts;
        let value = if self.distances { "distance" } else { "lateness" };
        match self.distances {
            true => write!(f, "{}: {ran} distances from start to start", self.name)?,
            false => write!(f, "{}: {ran} ran, {missed} missed", self.name)?,
        }
        for (count, limit) in [
            (over_budget, "over budget"),
            (over_release, "still ran at the next release"),
            (over_deadline, "after the deadline"),
        ] {
            if count > 0 {
                write!(f, ", {count} {limit}")?;
            }
        }
        if let Some(max) = max {
            write!(f, "; {value} ")?;
            let releases = ran + missed;
            for (name, quantile, beyond) in
                [("p50", self.p50, 2), ("p99", self.p99, 100), ("p99.9", self.p99_9, 1_000)]
            {
                // Of fewer it would be the largest by another name.
                let Some(quantile) = quantile.filter(|_| releases >= beyond) else { continue };
                // Of those that nothing followed only the least is known.
                let least = if releases / beyond < self.counts.censored { "≥ " } else { "" };
                write!(f, "{name} {least}{quantile}, ")?;
            }
            let least = if self.counts.censored > 0 { "≥ " } else { "" };
            write!(f, "max {least}{max}")?;
        }
        if self.demotions > 0 {
            write!(f, "; its thread lost its real-time policy {} times", self.demotions)?;
        }
        Ok(())
    }
}

/// A lateness that at least `share` of the cycles did not exceed, from the histogram of a page: the
/// upper end of a bucket, so at most 0.8 % too much, and never above the exact maximum. `None`
/// before the first cycle, and for a share outside [0, 1].
///
/// # Real-time: reader side
pub fn quantile(view: &View<'_>, share: f64) -> Option<Span> {
    let mut buckets = Box::new([0; bucket::COUNT]);
    let counts = view.read(&mut buckets);
    let largest = counts.max?;
    if !(0.0..=1.0).contains(&share) {
        return None;
    }
    let n: u64 = counts.below + counts.above + buckets.iter().sum::<u64>();
    let wanted = ((share * n as f64).ceil() as u64).max(1);
    let mut seen = counts.below;
    if seen >= wanted {
        // They have no buckets: none of them was late at all.
        return Some(largest.min(Span::ZERO));
    }
    for (index, count) in buckets.iter().enumerate() {
        seen += count;
        if seen >= wanted {
            let upper_ns = i64::try_from(bucket::bounds(index).1 - 1).unwrap_or(i64::MAX);
            return Some(largest.min(Span::from_ns(upper_ns)));
        }
    }
    Some(largest)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use punctual_core::cycle::Overruns;
    use punctual_core::stats::{At, Page, PageKind, WORDS};

    use super::*;

    #[test]
    fn the_line_of_a_task_has_what_is_not_as_planned() {
        let mut stats = Stats::of("servo", None);
        assert_eq!(stats.to_string(), "servo: 0 ran, 0 missed");
        (stats.counts.ran, stats.counts.missed) = (9, 2);
        (stats.counts.over_budget, stats.counts.over_release) = (3, 1);
        assert_eq!(
            stats.to_string(),
            "servo: 9 ran, 2 missed, 3 over budget, 1 still ran at the next release"
        );
        let us = |us| Some(Span::from_us(us));
        (stats.p50, stats.p99, stats.p99_9) = (us(1), us(2), us(3));
        stats.counts.max = us(4_000);
        assert!(stats.to_string().ends_with("; lateness p50 1.00 µs, max 4.00 ms"), "{stats}");
        stats.counts.ran = 998;
        let whole = "; lateness p50 1.00 µs, p99 2.00 µs, p99.9 3.00 µs, max 4.00 ms";
        assert!(stats.to_string().ends_with(whole), "{stats}");
        // Nothing followed two: one in 1000 is one of them, or the last before.
        stats.counts.censored = 2;
        let least = "; lateness p50 1.00 µs, p99 2.00 µs, p99.9 ≥ 3.00 µs, max ≥ 4.00 ms";
        assert!(stats.to_string().ends_with(least), "{stats}");
    }

    #[test]
    fn a_quantile_is_not_below_the_exact_one_and_within_a_bucket_of_it() {
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let mut page = Page::new(&words, PageKind::Lateness).expect("fits");
        let view = View::open(&words).expect("a page");
        assert_eq!(quantile(&view, 0.5), None);
        let mut push = |ns| page.keep(At::default(), Span::from_ns(ns), None, Overruns::default());
        (1..=1_000).for_each(|k| push(k * 100));
        for (share, exact) in [(0.0, 100), (0.5, 50_000), (0.99, 99_000), (1.0, 100_000)] {
            let ns = quantile(&view, share).expect("some").as_ns();
            assert!(ns >= exact && ns as f64 <= exact as f64 * 1.008, "{share}: {ns}");
        }
        assert_eq!((quantile(&view, -0.1), quantile(&view, f64::NAN)), (None, None));
        (0..1_000).for_each(|_| push(-7));
        assert_eq!(quantile(&view, 0.25), Some(Span::ZERO));
        push(i64::MAX);
        assert_eq!(quantile(&view, 1.0), Some(Span::from_ns(i64::MAX)));
    }
}
