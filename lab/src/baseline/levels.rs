//! Ready tasks by priority: a queue a level and a bitmap of the levels that have one.
//!
//! For the baselines: the quickest of the common ready queues, so that none of them loses by it.
//! The links lie in the nodes themselves.

use super::design::{LEVELS, NONE, Visit};

/// What can stand in a queue.
pub(super) trait Node {
    /// The link to the one behind it.
    fn next(&mut self) -> &mut u32;
}

/// First and last of a queue.
#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
}

/// Ready tasks.
#[derive(Debug)]
pub(super) struct Levels {
    queues: Vec<Queue>,
    /// A bit a level that has tasks.
    bitmap: u64,
}

impl Levels {
    pub(super) fn new() -> Self {
        Self { queues: vec![Queue { head: NONE, tail: NONE }; LEVELS], bitmap: 0 }
    }

    /// Behind all others of its level.
    #[inline]
    pub(super) fn push(&mut self, nodes: &mut [impl Node], level: u8, node: u32) {
        let bit = 1 << level;
        let queue = &mut self.queues[usize::from(level)];
        *nodes[node as usize].next() = NONE;
        if self.bitmap & bit == 0 {
            queue.head = node;
        } else {
            *nodes[queue.tail as usize].next() = node;
        }
        queue.tail = node;
        self.bitmap |= bit;
    }

    /// The first of the most urgent level.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        (self.bitmap != 0).then(|| self.queues[self.bitmap.trailing_zeros() as usize].head)
    }

    /// Takes the first of a level out.
    #[inline]
    pub(super) fn pop(&mut self, nodes: &mut [impl Node], level: u8) {
        let queue = &mut self.queues[usize::from(level)];
        if queue.head == queue.tail {
            self.bitmap &= !(1 << level);
        }
        queue.head = *nodes[queue.head as usize].next();
    }

    /// Takes any one of a level out.
    pub(super) fn unlink(&mut self, nodes: &mut [impl Node], level: u8, gone: u32) {
        let mut left = Vec::new();
        let mut at = self.queues[usize::from(level)].head;
        while self.bitmap >> level & 1 == 1 && at != NONE {
            left.push(at);
            at = *nodes[at as usize].next();
        }
        self.bitmap &= !(1 << level);
        for node in left.into_iter().filter(|&node| node != gone) {
            self.push(nodes, level, node);
        }
    }

    pub(super) fn visit(&self, visit: &mut impl Visit) {
        visit.part(&self.queues);
        visit.part(std::slice::from_ref(&self.bitmap));
    }
}
