//! cyclictest of rt-tests, in text: `-h` histograms and `-v` values. Its JSON is in
//! [`super::threads`].
//!
//! Source: rt-tests 2.4, src/cyclictest/cyclictest.c (`print_hist`, `print_stat`, `timerthread`,
//! `main`, which prints the line `Thread N Interval:` once it has added the distance of threads, so
//! that it has the interval of the next thread). A value is wake − release, cut to whole µs (ns
//! with -N); the text does not say which. Releases that passed meanwhile are skipped and not
//! counted.

use std::io::Read;

use punctual_analysis::imported::ImportedQuantity;

use super::run::RunBuilder;
use super::{Format, Place, RUNS_MAX, Reading, Sniff, Writer};
use crate::text::{ImportError, Lines, decimal_ns, scaled, shortened, signed_ns, whole};

/// Its row in the table of formats.
pub(super) const HISTOGRAM: Format = Format {
    name: "cyclictest_histogram",
    writers: &[Writer {
        program: "cyclictest",
        file: "histogram of cyclictest",
        made_with: "`cyclictest -h N` or `-H N`",
        holds: "lateness, a run a column",
        resolution: "1 µs, or 1 ns with `-N`, which is **not in the file**: `--unit`",
        cannot_tell: "missed releases (below); how far beyond the histogram its overflow lies",
    }],
    sniff: Sniff::Line(is_histogram),
    read: histogram,
};

/// The line above the rows of a histogram.
fn is_histogram(line: &str) -> bool {
    line == "# Histogram"
}

/// Its row in the table of formats.
pub(super) const VERBOSE: Format = Format {
    name: "cyclictest_verbose",
    writers: &[Writer {
        program: "cyclictest",
        file: "values of cyclictest",
        made_with: "`cyclictest -v`",
        holds: "lateness in order, a run a thread",
        resolution: "1 µs, or 1 ns with `-N`, which is **not in the file**: `--unit`",
        cannot_tell: "missed releases (below); the period of a single thread, whose line \
                      `Interval:` has `-d` in it (of two threads and more the difference shows \
                      that): `--period`",
    }],
    sniff: Sniff::Line(is_verbose),
    read: verbose,
};

/// A value, or the line above those of a thread.
fn is_verbose(line: &str) -> bool {
    value_fields(line).is_some() || (line.starts_with("Thread ") && line.contains(" Interval: "))
}

/// The facts that no file of cyclictest records.
pub(super) const CANNOT_KNOW: [&str; 2] = [
    "missed releases: cyclictest skips and does not count them, so one long stall is a single \
    value (coordinated omission)",
    "interval and grid: there are no instants",
];

/// Short options that take a value, or may have one behind them.
const WITH_VALUE: &str = "aAbcdDFhHilopt";

/// What a command line says about the values of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// The number of buckets of a histogram. Values from there on are beyond it.
    pub(super) buckets: Option<u64>,
    /// The interval of the first thread, µs; `None` where it is no number.
    interval_us: Option<u64>,
    /// How much longer than that of the thread before each interval is, µs.
    distance_us: Option<u64>,
}

impl CommandLine {
    /// Reads the options that getopt would find: `-h 500`, `-qh500`, `--histogram=500`,
    /// `--histogram 500`.
    pub(super) fn parse(command: &str) -> Self {
        let positive = |value: &str| value.parse().ok().filter(|&number: &u64| number > 0);
        let buckets =
            value_of(command, &[('h', "histogram"), ('H', "histofall")]).and_then(positive);
        // As atoi reads them.
        let digits = |value: &str| value.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
        let time_us = |names, default| value_of(command, names).map_or(Some(default), digits);
        let interval_us = time_us(&[('i', "interval")], 1_000).filter(|&us| us > 0);
        // Threads of a histogram have one interval.
        let distance_us =
            if buckets.is_some() { Some(0) } else { time_us(&[('d', "distance")], 500) };
        Self { buckets, interval_us, distance_us }
    }

    /// The period of a thread, counted from 0, ns.
    pub(super) fn period_ns(&self, thread: u64) -> Option<u64> {
        let later_us = self.distance_us?.checked_mul(thread)?;
        period_ns(self.interval_us?.checked_add(later_us)?)
    }
}

/// An interval as a period, ns; `None` for one that cyclictest cannot have.
fn period_ns(us: u64) -> Option<u64> {
    i32::try_from(us).ok().filter(|&us| us > 0).map(|_| us * 1_000)
}

/// The value of the last of these options, a letter and a word each.
fn value_of<'c>(command: &'c str, names: &[(char, &str)]) -> Option<&'c str> {
    let mut words = command.split_whitespace().skip(1).peekable();
    let mut found = None;
    while let Some(word) = words.next() {
        let next = || words.next_if(|word| !word.starts_with('-'));
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            // getopt takes the beginning of a word for the word.
            let is_meant = |known: &str| name.len() > 2 && known.starts_with(name);
            if names.iter().any(|(_, known)| is_meant(known)) {
                found = value.or_else(next);
            }
        } else if let Some(short) = word.strip_prefix('-')
            && let Some(at) = short.find(|letter: char| WITH_VALUE.contains(letter))
        {
            let value = Some(&short[at + 1..]).filter(|rest| !rest.is_empty()).or_else(next);
            if names.iter().any(|(letter, _)| short[at..].starts_with(*letter)) {
                found = value;
            }
        }
    }
    found
}

/// The fields of a line of its running display: `T: 0 ( 1491) P:80 I:1000 C: …`.
struct Display {
    thread: usize,
    priority: u8,
    period_us: u64,
}

/// Reads a line of the running display, behind escape sequences too.
fn display(line: &str) -> Option<Display> {
    let rest = &line[line.find("T:")? + 2..];
    let field = |name: &str| {
        let rest = rest[rest.find(name)? + name.len()..].trim_start();
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()
    };
    let thread = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    let priority = u8::try_from(field("P:")?).ok()?;
    Some(Display { thread, priority, period_us: field("I:")? })
}

/// The lines below the rows: totals of the values in buckets, then what stands beside them.
const FOOTER: [&str; 5] = [
    "# Total:",
    "# Min Latencies:",
    "# Avg Latencies:",
    "# Max Latencies:",
    "# Histogram Overflows:",
];

/// Reads what `cyclictest -h` prints: a row a bucket, a column a thread, then totals. The footer
/// must be there: without it the file was cut.
fn histogram(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "cyclictest -h";
    file.source.program = "cyclictest";
    file.cannot_know(&CANNOT_KNOW);
    let unit_ns = file.unit_ns(1_000, "-N");
    let mut lines = Lines::new(reader);
    let mut displayed = Vec::new();
    let mut footer: [Option<Vec<String>>; 5] = Default::default();
    let (mut begun, mut next) = (false, 0);
    while let Some(line) = lines.advance()? {
        let line = line.trim_end();
        if !begun {
            displayed.extend(display(line));
            begun = line == "# Histogram";
            continue;
        }
        if let Some(at) = FOOTER.iter().position(|name| line.starts_with(name)) {
            let words = line[FOOTER[at].len()..].split_whitespace();
            footer[at] = Some(words.map(str::to_owned).collect());
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && footer[0].is_none() {
            let row = histogram_row(file, line, next, unit_ns);
            next = row.map_err(|why| lines.refuse(why))? + 1;
        } else if display(line).is_some() {
            displayed.extend(display(line));
        } else if !line.is_empty() && !line.starts_with('#') && footer[4].is_none() {
            return Err(lines.refuse("expected a bucket or the end of the histogram"));
        }
    }
    histogram_totals(file, footer, next, unit_ns).map_err(|why| lines.refuse(why))?;
    for shown in displayed {
        if let Some(run) = file.runs.get_mut(shown.thread) {
            run.stated.period_ns = period_ns(shown.period_us);
            run.stated.priority = Some(shown.priority).filter(|&priority| priority > 0);
        }
    }
    Ok(Place::Line(lines.number()))
}

/// Takes in one row of a histogram; returns its bucket.
fn histogram_row(
    file: &mut Reading<'_>,
    line: &str,
    next: u64,
    unit_ns: i64,
) -> Result<u64, String> {
    let mut words = line.split_whitespace();
    let bucket = whole(words.next().unwrap_or_default())?;
    let first = next == 0 && file.runs.is_empty();
    if bucket < next {
        return Err(format!("bucket {bucket}, expected {next}"));
    }
    let lowest = scaled(bucket, unit_ns)?;
    let mut columns = 0;
    for (column, word) in words.enumerate() {
        let count = whole(word)?;
        if first {
            let name = format!("thread {column}");
            let thresholds_ns = &file.request.thresholds_ns;
            file.add(RunBuilder::new(name, ImportedQuantity::Lateness, unit_ns, thresholds_ns))?;
        }
        let run = file.runs.get_mut(column).ok_or("more columns than before")?;
        run.push(lowest, lowest + unit_ns - 1, count)?;
        columns = column + 1;
    }
    if columns == 0 || columns != file.runs.len() {
        return Err(format!("{columns} columns, expected {}", file.runs.len()));
    }
    Ok(bucket)
}

/// Takes in the totals below a histogram. With -H the last column is the sum of all threads, which
/// has no minimum of its own.
fn histogram_totals(
    file: &mut Reading<'_>,
    footer: [Option<Vec<String>>; 5],
    buckets: u64,
    unit_ns: i64,
) -> Result<(), String> {
    let mut given = Vec::new();
    for (name, words) in FOOTER.iter().zip(footer) {
        given.push(words.ok_or_else(|| format!("the file ends without {:?}", &name[2..]))?);
    }
    let threads = given[1].len();
    let fits = |words: &Vec<String>| words.len() == threads || words.len() == threads + 1;
    if !given.iter().all(fits) || !(threads..=threads + 1).contains(&file.runs.len()) {
        return Err(format!("{threads} minima for {} columns", file.runs.len()));
    }
    file.runs.truncate(threads);
    for (at, run) in file.runs.iter_mut().enumerate() {
        let word = |line: usize| given[line][at].as_str();
        let (total, overflow) = (whole(word(0))?, whole(word(4))?);
        if total != run.binned() {
            return Err(format!(
                "thread {at}: a total of {total}, but its buckets hold \
                               {}",
                run.binned()
            ));
        }
        run.stated.n = total.checked_add(overflow);
        run.stated.beyond = Some(overflow);
        run.stated.limit_ns = Some(scaled(buckets, unit_ns)?);
        run.stated.rounding_ns = unit_ns - 1;
        run.stated.min_ns = Some(decimal_ns(word(1), unit_ns)?);
        run.stated.mean_ns = Some(decimal_ns(word(2), unit_ns)?);
        run.stated.max_ns = Some(decimal_ns(word(3), unit_ns)?);
    }
    Ok(())
}

/// The three fields of a value, unread; `None` for any other line.
fn value_fields(line: &str) -> Option<[&str; 3]> {
    let mut fields = line.split(':').map(str::trim);
    let three = [fields.next()?, fields.next()?, fields.next()?];
    let digits = |field: &str| !field.is_empty() && field.bytes().all(|b| b.is_ascii_digit());
    let value = three[2].strip_prefix('-').unwrap_or(three[2]);
    (fields.next().is_none() && digits(three[0]) && digits(three[1]) && digits(value))
        .then_some(three)
}

/// A thread while its values come.
struct Thread {
    run: RunBuilder,
    /// The cycle that comes next.
    next: u64,
}

/// Reads what `cyclictest -v` prints: `thread:cycle:value` lines, every value in its order.
fn verbose(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "cyclictest -v";
    file.source.program = "cyclictest";
    file.cannot_know(&CANNOT_KNOW);
    let unit_ns = file.unit_ns(1_000, "-N");
    let mut lines = Lines::new(reader);
    let mut threads: Vec<Option<Thread>> = Vec::new();
    let mut periods: Vec<(usize, u64)> = Vec::new();
    let mut begun = false;
    while let Some(text) = lines.advance()? {
        if let Some(fields) = value_fields(text) {
            begun = true;
            let taken = take_value(file, &mut threads, fields, unit_ns);
            taken.map_err(|why| lines.refuse(why))?;
        } else if let Some(interval) = printed_interval(text) {
            periods.push(interval);
            if periods.len() > RUNS_MAX {
                return Err(lines.refuse(format!("more than {RUNS_MAX} threads")));
            }
        } else if begun && !is_other(text) {
            let why = format!("expected thread:cycle:value, got {:?}", shortened(text.as_bytes()));
            return Err(lines.refuse(why));
        }
    }
    let distance_us = distance_us(&periods);
    if let (Some((_, us)), None) = (periods.first(), distance_us) {
        let usual = us.checked_sub(500).filter(|us| *us > 0);
        let usual = usual
            .map_or_else(String::new, |us| format!(", which is {us} us with the usual -d 500"));
        file.warnings.push(format!(
            "the period is not known: 'cyclictest -v' prints the interval of each thread with the \
             option -d added ({us} us{usual}), which these lines do not state; --period TIME says \
             what it is"
        ));
    }
    for (number, thread) in threads.into_iter().enumerate() {
        let Some(Thread { mut run, .. }) = thread else { continue };
        let printed = periods.iter().find(|(thread, _)| *thread == number);
        let interval_us = printed.zip(distance_us).and_then(|((_, us), by)| us.checked_sub(by));
        run.stated.period_ns = interval_us.and_then(period_ns);
        file.add(run).map_err(|why| lines.refuse(why))?;
    }
    Ok(Place::Line(lines.number()))
}

/// Takes in one value, and counts the cycles that were skipped before it.
fn take_value(
    file: &Reading<'_>,
    threads: &mut Vec<Option<Thread>>,
    [thread, cycle, value]: [&str; 3],
    unit_ns: i64,
) -> Result<(), String> {
    let number = whole(thread)?;
    let number = usize::try_from(number).ok().filter(|&number| number < RUNS_MAX);
    let number = number.ok_or_else(|| format!("thread {thread}; at most {RUNS_MAX} are read"))?;
    if threads.len() <= number {
        threads.resize_with(number + 1, || None);
    }
    let thread = threads[number].get_or_insert_with(|| {
        let name = format!("thread {number}");
        let thresholds_ns = &file.request.thresholds_ns;
        Thread {
            run: RunBuilder::in_order(name, ImportedQuantity::Lateness, unit_ns, thresholds_ns),
            next: 0,
        }
    });
    let cycle = whole(cycle)?;
    let skipped = cycle
        .checked_sub(thread.next)
        .ok_or_else(|| format!("cycle {cycle} of thread {number}, expected {}", thread.next))?;
    // What its ring of values could not hold until it was printed.
    thread.run.stated.unrecorded = thread.run.stated.unrecorded.saturating_add(skipped);
    thread.next = cycle.checked_add(1).ok_or("the cycle is too large")?;
    thread.run.push_value(signed_ns(value, unit_ns)?)
}

/// By how much each interval is longer than that of the thread before, µs; `None` where the lines
/// of fewer than two threads show it, or they disagree.
fn distance_us(printed: &[(usize, u64)]) -> Option<u64> {
    let mut steps = printed.windows(2).map(|pair| {
        (pair[0].0 + 1 == pair[1].0).then(|| pair[1].1.checked_sub(pair[0].1)).flatten()
    });
    let first = steps.next()??;
    steps.all(|step| step == Some(first)).then_some(first)
}

/// `Thread 0 Interval: 1500`: the thread, and in µs its interval with the distance of threads.
fn printed_interval(line: &str) -> Option<(usize, u64)> {
    let (thread, us) = line.strip_prefix("Thread ")?.split_once(" Interval: ")?;
    Some((thread.trim().parse().ok()?, us.trim().parse().ok()?))
}

/// Returns true where cyclictest writes such a line between values.
fn is_other(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || display(line).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_histogram_is_in_the_command_line() {
        let number = |options: &str| {
            CommandLine::parse(&format!("./cyclictest -q -i 1000 {options} -p 80")).buckets
        };
        for options in
            ["-h 500", "-h500", "-H 500", "-mqh500", "--histogram=500", "--histofall 500"]
        {
            assert_eq!(number(options), Some(500), "{options}");
        }
        for options in ["", "-h", "-h x", "--json=-h", "-h 0"] {
            assert_eq!(number(options), None, "{options}");
        }
    }

    #[test]
    fn the_period_of_each_thread_is_in_the_command_line() {
        let us = |options: &str| {
            let command = CommandLine::parse(&format!("/usr/bin/cyclictest {options}"));
            [0, 1, 2].map(|thread| command.period_ns(thread).map(|ns| ns / 1_000))
        };
        // As rt-tests 2.4 shows them in its running display.
        for (options, periods) in [
            ("", [1_000, 1_500, 2_000]),
            ("-t 3 -p 80 -q --json=F", [1_000, 1_500, 2_000]),
            ("-i 250 -d 0", [250; 3]),
            ("-i250 -d10", [250, 260, 270]),
            ("-mqi 250 -t3 -a", [250, 750, 1_250]),
            ("--interval=250 --distance 0", [250; 3]),
            ("--interval 200 --inter=250 --dist=1", [250, 251, 252]),
            ("-h 400 -i 250", [250; 3]),
            ("-S -i 250 -H 400 -d 7", [250; 3]),
            ("--json=-i9 -D 1h -i 250us -d0", [250; 3]),
        ] {
            assert_eq!(us(options), periods.map(Some), "{options}");
        }
        for options in ["-i 0", "-i x", "-i 99999999999", "-d 99999999999 -i"] {
            assert_eq!(us(options)[1], None, "{options}");
        }
    }

    #[test]
    fn what_is_printed_of_an_interval_has_the_distance_in_it() {
        let read = |head: &str, threads: usize| {
            let rows = (0..threads).map(|thread| format!("{thread:8}:       0:      17\n"));
            let text = head.to_owned() + &rows.collect::<String>();
            let import = super::super::read(&VERBOSE, text.as_bytes(), &Default::default());
            let import = import.expect("readable");
            let periods: Vec<_> = import.runs.iter().map(|run| run.period_ns).collect();
            (periods, import.warnings.join(" "))
        };
        // What rt-tests 2.4 printed with -i 1000, and -d, -h and -t as they stand here.
        let two = |first: u64, second: u64| {
            read(&format!("Thread 0 Interval: {first}\nThread 1 Interval: {second}\n"), 2).0
        };
        assert_eq!(two(1_500, 2_000), [Some(1_000_000), Some(1_500_000)], "-t 2");
        assert_eq!(two(1_000, 1_000), [Some(1_000_000); 2], "-t 2 -d 0, and -t 2 -h 100");
        assert_eq!(two(2_000, 1_500), [None; 2], "no cyclictest");
        let (one, warnings) = read("Thread 0 Interval: 1500\n", 1);
        assert_eq!(one, [None], "-t 1, of whatever -i and -d");
        for words in ["--period TIME", "1500 us", "1000 us with the usual -d 500"] {
            assert!(warnings.contains(words), "{warnings}");
        }
        assert!(!read("", 1).1.contains("--period"), "nothing was printed that is wrong");
    }
}
