//! Tacke and Ricci, *Benchmarking Real-time Determinism in Windows CE*.

mod claims;

use punctual_analysis::plain::concise;
use punctual_analysis::plot::extent;
use punctual_core::time::Period;
use punctual_lab::response::{
    Competitor, ResponseExperiment, ResponseRow, SourceName, StageRow, StageTrace, middle_ns,
};
use punctual_lab::saturation::{
    OFF_LINE_MOST, SaturationExperiment, SaturationOutcome, SaturationRow, SearchEnd, TrialRow,
};
use punctual_os::scheduler::SchedPolicy;

use crate::bench::{Bench, PRIORITY};
use crate::figure::{Drawing, averaged};
use crate::row::PaperRow;
use crate::{Reproduction, expiry};

/// 5 kHz.
const PERIOD_NS: u64 = 200_000;
/// The share of the time that each condition of the responses takes.
const RESPONSES: f64 = 0.2;
/// The time in which each of them has the iterations of APP_TEST there, a million, s.
pub(crate) const FULL_S: f64 = 1e6 * PERIOD_NS as f64 / 1e9 / RESPONSES;
/// The share that the search for frequencies takes.
const SATURATION: f64 = 0.55;

/// A system of figure 3.
#[derive(Clone, Copy)]
struct Polygons {
    /// The end of its id.
    key: &'static str,
    system: &'static str,
    /// Polygons a second, as the paper prints them.
    rate: &'static str,
}

/// Figure 3: polygons per second.
const POLYGONS: [Polygons; 5] = [
    Polygons { key: "ce212", system: "Graphics Master, CE 2.12", rate: "170" },
    Polygons { key: "ce30", system: "Graphics Master, CE 3.0", rate: "751" },
    Polygons { key: "cenet", system: "Graphics Master, CE.NET", rate: "537" },
    Polygons { key: "ce30-qvga", system: "Graphics Master variation (QVGA), CE 3.0", rate: "980" },
    Polygons { key: "ce30-ipaq", system: "3630 iPaq (QVGA), CE 3.0", rate: "260" },
];

/// The priority of the application's stage.
const APP_PRIORITY: u8 = 70;

/// A system of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernel {
    Ce212,
    Ce30,
    CeNet,
}

/// The cells that a table has for a system, alone or beside a competitor of equal priority.
struct System<T> {
    /// Its part of ids: "ce30-loaded".
    id: &'static str,
    kernel: Kernel,
    loaded: bool,
    cells: T,
}

const fn system<T>(id: &'static str, kernel: Kernel, loaded: bool, cells: T) -> System<T> {
    System { id, kernel, loaded, cells }
}

/// Figure 8: MF-ISR, MF-APP, SF.
const FREQUENCIES: [System<[&str; 3]>; 6] = [
    system("ce212", Kernel::Ce212, false, ["20Hz", "19 Hz", ""]),
    system("ce212-loaded", Kernel::Ce212, true, ["20Hz", "19 Hz", "N/A"]),
    system("ce30", Kernel::Ce30, false, ["127 KHz", "28 kHz", ""]),
    system("ce30-loaded", Kernel::Ce30, true, ["127 KHz", "15 kHz", "85 kHz"]),
    system("cenet", Kernel::CeNet, false, ["47 kHz", "6.1 kHz", ""]),
    system("cenet-loaded", Kernel::CeNet, true, ["47 kHz", "6 kHz", "40 kHz"]),
];

/// Figure 11: ISR, then APP: maximum, minimum, their difference, latency.
const LATENCIES: [System<[[&str; 4]; 2]>; 6] = [
    system("ce212", Kernel::Ce212, false, [["6", "2.6", "3.4", "3"], ["162", "51", "111", "61"]]),
    system(
        "ce212-loaded",
        Kernel::Ce212,
        true,
        [["11", "3.9", "7.1", "4.8"], ["201", "117", "84", "135"]],
    ),
    system(
        "ce30",
        Kernel::Ce30,
        false,
        [["5.2", "1.4", "3.8", "2.5"], ["17.6", "14.4", "3.2", "21"]],
    ),
    system("ce30-loaded", Kernel::Ce30, true, [["7", "2", "5", "5"], ["133", "16", "117", "71"]]),
    system("cenet", Kernel::CeNet, false, [["5", "2", "3", "3"], ["170", "24", "146", "47"]]),
    system(
        "cenet-loaded",
        Kernel::CeNet,
        true,
        [["12.2", "2.8", "9.4", "6.3"], ["125", "46", "79", "53"]],
    ),
];

/// A figure of a stage, ns.
type Value = fn(&StageRow) -> Option<f64>;

/// The measurements: idle, and with a competitor of equal priority, which the paper calls loaded;
/// polygons a second without stimuli.
struct WinceResponses {
    idle: Option<ResponseRow>,
    equal: Option<ResponseRow>,
    polygons: Option<f64>,
}

/// Its rows and claims.
///
/// # Errors
/// Why it cannot be measured.
pub fn reproduce<B: Bench>(bench: &mut B) -> Result<Reproduction, B::Error> {
    let fifo = SchedPolicy::Fifo(APP_PRIORITY);
    let idle = response(bench, fifo, None)?;
    let round_robin = SchedPolicy::RoundRobin(APP_PRIORITY);
    let equal = response(bench, round_robin, Some(Competitor::Polygons))?;
    let saturation = saturation(bench)?;
    let measured = WinceResponses {
        idle,
        equal,
        polygons: saturation.as_ref().and_then(|found| Some(found.background.as_ref()?.rate)),
    };
    let alone = bench.other_cpu().is_none();
    let mut rows = polygons(&measured, alone);
    rows.extend(stimuli());
    rows.push(responses(&measured));
    rows.extend(figures(&measured));
    rows.extend(expiry::measured(bench, "wince.fig5.interrupt", PERIOD_NS)?);
    rows.extend(frequencies(saturation.as_ref(), alone));
    rows.extend(latencies(&measured));
    bench.draw(drawn(&measured, saturation.as_ref(), &rows));
    let claims = claims::claims(&measured, saturation.as_ref());
    Ok(Reproduction { rows, claims })
}

/// Measures the answers to an eventfd with stage 2 of this policy, and this competitor of the same.
fn response<B: Bench>(
    bench: &mut B,
    second: SchedPolicy,
    competitor: Option<Competitor>,
) -> Result<Option<ResponseRow>, B::Error> {
    let Some(period) = Period::from_ns(PERIOD_NS) else { return Ok(None) };
    let measured = bench.measure(ResponseExperiment {
        source: SourceName::default(),
        cpu: bench.cpu(),
        stimulus_cpu: bench.other_cpu().unwrap_or(bench.cpu()),
        period,
        duration: bench.share(RESPONSES),
        first: SchedPolicy::Fifo(PRIORITY),
        second,
        competitor,
        conditions: vec![("idle".to_owned(), Vec::new())],
    })?;
    Ok(measured.and_then(|(response, _)| response.rows.into_iter().next()))
}

/// The highest frequencies of an eventfd that are served; `None` on one CPU.
fn saturation<B: Bench>(bench: &mut B) -> Result<Option<SaturationOutcome>, B::Error> {
    let Some(stimulus_cpu) = bench.other_cpu() else { return Ok(None) };
    let measured = bench.measure(SaturationExperiment {
        source: SourceName::default(),
        cpu: bench.cpu(),
        stimulus_cpu,
        first: SchedPolicy::Fifo(PRIORITY),
        second: SchedPolicy::Fifo(APP_PRIORITY),
        competitor: Some(Competitor::Polygons),
        duration: bench.share(SATURATION),
        unthrottled: false,
    })?;
    Ok(measured.map(|(saturation, _)| saturation))
}

/// A cell of figure 8 in kHz; `None` where it has no number.
fn kilohertz(cell: &str) -> Option<f64> {
    let text = cell.to_ascii_lowercase();
    let (text, times) = match text.strip_suffix("khz") {
        Some(text) => (text, 1.0),
        None => (text.strip_suffix("hz")?, 1e-3),
    };
    text.trim().parse::<f64>().ok().map(|value| value * times)
}

fn polygons(measured: &WinceResponses, alone: bool) -> Vec<PaperRow> {
    let row = |Polygons { key, system, rate }| {
        let row = PaperRow::new(format!("wince.fig3.{key}"), system, "polygons/s", rate);
        let row = match alone {
            true => row.measured_or(measured.polygons, ONE_CPU),
            false => row.measured(measured.polygons),
        };
        row.note(
            "other polygons (640 × 480, 3 to 8 corners), one thread alone on one CPU, no stimuli; \
             this one system has the same value in each row",
        )
    };
    POLYGONS.into_iter().map(row).collect()
}

/// Rows of the stimuli that start a stage: the function generator's square wave.
fn stimuli() -> [PaperRow; 2] {
    [
        PaperRow::new("wince.stimuli", "frequency of the stimuli", "kHz", "5000 Hz")
            .formula(1e6 / PERIOD_NS as f64)
            .note("not measured: it is set, as there"),
        PaperRow::new("wince.stimuli.duty", "share of the period that a pulse lasts", "%", "20%")
            .note(
                "not measured: a stimulus here is a count that another CPU adds to an eventfd, and \
                 has no length; a stage starts by the edge of a pulse, there as well, not by its \
                 width",
            ),
    ]
}

/// Iterations of APP_TEST there.
const MILLION: f64 = 1e6;

/// The row of stimuli of each condition, of the paper's million: a rare answer is not among fewer.
fn responses(measured: &WinceResponses) -> PaperRow {
    let raised = |row: &Option<ResponseRow>| row.as_ref().map(|row| row.stimuli);
    let (idle, equal) = (raised(&measured.idle), raised(&measured.equal));
    let fewest = idle.into_iter().chain(equal).min().map(|count| count as f64);
    let row = PaperRow::new("wince.responses", "stimuli of each condition", "", "1000000")
        .measured(fewest);
    let row = [(idle, "unloaded"), (equal, "at equal priority, loaded")]
        .into_iter()
        .filter_map(|(count, condition)| Some(format!("{} {condition}", count?)))
        .fold(row, |row, counted| row.note(&counted));
    match fewest {
        Some(fewest) if fewest < MILLION => row.note(&format!(
            "shortened: {} % of the million iterations of APP_TEST there, so that what is rarer is \
             not among them and a latest start may be too early",
            concise(fewest / MILLION * 100.0)
        )),
        _ => row,
    }
}

/// A figure of a stage, µs.
fn stage(row: &Option<ResponseRow>, at: usize, ns: Value) -> Option<f64> {
    ns(row.as_ref()?.stages.get(at)?).map(|ns| ns / 1e3)
}

/// The note on the starts that figure 6 has peaks of.
const EARLY_PEAK: &str =
    "\"a measurable number\" of starts there, and most about 100 µs (figure 9)";
/// The note on rows of CE 2.12.
const OTHER_RATE: &str = "stimuli at 19 Hz there (figure 9), at 5 kHz here";

/// Figures 5 to 7, 9 and 10.
fn figures(measured: &WinceResponses) -> Vec<PaperRow> {
    let new = |id: &str, title: &str, published: &str, value: Option<f64>| {
        PaperRow::new(format!("wince.{id}"), title, "µs", published).measured(value)
    };
    let p50: Value = |stage| stage.start_ns.p50;
    let range: Value = |stage| stage.response_range_ns;
    let latest: Value = |stage| stage.start_ns.max;
    let done: Value = |stage| stage.complete_ns.max;
    let shortest: Value = |stage| stage.start_ns.min;
    let thread = "an interrupt handler there, on the edge of a function generator; here a thread, \
                  SCHED_FIFO 90, on an eventfd that another CPU writes";
    let equal = "here round-robin with a thread that draws polygons for 14 ms of each 20 ms";
    let three = "three figures are numbered 6";
    let single_system = "this one system stands for the paper's three";
    let median_us = stage(&measured.equal, 1, p50);
    let usual_start = match median_us {
        Some(us) => format!("{EARLY_PEAK}; the median of all starts is {us:.1} µs here"),
        None => EARLY_PEAK.to_owned(),
    };
    vec![
        new(
            "fig5.isr",
            "start of the interrupt's stage, unloaded",
            "2.5",
            stage(&measured.idle, 0, p50),
        )
        .note(thread),
        new(
            "fig5.app",
            "start of the application's, unloaded",
            "16",
            stage(&measured.idle, 1, p50),
        )
        .note("figure 11 has 21 for the same; an event of Windows there, a futex here"),
        new("fig6a.isr", "range of the starts, unloaded", "2.5", stage(&measured.idle, 0, range))
            .note("\"95% or more\" of averages of 128 there; here largest minus smallest of all"),
        new(
            "fig6a.isr.middle",
            "range of 95 % of the starts, unloaded",
            "2.5",
            stage(&measured.idle, 0, |stage| stage.middle_ns),
        )
        .note("from 2.5 to 97.5 % of all answers"),
        new(
            "fig6a.isr.last",
            "range of 95 % of the last 128 starts, unloaded",
            "2.5",
            stage(&measured.idle, 0, |stage| middle_ns(&stage.trace.as_ref()?.single_ns)),
        )
        .note("from 2.5 to 97.5 %; single answers, where averages of 128 stand there"),
        new(
            "fig6b.app",
            "latest start at equal priority, loaded",
            "133",
            stage(&measured.equal, 1, latest),
        )
        .note(three)
        .note(equal),
        PaperRow::new(
            "wince.fig6c.app",
            "early starts at equal priority, loaded",
            "µs",
            "15 and 30",
        )
        .measured_or(None, "not measured: peaks of an averaged edge, which the figure here has")
        .note(&usual_start)
        .note(three)
        .note(equal),
        new(
            "fig7.isr",
            "latest completion, interrupt's stage, loaded",
            "50",
            stage(&measured.equal, 0, done),
        )
        .note(equal),
        new(
            "fig7.app",
            "latest completion, application's, loaded",
            "125",
            stage(&measured.equal, 1, done),
        )
        .note("below the latest start of figure 11, 133: one of them is wrong")
        .note(equal),
        new("fig9a.app", "CE 2.12: latest start, loaded", "201", stage(&measured.equal, 1, latest))
            .note("two figures are numbered 9; the plot has no number, figure 11 has")
            .note(OTHER_RATE)
            .note(single_system),
        new(
            "fig9b.app",
            "CE 3.0: earliest start, loaded",
            "10",
            stage(&measured.equal, 1, shortest),
        )
        .note("\"10 µs after interrupt\" is below figure 11's minimum, 16")
        .note(single_system),
        new("fig10.app", "CE.NET: latest start, loaded", "125", stage(&measured.equal, 1, latest))
            .note("a plot without numbers: figure 11's")
            .note(single_system),
    ]
}

/// The condition of the search that a cell of figure 8 is of: the paper's load has the priority of
/// the application's stage, and what dies is a program without privilege.
fn searched(key: &str, loaded: bool) -> &'static str {
    match (key, loaded) {
        ("sf", _) => "loaded",
        (_, true) => "equal",
        (_, false) => "unloaded",
    }
}

/// Figure 8: the first frequency that loses, and the one at which the background dies; `alone`: on
/// a machine of one CPU.
fn frequencies(saturation: Option<&SaturationOutcome>, alone: bool) -> Vec<PaperRow> {
    let first_loss = |condition: &str, stage: u32| {
        let rows = saturation.map_or(&[][..], |saturation| &saturation.rows);
        let row = rows.iter().find(|row| row.condition == condition && row.stage == stage);
        row.and_then(|row| row.first_loss_hz)
    };
    let mut rows = Vec::new();
    for System { id: system, kernel, loaded, cells } in FREQUENCIES {
        for (key, published) in ["mf-isr", "mf-app", "sf"].into_iter().zip(cells) {
            if published.is_empty() {
                continue;
            }
            let condition = searched(key, loaded);
            let (title, hz) = match key {
                "sf" => (
                    "frequency at which polygons stop",
                    saturation.and_then(SaturationOutcome::sf10).and_then(|sf| sf.high),
                ),
                "mf-isr" => ("first frequency that loses pulses, ISR", first_loss(condition, 1)),
                _ => ("first frequency that loses pulses, APP", first_loss(condition, 2)),
            };
            let id = format!("wince.fig8.{system}.{key}");
            let row = PaperRow::new(id, &format!("{title}, {system}"), "kHz", published);
            let one_cpu = || alone.then(|| ONE_CPU.to_owned());
            let khz = hz.map(|hz| hz / 1e3);
            let row = match not_reached(saturation, condition, key == "sf").or_else(one_cpu) {
                Some(why) => row.measured_or(khz, &why),
                None => row.measured(khz),
            };
            let row = match (key, loaded) {
                ("sf", _) => row.note(
                    "here from where on polygons without privilege have less than a tenth: the \
                     kernel guarantees a floor",
                ),
                (_, true) => row.note(EXTREME).note("polygons of stage 2's priority beside it"),
                (_, false) => row.note(EXTREME),
            };
            rows.push(match (kernel, key) {
                (Kernel::Ce30, "mf-app") => row.note(
                    "28 to 15 kHz is -46 %, not \"more than 50%\"; MF-ISR is defined twice, the \
                     second is MF-APP",
                ),
                (_, "mf-app") => row.note("defined there as a second MF-ISR"),
                _ => row,
            });
        }
    }
    rows.extend(with_losses(saturation, alone));
    rows.push(stopped(saturation, alone));
    rows
}

/// The note on a first loss.
const EXTREME: &str = "any loss in a trial: an extreme value where the host stalls a machine";
/// Why a machine of one CPU has no row of figure 8.
const ONE_CPU: &str = "not measured: it takes a second CPU";

/// Beside figure 8: the highest frequencies whose losses stay within 10⁻⁴ and 10⁻².
fn with_losses(saturation: Option<&SaturationOutcome>, alone: bool) -> Vec<PaperRow> {
    let found = saturation.map_or(&[][..], |saturation| &saturation.rows);
    let mut rows = Vec::new();
    for (condition, end) in [("unloaded", ""), ("equal", "-loaded")] {
        for (stage, key) in [(1, "mf-isr"), (2, "mf-app")] {
            for (goal, words, part) in [(1e-4, "1 in 10 000", "1e-4"), (1e-2, "1 in 100", "1e-2")] {
                let own = found.iter().find(|row| {
                    (&*row.condition, row.stage) == (condition, stage) && row.goal == goal
                });
                let title = format!(
                    "highest frequency that loses {words} at most, stage {stage}, {}",
                    condition_words(condition)
                );
                let id = format!("wince.fig8.here{end}.{key}.{part}");
                let row = PaperRow::new(id, &title, "kHz", "");
                let khz = own.and_then(|row| row.pass_hz).map(|hz| hz / 1e3);
                let row = match own.and_then(|row| row.fail_hz).filter(|_| khz.is_none()) {
                    Some(hz) => {
                        let why = format!(
                            "not measured: {:.3} kHz, the lowest frequency that was tried, loses \
                             more",
                            hz / 1e3
                        );
                        row.measured_or(khz, &why)
                    }
                    None if alone => row.measured_or(khz, ONE_CPU),
                    None => row.measured(khz),
                };
                let is_open = own.is_some_and(|row| row.end == SearchEnd::Unfinished);
                let row = row.note("not in the paper, which has the first loss alone");
                rows.push(match is_open && khz.is_some() {
                    true => row.note("at least this: the time was over"),
                    false => row,
                });
            }
        }
    }
    rows
}

/// Beside figure 8: where polygons would stop by what stimuli cost them.
fn stopped(saturation: Option<&SaturationOutcome>, alone: bool) -> PaperRow {
    let background = saturation.and_then(|saturation| saturation.background.as_ref());
    let khz = background.and_then(|row| row.predicted_hz).map(|hz| hz / 1e3);
    let title = "frequency that leaves polygons nothing, by what stimuli cost them";
    let row = PaperRow::new("wince.fig8.here-loaded.sf.predicted", title, "kHz", "");
    let off_line = background.and_then(|row| row.off_line).filter(|off| *off > OFF_LINE_MOST);
    let row = match off_line {
        _ if alone => row.measured_or(khz, ONE_CPU),
        Some(off) => row.measured_or(
            khz,
            &format!(
                "not measured: stimuli have no one cost here, half of the trials leave {:.0} % \
                 more or less than a line through them",
                off * 100.0
            ),
        ),
        None => row.measured(khz),
    };
    row.note("not in the paper, whose polygons stop; from trials that leave them half or more")
}

/// A condition of the search in the paper's word, and what it is.
fn condition_words(condition: &str) -> &str {
    match condition {
        "equal" => "loaded, at equal priority",
        "loaded" => "beside polygons without privilege",
        unloaded => unloaded,
    }
}

/// Why no frequency of the trials was the one of figure 8: none of them had that effect; `None`
/// where nothing was tried.
fn not_reached(
    saturation: Option<&SaturationOutcome>,
    condition: &str,
    beside_background: bool,
) -> Option<String> {
    let trials = saturation.map_or(&[][..], |saturation| &saturation.trials);
    let counts = |trial: &&TrialRow| match beside_background {
        true => trial.background_share.is_some(),
        false => trial.condition == condition && !trial.generator_limited,
    };
    let tried = trials.iter().filter(counts);
    let highest = tried.max_by(|a, b| a.hz.total_cmp(&b.hz))?;
    let rows = saturation.map_or(&[][..], |saturation| &saturation.rows);
    let is_cut =
        |row: &SaturationRow| row.condition == condition && row.end == SearchEnd::Unfinished;
    let left =
        highest.background_share.filter(|_| beside_background).map_or_else(String::new, |share| {
            format!(", a frequency that leaves polygons {:.0} %", share * 100.0)
        });
    let cut = if rows.iter().any(is_cut) { "; the time was over" } else { "" };
    Some(format!("not measured: not reached up to {:.3} kHz{left}{cut}", highest.hz / 1e3))
}

/// The note on the stimuli that starts in rows are of, where claims take all stimuli.
const ANSWERS: &str = "of answers: stimuli found together with a later one are not counted";

/// Figure 11.
fn latencies(measured: &WinceResponses) -> Vec<PaperRow> {
    let values: [(&str, Value); 4] = [
        ("max", |stage| stage.start_ns.max),
        ("min", |stage| stage.start_ns.min),
        ("jitter", |stage| stage.response_range_ns),
        ("latency", |stage| stage.start_ns.mean),
    ];
    let mut rows = Vec::new();
    for System { id: system, kernel, loaded, cells } in LATENCIES {
        let source = if loaded { &measured.equal } else { &measured.idle };
        for (at, (name, cells)) in ["isr", "app"].into_iter().zip(cells).enumerate() {
            for ((key, ns), published) in values.into_iter().zip(cells) {
                let id = format!("wince.fig11.{system}.{name}.{key}");
                let title = format!("start of {name}, {key}, {system}");
                let row = PaperRow::new(id, &title, "µs", published)
                    .measured(stage(source, at, ns))
                    .note("the table's heading has ms: it is µs")
                    .note(ANSWERS);
                rows.push(match (kernel, loaded, name, key) {
                    (Kernel::Ce30, false, "app", "latency") => {
                        row.note("above its own maximum, 17.6")
                    }
                    (Kernel::Ce212, ..) => row.note(OTHER_RATE),
                    _ => row,
                });
            }
        }
    }
    rows
}

/// The answers that a figure of traces shows.
#[derive(Clone, Copy)]
enum Shown {
    /// Single answers, as one sweep of an oscilloscope after the other.
    Single,
    /// All answers laid over each other, as an oscilloscope that forgets nothing.
    Persistent,
    /// The average of all.
    Averaged,
    /// All answers and their average, with the earliest and the latest of this loaded system in
    /// figure 11.
    BesidePublished(Kernel),
}

/// A figure of traces.
struct Traces<'m> {
    /// "9a".
    number: &'static str,
    title: &'static str,
    shown: Shown,
    /// Whose stages are shown.
    row: &'m Option<ResponseRow>,
}

/// All figures; `rows` are those of figure 8.
fn drawn(
    measured: &WinceResponses,
    saturation: Option<&SaturationOutcome>,
    rows: &[PaperRow],
) -> Vec<Drawing> {
    let (idle, equal) = (&measured.idle, &measured.equal);
    let trace_of = |number, title, shown, row| trace(&Traces { number, title, shown, row });
    let beside = Shown::BesidePublished;
    let mut drawn = vec![polygons_figure(measured.polygons)];
    // Figures 9 and 10 are of three systems; here one stands for all.
    drawn.extend([
        trace_of("5", "single answers, unloaded", Shown::Single, idle),
        trace_of("6a", "averaged answers, unloaded", Shown::Averaged, idle),
        trace_of("6b", "single answers at equal priority", Shown::Single, equal),
        trace_of("6c", "averaged answers at equal priority", Shown::Averaged, equal),
        trace_of("7", "all answers laid over each other, loaded", Shown::Persistent, equal),
        trace_of("9a", "this system beside CE 2.12, loaded", beside(Kernel::Ce212), equal),
        trace_of("9b", "this system beside CE 3.0, loaded", beside(Kernel::Ce30), equal),
        trace_of("10", "this system beside CE.NET, loaded", beside(Kernel::CeNet), equal),
    ]);
    drawn.push(frequencies_figure(rows));
    drawn.push(losses_figure(saturation));
    drawn.push(latencies_figure(measured));
    drawn
}

/// Answers as the oscilloscope shows them.
fn trace(Traces { number, title, shown, row }: &Traces<'_>) -> Drawing {
    let id = format!("wince.fig{number}");
    let stages = row.iter().flat_map(|row| row.stages.iter().take(2).enumerate());
    let stages = stages.map(|(at, stage)| (format!("stage {}", at + 1), stage));
    match shown {
        Shown::Single => single(&id, title, stages.map(|(_, stage)| stage).collect()),
        Shown::Persistent => persistent(&id, title, stages.map(|(_, stage)| stage).collect()),
        Shown::Averaged => averaged(&id, title, stages),
        Shown::BesidePublished(kernel) => {
            let stages: Vec<_> = stages.map(|(_, stage)| stage).collect();
            let averages = stages.iter().enumerate().filter_map(|(at, stage)| {
                let trace = stage.trace.as_ref()?;
                Some((at, edge_of(trace)))
            });
            let averages: Vec<(usize, Vec<[f64; 2]>)> = averages.collect();
            let figure = persistent(&id, title, stages);
            let figure = averages.into_iter().fold(figure, |figure, (at, average)| {
                let name = format!("stage {}: the average", at + 1);
                figure.line(&name, average).in_channel(STAGE_CHANNELS[at])
            });
            let system = LATENCIES.iter().find(|row| row.kernel == *kernel && row.loaded);
            let stages =
                system.into_iter().flat_map(|system| ["ISR", "APP"].iter().zip(&system.cells));
            stages.enumerate().fold(figure, |figure, (at, (stage, [latest, earliest, ..]))| {
                // Before the earliest none has started; at the latest all have.
                let ends = [(earliest, 0.0), (latest, 1.0)];
                let ends =
                    ends.into_iter().filter_map(|(cell, share)| Some([cell.parse().ok()?, share]));
                let name = format!("published in figure 11: {stage}, earliest to latest");
                figure.line(&name, ends.collect()).in_channel(STAGE_CHANNELS[at])
            })
        }
    }
}

/// The share of answers that have started at each place of a trace: x in µs.
fn edge_of(trace: &StageTrace) -> Vec<[f64; 2]> {
    let at = |(point, share): (usize, &f64)| [point as f64 * trace.step_ns / 1e3, *share];
    trace.started.iter().enumerate().map(at).collect()
}

/// The traces of the oscilloscope, from top to bottom: its third, second and first channel.
const CHANNELS: [&str; 3] = ["stage 2 (APP_TEST)", "stage 1 (ISR_TEST)", "stimulus"];
/// The channel of a stage, of which the first has the number 0, and that of the stimulus.
const STAGE_CHANNELS: [usize; 2] = [1, 0];
const STIMULUS_CHANNEL: usize = 2;
/// Time shown before the stimulus and end of the screen, as multiples of the time of the last
/// answer.
const BEFORE: f64 = 0.05;
const AFTER: f64 = 1.1;
/// Where the last single answers are put together.
const SINGLE_STEPS: usize = 200;

/// A trace that goes up at `at_us`.
fn edge(at_us: f64, end_us: f64) -> Vec<[f64; 2]> {
    vec![[-BEFORE * end_us, 0.0], [at_us, 0.0], [at_us, 1.0], [end_us, 1.0]]
}

/// An empty screen with the stimulus.
fn screen(id: &str, title: &str, end_us: f64) -> Drawing {
    let figure = Drawing::new(id, title, "µs after the stimulus", "").channels(CHANNELS);
    if end_us <= 0.0 {
        return figure;
    }
    figure.line("stimulus", edge(0.0, end_us)).in_channel(STIMULUS_CHANNEL)
}

/// The answers of a stage on a screen.
struct OnScreen<'n> {
    /// The stage, from 0 on.
    stage: usize,
    /// The share of all of them that are up from each µs on.
    shares: Vec<[f64; 2]>,
    /// Which ones they are: "all".
    which: &'n str,
    /// When the last one began, µs.
    last_us: Option<f64>,
    /// Where the screen ends, µs.
    end_us: f64,
}

impl OnScreen<'_> {
    /// With them in the channel of their stage: all as shades, and the last one as the line that an
    /// oscilloscope draws.
    fn on(self, figure: Drawing) -> Drawing {
        let Self { stage, shares, which, last_us, end_us } = self;
        let (name, channel) = (format!("stage {}", stage + 1), STAGE_CHANNELS[stage]);
        let mut whole = vec![[-BEFORE * end_us, 0.0]];
        whole.extend(shares);
        let figure = figure.density(&format!("{name}: {which}"), whole).in_channel(channel);
        match last_us.filter(|us| *us <= end_us) {
            Some(us) => {
                figure.line(&format!("{name}: the last"), edge(us, end_us)).in_channel(channel)
            }
            None => figure,
        }
    }
}

/// The last single answers of both stages, each after its stimulus.
fn single(id: &str, title: &str, stages: Vec<&StageRow>) -> Drawing {
    let traces: Vec<_> = stages.iter().filter_map(|stage| stage.trace.as_ref()).collect();
    let in_us = |ns: &i64| *ns as f64 / 1e3;
    // A stall of one answer would leave nothing to be seen of the others.
    let ends = traces.iter().filter_map(|trace| extent(trace.single_ns.iter().map(in_us), false));
    let end_us = ends.map(|end| end.high).fold(0.0, f64::max) * AFTER;
    let figure = screen(id, title, end_us);
    traces.into_iter().enumerate().fold(figure, |figure, (stage, trace)| {
        let mut single_us: Vec<f64> = trace.single_ns.iter().map(in_us).collect();
        let last_us = single_us.last().copied();
        single_us.sort_by(f64::total_cmp);
        let shares = (0..=SINGLE_STEPS).map(|step| {
            let us = end_us * step as f64 / SINGLE_STEPS as f64;
            let up = single_us.partition_point(|single| *single <= us);
            [us, up as f64 / single_us.len().max(1) as f64]
        });
        let (shares, which) = (shares.collect(), format!("the last {}", single_us.len()));
        OnScreen { stage, shares, which: &which, last_us, end_us }.on(figure)
    })
}

/// All answers of both stages, and the last one.
fn persistent(id: &str, title: &str, stages: Vec<&StageRow>) -> Drawing {
    let traces: Vec<&StageTrace> = stages.iter().filter_map(|stage| stage.trace.as_ref()).collect();
    let length_us = |trace: &StageTrace| trace.step_ns * trace.started.len() as f64 / 1e3;
    let end_us = traces.iter().map(|trace| length_us(trace)).fold(0.0, f64::max);
    let figure = screen(id, title, end_us);
    traces.into_iter().enumerate().fold(figure, |figure, (stage, trace)| {
        let mut shares = edge_of(trace);
        // The one that ends before the other stays where it was.
        shares.extend(trace.started.last().map(|share| [end_us, *share]));
        let last_us = trace.single_ns.last().map(|ns| *ns as f64 / 1e3);
        let which = match trace.beyond {
            0 => "all".to_owned(),
            late => {
                let latest = stages[stage].start_ns.max.map_or_else(String::new, |ns| {
                    format!(", the latest at {} µs", concise((ns / 100.0).round() / 10.0))
                });
                format!("all, of which {late} lie beyond{latest}")
            }
        };
        OnScreen { stage, shares, which: &which, last_us, end_us }.on(figure)
    })
}

/// The text above a column: as many digits of its value as there is room for.
fn above(value: f64) -> String {
    let digits = (1.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 9.0) as usize;
    concise(format!("{value:.digits$}").parse().unwrap_or(value))
}

/// Figure 3.
fn polygons_figure(measured_here: Option<f64>) -> Drawing {
    let names = POLYGONS.iter().map(|polygons| polygons.system).chain(["here"]);
    let published = POLYGONS.iter().enumerate().filter_map(|(at, polygons)| {
        Some(([at as f64, polygons.rate.parse().ok()?], polygons.rate.to_owned()))
    });
    let measured = measured_here.map(|rate| ([POLYGONS.len() as f64, rate], above(rate.round())));
    Drawing::new("wince.fig3", "polygons per second", "", "polygons/s (log)")
        .log([false, true])
        .named(names)
        .bars("published", published)
        .bars("here", measured)
}

/// The kinds of columns of figure 8: the ends of ids, and their names.
const FREQUENCY_KINDS: [(&str, &str); 3] = [
    ("mf-isr", "MF of the interrupt"),
    ("mf-app", "MF of the application"),
    ("sf", "polygons die"),
];

/// Figure 8: what is published of each system, and this one.
fn frequencies_figure(rows: &[PaperRow]) -> Drawing {
    let title = "first frequency that loses, and where the background stops";
    let names = FREQUENCIES.iter().map(|system| kernel_name(system.kernel, system.loaded));
    let names: Vec<String> = names.chain(["here".to_owned(), "here, loaded".to_owned()]).collect();
    let figure = Drawing::new("wince.fig8", title, "", "kHz (log)").log([false, true]).named(names);
    let kinds = FREQUENCY_KINDS.iter().enumerate();
    kinds.fold(figure, |figure, (at, (key, name))| {
        let aside = (at as f64 - 1.0) * 0.27;
        let published = FREQUENCIES.iter().enumerate().filter_map(|(place, system)| {
            let cell = system.cells[at];
            let khz = kilohertz(cell)?;
            Some(([place as f64 + aside, khz], above(khz)))
        });
        // All rows of a condition have the same value: those of CE 3.0 stand for them.
        let measured =
            [("ce30", 0.0), ("ce30-loaded", 1.0)].into_iter().filter_map(|(system, place)| {
                let id = format!("wince.fig8.{system}.{key}");
                let khz = rows.iter().find(|row| row.id == id)?.measured?;
                let place = FREQUENCIES.len() as f64 + place;
                Some(([place + aside, khz], above(khz)))
            });
        figure
            .bars(&format!("published: {name}"), published)
            .bars(&format!("here: {name}"), measured)
    })
}

/// `CE 3.0, loaded`.
fn kernel_name(kernel: Kernel, loaded: bool) -> String {
    let name = match kernel {
        Kernel::Ce212 => "CE 2.12",
        Kernel::Ce30 => "CE 3.0",
        Kernel::CeNet => "CE.NET",
    };
    if loaded { format!("{name}, loaded") } else { name.to_owned() }
}

/// The losses that a highest frequency is found for.
const LOSSES: [(f64, &str); 3] =
    [(0.0, "nothing lost"), (1e-4, "1 in 10 000 lost"), (1e-2, "1 in 100 lost")];

/// Beside figure 8: the highest frequencies here by what may be lost, for each condition and stage.
fn losses_figure(saturation: Option<&SaturationOutcome>) -> Drawing {
    let rows = saturation.map_or(&[][..], |saturation| &saturation.rows);
    let mut places: Vec<(&str, u32)> = Vec::new();
    for row in rows {
        if !places.contains(&(&*row.condition, row.stage)) {
            places.push((&row.condition, row.stage));
        }
    }
    let names = places
        .iter()
        .map(|(condition, stage)| format!("{}, stage {stage}", condition_words(condition)));
    let title = "highest frequencies here, by what may be lost";
    let figure =
        Drawing::new("wince.fig8.losses", title, "", "kHz (log)").log([false, true]).named(names);
    let at_place = |loss: f64, (place, (condition, stage)): (usize, &(&str, u32))| {
        let is_own = |row: &&SaturationRow| {
            (&*row.condition, row.stage) == (*condition, *stage) && row.goal == loss
        };
        Some((place as f64, rows.iter().find(is_own)?))
    };
    let asides = |at: usize| (at as f64 - 1.0) * 0.27;
    let figure = LOSSES.into_iter().enumerate().fold(figure, |figure, (at, (loss, name))| {
        let bars = places.iter().enumerate().filter_map(|place| {
            let (place, row) = at_place(loss, place)?;
            let khz = row.pass_hz? / 1e3;
            Some(([place + asides(at), khz], above(khz)))
        });
        figure.bars(&format!("here: {name}"), bars)
    });
    // No frequency that was tried loses so little: the highest lies below the lowest of them.
    let mut below: Vec<([f64; 2], String)> = Vec::new();
    for (at, (loss, _)) in LOSSES.into_iter().enumerate() {
        below.extend(places.iter().enumerate().filter_map(|place| {
            let (place, row) = at_place(loss, place)?;
            let khz = row.fail_hz.filter(|_| row.pass_hz.is_none())? / 1e3;
            Some(([place + asides(at), khz], format!("< {}", above(khz))))
        }));
    }
    let below = below.iter().map(|(at, name)| (*at, name.as_str()));
    figure.points("here: below the least that was tried", below)
}

/// Figure 11: from the earliest to the latest start of both stages, published and here.
fn latencies_figure(measured: &WinceResponses) -> Drawing {
    let title = "earliest, mean and latest start of both stages";
    let names = LATENCIES.iter().map(|system| kernel_name(system.kernel, system.loaded));
    let names: Vec<String> = names.chain(["here".to_owned(), "here, loaded".to_owned()]).collect();
    let figure = Drawing::new("wince.fig11", title, "", "µs (log)").log([false, true]).named(names);
    ["ISR", "APP"].into_iter().enumerate().fold(figure, |figure, (at, name)| {
        let aside = (at as f64 - 0.5) * 0.4;
        let published = LATENCIES.iter().enumerate().filter_map(|(place, system)| {
            let [latest, earliest, _, mean] = system.cells[at].map(|cell| cell.parse().ok());
            Some((place as f64 + aside, [earliest?, mean?, latest?]))
        });
        let ranges = [&measured.idle, &measured.equal].into_iter().enumerate();
        let ranges = ranges.filter_map(|(condition, row)| {
            let ns = &row.as_ref()?.stages.get(at)?.start_ns;
            let place = (LATENCIES.len() + condition) as f64 + aside;
            Some((place, [ns.min? / 1e3, ns.mean? / 1e3, ns.max? / 1e3]))
        });
        let ends = format!("{name}, earliest, mean, latest");
        figure
            .ranges(&format!("published: {ends}"), published)
            .ranges(&format!("here: {ends}"), ranges)
    })
}

#[cfg(test)]
mod tests {
    use punctual_lab::saturation::BackgroundRow;

    use super::*;
    use crate::figure::Style;

    fn outcome(rows: Vec<SaturationRow>, background: Option<BackgroundRow>) -> SaturationOutcome {
        SaturationOutcome {
            source: "eventfd".to_owned(),
            cpu: 1,
            stimulus_cpu: 0,
            trial_ns: 1_000_000_000,
            unthrottled: false,
            highest_hz: 5e4,
            stage_2: None,
            generator_hz: None,
            rows,
            trials: Vec::new(),
            background,
            lost: None,
        }
    }

    #[test]
    fn every_row_has_an_id_of_its_own_and_a_reason_where_nothing_is_measured() {
        let none = WinceResponses { idle: None, equal: None, polygons: None };
        let parts =
            [polygons(&none, false), figures(&none), frequencies(None, false), latencies(&none)];
        let rows: Vec<PaperRow> = parts.into_iter().flatten().collect();
        let mut ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), rows.len());
        assert!(rows.iter().all(|row| row.measured.is_none() && !row.note.is_empty()));
        let of_three = |row: &&PaperRow| {
            ["wince.fig9", "wince.fig10"].iter().any(|figure| row.id.starts_with(figure))
        };
        assert_eq!(rows.iter().filter(of_three).count(), 3);
        assert!(rows.iter().filter(of_three).all(|row| row.note.contains("one system stands for")));
    }

    #[test]
    fn what_is_called_loaded_is_one_condition_in_rows_and_figures() {
        let stage = |ns: f64| {
            let ns = punctual_analysis::summary::SummaryStats {
                min: Some(ns),
                mean: Some(ns),
                p50: Some(ns),
                max: Some(ns),
                ..Default::default()
            };
            StageRow { start_ns: ns.clone(), complete_ns: ns, ..StageRow::default() }
        };
        let row =
            |ns| Some(ResponseRow { stages: vec![stage(ns), stage(ns)], ..ResponseRow::default() });
        let measured = WinceResponses { idle: row(1_000.0), equal: row(7_000.0), polygons: None };
        let rows = [figures(&measured), latencies(&measured)].concat();
        let ranges =
            |row: &&PaperRow| row.id.starts_with("wince.fig6a") || row.id.ends_with("jitter");
        let peaks = rows.iter().find(|row| row.id == "wince.fig6c.app").expect("a row");
        assert_eq!((&*peaks.published, peaks.measured), ("15 and 30", None));
        assert!(peaks.note.contains("the median of all starts is 7.0 µs here"), "{peaks:?}");
        let is_of_212 = |row: &&PaperRow| row.id.contains("fig9a") || row.id.contains("ce212");
        assert!(rows.iter().filter(is_of_212).all(|row| row.note.contains("19 Hz there")));
        for row in rows.iter().filter(|row| !ranges(row) && row.id != peaks.id) {
            let loaded = row.title.contains("loaded") && !row.title.contains("unloaded");
            assert_eq!(row.measured, Some(if loaded { 7.0 } else { 1.0 }), "{row:?}");
        }
    }

    #[test]
    fn a_shortened_run_says_how_many_of_the_million_it_has() {
        let row = |stimuli| Some(ResponseRow { stimuli, ..ResponseRow::default() });
        let measured = |idle, equal| WinceResponses { idle, equal, polygons: None };
        let short = responses(&measured(row(16_000), row(15_000)));
        assert_eq!((short.measured, short.published.as_str()), (Some(15_000.0), "1000000"));
        for words in
            ["16000 unloaded", "15000 at equal priority", "shortened: 1.5 % of the million"]
        {
            assert!(short.note.contains(words), "{short:?}");
        }
        let whole = responses(&measured(row(1_000_000), row(1_000_001)));
        assert!(!whole.note.contains("shortened"), "{whole:?}");
        let none = responses(&measured(None, None));
        assert!(none.measured.is_none() && none.note.contains("not measured"), "{none:?}");
    }

    #[test]
    fn a_frequency_that_no_trial_reached_is_explained_by_what_was_tried() {
        let trial = |condition: &str, hz, generator_limited, background_share| TrialRow {
            condition: condition.to_owned(),
            hz,
            generator_limited,
            background_share,
            ..TrialRow::default()
        };
        let saturation = SaturationOutcome {
            trials: vec![
                trial("unloaded", 2e4, false, None),
                trial("unloaded", 4e4, true, None),
                trial("loaded", 3e4, false, Some(0.62)),
                trial("equal", 1e4, false, None),
            ],
            ..outcome(Vec::new(), None)
        };
        let rows = frequencies(Some(&saturation), false);
        let says = |id: &str, tried: &str| {
            let row = rows.iter().find(|row| row.id == id).expect("a row");
            assert!(row.measured.is_none() && row.note.contains(tried), "{}", row.note);
        };
        says(
            "wince.fig8.cenet-loaded.sf",
            "not measured: not reached up to 30.000 kHz, a frequency that leaves polygons 62 %",
        );
        // Not what the generator could not raise.
        says("wince.fig8.cenet.mf-isr", "not reached up to 20.000 kHz");
        // The paper's load has the priority of the application's stage.
        says("wince.fig8.cenet-loaded.mf-app", "not reached up to 10.000 kHz");
        // A search that its time ended says so.
        let row = SaturationRow {
            condition: "unloaded".to_owned(),
            stage: 1,
            goal: 0.0,
            pass_hz: Some(2e4),
            fail_hz: None,
            first_loss_hz: None,
            stimuli: 100,
            end: SearchEnd::Unfinished,
        };
        let cut = SaturationOutcome { rows: vec![row], ..saturation };
        let rows = frequencies(Some(&cut), false);
        let note = |id: &str| &rows.iter().find(|row| row.id == id).expect("a row").note;
        assert!(note("wince.fig8.cenet.mf-isr").contains("up to 20.000 kHz; the time was over"));
        assert!(!note("wince.fig8.cenet-loaded.mf-app").contains("the time was over"));
        let alone = frequencies(None, true);
        assert!(alone.iter().all(|row| row.note.contains("it takes a second CPU")), "{alone:?}");
    }

    #[test]
    fn loaded_frequencies_are_those_at_equal_priority_and_those_that_may_lose_have_rows() {
        let row = |condition: &str, stage, goal, hz: f64| SaturationRow {
            condition: condition.to_owned(),
            stage,
            goal,
            pass_hz: Some(hz).filter(|hz| *hz > 0.0),
            fail_hz: Some(8e5),
            first_loss_hz: Some(hz),
            stimuli: 100,
            end: SearchEnd::Unfinished,
        };
        let rows = vec![
            row("unloaded", 1, 0.0, 1e3),
            row("loaded", 1, 0.0, 2e3),
            row("loaded", 2, 0.0, 3e3),
            row("equal", 1, 0.0, 4e3),
            row("equal", 2, 0.0, 5e3),
            row("equal", 2, 1e-4, 6e3),
            row("unloaded", 1, 1e-2, 0.0),
        ];
        let background = BackgroundRow {
            rate: 900.0,
            sf50_hz: None,
            sf10_hz: Some(7e3),
            dead_hz: None,
            least_share: None,
            cost_ns: None,
            predicted_hz: Some(9e3),
            tried_hz: None,
            off_line: None,
        };
        let trial = |hz: f64, left: f64| TrialRow {
            condition: "loaded".to_owned(),
            hz,
            background_share: Some(left),
            ..TrialRow::default()
        };
        let mut saturation = outcome(rows, Some(background));
        saturation.trials = vec![trial(5e3, 0.3), trial(7e3, 0.05)];
        let rows = frequencies(Some(&saturation), false);
        let row =
            |id: &str| rows.iter().find(|row| row.id == format!("wince.fig8.{id}")).expect("a row");
        for (id, khz) in [
            ("ce30.mf-isr", 1.0),
            ("ce30-loaded.mf-isr", 4.0),
            ("cenet-loaded.mf-app", 5.0),
            ("cenet-loaded.sf", 7.0),
            ("here-loaded.mf-app.1e-4", 6.0),
            ("here-loaded.sf.predicted", 9.0),
        ] {
            assert_eq!(row(id).measured, Some(khz), "{id}");
        }
        assert!(row("here-loaded.mf-app.1e-4").note.contains("at least this"));
        let mut bent = saturation.clone();
        if let Some(background) = &mut bent.background {
            (background.predicted_hz, background.off_line) = (None, Some(0.25));
        }
        let predicted = stopped(Some(&bent), false);
        assert!(predicted.measured.is_none() && predicted.note.contains("leave 25 %"));
        let lost = row("here.mf-isr.1e-2");
        assert!(
            lost.measured.is_none() && lost.note.contains("800.000 kHz, the lowest"),
            "{lost:?}"
        );
    }

    #[test]
    fn the_jitter_of_figure_11_is_its_maximum_less_its_minimum_to_the_digits_printed() {
        for system in LATENCIES {
            for cells in system.cells {
                let [max, min, range, _] = cells.map(|cell| cell.parse::<f64>().expect("a number"));
                assert!((max - min - range).abs() < 0.051, "{}: {cells:?}", system.id);
            }
        }
    }

    #[test]
    fn what_is_published_is_drawn_where_nothing_is_measured() {
        let none = WinceResponses { idle: None, equal: None, polygons: None };
        let drawn = drawn(&none, None, &[]);
        let figure = |id: &str| drawn.iter().find(|figure| figure.id == id).expect("drawn");
        let series = |id: &str| {
            figure(id).series.iter().map(|series| series.points.len()).collect::<Vec<_>>()
        };
        assert_eq!(series("wince.fig3"), [POLYGONS.len()]);
        assert_eq!(figure("wince.fig3").names.len(), POLYGONS.len() + 1);
        assert_eq!(series("wince.fig11"), [3 * LATENCIES.len(), 3 * LATENCIES.len()]);
        // Of those that die three cells are empty, one is "N/A".
        let systems = FREQUENCIES.len();
        assert_eq!(series("wince.fig8"), [systems, systems, systems - 4]);
        assert!(series("wince.fig5").is_empty() && series("wince.fig8.losses").is_empty());
        for id in ["wince.fig9a", "wince.fig9b", "wince.fig10"] {
            assert_eq!(series(id), [2, 2], "earliest and latest of both stages: {id}");
        }
    }

    #[test]
    fn each_figure_of_traces_has_its_own_id_and_the_answers_that_it_is_of() {
        let stage = |ns: i64| StageRow {
            trace: Some(StageTrace {
                step_ns: 5_000.0,
                started: vec![0.0, 1.0],
                beyond: 0,
                single_ns: vec![ns, ns + 500],
            }),
            ..StageRow::default()
        };
        let row = |ns: i64| {
            Some(ResponseRow { stages: vec![stage(ns), stage(ns + 100)], ..ResponseRow::default() })
        };
        let (idle, equal) = (row(1_000), row(3_000));
        let drawn = drawn(&WinceResponses { idle, equal, polygons: None }, None, &[]);
        let mut ids: Vec<&str> = drawn.iter().map(|figure| figure.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), drawn.len());
        let named = |id: &str, name: &str| {
            let figure = drawn.iter().find(|figure| figure.id == id).expect("drawn");
            let series = figure.series.iter().find(|series| series.name == name);
            series.cloned().unwrap_or_else(|| panic!("{id} has no {name}"))
        };
        let series = |id: &str, name: &str| named(id, name).points;
        // The last answer of stage 2 under load goes up once, in the channel at the top.
        for (id, name, us, channel) in [
            ("wince.fig5", "stage 1: the last", 1.5, 1),
            ("wince.fig6b", "stage 2: the last", 3.6, 0),
            ("wince.fig7", "stage 2: the last", 3.6, 0),
        ] {
            let trace = named(id, name);
            assert_eq!((trace.channel, trace.style), (channel, Style::Line), "{id}");
            let [before, at, up, after] = trace.points[..] else { panic!("{trace:?}") };
            assert_eq!((at, up), ([us, 0.0], [us, 1.0]), "{id}");
            assert!(before[0] < 0.0 && after[0] > us && after[1] == 1.0, "{id}: {trace:?}");
        }
        // All single ones are up at the end, none before the first.
        let shares = series("wince.fig5", "stage 1: the last 2");
        assert_eq!((shares[0][1], shares[SINGLE_STEPS + 1][1]), (0.0, 1.0));
        assert!(shares.windows(2).all(|pair| pair[0][1] <= pair[1][1]));
        let traces = named("wince.fig7", "stage 1: all");
        assert_eq!((traces.style, traces.points[2]), (Style::Density, [5.0, 1.0]));
        let singles = |id: &str| series(id, "single ones")[0][0];
        let first = ["6a", "6c"].map(|number| singles(&format!("wince.fig{number}")));
        assert_eq!(first, [1.0, 3.0]);
        // The paper's three: a montage of all, the average, the last, in the channel of the stage.
        for id in ["wince.fig9a", "wince.fig9b", "wince.fig10"] {
            let [each, average, last] = ["all", "the average", "the last"]
                .map(|name| named(id, &format!("stage 2: {name}")));
            assert_eq!((each.style, each.channel), (Style::Density, 0), "{id}");
            assert_eq!((average.style, average.channel), (Style::Line, 0), "{id}");
            assert_eq!(
                (average.points, last.points[1]),
                (vec![[0.0, 0.0], [5.0, 1.0]], [3.6, 0.0])
            );
        }
        let published = |stage| {
            series("wince.fig9a", &format!("published in figure 11: {stage}, earliest to latest"))
        };
        assert_eq!(published("ISR"), [[3.9, 0.0], [11.0, 1.0]]);
        assert_eq!(published("APP"), [[117.0, 0.0], [201.0, 1.0]]);
    }

    #[test]
    fn figure_6a_has_the_middle_of_all_and_of_the_last() {
        let mut single_ns: Vec<i64> = (0..128).map(|at| 2_000 + 10 * at).collect();
        single_ns[7] = 9_000_000;
        let trace = StageTrace { step_ns: 1.0, started: vec![0.0], beyond: 0, single_ns };
        let stage = StageRow {
            middle_ns: Some(2_200.0),
            response_range_ns: Some(9e6),
            trace: Some(trace),
            ..StageRow::default()
        };
        let idle = Some(ResponseRow { stages: vec![stage], ..ResponseRow::default() });
        let rows = figures(&WinceResponses { idle, equal: None, polygons: None });
        let us = |id: &str| rows.iter().find(|row| row.id == id).and_then(|row| row.measured);
        assert_eq!(us("wince.fig6a.isr"), Some(9_000.0));
        assert_eq!(us("wince.fig6a.isr.middle"), Some(2.2));
        let last = us("wince.fig6a.isr.last").expect("128 answers");
        assert!((last - 1.22).abs() < 1e-9, "{last}");
    }

    #[test]
    fn answers_that_lie_beyond_a_screen_are_counted_in_its_legend() {
        let stage = |beyond| StageRow {
            start_ns: punctual_analysis::summary::SummaryStats {
                max: Some(5_600_000.0),
                ..Default::default()
            },
            trace: Some(StageTrace {
                step_ns: 10.0,
                started: vec![0.0, 1.0],
                beyond,
                single_ns: Vec::new(),
            }),
            ..StageRow::default()
        };
        let figure = persistent("wince.fig7", "all", vec![&stage(0), &stage(67)]);
        let names: Vec<&str> = figure.series.iter().map(|series| &*series.name).collect();
        assert_eq!(
            names,
            [
                "stimulus",
                "stage 1: all",
                "stage 2: all, of which 67 lie beyond, the latest at 5600 µs"
            ]
        );
    }

    #[test]
    fn what_is_published_and_what_is_measured_are_series_of_their_own() {
        let stage = StageRow {
            start_ns: punctual_analysis::summary::SummaryStats {
                min: Some(1e3),
                mean: Some(2e3),
                max: Some(3e3),
                ..Default::default()
            },
            ..StageRow::default()
        };
        let row = ResponseRow { stages: vec![stage.clone(), stage], ..ResponseRow::default() };
        let measured = WinceResponses { idle: Some(row), equal: None, polygons: None };
        let found =
            vec![PaperRow::new("wince.fig8.ce30.mf-isr", "", "kHz", "").measured(Some(5.0))];
        for figure in [frequencies_figure(&found), latencies_figure(&measured)] {
            for series in &figure.series {
                let is_here =
                    |at: &&[f64; 2]| figure.names[at[0].round() as usize].starts_with("here");
                let count = series.points.iter().filter(is_here).count();
                let wanted =
                    if series.name.starts_with("here: ") { series.points.len() } else { 0 };
                assert_eq!(count, wanted, "{}: {}", figure.id, series.name);
            }
            assert!(figure.series.iter().any(|series| series.name.starts_with("here: ")));
        }
    }

    #[test]
    fn a_stalled_answer_leaves_the_others_readable() {
        let mut single_ns: Vec<i64> = (0..127).map(|at| 2_000 + at).collect();
        single_ns.insert(60, 217_000_000);
        let (step_ns, started, beyond) = (10.0, vec![0.0, 1.0], 1);
        let trace = Some(StageTrace { step_ns, started, beyond, single_ns });
        let stage = StageRow { trace, ..StageRow::default() };
        let figure = single("wince.fig5", "single", vec![&stage, &stage]);
        let ends = figure.series.iter().flat_map(|series| &series.points).map(|at| at[0]);
        assert!(ends.fold(0.0, f64::max) < 3.0, "{figure:?}");
        let shares = &figure.series.iter().find(|series| series.style == Style::Density);
        let last = shares.expect("a density").points[SINGLE_STEPS + 1];
        assert!((last[1] - 127.0 / 128.0).abs() < 1e-9, "it is not up yet: {last:?}");
    }

    #[test]
    fn highest_frequencies_stand_by_condition_and_stage_for_each_loss() {
        let row = |condition: &str, stage, goal, pass_hz| SaturationRow {
            condition: condition.to_owned(),
            stage,
            goal,
            pass_hz,
            fail_hz: None,
            first_loss_hz: None,
            stimuli: 100,
            end: SearchEnd::Found,
        };
        let saturation = outcome(
            vec![
                row("unloaded", 1, 0.0, Some(5e3)),
                row("unloaded", 1, 1e-2, Some(2e4)),
                SaturationRow { fail_hz: Some(250.0), ..row("equal", 2, 0.0, None) },
            ],
            None,
        );
        let figure = losses_figure(Some(&saturation));
        assert_eq!(figure.names, ["unloaded, stage 1", "loaded, at equal priority, stage 2"]);
        let found: Vec<(&str, f64)> = figure
            .series
            .iter()
            .flat_map(|series| series.points.iter().map(|at| (&*series.name, at[1])))
            .collect();
        let below = ("here: below the least that was tried", 0.25);
        assert_eq!(found, [("here: nothing lost", 5.0), ("here: 1 in 100 lost", 20.0), below]);
        assert_eq!(figure.series[2].labels, ["< 0.25"]);
    }
}
