//! The orders that a load's process gets from its parent, on standard input.
//!
//! For processes of loads. Ends the whole group when the parent has gone.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use punctual_engine::spawn;
use punctual_os::process::{self, EndSignal};

use super::protocol;

/// The parent requested an orderly end.
pub(super) struct Stop;

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
pub(super) fn stop_requested(orders: &Receiver<Stop>, wait: Duration) -> bool {
    orders.recv_timeout(wait).is_ok()
}
