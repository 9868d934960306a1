//! Settings of this machine that trials change: compared with what they were, and put back
//! whatever a trial came to.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;

use crate::outputs::names;
use crate::support::{json, run, settings_of_this_machine};

/// Where control groups are made: in versions 1 and 2.
const GROUPS: [&str; 3] = ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// What `tune apply` and `isolate` change on this machine, as it was; one trial at a time has it.
pub(super) struct Settings {
    texts: BTreeMap<PathBuf, String>,
    groups: Vec<PathBuf>,
    _turn: MutexGuard<'static, ()>,
}

impl Settings {
    /// Waits for its turn, and reads them: those of plans for each of the first two CPUs, the
    /// settings of which differ, and `more`.
    pub(super) fn read(more: &[&str]) -> Self {
        let turn = settings_of_this_machine();
        let mut paths: Vec<PathBuf> = more.iter().map(PathBuf::from).collect();
        for cpu in ["0", "1"] {
            let out = run(["tune", "plan", "--cpus", cpu, "--json", "-"]);
            // Where there is no second CPU nothing is planned for it.
            let plan = if out.status.success() { json(&out) } else { continue };
            let steps = plan["runtime"].as_array().expect("steps").iter();
            paths.extend(steps.filter_map(|step| step["change"]["path"].as_str()).map(Into::into));
        }
        let read = |path: PathBuf| Some((path.clone(), fs::read_to_string(path).ok()?));
        let texts = paths.into_iter().filter_map(read).collect();
        Self { texts, groups: groups(), _turn: turn }
    }

    /// What is not as it was: setting, now, before.
    pub(super) fn changed(&self) -> Vec<String> {
        let mut changed = Vec::new();
        for (path, before) in &self.texts {
            let now = fs::read_to_string(path).unwrap_or_default();
            if now != *before {
                changed.push(format!("{}: {now:?}, it was {before:?}", path.display()));
            }
        }
        let made = groups().into_iter().filter(|group| !self.groups.contains(group));
        changed.extend(made.map(|group| format!("{} is left", group.display())));
        changed
    }

    /// Asserts that all are as before.
    pub(super) fn are_as_before(&self, trial: &str) {
        let changed = self.changed();
        assert!(changed.is_empty(), "{trial}: not as before: {}", changed.join("; "));
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // Only after a failed trial is there anything to do; it was reported.
        for group in groups().iter().filter(|group| !self.groups.contains(group)) {
            let above = group.parent().expect("a group is in one").join("cgroup.procs");
            let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            let moved = members.lines().map(|pid| fs::write(&above, pid));
            let _busy = (moved.filter(Result::is_err).count(), fs::remove_dir(group));
        }
        for (path, before) in &self.texts {
            if fs::read_to_string(path).is_ok_and(|now| now != *before) {
                // Of a choice the word in brackets is the setting.
                let choice = before.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                let _refused = fs::write(path, choice.map_or(before.trim_end(), |(word, _)| word));
            }
        }
    }
}

/// The control groups that this program made: their names begin with its own.
fn groups() -> Vec<PathBuf> {
    let made_in = |above: &str| -> Vec<PathBuf> {
        let names = if Path::new(above).is_dir() { names(Path::new(above)) } else { Vec::new() };
        let ours = names.into_iter().filter(|name| name.starts_with("punctual."));
        ours.map(|name| Path::new(above).join(name)).collect()
    };
    GROUPS.into_iter().flat_map(made_in).collect()
}
