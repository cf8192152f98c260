//! The kernel's runtime verification monitors that watch a program.

use blame::Follower;
use record::{Caveat, MonitorUse, grouped};

/// The monitors that the kernel has.
#[derive(Debug, Clone, Default)]
pub struct Monitors(Vec<MonitorUse>);

impl Monitors {
    /// Traces the reports of these monitors, if at least one watches.
    pub fn trace(mut monitors: Vec<MonitorUse>, follower: &mut Follower) -> Self {
        if monitors.iter().any(|used| used.problem.is_empty())
            && let Err(error) = follower.trace_reports()
        {
            add_problem(&mut monitors, &format!("its reports cannot be traced: {error}"));
        }
        Self(monitors)
    }

    /// Notes the problems of the same monitors at the end of the run.
    pub fn update(&mut self, now: &[MonitorUse]) {
        for (used, now) in self.0.iter_mut().zip(now).filter(|(used, _)| used.problem.is_empty()) {
            used.problem.clone_from(&now.problem);
        }
    }

    /// The monitors with their problems so far.
    pub fn to_record(&self, lost_reports: u64) -> Vec<MonitorUse> {
        let mut monitors = self.0.clone();
        if lost_reports > 0 {
            add_problem(
                &mut monitors,
                &format!("the kernel overwrote {} reports before they could be read", grouped(lost_reports)),
            );
        }
        monitors
    }
}

fn add_problem(monitors: &mut [MonitorUse], problem: &str) {
    for used in monitors.iter_mut().filter(|used| used.problem.is_empty()) {
        problem.clone_into(&mut used.problem);
    }
}

/// The caveats about requested monitors: that the kernel has none, or whose reports are missing or incomplete, one for
/// each problem.
pub fn caveats(monitors: &[MonitorUse]) -> Vec<Caveat> {
    let caveat = |text: String| Caveat { kind: "monitors".to_owned(), text };
    if monitors.is_empty() {
        let none = "/sys/kernel/tracing/rv has no monitors for real-time threads (CONFIG_RV): punctual checked the rules \
                    itself";
        return vec![caveat(none.to_owned())];
    }
    let mut problems: Vec<&str> = monitors.iter().map(|used| used.problem.as_str()).collect();
    problems.retain(|problem| !problem.is_empty());
    problems.sort_unstable();
    problems.dedup();
    let of_problem = |problem: &str| {
        let same = monitors.iter().filter(|used| used.problem == problem);
        let names: Vec<&str> = same.map(|used| used.monitor.name()).collect();
        caveat(format!(
            "the reports of the kernel's monitors are missing or incomplete ({}): {problem}; punctual checked the rules \
             itself",
            names.join(", ")
        ))
    };
    problems.into_iter().map(of_problem).collect()
}

#[cfg(test)]
mod tests {
    use record::Monitor;

    use super::*;

    fn used(monitor: Monitor, problem: &str) -> MonitorUse {
        MonitorUse { monitor, problem: problem.to_owned() }
    }

    #[test]
    fn keeps_the_first_problem_of_each_monitor() {
        let mut monitors = Monitors(vec![used(Monitor::Pagefault, "no slot"), used(Monitor::Sleep, "")]);
        monitors.update(&[used(Monitor::Pagefault, "later"), used(Monitor::Sleep, "")]);
        let expected = [used(Monitor::Pagefault, "no slot"), used(Monitor::Sleep, "")];
        assert_eq!(monitors.to_record(0), expected);
        assert!(monitors.to_record(3)[1].problem.contains("overwrote 3 reports"));
        monitors.update(&[used(Monitor::Pagefault, "later"), used(Monitor::Sleep, "disabled")]);
        assert_eq!(monitors.to_record(3)[1].problem, "disabled");
    }

    #[test]
    fn one_caveat_for_each_problem() {
        let monitors = [used(Monitor::Pagefault, "a"), used(Monitor::Sleep, "a"), used(Monitor::Stall, "b")];
        let texts: Vec<String> = caveats(&monitors).into_iter().map(|caveat| caveat.text).collect();
        assert!(texts[0].contains("(pagefault, sleep): a;"), "{texts:?}");
        assert!(texts.len() == 2 && texts[1].contains("(stall): b;"), "{texts:?}");
        assert!(caveats(&[used(Monitor::Sleep, "")]).is_empty());
        assert!(caveats(&[])[0].text.contains("has no monitors"));
    }
}
