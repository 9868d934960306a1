//! What a model of an application is given: its parameters, and how each is read from text.
//!
//! A model declares its parameters as constants with their type; the command line makes its options
//! from them, so that name, help, default and reading stand in one place. Reads text only.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use punctual_core::time::Span;

use crate::quantity::{
    Angle, BitRate, Hertz, Length, LinearSpeed, Share, Size, angle, bit_rate, duration, length,
    linear_speed, rate, share, size,
};

/// A type that a parameter can have.
pub trait Value: Sized + 'static {
    /// What stands for a value in a synopsis: "RATE".
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

/// Whether a parameter must be given.
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
    /// What it is, for `--help`.
    fn help(&self) -> &'static str;
    /// Whether it must be given.
    fn presence(&self) -> Presence;
    /// [`Value::NAME`] of its type.
    fn value_name(&self) -> &'static str;
    /// [`Value::EXAMPLE`] of its type.
    fn example(&self) -> &'static str;
    /// [`Value::CHOICES`] of its type.
    fn choices(&self) -> &'static [(&'static str, &'static str)];
    /// Whether a text can be read as its value.
    ///
    /// # Errors
    /// In one line, why not.
    fn check(&self, text: &str) -> Result<(), String>;
}

impl<T: Value> Parameter<T> {
    /// One that must be given.
    pub(super) const fn required(name: &'static str, help: &'static str) -> Self {
        Self { name, help, presence: Presence::Required, value: PhantomData }
    }

    /// One that may be given.
    pub(super) const fn optional(name: &'static str, help: &'static str) -> Self {
        Self { name, help, presence: Presence::Optional, value: PhantomData }
    }

    /// One that is `default` unless it is given.
    pub(super) const fn or(default: &'static str, name: &'static str, help: &'static str) -> Self {
        Self { name, help, presence: Presence::Default(default), value: PhantomData }
    }

    /// The value of one that may be given.
    pub(super) fn find(&self, values: &Values) -> Result<Option<T>, String> {
        let default = match self.presence {
            Presence::Default(text) => Some(text),
            Presence::Required | Presence::Optional => None,
        };
        let text = values.0.get(self.name).map(String::as_str).or(default);
        text.map(T::read).transpose().map_err(|why| format!("--{}: {why}", self.name))
    }

    /// The value of one that must be given, or has a default.
    pub(super) fn value(&self, values: &Values) -> Result<T, String> {
        self.find(values)?.ok_or_else(|| format!("--{} is required", self.name))
    }
}

impl Parameter<Span> {
    /// The value in ns.
    pub(super) fn ns(&self, values: &Values) -> Result<f64, String> {
        Ok(self.value(values)?.as_ns() as f64)
    }

    /// The value in ns, if it is given.
    pub(super) fn find_ns(&self, values: &Values) -> Result<Option<f64>, String> {
        Ok(self.find(values)?.map(|span| span.as_ns() as f64))
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
