//! Parses any text as a CPU list, load, policy and duration. Formatting and parsing again returns the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(cpus) = text.parse::<machine::CpuList>() {
        assert_eq!(cpus.to_string().parse(), Ok(cpus));
    }
    if let Ok(spec) = text.parse::<loads::LoadSpec>() {
        assert_eq!(spec.to_string().parse::<loads::LoadSpec>().expect("its own format"), spec);
    }
    if let Ok(policy) = text.parse::<sys::sched::Policy>() {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let _ = analysis::duration::parse_ns(text);
});
