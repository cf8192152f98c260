//! The waits of a thread that start its cycles.

use record::{Histogram, Release};

use super::calls::Source;
use crate::time::signed_ns;

/// The kinds of waits that can start cycles. A later kind takes precedence: a thread that sleeps until a time waits for
/// its next cycle then, and its other waits are part of the cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Event,
    Relative,
    Timer,
    Absolute,
}

/// A kind of wait starts the cycles as long as at most this many waits of lower rank come between two of them. Waits for
/// the answers of other threads do not count.
const MOST_WAITS_BETWEEN: u8 = 8;
/// The number of equal steps after which sleeps until a time are regular, however many waits come between them.
const REGULAR_STEPS: u8 = 3;
/// One of this many cycles may start in an unclear way until [`Releases::are_unclear`].
const UNCLEAR_SHARE: u64 = 100;

/// Finds the waits that start a thread's cycles.
#[derive(Debug, Clone, Default)]
pub(super) struct Releases {
    relative: Frequency,
    timer: Frequency,
    absolute: Frequency,
    steps: Steps,
    /// The distances of releases.
    distances: Distances,
    /// The durations of the relative sleeps that start cycles.
    sleeps: Distances,
    /// The event that started the last cycle.
    event: Option<Source>,
    /// Cycles that an event started.
    events: u64,
    /// Cycles that another wait could have started as well.
    unclear: u64,
    /// Waits for events that another program or a device ended, within cycles that relative or irregular sleeps start.
    foreign: u64,
    /// Waits for events that no cycle contains: those between two cycles that a timer starts.
    outside: u64,
    /// The call that reads the timer.
    timer_read_by: Option<Source>,
    /// True if the thread reads several timers.
    has_several_timers: bool,
    /// True if the thread waits for the timer that it reads, at least after some of its cycles.
    awaits_timer: bool,
    row: Row,
}

/// Cycles in a row that may be one: the usual event started the first one, and others the rest, such as a lock that is
/// seldom taken.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    /// The event that usually starts cycles.
    usual: Option<Source>,
    /// Number of cycles that it started since it became the usual event, minus those that others started.
    lead: u64,
    /// Start of the first cycle, ns on CLOCK_MONOTONIC.
    begun_ns: u64,
    /// End of the last cycle, ns on CLOCK_MONOTONIC.
    ended_ns: u64,
    /// Cycles that other events started.
    others: u8,
    /// The longest row, ns.
    longest_ns: u64,
}

/// Frequency of a kind of wait.
#[derive(Debug, Clone, Copy, Default)]
struct Frequency {
    /// True if it occurs often enough to start the cycles.
    frequent: bool,
    /// Waits of lower rank since its last one.
    others: u8,
}

/// The distances of the times that a thread sleeps until.
#[derive(Debug, Clone, Copy, Default)]
struct Steps {
    last_ns: u64,
    step_ns: u64,
    /// Number of equal steps in a row.
    equal: u8,
}

impl Releases {
    /// Notes a wait. Returns true if it ends a cycle, and the next cycle starts after it.
    pub fn note(&mut self, rank: Rank) -> bool {
        let kinds = [(Rank::Relative, &mut self.relative), (Rank::Timer, &mut self.timer)];
        for (kind, frequency) in kinds {
            frequency.note(kind, rank);
        }
        // Of a thread that sleeps until regular times, other sleeps are the cycles if there are more of them.
        if !self.steps.are_regular() || rank > Rank::Event {
            self.absolute.note(Rank::Absolute, rank);
        }
        rank == self.rank()
    }

    /// Notes the time that an absolute sleep ends, ns on CLOCK_MONOTONIC.
    pub fn note_time(&mut self, expires_ns: u64) {
        self.steps.note(expires_ns);
    }

    /// Notes the distance of two releases, ns.
    pub fn note_distance(&mut self, ns: u64) {
        self.distances.note(self.rank(), ns);
    }

    /// Notes the duration of a relative sleep that starts a cycle, ns.
    pub fn note_sleep(&mut self, ns: u64) {
        self.sleeps.note(self.rank(), ns);
    }

    /// True if a cycle may contain several of the waits that start one. The distances of relative sleeps contain the work
    /// of a cycle, but a program that sleeps for the rest of its period has sleeps of different durations.
    fn may_be_several(&self) -> bool {
        let is_relative = self.rank() == Rank::Relative;
        self.distances.are_irregular() && (!is_relative || self.sleeps.are_irregular())
    }

    /// Notes a wait for an event within a cycle, if it may be the wait for the next one.
    pub fn note_wait_within(&mut self, is_answer: bool) {
        let starts_irregularly = match self.rank() {
            Rank::Relative => true,
            Rank::Absolute => !self.steps.are_regular(),
            Rank::Event | Rank::Timer => false,
        };
        self.foreign += u64::from(!is_answer && starts_irregularly);
    }

    /// Notes the call that reads a timer.
    pub fn note_timer(&mut self, read_by: Source) {
        self.has_several_timers |= self.timer_read_by.replace(read_by).is_some_and(|before| before != read_by);
    }

    /// Notes that the thread waits for the timer that it reads.
    pub fn note_timer_wait(&mut self) {
        self.awaits_timer = true;
    }

    /// Notes a wait for an event that ended long after a timer expired, which the thread may have stopped before.
    pub fn note_old_expiry(&mut self) {
        self.foreign += 1;
    }

    /// Notes the end of a wait for an event that belongs to no cycle.
    pub fn note_outside(&mut self) {
        self.outside += 1;
    }

    /// The kind of wait that starts the cycles.
    pub fn rank(&self) -> Rank {
        let kinds = [(self.absolute, Rank::Absolute), (self.timer, Rank::Timer), (self.relative, Rank::Relative)];
        kinds.iter().find(|(frequency, _)| frequency.frequent).map_or(Rank::Event, |&(_, rank)| rank)
    }

    /// True if the wait for an event is part of the current cycle: it ends with an answer to the thread itself, and the
    /// cycle started with another wait.
    pub fn is_within_cycle(&self, source: Source, is_answer: bool) -> bool {
        is_answer && (self.rank() > Rank::Event || self.event != Some(source))
    }

    /// Notes the event that starts a cycle.
    pub fn begin_with(&mut self, source: Source, is_answer: bool, at_ns: u64) {
        self.row.begin(source, is_answer, at_ns);
        let is_other = self.event.replace(source).is_some_and(|before| before != source);
        self.events += 1;
        self.unclear += u64::from(is_other || is_answer);
    }

    /// Notes the end of a cycle that an event started, ns on CLOCK_MONOTONIC.
    pub fn end_at(&mut self, at_ns: u64) {
        self.row.ended_ns = at_ns;
    }

    /// The longest time from the start to the end of several cycles that may be one, ns; 0 if each of them is one.
    pub fn longest_row_ns(&self) -> u64 {
        match self.rank() {
            Rank::Event => self.row.longest_ns.max(self.row.length_ns()),
            Rank::Relative | Rank::Timer | Rank::Absolute => 0,
        }
    }

    /// True if a wait for this event at the end of the run may be the wait for the next cycle, not part of the last one:
    /// the event started that cycle, or the trace does not show which events start cycles.
    pub fn may_start_with(&self, source: Source) -> bool {
        self.began_with(source) || self.rank() == Rank::Event && self.are_unclear()
    }

    /// True if this event started the current cycle.
    pub fn began_with(&self, source: Source) -> bool {
        self.rank() == Rank::Event && self.event == Some(source)
    }

    /// True if the trace does not show which of the events start cycles.
    fn are_unclear(&self) -> bool {
        self.unclear * UNCLEAR_SHARE > self.events
    }

    /// The release for the record.
    pub fn to_record(&self) -> Release {
        match self.rank() {
            _ if (self.foreign + self.outside) * UNCLEAR_SHARE > self.distances.count => Release::Mixed,
            Rank::Timer if self.has_several_timers || !self.awaits_timer => Release::Mixed,
            _ if self.may_be_several() => Release::Alternating,
            Rank::Event if self.are_unclear() => Release::AnyEvent,
            Rank::Event => Release::Event,
            Rank::Relative => Release::RelativeSleep,
            Rank::Timer => Release::Timer,
            Rank::Absolute => Release::AbsoluteSleep,
        }
    }
}

impl Row {
    /// The usual event is known as soon as it has this lead.
    const KNOWN: u64 = 3;

    /// Notes the start of a cycle, ns on CLOCK_MONOTONIC.
    fn begin(&mut self, source: Source, is_answer: bool, at_ns: u64) {
        if self.usual == Some(source) && !is_answer {
            // However many they are: the usual event came back.
            let row_ns = if self.others > 0 { self.ended_ns.saturating_sub(self.begun_ns) } else { 0 };
            let longest_ns = self.longest_ns.max(row_ns);
            *self = Self { lead: self.lead + 1, begun_ns: at_ns, others: 0, longest_ns, ..*self };
        } else if self.lead == 0 {
            *self = Self { usual: Some(source), lead: 1, begun_ns: at_ns, others: 0, ..*self };
        } else {
            self.others = if self.lead < Self::KNOWN { 0 } else { self.others.saturating_add(1) };
            self.lead -= 1;
        }
    }

    /// From its start to its end so far, ns; 0 if it is a single cycle, or too long to be one: the thread probably has another
    /// usual event now.
    fn length_ns(&self) -> u64 {
        match self.others {
            1..=MOST_WAITS_BETWEEN => self.ended_ns.saturating_sub(self.begun_ns),
            _ => 0,
        }
    }
}

/// The distances of releases. If a cycle contains several waits of the kind that starts it, they differ.
#[derive(Debug, Clone, Default)]
struct Distances {
    rank: Option<Rank>,
    /// The last ones, the newest first, ns.
    last_ns: [u64; 4],
    /// All but the first one, which is the start.
    all: Histogram,
    count: u64,
    /// Distances that differ from the one before, but equal an earlier one.
    repeated: u64,
}

impl Distances {
    /// Fewer distances show nothing.
    const ENOUGH: u64 = 12;

    fn note(&mut self, rank: Rank, ns: u64) {
        if self.rank != Some(rank) {
            *self = Self { rank: Some(rank), ..Self::default() };
        }
        let [before_ns, earlier @ ..] = self.last_ns;
        // The times of sleeps are exact.
        let (equal, different) = if rank == Rank::Event { (8, 4) } else { (64, 16) };
        let is_equal = |other_ns: u64| ns.abs_diff(other_ns) <= ns.max(other_ns) / equal;
        let differs = ns.abs_diff(before_ns) > ns.max(before_ns) / different;
        self.count += 1;
        self.repeated += u64::from(differs && earlier.into_iter().any(is_equal));
        self.last_ns = [ns, before_ns, earlier[0], earlier[1]];
        if self.count > 1 {
            self.all.record(signed_ns(ns));
        }
    }

    /// True if a cycle may contain several waits: if at least three of five distances repeat in turn, several belong
    /// together. Events come at any time. Sleeps have about equal distances, except for the first one, and for a few
    /// cycles that did not occur.
    fn are_irregular(&self) -> bool {
        if self.count < Self::ENOUGH {
            return false;
        }
        if self.repeated * 5 >= self.count * 3 {
            return true;
        }
        if self.rank == Some(Rank::Event) {
            return false;
        }
        let median_ns = self.all.percentile(50.0).unwrap_or(0);
        let long = self.all.count_above(median_ns / 2 * 3);
        let short = self.all.total() - self.all.count_above(median_ns / 4 * 3);
        short > 0 || long * 20 > self.count
    }
}

impl Frequency {
    /// Notes a wait of `rank`, if this is the frequency of `own`.
    fn note(&mut self, own: Rank, rank: Rank) {
        if rank == own {
            *self = Self { frequent: self.others <= MOST_WAITS_BETWEEN, others: 0 };
        } else if rank < own {
            self.others = self.others.saturating_add(1);
            self.frequent &= self.others <= MOST_WAITS_BETWEEN;
        }
    }
}

impl Steps {
    fn note(&mut self, expires_ns: u64) {
        let step_ns = expires_ns.saturating_sub(self.last_ns);
        // A sleep that is continued after a signal.
        if step_ns == 0 {
            return;
        }
        let is_equal = step_ns.abs_diff(self.step_ns) <= step_ns / 1000;
        self.equal = if is_equal { self.equal.saturating_add(1) } else { 0 };
        (self.last_ns, self.step_ns) = (expires_ns, step_ns);
    }

    fn are_regular(&self) -> bool {
        self.equal >= REGULAR_STEPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_waits_are_part_of_the_cycle_of_a_thread_that_sleeps_regularly() {
        let mut releases = Releases::default();
        assert!(releases.note(Rank::Event), "no sleep yet");
        for _ in 0..3 {
            assert!(releases.note(Rank::Absolute));
            assert!(!releases.note(Rank::Relative));
            assert!((0..7).all(|_| !releases.note(Rank::Event)));
        }
        assert!(!releases.note(Rank::Event) || releases.rank() == Rank::Event);
        assert!(releases.note(Rank::Event) && releases.rank() == Rank::Event, "it no longer sleeps regularly");
        assert!((0..50).all(|_| releases.note(Rank::Event)));
        assert!(!releases.note(Rank::Relative), "a rare sleep is a part of a cycle");
        assert!((0..9).all(|_| releases.note(Rank::Event)));
        assert!(!releases.note(Rank::Absolute), "a rare sleep is a part of a cycle");
        assert!(releases.note(Rank::Absolute), "now it sleeps regularly");
    }

    #[test]
    fn sleeps_until_equally_distant_times_start_cycles_despite_many_waits() {
        let cycles = |step_ns: fn(u64) -> u64| {
            let mut releases = Releases::default();
            let mut at_ns = 0;
            for number in 0..8 {
                at_ns += step_ns(number);
                releases.note(Rank::Absolute);
                releases.note_time(at_ns);
                (0..50).for_each(|_| _ = releases.note(Rank::Event));
            }
            releases.rank()
        };
        assert_eq!(cycles(|_| 1_000_000), Rank::Absolute);
        assert_eq!(cycles(|number| 1_000_000 + number * 3000), Rank::Event);
    }

    #[test]
    fn distances_that_repeat_in_turn_show_several_waits_in_a_cycle() {
        let release_of = |rank: Rank, distances_ns: &[u64]| {
            let mut releases = Releases::default();
            for (&distance_ns, number) in distances_ns.iter().cycle().zip(0..40) {
                releases.note(rank);
                releases.note_distance(distance_ns + number * 1000);
            }
            releases.to_record()
        };
        let release = |distances_ns: &[u64]| release_of(Rank::Absolute, distances_ns);
        assert_eq!(release(&[8_000_000, 4_000_000]), Release::Alternating);
        assert_eq!(release(&[8_000_000, 1_000_000, 1_000_000]), Release::Alternating);
        assert_eq!(release(&[7_000_000, 1_000_000, 1_000_000, 1_000_000]), Release::Alternating, "equal sleeps");
        assert_eq!(release(&[4_500_000, 5_500_000]), Release::Alternating);
        assert_eq!(release(&[3_000_000, 3_000_000, 4_000_000]), Release::Alternating);
        assert_eq!(release(&[10_000_000, 10_200_000, 11_000_000, 9_400_000]), Release::AbsoluteSleep);
        let mut rare = [10_000_000; 21];
        (rare[7], rare[8]) = (3_000_000, 7_000_000);
        assert_eq!(release(&rare), Release::Alternating, "a rare second sleep");
        let mut once = [10_000_000; 40];
        once[20] = 5_000_000;
        assert_eq!(release(&once), Release::Alternating, "one other sleep");
        once = [10_000_000; 40];
        once[0] = 2_000_000;
        assert_eq!(release(&once), Release::AbsoluteSleep, "the start");
        rare = [10_000_000; 21];
        rare[7] = 20_000_000;
        assert_eq!(release(&rare), Release::AbsoluteSleep, "a cycle that did not occur");
        let mut releases = Releases::default();
        for number in 0..40 {
            releases.note(Rank::Relative);
            releases.note_distance(10_000_000);
            releases.note_sleep(9_000_000 - number % 3 * 3_000_000);
        }
        assert_eq!(releases.to_record(), Release::RelativeSleep, "for the rest of the period");
        assert_eq!(release_of(Rank::Event, &rare), Release::Event);
        assert_eq!(release_of(Rank::Event, &[9_000_000, 100_000]), Release::Alternating);
    }

    #[test]
    fn a_server_that_sleeps_for_a_while_waits_for_its_clients() {
        let release = |is_answer| {
            let mut releases = Releases::default();
            for _ in 0..20 {
                releases.note(Rank::Relative);
                releases.note_distance(500_000);
                releases.note(Rank::Event);
                releases.note_wait_within(is_answer);
            }
            releases.to_record()
        };
        assert_eq!((release(false), release(true)), (Release::Mixed, Release::RelativeSleep));
    }

    #[test]
    fn a_cycle_that_another_event_starts_may_be_part_of_the_one_before() {
        let [pipe, lock, other] = [1, 2, 3].map(|object| Source::of(0, [object, 0, 0]));
        let longest = |events: &[(Source, u64)]| {
            let mut releases = Releases::default();
            for &(event, at_ns) in events {
                releases.begin_with(event, false, at_ns);
                releases.end_at(at_ns + 10);
            }
            releases.longest_row_ns()
        };
        let usual: Vec<_> = (0..500).map(|number| (pipe, number * 100)).collect();
        assert_eq!(longest(&usual), 0);
        let with = |others: &[(Source, u64)]| {
            let mut events = [&usual, others].concat();
            events.sort_by_key(|&(_, at_ns)| at_ns);
            longest(&events)
        };
        assert_eq!(with(&[(lock, 20_090)]), 100, "from 20 000 to the end of the second one");
        assert_eq!(with(&[(lock, 20_040), (lock, 20_080), (other, 45_020)]), 90);
        assert_eq!(with(&[(lock, 49_950)]), 60, "the last one");
        assert_eq!(with(&[(lock, 1)]), 0, "the start");
        let many: Vec<_> = (1..20).map(|number| (lock, 30_000 + number * 5)).collect();
        assert_eq!(with(&many), 105, "the usual event comes back");
        let later = (0..500).map(|number| (lock, 60_000 + number * 100));
        assert_eq!(longest(&usual.iter().copied().chain(later).collect::<Vec<_>>()), 0, "another kind of work");
    }

    #[test]
    fn answers_are_part_of_a_cycle_unless_such_a_wait_started_it() {
        let [queue, reply] = [1, 2].map(|object| Source::of(0, [object, 0, 0]));
        let mut releases = Releases::default();
        releases.begin_with(queue, false, 0);
        assert!(releases.is_within_cycle(reply, true));
        assert!(!releases.is_within_cycle(reply, false) && !releases.is_within_cycle(queue, true));
        assert_eq!(releases.to_record(), Release::Event);
        assert!(releases.may_start_with(queue) && !releases.may_start_with(reply));
        (0..4).for_each(|_| releases.begin_with(queue, false, 0));
        releases.begin_with(reply, false, 0);
        assert_eq!(releases.to_record(), Release::AnyEvent);
        assert!(releases.may_start_with(queue) && !releases.began_with(queue));
        releases.note(Rank::Absolute);
        assert!(!releases.may_start_with(queue));
        assert!(releases.is_within_cycle(queue, true) && !releases.began_with(queue));
        assert_eq!(releases.to_record(), Release::AbsoluteSleep);
    }
}
