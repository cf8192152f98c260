//! The EVL core (Xenomai 4).

use record::EvlCore;

use crate::{CpuList, Root};

const CONTROL: &str = "sys/devices/virtual/evl/control";

/// The state of the EVL core; `None` if the kernel has none.
pub(crate) fn core(root: &Root) -> Option<EvlCore> {
    let file = |name: &str| root.read(&format!("{CONTROL}/{name}"));
    root.exists(CONTROL).then(|| EvlCore { abi: file("abi"), cpus: file("cpus"), state: file("state") })
}

/// The CPUs of the EVL core; `None` if the kernel has none or does not report them.
#[must_use]
pub fn evl_cpus(root: &Root) -> Option<CpuList> {
    core(root)?.cpus?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
