//! A limit on the threads and processes of a program, as a control group sets it.
//!
//! For tests of what a program leaves where it can start no more of them. Of version 1 or 2 of
//! control groups, whichever has the controller. Never touches a group that it did not make.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where groups with this controller can be made.
const ABOVE: [&str; 2] = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
/// Joins the group that is its first argument, and becomes the rest.
const JOIN: &str = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";

/// A control group with `pids.max`; removed when this is dropped.
#[derive(Debug)]
pub struct PidsGroup(PathBuf);

impl PidsGroup {
    /// A new one; `name` is unique among the tests. `None` where none can be made.
    pub fn new(name: &str) -> Option<Self> {
        let name = format!("punctual-test-{name}-{}", std::process::id());
        ABOVE.iter().find_map(|above| {
            let group = Self(Path::new(above).join(&name));
            fs::create_dir(&group.0).ok()?;
            // Dropped, and so removed, where the controller is not given to groups here.
            group.0.join("pids.max").exists().then_some(group)
        })
    }

    /// The most threads that are in it at once.
    ///
    /// # Panics
    /// The kernel refused it.
    pub fn limit(&self, most: u32) {
        fs::write(self.0.join("pids.max"), most.to_string()).expect("a limit");
    }

    /// A command that runs `program` in it.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(JOIN).arg(&self.0).arg(program);
        command
    }

    /// The processes in it.
    pub fn members(&self) -> String {
        fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default()
    }
}

impl Drop for PidsGroup {
    fn drop(&mut self) {
        // One that has members stays, and the test has said so.
        let _left = fs::remove_dir(&self.0);
    }
}
