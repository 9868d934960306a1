//! Applying and reverting on settings that are made up, with faults at every step.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use super::*;

const BOOT: &str = "boot-1";
/// A group, and a setting in it.
const GROUP: &str = "/sys/fs/cgroup/punctual.isolated/";
const INSIDE: &str = "/sys/fs/cgroup/punctual.isolated/cpuset.cpus";

/// A setting of a CPU, and the CPUs that are online.
const GOVERNOR: &str = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor";
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// A file that shows all of its switches, and takes the word of one.
const SWITCHES: &str = "/sys/kernel/debug/sched/features";
const SWITCHES_BEFORE: &str = "PLACE_LAG RT_RUNTIME_SHARE NO_HRTICK \n";

/// A fault of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Writing gives this error.
    Errno(i32),
    /// Writing gives this error and changes the text all the same.
    TakenAndErrno(i32),
    /// Writing is accepted and the text becomes another.
    Lie,
    /// Writing is accepted and the text becomes another each time.
    Drift,
    /// Once it was changed it cannot be read.
    Blind,
}

/// The state of the step in which a program was killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kill {
    Before,
    After,
    /// Half of a line is on the disk.
    Torn,
}

/// The machine: settings and disk survive a kill, the count of steps until it does not.
#[derive(Clone, Default)]
struct FakeMachine {
    texts: Rc<RefCell<BTreeMap<String, String>>>,
    faults: Rc<RefCell<BTreeMap<String, Fault>>>,
    disk: Rc<RefCell<Vec<u8>>>,
    full: Rc<Cell<bool>>,
    steps: Rc<Cell<usize>>,
    killed_at: Rc<Cell<Option<(usize, Kill)>>>,
}

fn killed() -> io::Error {
    io::Error::other("killed")
}

impl FakeMachine {
    fn new() -> Self {
        let machine = Self::default();
        let texts = [
            ("/proc/sys/vm/swappiness", "60\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
            ("/sys/devices/virtual/workqueue/cpumask", "ff\n"),
            ("/proc/irq/9/smp_affinity_list", "0-7\n"),
            ("/proc/irq/default_smp_affinity", "ff\n"),
            (ONLINE, "0-7\n"),
            (GOVERNOR, "powersave\n"),
            (GROUP, "none\n"),
            (SWITCHES, SWITCHES_BEFORE),
        ];
        machine.texts.borrow_mut().extend(texts.map(|(path, text)| (path.into(), text.into())));
        machine
    }

    fn wanted() -> Vec<WantedValue> {
        let value = |path: &str, to: &str| WantedValue::new(path, to);
        vec![
            value("/proc/sys/vm/swappiness", "10"),
            value("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
            value("/sys/devices/virtual/workqueue/cpumask", "0f"),
            value("/proc/irq/9/smp_affinity_list", "0-3"),
            value(GOVERNOR, "performance"),
            value(GROUP, "made"),
            value(INSIDE, "3"),
            value(SWITCHES, "NO_RT_RUNTIME_SHARE"),
        ]
    }

    /// Counts a step: whether the program is alive before it, and after it.
    fn step(&self) -> (bool, Option<Kill>) {
        let step = self.steps.get();
        self.steps.set(step + 1);
        match self.killed_at.get() {
            Some((at, kill)) if step == at => (kill != Kill::Before, Some(kill)),
            Some((at, _)) => (step < at, None),
            None => (true, None),
        }
    }

    fn text(&self, path: &str) -> String {
        self.texts.borrow()[path].clone()
    }

    fn apply(&self) -> (Vec<AppliedStep>, Result<(), JournalError>) {
        let mut steps = Vec::new();
        let (mut files, mut store) = (self.clone(), self.clone());
        let done = apply(&Self::wanted(), &mut files, &mut store, BOOT, |step| steps.push(step));
        (steps, done)
    }

    fn revert(&self) -> (Vec<RevertedStep>, Result<(), JournalError>) {
        let mut steps = Vec::new();
        let (mut files, mut store) = (self.clone(), self.clone());
        let done = revert(&mut files, &mut store, BOOT, |step| steps.push(step));
        (steps, done)
    }

    /// The program is gone; the next one counts from 0.
    fn restart(&self) {
        self.killed_at.set(None);
        self.steps.set(0);
    }
}

/// The switches with one of them as it was written; a word that is none is refused.
fn switched(text: &str, written: &str) -> io::Result<String> {
    let name = |word: &str| word.trim_start_matches("NO_").to_owned();
    if !text.split_whitespace().any(|word| name(word) == name(written)) {
        return Err(io::Error::from_raw_os_error(22));
    }
    let word = |word| if name(word) == name(written) { written } else { word };
    let words: Vec<&str> = text.split_whitespace().map(word).collect();
    Ok(words.join(" ") + " \n")
}

impl KnobFiles for FakeMachine {
    fn read(&self, path: &str) -> io::Result<String> {
        if !self.step().0 {
            return Err(killed());
        }
        let text: io::Result<String> =
            self.texts.borrow().get(path).cloned().ok_or(io::ErrorKind::NotFound.into());
        let is_blind = self.faults.borrow().get(path) == Some(&Fault::Blind);
        match text {
            Ok(text) if is_blind && text != "60\n" => Err(io::Error::from_raw_os_error(5)),
            text => text,
        }
    }

    fn write(&mut self, path: &str, value: &str) -> io::Result<()> {
        let (alive, kill) = self.step();
        if !alive {
            return Err(killed());
        }
        assert!(path != INSIDE || !value.is_empty(), "it goes with its group");
        let fault = self.faults.borrow().get(path).copied();
        let mut texts = self.texts.borrow_mut();
        let text = texts.get_mut(path).ok_or(io::ErrorKind::NotFound)?;
        let drifted = (1000 + self.steps.get()).to_string();
        let wanted = match fault {
            Some(Fault::Errno(errno)) => return Err(io::Error::from_raw_os_error(errno)),
            Some(Fault::Lie) => "42",
            Some(Fault::Drift) => &drifted,
            Some(Fault::TakenAndErrno(_) | Fault::Blind) | None => value,
        };
        *text = if path == SWITCHES && fault.is_none() {
            switched(text, wanted)?
        } else if text.contains('[') {
            let plain = text.replace(['[', ']'], "");
            plain.replace(wanted, &format!("[{wanted}]"))
        } else {
            format!("{wanted}\n")
        };
        match (path, value) {
            (GROUP, "made") => drop(texts.insert(INSIDE.to_owned(), "\n".to_owned())),
            (GROUP, _) => drop(texts.remove(INSIDE)),
            _ => {}
        }
        match (fault, kill) {
            (Some(Fault::TakenAndErrno(errno)), _) => Err(io::Error::from_raw_os_error(errno)),
            (_, Some(_)) => Err(killed()),
            _ => Ok(()),
        }
    }
}

impl TuningStore for FakeMachine {
    fn load(&mut self) -> io::Result<Vec<u8>> {
        if self.step().0 { Ok(self.disk.borrow().clone()) } else { Err(killed()) }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let (alive, kill) = self.step();
        if !alive {
            return Err(killed());
        }
        if self.full.get() {
            return Err(io::Error::from_raw_os_error(28));
        }
        let length = if kill == Some(Kill::Torn) { line.len() / 2 } else { line.len() };
        self.disk.borrow_mut().extend_from_slice(&line[..length]);
        kill.map_or(Ok(()), |_| Err(killed()))
    }

    fn cut(&mut self, length: usize) -> io::Result<()> {
        let (alive, kill) = self.step();
        if !alive {
            return Err(killed());
        }
        self.disk.borrow_mut().truncate(length);
        kill.map_or(Ok(()), |_| Err(killed()))
    }
}

#[test]
fn what_is_applied_comes_back_byte_for_byte() {
    let machine = FakeMachine::new();
    let before = machine.texts.borrow().clone();
    let (steps, done) = machine.apply();
    done.unwrap();
    assert!(steps.iter().all(|step| matches!(step.outcome, StepOutcome::Applied)), "{steps:?}");
    assert_eq!(
        machine.text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "always [madvise] never\n"
    );
    // Again: nothing is written, and the way back is the same.
    let (again, done) = machine.apply();
    done.unwrap();
    assert!(again.iter().all(|step| matches!(step.outcome, StepOutcome::Already)), "{again:?}");
    let (steps, done) = machine.revert();
    done.unwrap();
    assert!(steps.iter().all(|s| matches!(s.outcome, RevertOutcome::Restored)), "{steps:?}");
    assert_eq!(*machine.texts.borrow(), before);
    assert!(machine.disk.borrow().is_empty());
}

#[test]
fn a_kill_at_any_step_of_apply_loses_nothing() {
    let mut trials = 0;
    for kill in [Kill::Before, Kill::After, Kill::Torn] {
        for at in 0.. {
            let machine = FakeMachine::new();
            let before = machine.texts.borrow().clone();
            machine.killed_at.set(Some((at, kill)));
            let _ended = machine.apply();
            let finished = machine.steps.get() <= at;
            machine.restart();
            // Some continue, some go back at once: both ways lead back.
            if at % 2 == 0 {
                machine.apply().1.unwrap();
            }
            let (steps, done) = machine.revert();
            done.unwrap_or_else(|why| panic!("{why} at {at}, {kill:?}"));
            assert!(!steps.iter().any(|s| s.outcome.is_open()), "{at} {kill:?}: {steps:?}");
            assert_eq!(*machine.texts.borrow(), before, "{at}, {kill:?}");
            trials += 1;
            if finished {
                break;
            }
        }
    }
    assert!(trials > 40, "{trials} trials");
}

#[test]
fn a_kill_at_any_step_of_revert_is_made_good_by_the_next() {
    for kill in [Kill::Before, Kill::After] {
        for at in 0.. {
            let machine = FakeMachine::new();
            let before = machine.texts.borrow().clone();
            machine.apply().1.unwrap();
            machine.restart();
            machine.killed_at.set(Some((at, kill)));
            let _ended = machine.revert();
            let finished = machine.steps.get() <= at;
            machine.restart();
            machine.revert().1.unwrap();
            assert_eq!(*machine.texts.borrow(), before, "{at}, {kill:?}");
            if finished {
                break;
            }
        }
    }
}

#[test]
fn refused_and_lying_settings_are_named_and_left_as_they_were() {
    let faults =
        [Fault::Errno(16), Fault::Errno(5), Fault::Errno(30), Fault::TakenAndErrno(5), Fault::Lie];
    for fault in faults {
        let machine = FakeMachine::new();
        let before = machine.texts.borrow().clone();
        let path = "/proc/sys/vm/swappiness";
        machine.faults.borrow_mut().insert(path.to_owned(), fault);
        let (steps, done) = machine.apply();
        done.unwrap();
        match (&steps[0].outcome, fault) {
            (StepOutcome::Refused(why), Fault::Errno(errno) | Fault::TakenAndErrno(errno)) => {
                assert_eq!(why.raw_os_error(), Some(errno));
            }
            (StepOutcome::Lies { shows, restored: false }, Fault::Lie) => assert_eq!(shows, "42\n"),
            unexpected => panic!("{unexpected:?}"),
        }
        assert!(matches!(steps[1].outcome, StepOutcome::Applied), "the others go on");
        let entries = TuningJournal::parse(&machine.disk.borrow()).unwrap().entries;
        let is_refused = matches!(fault, Fault::Errno(_));
        assert!(entries[0].is_changed() != is_refused && entries[1].is_changed(), "{fault:?}");
        let refusal = match fault {
            Fault::Errno(number) | Fault::TakenAndErrno(number) => Some(Errno(number)),
            _ => None,
        };
        assert_eq!((entries[0].refusal, entries[1].refusal), (refusal, None));
        machine.faults.borrow_mut().clear();
        machine.revert().1.unwrap();
        assert_eq!(*machine.texts.borrow(), before, "{fault:?}");
    }
}

#[test]
fn what_the_machine_has_not_is_told_from_what_is_closed_now() {
    let [irq, aspm, swappiness] = [
        "/proc/irq/36/smp_affinity_list",
        "/sys/module/pcie_aspm/parameters/policy",
        "/proc/sys/vm/swappiness",
    ];
    let is_impossible = |path, outcome| {
        AppliedStep { wanted: WantedValue::new(path, "0"), outcome }.impossible_here().is_some()
    };
    let errno = std::io::Error::from_raw_os_error;
    let refused = |path, number| is_impossible(path, StepOutcome::Refused(errno(number)));
    assert!(refused(irq, 1) && refused(irq, 5) && refused(aspm, 1), "kept by the kernel");
    assert!(refused(swappiness, 95));
    // The journal keeps the reason.
    let entry = |path: &str, refusal| JournalEntry {
        path: path.to_owned(),
        old: "1\n".to_owned(),
        new: "0".to_owned(),
        took: Some("1\n".to_owned()),
        refusal,
    };
    assert!(entry(irq, Some(Errno(5))).impossible_here().is_some());
    assert!(entry(irq, Some(Errno(16))).impossible_here().is_none());
    assert!(entry(irq, None).impossible_here().is_none());
    assert!(is_impossible(swappiness, StepOutcome::Unreadable(errno(2))));
    // Rights, a read-only file system, a busy device, a wrong value: another try may set these.
    for number in [13, 16, 22, 30] {
        assert!(!refused(irq, number) && !refused(aspm, number), "{number}");
    }
    assert!(!refused(swappiness, 1) && !is_impossible(swappiness, StepOutcome::Applied));
    let lies = StepOutcome::Lies { shows: String::new(), restored: true };
    assert!(!is_impossible(irq, lies));
}

#[test]
fn a_setting_that_drifts_or_cannot_be_read_back_is_put_back_later() {
    let path = "/proc/sys/vm/swappiness";
    for fault in [Fault::Drift, Fault::Blind] {
        let machine = FakeMachine::new();
        let before = machine.texts.borrow().clone();
        machine.faults.borrow_mut().insert(path.to_owned(), fault);
        let (steps, done) = machine.apply();
        done.unwrap();
        match (&steps[0].outcome, fault) {
            (StepOutcome::Lies { restored: false, .. }, Fault::Drift)
            | (StepOutcome::Unverified(_), Fault::Blind) => {}
            unexpected => panic!("{unexpected:?}"),
        }
        machine.faults.borrow_mut().clear();
        machine.revert().1.unwrap();
        assert_eq!(*machine.texts.borrow(), before, "{fault:?}");
    }
    // It drifts only when it is put back; others were applied after it.
    let machine = FakeMachine::new();
    let before = machine.texts.borrow().clone();
    machine.apply().1.unwrap();
    machine.faults.borrow_mut().insert(path.to_owned(), Fault::Drift);
    for _ in 0..2 {
        let (steps, done) = machine.revert();
        done.unwrap();
        let outcome = &steps.iter().find(|s| s.entry.path == path).unwrap().outcome;
        assert!(matches!(outcome, RevertOutcome::Differs { .. }), "{outcome:?}");
    }
    machine.faults.borrow_mut().clear();
    machine.revert().1.unwrap();
    assert_eq!(*machine.texts.borrow(), before);
    assert!(machine.disk.borrow().is_empty());
}

#[test]
fn what_somebody_else_changed_is_left_and_reported() {
    let machine = FakeMachine::new();
    machine.apply().1.unwrap();
    machine.texts.borrow_mut().insert("/proc/sys/vm/swappiness".to_owned(), "33\n".to_owned());
    let (steps, done) = machine.revert();
    done.unwrap();
    let outcome = &steps.iter().find(|s| s.entry.path.ends_with("swappiness")).unwrap().outcome;
    assert!(matches!(outcome, RevertOutcome::Changed { now } if now == "33"), "{outcome:?}");
    assert_eq!(machine.text("/proc/sys/vm/swappiness"), "33\n");
    assert_eq!(machine.text("/proc/irq/9/smp_affinity_list"), "0-7\n");
}

#[test]
fn what_cannot_be_put_back_stays_in_the_journal() {
    let machine = FakeMachine::new();
    let before = machine.texts.borrow().clone();
    machine.apply().1.unwrap();
    let path = "/proc/irq/9/smp_affinity_list";
    machine.faults.borrow_mut().insert(path.to_owned(), Fault::Errno(5));
    let (steps, done) = machine.revert();
    done.unwrap();
    assert!(steps.iter().any(|s| s.entry.path == path && s.outcome.is_open()), "{steps:?}");
    assert!(!machine.disk.borrow().is_empty());
    machine.faults.borrow_mut().clear();
    machine.revert().1.unwrap();
    assert_eq!(*machine.texts.borrow(), before);
}

#[test]
fn a_full_disk_stops_before_the_setting_is_touched() {
    let machine = FakeMachine::new();
    let before = machine.texts.borrow().clone();
    machine.full.set(true);
    assert!(matches!(machine.apply().1, Err(JournalError::Store(_))));
    assert_eq!(*machine.texts.borrow(), before);
}

const IRQ: &str = "/proc/irq/25/";

#[test]
fn cpus_are_compared_by_the_format_of_their_file() {
    let list = |text: &str, value: &str| says(&format!("{IRQ}smp_affinity_list"), text, value);
    assert!(!list("0,2\n", "2") && !list("0,2\n", "02") && !list("1-2\n", "12"));
    assert!(list("0-3\n", "0,1-3") && list("2\n", "2") && !list("10\n", "010,1"));
    let mask = |text: &str, value: &str| says(&format!("{IRQ}smp_affinity"), text, value);
    assert!(mask("0f\n", "f") && mask("00000000,0000000F\n", "f") && !mask("0,2\n", "0-2"));
    assert!(!mask("1,00000000\n", "100000000") && !mask("f\n", "0-3"));
    // What shows no CPUs is a word, digits or not.
    let word = |text: &str, value: &str| says("/proc/sys/vm/stat_interval", text, value);
    assert!(word("10\n", "10") && !word("1,0\n", "10") && !word("A\n", "a"));
    let watchdog = |text: &str| says("/proc/sys/kernel/watchdog_cpumask", text, "2");
    assert!(watchdog("2\n") && !watchdog("0,2\n"));
    let cpuset = |text: &str| says("/sys/fs/cgroup/x/cpuset.cpus", text, "1-3");
    assert!(cpuset("1-3\n") && !cpuset("1,3\n"));
}

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

#[test]
fn a_setting_that_was_applied_again_is_one_that_goes_back_to_the_beginning() {
    let [swappiness, irq] = ["/proc/sys/vm/swappiness", "/proc/irq/9/smp_affinity_list"];
    let machine = FakeMachine::new();
    let before = machine.texts.borrow().clone();
    machine.faults.borrow_mut().insert(irq.to_owned(), Fault::Errno(5));
    for swapped in ["10", "20", "20"] {
        let wanted = [WantedValue::new(swappiness, swapped), WantedValue::new(irq, "0-3")];
        let (mut files, mut store) = (machine.clone(), machine.clone());
        apply(&wanted, &mut files, &mut store, BOOT, |_| {}).unwrap();
    }
    let entries = TuningJournal::parse(&machine.disk.borrow()).unwrap().entries;
    let shown = |entry: &JournalEntry| {
        let JournalEntry { path, old, new, took, .. } = entry;
        (path.clone(), old.clone(), new.clone(), took.clone(), entry.could_not_be_set())
    };
    let text = str::to_owned;
    let expected = [
        (text(swappiness), text("60\n"), text("20"), Some(text("20\n")), false),
        (text(irq), text("0-7\n"), text("0-3"), Some(text("0-7\n")), true),
    ];
    assert_eq!(entries.iter().map(shown).collect::<Vec<_>>(), expected);
    assert!(entries[1].impossible_here().is_some());
    let (steps, done) = machine.revert();
    done.unwrap();
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert_eq!(*machine.texts.borrow(), before);
    // A value that is refused leaves the one that was applied, as such.
    let swapped = |value: &str| {
        let (mut files, mut store) = (machine.clone(), machine.clone());
        apply(&[WantedValue::new(swappiness, value)], &mut files, &mut store, BOOT, |_| {})
            .unwrap();
    };
    swapped("10");
    machine.faults.borrow_mut().insert(swappiness.to_owned(), Fault::Errno(22));
    swapped("-1");
    machine.faults.borrow_mut().clear();
    let entries = TuningJournal::parse(&machine.disk.borrow()).unwrap().entries;
    assert_eq!((entries.len(), entries[0].new.as_str()), (1, "10"), "{entries:?}");
    machine.revert().1.unwrap();
    assert_eq!(*machine.texts.borrow(), before);
    // What somebody else changed between is theirs.
    swapped("10");
    machine.texts.borrow_mut().insert(text(swappiness), text("33\n"));
    swapped("10");
    machine.revert().1.unwrap();
    assert_eq!(machine.text(swappiness), "33\n");
}

#[test]
fn a_kill_at_any_step_of_a_second_apply_loses_nothing() {
    let path = "/proc/sys/vm/swappiness";
    for kill in [Kill::Before, Kill::After, Kill::Torn] {
        for at in 0.. {
            let machine = FakeMachine::new();
            let before = machine.texts.borrow().clone();
            machine.apply().1.unwrap();
            machine.restart();
            machine.killed_at.set(Some((at, kill)));
            let (mut files, mut store) = (machine.clone(), machine.clone());
            let wanted = [WantedValue::new(path, "20")];
            let _ended = apply(&wanted, &mut files, &mut store, BOOT, |_| {});
            let finished = machine.steps.get() <= at;
            machine.restart();
            machine.revert().1.unwrap();
            assert_eq!(*machine.texts.borrow(), before, "{at}, {kill:?}");
            if finished {
                break;
            }
        }
    }
}

#[test]
fn of_a_file_of_switches_the_one_that_was_set_goes_back() {
    let machine = FakeMachine::new();
    let (steps, done) = machine.apply();
    done.unwrap();
    assert!(matches!(steps.last().unwrap().outcome, StepOutcome::Applied), "{steps:?}");
    assert_eq!(machine.text(SWITCHES), "PLACE_LAG NO_RT_RUNTIME_SHARE NO_HRTICK \n");
    // Another one that somebody changed since stays.
    let (now, then) =
        ("PLACE_LAG NO_RT_RUNTIME_SHARE HRTICK \n", "PLACE_LAG RT_RUNTIME_SHARE HRTICK \n");
    machine.texts.borrow_mut().insert(SWITCHES.to_owned(), now.to_owned());
    let (steps, done) = machine.revert();
    done.unwrap();
    assert!(steps.iter().all(|s| matches!(s.outcome, RevertOutcome::Restored)), "{steps:?}");
    assert_eq!(machine.text(SWITCHES), then);
}
