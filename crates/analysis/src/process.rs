//! Conclusions about a watched program.

mod cycle;
mod judge;
mod locks;
mod rules;

use std::cmp::Reverse;

pub use cycle::cause_words;
pub(crate) use judge::judge;
pub use record::ProgramLimits as Limits;
use record::{Outcome, Overruns, ProcessThread, Program, Record, Series, State, Verdict, counted, grouped};
pub use rules::broken_rules;

use crate::{
    format_ns, format_unsigned_ns,
    summary::{max_of, unsure_maximum},
    verdict::invalid,
};
use rules::times;

/// Conclusions from the figures of a program, one sentence each: missed deadlines, the longest cycle, the latest
/// wake-up, and preemptions. Empty for records without a program.
#[must_use]
pub fn conclusion(record: &Record) -> Vec<String> {
    let threads = worst_first(record);
    if threads.is_empty() {
        return match &record.program {
            Some(_) => vec!["None of the selected threads ran.".to_owned()],
            None => Vec::new(),
        };
    }
    let mut sentences = Vec::new();
    sentences.extend(
        threads.iter().filter(|(series, _)| series.period_ns > 0).map(|(series, thread)| deadlines(series, thread)),
    );
    let run = cycle::Run::of(record);
    let open = threads.iter().filter_map(|(series, thread)| cycle::open(series, thread, &run));
    sentences.extend(open.take(OPEN_NAMED));
    sentences.extend(threads.first().and_then(|(series, thread)| cycle::longest(series, thread, &run)));
    sentences.extend(cycle::unclear(threads.iter()).map(|text| sentence(&text)));
    sentences.extend(locks::waits(&threads));
    let latest = threads.iter().max_by_key(|(series, _)| series.max_ns);
    sentences.extend(latest.and_then(|(series, _)| wake_up(series)));
    let preempted = threads.iter().max_by_key(|(_, thread)| waited_for_others_ns(thread));
    sentences.extend(preempted.and_then(|(series, thread)| preemptions(series, thread)));
    sentences
}

/// The most important conclusion about a program in one sentence, without its details.
#[must_use]
pub fn in_short(record: &Record) -> String {
    let threads = worst_first(record);
    let run = cycle::Run::of(record);
    if let Some(open) = threads.iter().find_map(|(series, thread)| cycle::open(series, thread, &run)) {
        return open;
    }
    let Some((series, thread)) = threads.first().filter(|(_, thread)| thread.cycles > 0) else {
        return match &threads[..] {
            [] => "None of the selected threads ran.".to_owned(),
            _ => format!("No selected thread of the program had a whole cycle: {MARK}."),
        };
    };
    let missed = (series.missed > 0).then(|| deadlines(series, thread));
    let inversion = locks::worst_inversion(&threads);
    let waited = if inversion.is_some() { None } else { longer_wait(&threads, thread) };
    let longest = match (&inversion, &waited) {
        (Some(_), _) => None,
        // The main cause is that of the wait, which the spikes show.
        (None, Some(_)) => cycle::longest_alone(series, thread),
        (None, None) => cycle::longest_in_short(series, thread, &run),
    };
    let unclear = cycle::unclear(threads.iter()).map(|text| sentence(&text));
    [missed, inversion, waited, longest, unclear].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The longest wait for a CPU, if it is longer than the longest cycle: it can be outside of a whole cycle.
fn longer_wait(threads: &[(&Series, &ProcessThread)], of_longest: &ProcessThread) -> Option<String> {
    let cycle_ns = of_longest.longest.as_ref().map_or(0, record::Cycle::response_ns);
    let waits = threads.iter().filter_map(|(series, _)| Some((series.max_ns?, series.role.as_str())));
    let (wait_ns, role) = waits.max().filter(|(wait_ns, _)| i128::from(*wait_ns) > i128::from(cycle_ns))?;
    Some(format!("Thread {role} waited up to {} for a CPU.", format_ns(wait_ns)))
}

/// The parts of the longest cycle that [`in_short`] names, the longest first; `None` if that sentence contains them, or is
/// about something else.
#[must_use]
pub fn parts_in_short(record: &Record) -> Option<String> {
    let threads = worst_first(record);
    let run = cycle::Run::of(record);
    let is_open = threads.iter().any(|(series, thread)| cycle::open(series, thread, &run).is_some());
    if is_open || locks::worst_inversion(&threads).is_some() {
        return None;
    }
    let (_, thread) = threads.first().filter(|(_, thread)| thread.cycles > 0)?;
    cycle::parts(thread.longest.as_ref()?)
}

/// A statement as a sentence.
fn sentence(statement: &str) -> String {
    let mut chars = statement.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

/// The threads of a program; the one that missed most deadlines comes first, then that with the longest cycle.
fn worst_first(record: &Record) -> Vec<(&Series, &ProcessThread)> {
    let mut threads = threads(record);
    threads.sort_by_key(|(series, thread)| {
        (Reverse(series.missed), Reverse(thread.longest.as_ref().map(|cycle| cycle.response_ns())))
    });
    threads
}

/// The kind of the caveat about a given name or id without a thread that ran.
pub const UNMATCHED: &str = "selection";
/// The remedy for a thread without cycles.
const MARK: &str = "cycles that do not start with a wait are counted only if you mark them with include/punctual.h";

/// The number of threads that are named because they did not end their last cycle.
const OPEN_NAMED: usize = 4;
/// Fewer wake-ups or cycles than this do not support PASS: after none late in 10, up to 30 % may be late (rule of three,
/// at 95 %).
const MIN_EVENTS: u64 = 10;

/// The verdict on these limits; `None` for a valid run without limits in which a thread ran. An invalid run is INVALID
/// whatever its figures, and incomplete figures do not support PASS.
#[must_use]
pub fn verdict(record: &Record, limits: Limits) -> Option<Verdict> {
    if !record.validity.valid {
        return invalid(record);
    }
    let threads = threads(record);
    if limits == Limits::default() {
        let reason = "none of the selected threads ran, so nothing was measured".to_owned();
        return threads.is_empty().then_some(Verdict { outcome: Outcome::Inconclusive, reason });
    }
    let samples: u64 = threads.iter().map(|(series, _)| series.samples).sum();
    let failed = exceeded(&threads, limits);
    let (outcome, reason) = match () {
        () if !failed.is_empty() => (Outcome::Fail, failed.join("; ")),
        () => match incomplete(record, limits).or_else(|| too_few(&threads, limits)) {
            Some(reason) => (Outcome::Inconclusive, reason),
            None => (Outcome::Pass, format!("no limit was exceeded in {} wake-ups", grouped(samples))),
        },
    };
    Some(Verdict { outcome, reason })
}

/// The limits that were exceeded.
fn exceeded(threads: &[(&Series, &ProcessThread)], limits: Limits) -> Vec<String> {
    let late = threads.first().and_then(|(series, _)| {
        let limit_ns = i64::try_from(limits.latency_ns?).unwrap_or(i64::MAX);
        let max_ns = max_of(series).filter(|&max_ns| max_ns > limit_ns)?;
        let (max, limit) = (format_ns(max_ns), format_ns(limit_ns));
        Some(format!("{} waited {max} for a CPU after a wake-up (limit {limit})", series.role))
    });
    let slow = limits.response_ns.and_then(|limit_ns| too_slow(threads, limit_ns));
    let known = threads.iter().filter(|(_, thread)| !cycle::may_contain_idle_time(thread));
    let missed: u64 = known.map(|(series, _)| series.missed).sum();
    let many = limits.missed.filter(|&limit| missed > limit);
    let many = many.map(|limit| format!("{} deadlines were missed (limit {})", grouped(missed), grouped(limit)));
    [late, slow, many].into_iter().flatten().collect()
}

/// Why an exceeded limit may be missing from the figures; `None` if they are complete.
fn incomplete(record: &Record, limits: Limits) -> Option<String> {
    if let Some(unmatched) = record.caveats.iter().find(|caveat| caveat.kind == UNMATCHED) {
        return Some(unmatched.text.clone());
    }
    if record.caveats.iter().any(|caveat| caveat.kind == "overflow") {
        return Some("events were lost, so an exceeded limit may be missing from the figures".to_owned());
    }
    let interrupted = record.state == State::Interrupted;
    if interrupted && record.phases.iter().any(|phase| phase.planned_ns.is_some()) {
        return Some("the run ended early, by a signal".to_owned());
    }
    if let Some(early) = ended_before_run(record, limits) {
        return Some(early);
    }
    let program = record.program.as_ref()?;
    let Program { threads_left_out, ended_threads_left_out, processes_left, .. } = *program;
    // Those threads had the shortest cycles, but each could have been late.
    let limits_each = limits.missed.is_some() || limits.latency_ns.is_some();
    match (program.exit_status, program.signal) {
        _ if limits_each && ended_threads_left_out > 0 => {
            let ended = grouped(ended_threads_left_out);
            Some(format!("{ended} ended threads have no figures: select fewer with --thread"))
        }
        _ if threads_left_out > 0 => Some(format!("{} threads were not watched", grouped(threads_left_out))),
        _ if processes_left > 0 => {
            let left = grouped(processes_left);
            Some(format!("the command ended, but {left} of its processes still ran and were not watched"))
        }
        // The user's Ctrl-C also ends the program.
        (None, Some(signal)) if program.ended && !interrupted => {
            Some(format!("the program was ended by signal {signal}"))
        }
        (Some(status), _) if program.ended && status != 0 => {
            Some(format!("the program ended with exit status {status}, so it may not have done its work"))
        }
        _ => None,
    }
}

/// Why there are too few wake-ups or cycles to support PASS; `None` if there are enough.
fn too_few(threads: &[(&Series, &ProcessThread)], limits: Limits) -> Option<String> {
    const WAKE_UPS: &str = "wake-ups";
    if let Some(few) = threads.iter().find_map(|thread| too_few_of_named(thread, limits)) {
        return Some(few);
    }
    let sum = |of: fn(&Series, &ProcessThread) -> u64| threads.iter().map(|(series, thread)| of(series, thread)).sum();
    let counts: [(bool, u64, &str); 3] = [
        (limits.latency_ns.is_some(), sum(|series, _| series.samples), WAKE_UPS),
        (
            limits.missed.is_some(),
            sum(|series, thread| if series.period_ns > 0 { thread.cycles } else { 0 }),
            "cycles with a period",
        ),
        (limits.response_ns.is_some(), sum(|_, thread| thread.cycles), "cycles"),
    ];
    let few = counts.into_iter().find(|&(limited, count, _)| limited && count < MIN_EVENTS);
    match few {
        Some((_, 0, _)) if threads.iter().all(|(_, thread)| thread.times.running_ns == 0) => {
            Some("no thread with a limit ran".to_owned())
        }
        Some((_, 0, WAKE_UPS)) => Some("no thread with a limit was woken: measure for longer".to_owned()),
        Some((_, 0, what)) => Some(format!("the run has no {what} of a thread with a limit: {MARK}")),
        Some((_, count, what)) => Some(format!("the run has {count} {what}, and PASS needs at least {MIN_EVENTS}")),
        None => {
            let limited = threads.iter().filter(|(series, _)| limits.response_ns.is_some() || series.period_ns > 0);
            let of_cycles = || {
                let of_thread = |thread| {
                    let of_yields = || cycle::yields(thread).filter(|_| limits.cycle_ns(thread.0.period_ns).is_some());
                    let of_rows = || cycle::long_row(thread, limits);
                    unfollowed(thread).or_else(of_yields).or_else(of_rows).or_else(|| cycle::long_cut(thread, limits))
                };
                let of_threads = || threads.iter().find_map(of_thread);
                cycle::unclear(limited).or_else(of_threads).or_else(|| cycle::too_long_at_end(threads, limits))
            };
            let of_cycles = if limits.limit_cycles() { of_cycles() } else { None };
            let of_wake_ups =
                |thread: &(&Series, &ProcessThread)| untraced(thread).or_else(|| unsure_maximum(thread.0));
            of_cycles.or_else(|| limits.latency_ns.and_then(|_| threads.iter().find_map(of_wake_ups)))
        }
    }
}

/// Why a thread that the user named has too few wake-ups or cycles; `None` if it has enough, or was not named. Others may
/// be without work.
fn too_few_of_named((series, thread): &(&Series, &ProcessThread), limits: Limits) -> Option<String> {
    let counts = [
        (limits.latency_ns.is_some(), series.samples, "wake-ups"),
        (limits.cycle_ns(series.period_ns).is_some(), thread.cycles, "cycles"),
    ];
    let (_, count, what) =
        counts.into_iter().find(|&(limited, count, _)| thread.named && limited && count < MIN_EVENTS)?;
    Some(format!(
        "{} has {count} {what}, and PASS needs at least {MIN_EVENTS} of each thread that is named",
        series.role
    ))
}

/// The thread with a named period that ended well before the run, so that the deadlines after that are in no figure.
fn ended_before_run(record: &Record, limits: Limits) -> Option<String> {
    /// It may end a little earlier than the others: this many periods.
    const PERIODS: u64 = 10;
    let run_ns: u64 = record.phases.iter().map(|phase| phase.duration_ns).sum();
    threads(record).iter().find_map(|(series, thread)| {
        let ended_ns =
            thread.ended_at_ns.filter(|_| thread.named && limits.missed.is_some() && series.period_ns > 0)?;
        let is_early = run_ns.saturating_sub(ended_ns) > series.period_ns.saturating_mul(PERIODS).max(run_ns / 20);
        is_early.then(|| {
            let (ended, run) = (format_unsigned_ns(ended_ns), format_unsigned_ns(run_ns));
            format!("{} ended after {ended} of {run}, so its deadlines after that were not counted", series.role)
        })
    })
}

/// The threads of a program many of whose cycles have no known length, with the number of these cycles.
#[must_use]
pub fn incomplete_threads(record: &Record) -> Vec<String> {
    threads(record).iter().filter_map(unfollowed).collect()
}

/// How many cycles of a thread have no known length; `None` if they are as few as at the start and the end of any run.
fn unfollowed((series, thread): &(&Series, &ProcessThread)) -> Option<String> {
    const AT_ENDS: u64 = 2;
    let (cut, all) = (thread.cycles_cut, thread.cycles + thread.cycles_cut);
    let few = cut <= AT_ENDS && thread.cycles > cut || cut.saturating_mul(100) <= all;
    let switches = match thread.switches_missing {
        0 => String::new(),
        count => {
            let (cpus, count) = (untraced_cpus(thread), grouped(count));
            format!(" (on {cpus}, the kernel did not trace {count} switches to it)")
        }
    };
    (!few).then(|| {
        let (cut, all) = (grouped(cut), grouped(all));
        format!("events of {cut} of {all} cycles of {} are missing in the trace{switches}", series.role)
    })
}

/// How many wake-ups of a thread are missing; `None` if they are less than a hundredth.
fn untraced((series, thread): &(&Series, &ProcessThread)) -> Option<String> {
    let missing = thread.switches_missing;
    (missing > series.samples / 100).then(|| {
        let (missing, role, cpus) = (grouped(missing), &series.role, untraced_cpus(thread));
        format!("the kernel did not trace {missing} switches to {role} on {cpus}")
    })
}

/// The CPUs with untraced switches to a thread, such as `CPU 1`.
fn untraced_cpus(thread: &ProcessThread) -> String {
    let list = &thread.switches_missing_on;
    let noun = if list.contains([',', '-']) { "CPUs" } else { "CPU" };
    format!("{noun} {list}")
}

/// Why the longest cycle exceeds a limit; `None` if it does not. The cycle may not have ended.
fn too_slow(threads: &[(&Series, &ProcessThread)], limit_ns: u64) -> Option<String> {
    // The only cycle of a thread that ended lasts from its last wait to its end, and may contain many real ones.
    let is_rest = |thread: &ProcessThread| thread.ended && thread.cycles == 1;
    let cycles = threads.iter().filter(|(_, thread)| !is_rest(thread)).flat_map(|(series, thread)| {
        let ended = thread.worst_cycles.iter().chain(&thread.longest).map(|cycle| (cycle, "took"));
        let open = thread.open.iter().map(|cycle| (cycle, "had not ended after"));
        ended.chain(open).map(|(cycle, took)| (&series.role, took, cycle::certain_ns(thread, cycle)))
    });
    let (role, took, response_ns) = cycles.max_by_key(|&(_, _, response_ns)| response_ns)?;
    let (response, limit) = (format_unsigned_ns(response_ns), format_unsigned_ns(limit_ns));
    (response_ns > limit_ns).then(|| format!("a cycle of {role} {took} {response} (limit {limit})"))
}

/// The threads of a program; the one with the latest wake-up comes first.
#[must_use]
pub fn threads(record: &Record) -> Vec<(&Series, &ProcessThread)> {
    let mut threads: Vec<_> =
        record.series.iter().filter_map(|series| Some((series, series.kind.process()?))).collect();
    threads.sort_by_key(|(series, _)| Reverse(max_of(series)));
    threads
}

fn deadlines(series: &Series, thread: &ProcessThread) -> String {
    let (role, period) = (&series.role, format_unsigned_ns(series.period_ns));
    let all = thread.cycles + thread.skipped;
    if series.missed == 0 {
        // A stall can miss many deadlines, so the bound (rule of three) is one of stalls.
        let rate = match all.saturating_mul(series.period_ns) / 3 {
            time_ns if time_ns < series.period_ns => String::new(),
            time_ns => format!("; at 95 % confidence, fewer than one stall in {}", format_unsigned_ns(time_ns)),
        };
        return format!("{role} missed none of {} deadlines of {period}{rate}.", grouped(all));
    }
    let too_long = match thread.overruns {
        0 => None,
        count => Some(format!("{} took longer{}", counted(count, "cycle"), overruns(thread.overrun_by))),
    };
    let skipped = (thread.skipped > 0).then(|| format!("{} did not start", grouped(thread.skipped)));
    let why: Vec<String> = [too_long, skipped].into_iter().flatten().collect();
    let (missed, all) = (grouped(series.missed), grouped(all));
    format!("{role} missed {missed} of {all} deadlines of {period}: {}.", why.join(", "))
}

fn overruns(by: Option<Overruns>) -> String {
    let Some(Overruns { by_work, by_handlers, by_faults, by_waiting, by_late_timer, by_blocking }) = by else {
        return String::new();
    };
    let parts = [
        (by_work, "mostly its own work"),
        (by_handlers, "mostly its signal handlers"),
        (by_faults, "mostly its page faults"),
        (by_waiting, "mostly waiting for a CPU"),
        (by_late_timer, "mostly a late timer"),
        (by_blocking, "mostly waiting for something else"),
    ];
    let mut parts: Vec<_> = parts.into_iter().filter(|(count, _)| *count > 0).collect();
    parts.sort_by_key(|(count, _)| Reverse(*count));
    let named: Vec<String> = match &parts[..] {
        [(_, what)] => vec![(*what).to_owned()],
        parts => parts.iter().map(|(count, what)| format!("{} {what}", grouped(*count))).collect(),
    };
    format!(" ({})", named.join(", "))
}

fn wake_up(series: &Series) -> Option<String> {
    let max_ns = series.max_ns?;
    let worst = series.spikes.iter().max_by_key(|spike| spike.lateness_ns);
    let culprit = worst.and_then(|spike| spike.culprits.first());
    let culprit = culprit.map_or_else(String::new, |culprit| format!(", mostly because of: {}", culprit.cause.title()));
    Some(format!("{} waited at most {} for a CPU after a wake-up{culprit}.", series.role, format_ns(max_ns)))
}

/// Time that a thread waited for a CPU after preemptions by others, ns.
fn waited_for_others_ns(thread: &ProcessThread) -> u64 {
    thread.preempted_by.iter().map(|by| by.waited_ns).sum()
}

fn preemptions(series: &Series, thread: &ProcessThread) -> Option<String> {
    let by = thread.preempted_by.first()?;
    let (role, waited) = (&series.role, format_unsigned_ns(waited_for_others_ns(thread)));
    let who = match by.tid {
        0 => "no thread: the kernel withheld the CPU".to_owned(),
        _ if by.own => format!("punctual itself, thread {} ({})", by.comm, times(by.count)),
        _ => format!("{} ({})", by.comm, times(by.count)),
    };
    Some(format!(
        "{role} was preempted {} and waited {waited} for a CPU, mostly because of {who}.",
        times(thread.preemptions)
    ))
}

#[cfg(test)]
mod tests;
