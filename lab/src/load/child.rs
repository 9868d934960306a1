//! A load's own process: what runs behind the hidden subcommand.
//!
//! Ties itself to its parent first, leaves what a real-time parent hands down, sets the load up,
//! says `ready`, works, and says every 100 ms what it has done. Writes only to `out`.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use punctual_os::affinity::{self, CpuMask};
use punctual_os::process;
use punctual_os::scheduler::{self, SchedPolicy};

use super::kinds::{gears, own, stress_ng};
use super::launcher::Launcher;
use super::orders::{Stop, listen, stop_requested};
use super::protocol::{EXEC, LIMIT, Line, Setup, say};
use super::row::LoadRow;
use super::worker::{Prepared, Workers};

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
        EXEC => Err(become_program(&setup)),
        stress_ng::PROGRAM | gears::NAME => {
            check_parent(&setup)?;
            be_ordinary(&setup, out)?;
            if setup.name == gears::NAME {
                gears::run(&setup, launcher, out)
            } else {
                stress_ng::run(&setup, launcher, out)
            }
        }
        _ => {
            end_with_parent(&setup)?;
            let orders = listen(|| ())?;
            be_ordinary(&setup, out)?;
            let (row, prepared) = prepare(&setup)?;
            work(&setup, row, prepared, &orders, out)
        }
    }
}

fn be_ordinary(setup: &Setup, out: &mut dyn Write) -> Result<(), String> {
    leave_real_time(setup)?.map_or(Ok(()), |note| say(out, &Line::Note(note)))
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
        let requested = stop_requested(orders, COUNT_EVERY.min(left));
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

/// Seconds between the limit, at which a load ends by itself, and the alarm.
const ALARM_AFTER_S: u64 = 5;

/// Ends with the parent from now on, and at the latest by the alarm.
///
/// A load ends with its parent in three ways that do not depend on each other: the kernel kills it
/// when the thread that started it ends, its standard input reaches its end, and an alarm goes off
/// some seconds after its limit.
///
/// # Errors
/// When the parent has already ended, or is another one.
fn end_with_parent(setup: &Setup) -> Result<(), String> {
    process::end_with_parent().map_err(|why| format!("PR_SET_PDEATHSIG: {why}"))?;
    check_parent(setup)
}

/// For a process with programs to end: as [`end_with_parent`], but the end of the parent is seen on
/// standard input, so that there is time to end them.
///
/// # Errors
/// When the parent has already ended, or is another one.
fn check_parent(setup: &Setup) -> Result<(), String> {
    let parent = process::parent();
    if parent != setup.parent {
        return Err(format!("its parent is process {parent}, not {}", setup.parent));
    }
    let seconds = setup.limit.as_secs().saturating_add(ALARM_AFTER_S);
    process::alarm_s(u32::try_from(seconds).unwrap_or(u32::MAX));
    Ok(())
}

/// Leaves what a real-time parent hands down: SCHED_OTHER at nice 0, on the CPUs given.
///
/// Gives a note where the nice value could not be taken back.
///
/// # Errors
/// When it would run under a real-time policy, or on none of the CPUs.
fn leave_real_time(setup: &Setup) -> Result<Option<String>, String> {
    let mut note = None;
    if let Err(why) = scheduler::set(0, SchedPolicy::Other) {
        match scheduler::get(0) {
            Ok(SchedPolicy::Other) => {
                note = Some(format!("runs at the inherited nice value ({why})"));
            }
            policy => return Err(format!("SCHED_OTHER was refused ({why}), it has {policy:?}")),
        }
    }
    if !setup.cpus.is_empty() {
        let mut mask = CpuMask::EMPTY;
        setup.cpus.iter().for_each(|&cpu| mask.insert(cpu));
        affinity::set(0, &mask).map_err(|why| format!("CPUs {:?}: {why}", setup.cpus))?;
    }
    Ok(note)
}

/// Becomes `setup.words`; returns only when that fails, with the reason.
fn become_program(setup: &Setup) -> String {
    if let Err(why) = end_with_parent(setup) {
        return why;
    }
    let Some((program, args)) = setup.words.split_first() else {
        return "no program is named".to_owned();
    };
    // The kernel forgets the tie for a program with set-user-ID or capabilities; none of ours is.
    format!("{program}: {}", Command::new(program).args(args).exec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::LoadBounds;
    use crate::load::worker::tests::run_until_counted;

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
            fn command(&self, _: &[String]) -> Command {
                Command::new("false")
            }
        }
        let mut out = Vec::new();
        assert_eq!(run_child(&["cpu".to_owned()], &Nobody, &mut out), 2);
        let line = String::from_utf8(out).expect("text");
        assert!(matches!(Line::parse(line.trim()), Some(Line::Failed(_))), "{line}");
    }
}
