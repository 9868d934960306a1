//! What a thread is to get, and what the kernel's refusal of it means.

use anyhow::{Context as _, Error, Result, anyhow, bail};
use punctual_host::facts::MachineFacts;
use punctual_host::{CpuList, RefusedCall, Root, explain, parse_cpus};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::errno::Errno;
use punctual_os::sched_attr::{self, RESET_ON_FORK, SchedAttributes};

use crate::args::SchedArgs;

/// A policy and CPUs for threads.
pub(super) struct Request {
    attributes: Option<SchedAttributes>,
    reset_on_fork: bool,
    cpus: Option<CpuList>,
    facts: MachineFacts,
}

impl Request {
    /// # Errors
    /// Where nothing is to be set, or a CPU that is not there.
    pub(super) fn of(args: &SchedArgs) -> Result<Self> {
        let facts = MachineFacts::collect(&Root::live());
        let cpus = args.cpu.as_deref().map(|text| {
            parse_cpus(text, &facts).with_context(|| format!("--cpu {}", text.escape_debug()))
        });
        let cpus = cpus.transpose()?;
        let policy = &args.policy;
        let attributes = match (policy.fifo, policy.rr, policy.deadline, policy.other) {
            (Some(priority), ..) => Some(real_time(sched_attr::FIFO, priority)),
            (_, Some(priority), ..) => Some(real_time(sched_attr::ROUND_ROBIN, priority)),
            (_, _, Some(of), _) => Some(SchedAttributes {
                runtime_ns: of.runtime_ns,
                deadline_ns: of.deadline_ns,
                period_ns: of.period_ns,
                ..SchedAttributes::of(sched_attr::DEADLINE)
            }),
            (.., true) => Some(SchedAttributes {
                nice: args.nice.into(),
                ..SchedAttributes::of(sched_attr::OTHER)
            }),
            _ => None,
        };
        if attributes.is_none() && cpus.is_none() {
            bail!("nothing to set: give a policy (--fifo, --rr, --deadline, --other) or --cpu");
        }
        if attributes.is_none() && args.reset_on_fork {
            bail!("--reset-on-fork needs a policy: --fifo, --rr, --deadline or --other");
        }
        Ok(Self { attributes, reset_on_fork: args.reset_on_fork, cpus, facts })
    }

    /// Gives a thread, 0 for the calling one, what was requested: CPUs first, since a thread of
    /// SCHED_DEADLINE cannot be moved.
    ///
    /// # Errors
    /// What the kernel refused, why, and the way out.
    pub(super) fn give(&self, tid: i32) -> Result<()> {
        if let Some(cpus) = &self.cpus {
            let mut mask = CpuMask::EMPTY;
            cpus.iter().for_each(|cpu| mask.insert(cpu));
            let call = || RefusedCall::SetAffinity { cpus: cpus.clone() };
            affinity::set(tid, &mask)
                .map_err(|errno| self.refused(&format!("CPU {cpus}"), &call(), errno))?;
        }
        let Some(attributes) = self.attributes else { return Ok(()) };
        let flags = if self.reset_on_fork { RESET_ON_FORK } else { 0 };
        let call = match attributes.policy {
            sched_attr::DEADLINE => RefusedCall::SetDeadline,
            _ => RefusedCall::SetScheduler { priority: attributes.priority },
        };
        sched_attr::set(tid, &SchedAttributes { flags, ..attributes })
            .map_err(|errno| self.refused(&policy_words(&attributes), &call, errno))
    }

    fn refused(&self, what: &str, call: &RefusedCall, errno: Errno) -> Error {
        if errno == Errno(NO_SUCH_THREAD) {
            return anyhow!("{what} refused: there is no such thread any more");
        }
        // Only SCHED_OTHER and SCHED_DEADLINE have no priority: a nice value below the own one.
        if matches!(call, RefusedCall::SetScheduler { priority: 0 }) {
            return anyhow!("{what} refused: it needs CAP_SYS_NICE, or the rights of its user");
        }
        let of = explain(call, errno.0, &self.facts);
        anyhow!("{what} refused: {}. {}", of.why, of.remedy)
    }
}

/// ESRCH of errno(3).
const NO_SUCH_THREAD: i32 = 3;

fn real_time(policy: u32, priority: u8) -> SchedAttributes {
    SchedAttributes { priority: priority.into(), ..SchedAttributes::of(policy) }
}

/// A policy as people write it: `SCHED_FIFO 80`.
pub(super) fn policy_words(of: &SchedAttributes) -> String {
    use crate::format::period;
    match of.policy {
        sched_attr::OTHER if of.nice == 0 => "SCHED_OTHER".to_owned(),
        sched_attr::OTHER => format!("SCHED_OTHER, nice {}", of.nice),
        sched_attr::FIFO => format!("SCHED_FIFO {}", of.priority),
        sched_attr::ROUND_ROBIN => format!("SCHED_RR {}", of.priority),
        sched_attr::BATCH => format!("SCHED_BATCH, nice {}", of.nice),
        sched_attr::IDLE => "SCHED_IDLE".to_owned(),
        sched_attr::DEADLINE => format!(
            "SCHED_DEADLINE {}:{}:{}",
            period(of.runtime_ns),
            period(of.deadline_ns),
            period(of.period_ns)
        ),
        sched_attr::EXT => "SCHED_EXT".to_owned(),
        other => format!("policy {other}"),
    }
}
