//! `punctual loads`, and the hidden command that runs a load in a child process.

use report::terminal::{entry, width};

use crate::{cli::Load, output};

pub fn list() -> anyhow::Result<u8> {
    output::stdout(|out| {
        for kind in loads::KINDS {
            write!(out, "{}", entry(kind.name, 11, kind.description, width()))?;
            for (option, meaning) in kind.options {
                write!(out, "{}", entry(&format!("  {option}"), 34, meaning, width()))?;
            }
        }
        let end = "Append @CPUS to a load to choose its CPUs, e.g. --load switch:10us@0-1. Details: docs/loads.md";
        write!(out, "\n{}", entry("", 0, end, width()))
    })?;
    Ok(0)
}

pub fn work(options: &Load) -> anyhow::Result<u8> {
    loads::worker(&options.spec, &options.cpus)?;
    Ok(0)
}
