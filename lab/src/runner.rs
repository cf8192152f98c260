//! Runs the tests of one boot inside its guest.

use std::process::ExitCode;

use crate::boots;

/// Runs tests of a boot. Arguments: the boot, and optionally the tests.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((boot, names)) = arguments.split_first() else {
        eprintln!("usage: guest BOOT [TEST...]");
        return ExitCode::from(64);
    };
    let Some(boot) = boots::find(boot) else {
        eprintln!("unknown boot {boot}");
        return ExitCode::from(64);
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut status = ExitCode::SUCCESS;
    for test in boot.wanted(&names) {
        let verdict = test.verdict();
        if verdict.wrong.is_some() {
            status = ExitCode::FAILURE;
        }
        println!("{verdict}");
    }
    status
}
