//! What each batch of a campaign gave, in at most [`ROWS_MAX`] rows: where there are more,
//! neighbours become one.
//!
//! Counts and maxima of a row that stands for several batches are exact. Its quantiles are the
//! largest of any of them, and `stretches` says how many there are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most rows of a campaign.
pub const ROWS_MAX: usize = 512;

/// One batch of one run, or several that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BatchRow {
    /// The setup, as `setups` counts them.
    pub setup: usize,
    /// Which of its runs.
    pub run: usize,
    /// The number of the boot; of several the first.
    pub boot: u32,
    /// When it began, in seconds since 1970.
    pub from_unix_s: i64,
    /// When it ended.
    pub to_unix_s: i64,
    /// How many batches it stands for.
    #[serde(rename = "stretches")]
    pub batches: u32,
    /// Recorded cycles.
    pub cycles: u64,
    /// Releases that never ran.
    pub missed: u64,
    /// Cycles that ran but did not fit in the recorder.
    pub unrecorded: u64,
    /// Missed releases known only to be at least a period late.
    #[serde(default)]
    pub censored: u64,
    /// Median of lateness; of several batches the largest. Null where n is too small.
    pub p50_ns: Option<i64>,
    /// 99 % quantile, likewise.
    pub p99_ns: Option<i64>,
    /// 99.9 % quantile, likewise.
    pub p99_9_ns: Option<i64>,
    /// Largest lateness; a lower bound where releases are only known to be a period late or cycles
    /// went unrecorded.
    pub max_ns: Option<i64>,
}

impl BatchRow {
    /// Releases whose lateness is not known, which may have been later than `max_ns`.
    pub fn unknown(&self) -> u64 {
        self.censored.saturating_add(self.unrecorded)
    }

    /// Merges the row that follows.
    fn add(&mut self, next: &Self) {
        self.to_unix_s = next.to_unix_s;
        self.batches = self.batches.saturating_add(next.batches);
        self.cycles += next.cycles;
        self.missed += next.missed;
        self.unrecorded += next.unrecorded;
        self.censored += next.censored;
        self.p50_ns = self.p50_ns.max(next.p50_ns);
        self.p99_ns = self.p99_ns.max(next.p99_ns);
        self.p99_9_ns = self.p99_9_ns.max(next.p99_9_ns);
        self.max_ns = self.max_ns.max(next.max_ns);
    }

    fn is_sound(&self) -> bool {
        let counts = [self.cycles, self.missed, self.unrecorded, self.censored];
        counts.iter().all(|&count| count <= 1 << 56)
    }
}

/// All rows, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchRows {
    rows: Vec<BatchRow>,
}

impl BatchRows {
    /// Adds the next row; when the list is full, merges two neighbours.
    pub fn push(&mut self, row: BatchRow) {
        self.rows.push(row);
        if self.rows.len() > ROWS_MAX {
            self.thin();
        }
    }

    /// All rows.
    pub fn all(&self) -> &[BatchRow] {
        &self.rows
    }

    /// Joins the two neighbours that stand for the fewest batches, the oldest of them: of one boot
    /// rather than of two, and never of two setups or runs.
    fn thin(&mut self) {
        let next = |at: usize| {
            let row = &self.rows[at];
            let same = |other: &BatchRow| (other.setup, other.run) == (row.setup, row.run);
            let after = self.rows[at + 1..].iter().position(same)? + at + 1;
            let other = &self.rows[after];
            let batches = row.batches.saturating_add(other.batches);
            Some((row.boot != other.boot, batches, at, after))
        };
        if let Some((_, _, at, after)) = (0..self.rows.len()).filter_map(next).min() {
            let second = self.rows.remove(after);
            self.rows[at].add(&second);
        }
    }

    pub(super) fn is_sound(&self, runs_of: impl Fn(usize) -> usize) -> bool {
        self.rows.len() <= ROWS_MAX
            && self.rows.iter().all(|row| row.is_sound() && row.run < runs_of(row.setup))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_year_of_hours_stays_within_its_rows_and_loses_no_count() {
        let mut rows = BatchRows::default();
        for hour in 0..365 * 24_i64 {
            for run in 0..2 {
                rows.push(BatchRow {
                    run,
                    boot: (hour / 2_000) as u32,
                    from_unix_s: hour * 3_600,
                    to_unix_s: (hour + 1) * 3_600,
                    batches: 1,
                    cycles: 10,
                    p50_ns: Some(hour % 50),
                    max_ns: Some(hour),
                    ..BatchRow::default()
                });
            }
        }
        assert!(rows.all().len() <= ROWS_MAX && rows.all().len() > ROWS_MAX / 2);
        let first: Vec<&BatchRow> = rows.all().iter().filter(|row| row.run == 0).collect();
        assert_eq!(first.iter().map(|row| row.cycles).sum::<u64>(), 365 * 24 * 10);
        assert!(
            first.iter().all(|row| row.from_unix_s / 7_200_000 == (row.to_unix_s - 1) / 7_200_000)
        );
        assert!(first.windows(2).all(|two| two[0].to_unix_s == two[1].from_unix_s));
        assert_eq!(first.last().and_then(|row| row.max_ns), Some(365 * 24 - 1));
        let longest = first.iter().map(|row| row.batches).max();
        assert!(longest.is_some_and(|most| most <= 64), "{longest:?}: evenly");
    }
}
