//! Audio: how long between dropouts.
//!
//! With n buffers of B frames at the rate f_s, and C of computing, a wake may be late by
//! (n − 1)·B/f_s − C; a buffer later than that is a dropout. So the mean time between them is
//! B/(f_s·P(lateness > slack)). What decides is the *tail*: an upper bound of that probability,
//! hence a lower one of the time. Where no wake was that late it is the rule of three (about 3/n at
//! 95 %, over the extremal index), never "none". A lower bound of it shows that a wanted time is
//! not reached. Without B it is the smallest power of two that holds: no wake was later than its
//! slack, and where a time is wanted, the lower bound is at least that long.

use punctual_core::time::Span;

use super::timing::{Exceedance, Lack, Suits, Timing};
use super::{Application, Assess, Formula, Model, Sizes};
use super::{MaybeZero, Parameter, Value, Values, Whole};
use crate::quantity::Hertz;

const SOURCE: &str = "slack (n − 1)·B/f_s − C; time between dropouts B/(f_s·P(lateness > slack))";

const RATE: Parameter<Hertz> = Parameter::or("48kHz", "rate", "Frames per second");
const FRAMES: Parameter<BufferLength> = Parameter::optional(
    "frames",
    "Frames in a buffer, or its length: 5ms [default: the smallest that holds]",
);
const BUFFERS: Parameter<Whole<2, { u32::MAX }>> = Parameter::or("2", "buffers", "Buffers");
const COMPUTE: Parameter<MaybeZero> =
    Parameter::optional("compute", "Computing time of a buffer [default: none]");
const WANTED: Parameter<Span> =
    Parameter::optional("wanted", "Required mean time between dropouts: 1h");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "audio",
    about: "Mean time between audio dropouts (xruns)",
    formulas: &[Formula {
        subject: "",
        formula: "slack = (n − 1)·B/f_s − C; time between dropouts = B/(f_s·P(lateness > \
                  slack))",
        decides: "tail at the slack, as an upper bound over the buffers that fit into the time \
                  measured; at most a third of that time where none was that late",
        source: "by definition",
    }],
    parameters: &[&RATE, &FRAMES, &BUFFERS, &COMPUTE, &WANTED],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    let rate = RATE.value(values)?;
    let frames = FRAMES.find(values)?.map(|length| length.frames(rate));
    Ok(Box::new(Audio {
        rate,
        frames: frames.transpose().map_err(|why| format!("--frames: {why}"))?,
        buffers: BUFFERS.value(values)?.0,
        compute_ns: COMPUTE.ns(values)?,
        wanted_ns: WANTED.find_ns(values)?,
    }))
}

/// The length of a buffer, as a person writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BufferLength {
    /// So many frames, ≥ 1.
    Frames(u32),
    /// The time that it takes.
    Time(Span),
}

impl Value for BufferLength {
    const NAME: &'static str = "N|TIME";
    const EXAMPLE: &'static str = "256";

    fn read(text: &str) -> Result<Self, String> {
        let is_number = text.trim().trim_start_matches(['+', '-']).chars().all(char::is_numeric);
        match is_number {
            true => Whole::<1, { u32::MAX }>::read(text).map(|Whole(frames)| Self::Frames(frames)),
            false => Span::read(text).map(Self::Time).map_err(|why| format!("{why}, or frames")),
        }
    }
}

impl BufferLength {
    /// The frames at this rate that end within it.
    ///
    /// # Errors
    /// In one line, that it has none, or more than can be counted.
    fn frames(self, rate: Hertz) -> Result<u32, String> {
        let time = match self {
            Self::Frames(frames) => return Ok(frames),
            Self::Time(time) => time,
        };
        // What is whole but for rounding is whole.
        let frames = (time.as_ns() as f64 * rate.as_hz() / 1e9 + 1e-6).floor();
        let frame = Span::from_ns((1e9 / rate.as_hz()).round() as i64);
        match frames {
            1.0..=4_294_967_295.0 => Ok(frames as u32),
            ..1.0 => Err(format!("{time} is less than a frame, which takes {frame}")),
            _ => Err(format!("{time} is more than {} frames of {frame}", u32::MAX)),
        }
    }
}

/// The set-up of the sound card.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Audio {
    /// Frames per second.
    rate: Hertz,
    /// Frames in a buffer, ≥ 1; `None` for the smallest that holds.
    frames: Option<u32>,
    /// Buffers, ≥ 2.
    buffers: u32,
    /// Computing time of a buffer, ns; ≥ 0.
    compute_ns: f64,
    /// Mean time between dropouts that is wanted, ns; `None`: not judged.
    wanted_ns: Option<f64>,
}

/// Buffers that sound cards have, as powers of two: 16 to 8192 frames.
const BUFFER_BITS: std::ops::RangeInclusive<u32> = 4..=13;

impl Assess for Audio {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        match self.frames {
            Some(frames) => {
                let impact = self.of_buffer(frames, timing)?;
                let length = Span::from_ns(self.buffer_ns(frames).round() as i64);
                let statement = format!("{frames} frames ({length}): {}", impact.statement);
                Ok(Application { statement, ..impact })
            }
            None => self.smallest(timing),
        }
    }
}

impl Audio {
    /// The smallest buffer that holds; where none does, the largest that was tried, with its
    /// answer.
    fn smallest(&self, timing: &Timing) -> Result<Application, Lack> {
        let largest_ns = timing.largest_lateness()?.value_ns;
        let (mut tried, mut open) = (None, None);
        let mut buffers = BUFFER_BITS.map(|bits| 1_u32 << bits);
        let fits = buffers.find(|&frames| self.slack_ns(frames) > largest_ns);
        let as_seen = fits.map_or(f64::INFINITY, f64::from);
        for bits in BUFFER_BITS {
            let frames = 1 << bits;
            let impact = self.of_buffer(frames, timing)?;
            let is_as_seen = self.slack_ns(frames) > largest_ns;
            let holds = impact.answer.map_or(is_as_seen, |answer| answer == Suits::Yes);
            if holds {
                // Without a wanted time nothing is shown but that none was too late.
                let (smallest, next) = match impact.answer {
                    Some(_) => ("the smallest buffer that holds".to_owned(), ""),
                    None => (smallest_seen(timing), what_asks_more(timing)),
                };
                let statement =
                    format!("{frames} frames is {smallest}: {}{next}", impact.statement);
                let severity = [vec![frames.into()], impact.severity.clone()].concat();
                let sizes = Some(Sizes { named: frames.into(), as_seen });
                return Ok(Application { statement, sizes, ..impact }.severity(severity));
            }
            if is_as_seen && open.is_none() {
                open = Some((frames, impact.clone()));
            }
            tried = Some((frames, impact));
        }
        if let Some((frames, impact)) = open {
            let statement = format!(
                "no buffer is shown to hold yet; {frames} frames is {}: {}",
                smallest_seen(timing),
                impact.statement
            );
            let severity = [vec![frames.into()], impact.severity.clone()].concat();
            let sizes = Some(Sizes { named: frames.into(), as_seen });
            return Ok(Application { statement, sizes, ..impact }.severity(severity));
        }
        let Some((frames, impact)) = tried else { return Err(Lack("buffer")) };
        let holds = match impact.answer {
            Some(Suits::Unknown) => "is shown to hold",
            // None without a dropout was looked for, and each had one.
            _ => "holds",
        };
        let statement = format!("no buffer up to {frames} frames {holds}: {}", impact.statement);
        let severity = [vec![f64::MAX], impact.severity.clone()].concat();
        let answer = impact.answer.or(Some(Suits::No));
        let sizes = Some(Sizes { named: f64::INFINITY, as_seen });
        Ok(Application { statement, answer, sizes, ..impact }.severity(severity))
    }

    /// The time that one buffer takes, ns.
    fn buffer_ns(&self, frames: u32) -> f64 {
        f64::from(frames) / self.rate.as_hz() * 1e9
    }

    /// The most lateness that a wake may have, ns; not above zero where no wake may be.
    fn slack_ns(&self, frames: u32) -> f64 {
        f64::from(self.buffers.saturating_sub(1)) * self.buffer_ns(frames) - self.compute_ns
    }

    /// The effect of lateness on a buffer of so many frames.
    fn of_buffer(&self, frames: u32, timing: &Timing) -> Result<Application, Lack> {
        let largest = timing.largest_lateness()?;
        let buffer_ns = self.buffer_ns(frames);
        let slack_ns = self.slack_ns(frames);
        let shown = |ns: f64| Span::from_ns(ns.round() as i64);
        if slack_ns <= 0.0 {
            let statement = format!(
                "the computing time exceeds the buffers by {}: every buffer drops out",
                shown(-slack_ns)
            );
            let impact = Application::new("audio", SOURCE, statement, vec![largest])
                .figure("buffer", f64::from(frames), "frames")
                .figure("length of a buffer", buffer_ns, "ns")
                .figure("slack", slack_ns, "ns");
            return Ok(impact.severity([1.0]).demand(self.compute_ns, 0.0));
        }
        let later = timing.later_of_wakes(slack_ns, buffer_ns);
        let between_ns = later.at_most().map(|p| buffer_ns / p);
        let at_most_ns = later.at_least().map(|p| buffer_ns / p);
        let seen = later.words().map_or_else(String::new, |words| format!(", and {words}"));
        let apart = match (between_ns, at_most_ns) {
            (Some(least_ns), Some(most_ns)) => {
                format!("dropouts are {} to {} apart on average", shown(least_ns), shown(most_ns))
            }
            (Some(least_ns), None) => format!(
                "dropouts are at least {} apart on average{}",
                shown(least_ns),
                less_shown(timing, &later, buffer_ns),
            ),
            (None, _) => "how often one is later is unknown".to_owned(),
        };
        let statement = format!(
            "with {} buffers a wake may be {} late{seen}: {apart}",
            self.buffers,
            shown(slack_ns)
        );
        let basis = later.basis().into_iter().chain([largest]);
        let impact = Application::new("audio", SOURCE, statement, basis.collect())
            .figure("buffer", f64::from(frames), "frames")
            .figure("length of a buffer", buffer_ns, "ns")
            .figure("slack", slack_ns, "ns")
            .figure("time measured", timing.measured_ns(), "ns")
            .figure("share of later buffers, at most", later.at_most(), "1")
            .figure("mean time between dropouts, at least", between_ns, "ns")
            .figure("mean time between dropouts, at most", at_most_ns, "ns")
            .severity([later.severity()]);
        Ok(match self.wanted_ns {
            None => impact,
            Some(wanted_ns) => impact
                .figure("mean time between dropouts wanted", wanted_ns, "ns")
                .demand_of_tail(&later, buffer_ns / wanted_ns),
        })
    }
}

/// The smallest buffer that no wake was too late for, in words.
fn smallest_seen(timing: &Timing) -> String {
    let of_what = if timing.given { "this time error is not" } else { "no measured wake was" };
    format!("the smallest buffer that {of_what} too late for")
}

/// What tells how far apart dropouts are, as a clause.
fn what_asks_more(timing: &Timing) -> &'static str {
    match (timing.given, timing.n) {
        (true, None) => "; --cycles says of how many wakes this was the latest",
        _ => {
            "; --wanted 1h asks whether dropouts are that far apart on average, and how long to \
             measure for that"
        }
    }
}

/// Why dropouts are shown to be less far apart than by wakes that come alone, one to each buffer,
/// where none was late, as a clause: that is a third of the time measured. Empty where they are
/// not.
fn less_shown(timing: &Timing, later: &Exceedance, buffer_ns: f64) -> String {
    let reason = match (later.cluster(), timing.period_ns) {
        (Some(cluster), _) => {
            format!("late wakes come in clusters, of which {cluster:.1} wakes count as one")
        }
        (None, Some(period_ns)) if period_ns > buffer_ns * 1.001 => {
            format!("there is one measured wake to {:.1} buffers", period_ns / buffer_ns)
        }
        _ => return String::new(),
    };
    format!(", less than a third of the time measured, since {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Period;

    use crate::impact::Described;
    use crate::impact::tests::{run_like, run_of, value};
    use crate::plain::grouped;
    use crate::quantity::rate;
    use crate::recording::{Recording, RecordingConfig};

    fn audio(frames: u32, wanted_ns: Option<f64>) -> Audio {
        let rate = rate("48kHz").unwrap();
        Audio { rate, frames: Some(frames), buffers: 2, compute_ns: 0.0, wanted_ns }
    }

    #[test]
    fn never_late_is_three_over_n() {
        // 64 frames at 48 kHz: 1.333 ms. 10⁶ cycles, none that late: p ≤ 3.0e-6, so 445 s.
        let timing = Timing::given(500_000.0, Some(1_000_000));
        let impact = audio(64, Some(60e9)).impact(&timing).unwrap();
        assert!((value(&impact, "slack") - 1_333_333.3).abs() < 0.1);
        let between_s = value(&impact, "mean time between dropouts, at least") * 1e-9;
        assert!((between_s - 1.333_333e-3 / 2.995_73e-6).abs() < 0.01, "{between_s}");
        assert_eq!(impact.answer, Some(Suits::Yes));
        let hour = audio(64, Some(3_600e9)).impact(&timing).unwrap();
        assert_eq!(hour.answer, Some(Suits::Unknown), "too short to say");
    }

    #[test]
    fn what_was_seen_later_than_the_slack_counts() {
        // P(lateness > 1 ms) ≤ 0.01 by the run: at least 0.133 s apart.
        let impact = audio(64, Some(1e9)).impact(&run_like(2e6, &[(1e6, 0.01)])).unwrap();
        let between_s = value(&impact, "mean time between dropouts, at least") * 1e-9;
        assert!((between_s - 0.133_333).abs() < 1e-6, "{between_s}");
        assert_eq!(impact.answer, Some(Suits::Unknown), "an upper bound alone shows no failure");
        assert!(impact.basis[0].words().starts_with("L1"), "{}", impact.basis[0].words());
        // 100 of 10 000 wakes: 1/0.012 to 1/0.008 buffers apart, as far as they come alone.
        let impact = audio(64, Some(1e9)).impact(&run_of(&[(1_000, 9_900), (2_000_000, 100)]));
        assert_eq!(impact.unwrap().answer, Some(Suits::No));
    }

    #[test]
    fn the_buffer_that_was_asked_about_is_named() {
        for max_ns in [10_000.0, 10e6] {
            let impact = audio(64, None).impact(&Timing::given(max_ns, Some(1_000))).unwrap();
            assert!(
                impact.statement.starts_with("64 frames (1.33 ms): with 2 buffers a wake may be"),
                "{impact:?}"
            );
        }
    }

    #[test]
    fn a_buffer_may_be_given_by_its_length() {
        let frames = |text: &str, hz: &str| {
            let mut values = Values::default();
            values.set(&FRAMES, text);
            values.set(&RATE, hz);
            let impact = build(&values)?.impact(&Timing::given(1e3, Some(1_000))).unwrap();
            Ok::<f64, String>(value(&impact, "buffer"))
        };
        assert_eq!(frames("5ms", "48kHz"), Ok(240.0));
        assert_eq!(frames("240", "48kHz"), Ok(240.0));
        // No longer than was given, and whole where it is but for rounding.
        assert_eq!(frames("5ms", "44.1kHz"), Ok(220.0));
        assert_eq!(frames("100ms", "44.1kHz"), Ok(4_410.0));
        let why = frames("10us", "48kHz").unwrap_err();
        assert!(why.starts_with("--frames: 10.0 µs is less than a frame"), "{why}");
        assert!(FRAMES.check("0").unwrap_err().contains("a whole number of at least 1"));
        assert!(FRAMES.check("-4").unwrap_err().contains("a whole number"));
        let why = FRAMES.check("5 apples").unwrap_err();
        assert!(why.contains("duration") && why.ends_with(", or frames"), "{why}");
    }

    #[test]
    fn the_smallest_buffer_is_the_first_that_no_wake_was_too_late_for() {
        let any = |wanted_ns| Audio { frames: None, ..audio(1, wanted_ns) };
        // 1.5 ms: 64 frames are 1.33 ms, 128 are 2.67 ms.
        let timing = Timing::given(1_500_000.0, Some(1_000_000));
        let impact = any(None).impact(&timing).unwrap();
        assert!(impact.statement.starts_with("128 frames is the smallest"), "{}", impact.statement);
        assert!(impact.statement.contains("; --wanted 1h asks whether"), "{}", impact.statement);
        assert_eq!((value(&impact, "buffer"), impact.answer), (128.0, None));
        // An hour takes buffers of 3 600 s · 2.996e-6, 10.8 ms, and more.
        let hour = any(Some(3_600e9)).impact(&timing).unwrap();
        assert_eq!((value(&hour, "buffer"), hour.answer), (1_024.0, Some(Suits::Yes)));
        assert!(!hour.statement.contains("--wanted"), "{}", hour.statement);
        let never = any(Some(1e18)).impact(&timing).unwrap();
        assert_eq!(never.answer, Some(Suits::Unknown), "too short to say");
        let named = "no buffer is shown to hold yet; 128 frames is the smallest";
        assert!(never.statement.starts_with(named), "{}", never.statement);
        // Nothing was measured of what a person gives.
        for given in [&impact, &never] {
            assert!(!given.statement.contains("measured wake"), "{}", given.statement);
            assert!(given.statement.contains("this time error is not too late for"), "{given:?}");
        }
        let alone = any(None).impact(&Timing::given(1_500_000.0, None)).unwrap();
        assert!(alone.statement.contains("; --cycles says"), "{}", alone.statement);
        let words = impact.basis[0].words();
        assert!(words.starts_with("share of cycles later than 2.67 ms, as given"), "{words}");
        let measured = any(None).impact(&run_of(&[(1_000, 10_000)])).unwrap();
        assert!(measured.statement.contains("no measured wake was too late for"), "{measured:?}");
        // A wake was later than the largest buffer allows: no such buffer is there.
        let stalled = any(None).impact(&Timing::given(1e9, Some(1_000))).unwrap();
        assert_eq!(stalled.answer, Some(Suits::No));
        assert!(stalled.statement.starts_with("no buffer up to 8192 frames holds"), "{stalled:?}");
    }

    #[test]
    fn half_of_all_wakes_later_than_the_slack_is_a_no_and_not_a_short_recording() {
        // 5.33 ms may pass; every other wake is 10 ms late.
        let timing = run_of(&[(1_000, 500), (10_000_000, 500)]);
        let impact = audio(256, Some(3_600e9)).impact(&timing).unwrap();
        assert_eq!(impact.answer, Some(Suits::No), "{}", impact.statement);
        let seen = format!("500 of {} were later", grouped(1_000));
        assert!(impact.statement.contains(&seen), "{}", impact.statement);
        let bounds = impact.statement.contains(" ms to ") && impact.statement.contains(" apart");
        assert!(bounds, "{}", impact.statement);
        assert!(impact.margin.unwrap() < -1e4, "{:?}", impact.margin);
        assert_eq!(impact.basis[0].exceedances, Some(500));
        // The same where no buffer is long enough.
        let stalled = run_of(&[(1_000, 500), (300_000_000, 500)]);
        let any = Audio { frames: None, ..audio(1, Some(3_600e9)) };
        assert_eq!(any.impact(&stalled).unwrap().answer, Some(Suits::No));
    }

    #[test]
    fn what_is_open_says_how_long_to_measure() {
        let timing = run_of(&[(1_000, 10_000)]);
        let open = audio(64, Some(3_600e9)).impact(&timing).unwrap();
        assert_eq!(open.answer, Some(Suits::Unknown));
        // 3/p cycles of 1 ms, p = 1.33 ms/1 h, over the extremal index.
        let least_ns = 2.99 * 3_600e9 / 1.333_333e6 * 1e6;
        let duration_needed_ns = open.duration_needed_ns.unwrap();
        assert!((least_ns..10.0 * least_ns).contains(&duration_needed_ns), "{duration_needed_ns}");
        let shown = audio(64, Some(1e9)).impact(&timing).unwrap();
        assert_eq!((shown.answer, shown.duration_needed_ns), (Some(Suits::Yes), None));
    }

    #[test]
    fn of_two_runs_that_hold_the_one_that_needs_the_larger_buffer_is_the_worse() {
        let any = Audio { frames: None, ..audio(1, Some(10e9)) };
        let impact = |latenesses: &[(i64, u64)]| any.impact(&run_of(latenesses)).unwrap();
        // The larger buffer leaves more of what is allowed.
        let small = impact(&[(1_000, 500_000)]);
        let large = impact(&[(1_000, 450_000), (4_000_000, 50_000)]);
        assert_eq!((small.answer, large.answer), (Some(Suits::Yes), Some(Suits::Yes)));
        assert!(value(&large, "buffer") > value(&small, "buffer"), "{large:?}");
        assert!(large.margin > small.margin, "{large:?} {small:?}");
        assert!(large.is_worse_than(&small) && !small.is_worse_than(&large));
    }

    #[test]
    fn a_wake_without_load_that_was_too_late_for_the_buffer_under_load_decides() {
        let any = |wanted_ns| Audio { frames: None, ..audio(1, wanted_ns) };
        let latest = |ns: i64, cycles| run_of(&[(1_000, cycles), (ns, 1)]);
        let buffer = |impact: &Application| value(impact, "buffer");
        for wanted_ns in [None, Some(3_600e9)] {
            let impact = |timing: &Timing| any(wanted_ns).impact(timing).unwrap();
            let small = || impact(&latest(8_000_000, 10_000));
            let large = || impact(&latest(17_200_000, 3_000));
            assert_eq!((buffer(&small()), buffer(&large())), (512.0, 1_024.0));
            assert_eq!(buffer(&large().with_load(small())), 1_024.0);
            assert_eq!(buffer(&small().with_load(large())), 1_024.0);
        }
        // A run that is only shorter does not, nor one of a buffer that was given.
        let impact = |wanted_ns, timing: &Timing| any(Some(wanted_ns)).impact(timing).unwrap();
        let (long, short) = (latest(1_000_000, 500_000), latest(100_000, 400));
        let both = impact(1e9, &short).with_load(impact(1e9, &long));
        assert_eq!(both, impact(1e9, &long));
        let given = || audio(512, None).impact(&latest(17_200_000, 3_000)).unwrap();
        let both = given().with_load(impact(3_600e9, &long));
        assert_eq!(both, impact(3_600e9, &long));
    }

    #[test]
    fn what_a_short_run_under_load_leaves_open_a_long_one_without_does_not_close() {
        let any = Audio { frames: None, ..audio(1, Some(60e9)) };
        let idle = any.impact(&run_of(&[(1_000, 20_000_000), (17_200_000, 20_000)])).unwrap();
        let loaded = any.impact(&run_of(&[(1_000, 10_000), (8_000_000, 1)])).unwrap();
        assert_eq!((idle.answer, loaded.answer), (Some(Suits::Yes), Some(Suits::Unknown)));
        let words = idle.statement.clone();
        let both = idle.with_load(loaded.clone());
        let expected = format!("{}; without load: {words}", loaded.statement);
        assert_eq!(both, Application { statement: expected, ..loaded });
    }

    #[test]
    fn of_two_runs_the_one_with_more_dropouts_is_the_worse_whatever_its_worst_wake() {
        let (rare, often) = (run_like(9e9, &[(1e6, 1e-5)]), run_like(5e6, &[(1e6, 0.1)]));
        let impact = |timing: &Timing| audio(64, None).impact(timing).unwrap();
        assert!(impact(&often).is_worse_than(&impact(&rare)));
        assert!(!impact(&rare).is_worse_than(&impact(&often)));
    }

    #[test]
    fn no_more_trials_of_a_buffer_count_than_fit_into_the_time_measured() {
        let any = |wanted_ns| Audio { frames: None, ..audio(1, wanted_ns) };
        // None late: at least a third of the time apart, whatever the buffer.
        for (cycles, wanted_ns) in [(18_375, 60e9), (1_123, 57e9)] {
            let timing = run_of(&[(1_000, cycles)]);
            let third_ns = cycles as f64 * 1e6 / 2.99;
            for frames in [64, 4_096, 8_192] {
                let impact = audio(frames, None).impact(&timing).unwrap();
                let least_ns = value(&impact, "mean time between dropouts, at least");
                assert!(least_ns <= third_ns, "{frames}: {least_ns} of {third_ns}");
            }
            let impact = any(Some(wanted_ns)).impact(&timing).unwrap();
            assert_eq!(impact.answer, Some(Suits::Unknown), "{}", impact.statement);
            let named = "no buffer is shown to hold yet; 16 frames is the smallest";
            assert!(impact.statement.starts_with(named), "{}", impact.statement);
            assert!(impact.duration_needed_ns.is_some_and(|ns| ns >= 2.99 * wanted_ns));
        }
        // Nor does a claim of the run count more.
        let claimed = run_like(1e5, &[(1e6, 1e-4)]);
        let claimed = Timing { period_ns: Some(1e6), ..claimed };
        let impact = audio(8_192, None).impact(&claimed).unwrap();
        let least_ns = value(&impact, "mean time between dropouts, at least");
        assert!(least_ns <= 100_000.0 * 1e6 / 2.99, "{least_ns}");
    }

    #[test]
    fn a_bound_of_fewer_trials_says_why_it_is_not_that_of_all_cycles() {
        // 10 000 cycles of 1 ms have the time of 938 buffers of 10.7 ms.
        let timing = run_of(&[(1_000, 9_999), (2_000_000, 1)]);
        let basis = |frames| audio(frames, None).impact(&timing).unwrap().basis.remove(0);
        let long = basis(512);
        let of_all = timing.p_above(10e6).expect("a claim of all cycles").p;
        assert!(long.p.is_some_and(|p| p > of_all), "{long:?} {of_all}");
        let words = long.words().replace('\u{a0}', " ");
        let fewer = ", as these cycles count as 938: no more such wakes fit into the time measured";
        assert!(words.ends_with(fewer), "{words}");
        // A buffer of a period: each cycle is a trial.
        let one = basis(48);
        assert!(one.trials.is_none() && one.words().ends_with(" confidence"), "{one:?}");
        // Late ones by ten together.
        let mut recording = Recording::new(RecordingConfig {
            period: Period::from_ns(1_000_000),
            ..RecordingConfig::default()
        });
        for cycle in 0..10_000u64 {
            let late_ns = if cycle % 500 < 10 { 500_000 } else { 0 };
            let lateness = Span::from_ns(1_000 + (cycle as i64 * 31) % 97 + late_ns);
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        }
        let timing = Timing::of(&recording.finish(0), Some(1_000_000));
        let basis = audio(16, None).impact(&timing).unwrap().basis.remove(0);
        assert!(basis.words().ends_with(": late ones come together"), "{}", basis.words());
    }

    #[test]
    fn what_is_less_than_a_third_of_the_time_measured_says_why() {
        let least_and_words = |frames, timing: &Timing| {
            let impact = audio(frames, None).impact(timing).unwrap();
            (value(&impact, "mean time between dropouts, at least"), impact.statement)
        };
        // 10 s of 1 ms; late wakes come alone.
        let alone = run_of(&[(1_000, 9_900), (500_000, 100)]);
        let (least_ns, words) = least_and_words(64, &alone);
        assert!((least_ns / 3.34e9 - 1.0).abs() < 0.01, "{least_ns} {words}");
        assert!(!words.contains("less than a third"), "{words}");
        // A buffer of 0.33 ms: each wake is a trial of one, and there was time for three.
        let (least_ns, words) = least_and_words(16, &run_of(&[(1_000, 10_000)]));
        assert!(least_ns < 1.2e9, "{least_ns}");
        assert!(words.contains("since there is one measured wake to 3.0 buffers"), "{words}");
        // Late ones by ten together.
        let period = Period::from_ns(1_000_000);
        let mut recording =
            Recording::new(RecordingConfig { period, ..RecordingConfig::default() });
        for cycle in 0..10_000u64 {
            let late_ns =
                if cycle % 500 < 10 { 500_000 + (cycle as i64 * 7_919) % 1_000 } else { 0 };
            let lateness = Span::from_ns(1_000 + (cycle as i64 * 31) % 97 + late_ns);
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        }
        let timing = Timing::of(&recording.finish(0), Some(1_000_000));
        let (least_ns, words) = least_and_words(64, &timing);
        assert!(least_ns < 2e9, "{least_ns} {words}");
        let why = "less than a third of the time measured, since late wakes come in clusters";
        assert!(words.contains(why), "{words}");
        // Beyond 0.33 ms some were late.
        let words = audio(16, None).impact(&timing).unwrap().statement;
        assert!(words.contains(" apart on average"), "{words}");
        assert!(!words.contains("less than a third"), "{words}");
    }

    #[test]
    fn the_sentence_and_the_figure_of_a_time_between_dropouts_are_in_the_same_words() {
        // 5 of 200 000, so that both ends are known.
        let timing = run_of(&[(1_000, 199_995), (10_000_000, 5)]);
        let impact = audio(64, None).impact(&timing).unwrap();
        for end in ["at least", "at most"] {
            let ns = value(&impact, &format!("mean time between dropouts, {end}"));
            let words = Span::from_ns(ns.round() as i64).to_string();
            assert!(impact.statement.contains(&words), "{words}: {}", impact.statement);
        }
    }

    #[test]
    fn no_slack_is_no() {
        let tight = Audio { compute_ns: 2e6, ..audio(64, None) };
        let impact = tight.impact(&Timing::given(0.0, Some(1_000_000))).unwrap();
        assert_eq!(impact.answer, Some(Suits::No));
        let nothing = audio(64, Some(1e9)).impact(&Timing::given(1e3, None)).unwrap();
        assert_eq!(nothing.answer, Some(Suits::Unknown), "n was not given");
    }
}
