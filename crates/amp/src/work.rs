//! The work of a network, and the instructions that it takes on arm64, for boards that are not at hand.
//!
//! The instructions are a sum of a few counts, each with a factor. The factors were fitted to counts of a guest in
//! virtual time (`lab/src/tests/amp.rs`), in blocks of 64 frames, so that the largest relative error is small: it is
//! 7 %. Tests compare the sum with these counts. GRU of 12, 20 and 40 units (536, 1208 and 3790 instructions) were
//! counted in the same way.

use std::ops::Add;

use crate::simd::Activation;

/// Largest relative error of [`Work::neon_instructions`] for a network of a counted kind.
pub const NEON_ERROR: f64 = 0.1;

/// Number of values in a vector of NEON.
const LANES: usize = 4;

/// Instructions of a multiplication of a convolution. One of them multiplies 4 values, and the rest are its share of
/// the loads of signals and weights.
const CONVOLUTION: f64 = 0.393;
/// Instructions of a multiplication of a recurrent layer, which loads each weight for 4 values.
const RECURRENT: f64 = 0.45;
/// Instructions of a value of a convolutional layer. Loading, adding and storing a vector takes four times as many.
const VALUE: f64 = 2.67;
/// Instructions of a [function](Activations::functions).
const FUNCTION: f64 = 5.8;
/// Instructions of a convolutional layer: its share of the preparations of a block.
const LAYER: f64 = 1.3;
/// Instructions of a recurrent layer, whose preparations are repeated for each frame.
const RECURRENT_LAYER: f64 = 75.0;
/// Instructions of the window of impulse responses.
const RESPONSES: f64 = 23.0;
/// Instructions of a multiplication of the direct part of an impulse response.
const DIRECT: f64 = 0.4;
/// Instructions of a multiplication of a transform.
const TRANSFORM: f64 = 1.8;
/// Instructions of a multiplication of two spectra.
const SPECTRUM: f64 = 0.6;

/// The work of a network per frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Number of multiplications by weights; of a partitioned convolution also those of its transforms.
    pub multiplications: u64,
    /// Estimated number of instructions on arm64 (NEON), in blocks of 64 frames.
    pub neon_instructions: f64,
    /// True if a network of this kind was counted. The estimate is then within [`NEON_ERROR`]; otherwise its error is
    /// unknown.
    pub is_counted: bool,
}

/// The activations of convolutional layers, per frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Activations {
    /// Number of values that they replace.
    values: usize,
    /// Number of values whose function has a division: tanh, the logistic function, and functions that contain one of them.
    functions: usize,
}

impl Activations {
    /// Adds the activations of `values` values.
    pub fn add(&mut self, activation: &Activation, values: usize) {
        self.values = self.values.saturating_add(values);
        if activation.has_division() {
            self.functions = self.functions.saturating_add(values);
        }
    }
}

impl Work {
    /// Convolutional layers.
    #[must_use]
    pub fn of_convolutions(multiplications: u64, activations: Activations, layers: usize) -> Self {
        let Activations { values, functions } = activations;
        let of_values = VALUE * values as f64 + FUNCTION * functions as f64;
        let neon_instructions = CONVOLUTION * multiplications as f64 + of_values + LAYER * layers as f64;
        Self { multiplications, neon_instructions, is_counted: true }
    }

    /// A layer of recurrent units, with four sums of `columns` values each and this number of functions a unit.
    #[must_use]
    pub fn of_units(multiplications: u64, units: usize, columns: usize, functions: usize) -> Self {
        // The units fill whole vectors.
        let units = units.next_multiple_of(LANES);
        let (products, functions) = ((4 * units * columns) as f64, (units * functions) as f64);
        let neon_instructions = RECURRENT * products + FUNCTION * functions + RECURRENT_LAYER;
        Self { multiplications, neon_instructions, is_counted: true }
    }

    /// Weighted sums that are computed frame by frame.
    #[must_use]
    pub fn of_sums(multiplications: u64) -> Self {
        Self { multiplications, neon_instructions: RECURRENT * multiplications as f64, is_counted: true }
    }

    /// Impulse responses, with the multiplications of their direct parts, of the transforms and of the spectra.
    #[must_use]
    pub fn of_responses(direct: usize, transforms: usize, spectra: usize) -> Self {
        let products = DIRECT * direct as f64 + TRANSFORM * transforms as f64 + SPECTRUM * spectra as f64;
        let multiplications = (direct + transforms + spectra) as u64;
        Self { multiplications, neon_instructions: RESPONSES + products, is_counted: true }
    }

    /// The same work of a kind that was not counted.
    #[must_use]
    pub fn uncounted(self) -> Self {
        Self { is_counted: false, ..self }
    }
}

impl Default for Work {
    fn default() -> Self {
        Self { multiplications: 0, neon_instructions: 0.0, is_counted: true }
    }
}

impl Add for Work {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            multiplications: self.multiplications + other.multiplications,
            neon_instructions: self.neon_instructions + other.neon_instructions,
            is_counted: self.is_counted && other.is_counted,
        }
    }
}
