//! IrqTable: where each may go, where it goes, how often it came on which CPU. Reads
//! `/proc/interrupts` and `/proc/irq` through the source.

use crate::counts::{CountTable, CountedKind};
use crate::cpulist::CpuList;
use crate::fact::Fact;
use crate::facts::Source;
use std::collections::BTreeMap;

/// The most interrupts that are looked at one by one.
const MAX: usize = 1024;

/// All interrupts with a number of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IrqTable {
    /// By number.
    pub lines: Vec<IrqLine>,
    /// True where the counts were read twice, so that [`IrqLine::risen`] is known.
    pub watched: bool,
}

/// One interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IrqLine {
    /// Its number.
    pub number: u32,
    /// Its device or driver, as /proc/interrupts ends its line.
    pub name: String,
    /// The CPUs that it may go to.
    pub allowed: Fact<CpuList>,
    /// The CPUs that it goes to.
    pub effective: Fact<CpuList>,
    /// The number of times that it came since boot, by CPU.
    pub counts: BTreeMap<u32, u64>,
    /// The CPUs on which the count rose while it was watched.
    pub risen: CpuList,
}

/// Where an interrupt stands that is to go to some CPUs and no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IrqPlace {
    /// It goes to them, as far as the kernel tells.
    Moved,
    /// It goes to these CPUs until it arrives once more: many are moved by their own handler.
    Waits(CpuList),
    /// It still arrives on these CPUs, and goes to them after that too.
    StillOn(CpuList),
}

impl IrqLine {
    /// Where it stands, if it is to go to `wanted` only: by where the kernel sends it, and where it
    /// came meanwhile.
    pub fn place(&self, wanted: &CpuList) -> IrqPlace {
        // Without the kernel's word on where it goes, what it may do decides.
        let goes = self.effective.value().or(self.allowed.value());
        let elsewhere = goes.map(|cpus| cpus.difference(wanted)).unwrap_or_default();
        let came = self.risen.difference(wanted);
        match (elsewhere.is_empty(), came.is_empty()) {
            (true, _) => IrqPlace::Moved,
            (false, true) => IrqPlace::Waits(elsewhere),
            (false, false) => IrqPlace::StillOn(came),
        }
    }
}

/// Counts and name by number.
type Counts = BTreeMap<u32, (BTreeMap<u32, u64>, String)>;

impl IrqTable {
    /// Takes in what is there after a while: counts, and where interrupts go that came meanwhile.
    pub(super) fn note_later(&mut self, source: &Source<'_>, later: &Counts) {
        self.watched = true;
        for interrupt in &mut self.lines {
            interrupt.effective = effective(source, interrupt.number);
            let Some((counts, _)) = later.get(&interrupt.number) else { continue };
            let before = |cpu: &u32| interrupt.counts.get(cpu).copied().unwrap_or(0);
            let risen = counts.iter().filter(|(cpu, count)| **count > before(cpu));
            interrupt.risen = risen.map(|(cpu, _)| *cpu).collect();
        }
    }
}

fn effective(source: &Source<'_>, number: u32) -> Fact<CpuList> {
    source.cpu_list(&format!("/proc/irq/{number}/effective_affinity_list"))
}

pub(super) fn counts(source: &Source<'_>) -> Fact<Counts> {
    source.parsed("/proc/interrupts", parse)
}

fn parse(text: &str) -> Option<Counts> {
    let numbered = |(kind, by_cpu): (CountedKind, BTreeMap<u32, u64>)| {
        Some((kind.label().parse().ok()?, (by_cpu, kind.description().to_owned())))
    };
    Some(CountTable::parse(text)?.into_kinds().filter_map(numbered).collect())
}

pub(super) fn read(source: &Source<'_>) -> Fact<IrqTable> {
    counts(source).map(|counts| {
        let line = |(number, (counts, name)): (u32, (BTreeMap<u32, u64>, String))| IrqLine {
            allowed: source.cpu_list(&format!("/proc/irq/{number}/smp_affinity_list")),
            effective: effective(source, number),
            number,
            name,
            counts,
            risen: CpuList::new(),
        };
        IrqTable { lines: counts.into_iter().take(MAX).map(line).collect(), watched: false }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(text: &str) -> CpuList {
        CpuList::parse(text, 7).expect("a list")
    }

    fn place(effective: Option<&str>, risen: &str) -> IrqPlace {
        let list = |text: &str| Fact::known(cpus(text), "/proc/irq/36");
        let line = IrqLine {
            number: 36,
            name: "virtio1-req.0".to_owned(),
            allowed: list("0"),
            effective: effective.map_or(Fact::absent("/proc/irq/36"), list),
            counts: BTreeMap::new(),
            risen: cpus(risen),
        };
        line.place(&cpus("0"))
    }

    #[test]
    fn an_interrupt_has_moved_waits_for_its_next_or_still_arrives() {
        assert_eq!(place(Some("0"), ""), IrqPlace::Moved);
        assert_eq!(place(Some("1"), ""), IrqPlace::Waits(cpus("1")));
        assert_eq!(place(Some("1"), "1"), IrqPlace::StillOn(cpus("1")));
        // It came once more where it was, and that moved it.
        assert_eq!(place(Some("0"), "1"), IrqPlace::Moved);
        assert_eq!(place(Some("0-1"), "0"), IrqPlace::Waits(cpus("1")));
        // An old kernel does not tell where it goes.
        assert_eq!(place(None, ""), IrqPlace::Moved);
    }
}
