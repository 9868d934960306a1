//! Which column of a CSV file, in which unit: `instant:ns`, `lateness:us`, `wake:ms`.
//!
//! Reads the expression; knows no file.

/// The unit of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl TimeUnit {
    /// The power of ten of ns that it is.
    pub(super) fn ns_power(self) -> i32 {
        match self {
            Self::Ns => 0,
            Self::Us => 3,
            Self::Ms => 6,
            Self::S => 9,
        }
    }
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Instants of wakes.
    Instant,
    /// wake − release.
    Lateness,
}

/// A requested column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    name: String,
    unit: TimeUnit,
}

/// Why an expression does not name a column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    /// No colon.
    #[error("{0:?} has no unit; write NAME:UNIT, e.g. instant:ns or lateness:us")]
    NoUnit(String),
    /// Nothing before the colon.
    #[error("{0:?} has no name; write NAME:UNIT, e.g. instant:ns or lateness:us")]
    NoName(String),
    /// A unit that a column cannot have.
    #[error("{0:?} is not a unit of a column; expected ns, us, ms or s")]
    UnknownUnit(String),
}

impl ColumnSpec {
    /// Reads NAME:UNIT; the last colon counts.
    ///
    /// # Errors
    /// No unit, no name, or a unit other than ns, us, ms, s.
    pub fn parse(text: &str) -> Result<Self, ColumnError> {
        let text = text.trim();
        let Some((name, unit)) = text.rsplit_once(':') else {
            return Err(ColumnError::NoUnit(crate::text::shortened(text.as_bytes())));
        };
        let unit = match unit.trim() {
            "ns" => TimeUnit::Ns,
            "us" | "µs" | "μs" => TimeUnit::Us,
            "ms" => TimeUnit::Ms,
            "s" => TimeUnit::S,
            "" => return Err(ColumnError::NoUnit(crate::text::shortened(text.as_bytes()))),
            other => {
                return Err(ColumnError::UnknownUnit(crate::text::shortened(other.as_bytes())));
            }
        };
        match name.trim() {
            "" => Err(ColumnError::NoName(crate::text::shortened(text.as_bytes()))),
            name => Ok(Self { name: name.to_owned(), unit }),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its unit.
    pub fn unit(&self) -> TimeUnit {
        self.unit
    }

    /// Whether the name itself determines what the column holds.
    pub fn tells_kind(&self) -> bool {
        self.is_named("instant") || self.is_named("lateness")
    }

    /// What the column holds: its name decides; any other name is instants when there is a period.
    pub fn kind(&self, has_period: bool) -> ColumnKind {
        if self.is_named("instant") || (has_period && !self.is_named("lateness")) {
            ColumnKind::Instant
        } else {
            ColumnKind::Lateness
        }
    }

    /// Whether a field of a header is this column's: ignoring case and surrounding space.
    pub(super) fn is_named(&self, field: &str) -> bool {
        field.trim().eq_ignore_ascii_case(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_unit_are_both_needed() {
        let spec = ColumnSpec::parse(" a:b : us").unwrap();
        assert_eq!((spec.name(), spec.unit()), ("a:b", TimeUnit::Us));
        assert!(matches!(ColumnSpec::parse("instant"), Err(ColumnError::NoUnit(_))));
        assert!(matches!(ColumnSpec::parse("instant:"), Err(ColumnError::NoUnit(_))));
        assert!(matches!(ColumnSpec::parse(":ns"), Err(ColumnError::NoName(_))));
        let message = ColumnSpec::parse("x:min").unwrap_err().to_string();
        assert_eq!(message, "\"min\" is not a unit of a column; expected ns, us, ms or s");
    }

    #[test]
    fn the_name_tells_the_kind_or_else_the_period_does() {
        let kind = |text, has_period| ColumnSpec::parse(text).unwrap().kind(has_period);
        assert_eq!(kind("Instant:ns", false), ColumnKind::Instant);
        assert_eq!(kind("lateness:ns", true), ColumnKind::Lateness);
        assert_eq!(kind("wake:ns", true), ColumnKind::Instant);
        assert_eq!(kind("late:ns", false), ColumnKind::Lateness);
    }
}
