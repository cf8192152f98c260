//! Runs a campaign. Each scenario gets its own record, and the campaign's document is updated after each.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use machine::Root;
use record::{CAMPAIGN_SCHEMA, Campaign, Phase, Record, ScenarioEntry, State, Tool, file, record_name};
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open},
    io::Errno,
};
use sys::signal::termination_requests;

use crate::{
    error::RunError,
    phase::elapsed_ns,
    plan::Plan,
    run::{Progress, now, run},
    scenario::{AROUND_NS, Scenario, Scenarios},
};

/// File name of the campaign's document, in the folder of its records.
pub const CAMPAIGN_FILE: &str = "campaign.json";

/// The mode bits of a file or folder that everyone, and that its group, may write to.
const ALL_WRITE: u32 = 0o002;
const GROUP_WRITE: u32 = 0o020;
/// The mode bits that let others open a file.
const OTHERS: u32 = 0o077;
/// File name of the lock of a folder, which stays there.
pub(crate) const LOCK_FILE: &str = ".lock";

/// Time between two checks, during a rest, for a termination request.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The reasons why a campaign cannot run.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The folder for its records could not be created.
    #[error("cannot create the folder {}: {source}; choose another one with --dir DIR", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A record could not be written or read.
    #[error(transparent)]
    File(#[from] file::FileError),
    /// The folder contains another campaign, or another version of it.
    #[error(
        "{} was started with another plan, because the file or the CPUs have changed: start again without --resume",
        path.display()
    )]
    OtherPlan {
        /// The campaign's document.
        path: PathBuf,
    },
    /// Somebody else could change the campaign, whose records are read again for its report.
    #[error(
        "{} belongs to another user, or others may write to it: start in a folder of your own, with --dir DIR",
        path.display()
    )]
    OfAnotherUser {
        /// The folder, the campaign's document or a record in it.
        path: PathBuf,
    },
    /// The campaign was started on another machine or kernel.
    #[error("{} was started on {theirs}, and this is {ours}: start again without --resume", path.display())]
    OtherMachine {
        /// The campaign's document.
        path: PathBuf,
        /// The machine of the campaign: host name and kernel.
        theirs: String,
        /// This machine.
        ours: String,
    },
    /// A file has the name of a scenario's record, but is that of another scenario.
    #[error("{} is the record of another scenario: remove it, and resume again", path.display())]
    OtherRecord {
        /// The record.
        path: PathBuf,
    },
    /// The folder contains a campaign already.
    #[error(
        "{} already contains a campaign: resume it with --resume, or choose another folder with --dir DIR",
        path.display()
    )]
    AlreadyBegun {
        /// The folder.
        path: PathBuf,
    },
    /// Another process runs a campaign in the folder.
    #[error(
        "another punctual runs a campaign in {}: wait for its end, or choose another folder with --dir DIR",
        path.display()
    )]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// There is no campaign to resume.
    #[error("no campaign of this plan to resume in {}: start it without --resume, or name its folder with --dir DIR", path.display())]
    NothingToResume {
        /// The folder that was searched.
        path: PathBuf,
    },
}

/// Progress of a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CampaignProgress {
    /// Index of the running scenario.
    pub index: usize,
    /// Number of scenarios.
    pub count: usize,
    /// Planned duration of the finished scenarios, ns.
    pub done_ns: u64,
    /// Planned duration of all scenarios of this run, ns.
    pub total_ns: u64,
}

/// Callbacks of a campaign, for verdicts and for display.
pub trait CampaignHandler {
    /// Called with the record so far of the running scenario, as often as the plans say.
    fn watch(&mut self, record: &Record, scenario: &Progress, campaign: &CampaignProgress);
    /// Called after a scenario has run and before its record is written, and for each finished scenario of a resumed
    /// campaign. Adds the verdicts, and returns its main culprit.
    fn judge(&mut self, record: &mut Record) -> Option<String>;
    /// Called after [`judge`](Self::judge) with the record of a scenario that has just run, and the path for it.
    fn report(&mut self, record: &Record, path: &Path);
    /// Called after each scenario, even if it could not run.
    fn done(&mut self, entry: &ScenarioEntry, campaign: &CampaignProgress);
}

/// A campaign and its folder.
#[derive(Debug)]
pub struct Runner<'a> {
    scenarios: &'a Scenarios,
    dir: PathBuf,
    document: Campaign,
    /// Open and locked for as long as the campaign runs.
    _lock: Option<File>,
}

impl<'a> Runner<'a> {
    /// Starts a campaign in a new folder, or in one that only this user can change.
    ///
    /// # Errors
    /// The folder or the campaign's document cannot be written, others can change the folder, or it contains a campaign.
    pub fn begin(
        scenarios: &'a Scenarios,
        dir: &Path,
        command: Vec<String>,
        root: &Root,
    ) -> Result<Self, CampaignError> {
        let is_new =
            file::create_folder(dir).map_err(|source| CampaignError::Folder { path: dir.to_owned(), source })?;
        if !is_new && !is_own(dir) {
            return Err(CampaignError::OfAnotherUser { path: dir.to_owned() });
        }
        let lock = lock(dir)?;
        if dir.join(CAMPAIGN_FILE).exists() {
            return Err(CampaignError::AlreadyBegun { path: dir.to_owned() });
        }
        let document = document(scenarios, command, root);
        let mut runner = Self { scenarios, dir: dir.to_owned(), document, _lock: lock };
        runner.write_document()?;
        Ok(runner)
    }

    /// Resumes a campaign. Scenarios that have a complete record are not repeated.
    ///
    /// Names and results are not taken from the document, which anybody may have changed: the names of the records are
    /// computed, and the results come from the records, judged again.
    ///
    /// # Errors
    /// The folder contains no campaign, one that runs, with another plan or of another machine, or one that others can
    /// change.
    pub fn resume(
        scenarios: &'a Scenarios,
        dir: &Path,
        root: &Root,
        handler: &mut dyn CampaignHandler,
    ) -> Result<Self, CampaignError> {
        let path = dir.join(CAMPAIGN_FILE);
        if !path.exists() {
            return Err(CampaignError::NothingToResume { path: dir.to_owned() });
        }
        if let Some(foreign) = [dir, &path].into_iter().find(|path| !is_own(path)) {
            return Err(CampaignError::OfAnotherUser { path: foreign.to_owned() });
        }
        let lock = lock(dir)?;
        file::check_regular(&path).map_err(|source| CampaignError::Folder { path: path.clone(), source })?;
        let mut document = file::read_campaign(&path)?;
        let stored = document.clone();
        if document.digest != scenarios.digest || document.scenarios.len() != scenarios.list.len() {
            return Err(CampaignError::OtherPlan { path });
        }
        let (theirs, ours) = (machine_of(&document), this_machine(root));
        if theirs != ours {
            let in_words = |(host, kernel): (String, String)| format!("{host} with kernel {kernel}");
            return Err(CampaignError::OtherMachine { path, theirs: in_words(theirs), ours: in_words(ours) });
        }
        for (index, (entry, scenario)) in document.scenarios.iter_mut().zip(&scenarios.list).enumerate() {
            let result = std::mem::replace(entry, self::entry(index, scenario)).result;
            let path = dir.join(&entry.record);
            if fs::symlink_metadata(&path).is_err() {
                continue;
            }
            // Also before it is written: it would keep the owner of the file.
            if !is_own(&path) {
                return Err(CampaignError::OfAnotherUser { path });
            }
            let Some(result) = result else { continue };
            // A record that cannot be read is written again. A pipe would be waited for.
            let record = file::check_regular(&path).ok().and_then(|()| file::read(&path).ok());
            let Some(mut record) = record else { continue };
            if !is_of(&record, &scenario.plan) {
                return Err(CampaignError::OtherRecord { path });
            }
            let culprit = handler.judge(&mut record);
            entry.set_run(&record, result.took_ns, culprit);
        }
        if document.is_complete() {
            document.state = State::Complete;
        }
        let is_changed = document != stored;
        let mut runner = Self { scenarios, dir: dir.to_owned(), document, _lock: lock };
        if is_changed {
            runner.write_document()?;
        }
        Ok(runner)
    }

    /// Number of scenarios that have run.
    #[must_use]
    pub fn done(&self) -> usize {
        self.document.scenarios.iter().filter(|entry| entry.result.is_some()).count()
    }

    /// Runs the remaining scenarios. Returns the campaign's document, which is also written to disk, and the error that
    /// ended the campaign.
    ///
    /// If a scenario cannot run, the document gets its error, and the next one starts. A signal such as SIGTERM ends the
    /// running scenario and the campaign; a resumed campaign repeats that scenario.
    /// A record that cannot be written is an error. Records written before stay.
    pub fn run(mut self, root: &Root, handler: &mut dyn CampaignHandler) -> (Campaign, Result<(), CampaignError>) {
        let ended = self.run_all(root, handler);
        if ended.is_err() {
            self.document.state = State::Interrupted;
        }
        (self.document, ended)
    }

    fn run_all(&mut self, root: &Root, handler: &mut dyn CampaignHandler) -> Result<(), CampaignError> {
        let list = &self.scenarios.list;
        let to_do = (0..list.len()).filter(|&index| self.document.scenarios[index].result.is_none());
        let to_do: Vec<usize> = to_do.collect();
        let total_ns = self.scenarios.planned_of(&to_do);
        let mut done_ns = 0;
        let mut first = true;
        for index in to_do {
            let began = Instant::now();
            if !std::mem::take(&mut first) {
                rest(Duration::from_nanos(self.scenarios.rest_ns));
                done_ns += self.scenarios.rest_ns;
            }
            if termination_requests() > 0 {
                break;
            }
            let progress = CampaignProgress { index, count: list.len(), done_ns, total_ns };
            self.run_one(index, root, &progress, handler)?;
            done_ns += list[index].planned_ns + AROUND_NS;
            self.document.took_ns += elapsed_ns(began);
            self.document.state = if self.document.is_complete() { State::Complete } else { State::Partial };
            self.write_document()?;
            handler.done(&self.document.scenarios[index], &CampaignProgress { done_ns, ..progress });
        }
        if !self.document.is_complete() {
            self.document.state = State::Interrupted;
            self.write_document()?;
        }
        Ok(())
    }

    fn run_one(
        &mut self,
        index: usize,
        root: &Root,
        progress: &CampaignProgress,
        handler: &mut dyn CampaignHandler,
    ) -> Result<(), CampaignError> {
        let entry = &mut self.document.scenarios[index];
        let path = self.dir.join(&entry.record);
        let mut plan = self.scenarios.list[index].plan.clone();
        plan.record_path = Some(path.clone());
        let began = Instant::now();
        match run(&plan, root, &mut |record, scenario| handler.watch(record, scenario, progress)) {
            Ok(mut record) => {
                let culprit = handler.judge(&mut record);
                handler.report(&record, &path);
                entry.set_run(&record, elapsed_ns(began), culprit);
                // Last, because the result is known also without the file.
                file::write_atomic(&path, &file::to_json(&record))?;
            }
            // The user discarded the run, so it has no record.
            Err(RunError::Discarded) => {}
            Err(error) => entry.error = Some(error.to_string()),
        }
        Ok(())
    }

    fn write_document(&mut self) -> Result<(), file::FileError> {
        self.document.written_at = now();
        file::write_atomic(&self.dir.join(CAMPAIGN_FILE), &file::campaign_to_json(&self.document))
    }
}

/// The document of a campaign before its first scenario: its plan.
#[must_use]
pub fn document(scenarios: &Scenarios, command: Vec<String>, root: &Root) -> Campaign {
    let facts = machine::facts(root);
    Campaign {
        schema: CAMPAIGN_SCHEMA.to_owned(),
        tool: Tool { name: "punctual".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        name: scenarios.name.clone(),
        title: scenarios.title.clone(),
        source: scenarios.source.clone(),
        digest: scenarios.digest.clone(),
        started_at: now(),
        command,
        hostname: facts.hostname,
        kernel: facts.kernel,
        against: scenarios.against.clone(),
        planned_ns: scenarios.planned_ns(),
        notes: scenarios.notes.clone(),
        scenarios: scenarios.list.iter().enumerate().map(|(index, s)| entry(index, s)).collect(),
        ..Campaign::default()
    }
}

fn entry(index: usize, scenario: &Scenario) -> ScenarioEntry {
    ScenarioEntry {
        name: scenario.name.clone(),
        probe: scenario.probe.clone(),
        load: scenario.load.clone(),
        placement: scenario.placement.clone(),
        settings: scenario.settings.clone(),
        repeat: scenario.repeat,
        cpus: scenario.plan.cpus.as_ref().map(ToString::to_string).unwrap_or_default(),
        shield: scenario.plan.shield.as_ref().map(ToString::to_string).unwrap_or_default(),
        policy: scenario.plan.scenario().policy,
        loads: scenario.plan.phases.iter().flat_map(|phase| &phase.loads).map(ToString::to_string).collect(),
        planned_ns: scenario.planned_ns,
        record: record_name(index, &scenario.name, scenario.repeat),
        ..ScenarioEntry::default()
    }
}

/// Host name and kernel release of a campaign's machine; empty if unknown.
fn machine_of(document: &Campaign) -> (String, String) {
    (document.hostname.clone().unwrap_or_default(), document.kernel.clone().unwrap_or_default())
}

/// The same of this machine.
pub(crate) fn this_machine(root: &Root) -> (String, String) {
    let facts = machine::facts(root);
    (facts.hostname.unwrap_or_default(), facts.kernel.unwrap_or_default())
}

/// True if the record is that of a run of this plan, as far as the record shows.
fn is_of(record: &Record, plan: &Plan) -> bool {
    let (found, expected) = (&record.scenario, plan.scenario());
    // Without CPUs in the plan, the run chooses them.
    let is_scenario = (&found.probe, &found.policy, &found.clock)
        == (&expected.probe, &expected.policy, &expected.clock)
        && (expected.cpus.is_none() || found.cpus == expected.cpus);
    let is_planned = |phase: &Phase| {
        let planned = plan.phases.iter().map(|planned| planned.to_record(Duration::ZERO));
        let key = |phase: &Phase| (phase.name.clone(), phase.period_ns, phase.asked_loads.clone());
        planned.into_iter().any(|planned| key(&planned) == key(phase))
    };
    let phases = record.phases.len();
    is_scenario
        && record.phases.iter().all(is_planned)
        && (record.state != State::Complete || phases == plan.phases.len())
}

/// Waits; returns early if the user wants to stop.
fn rest(length: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < length && termination_requests() == 0 {
        std::thread::sleep(STOP_CHECK_INTERVAL.min(length.saturating_sub(begin.elapsed())));
    }
}

/// True if the file or folder belongs to this user, and no others may write to it. A group whose number is that of the
/// user is taken for the user's private one, as distributions with the umask 002 make it.
pub(crate) fn is_own(path: &Path) -> bool {
    // Also the link, if it is one: otherwise anybody could lead a user to another folder of that user. A slash at the
    // end would hide the link.
    let path: PathBuf = path.components().collect();
    let is_private = |found: fs::Metadata| {
        let others = if found.gid() == found.uid() { ALL_WRITE } else { ALL_WRITE | GROUP_WRITE };
        found.mode() & others == 0 && file::is_of_this_user(&found)
    };
    fs::symlink_metadata(&path).is_ok_and(|found| file::is_of_this_user(&found))
        && fs::metadata(&path).is_ok_and(is_private)
}

/// Locks the folder against other runs of a campaign in it. `None` if its file system has no locks.
///
/// The lock is a file that other users cannot open, because everyone who can open a file or folder can also lock it.
pub(crate) fn lock(dir: &Path) -> Result<Option<File>, CampaignError> {
    let path = dir.join(LOCK_FILE);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(&path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP | Errno::ACCESS | Errno::ISDIR) => return Err(CampaignError::OfAnotherUser { path }),
        Err(error) => return Err(CampaignError::Folder { path: dir.to_owned(), source: error.into() }),
    };
    let is_private = |found: &fs::Metadata| found.is_file() && found.mode() & OTHERS == 0;
    if !file.metadata().is_ok_and(|found| is_private(&found) && file::is_of_this_user(&found)) {
        return Err(CampaignError::OfAnotherUser { path });
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Err(CampaignError::InUse { path: dir.to_owned() }),
        Err(_) => Ok(None),
    }
}

/// The newest folder in `dir` with an unfinished campaign of this plan, this user and a host of this name. Links are not
/// followed.
#[must_use]
pub fn unfinished(dir: &Path, scenarios: &Scenarios, root: &Root) -> Option<PathBuf> {
    let host = this_machine(root).0;
    let folders = fs::read_dir(dir).ok()?.flatten().map(|found| found.path());
    let unfinished_since = |folder: &PathBuf| {
        let parts = [folder, &folder.join(CAMPAIGN_FILE)];
        if !parts.into_iter().all(|path| is_own(path) && !path.is_symlink()) {
            return None;
        }
        let document = file::read_campaign(&folder.join(CAMPAIGN_FILE)).ok()?;
        let is_wanted = document.digest == scenarios.digest && machine_of(&document).0 == host;
        (is_wanted && !document.is_complete()).then_some(document.written_at)
    };
    folders.filter_map(|folder| Some((unfinished_since(&folder)?, folder))).max().map(|(_, folder)| folder)
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use record::ScenarioResult;

    use super::*;

    /// Judges nothing and shows nothing.
    struct Silent;

    impl CampaignHandler for Silent {
        fn watch(&mut self, _: &Record, _: &Progress, _: &CampaignProgress) {}
        fn judge(&mut self, _: &mut Record) -> Option<String> {
            None
        }
        fn report(&mut self, _: &Record, _: &Path) {}
        fn done(&mut self, _: &ScenarioEntry, _: &CampaignProgress) {}
    }

    #[test]
    fn others_cannot_hold_the_lock_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let open_folder = File::open(folder.path()).unwrap();
        flock(&open_folder, FlockOperation::NonBlockingLockExclusive).unwrap();
        let held = lock(folder.path()).unwrap().unwrap();
        assert_eq!(held.metadata().unwrap().mode() & OTHERS, 0, "nobody else can open it");
        assert!(matches!(lock(folder.path()), Err(CampaignError::InUse { .. })));
        drop(held);
        let path = folder.path().join(LOCK_FILE);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        assert!(matches!(lock(folder.path()), Err(CampaignError::OfAnotherUser { .. })));
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert!(matches!(lock(folder.path()), Err(CampaignError::OfAnotherUser { .. })));
        assert!(!folder.path().join("elsewhere").exists());
    }

    #[test]
    fn a_document_does_not_decide_where_records_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let plan = crate::plan::tests::plan(Vec::new());
        let none = String::new;
        let scenario = Scenario {
            name: "one".to_owned(),
            probe: none(),
            load: none(),
            placement: none(),
            settings: none(),
            repeat: 1,
            plan,
            planned_ns: 0,
        };
        let scenarios = Scenarios { list: vec![scenario], ..Scenarios::default() };
        Runner::begin(&scenarios, folder.path(), Vec::new(), &Root::at(folder.path())).unwrap();
        let mut document = file::read_campaign(&folder.path().join(CAMPAIGN_FILE)).unwrap();
        document.scenarios[0].record = "/etc/shadow".to_owned();
        let write_document = |document: &Campaign| {
            file::write_atomic(&folder.path().join(CAMPAIGN_FILE), &file::campaign_to_json(document)).unwrap();
        };
        write_document(&document);
        let resume = || Runner::resume(&scenarios, folder.path(), &Root::at(folder.path()), &mut Silent);
        assert_eq!(resume().unwrap().document.scenarios[0].record, "001-one-1.punctual.json");

        // Its record, that of another scenario, and one that others can change.
        document.scenarios[0].result =
            Some(ScenarioResult { outcome: Some(record::Outcome::Pass), valid: true, ..ScenarioResult::default() });
        write_document(&document);
        let path = folder.path().join("001-one-1.punctual.json");
        let own = Record { schema: record::SCHEMA.to_owned(), state: State::Complete, ..Record::default() };
        let own = Record { scenario: scenarios.list[0].plan.scenario(), ..own };
        let write = |record: &Record| file::write_atomic(&path, &file::to_json(record)).unwrap();
        write(&own);
        let resumed = resume().unwrap();
        assert_eq!(resumed.done(), 1);
        let result = resumed.document.scenarios[0].result.clone().unwrap();
        assert_eq!((result.outcome, result.valid), (None, false), "from the record, not from the document");
        assert!(matches!(resume(), Err(CampaignError::InUse { .. })));
        drop(resumed);
        let mut other = own.clone();
        other.scenario.probe = "noise".to_owned();
        write(&other);
        assert!(matches!(resume(), Err(CampaignError::OtherRecord { .. })));
        let phase = Phase { name: "x".to_owned(), ..Phase::default() };
        write(&Record { phases: vec![phase], ..own.clone() });
        assert!(matches!(resume(), Err(CampaignError::OtherRecord { .. })));
        write(&own);
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        assert!(matches!(resume(), Err(CampaignError::OfAnotherUser { .. })));
        fs::remove_file(&path).unwrap();
        assert_eq!(resume().unwrap().done(), 0);
    }

    #[test]
    fn a_campaign_of_another_machine_is_not_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let set = |host: &str, kernel: &str| {
            let kernel_folder = folder.path().join("proc/sys/kernel");
            fs::create_dir_all(&kernel_folder).unwrap();
            fs::write(kernel_folder.join("hostname"), host).unwrap();
            fs::write(kernel_folder.join("osrelease"), kernel).unwrap();
        };
        let scenario = Scenario {
            name: "one".to_owned(),
            probe: String::new(),
            load: String::new(),
            placement: String::new(),
            settings: String::new(),
            repeat: 1,
            plan: crate::plan::tests::plan(Vec::new()),
            planned_ns: 0,
        };
        let scenarios = Scenarios { digest: "1".to_owned(), list: vec![scenario], ..Scenarios::default() };
        let dir = folder.path().join("campaign");
        set("board-a", "6.1");
        Runner::begin(&scenarios, &dir, Vec::new(), &root).unwrap();
        assert!(Runner::resume(&scenarios, &dir, &root, &mut Silent).is_ok());
        assert_eq!(unfinished(folder.path(), &scenarios, &root), Some(dir.clone()));
        set("board-a", "6.12");
        let text = Runner::resume(&scenarios, &dir, &root, &mut Silent).unwrap_err().to_string();
        assert!(
            text.contains("was started on board-a with kernel 6.1, and this is board-a with kernel 6.12"),
            "{text}"
        );
        set("board-b", "6.1");
        assert!(matches!(
            Runner::resume(&scenarios, &dir, &root, &mut Silent),
            Err(CampaignError::OtherMachine { .. })
        ));
        assert_eq!(unfinished(folder.path(), &scenarios, &root), None);
    }

    #[test]
    fn a_campaign_of_another_user_is_not_resumed() {
        if !rustix::process::geteuid().is_root() {
            // Not eprintln!, whose output is hidden when a test passes.
            let _ = writeln!(io::stderr(), "\nSKIPPED: a campaign of another user, which only root can create");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("campaign");
        let scenarios = Scenarios { digest: "1".to_owned(), ..Scenarios::default() };
        Runner::begin(&scenarios, &dir, Vec::new(), &Root::at(folder.path())).unwrap();
        assert!(Runner::resume(&scenarios, &dir, &Root::at(folder.path()), &mut Silent).is_ok());
        // The user `nobody` of most systems; not one who called sudo.
        std::os::unix::fs::chown(dir.join(CAMPAIGN_FILE), Some(65_534), None).unwrap();
        let resumed = Runner::resume(&scenarios, &dir, &Root::at(folder.path()), &mut Silent);
        assert!(matches!(resumed, Err(CampaignError::OfAnotherUser { .. })));
        assert_eq!(unfinished(folder.path(), &scenarios, &Root::at(folder.path())), None);
        std::os::unix::fs::chown(&dir, Some(65_534), None).unwrap();
        let begun = Runner::begin(&scenarios, &dir, Vec::new(), &Root::at(folder.path()));
        assert!(matches!(begun, Err(CampaignError::OfAnotherUser { .. })));
    }

    #[test]
    fn no_campaign_begins_or_is_resumed_where_everyone_may_write() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("campaign");
        let (root, scenarios) =
            (Root::at(scratch.path()), Scenarios { digest: "1".to_owned(), ..Scenarios::default() });
        Runner::begin(&scenarios, &dir, Vec::new(), &root).unwrap();
        let uid = fs::metadata(&dir).unwrap().uid();
        let is_group_private = fs::metadata(&dir).unwrap().gid() == uid;
        for (mode, is_refused) in [(0o775, !is_group_private), (0o777, true), (0o1777, true), (0o755, false)] {
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            let runners = [
                Runner::begin(&scenarios, &dir, Vec::new(), &root),
                Runner::resume(&scenarios, &dir, &root, &mut Silent),
            ]
            .map(Result::err);
            for error in runners {
                assert_eq!(
                    matches!(error, Some(CampaignError::OfAnotherUser { .. })),
                    is_refused,
                    "{mode:o} {error:?}"
                );
            }
        }
    }

    #[test]
    fn no_campaign_begins_where_a_shared_group_may_write() {
        if !rustix::process::geteuid().is_root() {
            let _ = writeln!(io::stderr(), "\nSKIPPED: a folder of another group, which only root can create");
            return;
        }
        use std::os::unix::fs::PermissionsExt;
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().join("campaign");
        let (root, scenarios) = (Root::at(scratch.path()), Scenarios::default());
        Runner::begin(&scenarios, &dir, Vec::new(), &root).unwrap();
        std::os::unix::fs::chown(&dir, None, Some(100)).unwrap();
        for (mode, is_refused) in [(0o755, false), (0o775, true)] {
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            let begun = Runner::begin(&scenarios, &dir, Vec::new(), &root).err();
            assert_eq!(matches!(begun, Some(CampaignError::OfAnotherUser { .. })), is_refused, "{mode:o} {begun:?}");
        }
    }

    #[test]
    fn a_link_of_another_user_leads_to_no_campaign() {
        if !rustix::process::geteuid().is_root() {
            let _ = writeln!(io::stderr(), "\nSKIPPED: a link of another user, which only root can create");
            return;
        }
        use std::os::unix::fs::{PermissionsExt, lchown, symlink};
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let (root, scenarios) = (Root::at(at("none")), Scenarios { digest: "1".to_owned(), ..Scenarios::default() });
        Runner::begin(&scenarios, &at("private/mine"), Vec::new(), &root).unwrap();
        fs::create_dir(at("shared")).unwrap();
        fs::set_permissions(at("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
        let link = at("shared/zz");
        symlink(at("private/mine"), &link).unwrap();
        assert_eq!(unfinished(&at("shared"), &scenarios, &root), None);
        lchown(&link, Some(65_534), None).unwrap();
        for dir in [link.clone(), link.join("")] {
            assert!(matches!(
                Runner::resume(&scenarios, &dir, &root, &mut Silent),
                Err(CampaignError::OfAnotherUser { .. })
            ));
            assert!(matches!(Runner::begin(&scenarios, &dir, Vec::new(), &root), Err(CampaignError::Folder { .. })));
        }
        // The folder of a running campaign was replaced.
        let mut runner = Runner::begin(&scenarios, &at("shared/own"), Vec::new(), &root).unwrap();
        fs::rename(at("shared/own"), at("shared/moved")).unwrap();
        fs::rename(&link, at("shared/own")).unwrap();
        let before = fs::read(at("private/mine").join(CAMPAIGN_FILE)).unwrap();
        assert!(runner.write_document().unwrap_err().to_string().contains("own is a symbolic link of another user"));
        assert_eq!(fs::read(at("private/mine").join(CAMPAIGN_FILE)).unwrap(), before);
    }

    #[test]
    fn resumes_only_the_same_plan() {
        let dir = std::env::temp_dir().join(format!("punctual-runner-{}", std::process::id()));
        let scenarios = |digest: &str| Scenarios { digest: digest.to_owned(), ..Scenarios::default() };
        let (one, other) = (scenarios("1"), scenarios("2"));
        let root = Root::at(dir.join("none"));
        assert!(matches!(Runner::resume(&one, &dir, &root, &mut Silent), Err(CampaignError::NothingToResume { .. })));
        Runner::begin(&one, &dir, Vec::new(), &root).unwrap();
        assert!(Runner::resume(&one, &dir, &root, &mut Silent).is_ok());
        assert!(matches!(Runner::resume(&other, &dir, &root, &mut Silent), Err(CampaignError::OtherPlan { .. })));
        fs::remove_dir_all(&dir).unwrap();
    }
}
