//! What the kernel reads time from. Reads `/sys/devices/system/clocksource`.

use super::source::Source;
use crate::fact::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0";

/// ClockSources sources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockSources {
    /// The one in use.
    pub clocksource: Fact<String>,
    /// Those that the kernel would take, best first.
    pub available_clocksources: Fact<Vec<String>>,
}

impl ClockSources {
    pub(crate) fn collect(source: &Source<'_>) -> Self {
        Self {
            clocksource: source.word(&format!("{CLOCKSOURCE}/current_clocksource")),
            available_clocksources: available(source),
        }
    }
}

/// The clock sources that the kernel would take.
pub(super) fn available(source: &Source<'_>) -> Fact<Vec<String>> {
    source
        .word(&format!("{CLOCKSOURCE}/available_clocksource"))
        .map(|text| text.split_ascii_whitespace().map(str::to_owned).collect())
}
