//! `punctual lab`: a kernel of one's own in a small guest, measured, and what came of it kept here.

use std::{path::Path, time::Duration};

use anyhow::Context;
use guest::{Event, Guest, Image, Initramfs, Outcome, Time, init::KERNEL_LOG, initramfs::PUNCTUAL};
use record::{Caveat, Record, file};

use crate::{
    cli::Lab,
    output::{self, Kept},
};

/// Exit statuses of a punctual that could not do what was asked.
const FAILED: i32 = 1;
const USAGE: i32 = 64;
const RECORD_ENDING: &str = ".punctual.json";
const REPORT_ENDING: &str = ".punctual.html";

pub fn run(options: &Lab) -> anyhow::Result<u8> {
    let guest = guest(options);
    let image = Image::open(&options.kernel)?;
    let binary = options.binary.clone().map_or_else(output::executable, Ok)?;
    let mut initramfs = Initramfs::new(image.arch, &binary)?;
    initramfs.command([PUNCTUAL].into_iter().map(str::to_owned).chain(options.arguments.iter().cloned()));
    let kept = Kept::choose(options.record.as_deref(), options.no_record)?;
    if let Some(path) = &kept.record {
        file::check_writable(path)?;
    }
    if !options.quiet {
        say!("booting {} ({}, {})", options.kernel.display(), image.arch, in_words(&guest));
    }
    let mut talk = Talk::default();
    let outcome = guest::run(&guest, &image, &initramfs, &mut |said| show(said, options, &mut talk))?;
    if options.quiet && matches!(outcome.status, FAILED | USAGE) {
        hint!("{}", talk.kept);
    }
    keep(&outcome, &kept, guest.time)?;
    if !options.quiet {
        say!("guest   {:.1} s to boot, {:.1} s in all", outcome.boot.as_secs_f64(), outcome.wall.as_secs_f64());
        kept.say();
    }
    Ok(u8::try_from(outcome.status).unwrap_or(1))
}

fn guest(options: &Lab) -> Guest {
    let time = match options.cpus {
        _ if options.kvm => Time::Kvm,
        1 if !options.no_virtual_time => Time::Virtual,
        _ => Time::Real,
    };
    Guest {
        cpus: options.cpus,
        time,
        memory_mib: options.memory,
        append: options.append.clone(),
        timeout: Duration::from_nanos(options.timeout),
        verbose: true,
        ..Guest::default()
    }
}

fn in_words(guest: &Guest) -> String {
    let cpus = if guest.cpus == 1 { "1 CPU".to_owned() } else { format!("{} CPUs", guest.cpus) };
    let time = match guest.time {
        Time::Virtual => "virtual time",
        Time::Real => "emulated in real time",
        Time::Kvm => "KVM",
    };
    format!("{cpus}, {time}")
}

/// Hands on what the guest says as it comes: what the program prints as it is, all else as talk.
fn show(said: Event, options: &Lab, talk: &mut Talk) {
    match said {
        // A reader that has gone away does not end the run; the record is still to come.
        Event::Stdout(piece) => drop(output::stdout(|out| out.write_all(piece))),
        Event::Stderr(piece) => talk.take(piece, options.quiet),
        Event::Console(line) if options.console => say!("{line}"),
        Event::Booted(release) if !options.quiet => {
            say!("booted Linux {release}; running: punctual {}", options.arguments.join(" "));
        }
        Event::Console(_) | Event::Booted(_) => {}
    }
}

/// The talk of the guest's punctual, by lines. Where it keeps its files is no place here, and not told.
#[derive(Default)]
struct Talk {
    line: Vec<u8>,
    /// What was not shown.
    kept: String,
}

impl Talk {
    fn take(&mut self, piece: &[u8], quiet: bool) {
        for &byte in piece {
            self.line.push(byte);
            if byte == b'\n' {
                let line = String::from_utf8_lossy(&self.line).into_owned();
                self.line.clear();
                if line.starts_with("record  ") || line.starts_with("report  ") {
                    continue;
                }
                if quiet { self.kept += &line } else { hint!("{line}") }
            }
        }
    }
}

/// Keeps the record and its report under the name asked for, and all else that the run left beside them.
fn keep(outcome: &Outcome, kept: &Kept, time: Time) -> anyhow::Result<()> {
    let Some(place) = &kept.record else { return Ok(()) };
    let beside = place.parent().unwrap_or(Path::new(""));
    let mut records = outcome.files.files().filter(|(name, _)| name.ends_with(RECORD_ENDING));
    let Some((name, bytes)) = records.next() else { return Ok(()) };
    let mut record = file::parse(bytes).map_err(|error| anyhow::anyhow!("the guest's {name}: {error}"))?;
    add_caveat(&mut record, time);
    kept.write(&record)?;
    kept.write_report(&record)?;
    let report = name.replace(RECORD_ENDING, REPORT_ENDING);
    for (other, bytes) in outcome.files.files().filter(|(other, _)| *other != name && *other != report) {
        let path = match other {
            KERNEL_LOG => place.with_extension("").with_extension("kernel.log"),
            other => beside.join(Path::new(other).file_name().context("a file without a name")?),
        };
        file::write_atomic(&path, bytes)?;
    }
    Ok(())
}

/// Says in the record what its times are worth.
fn add_caveat(record: &mut Record, time: Time) {
    let text = match time {
        Time::Virtual => {
            "the times are virtual: 4 ns for each instruction on one emulated CPU, whatever the host does; they compare kernels and settings, not machines"
        }
        Time::Real => {
            "the machine was emulated in software: the times are those of an emulator on a busy host, and say nothing of any hardware"
        }
        Time::Kvm => return,
    };
    record.caveats.push(Caveat { kind: "virtual".to_owned(), text: text.to_owned() });
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn options(line: &str) -> Lab {
        match Cli::try_parse_from(line.split_whitespace()).expect("a command line").command {
            Some(Command::Lab(options)) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn time_is_virtual_on_one_cpu_and_for_nobody_else() {
        let time = |line: &str| guest(&options(&format!("punctual lab --kernel bzImage {line}"))).time;
        assert_eq!(time(""), Time::Virtual);
        assert_eq!(time("--no-virtual-time"), Time::Real);
        assert_eq!(time("--cpus 2"), Time::Real);
        assert_eq!(time("--kvm --cpus 2"), Time::Kvm);
    }

    #[test]
    fn what_stands_after_two_dashes_is_for_the_guest() {
        let options = options("punctual lab --kernel bzImage --append isolcpus=1 -- measure timer --duration 5s");
        assert_eq!(options.arguments, ["measure", "timer", "--duration", "5s"]);
    }
}
