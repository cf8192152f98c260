//! Adds culprits to a record: time lines that add up, and a ledger made from them.

use std::collections::BTreeSet;

use record::{
    Account, Blame, BlameCost, BlameMode, Cause, CauseKind, Culprit, Evidence, Record, Series, Spike, Stretch, Why,
};

/// In these records, the firmware stops all CPUs once per this time.
pub const FIRMWARE_EVERY_NS: u64 = 4_000_000_000;

/// Adds a time line and culprits to every spike, and a ledger to the record.
pub fn blame(record: &mut Record) {
    for series in &mut record.series {
        let (loaded, cpu) = (series.phase == "load", series.cpu.unwrap_or_default());
        series.spikes.iter_mut().for_each(|spike| explain(spike, loaded, cpu));
    }
    let spikes = record.series.iter().map(|series| series.spikes.len() as u64).sum();
    record.blame = Some(Blame {
        mode: BlameMode::Trace,
        events: ["sched:sched_switch", "sched:sched_waking", "irq:irq_handler_entry", "irq:softirq_entry"]
            .map(str::to_owned)
            .into(),
        spikes,
        cost: Some(BlameCost { samples: 2000, off_ns: 12_100, on_ns: 12_500 }),
        ledger: ledger(record),
        ..Blame::default()
    });
}

pub fn thread(name: &str, pid: u32, priority: i32, why: Why) -> Cause {
    let (number, priority, why) = (Some(pid), Some(priority), Some(why));
    Cause { number, priority, why, ..Cause::new(CauseKind::Thread, name) }
}

fn explain(spike: &mut Spike, loaded: bool, cpu: u32) {
    let late_ns = spike.lateness_ns.unsigned_abs();
    let mixed = (spike.at_ns / 1_000_000).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let firmware = spike.at_ns % FIRMWARE_EVERY_NS < 20_000_000;
    let worker = format!("kworker/{cpu}:2-events");
    let running = if loaded { "punctual-load" } else { "swapper" };
    let main = match mixed % 16 {
        _ if firmware => Cause::new(CauseKind::AllCpus, ""),
        0..8 => thread("irq/125-i915", 412, 49, Why::PreemptionOff),
        8..11 => thread(&worker, 61 + cpu, 120, Why::PreemptionOff),
        11..14 if loaded => Cause::new(CauseKind::Softirq, "NET_RX"),
        11..14 => Cause { detail: "entered 1.2 ms before".into(), ..Cause::new(CauseKind::IdleExit, "C6") },
        14 => Cause { number: Some(128), ..Cause::new(CauseKind::Interrupt, "nvme0q1") },
        _ => Cause::default(),
    };
    let before = Cause { number: Some(if loaded { 2203 } else { 0 }), ..Cause::new(CauseKind::Thread, running) };
    let timer = Cause { number: Some(236), ..Cause::new(CauseKind::Interrupt, "local timer") };
    let nvme = Cause { number: Some(128), ..Cause::new(CauseKind::Interrupt, "nvme0q1") };
    let own = Cause::new(CauseKind::WakeUp, "");
    // Shares per thousand; the main culprit gets the rest.
    let shares =
        [(timer, 9 + mixed % 7), (nvme, if loaded { 31 + mixed % 23 } else { 0 }), (main, 0), (own, 14 + mixed % 11)];
    let rest = 1000 - shares.iter().map(|(_, share)| share).sum::<u64>();
    let mut start_ns = -12_400;
    let mut stretches = vec![Stretch { start_ns, ns: 12_400, cause: before }];
    start_ns = 0;
    let last = shares.len() - 1;
    for (n, (cause, share)) in shares.into_iter().enumerate() {
        let ns = match n {
            n if n == last => late_ns - start_ns.unsigned_abs(),
            _ if share == 0 && cause.name == "nvme0q1" && !loaded => continue,
            _ => late_ns / 1000 * if share == 0 { rest } else { share },
        };
        stretches.push(Stretch { start_ns, ns, cause });
        start_ns += ns.cast_signed();
    }
    let mut culprits: Vec<Culprit> = Vec::new();
    for stretch in &stretches[1..] {
        match culprits.iter_mut().find(|culprit| culprit.cause == stretch.cause) {
            Some(culprit) => culprit.ns += stretch.ns,
            None => culprits.push(Culprit { cause: stretch.cause.clone(), ns: stretch.ns }),
        }
    }
    culprits.sort_by_key(|culprit| std::cmp::Reverse(culprit.ns));
    (spike.timeline, spike.culprits, spike.evidence) = (stretches, culprits, Evidence::Trace);
}

fn ledger(record: &Record) -> Vec<Account> {
    let mut accounts: Vec<(Account, BTreeSet<u32>)> = Vec::new();
    let all: Vec<(&Series, &Spike)> = record.series.iter().flat_map(|s| s.spikes.iter().map(move |p| (s, p))).collect();
    for (series, spike) in all {
        for (n, culprit) in spike.culprits.iter().enumerate() {
            let known = accounts.iter().position(|(account, _)| account.cause.title() == culprit.cause.title());
            let at = known.unwrap_or_else(|| {
                accounts.push((Account { cause: culprit.cause.clone(), ..Account::default() }, BTreeSet::new()));
                accounts.len() - 1
            });
            let (account, cpus) = &mut accounts[at];
            account.total_ns += culprit.ns;
            if n > 0 {
                continue;
            }
            account.count += 1;
            account.worst_ns = account.worst_ns.max(spike.lateness_ns);
            cpus.extend(series.cpu);
            if !account.phases.contains(&series.phase) {
                account.phases.push(series.phase.clone());
            }
        }
    }
    accounts.sort_by_key(|(account, _)| std::cmp::Reverse(account.total_ns));
    let finish = |(mut account, cpus): (Account, BTreeSet<u32>)| {
        account.cpus = match (cpus.first(), cpus.last()) {
            (Some(first), Some(last)) if first < last => format!("{first}-{last}"),
            _ => cpus.iter().map(u32::to_string).collect(),
        };
        account.remedy = remedy(&account.cause);
        account.every_ns = (account.cause.kind == CauseKind::AllCpus).then_some(FIRMWARE_EVERY_NS);
        account
    };
    accounts.into_iter().map(finish).collect()
}

fn remedy(cause: &Cause) -> String {
    match (cause.kind, cause.name.as_str()) {
        (CauseKind::Thread, "irq/125-i915") => {
            "Leave the display's interrupt to CPU 0, and put your work on CPU 1: `echo 0 | sudo tee /proc/irq/125/smp_affinity_list`"
        }
        (CauseKind::Thread, _) => "Boot with preempt=full, so that the kernel's own work can be interrupted.",
        (CauseKind::Softirq, _) => "Spread the card's receive work over other CPUs: `sudo ethtool -X eth0 equal 1`",
        (CauseKind::IdleExit, _) => "Keep the CPUs out of deep idle states: `punctual measure timer --hold-cpu-awake`",
        (CauseKind::Interrupt, "nvme0q1") => "echo 0 | sudo tee /proc/irq/128/smp_affinity_list",
        (CauseKind::AllCpus, _) => "Look for power management and USB legacy support in the firmware's set-up.",
        _ => "",
    }
    .to_owned()
}
