//! Load `stress-ng`: stressors of the program of that name, within bounds, and what it counts.
//!
//! It counts at its end, so an orderly stop requests its end and reads what it writes. A stressor
//! that it ended by force it leaves out; that one is reported all the same, without a rate.

use std::io::Write;
use std::time::{Duration, Instant};

use punctual_os::process::EndSignal;

use crate::load::bounds::LoadBounds;
use crate::load::error::LoadError;
use crate::load::launcher::Launcher;
use crate::load::orders;
use crate::load::protocol::{LIMIT, Line, Setup, say};
use crate::load::row::{GRACE as PART_GRACE, LoadRow, Part, Start};
use crate::load::stress_args::{StressArgs, stressors};
use crate::load::subprocess::{self, Program};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: PROGRAM,
    unit: "bogo ops",
    help: "runs stress-ng with these arguments, within bounds",
    args: Some("\"ARGS\""),
    workers_max: None,
    start: Start::Program(part),
};

/// The program.
pub(in crate::load) const PROGRAM: &str = "stress-ng";
/// Time between two looks for an order.
const LOOK: Duration = Duration::from_millis(50);
/// After its end is requested it has so long for it and for its counts.
const GRACE: Duration = Duration::from_secs(4);
/// After its end its last lines have so long to come through the pipe; usually they need none.
const REST: Duration = Duration::from_secs(1);
/// In the line that it writes when it starts its stressors.
const BEGINS: &str = "dispatching hogs";
/// One that does not write it within this time is taken to work.
const START: Duration = Duration::from_secs(10);

/// Bogo operations of one stressor.
#[derive(Clone, Debug, PartialEq)]
struct Metric {
    stressor: String,
    operations: u64,
    seconds: f64,
}

/// Reads one line of `--metrics-brief`: `stress-ng: metrc: [7159] cpu 1019 1.16 0.59 0.00 …`
/// (`info:` in older releases): stressor, bogo ops, real, user and system time in s, two rates.
fn metric(line: &str) -> Option<Metric> {
    let (_, table) = line.strip_prefix("stress-ng: ")?.split_once("] ")?;
    let mut words = table.split_ascii_whitespace();
    let stressor = words.next()?.to_owned();
    let operations = words.next()?.parse().ok()?;
    let numbers: Vec<f64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    let seconds = *numbers.first()?;
    let sound = numbers.len() >= 5 && seconds.is_finite() && seconds > 0.0;
    sound.then_some(Metric { stressor, operations, seconds })
}

/// Its process.
fn part(args: &StressArgs, bounds: &LoadBounds) -> Result<Part, LoadError> {
    subprocess::find(PROGRAM).ok_or(LoadError::Missing { program: PROGRAM })?;
    let words = args.bounded(bounds.cpus.len(), bounds.limit, &bounds.temp)?;
    Ok(Part {
        name: args.load(PROGRAM),
        setup: Some(Setup { words, ..Setup::new(PROGRAM, bounds) }),
        unit: ROW.unit,
        note: None,
        grace: PART_GRACE + GRACE,
    })
}

/// Runs it until an order, the limit or its own end. Ready is reported when it writes that it
/// begins: loading it from a disk alone can take longer than a short run.
///
/// # Errors
/// When it cannot be started.
pub(in crate::load) fn run(
    setup: &Setup,
    launcher: &dyn Launcher,
    out: &mut dyn Write,
) -> Result<(), String> {
    let orders = orders::listen(|| ())?;
    let path = subprocess::find(PROGRAM).ok_or("stress-ng is not installed")?;
    let mut program = Program::start(setup, launcher, &path, &setup.words, &[])?;
    let begun = Instant::now();
    let mut output = Output::default();
    let mut requested = None;
    loop {
        while let Some(line) = program.line(Duration::ZERO) {
            output.take(line, out)?;
        }
        if program.is_over() {
            break;
        }
        if begun.elapsed() > START {
            output.ready(out)?;
        }
        match requested {
            None if orders::stop_requested(&orders, LOOK) => {
                program.end(EndSignal::Interrupt);
                requested = Some(Instant::now());
            }
            None if begun.elapsed() >= setup.limit => {
                say(out, &Line::Note(LIMIT.to_owned()))?;
                program.end(EndSignal::Interrupt);
                requested = Some(Instant::now());
            }
            Some(at) if at.elapsed() > GRACE => break,
            Some(_) => drop(orders::stop_requested(&orders, LOOK)),
            None => {}
        }
    }
    for line in program.rest(REST) {
        output.take(line, out)?;
    }
    // One that ended at once was started: what it wrote is reported below.
    output.ready(out)?;
    output.report_uncounted(&setup.words, out)?;
    if requested.is_none() {
        say(out, &Line::Note("stress-ng ended before it was stopped".to_owned()))?;
    }
    Ok(())
}

/// The unit of a stressor's count.
fn unit(stressor: &str) -> String {
    format!("{stressor} {}", ROW.unit)
}

/// The output that it has written so far.
#[derive(Default)]
struct Output {
    /// True once the parent knows that it works.
    ready: bool,
    /// The stressors that it counted.
    counted: Vec<String>,
    last: String,
}

impl Output {
    /// Takes in one line, and passes on what the parent must know.
    fn take(&mut self, line: String, out: &mut dyn Write) -> Result<(), String> {
        if line.contains(BEGINS) {
            self.ready(out)?;
        }
        if let Some(Metric { stressor, operations: count, seconds }) = metric(&line) {
            let at_ns = (seconds * 1e9) as u64;
            say(out, &Line::Count { count, at_ns, unit: unit(&stressor) })?;
            self.counted.push(stressor);
        }
        self.last = line;
        Ok(())
    }

    fn ready(&mut self, out: &mut dyn Write) -> Result<(), String> {
        if std::mem::replace(&mut self.ready, true) { Ok(()) } else { say(out, &Line::Ready) }
    }

    /// Names the stressors among `words` that were not counted: nothing in no time has no rate.
    fn report_uncounted(&self, words: &[String], out: &mut dyn Write) -> Result<(), String> {
        let is_missing = |name: &&str| !self.counted.iter().any(|counted| counted == name);
        let uncounted: Vec<&str> = stressors(words).filter(is_missing).collect();
        for stressor in &uncounted {
            say(out, &Line::Count { count: 0, at_ns: 0, unit: unit(stressor) })?;
        }
        let note = match (self.counted.is_empty(), uncounted.is_empty()) {
            (true, _) => format!("stress-ng gave no counts; its last line: {}", self.last),
            (false, false) => format!("stress-ng gave no count of {}", uncounted.join(", ")),
            (false, true) => return Ok(()),
        };
        say(out, &Line::Note(note))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Output of stress-ng 0.15.06, shortened to its kinds of lines; 0.13 says `info:` throughout.
    const OUTPUT: &str = "\
                          stress-ng: info:  [7159] setting to a 3 second run per stressor
stress-ng: info:  [7159] dispatching hogs: 1 cpu, 1 fork, 1 vm
stress-ng: metrc: [7159] stressor  bogo ops real time  usr time  sys time  bogo ops/s  bogo ops/s
stress-ng: metrc: [7159]  (secs)  (secs)  (secs)  (real time) (usr+sys time)
stress-ng: metrc: [7159] cpu  1019  1.16  0.59  0.00  876.55  1706.53
stress-ng: info:  [7159] fork  155  1.16  0.07  0.05  133.94  1268.20
stress-ng: info:  [7159] successful run completed in 1.17s";

    #[test]
    fn counts_are_read_from_real_output() {
        let read: Vec<Metric> = OUTPUT.lines().filter_map(metric).collect();
        let cpu = Metric { stressor: "cpu".into(), operations: 1019, seconds: 1.16 };
        let fork = Metric { stressor: "fork".into(), operations: 155, seconds: 1.16 };
        assert_eq!(read, [cpu, fork]);
    }

    #[test]
    fn it_is_ready_once_it_begins_and_then_counts() {
        let (mut output, mut out) = (Output::default(), Vec::new());
        OUTPUT
            .lines()
            .for_each(|line| output.take(line.to_owned(), &mut out).expect("into memory"));
        output.ready(&mut out).expect("into memory");
        let counts = "count 1019 1160000000 cpu bogo ops\ncount 155 1160000000 fork bogo ops\n";
        assert_eq!(String::from_utf8(out).expect("text"), format!("ready\n{counts}"));
    }

    #[test]
    fn what_was_not_counted_is_named() {
        let words = ["--cpu", "1", "--fork", "2"].map(str::to_owned);
        let output = |counted: &[&str]| {
            let counted = counted.iter().map(|&name| name.to_owned()).collect();
            let output = Output { ready: true, counted, last: "bye".to_owned() };
            let mut out = Vec::new();
            output.report_uncounted(&words, &mut out).expect("into memory");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(output(&["cpu", "fork"]), "");
        let fork = "count 0 0 fork bogo ops\nnote stress-ng gave no count of fork\n";
        assert_eq!(output(&["cpu"]), fork);
        let none = "note stress-ng gave no counts; its last line: bye\n";
        assert_eq!(output(&[]), format!("count 0 0 cpu bogo ops\ncount 0 0 fork bogo ops\n{none}"));
    }

    proptest! {
        #[test]
        fn any_line_can_be_read(line in "(stress-ng: )?.*(\\] )?.*") {
            let _ = metric(&line);
        }
    }
}
