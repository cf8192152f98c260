//! Who made the spikes, in the words and figures that terminal and HTML share.

use analysis::format_ns;
use record::{Account, Blame, BlameCost, BlameMode, Cause, CauseKind, Culprit, Evidence, Record, Series, Spike, Why};

use crate::remedy::advice_and_command;
use crate::words::Words;

/// A spike with its number: 1 is the worst of the run, as `punctual blame RECORD --around N` counts them.
#[derive(Debug, Clone, Copy)]
pub struct Ranked<'a> {
    /// The number, 1 for the worst.
    pub number: usize,
    /// The series that it stands in.
    pub series: &'a Series,
    /// The spike.
    pub spike: &'a Spike,
}

/// All spikes that the record keeps, the worst first. Of equal ones the earlier in the record comes first. Long round trips
/// are told with their parts instead: nobody on this machine alone makes them.
#[must_use]
pub fn ranked(record: &Record) -> Vec<Ranked<'_>> {
    let explained = record.series.iter().filter(|series| series.kind.round_trip().is_none());
    let all = explained.flat_map(|series| series.spikes.iter().map(move |spike| (series, spike)));
    let mut all: Vec<Ranked> = all.map(|(series, spike)| Ranked { number: 0, series, spike }).collect();
    all.sort_by_key(|ranked| std::cmp::Reverse(ranked.spike.lateness_ns));
    (1..).zip(&mut all).for_each(|(number, ranked)| ranked.number = number);
    all
}

/// Spikes that the run counted, kept or not.
pub(crate) fn total_spikes(record: &Record) -> u64 {
    record.spikes_total()
}

/// The heaviest culprit of a run in a few words; `None` where nobody made a spike.
#[must_use]
pub fn heaviest(record: &Record) -> Option<String> {
    let account = record.blame.as_ref()?.ledger.first()?;
    Some(in_short(&account.cause))
}

/// Who made most of the spikes: `14 of the 16 spikes above 80 us: i915 interrupt thread`.
pub(crate) fn headline(record: &Record) -> Option<String> {
    let blame = record.blame.as_ref()?;
    // Of equal ones the heavier, which stands first.
    let first = blame.ledger.iter().rev().filter(|account| account.count > 0).max_by_key(|account| account.count)?;
    let all = blame.spikes.max(first.count);
    let likely = if blame.mode == BlameMode::Counters { "likely " } else { "" };
    let looked_at = if blame.passed_over > 0 { " that were looked at" } else { "" };
    let spike = Words::of(record).spike;
    let of = match (first.count, all) {
        (1, 1) => format!("The one {spike}"),
        (count, all) if count == all => format!("All {all} {spike}s"),
        (count, all) => format!("{count} of the {all} {spike}s"),
    };
    let above = format_ns(record.scenario.threshold_ns);
    Some(format!("{of} above {above}{looked_at}: {likely}{}", in_short(&first.cause)))
}

/// The cause as people call it: of `irq/125-i915`, the kernel's name of the thread, the `i915 interrupt thread`.
pub(crate) fn in_short(cause: &Cause) -> String {
    let device = cause.name.strip_prefix("irq/").and_then(|name| name.split_once('-')).map(|(_, device)| device);
    match device.filter(|device| cause.kind == CauseKind::Thread && !device.is_empty()) {
        Some(device) => format!("{} interrupt thread", device.strip_prefix("s-").unwrap_or(device)),
        None => cause.title(),
    }
}

/// What a cause is, for those who do not know the kernel; empty where its title says it all.
pub(crate) fn plainly(cause: &Cause) -> &'static str {
    match cause.kind {
        CauseKind::LateInterrupt => {
            "The alarm itself came late: the kernel had interrupts off, or firmware or a hypervisor had the CPU."
        }
        CauseKind::IdleExit => "The CPU slept too deeply, and took this long to wake.",
        CauseKind::Interrupt => "A device asked for the CPU, and its driver took this long to answer.",
        CauseKind::Softirq => "Work that the kernel puts off until after an interrupt: network, disk, timers.",
        CauseKind::Nmi => "An interrupt that nothing can hold back: a watchdog, a profiler, a hardware error.",
        CauseKind::Timer => "Another timer of the kernel ran out first.",
        CauseKind::Thread => match cause.why {
            Some(Why::PreemptionOff | Why::InterruptsOff) => {
                "It was in a part of the kernel that lets nothing else run until it is done."
            }
            Some(Why::HigherPriority | Why::SamePriority) | None => "",
        },
        CauseKind::PageFault => "Memory that the thread needed was not there, and had to be fetched.",
        CauseKind::Stopped => "Someone stopped the measurement with a signal.",
        CauseKind::Blocked => "The measurement was held up by itself, not by the machine.",
        CauseKind::Throttled => "The kernel keeps a part of each second from real-time threads.",
        CauseKind::AllCpus => "The whole machine stood still: firmware (SMI) or the hypervisor had it.",
        CauseKind::Stolen => "The hypervisor gave this CPU to another guest.",
        CauseKind::Firmware => "Firmware took the CPU (SMI), unseen by the kernel.",
        CauseKind::WakeUp => "The way through the kernel itself: as fast as this kernel is on this machine.",
        CauseKind::Work => "The processing of the samples, while nothing else had the CPU.",
        CauseKind::Unexplained => "Nothing that was looked at explains it.",
    }
}

/// More phases than this are counted instead of named: a matrix has dozens.
const PHASES_NAMED: usize = 3;

/// Where and when an account struck: `CPUs 0-1, in rest and load, every 64.0 s`.
pub(crate) fn strikes(account: &Account) -> String {
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

/// The lateness of all spikes that were looked at, ns: what the accounts add up to.
pub(crate) fn ledger_total_ns(blame: &Blame) -> u64 {
    blame.ledger.iter().fold(0, |sum, account| account.total_ns.saturating_add(sum))
}

/// From what the culprits were found, in one sentence; empty where nothing was looked at.
pub(crate) fn found_from(blame: &Blame) -> String {
    let mut systems: Vec<&str> = Vec::new();
    for event in &blame.events {
        let system = event.split(':').next().unwrap_or_default();
        if !systems.contains(&system) {
            systems.push(system);
        }
    }
    let trace = format!("Found from {} events of the kernel's trace ({})", blame.events.len(), systems.join(", "));
    match blame.mode {
        BlameMode::Off => String::new(),
        BlameMode::Counters => "Found from counters before and after each spike.".to_owned(),
        BlameMode::Trace => format!("{trace}."),
        BlameMode::Deep => format!("{trace}, sections without interrupts or preemption among them."),
    }
}

/// The heaviest of causes that are not shown in full, in one line; empty where there are none.
pub(crate) fn in_a_line(accounts: &[&Account]) -> String {
    const NAMED: usize = 5;
    let name = |account: &&Account| {
        let (title, total) = (account.cause.title(), unsigned(account.total_ns));
        if account.count > 0 {
            format!("{title} ({total}, {} spikes)", account.count)
        } else {
            format!("{title} ({total})")
        }
    };
    let (named, rest) = accounts.split_at(accounts.len().min(NAMED));
    let rest_ns = rest.iter().fold(0u64, |sum, account| account.total_ns.saturating_add(sum));
    let more = (!rest.is_empty()).then(|| format!("{} more ({})", rest.len(), unsigned(rest_ns)));
    named.iter().map(name).chain(more).collect::<Vec<_>>().join("; ")
}

/// A part of a whole: `94 %`, `4.4 %`, `< 0.1 %`; a dash where there is no whole.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let percent = part as f64 * 100.0 / whole as f64;
    match percent {
        _ if whole == 0 => "-".to_owned(),
        0.0 => "0 %".to_owned(),
        ..0.1 => "< 0.1 %".to_owned(),
        ..9.95 => format!("{percent:.1} %"),
        // Only the whole is all of it.
        99.5..100.0 => "99 %".to_owned(),
        _ => format!("{percent:.0} %"),
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

/// Something to know about a ledger.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    /// In one sentence; it ends in a colon where a command follows.
    pub text: String,
    /// What to do about it; may be empty.
    pub command: String,
    /// Whether it stands against the ledger.
    pub doubt: bool,
}

/// What must be known beside the ledger: how the culprits were found, what was lost, and what looking cost.
pub(crate) fn remarks(blame: &Blame, words: &Words) -> Vec<Remark> {
    let Words { spike, lateness, .. } = words;
    let mut out = Vec::new();
    let (why, command) = advice_and_command(&blame.why);
    let why = if why.is_empty() { String::new() } else { format!(": {}", why.trim_end_matches([':', '.'])) };
    let end = if command.is_empty() { "." } else { ":" };
    let mode = match blame.mode {
        BlameMode::Off if why.is_empty() => "No culprit was looked for, as asked by --blame=off.".to_owned(),
        BlameMode::Off => format!("No culprit was looked for{why}{end}"),
        BlameMode::Counters => format!("These are likely culprits, from counters{why}{end}"),
        BlameMode::Trace | BlameMode::Deep if why.is_empty() => String::new(),
        BlameMode::Trace | BlameMode::Deep => format!("About the trace{why}{end}"),
    };
    if !mode.is_empty() {
        out.push(Remark { text: mode, command: command.to_owned(), doubt: true });
    }
    let mut say = |doubt, text| out.push(Remark { text, command: String::new(), doubt });
    if blame.incomplete > 0 || blame.lost_events > 0 {
        let (windows, spikes, lost) = (blame.incomplete, blame.spikes, blame.lost_events);
        let missing = if lost > 0 { format!("{lost} events were lost") } else { "events are missing".to_owned() };
        say(true, format!("Around {windows} of the {spikes} {spike}s {missing}: their culprits may be incomplete."));
    }
    if blame.passed_over > 0 {
        say(
            true,
            format!(
                "{} {spike}s were passed over, because they came faster than they could be looked at; a higher \
                 --threshold looks at the worst alone.",
                blame.passed_over
            ),
        );
    }
    let unexplained: u64 =
        blame.ledger.iter().filter(|account| account.cause.kind == CauseKind::Unexplained).map(|a| a.total_ns).sum();
    if unexplained > 0 {
        let share = percent(unexplained, ledger_total_ns(blame));
        say(false, format!("Unexplained is {share} of the {lateness} of these {spike}s."));
    }
    if let Some(cost) = &blame.cost {
        say(false, cost_in_words(cost));
    }
    out
}

fn cost_in_words(cost: &BlameCost) -> String {
    let medians = format!("median {} without, {} with", format_ns(cost.off_ns), format_ns(cost.on_ns));
    match cost.on_ns.saturating_sub(cost.off_ns) {
        ..=0 => format!("Looking cost nothing that shows ({medians})."),
        more_ns => format!("Looking cost {} a wake-up ({medians}).", format_ns(more_ns)),
    }
}

/// An unsigned time as text.
pub(crate) fn unsigned(ns: u64) -> String {
    format_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}
