//! One sentence for each mistake in the command line: what is wrong, and what to write instead.

use std::{
    error::Error as _,
    ffi::OsString,
    num::{IntErrorKind, ParseIntError},
};

use clap::{
    Arg, Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use record::shell;

use super::{
    help::examples,
    synonyms::{self, context, first_paragraph, path},
};

/// The mistake of this command line, which was refused, and what to write instead. `arguments` begin with the name of
/// this program.
pub fn sentence(error: &Error, arguments: &[OsString]) -> String {
    synonyms::sentence(error, arguments).unwrap_or_else(|| general(error, arguments))
}

/// The sentence of a mistake about which only its kind is known.
fn general(error: &Error, arguments: &[OsString]) -> String {
    let (refused, value) = (context(error, ContextKind::InvalidArg), context(error, ContextKind::InvalidValue));
    match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if value.is_empty() => without_value(error, arguments),
        ErrorKind::InvalidValue => {
            let is_option = refused.starts_with('-');
            let (words, command) = path(arguments);
            let example = if is_option { String::new() } else { example(&words, &command) };
            format!("{} must be {} (got {value}){example}", name(refused), choice(&all(error, ContextKind::ValidValue)))
        }
        ErrorKind::ValueValidation => number(error).unwrap_or_else(|| in_one_line(error)),
        ErrorKind::TooManyValues => format!("{0} takes no value: write {0} (got {value})", name(refused)),
        ErrorKind::ArgumentConflict if is_repeated(error) && name(refused) == "--versus" => {
            "`compare` has two sides: write `--` only once; --across CONDITION compares more".to_owned()
        }
        ErrorKind::ArgumentConflict if is_repeated(error) => {
            format!("{} can be given only once: leave the others out", name(refused))
        }
        ErrorKind::ArgumentConflict => {
            let others = all(error, ContextKind::PriorArg);
            let others: Vec<&str> = others.iter().map(|other| name(other)).collect();
            match others[..] {
                // A word in the place of a command.
                [other] if refused.is_empty() => format!("{other} is used without a further word: leave one out"),
                [other] => format!("{} cannot be used with {other}: leave one out", name(refused)),
                _ => format!("{} cannot be used with {}: leave it out", name(refused), listed(&others, "and")),
            }
        }
        ErrorKind::MissingRequiredArgument => without_argument(error, arguments),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let (words, command) = path(arguments);
            let known = command.get_subcommands().filter(|known| !known.is_hide_set()).map(Command::get_name);
            let known: Vec<&str> = known.filter(|name| *name != "help").collect();
            format!("{} needs a command, {}{}", quoted(&words), choice(&known), example(&words, &command))
        }
        ErrorKind::UnknownArgument => {
            let (_, command) = path(arguments);
            let options = || command.get_arguments().filter(|of| !of.is_hide_set()).filter_map(Arg::get_long);
            let known = refused.strip_prefix("--").and_then(|long| analysis::nearest(long, options()));
            let remedy = known.map_or_else(|| accepted(arguments), |known| format!("use --{known}"));
            format!("{}: {remedy}", in_one_line(error))
        }
        _ => format!("{}: {}", in_one_line(error), accepted(arguments)),
    }
}

/// The words of clap in one line.
fn in_one_line(error: &Error) -> String {
    first_paragraph(error).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The texts of an error.
fn all(error: &Error, kind: ContextKind) -> Vec<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text],
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The name of an argument without its value: `--color` of `--color <WHEN>`, `RECORD` of `[RECORD]`.
fn name(argument: &str) -> &str {
    if argument.starts_with('-') {
        argument.split([' ', '=', '[']).next().unwrap_or_default()
    } else {
        let argument = argument.trim_end_matches('.');
        let inner = |open, close| argument.strip_prefix(open)?.strip_suffix(close);
        inner('<', '>').or_else(|| inner('[', ']')).unwrap_or(argument)
    }
}

/// `a, b or c`.
fn choice(texts: &[&str]) -> String {
    listed(texts, "or")
}

fn listed(texts: &[&str], last: &str) -> String {
    match texts {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// The command of these words in quotes.
fn quoted(words: &[String]) -> String {
    let all: Vec<&str> = std::iter::once("punctual").chain(words.iter().map(String::as_str)).collect();
    format!("`{}`", shell::command(&all))
}

/// The page that lists the options of a command.
fn accepted(arguments: &[OsString]) -> String {
    let words = path(arguments).0.into_iter().filter(|word| word != "help");
    format!("{} lists its options", quoted(&words.chain(["--help".to_owned()]).collect::<Vec<_>>()))
}

/// The first example of a command that begins with its words, as the end of a sentence.
fn example(words: &[String], command: &Command) -> String {
    let whole = [&["punctual".to_owned()], words].concat().join(" ");
    let known = examples(command).into_iter().find(|line| line.contains(&whole));
    known.map_or_else(String::new, |line| format!(": write e.g. `{line}`"))
}

/// The sentence of an argument without its value.
fn without_value(error: &Error, arguments: &[OsString]) -> String {
    let option = name(context(error, ContextKind::InvalidArg));
    let valid = all(error, ContextKind::ValidValue);
    if !valid.is_empty() {
        return format!("{option} needs a value: {}", choice(&valid));
    }
    let (_, command) = path(arguments);
    let is_this = |argument: &&Arg| argument.get_long() == option.strip_prefix("--");
    let default = command.get_arguments().find(is_this).and_then(|argument| argument.get_default_values().first());
    let default = default.map(|value| value.to_string_lossy().into_owned());
    let remedy = match default.or_else(|| value_in_examples(option, &command)) {
        Some(value) => format!("write e.g. {option} {value}"),
        None => accepted(arguments),
    };
    let list = if option == "--profile" { "; `punctual profiles` lists them" } else { "" };
    format!("{option} needs a value: {remedy}{list}")
}

/// The value of this option in an example of the command, or of another one.
fn value_in_examples(option: &str, command: &Command) -> Option<String> {
    fn of_all(command: &Command) -> Vec<String> {
        let below = command.get_subcommands().filter(|below| !below.is_hide_set()).flat_map(of_all);
        examples(command).into_iter().chain(below).collect()
    }
    let program = super::definition();
    examples(command).into_iter().chain(of_all(&program)).find_map(|line| {
        let mut words = line.split(' ').skip_while(|word| *word != option);
        words.nth(1).map(str::to_owned)
    })
}

/// The sentence of an invalid number, or of one outside its range.
fn number(error: &Error) -> Option<String> {
    let (refused, value) = (context(error, ContextKind::InvalidArg), context(error, ContextKind::InvalidValue));
    let source = error.source()?;
    if let Some(number) = source.downcast_ref::<ParseIntError>() {
        let fault = match number.kind() {
            IntErrorKind::PosOverflow => "is too large",
            _ => "must be a whole number",
        };
        return Some(format!("{} {fault} (got {value})", name(refused)));
    }
    let source = source.to_string();
    let (least, most) = source.strip_prefix(value)?.strip_prefix(" is not in ")?.split_once("..")?;
    let range = match most.strip_prefix('=').unwrap_or(most) {
        "" => format!("at least {least}"),
        most => format!("{least} to {most}"),
    };
    Some(format!("{} must be {range} (got {value})", name(refused)))
}

/// True if an argument was given twice.
fn is_repeated(error: &Error) -> bool {
    let others = all(error, ContextKind::PriorArg);
    others.is_empty() || others == [context(error, ContextKind::InvalidArg)]
}

/// The sentence of a command, or of an option, that needs other arguments.
fn without_argument(error: &Error, arguments: &[OsString]) -> String {
    let missing = all(error, ContextKind::InvalidArg);
    let names: Vec<&str> = missing.iter().map(|argument| name(argument)).collect();
    let list = listed(&names, "and");
    if let Some(option) = needing(&missing, arguments) {
        let them = if missing.len() == 1 { "it" } else { "them" };
        return format!("{option} needs {list}: add {them}, or leave {option} out");
    }
    let (words, command) = path(arguments);
    // Arguments that are given, e.g. the side of a stream, precede the missing ones.
    let given = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    let given: Vec<String> = given.take_while(|word| !word.starts_with('-')).collect();
    let end = match example(&given, &command) {
        none if none.is_empty() => example(&words, &command),
        some => some,
    };
    let end = if end.is_empty() { format!(": {}", accepted(arguments)) } else { end };
    format!("{} needs {list}{end}", quoted(&given))
}

/// The option that needs the missing arguments.
fn needing(missing: &[&str], arguments: &[OsString]) -> Option<String> {
    let is_option = |word: &OsString| word.to_string_lossy().starts_with("--");
    let (_, command) = path(arguments);
    let takes_value = |option: &str| {
        let long = option.strip_prefix("--");
        let known = command.get_arguments().find(|argument| argument.get_long() == long);
        known.is_some_and(|argument| argument.get_action().takes_values())
    };
    // The error without this option.
    let without = |at: usize| {
        let option = arguments[at].to_string_lossy();
        let count = if takes_value(&option) { 2 } else { 1 };
        let rest = arguments.iter().enumerate().filter(|(index, _)| !(at..at + count).contains(index));
        let rest: Vec<&OsString> = rest.map(|(_, word)| word).collect();
        super::definition().try_get_matches_from(rest).err()
    };
    let is_other = |error: &Error| {
        error.kind() == ErrorKind::MissingRequiredArgument && all(error, ContextKind::InvalidArg) != missing
    };
    let options = || (1..arguments.len()).filter(|&at| is_option(&arguments[at]));
    // Without another option, more may be missing.
    let needing = options().find(|&at| without(at).is_none());
    let needing = needing.or_else(|| options().find(|&at| without(at).is_some_and(|error| is_other(&error))))?;
    arguments[needing].to_string_lossy().split('=').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_mistake_is_one_sentence_with_a_remedy() {
        for (line, expected) in [
            (
                "measure stream talk",
                "`punctual measure stream talk` needs IF: write e.g. `sudo punctual measure stream talk eth0 --cpu 3 \
                 --wakeup-offset 8us`",
            ),
            (
                "measure stream talk --duration 1s",
                "`punctual measure stream talk` needs IF: write e.g. `sudo punctual measure stream talk eth0 --cpu 3 \
                 --wakeup-offset 8us`",
            ),
            ("check nic", "`punctual check nic` needs IF: write e.g. `punctual check nic eth0`"),
            (
                "amp render",
                "`punctual amp render` needs INPUT and OUTPUT: write e.g. `punctual amp render dry.wav wet.wav --model \
                 deluxe.nam --cab 4x12.wav`",
            ),
            (
                "measure timer --profile",
                "--profile needs a value: write e.g. --profile avb-class-a; `punctual profiles` lists them",
            ),
            ("measure timer --policy=", "--policy needs a value: write e.g. --policy fifo:90"),
            (
                "measure timer --policy fifo",
                "invalid value 'fifo' for '--policy <POLICY>': `fifo` needs a priority of 1 to 99, e.g. fifo:90",
            ),
            ("measure timer --stop-on", "--stop-on needs a value: `punctual measure timer --help` lists its options"),
            ("measure timer --color red", "--color must be auto, always or never (got red)"),
            ("measure timer --color", "--color needs a value: auto, always or never"),
            (
                "generate schema foo",
                "OF must be run, campaign, proof, compare or across (got foo): write e.g. `punctual generate schema run`",
            ),
            (
                "measure stream eth0",
                "SIDE must be talk or listen (got eth0): write e.g. `sudo punctual measure stream talk eth0 --cpu 3 --wakeup-offset 8us`",
            ),
            (
                "measure timer --duration 2s --until-decided",
                "--until-decided needs --profile: add it, or leave --until-decided out",
            ),
            ("measure timer 10s", "unexpected argument '10s' found: use --duration 10s"),
            (
                "measure threads --base 25us",
                "unexpected argument '--base' found: use --thread NAME=PERIOD,cpu=CPU, such as --thread base=25us,cpu=2",
            ),
            (
                "measure stream --listen",
                "unexpected argument '--listen' found: use listen and an interface, such as `punctual measure stream \
                 listen eth0`",
            ),
            (
                "--profile avb-class-a --load cpu",
                "unexpected argument '--load' found: use `punctual measure timer --profile avb-class-a --load cpu`",
            ),
            ("measure timer --samples x", "--samples must be a whole number (got x)"),
            ("measure timer --samples 99999999999999999999", "--samples is too large (got 99999999999999999999)"),
            ("measure stream talk lo --queue 99999", "--queue must be 0 to 4095 (got 99999)"),
            ("measure timer --full=yes", "--full takes no value: write --full (got yes)"),
            ("measure timer --period 1ms --period 2ms", "--period can be given only once: leave the others out"),
            ("check --root /m extra", "--root is used without a further word: leave one out"),
            ("measure stream talk lo --self", "SIDE cannot be used with --self: leave one out"),
            ("measure udp b --echo-cpu 1", "HOST[:PORT] cannot be used with --echo-cpu: leave one out"),
            (
                "measure threads --duration 1s --cell-duration 3s",
                "--duration cannot be used with --cell-duration: leave one out",
            ),
            ("measure timer --duraton 5s", "unexpected argument '--duraton' found: use --duration"),
            ("machine --record", "unexpected argument '--record' found: `punctual machine --help` lists its options"),
            (
                "pair host",
                "`punctual pair` needs a command, udp, stream or interrupt: write e.g. `punctual pair root@board-b udp --duration 1m`",
            ),
            ("check memory", "unrecognized subcommand 'memory': `punctual check --help` lists the commands"),
        ] {
            let words: Vec<OsString> = format!("punctual {line}").split(' ').map(OsString::from).collect();
            let error = super::super::definition().try_get_matches_from(&words).unwrap_err();
            assert_eq!(sentence(&error, &words), expected, "{line}");
        }
    }
}
