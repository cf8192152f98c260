//! Activation functions, as files name them.

use serde::Deserialize;

use crate::{error::LoadError, simd::Activation};

/// An activation function by its name, or with its numbers.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum ActivationConfig {
    /// Its name.
    Named(String),
    /// With its numbers.
    Detailed {
        /// Its name.
        #[serde(rename = "type")]
        name: String,
        /// What negative values are scaled by.
        negative_slope: Option<f32>,
        /// The same for each channel; of `PReLU` alone.
        negative_slopes: Option<Vec<f32>>,
        /// Where the lower slope begins.
        min_val: Option<f32>,
        /// Where the upper slope begins.
        max_val: Option<f32>,
        /// The lower slope.
        min_slope: Option<f32>,
        /// The upper slope.
        max_slope: Option<f32>,
    },
}

impl ActivationConfig {
    /// The function.
    ///
    /// # Errors
    /// [`LoadError::UnknownPart`].
    pub fn build(&self) -> Result<Activation, LoadError> {
        let (name, slopes, [min, max, min_slope, max_slope]) = match self {
            Self::Named(name) => (name, vec![0.01], [-1.0, 1.0, 0.01, 0.01]),
            Self::Detailed { name, negative_slope, negative_slopes, min_val, max_val, min_slope, max_slope } => {
                let slopes = match (negative_slope, negative_slopes) {
                    (None, Some(slopes)) if name == "PReLU" => slopes.clone(),
                    (slope, _) => vec![slope.unwrap_or(0.01)],
                };
                let or = |value: &Option<f32>, other| value.unwrap_or(other);
                (name, slopes, [or(min_val, -1.0), or(max_val, 1.0), or(min_slope, 0.01), or(max_slope, 0.01)])
            }
        };
        Ok(match name.as_str() {
            "Tanh" => Activation::Tanh,
            "Hardtanh" => Activation::HardTanh,
            "Fasttanh" => Activation::FastTanh,
            "ReLU" => Activation::Relu,
            "LeakyReLU" | "PReLU" => Activation::LeakyRelu(slopes),
            "Sigmoid" => Activation::Sigmoid,
            "SiLU" => Activation::Silu,
            "Hardswish" => Activation::HardSwish,
            "LeakyHardtanh" | "LeakyHardTanh" => Activation::LeakyHardTanh { min, max, min_slope, max_slope },
            "Softsign" => Activation::SoftSign,
            _ => return Err(LoadError::UnknownPart { what: "the activation function", name: name.clone() }),
        })
    }
}
