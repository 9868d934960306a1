//! A campaign as a report: one run for each loop and setup, and what is a campaign's alone.
//!
//! Pure: everything comes in as an argument.

use punctual_analysis::campaign::{Campaign, Pool, Total};
use punctual_host::facts::MachineFacts;
use punctual_report::{
    self as report, Choice, Clock, EndedBy, Envelope, Load, Question, Report, Run, Session, Setup,
    SoakBody, Warning,
};

use super::CampaignConfig;
use super::limits;
use super::run_name;
use crate::cli::PROGRAM;
use crate::format;

/// What only the process that measures knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Here {
    /// Why these CPUs.
    pub(crate) choice: Option<Choice>,
    /// What stamps were taken with.
    pub(crate) clock: Option<Clock>,
    /// What is known of the machine.
    pub(crate) machine: Option<MachineFacts>,
    /// What the kernel granted.
    pub(crate) session: Option<Session>,
    /// What a reader should know.
    pub(crate) warnings: Vec<Warning>,
    /// What the loads did in the latest batch, by run of the setup that is measured now.
    pub(crate) loads: Vec<Vec<Load>>,
    /// Which setup that is.
    pub(crate) pool: Option<usize>,
}

/// The report of a campaign as it is.
pub(super) fn report(campaign: &Campaign, config: &CampaignConfig, here: &Here) -> Report {
    let measured_ns = campaign.measured_ns();
    let duration_ns = config.duration.map(|duration| duration.as_ns().unsigned_abs());
    let incomplete = duration_ns.is_some_and(|duration| measured_ns < duration);
    let of = |(at, number, pool, total): (usize, usize, &Pool, &Total)| {
        let loads = if here.pool == Some(at) { here.loads.get(number) } else { None };
        report_run(campaign, at, pool, number, total, loads.cloned().unwrap_or_default())
    };
    let runs: Vec<Run> = limits::runs(campaign).map(of).collect();
    let mut verdict = report::judge(&runs, &config.limits, incomplete);
    for ((at, number, pool, total), run) in limits::runs(campaign).zip(&runs) {
        let setup = &pool.setup().runs[number];
        for ask in &config.claims {
            let judged = limits::claim(ask, total, setup.period_ns);
            let judged = report::open_where_loads_died(run, judged);
            verdict.add_claim(run_name(campaign, at, setup), judged, config.strict);
        }
    }
    let mut warnings = here.warnings.clone();
    warnings.extend(cautions(campaign).into_iter().map(Warning::from));
    let began = jiff::Timestamp::from_second(campaign.began_unix_s).ok();
    let envelope = Envelope {
        started_at: began.map(|at| at.to_string()),
        incomplete,
        ended_by: incomplete.then_some(EndedBy::Continues),
        machine: here.machine.clone(),
        choice: here.choice.clone(),
        clock: here.clock.clone(),
        session: here.session.clone(),
        warnings,
        verdict,
        ..Envelope::of(PROGRAM, "soak")
    };
    let question = Question { incomplete, ..Question::default() };
    let judged = report::judged(runs, &[], &envelope, &question);
    let body = SoakBody { judged, campaign: own(campaign, duration_ns) };
    Report { envelope, body: body.into() }
}

/// What the numbers of a campaign do not say of themselves.
fn cautions(campaign: &Campaign) -> Vec<String> {
    let mut cautions = Vec::new();
    if campaign.pools().len() > 1 {
        cautions.push(format!(
            "{} setups are kept apart: the kernel, the machine's settings or the policy changed",
            campaign.pools().len()
        ));
    }
    let boots = campaign.boot();
    if boots < 3 && boots > 0 {
        cautions.push(format!(
            "{boots} boot{}: results differ from boot to boot; three to five boots show by how \
             much",
            if boots == 1 { "" } else { "s" }
        ));
    }
    cautions
}

fn report_run(
    campaign: &Campaign,
    at: usize,
    pool: &Pool,
    number: usize,
    total: &Total,
    loads: Vec<Load>,
) -> Run {
    let setup = &pool.setup().runs[number];
    let effort = total.effort();
    let spins = setup.wait == "spin";
    let shown = Setup {
        cpu: setup.cpu,
        period_ns: Some(setup.period_ns),
        phase_ns: Some(setup.phase_ns),
        follows: None,
        policy: Some(setup.policy.clone()),
        priority: setup.priority,
        wait: Some(setup.wait.clone()),
        load: setup.load.clone(),
        duration_ns: Some(effort.wall_ns),
    };
    let mut run = Run::recorded(run_name(campaign, at, setup), shown, total.outcome());
    run.stalled = spins.then_some(effort.stalled);
    run.stall_max_ns = spins.then_some(effort.stall_max_ns as f64);
    run.cpu_load = (effort.wall_ns > 0).then(|| effort.cpu_ns as f64 / effort.wall_ns as f64);
    run.page_faults = Some(effort.page_faults);
    run.preempted = Some(effort.preempted);
    run.loads = loads;
    run.load_deaths = effort.load_deaths;
    run
}

fn own(campaign: &Campaign, duration_ns: Option<u64>) -> report::Campaign {
    let kept = |pool: &Pool| report::Kept {
        digest: pool.setup().digest(),
        measured_ns: pool.measured_ns(),
        setup: pool.setup().clone(),
    };
    let maxima = |(setup, run, _, total): (usize, usize, &Pool, &Total)| report::Maxima {
        setup,
        run,
        block_cycles: total.maxima().block_cycles(),
        largest_ns: total.maxima().largest_ns().to_vec(),
    };
    let late = |(setup, run, _, total): (usize, usize, &Pool, &Total)| {
        let kept = total.outliers().kept().to_vec();
        kept.into_iter().map(move |outlier| report::Late { setup, run, outlier })
    };
    report::Campaign {
        name: campaign.name.clone(),
        began_unix_s: campaign.began_unix_s,
        measured_ns: campaign.measured_ns(),
        duration_ns,
        boots: campaign.boots().listed().to_vec(),
        boots_unlisted: campaign.boots().unlisted(),
        setups: campaign.pools().iter().map(kept).collect(),
        stretches: campaign.rows().to_vec(),
        maxima: limits::runs(campaign).map(maxima).collect(),
        outliers: limits::runs(campaign).flat_map(late).collect(),
        events: campaign.events().listed().to_vec(),
        events_unlisted: campaign.events().unlisted(),
        broken: campaign.broken.clone(),
    }
}

/// The one line about a batch of one run: fit for a journal.
pub(super) fn line(
    campaign: &Campaign,
    row: &punctual_analysis::campaign::BatchRow,
    loads: &[Load],
) -> String {
    let Some(pool) = campaign.pools().get(row.setup) else { return String::new() };
    let (setup, total) = (&pool.setup().runs[row.run], &pool.totals()[row.run]);
    let time = |ns: Option<i64>| format::ns(ns.map(|ns| ns as f64));
    let all = total.lateness_ns();
    let loads: Vec<String> = loads
        .iter()
        .map(|load| match load.rate {
            Some(rate) => format!("{} {} {}", load.name, format::rate(rate), load.unit),
            None => format!("{} reported no rate", load.name),
        })
        .collect();
    let loads = if loads.is_empty() { "none".to_owned() } else { loads.join(", ") };
    let unrecorded = match row.unrecorded {
        0 => String::new(),
        lost => format!(", {lost} unrecorded"),
    };
    let at = jiff::Timestamp::from_second(row.to_unix_s)
        .map_or_else(|_| "-".into(), |at| at.to_string());
    let line = format!(
        "{at} {}: {}: {} cycles, {} missed{unrecorded}, p50 {} p99 {} p99.9 {} max {}; in all {} \
         cycles, {} missed, p50 {} p99 {} p99.9 {} max {}; load {loads}",
        campaign.name,
        run_name(campaign, row.setup, setup),
        row.cycles,
        row.missed,
        time(row.p50_ns),
        time(row.p99_ns),
        time(row.p99_9_ns),
        format::largest(row.max_ns.map(|ns| ns as f64), row.unknown()),
        total.cycles(),
        total.effort().missed,
        format::ns(all.p50),
        format::ns(all.p99),
        format::ns(all.p99_9),
        format::largest(all.max, total.unknown()),
    );
    line.replace('\u{a0}', "")
}
