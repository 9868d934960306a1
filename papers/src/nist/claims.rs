//! The claims of NIST's paper, judged by today's loops and timers.

use punctual_analysis::scatter::Scatter;
use punctual_lab::timer::TimerOutcome;

use super::{COMPENSATED, LOADINGS, MOTORS, Pair, SCHEDULERS, UNCOMPENSATED, wakes};
use crate::bench::MeasuredLoop;
use crate::claim::{ClaimTest, ClaimedBound, PaperClaim};

/// The most that compensation costs, %: "about 20%", which is what rounds to it in tens.
const COST: f64 = 25.0;
/// The largest value that is still "on the order of ten microseconds", µs: nearer to ten than to a
/// hundred. They are worst cases there, so that less is no failure.
const TENS: f64 = 31.6;
/// The share of the available torque that jitter takes at most, %, without compensation and with
/// it.
const TORQUE: [f64; 2] = [10.0, 1.0];

/// The measurements that the claims are judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'r> {
    /// Loops away from the kernel's tick.
    pub(super) quiet: Pair<'r>,
    /// Loops that it meets.
    pub(super) zero: Pair<'r>,
    /// Timers in the order of [`LOADINGS`].
    pub(super) timers: &'r [Option<&'r TimerOutcome>],
}

fn scatter(run: Option<&MeasuredLoop>) -> Option<Scatter> {
    run?.scatter_us()
}

impl Evidence<'_> {
    /// All of them.
    pub(super) fn claims(self) -> Vec<PaperClaim> {
        vec![
            self.factor(),
            self.cost(),
            self.loaded(),
            self.environment(),
            self.torque(0),
            self.torque(1),
            cache(),
        ]
    }

    /// §3, figure 6.
    fn factor(self) -> PaperClaim {
        let [plain, with] = [self.quiet.plain, self.quiet.compensated].map(scatter);
        let at_99 = |scatter: Option<Scatter>| scatter.and_then(|scatter| scatter.to_p99());
        let gain = at_99(plain).zip(at_99(with)).and_then(|(plain, with)| plain.over(with));
        let claim = "Early wakes and polling reduce jitter about 40 times or more";
        PaperClaim::new("nist.claim.factor", claim)
            .test(ClaimTest {
                title: "99 % less the least, without compensation over with it",
                unit: "times",
                value: gain,
                n: with.map(|with| with.n),
                // 36.7: what 3.60 and 0.098 µs give.
                bound: ClaimedBound::AtLeast(UNCOMPENSATED / COMPENSATED),
            })
            .beside("uncompensated, away from the tick", "µs", plain.as_ref())
            .beside("compensated, away from the tick", "µs", with.as_ref())
            .beside("uncompensated, at the tick", "µs", scatter(self.zero.plain).as_ref())
            .beside("compensated, at the tick", "µs", scatter(self.zero.compensated).as_ref())
            .judged()
            .allowing_for_steal(stolen([self.quiet.plain, self.quiet.compensated]))
    }

    /// §3 and equation 3.
    fn cost(self) -> PaperClaim {
        let claim = "Compensation costs about 20 % of the CPU at most";
        let tests = [
            ("CPU time of the loop, away from the tick", self.quiet.compensated),
            ("CPU time of the loop, at the tick", self.zero.compensated),
        ];
        let tested = |claim: PaperClaim, (title, run): (&str, Option<&MeasuredLoop>)| {
            let value = run.and_then(MeasuredLoop::cpu_percent);
            let n = run.map(|run| run.figures.cycles);
            claim.test(ClaimTest { title, unit: "%", value, n, bound: ClaimedBound::AtMost(COST) })
        };
        tests.into_iter().fold(PaperClaim::new("nist.claim.cost", claim), tested).judged()
    }

    /// The wakes of a scheduler under the loading at a place of [`LOADINGS`], µs.
    fn wakes_us(self, loading: usize, scheduler: usize) -> Option<Scatter> {
        let timer = self.timers.get(loading).copied().flatten();
        Some(wakes(timer, SCHEDULERS[scheduler].path)?.scatter?.times(1e-3))
    }

    /// §2, figure 3.
    fn loaded(self) -> PaperClaim {
        let claim = "Under disk and network load jitter is on the order of 10 µs at most";
        let mut judged = PaperClaim::new("nist.claim.loaded", claim);
        for (at, loading) in LOADINGS.iter().enumerate().skip(1) {
            for (number, scheduler) in SCHEDULERS.iter().enumerate() {
                let scatter = self.wakes_us(at, number);
                let name = format!("{}, {}", scheduler.name, loading.name);
                // The second scheduler is one where the kernel grants it.
                if number == 0 || scatter.is_some() {
                    judged = judged.test(ClaimTest {
                        title: &format!("{name}: 99 % less the least"),
                        unit: "µs",
                        value: scatter.and_then(|scatter| scatter.to_p99()),
                        n: scatter.map(|scatter| scatter.n),
                        bound: ClaimedBound::AtMost(TENS),
                    });
                }
                judged = judged.beside(&name, "µs", scatter.as_ref());
            }
        }
        judged.judged()
    }

    /// §2, figure 3: "Note how the jitter range increases with higher loading".
    fn environment(self) -> PaperClaim {
        let claim = "Jitter grows with the load of other processes";
        let normal = self.wakes_us(0, 0);
        let mut judged = PaperClaim::new("nist.claim.environment", claim);
        for (at, loading) in LOADINGS.iter().enumerate().skip(1) {
            let loaded = self.wakes_us(at, 0);
            let at_99 = |scatter: Option<Scatter>| scatter.and_then(|scatter| scatter.to_p99());
            let ratio = at_99(loaded).zip(at_99(normal)).and_then(|(a, b)| a.over(b));
            judged = judged.test(ClaimTest {
                title: &format!("99 % less the least, {} over normal loading", loading.name),
                unit: "times",
                value: ratio,
                n: loaded.map(|scatter| scatter.n),
                bound: ClaimedBound::AtLeast(1.0),
            });
            judged = judged.beside(loading.name, "µs", loaded.as_ref());
        }
        judged.beside(LOADINGS[0].name, "µs", normal.as_ref()).judged()
    }

    /// §4, table 1: without compensation, or with it.
    fn torque(self, at: usize) -> PaperClaim {
        let [id, claim] = [
            [
                "nist.claim.torque",
                "Uncompensated jitter takes less than 10 % of the torque of steppers",
            ],
            ["nist.claim.torque-compensated", "Compensated jitter takes less than 1 % of it"],
        ][at];
        let pair = |pair: Pair<'_>| [pair.plain, pair.compensated].map(scatter)[at];
        let (quiet, zero) = (pair(self.quiet), pair(self.zero));
        let mut judged = PaperClaim::new(id, claim);
        for motor in &MOTORS {
            let error_us = quiet.and_then(|scatter| scatter.to_p99());
            judged = judged.test(ClaimTest {
                title: &format!(
                    "torque that 99 % of the steps of the {} motor lose at most",
                    motor.id.replace("ozin", " oz-in")
                ),
                unit: "%",
                // Half of the holding torque is available.
                value: error_us.map(|us| us.rising(|us| motor.lost(us.max(0.0)) * 200.0)),
                n: quiet.map(|scatter| scatter.n),
                bound: ClaimedBound::AtMost(TORQUE[at]),
            });
        }
        let [quiet_name, zero_name] = [
            ["uncompensated, away from the tick", "uncompensated, at the tick"],
            ["compensated, away from the tick", "compensated, at the tick"],
        ][at];
        judged
            .beside(quiet_name, "µs", quiet.as_ref())
            .beside(zero_name, "µs", zero.as_ref())
            .judged()
            .allowing_for_steal(stolen([[self.quiet.plain, self.quiet.compensated][at]]))
    }
}

/// The most that others may have taken of one of these loops' time, in [0, 1].
fn stolen<const N: usize>(runs: [Option<&MeasuredLoop>; N]) -> f64 {
    runs.into_iter().flatten().map(|run| run.stolen).fold(0.0, f64::max)
}

/// §1.
fn cache() -> PaperClaim {
    PaperClaim::new("nist.claim.cache", "Without its cache a PC is twenty times slower")
        .untested("user space disables no cache: it takes a kernel module that sets CR0.CD")
        .judged()
}

#[cfg(test)]
mod tests {
    use punctual_analysis::claim::judge::Holds;
    use punctual_analysis::summary::SummaryStats;
    use punctual_lab::timer::{Background, StampStore, TimerPath, TimerRow};

    use super::*;
    use crate::claim::evenly;

    /// Wakes that scatter evenly over so many ns.
    fn timer(over_ns: i64, n: usize) -> TimerOutcome {
        let scatter = Scatter::of_series(evenly(1_000, over_ns, n, false));
        let row = TimerRow {
            path: TimerPath::Sleep,
            store: StampStore::Array,
            period_ns: 500_000,
            background: Background::None,
            n: n as u64,
            missed: 0,
            interrupts: None,
            counters: Vec::new(),
            lateness_ns: SummaryStats::default(),
            scatter,
            cpu_share: None,
            lateness: Default::default(),
            series: Vec::new(),
            series_missed: 0,
        };
        let (policy, rows) = ("SCHED_FIFO".to_owned(), vec![row]);
        TimerOutcome {
            cpu: 1,
            policy,
            priority: Some(90),
            rows,
            deadline_refused: Some(1),
            no_counters: None,
        }
    }

    /// Uncompensated and compensated scatter at both phases, and timers with each load; what of
    /// the compensated cycles is a stall; the loop's CPU time.
    struct Machine {
        scatter_ns: [i64; 2],
        timers_ns: [i64; 3],
        n: usize,
        stall: bool,
        /// Releases that one long stall makes late, one after the other.
        missed: usize,
        cpu: f64,
        /// The share of its time that others may have had.
        stolen: f64,
    }

    impl Machine {
        const GOOD: Self = Self {
            scatter_ns: [4_000, 60],
            timers_ns: [3_000, 9_000, 12_000],
            n: 4_001,
            stall: false,
            missed: 0,
            cpu: 0.15,
            stolen: 0.0,
        };

        fn judged(&self) -> Vec<PaperClaim> {
            let loops = self.scatter_ns.map(|over_ns| {
                let mut values = evenly(1_000, over_ns, self.n, self.stall);
                for (at, value) in (1..=self.missed).rev().zip(&mut values[self.n / 2..]) {
                    *value = at as i64 * 500_000;
                }
                let run = MeasuredLoop::of_latenesses(&values, self.cpu, 50_000);
                MeasuredLoop { stolen: self.stolen, ..run }
            });
            let timers = self.timers_ns.map(|over_ns| timer(over_ns, self.n));
            let timers: Vec<Option<&TimerOutcome>> = timers.iter().map(Some).collect();
            let pair = Pair { plain: Some(&loops[0]), compensated: Some(&loops[1]) };
            Evidence { quiet: pair, zero: pair, timers: &timers }.claims()
        }

        fn holds(&self, id: &str) -> Holds {
            let claims = self.judged();
            let claim = claims.iter().find(|claim| claim.id == format!("nist.claim.{id}"));
            claim.expect("a claim").holds
        }
    }

    const IDS: [&str; 6] =
        ["factor", "cost", "loaded", "environment", "torque", "torque-compensated"];

    #[test]
    fn each_claim_has_all_three_verdicts() {
        let worse = Machine {
            scatter_ns: [9_000, 900],
            timers_ns: [9_000, 60_000, 3_000],
            cpu: 0.31,
            ..Machine::GOOD
        };
        let few = Machine { n: 83, ..Machine::GOOD };
        for id in IDS {
            assert_eq!(Machine::GOOD.holds(id), Holds::Yes, "{id}");
            assert_eq!(worse.holds(id), Holds::No, "{id}");
        }
        for id in IDS.into_iter().filter(|id| *id != "cost") {
            assert_eq!(few.holds(id), Holds::Undecided, "{id}");
        }
        let none = Evidence { quiet: Pair::default(), zero: Pair::default(), timers: &[] };
        for claim in none.claims() {
            assert_eq!(claim.holds, Holds::Undecided, "{claim:?}");
            assert!(!claim.because.is_empty() && claim.figures.is_empty(), "{claim:?}");
        }
    }

    #[test]
    fn a_host_that_took_more_than_1_in_100_leaves_open_what_it_may_have_reversed() {
        let worse =
            Machine { scatter_ns: [9_000, 900], stolen: 0.02, timers_ns: [1; 3], ..Machine::GOOD };
        for id in ["factor", "torque", "torque-compensated"] {
            assert_eq!(worse.holds(id), Holds::Undecided, "{id}");
            assert_eq!(Machine { stolen: 0.02, ..Machine::GOOD }.holds(id), Holds::Yes, "{id}");
        }
    }

    #[test]
    fn one_stall_reverses_no_verdict() {
        let stalled = Machine { stall: true, ..Machine::GOOD };
        for id in IDS {
            assert_eq!(stalled.holds(id), Holds::Yes, "{id}");
        }
        // One that makes more than 1 in 100 late leaves open what it was shown by, and no more.
        let long = Machine { missed: 60, ..Machine::GOOD };
        for id in IDS {
            assert_ne!(long.holds(id), Holds::No, "{id}");
        }
        // The range is there, beside what it does not decide.
        let claims = stalled.judged();
        let ranges = claims[0].figures.iter().filter(|figure| figure.title.contains("one stall"));
        assert!(ranges.clone().count() > 0 && ranges.clone().all(|range| range.test.is_none()));
        assert!(ranges.clone().any(|range| range.value.value > 79_000.0));
    }
}
