//! Keeping CPUs out of their idle states while they are measured.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use record::Setting;
use thiserror::Error;

use crate::{
    CpuList, Root,
    hands::Hands,
    journal::{Journal, Purpose, Undo},
};

const DMA_LATENCY: &str = "dev/cpu_dma_latency";

/// The trap of this file: `n/a` tolerates no latency at all, and `0` lifts every limit.
const NO_LATENCY: &str = "n/a";

/// Holds CPUs out of every idle state that takes time to leave, until released or dropped.
///
/// It asks for the measured CPUs alone through `power/pm_qos_resume_latency_us`, or for all CPUs through
/// `/dev/cpu_dma_latency` where that is not possible. The kernel forgets the second when this process ends, however it
/// ends; the first stays behind after SIGKILL, until the journal restores it.
#[derive(Debug)]
pub struct AwakeHold(Kind);

#[derive(Debug)]
enum Kind {
    PerCpu { root: Root, journal: Journal, held: Vec<Held> },
    AllCpus { file: Option<File>, path: PathBuf, before: String, during: String },
}

/// One CPU's file, and what it said.
#[derive(Debug)]
struct Held {
    path: String,
    before: String,
    during: String,
}

/// Why CPUs cannot be held awake.
#[derive(Debug, Error)]
pub enum HoldError {
    /// This process lacks the right.
    #[error("no right to hold CPUs awake: run as root, or grant it with `sudo chmod a+rw /{DMA_LATENCY}`")]
    Forbidden,
    /// The kernel offers neither way.
    #[error(
        "this kernel cannot hold CPUs awake (neither pm_qos_resume_latency_us nor /{DMA_LATENCY}): boot with `cpuidle.off=1`"
    )]
    NotSupported,
    /// The kernel answered with an error.
    #[error("cannot hold CPUs awake through {path} ({source}): boot with `cpuidle.off=1` instead")]
    Failed {
        /// The file.
        path: String,
        /// What the kernel answered.
        source: io::Error,
    },
}

impl AwakeHold {
    /// Holds `cpus` awake from now on.
    ///
    /// # Errors
    /// [`HoldError`]; nothing stays changed then.
    pub fn take(root: &Root, cpus: &CpuList) -> Result<Self, HoldError> {
        Self::per_cpu(root, cpus).or_else(|per_cpu| Self::all_cpus(&root.path(DMA_LATENCY), &per_cpu))
    }

    fn per_cpu(root: &Root, cpus: &CpuList) -> io::Result<Self> {
        let read = |cpu| {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us");
            Ok(Held { before: text(&root.path(&path))?, path, during: NO_LATENCY.to_owned() })
        };
        let held = cpus.iter().map(read).collect::<io::Result<Vec<Held>>>()?;
        let mut journal = Journal::begin(root, Purpose::Awake).map_err(io::Error::other)?;
        journal.promise(held.iter().map(Held::undo)).map_err(io::Error::other)?;
        // From here on, dropping it restores.
        let hold = Self(Kind::PerCpu { root: root.clone(), journal, held });
        let Kind::PerCpu { held, .. } = &hold.0 else { return Ok(hold) };
        for held in held {
            root.write(&held.path, NO_LATENCY)?;
            if text(&root.path(&held.path))? != NO_LATENCY {
                return Err(io::Error::other("it did not take n/a"));
            }
        }
        Ok(hold)
    }

    /// `per_cpu` is why the finer way failed: the right that is lacking there is the better thing to tell.
    fn all_cpus(path: &Path, per_cpu: &io::Error) -> Result<Self, HoldError> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let held = file.and_then(|mut file| {
            let before = dma_latency(path)?;
            // The kernel takes the four bytes of an i32 and nothing shorter; the request lives as long as the file is open.
            file.write_all(&0_i32.to_ne_bytes())?;
            let during = dma_latency(path)?;
            if during != "0 us" {
                return Err(io::Error::other(format!("it still says {during}")));
            }
            Ok(Self(Kind::AllCpus { file: Some(file), path: path.to_owned(), before, during }))
        });
        held.map_err(|source| match (source.kind(), per_cpu.kind()) {
            (io::ErrorKind::PermissionDenied, _) => HoldError::Forbidden,
            (io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied) => HoldError::Forbidden,
            (io::ErrorKind::NotFound, _) => HoldError::NotSupported,
            _ => HoldError::Failed { path: path.display().to_string(), source },
        })
    }

    /// How they are held: `pm_qos` for the CPUs asked for, `cpu_dma_latency` for all CPUs.
    #[must_use]
    pub fn how(&self) -> &'static str {
        match self.0 {
            Kind::PerCpu { .. } => "pm_qos",
            Kind::AllCpus { .. } => "cpu_dma_latency",
        }
    }

    /// Lets the CPUs sleep again, and tells what was set, read back before, during and after.
    #[must_use]
    pub fn release(mut self) -> Vec<Setting> {
        let setting = |path: &Path, before: &str, during: &str, after: io::Result<String>| Setting {
            name: path.display().to_string(),
            before: before.to_owned(),
            during: during.to_owned(),
            after: after.ok(),
        };
        match &mut self.0 {
            Kind::PerCpu { root, journal, held } => {
                let _ = journal.put_back(root);
                let told = |held: &Held| {
                    let path = root.path(&held.path);
                    setting(&path, &held.before, &held.during, text(&path))
                };
                held.iter().map(told).collect()
            }
            Kind::AllCpus { file, path, before, during } => {
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

impl Drop for AwakeHold {
    fn drop(&mut self) {
        if let Kind::PerCpu { root, journal, .. } = &self.0 {
            let _ = journal.put_back(root);
        }
    }
}

fn text(path: &Path) -> io::Result<String> {
    Ok(std::fs::read_to_string(path)?.trim().to_owned())
}

/// The latency that all requests together leave, as four bytes in the machine's order.
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
    fn holds_the_cpus_asked_for_and_restores_each_to_its_own_value() {
        let (_folder, root) = machine(&[(CPU0, b"0\n"), (CPU1, b"50\n"), (DMA_LATENCY, &[1, 0, 0, 0])]);
        let hold = AwakeHold::take(&root, &both()).unwrap();
        assert_eq!(hold.how(), "pm_qos");
        assert_eq!(root.read(CPU0).as_deref(), Some("n/a"));
        let settings = hold.release();
        let values: Vec<_> = settings.iter().map(|s| [&s.before, &s.during, s.after.as_ref().unwrap()]).collect();
        assert_eq!(values, [["0", "n/a", "0"], ["50", "n/a", "50"]]);
        assert!(settings[1].name.ends_with(CPU1));
    }

    #[test]
    fn dropping_restores() {
        let (_folder, root) = machine(&[(CPU0, b"0\n"), (CPU1, b"0\n")]);
        drop(AwakeHold::take(&root, &both()).unwrap());
        assert_eq!(root.read(CPU0).as_deref(), Some("0"));
    }

    #[test]
    fn the_journal_restores_what_a_killed_run_held() {
        let (_folder, root) = machine(&[(CPU0, b"0\n"), (CPU1, b"50\n")]);
        std::mem::forget(AwakeHold::take(&root, &both()).unwrap());
        fs::write(root.path(CPU0), "20").unwrap();
        let restored = crate::journal::restore(&root);
        assert_eq!((restored.len(), restored[0].purpose, restored[0].put_back.settings), (1, Purpose::Awake, 1));
        assert_eq!(restored[0].put_back.changed_since, [format!("/{CPU0}: 20")], "someone else's since");
        assert_eq!(root.read(CPU1).as_deref(), Some("50"));
        assert!(crate::journal::restore(&root).is_empty());
    }

    #[test]
    fn falls_back_to_all_cpus_and_leaves_no_cpu_half_held() {
        let two_thousand_seconds = 2_000_000_000_i32.to_ne_bytes();
        let (_folder, root) = machine(&[(CPU0, b"0\n"), (DMA_LATENCY, &two_thousand_seconds)]);
        let hold = AwakeHold::take(&root, &both()).unwrap();
        assert_eq!(hold.how(), "cpu_dma_latency");
        assert_eq!(root.read(CPU0).as_deref(), Some("0"), "CPU 1 has no such file");
        assert_eq!(fs::read(root.path(DMA_LATENCY)).unwrap(), [0; 4]);
        let settings = hold.release();
        assert_eq!((&*settings[0].before, &*settings[0].during), ("2000000000 us", "0 us"));
    }

    #[test]
    fn tells_why_not() {
        let (_folder, root) = machine(&[(CPU0, b"0\n")]);
        assert!(matches!(AwakeHold::take(&root, &both()), Err(HoldError::NotSupported)));
        assert_eq!(root.read(CPU0).as_deref(), Some("0"));
        let (_folder, root) = machine(&[("dev/cpu_dma_latency/folder", b"")]);
        assert!(matches!(AwakeHold::take(&root, &both()), Err(HoldError::Failed { .. })));
    }

    /// The kernel's own file, where this process may use it.
    #[test]
    fn the_kernel_honours_the_fallback() {
        let system = Path::new("/dev/cpu_dma_latency");
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        fs::create_dir(root.path("dev")).unwrap();
        std::os::unix::fs::symlink(system, root.path(DMA_LATENCY)).unwrap();
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
