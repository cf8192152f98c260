//! Changes that are made, refused and undone.

use std::{collections::BTreeSet, fs};

use super::{
    super::{apply::*, *},
    fake::Fake,
    ids,
};
use crate::journal::{self, Purpose};

/// The values before an earlier change are in a journal that is cut off: nothing is changed on top of them.
#[test]
fn a_damaged_journal_stops_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    let put = |path: &str, text: &str| {
        fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
        fs::write(root.path(path), text).unwrap();
    };
    put("sys/devices/system/cpu/online", "0");
    put("proc/sys/kernel/numa_balancing", "1");
    let only = vec!["memory.numa_balancing"];
    let changes = || plan(&root, &Need { only: only.clone(), ..Need::default() }).unwrap().changes;
    assert_eq!(keep(&root, &changes()).unwrap().applied.len(), 1);
    let journals: Vec<_> = fs::read_dir(journal::folder(&root)).unwrap().flatten().map(|file| file.path()).collect();
    let journal = journals.iter().find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    let whole = fs::read_to_string(journal).unwrap();
    fs::write(journal, &whole[..whole.len() / 2]).unwrap();
    put("proc/sys/kernel/numa_balancing", "1");

    let files = unit(&root, "/usr/bin/punctual tune --yes");
    let refused = [
        keep(&root, &changes()).unwrap_err(),
        apply(&root, &changes()).unwrap_err(),
        keep_files(&root, &files).unwrap_err(),
    ];
    for error in refused.map(|error| error.to_string()) {
        let name = journal.display().to_string();
        assert!(error.contains(&name) && error.contains(&format!("`sudo rm {name}`")), "{error}");
    }
    assert_eq!(root.read("proc/sys/kernel/numa_balancing").as_deref(), Some("1"));
    assert!(!root.exists(&files[0].path));
    let reverted = revert(&root).unwrap();
    assert!(reverted[0].put_back.failed[0].contains("is not a journal"), "{reverted:?}");

    fs::write(journal, whole).unwrap();
    assert_eq!(keep(&root, &changes()).unwrap().applied.len(), 1);
}

#[test]
fn unfinished_journals_of_killed_processes_are_removed() {
    let fake = Fake::new();
    let folder = journal::folder(&fake.root);
    fs::create_dir_all(&folder).unwrap();
    for name in [".punctual-77-1.new", ".punctual-40-1.new", ".punctual-x-1.new", "77.new"] {
        fs::write(folder.join(name), "{").unwrap();
        let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(120);
        fs::File::options().write(true).open(folder.join(name)).unwrap().set_modified(earlier).unwrap();
    }
    // Another process may write it now.
    fs::write(folder.join(".punctual-78-1.new"), "{").unwrap();
    journal::restore_with(&*fake).unwrap();
    let all = || -> BTreeSet<String> {
        fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    let left = all();
    // A process 40 runs.
    assert!(!left.contains(".punctual-77-1.new") && left.contains(".punctual-78-1.new"), "{left:?}");
    assert!([".punctual-40-1.new", ".punctual-x-1.new", "77.new"].iter().all(|name| left.contains(*name)), "{left:?}");
    revert_with(&*fake).unwrap();
    assert!(!all().contains(".punctual-78-1.new") && all().contains(".punctual-40-1.new"), "{:?}", all());
}

/// The settings of an offline CPU come back with it, and those of a device that was removed do not.
#[test]
fn values_of_an_offline_cpu_stay_in_the_journal() {
    let fake = Fake::new();
    fake.put("sys/devices/system/cpu/present", "0-1");
    let before = fake.state();
    let changes = plan(&fake.root, &Need::default()).unwrap().changes;
    let is_changed =
        |text: &str| changes.iter().flat_map(|it| &it.writes).any(|write| write.target.to_string().contains(text));
    assert!(is_changed("cpu1/cpufreq/") && is_changed("0000:00:02.0"), "{changes:?}");
    keep_with(fake.ops(), &changes).unwrap();
    let folder = fake.root.path("sys/devices/system/cpu/cpu1/cpufreq");
    let aside = fake.root.path("aside");
    fs::rename(&folder, &aside).unwrap();
    fake.put("sys/devices/system/cpu/online", "0");
    fs::remove_dir_all(fake.root.path("sys/bus/pci/devices/0000:00:02.0")).unwrap();
    let failed = || {
        let restored = revert_with(&*fake).unwrap();
        restored.into_iter().flat_map(|restored| restored.put_back.failed).collect::<Vec<_>>()
    };
    let first = failed();
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(
        first[0].contains(
            " of CPU 1, which is offline: bring it online (echo 1 | sudo tee /sys/devices/system/cpu/cpu1/online)"
        ),
        "{first:?}"
    );
    let left = journal::set_files(&fake.root);
    assert!(!left.is_empty() && left.iter().all(|(path, ..)| path.contains("/cpu1/cpufreq/")), "{left:?}");
    assert_eq!(failed(), first, "also the second time");
    fs::rename(&aside, &folder).unwrap();
    fake.put("sys/devices/system/cpu/online", "0-1");
    assert_eq!(failed(), [] as [String; 0]);
    assert_eq!(journal::set_files(&fake.root), []);
    let gone = |path: &str| path.contains("0000:00:02.0");
    let expected: Vec<_> = before.into_iter().filter(|(path, _)| !gone(path)).collect();
    assert_eq!(fake.state().into_iter().filter(|(path, _)| !gone(path)).collect::<Vec<_>>(), expected);
}

#[test]
fn a_share_of_the_cache_is_taken_and_returned() {
    let fake = Fake::new();
    let before = fake.state();
    let cpus = "1".parse().unwrap();
    let choose = |text: &str| chosen_with(&*fake, &[text.parse().unwrap()], Some(&cpus));
    let read = |path: &str| fake.root.read(&format!("sys/fs/resctrl/{path}")).unwrap_or_default();
    let settings = choose("cpu.resctrl=30").unwrap();
    let writes: Vec<_> = settings[0].writes.iter().map(|w| format!("{}: {} > {}", w.target, w.from, w.to)).collect();
    assert_eq!(writes, ["share of the cache: none > L3 0=7 for CPU 1"]);
    let tuning = apply_with(fake.ops(), &settings).unwrap();
    assert_eq!(tuning.refused(), []);
    assert!(
        read("schemata").contains("L3:0=7f8") && read("punctual/schemata").contains("L3:0=7"),
        "{}",
        read("schemata")
    );
    assert_eq!(read("punctual/cpus_list"), "1");
    assert!(choose("cpu.resctrl=30").unwrap()[0].is_right());
    assert!(choose("cpu.resctrl=60").unwrap_err().to_string().contains("there is another share"));
    drop(tuning);
    assert_eq!(fake.state().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert!(read("schemata").contains("L3:0=7ff"));
    // Groups of others, a value out of range, no file system, no cache.
    for (path, text, error) in [
        ("sys/fs/resctrl/theirs/schemata", "L3:0=3", "the cache is divided already: see /sys/fs/resctrl/theirs"),
        ("sys/fs/resctrl/schemata", "MB:0=100", "memory bandwidth only"),
        ("sys/fs/resctrl/schemata", "L3CODE:0=7ff", "code and data have caches of their own"),
    ] {
        fake.put(path, text);
        let refused = choose("cpu.resctrl").unwrap_err().to_string();
        assert!(refused.contains(error), "{refused}");
        let _ = fs::remove_dir_all(fake.root.path("sys/fs/resctrl/theirs"));
    }
    assert!(choose("cpu.resctrl=0").unwrap_err().to_string().contains("must be 1 to 99"));
    fs::remove_file(fake.root.path("sys/fs/resctrl/schemata")).unwrap();
    assert!(choose("cpu.resctrl").unwrap_err().to_string().contains("mount -t resctrl"));
}

#[test]
fn a_share_of_the_cache_that_others_changed_is_kept() {
    let fake = Fake::new();
    let cpus = "1".parse().unwrap();
    let settings = chosen_with(&*fake, &["cpu.resctrl".parse().unwrap()], Some(&cpus)).unwrap();
    keep_with(fake.ops(), &settings).unwrap();
    fake.put("sys/fs/resctrl/schemata", "L3:0=600");
    fake.put("sys/fs/resctrl/punctual/cpus_list", "0-1");
    let restored = revert_with(&*fake).unwrap();
    let changed: Vec<&String> = restored.iter().flat_map(|restored| &restored.put_back.changed_since).collect();
    assert_eq!(changed, ["/sys/fs/resctrl/schemata: 0=600", "/sys/fs/resctrl/punctual/cpus_list: 0-1"]);
    assert!(fake.root.exists("sys/fs/resctrl/punctual/schemata"));
}

#[test]
fn one_process_can_change_settings_several_times_without_others() {
    let fake = Fake::new();
    let before = fake.state();
    let settings = chosen_with(&*fake, &["memory.thp=never".parse().unwrap()], None).unwrap();
    let lock = Lock::take(&fake.root).unwrap();
    for _ in 0..2 {
        let tuning = apply_locked(lock.clone(), fake.ops(), &settings).unwrap();
        assert_ne!(fake.state(), before);
        drop(tuning);
        assert_eq!(fake.state(), before);
        // Nothing is changed now, but the search goes on.
        assert!(matches!(apply_with(fake.ops(), &settings), Err(TuneError::Busy)));
        assert!(matches!(keep_with(fake.ops(), &settings), Err(TuneError::Busy)));
        assert!(matches!(revert_with(&*fake), Err(TuneError::Busy)));
    }
    drop(lock);
    assert!(apply_with(fake.ops(), &settings).is_ok());
}

#[test]
fn a_run_changes_settings_and_restores_them_in_reverse_order() {
    let fake = Fake::new();
    let before = fake.state();
    let choices = ["cpu.frequency=1400MHz", "memory.thp=never", "memory.numa_balancing", "irq.priority=snd:90"];
    let choices = choices.map(|text| text.parse().unwrap());
    let settings = chosen_with(&*fake, &choices, Some(&"1".parse().unwrap())).unwrap();
    assert_eq!(ids(&settings), ["cpu.frequency", "irq.priority", "memory.thp", "memory.numa_balancing"]);
    let tuning = apply_with(fake.ops(), &settings).unwrap();
    assert_eq!(tuning.refused(), []);
    assert!(matches!(apply_with(fake.ops(), &settings), Err(TuneError::Busy)), "one at a time");
    assert!(matches!(keep_with(fake.ops(), &settings), Err(TuneError::Busy)), "one at a time");
    let now = fake.state();
    assert_eq!(now["sys/kernel/mm/transparent_hugepage/enabled"], "always madvise [never]");
    let cpufreq = |name: &str| now[&format!("sys/devices/system/cpu/cpu1/cpufreq/{name}")].clone();
    assert_eq!([cpufreq("scaling_min_freq"), cpufreq("scaling_max_freq")], ["1400000", "1400000"]);
    let record = tuning.release();
    assert_eq!(fake.state(), before);
    let words: Vec<String> = record
        .iter()
        .map(|s| format!("{}: {} {} {}", s.name, s.before, s.during, s.after.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(
        words,
        [
            "cpu.frequency /sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq: 1200000 1400000 1200000",
            "cpu.frequency /sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq: 400000 1400000 400000",
            "irq.priority thread 41 (irq/8-snd_usb): fifo:50 fifo:90 fifo:50",
            "memory.thp /sys/kernel/mm/transparent_hugepage/enabled: always never always",
            "memory.numa_balancing /proc/sys/kernel/numa_balancing: 0 0 0",
        ]
    );
    let written = fake.written.borrow();
    let (done, undone) = written.split_at(written.len() / 2);
    let reversed: Vec<&String> = undone.iter().rev().collect();
    assert_eq!(done.iter().collect::<Vec<_>>(), reversed);
    assert!(done[0].ends_with("scaling_max_freq"), "the highest frequency is raised first: {done:?}");
}

#[test]
fn a_setting_that_is_refused_leaves_nothing_changed() {
    let fake = Fake::new();
    let need = Need { cpus: Some("1".parse().unwrap()), ..Need::default() };
    let plan = fake.plan(&need);
    let of = |id: &str| plan.changes.iter().find(|setting| setting.id == id).unwrap().clone();
    fake.put("proc/sys/kernel/soft_watchdog", "5");
    let mut odd = of("cpu.max_freq");
    odd.writes[0].target = Target::File("sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq".to_owned());
    (odd.writes[0].from, odd.writes[0].to) = ("400000".to_owned(), "950001".to_owned());
    let mut outside = of("memory.ksm");
    fake.put("proc/sys/kernel/core_pattern", "1");
    outside.writes[0].target = Target::File("proc/sys/kernel/core_pattern".to_owned());
    let before = fake.state();
    let settings = [of("kernel.watchdog"), odd, outside, of("irq.affinity")];
    let tuning = apply_with(fake.ops(), &settings).unwrap();
    let refused: Vec<(&str, &str, bool)> =
        tuning.refused().iter().map(|r| (r.id, r.reason.as_str(), r.is_whole)).collect();
    let min_freq = "/sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq";
    assert_eq!(
        refused,
        [
            ("kernel.watchdog", "/proc/sys/kernel/soft_watchdog is 5 now, not 1: plan again", true),
            ("cpu.max_freq", &*format!("{min_freq}: the kernel has 800000 instead of 950001"), true),
            ("memory.ksm", "/proc/sys/kernel/core_pattern: punctual does not change this file", true),
            (
                "irq.affinity",
                "/proc/irq/8/smp_affinity_list: its driver manages this interrupt, or it is bound to a CPU",
                false
            ),
        ]
    );
    assert_eq!(ids(tuning.applied()), ["irq.affinity"]);
    let mut expected = before.clone();
    expected.insert("proc/irq/7/smp_affinity_list".to_owned(), "0".to_owned());
    assert_eq!(fake.state(), expected);
    drop(tuning);
    assert_eq!(fake.state(), before);
}

#[test]
fn reverting_restores_everything_after_a_kill_between_any_two_writes() {
    let all = {
        let fake = Fake::new();
        let kept = keep_with(fake.ops(), &fake.all()).unwrap();
        assert!(kept.applied.len() >= 15, "{:?}", ids(&kept.applied));
        fake.written.borrow().len()
    };
    assert!(all >= 18, "{all}");
    let mut journals = 0;
    for left in 0..=all {
        for is_kept in [true, false] {
            let fake = Fake::new();
            let (before, settings) = (fake.state(), fake.all());
            fake.left.set(left);
            if is_kept {
                let _ = keep_with(fake.ops(), &settings).unwrap();
            } else {
                // A kill runs no destructors. It ends the lock.
                let tuning = apply_with(fake.ops(), &settings).unwrap();
                fs::remove_file(journal::folder(&fake.root).join("tune.lock")).unwrap();
                std::mem::forget(tuning);
            }
            fake.left.set(usize::MAX);
            if is_kept {
                let changed = fake.state();
                assert!(journal::restore_with(&*fake).unwrap().is_empty(), "the next run leaves kept settings alone");
                assert_eq!(fake.state(), changed);
            }
            let restored = if is_kept { revert_with(&*fake).unwrap() } else { journal::restore_with(&*fake).unwrap() };
            assert_eq!(fake.state(), before, "after {left} writes");
            journals += restored.len();
            assert!(restored.iter().all(|r| r.put_back.failed.is_empty() && r.put_back.changed_since.is_empty()));
            assert!(revert_with(&*fake).unwrap().is_empty(), "everything is undone");
        }
    }
    assert!(journals >= 2 * all, "{journals}");
}

#[test]
fn a_second_tune_adds_to_the_first_and_values_of_others_are_kept() {
    let fake = Fake::new();
    let before = fake.state();
    let keep = |text: &str| {
        let settings = chosen_with(&*fake, &[text.parse().unwrap()], None).unwrap();
        keep_with(fake.ops(), &settings).unwrap()
    };
    keep("memory.swappiness=10");
    keep("memory.thp=madvise");
    let again = keep("memory.swappiness=20");
    assert_eq!((ids(&again.applied), again.refused.len()), (vec!["memory.swappiness"], 0));
    assert_eq!(in_force(&fake.root), 3);
    fake.put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
    let restored = revert_with(&*fake).unwrap();
    assert_eq!(restored.iter().map(|r| r.purpose).collect::<Vec<_>>(), [Purpose::KeptTuning]);
    assert_eq!(restored[0].put_back.changed_since, ["/sys/kernel/mm/transparent_hugepage/enabled: never"]);
    let text = restored[0].in_words();
    assert!(text.starts_with("changes of `punctual tune --yes`: restored 2 settings"), "{text}");
    let mut expected = before;
    expected.insert("sys/kernel/mm/transparent_hugepage/enabled".to_owned(), "always madvise [never]".to_owned());
    assert_eq!(fake.state(), expected);
    assert_eq!(in_force(&fake.root), 0);
}

#[test]
fn a_killed_run_on_top_of_kept_settings_is_undone_first() {
    let fake = Fake::new();
    let before = fake.state();
    let settings = |text: &str| chosen_with(&*fake, &[text.parse().unwrap()], None).unwrap();
    keep_with(fake.ops(), &settings("memory.swappiness=10")).unwrap();
    assert_eq!(journal::left_behind(&fake.root), [] as [u32; 0], "kept settings are no leftovers");
    std::mem::forget(apply_with(fake.ops(), &settings("memory.swappiness=20")).unwrap());
    fs::remove_file(journal::folder(&fake.root).join("tune.lock")).unwrap();
    assert_eq!(journal::left_behind(&fake.root), [std::process::id()]);
    let restored = revert_with(&*fake).unwrap();
    assert_eq!(restored.iter().map(|r| r.purpose).collect::<Vec<_>>(), [Purpose::Tuning, Purpose::KeptTuning]);
    assert_eq!(fake.state(), before);
    assert_eq!(journal::left_behind(&fake.root), [] as [u32; 0]);
}

/// One rule for all findings: if punctual set a file of the evidence, the finding says so until the user reverts it.
#[test]
fn findings_name_the_settings_that_tune_made() {
    let fake = Fake::new();
    fake.put("proc/cpuinfo", "flags : fpu ida\n");
    fake.put("proc/sys/kernel/sched_rt_period_us", "1000000");
    fake.put("sys/devices/system/cpu/isolated", "1");
    let found = || crate::findings(&fake.root, &facts(&fake.root), None, None);
    let set_by_tune = || -> Vec<String> {
        let set = found().into_iter().filter(|finding| finding.title.contains("by `punctual tune`; undo: "));
        set.map(|finding| finding.id).collect()
    };
    assert_eq!(set_by_tune(), [] as [&str; 0]);
    let fixed = chosen_with(&*fake, &["cpu.frequency=1000MHz".parse().unwrap()], None).unwrap();
    keep_with(fake.ops(), &fixed).unwrap();
    assert_eq!(set_by_tune(), ["cpu.governor", "cpu.frequency_limit"]);
    revert_with(&*fake).unwrap();
    keep_with(fake.ops(), &fake.all()).unwrap();
    let set = set_by_tune();
    for id in [
        "cpu.workqueues",
        "cpu.statistics",
        "cpu.latency_request",
        "rt.throttling",
        "kernel.watchdog",
        "kernel.timer_migration",
        "memory.thp",
        "memory.ksm",
        "power.aspm",
        "power.pci",
    ] {
        assert!(
            set.iter().any(|set| set == id),
            "{id}: {set:?} {:#?}",
            found().iter().find(|finding| finding.id == id)
        );
    }
    // Others have changed it since.
    fake.put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
    assert!(!set_by_tune().contains(&"memory.thp".to_owned()));
    revert_with(&*fake).unwrap();
    assert_eq!(set_by_tune(), [] as [&str; 0]);
}
