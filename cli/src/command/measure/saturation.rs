//! `punctual measure saturation`: the highest frequency of stimuli that is served. Its
//! arguments, and what is shown of a result.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use punctual_analysis::plain::concise;
use punctual_document::{Block, Section, Table, numbers, words};
use punctual_lab::response::{Competitor, SourceName};
use punctual_lab::saturation::{
    BackgroundRow, SaturationExperiment, SaturationOutcome, SaturationRow, SearchEnd, Stage2,
    TrialRow,
};
use punctual_plot::axis::{Axis, Tick};
use punctual_plot::chart::{Chart, ChartSeries, Mark, NamedPoint};
use punctual_report::measured::SaturationBody;

use crate::args::RootArgs;
use crate::experiment::{self, Machine};
use crate::measuring::{
    MeasuredBody, Measuring, Outcome, Planned, StageArgs, lost_source, stimulus_cpu,
};
use crate::output::OutputArgs;
use crate::stored::STATE;
use crate::unthrottled::Unthrottled;
use crate::view::plots::{self, ONE_OF_TWO};
use crate::{format, parse};

/// `punctual measure saturation`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What raises stimuli, as for 'measure response'; not the kernel's timer
    #[arg(long, default_value_t)]
    source: SourceName,
    /// The CPU of both stages and of the background [default: an isolated one, else the last that
    /// is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    /// The CPU that raises stimuli, by polling the clock: another one [default: another core]
    #[arg(long, value_name = "CPU")]
    stimulus_cpu: Option<String>,
    /// How long to search at most: half of it unloaded, half with polygons on the same CPU; thirds
    /// with --competitor, whose search is one more
    #[arg(
        long,
        short,
        default_value = "2min",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    #[command(flatten)]
    stages: StageArgs,
    /// Switch real-time throttling, and the fair server of --cpu, off meanwhile, to find the
    /// frequency that leaves nothing for others. Dangerous: in trials of 2.5 s two CPUs run nothing
    /// else, and a machine with two hangs that long. Root; a process of its own puts the settings
    /// back, also where this one is killed. Tested in virtual machines only; that this is one is
    /// not checked
    #[arg(long)]
    unsafe_no_throttle: bool,
    /// The directory of the journal of --unsafe-no-throttle, which 'punctual tune revert' reads
    #[arg(long, value_name = "DIR", default_value = STATE)]
    state: PathBuf,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Time after which throttling is put back at the latest: well after the measurement should have
/// ended.
fn limit(args: &Args) -> Duration {
    const AFTER: Duration = Duration::from_secs(60);
    let measured = args.duration.0.as_ns().max(0).unsigned_abs();
    Duration::from_nanos(measured.saturating_mul(2)).saturating_add(AFTER)
}

impl Measuring for Args {
    const NAME: &'static str = "measure saturation";
    type Experiment = SaturationExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<SaturationExperiment>> {
        let facts = &machine.measuring;
        let (cpu, choice) = experiment::one_cpu(self.cpu.as_deref(), facts, "both stages run")?;
        let stimulus_cpu = stimulus_cpu(self.stimulus_cpu.as_deref(), cpu, facts)?;
        if stimulus_cpu == cpu {
            bail!("saturation needs two CPUs: one raises stimuli by polling, another answers them");
        }
        if self.source.row().by_kernel {
            bail!("--source {}: the kernel raises no stimuli at a chosen load", self.source);
        }
        let experiment = SaturationExperiment {
            source: self.source.clone(),
            cpu,
            stimulus_cpu,
            first: self.stages.first(),
            second: self.stages.second(),
            competitor: self.stages.competitor(),
            duration: self.duration.0,
            unthrottled: self.unsafe_no_throttle,
        };
        Ok(Planned { experiment, choice })
    }

    fn unthrottle(&self, experiment: &SaturationExperiment) -> Result<Option<Unthrottled>> {
        let wanted = experiment.unthrottled;
        wanted.then(|| Unthrottled::begin(&self.state, experiment.cpu, limit(self))).transpose()
    }

    fn body(&self, outcome: Outcome<'_, SaturationExperiment>) -> MeasuredBody {
        let saturation = outcome.figures;
        let warning = saturation.unthrottled.then(|| {
            let cpu = saturation.cpu;
            format!("real-time throttling, and the fair server of CPU {cpu}, were off")
        });
        let warnings = warning.into_iter().collect();
        let trouble = saturation.lost.is_some().then(lost_source);
        let body = SaturationBody { saturation };
        MeasuredBody { warnings, trouble, ..MeasuredBody::of(body) }
    }
}

/// The highest frequencies, what is left for others, and the trials.
pub(super) fn shown(body: &SaturationBody) -> Section {
    let outcome = &body.saturation;
    let mut parts = charts(outcome);
    parts.push(frequencies(outcome));
    parts.extend(outcome.background.as_ref().map(|row| Block::words(background(row))));
    parts.push(trials(outcome));
    let lost = |why: &String| format!("the source was lost: {}", format::plain(why));
    parts.extend(outcome.lost.as_ref().map(lost).map(Block::words));
    parts.push(Block::words(about(outcome)));
    Section { id: "saturation", heading: "Highest frequencies", blocks: parts }
}

fn hz(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |hz| format!("{:.2} kHz", hz / 1e3))
}

/// A frequency in kHz, without its unit.
fn khz(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |hz| format!("{:.2}", hz / 1e3))
}

/// The axes that all charts of a result share: its frequencies, its losses and its latest answers.
struct Scales {
    hz: (f64, f64),
    /// The least share that could be lost: one of the most stimuli of a trial.
    least_loss: f64,
    answer_ns: Option<(f64, f64)>,
}

impl Scales {
    /// The axes of all trials whose frequency the generator kept; `None` where there is none.
    fn of(outcome: &SaturationOutcome) -> Option<Self> {
        let kept = || outcome.trials.iter().filter(|trial| !trial.generator_limited);
        let most = kept().map(|trial| trial.stimuli).max().filter(|most| *most > 0)?;
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold(None, |ends: Option<(f64, f64)>, value| {
                Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
            })
        };
        Some(Self {
            hz: ends(&mut kept().map(|trial| trial.hz))?,
            least_loss: 1.0 / most as f64,
            answer_ns: ends(&mut kept().flat_map(|trial| &trial.p99_ns).flatten().copied()),
        })
    }

    fn frequency(&self) -> Axis {
        let words = |hz: f64| match hz >= 1e3 {
            true => format!("{} kHz", format::rate(hz / 1e3)),
            false => format!("{hz:.0} Hz"),
        };
        Axis::log("frequency of stimuli (log)", self.hz.0 * 0.8, self.hz.1 * 1.25, words)
    }

    /// Where a share that was lost lies: nothing has a place of its own below the least.
    fn loss(&self, share: f64) -> f64 {
        if share > 0.0 { share.max(self.least_loss) } else { self.none() }
    }

    fn none(&self) -> f64 {
        self.least_loss / 4.0
    }

    fn losses(&self) -> Axis {
        let none = self.none();
        let words = |share: f64| format!("{} %", concise(share * 100.0));
        let mut axis = Axis::log("share lost (log)", none / 2.0, 1.5, words);
        axis.ticks.retain(|tick| tick.at > none * 1.5);
        axis.ticks.insert(0, Tick { at: none, label: Some("none".to_owned()) });
        axis
    }
}

/// For each condition what was lost over the frequency, with the limits that were found, and how
/// late 1 in 100 answers were complete.
fn charts(outcome: &SaturationOutcome) -> Vec<Block> {
    let Some(scales) = Scales::of(outcome) else { return Vec::new() };
    let mut conditions: Vec<&str> = Vec::new();
    for trial in outcome.trials.iter().filter(|trial| !trial.generator_limited) {
        if !conditions.contains(&trial.condition.as_str()) {
            conditions.push(&trial.condition);
        }
    }
    let row = |(at, condition): (usize, &&str)| {
        let charts =
            [Some(losses(outcome, condition, &scales)), answers(outcome, condition, &scales)];
        let figures = charts.into_iter().flatten().enumerate();
        let figures =
            figures.map(|(column, chart)| (format!("saturation-{}-{}", at + 1, column + 1), chart));
        plots::beside(figures.collect())
    };
    conditions.iter().enumerate().filter_map(row).collect()
}

/// The trials of a condition whose frequency the generator kept.
fn kept<'o>(outcome: &'o SaturationOutcome, condition: &str) -> Vec<&'o TrialRow> {
    let is_kept = |trial: &&TrialRow| trial.condition == condition && !trial.generator_limited;
    outcome.trials.iter().filter(is_kept).collect()
}

/// The chart of each stage's losses in each trial, with the highest frequencies found.
fn losses(outcome: &SaturationOutcome, condition: &str, scales: &Scales) -> Chart {
    let trials = kept(outcome, condition);
    let lost = |stage: usize| {
        let point = |trial: &&TrialRow| Some((trial.hz, scales.loss(*trial.loss.get(stage)?)));
        let marks = vec![Mark::Dots(trials.iter().filter_map(point).collect())];
        ChartSeries { name: format!("stage {}", stage + 1), ink: stage, marks }
    };
    let found: Vec<&SaturationRow> =
        outcome.rows.iter().filter(|row| row.condition == condition).collect();
    let limit = |stage: usize| {
        let own = found.iter().filter(|row| row.stage as usize == stage + 1);
        let point = |row: &&SaturationRow| {
            let pass_hz = row.pass_hz?;
            let (y, name) = (scales.loss(row.goal), khz(Some(pass_hz)));
            Some(NamedPoint { x: pass_hz, y, name })
        };
        let marks = vec![Mark::Points(own.filter_map(point).collect())];
        ChartSeries { name: format!("MF of stage {}", stage + 1), ink: stage, marks }
    };
    let sentences = |row: &&SaturationRow| {
        format!("stage {}, a share of {}: {}", row.stage, row.goal, hz(row.pass_hz))
    };
    let sentences: Vec<String> = found.iter().map(sentences).collect();
    Chart {
        title: format!("Loss over frequency: {}", format::plain(condition)),
        titled: false,
        description: format!(
            "{}: {} trials. Highest frequencies (MF) by the share that may be lost: {}.",
            format::plain(condition),
            format::count(trials.len() as u64),
            sentences.join("; ")
        ),
        size: ONE_OF_TWO,
        x: scales.frequency(),
        y: scales.losses(),
        series: vec![lost(0), lost(1), limit(0), limit(1)],
        notes: vec!["small dots: trials; large ones: MF at its loss limit, kHz".to_owned()],
    }
}

/// The chart of the response that 1 in 100 answers of each stage exceeded in each trial; `None`
/// where no trial has one.
fn answers(outcome: &SaturationOutcome, condition: &str, scales: &Scales) -> Option<Chart> {
    let trials = kept(outcome, condition);
    let (low, high) = scales.answer_ns?;
    let stage = |stage: usize| {
        let point = |trial: &&TrialRow| {
            Some((trial.hz, trial.p99_ns.get(stage).copied().flatten()?.max(1.0)))
        };
        let points: Vec<(f64, f64)> = trials.iter().filter_map(point).collect();
        let marks = vec![Mark::Dots(points)];
        ChartSeries { name: format!("stage {}", stage + 1), ink: stage, marks }
    };
    let due = [scales.hz.0, scales.hz.1].map(|hz| (hz, 1e9 / hz));
    let due = ChartSeries {
        name: "the next stimulus is due".to_owned(),
        ink: 2,
        marks: vec![Mark::Line(due.to_vec())],
    };
    let (low, high) = (low.min(1e9 / scales.hz.1), high.max(1e9 / scales.hz.0));
    Some(Chart {
        title: format!("1 in 100 complete answers: {}", format::plain(condition)),
        titled: false,
        description: format!(
            "{}: from the stimulus to the complete answer, 1 in 100 of each of {} trials is later; \
             answers above the line come after the next stimulus.",
            format::plain(condition),
            format::count(trials.len() as u64)
        ),
        size: ONE_OF_TWO,
        x: scales.frequency(),
        y: Axis::log("1 in 100 later (log)", low.max(1.0) * 0.7, high * 1.4, plots::ns),
        series: vec![stage(0), stage(1), due],
        notes: Vec::new(),
    })
}

fn frequencies(outcome: &SaturationOutcome) -> Block {
    let heads = [
        words("condition"),
        numbers("stage"),
        numbers("loss limit"),
        numbers("MF"),
        numbers("fails at"),
        numbers("first loss"),
        numbers("n"),
        words("search"),
    ];
    let row = |row: &SaturationRow| {
        let end = match row.end {
            SearchEnd::Found => "found",
            SearchEnd::GeneratorLimited => "generator",
            SearchEnd::BelowLowest => "below all",
            SearchEnd::Unfinished => "unfinished",
        };
        vec![
            row.condition.clone(),
            row.stage.to_string(),
            format!("{}", row.goal),
            khz(row.pass_hz),
            khz(row.fail_hz),
            khz(row.first_loss_hz),
            format::count(row.stimuli),
            end.to_owned(),
        ]
    };
    let caption = "In kHz. MF: the highest at which the share of lost stimuli stays within the \
                   limit; unfinished: it lies between MF and \"fails at\"";
    Table::new(caption, heads, outcome.rows.iter().map(row).collect()).into()
}

fn background(background: &BackgroundRow) -> String {
    // Each by the share that it leaves less of; what was not reached is told by the cost.
    let from = |found: Option<f64>, left: f64| match (found, background.predicted_hz) {
        (Some(_), _) => format!("from {} on", hz(found)),
        (None, Some(none_left)) => {
            format!("not reached, {} by cost", hz(Some(none_left * (1.0 - left))))
        }
        (None, None) => "not reached".to_owned(),
    };
    let tried = background
        .tried_hz
        .map_or_else(String::new, |_| format!("; tried up to {}", hz(background.tried_hz)));
    let share = background.least_share.map_or_else(String::new, |share| {
        format!("; the least that a trial left is {}", format::share(share))
    });
    let cost = match (background.cost_ns, background.off_line) {
        (Some(ns), _) => format!("; a stimulus costs {}", format::ns(Some(ns))),
        (None, Some(off)) => format!(
            "; stimuli have no one cost: half of the trials leave {} more or less than a line \
             through them",
            format::share(off)
        ),
        (None, None) => String::new(),
    };
    format!(
        "background: {} polygons/s alone; less than half left (SF50): {}; less than a tenth \
         (SF10): {}; nothing (SF): {}{tried}{share}{cost}",
        format::rate(background.rate),
        from(background.sf50_hz, 0.5),
        from(background.sf10_hz, 0.1),
        from(background.dead_hz, 0.0),
    )
}

fn trials(outcome: &SaturationOutcome) -> Block {
    let heads = [
        words("condition"),
        numbers("frequency"),
        numbers("stimuli"),
        numbers("not raised"),
        numbers("loss 1"),
        numbers("loss 2"),
        numbers("left"),
    ];
    let row = |row: &TrialRow| {
        let loss = |at: usize| {
            row.loss.get(at).map_or_else(|| "-".to_owned(), |loss| format!("{loss:.2e}"))
        };
        vec![
            row.condition.clone(),
            hz(Some(row.hz)),
            format::count(row.stimuli),
            format::count(row.not_raised),
            loss(0),
            loss(1),
            row.background_share.map_or_else(|| "-".to_owned(), format::share),
        ]
    };
    let rows: Vec<Vec<String>> = outcome.trials.iter().map(row).collect();
    // The last of all, which the search closed in on.
    let last = (rows.len().saturating_sub(4)..rows.len()).collect();
    let columns = heads.len();
    Table::new("Trials", heads, rows).fitted(columns, last).into()
}

/// Stage 2's policy and priority, and the thread that ran beside it.
fn second(stage: &Stage2) -> String {
    let priority = stage.priority.map_or_else(String::new, |priority| format!(" {priority}"));
    let beside = match stage.competitor {
        None => String::new(),
        Some(Competitor::Computes) => {
            "; equal: beside a thread of the same that computes for 14 ms of each 20".to_owned()
        }
        Some(Competitor::Polygons) => "; equal: beside a thread of the same that draws polygons \
             for 14 ms of each 20 and gives way after each"
            .to_owned(),
    };
    format!("stage 2 is {}{priority}{beside}; ", stage.policy)
}

fn about(outcome: &SaturationOutcome) -> String {
    let second = outcome.stage_2.as_ref().map_or_else(String::new, second);
    let generator = outcome.generator_hz.map_or_else(String::new, |_| {
        let most = hz(outcome.generator_hz);
        format!(" (the generator can {most})")
    });
    format!(
        "{second}stimuli by {} from CPU {} to CPU {}, trials of {}, up to {}{generator}; served: \
         answered before the next is due; a frequency passes by the majority of three trials (RFC \
         9971); none lost of n supports a share of 3/n",
        outcome.source,
        outcome.stimulus_cpu,
        outcome.cpu,
        format::period(outcome.trial_ns),
        hz(Some(outcome.highest_hz)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_reached_is_told_by_the_cost() {
        let mut row = BackgroundRow {
            rate: 70_000.0,
            sf50_hz: Some(15_000.0),
            sf10_hz: None,
            dead_hz: None,
            least_share: Some(0.42),
            cost_ns: Some(31_250.0),
            predicted_hz: Some(32_000.0),
            tried_hz: Some(49_780.0),
            off_line: Some(0.02),
        };
        let text = background(&row);
        for said in [
            "(SF50): from 15.00 kHz on",
            "(SF10): not reached, 28.80 kHz by cost",
            "(SF): not reached, 32.00 kHz by cost",
            "tried up to 49.78 kHz",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        (row.predicted_hz, row.cost_ns, row.least_share) = (None, None, None);
        let text = background(&row);
        assert!(text.contains("(SF): not reached; tried") && !text.contains(" -"), "{text}");
        assert!(text.contains("stimuli have no one cost"), "{text}");
    }

    #[test]
    fn the_competitor_of_stage_2_is_said() {
        let stage =
            |competitor| Stage2 { policy: "SCHED_RR".into(), priority: Some(70), competitor };
        assert_eq!(second(&stage(None)), "stage 2 is SCHED_RR 70; ");
        let text = second(&stage(Some(Competitor::Polygons)));
        assert!(text.contains("SCHED_RR 70; equal: beside") && text.contains("polygons"), "{text}");
    }
}
