//! The words of a picture: none covers another, none leaves it.
//!
//! Words that must be there are made to fit before; names of marks are left out where there is no
//! room. Widths are those of the font of PNG files, with room for the wider one of a reader's page.

use crate::font;
use crate::scene::{Anchor, Item};

/// The factor by which a reader's own font may be wider than that of PNG files, in which a page is
/// shown.
const WIDER: f64 = 1.15;
/// Above and below the base line, of the height of letters.
const ABOVE: f64 = 0.8;
const BELOW: f64 = 0.25;
/// The character in place of words that were cut off.
const CUT: char = '…';

/// The place that words take, pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

impl Bounds {
    /// Of words; `None` for other things.
    pub(crate) fn of(item: &Item) -> Option<Self> {
        let Item::Text { at: (x, y), text, size, anchor, upward, .. } = item else { return None };
        let length = width(text, *size);
        let before = length
            * match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => 0.5,
                Anchor::End => 1.0,
            };
        let (above, below) = (size * ABOVE, size * BELOW);
        Some(match upward {
            false => Self {
                left: x - before,
                right: x - before + length,
                top: y - above,
                bottom: y + below,
            },
            true => Self {
                left: x - above,
                right: x + below,
                top: y + before - length,
                bottom: y + before,
            },
        })
    }

    /// Returns true where both cover the same place.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    /// Returns true where all of it lies in `outer`.
    pub(crate) fn is_inside(&self, outer: &Self) -> bool {
        self.left >= outer.left
            && self.right <= outer.right
            && self.top >= outer.top
            && self.bottom <= outer.bottom
    }
}

/// Words that were placed in a picture.
#[derive(Debug)]
pub(crate) struct Labels {
    picture: Bounds,
    placed: Vec<(Bounds, Item)>,
}

impl Labels {
    /// None yet, in a picture of this size.
    pub(crate) fn new((width, height): (f64, f64)) -> Self {
        let picture = Bounds { left: 0.0, right: width, top: 0.0, bottom: height };
        Self { picture, placed: Vec::new() }
    }

    /// Places words; not where they would cover others or leave the picture.
    pub(crate) fn place(&mut self, words: Item) {
        self.place_within(self.picture, words);
    }

    /// Places words that may not leave this part of the picture either.
    pub(crate) fn place_within(&mut self, part: Bounds, words: Item) {
        if self.has_room(part, &words)
            && let Some(bounds) = Bounds::of(&words)
        {
            self.placed.push((bounds, words));
        }
    }

    /// Returns true where these words may stand where they are in this part of the picture: there
    /// are some, and they cover no others.
    pub(crate) fn has_room(&self, part: Bounds, words: &Item) -> bool {
        let is_empty = matches!(words, Item::Text { text, .. } if text.is_empty());
        Bounds::of(words).filter(|_| !is_empty).is_some_and(|bounds| {
            let is_free = self.placed.iter().all(|(taken, _)| !taken.covers(&bounds));
            is_free && bounds.is_inside(&part)
        })
    }

    /// All of them.
    pub(crate) fn finish(self) -> Vec<Item> {
        self.placed.into_iter().map(|(_, words)| words).collect()
    }
}

/// The most width that words take, wherever they are shown, pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    font::width(text, size) * WIDER
}

/// The words, their end cut off where they are wider than the room.
pub(crate) fn fitted(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let room = room - width("…", size);
    let (mut kept, mut taken) = (String::new(), 0.0);
    for c in text.chars() {
        taken += width(c.encode_utf8(&mut [0; 4]), size);
        if taken > room {
            break;
        }
        kept.push(c);
    }
    let mut kept = kept.trim_end().to_owned();
    if room > 0.0 {
        kept.push(CUT);
    }
    kept
}

/// The words in so many lines at most, none wider than the room: broken between words, the last
/// line cut off where they are too many.
pub(crate) fn wrapped(text: &str, size: f64, room: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_full = lines.len() >= most.max(1);
        match lines.last_mut() {
            Some(line) if is_full || width(&format!("{line} {word}"), size) <= room => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| fitted(line, size, room)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Ink;

    fn words(at: (f64, f64), text: &str) -> Item {
        let (anchor, ink) = (Anchor::Middle, Ink::Text);
        Item::Text { at, text: text.to_owned(), size: 12.0, anchor, ink, upward: false }
    }

    #[test]
    fn words_that_would_cover_others_or_leave_are_left_out() {
        let mut labels = Labels::new((200.0, 40.0));
        labels.place(words((100.0, 20.0), "first"));
        labels.place(words((105.0, 22.0), "covers"));
        labels.place(words((2.0, 20.0), "leaves"));
        labels.place(words((100.0, 35.0), "below"));
        labels.place(words((100.0, 35.0), ""));
        let upward = |item| match item {
            Item::Text { at, text, size, anchor, ink, .. } => {
                Item::Text { at, text, size, anchor, ink, upward: true }
            }
            item => item,
        };
        labels.place(upward(words((12.0, 20.0), "turn")));
        let placed = labels.finish();
        let texts: Vec<&str> = placed
            .iter()
            .filter_map(|item| match item {
                Item::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(texts, ["first", "below", "turn"]);
    }

    #[test]
    fn what_is_too_long_is_cut_or_broken_between_words() {
        assert_eq!(fitted("short", 12.0, 100.0), "short");
        let cut = fitted("a name that is far too long for its room", 12.0, 100.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 100.0, "{cut}");
        assert_eq!(fitted("none", 12.0, 0.0), "");
        let lines = wrapped("Graphics Master, CE 2.12 loaded", 12.0, 80.0, 3);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 12.0) <= 80.0), "{lines:?}");
        assert_eq!(lines.concat().replace(' ', ""), "GraphicsMaster,CE2.12loaded");
        assert_eq!(wrapped("a b c d e f g h i", 12.0, 12.0, 2).len(), 2);
        assert!(wrapped("", 12.0, 12.0, 2).is_empty());
    }
}
