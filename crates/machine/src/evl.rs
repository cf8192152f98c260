//! The EVL core (Xenomai 4), where the kernel has one.

use record::EvlCore;

use crate::{CpuList, Root};

const CONTROL: &str = "sys/devices/virtual/evl/control";

/// What the core tells of itself; `None` where there is none.
pub(crate) fn core(root: &Root) -> Option<EvlCore> {
    let file = |name: &str| root.read(&format!("{CONTROL}/{name}"));
    root.exists(CONTROL).then(|| EvlCore { abi: file("abi"), cpus: file("cpus"), state: file("state") })
}

/// CPUs that the core schedules threads on; `None` where there is none, or it does not tell.
#[must_use]
pub fn evl_cpus(root: &Root) -> Option<CpuList> {
    core(root)?.cpus?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_tells_its_level_and_its_cpus() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        assert_eq!((core(&root), evl_cpus(&root)), (None, None));
        let control = folder.path().join(CONTROL);
        std::fs::create_dir_all(&control).unwrap();
        for (name, text) in [("abi", "32\n"), ("cpus", "2-3\n"), ("state", "running\n")] {
            std::fs::write(control.join(name), text).unwrap();
        }
        let told = core(&root).unwrap();
        assert_eq!(told.abi.zip(told.state), Some(("32".to_owned(), "running".to_owned())));
        assert_eq!(evl_cpus(&root), Some([2, 3].into_iter().collect()));
    }
}
