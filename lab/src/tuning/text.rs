//! Texts of settings: which word of one counts, and whether it is what was written.

use punctual_host::CpuFormat;

/// The word that counts of a text: of a choice, the one in brackets or parentheses.
pub fn active(text: &str) -> &str {
    let text = text.trim();
    let between = |open, close| Some(text.split_once(open)?.1.split_once(close)?.0);
    between('[', ']').or_else(|| between('(', ')')).unwrap_or(text)
}

/// Whether the text of the setting at `path` says what was written: the same, the same CPUs in
/// other digits, or a list of controllers that has what was added to it.
pub(super) fn says(path: &str, text: &str, value: &str) -> bool {
    if let Some(controller) = value.strip_prefix('+') {
        return text.split_whitespace().any(|word| word == controller);
    }
    let text = active(text);
    let cpus = |text: &str| CpuFormat::of_file(path)?.parse(text);
    text == value || cpus(text).is_some_and(|now| Some(now) == cpus(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IRQ: &str = "/proc/irq/25/";

    #[test]
    fn cpus_are_compared_by_the_format_of_their_file() {
        let list = |text: &str, value: &str| says(&format!("{IRQ}smp_affinity_list"), text, value);
        assert!(!list("0,2\n", "2") && !list("0,2\n", "02") && !list("1-2\n", "12"));
        assert!(list("0-3\n", "0,1-3") && list("2\n", "2") && !list("10\n", "010,1"));
        let mask = |text: &str, value: &str| says(&format!("{IRQ}smp_affinity"), text, value);
        assert!(mask("0f\n", "f") && mask("00000000,0000000F\n", "f") && !mask("0,2\n", "0-2"));
        assert!(!mask("1,00000000\n", "100000000") && !mask("f\n", "0-3"));
        // What shows no CPUs is a word, digits or not.
        let word = |text: &str, value: &str| says("/proc/sys/vm/stat_interval", text, value);
        assert!(word("10\n", "10") && !word("1,0\n", "10") && !word("A\n", "a"));
        let watchdog = |text: &str| says("/proc/sys/kernel/watchdog_cpumask", text, "2");
        assert!(watchdog("2\n") && !watchdog("0,2\n"));
        let cpuset = |text: &str| says("/sys/fs/cgroup/x/cpuset.cpus", text, "1-3");
        assert!(cpuset("1-3\n") && !cpuset("1,3\n"));
    }
}
