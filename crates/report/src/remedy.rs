//! Remedies split into advice and commands to paste.

use record::Account;

/// The options without a value that remedies name. The name of another option alone is no advice.
const FLAGS: [&str; 1] = ["--hold-cpu-awake"];

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

/// True if a remedy is a shell command, judged by its first word, whose path does not count.
pub(crate) fn is_command(remedy: &str) -> bool {
    let first_word = remedy.split(' ').next().unwrap_or_default();
    let program = first_word.rsplit('/').next().unwrap_or_default();
    ["echo", "punctual", "sudo", "taskset", "ulimit"].contains(&program)
}

/// The command with the options in backticks of these remedies, each once: `--policy fifo:80` of "set `--policy fifo:80`".
/// They replace its own. Only measurements have such options.
pub(crate) fn with_advice<'a>(command: &[String], remedies: impl Iterator<Item = &'a str>) -> String {
    let [_, verb, probe, ..] = command else { return record::shell::command(command) };
    if !["measure", "pair"].contains(&verb.as_str()) {
        return record::shell::command(command);
    }
    let same = format!("punctual {verb} {probe} ");
    let mut advised: Vec<(&str, &str)> = Vec::new();
    let quoted = remedies.flat_map(|remedy| remedy.split('`').skip(1).step_by(2));
    for option in quoted.map(|text| last_option(text, &same)).filter(|text| is_option(text)) {
        let (name, value) = option.split_once(' ').unwrap_or((option, ""));
        if advised.iter().all(|(known, _)| *known != name) {
            advised.push((name, value));
        }
    }
    let (flags, options): (Vec<_>, Vec<_>) = advised.into_iter().partition(|(_, value)| value.is_empty());
    let end = command.iter().position(|word| word == "--").unwrap_or(command.len());
    let missing = flags.iter().map(|(flag, _)| (*flag).to_owned()).filter(|flag| !command[..end].contains(flag));
    let words: Vec<String> = command[..end].iter().cloned().chain(missing).chain(command[end..].to_vec()).collect();
    record::shell::with_options(&words, &options)
}

/// The last option of a whole command that begins with `same`; any other text as it is. Other measurements have other
/// options.
fn last_option<'a>(text: &'a str, same: &str) -> &'a str {
    text.rfind(" --").filter(|_| text.starts_with(same)).map_or(text, |at| &text[at + 1..])
}

/// True for an option that is complete: a flag, or an option with a value that is no placeholder such as `NAME`.
fn is_option(text: &str) -> bool {
    let is_complete = FLAGS.contains(&text) || text.split(' ').count() == 2;
    text.starts_with("--") && is_complete && !text.contains(|c: char| c.is_ascii_uppercase())
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

    #[test]
    fn the_next_command_has_the_options_of_the_remedies() {
        let next = |command: &str, remedies: &[&str]| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            with_advice(&words, remedies.iter().copied())
        };
        let policy = ["give it a real-time policy: `punctual measure noise --policy fifo:80`", "or `--policy fifo:91`"];
        let other = ["measure its effect with `punctual measure timer --hold-cpu-awake`"];
        assert_eq!(next("punctual", &other), "punctual", "the bare command has no such option");
        assert_eq!(next("punctual measure udp --self", &other), "punctual measure udp --self");
        for (command, expected) in [
            ("punctual measure noise", "punctual measure noise --policy fifo:80"),
            ("punctual measure noise --policy other -q", "punctual measure noise -q --policy fifo:80"),
            ("punctual measure noise --policy=other -q", "punctual measure noise -q --policy fifo:80"),
            ("punctual measure process -- a --policy b", "punctual measure process --policy fifo:91 -- a --policy b"),
        ] {
            assert_eq!(next(command, &policy), expected);
        }
        let none =
            ["use `--load NAME`", "`sudo x --policy fifo:80`", "a lone ` stays", "see `policy=` of its `--thread`"];
        for command in ["punctual", "punctual measure threads"] {
            assert_eq!(next(command, &none), command);
        }
    }
}
