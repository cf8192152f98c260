//! Names that shell completions offer: profiles, loads, references and built-in campaigns.

use clap::{Arg, Command, builder::PossibleValuesParser};

use crate::last::LAST;

/// Names that an option accepts.
struct Names {
    /// Names of options, and `COMMAND ID` of the arguments of commands.
    of: &'static [&'static str],
    /// Their values, among others.
    values: fn() -> Vec<String>,
    /// True if a file is a value, too.
    or_file: bool,
}

const ALL: [Names; 6] = [
    Names { of: &["--profile", "profiles name"], values: profiles, or_file: true },
    Names { of: &["--load", "--far-load", "loads name"], values: loads, or_file: false },
    Names { of: &["--against", "--versus", "compare a"], values: references_and_last, or_file: true },
    Names { of: &["references name"], values: references, or_file: false },
    Names { of: &["run campaign", "validate files", "campaigns name"], values: campaigns, or_file: true },
    Names { of: &["--policy", "--far-policy"], values: policies, or_file: false },
];

fn profiles() -> Vec<String> {
    analysis::profiles().iter().map(|profile| profile.name.clone()).collect()
}

fn loads() -> Vec<String> {
    loads::KINDS.iter().map(|kind| kind.name.to_owned()).collect()
}

fn references() -> Vec<String> {
    analysis::references().iter().filter_map(|record| Some(record.published.as_ref()?.name.clone())).collect()
}

fn references_and_last() -> Vec<String> {
    references().into_iter().chain([LAST.to_owned()]).collect()
}

fn campaigns() -> Vec<String> {
    campaign::builtin::FILES.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// The priority is the usual one; others are accepted, too.
fn policies() -> Vec<String> {
    ["fifo:90", "rr:90", "other"].map(str::to_owned).into()
}

/// The names that `argument` of the command called `command` accepts.
fn names_of(command: &str, argument: &Arg) -> Option<&'static Names> {
    let called = match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => format!("{command} {}", argument.get_id()),
    };
    ALL.iter().find(|names| names.of.contains(&called.as_str()))
}

/// The definition for the completions of bash, which offer names and files, or of another shell, which offer only one of
/// both.
pub fn with_names(command: Command, is_bash: bool) -> Command {
    let name = command.get_name().to_owned();
    let offered = |argument: Arg| match names_of(&name, &argument).filter(|names| is_bash || !names.or_file) {
        Some(names) => argument.value_parser(PossibleValuesParser::new((names.values)())),
        None => argument,
    };
    command.mut_args(offered).mut_subcommands(|subcommand| with_names(subcommand, is_bash))
}

/// Adds files to the names in a script for bash, where a file is accepted, too.
pub fn with_files(script: &str) -> String {
    let mut script = script.to_owned();
    for names in ALL.iter().filter(|names| names.or_file) {
        let words = format!("-W \"{}\" --", (names.values)().join(" "));
        script = script.replace(&words, &format!("-f {words}"));
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &Command, path: &[&str], argument: &str) -> Vec<String> {
        let command = path.iter().fold(command, |command, name| command.find_subcommand(name).expect("a command"));
        let argument = command.get_arguments().find(|known| known.get_id() == argument).expect("an argument");
        argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
    }

    #[test]
    fn options_and_arguments_with_known_names_offer_them() {
        let bash = with_names(crate::cli::definition(), true);
        let offers = |path: &[&str], argument: &str, name: &str| {
            let names = of(&bash, path, argument);
            assert!(names.iter().any(|known| known == name), "{path:?} {argument}: {names:?}");
        };
        for probe in ["timer", "threads", "udp", "ping", "round-trip", "stream", "audio"] {
            offers(&["measure", probe], "profiles", "avb-class-a");
            offers(&["measure", probe], "loads", "cpu");
            offers(&["measure", probe], "against", "LAST");
        }
        offers(&["run"], "campaign", "cnc-matrix");
        offers(&["campaigns"], "name", "cnc-matrix");
        offers(&["profiles"], "name", "avb-class-a");
        let others = with_names(crate::cli::definition(), false);
        assert!(of(&others, &["measure", "timer"], "profiles").is_empty(), "these shells complete a file");
        assert!(!of(&others, &["measure", "timer"], "loads").is_empty());
    }

    #[test]
    fn a_script_for_bash_also_offers_files() {
        let words = profiles().join(" ");
        let script = with_files(&format!("compgen -W \"{words}\" -- x; compgen -W \"a b\" -- x"));
        assert!(script.starts_with("compgen -f -W ") && script.ends_with("compgen -W \"a b\" -- x"), "{script}");
    }
}
