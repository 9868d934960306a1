//! The process of a task that a supervisor started, with all that it started itself: one end for
//! all of them.
//!
//! Programs are started here and nowhere else. The process leads a process group of its own, is in
//! a cgroup of its own where one can be had, and is killed by the kernel when the thread that
//! started it ends. Decides nothing: that is [`super::super::lifecycle`].

use std::ffi::{CString, OsStr, OsString, c_int};
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::time::{Instant, Span};
use punctual_os::child::{self, Program, Status, Text};
use punctual_os::descriptor::{self, Descriptor};
use punctual_os::process::{self, EndSignal};
use punctual_os::{Errno, file, pidfd};

use super::super::lifecycle::ProcessEnd;
use super::super::spec::Spec;
use super::super::{BLOCK_VARIABLE, SUPERVISOR_VARIABLE, TASK_VARIABLE};
use super::TaskBlock;

/// The time for which the end of a process waits for those that it started: they were killed, and
/// may still write to memory that they inherited. A process that nobody has waited for is left
/// behind after it.
const LINGER: Span = Span::from_ms(100);

/// ENOENT: there is no such program.
const NOT_FOUND: Errno = Errno(2);

/// The path of execvp(3) where the environment has no PATH (confstr(3), _CS_PATH).
const PATH: &str = "/bin:/usr/bin";

/// The beginning of the names of the cgroups made here; then the supervisor's process and a number.
const PREFIX: &str = "punctual-";

/// The folder that is there where systemd manages the machine (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";

/// A process that was started.
#[derive(Debug)]
pub(super) struct Child {
    pid: i32,
    /// Tells that it ends; gone once it has.
    pidfd: Option<Descriptor>,
    cgroup: Option<Cgroup>,
    /// The end of the process, and the instant until which what it started is waited for.
    ended: Option<(ProcessEnd, Instant)>,
}

impl Child {
    /// Starts the program of a block that is clear. What it prints goes to standard error, so that
    /// a report stays alone.
    pub(super) fn start(block: &TaskBlock, home: Option<&Home>) -> Result<Self, Errno> {
        let [name, ..] = &block.spec.command[..] else { return Err(NOT_FOUND) };
        // A path is the kernel's to refuse, with its own reason.
        let path = if name.as_encoded_bytes().contains(&b'/') {
            name.clone()
        } else {
            program(name).ok_or(NOT_FOUND)?.into_os_string()
        };
        // As the supervisor finds it, whatever directory the process will be in.
        let path = std::path::absolute(path).map_or_else(|_| name.clone(), Into::into);
        let path = CString::new(path.into_vec()).map_err(|_| Errno::INVAL)?;
        let words = texts(block.spec.command.iter().cloned())?;
        let memory = block.memory.descriptor().number();
        let variables = texts(environment(&block.spec, memory))?;
        let (words, variables) = (list(&words), list(&variables));
        let null = File::open("/dev/null").map_err(|why| Errno(why.raw_os_error().unwrap_or(0)))?;
        // Not under one of the numbers that it and the others are to have.
        let input = descriptor::duplicate(null.as_raw_fd())?;
        let cgroup = home.and_then(Home::make);
        let pid = child::start(&Program {
            path: &path,
            arguments: &words,
            environment: &variables,
            input: input.number(),
            output: std::io::stderr().as_raw_fd(),
            inherited: &[memory],
            realtime_us: block.realtime_us,
            cgroup: cgroup.as_ref().map(Cgroup::procs),
            confinement: block.resolved.confinement(),
        })?;
        // Without it the end is seen at the next look.
        let pidfd = pidfd::open(pid).ok();
        Ok(Self { pid, pidfd, cgroup, ended: None })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// A descriptor that becomes readable when the process ends; `None` once that is known.
    pub(super) fn descriptor(&self) -> Option<c_int> {
        self.pidfd.as_ref().map(Descriptor::number)
    }

    /// Ends the process, and all that it started.
    pub(super) fn kill(&self) {
        // Until it is reaped its number is its own.
        if self.ended.is_none() {
            let _ended = process::end(self.pid, EndSignal::Kill);
            self.kill_others();
        }
    }

    fn kill_others(&self) {
        // None is left, or one of another user.
        let _gone = process::end_group(self.pid, EndSignal::Kill);
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
    }

    /// The end of the process, once all that it started has ended too.
    pub(super) fn has_ended(&mut self, now: Instant) -> Option<ProcessEnd> {
        if self.ended.is_none() {
            let exit = match child::status(self.pid) {
                Ok(None) => return None,
                Ok(Some(Status::Exited(status))) => ProcessEnd::Status(status),
                Ok(Some(Status::Killed(signal))) => ProcessEnd::Signal(signal),
                Err(_) => ProcessEnd::Unknown,
            };
            // Before it is reaped: then its number may be another group's.
            self.kill_others();
            let _reaped = child::reap(self.pid);
            self.pidfd = None;
            self.ended = Some((exit, now + LINGER));
        }
        let (exit, until) = self.ended?;
        (now >= until || !self.has_others()).then_some(exit)
    }

    /// Returns true where anything is left of the processes that it started.
    fn has_others(&self) -> bool {
        process::group_exists(self.pid) == Ok(true)
            || self.cgroup.as_ref().is_some_and(Cgroup::is_populated)
    }
}

impl Drop for Child {
    /// Ends the process: where its supervisor fails, nobody watches it.
    fn drop(&mut self) {
        self.kill();
    }
}

/// The environment of a task: its own or this process's, and what says who it is.
fn environment(spec: &Spec, memory: c_int) -> impl Iterator<Item = OsString> {
    let own = [
        (BLOCK_VARIABLE, memory.to_string()),
        (TASK_VARIABLE, spec.task.name().to_owned()),
        (SUPERVISOR_VARIABLE, std::process::id().to_string()),
    ];
    let names = own.clone().map(|(name, _)| name);
    let given = spec.surroundings.env.clone();
    let given = given.unwrap_or_else(|| std::env::vars_os().collect());
    let given = given.into_iter().filter(move |(name, _)| names.iter().all(|own| name != own));
    given.chain(own.map(|(name, value)| (name.into(), value.into()))).map(|(mut text, value)| {
        text.push("=");
        text.push(value);
        text
    })
}

/// Strings as the kernel takes them; refuses one with a zero byte in it.
fn texts(strings: impl Iterator<Item = OsString>) -> Result<Vec<CString>, Errno> {
    strings.map(|text| CString::new(text.into_vec()).map_err(|_| Errno::INVAL)).collect()
}

/// An array of strings as the kernel takes it, with its end.
fn list(texts: &[CString]) -> Vec<Text<'_>> {
    texts.iter().map(|text| Text::of(text)).chain([Text::END]).collect()
}

/// The file of the program of this name, where there is one that can be run; as execvp(3) looks for
/// it: a name with a slash is a path, any other one is looked for in PATH. Starts nothing.
///
/// # Real-time: setup only
pub fn program(name: &OsStr) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| can_run(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| PATH.into());
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| can_run(path))
}

fn can_run(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The cgroup below which those of tasks are made, where one can be had: everything that a task's
/// process started, in whatever process group and session, then ends with it.
///
/// Only below the cgroup of this process, only where its owner lets processes make cgroups there,
/// and only without controllers, so that nothing else changes for anybody (kernel document
/// admin-guide/cgroup-v2.rst, Linux 6.12). Never touches a cgroup that it did not make.
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
    fn make(&self) -> Option<Cgroup> {
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

/// The process whose cgroup has this name; `None` where it is no supervisor's.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

/// The cgroup of one process and all that it started; the kernel forgets it once it is dropped.
#[derive(Debug)]
struct Cgroup {
    folder: PathBuf,
    procs: File,
    kill: File,
}

impl Cgroup {
    /// The descriptor by which a process moves itself into it.
    fn procs(&self) -> i32 {
        self.procs.as_raw_fd()
    }

    /// Ends everything in it by SIGKILL.
    fn kill(&self) {
        // Where it is refused the process group is ended all the same.
        let _refused = (&self.kill).write_all(b"1");
    }

    /// Returns true where a process is left in it.
    fn is_populated(&self) -> bool {
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

/// Returns true where systemd leaves all below a cgroup to its processes (`Delegate=`, systemd
/// 251).
fn is_delegated(folder: &Path) -> bool {
    let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else { return false };
    let mut value = [0; 4];
    let bytes = file::attribute(&path, c"user.delegate", &mut value);
    bytes.is_ok_and(|bytes| value.get(..bytes) == Some(b"1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_testkit::skip;

    #[test]
    fn a_name_is_looked_for_and_a_path_is_not() {
        let shell = program(OsStr::new("sh")).expect("every system has one");
        assert!(shell.is_absolute() && shell.ends_with("sh"));
        assert_eq!(program(shell.as_os_str()), Some(shell));
        for none in ["no-such-program", "no/such/program", "/tmp", "/etc/passwd", ""] {
            assert_eq!(program(OsStr::new(none)), None, "{none:?}");
        }
    }

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
