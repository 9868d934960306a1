//! `cargo xtask attack [--seconds N] [--seed N] [NAME…]`: the attack on the command, and its table.
//!
//! Runs `cli/tests/it/attack`, one attack after the other, each for its share of the seconds (120),
//! in the order that the seed (1) decides; prints attack, trials and outcomes. Attacks that visit
//! every call that changes a file do so once, whatever the time.

use std::path::Path;

use crate::test::Skip;
use crate::{process, test, workspace};

/// Every attack, in the order of the table.
const ATTACKS: [Attack; 16] = [
    Attack { name: "kill", module: "faults", summary: "kill -9 at every call that changes a file" },
    Attack { name: "enospc", module: "faults", summary: "a full disk at every such call" },
    Attack { name: "edquot", module: "faults", summary: "a used-up quota at every such call" },
    Attack {
        name: "settings",
        module: "faults",
        summary: "kill -9 at such a call of 'tune' on files",
    },
    Attack {
        name: "signals",
        module: "signals",
        summary: "signals in pairs, at any time and distance",
    },
    Attack { name: "ends", module: "ends", summary: "every way to end, and the machine as before" },
    Attack {
        name: "neighbours",
        module: "neighbours",
        summary: "hostile processes on a supervisor's socket",
    },
    Attack {
        name: "links",
        module: "links",
        summary: "links planted in the place of chosen names",
    },
    Attack { name: "inputs", module: "inputs", summary: "mutated inputs of every format and text" },
    Attack { name: "threads", module: "threads", summary: "threads that cannot be started" },
    Attack {
        name: "sticky",
        module: "sticky",
        summary: "links of others in directories such as /tmp",
    },
    Attack {
        name: "journals",
        module: "journals",
        summary: "forged and foreign journals of settings",
    },
    Attack {
        name: "boot",
        module: "boot",
        summary: "boot files and the loader's program, cut off",
    },
    Attack {
        name: "missing",
        module: "missing",
        summary: "parts of /proc and /sys missing or unreadable",
    },
    Attack {
        name: "stopped",
        module: "stopped",
        summary: "loads that are stopped while a run has them",
    },
    Attack { name: "pairs", module: "pairs", summary: "two commands at once that change settings" },
];

/// A test of `cli`, below `attack`.
struct Attack {
    /// The test function.
    name: &'static str,
    /// The module that has it.
    module: &'static str,
    /// One line of the table at the end.
    summary: &'static str,
}

impl Attack {
    /// The test, as the runner names it.
    fn test(&self) -> String {
        format!("attack::{}::{}", self.module, self.name)
    }
}

/// The attacks to run, with their length and seed.
#[derive(Debug, PartialEq, Eq)]
struct Order {
    seconds: u64,
    seed: u64,
    /// Rows of [`ATTACKS`].
    attacks: Vec<usize>,
}

/// An attack that left no row.
#[derive(Debug, PartialEq, Eq)]
struct Untried {
    name: &'static str,
    /// The requirement for want of which it was skipped; `None` where it was not.
    lacks: Option<String>,
}

/// Runs the attacks and prints their table; fails also where one of them tried nothing.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    refuse(&attacked(&parse(args)?)?)
}

/// Runs all of them for a step of `cargo xtask test`, whose tests count and name those that are
/// skipped here.
pub(crate) fn check(_: &Path) -> Result<(), String> {
    let mut untried = attacked(&parse(&[])?)?;
    untried.retain(|attack| attack.lacks.is_none());
    refuse(&untried)
}

fn refuse(untried: &[Untried]) -> Result<(), String> {
    let shown = untried.iter().map(|Untried { name, lacks }| match lacks {
        Some(lacks) => format!("{name} lacks {lacks}"),
        None => (*name).to_owned(),
    });
    match untried {
        [] => Ok(()),
        _ => Err(format!("tried nothing: {}", shown.collect::<Vec<_>>().join(", "))),
    }
}

/// Runs the attacks and prints their table.
fn attacked(order: &Order) -> Result<Vec<Untried>, String> {
    let root = workspace::root();
    let [log, skips] = ["log", "skips"].map(|ending| {
        let name = format!("punctual-attack-{}.{ending}", std::process::id());
        std::env::temp_dir().join(name)
    });
    let share = order.seconds.div_ceil(order.attacks.len().max(1) as u64);
    let ended = attack(&root, order, share, [&log, &skips]);
    let [rows, skipped] = [&log, &skips].map(|file| {
        let lines = std::fs::read_to_string(file).unwrap_or_default();
        // Left over in the temporary folder at worst.
        let _none = std::fs::remove_file(file);
        lines
    });
    println!("\nseed {}, {share} s for each attack\n", order.seed);
    let (table, untried) = table(order, &rows, &test::read_log(&skipped));
    print!("{table}");
    ended.map(|()| untried)
}

fn attack(root: &Path, order: &Order, share: u64, [log, skips]: [&Path; 2]) -> Result<(), String> {
    let mut cargo =
        process::cargo(root, &["test", "--locked", "-p", "punctual-cli", "--test", "it", "--"]);
    // One after the other: each has the machine for itself.
    cargo.args(["--exact", "--test-threads=1"]);
    for &at in &order.attacks {
        cargo.arg(ATTACKS[at].test());
    }
    cargo.env("PUNCTUAL_ATTACK_SECONDS", share.to_string());
    cargo.env("PUNCTUAL_ATTACK_SEED", order.seed.to_string());
    cargo.env("PUNCTUAL_ATTACK_LOG", log).env("PUNCTUAL_SKIP_LOG", skips);
    process::run(&mut cargo)
}

fn parse(args: &[String]) -> Result<Order, String> {
    let mut order = Order { seconds: 120, seed: 1, attacks: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || {
            let value = args.next().map(String::as_str).unwrap_or_default();
            value.parse().map_err(|_| format!("{arg} takes a whole number (got {value:?})"))
        };
        match arg.as_str() {
            "--seconds" => order.seconds = number()?,
            "--seed" => order.seed = number()?,
            name => {
                let at = ATTACKS.iter().position(|attack| attack.name == name);
                let names: Vec<&str> = ATTACKS.iter().map(|attack| attack.name).collect();
                order.attacks.push(at.ok_or_else(|| {
                    format!("no attack {name:?}; there are {}", names.join(", "))
                })?);
            }
        }
    }
    if order.attacks.is_empty() {
        order.attacks = (0..ATTACKS.len()).collect();
    }
    Ok(order)
}

/// A row for each attack, from the lines `NAME<tab>TRIALS<tab>OUTCOMES` of the log; the attacks
/// that have no line, with what each of them lacked.
fn table(order: &Order, lines: &str, skips: &[Skip]) -> (String, Vec<Untried>) {
    let mut table = format!("{:12} {:45} {:>8}  outcome\n", "attack", "what it does", "trials");
    let mut untried = Vec::new();
    for attack in order.attacks.iter().map(|&at| &ATTACKS[at]) {
        let Attack { name, summary, .. } = *attack;
        let row = lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
        let (trials, outcomes) = match row.and_then(|row| row.split_once('\t')) {
            Some((trials, outcomes)) => (trials, outcomes.to_owned()),
            None => {
                let begin = format!("{} (", attack.test());
                // One line a place in the code that wanted something.
                let skips = skips.iter().filter(|skip| skip.test.starts_with(&begin));
                let lacks: Vec<&str> = skips.map(|skip| skip.lacks.as_str()).collect();
                let lacks = (!lacks.is_empty()).then(|| lacks.join(", "));
                let outcome = match &lacks {
                    Some(lacks) => format!("skipped, it lacks {lacks}"),
                    None => "failed: see above".to_owned(),
                };
                untried.push(Untried { name, lacks });
                ("-", outcome)
            }
        };
        table += &format!("{name:12} {summary:45} {trials:>8}  {outcomes}\n");
    }
    (table, untried)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(args: &[&str]) -> Result<Order, String> {
        parse(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_read() {
        let order_of_all = Order { seconds: 120, seed: 1, attacks: (0..ATTACKS.len()).collect() };
        assert_eq!(order(&[]), Ok(order_of_all));
        let some = Order { seconds: 3600, seed: 7, attacks: vec![7] };
        assert_eq!(order(&["--seconds", "3600", "links", "--seed", "7"]), Ok(some));
        for wrong in [&["--seconds"][..], &["--seed", "x"], &["nothing"]] {
            assert!(order(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_row_says_what_came_of_an_attack() {
        let order = order(&["kill", "links"]).expect("known");
        let log = "kill\t70\t30 old file there\n";
        let (page, untried) = table(&order, log, &[]);
        assert!(page.contains("70  30 old file there\n"), "{page}");
        assert!(page.contains("-  failed: see above\n"), "{page}");
        assert_eq!(untried, [Untried { name: "links", lacks: None }]);
        assert_eq!(refuse(&untried), Err("tried nothing: links".to_owned()));
        let skips = test::read_log("attack::links::links (cli/tests/it/attack/links.rs)\troot\n");
        let (page, untried) = table(&order, log, &skips);
        assert!(page.contains("-  skipped, it lacks root\n"), "{page}");
        assert_eq!(refuse(&untried), Err("tried nothing: links lacks root".to_owned()));
        assert_eq!(refuse(&[]), Ok(()));
    }

    #[test]
    fn every_attack_has_its_row() {
        let folder = workspace::root().join("cli/tests/it/attack");
        let mut found = Vec::new();
        for Attack { module, .. } in ATTACKS {
            let file = folder.join(format!("{module}.rs"));
            let text = std::fs::read_to_string(&file).expect("readable");
            let tests = text.split("#[test]\nfn ").skip(1);
            found.extend(
                tests.filter_map(|rest| Some((rest.split_once('(')?.0.to_owned(), module))),
            );
        }
        found.sort();
        found.dedup();
        let mut rows: Vec<(String, &str)> =
            ATTACKS.iter().map(|attack| (attack.name.to_owned(), attack.module)).collect();
        rows.sort();
        assert_eq!(found, rows);
        let files = std::fs::read_dir(&folder).expect("readable").flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        for name in names {
            let module = name.trim_end_matches(".rs");
            assert!(ATTACKS.iter().any(|attack| attack.module == module), "{name}");
        }
    }
}
