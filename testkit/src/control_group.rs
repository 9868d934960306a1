//! A control group of a test's own: a limit on threads, a real-time budget, a freezer.
//!
//! Of version 1 or 2, whichever has what the test needs. Never touches a group that it did not
//! make.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// The time that a group may take to lose its last member, which leaves it a moment after its end.
const LEAVING: Duration = Duration::from_secs(10);

/// A control group. Once this is dropped it is gone, and in version 2 whatever was left in it.
#[derive(Debug)]
pub struct ControlGroup(PathBuf);

impl ControlGroup {
    /// A new one that has this file: `pids.max`, `cpu.rt_runtime_us`, `cgroup.freeze`. `name` is
    /// unique among the tests. `None` where none can be made.
    pub fn with(file: &str, name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let name = format!("punctual-test-{name}-{}", std::process::id());
        hierarchies(&mounts).find_map(|above| {
            let path = above.join(&name);
            fs::create_dir(&path).ok()?;
            let group = Self(path);
            // Dropped, and so removed, where the controller is not given to groups here.
            group.0.join(file).exists().then_some(group)
        })
    }

    /// Writes a value into one of its files.
    ///
    /// # Errors
    /// The kernel refused it.
    pub fn write(&self, file: &str, value: impl Display) -> io::Result<()> {
        fs::write(self.0.join(file), value.to_string())
    }

    /// The command by which a shell joins it.
    pub fn join(&self) -> String {
        format!("echo $$ >'{}/cgroup.procs'", self.0.display())
    }

    /// A command that runs `program` in it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{} && exec \"$0\" \"$@\"", self.join())).arg(program);
        command
    }

    /// The processes in it, a line each.
    pub fn members(&self) -> String {
        fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // After a failed assertion its processes may still be there, and frozen.
        for (file, text) in [("cgroup.kill", "1"), ("cgroup.freeze", "0")] {
            if self.0.join(file).exists() {
                let _refused = self.write(file, text);
            }
        }
        let begun = Instant::now();
        while fs::remove_dir(&self.0).is_err() && begun.elapsed() < LEAVING {
            // Polling the kernel: there is nothing to wait on.
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Where control groups can be made, by the lines of /proc/self/mounts.
fn hierarchies(mounts: &str) -> impl Iterator<Item = &Path> {
    mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        matches!(fields.next()?, "cgroup" | "cgroup2").then(|| Path::new(place))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip;

    #[test]
    fn hierarchies_of_both_versions_are_found() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\nodd\n";
        let found: Vec<&Path> = hierarchies(mounts).collect();
        assert_eq!(found, ["/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified"].map(Path::new));
    }

    #[test]
    fn a_group_goes_away_with_a_frozen_member() {
        let group = ControlGroup::with("cgroup.kill", "dropped");
        if !skip::need_device("control groups with cgroup.kill that can be made", group.is_some()) {
            return;
        }
        let Some(group) = group else { return };
        let mut sleeper = group.command("sleep").arg("60").spawn().expect("a shell");
        let begun = Instant::now();
        while group.members().is_empty() && begun.elapsed() < LEAVING {
            // Polling a process from outside: there is nothing to wait on.
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(group.members().trim(), sleeper.id().to_string());
        group.write("cgroup.freeze", 1).expect("a freezer");
        let path = group.0.clone();
        drop(group);
        assert!(!sleeper.wait().expect("ours").success(), "it was killed");
        assert!(!path.exists());
    }

    #[test]
    fn one_that_cannot_be_made_leaves_what_is_there() {
        let group = ControlGroup::with("cgroup.procs", "twice");
        if !skip::need_device("control groups that can be made", group.is_some()) {
            return;
        }
        let Some(group) = group else { return };
        // Another hierarchy may have room for the name; that of the first has none.
        let second = ControlGroup::with("cgroup.procs", "twice");
        assert!(second.is_none_or(|second| second.0 != group.0));
        assert!(group.0.exists());
        assert!(ControlGroup::with("no.such.file", "none").is_none());
    }
}
