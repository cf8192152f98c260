//! The machine, and the command line that makes it.

use std::{path::Path, process::Command, time::Duration};

use crate::{Arch, Card, init, initramfs::PUNCTUAL, network};

/// What passes for time in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// Instructions: 4 ns each, on one CPU, and an idle CPU skips to its next timer. What the host does meanwhile cannot be
    /// seen from inside, so that figures repeat within microseconds.
    Virtual,
    /// The host's.
    Real,
    /// The host's, on the host's own CPUs. Never taken unless asked for: that `/dev/kvm` is there does not mean that a
    /// kernel boots on it.
    Kvm,
}

/// A guest: the machine and its kernel's arguments.
#[derive(Debug, Clone)]
pub struct Guest {
    /// CPUs; one alone where time is virtual.
    pub cpus: u32,
    /// What passes for time.
    pub time: Time,
    /// Main memory, MiB.
    pub memory_mib: u32,
    /// Kernel arguments beside our own.
    pub append: String,
    /// Network cards.
    pub cards: Vec<Card>,
    /// More arguments for the emulator: devices.
    pub devices: Vec<String>,
    /// How long it may take by the host's clock.
    pub timeout: Duration,
    /// Whether the kernel says on the console what it does while it boots.
    pub verbose: bool,
    /// The emulator; the one for the kernel's architecture if not given.
    pub emulator: Option<std::path::PathBuf>,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            cpus: 1,
            time: Time::Virtual,
            memory_mib: 512,
            append: String::new(),
            cards: Vec::new(),
            devices: Vec::new(),
            timeout: Duration::from_secs(120),
            verbose: false,
            emulator: None,
        }
    }
}

impl Guest {
    /// The emulator with its arguments.
    pub(crate) fn command(&self, arch: Arch, kernel: &Path, initramfs: &Path) -> Command {
        let mut command = Command::new(self.emulator.as_deref().unwrap_or(Path::new(arch.qemu())));
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"]);
        command.args(["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]);
        let kvm = self.time == Time::Kvm;
        match arch {
            Arch::X86_64 => command.args(["-M", "q35", "-cpu", if kvm { "host" } else { "max" }]),
            Arch::Arm64 => command.args(["-M", "virt,gic-version=3", "-cpu", if kvm { "host" } else { "cortex-a53" }]),
        };
        // On a thread for each CPU, QEMU 7.2 may run code that the kernel has just patched as it was in the moment between:
        // the kernel meets a breakpoint that nobody set, and panics.
        command.args(["-accel", if kvm { "kvm" } else { "tcg,thread=single" }]);
        if self.time == Time::Virtual {
            command.args(["-icount", "shift=2,sleep=off"]);
        }
        command.args(["-smp", &self.cpus.to_string(), "-m", &self.memory_mib.to_string()]);
        command.arg("-kernel").arg(kernel).arg("-initrd").arg(initramfs);
        command.args(["-append", &self.kernel_arguments(arch)]);
        command.args(network::arguments(&self.cards)).args(&self.devices);
        command
    }

    /// What stands after `--` goes to our first process.
    fn kernel_arguments(&self, arch: Arch) -> String {
        let console = match arch {
            Arch::X86_64 => "ttyS0",
            Arch::Arm64 => "ttyAMA0",
        };
        let quiet = if self.verbose { "" } else { " quiet" };
        let append = if self.append.is_empty() { String::new() } else { format!(" {}", self.append) };
        // The emulated serial port interrupts more often than its driver expects: after 150 KB the kernel would say that
        // nobody cared, in the middle of a frame, and switch the interrupt off.
        format!("console={console} panic=-1 noirqdebug{quiet} rdinit={PUNCTUAL}{append} -- {}", init::COMMAND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(guest: &Guest, arch: Arch) -> String {
        let command = guest.command(arch, Path::new("K"), Path::new("I"));
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        format!("{} {}", command.get_program().to_string_lossy(), words.join(" "))
    }

    #[test]
    fn virtual_time_is_one_cpu_that_counts_instructions() {
        let line = words(&Guest { append: "isolcpus=1".to_owned(), ..Guest::default() }, Arch::X86_64);
        assert!(line.starts_with("qemu-system-x86_64 -nodefaults"), "{line}");
        assert!(
            line.contains("-accel tcg,thread=single -icount shift=2,sleep=off -smp 1 -m 512 -kernel K -initrd I"),
            "{line}"
        );
        let append = "-append console=ttyS0 panic=-1 noirqdebug quiet rdinit=/bin/punctual isolcpus=1 -- __guest";
        assert!(line.ends_with(append), "{line}");
    }

    #[test]
    fn real_time_counts_nothing_and_kvm_is_taken_only_when_asked_for() {
        let real = words(&Guest { time: Time::Real, cpus: 2, ..Guest::default() }, Arch::Arm64);
        assert!(real.contains("-cpu cortex-a53 -accel tcg,thread=single -smp 2") && !real.contains("icount"), "{real}");
        assert!(real.contains("console=ttyAMA0"), "{real}");
        let kvm = words(&Guest { time: Time::Kvm, ..Guest::default() }, Arch::X86_64);
        assert!(kvm.contains("-cpu host -accel kvm") && !kvm.contains("icount"), "{kvm}");
    }
}
