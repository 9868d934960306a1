//! The search for the highest frequency whose loss stays within a goal, by MLRsearch's semantics
//! (RFC 9971): trials decide whether a load is a lower or an upper bound, and a smaller upper bound
//! outweighs every pass above it.
//!
//! Pure: it is given trials, and says which frequency to try next, or how the search ended.

use super::SearchEnd;

/// Frequencies on a logarithmic grid, which makes a load that is tried again the same load: 2.5 %
/// apart.
const STEP: f64 = 1.025;
/// Of the trials at a load at most this share may exceed the goal (RFC 9971, goal exceed ratio).
const EXCEED: f64 = 0.5;
/// Trials of full length that a load needs (goal duration sum over goal final trial duration).
const TRIALS: u32 = 3;
/// Trials that the load found needs: once more as many confirm it, and may overthrow it.
const CONFIRMED: usize = 6;

/// Stages and goals, in the order of their searches: two goals that a machine with stalls can
/// reach, and the paper's, 0.
pub(super) const SEARCHES: [(usize, f64); 6] =
    [(0, 1e-2), (1, 1e-2), (0, 1e-4), (1, 1e-4), (0, 0.0), (1, 0.0)];

/// A frequency on the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Load(u32);

/// One trial: what share of stimuli each stage did not serve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) load: Load,
    /// Of stage 1, of stage 2.
    pub(super) loss: [f64; 2],
    pub(super) stimuli: u64,
}

/// What is known of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Lower,
    Upper,
    Undecided,
}

/// What is known for one stage and goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// The highest load that is a lower bound, below every upper one.
    pub(super) pass: Option<Load>,
    /// The lowest load that is an upper bound.
    pub(super) fail: Option<Load>,
    /// Stimuli of the trials at `pass`.
    pub(super) stimuli: u64,
}

impl Load {
    /// The nearest on the grid, below or equal.
    pub(super) fn at_most(hz: f64) -> Self {
        Self((hz.max(1.0).ln() / STEP.ln() + 1e-9).floor() as u32)
    }

    /// The next one below.
    pub(super) fn below(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    pub(super) fn hz(self) -> f64 {
        STEP.powi(self.0.cast_signed())
    }
}

/// Whether trials at one load make it a bound for this goal.
fn bound(losses: impl Iterator<Item = f64>, goal: f64) -> Bound {
    let (mut good, mut bad) = (0u32, 0u32);
    losses.for_each(|loss| if loss <= goal { good += 1 } else { bad += 1 });
    let whole = f64::from(TRIALS.max(good + bad));
    // What is missing is taken for bad by one, for good by the other.
    if (whole - f64::from(good)) / whole <= EXCEED {
        Bound::Lower
    } else if f64::from(bad) / whole > EXCEED {
        Bound::Upper
    } else {
        Bound::Undecided
    }
}

/// What trials show for a stage and a goal.
pub(super) fn found(trials: &[Trial], stage: usize, goal: f64) -> Found {
    let at = |load: Load| trials.iter().filter(move |trial| trial.load == load);
    let is =
        |load: Load, wanted: Bound| bound(at(load).map(|trial| trial.loss[stage]), goal) == wanted;
    let loads = || trials.iter().map(|trial| trial.load);
    let fail = loads().filter(|&load| is(load, Bound::Upper)).min();
    let below = |load: &Load| fail.is_none_or(|fail| *load < fail);
    let pass = loads().filter(below).filter(|&load| is(load, Bound::Lower)).max();
    let stimuli = pass.map_or(0, |pass| at(pass).map(|trial| trial.stimuli).sum());
    Found { pass, fail, stimuli }
}

/// The frequency to try next for a stage and a goal, between `lowest` and `highest`; `None` once
/// pass and fail are neighbours on the grid, or the range ends, and the pass is confirmed.
fn next(
    trials: &[Trial],
    (stage, goal): (usize, f64),
    (lowest, highest): (Load, Load),
) -> Option<Load> {
    let found = found(trials, stage, goal);
    // A load that is begun is finished first, if its outcome matters.
    let matters = |load: &Load| {
        found.pass.is_none_or(|pass| *load > pass)
            && found.fail.is_none_or(|fail| *load < fail)
            && *load <= highest
    };
    let begun = trials.iter().map(|trial| trial.load).filter(matters);
    if let Some(load) = begun.max() {
        return Some(load);
    }
    let open = match (found.pass, found.fail) {
        (None, None) => (lowest <= highest).then_some(lowest),
        (None, Some(fail)) => {
            // A factor of four down, to a load that was not tried.
            let down = Load::at_most(fail.hz() / 4.0).min(highest).max(lowest);
            (down < fail && down <= highest).then_some(down)
        }
        (Some(pass), None) => {
            let up = Load::at_most(pass.hz() * 2.0).min(highest);
            (up > pass).then_some(up)
        }
        (Some(pass), Some(fail)) => {
            let middle = Load(pass.0.midpoint(fail.0)).min(highest);
            (middle > pass).then_some(middle)
        }
    };
    let count = |load: Load| trials.iter().filter(|trial| trial.load == load).count();
    open.or_else(|| found.pass.filter(|&pass| count(pass) < CONFIRMED))
}

/// The frequency to try next for all of [`SEARCHES`], which share their trials: a trial of a later
/// one may overthrow the pass or the fail of an earlier one, which then goes on.
pub(super) fn next_of_all(trials: &[Trial], range: (Load, Load)) -> Option<Load> {
    SEARCHES.into_iter().find_map(|search| next(trials, search, range))
}

/// How the search for a stage and a goal ended, by the trials of all.
pub(super) fn end(trials: &[Trial], (stage, goal): (usize, f64), range: (Load, Load)) -> SearchEnd {
    let found = found(trials, stage, goal);
    match (next(trials, (stage, goal), range), found.pass, found.fail) {
        (Some(_), ..) => SearchEnd::Unfinished,
        (None, Some(pass), Some(fail)) if fail.below() == pass => SearchEnd::Found,
        (None, None, Some(fail)) if fail <= range.0 => SearchEnd::BelowLowest,
        (None, ..) => SearchEnd::GeneratorLimited,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a machine that loses nothing up to `hz`, and then ever more.
    fn search(hz: f64, goal: f64, noise: impl Fn(usize) -> f64) -> (Found, usize) {
        let (lowest, highest) = (Load::at_most(100.0), Load::at_most(50_000.0));
        let mut trials = Vec::new();
        while let Some(load) = next(&trials, (0, goal), (lowest, highest)) {
            let over = (load.hz() / hz - 1.0).max(0.0);
            let loss = over + noise(trials.len());
            trials.push(Trial { load, loss: [loss, 1.0], stimuli: 10 });
            assert!(trials.len() < 200, "the search ends");
        }
        (found(&trials, 0, goal), trials.len())
    }

    #[test]
    fn the_limit_is_bracketed_by_neighbours_in_a_few_trials() {
        for hz in [101.0, 750.0, 9_000.0, 31_234.0] {
            let (found, count) = search(hz, 0.0, |_| 0.0);
            let (pass, fail) = (found.pass.expect("a pass").hz(), found.fail.expect("a fail").hz());
            assert!(pass <= hz && hz < fail && fail / pass < 1.026, "{hz}: {pass} to {fail}");
            assert!(found.stimuli >= 60 && count < 45, "six trials confirm it: {count}");
        }
        let (beyond, _) = search(1e6, 0.0, |_| 0.0);
        assert_eq!((beyond.pass, beyond.fail), (Some(Load::at_most(50_000.0)), None));
        let (none, _) = search(50.0, 0.0, |_| 0.0);
        assert_eq!((none.pass, none.fail), (None, Some(Load::at_most(100.0))));
    }

    #[test]
    fn a_goal_allows_its_share_and_one_bad_trial_of_three_is_outvoted() {
        let (strict, _) = search(9_000.0, 0.0, |_| 0.0);
        let (loose, _) = search(9_000.0, 0.2, |_| 0.0);
        assert!(loose.pass.expect("a pass").hz() > 1.15 * strict.pass.expect("a pass").hz());
        let (noisy, _) = search(9_000.0, 0.0, |at| if at % 3 == 0 { 0.5 } else { 0.0 });
        assert_eq!(noisy.pass, strict.pass);
    }

    #[test]
    fn a_pass_that_its_confirmation_overthrows_is_left_for_a_lower_one() {
        let range = (Load::at_most(100.0), Load::at_most(50_000.0));
        let trial = |load, loss| Trial { load, loss: [loss, 0.0], stimuli: 10 };
        let pass = Load::at_most(9_000.0);
        let above = Load(pass.0 + 1);
        let mut trials = vec![trial(pass, 0.0), trial(pass, 0.0)];
        trials.extend([trial(above, 0.1), trial(above, 0.1)]);
        assert_eq!(next(&trials, (0, 0.0), range), Some(pass), "neighbours: confirmed first");
        trials.extend([trial(pass, 0.1); 3]);
        let found = found(&trials, 0, 0.0);
        assert_eq!((found.pass, found.fail), (None, Some(pass)));
        assert!(next(&trials, (0, 0.0), range).is_some_and(|load| load < pass));
    }

    #[test]
    fn a_failure_below_outweighs_passes_above() {
        let trial = |hz, loss| Trial { load: Load::at_most(hz), loss: [loss, 0.0], stimuli: 1 };
        let mut trials = vec![trial(1_000.0, 0.0), trial(1_000.0, 0.0), trial(4_000.0, 0.0)];
        trials.push(trial(4_000.0, 0.0));
        assert_eq!(found(&trials, 0, 0.0).pass, Some(Load::at_most(4_000.0)));
        trials.extend([trial(2_000.0, 0.1), trial(2_000.0, 0.1)]);
        let found = found(&trials, 0, 0.0);
        assert_eq!(found.fail, Some(Load::at_most(2_000.0)));
        assert_eq!(found.pass, Some(Load::at_most(1_000.0)));
    }

    #[test]
    fn a_search_that_another_one_overthrows_goes_on_until_pass_and_fail_are_neighbours() {
        let range = (Load::at_most(200.0), Load::at_most(50_000.0));
        let mut reopened = 0;
        for seed in 0..40u64 {
            // Loses more and more above 9 and 3 kHz, and in bursts of trials at any frequency.
            let (mut trials, mut ended) = (Vec::<Trial>::new(), [false; 6]);
            while let Some(load) = next_of_all(&trials, range) {
                for (ended, of) in ended.iter_mut().zip(SEARCHES) {
                    let open = next(&trials, of, range).is_some();
                    reopened += u32::from(*ended && open);
                    *ended = !open;
                    // What the result says when time is over now.
                    let Found { pass, fail, .. } = found(&trials, of.0, of.1);
                    let apart = pass.zip(fail).is_some_and(|(pass, fail)| fail.below() > pass);
                    assert!(!apart || end(&trials, of, range) == SearchEnd::Unfinished);
                }
                let burst = (trials.len() as u64 / 3 * 7 + seed * 13) % 31 < 5;
                let more = if burst { 0.05 } else { 0.0 };
                let loss = [9_000.0, 3_000.0].map(|hz| (load.hz() / hz - 1.0).max(0.0) + more);
                trials.push(Trial { load, loss, stimuli: 10 });
                assert!(trials.len() < 1_000, "the search ends");
            }
            for of in SEARCHES {
                let Found { pass, fail, .. } = found(&trials, of.0, of.1);
                let neighbours = pass.zip(fail).is_some_and(|(pass, fail)| fail.below() == pass);
                assert_eq!(end(&trials, of, range) == SearchEnd::Found, neighbours, "{of:?}");
                assert_ne!(end(&trials, of, range), SearchEnd::Unfinished, "{of:?}");
            }
        }
        assert!(reopened > 0, "the model never overthrows a search that has ended");
    }

    #[test]
    fn what_cannot_be_raised_leaves_pass_and_fail_apart_and_is_the_limit() {
        let trial = |hz, loss| Trial { load: Load::at_most(hz), loss: [loss, 0.0], stimuli: 1 };
        let mut trials = [trial(20_000.0, 0.0); CONFIRMED].to_vec();
        trials.extend([trial(40_000.0, 0.1), trial(40_000.0, 0.1), trial(30_000.0, 0.0)]);
        let to = |hz| (Load::at_most(200.0), Load::at_most(hz));
        assert_eq!(next(&trials, (0, 0.0), to(50_000.0)), Some(Load::at_most(30_000.0)));
        assert_eq!(end(&trials, (0, 0.0), to(50_000.0)), SearchEnd::Unfinished);
        assert_eq!(next(&trials, (0, 0.0), to(20_000.0)), None, "30 kHz cannot be raised any more");
        assert_eq!(end(&trials, (0, 0.0), to(20_000.0)), SearchEnd::GeneratorLimited);
        assert_eq!(end(&[], (0, 0.0), (Load(1), Load(0))), SearchEnd::GeneratorLimited);
        assert_eq!(end(&[trial(200.0, 0.1); 2], (0, 0.0), to(1e4)), SearchEnd::BelowLowest);
    }
}
