//! Why a result is incomplete, and how that is said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What ended a run before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EndedBy {
    /// SIGINT, SIGTERM or SIGHUP.
    Interrupt,
    /// The watchdog, which stopped a loop.
    Watchdog,
    /// A load that could not be started.
    Load,
    /// The link to another machine or the source of stimuli, which was lost.
    Link,
    /// A task: it overran, or none was left.
    Task,
    /// A limit of a campaign, which was broken.
    Limit,
    /// Nothing: the campaign goes on.
    Continues,
    /// The recording: its file says that it ended early.
    Recording,
    /// The file of samples, which is cut off or damaged.
    File,
}

impl EndedBy {
    /// In words, with what there is; where the cause is not known, all that it may be.
    pub(crate) fn words(cause: Option<Self>) -> String {
        let cause = match cause {
            Some(Self::Interrupt) => "interrupted",
            Some(Self::Watchdog) => "the watchdog ended the run",
            Some(Self::Load) => "a load could not be started",
            Some(Self::Link) => "the link or the source of stimuli was lost",
            Some(Self::Task) => "its tasks ended it",
            Some(Self::Limit) => "a broken limit ended the campaign",
            Some(Self::Continues) => "the campaign is not over",
            Some(Self::Recording) => "the recording ended early",
            // The figures of a run that was measured are whole all the same.
            Some(Self::File) => return "incomplete: its file is cut off or damaged".to_owned(),
            None => "the run ended early or its file is cut off",
        };
        format!("incomplete: {cause}; these are the results so far")
    }

    /// The cause alone.
    pub(crate) fn brief(cause: Option<Self>) -> String {
        let words = Self::words(cause);
        words.split(';').next().unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_is_nothing_else_and_other_causes_are_none() {
        let interrupted = EndedBy::words(Some(EndedBy::Interrupt));
        assert_eq!(interrupted, "incomplete: interrupted; these are the results so far");
        let json = serde_json::to_string(&EndedBy::Interrupt).expect("a word");
        assert_eq!(json, "\"interrupt\"");
        for cause in [None, Some(EndedBy::File), Some(EndedBy::Watchdog), Some(EndedBy::Link)] {
            let words = EndedBy::words(cause);
            assert!(words.starts_with("incomplete: ") && !words.contains("interrupt"), "{words}");
        }
    }
}
