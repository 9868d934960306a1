//! Documents of `tune experiment`: each setting with its effect on the tail.

use std::path::Path;

use punctual_analysis::compare::RateRatio;
use punctual_document::{Block, Section, Table, numbers, words};
use punctual_lab::periodic::RecordedWhere;
use punctual_report::trials::{MATTERS, MovedCause, TrialVerdict, TrialsBody, TriedSetting};

use super::blame;

use crate::format;
use crate::stored::STATE;

/// Each setting with its effect, and what the verdicts mean.
pub(super) fn shown(body: &TrialsBody) -> Section {
    let heads = [words("setting"), numbers("share"), numbers("ratio (interval)"), words("says")];
    let rows = body.settings.iter().map(row).collect();
    let mut parts = vec![Block::words(setup(body))];
    parts.push(
        Table::new(
            "Share of releases later than that, without and with each setting alone",
            heads,
            rows,
        )
        .into(),
    );
    for setting in body.settings.iter().filter(|setting| !setting.refused.is_empty()) {
        let refused = format!("{}: refused: {}", setting.knob, setting.refused.join("; "));
        parts.push(Block::words(refused));
    }
    if let Some(together) = &body.together {
        parts.push(Block::words(format!("those that help, all together: {}", ratio(together))));
    }
    parts.extend(verdicts(body).map(Block::words));
    parts.extend(causes(body).into_iter().map(Block::words));
    parts.push(Block::words(
        "how settings act on each other is not seen: each was tried alone".to_owned(),
    ));
    parts.push(Block::words(kept(body)));
    Section { id: "trials", heading: "Settings tried", blocks: parts }
}

/// The meaning of "no effect" and "undecided" here, and the time that a decision would take.
fn verdicts(body: &TrialsBody) -> impl Iterator<Item = String> {
    let with = |verdict| body.settings.iter().filter(move |setting| setting.verdict == verdict);
    let none = with(TrialVerdict::NoEffect).next().map(|_| {
        format!("no effect: a share that is {MATTERS} times as large or as small is ruled out")
    });
    let more = |setting: &TriedSetting| {
        let first = setting.first.as_ref()?;
        let n = first.n_a.min(first.n_b).max(1);
        first.more_cycles.map(|more| (n + more) as f64 / n as f64)
    };
    let undecided: Vec<Option<f64>> = with(TrialVerdict::Undecided).map(more).collect();
    let longest = undecided.iter().flatten().copied().fold(1.0, f64::max);
    let undecided = (!undecided.is_empty()).then(|| {
        let rest = "undecided: there may be an effect that this run was too short to show";
        match longest {
            longer if longer > 1.0 => format!(
                "{rest}; a share twice as large is seen, four times in five, with a --duration {} \
                 times as long",
                short(longer)
            ),
            _ => format!("{rest}; use a longer --duration, or a --tail nearer to the middle"),
        }
    });
    none.into_iter().chain(undecided)
}

/// The causes of late wakes, and those that each setting moved, a sentence each.
fn causes(body: &TrialsBody) -> Vec<String> {
    let Some(recording) = &body.blame else { return Vec::new() };
    let mut lines: Vec<String> =
        body.sentence.iter().map(|sentence| format!("without any setting: {sentence}")).collect();
    let moved = body.settings.iter().flat_map(|setting| {
        let sentences = setting.causes.iter().filter_map(MovedCause::sentence);
        sentences.map(move |sentence| format!("with {}: {sentence}", setting.knob))
    });
    lines.extend(moved);
    let open = |setting: &&TriedSetting| {
        let is_moved = setting.causes.iter().any(|cause| cause.sentence().is_some());
        recording.is_recorded && setting.first.is_some() && !is_moved
    };
    let open: Vec<&str> =
        body.settings.iter().filter(open).map(|setting| setting.knob.as_str()).collect();
    if !open.is_empty() {
        let more = match recording.place {
            RecordedWhere::Within => "",
            RecordedWhere::Behind => ", or --blame on",
        };
        lines.push(format!(
            "which cause is moved by {} is undecided: too few late wakes were recorded; use a \
             longer --duration{more}",
            open.join(", ")
        ));
    }
    let lacks = "its causes are those of a tenth of the time";
    lines.push(blame::recording(recording, lacks));
    lines
}

fn setup(body: &TrialsBody) -> String {
    let quantile = match body.quantile {
        Some(p) => format!("the p{} without any of them", percent(p)),
        None => "as given".to_owned(),
    };
    format!(
        "loop: {} on CPU {}, load {}; later than {} counts, {quantile}; {} % sure of all together",
        format::period(body.period_ns),
        body.cpu,
        body.load,
        format::ns(Some(body.threshold_ns as f64)),
        percent(body.confidence),
    )
}

/// A share as a number of percent, without zeros at its end.
fn percent(share: f64) -> String {
    let text = format!("{:.3}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn row(setting: &TriedSetting) -> Vec<String> {
    let shown = setting.again.as_ref().or(setting.first.as_ref());
    let share = |count: u64, n: u64| 100.0 * count as f64 / n.max(1) as f64;
    let [shares, ratio] = shown.map_or(["-", "-"].map(str::to_owned), |rate| {
        let [without, with] =
            [share(rate.exceedances_a, rate.n_a), share(rate.exceedances_b, rate.n_b)];
        [format!("{} → {} %", short(without), short(with)), ratio(rate)]
    });
    vec![setting.knob.clone(), shares, ratio, setting.verdict.word().to_owned()]
}

/// A ratio with its interval.
fn ratio(rate: &RateRatio) -> String {
    let upper = rate.upper.map_or_else(|| "∞".to_owned(), short);
    let ratio = rate.ratio.map_or_else(|| "-".to_owned(), short);
    format!("{ratio} ({}–{upper})", short(rate.lower))
}

/// Two figures: the table fits a terminal with the longest name of a setting.
fn short(value: f64) -> String {
    match value {
        figure if figure >= 9.95 => format::whole(figure),
        figure if figure >= 0.995 => format!("{figure:.1}"),
        figure => format!("{figure:.2}"),
    }
}

/// Where the journals are.
fn state(body: &TrialsBody) -> &str {
    if body.state.is_empty() { STATE } else { &body.state }
}

fn kept(body: &TrialsBody) -> String {
    match body.kept.as_slice() {
        [] if !body.changed.is_empty() => format!(
            "void: changed by somebody else meanwhile, and left so: {}; nothing is kept: all other \
             settings are as before",
            body.changed.join(", ")
        ),
        [] => "nothing is kept: all settings are as before".to_owned(),
        kept => format!(
            "kept: {}; the others are as before; to undo: {}",
            kept.join(", "),
            format::tune("revert", None, Path::new(state(body)))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_figures() {
        let shown = [87.4, 9.96, 9.94, 0.996, 0.994, 0.034].map(short);
        assert_eq!(shown, ["87", "10", "9.9", "1.0", "0.99", "0.03"]);
        assert_eq!([0.99, 0.999, 0.95].map(percent), ["99", "99.9", "95"]);
    }
}
