//! What grants a program the rights that real-time work needs, as it is typed.
//!
//! For the refusals of the library and of `host::explain`, which say when it is the way out. Words
//! alone: calls nothing, decides nothing.

use core::fmt;

/// A right that the kernel refuses an ordinary program. Its text is what grants it, as it follows
/// "Use sudo, or".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// What a capability grants, and this limit where it is raised.
    Limited(RaisedLimit),
    /// Idle states held off: to write /dev/cpu_dma_latency.
    HoldIdleStates,
}

/// A limit raised. Its text is how, for a user and for a unit of systemd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaisedLimit {
    /// RLIMIT_RTPRIO, for a real-time policy of this priority.
    RealTime(u32),
    /// RLIMIT_MEMLOCK, for all memory.
    LockMemory,
}

impl fmt::Display for RaisedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut raise = |item: &str, value: &dyn fmt::Display, unit: fmt::Arguments<'_>| {
            write!(
                f,
                "raise the limit: echo \"$USER - {item} {value}\" | sudo tee \
                 /etc/security/limits.d/90-{item}.conf, then log in again ({unit} in a unit of \
                 systemd)"
            )
        };
        match self {
            Self::RealTime(priority) => {
                raise("rtprio", priority, format_args!("LimitRTPRIO={priority}"))
            }
            Self::LockMemory => {
                raise("memlock", &"unlimited", format_args!("LimitMEMLOCK=infinity"))
            }
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(raised) => write!(
                f,
                "give the program the capability: sudo setcap cap_sys_nice,cap_ipc_lock+ep FILE, \
                 or {raised}"
            ),
            Self::HoldIdleStates => f.write_str(
                "give a group the right: echo 'KERNEL==\"cpu_dma_latency\", GROUP=\"realtime\", \
                 MODE=\"0660\"' | sudo tee /etc/udev/rules.d/90-cpu-dma-latency.rules, then \
                 restart",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn a_limit_is_named_for_a_user_and_for_a_unit() {
        let granted = Right::Limited(RaisedLimit::RealTime(90)).to_string();
        assert!(granted.contains("setcap cap_sys_nice,cap_ipc_lock+ep FILE"), "{granted}");
        assert!(granted.contains("\"$USER - rtprio 90\" | sudo tee"), "{granted}");
        assert!(granted.contains("limits.d/90-rtprio.conf"), "{granted}");
        assert!(granted.contains("LimitRTPRIO=90"), "{granted}");
        let granted = Right::Limited(RaisedLimit::LockMemory).to_string();
        assert!(granted.contains("\"$USER - memlock unlimited\""), "{granted}");
        assert!(granted.contains("LimitMEMLOCK=infinity"), "{granted}");
        assert!(Right::HoldIdleStates.to_string().contains("udev"));
    }
}
