//! Whether the processor's counter may be trusted: the kernel decides, not the processor.
//!
//! For the choice of the clock. Reads two files of the kernel, nothing else.

use std::fmt;
use std::fs;

/// Why the counter is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untrusted {
    /// The kernel keeps time by something else, named here: it may have seen the counter fail.
    Clocksource(String),
    /// The processor does not state that the counter's rate is constant in all states.
    NotInvariant,
    /// What the kernel uses could not be read.
    Unknown(String),
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clocksource(name) => write!(f, "the kernel keeps time by {name}"),
            Self::NotInvariant => f.write_str("the processor states no invariant counter"),
            Self::Unknown(why) => write!(f, "the kernel's clocksource could not be read: {why}"),
        }
    }
}

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Whether the kernel of this machine trusts the counter now.
///
/// # Errors
/// Why it does not, or that this is unknown.
///
/// # Real-time: setup only
pub fn counter_trust() -> Result<(), Untrusted> {
    let source =
        fs::read_to_string(CLOCKSOURCE).map_err(|why| Untrusted::Unknown(why.to_string()))?;
    let cpuinfo =
        fs::read_to_string("/proc/cpuinfo").map_err(|why| Untrusted::Unknown(why.to_string()))?;
    judge(source.trim(), &cpuinfo)
}

/// On x86-64 the current clocksource must be `tsc` (one that the kernel demoted is not) and the
/// flags must say constant_tsc and nonstop_tsc; on AArch64 the architected timer is both.
fn judge(source: &str, cpuinfo: &str) -> Result<(), Untrusted> {
    let wanted = if cfg!(target_arch = "x86_64") { "tsc" } else { "arch_sys_counter" };
    if source != wanted {
        return Err(Untrusted::Clocksource(source.to_owned()));
    }
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let states = |flag| flags.split_ascii_whitespace().any(|word| word == flag);
    if cfg!(target_arch = "x86_64") && !(states("constant_tsc") && states("nonstop_tsc")) {
        return Err(Untrusted::NotInvariant);
    }
    Ok(())
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn only_a_counter_that_the_kernel_uses_and_that_never_changes_is_trusted() {
        let invariant = "processor\t: 0\nflags\t\t: fpu constant_tsc nonstop_tsc sse2\n";
        assert_eq!(judge("tsc", invariant), Ok(()));
        assert_eq!(judge("hpet", invariant), Err(Untrusted::Clocksource("hpet".into())));
        assert_eq!(judge("tsc", "flags : constant_tsc\n"), Err(Untrusted::NotInvariant));
        assert_eq!(judge("tsc", ""), Err(Untrusted::NotInvariant));
        assert_eq!(judge("kvm-clock", ""), Err(Untrusted::Clocksource("kvm-clock".into())));
    }
}
