//! `--phase quiet`: where each loop is put, and the notes about it.
//!
//! For the measuring subcommands. Listens on each loop's CPU before the experiment; decides nothing
//! that `punctual::quiet` does not.

use anyhow::Result;
use punctual_lab::periodic::Stream;
use punctual_lab::quiet;

use crate::format;
use crate::parse::Phase;

/// Puts every loop where `phase` says; the notes about it, one for each loop that was put
/// somewhere else than at zero, or could not be.
pub(crate) fn settle(streams: &mut [Stream], phase: Phase) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    if phase != Phase::Quiet {
        return Ok(notes);
    }
    for stream in streams {
        let quiet = quiet::find(stream.thread.pinned_to(), stream.thread.policy(), stream.period)?;
        let cpu =
            stream.thread.pinned_to().map_or_else(String::new, |cpu| format!(" of CPU {cpu}"));
        let period = format::period(stream.period.as_ns());
        notes.push(match quiet {
            Some(quiet) => {
                stream.phase_ns = quiet.phase_ns;
                format!(
                    "quiet phase: the tick{cpu} comes every {}; releases every {period} are \
                     placed {} away from it",
                    format::period(quiet.tick_ns),
                    format::ns(Some(quiet.clear_ns as f64))
                )
            }
            None => format!(
                "no quiet phase: no tick{cpu} was found that releases every {period} can be kept \
                 away from, so they stay at phase zero"
            ),
        });
    }
    Ok(notes)
}
