//! The danger that real-time threads take the machine away.
//!
//! For whoever starts such threads: loops, executives, experiments, `punctual run`. [`judge`] and
//! [`is_too_short`] are pure; [`Machine::here`] reads the kernel's files, and the `check_`
//! functions apply the rules to this machine and this clock. Changes nothing.

use std::collections::BTreeSet;
use std::{fmt, fs};

use punctual_core::clock::Clock;
use punctual_core::stats::Counts;
use punctual_core::time::{Period, Span};
use punctual_os::scheduler::SchedPolicy;

use crate::clocks::{MachineClock, StampCost};
use crate::error::{Error, FollowError, Kind};
use crate::rt_thread::RtThread;
use crate::wait_policy::rest_share;

pub use crate::error::NoCpuLeft;

/// A real-time loop of a shorter period may find each sleep over when it asks for it, and then
/// never leaves its CPU.
const RESTLESS: Span = Span::from_us(50);
/// A sleep and the wake from it take a few microseconds at least: between the releases of a shorter
/// period there is no time for them.
const SLEEPLESS: Span = Span::from_us(5);
/// A real-time thread that takes more of its CPU may keep others from it for long.
const SHARE_RESTLESS: f64 = 0.5;
/// The distance from the throttling share within which a thread counts as hit: throttling acts in
/// whole ticks. Also the amount by which a restless loop leaves less than it must: one that spins
/// is at the limit.
const NEAR: f64 = 0.02;
/// The part of a gap that shows in a loop's figures at least: the kernel throttles at a tick, which
/// comes up to 10 ms late, and the loop sees no more of the gap than from its next release on.
const GAP_SEEN: f64 = 0.7;
/// So many of the clock's stamps must fit into a period: one at the wake, the others for the work.
pub const STAMPS_IN_A_PERIOD: f64 = 4.0;

/// The share of a CPU that a thread may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Its CPU; `None` where the kernel chooses.
    pub cpu: Option<u32>,
    /// True where it asks for a real-time policy.
    pub real_time: bool,
    /// The time between two of its releases.
    pub period: Period,
    /// The share of the CPU that it takes at most, in [0, 1].
    pub share: f64,
}

impl Demand {
    /// A loop of this period in such a thread, without its work. One that has no time to sleep
    /// takes all of its CPU, whatever it waits by.
    ///
    /// # Real-time: setup only
    pub fn waiting(thread: &RtThread, period: Period) -> Self {
        let share = match period.as_span() < SLEEPLESS {
            true => 1.0,
            false => thread.wait_kind().cpu_share(period),
        };
        let real_time = is_real_time(thread.policy());
        Self { cpu: thread.pinned_to(), real_time, period, share }
    }
}

/// The share that real-time threads may have, and the time for which they stand still beyond it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttling {
    /// Their share of a CPU, in [0, 1].
    pub share: f64,
    /// The longest time for which they stand still.
    pub gap: Span,
    /// True where it is the budget of the own control group, and smaller than the machine's.
    pub of_cgroup: bool,
}

/// Throttling that real-time threads of one CPU meet: what they take is more than they may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caution {
    /// The CPU.
    pub cpu: u32,
    /// The share of it that they take.
    pub share: f64,
    /// The machine's throttling.
    pub throttling: Throttling,
}

/// The share of one CPU that real-time threads took, once they have ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuTaken {
    /// The CPU.
    pub cpu: u32,
    /// Their CPU time over wall time.
    pub share: f64,
    /// The shortest of their periods; `None` where they have none.
    pub period: Option<Period>,
    /// The throttling that limits them; `None` where nothing does, or nothing is known of it.
    pub throttling: Option<Throttling>,
}

/// The CPUs and the throttling of a machine, which decide whether threads can take it away.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its CPUs that threads can be on; `None` where nothing is known of them.
    pub cpus: Option<BTreeSet<u32>>,
    /// Its throttling; `None` where nothing limits real-time threads, or nothing is known of it.
    pub throttling: Option<Throttling>,
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, share, throttling } = self;
        write!(
            f,
            "real-time threads may take {:.0} % of CPU {cpu}, of which throttling allows {:.0} %: \
             they will stand still for up to {} at a time",
            share * 100.0,
            throttling.share * 100.0,
            throttling.gap
        )
    }
}

impl Throttling {
    /// The throttling by `kernel.sched_rt_runtime_us` and `sched_rt_period_us`; `None` where they
    /// limit nothing.
    ///
    /// # Real-time: setup only
    pub fn of(runtime_us: i64, period_us: i64) -> Option<Self> {
        (0..period_us).contains(&runtime_us).then(|| Self {
            share: runtime_us as f64 / period_us as f64,
            gap: Span::from_us(period_us - runtime_us),
            of_cgroup: false,
        })
    }

    /// Returns true where threads that take this share meet it.
    ///
    /// # Real-time: setup only
    pub fn is_met_by(&self, share: f64) -> bool {
        share > self.share - NEAR.min(0.1 * self.share)
    }
}

impl CpuTaken {
    /// A caution where they took all that throttling leaves them, and no more: it made gaps. What
    /// took more was not stopped by it (from Linux 6.12 on it acts only where another thread waits
    /// for the CPU).
    ///
    /// # Real-time: setup only
    pub fn throttled(&self) -> Option<Caution> {
        let Self { cpu, share, .. } = *self;
        let is_met = |limit: &Throttling| limit.is_met_by(share) && share <= limit.share + NEAR;
        let throttling = self.throttling.filter(is_met)?;
        Some(Caution { cpu, share, throttling })
    }

    /// What throttling did to the one loop that took this, in a run of this length with these
    /// counts, a sentence; `None` where nothing shows that it did anything.
    ///
    /// A loop that it stopped was off its CPU for a gap, and a release came late by one. It acts
    /// once in its period: without doubt only where the loop was off its CPU, and missed releases,
    /// for so many gaps, two at least, and was never later than one explains: a single one may be a
    /// stall of the machine. From Linux 6.12 on it acts less often, where another thread waits for
    /// the CPU.
    ///
    /// # Real-time: setup only
    pub fn stopped(&self, ran: Span, counts: &Counts) -> Option<String> {
        let Self { cpu, share, .. } = *self;
        let throttling = self.throttling.filter(|limit| limit.is_met_by(share))?;
        let (latest, ran_ns) = (counts.max?, ran.as_ns() as f64);
        let gap_ns = throttling.gap.as_ns() as f64;
        let gaps = (ran_ns * (1.0 - throttling.share) / gap_ns).floor();
        let seen_ns = GAP_SEEN * gap_ns;
        let (latest_ns, off_ns) = (latest.as_ns() as f64, (1.0 - share) * ran_ns);
        if gaps < 1.0 || off_ns < seen_ns || latest_ns < seen_ns {
            return None;
        }
        let missed_ns =
            self.period.map_or(0.0, |period| counts.missed as f64 * period.as_ns() as f64);
        let is_certain = gaps >= 2.0
            && off_ns.min(missed_ns) >= gaps * seen_ns
            && latest_ns <= gap_ns / GAP_SEEN;
        Some(format!(
            "its thread took {:.0} % of CPU {cpu}, of which throttling allows real-time threads \
             {:.0} % (kernel.sched_rt_runtime_us), and a release came {latest} late: it {} still \
             for up to {} at a time; give it a longer period, or a wait and work that leave more \
             of the CPU",
            share * 100.0,
            throttling.share * 100.0,
            if is_certain { "stood" } else { "may have stood" },
            throttling.gap
        ))
    }

    /// Returns true where they left the CPU to others for less of its time than a loop that spins
    /// must.
    ///
    /// # Real-time: setup only
    pub fn is_restless(&self) -> bool {
        self.period.is_some_and(|period| self.share > 1.0 - rest_share(period) + NEAR)
    }
}

impl Machine {
    /// The machine on which this runs.
    ///
    /// # Real-time: setup only
    pub fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let number =
            |name: &str| read(&format!("/proc/sys/kernel/{name}"))?.trim().parse::<i64>().ok();
        let throttling = number("sched_rt_runtime_us").zip(number("sched_rt_period_us"));
        Self {
            cpus: read("/sys/devices/system/cpu/online").and_then(|text| list(&text)),
            throttling: throttling.and_then(|(runtime, period)| Throttling::of(runtime, period)),
        }
    }
}

/// The kernel's list of CPUs: "0-3,8".
fn list(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

impl Demand {
    /// Returns true where it may keep its CPU from everybody else for long.
    fn is_restless(&self) -> bool {
        let short = self.period.as_ns() < RESTLESS.as_ns().unsigned_abs();
        self.real_time && (self.share > SHARE_RESTLESS || short)
    }
}

/// Returns true for a policy whose threads keep others from their CPU.
///
/// # Real-time: setup only
pub fn is_real_time(policy: SchedPolicy) -> bool {
    matches!(policy, SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_))
}

/// The risks of threads with these demands on this machine.
///
/// # Errors
/// They could take the machine away for good.
///
/// # Real-time: setup only
pub fn judge(demands: &[Demand], machine: &Machine) -> Result<Vec<Caution>, NoCpuLeft> {
    let pinned: BTreeSet<u32> = demands.iter().filter_map(|demand| demand.cpu).collect();
    let Some(throttling) = machine.throttling else {
        // One that the kernel places may be on any CPU that is left.
        let restless = demands.iter().filter(|demand| demand.is_restless());
        let floating = restless.clone().filter(|demand| demand.cpu.is_none()).count();
        let left = machine.cpus.as_ref().map_or(0, |cpus| cpus.difference(&pinned).count());
        if left <= floating && restless.count() > 0 {
            return Err(NoCpuLeft);
        }
        return Ok(Vec::new());
    };
    let demanded = |cpu: u32| -> f64 {
        let on_cpu = demands.iter().filter(|demand| demand.cpu == Some(cpu) && demand.real_time);
        on_cpu.map(|demand| demand.share).sum()
    };
    let cautions = pinned.into_iter().map(|cpu| Caution { cpu, share: demanded(cpu), throttling });
    Ok(cautions.filter(|caution| throttling.is_met_by(caution.share)).collect())
}

/// Returns true where a period is too short for a clock of which one stamp takes `stamp_ns`.
///
/// # Real-time: setup only
pub fn is_too_short(period: Period, stamp_ns: f64) -> bool {
    (period.as_ns() as f64) < STAMPS_IN_A_PERIOD * stamp_ns
}

/// Shorter periods than this are checked against the clock: the slowest clocks, which are read over
/// a bus, take 5 µs a stamp.
const CLOCK_MATTERS_NS: u64 = 100_000;

/// Checks that threads with these demands can run on this machine; returns where throttling will
/// stop them.
///
/// # Errors
/// They would leave no CPU to others, and nothing could stop them.
///
/// # Real-time: setup only
pub fn check_demands(demands: &[Demand]) -> Result<Vec<Caution>, Error> {
    judge(demands, &Machine::here()).map_err(|why| Kind::NoCpuLeft(why).into())
}

/// Checks that loops of this shortest period can be stamped with this clock.
///
/// # Errors
/// The clock's own stamps would fill the period.
///
/// # Real-time: setup only
pub fn check_period(period: Period, clock: &mut impl Clock) -> Result<(), Error> {
    if period.as_ns() >= CLOCK_MATTERS_NS {
        return Ok(());
    }
    let stamp_ns = StampCost::measure(clock).wake_ns;
    match is_too_short(period, stamp_ns) {
        true => Err(Kind::ShortPeriod { got: period, stamp_ns, stamps: STAMPS_IN_A_PERIOD }.into()),
        false => Ok(()),
    }
}

/// Checks that a loop on this clock, which may sleep for `longest`, knows of each change of the
/// clock's pace before it sleeps over it.
///
/// # Errors
/// It does not.
///
/// # Real-time: setup only
pub fn check_lead(longest: Span, clock: &impl Clock) -> Result<(), Error> {
    match clock.lead() {
        Some(lead) if longest > lead => Err(FollowError::Sleeps { got: longest, lead }.into()),
        _ => Ok(()),
    }
}

/// As [`check_period`], with the machine's clock, which is calibrated where it matters.
///
/// # Real-time: setup only
pub fn check_period_here(period: Period) -> Result<(), Error> {
    match period.as_ns() >= CLOCK_MATTERS_NS {
        true => Ok(()),
        false => check_period(period, &mut MachineClock::best()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_policy::WaitPolicy;

    fn demand(cpu: Option<u32>, period_ns: u64, share: f64) -> Demand {
        let period = Period::from_ns(period_ns).expect("in range");
        Demand { cpu, real_time: true, period, share }
    }

    fn two_cpus(runtime_us: i64) -> Machine {
        let throttling = Throttling::of(runtime_us, 1_000_000);
        Machine { cpus: list("0-1\n"), throttling }
    }

    #[test]
    fn a_loop_is_refused_that_leaves_nobody_a_cpu() {
        let [short, long] = [2_000, 1_000_000];
        let off = two_cpus(-1);
        let refused = |demands: &[Demand]| judge(demands, &off) == Err(NoCpuLeft);
        assert!(!refused(&[demand(Some(0), short, 0.1)]), "CPU 1 is left");
        assert!(refused(&[demand(Some(0), short, 0.1), demand(Some(1), short, 0.1)]));
        assert!(refused(&[demand(Some(0), long, 0.9), demand(None, long, 0.9)]));
        assert!(!refused(&[demand(None, long, 0.9)]));
        assert!(!refused(&[demand(Some(0), long, 0.1), demand(Some(1), long, 0.1)]));
        let batch = Demand { real_time: false, ..demand(Some(0), short, 1.0) };
        assert!(!refused(&[batch, Demand { cpu: Some(1), ..batch }]));
        // All of the period for real-time threads: the kernel does not even look.
        let whole = two_cpus(1_000_000);
        let both = [demand(Some(0), short, 0.1), demand(Some(1), short, 0.1)];
        assert_eq!(judge(&both, &whole), Err(NoCpuLeft));
        let single = Machine { cpus: list("0"), throttling: None };
        assert_eq!(judge(&[demand(None, short, 0.1)], &single), Err(NoCpuLeft));
        let unknown = Machine { cpus: None, throttling: None };
        assert_eq!(judge(&[demand(None, short, 0.1)], &unknown), Err(NoCpuLeft));
        assert_eq!(judge(&[demand(None, long, 0.1)], &unknown), Ok(Vec::new()));
    }

    #[test]
    fn throttling_that_is_met_is_said() {
        let on = two_cpus(950_000);
        assert_eq!(judge(&[demand(Some(0), 1_000_000, 0.9)], &on), Ok(Vec::new()));
        let two = [demand(Some(0), 1_000_000, 0.5), demand(Some(0), 1_000_000, 0.5)];
        let met = judge(&two, &on).expect("throttling ends them");
        assert!(met.len() == 1 && met[0].throttling.gap == Span::from_ms(50), "{met:?}");
    }

    #[test]
    fn a_loop_that_took_all_that_it_may_met_throttling() {
        let throttling = Throttling::of(950_000, 1_000_000);
        let period = Period::from_ns(1_000_000);
        let took = |share| CpuTaken { cpu: 1, share, period, throttling }.throttled();
        assert_eq!(took(0.9), None);
        assert_eq!(took(0.999), None, "they were let run on");
        let met = took(0.95).expect("all of it");
        assert_eq!((met.cpu, Some(met.throttling)), (1, throttling));
        assert!((met.share - 0.95).abs() < 1e-9);
        let off = CpuTaken { cpu: 1, share: 1.0, period, throttling: None };
        assert_eq!(off.throttled(), None);
    }

    /// What throttling did to a loop of this period, in µs, that took this share in `ran_ms`, was
    /// late by `latest_ms`, and missed so many releases.
    fn stopped(
        period_us: u64,
        share: f64,
        ran_ms: i64,
        (latest_ms, missed): (i64, u64),
    ) -> Option<String> {
        let (period, throttling) =
            (Period::from_ns(period_us * 1_000), Throttling::of(950_000, 1_000_000));
        let mut counts = Counts::default();
        (counts.max, counts.missed) = (Some(Span::from_ms(latest_ms)), missed);
        CpuTaken { cpu: 1, share, period, throttling }.stopped(Span::from_ms(ran_ms), &counts)
    }

    #[test]
    fn throttling_is_named_where_gaps_of_its_length_are_seen() {
        let certain = stopped(1, 0.946, 3_000, (49, 150_000)).expect("it stood still");
        assert!(certain.contains("95 % of CPU 1, of which throttling allows"), "{certain}");
        assert!(certain.contains("49.0 ms late: it stood still for up to 50.0 ms"), "{certain}");
        assert_eq!(stopped(1, 0.946, 999, (49, 50_000)), None, "it need not have acted yet");
        assert_eq!(stopped(1, 0.9, 3_000, (49, 150_000)), None);
        assert_eq!(stopped(1, 0.999, 3_000, (3, 150_000)), None, "it was let run on");
        let once = stopped(1, 0.98, 3_000, (49, 150_000)).expect("once, or the machine");
        assert!(once.contains("it may have stood still for up to 50.0 ms"), "{once}");
        // One gap in a run of less than two of its periods.
        for (share, ran_ms) in [(0.9701, 1_670), (0.9743, 1_950)] {
            let once = stopped(1, share, ran_ms, (50, 50_000)).expect("a gap");
            assert!(once.contains("97 % of CPU 1") && once.contains("may have stood"), "{once}");
        }
        let none = CpuTaken { cpu: 1, share: 0.95, period: None, throttling: None };
        assert_eq!(none.stopped(Span::from_ms(3_000), &Counts::default()), None);
    }

    #[test]
    fn a_loop_whose_own_work_takes_as_much_was_not_stopped() {
        // 938 µs of work in each millisecond.
        assert_eq!(stopped(1_000, 0.938, 10_000, (6, 12)), None);
        // The machine stood still once, or for longer than throttling lasts.
        for latest_and_missed in [(50, 49), (400, 600)] {
            let open = stopped(1_000, 0.938, 10_000, latest_and_missed).expect("undecided");
            assert!(open.contains("it may have stood still for up to 50.0 ms"), "{open}");
        }
    }

    #[test]
    fn a_loop_without_time_to_sleep_takes_its_cpu_whatever_it_waits_by() {
        let share = |thread: &RtThread, ns| {
            Demand::waiting(thread, Period::from_ns(ns).expect("in range")).share
        };
        let sleeps = RtThread::cpu(0).wait(WaitPolicy::sleep());
        assert_eq!((share(&sleeps, 1_000), share(&sleeps, 5_000)), (1.0, 0.0));
        let learns = RtThread::cpu(0);
        assert_eq!((share(&learns, 1_000), share(&learns, 1_000_000)), (1.0, 0.1));
        let cautions = judge(
            &[Demand::waiting(&learns, Period::from_ns(1_000).expect("fine"))],
            &two_cpus(950_000),
        )
        .expect("throttling ends it");
        assert!(cautions[0].to_string().contains("100 % of CPU 0, of which throttling allows"));
    }

    #[test]
    fn a_loop_is_restless_that_leaves_less_than_one_that_spins() {
        let is_restless = |period_us: u64, share| {
            let period = Period::from_ns(period_us * 1_000);
            CpuTaken { cpu: 1, share, period, throttling: None }.is_restless()
        };
        // Those that spin leave a tenth, and 20 µs at least; shorter periods than 40 µs they
        // cannot have.
        for (period_us, spins) in [(1_000, 0.9), (100, 0.8), (40, 0.5), (10, 0.5), (1, 0.5)] {
            let [near, beyond] = [0.01, 0.03].map(|more| is_restless(period_us, spins + more));
            assert!(!near && beyond, "{period_us} µs");
        }
        let none = CpuTaken { cpu: 1, share: 1.0, period: None, throttling: None };
        assert!(!none.is_restless(), "without a period");
    }

    #[test]
    fn the_kernels_lists_are_read_and_periods_hold_four_stamps() {
        assert_eq!(list("0-2,5\n"), Some([0, 1, 2, 5].into()));
        assert_eq!((list(""), list("0-x")), (None, None));
        assert!(Machine::here().cpus.is_none_or(|cpus| !cpus.is_empty()));
        let period = |ns| Period::from_ns(ns).expect("in range");
        assert!(is_too_short(period(99), 25.0) && !is_too_short(period(100), 25.0));
    }
}
