//! The culprits of spikes as text and figures for terminal and HTML.

use analysis::format_ns;
pub(crate) use analysis::format_unsigned_ns as unsigned;
use record::{
    Account, Blame, BlameCost, BlameMode, Cause, CauseKind, Culprit, Evidence, MeasuredBy, Record, Series, Spike, Why,
    grouped,
};

use crate::remedy::advice_and_command;
use crate::words::Words;

/// A spike with its rank: 1 is the worst of the run, as in `punctual blame RECORD --around N`.
#[derive(Debug, Clone, Copy)]
pub struct Ranked<'a> {
    /// The rank, 1 for the worst.
    pub number: usize,
    /// The series that contains the spike.
    pub series: &'a Series,
    /// The spike.
    pub spike: &'a Spike,
}

/// All spikes in the record, the worst first; equal ones in the order of the record. Long round trips are excluded
/// because their causes are not on this machine alone: they are reported with their parts instead.
#[must_use]
pub fn ranked(record: &Record) -> Vec<Ranked<'_>> {
    let explained = record.series.iter().filter(|series| series.kind.round_trip().is_none());
    let all = explained.flat_map(|series| series.spikes.iter().map(move |spike| (series, spike)));
    let mut all: Vec<Ranked> = all.map(|(series, spike)| Ranked { number: 0, series, spike }).collect();
    all.sort_by_key(|ranked| std::cmp::Reverse(ranked.spike.lateness_ns));
    (1..).zip(&mut all).for_each(|(number, ranked)| ranked.number = number);
    all
}

/// The number of spikes that the run counted, including those that the record does not contain.
pub(crate) fn total_spikes(record: &Record) -> u64 {
    record.spikes_total()
}

/// The causes that are the main one of a spike, the largest total lateness first: the rows of the ledger, and the only
/// ranking of causes.
pub(crate) fn main_causes(blame: &Blame) -> impl Iterator<Item = &Account> {
    blame.ledger.iter().filter(|account| account.count > 0)
}

/// True if the culprits explain the answer: not for an invalid run, whose figures are not those of the request, nor for
/// a matrix, whose culprits are those of all pairs.
pub(crate) fn explains(record: &Record) -> bool {
    record.validity.valid && record.cells.is_empty()
}

/// The main culprits with their shares of the lateness of all spikes, at most `count`; empty if they do not explain the
/// answer.
pub(crate) fn shares(record: &Record, count: usize) -> Vec<String> {
    let Some(blame) = record.blame.as_ref().filter(|_| explains(record)) else { return Vec::new() };
    let total_ns = ledger_total_ns(blame);
    let share = |account: &Account| format!("{} {}", percent(account.total_ns, total_ns), in_short(&account.cause));
    let mut shares: Vec<String> = main_causes(blame).take(count).map(share).collect();
    if let (BlameMode::Counters, Some(first)) = (blame.mode, shares.first_mut()) {
        first.insert_str(0, "likely ");
    }
    shares
}

/// A remedy of the short answer, with the cause that it is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToDo<'a> {
    /// The cause and its remedy.
    pub account: &'a Account,
    /// True if the cause is the main culprit of the worst spike, but not the first of the ranking.
    pub of_worst_spike: bool,
}

impl ToDo<'_> {
    /// The name of the cause, marked if it is that of the worst spike.
    pub(crate) fn title(&self, words: &Words) -> String {
        let name = in_short(&self.account.cause);
        if self.of_worst_spike { format!("worst {}, {name}", words.spike) } else { name }
    }
}

/// The culprits with a remedy: that of the worst spike, then the others by rank. Of culprits that are alike, only the
/// first is listed.
pub(crate) fn to_do(record: &Record) -> Vec<ToDo<'_>> {
    let Some(blame) = record.blame.as_ref().filter(|_| explains(record)) else { return Vec::new() };
    // A normal cost without a command to reduce it is no remedy.
    let is_to_do = |account: &&Account| {
        let cause = &account.cause;
        let is_normal = cause.kind == CauseKind::WakeUp && advice_and_command(&account.remedy).1.is_empty();
        !is_normal && !account.remedy.is_empty() && !is_for_ended_thread(record, &account.remedy)
    };
    let of_worst = of_worst_spike(record, blame);
    let is_first = |account: &Account| main_causes(blame).next().is_some_and(|first| std::ptr::eq(first, account));
    let mut found: Vec<ToDo> = Vec::new();
    for account in of_worst.into_iter().chain(main_causes(blame)).filter(is_to_do) {
        let is_alike = |other: &ToDo| {
            let other = other.account;
            other.remedy == account.remedy
                || (other.cause.kind, other.cause.why) == (account.cause.kind, account.cause.why)
        };
        if !found.iter().any(is_alike) {
            let is_worst = of_worst.is_some_and(|worst| std::ptr::eq(worst, account));
            found.push(ToDo { account, of_worst_spike: is_worst && !is_first(account) });
        }
    }
    found
}

/// True if a remedy names a thread of the command that punctual started: these threads have ended.
fn is_for_ended_thread(record: &Record, remedy: &str) -> bool {
    let started = record.program.as_ref().is_some_and(|program| program.started);
    let ids = || remedy.split(|character: char| !character.is_ascii_alphanumeric());
    let threads = record.series.iter().filter_map(|series| series.kind.process());
    started && threads.map(|thread| thread.tid.to_string()).any(|tid| ids().any(|id| id == tid))
}

/// The account of the main culprit of the probe's worst spike; `None` if the record does not contain it.
fn of_worst_spike<'a>(record: &Record, blame: &'a Blame) -> Option<&'a Account> {
    let all = ranked(record);
    let worst = all.iter().find(|ranked| ranked.series.kind.properties().by != MeasuredBy::Kernel)?;
    let culprit = worst.spike.culprits.first()?;
    blame.ledger.iter().find(|account| includes(&account.cause, &culprit.cause))
}

/// True if the account of `known` includes this cause. The ledger sums threads of all CPUs: the account `kworker`
/// includes `kworker/1:2`.
pub(crate) fn includes(known: &Cause, cause: &Cause) -> bool {
    let is_named = cause
        .name
        .strip_prefix(known.name.as_str())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') && !known.name.is_empty());
    (known.kind, known.why) == (cause.kind, cause.why) && is_named
}

/// The first row of the ledger in a few words; `None` if no culprit is known.
#[must_use]
pub fn heaviest(record: &Record) -> Option<String> {
    let first = main_causes(record.blame.as_ref()?).next()?;
    Some(in_short(&first.cause))
}

/// The first row of the ledger: `Main cause of 14 of the 16 spikes above 80 us: i915 interrupt thread`.
pub(crate) fn headline(record: &Record) -> Option<String> {
    let blame = record.blame.as_ref()?;
    let first = main_causes(blame).next()?;
    let all = blame.spikes.max(first.count);
    let likely = if blame.mode == BlameMode::Counters { "likely " } else { "" };
    let examined = if blame.passed_over > 0 { " that were examined" } else { "" };
    let Words { spike, lateness, .. } = Words::of(record);
    let of = match (first.count, all) {
        (1, 1) => format!("the only {spike}"),
        (count, all) if count == all => format!("all {} {spike}s", grouped(all)),
        (count, all) => format!("{} of the {} {spike}s", grouped(count), grouped(all)),
    };
    let above = format_ns(record.scenario.threshold_ns);
    // A cause of few but long spikes may come first.
    let share = match first.count.saturating_mul(2) < all {
        true => {
            let share = percent(first.total_ns, ledger_total_ns(blame));
            format!(", and {share} of the {lateness} of all {spike}s")
        }
        false => String::new(),
    };
    Some(format!("Main cause of {of} above {above}{examined}{share}: {likely}{}", in_short(&first.cause)))
}

/// A short name of the cause: `i915 interrupt thread` instead of the kernel's thread name `irq/125-i915`.
pub(crate) fn in_short(cause: &Cause) -> String {
    let device = cause.name.strip_prefix("irq/").and_then(|name| name.split_once('-')).map(|(_, device)| device);
    match device.filter(|device| cause.kind == CauseKind::Thread && !device.is_empty()) {
        Some(device) => format!("{} interrupt thread", device.strip_prefix("s-").unwrap_or(device)),
        None => cause.title(),
    }
}

/// Explains a cause to readers who do not know the kernel; empty if the title is enough.
pub(crate) fn explanation(cause: &Cause) -> &'static str {
    match cause.kind {
        CauseKind::LateInterrupt => {
            "The timer interrupt itself came late: interrupts were off in the kernel, or firmware or a hypervisor had \
             the CPU."
        }
        CauseKind::IdleExit => "The CPU was in a deep idle state and took this long to leave it.",
        CauseKind::TimerSlack => {
            "The kernel may delay the timers of ordinary threads a little, to handle several with one interrupt."
        }
        CauseKind::Interrupt => "A device raised an interrupt, and its driver took this long to handle it.",
        CauseKind::Softirq => "Work that the kernel defers until after an interrupt: network, disk, timers.",
        CauseKind::Nmi => "An interrupt that cannot be masked: a watchdog, a profiler, a hardware error.",
        CauseKind::Timer => "Another kernel timer expired first.",
        CauseKind::Thread => match cause.why {
            Some(Why::PreemptionOff | Why::InterruptsOff) => {
                "It was in a section of the kernel that cannot be preempted."
            }
            Some(Why::HigherPriority | Why::SamePriority) | None => "",
        },
        CauseKind::PageFault => "The thread accessed memory that was not present and had to be mapped or read.",
        CauseKind::Stopped => "A signal stopped the measurement.",
        CauseKind::Blocked => "The measurement blocked itself; the machine is not the cause.",
        CauseKind::Throttled => "The kernel reserves part of each second for threads that are not real-time.",
        CauseKind::Quota => "The control group of the thread has used up its CPU time.",
        CauseKind::Budget => "The thread has used up the CPU time that its deadline policy grants.",
        CauseKind::AllCpus => "All CPUs stopped at once: firmware (SMI) or the hypervisor had them.",
        CauseKind::Stolen => "The hypervisor ran another guest on this CPU.",
        CauseKind::Firmware => "Firmware took the CPU (SMI), invisible to the kernel.",
        CauseKind::WakeUp => "The kernel's own wake-up path: the speed of this kernel on this machine.",
        CauseKind::Work => "Processing of the samples, while nothing else ran on the CPU.",
        CauseKind::Unexplained => "No recorded event explains it.",
    }
}

/// Accounts with more phases show their number instead of their names, because a matrix has dozens.
const PHASES_NAMED: usize = 3;

/// CPUs, phases and period of an account: `CPUs 0-1, in rest and load, every 64.0 s`.
pub(crate) fn occurrences(account: &Account) -> String {
    let cpus = match account.cpus.as_str() {
        "" => None,
        one if one.bytes().all(|digit| digit.is_ascii_digit()) => Some(format!("CPU {one}")),
        several => Some(format!("CPUs {several}")),
    };
    let phases = match account.phases.as_slice() {
        [] => None,
        [one] => Some(format!("in {one}")),
        many if many.len() > PHASES_NAMED => Some(format!("in {} phases", many.len())),
        [most @ .., last] => Some(format!("in {} and {last}", most.join(", "))),
    };
    let every = account.every_ns.map(|ns| format!("every {}", unsigned(ns)));
    [cpus, phases, every].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The lateness of all examined spikes, ns: the sum of the accounts.
pub(crate) fn ledger_total_ns(blame: &Blame) -> u64 {
    blame.ledger.iter().fold(0, |sum, account| account.total_ns.saturating_add(sum))
}

/// The evidence used to find culprits, in one sentence; empty if blame was off.
pub(crate) fn evidence_source(blame: &Blame) -> String {
    let mut systems: Vec<&str> = Vec::new();
    for event in &blame.events {
        let system = event.split(':').next().unwrap_or_default();
        if !systems.contains(&system) {
            systems.push(system);
        }
    }
    let trace = format!("Found from {} kernel trace events ({})", blame.events.len(), systems.join(", "));
    match blame.mode {
        BlameMode::Off => String::new(),
        BlameMode::Counters => "Found from counters read before and after each.".to_owned(),
        BlameMode::Trace => format!("{trace}."),
        BlameMode::Deep => format!("{trace}, including sections with interrupts or preemption off."),
    }
}

/// One line that names the largest causes that have no full entry; empty if there are none.
pub(crate) fn one_line(accounts: &[&Account]) -> String {
    const NAMED: usize = 5;
    let name = |account: &&Account| {
        let (title, total) = (account.cause.title(), unsigned(account.total_ns));
        if account.count > 0 {
            format!("{title} ({total}, {} times)", grouped(account.count))
        } else {
            format!("{title} ({total})")
        }
    };
    let (named, rest) = accounts.split_at(accounts.len().min(NAMED));
    let rest_ns = rest.iter().fold(0u64, |sum, account| account.total_ns.saturating_add(sum));
    let more = (!rest.is_empty()).then(|| format!("{} more ({})", rest.len(), unsigned(rest_ns)));
    named.iter().map(name).chain(more).collect::<Vec<_>>().join("; ")
}

/// A share: `94 %`, `4.4 %`, `< 0.1 %`; a dash if the whole is 0.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        _ if whole == 0 => "-".to_owned(),
        0.0 => "0 %".to_owned(),
        ..0.1 => "< 0.1 %".to_owned(),
        ..9.95 => format!("{percent:.1} %"),
        // Only the whole is shown as 100 %.
        99.5..100.0 => "99 %".to_owned(),
        _ => format!("{percent:.0} %"),
    }
}

/// A share in a column of shares, which all have one decimal: `94.0 %`, `4.4 %`, `< 0.1 %`; a dash if the whole is 0.
pub(crate) fn percent_in_column(part: u64, whole: u64) -> String {
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        _ if whole == 0 => "-".to_owned(),
        0.0 => "0.0 %".to_owned(),
        ..0.1 => "< 0.1 %".to_owned(),
        // Only the whole is shown as 100 %.
        99.9..100.0 => "99.9 %".to_owned(),
        _ => format!("{percent:.1} %"),
    }
}

/// The main culprit of a spike with its share: `thread kworker/1:2, with preemption off: 388 us, 94 %`.
pub(crate) fn main_culprit(spike: &Spike, name: impl Fn(&Cause) -> String) -> Option<String> {
    let Culprit { cause, ns } = spike.culprits.first()?;
    let name = name(cause);
    let lateness_ns = spike.lateness_ns.unsigned_abs();
    Some(match spike.evidence {
        Evidence::Counters => format!("likely {name}, from counters"),
        Evidence::Incomplete => format!("{name}: {}, {}, incomplete", unsigned(*ns), percent(*ns, lateness_ns)),
        Evidence::Trace | Evidence::None => format!("{name}: {}, {}", unsigned(*ns), percent(*ns, lateness_ns)),
    })
}

/// A note about a ledger.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    /// One sentence; it ends with a colon if a command follows.
    pub text: String,
    /// The command to run; can be empty.
    pub command: String,
    /// True if the note casts doubt on the ledger.
    pub doubt: bool,
}

/// Notes about the ledger: how culprits were found, lost events, and the cost of tracing.
pub(crate) fn remarks(blame: &Blame, words: &Words) -> Vec<Remark> {
    let Words { spike, lateness, .. } = words;
    let mut out = Vec::new();
    let (why, command) = advice_and_command(&blame.why);
    let why = if why.is_empty() { String::new() } else { format!(": {}", why.trim_end_matches([':', '.'])) };
    let end = if command.is_empty() { "." } else { ":" };
    let mode = match blame.mode {
        BlameMode::Off if why.is_empty() => "Culprits were not recorded (--blame=off).".to_owned(),
        BlameMode::Off => format!("Culprits were not recorded{why}{end}"),
        BlameMode::Counters => format!("Culprits are likely ones, from counters{why}{end}"),
        BlameMode::Trace | BlameMode::Deep if why.is_empty() => String::new(),
        BlameMode::Trace | BlameMode::Deep => format!("Trace{why}{end}"),
    };
    if !mode.is_empty() {
        out.push(Remark { text: mode, command: command.to_owned(), doubt: true });
    }
    let mut say = |doubt, text| out.push(Remark { text, command: String::new(), doubt });
    if blame.incomplete > 0 || blame.lost_events > 0 {
        let (windows, spikes, lost) = (grouped(blame.incomplete), grouped(blame.spikes), blame.lost_events);
        let missing =
            if lost > 0 { format!("{} events were lost", grouped(lost)) } else { "events are missing".to_owned() };
        say(true, format!("For {windows} of {spikes} {spike}s, {missing}: their culprits may be incomplete."));
    }
    if blame.passed_over > 0 {
        say(
            true,
            format!(
                "{} {spike}s were not examined because they came too fast; a higher --threshold of `punctual measure` \
                 examines only the worst ones.",
                grouped(blame.passed_over)
            ),
        );
    }
    let unexplained: u64 =
        blame.ledger.iter().filter(|account| account.cause.kind == CauseKind::Unexplained).map(|a| a.total_ns).sum();
    if unexplained > 0 {
        let share = percent(unexplained, ledger_total_ns(blame));
        say(false, format!("Unexplained: {share} of the {lateness} of these {spike}s."));
    }
    if let Some(cost) = &blame.cost {
        say(false, cost_in_words(cost));
    }
    out
}

fn cost_in_words(cost: &BlameCost) -> String {
    let medians = format!("median {} without, {} with", format_ns(cost.off_ns), format_ns(cost.on_ns));
    match cost.on_ns.saturating_sub(cost.off_ns) {
        ..=0 => format!("No measurable tracing overhead ({medians})."),
        more_ns => format!("Tracing overhead {} per wake-up ({medians}).", format_ns(more_ns)),
    }
}

/// A doubt about a spike's culprits; empty if they come from a complete trace.
pub(crate) fn evidence_note(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Incomplete => "Events during or before this time are missing, so causes may be missing, too.",
        Evidence::Counters => "From counters read before and after, not from a trace: a likely culprit.",
        Evidence::Trace | Evidence::None => "",
    }
}
