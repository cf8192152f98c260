//! Mistakes in the command line, each with one sentence that says what to write instead. Many are options and commands
//! of other tools and of earlier versions.

use std::{error::Error as _, ffi::OsString, path::Path};

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use loads::LoadSpec;
use record::shell;

use crate::last::LAST;

/// An option of other tools or earlier versions.
struct Synonym {
    names: &'static [&'static str],
    /// The options, without dashes, and positional arguments that a command must have for the advice to be right;
    /// separated by spaces.
    needs: &'static str,
    instead: Instead,
}

/// The advice for an option of other tools.
enum Instead {
    /// Use this option.
    Use(&'static str),
    /// Leave the option out, for this reason.
    Omit(&'static str),
}

impl Instead {
    /// The advice; the option is one of this command, or of the refused one if this is empty.
    fn advice(&self, command: &[&str]) -> String {
        match self {
            Self::Omit(reason) => format!("leave it out, because {reason}"),
            Self::Use(option) if command.is_empty() => format!("use {option}"),
            Self::Use(option) => format!("use punctual {} {option}", command.join(" ")),
        }
    }
}

const fn synonym(names: &'static [&'static str], needs: &'static str, option: &'static str) -> Synonym {
    Synonym { names, needs, instead: Instead::Use(option) }
}

const fn needless(names: &'static [&'static str], needs: &'static str, reason: &'static str) -> Synonym {
    Synonym { names, needs, instead: Instead::Omit(reason) }
}

const SYNONYMS: &[Synonym] = &[
    synonym(&["-p", "--prio", "--priority"], "policy", "--policy fifo:N"),
    synonym(&["--for"], "account", "--account USER, such as --account alice"),
    synonym(&["-i", "--interval"], "period", "--period TIME, such as --period 1ms"),
    synonym(&["-a", "--affinity", "--cpu"], "cpus", "--cpus LIST, such as --cpus 0,2-3"),
    synonym(&["-l", "--loops"], "samples", "--samples N"),
    synonym(&["-D", "--time", "--runtime"], "duration", "--duration TIME, such as --duration 1m"),
    synonym(&["--base", "--servo"], "thread", "--thread NAME=PERIOD,cpu=CPU, such as --thread base=25us,cpu=2"),
    synonym(&["--listen"], "side", "listen and an interface, such as `punctual measure stream listen eth0`"),
    synonym(&["--talk"], "side", "talk and an interface, such as `punctual measure stream talk eth0`"),
    synonym(&["-b", "--breaktrace"], "stop-on", "--stop-on TIME, such as --stop-on 200us"),
    needless(&["-m", "--mlockall"], "policy", "memory is always locked"),
    needless(&["-n", "--nanosleep"], "wait", "clock_nanosleep is the default of --wait"),
    synonym(&["-t"], "threads", "--threads N, such as --threads 4"),
    synonym(&["-t", "--threads"], "cpus", "--cpus LIST, because each CPU has a thread"),
    needless(&["-S", "--smp"], "cpus", "each online CPU is measured"),
    synonym(&["--output", "-o"], "export", "--record FILE or --export FILE"),
    synonym(&["-H", "--histogram", "--histofall"], "export", "--export FILE.csv or --export FILE.hgrm"),
    synonym(&["--json-file"], "export", "--export FILE.json"),
    synonym(&["--capture"], "capture-device", "--capture-device HW"),
    synonym(&["--playback"], "playback-device", "--playback-device HW"),
    synonym(&["--format"], "sample-format", "--sample-format FORMAT, such as --sample-format S16"),
    synonym(&["--stream"], "stream-id", "--stream-id ID"),
    synonym(&["--cpus"], "guest-cpus", "--guest-cpus N"),
    synonym(&["--aligned"], "offset", "--offset TIME"),
    synonym(&["--receive-priority"], "receive-policy", "--receive-policy fifo:N"),
    synonym(&["-p", "--pid"], "pid", "the ID without an option, such as `punctual measure process 1234`"),
    // rtla, and cyclictest, which has other options of the same letters.
    synonym(&["-c"], "cpus clock", "--cpus LIST like -c of rtla, or --clock CLOCK like -c of cyclictest"),
    synonym(&["-c"], "cpus", "--cpus LIST, such as --cpus 0,2-3"),
    synonym(&["-c"], "cpu clock", "--cpu CPU like -c of rtla, or --clock CLOCK like -c of cyclictest"),
    synonym(&["-c"], "cpu", "--cpu CPU, such as --cpu 3"),
    synonym(&["-d"], "duration offset", "--duration TIME like -d of rtla, or --offset TIME like -d of cyclictest"),
    synonym(&["-d"], "duration", "--duration TIME, such as --duration 1m"),
    synonym(&["-P"], "policy", "--policy fifo:N, such as --policy fifo:90"),
    synonym(&["-T"], "stop-on", "--stop-on TIME, such as --stop-on 200us"),
    synonym(&["-T"], "threshold", "--threshold TIME, such as --threshold 5us"),
    // sockperf.
    synonym(&["--mps"], "max-rate", "--period TIME, such as --period 1ms for 1000 datagrams a second"),
    synonym(&["--msg-size"], "size", "--size BYTES, such as --size 64"),
    synonym(&["--port"], "peer", "HOST:PORT, such as 192.0.2.1:7125"),
    synonym(&["--port"], "to", "--to HOST:PORT, such as --to 192.0.2.1:7125"),
    synonym(&["--port"], "bind", "--bind ADDRESS:PORT, such as --bind 0.0.0.0:7125"),
];

/// Other words for a command.
const WORDS: [(&str, &str); 1] = [("report", "show")];

/// It changes settings of the machine, so it is never proposed for a similar word.
const RESTORE: &str = "restore";

/// A program of other packages, and the measurement like it.
const PROGRAMS: [(&[&str], &[&str]); 4] = [
    (&["cyclictest", "rtla", "latency-test"], &["measure", "timer"]),
    (&["timerlat"], &["measure", "timer", "--timerlat"]),
    (&["oslat", "osnoise", "hwlatdetect", "sysjitter", "jitterdebugger"], &["measure", "noise"]),
    (&["hackbench", "stress-ng"], &["loads"]),
];

/// The command whose options are those of cyclictest.
const TIMER: [&str; 2] = ["measure", "timer"];

/// The mistake of this command line, which was refused, and what to write instead, in one sentence; `None` if only the
/// kind of the mistake is known. `arguments` begin with the name of this program.
pub fn sentence(error: &Error, arguments: &[OsString]) -> Option<String> {
    whole(error, arguments).or_else(|| {
        let instead = instead(error, arguments)?;
        let first = first_paragraph(error);
        let first: Vec<&str> = first.split_whitespace().collect();
        Some(format!("{}: {instead}", first.join(" ").replace(" were not provided:", " are missing:")))
    })
}

/// The mistake in the words of clap.
pub fn first_paragraph(error: &Error) -> String {
    let text = error.render().to_string();
    text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ").trim_end().to_owned()
}

/// The text of an error; empty if it has none of this kind.
pub fn context(error: &Error, kind: ContextKind) -> &str {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        _ => "",
    }
}

/// The sentence of a mistake that the words of clap do not describe.
fn whole(error: &Error, arguments: &[OsString]) -> Option<String> {
    let (refused, value) = (context(error, ContextKind::InvalidArg), context(error, ContextKind::InvalidValue));
    match error.kind() {
        ErrorKind::ValueValidation if refused == "[RECORD]" => Some(error.source()?.to_string()),
        ErrorKind::ValueValidation if refused == "[PID]" && is_program(value) => {
            let position = arguments.iter().position(|argument| argument == value)?;
            Some(no_process(value, arguments.get(position..=position)?))
        }
        ErrorKind::ValueValidation => several_loads(refused, value),
        ErrorKind::UnknownArgument => program_with_options(refused, arguments).or_else(|| negative(refused, arguments)),
        ErrorKind::MissingRequiredArgument if refused.contains("--threads") => without_threads(arguments),
        _ => None,
    }
}

/// True if it is no number, so it is meant as the name of a program.
fn is_program(value: &str) -> bool {
    value.parse::<i64>().is_err()
}

/// The sentence for a program instead of a process ID, with this command line.
fn no_process(program: &str, command: &[OsString]) -> String {
    let words = command.iter().map(|word| word.to_string_lossy().into_owned());
    let start: Vec<String> =
        ["punctual", "measure", "process", "--"].into_iter().map(str::to_owned).chain(words).collect();
    let start = shell::command(&start);
    format!("`{program}` is not a process ID: start the program with `{start}`, or give the ID of a running one")
}

/// The sentence for `measure process ls -l`, whose refused option is that of a program.
fn program_with_options(refused: &str, arguments: &[OsString]) -> Option<String> {
    let option = position(refused, arguments)?;
    let before = super::definition().try_get_matches_from(arguments.get(..option)?).err()?;
    let program = context(&before, ContextKind::InvalidValue);
    let is_refused = before.kind() == ErrorKind::ValueValidation
        && context(&before, ContextKind::InvalidArg) == "[PID]"
        && is_program(program);
    let start = arguments.iter().position(|argument| argument == program).filter(|_| is_refused)?;
    Some(no_process(program, arguments.get(start..)?))
}

/// The sentence for a negative time or number, such as `--duration -5s`.
fn negative(refused: &str, arguments: &[OsString]) -> Option<String> {
    let position = position(refused, arguments)?;
    let [option, value] = [position.checked_sub(1)?, position].map(|at| arguments[at].to_string_lossy());
    let positive = value.strip_prefix('-').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
    let is_option = |argument: &clap::Arg| argument.get_long() == option.strip_prefix("--");
    let (_, command) = path(arguments);
    let argument =
        command.get_arguments().find(|argument| is_option(argument) && argument.get_action().takes_values())?;
    let mut corrected = arguments.to_vec();
    corrected[position] = positive.into();
    // The positive number can be out of range.
    let is_refused = super::definition()
        .try_get_matches_from(corrected)
        .is_err_and(|error| context(&error, ContextKind::InvalidValue) == positive);
    let default = argument.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    match default.filter(|_| is_refused) {
        Some(default) => Some(format!("{option} must not be negative: write e.g. {option} {default} (got {value})")),
        None if is_refused => Some(format!("{option} must not be negative (got {value})")),
        None => Some(format!("{option} must not be negative: write e.g. {option} {positive} (got {value})")),
    }
}

/// The position of the refused argument, of which clap names only the first letter if it is a short option.
fn position(refused: &str, arguments: &[OsString]) -> Option<usize> {
    let is_refused = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        argument == refused || !refused.starts_with("--") && refused.len() > 1 && argument.starts_with(refused)
    };
    arguments.iter().skip(1).position(is_refused).map(|position| position + 1)
}

/// The sentence for `--load cpu,cache`.
fn several_loads(option: &str, value: &str) -> Option<String> {
    let option = option.split(' ').next().filter(|option| ["--load", "--far-load"].contains(option))?;
    let loads: Vec<&str> = value.split(',').collect();
    let is_list = loads.len() > 1 && loads.iter().all(|load| load.parse::<LoadSpec>().is_ok());
    let repeated: Vec<String> = loads.iter().map(|load| format!("{option} {load}")).collect();
    is_list.then(|| format!("{option} takes one load: write {} (got {value})", repeated.join(" ")))
}

/// The sentence for an option of `measure threads` that needs --threads.
fn without_threads(arguments: &[OsString]) -> Option<String> {
    let is_given = |option: &str| {
        arguments.iter().any(|argument| {
            let argument = argument.to_string_lossy();
            argument.split('=').next() == Some(option)
        })
    };
    let remedy = match ["--cpus", "--policy", "--period"].into_iter().find(|option| is_given(option))? {
        "--cpus" => {
            "--cpus needs --threads N or --matrix: add one, or give each thread a CPU, e.g. --thread base=25us,cpu=2"
        }
        "--policy" => {
            "--policy needs --threads N: add it, or give each thread a policy, e.g. --thread base=25us,policy=fifo:80"
        }
        _ => "--period needs --threads N: add it, or give each thread a period, e.g. --thread base=25us",
    };
    Some(remedy.to_owned())
}

/// The remedy for this mistake. It follows the sentence of clap.
fn instead(error: &Error, arguments: &[OsString]) -> Option<String> {
    let refused = context(error, ContextKind::InvalidArg);
    let word = context(error, ContextKind::InvalidSubcommand);
    match error.kind() {
        ErrorKind::UnknownArgument => joined_value(refused, arguments)
            .or_else(|| duration(refused, arguments))
            .or_else(|| option(refused.split('=').next().unwrap_or_default(), arguments))
            // The measurement of `pair HOST`.
            .or_else(|| if path(arguments).1.has_subcommands() { command(refused, arguments) } else { None }),
        ErrorKind::InvalidSubcommand => command(word, arguments)
            .or_else(|| Some(format!("`{}` lists the commands", shell::command(&help_of(word, arguments))))),
        ErrorKind::MissingRequiredArgument => match (&*path(arguments).0.join(" "), refused) {
            ("measure udp", "<HOST[:PORT]>") => {
                Some("name the machine that runs `punctual echo`, or measure on this one with --self".to_owned())
            }
            ("measure stream", "<SIDE>") => {
                Some("write talk or listen and an interface, or measure on this machine with --self".to_owned())
            }
            _ => None,
        },
        ErrorKind::ArgumentConflict => {
            let both = [refused, context(error, ContextKind::PriorArg)];
            let are = |one: &str, other: &str| {
                both.iter().any(|text| text.starts_with(one)) && both.iter().any(|text| text.starts_with(other))
            };
            match () {
                () if are("--matrix", "--duration") => {
                    Some("use --cell-duration TIME, the time of each pair of CPUs".to_owned())
                }
                () => command(word, arguments),
            }
        }
        _ => None,
    }
}

/// The words of the help page of the command that the unknown `word` belongs to.
fn help_of(word: &str, arguments: &[OsString]) -> Vec<String> {
    let before = arguments.iter().take_while(|argument| *argument != word).cloned().collect::<Vec<_>>();
    let path = path(&before).0.into_iter().filter(|name| name != "help");
    std::iter::once("punctual".to_owned()).chain(path).chain(["--help".to_owned()]).collect()
}

/// What to write instead of `--find-buffer 64..256`: the value is optional, so the definition needs the sign.
fn joined_value(refused: &str, arguments: &[OsString]) -> Option<String> {
    let before = position(refused, arguments)?.checked_sub(1)?;
    let option = arguments[before].to_string_lossy();
    let is_joined =
        |argument: &clap::Arg| argument.get_long() == option.strip_prefix("--") && argument.is_require_equals_set();
    let (_, command) = path(arguments);
    let is_value = !refused.starts_with('-') && command.get_arguments().any(is_joined);
    is_value.then(|| format!("use {option}={refused}"))
}

/// The option for a duration without one, as in `measure timer 10s`.
fn duration(refused: &str, arguments: &[OsString]) -> Option<String> {
    analysis::duration::parse_ns(refused).ok()?;
    let (_, command) = path(arguments);
    let has_duration = command.get_arguments().any(|argument| argument.get_long() == Some("duration"));
    has_duration.then(|| format!("use --duration {refused}"))
}

/// What to use instead of the option with this name.
fn option(name: &str, arguments: &[OsString]) -> Option<String> {
    let (path, command) = path(arguments);
    let is_named = |argument: &clap::Arg, name: &str| {
        argument.get_long() == Some(name) || argument.is_positional() && argument.get_id() == name
    };
    let has = |command: &Command, names: &str| {
        names.split(' ').all(|name| command.get_arguments().any(|argument| is_named(argument, name)))
    };
    let synonyms = || SYNONYMS.iter().filter(|synonym| synonym.names.contains(&name));
    if let Some(known) = synonyms().find(|known| has(&command, known.needs)) {
        return Some(known.instead.advice(&[]));
    }
    // `punctual -p 90` and `punctual measure -p 90`.
    if !matches!(path.iter().map(String::as_str).collect::<Vec<_>>()[..], [] | ["measure"]) {
        return None;
    }
    let timer = super::definition().find_subcommand(TIMER[0])?.find_subcommand(TIMER[1])?.clone();
    let known = synonyms().find(|known| has(&timer, known.needs)).map(|known| known.instead.advice(&TIMER));
    // `punctual --profile avb-class-a`.
    known.or_else(|| {
        let long = name.strip_prefix("--")?;
        timer.get_arguments().find(|argument| argument.get_long() == Some(long))?;
        let given = arguments.iter().skip(1 + path.len()).map(|word| word.to_string_lossy().into_owned());
        let words = ["punctual"].into_iter().chain(TIMER).map(str::to_owned).chain(given);
        Some(format!("use `{}`", shell::command(&words.collect::<Vec<_>>())))
    })
}

/// What to use instead of the command `word`: one of the same name below another command, one like a program of
/// another package, or `show` for a record.
fn command(word: &str, arguments: &[OsString]) -> Option<String> {
    let position = 1 + arguments.iter().skip(1).position(|argument| argument == word)?;
    let (before, after) = (arguments.get(1..position)?, arguments.get(position + 1..)?);
    let words = |of: &[OsString]| of.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let (before, mut after) = (words(before), words(after));
    let ours = super::definition();
    let visible = |command: &&Command| !command.is_hide_set();
    // The command with the most similar name.
    let similar = || {
        let (path, parent) = path(arguments.get(..position)?);
        let is_after_options = before.first().is_some_and(|first| first.starts_with('-'));
        // With arguments, such as the host of `pair`.
        let path = if is_after_options { path } else { before.clone() };
        let known = parent.get_subcommands().filter(visible).map(Command::get_name);
        let nearest = analysis::nearest(word, known.filter(|name| *name != RESTORE && *name != "help"))?.to_owned();
        Some(path.into_iter().chain([nearest]).collect())
    };
    let is_interface =
        || word.contains(|c: char| c.is_ascii_digit()) || Path::new("/sys/class/net").join(word).exists();
    let parent = || ours.get_subcommands().filter(visible).find(|parent| parent.find_subcommand(word).is_some());
    let path: Vec<String> = if let Some((_, path)) = PROGRAMS.iter().find(|(names, _)| names.contains(&word)) {
        // The options of the program are not those of the command.
        return Some(format!("use `{}`", shell::command(&[&["punctual"], *path].concat())));
    } else if let Some(record) = record_of(word) {
        after.insert(0, record);
        vec!["show".to_owned()]
    } else if ours.get_subcommands().filter(visible).any(|command| command.get_name() == word) {
        vec![word.to_owned()]
    } else if let Some((_, known)) = WORDS.iter().find(|(other, _)| *other == word) {
        vec![(*known).to_owned()]
    } else if let Some(parent) = parent() {
        vec![parent.get_name().to_owned(), word.to_owned()]
    } else if before == ["check"] && is_interface() {
        vec!["check".to_owned(), "nic".to_owned(), word.to_owned()]
    } else {
        similar()?
    };
    // Options that were written before the command; other words are a command without this one.
    let end = after.iter().position(|word| word == "--").unwrap_or(after.len());
    let is_option = |word: &&String| before.first().is_some_and(|first| first.starts_with('-')) && !word.is_empty();
    after.splice(end..end, before.iter().filter(is_option).cloned());
    let all: Vec<String> = std::iter::once("punctual".to_owned()).chain(path).chain(after).collect();
    Some(format!("use `{}`", shell::command(&all)))
}

/// The record that a word names, perhaps by its report.
fn record_of(word: &str) -> Option<String> {
    let of_report = word.strip_suffix(".punctual.html").map(|stem| format!("{stem}.punctual.json"));
    of_report.or_else(|| (word == LAST || word.ends_with(".json")).then(|| word.to_owned()))
}

/// The names of the command of this command line without that of this program, and its definition.
pub fn path(arguments: &[OsString]) -> (Vec<String>, Command) {
    let (mut path, mut command) = (Vec::new(), super::definition());
    for word in arguments.iter().skip(1).take_while(|word| *word != "--") {
        if let Some(next) = command.find_subcommand(word) {
            path.push(next.get_name().to_owned());
            command = next.clone();
        }
    }
    (path, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tip(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        instead(&super::super::definition().try_get_matches_from(&words).unwrap_err(), &words)
    }

    #[test]
    fn options_of_other_tools_give_ours() {
        let tip = |line: &str| tip(line).unwrap_or_default();
        assert_eq!(tip("punctual measure timer --priority 80"), "use --policy fifo:N");
        assert_eq!(tip("punctual measure timer -p 80"), "use --policy fifo:N");
        assert_eq!(tip("punctual measure timer --interval=1000"), "use --period TIME, such as --period 1ms");
        assert_eq!(tip("punctual measure timer -m"), "leave it out, because memory is always locked");
        assert_eq!(tip("punctual measure timer -n"), "leave it out, because clock_nanosleep is the default of --wait");
        assert_eq!(tip("punctual measure timer --nonsense"), "");
        assert_eq!(tip("punctual measure timer --aligned 10us"), "use --offset TIME");
        assert_eq!(tip("punctual measure udp host --receive-priority 9"), "use --receive-policy fifo:N");
        assert_eq!(tip("punctual lab --kernel image --cpus 2"), "use --guest-cpus N");
        assert_eq!(tip("punctual measure stream listen eth0 --stream 12"), "use --stream-id ID");
        assert_eq!(tip("punctual amp play --priority 80"), "use --policy fifo:N");
        assert_eq!(tip("punctual amp play --capture hw:1"), "use --capture-device HW");
        assert_eq!(tip("punctual latency loop --playback hw:1"), "use --playback-device HW");
        assert!(tip("punctual amp play --format S16").starts_with("use --sample-format"));
        assert_eq!(tip("punctual measure process --cpu 0"), "", "it has no --cpus");
        assert_eq!(tip("punctual measure process --pid 1"), tip("punctual measure process -p 1"));
        assert!(tip("punctual measure process --pid 1").starts_with("use the ID without an option"));
        assert_eq!(tip("punctual measure threads -t 4"), "use --threads N, such as --threads 4");
        assert_eq!(tip("punctual measure timer -t 4"), "use --cpus LIST, because each CPU has a thread");
        for (line, options) in [
            ("measure timer -c 1", &["--cpus", "--clock"][..]),
            ("measure noise -c 1", &["--cpus"]),
            ("measure audio -c 1", &["--cpu", "--clock"]),
            ("measure udp host -c 1", &["--cpu"]),
            ("measure timer -d 5s", &["--duration", "--offset"]),
            ("measure noise -d 5s", &["--duration"]),
            ("measure timer -P f:95", &["--policy"]),
            ("measure timer -T 50", &["--stop-on"]),
            ("measure noise -T 5", &["--threshold"]),
            ("measure udp host --mps=1000", &["--period"]),
            ("measure udp host --msg-size 64", &["--size"]),
            ("measure udp host --port 5000", &["HOST:PORT"]),
            ("pair host udp --port 5000", &["--to", "HOST:PORT"]),
            ("echo --port 5000", &["--bind"]),
        ] {
            let tip = tip(&format!("punctual {line}"));
            let named: Vec<&str> =
                tip.split([' ', ',']).filter(|word| word.contains("--") || *word == "HOST:PORT").collect();
            assert!(!named.is_empty() && named.iter().all(|word| options.contains(word)), "{line}: {tip}");
        }
        assert_eq!(tip("punctual measure audio --find-buffer 64..256"), "use --find-buffer=64..256");
        assert_eq!(tip("punctual profiles -m"), "");
        let matrix = tip("punctual measure threads --matrix --duration 5s");
        assert!(matrix.starts_with("use --cell-duration"), "{matrix}");
    }

    #[test]
    fn options_of_a_measurement_name_it() {
        let tip = |line: &str| tip(line).unwrap_or_default();
        for line in ["punctual -p 90", "punctual -p90", "punctual measure --prio=90"] {
            assert_eq!(tip(line), "use punctual measure timer --policy fifo:N", "{line}");
        }
        assert_eq!(tip("punctual -i200"), "use punctual measure timer --period TIME, such as --period 1ms");
        assert_eq!(tip("punctual -D 1m"), "use --duration TIME, such as --duration 1m");
        assert_eq!(tip("punctual -a"), "use --cpus LIST, such as --cpus 0,2-3");
        assert_eq!(tip("punctual -t"), "use --cpus LIST, because each CPU has a thread");
        for (line, reason) in [
            ("punctual -m", "memory is always locked"),
            ("punctual -n", "clock_nanosleep is the default of --wait"),
            ("punctual -S", "each online CPU is measured"),
        ] {
            assert_eq!(tip(line), format!("leave it out, because {reason}"));
        }
    }

    #[test]
    fn commands_have_their_parent_and_records_are_shown() {
        for (line, command) in [
            ("timer --duration 5s", "measure timer --duration 5s"),
            ("--json timer", "measure timer --json"),
            ("--json process -- sleep 1", "measure process --json -- sleep 1"),
            ("--duration 5s measure timer", "measure timer --duration 5s"),
            ("noise", "measure noise"),
            ("nic eth0", "check nic eth0"),
            ("cyclictest -p 90", "measure timer"),
            ("measure cyclictest", "measure timer"),
            ("oslat", "measure noise"),
            ("measure nic eth0", "check nic eth0"),
            ("--full LAST", "show LAST --full"),
            ("LAST", "show LAST"),
            ("a.punctual.json --full", "show a.punctual.json --full"),
            ("a.punctual.html --full", "show a.punctual.json --full"),
            ("pair board-b upd", "pair board-b udp"),
            ("report", "show"),
            ("report a.punctual.json", "show a.punctual.json"),
            ("mesure timer", "measure timer"),
            ("measure timr --json", "measure timer --json"),
            ("check eth0", "check nic eth0"),
            ("check lo --json", "check nic lo --json"),
        ] {
            assert_eq!(tip(&format!("punctual {line}")), Some(format!("use `punctual {command}`")), "{line}");
        }
        for (line, page) in
            [("nonsense", ""), ("restor", ""), ("measure nonsense", "measure "), ("check other", "check ")]
        {
            let expected = format!("`punctual {page}--help` lists the commands");
            assert_eq!(tip(&format!("punctual {line}")), Some(expected), "{line}");
        }
    }

    #[test]
    fn some_mistakes_are_described_without_clap() {
        for (line, expected) in [
            (
                "measure process ls -l /tmp",
                "`ls` is not a process ID: start the program with `punctual measure process -- ls -l /tmp`, or give the ID \
                 of a running one",
            ),
            (
                "measure process --period 1ms ls --size",
                "`ls` is not a process ID: start the program with `punctual measure process -- ls --size`, or give the ID \
                 of a running one",
            ),
            ("measure timer --duration -5s", "--duration must not be negative: write e.g. --duration 5s (got -5s)"),
            ("compare --least -5 a b", "--least must not be negative: write e.g. --least 20% (got -5)"),
            ("compare --least -30 a b", "--least must not be negative: write e.g. --least 30 (got -30)"),
            ("measure timer --load cpu,cache", "--load takes one load: write --load cpu --load cache (got cpu,cache)"),
            (
                "measure threads --cpus 1",
                "--cpus needs --threads N or --matrix: add one, or give each thread a CPU, e.g. --thread base=25us,cpu=2",
            ),
            (
                "measure threads --policy fifo:80",
                "--policy needs --threads N: add it, or give each thread a policy, e.g. --thread base=25us,policy=fifo:80",
            ),
        ] {
            let words: Vec<OsString> = format!("punctual {line}").split(' ').map(OsString::from).collect();
            let error = super::super::definition().try_get_matches_from(&words).unwrap_err();
            assert_eq!(sentence(&error, &words).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn measurements_without_another_machine_name_self() {
        for line in ["measure udp", "measure udp --period 1ms", "measure stream"] {
            assert!(tip(&format!("punctual {line}")).unwrap().contains("--self"), "{line}");
        }
        assert_eq!(tip("punctual measure stream talk"), None);
    }
}
