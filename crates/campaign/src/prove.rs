//! `punctual tune --prove`: measures rounds with and without changes, until it is known which of them help.
//!
//! [`analysis::prove`] decides what each round applies, and draws the conclusions. The document is written after each round,
//! so that a search goes on where it was stopped. Each round is a run of its own: it makes the changes, and undoes them at
//! its end; after a crash they are in the journal.

use std::{
    collections::hash_map::RandomState,
    fs::File,
    hash::BuildHasher,
    path::{Path, PathBuf},
};

use analysis::prove;
use machine::{
    Root,
    tune::{self, Setting},
};
use record::{
    Proof, Record, State, Tool,
    file::{self, FileError},
    proof::{CONTROL, Candidate, PROOF_SCHEMA},
};
use sys::signal::termination_requests;

use crate::{
    AROUND_NS, CampaignError, Plan, Progress, RunError,
    expand::digest_of,
    run::now,
    runner::{is_own, lock, this_machine},
};

/// File name of the document of a search, in its folder.
pub const PROOF_FILE: &str = "proof.json";

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
    #[error("a round was invalid, so the search stopped: {0}")]
    InvalidRound(String),
    /// Another program changed a setting between two rounds.
    #[error("another program changed a setting, so the search stopped: {0}; set it back, and continue with --resume")]
    ChangedByOthers(String),
    /// There are no candidates.
    #[error("there is nothing to try: no change is possible on this machine; see `punctual tune`")]
    NoCandidates,
    /// The budget is too small for the number of candidates.
    #[error(
        "{} are too few rounds to tell {} apart from chance: it takes at least --duration {}",
        record::grouped(u64::from(*.blocks) * u64::from(prove::ROUNDS)),
        record::counted(*.candidates as u64, "change"),
        analysis::format_duration(*.needs_ns)
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
    /// The document is of another measurement, of other changes, or of another machine.
    #[error("{} was started with {what}: start again without --resume, or name the folder of the other search with --dir DIR", path.display())]
    Other {
        /// The document.
        path: PathBuf,
        /// The difference.
        what: &'static str,
    },
}

/// The changes to try, and the measurement of a round.
#[derive(Debug)]
pub struct Search {
    /// The measurement of a round without any change.
    pub plan: Plan,
    /// The changes to try, without the control, each in words and with its values.
    pub changes: Vec<(Candidate, Setting)>,
    /// Time for the whole search, ns.
    pub budget_ns: u64,
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

    /// The measurement with these candidates.
    fn with(&self, applied: &[usize]) -> Plan {
        // The control is the last one, and changes nothing.
        let settings = applied.iter().filter_map(|&index| self.changes.get(index)).map(|(_, setting)| setting.clone());
        Plan { planned_settings: settings.collect(), ..self.plan.clone() }
    }

    /// The document before its first round.
    fn document(&self, command: Vec<String>, root: &Root) -> Proof {
        let control = Candidate { id: CONTROL.to_owned(), change: "changes nothing".to_owned() };
        let named = self.changes.iter().map(|(candidate, _)| candidate.clone());
        let candidates: Vec<Candidate> = named.chain([control]).collect();
        let (hostname, kernel) = this_machine(root);
        let scenario = self.plan.scenario();
        // Names and values of the changes; the seed makes another order of the same search.
        let (probe, phases) = (&self.plan.probe, &self.plan.phases);
        let digest = digest_of(format_args!("{scenario:?} {probe:?} {phases:?} {candidates:?}"));
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
            blocks: u32::try_from(self.budget_ns / self.block_ns()).unwrap_or(u32::MAX),
            candidates,
            ..Proof::default()
        }
    }

    /// Time of a block, ns.
    fn block_ns(&self) -> u64 {
        (self.round_ns() + AROUND_NS) * u64::from(prove::ROUNDS)
    }

    /// An error if a search of so many blocks cannot find anything.
    fn check(&self, blocks: u32) -> Result<(), ProveError> {
        if self.changes.is_empty() {
            return Err(ProveError::NoCandidates);
        }
        // With the control.
        let least = prove::least_blocks(self.changes.len() + 1);
        if blocks < least {
            let needs_ns = u64::from(least) * self.block_ns();
            return Err(ProveError::TooShort { blocks, candidates: self.changes.len(), needs_ns });
        }
        Ok(())
    }
}

/// A search and the folder of its document.
#[derive(Debug)]
pub struct Prover<'a> {
    search: &'a Search,
    dir: PathBuf,
    proof: Proof,
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
        let mut prover = Self { search, dir: dir.to_owned(), proof, _lock: lock };
        prover.write()?;
        Ok(prover)
    }

    /// Goes on with a search: its budget and the order of its rounds remain. A block that was interrupted is repeated.
    ///
    /// # Errors
    /// The folder contains no search, one that runs, one of another measurement, of other changes or of another machine, or
    /// one that others can change.
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
        if (&proof.hostname, &proof.kernel) != (&of_now.hostname, &of_now.kernel) {
            return Err(ProveError::Other { path, what: "another machine or kernel" });
        }
        if proof.digest != of_now.digest || proof.candidates != of_now.candidates {
            return Err(ProveError::Other { path, what: "another measurement or other changes" });
        }
        search.check(proof.blocks)?;
        prove::forget_partial_block(&mut proof);
        proof.conclusion = None;
        Ok(Self { search, dir: dir.to_owned(), proof, _lock: lock })
    }

    /// The document so far.
    #[must_use]
    pub fn proof(&self) -> &Proof {
        &self.proof
    }

    /// Measures the remaining rounds. Returns the document, which is also written to disk, and the error that ended the
    /// search. A signal such as SIGTERM ends the running round and the search, which can be resumed.
    pub fn run(mut self, root: &Root, handler: &mut dyn ProveHandler) -> (Proof, Result<(), ProveError>) {
        let ended = self.rounds(root, handler);
        if self.proof.state != State::Complete {
            self.proof.state = State::Interrupted;
        }
        let written = self.write();
        (self.proof, ended.and(written))
    }

    fn rounds(&mut self, root: &Root, handler: &mut dyn ProveHandler) -> Result<(), ProveError> {
        let settings: Vec<Setting> = self.search.changes.iter().map(|(_, setting)| setting.clone()).collect();
        while let Some(next) = prove::advance(&mut self.proof) {
            if termination_requests() > 0 {
                break;
            }
            if let Some(changed) = tune::changed_since(root, &settings) {
                return Err(ProveError::ChangedByOthers(changed));
            }
            let plan = self.search.with(&next.applied);
            let proof = &self.proof;
            let record = crate::run(&plan, root, &mut |record, progress| handler.watch(record, progress, proof))?;
            if let Some(reason) = record.validity.reasons.first() {
                return Err(ProveError::InvalidRound(reason.text.clone()));
            }
            if record.state != State::Complete {
                break;
            }
            self.proof.rounds.push(next.measured(record.started_at.clone(), &record));
            self.write()?;
            handler.done(&self.proof);
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), ProveError> {
        self.proof.written_at = now();
        Ok(file::write_atomic(&self.dir.join(PROOF_FILE), &file::proof_to_json(&self.proof))?)
    }
}

/// The newest folder in `dir` with an unfinished search of this user. Links are not followed.
#[must_use]
pub fn unfinished(dir: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(dir).ok()?.flatten().map(|found| found.path());
    let unfinished_since = |folder: &PathBuf| {
        let parts = [folder, &folder.join(PROOF_FILE)];
        if !parts.into_iter().all(|path| is_own(path) && !path.is_symlink()) {
            return None;
        }
        let proof = file::read_proof(&folder.join(PROOF_FILE)).ok()?;
        (proof.state != State::Complete).then_some(proof.written_at)
    };
    folders.filter_map(|folder| Some((unfinished_since(&folder)?, folder))).max().map(|(_, folder)| folder)
}
