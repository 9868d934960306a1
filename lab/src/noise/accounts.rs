//! What the kernel and the firmware counted meanwhile: steal, interrupts, system management
//! interrupts.
//!
//! Reads through the root of the machine's facts; what cannot be read is unknown, not zero.

use std::collections::HashMap;

use punctual_host::root::{Read, Root};

use super::Interrupt;
use crate::experiment::StealTicks;

/// MSR_SMI_COUNT (Intel SDM volume 4).
const SMI_COUNT: u32 = 0x34;
/// Kinds of interrupts that are named for a CPU, at most.
const KINDS_MAX: usize = 5;

/// The counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Accounts {
    steal: StealTicks,
    /// By kind and CPU.
    interrupts: Option<HashMap<String, HashMap<u32, u64>>>,
    smi: Option<u64>,
}

impl Accounts {
    /// Reads them; the firmware's of `smi_cpu`, where the machine counts them.
    pub(super) fn read(root: &Root, smi_cpu: Option<u32>) -> Self {
        let text = |read: Read| if let Read::Text(text) = read { Some(text) } else { None };
        let smi = smi_cpu.and_then(|cpu| text(root.read_msr(cpu, SMI_COUNT)));
        Self {
            steal: StealTicks::read(root),
            interrupts: text(root.read("/proc/interrupts")).and_then(|text| interrupts(&text)),
            smi: smi.and_then(|text| text.trim().parse().ok()),
        }
    }

    /// What the host took from a CPU since `before`, ns.
    pub(super) fn steal_ns(&self, before: &Self, cpu: u32) -> Option<u64> {
        self.steal.since_ns(&before.steal, cpu)
    }

    /// The interrupts of a CPU since `before`, and the kinds that came most often.
    pub(super) fn interrupts(&self, before: &Self, cpu: u32) -> Option<(u64, Vec<Interrupt>)> {
        let (now, then) = (self.interrupts.as_ref()?, before.interrupts.as_ref()?);
        let difference = |name: &String, counts: &HashMap<u32, u64>| {
            let earlier = then.get(name).and_then(|counts| counts.get(&cpu)).unwrap_or(&0);
            let count = counts.get(&cpu)?.saturating_sub(*earlier);
            (count > 0).then(|| Interrupt { name: name.clone(), count })
        };
        let mut kinds: Vec<Interrupt> =
            now.iter().filter_map(|(name, counts)| difference(name, counts)).collect();
        kinds.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        let sum = kinds.iter().map(|kind| kind.count).sum();
        kinds.truncate(KINDS_MAX);
        Some((sum, kinds))
    }

    /// The firmware's interrupts since `before`.
    pub(super) fn smi(&self, before: &Self) -> Option<u64> {
        Some(self.smi?.saturating_sub(before.smi?))
    }
}

/// By kind and CPU: a head that names the online CPUs, then a line a kind (proc_interrupts(5)).
fn interrupts(text: &str) -> Option<HashMap<String, HashMap<u32, u64>>> {
    let mut lines = text.lines();
    let head = lines.next()?.split_ascii_whitespace();
    let cpus: Vec<u32> =
        head.map(|name| name.strip_prefix("CPU")?.parse().ok()).collect::<Option<_>>()?;
    let line = |line: &str| {
        let (label, rest) = line.split_once(':')?;
        let mut words = rest.split_ascii_whitespace().peekable();
        let mut counts = HashMap::new();
        for &cpu in &cpus {
            // Lines of all CPUs together have fewer.
            let Some(count) = words.peek().and_then(|word| word.parse().ok()) else { break };
            words.next();
            counts.insert(cpu, count);
        }
        let name = std::iter::once(label.trim()).chain(words).collect::<Vec<_>>().join(" ");
        (counts.len() == cpus.len()).then_some((name, counts))
    };
    Some(lines.filter_map(line).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(timer: u64) -> String {
        format!(
            "           CPU0       CPU2       \n  1:          0          9   IO-APIC   1-edge      \
             i8042\nLOC:       {timer}        200   Local timer interrupts\nERR:          0\n"
        )
    }

    #[test]
    fn interrupts_are_told_by_cpu_and_kind_the_most_frequent_first() {
        let at = |timer, keys: &str| {
            let text = table(timer).replace("          9 ", keys);
            Accounts { interrupts: interrupts(&text), ..Accounts::default() }
        };
        let (before, after) = (at(100, "          9 "), at(350, "         12 "));
        let (sum, kinds) = after.interrupts(&before, 0).expect("counted");
        let timer = Interrupt { name: "LOC Local timer interrupts".to_owned(), count: 250 };
        assert_eq!((sum, kinds), (250, vec![timer]));
        let (sum, kinds) = after.interrupts(&before, 2).expect("counted");
        assert_eq!((sum, kinds[0].name.as_str()), (3, "1 IO-APIC 1-edge i8042"));
        assert_eq!(after.interrupts(&before, 1).expect("counted"), (0, vec![]));
        assert_eq!(interrupts("no head\n"), None);
    }

    #[test]
    fn this_machine_counts() {
        let root = Root::live();
        let before = Accounts::read(&root, None);
        let after = Accounts::read(&root, None);
        let cpu = punctual_os::affinity::get(0).expect("own").iter().next().expect("one");
        assert!(after.steal_ns(&before, cpu).is_some());
        assert_eq!(after.smi(&before), None);
    }

    proptest! {
        #[test]
        fn anything_can_be_read(text in ".*(\n.*){0,4}") {
            let _ = interrupts(&text);
        }
    }
}
