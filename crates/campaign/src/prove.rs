//! `punctual tune --prove`: measures rounds with and without changes, until it is known which of them help.
//!
//! [`analysis::prove`] decides what each round applies, and draws the conclusions. The document is written after each round,
//! so that a search goes on where it was stopped. Each round is a run of its own: it makes the changes, and undoes them at
//! its end; after a crash they are in the journal. Changes that need a reboot are in `boots`.

mod boots;

use std::{
    collections::hash_map::RandomState,
    fs::{self, File},
    hash::BuildHasher,
    path::{Path, PathBuf},
};

use analysis::prove::{self, NextRound};
use machine::{
    Root,
    tune::{
        self, Setting,
        reboot::{self, BootChange},
    },
};
use record::{
    Proof, Record, State, Tool,
    file::{self, FileError},
    proof::{Boots, CONTROL, Candidate, PROOF_SCHEMA},
};
use sys::signal::termination_requests;

use crate::{
    AROUND_NS, CampaignError, Plan, Progress, RunError,
    expand::digest_of,
    run::now,
    runner::{LOCK_FILE, is_own, lock, this_machine},
};

pub use self::boots::NextBoot;

/// File name of the document of a search, in its folder.
pub const PROOF_FILE: &str = "proof.json";
/// Time for a whole search of settings, ns, if none is named.
const BUDGET_NS: u64 = 30 * 60 * 1_000_000_000;

/// The reasons why a search cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The folder of the document.
    #[error(transparent)]
    Folder(#[from] CampaignError),
    /// The document could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A round could not run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A round was invalid, so its figures say nothing.
    #[error("a round was invalid, so the search stopped: {reason}; mend that, and {next}")]
    InvalidRound {
        /// The reason.
        reason: String,
        /// The next step for the user.
        next: &'static str,
    },
    /// Another program changed a setting between two rounds.
    #[error("another program changed a setting, so the search stopped: {changed}; set it back, and {next}")]
    ChangedByOthers {
        /// The setting with its values.
        changed: String,
        /// The next step for the user.
        next: &'static str,
    },
    /// The machine did not come up with the requested kernel.
    #[error(
        "the machine was restarted {} times, but never with the kernel arguments of this round ({arguments}): if they keep it \
         from booting, start again without them, else continue with --resume",
        boots::ATTEMPTS
    )]
    NotBooted {
        /// The arguments of the round.
        arguments: String,
    },
    /// The measured CPUs must not depend on the arguments of the kernel.
    #[error("the measured CPUs would depend on the kernel arguments: name them with --cpus LIST")]
    NoCpus,
    /// Two changes cannot be made together.
    #[error("{0} is in two changes, which cannot be made together: compare them in two searches")]
    Conflict(String),
    /// There are no candidates.
    #[error("there is nothing to try: no change is possible on this machine; see `punctual tune`")]
    NoCandidates,
    /// The budget is too small for the number of candidates.
    #[error(
        "{} are too few rounds to tell {} apart from chance: it takes at least --duration {}",
        record::grouped(u64::from(*.blocks) * u64::from(prove::ROUNDS)),
        record::counted(*.candidates as u64, "change"),
        analysis::format_exact(*.needs_ns)
    )]
    TooShort {
        /// Number of blocks that the budget allows.
        blocks: u32,
        /// Number of candidates.
        candidates: usize,
        /// The smallest budget, ns.
        needs_ns: u64,
    },
    /// The folder contains a search already.
    #[error("{} already contains a search: continue it with --resume, or choose another folder with --dir DIR", path.display())]
    AlreadyBegun {
        /// The folder.
        path: PathBuf,
    },
    /// There is nothing to resume.
    #[error("no search to continue in {}: start it without --resume, or name its folder with --dir DIR", path.display())]
    NothingToResume {
        /// The folder.
        path: PathBuf,
    },
    /// The document is of another machine or kernel.
    #[error(
        "{} was started on {theirs}, and this is {ours}: continue it there, or start again without --resume",
        path.display()
    )]
    OtherMachine {
        /// The document.
        path: PathBuf,
        /// Host name and kernel of the document.
        theirs: String,
        /// Host name and kernel of this machine.
        ours: String,
    },
    /// The document is of another measurement.
    #[error(
        "{} was started with another measurement: continue it with `{command}`, start again without --resume, or name \
         the folder of the other search with --dir DIR",
        path.display()
    )]
    OtherMeasurement {
        /// The document.
        path: PathBuf,
        /// The command that continues it.
        command: String,
    },
    /// The document is of other changes. Those of a plan depend on the present values of the machine, too.
    #[error(
        "{} was started with other changes (then {theirs}; now {ours}): set back what has changed since, and continue it \
         with `{command}`, or start again without --resume",
        path.display()
    )]
    OtherChanges {
        /// The document.
        path: PathBuf,
        /// Changes that only the document has, in words.
        theirs: String,
        /// Changes that only this command has, in words.
        ours: String,
        /// The command that continues it.
        command: String,
    },
    /// The document is of a search with more or less time.
    #[error(
        "{} was started for {} rounds ({}), which another --duration does not change: leave out --duration, or start again \
         without --resume",
        path.display(),
        record::grouped(u64::from(*.blocks) * u64::from(prove::ROUNDS)),
        analysis::format_duration(*.planned_ns)
    )]
    OtherDuration {
        /// The document.
        path: PathBuf,
        /// Its number of blocks.
        blocks: u32,
        /// The time of these blocks, ns.
        planned_ns: u64,
    },
}

/// The changes to try, and the measurement of a round.
#[derive(Debug)]
pub struct Search {
    /// The measurement of a round without any change.
    pub plan: Plan,
    /// The changes to try in words, without the control.
    pub candidates: Vec<Candidate>,
    /// The same changes.
    pub changes: Changes,
    /// Time for the whole search, ns; `None` for the default: 30 min, or 8 h with boots.
    pub budget_ns: Option<u64>,
}

/// The changes that a search tries, in the order of the candidates.
#[derive(Debug)]
pub enum Changes {
    /// Settings of the running machine, changed for a round.
    Settings(Vec<Setting>),
    /// Changes of the next boot. Each round is a boot.
    Boots {
        /// The changes.
        changes: Vec<BootChange>,
        /// The image of the kernel that is running when the search begins.
        kernel: PathBuf,
    },
}

/// Shows a search while it runs.
pub trait ProveHandler {
    /// Called with the record so far of the running round, and the search before it.
    fn watch(&mut self, record: &Record, progress: &Progress, proof: &Proof);
    /// Called after each round.
    fn done(&mut self, proof: &Proof);
}

impl Search {
    /// Time of a round, ns.
    fn round_ns(&self) -> u64 {
        self.plan.phases.iter().filter_map(crate::PhasePlan::duration_ns).sum()
    }

    /// The document before its first round.
    fn document(&self, command: Vec<String>, root: &Root) -> Proof {
        let control = Candidate { id: CONTROL.to_owned(), change: "changes nothing".to_owned() };
        let candidates: Vec<Candidate> = self.candidates.iter().cloned().chain([control]).collect();
        let (hostname, kernel) = this_machine(root);
        let boots = match &self.changes {
            Changes::Settings(_) => None,
            Changes::Boots { kernel, .. } => Some(Boots {
                arguments: reboot::running_arguments(root),
                kernel: kernel.to_string_lossy().into_owned(),
                ..Boots::default()
            }),
        };
        let scenario = self.plan.scenario();
        // Names and values of the changes; the seed makes another order of the same search.
        let (probe, phases) = (&self.plan.probe, &self.plan.phases);
        let Plan { load_cpus, shield, nic, .. } = &self.plan;
        let digest = digest_of(format_args!(
            "{scenario:?} {probe:?} {phases:?} {load_cpus:?} {shield:?} {nic:?} {candidates:?}"
        ));
        Proof {
            schema: PROOF_SCHEMA.to_owned(),
            tool: Tool { name: "punctual".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            state: State::Partial,
            started_at: now(),
            command,
            hostname: Some(hostname).filter(|name| !name.is_empty()),
            kernel: Some(kernel).filter(|name| !name.is_empty()),
            scenario,
            digest,
            seed: RandomState::new().hash_one(self.budget_ns),
            round_ns: self.round_ns(),
            blocks: self.blocks(),
            candidates,
            boots,
            ..Proof::default()
        }
    }

    /// The document that a search would begin with.
    ///
    /// # Errors
    /// As [`Prover::begin`], for the candidates and the budget.
    pub fn preview(&self, root: &Root) -> Result<Proof, ProveError> {
        let proof = self.document(Vec::new(), root);
        self.check(proof.blocks)?;
        Ok(proof)
    }

    /// The number of blocks in the budget.
    fn blocks(&self) -> u32 {
        let budget_ns = self.budget_ns.unwrap_or(match self.changes {
            Changes::Settings(_) => BUDGET_NS,
            Changes::Boots { .. } => boots::BUDGET_NS,
        });
        u32::try_from(budget_ns / self.block_ns()).unwrap_or(u32::MAX)
    }

    /// Time of a block, ns.
    fn block_ns(&self) -> u64 {
        (self.round_ns() + self.around_ns()) * u64::from(prove::ROUNDS)
    }

    /// Time before and after the measurement of a round, ns.
    #[must_use]
    pub fn around_ns(&self) -> u64 {
        match self.changes {
            Changes::Settings(_) => AROUND_NS,
            Changes::Boots { .. } => boots::AROUND_NS,
        }
    }

    /// An error if a search of so many blocks cannot find anything.
    fn check(&self, blocks: u32) -> Result<(), ProveError> {
        if self.candidates.is_empty() {
            return Err(ProveError::NoCandidates);
        }
        if let Changes::Boots { changes, .. } = &self.changes {
            // Measurements without CPUs prefer isolated ones.
            if self.plan.cpus.is_none() {
                return Err(ProveError::NoCpus);
            }
            if let Some(both) = reboot::conflict(changes) {
                return Err(ProveError::Conflict(both));
            }
        }
        self.check_budget(blocks, self.candidates.len())
    }

    /// An error if so many blocks are too few for so many candidates.
    fn check_budget(&self, blocks: u32, candidates: usize) -> Result<(), ProveError> {
        // With the control.
        let least = prove::least_blocks(candidates + 1);
        if blocks < least {
            let needs_ns = u64::from(least) * self.block_ns();
            return Err(ProveError::TooShort { blocks, candidates, needs_ns });
        }
        Ok(())
    }

    /// Checks the budget before it is known which candidates are possible.
    ///
    /// # Errors
    /// It is too small for a single one.
    pub fn check_for_one(&self) -> Result<(), ProveError> {
        self.check_budget(self.blocks(), 1)
    }
}

/// A search and the folder of its document.
#[derive(Debug)]
pub struct Prover<'a> {
    search: &'a Search,
    dir: PathBuf,
    proof: Proof,
    /// True if this process created the folder.
    is_new: bool,
    /// Open and locked for as long as the search runs.
    _lock: Option<File>,
}

impl<'a> Prover<'a> {
    /// Starts a search in a new folder, or in one that only this user can change.
    ///
    /// # Errors
    /// There are no candidates, or the budget is too small for them; the folder or the document cannot be written, others can
    /// change the folder, or it contains a search.
    pub fn begin(search: &'a Search, dir: &Path, command: Vec<String>, root: &Root) -> Result<Self, ProveError> {
        let proof = search.document(command, root);
        search.check(proof.blocks)?;
        let is_new =
            file::create_folder(dir).map_err(|source| CampaignError::Folder { path: dir.to_owned(), source })?;
        if !is_new && !is_own(dir) {
            return Err(CampaignError::OfAnotherUser { path: dir.to_owned() }.into());
        }
        let lock = lock(dir)?;
        if dir.join(PROOF_FILE).exists() {
            return Err(ProveError::AlreadyBegun { path: dir.to_owned() });
        }
        let mut prover = Self { search, dir: dir.to_owned(), proof, is_new, _lock: lock };
        prover.write()?;
        Ok(prover)
    }

    /// Goes on with a search: its budget and the order of its rounds remain. A block that was interrupted is repeated.
    ///
    /// # Errors
    /// The folder contains no search, one that runs, one of another measurement, budget, of other changes or of another
    /// machine, or one that others can change.
    pub fn resume(search: &'a Search, dir: &Path, root: &Root) -> Result<Self, ProveError> {
        let path = dir.join(PROOF_FILE);
        if !path.exists() {
            return Err(ProveError::NothingToResume { path: dir.to_owned() });
        }
        if let Some(foreign) = [dir, &path].into_iter().find(|path| !is_own(path)) {
            return Err(CampaignError::OfAnotherUser { path: foreign.to_owned() }.into());
        }
        let lock = lock(dir)?;
        file::check_regular(&path).map_err(|source| CampaignError::Folder { path: path.clone(), source })?;
        let mut proof = file::read_proof(&path)?;
        let of_now = search.document(Vec::new(), root);
        // With boots, the kernel can be one of the changes.
        let is_same_kernel = proof.boots.is_some() || proof.kernel == of_now.kernel;
        if proof.hostname != of_now.hostname || !is_same_kernel {
            let [theirs, ours] = [&proof, &of_now].map(machine_in_words);
            return Err(ProveError::OtherMachine { path, theirs, ours });
        }
        let command = proof.next_command();
        let (theirs, ours) = (changes_of_only(&proof, &of_now), changes_of_only(&of_now, &proof));
        if theirs.is_some() || ours.is_some() {
            let [theirs, ours] = [theirs, ours].map(|changes| changes.unwrap_or_else(|| "no other ones".to_owned()));
            return Err(ProveError::OtherChanges { path, theirs, ours, command });
        }
        let is_same = proof.digest == of_now.digest && proof.candidates == of_now.candidates;
        if !is_same || proof.boots.is_some() != of_now.boots.is_some() {
            return Err(ProveError::OtherMeasurement { path, command });
        }
        // Without a named one, it is that of the start, whether this is the default or not.
        if search.budget_ns.is_some() && proof.blocks != of_now.blocks {
            let planned_ns = u64::from(proof.blocks) * search.block_ns();
            return Err(ProveError::OtherDuration { path, blocks: proof.blocks, planned_ns });
        }
        search.check(proof.blocks)?;
        if !boots::is_requested(&proof, root) {
            prove::forget_partial_block(&mut proof);
        }
        proof.conclusion = None;
        Ok(Self { search, dir: dir.to_owned(), proof, is_new: false, _lock: lock })
    }

    /// The document so far.
    #[must_use]
    pub fn proof(&self) -> &Proof {
        &self.proof
    }

    /// Measures the remaining rounds, or that of this boot. Returns the document, which is also written to disk, and the
    /// boot that the next round needs, which the caller makes; `None` if the search is over. A signal such as SIGTERM ends
    /// the running round and the search, which can be resumed. A search of settings without any measured round is removed
    /// from the disk.
    pub fn run(mut self, root: &Root, handler: &mut dyn ProveHandler) -> (Proof, Result<Option<NextBoot>, ProveError>) {
        let search = self.search;
        let next = match &search.changes {
            Changes::Settings(settings) => self.rounds(settings, root, handler).map(|()| None),
            Changes::Boots { changes, .. } => self.boot_round(changes, root, handler),
        };
        if self.proof.state != State::Complete && !matches!(next, Ok(Some(_))) {
            self.proof.state = State::Interrupted;
        }
        let written = if self.is_kept() { self.write() } else { self.discard() };
        (self.proof, next.and_then(|next| written.map(|()| next)))
    }

    fn rounds(&mut self, settings: &[Setting], root: &Root, handler: &mut dyn ProveHandler) -> Result<(), ProveError> {
        while let Some(next) = prove::advance(&mut self.proof) {
            if termination_requests() > 0 {
                break;
            }
            if let Some(changed) = tune::changed_since(root, settings) {
                return Err(ProveError::ChangedByOthers { changed, next: self.next_step() });
            }
            // The control is the last one, and changes nothing.
            let applied = next.applied.iter().filter_map(|&index| settings.get(index)).cloned();
            let plan = Plan { planned_settings: applied.collect(), ..self.search.plan.clone() };
            if !self.measure(next, &plan, root, handler)? {
                break;
            }
        }
        Ok(())
    }

    /// Measures a round; false if a signal ended it.
    fn measure(
        &mut self,
        next: NextRound,
        plan: &Plan,
        root: &Root,
        handler: &mut dyn ProveHandler,
    ) -> Result<bool, ProveError> {
        let proof = &self.proof;
        let record = crate::run(plan, root, &mut |record, progress| handler.watch(record, progress, proof))?;
        if let Some(reason) = record.validity.reasons.first() {
            return Err(ProveError::InvalidRound { reason: reason.text.clone(), next: self.next_step() });
        }
        if record.state != State::Complete {
            return Ok(false);
        }
        self.proof.rounds.push(next.measured(record.started_at.clone(), &record));
        self.write()?;
        handler.done(&self.proof);
        Ok(true)
    }

    /// The next step for the user after an error.
    fn next_step(&self) -> &'static str {
        if self.is_kept() { "continue with --resume" } else { "start again" }
    }

    /// False for a search that has nothing to continue from. One with boots measures its first round in a later process.
    fn is_kept(&self) -> bool {
        self.proof.boots.is_some() || !self.proof.rounds.is_empty()
    }

    /// Removes the document, and the folder if the search created it.
    fn discard(&self) -> Result<(), ProveError> {
        let failed = |source| CampaignError::Folder { path: self.dir.clone(), source };
        fs::remove_file(self.dir.join(PROOF_FILE)).map_err(failed)?;
        // Without the document, they mean nothing to a later search.
        let _ = fs::remove_file(self.dir.join(LOCK_FILE));
        if self.is_new {
            let _ = fs::remove_dir(&self.dir);
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), ProveError> {
        self.proof.written_at = now();
        Ok(file::write_atomic(&self.dir.join(PROOF_FILE), &file::proof_to_json(&self.proof))?)
    }
}

/// The machine of a search: `host name, kernel release`.
fn machine_in_words(proof: &Proof) -> String {
    let words = [&proof.hostname, &proof.kernel].map(|word| word.as_deref().unwrap_or("unknown"));
    words.join(", kernel ")
}

/// The candidates of one search that another one does not have, in words; `None` if it has them all.
fn changes_of_only(own: &Proof, other: &Proof) -> Option<String> {
    let only: Vec<&Candidate> =
        own.candidates.iter().filter(|candidate| !other.candidates.contains(candidate)).collect();
    let first = only.iter().take(NAMED_CHANGES).map(|candidate| &*candidate.change).collect::<Vec<_>>().join(", ");
    match only.len() {
        0 => None,
        count if count > NAMED_CHANGES => Some(format!("{first} and {} more", count - NAMED_CHANGES)),
        _ => Some(first),
    }
}

/// Limit for the changes in a message.
const NAMED_CHANGES: usize = 3;

/// The newest folder in `dir` with an unfinished search of this user that has measured rounds. Links are not followed.
#[must_use]
pub fn unfinished(dir: &Path) -> Option<PathBuf> {
    let folders = fs::read_dir(dir).ok()?.flatten().map(|found| found.path());
    let unfinished_since = |folder: &PathBuf| {
        let parts = [folder, &folder.join(PROOF_FILE)];
        if !parts.into_iter().all(|path| is_own(path) && !path.is_symlink()) {
            return None;
        }
        let proof = file::read_proof(&folder.join(PROOF_FILE)).ok()?;
        (proof.state != State::Complete && !proof.rounds.is_empty()).then_some(proof.written_at)
    };
    folders.filter_map(|folder| Some((unfinished_since(&folder)?, folder))).max().map(|(_, folder)| folder)
}
