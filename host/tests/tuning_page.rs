//! docs/tuning.md has every rule as it is in the table. `PUNCTUAL_BLESS=1` writes it anew.

use punctual_host::rules::{Rule, Subject};
use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tuning.md");
const BEGIN: &str = "<!-- rules: written by a test -->\n";

fn row(rule: &Rule) -> String {
    let release = |release: Option<(u32, u32)>| {
        release.map_or_else(String::new, |(major, minor)| format!("{major}.{minor}"))
    };
    let kernels = match (release(rule.since), release(rule.until)) {
        (since, until) if since.is_empty() && until.is_empty() => "all".to_owned(),
        (since, until) if until.is_empty() => format!("{since} on"),
        (since, until) => format!("{since} to before {until}"),
    };
    let cost = if rule.cost.is_empty() { "nothing" } else { rule.cost };
    let cells = [
        format!("`{}`<br>{}", rule.knob, rule.id),
        rule.why.to_owned(),
        cost.to_owned(),
        kernels,
        format!("{}; {}", rule.verified, rule.source),
    ];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

#[test]
fn the_page_has_every_rule() {
    let mut rules = BEGIN.to_owned();
    for subject in Subject::ALL {
        rules += &format!("\n### {}\n\n", subject.heading);
        rules += "| Setting, rule | Why | Costs | Kernels | Verified by; source |\n";
        rules += "|---|---|---|---|---|\n";
        rules += &subject.rules.iter().map(row).collect::<String>();
    }
    let page = fs::read_to_string(PAGE).expect("docs/tuning.md");
    let (before, _) = page.split_once(BEGIN).expect("the mark in docs/tuning.md");
    let expected = format!("{before}{rules}");
    if std::env::var_os("PUNCTUAL_BLESS").is_some() {
        fs::write(PAGE, &expected).expect("writable");
    } else {
        assert_eq!(page, expected, "PUNCTUAL_BLESS=1 writes docs/tuning.md");
    }
}
