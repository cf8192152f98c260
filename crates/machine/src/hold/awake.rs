//! Keeps CPUs out of their idle states during a measurement.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    rc::Rc,
};

use record::Setting;
use thiserror::Error;

use super::SettingsWatch;
use crate::{
    CpuList, Root,
    journal::{Journal, Purpose, Undo},
    program_limit::DEVICE,
    system_ops::SystemOps,
};

/// The latency limit that forbids every idle state. Note that `0` removes the limit.
const NO_LATENCY: &str = "n/a";

/// Keeps CPUs out of every idle state with an exit latency, until released or dropped.
///
/// Requests this for the measured CPUs through `power/pm_qos_resume_latency_us`, or for all CPUs through
/// `/dev/cpu_dma_latency` if that fails. The kernel drops the second request when this process ends for any reason;
/// after SIGKILL the first one remains until the journal undoes it.
#[derive(Debug)]
pub struct AwakeHold(Method);

#[derive(Debug)]
enum Method {
    PerCpu { journal: Journal, held: Vec<Held> },
    AllCpus { file: Option<File>, path: PathBuf, before: String, during: String },
}

/// The file of one CPU with its values.
#[derive(Debug)]
struct Held {
    path: String,
    before: String,
    during: String,
}

/// Error: CPUs cannot be kept awake.
#[derive(Debug, Error)]
pub enum HoldError {
    /// This process lacks the right.
    #[error("no right to keep CPUs awake: run as root, or grant it with `sudo chmod a+rw /{DEVICE}`")]
    Forbidden,
    /// The kernel has neither interface.
    #[error(
        "this kernel cannot keep CPUs awake (neither pm_qos_resume_latency_us nor /{DEVICE}): boot with `cpuidle.off=1`"
    )]
    NotSupported,
    /// The kernel returned an error.
    #[error("cannot keep CPUs awake with {path} ({source}): boot with `cpuidle.off=1` instead")]
    Failed {
        /// The file.
        path: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl AwakeHold {
    /// Keeps `cpus` awake from now on.
    ///
    /// # Errors
    /// [`HoldError`]; nothing stays changed then.
    pub fn take(root: &Root, cpus: &CpuList) -> Result<Self, HoldError> {
        Self::per_cpu(root, cpus).or_else(|per_cpu| Self::all_cpus(&root.path(DEVICE), &per_cpu))
    }

    fn per_cpu(root: &Root, cpus: &CpuList) -> io::Result<Self> {
        let read = |cpu| {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
            Ok(Held { before: text(&root.path(&path))?, path, during: NO_LATENCY.to_owned() })
        };
        let held = cpus.iter().map(read).collect::<io::Result<Vec<Held>>>()?;
        let mut journal = Journal::begin(Rc::new(root.clone()), Purpose::Awake).map_err(io::Error::other)?;
        journal.record(held.iter().map(Held::undo)).map_err(io::Error::other)?;
        // From here on, an error drops the journal, which undoes the changes.
        for held in &held {
            root.write(&held.path, NO_LATENCY)?;
            if text(&root.path(&held.path))? != NO_LATENCY {
                return Err(io::Error::other("the kernel did not accept n/a"));
            }
        }
        Ok(Self(Method::PerCpu { journal, held }))
    }

    /// `per_cpu` is the error of the first method: a missing right there is the better error to report.
    fn all_cpus(path: &Path, per_cpu: &io::Error) -> Result<Self, HoldError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let held = file.and_then(|mut file| {
            let before = dma_latency(path)?;
            // The kernel accepts only the four bytes of an i32. The request lasts while the file is open.
            file.write_all(&0_i32.to_ne_bytes())?;
            let during = dma_latency(path)?;
            if during != "0 us" {
                return Err(io::Error::other(format!("the latency limit is still {during}")));
            }
            Ok(Self(Method::AllCpus { file: Some(file), path: path.to_owned(), before, during }))
        });
        held.map_err(|source| match (source.kind(), per_cpu.kind()) {
            (io::ErrorKind::PermissionDenied, _) => HoldError::Forbidden,
            (io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied) => HoldError::Forbidden,
            (io::ErrorKind::NotFound, _) => HoldError::NotSupported,
            _ => HoldError::Failed { path: path.display().to_string(), source },
        })
    }

    /// The method in use: `pm_qos` for the requested CPUs, `cpu_dma_latency` for all CPUs.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self.0 {
            Method::PerCpu { .. } => "pm_qos",
            Method::AllCpus { .. } => "cpu_dma_latency",
        }
    }

    /// Begins to watch for changes by others; `None` for `cpu_dma_latency`, because nobody can lift that request.
    #[must_use]
    pub fn watch(&self) -> Option<SettingsWatch> {
        match &self.0 {
            Method::PerCpu { journal, .. } => Some(SettingsWatch::start(journal)),
            Method::AllCpus { .. } => None,
        }
    }

    /// Lets the CPUs sleep again. Returns the setting of each file before, during and after.
    #[must_use]
    pub fn release(mut self) -> Vec<Setting> {
        let setting = |path: &Path, before: &str, during: &str, after: io::Result<String>| Setting {
            name: path.display().to_string(),
            before: before.to_owned(),
            during: during.to_owned(),
            after: after.ok(),
        };
        match &mut self.0 {
            Method::PerCpu { journal, held } => {
                journal.restore();
                let setting_of = |held: &Held| {
                    let path = journal.ops().root().path(&held.path);
                    setting(&path, &held.before, &held.during, text(&path))
                };
                held.iter().map(setting_of).collect()
            }
            Method::AllCpus { file, path, before, during } => {
                drop(file.take());
                vec![setting(path, before, during, dma_latency(path))]
            }
        }
    }
}

impl Held {
    fn undo(&self) -> Undo {
        Undo::File { path: self.path.clone(), before: self.before.clone(), during: self.during.clone() }
    }
}

fn text(path: &Path) -> io::Result<String> {
    Ok(std::fs::read_to_string(path)?.trim().to_owned())
}

/// The effective latency limit of all requests: four bytes in native order.
fn dma_latency(path: &Path) -> io::Result<String> {
    let mut bytes = [0; 4];
    File::open(path)?.read_exact(&mut bytes)?;
    Ok(format!("{} us", i32::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn machine(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for (path, bytes) in files {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), bytes).unwrap();
        }
        (folder, root)
    }

    const CPU0: &str = "sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us";
    const CPU1: &str = "sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us";

    fn both() -> CpuList {
        "0-1".parse().unwrap()
    }

    #[test]
    fn holds_the_requested_cpus_and_restores_each_value() {
        let (_folder, root) = machine(&[(CPU0, b"0\n"), (CPU1, b"50\n"), (DEVICE, &[1, 0, 0, 0])]);
        let hold = AwakeHold::take(&root, &both()).unwrap();
        assert_eq!(hold.method(), "pm_qos");
        assert_eq!(root.read(CPU0).as_deref(), Some("n/a"));
        let settings = hold.release();
        let values: Vec<_> = settings.iter().map(|s| [&s.before, &s.during, s.after.as_ref().unwrap()]).collect();
        assert_eq!(values, [["0", "n/a", "0"], ["50", "n/a", "50"]]);
        assert!(settings[1].name.ends_with(CPU1));
    }

    #[test]
    fn a_change_by_others_is_seen_once() {
        let (_folder, root) = machine(&[(CPU0, b"0\n"), (CPU1, b"0\n")]);
        let mut watch = AwakeHold::take(&root, &both()).map(|hold| (hold.watch().unwrap(), hold)).unwrap();
        assert_eq!(watch.0.check(), [] as [&str; 0]);
        fs::write(root.path(CPU1), "0").unwrap();
        assert_eq!(watch.0.check(), [format!("somebody changed /{CPU1} from `n/a` to `0`")]);
        assert_eq!(watch.0.check(), [] as [&str; 0]);
    }

    #[test]
    fn drop_restores() {
        let (_folder, root) = machine(&[(CPU0, b"0\n"), (CPU1, b"0\n")]);
        drop(AwakeHold::take(&root, &both()).unwrap());
        assert_eq!(root.read(CPU0).as_deref(), Some("0"));
    }

    #[test]
    fn journal_restores_after_a_kill() {
        let (_folder, root) = machine(&[(CPU0, b"0\n"), (CPU1, b"50\n")]);
        std::mem::forget(AwakeHold::take(&root, &both()).unwrap());
        fs::write(root.path(CPU0), "20").unwrap();
        let restored = crate::journal::restore(&root).unwrap();
        assert_eq!((restored.len(), restored[0].purpose, restored[0].put_back.settings), (1, Purpose::Awake, 1));
        assert_eq!(restored[0].put_back.changed_since, [format!("/{CPU0}: 20")], "changed by others since");
        assert_eq!(root.read(CPU1).as_deref(), Some("50"));
        assert!(crate::journal::restore(&root).unwrap().is_empty());
    }

    #[test]
    fn falls_back_to_all_cpus() {
        let two_thousand_seconds = 2_000_000_000_i32.to_ne_bytes();
        let (_folder, root) = machine(&[(CPU0, b"0\n"), (DEVICE, &two_thousand_seconds)]);
        let hold = AwakeHold::take(&root, &both()).unwrap();
        assert_eq!(hold.method(), "cpu_dma_latency");
        assert_eq!(root.read(CPU0).as_deref(), Some("0"), "CPU 1 has no such file");
        assert_eq!(fs::read(root.path(DEVICE)).unwrap(), [0; 4]);
        let settings = hold.release();
        assert_eq!((&*settings[0].before, &*settings[0].during), ("2000000000 us", "0 us"));
    }

    #[test]
    fn reports_why_it_failed() {
        let (_folder, root) = machine(&[(CPU0, b"0\n")]);
        assert!(matches!(AwakeHold::take(&root, &both()), Err(HoldError::NotSupported)));
        assert_eq!(root.read(CPU0).as_deref(), Some("0"));
        let (_folder, root) = machine(&[("dev/cpu_dma_latency/folder", b"")]);
        assert!(matches!(AwakeHold::take(&root, &both()), Err(HoldError::Failed { .. })));
    }

    /// Uses the kernel's own file if this process may.
    #[test]
    fn kernel_accepts_the_fallback() {
        let system = Path::new("/dev/cpu_dma_latency");
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        fs::create_dir(root.path("dev")).unwrap();
        std::os::unix::fs::symlink(system, root.path(DEVICE)).unwrap();
        match AwakeHold::take(&root, &both()) {
            Ok(hold) => {
                let settings = hold.release();
                assert_eq!(settings[0].during, "0 us");
                assert!(settings[0].after.is_some());
            }
            Err(HoldError::Forbidden) => assert!(system.exists()),
            Err(HoldError::NotSupported) => assert!(!system.exists()),
            Err(error) => panic!("{error}"),
        }
    }
}
