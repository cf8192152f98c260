//! A machine whose files are in a temporary folder.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fs, io,
    rc::Rc,
};

use sys::sched::Policy;
use tempfile::TempDir;

use super::super::*;

/// A machine with two CPUs that share no frequency, whose kernel behaves as Linux does where it matters here.
#[derive(Debug)]
pub(super) struct Fake {
    _folder: TempDir,
    pub(super) root: Root,
    /// The number of writes until all further ones fail, as after SIGKILL.
    pub(super) left: Cell<usize>,
    pub(super) written: RefCell<Vec<String>>,
}

const FILES: &[(&str, &str)] = &[
    ("sys/devices/system/cpu/online", "0-1"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("sys/devices/system/cpu/nohz_full", "1"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL"),
    ("sys/devices/system/cpu/cpu1/cpuidle/state0/name", "POLL"),
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
    pub(super) fn new() -> Rc<Self> {
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

    pub(super) fn put(&self, path: &str, text: &str) {
        fs::create_dir_all(self.root.path(path).parent().unwrap()).unwrap();
        fs::write(self.root.path(path), text).unwrap();
    }

    pub(super) fn thread(&self, id: u32, name: &str, policy: u32, priority: u32) {
        let zeros = "0 ".repeat(17);
        let stat =
            format!("{id} ({name}) S 2 0 0 0 0 2097152 0 0 0 0 0 0 0 0 -51 0 1 0 100 {zeros}{priority} {policy}");
        self.put(&format!("proc/{id}/stat"), &stat);
        self.put(&format!("proc/{id}/task/{id}/stat"), &stat);
        self.put(&format!("proc/{id}/comm"), name);
        self.put(&format!("proc/{id}/task/{id}/comm"), name);
    }

    /// Sets the CPUs that a thread may use. Without them it is not a task whose affinity can be read.
    pub(super) fn allow(&self, id: u32, cpus: &str) {
        self.put(&format!("proc/{id}/task/{id}/status"), &format!("Name:\tx\nCpus_allowed_list:\t{cpus}\n"));
    }

    pub(super) fn allowed(&self, id: u32) -> String {
        let task = crate::tasks::all(&self.root).into_iter().find(|task| task.id == id);
        task.map(|task| task.cpus.to_string()).unwrap()
    }

    /// The contents of all files except journals.
    pub(super) fn state(&self) -> BTreeMap<String, String> {
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

    pub(super) fn ops(self: &Rc<Self>) -> Rc<dyn SystemOps> {
        Rc::<Self>::clone(self)
    }

    pub(super) fn plan(&self, need: &Need) -> Plan {
        plan_with(self, need).unwrap()
    }

    /// Everything that can be changed here, with values for the settings that need one.
    pub(super) fn all(&self) -> Vec<Setting> {
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
