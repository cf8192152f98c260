//! Shields on simulated machines: tasks and interrupts are moved, and every kind of end undoes all changes.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use proptest::prelude::*;
use record::{LeftKind, ShieldMeans};

use super::{
    fake::{BOUND, Fake, Groups, KERNEL},
    *,
};
use crate::journal::{RestoreError, left_alone, restore_with};

fn list(text: &str) -> CpuList {
    text.parse().unwrap()
}

/// A machine with an ordinary task, two pinned ones, three kernel threads and four interrupts.
fn machine(groups: Groups) -> Rc<Fake> {
    let fake = Fake::new(groups);
    fake.add_task(1, 0, 0, "0-3");
    fake.add_task(10, 1, 0, "1");
    fake.add_task(11, 1, 0, "2");
    fake.add_task(2, 0, KERNEL, "0-3");
    fake.add_task(20, 2, BOUND, "1");
    fake.add_task(21, 2, KERNEL, "0");
    fake.add_interrupt(7, "0-3");
    fake.add_interrupt(8, "1");
    fake.add_interrupt(9, "0-3");
    fake.add_interrupt(10, "0");
    Rc::new(fake)
}

fn take(fake: &Rc<Fake>, cpus: &str) -> Result<Shield, ShieldError> {
    Shield::take_with(Rc::<Fake>::clone(fake), &list(cpus), None)
}

#[test]
fn moves_everything_that_can_move() {
    for (groups, means) in [
        (Groups::V2, ShieldMeans::IsolatedPartition),
        (Groups::V1, ShieldMeans::CpusetV1),
        (Groups::None, ShieldMeans::Affinity),
    ] {
        let fake = machine(groups);
        let before = fake.state();
        let shield = take(&fake, "1").unwrap();
        let summary = shield.summary().clone();
        assert_eq!(summary.means, means, "{:?}", summary.notes);
        let masks: Vec<String> = [1, 10, 11, 2, 20, 21].map(|id| fake.mask(id)).into();
        assert_eq!(masks, ["0,2-3", "0,2-3", "2", "0,2-3", "1", "0"], "{groups:?}");
        assert_eq!((summary.tasks_moved, summary.interrupts_moved), (3, 2), "{summary:?}");
        let interrupt = |number| fake.root().read(&format!("proc/irq/{number}/smp_affinity_list")).unwrap();
        assert_eq!([7, 8, 9, 10].map(interrupt), ["0,2-3", "0,2-3", "0-3", "0"]);
        assert_eq!(fake.root().read("proc/irq/default_smp_affinity").unwrap(), "0000000d");
        let left: Vec<_> = summary.left.iter().map(|left| (left.kind, left.count, left.names[0].as_str())).collect();
        assert_eq!(left, [(LeftKind::KernelThreads, 1, "task20"), (LeftKind::Interrupts, 1, "9 disk")]);
        assert_eq!(shield.needs_entering(), groups == Groups::V2);
        assert_eq!(shield.enter(|| 7).unwrap(), 7);

        let put_back = shield.release().put_back.unwrap();
        assert_eq!(fake.state(), before, "{groups:?}: {put_back:?}");
        assert_eq!((put_back.tasks, put_back.interrupts), (3, 2), "{groups:?}");
        assert!(put_back.failed.is_empty() && put_back.changed_since.is_empty(), "{put_back:?}");
        assert!(restore_with(&*fake).unwrap().is_empty(), "the journal is removed");
    }
}

#[test]
fn uses_cpus_that_were_isolated_at_boot() {
    let fake = machine(Groups::V2);
    fake.put("sys/devices/system/cpu/isolated", "1,3");
    let before = fake.state();
    let shield = take(&fake, "3").unwrap();
    assert_eq!(shield.summary().means, ShieldMeans::Boot);
    assert_eq!(shield.summary().isolated_at_boot, "3");
    assert!(!fake.root().list("sys/fs/cgroup").iter().any(|name| name.starts_with("punctual")));
    assert_eq!(fake.mask(1), "0-2", "a task on the isolated CPU");
    drop(shield);
    assert_eq!(fake.state(), before);
}

#[test]
fn rejects_invalid_requests() {
    let fake = machine(Groups::None);
    let before = fake.state();
    let error = |cpus| take(&fake, cpus).unwrap_err().to_string();
    assert_eq!(
        error("0-3"),
        "shielding CPUs 0-3 would leave no CPU for other work: shield fewer of 0-3, e.g. --shield 3"
    );
    assert!(error("7").contains("CPU 7 is not on this machine"));
    assert_eq!(fake.state(), before);
}

/// Tasks that `tune` moves while a shield holds would be put back to where the other had moved them.
#[test]
fn a_shield_and_tune_exclude_each_other() {
    let fake = machine(Groups::V2);
    let shield = take(&fake, "1").unwrap();
    assert!(matches!(Lock::take(fake.root()), Err(TuneError::Busy)));
    drop(shield);
    let lock = Lock::take(fake.root()).unwrap();
    assert!(matches!(take(&fake, "1"), Err(ShieldError::Tuned(TuneError::Busy))));
    let own = Shield::take_with(Rc::<Fake>::clone(&fake), &list("1"), Some(&lock)).unwrap();
    drop(lock);
    assert!(matches!(Lock::take(fake.root()), Err(TuneError::Busy)), "until the shield is released");
    drop(own);
    assert!(Lock::take(fake.root()).is_ok());
}

#[test]
fn refuses_a_second_shield() {
    let fake = machine(Groups::None);
    fake.add_task(4711, 1, 0, "0");
    let journal = r#"{"process":4711,"start_ticks":4811,"boot_id":null,"purpose":"shield","undo":[]}"#;
    let shield = take(&fake, "1").unwrap();
    fake.put("run/punctual/4711-4811-shield.json", journal);
    assert!(matches!(take(&fake, "2"), Err(ShieldError::Busy { process: 4711 })));
    drop(shield);
    // A process with the same id but another start time is another process.
    fake.put("run/punctual/4711-4811-shield.json", &journal.replace("4811", "4810"));
    assert!(take(&fake, "2").is_ok());
}

#[test]
fn keeps_changes_that_others_made_meanwhile() {
    for groups in [Groups::V1, Groups::None] {
        let fake = machine(groups);
        let shield = take(&fake, "1").unwrap();
        fake.set_mask(11, &list("3"));
        fake.set_mask(10, &list("0,3"));
        fake.put("proc/irq/7/smp_affinity_list", "3");
        let put_back = shield.release().put_back.unwrap();
        assert_eq!(fake.root().read("proc/irq/7/smp_affinity_list").unwrap(), "3");
        assert!(put_back.changed_since.contains(&"/proc/irq/7/smp_affinity_list: 3".to_owned()), "{put_back:?}");
        if groups == Groups::None {
            assert_eq!((fake.mask(11), fake.mask(10)), ("3".to_owned(), "0,3".to_owned()));
            assert!(put_back.changed_since.contains(&"task 11 (task11): CPU 3".to_owned()), "{put_back:?}");
        }
    }
}

#[test]
fn new_tasks_lose_inherited_affinity_and_keep_their_own() {
    let fake = machine(Groups::None);
    let shield = take(&fake, "1").unwrap();
    fake.add_task(30, 10, 0, "0,2-3");
    fake.add_task(31, 30, 0, "0,2-3");
    fake.add_task(32, 30, 0, "2");
    drop(shield);
    assert_eq!([30, 31, 32].map(|id| fake.mask(id)), ["1", "1", "2"]);
}

#[test]
fn ignores_journals_of_an_earlier_boot() {
    let fake = machine(Groups::None);
    fake.put("proc/sys/kernel/random/boot_id", "one");
    std::mem::forget(take(&fake, "1").unwrap());
    fake.put("proc/sys/kernel/random/boot_id", "two");
    let moved = fake.state();
    assert!(restore_with(&*fake).unwrap().is_empty());
    assert_eq!(fake.state(), moved);
    fake.put("proc/sys/kernel/random/boot_id", "one");
    assert!(restore_with(&*fake).unwrap().is_empty(), "the journal is removed");
}

#[test]
fn managed_interrupts_are_immovable_and_counted() {
    let fake = machine(Groups::None);
    let counts = |disk: u32, nvme: u32| {
        let lines = format!(
            "      CPU0 CPU1 CPU2 CPU3\n 7: 0 5 0 0 MSI eth0\n 9: 1 {disk} 0 0 MSI disk\n91: 9 {nvme} 0 0 MSI nvme\nLOC: 1 1 1 1 x\n"
        );
        fake.put("proc/interrupts", &lines);
    };
    fake.add_interrupt(91, "1");
    counts(100, 7);
    let mut shield = take(&fake, "1").unwrap();
    let interrupts = shield.summary().left.iter().filter(|left| left.kind == LeftKind::Interrupts);
    let left: Vec<_> = interrupts.map(|left| (left.names.join(","), left.no_right)).collect();
    assert_eq!(left, [("9 disk".to_owned(), false), ("91 disk".to_owned(), false)], "no right is missing");
    assert!(shield.strikes().is_empty());
    counts(100, 10);
    let nvme = Strikes { interrupt: 91, name: "disk".to_owned(), count: 3 };
    assert_eq!(shield.strikes(), [nvme]);
    shield.begin_counting();
    assert!(shield.strikes().is_empty());
    drop(shield);

    fake.add_interrupt(92, "1");
    let left = take(&fake, "1").unwrap().summary().left.clone();
    let forbidden = left.iter().find(|left| left.names == ["92 disk"]).unwrap();
    assert!(forbidden.no_right && forbidden.why == "root is needed", "{forbidden:?}");
}

/// Forgets a shield as a killed run does, and loses its journal.
fn lose(fake: &Rc<Fake>) {
    std::mem::forget(take(fake, "1").unwrap());
    fs::remove_dir_all(fake.root().path("run/punctual")).unwrap();
}

#[test]
fn a_lost_journal_is_replaced_by_its_copy_with_the_control_group() {
    for groups in [Groups::V2, Groups::V1] {
        let fake = machine(groups);
        let before = fake.state();
        lose(&fake);
        // Another process has the id of the killed run now.
        fake.add_task(std::process::id(), 1, 0, "0,2-3");
        let restored = restore_with(&*fake).unwrap();
        assert_eq!((restored.len(), restored[0].put_back.groups), (1, 1), "{restored:?}");
        assert!(restored[0].put_back.failed.is_empty(), "{restored:?}");
        let after = fake.state();
        let own = format!("proc/{}/", std::process::id());
        let set = "sys/fs/cgroup/cpuset/tasks";
        let others = |state: &[(String, String)]| {
            let is_other = |(path, _): &&(String, String)| !path.starts_with(&own) && path != set;
            state.iter().filter(is_other).cloned().collect::<Vec<_>>()
        };
        assert_eq!(others(&after), others(&before), "{groups:?}");
        assert!(restore_with(&*fake).unwrap().is_empty());
    }
}

#[test]
fn groups_of_living_runs_and_of_others_are_left_alone() {
    let fake = machine(Groups::V1);
    fake.add_task(4711, 1, 0, "0");
    let make = |name: &str| fake.make_group(&format!("sys/fs/cgroup/cpuset/{name}")).unwrap();
    let kept = ["others-1", "punctual-1-2-3", "punctual-4711", "punctual-4711-4811", "punctual-x"];
    kept.into_iter().for_each(make);
    // These runs have ended: nobody has their ids and start times.
    ["punctual-4711-4810", "punctual-4712"].into_iter().for_each(make);
    let restored = restore_with(&*fake).unwrap();
    let mut ended: Vec<u32> = restored.iter().map(|one| one.process).collect();
    ended.sort_unstable();
    assert_eq!(ended, [4711, 4712], "{restored:?}");
    let left: Vec<String> = fake.root().list("sys/fs/cgroup/cpuset");
    let left: Vec<&str> = left.iter().map(String::as_str).filter(|name| name.contains('-')).collect();
    assert_eq!(left, kept);
    assert!(matches!(take(&fake, "2"), Err(ShieldError::Busy { process: 4711 })), "it shields CPUs elsewhere");
}

#[test]
fn a_cpu_that_a_shield_took_is_explained_and_not_widened() {
    let fake = machine(Groups::V1);
    let error = || usable_cpus(fake.root(), Some(&list("1"))).unwrap_err().to_string();
    fake.put("sys/fs/cgroup/cpuset/cpuset.cpus", "0,2-3");
    assert!(error().contains("widen it with"), "{}", error());
    fake.add_task(4711, 1, 0, "0");
    fake.make_group("sys/fs/cgroup/cpuset/punctual-4711-4811").unwrap();
    assert!(
        error().ends_with("process 4711 shields CPUs: wait until it ends, or end it with `kill 4711`"),
        "{}",
        error()
    );
    fs::remove_dir_all(fake.root().path("proc/4711")).unwrap();
    assert!(error().ends_with("restore the CPUs with `sudo punctual restore`"), "{}", error());
}

/// Restores from a journal of a killed run with these entries; returns what failed.
fn failed(fake: &Rc<Fake>, undo: &str) -> Vec<String> {
    let text = format!(r#"{{"process":77,"start_ticks":1,"boot_id":null,"purpose":"shield","undo":[{undo}]}}"#);
    fake.put("run/punctual/77-1-shield.json", &text);
    let restored = restore_with(&**fake).unwrap();
    assert_eq!(restored.len(), 1, "{undo}");
    restored[0].put_back.failed.clone()
}

#[test]
fn a_journal_changes_only_what_punctual_changes() {
    for groups in [Groups::V1, Groups::V2] {
        let fake = machine(groups);
        fake.put("proc/sys/kernel/core_pattern", "1");
        fake.put("etc/shadow", "1");
        fake.put("sys/fs/cgroup/box/cgroup.threads", "");
        let before = fake.state();
        let file = |path: &str| format!(r#"{{"what":"file","path":"{path}","before":"2","during":"1"}}"#);
        let group = |path: &str| format!(r#"{{"what":"group","folder":"{path}","members":"cgroup.threads"}}"#);
        for wrong in [
            file("proc/sys/kernel/core_pattern"),
            file("etc/shadow"),
            file("proc/irq/../sys/kernel/core_pattern"),
            file("proc/irq/../../etc/shadow"),
            file("/proc/irq/default_smp_affinity"),
            file("sys/fs/cgroup/../../../etc/cpuset.cpus"),
            file("etc/cpuset.cpus"),
            group("sys/fs/cgroup/box"),
            group("etc"),
            group("sys/fs/cgroup/../../../punctual-77"),
            r#"{"what":"controller","folder":"etc","name":"cpuset"}"#.to_owned(),
            r#"{"what":"controller","folder":"sys/fs/cgroup","name":"memory"}"#.to_owned(),
        ] {
            let failed = failed(&fake, &wrong);
            assert!(failed.len() == 1 && failed[0].contains("so the journal is wrong"), "{wrong}: {failed:?}");
        }
        assert_eq!(fake.state(), before);
        assert_eq!(fake.root().read("etc/shadow").unwrap(), "1");
    }
}

#[test]
fn a_journal_that_others_may_have_written_is_left_alone() {
    let fake = machine(Groups::None);
    let change = r#"{"what":"file","path":"proc/irq/default_smp_affinity","before":"1","during":"0000000f"}"#;
    let path = fake.root().path("run/punctual/77-1-shield.json");
    let folder = fake.root().path("run/punctual");
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    fake.put("run/punctual/77-1-shield.json", "");
    set_mode(&path, 0o666);
    assert!(failed(&fake, change)[0].contains("other users can write to it (mode 666)"));
    set_mode(&path, 0o600);
    set_mode(&folder, 0o777);
    assert!(failed(&fake, change)[0].contains("other users can write to it (mode 777)"));
    set_mode(&folder, 0o700);
    fs::rename(&path, folder.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", &path).unwrap();
    assert!(restore_with(&*fake).unwrap()[0].put_back.failed[0].contains("it is a symbolic link"));
    fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    assert!(restore_with(&*fake).unwrap()[0].put_back.failed[0].contains("it is not a regular file"));
    assert_eq!(fake.root().read("proc/irq/default_smp_affinity").unwrap(), "0000000f");
    fs::remove_file(&path).unwrap();
    assert!(failed(&fake, change).is_empty());
    assert_eq!(fake.root().read("proc/irq/default_smp_affinity").unwrap(), "1");
}

#[test]
fn a_journal_of_an_unknown_boot_or_namespace_is_left_alone() {
    let fake = machine(Groups::None);
    let undo = r#"[{"what":"file","path":"proc/irq/default_smp_affinity","before":"1","during":"0000000f"}]"#;
    let journal = |more: &str| format!(r#"{{"process":77,"start_ticks":1,"purpose":"shield","undo":{undo},{more}}}"#);
    let path = "run/punctual/77-1-shield.json";
    let affinity = || fake.root().read("proc/irq/default_smp_affinity").unwrap();
    let folder = fake.root().path("run/punctual");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    // Its process may run, although none of its id is in this namespace.
    fake.put(path, &journal(r#""boot_id":null,"pid_namespace":17"#));
    assert!(restore_with(&*fake).unwrap().is_empty());
    assert!(matches!(take(&fake, "2"), Err(ShieldError::BusyElsewhere { process: 77 })));
    assert_eq!(left_alone(fake.root()), [77]);
    fake.put(path, &journal(r#""boot_id":"a""#));
    assert_eq!(restore_with(&*fake), Err(RestoreError::NoBootId));
    assert!(fake.root().exists(path) && affinity() == "0000000f");
    fake.put("proc/sys/kernel/random/boot_id", "a");
    assert_eq!(restore_with(&*fake).unwrap().len(), 1);
    assert!(!fake.root().exists(path) && affinity() == "1");
}

fn cpus() -> impl Strategy<Value = CpuList> {
    prop::collection::btree_set(0_u32..4, 1..4).prop_map(|cpus| cpus.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// A run killed after any number of changes leaves a journal that undoes all of them, even if undoing is killed as
    /// well.
    #[test]
    fn restores_the_original_state_after_any_number_of_changes(
        groups in prop::sample::select(vec![Groups::V2, Groups::V1, Groups::None]),
        tasks in prop::collection::vec((cpus(), prop::sample::select(vec![0, KERNEL, BOUND])), 0..6),
        interrupts in prop::collection::vec(cpus(), 0..4),
        shielded in prop::collection::btree_set(0_u32..4, 1..3),
        killed_after in 0_usize..40,
        killed_again_after in 0_usize..40,
    ) {
        let fake = machine(groups);
        for (id, (cpus, flags)) in (100..).zip(&tasks) {
            fake.add_task(id, 1, *flags, &cpus.to_string());
        }
        for (number, cpus) in (30..).zip(&interrupts) {
            fake.add_interrupt(number, &cpus.to_string());
        }
        let before = fake.state();
        let shielded: CpuList = shielded.into_iter().collect();
        fake.left.set(killed_after);
        std::mem::forget(take(&fake, &shielded.to_string()));
        prop_assert!(fake.done.get() <= killed_after);
        fake.left.set(killed_again_after);
        restore_with(&*fake).unwrap();
        fake.left.set(usize::MAX);
        restore_with(&*fake).unwrap();
        let after = fake.state();
        let changed: Vec<_> = before.iter().filter(|line| !after.contains(line)).collect();
        prop_assert_eq!(&before, &after, "{:?}", changed);
        prop_assert!(restore_with(&*fake).unwrap().is_empty());
    }
}
