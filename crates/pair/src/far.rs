//! The far end: performs the measurements that the near end requests, and exits when the connection ends.

mod answer;
mod cleanup_helper;
mod common;
mod interrupt;
mod listen;

use std::{
    fs,
    io::{self, BufReader},
    path::Path,
    process, thread,
    time::Duration,
};

use campaign::leftovers;
use machine::{Restored, Root};
use record::{FarAsked, visible};
use sys::{clock::Clock, signal};

use cleanup_helper::CleanupHelper;
pub use cleanup_helper::run as clean_up_after;
use common::TICK;

use crate::{
    binary::Identity,
    channel::Channel,
    protocol::{Hello, PROTOCOL, Task, ToFar, ToNear},
};

/// How long a run may take to stop and restore settings after the near end is lost. A load can take 15 s.
const GRACE: Duration = Duration::from_secs(20);
/// The program name in findings and the file name of a copy.
const NAME: &str = "punctual";

/// The output of `punctual __far --identify`, e.g. `0.1.0 1a2b3c4d`.
///
/// # Errors
/// If the program cannot be read.
pub fn identify() -> io::Result<String> {
    Ok(Identity::of(&fs::read("/proc/self/exe")?).to_string())
}

/// Serves the near end on standard input and output until either side ends. `folder` contains the copy of this program.
/// Both are removed first, so that nothing remains even after a crash.
pub fn serve(folder: Option<&Path>) -> io::Result<()> {
    if let Some(folder) = folder {
        // If this fails, the shell that started this process removes the folder at the end.
        let _ = fs::remove_file(folder.join(NAME)).and_then(|()| fs::remove_dir(folder));
    }
    signal::count_termination()?;
    let restored = match leftovers::restore(&Root::system()) {
        Ok(all) => all.iter().map(Restored::in_words).collect(),
        Err(error) => vec![error.to_string()],
    };
    let mut channel = Channel::open::<ToNear>(BufReader::new(io::stdin()), visible::unfiltered_stdout(), stop_soon)?;
    let (version, machine) = (env!("CARGO_PKG_VERSION").to_owned(), machine::facts(&Root::system()));
    channel.send(&ToNear::Hello(Box::new(Hello { protocol: PROTOCOL, version, machine, restored })));
    while let Ok(message) = channel.receive(TICK) {
        match message {
            Some(ToFar::Clock) => channel.send(&ToNear::Clock(Clock::Monotonic.now_ns())),
            Some(ToFar::Measure { what, asked }) => {
                let results = match (cleanup_helper(&asked), what) {
                    (Err(error), _) => Err(error.into()),
                    (Ok(_helper), Task::Echo(ask)) => answer::answer(&channel, &ask, &asked),
                    (Ok(_helper), Task::Listen(ask)) => listen::listen(&channel, &ask, &asked),
                    (Ok(_helper), Task::Interrupt(task)) => interrupt::interrupt(&mut channel, &task, &asked),
                };
                let message = results
                    .map_or_else(|why| ToNear::Failed(why.to_string()), |results| ToNear::Results(Box::new(results)));
                channel.send(&message);
            }
            Some(ToFar::End { .. } | ToFar::JudgeIsOver | ToFar::Alive) => {}
            None if signal::termination_requests() > 0 => break,
            None => {}
        }
    }
    Ok(())
}

/// Stops the measurement after the near end is lost, and exits after a grace period.
fn stop_soon() {
    signal::request_termination();
    thread::spawn(|| {
        thread::sleep(GRACE);
        process::exit(1);
    });
}

/// Starts a process that restores settings if this one is killed; `None` if no settings will be changed.
fn cleanup_helper(asked: &FarAsked) -> io::Result<Option<CleanupHelper>> {
    let FarAsked { shield, hold_cpu_awake, nic, irq_priority, .. } = asked;
    let changes_settings = shield.is_some() || *hold_cpu_awake || nic.is_some() || irq_priority.is_some();
    changes_settings.then(CleanupHelper::start).transpose()
}
