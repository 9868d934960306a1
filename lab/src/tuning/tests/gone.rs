//! Reverting settings that are not there: what went with a boot, a CPU or an interrupt is done
//! with, what is hidden is not.

use super::*;

#[test]
fn a_reboot_and_an_unplugged_cpu_leave_nothing_to_put_back() {
    let machine = FakeMachine::new();
    machine.apply().1.unwrap();
    let (mut files, mut store) = (machine.clone(), machine.clone());
    let after = machine.texts.borrow().clone();
    revert(&mut files, &mut store, "boot-2", |step| panic!("{step:?}")).unwrap();
    assert_eq!(*machine.texts.borrow(), after);
    assert!(machine.disk.borrow().is_empty());
    let machine = FakeMachine::new();
    machine.apply().1.unwrap();
    let went = ["/proc/irq/9/smp_affinity_list", GOVERNOR];
    for path in went {
        machine.texts.borrow_mut().remove(path);
    }
    machine.texts.borrow_mut().insert(ONLINE.to_owned(), "0-2\n".to_owned());
    let (steps, done) = machine.revert();
    done.unwrap();
    let is_gone = |step: &RevertedStep| matches!(step.outcome, RevertOutcome::Gone);
    let is_right = |step: &RevertedStep| is_gone(step) == went.contains(&step.entry.path.as_str());
    assert!(steps.iter().all(is_right), "{steps:?}");
    assert!(machine.disk.borrow().is_empty());
}

#[test]
fn what_is_hidden_stays_in_the_journal() {
    let parts =
        ["/proc/sys/", "/proc/irq/", "/sys/devices/system/cpu/cpu3/", "/sys/", "/sys/kernel/"];
    for part in parts {
        let machine = FakeMachine::new();
        let before = machine.texts.borrow().clone();
        machine.apply().1.unwrap();
        let shown = machine.texts.borrow().clone();
        machine.texts.borrow_mut().retain(|path, _| !path.starts_with(part));
        let (steps, done) = machine.revert();
        done.unwrap();
        let is_right =
            |step: &RevertedStep| step.outcome.is_open() == step.entry.path.starts_with(part);
        assert!(steps.iter().all(is_right), "{part}: {steps:?}");
        let hidden = shown.into_iter().filter(|(path, _)| path.starts_with(part));
        machine.texts.borrow_mut().extend(hidden);
        machine.revert().1.unwrap();
        assert_eq!(*machine.texts.borrow(), before, "{part}");
        assert!(machine.disk.borrow().is_empty());
    }
}

#[test]
fn what_an_empty_file_lies_over_stays_in_the_journal() {
    let machine = FakeMachine::new();
    let before = machine.texts.borrow().clone();
    machine.apply().1.unwrap();
    let path = "/proc/sys/vm/swappiness";
    let ours = machine.texts.borrow_mut().insert(path.to_owned(), String::new()).unwrap();
    let (steps, done) = machine.revert();
    done.unwrap();
    let is_right = |step: &RevertedStep| step.outcome.is_open() == (step.entry.path == path);
    assert!(steps.iter().all(is_right), "{steps:?}");
    machine.texts.borrow_mut().insert(path.to_owned(), ours);
    machine.revert().1.unwrap();
    assert_eq!(*machine.texts.borrow(), before);
}
