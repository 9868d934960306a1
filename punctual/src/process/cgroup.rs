//! A cgroup for each task's process, where one can be had: everything that it started, in whatever
//! process group and session, ends with it.
//!
//! For supervisors. Only below the cgroup of this process, only where its owner lets processes make
//! cgroups there, and only without controllers, so that nothing else changes for anybody (kernel
//! document admin-guide/cgroup-v2.rst, Linux 6.12). Never touches a cgroup that it did not make.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_os::attribute;

/// What the names of the cgroups made here begin with; then the supervisor's process and a number.
const PREFIX: &str = "punctual-";
/// Where systemd says that it manages the machine (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// The cgroup below which those of tasks are made.
#[derive(Debug)]
pub(super) struct Home(PathBuf);

impl Home {
    /// This process's own; `None` where no cgroup may be made below it.
    pub(super) fn find() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let home = Self::at(own_folder(&own, &mounts)?, Path::new(SYSTEMD).is_dir())?;
        home.tidy();
        Some(home)
    }

    /// The cgroup in this folder, on a machine whose cgroups systemd manages, or nobody.
    fn at(folder: PathBuf, managed: bool) -> Option<Self> {
        // With controllers a cgroup below would divide what this one has.
        let plain =
            fs::read_to_string(folder.join("cgroup.subtree_control")).ok()?.trim().is_empty();
        // The root of all has no type; a threaded one takes no processes.
        let kind = fs::read_to_string(folder.join("cgroup.type"));
        let takes = kind.map_or(true, |kind| kind.trim() == "domain");
        (plain && takes && (!managed || is_delegated(&folder))).then_some(Self(folder))
    }

    /// Removes what supervisors that were killed left here. The kernel refuses that for one with
    /// processes.
    fn tidy(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(owner);
            if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                // One that still has processes stays.
                let _kept = fs::remove_dir(entry.path());
            }
        }
    }

    /// A new cgroup; `None` where the kernel refuses it or cannot end all that is in one (before
    /// Linux 5.14).
    pub(super) fn make(&self) -> Option<Cgroup> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = self.0.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o755).create(&folder).ok()?;
        let open = |name: &str| File::options().write(true).open(folder.join(name)).ok();
        match (open("cgroup.procs"), open("cgroup.kill")) {
            (Some(procs), Some(kill)) => Some(Cgroup { folder, procs, kill }),
            _ => {
                let _kept = fs::remove_dir(&folder);
                None
            }
        }
    }
}

/// Whose cgroup has this name, where it is one of a supervisor's.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

/// The cgroup of one process and all that it started; the kernel forgets it once it is dropped.
#[derive(Debug)]
pub(super) struct Cgroup {
    folder: PathBuf,
    procs: File,
    kill: File,
}

impl Cgroup {
    /// Where a process writes that it belongs here.
    pub(super) fn procs(&self) -> i32 {
        self.procs.as_raw_fd()
    }

    /// Ends everything in it by SIGKILL.
    pub(super) fn kill(&self) {
        // Where it is refused the process group is ended all the same.
        let _refused = (&self.kill).write_all(b"1");
    }

    /// Whether a process is left in it.
    pub(super) fn is_populated(&self) -> bool {
        fs::read_to_string(self.folder.join("cgroup.events"))
            .is_ok_and(|events| events.lines().any(|line| line == "populated 1"))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Refused while a process is left; the next supervisor here tries again.
        let _kept = fs::remove_dir(&self.folder);
    }
}

/// The folder of the cgroup that /proc/self/cgroup names, by the mounts of /proc/self/mountinfo.
fn own_folder(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // Beyond the root of this process's cgroup namespace.
    if path.split('/').any(|part| part == "..") {
        return None;
    }
    // proc_pid_mountinfo(5): root and mount point are the 4th and 5th field, the type follows "-".
    let mount = mounts.lines().find_map(|line| {
        let (mount, rest) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        // A space in a path is written as \040; no cgroup lies there.
        let usable = root == "/" && !point.contains('\\') && rest.starts_with("cgroup2 ");
        usable.then_some(point)
    })?;
    Some(Path::new(mount).join(path))
}

/// Whether systemd leaves what is below a cgroup to its processes (`Delegate=`, systemd 251).
fn is_delegated(folder: &Path) -> bool {
    let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else { return false };
    let mut value = [0; 4];
    let bytes = attribute::get(&path, c"user.delegate", &mut value);
    bytes.is_ok_and(|bytes| value.get(..bytes) == Some(b"1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_testkit::skip;

    const MOUNTS: &str = "\
        31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        32 23 0:28 /part /mnt/part rw - cgroup2 cgroup rw\n\
        33 23 0:28 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup rw\n";

    #[test]
    fn the_own_cgroup_is_found_below_its_mount() {
        let folder = |own| own_folder(own, MOUNTS);
        let at = |path: &str| Some(PathBuf::from(format!("/sys/fs/cgroup/unified/{path}")));
        assert_eq!(folder("4:memory:/a\n0::/user.slice/b\n"), at("user.slice/b"));
        assert_eq!(folder("0::/\n"), at(""));
        assert_eq!(folder("0::/../other\n"), None);
        assert_eq!(folder("4:memory:/a\n"), None);
        assert_eq!(own_folder("0::/a\n", "31 23 0:27 / /x rw - tmpfs tmpfs rw\n"), None);
        assert_eq!(own_folder("0::/a\n", "nothing"), None);
    }

    #[test]
    fn a_cgroup_that_divides_or_is_somebody_elses_is_no_home() {
        let folder = std::env::temp_dir().join(format!("punctual-cgroup-{}", std::process::id()));
        fs::create_dir(&folder).expect("new");
        let set = |name: &str, value: &str| fs::write(folder.join(name), value).expect("ours");
        let is_home = |managed| Home::at(folder.clone(), managed).is_some();
        assert!(!is_home(false), "no cgroup at all");
        set("cgroup.subtree_control", "\n");
        assert!(is_home(false) && !is_home(true), "systemd has not left it to us");
        set("cgroup.type", "threaded\n");
        assert!(!is_home(false));
        set("cgroup.type", "domain\n");
        assert!(is_home(false));
        set("cgroup.subtree_control", "cpu memory\n");
        assert!(!is_home(false));
        fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    fn only_the_cgroups_of_supervisors_have_an_owner() {
        assert_eq!(owner("punctual-12-3"), Some(12));
        for name in ["punctual-12", "punctual-x-3", "user.slice", "punctual--", "punctual"] {
            assert_eq!(owner(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_that_left_its_group_ends_with_the_cgroup() {
        if !skip::need_device("a cgroup that processes may divide", Home::find().is_some()) {
            return;
        }
        let home = Home::find().expect("there");
        let cgroup = home.make().expect("it may be made");
        assert!(!cgroup.is_populated());
        let mut child = std::process::Command::new("setsid").args(["sleep", "60"]).spawn();
        let child = child.as_mut().expect("util-linux");
        fs::write(cgroup.folder.join("cgroup.procs"), child.id().to_string()).expect("ours");
        assert!(cgroup.is_populated());
        cgroup.kill();
        child.wait().expect("ours");
        let folder = cgroup.folder.clone();
        drop(cgroup);
        assert!(!folder.exists());
        // What a killed supervisor left is removed; what a living one has is not.
        let stale = home.0.join(format!("{PREFIX}{}-0", i32::MAX));
        let living = home.0.join(format!("{PREFIX}{}-x", std::process::id()));
        [&stale, &living].into_iter().for_each(|folder| fs::create_dir(folder).expect("new"));
        home.tidy();
        assert!(!stale.exists() && living.exists());
        fs::remove_dir(&living).expect("empty");
    }
}
