//! Many recordings of the same loops as one: what a soak keeps over hours, reboots and months.
//!
//! A *campaign* is a sequence of *batches* (an hour each, say) on one machine. Batches with one
//! [`Setup`] are added up in one [`Pool`], which keeps a [`Total`] of each run; a changed kernel or
//! governor begins another pool. Memory, and the file ([`Campaign::to_bytes`]), stay within bounds
//! that are fixed beforehand: every list here has a limit, and nothing keeps samples. Reads no
//! clock and no file.

mod total;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plain::steers;
use crate::plot::HeatColumn;
use crate::quantile::Probability;

pub use total::{
    BLOCK_CYCLES, BLOCKS_MAX, Collector, Effort, Maxima, OUTLIERS_MAX, OtherTime, Outlier,
    Outliers, Start, Total, WatchedThresholds,
};

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
    /// The setup that all batches have in common.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The totals, one for each run of the setup.
    pub fn totals(&self) -> &[Total] {
        &self.totals
    }

    /// The time measured, ns, loads' starts and ends included.
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
    /// Its length by a monotonic clock, ns.
    pub measured_ns: u64,
    /// The counts of the process, by run.
    pub efforts: Vec<Effort>,
}

/// A campaign.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Its name.
    pub name: String,
    /// The request, as options with their values.
    #[serde(rename = "asked")]
    pub requested: BTreeMap<String, String>,
    /// Which machine it is of, as names and values.
    pub machine: BTreeMap<String, String>,
    /// When it began, in seconds since 1970.
    pub began_unix_s: i64,
    /// Limits that were broken, each listed once, in words.
    pub broken: Vec<String>,
    /// The setup, the run and the limit of each line of `broken`, in the same order; fewer in
    /// campaigns of earlier versions.
    #[serde(default)]
    broken_about: Vec<BrokenLimit>,
    pools: Vec<Pool>,
    boots: Ends<Boot, BOOTS_MAX>,
    boots_ever: u32,
    rows: BatchRows,
    events: Ends<CampaignEvent, EVENTS_MAX>,
}

/// A limit or claim of a run, which was broken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokenLimit {
    /// The number of the setup.
    pub setup: usize,
    /// The number of the run in it.
    pub run: usize,
    /// The limit or claim, as it is written.
    pub limit: String,
}

impl Campaign {
    /// Adds that a limit was broken, in words; false where it is listed already, or too many are.
    pub fn add_broken(&mut self, about: &BrokenLimit, why: &str) -> bool {
        let about = BrokenLimit { limit: plain(&about.limit), ..*about };
        if self.broken_about.contains(&about) || self.broken.len() >= LIST_MAX {
            return false;
        }
        // Of those of before nothing is known.
        self.broken_about.resize(self.broken.len(), BrokenLimit::default());
        self.broken.push(plain(why));
        self.broken_about.push(about);
        true
    }

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
                by_lateness: HeatColumn::of(known.histogram()).rows(),
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
    pub fn note(&mut self, at_unix_s: i64, event: &str) {
        let boot = self.boot();
        self.events.push(CampaignEvent { at_unix_s, boot, what: plain(event) });
    }

    /// The number of the latest boot; 0 before the first.
    pub fn boot(&self) -> u32 {
        self.boots_ever
    }

    /// The boots, oldest first.
    pub fn boots(&self) -> &Ends<Boot, BOOTS_MAX> {
        &self.boots
    }

    /// The events of its history, oldest first.
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

    /// The time measured in all, ns.
    pub fn measured_ns(&self) -> u64 {
        self.pools.iter().fold(0, |sum, pool| sum.saturating_add(pool.measured_ns))
    }

    /// The bytes of a state file; `number` rises with each. Texts that are too long are cut, so
    /// that what is written can be read again.
    pub fn to_bytes(&self, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        // A struct of numbers, texts and lists can always be written as JSON.
        let written = match self.has_fit_texts() {
            true => serde_json::to_writer(&mut bytes, self),
            false => serde_json::to_writer(&mut bytes, &self.fitted()),
        };
        if written.is_err() {
            bytes.truncate(HEADER_BYTES);
        }
        let length = u32::try_from(bytes.len() - HEADER_BYTES).unwrap_or(0);
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
        bytes[16..24].copy_from_slice(&number.to_le_bytes());
        let crc = checksum(&bytes);
        bytes[24..28].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// A campaign from the bytes of a state file, and its number.
    ///
    /// # Errors
    /// In one line, why the bytes are not a campaign.
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, u64), CampaignFileError> {
        let magic = &bytes[..bytes.len().min(MAGIC.len())];
        if magic.is_empty() || !MAGIC.starts_with(magic) {
            return Err(CampaignFileError::Foreign);
        }
        let torn = |needed| CampaignFileError::Torn { needed, present: bytes.len() };
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or_else(|| torn(HEADER_BYTES))?;
        let word = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&header[at..at + 4]);
            u32::from_le_bytes(word)
        };
        if word(8) != VERSION {
            return Err(CampaignFileError::Version(word(8)));
        }
        let needed = HEADER_BYTES.saturating_add(word(12) as usize);
        if bytes.len() != needed {
            return Err(torn(needed));
        }
        if checksum(bytes) != word(24) {
            return Err(CampaignFileError::Checksum);
        }
        let json = serde_json::from_slice(&bytes[HEADER_BYTES..]);
        let campaign: Self = json.map_err(|why| CampaignFileError::Json(one_line(&why)))?;
        if !campaign.is_sound() {
            return Err(CampaignFileError::Numbers);
        }
        Ok((campaign, u64::from(word(16)) | u64::from(word(20)) << 32))
    }

    /// This setup with the texts cleaned that the public fields allow to set: what is written can
    /// be read again.
    fn fitted(&self) -> Self {
        Self {
            name: plain(&self.name),
            requested: map(&self.requested),
            machine: map(&self.machine),
            broken: list(&self.broken),
            broken_about: broken_about(&self.broken_about),
            ..self.clone()
        }
    }

    /// True where those texts are clean.
    fn has_fit_texts(&self) -> bool {
        let texts = [&self.requested, &self.machine];
        plain(&self.name) == self.name
            && texts.into_iter().all(|texts| map(texts) == *texts)
            && list(&self.broken) == self.broken
            && broken_about(&self.broken_about) == self.broken_about
    }

    /// Returns true where it is consistent: lists within their limits, sums that agree, no text
    /// with control characters.
    fn is_sound(&self) -> bool {
        let totals: usize = self.pools.iter().map(|pool| pool.totals.len()).sum();
        let text = |text: &str| plain(text) == text;
        let pool = |pool: &Pool| {
            pool.setup.runs.len() == pool.totals.len()
                && pool.totals.len() <= RUNS_MAX
                && pool.measured_ns <= 1 << 62
                && pool.setup.fitted() == pool.setup
                && pool.totals.iter().all(Total::is_sound)
        };
        totals <= TOTALS_MAX
            && self.has_fit_texts()
            && self.pools.len() <= TOTALS_MAX
            && self.pools.iter().all(pool)
            && self.boots.is_sound(|boot| text(&boot.id) && text(&boot.kernel) && text(&boot.setup))
            && self.events.is_sound(|event| text(&event.what))
            && self.rows.is_sound(|at| self.pools.get(at).map_or(0, |pool| pool.totals.len()))
    }
}

/// A campaign has no room for another setup.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the campaign is full: all its setups together can have at most {TOTALS_MAX} runs")]
pub struct Full;

/// The first bytes of a state file.
pub const MAGIC: [u8; 8] = *b"PCAMPAGN";

/// The version of the layout.
pub const VERSION: u32 = 2;

/// Bytes of the header: magic, version, length of the JSON, number, checksum of all of it.
pub const HEADER_BYTES: usize = 8 + 4 + 4 + 8 + 4;

/// The most bytes of a file: [`TOTALS_MAX`] totals of at most [`TOTAL_BYTES_MAX`] each, and
/// the lists.
pub const FILE_BYTES_MAX: usize = (TOTALS_MAX + 1) * TOTAL_BYTES_MAX;

/// The most bytes that one run of one setup takes, every bucket full; with one mode, of the order
/// of ten thousand.
pub const TOTAL_BYTES_MAX: usize = 3 << 20;

/// Why bytes are not a campaign.
///
/// A file is read back whole and checked, or refused with the reason. Two such files are written in
/// turn; the number in the header says which is newer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CampaignFileError {
    /// They do not begin with the magic.
    #[error("not a punctual campaign file")]
    Foreign,
    /// They have another version.
    #[error("campaign file version {0} is not supported: this punctual reads version {VERSION}")]
    Version(u32),
    /// There are fewer or more bytes than the header states.
    #[error("wrong length: {present} bytes, expected {needed}")]
    Torn {
        /// Bytes needed.
        needed: usize,
        /// Bytes present.
        present: usize,
    },
    /// The checksum does not match.
    #[error("damaged: the checksum does not match")]
    Checksum,
    /// The JSON is not that of a campaign.
    #[error("damaged: {0}")]
    Json(String),
    /// The numbers contradict each other or exceed the limits of a campaign.
    #[error("damaged: its numbers contradict each other or are out of range")]
    Numbers,
}

/// The checksum of all bytes except itself.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..HEADER_BYTES - 4]);
    hasher.update(&bytes[HEADER_BYTES..]);
    hasher.finalize()
}

fn one_line(why: &serde_json::Error) -> String {
    why.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

/// One boot of the machine, or the part of it in which the campaign ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Boot {
    /// Counted from 1.
    pub number: u32,
    /// The kernel's identifier of the boot; empty where the kernel has none.
    pub id: String,
    /// When the campaign began in it, in seconds since 1970.
    pub from_unix_s: i64,
    /// When it was last seen running.
    pub to_unix_s: i64,
    /// The kernel's release.
    pub kernel: String,
    /// The digest of the setup.
    pub setup: String,
    /// Starts of the campaign in this boot, 1 or more.
    pub sessions: u32,
    /// True where the last session ended normally; false where it was cut off.
    pub ended: bool,
}

/// Something that happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CampaignEvent {
    /// When, in seconds since 1970.
    pub at_unix_s: i64,
    /// The number of the boot.
    pub boot: u32,
    /// The event in words, one line.
    pub what: String,
}

/// One loop under one condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunSetup {
    /// The name of the loop in results.
    pub name: String,
    /// The CPU that it is pinned to.
    pub cpu: Option<u32>,
    /// Its period.
    pub period_ns: u64,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC.
    pub phase_ns: u64,
    /// The policy that the thread really had.
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// "sleep" or "spin".
    pub wait: String,
    /// Names of the loads; none means idle.
    pub load: Vec<String>,
}

impl RunSetup {
    fn words(&self) -> String {
        let cpu = self.cpu.map_or_else(String::new, |cpu| format!("CPU {cpu}, "));
        let priority = self.priority.map_or_else(String::new, |p| format!(" {p}"));
        let load = if self.load.is_empty() { "none".to_owned() } else { self.load.join(",") };
        format!(
            "{cpu}{} ns + {} ns, {}{priority}, {}, load {load}",
            self.period_ns, self.phase_ns, self.policy, self.wait
        )
    }
}

/// The loops, and what of the machine decides how late they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setup {
    /// All runs.
    pub runs: Vec<RunSetup>,
    /// Facts by name, as text: kernel, governor, isolated CPUs and their like.
    pub facts: BTreeMap<String, String>,
}

impl Setup {
    /// A short name of this setup: CRC-32 of all of it, in hexadecimal.
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{:08x}", crc32fast::hash(text.as_bytes()))
    }

    /// The differences of `later`, one phrase each: "kernel: 6.1 → 6.12".
    pub fn differences(&self, later: &Self) -> Vec<String> {
        let mut differences = different(&self.facts, &later.facts);
        if self.runs.len() != later.runs.len() {
            differences.push(format!("runs: {} → {}", self.runs.len(), later.runs.len()));
        }
        for (mine, theirs) in self.runs.iter().zip(&later.runs).filter(|(a, b)| a != b) {
            differences.push(format!("run: {} → {}", mine.words(), theirs.words()));
        }
        differences
    }

    /// This setup as a campaign keeps it: plain texts.
    fn fitted(&self) -> Self {
        let run = |run: &RunSetup| RunSetup {
            name: plain(&run.name),
            policy: plain(&run.policy),
            wait: plain(&run.wait),
            load: list(&run.load),
            ..run.clone()
        };
        Self { runs: self.runs.iter().map(run).collect(), facts: map(&self.facts) }
    }
}

/// The differences of two lists of names and values, one phrase each.
pub fn different(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let shown = |value: Option<&String>| value.map_or("-".to_owned(), Clone::clone);
    names
        .into_iter()
        .filter(|&name| a.get(name) != b.get(name))
        .map(|name| format!("{name}: {} → {}", shown(a.get(name)), shown(b.get(name))))
        .collect()
}

/// The longest text in a campaign, in characters; what is longer is cut.
const TEXT_MAX: usize = 400;

/// Broken limits as a campaign keeps them: the first `LIST_MAX`, without control characters.
fn broken_about(about: &[BrokenLimit]) -> Vec<BrokenLimit> {
    let fit = |about: &BrokenLimit| BrokenLimit { limit: plain(&about.limit), ..*about };
    about.iter().take(LIST_MAX).map(fit).collect()
}

/// The most names, loads or broken limits of a campaign.
const LIST_MAX: usize = 64;

/// Text as a campaign keeps it: without what steers a reader, and not too long.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if steers(c) { ' ' } else { c }).take(TEXT_MAX).collect()
}

fn map(texts: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    texts.iter().take(LIST_MAX).map(|(name, value)| (plain(name), plain(value))).collect()
}

fn list(texts: &[String]) -> Vec<String> {
    texts.iter().take(LIST_MAX).map(|text| plain(text)).collect()
}

/// A list of at most `MAX` entries.
///
/// For rare events over months. Never longer than its limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ends<T, const MAX: usize> {
    listed: Vec<T>,
    unlisted: u64,
}

impl<T, const MAX: usize> Ends<T, MAX> {
    /// Adds the next entry; when the list is full, drops the one in the middle.
    pub fn push(&mut self, entry: T) {
        if self.listed.len() >= MAX {
            self.listed.remove(MAX / 2);
            self.unlisted += 1;
        }
        self.listed.push(entry);
    }

    /// The entries that are kept, oldest first.
    pub fn listed(&self) -> &[T] {
        &self.listed
    }

    /// The number of entries that were dropped.
    pub fn unlisted(&self) -> u64 {
        self.unlisted
    }

    fn last_mut(&mut self) -> Option<&mut T> {
        self.listed.last_mut()
    }

    fn is_sound(&self, each: impl Fn(&T) -> bool) -> bool {
        self.listed.len() <= MAX && self.unlisted <= 1 << 56 && self.listed.iter().all(each)
    }
}

impl<T, const MAX: usize> Default for Ends<T, MAX> {
    fn default() -> Self {
        Self { listed: Vec::new(), unlisted: 0 }
    }
}

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
    /// Batches that the row stands for, 1 or more.
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
    /// Releases by lateness: (lower end of a bucket in ns, count); each bucket ends where the next
    /// quarter of a doubling begins. Missed releases are in it with their lateness where it is
    /// known. Empty in campaigns of earlier versions.
    #[serde(default)]
    pub by_lateness: Vec<(u64, u64)>,
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
        self.by_lateness =
            HeatColumn::of_rows(0, &[&self.by_lateness[..], &next.by_lateness].concat()).rows();
    }

    fn is_sound(&self) -> bool {
        let counts = [self.cycles, self.missed, self.unrecorded, self.censored];
        let late = self.by_lateness.iter().map(|(_, count)| *count);
        self.by_lateness.len() <= HeatColumn::ROWS
            && counts.into_iter().chain(late).all(|count| count <= 1 << 56)
    }
}

/// All rows, oldest first.
///
/// At most [`ROWS_MAX`]: where there are more, neighbours become one. Counts and maxima of a row
/// that stands for several batches are exact; its quantiles are the largest of any of them.
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
            let same = |later: &BatchRow| (later.setup, later.run) == (row.setup, row.run);
            let after = self.rows[at + 1..].iter().position(same)? + at + 1;
            let next = &self.rows[after];
            let batches = row.batches.saturating_add(next.batches);
            Some((row.boot != next.boot, batches, at, after))
        };
        if let Some((_, _, at, after)) = (0..self.rows.len()).filter_map(next).min() {
            let second = self.rows.remove(after);
            self.rows[at].add(&second);
        }
    }

    fn is_sound(&self, runs_of: impl Fn(usize) -> usize) -> bool {
        self.rows.len() <= ROWS_MAX
            && self.rows.iter().all(|row| row.is_sound() && row.run < runs_of(row.setup))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::{Instant, Period, Span};

    use super::{CampaignFileError, HEADER_BYTES};
    use crate::recording::{Recording, RecordingConfig};

    fn setup(kernel: &str) -> Setup {
        let run = RunSetup { name: "idle".into(), period_ns: 1_000_000, ..RunSetup::default() };
        Setup { runs: vec![run], facts: BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]) }
    }

    fn start(boot: u32) -> Start {
        Start {
            period: Period::from_ns(1_000_000).unwrap(),
            epoch: Instant::from_ns(5_000_000),
            time_of_day_ns: 1_700_000_000_000_000_000,
            leave_out_cold: true,
            boot,
        }
    }

    fn sample(cycle: u64, lateness_ns: i64) -> Sample {
        let flags = if cycle == 0 { Flags::FIRST } else { Flags::NONE };
        Sample { cycle, lateness: Span::from_ns(lateness_ns), flags }
    }

    fn lateness(seed: u64, cycle: u64) -> i64 {
        let mixed = (seed << 32 | cycle).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        (mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 44) as i64 / 16 + 3_000
    }

    /// A batch of `cycles` in `campaign`, with this setup.
    fn run(campaign: &mut Campaign, setup: &Setup, seed: u64, cycles: u64) -> Vec<BatchRow> {
        let (pool, _) = campaign.pool(setup).unwrap();
        let watched =
            WatchedThresholds { lateness_ns: vec![50_000], ..WatchedThresholds::default() };
        let mut batch = campaign.batch(pool, &[start(campaign.boot())], &watched);
        (0..cycles).for_each(|k| batch.collectors[0].push(&sample(k, lateness(seed, k))));
        let from = seed as i64 * 3_600;
        campaign.add(
            batch,
            &Extent {
                from_unix_s: from,
                to_unix_s: from + 3_600,
                measured_ns: cycles * 1_000_000,
                efforts: vec![Effort { wall_ns: cycles * 1_000_000, ..Effort::default() }],
            },
        )
    }

    fn begun() -> Campaign {
        let mut campaign = Campaign::new("test", BTreeMap::new(), BTreeMap::new(), 0);
        campaign.begin("boot-a", "6.1", 0);
        campaign
    }

    #[test]
    fn batches_of_one_setup_are_one_run() {
        let mut campaign = begun();
        let mut whole = Recording::new(RecordingConfig {
            period: Period::from_ns(1_000_000),
            thresholds_ns: vec![50_000],
            ..RecordingConfig::default()
        });
        for seed in 0..5 {
            let rows = run(&mut campaign, &setup("6.1"), seed, 5_000);
            assert_eq!((rows.len(), rows[0].cycles), (1, 5_000));
            assert_eq!(rows[0].by_lateness.iter().map(|(_, count)| count).sum::<u64>(), 5_000);
            (0..5_000).for_each(|k| whole.push(&sample(k, lateness(seed, k))));
        }
        let (pooled, whole) = (campaign.pools()[0].totals()[0].outcome(), whole.finish(0));
        assert_eq!((pooled.cycles, &pooled.lateness_ns), (25_000, &whole.lateness_ns));
        assert_eq!(pooled.interval_ns, whole.interval_ns);
        assert_eq!(pooled.histogram, whole.histogram);
        assert_eq!(pooled.tails.exceedances(50_000), whole.tails.exceedances(50_000));
        assert_eq!(campaign.measured_ns(), 25_000_000_000);
        let outliers = campaign.pools()[0].totals()[0].outliers().kept();
        let late = &outliers[0];
        let since_start = late.at_unix_ns - start(1).time_of_day_ns - 5_000_000;
        assert_eq!(since_start, late.cycle as i64 * 1_000_000 + late.lateness_ns);
        assert_eq!((late.boot, Some(late.lateness_ns as f64)), (1, whole.lateness_ns.max));
    }

    #[test]
    fn a_changed_kernel_is_said_and_kept_apart() {
        let mut campaign = begun();
        run(&mut campaign, &setup("6.1"), 0, 2_000);
        campaign.begin("boot-b", "6.12", 9_000);
        let (pool, differences) = campaign.pool(&setup("6.12")).unwrap();
        assert_eq!((pool, differences), (1, vec!["kernel: 6.1 → 6.12".to_owned()]));
        run(&mut campaign, &setup("6.12"), 3, 1_000);
        let cycles: Vec<u64> = campaign.pools().iter().map(|p| p.totals()[0].cycles()).collect();
        assert_eq!(cycles, [2_000, 1_000]);
        // And back again: it goes on where it was.
        campaign.begin("boot-c", "6.1", 20_000);
        let (pool, differences) = campaign.pool(&setup("6.1")).unwrap();
        assert_eq!((pool, differences.len()), (0, 1));
        let boots = campaign.boots().listed();
        assert_eq!(boots.iter().map(|b| b.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(boots[0].setup != boots[1].setup && boots[0].setup == boots[2].setup);
    }

    #[test]
    fn one_boot_may_have_several_sessions() {
        let mut campaign = begun();
        assert!(!campaign.boots().listed()[0].ended);
        campaign.end(50);
        campaign.begin("boot-a", "6.1", 60);
        let boot = &campaign.boots().listed()[0];
        assert_eq!(
            (boot.sessions, boot.from_unix_s, boot.to_unix_s, boot.ended),
            (2, 0, 60, false)
        );
    }

    #[test]
    fn setups_beyond_the_limit_are_refused() {
        let mut campaign = begun();
        for kernel in 0..TOTALS_MAX {
            campaign.pool(&setup(&kernel.to_string())).unwrap();
        }
        assert_eq!(campaign.pool(&setup("one more")), Err(Full));
        assert!(campaign.pool(&setup("0")).is_ok());
    }

    #[test]
    fn text_from_outside_cannot_steer_a_terminal() {
        let mut campaign = Campaign::new("a\u{1b}[2Jb", BTreeMap::new(), BTreeMap::new(), 0);
        campaign.begin("id\n", "6.1\u{7}", 0);
        campaign.note(0, &"x".repeat(10_000));
        assert_eq!(
            (campaign.name.as_str(), &campaign.boots().listed()[0].kernel[..]),
            ("a [2Jb", "6.1 ")
        );
        assert_eq!(campaign.events().listed()[0].what.len(), 400);
        assert!(campaign.is_sound());
        // Whatever is set later is written so that it can be read.
        campaign.name.push('\u{1b}');
        campaign.broken = vec!["b".repeat(1_000); 100];
        campaign.requested = BTreeMap::from([("load\n".to_owned(), "x".repeat(1_000))]);
        let (back, _) = Campaign::from_bytes(&campaign.to_bytes(1)).unwrap();
        assert_eq!(
            (back.name.as_str(), back.broken.len(), back.requested["load "].len()),
            ("a [2Jb ", 64, 400)
        );
    }

    #[test]
    fn a_broken_limit_is_listed_once_by_what_it_is_about_and_not_by_its_words() {
        let mut campaign = begun();
        // A campaign of before has the words alone.
        campaign.broken.push("idle: max<1us: max is 2 µs".to_owned());
        let about = |run, limit: &str| BrokenLimit { setup: 0, run, limit: limit.to_owned() };
        // Names may have what separates the parts of a sentence.
        assert!(campaign.add_broken(&about(0, "max<1us"), "a: b: max<1us: max is 2 µs"));
        assert!(!campaign.add_broken(&about(0, "max<1us"), "a: b: max<1us: max is 3 µs"));
        assert!(campaign.add_broken(&about(1, "max<1us"), "a: b: max<1us: max is 2 µs"));
        assert!(campaign.add_broken(&about(0, "missed<1"), "a: b: missed is 2"));
        let (mut back, _) = Campaign::from_bytes(&campaign.to_bytes(1)).unwrap();
        assert!(!back.add_broken(&about(1, "max<1us"), "again"));
        assert_eq!(back.broken.len(), 4);
        for run in 2..200 {
            back.add_broken(&about(run, "max<1us"), "one of many");
        }
        assert_eq!(back.broken.len(), LIST_MAX);
        assert!(Campaign::from_bytes(&back.to_bytes(1)).is_ok());
    }

    #[test]
    fn a_setup_of_any_text_is_found_again() {
        let mut campaign = begun();
        let mut setup = setup("6.1");
        setup.runs[0].load = vec!["stress-ng \u{1b}".repeat(100); 70];
        setup.facts.insert("governor".into(), "g".repeat(1_000));
        run(&mut campaign, &setup, 0, 100);
        let (mut back, _) = Campaign::from_bytes(&campaign.to_bytes(1)).unwrap();
        assert_eq!(back.pool(&setup), Ok((0, Vec::new())));
    }

    #[test]
    fn a_campaign_does_not_extrapolate_and_says_why() {
        let mut campaign = begun();
        run(&mut campaign, &setup("6.1"), 0, 5_000);
        let outcome = campaign.pools()[0].totals()[0].outcome();
        let refused = outcome.claims.iter().find(|claim| claim.level == crate::claim::Level::L3);
        let refused = refused.unwrap();
        assert!(!refused.given && refused.bound_ns.is_none() && refused.n == 5_000);
        assert!(refused.statement.contains("maxima of 5 blocks of 1000"), "{}", refused.statement);
    }

    #[test]
    fn a_torn_or_damaged_file_is_refused() {
        let mut campaign = begun();
        run(&mut campaign, &setup("6.1"), 0, 3_000);
        let bytes = campaign.to_bytes(7);
        assert_eq!(Campaign::from_bytes(&bytes), Ok((campaign, 7)));
        for cut in [0, 3, 8, 20, HEADER_BYTES, bytes.len() - 1] {
            assert!(Campaign::from_bytes(&bytes[..cut]).is_err(), "{cut}");
        }
        for at in (0..bytes.len()).step_by(37).chain(0..HEADER_BYTES) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            assert!(Campaign::from_bytes(&flipped).is_err(), "{at}");
        }
        let mut newer = bytes.clone();
        newer[8] = 3;
        assert_eq!(Campaign::from_bytes(&newer), Err(CampaignFileError::Version(3)));
        let longer = [&bytes[..], b" "].concat();
        assert!(matches!(Campaign::from_bytes(&longer), Err(CampaignFileError::Torn { .. })));
    }

    proptest! {
        // Each case is thousands of cycles.
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn any_campaign_survives_its_bytes_and_goes_on_alike(
            batches in prop::collection::vec((0u64..4, 0u64..3_000), 0..6), number in any::<u64>(),
        ) {
            let mut campaign = begun();
            for &(seed, cycles) in &batches {
                run(&mut campaign, &setup(if seed < 2 { "a" } else { "b" }), seed, cycles);
            }
            let (mut back, read) = Campaign::from_bytes(&campaign.to_bytes(number)).unwrap();
            prop_assert_eq!((&back, read), (&campaign, number));
            run(&mut campaign, &setup("a"), 9, 500);
            run(&mut back, &setup("a"), 9, 500);
            prop_assert_eq!(back, campaign);
        }
    }
    #[test]
    fn differences_are_said_in_words() {
        let run =
            RunSetup { policy: "SCHED_FIFO".into(), priority: Some(90), ..Default::default() };
        let facts = |kernel: &str| BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]);
        let old = Setup { runs: vec![run.clone()], facts: facts("6.1") };
        let changed = RunSetup { policy: "SCHED_OTHER".into(), priority: None, ..run };
        let new = Setup { runs: vec![changed], facts: facts("6.12") };
        let found = old.differences(&new);
        assert_eq!(found[0], "kernel: 6.1 → 6.12");
        assert!(
            found[1].contains("SCHED_FIFO 90") && found[1].contains("SCHED_OTHER"),
            "{found:?}"
        );
        assert!(old.differences(&old).is_empty());
        assert_ne!(old.digest(), new.digest());
        let empty = BTreeMap::new();
        assert_eq!(different(&facts("6.1"), &empty), ["kernel: 6.1 → -"]);
    }

    #[test]
    fn the_first_and_the_last_stay() {
        let mut ends = Ends::<u32, 4>::default();
        (0..10).for_each(|n| ends.push(n));
        assert_eq!((ends.listed(), ends.unlisted()), (&[0, 1, 8, 9][..], 6));
    }

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
                    by_lateness: vec![(4 << (hour % 30), 10)],
                    ..BatchRow::default()
                });
            }
        }
        assert!(rows.all().len() <= ROWS_MAX && rows.all().len() > ROWS_MAX / 2);
        let first: Vec<&BatchRow> = rows.all().iter().filter(|row| row.run == 0).collect();
        assert_eq!(first.iter().map(|row| row.cycles).sum::<u64>(), 365 * 24 * 10);
        let late = first.iter().flat_map(|row| &row.by_lateness).map(|(_, count)| count);
        assert_eq!(late.sum::<u64>(), 365 * 24 * 10);
        assert!(
            first.iter().all(|row| row.from_unix_s / 7_200_000 == (row.to_unix_s - 1) / 7_200_000)
        );
        assert!(first.windows(2).all(|two| two[0].to_unix_s == two[1].from_unix_s));
        assert_eq!(first.last().and_then(|row| row.max_ns), Some(365 * 24 - 1));
        let longest = first.iter().map(|row| row.batches).max();
        assert!(longest.is_some_and(|most| most <= 64), "{longest:?}: evenly");
    }
}
