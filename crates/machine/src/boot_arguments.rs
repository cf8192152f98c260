//! Arguments of the kernel: those of its command line, and lines of boot loaders. Used by the checks and by `tune`, so that
//! both read an argument alike.

use crate::{
    CpuList, Root,
    cpulist::MAX_CPU,
    cpus, interrupts,
    kernel::{Config, Isolation, has_nohz_full, version},
};

/// Arguments that a command line may have several times.
const REPEATABLE: [&str; 6] = ["console", "earlycon", "hugepages", "hugepagesz", "initrd", "memmap"];
/// The flags before the CPUs of `isolcpus`.
const FLAGS: [&str; 3] = ["nohz", "domain", "managed_irq"];

/// The words of a line. Blanks in double quotes do not separate words.
pub(crate) fn words(line: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let ends_word = move |c: char| {
        is_quoted ^= c == '"';
        c.is_whitespace() && !is_quoted
    };
    line.split(ends_word).filter(|word| !word.is_empty()).collect()
}

/// The name of an argument.
pub(crate) fn name(argument: &str) -> &str {
    argument.split_once('=').map_or(argument, |(name, _)| name)
}

/// True for two names of one argument: the kernel treats `-` and `_` alike.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let plain = |c: char| if c == '-' { '_' } else { c };
    one.chars().map(plain).eq(other.chars().map(plain))
}

/// True if a line may have several arguments of this name.
pub(crate) fn is_repeatable(name: &str) -> bool {
    REPEATABLE.iter().any(|known| is_same(known, name))
}

/// The last value of an argument on the kernel's command line, empty for one without a value.
pub(crate) fn value<'a>(cmdline: &'a str, wanted: &str) -> Option<&'a str> {
    let last = parts(cmdline).0.into_iter().rfind(|word| is_same(name(word), wanted))?;
    Some(last.split_once('=').map_or("", |(_, value)| value).trim_matches('"'))
}

/// The arguments of a line, and the words for init after `--`, with it.
fn parts(line: &str) -> (Vec<&str>, Vec<&str>) {
    let mut own = words(line);
    let end = own.iter().position(|word| *word == "--").unwrap_or(own.len());
    let of_init = own.split_off(end);
    (own, of_init)
}

/// The line with these arguments: each replaces those of the same name, except for repeatable ones. The others remain as
/// they are, in their order.
pub(crate) fn with(line: &str, added: &[&str]) -> String {
    let (mut own, of_init) = parts(line);
    own.retain(|word| !added.contains(word) && !is_replaced(word, added));
    [&own, added, &of_init].concat().join(" ")
}

/// The line without the arguments that [`with`] replaces.
pub(crate) fn without(line: &str, added: &[&str]) -> String {
    let (mut own, of_init) = parts(line);
    own.retain(|word| !is_replaced(word, added));
    [own, of_init].concat().join(" ")
}

/// The arguments of the line that [`with`] replaces.
pub(crate) fn replaced<'a>(line: &'a str, added: &[&str]) -> Vec<&'a str> {
    parts(line).0.into_iter().filter(|word| is_replaced(word, added)).collect()
}

/// What `punctual snapshot` writes for a word, or a value, that it removes.
pub(crate) const REMOVED: &str = "removed";

/// True if a snapshot has removed words of the line, so that it is not the line of the machine.
pub(crate) fn is_incomplete(line: &str) -> bool {
    let value = |word: &str| word.split_once('=').map_or(word, |(_, value)| value).to_owned();
    words(line).iter().any(|word| value(word).rsplit('\\').next() == Some(REMOVED))
}

fn is_replaced(word: &str, added: &[&str]) -> bool {
    !is_repeatable(name(word)) && added.iter().any(|new| is_same(name(new), name(word)))
}

/// The CPUs of a list in an argument, read like the kernel: commas and blanks separate regions, also several of them, `N` is
/// the last CPU, `all` means all, and `0-7:2/4` the first two of every four (`bitmap_parselist` in lib/bitmap-str.c). `None`
/// if the kernel cannot read it, or if it names no CPU.
pub(crate) fn cpus_of(root: &Root, value: &str) -> Option<CpuList> {
    let last = || cpus::possible_cpus(root).last().or(cpus::online_cpus(root).last());
    let number = |text: &str| match text {
        "N" => last(),
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    let mut cpus = CpuList::new();
    for region in value.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|region| !region.is_empty()) {
        let (range, pattern) = region.split_once(':').map_or((region, None), |(range, rest)| (range, Some(rest)));
        let (low, high) = match range.split_once('-') {
            _ if range.eq_ignore_ascii_case("all") => (0, last()?),
            Some((low, high)) => (number(low)?, number(high)?),
            None if pattern.is_none() => (number(range)?, number(range)?),
            None => return None,
        };
        let (used, group) = match pattern {
            Some(pattern) => pattern.split_once('/').and_then(|(used, group)| Some((number(used)?, number(group)?)))?,
            None => (1, 1),
        };
        if low > high || high > MAX_CPU || group == 0 || used > group {
            return None;
        }
        cpus = cpus.union(&(low..=high).filter(|cpu| (cpu - low) % group < used).collect());
    }
    (!cpus.is_empty()).then_some(cpus)
}

/// The words before the list of `isolcpus`, each of which ends with a comma, and the list (`housekeeping_isolcpus_setup` in
/// kernel/sched/isolation.c).
fn flags_and_list(value: &str) -> (Vec<&str>, &str) {
    let is_flag = |word: &str| {
        let begins_as_flag = word.starts_with(|c: char| c.is_ascii_alphabetic());
        begins_as_flag && word.chars().all(|c| c.is_ascii_alphabetic() || c == '_') && !matches!(word, "all" | "N")
    };
    let (mut flags, mut list) = (Vec::new(), value);
    while let Some((flag, rest)) = list.split_once(',').filter(|(word, _)| is_flag(word)) {
        flags.push(flag);
        list = rest;
    }
    (flags, list)
}

/// True if an `isolcpus` has a flag.
pub(crate) fn has_flag(value: &str, flag: &str) -> bool {
    flags_and_list(value).0.contains(&flag)
}

/// The flags of an `isolcpus` that the kernel does not know. It skips them since 5.8, and ignores the whole argument before.
pub(crate) fn unknown_flags(value: &str) -> Vec<&str> {
    let (mut flags, _) = flags_and_list(value);
    flags.retain(|flag| !FLAGS.contains(flag));
    flags
}

/// The CPUs of `isolcpus`, without its flags; `None` if the kernel cannot read it.
pub(crate) fn isolated_cpus_of(root: &Root, value: &str) -> Option<CpuList> {
    const SKIPS: (u32, u32) = (5, 8);
    let skips = || root.parsed("proc/sys/kernel/osrelease", version).is_ok_and(|release| release >= SKIPS);
    let is_ignored = !unknown_flags(value).is_empty() && !skips();
    if is_ignored { None } else { cpus_of(root, flags_and_list(value).1) }
}

/// The value of `isolcpus`, if it isolates CPUs from the scheduler: `nohz,2-3` and `managed_irq,2-3` do not.
pub(crate) fn isolcpus(cmdline: &str) -> Option<&str> {
    let isolates = |value: &&str| {
        let is_known = |flag: &&str| FLAGS.contains(flag);
        has_flag(value, "domain") || !flags_and_list(value).0.iter().any(is_known)
    };
    value(cmdline, "isolcpus").filter(isolates)
}

/// True if the line has the flag that keeps the interrupts of queues, which their drivers manage, off isolated CPUs.
pub(crate) fn keeps_queues_away(line: &str) -> bool {
    value(line, "isolcpus").is_some_and(|value| has_flag(value, "managed_irq"))
}

/// The CPUs without a tick that a line asks for: those of `nohz_full`, and of `isolcpus` with the flag `nohz`. A kernel built
/// without CONFIG_NO_HZ_FULL ignores both.
fn tickless(root: &Root, cmdline: &str) -> CpuList {
    let by_flag = value(cmdline, "isolcpus").filter(|value| has_flag(value, "nohz"));
    let own = value(cmdline, "nohz_full").and_then(|value| cpus_of(root, value)).unwrap_or_default();
    own.union(&by_flag.and_then(|value| isolated_cpus_of(root, value)).unwrap_or_default())
}

/// The CPUs whose callbacks of RCU run in threads from the boot on: those of `rcu_nocbs=`, and those without a tick.
/// `rcu_nocbs` without a value means none. Without all of these, all CPUs if the kernel was built so. Source:
/// `rcu_nocb_setup` and `rcu_init_nohz` in kernel/rcu/tree_nocb.h.
pub(crate) fn rcu_offloaded(root: &Root, cmdline: &str, config: Option<&Config>, tickless: &CpuList) -> CpuList {
    let rcu_nocbs = value(cmdline, "rcu_nocbs");
    if rcu_nocbs.is_none() && tickless.is_empty() {
        let is_default = config.is_some_and(|config| config.has("RCU_NOCB_CPU_DEFAULT_ALL"));
        let all = || cpus::possible_cpus(root).union(&cpus::online_cpus(root));
        return if is_default { all() } else { CpuList::new() };
    }
    rcu_nocbs.and_then(|value| cpus_of(root, value)).unwrap_or_default().union(tickless)
}

/// The CPUs that are online after the next boot: it also brings offline CPUs online, unless an argument keeps some offline.
pub(crate) fn online_at_boot(root: &Root) -> CpuList {
    let cmdline = root.read("proc/cmdline").unwrap_or_default();
    let has = |name: &str| value(&cmdline, name).is_some();
    let has_no_smt = has("nosmt") || value(&cmdline, "mitigations").is_some_and(|modes| modes.contains("nosmt"));
    match has_no_smt || has("maxcpus") || has("nosmp") {
        true => cpus::online_cpus(root),
        false => cpus::present_cpus(root),
    }
}

/// The CPUs for other work after the next boot. `None` without CPUs for real-time work,
/// or if no other CPU is online now.
pub(crate) fn others_at_boot(root: &Root, cpus: &CpuList) -> Option<CpuList> {
    let is_possible = !cpus.is_empty() && !cpus::online_cpus(root).difference(cpus).is_empty();
    is_possible.then(|| online_at_boot(root).difference(cpus))
}

/// The arguments that keep other work off these CPUs, except those whose effect a line of arguments has already, also in other
/// words.
pub(crate) fn missing_isolation(root: &Root, line: &str, wanted: &CpuList, others: &CpuList) -> Vec<String> {
    let release = root.read("proc/sys/kernel/osrelease");
    let config = Config::read(root, release.as_deref());
    let isolation = Isolation::of_machine(root, release.as_deref(), config.as_ref());
    let tickless = match has_nohz_full(root, release.as_deref(), config.as_ref()) {
        Some(false) => CpuList::new(),
        _ => tickless(root, line),
    };
    let of = |name: &str| value(line, name).and_then(|value| cpus_of(root, value)).unwrap_or_default();
    let contains = |cpus: CpuList| wanted.difference(&cpus).is_empty();
    let irqs = of("irqaffinity");
    // Without the flag, the queues of disks that serve other CPUs, too, may interrupt these.
    let has_queues = || keeps_queues_away(&isolation.arguments(wanted)) && interrupts::has_shared_queue(root, wanted);
    let isolated = isolcpus(line).and_then(|value| isolated_cpus_of(root, value)).unwrap_or_default();
    let keeps_isolcpus = contains(isolated.clone()) && (keeps_queues_away(line) || !has_queues());
    // With one list in the kernel, that of `isolcpus` counts for `nohz_full`, too, even if it has more CPUs than wanted.
    let listed = if isolation.has_one_list && keeps_isolcpus { isolated } else { wanted.clone() };
    let is_met = |argument: &str| match name(argument) {
        "isolcpus" => keeps_isolcpus,
        "rcu_nocbs" => contains(rcu_offloaded(root, line, config.as_ref(), &tickless)),
        "irqaffinity" => !irqs.is_empty() && irqs.intersection(wanted).is_empty(),
        "nohz_full" if isolation.has_one_list => of("nohz_full") == listed,
        "nohz_full" => wanted.difference(&of("nohz_full")).difference(&CpuList::from_iter([0])).is_empty(),
        _ => false,
    };
    let all = format!("{} irqaffinity={others}", isolation.arguments(wanted));
    let missing = all.split_whitespace().filter(|argument| !is_met(argument));
    let with_list = |argument: &str| match name(argument) {
        "nohz_full" if isolation.has_one_list => format!("nohz_full={listed}"),
        _ => argument.to_owned(),
    };
    missing.map(with_list).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_replace_those_of_the_same_name() {
        let line = "root=/dev/sda isolcpus=1 console=tty0 dyndbg=\"file x +p\" nohz-full=1 console=ttyS0 isolcpus=0 -- nohz_full=7";
        let added = ["isolcpus=domain,2-3", "nohz_full=2-3", "console=ttyS1"];
        assert_eq!(
            with(line, &added),
            "root=/dev/sda console=tty0 dyndbg=\"file x +p\" console=ttyS0 isolcpus=domain,2-3 nohz_full=2-3 \
             console=ttyS1 -- nohz_full=7"
        );
        assert_eq!(with(&with(line, &added), &added), with(line, &added), "each once, also the second time");
        assert_eq!(replaced(line, &added), ["isolcpus=1", "nohz-full=1", "isolcpus=0"]);
        assert_eq!(replaced("quiet console=tty0 -- isolcpus=1", &added), [] as [&str; 0]);
        assert_eq!(without("isolcpus=1 a console=tty0 -- isolcpus=1", &added), "a console=tty0 -- isolcpus=1");
        assert_eq!(value(line, "nohz_full"), Some("1"));
        assert_eq!(value("a=\"b c\" quiet", "a"), Some("b c"));
        assert_eq!((value("quiet", "quiet"), value("quiet", "splash")), (Some(""), None));
    }

    /// The cases were tried in a cpuset, whose file has the same parser.
    #[test]
    fn lists_are_read_like_the_kernel_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        std::fs::create_dir_all(root.path("sys/devices/system/cpu")).unwrap();
        std::fs::write(root.path("sys/devices/system/cpu/possible"), "0-7").unwrap();
        std::fs::write(root.path("sys/devices/system/cpu/online"), "0-7").unwrap();
        let of = |value: &str| cpus_of(&root, value).map(|cpus| cpus.to_string());
        for (value, cpus) in [
            ("3,", "3"),
            (",3", "3"),
            ("0-1,,3", "0-1,3"),
            ("1 2, 3", "1-3"),
            ("6-N", "6-7"),
            ("N", "7"),
            ("all", "0-7"),
            ("ALL:1/4", "0,4"),
            ("0-7:2/4", "0-1,4-5"),
            ("0-1:0/2,5", "5"),
        ] {
            assert_eq!(of(value).as_deref(), Some(cpus), "{value}");
        }
        for value in
            ["", ",", "2-", "-2", "+2", "3-1", "0-7:2", "0-7:3/2", "0-7:1/0", "2:1/1", "0x3", "a", "domain,3", "9999"]
        {
            assert_eq!(of(value), None, "{value}");
        }
        let isolated = |value: &str| isolated_cpus_of(&root, value).map(|cpus| cpus.to_string());
        assert_eq!(isolated("managed_irq,domain,,2-3,").as_deref(), Some("2-3"));
        assert_eq!([isolated("domain"), isolated(",domain,3"), isolated("3,domain")], [None, None, None]);
        assert_eq!(isolcpus("isolcpus=domain,3,"), Some("domain,3,"));
        assert_eq!(isolcpus("isolcpus=nohz,3"), None);
    }

    #[test]
    fn an_argument_in_force_may_be_written_in_other_words() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let put = |path: &str, text: &str| {
            std::fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            std::fs::write(root.path(path), text).unwrap();
        };
        put("sys/devices/system/cpu/online", "0-3");
        put("sys/devices/system/cpu/nohz_full", "(null)");
        put("proc/sys/kernel/osrelease", "6.12.0");
        let missing = |cmdline: &str| {
            missing_isolation(&root, cmdline, &"2-3".parse().unwrap(), &"0-1".parse().unwrap()).join(" ")
        };
        let all = "isolcpus=managed_irq,domain,2-3 nohz_full=2-3 rcu_nocbs=2-3 irqaffinity=0-1";
        assert_eq!(missing("quiet -- isolcpus=2-3"), all);
        assert_eq!(missing("isolcpus=2,3 nohz_full=1-N irqaffinity=0"), "");
        assert_eq!(missing("isolcpus=domain,managed_irq,2-3 nohz-full=2-3 irqaffinity=0-1"), "");
        assert_eq!(missing("isolcpus=nohz,2-3 rcu_nocbs=0 irqaffinity=0-2"), all.replace("rcu_nocbs=2-3 ", ""));
        assert_eq!(missing("nohz_full=3 rcu_nocbs irqaffinity=0-2"), all, "rcu_nocbs alone offloads no CPU");
        put(
            "boot/config-6.12.0",
            "CONFIG_CPU_ISOLATION=y\nCONFIG_NO_HZ_FULL=y\nCONFIG_RCU_NOCB_CPU=y\nCONFIG_RCU_NOCB_CPU_DEFAULT_ALL=y\n",
        );
        assert_eq!(missing("quiet"), all.replace("rcu_nocbs=2-3 ", ""));
        assert_eq!(missing("rcu_nocbs=1"), all, "the argument replaces the default");
    }
}
