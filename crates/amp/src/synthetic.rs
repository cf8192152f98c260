//! Built-in models with common shapes and random weights: they cost as much as real models and need no file.

use std::fmt::Write;

use crate::{error::LoadError, file::ModelFile};

/// The built-in models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntheticModel {
    /// WaveNet with 16 and 8 channels, the "standard" model of NAM.
    Standard,
    /// WaveNet with 8 and 4 channels.
    Feather,
    /// WaveNet with 4 and 2 channels.
    Nano,
    /// One recurrent layer of 16 units.
    Lstm,
}

impl SyntheticModel {
    /// All built-in models with their names.
    pub const ALL: [(&str, Self); 4] =
        [("standard", Self::Standard), ("feather", Self::Feather), ("nano", Self::Nano), ("lstm", Self::Lstm)];

    /// The model with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, model)| model)
    }

    /// Name of the model.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, model)| *model == self).map_or("", |(name, _)| name)
    }

    /// The model at a sample rate, Hz; the same at each call. It is read from JSON text like any other file, so that it
    /// becomes the same kind of network.
    ///
    /// # Errors
    /// [`LoadError`] if the sample rate is not 1000 to 1000000 Hz.
    pub fn file(self, sample_rate: f64) -> Result<ModelFile, LoadError> {
        let (architecture, config, weights) = match self {
            Self::Standard => wave_net([16, 8], [&DOUBLING, &DOUBLING]),
            Self::Feather => wave_net([8, 4], [&DOUBLING[..7], &LITE]),
            Self::Nano => wave_net([4, 2], [&DOUBLING[..7], &LITE]),
            Self::Lstm => lstm(16),
        };
        let weights = random(weights);
        let text = format!(
            r#"{{"version":"0.5.4","architecture":"{architecture}","config":{config},"weights":[{weights}],"sample_rate":{sample_rate:?}}}"#
        );
        ModelFile::read(text.as_bytes())
    }
}

/// Distances between the taps, frames, in the standard model.
const DOUBLING: [usize; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/// Distances between the taps, frames, in the second array of the smaller models.
const LITE: [usize; 13] = [128, 256, 512, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
/// Number of taps of each convolution.
const TAPS: usize = 3;

/// Two arrays of layers: architecture, description and number of weights.
fn wave_net(channels: [usize; 2], dilations: [&[usize]; 2]) -> (&'static str, String, usize) {
    let [first, second] = channels;
    let array = |inputs: usize, channels: usize, outputs: usize, dilations: &[usize], bias: bool| {
        format!(
            r#"{{"input_size":{inputs},"condition_size":1,"head_size":{outputs},"channels":{channels},"kernel_size":{TAPS},"dilations":{dilations:?},"activation":"Tanh","gated":false,"head_bias":{bias}}}"#
        )
    };
    let config = format!(
        r#"{{"layers":[{},{}],"head":null,"head_scale":0.02}}"#,
        array(1, first, second, dilations[0], false),
        array(first, second, 1, dilations[1], true)
    );
    // The convolution, the convolution of the condition, and the 1x1 convolution, with their biases.
    let layer = |channels: usize| channels * (channels * TAPS + 1) + channels + channels * (channels + 1);
    let arrays = first + dilations[0].len() * layer(first) + first * second;
    let arrays = arrays + first * second + dilations[1].len() * layer(second) + second + 1;
    ("WaveNet", config, arrays + 1)
}

fn lstm(units: usize) -> (&'static str, String, usize) {
    let config = format!(r#"{{"num_layers":1,"input_size":1,"hidden_size":{units}}}"#);
    // Gates and their biases, the initial state, the output.
    ("LSTM", config, 4 * units * (1 + units + 1) + 2 * units + units + 1)
}

/// `weights` random numbers of -0.3 to 0.3, separated by commas.
fn random(weights: usize) -> String {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut text = String::new();
    for n in 0..weights {
        // Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8/14 (2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let weight = (state >> 40) as f64 / f64::from(1 << 24) * 0.6 - 0.3;
        let comma = if n == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{weight:.6}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Options;

    #[test]
    fn models_have_as_many_weights_as_files_of_their_shape() {
        // Counted in files of these shapes.
        let counts = SyntheticModel::ALL.map(|(_, model)| match model {
            SyntheticModel::Standard => wave_net([16, 8], [&DOUBLING, &DOUBLING]).2,
            SyntheticModel::Feather => wave_net([8, 4], [&DOUBLING[..7], &LITE]).2,
            SyntheticModel::Nano => wave_net([4, 2], [&DOUBLING[..7], &LITE]).2,
            SyntheticModel::Lstm => lstm(16).2,
        });
        assert_eq!(counts, [13802, 3026, 842, 1201]);
    }

    #[test]
    fn models_produce_sound_and_are_reproducible() {
        let input: Vec<f32> = (0..4800).map(|n| (n as f32 * 0.05).sin() * 0.3).collect();
        for (name, model) in SyntheticModel::ALL {
            let play = || {
                let mut output = vec![0.0; input.len()];
                let mut model = model.file(48_000.0).unwrap().model(Options::default()).unwrap();
                model.process(&input, &mut output);
                assert!(!model.is_muted(), "{name}");
                output
            };
            let output = play();
            let mean = output.iter().sum::<f32>() / output.len() as f32;
            let loud = output.iter().map(|sample| (sample - mean).abs()).fold(0.0, f32::max);
            assert!((1e-3..10.0).contains(&loud), "{name}: {loud}");
            assert_eq!(output, play(), "{name}");
        }
        assert_eq!(SyntheticModel::named("nano"), Some(SyntheticModel::Nano));
        assert_eq!(SyntheticModel::named("huge"), None);
    }
}
