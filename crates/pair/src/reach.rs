//! ssh, and the shell at its other end: which machine it is, a copy of the program there, and its start.
//!
//! All of it is one connection, so that a password is asked for once. The shell says what the machine is, and is told what
//! to do: to take in a program and run it, or to run a command. What it took in is gone at the end, whatever the end is; the
//! program itself removes it first thing.

use std::{
    io::{BufRead, BufReader, IsTerminal, Read, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
};

use sys::child::ignore_interrupts;

use crate::{
    FAR_COMMAND, PairError,
    binary::{Choice, Identity, There, choose},
};

/// How the other machine is reached, and what runs there.
#[derive(Debug, Clone)]
pub struct Reach {
    /// `HOST` or `USER@HOST`.
    pub host: String,
    /// The command that reaches it, as a shell reads it.
    pub ssh: String,
    /// The program to copy, where the user named one.
    pub far_binary: Option<PathBuf>,
    /// What to run instead of a copy.
    pub far_command: Option<String>,
    /// Whether it is started with sudo.
    pub sudo: bool,
    /// This program.
    pub executable: PathBuf,
}

/// The other machine with our program started on it.
#[derive(Debug)]
pub struct Reached {
    /// ssh.
    pub child: Child,
    /// What the program hears.
    pub input: ChildStdin,
    /// What it says.
    pub output: BufReader<ChildStdout>,
    /// The address that ssh reached, as that machine sees it.
    pub address: Option<String>,
}

/// What the shell's line begins with; before it, people's profiles may say what they like.
const MARK: &str = "punctual-pair ";
/// How much of that is listened to, bytes.
const NOISE_MAX: u64 = 64 << 10;
/// For a program of one's own that does what ssh does, nothing is known of its options.
const SSH: &str = "ssh";

/// What the far shell does. One line without single quotes, backslashes and exclamation marks, so that every login shell hands
/// it on as it is.
fn bootstrap() -> String {
    format!(
        "exec sh -c 'set -- $SSH_CONNECTION; \
         echo \"{MARK}$(uname -m) ${{3:--}} $(punctual {FAR_COMMAND} --identify 2>/dev/null </dev/null)\"; \
         read -r how what more; \
         case $how in \
         copy) umask 077; d=$(mktemp -d \"${{TMPDIR:-/tmp}}/punctual.XXXXXX\") || exit 1; \
         gone() {{ rm -rf \"$d\"; }}; trap gone 0; trap \"exit 1\" 1 2 13 15; \
         head -c \"$what\" >\"$d/punctual\" && [ $(wc -c <\"$d/punctual\") -eq \"$what\" ] && chmod 700 \"$d/punctual\" && $more \"$d/punctual\" {FAR_COMMAND} \"$d\";; \
         run) eval \"$what $more\";; \
         esac'"
    )
}

impl Reach {
    /// The name of the machine, without a user.
    #[must_use]
    pub fn name(&self) -> &str {
        self.host.rsplit_once('@').map_or(&self.host, |(_, host)| host)
    }

    /// Starts the program there; `tell` is told what is copied, bytes.
    ///
    /// # Errors
    /// [`PairError`]; what ssh has to say stands on standard error already.
    pub fn start(&self, tell: impl FnOnce(usize)) -> Result<Reached, PairError> {
        let mut child = ignore_interrupts(&mut self.command())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(PairError::Spawn)?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(self.not_reached(&mut child));
        };
        let mut output = BufReader::new(output);
        let Some((there, address)) = self.greeting(&mut output) else { return Err(self.not_reached(&mut child)) };
        let sudo = if self.sudo { "sudo -n" } else { "" };
        let choice = match &self.far_command {
            Some(_) => Choice::Installed,
            None => choose(&self.executable, self.far_binary.as_deref(), &there)?,
        };
        // A shell that is gone shows when the program says nothing.
        let _ = match choice {
            Choice::Installed => {
                let command = self.far_command.as_deref().unwrap_or("punctual");
                writeln!(input, "run {sudo} {command} {FAR_COMMAND}")
            }
            Choice::Copy(program) => {
                tell(program.len());
                writeln!(input, "copy {} {sudo}", program.len()).and_then(|()| input.write_all(&program))
            }
        };
        Ok(Reached { child, input, output, address })
    }

    /// The program that is to reach it, through a shell, which splits its options as the user expects.
    fn command(&self) -> Command {
        let words = self.ssh.trim();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {words} \"$@\""), SSH]);
        let program = words.split_whitespace().next().unwrap_or_default();
        if program.rsplit('/').next() == Some(SSH) {
            command.arg("-T");
            // Nobody is there to be asked.
            if !std::io::stdin().is_terminal() {
                command.args(["-o", "BatchMode=yes"]);
            }
        }
        command.args([self.host.as_str(), &bootstrap()]);
        command
    }

    /// What the shell there says, behind the noise of people's profiles.
    fn greeting(&self, output: &mut BufReader<ChildStdout>) -> Option<(There, Option<String>)> {
        let mut output = output.take(NOISE_MAX);
        let mut line = Vec::new();
        loop {
            line.clear();
            if output.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            let text = String::from_utf8_lossy(&line);
            if let Some(told) = text.trim_end().strip_prefix(MARK) {
                return Some(self.parse(told));
            }
        }
    }

    fn parse(&self, told: &str) -> (There, Option<String>) {
        let mut words = told.splitn(3, ' ');
        let mut next = || words.next().unwrap_or_default();
        let (arch, address, installed) = (next().to_owned(), next().to_owned(), Identity::parse(next()));
        let there = There { host: self.name().to_owned(), arch, installed };
        (there, Some(address).filter(|address| !address.is_empty() && address != "-"))
    }

    fn not_reached(&self, child: &mut Child) -> PairError {
        let (host, ssh) = (self.host.clone(), self.ssh.clone());
        match child.wait() {
            // How a shell says that there is no such program.
            Ok(status) if status.code() == Some(127) => PairError::NoSsh { ssh },
            Ok(status) => PairError::NotReached { host, ssh, status: in_words(status) },
            Err(error) => PairError::NotReached { host, ssh, status: error.to_string() },
        }
    }
}

/// `exit status 255`, `signal 9`.
#[must_use]
pub fn in_words(status: ExitStatus) -> String {
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

    /// The words that the program is started with, as a shell makes them of its own.
    fn words(ssh: &str) -> Vec<String> {
        let program = r#"printf '%s\n' "#.to_owned() + ssh;
        let output = Command::new("sh").args(["-c", &program]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_login_shell_can_hand_it_on() {
        let bootstrap = bootstrap();
        let quoted = bootstrap.strip_prefix("exec sh -c '").and_then(|text| text.strip_suffix('\'')).unwrap();
        assert!(!quoted.contains(['\'', '\\', '!', '\n']), "{quoted}");
        let checked = Command::new("sh").args(["-n", "-c", quoted]).status().unwrap();
        assert!(checked.success());
    }

    #[test]
    fn options_are_split_as_a_shell_does() {
        assert_eq!(words("ssh -i 'my key' -p 2222"), ["ssh", "-i", "my key", "-p", "2222"]);
        let arguments = |ssh: &str| -> Vec<String> {
            reach(ssh).command().get_args().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let own = arguments("./mine --flag");
        assert_eq!(own[..4], ["-c", "exec ./mine --flag \"$@\"", "ssh", "pi@board-b"]);
        assert_eq!(arguments("/usr/bin/ssh -p 2222")[3], "-T");
    }

    #[test]
    fn a_greeting_tells_machine_address_and_what_is_installed() {
        let parse = |told: &str| reach("ssh").parse(told);
        let (there, address) = parse("aarch64 192.0.2.7 0.1.0 1a2b3c4d");
        assert_eq!((there.host.as_str(), there.arch.as_str()), ("board-b", "aarch64"));
        assert_eq!(there.installed.unwrap().build, "1a2b3c4d");
        assert_eq!(address.as_deref(), Some("192.0.2.7"));
        let (there, address) = parse("x86_64 - ");
        assert_eq!((there.installed, address), (None, None));
        assert_eq!(parse("").1, None);
    }
}
