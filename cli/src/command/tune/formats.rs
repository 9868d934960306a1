//! How a plan is written: one row a format. Each file here turns a plan into the text of another
//! tool; none writes a file.

mod ansible;
mod boot;
mod diff;
mod sysctl;
mod systemd;
mod tuned;

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use punctual_host::CpuList;
use punctual_host::cmdline::CommandLine;
use punctual_host::plan::TuningPlan;
use punctual_host::rules::KnobChange;

/// What is printed.
pub(crate) struct Printed<'a> {
    /// The plan.
    pub(crate) plan: &'a TuningPlan,
    /// The CPUs that it is for.
    pub(crate) cpus: &'a CpuList,
    /// Why these.
    pub(crate) why: &'a str,
    /// The command line of now, where it is known.
    pub(crate) now: Option<&'a CommandLine>,
}

/// A format.
pub(crate) struct PlanFormat {
    name: &'static str,
    help: &'static str,
    /// The text of a plan.
    pub(crate) print: fn(&Printed<'_>) -> Result<String>,
}

/// All formats.
const FORMATS: [PlanFormat; 7] = [
    PlanFormat { name: "diff", help: "a diff for people", print: diff::print },
    PlanFormat { name: "grub", help: "a drop-in for /etc/default/grub.d", print: boot::print_grub },
    PlanFormat {
        name: "cmdline",
        help: "the kernel command line of the next boot",
        print: boot::print_line,
    },
    PlanFormat { name: "sysctl", help: "a file for /etc/sysctl.d", print: sysctl::print },
    PlanFormat {
        name: "systemd",
        help: "a unit that sets everything at boot",
        print: systemd::print,
    },
    PlanFormat { name: "tuned", help: "tuned.conf of a TuneD profile", print: tuned::print },
    PlanFormat { name: "ansible", help: "tasks of an Ansible playbook", print: ansible::print },
];

/// A format by its row.
#[derive(Clone, Copy)]
pub(crate) struct FormatName(pub(crate) &'static PlanFormat);

impl std::fmt::Debug for FormatName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

impl ValueEnum for FormatName {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: [FormatName; FORMATS.len()] = {
            static ROWS: [PlanFormat; FORMATS.len()] = FORMATS;
            let mut all = [FormatName(&ROWS[0]); FORMATS.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = FormatName(&ROWS[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name).help(self.0.help))
    }
}

impl Printed<'_> {
    /// The CPUs of a partition, where one is made.
    pub(super) fn partition(&self) -> Option<&str> {
        self.plan.runtime.iter().find_map(|step| match &step.change {
            KnobChange::Partition { cpus } => Some(cpus.as_str()),
            _ => None,
        })
    }

    /// The command line of the next boot.
    fn next(&self) -> Result<CommandLine> {
        let Some(now) = self.now else {
            anyhow::bail!("the kernel command line of this machine could not be read");
        };
        Ok(self.plan.command_line(now))
    }

    /// The boot parameters that are set, as words.
    fn set(&self) -> Vec<String> {
        let line = self.plan.command_line(&CommandLine::default());
        line.params.iter().map(ToString::to_string).collect()
    }

    /// The boot parameters that go: those that are removed or replaced, as they stand now.
    fn gone(&self) -> Vec<String> {
        self.plan.boot.iter().filter_map(|step| step.from.clone()).collect()
    }
}

/// The commands that make a partition, for a shell: as in the kernel's admin-guide/cpu-isolation.
fn partition_commands(cpus: &str) -> [String; 4] {
    let group = "/sys/fs/cgroup/punctual.isolated";
    [
        "echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control".to_owned(),
        format!("mkdir -p {group}"),
        format!("echo {cpus} > {group}/cpuset.cpus"),
        format!("echo isolated > {group}/cpuset.cpus.partition"),
    ]
}
