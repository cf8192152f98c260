//! Campaign files, bad and good, and those that ship with punctual.
//!
//! What is said of each bad file stands in a `.txt` beside it.
//! `UPDATE=1 cargo test -p punctual-campaign --test files` writes these anew: read the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its files has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use campaign::{
    AROUND_NS, Asked, Cpus, FileMistakes, Length, Probe, Scenario, Scenarios, builtin, expand, file,
    probe::stream::{ListenXdp, WakeupOffset},
};
use loads::LoadSpec;
use machine::{CpuList, Root};
use probes::ReceiveWait;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().unwrap() == "toml").collect();
    paths.sort();
    paths
}

fn cpus(usable: &str, isolated: &str) -> Cpus {
    Cpus { usable: usable.parse().unwrap(), isolated: isolated.parse().unwrap() }
}

fn list(text: &str) -> CpuList {
    text.parse().unwrap()
}

fn read(path: &Path, cpus: &Cpus) -> Result<Scenarios, FileMistakes> {
    let name = path.file_name().unwrap().to_str().unwrap();
    expand(&file::parse(name, &fs::read_to_string(path).unwrap())?, cpus, &Asked::default())
}

fn shipped(name: &str, cpus: &Cpus, asked: &Asked) -> Scenarios {
    let (_, text) = builtin::FILES.iter().find(|(known, _)| *known == name).unwrap();
    expand(&file::parse(name, text).unwrap(), cpus, asked).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// On a machine with four CPUs, none of them isolated.
#[test]
fn what_is_said_of_each_bad_file() {
    let paths = files("bad");
    assert!(paths.len() >= 30);
    for path in paths {
        let said = read(&path, &cpus("0-3", "")).map(|_| ()).unwrap_err().to_string() + "\n";
        let pinned = path.with_extension("txt");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&pinned, &said).unwrap();
        }
        assert_eq!(said, fs::read_to_string(&pinned).unwrap_or_default(), "{}", path.display());
    }
}

#[test]
fn good_files_are_good_on_every_machine() {
    for path in files("good") {
        for machine in [cpus("0", ""), cpus("0-1", ""), cpus("0-3", "3"), cpus("0-2", "0-2"), cpus("0-7", "2-3")] {
            let scenarios = read(&path, &machine).unwrap_or_else(|mistakes| panic!("{mistakes} on {machine:?}"));
            assert!(scenarios.list.iter().all(|scenario| scenario.plan.check().is_ok() && scenario.planned_ns > 0));
        }
    }
}

#[test]
fn a_list_stands_in_place_of_the_product() {
    let path = &files("good")[2];
    let names: Vec<String> =
        read(path, &cpus("0-3", "")).unwrap().list.into_iter().map(|scenario| scenario.name).collect();
    assert_eq!(names, ["idle, first", "idle, last", "cpu, first", "cpu, last", "cache, first", "cache, last"]);
}

#[test]
fn shipped_campaigns_fit_machines_of_all_sizes() {
    for (name, text) in builtin::FILES {
        let file = file::parse(name, text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(file.name, name);
        assert!(!file.title.is_empty() && !file.source.is_empty() && text.contains("To shorten it: "), "{name}");
        for machine in [cpus("0", ""), cpus("0-1", ""), cpus("0-3", ""), cpus("0-3", "2-3"), cpus("0-3", "0-3")] {
            let scenarios = shipped(name, &machine, &Asked::default());
            for scenario in &scenarios.list {
                let plan = &scenario.plan;
                assert!(plan.check().is_ok() && !plan.cpus.as_ref().unwrap().is_empty(), "{name}");
                let loads = plan.phases.iter().flat_map(|phase| &phase.loads);
                let used = loads.filter_map(|spec| spec.cpus.as_ref()).chain(&plan.cpus);
                used.for_each(|used| assert!(used.difference(&machine.usable).is_empty(), "{name}"));
            }
        }
    }
}

#[test]
fn every_campaign_on_disk_ships() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns");
    let mut on_disk: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    on_disk.sort();
    assert_eq!(on_disk, builtin::FILES.map(|(name, _)| format!("{name}.toml")));
}

#[test]
fn shipped_campaigns_fit_recorded_machines() {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/machines");
    for machine in
        ["cloud-vm", "cnc-pc-rt", "container-cpuset", "khadas-vim3l-evl", "laptop-voluntary", "raspberry-pi-rt"]
    {
        let cpus = Cpus::of(&Root::at(machines.join(machine))).unwrap();
        for (name, _) in builtin::FILES {
            assert!(!shipped(name, &cpus, &Asked::default()).list.is_empty(), "{name} on {machine}");
        }
    }
}

/// The figures of the write-ups, on the machines that they were measured on.
#[test]
fn shipped_campaigns_are_those_of_their_sources() {
    let vim3l = cpus("0-3", "2-3");
    let ladder = shipped("vim3l-ladder", &vim3l, &Asked::default());
    assert_eq!(ladder.list.len(), 4);
    for scenario in &ladder.list {
        let told = (scenario.plan.cpus.clone(), scenario.plan.policy.to_string(), scenario.plan.phases[0].period_ns);
        assert_eq!(told, (Some(list("3")), "fifo:98".to_owned(), 1_000_000));
    }
    let matrix = shipped("cnc-matrix", &vim3l, &Asked::default());
    assert_eq!((matrix.list.len(), matrix.planned_ns() / 60_000_000_000), (32, 64));
    let pair = &matrix.list[16 + 4 + 2];
    assert_eq!(pair.name, "hogged, base 1, servo 2");
    let threads = &pair.plan.phases[0].threads;
    let told: Vec<_> = threads.iter().map(|thread| (&*thread.role, thread.cpu, thread.period_ns)).collect();
    assert_eq!(told, [("base", 1, 25_000), ("servo", 2, 1_000_000)]);
    assert_eq!(pair.plan.phases[0].loads[0].to_string(), "cpu:shell@0-1");

    let pi = cpus("0-3", "3");
    let isolated = shipped("isolated-or-ordinary", &pi, &Asked::default());
    let placed: Vec<_> =
        isolated.list.iter().map(|s| (&*s.placement, s.plan.cpus.as_ref().unwrap().to_string())).collect();
    assert_eq!(
        placed.iter().map(|(name, cpu)| (*name, cpu.as_str())).collect::<Vec<_>>(),
        [("isolated", "3"), ("ordinary", "2"), ("ordinary", "2"), ("isolated", "3")]
    );
    assert_eq!(isolated.list[0].plan.phases[0].length, Length::Samples(100_000));
    assert_eq!((isolated.list[0].planned_ns, &*isolated.list[0].plan.policy.to_string()), (40_000_000_000, "fifo:45"));

    let zynq = shipped("shielded-core", &cpus("0-3", ""), &Asked::default());
    let hogs: Vec<String> = zynq.list.last().unwrap().plan.phases[0].loads.iter().map(LoadSpec::to_string).collect();
    let eight = ["cpu@0-2", "cpu@0-2", "cpu@0-1", "memory@0-2", "memory@0-2", "memory@0-1"];
    assert_eq!(hogs, [&eight[..], &["timer:98@0-3"]].concat());

    let udp = shipped("udp-priorities", &cpus("0-3", ""), &Asked::default());
    let told: Vec<_> = udp.list.iter().map(|s| (&*s.name, s.plan.shield.as_ref().map(ToString::to_string))).collect();
    let shield = || Some("3".to_owned());
    let expected = [
        ("idle, not shielded", None),
        ("idle, shielded", shield()),
        ("hogs, not shielded", None),
        ("hogs, shielded", shield()),
    ];
    assert_eq!(told, expected);
    for scenario in &udp.list {
        let Probe::Udp(plan) = &scenario.plan.probe else { panic!("{:?}", scenario.plan.probe) };
        assert_eq!(plan.peer, None);
        let sender = &scenario.plan.phases[0].threads[0];
        let policies = [sender.policy, plan.receive_policy, plan.echo_policy].map(|policy| policy.to_string());
        assert_eq!(policies, ["fifo:98"; 3], "{}", scenario.name);
        assert_eq!((plan.receive_cpu, plan.echo_cpu, sender.cpu), (Some(3), Some(0), 3));
    }
    let of = |index: usize| {
        udp.list[index].plan.phases[0].loads.iter().map(LoadSpec::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of(2), "cpu@0-3 cpu@0-3 memory@0-3 memory@0-3 timer:97@0-3", "8 of each, on every CPU");
    assert!(of(3).starts_with("cpu@0-2 cpu@0-2 cpu@0-1 memory@0-2"), "and outside the shield: {}", of(3));

    let endpoint = shipped("avb-endpoint", &cpus("0-3", ""), &Asked::default());
    let placements: Vec<&str> = endpoint.list[..4].iter().map(|scenario| &*scenario.placement).collect();
    let own = ["core of its own, offset 0us", "core of its own, offset auto"];
    assert_eq!(placements, ["ordinary core, offset 0us", "ordinary core, offset auto", own[0], own[1]]);
    let Probe::Stream(stream) = &endpoint.list[7].plan.probe else { panic!("{:?}", endpoint.list[7].plan.probe) };
    assert_eq!((stream.talk_cpu, stream.listen_cpu), (Some(3), Some(2)));
    assert_eq!((stream.offset, stream.interface()), (WakeupOffset::Auto, None));
    let plan = &endpoint.list[7].plan;
    assert_eq!((&plan.cpus, &plan.shield, plan.phases[0].period_ns), (&Some(list("2-3")), &Some(list("3")), 125_000));
    assert_eq!(endpoint.list[7].planned_ns - endpoint.list[6].planned_ns, 5_000_000_000, "the offset is looked for");

    let avb = shipped("avb-cyclic", &vim3l, &Asked::default());
    assert_eq!((avb.list[0].plan.phases[0].period_ns, &avb.list[0].plan.cpus), (125_000, &Some(list("0-3"))));
}

#[test]
fn an_interface_is_set_and_frames_are_taken_as_the_file_says() {
    let text = |settings: &str| {
        format!(
            "name = \"a\"\n[probe]\nkind = \"stream\"\nlisten = \"eth0\"\nstream_id = \"30643e54ee010007\"\n\
             receive = \"xdp-generic\"\nspin = true\nqueue = 3\n{settings}"
        )
    };
    let expanded = |settings| {
        let file = file::parse("a.toml", &text(settings)).unwrap();
        expand(&file, &cpus("0-3", ""), &Asked::default()).unwrap()
    };
    let plain = expanded("");
    let Probe::Stream(stream) = &plain.list[0].plan.probe else { panic!("{:?}", plain.list[0].plan.probe) };
    assert_eq!((stream.queue, stream.interface()), (3, Some("eth0")));
    assert_eq!((stream.stream_id, stream.xdp), (Some(0x3064_3e54_ee01_0007), Some(ListenXdp::Generic)));
    assert_eq!(stream.wait, ReceiveWait::Spin);
    assert!(plain.list[0].plan.nic.is_empty());

    let set = expanded("[settings]\nnic = \"coalesce=0\"\nirq_priority = 85");
    let Scenario { settings, plan, .. } = &set.list[0];
    assert_eq!((settings.as_str(), plan.nic.irq_priority), ("coalesce=0 irq 85", Some(85)));
    assert_eq!(plan.nic.values, "coalesce=0".parse().unwrap());
    assert_ne!(set.digest, plain.digest, "another plan");
}

#[test]
fn probes_without_names_are_called_by_what_tells_them_apart() {
    let names = |probes: &[&str]| {
        let probes: String = probes.iter().map(|probe| format!("[[probe]]\n{probe}\n")).collect();
        let file = file::parse("a.toml", &format!("name = \"a\"\n{probes}")).unwrap();
        file.probes.into_iter().map(|probe| probe.name).collect::<Vec<_>>()
    };
    let audio = |more: &str| format!("kind = \"audio\"\nduration = \"5s\"\n{more}");
    assert_eq!(names(&[&audio("frames = 32")]), ["audio"], "the only one of its kind");
    let told = names(&[
        &audio("frames = 32"),
        &audio("frames = 64"),
        &audio("frames = 64\nmodel = \"deluxe.nam\""),
        &audio("preset = \"lead.toml\""),
        &audio(""),
        "period = \"2ms\"",
        "name = \"mine\"\nkind = \"audio\"",
    ]);
    let [many, more] = ["audio frames 64", "audio frames 64 model deluxe.nam"];
    assert_eq!(told, ["audio frames 32", many, more, "audio preset lead.toml", "audio", "timer", "mine"]);
    assert_eq!(names(&["period = \"1ms\"", "period = \"2ms\""]), ["timer period 1ms", "timer period 2ms"]);
    assert_eq!(names(&["", "kind = \"timer\"\nperiod = \"2ms\""]), ["timer", "timer period 2ms"]);
}

#[test]
fn what_stands_in_is_said() {
    let notes = shipped("shielded-core", &cpus("0", ""), &Asked::default()).notes;
    assert_eq!(
        notes,
        [
            "hogs: `all` (CPU 0) stands in for `others` on this machine",
            "shielded: `none` (no CPU) stands in for `measured` on this machine",
        ]
    );
    assert!(shipped("vim3l-ladder", &cpus("0-3", "2-3"), &Asked::default()).notes.is_empty());
}

#[test]
fn a_length_of_the_users_own_counts_for_every_scenario() {
    let asked = Asked { duration_ns: Some(2_000_000_000), ..Asked::default() };
    for (name, _) in builtin::FILES {
        let scenarios = shipped(name, &cpus("0-1", ""), &asked);
        let calibrating = scenarios.list.iter().filter(|scenario| scenario.plan.calibrates()).count() as u64;
        let lengths = scenarios.list.iter().map(|scenario| scenario.plan.phases[0].length);
        assert!(lengths.into_iter().all(|length| length == Length::Duration(2_000_000_000)));
        let rests = (scenarios.list.len() as u64 - 1) * scenarios.rest_ns;
        let measured = scenarios.list.len() as u64 * (2_000_000_000 + AROUND_NS);
        assert_eq!(scenarios.planned_ns(), measured + calibrating * 5_000_000_000 + rests);
    }
}

#[test]
fn what_runs_decides_the_digest_and_who_runs_it_does_not() {
    let four = cpus("0-3", "");
    let digest = |cpus: &Cpus, asked: &Asked| shipped("vim3l-ladder", cpus, asked).digest;
    let asked = Asked { command: vec!["punctual".to_owned()], executable: "/x".into(), ..Asked::default() };
    assert_eq!(digest(&four, &Asked::default()), digest(&four, &asked));
    assert_ne!(digest(&four, &asked), digest(&cpus("0-1", ""), &asked));
    assert_ne!(digest(&four, &asked), digest(&four, &Asked { duration_ns: Some(7), ..asked.clone() }));
    assert_eq!(digest(&four, &asked).len(), 16);
}

#[test]
fn the_examples_of_the_docs_are_right() {
    let docs = include_str!("../../../docs/campaigns.md");
    let examples: Vec<&str> =
        docs.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    let [product, listed] = examples[..] else { panic!("two examples") };
    let count = |text: &str| {
        let file = file::parse("docs.toml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        expand(&file, &cpus("0-3", ""), &Asked::default()).unwrap_or_else(|mistakes| panic!("{mistakes}")).list.len()
    };
    assert_eq!((count(product), count(&format!("{product}{listed}"))), (4, 3));
}

/// Every key and word that a mistake offers is explained.
#[test]
fn the_docs_name_every_key() {
    let docs = include_str!("../../../docs/campaigns.md");
    let all = "name = \"a\"\nx = 1\n[probe]\nx = 1\n[load]\nrun = [{ load = \"cpu\", x = 1 }]\nx = 1\n[placement]\nx = 1\n\
               cpus = \"x\"\nshield = \"x\"\n[settings]\nx = 1\n";
    let said = file::parse("a.toml", all).unwrap_err().to_string();
    let offers = said.lines().filter_map(|line| line.split_once("it takes ").or_else(|| line.split_once("0,2-3, or ")));
    let words = offers.flat_map(|(_, words)| words.split([',', ' '])).filter(|word| !["", "or"].contains(word));
    let words: Vec<&str> = words.collect();
    assert!(words.len() > 40, "{words:?}");
    for word in words {
        assert!(docs.contains(word), "{word}");
    }
}

#[test]
fn an_unknown_name_gets_the_nearest_one() {
    let error = campaign::find_campaign("vim3-ladder").unwrap_err().to_string();
    assert_eq!(
        error,
        "no campaign is called \"vim3-ladder\", did you mean `vim3l-ladder`?: list them with `punctual campaigns`, or name \
         a file that ends in .toml"
    );
    assert!(
        campaign::find_campaign("none.toml").unwrap_err().to_string().starts_with("cannot read the campaign none.toml")
    );
}
