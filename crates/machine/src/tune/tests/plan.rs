//! The planned changes, and the reasons why the others are not planned.

use std::{collections::BTreeSet, fs, rc::Rc};

use record::FindingState;

use super::{
    super::{apply::*, *},
    fake::Fake,
    ids,
};

#[test]
fn a_plan_sorts_the_settings_and_changes_nothing() {
    let fake = Fake::new();
    let before = fake.state();
    let plan = fake.plan(&Need::default());
    assert_eq!(
        ids(&plan.changes),
        [
            "cpu.energy_preference",
            "cpu.governor",
            "cpu.max_freq",
            "cpu.idle_states",
            "kernel.watchdog",
            "kernel.timer_migration",
            "memory.thp",
            "memory.ksm",
            "memory.swappiness",
            "power.pci",
            "power.aspm"
        ]
    );
    assert_eq!(ids(&plan.right), ["memory.numa_balancing"]);
    let reason = |id: &str| plan.not_here.iter().find(|not| not.id == id).map(|not| not.reason.clone());
    for id in ["irq.affinity", "cpu.statistics"] {
        assert!(reason(id).unwrap().contains("--cpus"), "{id}");
    }
    assert_eq!(reason("power.usb").unwrap(), "this machine has no such device");
    assert!(reason("cpu.turbo").unwrap().contains("/sys/devices/system/cpu/cpufreq/boost"));
    let on_request: Vec<&str> = plan.on_request.iter().map(|request| request.id).collect();
    assert_eq!(
        on_request,
        ["cpu.min_freq", "cpu.frequency", "irq.priority", "rt.throttling", "memory.writeback", "nic.settings"]
    );
    let pci = plan.changes.iter().find(|setting| setting.id == "power.pci").unwrap();
    assert_eq!(pci.writes.len(), 1, "a bridge is left alone");
    let all = plan.changes.len() + plan.right.len() + plan.not_here.len() + plan.on_request.len();
    assert_eq!(all, DEFINITIONS.len());
    assert_eq!(fake.state(), before);
    assert!(fake.written.borrow().is_empty());
}

#[test]
fn cpus_limit_the_settings_of_cpus_and_move_other_work_away() {
    let fake = Fake::new();
    let plan = fake.plan(&Need { cpus: Some("1".parse().unwrap()), limit_ns: Some(500_000), ..Need::default() });
    let writes = |id: &str| {
        let setting = plan.changes.iter().find(|setting| setting.id == id).unwrap();
        setting.writes.iter().map(|w| format!("{} {}>{}", w.target, w.from, w.to)).collect::<Vec<_>>()
    };
    assert_eq!(writes("cpu.governor"), ["/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor powersave>performance"]);
    assert_eq!(writes("cpu.idle_states"), ["/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us 0>50"]);
    assert_eq!(writes("irq.affinity"), ["/proc/irq/7/smp_affinity_list 0-1>0", "/proc/irq/8/smp_affinity_list 0-1>0"]);
    assert_eq!(writes("cpu.workqueues"), ["/sys/devices/virtual/workqueue/cpumask 3>1"]);
    let refused = |cpus: &str| plan_with(&*fake, &Need { cpus: Some(cpus.parse().unwrap()), ..Need::default() });
    assert_eq!(
        refused("1-5").unwrap_err().to_string(),
        "CPUs 2-5 are not online here: see /sys/devices/system/cpu/online"
    );
    let all = refused("0-1").unwrap();
    let reason = all.not_here.iter().find(|not| not.id == "irq.affinity").map(|not| &*not.reason);
    assert_eq!(reason, Some("no CPU would remain for other work: name fewer with --cpus"));
}

#[test]
fn programs_leave_the_cpus_for_real_time_work_unless_they_are_pinned() {
    let fake = Fake::new();
    let before = fake.state();
    let cpus = "1".parse().unwrap();
    let settings = || chosen_with(&*fake, &["cpu.programs".parse().unwrap()], Some(&cpus)).unwrap();
    let values =
        |settings: &[Setting]| settings[0].writes.iter().map(|w| format!("{}>{}", w.from, w.to)).collect::<Vec<_>>();
    assert_eq!(values(&settings()), ["1>none"]);
    let tuning = apply_with(fake.ops(), &settings()).unwrap();
    assert_eq!(tuning.refused(), []);
    assert_eq!([50, 51, 52].map(|id| fake.allowed(id)), ["0", "1", "0"], "the one that is pinned to CPU 1 stays");
    assert_eq!(values(&settings()), ["none>none"]);
    // A child inherits the narrow affinity, and another program was pinned meanwhile.
    fake.put("proc/60/stat", "60 (child) S 50 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 200 0");
    fake.put("proc/60/task/60/stat", "60 (child) S 50 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 200 0");
    fake.allow(60, "0");
    fake.allow(52, "1");
    let released = tuning.release();
    let [setting] = &*released else { panic!("{released:?}") };
    assert_eq!(
        (&*setting.name, &*setting.before, &*setting.during, setting.after.as_deref()),
        ("cpu.programs programs on CPU 1", "1", "none", Some("1"))
    );
    assert_eq!([50, 51, 52, 60].map(|id| fake.allowed(id)), ["0-1", "1", "1", "0-1"]);
    fake.allow(52, "0");
    ["proc/60/task/60", "proc/60/task", "proc/60"].iter().for_each(|folder| {
        let _ = fs::remove_dir_all(fake.root.path(folder));
    });
    assert_eq!(fake.state(), before);
}

#[test]
fn programs_that_tune_moved_do_not_seem_to_be_pinned() {
    let fake = Fake::new();
    let choose = |cpus: &str| chosen_with(&*fake, &["cpu.programs".parse().unwrap()], Some(&cpus.parse().unwrap()));
    keep_with(fake.ops(), &choose("1").unwrap()).unwrap();
    let error = choose("0").unwrap_err().to_string();
    assert!(error.contains("an earlier tune moved programs off CPU 1: revert it first"), "{error}");
    assert!(choose("1").unwrap()[0].is_right());
    revert_with(&*fake).unwrap();
    assert!(!choose("0").unwrap()[0].is_right());
}

#[test]
fn settings_without_an_effect_are_not_planned() {
    let fake = Fake::new();
    let reason = |id: &str| {
        let plan = fake.plan(&Need::default());
        plan.not_here.into_iter().find(|not| not.id == id).map(|not| not.reason)
    };
    assert_eq!((reason("cpu.idle_states"), reason("kernel.timer_migration")), (None, None));
    for cpu in 0..2 {
        for (state, exit_us) in [("state0", "0"), ("state1", "10")] {
            fake.put(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/{state}/name"), state);
            fake.put(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/{state}/latency"), exit_us);
        }
    }
    fake.put("sys/devices/system/cpu/nohz_full", "(null)");
    assert_eq!(reason("cpu.idle_states").as_deref(), Some("every enabled idle state can be left in 10us"));
    assert!(reason("kernel.timer_migration").unwrap().starts_with("no CPU runs without a tick"));
    let named = fake.plan(&Need { only: vec!["kernel.timer_migration"], ..Need::default() });
    assert_eq!(named.changes.len(), 1, "the user may try it nevertheless: {named:?}");
    fake.put("sys/devices/system/cpu/cpu1/cpuidle/state1/latency", "11");
    fake.put("sys/devices/system/cpu/nohz_full", "1");
    assert_eq!((reason("cpu.idle_states"), reason("kernel.timer_migration")), (None, None));
}

#[test]
fn names_of_interrupt_threads_may_be_cut() {
    let fake = Fake::new();
    fake.thread(42, "irq/9-hold-sour", 1, 50);
    let chosen = |text: &str| chosen_with(&*fake, &[text.parse().unwrap()], None);
    assert!(chosen("irq.priority=hold-source:20").is_ok());
    assert!(chosen("irq.priority=hold-sink:20").is_err());
    assert!(chosen("irq.priority=eth0-rx:20").is_err(), "a whole name is not cut");
}

#[test]
fn the_lowest_frequency_is_not_above_the_highest() {
    let fake = Fake::new();
    let refused = |set: &[&str], only: &[&'static str]| {
        let set = set.iter().map(|text| text.parse().unwrap()).collect();
        plan_with(&*fake, &Need { set, only: only.to_vec(), ..Need::default() }).err().map(|error| error.to_string())
    };
    let file = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq";
    let expected = |lowest: u32, highest: u32| {
        format!(
            "cpu.min_freq: {lowest}MHz is above the highest frequency of {highest}MHz ({file}): give a lower one, or a higher cpu.max_freq"
        )
    };
    assert_eq!(refused(&["cpu.min_freq=1000MHz", "cpu.max_freq=800MHz"], &[]), Some(expected(1000, 800)));
    // The present limit is 1200 MHz; the plan of all settings lifts it.
    assert_eq!(refused(&[], &["cpu.min_freq"]), Some(expected(1600, 1200)));
    assert_eq!(refused(&["cpu.min_freq=1400MHz"], &[]), None);
    assert_eq!(refused(&["cpu.min_freq=800MHz", "cpu.max_freq=800MHz"], &[]), None);
}

#[test]
fn a_mode_of_numa_balancing_that_is_on_stays() {
    let fake = Fake::new();
    for (now, to) in [("0", "1"), ("1", "1"), ("2", "2"), ("3", "3")] {
        fake.put("proc/sys/kernel/numa_balancing", now);
        let settings = chosen_with(&*fake, &["memory.numa_balancing=on".parse().unwrap()], None).unwrap();
        assert_eq!(settings[0].writes[0].to, to, "{now}");
    }
}

#[test]
fn named_settings_that_cannot_be_changed_come_first() {
    let fake = Fake::new();
    let named = |need: &Need| {
        let not_here = fake.plan(need).not_here;
        let named: Vec<&str> = not_here.iter().take_while(|not| not.is_named).map(|not| not.id).collect();
        assert_eq!(named.len(), not_here.iter().filter(|not| not.is_named).count(), "{not_here:?}");
        named
    };
    assert_eq!(named(&Need::default()), [] as [&str; 0]);
    let set = vec!["power.usb".parse().unwrap(), "nic.settings=eth9:eee=off".parse().unwrap()];
    assert_eq!(named(&Need { set, ..Need::default() }), ["power.usb", "nic.settings"]);
    assert_eq!(named(&Need { only: vec!["memory.thp", "cpu.turbo"], ..Need::default() }), ["cpu.turbo"]);
}

/// Each setting that would change is one that `check` complains about, on each recorded machine and for each limit of a
/// use, from 1 us to 1 s.
#[test]
fn no_plan_changes_what_the_check_finds_good() {
    use FindingState::{NotApplicable, Ok};
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    let machines = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut judged = BTreeSet::new();
    for folder in machines.filter(|path| path.is_dir() && !path.ends_with("findings")) {
        let root = Root::at(&folder);
        let machine = facts(&root);
        for limit_ns in [None].into_iter().chain((0..7).map(|power| Some(1000 * 10_u64.pow(power)))) {
            let found = crate::findings(&root, &machine, limit_ns, None);
            let plan = plan(&root, &Need { limit_ns, ..Need::default() }).unwrap();
            let lifts_limit = plan.changes.iter().any(|setting| setting.id == "cpu.max_freq");
            for setting in &plan.changes {
                let Some(id) = definition(setting.id).unwrap().finding else { continue };
                let finding = found.iter().find(|finding| finding.id == id).unwrap();
                judged.insert(setting.id);
                let is_good = matches!(finding.state, Ok | NotApplicable);
                assert!(
                    !is_good || setting.id == "cpu.governor" && lifts_limit,
                    "{} for {limit_ns:?}: {} would change, but {finding:?}",
                    folder.display(),
                    setting.id
                );
            }
        }
    }
    assert!(judged.len() > 8 && judged.contains("cpu.governor"), "{judged:?}");
}

/// A limit that `tune` has set is good for `check`, and disabled states do not count for either.
#[test]
fn check_and_tune_judge_idle_states_alike() {
    let fake = Rc::new(Fake::new());
    for cpu in 0..2 {
        for (state, exit_us) in [("state0", "0"), ("state1", "2"), ("state2", "230")] {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/{state}");
            fake.put(&format!("{folder}/name"), state);
            fake.put(&format!("{folder}/latency"), exit_us);
            fake.put(&format!("{folder}/disable"), "0");
        }
    }
    let judge = || {
        let found = crate::findings(&fake.root, &facts(&fake.root), None, None);
        let state = found.into_iter().find(|finding| finding.id == "cpu.idle_states").unwrap().state;
        let plan = fake.plan(&Need::default());
        let has = |settings: &[Setting]| settings.iter().any(|setting| setting.id == "cpu.idle_states");
        (state, has(&plan.changes), has(&plan.right))
    };
    let limit = |cpu: u32, value: &str| fake.put(&facts::latency_limit(cpu), value);
    assert_eq!(judge(), (FindingState::Warn, true, false));
    limit(0, "10");
    assert_eq!(judge(), (FindingState::Warn, true, false), "CPU 1 has no limit");
    for value in ["10", "n/a", "100"] {
        limit(0, value);
        limit(1, value);
        assert_eq!(judge(), (FindingState::Ok, false, true), "{value}");
    }
    limit(0, "0");
    limit(1, "0");
    for cpu in 0..2 {
        fake.put(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state2/disable"), "1");
    }
    assert_eq!(judge(), (FindingState::Ok, false, false));
}

#[test]
fn only_one_of_the_settings_of_a_file_is_planned() {
    let fake = Fake::new();
    let plan = |set: &[&str]| {
        let set = set.iter().map(|text| text.parse().unwrap()).collect();
        fake.plan(&Need { set, ..Need::default() })
    };
    let left_out = |plan: &Plan, id: &str| {
        let not = plan.not_here.iter().find(|not| not.id == id)?;
        Some((not.reason.clone(), not.is_named))
    };
    let max_freq = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq";
    // The user named one of them.
    let fixed = plan(&["cpu.frequency=1000MHz"]);
    assert!(ids(&fixed.changes).contains(&"cpu.frequency") && !ids(&fixed.changes).contains(&"cpu.max_freq"));
    assert_eq!(left_out(&fixed, "cpu.max_freq"), Some((format!("cpu.frequency sets {max_freq} to 1000000"), false)));
    assert_eq!(keep_with(fake.ops(), &fixed.changes).unwrap().refused, []);
    revert_with(&*fake).unwrap();
    // Both: the first of the table.
    let both = plan(&["cpu.frequency=1000MHz", "cpu.max_freq=1200MHz"]);
    assert_eq!(left_out(&both, "cpu.frequency"), Some((format!("cpu.max_freq sets {max_freq} to 1200000"), true)));
    // The same value for both is no conflict.
    let same = plan(&["cpu.frequency=max"]);
    assert!(ids(&same.changes).contains(&"cpu.frequency") && ids(&same.changes).contains(&"cpu.max_freq"));
}

#[test]
fn a_default_that_the_machine_does_not_offer_is_no_mistake_of_the_user() {
    let fake = Fake::new();
    for cpu in 0..2 {
        let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
        fake.put(&file("scaling_available_governors"), "ondemand powersave");
        fake.put(&file("energy_performance_available_preferences"), "default balance_performance power");
    }
    for id in ["cpu.governor", "cpu.energy_preference"] {
        let plan = fake.plan(&Need { only: vec![id], ..Need::default() });
        assert!(
            plan.not_here[0].is_named
                && plan.not_here[0].reason.starts_with("CPU 0 does not offer `performance`: it offers ")
        );
    }
    let wrong = chosen_with(&*fake, &["cpu.governor=fast".parse().unwrap()], None).unwrap_err();
    assert!(matches!(wrong, PlanError::Value { .. }));
}

#[test]
fn the_missing_limit_of_a_frequency_is_named() {
    let fake = Fake::new();
    let reason = || {
        let plan = fake.plan(&Need { only: vec!["cpu.max_freq"], ..Need::default() });
        plan.not_here.into_iter().map(|not| not.reason).next()
    };
    assert_eq!(reason(), None);
    for (name, text) in [("cpuinfo_min_freq", "400000"), ("cpuinfo_max_freq", "1600000")] {
        let path = format!("sys/devices/system/cpu/cpu1/cpufreq/{name}");
        fs::remove_file(fake.root.path(&path)).unwrap();
        assert_eq!(reason(), Some(format!("this machine has no /{path}")));
        fake.put(&path, "fast");
        assert!(reason().unwrap().starts_with(&format!("/{path} is `fast`")));
        fake.put(&path, text);
    }
}

#[test]
fn the_limit_of_real_time_threads_is_set_where_the_kernel_has_it() {
    let fake = Fake::new();
    let plan = |value: &str| {
        let need = Need { only: vec!["rt.throttling"], set: vec![value.parse().unwrap()], ..Need::default() };
        plan_with(&*fake, &need).map(|plan| plan.changes.len()).map_err(|error| error.to_string())
    };
    let too_high = "rt.throttling: must be -1 to 1000000 (got 1500000)".to_owned();
    assert_eq!(plan("rt.throttling=1500000"), Err(too_high));
    fake.put("proc/sys/kernel/sched_rt_period_us", "2000000");
    assert_eq!(plan("rt.throttling=1500000"), Ok(1));
    // Since 6.12, other kernels ignore it.
    fake.put("proc/sys/kernel/osrelease", "6.12.0");
    for (config, expected) in [("CONFIG_RT_GROUP_SCHED=y\n", 1), ("# CONFIG_RT_GROUP_SCHED is not set\n", 0)] {
        fake.put("boot/config-6.12.0", config);
        assert_eq!(plan("rt.throttling=off"), Ok(expected), "{config}");
    }
}

/// A named setting changes also where it has no effect, but promises none.
#[test]
fn a_named_setting_without_an_effect_says_so() {
    let fake = Fake::new();
    let promise = |text: &str| {
        let choice: Choice = text.parse().unwrap();
        let (only, set) = (vec![choice.id], vec![choice]);
        let plan = fake.plan(&Need { only, set, ..Need::default() });
        let [setting] = plan.changes.as_slice() else { panic!("{text}: {plan:?}") };
        (setting.effect, setting.note.clone().unwrap_or_default())
    };
    assert_eq!(promise("cpu.governor"), ("no slow start after a pause", String::new()));
    for cpu in 0..2 {
        let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_{name}");
        fake.put(&file("min_freq"), "1600000");
        fake.put(&file("max_freq"), "1600000");
    }
    fake.put("sys/devices/system/cpu/nohz_full", "(null)");
    fake.put("proc/swaps", "Filename Type Size\n");
    let fixed = "the frequency is fixed: its limits are equal, or its governor keeps it";
    for (text, expected) in [
        ("cpu.governor", fixed),
        ("cpu.governor=performance", fixed),
        ("kernel.timer_migration", "no CPU runs without a tick, so timers stay on their CPU"),
        ("memory.swappiness=1", "no swap is in use"),
        (
            "cpu.statistics",
            "no CPU is set apart for real-time work, and only such a quiet one gains: name some with --cpus",
        ),
    ] {
        assert_eq!(promise(text), ("none expected here", expected.to_owned()), "{text}");
    }
}
