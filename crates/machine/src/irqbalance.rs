//! The daemon irqbalance, which moves interrupts between CPUs.

use std::collections::BTreeMap;

use crate::{
    CpuList, Root, boot_arguments, cpus,
    init::{Init, SYSTEM_UNITS},
    tasks,
};

/// The name of its service.
pub(crate) const SERVICE: &str = "irqbalance";
/// Files with its environment: of Fedora and its relatives, of services of OpenRC, of Debian and its relatives.
const FILES: [&str; 3] = ["etc/sysconfig/irqbalance", "etc/conf.d/irqbalance", "etc/default/irqbalance"];
const UNIT: &str = "irqbalance.service";
/// The variables of the CPUs that it leaves alone, as a list or as a mask. The list has precedence. Source: irqbalance(1),
/// `setup_banned_cpus` in its cputree.c.
const BANNED_LIST: &str = "IRQBALANCE_BANNED_CPULIST";
const BANNED_MASK: &str = "IRQBALANCE_BANNED_CPUS";
const QUOTES: [char; 2] = ['"', '\''];

/// The process id of a running irqbalance.
pub(crate) fn process(root: &Root) -> Option<String> {
    root.list("proc").into_iter().find(|pid| {
        pid.bytes().all(|byte| byte.is_ascii_digit())
            && tasks::name(root, pid).as_deref() == Ok("irqbalance")
            && !tasks::is_zombie(root, pid)
    })
}

/// True for a file that [`Environment::read`] may read.
pub(crate) fn is_file(path: &str) -> bool {
    let is_etc_or_lib = ["etc/", "run/", "usr/", "lib/"].iter().any(|folder| path.starts_with(folder));
    is_etc_or_lib && path.contains("irqbalance")
}

/// The lines of such a file that [`Environment::read`] uses, without what else is on them: a line can also set other
/// variables, which can be secret.
pub(crate) fn known_lines(text: &str) -> String {
    text.lines().flat_map(known).map(|line| line + "\n").collect()
}

fn known(line: &str) -> Vec<String> {
    let line = line.trim();
    if line.starts_with('[') || line.starts_with("EnvironmentFile=") || line == "Environment=" {
        return vec![line.to_owned()];
    }
    let number = |value: &str| match value.chars().all(|c| c.is_ascii_hexdigit() || ",-:x".contains(c)) {
        true => value.to_owned(),
        false => boot_arguments::REMOVED.to_owned(),
    };
    let start = if line.starts_with("export ") { "export " } else { "" };
    let of = |name: &str| {
        let in_unit = of_unit(line, name).map(|value| format!("Environment={name}={}", number(value)));
        in_unit.or_else(|| Some(format!("{start}{name}={}", number(assigned(line, name, true)?))))
    };
    [BANNED_LIST, BANNED_MASK].into_iter().filter_map(of).collect()
}

/// The line that makes irqbalance leave these CPUs alone.
pub(crate) fn line(cpus: &CpuList) -> String {
    format!("{BANNED_LIST}={cpus}")
}

/// The environment of the service of irqbalance.
pub(crate) struct Environment {
    /// The CPUs that it leaves alone, as the deciding variable says it; `None` without one. The inner one is `None` if it is
    /// not understood.
    banned: Option<Option<CpuList>>,
    /// The file that decides, with the variable and its value.
    pub(crate) decider: Option<(String, String)>,
    /// The file for a further line; `None` if the unit of systemd reads none.
    pub(crate) file: Option<String>,
}

impl Environment {
    pub(crate) fn read(root: &Root) -> Self {
        let mut variables = Variables::default();
        let is_systemd = Init::of(root) == Init::Systemd;
        let files = if is_systemd { of_systemd(root, &mut variables) } else { vec![file(root).to_owned()] };
        let mut is_understood = true;
        for path in &files {
            // A copy of the machine has only files with this name.
            is_understood &= is_file(path);
            for line in root.read(path).filter(|_| is_file(path)).unwrap_or_default().lines() {
                variables.set(path, |name| assigned(line, name, !is_systemd));
            }
        }
        let decider = [BANNED_LIST, BANNED_MASK].into_iter().find_map(|name| {
            let (path, value) = variables.0.remove(name).filter(|(_, value)| !value.is_empty())?;
            Some((path, name, value))
        });
        let banned = match &decider {
            _ if !is_understood => Some(None),
            None => None,
            Some((_, BANNED_LIST, value)) => Some(value.parse().ok()),
            Some((_, _, value)) => Some(CpuList::from_mask(value)),
        };
        let decider = decider.map(|(path, name, value)| (path, format!("{name}={value}")));
        Self { banned, decider, file: files.into_iter().next_back() }
    }

    /// The CPUs that irqbalance leaves alone: those of its environment, or else those isolated at boot and those without a
    /// tick. It does not read those of isolated cpuset partitions. `None` if the value in its environment is not understood.
    pub(crate) fn banned(&self, root: &Root) -> Option<CpuList> {
        let at_boot = || cpus::list(root, "isolated").unwrap_or_default();
        let by_itself = || Some(at_boot().union(&cpus::tickless(root).unwrap_or_default()));
        self.banned.clone().unwrap_or_else(by_itself)
    }
}

/// The variables of the banned CPUs that are set, each with the file and its value.
#[derive(Default)]
struct Variables(BTreeMap<&'static str, (String, String)>);

impl Variables {
    fn set<'a>(&mut self, path: &str, value: impl Fn(&str) -> Option<&'a str>) {
        for name in [BANNED_LIST, BANNED_MASK] {
            if let Some(value) = value(name) {
                self.0.insert(name, (path.to_owned(), value.to_owned()));
            }
        }
    }
}

/// The file with the environment of irqbalance on this distribution.
fn file(root: &Root) -> &'static str {
    FILES.into_iter().find(|path| root.exists(path)).unwrap_or(match Init::of(root) {
        Init::OpenRc => FILES[1],
        Init::Systemd | Init::Runit | Init::Scripts => FILES[2],
    })
}

/// Sets the variables of `Environment=` in the unit and its drop-ins, and returns the files of `EnvironmentFile=`, whose
/// variables replace them (systemd.exec(5)). An empty value of either removes the earlier ones.
fn of_systemd(root: &Root, variables: &mut Variables) -> Vec<String> {
    let unit = SYSTEM_UNITS.iter().map(|folder| format!("{folder}/{UNIT}")).find(|path| root.exists(path));
    let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
    for folder in SYSTEM_UNITS.map(|folder| format!("{folder}/{UNIT}.d")) {
        for name in root.list(&folder).into_iter().filter(|name| name.ends_with(".conf")) {
            let path = format!("{folder}/{name}");
            drop_ins.entry(name).or_insert(path);
        }
    }
    // A unit that is not known may read the file of its distribution.
    let mut files = if unit.is_some() { Vec::new() } else { vec![file(root).to_owned()] };
    for path in unit.into_iter().chain(drop_ins.into_values()) {
        let text = root.read(&path).unwrap_or_default();
        let mut is_service = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                is_service = line == "[Service]";
                continue;
            }
            if !is_service {
                continue;
            }
            if let Some(value) = line.strip_prefix("EnvironmentFile=") {
                match value.trim().trim_start_matches('-').trim_start_matches('/') {
                    "" => files.clear(),
                    file => files.push(file.to_owned()),
                }
            } else if line == "Environment=" {
                variables.0.clear();
            } else {
                variables.set(&path, |name| of_unit(line, name));
            }
        }
    }
    files
}

/// The value of a variable in the line `Environment=NAME=value OTHER=value` of a unit, without quotes.
fn of_unit<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let words = boot_arguments::words(line.strip_prefix("Environment=")?).into_iter();
    words.filter_map(|word| value_of(word.trim_matches(QUOTES), name)).next_back()
}

/// The value of a variable that a line of a file assigns, without quotes. Only a shell knows `export NAME=value`: systemd
/// ignores such a line, because the name has a blank.
fn assigned<'a>(line: &'a str, name: &str, is_shell: bool) -> Option<&'a str> {
    let line = line.trim();
    let exported = if is_shell { line.strip_prefix("export ") } else { None };
    value_of(exported.map_or(line, str::trim), name)
}

fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    Some(text.strip_prefix(name)?.strip_prefix('=')?.trim().trim_matches(QUOTES).trim())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::facts;

    const LIST: &str = "IRQBALANCE_BANNED_CPULIST=3\n";
    const DEFAULT: &str = "etc/default/irqbalance";
    const DEBIAN: (&str, &str) = (
        "usr/lib/systemd/system/irqbalance.service",
        "[Service]\nEnvironmentFile=-/usr/lib/irqbalance/defaults.env\nEnvironmentFile=-/etc/default/irqbalance\n",
    );
    const DROP_IN: &str = "etc/systemd/system/irqbalance.service.d";

    /// The CPUs of the deciding variable, its file, and the file for a further line.
    fn read(files: &[(&str, &str)]) -> (Option<Option<String>>, Option<String>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for (path, text) in files {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        }
        let read = Environment::read(&root);
        let banned = read.banned.map(|cpus| cpus.map(|cpus| cpus.to_string()));
        (banned, read.decider.map(|(path, _)| path), read.file)
    }

    fn by(file: &str, further: &str) -> (Option<Option<String>>, Option<String>, Option<String>) {
        (Some(Some("3".to_owned())), Some(file.to_owned()), Some(further.to_owned()))
    }

    fn none(further: Option<&str>) -> (Option<Option<String>>, Option<String>, Option<String>) {
        (None, None, further.map(str::to_owned))
    }

    #[test]
    fn the_unit_of_systemd_says_which_file_counts() {
        let sysconfig = DEBIAN.1.replace("/etc/default", "/etc/sysconfig");
        assert_eq!(read(&[DEBIAN, (DEFAULT, LIST)]), by(DEFAULT, DEFAULT));
        assert_eq!(read(&[(DEFAULT, LIST)]), by(DEFAULT, DEFAULT), "the unit is not known");
        let further = Some("etc/sysconfig/irqbalance");
        assert_eq!(read(&[(DEBIAN.0, &sysconfig), (DEFAULT, LIST)]), none(further));
        let own = ("etc/systemd/system/irqbalance.service", "[Service]\nExecStart=/usr/sbin/irqbalance\n");
        assert_eq!(read(&[DEBIAN, own, (DEFAULT, LIST)]), none(None), "it replaces the other unit");
        let other = ("etc/systemd/system/irqbalance.service", "[Service]\nEnvironmentFile=/etc/own\n");
        assert_eq!(read(&[other, (DEFAULT, LIST)]).0, Some(None), "a file that is not read");
    }

    /// irqbalance reads the CPUs isolated at boot only.
    #[test]
    fn isolated_partitions_are_not_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for (path, text) in [("sys/devices/system/cpu/isolated", "2\n"), (facts::ISOLATED_BY_PARTITION, "3\n")] {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), text).unwrap();
        }
        assert_eq!(Environment::read(&root).banned(&root).unwrap().to_string(), "2");
        assert_eq!(facts::isolated_cpus(&root).to_string(), "2-3");
        // A file of no bytes is hidden.
        fs::write(root.path(facts::ISOLATED_BY_PARTITION), "").unwrap();
        assert!(facts::by_partition(&root).is_err() && facts::isolated_cpus(&root).is_empty());
    }

    #[test]
    fn an_exported_variable_counts_in_a_shell_only() {
        let exported = (DEFAULT, "export IRQBALANCE_BANNED_CPUS=8\n");
        assert_eq!(read(&[DEBIAN, exported]), none(Some(DEFAULT)));
        assert_eq!(read(&[exported]), none(Some(DEFAULT)));
        assert_eq!(read(&[("run/openrc/softlevel", ""), exported]), by(DEFAULT, DEFAULT));
        assert_eq!(read(&[("proc/1/comm", "init"), ("etc/init.d/irqbalance", ""), exported]), by(DEFAULT, DEFAULT));
    }

    #[test]
    fn drop_ins_add_to_the_unit_and_reset_it() {
        let drop_in = |name: &str| format!("{DROP_IN}/{name}.conf");
        let (first, second) = (drop_in("10"), drop_in("20"));
        let set = "[Service]\nEnvironment=A=b \"IRQBALANCE_BANNED_CPULIST=3\"\n";
        assert_eq!(read(&[DEBIAN, (&first, set)]), by(&first, DEFAULT));
        assert_eq!(read(&[DEBIAN, (&first, set), (&second, "[Service]\nEnvironment=\n")]), none(Some(DEFAULT)));
        assert_eq!(read(&[DEBIAN, (&first, "[Service]\nEnvironment=\n"), (&second, set)]), by(&second, DEFAULT));
        let reset = "[Service]\nEnvironmentFile=\n";
        assert_eq!(read(&[DEBIAN, (DEFAULT, LIST), (&first, reset)]), none(None));
        let unit = set.replace("[Service]", "[Unit]");
        assert_eq!(read(&[DEBIAN, (&first, &unit)]), none(Some(DEFAULT)), "another section");
        // A file replaces what the unit sets, and a drop-in in /etc one of that name elsewhere.
        let one = set.replace("=3", "=1");
        assert_eq!(read(&[DEBIAN, (&first, &one), (DEFAULT, LIST)]), by(DEFAULT, DEFAULT));
        let vendors = "usr/lib/systemd/system/irqbalance.service.d/10.conf";
        assert_eq!(read(&[DEBIAN, (&first, set), (vendors, &one)]), by(&first, DEFAULT));
    }

    #[test]
    fn a_copy_of_the_machine_has_the_lines_that_count_and_no_others() {
        let text = "[Unit]\nDescription=of Ada\n[Service]\nEnvironment=\nEnvironment=TOKEN=x\n\
            Environment=IRQBALANCE_BANNED_CPUS=8 TOKEN=x\nEnvironmentFile=-/etc/default/irqbalance\n\
            IRQBALANCE_BANNED_CPULIST=1\nexport IRQBALANCE_BANNED_CPUS=1\nIRQBALANCE_BANNED_CPULIST=1 # of Ada\nTOKEN=x\n";
        let kept = "[Unit]\n[Service]\nEnvironment=\nEnvironment=IRQBALANCE_BANNED_CPUS=8\n\
            EnvironmentFile=-/etc/default/irqbalance\nIRQBALANCE_BANNED_CPULIST=1\nexport IRQBALANCE_BANNED_CPUS=1\n";
        assert_eq!(known_lines(text), format!("{kept}IRQBALANCE_BANNED_CPULIST={}\n", boot_arguments::REMOVED));
        assert!([DEBIAN.0, DEFAULT, &format!("{DROP_IN}/own.conf")].iter().all(|path| is_file(path)));
        assert!(!is_file("proc/700/comm"));
    }
}
