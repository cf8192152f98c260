//! Options of other tools and of earlier versions, with their names here.

use clap::{
    Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// An option that this command does not have, and what to use instead.
const SYNONYMS: [(&[&str], &str); 12] = [
    (&["-p", "--prio", "--priority"], "--policy fifo:N"),
    (&["-i", "--interval"], "--period TIME, such as --period 1ms"),
    (&["-a", "--affinity", "--cpu"], "--cpus LIST, such as --cpus 0,2-3"),
    (&["-l", "--loops"], "--samples N"),
    (&["-D"], "--duration TIME, such as --duration 1m"),
    (&["-b", "--breaktrace"], "--stop-on TIME, such as --stop-on 200us"),
    (&["-m", "--mlockall"], "nothing: memory is always locked"),
    (&["-t", "--threads"], "--cpus LIST: each CPU has a thread"),
    (&["-S", "--smp"], "nothing: each online CPU is measured"),
    (&["--output", "-o"], "--record FILE or --export FILE"),
    (&["-H", "--histogram", "--histofall"], "--export FILE.csv or --export FILE.hgrm"),
    (&["--json-file"], "--export FILE.json"),
];

/// What to use instead of the refused option; `None` if nothing is known about it.
pub fn instead(error: &Error) -> Option<&'static str> {
    let argument = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        _ => "",
    };
    let refused = argument(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let name = refused.split('=').next().unwrap_or_default();
            let known = SYNONYMS.iter().find(|(names, _)| names.contains(&name));
            known.map(|(_, instead)| *instead)
        }
        ErrorKind::ArgumentConflict => {
            let both = [refused, argument(ContextKind::PriorArg)];
            let are = |one: &str, other: &str| {
                both.iter().any(|text| text.starts_with(one)) && both.iter().any(|text| text.starts_with(other))
            };
            are("--matrix", "--duration").then_some("--cell-duration TIME, the time of each pair of CPUs")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_tools_give_ours() {
        let tip = |line: &str| {
            let error = super::super::definition().try_get_matches_from(line.split(' ')).unwrap_err();
            instead(&error)
        };
        assert_eq!(tip("punctual measure timer --priority 80"), Some("--policy fifo:N"));
        assert_eq!(tip("punctual measure timer -p 80"), Some("--policy fifo:N"));
        assert_eq!(tip("punctual measure timer --interval=1000"), Some("--period TIME, such as --period 1ms"));
        assert_eq!(tip("punctual measure timer --nonsense"), None);
        let matrix = tip("punctual measure threads --matrix --duration 5s").unwrap();
        assert!(matrix.starts_with("--cell-duration"), "{matrix}");
    }
}
