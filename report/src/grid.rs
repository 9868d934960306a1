//! Results of one kind side by side on one grid: a row a figure, a cell a result.
//!
//! For kinds whose figures are no runs of cycles: answers to stimuli, saturation, how exactly waits
//! end, what an executive costs, papers. Plain data, and which figures a kind has. A difference is
//! told by intervals that do not meet; where one is missing, nothing is.

use std::collections::HashMap;

use punctual_analysis::claim::judge::Holds;
use punctual_analysis::compare::Verdict;
use punctual_analysis::interval::Interval;
use punctual_lab::accuracy::AccuracyOutcome;
use punctual_lab::response::{ResponseOutcome, ResponseRow, StageRow};
use punctual_lab::saturation::{SaturationOutcome, SaturationRow, SearchEnd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::measured::ExecutiveBody;
use crate::words::place_in_words;

/// Figures of several results, beside each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureGrid {
    /// The subcommand that measured all of them: "measure response".
    pub experiment: String,
    /// One for each figure, in the order of the first result that has it.
    pub rows: Vec<GridRow>,
    /// One for each claim of a paper; none of other kinds.
    pub claims: Vec<GridClaim>,
}

/// A figure of several results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GridRow {
    /// Owner of the figure: "idle, stage 1", "wince.fig11.ce30-loaded.app.max".
    pub name: String,
    /// Name of the figure: "start, median".
    pub figure: String,
    /// The unit of all cells.
    pub unit: String,
    /// The value that a paper prints or claims; empty where none does.
    pub published: String,
    /// The relation of the better of two values to the other; null where that is not said.
    pub better: Option<Relation>,
    /// The values by side; null where a result does not have the figure.
    pub cells: Vec<Option<GridCell>>,
    /// Each side after the first relative to the first.
    pub relations: Vec<Relation>,
}

/// A figure of one result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GridCell {
    /// Its value and the ends of its interval at 98.75 %; of a highest frequency the highest that
    /// passed and the lowest that failed. Both are null where it has none.
    #[serde(flatten)]
    pub value: Interval,
    /// Samples; null where they are not counted.
    pub n: Option<u64>,
}

/// The place of a value relative to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Relation {
    /// Its whole interval lies below the other's.
    Lower,
    /// Its whole interval lies above the other's.
    Higher,
    /// The intervals meet, or one of them is not known.
    Undecided,
}

impl Relation {
    /// The place of `other` relative to `first`; undecided where either is missing.
    fn of(first: Option<&GridCell>, other: Option<&GridCell>) -> Self {
        let (Some(first), Some(other)) = (first, other) else { return Self::Undecided };
        let is_below = |low: &Interval, high: &Interval| {
            low.high.zip(high.low).is_some_and(|(end, beginning)| end < beginning)
        };
        match () {
            () if is_below(&other.value, &first.value) => Self::Lower,
            () if is_below(&first.value, &other.value) => Self::Higher,
            () => Self::Undecided,
        }
    }
}

impl GridRow {
    /// The side after the first that has this number, counted from 0, relative to the first, in a
    /// word.
    pub fn word(&self, side: usize) -> &'static str {
        match (self.verdict(side), self.relation(side)) {
            (Verdict::Better, _) => "better",
            (Verdict::Worse, _) => "worse",
            (_, Relation::Lower) => "lower",
            (_, Relation::Higher) => "higher",
            (_, Relation::Undecided) => "undecided",
        }
    }

    fn relation(&self, side: usize) -> Relation {
        self.relations.get(side).copied().unwrap_or(Relation::Undecided)
    }

    /// The verdict on the side after the first that has this number, counted from 0; undecided also
    /// where it is not said which of two values is better.
    pub fn verdict(&self, side: usize) -> Verdict {
        match (self.relation(side), self.better) {
            (Relation::Undecided, _) | (_, None) => Verdict::Undecided,
            (relation, Some(better)) if relation == better => Verdict::Better,
            _ => Verdict::Worse,
        }
    }
}

/// The agreement of results on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// All are decided, and alike.
    Agree,
    /// Two that are decided are not alike.
    Differ,
    /// One is not decided, or does not judge it.
    Undecided,
}

impl Agreement {
    /// Its word: "agree".
    pub fn word(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::Undecided => "undecided",
        }
    }
}

/// A claim of a paper, as several results have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GridClaim {
    /// Paper and claim: "nist.claim.factor".
    pub id: String,
    /// The paper's claim, as a sentence without its full stop.
    pub claim: String,
    /// The verdict on it, by side; null where a result does not judge it.
    pub holds: Vec<Option<Holds>>,
    /// The ground of that verdict, in short, by side; empty where a result does not judge it.
    pub because: Vec<String>,
}

impl GridClaim {
    /// The agreement of all results on it.
    pub fn agreement(&self) -> Agreement {
        let decided = |holds: &Option<Holds>| match holds {
            Some(Holds::Yes | Holds::IfAlone) => Some(true),
            Some(Holds::No) => Some(false),
            Some(Holds::Undecided) | None => None,
        };
        let answers: Vec<Option<bool>> = self.holds.iter().map(decided).collect();
        match (answers.contains(&Some(true)), answers.contains(&Some(false))) {
            (true, true) => Agreement::Differ,
            _ if answers.contains(&None) => Agreement::Undecided,
            _ => Agreement::Agree,
        }
    }
}

impl FigureGrid {
    /// The grid of results of this experiment by what each puts there, the first of which is what
    /// others are held against.
    pub(crate) fn of(experiment: &str, sides: Vec<SideFigures>) -> Self {
        let (count, claims) = (sides.len(), claims(&sides));
        let mut places: HashMap<(String, String), usize> = HashMap::new();
        let mut rows: Vec<GridRow> = Vec::new();
        for (side, shown) in sides.into_iter().enumerate() {
            for figure in shown.figures {
                let key = (figure.name.clone(), figure.figure.clone());
                let place = *places.entry(key).or_insert_with(|| {
                    rows.push(figure.row(count));
                    rows.len() - 1
                });
                rows[place].cells[side] = Some(GridCell { value: figure.value, n: figure.n });
            }
        }
        for row in &mut rows {
            let first = row.cells.first().and_then(Option::as_ref);
            let others = row.cells.iter().skip(1);
            row.relations = others.map(|other| Relation::of(first, other.as_ref())).collect();
        }
        Self { experiment: experiment.to_owned(), rows, claims }
    }

    /// The owner of a row's figure, in words: of a paper's, whose name is an id for programs, the
    /// claim that rests on it, or its place in the paper.
    pub fn owner_words(&self, row: &GridRow) -> String {
        if !self.is_of_papers() {
            return row.name.clone();
        }
        let claim = self.claims.iter().find(|claim| claim.id == row.name);
        claim.map_or_else(|| place_in_words(&row.name, true), |claim| claim.claim.clone())
    }

    /// Returns true where its figures are those of papers, whose rows are named by ids.
    pub fn is_of_papers(&self) -> bool {
        self.experiment == "reproduce"
    }

    /// Returns true where a side after the first is worse in any row.
    pub fn is_worse(&self) -> bool {
        let sides = |row: &GridRow| 0..row.relations.len();
        self.rows.iter().any(|row| sides(row).any(|side| row.verdict(side) == Verdict::Worse))
    }
}

/// The figures and claims that one result puts on a grid.
pub(crate) struct SideFigures {
    /// The figures, in the order of their rows.
    pub(crate) figures: Vec<GridFigure>,
    /// The claims of a paper that it judges; none of other kinds.
    pub(crate) claims: Vec<SideClaim>,
}

/// A claim of a paper, as one result judges it.
pub(crate) struct SideClaim {
    /// Paper and claim: "nist.claim.factor".
    pub(crate) id: String,
    /// The paper's claim, as a sentence without its full stop.
    pub(crate) claim: String,
    /// The result's verdict on it.
    pub(crate) holds: Holds,
    /// The ground of the verdict, in a few words.
    pub(crate) because: String,
}

/// The claims that results judge.
fn claims(sides: &[SideFigures]) -> Vec<GridClaim> {
    let mut claims: Vec<GridClaim> = Vec::new();
    for (side, shown) in sides.iter().enumerate() {
        for judged in &shown.claims {
            let known = claims.iter().position(|claim| claim.id == judged.id);
            let place = known.unwrap_or_else(|| {
                claims.push(GridClaim {
                    id: judged.id.clone(),
                    claim: judged.claim.clone(),
                    holds: vec![None; sides.len()],
                    because: vec![String::new(); sides.len()],
                });
                claims.len() - 1
            });
            claims[place].holds[side] = Some(judged.holds);
            claims[place].because[side] = judged.because.clone();
        }
    }
    claims
}

/// A figure of a result, as its kind puts it on a grid.
pub(crate) struct GridFigure {
    name: String,
    figure: String,
    unit: String,
    published: String,
    better: Option<Relation>,
    value: Interval,
    n: Option<u64>,
}

impl GridFigure {
    /// A figure of one result, of which less is better.
    pub(crate) fn new(name: &str, figure: &str, unit: &str, value: Interval) -> Self {
        Self {
            name: name.to_owned(),
            figure: figure.to_owned(),
            unit: unit.to_owned(),
            published: String::new(),
            better: Some(Relation::Lower),
            value,
            n: None,
        }
    }

    /// The figure with its number of samples, where they were counted.
    pub(crate) fn of_n(self, n: impl Into<Option<u64>>) -> Self {
        Self { n: n.into(), ..self }
    }

    /// The figure with the value that a paper prints or claims of it.
    pub(crate) fn published(self, published: String) -> Self {
        Self { published, ..self }
    }

    /// The figure where the value of this relation is better; `None` where neither is.
    pub(crate) fn better(self, better: Option<Relation>) -> Self {
        Self { better, ..self }
    }

    fn row(&self, sides: usize) -> GridRow {
        GridRow {
            name: self.name.clone(),
            figure: self.figure.clone(),
            unit: self.unit.clone(),
            published: self.published.clone(),
            better: self.better,
            cells: vec![None; sides],
            relations: Vec::new(),
        }
    }
}

/// A value whose interval is not known.
pub(crate) fn bare(value: f64) -> Interval {
    Interval { value, low: None, high: None }
}

/// Figures of the answers to stimuli, in ns; the last the floor, where it was measured.
pub(crate) fn of_response(outcome: &ResponseOutcome) -> Vec<GridFigure> {
    let mut figures: Vec<GridFigure> = outcome.rows.iter().flat_map(of_condition).collect();
    if let Some(floor) = &outcome.floor
        && let Some(median) = floor.half_round_trip_ns.p50
    {
        let floor_row = GridFigure::new("floor", "half a round trip, median", "ns", bare(median));
        figures.push(floor_row.of_n(floor.n).better(None));
    }
    figures
}

fn of_condition(row: &ResponseRow) -> Vec<GridFigure> {
    let mut figures = Vec::new();
    if let Some(median) = row.kernel_ns.as_ref().and_then(|ns| ns.p50) {
        let name = format!("{}, stage 0", row.condition);
        figures.push(GridFigure::new(&name, "kernel's own stamp, median", "ns", bare(median)));
    }
    for stage in &row.stages {
        figures.extend(of_stage(&format!("{}, stage {}", row.condition, stage.stage), row, stage));
    }
    figures
}

fn of_stage(name: &str, row: &ResponseRow, stage: &StageRow) -> Vec<GridFigure> {
    let scatter = stage.scatter;
    let (start, complete) = (&stage.start_ns, &stage.complete_ns);
    let unserved = row.stimuli.saturating_sub(stage.served) as f64 / row.stimuli.max(1) as f64;
    let n = scatter.map_or(stage.answered, |scatter| scatter.n);
    // Of all stimuli: one that was found with a later one waited for that one's answer. What
    // follows is of answers alone, which none of those has.
    let rows = [
        ("wait for a start, median", scatter.and_then(|scatter| scatter.p50), n),
        ("wait for a start, 99 %", scatter.and_then(|scatter| scatter.p99), n),
        ("wait for a start, worst", scatter.map(|scatter| bare(scatter.largest)), n),
        ("start, median", start.p50.map(bare), stage.answered),
        ("start, 99 %", start.p99.map(bare), stage.answered),
        ("start, 1 in 1000", start.p99_9.map(bare), stage.answered),
        ("start, worst", start.max.map(bare), stage.answered),
        ("start, range", stage.response_range_ns.map(bare), stage.answered),
        ("complete, median", complete.p50.map(bare), stage.answered),
        ("complete, worst", complete.max.map(bare), stage.answered),
    ];
    let row_of = |(figure, value, n): (&str, Option<Interval>, u64)| {
        Some(GridFigure::new(name, figure, "ns", value?).of_n(n))
    };
    let unserved = GridFigure::new(name, "not served in time", "%", bare(unserved * 100.0));
    let counted = (row.stimuli > 0).then(|| unserved.of_n(row.stimuli));
    rows.into_iter().filter_map(row_of).chain(counted).collect()
}

/// The highest frequencies that it answered.
pub(crate) fn of_saturation(outcome: &SaturationOutcome) -> Vec<GridFigure> {
    let highest = |row: &SaturationRow| {
        let goal = row.goal * 100.0;
        let name = format!("{}, stage {}", row.condition, row.stage);
        let figure = format!("highest frequency, {goal} % lost");
        let value = match row.end {
            SearchEnd::BelowLowest => Interval { low: None, ..bare(row.fail_hz?) },
            SearchEnd::Found | SearchEnd::GeneratorLimited | SearchEnd::Unfinished => {
                Interval { low: row.pass_hz, ..bare(row.pass_hz.or(row.fail_hz)?) }
            }
        };
        let value = Interval { high: row.fail_hz, ..value };
        Some(GridFigure::new(&name, &figure, "Hz", value).of_n(row.stimuli))
    };
    let background = outcome.background.iter().flat_map(|row| {
        let rows = [
            ("SF50", row.sf50_hz),
            ("SF10", row.sf10_hz),
            ("SF", row.dead_hz),
            ("SF, by cost", row.predicted_hz),
        ];
        rows.map(|(figure, hz)| Some(GridFigure::new("background", figure, "Hz", bare(hz?))))
    });
    let frequencies = outcome.rows.iter().map(highest).chain(background).flatten();
    let mut figures: Vec<GridFigure> =
        frequencies.map(|figure| figure.better(Some(Relation::Higher))).collect();
    let cost = |ns| GridFigure::new("background", "cost of a stimulus", "ns", bare(ns));
    figures.extend(outcome.background.as_ref().and_then(|row| row.cost_ns).map(cost));
    figures
}

/// Figures of the errors of waits, by way to wait.
pub(crate) fn of_accuracy(outcome: &AccuracyOutcome) -> Vec<GridFigure> {
    let tick_ns = outcome.tick_ns;
    let mut figures = Vec::new();
    for row in &outcome.rows {
        let name = row.name();
        let scatter = row.scatter;
        let median = scatter.and_then(|scatter| scatter.p50).unwrap_or(bare(row.p50_ticks));
        let p95 = scatter.and_then(|scatter| scatter.p95).unwrap_or(bare(row.p95_ticks));
        let p5 = scatter.and_then(|scatter| scatter.p5).unwrap_or(bare(row.p5_ticks));
        let poll = row.poll_interval_ticks.or(row.poll_ticks.map(bare));
        let rows = [
            ("error, median", Some(median)),
            ("error, 95 %", Some(p95)),
            ("error, 5 to 95 %", Some(p95.minus(p5))),
            ("poll to poll", poll),
        ];
        let in_ns = |(figure, ticks): (&str, Option<Interval>)| {
            Some(GridFigure::new(&name, figure, "ns", ticks?.times(tick_ns)).of_n(row.n))
        };
        figures.extend(rows.into_iter().filter_map(in_ns));
    }
    figures
}

/// Figures of an executive's costs, by design and number of tasks.
pub(crate) fn of_executive(body: &ExecutiveBody) -> Vec<GridFigure> {
    let mut figures = Vec::new();
    for row in &body.rows {
        let tasks = if row.n == 1 { "task" } else { "tasks" };
        let caches = if row.cold { "cold" } else { "warm" };
        let name = format!("{}, {} {tasks}, {caches}", row.design, row.n);
        let rows = [
            ("release", row.release_interval_ns.unwrap_or(bare(row.release_ns))),
            ("dispatch", bare(row.dispatch_ns)),
            ("wait", row.wait_interval_ns.unwrap_or(bare(row.wait_ns))),
            ("cycle", row.cycle_interval_ns.unwrap_or(bare(row.cycle_ns))),
        ];
        let n = row.cycles as u64;
        figures.extend(rows.map(|(figure, ns)| GridFigure::new(&name, figure, "ns", ns).of_n(n)));
    }
    let turn = body.turn.iter().map(|turn| {
        let value =
            GridFigure::new("loop of one task", "adds to the wait", "ns", bare(turn.adds_ns));
        value.of_n(turn.cycles as u64)
    });
    figures.extend(turn);
    figures
}

#[cfg(test)]
mod tests {
    use punctual_analysis::scatter::Scatter;
    use punctual_analysis::summary::SummaryStats;
    use punctual_lab::saturation::SaturationRow;

    use super::*;
    use crate::Body;
    use crate::measured::{AccuracyBody, SaturationBody};

    fn cell(low: f64, value: f64, high: f64) -> GridCell {
        GridCell { value: Interval::between(low, value, high), n: None }
    }

    #[test]
    fn intervals_that_do_not_meet_decide_and_all_else_is_undecided() {
        let (low, high) = (cell(1.0, 2.0, 3.0), cell(3.5, 4.0, 5.0));
        assert_eq!(Relation::of(Some(&low), Some(&high)), Relation::Higher);
        assert_eq!(Relation::of(Some(&high), Some(&low)), Relation::Lower);
        let meets = cell(3.0, 3.2, 3.6);
        assert_eq!(Relation::of(Some(&low), Some(&meets)), Relation::Undecided);
        let open = GridCell { value: Interval { low: None, ..high.value }, n: None };
        assert_eq!(Relation::of(Some(&low), Some(&open)), Relation::Undecided);
        assert_eq!(Relation::of(None, Some(&high)), Relation::Undecided);
        let mut row = GridFigure::new("a", "b", "ns", bare(0.0)).row(2);
        row.relations = vec![Relation::Higher];
        assert_eq!((row.word(0), row.verdict(0)), ("worse", Verdict::Worse));
        row.better = Some(Relation::Higher);
        assert_eq!((row.word(0), row.verdict(0)), ("better", Verdict::Better));
        row.better = None;
        assert_eq!((row.word(0), row.word(7)), ("higher", "undecided"));
    }

    #[test]
    fn waits_of_all_stimuli_and_starts_of_answers_have_names_of_their_own() {
        let waited = (0..4_000i64).map(|at| if at % 4 == 0 { 2_000 } else { 45_000_000 + at });
        let stage = StageRow {
            stage: 2,
            answered: 1_000,
            start_ns: SummaryStats {
                p50: Some(2_000.0),
                max: Some(187_434.0),
                ..SummaryStats::default()
            },
            scatter: Scatter::of_series(waited),
            ..StageRow::default()
        };
        let row = ResponseRow {
            condition: "idle".to_owned(),
            stimuli: 4_000,
            stages: vec![stage],
            ..ResponseRow::default()
        };
        let figures = of_condition(&row);
        let value = |figure: &str| {
            let found = figures.iter().find(|own| own.figure == figure).expect("a figure");
            (found.value.value, found.n)
        };
        // No median lies above the worst of its own population.
        for (kind, n) in [("start", 1_000), ("wait for a start", 4_000)] {
            let [median, worst] = ["median", "worst"].map(|part| value(&format!("{kind}, {part}")));
            assert!(median.0 <= worst.0, "{kind}: {median:?} {worst:?}");
            assert_eq!([median.1, worst.1], [Some(n); 2], "{kind}");
        }
    }

    fn saturation(pass: Option<f64>, fail: Option<f64>, end: SearchEnd) -> Body {
        let row = SaturationRow {
            condition: "unloaded".to_owned(),
            stage: 1,
            goal: 0.01,
            pass_hz: pass,
            fail_hz: fail,
            first_loss_hz: None,
            stimuli: 300,
            end,
        };
        with_rows(vec![row])
    }

    fn with_rows(rows: Vec<SaturationRow>) -> Body {
        let saturation = SaturationOutcome {
            source: "eventfd".to_owned(),
            cpu: 1,
            stimulus_cpu: 0,
            trial_ns: 1_000_000,
            unthrottled: false,
            highest_hz: 2_000.0,
            stage_2: None,
            generator_hz: None,
            rows,
            trials: Vec::new(),
            background: None,
            lost: None,
        };
        Body::Measured(SaturationBody { saturation }.into())
    }

    #[test]
    fn a_highest_frequency_lies_between_what_passed_and_what_failed() {
        let slow = saturation(Some(1_000.0), Some(1_025.0), SearchEnd::Found);
        let fast = saturation(Some(2_000.0), None, SearchEnd::GeneratorLimited);
        let none = saturation(None, Some(900.0), SearchEnd::BelowLowest);
        let grid = Body::grid("measure saturation", &[&slow, &fast, &none]).expect("its kind");
        let [row] = &grid.rows[..] else { panic!("one: {grid:?}") };
        assert_eq!(
            (row.name.as_str(), row.figure.as_str()),
            ("unloaded, stage 1", "highest frequency, 1 % lost")
        );
        assert_eq!((row.word(0), row.word(1)), ("better", "worse"));
        assert!(grid.is_worse() && grid.claims.is_empty());
        let row =
            Body::grid("measure saturation", &[&fast, &slow]).expect("its kind").rows.remove(0);
        assert_eq!(row.word(0), "worse", "what the first one can is at least what it passed");
    }

    #[test]
    fn a_row_that_one_result_lacks_has_no_cell_there() {
        let full = saturation(Some(1_000.0), Some(1_025.0), SearchEnd::Found);
        let empty = with_rows(Vec::new());
        let grid = Body::grid("measure saturation", &[&empty, &full]).expect("its kind");
        assert_eq!(grid.rows[0].cells[0], None);
        assert_eq!(grid.rows[0].word(0), "undecided");
        let accuracy = AccuracyOutcome {
            tick_ns: 1.0,
            interrupted_from_ns: 1,
            rows: Vec::new(),
            no_counters: None,
            step_ticks: None,
        };
        let other = Body::Measured(AccuracyBody { accuracy }.into());
        assert!(other.has_grid() && !Body::Check(Default::default()).has_grid());
    }

    #[test]
    fn claims_agree_differ_or_are_undecided() {
        let word = |holds: &[Option<Holds>]| {
            let because = vec![String::new(); holds.len()];
            let (id, claim) = (String::new(), String::new());
            GridClaim { id, claim, holds: holds.to_vec(), because }.agreement().word()
        };
        let (yes, no, open) = (Some(Holds::Yes), Some(Holds::No), Some(Holds::Undecided));
        assert_eq!(word(&[yes, yes]), "agree");
        assert_eq!(word(&[no, no]), "agree");
        assert_eq!(word(&[yes, no]), "differ");
        assert_eq!(word(&[yes, open, no]), "differ");
        assert_eq!(word(&[yes, open]), "undecided");
        assert_eq!(word(&[None, no]), "undecided");
    }
}
