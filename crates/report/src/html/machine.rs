//! The page of a machine: what to change before it is measured.

use askama::Template;
use record::{Finding, FindingState, Machine, visible::escape};

use super::{
    Origin,
    facts::{self, Fact, FindingView},
    figure::Key,
    verdict::Headline,
};
use crate::{style::Ink, terminal};

#[derive(Template)]
#[template(path = "machine.html")]
struct Page<'a> {
    machine: &'a Machine,
    title: String,
    origin: Origin<'a>,
    headline: Headline,
    keys: Vec<Key>,
    ending: &'static str,
    command: &'static str,
    open: Vec<FindingView<'a>>,
    others: Vec<FindingView<'a>>,
    facts: Vec<Fact>,
}

/// Renders the findings about a machine as one HTML document in UTF-8, which loads nothing.
///
/// # Panics
/// Never: writing to a string does not fail.
#[must_use]
pub fn render_machine(machine: &Machine, findings: &[Finding]) -> String {
    let findings = terminal::machine::distinct(findings);
    let (ink, sentence) = terminal::machine::sentence(&findings);
    let (word, class) = match ink {
        Ink::Good => ("AS RECOMMENDED", "pass"),
        Ink::Bad => ("CHANGE SETTINGS", "fail"),
        Ink::Alarm => ("CHECK SETTINGS", "warn"),
        _ => ("UNKNOWN", "inconclusive"),
    };
    let count = |state: FindingState| findings.iter().filter(|finding| finding.state == state).count().to_string();
    let key = |label, state, detail: &str| Key { label, value: count(state), detail: detail.to_owned() };
    let (open, others) = facts::findings(&findings);
    let page = Page {
        machine,
        title: format!("{word}: {}", machine.hostname.as_deref().unwrap_or("unnamed host")),
        origin: Origin {
            host: machine.hostname.as_deref(),
            kernel: machine.kernel.as_deref(),
            preempt: machine.preempt.as_deref(),
            started_at: "",
        },
        headline: Headline { word, class, sentence, reason: String::new() },
        keys: vec![
            key("Cause lateness", FindingState::Fail, "change these first"),
            key("May cause lateness", FindingState::Warn, "measure their effect"),
            key("As recommended", FindingState::Ok, "nothing to do"),
            key("Could not be read", FindingState::Unknown, "not known to be good"),
        ],
        ending: "",
        command: "punctual",
        open,
        others,
        facts: facts::machine(machine),
    };
    escape(page.render().expect("writing to a string does not fail, and the template has no other way to fail"))
}
