//! Values of the user, and values before the change.

use std::collections::BTreeSet;

use super::{super::*, fake::Fake, ids};

#[test]
fn values_are_checked_before_anything_changes() {
    let fake = Fake::new();
    let error = |text: &str| match text.parse::<Choice>() {
        Ok(choice) => chosen_with(&*fake, &[choice], None).unwrap_err().to_string(),
        Err(text) => text,
    };
    assert!(
        error("cpu.governer").starts_with("unknown setting `cpu.governer`: the settings are cpu.energy_preference, ")
    );
    assert!(error("cpu.governor=").contains("has no value"));
    assert_eq!(
        error("cpu.governor=fast"),
        "cpu.governor: CPU 0 does not offer `fast`: it offers performance powersave"
    );
    assert_eq!(error("cpu.max_freq=3GHz"), "cpu.max_freq: CPU 0 has no frequency of 3000MHz: use 400MHz to 1600MHz");
    assert_eq!(error("cpu.frequency"), "cpu.frequency: it needs a value: a frequency: 1000MHz, min or max");
    assert_eq!(error("memory.swappiness=201"), "memory.swappiness: must be 0 to 200 (got 201)");
    assert_eq!(error("kernel.watchdog=maybe"), "kernel.watchdog: `maybe` is not on or off");
    assert_eq!(error("memory.thp=[never]"), "memory.thp: `[never]` is not one of madvise, never, always");
    assert!(error("irq.priority=usb:90").contains("there are eth0, snd_usb"));
    assert!(error("irq.priority=eth0:100").contains("must be 1 to 99"));
    assert!(error("nic.settings=eth0").contains("names no interface"));
    assert!(error("power.usb").starts_with("power.usb cannot be changed: "));
    for text in ["6\n0", "6\u{1b}[2J", &"6".repeat(257)] {
        fake.put("proc/sys/vm/swappiness", text);
        assert!(error("memory.swappiness").ends_with("/proc/sys/vm/swappiness does not contain one value in one line"));
    }
    assert!(fake.written.borrow().is_empty());
}

#[test]
fn one_value_for_each_setting_and_each_device() {
    let fake = Fake::new();
    let settings = |texts: &[&str]| {
        let choices: Vec<Choice> = texts.iter().map(|text| text.parse().unwrap()).collect();
        chosen_with(&*fake, &choices, None)
    };
    let error = |texts: &[&str]| settings(texts).unwrap_err().to_string();
    assert_eq!(
        error(&["memory.thp=never", "memory.thp=madvise"]),
        "memory.thp: it has two values, never and madvise: leave one out"
    );
    assert_eq!(settings(&["memory.thp=never", "memory.thp=never"]).unwrap().len(), 1);
    assert_eq!(settings(&["cpu.turbo", "cpu.turbo=off"]).unwrap_err().to_string(), error(&["cpu.turbo"]));
    let priorities = |texts: &[&str]| {
        let settings = settings(texts).unwrap();
        let mut all: Vec<String> = settings[0].writes.iter().map(|w| format!("{} {}", w.target, w.to)).collect();
        all.sort_unstable();
        all.join(", ")
    };
    assert_eq!(
        priorities(&["irq.priority=40", "irq.priority=snd_usb:90"]),
        "thread 40 (irq/7-eth0) fifo:40, thread 41 (irq/8-snd_usb) fifo:90"
    );
    assert_eq!(
        priorities(&["irq.priority=eth0:60", "irq.priority=snd_usb:90"]),
        "thread 40 (irq/7-eth0) fifo:60, thread 41 (irq/8-snd_usb) fifo:90"
    );
    let set = vec!["memory.thp=never".parse().unwrap()];
    let without = vec!["memory.thp"];
    let refused = plan_with(&*fake, &Need { set, without, ..Need::default() }).unwrap_err();
    assert_eq!(refused.to_string(), "memory.thp: it is both named and left alone: leave one of them out");
}

#[test]
fn a_value_of_the_user_has_precedence_over_a_name() {
    let fake = Fake::new();
    let need = |only: &[&'static str], set: &[&str]| Need {
        only: only.to_vec(),
        set: set.iter().map(|text| text.parse().unwrap()).collect(),
        ..Need::default()
    };
    let plan = fake.plan(&need(&["cpu.max_freq", "cpu.min_freq"], &["cpu.frequency=800MHz"]));
    assert_eq!(ids(&plan.changes), ["cpu.frequency"]);
    let refused: Vec<_> = plan.not_here.iter().map(|not| (not.id, not.is_named)).collect();
    assert_eq!(refused, [("cpu.max_freq", true), ("cpu.min_freq", true)]);
}

/// For every file that a setting would write: an old value that the setting does not know stops the setting, and only a
/// message names the file.
#[test]
fn an_old_value_that_is_not_understood_stops_its_setting() {
    let fake = Fake::new();
    let mut judged = BTreeSet::new();
    for setting in fake.all() {
        let files = setting.writes.iter().filter_map(|write| match &write.target {
            Target::File(path) => Some(path.clone()),
            _ => None,
        });
        for path in files {
            let old = fake.root.read(&path).unwrap();
            for garbage in ["", "fast!", "-7", "1 2", "[a] [b]", "default performance", "99999999999999999999"] {
                // An interrupt without a CPU has an empty list.
                if garbage.is_empty() && setting.id == "irq.affinity" {
                    continue;
                }
                fake.put(&path, garbage);
                let set = vec![Choice { id: setting.id, value: None }];
                let set = if setting.id == "cpu.min_freq" { vec!["cpu.min_freq=800MHz".parse().unwrap()] } else { set };
                let plan = fake.plan(&Need { cpus: Some("1".parse().unwrap()), set, ..Need::default() });
                let is_it = |other: &&Setting| other.id == setting.id;
                assert!(
                    plan.changes.iter().chain(&plan.right).find(is_it).is_none(),
                    "{}: {path} = {garbage}",
                    setting.id
                );
                let reason = &plan.not_here.iter().find(|not| not.id == setting.id).unwrap().reason;
                assert!(reason.contains(&path), "{}: {path} = {garbage}: {reason}", setting.id);
                judged.insert(setting.id);
            }
            fake.put(&path, &old);
        }
    }
    assert!(judged.len() >= 14, "{judged:?}");
    fake.put("sys/module/pcie_aspm/parameters/policy", "performance");
    let reason = chosen_with(&*fake, &["power.aspm".parse().unwrap()], None).unwrap_err().to_string();
    assert_eq!(
        reason,
        "power.aspm cannot be changed: /sys/module/pcie_aspm/parameters/policy is `performance`, but should be a list with \
         the value in force in brackets: it is left as it is"
    );
    assert!(fake.written.borrow().is_empty());
}

/// The effect of a setting is not promised for each value of the user.
#[test]
fn an_effect_is_promised_only_for_values_that_have_it() {
    let fake = Fake::new();
    fake.put("sys/devices/system/cpu/intel_pstate/no_turbo", "1");
    fake.put("sys/module/pcie_aspm/parameters/policy", "default [performance] powersave powersupersave");
    fake.put("sys/bus/pci/devices/0000:00:02.0/power/control", "on");
    fake.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    fake.put("sys/kernel/mm/ksm/run", "0");
    let effect = |text: &str| {
        let settings = chosen_with(&*fake, &[text.parse().unwrap()], Some(&"1".parse().unwrap())).unwrap();
        assert!(!settings[0].is_right(), "{text}");
        let has_risk = settings[0].risk == definition(settings[0].id).unwrap().risk;
        assert_eq!(has_risk, settings[0].effect != "as you asked", "{text}");
        settings[0].effect
    };
    for (value, other) in [
        ("cpu.governor=performance", None),
        ("cpu.energy_preference=performance", Some("cpu.energy_preference=power")),
        ("cpu.idle_states=0us", Some("cpu.idle_states=1000us")),
        ("cpu.statistics=60", None),
        ("rt.throttling=off", Some("rt.throttling=500000")),
        ("memory.thp=never", Some("memory.thp=always")),
        ("memory.ksm=off", Some("memory.ksm=on")),
        ("memory.swappiness=1", Some("memory.swappiness=50")),
        ("memory.writeback=1000", Some("memory.writeback=100")),
        ("kernel.watchdog=off", None),
        ("kernel.timer_migration=off", None),
    ] {
        let id = value.split('=').next().unwrap();
        assert_eq!(effect(value), definition(id).unwrap().effect, "{value}");
        assert_ne!(effect(value), "as you asked");
        if let Some(other) = other {
            assert_eq!(effect(other), "as you asked", "{other}");
        }
    }
    for value in ["cpu.turbo=on", "power.pci=auto", "power.aspm=powersave", "memory.numa_balancing=on"] {
        assert_eq!(effect(value), "as you asked", "{value}");
    }
}
