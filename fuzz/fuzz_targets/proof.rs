//! Parses any bytes as the document of a search, draws its conclusions, renders it, and writes it without loss.
#![no_main]

use harmless::{check_error, check_file, check_page};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut proof = match record::file::parse_proof(bytes) {
        Ok(proof) => proof,
        Err(error) => return check_error(error),
    };
    let json = record::file::proof_to_json(&proof);
    assert_eq!(record::file::parse_proof(&json), Ok(proof.clone()));
    for style in [report::Style::plain(), report::Style { color: true, unicode: true }] {
        check_page(&report::terminal::proof(&proof, true, &style, 80));
    }
    proof.conclusion = Some(analysis::prove::conclude(&proof));
    check_page(&report::terminal::proof(&proof, false, &report::Style::plain(), 80));
    check_file(&report::html::render_proof(&proof));
    check_file(&String::from_utf8(json).expect("JSON is UTF-8"));
});
