//! `--rounds`: repeats a measurement. Each round is a process with a record of its own in one folder, which is a side for
//! `punctual compare`.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use analysis::versus::{self, Records};
use anyhow::{Context, bail};
use record::{Outcome, State, file};

use crate::{cli::Common, cmd::compare, exit::Usage, output};

/// The relative difference that the rounds should show.
const LEAST: f64 = 0.2;
/// The options that a round does not repeat, each with a value.
const OF_ALL_ROUNDS: [&str; 3] = ["--rounds", "--record", "--against"];
/// The extent of the comparison. A round prints one line.
const FULL: &str = "--full";

/// Measures `rounds` times with the options of this process, and compares the rounds with each side of `against`.
pub fn run(rounds: u32, common: &Common, against: &[String]) -> anyhow::Result<u8> {
    let of_one_run = [
        ("--no-record", common.record.no_record),
        ("--export", !common.exports.is_empty()),
        ("--json", common.output.json),
    ];
    if let Some((option, _)) = of_one_run.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Usage(format!("--rounds cannot be used with {option}: leave one out")).into());
    }
    // Errors in names are reported before the first round.
    let sides: Vec<(&String, Records)> =
        against.iter().map(|name| Ok((name, compare::side(name)?))).collect::<anyhow::Result<_>>()?;
    let folder = folder(common.record.record.as_deref(), "rounds")?;
    sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    let program = output::executable()?;
    let (mut ours, mut outcomes) = (Records::default(), Vec::new());
    let digits = rounds.to_string().len();
    for round in 1..=rounds {
        if !common.output.quiet {
            output::stdout(|out| write!(out, "round {round:>digits$} of {rounds}  "))?;
        }
        let path = folder.join(format!("{round:0digits$}.punctual.json"));
        let arguments = of_round(env::args_os().skip(1), common.output.quiet, &path);
        let status = Command::new(&program).args(arguments).status();
        let status = status.context("cannot start a round")?;
        // A round that failed has said why.
        let Ok(record) = file::read(&path) else { bail!("round {round} wrote no record ({status})") };
        if record.state == State::Interrupted || sys::signal::termination_requests() > 0 {
            say!("note: stopped in round {round} of {rounds}; the rounds before it are in {}", folder.display());
            break;
        }
        ours.add(path.to_string_lossy().into_owned(), &record);
        outcomes.extend(analysis::outcome(&record));
    }
    for (_, side) in &sides {
        let versus = versus::versus(side, &ours, LEAST);
        output::print(common.output, |style, width| {
            report::terminal::versus(&versus, common.extent.full, style, width)
        })?;
    }
    if sides.is_empty() && !common.output.quiet {
        let folder = folder.display();
        say!("rounds  {folder}   (compare with others: punctual compare OTHERS -- {folder})");
    }
    Ok(worst(&outcomes).exit_status())
}

/// The folder of several records: the one of `--record`, or a new one with this name, host, date and time.
pub(super) fn folder(given: Option<&Path>, name: &str) -> anyhow::Result<PathBuf> {
    let folder = given.map_or_else(|| PathBuf::from(output::default_folder(name)), Path::to_owned);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let mut entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    if entries.next().is_some() {
        let folder = folder.display();
        return Err(Usage(format!("the folder {folder} is not empty: name a new one with --record")).into());
    }
    Ok(folder)
}

/// The arguments of a round, with its record; `is_quiet` if they already contain `--quiet`.
fn of_round(arguments: impl Iterator<Item = OsString>, is_quiet: bool, record: &Path) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    // Behind it are the words of another program.
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    let (own, others) = arguments.split_at(end);
    let mut kept: Vec<OsString> = Vec::new();
    let mut own = own.iter();
    while let Some(word) = own.next() {
        let text = word.to_string_lossy();
        let (name, value) = text.split_once('=').map_or((text.as_ref(), None), |(name, value)| (name, Some(value)));
        if name == FULL {
            continue;
        }
        if !OF_ALL_ROUNDS.contains(&name) {
            kept.push(word.clone());
        } else if value.is_none() {
            // Its value is the next word.
            own.next();
        }
    }
    if !is_quiet {
        kept.push("--quiet".into());
    }
    kept.extend(["--record".into(), record.into()]);
    kept.extend(others.iter().cloned());
    kept
}

/// The worst outcome of the rounds; PASS if none was judged.
pub(super) fn worst(outcomes: &[Outcome]) -> Outcome {
    let order = [Outcome::Invalid, Outcome::Fail, Outcome::Inconclusive];
    order.into_iter().find(|outcome| outcomes.contains(outcome)).unwrap_or(Outcome::Pass)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_repeats_the_options_of_the_measurement_only() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let of = |text: &str| of_round(words(text).into_iter(), false, Path::new("a/1"));
        let expected = words("measure timer --duration 1s --quiet --record a/1");
        assert_eq!(of("measure timer --rounds 3 --duration 1s --against LAST"), expected);
        assert_eq!(of("measure timer --rounds=3 --record=b --duration 1s --record b"), expected);
        assert_eq!(of("measure timer --rounds 3 --full --duration 1s"), expected);
        for quiet in ["--quiet", "-q"] {
            let given = words(&format!("measure timer {quiet} --rounds 2"));
            let expected = words(&format!("measure timer {quiet} --record a/1"));
            assert_eq!(of_round(given.into_iter(), true, Path::new("a/1")), expected, "--quiet is given only once");
        }
        let program = words("measure process --quiet --record a/1 -- ./program --record x");
        assert_eq!(of("measure process --rounds 2 -- ./program --record x"), program);
    }

    #[test]
    fn the_worst_round_decides() {
        assert_eq!(worst(&[]), Outcome::Pass);
        assert_eq!(worst(&[Outcome::Inconclusive, Outcome::Fail, Outcome::Pass]), Outcome::Fail);
    }
}
