//! LinuxCNC's real-time threads (rtapi) with its own components: `timedelta` measures, `sampler`
//! and `halsampler` hand each value out.
//!
//! `timedelta.0.err` is the sum of its intervals' deviations: lateness, but for a constant that
//! nobody knows. The earliest wake of a block is taken as on time, which flatters. Its grid begins
//! when it is started; a thread that is late catches up, so that no release is missed. Where it
//! says "POSIX non-realtime" its thread is made SCHED_FIFO from here, so that all have the same
//! policy.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use punctual_analysis::histogram::Histogram;
use punctual_core::time::Span;
use punctual_os::process::euid;
use punctual_os::scheduler;

use super::{Folder, Readings, last_line, run, threads};
use crate::block::Block;
use crate::runner::RunContext;

/// Wakes that are not counted at the start of a block: until the policy is set.
const WARM: Duration = Duration::from_millis(1_000);
/// Beside its block: it starts and ends.
const GRACE: Duration = Duration::from_secs(15);
/// The process of its threads, and the name of the first of them.
const PROCESS: &str = "rtapi_app";
const THREAD: &str = "rtapi_app:T#0";

/// One block of it, and what to say of it.
///
/// # Errors
/// It is not installed, runs already, or ended badly.
pub(crate) fn block(
    context: &RunContext,
    length: Span,
    folder: &Folder,
) -> Result<(Block, Option<String>), String> {
    let program = super::find("halrun").ok_or("not installed (Debian: linuxcnc-uspace)")?;
    if running().is_some() {
        return Err("LinuxCNC is at work on this machine already".to_owned());
    }
    let period_ns = context.grid.period().as_ns();
    let length = Duration::from_nanos(length.as_ns().unsigned_abs());
    let warm = (WARM.as_nanos() as u64 / period_ns) as usize;
    let wakes = (length.as_nanos() as u64 / period_ns) as usize;
    let script = folder.path("peer.hal");
    fs::write(&script, hal(period_ns, warm + wakes)).map_err(|why| why.to_string())?;
    let mut command = Command::new(&program);
    surroundings(&mut command, context, folder).arg("-f").arg(&script);
    let _guard = Cleanup::set(&program, context, folder)?;
    let mut seen =
        Seen { readings: Readings::default(), since: Instant::now(), note: None, set: false };
    let every = Duration::from_nanos((3 * period_ns).max(20_000_000));
    let limit = length + WARM + GRACE;
    let output = run(&mut command, folder, (limit, every), |_| seen.look())?;
    let lateness_ns = lateness(&output.out, warm).ok_or_else(|| {
        format!(
            "halrun gave no samples; {}",
            last_line(&format!("{}{}", output.out, output.errors))
        )
    })?;
    let block = Block { lateness_ns, missed: None, cpu_load: seen.readings.load() };
    Ok((block, seen.note))
}

/// What it reads from its environment: the CPU, a user for what needs no root, its own socket.
fn surroundings<'a>(
    command: &'a mut Command,
    context: &RunContext,
    folder: &Folder,
) -> &'a mut Command {
    command.env("RTAPI_CPU_NUMBER", context.cpu.to_string());
    command.env("LINUXCNC_FORCE_REALTIME", "1");
    if euid() == 0 {
        command.env("RTAPI_UID", "65534").env("RTAPI_FIFO_PATH", folder.path("fifo"));
    }
    command
}

/// Ends what halrun leaves behind, which is in no process group of ours: a shell that waits for
/// the end of its input, which comes with the end of this process too, however that ends.
struct Cleanup(Child);

/// $1 is halrun; `-U` ends everything of rtapi, within 20 s. A line says that nothing is left.
const CLEANUP: &str = r#"read -r over || exec timeout 20 "$1" -U"#;

impl Cleanup {
    fn set(program: &Path, context: &RunContext, folder: &Folder) -> Result<Self, String> {
        let mut shell = Command::new("sh");
        surroundings(&mut shell, context, folder).args(["-c", CLEANUP, "guard"]).arg(program);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // In a group of its own: what ends us from a terminal must not end it first.
        shell.process_group(0).spawn().map(Self).map_err(|why| format!("sh: {why}"))
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.0.stdin.take()
            && running().is_none()
        {
            // One that does not listen any more has ended.
            let _gone = writeln!(pipe, "over");
        }
        let _reaped = self.0.wait();
    }
}

/// The commands for halcmd.
fn hal(period_ns: u64, samples: usize) -> String {
    format!(
        "loadrt threads name1=peer period1={period_ns} fp1=1\n\
         loadrt timedelta\n\
         loadrt sampler depth=16000 cfg=S\n\
         net lateness timedelta.0.err => sampler.0.pin.0\n\
         addf timedelta.0 peer\n\
         addf sampler.0 peer\n\
         start\n\
         loadusr -w halsampler -t -n {samples}\n"
    )
}

/// What is seen of its thread from outside.
struct Seen {
    readings: Readings,
    since: Instant,
    note: Option<String>,
    set: bool,
}

impl Seen {
    fn look(&mut self) {
        let Some(pid) = running() else { return };
        let named = |tid: &u32| {
            let comm = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
            comm.is_ok_and(|comm| comm.trim_end() == THREAD)
        };
        let Some(tid) = threads(pid).into_iter().find(named) else { return };
        self.readings.read(pid, tid, self.since);
        if std::mem::replace(&mut self.set, true) {
            return;
        }
        let thread = tid.cast_signed();
        if scheduler::get(thread).is_ok_and(|policy| policy == RunContext::POLICY) {
            return;
        }
        self.note = Some(match scheduler::set(thread, RunContext::POLICY) {
            Ok(()) => "it found no real-time kernel and ran SCHED_OTHER; its thread was given the \
                       others' policy from outside"
                .to_owned(),
            Err(errno) => format!("its thread could not be given the others' policy: {errno}"),
        });
    }
}

/// The process of its threads, if one runs.
fn running() -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
        // One that has ended and is not buried yet has no command line any more.
        read("comm").is_ok_and(|comm| comm.trim_end() == PROCESS)
            && read("cmdline").is_ok_and(|line| !line.is_empty())
    })
}

/// The lateness of each wake after the first `warm`, above that of the earliest; lines of
/// `NUMBER VALUE` among others. `None` without any, or when a number is left out.
fn lateness(output: &str, warm: usize) -> Option<Histogram> {
    let mut values: Vec<i64> = Vec::new();
    let mut last = None;
    for line in output.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(number), Some(value), None) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let (Ok(number), Ok(value)) = (number.parse::<u64>(), value.parse::<i32>()) else {
            continue;
        };
        if last.is_some_and(|last| number != last + 1) {
            return None;
        }
        last = Some(number);
        values.push(value.into());
    }
    let values = values.get(warm..)?;
    let earliest = *values.iter().min()?;
    let mut lateness_ns = Histogram::new();
    values.iter().for_each(|value| lateness_ns.push(value - earliest));
    Some(lateness_ns)
}

/// Its version, as `linuxcnc_var` says it.
pub(crate) fn version() -> Option<String> {
    let program = super::find("linuxcnc_var")?;
    let out = Command::new(program).arg("LINUXCNCVERSION").output().ok()?;
    let version = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    (!version.is_empty() && version.len() < 60).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_above_the_earliest_of_those_that_count() {
        let output = "Note: Using POSIX non-realtime\n0 -90000 \n1 7524 \n2 -3990 \n3 10 \n\n";
        let histogram = lateness(output, 1).expect("samples");
        assert_eq!(
            (histogram.count(), histogram.min(), histogram.max()),
            (3, Some(0), Some(11_514))
        );
    }

    #[test]
    fn lost_samples_are_seen() {
        assert!(lateness("0 1\n2 1\n", 0).is_none());
        assert!(lateness("Note: Using POSIX non-realtime\n", 0).is_none());
        assert!(lateness("0 1\n", 2).is_none());
        assert!(lateness("0 99999999999\n", 0).is_none(), "no 32 bits");
    }

    #[test]
    fn the_commands_name_the_period_and_the_number() {
        let hal = hal(500_000, 77);
        assert!(hal.contains("period1=500000") && hal.ends_with("-n 77\n"), "{hal}");
    }
}
