//! What rules about tuning look at, beyond the facts that every result has: the command line, the
//! kernel's options and log, settings by name, interrupts, boot files.
//!
//! [`KernelSettings::collect`] reads through a [`Root`] and nothing else; what it reads does not
//! depend on the values, so that a capture holds all of it. It never judges and never changes
//! anything.

mod boot;
mod interrupts;
mod kernel_log;
mod parameters;
mod per_cpu;
mod single;
mod watched;

pub use boot::{BootFile, Loader, kernel_words};
pub(crate) use boot::{DROP_INS, ENTRIES, GRUB, KERNEL, WHOLE, is_boot_file};
pub use interrupts::{IrqLine, IrqPlace, IrqTable};
pub use kernel_log::KernelLog;
pub(crate) use kernel_log::relevant;
pub use parameters::ModuleParameter;
pub use per_cpu::PerCpu;
pub use single::path_of;
pub use watched::{ChangedSetting, WatchedSettings};

use crate::cmdline::CommandLine;
use crate::fact::Fact;
use crate::facts::source::Source;
use crate::root::Root;
use std::collections::BTreeMap;

/// Options of the kernel's configuration that rules look at, without `CONFIG_`.
const OPTIONS: &[&str] = &[
    "ARCH_HAS_PREEMPT_LAZY",
    "CPUSETS",
    "CPU_ISOLATION",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_OBJECTS",
    "HIGH_RES_TIMERS",
    "IRQ_FORCED_THREADING",
    "KASAN",
    "NO_HZ_FULL",
    "OSNOISE_TRACER",
    "PREEMPT_DYNAMIC",
    "PREEMPT_RT",
    "PROVE_LOCKING",
    "RCU_NOCB_CPU",
    "RCU_NOCB_CPU_DEFAULT_ALL",
    "TIMERLAT_TRACER",
];

/// All that rules look at, beyond the facts of every result.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelSettings {
    /// The command line that the kernel was started with.
    pub command_line: Fact<CommandLine>,
    /// Of the options that rules look at, those that are set, without `CONFIG_`.
    pub options: Fact<BTreeMap<String, String>>,
    /// What the kernel wrote about its parameters.
    pub kernel_log: Fact<KernelLog>,
    /// The parameters of modules on the command line, and what the module shows.
    pub module_parameters: Vec<ModuleParameter>,
    /// IrqTable, where they may go and where they went.
    pub interrupts: Fact<IrqTable>,
    /// KernelSettings that each CPU has.
    pub per_cpu: PerCpu,
    /// The files that the next boot's command line is made of.
    pub boot: Vec<BootFile>,
    /// Kernel, major and minor.
    pub release: Option<(u32, u32)>,
    values: BTreeMap<&'static str, Fact<String>>,
    nothing: Fact<String>,
}

impl KernelSettings {
    /// Reads everything.
    pub fn collect(root: &Root) -> Self {
        let source = Source::new(root);
        let release = crate::facts::release(&source);
        let release = release.value().and_then(|text| crate::facts::release_numbers(text));
        Self {
            options: source.config.clone().map(|config| {
                let set = |name: &&str| Some(((*name).to_owned(), config.value(name)?.to_owned()));
                OPTIONS.iter().filter_map(set).collect()
            }),
            kernel_log: kernel_log::read(root),
            module_parameters: parameters::read(&source),
            interrupts: interrupts::read(&source),
            per_cpu: PerCpu::read(&source),
            boot: boot::read(&source),
            release,
            values: single::read(&source),
            nothing: Fact::absent(""),
            command_line: source.command_line,
        }
    }

    /// A setting by its name; one that is not in the list is absent.
    pub fn value(&self, name: &str) -> &Fact<String> {
        self.values.get(name).unwrap_or(&self.nothing)
    }

    /// Whether an option is built in; `None` where the configuration could not be read.
    pub fn is_built(&self, option: &str) -> Option<bool> {
        Some(self.options.value()?.get(option).is_some_and(|value| value == "y"))
    }

    /// Reads interrupts again: what has risen since is known from then on, and where they go now.
    pub fn watch(&mut self, root: &Root) {
        let source = Source::new(root);
        let later = interrupts::counts(&source);
        if let (Fact::Known { value: interrupts, .. }, Fact::Known { value: later, .. }) =
            (&mut self.interrupts, later)
        {
            interrupts.note_later(&source, &later);
        }
    }
}

#[cfg(test)]
mod tests;
