//! How a load's process is born and how it ends.
//!
//! It ends with its parent in three ways that do not depend on each other: the kernel kills it when
//! the thread that started it ends, its standard input reaches its end, and an alarm goes off some
//! seconds after its limit. Touches nothing but the process it runs in and its group.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use punctual::spawn;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::process::{self, EndSignal};
use punctual_os::scheduler::{self, SchedPolicy};

use super::protocol;
use super::setup::Setup;

/// Seconds between the limit, at which a load ends by itself, and the alarm.
const ALARM_AFTER_S: u64 = 5;

/// The parent requested an orderly end.
pub(super) struct Stop;

/// Ends with the parent from now on, and at the latest by the alarm.
///
/// # Errors
/// When the parent has already ended, or is another one.
pub(super) fn end_with_parent(setup: &Setup) -> Result<(), String> {
    process::end_with_parent().map_err(|why| format!("PR_SET_PDEATHSIG: {why}"))?;
    check_parent(setup)
}

/// For a process with programs to end: as [`end_with_parent`], but the end of the parent is seen on
/// standard input, so that there is time to end them.
///
/// # Errors
/// When the parent has already ended, or is another one.
pub(super) fn check_parent(setup: &Setup) -> Result<(), String> {
    let parent = process::parent();
    if parent != setup.parent {
        return Err(format!("its parent is process {parent}, not {}", setup.parent));
    }
    let seconds = setup.limit.as_secs().saturating_add(ALARM_AFTER_S);
    process::alarm_s(u32::try_from(seconds).unwrap_or(u32::MAX));
    Ok(())
}

/// Leaves what a real-time parent hands down: SCHED_OTHER at nice 0, on the CPUs given.
///
/// Gives a note where the nice value could not be taken back.
///
/// # Errors
/// When it would run under a real-time policy, or on none of the CPUs.
pub(super) fn be_ordinary(setup: &Setup) -> Result<Option<String>, String> {
    let mut note = None;
    if let Err(why) = scheduler::set(0, SchedPolicy::Other) {
        match scheduler::get(0) {
            Ok(SchedPolicy::Other) => {
                note = Some(format!("runs at the inherited nice value ({why})"));
            }
            other => return Err(format!("SCHED_OTHER was refused ({why}), it has {other:?}")),
        }
    }
    if !setup.cpus.is_empty() {
        let mut mask = CpuMask::EMPTY;
        setup.cpus.iter().for_each(|&cpu| mask.insert(cpu));
        affinity::set(0, &mask).map_err(|why| format!("CPUs {:?}: {why}", setup.cpus))?;
    }
    Ok(note)
}

/// Listens to the parent: passes its order on. When the parent has gone, `last` is called and then
/// the whole group ends.
///
/// # Errors
/// No thread could be had.
pub(super) fn listen(last: impl FnOnce() + Send + 'static) -> Result<Receiver<Stop>, String> {
    let (orders, received) = channel();
    let listen = move || {
        follow(&orders);
        last();
        end_group()
    };
    spawn::plain("load-orders", listen).map_err(|why| why.to_string())?;
    Ok(received)
}

/// Returns when standard input ends.
fn follow(orders: &Sender<Stop>) {
    for line in std::io::stdin().lock().lines() {
        match line {
            Ok(line) if line == protocol::STOP => {
                // A receiver that is gone means that the process is ending already.
                let _ = orders.send(Stop);
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
}

/// Ends this process and the programs that it started, now.
fn end_group() -> ! {
    let me = std::process::id().cast_signed();
    if process::group() == me {
        // On failure this process ends below all the same.
        let _ = process::end_group(me, EndSignal::Kill);
    }
    std::process::exit(1)
}

/// Waits for [`Stop`], at most `wait`.
pub(super) fn stopped(orders: &Receiver<Stop>, wait: Duration) -> bool {
    orders.recv_timeout(wait).is_ok()
}
