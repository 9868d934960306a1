//! The machine that is recorded: its platform, its files, its count of firmware interrupts.

use punctual_blame::config::{BlameConfig, CapturedMachine, KernelFiles, Platform};
use punctual_host::facts::{IdleState, Kernel, SmiCount, online_cpus};
use punctual_host::root::{Listing, Root};
use punctual_os::scheduler::SchedPolicy;
use punctual_trace::capture::KernelName;

use crate::capture::{CapturePlan, ClockOffsets, EventSet};

/// The facts of a machine that attribution needs to record it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedMachine {
    /// The platform that the kernel runs on.
    pub platform: Platform,
    /// Major and minor of the kernel's release, where known.
    pub kernel: Option<(u32, u32)>,
    /// The CPU that counts system management interrupts; `None` where none does.
    pub smi_cpu: Option<u32>,
}

impl RecordedMachine {
    /// The configuration of attribution for this machine as it is now; the caller sets the threads
    /// that are followed.
    pub(crate) fn config(self) -> BlameConfig {
        let Self { platform, kernel, smi_cpu: _ } = self;
        let machine = CapturedMachine {
            platform,
            kernel,
            smi_count: None,
            idle_exits_us: IdleState::exits_us(&Root::live()),
            files: kernel_files(&Root::live()),
            cpus: online_cpus(&Root::live()).iter().collect(),
            clock_offsets_ns: ClockOffsets::take().all_ns(),
        };
        BlameConfig { machine, event_driven: true, ..BlameConfig::default() }
    }

    /// A capture by a reader that every loop is above. A loop that only wakes is not followed in
    /// it: it has no system calls and faults but its sleep, and recording these costs more than all
    /// other events.
    pub(crate) fn capture_plan(self, set: EventSet) -> CapturePlan {
        let in_guest = self.platform == Platform::VirtualMachine;
        CapturePlan::new(set).in_guest(in_guest).read_by(SchedPolicy::Fifo(1))
    }

    /// The count of system management interrupts up to now, where there is one.
    pub(crate) fn smi_count(self) -> Option<SmiCount> {
        SmiCount::read(&Root::live(), self.smi_cpu?)
    }

    /// System management interrupts since `before`, where they are counted.
    pub(crate) fn smis_since(self, before: Option<SmiCount>) -> Option<u64> {
        let before = before?;
        self.smi_count().map(|now| now.since(before))
    }
}

/// The kernel that runs here, by the architecture of this program where it does not tell its own.
pub(super) fn running_kernel(root: &Root) -> KernelName {
    let [release, machine] = Kernel::uname(root).map(|name| name.map(String::into_boxed_str));
    KernelName { release, machine: machine.or_else(|| Some(std::env::consts::ARCH.into())) }
}

/// The files that advice may name, as far as the machine has them and this user may see them.
fn kernel_files(root: &Root) -> KernelFiles {
    let names = |directory: &str| match root.list(directory) {
        Listing::Names(names) => names,
        Listing::Absent | Listing::Unreadable { .. } => Vec::new(),
    };
    let is_there = |path: &str| {
        path.rsplit_once('/')
            .is_some_and(|(directory, name)| names(directory).iter().any(|known| known == name))
    };
    let single = KernelFiles::CANDIDATES.map(str::to_owned).into_iter();
    let of_folders = KernelFiles::FOLDERS.iter().flat_map(|(folder, name)| {
        names(folder).into_iter().map(move |each| format!("{folder}/{each}/{name}"))
    });
    KernelFiles::new(single.chain(of_folders).filter(|path| is_there(path)))
}

#[cfg(test)]
mod tests {
    use punctual_blame::advice::ADVISED_RULES;
    use punctual_host::rules;

    use super::*;
    use crate::testing::Tree;

    #[test]
    fn advice_names_rules_that_tune_has() {
        let known: Vec<&str> = rules::all().map(|rule| rule.id).collect();
        let missing: Vec<_> = ADVISED_RULES.iter().filter(|id| !known.contains(id)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn advice_may_name_the_files_that_a_machine_has() {
        let own = ["proc/irq/9/smp_affinity_list", "sys/kernel/debug/sched/preempt"];
        let folder = "sys/kernel/debug/sched/fair_server/cpu0/none";
        let tree = Tree::new(&[own[0], own[1], folder].map(|path| (path, "")));
        let files = kernel_files(&tree.root());
        assert_eq!(files, KernelFiles::new(own.map(|file| format!("/{file}"))));
    }
}
