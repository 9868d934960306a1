//! Grids of a run that followed another clock than CLOCK_MONOTONIC, and their phase error.
//!
//! Plain data; the steering is `punctual_core::follow`.

use punctual_lab::periodic::{FollowedFigures, Moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A clock that grids followed. The grids never jump: a reference that steps or stops is counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Follow {
    /// "tai", "realtime" or the device: "/dev/ptp0".
    pub clock: String,
    /// Of a PTP clock, how it was read: "precise", "extended" or "plain", the best that worked;
    /// null for the system's clocks.
    pub read: Option<String>,
    /// Rate of the clock above that of CLOCK_MONOTONIC, in parts per billion, from the last 16
    /// readings; negative for a slower clock; null without a reading.
    pub drift_ppb: Option<f64>,
    /// The slew limit: the largest difference of rate between the grid's time and CLOCK_MONOTONIC,
    /// in parts per billion. It bounds the error of each period.
    pub limit_ppb: i64,
    /// The clock less the grid's time, steps left out, at the readings.
    pub phase_error_ns: PhaseError,
    /// Readings that were followed: n of the phase error.
    pub readings: u64,
    /// Readings that failed.
    pub unread: u64,
    /// Rate changes that reached the loops too late, because the reading thread had no CPU. Only
    /// there a period may be off by more than the limit.
    #[serde(default)]
    pub late: u64,
    /// Readings at which the slew limit was reached.
    pub limited: u64,
    /// Steps: readings further from where the clock should be than `step_min_ns`.
    pub steps: u64,
    /// Whole periods of the steps, which the grid does not follow, in all: the clock is ahead of
    /// the grid by this.
    pub stepped_ns: i64,
    /// The smallest deviation that counts as a step, in ns.
    pub step_min_ns: i64,
    /// Times the clock stood still.
    pub stops: u64,
    /// The start on both timescales; null where nothing ran.
    pub began: Option<Both>,
    /// The end on both; from these two, and `drift_ppb` between them, an instant of the grid can
    /// be found on CLOCK_MONOTONIC.
    pub ended: Option<Both>,
}

/// The phase error of a grid that follows; null without a reading.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PhaseError {
    /// At the last reading.
    pub last: Option<i64>,
    /// The root of the mean square.
    pub rms: Option<f64>,
    /// The largest amount.
    pub max: Option<u64>,
}

/// One moment on two timescales.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Both {
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// The grid's time.
    pub grid_ns: u64,
}

impl Follow {
    /// The clock and how it is read, before it is followed: without figures.
    pub fn of(clock: &str, read: Option<&str>) -> Self {
        Self { clock: clock.to_owned(), read: read.map(str::to_owned), ..Self::default() }
    }

    /// The figures of a run that followed it, which is over.
    pub fn ended(self, followed: &FollowedFigures) -> Self {
        let status = followed.status;
        let some = status.readings > 0;
        Self {
            drift_ppb: some.then_some(status.drift_ppb),
            limit_ppb: followed.settings.limit_ppb,
            phase_error_ns: PhaseError {
                last: some.then_some(status.phase_ns),
                rms: some.then_some(status.phase_rms_ns),
                max: some.then_some(status.phase_max_ns),
            },
            readings: status.readings,
            unread: followed.unread,
            late: followed.late,
            limited: status.limited,
            steps: status.steps,
            stepped_ns: status.stepped_ns,
            step_min_ns: followed.settings.step.as_ns(),
            stops: status.stops,
            began: Some(both(followed.began)),
            ended: Some(both(followed.ended)),
            ..self
        }
    }

    /// Warnings for the reader of the numbers, a sentence each; empty where the clock was followed
    /// throughout.
    pub fn warnings(&self) -> Vec<String> {
        let clock = &self.clock;
        let kinds = [
            (self.steps, "stepped", "and the grid kept its rate"),
            (self.stops, "stood still", "and the grid kept its rate"),
            (self.unread, "could not be read", "and the grid kept its rate"),
            (self.late, "was read too late", "and a period may be off by more than the limit"),
            (self.limited, "exceeded the slew limit", "and the grid lagged behind it"),
        ];
        let warnings = kinds.iter().filter(|(times, ..)| *times > 0).map(|(times, event, then)| {
            let often = if *times == 1 { "once".to_owned() } else { format!("{times} times") };
            format!("the followed clock {clock} {event} {often}, {then}")
        });
        let unseen = (self.readings == 0).then(|| {
            format!(
                "the clock {clock} could not be followed: the grid keeps the rate of the first \
                 readings"
            )
        });
        warnings.chain(unseen).collect()
    }
}

fn both(moment: Moment) -> Both {
    Both { monotonic_ns: moment.monotonic.as_ns(), grid_ns: moment.grid.as_ns() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_is_said_and_nothing_else() {
        let fine = Follow { clock: "tai".to_owned(), readings: 20, ..Follow::default() };
        assert_eq!(fine.warnings(), [""; 0]);
        let odd = Follow { steps: 1, unread: 3, ..fine };
        assert_eq!(
            odd.warnings(),
            [
                "the followed clock tai stepped once, and the grid kept its rate",
                "the followed clock tai could not be read 3 times, and the grid kept its rate"
            ]
        );
        let unseen = Follow { readings: 0, ..Follow::default() };
        assert_eq!(unseen.warnings().len(), 1);
    }
}
