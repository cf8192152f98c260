//! Two connected network cards of each model: findings, settings that are applied and restored, and traffic between
//! them.

use std::{collections::BTreeMap, fs, net::Ipv4Addr, process::Child};

use anyhow::{Context, Result, ensure};
use machine::{
    Root,
    nic::{Answers, Nic},
};
use record::{Listener, Record, RoundTrip, Talker};
use rustix::process::{Pid, Signal, kill_process};
use sys::{link::Links, netns::Namespace};

use crate::inside::{expect, punctual, read, recorded, scheduled, start, wait_until, write};

/// Two connected cards of one model.
struct Cards {
    driver: &'static str,
    near: &'static str,
    far: &'static str,
}

const E1000E: Cards = Cards { driver: "e1000e", near: "eth0", far: "eth1" };
const VIRTIO: Cards = Cards { driver: "virtio_net", near: "eth2", far: "eth3" };
const BOTH: [Cards; 2] = [E1000E, VIRTIO];

/// Sets an interface up without IPv6 traffic, and waits until it is operational; returns its index.
pub fn set_up(interface: &str) -> Result<u32> {
    let mut links = Links::open()?;
    let index = links.find(interface)?.index;
    links.without_ipv6(index)?;
    links.set_up(interface)?;
    wait_until("the interface is operational", || Ok(Links::open()?.find(interface)?.is_operational))?;
    Ok(index)
}

/// Interrupts (which have occurred since a stream arrived), their threads and the driver's settings are found.
pub fn are_checked() -> Result<()> {
    for Cards { driver, far, .. } in BOTH {
        set_up(far)?;
        let checked = punctual(&format!("check nic {far} --json"))?;
        ensure!(matches!(checked.status.code(), Some(0 | 2)), "{checked:?}");
        let output: serde_json::Value = serde_json::from_slice(&checked.stdout)?;
        let nic = &output["interface"];
        ensure!(nic["driver"] == driver, "{far} is driven by {}", nic["driver"]);
        let interrupts = nic["interrupts"].as_array().context("no interrupts")?;
        let is_at_50 = |irq: &serde_json::Value| irq["thread"]["policy"] == "fifo" && irq["thread"]["priority"] == 50;
        ensure!(!interrupts.is_empty() && interrupts.iter().all(is_at_50), "{interrupts:?}");
        let state = |id: &str| {
            let findings = output["findings"].as_array().into_iter().flatten();
            findings.filter(|finding| finding["id"] == id).find_map(|finding| finding["state"].as_str())
        };
        for (id, expected) in [
            ("nic.link.carrier", "ok"),
            ("nic.irq", "ok"),
            ("nic.irq.threads", "warn"),
            ("nic.coalesce.rx_usecs", "ok"),
        ] {
            ensure!(state(id) == Some(expected), "{far}: {id} is {:?}", state(id));
        }
    }
    Ok(())
}

/// The driver's delay of receive interrupts, us.
fn rx_usecs(interface: &str) -> Result<u32> {
    let root = Root::system();
    let nic = Nic::read(&root, &mut Answers::of(&root), interface)?;
    nic.coalescing.known().and_then(|values| values.rx_usecs).context("no rx-usecs")
}

/// Starts a talker on an interface, which runs until it is interrupted.
fn talk(interface: &str, record: &str, options: &str) -> Result<Child> {
    start(&format!(
        "measure stream talk {interface} --quiet --record {record} --period 1ms --endless --wakeup-offset 0us --blame=off {options}"
    ))
}

/// Interrupts a run and reads its record.
fn interrupt(run: Child, record: &str) -> Result<Record> {
    kill_process(Pid::from_child(&run), Signal::INT)?;
    expect(0, &run.wait_with_output()?)?;
    recorded(record)
}

/// Every sent frame gets a timestamp of the driver. A card that stamps frames itself does so during the run only.
pub fn stamps_sent_frames() -> Result<()> {
    let options = "--quiet --period 1ms --wakeup-offset 0us --duration 500ms --blame=off";
    for Cards { driver, near, far } in BOTH {
        [near, far].into_iter().try_for_each(|card| set_up(card).map(drop))?;
        let name = format!("stamped-{near}");
        let talk = format!("measure stream talk {near} {options} --record {name} --stamps all");
        expect(0, &punctual(&talk)?)?;
        let record = recorded(&name)?;
        let talker = talker(&record)?;
        let stamps = talker.stamps.as_ref().context("no timestamps of sent frames")?;
        let stamped = stamps.stack_out.as_ref().map_or(0, |times| times.histogram.total());
        ensure!((stamped, stamps.missing) == (talker.frames, 0), "{driver}: {stamped} of {}", talker.frames);
    }
    let talk = format!("measure stream talk {} {options} --record by-card --stamps hardware", E1000E.near);
    expect(0, &punctual(&talk)?)?;
    let record = recorded("by-card")?;
    ensure!(settings(&record) == ["eth0 tx-type 0 1 0"], "{:?}", record.settings);
    let talker = talker(&record)?;
    let stamps = talker.stamps.as_ref().context("no timestamps of sent frames")?;
    let card = stamps.card.as_ref().context("no timestamps of the card")?;
    let by_card = card.after_slot.as_ref().map_or(0, |times| times.histogram.total());
    println!("{stamps:?}");
    ensure!(by_card + card.missing == talker.frames, "{by_card} and {} of {}", card.missing, talker.frames);
    // The card of virtio has no timestamps.
    let output = punctual(&format!("measure stream talk {} {options} --stamps hardware", VIRTIO.near))?;
    expect(1, &output)?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(error.contains("use --stamps all") && error.contains("does not stamp sent frames"), "{error}");
    Ok(())
}

/// The settings in a record, each as `name before during after`.
fn settings(record: &Record) -> Vec<String> {
    let words = |s: &record::Setting| {
        [&s.name, &s.before, &s.during, s.after.as_ref().unwrap_or(&s.name)].map(String::as_str).join(" ")
    };
    record.settings.iter().map(words).collect()
}

/// The driver has the value during the run and its old value afterwards, also after SIGKILL.
pub fn sets_and_restores_coalescing() -> Result<()> {
    let Cards { near, .. } = E1000E;
    set_up(near)?;
    let before = rx_usecs(near)?;
    ensure!(before != 50, "the value is already 50");
    let run = talk(near, "coalesced", "--nic coalesce=50")?;
    wait_until("rx-usecs is 50", || Ok(rx_usecs(near)? == 50))?;
    let record = interrupt(run, "coalesced")?;
    ensure!(record.validity.valid, "{:?}", record.validity.reasons);
    ensure!(settings(&record) == [format!("eth0 rx-usecs {before} 50 {before}")], "{:?}", record.settings);
    ensure!(rx_usecs(near)? == before, "the value is now {}", rx_usecs(near)?);

    let mut run = talk(near, "killed", "--nic coalesce=50")?;
    wait_until("rx-usecs is 50", || Ok(rx_usecs(near)? == 50))?;
    run.kill()?;
    run.wait()?;
    ensure!(rx_usecs(near)? == 50, "the kernel restored it");
    let output = expect(0, &punctual("restore")?)?;
    ensure!(output.contains("restored 1 setting") && rx_usecs(near)? == before, "{output}: {}", rx_usecs(near)?);

    // The virtio driver has no coalescing.
    let options = "--quiet --record refused --period 1ms --duration 50ms --blame=off --nic coalesce=50";
    set_up(VIRTIO.near)?;
    expect(4, &punctual(&format!("measure stream talk {} {options}", VIRTIO.near))?)?;
    let reasons = recorded("refused")?.validity.reasons;
    ensure!(reasons.len() == 1 && reasons[0].id == "nic.refused", "{reasons:?}");
    Ok(())
}

/// Name prefixes of the interrupt threads of a card. The rest of the name depends on the driver.
fn interrupt_thread_prefixes(interface: &str) -> Result<Vec<String>> {
    let device = format!("/sys/class/net/{interface}/device");
    let own = fs::read_dir(format!("{device}/msi_irqs")).or_else(|_| fs::read_dir(format!("{device}/../msi_irqs")))?;
    Ok(own.flatten().map(|file| format!("irq/{}-", file.file_name().to_string_lossy())).collect())
}

/// During the run exactly its interrupt threads and polling threads have priority 85. Afterwards all have their old
/// priority, also after SIGKILL.
pub fn sets_and_restores_interrupt_threads() -> Result<()> {
    for Cards { near, far, .. } in BOTH {
        [near, far].into_iter().try_for_each(|card| set_up(card).map(drop))?;
        write(&format!("/sys/class/net/{near}/threaded"), "1")?;
        let own = interrupt_thread_prefixes(near)?;
        let is_own =
            |name: &str| own.iter().any(|head| name.starts_with(head)) || name.starts_with(&format!("napi/{near}-"));
        let is_any = |name: &str| name.starts_with("irq/") || name.starts_with("napi/");
        let before = scheduled(is_any)?;
        let own_count = before.keys().filter(|name| is_own(name)).count();
        ensure!(own_count >= 2 && own_count < before.len(), "{own_count} of {before:?} belong to {near}");
        let at_85 = |(name, was): (&String, &String)| {
            (name.clone(), if is_own(name) { "fifo:85".to_owned() } else { was.clone() })
        };
        let during: BTreeMap<String, String> = before.iter().map(at_85).collect();
        let is_set = || {
            let now = scheduled(is_any)?;
            ensure!(now == during, "{now:?} instead of {during:?}");
            Ok(true)
        };

        let name = format!("at85-{near}");
        let run = talk(near, &name, "--irq-priority 85")?;
        wait_until("exactly its threads have priority 85", is_set)?;
        let record = interrupt(run, &name)?;
        ensure!(record.validity.valid, "{:?}", record.validity.reasons);
        ensure!(scheduled(is_any)? == before, "{:?} instead of {before:?}", scheduled(is_any)?);
        let settings = settings(&record);
        ensure!(settings.len() == own_count, "{settings:?}");
        for (thread, was) in before.iter().filter(|(thread, _)| is_own(thread)) {
            ensure!(
                settings.contains(&format!("{near} {thread} {was} fifo:85 {was}")),
                "{thread} is not in {settings:?}"
            );
        }

        let mut run = talk(near, "killed", "--irq-priority 85")?;
        wait_until("its threads have priority 85", is_set)?;
        run.kill()?;
        run.wait()?;
        ensure!(is_set()?, "the kernel restored them");
        let next = punctual("measure timer --quiet --no-record --samples 20 --blame=off")?;
        expect(0, &next)?;
        let stderr = String::from_utf8_lossy(&next.stderr).into_owned();
        ensure!(stderr.contains("restored") && scheduled(is_any)? == before, "{stderr}: {:?}", scheduled(is_any)?);
        write(&format!("/sys/class/net/{near}/threaded"), "0")?;
    }
    Ok(())
}

/// A kernel without PREEMPT_RT has no interrupt threads; the reason names the remedy.
pub fn refuses_priorities_without_interrupt_threads() -> Result<()> {
    set_up("eth0")?;
    let options = "--quiet --record unthreaded --period 1ms --duration 50ms --blame=off --irq-priority 85";
    expect(4, &punctual(&format!("measure stream talk eth0 {options}"))?)?;
    let record = recorded("unthreaded")?;
    let reasons = &record.validity.reasons;
    ensure!(reasons.len() == 1 && reasons[0].id == "irq_priority.refused", "{reasons:?}");
    ensure!(reasons[0].text.contains("`threadirqs`") && record.settings.is_empty(), "{record:?}");
    Ok(())
}

/// All frames arrive at the listener, each in its slot. With virtual time and a wake-up offset, late packets would be
/// an error.
pub fn accounts_for_every_frame() -> Result<()> {
    for Cards { near, far, .. } in BOTH {
        [near, far].into_iter().try_for_each(|card| set_up(card).map(drop))?;
        let (talked, listened) = (format!("talker-{near}"), format!("listener-{far}"));
        let listener = listen(far, &listened, "--policy fifo:80 --period 1ms")?;
        let options = "--period 1ms --wakeup-offset 200us --duration 1s --blame=off";
        expect(0, &punctual(&format!("measure stream talk {near} --quiet --record {talked} {options}"))?)?;
        expect(0, &listener.wait_with_output()?)?;
        let (talker, listener) = (talker(&recorded(&talked)?)?, listener_of(&recorded(&listened)?)?);
        let slots = talker.frames + talker.missed_slots + talker.refused;
        ensure!((1000..=1001).contains(&slots), "{slots} slots");
        let Talker { late, missed_slots, refused, window_violations, .. } = &talker;
        ensure!([late, missed_slots, refused, window_violations] == [&0; 4], "{talker:?}");
        ensure!(listener.frames == talker.frames, "{} of {} frames", listener.frames, talker.frames);
        let Listener { lost, duplicates, reordered, strays, wrong_tag, not_told, .. } = &listener;
        ensure!([lost, duplicates, reordered, strays, wrong_tag, not_told] == [&0; 6], "{listener:?}");
    }
    Ok(())
}

/// Starts a listener and waits until it is ready.
pub fn listen(interface: &str, record: &str, options: &str) -> Result<Child> {
    let run = start(&format!("measure stream listen {interface} --quiet --record {record} --blame=off {options}"))?;
    // The first line is a heading.
    wait_until("the listener has a socket", || Ok(read("/proc/net/packet")?.lines().count() > 1))?;
    Ok(run)
}

/// The talker's results of a run.
pub fn talker(record: &Record) -> Result<Talker> {
    let mut talkers = record.series.iter().filter_map(|series| series.kind.talker().cloned());
    talkers.next().context("no talker in the record")
}

/// The listener's results of a run.
pub fn listener_of(record: &Record) -> Result<Listener> {
    let mut listeners = record.series.iter().filter_map(|series| series.kind.listener().cloned());
    listeners.next().context("no listener in the record")
}

/// Each datagram is answered from another network namespace, over both cards of a model. The interface of the route is
/// found.
pub fn measures_round_trips() -> Result<()> {
    for (number, Cards { near, far, .. }) in (0..).zip(BOTH) {
        let [own, other] = [1, 2].map(|end| Ipv4Addr::new(10, 0, number, end));
        let index = set_up(near)?;
        Links::open()?.add_address(index, own, 24)?;
        let namespace = Namespace::new()?;
        Links::open()?.move_to(far, &namespace)?;
        let ready = format!("/tmp/answers-{number}");
        let echo = namespace.run(|| {
            Links::open()?.add_address(set_up(far)?, other, 24)?;
            start(&format!("echo --bind {other} --json --ready {ready}"))
        })??;
        wait_until("the echo server is ready", || Ok(fs::exists(&ready)?))?;
        let name = format!("round-trips-{near}");
        let options = "--samples 500 --period 2ms --irq-priority 85 --blame=off";
        expect(0, &punctual(&format!("measure udp {other} --quiet --record {name} {options}"))?)?;
        kill_process(Pid::from_child(&echo), Signal::INT)?;
        let answered: serde_json::Value = serde_json::from_str(&expect(0, &echo.wait_with_output()?)?)?;

        let record = recorded(&name)?;
        let trips = round_trip(&record)?;
        ensure!(trips.slots == 500 && trips.sent == 500, "{trips:?}");
        let RoundTrip { lost, late, duplicates, reordered, foreign, send_failed, .. } = &trips;
        ensure!([lost, late, duplicates, reordered, foreign, send_failed] == [&0; 6], "{trips:?}");
        // Greetings are also answered.
        ensure!(answered["answered"].as_u64().is_some_and(|answered| (501..=505).contains(&answered)), "{answered}");
        let settings = settings(&record);
        // In addition to interrupt threads, there is a polling thread if an earlier test enabled it.
        let (own, interrupts) = (format!("{near} "), format!("{near} irq/"));
        ensure!(settings.iter().all(|words| words.starts_with(&own)), "{settings:?}");
        ensure!(settings.iter().any(|words| words.starts_with(&interrupts)), "{settings:?}");
    }
    Ok(())
}

/// The round trip results of a run.
pub fn round_trip(record: &Record) -> Result<RoundTrip> {
    let mut trips = record.series.iter().filter_map(|series| series.kind.round_trip().cloned());
    trips.next().context("no round trips in the record")
}
