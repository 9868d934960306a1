//! Load `linuxcnc`: `stress-ng --cpu N --fork N` and glxgears, N the CPUs that are not isolated, as
//! the article on tuning the kernel for LinuxCNC loads its machine; cpu and fork are our own.
//!
//! Says which processes it takes; starts none.

use super::bounds::Bounds;
use super::gears;
use super::setup::Setup;

/// One part: a process, or the note in its place.
pub(super) struct Part {
    /// `cpu`, `fork` or `gears`.
    pub(super) name: &'static str,
    /// The process; none when something is not installed.
    pub(super) setup: Option<Setup>,
    /// What is not installed.
    pub(super) note: Option<String>,
}

/// Its parts in `bounds`, when the programs of `missing` are not installed.
pub(super) fn parts(bounds: &Bounds, missing: &[&str]) -> [Part; 3] {
    let part = |name| {
        let setup = Setup { workers: bounds.unisolated, ..Setup::new(name, bounds) };
        Part { name, setup: Some(setup), note: None }
    };
    let mut gears = part(gears::NAME);
    if !missing.is_empty() {
        gears.setup = None;
        gears.note = Some(format!("not installed: {}", missing.join(", ")));
    }
    [part("cpu"), part("fork"), gears]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn there_is_one_worker_for_each_cpu_not_isolated() {
        let bounds = Bounds { unisolated: 2, ..Bounds::new(Duration::from_secs(1), vec![0, 1, 2]) };
        let [cpu, fork, gears] = parts(&bounds, &[]);
        for part in [&cpu, &fork, &gears] {
            assert_eq!(part.setup.as_ref().map(|setup| setup.workers), Some(2), "{}", part.name);
        }
        let [.., gears] = parts(&bounds, &["Xvfb"]);
        assert!(gears.setup.is_none() && gears.note.is_some_and(|note| note.contains("Xvfb")));
    }
}
