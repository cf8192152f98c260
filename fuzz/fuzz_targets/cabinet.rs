//! Reads, resamples, trims and plays any bytes as the WAV file of an impulse response.
#![no_main]

use amp::{Cabinet, Ir};
use harmless::check_error;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let ir = match Ir::from_file(bytes) {
        Ok(ir) => ir,
        Err(error) => return check_error(error),
    };
    let input: [f32; 100] = std::array::from_fn(|frame| if frame % 7 == 0 { 1.0 } else { -0.5 });
    let (mut left, mut right) = ([0.0; 100], [0.0; 100]);
    // Resampling computes a filter for each phase, e.g. 48,000 phases for 47,999 Hz. Most of the time would go to them.
    let phases = 48_000 / greatest_common_divisor(48_000, ir.rate_hz());
    let is_quick = ir.frames() <= 200 && ir.rate_hz() <= 200_000 && phases <= 160;
    let resampled = is_quick.then(|| ir.resampled(48_000));
    match resampled {
        Some(Ok(resampled)) => assert_eq!(resampled.rate_hz(), 48_000),
        Some(Err(error)) => check_error(error),
        None => {}
    }
    Cabinet::new(&ir.trimmed()).process(&input, &mut left, &mut right);
});

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
