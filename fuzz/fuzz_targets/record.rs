//! Parses any bytes as a record, judges and renders it in every form, and writes it without loss.
#![no_main]

use harmless::{check_error, check_file, check_page};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut record = match record::file::parse(bytes) {
        Ok(record) => record,
        Err(error) => return check_error(error),
    };
    let again = record::file::parse(&record::file::to_json(&record)).expect("a written record can be parsed");
    assert_eq!(again, record);
    record.uses = analysis::ladder(&record);
    record.verdict = analysis::verdict(&record, &record.uses);
    for style in [report::Style::plain(), report::Style { color: true, unicode: true }] {
        check_page(&report::terminal::summary(&record, &style, 80));
        check_page(&report::terminal::overview(&record, &style, 80));
        check_page(&report::terminal::blame(&record, &style, 80));
        check_page(&report::terminal::spike(&record, 1, &style, 80).unwrap_or_default());
    }
    for format in report::export::Format::OF_RECORDS {
        let export = format.record(&record);
        check_file(&String::from_utf8(export).expect("an export is UTF-8"));
    }
    let _ = blame::perfetto(&record);
});
