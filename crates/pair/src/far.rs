//! The far end: does what the near one asks, and ends with the connection, however that ends.

mod answer;
mod cleanup_helper;
mod common;
mod listen;

use std::{
    fs,
    io::{self, BufReader},
    path::Path,
    process, thread,
    time::Duration,
};

use machine::{Restored, Root, journal};
use record::FarAsked;
use sys::{clock::Clock, signal};

use cleanup_helper::CleanupHelper;
pub use cleanup_helper::run as clean_up_after;
use common::TICK;

use crate::{
    binary::Identity,
    channel::Channel,
    protocol::{Ask, Hello, PROTOCOL, ToFar, ToNear},
};

/// How long a run may take to end once the near end is gone, and to put back what it has set: a load may take 15 s.
const GRACE: Duration = Duration::from_secs(20);
/// Without a near end, findings name the program as users do.
const NAME: &str = "punctual";

/// What `punctual __far --identify` prints: `0.1.0 1a2b3c4d`.
///
/// # Errors
/// When the program cannot be read.
pub fn identify() -> io::Result<String> {
    Ok(Identity::of(&fs::read("/proc/self/exe")?).to_string())
}

/// Serves the near end at the other end of standard input and output, until either ends. `folder` is where this program was
/// copied to: it is removed at once, so that nothing is left whatever happens.
pub fn serve(folder: Option<&Path>) -> io::Result<()> {
    if let Some(folder) = folder {
        // What cannot be removed now, the shell that started us removes afterwards.
        let _ = fs::remove_file(folder.join(NAME)).and_then(|()| fs::remove_dir(folder));
    }
    signal::count_termination()?;
    let restored = journal::restore(&Root::system()).iter().map(Restored::in_words).collect();
    let channel = Channel::open::<ToNear>(BufReader::new(io::stdin()), io::stdout(), end_soon)?;
    let (version, machine) = (env!("CARGO_PKG_VERSION").to_owned(), machine::facts(&Root::system()));
    channel.say(&ToNear::Hello(Box::new(Hello { protocol: PROTOCOL, version, machine, restored })));
    while let Ok(said) = channel.hear(TICK) {
        match said {
            Some(ToFar::Clock) => channel.say(&ToNear::Clock(Clock::Monotonic.now_ns())),
            Some(ToFar::Measure { what, asked }) => {
                let saw = match (cleanup_helper(&asked), what) {
                    (Err(error), _) => Err(error.into()),
                    (Ok(_helper), Ask::Echo(ask)) => answer::answer(&channel, &ask, &asked),
                    (Ok(_helper), Ask::Listen(ask)) => listen::listen(&channel, &ask, &asked),
                };
                channel.say(&saw.map_or_else(|why| ToNear::Failed(why.to_string()), |saw| ToNear::Saw(Box::new(saw))));
            }
            Some(ToFar::End { .. } | ToFar::Alive) => {}
            None if signal::termination_requests() > 0 => break,
            None => {}
        }
    }
    Ok(())
}

/// The near end is gone: what is measured ends in order, and this process in any case.
fn end_soon() {
    signal::request_termination();
    thread::spawn(|| {
        thread::sleep(GRACE);
        process::exit(1);
    });
}

/// Who puts back what is set, should this process be killed; `None` where nothing is to be set.
fn cleanup_helper(asked: &FarAsked) -> io::Result<Option<CleanupHelper>> {
    let FarAsked { shield, hold_cpu_awake, nic, irq_priority, .. } = asked;
    let sets = shield.is_some() || *hold_cpu_awake || nic.is_some() || irq_priority.is_some();
    sets.then(CleanupHelper::start).transpose()
}
