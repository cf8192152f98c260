//! The table of all options, docs/options.md, from the definition.

use std::{collections::BTreeMap, fmt::Write as _};

use clap::{Arg, Command};

use super::help;

const BEGINNING: &str = "\
# Options

```
punctual measure timer --help    # the options of one command, grouped by task
punctual measure timer -h        # those that are used most, on one screen
```

An option has one name and one meaning in all commands. Durations have a unit (`250us`, `10s`, `1h`), lists of CPUs are
written as `0,2-3`, and a policy is `fifo:N`, `rr:N`, `deadline:RUNTIME/DEADLINE/PERIOD` or `other`. An option of an
earlier version or of cyclictest is refused with the name of the right one.

Each measurement writes a record and its HTML report into the current folder: `HOST-DATE-TIME.punctual.json` and
`.punctual.html`. `--record FILE` chooses another name, `--no-record` writes neither.

`punctual generate options` prints this page; a test keeps it up to date.

| option | meaning | default | commands |
|---|---|---|---|
";

/// An option with one meaning: its names, its meaning and its default.
type Entry = (String, String, String);

/// The page with the options of all visible commands, in alphabetical order.
pub fn page(mut definition: Command) -> String {
    definition = definition.disable_help_subcommand(true);
    definition.build();
    let mut commands: BTreeMap<Entry, Vec<String>> = BTreeMap::new();
    for command in all(&definition) {
        let name = command.get_bin_name().unwrap_or("punctual");
        for arg in command.get_arguments().filter(|arg| is_listed(arg)) {
            commands.entry(entry(arg)).or_default().push(name.strip_prefix("punctual ").unwrap_or(name).to_owned());
        }
    }
    let mut page = BEGINNING.to_owned();
    for ((names, meaning, default), commands) in commands {
        let names = names.replace('|', "\\|");
        let _ = writeln!(page, "| `{names}` | {meaning} | {default} | {} |", in_words(&commands));
    }
    page
}

/// The command and all its visible subcommands.
fn all(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|command| !command.is_hide_set()).flat_map(all);
    std::iter::once(command).chain(below).collect()
}

fn is_listed(arg: &Arg) -> bool {
    arg.get_long().is_some() && !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version")
}

fn entry(arg: &Arg) -> Entry {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let lines: Vec<&str> = help.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut meaning = String::new();
    for line in lines {
        // The first paragraph has no full stop.
        let separator = if meaning.is_empty() || meaning.ends_with(['.', ':']) { " " } else { ". " };
        meaning = format!("{meaning}{separator}{line}").trim_start().to_owned();
    }
    let (before, default) = split_default(&meaning);
    let default = help::default(arg).or(default).unwrap_or_default();
    let mut meaning = before;
    if arg.get_action().takes_values() {
        let values = arg.get_possible_values();
        let explained = values.iter().filter(|value| !value.is_hide_set()).filter_map(|value| {
            Some(format!("`{}`: {}", value.get_name(), value.get_help()?.to_string().trim_end_matches('.')))
        });
        let explained: Vec<String> = explained.collect();
        if !explained.is_empty() {
            meaning = format!("{}. {}", meaning.trim_end_matches('.'), explained.join("; "));
        }
    }
    (help::names(arg), meaning.replace('|', "\\|"), default.replace('|', "\\|"))
}

/// The meaning without the default in brackets, and this default.
fn split_default(text: &str) -> (String, Option<String>) {
    let Some((before, rest)) = text.split_once(" [default: ") else { return (text.to_owned(), None) };
    let Some((default, after)) = rest.split_once(']') else { return (text.to_owned(), None) };
    (format!("{before}{after}"), Some(default.to_owned()))
}

/// The commands, the measurements together if all of them have the option.
fn in_words(commands: &[String]) -> String {
    const MEASURE: [&str; 10] =
        ["timer", "threads", "noise", "udp", "ping", "round-trip", "stream", "interrupt", "audio", "process"];
    let has = |name: &str| commands.iter().any(|command| *command == format!("measure {name}"));
    if !MEASURE.iter().all(|name| has(name)) {
        return commands.join(", ");
    }
    let others = commands.iter().filter(|command| !command.starts_with("measure ")).cloned();
    std::iter::once("all of `measure`".to_owned()).chain(others).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options whose values differ between commands, with the reason.
    const DIFFERENT: [(&str, &str); 8] = [
        ("bind", "`amp serve` has --port for the port"),
        ("cab", "`measure audio` also has built-in ones"),
        ("model", "`measure audio` also has built-in ones"),
        ("period", "`measure process` has a period for each thread"),
        ("set", "`evl gravity` sets its result, `amp` a parameter of a model"),
        ("source", "`measure interrupt` waits for a device, `capture` selects frames by their sender"),
        ("to", "`pair udp` names an IP address, `measure round-trip` an Ethernet address"),
        ("thread", "`measure threads` creates threads, `measure process` selects them"),
    ];

    #[test]
    fn an_option_has_the_same_value_in_all_commands() {
        let mut definition = crate::cli::definition().disable_help_subcommand(true);
        definition.build();
        let mut values: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for arg in all(&definition).into_iter().flat_map(Command::get_arguments).filter(|arg| is_listed(arg)) {
            let known = values.entry(arg.get_long().unwrap()).or_default();
            let names = help::names(arg);
            if !known.contains(&names) {
                known.push(names);
            }
        }
        values.retain(|name, known| known.len() > 1 && !DIFFERENT.iter().any(|(different, _)| different == name));
        assert!(values.is_empty(), "{values:#?}");
    }

    #[test]
    fn options_have_no_second_names() {
        let mut definition = crate::cli::definition();
        definition.build();
        for command in all(&definition) {
            for arg in command.get_arguments() {
                assert_eq!(arg.get_all_aliases(), None, "{}", arg.get_id());
            }
        }
    }

    #[test]
    fn defaults_have_their_own_column() {
        let split = |text| split_default(text);
        assert_eq!(split("Use this [default: 10s]. More"), ("Use this. More".to_owned(), Some("10s".to_owned())));
        assert_eq!(split("Use this"), ("Use this".to_owned(), None));
    }
}
