//! CPU lists as the kernel writes and reads them: `0-3,5`, `0-15:2/4`, `all`, `N`.
//!
//! Pure and total: any text gives a list or an error, in bounded time and memory. The grammar is
//! that of `bitmap_parselist` (Linux, `lib/bitmap-str.c`; admin-guide/kernel-parameters, "cpu
//! lists"), except that junk between regions is refused here.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// As many CPUs as a list can hold: the largest `NR_CPUS` that the kernel can be built with.
pub const MAX_CPUS: u32 = 8192;

/// The longest text that is looked at, in bytes; a list of every second CPU needs a third of it.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// A set of CPU numbers, each below [`MAX_CPUS`], shown as the kernel shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct CpuList {
    /// Bit `cpu % 64` of word `cpu / 64`; the last word is never zero.
    words: Vec<u64>,
}

/// Why a text is no CPU list.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CpuListError {
    /// Not the grammar.
    #[error("'{region}' is not a CPU list; write numbers and ranges such as 0-3,5")]
    Syntax {
        /// The part that was not understood.
        region: String,
    },
    /// A range that ends before it starts.
    #[error("the range '{region}' ends before it starts")]
    Backwards {
        /// The range.
        region: String,
    },
    /// A stride that is empty or longer than its group.
    #[error("the stride in '{region}' must be used/group with used <= group and group > 0")]
    Stride {
        /// The range with its stride.
        region: String,
    },
    /// A CPU that cannot exist.
    #[error("CPU {cpu} is beyond the last CPU, {last}")]
    Beyond {
        /// The CPU that was named.
        cpu: u64,
        /// The last one there can be.
        last: u32,
    },
    /// More text than any list needs.
    #[error("a CPU list of {bytes} bytes is too long")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

impl CpuList {
    /// No CPU.
    pub fn new() -> Self {
        Self::default()
    }

    /// One CPU; none if it is not below [`MAX_CPUS`].
    pub fn single(cpu: u32) -> Self {
        let mut list = Self::new();
        list.insert(cpu);
        list
    }

    /// Reads a list. `last` is the last CPU there can be: what `N` and `all` mean, and the bound of
    /// every number. An empty text is an empty list; a newline ends the text, as for the kernel.
    ///
    /// # Errors
    /// Says which part is wrong; as for the kernel, one wrong part makes the whole list wrong.
    pub fn parse(text: &str, last: u32) -> Result<Self, CpuListError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(CpuListError::TooLong { bytes: text.len() });
        }
        let last = last.min(MAX_CPUS - 1);
        let text = text.split(['\n', '\0']).next().unwrap_or_default();
        let mut list = Self::new();
        let separator = |c: char| c == ',' || c.is_ascii_whitespace();
        for region in text.split(separator).filter(|region| !region.is_empty()) {
            Region::parse(region, last)?.fill(&mut list);
        }
        Ok(list)
    }

    /// Adds a CPU; one that is not below [`MAX_CPUS`] is left out.
    pub fn insert(&mut self, cpu: u32) {
        if cpu >= MAX_CPUS {
            return;
        }
        let word = (cpu / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (cpu % 64);
    }

    /// True where the CPU is in the list.
    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get((cpu / 64) as usize).is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// The number of CPUs.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// True for an empty list.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        (0..self.words.len() as u32 * 64).filter(|&cpu| self.contains(cpu))
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<u32> {
        self.iter().next()
    }

    /// The highest CPU.
    pub fn last(&self) -> Option<u32> {
        self.iter().next_back()
    }

    /// CPUs in either list.
    #[must_use]
    pub fn union(&self, cpus: &Self) -> Self {
        self.iter().chain(cpus.iter()).collect()
    }

    /// CPUs in both lists.
    #[must_use]
    pub fn intersection(&self, cpus: &Self) -> Self {
        self.iter().filter(|&cpu| cpus.contains(cpu)).collect()
    }

    /// CPUs in this list that are not in the other.
    #[must_use]
    pub fn difference(&self, cpus: &Self) -> Self {
        self.iter().filter(|&cpu| !cpus.contains(cpu)).collect()
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut list = Self::new();
        for cpu in cpus {
            list.insert(cpu);
        }
        list
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut comma = "";
        while let Some(start) = cpus.next() {
            let mut end = start;
            while let Some(next) = cpus.next_if_eq(&(end + 1)) {
                end = next;
            }
            if start == end {
                write!(f, "{comma}{start}")?;
            } else {
                write!(f, "{comma}{start}-{end}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl Serialize for CpuList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text, MAX_CPUS - 1).map_err(D::Error::custom)
    }
}

impl JsonSchema for CpuList {
    fn schema_name() -> Cow<'static, str> {
        "CpuList".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "description": "CPUs as the kernel lists them: 0-3,5"})
    }
}

/// `start-end:used/group`: of each group of CPUs, the first `used` ones.
struct Region {
    start: u32,
    end: u32,
    used: u32,
    group: u32,
}

impl Region {
    fn parse(region: &str, last: u32) -> Result<Self, CpuListError> {
        let syntax = || CpuListError::Syntax { region: region.chars().take(40).collect() };
        let number = |text: &str| match text {
            "N" => Ok(u64::from(last)),
            _ if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) => Err(syntax()),
            _ => text.parse::<u64>().map_err(|_| syntax()),
        };
        let (range, stride) = match region.split_once(':') {
            Some((range, stride)) => (range, Some(stride)),
            None => (region, None),
        };
        let (start, end) = if range.eq_ignore_ascii_case("all") {
            (0, u64::from(last))
        } else if let Some((start, end)) = range.split_once('-') {
            (number(start)?, number(end)?)
        } else if stride.is_none() {
            let cpu = number(range)?;
            (cpu, cpu)
        } else {
            return Err(syntax());
        };
        if start > end {
            return Err(CpuListError::Backwards { region: region.to_owned() });
        }
        let end = u32::try_from(end).ok().filter(|&end| end <= last);
        let Some(end) = end else {
            let cpu = if start > u64::from(last) { start } else { number_of_end(range) };
            return Err(CpuListError::Beyond { cpu, last });
        };
        let (used, group) = match stride {
            None => (u64::from(end) + 1, u64::from(end) + 1),
            Some(stride) => {
                let (used, group) = stride.split_once('/').ok_or_else(syntax)?;
                (number(used)?, number(group)?)
            }
        };
        if group == 0 || used > group {
            return Err(CpuListError::Stride { region: region.to_owned() });
        }
        // A group that reaches past the end is the same as one that ends there.
        let bound = |n: u64| n.min(u64::from(MAX_CPUS)) as u32;
        Ok(Self { start: start as u32, end, used: bound(used), group: bound(group) })
    }

    fn fill(&self, list: &mut CpuList) {
        for start in (self.start..=self.end).step_by(self.group as usize) {
            for cpu in (start..=self.end).take(self.used as usize) {
                list.insert(cpu);
            }
        }
    }
}

/// The end of a range that was already read once, for a message.
fn number_of_end(range: &str) -> u64 {
    range.rsplit('-').next().and_then(|end| end.parse().ok()).unwrap_or(u64::MAX)
}

/// Bits of one group of a mask.
const GROUP: u32 = 32;

/// The format in which a file of the kernel shows CPUs: `0,2` is CPUs 0 and 2 in a list, and CPU 1
/// in a mask, so that a text says nothing without its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CpuFormat {
    /// Numbers and ranges, `0-3,5`.
    List,
    /// Hexadecimal bits in groups of 32, the highest first, `3,00000000`.
    Mask,
}

impl CpuFormat {
    /// That of the file at `path`, by the name that the kernel gives such files; `None` for one
    /// that shows no CPUs, or that is not known.
    pub fn of_file(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        match name {
            // A list in spite of its name: proc_do_large_bitmap.
            "watchdog_cpumask" | "cpuset.cpus" | "cpuset.cpus.exclusive" | "cpuset.mems" => {
                Some(Self::List)
            }
            _ if name.ends_with("_list") => Some(Self::List),
            "smp_affinity"
            | "default_smp_affinity"
            | "effective_affinity"
            | "affinity_hint"
            | "cpumask"
            | "tracing_cpumask"
            | "rps_cpus"
            | "xps_cpus" => Some(Self::Mask),
            _ => None,
        }
    }

    /// The CPUs of a text in this format; `None` for one that is not.
    pub fn parse(self, text: &str) -> Option<CpuList> {
        match self {
            Self::List => CpuList::parse(text, MAX_CPUS - 1).ok(),
            Self::Mask => mask(text.trim()),
        }
    }

    /// The CPUs as a text in this format.
    pub fn show(self, cpus: &CpuList) -> String {
        match self {
            Self::List => cpus.to_string(),
            Self::Mask => {
                let highest = cpus.last().unwrap_or(0) / GROUP;
                let bits = |group: u32| {
                    let set = |bit: u32| u32::from(cpus.contains(group * GROUP + bit)) << bit;
                    (0..GROUP).map(set).sum::<u32>()
                };
                let first = format!("{:x}", bits(highest));
                (0..highest).rev().fold(first, |text, group| format!("{text},{:08x}", bits(group)))
            }
        }
    }
}

/// Groups of up to 32 bits: leading zeros of a group may be left out, as for the kernel.
fn mask(text: &str) -> Option<CpuList> {
    let mut cpus = CpuList::new();
    for (group, digits) in (0..).zip(text.rsplit(',')) {
        let is_group = (1..=8).contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            && group < MAX_CPUS / GROUP;
        let bits = is_group.then(|| u32::from_str_radix(digits, 16).ok()).flatten()?;
        let set = (0..GROUP).filter(|bit| bits & (1 << bit) != 0);
        set.for_each(|bit| cpus.insert(group * GROUP + bit));
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn show(text: &str, last: u32) -> String {
        match CpuList::parse(text, last) {
            Ok(list) => list.to_string(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn reads_the_kernels_grammar() {
        for (text, shown) in [
            ("", ""),
            ("\n", ""),
            ("0-3,5\n", "0-3,5"),
            ("5,0,1,2,3", "0-3,5"),
            ("all", "0-15"),
            ("ALL", "0-15"),
            ("N", "15"),
            ("8-N", "8-15"),
            ("0-15:2/4", "0-1,4-5,8-9,12-13"),
            ("all:1/2", "0,2,4,6,8,10,12,14"),
            ("1-7:3/100", "1-3"),
            (",,1,,2, 3\t4", "1-4"),
            ("0-3:0/4", ""),
        ] {
            assert_eq!(show(text, 15), shown, "{text:?}");
        }
    }

    #[test]
    fn refuses_what_the_kernel_refuses() {
        for text in ["-", "1-", "-1", "a", "(N/2)-N", "1:1/2", "0-3:1", "0-3:/", "0x3", "+1"] {
            assert!(matches!(CpuList::parse(text, 15), Err(CpuListError::Syntax { .. })), "{text}");
        }
        assert_eq!(show("3-1", 15), "error: the range '3-1' ends before it starts");
        assert!(matches!(CpuList::parse("0-3:3/2", 15), Err(CpuListError::Stride { .. })));
        assert!(matches!(CpuList::parse("0-3:0/0", 15), Err(CpuListError::Stride { .. })));
        assert_eq!(show("2,16-31", 3), "error: CPU 16 is beyond the last CPU, 3");
        assert_eq!(show("0-4", 3), "error: CPU 4 is beyond the last CPU, 3");
        assert!(CpuList::parse("0-18446744073709551616", 3).is_err());
        assert!(CpuList::parse(&"0,".repeat(40_000), 3).is_err());
    }

    #[test]
    fn algebra() {
        let a = CpuList::parse("0-3", 15).unwrap();
        let b = CpuList::parse("2-5", 15).unwrap();
        assert_eq!(a.union(&b).to_string(), "0-5");
        assert_eq!(a.intersection(&b).to_string(), "2-3");
        assert_eq!(a.difference(&b).to_string(), "0-1");
        assert_eq!((a.first(), a.last(), a.len()), (Some(0), Some(3), 4));
        assert!(a.difference(&a).is_empty());
        assert_eq!(a.difference(&a), CpuList::new());
    }

    proptest! {
        #[test]
        fn shown_lists_read_back(cpus in proptest::collection::btree_set(0u32..600, 0..80)) {
            let list: CpuList = cpus.iter().copied().collect();
            prop_assert_eq!(list.len(), cpus.len());
            prop_assert!(list.iter().eq(cpus.iter().copied()));
            prop_assert_eq!(CpuList::parse(&list.to_string(), 599), Ok(list));
        }

        #[test]
        fn any_text_is_a_list_or_an_error(text in "[0-9aNl:/,\\- \n]{0,40}", last in 0u32..10_000) {
            if let Ok(list) = CpuList::parse(&text, last) {
                prop_assert!(list.last().is_none_or(|cpu| cpu <= last));
            }
        }

        #[test]
        fn any_unicode_is_survived(text in ".*") {
            let _ = CpuList::parse(&text, 63);
        }
    }

    #[test]
    fn a_mask_has_groups_of_32_bits_and_a_list_has_none() {
        for (text, shown, again) in [
            ("f\n", "0-3", "f"),
            ("0000000f", "0-3", "f"),
            ("0F", "0-3", "f"),
            ("3,00000000", "32-33", "3,00000000"),
            ("0,2", "1", "2"),
            ("1,0", "32", "1,00000000"),
            ("00000000", "", "0"),
        ] {
            let cpus = CpuFormat::Mask.parse(text).expect("a mask");
            assert_eq!((cpus.to_string().as_str(), text), (shown, text));
            assert_eq!(CpuFormat::Mask.show(&cpus), again, "{text}");
        }
        for text in ["", "g", "-1", "0x3", "123456789", "1,,2", "0-3"] {
            assert_eq!(CpuFormat::Mask.parse(text), None, "{text}");
        }
        let list = CpuFormat::List.parse("0,2\n").expect("a list");
        assert_eq!((list.to_string(), CpuFormat::List.show(&list)), ("0,2".into(), "0,2".into()));
    }

    #[test]
    fn a_file_is_known_by_its_name() {
        for (path, format) in [
            ("/proc/irq/25/smp_affinity_list", Some(CpuFormat::List)),
            ("/proc/irq/25/smp_affinity", Some(CpuFormat::Mask)),
            ("/proc/irq/default_smp_affinity", Some(CpuFormat::Mask)),
            ("/proc/sys/kernel/watchdog_cpumask", Some(CpuFormat::List)),
            ("/sys/devices/virtual/workqueue/writeback/cpumask", Some(CpuFormat::Mask)),
            ("/sys/class/net/eth0/queues/rx-0/rps_cpus", Some(CpuFormat::Mask)),
            ("/sys/fs/cgroup/x/cpuset.cpus", Some(CpuFormat::List)),
            ("/sys/fs/cgroup/x/cpuset.cpus.partition", None),
            ("/proc/sys/vm/stat_interval", None),
        ] {
            assert_eq!(CpuFormat::of_file(path), format, "{path}");
        }
    }
}
