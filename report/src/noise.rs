//! The body of `measure noise`: gaps in a spin, and what they come to in a sentence.
//!
//! Plain data and its words; what spins is the lab's.

use punctual_lab::noise::{AtOnce, CpuNoise, NoiseOutcome, WorstGap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format;
use crate::run::Load;

/// The least time that a CPU has to be spun on before its share is an answer: much of what takes
/// CPUs away comes once a second, such as the kernel's own counters and its watchdogs.
const SPUN_MIN_NS: u64 = 1_000_000_000;

/// The body of `measure noise`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NoiseBody {
    /// The CPU that lost most of its time, its longest gap, and whether gaps came on all CPUs at
    /// once, in a sentence or two; not there where the figures do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// The reason why they do not tell, and what may; not there where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecided: Option<String>,
    /// Time that others took from CPUs, by the gaps in spins.
    pub noise: NoiseOutcome,
    /// Each load's rate during the measurement, and its processes that ended before it.
    pub loads: Vec<Load>,
}

impl NoiseBody {
    /// The gaps with their sentence; `is_whole`: the measurement came to its end.
    pub fn new(noise: NoiseOutcome, loads: Vec<Load>, is_whole: bool) -> Self {
        let (sentence, undecided) = match answer(&noise, is_whole) {
            Ok(sentence) => (Some(sentence), None),
            Err(why) => (None, Some(why)),
        };
        Self { sentence, undecided, noise, loads }
    }

    /// The result in a sentence: the time that CPUs lost, or why that is not known. `None` for a
    /// result of before, which has none.
    pub fn answer(&self) -> Option<String> {
        let open = || self.undecided.as_ref().map(|why| format!("Undecided: {why}"));
        self.sentence.clone().or_else(open)
    }
}

/// The sentence.
///
/// # Errors
/// It ended before its time, or no CPU was spun on for long enough: with the way out.
fn answer(noise: &NoiseOutcome, is_whole: bool) -> Result<String, String> {
    let spun = |ns: u64| format::long(ns as f64);
    let longest_ns = noise.cpus.iter().map(|cpu| cpu.spun_ns).max().unwrap_or(0);
    if !is_whole {
        return Err(format!(
            "it ended before its time, after {} of spinning; measure again.",
            spun(longest_ns)
        ));
    }
    let cpus = || noise.cpus.iter().filter(|cpu| cpu.spun_ns >= SPUN_MIN_NS);
    let lost = |cpu: &CpuNoise| cpu.lost_share.unwrap_or(0.0);
    // Of equal ones the first.
    let most = cpus().reduce(|most, cpu| if lost(cpu) > lost(most) { cpu } else { most });
    let Some(most) = most else {
        let least = SPUN_MIN_NS as f64 / noise.duty;
        let duration = format::argument(least).map(|time| format!(": -d {time}"));
        return Err(format!(
            "no CPU was spun on for {}, but {} at most; measure longer{}",
            spun(SPUN_MIN_NS),
            spun(longest_ns),
            duration.unwrap_or_default()
        ));
    };
    let rank = if cpus().count() > 1 { "most, " } else { "" };
    let text = format!(
        "CPU {} lost {rank}{} of {} spun; {}.",
        most.cpu,
        lost_share(lost(most)),
        spun(most.spun_ns),
        longest(most, cpus())
    );
    let alone = noise.cpus.iter().all(|cpu| cpu.priority.is_some());
    let count = noise.cpus.len();
    let at_once = noise.at_once.as_ref().map(|gaps| format!(" {}", together(gaps, count, alone)));
    Ok(text + &at_once.unwrap_or_default())
}

/// The longest gap of the CPU that lost most, and that of another CPU where it is longer.
fn longest<'c>(most: &CpuNoise, cpus: impl Iterator<Item = &'c CpuNoise>) -> String {
    let length_ns = |cpu: &CpuNoise| cpu.worst.map_or(0, |worst| worst.length_ns);
    let shown = |worst: Option<WorstGap>| format::ns(worst.map(|worst| worst.length_ns as f64));
    let longer =
        cpus.filter(|cpu| length_ns(cpu) > length_ns(most)).max_by_key(|cpu| length_ns(cpu));
    let own = match most.worst {
        Some(_) => format!("longest gap {}", shown(most.worst)),
        None => "no gap".to_owned(),
    };
    match longer {
        Some(other) => format!("{own} (CPU {}: {})", other.cpu, shown(other.worst)),
        None => own,
    }
}

/// The gaps that all of so many CPUs had at once, without those at the kernel's tick. `alone`: no
/// other process could take a CPU.
fn together(gaps: &AtOnce, cpus: usize, alone: bool) -> String {
    let elsewhere = &gaps.elsewhere;
    let source = if alone { "host or firmware" } else { "host, firmware or others" };
    match (elsewhere.count, elsewhere.worst) {
        (0, _) | (_, None) => format!("No gap came on all {cpus} at once."),
        (count, Some(worst)) => format!(
            "Gaps on all {cpus} at once: {}, longest {}: {source}.",
            format::count(count),
            format::ns(Some(worst.length_ns as f64))
        ),
    }
}

/// A share that may be very small, in percent: `0.031 %`.
pub fn lost_share(value: f64) -> String {
    let percent = value * 100.0;
    if percent > 0.0 && percent < 0.95 { format!("{percent:.3} %") } else { format::share(value) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cpu(cpu: u32, spun_ns: u64, lost_ns: u64, longest_ns: Option<u64>) -> Value {
        let worst = longest_ns.map(|ns| json!({ "at_ns": 1, "length_ns": ns }));
        json!({
            "cpu": cpu, "policy": "SCHED_FIFO", "priority": 90, "spun_ns": spun_ns,
            "read_ns": 30.0, "gaps": 9, "lost_ns": lost_ns,
            "lost_share": lost_ns as f64 / spun_ns as f64, "worst": worst,
            "gap_ns": punctual_analysis::summary::SummaryStats::default(),
            "histogram": punctual_analysis::histogram::HistogramView::default(),
            "unlisted": 0, "page_faults": 0, "preempted": 0, "steal_ns": null,
            "interrupts": null, "most_often": []
        })
    }

    fn outcome(cpus: &[Value], at_once: Option<u64>) -> NoiseOutcome {
        let overlaps = |count: u64| {
            let worst = (count > 0).then(|| json!({ "at_ns": 1, "length_ns": 904_400 }));
            json!({ "count": count, "total_ns": count * 1_000, "worst": worst })
        };
        let at_once = at_once.map(|count| {
            json!({ "all": overlaps(count + 7), "tick": overlaps(7), "elsewhere": overlaps(count) })
        });
        let noise = json!({
            "threshold_ns": 1_000, "duty": 0.5, "frame_ns": 97_310_000, "window_ns": 48_655_000,
            "windows": 103, "cpus": cpus, "lengths": [], "at_once": at_once, "smi": null
        });
        serde_json::from_value(noise).expect("an outcome")
    }

    fn words_of(noise: NoiseOutcome, is_whole: bool) -> String {
        NoiseBody::new(noise, Vec::new(), is_whole).answer().expect("a sentence")
    }

    #[test]
    fn the_cpu_that_lost_most_is_named_with_its_longest_gap_and_those_of_all_at_once() {
        let two = [
            cpu(0, 5_000_000_000, 202_500_000, Some(1_368_978)),
            cpu(1, 5_000_000_000, 97_000_000, Some(2_349_636)),
        ];
        assert_eq!(
            words_of(outcome(&two, Some(1_529)), true).replace('\u{a0}', " "),
            "CPU 0 lost most, 4.0 % of 5.0 s spun; longest gap 1.37 ms (CPU 1: 2.35 ms). Gaps on \
             all 2 at once: 1 529, longest 904 µs: host or firmware."
        );
        assert!(words_of(outcome(&two, Some(0)), true).ends_with(" No gap came on all 2 at once."));
        let mut shared = two.clone();
        shared[1]["priority"] = Value::Null;
        assert!(words_of(outcome(&shared, Some(3)), true).ends_with(": host, firmware or others."));
        // One CPU has nothing at once.
        assert_eq!(
            words_of(outcome(&[cpu(3, 5_000_000_000, 1_550_000, Some(61_000))], None), true),
            "CPU 3 lost 0.031 % of 5.0 s spun; longest gap 61.0 µs."
        );
        assert_eq!(
            words_of(outcome(&[cpu(3, 5_000_000_000, 0, None)], None), true),
            "CPU 3 lost 0 % of 5.0 s spun; no gap."
        );
    }

    #[test]
    fn what_is_too_short_or_ended_early_is_undecided() {
        let short = outcome(&[cpu(0, 300_000_000, 9, Some(9)), cpu(1, 200_000_000, 9, None)], None);
        let body = NoiseBody::new(short.clone(), Vec::new(), true);
        assert_eq!(body.sentence, None);
        assert_eq!(
            body.answer().expect("why"),
            "Undecided: no CPU was spun on for 1.0 s, but 300 ms at most; measure longer: -d 2s"
        );
        let whole = outcome(&[cpu(0, 5_000_000_000, 9, Some(9))], None);
        assert!(
            words_of(whole.clone(), false).starts_with("Undecided: it ended before its time, ")
        );
        assert!(words_of(whole, true).starts_with("CPU 0 lost "));
        // One that was spun on for long enough is enough.
        let cpus = [cpu(0, 1_000_000_000, 9, Some(9)), cpu(1, 200_000_000, 100_000, None)];
        assert!(words_of(outcome(&cpus, None), true).starts_with("CPU 0 lost "));
        assert!(words_of(outcome(&[], None), true).starts_with("Undecided: "));
    }

    #[test]
    fn the_longest_sentence_has_room_in_two_lines() {
        let cpus = [
            cpu(127, 86_400_000_000_000, 12_000_000_000_000, Some(136_897_800)),
            cpu(126, 86_400_000_000_000, 11_000_000_000_000, Some(234_963_600)),
        ];
        let text = words_of(outcome(&cpus, Some(123_456_789)), true);
        let (mut lines, mut columns) = (1, 0);
        for word in text.split(' ').map(|word| word.chars().count()) {
            (lines, columns) = match columns + 1 + word {
                more if columns > 0 && more <= 80 => (lines, more),
                _ => (lines + usize::from(columns > 0), word),
            };
        }
        assert_eq!(lines, 2, "{text}");
    }
}
