//! A command that is started and waits: it is a process already, and runs nothing of its own until it is let go.

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

/// A child process that waits to be let go. Dropped before, it ends without having run the command.
#[derive(Debug)]
pub struct Held {
    pid: Pid,
    /// A byte lets the command go; closing it ends the process.
    go: Option<OwnedFd>,
    /// Waits for the command to be executed.
    spawner: Option<JoinHandle<io::Result<Child>>>,
}

impl Held {
    /// Starts the command up to the moment before it is executed.
    ///
    /// # Errors
    /// The kernel makes no process, pipe or thread. Whether there is such a command, [`go`](Self::go) tells.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (pid_here, pid_there) = pipe_with(PipeFlags::CLOEXEC)?;
        let (go_there, go_here) = pipe_with(PipeFlags::CLOEXEC)?;
        let ours = go_here.as_raw_fd();
        let wait = move || {
            // With its own copy open, it would wait for ever when we are gone.
            // SAFETY: in the child nobody else uses this descriptor, a copy of one that the parent holds until the end.
            unsafe { libc::close(ours) };
            write(&pid_there, &getpid().as_raw_nonzero().get().to_ne_bytes())?;
            let mut byte = [0];
            match retry_on_intr(|| read(&go_there, &mut byte))? {
                0 => Err(Errno::CANCELED.into()),
                _ => Ok(()),
            }
        };
        // SAFETY: between fork and exec the closure makes system calls alone; it neither allocates nor takes a lock.
        unsafe { command.pre_exec(wait) };
        let spawner = std::thread::Builder::new().name("spawner".to_owned()).spawn(move || command.spawn())?;
        let mut pid = [0; 4];
        // Where there is no process nobody writes, and its end is closed.
        let told = retry_on_intr(|| read(&pid_here, &mut pid))?;
        match Pid::from_raw(i32::from_ne_bytes(pid)).filter(|_| told == pid.len()) {
            Some(pid) => Ok(Self { pid, go: Some(go_here), spawner: Some(spawner) }),
            None => Err(joined(spawner).err().unwrap_or_else(|| io::ErrorKind::Other.into())),
        }
    }

    /// Its process id, which is that of the command later.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the command run. It is a child of this process, to be reaped with [`crate::child`].
    ///
    /// # Errors
    /// The command cannot be executed: there is none of this name, or it is no program. Its process is gone then.
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
        // What was never let go has nothing to tell.
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

    /// What a process runs.
    fn program(pid: Pid) -> std::path::PathBuf {
        fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero())).unwrap()
    }

    fn leaves_mark(mark: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo > \"$0\"; exit 7"]).arg(mark);
        command
    }

    #[test]
    fn a_held_command_runs_when_it_is_let_go_and_not_when_it_is_dropped() {
        let mark = std::env::temp_dir().join(format!("punctual-held-{}", std::process::id()));
        let held = Held::start(leaves_mark(&mark)).unwrap();
        let pid = held.pid();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(program(pid), std::env::current_exe().unwrap());
        drop(held);
        assert!(reap(pid).is_err(), "it was reaped already");
        assert!(!mark.exists());

        let held = Held::start(leaves_mark(&mark)).unwrap();
        let pid = held.pid();
        assert_eq!(held.go().unwrap(), pid);
        assert_eq!(reap(pid).unwrap().how, Ok(7));
        fs::remove_file(&mark).unwrap();
    }

    #[test]
    fn what_is_no_command_is_told_when_it_is_let_go() {
        let held = Held::start(Command::new("/nowhere/no-such-command")).unwrap();
        assert_eq!(held.go().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
