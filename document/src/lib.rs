//! The data that are shown to a person: headings, sentences, tables, plots.
//!
//! A document is built once; [`text`], [`html`] and [`markdown`] render it and know nothing of what
//! it is about. Words are as they came: each renderer makes them harmless for its own readers.
//! Nothing is printed here, and nothing but the terminal is asked for.
//!
//! | module | what it makes of a document |
//! |---|---|
//! | [`text`] | lines for a terminal of 80 columns at most |
//! | [`html`] | a page: one file, offline, readable without scripts |
//! | [`markdown`] | GitHub Flavored Markdown without raw HTML |
//! | [`terminal`] | the terminal: its width, colours, commands as they can be pasted |
#![forbid(unsafe_code)]

pub mod html;
pub mod markdown;
pub mod terminal;
pub mod text;

use punctual_plot::chart::Chart;

/// Blocks under one heading.
#[derive(Clone, Debug)]
pub struct Section {
    /// Unique in a document: what contents link to.
    pub id: &'static str,
    /// The heading.
    pub heading: &'static str,
    /// In their order.
    pub blocks: Vec<Block>,
}

/// One part of a document.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading below that of the section.
    Heading(String),
    /// One or more sentences.
    Words(Words),
    /// Sentences that stand behind labels.
    Items(Items),
    /// A table.
    Table(Table),
    /// Lines drawn with characters of one width; not for a page, which has plots.
    Drawing(String),
    /// A blank line, where what follows begins anew; a page has its own distances.
    Break,
    /// A plot.
    Figure(Box<Figure>),
    /// Groups of blocks next to each other.
    Row(Row, Vec<Vec<Block>>),
    /// Blocks that a reader opens by this summary.
    Folded(String, Vec<Block>),
}

/// One or more sentences.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// The sentences.
    pub text: String,
    /// The depth below the block it belongs to: 0 for sentences of their own.
    pub level: usize,
    /// Its meaning to a reader.
    pub tone: Tone,
    /// The first of these words in it has a colour.
    pub paint: Option<(String, Paint)>,
}

/// The colour of an answer, where there are colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Green.
    Good,
    /// Red.
    Bad,
    /// Yellow.
    Open,
}

/// The meaning of sentences to a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Part of the result.
    #[default]
    Plain,
    /// An explanation.
    Muted,
    /// That all is well.
    Good,
    /// That something is wrong.
    Bad,
}

/// Sentences that stand behind labels.
#[derive(Clone, Debug)]
pub struct Items {
    /// The kind of the list.
    pub kind: ItemsKind,
    /// In their order.
    pub items: Vec<Item>,
    /// The least that a label takes in a terminal, columns; the longest may take more.
    pub width: usize,
    /// Columns between a label and its sentence in a terminal.
    pub gap: usize,
    /// As of [`Words`].
    pub level: usize,
}

/// Kinds of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemsKind {
    /// Plain ones; a label is words of the sentence.
    Plain,
    /// Remarks, whose label says what about.
    Notes,
    /// Answers, whose label is the answer.
    Answers,
    /// Links, whose label is the address, relative to the document.
    Links,
}

/// A sentence behind a label.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// May be empty.
    pub label: String,
    /// The sentence.
    pub text: String,
    /// A command that belongs to it.
    pub command: Option<String>,
    /// More facts about it, for a page: a row each. Others have it in the sentence.
    pub rows: Vec<String>,
    /// The meaning of the answer to a reader, where it is one.
    pub tone: Tone,
    /// The first of these words in the sentence, or in an empty one's label, has a colour.
    pub paint: Option<(String, Paint)>,
}

/// A table of words and numbers. The first column heads its row.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its content, in words.
    pub caption: String,
    /// From left to right.
    pub columns: Vec<Column>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
    /// The tables that a terminal shows in its place; empty where it shows all.
    pub brief: Vec<Brief>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Over it.
    pub head: String,
    /// The kind of its cells.
    pub cells: Cells,
    /// The least that it takes in a terminal, columns.
    pub width: usize,
}

/// The kind of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Words, which begin at the left.
    Words,
    /// Numbers with their units, which end at the right.
    Numbers,
}

/// A part of a table, as a terminal shows it.
#[derive(Clone, Debug)]
pub struct Brief {
    /// Its place and heads on the page of a terminal.
    pub frame: Frame,
    /// From left to right.
    pub columns: Vec<Column>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
}

/// The place and the heads of a brief on the page of a terminal.
#[derive(Clone, Debug)]
pub enum Frame {
    /// Under the table's caption. As many rows as there is room for, the first in this order of
    /// places, and as many columns; what is left out is counted.
    Fitted(Vec<usize>),
    /// Without a caption, with its heads.
    Bare,
    /// As [`Frame::Bare`], after a blank line: one of several tables that a long one becomes.
    Titled,
    /// As [`Frame::Bare`], where the first cells begin with a mark, which stands to the left of all
    /// words.
    Marked,
    /// Without a caption and heads, for sentences around it that explain it.
    Headless,
    /// Without a caption, from the first column of the terminal, and never cut: lines that programs
    /// search too.
    Lines {
        /// True where the heads are over them.
        has_heads: bool,
    },
}

/// A plot, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Unique in a document.
    pub id: String,
    /// Over it.
    pub title: String,
    /// The picture; its description is a part of it.
    pub chart: Chart,
    /// The sentence in its place where there are no pictures; empty where tables say it all.
    pub brief: String,
    /// The kind of the data that a page's script draws it from again; `None` for one that stays.
    pub data: Option<&'static str>,
    /// The numbers behind it, for whoever opens them.
    pub behind: Vec<Block>,
}

/// The kind of groups of blocks that stand in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// They are of results that are compared by eye; each has a frame.
    Results,
    /// They are plots.
    Plots,
}

/// A column of words.
pub fn words(head: &str) -> Column {
    Column { head: head.to_owned(), cells: Cells::Words, width: 0 }
}

/// A column of numbers.
pub fn numbers(head: &str) -> Column {
    Column { head: head.to_owned(), cells: Cells::Numbers, width: 0 }
}

impl Column {
    /// At least so wide in a terminal.
    pub fn at_least(self, width: usize) -> Self {
        Self { width, ..self }
    }
}

impl Words {
    /// Sentences of their own.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// So deep below what they belong to.
    fn at(self, level: usize) -> Self {
        Self { level, ..self }
    }

    /// Of this tone.
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// With the first of these words coloured.
    pub fn painted(self, word: &str, paint: Paint) -> Self {
        Self { paint: Some((word.to_owned(), paint)), ..self }
    }
}

impl Item {
    /// A sentence behind a label.
    pub fn new(label: impl Into<String>, text: impl Into<String>) -> Self {
        Self { label: label.into(), text: text.into(), ..Self::default() }
    }
}

impl Items {
    /// A list of this kind.
    pub fn new(kind: ItemsKind, items: Vec<Item>) -> Self {
        Self { kind, items, width: 0, gap: 1, level: 1 }
    }

    /// In a terminal with labels of at least this width, and so much between them and the
    /// sentences.
    pub fn spaced(self, width: usize, gap: usize) -> Self {
        Self { width, gap, ..self }
    }

    /// So deep below what they belong to.
    pub fn at(self, level: usize) -> Self {
        Self { level, ..self }
    }
}

impl Table {
    /// A table that is shown whole everywhere.
    pub fn new(
        caption: impl Into<String>,
        columns: impl Into<Vec<Column>>,
        rows: Vec<Vec<String>>,
    ) -> Self {
        let (caption, columns) = (caption.into(), columns.into());
        Self { caption, columns, rows, brief: Vec::new() }
    }

    /// With what a terminal shows in its place, after what it shows already.
    pub fn brief(
        mut self,
        frame: Frame,
        columns: impl Into<Vec<Column>>,
        rows: Vec<Vec<String>>,
    ) -> Self {
        self.brief.push(Brief { frame, columns: columns.into(), rows });
        self
    }

    /// With as much of the first columns in a terminal as there is room for; the rows of these
    /// places come first.
    pub fn fitted(self, columns: usize, order: Vec<usize>) -> Self {
        let cells = |row: &Vec<String>| row.iter().take(columns).cloned().collect();
        let (heads, rows) = (self.columns[..columns].to_vec(), self.rows.iter().map(cells));
        let rows = rows.collect();
        self.brief(Frame::Fitted(order), heads, rows)
    }

    /// With as many rows and columns in a terminal as there is room for, the first ones first.
    pub fn folded(self) -> Self {
        let (columns, rows) = (self.columns.len(), self.rows.len());
        self.fitted(columns, (0..rows).collect())
    }

    /// In a terminal as lines that programs search too.
    pub fn lined(self) -> Self {
        let (columns, rows) = (self.columns.clone(), self.rows.clone());
        self.brief(Frame::Lines { has_heads: true }, columns, rows)
    }

    /// As [`Table::lined`], without heads: in each line the cells that say something, a colon
    /// between them.
    pub fn joined(self) -> Self {
        let joined = |row: &Vec<String>| {
            let cells = row.iter().map(String::as_str).filter(|cell| !cell.is_empty());
            vec![cells.collect::<Vec<_>>().join(": ")]
        };
        let rows = self.rows.iter().map(joined).collect();
        self.brief(Frame::Lines { has_heads: false }, [words("")], rows)
    }

    /// In a terminal without its caption.
    pub fn bare(self) -> Self {
        let (columns, rows) = (self.columns.clone(), self.rows.clone());
        self.brief(Frame::Bare, columns, rows)
    }
}

impl Figure {
    /// A plot that stays as it is.
    pub fn still(id: String, chart: Chart) -> Block {
        Self::described(id, chart, String::new())
    }

    /// A plot that stays as it is, and the words for it where there are no pictures.
    pub fn described(id: String, chart: Chart, brief: String) -> Block {
        let title = chart.title.clone();
        let (data, behind) = (None, Vec::new());
        Block::Figure(Box::new(Self { id, title, chart, brief, data, behind }))
    }
}

impl From<Words> for Block {
    fn from(words: Words) -> Self {
        Self::Words(words)
    }
}

impl From<Items> for Block {
    fn from(items: Items) -> Self {
        Self::Items(items)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl Block {
    /// Sentences of their own.
    pub fn words(text: impl Into<String>) -> Self {
        Words::new(text).into()
    }

    /// Sentences so deep below what they belong to.
    pub fn words_at(level: usize, text: impl Into<String>) -> Self {
        Words::new(text).at(level).into()
    }

    /// Returns true where nothing of it is left without pictures.
    pub fn is_picture_alone(&self) -> bool {
        match self {
            Self::Figure(figure) => figure.brief.is_empty(),
            Self::Row(_, groups) => groups.iter().flatten().all(Self::is_picture_alone),
            _ => false,
        }
    }

    /// True for plots alone: one, or a row of them.
    pub fn is_plot(&self) -> bool {
        matches!(self, Self::Figure(_) | Self::Row(Row::Plots, _))
    }

    /// Every plot in it, in their order.
    pub fn figures(&self) -> Vec<&Figure> {
        match self {
            Self::Figure(figure) => vec![figure],
            Self::Row(_, groups) => groups.iter().flatten().flat_map(Self::figures).collect(),
            Self::Folded(_, blocks) => blocks.iter().flat_map(Self::figures).collect(),
            _ => Vec::new(),
        }
    }

    /// Every plot in it, to be changed.
    pub fn figures_mut(&mut self) -> Vec<&mut Figure> {
        match self {
            Self::Figure(figure) => vec![figure],
            Self::Row(_, groups) => {
                groups.iter_mut().flatten().flat_map(Self::figures_mut).collect()
            }
            Self::Folded(_, blocks) => blocks.iter_mut().flat_map(Self::figures_mut).collect(),
            _ => Vec::new(),
        }
    }

    /// An explanation.
    pub fn muted(text: impl Into<String>) -> Self {
        Words::new(text).toned(Tone::Muted).into()
    }
}
