//! The pages of every kind in Chromium, driven by WebDriver: structure, contrast, widths, printing.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{browser::run, kinds, webdriver::Browser};

/// Returns the problems of the page, one sentence each.
const AUDIT: &str = include_str!("audit.js");
/// The largest number of printed pages.
const PAGES: u64 = 4;

#[test]
fn pages_of_every_kind_are_complete_readable_and_short() {
    let dir = tempfile::tempdir().expect("a temporary folder can be made");
    let browser = Browser::open("about:blank");
    let mut problems = Vec::new();
    for (kind, html) in kinds::all() {
        let page = dir.path().join(format!("{kind}.html"));
        fs::write(&page, html).expect("the temporary folder can be written");
        for (width, theme) in [(390, "light"), (390, "dark"), (1400, "light"), (1400, "dark")] {
            let size = json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": false });
            devtools(&browser, "Emulation.setDeviceMetricsOverride", &size);
            let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
            devtools(&browser, "Emulation.setEmulatedMedia", &media);
            browser.visit(&format!("file://{}", page.display()));
            let found = browser.script(AUDIT);
            let found = found.as_array().expect("the audit returns a list").iter().map(Value::to_string);
            problems.extend(found.map(|problem| format!("{kind}, {width} px, {theme}: {problem}")));
        }
        problems.extend(browser.complaints().into_iter().map(|complaint| format!("{kind}: {complaint}")));
        let pages = printed_pages(&browser, &dir.path().join("page.pdf"));
        if pages > PAGES {
            problems.push(format!("{kind}: {pages} printed pages"));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Runs a command of the Chrome DevTools protocol and returns its result.
fn devtools(browser: &Browser, method: &str, parameters: &Value) -> Value {
    browser.command("/goog/cdp/execute", &json!({ "cmd": method, "params": parameters }))
}

/// Prints the page on the paper that its style asks for, as PDF.
fn print(browser: &Browser, file: &Path) {
    let printed = devtools(browser, "Page.printToPDF", &json!({ "printBackground": true, "preferCSSPageSize": true }));
    let encoded = printed["data"].as_str().expect("a PDF in Base64");
    let out = File::create(file).expect("a writable file");
    let mut decoder = Command::new("base64").arg("--decode").stdin(Stdio::piped()).stdout(out).spawn().expect("base64");
    decoder.stdin.take().expect("it is piped").write_all(encoded.as_bytes()).expect("base64 reads");
    assert!(decoder.wait().expect("base64 ends").success(), "valid Base64");
}

/// Prints the page and returns the number of sheets.
fn printed_pages(browser: &Browser, pdf: &Path) -> u64 {
    devtools(browser, "Emulation.setEmulatedMedia", &json!({ "features": [] }));
    print(browser, pdf);
    let (facts, _) = run("pdfinfo", "poppler-utils", &[&pdf.display().to_string()]);
    let pages = facts.lines().find_map(|line| line.strip_prefix("Pages:")).expect("pdfinfo prints the number of pages");
    pages.trim().parse().expect("a number")
}

#[test]
fn folded_sections_open_for_links_and_on_paper() {
    let dir = tempfile::tempdir().expect("a temporary folder can be made");
    let page = dir.path().join("page.html");
    fs::write(&page, report::html::render(&crate::sample::typical())).expect("the temporary folder can be written");
    let browser = Browser::open(&format!("file://{}", page.display()));
    assert_eq!(browser.script("return document.querySelector('#machine .fold').open"), false, "folded at first");
    browser.click("nav a[href='#machine']");
    assert_eq!(browser.script("return document.querySelector('#machine .fold').open"), true, "opened by its link");
    let pdf = dir.path().join("page.pdf");
    print(&browser, &pdf);
    let (text, _) = run("pdftotext", "poppler-utils", &["-layout", &pdf.display().to_string(), "-"]);
    for folded in ["Requested and granted", "timer slack", "61,204,113", "scaling_governor"] {
        assert!(text.contains(folded), "{folded} on paper");
    }
}
