//! The rate at which software can generate steps: LinuxCNC's rule (StepConf) with a drive's
//! timings.
//!
//! The base thread must be no shorter than what the drive needs plus how much a run may shift
//! against the previous one, which is LinuxCNC's `max |interval|`. Formulas in integers of ns.

use punctual_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The timings that a drive needs, ns each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriveTimings {
    /// The least length of a step pulse.
    pub step_time_ns: u64,
    /// The least time that it stays low between pulses.
    pub step_space_ns: u64,
    /// The least time that the direction holds after a step.
    pub dir_hold_ns: u64,
    /// The least time that the direction stands before a step.
    pub dir_setup_ns: u64,
}

impl Default for DriveTimings {
    /// 5, 5, 20, 20 µs: slow enough for nearly every drive. A data sheet knows better.
    fn default() -> Self {
        Self {
            step_time_ns: 5_000,
            step_space_ns: 5_000,
            dir_hold_ns: 20_000,
            dir_setup_ns: 20_000,
        }
    }
}

/// The longest step time for which a pulse can be ended within the same run of the base thread.
const DOUBLE_STEP_MAX_NS: u64 = 5_000;
/// The part that StepConf adds for the time that such a run itself takes.
const DOUBLE_STEP_RUN_NS: u64 = 5_000;

/// LinuxCNC's guidance on `max |interval|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SteppingClass {
    /// Below 20 µs: good for software stepping.
    Good,
    /// 20 to 50 µs: software stepping at lower rates.
    Fair,
    /// 50 to 500 µs: let hardware generate the steps.
    HardwareSteps,
    /// Above 500 µs: unusable for motion control.
    Unusable,
}

impl SteppingClass {
    /// The class of a largest |interval|.
    pub fn of(interval_max_abs_ns: u64) -> Self {
        match interval_max_abs_ns {
            0..20_000 => Self::Good,
            20_000..=50_000 => Self::Fair,
            50_001..=500_000 => Self::HardwareSteps,
            _ => Self::Unusable,
        }
    }

    /// The class in words.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Good => "good for software stepping",
            Self::Fair => "software stepping works, at lower step rates",
            Self::HardwareSteps => "let a hardware step generator make the steps",
            Self::Unusable => "unusable for motion control",
        }
    }
}

/// The steps that software can make on this machine with this drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepGeneration {
    /// `step-generation`.
    pub model: String,
    /// The run that the timing was taken from; null when it was given.
    #[serde(default)]
    pub run: Option<String>,
    /// LinuxCNC's `max |interval|`, ns.
    pub interval_max_abs_ns: u64,
    /// The drive's needs.
    pub drive: DriveTimings,
    /// Shortest period of the base thread, ns.
    pub base_period_ns: u64,
    /// True where a pulse begins and ends within one run of the base thread.
    pub double_step: bool,
    /// Highest step rate, steps per second.
    pub max_step_rate_hz: f64,
    /// Direction hold to configure, ns: the drive's plus `interval_max_abs_ns`.
    pub dir_hold_ns: u64,
    /// Direction setup to configure, ns: the drive's plus `interval_max_abs_ns`.
    pub dir_setup_ns: u64,
    /// LinuxCNC's guidance.
    pub class: SteppingClass,
    /// The result in one line.
    pub statement: String,
}

/// The rule for a drive and a largest |interval| (LinuxCNC, `stepconf.py`).
pub fn step_generation(interval_max_abs_ns: u64, drive: DriveTimings) -> StepGeneration {
    let double_step = drive.step_time_ns <= DOUBLE_STEP_MAX_NS;
    let base_period_ns = if double_step {
        interval_max_abs_ns
            .saturating_add(drive.step_time_ns)
            .saturating_add(drive.step_space_ns)
            .saturating_add(DOUBLE_STEP_RUN_NS)
            .max(drive.step_time_ns.saturating_mul(4))
    } else {
        interval_max_abs_ns.saturating_add(drive.step_time_ns.max(drive.step_space_ns))
    };
    // Without double stepping a pulse takes two runs: one raises it, one ends it.
    let runs_per_step = if double_step { 1.0 } else { 2.0 };
    let max_step_rate_hz = 1e9 / base_period_ns as f64 / runs_per_step;
    let class = SteppingClass::of(interval_max_abs_ns);
    let shown = |ns: u64| Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX));
    StepGeneration {
        model: "step-generation".to_owned(),
        run: None,
        interval_max_abs_ns,
        drive,
        base_period_ns,
        double_step,
        max_step_rate_hz,
        dir_hold_ns: drive.dir_hold_ns.saturating_add(interval_max_abs_ns),
        dir_setup_ns: drive.dir_setup_ns.saturating_add(interval_max_abs_ns),
        class,
        statement: format!(
            "software stepping up to {max_step_rate_hz:.0} steps/s (base period {}); \
             max |interval| {}: {}",
            shown(base_period_ns),
            shown(interval_max_abs_ns),
            class.advice()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn double_stepping_makes_a_step_a_run() {
        let result = step_generation(10_000, DriveTimings::default());
        assert_eq!((result.base_period_ns, result.double_step), (25_000, true));
        assert_eq!(result.max_step_rate_hz, 40_000.0);
        assert_eq!((result.dir_hold_ns, result.dir_setup_ns), (30_000, 30_000));
        // With almost no error the pulse itself bounds the period: four times its length.
        let quick =
            DriveTimings { step_time_ns: 5_000, step_space_ns: 1_000, ..DriveTimings::default() };
        assert_eq!(step_generation(0, quick).base_period_ns, 20_000);
    }

    #[test]
    fn a_slow_drive_needs_two_runs_a_step() {
        let slow =
            DriveTimings { step_time_ns: 10_000, step_space_ns: 4_000, ..DriveTimings::default() };
        let result = step_generation(15_000, slow);
        assert_eq!((result.base_period_ns, result.double_step), (25_000, false));
        assert_eq!(result.max_step_rate_hz, 20_000.0);
    }

    #[test]
    fn classes_have_their_borders() {
        let classes = [0, 19_999, 20_000, 50_000, 50_001, 500_000, 500_001].map(SteppingClass::of);
        use SteppingClass::{Fair, Good, HardwareSteps, Unusable};
        assert_eq!(classes, [Good, Good, Fair, Fair, HardwareSteps, HardwareSteps, Unusable]);
        assert!(step_generation(u64::MAX, DriveTimings::default()).max_step_rate_hz > 0.0);
    }
}
