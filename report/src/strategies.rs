//! The ways to wait side by side, as rows of a report.
//!
//! Plain data, picked from the runs; the one way that they recommend, where they tell; and the
//! learned wait held against other ways, in turns that had no part in choosing them.

use punctual_analysis::claim::bound::CONFIDENCE;
use punctual_analysis::claim::judge::{StoppingRule, judge};
use punctual_analysis::compare::series::LatenessSeries;
use punctual_analysis::compare::{QuantileDifference, RateRatio, Verdict, exceedances, quantile};
use punctual_analysis::interval::Interval;
use punctual_analysis::quantile::Probability;
use punctual_analysis::summary::SummaryStats;
use punctual_analysis::verdict::{Requirement, Stands, stands};
use punctual_core::wait::Spin;
use punctual_core::wait::adaptive::Target;
use punctual_lab::waits::HOP;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format;
use crate::run::Run;

/// One way to wait, on one grid.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StrategyRow {
    /// "sleep", "fixed", "hop", "rearm", "adaptive", "spin".
    pub name: String,
    /// Its releases: those that ran, and those that were missed.
    #[serde(default)]
    pub releases: u64,
    /// Releases of these of which only a lower bound of lateness is known: the largest is one then,
    /// too.
    #[serde(default)]
    pub unknown: u64,
    /// Lateness of all its releases.
    pub lateness_ns: SummaryStats,
    /// Their 99 % quantile with the ends of its interval, 95 % sure; an end is null where too few
    /// releases show it. Null where there are too few for the quantile, and in results of before.
    #[serde(default)]
    pub p99_within_ns: Option<Interval>,
    /// The 99.9 % quantile of the same, likewise.
    #[serde(default)]
    pub p99_9_within_ns: Option<Interval>,
    /// CPU time of the loop's thread over wall time, in [0, 1].
    pub cpu_load: Option<f64>,
    /// Releases that never ran.
    pub missed: Option<u64>,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC.
    pub phase_ns: Option<u64>,
    /// The longest sleep; null for one sleep however long.
    pub hop_ns: Option<u64>,
    /// Time from the end of the last sleep to the release, in ns; null for a wait that does not
    /// spin.
    pub margin_ns: Option<u64>,
    /// A measure of the machine's quiet meanwhile, in ns: the 99 % quantile of lateness of a pure
    /// spin whose turns were next to those of this way; null where none could run.
    #[serde(default)]
    pub quiet_p99_ns: Option<f64>,
    /// True where no other way here is as cheap and as seldom late, and better in one: CPU load and
    /// 99 % quantile of lateness are compared.
    #[serde(default)]
    pub on_front: bool,
    /// The answer to `--deadline`: is it held by this way; not there where none was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldDeadline>,
}

/// A deadline as a way to wait holds it, as claims are judged; 95 % sure of all ways together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldDeadline {
    /// The latest that a release may be, in ns.
    pub deadline_ns: i64,
    /// The share of releases that may be later.
    pub miss: f64,
    /// Shown, shown if late releases come alone, refuted, open, or not measured: without a release.
    pub stands: Stands,
    /// Releases that were later, at most.
    pub later: u64,
    /// Releases that would decide it over those that there were; null where it is decided, or not
    /// known.
    pub times: Option<f64>,
}

impl HeldDeadline {
    /// The deadline of `requirement` as the runs of `rows` hold it, by their order. A run that
    /// ended early shows it by bounds that are valid at any time.
    pub fn judge(
        rows: &mut [StrategyRow],
        runs: &[Run],
        requirement: &Requirement,
        incomplete: bool,
    ) {
        let ended = if incomplete { StoppingRule::AtAnyTime } else { StoppingRule::AsPlanned };
        let doubt = (1.0 - CONFIDENCE) / rows.len().max(1) as f64;
        for (row, run) in rows.iter_mut().zip(runs) {
            let deadline_ns = requirement.deadline_ns(run.setup.period_ns.unwrap_or(0));
            let Some(ask) = requirement.ask(deadline_ns, 1.0 - doubt) else { return };
            let counted = run.outcome.tails.counted(deadline_ns);
            let judged = judge(&ask, &Ok(counted), ended, None);
            let stands = if counted.n == 0 { Stands::Unmeasured } else { stands(&judged) };
            let open = judged.n_needed.zip(judged.n).filter(|_| stands == Stands::Open);
            row.held = Some(Self {
                deadline_ns,
                miss: requirement.p,
                stands,
                later: judged.exceedances_at_most.unwrap_or(0),
                times: open.map(|(needed, n)| needed as f64 / n.max(1) as f64),
            });
        }
    }

    /// The answer in a word or two.
    pub fn word(&self) -> &'static str {
        match self.stands {
            Stands::Shown => "yes",
            Stands::IfAlone => "yes, if alone",
            Stands::Refuted => "no",
            Stands::Unmeasured => "not measured",
            Stands::Open | Stands::Expected => "undecided",
        }
    }

    fn is_held(&self) -> bool {
        matches!(self.stands, Stands::Shown | Stands::IfAlone)
    }
}

impl StrategyRow {
    /// The way with its parameters: "fixed 60 µs", "hop 100 µs 20 µs".
    pub fn label(&self) -> String {
        let ns = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), format::period);
        match self.name.as_str() {
            "fixed" => format!("fixed {}", ns(self.margin_ns)),
            "hop" => format!("hop {} {}", ns(self.hop_ns), ns(self.margin_ns)),
            name => name.to_owned(),
        }
    }
}

/// A row for each of the first runs: `beside` says of each which run is the spin next to it.
pub fn rows(runs: &[Run], beside: &[Option<usize>]) -> Vec<StrategyRow> {
    let quiet = |run: usize| runs.get(run)?.outcome.lateness_ns.p99;
    let row = |(run, beside): (&Run, &Option<usize>)| StrategyRow {
        name: run.setup.wait.clone().unwrap_or_default(),
        releases: run.outcome.releases(),
        unknown: run.outcome.unknown(),
        lateness_ns: run.outcome.lateness_ns.clone(),
        p99_within_ns: run.outcome.quantile_within(Probability::P99),
        p99_9_within_ns: run.outcome.quantile_within(Probability::P99_9),
        quiet_p99_ns: beside.and_then(quiet),
        cpu_load: run.cpu_load,
        missed: run.outcome.missed,
        phase_ns: run.setup.phase_ns,
        hop_ns: run.approach.as_ref().and_then(|approach| approach.hop_ns),
        margin_ns: run.approach.as_ref().map(|approach| approach.margin_ns),
        on_front: false,
        held: None,
    };
    let mut rows: Vec<StrategyRow> = runs.iter().zip(beside).map(row).collect();
    let price = |row: &StrategyRow| row.cpu_load.zip(row.lateness_ns.p99);
    let prices: Vec<Option<(f64, f64)>> = rows.iter().map(price).collect();
    for (row, own) in rows.iter_mut().zip(&prices) {
        let beats = |(cpu, late): (f64, f64)| {
            own.is_some_and(|(own_cpu, own_late)| {
                cpu <= own_cpu && late <= own_late && (cpu, late) != (own_cpu, own_late)
            })
        };
        row.on_front = own.is_some() && !prices.iter().flatten().any(|price| beats(*price));
    }
    rows
}

/// The short sleep of `--wait hop`.
const HOP_NS: u64 = HOP.as_ns().unsigned_abs();

/// Lateness counts from this factor above that of the best way.
const AS_GOOD: f64 = 1.25;

/// The most of a CPU that a wait may take to be recommended.
const CPU_MAX: f64 = 0.25;

/// So many releases without a late one show that fewer than 1 in 100 are, 95 % sure (3 over n).
const NONE_MIN: u64 = 300;

/// The p value at which a way is later than the best: stricter than that of `compare`, since the
/// best was chosen by the same data, and advice that changes from run to run is none.
const LATER_MAX: f64 = 0.001;

/// The outcome of a comparison of ways to wait.
#[derive(Debug, PartialEq)]
pub enum WaitAdvice {
    /// This way, with what it gives: `Use …`.
    Use(String),
    /// Not yet, and why.
    Undecided {
        /// The question that these data leave open, in words.
        why: String,
        /// Length of a run that may decide it, over the length of this one; above 1.
        longer: f64,
    },
    /// None of these ways will do, in words.
    NoWay(String),
    /// There is nothing to choose from.
    None,
}

impl WaitAdvice {
    /// The advice of a run that ended before its time: what was seen, and no recommendation.
    #[must_use]
    pub fn of_early_end(self) -> Self {
        const EARLY: &str = "the run ended early";
        match self {
            Self::Use(words) => {
                let why = format!("{EARLY}; as far as seen {words}");
                Self::Undecided { why, longer: 1.0 }
            }
            Self::Undecided { why, longer } => {
                Self::Undecided { why: format!("{EARLY}; {why}"), longer }
            }
            Self::NoWay(why) => Self::NoWay(format!("{why}, as far as seen: {EARLY}")),
            Self::None => Self::None,
        }
    }
}

/// The standing of a way against the best.
enum Standing {
    Later,
    /// A share of late releases twice as large would have been found.
    AsGood,
    /// It may be either; so many times the releases would tell.
    Open(f64),
}

/// Of the ways that leave three quarters of the CPU, the cheapest of those that are not later than
/// the best: how many releases are later than its 99 % quantile by a quarter decides. `series`
/// are the latenesses of each row. Where the data do not tell whether a cheaper one is later,
/// nothing is recommended.
pub fn advice(rows: &[StrategyRow], series: &[Option<&LatenessSeries>]) -> WaitAdvice {
    // A short sleep of another length is no value of --wait.
    let given = |row: &StrategyRow| row.name != "hop" || row.hop_ns == Some(HOP_NS);
    let mut ways: Vec<(&StrategyRow, &LatenessSeries, f64, f64)> = rows
        .iter()
        .zip(series)
        .filter(|(row, _)| given(row))
        .filter_map(|(row, series)| Some((row, (*series)?, row.cpu_load?, row.lateness_ns.p99?)))
        .filter(|(.., load, _)| *load <= CPU_MAX)
        .collect();
    ways.sort_by(|(.., a, _), (.., b, _)| a.total_cmp(b));
    let best = ways.iter().min_by(|(.., a), (.., b)| a.total_cmp(b)).copied();
    let Some((best, best_series, _, best_ns)) = best else { return WaitAdvice::None };
    let threshold_ns = (best_ns * AS_GOOD) as i64;
    let others: Vec<_> = ways.iter().filter(|(row, ..)| !std::ptr::eq(*row, best)).collect();
    let pairs: Vec<_> = others.iter().map(|(_, series, ..)| [best_series, *series]).collect();
    let found = exceedances(&pairs, threshold_ns);
    for (row, ..) in &ways {
        let at = others.iter().position(|(rival, ..)| std::ptr::eq(*rival, *row));
        let standing = at.map_or(Standing::AsGood, |at| standing(found[at].as_ref()));
        match standing {
            Standing::Later => {}
            Standing::AsGood => {
                let is_cheapest = std::ptr::eq(*row, ways[0].0);
                return WaitAdvice::Use(words(row, is_cheapest));
            }
            Standing::Open(longer) => {
                let why = format!(
                    "{} costs less than {}, and whether it is later more often (than {}) is not \
                     known from {} releases",
                    row.label(),
                    best.label(),
                    format::ns(Some(threshold_ns as f64)),
                    format::count(row.releases)
                );
                return WaitAdvice::Undecided { why, longer };
            }
        }
    }
    WaitAdvice::None
}

/// The cheapest of the ways that hold the deadline that they were judged by. Where none is shown
/// to, nothing is recommended: each was measured and does not, or it is not known of some.
pub fn cheapest_that_holds(rows: &[StrategyRow]) -> WaitAdvice {
    let given = |row: &StrategyRow| row.name != "hop" || row.hop_ns == Some(HOP_NS);
    let judged = rows.iter().filter_map(|row| Some((row, row.held.as_ref()?)));
    let mut judged: Vec<_> = judged.collect();
    // What was never on the CPU has no price: it stands last.
    let price = |row: &StrategyRow| row.cpu_load.unwrap_or(f64::INFINITY);
    judged.sort_by(|(a, _), (b, _)| price(a).total_cmp(&price(b)));
    let Some((_, first)) = judged.first() else { return WaitAdvice::None };
    let deadline = format!(
        "the deadline of {}, later at most once in {} releases",
        format::period(first.deadline_ns.unsigned_abs()),
        format::count((1.0 / first.miss).round() as u64)
    );
    let is_open = |held: &HeldDeadline| !held.is_held() && held.stands != Stands::Refuted;
    let rows_that = |wanted: &dyn Fn(&StrategyRow, &HeldDeadline) -> bool| -> Vec<&StrategyRow> {
        judged.iter().filter(|(row, held)| wanted(row, held)).map(|(row, _)| *row).collect()
    };
    let holds = judged.iter().find(|(row, held)| given(row) && held.is_held());
    if let Some((row, held)) = holds
        && let Some(load) = row.cpu_load
    {
        let is_cheaper = |row: &StrategyRow| price(row) < load && given(row);
        let cheaper = rows_that(&|row, held| is_open(held) && is_cheaper(row));
        let cheaper = match &cheaper[..] {
            [] if price(judged[0].0) >= load => "none costs less".to_owned(),
            [] => "none that costs less does".to_owned(),
            [only] => format!("not known of {}, which costs less", only.label()),
            cheaper => format!("not known of {}, which cost less", names(cheaper)),
        };
        let alone =
            if held.stands == Stands::IfAlone { " if late releases come alone" } else { "" };
        return WaitAdvice::Use(format!(
            "{}: it holds {deadline}{alone} ({} of {} were later), for {} of the CPU; {cheaper}",
            option(row),
            format::count(held.later),
            format::count(row.releases),
            format::share(load),
        ));
    }
    let open = rows_that(&|_, held| is_open(held));
    // A short sleep of another length.
    let beside = rows_that(&|_, held| held.is_held());
    let beside = match &beside[..] {
        [] => String::new(),
        ways => format!("; {} does, which is no value of --wait", names(ways)),
    };
    if open.is_empty() {
        return WaitAdvice::NoWay(format!("none of these ways holds {deadline}{beside}"));
    }
    let times = judged.iter().filter(|(_, held)| is_open(held));
    let times = times.filter_map(|(_, held)| held.times).fold(2.0, f64::max);
    let why = format!("none is shown to hold {deadline}{beside}: not known of {}", names(&open));
    WaitAdvice::Undecided { why, longer: times }
}

/// So many ways are named in a sentence.
const NAMED_MAX: usize = 6;

/// The names of ways, and how many more there are.
fn names(ways: &[&StrategyRow]) -> String {
    let named: Vec<String> = ways.iter().take(NAMED_MAX).map(|row| row.label()).collect();
    match ways.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn standing(found: Option<&RateRatio>) -> Standing {
    let Some(found) = found else { return Standing::Open(f64::INFINITY) };
    let n = found.n_a.min(found.n_b);
    let is_sure = found.p_adjusted.is_some_and(|p| p <= LATER_MAX);
    match (found.verdict, found.more_cycles) {
        (Verdict::Worse, _) if is_sure => Standing::Later,
        (Verdict::Worse, _) => Standing::Open(2.0),
        (_, Some(0)) => Standing::AsGood,
        (_, Some(more)) => Standing::Open((n + more) as f64 / n as f64),
        (_, None) if n >= NONE_MIN => Standing::AsGood,
        (_, None) => Standing::Open(NONE_MIN as f64 / n as f64),
    }
}

/// The option that chooses this way, with the lateness and the CPU load that it gives.
fn words(row: &StrategyRow, is_cheapest: bool) -> String {
    let within = row.p99_within_ns.map_or_else(String::new, |within| {
        format!(" (95 % sure: {})", format::within(within.low, within.high))
    });
    format!(
        "{}: 1 release in 100 later than {}{within}, for {} of the CPU; {}",
        option(row),
        format::ns(row.lateness_ns.p99),
        format::share(row.cpu_load.unwrap_or(0.0)),
        match is_cheapest {
            true => "none costs less, and the others are not known to be later less often",
            false => "ways that cost less are later more often",
        }
    )
}

/// The option that chooses this way, with its name in programs.
fn option(row: &StrategyRow) -> String {
    let margin_ns = row.margin_ns.filter(|_| ["fixed", "hop"].contains(&row.name.as_str()));
    let margin = margin_ns
        .map_or_else(String::new, |ns| format!(" --margin {}", format::period_argument(ns)));
    let library = match row.name.as_str() {
        // The library has no such constructor.
        "hop" => String::new(),
        name => {
            format!("; in a program WaitPolicy::{name}, in C PUNCTUAL_WAIT_{}", name.to_uppercase())
        }
    };
    format!("--wait {}{margin} (of 'measure periodic' and 'soak'{library})", row.name)
}

/// A turn is quiet where the pure spin next to it had 1 in 100 later than this at most, ns; and a
/// release is late in the choice of the cheapest way where it is later than this.
const QUIET_NS: i64 = 200;

/// The reason why the other way was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Against {
    /// The cheapest that was late once in 1000 at most in the quiet odd turns.
    Cheapest,
    /// The fixed margin that is the default.
    DefaultMargin,
    /// The fixed margin whose CPU time is next to that of the learned wait, in noisy turns.
    SamePrice,
}

/// The learned wait and another way, in the same turns.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FrontComparison {
    /// The reason why this one was taken.
    pub against: Against,
    /// The other way: "fixed 60 µs".
    pub way: String,
    /// The turns that both are compared in, after the first: the even ones where the odd ones
    /// chose.
    pub turns: u64,
    /// The 99 % quantile: A is the other way, B the learned wait.
    pub p99: QuantileDifference,
    /// CPU time of the learned wait over that of the other way, in all turns.
    pub cpu_ratio: f64,
}

impl FrontComparison {
    /// The comparison in a sentence.
    pub fn sentence(&self) -> String {
        let (reason, kind) = match self.against {
            Against::Cheapest => (", the cheapest that was late 1 in 1000 at most", "quiet"),
            Against::DefaultMargin => ("", "quiet"),
            Against::SamePrice => (", which costs as much", "noisy"),
        };
        let between = match (self.p99.lower_ns, self.p99.upper_ns) {
            (Some(lower), Some(upper)) => format!(
                " (95 % interval of the difference {} to {})",
                format::ns(Some(lower)),
                format::ns(Some(upper))
            ),
            _ => " (too few releases for an interval)".to_owned(),
        };
        format!(
            "adaptive against {}{reason}: 1 in 100 later than {}, not {}{between}, for {:.2} × \
             its CPU time, in {}",
            self.way,
            format::ns(Some(self.p99.b_ns)),
            format::ns(Some(self.p99.a_ns)),
            self.cpu_ratio,
            match self.turns {
                1 => format!("1 {kind} turn"),
                turns => format!("{turns} {kind} turns"),
            }
        )
    }
}

/// A way of a sweep: its row, its releases, and those of the spin next to it.
pub struct Swept<'a> {
    /// The row of the way.
    pub row: &'a StrategyRow,
    /// The latenesses of its releases.
    pub series: &'a LatenessSeries,
    /// The latenesses of the pure spin next to it.
    pub spin: &'a LatenessSeries,
}

impl Swept<'_> {
    fn is_quiet(&self, turns: u64, turn: u64) -> bool {
        let of_turn = self.spin.of_turns(turns, |at| at == turn);
        of_turn.quantile_ns(0.99).is_some_and(|ns| ns <= QUIET_NS)
    }

    fn cpu(&self) -> f64 {
        self.row.cpu_load.unwrap_or(1.0)
    }

    /// Returns true where it is late as seldom as its target in these turns, and has releases
    /// enough to show it.
    fn reaches_the_target(&self, turns: u64, chosen: impl Fn(u64) -> bool) -> bool {
        let series = self.series.of_turns(turns, chosen);
        let permitted = Target::LATE * series.releases() as f64;
        permitted >= 1.0 && series.later_than(QUIET_NS) as f64 <= permitted
    }
}

/// The comparisons of the learned wait that these turns allow; `turns` is how many each way had.
pub fn compared(ways: &[Swept<'_>], turns: u64) -> Vec<FrontComparison> {
    let Some(own) = ways.iter().find(|way| way.row.name == "adaptive") else { return Vec::new() };
    // The first turn is the one in which it learns.
    let quiet: Vec<u64> = (1..turns).filter(|&turn| own.is_quiet(turns, turn)).collect();
    let compare = |against: Against, rival: &Swept<'_>| {
        let is_asked = |turn: u64| match against {
            Against::Cheapest => turn % 2 == 1 && quiet.contains(&turn),
            Against::DefaultMargin => quiet.contains(&turn),
            Against::SamePrice => turn > 0 && !quiet.contains(&turn),
        };
        let is_noisy = against == Against::SamePrice;
        let chosen: Vec<u64> = (0..turns)
            .filter(|&turn| is_asked(turn) && rival.is_quiet(turns, turn) != is_noisy)
            .collect();
        let series = |way: &Swept<'_>| way.series.of_turns(turns, |turn| chosen.contains(&turn));
        let p99 = quantile([&series(rival), &series(own)], Probability::P99)?;
        Some(FrontComparison {
            against,
            way: rival.row.label(),
            turns: chosen.len() as u64,
            p99,
            cpu_ratio: own.cpu() / rival.cpu(),
        })
    };
    let fixed = || ways.iter().filter(|way| way.row.name == "fixed");
    let chosen_by = |way: &&Swept<'_>| {
        // The first turn is number 0 and odd as people count.
        let odd = |turn: u64| turn.is_multiple_of(2) && way.is_quiet(turns, turn);
        !["adaptive", "spin"].contains(&&*way.row.name) && way.reaches_the_target(turns, odd)
    };
    let cheapest = ways.iter().filter(chosen_by).min_by(|a, b| a.cpu().total_cmp(&b.cpu()));
    let margin = Some(Spin::FIXED.as_ns().unsigned_abs());
    let distance = |way: &Swept<'_>| (way.cpu() / own.cpu()).ln().abs();
    let same_price = fixed().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    [
        cheapest.and_then(|way| compare(Against::Cheapest, way)),
        fixed()
            .find(|way| way.row.margin_ns == margin)
            .and_then(|way| compare(Against::DefaultMargin, way)),
        same_price.and_then(|way| compare(Against::SamePrice, way)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::compare::series::Builder;
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_analysis::rng::Rng;
    use punctual_analysis::verdict::Deadline;
    use punctual_core::sample::Sample;
    use punctual_core::time::Span;

    /// Ways by name, CPU load, and the shares of releases that are 2 to 3 µs and 60 µs late; the
    /// others are 1 µs late.
    type Made = (&'static str, f64, [f64; 2]);

    fn advised(ways: &[Made], releases: u64, seed: u64) -> WaitAdvice {
        let mut rng = Rng::new(seed);
        let mut made = |&(name, cpu, [two, sixty]): &Made| {
            let mut builder = Builder::new(1_000_000, false);
            let mut latenesses = Vec::new();
            for cycle in 0..releases {
                let uniform = (rng.bits() >> 11) as f64 / (1_u64 << 53) as f64;
                let late = if uniform < sixty { 60_000 } else { 1_000 };
                let over = uniform - (1.0 - two);
                let late = if over > 0.0 { 2_000 + (over / two * 1e3) as i64 } else { late };
                latenesses.push(late);
                let lateness = Span::from_ns(late);
                builder.push(&Sample { cycle, lateness, ..Sample::default() });
            }
            latenesses.sort_unstable();
            let p99 = latenesses[(releases * 99 / 100) as usize] as f64;
            let lateness_ns = SummaryStats { p99: Some(p99), ..SummaryStats::default() };
            let row = StrategyRow {
                name: name.to_owned(),
                releases,
                lateness_ns,
                p99_within_ns: Some(Interval::between(19e3, 20e3, 22e3)),
                p99_9_within_ns: None,
                cpu_load: Some(cpu),
                missed: Some(0),
                unknown: 0,
                phase_ns: None,
                hop_ns: (name == "hop").then_some(HOP_NS),
                margin_ns: Some(20_000),
                quiet_p99_ns: None,
                on_front: false,
                held: None,
            };
            (row, builder.finish(0))
        };
        let (rows, series): (Vec<_>, Vec<_>) = ways.iter().map(&mut made).unzip();
        advice(&rows, &series.iter().map(Some).collect::<Vec<_>>())
    }

    /// A sleep that is late each time, and three that spin and are alike.
    const WAYS: [Made; 5] = [
        ("sleep", 0.01, [0.0, 1.0]),
        ("hop", 0.03, [0.02, 0.004]),
        ("adaptive", 0.05, [0.02, 0.004]),
        ("fixed", 0.12, [0.02, 0.004]),
        ("spin", 0.9, [0.0, 0.0]),
    ];

    #[test]
    fn long_runs_of_one_machine_give_one_advice_and_short_ones_none() {
        let mut undecided = [0; 2];
        for seed in 0..20 {
            for (at, releases) in [60_000, 2_000].into_iter().enumerate() {
                match advised(&WAYS, releases, seed) {
                    WaitAdvice::Use(words) => assert!(words.starts_with("--wait hop"), "{words}"),
                    WaitAdvice::Undecided { why, longer } => {
                        assert!(why.starts_with("hop ") && longer > 1.0, "{longer}: {why}");
                        undecided[at] += 1;
                    }
                    WaitAdvice::NoWay(_) | WaitAdvice::None => panic!("{seed}: nothing at all"),
                }
            }
        }
        // In some of the short runs that way happens to look best itself.
        let [long, short] = undecided;
        assert!(long <= 2 && short >= 8, "{long} and {short} of 20 runs were undecided");
    }

    #[test]
    fn a_cheaper_way_that_is_later_is_not_advised_and_one_as_good_is() {
        let mut ways = WAYS;
        ways[1].2 = [0.02, 0.03];
        let WaitAdvice::Use(words) = advised(&ways, 60_000, 1) else { panic!("undecided") };
        assert!(words.starts_with("--wait adaptive (of 'measure periodic' and 'soak'"), "{words}");
        assert!(words.contains("WaitPolicy::adaptive, in C PUNCTUAL_WAIT_ADAPTIVE"), "{words}");
        assert!(words.contains(" (95 % sure: 19.0–22.0 µs), for "), "{words}");
        ways[0].2 = ways[2].2;
        let WaitAdvice::Use(words) = advised(&ways, 60_000, 1) else { panic!("undecided") };
        assert!(words.starts_with("--wait sleep ("), "{words}");
        assert_eq!(advised(&[("spin", 0.9, [0.0, 0.0])], 2_000, 1), WaitAdvice::None);
    }

    #[test]
    fn with_a_deadline_the_cheapest_way_that_holds_it_is_advised() {
        let requirement = Requirement { deadline: Deadline::Ns(50_000), p: 1e-2 };
        // Cheapest first: releases, and every which is 60 µs late.
        let advised = |ways: &[(u64, u64)]| {
            let made = |&(releases, every): &(u64, u64)| {
                let config =
                    RecordingConfig { thresholds_ns: vec![50_000], ..RecordingConfig::default() };
                let mut recording = Recording::new(config);
                let mut rng = Rng::new(releases);
                for cycle in 0..releases {
                    // Late cycles come alone.
                    let is_late = rng.uniform() < 1.0 / every as f64;
                    let lateness = Span::from_us(if is_late { 60 } else { 1 });
                    recording.push(&Sample { cycle, lateness, ..Sample::default() });
                }
                let figures = recording.finish(0);
                Run::recorded("way".to_owned(), crate::run::Setup::default(), figures)
            };
            let runs: Vec<Run> = ways.iter().map(made).collect();
            let names = ["sleep", "adaptive", "fixed"];
            let mut made_rows = rows(&runs, &vec![None; runs.len()]);
            for (at, row) in made_rows.iter_mut().enumerate() {
                row.name = names[at].to_owned();
                row.cpu_load = (row.releases > 0).then_some(0.01 * (at + 1) as f64);
            }
            HeldDeadline::judge(&mut made_rows, &runs, &requirement, false);
            let words: Vec<&str> =
                made_rows.iter().flat_map(|row| &row.held).map(HeldDeadline::word).collect();
            (words.join("; "), cheapest_that_holds(&made_rows))
        };
        let (words, advice) = advised(&[(20_000, 10), (20_000, 1_000), (20_000, 1_000)]);
        assert!(words.starts_with("no; yes"), "{words}");
        let WaitAdvice::Use(text) = advice else { panic!("{advice:?}") };
        assert!(text.starts_with("--wait adaptive ") && text.contains("deadline of 50"), "{text}");
        assert!(text.ends_with("none that costs less does"), "{text}");
        // Of a cheaper one it is not known.
        let (words, advice) = advised(&[(200, 150), (20_000, 1_000)]);
        assert!(words.starts_with("undecided; yes"), "{words}");
        let WaitAdvice::Use(text) = advice else { panic!("{advice:?}") };
        assert!(text.ends_with("not known of sleep, which costs less"), "{text}");
        // None is shown to, and none does.
        let (_, advice) = advised(&[(200, 150), (20_000, 10)]);
        let WaitAdvice::Undecided { why, longer } = advice else { panic!("{advice:?}") };
        assert!(why.ends_with("not known of sleep") && longer >= 2.0, "{why} {longer}");
        assert!(matches!(advised(&[(20_000, 10)]).1, WaitAdvice::NoWay(_)));
        // One that was not measured is no way that does not hold it.
        let (words, advice) = advised(&[(20_000, 10), (0, 1)]);
        assert_eq!(words, "no; not measured");
        let WaitAdvice::Undecided { why, .. } = advice else { panic!("{advice:?}") };
        assert!(why.ends_with("not known of adaptive"), "{why}");
        // An early end recommends nothing.
        let early = advised(&[(20_000, 1_000)]).1.of_early_end();
        let WaitAdvice::Undecided { why, .. } = early else { panic!("{early:?}") };
        assert!(why.starts_with("the run ended early; as far as seen --wait sleep"), "{why}");
    }

    #[test]
    fn more_than_half_late_is_a_no_however_they_come() {
        let requirement = Requirement { deadline: Deadline::Ns(50_000), p: 1e-3 };
        let stands = |late: &dyn Fn(u64) -> bool, incomplete: bool| {
            let config =
                RecordingConfig { thresholds_ns: vec![50_000], ..RecordingConfig::default() };
            let mut recording = Recording::new(config);
            for cycle in 0..554 {
                let lateness = Span::from_us(if late(cycle) { 60 } else { 1 });
                recording.push(&Sample { cycle, lateness, ..Sample::default() });
            }
            let setup = crate::run::Setup::default();
            let runs = [Run::recorded("way".to_owned(), setup, recording.finish(0))];
            // As many ways share the doubt as there are.
            let mut made_rows = vec![rows(&runs, &[None]).remove(0); 6];
            HeldDeadline::judge(&mut made_rows, &runs, &requirement, incomplete);
            let held = made_rows[0].held.clone().expect("judged");
            (held.stands, held.later)
        };
        for incomplete in [false, true] {
            // In a row, and in turns.
            assert_eq!(stands(&|cycle| cycle < 329, incomplete), (Stands::Refuted, 329));
            assert_eq!(stands(&|cycle| cycle % 92 < 55, incomplete), (Stands::Refuted, 332));
        }
        // A single one in so few shows nothing.
        assert_eq!(stands(&|cycle| cycle == 100, false), (Stands::Open, 1));
    }

    #[test]
    fn a_sentence_on_many_ways_says_how_many_it_leaves_out() {
        let held = HeldDeadline {
            deadline_ns: 50_000,
            miss: 1e-3,
            stands: Stands::Open,
            later: 0,
            times: Some(2.0),
        };
        let hop = |ns: u64| StrategyRow {
            hop_ns: Some(ns),
            held: Some(held.clone()),
            ..row("hop", Some(20_000), ns as f64 * 1e-7)
        };
        let ways: Vec<StrategyRow> = (1..=8).map(|at| hop(at * 50_000)).collect();
        let WaitAdvice::Undecided { why, .. } = cheapest_that_holds(&ways) else { panic!() };
        assert!(why.contains("hop 50 µs 20 µs") && why.contains("hop 200 µs 20 µs"), "{why}");
        assert!(why.ends_with(" and 2 more"), "{why}");
        // One that no option gives is named, and not recommended.
        let mut ways = ways[..2].to_vec();
        for (row, stands) in ways.iter_mut().zip([Stands::Shown, Stands::Refuted]) {
            row.held = Some(HeldDeadline { stands, ..held.clone() });
        }
        let WaitAdvice::NoWay(why) = cheapest_that_holds(&ways) else { panic!() };
        assert!(why.ends_with("; hop 50 µs 20 µs does, which is no value of --wait"), "{why}");
    }

    const TURNS: u64 = 10;
    const EACH: u64 = 2_000;

    /// Ten turns of 2 000 releases, `ns(turn, release)` late.
    fn series(ns: impl Fn(u64, u64) -> i64) -> LatenessSeries {
        let mut builder = Builder::new(1_000_000, true);
        for cycle in 0..TURNS * EACH {
            let lateness = Span::from_ns(ns(cycle / EACH, cycle));
            builder.push(&Sample { cycle, lateness, ..Sample::default() });
        }
        builder.finish(0)
    }

    fn row(name: &str, margin_ns: Option<u64>, cpu: f64) -> StrategyRow {
        StrategyRow {
            name: name.to_owned(),
            releases: TURNS * EACH,
            unknown: 0,
            lateness_ns: SummaryStats::default(),
            p99_within_ns: None,
            p99_9_within_ns: None,
            cpu_load: Some(cpu),
            missed: Some(0),
            phase_ns: None,
            hop_ns: None,
            margin_ns,
            quiet_p99_ns: None,
            on_front: false,
            held: None,
        }
    }

    /// The last three turns are noisy.
    fn spin() -> LatenessSeries {
        series(|turn, _| if turn < 7 { 10 } else { 5_000 })
    }

    #[test]
    fn it_is_held_against_the_cheapest_that_reaches_the_target_in_turns_that_did_not_choose_it() {
        let rows = [
            row("sleep", None, 0.01),
            row("fixed", Some(20_000), 0.02),
            row("fixed", Some(60_000), 0.06),
            row("fixed", Some(125_000), 0.12),
            row("adaptive", Some(50_000), 0.05),
            row("spin", None, 0.9),
        ];
        let kinds = [
            series(|_, _| 20_000),
            // Punctual in the turns that judge, and late 1 in 100 in those that choose.
            series(|turn, at| if turn % 2 == 0 && at % 100 == 0 { 9_000 } else { 10 }),
            series(|_, _| 10),
            series(|_, _| 12),
            series(|turn, _| if turn == 0 { 90_000 } else { 30 }),
            spin(),
        ];
        let spin = spin();
        let swept = |(row, series)| Swept { row, series, spin: &spin };
        let ways: Vec<Swept<'_>> = rows.iter().zip(&kinds).map(swept).collect();
        let compared = compared(&ways, TURNS);
        let found: Vec<(Against, &str, u64)> =
            compared.iter().map(|held| (held.against, &*held.way, held.turns)).collect();
        assert_eq!(
            found,
            [
                (Against::Cheapest, "fixed 60 µs", 3),
                (Against::DefaultMargin, "fixed 125 µs", 6),
                (Against::SamePrice, "fixed 60 µs", 3),
            ]
        );
        let first = &compared[0];
        assert!((first.p99.difference_ns - 20.0).abs() < 1.0, "{first:?}");
        assert!((first.cpu_ratio - 0.05 / 0.06).abs() < 1e-9, "{first:?}");
        let sentence = first.sentence();
        assert!(
            sentence.contains("against fixed 60 µs, the cheapest") && sentence.contains("0.83 ×")
        );
        assert!(
            sentence.contains("1 in 100 later than 3") && sentence.ends_with("in 3 quiet turns"),
            "{sentence}"
        );
    }

    #[test]
    fn without_a_quiet_turn_or_enough_releases_nothing_is_said_of_quiet_turns() {
        let rows = [row("fixed", Some(125_000), 0.12), row("adaptive", Some(50_000), 0.05)];
        let kinds = [series(|_, _| 10), series(|_, _| 30)];
        let noisy = series(|_, _| 5_000);
        let swept = |(row, series)| Swept { row, series, spin: &noisy };
        let ways: Vec<Swept<'_>> = rows.iter().zip(&kinds).map(swept).collect();
        let found: Vec<Against> = compared(&ways, TURNS).iter().map(|held| held.against).collect();
        assert_eq!(found, [Against::SamePrice]);
        assert!(compared(&ways, 1).is_empty());
        assert!(compared(&ways[..1], TURNS).is_empty());
    }
}
