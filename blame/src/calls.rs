//! The numbers of a machine's system calls: a capture may be of another architecture than the one
//! that reads it.

use serde::{Deserialize, Serialize};

/// The numbering of system calls on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallNumbers {
    /// Those of 64-bit x86.
    X86,
    /// Those of arm64, riscv64 and other younger architectures.
    Generic,
}

impl CallNumbers {
    /// The numbering of an architecture, as `uname -m` names it; `None` of others.
    #[must_use]
    pub fn of_machine(machine: &str) -> Option<Self> {
        match machine {
            "x86_64" => Some(Self::X86),
            "aarch64" | "riscv64" | "loongarch64" => Some(Self::Generic),
            _ => None,
        }
    }

    /// The name of a call; `None` of a number that no call has, or that is younger than the table.
    #[must_use]
    pub fn name(self, number: u32) -> Option<&'static str> {
        let number = usize::try_from(number).ok()?;
        match self {
            Self::X86 => syscalls::x86_64::Sysno::new(number).map(|call| call.name()),
            Self::Generic => syscalls::aarch64::Sysno::new(number).map(|call| call.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_their_architecture() {
        let (x86, generic) = (CallNumbers::X86, CallNumbers::Generic);
        for (number, x86_name, generic_name) in [
            (0, Some("read"), Some("io_setup")),
            (35, Some("nanosleep"), Some("unlinkat")),
            (230, Some("clock_nanosleep"), Some("mlockall")),
            (250, Some("keyctl"), None),
            (334, Some("rseq"), None),
            (335, Some("uretprobe"), None),
            (424, Some("pidfd_send_signal"), Some("pidfd_send_signal")),
            (435, Some("clone3"), Some("clone3")),
            (467, Some("open_tree_attr"), Some("open_tree_attr")),
            (u32::MAX, None, None),
        ] {
            let found = (x86.name(number), generic.name(number));
            assert_eq!(found, (x86_name, generic_name), "{number}");
        }
        assert_eq!(generic.name(115), Some("clock_nanosleep"));
        assert_eq!(generic.name(293), Some("rseq"));
    }

    #[test]
    fn an_architecture_without_a_table_has_no_names() {
        assert_eq!(CallNumbers::of_machine("x86_64"), Some(CallNumbers::X86));
        assert_eq!(CallNumbers::of_machine("aarch64"), Some(CallNumbers::Generic));
        assert_eq!(CallNumbers::of_machine("s390x"), None);
    }
}
