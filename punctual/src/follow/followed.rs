//! A clock on the reference's timescale that keeps its follower alive.
//!
//! For loops and executives that outlive the scope in which the follower was started, behind the C
//! API above all. The clock is core's; only who owns the map differs.

use std::sync::Arc;

use punctual_core::follow::{Following, Shared};

use super::Follower;

/// A clock that holds a share in its follower; made by [`Follower::shared_clock`].
pub type FollowedClock<C> = Following<FollowerShare, C>;

/// A share in a follower, whose map a clock runs on.
#[derive(Clone, Debug)]
pub struct FollowerShare(pub(super) Arc<Follower>);

impl AsRef<Shared> for FollowerShare {
    #[inline]
    fn as_ref(&self) -> &Shared {
        &self.0.common.shared
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::clock::Clock;

    use super::*;
    use crate::clocks::Vdso;
    use crate::follow::{Follow, Reference};

    #[test]
    fn it_is_on_the_references_time_also_when_its_maker_let_go() {
        let follower = Arc::new(Follow::new(Reference::Tai).start().expect("it can be read"));
        let mut clock = follower.shared_clock(Vdso);
        drop(follower);
        let (before, monotonic) = (clock.now(), Vdso.now());
        assert!(before > monotonic, "seconds since 1970, not since the machine started");
        let until = before + punctual_core::time::Span::from_ms(1);
        while clock.wake() < until {
            clock.sleep_until(until);
        }
        assert!(clock.poll() >= until);
    }
}
