//! CPU time of an interrupt, compared with the programs gpiomon and ppstest, in guests whose clocks count instructions.

use std::{env, fs, process::Command};

use anyhow::{Context, Result, ensure};

use crate::{
    rounds::Pair,
    row::{Row, Unit},
};

/// The results of the guests, relative to the folder of their records.
const RESULTS: [&str; 2] = ["edges/interrupt-costs.txt", "pulses/interrupt-costs.txt"];

/// Approximate duration with built programs, s.
pub fn seconds() -> u64 {
    120
}

/// Measures the rows in guests of the lab, which builds punctual with its own profile.
pub fn measure() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir().context("cannot create a folder for the guests' results")?;
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["run", "--profile", "quick", "--quiet", "--package", "lab-tests", "--"])
        .args(["--only", "interrupt::costs", "--keep"])
        .arg(folder.path())
        .output()
        .context("cannot run cargo")?;
    let said = || format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // A ratio above the target fails the guest's test, too: the table shows it.
    let read = |name| {
        fs::read_to_string(folder.path().join(name)).with_context(|| format!("a guest returned no figures: {}", said()))
    };
    let texts = RESULTS.into_iter().map(read).collect::<Result<Vec<_>>>()?;
    rows(&texts.concat())
}

/// The rows of results in lines of name, punctual's and the other program's time in ns, separated by tabs.
fn rows(text: &str) -> Result<Vec<Row>> {
    let row = |key: &str, name| {
        let pairs: Vec<_> = text.lines().filter_map(|line| pair(line, key)).collect();
        ensure!(!pairs.is_empty(), "the guests returned no figures of {key}: {text}");
        Ok(Row::compared(name, Unit::Time, pairs).with_target(1.0))
    };
    Ok(vec![
        row("edges", "CPU time an edge, vs gpiomon (guest)")?,
        row("pulses", "CPU time a pulse, vs ppstest (guest)")?,
    ])
}

fn pair(line: &str, key: &str) -> Option<Pair<f64, f64>> {
    let [name, own, peer] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
    (name == key).then_some(())?;
    Some(Pair { own: own.parse().ok()?, peer: peer.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_rows() {
        let rows = rows("edges\t900\t1000\npulses\t3000\t2000\nedges\t950\t1000\n").unwrap();
        let ratios: Vec<_> = rows.iter().map(|row| row.ratio.unwrap().median).collect();
        assert_eq!(ratios, [0.925, 1.5]);
        assert!(rows[0].met().unwrap().met && !rows[1].met().unwrap().met);
        assert!(super::rows("edges\t900\t1000\n").is_err());
    }
}
