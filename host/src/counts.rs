//! Counts that the kernel keeps for each CPU: interrupts, soft interrupts, time that the host took.
//!
//! From /proc/interrupts, /proc/softirqs and /proc/stat (proc_interrupts(5), proc_softirqs(5),
//! proc_stat(5)). They only rise. A CPU that is offline has none, but for soft interrupts, whose
//! table names every possible one; what cannot be read is unknown, not zero.

use std::collections::BTreeMap;

use crate::root::{Read, Root};

/// A table of more kinds is none: a machine with many network cards has some 2 000.
const KINDS_MAX: usize = 1 << 16;
/// One step of /proc/stat: USER_HZ is 100 on every architecture in use (proc_stat(5)).
const STEP_NS: u64 = 10_000_000;

/// A table with a row for each kind and a column for each CPU: /proc/interrupts, /proc/softirqs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountTable {
    cpus: Vec<u32>,
    kinds: Vec<CountedKind>,
}

/// One kind of a [`CountTable`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedKind {
    label: String,
    description: String,
    /// In the order of the table's CPUs.
    counts: Vec<u64>,
}

/// A kind that rose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RisenCount {
    /// As the kernel's file has it: `LOC Local timer interrupts`, `NET_RX`.
    pub name: String,
    /// Its rise.
    pub count: u64,
}

impl CountTable {
    /// Reads a table; `None` where there is none, or where its head names no CPUs.
    pub fn read(root: &Root, path: &str) -> Option<Self> {
        let Read::Text(text) = root.read(path) else { return None };
        Self::parse(&text)
    }

    /// Of a table the counts of this CPU that are above 0: little is kept of a large machine.
    pub fn read_for(root: &Root, path: &str, cpu: u32) -> Option<Self> {
        let Self { cpus, kinds } = Self::read(root, path)?;
        let column = cpus.iter().position(|&named| named == cpu)?;
        let counts = |kind: CountedKind| {
            let counts = vec![kind.counts[column]];
            (counts[0] > 0).then_some(CountedKind { counts, ..kind })
        };
        Some(Self { cpus: vec![cpu], kinds: kinds.into_iter().filter_map(counts).collect() })
    }

    /// A head that names the online CPUs, then a line a kind; of kinds that are not counted by CPU,
    /// such as ERR, nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let head = lines.next()?.split_ascii_whitespace();
        let cpus: Vec<u32> =
            head.map(|name| name.strip_prefix("CPU")?.parse().ok()).collect::<Option<_>>()?;
        if cpus.is_empty() {
            return None;
        }
        let kind = |line: &str| {
            let (label, rest) = line.split_once(':')?;
            let mut words = rest.split_ascii_whitespace();
            let counts = words.by_ref().take(cpus.len()).map(|word| word.parse().ok());
            let counts = counts.collect::<Option<Vec<u64>>>()?;
            let description = words.collect::<Vec<_>>().join(" ");
            let label = label.trim().to_owned();
            (counts.len() == cpus.len()).then_some(CountedKind { label, description, counts })
        };
        let kinds: Vec<_> = lines.filter_map(kind).take(KINDS_MAX + 1).collect();
        (kinds.len() <= KINDS_MAX).then_some(Self { cpus, kinds })
    }

    /// The kinds with what each came to on each CPU, in the order of the file.
    pub(crate) fn into_kinds(self) -> impl Iterator<Item = (CountedKind, BTreeMap<u32, u64>)> {
        let Self { cpus, kinds } = self;
        kinds.into_iter().map(move |kind| {
            let by_cpu = cpus.iter().copied().zip(kind.counts.iter().copied()).collect();
            (kind, by_cpu)
        })
    }

    /// The kinds that came on a CPU since `before`, those that came most often first; `None` where
    /// it has no column in both.
    pub fn risen(&self, before: &Self, cpu: u32) -> Option<Vec<RisenCount>> {
        let column = |table: &Self| table.cpus.iter().position(|&named| named == cpu);
        let (now, then) = (column(self)?, column(before)?);
        let earlier: BTreeMap<_, u64> =
            before.kinds.iter().map(|kind| (kind.key(), kind.counts[then])).collect();
        let rise = |kind: &CountedKind| {
            let count = kind.counts[now].saturating_sub(*earlier.get(&kind.key()).unwrap_or(&0));
            (count > 0).then(|| RisenCount { name: kind.name(), count })
        };
        let mut risen: Vec<RisenCount> = self.kinds.iter().filter_map(rise).collect();
        risen.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        Some(risen)
    }
}

impl CountedKind {
    /// What stands before the colon: the number of an interrupt, `LOC`, `NET_RX`.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// What stands behind the counts: its device or driver.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    fn key(&self) -> (&str, &str) {
        (&self.label, &self.description)
    }

    fn name(&self) -> String {
        format!("{} {}", self.label, self.description).trim_end().to_owned()
    }
}

/// Time that the host took from CPUs up to a moment, in steps of 10 ms: what is shorter comes to a
/// step by chance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StealTicks {
    total: Option<u64>,
    by_cpu: BTreeMap<u32, u64>,
}

impl StealTicks {
    /// Reads them; nothing is known where that fails.
    pub fn read(root: &Root) -> Self {
        let Read::Text(text) = root.read("/proc/stat") else { return Self::default() };
        Self::parse(&text)
    }

    /// The eighth number of each line of a CPU, and of the line of all.
    pub(crate) fn parse(text: &str) -> Self {
        let mut ticks = Self::default();
        for line in text.lines() {
            let Some(rest) = line.strip_prefix("cpu") else { continue };
            let (number, counts) = rest.split_once(' ').unwrap_or((rest, ""));
            let steal = counts.split_ascii_whitespace().nth(7).and_then(|word| word.parse().ok());
            let Some(steal) = steal else { continue };
            match number.parse() {
                Ok(cpu) => drop(ticks.by_cpu.insert(cpu, steal)),
                Err(_) if number.is_empty() => ticks.total = Some(steal),
                Err(_) => {}
            }
        }
        ticks
    }

    /// Steps of all CPUs together, also of those that are offline.
    pub(crate) const fn total(&self) -> Option<u64> {
        self.total
    }

    /// Steps of a CPU since `before`; `None` where unknown.
    pub fn since(&self, before: &Self, cpu: u32) -> Option<u64> {
        let (now, then) = (self.by_cpu.get(&cpu)?, before.by_cpu.get(&cpu)?);
        Some(now.saturating_sub(*then))
    }

    /// The same, ns.
    pub fn since_ns(&self, before: &Self, cpu: u32) -> Option<u64> {
        self.since(before, cpu).map(|steps| steps.saturating_mul(STEP_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(timer: u64, keys: u64) -> CountTable {
        let text = format!(
            "           CPU0       CPU2       \n  1:          0     {keys}   IO-APIC   1-edge      \
             i8042\nLOC:     {timer}        200   Local timer interrupts\nERR:          0\nno\n"
        );
        CountTable::parse(&text).expect("a head")
    }

    #[test]
    fn what_came_on_a_cpu_stands_by_kind_the_most_frequent_first() {
        let (before, after) = (table(100, 9), table(350, 12));
        let risen = |cpu| after.risen(&before, cpu);
        let rise = |name: &str, count| RisenCount { name: name.to_owned(), count };
        assert_eq!(risen(0), Some(vec![rise("LOC Local timer interrupts", 250)]));
        assert_eq!(risen(2), Some(vec![rise("1 IO-APIC 1-edge i8042", 3)]));
        assert_eq!(risen(1), None, "it is offline");
        let other = CountTable { kinds: Vec::new(), ..before.clone() };
        let new = after.risen(&other, 2).expect("a column");
        assert_eq!(new[0], rise("LOC Local timer interrupts", 200), "new since");
        assert_eq!(before.risen(&after, 0), Some(Vec::new()), "none falls");
    }

    #[test]
    fn a_table_without_descriptions_has_names_alone() {
        let softirqs = |count| CountTable::parse(&format!("  CPU0\n NET_RX: {count}\n RCU: x\n"));
        let risen = softirqs(9).and_then(|now| now.risen(&softirqs(2)?, 0)).expect("counted");
        assert_eq!(risen, [RisenCount { name: "NET_RX".to_owned(), count: 7 }]);
        assert_eq!(CountTable::parse("no head\n"), None);
        assert_eq!(CountTable::parse(""), None);
    }

    const STAT: &str = "cpu  10 0 5 900 3 0 1 70 0 0\ncpu0 5 0 2 450 1 0 0 30 0 0\n\
                        cpu2 5 0 3 450 2 0 1 40 0 0\ncpu11 0\ncpux 1 2 3 4 5 6 7 8\nintr 5 1\n";

    #[test]
    fn steal_is_counted_by_cpu_and_in_all() {
        let (before, later) =
            (StealTicks::parse(STAT), StealTicks::parse(&STAT.replace(" 40 0 0", " 43 0 0")));
        assert_eq!(before.total(), Some(70));
        assert_eq!(
            (later.since(&before, 2), later.since_ns(&before, 2)),
            (Some(3), Some(30_000_000))
        );
        assert_eq!(later.since_ns(&before, 0), Some(0));
        assert_eq!((later.since(&before, 1), later.since(&before, 11)), (None, None));
        assert_eq!(later.since_ns(&StealTicks::default(), 2), None);
    }

    #[test]
    fn this_machine_counts() {
        let root = Root::live();
        let (steal, table) = (StealTicks::read(&root), CountTable::read(&root, "/proc/interrupts"));
        let table = table.expect("every machine has interrupts");
        let cpu = table.cpus[0];
        assert!(StealTicks::read(&root).since_ns(&steal, cpu).is_some());
        let later = CountTable::read(&root, "/proc/interrupts").expect("as before");
        let risen = later.risen(&table, cpu).expect("a column");
        let column = |path| CountTable::read_for(&root, path, cpu).expect("as before");
        let (one, other) = (column("/proc/interrupts"), column("/proc/interrupts"));
        assert!(other.risen(&one, cpu).is_some() && one.kinds.len() <= table.kinds.len());
        assert!(risen.iter().all(|rise| rise.count > 0));
        assert!(column("/proc/softirqs").kinds.iter().all(|kind| kind.description.is_empty()));
    }

    proptest! {
        #[test]
        fn anything_can_be_read(text in ".*(\n.*){0,4}") {
            let _ = (CountTable::parse(&text), StealTicks::parse(&text));
        }
    }
}
