//! Checks the commands in remedies.

use record::{Blame, BlameMode, Phase, Record, Series};

use super::*;
use crate::explain::IN_PREVIOUS_CYCLE;

fn facts() -> RemedyFacts {
    RemedyFacts {
        priority: Some(19),
        measured: vec![2, 3],
        online: vec![0, 1, 2, 3],
        command: "punctual".to_owned(),
        ..RemedyFacts::default()
    }
}

fn thread(name: &str, priority: i32, why: Why) -> Cause {
    Cause { number: Some(412), priority: Some(priority), why: Some(why), ..Cause::new(CauseKind::Thread, name) }
}

#[track_caller]
fn says(cause: &Cause, facts: &RemedyFacts, parts: &[&str]) {
    let remedy = remedy(cause, facts);
    for part in parts {
        assert!(remedy.contains(part), "'{remedy}' lacks '{part}'");
    }
}

#[test]
fn contains_the_number_of_the_interrupt() {
    let eth0 = Cause { number: Some(24), ..Cause::new(CauseKind::Interrupt, "eth0") };
    says(&eth0, &facts(), &["`echo 0-1 > /proc/irq/24/smp_affinity_list`"]);
    let graphics = thread("irq/131-i915", 49, Why::HigherPriority);
    says(&graphics, &facts(), &["graphics", "`echo 0-1 > /proc/irq/131/smp_affinity_list`"]);
    says(&thread("irq/24-s-eth0", 10, Why::HigherPriority), &facts(), &["/proc/irq/24/", "`chrt -f -p 79 412`"]);
    let all = RemedyFacts { measured: vec![0, 1, 2, 3], ..facts() };
    says(&eth0, &all, &["`echo OTHER_CPUS > /proc/irq/24/smp_affinity_list`"]);
    let tick = Cause { number: Some(11), ..Cause::new(CauseKind::Interrupt, "arch_timer") };
    says(&tick, &facts(), &["nohz_full=2-3"]);
}

#[test]
fn moves_lowers_or_outranks_threads() {
    says(
        &thread("hog", 9, Why::HigherPriority),
        &facts(),
        &["`--policy fifo:91`", "`chrt -f -p 79 412`", "`taskset -pc 0-1 412`"],
    );
    says(&thread("peer", 19, Why::SamePriority), &facts(), &["`--policy fifo:81`"]);
    says(&thread("dl", -1, Why::HigherPriority), &facts(), &["deadline"]);
    says(&thread("kworker", 120, Why::PreemptionOff), &facts(), &["`echo 3 > /sys/devices/virtual/workqueue/cpumask`"]);
    says(&thread("migration", 0, Why::HigherPriority), &facts(), &["isolcpus=domain,managed_irq,2-3"]);
    let late = Cause { detail: IN_PREVIOUS_CYCLE.to_owned(), ..thread("probe", 19, Why::HigherPriority) };
    says(&late, &facts(), &["the spike before this one"]);
    says(&thread("rcuc", 98, Why::HigherPriority), &facts(), &["rcu_nocbs=2-3"]);
    says(&thread("dd", 120, Why::PreemptionOff), &facts(), &["PREEMPT_RT", "preempt=full"]);
    for own in ["punctual", "punctual-record"] {
        let remedy = remedy(&thread(own, 120, Why::PreemptionOff), &facts());
        assert!(remedy.contains("this is punctual itself") && !remedy.contains("taskset"), "{remedy}");
    }
    let realtime = RemedyFacts { realtime_kernel: true, ..facts() };
    says(&thread("dd", 120, Why::PreemptionOff), &realtime, &["--blame=deep"]);
    let ordinary = RemedyFacts { priority: None, ..facts() };
    says(&thread("dd", 120, Why::SamePriority), &ordinary, &["`chrt -f 80 COMMAND`", "`taskset -pc 0-1 412`"]);
}

#[test]
fn says_if_no_setting_helps() {
    let guest = RemedyFacts { hypervisor: Some("kvm".to_owned()), ..facts() };
    says(&Cause::new(CauseKind::AllCpus, ""), &guest, &["kvm", "no setting in this guest"]);
    says(&Cause::new(CauseKind::AllCpus, ""), &facts(), &["firmware", "hwlatdetect"]);
    says(&Cause::new(CauseKind::Stopped, "SIGSTOP"), &facts(), &["no setting prevents"]);
    says(&Cause::new(CauseKind::LateInterrupt, "dd"), &facts(), &["`punctual --blame=deep`"]);
    let deep = RemedyFacts { deep: true, ..facts() };
    says(&Cause::new(CauseKind::LateInterrupt, "dd"), &deep, &["hwlatdetect"]);
    let found = Cause {
        why: Some(Why::InterruptsOff),
        detail: "turned off in ata_scsi_queuecmd".to_owned(),
        ..Cause::new(CauseKind::LateInterrupt, "dd")
    };
    says(&found, &guest, &["interrupts were disabled in ata_scsi_queuecmd", "report it"]);
}

#[test]
fn every_kind_has_one_sentence() {
    use CauseKind as K;
    let kinds = [
        K::LateInterrupt,
        K::IdleExit,
        K::Interrupt,
        K::Softirq,
        K::Nmi,
        K::Timer,
        K::Thread,
        K::PageFault,
        K::Stopped,
        K::Blocked,
        K::Throttled,
        K::AllCpus,
        K::Stolen,
        K::Firmware,
        K::WakeUp,
        K::Unexplained,
    ];
    for kind in kinds {
        let unknown = RemedyFacts { command: "punctual".to_owned(), ..RemedyFacts::default() };
        for facts in [facts(), unknown, RemedyFacts { hold_cpu_awake: true, ..facts() }] {
            for name in ["x", "NET_RX", "SCHED", "local_timer", "tick_nohz_handler", "irq/x-y"] {
                let remedy = remedy(&Cause::new(kind, name), &facts);
                assert!(
                    remedy.len() > 20 && !remedy.contains(['\n', '\u{2014}']) && !remedy.contains("  "),
                    "{remedy}"
                );
                assert!(!remedy.contains(". ") && !remedy.ends_with('.'), "one sentence: {remedy}");
                assert_eq!(remedy.matches('`').count() % 2, 0, "{remedy}");
            }
        }
    }
}

#[test]
fn takes_the_facts_from_the_record() {
    let command = vec!["/opt/my tools/punctual".to_owned(), "measure".to_owned()];
    let mut record = Record { command, ..Record::default() };
    record.scenario.policy = "fifo:80".to_owned();
    record.machine.cpus_online = Some("0-3,32-33".to_owned());
    record.machine.preempt = Some("PREEMPT_RT".to_owned());
    record.machine.hypervisor = Some("none".to_owned());
    record.phases = vec![Phase { period_ns: 1_000_000, ..Phase::default() }];
    record.series = [3, 2, 3].map(|cpu| Series { cpu: Some(cpu), ..Series::default() }).into();
    record.blame =
        Some(Blame { mode: BlameMode::Deep, events: vec!["preemptirq:irq_disable".to_owned()], ..Blame::default() });
    let facts = RemedyFacts::of(&record);
    let expected = RemedyFacts {
        thread_id: None,
        priority: Some(19),
        measured: vec![2, 3],
        online: vec![0, 1, 2, 3, 32, 33],
        realtime_kernel: true,
        hypervisor: None,
        hold_cpu_awake: false,
        deep: true,
        period_ns: 1_000_000,
        command: "'/opt/my tools/punctual'".to_owned(),
    };
    assert_eq!(facts, expected);
    assert_eq!(facts.others_mask(), "3,00000003");
    record.blame = Some(Blame { mode: BlameMode::Deep, ..Blame::default() });
    assert!(!RemedyFacts::of(&record).deep, "this kernel has no such events");
}

#[test]
fn raises_a_thread_of_a_program_by_its_id() {
    let of = |priority| {
        let process = record::ProcessThread { tid: 77, priority, ..record::ProcessThread::default() };
        let machine = record::Machine { cpus_online: Some("0-3".to_owned()), ..record::Machine::default() };
        let series = vec![Series { kind: record::SeriesKind::Process(Box::new(process)), ..Series::default() }];
        RemedyFacts::of(&Record { series, machine, ..Record::default() })
    };
    let hog = thread("hog", 9, Why::HigherPriority);
    says(&hog, &of(19), &["`chrt -f -p 91 77`", "`chrt -f -p 79 412`", "`taskset -pc OTHER_CPUS 412`"]);
    says(&hog, &of(120), &["`chrt -f -p 80 77`"]);
    says(&thread("peer", 120, Why::SamePriority), &of(120), &["`chrt -f -p 80 77`"]);
}
