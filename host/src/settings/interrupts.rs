//! IrqTable: where each may go, where it goes, how often it came on which CPU. Reads
//! `/proc/interrupts` and `/proc/irq` through the source.

use crate::cpulist::CpuList;
use crate::fact::Fact;
use crate::facts::source::Source;
use std::collections::BTreeMap;

/// The most interrupts that are looked at one by one.
const MAX: usize = 1024;

/// All interrupts with a number of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IrqTable {
    /// By number.
    pub all: Vec<IrqLine>,
    /// Whether the counts were read twice, so that [`IrqLine::risen`] tells something.
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
    /// How often it came since boot, by CPU.
    pub counts: BTreeMap<u32, u64>,
    /// The CPUs on which the count rose while it was watched.
    pub risen: CpuList,
}

/// Counts and name by number.
pub(super) type Counts = BTreeMap<u32, (BTreeMap<u32, u64>, String)>;

impl IrqTable {
    pub(super) fn note_risen(&mut self, later: &Counts) {
        self.watched = true;
        for interrupt in &mut self.all {
            let Some((counts, _)) = later.get(&interrupt.number) else { continue };
            let before = |cpu: &u32| interrupt.counts.get(cpu).copied().unwrap_or(0);
            let risen = counts.iter().filter(|(cpu, count)| **count > before(cpu));
            interrupt.risen = risen.map(|(cpu, _)| *cpu).collect();
        }
    }
}

pub(super) fn counts(source: &Source<'_>) -> Fact<Counts> {
    source.parsed("/proc/interrupts", parse)
}

/// The first line names the CPUs, each other line has a count for each of them.
fn parse(text: &str) -> Option<Counts> {
    let mut lines = text.lines();
    let cpus: Option<Vec<u32>> = lines
        .next()?
        .split_ascii_whitespace()
        .map(|word| word.strip_prefix("CPU")?.parse().ok())
        .collect();
    let cpus = cpus?;
    let line = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let mut words = rest.split_ascii_whitespace();
        let counts: Option<BTreeMap<u32, u64>> =
            cpus.iter().map(|cpu| Some((*cpu, words.next()?.parse().ok()?))).collect();
        let name = words.collect::<Vec<_>>().join(" ");
        Some((number.trim().parse().ok()?, (counts?, name)))
    };
    Some(lines.filter_map(line).collect())
}

pub(super) fn read(source: &Source<'_>) -> Fact<IrqTable> {
    counts(source).map(|counts| {
        let one = |(number, (counts, name)): (u32, (BTreeMap<u32, u64>, String))| IrqLine {
            allowed: source.cpu_list(&format!("/proc/irq/{number}/smp_affinity_list")),
            effective: source.cpu_list(&format!("/proc/irq/{number}/effective_affinity_list")),
            number,
            name,
            counts,
            risen: CpuList::new(),
        };
        IrqTable { all: counts.into_iter().take(MAX).map(one).collect(), watched: false }
    })
}
