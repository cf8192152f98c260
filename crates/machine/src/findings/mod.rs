//! Settings of the machine that may cause latency, each with the reason and a remedy. Each finding has one function.

mod board;
mod cpu;
mod evl;
mod host;
mod irq;
mod isolation;
mod kernel;
mod latency_request;
mod memory;
mod power;
mod rights;
mod sched_ext;
mod sound;
mod tasks;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unreadable;

pub(crate) use self::{
    cpu::IDLE_EXIT_LIMIT_NS,
    power::{
        ASPM_POLICY, PLATFORM_PROFILE, PLATFORM_PROFILES, aspm_is_off, aspm_is_unused, fastest_profile, pci_devices,
        profile_rank, usb_devices,
    },
};

use std::cell::{Cell, OnceCell};

use record::{Finding, FindingState, Lasts, Machine};

use crate::{
    CpuList, Root, Unreadable, boot_arguments, cpus, facts,
    interrupts::{self, DeviceInterrupt, InterruptWatch},
    journal::{self, Setter},
    kernel::{Config, Isolation},
    root::Unread,
    tasks::{self as threads, Scheduled},
    topology,
};

/// The check of one setting.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Stable identifier of its finding: `kernel.preempt`.
    pub id: &'static str,
    /// The checked property, in a few words.
    pub subject: &'static str,
    /// The document that says why it matters; `punctual` if the limit is our own.
    pub source: &'static str,
    run: fn(&CheckContext) -> Finding,
}

/// The checks of all modules. To add a finding, write its function and add it to `CHECKS` of its module.
const GROUPS: [&[Check]; 12] = [
    kernel::CHECKS,
    isolation::CHECKS,
    cpu::CHECKS,
    irq::CHECKS,
    tasks::CHECKS,
    power::CHECKS,
    memory::CHECKS,
    host::CHECKS,
    board::CHECKS,
    sound::CHECKS,
    rights::CHECKS,
    evl::CHECKS,
];

/// All checks, in the order of their findings.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    GROUPS.into_iter().flatten()
}

impl Check {
    /// The finding. A check that could not read or understand something that exists is never content.
    fn finding(&self, context: &CheckContext) -> Finding {
        let earlier = context.root.take_unread();
        let finding = (self.run)(context);
        let unread = context.root.take_unread();
        context.root.add_unread(earlier);
        let mut finding = unless_unread(finding, &unread);
        if context.lacks_cpus.take() && !finding.remedy.is_empty() {
            finding.remedy = format!("find out why /{} cannot be read or understood, and check again", cpus::ONLINE);
            finding.lasts = None;
        }
        // One check says more about it by itself.
        if let Some(setter) = context.setter_of_evidence(&finding.evidence).filter(|_| self.id != latency_request::ID) {
            finding.title += &format!(", set {}", setter.in_words(context.root));
        }
        finding
    }
}

/// The finding, or `unknown` if it is content although something that decides it could not be read or understood.
pub(crate) fn unless_unread(finding: Finding, unread: &[Unread]) -> Finding {
    let is_content = matches!(finding.state, FindingState::Ok | FindingState::NotApplicable);
    match unread.first() {
        Some(Unread { path, why }) if is_content => {
            let what = match why {
                Unreadable::Forbidden => "readable: run as root",
                Unreadable::NotUnderstood => "understood",
                Unreadable::LockedDown => "readable: the kernel is locked down",
                Unreadable::Refused => "readable: the kernel refuses it to root, too",
                Unreadable::Absent | Unreadable::Failed => "readable",
            };
            unknown(&finding.id, format!("not everything that decides this is {what}"), without(path, *why))
        }
        _ => finding,
    }
}

/// Checks everything that is known to cause latency. Returns all findings, always in this order.
///
/// A value that cannot be read is [`Unknown`](FindingState::Unknown), and a feature that the machine lacks is
/// [`NotApplicable`](FindingState::NotApplicable); neither is ever reported as [`Ok`](FindingState::Ok). No file is read
/// twice, also not one that was read before through the same [`Root::at_once`].
///
/// `limit_ns` is the largest lateness that the use of the machine tolerates, if it is known: a single cause may use a
/// tenth of it. With `watched` interrupts, they are judged by their rate in that time, too.
#[must_use]
pub fn findings(
    root: &Root,
    machine: &Machine,
    limit_ns: Option<u64>,
    watched: Option<&InterruptWatch>,
) -> Vec<Finding> {
    let root = root.kept_at_once();
    let context = CheckContext::new(&root, machine, limit_ns, watched);
    let mut findings: Vec<Finding> = checks().map(|check| check.finding(&context)).collect();
    if context.in_container() {
        // The rights of a container are set where it is started; everything else is set on the host.
        let of_host = |finding: &&mut Finding| !finding.remedy.is_empty() && !finding.id.starts_with("rights.");
        findings.iter_mut().filter(of_host).for_each(|finding| finding.remedy.insert_str(0, "on the host: "));
    }
    findings
}

/// A value that several checks use. What could not be read for it concerns each of them.
#[derive(Default)]
struct Shared<T>(OnceCell<(T, Vec<Unread>)>);

impl<T> Shared<T> {
    fn get(&self, root: &Root, read: impl FnOnce() -> T) -> &T {
        let earlier = root.take_unread();
        let (value, unread) = self.0.get_or_init(|| (read(), root.take_unread()));
        root.add_unread(earlier.into_iter().chain(unread.iter().cloned()));
        value
    }
}

/// The machine, for the checks.
struct CheckContext<'a> {
    root: &'a Root,
    machine: &'a Machine,
    online: Shared<CpuList>,
    isolated: Shared<CpuList>,
    limit_ns: Option<u64>,
    config: Shared<Option<Config>>,
    threads: Shared<Vec<Scheduled>>,
    watched: Option<&'a InterruptWatch>,
    /// `None` if they cannot be read.
    interrupts: Shared<Option<Vec<DeviceInterrupt>>>,
    /// The files that punctual has set.
    set_files: OnceCell<Vec<(String, String, Setter)>>,
    /// True if a check needed the CPUs for other work for its remedy, which are not known.
    lacks_cpus: Cell<bool>,
}

impl<'a> CheckContext<'a> {
    fn new(root: &'a Root, machine: &'a Machine, limit_ns: Option<u64>, watched: Option<&'a InterruptWatch>) -> Self {
        let (online, isolated) = Default::default();
        let (config, threads, interrupts, set_files) = Default::default();
        let lacks_cpus = Cell::default();
        Self { root, machine, online, isolated, limit_ns, config, threads, watched, interrupts, set_files, lacks_cpus }
    }

    /// The online CPUs; empty if they cannot be read.
    fn online(&self) -> &CpuList {
        let online = self.online.get(self.root, || cpus::online_cpus(self.root));
        if online.is_empty() && self.root.exists(cpus::ONLINE) {
            // No machine is without a CPU: the list is damaged.
            let path = cpus::ONLINE.to_owned();
            self.root.add_unread(vec![Unread { path, why: Unreadable::NotUnderstood }]);
        }
        online
    }

    /// The isolated CPUs; empty if they cannot be read.
    fn isolated(&self) -> &CpuList {
        self.isolated.get(self.root, || facts::isolated_cpus(self.root))
    }

    /// The online CPUs whose own settings count: the isolated ones, which are meant for real-time work, or else all.
    fn realtime_cpus(&self) -> CpuList {
        let isolated = self.isolated().intersection(self.online());
        if isolated.is_empty() { self.online().clone() } else { isolated }
    }

    /// The finding if it is not known which CPUs are isolated, so that those that count are not known either.
    fn unread_isolation(&self, id: &str) -> Option<Finding> {
        let unread = |path: &str, why| Some(unknown(id, "isolated CPUs not readable", without(path, why)));
        match (cpus::read_list(self.root, cpus::ISOLATED), facts::by_partition(self.root)) {
            (Ok(_) | Err(Unreadable::Absent), Ok(_)) => None,
            (Ok(_) | Err(Unreadable::Absent), Err(why)) => unread(facts::ISOLATED_BY_PARTITION, why),
            (Err(why), _) => unread(cpus::ISOLATED, why),
        }
    }

    /// The CPUs that count, for a title: ` on isolated CPUs 2-3`; nothing if all do.
    fn on_realtime_cpus(&self) -> String {
        let judged = self.realtime_cpus();
        if judged == *self.online() { String::new() } else { format!(" on isolated {}", judged.in_words()) }
    }

    /// The paths of a file of each CPU that counts, for a remedy.
    fn realtime_files(&self, file: &str) -> String {
        let judged = self.realtime_cpus();
        if judged == *self.online() {
            return format!("/sys/devices/system/cpu/cpu*/{file}");
        }
        judged.iter().map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/{file}")).collect::<Vec<_>>().join(" ")
    }

    /// The command or run of punctual that set a file to its present value; `None` if punctual did not.
    fn setter(&self, path: &str) -> Option<Setter> {
        let files = self.set_files.get_or_init(|| journal::set_files(&self.root.not_kept()));
        let mut own = files.iter().filter(|(of, ..)| of == path).peekable();
        // Most files are in no journal, and are not read again for this.
        own.peek()?;
        let text = self.root.read(path)?;
        own.find(|(_, during, _)| during == journal::present(&text)).map(|(_, _, setter)| *setter)
    }

    /// The command or run of punctual that set a file of the evidence to its present value.
    fn setter_of_evidence(&self, evidence: &str) -> Option<Setter> {
        // `/path = value, /path = value`.
        let paths = evidence.split(", ").filter_map(|part| part.strip_prefix('/')?.split_once(" = "));
        paths.map(|(path, _)| path).find_map(|path| self.setter(path))
    }

    /// The configuration of the kernel; `None` if it cannot be read.
    fn config(&self) -> Option<&Config> {
        let read = || Config::read(self.root, self.machine.kernel.as_deref());
        self.config.get(self.root, read).as_ref()
    }

    /// All threads; `None` if this process does not see those of the kernel, as in a container.
    fn threads(&self) -> Option<&[Scheduled]> {
        let sees_kernel = self.root.read("proc/2/comm").as_deref() == Some("kthreadd");
        sees_kernel.then(|| self.threads.get(self.root, || threads::scheduled(self.root)).as_slice())
    }

    /// The interrupts of devices; `None` if they cannot be read.
    fn interrupts(&self) -> Option<&[DeviceInterrupt]> {
        self.interrupts.get(self.root, || interrupts::devices(self.root)).as_deref()
    }

    /// The finding if the threads of the kernel cannot be seen.
    fn unseen_threads(&self, id: &str) -> Finding {
        unknown(id, "not all threads of this machine are visible", self.evidence("proc/2/comm"))
    }

    /// Time since boot, s; `None` if it cannot be read.
    fn uptime_s(&self) -> Option<f64> {
        self.root.read("proc/uptime")?.split(' ').next()?.parse().ok()
    }

    /// The online CPUs that ordinary work may use: all but the isolated ones, and all but the last one if none is.
    fn housekeeping(&self) -> CpuList {
        self.lacks_cpus.set(self.online().is_empty());
        let others = match self.isolated().is_empty() {
            true => self.online().difference(&CpuList::from_iter([self.last_cpu()])),
            false => self.online().difference(self.isolated()),
        };
        if others.is_empty() { self.online().clone() } else { others }
    }

    /// The CPUs for other work after the next boot, as `tune` prints them.
    fn housekeeping_at_boot(&self) -> CpuList {
        self.lacks_cpus.set(self.online().is_empty());
        boot_arguments::others_at_boot(self.root, self.isolated()).unwrap_or_else(|| self.online().clone())
    }

    /// The remedy with the missing arguments that isolate these CPUs, the same that `tune` prints, and with `needed`, which the
    /// command line can have without effect.
    fn isolation_remedy(&self, cpus: &CpuList, needed: &str) -> String {
        let line = self.machine.cmdline.as_deref().unwrap_or_default();
        let others = boot_arguments::others_at_boot(self.root, cpus).unwrap_or_default();
        let missing = boot_arguments::missing_isolation(self.root, line, cpus, &others);
        // The arguments that the next boot would lack. The files of the boot loader do not change the state of this check.
        let mut lost = crate::tune::arguments_to_add(&self.root.not_kept(), line, cpus, &others);
        lost.retain(|word| !missing.iter().any(|own| boot_arguments::name(own) == boot_arguments::name(word)));
        self.isolation().remedy(cpus, |argument| {
            let name = boot_arguments::name(argument);
            let is_lost = lost.iter().any(|word| boot_arguments::name(word) == name);
            name == needed || is_lost || missing.iter().any(|missing| missing == argument)
        })
    }

    /// The finding if the kernel's command line cannot be read.
    fn unread_arguments(&self, id: &str) -> Option<Finding> {
        let is_unread = self.machine.cmdline.is_none();
        is_unread.then(|| unknown(id, "arguments of the kernel not readable", self.evidence("proc/cmdline")))
    }

    /// The last value of an argument of the kernel's command line: `threadirqs`, `isolcpus=...`.
    fn boot_argument(&self, name: &str) -> Option<&str> {
        boot_arguments::value(self.machine.cmdline.as_deref()?, name)
    }

    /// `path = value`, or the reason why it cannot be read.
    fn evidence(&self, path: &str) -> String {
        match self.root.try_read(path) {
            Ok(value) => evidence(path, &value),
            Err(why) => without(path, why),
        }
    }

    /// True if this process is known to run in a container.
    fn in_container(&self) -> bool {
        self.machine.container.as_deref().is_some_and(|kind| kind != "none")
    }

    /// True if this machine is known to be a guest, whose view of the CPUs is the host's choice.
    fn is_guest(&self) -> bool {
        self.machine.hypervisor.as_deref().is_some_and(|kind| kind != "none")
    }

    /// The arguments of this kernel that isolate CPUs.
    fn isolation(&self) -> Isolation {
        Isolation::of_machine(self.root, self.machine.kernel.as_deref(), self.config())
    }

    /// The first thread of the last of the fastest online cores, for examples in remedies: the other threads go offline without
    /// SMT. CPU 0 is a bad example because the kernel uses it most.
    fn last_cpu(&self) -> u32 {
        let file = |cpu: u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq");
        let speed = |cpu: &u32| self.root.number::<u64>(&file(*cpu)).unwrap_or_default();
        let last = self.online().iter().max_by_key(speed).unwrap_or(0);
        let first = topology::core_of(self.root, last).and_then(|core| core.intersection(self.online()).first());
        first.filter(|&first| first != 0).unwrap_or(last)
    }
}

/// The files of a remedy, quoted for a shell: the names of devices come from outside.
fn files<'a>(paths: impl IntoIterator<Item = &'a str>) -> String {
    let paths: Vec<String> = paths.into_iter().map(|path| format!("/{path}")).collect();
    record::shell::command(&paths)
}

/// The word in brackets, as the kernel writes the chosen one of several: `always [madvise] never`.
pub(crate) fn chosen(text: &str) -> Option<String> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).map(str::to_owned)
}

/// `path = value` in one line.
fn evidence(path: &str, value: &str) -> String {
    // Properties of the device tree have several strings, each with a 0 at its end.
    let words = value.split(|c: char| c.is_whitespace() || c == '\0').filter(|word| !word.is_empty());
    let value = words.collect::<Vec<_>>().join(" ");
    format!("/{path} = {}", if value.is_empty() { "(empty)" } else { &value })
}

/// The path of an unreadable file, with the reason.
pub(crate) fn without(path: &str, why: Unreadable) -> String {
    let why = match why {
        Unreadable::Absent => "does not exist",
        Unreadable::Forbidden => "may not be read",
        Unreadable::LockedDown => "may not be read while the kernel is locked down",
        Unreadable::Refused => "may not be read, also not by root",
        Unreadable::Failed => "cannot be read",
        Unreadable::NotUnderstood => "has a content that is not understood",
    };
    format!("/{path} {why}")
}

/// A finding without reason and remedy.
fn without_advice(id: &str, state: FindingState, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    let (why, remedy) = (String::new(), String::new());
    Finding { id: id.to_owned(), state, title: title.into(), evidence: evidence.into(), why, remedy, lasts: None }
}

pub(crate) fn ok(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    without_advice(id, FindingState::Ok, title, evidence)
}

pub(crate) fn not_applicable(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    without_advice(id, FindingState::NotApplicable, title, evidence)
}

pub(crate) fn unknown(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    without_advice(id, FindingState::Unknown, title, evidence)
}

pub(crate) fn warn(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    without_advice(id, FindingState::Warn, title, evidence)
}

pub(crate) fn fail(id: &str, title: impl Into<String>, evidence: impl Into<String>) -> Finding {
    without_advice(id, FindingState::Fail, title, evidence)
}

/// Adds the reason and the remedy, and how long it lasts.
pub(crate) trait Explain {
    fn because(self, why: impl Into<String>, remedy: impl Into<String>) -> Self;
    fn until_exit(self) -> Self;
    fn until_boot(self) -> Self;
    fn permanent(self) -> Self;
}

impl Explain for Finding {
    fn because(mut self, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        self.why = why.into();
        self.remedy = remedy.into();
        self
    }

    fn until_exit(mut self) -> Self {
        self.lasts = Some(Lasts::UntilExit);
        self
    }

    fn until_boot(mut self) -> Self {
        self.lasts = Some(Lasts::UntilBoot);
        self
    }

    fn permanent(mut self) -> Self {
        self.lasts = Some(Lasts::Permanent);
        self
    }
}
