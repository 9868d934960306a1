//! The body of `reproduce`: a verdict for each claim that a paper makes, and a row for each figure
//! that it prints.
//!
//! Plain data.

use punctual_analysis::claim::judge::Holds;
use punctual_analysis::interval::{Interval, Takes};
use punctual_analysis::plain::concise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compared::Comparison;
use crate::grid::{GridFigure, SideClaim, SideFigures, bare};
use crate::run::Run;
use crate::words::place_in_words;

/// The body of `reproduce`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReproduceBody {
    /// The papers, by their short names, in the order of the rows.
    pub papers: Vec<String>,
    /// True where the measurements were shortened by --quick.
    pub quick: bool,
    /// True where they were as long as the papers' by --full, as far as these give a length.
    #[serde(default)]
    pub full: bool,
    /// One for each claim that a paper makes, in the order of the papers; none in results of
    /// before.
    #[serde(default)]
    pub claims: Vec<ReproducedClaim>,
    /// One for each figure that a paper prints.
    pub rows: Vec<ReproducedRow>,
    /// The loops that were measured for them, named by paper and condition; none in results of
    /// before.
    #[serde(default)]
    pub runs: Vec<Run>,
    /// Figures of the papers, drawn from what was measured; none in results of before.
    #[serde(default)]
    pub figures: Vec<PaperFigure>,
    /// The comparison with another machine's result; not there unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Comparison>,
}

/// The short name of the paper that a claim, a row, a figure or a run is of: its id, or the name of
/// the run, begins with it.
pub fn paper_of(id: &str) -> &str {
    id.split(['.', ' ']).next().unwrap_or_default()
}

impl ReproduceBody {
    /// Leaves out all that is of other papers than these, which have short names.
    pub fn keep(&mut self, papers: &[&str]) {
        let is_kept = |id: &str| papers.contains(&paper_of(id));
        self.papers.retain(|paper| is_kept(paper));
        self.claims.retain(|claim| is_kept(&claim.id));
        self.rows.retain(|row| is_kept(&row.id));
        self.runs.retain(|run| is_kept(&run.name));
        self.figures.retain(|figure| is_kept(&figure.id));
    }

    /// The figures that papers print of the machine, those of their claims, and the claims.
    pub(crate) fn on_grid(&self) -> SideFigures {
        let row = |row: &ReproducedRow| {
            let formula = row.formula.filter(|_| row.published.is_empty());
            let formula = formula.map(|value| format!("{value:.4} by its formula"));
            let figure = GridFigure::new(&row.id, &row.what, &row.unit, bare(row.measured?));
            Some(figure.better(None).published(formula.unwrap_or_else(|| row.published.clone())))
        };
        let claimed = self.claims.iter();
        let claimed = claimed.flat_map(|claim| claim.figures.iter().map(move |own| (claim, own)));
        let claimed = claimed.map(|(claim, own)| own.on_grid(&claim.id));
        let claims = self.claims.iter().map(|judged| SideClaim {
            id: judged.id.clone(),
            claim: judged.claim.clone(),
            holds: judged.holds,
            because: judged.in_short(),
        });
        SideFigures {
            figures: self.rows.iter().filter_map(row).chain(claimed).collect(),
            claims: claims.collect(),
        }
    }
}

/// A claim of a paper, and whether it holds here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReproducedClaim {
    /// Paper and claim: "nist.claim.factor".
    pub id: String,
    /// The paper's claim, as a sentence without its full stop.
    pub claim: String,
    /// "yes" where every test of it is clear, "no" where one clearly fails, "undecided" otherwise.
    pub holds: Holds,
    /// The ground of the verdict; for "undecided" why nothing decided it, and the data that it
    /// would take.
    pub because: String,
    /// What stands beside the verdict, in a few words for a terminal; not there where nothing does,
    /// and in results of before. `because` has it as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
    /// The numbers that it rests on: the tests, and how far the values lie apart beside them.
    pub figures: Vec<ClaimFigure>,
}

impl ReproducedClaim {
    /// Its verdict in a few words.
    pub fn word(&self) -> &'static str {
        Self::word_of(self.holds)
    }

    /// A verdict in a few words.
    pub fn word_of(holds: Holds) -> &'static str {
        match holds {
            Holds::Yes | Holds::IfAlone => "holds here",
            Holds::No => "does not",
            Holds::Undecided => "cannot be told",
        }
    }

    /// The ground of the verdict in as few words as there are: one figure and the bound claimed for
    /// it, and where that is open, the data that would decide; or the beginning of why nothing did.
    pub fn in_short(&self) -> String {
        let decided = |figure: &&ClaimFigure| figure.holds == Some(self.holds);
        let mut decided = self.figures.iter().filter(decided);
        // Of several open ones, that which takes most, as `because` has it.
        let figure = match self.holds {
            Holds::Undecided => decided.reduce(|a, b| if a.takes() < b.takes() { b } else { a }),
            _ => decided.next(),
        };
        let short = match figure {
            Some(figure) => figure.in_short(),
            None => self.because.split([':', ';']).next().unwrap_or_default().to_owned(),
        };
        self.remark.iter().fold(short, |short, remark| format!("{short}; {remark}"))
    }

    /// The short name of its paper.
    pub fn paper(&self) -> &str {
        paper_of(&self.id)
    }
}

/// A number that a claim rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimFigure {
    /// Its name, in words.
    pub what: String,
    /// The unit of value, ends and bound.
    pub unit: String,
    /// Its value and the ends of its interval, each at 98.75 %, so that four hold together at
    /// 95 %; a range, which one stall makes, has its value as both.
    #[serde(flatten)]
    pub value: Interval,
    /// Samples.
    pub n: Option<u64>,
    /// The claim says that it is this much or more; null where it says something else or nothing.
    pub at_least: Option<f64>,
    /// The claim says that it is this much or less; null likewise.
    pub at_most: Option<f64>,
    /// The verdict on that bound; null where it stands beside the tests.
    pub holds: Option<Holds>,
}

impl ClaimFigure {
    /// The claim's bound of it: "≥ 36.7"; empty where it stands beside the tests.
    pub fn bound(&self) -> String {
        match (self.at_least, self.at_most) {
            (Some(least), _) => format!("≥ {}", concise(least)),
            (None, Some(most)) => format!("≤ {}", concise(most)),
            (None, None) => String::new(),
        }
    }

    /// The figure as a row of the claim `id`.
    fn on_grid(&self, id: &str) -> GridFigure {
        // A range, which one stall makes, stands beside the tests with its value as both ends.
        let value = match self.value {
            Interval { value, low, high } if self.holds.is_none() && low == high => bare(value),
            interval => interval,
        };
        let figure = GridFigure::new(id, &self.what, &self.unit, value).better(None);
        figure.published(self.bound()).of_n(self.n)
    }

    /// The effort that would decide an open one.
    fn takes(&self) -> Takes {
        Takes::of(self.value, self.at_least.or(self.at_most))
    }

    fn in_short(&self) -> String {
        let known = format!("{} {}, claimed {}", self.value, self.unit, self.bound());
        match self.holds {
            Some(Holds::Undecided) => format!("{known}; {}", self.takes().in_short()),
            _ => known,
        }
    }
}

/// A figure of a paper: its axes, what the paper has, what its formula gives, what was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaperFigure {
    /// Paper and figure: "nist.fig5".
    pub id: String,
    /// Its title: the quantity shown.
    pub what: String,
    /// The horizontal axis, with its unit.
    pub x: String,
    /// The vertical axis, with its unit.
    pub y: String,
    /// Each axis, x then y: true for a log scale, false for a linear one.
    pub log: [bool; 2],
    /// Names at 0, 1, 2 and so on of the horizontal axis; empty where it has numbers.
    #[serde(default)]
    pub names: Vec<String>,
    /// Traces below each other, as an oscilloscope shows them: their names, from top to bottom.
    /// Empty where the vertical axis has numbers.
    #[serde(default)]
    pub channels: Vec<String>,
    /// True where it stands beside the figure before it, on the same scales.
    #[serde(default)]
    pub beside: bool,
    /// The series, in the order of the legend.
    pub series: Vec<FigureSeries>,
}

impl PaperFigure {
    /// Its place in the paper and its title, in words: "nist, figure 3: lateness".
    pub fn words(&self) -> String {
        in_words(&self.id, &self.what, true)
    }

    /// Lays the series of another result's figure over these, under this name for the other result.
    /// Series that both have alike, as the paper has them, are there once. Its columns and boxes
    /// would hide these: they stand beside, at names of their own.
    pub fn overlay(&mut self, other: &Self, name: &str) {
        let own = self.series.clone();
        for series in other.series.iter().filter(|series| !own.contains(series)) {
            let mut laid = FigureSeries { name: there(&series.name, name), ..series.clone() };
            if matches!(laid.drawn, Drawn::Bars | Drawn::Range) {
                laid.points.iter_mut().for_each(|at| self.move_beside(at, &other.names, name));
            }
            self.series.push(laid);
        }
    }

    /// Moves what stands at one of the other result's names to a name of its own.
    fn move_beside(&mut self, at: &mut [f64; 2], names: &[String], label: &str) {
        let place = at[0].round();
        // A name has a whole number, and what is not one is cut off: no name has a negative place.
        let Some(named) = names.get(place as usize).filter(|_| place >= 0.0) else { return };
        let own_name = there(named, label);
        let known = self.names.iter().position(|name| *name == own_name);
        let new_place = known.unwrap_or_else(|| {
            self.names.push(own_name);
            self.names.len() - 1
        });
        at[0] += new_place as f64 - place;
    }
}

/// A name of another result's figure under its label, which is what "here" is there.
fn there(name: &str, label: &str) -> String {
    match name.strip_prefix("here") {
        Some(rest) => format!("{label}{rest}"),
        None => format!("{label}: {name}"),
    }
}

/// A series of a paper's figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureSeries {
    /// "published", "formula: …", "here: …".
    pub name: String,
    /// The way that it is drawn.
    pub drawn: Drawn,
    /// Its points, x and y in the units of the axes.
    pub points: Vec<[f64; 2]>,
    /// A name for each point; empty where they have none.
    pub labels: Vec<String>,
    /// The number of its channel, where there are channels: y is 0 at the lower end of its trace
    /// then, and 1 at the upper one.
    #[serde(default)]
    pub channel: usize,
}

/// The way that a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Drawn {
    /// Its points joined by a line.
    Line,
    /// Single points.
    Points,
    /// A small mark on the horizontal axis for the x of each.
    Rug,
    /// The columns of a histogram: the y of each point holds from its x to that of the next point;
    /// the last point only ends the last column.
    Steps,
    /// Columns up from the horizontal axis.
    Bars,
    /// A box for each three points of one x: its lowest, middle and highest.
    Range,
    /// A band with a line through it, by three points of each x: lowest, middle and highest.
    Band,
    /// A trace that was seen many times, in its channel: y is the share of them that are up from
    /// its x to that of the next point.
    Density,
}

/// A figure of a paper, and what it is today.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReproducedRow {
    /// Paper and figure: "nist.fig2", "wince.fig11.ce30-loaded.app.max".
    pub id: String,
    /// The figure's name, in words.
    pub what: String,
    /// The unit of `formula` and `measured`.
    pub unit: String,
    /// The value as the paper prints it; empty where it shows a plot without a number.
    pub published: String,
    /// Computed from the paper's own formula and its inputs; null where it has none.
    pub formula: Option<f64>,
    /// Measured here; null where this run did not measure it, and `note` says why.
    pub measured: Option<f64>,
    /// Where the paper errs, what differs here, or why there is no measured value; may be empty.
    pub note: String,
}

impl ReproducedRow {
    /// Its place in the paper and its name, in words: "figure 3: tail of the lateness"; with its
    /// paper's short name before that where there are `several`.
    pub fn words(&self, several: bool) -> String {
        in_words(&self.id, &self.what, several)
    }
}

/// The place in a paper that this id names, then `what`; `what` alone where it names none.
pub fn in_words(id: &str, what: &str, with_paper: bool) -> String {
    match place_in_words(id, with_paper).as_str() {
        "" => what.to_owned(),
        place => format!("{place}: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_words_with_the_place_in_the_paper_where_they_say_it() {
        for (id, words, several) in [
            ("nist.fig3.second", "figure 3: a tail", "nist, figure 3: a tail"),
            ("nist.fig3a", "figure 3a: a tail", "nist, figure 3a: a tail"),
            ("ant.table3.max", "table 3: a tail", "ant, table 3: a tail"),
            ("nist.eq1.own", "equation 1: a tail", "nist, equation 1: a tail"),
            ("nist.figure", "a tail", "nist: a tail"),
            ("nist.tick.compensated", "a tail", "nist: a tail"),
            ("nist", "a tail", "nist: a tail"),
        ] {
            assert_eq!(in_words(id, "a tail", false), words);
            assert_eq!(in_words(id, "a tail", true), several);
        }
    }

    #[test]
    fn of_a_result_beside_another_only_the_papers_that_were_asked_for_are_kept() {
        let row = |id: &str| ReproducedRow {
            id: id.to_owned(),
            what: String::new(),
            unit: String::new(),
            published: String::new(),
            formula: None,
            measured: None,
            note: String::new(),
        };
        let drawn = |id: &str| PaperFigure { id: id.to_owned(), ..PaperFigure::default() };
        let mut body = ReproduceBody {
            papers: ["nist", "ant"].map(str::to_owned).into(),
            quick: true,
            full: false,
            claims: Vec::new(),
            rows: vec![row("nist.fig1"), row("ant.fig1"), row("nistle.fig1")],
            runs: Vec::new(),
            figures: vec![drawn("ant.fig2"), drawn("nist.fig2")],
            beside: None,
        };
        body.keep(&["nist"]);
        assert_eq!(body.papers, ["nist"]);
        assert_eq!(body.rows.iter().map(|row| &*row.id).collect::<Vec<_>>(), ["nist.fig1"]);
        let ids: Vec<&str> = body.figures.iter().map(|figure| &*figure.id).collect();
        assert_eq!(ids, ["nist.fig2"]);
    }

    fn figure(holds: Holds, at_least: Option<f64>, at_most: Option<f64>) -> ClaimFigure {
        ClaimFigure {
            what: "gain".to_owned(),
            unit: "times".to_owned(),
            value: Interval::between(30.0, 38.0, 60.0),
            n: Some(400),
            at_least,
            at_most,
            holds: Some(holds),
        }
    }

    #[test]
    fn a_figure_laid_over_another_keeps_what_both_have_once() {
        let series = |name: &str, y: f64| FigureSeries {
            name: name.to_owned(),
            drawn: Drawn::Points,
            channel: 0,
            points: vec![[1.0, y]],
            labels: Vec::new(),
        };
        let figure = |measured: f64, formula: f64| PaperFigure {
            series: vec![
                series("published", 4.0),
                series("formula", formula),
                series("here", measured),
            ],
            ..PaperFigure::default()
        };
        let mut laid = figure(5.0, 1.0);
        laid.overlay(&figure(7.0, 1.0), "other");
        let names: Vec<&str> = laid.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["published", "formula", "here", "other"]);
        // A formula that takes something of the machine is another one there.
        laid.overlay(&figure(9.0, 2.0), "third");
        assert_eq!(laid.series.len(), 6);
        assert_eq!(laid.series[4].name, "third: formula");
    }

    #[test]
    fn columns_of_another_result_stand_beside_and_hide_none() {
        let bars = |name: &str, points: Vec<[f64; 2]>| FigureSeries {
            name: name.to_owned(),
            drawn: Drawn::Bars,
            channel: 0,
            points,
            labels: Vec::new(),
        };
        let figure = |khz: f64| PaperFigure {
            names: ["CE 3.0", "here", "here, loaded"].map(str::to_owned).into(),
            series: vec![
                bars("published", vec![[-0.27, 20.0]]),
                bars("here", vec![[0.73, khz], [2.27, khz / 2.0]]),
            ],
            ..PaperFigure::default()
        };
        let mut laid = figure(8.0);
        laid.overlay(&figure(6.0), "b.json");
        assert_eq!(laid.names[3..], ["b.json", "b.json, loaded"]);
        let [_, own, other] = &laid.series[..] else { panic!("{laid:?}") };
        assert_eq!(own.points, [[0.73, 8.0], [2.27, 4.0]]);
        let rounded: Vec<f64> = other.points.iter().map(|at| (at[0] * 100.0).round()).collect();
        assert_eq!((rounded, other.name.as_str()), (vec![273.0, 427.0], "b.json"));
        // A second one beside both.
        laid.overlay(&figure(5.0), "c.json");
        assert_eq!(laid.names.len(), 7);
    }

    #[test]
    fn a_claim_in_short_is_the_figure_that_decided_it_or_why_none_did() {
        let figures =
            vec![figure(Holds::Yes, Some(20.0), None), figure(Holds::Undecided, None, Some(36.7))];
        let claim = |holds, figures| ReproducedClaim {
            id: "nist.claim.factor".to_owned(),
            claim: "It gains".to_owned(),
            holds,
            because: "it takes a cable; and a second machine".to_owned(),
            remark: None,
            figures,
        };
        let open = claim(Holds::Undecided, figures.clone());
        let short = "38.0 [30.0, 60.0] times, claimed ≤ 36.7; needs 38 × as many";
        assert_eq!(open.in_short(), short);
        assert_eq!((open.word(), open.paper()), ("cannot be told", "nist"));
        let yes = claim(Holds::Yes, figures.clone());
        assert_eq!(yes.in_short(), "38.0 [30.0, 60.0] times, claimed ≥ 20");
        let beside = ReproducedClaim { remark: Some("fenced read".to_owned()), ..yes.clone() };
        assert_eq!(beside.in_short(), "38.0 [30.0, 60.0] times, claimed ≥ 20; fenced read");
        assert_eq!(claim(Holds::Undecided, Vec::new()).in_short(), "it takes a cable");
        // Of two open ones, the terminal has what the page says that it takes.
        let near = ClaimFigure {
            value: Interval { value: 36.7, low: Some(1.0), high: Some(90.0) },
            ..figure(Holds::Undecided, None, Some(36.7))
        };
        let claim = claim(Holds::Undecided, vec![figures[1].clone(), near]);
        assert!(claim.in_short().ends_with("; too near to tell"), "{}", claim.in_short());
    }
}
