//! What `measure noise` gives: gaps by CPU, how long they were, what came on all CPUs at once, and
//! what the kernel counted meanwhile.

use punctual_document::{Block, Section, Table, numbers, words};
use punctual_lab::noise::{AtOnce, CpuNoise, NoiseOutcome, Overlaps, WorstGap};
use punctual_report::measured::NoiseBody;

use super::rate;
use crate::format;

/// Gaps by CPU and by length, those on all CPUs at once, and what the kernel counted.
pub(super) fn shown(body: &NoiseBody) -> Section {
    let noise = &body.noise;
    let threshold = format::period(noise.threshold_ns);
    let mut parts = vec![gaps(noise, &threshold)];
    if !noise.lengths.is_empty() {
        parts.push(lengths(noise));
    }
    let alone = noise.cpus.iter().all(|cpu| cpu.priority.is_some());
    parts.extend(noise.at_once.as_ref().map(|overlaps| at_once(overlaps, alone)));
    parts.push(counted(noise));
    parts.extend(noise.smi.map(|count| {
        Block::words(format!(
            "the firmware interrupted the machine {} times (system management interrupts)",
            format::count(count)
        ))
    }));
    parts.extend(body.loads.iter().map(|load| Block::words(rate(load))));
    parts.push(Block::words(windows(noise)));
    Section { id: "noise", heading: "Gaps in a spin", blocks: parts }
}

fn gaps(noise: &NoiseOutcome, threshold: &str) -> Block {
    let heads = [
        words("CPU"),
        numbers("gaps"),
        numbers("per second"),
        numbers("lost"),
        numbers("share"),
        numbers("median"),
        numbers("1 in 1000"),
        numbers("worst"),
    ];
    let row = |cpu: &CpuNoise| {
        let a_second = cpu.gaps as f64 / (cpu.spun_ns as f64 / 1e9);
        vec![
            cpu.cpu.to_string(),
            format::count(cpu.gaps),
            if cpu.spun_ns > 0 { format::rate(a_second) } else { "-".to_owned() },
            format::ns(Some(cpu.lost_ns as f64)),
            cpu.lost_share.map_or_else(|| "-".to_owned(), share),
            format::ns(cpu.gap_ns.p50),
            format::ns(cpu.gap_ns.p99_9),
            worst(cpu.worst),
        ]
    };
    let caption = format!("Gaps of {threshold} or more");
    Table::new(caption, heads, noise.cpus.iter().map(row).collect()).folded().into()
}

/// A share that may be very small: `0.031 %`.
fn share(value: f64) -> String {
    let percent = value * 100.0;
    if percent > 0.0 && percent < 0.95 { format!("{percent:.3} %") } else { format::share(value) }
}

fn worst(worst: Option<WorstGap>) -> String {
    format::ns(worst.map(|worst| worst.length_ns as f64))
}

fn lengths(noise: &NoiseOutcome) -> Block {
    let mut heads = vec![words("from"), numbers("to below")];
    heads.extend(noise.cpus.iter().map(|cpu| numbers(&format!("CPU {}", cpu.cpu))));
    let rows = noise.lengths.iter().map(|row| {
        let mut cells = vec![format::period(row.from_ns), format::period(row.to_ns)];
        cells.extend(row.counts.iter().map(|&count| format::count(count)));
        cells
    });
    Table::new("Lengths of the gaps", heads, rows.collect()).folded().into()
}

/// `alone`: no other process could take a CPU.
fn at_once(gaps: &AtOnce, alone: bool) -> Block {
    let row = |name: &str, overlaps: &Overlaps| {
        let at = overlaps
            .worst
            .map_or_else(|| "-".to_owned(), |worst| format!("{:.6} s", worst.at_ns as f64 / 1e9));
        let total = format::ns(Some(overlaps.total_ns as f64));
        vec![name.to_owned(), format::count(overlaps.count), total, worst(overlaps.worst), at]
    };
    let mut rows = Vec::new();
    rows.extend(gaps.tick.as_ref().map(|tick| row("at the kernel's tick", tick)));
    let elsewhere =
        if alone { "elsewhere: host or firmware" } else { "elsewhere: host, firmware, others" };
    rows.push(row(elsewhere, &gaps.elsewhere));
    let heads = [
        words("where"),
        numbers("gaps"),
        numbers("total"),
        numbers("longest"),
        numbers("at (CLOCK_MONOTONIC)"),
    ];
    Table::new("Simultaneous gaps on all CPUs", heads, rows).into()
}

fn counted(noise: &NoiseOutcome) -> Block {
    let known = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), format::count);
    let row = |cpu: &CpuNoise| {
        let most = cpu.most_often.iter().take(2);
        let most: Vec<String> = most
            .map(|kind| {
                format!(
                    "{} {}",
                    kind.name.split(' ').next().unwrap_or(""),
                    format::count(kind.count)
                )
            })
            .collect();
        vec![
            cpu.cpu.to_string(),
            format::ns(cpu.steal_ns.map(|ns| ns as f64)),
            known(cpu.interrupts),
            format::plain(&most.join(", ")),
            format::count(cpu.preempted),
            format::count(cpu.page_faults),
        ]
    };
    let heads = [
        words("CPU"),
        numbers("steal"),
        numbers("interrupts"),
        words("most often"),
        numbers("preempted"),
        numbers("page faults"),
    ];
    let caption = "Kernel counters during the measurement; steal and interrupts include the rests";
    Table::new(caption, heads, noise.cpus.iter().map(row).collect()).folded().into()
}

fn policy(cpu: &CpuNoise) -> String {
    cpu.priority.map_or_else(|| cpu.policy.clone(), |priority| format!("{} {priority}", cpu.policy))
}

fn windows(noise: &NoiseOutcome) -> String {
    // None where every read came a gap after the one before it.
    let reads = noise.cpus.iter().filter_map(|cpu| cpu.read_ns).reduce(f64::max);
    let reads = reads.map_or_else(String::new, |read_ns| {
        format!("; the clock is read every {}", format::ns(Some(read_ns)))
    });
    let unlisted: u64 = noise.cpus.iter().map(|cpu| cpu.unlisted).sum();
    let unlisted = match unlisted {
        0 => String::new(),
        count => format!(
            "; {} gaps did not fit in memory: they are counted, but missing in quantiles and \
             lengths",
            format::count(count)
        ),
    };
    let mut policies: Vec<String> = noise.cpus.iter().map(policy).collect();
    policies.dedup();
    format!(
        "{}, spun for {} of each {}, {} windows{reads}{unlisted}",
        policies.join(", "),
        format::ns(Some(noise.window_ns as f64)),
        format::ns(Some(noise.frame_ns as f64)),
        format::count(noise.windows),
    )
}
