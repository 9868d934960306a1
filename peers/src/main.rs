//! Holds punctual's ways to wait against other crates and programs, in blocks on one CPU and one
//! grid. `cargo xtask peers` builds and runs it; docs/peers.md says what is compared with what.
//!
//! Prints, and exits: 0 when it ran, 2 when it could not. No figure is right or wrong.
#![forbid(unsafe_code)]

mod block;
mod contender;
mod contest;
mod crates;
mod options;
mod programs;
mod result;
mod runner;
mod text;

use std::process::ExitCode;

use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period};
use punctual_engine::clocks::MachineClock;
use punctual_engine::rt_thread::RtThread;
use punctual_engine::session::ProcessSession;
use punctual_lab::load::{Reexec, run_child};
use punctual_lab::quiet;
use punctual_os::affinity;
use punctual_os::clock::{ClockId, now_ns};

use contest::{Contest, LOAD, against_first, at_equal_cpu};
use options::{Options, USAGE};
use programs::{cyclictest, linuxcnc};
use result::{Report, Table, Version};
use runner::RunContext;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some(LOAD) => {
            let launcher = Reexec::new(&[LOAD]);
            return run_child(&words[1..], &launcher, &mut std::io::stdout().lock()).into();
        }
        Some("--help" | "-h") => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let done = Options::parse(&words).and_then(|options| {
        let report = run(&options)?;
        write(&options, &report)
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("peers: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs all tables.
fn run(options: &Options) -> Result<Report, String> {
    let allowed = affinity::get(0).map_err(|errno| format!("own affinity: {errno}"))?;
    let cpu = options.cpu.or_else(|| allowed.iter().last()).ok_or("no CPU is allowed")?;
    if !allowed.contains(cpu) {
        return Err(format!("--cpu: CPU {cpu} is not one of those allowed here"));
    }
    let load_average = load_average(&first_line("/proc/loadavg"));
    let helper = allowed.iter().find(|&other| other != cpu);
    let _process = ProcessSession::enter();
    let clock = MachineClock::best();
    let clock_name = clock.name();
    let mut tables: Vec<Table> = Vec::new();
    let loads: Vec<_> = [None].into_iter().chain(options.load.as_ref().map(Some)).collect();
    for &period in &options.periods {
        for &quiet in &options.quiet {
            let (grid, warning) = grid(cpu, period, quiet)?;
            let context = RunContext { cpu, helper, grid, clock: clock.clone() };
            for &load in &loads {
                let contest = Contest {
                    context: &context,
                    entries: against_first(options.contenders()),
                    rounds: options.rounds(options.contenders().len()),
                    block: options.block,
                    quiet,
                    load,
                    equal_cpu: false,
                };
                let first = tables.len();
                play(options, &contest, &mut tables)?;
                if options.equal {
                    let rows = contest.entries.iter().map(|entry| entry.0);
                    let rows: Vec<_> = rows.zip(tables[first].rows.iter().cloned()).collect();
                    let entries = at_equal_cpu(&rows);
                    let rounds = options.rounds(entries.len());
                    play(
                        options,
                        &Contest { entries, rounds, equal_cpu: true, ..contest },
                        &mut tables,
                    )?;
                }
                tables[first..].iter_mut().for_each(|table| table.warnings.extend(warning.clone()));
            }
        }
    }
    Ok(Report {
        tool: "punctual peers",
        kernel: first_line("/proc/sys/kernel/osrelease"),
        cpu_model: cpu_model(),
        versions: versions(),
        clock: clock_name,
        load_average,
        cpu,
        block_ns: options.block.as_ns(),
        tables,
    })
}

fn play(options: &Options, contest: &Contest<'_>, tables: &mut Vec<Table>) -> Result<(), String> {
    let (number, count) = (tables.len() + 1, options.tables());
    let tell = &mut |step: &str| eprintln!("peers: table {number} of {count}, {step}");
    tables.push(contest.run(tell)?);
    Ok(())
}

/// How often the tick is listened for: where others are at work it may drown.
const LISTEN_TRIES: usize = 5;

/// The grid of all, and what to say of its phase.
fn grid(cpu: u32, period: Period, quiet: bool) -> Result<(Releases, Option<String>), String> {
    let now = Instant::from_ns(now_ns(ClockId::Monotonic));
    if !quiet {
        return Ok((Releases::aligned(now, period, 0), None));
    }
    let thread = RtThread::cpu(cpu).with_policy(RunContext::POLICY);
    let mut found = None;
    for _ in 0..LISTEN_TRIES {
        found = quiet::find(&thread, period).map_err(|why| why.to_string())?;
        if found.is_some() {
            break;
        }
    }
    let warning = match found {
        Some(_) => None,
        None => Some("no tick was heard that these releases could be kept away from".to_owned()),
    };
    let phase_ns = found.map_or(0, |quiet| quiet.phase_ns);
    Ok((Releases::aligned(now, period, phase_ns), warning))
}

fn write(options: &Options, report: &Report) -> Result<(), String> {
    let Some(file) = &options.json else {
        print!("{report}");
        return Ok(());
    };
    let json = serde_json::to_string_pretty(report).map_err(|why| why.to_string())? + "\n";
    if file == "-" {
        print!("{json}");
        return Ok(());
    }
    print!("{report}");
    std::fs::write(file, json).map_err(|why| format!("{file}: {why}"))
}

/// What was compared: the crates as they are locked, the programs as they say.
fn versions() -> Vec<Version> {
    let lock = include_str!("../Cargo.lock");
    let crates = ["spin_sleep", "tokio"].map(|name| (name, locked(lock, name)));
    let programs = [("cyclictest", cyclictest::version()), ("linuxcnc", linuxcnc::version())];
    let known = crates.into_iter().chain(programs);
    known
        .filter_map(|(name, version)| Some(Version { name: name.to_owned(), version: version? }))
        .collect()
}

/// The version of a package in a lock file.
fn locked(lock: &str, name: &str) -> Option<String> {
    let (_, after) = lock.split_once(&format!("\nname = \"{name}\"\nversion = \""))?;
    Some(after.split_once('"')?.0.to_owned())
}

/// The first number of `/proc/loadavg` (proc_loadavg(5)).
fn load_average(line: &str) -> Option<f64> {
    line.split(' ').next()?.parse().ok()
}

fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| "unknown processor".to_owned(), |(_, model)| model.to_owned())
}

fn first_line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_average_is_that_of_the_last_minute() {
        assert_eq!(load_average("8.18 9.82 10.50 11/900 4242"), Some(8.18));
        assert_eq!(load_average("unknown"), None);
    }

    #[test]
    fn versions_are_those_that_are_locked() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.2\"\n\n\
                    [[package]]\nname = \"b\"\nversion = \"3\"\n";
        assert_eq!(locked(lock, "b").as_deref(), Some("3"));
        assert_eq!(locked(lock, "c"), None);
        let spin_sleep = versions().into_iter().find(|peer| peer.name == "spin_sleep");
        assert!(spin_sleep.is_some_and(|peer| peer.version.starts_with("1.3")));
    }
}
