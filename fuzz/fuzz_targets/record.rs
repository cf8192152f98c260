//! Parses any bytes as a record, judges and renders it in every form, and writes it without loss.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut record) = record::file::parse(bytes) else { return };
    let again = record::file::parse(&record::file::to_json(&record)).expect("a written record can be parsed");
    assert_eq!(again, record);
    record.uses = analysis::ladder(&record);
    record.verdict = analysis::verdict(&record, &record.uses);
    let style = report::Style::plain();
    let _ = (report::terminal::summary(&record, &style, 80), report::terminal::overview(&record, &style, 80));
    let _ = (report::terminal::blame(&record, &style, 80), report::terminal::spike(&record, 1, &style, 80));
    let _ = (report::html::render(&record), record::export::csv(&record), record::export::hgrm(&record));
    let _ = blame::perfetto(&record);
});
