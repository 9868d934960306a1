//! Threads and children of processes, by /proc, read through the root of this machine.

use std::collections::BTreeSet;

use punctual_host::Root;
use punctual_host::root::{Listing, Read};

/// The numbers among the names of a directory.
fn numbers(root: &Root, directory: &str) -> Vec<u32> {
    match root.list(directory) {
        Listing::Names(names) => names.iter().filter_map(|name| name.parse().ok()).collect(),
        Listing::Absent | Listing::Unreadable { .. } => Vec::new(),
    }
}

/// The threads of a process; none where it has ended.
pub(super) fn of_process(root: &Root, pid: u32) -> Vec<u32> {
    numbers(root, &format!("/proc/{pid}/task"))
}

/// All processes.
pub(super) fn processes(root: &Root) -> Vec<u32> {
    let mut all = numbers(root, "/proc");
    all.sort_unstable();
    all
}

/// A process with all that it started, and those started in turn: children after their parents.
pub(super) fn with_children(root: &Root, pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = processes(root)
        .into_iter()
        .filter_map(|child| Some((child, parent(root, child)?)))
        .collect();
    let (mut all, mut known) = (vec![pid], BTreeSet::from([pid]));
    let mut at = 0;
    while let Some(&of) = all.get(at) {
        let children = parents.iter().filter(|(_, parent)| *parent == of).map(|(child, _)| *child);
        all.extend(children.filter(|child| known.insert(*child)));
        at += 1;
    }
    all
}

fn parent(root: &Root, pid: u32) -> Option<u32> {
    status(root, &format!("/proc/{pid}/status"), "PPid")?.parse().ok()
}

/// A line of a status file (proc_pid_status(5)).
pub(super) fn status(root: &Root, path: &str, name: &str) -> Option<String> {
    let Read::Text(text) = root.read(path) else { return None };
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.map(|value| value.trim().to_owned())
}
