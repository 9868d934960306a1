//! What `tune check` gives, as a table: each setting with its verdict.

use punctual_host::rules::KnobVerdict;

use super::{Part, Shown};
use crate::report::Headline;
use crate::report::body::TuneBody;

/// The table.
pub(super) fn shown(body: &TuneBody) -> Shown {
    let caption = format!("settings of CPU {} that could be better", body.cpus);
    let open = body.verdicts.iter().filter(|of| of.verdict.is_open());
    let heads = ["setting", "verdict", "found", "why", "from"];
    let rows = open.map(|of| {
        let words = [of.knob.as_str(), of.verdict.word(), &of.found, &of.why, &of.origin];
        words.map(str::to_owned).to_vec()
    });
    let parts = vec![Part::table(&caption, &heads, rows.collect())];
    Shown { id: "tune", heading: "Settings", parts }
}

/// Those that `check` found.
pub(super) fn found(headline: &Headline) -> Option<Shown> {
    let caption = "settings of the measured CPU that could be better (punctual tune plan)";
    let row = |of: &KnobVerdict| [&of.knob, &of.found, &of.why].map(Clone::clone).to_vec();
    let rows = headline.settings.iter().map(row).collect();
    let parts = vec![Part::table(caption, &["setting", "found", "why"], rows)];
    (!headline.settings.is_empty()).then_some(Shown { id: "tune", heading: "Settings", parts })
}
