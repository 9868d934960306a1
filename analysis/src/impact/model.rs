//! What the table of models holds of each: its row.
//!
//! Plain data and one constructor a row; computes nothing itself.

use std::fmt;

use super::application::Application;
use super::parameter::{Described, Values};
use super::timing::{Lack, Timing};

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
