//! Reads any text as a file of another tool, and shows the record.
#![no_main]

use harmless::{check_error, check_file, check_page};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for format in import::FORMATS {
        match format.read(text, None) {
            Ok(imported) => {
                let record = import::to_record(imported, std::path::Path::new("fuzz"));
                check_page(&report::terminal::summary(&record, &report::Style::plain(), 80));
                check_file(&report::html::render(&record));
            }
            Err(mistake) => check_error(mistake.text),
        }
    }
});
