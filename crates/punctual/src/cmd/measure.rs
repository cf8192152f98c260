//! `punctual measure`: one file a probe.

mod timer;

use crate::cli::Measure;

pub fn run(what: &Measure) -> anyhow::Result<u8> {
    match what {
        Measure::Timer(options) => timer::run(options),
    }
}
