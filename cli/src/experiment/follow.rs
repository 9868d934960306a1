//! `--follow`: the clock whose time the grids lie on, opened, and followed.
//!
//! For `measure periodic`. A clock that cannot be had is refused before anything else is done; the
//! steering is `punctual::follow`.

use std::io;

use anyhow::{Error, Result, anyhow, bail};
use punctual::ErrorKind;
use punctual::follow::{PtpClock, Reference};
use punctual_os::clock::{ClockId, now_ns};

use crate::format;
use crate::parse::{FollowName, Phase};

/// A clock to follow, opened.
#[derive(Debug)]
pub(crate) struct FollowedClock {
    /// Its name, as in the option.
    pub(crate) name: String,
    /// The way it is read; null for the system's clocks.
    pub(crate) read: Option<String>,
    reference: Reference,
}

impl FollowedClock {
    /// Opens the clock that the option names.
    ///
    /// # Errors
    /// In one line, why it cannot be followed, or not with this phase.
    pub(crate) fn open(requested: &FollowName, phase: Phase) -> Result<Self> {
        let name = format::plain(&requested.to_string());
        if phase == Phase::Quiet {
            bail!(
                "--phase quiet: the kernel's tick runs on CLOCK_MONOTONIC, and a grid that \
                 follows {name} drifts through it"
            );
        }
        let (reference, read) = match requested {
            FollowName::Tai => (Reference::Tai, None),
            FollowName::Realtime => (Reference::Realtime, None),
            FollowName::Device(path) => {
                let clock = PtpClock::open(path)
                    .map_err(|why| anyhow!("--follow {name}: {}", refusal(&why)))?;
                let how = format!("{:?}", clock.how()).to_lowercase();
                (Reference::Ptp(clock), Some(how))
            }
        };
        Ok(Self { name, read, reference })
    }

    /// The warning about this clock before anything was measured.
    pub(crate) fn warning(&self) -> Option<String> {
        let ahead = || now_ns(ClockId::Tai).abs_diff(now_ns(ClockId::Realtime));
        // One second and more of difference is a number of leap seconds.
        let unset = matches!(self.reference, Reference::Tai) && ahead() < 500_000_000;
        unset.then(|| {
            "the kernel's TAI offset is not set: CLOCK_TAI equals the time of day, and steps with \
             it"
            .to_owned()
        })
    }

    /// The clock, for the loops that follow it.
    pub(super) fn into_reference(self) -> Reference {
        self.reference
    }
}

/// The error about a clock that could not be followed.
pub(super) fn refused(name: &str, why: &punctual::Error) -> Error {
    match why.kind() {
        ErrorKind::Unreadable => anyhow!("--follow {name}: it cannot be read"),
        _ => anyhow!("--follow {name}: {why}"),
    }
}

/// The reason why a device could not be opened.
fn refusal(why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::NotFound => "no such device".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied: run as root, or as a member of the group that owns it".to_owned()
        }
        _ => why.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_that_is_missing_is_told_from_a_device_that_is() {
        let reason = |kind: io::ErrorKind| refusal(&kind.into());
        assert!(reason(io::ErrorKind::PermissionDenied).contains("permission denied"));
        assert!(reason(io::ErrorKind::NotFound).contains("no such device"));
        let opened = FollowedClock::open(&FollowName::Device("/dev/zero".into()), Phase::At(0));
        assert_eq!(
            opened.expect_err("no clock").to_string(),
            "--follow /dev/zero: it is no PTP clock"
        );
    }
}
