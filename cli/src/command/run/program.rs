//! Whether a task's program is there, before anything is started.
//!
//! As execvp(3) looks for it: a name with a slash is a path, any other one is looked for in PATH.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use punctual::process::Spec;

use crate::format as show;

/// Refuses a task whose program nobody could start.
pub(super) fn check(spec: &Spec) -> Result<(), String> {
    let Some(program) = spec.command.first() else { return Ok(()) };
    let found = if program.as_encoded_bytes().contains(&b'/') {
        is_program(Path::new(program))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
        places.iter().any(|place| is_program(&place.join(program)))
    };
    if found {
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

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
