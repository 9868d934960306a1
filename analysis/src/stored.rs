//! Exact numbers in JSON: integers of 128 bits as decimal text.
//!
//! For what is read back. JSON's own numbers are exact to 53 bits in many readers.

/// An integer as decimal text, for `#[serde(with = …)]`.
pub(crate) mod decimal {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &impl Display,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(crate) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| D::Error::custom("expected a whole number as text"))
    }
}
