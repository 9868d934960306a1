//! The question that loops are measured for: what they are for, how late they may be, and how
//! often.
//!
//! `--for`, `--deadline`, `--miss` and `--gate` of every subcommand that judges; kept with the
//! data, so that they are judged by it again.

use std::path::Path;

use punctual_analysis::quantity;
use punctual_analysis::verdict::{Deadline, Requirement};
use punctual_core::time::Span;
use punctual_report::{Question, QuestionSpec, Run};

use crate::format;
use crate::parse::{self, Duration};
use crate::stored::LATEST;

/// The question, as options.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct QuestionArgs {
    #[arg(long = "for", value_name = "USE", value_parser = purpose)]
    #[arg(help = purposes_help(), long_help = purposes_long_help())]
    purpose: Option<Purpose>,
    /// How late a loop may be [default: a tenth of its period]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse::duration)]
    deadline: Option<Duration>,
    /// The share of releases that may be later than the deadline [default: 1e-3]
    #[arg(long, value_name = "SHARE", value_parser = parse::share)]
    miss: Option<f64>,
    /// Fail (exit 1) where the answer is no; where it is not shown yet, --undecided says what that
    /// counts as
    #[arg(long)]
    gate: bool,
}

impl QuestionArgs {
    /// Returns true where its answers decide the exit status.
    pub(crate) fn is_gate(&self) -> bool {
        self.gate
    }

    /// The question in the form that is kept; `None` where nothing is asked beyond what always is.
    pub(crate) fn spec(&self) -> Option<QuestionSpec> {
        let purpose = self.purpose.as_ref().and_then(Purpose::of_use);
        let spec = QuestionSpec {
            purpose: purpose.map(|row| row.name.to_owned()),
            deadline_ns: self.deadline.map(|deadline| deadline.0.as_ns()),
            miss: self.miss,
        };
        (spec != QuestionSpec::default()).then_some(spec)
    }

    /// The periods to run: those that are requested, none for the usual ones.
    ///
    /// # Errors
    /// In one line, why it is about no loops of these, and the way out.
    pub(crate) fn periods_to_run(&self, requested: &[Duration]) -> Result<Vec<Duration>, String> {
        match (&self.purpose, requested) {
            (None, []) => Ok(vec![Duration(Span::from_ns(PERIOD_NS))]),
            (Some(purpose), []) => Ok(purpose.periods()),
            (None, _) => Ok(requested.to_vec()),
            (Some(purpose), _) => {
                let requested_ns = requested.iter().map(|period| period.0.as_ns().unsigned_abs());
                let accepted = purpose.accepts(&requested_ns.collect::<Vec<_>>());
                let shown = || requested.iter().map(|period| shown_period(*period));
                accepted
                    .map_err(|why| {
                        format!("--period {}: {why}", shown().collect::<Vec<_>>().join(","))
                    })
                    .map(|()| requested.to_vec())
            }
        }
    }

    /// The name of its purpose; `None` where it is about no use.
    pub(crate) fn purpose_name(&self) -> Option<&'static str> {
        self.purpose.as_ref().and_then(Purpose::of_use).map(|row| row.name)
    }

    /// The options that ask the same again, behind a command, of loops of these requested periods;
    /// none where it is about no use.
    pub(crate) fn options(&self, requested: &[Duration]) -> String {
        let Some(row) = self.purpose.as_ref().and_then(Purpose::of_use) else {
            return String::new();
        };
        let periods = requested.iter().map(|period| shown_period(*period)).collect::<Vec<_>>();
        match periods.as_slice() {
            [] => row.option.to_owned(),
            [..] => format!("{} --period {}", row.option, periods.join(",")),
        }
    }

    /// The periods that it is about; `None` for those of `--period`.
    pub(crate) fn periods(&self) -> Option<Vec<Duration>> {
        self.purpose.as_ref().map(Purpose::periods)
    }

    /// The load that its loops run beside; `None` for those that were requested.
    pub(crate) fn load(&self) -> Option<&'static str> {
        self.purpose.as_ref().and_then(Purpose::of_use).and_then(|row| row.load)
    }

    /// The command that says what holds where its answer is no, of results that are kept there.
    pub(crate) fn refuted(&self, results: &Path) -> Option<String> {
        let row = self.purpose.as_ref().and_then(Purpose::of_use)?;
        let command = row.refuted?;
        Some(format!("{command} --from {}", results.join(LATEST).display()))
    }

    /// Refuses data that it is not about: without a loop of its period, or with other loops than
    /// those that have names.
    ///
    /// # Errors
    /// In one line, which periods there are, and the way out.
    pub(crate) fn suits(&self, runs: &[Run]) -> Result<(), String> {
        let Some(purpose) = &self.purpose else { return Ok(()) };
        let mut recorded_ns: Vec<u64> = runs.iter().filter_map(|run| run.setup.period_ns).collect();
        recorded_ns.sort_unstable();
        recorded_ns.dedup();
        let wanted = purpose.periods();
        let mut wanted_ns = wanted.iter().map(|period| period.0.as_ns().unsigned_abs());
        let is_there =
            |wanted: u64| recorded_ns.iter().any(|ns| ns.abs_diff(wanted) <= wanted / 1_000);
        // A thread beside those that it names, of a shorter period, makes it another machine.
        let named = purpose.of_use().filter(|row| !row.labels.is_empty());
        let shortest = named.and_then(|row| row.periods_ns.iter().min());
        let is_shorter = |ns: u64| {
            shortest.is_some_and(|shortest| ns.saturating_add(ns / 1_000) < shortest.unsigned_abs())
        };
        let is_alone = !recorded_ns.iter().any(|&ns| is_shorter(ns));
        if recorded_ns.is_empty() || wanted_ns.all(is_there) && is_alone {
            return Ok(());
        }
        let shown: Vec<String> = recorded_ns.iter().map(|&ns| format::period(ns)).collect();
        purpose.accepts(&recorded_ns).map_err(|why| format!("data of {}: {why}", shown.join(", ")))
    }
}

/// The option that asks about the loop of this name; `None` where none has it.
pub(crate) fn option_named(name: &str) -> Option<&'static str> {
    USES.iter().find(|row| row.name == name).map(|row| row.option)
}

/// The words and the requirement of a question as it is kept; one that a newer version knows by a
/// name that this one does not is judged by its numbers.
pub(crate) fn question(spec: Option<&QuestionSpec>) -> Question<'_> {
    let Some(spec) = spec else { return Question::default() };
    let row = spec.purpose.as_ref().and_then(|name| USES.iter().find(|row| row.name == name));
    let mut requirement = row.map_or_else(Requirement::default, |row| row.requirement);
    if let Some(ns) = spec.deadline_ns {
        requirement.deadline = Deadline::Ns(ns);
    }
    requirement.p = spec.miss.unwrap_or(requirement.p);
    Question {
        requirement,
        measured_alone: row.is_some(),
        stepping: row.is_some_and(|row| row.stepping),
        labels: row.map_or(&[], |row| row.labels),
        purpose: row.map(|row| row.purpose),
        spec: Some(spec),
        ..Question::default()
    }
}

/// The options that ask a question again as it is kept; empty for the usual one.
pub(crate) fn options_of(spec: &QuestionSpec) -> String {
    let purpose = spec.purpose.as_ref().map(|name| format!("--for {name}"));
    let time = |ns: i64| format::period_argument(ns.unsigned_abs());
    let deadline = spec.deadline_ns.map(|ns| format!("--deadline {}", time(ns)));
    let miss = spec.miss.map(|share| format!("--miss {share:e}"));
    let options = [purpose, deadline, miss].into_iter().flatten();
    options.collect::<Vec<_>>().join(" ")
}

/// The period of a loop for which nothing else is requested, ns.
const PERIOD_NS: i64 = 1_000_000;

/// A period as an argument.
fn shown_period(period: Duration) -> String {
    format::period_argument(period.0.as_ns().unsigned_abs())
}

/// A purpose of loops: their periods, and the requirement that they have to keep.
#[derive(Debug)]
struct Use {
    /// Its name, as in `--for`.
    name: &'static str,
    /// The option as it is written.
    option: &'static str,
    /// Its measurement, as a clause.
    help: &'static str,
    /// The loops that run at once, ns.
    periods_ns: &'static [i64],
    /// The requirement that they have to keep.
    requirement: Requirement,
    /// The load beside them; `None` for each that `check` knows, in turn.
    load: Option<&'static str>,
    /// The loop in words: "A loop".
    purpose: &'static str,
    /// The names of its loops, by period in ns, the shortest first, where they have names of their
    /// own: such loops may have other periods, and are judged by the same rule.
    labels: &'static [(u64, &'static str)],
    /// True where the result judges software stepping.
    stepping: bool,
    /// The command that says what a machine is good for that does not keep the requirement.
    refuted: Option<&'static str>,
}

const fn within(ns: i64, p: f64) -> Requirement {
    Requirement { deadline: Deadline::Ns(ns), p }
}

/// Every use.
static USES: [Use; 6] = [
    Use {
        name: "linuxcnc",
        option: " --for linuxcnc",
        // LinuxCNC's latency-test runs these two; up to 50 µs it recommends software stepping,
        // and a servo thread with a card that makes the steps may be 100 µs late.
        help: "base and servo thread, 25us and 1ms, and whether software can make the steps",
        periods_ns: &[25_000, 1_000_000],
        requirement: Requirement { deadline: Deadline::TenthFrom(50_000), p: 1e-4 },
        load: Some("linuxcnc"),
        purpose: "LinuxCNC threads",
        labels: &[(25_000, "base thread"), (1_000_000, "servo thread")],
        stepping: true,
        refuted: None,
    },
    Use {
        name: "mesa",
        option: " --for mesa",
        // A servo thread beside a base thread waits for it: without one it is another machine.
        help: "LinuxCNC's servo thread alone, 1ms, where a card makes the steps",
        periods_ns: &[1_000_000],
        requirement: within(100_000, 1e-4),
        load: Some("linuxcnc"),
        purpose: "A servo thread without a base thread",
        labels: &[(1_000_000, "servo thread")],
        stepping: false,
        refuted: None,
    },
    Use {
        name: "audio",
        option: " --for audio",
        help: "64 frames at 48 kHz, half of the time left to compute them",
        periods_ns: &[1_333_333],
        requirement: within(667_000, 1e-4),
        load: None,
        purpose: "64 frames at 48 kHz",
        labels: &[],
        stepping: false,
        refuted: Some("punctual impact audio"),
    },
    Use {
        name: "ros",
        option: " --for ros",
        help: "a robot's control loop, 1ms, late by 100us at most",
        periods_ns: &[1_000_000],
        requirement: within(100_000, 1e-4),
        load: None,
        purpose: "A robot's control loop",
        labels: &[],
        stepping: false,
        refuted: None,
    },
    Use {
        name: "plc",
        option: " --for plc",
        help: "a task of a programmable controller, 10ms, late by 1ms at most",
        periods_ns: &[10_000_000],
        requirement: within(1_000_000, 1e-3),
        load: None,
        purpose: "A PLC task",
        labels: &[],
        stepping: false,
        refuted: None,
    },
    Use {
        name: "ptp",
        option: " --for ptp",
        // Class A of IEEE 802.1BA: one frame in each 125 µs.
        help: "a TSN sender of class A, 125us, half of the interval left to send",
        periods_ns: &[125_000],
        requirement: within(62_500, 1e-4),
        load: None,
        purpose: "A TSN sender of class A",
        labels: &[],
        stepping: false,
        refuted: None,
    },
];

/// The purpose that `--for` names.
#[derive(Clone, Debug)]
enum Purpose {
    /// A row of the table.
    Use(usize),
    /// A loop of this period.
    Period(Duration),
}

impl Purpose {
    /// Its row, where it has one.
    fn of_use(&self) -> Option<&'static Use> {
        match self {
            Self::Use(at) => USES.get(*at),
            Self::Period(_) => None,
        }
    }

    /// The periods to run at once.
    fn periods(&self) -> Vec<Duration> {
        match self {
            Self::Use(at) => {
                USES[*at].periods_ns.iter().map(|&ns| Duration(Span::from_ns(ns))).collect()
            }
            Self::Period(period) => vec![*period],
        }
    }
}

impl Purpose {
    /// Accepts loops of these periods, ns, or refuses them.
    ///
    /// # Errors
    /// In one line, why not, and the way out.
    fn accepts(&self, periods_ns: &[u64]) -> Result<(), String> {
        let row = match self.of_use() {
            Some(row) if !row.labels.is_empty() => row,
            _ => {
                let usual = self.periods().into_iter();
                let shown = |period: Duration| format::period(period.0.as_ns().unsigned_abs());
                let usual: Vec<String> = usual.map(shown).collect();
                return Err(format!(
                    "--for is about a loop of {}; without --for, --deadline and --miss ask the \
                     same of any period",
                    usual.join(", ")
                ));
            }
        };
        let mut own_ns = periods_ns.to_vec();
        own_ns.sort_unstable();
        own_ns.dedup();
        if own_ns.len() == row.labels.len() && periods_ns.len() == own_ns.len() {
            return Ok(());
        }
        let names: Vec<&str> = row.labels.iter().map(|(_, name)| *name).collect();
        let usual: Vec<String> =
            row.labels.iter().map(|(ns, _)| format::period_argument(*ns)).collect();
        let other = USES.iter().find(|other| {
            other.name != row.name && !other.labels.is_empty() && other.labels.len() == own_ns.len()
        });
        let other = other.map_or_else(String::new, |other| {
            let names: Vec<&str> = other.labels.iter().map(|(_, name)| *name).collect();
            let alone = if names.len() == 1 { " alone" } else { "" };
            format!(", or{} for the {}{alone}", other.option, names.join(" and the "))
        });
        Err(format!(
            "{} takes one period for each of its loops ({}), no two alike, as in --period \
             {}{other}",
            row.option.trim_start(),
            names.join(", "),
            usual.join(",")
        ))
    }
}

fn names() -> String {
    USES.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}

/// `audio`, `1kHz` or `500us`.
fn purpose(text: &str) -> Result<Purpose, String> {
    if let Some(at) = USES.iter().position(|row| row.name == text) {
        return Ok(Purpose::Use(at));
    }
    if let Ok(rate) = quantity::rate(text) {
        let ns = (1e9 / rate.as_hz()).round();
        let fits = (1.0..=9.2e18).contains(&ns);
        let period = fits.then(|| Purpose::Period(Duration(Span::from_ns(ns as i64))));
        return period.ok_or_else(|| format!("{text} has no period that can be measured"));
    }
    parse::period(text).map(Purpose::Period).map_err(|_| {
        format!("accepted are {}, a rate such as 1kHz and a period such as 500us", names())
    })
}

/// The help of `--for`, in a line.
fn purposes_help() -> String {
    format!("What the loop is for: {}; or a rate, such as 1kHz", names())
}

/// The help of `--for`, with what each measures.
fn purposes_long_help() -> String {
    let each = USES.iter().map(|row| format!("\n- {}: {}", row.name, row.help));
    purposes_help() + "\n" + &each.collect::<String>()
}

#[cfg(test)]
mod tests {
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_lab::load::LoadSpec;
    use punctual_report::Setup;

    use super::*;

    #[test]
    fn each_row_is_what_its_option_asks_for_and_has_loads_that_exist() {
        for (at, row) in USES.iter().enumerate() {
            assert_eq!(row.option, format!(" --for {}", row.name));
            assert!(matches!(purpose(row.name), Ok(Purpose::Use(found)) if found == at));
            assert!(row.load.is_none_or(|load| LoadSpec::parse_list(load).is_ok()), "{}", row.name);
            assert!(!row.help.ends_with('.') && !row.periods_ns.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn loops_with_names_may_have_periods_of_their_own_and_others_are_shown_the_way_out() {
        let periods = |text: &str| -> Vec<Duration> {
            text.split(',').map(|word| parse::period(word).expect("a period")).collect()
        };
        let asks = |name: &str, text: &str| {
            let purpose = Some(purpose(name).expect("a purpose"));
            let question = QuestionArgs { purpose, ..QuestionArgs::default() };
            let periods = periods(text);
            let run = question.periods_to_run(&periods)?;
            let run_ns: Vec<i64> = run.iter().map(|period| period.0.as_ns()).collect();
            Ok::<_, String>((run_ns, question.options(&periods)))
        };
        let own = asks("linuxcnc", "1ms,50us").expect("base and servo thread");
        let again = " --for linuxcnc --period 1ms,50us".to_owned();
        assert_eq!(own, (vec![1_000_000, 50_000], again));
        assert_eq!(asks("mesa", "2ms").map(|(run_ns, _)| run_ns), Ok(vec![2_000_000]));
        // The deadlines are those of the rule: 50 µs, or a tenth of a longer period.
        let spec = QuestionSpec { purpose: Some("linuxcnc".to_owned()), ..QuestionSpec::default() };
        let requirement = question(Some(&spec)).requirement;
        assert_eq!([50_000, 2_000_000].map(|ns| requirement.deadline_ns(ns)), [50_000, 200_000]);
        for (name, text, way_out) in [
            ("linuxcnc", "50us", "--for mesa for the servo thread alone"),
            ("linuxcnc", "50us,50us", "--period 25us,1ms"),
            ("linuxcnc", "50us,1ms,2ms", "--period 25us,1ms"),
            ("mesa", "50us,1ms", "--for linuxcnc for the base thread and the servo thread"),
            ("audio", "1ms", "--deadline and --miss"),
            ("1kHz", "1ms", "--deadline and --miss"),
        ] {
            let why = asks(name, text).expect_err(name);
            assert!(why.starts_with("--period ") && why.contains(way_out), "{why}");
            assert!(!why.contains('\n'), "{why}");
        }
        // Recorded loops are known by their order too.
        let suits = |name: &str, periods_ns: &[u64]| {
            let purpose = Some(purpose(name).expect("a purpose"));
            let run = |&ns: &u64| {
                let setup = Setup { period_ns: Some(ns), ..Setup::default() };
                let recording = Recording::new(RecordingConfig::default());
                Run::recorded("idle".to_owned(), setup, recording.finish(0))
            };
            let runs: Vec<Run> = periods_ns.iter().map(run).collect();
            QuestionArgs { purpose, ..QuestionArgs::default() }.suits(&runs)
        };
        assert_eq!(suits("linuxcnc", &[50_000, 50_000, 2_000_000]), Ok(()));
        assert_eq!(suits("mesa", &[2_000_000]), Ok(()));
        assert_eq!(suits("audio", &[1_333_334]), Ok(()));
        assert_eq!(suits("audio", &[]), Ok(()), "data without a period are about any");
        let why = suits("linuxcnc", &[50_000]).expect_err("no servo thread");
        assert!(why.starts_with("data of 50 µs: --for linuxcnc takes one"), "{why}");
        let why = suits("mesa", &[25_000, 1_000_000]).expect_err("beside a base thread");
        assert!(why.contains("--for linuxcnc for the base thread"), "{why}");
        assert!(suits("audio", &[1_000_000]).is_err());
        let usual = QuestionArgs::default();
        assert_eq!(usual.periods_to_run(&[]).map(|run| run[0].0.as_ns()), Ok(PERIOD_NS));
        assert_eq!(usual.options(&periods("2ms")), "");
    }

    #[test]
    fn a_rate_or_a_period_is_a_purpose_and_anything_else_is_refused() {
        let ns = |text| purpose(text).expect("a purpose").periods()[0].0.as_ns();
        assert_eq!((ns("1kHz"), ns("500us"), ns("3Hz")), (1_000_000, 500_000, 333_333_333));
        let why = purpose("cnc").expect_err("unknown");
        assert!(why.contains("linuxcnc, mesa, audio") && why.contains("1kHz"), "{why}");
    }
}
