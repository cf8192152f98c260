//! The QEMU command line.

use std::{path::Path, process::Command, time::Duration};

use crate::{Arch, Card, init, initramfs::PUNCTUAL, network};

/// The clock of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// Virtual time: 4 ns per instruction on one CPU; an idle CPU skips to its next timer. The host's load is invisible
    /// inside, so figures are reproducible within microseconds.
    Virtual,
    /// The host's clock, with emulated CPUs.
    Real,
    /// The host's clock and CPUs. Used only on request, because an existing `/dev/kvm` does not mean that a kernel
    /// boots with it.
    Kvm,
}

/// The machine of a guest and its kernel's arguments.
#[derive(Debug, Clone)]
pub struct Guest {
    /// Number of CPUs; must be 1 with virtual time.
    pub cpus: u32,
    /// The clock.
    pub time: Time,
    /// Main memory, MiB.
    pub memory_mib: u32,
    /// Additional kernel arguments.
    pub append: String,
    /// Network cards.
    pub cards: Vec<Card>,
    /// Additional QEMU arguments for devices.
    pub devices: Vec<String>,
    /// Timeout on the host's clock.
    pub timeout: Duration,
    /// True if the kernel prints its boot messages to the console.
    pub verbose: bool,
    /// The QEMU program; by default the one for the kernel's architecture.
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
    /// The QEMU command line.
    pub(crate) fn command(&self, arch: Arch, kernel: &Path, initramfs: &Path) -> Command {
        let mut command = Command::new(self.emulator.as_deref().unwrap_or(Path::new(arch.qemu())));
        command.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"]);
        command.args(["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]);
        let kvm = self.time == Time::Kvm;
        match arch {
            Arch::X86_64 => command.args(["-M", "q35", "-cpu", if kvm { "host" } else { "max" }]),
            Arch::Arm64 => command.args(["-M", "virt,gic-version=3", "-cpu", if kvm { "host" } else { "cortex-a53" }]),
        };
        // With one thread per CPU, QEMU 7.2 may execute kernel code in the middle of being patched. The kernel then
        // panics on an unexpected breakpoint.
        command.args(["-accel", if kvm { "kvm" } else { "tcg,thread=single" }]);
        if self.time == Time::Virtual {
            // The real-time clock counts virtual seconds, too.
            command.args(["-icount", "shift=2,sleep=off", "-rtc", "clock=vm"]);
        }
        command.args(["-smp", &self.cpus.to_string(), "-m", &self.memory_mib.to_string()]);
        command.arg("-kernel").arg(kernel).arg("-initrd").arg(initramfs);
        command.args(["-append", &self.kernel_arguments(arch)]);
        command.args(network::arguments(&self.cards)).args(&self.devices);
        command
    }

    /// The kernel passes the arguments after `--` to the first process.
    fn kernel_arguments(&self, arch: Arch) -> String {
        let console = match arch {
            Arch::X86_64 => "ttyS0",
            Arch::Arm64 => "ttyAMA0",
        };
        let quiet = if self.verbose { "" } else { " quiet" };
        let append = if self.append.is_empty() { String::new() } else { format!(" {}", self.append) };
        // The measurement inside reads this argument, because nothing in a guest shows how its time passes.
        let emulation = match self.time {
            Time::Virtual => " punctual.emulation=virtual-time",
            Time::Real => " punctual.emulation=software",
            Time::Kvm => "",
        };
        // noirqdebug: the emulated serial port raises more interrupts than its driver expects. After 150 KB the kernel
        // would print "nobody cared" inside a frame and disable the interrupt.
        format!(
            "console={console} panic=-1 noirqdebug{quiet} rdinit={PUNCTUAL}{emulation}{append} -- {}",
            init::COMMAND
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_line(guest: &Guest, arch: Arch) -> String {
        let command = guest.command(arch, Path::new("K"), Path::new("I"));
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        format!("{} {}", command.get_program().to_string_lossy(), words.join(" "))
    }

    #[test]
    fn virtual_time_counts_instructions_on_one_cpu() {
        let line = command_line(&Guest { append: "isolcpus=1".to_owned(), ..Guest::default() }, Arch::X86_64);
        assert!(line.starts_with("qemu-system-x86_64 -nodefaults"), "{line}");
        assert!(
            line.contains(
                "-accel tcg,thread=single -icount shift=2,sleep=off -rtc clock=vm -smp 1 -m 512 -kernel K -initrd I"
            ),
            "{line}"
        );
        let append = "-append console=ttyS0 panic=-1 noirqdebug quiet rdinit=/bin/punctual \
                      punctual.emulation=virtual-time isolcpus=1 -- __guest";
        assert!(line.ends_with(append), "{line}");
    }

    #[test]
    fn real_time_has_no_icount_and_kvm_is_used_on_request() {
        let real = command_line(&Guest { time: Time::Real, cpus: 2, ..Guest::default() }, Arch::Arm64);
        assert!(real.contains("-cpu cortex-a53 -accel tcg,thread=single -smp 2") && !real.contains("icount"), "{real}");
        assert!(real.contains("console=ttyAMA0"), "{real}");
        let kvm = command_line(&Guest { time: Time::Kvm, ..Guest::default() }, Arch::X86_64);
        assert!(kvm.contains("-cpu host -accel kvm") && !kvm.contains("icount"), "{kvm}");
    }
}
