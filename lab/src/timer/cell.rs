//! One path to be started by time, with one background: blocks of expiries.
//!
//! Allocates nothing in a block. A block is bounded in time, whatever its period.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual_analysis::summary::Distribution;
use punctual_os::Errno;
use punctual_os::affinity::CpuMask;
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::descriptor::Descriptor;
use punctual_os::events::{self, SignalTimer};

use super::background::Background;
use super::deadline;
use super::outcome::TimerRow;

/// How long a block is.
pub(super) const BLOCK_NS: u64 = 20_000_000;
/// From the beginning of a block to its first expiry.
const LEAD_NS: u64 = 200_000;
/// Stamps in the large array, and in the one that stays in the cache.
const ARRAY: usize = 1 << 20;
const HOT: usize = 512;

/// How the thread learns of the time.
#[derive(Debug)]
pub(super) enum Path {
    Sleep,
    Timerfd(Descriptor),
    Posix(SignalTimer),
    Delay,
    /// A sleep under SCHED_DEADLINE, on any of these CPUs.
    Deadline(Box<CpuMask>),
}

/// The memory that stamps are stored in: expiry and lateness of both kinds share it.
#[derive(Debug)]
pub(super) struct Stores {
    array: Vec<i64>,
    at: usize,
    hot: Vec<i64>,
}

/// A combination, and what it has seen.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) path: usize,
    pub(super) period_ns: u64,
    pub(super) background: Background,
    /// Whether stamps go into the large array.
    pub(super) array: bool,
    lateness: Distribution,
    n: u64,
    missed: u64,
    used_ns: u64,
    wall_ns: u64,
    /// Why its path was refused.
    pub(super) refused: Option<Errno>,
}

/// The names of paths, in the order of [`paths`].
pub(super) const PATHS: [&str; 5] = ["sleep", "timerfd", "posix", "mdelay", "deadline"];

/// The last of them.
pub(super) const DEADLINE: usize = 4;

/// All paths that this machine has; in the thread that will wait. `None` where the kernel refuses.
/// `cpus` are those of the process.
pub(super) fn paths(cpus: CpuMask) -> [Option<Path>; 5] {
    [
        Some(Path::Sleep),
        events::timer().ok().map(Path::Timerfd),
        SignalTimer::new().ok().map(Path::Posix),
        Some(Path::Delay),
        Some(Path::Deadline(Box::new(cpus))),
    ]
}

impl Stores {
    pub(super) fn new() -> Self {
        Self { array: vec![0; ARRAY], at: 0, hot: vec![0; HOT] }
    }
}

impl Cell {
    pub(super) fn new(path: usize, period_ns: u64, background: Background, array: bool) -> Self {
        Self {
            path,
            period_ns,
            background,
            array,
            lateness: Distribution::default(),
            n: 0,
            missed: 0,
            used_ns: 0,
            wall_ns: 0,
            refused: None,
        }
    }

    /// A block of expiries.
    pub(super) fn block(&mut self, path: &Path, stores: &mut Stores, stop: &AtomicBool) {
        let (cpu_ns, wall_ns) = (now_ns(ClockId::ThreadCpu), now_ns(ClockId::Monotonic));
        let first_ns = wall_ns + LEAD_NS;
        let end_ns = first_ns + BLOCK_NS;
        let begun = stores.at;
        let mut stored = 0;
        let mut late = |ns: i64, array: bool| {
            if array {
                stores.array[(begun + stored) % ARRAY] = ns;
            } else {
                stores.hot[stored % HOT] = ns;
            }
            stored += 1;
            array || stored < HOT
        };
        let limits = Limits { first_ns, end_ns, period_ns: self.period_ns, stop };
        let store = |ns| late(ns, self.array);
        match path {
            Path::Deadline(cpus) => {
                match deadline::within(cpus, self.period_ns, || limits.run(path, store)) {
                    Ok(missed) => self.missed += missed,
                    Err(why) => self.refused = Some(why),
                }
            }
            _ => self.missed += limits.run(path, store),
        }
        let kept: &mut dyn Iterator<Item = i64> = if self.array {
            &mut (begun..begun + stored).map(|at| stores.array[at % ARRAY])
        } else {
            &mut stores.hot.iter().copied().take(stored)
        };
        kept.for_each(|ns| self.lateness.push(ns));
        if self.array {
            stores.at = (begun + stored) % ARRAY;
        }
        self.n += stored as u64;
        self.wall_ns += now_ns(ClockId::Monotonic).saturating_sub(wall_ns);
        self.used_ns += now_ns(ClockId::ThreadCpu).saturating_sub(cpu_ns);
    }

    /// What was measured; `None` where nothing was.
    pub(super) fn row(&self) -> Option<TimerRow> {
        (self.n > 0).then(|| TimerRow {
            path: PATHS[self.path].to_owned(),
            period_ns: self.period_ns,
            background: self.background.name().to_owned(),
            store: if self.array { "array" } else { "hot" }.to_owned(),
            n: self.n,
            missed: self.missed,
            lateness_ns: self.lateness.stats(),
            cpu_share: (self.wall_ns > 0)
                .then(|| (self.used_ns as f64 / self.wall_ns as f64).min(1.0)),
        })
    }
}

/// The expiries of a block.
struct Limits<'a> {
    first_ns: u64,
    end_ns: u64,
    period_ns: u64,
    stop: &'a AtomicBool,
}

impl Limits<'_> {
    /// Waits for expiry after expiry and stores how late each is, until `store` is full; how many
    /// passed unseen.
    fn run(&self, path: &Path, store: impl FnMut(i64) -> bool) -> u64 {
        match path {
            Path::Sleep | Path::Deadline(_) => self.by_instants(store, |due_ns| {
                let _interrupted = sleep_until_ns(due_ns);
            }),
            Path::Delay => {
                self.by_instants(store, |due_ns| while now_ns(ClockId::Monotonic) < due_ns {})
            }
            Path::Timerfd(timer) => {
                let armed = events::arm(timer, self.first_ns, self.period_ns);
                let missed = self.by_counts(store, armed.is_ok(), || events::take(timer).ok());
                let _disarmed = events::arm(timer, 0, 0);
                missed
            }
            Path::Posix(timer) => {
                let armed = timer.arm(self.first_ns, self.period_ns);
                let take = || timer.take(BLOCK_NS).ok();
                let missed = self.by_counts(store, armed.is_ok(), take);
                let _disarmed = timer.arm(0, 0);
                // A signal that is still pending belongs to no other block.
                while timer.take(0).is_ok() {}
                missed
            }
        }
    }

    fn over(&self, due_ns: u64) -> bool {
        due_ns >= self.end_ns || self.stop.load(Ordering::Relaxed)
    }

    /// Each expiry is an instant to wait for.
    fn by_instants(&self, mut store: impl FnMut(i64) -> bool, wait: impl Fn(u64)) -> u64 {
        let (mut due_ns, mut missed) = (self.first_ns, 0);
        while !self.over(due_ns) {
            wait(due_ns);
            let late_ns = now_ns(ClockId::Monotonic).cast_signed() - due_ns.cast_signed();
            if !store(late_ns) {
                break;
            }
            let passed = late_ns.max(0).cast_unsigned() / self.period_ns;
            missed += passed;
            due_ns += (passed + 1) * self.period_ns;
        }
        missed
    }

    /// A periodic timer says how often it expired; the stamp is late by the first of these.
    fn by_counts(
        &self,
        mut store: impl FnMut(i64) -> bool,
        armed: bool,
        take: impl Fn() -> Option<u64>,
    ) -> u64 {
        let (mut due_ns, mut missed) = (self.first_ns, 0);
        while armed && !self.over(due_ns) {
            let Some(count) = take().filter(|&count| count > 0) else { break };
            let late_ns = now_ns(ClockId::Monotonic).cast_signed() - due_ns.cast_signed();
            if !store(late_ns) {
                break;
            }
            missed += count - 1;
            due_ns += count * self.period_ns;
        }
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_stamps_its_expiries_and_none_before_its_time() {
        let (mut stores, stop) = (Stores::new(), AtomicBool::new(false));
        let cpus = punctual_os::affinity::get(0).expect("own");
        for (at, path) in paths(cpus).iter().enumerate() {
            let path = path.as_ref().expect("every kernel has it");
            for array in [true, false] {
                let mut cell = Cell::new(at, 1_000_000, Background::None, array);
                assert_eq!(cell.row(), None);
                cell.block(path, &mut stores, &stop);
                if at == DEADLINE && cell.refused.is_some() {
                    assert_eq!(cell.row(), None, "nothing is measured under another policy");
                    continue;
                }
                let row = cell.row().expect("measured");
                assert!(row.n + row.missed >= BLOCK_NS / 1_000_000, "{row:?}");
                assert!(row.lateness_ns.min.is_some_and(|ns| ns >= 0.0), "{row:?}");
            }
        }
    }

    #[test]
    fn a_full_store_ends_a_block_and_a_stop_does_so_at_once() {
        let mut stores = Stores::new();
        let mut cell = Cell::new(3, 1_000, Background::None, false);
        cell.block(&Path::Delay, &mut stores, &AtomicBool::new(false));
        assert!((1..=HOT as u64).contains(&cell.n), "{cell:?}");
        let mut cell = Cell::new(0, 1_000, Background::None, true);
        cell.block(&Path::Sleep, &mut stores, &AtomicBool::new(true));
        assert_eq!(cell.n, 0);
    }
}
