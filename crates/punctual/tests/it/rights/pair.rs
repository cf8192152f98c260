//! `pair stream`: a talker in one network namespace, a listener in another, and a veth pair between them. The far end
//! is started by a script that enters the other namespace.

use std::{
    os::fd::{AsFd, AsRawFd},
    process::{Command, Stdio},
    time::Duration,
};

use machine::{
    NicHold, Root,
    veth::{VethEnd, VethPair},
};
use record::{ClockTie, Record, State};
use stalls::{Stall, repeat_if_stalled};

use crate::{
    harness::{PUNCTUAL, Run, Start, Started, alone, last_cpu, signal, wait_until},
    pair::Far,
};

/// A prefix that runs a command in this namespace, with the `/sys` of the namespace.
fn inside(end: &VethEnd) -> Vec<String> {
    let namespace = format!("--net=/proc/{}/fd/{}", std::process::id(), end.namespace.as_fd().as_raw_fd());
    let words =
        ["nsenter", &namespace, "unshare", "--mount", "sh", "-c", "mount -t sysfs sysfs /sys && exec \"$@\"", "sh"];
    words.map(str::to_owned).to_vec()
}

/// A far machine at this end of the cable; `first` is a shell command that runs there before all else.
fn machine_at(end: &VethEnd, first: &str) -> Far {
    let enter = record::shell::command(&inside(end));
    Far::reached_by(&format!("exec {enter} sh -c \"{first}$2\""))
}

/// `punctual pair` with these arguments in the near end.
fn pair(ends: &VethPair, far: &Far, arguments: &str) -> Command {
    let words = inside(&ends.near);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(PUNCTUAL).current_dir(far.path()).env("NO_COLOR", "1");
    let pair = far.pair(&format!("--far-binary {PUNCTUAL} {arguments} --record a --blame=off"));
    command.args(pair.get_args()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a stream from `near` to `far` and checks the exit status.
fn stream(ends: &VethPair, far: &Far, status: i32, options: &str) -> (Run, Record) {
    let arguments = format!(
        "--far-cpu 0 stream {} --full --far-interface {} --cpu {} {options}",
        ends.near.interface,
        ends.far.interface,
        last_cpu()
    );
    let run = Run(pair(ends, far, &arguments).output().unwrap());
    run.expect_status(status);
    far.assert_nothing_is_left();
    let record = far.record();
    (run, record)
}

/// Every sent frame must be received or lost, and the far series must have the name of its host.
#[track_caller]
fn assert_all_frames_counted(record: &Record) -> &record::Listener {
    let [talked, heard] = &record.series[..] else { panic!("{}", record.series.len()) };
    let (Some(talker), Some(listener)) = (talked.kind.talker(), heard.kind.listener()) else {
        panic!("{} and {}", talked.role, heard.role)
    };
    assert_eq!((talked.host.as_deref(), heard.host.as_deref()), (None, Some("board-b")));
    assert_eq!(talker.frames, listener.frames - listener.duplicates + listener.lost);
    assert!(listener.frames > 500 && listener.max_gap_ns.is_some(), "{} frames", listener.frames);
    assert_eq!(talker.identity.stream_id, listener.identity.stream_id);
    assert_eq!(heard.phase, talked.phase);
    assert_eq!((heard.granted.policy.as_str(), heard.granted.memory_locked), ("fifo:90", true));
    listener
}

#[test]
fn both_ends_of_a_stream_are_in_one_record() {
    let _alone = alone();
    let ends = VethPair::create().unwrap();
    let far = machine_at(&ends.far, "");
    let (run, record) = stream(&ends, &far, 0, "--wakeup-offset 20us --duration 1s --export a.html");
    assert!(record.validity.valid && record.state == State::Complete, "{:?}", record.validity);
    let listener = assert_all_frames_counted(&record);
    let one_way = listener.one_way.as_ref().expect("one machine has one clock");
    assert_eq!((one_way.clock.tie, one_way.whole.total()), (ClockTie::SameHost, listener.frames));
    assert!(listener.delay_variation.is_none());
    let page = run.stdout();
    for text in ["listener on CPU 0 of board-b", "Far end board-b", "from send to read (one clock)"] {
        assert!(page.contains(text), "{text} in {page}");
    }
    let html = std::fs::read_to_string(far.path().join("a.html")).unwrap();
    assert!(html.contains("Listener on far of board-b") && html.contains("Far end board-b"));
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    assert!(validator.is_valid(&serde_json::to_value(&record).unwrap()));
}

#[test]
fn every_stream_of_a_pair_is_counted_to_its_end() {
    let _alone = alone();
    let ends = VethPair::create().unwrap();
    let far = machine_at(&ends.far, "");
    let (_, record) = stream(&ends, &far, 0, "--streams 4 --unique-id 9 --period 1ms --duration 1s");
    let listener = assert_all_frames_counted(&record);
    let talker = record.series[0].kind.talker().unwrap();
    assert_eq!((talker.streams.len(), listener.streams.len(), listener.other_streams), (4, 4, 0));
    for sent in &talker.streams {
        let heard = listener.streams.iter().find(|heard| heard.stream_id == sent.stream_id).expect("the same streams");
        assert_eq!(sent.frames, heard.frames - heard.duplicates + heard.lost, "{sent:?} {heard:?}");
    }
}

#[test]
fn a_talker_of_a_pair_claims_its_addresses_by_maap() {
    let _alone = alone();
    let ends = VethPair::create().unwrap();
    let far = machine_at(&ends.far, "");
    let (_, record) = stream(&ends, &far, 0, "--maap --streams 2 --unique-id 7 --period 1ms --duration 1s");
    let listener = assert_all_frames_counted(&record);
    let talker = record.series[0].kind.talker().unwrap();
    let maap = talker.maap.as_ref().expect("the record of MAAP");
    let [claimed] = &maap.claimed[..] else { panic!("{maap:?}") };
    assert_eq!((claimed.count, &claimed.lost_at_ns, maap.conflict_count), (2, &None, 0));
    // From the pool of IEEE 1722, table B.9, not the address of a talker without MAAP.
    assert!(claimed.first.starts_with("91:e0:f0:00:"), "{maap:?}");
    let sent: Vec<_> = talker.streams.iter().map(|stream| stream.destination.as_str()).collect();
    assert_eq!((sent[0], listener.identity.destination.as_str()), (claimed.first.as_str(), claimed.first.as_str()));
    let heard: Vec<_> = listener.streams.iter().map(|stream| stream.destination.as_str()).collect();
    assert_eq!((heard.len(), &heard), (2, &sent), "the far end hears the claimed addresses");
}

#[test]
fn two_machines_have_no_one_way_times() {
    let _alone = alone();
    // Delays of different length at the begin and the end look like drift.
    repeat_if_stalled(Stall::Realtime(Duration::from_micros(100)), measure_between_two_clocks);
}

fn measure_between_two_clocks() {
    let ends = VethPair::create().unwrap();
    // Another boot identifier means another machine.
    let far = machine_at(&ends.far, "echo another >id; mount --bind id /proc/sys/kernel/random/boot_id; ");
    let (run, record) = stream(&ends, &far, 0, "--period 500us --duration 2s --format 61883-6 --class B");
    let listener = assert_all_frames_counted(&record);
    assert_eq!(record.far.as_ref().unwrap().clock.tie, ClockTie::None);
    assert!(listener.one_way.is_none() && listener.counters.late_timestamp.is_none());
    let variation = listener.delay_variation.as_ref().expect("the delay variation, which needs no common clock");
    assert_eq!((variation.way.total(), variation.whole.total()), (listener.frames, listener.frames));
    assert!(variation.whole.iter().all(|(ns, _)| ns >= 0));
    // Both ends have the same clock, so the fitted drift is only the effect of delays within two seconds.
    assert!(variation.drift_ppb.abs() < 50_000, "{}", variation.drift_ppb);
    let page = run.stdout();
    assert!(page.contains("above the minimum, to read") && !page.contains("from send to"), "{page}");
}

#[test]
fn a_listener_without_frames_makes_the_run_invalid() {
    let _alone = alone();
    let (ends, others) = (VethPair::create().unwrap(), VethPair::create().unwrap());
    // The far machine is on another cable.
    let far = machine_at(&others.far, "");
    let (run, record) = stream(&ends, &far, 4, "--duration 500ms");
    assert_eq!(record.validity.reasons[0].id, "stream.silent");
    assert!(run.stdout().contains("frames arrived at board-b: its interface is on another cable"), "{}", run.stdout());
}

#[test]
fn the_far_end_refuses_an_interface_that_is_down() {
    let ends = VethPair::create().unwrap();
    let far = machine_at(&ends.far, "ip link set far down; ");
    let words = inside(&ends.near);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg(PUNCTUAL).current_dir(far.path());
    let pair = far.pair(&format!("--far-binary {PUNCTUAL} stream near --far-interface far --no-record"));
    let run = Run(command.args(pair.get_args()).output().unwrap());
    run.expect_status(1);
    assert!(run.stderr().contains("error: board-b: far is down"), "{}", run.stderr());
    far.assert_nothing_is_left();
}

#[test]
fn refused_rights_on_the_far_machine_make_the_run_invalid() {
    let far = Far::reached_by("exec setpriv --reuid 65534 --regid 65534 --clear-groups sh -c \"$2\"");
    let run = far.run(&format!("--far-binary {PUNCTUAL} udp --samples 50 --blame=off --record a"));
    run.expect_status(4);
    far.assert_nothing_is_left();
    let record = far.record();
    let reason = &record.validity.reasons[0];
    assert_eq!(reason.id, "policy.refused");
    assert!(reason.text.starts_with("on board-b: policy fifo:97 was refused"), "{}", reason.text);
    assert!(reason.remedy.contains("--far-sudo"), "{}", reason.remedy);
}

#[test]
fn loads_and_settings_of_the_far_listener_are_recorded() {
    let _alone = alone();
    let ends = VethPair::create().unwrap();
    let far = machine_at(&ends.far, "");
    let options = "--load timer --far-load cpu --far-load switch:1ms@0 --far-nic tso=off --far-hold-cpu-awake \
                   --far-receive xdp-generic --far-queue 0 --period 500us --duration 2s --export a.html";
    let (run, record) = stream(&ends, &far, 0, options);
    assert!(record.validity.valid, "{:?}", record.validity);
    assert_eq!(assert_all_frames_counted(&record).from, "xdp copy generic");
    let far_end = record.far.as_ref().unwrap();
    let specs =
        |loads: &[record::LoadProof]| loads.iter().map(|load| (load.spec.clone(), load.ran)).collect::<Vec<_>>();
    assert_eq!(specs(&record.phases[0].loads), [("timer".to_owned(), true)]);
    assert_eq!(specs(&far_end.loads), [("cpu".to_owned(), true), ("switch:1ms@0".to_owned(), true)]);
    assert!(far_end.loads.iter().all(|load| load.cpus == "0" && load.operations > 0), "{:?}", far_end.loads);
    let asked = &far_end.asked;
    assert_eq!((asked.policy.as_str(), asked.cpu, asked.nic.as_deref()), ("fifo:90", Some(0), Some("tso=off")));
    assert_eq!((asked.receive.as_deref(), asked.queue, asked.loads.len()), (Some("xdp-generic"), Some(0), 2));
    let tso = far_end.settings.iter().find(|setting| setting.name == "far tso").expect("the setting");
    assert_eq!((tso.before.as_str(), tso.during.as_str(), tso.after.as_deref()), ("on", "off", Some("on")));
    assert!(record.series[1].granted.cpu_awake.is_some());
    assert!(record.settings.is_empty() && record.shielding.is_none(), "the near end sets nothing");
    let page = run.stdout().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("Under load (timer), board-b under load (cpu, switch:1ms@0)"), "{page}");
    assert!(page.contains("far tso from on to off and back"), "{page}");
    let html = std::fs::read_to_string(far.path().join("a.html")).unwrap();
    assert!(html.contains("far tso from on to off and back") && html.contains("<dt>load</dt>"));
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    assert!(validator.is_valid(&serde_json::to_value(&record).unwrap()));
}

#[test]
fn the_far_end_of_round_trips_is_shielded_and_refusals_are_reported_at_once() {
    let _alone = alone();
    let ends = VethPair::create().unwrap();
    let far = machine_at(&ends.far, "");
    let udp = |options: &str| {
        let to = ends.far.address;
        pair(&ends, &far, &format!("udp --to {to} --cpu 0 --period 2ms --duration 1s {options}"))
    };
    let last = last_cpu();
    let output = udp(&format!("--far-shield {last} --far-nic gro=on,tso=off --far-load cpu")).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{:?}", output.status);
    let record = far.record();
    // Both ends are on this machine, so the threads of the near end may run on the shielded CPU, and no others.
    let of_near_end = |reason: &record::Reason| {
        let names = ["punctual", "heartbeat", "receiver", "load"];
        reason.id == "shield.broken" && names.iter().any(|name| reason.text.contains(&format!(": {name}")))
    };
    assert!(record.validity.reasons.iter().all(of_near_end), "{:?}", record.validity);
    let far_end = record.far.as_ref().unwrap();
    let shielding = far_end.shielding.as_ref().expect("a shield");
    assert_eq!((shielding.cpus.clone(), record.shielding.is_none()), (last.to_string(), true));
    let put_back = shielding.put_back.as_ref().expect("the restored tasks");
    assert!(put_back.failed.is_empty(), "{put_back:?}");
    let answered = far_end.answered.as_ref().unwrap();
    assert_eq!((answered.granted.cpus.clone(), answered.granted.policy.as_str()), (last.to_string(), "fifo:97"));
    assert!(far_end.loads[0].ran && far_end.loads[0].cpus != last.to_string(), "{:?}", far_end.loads);
    let restored = |setting: &record::Setting| setting.after.as_ref() == Some(&setting.before);
    assert!(far_end.settings.iter().all(restored), "{:?}", far_end.settings);
    assert_eq!(far_end.settings.len(), 2);

    // A veth pair has no interrupt.
    let run = Run(udp("--far-irq-priority 50").output().unwrap());
    run.expect_status(4);
    let record = far.record();
    let [reason] = &record.validity.reasons[..] else { panic!("{:?}", record.validity) };
    assert_eq!(reason.id, "irq_priority.refused");
    assert!(reason.text.starts_with("on board-b: interrupts are not served"), "{}", reason.text);
    assert!(reason.remedy.contains("--far-irq-priority"), "{}", reason.remedy);
    let stderr = run.stderr();
    let refused = stderr.find("INVALID on board-b: interrupts are not served").expect("a message before the run");
    assert!(stderr.find("samples,").is_none_or(|began| refused < began), "{stderr}");
    far.assert_nothing_is_left();
}

#[test]
fn the_far_end_answers_by_af_xdp_on_request() {
    let _alone = alone();
    repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), || {
        let ends = VethPair::create().unwrap();
        let far = machine_at(&ends.far, "");
        let to = ends.far.address;
        let arguments = format!("udp --to {to} --samples 300 --period 1ms --transport xdp-generic --far-transport xdp");
        let run = Run(pair(&ends, &far, &arguments).output().unwrap());
        run.expect_status(0);
        far.assert_nothing_is_left();
        let record = far.record();
        let far_end = record.far.as_ref().unwrap();
        assert_eq!((far_end.asked.transport.as_deref(), far_end.asked.queue), (Some("xdp"), None));
        let answered = far_end.answered.as_ref().unwrap();
        assert_eq!((answered.transport.as_deref(), answered.answered), (Some("xdp copy native"), 300));
        let trips = record.series.iter().find_map(|series| series.kind.round_trip()).expect("round trips");
        assert_eq!((trips.transport.as_deref(), trips.peer_xdp), (Some("xdp copy generic"), true));
        assert!(trips.parts.peer_wake.is_none() && trips.lost == 0, "{trips:?}");
        let show = ["show", "--full", "a.punctual.json"];
        let shown = Run(Command::new(PUNCTUAL).args(show).current_dir(far.path()).output().unwrap()).stdout();
        assert!(shown.contains("by xdp copy native"), "{shown}");
    });
}

#[test]
fn the_far_end_refuses_af_xdp_where_it_cannot_use_it() {
    let _alone = alone();
    let ends = VethPair::create().unwrap();
    let far = machine_at(&ends.far, "");
    for (options, status, error) in [
        ("--far-transport xdp --far-queue 7", 1, "error: board-b: far has no queue 7"),
        ("--far-transport xdp-zerocopy", 1, "error: board-b: the driver of far does not support zero-copy"),
        ("--far-queue 0", 64, "--far-queue needs xdp: leave it out, or add --far-transport xdp"),
    ] {
        let arguments = format!("udp --to {} --samples 9 --no-record {options}", ends.far.address);
        let words = inside(&ends.near);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(PUNCTUAL).current_dir(far.path());
        command.args(far.pair(&format!("--far-binary {PUNCTUAL} {arguments}")).get_args());
        let run = Run(command.output().unwrap());
        run.expect_status(status);
        assert!(run.stderr().contains(error), "{options}: {}", run.stderr());
        far.assert_nothing_is_left();
    }
}

/// The state of TCP segmentation offload of the far interface: a hold that sets the present value changes nothing.
fn tso(ends: &VethPair) -> String {
    let ask = || {
        let hold = NicHold::take(&Root::system(), &ends.far.interface, &"tso=off".parse().unwrap()).unwrap();
        hold.release()[0].before.clone()
    };
    ends.far.namespace.run(ask).unwrap()
}

/// Starts a run that changes a setting of the far interface.
fn start_with_setting(ends: &VethPair, far: &Far) -> Started {
    assert_eq!(tso(ends), "on");
    let _ = std::fs::remove_file(far.path().join("a.punctual.json"));
    let arguments = format!("udp --to {} --cpu 0 --endless --far-nic tso=off --far-load cpu", ends.far.address);
    let child = pair(ends, far, &arguments).start();
    far.wait_for_responses();
    child
}

#[test]
fn far_settings_are_restored_when_either_end_is_killed() {
    let _alone = alone();
    let ends = VethPair::create().unwrap();
    let far = machine_at(&ends.far, "");
    // First the near end, so the connection is lost.
    let mut child = start_with_setting(&ends, &far);
    assert_eq!(tso(&ends), "off", "during the run");
    signal(&child, "KILL");
    child.wait().unwrap();
    far.assert_nothing_is_left();
    wait_until("the setting is restored", || tso(&ends) == "on");
    // Then the far end.
    let child = start_with_setting(&ends, &far);
    let killed = Command::new("kill").args(["-KILL", &far.process().unwrap().to_string()]).status().unwrap();
    assert!(killed.success());
    Run(child.wait_with_output().unwrap()).expect_status(1);
    far.assert_nothing_is_left();
    wait_until("the setting is restored", || tso(&ends) == "on");
    assert_eq!(far.record().far.unwrap().asked.nic.as_deref(), Some("tso=off"));
}
