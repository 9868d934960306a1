//! The journal itself: damaged, foreign, cut in its last line, kept while there is more to do.

use super::*;

#[test]
fn a_damaged_or_foreign_journal_changes_nothing() {
    let machine = FakeMachine::new();
    machine.apply().1.unwrap();
    let (after, good) = (machine.texts.borrow().clone(), machine.disk.borrow().clone());
    for at in 0..good.len() - 1 {
        machine.disk.borrow_mut().clone_from(&good);
        machine.disk.borrow_mut()[at] ^= 1;
        assert!(machine.revert().1.is_err(), "byte {at}");
        assert!(machine.apply().1.is_err(), "byte {at}");
        assert_eq!(*machine.texts.borrow(), after, "byte {at}");
        assert_eq!(machine.disk.borrow().len(), good.len());
    }
    for foreign in ["{}\n", "x", "tuned 1\n"] {
        *machine.disk.borrow_mut() = foreign.as_bytes().to_vec();
        assert!(matches!(machine.revert().1, Err(JournalError::Foreign)), "{foreign:?}");
        assert!(matches!(machine.apply().1, Err(JournalError::Foreign)), "{foreign:?}");
    }
}

#[test]
fn a_revert_goes_on_after_a_torn_last_line() {
    // Killed in the middle of a line; then a setting drifts, of which a line is written.
    let machine = FakeMachine::new();
    let before = machine.texts.borrow().clone();
    machine.apply().1.unwrap();
    let torn = machine.disk.borrow().len() - 7;
    machine.disk.borrow_mut().truncate(torn);
    let path = "/proc/sys/vm/swappiness";
    machine.faults.borrow_mut().insert(path.to_owned(), Fault::Drift);
    machine.revert().1.unwrap();
    machine.faults.borrow_mut().clear();
    machine.revert().1.unwrap();
    assert_eq!(*machine.texts.borrow(), before);
    assert!(machine.disk.borrow().is_empty());
}

#[test]
fn what_is_put_back_stays_in_the_journal_until_it_is_emptied() {
    let machine = FakeMachine::new();
    let before = machine.texts.borrow().clone();
    machine.apply().1.unwrap();
    let journal = machine.disk.borrow().clone();
    let (mut files, mut store) = (machine.clone(), machine.clone());
    assert!(!put_back(&mut files, &mut store, BOOT, |_| {}).unwrap());
    assert_eq!(*machine.texts.borrow(), before);
    assert_eq!(*machine.disk.borrow(), journal);
    let (steps, done) = machine.revert();
    done.unwrap();
    assert!(steps.iter().all(|step| matches!(step.outcome, RevertOutcome::AsBefore)), "{steps:?}");
}
