//! Parses any bytes as a message of the other end of `punctual pair`.
#![no_main]

use harmless::check_error;
use libfuzzer_sys::fuzz_target;
use pair::protocol::{Message, ToFar, ToNear, line, parse};

fn check<T: Message + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    match parse::<T>(bytes) {
        Ok(Some(message)) => assert_eq!(parse::<T>(&line(&message)), Ok(Some(message))),
        Ok(None) => {}
        Err(error) => check_error(error),
    }
}

fuzz_target!(|bytes: &[u8]| {
    check::<ToNear>(bytes);
    check::<ToFar>(bytes);
});
