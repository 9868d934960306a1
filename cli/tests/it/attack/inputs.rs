//! Mutated inputs of every format and every text: what must hold of each parser holds.
//!
//! The bodies are those of the fuzz targets, the seeds those of `fuzz/corpus`; in this process,
//! with overflow checks.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use punctual_testkit::parsers::{self, Body};
use punctual_testkit::random::Random;

use super::Attack;

/// The longest input, bytes.
const BYTES_MAX: usize = 1 << 16;

/// Values that take the place of numbers.
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "18446744073709551615",
    "9223372036854775808",
    "1e308",
    "NaN",
    "-inf",
    "0x",
    "",
    "99999999999999999999999999",
];

/// Another input, from one or two that there are.
fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut data = random.one_of(seeds).clone();
    for _ in 0..=random.index(4) {
        let at = random.index(data.len() + 1);
        let to = at + random.index(data.len() - at + 1);
        match random.index(8) {
            0 => data.truncate(at),
            1 => drop(data.drain(at..to)),
            2 => {
                let part = data[at..to].to_vec();
                data.splice(at..at, part);
            }
            3 if at < data.len() => data[at] ^= 1 << random.index(8),
            4 if at < data.len() => data[at] = random.bits() as u8,
            5 => {
                let second = random.one_of(seeds);
                let from = random.index(second.len() + 1);
                data.splice(at.., second[from..].iter().copied());
            }
            6 => {
                let number = random.one_of(&NUMBERS).bytes();
                let is_part = |byte: &u8| byte.is_ascii_digit() || b".-+e".contains(byte);
                let digits = data[at..].iter().take_while(|byte| is_part(byte)).count();
                data.splice(at..at + digits, number);
            }
            _ => {
                let bytes = random.bits().to_le_bytes();
                data.splice(at..at, bytes[..random.index(8) + 1].iter().copied());
            }
        }
    }
    data.truncate(BYTES_MAX);
    data
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
    let mut paths: Vec<_> =
        fs::read_dir(&folder).expect(name).map(|entry| entry.expect(name).path()).collect();
    paths.sort();
    let read = |path| fs::read(path).expect(name);
    paths.into_iter().map(read).filter(|seed: &Vec<u8>| seed.len() <= BYTES_MAX).collect()
}

#[test]
fn inputs() {
    let mut attack = Attack::begin("inputs");
    let parsers_seeded: Vec<(String, Body, Vec<Vec<u8>>)> =
        parsers::all().into_iter().map(|(name, body)| (name.clone(), body, seeds(&name))).collect();
    while attack.goes_on() {
        // Every parser in turn.
        for (name, body, seeds) in &parsers_seeded {
            let data = mutate(&mut attack.random, seeds);
            if catch_unwind(AssertUnwindSafe(|| body(&data))).is_err() {
                let kept = std::env::temp_dir().join(format!("punctual-attack-{name}"));
                fs::write(&kept, &data).expect("writable");
                panic!("{name}: what must hold does not, of {}", kept.display());
            }
            attack.note("read or refused");
        }
    }
    attack.end();
}
