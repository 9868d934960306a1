//! Bodies for what a supervisor reads: the file of its tasks, and what comes through its socket.

use punctual::process::{Request, answer, answered, is_name};
use punctual_lab::tasks::{TASKS_MAX, TaskFile};

use super::one_line;

/// A file that was read names at least one task and not too many, each once.
pub(super) fn tasks_file(data: &[u8]) {
    match TaskFile::parse(data) {
        Ok(tasks) => {
            assert!((1..=TASKS_MAX).contains(&tasks.all.len()));
            let mut names: Vec<&str> = tasks.all.iter().map(|task| task.spec.task.name()).collect();
            assert!(names.iter().all(|name| is_name(name)), "{names:?}");
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), tasks.all.len(), "a name stands twice");
            assert!(tasks.shortest().is_some());
            assert!(tasks.all.iter().all(|task| task.line > 0));
            assert!(tasks.all.iter().all(|task| task.spec.safe.len() % 8 == 0));
        }
        Err(error) => one_line(&error),
    }
}

/// A request that was read is written and read again as itself; an answer never takes two lines.
pub(super) fn join_request(data: &[u8]) {
    match Request::parse(data) {
        Ok(request) => {
            assert_eq!(Request::parse(request.line().as_bytes()).as_ref(), Ok(&request));
        }
        Err(why) => one_line(&why),
    }
    let text = String::from_utf8_lossy(data);
    let line = answer(Some(&text));
    assert_eq!(line.matches('\n').count(), 1, "{line:?}");
    assert!(answered(line.as_bytes()).is_err(), "{line:?} grants what was refused");
    if let Err(why) = answered(data) {
        assert!(!why.contains(|c: char| c.is_control()), "{why:?}");
    }
}
