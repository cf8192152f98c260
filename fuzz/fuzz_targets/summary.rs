//! Parses any bytes as the document of a campaign, renders it, and writes it without loss.
#![no_main]

use harmless::{check_error, check_file, check_page};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let campaign = match record::file::parse_campaign(bytes) {
        Ok(campaign) => campaign,
        Err(error) => return check_error(error),
    };
    let json = record::file::campaign_to_json(&campaign);
    assert_eq!(record::file::parse_campaign(&json), Ok(campaign.clone()));
    for style in [report::Style::plain(), report::Style { color: true, unicode: true }] {
        check_page(&report::terminal::campaign(&campaign, &style, 80));
        check_page(&report::terminal::campaign_plan(&campaign, "folder", &style, 80));
    }
    check_file(&report::html::render_campaign(&campaign));
    check_file(&String::from_utf8(json).expect("JSON is UTF-8"));
});
