//! Effects of a time error on a machine, in the unit of its user's work.
//!
//! Formulas with their sources; no measuring, no guessing of inputs. Each model takes the statistic
//! that is right for it out of [`timing::Timing`], with the evidence for the number.
//!
//! A new model is a file here with its row, and its line in [`MODELS`]: subcommand, options,
//! `--help`, man page and the table of docs/impact.md come from the row. [`stepper`] is not in the
//! table, because it has figures of its own.

mod audio;
pub mod drives;
mod ethercat;
mod pacing;
mod position;
mod pwm;
mod quadrature;
mod safety;
mod sampling;
mod servo;
pub mod step_generation;
pub mod stepper;
pub mod timing;
mod tsn;
mod velocity;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use punctual_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::impact::timing::Basis;
use crate::quantity::{
    Angle, BitRate, Hertz, Length, LinearSpeed, QuantityError, Share, Size, angle, bit_rate,
    duration, length, linear_speed, rate, share, size,
};
use timing::{Exceedance, Lack, Suits, Timing};

/// Every model, in the order of `--help` and of the documentation.
pub static MODELS: &[Model] = &[
    servo::MODEL,
    sampling::MODEL,
    audio::MODEL,
    quadrature::MODEL,
    position::MODEL,
    velocity::MODEL,
    ethercat::MODEL,
    tsn::MODEL,
    pacing::MODEL,
    pwm::MODEL,
    safety::MODEL,
];

/// A model with its parameters filled in: what it says of a recording's timing.
pub trait Assess {
    /// The impact of the timing.
    ///
    /// # Errors
    /// The timing lacks a statistic that the model needs.
    fn impact(&self, timing: &Timing) -> Result<Application, Lack>;
}

/// A model: everything in which it differs from the others.
pub struct Model {
    /// Its name: the subcommand of `punctual impact`.
    pub name: &'static str,
    /// Its result, in one line.
    pub about: &'static str,
    /// Its formulas, each with its statistic: rows of docs/impact.md.
    pub formulas: &'static [Formula],
    /// Its parameters.
    pub parameters: &'static [&'static dyn Described],
    build: fn(&Values) -> Result<Box<dyn Assess>, String>,
}

impl Model {
    /// The model with these parameters.
    ///
    /// # Errors
    /// In one line, which parameter is missing, wrong or does not go with the others.
    pub fn build(&self, values: &Values) -> Result<Box<dyn Assess>, String> {
        (self.build)(values)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A formula of a model, for the documentation.
#[derive(Clone, Copy, Debug)]
pub struct Formula {
    /// The result that it gives, where the model has several; empty where it has one.
    pub subject: &'static str,
    /// The formula.
    pub formula: &'static str,
    /// The statistic that decides, and why that one.
    pub decides: &'static str,
    /// Where it is from.
    pub source: &'static str,
}

/// One number of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Its name: "phase lost".
    pub name: String,
    /// Its value; null where it is not known.
    pub value: Option<f64>,
    /// Its unit: "ns", "deg", "Hz", "dB", "bit", "m", "m/s", "byte", or "1" for a share.
    pub unit: String,
}

/// The effect of a time error on one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Application {
    /// Which one: the subcommand of `punctual impact`.
    pub model: String,
    /// The run that the timing was taken from; null when it was given.
    pub run: Option<String>,
    /// The answer to the requirement; null when no requirement was given.
    pub answer: Option<Suits>,
    /// The result in words.
    pub statement: String,
    /// 1 − used/allowed: the part of the allowed error that is left; negative when the error is too
    /// large, null when no requirement was given.
    pub margin: Option<f64>,
    /// The statistics behind it, the deciding one first.
    pub basis: Vec<Basis>,
    /// The numbers: what went in, then what came out.
    pub figures: Vec<Figure>,
    /// Formula and where it is from.
    pub source: String,
    /// The length of a run that would show it, if the loop goes on as seen, ns; null where there
    /// is an answer, or no length would give one.
    #[serde(default)]
    pub duration_needed_ns: Option<f64>,
    /// The command that measures so long; null where the run is not this program's.
    #[serde(default)]
    pub command: Option<String>,
    /// The values that order two runs with the same answer, the weightiest first: the larger the
    /// worse. Without any it is the margin, then the statistic.
    #[serde(skip)]
    severity: Vec<f64>,
    /// The sizes that it was looked for among; `None` where one was given, or it has none.
    #[serde(skip)]
    sizes: Option<Sizes>,
}

/// Sizes that an application may have, such as that of a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sizes {
    /// The one that the answer names; infinite where none will do.
    named: f64,
    /// The smallest that nothing measured was too much for; infinite where there is none.
    as_seen: f64,
}

impl Application {
    /// A result of `model` by the formula of `source`.
    fn new(model: &str, source: &str, statement: String, basis: Vec<Basis>) -> Self {
        Self {
            model: model.to_owned(),
            run: None,
            answer: None,
            statement,
            margin: None,
            basis,
            figures: Vec::new(),
            source: source.to_owned(),
            duration_needed_ns: None,
            command: None,
            severity: Vec::new(),
            sizes: None,
        }
    }

    /// With what tells it from results of other runs.
    fn severity(self, severity: impl Into<Vec<f64>>) -> Self {
        Self { severity: severity.into(), ..self }
    }

    /// With one more number.
    fn figure(mut self, name: &str, value: impl Into<Option<f64>>, unit: &str) -> Self {
        let value = value.into().filter(|value| value.is_finite());
        self.figures.push(Figure { name: name.to_owned(), value, unit: unit.to_owned() });
        self
    }

    /// With one more demand: `used` of `allowed`, both ≥ 0. The tightest decides; a demand fails
    /// when all of it is used.
    fn demand(mut self, used: f64, allowed: f64) -> Self {
        let margin = if allowed > 0.0 { 1.0 - used / allowed } else { f64::MIN };
        let margin = margin.max(f64::MIN);
        if self.margin.is_none_or(|so_far| margin < so_far) {
            self.margin = Some(margin);
            self.answer = Some(if margin > 0.0 { Suits::Yes } else { Suits::No });
        }
        self
    }

    /// With the demand that a cycle is later in less than a share `allowed` of all cycles.
    fn demand_of_tail(mut self, exceedance: &Exceedance, allowed: f64) -> Self {
        match exceedance.suits(allowed) {
            Suits::Yes => {
                if exceedance.is_counted() {
                    // A histogram does not show how they come.
                    self.statement.push_str(", if late releases come alone");
                }
                self.demand(exceedance.at_most().unwrap_or(1.0), allowed)
            }
            Suits::No => self.demand(exceedance.at_least().unwrap_or(1.0), allowed),
            Suits::Unknown => Self {
                duration_needed_ns: exceedance.duration_needed_ns(allowed),
                ..self.unknown()
            },
        }
    }

    /// With an answer that the recording is too short for.
    fn unknown(mut self) -> Self {
        (self.answer, self.margin) = (Some(Suits::Unknown), None);
        self
    }

    /// The answer of this run, without load, and of one under load together: that under load,
    /// unless this one is shown not to suit, or saw what is too much for the size that the one
    /// under load calls for. A run that is shorter shows less, and is no worse for that; what it
    /// leaves open stays open.
    #[must_use]
    pub fn with_load(self, loaded: Self) -> Self {
        match (self.answer, loaded.answer) {
            (_, Some(Suits::No)) => loaded,
            (Some(Suits::No), _) => self,
            // The figures are those of the run that is too short.
            (Some(Suits::Yes), Some(Suits::Unknown)) if self.outgrows(&loaded) => Self {
                statement: format!("{}; without load: {}", loaded.statement, self.statement),
                ..loaded
            },
            (Some(Suits::Unknown), Some(Suits::Unknown))
                if self.outgrows(&loaded)
                    && loaded.duration_needed_ns > self.duration_needed_ns =>
            {
                Self {
                    duration_needed_ns: loaded.duration_needed_ns,
                    command: loaded.command,
                    ..self
                }
            }
            _ if self.outgrows(&loaded) => self,
            _ => loaded,
        }
    }

    /// Returns true where what was measured of it is too much for the size that the answer of
    /// another run names, and its own answer names a larger one.
    fn outgrows(&self, rival: &Self) -> bool {
        let sizes = self.sizes.zip(rival.sizes);
        sizes.is_some_and(|(own, rival)| own.as_seen.min(own.named) > rival.named)
    }

    /// The worse of two results of one model: by the answer, then what the model gives for it, then
    /// the margin, then the statistic.
    pub fn is_worse_than(&self, rival: &Self) -> bool {
        let rank = |suits: Option<Suits>| match suits {
            Some(Suits::No) => 0,
            Some(Suits::Unknown) => 1,
            Some(Suits::Yes) | None => 2,
        };
        let value = |impact: &Self| impact.basis.first().map_or(0.0, |basis| basis.value_ns);
        let margin = |impact: &Self| impact.margin.unwrap_or(f64::MAX);
        let pairs = rival.severity.iter().zip(&self.severity);
        let by_severity =
            pairs.map(|(rival, own)| rival.total_cmp(own)).find(|order| order.is_ne());
        rank(self.answer)
            .cmp(&rank(rival.answer))
            .then(by_severity.unwrap_or(Ordering::Equal))
            .then(margin(self).total_cmp(&margin(rival)))
            .then(value(rival).total_cmp(&value(self)))
            .is_lt()
    }
}

/// A type that a parameter can have.
pub trait Value: Sized + 'static {
    /// The placeholder of a value in a synopsis: "RATE".
    const NAME: &'static str;
    /// A value that can be read.
    const EXAMPLE: &'static str;
    /// The words that are accepted, each with its meaning; empty where any text may be.
    const CHOICES: &'static [(&'static str, &'static str)] = &[];

    /// Reads a value.
    ///
    /// # Errors
    /// In one line, what is wrong with the text and what would be right.
    fn read(text: &str) -> Result<Self, String>;
}

macro_rules! quantity {
    ($type:ty, $name:literal, $example:literal, $read:path) => {
        impl Value for $type {
            const NAME: &'static str = $name;
            const EXAMPLE: &'static str = $example;

            fn read(text: &str) -> Result<Self, String> {
                $read(text).map_err(|why| why.to_string())
            }
        }
    };
}

quantity!(Hertz, "RATE", "1kHz", rate);
quantity!(Span, "TIME", "300us", duration);
quantity!(Angle, "ANGLE", "5deg", angle);
quantity!(Share, "SHARE", "5%", share);
quantity!(Length, "LENGTH", "10um", length);
quantity!(LinearSpeed, "SPEED", "10m/min", linear_speed);
quantity!(BitRate, "RATE", "1Gbit/s", bit_rate);
quantity!(Size, "SIZE", "8KiB", size);

/// A time that may be none: zero, or a [`Span`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaybeZero(Span);

impl Value for MaybeZero {
    const NAME: &'static str = Span::NAME;
    const EXAMPLE: &'static str = "0us";

    fn read(text: &str) -> Result<Self, String> {
        match duration(text) {
            Ok(span) => Ok(Self(span)),
            Err(QuantityError::Zero { .. }) => Ok(Self::default()),
            Err(why) => Err(why.to_string()),
        }
    }
}

/// A whole number in MIN..=MAX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<const MIN: u32, const MAX: u32>(pub u32);

impl<const MIN: u32, const MAX: u32> Value for Whole<MIN, MAX> {
    const NAME: &'static str = "N";
    const EXAMPLE: &'static str = "4";

    fn read(text: &str) -> Result<Self, String> {
        let number = text.trim().parse().ok().filter(|number| (MIN..=MAX).contains(number));
        let range = || {
            if MAX == u32::MAX {
                format!("of at least {MIN}")
            } else {
                format!("from {MIN} to {MAX}")
            }
        };
        number.map(Self).ok_or_else(|| format!("{text}: expected a whole number {}", range()))
    }
}

/// The need for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It must.
    Required,
    /// It is optional, without a default.
    Optional,
    /// It is optional, with this default.
    Default(&'static str),
}

/// A parameter with the type of its value.
///
/// A model declares its parameters as constants; the command line makes its options from them, so
/// that name, help, default and reading stand in one place.
#[derive(Debug)]
pub struct Parameter<T> {
    name: &'static str,
    help: &'static str,
    presence: Presence,
    value: PhantomData<fn() -> T>,
}

/// The description of a parameter, whatever its type.
pub trait Described: Sync {
    /// Its name, the option without the dashes.
    fn name(&self) -> &'static str;
    /// Its description, for `--help`.
    fn help(&self) -> &'static str;
    /// The need for it.
    fn presence(&self) -> Presence;
    /// [`Value::NAME`] of its type.
    fn value_name(&self) -> &'static str;
    /// [`Value::EXAMPLE`] of its type.
    fn example(&self) -> &'static str;
    /// [`Value::CHOICES`] of its type.
    fn choices(&self) -> &'static [(&'static str, &'static str)];
    /// Checks that a text can be read as its value.
    ///
    /// # Errors
    /// In one line, why not.
    fn check(&self, text: &str) -> Result<(), String>;
}

impl<T: Value> Parameter<T> {
    /// One that must be given.
    const fn required(name: &'static str, help: &'static str) -> Self {
        Self { name, help, presence: Presence::Required, value: PhantomData }
    }

    /// One that may be given.
    const fn optional(name: &'static str, help: &'static str) -> Self {
        Self { name, help, presence: Presence::Optional, value: PhantomData }
    }

    /// One that is `default` unless it is given.
    const fn or(default: &'static str, name: &'static str, help: &'static str) -> Self {
        Self { name, help, presence: Presence::Default(default), value: PhantomData }
    }

    /// The value of one that may be given.
    fn find(&self, values: &Values) -> Result<Option<T>, String> {
        let default = match self.presence {
            Presence::Default(text) => Some(text),
            Presence::Required | Presence::Optional => None,
        };
        let text = values.0.get(self.name).map(String::as_str).or(default);
        text.map(T::read).transpose().map_err(|why| format!("--{}: {why}", self.name))
    }

    /// The value of one that must be given, or has a default.
    fn value(&self, values: &Values) -> Result<T, String> {
        self.find(values)?.ok_or_else(|| format!("--{} is required", self.name))
    }
}

impl Parameter<Span> {
    /// The value in ns.
    fn ns(&self, values: &Values) -> Result<f64, String> {
        Ok(self.value(values)?.as_ns() as f64)
    }

    /// The value in ns, if it is given.
    fn find_ns(&self, values: &Values) -> Result<Option<f64>, String> {
        Ok(self.find(values)?.map(|span| span.as_ns() as f64))
    }
}

impl Parameter<MaybeZero> {
    /// The value in ns, ≥ 0; 0 if it is not given.
    fn ns(&self, values: &Values) -> Result<f64, String> {
        Ok(self.find(values)?.unwrap_or_default().0.as_ns() as f64)
    }
}

impl<T: Value> Described for Parameter<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn presence(&self) -> Presence {
        self.presence
    }

    fn value_name(&self) -> &'static str {
        T::NAME
    }

    fn example(&self) -> &'static str {
        T::EXAMPLE
    }

    fn choices(&self) -> &'static [(&'static str, &'static str)] {
        T::CHOICES
    }

    fn check(&self, text: &str) -> Result<(), String> {
        T::read(text).map(|_| ())
    }
}

/// Parameters by name, as they were written.
#[derive(Clone, Debug, Default)]
pub struct Values(BTreeMap<&'static str, String>);

impl Values {
    /// With one more.
    pub fn set(&mut self, parameter: &dyn Described, text: &str) {
        self.0.insert(parameter.name(), text.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::{Period, Span};

    use super::timing::{Bound, Timing};
    use super::{MODELS, Presence, Values};
    use crate::claim::Level;
    use crate::impact::Application;
    use crate::recording::{Recording, RecordingConfig};

    /// A number by its name.
    pub(super) fn value(impact: &Application, name: &str) -> f64 {
        let figure = impact.figures.iter().find(|figure| figure.name == name);
        figure.and_then(|figure| figure.value).unwrap_or_else(|| panic!("no {name} in {impact:?}"))
    }

    /// A run of 100 000 cycles with that largest lateness and those bounds (lateness, p).
    pub(super) fn run_like(max_ns: f64, bounds: &[(f64, f64)]) -> Timing {
        let bounds = bounds.iter();
        let bound = |&(above_ns, p): &(f64, f64)| Bound { above_ns, p, level: Level::L1 };
        Timing {
            lateness_ns: [Some(0.0), Some(max_ns / 10.0), Some(max_ns)],
            bounds: bounds.map(bound).collect(),
            counted: None,
            given: false,
            ..Timing::given(max_ns, Some(100_000))
        }
    }

    /// A run of 1 ms with so many cycles of each lateness, ns.
    pub(super) fn run_of(latenesses: &[(i64, u64)]) -> Timing {
        let period = Period::from_ns(1_000_000);
        let mut recording =
            Recording::new(RecordingConfig { period, ..RecordingConfig::default() });
        let each = latenesses.iter().flat_map(|&(ns, n)| (0..n).map(move |_| ns));
        // Spread over the run, so that late releases come alone.
        let mut shuffled: Vec<i64> = each.collect();
        let n = shuffled.len() as u64;
        shuffled.sort_by_key(|&ns| ns);
        for cycle in 0..n {
            let at = usize::try_from(cycle * 7_919 % n).expect("an index");
            let lateness = Span::from_ns(shuffled[at]);
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        }
        Timing::of(&recording.finish(0), Some(1_000_000))
    }

    #[test]
    fn what_is_later_than_a_period_is_counted_and_between_thresholds_what_these_allow() {
        let period_ns = 1_333_333;
        let mut recording = Recording::new(RecordingConfig {
            period: Period::from_ns(period_ns),
            ..RecordingConfig::default()
        });
        let latenesses = [(1_000, 1_333_333), (2_000, 1_333_400), (3_000, 1_040_000)];
        for cycle in 0..10_000 {
            let late = latenesses.iter().find(|(at, _)| *at == cycle);
            let lateness = Span::from_ns(late.map_or(5_000, |(_, ns)| *ns));
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        }
        let timing = Timing::of(&recording.finish(0), Some(period_ns));
        let range = |above_ns: f64| timing.later_than(above_ns).words().expect("counts");
        assert!(range(1_333_333.0).contains("1 of 10"), "{}", range(1_333_333.0));
        // Its bucket has two, of which one is no later than the period.
        assert!(range(1_333_350.0).starts_with("0 to 1 of 10"), "{}", range(1_333_350.0));
    }

    #[test]
    fn a_recording_gives_each_statistic_with_its_evidence() {
        let period = Period::from_ns(1_000_000);
        let mut recording =
            Recording::new(RecordingConfig { period, ..RecordingConfig::default() });
        for cycle in 0..10_000u64 {
            let lateness = Span::from_ns(1_000 + (cycle as i64 * 7_919) % 4_001);
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        }
        let timing = Timing::of(&recording.finish(0), Some(1_000_000));
        let largest = timing.largest_lateness().unwrap();
        assert_eq!(
            (largest.value_ns, largest.level, largest.n),
            (5_000.0, Some(Level::L0), Some(10_000))
        );
        let p = largest.p.unwrap();
        assert!((2.9e-4..1e-3).contains(&p), "three over n, over the extremal index: {p}");
        assert!(
            largest
                .words()
                .starts_with("L0: largest lateness 5.00 µs, observed in 10\u{a0}000 cycles")
        );
        // Claims are made of tails: up to 4 µs only the median is known.
        assert_eq!(timing.p_above(4_000.0).map(|bound| bound.p), Some(0.5));
        assert!(timing.p_above(1e6).unwrap().p <= p);
        assert!(timing.exceeded_by(1e-9).is_none(), "so few cycles say nothing of that");
        assert_eq!(timing.period_ns(None), Ok(1e6));
        assert!(timing.grid_pp().unwrap().value_ns > 3_000.0);
    }

    #[test]
    fn cold_cycles_that_were_left_out_are_not_in_n() {
        let period = Period::from_ns(1_000_000);
        let setup = RecordingConfig { period, leave_out_cold: true, ..RecordingConfig::default() };
        let mut recording = Recording::new(setup);
        for cycle in 0..1_000u64 {
            let flags = if cycle < 10 { Flags::COLD } else { Flags::NONE };
            recording.push(&Sample { cycle, lateness: Span::from_ns(5_000), flags });
        }
        let timing = Timing::of(&recording.finish(0), None);
        assert_eq!(timing.largest_lateness().unwrap().n, Some(990));
        let seen = timing.later_than(1e6).basis().unwrap();
        assert!(
            seen.words().contains("later than 1.00 ms, none of 990 cycles"),
            "{}",
            seen.words()
        );
    }

    #[test]
    fn how_many_were_later_is_counted_from_the_buckets() {
        let timing = run_of(&[(1_000, 49_000), (80_000, 990), (3_000_000, 10)]);
        let seen = |above_ns| timing.later_than(above_ns).words().unwrap();
        assert_eq!(seen(2_000_000.0), "10 of 50\u{a0}000 were later");
        assert_eq!(
            seen(3_000_000.0),
            "none of 50\u{a0}000 was later",
            "the largest is known exactly"
        );
        assert_eq!(seen(10_000.0), "1\u{a0}000 of 50\u{a0}000 were later");
        assert_eq!(
            run_of(&[(1, 9), (50, 1)]).later_than(3.0).words().unwrap(),
            "1 of 10 was later"
        );
        // 10 of 50 000 are 2·10⁻⁴.
        let later = timing.later_than(2e6);
        assert!(later.at_least().unwrap() < 2e-4 && later.at_most().unwrap() > 2e-4, "{later:?}");
        assert_eq!(later.suits(1e-3), Suits::Yes);
        assert_eq!(later.suits(2e-4), Suits::Unknown);
        assert_eq!(later.suits(1e-5), Suits::No);
        // At the share seen it takes more cycles than there were, each of 1 ms.
        assert!(later.duration_needed_ns(2.5e-4).unwrap() > 50e9, "{later:?}");
        assert_eq!(later.duration_needed_ns(2e-4), None, "more cycles would show no such thing");
        assert!(timing.exceeded_by(1e-3).unwrap().above_ns < 82_000.0);
        assert_eq!(run_of(&[(5, 10)]).exceeded_by(1e-3), None);
    }

    #[test]
    fn nothing_recorded_lacks_everything_by_name() {
        let timing = Timing::of(&Recording::new(RecordingConfig::default()).finish(0), None);
        assert_eq!(
            timing.grid_pp().unwrap_err().to_string(),
            "the data have no peak-to-peak about the grid"
        );
        assert!(timing.largest_lateness().is_err() && timing.period_ns(None).is_err());
        assert!(timing.p_above(1.0).is_none());
    }

    #[test]
    fn the_worst_is_told_by_answer_then_margin() {
        let using =
            |used: f64| Application::new("x", "y", String::new(), Vec::new()).demand(used, 1.0);
        assert!(using(2.0).is_worse_than(&using(1.5)) && using(0.5).is_worse_than(&using(0.4)));
        let unknown = Application::new("x", "y", String::new(), Vec::new()).unknown();
        assert!(unknown.is_worse_than(&using(0.9)) && using(1.1).is_worse_than(&unknown));
        assert_eq!(using(0.5).demand(0.1, 1.0).margin, Some(0.5), "the tightest decides");
        assert_eq!(using(0.0).demand(1.0, 0.0).answer, Some(Suits::No));
        // What a model gives for it counts before its margin, and in the order of its weight.
        let severe = |severity: [f64; 2]| using(0.5).severity(severity);
        assert!(severe([64.0, 0.0]).is_worse_than(&severe([32.0, 9.0])));
        assert!(severe([64.0, 2.0]).is_worse_than(&severe([64.0, 1.0])));
        let tight = using(0.9).severity([32.0, 0.0]);
        assert!(severe([64.0, 0.0]).is_worse_than(&tight));
    }

    #[test]
    fn of_two_runs_the_worse_has_the_longer_period_where_that_decides() {
        // 400 µs late every millisecond, and 100 µs late every ten.
        let timing =
            |max_ns, period_ns| Timing { period_ns: Some(period_ns), ..run_like(max_ns, &[]) };
        let (short, long) = (timing(4e5, 1e6), timing(1e5, 1e7));
        let worse = |name: &str, worse: &Timing, better: &Timing| {
            let model = MODELS.iter().find(|model| model.name == name).unwrap();
            let built = model.build(&Values::default()).unwrap();
            let impact = |timing: &Timing| built.impact(timing).unwrap();
            assert!(impact(worse).is_worse_than(&impact(better)), "{name}");
            assert!(!impact(better).is_worse_than(&impact(worse)), "{name}");
        };
        worse("quadrature", &long, &short);
        worse("safety", &long, &short);
        worse("velocity", &short, &long);
        worse("velocity", &timing(2e5, 1e6), &timing(3e5, 1e7));
    }

    #[test]
    fn no_time_at_all_is_a_value_where_none_may_be() {
        assert_eq!(MaybeZero::read("0ms"), Ok(MaybeZero::default()));
        assert_eq!(MaybeZero::read("2us"), Ok(MaybeZero(Span::from_ns(2_000))));
        assert!(MaybeZero::read("-1us").unwrap_err().contains("negative"));
        assert!(MaybeZero::read("0").unwrap_err().contains("unit"));
    }

    #[test]
    fn every_model_is_built_from_what_its_row_declares() {
        let timing = Timing { period_ns: Some(1e6), ..Timing::given(15e3, Some(1_000_000)) };
        for (at, model) in MODELS.iter().enumerate() {
            assert!(
                MODELS[..at].iter().all(|earlier| earlier.name != model.name),
                "{model:?} twice"
            );
            assert!(!model.about.is_empty() && !model.formulas.is_empty(), "{model:?}");
            let (mut needed, mut given) = (Values::default(), Values::default());
            for parameter in model.parameters {
                let name = parameter.name();
                assert!(!parameter.help().is_empty(), "{model:?} --{name}");
                assert_eq!(parameter.check(parameter.example()), Ok(()), "{model:?} --{name}");
                assert!(parameter.choices().iter().all(|(word, _)| parameter.check(word).is_ok()));
                given.set(*parameter, parameter.example());
                if parameter.presence() == Presence::Required {
                    needed.set(*parameter, parameter.example());
                    let why =
                        model.build(&Values::default()).err().expect("a parameter is missing");
                    assert!(why.ends_with(" is required"), "{model:?}: {why}");
                }
            }
            for values in [needed, given] {
                let built = model.build(&values).unwrap_or_else(|why| panic!("{model:?}: {why}"));
                let impact =
                    built.impact(&timing).unwrap_or_else(|lack| panic!("{model:?}: {lack}"));
                assert_eq!(impact.model, model.name);
                assert!(!impact.statement.is_empty() && !impact.figures.is_empty(), "{model:?}");
            }
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_said_under_its_name() {
        let rate: Parameter<Hertz> = Parameter::required("rate", "");
        let bits: Parameter<Whole<1, 64>> = Parameter::or("8", "bits", "");
        let mut values = Values::default();
        assert_eq!(rate.value(&values).unwrap_err(), "--rate is required");
        assert_eq!(bits.value(&values), Ok(Whole(8)));
        values.set(&rate, "5deg");
        values.set(&bits, "65");
        assert!(rate.value(&values).unwrap_err().starts_with("--rate: 5deg is an angle"));
        let why = bits.find(&values).unwrap_err();
        assert_eq!(why, "--bits: 65: expected a whole number from 1 to 64");
        assert!(Whole::<2, { u32::MAX }>::read("1").unwrap_err().ends_with("at least 2"));
    }
}
