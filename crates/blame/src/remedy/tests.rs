//! Checks the commands in remedies.

use std::collections::BTreeSet;

use machine::CpuList;
use record::{Blame, BlameMode, Granted, Phase, Record, Series};

use super::*;
use crate::explain::IN_PREVIOUS_CYCLE;

fn facts() -> RemedyFacts {
    RemedyFacts {
        priority: Some(19),
        measured: vec![2, 3],
        online: vec![0, 1, 2, 3],
        has_governor: true,
        has_idle_states: true,
        policy_command: ["/usr/bin/punctual", "measure", "noise", "--duration=2s"].map(str::to_owned).into(),
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
    says(&eth0, &facts(), &["`echo 0-1 | sudo tee /proc/irq/24/smp_affinity_list`"]);
    let graphics = thread("irq/131-i915", 49, Why::HigherPriority);
    says(&graphics, &facts(), &["graphics", "`echo 0-1 | sudo tee /proc/irq/131/smp_affinity_list`"]);
    says(&thread("irq/24-s-eth0", 10, Why::HigherPriority), &facts(), &["/proc/irq/24/", "`sudo chrt -f -p 79 412`"]);
    let all = RemedyFacts { measured: vec![0, 1, 2, 3], ..facts() };
    says(&eth0, &all, &["write a CPU that is not measured into /proc/irq/24/"]);
    let tick = Cause { number: Some(11), ..Cause::new(CauseKind::Interrupt, "arch_timer") };
    says(&tick, &facts(), &["nohz_full=2-3"]);
}

#[test]
fn moves_lowers_or_outranks_threads() {
    says(
        &thread("hog", 9, Why::HigherPriority),
        &facts(),
        &[
            "`punctual measure noise --duration=2s --policy fifo:91`",
            "`sudo chrt -f -p 79 412`",
            "`sudo taskset -pc 0-1 412`",
        ],
    );
    says(
        &thread("peer", 19, Why::SamePriority),
        &facts(),
        &["`punctual measure noise --duration=2s --policy fifo:81`"],
    );
    let threads = RemedyFacts { policy_command: Vec::new(), ..facts() };
    says(&thread("hog", 9, Why::HigherPriority), &threads, &["above hog, policy fifo:91 in its `--thread`"]);
    says(&thread("dl", -1, Why::HigherPriority), &facts(), &["deadline"]);
    says(
        &thread("kworker", 120, Why::PreemptionOff),
        &facts(),
        &["`echo 3 | sudo tee /sys/devices/virtual/workqueue/cpumask`"],
    );
    says(
        &thread("migration", 0, Why::HigherPriority),
        &facts(),
        &["`isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3`"],
    );
    let late = Cause { detail: IN_PREVIOUS_CYCLE.to_owned(), ..thread("probe", 19, Why::HigherPriority) };
    says(&late, &facts(), &["the previous cycle of the measuring thread of punctual was still running"]);
    let of_program = RemedyFacts { thread_id: Some(7), ..facts() };
    says(&late, &of_program, &["the previous cycle of probe was still running"]);
    says(&thread("rcuc", 98, Why::HigherPriority), &facts(), &["rcu_nocbs=2-3"]);
    says(
        &thread("dd", 120, Why::PreemptionOff),
        &facts(),
        &["use a PREEMPT_RT kernel", "`preempt=full` makes it less late, but not real-time"],
    );
    let own = Cause { own: true, ..thread("punctual", 120, Why::PreemptionOff) };
    let advice = remedy(&own, &facts());
    assert!(advice.contains("this is punctual itself") && !advice.contains("taskset"), "{advice}");
    let advice = remedy(&own, &RemedyFacts { thread_id: Some(7), ..facts() });
    assert!(
        advice.contains("this is punctual itself") && !advice.contains("--cpus"),
        "measure process has no --cpus: {advice}"
    );
    let own_load = thread("load/net", 120, Why::PreemptionOff);
    let loaded = RemedyFacts { loads: ["net".to_owned()].into(), ..facts() };
    says(&own_load, &loaded, &["a load of the measurement", "PREEMPT_RT"]);
    assert!(!remedy(&own_load, &loaded).contains("taskset"));
    says(&own_load, &RemedyFacts { realtime_kernel: true, ..loaded }, &["compare with a run without it"]);
    says(&own_load, &facts(), &["`sudo taskset -pc 0-1 412`"]);
    says(&Cause::new(CauseKind::Thread, "unknown"), &facts(), &["`--blame=trace`", "root"]);
    says(&Cause { own: false, ..own }, &facts(), &["`sudo taskset -pc 0-1 412`"]);
    let realtime = RemedyFacts { realtime_kernel: true, ..facts() };
    says(&thread("dd", 120, Why::PreemptionOff), &realtime, &["--blame=deep"]);
    let ordinary = RemedyFacts { priority: None, ..facts() };
    says(
        &thread("dd", 120, Why::SamePriority),
        &ordinary,
        &["`punctual measure noise --duration=2s --policy fifo:80`", "`sudo taskset -pc 0-1 412`"],
    );
}

#[test]
fn says_if_no_setting_helps() {
    let guest = RemedyFacts { hypervisor: Some("kvm".to_owned()), ..facts() };
    says(&Cause::new(CauseKind::AllCpus, ""), &guest, &["kvm", "no setting in this guest"]);
    says(&Cause::new(CauseKind::IdleExit, "haltpoll"), &guest, &["kvm continues a halted CPU", "--hold-cpu-awake"]);
    says(&Cause::new(CauseKind::AllCpus, ""), &facts(), &["firmware", "hwlatdetect"]);
    says(&Cause::new(CauseKind::Stopped, "SIGSTOP"), &facts(), &["no setting prevents"]);
    says(&Cause::new(CauseKind::LateInterrupt, "dd"), &facts(), &["`--blame=deep`"]);
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
fn a_wait_for_the_thread_of_an_interrupt_is_not_the_programs_doing() {
    let woken_by = |waker: &str| Cause { detail: format!("woken by {waker}"), ..Cause::new(CauseKind::Blocked, "") };
    says(&woken_by("irq/16-hpet2"), &facts(), &["a lock of its driver"]);
    says(&woken_by("kworker/0:1"), &facts(), &["take no lock"]);
}

#[test]
fn every_kind_has_one_sentence() {
    use CauseKind as K;
    let kinds = [
        K::LateInterrupt,
        K::IdleExit,
        K::TimerSlack,
        K::Interrupt,
        K::Softirq,
        K::Nmi,
        K::Timer,
        K::Thread,
        K::PageFault,
        K::Stopped,
        K::Blocked,
        K::Throttled,
        K::Quota,
        K::Budget,
        K::AllCpus,
        K::Stolen,
        K::Firmware,
        K::WakeUp,
        K::Unexplained,
    ];
    for kind in kinds {
        let unknown = RemedyFacts { bare_command: Some("punctual".to_owned()), ..RemedyFacts::default() };
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
fn names_the_limit_of_the_kernel() {
    let throttled = Cause::new(CauseKind::Throttled, "");
    says(&throttled, &facts(), &["`sudo sysctl -w kernel.sched_rt_runtime_us=-1`"]);
    says(
        &throttled,
        &RemedyFacts { has_fair_server: true, ..facts() },
        &["mount -t debugfs", "/sched/*_server/cpu*/runtime", "starves its CPU"],
    );
    let polling = RemedyFacts { polls_each_ns: Some(100_000_000), ..facts() };
    says(&throttled, &polling, &["punctual's own polling thread", "`--runtime 50000us`"]);
}

#[test]
fn names_the_wake_up_offset_of_a_talker_that_fills_its_cpu() {
    let facts = |cpu_time_ns, offset_ns| {
        let talker = record::Talker { offset_ns, ..record::Talker::default() };
        let mut series = Series { period_ns: 125_000, samples: 8_000, cpu_time_ns, ..Series::default() };
        series.kind = record::SeriesKind::Stream(record::Stream::Talker(Box::new(talker)));
        series.raw.add(5_000, 8_000);
        let command =
            ["punctual", "measure", "stream", "--self", "--wakeup-offset", "100us"].map(str::to_owned).to_vec();
        RemedyFacts::of(&Record { command, series: vec![series], ..Record::default() })
    };
    let throttled = Cause::new(CauseKind::Throttled, "");
    // 95 us of spinning and 25 us of sending in each 125 us.
    let named =
        ["own talker is too long", "used 96 % of its CPU", "`punctual measure stream --self --wakeup-offset 81us`"];
    says(&throttled, &facts(Some(960_000_000), 100_000), &named);
    let another = ["find the one that did"];
    says(&throttled, &facts(Some(360_000_000), 25_000), &another);
    says(&throttled, &facts(None, 100_000), &another);
    says(&throttled, &facts(Some(960_000_000), 0), &another);
}

#[test]
fn takes_the_facts_from_the_record() {
    let command = vec!["/opt/my tools/punctual".to_owned(), "--quick".to_owned()];
    let mut record = Record { command, ..Record::default() };
    record.scenario.policy = "fifo:80".to_owned();
    record.machine.cpus_online = Some("0-3,32-33".to_owned());
    record.machine.preempt = Some("PREEMPT_RT".to_owned());
    record.machine.hypervisor = Some("none".to_owned());
    record.machine.idle_states = Some("POLL 0us, C1 2us".to_owned());
    let asked_loads = vec!["net:1000@0".to_owned(), "cpu@1".to_owned()];
    record.phases = vec![Phase { period_ns: 1_000_000, asked_loads, ..Phase::default() }];
    record.series = [3, 2, 3].map(|cpu| Series { cpu: Some(cpu), ..Series::default() }).into();
    record.blame =
        Some(Blame { mode: BlameMode::Deep, events: vec!["preemptirq:irq_disable".to_owned()], ..Blame::default() });
    let facts = RemedyFacts::of(&record);
    let expected = RemedyFacts {
        isolation: machine::Isolation::default(),
        full_talker: None,
        loads: ["net".to_owned(), "cpu".to_owned()].into(),
        thread_id: None,
        priority: Some(19),
        measured: vec![2, 3],
        online: vec![0, 1, 2, 3, 32, 33],
        realtime_kernel: true,
        has_fair_server: false,
        hypervisor: None,
        hold_cpu_awake: false,
        deep: true,
        period_ns: 1_000_000,
        polls_each_ns: None,
        has_governor: false,
        has_idle_states: true,
        ended: BTreeSet::new(),
        policy_command: Vec::new(),
        is_far: false,
        in_campaign: false,
        bare_command: Some("'/opt/my tools/punctual'".to_owned()),
    };
    assert_eq!(facts, expected);
    assert_eq!(facts.others_mask().as_deref(), Some("3,00000003"));
    record.blame = Some(Blame { mode: BlameMode::Deep, ..Blame::default() });
    assert!(!RemedyFacts::of(&record).deep, "this kernel has no such events");
}

#[test]
fn measures_the_effect_with_the_command_of_the_run() {
    let idle = Cause::new(CauseKind::IdleExit, "C6");
    let of = |words: &[&str]| {
        let command = words.iter().map(|&word| word.to_owned()).collect();
        remedy(&idle, &RemedyFacts::of(&Record { command, ..Record::default() }))
    };
    for words in [&["punctual", "measure", "udp", "--self"][..], &["punctual", "pair", "far", "udp"]] {
        let text = of(words);
        assert!(text.ends_with("repeat the run with `--hold-cpu-awake`"), "{text}");
    }
    for words in [&["punctual"][..], &[]] {
        let text = of(words);
        assert!(text.ends_with("with `punctual measure timer --hold-cpu-awake`"), "{text}");
        let facts = RemedyFacts::of(&Record {
            command: words.iter().map(|&word| word.to_owned()).collect(),
            ..Record::default()
        });
        says(&Cause::new(CauseKind::TimerSlack, ""), &facts, &["`punctual measure timer --policy fifo:80`"]);
    }
}

/// The far end measures interrupts, and the near end sends datagrams.
#[test]
fn raises_the_thread_with_the_command_of_its_probe() {
    let of = |command: &str, probe: &str, granted: &str| {
        let command = command.split(' ').map(str::to_owned).collect();
        let series =
            Series { granted: Granted { policy: granted.to_owned(), ..Granted::default() }, ..Series::default() };
        let mut record = Record { command, series: vec![series], ..Record::default() };
        record.scenario.probe = probe.to_owned();
        RemedyFacts::of(&record)
    };
    let hog = thread("hog", 9, Why::HigherPriority);
    for (command, probe, expected) in [
        (
            "punctual pair far interrupt --source hpet",
            "interrupt",
            "`punctual pair far interrupt --source hpet --far-policy fifo:91`",
        ),
        ("punctual pair far udp --policy fifo:80", "udp", "`punctual pair far udp --policy fifo:91`"),
        (
            "punctual measure interrupt --source hpet",
            "interrupt",
            "`punctual measure interrupt --source hpet --policy fifo:91`",
        ),
        ("punctual run a.toml", "interrupt", "`policy = \"fifo:91\"` in the campaign file"),
    ] {
        says(&hog, &of(command, probe, "fifo:80"), &[expected]);
    }
    let far = of("punctual pair far interrupt --source hpet", "interrupt", "fifo:95");
    says(
        &hog,
        &far,
        &["raise the interrupt's thread above hog, `punctual pair far interrupt --source hpet --far-irq-priority 91`"],
    );
    let idle = Cause::new(CauseKind::IdleExit, "C6");
    says(&idle, &far, &["repeat the run with `--far-hold-cpu-awake`"]);
    says(&idle, &of("punctual run a.toml", "timer", "fifo:80"), &["`hold_cpu_awake = true` in its file"]);
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
    says(
        &hog,
        &of(19),
        &["`sudo chrt -f -p 91 77`", "`sudo chrt -f -p 79 412`", "move it to a CPU that the program does not use"],
    );
    says(&hog, &of(120), &["`sudo chrt -f -p 91 77`"]);
    says(&thread("low", 70, Why::HigherPriority), &of(120), &["`sudo chrt -f -p 80 77`"]);
    says(&thread("stopper/1", 0, Why::HigherPriority), &of(120), &["move"]);
    let ended = RemedyFacts { ended: BTreeSet::from([77, 412]), ..of(19) };
    let advice = remedy(&hog, &ended);
    assert!(advice.contains("raise the measured thread above hog, fifo:91; or lower hog to fifo:79"), "{advice}");
    assert!(!advice.contains("sudo"), "{advice}");
    says(&thread("peer", 120, Why::SamePriority), &of(120), &["`sudo chrt -f -p 80 77`"]);
}

#[test]
fn raises_the_interrupt_thread_of_a_source_above_a_thread_of_lower_priority_than_the_probe() {
    let words = ["punctual", "measure", "interrupt", "--source", "hpet", "--policy=fifo:80"];
    let series =
        vec![Series { granted: Granted { policy: "fifo:80".to_owned(), ..Granted::default() }, ..Series::default() }];
    let command = words.map(str::to_owned).to_vec();
    let facts = RemedyFacts::of(&Record { command, series, ..Record::default() });
    let hog = thread("hog", 39, Why::HigherPriority);
    let advice = remedy(&hog, &facts);
    let command = "raise the interrupt's thread above hog, `punctual measure interrupt --source hpet --policy=fifo:80 \
                   --irq-priority 61`";
    assert!(advice.starts_with(command) && !advice.contains("lower hog"), "{advice}");
    let other = remedy(&thread("irq/7-eth0", 49, Why::SamePriority), &facts);
    assert!(other.contains("--irq-priority 51`") && !other.contains("lower priority"), "{other}");
    let above = remedy(&thread("hog", 9, Why::HigherPriority), &facts);
    assert!(above.starts_with("raise the measured thread above hog") && above.contains("fifo:91"), "{above}");
}

#[test]
fn one_cpu_always_remains_for_other_work() {
    let all = RemedyFacts { measured: vec![0, 1, 2, 3], ..facts() };
    let tick = Cause::new(CauseKind::Interrupt, "local_timer");
    says(
        &tick,
        &all,
        &["isolcpus=managed_irq,domain,1-3 nohz_full=1-3 rcu_nocbs=1-3`, which leave CPU 0 for other work"],
    );
    let single = RemedyFacts { measured: vec![0], online: vec![0], ..facts() };
    says(&tick, &single, &["bind the thread that must be on time to one of several CPUs"]);
}

/// Causes of every kind, with and without a number, priority and reason from the trace.
fn causes() -> Vec<Cause> {
    use CauseKind as K;
    let names: [(CauseKind, &[&str]); 20] = [
        (K::LateInterrupt, &["dd"]),
        (K::IdleExit, &[""]),
        (K::TimerSlack, &[""]),
        (K::Interrupt, &["local_timer", "eth0", "i915", "reschedule", "thermal_apic", "call_function"]),
        (K::Softirq, &["NET_RX", "BLOCK", "TIMER", "SCHED", "RCU", "TASKLET"]),
        (K::Nmi, &[""]),
        (K::Timer, &["tick_nohz_handler", "watchdog_timer_fn", "sched_rt_period_timer", "hrtimer_wakeup", "other"]),
        (
            K::Thread,
            &["dd", "irq/24-eth0", "kworker/0:1", "ksoftirqd/0", "rcuc/0", "timerlat/0", "migration/0", "punctual"],
        ),
        (K::PageFault, &[""]),
        (K::Stopped, &["SIGSTOP"]),
        (K::Blocked, &["read"]),
        (K::Throttled, &[""]),
        (K::Quota, &[""]),
        (K::Budget, &[""]),
        (K::AllCpus, &[""]),
        (K::Stolen, &[""]),
        (K::Firmware, &[""]),
        (K::WakeUp, &[""]),
        (K::Work, &[""]),
        (K::Unexplained, &[""]),
    ];
    let whys =
        [None, Some(Why::HigherPriority), Some(Why::SamePriority), Some(Why::PreemptionOff), Some(Why::InterruptsOff)];
    let mut causes = Vec::new();
    for (kind, name) in names.into_iter().flat_map(|(kind, names)| names.iter().map(move |name| (kind, name))) {
        for (why, number) in whys.into_iter().flat_map(|why| [(why, None), (why, Some(24))]) {
            for priority in [None, Some(-1), Some(9), Some(99), Some(120)] {
                causes.push(Cause { why, number, priority, ..Cause::new(kind, *name) });
            }
        }
    }
    causes
}

/// The recorded machines of the crate `machine`, with each choice of measured CPUs.
fn recorded_facts() -> Vec<RemedyFacts> {
    let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../machine/tests/machines");
    let names =
        ["cloud-vm", "cnc-pc-rt", "container-cpuset", "khadas-vim3l-evl", "laptop-voluntary", "raspberry-pi-rt"];
    let mut all = Vec::new();
    for machine in names.map(|name| machine::facts(&machine::Root::at(format!("{machines}/{name}")))) {
        let online: CpuList = machine.cpus_online.as_deref().unwrap().parse().unwrap();
        let online: Vec<u32> = online.iter().collect();
        let of = |measured: &[u32], process: bool, policy: &str, hold_cpu_awake| {
            let mut record = Record { command: vec!["punctual".to_owned()], ..Record::default() };
            record.machine = machine.clone();
            record.scenario.policy = policy.to_owned();
            record.scenario.hold_cpu_awake = hold_cpu_awake;
            let thread = record::ProcessThread { tid: 77, priority: 19, ..record::ProcessThread::default() };
            let series = |cpu| match process {
                true => {
                    Series { kind: record::SeriesKind::Process(Box::new(thread.clone())), cpu, ..Series::default() }
                }
                false => Series { cpu, ..Series::default() },
            };
            record.series = measured.iter().copied().map(|cpu| series(Some(cpu))).collect();
            if measured.is_empty() {
                record.series.push(series(None));
            }
            RemedyFacts::of(&record)
        };
        for measured in [&online[..], &online[..1], &online[online.len() - 1..]] {
            for policy in ["other", "fifo:1", "fifo:80", "fifo:99", "deadline:1ms"] {
                all.extend([of(measured, false, policy, false), of(measured, true, policy, true)]);
            }
        }
        all.push(of(&[], true, "fifo:80", false));
    }
    all
}

#[test]
fn every_command_can_be_executed_as_printed_on_each_recorded_machine() {
    for facts in recorded_facts() {
        for cause in causes() {
            let remedy = remedy(&cause, &facts);
            let capitals = |word: &&str| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            let placeholder = remedy.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').find(capitals);
            let known = ["CPU", "RCU", "TLB", "USB", "PREEMPT_RT", "MCL_CURRENT", "MCL_FUTURE", "PR_SET_TIMERSLACK"];
            assert!(placeholder.is_none_or(|word| known.contains(&word)), "{placeholder:?}: {remedy}");
            for command in remedy.split('`').skip(1).step_by(2) {
                check_command(command, &facts).unwrap_or_else(|why| panic!("{command}: {why}: {remedy}"));
            }
        }
    }
}

/// Start of the folder of a CPU.
const CPU: &str = "/sys/devices/system/cpu/cpu";

/// Checks one command, option, or list of kernel arguments.
fn check_command(command: &str, facts: &RemedyFacts) -> Result<(), String> {
    let words: Vec<&str> = command.split(' ').collect();
    let other = |list: &str| match list.parse::<CpuList>() {
        Ok(cpus) if cpus.iter().all(|cpu| facts.online.contains(&cpu) && !facts.measured.contains(&cpu)) => Ok(()),
        _ => Err(format!("{list} are not other CPUs")),
    };
    let online = |list: &str| match list.parse::<CpuList>() {
        Ok(cpus) if cpus.iter().all(|cpu| facts.online.contains(&cpu)) => Ok(cpus.iter().count()),
        _ => Err(format!("{list} are not online")),
    };
    let number = |text: &str, range: std::ops::RangeInclusive<u32>| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(()),
        _ => Err(format!("{text} is not in {range:?}")),
    };
    match words.as_slice() {
        ["--cpus" | "--timerlat" | "--blame=deep"] | ["punctual", "amp", "info"] | ["punctual", "measure"] => Ok(()),
        ["punctual", "measure", "timer", "--hold-cpu-awake"] => Ok(()),
        ["--policy", policy] | ["punctual", "measure", "timer", "--policy", policy] => {
            number(policy.strip_prefix("fifo:").ok_or("no policy")?, 1..=99)
        }
        ["mlockall(MCL_CURRENT", "|", "MCL_FUTURE)"] | ["ulimit", "-l", "unlimited"] => Ok(()),
        ["sudo", "chrt", "-f", "-p", priority, pid] => number(priority, 1..=99).and_then(|()| number(pid, 1..=1 << 22)),
        ["sudo", "taskset", "-pc", cpus, pid] => other(cpus).and_then(|()| number(pid, 1..=1 << 22)),
        ["echo", cpus, "|", "sudo", "tee", "/proc/irq/24/smp_affinity_list"] => other(cpus),
        ["echo", mask, "|", "sudo", "tee", "/sys/devices/virtual/workqueue/cpumask"] => {
            let mask = u32::from_str_radix(mask, 16).map_err(|error| error.to_string())?;
            let cpus: Vec<u32> = (0..32).filter(|cpu| mask >> cpu & 1 == 1).collect();
            other(&cpus.into_iter().collect::<CpuList>().to_string())
        }
        ["echo", "performance" | "1", "|", "sudo", "tee", files @ ..] if files[0].starts_with(CPU) => {
            let of_cpu = |file: &str| {
                let (cpu, file) =
                    file.strip_prefix(CPU).and_then(|file| file.split_once('/')).ok_or("no file of a CPU")?;
                let known = match file {
                    "cpufreq/scaling_governor" => facts.has_governor,
                    "cpuidle/state[1-9]/disable" => facts.has_idle_states,
                    _ => false,
                };
                if !known {
                    return Err(format!("no {file} here"));
                }
                if cpu == "*" { Ok(()) } else { online(cpu).map(|_| ()) }
            };
            files.iter().try_for_each(|file| of_cpu(file))
        }
        ["sudo", "sysctl", "-w", setting] => {
            let settings = ["kernel.nmi_watchdog=0", "kernel.watchdog=0", "kernel.sched_rt_runtime_us=-1"];
            settings.contains(setting).then_some(()).ok_or_else(|| "unknown setting".to_owned())
        }
        ["sudo", "sh", "-c", ..] if command == FAIR_SERVERS_OFF => Ok(()),
        ["sudo", "hwlatdetect", "--duration=60"] | ["sudo", "dmesg"] => Ok(()),
        arguments => arguments.iter().try_for_each(|argument| {
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            match name {
                "isolcpus" | "nohz_full" | "rcu_nocbs" => {
                    let cpus = value.strip_prefix("managed_irq,domain,").unwrap_or(value);
                    let all = online(cpus)? == facts.online.len();
                    if all { Err("no CPU remains for other work".to_owned()) } else { Ok(()) }
                }
                "idle" | "nohlt" | "preempt" => Ok(()),
                _ => Err("unknown command".to_owned()),
            }
        }),
    }
}
