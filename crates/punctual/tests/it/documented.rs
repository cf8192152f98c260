//! The commands in README.md and docs/ run as printed.
//!
//! A measurement takes 50 ms here instead of its own time. Commands that need hardware, another machine or minutes are
//! listed in `NOT_RUN` with the reason; a test of the command line parses them.

#[path = "../../src/cli/documented/commands.rs"]
mod commands;

use std::{collections::BTreeMap, fs};

use self::commands::{commands, documents, is_prefix, words};
use super::harness::Scratch;

/// Commands that are not run, by their first words or by an option, each with the reason.
const NOT_RUN: [(&str, &str); 38] = [
    ("--across", "needs records of several kernels"),
    ("pair", "needs another machine"),
    ("measure udp", "needs another machine, or root for network namespaces"),
    ("measure stream", "needs an AVB network, or root for network namespaces"),
    ("measure process", "needs a program of the user"),
    ("lab", "boots a kernel, which takes a minute"),
    ("latency", "needs a sound card with a cable"),
    ("amp devices", "needs a sound card"),
    ("amp play", "needs a sound card and files of the user"),
    ("amp serve", "needs a sound card and files of the user"),
    ("amp render", "needs files of the user"),
    ("amp info", "needs files of the user"),
    ("amp bench", "needs files of the user"),
    ("capture", "needs a capture of the user"),
    ("evl gravity", "needs a kernel with the EVL core"),
    ("setup", "changes the rights of users"),
    ("restore", "changes settings of the machine"),
    ("--yes", "changes settings of the machine"),
    ("--revert", "changes settings of the machine"),
    ("run", "measures for minutes"),
    ("check nic", "needs this interface"),
    ("--root", "needs a recorded machine"),
    ("--open", "opens a browser"),
    ("--prove", "measures for minutes"),
    ("--load", "needs time until the load has proved itself"),
    ("--matrix", "measures for minutes"),
    ("--find-buffer", "measures for minutes"),
    ("--shield", "moves the work of the machine"),
    ("measure interrupt --source", "needs this source of interrupts"),
    ("judge serve", "needs a judge on a serial line"),
    ("--core", "needs a kernel with the EVL core"),
    ("--device", "needs a sound card"),
    ("--stop-on", "depends on the lateness of this machine"),
    ("--cpus", "needs these CPUs"),
    ("--thread", "needs these CPUs"),
    ("--timerlat", "needs a kernel with this tracer"),
    ("--on-spike", "needs a process to signal"),
    ("/var/lib/prometheus/node-exporter/punctual.prom", "writes into a folder of the system"),
];

const PROFILE: &str = include_str!("../../../../profiles/avb-class-a.toml");

/// The reason why a command is not run.
fn reason(words: &[String]) -> Option<&'static str> {
    rule(words).map(|index| NOT_RUN[index].1)
}

fn rule(words: &[String]) -> Option<usize> {
    let line = words.join(" ");
    let is_dry = words.iter().any(|word| word == "--dry-run");
    NOT_RUN.iter().position(|(pattern, _)| {
        let begins = line.strip_prefix(pattern).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
        let has_word = words.iter().any(|word| word == pattern || word.starts_with(&format!("{pattern}=")));
        let is_option = !pattern.starts_with(|c: char| c.is_ascii_lowercase());
        !(is_dry && *pattern == "run") && if is_option { has_word } else { begins }
    })
}

/// The arguments of each command in the blocks of the documents, with a place where it is.
fn documented() -> BTreeMap<Vec<String>, String> {
    let lines = documents().into_iter().flat_map(|path| commands(&path));
    let in_blocks = lines.filter(|command| !command.is_mention);
    let arguments = |line: &str| words(line).into_iter().skip_while(|word| is_prefix(word)).skip(1).collect();
    in_blocks.map(|command| (arguments(&command.line), command.place)).collect()
}

/// The arguments with a short time and without options that make a run last.
fn shortened(words: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--duration" | "--samples" => drop(words.next()),
            "--endless" => {}
            _ => all.push(word.clone()),
        }
    }
    let measures = all.first().is_none_or(|first| first == "measure" || first.starts_with('-'));
    if measures && !all.iter().any(|word| word == "--help" || word == "-h" || word == "--version") {
        all.extend(["--duration".to_owned(), "50ms".to_owned()]);
    }
    all
}

/// Files of other tools, by the name that documents give them.
const SAMPLES: [(&str, &str); 3] = [
    ("cyclictest.json", include_str!("../../../import/tests/samples/cyclictest-2.4.json")),
    ("cyclictest-ns.txt", include_str!("../../../import/tests/samples/cyclictest-2.4-plain.txt")),
    ("rtla-hist.txt", include_str!("../../../import/tests/samples/rtla-timerlat-hist-6.1.txt")),
];

/// Creates the files that the arguments name: records, profiles, campaigns and results of other tools. `LAST` is a copy of the first record, which
/// has spikes; the newest of the other commands may have none.
fn prepare(scratch: &Scratch, words: &[String]) {
    if words.iter().any(|word| word == "LAST") {
        fs::write(scratch.path().join("last.punctual.json"), fs::read(scratch.record_path()).unwrap()).unwrap();
    }
    for word in words {
        let path = scratch.path().join(word);
        if words[0] == "compare" && word.ends_with('/') {
            fs::create_dir_all(&path).unwrap();
            copy_as_another_run(scratch, &path.join("a.punctual.json"));
        }
        if word.ends_with(".punctual.json") && !path.exists() {
            copy_as_another_run(scratch, &path);
        }
        if let Some((_, sample)) = SAMPLES.iter().find(|(name, _)| name == word) {
            fs::write(&path, sample).unwrap();
        }
        if word.ends_with(".toml") && !path.exists() {
            let is_profile = words.first().is_some_and(|first| first == "measure");
            let text = if is_profile { PROFILE.to_owned() } else { scratch.run("campaigns cnc-matrix").stdout() };
            fs::write(&path, text).unwrap();
        }
    }
}

/// Copies the record with another start for each path: a comparison refuses one run on both sides.
fn copy_as_another_run(scratch: &Scratch, path: &std::path::Path) {
    let mut record = record::file::read(&scratch.record_path()).unwrap();
    let number = path.to_string_lossy().bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    record.started_at = format!("2026-11-01T00:00:00.{:09}Z", number % 1_000_000_000);
    fs::write(path, record::file::to_json(&record)).unwrap();
}

#[test]
fn commands_of_the_documentation_run_as_printed() {
    let scratch = Scratch::new();
    scratch.measure(0, "--cpus 0 --policy other --duration 100ms --blame=counters --threshold 1us");
    let mut failed = Vec::new();
    let (mut run, mut not_run) = (0, 0);
    for (words, place) in documented() {
        if reason(&words).is_some() {
            not_run += 1;
            continue;
        }
        run += 1;
        prepare(&scratch, &words);
        let arguments = shortened(&words);
        let output = scratch.punctual("").args(&arguments).output().unwrap();
        // Verdicts depend on the machine; an error or a refused command line does not.
        if !matches!(output.status.code(), Some(0 | 2..=4)) {
            let errors = String::from_utf8_lossy(&output.stderr);
            failed.push(format!("{place}: punctual {}: {}\n{errors}", arguments.join(" "), output.status));
        }
    }
    assert!(failed.is_empty(), "{} of {run}:\n{}", failed.len(), failed.join("\n"));
    assert!(run > 20, "{run} were run, {not_run} not");
}

#[test]
fn each_rule_applies_to_a_command() {
    let used: Vec<usize> = documented().keys().filter_map(|words| rule(words)).collect();
    let unused = NOT_RUN.iter().enumerate().filter(|(index, _)| !used.contains(index));
    let unused: Vec<&str> = unused.map(|(_, (pattern, _))| *pattern).collect();
    assert!(unused.is_empty(), "no command needs these rules: {unused:?}");
}
