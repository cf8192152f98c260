//! The host side: builds the programs, boots guests, prints one line per test and counts the results.

mod boot;
mod build;
mod plan;

use std::{
    process::ExitCode,
    sync::{Mutex, PoisonError, mpsc},
    thread,
};

use clap::Parser;

use crate::{
    boots::{self, Boot},
    verdict::Verdict,
};
use plan::{Ended, Options, Wanted};

#[derive(Debug, Default)]
struct Count {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// Parses the command line, runs the tests and prints the totals.
pub fn main() -> ExitCode {
    let options = Options::parse();
    let (excluded, wanted): (Vec<Wanted>, Vec<Wanted>) = wanted(&options.only)
        .into_iter()
        .partition(|(boot, _)| options.without.iter().any(|text| boot.name.contains(text)));
    for (boot, tests) in excluded {
        eprintln!(
            "EXCLUDED: {} tests of {}; run them with: make lab LAB=\"--only {}\"",
            tests.len(),
            boot.name,
            boot.name
        );
    }
    if options.list {
        for (boot, tests) in &wanted {
            tests.iter().for_each(|test| println!("{:<12} {:<12} {test}", boot.kernel.name, boot.name));
        }
        return ExitCode::SUCCESS;
    }
    let count = run_all(wanted, &options);
    println!("{} passed, {} failed, {} skipped", count.passed, count.failed, count.skipped);
    ExitCode::from(u8::from(count.failed > 0))
}

fn wanted(only: &[String]) -> Vec<Wanted> {
    let is_wanted = |boot: &Boot, test: &str| {
        only.is_empty() || only.iter().any(|text| boot.name.contains(text) || test.contains(text))
    };
    let tests = |boot: &'static Boot| boot.tests.iter().map(|test| test.name).filter(|test| is_wanted(boot, test));
    boots::ALL
        .iter()
        .map(|boot| (boot, tests(boot).collect()))
        .filter(|(_, tests): &Wanted| !tests.is_empty())
        .collect()
}

/// Runs several guests in parallel, while the programs for the others are still being built.
fn run_all(wanted: Vec<Wanted>, options: &Options) -> Count {
    let (sender_of_kits, kits) = mpsc::channel::<(Wanted, build::Kit)>();
    let (sender, ended) = mpsc::channel();
    let kits = Mutex::new(kits);
    let mut count = Count::default();
    thread::scope(|scope| {
        let failed = sender.clone();
        // Sending cannot fail, because the receivers outlive this scope.
        scope.spawn(move || {
            build::prepare(wanted, options.update, &mut |wanted, kit| match kit {
                Ok(kit) => drop(sender_of_kits.send((wanted, kit))),
                Err(ended) => drop(failed.send((wanted, ended))),
            });
        });
        for _ in 0..options.jobs.max(1) {
            let (kits, sender) = (&kits, sender.clone());
            scope.spawn(move || {
                let next = || kits.lock().unwrap_or_else(PoisonError::into_inner).recv();
                while let Ok((wanted, kit)) = next() {
                    let ended = boot::run(wanted.0, &wanted.1, &kit, options);
                    let _ = sender.send((wanted, ended));
                }
            });
        }
        drop(sender);
        ended.iter().for_each(|(wanted, ended)| count.add(&wanted, ended));
    });
    count
}

impl Count {
    /// Prints and counts the results of one boot.
    fn add(&mut self, (boot, tests): &Wanted, ended: Ended) {
        let line = |how: &str, test: &str, rest: &str| {
            println!("{how:<8} {:<12} {:<10} {test}{rest}", boot.kernel.name, boot.name);
        };
        let (verdicts, failure) = match ended {
            Ended::Ran(verdicts) => (verdicts, None),
            Ended::Failed(verdicts, failure) => (verdicts, Some(failure)),
            Ended::Skipped(reason) => {
                self.skipped += tests.len();
                eprintln!("SKIPPED: {} tests of {}: {reason}", tests.len(), boot.name);
                tests.iter().for_each(|test| line("skipped", test, ""));
                return;
            }
        };
        if let Some(failure) = &failure {
            // Also if all tests have reported: data sent after them, e.g. files, was lost.
            self.failed += 1;
            line("FAILED", "the boot", &format!(": {failure}"));
        }
        for test in tests {
            match verdicts.iter().find(|verdict| verdict.name == *test) {
                Some(Verdict { wrong: None, seconds, .. }) => {
                    self.passed += 1;
                    line("ok", test, &format!("  {seconds:.1} s"));
                }
                Some(Verdict { wrong: Some(wrong), .. }) => {
                    self.failed += 1;
                    line("FAILED", test, &format!(": {wrong}"));
                }
                None => {
                    self.failed += 1;
                    let why = if failure.is_some() { "" } else { ": no result: the test program ended early" };
                    line("FAILED", test, why);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(ended: Ended) -> (usize, usize, usize) {
        let mut count = Count::default();
        count.add(&(&boots::ALL[0], vec!["a", "b"]), ended);
        (count.passed, count.failed, count.skipped)
    }

    fn verdict(name: &str, wrong: Option<&str>) -> Verdict {
        Verdict { name: name.to_owned(), wrong: wrong.map(str::to_owned), seconds: 0.0 }
    }

    #[test]
    fn only_reported_successes_count_as_passed() {
        let (a, b) = (verdict("a", None), verdict("b", None));
        assert_eq!(counted(Ended::Ran(vec![a.clone(), b.clone()])), (2, 0, 0));
        assert_eq!(counted(Ended::Ran(vec![a.clone(), verdict("b", Some("late"))])), (1, 1, 0));
        assert_eq!(counted(Ended::Ran(vec![a.clone()])), (1, 1, 0));
        assert_eq!(counted(Ended::Skipped("no network".to_owned())), (0, 0, 2));
        assert_eq!(counted(Ended::Failed(vec![], "a panic".to_owned())), (0, 3, 0));
        assert_eq!(counted(Ended::Failed(vec![a, b], "a damaged frame".to_owned())), (2, 1, 0));
    }
}
