//! Converts an analysis to a run record.

use record::{CAPTURE, Phase, Record, SCHEMA, Scenario, State, Tool, Validity};

use crate::Analysis;

/// The record of an analysis, made by `command`. The caller sets the times of start and writing.
#[must_use]
pub fn to_record(analysis: Analysis, command: Vec<String>) -> Record {
    let Analysis { capture, series, caveats } = analysis;
    let phase = Phase {
        name: series.phase.clone(),
        period_ns: capture.period.nominal_ns,
        duration_ns: capture.duration_ns,
        ..Phase::default()
    };
    Record {
        schema: SCHEMA.into(),
        tool: Tool { name: "punctual".into(), version: env!("CARGO_PKG_VERSION").into() },
        state: State::Complete,
        command,
        scenario: Scenario {
            probe: CAPTURE.into(),
            clock: "that of the capture".into(),
            threshold_ns: capture.tolerance_ns.cast_signed(),
            ..Scenario::default()
        },
        phases: vec![phase],
        series: vec![series],
        validity: Validity { valid: true, reasons: Vec::new() },
        caveats,
        capture: Some(capture),
        ..Record::default()
    }
}
