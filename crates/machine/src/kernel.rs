//! The kernel: its build configuration and its preemption model.

use std::io::Read;

use record::Machine;

use crate::{CpuList, Root, Unreadable, cpus, root::Unread};

/// Limit for the unpacked configuration, bytes, so that a damaged `config.gz` cannot fill the memory.
const CONFIG_BYTES_MAX: u64 = 8 << 20;

/// The kernel's build configuration.
pub(crate) struct Config {
    /// The path of the file that was read.
    pub(crate) path: String,
    text: String,
}

/// True if the kernel's build configuration is readable and does not have `CONFIG_<option>=y`.
#[must_use]
pub fn lacks_kernel_option(root: &Root, option: &str) -> bool {
    let release = root.read("proc/sys/kernel/osrelease");
    Config::read(root, release.as_deref()).is_some_and(|config| !config.has(option))
}

impl Config {
    /// Reads `proc/config.gz`, or else the file that distributions install with the kernel. One that answers makes up for
    /// another that is unreadable or damaged.
    pub(crate) fn read(root: &Root, release: Option<&str>) -> Option<Self> {
        let earlier = root.take_unread();
        let config = Self::first(root, release);
        let unread = root.take_unread();
        root.add_unread(earlier.into_iter().chain(unread.into_iter().filter(|_| config.is_none())));
        config
    }

    fn first(root: &Root, release: Option<&str>) -> Option<Self> {
        let is_config = |text: &String| text.contains("CONFIG_");
        const OWN: &str = "proc/config.gz";
        if let Ok(bytes) = root.read_bytes(OWN) {
            match unpack(&bytes).filter(is_config) {
                Some(text) => return Some(Self { path: OWN.to_owned(), text }),
                None => root.add_unread([Unread { path: OWN.to_owned(), why: Unreadable::NotUnderstood }]),
            }
        }
        let release = release?;
        let text = |path: &str| root.parsed(path, |text| Some(format!("{text}\n")).filter(is_config)).ok();
        [format!("boot/config-{release}"), format!("usr/lib/modules/{release}/config")]
            .into_iter()
            .find_map(|path| text(&path).map(|text| Self { path, text }))
    }

    /// True if the text contains `CONFIG_<option>=y`.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.text.lines().any(|line| {
            line.strip_prefix("CONFIG_").and_then(|line| line.strip_prefix(option)).is_some_and(|rest| rest == "=y")
        })
    }

    /// The value of `CONFIG_<option>`: `y`, `m`, a number or a quoted text; `None` if it is not set.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        let lines = self.text.lines();
        lines.filter_map(|line| line.strip_prefix("CONFIG_")?.strip_prefix(option)?.strip_prefix('=')).next()
    }

    /// The path, and the lines of these options.
    pub(crate) fn evidence(&self, options: &[&str]) -> String {
        let line = |option: &&str| match self.value(option) {
            Some(value) => format!("CONFIG_{option}={value}"),
            None => format!("CONFIG_{option} is not set"),
        };
        format!("/{} = {}", self.path, options.iter().map(line).collect::<Vec<_>>().join(", "))
    }

    /// FNV-1a digest of the text, 16 hexadecimal digits.
    pub(crate) fn digest(&self) -> String {
        let digest = self
            .text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{digest:016x}")
    }
}

pub(crate) fn unpack(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes).take(CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A preemption model with its evidence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Preempt {
    /// `PREEMPT_RT`, `full`, `lazy`, `voluntary`, `none`, or a description if it is not known exactly.
    pub(crate) model: String,
    /// `path = value` of the file that decides.
    pub(crate) evidence: String,
}

/// The model of a dynamic kernel whose mode cannot be read.
pub(crate) const DYNAMIC: &str = "dynamic (mode not readable)";

/// True if the kernel is PREEMPT_RT.
#[must_use]
pub fn is_realtime_kernel(root: &Root) -> bool {
    let build = root.read("proc/sys/kernel/version");
    preempt(root, build.as_deref(), None).is_some_and(|preempt| preempt.model == "PREEMPT_RT")
}

/// The preemption model in force; `None` if no file reveals it.
///
/// `build` is `uname -v`, the only sign of a mainline real-time kernel, which has no `/sys/kernel/realtime`.
/// Only debugfs shows the mode of a dynamic kernel reliably; the next best sources are its boot argument and its build
/// default.
pub(crate) fn preempt(root: &Root, build: Option<&str>, cmdline: Option<&str>) -> Option<Preempt> {
    const REALTIME: &str = "sys/kernel/realtime";
    const DEBUG: &str = "sys/kernel/debug/sched/preempt";
    let found = |model: &str, evidence: String| Some(Preempt { model: model.to_owned(), evidence });
    let words: Vec<&str> = build.unwrap_or_default().split_whitespace().collect();
    let uname = || format!("/proc/sys/kernel/version = {}", build.unwrap_or_default());

    if root.read(REALTIME).as_deref() == Some("1") {
        return found("PREEMPT_RT", format!("/{REALTIME} = 1"));
    }
    // The first real-time patches wrote two words.
    if words.contains(&"PREEMPT_RT") || words.windows(2).any(|pair| pair == ["PREEMPT", "RT"]) {
        return found("PREEMPT_RT", uname());
    }
    if let Some(modes) = root.read(DEBUG)
        && let Some(mode) = modes.split_whitespace().find_map(|mode| mode.strip_prefix('(')?.strip_suffix(')'))
    {
        return found(mode, format!("/{DEBUG} = {modes}"));
    }
    let release = root.read("proc/sys/kernel/osrelease");
    let config = Config::read(root, release.as_deref());
    let dynamic =
        words.contains(&"PREEMPT_DYNAMIC") || config.as_ref().is_some_and(|config| config.has("PREEMPT_DYNAMIC"));
    if dynamic {
        // The boot argument, which decides before the default, cannot be read.
        let Some(cmdline) = cmdline else { return found(DYNAMIC, uname()) };
        // x86 and arm64 kernels from 7.0 on have two modes less, and ignore their arguments (commit f2fa6cc736ef).
        let has_all = release.as_deref().and_then(version).is_none_or(|version| version < (7, 0));
        let has_lazy = has_lazy_mode(release.as_deref(), config.as_ref());
        let is_mode = |mode: &&str| match *mode {
            "none" | "voluntary" => has_all,
            "lazy" => has_lazy,
            mode => mode == "full",
        };
        let words = cmdline.split_whitespace();
        let mut modes = words.filter_map(|word| word.strip_prefix("preempt=")).filter(is_mode);
        // The last argument takes effect.
        if let Some(mode) = modes.next_back() {
            return found(mode, format!("/proc/cmdline = preempt={mode}"));
        }
    }
    if let Some(config) = config
        && let Some((mode, option)) = MODES.iter().find(|(_, option)| config.has(option))
    {
        let default = if dynamic { " (default of a dynamic kernel)" } else { "" };
        return found(mode, format!("/{} = CONFIG_{option}=y{default}", config.path));
    }
    match build? {
        _ if dynamic => found(DYNAMIC, uname()),
        // Since 6.13, kernels with lazy preemption are also built as PREEMPT.
        _ if words.contains(&"PREEMPT") && release.and_then(|release| version(&release)) >= Some((6, 13)) => {
            found("full or lazy", uname())
        }
        _ if words.contains(&"PREEMPT") => found("full", uname()),
        _ => found("none or voluntary", uname()),
    }
}

/// True if a dynamic kernel takes the argument `preempt=lazy`: mainline from 6.13 on, where the architecture has that mode
/// (`sched_dynamic_mode` in kernel/sched/core.c), and earlier ones with a patch. Others keep their default mode.
fn has_lazy_mode(release: Option<&str>, config: Option<&Config>) -> bool {
    match config {
        Some(config) => config.has("ARCH_HAS_PREEMPT_LAZY") || config.has("PREEMPT_LAZY"),
        None => release.and_then(version).is_some_and(|version| version >= (6, 13)),
    }
}

/// The preemption modes, each with the build option that makes it the default.
const MODES: [(&str, &str); 5] = [
    ("PREEMPT_RT", "PREEMPT_RT"),
    ("none", "PREEMPT_NONE"),
    ("voluntary", "PREEMPT_VOLUNTARY"),
    ("lazy", "PREEMPT_LAZY"),
    ("full", "PREEMPT"),
];

/// Parses major and minor version: `(6, 12)` for `6.12.25-rt9`.
#[must_use]
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// True if the kernel may limit the CPU time of real-time threads, as far as it can be read.
#[must_use]
pub fn limits_realtime_threads(root: &Root) -> bool {
    let release = root.read("proc/sys/kernel/osrelease").unwrap_or_default();
    if has_fair_server(&release) {
        const SERVERS: &str = "sys/kernel/debug/sched/fair_server";
        let runtimes =
            root.list(SERVERS).into_iter().map(|cpu| root.number::<u64>(&format!("{SERVERS}/{cpu}/runtime")));
        let runtimes: Vec<_> = runtimes.collect();
        let is_served = runtimes.is_empty() || runtimes.iter().any(|&runtime| runtime != Some(0));
        if is_served || !has_both_limits(root, &release) {
            return is_served;
        }
    }
    let runtime: Option<i64> = root.number("proc/sys/kernel/sched_rt_runtime_us");
    let period: Option<i64> = root.number("proc/sys/kernel/sched_rt_period_us");
    runtime.is_none_or(|runtime| runtime >= 0 && period.is_none_or(|period| runtime < period))
}

/// True if a kernel with a fair server also has the earlier limit, for its control groups of real-time threads.
fn has_both_limits(root: &Root, release: &str) -> bool {
    Config::read(root, Some(release)).is_some_and(|config| config.has("RT_GROUP_SCHED"))
}

/// Per cent of a CPU that the kernel keeps for ordinary threads, at least the kernel's default: the largest share of
/// all CPUs. It is that default if it cannot be read, and if it is turned off, because ordinary threads need some time
/// in any case.
#[must_use]
pub fn ordinary_percent(root: &Root) -> u64 {
    const SERVERS: &str = "sys/kernel/debug/sched/fair_server";
    let share =
        |kept: u64, period: u64| u64::try_from((u128::from(kept) * 100).div_ceil(u128::from(period.max(1)))).ok();
    let release = root.read("proc/sys/kernel/osrelease").unwrap_or_default();
    let mut shares: Vec<u64> = Vec::new();
    let is_served = has_fair_server(&release);
    if is_served {
        let of_cpu = |cpu: String| {
            let number = |file: &str| root.number::<u64>(&format!("{SERVERS}/{cpu}/{file}"));
            share(number("runtime")?, number("period")?)
        };
        shares.extend(root.list(SERVERS).into_iter().filter_map(of_cpu));
    }
    if !is_served || has_both_limits(root, &release) {
        let number = |file: &str| root.number::<u64>(&format!("proc/sys/kernel/{file}"));
        let kept = number("sched_rt_runtime_us").zip(number("sched_rt_period_us"));
        shares.extend(kept.and_then(|(runtime, period)| share(period.saturating_sub(runtime), period)));
    }
    shares.into_iter().fold(record::ORDINARY_PERCENT, u64::max).min(100)
}

/// The arguments that keep other work off CPUs, as far as a kernel has them. The default is a current kernel with all of them.
/// Sources: the kernel's `Documentation/admin-guide/kernel-parameters.txt` and `kernel/sched/isolation.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each argument")]
pub struct Isolation {
    /// `isolcpus` takes the flags `domain` and `managed_irq`: from 5.6 on. Earlier kernels ignore the whole argument.
    has_flags: bool,
    /// `isolcpus`: needs CONFIG_CPU_ISOLATION from 4.15 on.
    has_isolcpus: bool,
    /// `nohz_full`: needs CONFIG_NO_HZ_FULL.
    has_nohz_full: bool,
    /// `rcu_nocbs`: needs CONFIG_RCU_NOCB_CPU.
    has_rcu_nocbs: bool,
    /// `isolcpus` and `nohz_full` must have equal lists, whatever the flags: from 4.15 to 5.17. The kernel ignores the second
    /// one otherwise (`housekeeping_setup`, "nohz_full= must match isolcpus=").
    pub(crate) has_one_list: bool,
}

impl Default for Isolation {
    fn default() -> Self {
        Self { has_flags: true, has_isolcpus: true, has_nohz_full: true, has_rcu_nocbs: true, has_one_list: false }
    }
}

impl Isolation {
    /// The arguments of the kernel of a recorded machine, whose configuration is not known.
    #[must_use]
    pub fn of_record(machine: &Machine) -> Self {
        let release = machine.kernel.as_deref();
        // The file next to it was readable.
        let is_absent = machine.cpus_nohz_full.is_none() && machine.cpus_isolated.is_some();
        Self { has_nohz_full: !(is_absent && shows_options(release)), ..Self::of(release, None) }
    }

    /// The arguments of the kernel of this machine.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let release = root.read("proc/sys/kernel/osrelease");
        let config = Config::read(root, release.as_deref());
        Self::of_machine(root, release.as_deref(), config.as_ref())
    }

    /// The same with a release and a configuration that were read before.
    pub(crate) fn of_machine(root: &Root, release: Option<&str>, config: Option<&Config>) -> Self {
        Self {
            has_nohz_full: has_nohz_full(root, release, config).unwrap_or(true),
            has_rcu_nocbs: has_rcu_nocbs(root, release, config).unwrap_or(true),
            ..Self::of(release, config)
        }
    }

    fn of(release: Option<&str>, config: Option<&Config>) -> Self {
        let release = release.unwrap_or_default();
        let is_before = |limit: (u32, u32)| version(release).is_some_and(|version| version < limit);
        let has = |option: &str| config.is_none_or(|config| config.has(option));
        Self {
            // Red Hat's kernel 4.18 has the flags, too.
            has_flags: !is_before((5, 6)) || release.contains(".el8"),
            has_isolcpus: is_before((4, 15)) || has("CPU_ISOLATION"),
            has_nohz_full: has("NO_HZ_FULL"),
            has_rcu_nocbs: has("RCU_NOCB_CPU"),
            has_one_list: is_before((5, 18)) && !is_before((4, 15)),
        }
    }

    /// The arguments for these CPUs; empty if the kernel has none of them. CPU 0 keeps its tick in any case, because the
    /// kernel keeps the time on the CPU that it boots on, and leaves it out of `nohz_full`.
    #[must_use]
    pub fn arguments(self, cpus: &CpuList) -> String {
        let flags = if self.has_flags { "managed_irq,domain," } else { "" };
        let without_tick = cpus.difference(&CpuList::from_iter([0]));
        let list = if self.has_one_list { cpus } else { &without_tick };
        let arguments = [
            self.has_isolcpus.then(|| format!("isolcpus={flags}{cpus}")),
            (self.has_nohz_full && !without_tick.is_empty()).then(|| format!("nohz_full={list}")),
            self.has_rcu_nocbs.then(|| format!("rcu_nocbs={cpus}")),
        ];
        arguments.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// The arguments that the kernel does not have, each with the option that it was built without.
    #[must_use]
    pub fn lacking(self) -> Vec<&'static str> {
        let all = [
            (self.has_isolcpus, "isolcpus (CONFIG_CPU_ISOLATION)"),
            (self.has_nohz_full, "nohz_full (CONFIG_NO_HZ_FULL)"),
            (self.has_rcu_nocbs, "rcu_nocbs (CONFIG_RCU_NOCB_CPU)"),
        ];
        all.into_iter().filter(|(has, _)| !has).map(|(_, name)| name).collect()
    }

    /// The chosen ones of the arguments for these CPUs as a remedy: ``kernel arguments: `isolcpus=...` ``.
    pub(crate) fn remedy(self, cpus: &CpuList, is_chosen: impl Fn(&str) -> bool) -> String {
        // The others alone isolate no CPU.
        if !self.has_isolcpus {
            return "use a kernel built with CONFIG_CPU_ISOLATION=y: this one cannot isolate CPUs at boot".to_owned();
        }
        let arguments = self.arguments(cpus);
        let chosen: Vec<&str> = arguments.split(' ').filter(|argument| is_chosen(argument)).collect();
        format!("kernel arguments: `{}`", chosen.join(" "))
    }
}

/// True if the kernel was built with CONFIG_NO_HZ_FULL, by its configuration or its file in sysfs, which such kernels have
/// since 4.2 (`drivers/base/cpu.c`); `None` if neither says it.
pub(crate) fn has_nohz_full(root: &Root, release: Option<&str>, config: Option<&Config>) -> Option<bool> {
    if let Some(config) = config {
        return Some(config.has("NO_HZ_FULL"));
    }
    match root.try_read(cpus::TICKLESS) {
        Ok(_) => Some(true),
        Err(Unreadable::Absent) if shows_options(release) && root.exists(cpus::ONLINE) => Some(false),
        Err(_) => None,
    }
}

/// True if the kernel was built with CONFIG_RCU_NOCB_CPU, which CONFIG_NO_HZ_FULL selects, and which adds a parameter
/// (`kernel/rcu/tree_nocb.h`; its name before Linux 5.4 is the second one). `None` if nothing says it.
pub(crate) fn has_rcu_nocbs(root: &Root, release: Option<&str>, config: Option<&Config>) -> Option<bool> {
    const PARAMETERS: &str = "sys/module/rcutree/parameters";
    if let Some(config) = config {
        return Some(config.has("RCU_NOCB_CPU"));
    }
    if has_nohz_full(root, release, None) == Some(true) {
        return Some(true);
    }
    let parameters = root.list(PARAMETERS);
    match ["rcu_nocb_gp_stride", "rcu_nocb_leader_stride"].iter().any(|name| parameters.iter().any(|own| own == name)) {
        true => Some(true),
        false => (!parameters.is_empty() && shows_options(release)).then_some(false),
    }
}

/// True for releases whose options can be seen in sysfs.
pub(crate) fn shows_options(release: Option<&str>) -> bool {
    release.and_then(version) >= Some((4, 2))
}

/// The folder of the kernel's debugfs.
pub(crate) const DEBUGFS: &str = "sys/kernel/debug";
/// The command that mounts it.
pub(crate) const MOUNT_DEBUGFS: &str = "sudo mount -t debugfs none /sys/kernel/debug";

/// True if debugfs is not mounted: its folder is empty.
pub(crate) fn lacks_debugfs(root: &Root) -> bool {
    // An unreadable folder seems empty, too.
    let earlier = root.take_unread();
    let is_empty = root.is_folder(DEBUGFS) && root.list(DEBUGFS).is_empty();
    let is_read = root.take_unread().is_empty();
    root.add_unread(earlier);
    is_empty && is_read
}

/// The command that turns off the fair servers of all CPUs, and those for threads of a loaded scheduler (`ext_server`). Their
/// files are in debugfs, which is not always mounted.
pub const FAIR_SERVERS_OFF: &str = "sudo sh -c 'mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug; \
                                    for file in /sys/kernel/debug/sched/*_server/cpu*/runtime; do echo 0 > $file; done'";

/// True if a kernel of this release limits real-time threads by a fair server instead of by `sched_rt_runtime_us`.
#[must_use]
pub fn has_fair_server(release: &str) -> bool {
    version(release) >= Some((6, 12))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn real_time_threads_are_limited_unless_the_limit_is_known_to_be_off() {
        let limits = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            let root = Root::at(folder.path());
            for (path, text) in files {
                fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
                fs::write(root.path(path), text).unwrap();
            }
            limits_realtime_threads(&root)
        };
        let (release, runtime) = ("proc/sys/kernel/osrelease", "proc/sys/kernel/sched_rt_runtime_us");
        let server = |cpu| format!("sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
        assert!(limits(&[]) && limits(&[(release, "6.1.0\n"), (runtime, "950000\n")]));
        assert!(!limits(&[(release, "6.1.0\n"), (runtime, "-1\n")]));
        assert!(limits(&[(release, "6.12.0\n"), (runtime, "-1\n")]), "the old limit has no effect");
        assert!(limits(&[(release, "6.12.0\n"), (&server(0), "0\n"), (&server(1), "50000000\n")]));
        assert!(!limits(&[(release, "6.12.0\n"), (&server(0), "0\n"), (&server(1), "0\n")]));
        let both = |runtime_us| {
            let config = ("boot/config-6.12.0", "CONFIG_RT_GROUP_SCHED=y\n");
            limits(&[(release, "6.12.0\n"), (&server(0), "0\n"), config, (runtime, runtime_us)])
        };
        assert!(both("950000\n") && !both("-1\n"), "such a kernel has the old limit, too");
    }

    #[test]
    fn a_record_of_a_kernel_without_nohz_full_advises_it_not() {
        let machine = |kernel: &str, nohz_full: Option<&str>| Machine {
            kernel: Some(kernel.to_owned()),
            cpus_isolated: Some(String::new()),
            cpus_nohz_full: nohz_full.map(str::to_owned),
            ..Machine::default()
        };
        let arguments = |machine: &Machine| Isolation::of_record(machine).arguments(&"3".parse().unwrap());
        let whole = "isolcpus=managed_irq,domain,3 nohz_full=3 rcu_nocbs=3";
        assert_eq!(arguments(&machine("6.12.0", Some(""))), whole);
        assert_eq!(arguments(&machine("6.12.0", None)), whole.replace(" nohz_full=3", ""));
        assert_eq!(arguments(&machine("4.1.0", None)), "isolcpus=3 nohz_full=3 rcu_nocbs=3");
        assert_eq!(arguments(&Machine { cpus_isolated: None, ..machine("6.12.0", None) }), whole);
        assert_eq!(arguments(&Machine::default()), whole);
    }

    #[test]
    fn the_largest_share_of_ordinary_threads_counts() {
        let percent = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            let root = Root::at(folder.path());
            for (path, text) in files {
                fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
                fs::write(root.path(path), text).unwrap();
            }
            ordinary_percent(&root)
        };
        let release = "proc/sys/kernel/osrelease";
        let [runtime, period] =
            ["sched_rt_runtime_us", "sched_rt_period_us"].map(|file| format!("proc/sys/kernel/{file}"));
        let old = |kept| percent(&[(release, "6.1.0\n"), (&runtime, kept), (&period, "1000000\n")]);
        assert_eq!([old("950000\n"), old("800000\n"), old("-1\n"), old("1000000\n")], [5, 20, 5, 5]);
        let server = |cpu, file| format!("sys/kernel/debug/sched/fair_server/cpu{cpu}/{file}");
        let new = |given| {
            let (first, second) = (server(0, "runtime"), server(1, "runtime"));
            let (of_first, of_second) = (server(0, "period"), server(1, "period"));
            let periods = [(&*of_first, "1000000000\n"), (&*of_second, "1000000000\n")];
            percent(
                &[&[(release, "6.12.0\n"), (&runtime, "-1\n"), (&first, "0\n"), (&second, given)], &periods[..]]
                    .concat(),
            )
        };
        assert_eq!([new("50000000\n"), new("125000000\n"), new("0\n"), percent(&[])], [5, 13, 5, 5]);
        let both = [
            (release, "6.12.0\n"),
            ("boot/config-6.12.0", "CONFIG_RT_GROUP_SCHED=y\n"),
            (&runtime, "800000\n"),
            (&period, "1000000\n"),
        ];
        assert_eq!(percent(&both), 20);
    }

    const DYNAMIC_BUILD: &str = "#1 SMP PREEMPT_DYNAMIC Debian";

    fn model(files: &[(&str, &str)], build: &str, cmdline: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for (path, text) in files {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            if path.ends_with(".gz") {
                let file = fs::File::create(root.path(path)).unwrap();
                let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                packed.write_all(text.as_bytes()).unwrap();
            } else {
                fs::write(root.path(path), text).unwrap();
            }
        }
        let with = |cmdline| preempt(&root, Some(build), cmdline).unwrap().model;
        let (known, unread) = (with(Some(cmdline)), with(None));
        assert!(unread == known || unread == DYNAMIC, "{unread} without the boot arguments, {known} with them");
        known
    }

    #[test]
    fn an_option_is_missing_only_in_a_readable_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        assert!(!lacks_kernel_option(&root, "GPIOLIB_OOB"));
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "5.10.0\n"),
            ("boot/config-5.10.0", "CONFIG_GPIOLIB=y\n# CONFIG_GPIOLIB_OOB is not set\n"),
        ] {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        }
        assert!(lacks_kernel_option(&root, "GPIOLIB_OOB") && !lacks_kernel_option(&root, "GPIOLIB"));
    }

    #[test]
    fn detects_real_time_kernels() {
        assert_eq!(model(&[("sys/kernel/realtime", "1\n")], "#1 SMP PREEMPT", ""), "PREEMPT_RT");
        assert_eq!(model(&[], "#1 SMP PREEMPT_RT Debian 6.12.117-1", ""), "PREEMPT_RT");
        assert_eq!(model(&[], "#1 SMP PREEMPT RT Sat Apr 7", ""), "PREEMPT_RT");
        let lazy = ("sys/kernel/debug/sched/preempt", "full (lazy)");
        assert_eq!(model(&[lazy], "#1 SMP PREEMPT_RT", ""), "PREEMPT_RT");
    }

    #[test]
    fn reads_a_dynamic_kernel_from_the_best_source() {
        let debug = ("sys/kernel/debug/sched/preempt", "none (voluntary) full lazy\n");
        let config = ("proc/config.gz", "CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n");
        assert_eq!(model(&[debug, config], DYNAMIC_BUILD, "preempt=full"), "voluntary");
        assert_eq!(model(&[config], DYNAMIC_BUILD, "quiet preempt=lazy preempt=full"), "full");
        assert_eq!(model(&[config], DYNAMIC_BUILD, "preempt=nonsense"), "none");
        assert_eq!(model(&[config], DYNAMIC_BUILD, "preempt=lazy"), "none", "built without that mode");
        let lazy =
            ("proc/config.gz", "CONFIG_PREEMPT_NONE=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\nCONFIG_PREEMPT_DYNAMIC=y\n");
        assert_eq!(model(&[lazy], DYNAMIC_BUILD, "preempt=lazy"), "lazy");
        assert_eq!(model(&[], DYNAMIC_BUILD, "quiet"), DYNAMIC);
        for (release, argument, expected) in [
            ("6.19.3", "preempt=none", "none"),
            ("7.0.0", "preempt=none", DYNAMIC),
            ("6.12.0", "preempt=full preempt=lazy", "full"),
            ("6.13.0", "preempt=full preempt=lazy", "lazy"),
            ("7.1.2", "preempt=lazy preempt=voluntary", "lazy"),
            ("7.1.2", "preempt=full", "full"),
        ] {
            let release = ("proc/sys/kernel/osrelease", release);
            assert_eq!(model(&[release], DYNAMIC_BUILD, argument), expected, "{argument}");
        }
        assert_eq!(model(&[("proc/config.gz", "")], DYNAMIC_BUILD, ""), DYNAMIC);
    }

    #[test]
    fn detects_static_kernels() {
        let release = |text| ("proc/sys/kernel/osrelease", text);
        let boot = ("boot/config-6.1.0-9", "# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_VOLUNTARY=y\n");
        assert_eq!(model(&[release("6.1.0-9"), boot], "#1 SMP Debian", ""), "voluntary");
        assert_eq!(model(&[release("6.1.0-9"), boot], "#1 SMP Debian", "preempt=full"), "voluntary", "not dynamic");
        assert_eq!(model(&[release("6.1.0-9")], "#1 SMP PREEMPT Debian", ""), "full");
        assert_eq!(model(&[release("6.13.0")], "#1 SMP PREEMPT Debian", ""), "full or lazy");
        assert_eq!(model(&[release("5.15.0")], "#1.0.7 SMP IRQPIPE", ""), "none or voluntary");
    }

    #[test]
    fn digest_is_fnv_1a_of_the_text() {
        let config = |text: &str| Config { path: String::new(), text: text.to_owned() };
        assert_eq!(config("").digest(), "cbf29ce484222325");
        assert_eq!(config("foobar").digest(), "85944171f73967e8", "test vector of the FNV authors");
        assert!(unpack(b"not packed").is_none());
    }

    #[test]
    fn parses_versions() {
        assert_eq!(version("6.12.25-rt9"), Some((6, 12)));
        assert_eq!(version("7.0-rc1"), Some((7, 0)));
        assert_eq!(version("unknown"), None);
    }
}
