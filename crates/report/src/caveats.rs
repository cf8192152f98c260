//! The caveats of a run, the same in the terminal and in exports.

use record::{BlameMode, Caveat, Record};

use crate::blame::{explains, remarks};
use crate::words::Words;

/// The kind of the doubts about culprits.
const CULPRITS: &str = "culprits";

/// A reason why figures or culprits are less certain than they look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// A name for programs, as in [`Caveat`].
    pub kind: String,
    /// One sentence; it ends with a colon if a command follows.
    pub text: String,
    /// The command that removes the doubt; can be empty.
    pub command: String,
}

impl Doubt {
    /// The text with its command, for readers without a place for commands.
    pub(crate) fn in_full(&self) -> String {
        match self.command.as_str() {
            "" => self.text.clone(),
            command => format!("{} `{command}`", self.text),
        }
    }
}

/// The doubts about the culprits; none if the culprits do not explain the answer.
pub(crate) fn of_culprits(record: &Record) -> Vec<Doubt> {
    let blame = record.blame.as_ref().filter(|blame| blame.mode != BlameMode::Off && explains(record));
    let remarks = blame.map_or_else(Vec::new, |blame| remarks(blame, Words::of(record)));
    let doubts = remarks.into_iter().filter(|remark| remark.doubt);
    doubts.map(|remark| Doubt { kind: CULPRITS.to_owned(), text: remark.text, command: remark.command }).collect()
}

/// The doubts about the culprits, then the caveats of the record. A caveat that is also a reason of an invalid run is left out.
pub(crate) fn of_run(record: &Record) -> Vec<Doubt> {
    let caveat =
        |caveat: &Caveat| Doubt { kind: caveat.kind.clone(), text: caveat.text.clone(), command: String::new() };
    let is_reason = |caveat: &&Caveat| record.validity.reasons.iter().any(|reason| reason.text == caveat.text);
    let caveats = record.caveats.iter().filter(|caveat| !is_reason(caveat));
    of_culprits(record).into_iter().chain(caveats.map(caveat)).collect()
}

#[cfg(test)]
mod tests {
    use record::{Blame, Validity};

    use super::*;

    #[test]
    fn a_caveat_that_is_a_reason_is_not_repeated() {
        let text = "the source pps:pps0 failed during the run: the device was removed".to_owned();
        let reason = record::Reason { id: "pacer.failed".to_owned(), text: text.clone(), remedy: String::new() };
        let caveats = [text, "the host took time".to_owned()].map(|text| Caveat { kind: "gone".to_owned(), text });
        let validity = Validity { valid: false, reasons: vec![reason] };
        let record = Record { validity, caveats: caveats.into(), ..Record::default() };
        let texts: Vec<_> = of_run(&record).into_iter().map(|doubt| doubt.text).collect();
        assert_eq!(texts, ["the host took time"]);
    }

    #[test]
    fn doubts_about_culprits_come_before_the_caveats_of_the_record() {
        let record = Record {
            validity: Validity { valid: true, ..Validity::default() },
            blame: Some(Blame { mode: BlameMode::Trace, spikes: 9, incomplete: 2, ..Blame::default() }),
            caveats: vec![Caveat { kind: "steal".to_owned(), text: "the host took time".to_owned() }],
            ..Record::default()
        };
        let texts: Vec<String> =
            of_run(&record).iter().map(|doubt| format!("{}: {}", doubt.kind, doubt.text)).collect();
        assert_eq!(
            texts,
            [
                "culprits: For 2 of 9 spikes, events are missing: their culprits may be incomplete.",
                "steal: the host took time"
            ]
        );
    }
}
