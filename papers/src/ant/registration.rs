//! Tasks that register at irregular times: how many are released at each tick, and what a release
//! costs (AnT, §4.5).
//!
//! A hundred tasks with a period of a hundred ticks; each registers after a delay of its own. One
//! thread for a fraction of a second, never prints.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual::RtThread;
use punctual_analysis::scatter::Scatter;
use punctual_core::time::Period;
use punctual_lab::baseline::{BaselineTask, Design, Punctual, plan};
use punctual_lab::executive::{DesignName, Flush, Stamps};
use punctual_lab::experiment::{
    Context, Demand, Experiment, ExperimentError, ExperimentOutcome, demand, on_measuring_thread,
};
use punctual_lab::load::LoadSpec;

use super::{Ant, ArtLinux};

/// Tasks, and the ticks of their period.
const TASKS: u32 = 100;
/// Ticks before those that count, and those.
const COLD: u32 = 200;
const TICKS: u32 = 1_000;
/// Repetitions of the whole experiment.
const REPEATS: u64 = 10;
/// Length of the experiment, ns, far from exact: to judge its safety by.
const LENGTH_NS: u64 = 200_000_000;

/// Irregular registration, measured.
#[derive(Clone, Debug)]
pub struct RegistrationExperiment {
    /// The thread: its CPU, and the policy to request.
    pub thread: RtThread,
}

/// One design.
#[derive(Clone, Debug, PartialEq)]
pub struct RegistrationRow {
    /// ART-Linux's, AnT's or the library's own.
    pub design: DesignName,
    /// The most tasks released at a tick: the mean over all repetitions.
    pub released_most: f64,
    /// The fewest.
    pub released_fewest: f64,
    /// The shortest, mean and longest release of all ticks, ns, without the floor: all lines of the
    /// design were flushed before each, as the paper evicts them.
    pub release_ns: [f64; 3],
    /// The same where nothing was flushed.
    pub warm_ns: [f64; 3],
    /// Time between the two stamps of a release with nothing between them, ns: the median.
    pub floor_ns: f64,
    /// Scatter of the releases of flushed lines, ns, without the floor.
    pub release_scatter: Option<Scatter>,
    /// Ticks measured.
    pub ticks: u64,
    /// Tasks released at each tick of a period.
    pub released: Vec<AtTick>,
}

/// Tasks released at a tick of a period: of the first period of each repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AtTick {
    /// The fewest of all repetitions.
    pub fewest: u64,
    /// The mean.
    pub mean: f64,
    /// The most.
    pub most: u64,
}

/// Sums and series of one design.
#[derive(Clone, Debug, Default)]
struct Sums {
    most: u64,
    fewest: u64,
    /// Tasks released at each tick of the first period, a list for each repetition.
    released: Vec<Vec<u64>>,
    /// Time of each release, in the order of time: from flushed lines, and from warm ones.
    each: [Vec<u64>; 2],
    /// From a stamp to the next one, with nothing between.
    floors: Vec<u64>,
}

/// Where a release finds the memory of its design; its number is that of its list in [`Sums`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cache {
    Flushed,
    Warm,
}

impl Experiment for RegistrationExperiment {
    type Outcome = Vec<RegistrationRow>;

    fn demands(&self) -> Vec<Demand> {
        // It is over before throttling would end it.
        let demand = |period| demand(&self.thread, period, 0.5);
        Period::from_ns(LENGTH_NS).map(demand).into_iter().collect()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<Self::Outcome>, ExperimentError> {
        let stop = context.stop;
        on_measuring_thread(&self.thread, stop, |clock| measure(&Stamps::of(clock), stop))
    }
}

/// All designs in turn; what there was until `stop`.
fn measure(stamps: &Stamps, stop: &AtomicBool) -> Vec<RegistrationRow> {
    let (mut art, mut ant, mut own) = (Sums::default(), Sums::default(), Sums::default());
    for seed in 0..REPEATS {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let tasks = registered(seed);
        for cache in [Cache::Flushed, Cache::Warm] {
            turns(&mut ArtLinux::new(&tasks), cache, stamps, &mut art);
            if let Some(mut design) = Ant::new(&tasks) {
                turns(&mut design, cache, stamps, &mut ant);
            }
            if let Some(plan) = balanced() {
                let mut storage = plan.storage();
                turns(&mut Punctual::new(&plan, &mut storage), cache, stamps, &mut own);
            }
        }
    }
    let rows = [(DesignName::ArtLinux, art), (DesignName::Ant, ant), (DesignName::Punctual, own)];
    rows.into_iter().filter_map(|(design, sums)| sums.row(design, stamps)).collect()
}

/// Tasks that registered after a delay of 0 to 99 ticks each.
pub(super) fn registered(seed: u64) -> Vec<BaselineTask> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut delay = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(TASKS)) as u32
    };
    (0..TASKS).map(|_| BaselineTask { period: TASKS, phase: delay(), level: 0 }).collect()
}

/// Those tasks as the executive takes them, one a tick: the builder balances instants, which need
/// no ticks.
pub(super) fn balanced() -> Option<punctual_engine::periodic::Plan> {
    let task = |phase| BaselineTask { period: TASKS, phase, level: 0 };
    plan(&(0..TASKS).map(task).collect::<Vec<_>>()).ok()
}

/// Tick after tick: each release between two stamps, then all that are ready wait again.
fn turns<D: Design>(design: &mut D, cache: Cache, stamps: &Stamps, sums: &mut Sums) {
    let (mut most, mut fewest) = (0, u64::MAX);
    // Room for a period, so that nothing is allocated between two ticks.
    let mut first_period = Vec::with_capacity(TASKS as usize);
    sums.each[cache as usize].reserve(TICKS as usize);
    sums.floors.reserve(TICKS as usize);
    for tick in 0..COLD + TICKS {
        if cache == Cache::Flushed {
            design.visit(&mut Flush);
        }
        let before = stamps.now();
        design.release();
        let after = stamps.now();
        let floor = stamps.now() - after;
        let took = after - before;
        let mut released = 0;
        while let Some(job) = design.dispatch() {
            design.wait(job);
            released += 1;
        }
        if tick >= COLD {
            (most, fewest) = (released.max(most), released.min(fewest));
            if first_period.len() < TASKS as usize {
                first_period.push(released);
            }
            sums.each[cache as usize].push(took);
            sums.floors.push(floor);
        }
    }
    // What is released is the same, whatever was flushed.
    if cache == Cache::Flushed {
        sums.released.push(first_period);
        sums.most += most;
        sums.fewest += fewest;
    }
}

impl Sums {
    fn row(mut self, design: DesignName, stamps: &Stamps) -> Option<RegistrationRow> {
        self.floors.sort_unstable();
        let floor = self.floors.get(self.floors.len() / 2).copied().unwrap_or(0);
        for took in self.each.iter_mut().flatten() {
            *took = took.saturating_sub(floor);
        }
        let [flushed, warm] = &self.each;
        let repeats = self.released.len() as f64;
        Some(RegistrationRow {
            design,
            released_most: self.most as f64 / repeats,
            released_fewest: self.fewest as f64 / repeats,
            release_ns: ends(flushed)?.map(|ticks| stamps.ns(ticks)),
            warm_ns: ends(warm)?.map(|ticks| stamps.ns(ticks)),
            floor_ns: stamps.ns(floor as f64),
            release_scatter: Scatter::of_series(flushed.iter().map(|took| took.cast_signed()))
                .map(|scatter| scatter.times(stamps.ns(1.0))),
            ticks: flushed.len() as u64,
            released: (0..TASKS as usize).map(|tick| self.at(tick)).collect(),
        })
    }

    /// The fewest, the mean and the most tasks that a repetition released at a tick of the period.
    fn at(&self, tick: usize) -> AtTick {
        let own = || self.released.iter().filter_map(|period| period.get(tick).copied());
        AtTick {
            fewest: own().min().unwrap_or(0),
            mean: own().sum::<u64>() as f64 / own().count().max(1) as f64,
            most: own().max().unwrap_or(0),
        }
    }
}

/// The shortest, the mean and the longest; `None` of nothing.
fn ends(each: &[u64]) -> Option<[f64; 3]> {
    let (shortest, longest) = (each.iter().min()?, each.iter().max()?);
    let mean = each.iter().sum::<u64>() as f64 / each.len() as f64;
    Some([*shortest as f64, mean, *longest as f64])
}

#[cfg(test)]
mod tests {
    use punctual_engine::clocks::MachineClock;

    use super::*;

    #[test]
    fn balanced_designs_release_one_task_a_tick_and_the_queue_as_many_as_came_together() {
        let stamps = Stamps::of(&MachineClock::best());
        let rows = measure(&stamps, &AtomicBool::new(false));
        let row = |design| rows.iter().find(|row| row.design == design).expect("measured");
        for design in [DesignName::Ant, DesignName::Punctual] {
            assert_eq!((row(design).released_most, row(design).released_fewest), (1.0, 1.0));
        }
        let queue = row(DesignName::ArtLinux);
        // Repetitions differ where nothing balances.
        assert!(queue.released.iter().any(|tick| tick.most > tick.fewest), "{queue:?}");
        assert!(queue.released_most >= 3.0 && queue.released_fewest < 1.0, "{queue:?}");
        for row in &rows {
            assert_eq!(row.released.len(), TASKS as usize);
            let each: f64 = row.released.iter().map(|tick| tick.mean).sum();
            assert!((each - f64::from(TASKS)).abs() < 1e-6, "each once a period: {row:?}");
            for tick in &row.released {
                assert!(tick.fewest as f64 <= tick.mean && tick.mean <= tick.most as f64);
            }
            let [least, mean, most] = row.release_ns;
            assert!(least <= mean && mean <= most, "{row:?}");
            let [least_warm, mean_warm, most_warm] = row.warm_ns;
            assert!(least_warm <= mean_warm && mean_warm <= most_warm, "{row:?}");
            assert!(row.floor_ns >= 0.0 && row.floor_ns.is_finite(), "{row:?}");
            assert_eq!(row.ticks, REPEATS * u64::from(TICKS));
            let scatter = row.release_scatter.expect("measured");
            assert_eq!((scatter.n, scatter.least, scatter.largest), (row.ticks, least, most));
        }
        assert!(measure(&stamps, &AtomicBool::new(true)).is_empty());
    }

    /// A design that says when its memory was shown.
    #[derive(Default)]
    struct Shown {
        visits: std::cell::Cell<u32>,
        releases: u32,
    }

    impl Design for Shown {
        type Job = ();

        fn release(&mut self) {
            self.releases += 1;
        }

        fn dispatch(&mut self) -> Option<()> {
            None
        }

        fn number((): &()) -> usize {
            0
        }

        fn wait(&mut self, (): ()) {}

        fn visit(&self, _: &mut impl punctual_lab::baseline::Visit) {
            assert_eq!(self.visits.get(), self.releases, "before each release, and once");
            self.visits.set(self.visits.get() + 1);
        }
    }

    #[test]
    fn a_design_is_flushed_before_each_release_or_never() {
        let stamps = Stamps::of(&MachineClock::best());
        for (cache, visits) in [(Cache::Flushed, COLD + TICKS), (Cache::Warm, 0)] {
            let (mut design, mut sums) = (Shown::default(), Sums::default());
            turns(&mut design, cache, &stamps, &mut sums);
            assert_eq!((design.visits.get(), design.releases), (visits, COLD + TICKS));
            assert_eq!(sums.each[cache as usize].len(), TICKS as usize);
        }
    }

    #[test]
    fn the_floor_of_the_stamps_is_taken_off_both() {
        let stamps = Stamps::of(&MachineClock::best());
        let (floors, released) = (vec![20, 10, 90], vec![Vec::new()]);
        let each = [vec![100, 300, 200], vec![60, 15, 45]];
        let sums = Sums { each, floors, released, ..Sums::default() };
        let row = sums.row(DesignName::Ant, &stamps).expect("measured");
        assert_eq!(row.release_ns, [80.0, 180.0, 280.0].map(|ticks| stamps.ns(ticks)));
        assert_eq!(row.warm_ns, [0.0, 65.0 / 3.0, 40.0].map(|ticks| stamps.ns(ticks)));
        assert_eq!((row.floor_ns, row.ticks), (stamps.ns(20.0), 3));
    }
}
