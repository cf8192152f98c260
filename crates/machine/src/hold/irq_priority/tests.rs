use std::{cell::RefCell, fs, io, path::Path, process::Command};

use super::*;
use crate::journal;

/// A recorded machine (an i225 on PREEMPT_RT with three interrupt threads at 50) whose threads can be changed.
#[derive(Debug)]
struct Fake {
    folder: tempfile::TempDir,
    root: Root,
    /// The number of changes after which the kernel refuses all others.
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

    /// The same machine, whose kernel refuses nothing.
    fn without_refusals(fake: &Rc<Self>) -> Rc<Self> {
        let folder = tempfile::tempdir().unwrap();
        Rc::new(Self { folder, root: fake.root.clone(), refuses_after: None, log: RefCell::default() })
    }

    fn stat(&self, id: u32) -> std::path::PathBuf {
        self.root.path(&format!("proc/{id}/stat"))
    }

    /// The policies of the three threads.
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

impl SystemOps for Fake {
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
    IrqPriorityHold::take_with(Rc::<Fake>::clone(fake), "eth0", Policy::Fifo(85))
}

#[test]
fn changes_and_restores_the_policy_of_each_thread() {
    let fake = Fake::new(None);
    fake.schedule(302, 0, 0);
    fake.schedule(303, 1, 85);
    let hold = take(&fake).unwrap();
    assert_eq!(fake.scheduled(), ["fifo:85"; 3]);
    let settings = hold.release();
    assert_eq!(fake.scheduled(), ["fifo:50", "other", "fifo:85"]);
    let describe =
        |s: &Setting| [s.name.clone(), s.before.clone(), s.during.clone(), s.after.clone().unwrap()].join(" ");
    assert_eq!(
        settings.iter().map(describe).collect::<Vec<_>>(),
        [
            "eth0 irq/128-eth0 fifo:50 fifo:85 fifo:50",
            "eth0 irq/129-eth0-Tx other fifo:85 other",
            "eth0 irq/130-eth0-Tx fifo:85 fifo:85 fifo:85"
        ]
    );
    assert_eq!(
        *fake.log.borrow(),
        ["301 fifo:85", "302 fifo:85", "302 other", "301 fifo:50"],
        "one had the requested policy; undone in reverse order"
    );
}

#[test]
fn journal_restores_after_a_crash_what_others_did_not_change() {
    let fake = Fake::new(None);
    std::mem::forget(take(&fake).unwrap());
    fake.schedule(303, 1, 70);
    let restored = journal::restore_with(&*fake).unwrap();
    assert_eq!((restored.len(), restored[0].purpose, restored[0].put_back.settings), (1, Purpose::IrqPriority, 2));
    assert_eq!(restored[0].put_back.changed_since, ["irq/130-eth0-Tx: fifo:70"], "changed by others since");
    assert_eq!(fake.scheduled(), ["fifo:50", "fifo:50", "fifo:70"]);
    assert!(journal::restore_with(&*fake).unwrap().is_empty());
}

#[test]
fn does_not_change_a_new_thread_with_the_same_id() {
    let fake = Fake::new(None);
    std::mem::forget(take(&fake).unwrap());
    // A driver that is reset requests its interrupts again, and thread ids may be reused.
    let stat = fs::read_to_string(fake.stat(302)).unwrap().replace(" 180 ", " 9999 ");
    fs::write(fake.stat(302), stat).unwrap();
    fs::remove_dir_all(fake.folder.path().join("proc/303")).unwrap();
    let restored = journal::restore_with(&*fake).unwrap();
    let result = &restored[0].put_back;
    assert_eq!((result.settings, result.changed_since.len(), result.failed.len()), (1, 0, 0));
    assert_eq!(fake.scheduled(), ["fifo:50", "fifo:85", "gone"]);
}

#[test]
fn refused_change_leaves_nothing_changed() {
    let fake = Fake::new(Some(1));
    let refused = take(&fake).unwrap_err().to_string();
    assert!(refused.starts_with("cannot run irq/129-eth0-Tx as fifo:85"), "{refused}");
    // The kernel also refused to undo the first change, so its journal entry remains.
    let restored = journal::restore_with(&*Fake::without_refusals(&fake)).unwrap();
    assert_eq!(restored[0].put_back.settings, 1);
    assert_eq!(fake.scheduled(), ["fifo:50"; 3]);

    let fake = Fake::new(None);
    fake.schedule(302, 5, 0);
    let unknown_policy = take(&fake).unwrap_err();
    assert!(
        matches!(unknown_policy, IrqPriorityError::Policy(ThreadPolicyError::Unknown { id: 302, .. })),
        "{unknown_policy}"
    );
    assert!(fake.log.borrow().is_empty());
}

#[test]
fn reports_missing_threads() {
    let fake = Fake::new(None);
    for id in [301, 302, 303] {
        fs::remove_dir_all(fake.folder.path().join(format!("proc/{id}"))).unwrap();
    }
    let refused = take(&fake).unwrap_err();
    assert!(matches!(&refused, IrqPriorityError::NotThreaded(eth0) if eth0 == "eth0"), "{refused}");
    assert!(refused.to_string().contains("`threadirqs`"));
    fs::remove_file(fake.folder.path().join("proc/2/comm")).unwrap();
    assert!(matches!(take(&fake).unwrap_err(), IrqPriorityError::Hidden));
    let missing = IrqPriorityHold::take_with(Rc::<Fake>::clone(&fake), "eth7", Policy::Fifo(85)).unwrap_err();
    assert!(matches!(missing, IrqPriorityError::Nic(_)), "{missing}");
    assert!(journal::restore_with(&*fake).unwrap().is_empty());
}

/// The changed threads except those of interrupts, on a machine that also has `threads`.
fn changed_polling_threads(fake: &Rc<Fake>, threads: [(u32, &str); 2]) -> Vec<String> {
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

/// Kernels before 6.7 do not report polling threads; their names identify them.
#[test]
fn finds_polling_threads_by_name_on_old_kernels() {
    let fake = Fake::new(None);
    fs::remove_file(fake.folder.path().join("netlink/eth0/napi.hex")).unwrap();
    let changed = changed_polling_threads(&fake, [(900, "napi/eth0-8193"), (901, "napi/eth01-5")]);
    assert_eq!(changed, ["eth0 napi/eth0-8193"]);
}

/// Such as virtio's threads for transmission.
#[test]
fn finds_polling_threads_without_napi_id_by_name() {
    let fake = Fake::new(None);
    let changed = changed_polling_threads(&fake, [(900, "napi/eth0-0"), (901, "napi/eth01-0")]);
    assert_eq!(changed, ["eth0 napi/eth0-0"]);
}
