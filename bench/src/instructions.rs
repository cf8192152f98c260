//! Counts the instructions of a program's measuring thread with callgrind, independent of the machine's load.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

use crate::run::run;

/// User-space instructions of all threads except the first, which does not measure.
pub fn of_measuring_thread(command: &Command) -> Result<u64> {
    let folder = tempfile::tempdir().context("cannot create a folder for callgrind's results")?;
    let out = folder.path().join("out");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind", "--separate-threads=yes"]);
    valgrind.arg(format!("--callgrind-out-file={}", out.display()));
    valgrind.arg(command.get_program()).args(command.get_args());
    run(&mut valgrind, &[0, 2, 3, 4], "install it: sudo apt-get install valgrind")?;
    let mut total = 0;
    for thread in 2.. {
        let path = folder.path().join(format!("out-{thread:02}"));
        if !path.exists() {
            break;
        }
        total += total_in(&path)?;
    }
    ensure!(total > 0, "callgrind found no measuring thread");
    Ok(total)
}

fn total_in(path: &Path) -> Result<u64> {
    total(&fs::read_to_string(path)?).with_context(|| format!("no total in callgrind's results {}", path.display()))
}

fn total(profile: &str) -> Option<u64> {
    profile.lines().find_map(|line| line.strip_prefix("totals: "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_total() {
        let profile =
            "# callgrind format\nthread: 2\nevents: Ir\nsummary: 40996\nfn=(1) totals: 5\n0 3\n\ntotals: 40996\n";
        assert_eq!(total(profile), Some(40996));
        assert_eq!(total("events: Ir\nsummary: 7\n"), None);
    }
}
