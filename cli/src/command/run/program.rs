//! Checks that a task's program exists, before anything is started.

use punctual::process::{self, Spec};
use punctual_lab::tasks::TaskFile;

use crate::format as show;

/// Refuses a task whose program cannot be found, with its line.
pub(super) fn check(tasks: &TaskFile) -> Result<(), String> {
    tasks.all.iter().try_for_each(|named| {
        of_task(&named.spec).map_err(|why| format!("line {}: {why}", named.program_line))
    })
}

fn of_task(spec: &Spec) -> Result<(), String> {
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
