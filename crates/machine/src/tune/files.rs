//! Files of systemd that `punctual tune` creates: a unit that tunes this machine at each boot, and the scheduling of a
//! service. Reverting removes them, also after a reboot.

use std::{fs, io, rc::Rc, str::FromStr};

use super::{Lock, TuneError, check_journals, ops_of};
use crate::{
    CpuList, Root,
    init::SYSTEM_UNITS,
    journal::{Journal, JournalError, Purpose, Undo, undo_entries},
    system_ops::SystemOps,
};

const FOLDER: &str = "etc/systemd/system";
const UNIT: &str = "etc/systemd/system/punctual-tune.service";
/// A drop-in of the target in place of a link in its folder `.wants`: it is a file that contains its origin.
const ENABLED: &str = "etc/systemd/system/multi-user.target.d/50-punctual-tune.conf";
const SEARCH: &str = "etc/systemd/system/punctual-prove.service";
const SEARCH_ENABLED: &str = "etc/systemd/system/multi-user.target.d/50-punctual-prove.conf";
const DROP_IN: &str = "50-punctual.conf";
const MARK: &str = "# Written by `punctual tune`; `sudo punctual tune --revert` removes it.";

/// A service whose scheduling is set: `jackd`, `jackd:70`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The name of the unit, without `.service`.
    pub name: String,
    /// The priority of its threads under SCHED_FIFO, 1 to 99.
    pub priority: u8,
}

impl Service {
    /// The priority without one in the text: above interrupt threads (50), below the kernel's own threads (99).
    const PRIORITY: u8 = 80;
}

impl FromStr for Service {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, priority) = text.rsplit_once(':').map_or((text, None), |(name, priority)| (name, Some(priority)));
        let name = name.strip_suffix(".service").unwrap_or(name);
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-@.".contains(c);
        if name.is_empty() || name.len() > 200 || name.starts_with('.') || !name.chars().all(is_allowed) {
            return Err(format!("`{text}` is not a service: use its name, e.g. jackd, or with a priority jackd:70"));
        }
        let priority = match priority {
            None => Self::PRIORITY,
            Some(text) => match text.parse().ok().filter(|priority| (1..=99).contains(priority)) {
                Some(priority) => priority,
                None => return Err(format!("the priority of a service must be 1 to 99 (got {text})")),
            },
        };
        Ok(Self { name: name.to_owned(), priority })
    }
}

/// A file to create.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NewFile {
    /// Its path, without the leading slash.
    pub path: String,
    /// Its contents.
    pub text: String,
}

/// The highest priority that the threads of a service may take, unless the service has a higher one: the limit of audio
/// groups, below the kernel's own threads.
const LIMIT: u8 = 95;

/// The drop-in of a service: policy, priority, limits and CPUs of its threads.
#[must_use]
pub fn drop_in(service: &Service, cpus: Option<&CpuList>) -> NewFile {
    let Service { name, priority } = service;
    // systemd gives the service its own priority without this limit; its threads get theirs within it.
    let limit = LIMIT.max(*priority);
    let affinity = cpus.map(|cpus| format!("CPUAffinity={cpus}\n")).unwrap_or_default();
    let text = format!(
        "{MARK}\n[Service]\nCPUSchedulingPolicy=fifo\nCPUSchedulingPriority={priority}\n{affinity}LimitRTPRIO={limit}\n\
         LimitMEMLOCK=infinity\n"
    );
    NewFile { path: format!("{FOLDER}/{name}.service.d/{DROP_IN}"), text }
}

/// The folders with units of the services that each user has (systemd.unit(5)).
const USER_UNITS: [&str; 4] =
    ["etc/systemd/user", "usr/local/lib/systemd/user", "usr/lib/systemd/user", "lib/systemd/user"];

/// True if one of the folders has the unit of a service.
fn has_service(root: &Root, folders: &[&str], name: &str) -> bool {
    folders.iter().any(|folder| root.exists(&format!("{folder}/{name}.service")))
}

/// The reason why the drop-in of a service has no effect on this machine; `None` if it has one.
#[must_use]
pub fn without_effect(root: &Root, service: &Service) -> Option<String> {
    let Service { name, .. } = service;
    // `jackd@alice.service` is made from `jackd@.service`.
    let template = name.split_once('@').map(|(before, _)| format!("{before}@"));
    let names = [Some(name.clone()), template];
    let is_in = |folders: &[&str]| names.iter().flatten().any(|name| has_service(root, folders, name));
    match (is_in(&SYSTEM_UNITS), is_in(&USER_UNITS)) {
        (true, _) => None,
        (false, true) => Some(format!(
            "{name} is a service of users, which a file of the system does not schedule: give the user the right instead, see \
             `punctual setup`"
        )),
        (false, false) => Some(format!(
            "this machine has no unit {name}.service, so its file has no effect: `systemctl list-unit-files --type service` lists \
             them"
        )),
    }
}

/// Services that change the same settings. The unit starts after them, so that its values remain.
const OTHERS: &str = "tuned.service power-profiles-daemon.service tlp.service cpupower.service cpufrequtils.service \
                      thermald.service irqbalance.service tuned-ppd.service auto-cpufreq.service";
/// The ones that start after `multi-user.target`: TLP, and power-profiles-daemon after TLP (their units).
const AFTER_TARGET: [&str; 2] = ["tlp", "power-profiles-daemon"];

/// The unit that runs a command at each boot of the machine, and the file that makes systemd start it.
///
/// It is a part of `multi-user.target`, so that other units of the target can start after it. Only on a machine with TLP or
/// power-profiles-daemon it starts after the target, which does not wait for it then (`unit_add_default_target_dependency` of
/// systemd).
#[must_use]
pub fn unit(root: &Root, command: &str) -> [NewFile; 2] {
    let is_late = AFTER_TARGET.iter().any(|name| has_service(root, &SYSTEM_UNITS, name));
    let target = if is_late { "multi-user.target " } else { "" };
    let unit = format!(
        "{MARK}\n[Unit]\nDescription=Settings of this machine for real-time work\nAfter={target}{OTHERS}\n\n[Service]\n\
         Type=oneshot\nRemainAfterExit=yes\nExecStart={command}\n"
    );
    let enabled = format!("{MARK}\n[Unit]\nWants=punctual-tune.service\n");
    [NewFile { path: UNIT.to_owned(), text: unit }, NewFile { path: ENABLED.to_owned(), text: enabled }]
}

/// The unit that continues a search at each boot, and the file that makes systemd start it. It starts last, because it
/// measures and reboots.
#[must_use]
pub fn search_unit(command: &str) -> [NewFile; 2] {
    let unit = format!(
        "{MARK}\n[Unit]\nDescription=Search for kernel arguments that help real-time work\nAfter=multi-user.target \
         graphical.target\n\n[Service]\nType=simple\nExecStart={command}\n"
    );
    let enabled = format!("{MARK}\n[Unit]\nWants=punctual-prove.service\n");
    [NewFile { path: SEARCH.to_owned(), text: unit }, NewFile { path: SEARCH_ENABLED.to_owned(), text: enabled }]
}

/// True if [`unit()`] tunes this machine at each boot.
pub(crate) fn is_persistent(root: &Root) -> bool {
    root.exists(UNIT) && root.exists(ENABLED)
}

/// True for the files that are created here.
pub(crate) fn is_created_file(path: &str) -> bool {
    let of_service = || {
        let name = path.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(DROP_IN)?.strip_suffix(".service.d/")?;
        name.parse::<Service>().ok().filter(|service| service.name == name)
    };
    matches!(path, UNIT | ENABLED | SEARCH | SEARCH_ENABLED) || of_service().is_some()
}

/// True for a folder of the files that are created here, and for the folders above it.
pub(crate) fn is_created_folder(path: &str) -> bool {
    let is_of_service = || is_created_file(&format!("{path}/{DROP_IN}"));
    let is_above = |file: &str| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    is_above(UNIT) || is_above(ENABLED) || is_of_service()
}

/// Files that were created until the user reverts them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptFiles {
    /// Paths that replaced an earlier file of `punctual tune`, without the leading slash.
    pub replaced: Vec<String>,
    /// Paths that could not be created, with the reason.
    pub failed: Vec<String>,
}

/// Creates files until the user reverts them. A file that punctual created before is replaced, unless it was edited since.
///
/// # Errors
/// [`TuneError`]. Files that could not be created are in [`KeptFiles::failed`].
pub fn keep_files(root: &Root, files: &[NewFile]) -> Result<KeptFiles, TuneError> {
    Lock::take(root)?.keep_files(root, files)
}

impl Lock {
    /// As [`keep_files`].
    ///
    /// # Errors
    /// As [`keep_files`].
    pub fn keep_files(&self, root: &Root, files: &[NewFile]) -> Result<KeptFiles, TuneError> {
        check_journals(root)?;
        Ok(change_files(ops_of(root), |journal| create_each(journal, files))?)
    }

    /// Removes those of these files that [`keep_files`] created. Returns the ones that remain, with the reason, e.g. edited
    /// ones.
    ///
    /// # Errors
    /// [`TuneError::Journal`].
    pub fn remove_files(&self, root: &Root, files: &[NewFile]) -> Result<Vec<String>, TuneError> {
        Ok(change_files(ops_of(root), |journal| remove_each(journal, files))?)
    }
}

/// Changes the files that are created until the user reverts them, with their entries in one journal. The caller has the
/// [`Lock`].
fn change_files<T>(
    ops: Rc<dyn SystemOps>,
    change: impl FnOnce(&mut Journal) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    let mut journal = Journal::begin(ops, Purpose::KeptFiles)?;
    let earlier = journal.others();
    let undo: Vec<Undo> = earlier.iter().flat_map(|(_, undo)| undo.iter().cloned()).collect();
    journal.record(undo)?;
    for (path, _) in earlier {
        // One that remains changes nothing: its entries are undone with this journal.
        let _ = fs::remove_file(path);
    }
    let result = change(&mut journal);
    // After a failure of the journal, too, the earlier files remain, and in it.
    if journal.entries().is_empty() {
        journal.restore();
    } else {
        journal.keep();
    }
    result
}

/// Removes each file. Returns the ones that remain.
fn remove_each(journal: &mut Journal, files: &[NewFile]) -> Result<Vec<String>, JournalError> {
    let ops = journal.ops();
    let is_named = |undo: &Undo| files.iter().any(|file| file.path == undo.file());
    let (named, others): (Vec<Undo>, Vec<Undo>) = journal.entries().iter().cloned().partition(is_named);
    let removed = undo_entries(&*ops, &named);
    if removed.failed.is_empty() {
        let is_folder = |undo: &&Undo| matches!(undo, Undo::Folder { .. });
        undo_entries(&*ops, &others.iter().filter(is_folder).cloned().collect::<Vec<_>>());
        // A folder with other files remains, and its entry.
        let is_gone = |undo: &Undo| is_folder(&undo) && !ops.root().exists(undo.file());
        journal.replace(others.into_iter().filter(|undo| !is_gone(undo)).collect())?;
    }
    Ok([removed.failed, removed.changed_since].concat())
}

/// Creates each file.
fn create_each(journal: &mut Journal, files: &[NewFile]) -> Result<KeptFiles, JournalError> {
    let ops = journal.ops();
    let mut result = KeptFiles::default();
    for NewFile { path, text } in files {
        let is_own = |undo: &Undo| undo.file() == path;
        let (own, others): (Vec<Undo>, Vec<Undo>) = journal.entries().iter().cloned().partition(is_own);
        let removed = undo_entries(&*ops, &own);
        if let Some(reason) = removed.failed.first() {
            result.failed.push(reason.clone());
            continue;
        }
        if !removed.changed_since.is_empty() {
            result
                .failed
                .push(format!("/{path}: it was edited since tune created it: edit it again, or remove it first"));
            continue;
        }
        let before = others.len();
        journal.replace(others)?;
        let folders = missing_folders(ops.root(), path);
        let entries = folders.iter().map(|path| Undo::Folder { path: path.clone() });
        journal.record(entries.chain([Undo::Created { path: path.clone(), text: text.clone() }]))?;
        let made = folders.iter().try_for_each(|folder| ops.make_folder(folder));
        match made.and_then(|()| ops.create_file(path, text)) {
            Ok(()) if removed.settings > 0 => result.replaced.push(path.clone()),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Undoing the entry could remove the file, which has another origin.
                journal.replace(journal.entries()[..before].to_vec())?;
                let why = "there is one that tune did not create: edit it, or remove it first";
                result.failed.push(format!("/{path}: {why}"));
            }
            Err(error) => {
                journal.restore_from(before);
                result.failed.push(format!("/{path}: {error}"));
            }
        }
    }
    Ok(result)
}

/// The folders above a file that do not exist, the outermost first.
fn missing_folders(root: &Root, path: &str) -> Vec<String> {
    let above = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
    above.filter(|folder| root.path(folder).symlink_metadata().is_err()).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{journal::permanent_folder, tune::revert};

    #[test]
    fn the_unit_starts_after_the_target_only_if_another_service_does() {
        for (service, is_late) in
            [(None, false), (Some("irqbalance"), false), (Some("tlp"), true), (Some("power-profiles-daemon"), true)]
        {
            let folder = tempfile::tempdir().unwrap();
            let root = Root::at(folder.path());
            if let Some(service) = service {
                fs::create_dir_all(root.path("usr/lib/systemd/system")).unwrap();
                fs::write(root.path(&format!("usr/lib/systemd/system/{service}.service")), "").unwrap();
            }
            let [unit, _] = unit(&root, "x");
            assert_eq!(
                unit.text.contains("\nAfter=multi-user.target tuned.service "),
                is_late,
                "{service:?} {}",
                unit.text
            );
        }
    }

    #[test]
    fn created_files_are_replaced_and_removed_but_those_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        fs::create_dir_all(root.path(FOLDER)).unwrap();
        let service: Service = "jackd.service:70".parse().unwrap();
        let drop_in = drop_in(&service, Some(&"2-3".parse().unwrap()));
        let first = unit(&root, "/usr/bin/punctual tune --yes");
        let files = [first.to_vec(), vec![drop_in.clone()]].concat();
        assert_eq!(keep_files(&root, &files).unwrap(), KeptFiles::default());
        let text = root.read(&drop_in.path).unwrap();
        let order = "\nAfter=tuned.service power-profiles-daemon.service tlp.service cpupower.service ";
        assert!(first[0].text.contains(order), "{}", first[0].text);
        assert!(text.contains("CPUSchedulingPriority=70\nCPUAffinity=2-3\nLimitRTPRIO=95"), "{text}");
        let again = keep_files(&root, &unit(&root, "/usr/bin/punctual tune --yes --cpus 3")).unwrap();
        assert_eq!(again, KeptFiles { replaced: vec![UNIT.to_owned(), ENABLED.to_owned()], failed: Vec::new() });
        assert!(root.read(UNIT).unwrap().ends_with("ExecStart=/usr/bin/punctual tune --yes --cpus 3"));
        fs::write(root.path(ENABLED), "mine").unwrap();
        for _ in 0..2 {
            let again = keep_files(&root, &unit(&root, "x")).unwrap();
            let edited = format!("/{ENABLED}: it was edited since tune created it: edit it again, or remove it first");
            assert_eq!(again, KeptFiles { replaced: vec![UNIT.to_owned()], failed: vec![edited] });
            assert_eq!(root.read(ENABLED).as_deref(), Some("mine"));
        }
        let restored = revert(&root).unwrap();
        assert_eq!(restored.len(), 1, "{restored:?}");
        assert_eq!(restored[0].put_back.changed_since, [format!("/{ENABLED}: edited")]);
        assert_eq!(restored[0].put_back.failed, [] as [&str; 0]);
        assert!(
            !root.exists(UNIT) && !root.exists(&drop_in.path) && !root.exists(&format!("{FOLDER}/jackd.service.d"))
        );
        let others = keep_files(&root, &unit(&root, "x")).unwrap().failed;
        assert_eq!(others, [format!("/{ENABLED}: there is one that tune did not create: edit it, or remove it first")]);
        assert!(revert(&root).unwrap()[0].put_back.changed_since.is_empty());
        assert_eq!(root.read(ENABLED).as_deref(), Some("mine"));
    }

    /// Creates files, until it is killed: nothing happens any more then.
    #[derive(Debug)]
    struct Killed {
        root: Root,
        left: Cell<usize>,
    }

    impl Killed {
        fn step(&self) -> io::Result<()> {
            let left = self.left.get().checked_sub(1).ok_or_else(|| io::Error::other("killed"))?;
            self.left.set(left);
            Ok(())
        }
    }

    impl SystemOps for Killed {
        fn root(&self) -> &Root {
            &self.root
        }

        fn make_folder(&self, folder: &str) -> io::Result<()> {
            self.step()?;
            self.root.make_folder(folder)
        }

        fn remove_folder(&self, folder: &str) -> io::Result<()> {
            self.step()?;
            self.root.remove_folder(folder)
        }

        fn create_file(&self, path: &str, text: &str) -> io::Result<()> {
            self.step()?;
            let folder = path.rsplit_once('/').unwrap().0;
            let unfinished = self.root.path(&format!("{folder}/.punctual-77-1.new"));
            fs::write(&unfinished, &text[..text.len() / 2]).unwrap();
            self.step()?;
            fs::remove_file(unfinished).unwrap();
            self.root.create_file(path, text)
        }

        fn remove_file(&self, path: &str) -> io::Result<()> {
            self.step()?;
            self.root.remove_file(path)
        }
    }

    /// All files and folders outside the folders of journals, by path.
    fn tree(root: &Root) -> Vec<String> {
        let list = |folder: &str| fs::read_dir(root.path(folder)).unwrap().map(|entry| entry.unwrap().file_name());
        let mut paths: Vec<String> = list("").map(|name| name.into_string().unwrap()).collect();
        paths.retain(|name| name != "run" && name != "var");
        let mut next = 0;
        while let Some(path) = paths.get(next).cloned() {
            if root.is_folder(&path) {
                paths.extend(list(&path).map(|name| format!("{path}/{}", name.to_string_lossy())));
            }
            next += 1;
        }
        paths.sort();
        paths
    }

    /// The service, the unit and its drop-in, on machines with some of the folders: reverting removes the created files and
    /// nothing else, also after SIGKILL between any two steps, and after a second start that was killed, too.
    #[test]
    fn reverting_leaves_the_folders_as_they_were() {
        let drop_in = drop_in(&"jackd".parse().unwrap(), None);
        let files = [unit(&Root::at("/nonexistent"), "/usr/bin/punctual tune --yes").to_vec(), vec![drop_in]].concat();
        for existing in ["proc", FOLDER, "etc/systemd/system/jackd.service.d", "etc/systemd/system/multi-user.target.d"]
        {
            for left in 0.. {
                let folder = tempfile::tempdir().unwrap();
                let root = Root::at(folder.path());
                fs::create_dir_all(root.path(existing)).unwrap();
                let before = tree(&root);
                let ops = Rc::new(Killed { root: root.clone(), left: Cell::new(left) });
                let killed = change_files(ops.clone(), |journal| create_each(journal, &files)).unwrap();
                let is_whole = ops.left.get() > 0 && killed.failed.is_empty();
                assert!(left == 0 || tree(&root) != before);
                if left % 2 == 1 {
                    // The next start replaces the files.
                    ops.left.set(left / 2);
                    let _ = change_files(ops.clone(), |journal| create_each(journal, &files)).unwrap();
                }
                // A journal that was not written to its end.
                fs::write(permanent_folder(&root).join(".punctual-77-2.new"), "{").unwrap();
                let restored = revert(&root).unwrap();
                assert!(restored.iter().all(|restored| restored.put_back.failed.is_empty()), "{restored:?}");
                assert_eq!(tree(&root), before, "{existing}, after {left} steps");
                assert_eq!(fs::read_dir(permanent_folder(&root)).unwrap().count(), 0);
                if is_whole {
                    assert!(left >= 6);
                    break;
                }
            }
        }
    }

    #[test]
    fn a_folder_that_others_use_meanwhile_stays() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let (tuned, search) = (unit(&root, "x"), search_unit("y"));
        keep_files(&root, &tuned).unwrap();
        keep_files(&root, &search).unwrap();
        // The files of the first are removed alone, then those of the second with the folder.
        assert_eq!(Lock::take(&root).unwrap().remove_files(&root, &tuned).unwrap(), [] as [&str; 0]);
        assert!(root.exists(SEARCH) && root.exists(SEARCH_ENABLED));
        assert_eq!(Lock::take(&root).unwrap().remove_files(&root, &search).unwrap(), [] as [&str; 0]);
        assert_eq!(tree(&root), [] as [&str; 0]);
        keep_files(&root, &tuned).unwrap();
        fs::write(root.path("etc/systemd/system/multi-user.target.d/mine.conf"), "").unwrap();
        assert_eq!(revert(&root).unwrap()[0].put_back.failed, [] as [&str; 0]);
        let left = ["etc", "etc/systemd", FOLDER, "etc/systemd/system/multi-user.target.d"];
        assert_eq!(tree(&root)[..4], left.map(str::to_owned));
    }

    #[test]
    fn a_service_that_does_not_exist_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        for path in
            ["usr/lib/systemd/system/jackd@.service", "etc/systemd/system/a.service", "usr/lib/systemd/user/b.service"]
        {
            fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
            fs::write(root.path(path), "").unwrap();
        }
        let why = |name: &str| without_effect(&root, &name.parse().unwrap()).unwrap_or_default();
        assert_eq!(["jackd@alice:70", "a", "a.service"].map(why), ["", "", ""]);
        assert!(why("b").contains("a service of users") && why("jackd").contains("no unit jackd.service"));
    }

    #[test]
    fn the_unit_of_a_search_is_removed_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        fs::create_dir_all(root.path(FOLDER)).unwrap();
        let (tuned, search) =
            (unit(&root, "/usr/bin/punctual tune --yes"), search_unit("/usr/bin/punctual tune --prove"));
        keep_files(&root, &tuned).unwrap();
        keep_files(&root, &search).unwrap();
        assert!(root.read(SEARCH).unwrap().ends_with("ExecStart=/usr/bin/punctual tune --prove"));
        assert_eq!(Lock::take(&root).unwrap().remove_files(&root, &search).unwrap(), [] as [&str; 0]);
        assert!(root.exists(UNIT) && root.exists(ENABLED) && !root.exists(SEARCH) && !root.exists(SEARCH_ENABLED));
        assert_eq!(Lock::take(&root).unwrap().remove_files(&root, &search).unwrap(), [] as [&str; 0]);
        keep_files(&root, &search).unwrap();
        assert!(root.exists(SEARCH));
        revert(&root).unwrap();
        assert!(![UNIT, ENABLED, SEARCH, SEARCH_ENABLED].into_iter().any(|path| root.exists(path)));
    }

    #[test]
    fn only_own_files_are_created_and_removed() {
        for path in [UNIT, ENABLED, SEARCH, SEARCH_ENABLED, "etc/systemd/system/jackd@1.service.d/50-punctual.conf"] {
            assert!(is_created_file(path), "{path}");
        }
        for path in [
            "etc/passwd",
            "etc/systemd/system/.service.d/50-punctual.conf",
            "etc/systemd/system/../x.service.d/50-punctual.conf",
            "etc/systemd/system/a/b.service.d/50-punctual.conf",
            "etc/systemd/system/jackd.service.d/other.conf",
        ] {
            assert!(!is_created_file(path), "{path}");
        }
        for text in ["", "a/b", "..", "jackd:0", "jackd:100", "a b", ":70"] {
            assert!(text.parse::<Service>().is_err(), "{text}");
        }
    }
}
