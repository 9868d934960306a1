//! One region of a CPU list: a number or a range, with its stride. Pure.

use super::{CpuList, CpuListError, MAX_CPUS};

/// `start-end:used/group`: of each group of CPUs, the first `used` ones.
pub(super) struct Region {
    start: u32,
    end: u32,
    used: u32,
    group: u32,
}

impl Region {
    pub(super) fn parse(region: &str, last: u32) -> Result<Self, CpuListError> {
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

    pub(super) fn fill(&self, list: &mut CpuList) {
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
