use std::{fs, io};

use super::*;
use crate::journal;

/// A machine whose kernel has these monitors. It refuses to enable more than `slots`.
#[derive(Debug)]
struct Fake {
    _folder: tempfile::TempDir,
    root: Root,
    slots: usize,
}

const PAGEFAULT: &str = "sys/kernel/tracing/rv/monitors/rtapp/pagefault/enable";
const SLEEP: &str = "sys/kernel/tracing/rv/monitors/rtapp/sleep/enable";
const STALL: &str = "sys/kernel/tracing/rv/monitors/stall/enable";

impl Fake {
    fn new(slots: usize) -> Rc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let fake = Self { _folder: folder, root, slots };
        fake.put(&format!("{FOLDER}/available_monitors"), "wwnr\nrtapp\nrtapp:sleep\nrtapp:pagefault\nstall\n");
        fake.put(&format!("{FOLDER}/monitoring_on"), "1\n\0");
        for path in [PAGEFAULT, SLEEP, STALL] {
            fake.put(path, "0\n\0");
            fake.put(&path.replace("/enable", "/reactors"), "[nop]\npanic\nprintk\n");
        }
        Rc::new(fake)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.root.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The values of the monitors pagefault, sleep and stall.
    fn enabled(&self) -> [String; 3] {
        [PAGEFAULT, SLEEP, STALL].map(|path| self.root.read(path).unwrap())
    }
}

impl SystemOps for Fake {
    fn root(&self) -> &Root {
        &self.root
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        if text == "1" && self.enabled().iter().filter(|value| *value == "1").count() >= self.slots {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        self.root.write(path, text)
    }
}

fn take(fake: &Rc<Fake>) -> MonitorHold {
    let ops: Rc<dyn SystemOps> = Rc::<Fake>::clone(fake);
    MonitorHold::take_with(&ops)
}

/// The names of the monitors with their problems.
fn problems(hold: &MonitorHold) -> Vec<(&'static str, String)> {
    hold.monitors().into_iter().map(|used| (used.monitor.name(), used.problem)).collect()
}

#[test]
fn enables_the_monitors_that_nobody_has_enabled() {
    let fake = Fake::new(8);
    fake.put(SLEEP, "1\n\0");
    let hold = take(&fake);
    assert_eq!(fake.enabled(), ["1", "1", "1"]);
    assert_eq!(problems(&hold), [("pagefault", ""), ("sleep", ""), ("stall", "")].map(|(a, b)| (a, b.to_owned())));
    let settings = hold.release();
    let values = settings.iter().map(|s| (s.name.as_str(), &*s.before, &*s.during, s.after.as_deref()));
    let expected = [PAGEFAULT, STALL].map(|path| (format!("/{path}"), "0", "1", Some("0")));
    assert!(values.eq(expected.iter().map(|(a, b, c, d)| (a.as_str(), *b, *c, *d))), "{settings:?}");
    assert_eq!(fake.enabled(), ["0", "1", "0"], "the monitor of somebody else stays enabled");
}

#[test]
fn drop_and_journal_disable_them() {
    let fake = Fake::new(8);
    drop(take(&fake));
    assert_eq!(fake.enabled(), ["0", "0", "0"]);
    std::mem::forget(take(&fake));
    fake.put(SLEEP, "0");
    let restored = journal::restore_with(&*fake).unwrap();
    assert_eq!((restored.len(), restored[0].purpose, restored[0].put_back.settings), (1, Purpose::Monitors, 2));
    assert_eq!(fake.enabled(), ["0", "0", "0"]);
    assert!(journal::restore_with(&*fake).unwrap().is_empty());
}

#[test]
fn says_why_a_monitor_does_not_watch() {
    let fake = Fake::new(1);
    fake.put(&PAGEFAULT.replace("/enable", "/reactors"), "nop\n[panic]\nprintk\n");
    let mut hold = take(&fake);
    assert_eq!(fake.enabled(), ["0", "1", "0"]);
    fake.put(SLEEP, "0");
    hold.check();
    let problems_now = problems(&hold).into_iter().map(|(_, problem)| problem);
    assert!(problems_now.eq([
        "it has the reactor panic, not nop",
        "it was disabled during the run",
        "too many other monitors are enabled",
    ]));

    let fake = Fake::new(8);
    fake.put(&format!("{FOLDER}/monitoring_on"), "0\n");
    let hold = take(&fake);
    assert_eq!(fake.enabled(), ["0", "0", "0"]);
    assert!(problems(&hold).iter().all(|(_, problem)| problem.contains("monitoring_on")));

    let fake = Fake::new(8);
    fs::create_dir_all(fake.root.path("run")).unwrap();
    fs::write(fake.root.path("run/punctual"), "no folder").unwrap();
    let hold = take(&fake);
    assert_eq!(fake.enabled(), ["0", "0", "0"], "nothing is changed without a journal");
    assert!(problems(&hold).iter().all(|(_, problem)| problem.contains("journal")));
}

#[test]
fn a_kernel_without_monitors_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let hold = MonitorHold::take(&Root::at(folder.path()));
    assert!(hold.monitors().is_empty() && hold.release().is_empty());
    assert!(!folder.path().join("run").exists(), "no journal");
}
