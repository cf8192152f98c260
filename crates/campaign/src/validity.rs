//! Adds the reasons why a run is invalid to its record.

use analysis::{format_exact, format_unsigned_ns};
use machine::{Change, Root, online_cpus};
use probes::{
    probe_threads::ThreadInfo,
    round_trip::LONGER_TIMEOUT,
    setup::Grant,
    stream::listener::ABSENT,
    timer::{End, Timer},
};
use record::{
    Carrier, CauseKind, Caveat, Culprit, Finding, LoadProof, MeasuredBy, Reason, Record, RoundTrip, Series, SeriesKind,
    Stream, grouped,
};
use sys::sched::Policy;

use crate::{plan::Plan, probe::Properties, supervisor};

/// True if the kernel reports locked memory for this process.
pub fn memory_is_locked(root: &Root) -> bool {
    let status = root.read("proc/self/status").unwrap_or_default();
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    locked.is_some_and(|kib| kib.trim().trim_end_matches(" kB").parse() != Ok(0))
}

/// Adds a reason for each right that the kernel refused to a thread.
pub fn judge_grants(record: &mut Record, members: &[ThreadInfo], memory_locked: bool) {
    for (policy, places) in refused(members, |grant| grant.policy_refused.is_some()) {
        let one = members.iter().find(|member| member.policy == policy);
        let ran_as = one.map_or_else(String::new, |member| member.grant.policy.to_string());
        let remedy = remedy_of(&record.findings, &["rights.rt_budget", "rights.realtime"]);
        let text = format!(
            "policy {policy} was refused ({places}): the threads ran as `{ran_as}`, so the figures say nothing about \
             real-time work"
        );
        add(record, "policy.refused", text, remedy);
    }
    for (policy, places) in refused(members, |grant| grant.pin_refused.is_some()) {
        let deadline = matches!(policy, Policy::Deadline { .. });
        let remedy = if deadline {
            "leave out --cpus; or give those CPUs a cpuset partition of their own; or `echo -1 | sudo tee \
             /proc/sys/kernel/sched_rt_runtime_us`"
        } else {
            "taskset -pc 0-1023 $$   # then run again; or widen the cpuset of this control group"
        };
        add(
            record,
            "cpu.not_pinned",
            format!("a thread could not be pinned ({places}): it may have run on other CPUs"),
            remedy,
        );
    }
    if members.iter().any(|member| member.policy.is_realtime()) && !memory_locked {
        let remedy = remedy_of(&record.findings, &["rights.memlock"]);
        let text = "memory could not be locked: page faults may have delayed wake-ups".to_owned();
        add(record, "memory.not_locked", text, remedy);
    }
}

/// The policies of the threads for which `what` is true, each with the places of these threads. Named threads have the
/// same place in all phases, so that a run of many phases gets one reason.
fn refused(members: &[ThreadInfo], what: fn(&Grant) -> bool) -> Vec<(Policy, String)> {
    let mut found: Vec<(Policy, Vec<String>)> = Vec::new();
    for ThreadInfo { place, policy, .. } in members.iter().filter(|member| what(member.grant)) {
        match found.iter_mut().find(|(known, _)| known == policy) {
            Some((_, places)) => places.push(place.clone()),
            None => found.push((*policy, vec![place.clone()])),
        }
    }
    found.into_iter().map(|(policy, places)| (policy, places.join(", "))).collect()
}

/// Adds reasons and caveats for threads that ended early or were throttled. `gone` is the reason in words why a device is
/// gone, if it is known. It can be gone only after the threads have ended: an outside judge before it has sent its totals.
pub fn judge_ends(record: &mut Record, root: &Root, timers: &[Timer], probe: &Properties, gone: Option<&str>) {
    let [starved, throttled] = probe.guard_remedies;
    if let (Some(text), Some([_, remedy])) = (gone, probe.pacer_failed) {
        pacer_failed(record, text, remedy);
    }
    for timer in timers {
        match timer.end() {
            Some(End::Starved) => add(
                record,
                "guard.starved",
                format!("the guard ended the run on {}: ordinary threads could not run", timer.place()),
                starved,
            ),
            Some(End::ClockFailed) => {
                let text = format!("the kernel refused to wait on the clock {}", record.scenario.clock);
                add(record, "clock.failed", text, "use --clock monotonic");
            }
            Some(End::PacerFailed) => {
                if let Some([text, remedy]) = probe.pacer_failed {
                    pacer_failed(record, gone.unwrap_or(text), remedy);
                }
            }
            Some(End::LeftCpu) if timer.cpu().is_some_and(|cpu| online_cpus(root).contains(cpu)) => {
                let place = timer.place();
                let known = |reason: &Reason| reason.id == "cpu.moved" && reason.text.contains(&place);
                if !record.validity.reasons.iter().any(known) {
                    let Reason { id, text, remedy } = supervisor::moved(&format!(
                        "the thread of {place} left its CPU during the run: it was moved, or the CPU was offline for a while"
                    ));
                    add(record, &id, text, remedy);
                }
            }
            Some(End::LeftCpu) => record.caveats.push(Caveat {
                kind: record::OFFLINE.to_owned(),
                text: format!("{} went offline during the run; its series ends there", timer.place()),
            }),
            Some(End::Planned | End::StoppedOn) | None => {}
        }
        if timer.pauses() > 0 {
            add(
                record,
                "guard.rested",
                format!(
                    "the thread on {} could not keep up: the guard throttled it so that the machine stays usable",
                    timer.place()
                ),
                throttled,
            );
        }
    }
}

/// Adds a reason for each series of a phase that measured nothing, less than a period, or less than half of its slots.
pub fn judge_coverage(record: &mut Record, phase: &str) {
    let planned_ns = record.phase(phase).and_then(|phase| phase.planned_ns);
    let of_phase = || record.series.iter().filter(|series| series.phase == phase);
    // The reason of an absent stream names the streams that arrived instead.
    let is_absent = record.validity.reasons.iter().any(|reason| reason.id == ABSENT);
    let is_explained = |series: &&Series| is_absent && series.kind.listener().is_some();
    let empty = of_phase()
        .filter(|series| !is_explained(series))
        .filter_map(|series| why_empty(series).or_else(|| why_too_short(series, planned_ns)));
    let empty: Vec<_> = empty.collect();
    let sparse: Vec<_> = of_phase().filter_map(why_sparse).collect();
    for (text, remedy) in empty {
        add(record, "nothing.measured", text, remedy);
    }
    for (text, remedy) in sparse {
        add(record, "little.measured", text, remedy);
    }
}

/// The reason why a series was planned to be shorter than one period, with a remedy.
fn why_too_short(series: &Series, planned_ns: Option<u64>) -> Option<(String, String)> {
    let planned_ns = planned_ns.filter(|&planned_ns| planned_ns < series.period_ns)?;
    if series.kind.properties().by != MeasuredBy::Probe {
        return None;
    }
    let (planned, period) = (format_unsigned_ns(planned_ns), format_unsigned_ns(series.period_ns));
    let longer = format_exact(series.period_ns.saturating_mul(10));
    let text =
        format!("{} measured less than one period: the run of {planned} is shorter than {period}", series.place());
    Some((text, format!("run longer, e.g. --duration {longer}")))
}

/// Without more than one of so many edges, those of an output line have another period than the planned one.
const EDGES_PART: u64 = 10;

/// The reason why most slots of a series have no answer or frame, or why edges have another period than planned, with a remedy.
fn why_sparse(series: &Series) -> Option<(String, String)> {
    match &series.kind {
        SeriesKind::RoundTrips(trips) => {
            let RoundTrip { slots, lost, late, send_failed, .. } = **trips;
            let ping = |host: &str| format!("ping -c 5 {}; ip -s link", host.trim_matches(['[', ']']));
            let remedy = match trips.carrier {
                _ if late > lost.saturating_add(send_failed) / 2 => LONGER_TIMEOUT.to_owned(),
                Carrier::Udp => ping(trips.peer.rsplit_once(':').map_or(trips.peer.as_str(), |(host, _)| host)),
                Carrier::Icmp => ping(&trips.peer),
                Carrier::Ethernet => "ip -s link".to_owned(),
            };
            let came = match late {
                0 => String::new(),
                late => format!(" ({} of them came after the time-out)", grouped(late)),
            };
            let text = format!(
                "most of {} datagrams measured nothing: {} lost{came}, {} refused by the kernel",
                grouped(slots),
                grouped(lost),
                grouped(send_failed)
            );
            (series.samples > 0 && lost.saturating_add(send_failed) > slots / 2).then_some((text, remedy))
        }
        SeriesKind::Stream(Stream::Talker(talker)) => {
            let (frames, refused, interface) = (talker.frames, talker.refused, &talker.identity.interface);
            let text = format!(
                "most frames were not sent on {interface}: {} refused by the kernel, {} sent",
                grouped(refused),
                grouped(frames)
            );
            let remedy = format!("ip -s link show {interface}; sudo dmesg | tail");
            (frames > 0 && refused > frames).then_some((text, remedy))
        }
        SeriesKind::Interrupts(interrupts) => {
            let made = series.samples.saturating_add(interrupts.lost).saturating_add(interrupts.unanswered);
            let planned = made.saturating_add(interrupts.skipped);
            let text = format!(
                "{} of {} edges of the output line were not made: it changes too slowly for an edge every {}, or the thread that \
                 makes them was late",
                grouped(interrupts.skipped),
                grouped(planned),
                format_exact(series.period_ns)
            );
            let longer = format_exact(series.period_ns.saturating_mul(10));
            (interrupts.skipped > planned / EDGES_PART)
                .then(|| (text, format!("use a longer period, e.g. --period {longer}")))
        }
        SeriesKind::WakeUps
        | SeriesKind::Gaps(_)
        | SeriesKind::Stream(Stream::Listener(_))
        | SeriesKind::Audio(_)
        | SeriesKind::Process(_)
        | SeriesKind::Responses(_)
        | SeriesKind::Capture
        | SeriesKind::TimerlatIrq
        | SeriesKind::TimerlatThread => None,
    }
}

/// The reason why a series contains nothing, with a remedy; `None` if it contains something.
fn why_empty(series: &Series) -> Option<(String, String)> {
    let nothing = || (format!("{} measured nothing", series.place()), "run longer, e.g. --duration 10s".to_owned());
    match &series.kind {
        SeriesKind::Stream(Stream::Talker(talker)) => (talker.frames == 0).then(|| {
            let interface = &talker.identity.interface;
            (
                format!("no frame could be sent on {interface}"),
                format!("ip -s link show {interface}; sudo dmesg | tail"),
            )
        }),
        SeriesKind::Stream(Stream::Listener(listener)) => (listener.frames == 0).then(|| {
            let interface = &listener.identity.interface;
            (
                format!("no frame of a stream arrived on {interface}: start the talker, and check cable and VLAN"),
                format!("sudo tcpdump -e -c 10 -i {interface} vlan"),
            )
        }),
        SeriesKind::Gaps(noise) => (noise.iterations == 0).then(nothing),
        SeriesKind::WakeUps | SeriesKind::Process(_) => (series.samples == 0).then(nothing),
        // Silent peers and sources have a reason of their own, and a sound card that plays nothing ends the run. The others are
        // observers.
        SeriesKind::RoundTrips(_)
        | SeriesKind::Audio(_)
        | SeriesKind::Interrupts(_)
        | SeriesKind::Responses(_)
        | SeriesKind::Capture
        | SeriesKind::TimerlatIrq
        | SeriesKind::TimerlatThread => None,
    }
}

/// Adds a reason for the threads of a phase that were stopped, as their spikes show: a check can miss a short stop. `known`
/// are the reasons that checks found.
pub fn judge_stops(record: &mut Record, phase: &str, known: &[Reason]) {
    if known.iter().any(|reason| reason.id == "punctual.stopped") {
        return;
    }
    let is_stop = |culprit: &Culprit| culprit.cause.kind == CauseKind::Stopped;
    let was_stopped = |series: &&Series| {
        let is_ours = series.kind.properties().by == MeasuredBy::Probe && series.phase == phase;
        is_ours && series.spikes.iter().any(|spike| spike.culprits.iter().any(is_stop))
    };
    let places: Vec<String> = record.series.iter().filter(was_stopped).map(Series::place).collect();
    add_all(
        record,
        places
            .iter()
            .map(|place| supervisor::stopped(&format!("the measuring thread ({place}) was stopped, as a spike shows"))),
    );
}

/// Adds a reason for each load that did not run as asked for its whole time.
pub fn judge_loads(record: &mut Record, loads: &[LoadProof]) {
    for load in loads.iter().filter(|load| !load.ran) {
        let why = load.note.as_deref().unwrap_or("no reason known");
        let text = format!("the load {} did not run as requested: {why}", load.spec);
        add(record, "load.failed", text, "run again without other programs that stop it or use its CPUs");
    }
}

/// Adds reasons and caveats for changes of the machine during the run.
pub fn judge_changes(record: &mut Record, changes: &[Change]) {
    let stolen: Vec<String> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Steal { cpu, ms } => Some(format!("{ms} ms of CPU {cpu}")),
            _ => None,
        })
        .collect();
    if !stolen.is_empty() {
        let text = format!(
            "the hypervisor took {} during the run: the host caused a part of the measured latency",
            stolen.join(", ")
        );
        record.caveats.push(Caveat { kind: "virtual".to_owned(), text });
    }
    for change in changes {
        match change {
            Change::Steal { .. } => {}
            Change::Throttled { .. } | Change::Cooled { .. } => {
                add(
                    record,
                    "cpu.throttled",
                    change.to_string(),
                    "cool the machine, or set a lower frequency: \
                     echo 1000000 | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq",
                );
            }
            // The supervisor may have seen it already.
            Change::Clocksource { .. } if record.validity.reasons.iter().any(|known| known.id == "clock.changed") => {}
            Change::Clocksource { .. } => {
                add(
                    record,
                    "clock.changed",
                    change.to_string(),
                    "boot with `tsc=reliable`, or find out with: sudo dmesg | grep -i clocksource",
                );
            }
            // The caveat of its series reports this.
            Change::WentOffline { .. } => {}
        }
    }
}

/// Adds reasons why the run is invalid, except those that the record already has.
pub fn add_all(record: &mut Record, reasons: impl IntoIterator<Item = Reason>) {
    for Reason { id, text, remedy } in reasons {
        add(record, &id, text, remedy);
    }
}

/// Names the phase in the reasons from index `first` on, if the plan has several phases.
pub fn name_phase(record: &mut Record, first: usize, plan: &Plan, phase: &str) {
    if plan.phases.len() > 1 {
        for reason in &mut record.validity.reasons[first..] {
            reason.text = format!("{phase}: {}", reason.text);
        }
    }
}

/// Adds the reason that what sets the pace of a probe failed, unless it is known already.
fn pacer_failed(record: &mut Record, text: &str, remedy: &str) {
    if !record.validity.reasons.iter().any(|reason| reason.text == text) {
        add(record, "pacer.failed", text.to_owned(), remedy);
    }
}

/// Adds a reason why the run is invalid, unless the record already has it.
pub fn add(record: &mut Record, id: &str, text: String, remedy: impl Into<String>) {
    record.validity.valid = false;
    if !record.validity.reasons.iter().any(|reason| reason.id == id && reason.text == text) {
        record.validity.reasons.push(Reason { id: id.to_owned(), text, remedy: remedy.into() });
    }
}

/// The remedy of the first of these findings that has one; else the command that grants both rights.
fn remedy_of(findings: &[Finding], ids: &[&str]) -> String {
    let found = ids.iter().find_map(|id| findings.iter().find(|f| f.id == *id && !f.remedy.is_empty()));
    found.map_or(machine::RIGHTS, |finding| finding.remedy.as_str()).to_owned()
}

#[cfg(test)]
mod tests {
    use record::Phase;

    use super::*;
    use crate::{
        plan::{Length, PhasePlan},
        probe::{Probe, timer::TimerProbe},
    };

    #[test]
    fn throttling_and_a_new_clocksource_invalidate_but_steal_does_not() {
        let mut record = Record { validity: record::Validity { valid: true, reasons: vec![] }, ..Record::default() };
        judge_changes(&mut record, &[Change::Steal { cpu: 0, ms: 10 }, Change::Steal { cpu: 1, ms: 20 }]);
        assert!(record.validity.valid);
        let texts: Vec<_> = record.caveats.iter().map(|caveat| caveat.text.as_str()).collect();
        assert_eq!(
            texts,
            ["the hypervisor took 10 ms of CPU 0, 20 ms of CPU 1 during the run: the host caused a part of the \
                 measured latency"]
        );
        let clock = Change::Clocksource { before: "tsc".to_owned(), after: "hpet".to_owned() };
        judge_changes(&mut record, &[Change::Throttled { cpu: 1, times: 3 }, clock.clone(), clock]);
        let ids: Vec<_> = record.validity.reasons.iter().map(|reason| reason.id.as_str()).collect();
        assert_eq!((record.validity.valid, ids), (false, vec!["cpu.throttled", "clock.changed"]));
    }

    #[test]
    fn a_spike_of_a_stopped_thread_makes_the_run_invalid() {
        let judged = |kind, known: &[Reason]| {
            let cause = record::Cause { kind, ..record::Cause::default() };
            let spike = record::Spike { culprits: vec![Culprit { cause, ns: 1 }], ..record::Spike::default() };
            let series = Series { phase: "rest".into(), cpu: Some(1), spikes: vec![spike], ..Series::default() };
            let mut record = Record { series: vec![series], ..Record::default() };
            judge_stops(&mut record, "rest", known);
            record.validity.reasons.into_iter().map(|reason| (reason.id, reason.text)).collect::<Vec<_>>()
        };
        let text = "the measuring thread (CPU 1) was stopped, as a spike shows: lateness of that time is not that of the machine";
        assert_eq!(judged(CauseKind::Stopped, &[]), [("punctual.stopped".to_owned(), text.to_owned())]);
        assert_eq!(judged(CauseKind::Stopped, &[supervisor::stopped("CPU 1 was stopped")]), []);
        assert_eq!(judged(CauseKind::Interrupt, &[]), []);
    }

    #[test]
    fn edges_of_another_period_make_the_run_invalid() {
        let reasons = |samples: u64, skipped: u64| {
            let kind = SeriesKind::Interrupts(Box::new(record::Interrupts { skipped, ..Default::default() }));
            judged(Series { samples, kind, role: "interrupt".into(), ..Series::default() }, None)
        };
        let [(id, text, remedy)] = &reasons(801, 3_199)[..] else { panic!() };
        assert_eq!((id.as_str(), remedy.as_str()), ("little.measured", "use a longer period, e.g. --period 10s"));
        assert!(text.starts_with("3,199 of 4,000 edges of the output line were not made: "), "{text}");
        assert_eq!(reasons(3_990, 10), []);
    }

    #[test]
    fn a_load_that_did_not_run_makes_the_run_invalid() {
        let mut record = Record { validity: record::Validity { valid: true, reasons: vec![] }, ..Record::default() };
        let load = |ran| LoadProof { spec: "cpu".into(), ran, note: Some("it died".into()), ..LoadProof::default() };
        judge_loads(&mut record, &[load(true)]);
        assert!(record.validity.valid);
        judge_loads(&mut record, &[load(true), load(false)]);
        let reasons: Vec<_> = record.validity.reasons.iter().map(|r| (r.id.as_str(), r.text.as_str())).collect();
        assert_eq!(reasons, [("load.failed", "the load cpu did not run as requested: it died")]);
        assert!(!record.validity.valid);
    }

    #[test]
    fn reasons_of_one_of_several_phases_name_it() {
        let texts_of = |phases: usize| {
            let phase = PhasePlan {
                name: "load".to_owned(),
                period_ns: 1,
                length: Length::UntilStopped,
                loads: Vec::new(),
                threads: Vec::new(),
            };
            let plan = Plan::new(Probe::Timer(TimerProbe::default()), vec![phase; phases]);
            let mut record = Record::default();
            add(&mut record, "memory.not_locked", "of all phases".to_owned(), "");
            add(&mut record, "cpu.moved", "moved".to_owned(), "");
            name_phase(&mut record, 1, &plan, "load");
            record.validity.reasons.into_iter().map(|reason| reason.text).collect::<Vec<_>>()
        };
        assert_eq!(texts_of(2), ["of all phases", "load: moved"]);
        assert_eq!(texts_of(1), ["of all phases", "moved"]);
    }

    #[test]
    fn a_judge_that_is_lost_after_the_threads_have_ended_makes_the_run_invalid() {
        let probe = |probe: Probe| probe.definition().properties();
        let ended = |properties: &Properties, known: &[Reason]| {
            let mut record =
                Record { validity: record::Validity { valid: true, reasons: vec![] }, ..Record::default() };
            add_all(&mut record, known.iter().cloned());
            judge_ends(&mut record, &Root::system(), &[], properties, Some("the judge at J is gone: no end"));
            record.validity.reasons.into_iter().map(|reason| reason.id).collect::<Vec<_>>()
        };
        let interrupt = probe(Probe::Interrupt(Box::default()));
        assert_eq!(ended(&interrupt, &[]), ["pacer.failed"]);
        let known = Reason {
            id: "judge.protocol".into(),
            text: "the judge at J is gone: no end".into(),
            remedy: String::new(),
        };
        assert_eq!(ended(&interrupt, &[known]), ["judge.protocol"], "not twice");
        assert_eq!(ended(&probe(Probe::Timer(TimerProbe::default())), &[]), [""; 0], "its threads set their own pace");
    }

    fn judged(series: Series, planned_ns: Option<u64>) -> Vec<(String, String, String)> {
        let phase = Phase { name: "rest".into(), planned_ns, ..Phase::default() };
        let series = Series { phase: "rest".into(), period_ns: 1_000_000_000, ..series };
        let mut record = Record { phases: vec![phase], series: vec![series], ..Record::default() };
        judge_coverage(&mut record, "rest");
        record.validity.reasons.into_iter().map(|reason| (reason.id, reason.text, reason.remedy)).collect()
    }

    fn reason(id: &str, text: &str, remedy: &str) -> Vec<(String, String, String)> {
        vec![(id.to_owned(), text.to_owned(), remedy.to_owned())]
    }

    #[test]
    fn a_run_shorter_than_its_period_is_invalid() {
        let trips = || SeriesKind::RoundTrips(Box::new(RoundTrip { slots: 1, ..RoundTrip::default() }));
        let audio = || SeriesKind::Audio(Box::default());
        for kind in [SeriesKind::WakeUps, trips(), audio()] {
            let one = || Series { samples: 1, kind: kind.clone(), ..Series::default() };
            let text =
                format!("{} measured less than one period: the run of 500 ms is shorter than 1 s", one().place());
            let expected = reason("nothing.measured", &text, "run longer, e.g. --duration 10s");
            assert_eq!(judged(one(), Some(500_000_000)), expected);
            assert_eq!((judged(one(), Some(1_000_000_000)), judged(one(), None)), (vec![], vec![]));
        }
        let kernel = Series { samples: 1, kind: SeriesKind::TimerlatThread, ..Series::default() };
        assert_eq!(judged(kernel, Some(500_000_000)), []);
        let interrupted = judged(Series { cpu: Some(1), ..Series::default() }, Some(2_000_000_000));
        assert_eq!(
            interrupted,
            reason("nothing.measured", "CPU 1 measured nothing", "run longer, e.g. --duration 10s")
        );
    }

    #[test]
    fn a_run_that_lost_most_of_its_slots_is_invalid() {
        let trips = |lost, send_failed| {
            let trips = RoundTrip { peer: "[fe80::1]:7".into(), slots: 100, lost, send_failed, ..RoundTrip::default() };
            Series { samples: 49, kind: SeriesKind::RoundTrips(Box::new(trips)), ..Series::default() }
        };
        let text = "most of 100 datagrams measured nothing: 21 lost, 30 refused by the kernel";
        assert_eq!(judged(trips(21, 30), None), reason("little.measured", text, "ping -c 5 fe80::1; ip -s link"));
        assert_eq!(judged(trips(20, 30), None), []);
        let with_late = |lost, send_failed, late| {
            let mut series = trips(lost, send_failed);
            if let SeriesKind::RoundTrips(trips) = &mut series.kind {
                trips.late = late;
            }
            judged(series, None).remove(0)
        };
        assert_eq!(with_late(1, 60, 1).2, "ping -c 5 fe80::1; ip -s link", "the kernel refused most");
        let text = "most of 100 datagrams measured nothing: 60 lost (55 of them came after the time-out), 0 refused by the kernel";
        assert_eq!(vec![with_late(60, 0, 55)], reason("little.measured", text, LONGER_TIMEOUT));
        let talker = |frames, refused| {
            let talker = record::Talker { frames, refused, ..record::Talker::default() };
            Series { samples: 9, kind: SeriesKind::Stream(Stream::Talker(Box::new(talker))), ..Series::default() }
        };
        assert_eq!(judged(talker(40, 60), None)[0].0, "little.measured");
        assert_eq!(
            (judged(talker(60, 40), None), judged(talker(0, 100), None)[0].0.as_str()),
            (vec![], "nothing.measured")
        );
    }

    #[test]
    fn takes_the_remedy_of_the_matching_finding() {
        let finding = |id: &str, remedy: &str| Finding { id: id.into(), remedy: remedy.into(), ..Finding::default() };
        let findings = [finding("rights.realtime", "grant it"), finding("rights.rt_budget", "")];
        assert_eq!(remedy_of(&findings, &["rights.rt_budget", "rights.realtime"]), "grant it");
        assert!(remedy_of(&[], &["rights.realtime"]).contains("setcap"));
    }
}
