//! Peers that are programs: started for each block, with their own loop and their own figures.
//!
//! Here only what both need: a child that ends in time, a folder, and the CPU time of a thread of
//! another process. A program's block costs its start beside its length.

pub(crate) mod cyclictest;
pub(crate) mod linuxcnc;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How a program ended, and all that it output.
pub(crate) struct Output {
    pub(crate) well: bool,
    pub(crate) out: String,
    pub(crate) errors: String,
}

/// Runs `command` for `limit` at most, calling `look` with its process id every `every`.
///
/// # Errors
/// It cannot be started, or had to be killed.
pub(crate) fn run(
    command: &mut Command,
    folder: &Folder,
    (limit, every): (Duration, Duration),
    mut look: impl FnMut(u32),
) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |why: std::io::Error| format!("{name}: {why}");
    // Files, as a pipe that nobody reads while it runs would hold it up.
    let [out, errors] = ["out", "errors"].map(|name| folder.path(name));
    command.stdin(Stdio::null()).stdout(File::create(&out).map_err(failed)?);
    command.stderr(File::create(&errors).map_err(failed)?);
    let mut child = command.spawn().map_err(failed)?;
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if Instant::now() > deadline {
            // It may have ended by itself just now.
            let _ended = child.kill();
            let _reaped = child.wait();
            return Err(format!("{name} did not end within {} s", limit.as_secs()));
        }
        look(child.id());
        // A child is polled from outside; when exactly does not matter.
        std::thread::sleep(every);
    };
    let read = |path: &Path| fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned());
    let (out, errors) = (read(&out).map_err(failed)?, read(&errors).map_err(failed)?);
    Ok(Output { well: status.success(), out, errors })
}

/// The last line that is not empty, cut to what a line can show.
pub(crate) fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
    line.chars().filter(|c| !c.is_control()).take(120).collect()
}

/// A folder of this run's own, removed at its end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new one, in which other users may write too: rtapi gives up root.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new() -> Result<Self, String> {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("punctual-peers-{}", std::process::id()));
        let made = fs::create_dir(&path)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o777)));
        made.map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(Self(path))
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing is lost with what stays in a temporary folder.
        let _left = fs::remove_dir_all(&self.0);
    }
}

/// CPU time of a thread at some moments.
#[derive(Default)]
pub(crate) struct Readings(Vec<(Duration, u64)>);

impl Readings {
    /// Reads that of thread `tid` of process `pid`, where it can be read: the first number of
    /// `/proc/PID/task/TID/schedstat` (kernel document scheduler/sched-stats.rst).
    pub(crate) fn read(&mut self, pid: u32, tid: u32, since: Instant) {
        let path = format!("/proc/{pid}/task/{tid}/schedstat");
        let text = fs::read_to_string(path).unwrap_or_default();
        if let Some(ns) = text.split(' ').next().and_then(|ns| ns.parse().ok()) {
            self.0.push((since.elapsed(), ns));
        }
    }

    /// CPU time over wall time in the longest stretch in which it rose from each reading to the
    /// next: so neither its start nor its waiting for that counts. `None` without one of three.
    pub(crate) fn load(&self) -> Option<f64> {
        let rises = self.0.chunk_by(|before, after| after.1 > before.1);
        let longest = rises.max_by_key(|run| run.len()).filter(|run| run.len() >= 3)?;
        let (first, last) = (longest.first()?, longest.last()?);
        let wall_s = (last.0 - first.0).as_secs_f64();
        (wall_s > 0.0).then(|| (last.1 - first.1) as f64 / 1e9 / wall_s)
    }
}

/// Threads of a process, beside the one that it began with.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let tids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    tids.filter(|&tid| tid != pid).collect()
}

/// Where a program lies on the path.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_that_of_the_steady_stretch() {
        let ms = Duration::from_millis;
        // Its start, a wait, five readings at a tenth, and its end.
        let steps = [(0, 0), (20, 9), (40, 9), (60, 9), (80, 11), (100, 13), (120, 15), (140, 15)];
        let readings = Readings(steps.map(|(at, cpu)| (ms(at), cpu * 1_000_000)).to_vec());
        assert!((readings.load().expect("steady") - 0.1).abs() < 1e-12);
        assert_eq!(Readings(vec![(ms(0), 1), (ms(5), 2)]).load(), None);
        assert_eq!(Readings::default().load(), None);
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let folder = Folder::new().expect("a folder");
        let times = |limit| (Duration::from_millis(limit), Duration::from_millis(5));
        let mut shell = Command::new("sh");
        let output =
            run(shell.args(["-c", "echo a; echo b >&2; exit 3"]), &folder, times(60_000), |_| ());
        let output = output.expect("it ran");
        assert_eq!(
            (output.well, output.out.as_str(), last_line(&output.errors).as_str()),
            (false, "a\n", "b")
        );
        let ended = run(Command::new("sleep").arg("60"), &folder, times(20), |_| ());
        assert!(ended.is_err_and(|why| why.contains("did not end")));
        let missing = run(&mut Command::new("no-such-program"), &folder, times(20), |_| ());
        assert!(missing.is_err_and(|why| why.contains("no-such-program")));
    }
}
