//! The lines that a worker writes to its standard output, each a JSON document.

use serde::{Deserialize, Serialize};

/// One line of a worker's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    Ready(Ready),
    Proof(Proof),
    Failed { error: String },
}

/// All threads are on their CPUs and work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub ready: bool,
    /// Threads or processes that do the work.
    pub threads: u32,
    /// The name of one operation, in the plural.
    pub unit: String,
    /// The reason why the load runs only in part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The work since the start; written about once a second and once at the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proof {
    pub operations: u64,
    /// CPU time of the worker's own threads, ns. The parent reads that of the whole process tree from the kernel.
    pub cpu_time_ns: u64,
    /// Longest time that the worker did not run although it was due, ns: it was stopped, frozen or starved.
    #[serde(default)]
    pub longest_pause_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_and_read() {
        let ready = Ready { ready: true, threads: 2, unit: "switches".into(), note: None };
        let proof = Proof { operations: 7, cpu_time_ns: 9, longest_pause_ns: 3 };
        for (line, text) in [
            (Line::Ready(ready), r#"{"ready":true,"threads":2,"unit":"switches"}"#),
            (Line::Proof(proof), r#"{"operations":7,"cpu_time_ns":9,"longest_pause_ns":3}"#),
            (Line::Failed { error: "no".into() }, r#"{"error":"no"}"#),
        ] {
            assert_eq!(serde_json::to_string(&line).unwrap(), text);
            assert_eq!(serde_json::from_str::<Line>(text).unwrap(), line);
        }
    }
}
