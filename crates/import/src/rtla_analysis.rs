//! The automatic analysis of `rtla timerlat -a` (`tools/tracing/rtla/src/timerlat_aa.c`): the parts of the latency that
//! stopped the run.

use record::{Caveat, grouped};

use crate::caveat;

/// Analyses that are imported. A run that continues after each limit can print any number.
const MOST: usize = 20;

/// The analyses in the output of rtla, one sentence each.
pub fn remarks(text: &str) -> Vec<String> {
    let mut all: Vec<Analysis<'_>> = Vec::new();
    let mut is_inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(cpu) = line.strip_prefix("## CPU ").and_then(|rest| rest.split(' ').next()) {
            all.push(Analysis { cpu, ..Analysis::default() });
            is_inside = true;
        } else if let Some(analysis) = all.last_mut().filter(|_| is_inside) {
            is_inside = analysis.line(line);
        }
    }
    let more = all.len().saturating_sub(MOST);
    let mut remarks: Vec<String> = all.iter().take(MOST).map(Analysis::to_remark).collect();
    remarks.extend(text.lines().find(|line| line.starts_with("Max timerlat IRQ latency from idle:")).map(in_one_line));
    if more > 0 {
        remarks.push(format!("rtla analysed {} further stops, which are not imported", grouped(more as u64)));
    }
    remarks
}

/// The caveat of a run that its first sample above a limit ended.
pub fn stopped(text: &str) -> Option<Caveat> {
    text.contains("hit stop tracing")
        .then(|| caveat("stopped", "a sample above a limit ended the run, so its length depends on its latencies"))
}

/// One analysis.
#[derive(Debug, Default)]
struct Analysis<'a> {
    cpu: &'a str,
    /// Such as `IRQ handler delay (exit from idle) 27.79 us (65.25 %)`.
    parts: Vec<String>,
    /// The functions of the blocking thread.
    stack: Vec<&'a str>,
}

impl<'a> Analysis<'a> {
    /// Reads a line, and returns true unless it is behind the end.
    fn line(&mut self, line: &'a str) -> bool {
        if let Some(function) = line.strip_prefix("-> ") {
            self.stack.push(function.trim());
        } else if line.ends_with(" us") || line.contains(" us (") {
            self.parts.push(in_one_line(line));
        }
        !line.is_empty() && !line.starts_with("Thread latency")
    }

    fn to_remark(&self) -> String {
        let stack = match &self.stack[..] {
            [] => String::new(),
            stack => format!("; stack of the blocking thread: {}", stack.join(", ")),
        };
        format!("CPU {} was above the limit: {}{stack}", self.cpu, self.parts.join(", "))
    }
}

/// The words with single spaces, and without the colon of a name.
fn in_one_line(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ").replacen(": ", " ", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_each_analysis_are_one_sentence() {
        let text = "rtla timerlat hit stop tracing\n\
                    ## CPU 12 hit stop tracing, analyzing it ##\n\
                    \x20 Previous IRQ interference:\t\t\t up to     8.61 us\n\
                    \x20 IRQ handler delay:\t(exit from idle)\t    27.79 us (65.25 %)\n\
                    \x20 Blocking thread:\t\t\t\t\t     3.79 us (8.91 %)\n\
                    \t            objtool:49256    \t\t\t     3.79 us\n\
                    \x20   Blocking thread stack trace\n\
                    \t\t-> timerlat_irq\n\
                    \t\t-> __hrtimer_run_queues\n\
                    ------------------------------------------------------------------------\n\
                    \x20 Thread latency:\t\t\t\t\t    42.59 us (100%)\n\
                    \n\
                    Max timerlat IRQ latency from idle: 28.13 us in cpu 12\n\
                    \x20 Saving trace to timerlat_trace.txt\n";
        let expected = [
            "CPU 12 was above the limit: Previous IRQ interference up to 8.61 us, IRQ handler delay (exit from idle) \
             27.79 us (65.25 %), Blocking thread 3.79 us (8.91 %), objtool:49256 3.79 us, Thread latency 42.59 us (100%); \
             stack of the blocking thread: timerlat_irq, __hrtimer_run_queues",
            "Max timerlat IRQ latency from idle 28.13 us in cpu 12",
        ];
        assert_eq!(remarks(text), expected);
        assert!(stopped(text).is_some());
        let many = remarks(&text.repeat(22));
        assert_eq!((many.len(), many[21].as_str()), (22, "rtla analysed 2 further stops, which are not imported"));
        assert!(remarks("0 1 us\n").is_empty() && stopped("").is_none());
    }
}
