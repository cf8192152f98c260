//! `punctual restore`, and the same at the start of each run: puts back what a killed run had changed.

use machine::{Restored, Root, journal};

use crate::{
    cli::{Command, Restore},
    output,
};

pub fn run(options: &Restore) -> anyhow::Result<u8> {
    let restored = journal::restore(&Root::system());
    output::stdout(|out| {
        if options.json {
            return writeln!(out, "{:#}", serde_json::json!({ "restored": restored }));
        }
        if restored.is_empty() {
            return writeln!(out, "nothing to restore");
        }
        restored.iter().try_for_each(|restored| writeln!(out, "{}", in_words(restored)))
    })?;
    Ok(u8::from(restored.iter().any(|restored| !restored.put_back.failed.is_empty())))
}

/// Restores before a command that measures.
pub fn before(command: Option<&Command>) {
    if matches!(command, None | Some(Command::Measure(_) | Command::Echo(_) | Command::Pair(_) | Command::Run(_))) {
        for restored in journal::restore(&Root::system()) {
            eprintln!("punctual: {}", in_words(&restored));
        }
    }
}

fn in_words(restored: &Restored) -> String {
    let Restored { process, put_back, .. } = restored;
    let mut text =
        format!("a run that was killed (process {process}) had left things changed: put back {}", put_back.in_words());
    if !put_back.changed_since.is_empty() {
        text += &format!("; left what someone has changed since: {}", put_back.changed_since.join(", "));
    }
    if !put_back.failed.is_empty() {
        text += &format!("; could not put back: {}", put_back.failed.join(", "));
    }
    text
}
