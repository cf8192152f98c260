//! Limits for idle states, for single CPUs or for all, each with the command, run or program that set it.

use record::Finding;

use super::{CheckContext, Explain, evidence, not_applicable, ok, unknown, warn, without};
use crate::{
    CpuList, Unreadable,
    facts::latency_limit,
    journal::Setter,
    program_limit::{self, DEVICE, Holder},
};

pub(super) const ID: &str = "cpu.latency_request";
const WHY: &str = "Results are better than without this limit.";

pub(super) fn check(context: &CheckContext) -> Finding {
    of_programs(context).unwrap_or_else(|| of_single_cpus(context))
}

/// The finding if a program limits the idle states of all CPUs.
fn of_programs(context: &CheckContext) -> Option<Finding> {
    let limit_us = match program_limit::limit_us(context.root) {
        Ok(limit_us) => limit_us?,
        Err(Unreadable::NotUnderstood) => {
            let read = without(DEVICE, Unreadable::NotUnderstood);
            return Some(unknown(ID, "latency limits of programs not understood", read));
        }
        Err(_) => return None,
    };
    let read = evidence(DEVICE, &format!("{limit_us} us"));
    let open_in = |process: u32| format!("{read}, open in /proc/{process}/fd");
    let holders = match program_limit::holders(context.root) {
        Ok(holders) => holders,
        Err(_) => {
            return Some(unknown(
                ID,
                format!("a program limits idle states to {limit_us} us: its name is not readable"),
                read,
            ));
        }
    };
    let (by, read, remedy) = match holders.into_iter().next() {
        // No program is among the holders.
        Some(holder) if holder.is_service() => {
            let Holder { process, name } = holder;
            let title = format!("{name} keeps all CPUs out of idle states that take more than {limit_us} us to leave");
            return Some(ok(ID, title, open_in(process)));
        }
        Some(Holder { process, name }) => {
            let remedy = format!("end {name}, unless it is the work that you qualify");
            (format!("{name} (process {process})"), open_in(process), remedy)
        }
        None => ("a program".to_owned(), read, format!("find the program: sudo fuser --verbose /{DEVICE}")),
    };
    let title = format!("{by} allows idle states of at most {limit_us} us only");
    Some(warn(ID, title, read).because(format!("{WHY} It ends with the program."), remedy).until_exit())
}

/// A limit for single CPUs, which remains after the process that set it.
fn of_single_cpus(context: &CheckContext) -> Finding {
    let file = latency_limit;
    let is_limit = |text: &str| text == "n/a" || text.parse::<u32>().is_ok();
    let limit = |cpu: u32| context.root.text_if(&file(cpu), is_limit);
    let read: Vec<(u32, String)> = context.online().iter().filter_map(|cpu| Some((cpu, limit(cpu).ok()?))).collect();
    let Some((first, value)) = read.iter().find(|(_, value)| value != "0").or(read.first()) else {
        return match context.root.try_read(&file(0)) {
            Err(Unreadable::Absent) if !context.online().is_empty() => {
                not_applicable(ID, "this kernel takes no latency limits for single CPUs", context.evidence(&file(0)))
            }
            _ => unknown(ID, "latency limits of single CPUs not readable", context.evidence(&file(0))),
        };
    };
    let read_first = evidence(&file(*first), value);
    if value == "0" && context.in_container() && !context.root.exists(DEVICE) {
        let title = "no latency limit for single CPUs; that of programs is not visible in this container";
        return unknown(ID, title, format!("{read_first}, {}", without(DEVICE, Unreadable::Absent)));
    }
    if value == "0" {
        return ok(ID, "no latency limit for any CPU", read_first);
    }
    let held: CpuList = read.iter().filter(|(_, value)| value != "0").map(|(cpu, _)| *cpu).collect();
    let setters = read.iter().filter(|(_, value)| value != "0");
    let setters: Vec<Option<Setter>> = setters.map(|(cpu, _)| context.setter(&file(*cpu))).collect();
    let is_limited = format!("{} kept out of idle states", held.in_words());
    let other = setters.iter().position(|setter| !matches!(setter, Some(Setter::Tune)));
    let Some(other) = other else {
        let title = format!("{is_limited} {}", Setter::Tune.in_words(context.root));
        return ok(ID, title, read_first);
    };
    let (by, remedy) = match setters.get(other) {
        Some(Some(Setter::Run { process })) => {
            (format!("a run of punctual (process {process})"), format!("wait until it ends, or: kill {process}"))
        }
        Some(Some(Setter::KilledRun { process })) => {
            (format!("process {process} of punctual, which was killed"), "sudo punctual restore".to_owned())
        }
        _ => {
            // Only root can read what root has changed, and a copy of a machine does not contain it.
            let by = match (context.root.is_system(), rustix::process::geteuid().is_root()) {
                (true, true) => "another program than punctual, or by hand",
                (true, false) => "a program, or by hand; run as root to see if by `punctual tune`",
                (false, _) => "a program, or by hand",
            };
            let files = held.iter().map(|cpu| format!("/{}", file(cpu))).collect::<Vec<_>>().join(" ");
            (by.to_owned(), format!("echo 0 | sudo tee {files}"))
        }
    };
    warn(ID, format!("{is_limited} by {by}"), read_first)
        .because(format!("{WHY} It disappears at the next boot."), remedy)
        .until_boot()
}
