//! The EVL core and its threads, in words.

use record::{EvlCore, Series};

/// What the core is: `ABI 32, on CPUs 2-3`; `stopped` where it does not run.
pub fn core(core: &EvlCore) -> String {
    let abi = core.abi.as_ref().map(|abi| format!("ABI {abi}"));
    let cpus = core.cpus.as_ref().map(|cpus| format!("on CPUs {cpus}"));
    let state = core.state.clone().filter(|state| state != "running");
    [abi, cpus, state].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What a thread's grant has more if it is the core's, beginning with a comma.
pub fn granted(series: &Series) -> String {
    match &series.evl {
        None => String::new(),
        Some(evl) if evl.in_band == 0 => format!(", out-of-band all the time (EVL core, ABI {})", evl.abi),
        Some(evl) => format!(", fell back to Linux {} times (EVL core, ABI {})", evl.in_band, evl.abi),
    }
}

#[cfg(test)]
mod tests {
    use record::EvlThread;

    use super::*;

    #[test]
    fn a_core_and_its_threads_are_told() {
        let text = |text: &str| Some(text.to_owned());
        let running = EvlCore { abi: text("32"), cpus: text("2-3"), state: text("running") };
        assert_eq!(core(&running), "ABI 32, on CPUs 2-3");
        assert_eq!(core(&EvlCore { state: text("stopped"), ..running }), "ABI 32, on CPUs 2-3, stopped");
        let of = |evl| granted(&Series { evl, ..Series::default() });
        assert_eq!(of(None), "");
        assert_eq!(of(Some(EvlThread { abi: 32, in_band: 0 })), ", out-of-band all the time (EVL core, ABI 32)");
        assert_eq!(of(Some(EvlThread { abi: 32, in_band: 2 })), ", fell back to Linux 2 times (EVL core, ABI 32)");
    }
}
