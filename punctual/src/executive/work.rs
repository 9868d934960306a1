//! Who does the work of a task, as the builder was given it.
//!
//! Plain data; runs nothing.

use super::body::Body;
use super::process::Process;
use super::trigger::Trigger;
use crate::task::Task;

/// A task and who does its work.
pub(super) struct Given<'env> {
    pub(super) task: Task,
    pub(super) work: Work<'env>,
}

/// Who does the work of a task.
pub(super) enum Work<'env> {
    Body(Body<'env>),
    Triggered(Trigger<'env>, Body<'env>),
    Process(Box<Process>),
}
