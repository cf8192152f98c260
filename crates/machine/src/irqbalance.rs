//! The daemon irqbalance, which moves interrupts between CPUs.

use crate::{CpuList, Root, boot_arguments, cpus, facts, init::Init, tasks};

/// The name of its service.
pub(crate) const SERVICE: &str = "irqbalance";
/// Files with its environment: of Fedora and its relatives, of services of OpenRC, of Debian and its relatives.
const FILES: [&str; 3] = ["etc/sysconfig/irqbalance", "etc/conf.d/irqbalance", "etc/default/irqbalance"];
/// Files of systemd that can set its environment, too; the files above replace it (`Environment=` in systemd.exec(5)).
const DROP_INS: &str = "etc/systemd/system/irqbalance.service.d";
/// The variables of the CPUs that it leaves alone, as a list or as a mask. The list has precedence. Source: irqbalance(1),
/// `setup_banned_cpus` in its cputree.c.
const BANNED_LIST: &str = "IRQBALANCE_BANNED_CPULIST";
const BANNED_MASK: &str = "IRQBALANCE_BANNED_CPUS";

/// The process id of a running irqbalance.
pub(crate) fn process(root: &Root) -> Option<String> {
    root.list("proc").into_iter().find(|pid| {
        pid.bytes().all(|byte| byte.is_ascii_digit()) && tasks::name(root, pid).as_deref() == Ok("irqbalance")
    })
}

/// The file with the environment of irqbalance on this distribution.
pub(crate) fn file(root: &Root) -> &'static str {
    FILES.into_iter().find(|path| root.exists(path)).unwrap_or(match Init::of(root) {
        Init::OpenRc => FILES[1],
        Init::Systemd | Init::Runit | Init::Scripts => FILES[2],
    })
}

pub(crate) fn is_file(path: &str) -> bool {
    FILES.contains(&path) || path.starts_with(DROP_INS)
}

/// True for a line of such a file that [`banned`] reads.
pub(crate) fn is_known(line: &str) -> bool {
    [BANNED_LIST, BANNED_MASK].iter().any(|name| assigned(line, name).is_some())
}

/// The line that makes irqbalance leave these CPUs alone.
pub(crate) fn line(cpus: &CpuList) -> String {
    format!("{BANNED_LIST}={cpus}")
}

/// The CPUs that irqbalance leaves alone: those of its file, or else the isolated CPUs and those without a tick. `None` if
/// the value in the file is not understood.
pub(crate) fn banned(root: &Root) -> Option<CpuList> {
    let drop_ins = root.list(DROP_INS).into_iter().filter(|name| name.ends_with(".conf"));
    let drop_ins = drop_ins.filter_map(|name| root.read(&format!("{DROP_INS}/{name}")));
    let text: Vec<String> = drop_ins.chain(root.read(file(root))).collect();
    let value =
        |name: &str| text.iter().flat_map(|text| text.lines()).filter_map(|line| assigned(line, name)).next_back();
    let is_set = |value: &&str| !value.is_empty();
    match (value(BANNED_LIST).filter(is_set), value(BANNED_MASK).filter(is_set)) {
        (Some(list), _) => list.parse().ok(),
        (None, Some(mask)) => CpuList::from_mask(mask),
        (None, None) => Some(facts::isolated_cpus(root).union(&cpus::tickless(root).unwrap_or_default())),
    }
}

/// The value of a variable that a line assigns, without quotes: `NAME=value`, `export NAME=value` of a shell, or
/// `Environment=NAME=value OTHER=value` of systemd.
fn assigned<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    const QUOTES: [char; 2] = ['"', '\''];
    let line = line.trim();
    let of = |text: &'a str| Some(text.strip_prefix(name)?.strip_prefix('=')?.trim().trim_matches(QUOTES).trim());
    match line.strip_prefix("Environment=") {
        Some(words) => {
            boot_arguments::words(words).into_iter().filter_map(|word| of(word.trim_matches(QUOTES))).next_back()
        }
        None => of(line.strip_prefix("export ").map_or(line, str::trim)),
    }
}
