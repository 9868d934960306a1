//! Every way to end, at any time: the machine after it as before, and no process left.
//!
//! Compares settings of the kernel, network interfaces, mounts, cgroups of supervisors, and a
//! directory for temporary files and one for sockets that are each trial's own. Processes are found
//! by the name of that directory in their environment.

use std::fs;
use std::process::Stdio;

use punctual_os::process::EndSignal;

use super::{Attack, COMMANDS, Place};
use crate::{signal, until};

/// The ways in which a run ends.
#[derive(Clone, Copy, Debug)]
enum Way {
    Itself,
    Signal(EndSignal),
    /// Under these limits of a shell.
    Limit(&'static str),
    /// Nobody reads what it prints, or that cannot be written.
    Output(&'static str),
}

const WAYS: [Way; 14] = [
    Way::Itself,
    Way::Signal(EndSignal::Interrupt),
    Way::Signal(EndSignal::Terminate),
    Way::Signal(EndSignal::HangUp),
    Way::Signal(EndSignal::Kill),
    Way::Limit("ulimit -n 12;"),
    Way::Limit("ulimit -n 30;"),
    Way::Limit("ulimit -f 8;"),
    Way::Limit("ulimit -v 60000;"),
    Way::Limit("ulimit -t 1;"),
    Way::Limit("ulimit -r 0;"),
    Way::Limit("ulimit -l 64;"),
    Way::Output("/dev/full"),
    Way::Output("closed"),
];

#[test]
fn ends() {
    let mut attack = Attack::begin("ends");
    let mut trials: Vec<(usize, Way)> =
        (0..COMMANDS).flat_map(|which| WAYS.map(|way| (which, way))).collect();
    attack.random.shuffle(&mut trials);
    for number in 0.. {
        if !attack.goes_on() {
            break;
        }
        let (which, way) = trials[number % trials.len()];
        let place = Place::new(&format!("ends-{number}"));
        let limits = if let Way::Limit(limits) = way { limits } else { "" };
        let mut command = place.command(which, limits);
        let trial = format!("{way:?}: {command:?}");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if let Way::Output(path) = way {
            match fs::OpenOptions::new().write(true).open(path) {
                Ok(full) => drop(command.stdout(full)),
                Err(_) => drop(command.stdout(std::io::pipe().expect("a pipe").1)),
            }
        }
        let mut child = command.spawn().expect("a shell");
        drop(command);
        if let Way::Signal(how) = way {
            // At any time: before it catches signals, while it measures, while it ends.
            let ms = attack.random.below(700);
            std::thread::sleep(std::time::Duration::from_millis(ms));
            signal(&child, how);
        }
        until(&trial, || child.try_wait().expect("ours").is_some());
        let status = child.wait().expect("ours");
        let outcome = place.check(&trial, child.id(), status);
        attack.note(outcome);
    }
    attack.end();
}
