//! `cyclictest -v`: `thread:cycle:value` lines, every value in its order.
//!
//! For [`super`].

use std::io::Read;

use super::CANNOT_KNOW;
use crate::csv::shortened;
use crate::error::{ImportError, signed_ns, whole};
use crate::reading::{Place, RUNS_MAX, Reading};
use crate::run::RunBuilder;
use crate::text::Lines;
use punctual_analysis::imported::ImportedQuantity;

/// The three fields of a value, unread; `None` for any other line.
pub(super) fn line(line: &str) -> Option<[&str; 3]> {
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

/// Reads a whole file.
pub(crate) fn read(file: &mut Reading<'_>, reader: &mut dyn Read) -> Result<Place, ImportError> {
    file.source.format = "cyclictest -v";
    file.source.program = "cyclictest";
    file.cannot_know(&CANNOT_KNOW);
    let unit_ns = file.unit_ns(1_000, "-N");
    let mut lines = Lines::new(reader);
    let mut threads: Vec<Option<Thread>> = Vec::new();
    let mut periods: Vec<(usize, u64)> = Vec::new();
    let mut begun = false;
    while let Some(text) = lines.advance()? {
        if let Some(fields) = line(text) {
            begun = true;
            let taken = take(file, &mut threads, fields, unit_ns);
            taken.map_err(|why| lines.refuse(why))?;
        } else if let Some(period) = period(text) {
            periods.push(period);
            if periods.len() > RUNS_MAX {
                return Err(lines.refuse(format!("more than {RUNS_MAX} threads")));
            }
        } else if begun && !is_other(text) {
            let why = format!("expected thread:cycle:value, got {:?}", shortened(text.as_bytes()));
            return Err(lines.refuse(why));
        }
    }
    for (number, thread) in threads.into_iter().enumerate() {
        let Some(Thread { mut run, .. }) = thread else { continue };
        let period = periods.iter().find(|(thread, _)| *thread == number);
        run.period_ns = period.and_then(|(_, us)| us.checked_mul(1_000));
        file.add(run).map_err(|why| lines.refuse(why))?;
    }
    Ok(Place::Line(lines.number()))
}

fn take(
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
    thread.run.unrecorded = thread.run.unrecorded.saturating_add(skipped);
    thread.next = cycle.checked_add(1).ok_or("the cycle is too large")?;
    thread.run.push_value(signed_ns(value, unit_ns)?)
}

/// `Thread 0 Interval: 1000`: the thread and its period in µs.
fn period(line: &str) -> Option<(usize, u64)> {
    let (thread, us) = line.strip_prefix("Thread ")?.split_once(" Interval: ")?;
    Some((thread.trim().parse().ok()?, us.trim().parse().ok()?))
}

/// Whether cyclictest writes such a line between values.
fn is_other(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || super::display(line).is_some()
}
