//! Parses any text as a reference, and compares it with a published one in both directions, as `--against` does.
#![no_main]

use harmless::{check_error, check_file, check_page};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut reference = match analysis::reference::parse("fuzz", text) {
        Ok(reference) => reference,
        Err((_, error)) => return check_error(error),
    };
    // One of them for each input, because rendering takes most of the time.
    let published = &analysis::references()[text.len() % analysis::references().len()];
    let mut record = published.clone();
    record.against = vec![analysis::compare(&record, &reference, "fuzz")];
    check_page(&report::terminal::summary(&record, &report::Style::plain(), 80));
    reference.against = vec![analysis::compare(&reference, published, "published")];
    for style in [report::Style::plain(), report::Style { color: true, unicode: true }] {
        check_page(&report::terminal::summary(&reference, &style, 80));
    }
    check_file(&report::html::render(&reference));
});
