//! Documents of `tune check`: each setting with its verdict.
//!
//! A terminal has what is wrong, ranked, with what it costs and what changes it, and what is good
//! in one line; other documents have a table.

use punctual_document::{Block, Section, Table, Words, words};
use punctual_host::rules::{KnobChange, KnobVerdict, RuleVerdict};
use punctual_report::{Envelope, Headline, TuneBody};

use super::head;
use crate::format::{self, Paint};
use crate::settings::counted;

/// So many places are named of changes that are alike.
const PLACES_MAX: usize = 3;

/// The settings that could be better, as a table.
pub(super) fn shown(body: &TuneBody) -> Section {
    let caption = match &body.program {
        Some(program) => format!("what could be better of {} ({})", program.name, program.pid),
        None => format!("settings of CPU {} that could be better", body.cpus),
    };
    let columns = ["setting", "verdict", "found", "why", "what changes it", "from"].map(words);
    let rows = open(body).map(|verdict| {
        let KnobVerdict { knob, found, why, origin, .. } = verdict;
        let changes = changes(&verdict.changes);
        [knob, verdict.verdict.word(), found, why, &changes, origin].map(str::to_owned).to_vec()
    });
    let blocks = vec![Table::new(caption, columns, rows.collect()).into()];
    Section { id: "tune", heading: "Settings", blocks }
}

/// The settings that `check` found; `None` where it found none.
pub(super) fn found(headline: &Headline) -> Option<Section> {
    let caption = "settings of the measured CPU that could be better (punctual tune plan)";
    let row = |verdict: &KnobVerdict| {
        [&verdict.knob, &verdict.found, &verdict.why].map(Clone::clone).to_vec()
    };
    let rows = headline.settings.iter().map(row).collect();
    let blocks = vec![Table::new(caption, ["setting", "found", "why"].map(words), rows).into()];
    (!headline.settings.is_empty()).then_some(Section { id: "tune", heading: "Settings", blocks })
}

/// For a terminal; `verbose` has the settings that are good too, each with its rule.
pub(crate) fn document(envelope: &Envelope, body: &TuneBody, verbose: bool) -> Vec<Block> {
    let verdicts: Vec<&KnobVerdict> = body.verdicts.iter().collect();
    [about(envelope, body), listed(&verdicts, verbose), next(body)].concat()
}

/// The settings of which nothing is to be changed, each with its rule.
pub(crate) fn settled(verdicts: &[KnobVerdict]) -> Vec<Block> {
    let settled: Vec<_> = verdicts.iter().filter(|setting| !setting.verdict.is_open()).collect();
    listed(&settled, true)
}

/// Settings by their verdict; those that are good in a line, but with `verbose`.
fn listed(verdicts: &[&KnobVerdict], verbose: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    for verdict in RuleVerdict::ALL {
        let settings: Vec<_> =
            verdicts.iter().filter(|setting| setting.verdict == verdict).collect();
        if settings.is_empty() {
            continue;
        }
        blocks.push(Block::Break);
        let word = verdict.word();
        let painted = |text: &str| Block::from(Words::new(text).painted(word, paint(verdict)));
        if verdict.is_open() || verbose {
            blocks.push(painted(word));
            settings.iter().for_each(|setting| blocks.extend(finding(setting, verbose)));
        } else {
            let knobs: Vec<&str> = settings.iter().map(|setting| setting.knob.as_str()).collect();
            blocks.push(painted(&format!("{word}: {}", knobs.join(", "))));
        }
    }
    blocks
}

/// Which machine and CPUs were judged.
pub(super) fn about(envelope: &Envelope, body: &TuneBody) -> Vec<Block> {
    let machine = envelope.machine.as_ref().map(|facts| head::machine(&envelope.version, facts));
    let cpus = match &body.program {
        Some(program) => format!(
            "{} ({}), {}, watched for {}; CPU {}: {}",
            program.name,
            program.pid,
            match program.threads {
                1 => "1 thread".to_owned(),
                several => format!("{several} threads"),
            },
            format::ns(Some(program.watched_ns as f64)),
            body.cpus,
            body.why
        ),
        None => format!("CPU {}: {}", body.cpus, body.why),
    };
    machine.into_iter().chain([cpus]).map(Block::words).collect()
}

/// The settings that a change would better.
fn open(body: &TuneBody) -> impl Iterator<Item = &KnobVerdict> {
    body.verdicts.iter().filter(|setting| setting.verdict.is_open())
}

fn paint(verdict: RuleVerdict) -> Paint {
    match verdict {
        RuleVerdict::Conflict | RuleVerdict::NoEffect => Paint::Bad,
        RuleVerdict::Good => Paint::Good,
        _ => Paint::Open,
    }
}

fn finding(setting: &KnobVerdict, verbose: bool) -> Vec<Block> {
    let mut blocks = vec![
        Block::words_at(1, format!("{}: {}", setting.knob, setting.found)),
        Block::words_at(2, &setting.why),
    ];
    let mut add = |text: String| blocks.push(Block::words_at(2, text));
    if !setting.cost.is_empty() && setting.verdict.is_open() {
        add(format!("costs: {}", setting.cost));
    }
    let changes = changes(&setting.changes);
    if !changes.is_empty() {
        add(format!("change: {changes}"));
    }
    if verbose {
        add(format!("from: {}; verified by: {}", setting.origin, setting.verified));
        let kernel = match (&setting.since, &setting.until) {
            (Some(since), Some(until)) => format!("; Linux {since} to before {until}"),
            (Some(since), None) => format!("; since Linux {since}"),
            (None, Some(until)) => format!("; until Linux {until}"),
            (None, None) => String::new(),
        };
        add(format!("rule: {} ({}){kernel}", setting.id, setting.source));
    }
    blocks
}

/// The changes in a few words.
fn changes(changes: &[KnobChange]) -> String {
    let change = |change: &KnobChange| match change {
        KnobChange::Write { path, value } => format!("echo {value} > {path}"),
        KnobChange::Boot { name, value: Some(value) } => format!("boot with {name}={value}"),
        KnobChange::Boot { name, value: None } => format!("boot with {name}"),
        KnobChange::Remove { name } => format!("boot without {name}"),
        KnobChange::Partition { cpus } => format!("isolate CPU {cpus} by a cgroup v2 partition"),
        KnobChange::Run { command } => format::command(command),
    };
    // Places are alike; commands are not, and each is to be run.
    let is_command = |change: &KnobChange| matches!(change, KnobChange::Run { .. });
    let most = if changes.iter().any(is_command) { changes.len() } else { PLACES_MAX };
    let mut words: Vec<String> = changes.iter().take(most).map(change).collect();
    if changes.len() > most {
        words.push(format!("{} more like these", changes.len() - most));
    }
    words.join("; ")
}

/// The command that changes all settings at once, or shows the late wakes of a program; a sentence
/// where nothing could be better.
pub(super) fn next(body: &TuneBody) -> Vec<Block> {
    // A setting that only tells what makes a loop late makes none less late.
    let helps = |setting: &&KnobVerdict| body.program.is_some() || setting.gain > 0;
    let count = open(body).filter(helps).count();
    if count == 0 {
        return vec![Block::Break, Block::words("nothing is left to do")];
    }
    if let Some(program) = &body.program {
        // What a program was given by hand is gone with its process.
        let things = if count == 1 { "thing" } else { "things" };
        let text = format!("{count} {things} could be better; who woke late, and why:");
        let command = format::command(&format!("sudo punctual blame --pid {}", program.pid));
        return vec![Block::Break, Block::words(text), Block::words_at(1, command)];
    }
    let workload = body.workload.as_ref().map_or_else(String::new, |name| format!(" --for {name}"));
    let command = format::command(&format!("punctual tune plan --cpus {}{workload}", body.cpus));
    let settings = counted(count);
    let text = format!("{settings} could be better; all changes at once:");
    vec![Block::Break, Block::words(text), Block::words_at(1, command)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_stands_and_places_that_are_alike_do_not() {
        let command = |tid| KnobChange::Run { command: format!("sched set --fifo 8 {tid}") };
        let commands: Vec<KnobChange> = (1..=5).map(command).collect();
        assert_eq!(changes(&commands).matches("sched set").count(), 5);
        let write = |cpu| KnobChange::Write { path: format!("/cpu{cpu}"), value: "0".to_owned() };
        let writes: Vec<KnobChange> = (1..=5).map(write).collect();
        assert!(changes(&writes).ends_with("; 2 more like these"));
    }
}
