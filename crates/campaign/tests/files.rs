//! Tests of bad, good and built-in campaign files.
//!
//! Each bad file has a `.txt` file of the same name with the expected mistakes. Update them with
//! `UPDATE=1 cargo test -p punctual-campaign --test files`, and check the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its files has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use campaign::{
    AROUND_NS, Cpus, ExpandOptions, FileMistakes, Length, Probe, Scenario, Scenarios, Validator, builtin, expand, file,
    probe::{
        round_trip::{Peer, Xdp},
        stream::WakeupOffset,
        xdp::XdpMode,
    },
};
use loads::LoadSpec;
use machine::{CpuList, Root};
use probes::ReceiveWait;
use sys::udp::Stamps;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().unwrap() == "toml").collect();
    paths.sort();
    paths
}

fn cpus(usable: &str, isolated: &str) -> Cpus {
    Cpus {
        usable: usable.parse().unwrap(),
        isolated: isolated.parse().unwrap(),
        isolation: machine::Isolation::default(),
    }
}

fn list(text: &str) -> CpuList {
    text.parse().unwrap()
}

fn read(path: &Path, cpus: &Cpus) -> Result<Scenarios, FileMistakes> {
    let name = path.file_name().unwrap().to_str().unwrap();
    expand(&file::parse(name, &fs::read_to_string(path).unwrap())?, cpus, &ExpandOptions::default())
}

fn shipped(name: &str, cpus: &Cpus, options: &ExpandOptions) -> Scenarios {
    let (_, text) = builtin::FILES.iter().find(|(known, _)| *known == name).unwrap();
    expand(&file::parse(name, text).unwrap(), cpus, options).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// On a machine with four CPUs, none of them isolated.
#[test]
fn reports_the_mistakes_of_each_bad_file() {
    let paths = files("bad");
    assert!(paths.len() >= 30);
    for path in paths {
        let mistakes = read(&path, &cpus("0-3", "")).map(|_| ()).unwrap_err().to_string() + "\n";
        let expected = path.with_extension("txt");
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&expected, &mistakes).unwrap();
        }
        assert_eq!(mistakes, fs::read_to_string(&expected).unwrap_or_default(), "{}", path.display());
    }
}

#[test]
fn expands_good_files_on_every_machine() {
    for path in files("good") {
        for machine in [cpus("0", ""), cpus("0-1", ""), cpus("0-3", "3"), cpus("0-2", "0-2"), cpus("0-7", "2-3")] {
            let scenarios = read(&path, &machine).unwrap_or_else(|mistakes| panic!("{mistakes} on {machine:?}"));
            assert!(scenarios.list.iter().all(|scenario| scenario.plan.check().is_ok() && scenario.planned_ns > 0));
        }
    }
}

#[test]
fn a_talker_sends_the_streams_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let listed = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    listed("streams.toml", "[[stream]]\nname = \"mics\"\nclass = \"A\"\n[[stream]]\nname = \"bulk\"\nclass = \"B\"\n");
    listed("bad.toml", "[[stream]]\nname = \"a\"\nclas = \"A\"\n");
    let read = |keys: &str| {
        let text = format!("name = \"a\"\n[[probe]]\nname = \"s\"\nkind = \"stream\"\n{keys}\n");
        let path = folder.path().join("campaign.toml");
        let campaign = file::parse(path.to_str().unwrap(), &text).map_err(|mistakes| mistakes.to_string())?;
        let scenarios = expand(&campaign, &cpus("0-3", ""), &ExpandOptions::default());
        let probe = scenarios.map_err(|mistakes| mistakes.to_string())?.list[0].plan.probe.clone();
        let Probe::Stream(stream) = probe else { panic!("a stream") };
        Ok::<_, String>(stream.listed.iter().map(|listed| listed.name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(read("streams = \"streams.toml\""), Ok(vec!["mics".to_owned(), "bulk".to_owned()]));
    assert_eq!(read("streams = 2"), Ok(Vec::new()));
    for (keys, expected) in [
        ("streams = \"none.toml\"", "none.toml: No such file or directory"),
        ("streams = \"bad.toml\"", "bad.toml:3:1: a stream has no key `clas`"),
        ("streams = \"streams.toml\"\nclass = \"A\"", ":6:9: class does not apply to listed streams"),
        ("streams = \"streams.toml\"\nlisten = \"eth0\"", "streams is for the talker of a stream"),
    ] {
        let mistakes = read(keys).unwrap_err();
        assert!(mistakes.contains(expected), "{keys}: {mistakes}");
        assert!(mistakes.lines().all(|line| line.contains("campaign.toml:")), "{mistakes}");
    }
}

#[test]
fn a_list_replaces_the_product() {
    let path = &files("good")[2];
    let names: Vec<String> =
        read(path, &cpus("0-3", "")).unwrap().list.into_iter().map(|scenario| scenario.name).collect();
    assert_eq!(names, ["idle, first", "idle, last", "cpu, first", "cpu, last", "cache, first", "cache, last"]);
}

#[test]
fn built_in_campaigns_fit_machines_of_all_sizes() {
    for (name, text) in builtin::FILES {
        let file = file::parse(name, text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(file.name, name);
        assert!(!file.title.is_empty() && !file.source.is_empty() && text.contains("To shorten it: "), "{name}");
        for machine in [cpus("0", ""), cpus("0-1", ""), cpus("0-3", ""), cpus("0-3", "2-3"), cpus("0-3", "0-3")] {
            let scenarios = shipped(name, &machine, &ExpandOptions::default());
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
fn every_campaign_on_disk_is_built_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns");
    let mut on_disk: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    on_disk.sort();
    assert_eq!(on_disk, builtin::FILES.map(|(name, _)| format!("{name}.toml")));
}

#[test]
fn built_in_campaigns_fit_recorded_machines() {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/machines");
    for machine in
        ["cloud-vm", "cnc-pc-rt", "container-cpuset", "khadas-vim3l-evl", "laptop-voluntary", "raspberry-pi-rt"]
    {
        let cpus = Cpus::of(&Root::at(machines.join(machine))).unwrap();
        for (name, _) in builtin::FILES {
            assert!(!shipped(name, &cpus, &ExpandOptions::default()).list.is_empty(), "{name} on {machine}");
        }
    }
}

/// Compares with the write-ups that the campaigns reproduce, on machines like theirs.
#[test]
fn built_in_campaigns_match_their_sources() {
    let vim3l = cpus("0-3", "2-3");
    let ladder = shipped("vim3l-ladder", &vim3l, &ExpandOptions::default());
    assert_eq!(ladder.list.len(), 4);
    for scenario in &ladder.list {
        let actual = (scenario.plan.cpus.clone(), scenario.plan.policy.to_string(), scenario.plan.phases[0].period_ns);
        assert_eq!(actual, (Some(list("3")), "fifo:98".to_owned(), 1_000_000));
    }
    let matrix = shipped("cnc-matrix", &vim3l, &ExpandOptions::default());
    assert_eq!((matrix.list.len(), matrix.planned_ns() / 60_000_000_000), (96, 65));
    let pair = &matrix.list[16 + 4 + 2];
    assert_eq!(pair.name, "hogged, base 1, servo 2");
    let threads = &pair.plan.phases[0].threads;
    let actual: Vec<_> = threads.iter().map(|thread| (&*thread.role, thread.cpu, thread.period_ns)).collect();
    assert_eq!(actual, [("base", 1, 25_000), ("servo", 2, 1_000_000)]);
    assert_eq!(pair.plan.phases[0].loads[0].to_string(), "cpu:shell@0-1");

    let pi = cpus("0-3", "3");
    let isolated = shipped("isolated-or-ordinary", &pi, &ExpandOptions::default());
    let placed: Vec<_> =
        isolated.list.iter().map(|s| (&*s.placement, s.plan.cpus.as_ref().unwrap().to_string())).collect();
    assert_eq!(
        placed.iter().map(|(name, cpu)| (*name, cpu.as_str())).collect::<Vec<_>>(),
        [("isolated", "3"), ("ordinary", "2"), ("ordinary", "2"), ("isolated", "3")]
    );
    assert_eq!(isolated.list[0].plan.phases[0].length, Length::Samples(100_000));
    assert_eq!((isolated.list[0].planned_ns, &*isolated.list[0].plan.policy.to_string()), (40_000_000_000, "fifo:45"));

    let engine = shipped("audio-engine", &pi, &ExpandOptions::default());
    let of_first: Vec<_> = engine.list.iter().filter(|s| s.repeat == 1 && s.placement == "isolated").collect();
    let settings: Vec<String> =
        of_first.iter().map(|s| s.plan.settings.iter().map(ToString::to_string).collect()).collect();
    let frequencies = ["cpu.frequency=800MHz", "cpu.frequency=1000MHz"];
    assert_eq!(settings, [&[""], &frequencies[..], &["cpu.governor=performance", "cpu.governor=powersave"]].concat());
    let priorities = shipped("irq-priorities", &pi, &ExpandOptions::default());
    let policies: Vec<_> = priorities.list[..2].iter().map(|s| s.plan.policy.to_string()).collect();
    assert_eq!(policies, ["fifo:45", "fifo:60"]);

    let zynq = shipped("shielded-core", &cpus("0-3", ""), &ExpandOptions::default());
    let hogs: Vec<String> = zynq.list.last().unwrap().plan.phases[0].loads.iter().map(LoadSpec::to_string).collect();
    let eight = ["cpu@0-2", "cpu@0-2", "cpu@0-1", "memory@0-2", "memory@0-2", "memory@0-1"];
    assert_eq!(hogs, [&eight[..], &["timer:98@0-3"]].concat());

    let udp = shipped("udp-priorities", &cpus("0-3", ""), &ExpandOptions::default());
    let actual: Vec<_> = udp.list.iter().map(|s| (&*s.name, s.plan.shield.as_ref().map(ToString::to_string))).collect();
    let shield = || Some("3".to_owned());
    let expected = [
        ("idle, not shielded", None),
        ("idle, shielded", shield()),
        ("hogs, not shielded", None),
        ("hogs, shielded", shield()),
    ];
    assert_eq!(actual, expected);
    for scenario in &udp.list {
        let Probe::RoundTrip(plan) = &scenario.plan.probe else { panic!("{:?}", scenario.plan.probe) };
        assert_eq!(plan.peer, Peer::Own);
        let sender = &scenario.plan.phases[0].threads[0];
        let policies = [sender.policy, plan.receive_policy, plan.echo_policy].map(|policy| policy.to_string());
        assert_eq!(policies, ["fifo:98"; 3], "{}", scenario.name);
        assert_eq!((plan.receive_cpu, plan.echo_cpu, sender.cpu), (Some(3), Some(0), 3));
    }
    let of = |index: usize| {
        udp.list[index].plan.phases[0].loads.iter().map(LoadSpec::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of(2), "cpu@0-3 cpu@0-3 memory@0-3 memory@0-3 timer:97@0-3", "8 threads each, on every CPU");
    assert!(of(3).starts_with("cpu@0-2 cpu@0-2 cpu@0-1 memory@0-2"), "outside the shield: {}", of(3));

    let three = shipped("three-latencies", &cpus("0-3", ""), &ExpandOptions::default());
    let probe = |scenario: &Scenario| match scenario.plan.probe {
        Probe::Timer(_) => "timer",
        Probe::RoundTrip(_) => "udp",
        Probe::Interrupt(_) => "interrupt",
        ref other => panic!("{other:?}"),
    };
    let probes: Vec<_> = three.list.iter().map(probe).collect();
    assert_eq!(probes, [["timer"; 4], ["udp"; 4], ["interrupt"; 4]].concat());
    assert_eq!(three.list.iter().filter(|scenario| scenario.plan.shield == Some(list("3"))).count(), 6);

    let endpoint = shipped("avb-endpoint", &cpus("0-3", ""), &ExpandOptions::default());
    let placements: Vec<&str> = endpoint.list[..4].iter().map(|scenario| &*scenario.placement).collect();
    let own = ["core of its own, offset 0us", "core of its own, offset auto"];
    assert_eq!(placements, ["ordinary core, offset 0us", "ordinary core, offset auto", own[0], own[1]]);
    let Probe::Stream(stream) = &endpoint.list[7].plan.probe else { panic!("{:?}", endpoint.list[7].plan.probe) };
    assert_eq!((stream.talk_cpu, stream.listen_cpu), (Some(3), Some(2)));
    assert_eq!((stream.offset, stream.interface()), (WakeupOffset::Auto, None));
    let plan = &endpoint.list[7].plan;
    assert_eq!((&plan.cpus, &plan.shield, plan.phases[0].period_ns), (&Some(list("2-3")), &Some(list("3")), 125_000));
    assert_eq!(endpoint.list[7].planned_ns - endpoint.list[6].planned_ns, 5_000_000_000, "time of the calibration");

    let nic = shipped("avb-nic", &cpus("0-3", ""), &ExpandOptions::default());
    let settings: Vec<String> = nic.list[..5].iter().map(|scenario| scenario.plan.nic.values.to_string()).collect();
    let [off, on] = ["coalesce=0", "coalesce=100"];
    let all = [on, off].map(|coalesce| [format!("{coalesce},eee=on"), format!("{coalesce},eee=off")]).concat();
    assert_eq!((nic.list.len(), &settings[0], &settings[1..]), (10, &String::new(), &all[..]));
    let Probe::Stream(stream) = &nic.list[9].plan.probe else { panic!("{:?}", nic.list[9].plan.probe) };
    assert_eq!((stream.interface(), stream.talks(), nic.list[9].plan.calibrates()), (Some("eth0"), false, false));
    assert!(stream.capture.is_some(), "the frames as they arrived");

    let avb = shipped("avb-cyclic", &vim3l, &ExpandOptions::default());
    assert_eq!((avb.list[0].plan.phases[0].period_ns, &avb.list[0].plan.cpus), (125_000, &Some(list("0-3"))));
}

#[test]
fn reads_interface_settings_and_receive_options() {
    let text = |settings: &str| {
        format!(
            "name = \"a\"\n[probe]\nkind = \"stream\"\nlisten = \"eth0\"\nstream_id = \"30643e54ee010007\"\n\
             receive = \"xdp-generic\"\nspin = true\nqueue = 3\n{settings}"
        )
    };
    let expanded = |settings| {
        let file = file::parse("a.toml", &text(settings)).unwrap();
        expand(&file, &cpus("0-3", ""), &ExpandOptions::default()).unwrap()
    };
    let plain = expanded("");
    let Probe::Stream(stream) = &plain.list[0].plan.probe else { panic!("{:?}", plain.list[0].plan.probe) };
    assert_eq!((stream.queue, stream.interface()), (3, Some("eth0")));
    assert_eq!((stream.stream_id, stream.xdp), (Some(0x3064_3e54_ee01_0007), Some(XdpMode::Generic)));
    assert_eq!(stream.wait, ReceiveWait::Spin);
    assert!(plain.list[0].plan.nic.is_empty());

    let set = expanded("[settings]\nnic = \"coalesce=0\"\nirq_priority = 85");
    let Scenario { settings, plan, .. } = &set.list[0];
    assert_eq!((settings.as_str(), plan.nic.irq_priority), ("coalesce=0 irq 85", Some(85)));
    assert_eq!(plan.nic.values, "coalesce=0".parse().unwrap());
    assert_ne!(set.digest, plain.digest, "another plan");
}

#[test]
fn reads_af_xdp_of_round_trips() {
    let xdp = |probe: &str| {
        let file = file::parse("a.toml", &format!("name = \"a\"\n[probe]\n{probe}")).unwrap();
        let scenarios = expand(&file, &cpus("0-3", ""), &ExpandOptions::default()).unwrap();
        let Probe::RoundTrip(probe) = &scenarios.list[0].plan.probe else {
            panic!("{:?}", scenarios.list[0].plan.probe)
        };
        (probe.xdp, probe.stamps)
    };
    let by = |mode, queue| Some(Xdp { mode, queue });
    assert_eq!(xdp("kind = \"udp\"\ntransport = \"xdp\""), (by(XdpMode::AsOffered, 0), Stamps::None));
    let generic = "kind = \"round-trip\"\ntransport = \"xdp-generic\"\nqueue = 3";
    assert_eq!(xdp(generic), (by(XdpMode::Generic, 3), Stamps::None));
    assert_eq!(xdp("kind = \"round-trip\"\ntransport = \"socket\""), (None, Stamps::Receive));
}

#[test]
fn names_unnamed_probes_by_their_differences() {
    let names = |probes: &[&str]| {
        let probes: String = probes.iter().map(|probe| format!("[[probe]]\n{probe}\n")).collect();
        let file = file::parse("a.toml", &format!("name = \"a\"\n{probes}")).unwrap();
        file.probes.into_iter().map(|probe| probe.name).collect::<Vec<_>>()
    };
    let audio = |more: &str| format!("kind = \"audio\"\nduration = \"5s\"\n{more}");
    assert_eq!(names(&[&audio("frames = 32")]), ["audio"], "the only one of its kind");
    let actual = names(&[
        &audio("frames = 32"),
        &audio("frames = 64"),
        &audio("frames = 64\nmodel = \"deluxe.nam\""),
        &audio("preset = \"lead.toml\""),
        &audio(""),
        "period = \"2ms\"",
        "name = \"mine\"\nkind = \"audio\"",
    ]);
    let [frames, model] = ["audio frames 64", "audio frames 64 model deluxe.nam"];
    assert_eq!(actual, ["audio frames 32", frames, model, "audio preset lead.toml", "audio", "timer", "mine"]);
    assert_eq!(names(&["period = \"1ms\"", "period = \"2ms\""]), ["timer period 1ms", "timer period 2ms"]);
    assert_eq!(names(&["", "kind = \"timer\"\nperiod = \"2ms\""]), ["timer", "timer period 2ms"]);
}

#[test]
fn notes_each_fallback() {
    let notes = shipped("shielded-core", &cpus("0", ""), &ExpandOptions::default()).notes;
    assert_eq!(
        notes,
        [
            "hogs: `others` is not possible on this machine, so `all` (CPU 0) is used",
            "shielded: `measured` is not possible on this machine, so `none` (no CPU) is used",
        ]
    );
    assert!(shipped("vim3l-ladder", &cpus("0-3", "2-3"), &ExpandOptions::default()).notes.is_empty());
}

#[test]
fn a_given_duration_applies_to_every_scenario() {
    let options = ExpandOptions { duration_ns: Some(2_000_000_000), ..ExpandOptions::default() };
    for (name, _) in builtin::FILES {
        let scenarios = shipped(name, &cpus("0-1", ""), &options);
        let calibrating = scenarios.list.iter().filter(|scenario| scenario.plan.calibrates()).count() as u64;
        let lengths = scenarios.list.iter().map(|scenario| scenario.plan.phases[0].length);
        assert!(lengths.into_iter().all(|length| length == Length::Duration(2_000_000_000)));
        let rests = (scenarios.list.len() as u64 - 1) * scenarios.rest_ns;
        let measured = scenarios.list.len() as u64 * (2_000_000_000 + AROUND_NS);
        assert_eq!(scenarios.planned_ns(), measured + calibrating * 500_000_000 + rests);
    }
}

#[test]
fn the_digest_depends_on_the_plan_but_not_on_the_command() {
    let four = cpus("0-3", "");
    let digest = |cpus: &Cpus, options: &ExpandOptions| shipped("vim3l-ladder", cpus, options).digest;
    let options =
        ExpandOptions { command: vec!["punctual".to_owned()], executable: "/x".into(), ..ExpandOptions::default() };
    assert_eq!(digest(&four, &ExpandOptions::default()), digest(&four, &options));
    assert_ne!(digest(&four, &options), digest(&cpus("0-1", ""), &options));
    assert_ne!(
        digest(&four, &options),
        digest(&four, &ExpandOptions { duration_ns: Some(7_000_000_000), ..options.clone() })
    );
    assert_eq!(digest(&four, &options).len(), 16);
}

#[test]
fn the_examples_of_the_docs_are_valid() {
    let docs = include_str!("../../../docs/campaigns.md");
    let examples: Vec<&str> =
        docs.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    let [product, listed] = examples[..] else { panic!("two examples") };
    let count = |text: &str| {
        let file = file::parse("docs.toml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        expand(&file, &cpus("0-3", ""), &ExpandOptions::default())
            .unwrap_or_else(|mistakes| panic!("{mistakes}"))
            .list
            .len()
    };
    assert_eq!((count(product), count(&format!("{product}{listed}"))), (4, 3));
}

/// Checks that the docs contain every key and word that a mistake suggests.
#[test]
fn the_docs_name_every_key() {
    let docs = include_str!("../../../docs/campaigns.md");
    let all = "name = \"a\"\nx = 1\n[probe]\nx = 1\n[load]\nrun = [{ load = \"cpu\", x = 1 }]\nx = 1\n[placement]\nx = 1\n\
               cpus = \"x\"\nshield = \"x\"\n[settings]\nx = 1\n";
    let mistakes = file::parse("a.toml", all).unwrap_err().to_string();
    let offers =
        mistakes.lines().filter_map(|line| line.split_once("it takes ").or_else(|| line.split_once("0,2-3, or ")));
    let words = offers.flat_map(|(_, words)| words.split([',', ' '])).filter(|word| !["", "or"].contains(word));
    let words: Vec<&str> = words.collect();
    assert!(words.len() > 40, "{words:?}");
    for word in words {
        assert!(docs.contains(word), "{word}");
    }
}

#[test]
fn suggests_a_similar_campaign_name() {
    let error = campaign::find_campaign("vim3-ladder").unwrap_err().to_string();
    assert_eq!(
        error,
        "no built-in campaign \"vim3-ladder\", did you mean `vim3l-ladder`?: see `punctual campaigns`, or pass a file that \
        ends in .toml"
    );
    assert!(
        campaign::find_campaign("none.toml").unwrap_err().to_string().starts_with("cannot read the campaign none.toml")
    );
}

/// The priority of interrupts is that of the interface or of the source; values of an interface need an interface.
#[test]
fn a_priority_of_interrupts_fits_an_interrupt_probe() {
    let text = |settings: &str| {
        format!(
            "name = 'a'\n[[probe]]\nname = 'i'\nkind = 'interrupt'\nsource = 'hpet'\nduration = '1s'\n[[settings]]\n{settings}\n"
        )
    };
    let parsed = |settings: &str| file::parse("a.toml", &text(settings));
    let scenarios = expand(&parsed("irq_priority = 80").unwrap(), &cpus("0-3", ""), &ExpandOptions::default()).unwrap();
    assert_eq!(scenarios.list[0].plan.nic.irq_priority, Some(80));
    for settings in ["nic = 'coalesce=0'", "nic = 'coalesce=0'\nirq_priority = 80"] {
        let mistakes = parsed(settings).unwrap_err().to_string();
        assert!(mistakes.contains("are for a network interface, but probe `i` uses none"), "{mistakes}");
    }
}

/// A campaign that needs a device which this machine lacks is refused before the first scenario.
#[test]
fn a_missing_source_of_interrupts_is_refused_at_its_line() {
    let text = "name = 'a'\n[[probe]]\nkind = 'interrupt'\nsource = 'gpio:999/1'\nirq_cpu = 4000\nduration = '1s'\n";
    let mistakes = Validator::of(Root::system())
        .unwrap()
        .expand(&file::parse("a.toml", text).unwrap(), &ExpandOptions::default())
        .unwrap_err();
    let lines: Vec<_> = mistakes.list.iter().map(|mistake| (mistake.position.line, &*mistake.text)).collect();
    assert!(lines[0].0 == 4 && lines[0].1.starts_with("source: this machine has no /dev/gpiochip999: "), "{lines:?}");
    assert!(lines[1].0 == 5 && lines[1].1.contains("CPU 4000, which is not online"), "{lines:?}");
}
