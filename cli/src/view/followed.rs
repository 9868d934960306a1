//! How the grids followed another clock, in one line for every view.

use crate::format;
use crate::report::Follow;

/// The line.
pub(super) fn words(follow: &Follow) -> String {
    let parts = [
        Some(format!("the grid follows {}", format::plain(&follow.clock))),
        follow
            .drift_ppb
            .map(|ppb| format!("drift {} ppb against CLOCK_MONOTONIC", format::whole(ppb))),
        follow.phase_error_ns.rms.map(|rms| {
            format!(
                "phase error rms {}, largest {} of {} readings",
                format::ns(Some(rms)),
                format::ns(follow.phase_error_ns.max.map(|max| max as f64)),
                format::count(follow.readings),
            )
        }),
        Some(format!(
            "steps {}, stops {}",
            format::count(follow.steps),
            format::count(follow.stops)
        )),
        Some(format!("slewed by {} ppb at most", format::count(follow.limit_ppb.unsigned_abs()))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_in_its_line() {
        let follow = Follow { clock: "/dev/\u{1b}[2J\nptp".to_owned(), ..Follow::default() };
        let line = words(&follow);
        assert!(!line.contains(['\u{1b}', '\n']), "{line:?}");
    }
}
