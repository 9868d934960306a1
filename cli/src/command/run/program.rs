//! Whether a task's program is there, before anything is started.

use punctual::process::{self, Spec};

use crate::format as show;

/// Refuses a task whose program nobody could start.
pub(super) fn check(spec: &Spec) -> Result<(), String> {
    let Some(program) = spec.command.first() else { return Ok(()) };
    if process::program(program).is_some() {
        return Ok(());
    }
    let program = show::plain(&program.to_string_lossy());
    // A path is looked for where the command was given, which may not be where the file is.
    let at = if program.contains('/') && !program.starts_with('/') {
        " below this directory"
    } else {
        ""
    };
    Err(format!("task {:?}: there is no program {program}{at}", spec.task.name()))
}
