//! `tune` on a machine in a folder, whose files are regular ones.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
    process::{Command, Output},
};

use super::harness::{PUNCTUAL, Scratch};

const INTERRUPTS: u32 = 300;

/// A machine with two CPUs and many interrupts.
fn machine() -> Scratch {
    let scratch = Scratch::new();
    let put = |path: &str, text: &str| {
        let path = scratch.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("sys/devices/system/cpu/online", "0-1\n");
    put("sys/devices/system/cpu/isolated", "\n");
    for cpu in 0..2 {
        let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
        put(&file("scaling_governor"), "powersave\n");
        put(&file("scaling_available_governors"), "performance powersave\n");
    }
    for number in 0..INTERRUPTS {
        put(&format!("proc/irq/{number}/smp_affinity_list"), "0-1\n");
    }
    put("proc/sys/vm/stat_interval", "1\n");
    put("proc/sys/kernel/timer_migration", "1\n");
    put("etc/default/grub", "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n");
    fs::create_dir_all(scratch.path().join("etc/systemd/system")).unwrap();
    scratch
}

/// The contents of all files except those of punctual, without white space at their ends.
fn state(folder: &Path) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten().map(|entry| entry.path()) {
            let name = entry.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            if matches!(&*name, "run" | "var") {
                continue;
            }
            if entry.is_dir() {
                folders.push(entry);
            } else {
                state.insert(name, fs::read_to_string(&entry).unwrap().trim().to_owned());
            }
        }
    }
    state
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(PUNCTUAL);
    command.arg("tune").args(arguments.split_whitespace()).arg("--root").arg(folder);
    command
}

fn tune(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_plan_fits_on_one_screen_and_changes_nothing() {
    let machine = machine();
    let before = state(machine.path());
    let plan = tune(machine.path(), "--cpus 1");
    let shown = String::from_utf8_lossy(&plan.stdout);
    assert_eq!(plan.status.code(), Some(0), "{shown}");
    assert!(shown.contains("cpu.governor           powersave -> performance no slow start after a pause"), "{shown}");
    assert!(shown.lines().count() <= 20 && !shown.contains("..."), "{shown}");
    // The commands at the end contain the path of the folder.
    let settings = shown.lines().take_while(|line| !line.starts_with("apply"));
    assert!(settings.clone().count() > 5 && settings.clone().all(|line| line.chars().count() <= 80), "{shown}");
    let full = text(&tune(machine.path(), "--cpus 1 --full"));
    assert!(
        full.contains("in /etc/default/grub: GRUB_CMDLINE_LINUX_DEFAULT=\"quiet isolcpus=managed_irq,domain,1 "),
        "{full}"
    );
    let json = tune(machine.path(), "--only cpu.governor --json");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["plan"]["changes"][0]["writes"].as_array().unwrap().len(), 2);
    assert!(json["applied"].is_null());
    assert_eq!(state(machine.path()), before);
    assert!(!machine.path().join("run").exists(), "not even a journal");
}

#[test]
fn changes_are_made_and_reverted() {
    let machine = machine();
    let before = state(machine.path());
    let first = tune(machine.path(), "--yes --cpus 1 --without irq.affinity --setting cpu.governor=performance");
    assert_eq!(first.status.code(), Some(0), "{}", text(&first));
    let governor =
        |cpu: u32| state(machine.path())[&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")].clone();
    assert_eq!([governor(0), governor(1)], ["powersave", "performance"]);
    let again = tune(machine.path(), "--only cpu.governor,cpu.statistics --yes --persist --service jackd:70");
    assert_eq!(again.status.code(), Some(0), "{}", text(&again));
    let unit = state(machine.path())["etc/systemd/system/punctual-tune.service"].clone();
    let start = unit.lines().find(|line| line.starts_with("ExecStart=/")).unwrap();
    assert!(
        start.contains(" tune --only cpu.governor,cpu.statistics --yes --service jackd:70")
            && !unit.contains("--persist")
            && !unit.contains("--root"),
        "{unit}"
    );
    assert!(state(machine.path()).contains_key("etc/systemd/system/jackd.service.d/50-punctual.conf"));
    assert!(text(&tune(machine.path(), "")).contains("An earlier tune is in force"));
    let undo = format!("undo   sudo punctual tune --root {} --revert\n", machine.path().display());
    assert!(text(&again).ends_with(&undo), "{}", text(&again));
    let third = text(&tune(machine.path(), "--only cpu.governor --yes --persist"));
    assert!(third.contains("  replaced /etc/systemd/system/punctual-tune.service"), "{third}");
    let revert = tune(machine.path(), "--revert");
    assert_eq!(revert.status.code(), Some(0), "{}", text(&revert));
    assert_eq!(state(machine.path()), before);
    fs::remove_dir_all(machine.path().join("var")).unwrap();
    fs::write(machine.path().join("var"), "").unwrap();
    let refused = tune(machine.path(), "--yes --persist");
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("no setting was changed: cannot write the journal"), "{}", text(&refused));
    fs::remove_file(machine.path().join("var")).unwrap();
    assert_eq!(state(machine.path()), before);
    assert_eq!(text(&tune(machine.path(), "--revert")), "nothing to revert\n");
}

/// A machine whose CPU can reserve cache: a per cent sign alone begins a specifier of systemd.
#[test]
fn a_unit_of_systemd_gets_per_cents_as_they_are_given() {
    let machine = machine();
    let put = |path: &str, text: &str| {
        let path = machine.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (path, text) in [
        ("sys/fs/resctrl/schemata", "    L3:0=7ff\n"),
        ("sys/fs/resctrl/info/L3/cbm_mask", "7ff\n"),
        ("sys/fs/resctrl/info/L3/min_cbm_bits", "1\n"),
        ("sys/devices/system/cpu/cpu1/cache/index3/level", "3\n"),
        ("sys/devices/system/cpu/cpu1/cache/index3/id", "0\n"),
    ] {
        put(path, text);
    }
    let tuned = tune(machine.path(), "--cpus 1 --only cpu.resctrl --setting cpu.resctrl=30% --yes --persist");
    let unit = state(machine.path()).get("etc/systemd/system/punctual-tune.service").cloned().unwrap_or_default();
    assert!(unit.contains(" --setting cpu.resctrl=30%% --yes"), "{unit}\n{}", text(&tuned));
    tune(machine.path(), "--revert");
    fs::remove_dir_all(machine.path().join("etc/systemd")).unwrap();
    let refused = tune(machine.path(), "--only cpu.governor --yes --persist");
    assert_eq!(refused.status.code(), Some(64));
    let expected = format!("there is no systemd in {}", machine.path().display());
    assert!(text(&refused).contains(&expected), "{}", text(&refused));
    put("run/openrc/softlevel", "default\n");
    for (option, expected) in [
        ("--persist", "this machine does not run systemd"),
        ("--service jackd", "services are started by OpenRC here, and --service is for systemd"),
    ] {
        let refused = tune(machine.path(), &format!("--only cpu.governor --yes {option}"));
        assert!(refused.status.code() == Some(64) && text(&refused).contains(expected), "{}", text(&refused));
    }
}

/// The folder of a machine by other paths. That of another root through `/proc` has none of its own.
#[test]
fn a_machine_is_found_by_each_path_of_its_folder() {
    let machine = machine();
    let plan = |root: &str| {
        let mut command = Command::new(PUNCTUAL);
        command.current_dir(machine.path()).args(["tune", "--only", "cpu.governor", "--json", "--root", root]);
        let output = command.output().unwrap();
        (output.status.code(), text(&output))
    };
    let whole = plan(&machine.path().to_string_lossy());
    assert!(whole.0 == Some(0) && whole.1.contains("powersave"), "{}", whole.1);
    let link = Scratch::new();
    std::os::unix::fs::symlink(machine.path(), link.path().join("link")).unwrap();
    for path in [".", "proc/..", &link.path().join("link").to_string_lossy()] {
        assert_eq!(plan(path), whole, "{path}");
    }
    let facts = |arguments: &[&str]| {
        let output = Command::new(PUNCTUAL).args(["machine", "--json"]).args(arguments).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (json["machine"]["kernel"].clone(), json["machine"]["container"].clone(), json["machine"]["boot_id"].clone())
    };
    assert_eq!(facts(&["--root", "/proc/self/root"]), facts(&[]));
}

#[test]
fn mistakes_and_a_second_tune_change_nothing() {
    let machine = machine();
    let before = state(machine.path());
    let refused = |arguments: &str, status: i32, expected: &str| {
        let output = tune(machine.path(), arguments);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments}: {text}");
        assert!(text.contains(expected), "{arguments}: {text}");
    };
    refused("--yes --cpus 7", 64, "CPU 7 is not online here");
    refused("--yes --setting cpu.governor=fast", 64, "it offers performance powersave");
    refused("--yes --only cpu.gover", 64, "unknown setting `cpu.gover`: did you mean cpu.governor?");
    refused("--setting cpu.govenor=powersave", 64, "unknown setting `cpu.govenor`: did you mean cpu.governor?");
    refused("--without xyz", 64, "unknown setting `xyz`: the settings are cpu.energy_preference, ");
    refused("--yes --setting cpu.frequency", 64, "it needs a value");
    refused(
        "--yes --only cpu.turbo,cpu.statistics",
        1,
        "nothing was changed: cpu.turbo cannot be changed: this machine",
    );
    refused("--yes --setting nic.settings=eth9:eee=off", 1, "nothing was changed: nic.settings cannot be changed");
    refused("--only cpu.turbo", 1, "cpu.turbo cannot be changed: this machine has no /sys/");
    refused("--persist", 64, "--yes");
    refused("--revert --yes", 64, "cannot be used with");
    refused("--yes --service a/b", 64, "is not a service");
    refused("--yes --for nonsense", 64, "nonsense");
    refused("--for 30m", 64, "the time of a search is `tune --prove --duration 30m`");
    let folder = machine.path().join("run/punctual");
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("tune.lock")).unwrap();
    lock.try_lock().unwrap();
    refused("--yes", 1, "changes settings of this machine now");
    refused("--revert", 1, "changes settings of this machine now");
    assert_eq!(state(machine.path()), before);
    drop(lock);
    assert_eq!(tune(machine.path(), "--revert").status.code(), Some(0));

    refused("--service jakcd", 0, "but this machine has no unit jakcd.service");
    let journal = folder.join("1-1-kept-tuning.json");
    fs::write(&journal, "{").unwrap();
    refused("", 0, "--yes would refuse: cannot use the journal ");
    for arguments in ["--yes", "--yes --service jackd"] {
        refused(arguments, 1, &format!("rm {}`, and run again", journal.display()));
    }
    refused("--revert", 1, "check it, then remove it");
    assert_eq!(state(machine.path()), before);
}

#[test]
fn everything_is_reverted_after_a_kill() {
    const KILLS: u32 = 10;
    let machine = machine();
    let before = state(machine.path());
    let mut partial = 0;
    for kill in 0..KILLS {
        let watched = machine.path().join(format!("proc/irq/{}/smp_affinity_list", kill * INTERRUPTS / KILLS));
        let mut child = command(machine.path(), "--yes --cpus 1").stdout(std::process::Stdio::null()).spawn().unwrap();
        while child.try_wait().unwrap().is_none() {
            if fs::read_to_string(&watched).unwrap().trim() == "0" {
                child.kill().unwrap();
                break;
            }
        }
        child.wait().unwrap();
        let changed = state(machine.path()).iter().filter(|(path, text)| before[*path] != **text).count();
        // All are the interrupts, one governor, and two of the kernel.
        partial += u32::from((1..INTERRUPTS as usize).contains(&changed));
        let revert = tune(machine.path(), "--revert");
        assert_eq!(revert.status.code(), Some(0), "{}", text(&revert));
        let now = state(machine.path());
        let other: Vec<_> = now.iter().filter(|(path, text)| before[*path] != **text).collect();
        assert!(other.is_empty(), "kill {kill}: {other:?}");
    }
    assert!(partial > 0, "no kill was early enough");
}
