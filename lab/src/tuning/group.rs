//! Control groups as settings: a path that ends with a slash is a group, which is there or not.
//!
//! Makes and removes groups, and moves threads between them; never touches a thread that somebody
//! has given CPUs of its own.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use punctual_os::affinity::{self, CpuMask};

/// What a group that is there says.
const MADE: &str = "made";
/// What one that is not there says.
const NONE: &str = "none";
/// The file of a group's processes: each group has it.
const PROCESSES: &str = "cgroup.procs";
/// How often the threads of a group are moved: some may start others meanwhile.
const ROUNDS: u32 = 100;
/// Between two rounds: a process that is ending keeps its group busy, and is no member any more.
const PAUSE: Duration = Duration::from_millis(10);

/// Whether a path is a group's.
pub(super) fn is_group(path: &str) -> bool {
    path.ends_with('/')
}

/// Whether a group is there, as a text.
///
/// # Errors
/// Where the group above is not there either: something else may hide both.
pub(super) fn read(place: &Path) -> io::Result<String> {
    if place.is_dir() {
        return Ok(MADE.to_owned());
    }
    let above = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
    match above.join(PROCESSES).exists() {
        true => Ok(NONE.to_owned()),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Makes a group, or removes it: its threads go to the group above.
pub(super) fn write(place: &Path, value: &str) -> io::Result<()> {
    match value {
        MADE => fs::DirBuilder::new().mode(0o755).create(place),
        NONE => remove(place),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn remove(place: &Path) -> io::Result<()> {
    let above = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
    for _ in 0..ROUNDS {
        match fs::remove_dir(place) {
            Err(why) if why.kind() == io::ErrorKind::ResourceBusy => {}
            ended => return ended,
        }
        let to = members(above);
        for id in ids(&members(place)) {
            // One that ended meanwhile need not go; one that does not go keeps the group busy.
            let _gone = fs::write(&to, id.to_string());
        }
        // Nothing is measured, and there is nothing to wait on.
        thread::sleep(PAUSE);
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// The file of a group's members: of version 1 its threads, of version 2 its processes.
fn members(group: &Path) -> PathBuf {
    let threads = group.join("tasks");
    if threads.exists() { threads } else { group.join(PROCESSES) }
}

fn ids(members: &Path) -> Vec<i32> {
    let text = fs::read_to_string(members).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// What became of the threads of a group.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct MovedThreads {
    /// Threads that went.
    pub moved: usize,
    /// Threads that stayed: the kernel's own, bound to their CPUs.
    pub bound: usize,
    /// Threads that stayed because they have CPUs of their own: moved, they would lose them.
    pub pinned: usize,
}

/// Moves the threads of the group `from` to the group `to`, of version 1: those that may run on
/// all of `cpus`.
pub fn move_threads(from: &Path, to: &Path, cpus: &CpuMask) -> MovedThreads {
    let mut done = MovedThreads::default();
    let to = members(to);
    // Twice: what a thread starts while it waits for its turn is in its group.
    for _ in 0..2 {
        (done.bound, done.pinned) = (0, 0);
        for id in ids(&members(from)) {
            let Ok(allowed) = affinity::get(id) else { continue };
            if cpus.iter().any(|cpu| !allowed.contains(cpu)) {
                done.pinned += 1;
            } else if fs::write(&to, id.to_string()).is_ok() {
                done.moved += 1;
            } else {
                done.bound += 1;
            }
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_made_and_removed_once() {
        let name = format!("punctual-group-{}", std::process::id());
        let above = std::env::temp_dir().join(name);
        let place = above.join("group");
        fs::create_dir(&above).unwrap();
        assert_eq!(read(&place).unwrap_err().kind(), io::ErrorKind::NotFound, "hidden");
        fs::write(above.join(PROCESSES), "").unwrap();
        assert_eq!(read(&place).unwrap(), NONE);
        write(&place, MADE).unwrap();
        assert_eq!(read(&place).unwrap(), MADE);
        assert!(write(&place, MADE).is_err() && write(&place, "other").is_err());
        write(&place, NONE).unwrap();
        assert_eq!(read(&place).unwrap(), NONE);
        assert_eq!(write(&place, NONE).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(&above).unwrap();
    }
}
