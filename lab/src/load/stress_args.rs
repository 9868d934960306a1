//! Arguments of stress-ng: what of its options a load can have.
//!
//! For the list of loads, which reads them, and for the load `stress-ng`. Pure text.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::bounds::MEMORY_BYTES;
use super::error::{LoadError, cut};

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

/// The kind of value that follows an option that tunes a stressor.
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
    pub(super) fn bounded(
        &self,
        cpus: usize,
        limit: Duration,
        temp: &Path,
    ) -> Result<Vec<String>, LoadError> {
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
    pub(super) fn load(&self, name: &str) -> String {
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
pub(super) fn stressors(words: &[String]) -> impl Iterator<Item = &str> {
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

/// The reason, in words, for which an option is not among the allowed ones.
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
