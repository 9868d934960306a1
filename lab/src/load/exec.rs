//! The step between a load and another program: a process that ties itself to its parent and then
//! becomes that program, which stays tied.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::lifecycle;
use super::setup::Setup;

/// The name of this step among the loads.
pub(super) const NAME: &str = "exec";

/// Becomes `setup.words`; returns only when that fails, with the reason.
pub(super) fn become_program(setup: &Setup) -> String {
    if let Err(why) = lifecycle::end_with_parent(setup) {
        return why;
    }
    let Some((program, args)) = setup.words.split_first() else {
        return "no program is named".to_owned();
    };
    // The kernel forgets the tie for a program with set-user-ID or capabilities; none of ours is.
    format!("{program}: {}", Command::new(program).args(args).exec())
}
