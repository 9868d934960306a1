//! What a child that has ended leaves in its block: taken once, however often it is looked at.

use std::vec;
use std::vec::Vec;

use super::{
    Admission, ClientStep, Entered, Span, TaskClient, TaskServer, at, clear, memory, terms, words,
};

#[test]
fn results_of_a_child_that_has_ended_are_taken_once() {
    for cycles in [1, 5, 20] {
        let memory = memory(words(2));
        let (admission, mut done) = (Admission::new(), Vec::new());
        let mut server = TaskServer::new(&memory, terms(0)).expect("large enough");
        let mut client = TaskClient::open(&memory).expect("a task block");
        client.ask(7);
        admission.open(1);
        let release = |cycle| terms(0).releases.release(cycle);
        for cycle in 0..cycles {
            let entered =
                server.enter(&admission, release(cycle), |result| done.push(result.cycle));
            assert_eq!(entered, Entered::Open);
            server.harvest(release(cycle), |result| done.push(result.cycle));
            server.post(cycle, false);
            assert_eq!(client.turn(), ClientStep::Run);
            let _cycle = client.begin(release(cycle));
            client.done(release(cycle) + Span::from_ns(10));
        }
        admission.close(1);
        let now = release(cycles);
        let entered = server.enter(&admission, now, |result| done.push(result.cycle));
        assert_eq!(entered, Entered::Left(None));
        // The end of the executive; and again while the next child is made ready.
        server.harvest(now, |result| done.push(result.cycle));
        clear(&memory, &terms(0));
        server.harvest(now, |result| done.push(result.cycle));
        assert_eq!((done, server.invalid()), ((0..cycles).collect(), 0));
        assert_eq!(server.unclaimed(), None);
        admission.open(2);
        assert_eq!(server.enter(&admission, now, |_| ()), Entered::Open);
    }
}

#[test]
fn a_last_result_after_the_stamp_keeps_its_child_until_the_next_look() {
    let memory = memory(words(2));
    let (admission, mut done) = (Admission::new(), Vec::new());
    let mut server = TaskServer::new(&memory, terms(0)).expect("large enough");
    let mut client = TaskClient::open(&memory).expect("a task block");
    client.ask(7);
    admission.open(1);
    let (now, later) = (at(5_000), at(5_000) + Span::from_us(101));
    assert_eq!(server.enter(&admission, now, |_| ()), Entered::Open);
    server.post(0, false);
    assert_eq!(client.turn(), ClientStep::Run);
    let _cycle = client.begin(now);
    client.done(later);
    admission.close(1);
    assert_eq!(server.enter(&admission, now, |_| ()), Entered::Closed);
    assert!(!admission.is_left(1));
    assert_eq!(
        server.enter(&admission, later, |result| done.push(result.cycle)),
        Entered::Left(None)
    );
    assert_eq!((admission.is_left(1), done, server.invalid()), (true, vec![0], 0));
}
