//! `punctual measure executive`: what the executive's table costs, held against the ways of others.
//!
//! One thread on one CPU; the designs take turns in short blocks. Reports also what a turn of the
//! loop adds to the bare wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use punctual::clocks::{MachineClock, StampCost};
use punctual::core::time::Span;
use punctual::os::scheduler::Policy;
use punctual::os::signal;
use punctual::session::{Process, Refusal, Thread};
use punctual_host::facts::Facts;
use punctual_lab::executive::{Cell, Row, Stamps, Turn, ratios};

use crate::Exit;
use crate::args::ExecutiveArgs;
use crate::experiment::PRIORITY;
use crate::output::Json;
use crate::report::{self, Clock, Report};
use crate::view;

/// The share of the time that the turn of the loop is measured in, and the least.
const TURN_SHARE: i64 = 6;
const TURN_MIN: Span = Span::from_ms(400);

/// Runs the subcommand.
pub(crate) fn run(args: &ExecutiveArgs) -> Result<Exit> {
    let facts = Facts::collect(&super::root(None)?);
    let (cpus, choice) = super::measure::pick(args.cpu.as_deref(), &facts)?;
    let mut named = cpus.iter();
    let (Some(cpu), None) = (named.next(), named.next()) else {
        bail!("--cpu: the executive is measured on one CPU");
    };
    let json = Json::open(args.json.as_deref())?;
    signal::catch_stop().context("cannot catch SIGINT")?;
    let started = jiff::Timestamp::now();
    let process = Process::enter();
    let (sizes, duration) = (args.tasks.clone(), args.duration.0);
    let measured = thread::Builder::new()
        .spawn(move || measure(cpu, &sizes, duration, signal::stop_flag()))
        .context("cannot start a thread")?
        .join()
        .map_err(|_| anyhow!("the measuring thread ended by a fault of this program"))?;
    let mut report = Report::empty("measure executive");
    report.started_at = Some(started.to_string());
    report.incomplete = measured.incomplete;
    report.choice = Some(choice);
    let refused = process.refused().iter().chain(&measured.refused);
    report.session = Some(report::granted(&process, refused, &facts));
    report.clock = Some(measured.clock);
    report.ratios = ratios(&measured.rows).iter().map(Into::into).collect();
    report.rows = measured.rows.iter().map(|row| report::Row::Executive(row.into())).collect();
    report.turn = measured.turn.as_ref().map(Into::into);
    report.machine = Some(facts);
    json.write(&view::json::of(&report)?, &view::text::executive(&report))?;
    Ok(Exit::Fine)
}

/// What the measuring thread found.
struct Measured {
    rows: Vec<Row>,
    turn: Option<Turn>,
    incomplete: bool,
    refused: Vec<Refusal>,
    clock: Clock,
}

fn measure(cpu: u32, sizes: &[u32], duration: Span, stop: &AtomicBool) -> Measured {
    let mut clock = MachineClock::best();
    let session = Thread::enter(Some(cpu), Policy::Fifo(PRIORITY));
    let stamps = Stamps::of(&clock);
    let cost = StampCost::measure(&mut clock);
    let for_turn = Span::from_ns(duration.as_ns() / TURN_SHARE).max(TURN_MIN);
    let cells: Vec<Cell> = sizes
        .iter()
        .flat_map(|&n| [false, true].map(|cold| Cell { n: n as usize, cold }))
        .collect();
    let count = i64::try_from(cells.len()).unwrap_or(i64::MAX).max(1);
    let share = Span::from_ns((duration.as_ns() - for_turn.as_ns()).max(0) / count);
    let mut stopped = || stop.load(Ordering::Relaxed);
    let mut rows = Vec::new();
    for cell in cells {
        rows.extend(cell.measure(&stamps, share, &mut stopped).unwrap_or_default());
    }
    let turn = Turn::measure(&mut clock, &stamps, for_turn, stop);
    Measured {
        rows,
        incomplete: stopped(),
        turn,
        refused: session.refused().to_vec(),
        clock: report::stamps(&clock, cost),
    }
}
