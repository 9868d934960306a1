//! What the table of models holds of each: its row.
//!
//! Plain data and one constructor a row; computes nothing itself.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::parameter::{Described, Values};
use super::timing::{Lack, Timing};
use crate::impact::timing::Basis;

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
    /// What it computes, in one line.
    pub about: &'static str,
    /// What it computes, and from which statistic: rows of docs/impact.md.
    pub formulas: &'static [Formula],
    /// What it is given.
    pub parameters: &'static [&'static dyn Described],
    pub(super) build: fn(&Values) -> Result<Box<dyn Assess>, String>,
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
    /// What it is for, where the model has several; empty where it has one.
    pub of: &'static str,
    /// The formula.
    pub formula: &'static str,
    /// The statistic that decides, and why that one.
    pub decides: &'static str,
    /// Where it is from.
    pub source: &'static str,
}

/// Whether it is good enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Suits {
    /// It is, as far as the recording shows.
    Yes,
    /// It is not.
    No,
    /// The recording is too short to decide.
    Unknown,
}

/// One number of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// What it is: "phase lost".
    pub name: String,
    /// Its value; null where it is not known.
    pub value: Option<f64>,
    /// Its unit: "ns", "deg", "Hz", "dB", "bit", "m", "m/s", "byte", or "1" for a share.
    pub unit: String,
}

/// What a time error does to one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Application {
    /// Which one: the subcommand of `punctual impact`.
    pub model: String,
    /// The run that the timing was taken from; null when it was given.
    pub run: Option<String>,
    /// Whether it is good enough; null when no requirement was given.
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
}

impl Application {
    /// A result of `model` by the formula of `source`.
    pub(super) fn new(model: &str, source: &str, statement: String, basis: Vec<Basis>) -> Self {
        Self {
            model: model.to_owned(),
            run: None,
            answer: None,
            statement,
            margin: None,
            basis,
            figures: Vec::new(),
            source: source.to_owned(),
        }
    }

    /// With one more number.
    pub(super) fn figure(mut self, name: &str, value: impl Into<Option<f64>>, unit: &str) -> Self {
        let value = value.into().filter(|value| value.is_finite());
        self.figures.push(Figure { name: name.to_owned(), value, unit: unit.to_owned() });
        self
    }

    /// With one more demand: `used` of `allowed`, both ≥ 0. The tightest decides; a demand fails
    /// when all of it is used.
    pub(super) fn demand(mut self, used: f64, allowed: f64) -> Self {
        let margin = if allowed > 0.0 { 1.0 - used / allowed } else { f64::MIN };
        let margin = margin.max(f64::MIN);
        if self.margin.is_none_or(|so_far| margin < so_far) {
            self.margin = Some(margin);
            self.answer = Some(if margin > 0.0 { Suits::Yes } else { Suits::No });
        }
        self
    }

    /// With an answer that the recording is too short for.
    pub(super) fn unknown(mut self) -> Self {
        (self.answer, self.margin) = (Some(Suits::Unknown), None);
        self
    }

    /// The worse of two results of one model: by the answer, then the margin, then the statistic.
    pub fn is_worse_than(&self, other: &Self) -> bool {
        let rank = |suits: Option<Suits>| match suits {
            Some(Suits::No) => 0,
            Some(Suits::Unknown) => 1,
            Some(Suits::Yes) | None => 2,
        };
        let value = |of: &Self| of.basis.first().map_or(0.0, |basis| basis.value_ns);
        let margin = |of: &Self| of.margin.unwrap_or(f64::MAX);
        rank(self.answer)
            .cmp(&rank(other.answer))
            .then(margin(self).total_cmp(&margin(other)))
            .then(value(other).total_cmp(&value(self)))
            .is_lt()
    }
}
