//! What users type: CPU lists, loads, policies, durations. What is understood reads back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(cpus) = text.parse::<machine::CpuList>() {
        assert_eq!(cpus.to_string().parse(), Ok(cpus));
    }
    if let Ok(spec) = text.parse::<loads::LoadSpec>() {
        assert_eq!(spec.to_string().parse::<loads::LoadSpec>().expect("its own form"), spec);
    }
    if let Ok(policy) = text.parse::<sys::sched::Policy>() {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let _ = analysis::duration::parse_ns(text);
});
