//! A claim as a person writes it: `p(lateness>50us)<1e-6 @99%`.
//!
//! Reads the expression and writes it back. Judges nothing (`judge` does) and counts nothing.
//!
//! ```text
//! claim  = "p(" event ")" "<" share [ "@" confidence ]
//! event  = "lateness>" time | "|interval|>" time | "missed"
//! ```
//!
//! `interval>T` is read as `|interval|>T`; spaces may stand between the parts. The share lies in
//! [10⁻¹⁵, 1), the confidence, 95 % where none is written, in [50 %, 99.9999999 %].

use crate::quantile::Probability;
use crate::quantity::{QuantityError, duration, share};

/// The event that a claim counts, with its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClaimEvent {
    /// Cycles later than this. A missed release counts with the lateness that the stall caused.
    Lateness {
        /// The lateness, ns; positive.
        above_ns: i64,
    },
    /// Intervals farther from zero than this.
    Interval {
        /// The distance, ns; positive.
        above_ns: i64,
    },
    /// Releases that never ran.
    Missed,
}

impl std::fmt::Display for ClaimEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Lateness { above_ns } => write!(f, "lateness>{}", exact(above_ns)),
            Self::Interval { above_ns } => write!(f, "|interval|>{}", exact(above_ns)),
            Self::Missed => f.write_str("missed"),
        }
    }
}

/// A claim: that an event has a probability below a bound, at a confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ask {
    event: ClaimEvent,
    p: f64,
    confidence: Probability,
}

impl Ask {
    /// A claim from its parts; `None` when `p` or the confidence is out of range, or the event's
    /// threshold is not positive.
    pub fn new(event: ClaimEvent, p: f64, confidence: Probability) -> Option<Self> {
        let above_ns = match event {
            ClaimEvent::Lateness { above_ns } | ClaimEvent::Interval { above_ns } => above_ns,
            ClaimEvent::Missed => 1,
        };
        let fits = (P_MIN..1.0).contains(&p) && confidence.share() >= 0.5 && above_ns > 0;
        fits.then_some(Self { event, p, confidence })
    }

    /// Reads a claim.
    ///
    /// # Errors
    /// One line that says at which character something is wrong and what to write.
    pub fn parse(text: &str) -> Result<Self, AskError> {
        parts(text).map_err(|Wrong { at, why }| AskError {
            text: text.chars().take(SHOWN).collect(),
            at: text.get(..at).unwrap_or(text).chars().count() + 1,
            why,
        })
    }

    /// The event that it counts.
    pub fn event(self) -> ClaimEvent {
        self.event
    }

    /// The bound that the probability is to lie under, in [10⁻¹⁵, 1).
    pub fn p(self) -> f64 {
        self.p
    }

    /// The confidence, in [0.5, 1).
    pub fn confidence(self) -> f64 {
        self.confidence.share()
    }

    /// The confidence as it is shown: `95 %`.
    pub fn shown_confidence(self) -> String {
        format!("{} %", self.confidence.to_string().trim_start_matches('p'))
    }

    /// The lateness threshold of the claim, ns, to be watched while recording.
    pub fn lateness_ns(self) -> Option<i64> {
        match self.event {
            ClaimEvent::Lateness { above_ns } => Some(above_ns),
            ClaimEvent::Interval { .. } | ClaimEvent::Missed => None,
        }
    }

    /// The interval's threshold of the claim: its distance from zero, ns.
    pub fn interval_ns(self) -> Option<i64> {
        match self.event {
            ClaimEvent::Interval { above_ns } => Some(above_ns),
            ClaimEvent::Lateness { .. } | ClaimEvent::Missed => None,
        }
    }
}

impl std::str::FromStr for Ask {
    type Err = AskError;

    fn from_str(text: &str) -> Result<Self, AskError> {
        Self::parse(text)
    }
}

impl std::fmt::Display for Ask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p({})<{:e}", self.event, self.p)?;
        if self.confidence != DEFAULT {
            write!(f, " @{}%", self.confidence.to_string().trim_start_matches('p'))?;
        }
        Ok(())
    }
}

/// Why an expression is not a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("claim {text:?}: at character {at}: {why}")]
pub struct AskError {
    text: String,
    /// The character that it is about, counted from 1.
    at: usize,
    why: String,
}

/// The smallest probability that a claim may state: 3·10¹⁵ cycles, 95 000 years at 1 ms.
pub const P_MIN: f64 = 1e-15;

const EXAMPLE: &str = "p(lateness>50us)<1e-6";

/// Characters of a refused text that are shown.
const SHOWN: usize = 60;

/// 95 %.
const DEFAULT: Probability = Probability::P95;

/// A time with every digit, in the largest unit that gives a whole number.
fn exact(ns: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    match units.iter().find(|(unit, _)| ns % unit == 0) {
        Some((unit, name)) => format!("{}{name}", ns / unit),
        None => format!("{ns}ns"),
    }
}

/// An error and the byte where it is.
///
/// For `ask`. Keeps to the grammar there; an error is about one part.
struct Wrong {
    at: usize,
    why: String,
}

/// A part of the text and where it begins.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Part<'a> {
    fn trimmed(self) -> Self {
        let text = self.text.trim_start();
        Self { text: text.trim_end(), at: self.at + self.text.len() - text.len() }
    }

    fn wrong<T>(self, why: impl Into<String>) -> Result<T, Wrong> {
        Err(Wrong { at: self.at, why: why.into() })
    }

    /// The text after `token`, which must stand at the beginning.
    fn after(self, token: &str, why: &str) -> Result<Self, Wrong> {
        let part = self.trimmed();
        match part.text.strip_prefix(token) {
            Some(rest) => Ok(Self { text: rest, at: part.at + token.len() }),
            None => part.wrong(why),
        }
    }

    /// The text before and after the first `token`; `None` without one.
    fn split(self, token: char) -> Option<(Self, Self)> {
        let (before, after) = self.text.split_once(token)?;
        let at = self.at + before.len() + token.len_utf8();
        Some((Self { text: before, at: self.at }, Self { text: after, at }))
    }
}

/// The claim that a text is.
fn parts(text: &str) -> Result<Ask, Wrong> {
    let whole = Part { text, at: 0 };
    let begin = format!("a claim must begin with p(…), e.g. {EXAMPLE}");
    let rest = whole.after("p", &begin)?.after("(", &begin)?;
    let Some((inner, rest)) = rest.split(')') else {
        return Part { text: "", at: text.len() }.wrong("the p( before it is not closed: add )");
    };
    let event = event(inner.trimmed())?;
    if rest.trimmed().text.starts_with(['>', '≥']) {
        return rest.trimmed().wrong(format!(
            "a claim must be an upper bound: write <, e.g. \
                                            {EXAMPLE}"
        ));
    }
    let rest = rest.after("<", &format!("expected < and a probability, e.g. {EXAMPLE}"))?;
    // <= is read as <.
    let rest = match rest.text.strip_prefix('=') {
        Some(text) => Part { text, at: rest.at + 1 },
        None => rest,
    };
    let (p, confidence) = match rest.split('@') {
        Some((p, confidence)) => (p, Some(confidence)),
        None => (rest, None),
    };
    let p = probability(p.trimmed())?;
    let confidence = confidence.map_or(Ok(DEFAULT), |part| sureness(part.trimmed()))?;
    Ask::new(event, p, confidence).map_or_else(|| rest.wrong("out of range"), Ok)
}

fn event(part: Part<'_>) -> Result<ClaimEvent, Wrong> {
    if part.text == "missed" {
        return Ok(ClaimEvent::Missed);
    }
    let Some((name, bound)) = part.split('>') else {
        return part.wrong(match part.text {
            "lateness" | "interval" | "|interval|" => {
                format!("{0} needs a threshold, e.g. {0}>50us", part.text)
            }
            text if text.contains('<') => "an event is a value above a threshold: write > instead \
                                          of <"
                .to_owned(),
            _ => "expected an event: lateness>50us, |interval|>50us or missed".to_owned(),
        });
    };
    let (name, bound) = (name.trimmed(), bound.trimmed());
    let above_ns = |bound: Part<'_>| match duration(bound.text) {
        Ok(span) => Ok(span.as_ns()),
        Err(QuantityError::NoUnit { text, .. }) => {
            bound.wrong(format!("{text} needs a unit, e.g. {text}us"))
        }
        Err(why) => bound.wrong(why.to_string()),
    };
    match name.text {
        "lateness" => Ok(ClaimEvent::Lateness { above_ns: above_ns(bound)? }),
        "interval" | "|interval|" => Ok(ClaimEvent::Interval { above_ns: above_ns(bound)? }),
        "missed" => bound.wrong("missed takes no threshold: write p(missed)"),
        _ => name.wrong("unknown event; expected lateness>50us, |interval|>50us or missed"),
    }
}

fn probability(part: Part<'_>) -> Result<f64, Wrong> {
    let p = match share(part.text) {
        Ok(share) => share.as_one(),
        Err(QuantityError::NotANumber { text, .. }) if text.is_empty() => {
            return part.wrong("expected a probability, e.g. 1e-6");
        }
        Err(QuantityError::NotANumber { .. }) => {
            return part.wrong("not a probability; write e.g. 1e-6, 0.001 or 0.1%");
        }
        Err(why) => return part.wrong(why.to_string()),
    };
    if p >= 1.0 {
        return part.wrong("the probability must be less than 1, e.g. 1e-6");
    }
    if p < P_MIN {
        return part.wrong(format!(
            "the probability must be at least {P_MIN:e}: no run is long \
                                  enough to show less"
        ));
    }
    Ok(p)
}

fn sureness(part: Part<'_>) -> Result<Probability, Wrong> {
    let confidence = match share(part.text) {
        Ok(share) => Probability::from_share(share.as_one()),
        Err(_) => return part.wrong("expected a confidence after @, e.g. @99% or @0.99"),
    };
    match confidence.filter(|confidence| confidence.share() >= 0.5) {
        Some(confidence) => Ok(confidence),
        None => part.wrong("the confidence must be from 50% to 99.9999999%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn claims_read_as_they_are_meant() {
        let ask = Ask::parse("p(lateness>50us)<1e-6").unwrap();
        assert_eq!((ask.event(), ask.p()), (ClaimEvent::Lateness { above_ns: 50_000 }, 1e-6));
        assert_eq!((ask.confidence(), ask.lateness_ns()), (0.95, Some(50_000)));
        let same = [" p ( lateness > 50 µs ) < 0.000001 ", "p(lateness>50000ns)<=1ppm @95%"];
        assert!(same.iter().all(|text| Ask::parse(text).as_ref() == Ok(&ask)), "{ask}");
        let sure = Ask::parse("p(interval>1.5ms) < 0.1% @ 99.9%").unwrap();
        assert_eq!(sure.event(), ClaimEvent::Interval { above_ns: 1_500_000 });
        assert_eq!((sure.p(), sure.confidence(), sure.lateness_ns()), (1e-3, 0.999, None));
        assert_eq!(sure.to_string(), "p(|interval|>1500us)<1e-3 @99.9%");
        assert_eq!(sure.shown_confidence(), "99.9 %");
        assert_eq!(Ask::parse("p(missed)<1e-6").unwrap().to_string(), "p(missed)<1e-6");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, at, part) in [
            ("", 1, "must begin with p("),
            ("lateness<5us", 1, "must begin with p("),
            ("p lateness", 3, "must begin with p("),
            ("p(lateness>50us<1e-6", 21, "is not closed: add )"),
            ("p(lateness)<1e-6", 3, "lateness needs a threshold, e.g. lateness>50us"),
            ("p(lateness<50us)<1e-6", 3, "write > instead of <"),
            ("p(latency>50us)<1e-6", 3, "unknown event"),
            ("p( )<1e-6", 4, "expected an event"),
            ("p(lateness>50)<1e-6", 12, "50 needs a unit, e.g. 50us"),
            ("p(lateness> -5us)<1e-6", 13, "negative"),
            ("p(lateness>5Nm)<1e-6", 12, "a torque"),
            ("p(missed>5)<1e-6", 10, "missed takes no threshold"),
            ("p(missed)", 10, "expected < and a probability"),
            ("p(missed)>1e-6", 10, "must be an upper bound"),
            ("p(missed)<", 11, "expected a probability"),
            ("p(missed)<=x", 12, "not a probability"),
            ("p(missed)<1", 11, "less than 1"),
            ("p(missed)<1e-16", 11, "no run is long enough"),
            ("p(missed)<2", 11, "2"),
            ("p(missed)<1e-6@", 16, "expected a confidence"),
            ("p(missed)<1e-6 @99", 17, "expected a confidence"),
            ("p(missed)<1e-6 @20%", 17, "from 50%"),
            ("p(missed)<1e-6 @100%", 17, "from 50%"),
            ("p(µ>5us)<1", 3, "unknown event"),
        ] {
            let message = Ask::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
            assert!(message.contains(&format!("at character {at}:")), "{text}: {message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }

    fn events() -> impl Strategy<Value = ClaimEvent> {
        prop_oneof![
            (1..i64::MAX).prop_map(|above_ns| ClaimEvent::Lateness { above_ns }),
            (1i64..1_000).prop_map(|ms| ClaimEvent::Lateness { above_ns: ms * 1_000_000 }),
            (1..i64::MAX).prop_map(|above_ns| ClaimEvent::Interval { above_ns }),
            Just(ClaimEvent::Missed),
        ]
    }

    proptest! {
        #[test]
        fn claims_read_as_they_show(
            event in events(), p in P_MIN..1.0, exponent in 0i32..9, ppb in 500_000_000u64..WHOLE,
        ) {
            let p = (p * 10f64.powi(-exponent)).max(P_MIN);
            let confidence = Probability::from_ppb(ppb).unwrap();
            let ask = Ask::new(event, p, confidence).unwrap();
            prop_assert_eq!(Ask::parse(&ask.to_string()), Ok(ask));
        }

        #[test]
        fn no_text_panics(
                text in "\\PC{0,40}",
                tail in "p?\\(?[a-z|]{0,9}>?[0-9a-zµ.]{0,5}\\)?.{0,9}",
            ) {
            let _ = Ask::parse(&text);
            let _ = Ask::parse(&tail);
        }
    }

    const WHOLE: u64 = 1_000_000_000;
}
