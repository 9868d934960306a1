//! What `tune check` gives, as a table: each setting with its verdict.

use super::{Part, Shown};
use crate::report::body::TuneBody;

/// The table.
pub(super) fn shown(body: &TuneBody) -> Shown {
    let heads = ["setting", "verdict", "found", "why", "from"];
    let open = body.verdicts.iter().filter(|of| of.verdict.is_open());
    let rows = open.map(|of| {
        let words = [of.knob.as_str(), of.verdict.word(), &of.found, &of.why, &of.origin];
        words.map(str::to_owned).to_vec()
    });
    let caption = format!("settings of CPU {} that could be better", body.cpus);
    let parts = vec![Part::table(&caption, &heads, rows.collect())];
    Shown { id: "tune", heading: "Settings", parts }
}
