//! One page of the kernel's ring of ftrace.

/// The bits of a page's `commit` that count its bytes of data.
const COMMIT_BYTES: u64 = 0x000f_ffff;

/// Records were dropped before this page, `RB_MISSED_EVENTS`.
const COMMIT_MISSED: u64 = 1 << 31;

/// The number of dropped records stands behind its data, `RB_MISSED_STORED`.
const COMMIT_COUNTED: u64 = 1 << 30;

/// `RINGBUF_TYPE_PADDING`, `_TIME_EXTEND` and `_TIME_STAMP`; below them, words of data.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Bits of a record's head that hold the time since the record before.
const DELTA_BITS: u32 = 27;

/// The next item of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageItem {
    /// Records were dropped; `count` is 0 where they were not counted.
    Lost { at_ns: u64, count: u64 },
    /// A record, between these bytes.
    Record { at_ns: u64, start: usize, end: usize },
    /// A record reaches beyond the data: nothing behind it is read.
    Damaged,
}

/// A page, and how far it was read.
#[derive(Debug, Default)]
pub(super) struct Page {
    bytes: Vec<u8>,
    at: usize,
    end: usize,
    at_ns: u64,
    lost: Option<u64>,
}

impl Page {
    /// From all its bytes, of which the first are its head: its time and its `commit`.
    pub(super) fn new(bytes: Vec<u8>, head_bytes: usize) -> Self {
        let mut page = Self { at: head_bytes, end: head_bytes, bytes, ..Self::default() };
        let Some(&time) = page.bytes.first_chunk() else { return page };
        page.at_ns = u64::from_le_bytes(time);
        // Four bytes of a kernel of 32 bits, eight of others; the upper four are not used.
        let commit = u64::from(page.word(8).unwrap_or(0));
        let data = usize::try_from(commit & COMMIT_BYTES).unwrap_or(0);
        page.end = (head_bytes + data).min(page.bytes.len());
        if commit & COMMIT_MISSED != 0 {
            let is_counted = commit & COMMIT_COUNTED != 0;
            let count = page.bytes.get(page.end..).and_then(|rest| rest.first_chunk());
            let count = count.filter(|_| is_counted).map_or(0, |count| u64::from_le_bytes(*count));
            page.lost = Some(count);
        }
        page
    }

    pub(super) fn bytes(&self, start: usize, end: usize) -> &[u8] {
        self.bytes.get(start..end).unwrap_or_default()
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
    }

    /// The next record; nothing at the end of the page.
    pub(super) fn next_item(&mut self) -> Option<PageItem> {
        if let Some(count) = self.lost.take() {
            return Some(PageItem::Lost { at_ns: self.at_ns, count });
        }
        while self.at + 4 <= self.end {
            let head = self.word(self.at)?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let behind = self.at + 4;
            let next = self.word(behind).filter(|_| behind + 4 <= self.end);
            match kind {
                // The rest of the page is empty, or a record was taken back.
                PADDING if delta == 0 => {
                    self.at = self.end;
                    return None;
                }
                PADDING => {
                    let Some(bytes) = next else { return self.damaged() };
                    self.at_ns = self.at_ns.wrapping_add(delta);
                    self.at = behind.saturating_add(bytes as usize);
                }
                TIME_EXTEND => {
                    let Some(high) = next else { return self.damaged() };
                    let more = (u64::from(high) << DELTA_BITS) + delta;
                    self.at_ns = self.at_ns.wrapping_add(more);
                    self.at = behind + 4;
                }
                // A time as such, without its upper five bits.
                TIME_STAMP => {
                    let Some(high) = next else { return self.damaged() };
                    let low = (u64::from(high) << DELTA_BITS) + delta;
                    self.at_ns = self.at_ns & (31 << 59) | low;
                    self.at = behind + 4;
                }
                _ => {
                    self.at_ns = self.at_ns.wrapping_add(delta);
                    // 0: too long for the head; the length stands behind it, and counts itself.
                    let (start, bytes) = match (kind, next) {
                        (0, Some(bytes)) => (behind + 4, (bytes as usize).saturating_sub(4)),
                        (0, None) => return self.damaged(),
                        (words, _) => (behind, words as usize * 4),
                    };
                    let end = start.saturating_add(bytes);
                    if end > self.end {
                        return self.damaged();
                    }
                    self.at = end.next_multiple_of(4);
                    return Some(PageItem::Record { at_ns: self.at_ns, start, end });
                }
            }
        }
        None
    }

    fn damaged(&mut self) -> Option<PageItem> {
        self.at = self.end;
        Some(PageItem::Damaged)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, proptest};

    use super::{COMMIT_COUNTED, COMMIT_MISSED, Page, PageItem};

    fn page(commit: u64, words: &[u32]) -> Page {
        let mut bytes = 1000u64.to_le_bytes().to_vec();
        bytes.extend(commit.to_le_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        Page::new(bytes, 16)
    }

    fn items(mut page: Page) -> Vec<PageItem> {
        std::iter::from_fn(|| page.next_item()).collect()
    }

    #[test]
    fn records_of_each_kind() {
        let words = [
            2 | 10 << 5, // two words, 10 ns later
            1,
            2,
            30 | 5 << 5, // 5 + (1 << 27) ns pass
            1,
            29 | 7 << 5, // eight bytes with a record that was taken back, 7 ns later
            8,
            0,
            1 << 5, // a length of its own: 8 bytes with itself
            8,
            3,
            31 | 9 << 5, // a time as such
            2,
            1 << 5 | 1,
            4,
            29, // the rest is empty
            77,
        ];
        let record = |at_ns, start, end| PageItem::Record { at_ns, start, end };
        let later = 1010 + 5 + (1 << 27) + 7 + 1;
        assert_eq!(
            items(page(17 * 4, &words)),
            [record(1010, 20, 28), record(later, 56, 60), record((2 << 27) + 9 + 1, 72, 76),]
        );
    }

    #[test]
    fn what_was_lost_comes_first() {
        let words = [1 | 1 << 5, 5, 12, 0];
        let commit = 8 | COMMIT_MISSED;
        let record = PageItem::Record { at_ns: 1001, start: 20, end: 24 };
        assert_eq!(items(page(commit, &words)), [PageItem::Lost { at_ns: 1000, count: 0 }, record]);
        assert_eq!(
            items(page(commit | COMMIT_COUNTED, &words)),
            [PageItem::Lost { at_ns: 1000, count: 12 }, record]
        );
    }

    #[test]
    fn a_record_that_reaches_beyond_is_damage() {
        assert_eq!(items(page(8, &[2 | 1 << 5, 5, 6])), [PageItem::Damaged]);
        assert_eq!(items(page(4, &[0])), [PageItem::Damaged]);
        assert_eq!(items(page(0, &[])), []);
        assert_eq!(items(Page::new(vec![1], 16)), []);
    }

    proptest! {
        #[test]
        fn any_page_ends(bytes in vec(any::<u8>(), 0..200), head in 12usize..17) {
            let mut page = Page::new(bytes, head);
            while let Some(item) = page.next_item() {
                if let PageItem::Record { start, end, .. } = item {
                    assert_eq!(page.bytes(start, end).len(), end - start);
                }
            }
        }
    }
}
