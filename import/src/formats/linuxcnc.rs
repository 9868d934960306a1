//! LinuxCNC: the pins of `latencybins` as `halcmd show pin` prints them, and the lines of
//! `latency-histogram --nox`.
//!
//! Source: LinuxCNC 2.9, src/hal/components/latencybins.comp, scripts/latency-histogram, whose line
//! has `secs` and `uS` in 2.8 and before. A value is
//! the time between two runs of a thread less its period: an interval, not a lateness. The variance
//! overflows its 32 bits, so neither it nor the deviation made from it is taken.

use std::collections::BTreeMap;
use std::io::Read;

use super::run::RunBuilder;
use super::{Format, Place, RUNS_MAX, Reading, Sniff, Writer};
use crate::text::{ImportError, Lines, clean, decimal_ns, scaled, shortened, signed_ns, whole};
use punctual_analysis::imported::ImportedQuantity;

const CANNOT_KNOW: [&str; 2] = [
    "lateness, grid and drift: a thread that is late all the time shows no interval at all",
    "standard deviation: the program's own overflows 32 bits",
];

/// More bins than the component can have.
const BINS_MAX: i64 = 1 << 20;

/// Its row in the table of formats.
pub(super) const LATENCYBINS: Format = Format {
    name: "latencybins",
    writers: &[Writer {
        program: "LinuxCNC's latencybins",
        file: "latencybins of LinuxCNC",
        made_with: "`halcmd show pin` after setting each index",
        holds: "intervals, a run a thread",
        resolution: "the size of a bin, twice that at zero",
        cannot_tell: "lateness, grid, drift; the standard deviation, whose pin overflows",
    }],
    sniff: Sniff::Line(is_pins),
    read: latencybins,
};

/// The title above a dump of pins.
fn is_pins(line: &str) -> bool {
    line.starts_with("Component Pins:")
}

/// Its row in the table of formats.
pub(super) const LATENCY_HISTOGRAM: Format = Format {
    name: "latency_histogram",
    writers: &[Writer {
        program: "LinuxCNC's latency-histogram",
        file: "latency-histogram of LinuxCNC",
        made_with: "`latency-histogram --nox`",
        holds: "the least and largest interval",
        resolution: "0.1 µs",
        cannot_tell: "how many cycles there were: no maximum of it carries an n, none is \
                      claimed",
    }],
    sniff: Sniff::Line(is_latency_histogram),
    read: latency_histogram,
};

/// A line of `latency-histogram --nox`.
fn is_latency_histogram(line: &str) -> bool {
    fields_of(line).is_some()
}

/// Reads dumps of the pins of one or more latencybins; a whole histogram takes one dump a bin.
fn latencybins(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "halcmd show pin (latencybins)";
    file.source.program = "latencybins";
    file.cannot_know(&CANNOT_KNOW);
    file.cannot_know(&[
        "one instant: bins are read one after the other while the thread goes on counting",
    ]);
    let mut lines = Lines::new(reader);
    let mut threads: BTreeMap<String, Bins> = BTreeMap::new();
    let mut pins: BTreeMap<(String, String), i64> = BTreeMap::new();
    while let Some(line) = lines.advance()? {
        let taken = if line.starts_with("Component Pins:") {
            close_dump(&mut threads, &mut pins)
        } else {
            take_pin(&mut pins, line)
        };
        taken.map_err(|why| lines.refuse(why))?;
    }
    close_dump(&mut threads, &mut pins).map_err(|why| lines.refuse(why))?;
    for (name, bins) in threads {
        let run = bins.run(file, &name).map_err(|why| lines.refuse(why))?;
        file.add(run).map_err(|why| lines.refuse(why))?;
    }
    Ok(Place::Line(lines.number()))
}

/// `     8  s32   OUT         -2270  servobins.latency`; other lines are passed over.
fn take_pin(pins: &mut BTreeMap<(String, String), i64>, line: &str) -> Result<(), String> {
    let mut words = line.split_whitespace();
    let (Some(owner), Some("s32"), Some(_), Some(value), Some(name)) =
        (words.next(), words.next(), words.next(), words.next(), words.next())
    else {
        return Ok(());
    };
    let Some((thread, pin)) = name.rsplit_once('.').filter(|_| whole(owner).is_ok()) else {
        return Ok(());
    };
    if pins.len() > 64 * RUNS_MAX {
        return Err("too many pins".to_owned());
    }
    let key = (clean(thread, 80), clean(pin, 80));
    pins.insert(key, signed_ns(value, 1)?);
    Ok(())
}

/// The pins of one thread, from all dumps.
#[derive(Default)]
struct Bins {
    width_ns: i64,
    bins: i64,
    min_ns: i64,
    max_ns: i64,
    above: u64,
    below: u64,
    /// Counts by number of the bin, positive and negative.
    counts: BTreeMap<i64, (u64, u64)>,
}

/// Takes a dump in, thread by thread.
fn close_dump(
    threads: &mut BTreeMap<String, Bins>,
    pins: &mut BTreeMap<(String, String), i64>,
) -> Result<(), String> {
    let dump = std::mem::take(pins);
    let mut names: Vec<&String> = dump.keys().map(|(thread, _)| thread).collect();
    names.dedup();
    for name in names {
        let pin = |pin: &str| dump.get(&(name.clone(), pin.to_owned())).copied();
        if pin("nsbinsize").is_none() && pin("latency-max").is_none() {
            // A pin of something else.
            continue;
        }
        if threads.len() >= RUNS_MAX && !threads.contains_key(name) {
            return Err(format!("more than {RUNS_MAX} threads"));
        }
        let need = |pin_name: &str| {
            pin(pin_name).ok_or_else(|| format!("{name}: pin {pin_name} is missing"))
        };
        let count = |pin_name: &str| {
            u64::try_from(need(pin_name)?).map_err(|_| format!("{name}: {pin_name} is negative"))
        };
        let bins = threads.entry(name.clone()).or_default();
        let (width_ns, most) = (need("nsbinsize")?, need("maxbinnumber")?);
        if !bins.counts.is_empty() && (bins.width_ns, bins.bins) != (width_ns, most) {
            return Err(format!("{name}: size or number of bins changed between two dumps"));
        }
        if width_ns < 1 || !(0..=BINS_MAX).contains(&most) {
            return Err(format!("{name}: {most} bins of {width_ns} ns"));
        }
        (bins.width_ns, bins.bins) = (width_ns, most);
        (bins.min_ns, bins.max_ns) = (need("latency-min")?, need("latency-max")?);
        (bins.above, bins.below) = (count("pextra")?, count("nextra")?);
        let (index, check) = (need("index")?, need("check")?);
        if index != check {
            return Err(format!(
                "{name}: the dump shows bin {check} where bin {index} was requested"
            ));
        }
        if (0..=most).contains(&index) {
            bins.counts.insert(index, (count("pbinvalue")?, count("nbinvalue")?));
        }
    }
    Ok(())
}

impl Bins {
    fn run(self, file: &Reading<'_>, name: &str) -> Result<RunBuilder, String> {
        let thresholds_ns = &file.request.thresholds_ns;
        let mut run =
            RunBuilder::new(name, ImportedQuantity::Interval, self.width_ns, thresholds_ns);
        if self.min_ns > self.max_ns {
            return Err(format!("{name}: the thread has counted nothing yet"));
        }
        (run.stated.min_ns, run.stated.max_ns) =
            (Some(self.min_ns as f64), Some(self.max_ns as f64));
        if self.counts.len() as i64 != self.bins + 1 {
            run.stated.cannot_know.push(format!(
                "how many cycles there were: {} of {} bins are in the file",
                self.counts.len(),
                self.bins + 1
            ));
            return Ok(run);
        }
        run.stated.widest_ns = 2 * self.width_ns - 1;
        let edge = |bin: i64| scaled(bin.unsigned_abs(), self.width_ns);
        for (&bin, &(positive, negative)) in &self.counts {
            let (inner, outer) = (edge(bin)?, edge(bin + 1)?);
            if bin == 0 {
                // Division cuts towards zero: the bin in the middle is the one of both signs.
                run.push(1 - outer, outer - 1, positive)?;
            } else {
                run.push(inner, outer - 1, positive)?;
                run.push(1 - outer, -inner, negative)?;
            }
        }
        let end = edge(self.bins + 1)?;
        run.push_below(-end, self.below)?;
        run.stated.beyond = Some(self.above);
        run.stated.limit_ns = Some(end);
        Ok(run)
    }
}

/// Reads the lines of `latency-histogram --nox`: of each thread the last one counts.
fn latency_histogram(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "latency-histogram --nox";
    file.source.program = "latency-histogram";
    file.cannot_know(&CANNOT_KNOW);
    file.cannot_know(&["how many cycles there were, and their period"]);
    let mut lines = Lines::new(reader);
    let mut threads: BTreeMap<String, Extremes> = BTreeMap::new();
    while let Some(line) = lines.advance()? {
        if !line.contains(" max:") && !line.contains(" min:") {
            continue;
        }
        let shown = shortened(line.as_bytes());
        let (thread, extremes) = of_line(line)
            .ok_or_else(|| lines.refuse(format!("not a line of latency-histogram: {shown:?}")))?
            .map_err(|why| lines.refuse(why))?;
        if let Some(before) = threads.get(&thread)
            && (extremes.seconds < before.seconds
                || extremes.min_ns > before.min_ns
                || extremes.max_ns < before.max_ns)
        {
            return Err(lines.refuse(format!("{thread}: the time or an extreme decreased")));
        }
        if threads.len() >= RUNS_MAX && !threads.contains_key(&thread) {
            return Err(lines.refuse(format!("more than {RUNS_MAX} threads")));
        }
        threads.insert(thread, extremes);
    }
    for (name, Extremes { min_ns, max_ns, .. }) in threads {
        let thresholds_ns = &file.request.thresholds_ns;
        let mut run = RunBuilder::new(name, ImportedQuantity::Interval, 100, thresholds_ns);
        (run.stated.min_ns, run.stated.max_ns) = (Some(min_ns), Some(max_ns));
        // Shown to a tenth of a microsecond, to the nearest.
        run.stated.rounding_ns = 50;
        file.add(run).map_err(|why| lines.refuse(why))?;
    }
    Ok(Place::Line(lines.number()))
}

/// A line of a thread: the time that passed, and its extremes so far.
struct Extremes {
    seconds: u64,
    min_ns: f64,
    max_ns: f64,
}

/// The texts between the words of a line.
struct Fields<'l> {
    seconds: &'l str,
    thread: &'l str,
    min: &'l str,
    max: &'l str,
}

/// `   12 s  servo min: -12.300 us max:  44.000 us sdev:   1.200 us`; of LinuxCNC 2.8
/// `   12 secs  servo min: -12.300 uS max:  44.000 uS sdev:   1.200 uS`; `None` for any other line.
fn fields_of<'l>(line: &'l str) -> Option<Fields<'l>> {
    let (head, rest) = line.split_once("min:")?;
    let mut words = head.split_whitespace();
    let (seconds, unit, thread, None) = (words.next()?, words.next()?, words.next()?, words.next())
    else {
        return None;
    };
    let unit = match unit {
        "s" => "us",
        "secs" => "uS",
        _ => return None,
    };
    let (min, rest) = rest.split_once("max:")?;
    let (max, sdev) = rest.split_once("sdev:")?;
    let value = |text: &'l str| text.trim_end().strip_suffix(unit).map(str::trim);
    value(sdev)?;
    Some(Fields { seconds, thread, min: value(min)?, max: value(max)? })
}

/// The extremes of a line, with the name of its thread.
fn of_line(line: &str) -> Option<Result<(String, Extremes), String>> {
    let Fields { seconds, thread, min, max } = fields_of(line)?;
    let numbers = || {
        let seconds = whole(seconds)?;
        let (min_ns, max_ns) = (decimal_ns(min, 1_000)?, decimal_ns(max, 1_000)?);
        if min_ns > max_ns {
            return Err("the minimum is above the maximum".to_owned());
        }
        Ok((clean(thread, 80), Extremes { seconds, min_ns, max_ns }))
    };
    Some(numbers())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of `latency-histogram --nox`: of LinuxCNC 2.9, and of 2.8.
    fn printed([second, micro]: [&str; 2], thread: &str, extremes_us: [f64; 2]) -> String {
        let [min, max] = extremes_us;
        format!(
            "{:5} {second} {thread:>6} min:{min:8.3} {micro} max:{max:8.3} {micro} \
             sdev:{:8.3} {micro}\n",
            5, 2.345
        )
    }

    #[test]
    fn what_each_version_of_latency_histogram_prints_is_read() {
        for units in [["s", "us"], ["secs", "uS"]] {
            let base = printed(units, "base", [-9.1, 8.7]);
            let servo = printed(units, "servo", [-12.3, 15_432.1]);
            for (text, threads) in
                [(base.clone() + &servo, &["base", "servo"][..]), (servo, &["servo"][..])]
            {
                let format = super::super::detect(text.as_bytes()).expect("recognised");
                assert_eq!(format.name, LATENCY_HISTOGRAM.name, "{text}");
                let import = super::super::read(format, text.as_bytes(), &Default::default());
                let runs = import.expect("readable").runs;
                let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
                assert_eq!(names, threads);
                let interval = &runs[threads.len() - 1].outcome.interval_ns;
                assert_eq!((interval.min, interval.max), (Some(-12_300.0), Some(15_432_100.0)));
            }
        }
    }

    #[test]
    fn what_no_version_prints_is_refused() {
        let good = printed(["s", "us"], "servo", [-12.3, 15.4]);
        for bad in ["5 secs  servo", "5 s", "5 s a b", "5 min servo"] {
            assert!(fields_of(&good.replace("5 s  servo", bad)).is_none(), "{bad}");
        }
        assert!(fields_of(good.trim_end_matches("us\n")).is_none(), "cut off");
        assert!(fields_of(&good.replace("us max", "ms max")).is_none());
        let text = good.clone() + &good.replace("us max", "ms max");
        let refused = super::super::read(&LATENCY_HISTOGRAM, text.as_bytes(), &Default::default());
        let why = refused.expect_err("another unit").to_string();
        assert!(why.starts_with("line 2: not a line of latency-histogram"), "{why}");
    }
}
