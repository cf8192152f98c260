//! AIDA-X's files in the format of RTNeural: layers of Keras.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    About, Format, ModelFile, finite,
    nam::{MAX_CHANNELS, MAX_DILATION, MAX_LAYERS, MAX_TAPS, length, size},
    network::{MAX_VALUES, Network, RecurrentConfig, inputs},
    number::{Whole, number},
};
use crate::{
    convert::to_f32,
    error::LoadError,
    memory::BLOCK,
    net::recurrent::{DenseWeights, KerasConvWeights, PiecewiseLinear, Plan, RecurrentWeights},
    simd::Activation,
};

/// Sample rate of files without one, Hz.
const SAMPLE_RATE: f64 = 48_000.0;
/// Number of frames of silence with which AIDA-X prewarms a model.
const PREWARM_FRAMES: usize = 2048;

#[derive(Deserialize)]
struct File<'a> {
    in_shape: Vec<Option<Whole>>,
    // Like AIDA-X, ignore these unless they are numbers.
    #[serde(borrow, default)]
    in_skip: Option<&'a RawValue>,
    #[serde(borrow, default)]
    in_gain: Option<&'a RawValue>,
    #[serde(borrow, default)]
    out_gain: Option<&'a RawValue>,
    #[serde(borrow, default)]
    samplerate: Option<&'a RawValue>,
    #[serde(borrow)]
    layers: Vec<Written<'a>>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
}

/// A layer; the nesting of its weights depends on its kind.
#[derive(Deserialize)]
struct Written<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    activation: Option<String>,
    shape: Vec<Option<Whole>>,
    #[serde(borrow, default)]
    weights: Option<&'a RawValue>,
    #[serde(default)]
    kernel_size: Option<OneOrMore>,
    #[serde(default)]
    dilation: Option<OneOrMore>,
    #[serde(default)]
    groups: Option<Whole>,
    #[serde(borrow, default)]
    epsilon: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    More(Vec<Whole>),
    One(Whole),
}

/// Each field is parsed separately, so that a malformed one does not affect the others.
#[derive(Default, Deserialize)]
struct Metadata<'a> {
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    author: Option<&'a RawValue>,
    #[serde(borrow, default)]
    samplerate: Option<&'a RawValue>,
}

type Rows = Vec<Vec<f32>>;

pub fn read(text: &str) -> Result<ModelFile, LoadError> {
    let file: File<'_> = serde_json::from_str(text)?;
    let inputs = inputs("in_shape", last(&file.in_shape).unwrap_or(Whole(1)))?;
    length("the number of layers", &file.layers, MAX_LAYERS)?;
    let mut layers = Vec::new();
    // Number of values that are not weights in the file.
    let (mut channels, mut values) = (inputs, 0_usize);
    for (before, written) in file.layers.iter().enumerate() {
        let units = size("shape", last(&written.shape).unwrap_or(Whole(0)), MAX_CHANNELS)?;
        let known = layers.len();
        Layer { number: before + 1, written, inputs: channels, units }.build(&mut layers)?;
        let beyond = |plan: &Plan| match plan {
            Plan::Activation(_) | Plan::PiecewiseLinear(_) => units * BLOCK,
            Plan::Conv(conv) if written.groups().0 != 1 => conv.dense.weights.len().saturating_add(plan.history()),
            plan => plan.history(),
        };
        values = layers[known..].iter().map(beyond).fold(values, usize::saturating_add);
        check_values(values)?;
        channels = units;
    }
    if channels != 1 {
        return Err(LoadError::inconsistent(format!("the last layer has {channels} outputs, only 1 is supported")));
    }
    let metadata =
        file.metadata.and_then(|raw| serde_json::from_str::<Metadata<'_>>(raw.get()).ok()).unwrap_or_default();
    let rate = rate(metadata.samplerate).or_else(|| rate(file.samplerate));
    let kinds: Vec<&str> = file.layers.iter().map(|layer| layer.kind.as_str()).collect();
    let config = RecurrentConfig { layers, knobs: inputs - 1, prewarm_frames: Some(PREWARM_FRAMES) };
    let text = |field: Option<&RawValue>| serde_json::from_str(field?.get()).ok();
    Ok(ModelFile {
        format: Format::Keras,
        architecture: kinds.join(", "),
        sample_rate: rate.unwrap_or(SAMPLE_RATE),
        has_sample_rate: rate.is_some(),
        about: About { name: text(metadata.name), modeled_by: text(metadata.author), ..About::default() },
        warnings: Vec::new(),
        network: Network::Recurrent(config),
        gains: (factor(number(file.in_gain))?, factor(number(file.out_gain))?),
        skip: skips(file.in_skip)?,
    })
}

/// Limits values without weights in the file: history, the outputs of layers without weights, zeros between groups.
fn check_values(values: usize) -> Result<(), LoadError> {
    match values > MAX_VALUES {
        true => Err(LoadError::TooLarge(format!("it needs {values} values, the maximum is {MAX_VALUES}"))),
        false => Ok(()),
    }
}

/// A sample rate of 1000 to 1000000 Hz, written as a number or as text.
fn rate(field: Option<&RawValue>) -> Option<f64> {
    let rate = field?.get().trim_matches('"').trim().parse().ok()?;
    (1_000.0..=1_000_000.0).contains(&rate).then_some(rate)
}

/// The last dimension of a shape: the number of values per frame.
fn last(shape: &[Option<Whole>]) -> Option<Whole> {
    shape.last().copied().flatten()
}

/// True if the input is added to the output. As in AIDA-X, the integer part counts.
fn skips(field: Option<&RawValue>) -> Result<bool, LoadError> {
    let skip = number(field).unwrap_or_default();
    match skip < 2.0 {
        true => Ok(skip.abs() >= 1.0),
        false => Err(LoadError::inconsistent(format!("in_skip is {skip}, only 0 and 1 are supported"))),
    }
}

/// The factor of a gain in dB; 0 dB by default.
fn factor(db: Option<f64>) -> Result<f32, LoadError> {
    let db = db.unwrap_or_default();
    match (-120.0..=120.0).contains(&db) {
        true => Ok(to_f32(10.0_f64.powf(db / 20.0))),
        false => Err(LoadError::WrongType(format!("gain {db} dB is outside -120 to 120 dB"))),
    }
}

impl Written<'_> {
    fn groups(&self) -> Whole {
        self.groups.unwrap_or(Whole(1))
    }
}

/// A layer with its number and its sizes.
struct Layer<'a> {
    number: usize,
    written: &'a Written<'a>,
    inputs: usize,
    units: usize,
}

impl<'a> Layer<'a> {
    fn build(&self, layers: &mut Vec<Plan>) -> Result<(), LoadError> {
        let kind = self.written.kind.as_str();
        let recurrent = matches!(kind, "lstm" | "gru");
        match kind {
            "lstm" => layers.push(self.lstm()?),
            "gru" => layers.push(self.gru()?),
            "dense" | "time-distributed-dense" => layers.push(self.dense()?),
            "conv1d" => layers.push(self.conv()?),
            "prelu" => layers.push(self.prelu()?),
            "batchnorm" => layers.push(self.batchnorm()?),
            "activation" => self.check(self.inputs == self.units, &[])?,
            _ => return Err(LoadError::UnknownPart { what: "layer type", name: kind.to_owned() }),
        }
        match self.written.activation.as_deref().unwrap_or_default() {
            "" | "linear" => {}
            // The tanh inside recurrent units.
            "tanh" if recurrent => {}
            name if !recurrent => layers.push(Plan::Activation(activation(name)?)),
            name => return Err(LoadError::UnknownPart { what: "activation function", name: name.to_owned() }),
        }
        Ok(())
    }

    /// The arrays that the layer's weights consist of. Callers ignore additional ones.
    fn weights(&self) -> Result<Vec<&'a RawValue>, LoadError> {
        let Layer { number, written, .. } = self;
        let missing = || LoadError::MissingKey(format!("the weights of layer {number} ({})", written.kind));
        serde_json::from_str(written.weights.ok_or_else(missing)?.get()).map_err(|_| self.mismatch())
    }

    fn parse<T: DeserializeOwned>(&self, weights: &RawValue) -> Result<T, LoadError> {
        serde_json::from_str(weights.get()).map_err(|_| self.mismatch())
    }

    fn mismatch(&self) -> LoadError {
        let Layer { number, written, inputs, units } = self;
        let kind = &written.kind;
        LoadError::inconsistent(format!(
            "the weights of layer {number} ({kind}) do not match {inputs} inputs and {units} outputs"
        ))
    }

    fn check(&self, fits: bool, rows: &[&Rows]) -> Result<(), LoadError> {
        if !fits {
            return Err(self.mismatch());
        }
        rows.iter().flat_map(|rows| rows.iter()).try_for_each(|row| finite(row))
    }

    fn lstm(&self) -> Result<Plan, LoadError> {
        let &Self { inputs, units, .. } = self;
        let [kernel, recurrent, bias, ..] = self.weights()?[..] else { return Err(self.mismatch()) };
        let (kernel, recurrent, bias): (Rows, Rows, Vec<f32>) =
            (self.parse(kernel)?, self.parse(recurrent)?, self.parse(bias)?);
        let fits = are(&kernel, inputs, 4 * units) && are(&recurrent, units, 4 * units) && bias.len() == 4 * units;
        self.check(fits, &[&kernel, &recurrent, &vec![bias.clone()]])?;
        let weight = |gate: usize, unit: usize, column: usize| {
            let row = if column < inputs { &kernel[column] } else { &recurrent[column - inputs] };
            row[gate * units + unit]
        };
        let bias = |gate: usize, unit: usize| bias[gate * units + unit];
        Ok(Plan::Lstm(RecurrentWeights::new(inputs, units, weight, bias, Default::default())))
    }

    fn gru(&self) -> Result<Plan, LoadError> {
        let &Self { inputs, units, .. } = self;
        let [kernel, recurrent, bias, ..] = self.weights()?[..] else { return Err(self.mismatch()) };
        let (kernel, recurrent, bias): (Rows, Rows, Rows) =
            (self.parse(kernel)?, self.parse(recurrent)?, self.parse(bias)?);
        let fits = are(&kernel, inputs, 3 * units) && are(&recurrent, units, 3 * units) && are(&bias, 2, 3 * units);
        self.check(fits, &[&kernel, &recurrent, &bias])?;
        let weight = |gate: usize, unit: usize, column: usize| {
            let row = if column < inputs { &kernel[column] } else { &recurrent[column - inputs] };
            row[gate * units + unit]
        };
        let bias = |gate: usize, unit: usize| (bias[0][gate * units + unit], bias[1][gate * units + unit]);
        Ok(Plan::Gru(RecurrentWeights::gru(inputs, units, weight, bias)))
    }

    fn dense(&self) -> Result<Plan, LoadError> {
        let &Self { inputs, units, .. } = self;
        let (kernel, bias): (Rows, Vec<f32>) = match self.weights()?[..] {
            [kernel] => (self.parse(kernel)?, vec![0.0; units]),
            [kernel, bias, ..] => (self.parse(kernel)?, self.parse(bias)?),
            [] => return Err(self.mismatch()),
        };
        let fits = are(&kernel, inputs, units) && bias.len() == units;
        self.check(fits, &[&kernel, &vec![bias.clone()]])?;
        Ok(Plan::Dense(DenseWeights::new(units, inputs, |row, column| kernel[column][row], |row| bias[row])))
    }

    /// Weights are `[tap][input][output]`, the oldest tap first.
    fn conv(&self) -> Result<Plan, LoadError> {
        let &Self { written, inputs, units, .. } = self;
        let last = |given: &Option<OneOrMore>, name: &str, most: usize| match given {
            None => Ok(1),
            Some(OneOrMore::One(value)) => size(name, *value, most),
            Some(OneOrMore::More(values)) => size(name, values.last().copied().unwrap_or(Whole(0)), most),
        };
        let taps = last(&written.kernel_size, "kernel_size", MAX_TAPS)?;
        let dilation = last(&written.dilation, "dilation", MAX_DILATION)?;
        let groups = size("groups", written.groups(), MAX_CHANNELS)?;
        let [kernel, bias, ..] = self.weights()?[..] else { return Err(self.mismatch()) };
        let (kernel, bias): (Vec<Rows>, Vec<f32>) = (self.parse(kernel)?, self.parse(bias)?);
        let fits = inputs.is_multiple_of(groups)
            && units.is_multiple_of(groups)
            && kernel.len() == taps
            && kernel.iter().all(|tap| are(tap, inputs / groups, units))
            && bias.len() == units;
        self.check(fits, &kernel.iter().chain([&vec![bias.clone()]]).collect::<Vec<_>>())?;
        let (inputs_per_group, outputs_per_group) = (inputs / groups, units / groups);
        if groups != 1 {
            check_values((units * inputs).saturating_mul(taps))?;
        }
        let weight = |row: usize, column: usize| {
            let (tap, input) = (column / inputs, column % inputs);
            if input / inputs_per_group == row / outputs_per_group {
                kernel[tap][input % inputs_per_group][row]
            } else {
                0.0
            }
        };
        let dense = DenseWeights::new(units, taps * inputs, weight, |row| bias[row]);
        Ok(Plan::Conv(KerasConvWeights { dense, kernel: taps, dilation }))
    }

    /// One slope for negative values per channel, or one for all.
    fn prelu(&self) -> Result<Plan, LoadError> {
        let [slopes, ..] = self.weights()?[..] else { return Err(self.mismatch()) };
        let slopes: Rows = self.parse(slopes)?;
        let count = slopes.first().map_or(0, Vec::len);
        self.check(self.inputs == self.units && (count == 1 || count == self.units), &[&slopes])?;
        let function =
            |unit: usize| PiecewiseLinear { positive_slope: 1.0, negative_slope: slopes[0][unit % count], offset: 0.0 };
        Ok(Plan::PiecewiseLinear((0..self.units).map(function).collect()))
    }

    /// Scale and shift, which are optional, then the means and variances of the training.
    fn batchnorm(&self) -> Result<Plan, LoadError> {
        let epsilon = number(self.written.epsilon).ok_or_else(|| LoadError::MissingKey("epsilon".to_owned()))?;
        let mut rows = self.weights()?.into_iter().map(|row| self.parse(row)).collect::<Result<Rows, _>>()?;
        if rows.len() == 2 {
            rows.splice(..0, [vec![1.0; self.units], vec![0.0; self.units]]);
        }
        self.check(self.inputs == self.units && are(&rows, 4, self.units), &[])?;
        let function = |unit: usize| {
            let [factor, added, mean, variance] = [0, 1, 2, 3].map(|row: usize| f64::from(rows[row][unit]));
            let factor = factor / (variance + epsilon).sqrt();
            let slope = to_f32(factor);
            PiecewiseLinear { positive_slope: slope, negative_slope: slope, offset: to_f32(added - factor * mean) }
        };
        let functions: Vec<PiecewiseLinear> = (0..self.units).map(function).collect();
        functions.iter().try_for_each(|function| finite(&[function.positive_slope, function.offset]))?;
        Ok(Plan::PiecewiseLinear(functions))
    }
}

fn are(rows: &Rows, count: usize, columns: usize) -> bool {
    rows.len() == count && rows.iter().all(|row| row.len() == columns)
}

fn activation(name: &str) -> Result<Activation, LoadError> {
    Ok(match name {
        "tanh" => Activation::Tanh,
        "sigmoid" => Activation::Sigmoid,
        "relu" => Activation::Relu,
        "elu" => Activation::Elu,
        _ => return Err(LoadError::UnknownPart { what: "activation function", name: name.to_owned() }),
    })
}
