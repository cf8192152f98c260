//! Responses to an outside judge: tables of outcomes and of the times from question to answer.

use record::{Record, grouped};

use super::figure::{Part, Table};
use crate::response::{outcomes, remarks, times, title};
use crate::round_trip::TIMES;

/// The section of each series of responses.
pub fn sections(record: &Record) -> Vec<Part> {
    let all = record.series.iter().filter_map(|series| Some((series, series.kind.responses()?)));
    let section = |(series, responses)| {
        let outcomes = outcomes(responses);
        let counts = outcomes.iter().map(|(_, count, _)| grouped(*count)).collect();
        let names: Vec<&str> = outcomes.iter().map(|(name, ..)| *name).collect();
        let head: Vec<&str> = ["time"].into_iter().chain(TIMES).collect();
        let row = ["question to answer".to_owned()].into_iter().chain(times(series)).collect();
        Part {
            name: "Responses".to_owned(),
            title: title(responses),
            tables: vec![
                Table::plain("Questions by outcome", &names, vec![counts]),
                Table::plain("From the question to the answer", &head, vec![row]),
            ],
            more: Vec::new(),
            notes: vec![remarks(responses)],
            only_on_screen: false,
        }
    };
    all.map(section).collect()
}
