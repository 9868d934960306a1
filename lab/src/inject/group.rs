//! A control group whose real-time threads have a budget.

use std::fs;
use std::path::{Path, PathBuf};

use punctual_host::{MachineFacts, Root};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::{Errno, process};

use super::{InjectedInterval, InjectionRefused, Victim};

/// Budgets within which an end of one must be met.
const PERIODS: u64 = 20;

/// The budget of a group: its real-time threads may run for all of a period but a pause.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupBudget {
    /// The period, ns.
    pub(super) period_ns: u64,
    /// The part of it without them, where all of the rest was used, ns.
    pub(super) pause_ns: u64,
}

/// A control group whose real-time threads may run for a part of each period, as the controller
/// `cpu` of version 1 gives it (CONFIG_RT_GROUP_SCHED; kernel document
/// scheduler/sched-rt-group.rst, Linux 6.18). What was moved into it is moved back when it is
/// dropped, and the group removed. A process that a signal ends leaves it, with its budget and the
/// loop in it.
#[derive(Debug)]
pub(super) struct BudgetGroup {
    folder: PathBuf,
    period_ns: u64,
    /// Threads that were moved into it, and the lists that they were moved from.
    moved: Vec<(i32, PathBuf)>,
}

impl BudgetGroup {
    /// A group of the calling thread and the loop's, below the group that this process is in.
    ///
    /// # Errors
    /// No such controller, or what the kernel answered.
    pub(super) fn make(victim: &Victim, budget: GroupBudget) -> Result<Self, InjectionRefused> {
        let GroupBudget { period_ns, pause_ns } = budget;
        let facts = MachineFacts::collect(&Root::live());
        let known = facts.limits.cgroup_rt_runtime_us;
        let own = known.value().and_then(|_| Path::new(known.origin()).parent());
        // The controller's root: what is left without the group that this process is in.
        let root = own.zip(group_of(process::tid())).and_then(|(own, group)| {
            own.to_str()?.strip_suffix(group.trim_end_matches('/')).map(PathBuf::from)
        });
        let (own, root) = own.zip(root).ok_or_else(|| InjectionRefused::Machine {
            why: format!("no control group with a budget of real time: {}", known.origin()),
        })?;
        let folder = own.join("punctual-inject");
        match fs::create_dir(&folder) {
            Err(why) if why.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(refused(&folder, &why));
            }
            _ => {}
        }
        let mut made = Self { folder, period_ns, moved: Vec::new() };
        let us = |ns: u64| (ns / 1_000).to_string();
        // A budget may not be longer than its period, nor may a period become shorter than it.
        made.write("cpu.rt_runtime_us", "0")?;
        made.write("cpu.rt_period_us", &us(period_ns))?;
        made.write("cpu.rt_runtime_us", &us(period_ns.saturating_sub(pause_ns)))?;
        for tid in [victim.tid, process::tid()] {
            let from = group_of(tid).ok_or_else(|| InjectionRefused::Machine {
                why: format!("/proc/{tid}/cgroup: no group of the controller cpu"),
            })?;
            made.write("tasks", &tid.to_string())?;
            made.moved.push((tid, root.join(from.trim_start_matches('/')).join("tasks")));
        }
        Ok(made)
    }

    fn write(&self, file: &str, value: &str) -> Result<(), InjectionRefused> {
        let path = self.folder.join(file);
        fs::write(&path, value).map_err(|why| refused(&path, &why))
    }

    /// Computes until the budget is used up, and its group stood still for `least_ns` at least.
    ///
    /// # Errors
    /// EAGAIN where the kernel stopped the group in none of many periods.
    pub(super) fn use_up(&self, cpu: u32, least_ns: u64) -> Result<InjectedInterval, Errno> {
        let until_ns = now_ns(ClockId::Monotonic) + PERIODS * self.period_ns;
        let mut start_ns = now_ns(ClockId::Monotonic);
        while start_ns < until_ns {
            // The kernel looks at a budget when it schedules, or at a tick.
            std::thread::yield_now();
            let end_ns = now_ns(ClockId::Monotonic);
            if end_ns - start_ns >= least_ns {
                return Ok(InjectedInterval { start_ns, end_ns, cpu });
            }
            start_ns = end_ns;
        }
        Err(Errno::AGAIN)
    }
}

impl Drop for BudgetGroup {
    fn drop(&mut self) {
        for (tid, from) in &self.moved {
            // One that ended needs nothing.
            let _gone = fs::write(from, tid.to_string());
        }
        // Where a thread is still in it, the kernel keeps it.
        let _left = fs::remove_dir(&self.folder);
    }
}

/// The group that a thread is in for the controller `cpu` of version 1: its path below the root.
fn group_of(tid: i32) -> Option<String> {
    let groups = fs::read_to_string(format!("/proc/{tid}/cgroup")).ok()?;
    groups.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "cpu").then(|| path.to_owned())
    })
}

fn refused(path: &Path, why: &std::io::Error) -> InjectionRefused {
    InjectionRefused::Machine { why: format!("{}: {why}", path.display()) }
}
