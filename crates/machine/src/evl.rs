//! Real-time cores next to Linux: EVL (Xenomai 4) and Cobalt (Xenomai 3).

use std::{fmt, str::FromStr};

use record::EvlCore;

use crate::{CpuList, Root, kernel::Config};

const CONTROL: &str = "sys/devices/virtual/evl/control";

/// The state of the EVL core; `None` if the kernel has none.
pub(crate) fn core(root: &Root) -> Option<EvlCore> {
    let file = |name: &str| format!("{CONTROL}/{name}");
    root.exists(CONTROL).then(|| EvlCore {
        abi: root.number::<u64>(&file("abi")).map(|abi| abi.to_string()),
        cpus: root.read(&file("cpus")),
        state: root.word(&file("state")).ok(),
    })
}

/// The gravity of the core's clock, as its file has it; `None` if the kernel has none.
pub(crate) fn gravity(root: &Root) -> Option<String> {
    root.text_if("sys/devices/virtual/clock/monotonic/gravity", |text| text.parse::<Gravity>().is_ok()).ok()
}

/// The CPUs of the EVL core; `None` if the kernel has none or does not report them.
#[must_use]
pub fn evl_cpus(root: &Root) -> Option<CpuList> {
    core(root)?.cpus?.parse().ok()
}

/// The version of the Cobalt core; `None` if the kernel has none.
pub(crate) fn cobalt(root: &Root, release: Option<&str>) -> Option<String> {
    if root.exists("proc/xenomai") {
        return Some(root.read("proc/xenomai/version").unwrap_or_else(|| "unknown version".to_owned()));
    }
    let config = Config::read(root, release)?;
    config.has("XENOMAI").then(|| "CONFIG_XENOMAI=y, not started".to_owned())
}

/// The gravity of the core's clock: how much earlier than requested it sets its timers, so that an interrupt handler, a
/// kernel thread or a user thread is reached in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gravity {
    /// For an interrupt handler, ns.
    pub irq_ns: u64,
    /// For a kernel thread, ns.
    pub kernel_ns: u64,
    /// For a user thread, ns.
    pub user_ns: u64,
}

/// A text that is not a [`Gravity`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid gravity `{0}`: expected three values in ns, such as 500i 1000k 2500u")]
pub struct InvalidGravity(String);

impl FromStr for Gravity {
    type Err = InvalidGravity;

    fn from_str(text: &str) -> Result<Self, InvalidGravity> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let ns = |word: &str, suffix| word.strip_suffix(suffix).and_then(|digits: &str| digits.parse().ok());
        match words.as_slice() {
            &[irq, kernel, user] => ns(irq, 'i').zip(ns(kernel, 'k')).zip(ns(user, 'u')),
            _ => None,
        }
        .map(|((irq_ns, kernel_ns), user_ns)| Self { irq_ns, kernel_ns, user_ns })
        .ok_or_else(|| InvalidGravity(text.to_owned()))
    }
}

impl fmt::Display for Gravity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}i {}k {}u", self.irq_ns, self.kernel_ns, self.user_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gravity_parses_as_displayed() {
        let gravity = Gravity { irq_ns: 500, kernel_ns: 1000, user_ns: 2500 };
        assert_eq!("500i 1000k 2500u".parse(), Ok(gravity));
        assert_eq!(gravity.to_string(), "500i 1000k 2500u");
        for text in ["", "500i 1000k", "500 1000 2500", "-1i 0k 0u", "500i 1000u 2500k", "1i 2k 3u 4u"] {
            assert_eq!(text.parse::<Gravity>(), Err(InvalidGravity(text.to_owned())));
        }
    }

    #[test]
    fn recognises_cobalt_started_or_only_built_in() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        assert_eq!(cobalt(&root, Some("5.10.0")), None);
        std::fs::create_dir_all(folder.path().join("boot")).unwrap();
        std::fs::write(folder.path().join("boot/config-5.10.0"), "CONFIG_XENOMAI=y\n").unwrap();
        assert_eq!(cobalt(&root, Some("5.10.0")).as_deref(), Some("CONFIG_XENOMAI=y, not started"));
        std::fs::create_dir_all(folder.path().join("proc/xenomai")).unwrap();
        assert_eq!(cobalt(&root, None).as_deref(), Some("unknown version"));
        std::fs::write(folder.path().join("proc/xenomai/version"), "3.2.1\n").unwrap();
        assert_eq!(cobalt(&root, None).as_deref(), Some("3.2.1"));
    }

    #[test]
    fn reads_abi_level_and_cpus_of_the_core() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        assert_eq!((core(&root), evl_cpus(&root)), (None, None));
        let control = folder.path().join(CONTROL);
        std::fs::create_dir_all(&control).unwrap();
        for (name, text) in [("abi", "32\n"), ("cpus", "2-3\n"), ("state", "running\n")] {
            std::fs::write(control.join(name), text).unwrap();
        }
        let core = core(&root).unwrap();
        assert_eq!(core.abi.zip(core.state), Some(("32".to_owned(), "running".to_owned())));
        assert_eq!(evl_cpus(&root), Some([2, 3].into_iter().collect()));
    }
}
