//! A fact: a value and where it was read, or the reason why there is none.
//!
//! Absence and refusal are values, not errors: a report says "no cpufreq driver" or "permission
//! denied" in the place of the number. This file holds the type and its JSON form, and reads
//! nothing.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// One fact about the machine, with its origin.
///
/// The origin is a path, sometimes with the part of it that counted in parentheses, such as
/// `/proc/cmdline (preempt=)`. In JSON: `{"value": …|null, "origin": "…", "why": "…"}`; `why`
/// stands only where the value is null because it could not be read. `T` must not itself
/// serialise to null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Wire<T>", from = "Wire<T>")]
#[serde(bound(serialize = "T: Clone + Serialize", deserialize = "T: Deserialize<'de>"))]
pub enum Fact<T> {
    /// It was read.
    Known {
        /// The value as it was read.
        value: T,
        /// Where.
        origin: String,
    },
    /// The machine does not have it: the file is not there, or says nothing about it.
    Absent {
        /// Where it was looked for.
        origin: String,
    },
    /// The machine may have it, but it could not be read or understood.
    Unreadable {
        /// Where it was looked for.
        origin: String,
        /// Why, in the kernel's words where there are any.
        why: String,
    },
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Wire<T> {
    /// The value as it was read; null when absent or unreadable.
    value: Option<T>,
    /// Where it was read or looked for.
    origin: String,
    /// Why there is no value, where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl<T> Fact<T> {
    /// A value with its origin.
    pub fn known(value: T, origin: impl Into<String>) -> Self {
        Self::Known { value, origin: origin.into() }
    }

    /// Looked for, and not there.
    pub fn absent(origin: impl Into<String>) -> Self {
        Self::Absent { origin: origin.into() }
    }

    /// Looked for, and not readable.
    pub fn unreadable(origin: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unreadable { origin: origin.into(), why: why.into() }
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Known { value, .. } => Some(value),
            Self::Absent { .. } | Self::Unreadable { .. } => None,
        }
    }

    /// Where it was read or looked for.
    pub fn origin(&self) -> &str {
        match self {
            Self::Known { origin, .. }
            | Self::Absent { origin }
            | Self::Unreadable { origin, .. } => origin,
        }
    }

    /// Why it could not be read; `None` when it was read or is absent.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Unreadable { why, .. } => Some(why),
            Self::Known { .. } | Self::Absent { .. } => None,
        }
    }

    /// True where there is a value.
    pub fn is_known(&self) -> bool {
        self.value().is_some()
    }

    /// Another value from this one; the origin stays.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Known { value, origin } => Fact::Known { value: f(value), origin },
            Self::Absent { origin } => Fact::Absent { origin },
            Self::Unreadable { origin, why } => Fact::Unreadable { origin, why },
        }
    }

    /// Another fact from this one's value and origin.
    pub fn and_then<U>(self, f: impl FnOnce(T, String) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Known { value, origin } => f(value, origin),
            Self::Absent { origin } => Fact::Absent { origin },
            Self::Unreadable { origin, why } => Fact::Unreadable { origin, why },
        }
    }

    /// This fact if it is known, else the other if that is known. When neither is, an unreadable
    /// one wins over an absent one: "unknown" is reported rather than "not there".
    #[must_use]
    pub fn or_else(self, fallback: impl FnOnce() -> Self) -> Self {
        if self.is_known() {
            return self;
        }
        let second = fallback();
        match (&self, &second) {
            (_, Self::Known { .. }) | (Self::Absent { .. }, Self::Unreadable { .. }) => second,
            _ => self,
        }
    }
}

impl<T> From<Fact<T>> for Wire<T> {
    fn from(fact: Fact<T>) -> Self {
        match fact {
            Fact::Known { value, origin } => Self { value: Some(value), origin, why: None },
            Fact::Absent { origin } => Self { value: None, origin, why: None },
            Fact::Unreadable { origin, why } => Self { value: None, origin, why: Some(why) },
        }
    }
}

impl<T> From<Wire<T>> for Fact<T> {
    fn from(wire: Wire<T>) -> Self {
        match wire {
            Wire { value: Some(value), origin, .. } => Self::Known { value, origin },
            Wire { value: None, origin, why: None } => Self::Absent { origin },
            Wire { value: None, origin, why: Some(why) } => Self::Unreadable { origin, why },
        }
    }
}

impl<T: JsonSchema> JsonSchema for Fact<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Fact_of_{}", T::schema_name()).into()
    }

    fn schema_id() -> Cow<'static, str> {
        format!("{}::Fact<{}>", module_path!(), T::schema_id()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Wire::<T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(fact: &Fact<u32>) -> String {
        let text = serde_json::to_string(fact).unwrap();
        assert_eq!(&serde_json::from_str::<Fact<u32>>(&text).unwrap(), fact);
        text
    }

    #[test]
    fn json_has_value_origin_and_why() {
        assert_eq!(round_trip(&Fact::known(7, "/a")), r#"{"value":7,"origin":"/a"}"#);
        assert_eq!(round_trip(&Fact::absent("/a")), r#"{"value":null,"origin":"/a"}"#);
        assert_eq!(
            round_trip(&Fact::unreadable("/a", "permission denied")),
            r#"{"value":null,"origin":"/a","why":"permission denied"}"#
        );
    }

    #[test]
    fn or_else_prefers_known_then_unreadable() {
        let absent = || Fact::<u32>::absent("/a");
        let refused = || Fact::<u32>::unreadable("/b", "no");
        let known = || Fact::known(1, "/c");
        assert_eq!(absent().or_else(known), known());
        assert_eq!(known().or_else(refused), known());
        assert_eq!(absent().or_else(refused), refused());
        assert_eq!(refused().or_else(absent), refused());
        assert_eq!(absent().or_else(|| Fact::absent("/z")), absent());
    }

    #[test]
    fn schema_names_the_three_keys() {
        let schema = schemars::schema_for!(Fact<u32>);
        let properties = schema.get("properties").unwrap().as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), ["origin", "value", "why"]);
    }
}
