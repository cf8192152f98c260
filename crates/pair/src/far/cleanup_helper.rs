//! Restores the settings of a killed far end. Without this process nothing would, because the copied program no longer
//! exists there.

use std::{
    io::{self, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{self, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use campaign::SELF_EXE;
use campaign::leftovers;
use machine::Root;

use crate::FAR_COMMAND;

/// How long to wait until the killed process has disappeared.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// A process that waits until this one has ended for any reason, and then restores settings from the journal. The
/// journal is empty if this process restored everything itself.
#[derive(Debug)]
pub struct CleanupHelper {
    /// The kernel closes this pipe when the process ends.
    _pipe: Option<ChildStdin>,
}

impl CleanupHelper {
    /// Starts the process.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub fn start() -> io::Result<Self> {
        let mut child = Command::new(SELF_EXE)
            .args([FAR_COMMAND, "--mend", &process::id().to_string()])
            .stdin(Stdio::piped())
            // With inherited output, ssh would wait for this process.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A separate process group, so that a signal to the far end's group does not reach it.
            .process_group(0)
            .spawn()?;
        Ok(Self { _pipe: child.stdin.take() })
    }
}

/// Runs in the helper process. `far_end` is the process id of the far end.
pub fn run(far_end: u32) {
    // The read ends when the pipe is closed; errors have the same meaning.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    let began = Instant::now();
    while Path::new(&format!("/proc/{far_end}")).exists() && began.elapsed() < EXIT_TIMEOUT {
        thread::sleep(Duration::from_millis(10));
    }
    let _ = leftovers::restore(&Root::system());
}
