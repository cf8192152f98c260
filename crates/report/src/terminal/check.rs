//! The result of checking one part of the machine.

use record::{Finding, FindingState};

use super::{
    machine::{all_findings, distinct, headline},
    page::Page,
};
use crate::style::{Ink, Style};

/// Width of the column of fact names.
const NAMES: usize = 10;

/// The output of `punctual check --full`: named facts about the part called `title`, and all findings, worst first. Empty
/// facts are left out, and equal findings are printed once.
///
/// For width and text, see [`overview`](super::overview).
#[must_use]
pub fn check(title: &str, facts: &[(&str, String)], findings: &[Finding], style: &Style, width: usize) -> String {
    let mut page = Page::new(*style, width);
    headline(&mut page, findings);
    page.heading(title);
    for (name, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        page.fact(name, NAMES, text);
    }
    all_findings(&mut page, findings);
    page.gap();
    page.text(Ink::Plain, &sum(&distinct(findings)));
    page.finish()
}

/// `2 fail, 5 warn, 1 unknown of 38 findings`.
fn sum(findings: &[Finding]) -> String {
    let states = [(FindingState::Fail, "fail"), (FindingState::Warn, "warn"), (FindingState::Unknown, "unknown")];
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let words = states.map(|(state, word)| format!("{} {word}", count(state)));
    format!("{} of {} findings", words.join(", "), findings.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_findings_are_printed_and_counted_once() {
        let finding = |id: &str, evidence: &str| Finding {
            id: id.to_owned(),
            title: "no link of its own".to_owned(),
            evidence: evidence.to_owned(),
            ..Finding::default()
        };
        let findings = [finding("nic.speed", "ip link"), finding("nic.duplex", "ip link"), finding("nic.mtu", "mtu")];
        let style = Style { color: false, unicode: false };
        let page = check("Interface eth0", &[], &findings, &style, 80);
        assert_eq!(page.matches("no link of its own").count(), 2, "{page}");
        assert!(page.contains("of 2 findings"), "{page}");
    }

    #[test]
    fn each_answer_of_check_counts_the_same() {
        let unread = |id: &str| Finding {
            id: id.to_owned(),
            state: FindingState::Unknown,
            title: "not readable".to_owned(),
            ..Finding::default()
        };
        let findings = [unread("cpu.tick"), unread("cpu.workqueues")];
        let style = Style { color: false, unicode: false };
        let pages = [
            super::super::findings(&findings, &style, 80),
            super::super::machine_headline(&findings, &style, 80),
            check("Interface eth0", &[], &findings, &style, 80),
        ];
        for page in pages {
            assert!(page.contains("unknown: 1."), "{page}");
        }
    }

    #[test]
    fn a_remedy_of_two_findings_is_printed_once_and_named_again() {
        let finding = |id: &str| Finding {
            id: id.to_owned(),
            title: format!("limit of {id}"),
            remedy: "log in again".to_owned(),
            ..Finding::default()
        };
        let style = Style { color: false, unicode: false };
        let page = check("Rights", &[], &[finding("rights.memlock"), finding("rights.priority")], &style, 80);
        assert_eq!((page.matches("log in again").count(), page.matches("remedy: as above").count()), (1, 1), "{page}");
    }
}
