//! What each stretch of a campaign gave, in at most [`ROWS_MAX`] rows: where there are more,
//! neighbours become one.
//!
//! Counts and maxima of a row that stands for several stretches are exact. Its quantiles are the
//! largest that any of them had, and it says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most rows of a campaign.
pub const ROWS_MAX: usize = 512;

/// One stretch of one run, or several that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
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
    /// How many stretches it stands for.
    pub stretches: u32,
    /// Recorded cycles.
    pub cycles: u64,
    /// Releases that never ran.
    pub missed: u64,
    /// Cycles that ran but did not fit in the recorder.
    pub unrecorded: u64,
    /// Median of lateness; of several stretches the largest. Null where n is too small.
    pub p50_ns: Option<i64>,
    /// 99 % quantile, likewise.
    pub p99_ns: Option<i64>,
    /// 99.9 % quantile, likewise.
    pub p99_9_ns: Option<i64>,
    /// Largest lateness.
    pub max_ns: Option<i64>,
}

impl Row {
    /// Takes in the one that follows.
    fn add(&mut self, next: &Self) {
        self.to_unix_s = next.to_unix_s;
        self.stretches = self.stretches.saturating_add(next.stretches);
        self.cycles += next.cycles;
        self.missed += next.missed;
        self.unrecorded += next.unrecorded;
        self.p50_ns = self.p50_ns.max(next.p50_ns);
        self.p99_ns = self.p99_ns.max(next.p99_ns);
        self.p99_9_ns = self.p99_9_ns.max(next.p99_9_ns);
        self.max_ns = self.max_ns.max(next.max_ns);
    }

    fn is_sound(&self) -> bool {
        [self.cycles, self.missed, self.unrecorded].iter().all(|&count| count <= 1 << 56)
    }
}

/// All rows, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    rows: Vec<Row>,
}

impl Rows {
    /// Adds the next; makes two neighbours one where there is no room.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
        if self.rows.len() > ROWS_MAX {
            self.thin();
        }
    }

    /// All rows.
    pub fn all(&self) -> &[Row] {
        &self.rows
    }

    /// Joins the two neighbours that stand for the fewest stretches, the oldest of them: of one
    /// boot rather than of two, and never of two setups or runs.
    fn thin(&mut self) {
        let next = |at: usize| {
            let row = &self.rows[at];
            let same = |other: &Row| (other.setup, other.run) == (row.setup, row.run);
            let after = self.rows[at + 1..].iter().position(same)? + at + 1;
            let other = &self.rows[after];
            let stretches = row.stretches.saturating_add(other.stretches);
            Some((row.boot != other.boot, stretches, at, after))
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
        let mut rows = Rows::default();
        for hour in 0..365 * 24_i64 {
            for run in 0..2 {
                rows.push(Row {
                    run,
                    boot: (hour / 2_000) as u32,
                    from_unix_s: hour * 3_600,
                    to_unix_s: (hour + 1) * 3_600,
                    stretches: 1,
                    cycles: 10,
                    p50_ns: Some(hour % 50),
                    max_ns: Some(hour),
                    ..Row::default()
                });
            }
        }
        assert!(rows.all().len() <= ROWS_MAX && rows.all().len() > ROWS_MAX / 2);
        let first: Vec<&Row> = rows.all().iter().filter(|row| row.run == 0).collect();
        assert_eq!(first.iter().map(|row| row.cycles).sum::<u64>(), 365 * 24 * 10);
        assert!(
            first.iter().all(|row| row.from_unix_s / 7_200_000 == (row.to_unix_s - 1) / 7_200_000)
        );
        assert!(first.windows(2).all(|two| two[0].to_unix_s == two[1].from_unix_s));
        assert_eq!(first.last().and_then(|row| row.max_ns), Some(365 * 24 - 1));
        let longest = first.iter().map(|row| row.stretches).max();
        assert!(longest.is_some_and(|most| most <= 64), "{longest:?}: evenly");
    }
}
