//! Why a loop is late, and what to do next, as far as facts at hand show it.
//!
//! Takes what a run shows from its figures, and what can be tuned from the rules of `host`. Each
//! advice states a fact of the machine or of the run, and a command that exists. It names no cause
//! that it did not see.

use punctual_analysis::plain::shell_word;
use punctual_analysis::quantile::Probability;
use punctual_analysis::summary::SummaryStats;
use punctual_analysis::verdict::Requirement;
use punctual_host::facts::MachineFacts;
use punctual_host::rules::{KnobChange, KnobVerdict};
use punctual_lab::blame::{BlamedCause, BlamedLoss};
use punctual_lab::load::LoadSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::format;
use crate::run::{LoadRow, Run, RunBlame};
use crate::verdict::Question;

/// The most that are given.
const ADVICE_MAX: usize = 3;

/// A loop that used this much of what real-time tasks may use came near it.
const NEAR_BUDGET: f64 = 0.9;

/// A gain below this is not worth a line here: `punctual tune check` has the rest.
const GAIN_MIN: u8 = 4;

/// One fact, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// "cause", "host", "load", "throttling", "CPU", "frequency", "memory", "setting".
    pub topic: String,
    /// The fact, in a sentence.
    pub text: String,
    /// More about the fact and what helps, for documents that have room; not there where the fact
    /// is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// A command that shows more, or changes it; null where none does.
    pub command: Option<String>,
    /// True where that command shows more of the fact, and does nothing that the words advise.
    #[serde(default)]
    pub shows_more: bool,
}

/// Settings of the measured CPUs, as the rules about tuning judge them.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The CPUs, as the kernel lists them.
    pub cpus: String,
    /// The workload that they are judged for, as `--for` of `tune` names it.
    pub workload: Option<String>,
    /// All verdicts.
    pub verdicts: Vec<KnobVerdict>,
}

impl Findings {
    /// The verdicts whose setting a change would better.
    pub(crate) fn open(&self) -> Vec<KnobVerdict> {
        self.verdicts.iter().filter(|setting| setting.verdict.is_open()).cloned().collect()
    }

    /// The command that plans changes of these settings.
    fn plan(&self) -> String {
        let workload =
            self.workload.as_ref().map_or_else(String::new, |name| format!(" --for {name}"));
        format!("punctual tune plan --cpus {}{workload}", self.cpus)
    }

    /// Returns true where that plan has a change for this rule.
    fn plans(&self, rule: &str) -> bool {
        let mut same = self.verdicts.iter().filter(|setting| setting.id == rule);
        same.any(|setting| setting.verdict.is_open() && !setting.changes.is_empty())
    }
}

/// Advice on these runs: first what they show, then what the rules about tuning find, by what it
/// would gain. `session` is not there where nothing was measured, `findings` not where data were
/// recorded elsewhere; `rows` are one for each load.
pub(crate) fn of(
    facts: &MachineFacts,
    session: Option<&Session>,
    (runs, rows): (&[Run], &[LoadRow]),
    question: &Question<'_>,
) -> Vec<Advice> {
    let (requirement, findings) = (&question.requirement, question.findings);
    let causes = causes(runs, rows, question);
    let is_named = LateWakes::worst(runs, requirement).is_some_and(|late| late.named().is_some());
    let is_explained = is_named
        || kept_waiting(runs, rows).is_some()
        || runs.iter().any(|run| ShortPeriod::of(run).is_some());
    let in_the_way = in_the_way(runs, rows).filter(|_| !is_explained);
    let shown = [host(facts, runs), load(runs, rows), throttling(facts, runs)];
    let shown = in_the_way.into_iter().chain(causes).chain(shown.into_iter().flatten());
    let held = session.is_some_and(|session| session.idle_states_held);
    let settings = findings
        .into_iter()
        .flat_map(|findings| findings.verdicts.iter().map(move |setting| (setting, findings)));
    let mut open: Vec<(&KnobVerdict, &Findings)> = settings
        .filter(|(setting, _)| setting.verdict.is_open() && setting.gain >= GAIN_MIN)
        // Idle states that were held off made this loop no later.
        .filter(|(setting, _)| !(held && subject(setting) == "idle"))
        .collect();
    open.sort_by_key(|(setting, _)| std::cmp::Reverse(setting.gain));
    // The best of them has a place, whatever else there is: what to do next.
    let places = ADVICE_MAX - usize::from(!open.is_empty());
    shown
        .take(places)
        .chain(open.into_iter().map(|(setting, findings)| of_rule(setting, findings)))
        .take(ADVICE_MAX)
        .collect()
}

fn advice(topic: &str, text: impl Into<String>, command: Option<&str>) -> Option<Advice> {
    let command = command.map(ToOwned::to_owned);
    let (topic, text) = (topic.to_owned(), text.into());
    Some(Advice { topic, text, detail: None, command, shows_more: false })
}

impl Advice {
    /// The fact alone, without the detail; the command follows.
    pub fn short(&self) -> String {
        self.before_command(&self.text)
    }

    /// The fact with all that is known of it; the command follows.
    pub fn whole(&self) -> String {
        match &self.detail {
            None => self.short(),
            Some(more) => self.before_command(&format!("{}. {more}", self.text)),
        }
    }

    /// Words that the command follows: one that does not do what they advise is set apart.
    fn before_command(&self, words: &str) -> String {
        let more = if self.shows_more { "; to see more" } else { "" };
        format!("{words}{more}")
    }
}

/// Advice on the causes of late wakes: first whoever had the CPU of a loop that waited for it, then
/// a period that is too short for any wake, else the causes that the kernel's events show. Empty
/// where none of them was seen.
pub(crate) fn causes(runs: &[Run], rows: &[LoadRow], question: &Question<'_>) -> Vec<Advice> {
    let too_short = runs.iter().find_map(|run| Some((run, ShortPeriod::of(run)?)));
    let shown = match too_short {
        Some((run, short)) => short.advice(&of_run(run, runs), question),
        None => cause(runs, rows, &question.requirement, question.findings),
    };
    [kept_waiting(runs, rows), shown].into_iter().flatten().collect()
}

/// A loop whose period is over before it wakes: half of its wakes, or more, came so late that the
/// next release had passed. Others on its CPU were not the reason: they used less than half of it.
struct ShortPeriod {
    period_ns: u64,
    /// The cycles that ran.
    wakes: u64,
    /// Their lateness, missed releases left out.
    lateness_ns: SummaryStats,
    /// The median of that.
    median_ns: f64,
}

/// Others that used so much of a CPU may be the reason for half of the late wakes.
const HALF_A_CPU: f64 = 0.5;

/// A period that is proposed has so many figures.
const PERIOD_FIGURES: u32 = 2;

impl ShortPeriod {
    /// That of a run; `None` where its wakes are in time for its period.
    fn of(run: &Run) -> Option<Self> {
        let period_ns = run.setup.period_ns.filter(|_| run.outcome.missed.is_some())?;
        let lateness_ns = run.outcome.wakes.stats.clone();
        let median_ns = lateness_ns.p50.filter(|median_ns| *median_ns >= period_ns as f64)?;
        let is_crowded = run.others.as_ref().is_some_and(|others| others.share >= HALF_A_CPU);
        let wakes = run.outcome.cycles;
        (!is_crowded && wakes >= LATE_MIN).then_some(Self {
            period_ns,
            wakes,
            lateness_ns,
            median_ns,
        })
    }

    /// The quantile of the wakes that a loop has to keep within its deadline, ns; `None` where it
    /// is not among those that are kept, or where too few wakes are beyond it.
    fn quantile_ns(&self, requirement: &Requirement) -> Option<f64> {
        let is_held = self.wakes as f64 * requirement.p >= LATE_MIN as f64;
        let share = Probability::from_share(1.0 - requirement.p).filter(|_| is_held)?;
        self.lateness_ns.quantile(share)
    }

    /// The least period, in ns, whose deadline that quantile of the wakes keeps; `None` where none
    /// does, as with a deadline that does not grow with the period.
    fn least_period_ns(requirement: &Requirement, quantile_ns: f64) -> Option<u64> {
        let rounded_up = |ns: f64| {
            let digits = (ns.max(1.0).log10().floor() as u32).saturating_sub(PERIOD_FIGURES - 1);
            let unit = 10_f64.powi(digits.cast_signed());
            ((ns / unit).ceil() * unit) as u64
        };
        // A period of the quantile itself misses no more releases; a deadline may be a tenth of it.
        let periods = [1.0, 10.0].map(|times| rounded_up(quantile_ns * times));
        let keeps = |period_ns: &u64| requirement.deadline_ns(*period_ns) as f64 >= quantile_ns;
        periods.into_iter().find(keeps)
    }

    fn advice(&self, run: &str, question: &Question<'_>) -> Option<Advice> {
        let Requirement { p, .. } = question.requirement;
        let median = format::ns(Some(self.median_ns));
        let text = format!(
            "{run}the period of {} is shorter than a wake takes here: half of the {} wakes came \
             {median} or more after their release",
            format::period(self.period_ns),
            format::count(self.wakes)
        );
        let one_in = format!("one in {}", format::rate(1.0 / p));
        let Some(quantile_ns) = self.quantile_ns(&question.requirement) else {
            let text = format!(
                "{text}; which period would do is undecided: so few do not show how late {one_in} \
                 is"
            );
            return advice("cause", text, None);
        };
        let late = format::ns(Some(quantile_ns));
        let Some(least_ns) = Self::least_period_ns(&question.requirement, quantile_ns) else {
            let text = format!("{text}; no period would do: {one_in} was later than {late}");
            return advice("cause", text, None);
        };
        let deadline_ns = question.requirement.deadline_ns(least_ns).unsigned_abs();
        let text = format!(
            "{text}; {} may do: all but {one_in} of these wakes, {late} late at most, are within \
             its deadline of {}; longer sleeps may wake later, so measure it",
            format::period(least_ns),
            format::period(deadline_ns)
        );
        // Of several loops none is measured alone.
        let command = question.command_at(Some(least_ns)).filter(|_| !question.measured_alone);
        advice("cause", text, command.as_deref())
    }
}

/// Advice on the threads that kept the loop waiting which was seen waiting the longest. `None`
/// where no other thread did.
fn kept_waiting(runs: &[Run], rows: &[LoadRow]) -> Option<Advice> {
    let seen = |run: &Run| {
        let (waits, cpu) = (run.kept_waiting.as_ref()?, run.setup.cpu?);
        Some((waits.waited_ns, waits.sentence(cpu)?, cpu))
    };
    let seen = runs.iter().filter_map(|run| Some((run, seen(run)?)));
    let (run, (_, sentence, cpu)) = seen.max_by_key(|(_, (waited_ns, ..))| *waited_ns)?;
    let text = format!(
        "{}{sentence}: give it a priority below the loop's, or keep it off CPU {cpu}",
        of_run(run, runs)
    );
    Some(Advice { shows_more: true, ..advice("cause", text, Some(&again(run, rows, None)))? })
}

/// The highest priority of SCHED_FIFO and SCHED_RR (sched(7)).
const PRIORITY_MAX: u32 = 99;

/// Advice on the real-time threads that used most of a loop's CPU and that the loop does not
/// preempt: not seen to have kept it waiting, and still what to look at first. `None` where there
/// were none.
fn in_the_way(runs: &[Run], rows: &[LoadRow]) -> Option<Advice> {
    let seen = |run: &Run| {
        let (others, cpu) = (run.others.as_ref()?, run.setup.cpu?);
        let thread = others.in_the_way(run.setup.priority)?;
        let (who, share) = (thread.who(), format::share(thread.share));
        let loop_of = match run.setup.policy_words() {
            Some(policy) => format!("the loop ({policy})"),
            None => "the loop".to_owned(),
        };
        let rank = match (thread.priority, run.setup.priority) {
            (Some(theirs), Some(own)) if theirs == u32::from(own) => {
                format!("has the same priority as {loop_of}, which does not preempt it")
            }
            _ => format!("goes before {loop_of}"),
        };
        let away = format!("keep it off CPU {cpu}");
        let remedy = match (thread.priority, run.setup.priority) {
            (None, _) => format!("{away}, for no priority goes before SCHED_DEADLINE"),
            (Some(_), Some(_)) => format!("give it a priority below the loop's, or {away}"),
            (Some(PRIORITY_MAX..), None) => {
                format!("give it a lower priority and the loop one above that, or {away}")
            }
            (Some(_), None) => format!("give the loop a real-time priority above it, or {away}"),
        };
        Some(format!("{who} used {share} of CPU {cpu} and {rank}: {remedy}"))
    };
    let (run, text) = runs.iter().find_map(|run| Some((run, seen(run)?)))?;
    Some(Advice { shows_more: true, ..advice("CPU", text, Some(&again(run, rows, None)))? })
}

/// "idle: ", where there are several runs; "25 µs, idle: ", where they have several periods.
fn of_run(run: &Run, runs: &[Run]) -> String {
    let is_other = |other: &Run| other.setup.period_ns != run.setup.period_ns;
    match run.setup.period_ns.filter(|_| runs.iter().any(is_other)) {
        Some(period_ns) => format!("{}, {}: ", format::period(period_ns), run.condition()),
        None if runs.len() > 1 => format!("{}: ", run.condition()),
        None => String::new(),
    }
}

/// Fewer late wakes than this are no reason to change a machine.
const LATE_MIN: u64 = 10;
/// A recording behind the measurement whose worst is so many times smaller did not see it again.
const NOT_AGAIN: f64 = 10.0;

/// A cause whose shares of the late wakes and of the time lost differ by this much has both.
const SHARES_APART: f64 = 0.25;

/// The causes of the late wakes of one run, the one that lost most periods beyond its deadline, and
/// a remedy for the first of them: the plan of settings where that has a change for it, else what
/// helps in words. `None` where causes were not recorded.
fn cause(
    runs: &[Run],
    rows: &[LoadRow],
    requirement: &Requirement,
    findings: Option<&Findings>,
) -> Option<Advice> {
    let late = LateWakes::worst(runs, requirement)?;
    let run = late.run;
    let sentence = late.blame.sentence.as_ref()?;
    let rule = late.named().and_then(|cause| cause.tune_rule.as_ref());
    let plan = findings.filter(|findings| rule.is_some_and(|rule| findings.plans(rule)));
    let advised = late.named().map_or("", |cause| cause.advice.trim());
    let text = late.words(runs, rows);
    let (text, remedy) = match (plan, advised) {
        (_, "") => (text, String::new()),
        // The command moves it.
        (Some(_), advised) => (text, format!(" {advised}")),
        (None, advised) => (format!("{text}. {}", advised.trim_end_matches('.')), String::new()),
    };
    let text = format!("{}{text}", of_run(run, runs));
    let detail = format!("{}{remedy}", format::sentence(sentence.trim_end_matches('.')));
    let again = again(run, rows, late.shown());
    // The command that plans a setting does not look at the loop.
    let look = plan.map(|_| format!(". '{again}' looks at that loop alone"));
    let command = plan.map_or(again, Findings::plan);
    let unseen = late.unseen().unwrap_or_default();
    let detail = format!("{}{unseen}{}", detail.trim_end_matches('.'), look.unwrap_or_default());
    let first = advice("cause", text, Some(&command))?;
    // What follows is the command.
    let detail = Some(detail.trim_end_matches('.').to_owned());
    Some(Advice { detail, shows_more: plan.is_none(), ..first })
}

/// The late wakes of a run whose causes were recorded.
struct LateWakes<'a> {
    run: &'a Run,
    blame: &'a RunBlame,
    /// The worst lateness of the run, ns.
    worst_ns: f64,
    /// What the recording lost, where that is too much to show a cause.
    lost: Option<BlamedLoss>,
}

impl<'a> LateWakes<'a> {
    /// Those of the run that lost most periods beyond its deadline, of as many the latest.
    fn worst(runs: &'a [Run], requirement: &Requirement) -> Option<Self> {
        let worst = |run: &Run| run.outcome.lateness_ns.max.unwrap_or(0.0);
        let has_late_or_lost = |run: &&Run| {
            let is_lost = |blame: &RunBlame| blame.unseen.is_some_and(|loss| loss.is_too_much);
            run.blame.as_ref().is_some_and(|blame| blame.late > 0 || is_lost(blame))
        };
        let order = |a: &&Run, b: &&Run| {
            let [lost, other] = [a, b].map(|run| periods_lost(run, requirement));
            lost.total_cmp(&other).then(worst(a).total_cmp(&worst(b)))
        };
        Self::of(runs.iter().filter(has_late_or_lost).max_by(order)?)
    }

    /// Those of a run; `None` where no causes were recorded.
    fn of(run: &'a Run) -> Option<Self> {
        let blame = run.blame.as_ref()?;
        let lost = blame.unseen.filter(|loss| loss.is_too_much);
        Some(Self { run, blame, worst_ns: run.outcome.lateness_ns.max.unwrap_or(0.0), lost })
    }

    /// Returns true where a recording behind the measurement did not see the worst again.
    fn was_missed(&self) -> bool {
        let causes = self.run.causes.iter();
        let recorded_ns = causes.map(|cause| cause.worst_ns as f64).fold(0.0, f64::max);
        self.blame.behind_ns.is_some() && recorded_ns * NOT_AGAIN < self.worst_ns
    }

    /// How many the loop itself saw, where those are many more than the events show: theirs end
    /// with the switch to the loop. `None` of a recording behind the measurement, of a part, or
    /// where releases were missed: then several of these are one wake.
    fn unseen(&self) -> Option<String> {
        let threshold_ns = i64::try_from(self.blame.threshold_ns?).ok()?;
        let buckets = self.run.outcome.lateness.buckets();
        let later = buckets.filter(|bucket| bucket.lowest_ns > threshold_ns);
        let seen: u64 = later.map(|bucket| bucket.count).sum();
        let is_whole = self.blame.behind_ns.is_none()
            && self.run.outcome.missed.unwrap_or(0) == 0
            && self.blame.wakes.saturating_mul(10) > self.run.outcome.cycles.saturating_mul(9);
        let are_many = seen.saturating_mul(4) > self.blame.late.saturating_mul(5);
        (is_whole && are_many).then(|| {
            format!(
                ". The loop itself saw {} so late: what passes behind the switch to it, up to its \
                 first instruction, has no event",
                format::count(seen)
            )
        })
    }

    /// The first cause, also where that is too little to act on, or not that of the worst.
    fn first(&self) -> Option<&'a BlamedCause> {
        self.run.first_cause().filter(|_| self.lost.is_none())
    }

    /// The first cause, where there is enough to act on it.
    fn named(&self) -> Option<&'a BlamedCause> {
        self.shown().filter(|_| self.blame.late >= LATE_MIN)
    }

    /// The cause that the words give as that of the late wakes, as far as it is seen so far.
    fn shown(&self) -> Option<&'a BlamedCause> {
        self.first().filter(|_| !self.was_missed())
    }

    /// A cause by its name, with its share of the time and what else there was.
    fn named_so(&self, cause: &BlamedCause) -> String {
        let (time, rest) = (of_time(cause, self.blame.late), self.beside(cause));
        format!("{}{time}{rest}", cause.name)
    }

    /// What the others are booked to, beside this cause.
    fn beside(&self, cause: &BlamedCause) -> String {
        beside(cause, self.run, self.blame.late)
    }

    /// "17", the number of them.
    fn count(&self) -> String {
        format::count(self.blame.late)
    }

    /// "17 wakes later than 50 µs", and where they were recorded.
    fn counted(&self) -> String {
        let noun = if self.blame.late == 1 { "wake" } else { "wakes" };
        let bar = self.blame.threshold_ns.map_or_else(
            || format!("late {noun}"),
            |ns| format!("{noun} later than {}", format::ns(Some(ns as f64))),
        );
        let place = if self.blame.behind_ns.is_some() { " behind the measurement" } else { "" };
        format!("{} {bar}{place}", self.count())
    }

    /// Their cause, or why none is shown.
    fn words(&self, runs: &[Run], rows: &[LoadRow]) -> String {
        match (self.named(), self.lost) {
            (Some(cause), _) => self.of_cause(cause, runs),
            (None, Some(loss)) => {
                let share = format::share(loss.share_of_time);
                format!(
                    "undecided: the recording lost {share} of the time, so that no cause is shown"
                )
            }
            (None, None) if self.was_missed() => self.not_again(rows),
            (None, None) if self.blame.late < LATE_MIN => self.too_few(),
            (None, None) => format!("no cause was seen of {}", self.counted()),
        }
    }

    fn of_cause(&self, cause: &BlamedCause, runs: &[Run]) -> String {
        let (wakes, worst) = (format::count(cause.wakes), format::ns(Some(cause.worst_ns as f64)));
        // Most wakes may be one thread's, and the worst another's.
        let latest = self.run.causes.iter().find(|cause| cause.is_of_latest);
        let latest = latest.filter(|latest| latest.worst_ns > cause.worst_ns);
        let latest = latest.filter(|_| !is_worst_with_cause(self.run, runs));
        let latest = latest.map_or_else(String::new, |latest| {
            format!("; {}: {}", format::ns(Some(latest.worst_ns as f64)), latest.name)
        });
        let under = latest_under(self.run, Some(cause));
        let under = under.map_or_else(String::new, |load| format!(", the latest under {load}"));
        let (time, rest) = (of_time(cause, self.blame.late), self.beside(cause));
        let which = format!("{wakes} of {}: {}", self.counted(), cause.name);
        format!("{which}, worst {worst}{under}{time}{latest}{rest}")
    }

    fn not_again(&self, rows: &[LoadRow]) -> String {
        // Whoever was seen to have its CPU is named beside this.
        let is_seen = kept_waiting(std::slice::from_ref(self.run), rows).is_some();
        let open = if is_seen { "" } else { ", and is not explained" };
        // The worst alone did not: what did has a cause.
        let first = self.first().filter(|_| self.blame.late >= LATE_MIN);
        let others = first.map_or_else(String::new, |cause| {
            let wakes = format::count(cause.wakes);
            format!("{wakes} of {}: {}; ", self.counted(), self.named_so(cause))
        });
        format!(
            "{others}the worst, {}, did not come again behind the measurement{open}: --blame on \
             records while it measures",
            format::long(self.worst_ns)
        )
    }

    fn too_few(&self) -> String {
        let are = if self.blame.late == 1 { "is" } else { "are" };
        let few = self.first().map_or_else(
            || "too few to say why".to_owned(),
            |cause| {
                let (wakes, late) = (format::count(cause.wakes), self.count());
                let named = self.named_so(cause);
                format!("too few to be sure why; so far {wakes} of {late}: {named}")
            },
        );
        format!("{} {are} {few}", self.counted())
    }
}

/// Returns true where the sentence about the worst of the loops of a period is about this run, and
/// has the cause.
fn is_worst_with_cause(run: &Run, runs: &[Run]) -> bool {
    let worst = |run: &Run| run.outcome.lateness_ns.max;
    let mut of_period = runs.iter().filter(|other| other.setup.period_ns == run.setup.period_ns);
    run.worst_cause().is_some() && of_period.all(|other| worst(other) <= worst(run))
}

/// Periods that the releases of a run lost which were later than the deadline: each its lateness in
/// periods, and one that was missed, or later than its period, one. Many that are little later than
/// the deadline outweigh no few that take whole cycles away.
fn periods_lost(run: &Run, requirement: &Requirement) -> f64 {
    let period_ns = run.setup.period_ns.unwrap_or(0);
    let deadline_ns = requirement.deadline_ns(period_ns);
    let late = run.outcome.lateness.buckets().filter(|bucket| bucket.lowest_ns > deadline_ns);
    // Without a period each is one.
    let periods = |lateness_ns: i64| (lateness_ns as f64 / period_ns as f64).min(1.0);
    let lost = late.map(|bucket| bucket.count as f64 * periods(bucket.lowest_ns));
    lost.sum::<f64>() + run.outcome.unknown() as f64
}

/// ", 91 % of the time lost", where a cause has another share of that than of the late wakes.
fn of_time(cause: &BlamedCause, late: u64) -> String {
    let share_of_wakes = cause.wakes as f64 / late.max(1) as f64;
    match (cause.share_of_time - share_of_wakes).abs() >= SHARES_APART {
        true => format!(", {} of the time lost", format::share(cause.share_of_time)),
        false => String::new(),
    }
}

/// What the other late wakes are booked to, with their counts: the next cause, what is unexplained,
/// what has no single cause, and the rest, for a page of few lines. Empty where `cause` covers half
/// of them.
fn beside(cause: &BlamedCause, run: &Run, late: u64) -> String {
    if cause.wakes >= late.div_ceil(2) {
        return String::new();
    }
    let others = run.causes.iter().filter(|other| !std::ptr::eq(*other, cause));
    let others: Vec<_> = others.collect();
    let wakes_of = |is_one: fn(&BlamedCause) -> bool| {
        let ones = others.iter().filter(|other| is_one(other));
        ones.map(|other| other.wakes).fold(0, u64::saturating_add)
    };
    let unexplained = wakes_of(BlamedCause::is_unexplained);
    let of_several = wakes_of(BlamedCause::is_of_several);
    let others = others.iter().filter(|other| !other.is_unexplained() && !other.is_of_several());
    // Of as many the one that took more time, which stands first.
    let next = others.rev().max_by_key(|other| other.wakes);
    let next = next.map_or((0, ""), |next| (next.wakes, next.name.as_str()));
    let counted = [cause.wakes, next.0, unexplained, of_several];
    let counted = counted.into_iter().fold(0, u64::saturating_add);
    let words = [
        (next.0, format!(": {}", next.1)),
        (unexplained, " unexplained".to_owned()),
        (of_several, " without a single cause".to_owned()),
        (late.saturating_sub(counted), " by other causes".to_owned()),
    ];
    let words = words.into_iter().filter(|(wakes, _)| *wakes > 0);
    words.map(|(wakes, words)| format!("; {}{words}", format::count(wakes))).collect()
}

/// The command that shows a run's late wakes as they passed: those of `cause`, where one is shown.
fn again(run: &Run, rows: &[LoadRow], cause: Option<&BlamedCause>) -> String {
    let worst = |row: &&LoadRow| row.lateness_ns.max.unwrap_or(0.0);
    let loads = &run.setup.load;
    // A row of loads that ran at once is called something else.
    let in_turn =
        |row: &&LoadRow| row.period_ns == run.setup.period_ns && loads.contains(&row.load);
    let latest = rows.iter().filter(in_turn).max_by(|a, b| worst(a).total_cmp(&worst(b)));
    let latest = latest_under(run, cause).or(latest.map(|row| row.load.as_str()));
    let load = match (loads.as_slice(), latest) {
        ([], _) => None,
        // Of those that took turns, the one of the cause, or under which the loop was the latest.
        ([_, _, ..], Some(load)) => Some(load.to_owned()),
        (at_once, _) => Some(at_once.join(",")),
    };
    blame_command(run, load)
}

/// The load under which the latest wake of this cause passed; `None` where no loads took turns, or
/// it is not known.
fn latest_under<'a>(run: &Run, cause: Option<&'a BlamedCause>) -> Option<&'a str> {
    let under = cause?.latest_under.as_ref()?;
    run.setup.load.contains(under).then_some(under)
}

/// The command that looks at the loop of a run alone, beside this load.
fn blame_command(run: &Run, load: Option<String>) -> String {
    let cpu = run.setup.cpu.map(|cpu| format!(" --cpu {cpu}"));
    let period = run.setup.period_ns;
    let period = period.map(|ns| format!(" --period {}", format::period_argument(ns)));
    let is_known = |load: &String| LoadSpec::parse_list(load).is_ok();
    let load = load.filter(is_known).map(|load| format!(" --load {}", shell_word(&load)));
    let over = run.blame.as_ref().and_then(|blame| blame.threshold_ns);
    let over =
        over.map(|ns| format!(" --over {}", format::period_argument(ns.div_ceil(1_000) * 1_000)));
    let options: String = [cpu, period, over, load].into_iter().flatten().collect();
    format!("sudo punctual blame{options}")
}

/// The host of a virtual machine, with the steal that the kernel counted during the runs.
fn host(facts: &MachineFacts, runs: &[Run]) -> Option<Advice> {
    if !facts.virtualization.is_guest() {
        return None;
    }
    // Loops on one CPU at once see the same steal.
    let by_cpu = |cpu: u32| {
        let on_cpu = || runs.iter().filter(move |run| run.setup.cpu == Some(cpu));
        let of_period = |period: Option<u64>| {
            let at_once = on_cpu().filter(move |run| run.setup.period_ns == period);
            at_once.filter_map(|run| run.steal_ns).reduce(u64::saturating_add)
        };
        on_cpu().filter_map(|run| of_period(run.setup.period_ns)).max()
    };
    let mut cpus: Vec<u32> = runs.iter().filter_map(|run| run.setup.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let steal_ns = cpus.iter().copied().filter_map(by_cpu).reduce(u64::saturating_add);
    let measured = match cpus.as_slice() {
        [cpu] => format!("CPU {cpu}"),
        _ => "the measured CPUs".to_owned(),
    };
    let included = "stalls of the host are included";
    let text = match steal_ns {
        None => format!("virtual machine, so {included}"),
        Some(0) => format!("virtual machine, so {included}; no steal time seen (steps of 10 ms)"),
        Some(ns) => {
            let taken = format::long(ns as f64);
            format!("the host took {taken} from {measured} (steal); {included}")
        }
    };
    advice("host", text, Some("punctual measure noise"))
}

/// The load under which most were missed.
fn load(runs: &[Run], rows: &[LoadRow]) -> Option<Advice> {
    let in_all: u64 = rows.iter().map(|row| row.missed).sum();
    // Loops of several periods have a row each under the same load.
    let under = |load: &str| {
        let same = rows.iter().filter(|row| row.load == load);
        same.map(|row| row.missed).sum::<u64>()
    };
    let most = rows.iter().max_by_key(|row| under(&row.load))?;
    let missed = under(&most.load);
    let several = rows.iter().any(|row| row.load != most.load);
    if !several || missed * 2 <= in_all {
        return None;
    }
    let load = &most.load;
    let text = match missed == in_all {
        true => format!("all {} missed under load were under {load}", format::count(in_all)),
        false => format!(
            "{} of the {} missed under load were under {load}",
            format::count(missed),
            format::count(in_all)
        ),
    };
    // Of the loops that run beside it, the one that missed most.
    let under_it = rows.iter().filter(|row| row.load == *load).max_by_key(|row| row.missed)?;
    let is_it =
        |run: &&Run| run.setup.period_ns == under_it.period_ns && run.setup.load.contains(load);
    let command = match runs.iter().find(is_it) {
        Some(run) => blame_command(run, Some(load.clone())),
        None => format!("sudo punctual blame --load {load}"),
    };
    advice("load", text, Some(&command))
}

/// The share of the CPU that real-time tasks may use, where a loop came near it or a control group
/// sets it.
fn throttling(facts: &MachineFacts, runs: &[Run]) -> Option<Advice> {
    let budget = facts.limits.rt_budget()?;
    let real_time = runs.iter().filter(|run| run.setup.priority.is_some());
    let most = real_time.filter_map(|run| run.cpu_load).reduce(f64::max)?;
    if most < budget.share * NEAR_BUDGET && !budget.of_cgroup {
        return None;
    }
    let whose = if budget.of_cgroup { " of this control group" } else { "" };
    let (share, gap) = (format::share(budget.share), format::long(budget.gap_us as f64 * 1e3));
    let used = format::share(most);
    let text = format!(
        "real-time tasks{whose} may use {share} of a CPU, and then stop for {gap}; the loop used \
         {used}"
    );
    advice("throttling", text, None)
}

/// The subject of a rule: the first part of its identifier, which is stable from version to
/// version.
fn subject(finding: &KnobVerdict) -> &str {
    finding.id.split_once('.').map_or(finding.id.as_str(), |(subject, _)| subject)
}

/// A rule's finding: what was found, and the command that changes it.
fn of_rule(finding: &KnobVerdict, findings: &Findings) -> Advice {
    let topic = match subject(finding) {
        "idle" | "frequency" => "frequency",
        "memory" => "memory",
        "boot" | "risks" => "setting",
        _ => "CPU",
    };
    let command = match finding.changes.as_slice() {
        [KnobChange::Write { path, value }] => Some(format!("echo {value} | sudo tee {path}")),
        [] => None,
        [..] => Some(findings.plan()),
    };
    let text = match finding.id.as_str() {
        // Its name is the kernel that there should be.
        "scheduler.preempt_rt" => format!("the kernel is {}, not {}", finding.found, finding.knob),
        // The way that needs no reboot, of which no file tells.
        "isolation.isolcpus" => format!(
            "no CPU is isolated; 'punctual isolate' keeps one for a command, without a reboot; \
             {}: {}",
            finding.knob, finding.found
        ),
        _ => format!("{}: {}", finding.knob, finding.found),
    };
    Advice { topic: topic.to_owned(), text, detail: None, command, shows_more: false }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_analysis::summary::SummaryStats;
    use punctual_core::sample::Sample;
    use punctual_host::cpulist::CpuList;
    use punctual_host::root::Root;
    use punctual_host::rules::{self, Inputs};
    use punctual_host::settings::KernelSettings;

    use super::*;
    use crate::run::Setup;
    use crate::run::{KeptWaiting, OtherThread};

    /// A captured machine.
    fn root(name: &str) -> Root {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
        Root::captured(Path::new(dir).join(name)).expect("a machine")
    }

    fn run(period_ns: u64, steal_ns: Option<u64>, cpu_load: f64) -> Run {
        let figures = Recording::new(RecordingConfig::default()).finish(0);
        let (cpu, period_ns, priority) = (Some(1), Some(period_ns), Some(90));
        let setup = Setup { cpu, period_ns, priority, ..Setup::default() };
        let cpu_load = Some(cpu_load);
        Run { steal_ns, cpu_load, ..Run::recorded("idle".to_owned(), setup, figures) }
    }

    fn session(idle_states_held: bool) -> Session {
        let (refused, restless) = (Vec::new(), Vec::new());
        Session { memory_locked: true, idle_states_held, refused, restless, load_cpus: None }
    }

    fn text(found: Option<Advice>) -> String {
        found.map(|advice| advice.text).unwrap_or_default()
    }

    #[test]
    fn at_most_three_and_first_what_gains_most() {
        let root = root("laptop-intel-pstate");
        let (facts, settings) = (MachineFacts::collect(&root), KernelSettings::collect(&root));
        let cpus = CpuList::single(7);
        let inputs = Inputs { facts: &facts, settings: &settings, cpus: &cpus, workload: None };
        let findings =
            Findings { cpus: cpus.to_string(), workload: None, verdicts: rules::judge(&inputs) };
        let given = |session: &Session, findings| {
            let session = Some(session);
            of(&facts, session, (&[], &[]), &Question { findings, ..Question::default() })
        };
        let advice = given(&session(false), Some(&findings));
        let texts: Vec<&str> = advice.iter().map(|advice| advice.text.as_str()).collect();
        assert_eq!(advice.len(), ADVICE_MAX, "{texts:?}");
        assert!(texts[0].starts_with("the kernel is PREEMPT_"), "{texts:?}");
        assert!(texts[0].ends_with(", not PREEMPT_RT"), "{texts:?}");
        assert!(texts[1..].iter().any(|text| text.contains("C10 (750 µs)")), "{texts:?}");
        let idle = advice.iter().find(|advice| advice.topic == "frequency").expect("idle states");
        let command = idle.command.as_deref().expect("one file");
        assert!(
            command
                .ends_with("sudo tee /sys/devices/system/cpu/cpu7/power/pm_qos_resume_latency_us")
        );
        assert!(given(&session(false), None).is_empty(), "recorded data have no settings");
        let held = given(&session(true), Some(&findings));
        assert!(held.iter().all(|advice| !advice.text.contains("C10")), "{held:?}");
    }

    #[test]
    fn steal_of_loops_that_ran_at_once_is_counted_once() {
        let facts = MachineFacts::collect(&root("firecracker-guest-2cpu"));
        let host = |runs: &[Run]| text(host(&facts, runs));
        let (ms, us) = (1_000_000, 1_000);
        // Idle and under load come one after the other; two periods run at once.
        let pair = |period| [run(period, Some(20 * ms), 0.1), run(period, Some(100 * ms), 0.1)];
        let runs: Vec<Run> = [pair(ms), pair(25 * us)].into_iter().flatten().collect();
        assert!(host(&runs).starts_with("the host took 120 ms from CPU 1"), "{}", host(&runs));
        assert!(host(&[run(ms, Some(0), 0.1)]).contains("no steal time seen"));
        assert_eq!(
            host(&[run(ms, None, 0.1)]),
            "virtual machine, so stalls of the host are included"
        );
    }

    fn blamed(run: Run, late: u64, causes: &[(&str, u64, Option<&str>)]) -> Run {
        let cause = |(cause, wakes, rule): &(&str, u64, Option<&str>)| BlamedCause {
            cause: (*cause).to_owned(),
            name: format!("{cause} of hog"),
            cpu: Some(1),
            wakes: *wakes,
            share_of_late: 0.5,
            share_between: (0.4, 0.6),
            share_of_time: *wakes as f64 / late as f64,
            worst_ns: 300_000,
            confidence: 0.99,
            rule: "runs".to_owned(),
            evidence: "sched_switch".to_owned(),
            advice: format!("Mend {cause}."),
            tune_rule: rule.map(str::to_owned),
            ..BlamedCause::default()
        };
        let blame = RunBlame {
            sentence: Some(format!("50 % of the {late} wakes later than 40 µs: {}.", causes[0].0)),
            wakes: 1_000,
            threshold_ns: Some(40_000),
            late,
            ..RunBlame::default()
        };
        let causes = causes.iter().map(cause).collect();
        Run { causes, blame: Some(blame), ..run }
    }

    #[test]
    fn the_first_cause_comes_first_with_its_command() {
        let facts = MachineFacts::collect(&root("firecracker-guest-2cpu"));
        let plain = || run(1_000_000, Some(0), 0.1);
        let of_runs = |runs: &[Run]| of(&facts, None, (runs, &[]), &Question::default());
        let causes = [
            ("normal-path", 9, None),
            ("softirq", 5, None),
            ("higher-priority", 1, Some("isolation.isolcpus")),
        ];
        let advice = of_runs(&[blamed(plain(), 15, &causes)]);
        assert_eq!((advice[0].topic.as_str(), advice[1].topic.as_str()), ("cause", "host"));
        // What wakes on time take is no cause.
        let short = advice[0].text.replace('\u{a0}', " ");
        // It covers few of them: what covers the others is named too.
        let expected = "5 of 15 wakes later than 40.0 µs: softirq of hog, worst 300 µs; 9: \
                        normal-path of hog; 1 by other causes. Mend softirq";
        assert_eq!(short, expected);
        let mut rare = blamed(plain(), 65, &causes);
        rare.causes.extend(blamed(plain(), 65, &[("unexplained", 40, None)]).causes);
        rare.causes.extend(blamed(plain(), 65, &[("ipi", 7, None)]).causes);
        let text = of_runs(&[rare])[0].text.replace('\u{a0}', " ");
        let rest = "µs; 9: normal-path of hog; 40 unexplained; 11 by other causes. Mend";
        assert!(text.starts_with("5 of 65 wakes ") && text.contains(rest), "{text}");
        // No single one took a fifth of these: they are no other cause's.
        let several = [causes[1], ("no-single-cause", 7, None), ("ipi", 2, None)];
        let text = of_runs(&[blamed(plain(), 15, &several)])[0].text.replace('\u{a0}', " ");
        let rest = "µs; 2: ipi of hog; 7 without a single cause; 1 by other causes. Mend";
        assert!(text.contains(rest), "{text}");
        // Few wakes that took most of the time.
        let mut long = blamed(plain(), 66, &[("higher-priority", 18, None)]);
        long.causes[0].share_of_time = 0.91;
        let text = of_runs(&[long])[0].text.replace('\u{a0}', " ");
        let shares = "18 of 66 wakes later than 40.0 µs: higher-priority of hog, worst 300 µs, \
                      91 % of the time lost; 48 by other causes";
        assert!(text.starts_with(shares), "{text}");
        let whole = advice[0].whole();
        assert!(
            whole.contains("worst 300")
                && whole.ends_with("later than 40 µs: normal-path; to see more"),
            "{whole}"
        );
        assert!(whole.contains(". 50 % of the 15 wakes") && !whole.contains(".."), "{whole}");
        // The worst was another's.
        let mut apart = blamed(plain(), 15, &causes);
        (apart.causes[2].is_of_latest, apart.causes[2].worst_ns) = (true, 9_000_000);
        let text = of_runs(&[apart])[0].text.replace('\u{a0}', " ");
        let expected = "softirq of hog, worst 300 µs; 9.00 ms: higher-priority of hog; 9: normal";
        assert!(text.contains(expected), "{text}");
        // That of the worst of all stands behind it.
        let mut latest = blamed(with_late(1_000_000, 3, 9_000), 15, &causes);
        (latest.causes[2].is_of_latest, latest.causes[2].worst_ns) = (true, 9_000_000);
        latest.outcome.worst[0].cause = Some("higher-priority of hog".to_owned());
        assert!(!of_runs(&[latest.clone()])[0].text.contains("9.00 ms"));
        let later = with_late(1_000_000, 3, 20_000);
        assert!(of_runs(&[latest, later])[0].text.contains("9.00 ms"));
        let few = of_runs(&[blamed(plain(), 9, &causes)]);
        let sure = "are too few to be sure why; so far 5 of 9: softirq of hog";
        assert!(few[0].text.ends_with(sure), "{few:?}");
        let few = of_runs(&[blamed(plain(), 9, &causes[..1])]);
        assert!(few[0].text.ends_with("are too few to say why"), "{few:?}");
        let one = of_runs(&[blamed(plain(), 1, &causes[..1])])[0].text.replace('\u{a0}', " ");
        assert_eq!(one, "1 wake later than 40.0 µs is too few to say why");
        let none = of_runs(&[blamed(plain(), 15, &causes[..1])]);
        assert!(none[0].text.starts_with("no cause was seen of 15 wakes"), "{none:?}");
        let again = "sudo punctual blame --cpu 1 --period 1ms --over 40us";
        assert_eq!(advice[0].command.as_deref(), Some(again));
        // Nothing was late, or not recorded: nothing is said of it.
        for silent in [blamed(plain(), 0, &causes), plain()] {
            assert_eq!(of_runs(&[silent])[0].topic, "host");
        }
        // A load is named where it is a word.
        let mut loaded = blamed(plain(), 15, &causes);
        for (load, command) in
            [("cpu", format!("{again} --load cpu")), ("command=a b", again.to_owned())]
        {
            loaded.setup.load = vec![load.to_owned()];
            let advice = of_runs(&[loaded.clone(), plain()]);
            assert!(advice[0].text.starts_with("idle: "), "{advice:?}");
            assert_eq!(advice[0].command, Some(command));
        }
    }

    /// With so many releases of ten thousand so late, ns.
    fn with_late(period_ns: u64, late: u64, lateness_us: i64) -> Run {
        let period = punctual_core::time::Period::from_ns(period_ns);
        let thresholds_ns = vec![50_000, 100_000];
        let config = RecordingConfig { period, thresholds_ns, ..RecordingConfig::default() };
        let mut recording = Recording::new(config);
        for cycle in 0..10_000 {
            let late_us = if cycle < late { lateness_us } else { 5 };
            let lateness = punctual_core::time::Span::from_us(late_us);
            recording.push(&Sample { cycle, lateness, ..Sample::default() });
        }
        let plain = run(period_ns, Some(0), 0.1);
        Run { outcome: recording.finish(0), ..plain }
    }

    /// A loop of this period that skips releases: so many cycles ran, each so late.
    fn skipping(period_ns: u64, cycles: u64, late_us: i64) -> Run {
        let period = punctual_core::time::Period::from_ns(period_ns);
        let mut recording = Recording::new(RecordingConfig { period, ..Default::default() });
        let passed = late_us.cast_unsigned() * 1_000 / period_ns + 1;
        for number in 0..cycles {
            // One in 2 500 is later.
            let late_us = if number % 2_500 == 7 { late_us * 9 } else { late_us };
            let lateness = punctual_core::time::Span::from_us(late_us);
            recording.push(&Sample { cycle: number * passed, lateness, ..Sample::default() });
        }
        let plain = run(period_ns, Some(0), 0.9);
        Run { outcome: recording.finish(0), ..plain }
    }

    #[test]
    fn a_period_that_is_shorter_than_a_wake_is_the_cause_and_another_is_proposed() {
        let words = |run: Run, question: &Question<'_>| {
            let mut found = causes(&[run], &[], question);
            assert!(found.len() <= 1, "{found:?}");
            let found = found.pop()?;
            Some((found.text.replace('\u{a0}', " "), found.command))
        };
        let question = Question { command: Some(("punctual check", "")), ..Question::default() };
        let causes = [("user-stall", 5, None)];
        let fast = || blamed(skipping(5_000, 30_000, 24), 300, &causes);
        let (text, command) = words(fast(), &question).expect("a cause");
        assert!(
            text.starts_with("the period of 5 µs is shorter than a wake takes here: half of the ")
                && text.contains(
                    "250 µs may do: all but one in 1 000 of these wakes, 24.0 µs late at most, \
                     are within its deadline of 25 µs"
                ),
            "{text}"
        );
        assert_eq!(command.as_deref(), Some("punctual check --period 250us"));
        // A deadline does not grow with the period.
        let with_deadline = |ns| Requirement {
            deadline: punctual_analysis::verdict::Deadline::Ns(ns),
            ..Requirement::default()
        };
        let (text, _) = words(fast(), &Question { requirement: with_deadline(30_000), ..question })
            .expect("a cause");
        assert!(text.contains("25 µs may do"), "{text}");
        let (text, command) =
            words(fast(), &Question { requirement: with_deadline(10_000), ..question })
                .expect("a cause");
        assert!(text.contains("no period would do") && command.is_none(), "{text}");
        // Too few wakes to know how late one in a thousand is.
        let (text, command) = words(skipping(5_000, 3_000, 24), &question).expect("a cause");
        assert!(text.contains("which period would do is undecided"), "{text}");
        assert_eq!(command, None);
        // Wakes are in time, or others had the CPU.
        let (text, _) =
            words(blamed(with_late(40_000, 30, 90), 300, &causes), &question).expect("a cause");
        assert!(!text.contains("is shorter than a wake"), "{text}");
        let mut crowded = skipping(5_000, 30_000, 24);
        crowded.others = Some(crate::run::OtherThreads { share: 0.6, threads: Vec::new() });
        assert_eq!(words(crowded, &question), None);
    }

    #[test]
    fn the_cause_is_that_of_the_loop_with_most_beyond_its_deadline() {
        let deadline = punctual_analysis::verdict::Deadline::TenthFrom(50_000);
        let requirement = Requirement { deadline, p: 1e-4 };
        let base = blamed(with_late(25_000, 400, 80), 300, &[("softirq", 200, None)]);
        let servo = blamed(with_late(1_000_000, 3, 9_000), 12, &[("higher-priority", 5, None)]);
        // The servo thread has the latest of all, the base thread most that were late.
        let advice =
            cause(&[servo.clone(), base.clone()], &[], &requirement, None).expect("recorded");
        assert!(advice.text.contains("softirq of hog"), "{}", advice.text);
        assert!(advice.text.starts_with("25 µs, idle: 200 of 300 "), "{}", advice.text);
        let look = "sudo punctual blame --cpu 1 --period 25us --over 40us";
        assert_eq!(advice.command.as_deref(), Some(look));
        // Of as many the latest.
        let other = blamed(with_late(1_000_000, 400, 9_000), 12, &[("higher-priority", 9, None)]);
        let advice = cause(&[base, other], &[], &requirement, None).expect("recorded");
        assert!(advice.text.contains("higher-priority of hog"), "{}", advice.text);
        // One that misses releases loses more than one that is a little late more often.
        let mut missed = with_late(1_000_000, 150, 6_000);
        missed.name = "idle".to_owned();
        let missed = blamed(missed, 66, &[("higher-priority", 18, None)]);
        let late = blamed(with_late(1_000_000, 400, 150), 59, &[("host-or-firmware", 16, None)]);
        let advice = cause(&[late, missed], &[], &requirement, None).expect("recorded");
        assert!(advice.text.contains("higher-priority of hog"), "{}", advice.text);
        // A setting that moves it has its command, and the loop's stands beside it.
        let moved = blamed(servo, 15, &[("ipi", 9, Some("isolation.isolcpus"))]);
        let machine = root("firecracker-guest-2cpu");
        let (facts, settings) =
            (MachineFacts::collect(&machine), KernelSettings::collect(&machine));
        let cpus = CpuList::single(1);
        let inputs = Inputs { facts: &facts, settings: &settings, cpus: &cpus, workload: None };
        let workload = Some("linuxcnc".to_owned());
        let verdicts = rules::judge(&inputs);
        let findings = Findings { cpus: cpus.to_string(), workload, verdicts };
        let of_run = |run: &Run| {
            let run = std::slice::from_ref(run);
            cause(run, &[], &requirement, Some(&findings)).expect("recorded")
        };
        let advice = of_run(&moved);
        let plan = "punctual tune plan --cpus 1 --for linuxcnc";
        assert_eq!(advice.command.as_deref(), Some(plan));
        // One that the plan has no change for has its remedy in words.
        let fixed =
            blamed(moved.clone(), 15, &[("fair-server", 9, Some("throttling.fair_server"))]);
        let without = of_run(&fixed);
        assert!(without.text.ends_with(". Mend fair-server"), "{}", without.text);
        assert!(without.command.is_some_and(|command| command.starts_with("sudo punctual blame")));
        assert!(advice.whole().contains("blame --cpu 1 --period 1ms --over 40us'"), "{advice:?}");
    }

    #[test]
    fn a_worst_that_did_not_come_again_is_unexplained_only_where_nobody_was_seen() {
        let mut stalled = blamed(with_late(1_000_000, 3, 90_000), 12, &[("softirq", 5, None)]);
        stalled.blame.as_mut().expect("blamed").behind_ns = Some(1_000_000_000);
        stalled.outcome.lateness_ns.max = Some(2e9);
        let text = |run: &Run| {
            let advice = cause(std::slice::from_ref(run), &[], &Requirement::default(), None);
            advice.expect("recorded").text
        };
        let open = text(&stalled);
        assert!(open.contains("behind the measurement, and is not explained: "), "{open}");
        // What did come again has its cause.
        let others = "5 of 12 wakes later than 40.0 µs behind the measurement: softirq of hog; 7 \
                      by other causes; the";
        assert!(open.replace('\u{a0}', " ").starts_with(others), "{open}");
        stalled.blame.as_mut().expect("blamed").late = 9;
        assert!(text(&stalled).starts_with("the worst"), "too few to name one");
        let name = "sh".to_owned();
        let hog =
            OtherThread { name, share: 0.9, pid: Some(7), processes: 1, ..OtherThread::default() };
        stalled.kept_waiting = Some(KeptWaiting { waited_ns: 1, threads: vec![hog] });
        let named = text(&stalled);
        assert!(named.contains("behind the measurement: --blame on"), "{named}");
    }

    #[test]
    fn a_real_time_thread_that_goes_before_the_loop_is_named_without_the_kernels_events() {
        let facts = MachineFacts::collect(&root("firecracker-guest-2cpu"));
        let with = |policy: Option<&str>, priority: Option<u32>, own: Option<u8>, share| {
            let thread = OtherThread {
                name: "hog".to_owned(),
                share,
                pid: Some(7),
                processes: 1,
                policy: policy.map(str::to_owned),
                priority,
            };
            let mut run = run(1_000_000, Some(0), 0.1);
            run.setup.priority = own;
            run.setup.policy = Some("SCHED_OTHER".to_owned()).filter(|_| own.is_none());
            run.others = Some(crate::run::OtherThreads { share, threads: vec![thread] });
            let advice = of(&facts, None, (&[run], &[]), &Question::default());
            let first = advice.into_iter().next().expect("the host at least");
            (first.topic, first.text.replace('\u{a0}', " "))
        };
        let (topic, text) = with(Some("SCHED_FIFO"), Some(60), None, 0.26);
        let expected = "hog (SCHED_FIFO 60, pid 7) used 26 % of CPU 1 and goes before the loop \
                        (SCHED_OTHER): give the loop a real-time priority above it, or keep it \
                        off CPU 1";
        assert_eq!((topic.as_str(), text.as_str()), ("CPU", expected));
        let words = |policy, priority, own| with(Some(policy), priority, own, 0.26).1;
        let equal = words("SCHED_RR", Some(90), Some(90));
        let rank = " and has the same priority as the loop, which does not preempt it: give it a \
                    priority below the loop's, or keep it off CPU 1";
        assert!(equal.ends_with(rank), "{equal}");
        // No priority is above these.
        for own in [Some(90), None] {
            let deadline = words("SCHED_DEADLINE", None, own);
            let remedy = ": keep it off CPU 1, for no priority goes before SCHED_DEADLINE";
            assert!(deadline.ends_with(remedy), "{deadline}");
        }
        let highest = words("SCHED_FIFO", Some(99), None);
        let remedy = ": give it a lower priority and the loop one above that, or keep it off CPU 1";
        assert!(highest.ends_with(remedy), "{highest}");
        for behind in [
            with(Some("SCHED_FIFO"), Some(60), Some(90), 0.26),
            with(None, None, None, 0.26),
            with(Some("SCHED_FIFO"), Some(60), None, 0.01),
        ] {
            assert_eq!(behind.0, "host", "{behind:?}");
        }
    }

    #[test]
    fn who_goes_before_the_loop_comes_first_unless_a_cause_was_named() {
        let facts = MachineFacts::collect(&root("firecracker-guest-2cpu"));
        let first = |late, causes: &[(&str, u64, Option<&str>)]| {
            let mut run = blamed(with_late(25_000, 400, 80), late, causes);
            run.setup.priority = Some(90);
            run.setup.cpu = Some(1);
            let thread = OtherThread {
                name: "above".to_owned(),
                share: 0.26,
                pid: Some(7),
                processes: 1,
                policy: Some("SCHED_FIFO".to_owned()),
                priority: Some(95),
            };
            run.others = Some(crate::run::OtherThreads { share: 0.26, threads: vec![thread] });
            of(&facts, None, (&[run], &[]), &Question::default()).remove(0).text
        };
        assert!(first(40, &[("softirq", 30, None)]).contains("softirq of hog"));
        for (late, causes) in [(40, &[("unexplained", 40, None)][..]), (3, &[("ipi", 3, None)])] {
            let text = first(late, causes);
            assert!(text.starts_with("above (SCHED_FIFO 95, pid 7) used"), "{late}: {text}");
        }
    }

    #[test]
    fn what_the_loop_saw_beyond_what_the_events_show_is_said() {
        let run = |late| blamed(with_late(25_000, 400, 80), late, &[("softirq", 30, None)]);
        let unseen = |run: &Run| LateWakes::of(run).expect("recorded").unseen();
        let mut whole = run(40);
        let blame = whole.blame.as_mut().expect("blamed");
        (blame.wakes, blame.behind_ns) = (whole.outcome.cycles, None);
        let words = unseen(&whole).expect("400 of 40");
        assert!(words.contains("itself saw 400 so late"), "{words}");
        let mut missed = whole.clone();
        missed.outcome.missed = Some(50);
        assert_eq!(unseen(&missed), None);
        whole.blame.as_mut().expect("blamed").late = 390;
        assert_eq!(unseen(&whole), None);
        let mut behind = run(40);
        behind.blame.as_mut().expect("blamed").behind_ns = Some(1);
        assert_eq!(unseen(&behind), None);
    }

    #[test]
    fn nothing_is_advised_where_too_much_was_lost() {
        let mut lost = blamed(with_late(25_000, 400, 80), 300, &[("softirq", 200, None)]);
        let loss = BlamedLoss {
            wakes: 40,
            time_ns: 620,
            share_of_time: 0.62,
            share_of_events: 0.6,
            is_too_much: true,
        };
        lost.blame.as_mut().expect("blamed").unseen = Some(loss);
        let advice = cause(&[lost.clone()], &[], &Requirement::default(), None).expect("recorded");
        let text = advice.text.replace('\u{a0}', " ");
        assert!(text.starts_with("undecided: the recording lost 62 % of the time"), "{text}");
        assert!(!advice.whole().contains("Mend"), "{advice:?}");
        // Also where no late wake was seen whole.
        lost.blame.as_mut().expect("blamed").late = 0;
        assert!(cause(&[lost], &[], &Requirement::default(), None).is_some());
    }

    #[test]
    fn the_load_under_which_most_were_missed_is_looked_at_with_its_loop() {
        let row = |load: &str, missed| LoadRow {
            load: load.to_owned(),
            period_ns: Some(25_000),
            cycles: 1_000,
            missed,
            censored: 0,
            unrecorded: 0,
            lateness_ns: Default::default(),
            steal_ns: None,
            loads: Vec::new(),
        };
        let mut loaded = blamed(run(25_000, Some(0), 0.1), 15, &[("softirq", 9, None)]);
        loaded.setup.load = vec!["fork".to_owned(), "cpu".to_owned()];
        let advice = load(&[loaded], &[row("fork", 30), row("cpu", 2)]).expect("fork");
        let look = "sudo punctual blame --cpu 1 --period 25us --over 40us --load fork";
        assert_eq!(advice.command.as_deref(), Some(look));
    }

    #[test]
    fn the_load_under_which_it_was_the_latest_is_in_the_command() {
        let row = |load: &str, period_ns, max| LoadRow {
            load: load.to_owned(),
            period_ns: Some(period_ns),
            cycles: 1_000,
            missed: 0,
            censored: 0,
            unrecorded: 0,
            lateness_ns: SummaryStats { max: Some(max), ..SummaryStats::default() },
            steal_ns: None,
            loads: Vec::new(),
        };
        let mut loaded = blamed(run(25_000, Some(0), 0.1), 15, &[("softirq", 9, None)]);
        let command = |loaded: &Run, rows: &[LoadRow]| {
            let advice = cause(std::slice::from_ref(loaded), rows, &Requirement::default(), None);
            advice.and_then(|advice| advice.command).expect("a command")
        };
        let look = "sudo punctual blame --cpu 1 --period 25us --over 40us --load";
        loaded.setup.load = ["cpu", "fork", "disk"].map(str::to_owned).to_vec();
        let rows = [row("cpu", 25_000, 9e5), row("fork", 25_000, 2e6), row("disk", 1_000_000, 9e6)];
        assert_eq!(command(&loaded, &rows), format!("{look} fork"));
        // The cause that is named was seen under another: the words have that, and the command.
        loaded.causes[0].latest_under = Some("cpu".to_owned());
        assert_eq!(command(&loaded, &rows), format!("{look} cpu"));
        let words = LateWakes::of(&loaded).expect("recorded").words(&[], &rows);
        assert!(words.ends_with("µs, the latest under cpu"), "{words}");
        // One that did not come again is looked for where it was.
        let mut missed = loaded.clone();
        missed.blame.as_mut().expect("blamed").behind_ns = Some(1_000_000_000);
        missed.outcome.lateness_ns.max = Some(2e9);
        assert_eq!(command(&missed, &rows), format!("{look} fork"));
        loaded.causes[0].latest_under = None;
        // The command has those at once that ran at once.
        for rows in [&[][..], &[row("all loads", 25_000, 9e5)]] {
            assert_eq!(command(&loaded, rows), format!("{look} cpu,fork,disk"));
        }
        loaded.setup.load = vec!["stress-ng:\"--cpu 2\"".to_owned()];
        assert_eq!(command(&loaded, &[]), format!("{look} 'stress-ng:\"--cpu 2\"'"));
    }

    #[test]
    fn a_command_that_does_not_what_the_words_advise_stands_apart() {
        let loaded = blamed(run(25_000, Some(0), 0.1), 15, &[("equal-priority", 9, None)]);
        let advice = cause(&[loaded], &[], &Requirement::default(), None).expect("recorded");
        assert!(advice.text.ends_with(". Mend equal-priority"), "{advice:?}");
        for words in [advice.short(), advice.whole()] {
            assert!(words.ends_with("; to see more"), "{words}");
        }
    }

    #[test]
    fn throttling_is_advice_where_a_loop_came_near_it() {
        let facts = MachineFacts::collect(&root("firecracker-guest-2cpu"));
        let near = |share| text(throttling(&facts, &[run(1_000_000, None, share)]));
        assert!(near(0.94).contains("used 94 %"), "{}", near(0.94));
        assert_eq!(near(0.2), "");
    }
}
