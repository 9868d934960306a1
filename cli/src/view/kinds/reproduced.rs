//! Documents of `reproduce`: the verdict on each claim of a paper, and each of its figures beside
//! today's.

use punctual_analysis::claim::judge::Holds;
use punctual_analysis::plain::significant;
use punctual_document::{Block, Item, Items, ItemsKind, Section, Table, Tone, numbers, words};
use punctual_papers::{Paper, PaperLength};
use punctual_report::Report;
use punctual_report::reproduced::{
    ClaimFigure, ReproduceBody, ReproducedClaim, ReproducedRow, paper_of,
};

use super::{compare, head, judged};
use crate::format::{self, Paint};

/// Rows on a terminal less the lines that claims take, at least so many of each paper; and columns:
/// those without sentences.
const ROWS: usize = 21;
const ROWS_MIN: usize = 1;
/// Characters of a claim that a line holds, where words are not cut.
const LINE: usize = 56;
const COLUMNS: usize = 5;
/// Published words that are longer stand on the page alone.
const PUBLISHED: usize = 16;

/// The claims, then the figures; a short one has of each claim what decided it alone.
pub(super) fn document(
    report: &Report,
    body: &ReproduceBody,
    results: Option<&str>,
    is_short: bool,
) -> Vec<Block> {
    let mut blocks = head::brief(report);
    blocks.push(Block::Break);
    blocks.extend(claims(body, is_short));
    blocks.extend(shown(body).blocks);
    if !is_short {
        blocks.extend(evidence(body));
    }
    blocks.extend(compare::against(report));
    blocks.extend(judged::warnings(report));
    blocks.extend(results.map(|results| {
        Items::new(ItemsKind::Notes, vec![head::details(results)]).spaced(9, 2).into()
    }));
    blocks
}

/// The verdict on each claim, with its ground.
pub(crate) fn claims(body: &ReproduceBody, is_short: bool) -> Vec<Block> {
    if body.claims.is_empty() {
        return vec![Block::muted(
            "This result judges no claims: the version that made it did not. 'punctual reproduce' \
             does it now.",
        )];
    }
    let mut blocks = vec![Block::words(verdicts(body))];
    for paper in &body.papers {
        let own = body.claims.iter().filter(|claim| claim.paper() == paper);
        let items: Vec<Item> = own.map(|claim| item(claim, is_short)).collect();
        if items.is_empty() {
            continue;
        }
        if body.papers.len() > 1 {
            blocks.push(Block::Heading(paper.clone()));
        }
        blocks.push(Items::new(ItemsKind::Answers, items).spaced(0, 2).at(1).into());
    }
    blocks
}

/// The number of claims of each verdict, in a sentence.
fn verdicts(body: &ReproduceBody) -> String {
    let count = |wanted: Holds| body.claims.iter().filter(|claim| claim.holds == wanted).count();
    let (yes, no, open) = (count(Holds::Yes), count(Holds::No), count(Holds::Undecided));
    format!("{} claims: {yes} hold here, {no} do not, {open} cannot be told", body.claims.len())
}

fn item(claim: &ReproducedClaim, is_short: bool) -> Item {
    let word = claim.word();
    let (tone, paint) = match claim.holds {
        Holds::Yes | Holds::IfAlone => (Tone::Good, Paint::Good),
        Holds::No => (Tone::Bad, Paint::Bad),
        Holds::Undecided => (Tone::Plain, Paint::Open),
    };
    let because = match is_short {
        true => claim.in_short(),
        false => claim.because.clone(),
    };
    let text = format!("{}: {because}", claim.claim);
    Item { tone, paint: Some((word.to_owned(), paint)), ..Item::new(word, text) }
}

/// The lines of a claim on a terminal of 80 columns, at most: its verdict stands beside them.
fn lines(claim: &ReproducedClaim) -> usize {
    item(claim, true).text.chars().count().div_ceil(LINE)
}

/// The figures that the claims rest on, each with the bound claimed for it; `None` without any.
fn evidence(body: &ReproduceBody) -> Option<Block> {
    let heads = [
        words("claim"),
        words("figure"),
        numbers("value"),
        numbers("from"),
        numbers("to"),
        words("unit"),
        numbers("n"),
        words("claimed"),
        words("holds"),
    ];
    let end = |end: Option<f64>| end.map_or_else(|| "-".to_owned(), significant);
    let cells = |(claim, figure): (&ReproducedClaim, &ClaimFigure)| {
        let holds = figure.holds.map_or("", |holds| match holds {
            Holds::Yes | Holds::IfAlone => "yes",
            Holds::No => "no",
            Holds::Undecided => "open",
        });
        vec![
            claim.claim.clone(),
            figure.what.clone(),
            significant(figure.value.value),
            end(figure.value.low),
            end(figure.value.high),
            figure.unit.clone(),
            format::count_or_dash(figure.n),
            figure.bound(),
            holds.to_owned(),
        ]
    };
    let pairs = body.claims.iter();
    let pairs = pairs.flat_map(|claim| claim.figures.iter().map(move |figure| (claim, figure)));
    let rows: Vec<Vec<String>> = pairs.map(cells).collect();
    let caption = "What the claims rest on: each value between the ends of its interval, all four \
                   of a scatter at 95 % together; a range is an observation";
    (!rows.is_empty()).then(|| Table::new(caption, heads, rows).into())
}

/// The figures that the claims rest on, which only a page has.
pub(super) fn behind(body: &ReproduceBody) -> Option<Section> {
    let table = evidence(body)?;
    let count = body.claims.iter().map(|claim| claim.figures.len()).sum::<usize>();
    let blocks = vec![Block::Folded(format!("{count} figures"), vec![table])];
    Some(Section { id: "claims-rest", heading: "What the claims rest on", blocks })
}

/// Each figure of a paper beside that of today; a terminal has some rows of each paper.
pub(super) fn shown(body: &ReproduceBody) -> Section {
    let heads = [
        words("what"),
        numbers("published"),
        numbers("formula"),
        numbers("measured"),
        words("unit"),
        words("note"),
    ];
    let several = body.papers.len() > 1;
    let caption = "Published, by the paper's own formula, and measured here";
    let table =
        Table::new(caption, heads, body.rows.iter().map(|row| cells(row, several)).collect())
            .fitted(COLUMNS, telling(body));
    Section {
        id: "reproduced",
        heading: "Papers reproduced",
        blocks: vec![table.into(), Block::words(counts(body))],
    }
}

fn cells(row: &ReproducedRow, several: bool) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), significant);
    let published = if row.published.is_empty() { "-" } else { &row.published };
    vec![
        row.words(several),
        published.to_owned(),
        number(row.formula),
        number(row.measured),
        row.unit.clone(),
        row.note.clone(),
    ]
}

/// Places of rows to show first: as many of each paper, spread over those that are both published
/// and measured.
fn telling(body: &ReproduceBody) -> Vec<usize> {
    let left = ROWS.saturating_sub(body.claims.iter().map(lines).sum());
    let each = (left / body.papers.len().max(1)).max(ROWS_MIN);
    let is_shown = |row: &ReproducedRow| {
        let published = row.published.chars().count();
        (1..=PUBLISHED).contains(&published) && row.measured.is_some()
    };
    let mut shown = Vec::new();
    for paper in &body.papers {
        let own = |row: &ReproducedRow| paper_of(&row.id) == paper;
        let rows = body.rows.iter().enumerate().filter(|(_, row)| own(row) && is_shown(row));
        let rows: Vec<usize> = rows.map(|(at, _)| at).collect();
        let count = each.min(rows.len());
        shown.extend((0..count).map(|at| rows[at * rows.len() / count]));
    }
    shown
}

fn counts(body: &ReproduceBody) -> String {
    let count = |matches: &dyn Fn(&ReproducedRow) -> bool| {
        format::count(body.rows.iter().filter(|row| matches(row)).count() as u64)
    };
    format!(
        "{} rows: {} measured here, {} not (their notes say why){}",
        count(&|_| true),
        count(&|row| row.measured.is_some()),
        count(&|row| row.measured.is_none()),
        match (body.quick, body.full) {
            (true, _) => "; shortened by --quick".to_owned(),
            (false, true) => "; as long as the papers, by --full".to_owned(),
            (false, false) => shortened(body),
        },
    )
}

/// The papers that are longer than the usual length, as the end of a sentence.
fn shortened(body: &ReproduceBody) -> String {
    let is_longer = |paper: &Paper| {
        let [usual, full] =
            [PaperLength::Usual, PaperLength::Full].map(|length| paper.seconds(length, false));
        full > usual
    };
    let own =
        Paper::ALL.into_iter().filter(|paper| body.papers.iter().any(|own| own == paper.name()));
    let longer: Vec<&str> = own.filter(is_longer).map(Paper::name).collect();
    match longer.is_empty() {
        true => "; not shortened: no paper of them says that it measured longer".to_owned(),
        false => {
            format!("; shortened: {} measured longer, and so does --full", longer.join(" and "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_report::Body;

    fn stored() -> Report {
        let text = include_str!("../../../tests/results/kinds/reproduce.json");
        Report::parse(text).expect("a result")
    }

    fn body(report: &mut Report) -> &mut ReproduceBody {
        let Body::Reproduce(body) = &mut report.body else { panic!("of a reproduction") };
        body
    }

    /// The labels and sentences of all answers.
    fn answers(blocks: &[Block]) -> Vec<(String, String)> {
        let items = blocks.iter().filter_map(|block| match block {
            Block::Items(items) if items.kind == ItemsKind::Answers => Some(&items.items),
            _ => None,
        });
        items.flatten().map(|item| (item.label.clone(), item.text.clone())).collect()
    }

    #[test]
    fn claims_come_first_each_with_its_verdict_and_what_decided_it() {
        let mut report = stored();
        let claims = body(&mut report).claims.clone();
        for is_short in [true, false] {
            let blocks = document(&report, body(&mut report.clone()), None, is_short);
            let first = |wanted: &dyn Fn(&Block) -> bool| blocks.iter().position(wanted);
            let answered = first(&|block| matches!(block, Block::Items(_))).expect("answers");
            let table = first(&|block| matches!(block, Block::Table(_))).expect("a table");
            assert!(answered < table);
            let answers = answers(&blocks);
            assert_eq!(answers.len(), claims.len());
            for ((label, text), claim) in answers.iter().zip(&claims) {
                assert_eq!(label, claim.word());
                let because = if is_short { &claim.in_short() } else { &claim.because };
                assert_eq!(*text, format!("{}: {because}", claim.claim));
            }
            let tables = blocks.iter().filter(|block| matches!(block, Block::Table(_))).count();
            assert_eq!(tables, if is_short { 1 } else { 2 }, "figures are for who wants all");
        }
        assert!(
            ["holds here", "does not", "cannot be told"]
                .iter()
                .all(|word| { claims.iter().any(|claim| claim.word() == *word) })
        );
    }

    #[test]
    fn several_papers_have_their_claims_under_their_names() {
        let mut report = stored();
        let body = body(&mut report);
        let mut other = body.claims[0].clone();
        other.id = "ant.claim.wait".to_owned();
        body.claims.insert(0, other);
        body.papers.insert(0, "ant".to_owned());
        body.papers.push("wince".to_owned());
        let blocks = claims(body, true);
        let headings: Vec<&String> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::Heading(heading) => Some(heading),
                _ => None,
            })
            .collect();
        assert_eq!(headings, ["ant", "maruti"], "none without a claim");
        assert_eq!(answers(&blocks).len(), body.claims.len());
    }

    #[test]
    fn what_was_shortened_is_said_at_every_length() {
        let mut report = stored();
        let body = body(&mut report);
        let mut said = |papers: &[&str], quick, full| {
            body.papers = papers.iter().map(|&paper| paper.to_owned()).collect();
            (body.quick, body.full) = (quick, full);
            counts(body)
        };
        assert!(said(&["wince"], true, false).ends_with("; shortened by --quick"));
        assert!(said(&["wince"], false, true).ends_with("; as long as the papers, by --full"));
        let text = said(&["nist", "linuxcnc", "wince"], false, false);
        assert!(
            text.ends_with("; shortened: linuxcnc and wince measured longer, and so does --full")
        );
        let text = said(&["ant", "maruti"], false, false);
        assert!(text.ends_with("; not shortened: no paper of them says that it measured longer"));
    }

    #[test]
    fn a_result_of_before_says_that_it_judges_nothing() {
        let mut report = stored();
        let body = body(&mut report);
        body.claims.clear();
        let blocks = claims(body, false);
        assert!(matches!(&blocks[..], [Block::Words(words)] if words.text.contains("no claims")));
        assert!(behind(body).is_none());
    }
}
