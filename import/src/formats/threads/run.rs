//! One thread of the JSON: its histogram as it comes, its numbers, and whether they agree.
//!
//! For [`super`].

use serde::de::{Error as _, IgnoredAny, MapAccess};

use super::Program;
use crate::error::{scaled, whole};
use crate::json::{Fields, Object};
use crate::reading::ImportRequest;
use crate::run::RunBuilder;
use punctual_analysis::imported::ImportedQuantity;

/// What oslat does not record.
pub(super) const OSLAT_CANNOT_KNOW: [&str; 2] = [
    "lateness: there are no releases; a value is one pass of a spin, rounded up to whole µs, and \
    most passes are not stalls",
    "what interrupted the spin",
];

/// A thread while it is read.
pub(super) struct Thread {
    pub(super) run: RunBuilder,
    program: Program,
    unit_ns: i64,
    /// oslat's highest bucket, which takes in all that is larger: (bucket, count).
    last: Option<(u64, u64)>,
    histogram: bool,
}

impl Thread {
    pub(super) fn new(
        program: Program,
        number: u64,
        unit_ns: i64,
        request: &ImportRequest,
    ) -> Self {
        let (word, holds) = match program {
            Program::Cyclictest => ("thread", ImportedQuantity::Lateness),
            Program::Oslat => ("thread", ImportedQuantity::Stall),
            Program::Jitterdebugger => ("CPU", ImportedQuantity::Lateness),
        };
        let thresholds_ns = &request.thresholds_ns;
        let mut run = RunBuilder::new(format!("{word} {number}"), holds, unit_ns, thresholds_ns);
        match program {
            // oslat rounds up, so its values are upper ends already.
            Program::Oslat => {}
            Program::Cyclictest => run.rounding_ns = unit_ns - 1,
            Program::Jitterdebugger => {
                run.rounding_ns = unit_ns - 1;
                run.missed = Some(0);
                run.cpu = u32::try_from(number).ok();
            }
        }
        Self { run, program, unit_ns, last: None, histogram: false }
    }

    /// A mean in the unit of the file, as ns.
    fn number(&self, value: f64) -> Result<Option<f64>, String> {
        let ns = value * self.unit_ns as f64;
        if ns.abs() < 1e18 { Ok(Some(ns)) } else { Err(format!("{value} is too large for a time")) }
    }

    fn bucket(&mut self, bucket: u64, count: u64) -> Result<(), String> {
        let oslat = self.program == Program::Oslat;
        if oslat && bucket == 0 {
            return Err("a bucket 0, which oslat does not have".to_owned());
        }
        let (bucket, count) = match (oslat, self.last) {
            // The highest bucket so far waits until the maximum shows whether it took in more.
            (true, None) => {
                self.last = Some((bucket, count));
                return Ok(());
            }
            (true, Some(last)) if bucket > last.0 => {
                self.last = Some((bucket, count));
                last
            }
            _ => (bucket, count),
        };
        self.push(bucket, count)
    }

    fn push(&mut self, bucket: u64, count: u64) -> Result<(), String> {
        let lowest = scaled(bucket, self.unit_ns)?;
        // oslat rounds up: its bucket i holds what lies above i − 1 and not above i.
        let shift = if self.program == Program::Oslat { self.unit_ns - 1 } else { 0 };
        self.run.push(lowest - shift, lowest - shift + self.unit_ns - 1, count)
    }
}

impl Object for Thread {
    fn field<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let custom = A::Error::custom;
        match (key, self.program) {
            ("histogram", _) => {
                self.histogram = true;
                return map.next_value_seed(Fields(&mut Buckets(self)));
            }
            ("cycles", Program::Cyclictest) | ("count", Program::Jitterdebugger) => {
                self.run.n = Some(map.next_value()?);
            }
            ("min", _) => self.run.min_ns = self.number(map.next_value()?).map_err(custom)?,
            ("max", _) => self.run.max_ns = self.number(map.next_value()?).map_err(custom)?,
            ("avg", _) => self.run.mean_ns = self.number(map.next_value()?).map_err(custom)?,
            ("cpu", _) => self.run.cpu = u32::try_from(map.next_value::<i64>()?).ok(),
            _ => {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn done(&mut self) -> Result<(), String> {
        let name = self.run.name.clone();
        let missing = |what: &str| format!("{name}: no {what}");
        if self.run.n.is_none() && self.program != Program::Oslat {
            return Err(missing("count of its values"));
        }
        if !self.histogram {
            return Err(missing("histogram"));
        }
        for (what, number) in
            [("min", self.run.min_ns), ("max", self.run.max_ns), ("avg", self.run.mean_ns)]
        {
            number.ok_or_else(|| missing(what))?;
        }
        if let Some((bucket, count)) = self.last.take() {
            let end = scaled(bucket, self.unit_ns)?;
            if self.run.max_ns.is_some_and(|max| max > end as f64) {
                self.run.beyond = Some(count);
                self.run.limit_ns = Some(end - self.unit_ns);
            } else {
                self.push(bucket, count)?;
            }
        }
        Ok(())
    }
}

/// The buckets of a histogram.
struct Buckets<'a>(&'a mut Thread);

impl Object for Buckets<'_> {
    fn field<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let bucket = whole(key).map_err(A::Error::custom)?;
        let count = map.next_value()?;
        self.0.bucket(bucket, count).map_err(A::Error::custom)
    }
}
