//! Late cycles that come again and again at one distance: a job each minute, a poll each 64 s.
//!
//! Late cycles that follow each other are one event. A distance P is tried by where the events lie
//! in it: R(f) = |Σ exp(2πi·f·t)|/n for f = 1/P, the length of their mean direction (Rayleigh's
//! test, as astronomers search for pulsars). Where events have nothing to do with each other,
//! n·R² is above z with the probability e⁻ᶻ for each of the frequencies tried. A large R is not
//! enough: a single bad hour gives it for any P of many hours. So P is one only where most of the
//! turns of it that passed had an event at its place.

use std::f64::consts::TAU;

/// Events that are looked at: of more the latest.
const EVENTS_MAX: usize = 500;
/// Fewer events show nothing that could be told from chance.
const EVENTS_MIN: usize = 8;
/// Turns that must have passed.
const TURNS_MIN: f64 = 8.0;
/// Distances down to a quarter of the mean one between events: three of four may have no event.
const DENSITY: f64 = 4.0;
/// Frequencies tried in each of the 1/span that are independent of each other.
const OVERSAMPLED: f64 = 5.0;
/// A fundamental has at least this share of the R of its best multiple.
const FUNDAMENTAL: f64 = 0.9;
/// The most that an event may lie aside of its place, as a share of P.
const ASIDE: f64 = 0.1;
/// The share of turns that must have one there.
const TURNS_HIT: f64 = 0.5;
/// The most probability that events without order seem so.
const CHANCE: f64 = 1e-4;

/// A distance at which late cycles come again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repetition {
    /// The distance, in the unit of the times.
    pub every: f64,
    /// Where in it they lie, from 0 to below `every`, counted from time 0.
    pub at: f64,
    /// Events that were looked at.
    pub events: usize,
    /// Those of them at their place, within a tenth of the distance to either side.
    pub in_place: usize,
    /// Turns from the first event to the last.
    pub turns: usize,
    /// Turns that have an event at its place.
    pub turns_hit: usize,
}

impl Repetition {
    /// Of late cycles: when each was, in rising order, and how late. `None` where none is shown:
    /// too few, without order, or in fewer than half of the turns.
    pub fn of(late: &[(f64, f64)]) -> Option<Self> {
        let times = events(late);
        let (first, last) = (*times.first()?, *times.last()?);
        let span = last - first;
        if times.len() < EVENTS_MIN || span <= 0.0 || !span.is_finite() {
            return None;
        }
        let n = times.len() as f64;
        let strength = |frequency: f64| direction(&times, first, frequency).0;
        let tried: Vec<(f64, f64)> = (0..=((DENSITY * n - TURNS_MIN) * OVERSAMPLED) as usize)
            .map(|step| (TURNS_MIN + step as f64 / OVERSAMPLED) / span)
            .map(|frequency| (frequency, strength(frequency)))
            .collect();
        let best = tried.iter().map(|(_, strength)| *strength).fold(0.0, f64::max);
        if DENSITY * n * (-n * best * best).exp() > CHANCE {
            return None;
        }
        let peak = tried.iter().position(|(_, strength)| *strength >= FUNDAMENTAL * best)?;
        let near = tried[peak].0;
        // The step between frequencies leaves the phase of the last event open by a fifth of a
        // turn; a hundredth of it is finer than the events are.
        let finer = |step: i32| near + f64::from(step) / (100.0 * OVERSAMPLED * span);
        let frequency =
            (-100..=100).map(finer).max_by(|a, b| strength(*a).total_cmp(&strength(*b)))?;
        let (_, phase) = direction(&times, first, frequency);
        let turn = |time: f64| (time - first) * frequency - phase;
        let in_place: Vec<i64> = times
            .iter()
            .map(|time| turn(*time))
            .filter(|turn| (turn - turn.round()).abs() <= ASIDE)
            .map(|turn| turn.round() as i64)
            .collect();
        let mut hit = in_place.clone();
        hit.dedup();
        let turns = (turn(last).round() - turn(first).round()) as usize + 1;
        let every = 1.0 / frequency;
        let repetition = Self {
            every,
            at: (first + phase * every).rem_euclid(every),
            events: times.len(),
            in_place: in_place.len(),
            turns,
            turns_hit: hit.len(),
        };
        (hit.len() as f64 >= TURNS_HIT * turns as f64).then_some(repetition)
    }
}

/// The events of late cycles: each begins with a cycle that is further from the one before it than
/// a quarter of the mean distance. Of too many those with the latest cycles.
fn events(late: &[(f64, f64)]) -> Vec<f64> {
    let (Some(first), Some(last)) = (late.first(), late.last()) else { return Vec::new() };
    let apart = (last.0 - first.0) / late.len() as f64 / 4.0;
    let mut events: Vec<(f64, f64)> = Vec::new();
    let mut before = f64::NEG_INFINITY;
    for &(time, lateness) in late {
        match events.last_mut() {
            Some(event) if time - before <= apart => event.1 = event.1.max(lateness),
            _ => events.push((time, lateness)),
        }
        before = time;
    }
    if events.len() > EVENTS_MAX {
        events.sort_by(|a, b| b.1.total_cmp(&a.1));
        events.truncate(EVENTS_MAX);
        events.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    events.into_iter().map(|(time, _)| time).collect()
}

/// The mean direction of times as angles at a frequency: its length, 0 to 1, and its angle in
/// turns.
fn direction(times: &[f64], from: f64, frequency: f64) -> (f64, f64) {
    let (mut sin, mut cos) = (0.0, 0.0);
    for time in times {
        let (own_sin, own_cos) = ((time - from) * frequency * TAU).sin_cos();
        sin += own_sin;
        cos += own_cos;
    }
    (sin.hypot(cos) / times.len() as f64, sin.atan2(cos) / TAU)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Late cycles of a night in s, those of a poll each 64 s among others at any time.
    fn night(polls: bool, others: usize, seed: u64) -> Vec<(f64, f64)> {
        let mut random = Rng::new(seed);
        let mut uniform = || random.uniform();
        let mut late: Vec<(f64, f64)> = (0..others).map(|_| (uniform() * 28_800.0, 50.0)).collect();
        for turn in (0..450).filter(|_| polls) {
            // One in ten is not late; those that are, in bursts of up to four cycles.
            if uniform() < 0.9 {
                let begin = 17.0 + f64::from(turn) * 64.0 + uniform() * 0.8;
                let cycles = 1 + (uniform() * 4.0) as u32;
                late.extend((0..cycles).map(|cycle| (begin + f64::from(cycle) / 1e3, 80.0)));
            }
        }
        late.sort_by(|a, b| a.0.total_cmp(&b.0));
        late
    }

    #[test]
    fn a_poll_is_found_among_other_late_cycles_with_its_place() {
        for (seed, others) in [(1, 0), (2, 100), (3, 300)] {
            let found = Repetition::of(&night(true, others, seed)).expect("it is there");
            assert!((found.every - 64.0).abs() < 0.01, "{found:?}");
            assert!((found.at - 17.4).abs() < 2.0, "{found:?}");
            assert!((440..=451).contains(&found.turns), "{found:?}");
            assert!((340..=440).contains(&found.turns_hit), "{found:?}");
        }
    }

    #[test]
    fn what_has_no_order_repeats_nothing() {
        let found: Vec<u64> =
            (0..300).filter(|seed| Repetition::of(&night(false, 200, *seed)).is_some()).collect();
        assert_eq!(found, Vec::<u64>::new());
        // A bad hour is no repetition either.
        let hour: Vec<(f64, f64)> =
            night(false, 400, 7).into_iter().map(|(s, late)| (s / 8.0 + 9_000.0, late)).collect();
        let rest = night(false, 40, 8);
        let mut night = [hour, rest].concat();
        night.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!(Repetition::of(&night), None);
    }

    #[test]
    fn a_few_or_hostile_ones_are_no_evidence() {
        let seven: Vec<(f64, f64)> = (0..7).map(|turn| (f64::from(turn), 1.0)).collect();
        assert_eq!(Repetition::of(&seven), None);
        assert_eq!(Repetition::of(&[]), None);
        assert_eq!(Repetition::of(&[(5.0, 1.0); 50]), None);
        for bad in [f64::NAN, f64::INFINITY] {
            let late: Vec<(f64, f64)> = (0..50).map(|turn| (f64::from(turn) * bad, bad)).collect();
            assert_eq!(Repetition::of(&late), None);
        }
        let twenty: Vec<(f64, f64)> = (0..20).map(|turn| (f64::from(turn) * 3.0, 1.0)).collect();
        assert!(Repetition::of(&twenty).is_some_and(|found| (found.every - 3.0).abs() < 1e-3));
    }
}
