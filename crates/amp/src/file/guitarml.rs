//! GuitarML's files: one LSTM layer of PyTorch, one or two knobs, and usually the input added to the output.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    About, Format, ModelFile, finite,
    nam::{MAX_CHANNELS, size},
    network::{Network, RecurrentConfig},
    number::{Whole, number},
};
use crate::{
    error::LoadError,
    net::recurrent::{DenseWeights, Plan, RecurrentWeights},
};

/// Sample rate of all GuitarML models, Hz; the files do not contain it.
const SAMPLE_RATE: f64 = 44_100.0;
/// The signal and two knobs.
const MAX_INPUTS: usize = 3;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    model_data: Data<'a>,
    state_dict: State,
}

#[derive(Deserialize)]
struct Data<'a> {
    input_size: Whole,
    #[serde(borrow, default)]
    skip: Option<&'a RawValue>,
    unit_type: String,
    hidden_size: Whole,
    #[serde(default = "one")]
    num_layers: Whole,
    #[serde(default = "one")]
    output_size: Whole,
}

#[derive(Deserialize)]
struct State {
    #[serde(rename = "rec.weight_ih_l0")]
    of_input: Vec<Vec<f32>>,
    #[serde(rename = "rec.weight_hh_l0")]
    of_units: Vec<Vec<f32>>,
    #[serde(rename = "rec.bias_ih_l0")]
    input_bias: Vec<f32>,
    #[serde(rename = "rec.bias_hh_l0")]
    unit_bias: Vec<f32>,
    #[serde(rename = "lin.weight")]
    head: Vec<Vec<f32>>,
    #[serde(rename = "lin.bias")]
    head_bias: Vec<f32>,
}

fn one() -> Whole {
    Whole(1)
}

impl Data<'_> {
    /// True if the input is added to the output. GuitarML's own players always add it; here an explicit "no" is
    /// respected.
    fn skips(&self) -> bool {
        self.skip.is_none_or(|skip| skip.get() != "false") && number(self.skip) != Some(0.0)
    }
}

pub fn read(text: &str) -> Result<ModelFile, LoadError> {
    let File { model_data: data, state_dict: state } = serde_json::from_str(text)?;
    let skip = data.skips();
    if data.unit_type != "LSTM" {
        return Err(LoadError::UnknownPart { what: "unit type", name: data.unit_type });
    }
    if data.num_layers.0 != 1 || data.output_size.0 != 1 {
        return Err(LoadError::inconsistent("more than one layer or output"));
    }
    let inputs = size("input_size", data.input_size, MAX_INPUTS)?;
    let units = size("hidden_size", data.hidden_size, MAX_CHANNELS)?;
    let State { of_input, of_units, input_bias, unit_bias, head, head_bias } = state;
    let is = |rows: &[Vec<f32>], count: usize, columns: usize| {
        rows.len() == count && rows.iter().all(|row| row.len() == columns)
    };
    let fit = is(&of_input, 4 * units, inputs)
        && is(&of_units, 4 * units, units)
        && input_bias.len() == 4 * units
        && unit_bias.len() == 4 * units
        && is(&head, 1, units)
        && head_bias.len() == 1;
    if !fit {
        return Err(LoadError::inconsistent(format!("the weights do not match {inputs} inputs and {units} units")));
    }
    let rows = of_input.iter().chain(&of_units).chain(&head).chain([&input_bias, &unit_bias, &head_bias]);
    rows.into_iter().try_for_each(|row| finite(row))?;
    let weight = |gate: usize, unit: usize, column: usize| {
        let row = gate * units + unit;
        if column < inputs { of_input[row][column] } else { of_units[row][column - inputs] }
    };
    let bias = |gate: usize, unit: usize| input_bias[gate * units + unit] + unit_bias[gate * units + unit];
    let lstm = RecurrentWeights::new(inputs, units, weight, bias, Default::default());
    let head = DenseWeights::new(1, units, |_, unit| head[0][unit], |_| head_bias[0]);
    let layers = vec![Plan::Lstm(lstm), Plan::Dense(head)];
    let config = RecurrentConfig { layers, knobs: inputs - 1, prewarm_frames: Some(0) };
    Ok(ModelFile {
        format: Format::GuitarMl,
        architecture: format!("LSTM of {units} units"),
        sample_rate: SAMPLE_RATE,
        has_sample_rate: false,
        about: About::default(),
        warnings: Vec::new(),
        network: Network::Recurrent(config),
        gains: (1.0, 1.0),
        skip,
    })
}
