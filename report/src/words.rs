//! Sentences and requests of a result that are known by data: a result has their words, and beside
//! them what each of them is about.

use std::fmt::{self, Display, Formatter};

use punctual_engine::session::Attempt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A warning about the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// Stalls may be the host's: shown as an advice too.
    Guest,
    /// The policy was refused: shown in the headline too.
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

    /// Returns true where short documents show it in other words: in the headline, or as an advice.
    pub fn is_shown_elsewhere(&self) -> bool {
        matches!(self, Self::Guest | Self::NotRealTime)
    }
}

impl From<String> for Warning {
    fn from(text: String) -> Self {
        Self::Words(text)
    }
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The warnings of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredWarnings", into = "StoredWarnings")]
pub struct Warnings(Vec<Warning>);

impl Warnings {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Warning> {
        self.0.iter()
    }

    /// Returns true where there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, warning: &Warning) -> bool {
        self.0.contains(warning)
    }

    pub(crate) fn push(&mut self, warning: Warning) {
        self.0.push(warning);
    }

    pub(crate) fn put_first(&mut self, warnings: impl Iterator<Item = Warning>) {
        self.0.splice(0..0, warnings);
    }
}

impl Extend<Warning> for Warnings {
    fn extend<T: IntoIterator<Item = Warning>>(&mut self, warnings: T) {
        self.0.extend(warnings);
    }
}

impl FromIterator<Warning> for Warnings {
    fn from_iter<T: IntoIterator<Item = Warning>>(warnings: T) -> Self {
        Self(warnings.into_iter().collect())
    }
}

/// Warnings as a result has them.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
struct StoredWarnings {
    /// Warnings about the numbers.
    warnings: Vec<String>,
    /// The subject of each warning, in the same order; not there where all are of a subject that
    /// this does not name, and in results of before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings_about: Vec<WarningAbout>,
}

/// The subject of a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum WarningAbout {
    /// The host of a virtual machine.
    Guest,
    /// The policy, which was refused.
    NotRealTime,
    /// None of these, or what a newer version says.
    #[default]
    #[serde(other)]
    Other,
}

impl From<Warnings> for StoredWarnings {
    fn from(warnings: Warnings) -> Self {
        let about = |warning: &Warning| match warning {
            Warning::Guest => WarningAbout::Guest,
            Warning::NotRealTime => WarningAbout::NotRealTime,
            Warning::Words(_) => WarningAbout::Other,
        };
        let mut warnings_about: Vec<WarningAbout> = warnings.iter().map(about).collect();
        if warnings_about.iter().all(|about| *about == WarningAbout::Other) {
            warnings_about.clear();
        }
        Self { warnings: warnings.iter().map(ToString::to_string).collect(), warnings_about }
    }
}

impl From<StoredWarnings> for Warnings {
    fn from(stored: StoredWarnings) -> Self {
        let abouts =
            stored.warnings_about.into_iter().chain(std::iter::repeat(WarningAbout::Other));
        let warning = |(text, about): (String, WarningAbout)| match about {
            WarningAbout::Guest => Warning::Guest,
            WarningAbout::NotRealTime => Warning::NotRealTime,
            WarningAbout::Other => Warning::Words(text),
        };
        stored.warnings.into_iter().zip(abouts).map(warning).collect()
    }
}

impl JsonSchema for Warnings {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        StoredWarnings::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        StoredWarnings::json_schema(generator)
    }
}

/// A request to the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredRequest", into = "StoredRequest")]
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

/// A request as a result has it.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct StoredRequest {
    /// The request, in words.
    attempt: String,
    /// True for a scheduling policy; false in results of before, which do not record it.
    #[serde(default)]
    is_policy: bool,
}

impl From<StoredRequest> for Request {
    fn from(StoredRequest { attempt, is_policy }: StoredRequest) -> Self {
        if is_policy { Self::Policy(attempt) } else { Self::Other(attempt) }
    }
}

impl From<Request> for StoredRequest {
    fn from(request: Request) -> Self {
        let is_policy = matches!(request, Request::Policy(_));
        match request {
            Request::Policy(attempt) | Request::Other(attempt) => Self { attempt, is_policy },
        }
    }
}

impl JsonSchema for Request {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        StoredRequest::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        StoredRequest::json_schema(generator)
    }
}

impl Display for Request {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// The place in a paper that an id names: "nist, figure 3a"; empty without the paper's name where
/// the id is of something in its text.
pub(crate) fn place_in_words(id: &str, with_paper: bool) -> String {
    let paper = id.split('.').next().filter(|_| with_paper).map(str::to_owned);
    let parts: Vec<String> = paper.into_iter().chain(place(id)).collect();
    parts.join(", ")
}

fn place(id: &str) -> Option<String> {
    const KINDS: [(&str, &str); 4] =
        [("fig", "figure"), ("table", "table"), ("eq", "equation"), ("section", "section")];
    let part = id.split('.').nth(1)?;
    KINDS.iter().find_map(|(short, word)| {
        let number = part.strip_prefix(short)?;
        number.starts_with(|c: char| c.is_ascii_digit()).then(|| format!("{word} {number}"))
    })
}

#[cfg(test)]
mod tests {
    use punctual_os::scheduler::SchedPolicy;

    use super::*;

    #[test]
    fn what_a_newer_version_is_about_is_read_as_something_else() {
        let newer: Vec<WarningAbout> = serde_json::from_str(r#"["guest", "power"]"#).expect("read");
        assert_eq!(newer, [WarningAbout::Guest, WarningAbout::Other]);
        let about = |text: &str| serde_json::from_str::<crate::judge::About>(text).expect("read");
        assert_eq!(about(r#"{"kind": "power"}"#), crate::judge::About::Other);
        assert_eq!(about(r#"{"kind": "limit", "at": 2}"#), crate::judge::About::Limit { at: 2 });
    }

    #[test]
    fn what_is_read_back_is_what_was_written_and_known_by_what_it_is_about() {
        let warnings: Warnings =
            [Warning::Guest, Warning::NotRealTime, Warning::from("a b".to_owned())]
                .into_iter()
                .collect();
        let json = serde_json::to_value(&warnings).expect("plain data");
        assert_eq!(json["warnings"][2], "a b");
        assert_eq!(json["warnings_about"], serde_json::json!(["guest", "not-real-time", "other"]));
        assert_eq!(serde_json::from_value::<Warnings>(json).expect("warnings"), warnings);
        // The very words of another one are words, as are those of results of before.
        let said = Warning::from(Warning::Guest.text().to_owned());
        assert!(!said.is_shown_elsewhere(), "{said:?}");
        let json = serde_json::to_value(Warnings(vec![said.clone()])).expect("plain data");
        assert_eq!(json, serde_json::json!({ "warnings": [Warning::Guest.text()] }));
        let read: Warnings = serde_json::from_value(json).expect("warnings");
        assert_eq!(read, Warnings(vec![said]));
        for attempt in [Attempt::Scheduler(SchedPolicy::Fifo(90)), Attempt::LockMemory] {
            let request = Request::from(attempt);
            let json = serde_json::to_value(&request).expect("plain data");
            assert_eq!(json["attempt"], attempt.to_string());
            assert_eq!(serde_json::from_value::<Request>(json).expect("a request"), request);
        }
        // Known by what it is, and not by how it is called.
        let named = serde_json::json!({ "attempt": "SCHED_FIFO 90", "is_policy": false });
        let named: Request = serde_json::from_value(named).expect("a request");
        assert!(matches!(named, Request::Other(_)), "{named:?}");
    }
}
