use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    fs,
};

use record::FindingState;
use sys::sched::Policy;
use tempfile::TempDir;

use super::{apply::*, *};
use crate::journal::{self, Purpose};

/// A machine with two CPUs that share no frequency, whose kernel behaves as Linux does where it matters here.
#[derive(Debug)]
struct Fake {
    _folder: TempDir,
    root: Root,
    /// The number of writes until all further ones fail, as after SIGKILL.
    left: Cell<usize>,
    written: RefCell<Vec<String>>,
}

const FILES: &[(&str, &str)] = &[
    ("sys/devices/system/cpu/online", "0-1"),
    ("sys/devices/system/cpu/isolated", ""),
    ("sys/devices/system/cpu/nohz_full", "1"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL"),
    ("sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us", "0"),
    ("sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us", "0"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never"),
    ("sys/kernel/mm/ksm/run", "1"),
    ("sys/module/pcie_aspm/parameters/policy", "[default] performance powersave powersupersave"),
    ("sys/bus/pci/devices/0000:00:02.0/link/l1_aspm", "1"),
    ("sys/devices/virtual/workqueue/cpumask", "3"),
    ("proc/irq/default_smp_affinity", "3"),
    ("proc/irq/7/smp_affinity_list", "0-1"),
    ("proc/irq/8/smp_affinity_list", "0-1"),
    ("proc/irq/9/smp_affinity_list", "0"),
    ("proc/swaps", "Filename Type Size\n/dev/sda2 partition 1"),
    ("proc/sys/vm/swappiness", "60"),
    ("proc/sys/vm/stat_interval", "1"),
    ("proc/sys/vm/dirty_writeback_centisecs", "500"),
    ("proc/sys/kernel/osrelease", "6.1.0"),
    ("proc/sys/kernel/sched_rt_runtime_us", "950000"),
    ("proc/sys/kernel/nmi_watchdog", "1"),
    ("proc/sys/kernel/soft_watchdog", "1"),
    ("proc/sys/kernel/timer_migration", "1"),
    ("proc/sys/kernel/numa_balancing", "0"),
    ("proc/2/comm", "kthreadd"),
    ("sys/fs/resctrl/schemata", "    MB:0=100\n    L3:0=7ff\n"),
    ("sys/fs/resctrl/info/L3/cbm_mask", "7ff"),
    ("sys/fs/resctrl/info/L3/min_cbm_bits", "1"),
    ("sys/fs/resctrl/info/L3/shareable_bits", "600"),
    ("sys/bus/pci/devices/0000:00:02.0/class", "0x030000"),
    ("sys/bus/pci/devices/0000:00:02.0/power/control", "auto"),
    ("sys/bus/pci/devices/0000:00:03.0/class", "0x060000"),
    ("sys/bus/pci/devices/0000:00:03.0/power/control", "auto"),
];

impl Fake {
    fn new() -> Rc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let fake = Self { _folder: folder, root, left: Cell::new(usize::MAX), written: RefCell::default() };
        FILES.iter().for_each(|(path, text)| fake.put(path, text));
        for cpu in 0..2 {
            let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
            let files = [
                ("related_cpus", &*cpu.to_string()),
                ("scaling_governor", "powersave"),
                ("scaling_available_governors", "performance powersave"),
                ("energy_performance_preference", "balance_performance"),
                ("energy_performance_available_preferences", "default performance balance_performance power"),
                ("cpuinfo_min_freq", "400000"),
                ("cpuinfo_max_freq", "1600000"),
                ("scaling_min_freq", "400000"),
                ("scaling_max_freq", "1200000"),
            ];
            files.iter().for_each(|(name, text)| fake.put(&file(name), text));
        }
        for cpu in 0..2 {
            fake.put(&format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/level"), "3");
            fake.put(&format!("sys/devices/system/cpu/cpu{cpu}/cache/index3/id"), "0");
        }
        for (id, name) in [(40, "irq/7-eth0"), (41, "irq/8-snd_usb")] {
            fake.thread(id, name, 1, 50);
        }
        for (id, cpus) in [(50, "0-1"), (51, "1"), (52, "0")] {
            fake.thread(id, &format!("program{id}"), 0, 0);
            fake.allow(id, cpus);
        }
        Rc::new(fake)
    }

    fn put(&self, path: &str, text: &str) {
        fs::create_dir_all(self.root.path(path).parent().unwrap()).unwrap();
        fs::write(self.root.path(path), text).unwrap();
    }

    fn thread(&self, id: u32, name: &str, policy: u32, priority: u32) {
        let zeros = "0 ".repeat(17);
        let stat =
            format!("{id} ({name}) S 2 0 0 0 0 2097152 0 0 0 0 0 0 0 0 -51 0 1 0 100 {zeros}{priority} {policy}");
        self.put(&format!("proc/{id}/stat"), &stat);
        self.put(&format!("proc/{id}/task/{id}/stat"), &stat);
        self.put(&format!("proc/{id}/comm"), name);
        self.put(&format!("proc/{id}/task/{id}/comm"), name);
    }

    /// Sets the CPUs that a thread may use. Without them it is not a task whose affinity can be read.
    fn allow(&self, id: u32, cpus: &str) {
        self.put(&format!("proc/{id}/task/{id}/status"), &format!("Name:\tx\nCpus_allowed_list:\t{cpus}\n"));
    }

    fn allowed(&self, id: u32) -> String {
        let task = crate::tasks::all(&self.root).into_iter().find(|task| task.id == id);
        task.map(|task| task.cpus.to_string()).unwrap()
    }

    /// The contents of all files except journals.
    fn state(&self) -> BTreeMap<String, String> {
        fn walk(root: &Root, folder: &str, state: &mut BTreeMap<String, String>) {
            for name in root.list(folder) {
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                match root.read(&path) {
                    Some(text) => _ = state.insert(path, text),
                    None if path != "run" => walk(root, &path, state),
                    None => {}
                }
            }
        }
        let mut state = BTreeMap::new();
        walk(&self.root, "", &mut state);
        state
    }

    fn step(&self, what: &str) -> io::Result<()> {
        if self.left.get() == 0 {
            return Err(io::Error::other("killed"));
        }
        self.left.set(self.left.get() - 1);
        self.written.borrow_mut().push(what.to_owned());
        Ok(())
    }

    fn ops(self: &Rc<Self>) -> Rc<dyn SystemOps> {
        Rc::<Self>::clone(self)
    }

    fn plan(&self, need: &Need) -> Plan {
        plan_with(self, need).unwrap()
    }

    /// Everything that can be changed here, with values for the settings that need one.
    fn all(&self) -> Vec<Setting> {
        let set = [
            "cpu.resctrl=30%",
            "cpu.min_freq=800MHz",
            "cpu.turbo",
            "rt.throttling",
            "memory.writeback",
            "irq.priority=snd:90",
        ];
        let set = set.map(|text| text.parse().unwrap()).to_vec();
        self.plan(&Need { cpus: Some("1".parse().unwrap()), set, ..Need::default() }).changes
    }
}

use std::io;

impl SystemOps for Fake {
    fn root(&self) -> &Root {
        &self.root
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        self.step(path)?;
        match path {
            // Managed by its driver.
            "proc/irq/8/smp_affinity_list" => Err(io::Error::from_raw_os_error(1)),
            _ if !self.root.exists(path) => Err(io::ErrorKind::NotFound.into()),
            // One line replaces that of its resource.
            _ if path.ends_with("/schemata") => {
                let (resource, _) = text.split_once(':').unwrap();
                let old = self.root.read(path).unwrap();
                let lines = old.lines().map(|line| if line.trim().starts_with(resource) { text.trim() } else { line });
                fs::write(self.root.path(path), lines.map(|line| format!("    {}\n", line.trim())).collect::<String>())
            }
            _ => {
                let old = self.root.read(path).unwrap();
                let words: Vec<&str> = old.split(' ').map(|word| word.trim_matches(['[', ']'])).collect();
                let new = match old.contains('[') {
                    true if !words.contains(&text) => return Err(io::ErrorKind::InvalidInput.into()),
                    true => words.iter().map(|w| if *w == text { format!("[{w}]") } else { (*w).to_owned() }).collect(),
                    // The driver knows multiples of 100 MHz.
                    false if path.ends_with("scaling_min_freq") && !text.ends_with("00000") => {
                        vec!["800000".to_owned()]
                    }
                    false => vec![text.to_owned()],
                };
                fs::write(self.root.path(path), new.join(" "))
            }
        }
    }

    fn make_group(&self, folder: &str) -> io::Result<()> {
        self.step(folder)?;
        fs::create_dir(self.root.path(folder))?;
        self.put(&format!("{folder}/cpus_list"), "");
        self.put(&format!("{folder}/schemata"), "    MB:0=100\n    L3:0=7ff\n");
        Ok(())
    }

    fn remove_group(&self, folder: &str) -> io::Result<()> {
        self.step(folder)?;
        fs::remove_dir_all(self.root.path(folder))
    }

    fn set_affinity(&self, thread: u32, cpus: &CpuList) -> io::Result<()> {
        self.step(&format!("affinity of {thread}"))?;
        self.allow(thread, &cpus.to_string());
        Ok(())
    }

    fn set_policy(&self, thread: u32, policy: Policy) -> io::Result<()> {
        self.step(&format!("thread {thread}"))?;
        let name = self.root.read(&format!("proc/{thread}/comm")).unwrap();
        let Policy::Fifo(priority) = policy else { return Err(io::ErrorKind::Unsupported.into()) };
        self.thread(thread, &name, 1, priority.into());
        Ok(())
    }
}

fn ids(settings: &[Setting]) -> Vec<&str> {
    settings.iter().map(|setting| setting.id).collect()
}

#[test]
fn a_plan_sorts_the_settings_and_changes_nothing() {
    let fake = Fake::new();
    let before = fake.state();
    let plan = fake.plan(&Need::default());
    assert_eq!(
        ids(&plan.changes),
        [
            "cpu.energy_preference",
            "cpu.governor",
            "cpu.max_freq",
            "cpu.idle_states",
            "kernel.watchdog",
            "kernel.timer_migration",
            "memory.thp",
            "memory.ksm",
            "memory.swappiness",
            "power.pci",
            "power.aspm"
        ]
    );
    assert_eq!(ids(&plan.right), ["memory.numa_balancing"]);
    let reason = |id: &str| plan.not_here.iter().find(|not| not.id == id).map(|not| not.reason.clone());
    for id in ["irq.affinity", "cpu.statistics"] {
        assert!(reason(id).unwrap().contains("--cpus"), "{id}");
    }
    assert_eq!(reason("power.usb").unwrap(), "this machine has no such device");
    assert!(reason("cpu.turbo").unwrap().contains("/sys/devices/system/cpu/cpufreq/boost"));
    let on_request: Vec<&str> = plan.on_request.iter().map(|request| request.id).collect();
    assert_eq!(
        on_request,
        ["cpu.min_freq", "cpu.frequency", "irq.priority", "rt.throttling", "memory.writeback", "nic.settings"]
    );
    let pci = plan.changes.iter().find(|setting| setting.id == "power.pci").unwrap();
    assert_eq!(pci.writes.len(), 1, "a bridge is left alone");
    let all = plan.changes.len() + plan.right.len() + plan.not_here.len() + plan.on_request.len();
    assert_eq!(all, DEFINITIONS.len());
    assert_eq!(fake.state(), before);
    assert!(fake.written.borrow().is_empty());
}

#[test]
fn cpus_limit_the_settings_of_cpus_and_move_other_work_away() {
    let fake = Fake::new();
    let plan = fake.plan(&Need { cpus: Some("1".parse().unwrap()), limit_ns: Some(500_000), ..Need::default() });
    let writes = |id: &str| {
        let setting = plan.changes.iter().find(|setting| setting.id == id).unwrap();
        setting.writes.iter().map(|w| format!("{} {}>{}", w.target, w.from, w.to)).collect::<Vec<_>>()
    };
    assert_eq!(writes("cpu.governor"), ["/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor powersave>performance"]);
    assert_eq!(writes("cpu.idle_states"), ["/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us 0>50"]);
    assert_eq!(writes("irq.affinity"), ["/proc/irq/7/smp_affinity_list 0-1>0", "/proc/irq/8/smp_affinity_list 0-1>0"]);
    assert_eq!(writes("cpu.workqueues"), ["/sys/devices/virtual/workqueue/cpumask 3>1"]);
    let refused = |cpus: &str| plan_with(&*fake, &Need { cpus: Some(cpus.parse().unwrap()), ..Need::default() });
    assert_eq!(
        refused("1-5").unwrap_err().to_string(),
        "CPUs 2-5 are not online here: see /sys/devices/system/cpu/online"
    );
    let all = refused("0-1").unwrap();
    let reason = all.not_here.iter().find(|not| not.id == "irq.affinity").map(|not| &*not.reason);
    assert_eq!(reason, Some("no CPU would remain for other work: name fewer with --cpus"));
}

#[test]
fn programs_leave_the_cpus_for_real_time_work_unless_they_are_pinned() {
    let fake = Fake::new();
    let before = fake.state();
    let cpus = "1".parse().unwrap();
    let settings = || chosen_with(&*fake, &["cpu.programs".parse().unwrap()], Some(&cpus)).unwrap();
    let values =
        |settings: &[Setting]| settings[0].writes.iter().map(|w| format!("{}>{}", w.from, w.to)).collect::<Vec<_>>();
    assert_eq!(values(&settings()), ["1>none"]);
    let tuning = apply_with(fake.ops(), &settings()).unwrap();
    assert_eq!(tuning.refused(), []);
    assert_eq!([50, 51, 52].map(|id| fake.allowed(id)), ["0", "1", "0"], "the one that is pinned to CPU 1 stays");
    assert_eq!(values(&settings()), ["none>none"]);
    // A child inherits the narrow affinity, and another program was pinned meanwhile.
    fake.put("proc/60/stat", "60 (child) S 50 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 200 0");
    fake.put("proc/60/task/60/stat", "60 (child) S 50 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 200 0");
    fake.allow(60, "0");
    fake.allow(52, "1");
    let released = tuning.release();
    let [setting] = &*released else { panic!("{released:?}") };
    assert_eq!(
        (&*setting.name, &*setting.before, &*setting.during, setting.after.as_deref()),
        ("cpu.programs programs on CPU 1", "1", "none", Some("1"))
    );
    assert_eq!([50, 51, 52, 60].map(|id| fake.allowed(id)), ["0-1", "1", "1", "0-1"]);
    fake.allow(52, "0");
    ["proc/60/task/60", "proc/60/task", "proc/60"].iter().for_each(|folder| {
        let _ = fs::remove_dir_all(fake.root.path(folder));
    });
    assert_eq!(fake.state(), before);
}

#[test]
fn programs_that_tune_moved_do_not_seem_to_be_pinned() {
    let fake = Fake::new();
    let choose = |cpus: &str| chosen_with(&*fake, &["cpu.programs".parse().unwrap()], Some(&cpus.parse().unwrap()));
    keep_with(fake.ops(), &choose("1").unwrap()).unwrap();
    let error = choose("0").unwrap_err().to_string();
    assert!(error.contains("an earlier tune moved programs off CPU 1: revert it first"), "{error}");
    assert!(choose("1").unwrap()[0].is_right());
    revert_with(&*fake).unwrap();
    assert!(!choose("0").unwrap()[0].is_right());
}

#[test]
fn settings_without_an_effect_are_not_planned() {
    let fake = Fake::new();
    let reason = |id: &str| {
        let plan = fake.plan(&Need::default());
        plan.not_here.into_iter().find(|not| not.id == id).map(|not| not.reason)
    };
    assert_eq!((reason("cpu.idle_states"), reason("kernel.timer_migration")), (None, None));
    for cpu in 0..2 {
        for (state, exit_us) in [("state0", "0"), ("state1", "10")] {
            fake.put(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/{state}/name"), state);
            fake.put(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/{state}/latency"), exit_us);
        }
    }
    fake.put("sys/devices/system/cpu/nohz_full", "(null)");
    assert_eq!(reason("cpu.idle_states").as_deref(), Some("every enabled idle state can be left in 10us"));
    assert!(reason("kernel.timer_migration").unwrap().starts_with("no CPU runs without a tick"));
    let named = fake.plan(&Need { only: vec!["kernel.timer_migration"], ..Need::default() });
    assert_eq!(named.changes.len(), 1, "the user may try it nevertheless: {named:?}");
    fake.put("sys/devices/system/cpu/cpu1/cpuidle/state1/latency", "11");
    fake.put("sys/devices/system/cpu/nohz_full", "1");
    assert_eq!((reason("cpu.idle_states"), reason("kernel.timer_migration")), (None, None));
}

/// The values before an earlier change are in a journal that is cut off: nothing is changed on top of them.
#[test]
fn a_damaged_journal_stops_every_change() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    let put = |path: &str, text: &str| {
        fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
        fs::write(root.path(path), text).unwrap();
    };
    put("sys/devices/system/cpu/online", "0");
    put("proc/sys/kernel/numa_balancing", "1");
    let only = vec!["memory.numa_balancing"];
    let changes = || plan(&root, &Need { only: only.clone(), ..Need::default() }).unwrap().changes;
    assert_eq!(keep(&root, &changes()).unwrap().applied.len(), 1);
    let journals: Vec<_> = fs::read_dir(journal::folder(&root)).unwrap().flatten().map(|file| file.path()).collect();
    let journal = journals.iter().find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    let whole = fs::read_to_string(journal).unwrap();
    fs::write(journal, &whole[..whole.len() / 2]).unwrap();
    put("proc/sys/kernel/numa_balancing", "1");

    let files = unit("/usr/bin/punctual tune --yes");
    let refused = [
        keep(&root, &changes()).unwrap_err(),
        apply(&root, &changes()).unwrap_err(),
        keep_files(&root, &files).unwrap_err(),
    ];
    for error in refused.map(|error| error.to_string()) {
        let name = journal.display().to_string();
        assert!(error.contains(&name) && error.contains(&format!("`sudo rm {name}`")), "{error}");
    }
    assert_eq!(root.read("proc/sys/kernel/numa_balancing").as_deref(), Some("1"));
    assert!(!root.exists(&files[0].path));
    let reverted = revert(&root).unwrap();
    assert!(reverted[0].put_back.failed[0].contains("is not a journal"), "{reverted:?}");

    fs::write(journal, whole).unwrap();
    assert_eq!(keep(&root, &changes()).unwrap().applied.len(), 1);
}

#[test]
fn unfinished_journals_of_killed_processes_are_removed() {
    let fake = Fake::new();
    let folder = journal::folder(&fake.root);
    fs::create_dir_all(&folder).unwrap();
    for name in [".punctual-77-1.new", ".punctual-40-1.new", ".punctual-x-1.new", "77.new"] {
        fs::write(folder.join(name), "{").unwrap();
        let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(120);
        fs::File::options().write(true).open(folder.join(name)).unwrap().set_modified(earlier).unwrap();
    }
    // Another process may write it now.
    fs::write(folder.join(".punctual-78-1.new"), "{").unwrap();
    revert_with(&*fake).unwrap();
    let left: BTreeSet<String> =
        fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap()).collect();
    // A process 40 runs.
    assert!(!left.contains(".punctual-77-1.new") && left.contains(".punctual-78-1.new"), "{left:?}");
    assert!([".punctual-40-1.new", ".punctual-x-1.new", "77.new"].iter().all(|name| left.contains(*name)), "{left:?}");
}

#[test]
fn a_share_of_the_cache_is_taken_and_returned() {
    let fake = Fake::new();
    let before = fake.state();
    let cpus = "1".parse().unwrap();
    let choose = |text: &str| chosen_with(&*fake, &[text.parse().unwrap()], Some(&cpus));
    let read = |path: &str| fake.root.read(&format!("sys/fs/resctrl/{path}")).unwrap_or_default();
    let settings = choose("cpu.resctrl=30").unwrap();
    let writes: Vec<_> = settings[0].writes.iter().map(|w| format!("{}: {} > {}", w.target, w.from, w.to)).collect();
    assert_eq!(writes, ["share of the cache: none > L3 0=7 for CPU 1"]);
    let tuning = apply_with(fake.ops(), &settings).unwrap();
    assert_eq!(tuning.refused(), []);
    assert!(
        read("schemata").contains("L3:0=7f8") && read("punctual/schemata").contains("L3:0=7"),
        "{}",
        read("schemata")
    );
    assert_eq!(read("punctual/cpus_list"), "1");
    assert!(choose("cpu.resctrl=30").unwrap()[0].is_right());
    assert!(choose("cpu.resctrl=60").unwrap_err().to_string().contains("there is another share"));
    drop(tuning);
    assert_eq!(fake.state().keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    assert!(read("schemata").contains("L3:0=7ff"));
    // Groups of others, a value out of range, no file system, no cache.
    for (path, text, error) in [
        ("sys/fs/resctrl/theirs/schemata", "L3:0=3", "the cache is divided already: see /sys/fs/resctrl/theirs"),
        ("sys/fs/resctrl/schemata", "MB:0=100", "memory bandwidth only"),
        ("sys/fs/resctrl/schemata", "L3CODE:0=7ff", "code and data have caches of their own"),
    ] {
        fake.put(path, text);
        let refused = choose("cpu.resctrl").unwrap_err().to_string();
        assert!(refused.contains(error), "{refused}");
        let _ = fs::remove_dir_all(fake.root.path("sys/fs/resctrl/theirs"));
    }
    assert!(choose("cpu.resctrl=0").unwrap_err().to_string().contains("must be 1 to 99"));
    fs::remove_file(fake.root.path("sys/fs/resctrl/schemata")).unwrap();
    assert!(choose("cpu.resctrl").unwrap_err().to_string().contains("mount -t resctrl"));
}

#[test]
fn a_share_of_the_cache_that_others_changed_is_kept() {
    let fake = Fake::new();
    let cpus = "1".parse().unwrap();
    let settings = chosen_with(&*fake, &["cpu.resctrl".parse().unwrap()], Some(&cpus)).unwrap();
    keep_with(fake.ops(), &settings).unwrap();
    fake.put("sys/fs/resctrl/schemata", "L3:0=600");
    fake.put("sys/fs/resctrl/punctual/cpus_list", "0-1");
    let restored = revert_with(&*fake).unwrap();
    let changed: Vec<&String> = restored.iter().flat_map(|restored| &restored.put_back.changed_since).collect();
    assert_eq!(changed, ["/sys/fs/resctrl/schemata: 0=600", "/sys/fs/resctrl/punctual/cpus_list: 0-1"]);
    assert!(fake.root.exists("sys/fs/resctrl/punctual/schemata"));
}

#[test]
fn names_of_interrupt_threads_may_be_cut() {
    let fake = Fake::new();
    fake.thread(42, "irq/9-hold-sour", 1, 50);
    let chosen = |text: &str| chosen_with(&*fake, &[text.parse().unwrap()], None);
    assert!(chosen("irq.priority=hold-source:20").is_ok());
    assert!(chosen("irq.priority=hold-sink:20").is_err());
    assert!(chosen("irq.priority=eth0-rx:20").is_err(), "a whole name is not cut");
}

#[test]
fn values_are_checked_before_anything_changes() {
    let fake = Fake::new();
    let error = |text: &str| match text.parse::<Choice>() {
        Ok(choice) => chosen_with(&*fake, &[choice], None).unwrap_err().to_string(),
        Err(text) => text,
    };
    assert!(
        error("cpu.governer").starts_with("unknown setting `cpu.governer`: the settings are cpu.energy_preference, ")
    );
    assert!(error("cpu.governor=").contains("has no value"));
    assert_eq!(
        error("cpu.governor=fast"),
        "cpu.governor: CPU 0 does not offer `fast`: it offers performance powersave"
    );
    assert_eq!(error("cpu.max_freq=3GHz"), "cpu.max_freq: CPU 0 has no frequency of 3000MHz: use 400MHz to 1600MHz");
    assert_eq!(error("cpu.frequency"), "cpu.frequency: it needs a value: a frequency: 1000MHz, min or max");
    assert_eq!(error("memory.swappiness=201"), "memory.swappiness: must be 0 to 200 (got 201)");
    assert_eq!(error("kernel.watchdog=maybe"), "kernel.watchdog: `maybe` is not on or off");
    assert_eq!(error("memory.thp=[never]"), "memory.thp: `[never]` is not one of madvise, never, always");
    assert!(error("irq.priority=usb:90").contains("there are eth0, snd_usb"));
    assert!(error("irq.priority=eth0:100").contains("must be 1 to 99"));
    assert!(error("nic.settings=eth0").contains("names no interface"));
    assert!(error("power.usb").starts_with("power.usb cannot be changed: "));
    for text in ["6\n0", "6\u{1b}[2J", &"6".repeat(257)] {
        fake.put("proc/sys/vm/swappiness", text);
        assert!(error("memory.swappiness").ends_with("/proc/sys/vm/swappiness does not contain one value in one line"));
    }
    assert!(fake.written.borrow().is_empty());
}

#[test]
fn one_value_for_each_setting_and_each_device() {
    let fake = Fake::new();
    let settings = |texts: &[&str]| {
        let choices: Vec<Choice> = texts.iter().map(|text| text.parse().unwrap()).collect();
        chosen_with(&*fake, &choices, None)
    };
    let error = |texts: &[&str]| settings(texts).unwrap_err().to_string();
    assert_eq!(
        error(&["memory.thp=never", "memory.thp=madvise"]),
        "memory.thp: it has two values, never and madvise: leave one out"
    );
    assert_eq!(settings(&["memory.thp=never", "memory.thp=never"]).unwrap().len(), 1);
    assert_eq!(settings(&["cpu.turbo", "cpu.turbo=off"]).unwrap_err().to_string(), error(&["cpu.turbo"]));
    let priorities = |texts: &[&str]| {
        let settings = settings(texts).unwrap();
        let mut all: Vec<String> = settings[0].writes.iter().map(|w| format!("{} {}", w.target, w.to)).collect();
        all.sort_unstable();
        all.join(", ")
    };
    assert_eq!(
        priorities(&["irq.priority=40", "irq.priority=snd_usb:90"]),
        "thread 40 (irq/7-eth0) fifo:40, thread 41 (irq/8-snd_usb) fifo:90"
    );
    assert_eq!(
        priorities(&["irq.priority=eth0:60", "irq.priority=snd_usb:90"]),
        "thread 40 (irq/7-eth0) fifo:60, thread 41 (irq/8-snd_usb) fifo:90"
    );
    let set = vec!["memory.thp=never".parse().unwrap()];
    let without = vec!["memory.thp"];
    let refused = plan_with(&*fake, &Need { set, without, ..Need::default() }).unwrap_err();
    assert_eq!(refused.to_string(), "memory.thp: it is both named and left alone: leave one of them out");
}

#[test]
fn a_value_of_the_user_has_precedence_over_a_name() {
    let fake = Fake::new();
    let need = |only: &[&'static str], set: &[&str]| Need {
        only: only.to_vec(),
        set: set.iter().map(|text| text.parse().unwrap()).collect(),
        ..Need::default()
    };
    let plan = fake.plan(&need(&["cpu.max_freq", "cpu.min_freq"], &["cpu.frequency=800MHz"]));
    assert_eq!(ids(&plan.changes), ["cpu.frequency"]);
    let refused: Vec<_> = plan.not_here.iter().map(|not| (not.id, not.is_named)).collect();
    assert_eq!(refused, [("cpu.max_freq", true), ("cpu.min_freq", true)]);
}

#[test]
fn the_lowest_frequency_is_not_above_the_highest() {
    let fake = Fake::new();
    let refused = |set: &[&str], only: &[&'static str]| {
        let set = set.iter().map(|text| text.parse().unwrap()).collect();
        plan_with(&*fake, &Need { set, only: only.to_vec(), ..Need::default() }).err().map(|error| error.to_string())
    };
    let file = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq";
    let expected = |lowest: u32, highest: u32| {
        format!(
            "cpu.min_freq: {lowest}MHz is above the highest frequency of {highest}MHz ({file}): give a lower one, or a higher cpu.max_freq"
        )
    };
    assert_eq!(refused(&["cpu.min_freq=1000MHz", "cpu.max_freq=800MHz"], &[]), Some(expected(1000, 800)));
    // The present limit is 1200 MHz; the plan of all settings lifts it.
    assert_eq!(refused(&[], &["cpu.min_freq"]), Some(expected(1600, 1200)));
    assert_eq!(refused(&["cpu.min_freq=1400MHz"], &[]), None);
    assert_eq!(refused(&["cpu.min_freq=800MHz", "cpu.max_freq=800MHz"], &[]), None);
}

#[test]
fn a_mode_of_numa_balancing_that_is_on_stays() {
    let fake = Fake::new();
    for (now, to) in [("0", "1"), ("1", "1"), ("2", "2"), ("3", "3")] {
        fake.put("proc/sys/kernel/numa_balancing", now);
        let settings = chosen_with(&*fake, &["memory.numa_balancing=on".parse().unwrap()], None).unwrap();
        assert_eq!(settings[0].writes[0].to, to, "{now}");
    }
}

#[test]
fn named_settings_that_cannot_be_changed_come_first() {
    let fake = Fake::new();
    let named = |need: &Need| {
        let not_here = fake.plan(need).not_here;
        let named: Vec<&str> = not_here.iter().take_while(|not| not.is_named).map(|not| not.id).collect();
        assert_eq!(named.len(), not_here.iter().filter(|not| not.is_named).count(), "{not_here:?}");
        named
    };
    assert_eq!(named(&Need::default()), [] as [&str; 0]);
    let set = vec!["power.usb".parse().unwrap(), "nic.settings=eth9:eee=off".parse().unwrap()];
    assert_eq!(named(&Need { set, ..Need::default() }), ["power.usb", "nic.settings"]);
    assert_eq!(named(&Need { only: vec!["memory.thp", "cpu.turbo"], ..Need::default() }), ["cpu.turbo"]);
}

#[test]
fn one_process_can_change_settings_several_times_without_others() {
    let fake = Fake::new();
    let before = fake.state();
    let settings = chosen_with(&*fake, &["memory.thp=never".parse().unwrap()], None).unwrap();
    let lock = Lock::take(&fake.root).unwrap();
    for _ in 0..2 {
        let tuning = apply_locked(lock.clone(), fake.ops(), &settings).unwrap();
        assert_ne!(fake.state(), before);
        drop(tuning);
        assert_eq!(fake.state(), before);
        // Nothing is changed now, but the search goes on.
        assert!(matches!(apply_with(fake.ops(), &settings), Err(TuneError::Busy)));
        assert!(matches!(keep_with(fake.ops(), &settings), Err(TuneError::Busy)));
        assert!(matches!(revert_with(&*fake), Err(TuneError::Busy)));
    }
    drop(lock);
    assert!(apply_with(fake.ops(), &settings).is_ok());
}

#[test]
fn a_run_changes_settings_and_restores_them_in_reverse_order() {
    let fake = Fake::new();
    let before = fake.state();
    let choices = ["cpu.frequency=1400MHz", "memory.thp=never", "memory.numa_balancing", "irq.priority=snd:90"];
    let choices = choices.map(|text| text.parse().unwrap());
    let settings = chosen_with(&*fake, &choices, Some(&"1".parse().unwrap())).unwrap();
    assert_eq!(ids(&settings), ["cpu.frequency", "irq.priority", "memory.thp", "memory.numa_balancing"]);
    let tuning = apply_with(fake.ops(), &settings).unwrap();
    assert_eq!(tuning.refused(), []);
    assert!(matches!(apply_with(fake.ops(), &settings), Err(TuneError::Busy)), "one at a time");
    assert!(matches!(keep_with(fake.ops(), &settings), Err(TuneError::Busy)), "one at a time");
    let now = fake.state();
    assert_eq!(now["sys/kernel/mm/transparent_hugepage/enabled"], "always madvise [never]");
    let cpufreq = |name: &str| now[&format!("sys/devices/system/cpu/cpu1/cpufreq/{name}")].clone();
    assert_eq!([cpufreq("scaling_min_freq"), cpufreq("scaling_max_freq")], ["1400000", "1400000"]);
    let record = tuning.release();
    assert_eq!(fake.state(), before);
    let words: Vec<String> = record
        .iter()
        .map(|s| format!("{}: {} {} {}", s.name, s.before, s.during, s.after.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(
        words,
        [
            "cpu.frequency /sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq: 1200000 1400000 1200000",
            "cpu.frequency /sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq: 400000 1400000 400000",
            "irq.priority thread 41 (irq/8-snd_usb): fifo:50 fifo:90 fifo:50",
            "memory.thp /sys/kernel/mm/transparent_hugepage/enabled: always never always",
            "memory.numa_balancing /proc/sys/kernel/numa_balancing: 0 0 0",
        ]
    );
    let written = fake.written.borrow();
    let (done, undone) = written.split_at(written.len() / 2);
    let reversed: Vec<&String> = undone.iter().rev().collect();
    assert_eq!(done.iter().collect::<Vec<_>>(), reversed);
    assert!(done[0].ends_with("scaling_max_freq"), "the highest frequency is raised first: {done:?}");
}

#[test]
fn a_setting_that_is_refused_leaves_nothing_changed() {
    let fake = Fake::new();
    let need = Need { cpus: Some("1".parse().unwrap()), ..Need::default() };
    let plan = fake.plan(&need);
    let of = |id: &str| plan.changes.iter().find(|setting| setting.id == id).unwrap().clone();
    fake.put("proc/sys/kernel/soft_watchdog", "5");
    let mut odd = of("cpu.max_freq");
    odd.writes[0].target = Target::File("sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq".to_owned());
    (odd.writes[0].from, odd.writes[0].to) = ("400000".to_owned(), "950001".to_owned());
    let mut outside = of("memory.ksm");
    fake.put("proc/sys/kernel/core_pattern", "1");
    outside.writes[0].target = Target::File("proc/sys/kernel/core_pattern".to_owned());
    let before = fake.state();
    let settings = [of("kernel.watchdog"), odd, outside, of("irq.affinity")];
    let tuning = apply_with(fake.ops(), &settings).unwrap();
    let refused: Vec<(&str, &str, bool)> =
        tuning.refused().iter().map(|r| (r.id, r.reason.as_str(), r.is_whole)).collect();
    let min_freq = "/sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq";
    assert_eq!(
        refused,
        [
            ("kernel.watchdog", "/proc/sys/kernel/soft_watchdog is 5 now, not 1: plan again", true),
            ("cpu.max_freq", &*format!("{min_freq}: the kernel has 800000 instead of 950001"), true),
            ("memory.ksm", "/proc/sys/kernel/core_pattern: punctual does not change this file", true),
            (
                "irq.affinity",
                "/proc/irq/8/smp_affinity_list: its driver manages this interrupt, or it is bound to a CPU",
                false
            ),
        ]
    );
    assert_eq!(ids(tuning.applied()), ["irq.affinity"]);
    let mut expected = before.clone();
    expected.insert("proc/irq/7/smp_affinity_list".to_owned(), "0".to_owned());
    assert_eq!(fake.state(), expected);
    drop(tuning);
    assert_eq!(fake.state(), before);
}

#[test]
fn reverting_restores_everything_after_a_kill_between_any_two_writes() {
    let all = {
        let fake = Fake::new();
        let kept = keep_with(fake.ops(), &fake.all()).unwrap();
        assert!(kept.applied.len() >= 15, "{:?}", ids(&kept.applied));
        fake.written.borrow().len()
    };
    assert!(all >= 18, "{all}");
    let mut journals = 0;
    for left in 0..=all {
        for is_kept in [true, false] {
            let fake = Fake::new();
            let (before, settings) = (fake.state(), fake.all());
            fake.left.set(left);
            if is_kept {
                let _ = keep_with(fake.ops(), &settings).unwrap();
            } else {
                // A kill runs no destructors. It ends the lock.
                let tuning = apply_with(fake.ops(), &settings).unwrap();
                fs::remove_file(journal::folder(&fake.root).join("tune.lock")).unwrap();
                std::mem::forget(tuning);
            }
            fake.left.set(usize::MAX);
            if is_kept {
                let changed = fake.state();
                assert!(journal::restore_with(&*fake).unwrap().is_empty(), "the next run leaves kept settings alone");
                assert_eq!(fake.state(), changed);
            }
            let restored = if is_kept { revert_with(&*fake).unwrap() } else { journal::restore_with(&*fake).unwrap() };
            assert_eq!(fake.state(), before, "after {left} writes");
            journals += restored.len();
            assert!(restored.iter().all(|r| r.put_back.failed.is_empty() && r.put_back.changed_since.is_empty()));
            assert!(revert_with(&*fake).unwrap().is_empty(), "everything is undone");
        }
    }
    assert!(journals >= 2 * all, "{journals}");
}

#[test]
fn a_second_tune_adds_to_the_first_and_values_of_others_are_kept() {
    let fake = Fake::new();
    let before = fake.state();
    let keep = |text: &str| {
        let settings = chosen_with(&*fake, &[text.parse().unwrap()], None).unwrap();
        keep_with(fake.ops(), &settings).unwrap()
    };
    keep("memory.swappiness=10");
    keep("memory.thp=madvise");
    let again = keep("memory.swappiness=20");
    assert_eq!((ids(&again.applied), again.refused.len()), (vec!["memory.swappiness"], 0));
    assert_eq!(in_force(&fake.root), 3);
    fake.put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
    let restored = revert_with(&*fake).unwrap();
    assert_eq!(restored.iter().map(|r| r.purpose).collect::<Vec<_>>(), [Purpose::KeptTuning]);
    assert_eq!(restored[0].put_back.changed_since, ["/sys/kernel/mm/transparent_hugepage/enabled: never"]);
    let text = restored[0].in_words();
    assert!(text.starts_with("changes of `punctual tune --yes`: restored 2 settings"), "{text}");
    let mut expected = before;
    expected.insert("sys/kernel/mm/transparent_hugepage/enabled".to_owned(), "always madvise [never]".to_owned());
    assert_eq!(fake.state(), expected);
    assert_eq!(in_force(&fake.root), 0);
}

#[test]
fn a_killed_run_on_top_of_kept_settings_is_undone_first() {
    let fake = Fake::new();
    let before = fake.state();
    let settings = |text: &str| chosen_with(&*fake, &[text.parse().unwrap()], None).unwrap();
    keep_with(fake.ops(), &settings("memory.swappiness=10")).unwrap();
    assert_eq!(journal::left_behind(&fake.root), [] as [u32; 0], "kept settings are no leftovers");
    std::mem::forget(apply_with(fake.ops(), &settings("memory.swappiness=20")).unwrap());
    fs::remove_file(journal::folder(&fake.root).join("tune.lock")).unwrap();
    assert_eq!(journal::left_behind(&fake.root), [std::process::id()]);
    let restored = revert_with(&*fake).unwrap();
    assert_eq!(restored.iter().map(|r| r.purpose).collect::<Vec<_>>(), [Purpose::Tuning, Purpose::KeptTuning]);
    assert_eq!(fake.state(), before);
    assert_eq!(journal::left_behind(&fake.root), [] as [u32; 0]);
}

#[test]
fn links_never_lead_out_of_a_recorded_machine() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (root, other) = (Root::at(folder.path()), Root::at(outside.path()));
    let entries = || fs::read_dir(outside.path()).unwrap().count();
    // The journals of another machine.
    keep_files(&other, &unit("x")).unwrap();
    fs::create_dir_all(outside.path().join("run")).unwrap();
    for name in ["run", "var"] {
        symlink(outside.path().join(name), folder.path().join(name)).unwrap();
    }
    let error = revert(&root).unwrap_err().to_string();
    assert!(error.contains("leads out of") && error.ends_with(": remove what is there, and run again"), "{error}");
    assert!(journal::restore_all(&root).unwrap().is_empty());
    fs::remove_file(folder.path().join("run")).unwrap();
    assert!(keep_files(&root, &unit("x")).unwrap_err().to_string().contains("leads out of"));
    assert!(revert(&root).unwrap().is_empty());
    assert_eq!(fs::read_dir(outside.path().join("var/lib/punctual")).unwrap().count(), 1, "the other journal stays");
    fs::remove_file(folder.path().join("var")).unwrap();
    // Files of systemd.
    fs::create_dir_all(folder.path().join("etc/systemd")).unwrap();
    symlink(outside.path(), folder.path().join("etc/systemd/system")).unwrap();
    let before = entries();
    let failed = keep_files(&root, &unit("x")).unwrap().failed;
    assert!(failed.len() == 2 && failed.iter().all(|text| text.contains("leads out of")), "{failed:?}");
    assert_eq!(entries(), before);
    // A file of the kernel, and the lock.
    fs::create_dir_all(folder.path().join("proc/sys/vm")).unwrap();
    symlink(outside.path().join("swappiness"), folder.path().join("proc/sys/vm/swappiness")).unwrap();
    fs::write(outside.path().join("swappiness"), "60").unwrap();
    assert!(SystemOps::write(&root, "proc/sys/vm/swappiness", "1").is_err());
    assert_eq!(other.read("swappiness").as_deref(), Some("60"));
    let lock = journal::folder(&root).join("tune.lock");
    fs::remove_file(&lock).unwrap();
    symlink(outside.path().join("new"), &lock).unwrap();
    let error = revert(&root).unwrap_err().to_string();
    assert!(
        error.contains("it is a symbolic link") && error.ends_with("remove what is there, and run again"),
        "{error}"
    );
    assert!(!other.exists("new"));
}

#[test]
fn only_files_of_the_table_are_written() {
    let fake = Fake::new();
    keep_with(fake.ops(), &fake.all()).unwrap();
    let written: BTreeSet<String> = fake.written.borrow().iter().cloned().collect();
    let files: Vec<&String> =
        written.iter().filter(|path| !path.starts_with("thread") && !path.starts_with("affinity")).collect();
    assert!(files.len() >= 15 && files.iter().all(|path| is_tuned_file(path)), "{files:?}");
    for path in [
        "proc/sys/kernel/core_pattern",
        "proc/sys/kernel/../vm/swappiness",
        "sys/devices/system/cpu/cpu/cpufreq/scaling_governor",
        "sys/devices/system/cpu/cpux/cpufreq/scaling_governor",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor/x",
        "sys/bus/pci/devices/../power/control",
        "sys/bus/pci/devices//power/control",
        "sys/bus/pci/devices/0000:00:02.0/remove",
        "/proc/sys/vm/swappiness",
        "",
    ] {
        assert!(!is_tuned_file(path), "{path}");
    }
}

#[test]
fn ids_are_unique_and_name_findings() {
    let ids: BTreeSet<&str> = DEFINITIONS.iter().map(|definition| definition.id).collect();
    assert_eq!(ids.len(), DEFINITIONS.len());
    let findings: BTreeSet<&str> = crate::checks().map(|check| check.id).collect();
    for Definition { id, finding, values, effect, risk, .. } in DEFINITIONS {
        assert!(finding.is_none_or(|finding| findings.contains(finding)), "{id}");
        assert!(!findings.contains(id) || *finding == Some(*id), "{id}");
        assert!([values, effect, risk].iter().all(|text| !text.is_empty()), "{id}");
        assert!(effect.chars().count() <= 29, "{id}");
    }
}

#[test]
fn every_setting_is_documented() {
    let document = include_str!("../../../../docs/tune.md");
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    let missing = DEFINITIONS.iter().filter(|definition| {
        let id = format!("`{}`", definition.id);
        !rows.iter().any(|row| row.split('|').nth(1).is_some_and(|ids| ids.contains(&id)))
    });
    assert_eq!(missing.map(|definition| definition.id).collect::<Vec<_>>(), [] as [&str; 0]);
}

/// Each setting that would change is one that `check` complains about, on each recorded machine and for each limit of a
/// use, from 1 us to 1 s.
#[test]
fn no_plan_changes_what_the_check_finds_good() {
    use FindingState::{NotApplicable, Ok};
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    let machines = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut judged = BTreeSet::new();
    for folder in machines.filter(|path| path.is_dir() && !path.ends_with("findings")) {
        let root = Root::at(&folder);
        let machine = facts(&root);
        for limit_ns in [None].into_iter().chain((0..7).map(|power| Some(1000 * 10_u64.pow(power)))) {
            let found = crate::findings(&root, &machine, limit_ns, None);
            let plan = plan(&root, &Need { limit_ns, ..Need::default() }).unwrap();
            let lifts_limit = plan.changes.iter().any(|setting| setting.id == "cpu.max_freq");
            for setting in &plan.changes {
                let Some(id) = definition(setting.id).unwrap().finding else { continue };
                let finding = found.iter().find(|finding| finding.id == id).unwrap();
                judged.insert(setting.id);
                let is_good = matches!(finding.state, Ok | NotApplicable);
                assert!(
                    !is_good || setting.id == "cpu.governor" && lifts_limit,
                    "{} for {limit_ns:?}: {} would change, but {finding:?}",
                    folder.display(),
                    setting.id
                );
            }
        }
    }
    assert!(judged.len() > 8 && judged.contains("cpu.governor"), "{judged:?}");
}

/// A limit that `tune` has set is good for `check`, and disabled states do not count for either.
#[test]
fn check_and_tune_judge_idle_states_alike() {
    let fake = Rc::new(Fake::new());
    for cpu in 0..2 {
        for (state, exit_us) in [("state0", "0"), ("state1", "2"), ("state2", "230")] {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/{state}");
            fake.put(&format!("{folder}/name"), state);
            fake.put(&format!("{folder}/latency"), exit_us);
            fake.put(&format!("{folder}/disable"), "0");
        }
    }
    let judge = || {
        let found = crate::findings(&fake.root, &facts(&fake.root), None, None);
        let state = found.into_iter().find(|finding| finding.id == "cpu.idle_states").unwrap().state;
        let plan = fake.plan(&Need::default());
        let has = |settings: &[Setting]| settings.iter().any(|setting| setting.id == "cpu.idle_states");
        (state, has(&plan.changes), has(&plan.right))
    };
    let limit = |cpu: u32, value: &str| fake.put(&facts::latency_limit(cpu), value);
    assert_eq!(judge(), (FindingState::Warn, true, false));
    limit(0, "10");
    assert_eq!(judge(), (FindingState::Warn, true, false), "CPU 1 has no limit");
    for value in ["10", "n/a", "100"] {
        limit(0, value);
        limit(1, value);
        assert_eq!(judge(), (FindingState::Ok, false, true), "{value}");
    }
    limit(0, "0");
    limit(1, "0");
    for cpu in 0..2 {
        fake.put(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state2/disable"), "1");
    }
    assert_eq!(judge(), (FindingState::Ok, false, false));
}

/// For every file that a setting would write: an old value that the setting does not know stops the setting, and only a
/// message names the file.
#[test]
fn an_old_value_that_is_not_understood_stops_its_setting() {
    let fake = Fake::new();
    let mut judged = BTreeSet::new();
    for setting in fake.all() {
        let files = setting.writes.iter().filter_map(|write| match &write.target {
            Target::File(path) => Some(path.clone()),
            _ => None,
        });
        for path in files {
            let old = fake.root.read(&path).unwrap();
            for garbage in ["", "fast!", "-7", "1 2", "[a] [b]", "default performance", "99999999999999999999"] {
                // An interrupt without a CPU has an empty list.
                if garbage.is_empty() && setting.id == "irq.affinity" {
                    continue;
                }
                fake.put(&path, garbage);
                let set = vec![Choice { id: setting.id, value: None }];
                let set = if setting.id == "cpu.min_freq" { vec!["cpu.min_freq=800MHz".parse().unwrap()] } else { set };
                let plan = fake.plan(&Need { cpus: Some("1".parse().unwrap()), set, ..Need::default() });
                let is_it = |other: &&Setting| other.id == setting.id;
                assert!(
                    plan.changes.iter().chain(&plan.right).find(is_it).is_none(),
                    "{}: {path} = {garbage}",
                    setting.id
                );
                let reason = &plan.not_here.iter().find(|not| not.id == setting.id).unwrap().reason;
                assert!(reason.contains(&path), "{}: {path} = {garbage}: {reason}", setting.id);
                judged.insert(setting.id);
            }
            fake.put(&path, &old);
        }
    }
    assert!(judged.len() >= 14, "{judged:?}");
    fake.put("sys/module/pcie_aspm/parameters/policy", "performance");
    let reason = chosen_with(&*fake, &["power.aspm".parse().unwrap()], None).unwrap_err().to_string();
    assert_eq!(
        reason,
        "power.aspm cannot be changed: /sys/module/pcie_aspm/parameters/policy is `performance`, but should be a list with \
         the value in force in brackets: it is left as it is"
    );
    assert!(fake.written.borrow().is_empty());
}

#[test]
fn only_one_of_the_settings_of_a_file_is_planned() {
    let fake = Fake::new();
    let plan = |set: &[&str]| {
        let set = set.iter().map(|text| text.parse().unwrap()).collect();
        fake.plan(&Need { set, ..Need::default() })
    };
    let left_out = |plan: &Plan, id: &str| {
        let not = plan.not_here.iter().find(|not| not.id == id)?;
        Some((not.reason.clone(), not.is_named))
    };
    let max_freq = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq";
    // The user named one of them.
    let fixed = plan(&["cpu.frequency=1000MHz"]);
    assert!(ids(&fixed.changes).contains(&"cpu.frequency") && !ids(&fixed.changes).contains(&"cpu.max_freq"));
    assert_eq!(left_out(&fixed, "cpu.max_freq"), Some((format!("cpu.frequency sets {max_freq} to 1000000"), false)));
    assert_eq!(keep_with(fake.ops(), &fixed.changes).unwrap().refused, []);
    revert_with(&*fake).unwrap();
    // Both: the first of the table.
    let both = plan(&["cpu.frequency=1000MHz", "cpu.max_freq=1200MHz"]);
    assert_eq!(left_out(&both, "cpu.frequency"), Some((format!("cpu.max_freq sets {max_freq} to 1200000"), true)));
    // The same value for both is no conflict.
    let same = plan(&["cpu.frequency=max"]);
    assert!(ids(&same.changes).contains(&"cpu.frequency") && ids(&same.changes).contains(&"cpu.max_freq"));
}

#[test]
fn a_default_that_the_machine_does_not_offer_is_no_mistake_of_the_user() {
    let fake = Fake::new();
    for cpu in 0..2 {
        let file = |name: &str| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
        fake.put(&file("scaling_available_governors"), "ondemand powersave");
        fake.put(&file("energy_performance_available_preferences"), "default balance_performance power");
    }
    for id in ["cpu.governor", "cpu.energy_preference"] {
        let plan = fake.plan(&Need { only: vec![id], ..Need::default() });
        assert!(
            plan.not_here[0].is_named
                && plan.not_here[0].reason.starts_with("CPU 0 does not offer `performance`: it offers ")
        );
    }
    let wrong = chosen_with(&*fake, &["cpu.governor=fast".parse().unwrap()], None).unwrap_err();
    assert!(matches!(wrong, PlanError::Value { .. }));
}

#[test]
fn the_missing_limit_of_a_frequency_is_named() {
    let fake = Fake::new();
    let reason = || {
        let plan = fake.plan(&Need { only: vec!["cpu.max_freq"], ..Need::default() });
        plan.not_here.into_iter().map(|not| not.reason).next()
    };
    assert_eq!(reason(), None);
    for (name, text) in [("cpuinfo_min_freq", "400000"), ("cpuinfo_max_freq", "1600000")] {
        let path = format!("sys/devices/system/cpu/cpu1/cpufreq/{name}");
        fs::remove_file(fake.root.path(&path)).unwrap();
        assert_eq!(reason(), Some(format!("this machine has no /{path}")));
        fake.put(&path, "fast");
        assert!(reason().unwrap().starts_with(&format!("/{path} is `fast`")));
        fake.put(&path, text);
    }
}

/// One rule for all findings: if punctual set a file of the evidence, the finding says so until the user reverts it.
#[test]
fn findings_name_the_settings_that_tune_made() {
    let fake = Fake::new();
    fake.put("proc/cpuinfo", "flags : fpu ida\n");
    fake.put("proc/sys/kernel/sched_rt_period_us", "1000000");
    fake.put("sys/devices/system/cpu/isolated", "1");
    let found = || crate::findings(&fake.root, &facts(&fake.root), None, None);
    let set_by_tune = || -> Vec<String> {
        let set = found().into_iter().filter(|finding| finding.title.contains("by `punctual tune`; undo: "));
        set.map(|finding| finding.id).collect()
    };
    assert_eq!(set_by_tune(), [] as [&str; 0]);
    let fixed = chosen_with(&*fake, &["cpu.frequency=1000MHz".parse().unwrap()], None).unwrap();
    keep_with(fake.ops(), &fixed).unwrap();
    assert_eq!(set_by_tune(), ["cpu.governor", "cpu.frequency_limit"]);
    revert_with(&*fake).unwrap();
    keep_with(fake.ops(), &fake.all()).unwrap();
    let set = set_by_tune();
    for id in [
        "cpu.workqueues",
        "cpu.statistics",
        "cpu.latency_request",
        "rt.throttling",
        "kernel.watchdog",
        "kernel.timer_migration",
        "memory.thp",
        "memory.ksm",
        "power.aspm",
        "power.pci",
    ] {
        assert!(
            set.iter().any(|set| set == id),
            "{id}: {set:?} {:#?}",
            found().iter().find(|finding| finding.id == id)
        );
    }
    // Others have changed it since.
    fake.put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
    assert!(!set_by_tune().contains(&"memory.thp".to_owned()));
    revert_with(&*fake).unwrap();
    assert_eq!(set_by_tune(), [] as [&str; 0]);
}

/// The effect of a setting is not promised for each value of the user.
#[test]
fn an_effect_is_promised_only_for_values_that_have_it() {
    let fake = Fake::new();
    fake.put("sys/devices/system/cpu/intel_pstate/no_turbo", "1");
    fake.put("sys/module/pcie_aspm/parameters/policy", "default [performance] powersave powersupersave");
    fake.put("sys/bus/pci/devices/0000:00:02.0/power/control", "on");
    fake.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    fake.put("sys/kernel/mm/ksm/run", "0");
    let effect = |text: &str| {
        let settings = chosen_with(&*fake, &[text.parse().unwrap()], Some(&"1".parse().unwrap())).unwrap();
        assert!(!settings[0].is_right(), "{text}");
        let has_risk = settings[0].risk == definition(settings[0].id).unwrap().risk;
        assert_eq!(has_risk, settings[0].effect != "as you asked", "{text}");
        settings[0].effect
    };
    for (value, other) in [
        ("cpu.governor=performance", None),
        ("cpu.energy_preference=performance", Some("cpu.energy_preference=power")),
        ("cpu.idle_states=0us", Some("cpu.idle_states=1000us")),
        ("cpu.statistics=60", None),
        ("rt.throttling=off", Some("rt.throttling=500000")),
        ("memory.thp=never", Some("memory.thp=always")),
        ("memory.ksm=off", Some("memory.ksm=on")),
        ("memory.swappiness=1", Some("memory.swappiness=50")),
        ("memory.writeback=1000", Some("memory.writeback=100")),
        ("kernel.watchdog=off", None),
        ("kernel.timer_migration=off", None),
    ] {
        let id = value.split('=').next().unwrap();
        assert_eq!(effect(value), definition(id).unwrap().effect, "{value}");
        assert_ne!(effect(value), "as you asked");
        if let Some(other) = other {
            assert_eq!(effect(other), "as you asked", "{other}");
        }
    }
    for value in ["cpu.turbo=on", "power.pci=auto", "power.aspm=powersave", "memory.numa_balancing=on"] {
        assert_eq!(effect(value), "as you asked", "{value}");
    }
}

#[test]
fn the_limit_of_real_time_threads_is_set_where_the_kernel_has_it() {
    let fake = Fake::new();
    let plan = |value: &str| {
        let need = Need { only: vec!["rt.throttling"], set: vec![value.parse().unwrap()], ..Need::default() };
        plan_with(&*fake, &need).map(|plan| plan.changes.len()).map_err(|error| error.to_string())
    };
    let too_high = "rt.throttling: must be -1 to 1000000 (got 1500000)".to_owned();
    assert_eq!(plan("rt.throttling=1500000"), Err(too_high));
    fake.put("proc/sys/kernel/sched_rt_period_us", "2000000");
    assert_eq!(plan("rt.throttling=1500000"), Ok(1));
    // Since 6.12, other kernels ignore it.
    fake.put("proc/sys/kernel/osrelease", "6.12.0");
    for (config, expected) in [("CONFIG_RT_GROUP_SCHED=y\n", 1), ("# CONFIG_RT_GROUP_SCHED is not set\n", 0)] {
        fake.put("boot/config-6.12.0", config);
        assert_eq!(plan("rt.throttling=off"), Ok(expected), "{config}");
    }
}
