//! Writes the report of an invented run, as the tests and the picture in `docs/` use it, to standard output; with
//! `--record`, the record: `cargo run -p punctual-report --example sample_report > report.html`

#[path = "../tests/common/blamed.rs"]
mod blamed;
#[allow(dead_code, reason = "the tests need more of it")]
#[path = "../tests/html/sample.rs"]
mod sample;

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let record = sample::typical();
    let wants_record = std::env::args().any(|argument| argument == "--record");
    let bytes = if wants_record { record::file::to_json(&record) } else { report::html::render(&record).into_bytes() };
    io::stdout().write_all(&bytes)
}
