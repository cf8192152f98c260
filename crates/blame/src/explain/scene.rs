//! One wake-up: the CPU's moments and the measuring thread's spells laid over each other.

use std::collections::{HashMap, HashSet};

use super::{
    Waiter, Wake,
    context::{Context, Open},
    replay::{Film, Moment, People, Thread, Woken},
    waiter::{At, Spell, Waker, spells},
};
use crate::{Event, What};

/// A thread that its timer woke this long before the deadline was woken for it, ns: clocks are converted.
const EARLY_NS: u64 = 1_000;

/// One wake-up, with what the events tell of it.
pub(super) struct Scene {
    pub waiter: Waiter,
    pub wake: Wake,
    pub people: People,
    pub spells: Vec<Spell>,
    /// The sleeps that a timer ended, by number of the spell.
    pub expiries: HashMap<usize, Expiry>,
    /// CPU and number of the contexts that woke the measuring thread.
    pub own: HashSet<(u32, u32)>,
    /// Until then the measuring thread is at its previous cycle, ns.
    pub previous_cycle_until_ns: u64,
    /// Since when no event is missing, ns.
    known_since_ns: u64,
    /// That of the waiter's CPU, and of those on which it was woken.
    films: HashMap<u32, Film>,
    nmis: Vec<Nmi>,
}

/// How a timer ended a sleep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expiry {
    cpu: u32,
    /// When its interrupt was taken, ns.
    pub begun_ns: u64,
    /// The thread in which the callback ran, where that had to be switched in for it: a softirq of PREEMPT_RT.
    pub by: Option<Thread>,
}

/// A non-maskable interrupt.
pub(super) struct Nmi {
    from_ns: u64,
    to_ns: u64,
    pub handler: u64,
}

/// A piece of time in which nothing changed.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    pub from_ns: u64,
    pub to_ns: u64,
    /// The CPU that matters: the waiter's, or while it sleeps that of its timer.
    pub cpu: u32,
    /// What that is at; `None` where the events do not tell.
    pub moment: Option<&'a Moment>,
    /// The number of the spell.
    pub spell: usize,
    /// A non-maskable interrupt.
    pub nmi: Option<&'a Nmi>,
}

impl Slice<'_> {
    /// Tells one run of the handler or thread that has the CPU from its next.
    pub fn run(&self) -> u64 {
        let of_moment = |moment: &Moment| moment.top.map_or(moment.switched_ns.unwrap_or(0), |open| open.id.into());
        self.nmi.map_or_else(|| self.moment.map_or(0, of_moment), |nmi| nmi.from_ns)
    }
}

impl Scene {
    /// `events` are in order of time, and none is missing among them.
    pub fn new(events: &[&Event], waiter: Waiter, wake: Wake, known_since_ns: u64) -> Self {
        let people = People::of(events);
        let spells = spells(events, waiter);
        let mut scene = Self {
            waiter,
            wake,
            people,
            spells,
            expiries: HashMap::new(),
            own: HashSet::new(),
            previous_cycle_until_ns: 0,
            known_since_ns,
            films: HashMap::new(),
            nmis: nmis(events, waiter.cpu),
        };
        scene.film(events, waiter.cpu);
        for number in 0..scene.spells.len() {
            if let Some(waker) =
                scene.spells[number].woken.filter(|waker| waker.at_ns.saturating_add(EARLY_NS) >= wake.deadline_ns)
            {
                scene.film(events, waker.cpu);
                scene.note_expiry(number, waker);
            }
        }
        if !waiter.spins {
            scene.note_previous_cycle();
        }
        scene
    }

    fn film(&mut self, events: &[&Event], cpu: u32) {
        self.films.entry(cpu).or_insert_with(|| {
            let events: Vec<&Event> = events.iter().copied().filter(|event| event.cpu == cpu).collect();
            Film::of(&events, &self.people, self.waiter.pid)
        });
    }

    /// Whether the events tell everything from the deadline to the end.
    pub fn is_whole(&self) -> bool {
        let (deadline_ns, end_ns) = (self.wake.deadline_ns, self.wake.end_ns());
        let last = self.spells.len() - 1;
        let told = |number: usize| match self.spells[number].at {
            At::Running | At::Faulting => true,
            At::Unknown => false,
            At::Ready => number < last,
            At::Asleep | At::Waiting { .. } | At::Stopped { .. } => self.spells[number].woken.is_some(),
        };
        // Of a thread that has its CPU to itself there may be nothing to tell.
        let has_the_cpu = self
            .moment(self.waiter.cpu, end_ns)
            .map_or(self.waiter.spins, |moment| moment.thread.pid == self.waiter.pid);
        self.known_since_ns <= deadline_ns && has_the_cpu && (self.spell_at(deadline_ns)..=last).all(told)
    }

    /// Who made the measuring thread ready, in words that `name` has for an interrupt and a thread.
    pub fn woken(&self, waker: Waker) -> Option<&Woken> {
        self.films.get(&waker.cpu)?.wakings.iter().find(|woken| woken.at_ns == waker.at_ns)
    }

    /// The time from `from_ns` to the end in slices that follow on each other; none reaches across the deadline or the
    /// wake-up.
    pub fn slices(&self, from_ns: u64) -> Vec<Slice<'_>> {
        let (Wake { deadline_ns, woke_ns, .. }, end_ns) = (self.wake, self.wake.end_ns());
        let mut cuts = vec![from_ns, deadline_ns, woke_ns, end_ns, self.known_since_ns, self.previous_cycle_until_ns];
        cuts.extend(self.films.values().flat_map(|film| &film.moments).map(|moment| moment.from_ns));
        cuts.extend(self.spells.iter().map(|spell| spell.from_ns));
        cuts.extend(self.expiries.values().map(|expiry| expiry.begun_ns));
        cuts.extend(self.nmis.iter().flat_map(|nmi| [nmi.from_ns, nmi.to_ns]));
        cuts.retain(|cut| (from_ns..=end_ns).contains(cut));
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|cut| self.slice(cut[0], cut[1])).collect()
    }

    fn slice(&self, from_ns: u64, to_ns: u64) -> Slice<'_> {
        let spell = self.spell_at(from_ns);
        let cpu = self.expiries.get(&spell).map_or(self.waiter.cpu, |expiry| expiry.cpu);
        let moment = self.moment(cpu, from_ns).filter(|_| from_ns >= self.known_since_ns);
        let nmi = self.nmis.partition_point(|nmi| nmi.to_ns <= from_ns);
        let nmi = self.nmis.get(nmi).filter(|nmi| nmi.from_ns <= from_ns);
        Slice { from_ns, to_ns, cpu, moment, spell, nmi }
    }

    fn spell_at(&self, at_ns: u64) -> usize {
        self.spells.partition_point(|spell| spell.from_ns <= at_ns).saturating_sub(1)
    }

    fn moment(&self, cpu: u32, at_ns: u64) -> Option<&Moment> {
        let moments = &self.films.get(&cpu)?.moments;
        moments.get(moments.partition_point(|moment| moment.from_ns <= at_ns).checked_sub(1)?)
    }

    /// Notes how a timer woke the measuring thread, if it was one: by what ran on top of the thread that had the CPU,
    /// not by any name.
    fn note_expiry(&mut self, number: usize, waker: Waker) {
        let Some(woken) = self.woken(waker).filter(|_| self.spells[number].at == At::Asleep) else { return };
        let innermost = |is_it: fn(Context) -> bool| woken.stack.iter().rposition(|open| is_it(open.context));
        let mut own: Vec<Open> = Vec::new();
        let expiry = if let Some(interrupt) = innermost(Context::is_hard) {
            own.extend(&woken.stack[interrupt..]);
            Expiry { cpu: waker.cpu, begun_ns: own[0].since_ns.unwrap_or(0), by: None }
        } else if let Some(softirq) = innermost(|context| matches!(context, Context::Softirq { .. })) {
            own.extend(&woken.stack[softirq..]);
            // The timer's interrupt is the one that asked for the softirq; none that is known of, if that was earlier.
            let raised = self.films[&waker.cpu].raised_before(own[0]);
            let begun_ns = raised.map(|raised| raised.interrupt.map_or(Some(raised.at_ns), |open| open.since_ns));
            own.extend(raised.and_then(|raised| raised.interrupt));
            Expiry { cpu: waker.cpu, begun_ns: begun_ns.flatten().unwrap_or(0), by: Some(woken.by) }
        } else if woken.by.pid == 0 || !woken.stack.is_empty() {
            // In an interrupt that is not traced.
            own.extend(&woken.stack);
            Expiry {
                cpu: waker.cpu,
                begun_ns: own.first().and_then(|open| open.since_ns).unwrap_or(waker.at_ns),
                by: None,
            }
        } else {
            return;
        };
        self.own.extend(own.iter().map(|open| (waker.cpu, open.id)));
        self.expiries.insert(number, expiry);
    }

    /// Notes until when the measuring thread is at the cycle before the deadline, if it is: until it first gives up the
    /// CPU of itself, or its timer finds it running.
    fn note_previous_cycle(&mut self) {
        let deadline_ns = self.wake.deadline_ns;
        let is_up = |spell: &Spell| matches!(spell.at, At::Running | At::Faulting | At::Ready);
        let (before, after) = self.spells.split_at(self.spell_at(deadline_ns));
        let woken = before.iter().rfind(|spell| !is_up(spell)).and_then(|spell| spell.woken);
        let woken_for_it = woken.is_some_and(|waker| waker.at_ns.saturating_add(EARLY_NS) >= deadline_ns);
        if woken_for_it || !is_up(&after[0]) {
            return;
        }
        let down_ns = after.iter().find(|spell| !is_up(spell)).map_or(u64::MAX, |spell| spell.from_ns);
        let cpu = self.waiter.cpu;
        let wakings = self.films.get(&cpu).map_or(&[][..], |film| &film.wakings);
        let expired = wakings.iter().find(|woken| (deadline_ns..down_ns).contains(&woken.at_ns));
        let interrupt = expired.and_then(|woken| {
            let interrupt = woken.stack.iter().rposition(|open| open.context.is_hard())?;
            Some(&woken.stack[interrupt..])
        });
        self.previous_cycle_until_ns = expired.map_or(down_ns, |woken| woken.at_ns);
        self.own.extend(interrupt.unwrap_or(&[]).iter().map(|open| (cpu, open.id)));
    }
}

/// When non-maskable interrupts had the CPU: each is told when it ends.
fn nmis(events: &[&Event], cpu: u32) -> Vec<Nmi> {
    let mut nmis: Vec<Nmi> = Vec::new();
    for event in events.iter().filter(|event| event.cpu == cpu) {
        if let What::Nmi { handler, took_ns } = event.what {
            let last_ns = nmis.last().map_or(0, |nmi| nmi.to_ns);
            let from_ns = event.at_ns.saturating_sub(took_ns).max(last_ns);
            nmis.push(Nmi { from_ns, to_ns: event.at_ns, handler });
        }
    }
    nmis
}
