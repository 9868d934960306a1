//! `stress-ng --cyclic` in text: mean, extremes, percentiles, and a distribution where requested.
//!
//! Source: stress-ng 0.15, stress-cyclic.c (`stress_cyclic` and `stress_rt_dist`). A value is how
//! much longer a *relative* sleep took than requested: a lateness, but not about a grid. Only the
//! first instance prints.

use std::io::Read;

use super::run::RunBuilder;
use super::{Format, Place, Reading, Sniff, Writer};
use crate::text::{ImportError, Lines, clean, decimal_ns, scaled, shortened, whole};
use punctual_analysis::imported::ImportedQuantity;
use punctual_analysis::quantile::Probability;

/// Its row in the table of formats.
pub(super) const FORMAT: Format = Format {
    name: "stress_ng",
    writers: &[Writer {
        program: "stress-ng",
        file: "stress-ng",
        made_with: "`stress-ng --cyclic 1 [--cyclic-dist NS]`",
        holds: "lateness of relative sleeps",
        resolution: "1 ns; the width of `--cyclic-dist`",
        cannot_tell: "a grid: there is none; quantiles have no interval without a distribution",
    }],
    sniff: Sniff::Line(is_line),
    read,
};

/// The line above the numbers of a scheduling policy.
fn is_line(line: &str) -> bool {
    line.contains("cyclic: sched SCHED_")
}

/// Reads a whole file: other lines of stress-ng are passed over.
fn read(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "stress-ng --cyclic";
    file.source.program = "stress-ng";
    file.cannot_know(&[
        "missed releases, interval and grid: each sleep is relative, so there are no releases, \
        and no value contains the time between two sleeps",
    ]);
    let mut lines = Lines::new(reader);
    let mut section: Option<Section> = None;
    while let Some(line) = lines.advance()? {
        let Some((_, text)) = line.split_once("cyclic: ") else { continue };
        take(file, &mut section, text.trim()).map_err(|why| lines.refuse(why))?;
    }
    close(file, section).map_err(|why| lines.refuse(why))?;
    Ok(Place::Line(lines.number()))
}

/// One line of the stressor's.
fn take(file: &mut Reading<'_>, section: &mut Option<Section>, text: &str) -> Result<(), String> {
    if let Some(sched) = text.strip_prefix("sched ") {
        close(file, section.take())?;
        *section = Some(Section::begin(file, sched)?);
    } else if let Some(section) = section {
        section.take(text)?;
    }
    Ok(())
}

fn close(file: &mut Reading<'_>, section: Option<Section>) -> Result<(), String> {
    let Some(Section { mut run, width_ns, buckets, rows, .. }) = section else { return Ok(()) };
    if run.stated.mean_ns.is_none() || run.stated.max_ns.is_none() {
        return Err("the file ends without mean, min and max".to_owned());
    }
    if let Some((shown, total)) = buckets {
        if rows != shown {
            return Err(format!("the file ends after {rows} of {shown} buckets"));
        }
        let end = scaled(shown, 1).ok().and_then(|shown| shown.checked_mul(width_ns));
        run.stated.limit_ns = Some(end.ok_or("the distribution is too large")?);
        if shown == total {
            run.stated.beyond = Some(0);
        }
    }
    file.add(run)?;
    Ok(())
}

/// The output of one instance.
struct Section {
    run: RunBuilder,
    width_ns: i64,
    /// Buckets printed, of how many; `None` without a distribution.
    buckets: Option<(u64, u64)>,
    rows: u64,
    /// True where rows of zeros were left out.
    elided: bool,
}

impl Section {
    /// `SCHED_RR: 100000 ns delay, 10000 samples`.
    fn begin(file: &Reading<'_>, sched: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "expected policy and samples, got \
                                 {:?}",
                shortened(sched.as_bytes())
            )
        };
        let (policy, rest) = sched.split_once(':').ok_or_else(unknown)?;
        let (_, samples) = rest.split_once(" ns delay, ").ok_or_else(unknown)?;
        let samples = samples.strip_suffix(" samples").ok_or_else(unknown)?;
        if !policy.starts_with("SCHED_") {
            return Err(unknown());
        }
        let thresholds_ns = &file.request.thresholds_ns;
        let name = format!("cyclic {}", file.runs.len());
        let mut run = RunBuilder::new(name, ImportedQuantity::Lateness, 1, thresholds_ns);
        run.stated.n = Some(whole(samples)?);
        run.stated.policy = Some(clean(policy, 40));
        Ok(Self { run, width_ns: 1, buckets: None, rows: 0, elided: false })
    }

    fn take(&mut self, text: &str) -> Result<(), String> {
        if let Some(mean) = text.strip_prefix("mean: ") {
            let (mean, _) = mean.split_once(" ns,").ok_or("no mean in ns")?;
            self.run.stated.mean_ns = Some(decimal_ns(mean.trim(), 1)?);
        } else if let Some(min) = text.strip_prefix("min: ") {
            let cut = || "no min, max and std.dev. in ns".to_owned();
            let (min, rest) = min.split_once(" ns, max: ").ok_or_else(cut)?;
            let (max, stddev) = rest.split_once(" ns, std.dev. ").ok_or_else(cut)?;
            self.run.stated.min_ns = Some(decimal_ns(min.trim(), 1)?);
            self.run.stated.max_ns = Some(decimal_ns(max.trim(), 1)?);
            self.run.stated.stddev_ns = Some(decimal_ns(stddev.trim(), 1)?);
        } else if let Some(width) =
            text.strip_prefix("latency").and_then(|rest| rest.strip_prefix(" distribution ("))
        {
            let (width, _) = width.split_once(" ns ").ok_or("no width of a bucket in ns")?;
            self.width_ns = scaled(whole(width)?, 1)?.max(1);
            self.run.stated.width_ns = Some(self.width_ns);
        } else if let Some(rows) = text.strip_prefix("(for the first ") {
            let cut = || "no number of buckets".to_owned();
            let (shown, total) = rows.split_once(" buckets of ").ok_or_else(cut)?;
            let total = total.strip_suffix(')').ok_or_else(cut)?;
            self.buckets = Some((whole(shown)?, whole(total)?));
        } else if let Some((percent, value)) = text.split_once("%:") {
            self.percentile(percent, value)?;
        } else if let Some(needed) = text.strip_prefix("Note: --cyclic-samples needed to be ") {
            let needed = needed.split(' ').next().unwrap_or_default();
            let n = self.run.stated.n.unwrap_or_default();
            self.run.stated.unrecorded = whole(needed)?.saturating_sub(n);
        } else if text.starts_with("..") {
            self.elided = true;
        } else if self.buckets.is_some() && text.starts_with(|c: char| c.is_ascii_digit()) {
            self.row(text)?;
        }
        Ok(())
    }

    fn percentile(&mut self, percent: &str, value: &str) -> Result<(), String> {
        let share = decimal_ns(percent.trim(), 1)? / 100.0;
        let value = value.trim().strip_suffix(" ns").ok_or("a percentile without ns")?;
        let ns = decimal_ns(value, 1)?;
        let p = Probability::from_share(share);
        let at = Probability::SUMMARY.iter().position(|summary| Some(*summary) == p);
        let Some(at) = at else { return Ok(()) };
        self.run.stated.quantiles_ns[at] = Some(ns);
        // Of rising probability.
        let known: Vec<f64> = self.run.stated.quantiles_ns.iter().copied().flatten().collect();
        if known.is_sorted() {
            return Ok(());
        }
        Err(format!("the {}% percentile contradicts another one: {ns} ns", percent.trim()))
    }

    fn row(&mut self, text: &str) -> Result<(), String> {
        let mut words = text.split_whitespace();
        let (Some(lowest), Some(count), None) = (words.next(), words.next(), words.next()) else {
            return Err(format!("not a bucket: {:?}", shortened(text.as_bytes())));
        };
        let lowest = scaled(whole(lowest)?, 1)?;
        if self.elided {
            // Zeros were left out up to the last three rows.
            self.rows = self.rows.max((lowest / self.width_ns).unsigned_abs());
        }
        let due = scaled(self.rows, 1)?.checked_mul(self.width_ns);
        if Some(lowest) != due {
            return Err(format!("bucket {lowest} ns is not the next one"));
        }
        self.rows += 1;
        self.run.push(lowest, lowest + self.width_ns - 1, whole(count)?)
    }
}
