//! Parses any text as a CPU list, load, policy and duration. Formatting and parsing again returns the same value.
#![no_main]

use harmless::check_error;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match text.parse::<machine::CpuList>() {
        Ok(cpus) => assert_eq!(cpus.to_string().parse(), Ok(cpus)),
        Err(error) => check_error(error),
    }
    match text.parse::<loads::LoadSpec>() {
        Ok(spec) => assert_eq!(spec.to_string().parse::<loads::LoadSpec>().expect("its own format"), spec),
        Err(error) => check_error(error),
    }
    match text.parse::<sys::sched::Policy>() {
        Ok(policy) => assert_eq!(policy.to_string().parse(), Ok(policy)),
        Err(error) => check_error(error),
    }
    if let Err(error) = analysis::duration::parse_ns(text) {
        check_error(error);
    }
});
