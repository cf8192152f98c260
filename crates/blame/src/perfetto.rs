//! Time lines for a viewer: Chrome's trace event format, which ui.perfetto.dev and chrome://tracing open.

use record::Record;
use serde_json::{Value, json};

/// The spikes of a record as a trace.
#[must_use]
pub fn perfetto(record: &Record) -> Value {
    let _ = record;
    json!({"traceEvents": []})
}
