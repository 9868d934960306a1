//! The torque that a stepper motor loses to badly timed steps (NIST, eq. \[4\]–\[7\]).
//!
//! With holding torque h, step angle S, speed ω and a peak-to-peak time error Δt: the rotor turns
//! Δθ = ωΔt too far before the field steps \[4\]; its spring constant is k = πh/(2S) \[6\]; the
//! torque spent is ΔT = kΔθ = (π/2)(h/S)ωΔt \[7\]. In steps per second f = ω/S that is ΔT/h =
//! (π/2)·f·Δt, which is the electrical angle of the error (a full step is π/2), so neither h nor S
//! matters to the ratio.
//!
//! \[7\] is the slope of h·sin(electrical angle) at zero. Up to f·Δt = 0.2 it is at most 1.7 % too
//! large and is used as published; beyond, the sine is. Steps are lost where the torque spent
//! reaches what is available, and at the latest at a quarter turn of the field (one whole step,
//! f·Δt = 1): past the peak of the sine the torque that pulls the rotor back shrinks again.

use std::f64::consts::{FRAC_PI_2, PI};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Formula;
use super::step_generation::StepGeneration;
use super::timing::{Basis, Suits};
use crate::plain::grouped;
use crate::quantity::{Angle, Share, Speed, Torque};

/// Its formulas: rows of docs/impact.md.
pub const FORMULAS: &[Formula] = &[
    Formula {
        subject: "",
        formula: "torque lost/holding torque = (π/2)·f·Δt, beyond f·Δt = 0.2 its sine",
        decides: "peak-to-peak about the grid: two steps may be off in opposite ways",
        source: "NIST, Timing jitter of real-time Linux, eq. [4]–[7]",
    },
    Formula {
        subject: "software steps",
        formula: "base period = L + step time + step space + 5 µs, at least 4 step times (pulse \
                  within a run; step time ≤ 5 µs), else L + the longer of both; direction hold and \
                  setup + L",
        decides: "largest \\|interval\\| L: how far two runs shift",
        source: "LinuxCNC, `stepconf.py`; drives: its stepper-timing page",
    },
];

/// Steps of error up to which the small-angle form holds.
pub const SMALL_STEPS: f64 = 0.2;

/// A motor, how it runs, and how badly it is timed.
#[derive(Clone, Debug, PartialEq)]
pub struct Stepper {
    /// Holding torque.
    pub holding_torque: Torque,
    /// Torque that the motor has at this speed; `None`: half the holding torque, NIST's point.
    pub available_torque: Option<Torque>,
    /// Angle of a full step.
    pub step_angle: Angle,
    /// Speed of the shaft.
    pub speed: Speed,
    /// Peak-to-peak time error of the steps, and what is known of it; not negative.
    pub jitter_pp: Basis,
    /// Share of the available torque that may be lost.
    pub share: Share,
}

/// Which form of the formula was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// (π/2)·f·Δt.
    SmallAngle,
    /// sin((π/2)·f·Δt).
    Sine,
}

/// The effect of the time error on the motor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Impact {
    /// `stepper`.
    pub model: String,
    /// The run that the timing was taken from; null when it was given.
    #[serde(default)]
    pub run: Option<String>,
    /// Yes where the step rate is within both limits: that of the torque that may be lost, and that
    /// of the software that makes the steps; null in results of earlier versions.
    #[serde(default)]
    pub answer: Option<Suits>,
    /// Torque lost to the time error, Nm; the holding torque where the field runs a whole step
    /// ahead.
    pub torque_lost_nm: f64,
    /// The same over the holding torque.
    pub torque_lost_ratio: f64,
    /// The same over the available torque; from 1 on, no torque is left.
    pub share_of_available: f64,
    /// Torque that the motor has at this speed, Nm.
    pub available_torque_nm: f64,
    /// Speed in steps per second.
    pub step_rate_hz: f64,
    /// Peak-to-peak time error, ns.
    pub jitter_pp_ns: f64,
    /// The error as an electrical angle, rad.
    pub electrical_angle_rad: f64,
    /// Which form was used.
    pub form: Form,
    /// True where steps are lost.
    pub steps_lost: bool,
    /// The statistic behind it; empty in results of before.
    #[serde(default)]
    pub basis: Vec<Basis>,
    /// Share of the available torque that `max_step_rate_hz` allows to be lost.
    pub share: f64,
    /// Highest step rate for that share, steps per second; null without a time error.
    pub max_step_rate_hz: Option<f64>,
    /// The same as a speed of this motor, rad/s.
    pub max_speed_rad_s: Option<f64>,
    /// The result in one line.
    pub statement: String,
}

/// Torque lost over holding torque, and by which form, for an error of `steps` = f·Δt ≥ 0. At one
/// whole step and beyond it is 1: all of it.
pub fn torque_lost_ratio(steps: f64) -> (f64, Form) {
    if steps <= SMALL_STEPS {
        (FRAC_PI_2 * steps, Form::SmallAngle)
    } else {
        ((FRAC_PI_2 * steps.min(1.0)).sin(), Form::Sine)
    }
}

/// The highest step rate, in steps per second, at which an error of `jitter_pp_ns` costs no more
/// than `share` of an available torque of `available_ratio` (over the holding torque, in (0, 1]).
/// `None` without an error.
pub fn max_step_rate_hz(jitter_pp_ns: f64, share: Share, available_ratio: f64) -> Option<f64> {
    if jitter_pp_ns.is_nan() || jitter_pp_ns <= 0.0 {
        return None;
    }
    let ratio = (share.as_one() * available_ratio).clamp(0.0, 1.0);
    let steps = ratio / FRAC_PI_2;
    let steps =
        if steps <= SMALL_STEPS { steps } else { (ratio.asin() / FRAC_PI_2).max(SMALL_STEPS) };
    Some(steps / (jitter_pp_ns * 1e-9))
}

impl Stepper {
    /// The impact of the time error.
    pub fn impact(&self) -> Impact {
        let holding_nm = self.holding_torque.as_nm();
        let available_nm = self.available_torque.map_or(holding_nm / 2.0, Torque::as_nm);
        let jitter_pp_ns = self.jitter_pp.value_ns;
        let step_rate_hz = self.speed.as_rad_s() / self.step_angle.as_rad();
        let steps = step_rate_hz * jitter_pp_ns.max(0.0) * 1e-9;
        let (ratio, form) = torque_lost_ratio(steps);
        let share_of_available = ratio * holding_nm / available_nm;
        let steps_lost = share_of_available >= 1.0 || steps >= 1.0;
        let available_ratio = (available_nm / holding_nm).min(1.0);
        let max_rate = max_step_rate_hz(jitter_pp_ns, self.share, available_ratio);
        let is_within = !steps_lost && max_rate.is_none_or(|rate| step_rate_hz <= rate);
        let impact = Impact {
            model: "stepper".to_owned(),
            run: None,
            answer: Some(if is_within { Suits::Yes } else { Suits::No }),
            torque_lost_nm: ratio * holding_nm,
            torque_lost_ratio: ratio,
            share_of_available,
            available_torque_nm: available_nm,
            step_rate_hz,
            jitter_pp_ns,
            electrical_angle_rad: PI / 2.0 * steps,
            form,
            steps_lost,
            basis: vec![self.jitter_pp.clone()],
            share: self.share.as_one(),
            max_step_rate_hz: max_rate,
            max_speed_rad_s: max_rate.map(|rate| rate * self.step_angle.as_rad()),
            statement: String::new(),
        };
        Impact { statement: statement(&impact), ..impact }
    }
}

impl Impact {
    /// Its figures, with the answer of the lower one of two limits: its own, and that of the
    /// software that makes the steps.
    #[must_use]
    pub fn with_steps_of(self, software: &StepGeneration) -> Self {
        let max_hz = software.max_step_rate_hz;
        if self.step_rate_hz <= max_hz {
            return self;
        }
        let statement = format!("{}; software makes up to {max_hz:.0} steps/s", self.statement);
        Self { answer: Some(Suits::No), statement, ..self }
    }
}

/// The result in words. The error seen is the least that there is: it shows a loss, and no loss
/// only as far as it goes.
fn statement(impact: &Impact) -> String {
    let rate_hz = impact.step_rate_hz;
    if impact.steps_lost {
        return format!(
            "at {rate_hz:.0} steps/s steps are lost: the time error alone takes all the available \
             torque"
        );
    }
    let error = impact.basis.first();
    let seen = match error.map(|error| (error.level, error.n)) {
        Some((Some(_), Some(n))) => format!(", the most in {} cycles", grouped(n)),
        _ => String::new(),
    };
    let allowed = match impact.answer {
        Some(Suits::No) => format!("; no more than {:.2} % of that may be", impact.share * 100.0),
        _ => String::new(),
    };
    format!(
        "at {rate_hz:.0} steps/s the time error takes {:.2} % of the holding torque, {:.2} % of \
         what is available{seen}{allowed}",
        impact.torque_lost_ratio * 100.0,
        impact.share_of_available * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impact::timing::Timing;
    use crate::quantity::{angle, share, speed, torque};
    use proptest::prelude::*;

    const OUNCE_INCH: f64 = 0.007_061_551_814;

    fn impact(holding: &str, rev_s: &str, jitter_pp_ns: f64) -> Impact {
        Stepper {
            holding_torque: torque(holding).unwrap(),
            available_torque: None,
            step_angle: angle("0.9deg").unwrap(),
            speed: speed(rev_s).unwrap(),
            jitter_pp: Timing::given(jitter_pp_ns, None).grid_pp().unwrap(),
            share: share("10%").unwrap(),
        }
        .impact()
    }

    #[test]
    fn table_1_of_the_paper() {
        // (h, ω, Tu at 3.6 µs recomputed, Tc at 0.098 µs as published, Tc % as published)
        let rows = [
            ("23ozin", "15rev/s", 0.780, 0.021, 0.18),
            ("80ozin", "6.7rev/s", 1.212, 0.033, 0.082),
            ("500ozin", "15rev/s", 16.96, 0.46, 0.18),
        ];
        for (holding, speed, uncompensated, compensated, percent) in rows {
            let lost = impact(holding, speed, 3_600.0).torque_lost_nm / OUNCE_INCH;
            assert!((lost / uncompensated - 1.0).abs() < 1e-3, "{holding}: {lost}");
            let small = impact(holding, speed, 98.0);
            let lost = small.torque_lost_nm / OUNCE_INCH;
            // Published with two digits.
            assert!((lost / compensated - 1.0).abs() < 0.02, "{holding}: {lost}");
            assert!((small.share_of_available * 100.0 - percent).abs() < 0.005, "{holding}");
        }
    }

    #[test]
    fn the_example_of_the_manual() {
        let impact = impact("23ozin", "15rev/s", 3_600.0);
        assert!((impact.torque_lost_ratio - 0.033_929).abs() < 1e-6);
        assert!((impact.share_of_available - 0.067_858).abs() < 1e-6);
        assert!((impact.step_rate_hz - 6_000.0).abs() < 1e-6);
        assert!((impact.max_step_rate_hz.unwrap() - 0.1 / (PI * 3.6e-6)).abs() < 1e-6);
        assert_eq!((impact.form, impact.steps_lost), (Form::SmallAngle, false));
        assert_eq!(impact.answer, Some(Suits::Yes));
    }

    #[test]
    fn beyond_the_small_angle_the_sine_holds_and_steps_are_lost() {
        // f·Δt = 0.3: sin(0.471) = 0.454 of h, under the half that is available.
        let near = impact("23ozin", "15rev/s", 50_000.0);
        assert_eq!(near.answer, Some(Suits::No), "more than the share of 10 %");
        assert_eq!((near.form, near.steps_lost), (Form::Sine, false));
        assert!((near.torque_lost_ratio - (0.3f64 * FRAC_PI_2).sin()).abs() < 1e-9);
        // sin(π/6) = ½ is reached at f·Δt = 1/3.
        assert!(impact("23ozin", "15rev/s", 56_000.0).steps_lost);
        let far = impact("23ozin", "15rev/s", 400_000.0);
        assert!(far.steps_lost && far.torque_lost_ratio == 1.0, "{far:?}");
        assert!(far.statement.contains("steps are lost"));
        assert_eq!((far.answer, far.basis[0].value_ns), (Some(Suits::No), 400_000.0));
    }

    #[test]
    fn the_answer_is_that_of_the_lower_limit() {
        use crate::impact::step_generation::{DriveTimings, step_generation};
        // 10 % of what is available at 0.05 · 2/π steps of error.
        let rate_hz = impact("23ozin", "15rev/s", 3_600.0).max_step_rate_hz.unwrap();
        let at = |rate_hz: f64| impact("23ozin", &format!("{}rev/s", rate_hz / 400.0), 3_600.0);
        assert_eq!(at(rate_hz * 0.999).answer, Some(Suits::Yes));
        let above = at(rate_hz * 1.001);
        assert_eq!((above.answer, above.steps_lost), (Some(Suits::No), false));
        assert!(
            above.statement.ends_with("no more than 10.00 % of that may be"),
            "{}",
            above.statement
        );
        // Software that is 1 ms late makes fewer steps than this motor could.
        let good = at(6_000.0);
        let fast = step_generation(3_600, DriveTimings::default());
        assert_eq!(good.clone().with_steps_of(&fast), good);
        let slow = good.with_steps_of(&step_generation(1_000_000, DriveTimings::default()));
        assert_eq!(slow.answer, Some(Suits::No));
        assert!(slow.statement.ends_with("software makes up to 985 steps/s"), "{}", slow.statement);
    }

    #[test]
    fn no_error_costs_nothing_and_allows_any_rate() {
        let none = impact("23ozin", "15rev/s", 0.0);
        assert_eq!((none.torque_lost_nm, none.max_step_rate_hz), (0.0, None));
    }

    proptest! {
        #[test]
        fn the_inverse_is_the_inverse(
            error_ns in 1.0f64..1e7, share in 0.001f64..1.0, available in 0.05f64..1.0,
        ) {
            let share = Share::from_one(share).unwrap();
            let rate = max_step_rate_hz(error_ns, share, available).unwrap();
            let (lost, _) = torque_lost_ratio(rate * error_ns * 1e-9 * (1.0 - 1e-12));
            let wanted = share.as_one() * available;
            prop_assert!(lost <= wanted * (1.0 + 1e-9));
            // Where the two forms meet, a rate may be given up to their 1.7 % of difference.
            prop_assert!(lost >= wanted * 0.982, "{} {}", lost, wanted);
        }
    }
}
