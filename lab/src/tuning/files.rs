//! The files of settings: those of this machine, or of one that stands for it.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use punctual_host::plan::value_part;
use punctual_host::root::{open_regular, read_text};
use punctual_os::affinity::{self, CpuMask};

use super::{active, says};

/// The most that is read of a setting.
const TEXT_MAX: u64 = 64 * 1024;

/// The file of a group's controllers: it takes `+cpuset` and `-cpuset`, and shows all that are on.
const CONTROLLERS: &str = "/cgroup.subtree_control";

/// The words that take away what a text has and the one before it had not.
fn removed<'a>(now: &'a str, before: &'a str) -> impl Iterator<Item = String> + 'a {
    let was = |word: &str| before.split_whitespace().any(|earlier| earlier == word);
    now.split_whitespace().filter(move |word| !was(word)).map(|word| format!("-{word}"))
}

/// Files that hold settings, by the paths that they have on a machine.
pub trait KnobFiles {
    /// The text of a setting.
    ///
    /// # Errors
    /// As the kernel gives them.
    fn read(&self, path: &str) -> io::Result<String>;

    /// Writes a value, in one call.
    ///
    /// # Errors
    /// As the kernel gives them.
    fn write(&mut self, path: &str, value: &str) -> io::Result<()>;

    /// Makes a setting, whose text was `text` before `value` was written, what it was: of a choice
    /// by writing its word, of a file of switches by writing the one.
    ///
    /// # Errors
    /// As the kernel gives them.
    fn restore(&mut self, path: &str, text: &str, value: &str) -> io::Result<()> {
        self.write(path, active(value_part(path, text, value)))
    }

    /// Returns true where a text that was read from `path` has the value that was written: the same
    /// word, or the same CPUs in other digits.
    fn says(&self, path: &str, text: &str, value: &str) -> bool {
        says(path, text, value)
    }
}

impl<T: KnobFiles + ?Sized> KnobFiles for Box<T> {
    fn read(&self, path: &str) -> io::Result<String> {
        (**self).read(path)
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        (**self).write(path, value)
    }

    fn restore(&mut self, path: &str, text: &str, value: &str) -> io::Result<()> {
        (**self).restore(path, text, value)
    }

    fn says(&self, path: &str, text: &str, value: &str) -> bool {
        (**self).says(path, text, value)
    }
}

/// The settings of this machine.
#[derive(Debug)]
pub struct MachineFiles;

impl MachineFiles {
    /// Those that the kernel shows now.
    pub fn live() -> Self {
        Self
    }
}

/// Writes in one call, and never creates: a setting that is not there cannot be set.
fn put(path: &str, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

impl KnobFiles for MachineFiles {
    fn read(&self, path: &str) -> io::Result<String> {
        if is_group(path) {
            return read_group(Path::new(path));
        }
        read_text(open_regular(Path::new(path))?, TEXT_MAX)
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        if is_group(path) {
            return write_group(Path::new(path), value);
        }
        put(path, value)
    }

    fn restore(&mut self, path: &str, text: &str, value: &str) -> io::Result<()> {
        let text = value_part(path, text, value);
        if is_group(path) {
            return self.write(path, text);
        }
        if path.ends_with(CONTROLLERS) {
            return removed(&self.read(path)?, text).try_for_each(|word| put(path, &word));
        }
        match active(text) {
            // write(2) without bytes would change nothing.
            "" => put(path, "\n"),
            word => put(path, word),
        }
    }
}

/// The text of a group that is there.
const MADE: &str = "made";
/// The text of a group that is not there.
const NONE: &str = "none";
/// The file of a group's processes: each group has it.
const PROCESSES: &str = "cgroup.procs";
/// Rounds in which the threads of a group are moved, at most: some may start others meanwhile.
const ROUNDS: u32 = 100;
/// Between two rounds: a process that is ending keeps its group busy, and is no member any more.
const PAUSE: Duration = Duration::from_millis(10);

/// Returns true where a path is a group's.
pub(super) fn is_group(path: &str) -> bool {
    path.ends_with('/')
}

/// The text of a group: [`MADE`] or [`NONE`].
///
/// # Errors
/// Where the group above is not there either: something else may hide both.
fn read_group(place: &Path) -> io::Result<String> {
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
fn write_group(place: &Path, value: &str) -> io::Result<()> {
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

/// Numbers of the threads of a group that were moved, and that stayed.
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
    fn what_was_added_to_a_list_of_controllers_is_taken_away() {
        let taken_away: Vec<String> = removed("cpuset cpu io\n", "cpu\n").collect();
        assert_eq!(taken_away, ["-cpuset", "-io"]);
        let says = |text: &str| says("/sys/fs/cgroup/cgroup.subtree_control", text, "+cpuset");
        assert!(says("cpuset cpu\n") && !says("cpu\n"));
    }

    #[test]
    fn a_group_is_made_and_removed_once() {
        let name = format!("punctual-group-{}", std::process::id());
        let above = std::env::temp_dir().join(name);
        let place = above.join("group");
        fs::create_dir(&above).unwrap();
        assert_eq!(read_group(&place).unwrap_err().kind(), io::ErrorKind::NotFound, "hidden");
        fs::write(above.join(PROCESSES), "").unwrap();
        assert_eq!(read_group(&place).unwrap(), NONE);
        write_group(&place, MADE).unwrap();
        assert_eq!(read_group(&place).unwrap(), MADE);
        assert!(write_group(&place, MADE).is_err() && write_group(&place, "other").is_err());
        write_group(&place, NONE).unwrap();
        assert_eq!(read_group(&place).unwrap(), NONE);
        assert_eq!(write_group(&place, NONE).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(&above).unwrap();
    }
}
