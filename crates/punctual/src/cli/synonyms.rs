//! Options of other tools and of earlier versions, with their names here.

use std::ffi::OsString;

use clap::{
    Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// An option of other tools or earlier versions.
struct Synonym {
    names: &'static [&'static str],
    /// The option that a command must have, without dashes, for the advice to be right.
    needs: &'static str,
    instead: &'static str,
}

const fn synonym(names: &'static [&'static str], needs: &'static str, instead: &'static str) -> Synonym {
    Synonym { names, needs, instead }
}

const SYNONYMS: [Synonym; 19] = [
    synonym(&["-p", "--prio", "--priority"], "policy", "--policy fifo:N"),
    synonym(&["-i", "--interval"], "period", "--period TIME, such as --period 1ms"),
    synonym(&["-a", "--affinity", "--cpu"], "cpus", "--cpus LIST, such as --cpus 0,2-3"),
    synonym(&["-l", "--loops"], "samples", "--samples N"),
    synonym(&["-D"], "duration", "--duration TIME, such as --duration 1m"),
    synonym(&["-b", "--breaktrace"], "stop-on", "--stop-on TIME, such as --stop-on 200us"),
    synonym(&["-m", "--mlockall"], "policy", "nothing: memory is always locked"),
    synonym(&["-t", "--threads"], "cpus", "--cpus LIST: each CPU has a thread"),
    synonym(&["-S", "--smp"], "cpus", "nothing: each online CPU is measured"),
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

/// What to use instead of the option that this command line was refused for; `None` if nothing is known about it, or the
/// command has no such option.
pub fn instead(error: &Error, arguments: impl IntoIterator<Item = OsString>) -> Option<&'static str> {
    let argument = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        _ => "",
    };
    let refused = argument(ContextKind::InvalidArg);
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let name = refused.split('=').next().unwrap_or_default();
            let known = SYNONYMS.iter().find(|synonym| synonym.names.contains(&name))?;
            has_option(arguments, known.needs).then_some(known.instead)
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

/// True if the command of this command line has the option, whose name is given without dashes.
fn has_option(arguments: impl IntoIterator<Item = OsString>, option: &str) -> bool {
    let mut command = super::definition();
    for word in arguments.into_iter().skip(1).take_while(|word| word != "--") {
        if let Some(next) = command.find_subcommand(&word) {
            command = next.clone();
        }
    }
    command.get_arguments().any(|argument| argument.get_long() == Some(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_tools_give_ours() {
        let tip = |line: &str| {
            let error = super::super::definition().try_get_matches_from(line.split(' ')).unwrap_err();
            instead(&error, line.split(' ').map(OsString::from))
        };
        assert_eq!(tip("punctual measure timer --priority 80"), Some("--policy fifo:N"));
        assert_eq!(tip("punctual measure timer -p 80"), Some("--policy fifo:N"));
        assert_eq!(tip("punctual measure timer --interval=1000"), Some("--period TIME, such as --period 1ms"));
        assert_eq!(tip("punctual measure timer --nonsense"), None);
        assert_eq!(tip("punctual measure timer --aligned 10us"), Some("--offset TIME"));
        assert_eq!(tip("punctual measure udp host --receive-priority 9"), Some("--receive-policy fifo:N"));
        assert_eq!(tip("punctual lab --kernel image --cpus 2"), Some("--guest-cpus N"));
        assert_eq!(tip("punctual capture talk.pcap --stream 12"), Some("--stream-id ID"));
        assert_eq!(tip("punctual amp play --priority 80"), Some("--policy fifo:N"));
        assert_eq!(tip("punctual amp play --capture hw:1"), Some("--capture-device HW"));
        assert_eq!(tip("punctual latency loop --playback hw:1"), Some("--playback-device HW"));
        assert!(tip("punctual amp play --format S16").unwrap().starts_with("--sample-format"));
        assert_eq!(tip("punctual measure process --cpu 0"), None, "it has no --cpus");
        assert_eq!(tip("punctual profiles -m"), None);
        let matrix = tip("punctual measure threads --matrix --duration 5s").unwrap();
        assert!(matrix.starts_with("--cell-duration"), "{matrix}");
    }
}
