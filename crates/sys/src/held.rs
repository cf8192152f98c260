//! Starts a command in two steps: first the process, which waits, and later the command itself.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    os::unix::process::CommandExt,
    process::{Child, Command},
    thread::JoinHandle,
};

use rustix::{
    io::{Errno, read, retry_on_intr, write},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, getpid},
};

/// A child process that waits before exec. If dropped before [`go`](Self::go), it exits without running the command.
#[derive(Debug)]
pub struct Held {
    pid: Pid,
    /// One byte lets the command run. Closing the pipe ends the process.
    go: Option<OwnedFd>,
    /// The thread that waits in `spawn` until exec.
    spawner: Option<JoinHandle<io::Result<Child>>>,
}

impl Held {
    /// Forks the process; it stops before it executes the command.
    ///
    /// # Errors
    /// Fails if the kernel cannot create a process, pipe or thread. A missing command is reported by [`go`](Self::go).
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (pid_here, pid_there) = pipe_with(PipeFlags::CLOEXEC)?;
        let (go_there, go_here) = pipe_with(PipeFlags::CLOEXEC)?;
        let ours = go_here.as_raw_fd();
        let wait = move || {
            // Without this, the child's own copy of the pipe would keep it waiting for ever if the parent exits.
            // SAFETY: only this code uses the child's copy of the descriptor, and the parent keeps its own open until
            // the end.
            unsafe { libc::close(ours) };
            write(&pid_there, &getpid().as_raw_nonzero().get().to_ne_bytes())?;
            let mut byte = [0];
            match retry_on_intr(|| read(&go_there, &mut byte))? {
                0 => Err(Errno::CANCELED.into()),
                _ => Ok(()),
            }
        };
        // SAFETY: between fork and exec the closure only makes system calls; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(wait) };
        let spawner = std::thread::Builder::new().name("spawner".to_owned()).spawn(move || command.spawn())?;
        let mut pid = [0; 4];
        // If the fork failed, the other end of the pipe is closed and the read returns 0.
        let length = retry_on_intr(|| read(&pid_here, &mut pid))?;
        match Pid::from_raw(i32::from_ne_bytes(pid)).filter(|_| length == pid.len()) {
            Some(pid) => Ok(Self { pid, go: Some(go_here), spawner: Some(spawner) }),
            None => Err(joined(spawner).err().unwrap_or_else(|| io::ErrorKind::Other.into())),
        }
    }

    /// The process id, which stays the same when the command runs.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the command run. Reap the child with [`crate::child`].
    ///
    /// # Errors
    /// Fails if the command cannot be executed, e.g. because it does not exist. The process has then exited.
    pub fn go(mut self) -> io::Result<Pid> {
        if let Some(go) = self.go.take() {
            write(&go, &[1])?;
        }
        let child = self.spawner.take().map(joined).transpose()?;
        child.map(|_| self.pid).ok_or_else(|| io::ErrorKind::Other.into())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.go = None;
        // The result of a command that never ran is of no interest.
        let _ = self.spawner.take().map(joined);
    }
}

fn joined(spawner: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    spawner.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, time::Duration};

    use super::*;
    use crate::child::reap;

    /// The executable of a process.
    fn program(pid: Pid) -> std::path::PathBuf {
        fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero())).unwrap()
    }

    fn leaves_mark(mark: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo > \"$0\"; exit 7"]).arg(mark);
        command
    }

    #[test]
    fn runs_the_command_on_go_and_not_on_drop() {
        let mark = std::env::temp_dir().join(format!("punctual-held-{}", std::process::id()));
        let held = Held::start(leaves_mark(&mark)).unwrap();
        let pid = held.pid();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(program(pid), std::env::current_exe().unwrap());
        drop(held);
        assert!(reap(pid).is_err(), "drop must reap it");
        assert!(!mark.exists());

        let held = Held::start(leaves_mark(&mark)).unwrap();
        let pid = held.pid();
        assert_eq!(held.go().unwrap(), pid);
        assert_eq!(reap(pid).unwrap().how, Ok(7));
        fs::remove_file(&mark).unwrap();
    }

    #[test]
    fn go_reports_a_missing_command() {
        let held = Held::start(Command::new("/nowhere/no-such-command")).unwrap();
        assert_eq!(held.go().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
