//! Remedies split into advice and commands to paste.

use record::{Account, CauseKind, Record};

use crate::blame::main_causes;

/// Splits a remedy into advice and the command at its end; either can be empty.
///
/// A command is the text between backticks at the end, after a colon or "with", or the whole remedy if it starts with a
/// known program. Commands within a sentence stay there.
pub(crate) fn advice_and_command(remedy: &str) -> (&str, &str) {
    if is_command(remedy) {
        return ("", remedy);
    }
    let quoted = remedy.trim_end_matches('.').strip_suffix('`').and_then(|rest| rest.rsplit_once('`'));
    match quoted {
        // A single word is not a command to paste, e.g. `sudo` or a kernel argument.
        Some((before, command)) if command.contains(' ') && announces(before.trim_end()) => {
            (before.trim_end(), command)
        }
        _ => (remedy, ""),
    }
}

fn announces(text: &str) -> bool {
    text.ends_with(':') || text.ends_with(" with")
}

/// The remedy of each account. A repeated remedy refers to the account that has it first.
pub(crate) fn of_accounts(accounts: &[&Account]) -> Vec<String> {
    let advice = |(n, account): (usize, &&Account)| {
        let shown = accounts[..n].iter().find(|above| !account.remedy.is_empty() && above.remedy == account.remedy);
        shown.map_or_else(|| account.remedy.clone(), |above| format!("as above, for {}", above.cause.title()))
    };
    accounts.iter().enumerate().map(advice).collect()
}

/// True if the culprits explain the answer: not for an invalid run, whose figures are not those of the request, nor for
/// a matrix, whose culprits are those of all pairs.
pub(crate) fn explain_answer(record: &Record) -> bool {
    record.validity.valid && record.cells.is_empty()
}

/// What to change: the remedies of the main culprits as advice and command, at most `count`; of culprits that are alike,
/// that of the heaviest.
pub(crate) fn to_do(record: &Record, count: usize) -> Vec<(&str, &str)> {
    // The remedies for a command that punctual started concern threads that have ended.
    let has_ended = record.program.as_ref().is_some_and(|program| program.started);
    let blame = record.blame.as_ref().filter(|_| explain_answer(record) && !has_ended);
    let mut shown: Vec<&Account> = Vec::new();
    // A normal cost without a command to reduce it is no remedy.
    let is_to_do = |account: &&Account| {
        let is_normal = account.cause.kind == CauseKind::WakeUp && advice_and_command(&account.remedy).1.is_empty();
        !is_normal && !account.remedy.is_empty()
    };
    for account in blame.into_iter().flat_map(main_causes).filter(is_to_do) {
        let is_alike = |other: &&Account| {
            other.remedy == account.remedy
                || (other.cause.kind, other.cause.why) == (account.cause.kind, account.cause.why)
        };
        if shown.len() < count && !shown.iter().any(is_alike) {
            shown.push(account);
        }
    }
    shown.into_iter().map(|account| advice_and_command(&account.remedy)).collect()
}

/// True if a remedy is a shell command, judged by its first word.
pub(crate) fn is_command(remedy: &str) -> bool {
    ["echo", "punctual", "sudo", "taskset", "ulimit"].contains(&remedy.split(' ').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_commands_from_advice() {
        for (remedy, parts) in [
            ("", ("", "")),
            ("sudo swapoff -a", ("", "sudo swapoff -a")),
            ("Boot with preempt=full.", ("Boot with preempt=full.", "")),
            ("Move it away: `echo 0 | sudo tee /x`.", ("Move it away:", "echo 0 | sudo tee /x")),
            ("Set `nohlt` or boot `a` again.", ("Set `nohlt` or boot `a` again.", "")),
            ("Run as root, with `sudo`.", ("Run as root, with `sudo`.", "")),
            ("mount it with `sudo mount x`", ("mount it with", "sudo mount x")),
            ("use another, `sudo a b`", ("use another, `sudo a b`", "")),
            ("a lone ` stays", ("a lone ` stays", "")),
        ] {
            assert_eq!(advice_and_command(remedy), parts);
        }
    }
}
