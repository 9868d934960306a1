//! Load `stress-ng`: stressors of the program of that name, within bounds, and what it counts.
//!
//! It counts at its end, so an orderly stop requests its end and reads what it writes. A stressor
//! that it ended by force it leaves out; that one is reported all the same, without a rate.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use punctual_os::process::EndSignal;

use super::{LoadRow, Start};
use crate::load::Launcher;
use crate::load::child;
use crate::load::protocol::Setup;
use crate::load::protocol::{LIMIT, Line, say};
use crate::load::subprocess::{self, Program};
use crate::load::supervisor::{GRACE as PART_GRACE, Part};
use crate::load::{LoadBounds, MEMORY_BYTES};
use crate::load::{LoadError, cut};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: PROGRAM,
    unit: "bogo ops",
    help: "runs stress-ng with these arguments, within bounds",
    args: Some("\"ARGS\""),
    start: Start::Program(part),
};

/// The program.
pub(in crate::load) const PROGRAM: &str = "stress-ng";
/// How often it looks for an order.
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
    let orders = child::listen(|| ())?;
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
            None if child::stop_requested(&orders, LOOK) => {
                program.end(EndSignal::Interrupt);
                requested = Some(Instant::now());
            }
            None if begun.elapsed() >= setup.limit => {
                say(out, &Line::Note(LIMIT.to_owned()))?;
                program.end(EndSignal::Interrupt);
                requested = Some(Instant::now());
            }
            Some(at) if at.elapsed() > GRACE => break,
            Some(_) => drop(child::stop_requested(&orders, LOOK)),
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

/// What a stressor counts.
fn unit(stressor: &str) -> String {
    format!("{stressor} {}", ROW.unit)
}

/// What it has written so far.
#[derive(Default)]
struct Output {
    /// Whether the parent knows that it works.
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

/// Options in one list of arguments.
const OPTIONS_MAX: usize = 32;
/// Instances of one stressor that can be asked for at all.
const INSTANCES_MAX: u64 = 8192;

/// The stressors allowed, with their short option: those that need neither files nor a real-time
/// policy, and whose memory is small or set below (`vm`). Option names as of stress-ng 0.15.
const STRESSORS: [(&str, &str); 16] = [
    ("--cpu", "-c"),
    ("--fork", "-f"),
    ("--vm", "-m"),
    ("--switch", "-s"),
    ("--timer", "-T"),
    ("--pipe", "-p"),
    ("--yield", "-y"),
    ("--poll", "-P"),
    ("--matrix", ""),
    ("--vecmath", ""),
    ("--branch", ""),
    ("--qsort", "-Q"),
    ("--memcpy", ""),
    ("--vfork", ""),
    ("--futex", ""),
    ("--timerfd", ""),
];

/// What follows an option that tunes a stressor.
#[derive(Clone, Copy)]
enum Value {
    /// A number up to this one.
    Number(u64),
    /// A number of bytes, with `k`, `m` or `g`, up to the memory of a load.
    Bytes,
    /// A word of letters, digits and dashes.
    Word,
}

/// The options allowed beside `--STRESSOR-ops N`.
const TUNING: [(&str, Value); 9] = [
    ("--cpu-load", Value::Number(100)),
    ("--cpu-method", Value::Word),
    ("--matrix-method", Value::Word),
    ("--matrix-size", Value::Number(1024)),
    ("--vm-bytes", Value::Bytes),
    ("--vm-method", Value::Word),
    ("--switch-freq", Value::Number(1_000_000)),
    ("--timer-freq", Value::Number(1_000_000)),
    ("--timerfd-freq", Value::Number(1_000_000)),
];

/// Arguments of stress-ng, in bounds.
///
/// A list of what is allowed, not of what is refused: stress-ng has hundreds of options and gains
/// more with each release, and many of them leave the bounds (memory until none is left, real-time
/// policies, daemons, files). Reading panics on no input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StressArgs {
    /// Long option and value.
    options: Vec<(String, String)>,
}

impl StressArgs {
    /// Reads arguments as a person writes them: `--cpu 2 --vm 1 --vm-bytes 64m`, `-c 2`, `--cpu=2`.
    ///
    /// # Errors
    /// [`LoadError::StressNg`] naming the option that is not allowed.
    pub fn parse(text: &str) -> Result<Self, LoadError> {
        let mut options: Vec<(String, String)> = Vec::new();
        let mut words = text.split_ascii_whitespace();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value)),
                _ => (word, words.next()),
            };
            let option = option(name, value)?;
            if options.iter().any(|(before, _)| *before == option.0) {
                return Err(LoadError::stress_ng(format!("{} is given twice", option.0)));
            }
            if options.len() == OPTIONS_MAX {
                return Err(LoadError::stress_ng(format!("more than {OPTIONS_MAX} options")));
            }
            options.push(option);
        }
        let args = Self { options };
        if !args.options.iter().any(|(name, _)| is_stressor(name)) {
            return Err(LoadError::stress_ng(
                "no stressor is named; for example: --cpu 2 --fork 2",
            ));
        }
        Ok(args)
    }

    /// The words for the program, in bounds: 0 instances (all CPUs) made a number, a limit of time,
    /// memory shared among the instances, and the counts at the end.
    ///
    /// # Errors
    /// [`LoadError::StressNg`] when there are more instances of a stressor than CPUs.
    fn bounded(&self, cpus: usize, limit: Duration, temp: &Path) -> Result<Vec<String>, LoadError> {
        let mut words = Vec::new();
        for (name, value) in &self.options {
            let mut value = value.clone();
            if let (true, Ok(count)) = (is_stressor(name), value.parse::<usize>()) {
                if count > cpus {
                    let why = format!("{name} {count}: at most one for each of {cpus} CPUs");
                    return Err(LoadError::stress_ng(why));
                }
                let count = if count == 0 { cpus } else { count };
                value = count.to_string();
                if name == "--vm" {
                    words.extend(["--vm-bytes".to_owned(), self.vm_bytes(count).to_string()]);
                }
            }
            if name != "--vm-bytes" {
                words.extend([name.clone(), value]);
            }
        }
        let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
        words.extend(["--timeout".to_owned(), format!("{seconds}s")]);
        words.extend(["--temp-path".to_owned(), temp.to_string_lossy().into_owned()]);
        words.push("--metrics-brief".to_owned());
        Ok(words)
    }

    /// The whole load as a list names it: `stress-ng:"--cpu 2"`.
    pub(in crate::load) fn load(&self, name: &str) -> String {
        format!("{name}:\"{self}\"")
    }

    /// Bytes for each of `count` instances of `vm`. Releases differ in whether they divide the
    /// number themselves, so this is within bounds either way.
    fn vm_bytes(&self, count: usize) -> u64 {
        let given = self.options.iter().find(|(name, _)| name == "--vm-bytes");
        let share = (MEMORY_BYTES / count.max(1)) as u64;
        given.and_then(|(_, value)| bytes(value)).map_or(share, |given| given.min(share))
    }
}

impl fmt::Display for StressArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.options.iter().enumerate() {
            write!(f, "{}{name} {value}", if index == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// The stressors that such words ask for, without their dashes. A value never begins with one.
fn stressors(words: &[String]) -> impl Iterator<Item = &str> {
    let names = words.iter().map(String::as_str).filter(|name| is_stressor(name));
    names.map(|name| name.trim_start_matches('-'))
}

fn is_stressor(name: &str) -> bool {
    STRESSORS.iter().any(|(long, _)| *long == name)
}

/// One option in its long form with its value, when both are allowed.
fn option(name: &str, value: Option<&str>) -> Result<(String, String), LoadError> {
    let long = STRESSORS
        .iter()
        .find(|(_, short)| !short.is_empty() && *short == name)
        .map_or(name, |(long, _)| *long);
    let kind = if is_stressor(long) {
        Value::Number(INSTANCES_MAX)
    } else if let Some((_, kind)) = TUNING.iter().find(|(tuning, _)| *tuning == long) {
        *kind
    } else if long.strip_suffix("-ops").is_some_and(is_stressor) {
        Value::Number(u64::MAX)
    } else {
        return Err(LoadError::stress_ng(refusal(name)));
    };
    let value = value.unwrap_or("");
    let good = match kind {
        Value::Number(most) => value.parse::<u64>().is_ok_and(|number| number <= most),
        Value::Bytes => bytes(value).is_some_and(|bytes| bytes <= MEMORY_BYTES as u64),
        Value::Word => is_word(value),
    };
    if good {
        return Ok((long.to_owned(), value.to_owned()));
    }
    let wanted = match kind {
        Value::Number(u64::MAX) => "a number".to_owned(),
        Value::Number(most) => format!("a number up to {most}"),
        Value::Bytes => format!("bytes up to {}m", MEMORY_BYTES >> 20),
        Value::Word => "a word".to_owned(),
    };
    Err(LoadError::stress_ng(format!("{long} needs {wanted}, not {:?}", cut(value))))
}

/// Why an option is not among the allowed ones.
fn refusal(name: &str) -> String {
    if matches!(name, "--timeout" | "-t") {
        return "leave out --timeout: it ends with the run".to_owned();
    }
    let stressors: Vec<&str> = STRESSORS.iter().map(|(long, _)| *long).collect();
    format!(
        "{:?} is not accepted; the options with known bounds are {}, and their tuning",
        cut(name),
        stressors.join(" ")
    )
}

fn is_word(value: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=32).contains(&value.len()) && !value.starts_with('-') && value.chars().all(allowed)
}

/// A number of bytes with stress-ng's suffixes `k`, `m`, `g`.
fn bytes(value: &str) -> Option<u64> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match value.get(digits.len()..)?.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|&bytes| bytes > 0)
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

    fn words(text: &str, cpus: usize) -> Result<String, LoadError> {
        let args = StressArgs::parse(text)?;
        Ok(args.bounded(cpus, Duration::from_millis(1500), Path::new("/t"))?.join(" "))
    }

    #[test]
    fn arguments_are_bounded() {
        let end = "--timeout 2s --temp-path /t --metrics-brief";
        assert_eq!(words("-c 0 --fork=1", 4), Ok(format!("--cpu 4 --fork 1 {end}")));
        assert_eq!(words("--vm 2", 2), Ok(format!("--vm-bytes 134217728 --vm 2 {end}")));
        let given = words("--vm 1 --vm-bytes 1m", 2);
        assert_eq!(given, Ok(format!("--vm-bytes 1048576 --vm 1 {end}")));
        assert!(words("--cpu 3", 2).is_err());
    }

    #[test]
    fn words_tell_their_stressors() {
        let args = StressArgs::parse("-c 2 --fork-ops 9 --fork 0 --vm-bytes 1m").expect("good");
        let words = args.bounded(2, Duration::from_secs(1), Path::new("/t")).expect("in bounds");
        assert_eq!(stressors(&words).collect::<Vec<_>>(), ["cpu", "fork"]);
    }

    #[test]
    fn what_leaves_the_bounds_is_refused() {
        for text in [
            "",
            "--vm-bytes 1m",
            "--cpu",
            "--cpu x",
            "--cpu 9999",
            "--cpu 1 --cpu 2",
            "--cpu 1 --timeout 1d",
            "-t 5 -c 1",
            "--daemon 1",
            "--bigheap 1",
            "--cpu 1 --sched fifo",
            "--cpu 1 --temp-path /etc",
            "--hdd 1",
            "--all 1",
            "--seq 1",
            "--cpu 1 --vm-bytes 90%",
            "--cpu 1 --vm-bytes 1g",
            "--cpu 1 --cpu-method --all",
            "--cpu 1 /bin/sh",
            "-c2",
            "\u{0}",
        ] {
            assert!(matches!(StressArgs::parse(text), Err(LoadError::StressNg { .. })), "{text}");
        }
        let why = StressArgs::parse("--cpu 1 --timeout 1d").expect_err("refused").to_string();
        assert!(why.contains("leave out --timeout"), "{why}");
    }

    proptest! {
        #[test]
        fn what_is_read_reads_back(
            text in "((--cpu|-m|--fork-ops|--vm-bytes|--cpu-method|--x)[ =][0-9a-z]{1,3} ?){0,4}",
        ) {
            if let Ok(args) = StressArgs::parse(&text) {
                prop_assert_eq!(StressArgs::parse(&args.to_string()), Ok(args));
            }
        }

        #[test]
        fn any_arguments_can_be_read(text in ".*") {
            let _ = StressArgs::parse(&text);
        }
    }
}
