//! A load's own process: what runs behind the hidden subcommand.
//!
//! Ties itself to its parent first, leaves what a real-time parent hands down, sets the load up,
//! says `ready`, works, and says every 100 ms what it has done. Writes only to `out`.

use std::io::Write;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::exec;
use super::kinds::{LoadRow, gears, own, stress_ng};
use super::launcher::Launcher;
use super::lifecycle::{self, Stop};
use super::protocol::{LIMIT, Line, say};
use super::setup::Setup;
use super::work::{Prepared, Workers};

/// Between two counts.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// Runs one load as this process and returns its exit code: 0, or 2 when it could not run and has
/// written why to `out`. The process must end right after.
///
/// Call it from the main thread, first thing in the process, with standard input a pipe that the
/// parent holds and the arguments as [`Launcher::command`] got them; `out` is standard output, and
/// nothing else may write to it. It reads standard input, and ends the process when that ends.
pub fn run_child(args: &[String], launcher: &dyn Launcher, out: &mut dyn Write) -> u8 {
    match run(args, launcher, out) {
        Ok(()) => 0,
        Err(why) => {
            // With nobody to read it the exit code remains.
            let _ = say(out, &Line::Failed(why));
            2
        }
    }
}

fn run(args: &[String], launcher: &dyn Launcher, out: &mut dyn Write) -> Result<(), String> {
    let setup = Setup::parse(args)?;
    match setup.name.as_str() {
        exec::NAME => Err(exec::become_program(&setup)),
        stress_ng::PROGRAM | gears::NAME => {
            lifecycle::check_parent(&setup)?;
            be_ordinary(&setup, out)?;
            if setup.name == gears::NAME {
                gears::run(&setup, launcher, out)
            } else {
                stress_ng::run(&setup, launcher, out)
            }
        }
        _ => {
            lifecycle::end_with_parent(&setup)?;
            let orders = lifecycle::listen(|| ())?;
            be_ordinary(&setup, out)?;
            let (row, prepared) = prepare(&setup)?;
            work(&setup, row, prepared, &orders, out)
        }
    }
}

fn be_ordinary(setup: &Setup, out: &mut dyn Write) -> Result<(), String> {
    lifecycle::be_ordinary(setup)?.map_or(Ok(()), |note| say(out, &Line::Note(note)))
}

fn prepare(setup: &Setup) -> Result<(&'static LoadRow, Prepared), String> {
    let (row, prepare) =
        own(&setup.name).ok_or_else(|| format!("unknown load {:?}", setup.name))?;
    Ok((row, prepare(setup)?))
}

/// Works until an order or the limit. Does not wait for the workers: the process ends with them.
fn work(
    setup: &Setup,
    row: &LoadRow,
    prepared: Prepared,
    orders: &Receiver<Stop>,
    out: &mut dyn Write,
) -> Result<(), String> {
    if let Some(note) = prepared.note {
        say(out, &Line::Note(note))?;
    }
    say(out, &Line::Ready)?;
    let began = Instant::now();
    let workers = Workers::start(&setup.name, prepared.work)?;
    let mut stopped = false;
    while !stopped {
        let left = setup.limit.saturating_sub(began.elapsed());
        let requested = lifecycle::stopped(orders, COUNT_EVERY.min(left));
        stopped = requested || left.is_zero();
        // The count first: what is done between the two readings must not raise the rate.
        let count = workers.count();
        let at_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        say(out, &Line::Count { count, at_ns, unit: row.unit.to_owned() })?;
        if let Some(why) = workers.take_failure() {
            say(out, &Line::Note(format!("a worker failed: {why}")))?;
        }
        if stopped && !requested {
            say(out, &Line::Note(LIMIT.to_owned()))?;
        }
        if !stopped && workers.is_over() {
            return Err("all workers ended early".to_owned());
        }
    }
    workers.stop();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LoadBounds;
    use crate::load::work::tests::run_until_counted;

    #[test]
    fn every_load_does_its_work() {
        let bounds = LoadBounds::new(Duration::from_secs(1), vec![0]);
        for spec in crate::load::LoadSpec::all() {
            let prepared = prepare(&Setup::new(spec.name(), &bounds)).expect("nothing is needed");
            assert!(run_until_counted(prepared.1) > 0, "{spec}");
        }
    }

    #[test]
    fn bad_arguments_are_said_on_the_pipe() {
        struct Nobody;
        impl Launcher for Nobody {
            fn command(&self, _: &[String]) -> std::process::Command {
                std::process::Command::new("false")
            }
        }
        let mut out = Vec::new();
        assert_eq!(run_child(&["cpu".to_owned()], &Nobody, &mut out), 2);
        let said = String::from_utf8(out).expect("text");
        assert!(matches!(Line::parse(said.trim()), Some(Line::Failed(_))), "{said}");
    }
}
