//! Checks that a task's program exists, before anything is started.

use punctual::process::{self, Spec};

use crate::format as show;

/// Refuses a task whose program cannot be found.
pub(super) fn check(spec: &Spec) -> Result<(), String> {
    let Some(program) = spec.command.first() else { return Ok(()) };
    if process::program(program).is_some() {
        return Ok(());
    }
    let program = show::plain(&program.to_string_lossy());
    // A path is looked for where the command was given, which may not be where the file is.
    let at = if program.contains('/') && !program.starts_with('/') {
        " from this directory"
    } else {
        ""
    };
    Err(format!("task {:?}: cannot find program {program}{at}", spec.task.name()))
}
