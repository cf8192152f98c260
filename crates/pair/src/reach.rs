//! Starts the far end over ssh: a shell script on the far machine identifies it, receives a copy of the program and
//! runs it.
//!
//! Everything uses one connection, so a password is requested only once. The script reports the machine's facts and
//! then reads a command: receive and run a program, or run a command line. The script removes the copy at exit in any
//! case; the program also removes it as its first action.

use std::{
    io::{self, BufRead, BufReader, IsTerminal, Read, Write},
    os::fd::OwnedFd,
    path::PathBuf,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver},
    },
    thread,
    time::{Duration, Instant},
};

use record::visible::{self, Passes};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use sys::child::ignore_interrupts;

use crate::{
    FAR_COMMAND, PairError,
    binary::{Choice, FarMachine, Identity, choose},
};

/// How to reach the far machine and what to run there.
#[derive(Debug, Clone)]
pub struct Reach {
    /// `HOST` or `USER@HOST`.
    pub host: String,
    /// The ssh command line, parsed by a shell.
    pub ssh: String,
    /// The binary to copy, if given.
    pub far_binary: Option<PathBuf>,
    /// The command to run instead of a copy, if given.
    pub far_command: Option<String>,
    /// True to start it with sudo.
    pub sudo: bool,
    /// The path of this program.
    pub executable: PathBuf,
}

/// A connection to the far machine, with the program started there.
#[derive(Debug)]
pub struct Reached {
    /// The ssh process.
    pub child: Child,
    /// The far program's standard input.
    pub input: ChildStdin,
    /// The far program's standard output.
    pub output: BufReader<ChildStdout>,
    /// The far machine's address of the ssh connection.
    pub address: Option<String>,
    /// Its architecture as printed by `uname -m`.
    pub arch: String,
    /// True if the program is a copy that starts only where its shared libraries are.
    pub needs_libraries: bool,
}

/// Prefix of the script's report. Shell profiles may print other lines before it.
const MARK: &str = "punctual-pair ";
/// Maximum output before the report, bytes.
const PREAMBLE_MAX: u64 = 64 << 10;
/// The messages of ssh and of the far machine that are shown, bytes.
const MESSAGES_MAX: usize = 1 << 20;
/// Time for ssh to end after its output is closed.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for the last messages to arrive after ssh has ended.
const MESSAGES_TIMEOUT: Duration = Duration::from_secs(1);
/// ssh-specific options are added only if the command's name is this one.
const SSH: &str = "ssh";

/// The script on the far machine. It is one line without single quotes, backslashes and exclamation marks, so that
/// every login shell passes it on unchanged.
fn bootstrap() -> String {
    format!(
        "exec sh -c 'set -- $SSH_CONNECTION; echo \"{MARK}$(uname -m) ${{3:--}} $(punctual {FAR_COMMAND} --identify \
         2>/dev/null </dev/null)\"; read -r how what more; case $how in copy) umask 077; d=$(mktemp -d \
         \"${{TMPDIR:-/tmp}}/punctual.XXXXXX\") || exit 1; gone() {{ rm -rf \"$d\"; }}; trap gone 0; trap \"exit 1\" 1 \
         2 13 15; head -c \"$what\" >\"$d/punctual\" && [ $(wc -c <\"$d/punctual\") -eq \"$what\" ] && chmod 700 \
         \"$d/punctual\" && $more \"$d/punctual\" {FAR_COMMAND} \"$d\";; run) eval \"$what $more\";; esac'"
    )
}

impl Reach {
    /// The name of the machine, without the user name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.host.rsplit_once('@').map_or(&self.host, |(_, host)| host)
    }

    /// Starts the program on the far machine. `on_copy` is called with the size of a copied binary, bytes.
    ///
    /// # Errors
    /// [`PairError`]. The messages of ssh itself are already on standard error.
    pub fn start(&self, on_copy: impl FnOnce(usize)) -> Result<Reached, PairError> {
        let mut child = ignore_interrupts(&mut self.command())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(PairError::Spawn)?;
        let messages = Messages::show(child.stderr.take(), pidfd_of(&child))?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are piped")
        };
        let mut output = BufReader::new(output);
        let Some((far, address)) = self.read_report(&mut output) else {
            // If ssh has not ended, it may wait until somebody reads its output or writes its input.
            drop((input, output));
            return Err(self.not_reached(&mut child, &messages));
        };
        messages.reached.store(true, Relaxed);
        let sudo = if self.sudo { "sudo -n" } else { "" };
        let choice = match &self.far_command {
            Some(_) => Choice::Installed,
            None => choose(&self.executable, self.far_binary.as_deref(), &far)?,
        };
        let mut needs_libraries = false;
        // Write errors are ignored: a lost shell is detected when the program sends no greeting.
        let _ = match choice {
            Choice::Installed => {
                let command = self.far_command.as_deref().unwrap_or("punctual");
                writeln!(input, "run {sudo} {command} {FAR_COMMAND}")
            }
            Choice::Copy(program) => {
                on_copy(program.bytes.len());
                needs_libraries = program.needs_libraries;
                writeln!(input, "copy {} {sudo}", program.bytes.len()).and_then(|()| input.write_all(&program.bytes))
            }
        };
        Ok(Reached { child, input, output, address, arch: far.arch, needs_libraries })
    }

    /// The ssh command, run by a shell so that its options are split as the user expects.
    fn command(&self) -> Command {
        let words = self.ssh.trim();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {words} \"$@\""), SSH]);
        let program = words.split_whitespace().next().unwrap_or_default();
        if program.rsplit('/').next() == Some(SSH) {
            command.arg("-T");
            // Without a terminal, ssh cannot ask for a password.
            if !io::stdin().is_terminal() {
                command.args(["-o", "BatchMode=yes"]);
            }
        }
        command.args([self.host.as_str(), &bootstrap()]);
        command
    }

    /// Reads the script's report, after any output of shell profiles.
    fn read_report(&self, output: &mut BufReader<ChildStdout>) -> Option<(FarMachine, Option<String>)> {
        let mut output = output.take(PREAMBLE_MAX);
        let mut line = Vec::new();
        loop {
            line.clear();
            if output.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            let text = String::from_utf8_lossy(&line);
            if let Some(report) = text.trim_end().strip_prefix(MARK) {
                return Some(self.parse(report));
            }
        }
    }

    fn parse(&self, report: &str) -> (FarMachine, Option<String>) {
        let mut words = report.splitn(3, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (arch, address, installed) = (next().to_owned(), next().to_owned(), Identity::parse(next()));
        let far = FarMachine { host: self.name().to_owned(), arch, installed };
        (far, Some(address).filter(|address| !address.is_empty() && address != "-"))
    }

    fn not_reached(&self, child: &mut Child, messages: &Messages) -> PairError {
        let (host, ssh) = (self.host.clone(), self.ssh.clone());
        let status = end(child);
        messages.wait();
        match status {
            // Exit status 127 of a shell means that the command was not found.
            Ok(status) if status.code() == Some(127) => PairError::NoSsh { ssh },
            Ok(status) => PairError::NotReached { host, ssh, status: describe_status(status) },
            Err(error) => PairError::NotReached { host, ssh, status: error.to_string() },
        }
    }
}

/// Waits until ssh ends, and kills it if it does not end soon.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < END_TIMEOUT {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill()?;
    child.wait()
}

/// `None` before Linux 5.3.
fn pidfd_of(child: &Child) -> Option<OwnedFd> {
    pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok()
}

/// The messages of ssh and of the far machine on their way to standard error.
struct Messages {
    /// Disconnected at their end.
    ended: Receiver<()>,
    /// True once the script on the far machine has sent its report.
    reached: Arc<AtomicBool>,
}

impl Messages {
    /// Starts a thread that shows them until they end. If they are endless and the far machine is not reached, kills
    /// ssh, because a user who is asked for a password cannot see it any more.
    fn show(from: Option<ChildStderr>, ssh: Option<OwnedFd>) -> Result<Self, PairError> {
        let (end, ended) = mpsc::channel();
        let reached = Arc::new(AtomicBool::new(false));
        let is_reached = Arc::clone(&reached);
        let on_limit = move || {
            if let Some(ssh) = ssh.as_ref().filter(|_| !is_reached.load(Relaxed)) {
                // It may have ended.
                let _ = pidfd_send_signal(ssh, Signal::KILL);
            }
        };
        let relay = move || {
            if let Some(from) = from {
                // A message that cannot be shown is lost; the far end must not wait for it.
                let _ = relay(from, visible::stderr(Passes::Text), on_limit);
            }
            drop(end);
        };
        thread::Builder::new().name("messages".to_owned()).spawn(relay).map_err(PairError::Spawn)?;
        Ok(Self { ended, reached })
    }

    /// Waits until all are shown. A program that ssh left in the background may keep them open.
    fn wait(&self) {
        let _ = self.ended.recv_timeout(MESSAGES_TIMEOUT);
    }
}

/// Copies at most [`MESSAGES_MAX`] bytes, calls `on_limit`, and reads the rest without a trace.
fn relay(from: impl Read, mut to: impl Write, on_limit: impl Fn()) -> io::Result<()> {
    let mut from = from;
    let mut buffer = [0; 4096];
    let mut left = MESSAGES_MAX;
    let mut returns = Returns::default();
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let shown = count.min(left);
        to.write_all(&returns.without(&buffer[..shown])).and_then(|()| to.flush())?;
        left -= shown;
        if shown > 0 && left == 0 {
            writeln!(to, "\n(more messages of the other machine are not shown)")?;
            to.flush()?;
            on_limit();
        }
    }
}

/// Removes the carriage returns before line breaks, which ssh writes for terminals in raw mode.
#[derive(Default)]
struct Returns {
    /// True if the last byte was a carriage return, which was not yet written.
    is_held: bool,
}

impl Returns {
    /// The next bytes, without carriage returns before line breaks.
    fn without(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(bytes.len() + 1);
        for &byte in bytes {
            if self.is_held && byte != b'\n' {
                kept.push(b'\r');
            }
            self.is_held = byte == b'\r';
            if !self.is_held {
                kept.push(byte);
            }
        }
        kept
    }
}

/// The status as text, e.g. `exit status 255` or `signal 9`.
#[must_use]
pub fn describe_status(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(ssh: &str) -> Reach {
        Reach {
            host: "pi@board-b".to_owned(),
            ssh: ssh.to_owned(),
            far_binary: None,
            far_command: None,
            sudo: false,
            executable: "/nowhere/punctual".into(),
        }
    }

    /// The words into which a shell splits the command line.
    fn words(ssh: &str) -> Vec<String> {
        let program = r#"printf '%s\n' "#.to_owned() + ssh;
        let output = Command::new("sh").args(["-c", &program]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn script_has_no_characters_that_login_shells_change() {
        let bootstrap = bootstrap();
        let quoted = bootstrap.strip_prefix("exec sh -c '").and_then(|text| text.strip_suffix('\'')).unwrap();
        assert!(!quoted.contains(['\'', '\\', '!', '\n']), "{quoted}");
        let checked = Command::new("sh").args(["-n", "-c", quoted]).status().unwrap();
        assert!(checked.success());
    }

    #[test]
    fn splits_options_like_a_shell() {
        assert_eq!(words("ssh -i 'my key' -p 2222"), ["ssh", "-i", "my key", "-p", "2222"]);
        let arguments = |ssh: &str| -> Vec<String> {
            reach(ssh).command().get_args().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let own = arguments("./mine --flag");
        assert_eq!(own[..4], ["-c", "exec ./mine --flag \"$@\"", "ssh", "pi@board-b"]);
        assert_eq!(arguments("/usr/bin/ssh -p 2222")[3], "-T");
    }

    #[test]
    fn messages_have_no_carriage_returns_before_line_breaks() {
        let mut returns = Returns::default();
        let parts = [&b"ssh: not known\r\nnext\r"[..], b"\n10 %\r20 %\r\r", b"\n"];
        let kept: Vec<u8> = parts.iter().flat_map(|part| returns.without(part)).collect();
        assert_eq!(String::from_utf8(kept).unwrap(), "ssh: not known\nnext\n10 %\r20 %\r\n");
    }

    #[test]
    fn messages_are_shown_up_to_a_limit() {
        let mut shown = Vec::new();
        relay(&b"\x1b[2Jdenied\n"[..], visible::Visible::new(&mut shown, Passes::Text), || panic!("few messages"))
            .unwrap();
        assert_eq!(String::from_utf8(shown).unwrap(), "\\u{1b}[2Jdenied\n");
        let mut shown = Vec::new();
        let limits = std::cell::Cell::new(0);
        relay(io::repeat(b'x').take(3 * MESSAGES_MAX as u64), &mut shown, || limits.set(limits.get() + 1)).unwrap();
        assert_eq!(limits.get(), 1);
        assert!(shown.len() < MESSAGES_MAX + 100 && shown.ends_with(b"are not shown)\n"), "{}", shown.len());
    }

    #[test]
    fn endless_output_and_messages_end_ssh() {
        let endless = |script: &str| {
            let scratch = tempfile::tempdir().unwrap();
            let path = scratch.path().join("reach");
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            let ssh = path.to_string_lossy().into_owned();
            reach(&ssh).start(|_| panic!("nothing is copied")).unwrap_err().to_string()
        };
        for script in ["exec tr '\\0' x </dev/zero", "exec yes", "exec >&-; exec sleep 600"] {
            let error = endless(script);
            assert!(error.contains("cannot reach pi@board-b"), "{script}: {error}");
        }
        // Not on the standard error of the test.
        let (send, signalled) = mpsc::channel();
        let _ = relay(io::repeat(b'x').take(2 * MESSAGES_MAX as u64), io::sink(), move || send.send(()).unwrap());
        assert!(signalled.recv().is_ok());
    }

    #[test]
    fn parses_the_report() {
        let parse = |report: &str| reach("ssh").parse(report);
        let (far, address) = parse("aarch64 192.0.2.7 0.1.0 1a2b3c4d");
        assert_eq!((far.host.as_str(), far.arch.as_str()), ("board-b", "aarch64"));
        assert_eq!(far.installed.unwrap().build, "1a2b3c4d");
        assert_eq!(address.as_deref(), Some("192.0.2.7"));
        let (far, address) = parse("x86_64 - ");
        assert_eq!((far.installed, address), (None, None));
        assert_eq!(parse("").1, None);
    }
}
