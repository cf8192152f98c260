//! Ledgers of many spikes.

use record::{Cause, CauseKind, Culprit, Why};

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

fn culprit(kind: CauseKind, name: &str, ns: u64) -> Culprit {
    Culprit { cause: Cause::new(kind, name), ns }
}

fn add(ledger: &mut Ledger, cpu: u32, deadline_ns: u64, culprits: &[Culprit]) {
    let lateness_ns = culprits.iter().map(|culprit| culprit.ns).sum::<u64>().cast_signed();
    ledger.add(Entry {
        thread: (1, 9),
        cpu,
        phase: "load",
        at_ns: deadline_ns,
        deadline_ns,
        lateness_ns,
        culprits,
        may_coincide: false,
    });
}

fn facts(measured: &[u32]) -> RemedyFacts {
    RemedyFacts {
        measured: measured.to_vec(),
        period_ns: MS,
        bare_command: Some("punctual".to_owned()),
        ..RemedyFacts::default()
    }
}

#[test]
fn ranks_causes_by_total_lateness() {
    let mut ledger = Ledger::default();
    for k in 1..=10_u32 {
        let worker = format!("kworker/{}:{k}-events", k % 2);
        let mut thread = culprit(CauseKind::Thread, &worker, 50_000 + u64::from(k));
        (thread.cause.number, thread.cause.why) = (Some(k), Some(Why::HigherPriority));
        let others = [culprit(CauseKind::Interrupt, "eth0", 30_000), culprit(CauseKind::WakeUp, "", 1_000)];
        add(&mut ledger, k % 2, u64::from(k) * 10 * SECOND, &[vec![thread], others.to_vec()].concat());
    }
    ledger.add(Entry {
        thread: (1, 9),
        cpu: 3,
        phase: "rest",
        at_ns: 0,
        deadline_ns: SECOND,
        lateness_ns: 400_000,
        culprits: &[culprit(CauseKind::Interrupt, "eth0", 400_000)],
        may_coincide: false,
    });
    let accounts = ledger.accounts(&facts(&[0, 1, 3]));
    let found: Vec<_> = accounts
        .iter()
        .map(|account| {
            (account.cause.title(), account.count, account.worst_ns, account.total_ns, account.cpus.as_str())
        })
        .collect();
    assert_eq!(
        found,
        [
            ("interrupt eth0".to_owned(), 1, 400_000, 700_000, "0-1,3"),
            ("thread kworker, of higher priority".to_owned(), 10, 81_010, 500_055, "0-1"),
        ]
    );
    assert_eq!(accounts[1].cause.number, Some(10), "the number of the worst spike");
    assert_eq!(accounts[1].every_ns, Some(10 * SECOND));
    assert_eq!(accounts[0].phases, ["load", "rest"]);
    assert!(accounts.iter().all(|account| !account.remedy.is_empty()));
}

#[test]
fn stalls_of_all_cpus_are_one_account() {
    let mut ledger = Ledger::default();
    // One CPU after the other, because spikes are collected in this order.
    for cpu in 0..2 {
        for k in 1..=8_u64 {
            let kind = if (k + u64::from(cpu)) % 2 == 0 { CauseKind::LateInterrupt } else { CauseKind::IdleExit };
            let culprits = [culprit(kind, "dd", 300_000), culprit(CauseKind::WakeUp, "", 6_000)];
            add(&mut ledger, cpu, 64 * k * SECOND, &culprits);
        }
    }
    add(&mut ledger, 0, 5 * SECOND, &[culprit(CauseKind::LateInterrupt, "dd", 90_000)]);
    let accounts = ledger.accounts(&facts(&[0, 1]));
    let found: Vec<_> = accounts.iter().map(|a| (a.cause.kind, a.count, a.total_ns, a.every_ns)).collect();
    let all_cpus = (CauseKind::AllCpus, 16, 16 * 300_000, Some(64 * SECOND));
    assert_eq!(found, [all_cpus, (CauseKind::LateInterrupt, 1, 90_000, None)]);
    assert_eq!((accounts[0].cpus.as_str(), accounts[0].worst_ns), ("0-1", 306_000));
    let one = ledger.accounts(&facts(&[0, 1, 2]));
    assert!(one.iter().all(|account| account.cause.kind != CauseKind::AllCpus), "CPU 2 was running");
}

#[test]
fn bounds_memory_without_losing_spikes() {
    let mut ledger = Ledger::default();
    let mut total_ns = 0;
    let kinds = [CauseKind::LateInterrupt, CauseKind::Thread, CauseKind::Softirq];
    for ((k, kind), cpu) in (0..100_000_u64).zip(kinds.into_iter().cycle()).zip((0..4).cycle()) {
        let culprits = [culprit(kind, &format!("t{}", k % 5000), 50_000 + k), culprit(CauseKind::WakeUp, "", 3_000)];
        total_ns += 53_000 + k;
        add(&mut ledger, cpu, k * MS, &culprits);
    }
    let held_ns: u64 = {
        let mut totals = ledger.totals.clone();
        ledger.pending.iter().for_each(|stall| add_shares(&mut totals, stall));
        assert_eq!(totals.iter().map(|total| total.count).sum::<u64>(), 100_000);
        totals.iter().map(|total| total.total_ns).sum()
    };
    assert_eq!(held_ns, total_ns);
    assert!(ledger.totals.len() <= MAX_CAUSES + 3 && ledger.pending.len() < 2 * MAX_PENDING);
    let accounts = ledger.accounts(&facts(&[0, 1, 2, 3]));
    assert!(accounts.iter().any(|account| account.cause.name == "others"));
    assert_eq!(accounts.iter().map(|account| account.count).sum::<u64>(), 100_000);
}

#[test]
fn ignores_spikes_without_culprits() {
    let mut ledger = Ledger::default();
    add(&mut ledger, 0, SECOND, &[]);
    assert_eq!(ledger.accounts(&facts(&[0])), []);
}

#[test]
fn each_row_of_a_program_advises_on_its_own_thread() {
    let mut ledger = Ledger::default();
    for (thread, name, pid) in [((906, 39), "rthog", 71), ((905, 120), "hog", 72)] {
        let mut hog = culprit(CauseKind::Thread, name, 400_000);
        let why = if name == "hog" { Why::SamePriority } else { Why::HigherPriority };
        (hog.cause.number, hog.cause.priority, hog.cause.why) =
            (Some(pid), Some(if pid == 71 { 29 } else { 120 }), Some(why));
        let (culprits, lateness_ns) = (&[hog][..], 400_000);
        let (at_ns, deadline_ns) = (SECOND * u64::from(pid), SECOND * u64::from(pid));
        ledger.add(Entry {
            cpu: 1,
            thread,
            phase: "run",
            at_ns,
            deadline_ns,
            lateness_ns,
            culprits,
            may_coincide: false,
        });
    }
    let facts = RemedyFacts { thread_id: Some(906), online: vec![0, 1], ..facts(&[]) };
    let remedies: Vec<String> = ledger.accounts(&facts).into_iter().map(|account| account.remedy).collect();
    let about = |name: &str| remedies.iter().find(|remedy| remedy.contains(name)).unwrap();
    assert!(about("906").contains("`sudo chrt -f -p 71 906`"), "{remedies:?}");
    assert!(about("905").contains("`sudo chrt -f -p 80 905`"), "{remedies:?}");
    assert!(remedies.iter().all(|remedy| remedy.contains("`sudo taskset -pc 0 7")), "not where it ran: {remedies:?}");
}
