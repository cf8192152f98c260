//! Assertions of all targets: the errors and pages of any file do not control the terminal.

use std::io::Write;

use record::visible::{Passes, Visible, is_hidden};

/// The text behind the filter of standard error. It is written in two pieces.
fn shown(text: &str, passes: Passes) -> String {
    let mut shown = Vec::new();
    let mut filter = Visible::new(&mut shown, passes);
    let (first, second) = text.as_bytes().split_at(text.len() / 2);
    filter.write_all(first).and_then(|()| filter.write_all(second)).expect("memory");
    filter.finish().expect("memory");
    String::from_utf8(shown).expect("the filter writes UTF-8")
}

/// Asserts that an error is not empty, and is harmless behind the filter.
pub fn check_error(error: impl ToString) {
    let error = error.to_string();
    assert!(!error.is_empty());
    let shown = shown(&error, Passes::Text);
    assert!(!shown.contains(is_hidden), "{shown:?}");
}

/// Asserts that a page with colours is harmless without the filter, too.
pub fn check_page(page: &str) {
    assert_eq!(shown(page, Passes::Colours), page);
}

/// Asserts that a text for files has no hidden characters.
pub fn check_file(text: &str) {
    assert!(!text.contains(is_hidden), "{text:?}");
}
