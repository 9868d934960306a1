//! The claims of AnT's paper, judged by today's tables, loops and registrations.

use punctual_analysis::interval::Interval;
use punctual_lab::executive::{DesignName, ExecutiveOutcome, ExecutiveRow};

use super::process::{OverrunRow, Overrunning, ProcessRow, TaskSet};
use super::{RegistrationRow, drift_ns};
use crate::bench::MeasuredLoop;
use crate::claim::{ClaimTest, ClaimedBound, PaperClaim};

/// The designs of the paper.
const RIVALS: [DesignName; 2] = [DesignName::Ant, DesignName::ArtLinux];
/// The number of tasks of the paper's largest case.
const MOST: usize = 100;
/// A cost that grows by no more than this share of a cost that grows with N is constant.
const CONSTANT: f64 = 0.1;
/// A cost that grows with N is at least this many times as much at the most tasks as at one.
const GROWS: f64 = 2.0;
/// Two costs that differ by no more than this factor are equal.
const EQUAL: f64 = 1.25;
/// Time that AnT saves in a cycle of the most tasks, µs: §4.4.
const SAVED: f64 = 50.0;
/// "Approximately 4 µs": what rounds to it, µs.
const ABOUT_4_US: [f64; 2] = [3.5, 4.5];

/// The measurements that the claims are judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'r> {
    /// A loop of 1 ms: from the timer to the process.
    pub(super) process: Option<&'r MeasuredLoop>,
    /// Loops by their period, ms.
    pub(super) intervals: &'r [(u64, Option<MeasuredLoop>)],
    /// Costs of releasing, dispatching and waiting.
    pub(super) executive: Option<&'r ExecutiveOutcome>,
    /// Tasks that registered at irregular times.
    pub(super) registration: &'r [RegistrationRow],
    /// Designs on the kernel's timer.
    pub(super) on_timer: &'r [ProcessRow],
    /// A task beside one that overruns.
    pub(super) overruns: &'r [OverrunRow],
}

/// A cost with its interval, ns.
type Cost = fn(&ExecutiveRow) -> Option<Interval>;

impl Evidence<'_> {
    /// All of them.
    pub(super) fn claims(self) -> Vec<PaperClaim> {
        vec![
            self.wait(),
            self.release(),
            self.saved(),
            self.balanced(),
            self.dispersion(),
            self.interval(),
            self.process(),
            self.overrun(),
        ]
    }

    /// A cost of a design with so many tasks, ns: with cold caches, as the paper evicts them, or
    /// with warm ones.
    fn cost(self, design: DesignName, n: usize, cold: bool, cost: Cost) -> Option<Interval> {
        let is_own = |row: &&ExecutiveRow| row.design == design && row.n == n && row.cold == cold;
        cost(self.executive?.rows.iter().find(is_own)?)
    }

    /// Cycles of a design with so many tasks, with cold caches or with warm ones.
    fn cycles(self, design: DesignName, n: usize, cold: bool) -> Option<u64> {
        let is_own = |row: &&ExecutiveRow| row.design == design && row.n == n && row.cold == cold;
        self.executive?.rows.iter().find(is_own).map(|row| row.cycles as u64)
    }

    /// The fewest cycles of the costs of these designs, with one task and with the most, that a
    /// test of them rests on.
    fn fewest(self, designs: &[DesignName], numbers: &[usize]) -> Option<u64> {
        let of_design =
            |design| numbers.iter().filter_map(move |n| self.cycles(design, *n, true)).min();
        designs.iter().filter_map(|design| of_design(*design)).min()
    }

    /// A claim with the cost of both designs beside it, with cold and with warm caches.
    fn beside(self, claim: PaperClaim, cost: Cost, numbers: &[usize]) -> PaperClaim {
        let designs = [DesignName::Ant, DesignName::ArtLinux, DesignName::Punctual];
        let mut claim = claim;
        for (cold, caches) in [(true, "cold"), (false, "warm")] {
            for design in designs {
                for n in numbers {
                    let title = format!("{design}, N = {n}, {caches} caches");
                    let value = self.cost(design, *n, cold, cost);
                    let cycles = self.cycles(design, *n, cold).unwrap_or(0);
                    claim = claim.figure(&title, "ns", value, cycles);
                }
            }
        }
        claim
    }

    /// §4.4, figure 10.
    fn wait(self) -> PaperClaim {
        let cost: Cost = |row| row.wait_interval_ns;
        let wait = |design, n| self.cost(design, n, true, cost);
        let grown = |design| Some(wait(design, MOST)?.minus(wait(design, 1)?));
        let growth = RIVALS.map(grown);
        let queue = wait(DesignName::ArtLinux, MOST).zip(wait(DesignName::ArtLinux, 1));
        let claim = PaperClaim::new(
            "ant.claim.wait",
            "AnT's wait takes as long with any number of tasks, ART-Linux's grows",
        )
        .test(ClaimTest {
            title: "growth from N = 1 to 100, AnT over ART-Linux",
            unit: "times",
            value: growth[0].zip(growth[1]).and_then(|(ant, art)| ant.over(art)),
            n: self.fewest(&RIVALS, &[1, MOST]),
            bound: ClaimedBound::AtMost(CONSTANT),
        })
        .test(ClaimTest {
            title: "ART-Linux's wait, N = 100 over N = 1",
            unit: "times",
            value: queue.and_then(|(most, least)| most.over(least)),
            n: self.fewest(&[DesignName::ArtLinux], &[1, MOST]),
            bound: ClaimedBound::AtLeast(GROWS),
        });
        self.beside(claim, cost, &[1, MOST]).judged()
    }

    /// §4.3, figure 9.
    fn release(self) -> PaperClaim {
        let cost: Cost = |row| row.release_interval_ns;
        let of_design = |design| self.cost(design, MOST, true, cost);
        let ratio = of_design(DesignName::Ant).zip(of_design(DesignName::ArtLinux));
        let ratio = ratio.and_then(|(ant, art)| ant.over(art));
        let test = |bound| ClaimTest {
            title: "release of 100 tasks, AnT over ART-Linux",
            unit: "times",
            value: ratio,
            n: self.fewest(&RIVALS, &[MOST]),
            bound,
        };
        let claim =
            PaperClaim::new("ant.claim.release", "A release takes as long in AnT as in ART-Linux")
                .test(test(ClaimedBound::AtLeast(1.0 / EQUAL)))
                .test(test(ClaimedBound::AtMost(EQUAL)));
        self.beside(claim, cost, &[MOST]).judged()
    }

    /// §4.4.
    fn saved(self) -> PaperClaim {
        let cost: Cost = |row| row.cycle_interval_ns;
        let cycle = |design| self.cost(design, MOST, true, cost);
        let saved = cycle(DesignName::ArtLinux).zip(cycle(DesignName::Ant));
        let claim = PaperClaim::new(
            "ant.claim.saved",
            "AnT saves 50 µs or more in a cycle of 100 tasks, 5 % of 1 ms",
        )
        .test(ClaimTest {
            title: "whole cycle of 100 tasks, ART-Linux less AnT",
            unit: "µs",
            value: saved.map(|(art, ant)| art.minus(ant).times(1e-3)),
            n: self.fewest(&RIVALS, &[MOST]),
            bound: ClaimedBound::AtLeast(SAVED),
        });
        self.beside(claim, cost, &[MOST]).judged()
    }

    /// §4.5, figures 11 and 12.
    fn balanced(self) -> PaperClaim {
        let apart = |design: DesignName| {
            let row = self.registration.iter().find(|row| row.design == design)?;
            Some(Interval::exact(row.released_most - row.released_fewest))
        };
        let n = self.registration.first().map(|row| row.ticks);
        let (ant, art) = (apart(DesignName::Ant), apart(DesignName::ArtLinux));
        PaperClaim::new(
            "ant.claim.balanced",
            "AnT spreads tasks evenly over ticks, and ART-Linux does not",
        )
        .test(ClaimTest {
            title: "most less fewest tasks released at a tick, AnT",
            unit: "tasks",
            value: ant,
            n,
            // "3 or 4".
            bound: ClaimedBound::AtMost(1.0),
        })
        .test(ClaimTest {
            title: "the same, ART-Linux less AnT",
            unit: "tasks",
            value: art.zip(ant).map(|(art, ant)| art.minus(ant)),
            n,
            bound: ClaimedBound::AtLeast(1.0),
        })
        .judged()
        // Delays are random and the same each time, and AnT's tables do not look at them.
        .by_construction(
            "the delays of ten registrations are the same on each machine, and so are the counts",
        )
    }

    /// §4.5, table 3.
    fn dispersion(self) -> PaperClaim {
        let scatter = |design: DesignName| {
            let row = self.registration.iter().find(|row| row.design == design);
            row.and_then(|row| row.release_scatter)
        };
        let (ant, art) = (scatter(DesignName::Ant), scatter(DesignName::ArtLinux));
        let at_99 = ant.and_then(|ant| ant.to_p99()).zip(art.and_then(|art| art.to_p99()));
        PaperClaim::new("ant.claim.dispersion", "A release scatters less in AnT")
            .test(ClaimTest {
                title: "99 % less the least of a release from cold caches, AnT over ART-Linux",
                unit: "times",
                value: at_99.and_then(|(ant, art)| ant.over(art)),
                n: ant.map(|ant| ant.n),
                bound: ClaimedBound::AtMost(1.0),
            })
            .beside("AnT", "ns", ant.as_ref())
            .beside("ART-Linux", "ns", art.as_ref())
            .beside("punctual", "ns", scatter(DesignName::Punctual).as_ref())
            .judged()
    }

    /// §2.2.3, figure 3: of a timer whose ticks are 0.4 % short, and which prints errors without a
    /// sign.
    fn interval(self) -> PaperClaim {
        let claim = "Intervals err by 0.4 % of the period, 4 µs at 1 ms";
        let mut judged = PaperClaim::new("ant.claim.interval", claim);
        for (period_ms, run) in self.intervals {
            let value = run.as_ref().and_then(|run| mean_error_us(run, *period_ms));
            let n = run.as_ref().map(|run| run.figures.cycles);
            let title = format!("error of the mean interval, period {period_ms} ms");
            // The period of which the claim has a number decides it.
            judged = match period_ms {
                1 => {
                    let test = |bound| ClaimTest { title: &title, unit: "µs", value, n, bound };
                    judged
                        .test(test(ClaimedBound::AtLeast(ABOUT_4_US[0])))
                        .test(test(ClaimedBound::AtMost(ABOUT_4_US[1])))
                }
                _ => judged.figure(&title, "µs", value, n.unwrap_or(0)),
            };
        }
        judged.judged()
    }

    /// §2.3, problem 4, and §6.
    fn process(self) -> PaperClaim {
        let scatter = |design: DesignName| {
            let is_own = |row: &&ProcessRow| (row.design, row.set) == (design, TaskSet::Irregular);
            self.on_timer.iter().find(is_own)?.scatter().map(|scatter| scatter.times(1e-3))
        };
        let middle = |design| scatter(design)?.middle();
        let (ant, art) = (middle(DesignName::Ant), middle(DesignName::ArtLinux));
        let kernel = self.process.and_then(MeasuredLoop::scatter_us);
        PaperClaim::new(
            "ant.claim.process",
            "From interrupt to process AnT scatters less than ART-Linux",
        )
        .test(ClaimTest {
            title: "from 5 to 95 % of the time to the first task, AnT over ART-Linux",
            unit: "times",
            value: ant.zip(art).and_then(|(ant, art)| ant.over(art)),
            n: scatter(DesignName::Ant).map(|scatter| scatter.n),
            bound: ClaimedBound::AtMost(1.0),
        })
        .beside("AnT", "µs", scatter(DesignName::Ant).as_ref())
        .beside("ART-Linux", "µs", scatter(DesignName::ArtLinux).as_ref())
        .beside("punctual", "µs", scatter(DesignName::Punctual).as_ref())
        .beside("a bare wake by the kernel's timer", "µs", kernel.as_ref())
        .judged()
    }

    /// §2.3, problem 3, and figure 4.
    fn overrun(self) -> PaperClaim {
        let scatter = |overrunning: Overrunning| {
            let row = self.overruns.iter().find(|row| row.overrunning == overrunning)?;
            row.scatter().map(|scatter| scatter.times(1e-3))
        };
        let over = |a: Overrunning, b: Overrunning| scatter(a)?.p95?.over(scatter(b)?.p95?);
        let test = |title, value, bound| ClaimTest {
            title,
            unit: "times",
            value,
            n: scatter(Overrunning::Ended).map(|scatter| scatter.n),
            bound,
        };
        let claim = PaperClaim::new(
            "ant.claim.overrun",
            "Ending a task that overran keeps it from disturbing others",
        )
        .test(test(
            "95 % of the errors of A's interval, B ended over B that goes on",
            over(Overrunning::Ended, Overrunning::GoesOn),
            ClaimedBound::AtMost(1.0),
        ))
        .test(test(
            "the same, B ended over B that never overruns",
            over(Overrunning::Ended, Overrunning::None),
            ClaimedBound::AtMost(EQUAL),
        ));
        let judged = Overrunning::ALL
            .into_iter()
            .fold(claim, |claim, overrunning| {
                claim.beside(overrunning.title(), "µs", scatter(overrunning).as_ref())
            })
            .judged();
        match scatter(Overrunning::Ended) {
            Some(_) => judged.remark(
                "once ended B runs no more, by the rule of §3.1: it disturbs A once a turn, which \
                 the range has and 95 % do not",
                "B runs no more",
            ),
            None => judged,
        }
    }
}

/// Distance of the mean interval from the period, µs, without a sign. Latenesses that lie between
/// two ends tilt a fitted line of n cycles by no more than 1.5 times their distance over n: all
/// early in the first half and all late in the second.
fn mean_error_us(run: &MeasuredLoop, period_ms: u64) -> Option<Interval> {
    let grid = run.figures.grid.as_ref()?;
    let drift_us = drift_ns(run, period_ms)? / 1e3;
    let tilt_us = 1.5 * grid.jitter_pp_ns / run.figures.cycles.max(1) as f64 / 1e3;
    let error_us = drift_us.abs();
    Some(Interval::between((error_us - tilt_us).max(0.0), error_us, error_us + tilt_us))
}

#[cfg(test)]
mod tests {
    use punctual_analysis::claim::judge::Holds;
    use punctual_analysis::scatter::Scatter;

    use super::*;
    use crate::claim::evenly;

    /// Costs of both designs with 1 and 100 tasks, ns, within so much: release, wait, cycle.
    fn executive(ant: [[f64; 3]; 2], art: [[f64; 3]; 2], within: f64) -> ExecutiveOutcome {
        let mut rows = Vec::new();
        for (design, costs) in [(DesignName::Ant, ant), (DesignName::ArtLinux, art)] {
            for (n, [release, wait, cycle]) in [1, MOST].into_iter().zip(costs) {
                let around = |ns: f64| Some(Interval::between(ns - within, ns, ns + within));
                rows.push(ExecutiveRow {
                    design,
                    n,
                    cold: true,
                    cycles: 900,
                    release_ns: release,
                    dispatch_ns: 10.0,
                    wait_ns: wait,
                    cycle_ns: cycle,
                    floor_ns: 10.0,
                    release_interval_ns: around(release),
                    wait_interval_ns: around(wait),
                    cycle_interval_ns: around(cycle),
                });
            }
        }
        ExecutiveOutcome { rows, ratios: Vec::new(), turn: None }
    }

    /// A registration whose releases lie evenly over so many ns.
    fn registered(design: DesignName, apart: f64, over_ns: i64, stall: bool) -> RegistrationRow {
        let each = evenly(100, over_ns, 4_001, stall);
        RegistrationRow {
            design,
            released_most: 1.0 + apart,
            released_fewest: 1.0,
            release_ns: [0.0; 3],
            warm_ns: [0.0; 3],
            floor_ns: 0.0,
            release_scatter: Scatter::of_series(each),
            ticks: 4_001,
            released: Vec::new(),
        }
    }

    /// Loops of 1 ms whose wakes run away by so many ns a cycle.
    fn intervals(away_ns: i64, stall: bool) -> Vec<(u64, Option<MeasuredLoop>)> {
        let mut values: Vec<i64> =
            (0..2_000).map(|at| 2_000 + at * 7_919 % 500 + at * away_ns).collect();
        if stall {
            values[900] += 300_000;
        }
        vec![(1, Some(MeasuredLoop::of_latenesses(&values, 0.1, 1)))]
    }

    const NONE: Evidence<'_> = Evidence {
        process: None,
        intervals: &[],
        executive: None,
        registration: &[],
        on_timer: &[],
        overruns: &[],
    };

    fn holds(evidence: Evidence<'_>, id: &str) -> Holds {
        let id = format!("ant.claim.{id}");
        let claims = evidence.claims();
        claims.iter().find(|claim| claim.id == id).expect("a claim").holds
    }

    type AntFindings = (ExecutiveOutcome, [RegistrationRow; 2], Vec<(u64, Option<MeasuredLoop>)>);

    #[test]
    fn each_claim_has_all_three_verdicts_and_no_stall_reverses_one() {
        let paper = [[20.0, 30.0, 100.0], [900.0, 31.0, 9_000.0]];
        let queue = [[18.0, 25.0, 90.0], [950.0, 900.0, 70_000.0]];
        for stall in [false, true] {
            let registration = |apart: [f64; 2], over_ns: [i64; 2]| {
                [(DesignName::Ant, 0), (DesignName::ArtLinux, 1)].map(|(design, at)| {
                    // On the side where it would reverse the verdict.
                    let stall = stall && over_ns[at] < over_ns[1 - at];
                    registered(design, apart[at], over_ns[at], stall)
                })
            };
            let good = (
                executive(paper, queue, 1.0),
                registration([0.0, 4.0], [40, 200]),
                intervals(4_000, stall),
            );
            let bad = (
                executive(queue, paper, 1.0),
                registration([4.0, 0.0], [200, 40]),
                intervals(0, stall),
            );
            let wide = (
                executive(paper, queue, 60_000.0),
                registration([0.0, 4.0], [100, 100]),
                intervals(4_500, stall),
            );
            for id in ["wait", "release", "saved", "dispersion", "interval", "balanced"] {
                let judged = |(executive, registration, intervals): &AntFindings| {
                    let executive = Some(executive);
                    holds(Evidence { intervals, executive, registration, ..NONE }, id)
                };
                assert_eq!(judged(&good), Holds::Yes, "{id} {stall}");
                // Equal costs are equal whichever is which.
                let swapped = if id == "release" { Holds::Yes } else { Holds::No };
                assert_eq!(judged(&bad), swapped, "{id} {stall}");
                // Counts are exact.
                if id != "balanced" {
                    assert_eq!(judged(&wide), Holds::Undecided, "{id} {stall}");
                }
            }
        }
        let slower = [[20.0, 30.0, 100.0], [2_000.0, 31.0, 9_000.0]];
        let slower = executive(slower, queue, 1.0);
        assert_eq!(holds(Evidence { executive: Some(&slower), ..NONE }, "release"), Holds::No);
        for claim in NONE.claims() {
            assert_eq!(claim.holds, Holds::Undecided, "{claim:?}");
            assert_eq!(claim.remark, None, "{claim:?}");
        }
    }

    #[test]
    fn a_test_has_the_cycles_of_what_it_is_about() {
        let costs = [[20.0, 30.0, 100.0], [900.0, 31.0, 9_000.0]];
        let mut measured = executive(costs, costs, 1.0);
        let own = measured.rows[0].clone();
        let cycles = |rows: &mut [ExecutiveRow], design, n, cycles| {
            let is_own = |row: &&mut ExecutiveRow| row.design == design && row.n == n;
            rows.iter_mut().filter(is_own).for_each(|row| row.cycles = cycles);
        };
        cycles(&mut measured.rows, DesignName::ArtLinux, 1, 400);
        // Punctual's come first, and are in none of the tests.
        let punctual = ExecutiveRow { design: DesignName::Punctual, n: MOST, cycles: 7, ..own };
        measured.rows.insert(0, punctual);
        let claims = Evidence { executive: Some(&measured), ..NONE }.claims();
        let counts = |id: &str| -> Vec<Option<u64>> {
            let claim = claims.iter().find(|claim| claim.id == id).expect("a claim");
            let tests = claim.figures.iter().filter(|figure| figure.test.is_some());
            tests.map(|figure| figure.n).collect()
        };
        assert_eq!(counts("ant.claim.wait"), [Some(400), Some(400)]);
        assert_eq!(counts("ant.claim.release"), [Some(900), Some(900)]);
        assert_eq!(counts("ant.claim.saved"), [Some(900)]);
    }

    #[test]
    fn counts_that_no_machine_changes_say_it() {
        let registration = [
            registered(DesignName::Ant, 0.0, 40, false),
            registered(DesignName::ArtLinux, 4.0, 200, false),
        ];
        let claims = Evidence { registration: &registration, ..NONE }.claims();
        let claim = claims.iter().find(|claim| claim.id == "ant.claim.balanced").expect("a claim");
        assert_eq!((claim.holds, claim.remark.as_deref()), (Holds::Yes, Some("by construction")));
        assert!(claim.because.contains("the same on each machine"), "{}", claim.because);
    }

    #[test]
    fn intervals_err_to_either_side_and_by_what_rounds_to_4_us() {
        let judged = |away_ns| {
            let loops = intervals(away_ns, false);
            holds(Evidence { intervals: &loops, ..NONE }, "interval")
        };
        // The paper's own timer: 0.996 ms for 1 ms.
        assert_eq!(judged(-4_000), Holds::Yes);
        assert_eq!(judged(4_000), Holds::Yes);
        for away_ns in [-100_000, -3_000, 0, 5_000, 100_000] {
            assert_eq!(judged(away_ns), Holds::No, "{away_ns}");
        }
    }

    #[test]
    fn designs_on_a_timer_are_judged_by_the_middle_of_what_they_took() {
        let row = |design, over_ns, stall| ProcessRow {
            design,
            set: TaskSet::Irregular,
            times_ns: evenly(30_000, over_ns, 4_001, stall),
        };
        for stall in [false, true] {
            let judged = |ant, art| {
                let rows =
                    [row(DesignName::Ant, ant, stall), row(DesignName::ArtLinux, art, false)];
                holds(Evidence { on_timer: &rows, ..NONE }, "process")
            };
            assert_eq!(judged(2_000, 8_000), Holds::Yes);
            assert_eq!(judged(8_000, 2_000), Holds::No);
            assert_eq!(judged(5_000, 5_000), Holds::Undecided);
        }
    }

    #[test]
    fn ending_a_task_helps_only_where_it_disturbs_no_more_than_one_that_never_overruns() {
        let row = |overrunning, over_ns| OverrunRow {
            overrunning,
            errors: evenly(10_000, over_ns, 4_001, false),
        };
        let judged = |ended| {
            let [none, goes_on, ended] = [
                (Overrunning::None, 2_000),
                (Overrunning::GoesOn, 2_000_000),
                (Overrunning::Ended, ended),
            ]
            .map(|(overrunning, over_ns)| row(overrunning, over_ns));
            holds(Evidence { overruns: &[none, goes_on, ended], ..NONE }, "overrun")
        };
        assert_eq!(judged(2_000), Holds::Yes);
        assert_eq!(judged(1_000_000), Holds::No);
        assert_eq!(judged(4_000_000), Holds::No);
        // A few intervals that its one overrun moved are no more than 5 %.
        let (mut once, quiet) =
            (evenly(10_000, 2_000, 4_001, false), row(Overrunning::None, 2_000));
        once.iter_mut().step_by(50).for_each(|error| *error = 2_500_000);
        let goes_on = row(Overrunning::GoesOn, 2_000_000);
        let once = OverrunRow { overrunning: Overrunning::Ended, errors: once };
        let claims = Evidence { overruns: &[quiet, goes_on, once], ..NONE }.claims();
        let claim = claims.iter().find(|claim| claim.id == "ant.claim.overrun").expect("a claim");
        assert_eq!(claim.holds, Holds::Yes, "{}", claim.because);
        assert_eq!(claim.remark.as_deref(), Some("B runs no more"));
    }
}
