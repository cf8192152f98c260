//! Facts about the run that remedies depend on.

use std::{collections::BTreeSet, fmt::Display};

use machine::{CpuList, Isolation, has_fair_server};
use record::{Blame, BlameMode, MeasuredBy, Record, TalkerLoad, shell::with_options};

/// A talker that uses at least this part of its CPU, per cent, is the thread that the kernel stopped for ordinary ones.
/// Below the 95 % that the kernel allows, because interrupts take a part, and the stops themselves are not counted.
const FULL_PERCENT: u64 = 80;
/// Up to this number, the files of single CPUs are named.
const MAX_FILES: usize = 4;

/// Facts about the run that remedies depend on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemedyFacts {
    /// Priority of the measuring thread as the kernel counts; `None` for an ordinary thread.
    pub priority: Option<i32>,
    /// The worst thread of a watched program; `None` for our own probe.
    pub thread_id: Option<u32>,
    /// Measured CPUs, in ascending order.
    pub measured: Vec<u32>,
    /// Online CPUs, in ascending order.
    pub online: Vec<u32>,
    /// True if the kernel is PREEMPT_RT.
    pub realtime_kernel: bool,
    /// True if the kernel limits real-time threads by a fair server instead of by `sched_rt_runtime_us`.
    pub has_fair_server: bool,
    /// The arguments of the kernel that isolate CPUs.
    pub isolation: Isolation,
    /// The hypervisor that this machine runs on; `None` on bare metal or if it is unknown.
    pub hypervisor: Option<String>,
    /// True if the measured CPUs were kept out of their idle states.
    pub hold_cpu_awake: bool,
    /// True if all sections with interrupts or preemption off were traced.
    pub deep: bool,
    /// Shortest time between two deadlines, ns; 0 if unknown.
    pub period_ns: u64,
    /// If our own thread polls instead of sleeping: its period, ns.
    pub polls_each_ns: Option<u64>,
    /// The talker of the run that uses most of its CPU, if one uses nearly all of it.
    pub full_talker: Option<TalkerLoad>,
    /// True if a governor sets the frequency of the CPUs.
    pub has_governor: bool,
    /// True if the CPUs have more than one idle state.
    pub has_idle_states: bool,
    /// Kinds of the loads of the run, after which their threads are named.
    pub loads: BTreeSet<String>,
    /// Threads that have ended, so that no command can name them.
    pub ended: BTreeSet<u32>,
    /// The run's own command if it has the option `--policy`; otherwise empty.
    pub policy_command: Vec<String>,
    /// True if the thread ran at the far end of a pair, so that the options of the command begin with `--far-`.
    pub is_far: bool,
    /// True if the run was one of a campaign, whose file contains its options.
    pub in_campaign: bool,
    /// The command that starts this tool, quoted for a shell; `None` if the run's own command or its campaign file has the
    /// option `--hold-cpu-awake`.
    pub bare_command: Option<String>,
}

/// The kind in a load as on the command line: `net` of `net:1000@0`.
fn kind_of_load(spec: &str) -> String {
    spec.split([':', '@']).next().unwrap_or(spec).to_owned()
}

impl RemedyFacts {
    /// Takes the facts from a record.
    #[must_use]
    pub fn of(record: &Record) -> Self {
        let mut measured: Vec<u32> = record.series.iter().filter_map(|series| series.cpu).collect();
        measured.sort_unstable();
        measured.dedup();
        let worst =
            record.series.iter().filter(|series| series.kind.process().is_some()).max_by_key(|series| series.max_ns);
        let worst = worst.and_then(|series| series.kind.process());
        // If the program is not bound to CPUs, there are no other CPUs to name.
        let anywhere = worst.is_some() && measured.is_empty();
        Self {
            priority: match worst {
                Some(thread) => Some(thread.priority).filter(|&priority| priority < 100),
                None => lowest_priority(record),
            },
            thread_id: worst.map(|thread| thread.tid),
            measured,
            online: match record.machine.cpus_online.as_deref() {
                Some(online) if !anywhere => cpus_of(online),
                _ => Vec::new(),
            },
            realtime_kernel: record.machine.preempt.as_deref() == Some("PREEMPT_RT"),
            has_fair_server: record.machine.kernel.as_deref().is_some_and(has_fair_server),
            isolation: Isolation::of_record(&record.machine),
            hypervisor: record.machine.hypervisor.clone().filter(|hypervisor| hypervisor != "none"),
            hold_cpu_awake: record.scenario.hold_cpu_awake,
            deep: record.blame.as_ref().is_some_and(is_deep),
            // Spikes of threads without deadlines are not on a grid.
            period_ns: match record.series.iter().any(|series| series.kind.properties().has_deadlines) {
                false => 0,
                true => record.phases.iter().map(|phase| phase.period_ns).min().unwrap_or(0),
            },
            polls_each_ns: record
                .series
                .iter()
                .find(|series| series.kind.noise().is_some())
                .map(|series| series.period_ns)
                .filter(|_| lowest_priority(record).is_some()),
            full_talker: record
                .series
                .iter()
                .filter_map(TalkerLoad::of)
                .filter(|load| load.percent >= FULL_PERCENT)
                .max_by_key(|load| load.percent),
            has_governor: record.machine.governor.is_some(),
            has_idle_states: record.machine.idle_states.as_deref().is_some_and(|states| states.contains(", ")),
            loads: record.phases.iter().flat_map(|phase| &phase.asked_loads).map(|spec| kind_of_load(spec)).collect(),
            ended: BTreeSet::new(),
            policy_command: policy_command(record),
            is_far: command_is(record, "pair") && record.scenario.probe == record::INTERRUPT,
            in_campaign: command_is(record, "run"),
            bare_command: bare_command(record),
        }
    }

    /// The place of work that may disturb no deadline: `CPUs 0-1`.
    pub(super) fn elsewhere(&self) -> String {
        match (&*self.others(), self.thread_id) {
            ([cpu], _) => format!("CPU {cpu}"),
            ([_, ..], _) => format!("CPUs {}", list(&self.others())),
            ([], None) => "a CPU that is not measured".to_owned(),
            ([], Some(_)) => "a CPU that the program does not use".to_owned(),
        }
    }

    /// Writes the list of the other CPUs into a file of the kernel, or says which CPUs belong there.
    pub(super) fn write_others(&self, path: &str) -> String {
        match self.others().as_slice() {
            [] => format!("write {} into {path}", self.elsewhere()),
            others => format!("`echo {} | sudo tee {path}`", list(others)),
        }
    }

    /// The kernel arguments that isolate the measured CPUs.
    ///
    /// The kernel refuses to free all CPUs of other work: of those that are all measured, the first remains.
    pub(super) fn isolated(&self) -> String {
        let free_of_work = |cpu: &u32| !self.others().is_empty() || self.online.first() != Some(cpu);
        let cpus: Vec<u32> = self.measured.iter().copied().filter(free_of_work).collect();
        if cpus.is_empty() {
            return "bind the thread that must be on time to one of several CPUs, and measure only this CPU".to_owned();
        }
        let arguments = self.isolation.arguments(&CpuList::from_iter(cpus.iter().copied()));
        match self.online.first() {
            Some(first) if cpus.len() < self.measured.len() => {
                format!("kernel arguments `{arguments}`, which leave CPU {first} for other work")
            }
            _ => format!("kernel arguments `{arguments}`"),
        }
    }

    /// The facts for the spikes of one thread of a watched program, which occurred on these CPUs.
    pub(crate) fn of_thread(&self, thread_id: u32, priority: i32, cpus: impl Iterator<Item = u32>) -> Self {
        let mut measured: Vec<u32> = self.measured.iter().copied().chain(cpus).collect();
        measured.sort_unstable();
        measured.dedup();
        Self {
            thread_id: Some(thread_id),
            priority: Some(priority).filter(|&priority| priority < 100),
            measured,
            ..self.clone()
        }
    }

    /// Keeps the measured CPUs at a constant frequency.
    pub(super) fn constant_frequency(&self) -> Option<String> {
        let files = self.cpu_files("cpufreq/scaling_governor");
        self.has_governor.then(|| format!("`echo performance | sudo tee {files}`"))
    }

    /// Keeps the measured CPUs out of all idle states but the first, which takes no time to leave.
    pub(super) fn no_idle_states(&self) -> Option<String> {
        let files = self.cpu_files("cpuidle/state[1-9]/disable");
        self.has_idle_states.then(|| format!("`echo 1 | sudo tee {files}`"))
    }

    /// A file of each measured CPU; of all CPUs if there are many, or if the program is not bound to CPUs.
    fn cpu_files(&self, file: &str) -> String {
        let of = |cpu: &dyn Display| format!("/sys/devices/system/cpu/cpu{cpu}/{file}");
        match self.measured.len() {
            1..=MAX_FILES => self.measured.iter().map(|cpu| of(cpu)).collect::<Vec<_>>().join(" "),
            _ => of(&"*"),
        }
    }

    /// The other CPUs as a hexadecimal mask, 32 CPUs a word; `None` if there are none or they are unknown.
    pub(super) fn others_mask(&self) -> Option<String> {
        let others = self.others();
        let &last = others.last()?;
        let words: Vec<u32> = (0..=last / 32)
            .rev()
            .map(|word| others.iter().filter(|&&cpu| cpu / 32 == word).fold(0, |mask, cpu| mask | 1 << (cpu % 32)))
            .collect();
        let low: String = words[1..].iter().map(|word| format!(",{word:08x}")).collect();
        Some(format!("{:x}{low}", words[0]))
    }

    fn others(&self) -> Vec<u32> {
        self.online.iter().copied().filter(|cpu| !self.measured.contains(cpu)).collect()
    }

    /// Gives the measured thread this real-time priority: our probe by an option.
    pub(super) fn raise_to(&self, priority: i32) -> String {
        match self.thread_id {
            Some(tid) if self.ended.contains(&tid) => format!("fifo:{priority}"),
            Some(tid) => format!("`sudo chrt -f -p {priority} {tid}`"),
            None => match &self.bare_command {
                Some(command) => format!("`{command} measure timer --policy fifo:{priority}`"),
                None if !self.policy_command.is_empty() => {
                    let option = [(&*self.option("policy"), &*format!("fifo:{priority}"))];
                    format!("`{}`", with_options(&self.policy_command, &option))
                }
                None if self.in_campaign => format!("`policy = \"fifo:{priority}\"` in the campaign file"),
                None => format!("policy fifo:{priority} in its `--thread`"),
            },
        }
    }

    /// The command that gives the interrupt thread of the source a higher priority than a thread with `priority`, as the
    /// kernel counts. `None` unless the measured thread already has one: then that thread delayed the interrupt's.
    pub(super) fn raise_interrupt(&self, priority: i32) -> Option<String> {
        let is_local = self.policy_command.get(2).is_some_and(|probe| probe == record::INTERRUPT);
        let waits_for_source = is_local || self.is_far;
        let is_lower = (1..100).contains(&priority) && self.priority.is_some_and(|ours| ours < priority);
        (waits_for_source && is_lower).then(|| {
            let option = [(&*self.option("irq-priority"), &*(100 - priority).to_string())];
            format!("`{}`", with_options(&self.policy_command, &option))
        })
    }

    /// The option of the run's own command for the end that was measured.
    pub(super) fn option(&self, name: &str) -> String {
        if self.is_far { format!("--far-{name}") } else { format!("--{name}") }
    }

    /// Moves a thread to the other CPUs.
    pub(super) fn moved(&self, name: &str, pid: Option<u32>) -> String {
        match (self.others().as_slice(), pid.filter(|pid| !self.ended.contains(pid))) {
            (others @ [_, ..], Some(pid)) => format!("move {name}, `sudo taskset -pc {} {pid}`", list(others)),
            _ => format!("move {name} to {}", self.elsewhere()),
        }
    }
}

/// True if the run was started with this subcommand.
fn command_is(record: &Record, name: &str) -> bool {
    record.command.get(1).is_some_and(|word| word == name)
}

/// The command that starts this tool, unless the run's own command or its campaign file has the option `--hold-cpu-awake`.
fn bare_command(record: &Record) -> Option<String> {
    let words: Vec<&str> = record.command.iter().map(String::as_str).collect();
    match words.as_slice() {
        [_, "measure" | "pair" | "run", ..] => None,
        [tool, ..] => Some(record::shell::command(&[*tool])),
        [] => Some("punctual".to_owned()),
    }
}

/// The run's own command, unless it has no option `--policy`, as that of single threads.
fn policy_command(record: &Record) -> Vec<String> {
    let words: Vec<&str> = record.command.iter().map(String::as_str).collect();
    match words.as_slice() {
        [_, "measure", "threads", options @ ..] if !options.contains(&"--threads") => Vec::new(),
        [_, "measure" | "pair", ..] => record.command.clone(),
        _ => Vec::new(),
    }
}

/// True if such sections were traced; not every kernel has their events.
fn is_deep(blame: &Blame) -> bool {
    blame.mode == BlameMode::Deep && blame.events.iter().any(|event| event == "preemptirq:irq_disable")
}

fn list(cpus: &[u32]) -> String {
    cpus.iter().copied().collect::<CpuList>().to_string()
}

/// The CPUs of a list in the kernel's form; empty if it cannot be parsed.
fn cpus_of(list: &str) -> Vec<u32> {
    list.parse::<CpuList>().map(|cpus| cpus.iter().collect()).unwrap_or_default()
}

/// The lowest real-time priority of the measuring threads; of the requested policy if none is granted yet.
fn lowest_priority(record: &Record) -> Option<i32> {
    let of_probe = record.series.iter().filter(|series| series.kind.properties().by == MeasuredBy::Probe);
    let mut granted = of_probe.map(|series| &*series.granted.policy).filter(|policy| !policy.is_empty()).peekable();
    match granted.peek() {
        Some(_) => granted.filter_map(kernel_priority).max(),
        None => kernel_priority(&record.scenario.policy),
    }
}

/// Converts a policy to a priority as the kernel counts: `fifo:90` is 9.
fn kernel_priority(policy: &str) -> Option<i32> {
    let (name, number) = policy.split_once(':')?;
    match name {
        "fifo" | "rr" => Some(99_i32.saturating_sub(number.parse().ok()?)),
        "deadline" => Some(-1),
        _ => None,
    }
}
