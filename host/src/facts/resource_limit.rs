//! Resource limits as getrlimit(2) has them: a number or none, what counts and what is possible.
//! Parses what it is given; opens nothing.

use super::source::number;
use crate::fact::Fact;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "LimitWire", try_from = "LimitWire")]
pub enum ResourceLimit {
    /// As much as this.
    AtMost(u64),
    /// No limit; `"unlimited"` in JSON.
    Unlimited,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum LimitWire {
    Number(u64),
    Word(Cow<'static, str>),
}

impl From<ResourceLimit> for LimitWire {
    fn from(limit: ResourceLimit) -> Self {
        match limit {
            ResourceLimit::AtMost(number) => Self::Number(number),
            ResourceLimit::Unlimited => Self::Word("unlimited".into()),
        }
    }
}

impl TryFrom<LimitWire> for ResourceLimit {
    type Error = &'static str;

    fn try_from(wire: LimitWire) -> Result<Self, Self::Error> {
        match wire {
            LimitWire::Number(number) => Ok(Self::AtMost(number)),
            LimitWire::Word(word) => Self::of(&word).ok_or("a limit is a number or 'unlimited'"),
        }
    }
}

impl JsonSchema for ResourceLimit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"oneOf": [{"type": "integer", "minimum": 0}, {"const": "unlimited"}]})
    }
}

impl fmt::Display for ResourceLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(number) => write!(f, "{number}"),
            Self::Unlimited => write!(f, "unlimited"),
        }
    }
}

impl ResourceLimit {
    fn of(word: &str) -> Option<Self> {
        match word {
            "unlimited" => Some(Self::Unlimited),
            _ => number(word).map(Self::AtMost),
        }
    }

    /// Whether this much is within the limit.
    pub fn allows(self, wanted: u64) -> bool {
        match self {
            Self::AtMost(limit) => wanted <= limit,
            Self::Unlimited => true,
        }
    }
}

/// What counts now, and how far the process may raise it itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitPair {
    /// What counts.
    pub soft: ResourceLimit,
    /// How far it can be raised without a capability.
    pub hard: ResourceLimit,
}

impl LimitPair {
    /// The line `name` of `/proc/PID/limits`.
    pub(super) fn of(limits: &Fact<String>, name: &str) -> Fact<Self> {
        limits.clone().and_then(|text, origin| {
            let origin = format!("{origin} ({name})");
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let pair = line.and_then(|line| {
                let mut words = line.split_ascii_whitespace();
                let (soft, hard) =
                    (ResourceLimit::of(words.next()?)?, ResourceLimit::of(words.next()?)?);
                Some(LimitPair { soft, hard })
            });
            match pair {
                Some(pair) => Fact::known(pair, origin),
                None => Fact::absent(origin),
            }
        })
    }
}
