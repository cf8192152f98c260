//! The help pages: one line for each option, grouped by task. Details are in the man pages and in docs/options.md.
//!
//! `--help` prints the full page of a command, and `-h` one screen with the options that are used most. Both end with
//! two examples.

use std::fmt::Write;

use clap::{Arg, Command, builder::StyledStr};

/// Last column at which the texts of a list begin.
const TEXT_COLUMN_MAX: usize = 26;
/// Lines of the longest full page.
const FULL_LINES: usize = 60;
/// Lines of the longest short page.
const SHORT_LINES: usize = 24;
/// Heading of the subcommands.
const COMMANDS: &str = "Commands";
/// Heading of the options that are in no group.
const OWN: &str = "Options";

/// The groups of options in the order of the page, each with the long names of its options.
const GROUPS: [(&str, &[&str]); 9] = [
    (OWN, &[]),
    ("Time and load", &["duration", "rounds", "endless", "samples", "load", "load-cpus"]),
    (
        "CPUs and threads",
        &[
            "cpus",
            "cpu",
            "policy",
            "receive-cpu",
            "receive-policy",
            "echo-cpu",
            "echo-policy",
            "listen-cpu",
            "spin",
            "busy-poll",
            "shield",
            "hold-cpu-awake",
            "setting",
            "clock",
            "wait",
            "core",
        ],
    ),
    (
        "Models and cabinets",
        &[
            "preset",
            "model",
            "slim",
            "param",
            "model2",
            "series",
            "parallel",
            "cab",
            "cab2",
            "cab-normalised",
            "cab-without-delay",
            "reverb-ir",
            "neutral",
            "set",
        ],
    ),
    (
        "Sound card",
        &["device", "capture-device", "playback-device", "sample-format", "rate", "frames", "periods", "input"],
    ),
    ("Profiles and limits", &["profile", "until-decided", "against", "max-latency", "max-missed", "max-response"]),
    (
        "Spikes and their causes",
        &[
            "threshold",
            "blame",
            "blame-cost",
            "timerlat",
            "monitors",
            "stop-on",
            "stop-trace",
            "stop-run",
            "on-spike",
            "on-spike-once",
        ],
    ),
    (
        "Far end",
        &[
            "ssh",
            "far-binary",
            "far-command",
            "far-sudo",
            "far-cpu",
            "far-policy",
            "far-load",
            "far-load-cpus",
            "far-shield",
            "far-hold-cpu-awake",
            "far-nic",
            "far-irq-priority",
            "far-irq-cpu",
        ],
    ),
    ("Output", &["record", "no-record", "export", "json", "full", "quiet", "color", "version"]),
];

/// Commands that share a row of the short page, with its text.
const SHARED_COMMANDS: [(&[&str], &str); 5] = [
    (&["profiles", "references", "loads", "campaigns"], "List the built-in ones, or show one"),
    (&["echo", "mirror", "pair", "judge"], "Measure between two machines, or from outside"),
    (&["run", "validate"], "Run a campaign, a table of scenarios, or check its file"),
    (&["machine", "snapshot"], "Show the facts of this machine, or copy them"),
    (&["show", "blame"], "Show a record, or the causes of its spikes"),
];

/// Options that share a row, with its text, on a page that has too many rows.
const SHARED: [(&[&str], &str); 25] = [
    (&["hold-cpu-awake", "setting"], "Keep CPUs awake, or change ID[=VALUE]"),
    (&["on-spike", "on-spike-once"], "trace, stop, command:CMD, signal:NAME:PID"),
    (&["json", "full", "quiet"], "JSON, all figures, or only the first sentence"),
    (&["record", "no-record"], "Write FILE.punctual.json and .html, or nothing"),
    (&["duration", "endless"], "Measure this long [default: 10s], or until Ctrl-C"),
    (&["spin", "busy-poll"], "Poll for arrivals, or for this long before sleeping"),
    (&["clock", "wait", "core"], "Clock, wait method and scheduler core"),
    (&["stop-on", "stop-trace", "stop-run"], "Stop at a late wake-up"),
    (&["threshold", "timerlat"], "Spikes are later than this; also run timerlat"),
    (&["load", "load-cpus"], "Run this load (`punctual loads`) on these CPUs"),
    (&["profile", "until-decided"], "Judge by a profile, end when decided"),
    (&["unique-id", "streams", "maap"], "First stream ID, streams, claimed addresses"),
    (&["mode", "stamps"], "Send by bypass, txtime, xdp, ...; stamp sent frames"),
    (&["far-load", "far-load-cpus"], "Run this load there, on these CPUs"),
    (&["far-shield", "far-hold-cpu-awake"], "Isolate CPUs there, keep them awake"),
    (&["ssh", "far-sudo"], "Connect with this command, start with `sudo -n`"),
    (&["far-binary", "far-command"], "Copy or start this on the far end"),
    (&["far-cpu", "far-policy"], "Use this CPU and policy on the far end"),
    (&["far-transport", "far-queue"], "Answer by socket, xdp, xdp-zerocopy, ..."),
    (&["far-receive", "far-queue"], "Listen by socket, xdp, xdp-zerocopy, ..."),
    (&["receive", "queue"], "Listen by socket, xdp, xdp-zerocopy or xdp-generic"),
    (&["transport", "queue"], "Bypass the network stack by AF_XDP, on this queue"),
    (&["nic", "irq-priority"], "Change settings and interrupts"),
    (&["far-nic", "far-irq-priority"], "The same of the far interface"),
    (&["far-shield", "far-hold-cpu-awake"], "Free far CPUs, and keep one awake"),
];

/// Options of the short page, the most used ones first. Others follow in the order of the definition.
const MOST_USED: [&str; 28] = [
    "duration",
    "cpus",
    "cpu",
    "period",
    "profile",
    "load",
    "thread",
    "class",
    "matrix",
    "self",
    "device",
    "model",
    "cab",
    "preset",
    "frames",
    "policy",
    "shield",
    "class",
    "wakeup-offset",
    "find-buffer",
    "stamps",
    "against",
    "full",
    "json",
    "record",
    "export",
    "blame",
    "quiet",
];

/// Puts each option below the heading of its group, and joins the lines of each paragraph in the descriptions of the
/// command and of all its subcommands.
///
/// The definition uses verbatim doc comments because of the examples, so its texts contain the line breaks of the
/// source.
pub fn arranged(mut command: Command) -> Command {
    if let Some(about) = command.get_about().map(flow) {
        command = command.about(about.trim_end_matches('.').to_owned());
    }
    if let Some(about) = command.get_long_about().map(flow) {
        command = command.long_about(about);
    }
    command
        .mut_args(|arg| {
            let heading = group(&arg);
            arg.help_heading(heading)
        })
        .mut_subcommands(arranged)
}

/// Joins the lines of each paragraph.
fn flow(text: &StyledStr) -> String {
    let (mut flowing, mut after_verbatim) = (String::new(), true);
    for line in text.to_string().lines() {
        let is_verbatim = line.is_empty() || line.starts_with(' ');
        if !flowing.is_empty() {
            flowing.push(if is_verbatim || after_verbatim { '\n' } else { ' ' });
        }
        flowing += line;
        after_verbatim = is_verbatim;
    }
    flowing
}

/// The heading of an option; `None` for an argument without a name.
pub fn group(arg: &Arg) -> Option<&'static str> {
    let long = arg.get_long()?;
    // `amp` sets parameters of a model, but `evl gravity --set` is a flag.
    let is_other_set = long == "set" && !arg.get_action().takes_values();
    // `capture` has the clock of its timestamps, measurements that of their threads.
    let is_of_stamps = long == "clock" && arg.get_possible_values().iter().any(|value| value.get_name() == "gptp");
    let of_group = GROUPS.iter().find(|(_, names)| names.contains(&long) && !is_other_set && !is_of_stamps);
    Some(of_group.map_or(OWN, |(heading, _)| heading))
}

/// The definition, whose commands print these pages for this width of the terminal.
pub fn with_pages(mut command: Command, is_full: bool, width: usize) -> Command {
    command.build();
    paged(command, is_full, width)
}

fn paged(mut command: Command, is_full: bool, width: usize) -> Command {
    let page = page(&mut command, is_full, width);
    command.override_help(page).mut_subcommands(|subcommand| paged(subcommand, is_full, width))
}

/// One line of a list.
#[derive(Clone)]
struct Row {
    group: &'static str,
    /// Long name of the first option, or the name of the command.
    key: String,
    names: String,
    text: String,
}

fn page(command: &mut Command, is_full: bool, width: usize) -> String {
    let full = full_page(command, width);
    if is_full || full.lines().count() <= SHORT_LINES { full } else { short_page(command, width) }
}

/// All rows. Options share rows, and the details of the command are left out, as far as the page is too long.
fn full_page(command: &mut Command, width: usize) -> String {
    let mut rows = rows(command);
    let ending = ending(command);
    let details = details(command, width);
    for (keys, text) in SHARED {
        let page = beginning(command, width) + &details + &list(&rows, width) + &ending;
        if page.lines().count() <= FULL_LINES {
            return page;
        }
        share(&mut rows, keys, text);
    }
    beginning(command, width) + &list(&rows, width) + &ending
}

/// The rows below the headings of their groups.
fn list(rows: &[Row], width: usize) -> String {
    let groups = rows.chunk_by(|one, other| one.group == other.group);
    let texts = groups.map(|group| {
        let column = text_column(rows.iter().filter(|row| (row.group == COMMANDS) == (group[0].group == COMMANDS)));
        let rows: String = group.iter().map(|row| put(row, column, width)).collect();
        format!("\n\x1b[1m{}:\x1b[0m\n{rows}", group[0].group)
    });
    texts.collect()
}

/// The column at which the texts of these rows begin.
fn text_column<'a>(rows: impl Iterator<Item = &'a Row>) -> usize {
    let ends = rows.map(|row| row.names.chars().count() + 4);
    ends.filter(|end| *end <= TEXT_COLUMN_MAX).max().unwrap_or_default()
}

/// As many rows as fit on a screen, the most used ones.
fn short_page(command: &mut Command, width: usize) -> String {
    let beginning = beginning(command, width) + "\n";
    let usage = command.render_usage().to_string().replace(['<', '>'], "");
    let words = usage.lines().next().unwrap_or_default().trim_start_matches("Usage: ");
    let words = words.split(" [OPTIONS]").next().unwrap_or_default();
    let ending = ending(command) + &format!("\n\x1b[1mAll options:\x1b[0m {words} --help\n");
    let mut rows = rows(command);
    for (keys, text) in SHARED_COMMANDS {
        share(&mut rows, keys, text);
    }
    let rank = |row: &Row| match MOST_USED.iter().position(|name| *name == row.key) {
        _ if row.group == COMMANDS || row.names.starts_with(['[', '<']) => 0,
        Some(position) => 1 + position,
        None => 1 + MOST_USED.len(),
    };
    let mut by_rank: Vec<usize> = (0..rows.len()).collect();
    by_rank.sort_by_key(|&index| rank(&rows[index]));
    let mut left = SHORT_LINES.saturating_sub(beginning.lines().count() + ending.lines().count());
    let column = text_column(rows.iter());
    let mut chosen = Vec::new();
    for index in by_rank {
        let row = put(&rows[index], column, width);
        let lines = row.lines().count();
        if lines > left {
            break;
        }
        left -= lines;
        chosen.push((index, row));
    }
    chosen.sort_unstable();
    beginning + &chosen.into_iter().map(|(_, row)| row).collect::<String>() + &ending
}

/// The purpose and the usage of the command.
fn beginning(command: &mut Command, width: usize) -> String {
    let usage = command.render_usage().to_string();
    let usage = usage.strip_prefix("Usage:").unwrap_or(&usage).trim();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = if about.ends_with('?') { about } else { about + "." };
    format!("{}\n\n\x1b[1mUsage:\x1b[0m {usage}\n", wrapped(&about, 0, width))
}

/// The paragraphs of the description behind the first one, without the examples, and where to read more.
fn details(command: &Command, width: usize) -> String {
    let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let paragraphs = about.split("\n\n").skip(1).filter(|paragraph| !paragraph.starts_with("Examples:"));
    let texts: String = paragraphs.map(|paragraph| format!("\n{}\n", wrapped(paragraph, 0, width))).collect();
    let page = command.get_bin_name().unwrap_or("punctual").replace(' ', "-");
    if command.get_arguments().count() < SHORT_LINES {
        return texts;
    }
    format!("{texts}\n\x1b[1mDetails:\x1b[0m man {page}, or docs/options.md\n")
}

/// The examples of the command.
fn ending(command: &Command) -> String {
    let examples = examples(command);
    if examples.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = examples.iter().map(|example| format!("  {example}\n")).collect();
    format!("\n\x1b[1mExamples:\x1b[0m\n{}", lines.concat())
}

/// The examples in the description of a command.
pub fn examples(command: &Command) -> Vec<String> {
    let about = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let lines = about.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

/// The rows of a command: its subcommands, arguments and options, in the order of the page.
fn rows(command: &Command) -> Vec<Row> {
    let visible = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
    let subcommands = command.get_subcommands().filter(visible).map(|command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let name = command.get_name().to_owned();
        Row { group: COMMANDS, key: name.clone(), names: name, text: about }
    });
    let is_root = command.get_bin_name().is_none_or(|name| name == "punctual");
    let is_listed = |arg: &&Arg| match arg.get_id().as_str() {
        "help" => false,
        "version" => is_root,
        _ => !arg.is_hide_set(),
    };
    let (positional, named): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(is_listed).partition(|arg| arg.is_positional());
    let arguments = positional.into_iter().chain(named).map(|arg| Row {
        group: group(arg).unwrap_or(OWN),
        key: arg.get_long().unwrap_or_default().to_owned(),
        names: names(arg),
        text: text(arg),
    });
    let mut rows: Vec<Row> = subcommands.chain(arguments).collect();
    rows.sort_by_key(|row| {
        let group = GROUPS.iter().position(|(heading, _)| *heading == row.group)?;
        Some((group, GROUPS[group].1.iter().position(|name| *name == row.key)))
    });
    rows
}

/// Joins the rows with these keys to one row, if all of them exist.
fn share(rows: &mut Vec<Row>, keys: &[&str], text: &str) {
    let position = |rows: &[Row], key: &str| rows.iter().position(|row| row.key == key);
    if !keys.iter().all(|key| position(rows, key).is_some()) {
        return;
    }
    let all: Vec<String> =
        keys.iter().filter_map(|key| Some(rows[position(rows, key)?].names.trim_start().to_owned())).collect();
    rows.retain(|row| row.key == keys[0] || !keys.contains(&row.key.as_str()));
    if let Some(first) = position(rows, keys[0]) {
        rows[first].names = all.join(", ");
        text.clone_into(&mut rows[first].text);
    }
}

/// The name of an option with its value.
pub fn names(arg: &Arg) -> String {
    let values: Vec<String> = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let value = if arg.get_action().takes_values() { values.join(" ") } else { String::new() };
    let Some(long) = arg.get_long() else {
        return if arg.is_required_set() { format!("<{value}>") } else { format!("[{value}]") };
    };
    let is_optional = arg.get_num_args().is_some_and(|count| count.min_values() == 0 && count.takes_values());
    match (arg.get_short(), value.as_str()) {
        (Some(short), "") => format!("-{short}, --{long}"),
        (Some(short), value) => format!("-{short}, --{long} {value}"),
        (None, "") => format!("--{long}"),
        (None, value) if is_optional => format!("--{long}[={value}]"),
        (None, value) => format!("--{long} {value}"),
    }
}

/// The first sentence of the help of an option, with its values and its default.
pub fn text(arg: &Arg) -> String {
    let mut text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if !arg.get_action().takes_values() {
        return text;
    }
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    if !values.iter().all(|value| text.contains(value.as_str())) {
        text = format!("{text}: {}", values.join(", "));
    }
    match default(arg) {
        Some(default) if !text.contains("[default") => format!("{text} [default: {default}]"),
        _ => text,
    }
}

/// The default value of an option.
pub fn default(arg: &Arg) -> Option<String> {
    let values = if arg.get_action().takes_values() { arg.get_default_values() } else { &[] };
    let default: Vec<_> = values.iter().map(|value| value.to_string_lossy()).collect();
    let default = default.join(" ");
    (!default.is_empty()).then_some(default)
}

/// A row, whose text continues below its beginning.
fn put(row: &Row, column: usize, width: usize) -> String {
    let names = &row.names;
    let end = names.chars().count() + 4;
    let column = column.min(width / 2);
    if end <= column {
        format!("  {names:<pad$}{}\n", wrapped(&row.text, column, width), pad = column - 2)
    } else if end + row.text.chars().count() <= width {
        format!("  {names}  {}\n", row.text)
    } else {
        format!("  {names}\n{:column$}{}\n", "", wrapped(&row.text, column, width))
    }
}

/// The text in lines of this width. The first line begins at column `begin`; the others are indented to it.
fn wrapped(text: &str, begin: usize, width: usize) -> String {
    let (mut lines, mut column) = (String::new(), begin);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > begin && column + 1 + length > width {
            let _ = write!(lines, "\n{:begin$}", "");
            column = begin;
        } else if column > begin {
            lines.push(' ');
            column += 1;
        }
        lines += word;
        column += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every visible command of the definition with its help pages, and the name in its usage.
    fn commands(is_full: bool, width: usize) -> Vec<(String, Command)> {
        let mut left = vec![with_pages(crate::cli::definition().disable_help_subcommand(true), is_full, width)];
        let mut all = Vec::new();
        while let Some(command) = left.pop() {
            left.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
            all.push((command.get_bin_name().unwrap_or_default().to_owned(), command));
        }
        assert!(all.len() > 40, "only {} commands", all.len());
        all
    }

    fn page_of(mut command: Command) -> String {
        command.render_help().to_string()
    }

    #[test]
    fn joins_lines_of_paragraphs_but_not_of_examples() {
        let text = "One\ntwo.\n\nThree\nfour:\n  a\n  b\nfive\nsix";
        assert_eq!(flow(&text.into()), "One two.\n\nThree four:\n  a\n  b\nfive six");
    }

    #[test]
    fn pages_have_at_most_60_lines_and_short_ones_fit_on_a_screen() {
        for (is_full, width, lines_max) in [(true, 100, 60), (true, 80, 60), (false, 100, 24), (false, 80, 24)] {
            for (name, command) in commands(is_full, width) {
                let page = page_of(command);
                let lines = page.lines().count();
                assert!(lines <= lines_max, "{name} has {lines} lines at {width} columns:\n{page}");
                let is_usage = |line: &&str| line.contains("punctual ");
                let widest = page.lines().filter(|line| !is_usage(line)).map(|line| line.chars().count()).max();
                assert!(widest <= Some(width), "{name} at {width} columns:\n{page}");
            }
        }
    }

    #[test]
    fn full_pages_list_every_option() {
        for (name, command) in commands(true, 100) {
            let page = page_of(command.clone());
            let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
            for long in visible.filter_map(Arg::get_long).filter(|long| !matches!(*long, "help" | "version")) {
                let is_listed = page.split([' ', ',', '[', '\n']).any(|word| word == format!("--{long}"));
                assert!(is_listed, "{name} --{long}:\n{page}");
            }
        }
    }

    #[test]
    fn each_option_has_one_line() {
        /// Options with more values than fit on a line.
        const MANY_VALUES: [&str; 1] = ["mode"];
        let mut long = Vec::new();
        for (name, command) in commands(true, 80) {
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                let text = text(arg);
                let has_many = arg.get_long().is_some_and(|long| MANY_VALUES.contains(&long));
                if text.chars().count() > 80 - TEXT_COLUMN_MAX && !has_many {
                    long.push(format!("{name} {}: {text}", names(arg)));
                }
            }
        }
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn pages_end_with_two_examples_that_are_accepted() {
        for (name, command) in commands(true, 100) {
            let examples = examples(&command);
            let page = page_of(command);
            let last: Vec<&str> = page.trim_end().lines().rev().take(2).map(str::trim).collect();
            assert_eq!(last.into_iter().rev().collect::<Vec<_>>(), examples, "{name}:\n{page}");
            for example in examples {
                assert!(example.chars().count() <= 78, "{name}: {example}");
                crate::cli::documented::accept(&example).unwrap_or_else(|error| panic!("{name}: {example}\n{error}"));
            }
        }
    }

    #[test]
    fn rows_are_shared_by_known_options() {
        let all: Vec<Row> = commands(true, 100).iter().flat_map(|(_, command)| rows(command)).collect();
        let shared = SHARED.iter().chain(&SHARED_COMMANDS).flat_map(|(keys, _)| *keys);
        for key in shared.chain(&MOST_USED) {
            assert!(all.iter().any(|row| row.key == *key), "{key}");
        }
        for key in GROUPS.iter().flat_map(|(_, keys)| *keys) {
            assert!(all.iter().any(|row| row.key == *key), "{key}");
        }
    }
}
