//! The tasks that are processes: this program, started by an executive, which behaves as the task's
//! name says.

use std::time::Duration;

use punctual::Registration;
use punctual_testkit::task;

use crate::machine::PERIOD_NS;

/// The call of the body in which it does what its name says.
const DISTURBED: u64 = 4;

/// The command that starts this program as a task.
pub(crate) fn words() -> Vec<std::ffi::OsString> {
    let own = std::env::current_exe().expect("this program").into_os_string();
    let words = ["--exact", "child::a_task", "--nocapture", "--test-threads=1"];
    std::iter::once(own).chain(words.map(Into::into)).collect()
}

/// Behaves as its name says, where an executive started it.
#[test]
fn a_task() {
    task::behave_if_started(behave);
}

fn behave(name: &str) {
    let mut task = Registration::from_env(Some(name)).expect("an executive started it");
    let mut calls = 0;
    while task.wait().is_ok() {
        calls += 1;
        if calls == DISTURBED {
            match name {
                "process-overruns" => std::thread::sleep(Duration::from_nanos(PERIOD_NS * 7 / 2)),
                "process-aborts" => std::process::abort(),
                _ => {}
            }
        }
    }
}
