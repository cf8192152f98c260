//! Reads, resamples, trims and plays any bytes as the WAV file of an impulse response.
#![no_main]

use amp::{Cabinet, Ir};
use harmless::check_error;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let ir = match Ir::from_wav(bytes) {
        Ok(ir) => ir,
        Err(error) => return check_error(error),
    };
    let input: [f32; 100] = std::array::from_fn(|frame| if frame % 7 == 0 { 1.0 } else { -0.5 });
    let (mut left, mut right) = ([0.0; 100], [0.0; 100]);
    // Resampling takes long in proportion to the rates, so most of the time goes to other files.
    let resampled = (ir.frames() <= 200 && ir.rate_hz() <= 200_000).then(|| ir.resampled(48_000));
    match resampled {
        Some(Ok(resampled)) => assert_eq!(resampled.rate_hz(), 48_000),
        Some(Err(error)) => check_error(error),
        None => {}
    }
    Cabinet::new(&ir.trimmed()).process(&input, &mut left, &mut right);
});
