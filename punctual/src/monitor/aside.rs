//! Where threads beside loops run.
//!
//! For monitors and for threads that write files. Decides; starts nothing.

use punctual_os::affinity::{self, CpuMask};

/// The CPUs on which none of the loops is; all that are allowed where there are no others.
pub(crate) fn aside(cpus: &[u32]) -> CpuMask {
    let allowed = affinity::get(0).unwrap_or(CpuMask::EMPTY);
    let mut aside = allowed;
    cpus.iter().for_each(|&cpu| aside.remove(cpu));
    if aside.count() == 0 { allowed } else { aside }
}
