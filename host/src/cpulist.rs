//! CPU lists as the kernel writes and reads them: `0-3,5`, `0-15:2/4`, `all`, `N`.
//!
//! Pure and total: any text gives a list or an error, in bounded time and memory. The grammar is
//! that of `bitmap_parselist` (Linux, `lib/bitmap-str.c`; admin-guide/kernel-parameters, "cpu
//! lists"), except that junk between regions is refused here.

mod format;
mod region;

pub use format::CpuFormat;
use region::Region;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::borrow::Cow;
use std::fmt;
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

    /// Whether the CPU is in the list.
    pub fn contains(&self, cpu: u32) -> bool {
        self.words.get((cpu / 64) as usize).is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    /// How many CPUs.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
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
    pub fn union(&self, other: &Self) -> Self {
        self.iter().chain(other.iter()).collect()
    }

    /// CPUs in both lists.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.iter().filter(|&cpu| other.contains(cpu)).collect()
    }

    /// CPUs in this list that are not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.iter().filter(|&cpu| !other.contains(cpu)).collect()
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

#[cfg(test)]
mod tests;
