//! The attack: faults, signals, hostile neighbours, planted links and mutated inputs, as many as a
//! time allows, in an order that a seed decides.
//!
//! `cargo xtask attack` runs it for longer and prints a table. PUNCTUAL_ATTACK_SECONDS is the time
//! of each attack (2), PUNCTUAL_ATTACK_SEED the seed (1), PUNCTUAL_ATTACK_LOG a file that gets a
//! line for each attack. Only the number of trials depends on time; each asserts what must hold.

mod boot;
mod ends;
mod faults;
mod inputs;
mod journals;
mod links;
mod missing;
mod neighbours;
mod pairs;
mod random;
mod settings;
mod signals;
mod sticky;
mod stopped;
mod threads;

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use random::Random;

/// One attack while it runs.
pub(crate) struct Attack {
    name: &'static str,
    random: Random,
    until: Instant,
    /// How the trials ended, and how many did.
    outcomes: BTreeMap<String, u64>,
}

impl Attack {
    /// Begins; its time counts from now.
    pub(crate) fn begin(name: &'static str) -> Self {
        let number = |name: &str, or: u64| {
            std::env::var(name).map_or(or, |text| text.parse().expect("a whole number"))
        };
        let seconds = number("PUNCTUAL_ATTACK_SECONDS", 2);
        let random = Random::new(number("PUNCTUAL_ATTACK_SEED", 1), name);
        let until = Instant::now() + Duration::from_secs(seconds);
        Self { name, random, until, outcomes: BTreeMap::new() }
    }

    /// Whether there is time for another trial; there is for the first.
    pub(crate) fn goes_on(&self) -> bool {
        self.outcomes.is_empty() || Instant::now() < self.until
    }

    /// Whether nothing else runs meanwhile, as in `cargo xtask attack`: then a trial may also do
    /// what others would notice.
    pub(crate) fn is_alone(&self) -> bool {
        std::env::var_os("PUNCTUAL_ATTACK_LOG").is_some()
    }

    /// A trial came out like this.
    pub(crate) fn note(&mut self, outcome: impl Into<String>) {
        *self.outcomes.entry(outcome.into()).or_default() += 1;
    }

    /// All trials so far.
    pub(crate) fn trials(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Over, and everything held.
    pub(crate) fn end(self) {
        let outcomes: Vec<String> =
            self.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let line = format!("{}\t{}\t{}\n", self.name, self.trials(), outcomes.join(", "));
        print!("attack {line}");
        let Some(log) = std::env::var_os("PUNCTUAL_ATTACK_LOG") else { return };
        let file = std::fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a writable log");
    }
}
