//! A claim from its text, part by part, each with its place in it.
//!
//! For `ask`. Keeps to the grammar there; an error is about one part.

use super::{Ask, ClaimEvent, DEFAULT, EXAMPLE, P_MIN};
use crate::quantile::Probability;
use crate::quantity::{QuantityError, duration, share};

/// An error and the byte where it is.
pub(super) struct Wrong {
    pub(super) at: usize,
    pub(super) why: String,
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

    /// What follows `token`, which must stand at the beginning.
    fn after(self, token: &str, why: &str) -> Result<Self, Wrong> {
        let part = self.trimmed();
        match part.text.strip_prefix(token) {
            Some(rest) => Ok(Self { text: rest, at: part.at + token.len() }),
            None => part.wrong(why),
        }
    }

    /// What stands before and after the first `token`.
    fn split(self, token: char) -> Option<(Self, Self)> {
        let (before, after) = self.text.split_once(token)?;
        let at = self.at + before.len() + token.len_utf8();
        Some((Self { text: before, at: self.at }, Self { text: after, at }))
    }
}

/// The claim that a text is.
pub(super) fn parts(text: &str) -> Result<Ask, Wrong> {
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
