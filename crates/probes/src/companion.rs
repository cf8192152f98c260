//! What measures together with the timers of a phase: it gives them work to do at each deadline, may have threads of its
//! own, and tells series of its own.

use record::{Caveat, Reason, Series, Spike};
use sys::sched::Policy;

use crate::timer::{Grant, Work};

/// A measurement around the timers of one phase. Made before them, and there until the phase has been told.
///
/// All of this is called from an ordinary thread.
pub trait Companion {
    /// What the timer number `index` of the phase is to do at each deadline. Asked once for each, before it is made.
    fn work(&mut self, index: usize) -> Option<Box<dyn Work>>;

    /// The threads of its own, with what they were asked to be.
    fn members(&self) -> Vec<Member<'_>>;

    /// Takes in what its threads have told. Called some twenty times a second, and once after [`finish`](Self::finish).
    fn collect(&mut self);

    /// Whether there is nothing more to come from its own threads. Without timers, that ends the phase.
    fn has_ended(&self) -> bool {
        true
    }

    /// Spikes that the work of timer number `index` told since the last [`collect`](Self::collect), to be explained as the
    /// timer's own are. What is written into them stays with those that are kept.
    fn fresh_spikes(&mut self, _index: usize) -> &mut [Spike] {
        &mut []
    }

    /// What the work of a timer usually takes, ns, where its spikes hold that; 0 where they do not.
    fn usual_work_ns(&self) -> u64 {
        0
    }

    /// Adds to the series of the timer number `index` what its work has seen.
    fn tell(&self, _index: usize, _series: &mut Series) {}

    /// Waits for what is still under way and ends the threads. Called once all timers have ended.
    fn finish(&mut self);

    /// What has been seen so far, in the series of the phase called `phase`. Of what was granted, the lock on memory and
    /// how the CPU is held awake are filled in by who asks.
    fn series(&self, phase: &str) -> Vec<Series>;

    /// Why the run is not to be trusted, as far as that shows by now. What no longer holds is left out again.
    fn reasons(&self) -> Vec<Reason>;

    /// What the figures cannot tell. Asked once, at the end.
    fn caveats(&self) -> Vec<Caveat>;
}

/// A thread that measures: what it was to be, and what the kernel granted.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// Which one it is, in words: `CPU 1`, `base`, `receiver`.
    pub place: String,
    /// The policy that was asked for.
    pub policy: Policy,
    /// What the kernel granted.
    pub grant: &'a Grant,
}
