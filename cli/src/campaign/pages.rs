//! A campaign as a report: one run for each loop and setup, what is a campaign's alone, and which
//! limits and claims are broken while it goes on.
//!
//! Pure: everything comes in as an argument.

use punctual_analysis::campaign::{BrokenLimit, Campaign, Pool, Total};
use punctual_analysis::claim::anytime::p_lower_dependent;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::judge::{Holds, Judged, StoppingRule, judge};
use punctual_analysis::limit::{Metric, MetricLimit};
use punctual_analysis::recording::RunFigures;
use punctual_host::facts::MachineFacts;
use punctual_host::settings::WatchedSettings;
use punctual_report::{
    self as report, Choice, Clock, EndedBy, Envelope, Load, OtherThreads, Question, Report, Run,
    Session as ReportSession, Setup, SoakBody, Warning,
};

use super::config::CampaignConfig;
use super::run_name;
use crate::format;
use crate::program::PROGRAM;
use crate::question;

/// The facts of a session, which only the process that measures knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionFacts {
    /// The CPUs, and why these.
    pub(crate) choice: Option<Choice>,
    /// The clock that stamps were taken with.
    pub(crate) clock: Option<Clock>,
    /// The facts of the machine.
    pub(crate) machine: Option<MachineFacts>,
    /// The settings of the machine before the last batch.
    pub(crate) settings: Option<WatchedSettings>,
    /// The rights that the kernel granted.
    pub(crate) session: Option<ReportSession>,
    /// Warnings for a reader.
    pub(crate) warnings: Vec<Warning>,
    /// The process that measures it now, where another one does.
    pub(crate) measured_by: Option<String>,
    /// The loads of the latest batch, by run of the setup that is measured now.
    pub(crate) loads: Vec<Vec<Load>>,
    /// The number of that setup.
    pub(crate) pool: Option<usize>,
}

/// The report of a campaign as it is.
pub(crate) fn report(campaign: &Campaign, config: &CampaignConfig, known: &SessionFacts) -> Report {
    let measured_ns = campaign.measured_ns();
    let duration_ns = config.duration.map(|duration| duration.as_ns().unsigned_abs());
    let incomplete = config.left_ns(measured_ns).is_some_and(|left_ns| left_ns > 0);
    let reported = |(at, number, pool, total): (usize, usize, &Pool, &Total)| {
        let loads = if known.pool == Some(at) { known.loads.get(number) } else { None };
        report_run(campaign, at, pool, number, total, loads.cloned().unwrap_or_default())
    };
    let runs: Vec<Run> = recorded_runs(campaign).map(reported).collect();
    let mut verdict = report::judge(&runs, &config.limits, incomplete, config.undecided);
    for ((at, number, pool, total), run) in recorded_runs(campaign).zip(&runs) {
        let setup = &pool.setup().runs[number];
        for ask in &config.claims {
            let judged = claim(ask, total, setup.period_ns);
            let judged = report::open_where_loads_died(run, judged);
            let setups = campaign.pools().len();
            verdict.add_claim(run_name(&setup.name, at, setups), judged, config.strict);
        }
    }
    let mut warnings = known.warnings.clone();
    warnings.extend(cautions(campaign).into_iter().map(Warning::from));
    let began = jiff::Timestamp::from_second(campaign.began_unix_s).ok();
    let envelope = Envelope {
        started_at: began.map(|at| at.to_string()),
        incomplete,
        ended_by: incomplete.then_some(EndedBy::Continues),
        machine: known.machine.clone(),
        machine_settings: known.settings.clone(),
        choice: known.choice.clone(),
        clock: known.clock.clone(),
        session: known.session.clone(),
        warnings: warnings.into_iter().collect(),
        verdict,
        ..Envelope::of(PROGRAM, "soak")
    };
    let question = Question { incomplete, ..question::question(config.question.as_ref()) };
    let judged = report::judged(runs, &[], &envelope, &question);
    let mut envelope = envelope;
    if config.gate {
        envelope.verdict.judge_answers(&judged.verdicts);
    }
    let mut own = own(campaign, duration_ns);
    if let Some(process) = &known.measured_by {
        // Its boot goes on.
        own.boots.last_mut().into_iter().for_each(|boot| boot.ended = true);
        envelope.warn(format!(
            "process {process} measures this campaign now: this is what it saved last, which it \
             does every 30 s"
        ));
    }
    let body = SoakBody { judged, campaign: own };
    Report { envelope, body: body.into() }
}

/// The cautions about a campaign that its numbers do not show.
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
    let name = run_name(&setup.name, at, campaign.pools().len());
    let mut run = Run::recorded(name, shown, total.outcome());
    run.stalled = spins.then_some(effort.stalled);
    run.stall_max_ns = spins.then_some(effort.stall_max_ns as f64);
    run.cpu_load = (effort.wall_ns > 0).then(|| effort.cpu_ns as f64 / effort.wall_ns as f64);
    run.page_faults = Some(effort.page_faults);
    run.preempted = Some(effort.preempted);
    run.steal_ns = effort.steal_ns;
    run.others = effort.others.as_ref().and_then(OtherThreads::over_batches);
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
        maxima: recorded_runs(campaign).map(maxima).collect(),
        outliers: recorded_runs(campaign).flat_map(late).collect(),
        events: campaign.events().listed().to_vec(),
        events_unlisted: campaign.events().unlisted(),
        broken: campaign.broken.clone(),
    }
}

/// The one line about a batch of one run: fit for a journal.
pub(crate) fn line(
    campaign: &Campaign,
    row: &punctual_analysis::campaign::BatchRow,
    loads: &[Load],
) -> String {
    let Some(pool) = campaign.pools().get(row.setup) else { return String::new() };
    let (setup, total) = (&pool.setup().runs[row.run], &pool.totals()[row.run]);
    let time = |ns: Option<i64>| format::ns(ns.map(|ns| ns as f64));
    let lateness = total.lateness_ns();
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
        run_name(&setup.name, row.setup, campaign.pools().len()),
        row.cycles,
        row.missed,
        time(row.p50_ns),
        time(row.p99_ns),
        time(row.p99_9_ns),
        format::largest(row.max_ns.map(|ns| ns as f64), row.unknown()),
        total.cycles(),
        total.effort().missed,
        format::ns(lateness.p50),
        format::ns(lateness.p99),
        format::ns(lateness.p99_9),
        format::largest(lateness.max, total.unknown()),
    );
    line.replace('\u{a0}', "")
}

/// The confidence that a quantile is beyond its limit, before that is said.
const CONFIDENCE: f64 = 0.95;

/// The limits and claims that are broken for good while a campaign goes on, each with its words.
///
/// A maximum or a count that is beyond its limit stays so. A quantile, or the probability of a
/// claim, is broken once a bound that holds at every look shows it with 95 % confidence, or the
/// claim's own. All else is judged at the end.
pub(crate) fn broken(campaign: &Campaign, config: &CampaignConfig) -> Vec<(BrokenLimit, String)> {
    let mut broken = Vec::new();
    for (setup, run, pool, total) in recorded_runs(campaign) {
        let name = run_name(&pool.setup().runs[run].name, setup, campaign.pools().len());
        let outcome = total.outcome();
        let about = |limit: String| BrokenLimit { setup, run, limit };
        for limit in &config.limits {
            let why = limit_broken(limit, &outcome);
            broken.extend(why.map(|why| (about(limit.to_string()), format!("{name}: {why}"))));
        }
        for ask in &config.claims {
            let judged = claim(ask, total, pool.setup().runs[run].period_ns);
            if judged.holds == Holds::No {
                let why = format!("{name}: {}: {}", judged.statement, judged.reason);
                broken.push((about(ask.to_string()), why));
            }
        }
    }
    broken
}

/// Every run of every setup in which something was recorded.
fn recorded_runs(campaign: &Campaign) -> impl Iterator<Item = (usize, usize, &Pool, &Total)> {
    campaign.pools().iter().enumerate().flat_map(|(at, pool)| {
        let totals = pool.totals().iter().enumerate();
        let some = totals.filter(|(_, total)| total.cycles() + total.effort().missed > 0);
        some.map(move |(run, total)| (at, run, pool, total))
    })
}

fn limit_broken(limit: &MetricLimit, outcome: &RunFigures) -> Option<String> {
    let judgement = limit.judge(outcome);
    if judgement.ok || judgement.open || judgement.measured.is_none() {
        return None;
    }
    let reason = || format!("{}: {}", judgement.text, judgement.reason);
    match limit.metric() {
        Metric::Max | Metric::Missed | Metric::Unrecorded => Some(reason()),
        Metric::Quantile(p) => {
            let above_ns = limit.threshold_ns()?;
            let later = exceedances(outcome, above_ns);
            let theta = outcome.tails.theta_at(above_ns);
            let least = p_lower_dependent(later, outcome.tails.n(), theta, CONFIDENCE);
            (least > 1.0 - p.share()).then(reason)
        }
        _ => None,
    }
}

/// The least number of cycles that were later: counted where the threshold was watched, else what
/// the buckets surely hold.
fn exceedances(outcome: &RunFigures, above_ns: i64) -> u64 {
    let buckets = || {
        let above = outcome.lateness.buckets().filter(|bucket| bucket.lowest_ns > above_ns);
        above.map(|bucket| bucket.count).sum()
    };
    let counted = outcome.tails.exceedances(above_ns).map(|_most| {
        let (least, _most) = outcome.tails.exceedances_within(above_ns);
        least
    });
    counted.unwrap_or_else(buckets)
}

/// A claim, judged by bounds for any time: whoever runs a campaign may end it when it looks good.
fn claim(ask: &Ask, total: &Total, period_ns: u64) -> Judged {
    judge(ask, &Ok(total.counted(ask)), StoppingRule::Campaign, Some(period_ns))
}
