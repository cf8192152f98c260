//! Options and commands of other tools and of earlier versions, with their names here.

use std::ffi::OsString;

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use record::shell;

use crate::last::LAST;

/// An option of other tools or earlier versions.
struct Synonym {
    names: &'static [&'static str],
    /// The option that a command must have, without dashes, for the advice to be right.
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

const SYNONYMS: [Synonym; 20] = [
    synonym(&["-p", "--prio", "--priority"], "policy", "--policy fifo:N"),
    synonym(&["-i", "--interval"], "period", "--period TIME, such as --period 1ms"),
    synonym(&["-a", "--affinity", "--cpu"], "cpus", "--cpus LIST, such as --cpus 0,2-3"),
    synonym(&["-l", "--loops"], "samples", "--samples N"),
    synonym(&["-D"], "duration", "--duration TIME, such as --duration 1m"),
    synonym(&["-b", "--breaktrace"], "stop-on", "--stop-on TIME, such as --stop-on 200us"),
    needless(&["-m", "--mlockall"], "policy", "memory is always locked"),
    needless(&["-n", "--nanosleep"], "wait", "clock_nanosleep is the default of --wait"),
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
];

/// A program of other packages, and the measurement like it.
const PROGRAMS: [(&[&str], &[&str]); 4] = [
    (&["cyclictest", "rtla", "latency-test"], &["measure", "timer"]),
    (&["timerlat"], &["measure", "timer", "--timerlat"]),
    (&["oslat", "osnoise", "hwlatdetect", "sysjitter", "jitterdebugger"], &["measure", "noise"]),
    (&["hackbench", "stress-ng"], &["loads"]),
];

/// The command whose options are those of cyclictest.
const TIMER: [&str; 2] = ["measure", "timer"];

/// What to write instead of this command line, which was refused; `None` if nothing is known about the mistake.
/// `arguments` begin with the name of this program.
pub fn instead(error: &Error, arguments: &[OsString]) -> Option<String> {
    let argument = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        _ => "",
    };
    let refused = argument(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => option(refused.split('=').next().unwrap_or_default(), arguments),
        ErrorKind::InvalidSubcommand => command(argument(ContextKind::InvalidSubcommand), arguments),
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
            let both = [refused, argument(ContextKind::PriorArg)];
            let are = |one: &str, other: &str| {
                both.iter().any(|text| text.starts_with(one)) && both.iter().any(|text| text.starts_with(other))
            };
            let is_matrix = are("--matrix", "--duration");
            let matrix = || "use --cell-duration TIME, the time of each pair of CPUs".to_owned();
            is_matrix.then(matrix).or_else(|| command(argument(ContextKind::InvalidSubcommand), arguments))
        }
        _ => None,
    }
}

/// What to use instead of the option with this name.
fn option(name: &str, arguments: &[OsString]) -> Option<String> {
    let (path, command) = path(arguments);
    let has =
        |command: &Command, option: &str| command.get_arguments().any(|argument| argument.get_long() == Some(option));
    let synonyms = || SYNONYMS.iter().filter(|synonym| synonym.names.contains(&name));
    if let Some(known) = synonyms().find(|known| has(&command, known.needs)) {
        return Some(known.instead.advice(&[]));
    }
    // `punctual -p 90` and `punctual measure -p 90`.
    if !matches!(path.iter().map(String::as_str).collect::<Vec<_>>()[..], [] | ["measure"]) {
        return None;
    }
    let timer = super::definition().find_subcommand(TIMER[0])?.find_subcommand(TIMER[1])?.clone();
    synonyms().find(|known| has(&timer, known.needs)).map(|known| known.instead.advice(&TIMER))
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
    let parent = || ours.get_subcommands().filter(visible).find(|parent| parent.find_subcommand(word).is_some());
    let path: Vec<&str> = if let Some((_, path)) = PROGRAMS.iter().find(|(names, _)| names.contains(&word)) {
        // The options of the program are not those of the command.
        return Some(format!("use `{}`", shell::command(&[&["punctual"], *path].concat())));
    } else if word == LAST || word.ends_with(".json") {
        vec!["show"]
    } else if ours.get_subcommands().filter(visible).any(|command| command.get_name() == word) {
        vec![word]
    } else {
        vec![parent()?.get_name(), word]
    };
    let is_record = path == ["show"] && word != "show";
    after.splice(..0, is_record.then(|| word.to_owned()));
    // Options that were written before the command; other words are a command without this one.
    let end = after.iter().position(|word| word == "--").unwrap_or(after.len());
    let is_option = |word: &&String| before.first().is_some_and(|first| first.starts_with('-')) && !word.is_empty();
    after.splice(end..end, before.iter().filter(is_option).cloned());
    let path = path.into_iter().map(str::to_owned);
    let all: Vec<String> = std::iter::once("punctual".to_owned()).chain(path).chain(after).collect();
    Some(format!("use `{}`", shell::command(&all)))
}

/// The names of the command of this command line without that of this program, and its definition.
fn path(arguments: &[OsString]) -> (Vec<String>, Command) {
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
        assert_eq!(tip("punctual capture talk.pcap --stream 12"), "use --stream-id ID");
        assert_eq!(tip("punctual amp play --priority 80"), "use --policy fifo:N");
        assert_eq!(tip("punctual amp play --capture hw:1"), "use --capture-device HW");
        assert_eq!(tip("punctual latency loop --playback hw:1"), "use --playback-device HW");
        assert!(tip("punctual amp play --format S16").starts_with("use --sample-format"));
        assert_eq!(tip("punctual measure process --cpu 0"), "", "it has no --cpus");
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
        ] {
            assert_eq!(tip(&format!("punctual {line}")), Some(format!("use `punctual {command}`")), "{line}");
        }
        assert_eq!(tip("punctual nonsense"), None);
    }

    #[test]
    fn measurements_without_another_machine_name_self() {
        for line in ["measure udp", "measure udp --period 1ms", "measure stream"] {
            assert!(tip(&format!("punctual {line}")).unwrap().contains("--self"), "{line}");
        }
        assert_eq!(tip("punctual measure stream talk"), None);
    }
}
