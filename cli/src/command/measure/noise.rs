//! `punctual measure noise`: what takes CPUs away from threads that only spin. Its arguments, and
//! what is shown of a result.
//!
//! As oslat, sysjitter and the kernel's hwlat tracer look for it, in windows with rests between
//! them, so that the machine stays usable.

use std::path::Path;

use anyhow::{Result, bail};
use punctual::RtThread;
use punctual_host::choose::{check_cpus, helper_cpu};
use punctual_host::cpulist::CpuList;
use punctual_host::facts::{MachineFacts, SmiCount};
use punctual_lab::load::Loads;
use punctual_lab::noise::{AtOnce, CpuNoise, NoiseExperiment, NoiseOutcome, Overlaps, WorstGap};
use punctual_os::affinity;

use crate::args::{Detail, RequestedPolicyArgs, RootArgs};
use crate::experiment::{self, Machine, condition_name};
use crate::measuring::{MeasuredBody, Measuring, Outcome, Planned};
use crate::output::OutputArgs;
use crate::view::kinds::head::rate_line;
use crate::view::plots;
use crate::{format, parse};
use punctual_analysis::plot::bins;
use punctual_document::{Block, Figure, Section, Table, numbers, words};
use punctual_plot::axis::Axis;
use punctual_plot::chart::{Chart, ChartSeries, Mark};
use punctual_report::Choice;
use punctual_report::noise::{NoiseBody, lost_share};

/// `punctual measure noise`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The CPUs to measure, as the kernel lists them: 1, 0-3,5 or all [default: all that can be
    /// measured, so that gaps on all CPUs at once are found]
    #[arg(long, short, value_name = "LIST")]
    cpu: Option<String>,
    /// How long to measure, including the rests
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// The shortest gap: two reads of the clock that are this far apart
    #[arg(
        long,
        default_value = "1us",
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    threshold: parse::Duration,
    /// The share of the time to spin, in windows that begin every 97.31 ms; in the rest other tasks
    /// can run
    #[arg(long, default_value = "50%", value_name = "SHARE", value_parser = parse::share)]
    duty: f64,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    /// Loads to run during the measurement, as for 'measure periodic', all at once
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    output: OutputArgs,
    /// Print the result in one line
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    root: RootArgs,
}

impl Measuring for Args {
    const NAME: &'static str = "measure noise";
    type Experiment = NoiseExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn detail(&self) -> Detail {
        Detail::of(self.quiet, false, Detail::Long)
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<NoiseExperiment>> {
        let facts = &machine.measuring;
        let (cpus, choice) = pick(self.cpu.as_deref(), facts)?;
        let [loads] = &self.load.turns()[..] else {
            bail!("--load: measure noise takes one load or several at once, not in turn");
        };
        let experiment = NoiseExperiment {
            cpus: cpus.iter().collect(),
            thread: RtThread::any().with_policy(self.policy.policy()),
            threshold: self.threshold.0,
            duration: self.duration.0,
            duty: self.duty,
            loads: (condition_name(loads), loads.clone()),
            housekeeping: helper_cpu(&cpus, facts).into_iter().collect(),
            tick_hz: facts.kernel.tick_hz.value().copied(),
            smi_cpu: SmiCount::cpu(facts),
        };
        Ok(Planned { experiment, choice })
    }

    fn body(&self, outcome: Outcome<'_, NoiseExperiment>) -> MeasuredBody {
        let (loads, is_whole) = (outcome.load_rows(), outcome.is_whole);
        MeasuredBody::of(NoiseBody::new(outcome.figures, loads, is_whole))
    }
}

/// The CPUs to measure: as requested, else all that this process may use and those that are
/// isolated.
fn pick(requested: Option<&str>, facts: &MachineFacts) -> Result<(CpuList, Choice)> {
    if requested.is_some() {
        return experiment::pick(requested, facts);
    }
    let mine = affinity::get(0).map(|mask| mask.iter().collect()).unwrap_or_default();
    let cpus: CpuList = facts.isolation.isolated().iter().chain::<Vec<u32>>(mine).collect();
    check_cpus(&cpus, facts)?;
    Ok((cpus.clone(), Choice { cpus: cpus.to_string(), why: "all that can be measured".into() }))
}

/// The section: gaps by CPU and by length, those on all CPUs at once, the counts of the kernel.
pub(super) fn shown(body: &NoiseBody) -> Section {
    let noise = &body.noise;
    let threshold = format::period(noise.threshold_ns);
    let chart = drawn(noise).map(|chart| Figure::still("noise-1".to_owned(), chart));
    let mut parts: Vec<Block> = chart.into_iter().collect();
    parts.push(gaps(noise, &threshold));
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
    parts.extend(body.loads.iter().map(|load| Block::words(rate_line(load))));
    parts.push(Block::words(windows(noise)));
    Section { id: "noise", heading: "Gaps in a spin", blocks: parts }
}

/// The most CPUs that are drawn: more cannot be told apart.
const DRAWN: usize = 6;

/// The chart of gaps by length and CPU: of the CPUs that lost most, all in the same bins.
fn drawn(noise: &NoiseOutcome) -> Option<Chart> {
    let mut cpus: Vec<&CpuNoise> = noise.cpus.iter().filter(|cpu| cpu.gaps > 0).collect();
    cpus.sort_by_key(|cpu| (std::cmp::Reverse(cpu.lost_ns), cpu.cpu));
    let left_out = cpus.len().saturating_sub(DRAWN);
    cpus.truncate(DRAWN);
    cpus.sort_by_key(|cpu| cpu.cpu);
    let views: Vec<_> = cpus.iter().map(|cpu| &cpu.histogram).collect();
    let shared = bins(&views, &[]);
    let (first, last) = (*shared.edges_ns.first()?, *shared.edges_ns.last()?);
    let series = cpus.iter().zip(&shared.counts).enumerate().map(|(ink, (cpu, counts))| {
        let values = counts.iter().map(|&count| count as f64).collect();
        let marks = vec![Mark::Steps { edges: shared.edges_ns.clone(), values }];
        ChartSeries { name: format!("CPU {}", cpu.cpu), ink, marks }
    });
    let line = |cpu: &&CpuNoise| {
        format!(
            "CPU {}: {} gaps, half of them at most {}, the longest {}",
            cpu.cpu,
            format::count(cpu.gaps),
            format::ns(cpu.gap_ns.p50),
            worst(cpu.worst)
        )
    };
    let lines: Vec<String> = cpus.iter().map(line).collect();
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!("the {DRAWN} CPUs that lost most; {left_out} more are in the table"));
    }
    Some(Chart {
        title: "Lengths of the gaps".to_owned(),
        titled: false,
        description: format!("{}.", lines.join("; ")),
        size: plots::ALONE,
        x: Axis::log("length of a gap (log)", first, last, plots::ns),
        y: Axis::log("gaps in a bin (log)", 0.7, shared.most as f64 * 1.4, plots::count),
        series: series.collect(),
        notes,
    })
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
            cpu.lost_share.map_or_else(|| "-".to_owned(), lost_share),
            format::ns(cpu.gap_ns.p50),
            format::ns(cpu.gap_ns.p99_9),
            worst(cpu.worst),
        ]
    };
    let caption = format!("Gaps of {threshold} or more");
    Table::new(caption, heads, noise.cpus.iter().map(row).collect()).folded().into()
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

/// A kind of interrupts in a word or two: its name, or its number and the device behind it.
fn interrupt(kind: &str) -> String {
    let mut words = kind.split_ascii_whitespace();
    let first = words.next().unwrap_or_default();
    match words.last().filter(|_| first.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(device) => format!("{first} ({device})"),
        None => first.to_owned(),
    }
}

fn counted(noise: &NoiseOutcome) -> Block {
    let known = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), format::count);
    let row = |cpu: &CpuNoise| {
        let most = cpu.most_often.iter().take(2);
        let most: Vec<String> = most
            .map(|kind| format!("{} {}", interrupt(&kind.name), format::count(kind.count)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_with_a_number_has_its_device() {
        assert_eq!(
            interrupt("36 PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0"),
            "36 (virtio1-req.0)"
        );
        assert_eq!(interrupt("LOC Local timer interrupts"), "LOC");
        assert_eq!(interrupt("9"), "9");
    }
}
