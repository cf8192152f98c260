//! Reads any bytes as a model, and plays it in full and slim size.
#![no_main]

use amp::{ModelFile, file::Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = ModelFile::read(bytes) else { return };
    let input: [f32; 100] = std::array::from_fn(|frame| if frame % 7 == 0 { 1.0 } else { -0.5 });
    for slim in [1.0, 0.3] {
        let Ok(mut model) = file.model(Options { slim, ..Options::default() }) else { continue };
        let mut output = [0.0; 100];
        model.process(&input, &mut output);
        assert!(output.iter().all(|sample| sample.is_finite()), "an output sample is not finite");
    }
});
