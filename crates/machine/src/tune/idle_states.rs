//! The longest time to leave an idle state.

use super::{Context, WhyNot, Write, writes::each_unless};
use crate::{
    facts::{idle_states_of, latency_limit, usable_idle_states},
    findings::IDLE_EXIT_LIMIT_NS,
    program_limit::{self, Holder},
};

/// The longest time to leave an idle state that can be set, us.
const IDLE_LIMIT_MAX_US: u64 = 1_000_000;

pub(super) fn idle_states(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    let default = || match context.limit_ns {
        // The file takes whole microseconds.
        Some(limit_ns) => (limit_ns / 10_000).min(IDLE_LIMIT_MAX_US).to_string() + "us",
        None => format!("{}us", IDLE_EXIT_LIMIT_NS / 1000),
    };
    let text = value.map_or_else(default, str::to_owned);
    let to = match text.as_str() {
        // The kernel takes 0 for no limit, and `n/a` for no idle state at all.
        "any" => "0".to_owned(),
        "0us" => "n/a".to_owned(),
        text => match text
            .strip_suffix("us")
            .and_then(|us| us.parse::<u32>().ok())
            .filter(|us| u64::from(*us) <= IDLE_LIMIT_MAX_US)
        {
            Some(us) => us.to_string(),
            None => {
                return Err(WhyNot::Value(format!(
                    "`{text}` is not a time: use e.g. 10us, 0us (no idle state), or any"
                )));
            }
        },
    };
    // All are read before the first reason, so that a snapshot has the files of each CPU.
    let has_states = |cpu: &u32| context.root.exists(&format!("sys/devices/system/cpu/cpu{cpu}/cpuidle/state0"));
    let with_states = context.cpus.iter().filter(has_states).count();
    let has_known = context.cpus.iter().filter(|cpu| !idle_states_of(context.root, *cpu).is_empty()).count() > 0;
    let of_service = program_limit::of_service(context.root);
    // The limit of any other program ends with it.
    let programs_us = of_service.as_ref().map(|(limit_us, _)| *limit_us);
    let usable: Vec<_> =
        context.cpus.iter().flat_map(|cpu| usable_idle_states(context.root, cpu, programs_us)).collect();
    if !context.is_named && with_states == 0 {
        return Err(WhyNot::NoEffect("the kernel has no idle states for this CPU".to_owned()));
    }
    let limit_us = if to == "n/a" { Some(0) } else { to.parse::<u64>().ok() };
    let is_quick = usable.iter().all(|(_, state)| Some(state.exit_us) <= limit_us);
    let is_met = to != "0" && has_known && is_quick && context.root.take_unread().is_empty();
    let is_limited = |cpu: u32| context.root.read(&latency_limit(cpu)).is_some_and(|limit| limit != "0");
    if is_met && !context.is_named && !context.cpus.iter().any(is_limited) {
        return Err(WhyNot::NoEffect(match of_service {
            Some((limit_us, Holder { name, .. })) => {
                format!("{name} keeps all CPUs out of idle states that take more than {limit_us} us to leave")
            }
            None => format!("every enabled idle state can be left in {text}"),
        }));
    }
    // `n/a` and lower limits are stricter.
    let is_good = |now: &str| {
        let limit = |text: &str| text.parse::<u32>().ok();
        let is_stricter = now == "n/a" || limit(now).is_some_and(|now| now > 0 && Some(now) <= limit(&to));
        value.is_none() && (is_met || is_stricter)
    };
    each_unless(context, context.cpus.iter().map(latency_limit).collect(), &to, is_good)
}
