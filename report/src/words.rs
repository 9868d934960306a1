//! Sentences and requests of a result that are told apart: in a result each is its words, here it
//! is known by what it is.

use std::fmt::{self, Display, Formatter};

use punctual_engine::session::Attempt;
use serde::{Deserialize, Serialize};

/// A warning about the numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Warning {
    /// That stalls may be the host's: also an advice.
    Guest,
    /// That the policy was refused: also in the headline.
    NotRealTime,
    /// Any other.
    Words(String),
}

impl Warning {
    /// Its words.
    pub fn text(&self) -> &str {
        match self {
            Self::Guest => "virtual machine: stalls caused by the host are included",
            Self::NotRealTime => {
                "measured as SCHED_OTHER: any process can delay the loop; a real-time loop on \
                 this machine would be late less often"
            }
            Self::Words(text) => text,
        }
    }

    /// Whether short documents show it in other words: in the headline, or as an advice.
    pub fn is_shown_elsewhere(&self) -> bool {
        matches!(self, Self::Guest | Self::NotRealTime)
    }
}

impl From<String> for Warning {
    fn from(text: String) -> Self {
        let known = [Self::Guest, Self::NotRealTime];
        let same = known.into_iter().find(|warning| warning.text() == text);
        same.unwrap_or(Self::Words(text))
    }
}

impl From<Warning> for String {
    fn from(warning: Warning) -> Self {
        match warning {
            Warning::Words(text) => text,
            known => known.text().to_owned(),
        }
    }
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// What was requested of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Request {
    /// A scheduling policy: "SCHED_FIFO 90".
    Policy(String),
    /// Anything else: "lock memory".
    Other(String),
}

impl Request {
    /// Its words.
    pub fn text(&self) -> &str {
        match self {
            Self::Policy(text) | Self::Other(text) => text,
        }
    }
}

impl From<Attempt> for Request {
    fn from(attempt: Attempt) -> Self {
        match attempt {
            Attempt::Scheduler(_) => Self::Policy(attempt.to_string()),
            _ => Self::Other(attempt.to_string()),
        }
    }
}

impl From<String> for Request {
    fn from(text: String) -> Self {
        if text.starts_with("SCHED_") { Self::Policy(text) } else { Self::Other(text) }
    }
}

impl From<Request> for String {
    fn from(request: Request) -> Self {
        match request {
            Request::Policy(text) | Request::Other(text) => text,
        }
    }
}

impl Display for Request {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use punctual_os::scheduler::SchedPolicy;

    use super::*;

    #[test]
    fn what_is_read_back_is_what_was_written() {
        let warnings = [Warning::Guest, Warning::NotRealTime, Warning::from("a b".to_owned())];
        for warning in warnings {
            let json = serde_json::to_string(&warning).expect("words");
            assert_eq!(json, format!("\"{warning}\""));
            assert_eq!(serde_json::from_str::<Warning>(&json).expect("a warning"), warning);
        }
        for attempt in [Attempt::Scheduler(SchedPolicy::Fifo(90)), Attempt::LockMemory] {
            let request = Request::from(attempt);
            let json = serde_json::to_string(&request).expect("words");
            assert_eq!(json, format!("\"{attempt}\""));
            assert_eq!(serde_json::from_str::<Request>(&json).expect("a request"), request);
        }
    }
}
