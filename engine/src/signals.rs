//! Stops by signals: Ctrl-C, `kill`, a terminal that closes.
//!
//! For loops and executives whose program says so. The handler sets their flags itself, so that no
//! thread has to be woken behind a real-time loop first.

use punctual_core::stop::StopFlag;
use punctual_os::signal::{StopWords, also_stop, catch_stop};

use crate::error::{Error, Kind};

/// Has SIGINT, SIGTERM and SIGHUP request these stops, at once where one of them has come before
/// ([`catch_stop`]).
///
/// # Errors
/// More stops than signals can request at a time; what the kernel refused.
///
/// # Real-time: setup only
pub fn stop_by_signals<const N: usize>(flags: [&'static StopFlag; N]) -> Result<(), Error> {
    catch_stop().map_err(Kind::Signals)?;
    for flag in flags {
        let (set, at_ns) = flag.words();
        // A handler may hold it at any time: it is never given back.
        let words: &'static StopWords = Box::leak(Box::new(StopWords { set, at_ns }));
        also_stop(words).map_err(Kind::Signals)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use punctual_core::stop::StopRequest;
    use punctual_core::time::Instant;
    use punctual_os::signal::MOST_STOPS;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn the_places_of_ended_loops_are_given_to_others() {
        let flags: Vec<&'static StopFlag> =
            (0..=MOST_STOPS).map(|_| &*Box::leak(Box::default())).collect();
        for flag in &flags[..MOST_STOPS] {
            stop_by_signals([flag]).expect("there is room");
        }
        let last = flags[MOST_STOPS];
        let why = stop_by_signals([last]).expect_err("there is none");
        assert_eq!(why.kind(), ErrorKind::TooMany);
        assert!(why.to_string().contains("64 loops"), "{why}");
        for _ in 0..2 * MOST_STOPS {
            flags[3].request(Instant::from_ns(7));
            stop_by_signals([last]).expect("one has ended");
            last.request(Instant::from_ns(9));
        }
        assert_eq!(last.requested(), Some(Instant::from_ns(9)));
        flags.iter().for_each(|flag| flag.request(Instant::from_ns(1)));
    }
}
