//! Processor architectures of guests.

use std::fmt;

use sys::elf::{EM_AARCH64, EM_X86_64, Elf};

/// A processor architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Arm64,
}

impl Arch {
    /// The architecture of this machine; `None` if guests do not support it.
    #[must_use]
    pub fn of_host() -> Option<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }

    /// The architecture of an ELF file; `None` if guests do not support it.
    #[must_use]
    pub fn of_elf(elf: Elf) -> Option<Self> {
        match elf.machine()? {
            EM_X86_64 => Some(Self::X86_64),
            EM_AARCH64 => Some(Self::Arm64),
            _ => None,
        }
    }

    /// The QEMU program for this architecture.
    #[must_use]
    pub fn qemu(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86_64",
            Self::Arm64 => "qemu-system-aarch64",
        }
    }

    /// The Debian packages with QEMU and the firmware that it loads.
    pub(crate) fn qemu_package(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86 seabios ipxe-qemu",
            Self::Arm64 => "qemu-system-arm",
        }
    }

    /// The path of our static program as built by `make dist`.
    pub(crate) fn dist(self) -> &'static str {
        match self {
            Self::X86_64 => "dist/punctual-x86_64",
            Self::Arm64 => "dist/punctual-aarch64",
        }
    }

    /// The kernel option for a console on the emulated serial port.
    pub(crate) fn console_config(self) -> &'static str {
        match self {
            Self::X86_64 => "CONFIG_SERIAL_8250_CONSOLE",
            Self::Arm64 => "CONFIG_SERIAL_AMBA_PL011_CONSOLE",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X86_64 => "x86-64",
            Self::Arm64 => "arm64",
        })
    }
}
