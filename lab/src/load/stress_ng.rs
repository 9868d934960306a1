//! Load `stress-ng`: stressors of the program of that name, within bounds, and what it counts.
//!
//! It counts at its end, so an orderly stop asks it to end and reads what it says.

use std::io::Write;
use std::time::{Duration, Instant};

use punctual_os::process::Ending;

use super::child::{LIMIT, say};
use super::guard::Program;
use super::launcher::Launcher;
use super::life;
use super::program;
use super::protocol::Line;
use super::setup::Setup;

/// The program.
pub(super) const PROGRAM: &str = "stress-ng";
/// How often the guard looks at its orders.
const LOOK: Duration = Duration::from_millis(50);
/// After it was asked to end it has so long to do so and to say its counts.
pub(super) const GRACE: Duration = Duration::from_secs(4);

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

/// Runs it until an order, the limit or its own end.
///
/// # Errors
/// When it cannot be started.
pub(super) fn guard(
    setup: &Setup,
    launcher: &dyn Launcher,
    out: &mut dyn Write,
) -> Result<(), String> {
    let orders = life::listen(|| ());
    let path = program::find(PROGRAM).ok_or("stress-ng is not installed")?;
    let mut program = Program::start(setup, launcher, &path, &setup.words, &[])?;
    say(out, &Line::Ready)?;
    let limit = Instant::now() + setup.limit;
    let mut last = String::new();
    let mut asked = None;
    let mut counted = false;
    loop {
        while let Some(line) = program.line(Duration::ZERO) {
            counted |= tell(&line, out)?;
            last = line;
        }
        if program.is_over() {
            break;
        }
        match asked {
            None if life::stopped(&orders, LOOK) => {
                program.end(Ending::Interrupt);
                asked = Some(Instant::now());
            }
            None if Instant::now() >= limit => {
                say(out, &Line::Note(LIMIT.to_owned()))?;
                program.end(Ending::Interrupt);
                asked = Some(Instant::now());
            }
            Some(at) if at.elapsed() > GRACE => break,
            Some(_) => drop(life::stopped(&orders, LOOK)),
            None => {}
        }
    }
    while let Some(line) = program.line(LOOK) {
        counted |= tell(&line, out)?;
        last = line;
    }
    if !counted {
        say(out, &Line::Note(format!("stress-ng gave no counts; its last line: {last}")))?;
    }
    if asked.is_none() {
        say(out, &Line::Note("stress-ng ended before it was asked to".to_owned()))?;
    }
    Ok(())
}

/// Passes a count on; whether the line had one.
fn tell(line: &str, out: &mut dyn Write) -> Result<bool, String> {
    let Some(metric) = metric(line) else { return Ok(false) };
    let unit = format!("{} bogo ops", metric.stressor);
    let at_ns = (metric.seconds * 1e9) as u64;
    say(out, &Line::Count { count: metric.operations, at_ns, unit })?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Output of stress-ng 0.15.06, shortened to its kinds of lines; 0.13 says `info:` throughout.
    const SAID: &str = "\
stress-ng: info:  [7159] setting to a 3 second run per stressor
stress-ng: info:  [7159] dispatching hogs: 1 cpu, 1 fork, 1 vm
stress-ng: metrc: [7159] stressor  bogo ops real time  usr time  sys time  bogo ops/s  bogo ops/s
stress-ng: metrc: [7159]  (secs)  (secs)  (secs)  (real time) (usr+sys time)
stress-ng: metrc: [7159] cpu  1019  1.16  0.59  0.00  876.55  1706.53
stress-ng: info:  [7159] fork  155  1.16  0.07  0.05  133.94  1268.20
stress-ng: info:  [7159] successful run completed in 1.17s";

    #[test]
    fn counts_are_read_from_real_output() {
        let read: Vec<Metric> = SAID.lines().filter_map(metric).collect();
        let cpu = Metric { stressor: "cpu".into(), operations: 1019, seconds: 1.16 };
        let fork = Metric { stressor: "fork".into(), operations: 155, seconds: 1.16 };
        assert_eq!(read, [cpu, fork]);
    }

    proptest! {
        #[test]
        fn anything_can_be_read(line in "(stress-ng: )?.*(\\] )?.*") {
            let _ = metric(&line);
        }
    }
}
