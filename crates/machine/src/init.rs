//! The program that starts the services of a machine, for commands that work there.

use crate::Root;

/// A program that starts services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Init {
    /// The program is systemd, which is also assumed if the machine does not show its program.
    Systemd,
    /// The program is OpenRC, as on Alpine and Gentoo.
    OpenRc,
    /// The program is runit, as on Void.
    Runit,
    /// The program runs the scripts in `/etc/init.d`, as System V did: sysvinit, or that of BusyBox.
    Scripts,
}

/// The folders with units of the system: a file in the first one has precedence (systemd.unit(5)).
pub(crate) const SYSTEM_UNITS: [&str; 7] = [
    "etc/systemd/system",
    "run/systemd/system",
    "run/systemd/generator",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
    "run/systemd/generator.late",
];

impl Init {
    /// The program of a machine.
    #[must_use]
    pub fn of(root: &Root) -> Self {
        // The folder of sd_booted(3): OpenRC can be installed without running.
        if root.exists("run/systemd/system") {
            Self::Systemd
        } else if root.exists("run/openrc") {
            Self::OpenRc
        } else if root.exists("run/runit") {
            Self::Runit
        } else if root.exists("etc/init.d") && root.read("proc/1/comm").as_deref() == Some("init") {
            Self::Scripts
        } else {
            Self::Systemd
        }
    }

    /// True if systemd runs on this machine, or is installed in the folder of `--root`, where no process runs.
    #[must_use]
    pub fn has_systemd(root: &Root) -> bool {
        const INSTALLED: [&str; 4] =
            ["usr/lib/systemd/systemd", "lib/systemd/systemd", "usr/lib/systemd/system", "etc/systemd/system"];
        let is_installed = || !root.is_system() && INSTALLED.iter().any(|path| root.exists(path));
        root.exists("run/systemd/system") || Self::of(root) == Self::Systemd && is_installed()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::OpenRc => "OpenRC",
            Self::Runit => "runit",
            Self::Scripts => "scripts in /etc/init.d",
        }
    }

    /// The command that stops a service until the next boot.
    pub(crate) fn stop(self, service: &str) -> String {
        match self {
            Self::Systemd => format!("sudo systemctl stop {service}"),
            Self::OpenRc => format!("sudo rc-service {service} stop"),
            Self::Runit => format!("sudo sv down {service}"),
            Self::Scripts => format!("sudo /etc/init.d/{service} stop"),
        }
    }

    /// The command that restarts a service.
    pub(crate) fn restart(self, service: &str) -> String {
        match self {
            Self::Systemd => format!("sudo systemctl restart {service}"),
            Self::OpenRc => format!("sudo rc-service {service} restart"),
            Self::Runit => format!("sudo sv restart {service}"),
            Self::Scripts => format!("sudo /etc/init.d/{service} restart"),
        }
    }

    /// The command that stops a service, also at the next boots.
    pub(crate) fn disable(self, service: &str) -> String {
        match self {
            Self::Systemd => format!("sudo systemctl disable --now {service}"),
            Self::OpenRc => format!("sudo rc-service {service} stop; sudo rc-update del {service}"),
            Self::Runit => format!("sudo sv down {service}; sudo rm /var/service/{service}"),
            Self::Scripts => format!("sudo /etc/init.d/{service} stop; sudo rm /etc/rc?.d/S??{service}"),
        }
    }
}
