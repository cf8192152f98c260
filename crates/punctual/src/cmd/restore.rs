//! `punctual restore`: restores settings that a killed run left changed, which each measurement does at its start, and
//! what `punctual tune --yes` and `punctual evl gravity --set` changed.

use campaign::leftovers;
use machine::{Root, journal};

use crate::{
    cli::{Command, Restore},
    output,
};

pub fn run(options: &Restore) -> anyhow::Result<u8> {
    let restored = leftovers::restore_all(&Root::system())?;
    let left_alone = journal::left_alone(&Root::system());
    output::stdout(|out| {
        if options.json {
            return writeln!(
                out,
                "{}",
                output::json(&serde_json::json!({ "restored": restored, "left_alone": left_alone }))
            );
        }
        for process in &left_alone {
            writeln!(
                out,
                "left alone: the changes of process {process}, which may still run in another container: run `sudo punctual \
                 restore` on the host"
            )?;
        }
        if restored.is_empty() && left_alone.is_empty() {
            return writeln!(out, "nothing to restore");
        }
        restored.iter().try_for_each(|restored| writeln!(out, "{}", restored.in_words()))
    })?;
    Ok(u8::from(restored.iter().any(|restored| !restored.put_back.failed.is_empty())))
}

/// Restores before a command that measures.
pub fn before(command: Option<&Command>) {
    match command {
        None
        | Some(
            Command::Measure(_)
            | Command::Echo(_)
            | Command::Mirror(_)
            | Command::Pair(_)
            | Command::Pod(_)
            | Command::Run(_)
            | Command::Evl(_)
            | Command::Latency(_),
        ) => {}
        Some(
            Command::Capture(_)
            | Command::Validate(_)
            | Command::Campaigns(_)
            | Command::Show(_)
            | Command::Blame(_)
            | Command::Machine(_)
            | Command::Snapshot(_)
            | Command::Amp(_)
            | Command::Judge(_)
            | Command::Check(_)
            | Command::Profiles(_)
            | Command::Compare(_)
            | Command::Import(_)
            | Command::References(_)
            | Command::Loads(_)
            | Command::Setup(_)
            | Command::Tune(_)
            | Command::Restore(_)
            | Command::Lab(_)
            | Command::Generate(_)
            | Command::Load(_)
            | Command::Far(_)
            | Command::Guest,
        ) => return,
    }
    match leftovers::restore(&Root::system()) {
        Ok(all) => all.iter().for_each(|restored| say!("note: {}", restored.in_words())),
        Err(error) => say!("note: {error}"),
    }
}
