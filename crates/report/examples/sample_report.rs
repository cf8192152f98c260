//! Writes the report of an invented run to standard output, as used by the tests and the picture in `docs/`; with
//! `--record`, the record: `cargo run -p punctual-report --example sample_report > report.html`
//!
//! The picture shows the first screen and the histogram. It is a screenshot of that file with
//! `<style>nav,#percentiles,#maxima,#spikes,#charts details,#charts ~ section,footer{display:none}</style>` in its head: `chromium
//! --headless --hide-scrollbars --window-size=1000,1600 --screenshot=docs/report.png report.html`.

#[path = "../tests/common/blamed.rs"]
mod blamed;
#[allow(dead_code, reason = "other parts are used by the tests")]
#[path = "../tests/html/sample.rs"]
mod sample;

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let record = sample::typical();
    let wants_record = std::env::args().any(|argument| argument == "--record");
    let bytes = if wants_record { record::file::to_json(&record) } else { report::html::render(&record).into_bytes() };
    io::stdout().write_all(&bytes)
}
