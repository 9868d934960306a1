//! Loads as real processes: this program starts itself as each load (`__load`), and as a process in
//! the middle that is killed (`__middle`), so it has a main function of its own.
//!
//! Writes in the format of the standard test harness; an argument selects tests by a part of their
//! name.

mod common;
mod ends;
mod programs;
mod works;

use std::process::ExitCode;

use punctual_lab::load::{RunningLoads, run_child};

use common::{PATIENCE, bounds, launcher, run_once, sleep, specs};

/// Starts loads and waits to be killed.
fn be_middle(list: &str) -> ExitCode {
    match RunningLoads::start(&specs(list), &launcher(), &bounds()) {
        Ok(_running) => {
            println!("started");
            sleep(3 * PATIENCE);
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{why}");
            ExitCode::from(2)
        }
    }
}

/// Runs loads until they are at work and writes what they did.
///
/// Catches SIGINT as the tool does, so that a program that it starts gets the default action. Where
/// tests run in the background of a script SIGINT is ignored, and a shell cannot trap a signal that
/// was ignored when it started.
fn be_reporter(list: &str) -> ExitCode {
    punctual_os::signal::catch_stop().expect("a handler");
    for report in run_once(list) {
        println!("{}", programs::write_report(&report));
    }
    ExitCode::SUCCESS
}

macro_rules! tests {
    ($($module:ident::$name:ident),* $(,)?) => {
        &[$((concat!(stringify!($module), "::", stringify!($name)), $module::$name as fn())),*]
    };
}

const TESTS: &[(&str, fn())] = tests![
    works::each_load_runs_and_counts,
    works::several_run_at_once_and_none_is_none,
    works::counts_can_be_read_while_it_runs_and_from_another_thread,
    ends::a_drop_ends_it,
    ends::the_limit_ends_it,
    ends::a_load_that_was_killed_is_seen,
    ends::a_load_that_dies_is_started_again_once,
    works::a_load_does_not_run_where_it_cannot,
    ends::a_child_of_nobody_refuses,
    ends::a_child_ends_with_its_standard_input,
    works::an_inherited_policy_is_left,
    ends::killing_the_parent_ends_every_load,
    ends::killing_the_parent_ends_the_family_of_a_program,
    ends::killing_the_guard_ends_the_family_of_a_program,
    programs::counts_of_a_program_are_read_at_its_end,
    programs::what_a_program_did_not_count_is_named,
    programs::a_program_that_does_not_run_is_seen,
    programs::stress_ng_itself_counts,
    programs::linuxcnc_runs_with_what_is_installed,
    works::nothing_is_left_in_the_directory,
];

fn run_tests(args: &[String]) -> ExitCode {
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let chosen: Vec<_> = TESTS
        .iter()
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|f| name.contains(*f)))
        .collect();
    if args.iter().any(|arg| arg == "--list") {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let mut failed = 0;
    for (name, test) in &chosen {
        // In a thread of that name, as the standard harness does: messages and skips carry it.
        let thread = std::thread::Builder::new().name((*name).to_owned()).spawn(test);
        let fine = thread.expect("a thread").join().is_ok();
        println!("test {name} ... {}", if fine { "ok" } else { "FAILED" });
        failed += usize::from(!fine);
    }
    let result = if failed == 0 { "ok" } else { "FAILED" };
    let (passed, out) = (chosen.len() - failed, TESTS.len() - chosen.len());
    println!(
        "\ntest result: {result}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
         {out} filtered out\n"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("__load") => run_child(&args[1..], &launcher(), &mut std::io::stdout().lock()).into(),
        Some("__middle") => be_middle(&args[1]),
        Some("__report") => be_reporter(&args[1]),
        _ => run_tests(&args),
    }
}
