//! Load `linuxcnc`: `stress-ng --cpu N --fork N` and glxgears, N the CPUs that are not isolated, as
//! the article on tuning the kernel for LinuxCNC loads its machine; cpu and fork are our own.
//!
//! Says which processes it takes; starts none.

use super::{cpu, fork, gears};
use crate::load::bounds::LoadBounds;
use crate::load::protocol::Setup;
use crate::load::row::{GRACE, LoadRow, Part, Start};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "linuxcnc",
    unit: gears::UNIT,
    help: "cpu and fork, one each per CPU that is not isolated, and glxgears where installed",
    args: None,
    workers_max: None,
    start: Start::Parts(|bounds| parts(bounds, &gears::missing())),
};

/// Its parts in `bounds`, when the programs of `missing` are not installed.
fn parts(bounds: &LoadBounds, missing: &[&str]) -> Vec<Part> {
    let part = |name: &str, unit| Part {
        name: format!("{} {name}", ROW.name),
        setup: Some(Setup { workers: bounds.unisolated, ..Setup::new(name, bounds) }),
        unit,
        note: None,
        grace: GRACE,
    };
    let mut gears = Part { grace: GRACE + gears::GRACE, ..part(gears::NAME, gears::UNIT) };
    if !missing.is_empty() {
        gears.setup = None;
        gears.note = Some(format!("not installed: {}", missing.join(", ")));
    }
    vec![part(cpu::ROW.name, cpu::ROW.unit), part(fork::ROW.name, fork::ROW.unit), gears]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn there_is_one_worker_for_each_cpu_not_isolated() {
        let bounds =
            LoadBounds { unisolated: 2, ..LoadBounds::new(Duration::from_secs(1), vec![0, 1, 2]) };
        for part in &parts(&bounds, &[]) {
            assert_eq!(part.setup.as_ref().map(|setup| setup.workers), Some(2), "{}", part.name);
        }
        let without = parts(&bounds, &["Xvfb"]);
        assert_eq!(without.len(), 3);
        let gears = without.last().expect("the last of three");
        let note = gears.note.as_ref().expect("a note");
        assert!(gears.setup.is_none() && note.contains("Xvfb"));
    }
}
