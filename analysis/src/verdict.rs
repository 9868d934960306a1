//! Answers for loops from what was measured: a ladder of periods, one answer each.
//!
//! A loop of a measured period is *shown* to keep a requirement (later than its deadline at most
//! once in so many cycles), *refuted*, or *open*: too little was seen. Every run of that period
//! must show it; one that refutes it is enough. Longer periods, whose loops did not run, are
//! *expected* to keep it where all that ran was punctual enough for their deadline, lateness taken
//! to be the same; shorter ones are *unmeasured*. The confidence of 95 % is that of all answers
//! together (Bonferroni). A missed release counts with its lateness (`claim::dependence`).
//!
//! Arithmetic only; says nothing in words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::ask::{Ask, ClaimEvent};
use crate::claim::bound::CONFIDENCE;
use crate::claim::dependence::Tails;
use crate::claim::judge::{Holds, Judged, StoppingRule, judge};
use crate::quantile::Probability;

/// The lateness from which a release counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// A tenth of its period.
    Tenth,
    /// A tenth of its period, and so many ns at least.
    TenthFrom(i64),
    /// So many ns.
    Ns(i64),
}

/// The requirement on a loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requirement {
    /// Its deadline.
    pub deadline: Deadline,
    /// The share of releases that may be later, in (0, 1).
    pub p: f64,
}

impl Default for Requirement {
    /// A tenth of the period, once in 1000 releases.
    fn default() -> Self {
        Self { deadline: Deadline::Tenth, p: 1e-3 }
    }
}

impl Requirement {
    /// Cycles that show it when none is late, as one of so many answers.
    pub fn cycles_needed(&self, answers: usize) -> u64 {
        let doubt = (1.0 - CONFIDENCE) / answers.max(1) as f64;
        (-doubt.ln() / self.p).ceil() as u64
    }

    /// The claim that no more are later than this deadline, ns, to be shown with this confidence;
    /// `None` where the one or the other is no probability.
    pub fn ask(&self, deadline_ns: i64, confidence: f64) -> Option<Ask> {
        let event = ClaimEvent::Lateness { above_ns: deadline_ns };
        Ask::new(event, self.p, Probability::from_share(confidence)?)
    }

    /// The deadline of a loop of this period, ns.
    pub fn deadline_ns(&self, period_ns: u64) -> i64 {
        match self.deadline {
            Deadline::Tenth => tenth(period_ns),
            Deadline::TenthFrom(least_ns) => tenth(period_ns).max(least_ns),
            Deadline::Ns(ns) => ns,
        }
    }
}

fn tenth(period_ns: u64) -> i64 {
    i64::try_from(period_ns / 10).unwrap_or(i64::MAX).max(1)
}

/// The standing of a loop of one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stands {
    /// It was measured, and keeps the requirement.
    Shown,
    /// It was measured, and keeps the requirement if late releases come alone: too few were late,
    /// or at too few places, to see how they come.
    #[serde(rename = "if-alone")]
    IfAlone,
    /// It was measured, and does not keep it.
    Refuted,
    /// It was measured, and too little was seen to tell.
    Open,
    /// It was not measured; by what was, it would keep the requirement.
    Expected,
    /// It was not measured.
    Unmeasured,
}

/// The answer for one period.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// The period, ns; `None` for data that have none and are held to a deadline of their own.
    pub period_ns: Option<u64>,
    /// The deadline, ns.
    pub deadline_ns: i64,
    /// The answer.
    pub stands: Stands,
    /// The run that decides, counted from 0, where others of this period stand otherwise.
    pub run: Option<usize>,
    /// Releases that were later than the deadline, at least: of that run, else of all of this
    /// period. Of recorded counts a bucket may hold the deadline, and then it is not known which.
    pub exceedances_at_least: u64,
    /// The same, at most.
    pub exceedances: u64,
    /// Releases of the same.
    pub n: u64,
    /// The length of a run that would decide, as a multiple of that run; null where it is not
    /// known.
    pub longer: Option<f64>,
    /// The cycles of such a run; null where they are not known.
    pub n_needed: Option<u64>,
    /// Where it is open and no number of cycles would show it: the share of that run's releases
    /// that were later, at most; null elsewhere.
    pub share_too_large: Option<f64>,
}

/// One measured run: its period, where it has one, and what was counted.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredRun<'a> {
    /// The period, ns; `None` for data that have none.
    pub period_ns: Option<u64>,
    /// Its exceedances.
    pub tails: &'a Tails,
}

/// The periods that are judged: 1-2-5 steps from 10 µs to 10 s, ns.
pub fn periods_ns() -> impl DoubleEndedIterator<Item = i64> {
    (4..=10)
        .flat_map(|decade| [1, 2, 5].map(|step| step * 10i64.pow(decade)))
        .filter(|&ns| ns <= 10_000_000_000)
}

/// The distance of neighbours from a measured period: a tenth of its rate, five times its rate.
const NEIGHBOURS: (u64, u64) = (10, 5);

/// The answers, longest period last: each measured one, and its neighbours.
pub fn ladder(
    runs: &[MeasuredRun<'_>],
    requirement: &Requirement,
    ended: StoppingRule,
) -> Vec<Rung> {
    let mut measured: Vec<u64> = runs.iter().filter_map(|run| run.period_ns).collect();
    measured.sort_unstable();
    measured.dedup();
    let without = runs.iter().filter(|run| run.period_ns.is_none()).count();
    // A deadline that is given holds for wakes as such.
    let is_given = matches!(requirement.deadline, Deadline::Ns(_)) && without > 0;
    let neighbours = match measured.is_empty() && is_given {
        true => Vec::new(),
        false => neighbours(&measured, runs.is_empty()),
    };
    let longest = measured.last().copied().unwrap_or(0);
    let answers = |period_ns: &u64| match measured.contains(period_ns) {
        true => runs.iter().filter(|run| run.period_ns == Some(*period_ns)).count(),
        false if *period_ns > longest => runs.len(),
        false => 0,
    };
    let periods: Vec<u64> = measured.iter().chain(&neighbours).copied().collect();
    let family = periods.iter().map(answers).sum::<usize>() + if is_given { without } else { 0 };
    let family = family.max(1);
    let confidence = 1.0 - (1.0 - CONFIDENCE) / family as f64;
    let question = Question { requirement, ended, confidence };
    let mut rungs: Vec<Rung> = periods
        .iter()
        .map(|&period_ns| match measured.contains(&period_ns) {
            true => question.measured(Some(period_ns), runs),
            false if period_ns > longest => question.expected(period_ns, runs),
            false => question.rung(Some(period_ns), Stands::Unmeasured),
        })
        .collect();
    rungs.extend(is_given.then(|| question.measured(None, runs)));
    rungs.sort_by_key(|rung| rung.period_ns);
    rungs
}

/// Periods near those that were measured; all that can be asked of data without a period.
fn neighbours(measured: &[u64], nothing: bool) -> Vec<u64> {
    let (Some(first), Some(last)) = (measured.first(), measured.last()) else {
        let common = |ns: &u64| (200_000..=10_000_000).contains(ns) && !nothing;
        return periods_ns().map(i64::unsigned_abs).filter(common).collect();
    };
    let (longer, shorter) = NEIGHBOURS;
    let near = first / shorter..=last.saturating_mul(longer);
    let periods = periods_ns().map(i64::unsigned_abs);
    periods.filter(|ns| near.contains(ns) && (ns > last || ns < first)).collect()
}

/// The question about one period.
struct Question<'a> {
    requirement: &'a Requirement,
    ended: StoppingRule,
    confidence: f64,
}

impl Question<'_> {
    fn rung(&self, period_ns: Option<u64>, stands: Stands) -> Rung {
        let deadline_ns = self.requirement.deadline_ns(period_ns.unwrap_or(0));
        Rung {
            period_ns,
            deadline_ns,
            stands,
            run: None,
            exceedances_at_least: 0,
            exceedances: 0,
            n: 0,
            longer: None,
            n_needed: None,
            share_too_large: None,
        }
    }

    /// Each run's judgement, by the rule of claims.
    fn judged(&self, deadline_ns: i64, tails: &Tails) -> Option<Judged> {
        let ask = self.requirement.ask(deadline_ns, self.confidence)?;
        Some(judge(&ask, &Ok(tails.counted(deadline_ns)), self.ended, None))
    }

    /// All runs show it, or one refutes it, or it is open; of those that decide, the one with the
    /// largest bound.
    fn measured(&self, period_ns: Option<u64>, runs: &[MeasuredRun<'_>]) -> Rung {
        let rung = self.rung(period_ns, Stands::Open);
        let of_period = runs.iter().enumerate().filter(|(_, run)| run.period_ns == period_ns);
        let judged: Vec<(usize, Stands, Judged)> = of_period
            .filter_map(|(at, run)| {
                let judged = self.judged(rung.deadline_ns, run.tails)?;
                Some((at, stands(&judged), judged))
            })
            .collect();
        let order = |stands: Stands| match stands {
            Stands::Refuted => 3,
            Stands::Open => 2,
            Stands::IfAlone => 1,
            _ => 0,
        };
        let bound = |judged: &Judged| judged.p_upper.unwrap_or(1.0);
        let worst = judged.iter().max_by(|(_, a, judged_a), (_, b, judged_b)| {
            order(*a).cmp(&order(*b)).then(bound(judged_a).total_cmp(&bound(judged_b)))
        });
        let Some((at, stands, decisive)) = worst else { return rung };
        let own = decisive.n.unwrap_or(0);
        let alone = judged.iter().any(|(_, answer, _)| answer != stands);
        let counted = judged.iter().filter(|(index, _, _)| !alone || index == at);
        let counted: Vec<&Judged> = counted.map(|(_, _, run)| run).collect();
        let sum = |count: fn(&Judged) -> Option<u64>| {
            counted.iter().filter_map(|run| count(run)).fold(0, u64::saturating_add)
        };
        let n_needed = decisive.n_needed.filter(|_| own > 0);
        // The rule of claims: as many cycles as it takes, or none would do at the share seen.
        let is_hopeless = *stands == Stands::Open && n_needed.is_none() && own > 0;
        let late = decisive.exceedances_at_most.filter(|_| is_hopeless);
        Rung {
            stands: *stands,
            run: alone.then_some(*at),
            exceedances_at_least: sum(|run| run.exceedances),
            exceedances: sum(|run| run.exceedances_at_most),
            n: sum(|run| run.n),
            longer: n_needed.map(|needed| needed as f64 / own as f64),
            n_needed,
            share_too_large: late.map(|late| late as f64 / own as f64),
            ..rung
        }
    }

    /// The answer for a longer period: expected where all that ran was punctual enough.
    fn expected(&self, period_ns: u64, runs: &[MeasuredRun<'_>]) -> Rung {
        let deadline_ns = self.requirement.deadline_ns(period_ns);
        let shows = |run: &MeasuredRun<'_>| {
            let judged = self.judged(deadline_ns, run.tails);
            judged.is_some_and(|judged| matches!(judged.holds, Holds::Yes | Holds::IfAlone))
        };
        let shown = !runs.is_empty() && runs.iter().all(shows);
        self.rung(Some(period_ns), if shown { Stands::Expected } else { Stands::Unmeasured })
    }
}

/// The standing of what was measured, by its judgement.
pub fn stands(judged: &Judged) -> Stands {
    match judged.holds {
        Holds::Yes => Stands::Shown,
        Holds::IfAlone => Stands::IfAlone,
        Holds::No => Stands::Refuted,
        Holds::Undecided => Stands::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::dependence::Exceedances;

    fn tails(latenesses: impl Iterator<Item = i64>, missed: u64) -> Tails {
        let mut exceedances = Exceedances::new(0, &[]);
        latenesses.for_each(|ns| exceedances.push(ns, 0, 0));
        exceedances.finish(missed)
    }

    /// `late` of n cycles, spread out irregularly, are at `late_ns`, the others at 5 µs.
    fn with_late(n: u64, late: u64, late_ns: i64) -> Tails {
        let mut state = 7u64;
        tails(
            (0..n).map(move |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if (state >> 33) % n < late { late_ns } else { 5_000 }
            }),
            0,
        )
    }

    const MS: u64 = 1_000_000;

    fn at(period_ns: u64, tails: &[&Tails]) -> Vec<Rung> {
        let tails: Vec<Tails> = tails.iter().map(|&tails| tails.clone()).collect();
        let runs: Vec<MeasuredRun<'_>> =
            tails.iter().map(|tails| MeasuredRun { period_ns: Some(period_ns), tails }).collect();
        ladder(&runs, &Requirement::default(), StoppingRule::AsPlanned)
    }

    fn stands_at(rungs: &[Rung], period_ns: u64) -> Stands {
        rungs.iter().find(|rung| rung.period_ns == Some(period_ns)).expect("a rung").stands
    }

    #[test]
    fn the_periods_are_1_2_5_from_10_us_to_10_s() {
        let periods: Vec<i64> = periods_ns().collect();
        assert_eq!((periods[0], periods[1], periods[2]), (10_000, 20_000, 50_000));
        assert_eq!((periods.len(), periods[18]), (19, 10_000_000_000));
    }

    #[test]
    fn a_deadline_that_is_given_holds_for_wakes_without_a_period() {
        let tails = with_late(100_000, 5_000, 30_000);
        let runs = [MeasuredRun { period_ns: None, tails: &tails }];
        let stands = |deadline| {
            let requirement = Requirement { deadline, p: 1e-2 };
            let rungs = ladder(&runs, &requirement, StoppingRule::AsPlanned);
            let own = rungs.into_iter().find(|rung| rung.period_ns.is_none());
            own.map(|rung| (rung.stands, rung.n))
        };
        assert_eq!(stands(Deadline::Ns(20_000)), Some((Stands::Refuted, 100_000)));
        assert_eq!(stands(Deadline::Ns(40_000)), Some((Stands::IfAlone, 100_000)));
        assert_eq!(stands(Deadline::Tenth), None, "a tenth of what is not known");
    }

    #[test]
    fn what_was_measured_is_shown_and_longer_periods_are_expected() {
        let rungs = at(MS, &[&tails((0..100_000).map(|_| 8_000), 0)]);
        let answers: Vec<(u64, Stands)> =
            rungs.iter().map(|rung| (rung.period_ns.unwrap_or(0), rung.stands)).collect();
        assert_eq!(
            answers,
            [
                (200_000, Stands::Unmeasured),
                (500_000, Stands::Unmeasured),
                (MS, Stands::IfAlone),
                (2 * MS, Stands::Expected),
                (5 * MS, Stands::Expected),
                (10 * MS, Stands::Expected),
            ]
        );
        assert_eq!((rungs[2].exceedances, rungs[2].n, rungs[2].run), (0, 100_000, None));
        // Exactly on the threshold is not above it.
        let edge = at(MS, &[&tails((0..100_000).map(|_| 100_000), 0)]);
        assert_eq!(stands_at(&edge, MS), Stands::IfAlone);
        // One in 300 at 150 µs: 1 ms is out, 2 ms would be fine.
        let late = at(MS, &[&with_late(100_000, 333, 150_000)]);
        assert_eq!(stands_at(&late, MS), Stands::Refuted, "{late:?}");
        assert_eq!(stands_at(&late, 2 * MS), Stands::Expected, "{late:?}");
    }

    #[test]
    fn the_worst_run_decides() {
        let (good, bad) = (with_late(100_000, 0, 0), with_late(100_000, 500, 400_000));
        let rungs = at(MS, &[&good, &bad]);
        let rung = rungs.iter().find(|rung| rung.period_ns == Some(MS)).expect("measured");
        assert_eq!((rung.stands, rung.run), (Stands::Refuted, Some(1)));
        assert_eq!((rung.exceedances, rung.n), (bad.exceedances(100_000).unwrap(), 100_000));
        assert_eq!(rung.exceedances_at_least, rung.exceedances, "a threshold that was watched");
        assert_eq!(stands_at(&rungs, 2 * MS), Stands::Unmeasured, "not expected");
        assert_eq!(stands_at(&rungs, 5 * MS), Stands::Expected);
    }

    #[test]
    fn a_short_run_says_how_long_it_must_be() {
        let short = at(MS, &[&tails((0..2_900).map(|_| 5_000), 0)]);
        let rung = short.iter().find(|rung| rung.period_ns == Some(MS)).expect("measured");
        assert_eq!((rung.stands, rung.n), (Stands::Open, 2_900));
        let longer = rung.longer.expect("known");
        let enough = (2_900.0 * longer).ceil() as u64;
        assert!(rung.n_needed.is_some_and(|needed| needed.abs_diff(enough) <= 1), "{rung:?}");
        assert_eq!(rung.share_too_large, None);
        let enough = tails((0..enough).map(|_| 5_000), 0);
        assert_eq!(stands_at(&at(MS, &[&enough]), MS), Stands::IfAlone);
        assert!(ladder(&[], &Requirement::default(), StoppingRule::AsPlanned).is_empty());
    }

    #[test]
    fn no_number_of_cycles_shows_a_share_that_is_too_large_already() {
        // One burst: too little to refute it.
        let is_late = |cycle: u64| (1_000..1_020).contains(&cycle);
        let latenesses = (0..3_000).map(|cycle| if is_late(cycle) { 400_000 } else { 5_000 });
        let open = at(MS, &[&tails(latenesses, 0)]);
        let open = open.iter().find(|rung| rung.period_ns == Some(MS)).expect("measured");
        assert_eq!((open.stands, open.n_needed, open.longer), (Stands::Open, None, None));
        assert_eq!(open.share_too_large, Some(20.0 / 3_000.0));
        // What is refuted is so by the run itself.
        let refuted = at(MS, &[&with_late(100_000, 333, 150_000)]);
        let refuted = refuted.iter().find(|rung| rung.period_ns == Some(MS)).expect("measured");
        assert_eq!((refuted.stands, refuted.share_too_large), (Stands::Refuted, None));
    }

    #[test]
    fn more_answers_need_more_cycles_each() {
        // Alone at 10 s, without neighbours, 2996 cycles do; each further answer takes its part.
        let calm = |n: u64| tails((0..n).map(|_| 5_000), 0);
        let runs = |tails: &[Tails]| -> Stands {
            let run = |tails| MeasuredRun { period_ns: Some(10_000 * MS), tails };
            let runs: Vec<MeasuredRun<'_>> = tails.iter().map(run).collect();
            let rungs = ladder(&runs, &Requirement::default(), StoppingRule::AsPlanned);
            stands_at(&rungs, 10_000 * MS)
        };
        assert_eq!(runs(&[calm(2_996)]), Stands::IfAlone);
        assert_eq!(runs(&[calm(2_996), calm(2_996)]), Stands::Open);
        assert_eq!(runs(&[calm(3_690), calm(3_690)]), Stands::IfAlone);
    }

    #[test]
    fn cycles_that_went_unrecorded_count_as_late_as_may_be() {
        let tails = |lost| {
            let mut exceedances = Exceedances::new(0, &[]);
            (0..100_000).for_each(|_| exceedances.push(5_000, 0, 0));
            exceedances.finish_with(0, lost)
        };
        let many = at(MS, &[&tails(500)]);
        assert!(many.iter().all(|rung| !matches!(rung.stands, Stands::IfAlone | Stands::Expected)));
        let few = at(MS, &[&tails(1)]);
        let rung = few.iter().find(|rung| rung.period_ns == Some(MS)).expect("measured");
        assert_eq!((rung.stands, rung.exceedances, rung.n), (Stands::IfAlone, 1, 100_001));
    }

    #[test]
    fn missed_releases_that_no_cycle_followed_count_against_every_period() {
        let many = at(MS, &[&tails((0..100_000).map(|_| 5_000), 500)]);
        assert!(many.iter().all(|rung| !matches!(rung.stands, Stands::IfAlone | Stands::Expected)));
        let few = at(MS, &[&tails((0..100_000).map(|_| 5_000), 5)]);
        let rung = few.iter().find(|rung| rung.period_ns == Some(MS)).expect("measured");
        assert_eq!((rung.stands, rung.exceedances), (Stands::IfAlone, 5));
    }

    #[test]
    fn one_may_ask_for_a_deadline_and_a_share_of_ones_own() {
        let tails = with_late(100_000, 333, 150_000);
        let runs = [MeasuredRun { period_ns: Some(MS), tails: &tails }];
        let answer = |deadline_ns, p| {
            let requirement = Requirement { deadline: Deadline::Ns(deadline_ns), p };
            stands_at(&ladder(&runs, &requirement, StoppingRule::AsPlanned), MS)
        };
        assert_eq!(answer(100_000, 1e-2), Stands::Shown);
        assert_eq!(answer(100_000, 1e-3), Stands::Refuted);
        assert_eq!(answer(200_000, 1e-3), Stands::IfAlone);
        assert_eq!(answer(200_000, 1e-6), Stands::Open);
    }

    #[test]
    fn data_without_a_period_are_good_for_what_they_would_be_enough_for() {
        let tails = tails((0..100_000).map(|_| 60_000), 0);
        let runs = [MeasuredRun { period_ns: None, tails: &tails }];
        let rungs = ladder(&runs, &Requirement::default(), StoppingRule::AsPlanned);
        assert_eq!(stands_at(&rungs, 500_000), Stands::Unmeasured);
        assert_eq!(stands_at(&rungs, MS), Stands::Expected);
    }
}
