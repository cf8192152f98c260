//! A search whose rounds are boots: each boot measures one round, and requests the next boot.
//!
//! A boot carries the number of its round as an argument of the kernel, so that a boot for another reason is not taken for
//! it. Such a boot, e.g. after a power cut, breaks the block of its round, which is repeated.

use std::{path::Path, thread, time::Duration};

use analysis::prove;
use machine::{
    Root,
    tune::reboot::{self, BootChange, Image},
};
use record::Proof;
use sys::{clock::Clock, signal::termination_requests};

use super::{ProveError, ProveHandler, Prover};

/// Time around the measurement of a round that is assumed for the plan, ns: the restart, and [`SETTLE_NS`].
pub(super) const AROUND_NS: u64 = 90_000_000_000;
/// Time for a whole search, ns, if none is named.
pub(super) const BUDGET_NS: u64 = 8 * 3600 * 1_000_000_000;
/// Number of restarts in a row without the requested kernel after which a search stops.
pub(super) const ATTEMPTS: u32 = 3;
/// Time from the boot of the machine after which it has come to rest, ns.
const SETTLE_NS: i64 = 60_000_000_000;

/// The boot of the next round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextBoot {
    /// The kernel to start, with its initramfs.
    pub image: Image,
    /// Its arguments.
    pub arguments: String,
}

/// True if the running kernel was booted for the round that the document requested.
pub(super) fn is_requested(proof: &Proof, root: &Root) -> bool {
    let requested = proof.boots.as_ref().and_then(|boots| boots.requested);
    requested == Some(proof.rounds.len() as u64) && reboot::has_mark(root, &mark(proof))
}

/// The argument of the kernel for the next round.
fn mark(proof: &Proof) -> String {
    format!("{}={}.{}", reboot::MARK, proof.digest, proof.rounds.len())
}

impl Prover<'_> {
    /// Measures the round of this boot, if it was booted for one, and requests the next boot; `None` if the search is over, or
    /// was ended by a signal.
    pub(super) fn boot_round(
        &mut self,
        changes: &[BootChange],
        root: &Root,
        handler: &mut dyn ProveHandler,
    ) -> Result<Option<NextBoot>, ProveError> {
        let is_requested = is_requested(&self.proof, root);
        let Some(next) = prove::advance(&mut self.proof) else { return Ok(None) };
        if is_requested {
            settle();
            if termination_requests() > 0 || !self.measure(next, &self.search.plan, root, handler)? {
                return Ok(None);
            }
            if let Some(boots) = &mut self.proof.boots {
                boots.attempts = 0;
            }
        }
        let Some(next) = prove::advance(&mut self.proof) else { return Ok(None) };
        // The control is the last one, and changes nothing.
        let applied: Vec<&BootChange> = next.applied.iter().filter_map(|&index| changes.get(index)).collect();
        let (mark, round) = (mark(&self.proof), self.proof.rounds.len() as u64);
        let Some(boots) = &mut self.proof.boots else { return Ok(None) };
        let arguments = reboot::arguments_with(&boots.arguments, &applied, &mark);
        if boots.attempts >= ATTEMPTS {
            // A later --resume tries again.
            (boots.attempts, boots.requested) = (0, None);
            return Err(ProveError::NotBooted { arguments });
        }
        boots.attempts += 1;
        boots.requested = Some(round);
        // The running kernel can be another one than that of the first boot.
        let kernel = applied.iter().find_map(|change| change.kernel.as_deref()).unwrap_or(Path::new(&boots.kernel));
        Ok(Some(NextBoot { image: reboot::image(root, kernel), arguments }))
    }
}

/// Waits until the machine has come to rest after its boot, or for a signal.
fn settle() {
    while Clock::Boottime.now_ns() < SETTLE_NS && termination_requests() == 0 {
        thread::sleep(Duration::from_millis(500));
    }
}
