use std::{cell::RefCell, fs, path::Path, process::Command, rc::Rc};

use super::*;
use crate::journal;

/// A recorded machine (an i225 on PREEMPT_RT, its three interrupt threads at 50) whose threads can be set.
#[derive(Debug)]
struct Fake {
    folder: tempfile::TempDir,
    root: Root,
    /// The kernel refuses what comes after so many changes.
    refuses_after: Option<usize>,
    log: RefCell<Vec<String>>,
}

impl Fake {
    fn new(refuses_after: Option<usize>) -> Rc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nics/i225/.");
        assert!(Command::new("cp").arg("-R").args([&recorded, folder.path()]).status().unwrap().success());
        let root = Root::at(folder.path());
        Rc::new(Self { folder, root, refuses_after, log: RefCell::default() })
    }

    /// The same machine, whose kernel refuses nothing more.
    fn again(fake: &Rc<Self>) -> Rc<Self> {
        let folder = tempfile::tempdir().unwrap();
        Rc::new(Self { folder, root: fake.root.clone(), refuses_after: None, log: RefCell::default() })
    }

    fn stat(&self, id: u32) -> std::path::PathBuf {
        self.root.path(&format!("proc/{id}/stat"))
    }

    /// Of the three threads.
    fn scheduled(&self) -> [String; 3] {
        [301, 302, 303].map(|id| Thread::of(&self.root, id).map_or_else(|| "gone".to_owned(), |t| t.scheduled()))
    }

    /// Writes fields 40 and 41 of proc(5).
    fn schedule(&self, id: u32, policy: u8, priority: u8) {
        let stat = fs::read_to_string(self.stat(id)).unwrap();
        let mut fields: Vec<String> = stat.split(' ').map(str::to_owned).collect();
        (fields[39], fields[40]) = (priority.to_string(), policy.to_string());
        fs::write(self.stat(id), fields.join(" ")).unwrap();
    }
}

impl Hands for Rc<Fake> {
    fn root(&self) -> &Root {
        &self.root
    }

    fn set_policy(&self, id: u32, policy: Policy) -> io::Result<()> {
        if self.refuses_after == Some(self.log.borrow().len()) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.log.borrow_mut().push(format!("{id} {policy}"));
        let (number, priority) = match policy {
            Policy::Fifo(priority) => (1, priority),
            _ => (0, 0),
        };
        self.schedule(id, number, priority);
        Ok(())
    }
}

fn take(fake: &Rc<Fake>) -> Result<IrqPriorityHold, IrqPriorityError> {
    IrqPriorityHold::take_with(Box::new(Rc::clone(fake)), "eth0", Policy::Fifo(85))
}

#[test]
fn its_threads_are_set_and_put_back_each_as_it_was() {
    let fake = Fake::new(None);
    fake.schedule(302, 0, 0);
    fake.schedule(303, 1, 85);
    let hold = take(&fake).unwrap();
    assert_eq!(fake.scheduled(), ["fifo:85"; 3]);
    let settings = hold.release();
    assert_eq!(fake.scheduled(), ["fifo:50", "other", "fifo:85"]);
    let told = |s: &Setting| [s.name.clone(), s.before.clone(), s.during.clone(), s.after.clone().unwrap()].join(" ");
    assert_eq!(
        settings.iter().map(told).collect::<Vec<_>>(),
        [
            "eth0 irq/128-eth0 fifo:50 fifo:85 fifo:50",
            "eth0 irq/129-eth0-Tx other fifo:85 other",
            "eth0 irq/130-eth0-Tx fifo:85 fifo:85 fifo:85"
        ]
    );
    assert_eq!(
        *fake.log.borrow(),
        ["301 fifo:85", "302 fifo:85", "302 other", "301 fifo:50"],
        "one was as asked for; the last is put back first"
    );
}

#[test]
fn after_a_crash_the_journal_puts_back_what_nobody_changed_since() {
    let fake = Fake::new(None);
    std::mem::forget(take(&fake).unwrap());
    fake.schedule(303, 1, 70);
    let restored = journal::restore_with(&fake);
    assert_eq!((restored.len(), restored[0].purpose, restored[0].put_back.settings), (1, Purpose::IrqPriority, 2));
    assert_eq!(restored[0].put_back.changed_since, ["irq/130-eth0-Tx: fifo:70"], "someone else's since");
    assert_eq!(fake.scheduled(), ["fifo:50", "fifo:50", "fifo:70"]);
    assert!(journal::restore_with(&fake).is_empty());
}

#[test]
fn a_thread_that_has_come_since_is_another_one() {
    let fake = Fake::new(None);
    std::mem::forget(take(&fake).unwrap());
    // A driver that is set anew asks for its interrupts again; numbers come back.
    let stat = fs::read_to_string(fake.stat(302)).unwrap().replace(" 180 ", " 9999 ");
    fs::write(fake.stat(302), stat).unwrap();
    fs::remove_dir_all(fake.folder.path().join("proc/303")).unwrap();
    let restored = journal::restore_with(&fake);
    let told = &restored[0].put_back;
    assert_eq!((told.settings, told.changed_since.len(), told.failed.len()), (1, 0, 0));
    assert_eq!(fake.scheduled(), ["fifo:50", "fifo:85", "gone"]);
}

#[test]
fn what_is_refused_leaves_nothing_changed() {
    let fake = Fake::new(Some(1));
    let refused = take(&fake).unwrap_err().to_string();
    assert!(refused.starts_with("cannot run irq/129-eth0-Tx as fifo:85"), "{refused}");
    // The one change that was made could not be undone by the same hands: the promise stays.
    let restored = journal::restore_with(&Fake::again(&fake));
    assert_eq!(restored[0].put_back.settings, 1);
    assert_eq!(fake.scheduled(), ["fifo:50"; 3]);

    let fake = Fake::new(None);
    fake.schedule(302, 5, 0);
    let strange = take(&fake).unwrap_err();
    assert!(matches!(strange, IrqPriorityError::Strange { id: 302, .. }), "{strange}");
    assert!(fake.log.borrow().is_empty());
}

#[test]
fn without_threads_there_is_nothing_to_set() {
    let fake = Fake::new(None);
    for id in [301, 302, 303] {
        fs::remove_dir_all(fake.folder.path().join(format!("proc/{id}"))).unwrap();
    }
    let refused = take(&fake).unwrap_err();
    assert!(matches!(&refused, IrqPriorityError::NotThreaded(eth0) if eth0 == "eth0"), "{refused}");
    assert!(refused.to_string().contains("`threadirqs`"));
    fs::remove_file(fake.folder.path().join("proc/2/comm")).unwrap();
    assert!(matches!(take(&fake).unwrap_err(), IrqPriorityError::Hidden));
    let missing = IrqPriorityHold::take_with(Box::new(Rc::clone(&fake)), "eth7", Policy::Fifo(85)).unwrap_err();
    assert!(matches!(missing, IrqPriorityError::Nic(_)), "{missing}");
    assert!(journal::restore_with(&fake).is_empty());
}

/// The threads that are set beside those of interrupts, on a machine that has these, too.
fn taken_beside(fake: &Rc<Fake>, threads: [(u32, &str); 2]) -> Vec<String> {
    for (id, name) in threads {
        let folder = fake.folder.path().join(format!("proc/{id}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("comm"), name).unwrap();
        let stat = fs::read_to_string(fake.stat(302)).unwrap();
        fs::write(folder.join("stat"), stat.replace("302 (irq/129-eth0-Tx)", &format!("{id} ({name})"))).unwrap();
    }
    let names = take(fake).unwrap().release().into_iter().map(|setting| setting.name);
    names.filter(|name| !name.contains(" irq/")).collect()
}

/// Kernels before 6.7 do not tell who polls; the names do.
#[test]
fn polling_threads_are_found_by_name_where_the_kernel_is_silent() {
    let fake = Fake::new(None);
    fs::remove_file(fake.folder.path().join("netlink/eth0/napi.hex")).unwrap();
    let taken = taken_beside(&fake, [(900, "napi/eth0-8193"), (901, "napi/eth01-5")]);
    assert_eq!(taken, ["eth0 napi/eth0-8193"]);
}

/// As virtio's for transmission.
#[test]
fn a_polling_thread_without_a_number_is_found_by_name_always() {
    let fake = Fake::new(None);
    let taken = taken_beside(&fake, [(900, "napi/eth0-0"), (901, "napi/eth01-0")]);
    assert_eq!(taken, ["eth0 napi/eth0-0"]);
}

#[test]
fn what_stays_on_this_machine_goes_over_no_interface() {
    let here = way_to([127, 0, 0, 1].into()).unwrap_err();
    assert!(matches!(here, WayError::Here(_)), "{here}");
}
