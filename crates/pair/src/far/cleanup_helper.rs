//! Puts back what a far end that was killed had set: a copy of this program is gone with it, so nobody else there would.

use std::{
    io::{self, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{self, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use campaign::SELF_EXE;
use machine::{Root, journal};

use crate::FAR_COMMAND;

/// How long the parent of a process that was killed may take to notice.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process that waits for the end of this one, however that comes, and then restores from its journal: nothing, where this
/// one has put everything back itself.
#[derive(Debug)]
pub struct CleanupHelper {
    /// The kernel closes it with this process.
    _life: Option<ChildStdin>,
}

impl CleanupHelper {
    /// Starts it.
    ///
    /// # Errors
    /// When no process can be made.
    pub fn start() -> io::Result<Self> {
        let mut child = Command::new(SELF_EXE)
            .args([FAR_COMMAND, "--mend", &process::id().to_string()])
            .stdin(Stdio::piped())
            // ssh waits for whoever could still say something.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What ends a group ends those alone that set something.
            .process_group(0)
            .spawn()?;
        Ok(Self { _life: child.stdin.take() })
    }
}

/// The life of that process: `far_end` is the number of the other.
pub fn run(far_end: u32) {
    // An end of it and an error are the same news.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let began = Instant::now();
    while Path::new(&format!("/proc/{far_end}")).exists() && began.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(10));
    }
    let _ = journal::restore(&Root::system());
}
