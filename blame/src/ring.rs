//! A ring of fixed size whose entries keep their number: the newest push out the oldest.

/// The newest entries of a stream, numbered from 0.
#[derive(Debug, Clone)]
pub(crate) struct Ring<T> {
    slots: Vec<T>,
    capacity: usize,
    written: u64,
    /// The slot of the oldest, which is that of the next once it is full.
    head: usize,
}

impl<T> Ring<T> {
    /// An empty ring for that many entries, one at least. Its memory grows with its first entries.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { slots: Vec::new(), capacity: capacity.max(1), written: 0, head: 0 }
    }

    /// Adds an entry, over the oldest where it is full; returns its number.
    pub(crate) fn push(&mut self, entry: T) -> u64 {
        let number = self.written;
        if self.slots.len() < self.capacity {
            self.slots.push(entry);
        } else {
            self.slots[self.head] = entry;
            self.head = if self.head + 1 == self.capacity { 0 } else { self.head + 1 };
        }
        self.written += 1;
        number
    }

    /// Entries that were ever added, which is the number of the next.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// The number of the oldest that is still there.
    pub(crate) fn oldest(&self) -> u64 {
        self.written - self.slots.len() as u64
    }

    /// Entries that it has room for.
    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// The entry of a number, while it is there.
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        (self.oldest()..self.written).contains(&number).then(|| &self.slots[self.slot(number)])
    }

    /// The newest entry, to be changed.
    pub(crate) fn newest_mut(&mut self) -> Option<&mut T> {
        let number = self.written.checked_sub(1)?;
        let slot = self.slot(number);
        self.slots.get_mut(slot)
    }

    /// The slot of a number that is there. No remainder: that would cost more than all else here.
    fn slot(&self, number: u64) -> usize {
        // Less than the capacity, which is a usize.
        let place = self.head + (number - self.oldest()) as usize;
        if place >= self.slots.len() { place - self.slots.len() } else { place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn is_the_tail_of_what_was_pushed(capacity in 0usize..9, count in 0u64..40) {
            let mut ring = Ring::new(capacity);
            for entry in 0..count {
                prop_assert_eq!(ring.push(entry * 3), entry);
            }
            let kept = count.min(capacity.max(1) as u64);
            prop_assert_eq!(ring.oldest(), count - kept);
            prop_assert_eq!(ring.written(), count);
            for number in 0..count + 2 {
                let wanted = (number >= count - kept && number < count).then_some(number * 3);
                prop_assert_eq!(ring.get(number).copied(), wanted);
            }
            prop_assert_eq!(ring.newest_mut().copied(), count.checked_sub(1).map(|n| n * 3));
        }
    }
}
