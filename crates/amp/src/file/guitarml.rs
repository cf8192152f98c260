//! GuitarML's files: recurrent layers of PyTorch and a weighted sum, one or two knobs, and usually the input added to the
//! output.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    About, Format, ModelFile, finite,
    nam::{MAX_CHANNELS, MAX_LAYERS, one_signal, size},
    network::{Network, RecurrentConfig, inputs},
    number::{Whole, number},
};
use crate::{
    error::LoadError,
    net::recurrent::{DenseWeights, Plan, RecurrentWeights},
};

/// Sample rate of all GuitarML models, Hz; the files do not contain it.
const SAMPLE_RATE: f64 = 44_100.0;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    model_data: Data<'a>,
    /// Parameters of PyTorch's modules by name.
    #[serde(borrow)]
    state_dict: BTreeMap<String, &'a RawValue>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(default)]
    model: Option<String>,
    input_size: Whole,
    #[serde(borrow, default)]
    skip: Option<&'a RawValue>,
    unit_type: String,
    hidden_size: Whole,
    #[serde(default = "one")]
    num_layers: Whole,
    #[serde(default = "one")]
    output_size: Whole,
    #[serde(borrow, default)]
    bias_fl: Option<&'a RawValue>,
}

/// Kinds of recurrent units.
#[derive(Clone, Copy)]
enum Unit {
    Lstm,
    Gru,
}

fn one() -> Whole {
    Whole(1)
}

fn is_no(field: Option<&RawValue>) -> bool {
    field.is_some_and(|field| field.get() == "false") || number(field) == Some(0.0)
}

impl Data<'_> {
    /// True if the input is added to the output. GuitarML's own players always add it; here an explicit "no" is
    /// respected, as by its trainer.
    fn skips(&self) -> Result<bool, LoadError> {
        match number(self.skip) {
            // The trainer adds this many inputs, so the model has this many outputs.
            Some(skip) if skip < 0.0 || (skip >= 2.0 && self.input_size.0 > 1) => {
                Err(LoadError::inconsistent(format!("skip is {skip}, only 0 and 1 are supported")))
            }
            _ => Ok(!is_no(self.skip)),
        }
    }

    fn unit(&self) -> Result<Unit, LoadError> {
        match self.unit_type.as_str() {
            "LSTM" => Ok(Unit::Lstm),
            "GRU" => Ok(Unit::Gru),
            other => Err(LoadError::UnknownPart { what: "unit type", name: other.to_owned() }),
        }
    }
}

pub fn read(text: &str) -> Result<ModelFile, LoadError> {
    let File { model_data: data, state_dict } = serde_json::from_str(text)?;
    if let Some(name) = data.model.as_ref().filter(|model| *model != "SimpleRNN") {
        return Err(LoadError::UnknownPart { what: "model type", name: name.clone() });
    }
    let unit = data.unit()?;
    one_signal("outputs", data.output_size)?;
    let inputs = inputs("input_size", data.input_size)?;
    let units = size("hidden_size", data.hidden_size, MAX_CHANNELS)?;
    let count = size("num_layers", data.num_layers, MAX_LAYERS)?;
    let parameters = Parameters { of_name: state_dict, without_biases: is_no(data.bias_fl) };
    let mut layers = Vec::new();
    for layer in 0..count {
        layers.push(parameters.recurrent(unit, layer, if layer == 0 { inputs } else { units }, units)?);
    }
    layers.push(parameters.head(units)?);
    let architecture = match unit {
        Unit::Lstm => format!("LSTM of {units} units"),
        Unit::Gru => format!("GRU of {units} units"),
    };
    Ok(ModelFile {
        format: Format::GuitarMl,
        architecture,
        sample_rate: SAMPLE_RATE,
        has_sample_rate: false,
        about: About::default(),
        warnings: Vec::new(),
        network: Network::Recurrent(RecurrentConfig { layers, knobs: inputs - 1, prewarm_frames: Some(0) }),
        gains: (1.0, 1.0),
        skip: data.skips()?,
    })
}

/// Parameters of PyTorch's modules.
struct Parameters<'a> {
    of_name: BTreeMap<String, &'a RawValue>,
    /// True if missing biases are zeros.
    without_biases: bool,
}

impl Parameters<'_> {
    /// A layer of units. The rows of its weights are those of the gates, in this order: input, forget, candidate and
    /// output of an LSTM; reset, update and candidate of a GRU.
    fn recurrent(&self, unit: Unit, layer: usize, inputs: usize, units: usize) -> Result<Plan, LoadError> {
        let rows = units
            * match unit {
                Unit::Lstm => 4,
                Unit::Gru => 3,
            };
        let of_input = self.matrix(&format!("rec.weight_ih_l{layer}"), rows, inputs)?;
        let of_units = self.matrix(&format!("rec.weight_hh_l{layer}"), rows, units)?;
        let input_bias = self.biases(&format!("rec.bias_ih_l{layer}"), rows)?;
        let unit_bias = self.biases(&format!("rec.bias_hh_l{layer}"), rows)?;
        let weight = |row: usize, column: usize| {
            of_input[row].get(column).copied().unwrap_or_else(|| of_units[row][column - inputs])
        };
        Ok(match unit {
            Unit::Lstm => Plan::Lstm(RecurrentWeights::new(
                inputs,
                units,
                |gate, unit, column| weight(gate * units + unit, column),
                |gate, unit| input_bias[gate * units + unit] + unit_bias[gate * units + unit],
                Default::default(),
            )),
            Unit::Gru => {
                let row = |gate: usize, unit: usize| [1, 0, 2][gate] * units + unit;
                Plan::Gru(RecurrentWeights::gru(
                    inputs,
                    units,
                    |gate, unit, column| weight(row(gate, unit), column),
                    |gate, unit| (input_bias[row(gate, unit)], unit_bias[row(gate, unit)]),
                ))
            }
        })
    }

    /// The weighted sum of the last units.
    fn head(&self, units: usize) -> Result<Plan, LoadError> {
        let (weights, bias) = (self.matrix("lin.weight", 1, units)?, self.biases("lin.bias", 1)?);
        Ok(Plan::Dense(DenseWeights::new(1, units, |_, unit| weights[0][unit], |_| bias[0])))
    }

    fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Vec<Vec<f32>>, LoadError> {
        let matrix: Vec<Vec<f32>> = self.parse(name)?.ok_or_else(|| LoadError::MissingKey(name.to_owned()))?;
        if matrix.len() != rows || matrix.iter().any(|row| row.len() != columns) {
            return Err(LoadError::inconsistent(format!("{name} does not have {rows} x {columns} values")));
        }
        matrix.iter().try_for_each(|row| finite(row))?;
        Ok(matrix)
    }

    fn biases(&self, name: &str, count: usize) -> Result<Vec<f32>, LoadError> {
        let biases: Vec<f32> = match self.parse(name)? {
            Some(biases) => biases,
            None if self.without_biases => vec![0.0; count],
            None => return Err(LoadError::MissingKey(name.to_owned())),
        };
        if biases.len() != count {
            return Err(LoadError::inconsistent(format!("{name} does not have {count} values")));
        }
        finite(&biases)?;
        Ok(biases)
    }

    fn parse<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, LoadError> {
        Ok(self.of_name.get(name).map(|raw| serde_json::from_str(raw.get())).transpose()?)
    }
}
