//! Reads any bytes as a model, and plays it in full and slim size.
#![no_main]

use amp::{ModelFile, file::Options};
use harmless::check_error;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let file = match ModelFile::read(bytes) {
        Ok(file) => file,
        Err(error) => return check_error(error),
    };
    let input: [f32; 100] = std::array::from_fn(|frame| if frame % 7 == 0 { 1.0 } else { -0.5 });
    for slim in [1.0, 0.3] {
        let mut model = match file.model(Options { slim, ..Options::default() }) {
            Ok(model) => model,
            Err(error) => {
                check_error(error);
                continue;
            }
        };
        let mut output = [0.0; 100];
        model.process(&input, &mut output);
        assert!(output.iter().all(|sample| sample.is_finite()), "an output sample is not finite");
    }
});
