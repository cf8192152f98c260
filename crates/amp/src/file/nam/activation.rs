//! Activation functions as named in files.

use std::sync::Arc;

use serde::Deserialize;

use crate::{error::LoadError, simd::Activation};

/// An activation function: its name, or its name and parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum ActivationConfig {
    /// Only the name.
    Named(String),
    /// The name and parameters.
    Detailed {
        /// Name.
        #[serde(rename = "type")]
        name: String,
        /// Slope for negative values.
        negative_slope: Option<f32>,
        /// Slope for negative values per channel; only for `PReLU`.
        negative_slopes: Option<Vec<f32>>,
        /// Upper end of the lower slope.
        min_val: Option<f32>,
        /// Lower end of the upper slope.
        max_val: Option<f32>,
        /// The lower slope.
        min_slope: Option<f32>,
        /// The upper slope.
        max_slope: Option<f32>,
    },
}

impl ActivationConfig {
    /// The activation function.
    ///
    /// # Errors
    /// [`LoadError::UnknownPart`].
    pub fn build(&self) -> Result<Activation, LoadError> {
        let (name, slopes, [min, max, min_slope, max_slope]) = match self {
            Self::Named(name) => (name, [0.01].into(), [-1.0, 1.0, 0.01, 0.01]),
            Self::Detailed { name, negative_slope, negative_slopes, min_val, max_val, min_slope, max_slope } => {
                let slopes: Arc<[f32]> = match (negative_slope, negative_slopes) {
                    (None, Some(slopes)) if name == "PReLU" => slopes.as_slice().into(),
                    (slope, _) => [slope.unwrap_or(0.01)].into(),
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
            _ => return Err(LoadError::UnknownPart { what: "activation function", name: name.clone() }),
        })
    }
}
