//! Real-time cores next to Linux, and their threads, as text.

use record::{EvlCore, Series, grouped};

use crate::words::cpus;

/// The core's version, CPUs and state: `ABI 32, on CPUs 2-3`; with `stopped` if it does not run.
pub fn core(core: &EvlCore) -> String {
    let abi = core.abi.as_ref().map(|abi| format!("ABI {abi}"));
    let cpus = core.cpus.as_ref().map(|list| format!("on {}", cpus(list)));
    let state = core.state.clone().filter(|state| state != "running");
    [abi, cpus, state].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The Cobalt core of Xenomai 3 with its version.
pub fn cobalt(version: &str) -> String {
    format!("Xenomai 3 ({version}), measured in-band only")
}

/// The suffix of a thread's grant for threads of the EVL core, starting with a comma; empty for other threads.
pub fn granted(series: &Series) -> String {
    match &series.evl {
        None => String::new(),
        Some(evl) if evl.in_band == 0 => format!(", always out-of-band (EVL core, ABI {})", evl.abi),
        Some(evl) => {
            format!(", fell back to Linux {} times (EVL core, ABI {})", grouped(evl.in_band), evl.abi)
        }
    }
}

#[cfg(test)]
mod tests {
    use record::EvlThread;

    use super::*;

    #[test]
    fn describes_a_core_and_its_threads() {
        let text = |text: &str| Some(text.to_owned());
        let running = EvlCore { abi: text("32"), cpus: text("2-3"), state: text("running") };
        assert_eq!(core(&running), "ABI 32, on CPUs 2-3");
        assert_eq!(core(&EvlCore { state: text("stopped"), ..running }), "ABI 32, on CPUs 2-3, stopped");
        let of = |evl| granted(&Series { evl, ..Series::default() });
        assert_eq!(of(None), "");
        assert_eq!(of(Some(EvlThread { abi: 32, in_band: 0 })), ", always out-of-band (EVL core, ABI 32)");
        assert_eq!(of(Some(EvlThread { abi: 32, in_band: 2 })), ", fell back to Linux 2 times (EVL core, ABI 32)");
    }
}
