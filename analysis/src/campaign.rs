//! Many recordings of the same loops as one: what a soak keeps over hours, reboots and months.
//!
//! A *campaign* is a sequence of *batches* (an hour each, say) on one machine. Batches with one
//! [`Setup`] are added up in one [`Pool`], which keeps a [`Total`] of each run; a changed kernel or
//! governor begins another pool. Memory, and the file ([`mod@file`]), stay within bounds that are
//! fixed beforehand: every list here has a limit, and nothing keeps samples. Reads no clock and no
//! file.

mod collector;
mod counted;
mod ends;
pub mod file;
mod history;
mod maxima;
mod outliers;
mod row;
mod setup;
mod sound;
mod total;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use collector::{Collector, Start};
pub use counted::WatchedThresholds;
pub use ends::Ends;
pub use history::{Boot, CampaignEvent};
pub use maxima::{BLOCK_CYCLES, BLOCKS_MAX, Maxima};
pub use outliers::{OUTLIERS_MAX, Outlier, Outliers};
pub use row::{BatchRow, BatchRows, ROWS_MAX};
pub use setup::{RunSetup, Setup, different};
pub use sound::plain;
pub use total::{Effort, Total};

use crate::quantile::Probability;

/// The most runs of one setup.
pub const RUNS_MAX: usize = 16;
/// The most totals of a campaign: setups times runs.
pub const TOTALS_MAX: usize = 32;
/// The most boots that are listed.
pub const BOOTS_MAX: usize = 256;
/// The most events that are listed.
pub const EVENTS_MAX: usize = 256;

/// All batches with one setup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    setup: Setup,
    totals: Vec<Total>,
    /// Time from the start to the end of all batches, ns.
    measured_ns: u64,
}

impl Pool {
    /// What all batches have in common.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The totals, one for each run of the setup.
    pub fn totals(&self) -> &[Total] {
        &self.totals
    }

    /// How long it was measured, loads' starts and ends included.
    pub fn measured_ns(&self) -> u64 {
        self.measured_ns
    }
}

/// One batch while it runs: a collector for each run.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Which pool it belongs to.
    pub pool: usize,
    /// One for each run of the setup.
    pub collectors: Vec<Collector>,
}

/// When a batch ran and what was measured, at its end or so far.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    /// When it began, in seconds since 1970.
    pub from_unix_s: i64,
    /// When it ended.
    pub to_unix_s: i64,
    /// How long it was, by a monotonic clock.
    pub measured_ns: u64,
    /// What the process counted for each run.
    pub efforts: Vec<Effort>,
}

/// A campaign.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Its name.
    pub name: String,
    /// What was requested, as options with their values.
    #[serde(rename = "asked")]
    pub requested: BTreeMap<String, String>,
    /// Which machine it is of, as names and values.
    pub machine: BTreeMap<String, String>,
    /// When it began, in seconds since 1970.
    pub began_unix_s: i64,
    /// Limits that were broken, each listed once, in words.
    pub broken: Vec<String>,
    pools: Vec<Pool>,
    boots: Ends<Boot, BOOTS_MAX>,
    boots_ever: u32,
    rows: BatchRows,
    events: Ends<CampaignEvent, EVENTS_MAX>,
}

/// A campaign has no room for another setup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the campaign is full: all its setups together can have at most {TOTALS_MAX} runs")]
pub struct Full;

impl Campaign {
    /// A campaign in which nothing was measured yet.
    pub fn new(
        name: &str,
        requested: BTreeMap<String, String>,
        machine: BTreeMap<String, String>,
        now_unix_s: i64,
    ) -> Self {
        let campaign = Self { name: name.to_owned(), requested, machine, ..Self::default() };
        Self { began_unix_s: now_unix_s, ..campaign.fitted() }
    }

    /// Starts a session, in a boot that the campaign knows or in a new one.
    pub fn begin(&mut self, boot_id: &str, kernel: &str, now_unix_s: i64) {
        let id = plain(boot_id);
        if let Some(last) = self.boots.last_mut()
            && last.id == id
            && !id.is_empty()
        {
            last.sessions = last.sessions.saturating_add(1);
            (last.to_unix_s, last.ended) = (now_unix_s, false);
            return;
        }
        self.boots_ever = self.boots_ever.saturating_add(1);
        self.boots.push(Boot {
            number: self.boots_ever,
            id,
            from_unix_s: now_unix_s,
            to_unix_s: now_unix_s,
            kernel: plain(kernel),
            sessions: 1,
            ..Boot::default()
        });
    }

    /// Ends the session normally.
    pub fn end(&mut self, now_unix_s: i64) {
        if let Some(last) = self.boots.last_mut() {
            (last.to_unix_s, last.ended) = (now_unix_s, true);
        }
    }

    /// The pool for batches with this setup, and how the setup differs from the latest one.
    ///
    /// # Errors
    /// If the setup is new and the campaign is full.
    pub fn pool(&mut self, setup: &Setup) -> Result<(usize, Vec<String>), Full> {
        let setup = &setup.fitted();
        let latest = self.rows.all().last().map_or(self.pools.len().wrapping_sub(1), |r| r.setup);
        let differences =
            self.pools.get(latest).map_or_else(Vec::new, |pool| pool.setup.differences(setup));
        if let Some(last) = self.boots.last_mut() {
            last.setup = setup.digest();
        }
        if let Some(at) = self.pools.iter().position(|pool| pool.setup == *setup) {
            return Ok((at, differences));
        }
        let totals: usize = self.pools.iter().map(|pool| pool.totals.len()).sum();
        if setup.runs.len() > RUNS_MAX || totals + setup.runs.len() > TOTALS_MAX {
            return Err(Full);
        }
        let totals = setup.runs.iter().map(|_| Total::default()).collect();
        self.pools.push(Pool { setup: setup.clone(), totals, measured_ns: 0 });
        Ok((self.pools.len() - 1, differences))
    }

    /// Begins a batch of a pool: `starts` in the order of its runs.
    pub fn batch(&self, pool: usize, starts: &[Start], watched: &WatchedThresholds) -> Batch {
        let totals = self.pools.get(pool).map_or(&[][..], |pool| &pool.totals);
        let collector = |(total, &start): (&Total, &Start)| total.collector(start, watched);
        Batch { pool, collectors: totals.iter().zip(starts).map(collector).collect() }
    }

    /// Adds a batch that this campaign began and that nothing was added after. A run without cycles
    /// and missed releases has no row. Returns the rows of this batch alone.
    pub fn add(&mut self, batch: Batch, span: &Extent) -> Vec<BatchRow> {
        let boot = self.boot();
        let mut rows = Vec::new();
        let Some(pool) = self.pools.get_mut(batch.pool) else { return rows };
        pool.measured_ns = pool.measured_ns.saturating_add(span.measured_ns);
        let parts = batch.collectors.into_iter().zip(&span.efforts).zip(&mut pool.totals);
        for (run, ((collector, effort), total)) in parts.enumerate() {
            let (releases, _) = collector.finish(effort.missed, effort.unrecorded);
            let (known, unknown) = (releases.known(), releases.unknown());
            let quantile = |p| known.histogram().quantile_below(p, unknown);
            let row = BatchRow {
                setup: batch.pool,
                run,
                boot,
                from_unix_s: span.from_unix_s,
                to_unix_s: span.to_unix_s,
                batches: 1,
                cycles: collector.cycles(),
                missed: effort.missed,
                unrecorded: effort.unrecorded,
                censored: releases.censored,
                p50_ns: quantile(Probability::P50),
                p99_ns: quantile(Probability::P99),
                p99_9_ns: quantile(Probability::P99_9),
                max_ns: releases.stats_of(&known).max.map(|ns| ns as i64),
            };
            if row.cycles + row.missed > 0 {
                self.rows.push(row.clone());
                rows.push(row);
            }
            total.add(collector, effort);
        }
        if let Some(last) = self.boots.last_mut() {
            last.to_unix_s = span.to_unix_s;
        }
        rows
    }

    /// Notes that something happened.
    pub fn note(&mut self, at_unix_s: i64, what: &str) {
        let boot = self.boot();
        self.events.push(CampaignEvent { at_unix_s, boot, what: plain(what) });
    }

    /// The number of the latest boot; 0 before the first.
    pub fn boot(&self) -> u32 {
        self.boots_ever
    }

    /// The boots, oldest first.
    pub fn boots(&self) -> &Ends<Boot, BOOTS_MAX> {
        &self.boots
    }

    /// What happened, oldest first.
    pub fn events(&self) -> &Ends<CampaignEvent, EVENTS_MAX> {
        &self.events
    }

    /// The pools, in the order of the first use of their setups.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The rows, oldest first.
    pub fn rows(&self) -> &[BatchRow] {
        self.rows.all()
    }

    /// How long it was measured in all, ns.
    pub fn measured_ns(&self) -> u64 {
        self.pools.iter().fold(0, |sum, pool| sum.saturating_add(pool.measured_ns))
    }
}

#[cfg(test)]
mod tests;
