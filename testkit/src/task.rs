//! A test program that an executive or a supervisor starts as a task.
//!
//! For tests of tasks that are processes: the program of the tests is its own task.

use std::panic::{UnwindSafe, catch_unwind};

use punctual_engine::process::TASK_VARIABLE;
use punctual_os::process;

/// A task ends at the latest by its alarm, so that a test that fails leaves nothing that runs on.
const AT_MOST_S: u32 = 300;

/// Behaves as the task's name says and ends, where this process was started as a task; does nothing
/// in any other. It ends without a word of the harness, or its result would be counted with those
/// of the tests.
pub fn behave_if_started(behave: impl FnOnce(&str) + UnwindSafe) {
    let Ok(name) = std::env::var(TASK_VARIABLE) else { return };
    process::alarm_s(AT_MOST_S);
    let behaved = catch_unwind(|| behave(&name));
    std::process::exit(if behaved.is_ok() { 0 } else { 101 });
}
