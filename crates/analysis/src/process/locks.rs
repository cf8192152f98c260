//! Waits for locks of the program in words.

use record::{LockWait, ProcessThread, Series};

use super::cycle::thread_words;
use crate::format_unsigned_ns;

/// The worst waits for a lock of each thread: priority inversions, or else the longest ones. `threads` starts with the
/// one whose longest cycle is explained; its lock is not explained again.
pub(super) fn waits(threads: &[(&Series, &ProcessThread)]) -> Vec<String> {
    let explained = threads.first().and_then(|(_, thread)| Some(&thread.longest.as_ref()?.lock.as_ref()?.lock));
    threads.iter().filter_map(|(series, thread)| worst_wait(series, thread, explained)).collect()
}

fn worst_wait(series: &Series, thread: &ProcessThread, explained: Option<&String>) -> Option<String> {
    let wait = thread.locks.iter().max_by_key(|wait| (wait.inverted_ns, wait.waited_ns))?;
    let (role, longest, waited) =
        (&series.role, format_unsigned_ns(wait.longest_ns), format_unsigned_ns(wait.waited_ns));
    let (times, took) = match wait.count {
        1 => ("once".to_owned(), waited),
        count => (format!("{count} times"), format!("{waited} in all, {longest} at most")),
    };
    let cause = if explained == Some(&wait.lock) { String::new() } else { format!(": {}", cause(wait)) };
    Some(format!("{role} waited {times} for lock {}, {took}{cause}.", wait.lock))
}

/// Why a wait for a lock took long, with what to do.
pub(super) fn cause(wait: &LockWait) -> String {
    if wait.holder.is_empty() {
        return "the thread that held it is unknown".to_owned();
    }
    let holder = thread_words(&wait.holder, wait.holder_tid, wait.holder_priority);
    let inheritance = if wait.inherits_priority { "with" } else { "without" };
    let (lock, held) = (&wait.lock, format!("{holder} held it {inheritance} priority inheritance"));
    let preempter = wait.preempter.as_ref().filter(|_| wait.inverted_ns > 0);
    if let Some(by) = preempter.filter(|_| wait.inverted_ns >= wait.waited_ns / 2) {
        let who = thread_words(&by.comm, by.tid, by.priority);
        return format!(
            "priority inversion at mutex {lock}: {held}, and {who} kept {} off the CPU; create the mutex with \
            PTHREAD_PRIO_INHERIT (pthread_mutexattr_setprotocol)",
            by.kept
        );
    }
    if wait.most_holders > 1 {
        return format!(
            "a lock convoy: up to {} threads held it, one after the other, the last one was {holder}; hold it for a \
            shorter time, or use more than one lock",
            wait.most_holders
        );
    }
    let doing = [
        (wait.ran_ns, "computed"),
        (wait.holder_waited_ns, "waited for something else"),
        (wait.waited_ns.saturating_sub(wait.ran_ns + wait.holder_waited_ns + wait.unknown_ns), "had no CPU"),
    ];
    let main = doing.iter().max_by_key(|(ns, _)| *ns).filter(|(ns, _)| *ns > wait.unknown_ns);
    match main {
        Some((_, what)) => format!("{held}, and mostly {what} meanwhile; hold it for a shorter time"),
        None => format!("{held}; what it did meanwhile is unknown"),
    }
}
