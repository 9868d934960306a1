//! Signals in pairs, at any time and any distance: one request, or an end that leaves nothing.

use std::process::Stdio;
use std::time::Duration;

use punctual_os::process::EndSignal;

use super::{Attack, COMMANDS, Place};
use crate::{signal, until};

const HOW: [EndSignal; 4] =
    [EndSignal::HangUp, EndSignal::Interrupt, EndSignal::Terminate, EndSignal::Kill];

/// From one signal to the next, µs.
const APART_US: [u64; 6] = [0, 1, 50, 2_000, 300_000, 600_000];

#[test]
fn signals() {
    let mut attack = Attack::begin("signals");
    while attack.goes_on() {
        let place = Place::new(&format!("signals-{}", attack.trials()));
        let mut command = place.command(attack.random.index(COMMANDS), "");
        let pair = [*attack.random.one_of(&HOW[..3]), *attack.random.one_of(&HOW)];
        let apart_us = *attack.random.one_of(&APART_US);
        let after_ms = attack.random.below(700);
        let trial = format!("{pair:?}, {apart_us} µs apart, after {after_ms} ms: {command:?}");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a shell");
        std::thread::sleep(Duration::from_millis(after_ms));
        signal(&child, pair[0]);
        std::thread::sleep(Duration::from_micros(apart_us));
        // Until it is waited for its number is its own.
        signal(&child, pair[1]);
        until(&trial, || child.try_wait().expect("ours").is_some());
        let status = child.wait().expect("ours");
        let outcome = place.check(&trial, child.id(), status);
        attack.note(outcome);
    }
    attack.end();
}
