//! `punctual tune --prove` on this machine: real changes, real rounds, and everything restored.

use std::{fs, path::Path, process::Stdio};

use record::{
    Proof, State,
    file::read_proof,
    proof::{CONTROL, Compares, Figure},
};

use crate::harness::{Scratch, Start, alone, last_cpu, signal, skip, wait_until};

/// The files that the changes write.
const FILES: [&str; 2] = ["/proc/sys/vm/stat_interval", "/proc/sys/kernel/timer_migration"];
/// Rounds so short that a search takes seconds.
const SEARCH: &str = "tune --prove --only cpu.statistics,kernel.timer_migration --duration 90s --dir search";
const ROUND: &str = "-- timer --cpus 0 --duration 20ms";

fn values() -> Vec<String> {
    FILES.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// The document so far; `None` before there is one.
fn proof_in(folder: &Path) -> Option<Proof> {
    read_proof(&folder.join("search/proof.json")).ok()
}

#[test]
fn a_killed_search_restores_everything_and_can_be_resumed() {
    let _alone = alone();
    if values().iter().map(|value| value.trim()).ne(["1", "1"]) {
        return skip("the kernel's statistics and timer migration are not as the kernel sets them");
    }
    let before = values();
    let scratch = Scratch::new();
    let mut killed = scratch.punctual(&format!("{SEARCH} {ROUND}"));
    let mut killed = killed.stdout(Stdio::null()).stderr(Stdio::null()).start();
    let rounds = || proof_in(scratch.path()).map_or(0, |proof| proof.rounds.len());
    wait_until("some rounds are measured", || rounds() >= 6);
    wait_until("a change is made", || values() != before);
    signal(&killed, "KILL");
    killed.wait().unwrap();
    let measured = rounds();
    for (words, expected) in [
        (SEARCH.replace("90s", "3m"), "which another --duration does not change: leave out --duration"),
        (format!("{SEARCH} --setting cpu.statistics=60"), "was started with other changes (then "),
    ] {
        let other = scratch.run(&format!("{words} --resume {ROUND}"));
        assert!(other.expect_status(1).stderr().contains(expected), "{}", other.stderr());
    }
    for other in ["--period 2ms", "--shield 0"] {
        let other = scratch.run(&format!("{SEARCH} --resume {ROUND} {other}"));
        let message = other.expect_status(1).stderr();
        assert!(message.contains("another measurement: continue it with `"), "{message}");
        assert!(message.contains(&format!("{SEARCH} --resume {ROUND}`, start again")), "{message}");
    }
    assert_eq!(rounds(), measured, "a refused command leaves the search as it was");

    let output = scratch.run(&format!("{SEARCH} --resume {ROUND}"));
    output.expect_status(0);
    assert_eq!(values(), before);
    assert!(output.stderr().contains("already done"), "{}", output.stderr());
    let proof = proof_in(scratch.path()).unwrap();
    assert_eq!(proof.state, State::Complete);
    assert!(proof.rounds.len() > measured);
    // Each candidate and the control are applied in half of the rounds of the screening.
    let halves: Vec<_> = proof.rounds.iter().filter(|round| round.compares == Compares::Halves).collect();
    for (index, candidate) in proof.candidates.iter().enumerate() {
        let applied = halves.iter().filter(|round| round.applied.contains(&index)).count();
        assert_eq!(applied * 2, halves.len(), "{}", candidate.id);
    }
    assert_eq!(proof.candidates.last().unwrap().id, CONTROL);
    assert_eq!(proof.conclusion.unwrap().effects.len(), 3);
    assert!(scratch.path().join("search/proof.html").exists());
    let shown = scratch.run("show search/proof.json");
    assert!(shown.expect_status(0).stdout().contains("cpu.statistics"), "{}", shown.stdout());
    scratch.run(&format!("{SEARCH} {ROUND}")).expect_status(1);
}

#[test]
fn others_change_no_settings_while_a_search_runs() {
    // So many that some come between two rounds, and others in rounds without any change.
    const ATTEMPTS: usize = 24;
    let _alone = alone();
    let scratch = Scratch::new();
    let before = values();
    let mut search = scratch.punctual(&format!("{SEARCH} {ROUND}"));
    let mut search = search.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("a round is measured", || proof_in(scratch.path()).is_some_and(|proof| !proof.rounds.is_empty()));
    let others = [
        "tune --only kernel.timer_migration --yes",
        "tune --revert",
        "tune --prove --only kernel.timer_migration --dir other",
        "measure timer --cpus 0 --duration 10ms --setting kernel.timer_migration",
    ];
    for words in others.iter().cycle().take(ATTEMPTS) {
        let other = scratch.run(words);
        assert!(search.try_wait().unwrap().is_none(), "the search runs");
        let error = other.expect_status(1).stderr();
        assert!(error.contains("e.g. a search with --prove"), "{words}: {error}");
    }
    assert!(!scratch.path().join("other").exists());
    signal(&search, "KILL");
    search.wait().unwrap();
    scratch.run("tune --revert").expect_status(0);
    assert_eq!(values(), before);
}

#[test]
fn a_search_without_a_measured_round_leaves_nothing() {
    let _alone = alone();
    let scratch = Scratch::new();
    let entries = || fs::read_dir(scratch.path()).unwrap().count();
    let search = "tune --prove --only kernel.timer_migration --duration 90s";
    for (measurement, expected) in [
        ("timer --cpus 0 --load disk:dir=/nonexistent --duration 20ms", "there is no such folder"),
        ("noise --cpus 0 --duration 1ns", "mend that, and start again"),
    ] {
        let output = scratch.run(&format!("{search} -- {measurement}"));
        let error = output.expect_status(1).stderr();
        assert!(error.contains(expected) && !error.contains("--resume"), "{measurement}: {error}");
        assert!(!error.contains("proof.json") && output.stdout().is_empty(), "{measurement}: {error}");
        assert_eq!(entries(), 0, "{measurement}");
    }
    // A folder of the user stays.
    fs::create_dir(scratch.path().join("search")).unwrap();
    let first = format!("{SEARCH} -- timer --cpus 0 --duration 500ms").replace("90s", "10m");
    let mut stopped = scratch.punctual(&first);
    let mut stopped = stopped.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the search has begun", || proof_in(scratch.path()).is_some());
    signal(&stopped, "INT");
    assert_eq!(stopped.wait().unwrap().code(), Some(3));
    assert_eq!((entries(), fs::read_dir(scratch.path().join("search")).unwrap().count()), (1, 0));
    let resumed = scratch.run(&first.replace("--dir search", "--resume"));
    assert!(resumed.expect_status(1).stderr().contains("no search to continue"), "{}", resumed.stderr());
}

#[test]
fn a_search_that_is_too_short_says_how_long_it_must_be() {
    let scratch = Scratch::new();
    let output = scratch.run("tune --prove --only kernel.timer_migration --duration 10s");
    let error = output.expect_status(1).stderr();
    assert!(error.contains("at least --duration"), "{error}");
    assert!(fs::read_dir(scratch.path()).unwrap().next().is_none(), "no folder is left");
}

/// Each kind of measurement fills its own figures: completion times of audio, send times of a talker.
#[test]
fn rounds_of_audio_and_streams_are_measured() {
    let _alone = alone();
    let scratch = Scratch::new();
    for (measurement, dir) in [
        ("audio --policy other --model builtin:nano --frames 48", "audio"),
        ("stream --self --policy other --wakeup-offset 0us", "stream"),
    ] {
        let search = format!("tune --prove --only kernel.timer_migration --duration 40s --dir {dir}");
        let output = scratch.run(&format!("{search} --cpus 0 -- {measurement} --duration 20ms"));
        output.expect_status(0);
        let proof = read_proof(&scratch.path().join(dir).join("proof.json")).unwrap();
        assert_eq!((proof.state, proof.scenario.probe.as_str()), (State::Complete, dir));
        assert!(proof.rounds.len() >= 108, "{} rounds", proof.rounds.len());
        for round in &proof.rounds {
            // 20 ms are 20 periods of 48 frames, and 160 frames of class A: 1 in 1000 is not apart from the maximum.
            assert!(round.samples >= 1, "{round:?}");
            assert!(round.figures[&Figure::Max] > 0.0 && !round.figures.contains_key(&Figure::P9999), "{round:?}");
        }
    }
}

#[test]
fn measurements_that_do_not_make_equal_rounds_are_refused() {
    let scratch = Scratch::new();
    for (measurement, expected) in [
        ("process 1", "process cannot be measured in rounds"),
        ("stream --self", "--wakeup-offset 0us"),
        ("stream --self --wakeup-offset knee", "--wakeup-offset 0us"),
        ("stream --self --wakeup-offset 0us --capture a.pcap", "leave out --capture"),
        ("stream --self --wakeup-offset 0us --maap", "leave out --maap"),
        ("audio --find-buffer", "replace --find-buffer with --frames N"),
        ("threads --matrix", "leave out --matrix"),
        ("interrupt --list", "leave out --list"),
        ("interrupt", "choose a source of interrupts with --source"),
        ("audio --endless", "replace --endless with --duration"),
        ("timer --until-decided --duration 1s --profile avb-class-a", "leave out --until-decided"),
    ] {
        let output =
            scratch.run(&format!("tune --prove --only kernel.timer_migration --duration 10m -- {measurement}"));
        let error = output.expect_status(64).stderr();
        assert!(error.contains(expected), "{measurement}: {error}");
    }
    assert!(fs::read_dir(scratch.path()).unwrap().next().is_none(), "no folder is left");
}

#[test]
fn a_setting_that_each_round_sets_is_not_tried() {
    let scratch = Scratch::new();
    let setting = "tune --prove --only kernel.timer_migration -- timer --setting kernel.timer_migration";
    let error = scratch.run(setting).expect_status(64).stderr();
    assert!(error.contains("leave out --setting kernel.timer_migration after `--`"), "{error}");
    let cpu = last_cpu();
    for (only, option) in
        [("cpu.programs", format!("--shield {cpu}")), ("cpu.idle_states", "--hold-cpu-awake".to_owned())]
    {
        let named = scratch.run(&format!("tune --prove --cpus {cpu} --only {only} -- timer {option}"));
        // Its idle states may be too short for the setting.
        if named.stderr().contains("nothing to try") {
            skip(&format!("{only}, which cannot be changed here"));
            continue;
        }
        let error = named.expect_status(64).stderr();
        let option = option.split(' ').next().unwrap();
        assert!(
            error.contains(&format!("{only} cannot be tried and set in each round: leave out {option}")),
            "{error}"
        );
    }
    // Settings that were not named are left out.
    let short = format!("tune --prove --cpus {cpu} --without irq.affinity --duration 1s -- timer --shield {cpu}");
    let said = scratch.run(&short).expect_status(1).stderr();
    assert!(said.contains("note: cpu.programs is not tried: --shield sets it in each round"), "{said}");
    let threads = fs::read_dir("/proc").unwrap().flatten();
    let names = threads.filter_map(|process| fs::read_to_string(process.path().join("comm")).ok());
    let Some(interrupt) =
        names.filter_map(|name| Some(name.strip_prefix("irq/")?.split_once('-')?.1.to_owned())).next()
    else {
        return skip("there is no interrupt thread");
    };
    let tried = format!("tune --prove --only irq.priority --setting irq.priority={}:61", interrupt.trim());
    let error =
        scratch.run(&format!("{tried} -- interrupt --source gpio:0/1 --irq-priority 62")).expect_status(64).stderr();
    assert!(error.contains("irq.priority cannot be tried and set in each round: leave out --irq-priority"), "{error}");
    assert!(fs::read_dir(scratch.path()).unwrap().next().is_none(), "no folder is left");
}

#[test]
fn a_search_with_reboots_names_what_it_needs() {
    let scratch = Scratch::new();
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let all_cpus = format!("tune --prove --reboot --cpus {}", online.trim());
    for (words, status, expected) in [
        (&*all_cpus, 64, "would leave no CPU for other work"),
        ("tune --prove --reboot", 64, "name the CPUs to isolate with --cpus LIST"),
        ("tune --reboot --cpus 0", 64, "--prove"),
        ("tune --prove --reboot --cpus 0 --boot nohz=on --resume --dir nosuch", 1, "no search to continue in nosuch"),
        ("tune --prove --boot quiet", 64, "--reboot"),
        ("tune --prove --reboot --cpus 0 --setting kernel.watchdog", 64, "--setting"),
        ("tune --prove --reboot --cpus 0 --boot a=$(b)", 64, "cannot be an argument of the kernel here"),
        ("tune --prove --reboot --cpus 0 --boot kernel=vmlinuz", 64, "by its whole path"),
        ("tune --prove --reboot --boot quiet -- audio", 64, "name them with --cpus LIST"),
    ] {
        let output = scratch.run(words);
        let error = output.expect_status(status).stderr();
        assert!(error.contains(expected), "{words}: {error}");
    }
}
