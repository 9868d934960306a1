//! The claims of the paper on Windows CE, judged by today's answers and trials. It compares three
//! systems; here one stands for each.

use punctual_analysis::interval::Interval;
use punctual_analysis::scatter::Scatter;
use punctual_lab::response::ResponseRow;
use punctual_lab::saturation::{SaturationOutcome, SaturationRow, TrialRow};

use super::WinceResponses;
use crate::claim::{ClaimTest, ClaimedBound, PaperClaim};

/// "95% or more of the jitter" unloaded, µs: figure 6.
const UNLOADED: f64 = 2.5;
/// Factors by which the interrupt's stage starts later and wider at most under load: CE.NET's
/// latency and jitter in figure 11, the largest there, where the text has it start as before.
const LATER: f64 = 6.3 / 3.0;
const WIDER: f64 = 9.4 / 3.0;
/// The window in which the application's stage starts under load, µs: figures 6 and 11.
const WALL: f64 = 133.0;
/// The share of stimuli lost that a highest frequency may have: none at all is decided by stalls.
const GOAL: f64 = 0.01;
/// Less of a frequency than this share is a change; CE.NET's MF-APP keeps 98 %.
const UNCHANGED: f64 = 0.9;
/// The share of MF-APP that a competitor of equal priority leaves, least and most: 15 of 28 kHz,
/// "more than 50%" in the text, so what rounds to a half in tens.
const HALVED: [f64; 2] = [0.45, 0.55];

/// The starts of a stage (0: the interrupt's), µs.
fn starts(row: Option<&ResponseRow>, stage: usize) -> Option<Scatter> {
    Some(row?.stages.get(stage)?.scatter?.times(1e-3))
}

fn at_99(scatter: Option<Scatter>) -> Option<Interval> {
    scatter?.to_p99()
}

fn median(scatter: Option<Scatter>) -> Option<Interval> {
    scatter?.p50
}

/// All claims.
pub(super) fn claims(
    measured: &WinceResponses,
    saturation: Option<&SaturationOutcome>,
) -> Vec<PaperClaim> {
    let (idle, equal) = (measured.idle.as_ref(), measured.equal.as_ref());
    let mut claims = answers(idle, equal);
    claims.extend(frequencies(saturation));
    claims
}

/// Those on when stages start.
fn answers(idle: Option<&ResponseRow>, equal: Option<&ResponseRow>) -> Vec<PaperClaim> {
    let [isr, app] = [0, 1].map(|stage| starts(idle, stage));
    let [isr_loaded, app_loaded] = [0, 1].map(|stage| starts(equal, stage));
    let n = |scatter: Option<Scatter>| scatter.map(|scatter| scatter.n);
    let over = |loaded: Option<Interval>, idle: Option<Interval>| loaded?.over(idle?);
    let unloaded = |title, scatter: Option<Scatter>| ClaimTest {
        title,
        unit: "µs",
        value: scatter.and_then(|scatter| scatter.to_p95()),
        n: n(scatter),
        bound: ClaimedBound::AtMost(UNLOADED),
    };
    let determinism = PaperClaim::new(
        "wince.claim.determinism",
        "Unloaded, 95 % of both stages' starts vary by at most 2.5 µs",
    )
    .test(unloaded("interrupt's stage, 95 % of all stimuli less the least", isr))
    .test(unloaded("application's stage, 95 % of all stimuli less the least", app))
    .beside("interrupt's stage, unloaded", "µs", isr.as_ref())
    .beside("application's stage, unloaded", "µs", app.as_ref());
    let interrupt = PaperClaim::new(
        "wince.claim.interrupt-loaded",
        "Load delays the interrupt's stage to 2.1 times at most (figure 11)",
    )
    .test(ClaimTest {
        title: "median start of the interrupt's stage, loaded over unloaded",
        unit: "times",
        value: over(median(isr_loaded), median(isr)),
        n: n(isr_loaded),
        bound: ClaimedBound::AtMost(LATER),
    })
    .test(ClaimTest {
        title: "its 99 % less the least, loaded over unloaded",
        unit: "times",
        value: over(at_99(isr_loaded), at_99(isr)),
        n: n(isr_loaded),
        bound: ClaimedBound::AtMost(WIDER),
    })
    .beside("interrupt's stage, loaded", "µs", isr_loaded.as_ref());
    let wall = PaperClaim::new(
        "wince.claim.application-loaded",
        "Beside an equal the application's stage starts within 133 µs",
    )
    .test(ClaimTest {
        title: "start of the application's stage that 1 in 100 stimuli exceeds, loaded",
        unit: "µs",
        value: app_loaded.and_then(|scatter| scatter.p99),
        n: n(app_loaded),
        bound: ClaimedBound::AtMost(WALL),
    })
    .beside("application's stage, loaded", "µs", app_loaded.as_ref());
    let more = PaperClaim::new(
        "wince.claim.more-deterministic",
        "Load makes the application's stage steadier (CE.NET)",
    )
    .test(ClaimTest {
        title: "its 99 % less the least, loaded over unloaded",
        unit: "times",
        value: over(at_99(app_loaded), at_99(app)),
        n: n(app_loaded),
        bound: ClaimedBound::AtMost(1.0),
    })
    .beside("application's stage, unloaded", "µs", app.as_ref())
    .beside("application's stage, loaded", "µs", app_loaded.as_ref());
    [determinism, interrupt, wall, more].map(PaperClaim::judged).into()
}

/// The highest frequency of a stage, kHz: between the one that passes and the one that fails.
fn highest(
    saturation: Option<&SaturationOutcome>,
    condition: &str,
    stage: u32,
) -> Option<Interval> {
    let is_own =
        |row: &&SaturationRow| row.condition == condition && row.stage == stage && row.goal == GOAL;
    let row = saturation?.rows.iter().find(is_own)?;
    let value = row.pass_hz.or(row.fail_hz)?;
    let interval = Interval { value, low: Some(row.pass_hz.unwrap_or(0.0)), high: row.fail_hz };
    Some(interval.times(1e-3))
}

/// The frequency from which on a background has less than a tenth, kHz, and the number of trials
/// beside it.
fn saturating(saturation: Option<&SaturationOutcome>) -> (Option<Interval>, u64) {
    let trials = saturation.map_or(&[][..], |saturation| &saturation.trials);
    let beside = |trial: &&TrialRow| trial.background_share.is_some();
    let found = saturation.and_then(SaturationOutcome::sf10).map(|hz| hz.times(1e-3));
    (found, trials.iter().filter(beside).count() as u64)
}

/// Those on the frequencies of figure 8.
fn frequencies(saturation: Option<&SaturationOutcome>) -> Vec<PaperClaim> {
    let mf = |condition, stage| highest(saturation, condition, stage);
    let n = saturation.map(|saturation| saturation.trials.len() as u64);
    let over = |a: Option<Interval>, b: Option<Interval>| a?.over(b?);
    let beside = |claim: PaperClaim, conditions: [(&'static str, &'static str, u32); 2]| {
        conditions.into_iter().fold(claim, |claim, (title, condition, stage)| {
            claim.figure(title, "kHz", mf(condition, stage), n.unwrap_or(0))
        })
    };
    let order = PaperClaim::new(
        "wince.claim.mf",
        "The interrupt's stage serves higher frequencies than the application's",
    )
    .test(ClaimTest {
        title: "MF-ISR over MF-APP, unloaded, at a loss of 1 %",
        unit: "times",
        value: over(mf("unloaded", 1), mf("unloaded", 2)),
        n,
        bound: ClaimedBound::AtLeast(1.0),
    });
    let order =
        beside(order, [("MF-ISR, unloaded", "unloaded", 1), ("MF-APP, unloaded", "unloaded", 2)]);
    let order = order.judged().by_construction(
        "the interrupt's stage wakes the application's once its own answer is complete, so that it \
         serves each stimulus that this one does",
    );
    let isr =
        PaperClaim::new("wince.claim.mf-loaded", "Load does not lower MF-ISR").test(ClaimTest {
            title: "MF-ISR, loaded over unloaded, at a loss of 1 %",
            unit: "times",
            value: over(mf("equal", 1), mf("unloaded", 1)),
            n,
            bound: ClaimedBound::AtLeast(UNCHANGED),
        });
    let isr = beside(isr, [("MF-ISR, unloaded", "unloaded", 1), ("MF-ISR, loaded", "equal", 1)]);
    let kept_by_app = |bound| ClaimTest {
        title: "MF-APP beside a competitor of its priority over unloaded, at a loss of 1 %",
        unit: "times",
        value: over(mf("equal", 2), mf("unloaded", 2)),
        n,
        bound,
    };
    let halved = PaperClaim::new(
        "wince.claim.mf-halved",
        "A load of equal priority halves MF-APP, 28 to 15 kHz (CE 3.0)",
    )
    .test(kept_by_app(ClaimedBound::AtLeast(HALVED[0])))
    .test(kept_by_app(ClaimedBound::AtMost(HALVED[1])));
    let kept = PaperClaim::new(
        "wince.claim.mf-kept",
        "A load of equal priority leaves MF-APP as it is (CE.NET)",
    )
    .test(kept_by_app(ClaimedBound::AtLeast(UNCHANGED)));
    let [halved, kept] = [halved, kept].map(|claim| {
        let conditions =
            [("MF-APP, unloaded", "unloaded", 2), ("MF-APP beside a competitor", "equal", 2)];
        beside(claim, conditions)
    });
    let (sf, trials) = saturating(saturation);
    let sf_claim = PaperClaim::new(
        "wince.claim.sf",
        "Other programs run on beyond MF-APP and stop below MF-ISR",
    )
    .test(ClaimTest {
        title: "frequency from which on they have less than a tenth, over MF-APP beside them",
        unit: "times",
        value: over(sf, mf("loaded", 2)),
        n: Some(trials),
        bound: ClaimedBound::AtLeast(1.0),
    })
    .test(ClaimTest {
        title: "MF-ISR beside them over that frequency",
        unit: "times",
        value: over(mf("loaded", 1), sf),
        n: Some(trials),
        bound: ClaimedBound::AtLeast(1.0),
    })
    .figure("frequency from which on other programs have less than a tenth", "kHz", sf, trials)
    .figure("MF-ISR beside them", "kHz", mf("loaded", 1), trials)
    .figure("MF-APP beside them", "kHz", mf("loaded", 2), trials);
    let [isr, halved, kept, sf_claim] = [isr, halved, kept, sf_claim].map(PaperClaim::judged);
    vec![order, isr, halved, kept, sf_claim]
}

#[cfg(test)]
mod tests {
    use punctual_analysis::claim::judge::Holds;
    use punctual_lab::response::StageRow;
    use punctual_lab::saturation::SearchEnd;

    use super::*;
    use crate::claim::evenly;

    /// Answers of which each stage starts from its first value on, scattered over the second, ns.
    fn answers_of(stages: [[i64; 2]; 2], n: usize, stall: bool) -> ResponseRow {
        let stage = |[from, over]: [i64; 2]| {
            let starts = evenly(from, over, n, stall);
            StageRow { scatter: Scatter::of_series(starts), ..StageRow::default() }
        };
        ResponseRow { stages: stages.map(stage).into(), ..ResponseRow::default() }
    }

    fn holds(claims: &[PaperClaim], id: &str) -> Holds {
        let id = format!("wince.claim.{id}");
        claims.iter().find(|claim| claim.id == id).expect("a claim").holds
    }

    #[test]
    fn starts_have_all_three_verdicts_and_no_stall_reverses_one() {
        let ids = ["determinism", "interrupt-loaded", "application-loaded", "more-deterministic"];
        for stall in [false, true] {
            let judged = |idle, equal, n| {
                let [idle, equal] = [idle, equal].map(|stages| answers_of(stages, n, stall));
                answers(Some(&idle), Some(&equal))
            };
            let idle = [[2_000, 1_000], [9_000, 2_000]];
            let good = judged(idle, [[2_500, 1_500], [9_000, 1_500]], 4_001);
            let bad =
                judged([[2_000, 9_000], idle[1]], [[20_000, 40_000], [9_000, 9_000_000]], 4_001);
            let few = judged(idle, [[2_500, 1_500], [9_000, 1_500]], 23);
            for id in ids {
                assert_eq!(holds(&good, id), Holds::Yes, "{id} {stall}");
                assert_eq!(holds(&bad, id), Holds::No, "{id} {stall}");
                assert_eq!(holds(&few, id), Holds::Undecided, "{id} {stall}");
            }
        }
        assert!(answers(None, None).iter().all(|claim| claim.holds == Holds::Undecided));
    }

    /// Pass and fail of ISR and APP, unloaded and loaded, kHz; two frequencies of which the first
    /// leaves the background 30 %, and the second 3 %.
    fn saturation(khz: [[f64; 2]; 6], sf_khz: [f64; 2]) -> SaturationOutcome {
        let row = |(at, [pass, fail]): (usize, [f64; 2])| SaturationRow {
            condition: ["unloaded", "loaded", "equal"][at / 2].to_owned(),
            stage: at as u32 % 2 + 1,
            goal: GOAL,
            pass_hz: Some(pass * 1e3),
            fail_hz: Some(fail * 1e3),
            first_loss_hz: Some(250.0),
            stimuli: 1_000,
            end: SearchEnd::Found,
        };
        let trial = |(khz, share): (f64, f64)| TrialRow {
            condition: "loaded".to_owned(),
            hz: khz * 1e3,
            background_share: Some(share),
            ..TrialRow::default()
        };
        SaturationOutcome {
            source: "eventfd".to_owned(),
            cpu: 1,
            stimulus_cpu: 0,
            trial_ns: 400_000_000,
            unthrottled: false,
            highest_hz: 5e4,
            stage_2: None,
            generator_hz: None,
            rows: khz.into_iter().enumerate().map(row).collect(),
            trials: sf_khz.into_iter().zip([0.3, 0.03]).map(trial).collect(),
            background: None,
            lost: None,
        }
    }

    #[test]
    fn frequencies_have_all_three_verdicts() {
        // The paper's own, nearly.
        let pairs = |[isr, app, loaded_isr, loaded_app, equal]: [[f64; 2]; 5]| {
            saturation([isr, app, loaded_isr, loaded_app, loaded_isr, equal], [20.0, 30.0])
        };
        let good = pairs([[40.0, 41.0], [10.0, 10.3], [39.0, 40.0], [9.0, 9.3], [5.0, 5.1]]);
        let bad = pairs([[10.0, 10.2], [20.0, 21.0], [5.0, 5.2], [30.0, 31.0], [19.0, 20.0]]);
        let open = pairs([[5.0, 60.0], [4.0, 50.0], [5.0, 60.0], [4.0, 50.0], [4.0, 50.0]]);
        for id in ["mf", "mf-loaded", "mf-halved", "sf"] {
            assert_eq!(holds(&frequencies(Some(&good)), id), Holds::Yes, "{id}");
            assert_eq!(holds(&frequencies(Some(&bad)), id), Holds::No, "{id}");
            assert_eq!(holds(&frequencies(Some(&open)), id), Holds::Undecided, "{id}");
        }
        // One that is halved is not kept, and the other way round.
        assert_eq!(holds(&frequencies(Some(&good)), "mf-kept"), Holds::No);
        assert_eq!(holds(&frequencies(Some(&bad)), "mf-kept"), Holds::Yes);
        assert_eq!(holds(&frequencies(Some(&open)), "mf-kept"), Holds::Undecided);
        assert_eq!(holds(&frequencies(None), "mf-halved"), Holds::Undecided);
        let claims = frequencies(Some(&good));
        let order = claims.iter().find(|claim| claim.id == "wince.claim.mf").expect("a claim");
        assert_eq!(order.remark.as_deref(), Some("by construction"));
        // A hundredth is no half, nor is a frequency below the lowest that was tried.
        let mut least = pairs([[40.0, 41.0], [10.0, 10.3], [39.0, 40.0], [9.0, 9.3], [0.1, 0.11]]);
        assert_eq!(holds(&frequencies(Some(&least)), "mf-halved"), Holds::No);
        least.rows[5].pass_hz = None;
        assert_eq!(holds(&frequencies(Some(&least)), "mf-halved"), Holds::No);
        // The first loss of any trial, which a stall makes, decides nothing.
        let mut stalled = good.clone();
        stalled.rows.iter_mut().for_each(|row| row.first_loss_hz = Some(1.0));
        assert_eq!(frequencies(Some(&stalled)), frequencies(Some(&good)));
        // A stall in one trial of the background kills it at no frequency below.
        let starved =
            TrialRow { hz: 5e3, background_share: Some(0.0), ..stalled.trials[0].clone() };
        stalled.trials.push(starved);
        assert_eq!(holds(&frequencies(Some(&stalled)), "sf"), Holds::Yes);
    }

    #[test]
    fn other_programs_stop_where_they_were_measured_to_and_not_by_a_line() {
        let pair = |pass| [pass, pass * 1.025];
        let mut found = saturation([35.2, 24.9, 35.2, 24.9, 35.2, 12.5].map(pair), [3.1, 49.8]);
        // The first stimuli take two fifths, and the last that was tried leaves a fifth.
        for (trial, share) in found.trials.iter_mut().zip([0.6, 0.2]) {
            trial.background_share = Some(share);
        }
        let claims = frequencies(Some(&found));
        let claim = claims.iter().find(|claim| claim.id == "wince.claim.sf").expect("a claim");
        assert_eq!(claim.holds, Holds::No);
        // They run on beyond both: what fails is that they stop below MF-ISR.
        assert!(claim.because.starts_with("MF-ISR beside them over"), "{}", claim.because);
        let value = |title: &str| {
            let figure = claim.figures.iter().find(|figure| figure.title.contains(title));
            figure.expect("a figure").value
        };
        let sf = value("on other programs have less than a tenth");
        assert_eq!((sf.low.map(f64::round), sf.high), (Some(50.0), None));
    }
}
