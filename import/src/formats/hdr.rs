//! Logs of HdrHistogram, V2: a line an interval, each a compressed histogram; a run a tag.
//!
//! Source: HdrHistogram 2.1, HistogramLogReader and the V2 encoding; read without ever making the
//! array of counts, so that a few bytes cannot allocate gigabytes. Neither unit nor meaning of the
//! values is in the format.

mod histogram;

use std::collections::BTreeMap;
use std::io::Read;

use crate::csv::shortened;
use crate::error::{ImportError, clean};
use crate::reading::{Place, RUNS_MAX, Reading};
use crate::run::RunBuilder;
use crate::text::Lines;
use punctual_analysis::imported::ImportedQuantity;

/// A line of the header, or an interval.
pub(super) fn is_line(line: &str) -> bool {
    line.starts_with("#[") && line.contains("log format version")
        || line.starts_with("\"StartTimestamp\",\"Interval_Length\"")
        || line.contains(",HISTF")
}

/// Reads a whole file.
pub(super) fn read(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "HdrHistogram log V2";
    file.source.program = "HdrHistogram";
    file.cannot_know(&[
        "what was measured: the log does not record it; its values are read as latenesses",
        "exact min, mean and max: only the ends of their buckets",
        "missed releases, interval and grid",
    ]);
    let mut lines = Lines::new(reader);
    let Some(unit_ns) = file.request.unit_ns else {
        return Err(ImportError::line(
            1,
            "an HdrHistogram log does not record the unit of its values: give it, as in --unit ns",
        ));
    };
    let mut tags: BTreeMap<String, RunBuilder> = BTreeMap::new();
    while let Some(line) = lines.advance()? {
        let line = line.trim();
        if let Some(version) = line.strip_prefix("#[Histogram log format version ") {
            let version = version.trim_end_matches(']');
            if !version.starts_with("1.") {
                let shown = shortened(version.as_bytes());
                return Err(lines.refuse(format!(
                    "log format version {shown:?} is not supported; \
                                                expected 1"
                )));
            }
        } else if let Some(at) = line.strip_prefix("#[StartTime: ") {
            file.started_at = Some(clean(at.trim_end_matches(']'), 80));
        }
        if line.is_empty() || line.starts_with('#') || line.starts_with('"') {
            continue;
        }
        let thresholds_ns = &file.request.thresholds_ns;
        let taken = interval(&mut tags, thresholds_ns, line, unit_ns);
        taken.map_err(|why| lines.refuse(why))?;
    }
    for (_, mut run) in tags {
        run.n = Some(run.binned());
        file.add(run).map_err(|why| lines.refuse(why))?;
    }
    Ok(Place::Line(lines.number()))
}

/// `Tag=NAME,start,length,max,HISTF…`.
fn interval(
    tags: &mut BTreeMap<String, RunBuilder>,
    thresholds_ns: &[i64],
    line: &str,
    unit_ns: i64,
) -> Result<(), String> {
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(rest) => rest.split_once(',').ok_or("nothing follows the tag")?,
        None => ("", line),
    };
    let fields: Vec<&str> = rest.split(',').collect();
    let [_, _, _, encoded] = fields[..] else {
        return Err(format!("{} fields, expected 4", fields.len()));
    };
    if tags.len() >= RUNS_MAX && !tags.contains_key(tag) {
        return Err(format!("more than {RUNS_MAX} tags"));
    }
    let run = tags.entry(tag.to_owned()).or_insert_with(|| {
        let name = if tag.is_empty() { "log" } else { tag };
        let mut run = RunBuilder::new(name, ImportedQuantity::Lateness, unit_ns, thresholds_ns);
        run.width_ns = None;
        run
    });
    histogram::decode(encoded.trim(), &mut |lowest, highest, count| {
        let (lowest, highest) = (
            crate::error::scaled(lowest, unit_ns)?,
            crate::error::scaled(highest, unit_ns)?.saturating_add(unit_ns - 1),
        );
        run.widest_ns = run.widest_ns.max((highest - lowest + 1).min(lowest + 1));
        let (low, high) = (lowest as f64, highest as f64);
        run.min_ns = Some(run.min_ns.map_or(low, |min| min.min(low)));
        run.max_ns = Some(run.max_ns.map_or(high, |max| max.max(high)));
        run.push(lowest, highest, count)
    })
}
